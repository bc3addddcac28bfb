//! Copies of the person's caches, for tools that write to what they read. All of a folder is copied or nothing: a part of a cache
//! is mended by who has a network, and is a riddle to who has none.

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

/// What is copied at most: the whole costs a holder's first command some tenths of a second, once.
const MAX_FILES: usize = 10_000;
const MAX_BYTES: u64 = 256 << 20;

/// Copies the files of a folder, and of all beneath it, to where nobody else may look. Blocks.
pub(super) fn folder(from: &Path, to: &Path) -> io::Result<()> {
    let (mut folders, mut files, mut bytes) = (vec![PathBuf::new()], Vec::new(), 0);
    let mut at = 0;
    while let Some(folder) = folders.get(at).cloned() {
        at += 1;
        let entries = match fs::read_dir(from.join(&folder)) {
            // There is no such cache yet.
            Err(error) if error.kind() == io::ErrorKind::NotFound && at == 1 => return Ok(()),
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            // Not followed where it is a link: what it leads to is no part of the cache.
            let found = entry.metadata()?;
            let name = folder.join(entry.file_name());
            if found.is_dir() {
                folders.push(name);
            } else if found.is_file() {
                bytes += found.len();
                files.push(name);
            }
        }
        if folders.len() + files.len() > MAX_FILES || bytes > MAX_BYTES {
            return Err(io::Error::other("it is too large"));
        }
    }
    let mut builder = DirBuilder::new();
    builder.mode(0o700).recursive(true);
    folders.iter().try_for_each(|folder| builder.create(to.join(folder)))?;
    files.iter().try_for_each(|file| match fs::copy(from.join(file), to.join(file)) {
        // A tool of the person's has taken it away meanwhile.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        copied => copied.map(drop),
    })
}

#[cfg(test)]
mod tests {
    use std::{fs::File, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn a_copy_has_what_the_folder_has_and_no_link() {
        let base = tempfile::tempdir().unwrap();
        let (from, to) = (base.path().join("from"), base.path().join("a/to"));
        fs::create_dir_all(from.join("one/two")).unwrap();
        fs::write(from.join("one/two/file"), "text").unwrap();
        fs::write(base.path().join("secret"), "secret").unwrap();
        symlink(base.path().join("secret"), from.join("link")).unwrap();
        folder(&from, &to).unwrap();
        assert_eq!(fs::read_to_string(to.join("one/two/file")).unwrap(), "text");
        assert!(fs::symlink_metadata(to.join("link")).is_err());
        fs::write(to.join("one/two/file"), "another").unwrap();
        assert_eq!(fs::read_to_string(from.join("one/two/file")).unwrap(), "text");
    }

    #[test]
    fn what_is_not_there_is_copied_and_what_is_too_large_is_not() {
        let base = tempfile::tempdir().unwrap();
        let (from, to) = (base.path().join("from"), base.path().join("to"));
        folder(&from, &to).unwrap();
        fs::create_dir(&from).unwrap();
        // It has no blocks: nothing is written for it.
        File::create(from.join("file")).unwrap().set_len(MAX_BYTES + 1).unwrap();
        folder(&from, &to).unwrap_err();
        assert!(!to.join("file").exists());
    }
}
