//! A config file on disk: read whole, written whole or not at all. It keeps its mode, its owner and its place behind a
//! link.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use super::InstallError;
use prism_config::file::{folder_of, follow, replace};

/// A file, which need not be there.
#[derive(Clone, Debug)]
pub struct ConfigFile {
    /// As its program knows it.
    pub path: PathBuf,
    /// Behind any links.
    real: PathBuf,
    /// `None`: there is no such file.
    pub text: Option<String>,
    mode: u32,
}

/// The mode of a file that we make in a person's home: our token is in it, or will be, or another one's.
const PRIVATE: u32 = 0o600;
/// The mode of another file that we make: the project's, which its other users read too.
const SHARED: u32 = 0o644;

// === impl ConfigFile ===

impl ConfigFile {
    pub fn open(path: &Path) -> Result<Self, InstallError> {
        let cannot_read = |source| InstallError::Read { path: path.to_owned(), source };
        let real = follow(path).map_err(cannot_read)?;
        let (text, mode) = match fs::metadata(&real) {
            Ok(metadata) => {
                let bytes = fs::read(&real).map_err(cannot_read)?;
                let text = String::from_utf8(bytes).map_err(|_| InstallError::NotText { path: path.to_owned() })?;
                (Some(text), metadata.permissions().mode() & 0o7777)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => (None, PRIVATE),
            Err(source) => return Err(cannot_read(source)),
        };
        Ok(Self { path: path.to_owned(), real, text, mode })
    }

    /// Returns its text; none is as good as an empty one.
    pub fn text(&self) -> &str {
        self.text.as_deref().unwrap_or_default()
    }

    /// Returns its mode, if others on this machine can read it.
    pub fn open_to_others(&self) -> Option<u32> {
        (self.text.is_some() && self.mode & 0o077 != 0).then_some(self.mode & 0o777)
    }

    /// Refuses a file that its owner has locked. The superuser could write it all the same, and must not.
    pub(super) fn check_writable(&self) -> Result<(), InstallError> {
        match self.text.is_some() && self.mode & 0o200 == 0 {
            true => Err(InstallError::ReadOnly { path: self.real.clone(), mode: self.mode & 0o777 }),
            false => Ok(()),
        }
    }

    /// Refuses a file that its program has written since we read it; some do so all the time.
    fn check_unchanged(&self) -> Result<(), InstallError> {
        match fs::read(&self.real).ok().as_deref() == self.text.as_ref().map(String::as_bytes) {
            true => Ok(()),
            false => Err(InstallError::Raced { path: self.path.clone() }),
        }
    }

    /// Returns the folders that are missing on the way to it, the outermost last.
    pub(super) fn missing_folders(&self) -> Vec<PathBuf> {
        let folders = self.real.ancestors().skip(1);
        folders.take_while(|folder| !folder.exists()).map(Path::to_owned).collect()
    }

    /// Writes it, and the folders that it needs. Nobody else can read a new one that is private.
    pub(super) fn write(&self, text: &str, private: bool) -> Result<(), InstallError> {
        self.check_writable()?;
        let cannot_write = |source| InstallError::Write { path: self.path.clone(), source };
        let folder = folder_of(&self.real);
        fs::create_dir_all(folder).map_err(cannot_write)?;
        let _lock = lock(folder);
        self.check_unchanged()?;
        let mode = match (self.text.is_some(), private) {
            (true, _) => self.mode,
            (false, true) => PRIVATE,
            (false, false) => SHARED,
        };
        replace(&self.real, text, mode).map_err(cannot_write)
    }

    /// Removes it, and those of the folders that are empty then.
    pub(super) fn delete(&self, folders: &[PathBuf]) -> Result<(), InstallError> {
        self.check_writable()?;
        self.check_unchanged()?;
        fs::remove_file(&self.real).map_err(|source| InstallError::Write { path: self.path.clone(), source })?;
        for folder in folders {
            if fs::remove_dir(folder).is_err() {
                break;
            }
        }
        Ok(())
    }
}

/// Guards against a second `prism`, not against editors; a filesystem without locks is no reason to refuse.
fn lock(folder: &Path) -> Option<File> {
    let lock = File::open(folder).ok()?;
    lock.lock().ok()?;
    Some(lock)
}
