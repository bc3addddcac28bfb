//! One open text: what it is now, what its file was when last seen, and how it came to be.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use prism_core::policy::{Code, Refusal};
use prism_os::root::FileStamp;

use super::{
    history::{EditHistory, Steps, Walked},
    plan::Retraced,
};
use crate::{encoding, language::SourceLanguage, state::GrantHolder};

#[derive(Debug)]
pub(crate) struct Buffer {
    path: PathBuf,
    language: Option<SourceLanguage>,
    pub(super) state: Mutex<BufferState>,
    /// Held by whoever writes the file, or reads it anew: one after the other.
    saving: Mutex<()>,
}

#[derive(Debug)]
pub(super) struct BufferState {
    pub(super) text: Arc<str>,
    pub(super) digest: String,
    pub(super) version: u64,
    pub(super) history: EditHistory,
    pub(super) disk: DiskSide,
    pub(super) is_shut: bool,
    /// Who has changed it since it was last what its file holds.
    hands: Vec<GrantHolder>,
    used: Instant,
}

/// Holders that are remembered of one text. Beyond it the last is anybody: no holder is `NOBODY`.
const MAX_HANDS: usize = 16;
const NOBODY: u128 = 0;

/// The file as it was last seen.
#[derive(Clone, Debug)]
pub(super) struct DiskSide {
    /// Of the text that the buffer began with, or was last saved as.
    pub(super) digest: String,
    /// The version that has been saved last.
    pub(super) version: u64,
    /// Set while nothing else can be there.
    pub(super) stamp: Option<FileStamp>,
    /// Somebody else has changed or removed the file while the buffer had unsaved text.
    pub(super) is_other: bool,
}

/// A text as it was at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    pub(crate) text: Arc<str>,
    pub(crate) version: u64,
    pub(crate) digest: String,
    pub(crate) is_dirty: bool,
    pub(crate) is_changed_on_disk: bool,
    pub(crate) language: Option<SourceLanguage>,
}

/// Says that an order was made for another version than there is.
pub(crate) fn stale(path: &str, now: u64) -> Refusal {
    let message = format!("{path:?} is at version {now} by now; open it again, then make the edit for that");
    Refusal::new(Code::Changed, message)
}

// === impl Buffer ===

impl Buffer {
    pub(super) fn new(path: PathBuf, text: Arc<str>, digest: String, stamp: Option<FileStamp>, version: u64) -> Self {
        let disk = DiskSide { digest: digest.clone(), version, stamp, is_other: false };
        let history = EditHistory::default();
        let (hands, used) = (Vec::new(), Instant::now());
        let state = BufferState { text, digest, version, history, disk, is_shut: false, hands, used };
        Self { language: SourceLanguage::of(&path), path, state: Mutex::new(state), saving: Mutex::default() }
    }

    /// A text that was changed when its file held something else.
    pub(super) fn unsaved_since(path: PathBuf, text: Arc<str>, disk: String, mut next: impl FnMut() -> u64) -> Self {
        let buffer = Self::new(path, text.clone(), disk, None, next());
        {
            let mut state = buffer.state();
            // Whose it was has not been kept.
            state.hands.push(GrantHolder {
                id: NOBODY,
                name: "somebody before Prism was started again".to_owned(),
                ..GrantHolder::default()
            });
            (state.digest, state.version) = (encoding::digest_of(text.as_bytes()), next());
        }
        buffer
    }

    /// Its text, and the digest of the file that it was made from.
    pub(super) fn unsaved(&self) -> (Arc<str>, String) {
        let state = self.state();
        (state.text.clone(), state.disk.digest.clone())
    }

