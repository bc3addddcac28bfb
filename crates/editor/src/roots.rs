//! The granted folders, and how a path that an agent writes is found in them. A path is told to belong to a folder by
//! its name, and that is all that names are good for: whether it really lies there, the kernel says as it is opened.

pub(crate) mod read;

use std::{
    fs::{self, File},
    os::{fd::AsFd, unix::fs::MetadataExt},
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use prism_core::policy::{self, Code, Refusal};
use prism_os::root::{self, FolderError, FolderHandle, Spot};

/// The folders of one order.
#[derive(Clone, Debug)]
pub(crate) struct GrantedRoots {
    roots: Vec<policy::GrantRoot>,
    closed: Arc<ClosedPaths>,
}

/// What no grant opens, whatever lies above it: Prism's own folder, with the secret that grants are approved with; and the
/// files elsewhere that say what Prism starts and believes, or that hold its secrets.
#[derive(Debug, Default)]
pub(crate) struct ClosedPaths {
    folders: Vec<PathBuf>,
    /// Which these are changes with the config.
    files: RwLock<Vec<PathBuf>>,
}

/// A path of an agent's: the granted folder that it is in by name, open, and the way down from there.
#[derive(Debug)]
pub(crate) struct ResolvedPath {
    root: FolderHandle,
    /// Relative; empty for the folder itself.
    path: PathBuf,
    /// As it was written.
    written: String,
    closed: Arc<ClosedPaths>,
}

/// A name for something new: the nearest folder that there is on the way to it, open, and what is to be made.
#[derive(Debug)]
pub(crate) struct MissingPath {
    folder: FolderHandle,
    /// The way to that folder.
    existing: PathBuf,
    missing: Vec<String>,
    name: String,
    /// Where the folder is.
    place: PathBuf,
}

/// How often a file is opened again that is replaced all the time.
const TRIES: usize = 64;

// === impl GrantedRoots ===

impl GrantedRoots {
    pub(crate) fn new(roots: Vec<policy::GrantRoot>, closed: Arc<ClosedPaths>) -> Self {
        Self { roots, closed }
    }

    pub(crate) fn names(&self) -> &[policy::GrantRoot] {
        &self.roots
    }

    /// Finds the folder of a path and opens it: of an absolute one the longest that it is written below, of a relative one
    /// the first.
    pub(crate) fn resolve(&self, written: &str) -> Result<ResolvedPath, Refusal> {
        let outside = |why: String| Refusal::new(Code::OutsideRoot, why);
        let first = || self.roots.first().ok_or_else(|| outside("this grant has no folder".to_owned()));
        if !written.starts_with('/') {
            return self.in_root(first()?, written, PathBuf::from(written));
        }
        let below = self.roots.iter().filter_map(|root| Some((root, below(written, &root.to_string())?)));
        let longest = below.min_by_key(|(_, rest)| rest.len());
        let Some((root, rest)) = longest else {
            let roots: Vec<String> = self.roots.iter().map(|root| format!("{:?}", root.to_string())).collect();
            return Err(outside(format!(
                "{} is in none of the granted folders: {}",
                quoted(written),
                roots.join(", ")
            )));
        };
        self.in_root(root, written, PathBuf::from(rest))
    }

    /// Tells whether a real path lies beneath a granted folder, for who lists what is open. It opens nothing.
    pub(crate) fn holds(&self, path: &Path) -> bool {
        let granted = self.roots.iter().any(|root| path.starts_with(root.to_string()));
        granted && !self.closed.holds(path)
    }

    /// Refuses a folder that a closed one lies beneath, for whoever reaches all that is in it. A closed file is no reason: a
    /// project with a `prism.toml` in its repository is a project like others.
    pub(crate) fn refuse_around_closed(&self, folder: &Path) -> Result<(), Refusal> {
        self.closed.check(folder)?;
        if lies_in(&self.closed.folders, folder) { Err(closed()) } else { Ok(()) }
    }

    pub(crate) fn closed_folders(&self) -> &[PathBuf] {
        self.closed.folders()
    }

    /// The first granted folder itself.
    pub(crate) fn first(&self) -> Result<ResolvedPath, Refusal> {
        let root = self.roots.first().ok_or_else(|| Refusal::new(Code::OutsideRoot, "this grant has no folder"))?;
        self.root(root)
    }

    /// A granted folder itself.
    pub(crate) fn root(&self, root: &policy::GrantRoot) -> Result<ResolvedPath, Refusal> {
        self.in_root(root, &root.to_string(), PathBuf::new())
    }

    fn in_root(&self, root: &policy::GrantRoot, written: &str, path: PathBuf) -> Result<ResolvedPath, Refusal> {
        let name = root.to_string();
        let base = FolderHandle::open(Path::new(root.base())).map_err(|error| match error {
            FolderError::Linked => {
                let message = format!(
                    "the granted folder {name:?} is reached through a symbolic link; ask for the folder itself"
                );
                Refusal::new(Code::OutsideRoot, message)
            }
            error => refusal(&name, error),
        })?;
        let root = base.beneath(Path::new(root.beneath())).map_err(|error| refusal(&name, error))?;
        Ok(ResolvedPath { root, path, written: written.to_owned(), closed: self.closed.clone() })
    }
}

// === impl ResolvedPath ===

impl ResolvedPath {
    /// Opens the file that it leads to, for reading.
    pub(crate) fn open_file(&self) -> Result<File, Refusal> {
        self.open_placed().map(|(file, _)| file)
    }

    /// The same, and where it is.
    pub(crate) fn open_placed(&self) -> Result<(File, PathBuf), Refusal> {
        for _ in 0..TRIES {
            let file = self.root.open_file(&self.path).map_err(|error| self.refusal(error))?;
            let place = place(&file, &self.written);
            // One that was replaced since it was opened has no place any more, and the kernel's word for it would be wrong.
            if file.metadata().is_ok_and(|file| file.nlink() > 0) {
                self.closed.check(&place)?;
                return Ok((file, place));
            }
        }
        Err(self.refusal(FolderError::Restless))
    }

    /// Returns where it really leads: of a file that is there, that file; else its name in the folder that it would be in.
    pub(crate) fn real_path(&self) -> Result<PathBuf, Refusal> {
        match self.open_placed() {
            Ok((_, place)) => Ok(place),
            Err(refusal) if refusal.code == Code::NotFound => {
                let spot = self.spot()?;
                Ok(place(spot.folder(), &self.written).join(spot.name()))
            }
            Err(refusal) => Err(refusal),
        }
    }

    /// Opens the folder that it leads to.
    pub(crate) fn folder(&self) -> Result<FolderHandle, Refusal> {
        let folder = self.root.beneath(&self.path).map_err(|error| self.refusal(error))?;
        self.closed.check(&place(&folder, &self.written))?;
        Ok(folder)
    }

    /// Opens the folder that its last name is in, for doing something with that name.
    pub(crate) fn spot(&self) -> Result<Spot, Refusal> {
        let spot = self.root.spot(&self.path).map_err(|error| self.refusal(error))?;
        let path = place(spot.folder(), &self.written).join(spot.name());
        self.closed.check(&path)?;
        self.closed.check_above(&path)?;
        Ok(spot)
    }

    /// Opens the folder that something new is to be made in; if some on the way to it are missing, the last that is there.
    pub(crate) fn nearest(&self) -> Result<MissingPath, Refusal> {
        let written = self.path.to_str().unwrap_or_default();
        let mut parts: Vec<&str> = written.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
        // The system's own rules for names hold for all of it before any of it is looked for.
        match self.root.spot(&self.path) {
            Err(FolderError::NotFound) | Ok(_) => {}
            Err(error) => return Err(self.refusal(error)),
        }
        let Some(name) = parts.pop() else { return Err(self.refusal(FolderError::NoName)) };
        for kept in (0..=parts.len()).rev() {
            let existing = PathBuf::from(parts[..kept].join("/"));
            let folder = match self.root.beneath(&existing) {
                Ok(folder) => folder,
                Err(FolderError::NotFound) => continue,
                Err(error) => return Err(self.refusal(error)),
            };
            let missing: Vec<String> = parts[kept..].iter().map(|part| (*part).to_owned()).collect();
            if missing.iter().any(|part| part == "..") {
                return Err(self.refusal(FolderError::NotFound));
            }
            let place = place(&folder, &self.written);
            let nearest = MissingPath { folder, existing, missing, name: name.to_owned(), place };
            self.closed.check(Path::new(&nearest.path()))?;
            return Ok(nearest);
        }
        Err(self.refusal(FolderError::NotFound))
    }

    /// The granted folder that it is in.
    pub(crate) fn root(&self) -> &FolderHandle {
        &self.root
    }

    pub(crate) fn written(&self) -> &str {
        &self.written
    }

    /// Refuses if it no longer leads to the folder that was opened: what the person saw was its name.
    pub(crate) fn still_leads_to(&self, folder: &FolderHandle) -> Result<(), Refusal> {
        let now = match self.root.spot(&self.path) {
            Ok(spot) => spot.folder().is(folder),
            Err(_) => false,
        };
        if now { Ok(()) } else { Err(self.changed("it leads elsewhere now")) }
    }

    /// Refuses if it is no longer the folder that was opened.
    pub(crate) fn is_still(&self, folder: &FolderHandle) -> Result<(), Refusal> {
        let is_still = self.root.beneath(&self.path).is_ok_and(|now| now.is(folder));
        if is_still { Ok(()) } else { Err(self.changed("it leads elsewhere now")) }
    }

    pub(crate) fn closed(&self) -> &Arc<ClosedPaths> {
        &self.closed
    }

    /// Says in an error what it was about.
    pub(crate) fn refusal(&self, error: FolderError) -> Refusal {
        refusal(&self.written, error)
    }

    pub(crate) fn wrong(&self, why: &str) -> Refusal {
        Refusal::new(Code::BadArguments, format!("{}: {why}", quoted(&self.written)))
    }

    pub(crate) fn changed(&self, why: &str) -> Refusal {
        Refusal::new(Code::Changed, format!("{}: {why}; look again, then try again", quoted(&self.written)))
    }
}

// === impl MissingPath ===

impl MissingPath {
    pub(crate) fn path(&self) -> String {
        let mut path = self.place.clone();
        path.extend(&self.missing);
        path.join(&self.name).display().to_string()
    }

    pub(crate) fn is_missing_folders(&self) -> bool {
        !self.missing.is_empty()
    }

    /// Tells whether the name is taken.
    pub(crate) fn is_taken(&self, way: &ResolvedPath) -> Result<bool, Refusal> {
        if self.is_missing_folders() {
            return Ok(false);
        }
        let spot = self.folder.spot(Path::new(&self.name)).map_err(|error| way.refusal(error))?;
        Ok(spot.look().map_err(|error| way.refusal(error))?.is_some())
    }

    /// Makes the folders that are missing, and returns the name in the last of them.
    pub(crate) fn make_way(&self, way: &ResolvedPath) -> Result<Spot, Refusal> {
        let now = way.root.beneath(&self.existing);
        if !now.is_ok_and(|now| now.is(&self.folder)) {
            return Err(way.changed("it leads elsewhere now"));
        }
        let refused = |error| way.refusal(error);
        let mut folder = self.folder.beneath(Path::new("")).map_err(refused)?;
        for part in &self.missing {
            let spot = folder.spot(Path::new(part)).map_err(refused)?;
            match spot.create_folder() {
                // Somebody has made it meanwhile, which is as good, if it is a folder.
                Ok(()) | Err(FolderError::Exists) => folder = spot.open_folder().map_err(refused)?,
                Err(error) => return Err(way.refusal(error)),
            }
        }
        folder.spot(Path::new(&self.name)).map_err(refused)
    }
}

// === impl ClosedPaths ===

impl ClosedPaths {
    pub(crate) fn new(folders: Vec<PathBuf>) -> Self {
        let folders = folders.into_iter().map(|folder| fs::canonicalize(&folder).unwrap_or(folder)).collect();
        Self { folders, files: RwLock::default() }
    }

    pub(crate) fn folders(&self) -> &[PathBuf] {
        &self.folders
    }

    /// Closes these files and no others. One that is not there yet is closed under its name, and a link with what it leads to.
    pub(crate) fn close_files(&self, files: &[PathBuf]) {
        let mut real: Vec<PathBuf> = Vec::new();
        for file in files {
            let absolute = std::path::absolute(file).unwrap_or_else(|_| file.clone());
            let folder = absolute.parent().and_then(|folder| fs::canonicalize(folder).ok());
            let named = folder.zip(absolute.file_name()).map_or(absolute.clone(), |(folder, name)| folder.join(name));
            real.extend([Some(named), fs::canonicalize(&absolute).ok()].into_iter().flatten());
        }
        real.sort();
        real.dedup();
        *self.files.write().unwrap_or_else(PoisonError::into_inner) = real;
    }

    /// What is closed beside the folders, for a sandbox to cover. Landlock alone could only close all that lies around each.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        self.files.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Refuses what is closed, by where the kernel says that the opened thing is.
    pub(crate) fn check(&self, place: &Path) -> Result<(), Refusal> {
        if is_in(&self.folders, place) {
            return Err(closed());
        }
        if self.is_file(place) { Err(closed_file(place)) } else { Ok(()) }
    }

    /// Tells whether something closed lies somewhere beneath, so that who walks there has to look out.
    pub(crate) fn is_beneath(&self, place: &Path) -> bool {
        lies_in(&self.folders, place) || self.file_in(place).is_some()
    }

    pub(crate) fn holds(&self, place: &Path) -> bool {
        is_in(&self.folders, place) || self.is_file(place)
    }

    /// Refuses what something closed lies in, as whoever moves that moves both.
    fn check_above(&self, place: &Path) -> Result<(), Refusal> {
        if lies_in(&self.folders, place) {
            return Err(closed());
        }
        self.file_in(place).map_or(Ok(()), |file| Err(closed_file(&file)))
    }

    fn is_file(&self, place: &Path) -> bool {
        self.files.read().unwrap_or_else(PoisonError::into_inner).iter().any(|file| file == place)
    }

    fn file_in(&self, place: &Path) -> Option<PathBuf> {
        let files = self.files.read().unwrap_or_else(PoisonError::into_inner);
        files.iter().find(|file| file.starts_with(place)).cloned()
    }
}

fn is_in(folders: &[PathBuf], place: &Path) -> bool {
    folders.iter().any(|closed| place.starts_with(closed))
}

fn lies_in(folders: &[PathBuf], place: &Path) -> bool {
    folders.iter().any(|closed| closed.starts_with(place))
}

fn closed() -> Refusal {
    Refusal::new(Code::OutsideRoot, "Prism's own folder is part of no grant")
}

fn closed_file(file: &Path) -> Refusal {
    let file = quoted(&file.display().to_string());
    let why =
        "Prism is configured by it, or reads a secret from it; it is part of no grant, and only a person changes it";
    Refusal::new(Code::OutsideRoot, format!("{file}: {why}"))
}

/// Where something that is open is; as it was written where the system does not tell.
pub(crate) fn place(handle: impl AsFd, written: &str) -> PathBuf {
    root::place(handle).unwrap_or_else(|_| PathBuf::from(written))
}

/// Returns what of a path is below a folder; `None` if it is not written there.
fn below<'a>(path: &'a str, folder: &str) -> Option<&'a str> {
    let rest = if folder == "/" { path } else { path.strip_prefix(folder)? };
    if rest.is_empty() || rest.starts_with('/') { Some(rest.trim_start_matches('/')) } else { None }
}

fn refusal(path: &str, error: FolderError) -> Refusal {
    let code = match error {
        FolderError::Outside => Code::OutsideRoot,
        FolderError::NotFound => Code::NotFound,
        FolderError::ReadOnly
        | FolderError::NotPermitted
        | FolderError::Restless
        | FolderError::OldKernel
        | FolderError::System(_) => Code::Failed,
        _ => Code::BadArguments,
    };
    let retry_after = matches!(error, FolderError::Restless).then_some(Duration::from_millis(100));
    Refusal { code, message: format!("{}: {error}", quoted(path)), retry_after }
}

/// As much of a path as an error should hold.
fn quoted(path: &str) -> String {
    const MOST: usize = 200;
    match path.char_indices().nth(MOST) {
        None => format!("{path:?}"),
        Some((end, _)) => format!("{:?}…", &path[..end]),
    }
}
