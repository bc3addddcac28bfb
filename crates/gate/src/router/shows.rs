//! What is run for agents, shown in the editor that has the folder: what is printed waits here until the connection takes it. Nothing
//! that runs ever waits for an editor: of what one has not taken the oldest goes, and a line says how much.

use std::{
    collections::{BTreeMap, VecDeque},
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use prism_editor::{
    ObservedRun, RunEnding, RunObserver, RunViewer,
    protocol::{RunShow, RunShowEnded, RunShowKind, RunShowOutput, RunShowResized, ToPlugin},
};
use prism_os::pty::PtySize;
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};
use uuid::Uuid;

use super::{
    EditorRouter,
    drawing::DrawingFilter,
    owners::PathOwner,
    plugin::{Plugin, PluginLiveness},
};

/// Runs that one editor is told of and has not taken the end of. A further one is not shown there: it does not read.
const MAX_SHOWS: usize = 64;
/// Bytes of a run that an editor has not taken. Of more the oldest go, some at a time: the end is what a person looks for.
const MAX_WAITING: usize = 256 << 10;
const DROPPED_AT_ONCE: usize = 32 << 10;
/// How far on a line's end is looked for, to begin behind it.
const MAX_LINE: usize = 4 << 10;
/// Bytes of one message, and how often one is sent: no person reads faster.
const MAX_PIECE: usize = 64 << 10;
const PIECE_EVERY: Duration = Duration::from_millis(25);
/// Letters of a title and of a command.
const MAX_TITLE: usize = 80;
const MAX_COMMAND: usize = 500;

/// The runs that one editor is told of.
#[derive(Debug, Default)]
pub(super) struct RunShows {
    table: Mutex<Table>,
    /// Rung when there is something to take.
    news: Notify,
}

#[derive(Debug, Default)]
struct Table {
    last: u64,
    runs: BTreeMap<u64, WaitingShow>,
    /// Whose turn it is: the run after this one.
    turn: u64,
    /// When the next piece of output may be sent.
    next_at: Option<Instant>,
    is_closed: bool,
}

/// What an editor has not taken of one run, in the order in which it is told.
#[derive(Debug, Default)]
struct WaitingShow {
    show: Option<RunShow>,
    resized: Option<PtySize>,
    text: VecDeque<u8>,
    /// Bytes that went before what is left of the text.
    left_out: u64,
    ended: Option<RunEnding>,
}

/// One run, told to the plugin that had its folder as it began.
#[derive(Debug)]
struct ShownRun {
    plugin: Arc<Plugin>,
    id: u64,
    filter: Mutex<DrawingFilter>,
}

/// Finds the editor that a run is shown in.
#[derive(Debug)]
pub(super) struct RunRouter(pub(super) Weak<EditorRouter>);

// === impl RunRouter ===

impl RunObserver for RunRouter {
    fn begins(&self, run: &ObservedRun<'_>) -> Option<Arc<dyn RunViewer>> {
        let plugin = self.0.upgrade()?.shows_at(run.folder)?;
        let id = plugin.shows.begin(|id| show_of(id, run))?;
        Some(Arc::new(ShownRun { plugin, id, filter: Mutex::default() }))
    }
}

impl EditorRouter {
    /// The editor that shows what is run in a folder: its owner, if it said that it does. One that is just coming is not waited for.
    fn shows_at(&self, folder: &Path) -> Option<Arc<Plugin>> {
        match self.owners.of(folder) {
            PathOwner::Plugin(plugin) if plugin.about.shows && *plugin.life.borrow() != PluginLiveness::Gone => {
                Some(plugin)
            }
            _ => None,
        }
    }
}

fn show_of(id: u64, run: &ObservedRun<'_>) -> RunShow {
    let ObservedRun { verb, holder, name, command, folder, size } = run;
    RunShow {
        id,
        kind: if size.is_some() { RunShowKind::Terminal } else { RunShowKind::Command },
        verb: (*verb).to_owned(),
        title: in_a_line(&format!("{}: {name}", holder.name), MAX_TITLE),
        command: in_a_line(command, MAX_COMMAND),
        agent_id: holder.name.clone(),
        session_id: Uuid::from_u128(holder.id).to_string(),
        path: folder.display().to_string(),
        rows: size.map(|size| size.rows),
        cols: size.map(|size| size.cols),
    }
}

/// A text without control characters, as they would be drawn where a name stands, and no longer than so many letters.
fn in_a_line(text: &str, most: usize) -> String {
    let visible = |letter: char| if letter.is_control() { ' ' } else { letter };
    let mut line: String = text.trim().chars().take(most).map(visible).collect();
    if text.trim().chars().nth(most).is_some() {
        line.pop();
        line.push('…');
    }
    line
}

// === impl ShownRun ===

impl RunViewer for ShownRun {
    fn printed(&self, text: &str) {
        let drawn = self.filter.lock().unwrap_or_else(PoisonError::into_inner).take(text);
        self.plugin.shows.change(self.id, |run| run.push(&drawn));
    }

