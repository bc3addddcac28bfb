//! Folders by handle. What lies beneath a granted folder is opened relative to that folder's handle, and the kernel
//! sees to it on the way that nothing leads out: no `..`, no link, no mount, however names are swapped meanwhile. Which
//! folders are granted, and by whom, is decided elsewhere.
//!
//! Nothing here looks at a name first and opens it later: what was opened is what is read, and what acts on a name (`spot.rs`)
//! acts in a folder that is open. So a name that is swapped in between leads to a refusal or to another file beneath the
//! root, never outside.

mod entries;
mod error;
mod listing;
mod spot;

use std::{
    ffi::OsStr,
    fs::{self, File},
    io,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat2},
    io::Errno,
};

pub use entries::{FolderEntries, FolderEntry};
pub use error::FolderError;
pub use listing::{FolderListing, NameBuffer};
pub use spot::{FileKind, FileStamp, FoundEntry, RenameMode, Spot};

/// A folder that is open. What is in it is reached through it, and nothing else is.
#[derive(Debug)]
pub struct FolderHandle(OwnedFd);

/// A folder that a child can be started in, whatever has become of its name by then. It must live until the child is
/// started.
#[derive(Debug)]
pub struct WorkDir(OwnedFd);

/// What holds for every way: it stays beneath its folder, on the same mount, and through no link of `/proc`'s, which lead
/// anywhere.
const BENEATH: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS).union(ResolveFlags::NO_XDEV);

/// The longest path and name that Linux knows, less the NUL.
const MAX_PATH: usize = 4095;
const MAX_NAME: usize = 255;

/// How often a way is tried again that something was renamed on. The kernel cannot tell then whether a `..` on it has led
/// out, and says so; each try needs microseconds.
const TRIES: usize = 256;

/// Returns the folder that a name leads to in the end, for whoever asks a person about it: what is approved should be the
/// folder itself, as `FolderHandle::open` follows no link.
pub fn real_path(path: &Path) -> io::Result<PathBuf> {
    fs::canonicalize(path)
}

// === impl FolderHandle ===

impl FolderHandle {
    /// Opens a folder by its absolute name, on which there is no link: otherwise whoever can write one of the folders on the
    /// way could make the approved name lead anywhere.
    pub fn open(base: &Path) -> Result<Self, FolderError> {
        check(base)?;
        if !base.is_absolute() {
            return Err(FolderError::Relative);
        }
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        open(CWD, base, OFlags::PATH | OFlags::DIRECTORY, resolve).map(Self)
    }

    /// Opens a folder beneath this one; an empty path is this one again. Links are followed as far as they stay beneath.
    pub fn beneath(&self, path: &Path) -> Result<Self, FolderError> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        check(path)?;
        open(&self.0, path, OFlags::PATH | OFlags::DIRECTORY, BENEATH).map(Self)
    }

    /// Opens a file to read. Links are followed as far as they stay beneath. What is neither file nor folder, a pipe say, is
    /// refused and not waited for.
    pub fn open_file(&self, path: &Path) -> Result<File, FolderError> {
        check(path)?;
        regular(open(&self.0, path, READ, BENEATH)?)
    }

    /// Opens the folder that a path's last name is in, so that something can be done with that name.
    pub fn spot(&self, path: &Path) -> Result<Spot, FolderError> {
        check(path)?;
        // `Path` would take `a/.` for `a`, and `a/..` has no file name: what is written counts.
        let bytes = path.as_os_str().as_bytes();
        let end = bytes.iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
        let start = bytes[..end].iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
        let (way, name) = (&bytes[..start], &bytes[start..end]);
        if matches!(name, b"" | b"." | b"..") {
            return Err(FolderError::NoName);
        }
        let way = Path::new(OsStr::from_bytes(way));
        Ok(Spot::new(self.beneath(way)?, OsStr::from_bytes(name).to_owned()))
    }

    /// Lists what is in it.
    pub fn entries(&self) -> Result<FolderEntries, FolderError> {
        FolderEntries::of(self)
    }

    /// Tells whether this and the other are one folder.
    pub fn is(&self, other: &Self) -> bool {
        let stat = |root: &Self| fstat(&root.0).map(|stat| (stat.st_dev, stat.st_ino)).ok();
        stat(self).is_some() && stat(self) == stat(other)
    }

    /// Returns the user that it belongs to.
    pub fn owner(&self) -> Result<u32, FolderError> {
        Ok(fstat(&self.0)?.st_uid)
    }

    /// Keeps the folder open for a child to be started in.
    pub fn dir_for_command(&self) -> Result<WorkDir, FolderError> {
        open(&self.0, Path::new("."), OFlags::PATH | OFlags::DIRECTORY, BENEATH).map(WorkDir)
    }
}

impl AsFd for FolderHandle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

// === impl WorkDir ===

impl WorkDir {
    /// Returns a name that leads to the very folder in a child of this process, until its program starts: the descriptors
    /// are inherited, and only then closed.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.0.as_raw_fd()))
    }
}

/// Returns where something that is open is at the moment, as the kernel has it.
pub fn place(handle: impl AsFd) -> io::Result<PathBuf> {
    fs::read_link(format!("/proc/self/fd/{}", handle.as_fd().as_raw_fd()))
}

/// A pipe without a writer is not waited for, and a terminal does not become ours.
const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

fn open(folder: impl AsFd, path: &Path, flags: OFlags, resolve: ResolveFlags) -> Result<OwnedFd, FolderError> {
    for _ in 0..TRIES {
        match openat2(folder.as_fd(), path, flags | OFlags::CLOEXEC, Mode::empty(), resolve) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => return Err(error.into()),
            Ok(opened) => return Ok(opened),
        }
    }
    Err(FolderError::Restless)
}

fn regular(opened: OwnedFd) -> Result<File, FolderError> {
    match FileType::from_raw_mode(fstat(&opened)?.st_mode) {
        FileType::RegularFile => Ok(File::from(opened)),
        FileType::Directory => Err(FolderError::IsFolder),
        _ => Err(FolderError::Special),
    }
}

/// Refuses what cannot be a path, so that no call has to be asked what it makes of it.
fn check(path: &Path) -> Result<(), FolderError> {
    let bytes = path.as_os_str().as_bytes();
    if bytes.is_empty() {
        return Err(FolderError::Empty);
    }
    if bytes.contains(&0) {
        return Err(FolderError::Nul);
    }
    if bytes.len() > MAX_PATH || bytes.split(|byte| *byte == b'/').any(|name| name.len() > MAX_NAME) {
        return Err(FolderError::TooLong);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
