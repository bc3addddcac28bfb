//! Forgetting, so that it can be undone: the file moves out of the workspace into Prism's folder, with a slip that says
//! where it was.

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    time::SystemTime,
};

use prism_api::workspace::{NoteForgotten, NoteMeta};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    FOLDER, IndexProgress, WorkspaceError, WorkspaceMemory,
    layout::OVERVIEW,
    writing::{make_folders, write_new},
};
use prism_core::time::date_and_time;

/// A note that was forgotten.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forgotten {
    /// Its folder in the attic.
    #[serde(skip_deserializing)]
    pub id: String,
    pub title: String,
    pub root: PathBuf,
    /// Relative to the root.
    pub path: String,
    pub forgotten_at: String,
}

const SLIP: &str = "origin.json";
const FILE: &str = "note.md";

impl WorkspaceMemory {
    /// Moves a note to the attic. The path is relative to the root, or absolute and in it.
    pub fn forget(&self, path: &str, progress: &mut dyn FnMut(IndexProgress)) -> Result<Value, WorkspaceError> {
        let (root, entry) = self.answer(progress, |view| {
            // Only what the walk found counts, so that no path leads elsewhere.
            let relative = Path::new(path).strip_prefix(view.root).or_else(|_| Path::new(path).strip_prefix("."));
            let relative = relative.map_or(path.to_owned(), |path| path.to_string_lossy().into_owned());
            match view.index.entry(&relative)? {
                Some(entry) if entry.kind == OVERVIEW => Err(WorkspaceError::IsOverview { path: entry.path }),
                Some(entry) => Ok((view.root.to_owned(), entry)),
                None => Err(WorkspaceError::NoNote { path: path.to_owned() }),
            }
        })?;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let mut slip = Forgotten {
            id: String::new(),
            title: entry.title,
            root: root.clone(),
            path: entry.path,
            forgotten_at: format!("{}Z", date_and_time(now.as_secs())),
        };
        slip.id = self.store_away(&root.join(&slip.path), &slip)?;
        let undo = format!("prism workspace restore {}", slip.id);
        let meta = NoteMeta { document_path: slip.path, bytes: None };
        Ok(json!(NoteForgotten { forgotten: slip.title, id: slip.id, undo, meta }))
    }

    fn store_away(&self, file: &Path, slip: &Forgotten) -> Result<String, WorkspaceError> {
        let attic = attic(&self.home);
        let failed = |path: &Path, source: io::Error| WorkspaceError::Write { path: path.to_owned(), source };
        let make = |path: &Path| DirBuilder::new().recursive(true).mode(0o700).create(path);
        make(&attic).map_err(|error| failed(&attic, error))?;
        let mut random = [0; 4];
        getrandom::fill(&mut random).map_err(|error| failed(&attic, io::Error::other(error)))?;
        let day: String = slip.forgotten_at.chars().skip(2).take(8).filter(|c| *c != '-').collect();
        let id = format!("{day}-{:08x}", u32::from_ne_bytes(random));
        let folder = attic.join(&id);
        DirBuilder::new().mode(0o700).create(&folder).map_err(|error| failed(&folder, error))?;
        let text = serde_json::to_string_pretty(slip).map_err(|error| failed(&folder, error.into()))?;
        // The slip first: a file without one could not be put back.
        let stored = fs::write(folder.join(SLIP), text).and_then(|()| move_file(file, &folder.join(FILE)));
        if let Err(error) = stored {
            let _ = fs::remove_dir_all(&folder);
            return Err(failed(file, error));
        }
        Ok(id)
    }
}

impl Forgotten {
    /// Lists what was forgotten, in any workspace, the latest last.
    #[must_use]
    pub fn all(home: &Path) -> Vec<Self> {
        let folders = fs::read_dir(attic(home)).into_iter().flatten().flatten();
        let mut all: Vec<Self> =
            folders.filter_map(|folder| Self::read(home, folder.file_name().to_str()?).ok()).collect();
        all.sort_by(|a, b| (&a.forgotten_at, &a.id).cmp(&(&b.forgotten_at, &b.id)));
        all
    }

    /// Puts a note back to where it was, and returns where that is. What is there by now stays; then it is numbered.
    pub fn restore(home: &Path, id: &str) -> Result<PathBuf, WorkspaceError> {
        let slip = Self::read(home, id)?;
        let root = slip.root.canonicalize().map_err(|_| WorkspaceError::NoRoot { root: slip.root.clone() })?;
        let folder = attic(home).join(id);
        let kept = folder.join(FILE);
        let bytes = fs::read(&kept).map_err(|source| WorkspaceError::Write { path: kept, source })?;
        let (parent, name) = slip.path.rsplit_once('/').unwrap_or(("", &slip.path));
        if slip.path.split('/').any(|part| part == "..") {
            return Err(WorkspaceError::NotForgotten { id: id.to_owned() });
        }
        make_folders(&root, parent)?;
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        let path = write_new(&root.join(parent), stem, &bytes)?;
        fs::remove_dir_all(&folder).map_err(|source| WorkspaceError::Write { path: folder, source })?;
        Ok(path)
    }

    fn read(home: &Path, id: &str) -> Result<Self, WorkspaceError> {
        let unknown = || WorkspaceError::NotForgotten { id: id.to_owned() };
        if id.is_empty() || !id.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-') {
            return Err(unknown());
        }
        let text = fs::read(attic(home).join(id).join(SLIP)).map_err(|_| unknown())?;
        let slip: Self = serde_json::from_slice(&text).map_err(|_| unknown())?;
        Ok(Self { id: id.to_owned(), ..slip })
    }
}

fn attic(home: &Path) -> PathBuf {
    home.join(FOLDER).join("forgotten")
}

/// Moves a file, to another filesystem if need be.
fn move_file(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            fs::copy(from, to)?;
            fs::File::open(to)?.sync_all()?;
            fs::remove_file(from)
        }
        other => other,
    }
}
