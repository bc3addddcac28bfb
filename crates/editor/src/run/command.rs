//! Commands: in a folder that is held open, in a process group of their own, behind a fence, with what they print kept within
//! bounds.
//!
//! A command runs as the user. Where the kernel keeps the fence, it reaches the granted folders and the toolchains; where it
//! does not, it can do what the user can, and its result says so. A person confirms each.

mod attend;
mod launch;
mod output;

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    time::Duration,
};

pub(crate) use attend::{ChildStatus, DEATH, EndedCommand, attend};
pub(crate) use launch::{Launch, StartedProgram};
pub(crate) use output::BoundedOutput;
use prism_core::policy::Refusal;
use serde_json::{Value, json};

use crate::{
    args::{Args, kind_of, wrong},
    prepared::Work,
    run::observe::RunEnding,
    run::{
        RunContext,
        fence::{FenceReport, Overrun},
    },
    shown::{ActionPreview, GivenCommand},
};

/// How long a command may run, if nothing else is said, and at most.
const USUAL_TIME: Duration = Duration::from_secs(60);
pub(crate) const LONGEST_TIME: Duration = Duration::from_secs(600);

/// How much longer than its own time a command may take in all: it is started, ended and read out.
pub(crate) const SLACK: Duration = Duration::from_secs(10);

/// Bytes of words and additions together; Linux takes 2 MiB, and a person has to read it.
const MAX_WORDS: usize = 128 << 10;

pub(crate) fn prepare(mut args: Args, context: &RunContext) -> Result<(ActionPreview, Work), Refusal> {
    let words = words(args.take("command"))?;
    let cwd = args.maybe_text("cwd")?;
    let env = additions(args.take("env"))?;
    let most = LONGEST_TIME.as_millis() as u64;
    let timeout_ms = args.number("timeout_ms", 1, most)?.unwrap_or(USUAL_TIME.as_millis() as u64);
    args.done()?;
    let launch = Launch::open(context, &words, env, cwd.as_deref())?.with_scripts(&words);
    let shown = launch.shown(words, timeout_ms);
    let patience = Duration::from_millis(timeout_ms);
    Ok((shown, Work::task(move |_| run(launch, patience)).within(patience + SLACK)))
}

/// Runs it to its end. Dropping the future kills it, and whatever it has started.
async fn run(launch: Launch, patience: Duration) -> Result<Value, Refusal> {
    let state = launch.context.state.clone();
    let _turn = launch.turn()?;
    let StartedProgram { what: child, launch, run, around } = launch.child().await?;
    let unsaved = state.text.buffers.unsaved_beneath(&launch.cwd);
    let mut fence = FenceReport::of(child.enforced.as_ref());
    let pid = child.group.pid();
    launch.tell("process_started", json!({ "command": launch.line(), "pid": pid }));
    let ended = |exit_code: Option<i32>| json!({ "command": launch.line(), "pid": pid, "exit_code": exit_code });
    let ending = launch.ending("process_ended", ended(None));
    let view = launch.view("exec_command", None);
    let EndedCommand { status, timed_out, over, out, err, duration } =
        attend(child, run, patience, &around.limits, &view, |_| ()).await;
    view.ended(RunEnding::of(status, timed_out, over.as_ref()));
    drop(around);

    let (stdout, stdout_left_out) = out.into_text();
    let (stderr, stderr_left_out) = err.into_text();
    let exit_code = status.code.filter(|_| !timed_out);
    if exit_code != Some(0) {
        fence.add_hint(&[&stdout, &stderr]);
    }
    ending.is(ended(exit_code));
    launch.tell("command_executed", json!({ "command": launch.line(), "exit_code": exit_code }));
    let mut answer = json!({
        "exit_code": exit_code,
        "signal": status.signal,
        "timed_out": timed_out,
        "stdout": stdout,
        "stderr": stderr,
        "stdout_bytes_left_out": stdout_left_out,
        "stderr_bytes_left_out": stderr_left_out,
        "duration_ms": duration,
        "cwd": launch.cwd,
        "fence": fence,
        "unsaved": unsaved,
    });
    tell_over(&mut answer, over.as_ref());
    Ok(answer)
}

