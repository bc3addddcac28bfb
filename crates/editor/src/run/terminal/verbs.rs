//! The verbs of terminals: what they take, and what a person sees of them.

use std::{ffi::OsStr, time::Duration};

use prism_core::policy::{Code, Refusal};
use prism_os::pty::{self, PtySize};
use serde_json::{Value, json};
use tokio::{task::spawn_blocking, time::timeout};

use super::{MAX_INPUT, keeper, screen};
use crate::{
    args::{Args, wrong},
    prepared::Work,
    refusal::failed,
    run::{
        RunContext, RunState,
        command::{self, Launch},
    },
    shown::{ActionPreview, GivenCommand},
};

/// Bytes of an answer, if nothing else is said, and at most.
const USUAL_OUTPUT: u64 = 64 << 10;
const MOST_OUTPUT: u64 = 1 << 20;

/// How long an answer may wait for more output.
const LONGEST_WAIT: u64 = 60_000;

const MOST_ROWS: u64 = 500;
const MOST_COLS: u64 = 1000;

// === open_terminal ===

pub(crate) fn open(mut args: Args, context: &RunContext) -> Result<(ActionPreview, Work), Refusal> {
    let words = match args.take("command") {
        None => shell(&context.state),
        given => command::words(given)?,
    };
    let cwd = args.maybe_text("cwd")?;
    let mut env = command::additions(args.take("env"))?;
    let size = size(&mut args)?.unwrap_or(PtySize { rows: 24, cols: 80 });
    args.done()?;
    env.entry("TERM".to_owned()).or_insert_with(|| "xterm-256color".to_owned());
    let launch = Launch::open(context, &words, env, cwd.as_deref())?.with_scripts(&words);
    // There is no time that it has to end by.
    let shown = launch.shown(words, 0);
    context.state.terminals.admit(context.holder.id)?;
    Ok((shown, Work::task(move |_| keeper::open(launch, size))))
}

/// The user's shell. Behind a fence it cannot read what it would begin with, and would complain.
fn shell(state: &RunState) -> GivenCommand {
    let shell = state.editor.env.get(OsStr::new("SHELL")).and_then(|shell| shell.to_str()).unwrap_or("/bin/sh");
    let quiet: &[&str] = match (shell.rsplit('/').next(), state.fences.is_on()) {
        (Some("bash"), true) => &["--noprofile", "--norc"],
        (Some("zsh"), true) => &["-f"],
        (Some("fish"), true) => &["--no-config"],
        _ => &[],
    };
    GivenCommand::List([shell].iter().chain(quiet).map(|word| (*word).to_owned()).collect())
}

fn size(args: &mut Args) -> Result<Option<PtySize>, Refusal> {
    let rows = args.number("rows", 1, MOST_ROWS)?;
    let cols = args.number("cols", 1, MOST_COLS)?;
    match (rows, cols) {
        (None, None) => Ok(None),
        (Some(rows), Some(cols)) => Ok(Some(PtySize { rows: rows as u16, cols: cols as u16 })),
        _ => Err(wrong("`rows` and `cols` go together")),
    }
}

// === get_output ===

pub(crate) fn output(mut args: Args, context: &RunContext) -> Result<(ActionPreview, Work), Refusal> {
    let name = args.maybe_text("terminal")?;
    let after = args.number("after", 0, u64::MAX)?;
    let limit = args.number("limit", 1, MOST_OUTPUT)?.unwrap_or(USUAL_OUTPUT) as usize;
    let wait = Duration::from_millis(args.number("wait_ms", 0, LONGEST_WAIT)?.unwrap_or(0));
    let wants_screen = args.flag("screen")?;
    args.done()?;
    let terminals = &context.state.terminals;
    let Some(name) = name else {
        let told: Value = terminals.of(context.holder.id).iter().map(|terminal| terminal.to_json()).collect();
        let shown = ActionPreview::plain("List the terminals");
        return Ok((shown, Work::new(move |_| Ok(json!({ "terminals": told })))));
    };
    let terminal = terminals.named(&name, context.holder.id)?;
    let shown = ActionPreview::plain(format!("Read the output of terminal {name}"));
    let work = Work::task(move |_| async move {
        let mut news = terminal.changed.subscribe();
        let from = after.unwrap_or_else(|| terminal.state().history.end());
        let more = async {
            while !wait.is_zero() && terminal.state().is_still_at(from) {
                if news.changed().await.is_err() {
                    break;
                }
            }
        };
        // No more output is no error.
        let _ = timeout(wait, more).await;
        let mut told = terminal.read(after, limit);
        if wants_screen {
            let (size, printed) = terminal.printed();
            // It takes milliseconds; and whatever a program prints, drawing it can at most fail.
            told["screen"] = spawn_blocking(move || screen::draw(size, &printed)).await.unwrap_or_default();
        }
        Ok(told)
    });
    Ok((shown, work.within(wait + Duration::from_secs(5))))
}

// === send_input ===

pub(crate) fn input(mut args: Args, context: &RunContext) -> Result<(ActionPreview, Work), Refusal> {
    let name = args.text("terminal")?;
    let input = args.maybe_text("input")?;
    let size = size(&mut args)?;
    let signal = args.maybe_text("signal")?;
    let is_close = args.flag("close")?;
    args.done()?;
    let terminal = context.state.terminals.named(&name, context.holder.id)?;
    let wishes = [input.is_some(), size.is_some(), signal.is_some(), is_close];
    if wishes.iter().filter(|is_wished| **is_wished).count() != 1 {
        return Err(wrong("one of `input`, `rows` with `cols`, `signal` or `close` is needed, and only one"));
    }
    if let Some(input) = input {
        if input.len() > MAX_INPUT {
            let message = format!("{} bytes of input; at most {MAX_INPUT} are allowed at once", input.len());
            return Err(Refusal::new(Code::TooLarge, message));
        }
        let lines = input.lines().map(str::to_owned).collect();
        let shown = ActionPreview::Plain { title: format!("Type into terminal {name}: {}", terminal.line), lines };
        return Ok((shown, Work::task(move |_| async move { terminal.take(input).await })));
    }
    if let Some(size) = size {
        let shown =
            ActionPreview::plain(format!("Resize terminal {name} to {} rows and {} columns", size.rows, size.cols));
        let work = Work::new(move |_| {
            terminal.session.resize(size).map_err(|error| failed(format!("cannot resize the terminal: {error}")))?;
            terminal.state().size = size;
            terminal.view.resized(size);
            Ok(json!({ "terminal": terminal.name(), "bytes": 0 }))
        });
        return Ok((shown, work));
    }
    if let Some(signal) = signal {
        let meant = pty::signal(&signal).ok_or_else(|| {
            wrong(format!("{signal:?} is no signal; there are INT, TERM, KILL, HUP, QUIT, TSTP, CONT, USR1, USR2"))
        })?;
        let shown = ActionPreview::plain(format!("Send {signal} to what runs in terminal {name}"));
        let work = Work::new(move |_| {
            terminal.refuse_ended()?;
            terminal.session.signal(meant).map_err(|error| failed(format!("cannot send {signal}: {error}")))?;
            Ok(json!({ "terminal": terminal.name(), "bytes": 0 }))
        });
        return Ok((shown, work));
    }
    let state = context.state.clone();
    let work = Work::task(move |_| async move {
        terminal.end().await;
        state.terminals.forget(terminal.number);
        Ok(json!({ "terminal": terminal.name(), "bytes": 0, "exit_code": terminal.state().exit_code() }))
    });
    Ok((ActionPreview::plain(format!("Close terminal {name} with all that runs in it")), work))
}
