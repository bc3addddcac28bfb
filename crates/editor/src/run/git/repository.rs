//! The repository that a folder belongs to, looked for from the folder up to the granted one and never above it. All that git
//! will use of it must lie in the granted folders: the work tree, its `.git`, wherever a linked work tree or a submodule has
//! that, and whatever objects it borrows. The kernel says so as each is opened, not its name.

use std::{
    fs,
    io::Read,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use prism_core::policy::{Code, Refusal};
use prism_os::root::{FileKind, FolderError, FolderHandle, WorkDir};

use crate::roots::{GrantedRoots, ResolvedPath, place};

/// A repository with its work tree.
#[derive(Debug)]
pub(super) struct Repository {
    /// Where the work tree is; git is started in it.
    pub(super) worktree: PathBuf,
    pub(super) folder: FolderHandle,
    work_dir: WorkDir,
    /// What `.git` is or points to, and what it shares with others of the same repository: both the same but for linked work
    /// trees.
    pub(super) own: PathBuf,
    pub(super) common: PathBuf,
    /// The same by handle.
    held: (FolderHandle, FolderHandle),
    /// Object folders that it borrows from.
    pub(super) borrowed: Vec<PathBuf>,
    /// What git is told: relative where the work tree holds it, so that it is the one of the very folder.
    pub(super) git_dir: PathBuf,
}

/// A file in which git points to a folder is shorter than this; so is a list of folders that are borrowed from.
const MAX_POINTER: u64 = 64 << 10;

/// What git reads and writes of its folder by fixed names. If one is a link that leads out, everything would.
const FIXED: [&str; 15] = [
    "HEAD",
    "index",
    "config",
    "config.worktree",
    "packed-refs",
    "objects",
    "objects/info",
    "objects/pack",
    "refs",
    "refs/heads",
    "refs/remotes",
    "logs",
    "logs/refs",
    "logs/refs/heads",
    "info",
];

impl Repository {
    /// Finds the repository of a folder, for git to work in; of the first granted one if none is named.
    pub(super) fn find(roots: &GrantedRoots, cwd: Option<&str>) -> Result<Self, Refusal> {
        let repository = Self::look(roots, cwd)?;
        // git would list, add and check out what is in Prism's own folder like all else.
        for place in [&repository.worktree, &repository.own, &repository.common] {
            roots.refuse_around_closed(place)?;
        }
        Ok(repository)
    }

    /// Finds it, for somebody who only wants to know what is checked out.
    pub(super) fn look(roots: &GrantedRoots, cwd: Option<&str>) -> Result<Self, Refusal> {
        let way = cwd.map_or_else(|| roots.first(), |cwd| roots.resolve(cwd))?;
        let start = place(&way.folder()?, way.written());
        let root = place(way.root(), way.written());
        // It was opened beneath it, so this fails only if one of the two was moved meanwhile.
        let beneath = start.strip_prefix(&root).map_err(|_| way.changed("it leads elsewhere now"))?;
        for step in beneath.ancestors() {
            let folder = way.root().beneath(step).map_err(|error| way.refusal(error))?;
            if let Some(repository) = Self::of(folder, roots)? {
                return Ok(repository);
            }
        }
        let message = format!(
            "there is no git repository at {:?}, nor above it up to the granted folder {:?}; further up is not looked",
            start.display().to_string(),
            root.display().to_string()
        );
        Err(Refusal::new(Code::NotFound, message))
    }

    /// Returns the repository whose work tree a folder is; `None` if it is none.
    fn of(folder: FolderHandle, roots: &GrantedRoots) -> Result<Option<Self>, Refusal> {
        let worktree = place(&folder, ".");
        let dot_git = worktree.join(".git");
        let found = folder.spot(Path::new(".git")).and_then(|spot| spot.look()).ok().flatten();
        let (own, git_dir) = match found.map(|found| found.kind) {
            None | Some(FileKind::Special) => return Ok(None),
            Some(FileKind::File) => {
                let Some(target) = pointer(&folder, ".git", "gitdir: ") else { return Ok(None) };
                let own = granted(roots, &worktree.join(target), "its repository")?;
                let place = place(&own, ".git");
                (own, place)
            }
            Some(FileKind::Folder) => {
                let own = folder.beneath(Path::new(".git")).map_err(|error| refusal(&dot_git, &error))?;
                (own, PathBuf::from(".git"))
            }
            Some(FileKind::Link) => {
                let own = granted(roots, &dot_git, "its repository")?;
                let place = place(&own, ".git");
                (own, place)
            }
        };
        if !is_repository(&own) {
            return Ok(None);
        }
        let own_place = place(&own, ".git");
        let common = match pointer(&own, "commondir", "") {
            Some(target) => granted(roots, &own_place.join(target), "the repository that it is a work tree of")?,
            None => own.beneath(Path::new("")).map_err(|error| refusal(&own_place, &error))?,
        };
        let common_place = place(&common, ".git");
        for (held, place) in [(&own, &own_place), (&common, &common_place)] {
            is_ours(held, place)?;
            for name in FIXED {
                if let Err(error @ FolderError::Outside) = held.open_file(Path::new(name)) {
                    return Err(refusal(&place.join(name), &error));
                }
            }
        }
        is_ours(&folder, &worktree)?;
        let borrowed = borrowed(&common, &common_place, roots)?;
        let work_dir = folder.dir_for_command().map_err(|error| refusal(&worktree, &error))?;
        let (own, held) = (own_place, (own, common));
        Ok(Some(Self { worktree, folder, work_dir, own, common: common_place, held, borrowed, git_dir }))
    }

    /// What is the work tree's own of `.git`, and what it shares.
    pub(super) fn halves(&self) -> (&FolderHandle, &FolderHandle) {
        (&self.held.0, &self.held.1)
    }

    /// Where a child is to be started: the very folder, whatever its name leads to by then.
    pub(super) fn cwd(&self) -> PathBuf {
        self.work_dir.path()
    }

    /// Returns a path of an agent's as git has it: beneath the work tree.
    pub(super) fn path_of(&self, way: &ResolvedPath) -> Result<PathBuf, Refusal> {
        // The last name is not followed: a link is a thing of its own to git.
        let real = match way.nearest() {
            Ok(nearest) => PathBuf::from(nearest.path()),
            Err(_) => place(&way.folder()?, way.written()),
        };
        let Ok(beneath) = real.strip_prefix(&self.worktree) else {
            let worktree = self.worktree.display().to_string();
            return Err(way.wrong(&format!("it is not in the work tree {worktree:?}")));
        };
        if beneath.components().next().is_some_and(|first| first.as_os_str() == ".git") {
            return Err(way.wrong("it is git's own"));
        }
        Ok(if beneath.as_os_str().is_empty() { PathBuf::from(".") } else { beneath.to_owned() })
    }
}

/// Opens a folder that git is pointed to.
fn granted(roots: &GrantedRoots, path: &Path, what: &str) -> Result<FolderHandle, Refusal> {
    let written = path.display().to_string();
    let found = roots.resolve(&written).and_then(|way| way.folder());
    found.map_err(|refusal| match refusal.code {
        Code::OutsideRoot => {
            Refusal::new(Code::OutsideRoot, format!("{what} lies at {written:?}, outside of the granted folders"))
        }
        _ => refusal,
    })
}

/// Reads what a file of one line points to.
fn pointer(folder: &FolderHandle, name: &str, prefix: &str) -> Option<PathBuf> {
    let file = folder.open_file(Path::new(name)).ok()?;
    let mut text = String::new();
    file.take(MAX_POINTER).read_to_string(&mut text).ok()?;
    let target = text.lines().next()?.strip_prefix(prefix)?.trim_end();
    if target.is_empty() { None } else { Some(PathBuf::from(target)) }
}

/// What git goes by, too.
fn is_repository(own: &FolderHandle) -> bool {
    let has = |name: &str| own.spot(Path::new(name)).and_then(|spot| spot.look()).is_ok_and(|found| found.is_some());
    has("HEAD") && (has("commondir") || has("objects") && has("refs"))
}

/// git trusts only what is its user's own (`safe.directory`), and does not look if it is told where the repository is.
fn is_ours(folder: &FolderHandle, place: &Path) -> Result<(), Refusal> {
    let me = fs::metadata("/proc/self").map(|about| about.uid());
    let owner = folder.owner();
    if me.is_ok_and(|me| owner.is_ok_and(|owner| owner == me)) {
        return Ok(());
    }
    let message = format!("{:?} belongs to another user, and git trusts none of theirs", place.display().to_string());
    Err(Refusal::new(Code::Failed, message))
}

/// Returns the object folders that a repository borrows from, all of which must be granted.
fn borrowed(common: &FolderHandle, place: &Path, roots: &GrantedRoots) -> Result<Vec<PathBuf>, Refusal> {
    let Ok(file) = common.open_file(Path::new("objects/info/alternates")) else { return Ok(Vec::new()) };
    let mut text = String::new();
    let read = file.take(MAX_POINTER).read_to_string(&mut text);
    read.map_err(|_| Refusal::new(Code::Failed, "objects/info/alternates cannot be read"))?;
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let granted = |line: &str| granted(roots, &place.join("objects").join(line), "what it borrows objects from");
    lines.map(|line| Ok(crate::roots::place(&granted(line)?, line))).collect()
}

fn refusal(path: &Path, error: &FolderError) -> Refusal {
    let code = if matches!(error, FolderError::Outside) { Code::OutsideRoot } else { Code::Failed };
    Refusal::new(code, format!("{:?}: {error}", path.display().to_string()))
}