/// Says in an answer why a run was ended, if it was for what it used.
pub(crate) fn tell_over(answer: &mut Value, over: Option<&Overrun>) {
    if let Some(over) = over {
        answer["ended_because"] = over.to_string().into();
    }
}

pub(crate) fn words(given: Option<Value>) -> Result<GivenCommand, Refusal> {
    let words = match given {
        Some(Value::String(line)) => GivenCommand::Shell(line),
        Some(Value::Array(list)) => {
            let word = |word| match word {
                Value::String(word) => Ok(word),
                other => Err(wrong(format!("`command` must hold strings, not {}", kind_of(&other)))),
            };
            GivenCommand::List(list.into_iter().map(word).collect::<Result<_, _>>()?)
        }
        Some(other) => return Err(wrong(format!("`command` must be a string or an array, not {}", kind_of(&other)))),
        None => return Err(wrong("`command` is missing: a line for the shell, or a program and its arguments")),
    };
    let (is_empty, has_nul) = match &words {
        GivenCommand::Shell(line) => (line.trim().is_empty(), line.contains('\0')),
        GivenCommand::List(list) => {
            (list.first().is_none_or(String::is_empty), list.iter().any(|word| word.contains('\0')))
        }
    };
    match (is_empty, has_nul) {
        (true, _) => Err(wrong("`command` is empty")),
        (_, true) => Err(wrong("`command` has a NUL in it")),
        _ => Ok(words),
    }
}

pub(crate) fn additions(given: Option<Value>) -> Result<BTreeMap<String, String>, Refusal> {
    let given = match given {
        None => return Ok(BTreeMap::new()),
        Some(Value::Object(given)) => given,
        Some(other) => return Err(wrong(format!("`env` must be an object, not {}", kind_of(&other)))),
    };
    let mut env = BTreeMap::new();
    for (name, value) in given {
        let Value::String(value) = value else {
            return Err(wrong(format!("`env`: {name:?} must be a string, not {}", kind_of(&value))));
        };
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            return Err(wrong(format!("`env`: {name:?} cannot be a variable")));
        }
        if is_own(OsStr::new(&name)) {
            return Err(wrong(format!("`env`: {name:?} is Prism's own")));
        }
        env.insert(name, value);
    }
    Ok(env)
}

/// Takes out of an environment what is Prism's own, its settings and its secrets, and what leads to the person's: agents of keys,
/// the screen, the session's other programs, and machines and containers that are theirs to command. (H1)
pub(crate) fn without_secrets(env: BTreeMap<OsString, OsString>) -> BTreeMap<OsString, OsString> {
    let leads_out = |name: &OsStr| {
        let name = name.to_string_lossy();
        LEADS_OUT.contains(&name.as_ref()) || LEADS_OUT_FROM.iter().any(|begin| name.starts_with(begin))
    };
    env.into_iter().filter(|(name, _)| !is_own(name) && !leads_out(name)).collect()
}

const LEADS_OUT: &[&str] = &[
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "GPG_AGENT_INFO",
    "GNOME_KEYRING_CONTROL",
    "DBUS_SESSION_BUS_ADDRESS",
    "DBUS_SYSTEM_BUS_ADDRESS",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "WAYLAND_SOCKET",
    "XAUTHORITY",
    "XDG_RUNTIME_DIR",
    "XDG_SESSION_ID",
    "SESSION_MANAGER",
    "PULSE_SERVER",
    "TMUX",
    "TMUX_PANE",
    "STY",
    "KUBECONFIG",
    "VSCODE_IPC_HOOK_CLI",
    "NVIM",
];
const LEADS_OUT_FROM: &[&str] = &["DOCKER_", "CONTAINER_", "PODMAN_", "VSCODE_GIT_"];

fn is_own(name: &OsStr) -> bool {
    name == "MCP_TOKEN" || name.as_encoded_bytes().starts_with(b"PRISM_")
}
