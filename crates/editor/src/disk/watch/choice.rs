//! What is watched, and what is not: what git ignores, what tools make, and of a repository all but what tells of its state.

use std::{
    collections::{BTreeMap, HashMap},
    ffi::OsString,
    mem,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use prism_os::{
    root::{FileKind, FolderListing},
    watch::{FolderChange, WatchFilter},
};

use crate::{
    disk::walk::{IgnoreRules, IgnoreSources, WalkOptions},
    roots::ClosedPaths,
};

/// The folders and files that are wanted, and what is known of each folder that is watched.
#[derive(Debug, Default)]
pub(super) struct WatchChoice {
    roots: BTreeMap<PathBuf, Arc<ClosedPaths>>,
    files: std::collections::BTreeSet<PathBuf>,
    folders: HashMap<PathBuf, WatchedFolder>,
    repositories: Vec<PathBuf>,
}

#[derive(Clone, Debug)]
enum WatchedFolder {
    /// All of it, by the rules that hold there; with the granted folder that they are read from.
    Whole { rules: Arc<IgnoreRules>, root: PathBuf },
    /// `.git`, or a folder in it.
    Git { depth: usize },
    /// Nothing but files that are watched by name.
    FilesOnly,
}

/// What tools make, and nobody wants to hear of, ignored or not.
const MADE_BY_TOOLS: [&str; 11] = [
    "target",
    "node_modules",
    "__pycache__",
    ".venv",
    ".tox",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    ".gradle",
    ".hg",
    ".svn",
];

/// What of `.git` tells of a repository's state.
const OF_GIT: [&str; 6] = ["HEAD", "index", "MERGE_HEAD", "packed-refs", "refs", "logs"];

/// Repositories beneath the watched folders whose state is attended to.
const MAX_REPOSITORIES: usize = 64;

impl WatchChoice {
    pub(super) fn add_root(&mut self, place: PathBuf, closed: Arc<ClosedPaths>) {
        self.roots.insert(place, closed);
    }

    pub(super) fn add_file(&mut self, path: PathBuf) {
        self.files.insert(path);
    }

    /// Whether the same is wanted.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.roots.keys().eq(other.roots.keys()) && self.files == other.files
    }

    /// Whether something only seems to have come or gone, as it was not watched before, or is no longer.
    pub(super) fn explains(&self, change: &FolderChange, before: &Self) -> bool {
        let (FolderChange::Created(path, _) | FolderChange::Deleted(path, _)) = change else { return false };
        self.files.contains(path) != before.files.contains(path)
    }

    /// The work trees that were met.
    pub(super) fn take_repositories(&mut self) -> Vec<PathBuf> {
        mem::take(&mut self.repositories)
    }

    fn state(&self, path: &Path) -> Option<WatchedFolder> {
        if self.roots.contains_key(path) {
            return Some(WatchedFolder::Whole { rules: Arc::default(), root: path.to_owned() });
        }
        match self.folders.get(path.parent()?)? {
            _ if path.file_name().is_some_and(|name| name == ".git") => Some(WatchedFolder::Git { depth: 0 }),
            WatchedFolder::Whole { rules, root } => {
                Some(WatchedFolder::Whole { rules: rules.clone(), root: root.clone() })
            }
            WatchedFolder::Git { depth } => Some(WatchedFolder::Git { depth: depth + 1 }),
            WatchedFolder::FilesOnly => None,
        }
    }

    fn is_closed(&self, path: &Path) -> bool {
        self.roots.values().next().is_some_and(|closed| closed.holds(path))
    }
}

impl WatchFilter for WatchChoice {
    fn enter(&mut self, folder: &FolderListing, path: &Path, names: &[(OsString, FileKind)]) {
        // A folder that is watched for a file in it alone is no part of what is above it.
        let is_left_out = path.parent().is_some_and(|above| {
            !self.roots.contains_key(path)
                && self.folders.contains_key(above)
                && self.leaves_out(path, FileKind::Folder)
        });
        let state = if is_left_out { None } else { self.state(path) };
        let state = match state {
            None => WatchedFolder::FilesOnly,
            Some(WatchedFolder::Whole { rules, root }) => {
                let mut sources = IgnoreSources::default();
                names.iter().for_each(|(name, _)| sources.note(name));
                if sources.git && self.repositories.len() < MAX_REPOSITORIES {
                    self.repositories.push(path.to_owned());
                }
                let from_root = path.strip_prefix(&root).unwrap_or(Path::new(""));
                WatchedFolder::Whole { rules: IgnoreRules::of(rules, folder, from_root, sources), root }
            }
            Some(git) => git,
        };
        self.folders.insert(path.to_owned(), state);
    }

