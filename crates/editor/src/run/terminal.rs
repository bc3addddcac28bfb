//! Terminals: a program, mostly a shell, that runs on while a holder types and reads. They are a holder's own: for everybody else
//! they are not there. Each is run by a task (`keeper.rs`), and ends with its holder, with all that was started in it.

mod history;
mod keeper;
mod screen;
mod verbs;

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use history::OutputHistory;
pub(crate) use history::half_letter;
use prism_core::policy::{Code, Refusal};
use prism_os::pty::{PtySize, TerminalSession};
use serde_json::{Value, json};
use tokio::{
    sync::{mpsc, watch},
    time::timeout,
};
pub(crate) use verbs::{input, open, output};

use crate::{
    refusal::failed,
    run::observe::RunView,
    run::{
        command,
        fence::{FenceReport, Overrun},
    },
};

/// All terminals, by number.
#[derive(Debug, Default)]
pub(crate) struct HolderTerminals {
    all: Mutex<BTreeMap<u64, Arc<HolderTerminal>>>,
    opened: AtomicU64,
}

#[derive(Debug)]
struct HolderTerminal {
    number: u64,
    holder: u128,
    /// What runs in it, as it would be typed.
    line: String,
    cwd: PathBuf,
    pid: u32,
    /// What was enforced.
    fence: FenceReport,
    session: TerminalSession,
    /// What is typed goes to the task that runs it.
    typed: mpsc::Sender<Vec<u8>>,
    /// Set once: it shall end.
    stop: watch::Sender<bool>,
    state: Mutex<TerminalState>,
    /// For those who watch it.
    view: RunView,
    /// Told after each change of the state.
    changed: watch::Sender<()>,
}

#[derive(Debug)]
struct TerminalState {
    history: OutputHistory,
    size: PtySize,
    /// How it has ended; `None` while it runs.
    ended: Option<command::ChildStatus>,
    /// What it was ended for, if that is what it used.
    over: Option<Overrun>,
}

/// Terminals of one holder, and of all. Beyond it one that has ended is forgotten; if none has, a new one is refused.
const MAX_OF_HOLDER: usize = 8;
const MAX_TERMINALS: usize = 32;

/// Pieces of input that a program has not read yet. Beyond it more is refused: the program does not read.
const MAX_TYPED: usize = 64;

/// Bytes of one piece of input.
const MAX_INPUT: usize = 64 << 10;

/// How long is waited for a program to read what was typed before.
const READING: Duration = Duration::from_secs(1);

/// How long the end of all terminals is waited for.
const ENDING: Duration = Duration::from_secs(5);

// === impl HolderTerminals ===

impl HolderTerminals {
    /// Ends what a holder had. What runs is killed while nobody waits.
    pub(crate) fn release(&self, holder: u128) {
        let mut all = self.lock();
        all.values().filter(|terminal| terminal.holder == holder).for_each(|terminal| terminal.stop());
        all.retain(|_, terminal| terminal.holder != holder);
    }

    /// Ends all, and waits until they are gone.
    pub(crate) async fn close(&self) {
        let all = std::mem::take(&mut *self.lock());
        all.values().for_each(|terminal| terminal.stop());
        let ended = async {
            for terminal in all.values() {
                terminal.end().await;
            }
        };
        let _ = timeout(ENDING, ended).await;
    }

    /// Refuses one too many. Of those that have ended, the oldest makes room.
    fn admit(&self, holder: u128) -> Result<(), Refusal> {
        let mut all = self.lock();
        let is_full = |all: &BTreeMap<u64, Arc<HolderTerminal>>| {
            let own = all.values().filter(|terminal| terminal.holder == holder).count();
            (own >= MAX_OF_HOLDER, all.len() >= MAX_TERMINALS)
        };
        loop {
            let (own_are_full, all_are_full) = is_full(&all);
            if !own_are_full && !all_are_full {
                return Ok(());
            }
            let ended = |terminal: &&Arc<HolderTerminal>| {
                (!own_are_full || terminal.holder == holder) && terminal.state().ended.is_some()
            };
            let Some(number) = all.values().find(ended).map(|terminal| terminal.number) else {
                let most = if own_are_full { MAX_OF_HOLDER } else { MAX_TERMINALS };
                let message = format!("{most} terminals are open already; close one with send_input");
                return Err(Refusal { code: Code::TooFast, message, retry_after: Some(Duration::from_secs(5)) });
            };
            all.remove(&number);
        }
    }