    fn resized(&self, size: PtySize) {
        self.plugin.shows.change(self.id, |run| run.resized = Some(size));
    }

    fn ended(&self, ending: RunEnding) {
        self.plugin.shows.change(self.id, |run| run.ended = Some(ending));
    }
}

// === impl WaitingShow ===

impl WaitingShow {
    fn push(&mut self, text: &str) {
        self.text.extend(text.as_bytes());
        if self.text.len() <= MAX_WAITING {
            return;
        }
        // On to the next line, so that neither a letter nor a colour is cut in two; a line that is very long is cut between letters.
        let least = (self.text.len() - MAX_WAITING + DROPPED_AT_ONCE).min(self.text.len());
        let line = self.text.range(least..).take(MAX_LINE).position(|byte| *byte == b'\n').map(|end| end + 1);
        let letter = || self.text.range(least..).position(|byte| byte & 0xc0 != 0x80);
        let cut = line.or_else(letter).map_or(self.text.len(), |more| least + more);
        self.text.drain(..cut);
        self.left_out += cut as u64;
    }

    /// The next message of it, if there is one; of output only if it may be sent.
    fn next(&mut self, id: u64, may_print: bool) -> Option<ToPlugin> {
        if let Some(show) = self.show.take() {
            return Some(ToPlugin::Show(show));
        }
        if let Some(PtySize { rows, cols }) = self.resized.take() {
            return Some(ToPlugin::ShowResized(RunShowResized { id, rows, cols }));
        }
        if !self.text.is_empty() || self.left_out > 0 {
            return may_print.then(|| ToPlugin::ShowOutput(RunShowOutput { id, text: self.piece() }));
        }
        let RunEnding { exit_code, signal, note } = self.ended.take()?;
        Some(ToPlugin::ShowEnded(RunShowEnded { id, exit_code, signal, note }))
    }

    fn has_output(&self) -> bool {
        !self.text.is_empty() || self.left_out > 0
    }

    fn piece(&mut self) -> String {
        let mut text = match std::mem::take(&mut self.left_out) {
            0 => String::new(),
            left_out => format!("\x1b[0m\r\n[… {left_out} bytes were not shown …]\r\n"),
        };
        let mut end = self.text.len().min(MAX_PIECE - text.len());
        // What is here holds whole letters.
        while self.text.get(end).is_some_and(|byte| byte & 0xc0 == 0x80) {
            end -= 1;
        }
        let bytes: Vec<u8> = self.text.drain(..end).collect();
        text.push_str(&String::from_utf8_lossy(&bytes));
        text
    }
}

// === impl RunShows ===

impl RunShows {
    fn begin(&self, show: impl FnOnce(u64) -> RunShow) -> Option<u64> {
        let mut table = self.table();
        if table.is_closed || table.runs.len() >= MAX_SHOWS {
            return None;
        }
        table.last += 1;
        let id = table.last;
        table.runs.insert(id, WaitingShow { show: Some(show(id)), ..WaitingShow::default() });
        drop(table);
        self.news.notify_one();
        Some(id)
    }

    fn change(&self, id: u64, change: impl FnOnce(&mut WaitingShow)) {
        let mut table = self.table();
        let Some(run) = table.runs.get_mut(&id) else { return };
        change(run);
        drop(table);
        self.news.notify_one();
    }

    /// Waits for the next message that the editor is to be sent. Cancel safe: what is not returned stays.
    pub(super) async fn next(&self) -> ToPlugin {
        loop {
            let (message, wait) = self.table().next(Instant::now());
            match (message, wait) {
                (Some(message), _) => return message,
                // What is printed meanwhile goes with it.
                (None, Some(at)) => tokio::select! {
                    () = sleep_until(at) => {}
                    () = self.news.notified() => {}
                },
                (None, None) => self.news.notified().await,
            }
        }
    }

    /// Forgets all: there is nobody to be told.
    pub(super) fn close(&self) {
        let mut table = self.table();
        table.is_closed = true;
        table.runs.clear();
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        // Nothing panics while it holds the lock, and each change of it is whole.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// The next message, each run in its turn; else when to look again, if output waits for its time.
    fn next(&mut self, now: Instant) -> (Option<ToPlugin>, Option<Instant>) {
        let may_print = self.next_at.is_none_or(|at| at <= now);
        let after = self.runs.range(self.turn + 1..).map(|(id, _)| *id);
        let ids: Vec<u64> = after.chain(self.runs.range(..=self.turn).map(|(id, _)| *id)).collect();
        for id in ids {
            let Some(run) = self.runs.get_mut(&id) else { continue };
            let Some(message) = run.next(id, may_print) else { continue };
            match &message {
                ToPlugin::ShowEnded(_) => drop(self.runs.remove(&id)),
                ToPlugin::ShowOutput(_) => (self.turn, self.next_at) = (id, Some(now + PIECE_EVERY)),
                _ => {}
            }
            return (Some(message), None);
        }
        let waits = self.runs.values().any(WaitingShow::has_output);
        (None, self.next_at.filter(|_| waits))
    }
}

#[cfg(test)]
mod tests;
