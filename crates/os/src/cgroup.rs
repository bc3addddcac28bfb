//! A ceiling on the memory of a child and all it starts, kept by the kernel: a control group for each (cgroup v2). Where
//! there is none to be had, `memory.rs` tells what to watch.
//!
//! A process can make groups where its user may write, and where the memory controller is handed down to. That is either
//! below our own group, as in a service with `Delegate=yes`, or beside it, as in a user's terminal. The kernel hands a
//! controller down only from groups without processes of their own; so in the first case, and only if we are alone there,
//! we move into a leaf first.
//!
//! ```text
//! the user's slice ─┬─ our own group
//!                   └─ prism-PID ─┬─ files-1   memory.max, the child and all it starts
//!                                 └─ web-2
//! ```

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{self, Command},
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

/// Where groups are made for the children of this process.
#[derive(Debug)]
pub struct CgroupNest {
    folder: PathBuf,
    made: AtomicU64,
}

/// A group with a ceiling. Dropping it removes it, if nothing runs in it any more.
#[derive(Debug)]
pub struct Cgroup {
    folder: PathBuf,
    /// Whoever writes `0` here is in it.
    entrance: File,
}

const PREFIX: &str = "prism-";

/// The one place of this process, looked for when somebody first needs it; `None` where there is none to be had.
pub fn nest() -> Option<&'static CgroupNest> {
    static NEST: OnceLock<Option<CgroupNest>> = OnceLock::new();
    NEST.get_or_init(CgroupNest::find).as_ref()
}

// === impl CgroupNest ===

impl CgroupNest {
    /// Finds the place, and clears away what daemons that are no more have left there. `None`: the kernel or the user's
    /// rights do not allow it.
    fn find() -> Option<Self> {
        Self::find_in(Path::new("/sys/fs/cgroup"), &fs::read_to_string("/proc/self/cgroup").ok()?)
    }

    fn find_in(root: &Path, own: &str) -> Option<Self> {
        // The line of v2. It names the group as seen from the root, which is not ours where `..` is in it.
        let own = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
        if own.split('/').any(|part| part == "..") {
            return None;
        }
        let own = root.join(own);
        let below = || Self::make(&own, true);
        let beside =
            || own.parent().filter(|parent| parent.starts_with(root)).and_then(|above| Self::make(above, false));
        below().or_else(beside)
    }

    fn make(above: &Path, is_own: bool) -> Option<Self> {
        if !lists_memory(&above.join("cgroup.controllers")) {
            return None;
        }
        clear(above);
        let folder = above.join(format!("{PREFIX}{}", process::id()));
        fs::create_dir(&folder).ok()?;
        let nest = Self { folder, made: AtomicU64::new(0) };
        nest.hand_down(above, is_own).is_some().then_some(nest)
    }

    /// Sees to it that groups in the nest can have a ceiling.
    fn hand_down(&self, above: &Path, is_own: bool) -> Option<()> {
        if !lists_memory(&above.join("cgroup.subtree_control")) {
            if !is_own || !is_alone(above) {
                return None;
            }
            let leaf = self.folder.join("daemon");
            fs::create_dir(&leaf).ok()?;
            fs::write(leaf.join("cgroup.procs"), process::id().to_string()).ok()?;
            if fs::write(above.join("cgroup.subtree_control"), "+memory").is_err() {
                let _ = fs::write(above.join("cgroup.procs"), process::id().to_string());
                let _ = fs::remove_dir(leaf);
                return None;
            }
        }
        fs::write(self.folder.join("cgroup.subtree_control"), "+memory").ok()?;
        // To bring a process in, one must be allowed to write to the group above both.
        OpenOptions::new().write(true).open(above.join("cgroup.procs")).ok().map(drop)
    }

    /// Makes a group that may hold so many bytes.
    pub fn group(&self, name: &str, max_bytes: u64) -> io::Result<Cgroup> {
        let number = self.made.fetch_add(1, Ordering::Relaxed) + 1;
        let folder = self.folder.join(format!("{name}-{number}"));
        fs::create_dir(&folder)?;
        let made = (|| {
            fs::write(folder.join("memory.max"), max_bytes.to_string())?;
            // All of it ends, not just the process that happened to ask for one page too many; and what would not fit
            // must not go to the swap space instead. Older kernels know neither, and the ceiling holds all the same.
            let _ = write_existing(&folder.join("memory.oom.group"), "1");
            let _ = write_existing(&folder.join("memory.swap.max"), "0");
            // The kernel has made it; a folder of a test has not.
            OpenOptions::new().write(true).create(cfg!(test)).truncate(false).open(folder.join("cgroup.procs"))
        })();
        match made {
            Ok(entrance) => Ok(Cgroup { folder, entrance }),
            Err(error) => {
                let _ = fs::remove_dir(&folder);
                Err(error)
            }
        }
    }
}

impl Drop for CgroupNest {
    fn drop(&mut self) {
        // If we live in it ourselves, it stays, and is cleared away at a later start.
        let _ = fs::remove_dir(&self.folder);
    }
}

// === impl Cgroup ===

impl Cgroup {
    /// Has a child that is about to be started begin its life in the group.
    #[expect(unsafe_code, reason = "before its program runs, a child can only be told to do something this way")]
    pub(crate) fn take_in(&self, command: &mut Command) -> io::Result<()> {
        let mut entrance = self.entrance.try_clone()?;
        // SAFETY: between fork and exec only what is async-signal-safe may run. This is one `write` to a descriptor that
        // is open; it neither allocates nor locks.
        unsafe { command.pre_exec(move || entrance.write_all(b"0")) };
        Ok(())
    }

    /// Tells whether the kernel has ended something in it for going over the ceiling.
    #[must_use]
    pub fn went_over(&self) -> bool {
        let events = fs::read_to_string(self.folder.join("memory.events")).unwrap_or_default();
        let count = |line: &str| line.strip_prefix("oom_kill ")?.trim().parse::<u64>().ok();
        events.lines().find_map(count).is_some_and(|count| count > 0)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // One with a process left in it stays; the next start clears it away.
        let _ = fs::remove_dir(&self.folder);
    }
}

/// Removes the nests of processes that are no more. What still has processes in it resists.
fn clear(above: &Path) {
    let entries = fs::read_dir(above).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.parse::<u32>().ok());
        if pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists() || pid == process::id()) {
            for inner in fs::read_dir(entry.path()).into_iter().flatten().flatten() {
                let _ = fs::remove_dir(inner.path());
            }
            let _ = fs::remove_dir(entry.path());
        }
    }
}

fn lists_memory(file: &Path) -> bool {
    fs::read_to_string(file).is_ok_and(|text| text.split_whitespace().any(|controller| controller == "memory"))
}

fn is_alone(group: &Path) -> bool {
    let own = process::id().to_string();
    fs::read_to_string(group.join("cgroup.procs")).is_ok_and(|pids| pids.lines().all(|pid| pid == own))
}

/// The kernel makes these files; to make one where it has not would be an error elsewhere.
fn write_existing(file: &Path, text: &str) -> io::Result<()> {
    OpenOptions::new().write(true).open(file)?.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests;
