//! What a run may use of the machine: memory, room for what it writes outside of the granted folders, and all but the last of a disk.
//! Who goes over it is ended, and its result says why. How many processes and files there may be is limited within the sandbox
//! (`prism_os::sandbox::inner`), and how long it may take by whoever waits for it.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use prism_os::{
    cgroup::{self, Cgroup},
    memory, peek,
};
use tokio::{task::spawn_blocking, time::sleep};

use super::temporary::TemporaryFolder;
use crate::settings::EditorSettings;

/// How often a run is looked at. What the kernel keeps is kept at once.
const LOOK: Duration = Duration::from_millis(500);

/// Looking at all that a run has written may take so much of the time: a hundredth.
const SHARE: u32 = 100;

/// Bytes that a run leaves on a disk, for Prism and for everything else; half of what there was, if that is less.
const LEFT_FREE: u64 = 512 << 20;

/// Files that a run may have written outside of the granted folders. Beyond it they are too many to be looked at.
const MOST_FILES: u64 = 2_000_000;

/// What one run may use, and what of that the kernel keeps.
#[derive(Clone, Debug)]
pub(crate) struct RunLimits {
    /// `None`: it is watched.
    cgroup: Option<Arc<Cgroup>>,
    watched: Arc<LimitWatch>,
}

#[derive(Debug)]
struct LimitWatch {
    max_memory: u64,
    max_scratch: u64,
    /// Where it writes what is its own.
    scratch: Option<Arc<TemporaryFolder>>,
    /// A folder on each disk that it can fill, with what has to stay free there.
    disks: Vec<(PathBuf, u64)>,
}

/// What a run went over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Overrun {
    Memory(u64),
    Scratch(u64),
    Disk { folder: PathBuf, left: u64 },
}

// === impl RunLimits ===

impl RunLimits {
    /// For a run that is about to start, and may write to these folders.
    pub(super) fn new(settings: &EditorSettings, scratch: Option<Arc<TemporaryFolder>>, folders: &[PathBuf]) -> Self {
        let max_memory = settings.max_memory.or_else(usual_memory).unwrap_or(u64::MAX);
        // Where none can be made it is watched.
        let cgroup = cgroup::nest().and_then(|nest| nest.group("run", max_memory).ok()).map(Arc::new);
        let places = folders.iter().map(PathBuf::as_path).chain(scratch.as_deref().map(TemporaryFolder::path));
        let disks = places.filter_map(|place| Some((place.to_owned(), LEFT_FREE.min(peek::free_space(place)? / 2))));
        let disks = disks.collect();
        Self { cgroup, watched: Arc::new(LimitWatch { max_memory, max_scratch: settings.max_scratch, scratch, disks }) }
    }

    /// Where it begins its life, if the kernel keeps the ceiling.
    pub(crate) fn cgroup(&self) -> Option<&Cgroup> {
        self.cgroup.as_deref()
    }

    /// Waits until a run has gone over it. Never comes back for one that does not.
    pub(crate) async fn exceeded(&self, pid: u32) -> Overrun {
        let mut next_count = Instant::now();
        loop {
            sleep(LOOK).await;
            let (watched, counts) = (self.watched.clone(), Instant::now() >= next_count);
            let pid = Some(pid).filter(|_| self.cgroup.is_none());
            let looked = spawn_blocking(move || {
                let began = Instant::now();
                (watched.look(pid, counts), began.elapsed())
            });
            match looked.await {
                Ok((Some(over), _)) => return over,
                Ok((None, took)) if counts => next_count = Instant::now() + took * SHARE,
                _ => {}
            }
        }
    }

    /// The folder that is this grant's own.
    #[cfg(test)]
    pub(super) fn scratch(&self) -> Option<&Path> {
        self.watched.scratch.as_deref().map(TemporaryFolder::path)
    }

    /// What the kernel has ended it for.
    pub(crate) fn kept(&self) -> Option<Overrun> {
        let went_over = self.cgroup.as_deref().is_some_and(Cgroup::went_over);
        went_over.then_some(Overrun::Memory(self.watched.max_memory))
    }
}

/// Three quarters of what there is.
fn usual_memory() -> Option<u64> {
    memory::of_machine().map(|bytes| bytes / 4 * 3)
}

// === impl LimitWatch ===

impl LimitWatch {
    /// Blocks.
    fn look(&self, pid: Option<u32>, counts: bool) -> Option<Overrun> {
        if pid.and_then(memory::of_child).is_some_and(|held| held > self.max_memory) {
            return Some(Overrun::Memory(self.max_memory));
        }
        let is_low = |(folder, least): &&(PathBuf, u64)| peek::free_space(folder).is_some_and(|free| free < *least);
        if let Some((folder, left)) = self.disks.iter().find(is_low) {
            return Some(Overrun::Disk { folder: folder.clone(), left: *left });
        }
        let scratch = self.scratch.as_ref().filter(|_| counts)?;
        let is_over = !fits(scratch.path(), self.max_scratch);
        is_over.then(|| {
            scratch.fill();
            Overrun::Scratch(self.max_scratch)
        })
    }
}

/// Returns whether all beneath a folder takes no more room than this. Links are not followed.
fn fits(folder: &Path, most: u64) -> bool {
    use std::os::unix::fs::MetadataExt;
    let (mut bytes, mut files, mut folders) = (0_u64, 0_u64, vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let Ok(found) = entry.metadata() else { continue };
            bytes = bytes.saturating_add(found.blocks().saturating_mul(512));
            files += 1;
            if bytes > most || files > MOST_FILES {
                return false;
            }
            if found.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    true
}

// === impl Overrun ===

impl fmt::Display for Overrun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = |bytes: u64| match bytes {
            bytes if bytes >= 10 << 30 => format!("{} GiB", bytes >> 30),
            bytes if bytes >= 10 << 20 => format!("{} MiB", bytes >> 20),
            bytes => format!("{bytes} bytes"),
        };
        match self {
            Self::Memory(most) => write!(
                f,
                "it used more than {} of memory; a person can allow more: `max_memory` of `[editor]`",
                size(*most)
            ),
            Self::Scratch(most) => write!(
                f,
                "what it wrote to its home folder and to /tmp took more than {}; that is removed now; a person can allow \
                 more: `max_scratch` of `[editor]`",
                size(*most)
            ),
            Self::Disk { folder, left } => {
                write!(f, "the disk of {} has less than {} left; remove something there", folder.display(), size(*left))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_in_a_folder_is_counted_with_all_beneath_it() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("a/b")).unwrap();
        fs::write(folder.path().join("a/b/file"), vec![b'x'; 1 << 20]).unwrap();
        std::os::unix::fs::symlink("/", folder.path().join("a/everything")).unwrap();
        assert!(fits(folder.path(), 2 << 20));
        assert!(!fits(folder.path(), 1 << 19));
    }

    #[test]
    fn each_end_says_what_a_person_can_do() {
        let said = |over: Overrun| over.to_string();
        assert!(said(Overrun::Memory(24 << 30)).contains("more than 24 GiB of memory"));
        assert!(said(Overrun::Scratch(512 << 20)).contains("more than 512 MiB; that is removed now"));
        let disk = Overrun::Disk { folder: "/project".into(), left: LEFT_FREE };
        assert!(said(disk).contains("the disk of /project has less than 512 MiB left"));
    }
}
