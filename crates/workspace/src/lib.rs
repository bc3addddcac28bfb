//! Workspace memory: what an agent should know of a workspace when it arrives, and what it wants to leave for the next
//! one (W-01 … W-04). The notes are Markdown files in the workspace, and those files are the truth; the index of them
//! lies in Prism's own folder and is brought up to date before every answer.
//!
//! [`WorkspaceMemory`] is the one way in, for the MCP server and the command line alike. Where notes lie is said in `layout.rs`.

mod attic;
mod context;
mod document;
mod front_matter;
mod layout;
mod scan;
mod scope;
mod search;
#[cfg(test)]
mod tests;
mod tools;
mod writing;

use std::{
    collections::HashMap,
    io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use prism_os::watch::FolderWatch;
use prism_store::memory::{DocumentStamp, IndexChange, IndexOrigin, MemoryError, MemoryIndex};

pub use attic::Forgotten;
pub use context::{ContextQuery, ContextTier};
pub use layout::nearest_root;
pub use scope::NoteScope;
pub use search::{NoteListQuery, Search};
pub use tools::{NAME, server};
pub use writing::{NewNote, NoteKind};

use layout::WorkspaceLayout;
use scan::{MemoryScan, NoteFile, ScanBounds};

/// The memory of the workspace at a root.
#[derive(Debug)]
pub struct WorkspaceMemory {
    /// None is set.
    root: Option<PathBuf>,
    home: PathBuf,
    /// Held while the files are walked and the index is asked, by threads that may block. Callers take turns: each of
    /// them needs the index to be up to date first, and only one can see to that.
    open: Mutex<Option<OpenIndex>>,
}

/// How far an indexing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexProgress {
    pub done: usize,
    pub total: usize,
}

/// What an indexing came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexReport {
    pub notes: usize,
    pub read: usize,
    pub removed: usize,
    pub remarks: Vec<String>,
}

/// Why there is no answer. The text says what to do next.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    #[error(
        "Prism does not know which workspace is meant; set [workspace] root in prism.toml, or start it with \
         `prism serve --workspace FOLDER`"
    )]
    NotSet,
    #[error(
        "the workspace root {} does not exist; set [workspace] root in prism.toml or pass --root",
        root.display()
    )]
    NoRoot { root: PathBuf },
    #[error(
        "the workspace root {} is not a folder; set [workspace] root in prism.toml or pass --root",
        root.display()
    )]
    RootIsNoFolder { root: PathBuf },
    #[error("the workspace root {} cannot be read", root.display())]
    Root { root: PathBuf, source: io::Error },
    #[error(
        "this is the memory of {}, but the call comes from {}, so nothing was read or written; for the other one's own, \
         add the server `prism workspace mcp --root {}` to the client, or type `prism workspace context --root {}`",
        root.display(), from.display(), from.display(), from.display()
    )]
    Elsewhere { root: PathBuf, from: PathBuf },
    #[error("the index of the workspace cannot be used")]
    Index { source: MemoryError },
    #[error("there is no {what} {name:?}; known: {known}")]
    Unknown { what: &'static str, name: String, known: String },
    #[error("there are several workspaces here; say which with `workspace`: {known}")]
    WhichWorkspace { known: String },
    #[error("`{argument}` {problem}")]
    Argument { argument: &'static str, problem: String },
    #[error("{path} is no note of this workspace; `workspace_search` names the path of each note as document_path")]
    NoNote { path: String },
    #[error("{path} is an overview, which is not forgotten; edit the file instead")]
    IsOverview { path: String },
    #[error("cannot write {}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("{} is a symbolic link or no folder, and nothing is written through it", path.display())]
    Detour { path: PathBuf },
    #[error("nothing forgotten has the id {id:?}; `prism workspace restore` lists what there is")]
    NotForgotten { id: String },
}

/// An index that was up to date a moment ago.
#[derive(Debug)]
struct OpenIndex {
    index: MemoryIndex,
    /// What is in the index, and the version of it that this was read from.
    known: HashMap<String, DocumentStamp>,
    version: i64,
    /// When the last walk over the files began.
    walked: Instant,
    /// Device and inode of the root that was walked over.
    root: Option<(u64, u64)>,
    /// Says whether anything has changed since; none if it could not be said of every folder.
    watch: Option<FolderWatch>,
    layout: WorkspaceLayout,
    remarks: Vec<String>,
}

/// What a question is answered from: the index, up to date, and where the files are.
struct MemoryView<'a> {
    root: &'a Path,
    index: &'a MemoryIndex,
    layout: &'a WorkspaceLayout,
    /// What every answer has to mention.
    remarks: &'a [String],
}

