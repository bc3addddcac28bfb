//! A granted folder, something beside it, and who tries to get from one to the other.

mod escapes;
mod killed;
mod mounts;
mod names;
mod swaps;

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use super::*;

const SECRET: &str = "what nobody was granted";

/// A granted folder with something beside it that nobody was granted.
struct Yard {
    /// Removed in the end.
    _folder: tempfile::TempDir,
    granted: PathBuf,
    outside: PathBuf,
    root: FolderHandle,
}

impl Yard {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap();
        let (granted, outside) = (real.join("granted"), real.join("outside"));
        fs::create_dir(&granted).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("secret"), SECRET).unwrap();
        let root = FolderHandle::open(&granted).unwrap();
        Self { _folder: folder, granted, outside, root }
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.granted.join(name), text).unwrap();
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.granted.join(name)).unwrap()
    }

    fn spot(&self, path: &str) -> Spot {
        self.root.spot(Path::new(path)).unwrap()
    }

    fn read(&self, path: impl AsRef<Path>) -> Result<String, FolderError> {
        self.root.open_file(path.as_ref()).map(|file| io::read_to_string(file).unwrap())
    }

    /// Everything that could be done with a path, each as far as it goes. What could be read comes back.
    fn try_everything(&self, path: &Path) -> Vec<String> {
        let mut read = Vec::new();
        read.extend(self.root.open_file(path).map(|file| io::read_to_string(file).unwrap()));
        if let Ok(folder) = self.root.beneath(path) {
            read.extend(folder.open_file(Path::new("secret")).map(|file| io::read_to_string(file).unwrap()));
            read.extend(folder.entries().unwrap().map(|entry| entry.unwrap().name.into_string().unwrap_or_default()));
        }
        // In it, too, if it is a folder; and with it as the new name of something.
        for path in [path.to_owned(), path.join("secret"), path.join("new")] {
            let Ok(spot) = self.root.spot(&path) else { continue };
            let _ = spot.create(b"written");
            let _ = spot.create_folder();
            if let Ok((file, found)) = spot.open_file() {
                read.push(io::read_to_string(file).unwrap());
                let _ = spot.replace(b"written", &found);
            }
            self.write("lure", "");
            let _ = self.spot("lure").rename(&spot, RenameMode::Replace);
            let _ = spot.rename(&self.spot("taken"), RenameMode::Refuse);
            let _ = spot.remove(FileKind::File);
            let _ = spot.remove(FileKind::Folder);
        }
        read
    }

    /// Nothing outside was changed.
    fn assert_untouched(&self, how: &str) {
        let names: Vec<_> = fs::read_dir(&self.outside).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["secret"], "{how}");
        assert_eq!(fs::read_to_string(self.outside.join("secret")).unwrap(), SECRET, "{how}");
        let beside = fs::read_dir(self.granted.parent().unwrap()).unwrap().count();
        assert_eq!(beside, 2, "{how}");
    }
}
