//! Text that is open (E-03). A buffer is known by where its file really is, and has a version that grows with each change and
//! never comes twice, also not when it is closed and opened again: who names a version means one text.
//!
//! A buffer that nobody has changed follows its file. One that somebody has changed keeps their text until it is saved, and
//! notes that the file is another by then. Unsaved text is never thrown away unasked.

mod buffer;
mod handover;
mod history;
mod plan;
mod unsaved;
mod verbs;

use std::{
    collections::HashMap,
    fs::File,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use prism_core::policy::{Code, Refusal};
use prism_os::root::FileStamp;
use serde_json::json;

use crate::{
    encoding,
    happening::Happenings,
    roots::{ResolvedPath, place, read::whole},
    state::GrantHolder,
    text::own_writes::OwnWrites,
};
pub(crate) use buffer::{Buffer, Snapshot, stale};
pub use handover::ReleasedText;
pub(crate) use history::Steps;
pub(crate) use plan::{BufferChange, EditPlan, MadeEdit};
use unsaved::UnsavedKeeper;
pub(crate) use unsaved::keep_unsaved;
pub(crate) use verbs::{close, list, save};

/// All that is open. One for the runtime.
#[derive(Debug)]
pub(crate) struct Buffers {
    open: Mutex<HashMap<PathBuf, Arc<Buffer>>>,
    happenings: Happenings,
    versions: Versions,
    /// `None` where unsaved text need not outlive the runtime.
    keeper: Option<Arc<UnsavedKeeper>>,
    /// What was done to files here.
    pub(crate) own_writes: OwnWrites,
}

/// Gives each change a number.
#[derive(Debug)]
struct Versions(AtomicU64);

/// What a file turned out to be.
pub(crate) enum FileContent {
    Text(Arc<Buffer>),
    /// What no editor would show as text.
    Other {
        path: PathBuf,
        bytes: Vec<u8>,
    },
}

/// Buffers that are open at a time, and the bytes that they hold. Beyond it those that are saved and were not used lately are
/// closed; if all are unsaved, no further one is opened, and who asks is told to save some.
const MAX_OPEN: usize = 256;
const MAX_BYTES: usize = 64 << 20;

/// How long after it was written a file's times say for certain that it has not been written again: the kernel's clock for
/// them ticks every few milliseconds.
const SETTLED: Duration = Duration::from_millis(30);

// === impl Buffers ===

impl Buffers {
    /// Takes up what was left unsaved in a folder, if one is named.
    pub(crate) fn new(happenings: Happenings, unsaved: Option<PathBuf>) -> Self {
        let keeper = unsaved.map(|folder| Arc::new(UnsavedKeeper::new(folder)));
        let (open, own_writes) = (Mutex::default(), OwnWrites::default());
        let this = Self { open, happenings, versions: Versions::new(), keeper, own_writes };
        this.restore();
        this
    }

    /// Finds the buffer of a text file, as the file is now, or opens it.
    pub(crate) fn open(&self, way: &ResolvedPath) -> Result<Arc<Buffer>, Refusal> {
        match self.look(way)? {
            FileContent::Text(buffer) => Ok(buffer),
            FileContent::Other { .. } => Err(way.wrong("it is no text; write_file replaces it as a whole")),
        }
    }

    /// The same, of any file.
    pub(crate) fn look(&self, way: &ResolvedPath) -> Result<FileContent, Refusal> {
        let (file, path) = match way.open_placed() {
            Ok(placed) => placed,
            // Somebody has removed the file, and its unsaved text is all that is left.
            Err(refusal) if refusal.code == Code::NotFound => {
                let left = way.spot().ok().and_then(|spot| {
                    let path = place(spot.folder(), way.written()).join(spot.name());
                    self.at(&path).filter(|buffer| buffer.is_dirty())
                });
                return match left {
                    Some(buffer) => {
                        buffer.is_gone();
                        Ok(FileContent::Text(buffer))
                    }
                    None => Err(refusal),
                };
            }
            Err(refusal) => return Err(refusal),
        };
        let Some(buffer) = self.at(&path) else { return self.take_in(file, path) };
        if buffer.is_as_of(FileStamp::of_file(&file).ok()) {
            return Ok(FileContent::Text(buffer));
        }
        // While it is being saved, what was opened a moment ago may be the file that is replaced; so it is opened again.
        let _turn = buffer.saving();
        let (file, path) = way.open_placed()?;
        self.take_in(file, path)
    }

    /// The buffer of a path, if it is open.
    pub(crate) fn at(&self, path: &Path) -> Option<Arc<Buffer>> {
        self.table().get(path).cloned()
    }

    /// All that are open, by path.
    pub(crate) fn all(&self) -> Vec<Arc<Buffer>> {
        let mut all: Vec<_> = self.table().values().cloned().collect();
        all.sort_by(|a, b| a.path().cmp(b.path()));
        all
    }

    /// Those beneath a folder that have unsaved text.
    pub(crate) fn dirty_beneath(&self, folder: &Path) -> Vec<Arc<Buffer>> {
        let mut all = self.all();
        all.retain(|buffer| buffer.path().starts_with(folder) && buffer.is_dirty());
        all
    }

    /// Paths of unsaved text beneath a folder, for the results of what only sees the disk.
    pub(crate) fn unsaved_beneath(&self, folder: &Path) -> Vec<String> {
        self.dirty_beneath(folder).iter().map(|buffer| buffer.path().display().to_string()).collect()
    }

    /// Refuses if there is unsaved text at or beneath a path that would be lost.
    pub(crate) fn refuse_dirty(&self, path: &Path) -> Result<(), Refusal> {
        match self.dirty_beneath(path).first() {
            None => Ok(()),
            Some(buffer) => {
                let message = format!(
                    "{:?} has unsaved changes; save_buffer writes them, close_buffer with `discard` drops them",
                    buffer.path()
                );
                Err(Refusal::new(Code::Changed, message))
            }
        }
    }

    /// Makes a buffer follow its file, if it is open: something has happened there. Reads through the way that was granted.
    pub(crate) fn refresh(&self, way: &ResolvedPath) {
        let _ = self.look(way);
    }

    /// Closes what was at or beneath a path that is no more. Unsaved text stays, without a file.
    pub(crate) fn removed(&self, path: &Path) {
        for buffer in self.all().into_iter().filter(|buffer| buffer.path().starts_with(path)) {
            if buffer.is_dirty() {
                buffer.is_gone();
            } else {
                self.shut(&buffer, None);
            }
        }
    }

    /// Has buffers at or beneath a path go along with it to another.
    pub(crate) fn renamed(&self, from: &Path, to: &Path) {
        for buffer in self.all() {
            let Ok(rest) = buffer.path().strip_prefix(from) else { continue };
            let new_path = if rest.as_os_str().is_empty() { to.to_owned() } else { to.join(rest) };
            let moved = Arc::new(buffer.moved_to(new_path.clone()));
            let mut table = self.table();
            table.remove(buffer.path());
            table.insert(new_path, moved.clone());
            drop(table);
            if let Some(keeper) = &self.keeper {
                keeper.changed(buffer.path());
                keeper.changed(moved.path());
            }
        }
    }

    /// Closes a buffer. Whatever was planned on it is refused from now on.
    pub(crate) fn shut(&self, buffer: &Arc<Buffer>, by: Option<&GrantHolder>) {
        buffer.shut();
        let mut table = self.table();
        if table.get(buffer.path()).is_some_and(|open| Arc::ptr_eq(open, buffer)) {
            table.remove(buffer.path());
        }
        drop(table);
        self.tell("file_closed", buffer, by, json!({}));
    }

    /// Brings the table up to date with a file that was just opened.
    fn take_in(&self, file: File, path: PathBuf) -> Result<FileContent, Refusal> {
        let stamp = FileStamp::of_file(&file).ok();
        // One that was written this moment may be written again without its times telling.
        let settled = stamp.filter(|stamp| stamp.is_older_than(SETTLED));
        let bytes = whole(file, &path.display().to_string())?;
        let text: Arc<str> = match encoding::into_text(bytes) {
            Ok(text) => text.into(),
            Err(bytes) => {
                // A text that has become something else is a text no longer; unsaved changes of it stay.
                match self.at(&path) {
                    Some(buffer) if buffer.is_dirty() => return Ok(FileContent::Text(buffer)),
                    Some(buffer) => self.shut(&buffer, None),
                    None => {}
                }
                return Ok(FileContent::Other { path, bytes });
            }
        };
        let digest = encoding::digest_of(text.as_bytes());
        if let Some(buffer) = self.at(&path) {
            let by = self.own_writes.writer_of(&path, &digest);
            if let Some(version) = buffer.follow(text, digest, settled, || self.versions.next()) {
                let reason = if by.is_some() { "edit" } else { "disk" };
                self.tell("buffer_changed", &buffer, by.as_ref(), json!({ "version": version, "reason": reason }));
            }
            return Ok(FileContent::Text(buffer));
        }
        let version = self.versions.next();
        let buffer = self.add(Arc::new(Buffer::new(path, text, digest, settled, version)))?;
        Ok(FileContent::Text(buffer))
    }

    /// Makes room for a buffer, and puts it there; if somebody has opened the same file at this moment, theirs is returned.
    fn add(&self, buffer: Arc<Buffer>) -> Result<Arc<Buffer>, Refusal> {
        let leaving = {
            let mut table = self.table();
            if let Some(open) = table.get(buffer.path()) {
                return Ok(open.clone());
            }
            let mut bytes = table.values().map(|open| open.bytes()).sum::<usize>() + buffer.bytes();
            let mut count = table.len() + 1;
            let mut idle: Vec<_> = table.values().filter(|open| !open.is_dirty()).cloned().collect();
            idle.sort_by_key(|open| std::cmp::Reverse(open.last_used()));
            let mut leaving = Vec::new();
            while count > MAX_OPEN || bytes > MAX_BYTES {
                let Some(open) = idle.pop() else {
                    let message = format!(
                        "{} buffers with {bytes} bytes have unsaved changes; save_buffer with `all` makes room",
                        count - 1
                    );
                    return Err(Refusal::new(Code::TooLarge, message));
                };
                (count, bytes) = (count - 1, bytes - open.bytes());
                leaving.push(open);
            }
            for open in &leaving {
                table.remove(open.path());
            }
            table.insert(buffer.path().to_owned(), buffer.clone());
            leaving
        };
        for open in leaving {
            self.shut(&open, None);
        }
        self.tell("file_opened", &buffer, None, json!({ "version": buffer.snapshot().version }));
        Ok(buffer)
    }

    fn tell(&self, name: &str, buffer: &Buffer, by: Option<&GrantHolder>, mut data: serde_json::Value) {
        if let Some(keeper) = &self.keeper {
            keeper.changed(buffer.path());
        }
        match by {
            None => self.happenings.tell(name, Some(buffer.path()), data),
            Some(holder) => {
                data["by"] = holder.name.as_str().into();
                self.happenings.tell_of(name, Some(buffer.path()), holder.id, data);
            }
        }
    }

    fn table(&self) -> MutexGuard<'_, HashMap<PathBuf, Arc<Buffer>>> {
        // Nothing panics while it holds the lock, and each change of the table is whole.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Versions ===

impl Versions {
    /// Begins where no daemon before this one has been: they would have had to make a change every microsecond. One that was killed
    /// may have told versions that it had not written down, and whoever names such a one must not meet another text under it. (L1)
    fn new() -> Self {
        /// 2026 began.
        const EPOCH: Duration = Duration::from_secs(1_767_225_600);
        let since = SystemTime::UNIX_EPOCH + EPOCH;
        // For centuries less than what a number of JSON's holds.
        let micros = |passed: Duration| u64::try_from(passed.as_micros()).unwrap_or(u64::MAX >> 11);
        Self(AtomicU64::new(since.elapsed().map_or(1, |passed| micros(passed).max(1))))
    }

    fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}
