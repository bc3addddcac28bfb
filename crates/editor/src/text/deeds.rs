//! What the editor has done to files itself, so that it is not told as a change from outside: who watches the disk sees all
//! changes alike.

use std::{
    collections::VecDeque,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::state::Holder;

#[derive(Debug, Default)]
pub(crate) struct OwnWrites(Mutex<VecDeque<OwnWrite>>);

#[derive(Debug)]
struct OwnWrite {
    path: PathBuf,
    left: LeftBehind,
    by: Holder,
}

/// What was left at a path.
#[derive(Debug, PartialEq, Eq)]
enum LeftBehind {
    /// A file with this digest. As long as that is what is there, nobody else has changed anything.
    File(String),
    Nothing,
}

/// Deeds that are remembered. Of more the oldest is forgotten; if the watch is that far behind, it is told as if it came from
/// outside.
const MAX_DEEDS: usize = 1_024;

impl OwnWrites {
    /// To be called before the file is there: whoever watches may be quick.
    pub(crate) fn writes(&self, path: &Path, digest: &str, by: &Holder) {
        self.note(path, LeftBehind::File(digest.to_owned()), by);
    }

    /// To be called before the file is gone.
    pub(crate) fn removes(&self, path: &Path, by: &Holder) {
        self.note(path, LeftBehind::Nothing, by);
    }

    /// To be called before a file or a folder has its new name: whose texts these are does not change by that.
    pub(crate) fn moves(&self, from: &Path, to: &Path, by: &Holder) {
        for deed in self.deeds().iter_mut().filter(|deed| deed.left != LeftBehind::Nothing) {
            if let Ok(below) = deed.path.strip_prefix(from) {
                deed.path = if below.as_os_str().is_empty() { to.to_owned() } else { to.join(below) };
            }
        }
        self.removes(from, by);
    }

    /// Whose text it is that a path holds, if it was written here.
    pub(crate) fn writer_of(&self, path: &Path, digest: &str) -> Option<Holder> {
        let deeds = self.deeds();
        let deed = deeds.iter().find(|deed| deed.path == path)?;
        matches!(&deed.left, LeftBehind::File(left) if left == digest).then(|| deed.by.clone())
    }

    /// Tells whether something was written here that may still be there.
    pub(crate) fn has_written(&self, path: &Path) -> bool {
        self.deeds().iter().any(|deed| deed.path == path && deed.left != LeftBehind::Nothing)
    }

    /// Who has removed what was at a path, if it was removed here. That is told once: the next time it is somebody else.
    pub(crate) fn take_remover_of(&self, path: &Path) -> Option<Holder> {
        let mut deeds = self.deeds();
        let at = deeds.iter().position(|deed| deed.path == path && deed.left == LeftBehind::Nothing)?;
        deeds.remove(at).map(|deed| deed.by)
    }

    fn note(&self, path: &Path, left: LeftBehind, by: &Holder) {
        let mut deeds = self.deeds();
        deeds.retain(|deed| deed.path != path);
        if deeds.len() >= MAX_DEEDS {
            deeds.pop_front();
        }
        deeds.push_back(OwnWrite { path: path.to_owned(), left, by: by.clone() });
    }

    fn deeds(&self) -> MutexGuard<'_, VecDeque<OwnWrite>> {
        // Each change is whole, whatever became of who made it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
