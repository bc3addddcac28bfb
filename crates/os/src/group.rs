//! A child's process group: how we learn that the child has exited, and how everything it started ends with
//! it. Starting is in `child.rs`; what escaped from a group is found by `census.rs`.
//!
//! The idea: a process that has exited keeps its pid, and so the id of its group, until it is reaped. We
//! learn of the exit through a pidfd, which does not reap; kill the group while its id is certainly ours;
//! and reap last. A signal after reaping could hit strangers, as the number may have been given away.

use std::{
    io,
    os::fd::{AsRawFd, OwnedFd, RawFd},
    process::ExitStatus,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal},
};
use tokio::{
    io::{Interest, unix::AsyncFd},
    time::timeout,
};

use crate::pid_namespace::InitProcess;

/// The process group of a child. Dropping it kills the group and reaps the child.
#[derive(Debug)]
pub struct ProcessGroup(AsyncFd<Leader>);

/// The child itself: the group bears its pid.
#[derive(Debug)]
struct Leader {
    pid: Pid,
    pidfd: OwnedFd,
    /// The first process of the pid namespace that the child is the outside of, if it lives in a sandbox.
    first: Option<InitProcess>,
    /// `None` once it is reaped: from then on its pid must not be signalled.
    child: Option<std::process::Child>,
}

/// Returns how many children are neither reaped nor given up at the moment.
pub fn living() -> usize {
    LIVING.load(Ordering::Relaxed)
}

static LIVING: AtomicUsize = AtomicUsize::new(0);

/// Ends a group whose child has had its stdin closed (B-13): gives it `grace` to exit by itself, `grace`
/// again after SIGTERM, and then kills it. Whatever of the group outlives the child is killed in any case.
///
/// A child that is blocked on writing cannot exit: keep reading its streams meanwhile, or close them.
/// Dropping the future kills the group at once.
pub async fn stop(group: ProcessGroup, grace: Duration) -> io::Result<ExitStatus> {
    if timeout(grace, group.exited()).await.is_err() {
        group.terminate();
        if timeout(grace, group.exited()).await.is_err() {
            group.kill();
            group.exited().await;
        }
    }
    group.finish()
}

// === impl ProcessGroup ===

impl ProcessGroup {
    /// Takes charge of a child that was started as the leader of its own group.
    pub(crate) fn adopt(mut child: std::process::Child, first: Option<InitProcess>) -> io::Result<Self> {
        let pid = Pid::from_child(&child);
        match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(pidfd) => {
                LIVING.fetch_add(1, Ordering::Relaxed);
                Self::watch(Leader { pid, pidfd, first, child: Some(child) })
            }
            Err(error) => {
                let _ = kill_process_group(pid, Signal::KILL);
                let _ = child.wait();
                Err(error.into())
            }
        }
    }

    #[expect(unsafe_code, reason = "tokio has no safe way left to watch a descriptor of one's own")]
    fn watch(leader: Leader) -> io::Result<Self> {
        // SAFETY: the descriptor is the `OwnedFd` in `leader`, which is private to this file, is never replaced
        // and is closed only when `leader` is dropped, which the `AsyncFd` does after it has deregistered it.
        let watched = unsafe { AsyncFd::register_with_interest(leader, Interest::READABLE) };
        Ok(Self(watched?))
    }

    /// Returns the pid of the child, which is also the id of the group.
    pub fn pid(&self) -> u32 {
        self.0.get_ref().pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Waits until the child has exited. Others of its group may go on, and it is not reaped: `finish` does
    /// both. Cancel safe, and may be called again and by several tasks.
    pub async fn exited(&self) {
        loop {
            // An error means that the runtime is going away, and then the group has to go too.
            let Ok(mut ready) = self.0.readable().await else {
                return;
            };
            if self.0.get_ref().has_exited_within(Duration::ZERO) {
                return;
            }
            ready.clear_ready();
        }
    }

    /// Sends SIGTERM to the whole group; in a sandbox to the command, as what is around it would end it without a word.
    pub fn terminate(&self) {
        let leader = self.0.get_ref();
        match &leader.first {
            Some(first) => first.ask_to_end(),
            None => leader.signal(Signal::TERM),
        }
    }

    /// Sends SIGKILL to the whole group.
    pub fn kill(&self) {
        self.0.get_ref().signal(Signal::KILL);
    }

    /// Kills what is left of the group and reaps the child. To be called after `exited`; earlier it works
    /// too, but blocks until the child is dead.
    pub fn finish(self) -> io::Result<ExitStatus> {
        self.0.into_inner().finish()
    }
}

// === impl Leader ===

impl Leader {
    fn finish(mut self) -> io::Result<ExitStatus> {
        self.signal(Signal::KILL);
        let mut child = self.child.take().expect("only this function, which consumes self, and drop take it");
        let status = child.wait()?;
        Ok(self.first.take().and_then(InitProcess::ended).unwrap_or(status))
    }

    /// A fork cannot slip through: the kernel restarts one that meets a pending signal, and either sees the
    /// new member or keeps it from being born.
    fn signal(&self, signal: Signal) {
        // The only error left is that every member runs as somebody else (setuid): nothing we could do.
        let _ = kill_process_group(self.pid, signal);
        if let Some(first) = self.first.as_ref().filter(|_| signal == Signal::KILL) {
            let _ = pidfd_send_signal(&first.pidfd, Signal::KILL);
        }
    }

    fn has_exited_within(&self, patience: Duration) -> bool {
        let patience = Timespec::try_from(patience).ok();
        poll(&mut [PollFd::new(&self.pidfd, PollFlags::IN)], patience.as_ref()).is_ok_and(|ready| ready > 0)
    }
}

/// How long `drop` waits for a killed child. It mostly needs less than one millisecond.
const REAP_PATIENCE: Duration = Duration::from_millis(10);

impl Drop for Leader {
    fn drop(&mut self) {
        LIVING.fetch_sub(1, Ordering::Relaxed);
        if self.child.is_none() {
            return;
        }
        self.signal(Signal::KILL);
        let dead = self.has_exited_within(REAP_PATIENCE);
        let Some(mut child) = self.child.take() else {
            return;
        };
        if dead {
            let _ = child.wait();
        } else {
            // A big process takes a while to give its memory back, and one that hangs in a device longer
            // still; the runtime's thread has others to serve. Without a thread it stays a zombie, no more.
            let reaper = thread::Builder::new().name("prism-reaper".to_owned());
            let _ = reaper.spawn(move || child.wait());
        }
    }
}

impl AsRawFd for Leader {
    fn as_raw_fd(&self) -> RawFd {
        self.pidfd.as_raw_fd()
    }
}

#[cfg(test)]
mod tests;