/// Where the indexes and what was forgotten lie, in Prism's folder.
const FOLDER: &str = "workspace";

/// How long the absence of news is trusted. A file with a second name elsewhere can change without its folder being
/// told.
const TRUST: Duration = Duration::from_secs(60);

// === impl WorkspaceMemory ===

impl WorkspaceMemory {
    /// Names the memory of a root. Nothing is looked at before something is asked; a root that is missing then is an
    /// error, each time.
    #[must_use]
    pub fn new(root: Option<&Path>, home: &Path) -> Self {
        Self { root: root.map(Path::to_owned), home: home.to_owned(), open: Mutex::new(None) }
    }

    /// Refuses who works in other folders than those of this memory: one memory is not to be written from another's
    /// workspace.
    pub fn admit(&self, folders: &[PathBuf]) -> Result<(), WorkspaceError> {
        let root = self.real_root()?;
        let real = |folder: &PathBuf| folder.canonicalize().unwrap_or_else(|_| folder.clone());
        match folders.first() {
            Some(first) if !folders.iter().any(|folder| real(folder).starts_with(&root)) => {
                Err(WorkspaceError::Elsewhere { root, from: first.clone() })
            }
            _ => Ok(()),
        }
    }

    /// The workspace that a folder is in; `None` if it is in none.
    pub fn workspace_of(&self, folder: &Path) -> Option<PathBuf> {
        layout::marked_root(folder, &self.home)
    }

    /// Brings the index up to date.
    pub fn index(&self, progress: &mut dyn FnMut(IndexProgress)) -> Result<IndexReport, WorkspaceError> {
        let root = self.real_root()?;
        let mut slot = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let (open, indexed) = self.refresh(slot.take(), &root, progress)?;
        *slot = Some(open);
        Ok(indexed)
    }

    /// Throws the index away and builds it anew.
    pub fn rebuild(&self, progress: &mut dyn FnMut(IndexProgress)) -> Result<IndexReport, WorkspaceError> {
        let root = self.real_root()?;
        let mut slot = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        *slot = None;
        MemoryIndex::delete(&self.index_path(&root))?;
        let (open, indexed) = self.refresh(None, &root, progress)?;
        *slot = Some(open);
        Ok(indexed)
    }

