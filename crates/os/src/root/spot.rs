//! A name in an open folder, and what can be done with it: create, replace, remove, rename. A link by that name is never
//! followed: it is removed or renamed itself, and for the rest it is refused.
//!
//! A file is replaced, not written to. What was behind the name stays as it is for whoever else has it, open or by a hard
//! link; and a process that is killed half way leaves the old file or the new one.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::Write,
    os::fd::{AsRawFd, OwnedFd},
    path::Path,
    time::{Duration, SystemTime},
};

use rustix::{
    fs::{
        AtFlags, CWD, FileType, Gid, Mode, OFlags, RenameFlags, ResolveFlags, Stat, Uid, fchmod, fchown, fstat, fsync,
        linkat, mkdirat, openat, renameat_with, unlinkat,
    },
    io::Errno,
    rand::{GetRandomFlags, getrandom},
};

use super::{BENEATH, FolderError, FolderHandle, READ, open, regular};

/// A name in an open folder. Whether something is there is another matter.
#[derive(Debug)]
pub struct Spot {
    folder: FolderHandle,
    name: OsString,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    File,
    Folder,
    Link,
    /// A pipe, a socket, a device.
    Special,
}

/// What there is by a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundEntry {
    pub kind: FileKind,
    pub bytes: u64,
    pub stamp: FileStamp,
    mode: u32,
    owner: (u32, u32),
}

/// What changes as soon as a file is another, or is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStamp {
    /// The file system and the file in it.
    id: (u64, u64),
    bytes: i64,
    written: (i64, u64),
    changed: (i64, u64),
}

/// What becomes of something that is already there by the new name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenameMode {
    Refuse,
    Replace,
}

// === impl Spot ===

impl Spot {
    pub(super) fn new(folder: FolderHandle, name: OsString) -> Self {
        Self { folder, name }
    }

    pub fn folder(&self) -> &FolderHandle {
        &self.folder
    }

    pub fn name(&self) -> &OsStr {
        &self.name
    }

