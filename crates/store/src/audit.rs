//! The audit log: what was asked, decided and done, in lines that cannot be changed unnoticed. What is worth a line, and
//! what is hidden in it, is decided elsewhere.
//!
//! The idea: every line has the hash of the one before it and its own, so a change anywhere breaks the chain there. A
//! chain cannot show that its end is missing; so the newest hash is kept in a file beside it, the head. And as nothing
//! may happen that is not first in the log, a line counts once it is on disk: one thread writes what has gathered while
//! the disk was busy, all of it with one fdatasync.
//!
//! One kind of line comes after what it tells of: that something was taken away. Taking away must work on a full disk too,
//! so such a line is *owed*. It goes before all others, into room that is kept for it ([`reserve`]), or as soon as there is any.
//!
//! Whoever may write all files of this folder can make a new chain from the start. Against that helps only a head that is
//! kept elsewhere (`prism audit export` prints it, `prism audit verify --head` compares).

mod chain;
mod export;
mod files;
mod head;
mod log;
mod mend;
mod reserve;
mod rotate;
mod search;
mod tail;
mod verify;
mod writer;

use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use tokio::sync::broadcast;

pub use export::{AuditExportError, ExportSummary, export};
pub use head::AuditHead;
pub use search::{AuditQuery, AuditSearchError, search, stamp, tail};
pub use tail::check_tail;
pub use verify::{AuditBreak, AuditVerifyError, BreakKind, VerifiedLog, verify, verify_with_heads};

use log::OpenLog;
use writer::AuditWriter;

/// One thing that was asked, decided or done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditEntry {
    /// Who did it: an agent, or a person.
    pub actor: String,
    /// The account of this machine that it was done for.
    pub user: String,
    pub action: String,
    /// JSON, with its secrets hidden.
    pub args: String,
    pub result: String,
    pub session_id: Option<String>,
    pub request_id: Option<String>,
    /// The number of the line that this one is the outcome of.
    pub of: Option<u64>,
}

/// How the log is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditSettings {
    /// The size at which a new file is begun.
    pub max_file_bytes: u64,
    /// How many full files are kept; 0 for all.
    pub keep: usize,
}

/// Why the log could not be opened, or a line not be written.
#[derive(Clone, Debug, thiserror::Error)]
pub enum AuditError {
    #[error("the audit log {path:?} cannot be opened: {source}")]
    Open { path: PathBuf, source: Arc<io::Error> },
    /// Nothing of it is in the log.
    #[error("the audit log {path:?} cannot be written: {source}")]
    Write { path: PathBuf, source: Arc<io::Error> },
    /// So many lines are owed that this one is only counted.
    #[error("too many lines of the audit log wait for room")]
    Crowded,
    /// Only if its thread died just now may the line be there all the same.
    #[error("the audit log is closed")]
    Closed,
}

/// The open log. There is one for a folder at a time; the daemon's lock sees to that.
pub struct AuditLog {
    writer: AuditWriter,
    folder: PathBuf,
}

/// Lines that one who listens may be behind. Beyond it the oldest are dropped, and it is told how many: what is needed
/// can be read from the files.
const MAX_BEHIND: usize = 1024;

impl Default for AuditSettings {
    fn default() -> Self {
        Self { max_file_bytes: 64 << 20, keep: 0 }
    }
}

// === impl AuditLog ===

impl AuditLog {
    /// Opens the log in a folder, which is made if it is missing. What a process that was killed has left unfinished is
    /// cut off, and a line says so. So does one where lines are missing at the end; their place stays empty.
    pub fn open(folder: &Path, settings: AuditSettings) -> Result<Self, AuditError> {
        Self::open_after(folder, settings, None).map(|(audit, _)| audit)
    }

    /// The same for a log that had come so far when somebody last looked. What is wrong with its end is returned, and a line
    /// says it; where lines are missing their numbers stay empty, so that the gap can be seen for ever.
    pub fn open_after(
        folder: &Path,
        settings: AuditSettings,
        known: Option<&AuditHead>,
    ) -> Result<(Self, Option<AuditVerifyError>), AuditError> {
        let error = |source| AuditError::Open { path: folder.to_owned(), source: Arc::new(source) };
        let trouble = check_tail(folder, known).err();
        let (log, found) = OpenLog::open(folder, settings, known).map_err(error)?;
        let found = found.or_else(|| trouble.as_ref().map(broken));
        let lines = broadcast::Sender::new(MAX_BEHIND);
        let writer = AuditWriter::spawn(log, found.into_iter().collect(), lines).map_err(error)?;
        Ok((Self { writer, folder: folder.to_owned() }, trouble))
    }

    /// Adds a line and returns its number once it is on disk. Dropping the future leaves the line in the queue.
    pub async fn write(&self, entry: AuditEntry) -> Result<u64, AuditError> {
        self.writer.write(entry).await
    }

    /// Adds a line that nobody waits for. If that fails it is tried again; if too many wait, they are counted instead.
    pub fn write_behind(&self, entry: AuditEntry) {
        self.writer.write_behind(entry);
    }

    /// Adds a line about something that was taken away already, before all others, and returns its number once it is on disk.
    /// An error says that it is not there yet: it is tried again, and nothing else is written before it is.
    pub async fn owe(&self, entry: AuditEntry) -> Result<u64, AuditError> {
        self.writer.owe(entry).await
    }

    /// Returns how many such lines are not on disk yet.
    pub fn owed(&self) -> usize {
        self.writer.owed()
    }

    /// Has so many full files kept from the next new one on; 0 for all.
    pub fn keep(&self, full_files: usize) {
        self.writer.keep(full_files);
    }

    /// Returns every line from now on, without its line end, once it is on disk.
    pub fn subscribe(&self) -> broadcast::Receiver<Arc<str>> {
        self.writer.subscribe()
    }

    /// Returns the newest line that is on disk.
    pub fn head(&self) -> AuditHead {
        self.writer.head()
    }

    /// Returns where its files are, for [`search()`] and [`verify()`].
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Refuses further lines and returns once those already accepted are on disk.
    pub fn close(&self) {
        self.writer.close();
    }
}

/// A line that says that others are not what was written.
fn broken(trouble: &AuditVerifyError) -> AuditEntry {
    let why = serde_json::Value::from(trouble.to_string());
    mend::notice("audit.broken", format!("{{\"why\":{why}}}"))
}

impl fmt::Debug for AuditLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Audit").field("folder", &self.folder).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
