//! Who watches what is run for holders, while it runs: an editor that shows it to the person, say. Mostly nobody does, and then it
//! costs nothing.
//!
//! The idea: whoever watches is told and never asked, so nothing that runs waits for them, and they cannot change it.

use std::{
    fmt,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use prism_os::pty::PtySize;

use super::{RunState, command::ChildStatus, fence::Overrun, terminal::half_letter};
use crate::GrantHolder;

/// Is told of everything that is run. There is one for a runtime.
pub trait RunObserver: fmt::Debug + Send + Sync {
    /// Tells that a run begins. Returns whom to tell the rest; `None` if nobody watches it. Must not block.
    fn begins(&self, run: &ObservedRun<'_>) -> Option<Arc<dyn RunViewer>>;
}

/// Is told of one run. Nothing here may block: what runs would wait.
pub trait RunViewer: fmt::Debug + Send + Sync {
    /// Takes what was printed, in whole letters, and with line ends as a terminal has them.
    fn printed(&self, text: &str);
    fn resized(&self, size: PtySize);
    /// Told once, and last.
    fn ended(&self, ending: RunEnding);
}

/// Something that is run for a holder.
#[derive(Debug)]
pub struct ObservedRun<'a> {
    /// What the holder asked for.
    pub verb: &'static str,
    pub holder: &'a GrantHolder,
    /// What is run in a word or in a line, and as one would type it. Both may hold anything.
    pub name: &'a str,
    pub command: &'a str,
    pub folder: &'a Path,
    /// Of a terminal.
    pub size: Option<PtySize>,
}

/// How a run has ended. Neither a code nor a signal if nobody has waited for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunEnding {
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    /// What else there is to say.
    pub note: Option<String>,
}

/// One run, for those who watch it. If it is dropped before it has ended, they are told that it was given up.
#[derive(Debug)]
pub(crate) struct RunView {
    viewer: Option<Arc<dyn RunViewer>>,
    is_over: AtomicBool,
}

/// One output of a run.
#[derive(Debug, Default)]
pub(crate) struct RunStream {
    viewer: Option<Arc<dyn RunViewer>>,
    /// Whether line ends are as in a file.
    is_pipe: bool,
    /// The beginning of a letter, and of what is taken next.
    half: Vec<u8>,
}

// === impl RunEnding ===

impl RunEnding {
    pub(crate) fn of(status: ChildStatus, timed_out: bool, over: Option<&Overrun>) -> Self {
        let is_late = timed_out.then(|| "its time was over".to_owned());
        let note = over.map(|over| format!("ended: {over}")).or(is_late);
        Self { exit_code: status.code.filter(|_| !timed_out), signal: status.signal, note }
    }
}

// === impl RunView ===

impl RunView {
    pub(crate) fn begin(state: &RunState, run: &ObservedRun<'_>) -> Self {
        let viewer = state.observer.get().and_then(|observer| observer.begins(run));
        Self { viewer, is_over: AtomicBool::new(false) }
    }

    /// A run that nobody is told of.
    pub(crate) fn unseen() -> Self {
        Self { viewer: None, is_over: AtomicBool::new(false) }
    }

    pub(crate) fn is_seen(&self) -> bool {
        self.viewer.is_some()
    }

    /// An output that is a pipe.
    pub(crate) fn pipe(&self) -> RunStream {
        RunStream { viewer: self.viewer.clone(), is_pipe: true, half: Vec::new() }
    }

    /// The output of a terminal.
    pub(crate) fn terminal(&self) -> RunStream {
        RunStream { is_pipe: false, ..self.pipe() }
    }

    /// Shows some lines.
    pub(crate) fn lines(&self, lines: &str) {
        if let Some(viewer) = &self.viewer {
            viewer.printed(&(as_at_terminal(lines.trim_end()) + "\r\n"));
        }
    }

    pub(crate) fn resized(&self, size: PtySize) {
        if let Some(viewer) = &self.viewer {
            viewer.resized(size);
        }
    }

    pub(crate) fn ended(&self, ending: RunEnding) {
        if let Some(viewer) = self.viewer.as_ref().filter(|_| !self.is_over.swap(true, Ordering::Relaxed)) {
            viewer.ended(ending);
        }
    }
}

impl Drop for RunView {
    fn drop(&mut self) {
        self.ended(RunEnding { note: Some("it was given up".to_owned()), ..RunEnding::default() });
    }
}

// === impl RunStream ===

impl RunStream {
    /// Takes what was read. A letter that has come in half waits for the rest of it.
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        let Some(viewer) = &self.viewer else { return };
        self.half.extend_from_slice(bytes);
        let whole = self.half.len() - half_letter(&self.half);
        let text = String::from_utf8_lossy(&self.half[..whole]);
        match (text.is_empty(), self.is_pipe) {
            (true, _) => {}
            (false, true) => viewer.printed(&as_at_terminal(&text)),
            (false, false) => viewer.printed(&text),
        }
        self.half.drain(..whole);
    }

    /// Shows what is left: half a letter that nothing has come for.
    pub(crate) fn end(&mut self) {
        let half = std::mem::take(&mut self.half);
        if let Some(viewer) = self.viewer.as_ref().filter(|_| !half.is_empty()) {
            viewer.printed(&String::from_utf8_lossy(&half));
        }
    }
}

fn as_at_terminal(text: &str) -> String {
    text.replace('\n', "\r\n")
}