    fn leaves_out(&self, path: &Path, kind: FileKind) -> bool {
        if self.files.contains(path) {
            return false;
        }
        let name = path.file_name().unwrap_or_default();
        let above = path.parent().and_then(|above| self.folders.get(above));
        match above {
            None | Some(WatchedFolder::FilesOnly) => true,
            Some(WatchedFolder::Git { depth: 0 }) => !OF_GIT.iter().any(|kept| name == *kept),
            // Of the logs that of HEAD; the branches' own say the same.
            Some(WatchedFolder::Git { .. }) => {
                let is_log = path.parent().and_then(Path::file_name).is_some_and(|above| above == "logs");
                name.as_bytes().ends_with(b".lock") || (is_log && name != "HEAD")
            }
            Some(WatchedFolder::Whole { rules, root }) => {
                if name == ".git" {
                    return kind != FileKind::Folder;
                }
                let from_root = path.strip_prefix(root).unwrap_or(path);
                (kind == FileKind::Folder && MADE_BY_TOOLS.iter().any(|made| name == *made))
                    || is_temporary(name.as_bytes())
                    || self.is_closed(path)
                    || rules.leave_out(from_root, kind, WalkOptions { hidden: true, ignored: false })
            }
        }
    }
}

/// What Prism writes before it becomes the file that is meant.
fn is_temporary(name: &[u8]) -> bool {
    name.starts_with(b".prism-") && name.ends_with(b".tmp")
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, process::Command};

    use prism_os::{root::FolderHandle, watch::TreeWatch};

    use super::*;

    /// The paths that are told of after something was done with git.
    struct Repository {
        folder: tempfile::TempDir,
        path: PathBuf,
        tree: TreeWatch,
        chosen: WatchChoice,
    }

    impl Repository {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().canonicalize().unwrap().join("work");
            fs::create_dir(&path).unwrap();
            let mut chosen = WatchChoice::default();
            chosen.add_root(path.clone(), Arc::default());
            let this = Self { folder, path, tree: TreeWatch::new().unwrap(), chosen };
            this.git(&["init", "-q", "-b", "main"]);
            this
        }

        fn watch(&mut self) {
            self.tree.set(vec![FolderHandle::open(&self.path).unwrap()], &mut self.chosen);
        }

        fn git(&self, args: &[&str]) {
            let mut run = Command::new("git");
            run.args(["-c", "user.name=x", "-c", "user.email=x@example.org"]).args(args);
            let output = run.current_dir(&self.path).env("HOME", self.folder.path()).output().unwrap();
            assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        }

        /// The changes are there as soon as git is done.
        fn told(&mut self) -> BTreeSet<String> {
            let path = |change: FolderChange| match change {
                FolderChange::Created(path, _) | FolderChange::Deleted(path, _) | FolderChange::Written(path) => path,
                FolderChange::Renamed { to, .. } => to,
                FolderChange::Lost => panic!("too much at once"),
            };
            let changes = self.tree.changes(&mut self.chosen).into_iter().map(path);
            changes.map(|path| path.strip_prefix(&self.path).unwrap().display().to_string()).collect()
        }
    }

    #[tokio::test]
    async fn of_a_repository_what_tells_of_its_state_is_watched() {
        let mut repository = Repository::new();
        fs::write(repository.path.join("a"), "").unwrap();
        repository.watch();
        assert_eq!(repository.chosen.take_repositories(), [repository.path.clone()]);
        repository.git(&["add", "a"]);
        assert_eq!(repository.told(), [".git/index".to_owned()].into());
        repository.git(&["commit", "-q", "-m", "one"]);
        let told = repository.told();
        assert!(told.contains(".git/refs/heads/main") && told.contains(".git/logs/HEAD"), "{told:?}");
        assert!(!told.iter().any(|path| path.contains("objects") || path.ends_with(".lock")), "{told:?}");
        repository.git(&["checkout", "-q", "-b", "topic/two"]);
        let told = repository.told();
        assert!(told.contains(".git/HEAD") && told.contains(".git/refs/heads/topic/two"), "{told:?}");
        fs::write(repository.path.join("a"), "theirs").unwrap();
        repository.git(&["commit", "-q", "-a", "-m", "theirs"]);
        repository.git(&["checkout", "-q", "main"]);
        fs::write(repository.path.join("a"), "ours").unwrap();
        repository.git(&["commit", "-q", "-a", "-m", "ours"]);
        repository.told();
        let mut merge = Command::new("git");
        merge.args(["-c", "user.name=x", "-c", "user.email=x@example.org", "merge", "-q", "topic/two"]);
        assert!(!merge.current_dir(&repository.path).output().unwrap().status.success(), "a conflict");
        assert!(repository.told().contains(".git/MERGE_HEAD"));
    }
}
