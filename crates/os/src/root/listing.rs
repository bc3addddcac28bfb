//! Folders that are gone through, many of them: each is opened once, to be listed and to open what is in it. A name is never
//! followed if it is a link, and never out of its folder, so whatever is swapped meanwhile leads nowhere.

use std::{
    ffi::OsStr,
    fs::File,
    mem::MaybeUninit,
    ops::ControlFlow,
    os::{fd::AsFd, unix::ffi::OsStrExt},
    path::Path,
};

use rustix::fs::{AtFlags, FileType, OFlags, RawDir, ResolveFlags, fstat, statat};

use super::{BENEATH, FileKind, FolderError, FolderHandle, FoundEntry, READ, check, open, regular};

/// A folder that is open to be listed.
#[derive(Debug)]
pub struct FolderListing(FolderHandle);

/// Room for the names of one call to the kernel. One for each thread will do.
pub struct NameBuffer(Box<[MaybeUninit<u8>]>);

/// Some hundred names, and always more than one.
const ROOM: usize = 32 * 1024;

const LISTED: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

impl FolderHandle {
    /// Opens the folder once more, to be listed.
    pub fn listing(&self) -> Result<FolderListing, FolderError> {
        Ok(FolderListing(Self(open(self, Path::new("."), LISTED, BENEATH)?)))
    }

    /// Opens a folder beneath this one by a way on which there is no link at all; an empty path is this one again.
    pub fn listing_beneath(&self, path: &Path) -> Result<FolderListing, FolderError> {
        if path.as_os_str().is_empty() {
            return self.listing();
        }
        check(path)?;
        Ok(FolderListing(Self(open(self, path, LISTED, BENEATH | ResolveFlags::NO_SYMLINKS)?)))
    }
}

impl FolderListing {
    pub fn root(&self) -> &FolderHandle {
        &self.0
    }

    /// Opens a folder in it.
    pub fn folder(&self, name: &OsStr) -> Result<Self, FolderError> {
        self.0.listing_beneath(Path::new(name))
    }

    /// Opens a file in it to read.
    pub fn file(&self, name: &OsStr) -> Result<(File, FoundEntry), FolderError> {
        let name = Path::new(name);
        check(name)?;
        let file = regular(open(&self.0, name, READ | OFlags::NOFOLLOW, BENEATH | ResolveFlags::NO_SYMLINKS)?)?;
        let found = FoundEntry::of(&fstat(&file)?);
        Ok((file, found))
    }

    /// Tells what there is by a name, of a link the link itself; `None` if nothing is, or what cannot be looked at.
    pub fn kind_of(&self, name: &OsStr) -> Option<FileKind> {
        let stat = statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some(FileKind::of(FileType::from_raw_mode(stat.st_mode)))
    }

    /// Names what is in it, in no order, without `.` and `..`. It can be gone through once.
    pub fn each(
        &self,
        names: &mut NameBuffer,
        mut told: impl FnMut(&OsStr, FileKind) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, FolderError> {
        let mut dir = RawDir::new(self.0.as_fd(), &mut names.0);
        while let Some(entry) = dir.next() {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b"..") {
                continue;
            }
            let name = OsStr::from_bytes(name);
            let kind = match entry.file_type() {
                // Some file systems do not say it in the listing.
                FileType::Unknown => match self.kind_of(name) {
                    Some(kind) => kind,
                    None => continue,
                },
                listed => FileKind::of(listed),
            };
            if told(name, kind).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

impl Default for NameBuffer {
    fn default() -> Self {
        Self(Box::new_uninit_slice(ROOM))
    }
}
