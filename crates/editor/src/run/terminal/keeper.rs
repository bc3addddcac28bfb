//! The task that runs a terminal: it reads, whoever listens or not, writes what is typed, and ends everything in the end.

use std::{
    future::pending,
    pin::pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use prism_core::policy::Refusal;
use prism_os::{
    census::MarkedRun,
    group::ProcessGroup,
    pty::{Pty, PtySize},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::unix::pipe::{Receiver, Sender},
    sync::{mpsc, watch},
    task::spawn_blocking,
    time::{Instant, sleep_until, timeout},
};

use super::{HolderTerminal, MAX_TYPED, TerminalState, history::OutputHistory};
use crate::{
    happening::Happenings,
    run::observe::{RunEnding, RunStream},
    run::{
        command::{ChildStatus, DEATH, Launch, StartedProgram},
        fence::{ChildFence, FenceReport, Overrun},
    },
};

/// Opens a terminal, and leaves it to its task.
pub(super) async fn open(launch: Launch, size: PtySize) -> Result<Value, Refusal> {
    let StartedProgram { what: pty, launch, run, around } = launch.at_terminal(size).await?;
    let Pty { output, input, session, group, enforced } = pty;
    let state = launch.context.state.clone();
    let (holder, pid) = (launch.context.holder.id, group.pid());
    let (typed, to_type) = mpsc::channel(MAX_TYPED);
    let (stop, stopped) = watch::channel(false);
    let fence = FenceReport::of(enforced.as_ref());
    let make = |number| HolderTerminal {
        number,
        holder,
        line: launch.line(),
        cwd: launch.cwd.clone(),
        pid,
        fence: fence.clone(),
        session,
        typed,
        stop,
        state: Mutex::new(TerminalState { history: OutputHistory::default(), size, ended: None, over: None }),
        view: launch.view("open_terminal", Some(size)),
        changed: watch::Sender::new(()),
    };
    let terminal = state.terminals.add(make, holder)?;
    state.editor.happenings.tell_only(
        "process_started",
        holder,
        json!({ "terminal": terminal.name(), "command": terminal.line, "pid": pid }),
    );
    let keeper = TerminalKeeper {
        stream: terminal.view.terminal(),
        terminal: terminal.clone(),
        happenings: state.editor.happenings.clone(),
        output,
        input,
        to_type,
        stopped,
        group: Some(group),
        run: Some(run),
        around,
        told: 0,
    };
    tokio::spawn(keeper.keep());
    Ok(json!({ "terminal": terminal.name(), "pid": pid, "fence": fence }))
}

struct TerminalKeeper {
    terminal: Arc<HolderTerminal>,
    /// What is printed, for those who watch.
    stream: RunStream,
    happenings: Happenings,
    output: Receiver,
    input: Sender,
    to_type: mpsc::Receiver<Vec<u8>>,
    stopped: watch::Receiver<bool>,
    group: Option<ProcessGroup>,
    run: Option<MarkedRun>,
    /// The folder for temporary files lives as long.
    around: ChildFence,
    /// How far listeners were told.
    told: u64,
}

/// How often listeners are told of output at most: ten times a second.
const TELLING: Duration = Duration::from_millis(100);

/// Bytes that listeners are told at once: the last of what came. The rest is there to be read.
const MAX_TOLD: usize = 4 << 10;

/// How long is read on after the end: what was printed is there at once.
const LAST_WORDS: Duration = Duration::from_millis(200);

impl TerminalKeeper {
    async fn keep(mut self) {
        let Some(group) = self.group.take() else { return };
        let mut buffer = vec![0; 32 << 10];
        let mut typing: Vec<u8> = Vec::new();
        let mut tell_at: Option<Instant> = None;
        let mut last_told = Instant::now() - TELLING;
        let mut is_silent = false;
        let mut stopped = self.stopped.clone();
        let (limits, mut over) = (self.around.limits.clone(), None);
        let mut exceeded = pin!(limits.exceeded(group.pid()));
        loop {
            let telling = async {
                match tell_at {
                    Some(at) => sleep_until(at).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                // Cancel safe: what is dropped has read, written and taken nothing.
                read = self.output.read(&mut buffer), if !is_silent => match read {
                    Ok(bytes @ 1..) => {
                        self.take(&buffer[..bytes]);
                        tell_at.get_or_insert(last_told + TELLING);
                    }
                    // Nobody has the terminal open; its leader may run on all the same.
                    _ => is_silent = true,
                },
                written = self.input.write(&typing), if !typing.is_empty() && !is_silent => match written {
                    Ok(bytes) => drop(typing.drain(..bytes)),
                    Err(_) => typing.clear(),
                },
                Some(typed) = self.to_type.recv(), if typing.is_empty() => typing = typed,
                () = telling => {
                    self.tell();
                    (tell_at, last_told) = (None, Instant::now());
                }
                () = group.exited() => break,
                why = &mut exceeded => {
                    over = Some(why);
                    break;
                }
                () = async { drop(stopped.wait_for(|is_stopped| *is_stopped).await) } => break,
            }
        }
        self.end(group, over).await;
    }

    fn take(&mut self, bytes: &[u8]) {
        self.stream.take(bytes);
        self.terminal.state().history.push(bytes);
        self.terminal.changed.send_replace(());
    }

    fn tell(&mut self) {
        let piece = {
            let state = self.terminal.state();
            let from = self.told.max(state.history.end().saturating_sub(MAX_TOLD as u64));
            state.history.after(from, MAX_TOLD, true)
        };
        if piece.next > self.told {
            self.told = piece.next;
            let data = json!({ "terminal": self.terminal.name(), "text": piece.text, "next": piece.next });
            self.happenings.tell_only("output_received", self.terminal.holder, data);
        }
    }

    /// Ends all that runs there: the leader's group, the other groups of its session, and what has left even that.
    async fn end(mut self, group: ProcessGroup, over: Option<Overrun>) {
        group.kill();
        let terminal = self.terminal.clone();
        let run = self.run.take();
        let killing = spawn_blocking(move || {
            // The leader is not reaped yet, so the session is still ours.
            terminal.session.kill();
            run.map(MarkedRun::end)
        });
        let _ = timeout(DEATH, killing).await;
        let is_gone = timeout(DEATH, group.exited()).await.is_ok();
        let status = if is_gone { group.finish().ok().map(ChildStatus::of) } else { None };
        let _ = timeout(LAST_WORDS, self.read_rest()).await;
        self.tell();
        let status = status.unwrap_or_default();
        let over = over.or_else(|| self.around.limits.kept());
        let ending = RunEnding::of(status, false, over.as_ref());
        {
            let mut state = self.terminal.state();
            (state.ended, state.over) = (Some(status), over);
        }
        self.terminal.changed.send_replace(());
        self.stream.end();
        self.terminal.view.ended(ending);
        let data = json!({
            "terminal": self.terminal.name(),
            "pid": self.terminal.pid,
            "exit_code": status.code,
            "signal": status.signal,
        });
        self.happenings.tell_only("process_ended", self.terminal.holder, data);
    }

    async fn read_rest(&mut self) {
        let mut buffer = vec![0; 32 << 10];
        while let Ok(bytes @ 1..) = self.output.read(&mut buffer).await {
            self.take(&buffer[..bytes]);
        }
    }
}