    /// Takes one in that was just opened, if there still is room.
    fn add(&self, make: impl FnOnce(u64) -> HolderTerminal, holder: u128) -> Result<Arc<HolderTerminal>, Refusal> {
        self.admit(holder)?;
        let number = self.opened.fetch_add(1, Ordering::Relaxed) + 1;
        let terminal = Arc::new(make(number));
        self.lock().insert(number, terminal.clone());
        Ok(terminal)
    }

    fn named(&self, name: &str, holder: u128) -> Result<Arc<HolderTerminal>, Refusal> {
        let number = name.strip_prefix("terminal-").and_then(|number| number.parse::<u64>().ok());
        let found = number.and_then(|number| self.lock().get(&number).cloned());
        found.filter(|terminal| terminal.holder == holder).ok_or_else(|| {
            Refusal::new(Code::NotFound, format!("there is no terminal {name:?}; get_output without one lists them"))
        })
    }

    fn of(&self, holder: u128) -> Vec<Arc<HolderTerminal>> {
        self.lock().values().filter(|terminal| terminal.holder == holder).cloned().collect()
    }

    fn forget(&self, number: u64) {
        self.lock().remove(&number);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<HolderTerminal>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl HolderTerminal ===

impl HolderTerminal {
    fn name(&self) -> String {
        format!("terminal-{}", self.number)
    }

    fn state(&self) -> MutexGuard<'_, TerminalState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Ends it, and waits until it has.
    async fn end(&self) {
        self.stop();
        let mut news = self.changed.subscribe();
        while self.state().ended.is_none() {
            if news.changed().await.is_err() {
                return;
            }
        }
    }

    fn refuse_ended(&self) -> Result<(), Refusal> {
        if self.state().ended.is_none() {
            return Ok(());
        }
        Err(Refusal::new(Code::NotFound, format!("what ran in {} has ended; open another terminal", self.name())))
    }

    /// Types something.
    async fn take(&self, input: String) -> Result<Value, Refusal> {
        self.refuse_ended()?;
        let bytes = input.len();
        match timeout(READING, self.typed.send(input.into_bytes())).await {
            Ok(Ok(())) => Ok(json!({ "terminal": self.name(), "bytes": bytes })),
            Ok(Err(_)) => self.refuse_ended().and_then(|()| Err(failed("the terminal is ending"))),
            Err(_) => Err(Refusal {
                code: Code::TooFast,
                message: "the program does not read its input; wait, or send it a signal".to_owned(),
                retry_after: Some(READING),
            }),
        }
    }

    fn read(&self, after: Option<u64>, limit: usize) -> Value {
        let state = self.state();
        let is_running = state.ended.is_none();
        let piece = match after {
            Some(after) => state.history.after(after, limit, is_running),
            None => state.history.last(limit, is_running),
        };
        let exit_code = state.exit_code();
        let mut fence = self.fence.clone();
        // What a shell was refused is told while it runs, as it may run on for long.
        if exit_code != Some(0) {
            fence.add_hint(&[&piece.text]);
        }
        let mut told = json!({
            "terminal": self.name(),
            "output": piece.text,
            "next": piece.next,
            "left_out": piece.left_out,
            "is_running": is_running,
            "exit_code": exit_code,
            "signal": state.ended.and_then(|status| status.signal),
            "fence": fence,
        });
        command::tell_over(&mut told, state.over.as_ref());
        told
    }

    /// What a picture of it is drawn from.
    fn printed(&self) -> (PtySize, Vec<u8>) {
        let state = self.state();
        (state.size, state.history.bytes())
    }

    fn to_json(&self) -> Value {
        let state = self.state();
        json!({
            "terminal": self.name(),
            "command": self.line,
            "cwd": self.cwd,
            "pid": self.pid,
            "rows": state.size.rows,
            "cols": state.size.cols,
            "next": state.history.end(),
            "is_running": state.ended.is_none(),
            "exit_code": state.exit_code(),
        })
    }
}

impl TerminalState {
    fn exit_code(&self) -> Option<i32> {
        self.ended.and_then(|status| status.code)
    }

    fn is_still_at(&self, offset: u64) -> bool {
        self.ended.is_none() && self.history.end() <= offset
    }
}
