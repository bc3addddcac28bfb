//! Folders for temporary files, each a holder's own. What a daemon that was killed has left is cleared away by the next.

use std::{
    collections::BTreeMap,
    fs::{self, DirBuilder, Permissions},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
};

use prism_core::policy::guarded;
use prism_os::sandbox::{Bubblewrap, NetworkAccess, PrivateFolder, SandboxRoom};

use super::{Usual, copy};

/// A folder for temporary files. It is removed when nobody needs it any more.
#[derive(Debug)]
pub(super) struct TemporaryFolder {
    folder: PathBuf,
    /// It holds more than it may, and goes when what runs in it has ended.
    is_full: AtomicBool,
    /// The copies of the person's caches that it has; nothing of one that is too large.
    copies: Mutex<BTreeMap<PathBuf, Option<PathBuf>>>,
}

impl TemporaryFolder {
    /// Nobody else may look into it; and as it is made, not found, nobody has laid it out for us.
    pub(super) fn make(base: &Path) -> io::Result<Self> {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let base = fs::canonicalize(base)?;
        loop {
            let number = MADE.fetch_add(1, Ordering::Relaxed);
            let folder = base.join(format!("{}{}-{number}", prefix(), std::process::id()));
            match DirBuilder::new().mode(0o700).create(&folder) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => return made.map(|()| Self::at(folder)),
            }
        }
    }

    fn at(folder: PathBuf) -> Self {
        Self { folder, is_full: AtomicBool::new(false), copies: Mutex::default() }
    }

    pub(super) fn path(&self) -> &Path {
        &self.folder
    }

    /// It holds too much: whoever comes next is given another.
    pub(super) fn fill(&self) {
        self.is_full.store(true, Ordering::Relaxed);
    }

    pub(super) fn can_be_used(&self) -> bool {
        !self.is_full.load(Ordering::Relaxed) && self.folder.is_dir()
    }

    /// Lays it out as what a sandbox has of its own.
    pub(super) fn room(
        &self,
        sandbox: &Arc<Bubblewrap>,
        usual: &Usual,
        network: NetworkAccess,
    ) -> io::Result<SandboxRoom> {
        laid_out(&self.folder, sandbox, usual, network)
    }

    /// Copies a cache of the person's, once, to be what a holder finds at `seems`; one that is too large is not. It is a folder that
    /// nothing inside reaches by another way: in the holder's home a link could lead the copy elsewhere. Blocks.
    pub(super) fn copy(&self, cache: &Path, seems: &Path) -> Option<PrivateFolder> {
        let mut copies = self.copies.lock().unwrap_or_else(PoisonError::into_inner);
        let number = copies.len();
        let made = copies.entry(cache.to_owned()).or_insert_with(|| {
            let lies = self.folder.join(format!("copy-{number}"));
            copy::folder(cache, &lies).is_ok().then_some(lies)
        });
        made.clone().map(|lies| PrivateFolder { seems: seems.to_owned(), lies })
    }

    /// Removes it at once.
    pub(super) fn remove(mut self) {
        sweep(&std::mem::take(&mut self.folder));
    }
}

/// Lays out a folder as what a sandbox has of its own: one folder each for temporary files, for the home folder, and for what
/// toolchains write elsewhere.
pub(super) fn laid_out(
    folder: &Path,
    sandbox: &Arc<Bubblewrap>,
    usual: &Usual,
    network: NetworkAccess,
) -> io::Result<SandboxRoom> {
    let made = |name: String, seems: &Path| {
        let private = PrivateFolder { seems: seems.to_owned(), lies: folder.join(name) };
        DirBuilder::new().mode(0o700).recursive(true).create(&private.lies).map(|()| private)
    };
    let temporary = made(TEMPORARY.to_owned(), Path::new("/tmp"))?.lies;
    let home = usual.home.as_deref().map(|home| made("home".to_owned(), home)).transpose()?;
    let elsewhere = usual.elsewhere.iter().enumerate();
    let private =
        elsewhere.map(|(number, seems)| made(format!("elsewhere-{number}"), seems)).collect::<Result<_, _>>()?;
    Ok(SandboxRoom {
        sandbox: sandbox.clone(),
        home,
        temporary,
        private,
        network,
        guarded: guarded::folders().collect(),
    })
}

/// What of it is for temporary files.
pub(super) const TEMPORARY: &str = "tmp";

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let folder = std::mem::take(&mut self.folder);
        if folder.as_os_str().is_empty() {
            return;
        }
        // It may hold a lot, and whoever drops it may be a thread that others wait for.
        let sweeper = thread::Builder::new().name("prism-sweeper".to_owned());
        let _ = sweeper.spawn(move || sweep(&folder));
    }
}

/// Removes a folder, also one with folders that their owner may not write to, as go has its modules in.
fn sweep(folder: &Path) {
    if fs::remove_dir_all(folder).is_ok() {
        return;
    }
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let _ = fs::set_permissions(&folder, Permissions::from_mode(0o700));
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        folders.extend(entries.filter(|one| one.file_type().is_ok_and(|kind| kind.is_dir())).map(|one| one.path()));
    }
    let _ = fs::remove_dir_all(folder);
}

/// Removes what processes that are no more have left. A pid means nothing in another pid namespace, so the name has that too.
pub(super) fn clear(base: &Path) {
    let Ok(own) = fs::metadata("/proc/self") else { return };
    let prefix = prefix();
    let stale = |entry: &fs::DirEntry| {
        let name = entry.file_name();
        let numbers = name.to_str().and_then(|name| name.strip_prefix(&prefix)?.split_once('-'));
        let pid =
            numbers.filter(|(_, number)| number.parse::<u64>().is_ok()).and_then(|(pid, _)| pid.parse::<u32>().ok());
        let is_ours = entry.metadata().is_ok_and(|found| found.is_dir() && found.uid() == own.uid());
        is_ours && pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists())
    };
    for entry in fs::read_dir(base).into_iter().flatten().flatten().filter(stale) {
        drop(TemporaryFolder::at(entry.path()));
    }
}

fn prefix() -> String {
    let namespace = fs::metadata("/proc/self/ns/pid").map_or(0, |found| found.ino());
    format!("prism-{namespace}-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_dead_have_left_is_cleared_away() {
        let base = tempfile::tempdir().unwrap();
        let made = TemporaryFolder::make(base.path()).unwrap();
        let mut gone = std::process::Command::new("true").spawn().unwrap();
        gone.wait().unwrap();
        let left = base.path().join(format!("{}{}-7", prefix(), gone.id()));
        let others = ["prism-1-2-3", "prism-x", "else"].map(|name| base.path().join(name));
        for folder in others.iter().chain([&left]) {
            fs::create_dir_all(folder.join("in")).unwrap();
        }
        clear(base.path());
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while left.exists() && std::time::Instant::now() < deadline {
            thread::yield_now();
        }
        assert!(!left.exists() && made.path().exists() && others.iter().all(|folder| folder.exists()));
        let path = made.path().to_owned();
        made.remove();
        assert!(!path.exists());
    }

    // It shows for whoever is not root.
    #[test]
    fn what_may_not_be_written_is_removed_too() {
        let base = tempfile::tempdir().unwrap();
        let made = TemporaryFolder::make(base.path()).unwrap();
        let module = made.path().join("mod/nest@v1.0.0");
        fs::create_dir_all(&module).unwrap();
        fs::write(module.join("nest.go"), "package nest\n").unwrap();
        fs::set_permissions(&module, Permissions::from_mode(0o555)).unwrap();
        made.remove();
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 0);
    }
}
