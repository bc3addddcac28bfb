//! The census on Linux: looks at every process of `/proc`, kills through pidfds.

use std::{
    collections::HashSet,
    os::fd::OwnedFd,
    path::Path,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
};

use super::{Orphan, OwnerDaemon, run::RUN, variable};
use crate::proc::{self, Stat};

/// How long the killed may take to be gone. A process that hangs in a device must not keep us from starting.
const PATIENCE: Duration = Duration::from_secs(2);

/// How often to look for orphans that others have started between our look at /proc and their end. The
/// second look finds nobody, unless something respawns faster than it dies.
const MAX_LOOKS: usize = 8;

/// A process that was told to end.
struct EndingProcess {
    pidfd: OwnedFd,
    /// It was on its way out before, with its group: to be waited for, but left behind by nobody.
    was_killed: bool,
}

pub(super) fn orphans(home: &Path) -> Vec<Orphan> {
    let this = OwnerDaemon::this_process(home);
    look(|owner, _| is_orphaned(owner, &this))
        .into_iter()
        .map(|(pid, _)| Orphan { pid, command: proc::command_line(pid) })
        .collect()
}

pub(super) fn end_orphans(home: &Path) -> Vec<Orphan> {
    let this = OwnerDaemon::this_process(home);
    end_all(|owner, _| is_orphaned(owner, &this))
}

pub(super) fn end_strays(this: &OwnerDaemon) -> Vec<Orphan> {
    end_all(|owner, _| owner == this)
}

pub(super) fn end_run(this: &OwnerDaemon, id: &str) -> Vec<Orphan> {
    end_all(|owner, environment| owner == this && variable(environment, RUN) == Some(id.as_bytes()))
}

fn end_all(is_meant: impl Fn(&OwnerDaemon, &[u8]) -> bool) -> Vec<Orphan> {
    let deadline = Instant::now() + PATIENCE;
    let mut ended: Vec<Orphan> = Vec::new();
    for _ in 0..MAX_LOOKS {
        let found = look(&is_meant);
        if found.is_empty() {
            break;
        }
        let mut dying = Vec::new();
        for (pid, owner) in found {
            let command = proc::command_line(pid);
            let Some(ending) = end(pid, &owner) else {
                continue;
            };
            if !ending.was_killed && ended.iter().all(|orphan| orphan.pid != pid) {
                ended.push(Orphan { pid, command });
            }
            dying.push(ending.pidfd);
        }
        for pidfd in &dying {
            let left = Timespec::try_from(deadline.saturating_duration_since(Instant::now())).ok();
            let _ = poll(&mut [PollFd::new(pidfd, PollFlags::IN)], left.as_ref());
        }
    }
    ended
}

/// Returns the pids of all processes whose owner is meant, and the owner that each of them names.
fn look(is_meant: impl Fn(&OwnerDaemon, &[u8]) -> bool) -> Vec<(u32, OwnerDaemon)> {
    // A /proc of another pid namespace (a container's, mounted from outside) would give us strangers' pids.
    if !proc::is_ours() {
        return Vec::new();
    }
    let spared = spared();
    proc::pids()
        .filter(|pid| !spared.contains(pid))
        .filter_map(|pid| {
            let environment = proc::environment(pid)?;
            let owner = OwnerDaemon::in_environment(&environment)?;
            is_meant(&owner, &environment).then_some((pid, owner))
        })
        .collect()
}

/// Tells whether a daemon of the same home has left its children.
fn is_orphaned(owner: &OwnerDaemon, this: &OwnerDaemon) -> bool {
    owner.home == this.home && owner.namespace == this.namespace && is_gone(owner)
}

/// Returns this process and those it was started by: if Prism is started again from a terminal that the
/// daemon before it had opened, that terminal is an orphan, and yet somebody sits at it.
pub(super) fn spared() -> HashSet<u32> {
    let mut spared = HashSet::new();
    let mut pid = std::process::id();
    while spared.insert(pid) {
        let Ok(stat) = Stat::of(pid) else { break };
        pid = stat.parent;
    }
    spared
}

/// Tells whether the daemon has certainly ended. A zombie has: whoever should reap it is just slow.
fn is_gone(owner: &OwnerDaemon) -> bool {
    match Stat::of(owner.pid) {
        Ok(stat) => stat.start_ticks != owner.start_ticks || stat.is_dead(),
        Err(error) => proc::means_gone(&error),
    }
}

/// Kills a process if it still is the one that was looked at: once the pidfd is open it stays with one
/// process, so a marker read after that is that process's own, or nobody is hit.
fn end(pid: u32, owner: &OwnerDaemon) -> Option<EndingProcess> {
    let pidfd = pidfd_open(Pid::from_raw(pid.try_into().ok()?)?, PidfdFlags::empty()).ok()?;
    let again = OwnerDaemon::in_environment(&proc::environment(pid)?)?;
    if again != *owner {
        return None;
    }
    let was_killed = proc::is_killed(pid);
    pidfd_send_signal(&pidfd, Signal::KILL).ok()?;
    Some(EndingProcess { pidfd, was_killed })
}