    /// Where its file really is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn language(&self) -> Option<SourceLanguage> {
        self.language
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        let mut state = self.state();
        state.used = Instant::now();
        Snapshot {
            text: state.text.clone(),
            version: state.version,
            digest: state.digest.clone(),
            is_dirty: state.is_dirty(),
            is_changed_on_disk: state.disk.is_other,
            language: self.language,
        }
    }

    pub(crate) fn is_dirty(&self) -> bool {
        self.state().is_dirty()
    }

    /// Who else has text in it that is not saved.
    pub(crate) fn others_than(&self, holder: &GrantHolder) -> Vec<String> {
        let state = self.state();
        let others = state.hands.iter().filter(|hand| hand.id != holder.id && state.is_dirty());
        others.map(|hand| hand.name.clone()).collect()
    }

    /// What leads back to an earlier text, or forth again.
    pub(crate) fn retraced(self: Arc<Self>, version: u64, steps: Steps) -> Result<Retraced, Refusal> {
        let Walked { text, digest, makers } = {
            let state = self.state();
            if state.version != version {
                return Err(stale(&self.path.display().to_string(), state.version));
            }
            state.history.retraced(&state.text, steps)?
        };
        Ok(Retraced { old: self.snapshot(), buffer: self, steps, text, digest, makers })
    }

    pub(super) fn bytes(&self) -> usize {
        let state = self.state();
        state.text.len() + state.history.bytes()
    }

    pub(super) fn last_used(&self) -> Instant {
        self.state().used
    }

    /// Whether this is the file as it was when last seen.
    pub(super) fn is_as_of(&self, stamp: Option<FileStamp>) -> bool {
        let mut state = self.state();
        state.used = Instant::now();
        stamp.is_some() && state.disk.stamp == stamp
    }

    /// Takes over what the file holds by now. Returns the new version if the text is another; unsaved text is kept.
    pub(super) fn follow(
        &self,
        text: Arc<str>,
        digest: String,
        stamp: Option<FileStamp>,
        next: impl FnOnce() -> u64,
    ) -> Option<u64> {
        let mut state = self.state();
        if state.disk.digest == digest {
            state.disk.stamp = stamp;
            state.disk.is_other = false;
            return None;
        }
        if state.digest == digest {
            // Somebody else has saved the very same text.
            state.disk = DiskSide { digest, version: state.version, stamp, is_other: false };
            return None;
        }
        if state.is_dirty() {
            (state.disk.is_other, state.disk.stamp) = (true, None);
            return None;
        }
        // What came before cannot be undone: the edits were about another text.
        state.history = EditHistory::default();
        state.version = next();
        (state.text, state.digest) = (text, digest.clone());
        state.disk = DiskSide { digest, version: state.version, stamp, is_other: false };
        Some(state.version)
    }

    /// Its file is no more.
    pub(super) fn is_gone(&self) {
        let disk = &mut self.state().disk;
        (disk.is_other, disk.stamp) = (true, None);
    }

    pub(super) fn shut(&self) {
        self.state().is_shut = true;
    }

    /// The same text in another place. This one is shut.
    pub(super) fn moved_to(&self, path: PathBuf) -> Self {
        let mut state = self.state();
        state.is_shut = true;
        let moved = BufferState {
            text: state.text.clone(),
            digest: state.digest.clone(),
            version: state.version,
            history: std::mem::take(&mut state.history),
            disk: DiskSide { stamp: None, ..state.disk.clone() },
            is_shut: false,
            hands: std::mem::take(&mut state.hands),
            used: Instant::now(),
        };
        Self { language: SourceLanguage::of(&path), path, state: Mutex::new(moved), saving: Mutex::default() }
    }

    pub(super) fn saving(&self) -> MutexGuard<'_, ()> {
        self.saving.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn state(&self) -> MutexGuard<'_, BufferState> {
        // Nothing panics while it holds the lock, and each change of the state is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl BufferState ===

impl BufferState {
    /// Notes who changes it. To be called before it is another text.
    pub(super) fn is_changed_by(&mut self, by: &GrantHolder) {
        if !self.is_dirty() {
            self.hands.clear();
        }
        if self.hands.iter().any(|hand| hand.id == by.id) {
            return;
        }
        match self.hands.len() {
            ..MAX_HANDS => self.hands.push(by.clone()),
            MAX_HANDS => {
                self.hands.push(GrantHolder { id: NOBODY, name: "others".to_owned(), ..GrantHolder::default() })
            }
            _ => {}
        }
    }

    pub(super) fn is_dirty(&self) -> bool {
        self.digest != self.disk.digest
    }
}
