//! Finds what a daemon that was killed (`kill -9`) has left running, without any file that could be lost or
//! lie (B-25). Children of a daemon that can still stop them are `group.rs`'s.
//!
//! One command's strays are found in the same way while the daemon lives, by a second variable that names the run (`run.rs`).
//!
//! The idea: every child's environment names the daemon it belongs to, and children of children inherit it,
//! also those that have left the process group. So `/proc` itself is the list. Out of its sight are only
//! processes that were started with an emptied environment, have overwritten it (some servers write their
//! title there), or run as another user.

mod run;
#[cfg(target_os = "linux")]
mod scan;
#[cfg(not(target_os = "linux"))]
mod scan {
    //! Without /proc there is nothing to scan.
    pub(super) fn orphans(_: &super::Path) -> Vec<super::Orphan> {
        Vec::new()
    }
    pub(super) use orphans as end_orphans;
    pub(super) fn end_strays(_: &super::Owner) -> Vec<super::Orphan> {
        Vec::new()
    }
    pub(super) fn end_run(_: &super::Owner, _: &str) -> Vec<super::Orphan> {
        Vec::new()
    }
}

use std::{
    ffi::OsString,
    os::unix::ffi::OsStringExt,
    path::{self, Path, PathBuf},
};

use crate::proc;

pub use run::MarkedRun;

/// The environment variable that says whose child a process is.
pub(crate) const MARKER: &str = "PRISM_CHILD_OF";

/// A daemon, as its children's environment names it: pids are reused, and pid plus start time is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerDaemon {
    home: PathBuf,
    /// The inode of the pid namespace that `pid` counts in.
    namespace: u64,
    pid: u32,
    start_ticks: u64,
}

/// A process whose daemon is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orphan {
    pub pid: u32,
    /// The command line, arguments and all.
    pub command: String,
}

/// Returns the processes that daemons of `home` which no longer live have left behind.
pub fn orphans(home: &Path) -> Vec<Orphan> {
    scan::orphans(home)
}

/// Kills the `orphans` of `home`, waits a moment until they are gone, and returns them for the log.
///
/// Blocks, for two seconds at worst. To be called by the one daemon of `home`, before it starts children.
pub fn end_orphans(home: &Path) -> Vec<Orphan> {
    scan::end_orphans(home)
}

/// Kills what the children of `owner` have left running outside of their groups, once the groups are gone: a
/// daemon that called `setsid`, say. For the end of a clean stop. Blocks like `end_orphans`.
pub fn end_strays(owner: &OwnerDaemon) -> Vec<Orphan> {
    scan::end_strays(owner)
}

// === impl OwnerDaemon ===

impl OwnerDaemon {
    /// Returns the owner that the children of this process get. `home` should exist already: it is the
    /// directory that counts, not the way it was spelled.
    pub fn this_process(home: &Path) -> Self {
        let pid = std::process::id();
        // Without /proc there is no census either, and a start time of 0 makes no marker.
        let start_ticks = proc::Stat::of(pid).map_or(0, |stat| stat.start_ticks);
        Self::of(home, pid, start_ticks)
    }

    /// Returns the owner for a process of this pid namespace that need not live any more. For tests.
    pub fn of(home: &Path, pid: u32, start_ticks: u64) -> Self {
        let home = home.canonicalize().or_else(|_| path::absolute(home)).unwrap_or_else(|_| home.to_owned());
        Self { home, namespace: proc::pid_namespace(), pid, start_ticks }
    }

    /// Writes `home|namespace|pid|start`.
    pub(crate) fn marker(&self) -> OsString {
        let mut marker = self.home.clone().into_os_string();
        marker.push(format!("|{}|{}|{}", self.namespace, self.pid, self.start_ticks));
        marker
    }

    /// Reads what `marker` has written. From the right, as a path may contain any byte but NUL.
    fn parse(marker: &[u8]) -> Option<Self> {
        let mut fields = marker.rsplitn(4, |&byte| byte == b'|');
        let mut number = || str::from_utf8(fields.next()?).ok()?.parse::<u64>().ok();
        let start_ticks = number().filter(|&ticks| ticks != 0)?;
        let pid = number()?.try_into().ok()?;
        let namespace = number()?;
        let home = PathBuf::from(OsString::from_vec(fields.next()?.to_vec()));
        Some(Self { home, namespace, pid, start_ticks })
    }

    /// Returns the owner that a process's environment names.
    fn in_environment(environment: &[u8]) -> Option<Self> {
        variable(environment, MARKER).and_then(Self::parse)
    }
}

fn variable<'a>(environment: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let mut variables = environment.split(|&byte| byte == 0);
    variables.find_map(|variable| variable.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
}

#[cfg(test)]
mod tests;
