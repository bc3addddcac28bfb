//! Keeps the log of a daemon in the background from growing for ever: a file that has become too long gets another name,
//! and a new one is begun. Two files at most, `prism.log` and `prism.log.1`.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use prism_os::detach::redirect_output;

/// The length at which a file is long enough. What one write adds comes on top.
pub const MAX_BYTES: u64 = 10 << 20;

/// The file that stdout and stderr go to.
#[derive(Debug)]
pub(super) struct LogRotation {
    path: PathBuf,
}

impl LogRotation {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Begins a new file if the old one is long enough, or gone.
    pub(super) fn look(&self) {
        let due = match fs::metadata(&self.path) {
            Ok(metadata) => metadata.len() >= MAX_BYTES,
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        if due {
            // A log that cannot be renewed goes on as it is; there is nobody else to tell.
            let _ = begin_anew(&self.path).and_then(|file| redirect_output(&file));
        }
    }
}

/// Returns the name of the file before this one.
#[must_use]
pub fn previous(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".1");
    PathBuf::from(name)
}

fn begin_anew(path: &Path) -> io::Result<File> {
    match fs::rename(path, previous(path)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_new_file_is_begun_and_one_old_one_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("prism.log");
        for text in ["first", "second", "third"] {
            fs::write(&path, text).unwrap();
            begin_anew(&path).unwrap();
            assert_eq!(fs::read_to_string(previous(&path)).unwrap(), text);
            assert_eq!(fs::read_to_string(&path).unwrap(), "");
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