    /// Tells what is there; of a link, the link itself.
    pub fn look(&self) -> Result<Option<FoundEntry>, FolderError> {
        match self.open(OFlags::PATH | OFlags::NOFOLLOW) {
            Ok(opened) => Ok(Some(FoundEntry::of(&fstat(&opened)?))),
            Err(FolderError::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Opens the file that is there to read it.
    pub fn open_file(&self) -> Result<(File, FoundEntry), FolderError> {
        let file = regular(self.open(READ | OFlags::NOFOLLOW)?)?;
        let found = FoundEntry::of(&fstat(&file)?);
        Ok((file, found))
    }

    /// Opens the folder that is there.
    pub fn open_folder(&self) -> Result<FolderHandle, FolderError> {
        self.open(OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW).map(FolderHandle)
    }

    fn open(&self, flags: OFlags) -> Result<OwnedFd, FolderError> {
        open(&self.folder, Path::new(&self.name), flags, BENEATH | ResolveFlags::NO_SYMLINKS)
    }

    /// Makes a file of that name, all of it at once; refused if anything is there.
    pub fn create(&self, bytes: &[u8]) -> Result<(), FolderError> {
        let mode = Mode::from_raw_mode(0o666);
        if let Some(file) = nameless(&self.folder, mode) {
            let file = fill(file, bytes, None)?;
            // A link takes nobody's place, so it needs no other name before.
            match link(&file, &self.folder, &self.name) {
                Ok(()) => {
                    sync(&self.folder);
                    return Ok(());
                }
                Err(Errno::EXIST) => return Err(Errno::EXIST.into()),
                Err(_) => {}
            }
        }
        let temporary = TemporaryFile::write(&self.folder, bytes, mode, None)?;
        temporary.become_named(&self.name, RenameMode::Refuse)
    }

    /// Makes a folder of that name; refused if anything is there.
    pub fn create_folder(&self) -> Result<(), FolderError> {
        mkdirat(&self.folder, &self.name, Mode::from_raw_mode(0o777))?;
        sync(&self.folder);
        Ok(())
    }

    /// Puts a new file in the place of the one that was `found` there, with its mode and its owner.
    pub fn replace(&self, bytes: &[u8], found: &FoundEntry) -> Result<(), FolderError> {
        if found.kind != FileKind::File {
            return Err(if found.kind == FileKind::Link { FolderError::Linked } else { FolderError::Special });
        }
        if found.is_read_only() {
            return Err(FolderError::ReadOnly);
        }
        let temporary = TemporaryFile::write(&self.folder, bytes, Mode::from_raw_mode(0o600), Some(found))?;
        temporary.become_named(&self.name, RenameMode::Replace)
    }

    /// Removes the file, the link or the empty folder that is there.
    pub fn remove(&self, kind: FileKind) -> Result<(), FolderError> {
        let flags = if kind == FileKind::Folder { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        unlinkat(&self.folder, &self.name, flags)?;
        sync(&self.folder);
        Ok(())
    }

    /// Gives what is there another name, in its folder or in another.
    pub fn rename(&self, to: &Self, clobber: RenameMode) -> Result<(), FolderError> {
        rename((&self.folder, &self.name), (&to.folder, &to.name), clobber)?;
        sync(&self.folder);
        sync(&to.folder);
        Ok(())
    }
}

// === impl FileKind ===

impl FileKind {
    pub(super) fn of(listed: FileType) -> Self {
        match listed {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Folder,
            FileType::Symlink => Self::Link,
            _ => Self::Special,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Folder => "folder",
            Self::Link => "link",
            Self::Special => "special",
        }
    }
}

// === impl FoundEntry ===

impl FoundEntry {
    pub(super) fn of(stat: &Stat) -> Self {
        Self {
            kind: FileKind::of(FileType::from_raw_mode(stat.st_mode)),
            bytes: u64::try_from(stat.st_size).unwrap_or(0),
            stamp: FileStamp::of(stat),
            mode: stat.st_mode & 0o7777,
            owner: (stat.st_uid, stat.st_gid),
        }
    }

    /// Nobody may write it, its owner included. To replace it would be possible, and not what was meant.
    pub fn is_read_only(&self) -> bool {
        self.mode & 0o222 == 0
    }
}

impl FileStamp {
    pub fn of_file(file: &File) -> Result<Self, FolderError> {
        Ok(Self::of(&fstat(file)?))
    }

    /// Whether the last write is longer ago than this: before that, another one may bear the same time.
    pub fn is_older_than(&self, age: Duration) -> bool {
        let (Ok(seconds), nanoseconds) = (u64::try_from(self.changed.0), self.changed.1) else { return false };
        let changed = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_nanos(nanoseconds);
        changed.elapsed().is_ok_and(|passed| passed > age)
    }

    #[expect(clippy::unnecessary_cast, reason = "the fields' types are not the same on every machine")]
    fn of(stat: &Stat) -> Self {
        Self {
            id: (stat.st_dev as u64, stat.st_ino as u64),
            bytes: stat.st_size as i64,
            written: (stat.st_mtime as i64, stat.st_mtime_nsec as u64),
            changed: (stat.st_ctime as i64, stat.st_ctime_nsec as u64),
        }
    }
}

/// A file under a name that nobody knows, until it gets its own. Dropped before that, it is removed.
///
/// Where the kernel can, it has no name at all while it is written: of a process that is killed meanwhile nothing is left.
/// Only between its first name and its own, which are two calls of the kernel's, all of it could be left under the first.
struct TemporaryFile<'a> {
    folder: &'a FolderHandle,
    name: String,
    is_kept: bool,
}

impl<'a> TemporaryFile<'a> {
    fn write(
        folder: &'a FolderHandle,
        bytes: &[u8],
        mode: Mode,
        like: Option<&FoundEntry>,
    ) -> Result<Self, FolderError> {
        if let Some(file) = nameless(folder, mode) {
            let file = fill(file, bytes, like)?;
            let named = Self::named(folder, |name| link(&file, folder, OsStr::new(name)));
            if let Ok(((), this)) = named {
                return Ok(this);
            }
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let (file, this) = Self::named(folder, |name| openat(folder, name, flags, mode))?;
        fill(file, bytes, like)?;
        Ok(this)
    }

    /// Finds a name that is free, and has it made.
    fn named<T>(folder: &'a FolderHandle, make: impl Fn(&str) -> Result<T, Errno>) -> Result<(T, Self), FolderError> {
        loop {
            let mut random = [0; 8];
            getrandom(&mut random, GetRandomFlags::empty())?;
            let name = format!(".prism-{:016x}.tmp", u64::from_ne_bytes(random));
            match make(&name) {
                Err(Errno::EXIST | Errno::INTR) => {}
                Err(error) => return Err(error.into()),
                Ok(made) => return Ok((made, Self { folder, name, is_kept: false })),
            }
        }
    }

    fn become_named(mut self, name: &OsStr, clobber: RenameMode) -> Result<(), FolderError> {
        rename((self.folder, OsStr::new(&self.name)), (self.folder, name), clobber)?;
        self.is_kept = true;
        sync(self.folder);
        Ok(())
    }
}

impl Drop for TemporaryFile<'_> {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = unlinkat(self.folder, &self.name, AtFlags::empty());
        }
    }
}

/// Puts everything into a new file, on the disk.
fn fill(file: OwnedFd, bytes: &[u8], like: Option<&FoundEntry>) -> Result<File, FolderError> {
    if let Some(found) = like {
        // Not for us to give away: then it is ours from now on.
        let (user, group) = found.owner;
        let _ = fchown(&file, Some(Uid::from_raw(user)), Some(Gid::from_raw(group)));
        // As the kernel has it when a file is written to: it runs as nobody else any more.
        fchmod(&file, Mode::from_raw_mode(found.mode & 0o1777))?;
    }
    let mut file = File::from(file);
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(FolderError::System)?;
    Ok(file)
}

/// Opens a file without a name. `None` where the file system, or the kernel, has no such thing.
#[cfg(target_os = "linux")]
fn nameless(folder: &FolderHandle, mode: Mode) -> Option<OwnedFd> {
    openat(folder, ".", OFlags::WRONLY | OFlags::TMPFILE | OFlags::CLOEXEC, mode).ok()
}

/// Gives a file without a name one.
#[cfg(target_os = "linux")]
fn link(file: &File, folder: &FolderHandle, name: &OsStr) -> Result<(), Errno> {
    let open = format!("/proc/self/fd/{}", file.as_raw_fd());
    linkat(CWD, open, folder, name, AtFlags::SYMLINK_FOLLOW)
}

#[cfg(not(target_os = "linux"))]
fn nameless(_: &FolderHandle, _: Mode) -> Option<OwnedFd> {
    None
}

#[cfg(not(target_os = "linux"))]
fn link(_: &File, _: &FolderHandle, _: &OsStr) -> Result<(), Errno> {
    Err(Errno::NOSYS)
}

fn rename(from: (&FolderHandle, &OsStr), to: (&FolderHandle, &OsStr), clobber: RenameMode) -> Result<(), FolderError> {
    let flags = if clobber == RenameMode::Refuse { RenameFlags::NOREPLACE } else { RenameFlags::empty() };
    renameat_with(from.0, from.1, to.0, to.1, flags).map_err(|error| match error {
        Errno::XDEV => FolderError::Apart,
        Errno::INVAL => FolderError::IntoItself,
        error => error.into(),
    })
}

/// Has the new names on the disk as well. The change itself is made, so a folder that cannot be read is no error.
fn sync(folder: &FolderHandle) {
    if let Ok(opened) = open(folder, Path::new("."), OFlags::RDONLY | OFlags::DIRECTORY, BENEATH) {
        let _ = fsync(opened);
    }
}
