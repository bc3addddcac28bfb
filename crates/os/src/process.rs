//! Other processes, named so that nobody else can be meant: a pid is given away again, and pid plus start time is not.
//! Who may be ended, and why, is decided elsewhere.

use std::{collections::BTreeMap, io, os::fd::OwnedFd, time::Duration};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, Signal, geteuid, pidfd_open, pidfd_send_signal},
};

use crate::{
    ask::ask,
    proc::{self, Stat},
};

/// How long the system may take to look up a name, which can be in a directory on another machine.
const NAMED_WITHIN: Duration = Duration::from_secs(2);

/// Which process is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessIdentity {
    pub pid: u32,
    /// When it started, in clock ticks since boot.
    pub start_ticks: u64,
}

/// A hold on one process. It stays with that one, however often its pid is given away.
#[derive(Debug)]
pub struct ProcessHandle(OwnedFd);

/// Returns who started this process. A shell that was started for nothing but this (`sh -c`) is not who.
pub fn starter() -> Option<ProcessIdentity> {
    let identity = |pid| Some(ProcessIdentity { pid, start_ticks: Stat::of(pid).ok()?.start_ticks });
    let parent = Stat::of(std::process::id()).ok()?.parent;
    match proc::is_shell_for_one_command(parent) {
        true => identity(Stat::of(parent).ok()?.parent),
        false => identity(parent),
    }
}

/// Returns the user that this process acts as.
pub fn user_id() -> u32 {
    geteuid().as_raw()
}

/// Returns what the system calls the user of this process; `None` where it has no name for the number, as in some
/// containers. Asks `id`, which knows every directory that the system looks names up in.
pub fn user_name() -> Option<String> {
    let answer = ask("/usr/bin/id".as_ref(), &["-un"], &BTreeMap::new(), NAMED_WITHIN).ok()?;
    let name = String::from_utf8(answer.stdout).ok()?.trim().to_owned();
    (answer.success && !name.is_empty()).then_some(name)
}

// === impl ProcessIdentity ===

impl ProcessIdentity {
    /// Names this process.
    pub fn this_process() -> Self {
        let pid = std::process::id();
        Self { pid, start_ticks: Stat::of(pid).map_or(0, |stat| stat.start_ticks) }
    }

    /// Tells whether the process lives. What cannot be seen from this pid namespace does not.
    pub fn is_alive(self) -> bool {
        Stat::of(self.pid).is_ok_and(|stat| stat.start_ticks == self.start_ticks && !stat.is_dead())
    }

    /// Takes hold of the process; `None` if it has ended.
    pub fn hold(self) -> io::Result<Option<ProcessHandle>> {
        let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) else { return Ok(None) };
        let pidfd = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(pidfd) => pidfd,
            Err(error) if proc::means_gone(&error.into()) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        // In this order: what is looked at now is what the descriptor stays with, or it has just ended.
        Ok(self.is_alive().then_some(ProcessHandle(pidfd)))
    }
}

// === impl ProcessHandle ===

impl ProcessHandle {
    /// Asks it to end.
    pub fn terminate(&self) -> io::Result<()> {
        self.signal(Signal::TERM)
    }

    /// Ends it.
    pub fn kill(&self) -> io::Result<()> {
        self.signal(Signal::KILL)
    }

    /// Waits until it has ended, and returns whether it has. Blocks.
    pub fn wait(&self, patience: Duration) -> bool {
        let patience = Timespec::try_from(patience).ok();
        poll(&mut [PollFd::new(&self.0, PollFlags::IN)], patience.as_ref()).is_ok_and(|ready| ready > 0)
    }

    fn signal(&self, signal: Signal) -> io::Result<()> {
        match pidfd_send_signal(&self.0, signal) {
            Err(error) if !proc::means_gone(&error.into()) => Err(error.into()),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_process_is_known_by_pid_and_start_time_and_ended_by_its_handle() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let ticks = Stat::of(child.id()).unwrap().start_ticks;
        let named = ProcessIdentity { pid: child.id(), start_ticks: ticks };
        let other = ProcessIdentity { start_ticks: ticks + 1, ..named };
        assert!(named.is_alive());
        assert!(!other.is_alive());
        assert!(other.hold().unwrap().is_none(), "the pid of somebody else");

        let held = named.hold().unwrap().unwrap();
        assert!(!held.wait(Duration::ZERO));
        held.terminate().unwrap();
        assert!(held.wait(Duration::from_secs(30)));
        assert!(!named.is_alive(), "a zombie is dead");
        child.wait().unwrap();
        held.terminate().unwrap();
        assert!(named.hold().unwrap().is_none());
    }

    #[test]
    fn this_process_lives() {
        assert!(ProcessIdentity::this_process().is_alive());
    }
}
