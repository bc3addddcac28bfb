//! What the editor has done to files itself, so that it is not told as a change from outside: who watches the disk sees all
//! changes alike.

use std::{
    collections::VecDeque,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::state::GrantHolder;

#[derive(Debug, Default)]
pub(crate) struct OwnWrites(Mutex<VecDeque<OwnWrite>>);

#[derive(Debug)]
struct OwnWrite {
    path: PathBuf,
    left: LeftBehind,
    by: GrantHolder,
}

/// What was left at a path.
#[derive(Debug, PartialEq, Eq)]
enum LeftBehind {
    /// A file with this digest. As long as that is what is there, nobody else has changed anything.
    File(String),
    Nothing,
}

/// Writes that are remembered. Of more the oldest is forgotten; if the watch is that far behind, it is told as if it came from
/// outside.
const MAX_WRITES: usize = 1_024;

impl OwnWrites {
    /// To be called before the file is there: whoever watches may be quick.
    pub(crate) fn writes(&self, path: &Path, digest: &str, by: &GrantHolder) {
        self.note(path, LeftBehind::File(digest.to_owned()), by);
    }

    /// To be called before the file is gone.
    pub(crate) fn removes(&self, path: &Path, by: &GrantHolder) {
        self.note(path, LeftBehind::Nothing, by);
    }

    /// To be called before a file or a folder has its new name: whose texts these are does not change by that.
    pub(crate) fn moves(&self, from: &Path, to: &Path, by: &GrantHolder) {
        for write in self.list().iter_mut().filter(|write| write.left != LeftBehind::Nothing) {
            if let Ok(below) = write.path.strip_prefix(from) {
                write.path = if below.as_os_str().is_empty() { to.to_owned() } else { to.join(below) };
            }
        }
        self.removes(from, by);
    }

    /// Whose text it is that a path holds, if it was written here.
    pub(crate) fn writer_of(&self, path: &Path, digest: &str) -> Option<GrantHolder> {
        let writes = self.list();
        let write = writes.iter().find(|write| write.path == path)?;
        matches!(&write.left, LeftBehind::File(left) if left == digest).then(|| write.by.clone())
    }

    /// Tells whether something was written here that may still be there.
    pub(crate) fn has_written(&self, path: &Path) -> bool {
        self.list().iter().any(|write| write.path == path && write.left != LeftBehind::Nothing)
    }

    /// Who has removed what was at a path, if it was removed here. That is told once: the next time it is somebody else.
    pub(crate) fn take_remover_of(&self, path: &Path) -> Option<GrantHolder> {
        let mut writes = self.list();
        let at = writes.iter().position(|write| write.path == path && write.left == LeftBehind::Nothing)?;
        writes.remove(at).map(|write| write.by)
    }

    fn note(&self, path: &Path, left: LeftBehind, by: &GrantHolder) {
        let mut writes = self.list();
        writes.retain(|write| write.path != path);
        if writes.len() >= MAX_WRITES {
            writes.pop_front();
        }
        writes.push_back(OwnWrite { path: path.to_owned(), left, by: by.clone() });
    }

    fn list(&self) -> MutexGuard<'_, VecDeque<OwnWrite>> {
        // Each change is whole, whatever became of who made it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
