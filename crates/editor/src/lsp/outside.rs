//! What somebody else changes in a project's files, so that its server can be told before it is asked anything: servers that
//! leave watching to the editor would answer from what they have read before.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use prism_os::{
    root::{FileKind, FolderHandle, FolderListing},
    watch::{self, TreeWatch, WatchFilter},
};

use super::conversation::DiskChange;

/// The files of one project, watched by the kernel.
#[derive(Debug)]
pub(crate) struct OutsideWatch(Mutex<WatchedProject>);

#[derive(Debug)]
struct WatchedProject {
    tree: TreeWatch,
    project: FolderHandle,
    /// Folders beside the project that belong to it.
    beside: BTreeSet<PathBuf>,
}

/// What has changed.
#[derive(Debug, Default)]
pub(crate) struct OutsideChanges {
    pub(crate) files: Vec<(PathBuf, DiskChange)>,
    /// More has changed than can be told one by one, or whole folders were moved.
    pub(crate) is_lost: bool,
}

/// Folders that hold nothing that anybody edits, and a lot of it.
const LEFT_OUT: [&str; 8] =
    ["target", "node_modules", "__pycache__", ".git", ".venv", ".cache", ".mypy_cache", ".pytest_cache"];

/// Changes that a server is told of at once. Of more it is told the first, and that there are more.
const MAX_TOLD: usize = 1_000;

/// Folders beside the project that are watched too. Further ones are not, and answers say that they are not complete.
const MAX_BESIDE: usize = 64;

impl OutsideWatch {
    /// Begins to watch a project. `None` where nothing can be watched; then the server sees what it sees. Blocks.
    pub(crate) fn watch(project: FolderHandle) -> Option<Self> {
        let mut tree = TreeWatch::new().ok()?;
        tree.set(vec![project.beneath(Path::new("")).ok()?], &mut SourceFilter);
        Some(Self(Mutex::new(WatchedProject { tree, project, beside: BTreeSet::new() })))
    }

    /// Watches folders beside the project as well. `open` opens one that was granted. Blocks.
    pub(crate) fn widen(&self, beside: BTreeSet<PathBuf>, open: impl Fn(&Path) -> Option<FolderHandle>) {
        let mut watched = self.watched();
        if watched.beside == beside {
            return;
        }
        let opened = beside.iter().take(MAX_BESIDE).filter_map(|folder| open(folder));
        let Ok(project) = watched.project.beneath(Path::new("")) else { return };
        let roots = [project].into_iter().chain(opened).collect();
        watched.beside = beside;
        watched.tree.set(roots, &mut SourceFilter);
    }

    /// Returns what has changed since the last time. What was changed before the call is among it. Blocks.
    pub(crate) fn changes(&self) -> OutsideChanges {
        let changes = self.watched().tree.changes(&mut SourceFilter);
        let mut is_lost = false;
        let mut files = Vec::new();
        for change in changes {
            match change {
                watch::FolderChange::Created(path, _) => files.push((path, DiskChange::Created)),
                watch::FolderChange::Deleted(path, _) => files.push((path, DiskChange::Deleted)),
                watch::FolderChange::Renamed { from, to, kind } => {
                    // What is in it is not told one by one.
                    is_lost |= kind == FileKind::Folder;
                    files.extend([(from, DiskChange::Deleted), (to, DiskChange::Created)]);
                }
                watch::FolderChange::Written(path) => files.push((path, DiskChange::Changed)),
                watch::FolderChange::Lost => is_lost = true,
            }
        }
        is_lost |= files.len() > MAX_TOLD;
        files.truncate(MAX_TOLD);
        OutsideChanges { files, is_lost }
    }

    /// Whether there is more than can be watched.
    pub(crate) fn is_partial(&self) -> bool {
        let watched = self.watched();
        watched.tree.is_partial() || watched.beside.len() > MAX_BESIDE
    }

    fn watched(&self) -> MutexGuard<'_, WatchedProject> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct SourceFilter;

impl WatchFilter for SourceFilter {
    fn enter(&mut self, _folder: &FolderListing, _path: &Path, _names: &[(OsString, FileKind)]) {}

    fn leaves_out(&self, path: &Path, kind: FileKind) -> bool {
        kind == FileKind::Folder && path.file_name().is_some_and(|name| LEFT_OUT.iter().any(|out| name == *out))
    }
}
