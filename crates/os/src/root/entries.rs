//! What is in an open folder. Links are listed and not followed, so no listing leads out, or in a circle.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt,
    path::Path,
};

use rustix::fs::{Dir, FileType, OFlags};

use super::{BENEATH, FileKind, FolderError, FolderHandle, Spot, open};

/// One name in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderEntry {
    pub name: OsString,
    pub kind: FileKind,
}

/// The names in a folder, in no order, without `.` and `..`.
pub struct FolderEntries {
    folder: FolderHandle,
    dir: Dir,
}

impl FolderEntries {
    pub(super) fn of(root: &FolderHandle) -> Result<Self, FolderError> {
        let opened = open(root, Path::new("."), OFlags::RDONLY | OFlags::DIRECTORY, BENEATH)?;
        Ok(Self { folder: root.beneath(Path::new(""))?, dir: Dir::new(opened)? })
    }
}

impl Iterator for FolderEntries {
    type Item = Result<FolderEntry, FolderError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let entry = match self.dir.read()? {
                Ok(entry) => entry,
                Err(error) => return Some(Err(error.into())),
            };
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b"..") {
                continue;
            }
            let name = OsStr::from_bytes(name).to_owned();
            let kind = match entry.file_type() {
                // Some file systems do not say it in the listing.
                FileType::Unknown => match self.kind_of(&name) {
                    Some(kind) => kind,
                    // Gone, or another mount's.
                    None => continue,
                },
                listed => FileKind::of(listed),
            };
            return Some(Ok(FolderEntry { name, kind }));
        }
    }
}

impl FolderEntries {
    fn kind_of(&self, name: &OsStr) -> Option<FileKind> {
        let folder = self.folder.beneath(Path::new("")).ok()?;
        Spot::new(folder, name.to_owned()).look().ok().flatten().map(|found| found.kind)
    }
}
