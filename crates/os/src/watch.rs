//! Whether anything has changed in some folders, without looking through them. What has changed is not told: whoever
//! asks looks then. Beneath folders by handle, `TreeWatch` tells what it was.
//!
//! Linux only (inotify), and only on filesystems whose changes all come by way of this kernel; elsewhere a folder cannot
//! be watched, and that is an error.

mod names;
mod tree;

use std::{io, path::Path};

pub use tree::{FolderChange, TreeWatch, WatchBell, WatchFilter};

/// Folders that are watched.
#[derive(Debug)]
pub struct FolderWatch {
    kernel: kernel::KernelWatch,
    folders: usize,
}

/// Folders of one watch; more are refused. The kernel counts them for each user, and editors want some too.
const MAX_FOLDERS: usize = 2_000;

impl FolderWatch {
    /// Begins with no folder.
    pub fn new() -> io::Result<Self> {
        Ok(Self { kernel: kernel::KernelWatch::new()?, folders: 0 })
    }

    /// Starts over: says whether anything has changed since the last time, and counts folders from none again. Those
    /// that are watched stay so.
    pub fn begin(&mut self) -> bool {
        self.folders = 0;
        self.kernel.has_changed()
    }

    /// Watches a folder, but not what lies in the folders in it. One that is watched already may be named again.
    pub fn add(&mut self, folder: &Path) -> io::Result<()> {
        self.folders += 1;
        if self.folders > MAX_FOLDERS {
            return Err(io::Error::other("too many folders to watch"));
        }
        self.kernel.add(folder)
    }

    /// Returns whether anything has changed since this was last asked. What happened before the call is seen by it.
    pub fn has_changed(&self) -> bool {
        self.kernel.has_changed()
    }
}

#[cfg(target_os = "linux")]
mod kernel {
    use std::{io, os::fd::OwnedFd, path::Path};

    use rustix::{
        fs::{
            inotify::{self, CreateFlags, WatchFlags},
            statfs,
        },
        io::{Errno, read},
    };

    #[derive(Debug)]
    pub(super) struct KernelWatch(OwnedFd);

    /// ext, xfs, btrfs, tmpfs, overlay, f2fs, zfs, bcachefs. A share's changes may come from elsewhere, and nothing
    /// would be said of them.
    const LOCAL: [u64; 8] =
        [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0x794c_7630, 0xf2f5_2010, 0x2fc1_2fc1, 0xca45_1a4e];

    /// How often one look reads what is waiting; if there is still more, the next look has it.
    const MAX_READS: usize = 64;

    impl KernelWatch {
        pub(super) fn new() -> io::Result<Self> {
            Ok(Self(inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?))
        }

        pub(super) fn add(&self, folder: &Path) -> io::Result<()> {
            let kind = statfs(folder)?.f_type;
            // The type of the number depends on the platform, and no filesystem's has more than 32 bits.
            let kind = kind as u64 & 0xffff_ffff;
            if !LOCAL.contains(&kind) {
                return Err(io::Error::other("this filesystem may change without a word"));
            }
            let events = WatchFlags::CREATE
                | WatchFlags::DELETE
                | WatchFlags::MODIFY
                | WatchFlags::ATTRIB
                | WatchFlags::CLOSE_WRITE
                | WatchFlags::MOVE
                | WatchFlags::DELETE_SELF
                | WatchFlags::MOVE_SELF;
            inotify::add_watch(&self.0, folder, events | WatchFlags::ONLYDIR | WatchFlags::DONT_FOLLOW)?;
            Ok(())
        }

        pub(super) fn has_changed(&self) -> bool {
            let mut events = [0; 4096];
            for reads in 0..MAX_READS {
                match read(&self.0, &mut events[..]) {
                    Ok(_) => {}
                    Err(Errno::WOULDBLOCK) => return reads > 0,
                    // It cannot be known, so it may have.
                    Err(_) => return true,
                }
            }
            true
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod kernel {
    use std::{io, path::Path};

    #[derive(Debug)]
    pub(super) struct KernelWatch;

    impl KernelWatch {
        pub(super) fn new() -> io::Result<Self> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub(super) fn add(&self, _: &Path) -> io::Result<()> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub(super) fn has_changed(&self) -> bool {
            true
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::PathBuf};

    use super::*;

    /// A folder of its own that goes when the test does.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("prism-watch-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn each_kind_of_change_is_noticed_at_once_and_told_once() {
        let folder = Folder::new("kinds");
        let file = folder.0.join("a.md");
        // A test machine may have its temporary folder anywhere; then there is nothing to promise.
        let Ok(mut watch) = FolderWatch::new() else { return };
        if watch.add(&folder.0).is_err() {
            return;
        }
        assert!(!watch.has_changed());
        let changes: [(&str, &dyn Fn()); 5] = [
            ("create", &|| fs::write(&file, "a").unwrap()),
            ("modify", &|| fs::write(&file, "b").unwrap()),
            ("rename", &|| fs::rename(&file, folder.0.join("b.md")).unwrap()),
            ("delete", &|| fs::remove_file(folder.0.join("b.md")).unwrap()),
            ("folder", &|| fs::create_dir(folder.0.join("c")).unwrap()),
        ];
        for (name, change) in changes {
            change();
            assert!(watch.has_changed(), "{name}");
            assert!(!watch.has_changed(), "{name}");
        }
        fs::read_dir(&folder.0).unwrap().count();
        assert!(!watch.has_changed(), "looking changes nothing");
        fs::write(folder.0.join("c/deep.md"), "x").unwrap();
        assert!(!watch.has_changed(), "that folder is not watched");
        fs::remove_dir_all(&folder.0).unwrap();
        assert!(watch.has_changed());
    }

    #[test]
    fn what_cannot_be_watched_is_an_error() {
        let Ok(mut watch) = FolderWatch::new() else { return };
        assert!(watch.add(Path::new("/proc")).is_err(), "its files change without a word");
        assert!(watch.add(Path::new("/nowhere")).is_err());
        watch.begin();
        let folder = Folder::new("many");
        let added = (0..=MAX_FOLDERS).map_while(|_| watch.add(&folder.0).ok()).count();
        assert!(added <= MAX_FOLDERS);
    }
}