    /// Answers something from an index that is up to date.
    fn answer<T>(
        &self,
        progress: &mut dyn FnMut(IndexProgress),
        mut ask: impl FnMut(&MemoryView<'_>) -> Result<T, WorkspaceError>,
    ) -> Result<T, WorkspaceError> {
        let asked = Instant::now();
        let root = self.real_root()?;
        let mut slot = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let mut open = match slot.take() {
            Some(open) if open.is_up_to_date(&root, asked) => open,
            was => self.refresh(was, &root, progress)?.0,
        };
        let mut answer = ask(&open.view(&root));
        if answer.as_ref().is_err_and(WorkspaceError::is_corruption) {
            drop(open);
            self.discard(&root)?;
            open = self.refresh(None, &root, progress)?.0;
            answer = ask(&open.view(&root));
        }
        *slot = Some(open);
        answer
    }

    /// Opens the index if it is not open, and brings it up to date. On an error it is closed.
    fn refresh(
        &self,
        was: Option<OpenIndex>,
        root: &Path,
        progress: &mut dyn FnMut(IndexProgress),
    ) -> Result<(OpenIndex, IndexReport), WorkspaceError> {
        let walked = Instant::now();
        let mut refresh = |was: Option<OpenIndex>| {
            let mut open = match was {
                Some(open) => open,
                None => self.open_index(root, walked)?,
            };
            let scan = open.walk(root).map_err(|source| WorkspaceError::Root { root: root.to_owned(), source })?;
            let indexed = open.bring_up_to_date(root, scan, progress)?;
            Ok::<_, WorkspaceError>((open, indexed))
        };
        match refresh(was) {
            Err(trouble) if trouble.is_corruption() => {
                self.discard(root)?;
                refresh(None)
            }
            other => other,
        }
    }

    fn open_index(&self, root: &Path, walked: Instant) -> Result<OpenIndex, WorkspaceError> {
        let path = self.index_path(root);
        let (index, opening) = MemoryIndex::open(&path, &root.to_string_lossy())?;
        if let IndexOrigin::Replaced(why) = opening {
            tracing::warn!(path = %path.display(), why, "the index of a workspace is deleted and built anew");
        }
        // No version is negative, so what is known is read at first use.
        let layout = WorkspaceLayout { bases: Vec::new() };
        let known = HashMap::new();
        Ok(OpenIndex { index, known, version: -1, walked, root: None, watch: None, layout, remarks: Vec::new() })
    }

    /// Deletes an index that turned out to be broken while it was used.
    fn discard(&self, root: &Path) -> Result<(), WorkspaceError> {
        let path = self.index_path(root);
        let why = "it is broken";
        tracing::warn!(path = %path.display(), why, "the index of a workspace is deleted and built anew");
        Ok(MemoryIndex::delete(&path)?)
    }

    fn index_path(&self, root: &Path) -> PathBuf {
        let name = document::hash(root.as_os_str().as_encoded_bytes());
        self.home.join(FOLDER).join(format!("{name:016x}.db"))
    }

    /// Returns the root without links and dots. It being missing is said loudly: an empty answer would be taken for
    /// an empty memory.
    fn real_root(&self) -> Result<PathBuf, WorkspaceError> {
        let set = self.root.as_ref().ok_or(WorkspaceError::NotSet)?;
        let root = || set.clone();
        match set.canonicalize() {
            Ok(real) if real.is_dir() => Ok(real),
            Ok(_) => Err(WorkspaceError::RootIsNoFolder { root: root() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(WorkspaceError::NoRoot { root: root() }),
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => Err(WorkspaceError::NoRoot { root: root() }),
            Err(source) => Err(WorkspaceError::Root { root: root(), source }),
        }
    }
}

// === impl OpenIndex ===

impl OpenIndex {
    fn view<'a>(&'a self, root: &'a Path) -> MemoryView<'a> {
        MemoryView { root, index: &self.index, layout: &self.layout, remarks: &self.remarks }
    }

    /// Whether an answer may be given without a walk.
    fn is_up_to_date(&self, root: &Path, asked: Instant) -> bool {
        // A walk that began while the caller waited for its turn has seen all that the caller can know of.
        if self.walked > asked {
            return true;
        }
        let same_root = || identity(root).is_some_and(|root| self.root == Some(root));
        let unchanged = |watch: &FolderWatch| !watch.has_changed() && self.walked.elapsed() < TRUST && same_root();
        self.watch.as_ref().is_some_and(unchanged)
    }

    /// Walks over the files, and watches every folder from before it is read: what changes later is seen by the walk
    /// or told by the watch.
    fn walk(&mut self, root: &Path) -> io::Result<MemoryScan> {
        self.walked = Instant::now();
        self.root = identity(root);
        let mut watch = self.watch.take().or_else(|| FolderWatch::new().ok());
        if let Some(watch) = &mut watch {
            watch.begin();
        }
        let scan = scan::scan(root, ScanBounds::USUAL, &mut |folder| {
            if watch.as_mut().is_some_and(|watch| watch.add(folder).is_err()) {
                watch = None;
            }
        })?;
        self.watch = watch;
        Ok(scan)
    }

    /// Reads what is new or has changed, and forgets what is gone.
    fn bring_up_to_date(
        &mut self,
        root: &Path,
        scan: MemoryScan,
        progress: &mut dyn FnMut(IndexProgress),
    ) -> Result<IndexReport, WorkspaceError> {
        let version = self.index.version()?;
        if version != self.version {
            self.known = self.index.stamps()?.into_iter().collect();
            self.version = version;
        }
        let MemoryScan { layout, notes, mut remarks } = scan;
        let same = |note: &NoteFile| self.known.get(&note.path).is_some_and(|known| looks_same(known, &note.stamp));
        let changed: Vec<&NoteFile> = notes.iter().filter(|note| !same(note)).collect();
        let new = changed.iter().filter(|note| !self.known.contains_key(&note.path)).count();
        // Every path is in the walk once; so if all that is known was seen, the numbers agree.
        let removed = if self.known.len() + new == notes.len() { Vec::new() } else { gone(&self.known, &notes) };
        let indexed = |remarks: &[String]| IndexReport {
            notes: notes.len(),
            read: changed.len(),
            removed: removed.len(),
            remarks: remarks.to_owned(),
        };
        if !changed.is_empty() || !removed.is_empty() {
            let total = changed.len();
            let known = &self.known;
            let mut stamps = Vec::with_capacity(total);
            let mut unread = Vec::new();
            let reading = changed.iter().enumerate().filter_map(|(done, note)| {
                progress(IndexProgress { done, total });
                match change(root, note, known.get(&note.path)) {
                    Ok((change, stamp)) => {
                        stamps.push((note.path.clone(), stamp));
                        Some(change)
                    }
                    // Gone since the walk.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                    Err(error) => {
                        unread.push(format!("{} cannot be read: {error}", note.path));
                        None
                    }
                }
            });
            let removing = removed.iter().map(|path| IndexChange::Remove { path: path.clone() });
            self.index.apply(reading.chain(removing))?;
            progress(IndexProgress { done: total, total });
            self.known.extend(stamps);
            for path in &removed {
                self.known.remove(path);
            }
            remarks.append(&mut unread);
        }
        let indexed = indexed(&remarks);
        self.layout = layout;
        self.remarks = remarks;
        Ok(indexed)
    }
}

fn identity(root: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(root).ok().map(|found| scan::identity(&found))
}

fn looks_same(known: &DocumentStamp, seen: &DocumentStamp) -> bool {
    (known.size, known.mtime_ns, known.ctime_ns) == (seen.size, seen.mtime_ns, seen.ctime_ns)
}

fn gone(known: &HashMap<String, DocumentStamp>, notes: &[NoteFile]) -> Vec<String> {
    let there: std::collections::HashSet<&str> = notes.iter().map(|note| note.path.as_str()).collect();
    known.keys().filter(|path| !there.contains(path.as_str())).cloned().collect()
}

fn change(root: &Path, note: &NoteFile, known: Option<&DocumentStamp>) -> io::Result<(IndexChange, DocumentStamp)> {
    let text = document::read(root, note)?;
    let stamp = text.stamp;
    // The same words at the same path are the same note: what else is known of it comes from the path.
    let change = match known {
        Some(known) if (known.content, known.size) == (stamp.content, stamp.size) => {
            IndexChange::Touch { path: note.path.clone(), stamp }
        }
        _ => IndexChange::Put(Box::new(document::document(note, &text))),
    };
    Ok((change, stamp))
}

// === impl WorkspaceError ===

impl WorkspaceError {
    fn is_corruption(&self) -> bool {
        matches!(self, Self::Index { source } if source.is_corruption())
    }

    fn argument(argument: &'static str, problem: impl Into<String>) -> Self {
        Self::Argument { argument, problem: problem.into() }
    }
}

impl From<MemoryError> for WorkspaceError {
    fn from(source: MemoryError) -> Self {
        Self::Index { source }
    }
}
