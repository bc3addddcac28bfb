//! The files of a log: `audit-000001.jsonl`, `audit-000002.jsonl`, … are full, `audit.jsonl` is the newest.

use std::{
    fs::{self, File, OpenOptions, Permissions},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use rustix::fs::OFlags;

pub(super) const CURRENT: &str = "audit.jsonl";

/// One file, open for reading. Its name may have changed meanwhile.
#[derive(Debug)]
pub(super) struct LogFile {
    pub(super) path: PathBuf,
    pub(super) file: File,
}

/// Makes the folder, for its owner alone.
pub(super) fn make(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    fs::set_permissions(folder, Permissions::from_mode(0o700))
}

/// Opens a file for adding to it, for its owner alone. Not by way of a link: that could lead anywhere.
pub(super) fn open_to_add(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(NO_FOLLOW).open(path)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    Ok(file)
}

/// Which std does not name.
pub(super) const NO_FOLLOW: i32 = OFlags::NOFOLLOW.bits().cast_signed();

/// Opens all files of a log, the oldest first. It may be written to meanwhile, and begin a new file.
pub(super) fn all(folder: &Path) -> io::Result<Vec<LogFile>> {
    // First the newest: if it is full a moment later it is found under both names, and not under none.
    let path = folder.join(CURRENT);
    let newest = match File::open(&path) {
        Ok(file) => Some(LogFile { path, file }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let inode =
        newest.as_ref().map(|newest| newest.file.metadata()).transpose()?.map(|found| (found.dev(), found.ino()));
    let mut files = Vec::new();
    for (_, path) in full(folder)? {
        match File::open(&path) {
            Ok(file) => {
                let found = file.metadata()?;
                if inode != Some((found.dev(), found.ino())) {
                    files.push(LogFile { path, file });
                }
            }
            // It was the oldest, and was let go of.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    files.extend(newest);
    Ok(files)
}

/// Returns the full files and their numbers, the oldest first.
pub(super) fn full(folder: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut full = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let digits = name.strip_prefix("audit-").and_then(|rest| rest.strip_suffix(".jsonl"));
        if let Some(number) = digits.and_then(|digits| digits.parse().ok()) {
            full.push((number, path));
        }
    }
    full.sort();
    Ok(full)
}

/// The name of a full file.
pub(super) fn full_name(number: u64) -> String {
    format!("audit-{number:06}.jsonl")
}
