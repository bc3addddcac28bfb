//! The first process of a pid namespace, seen from outside: how what it started has ended, and how that is asked to end.

use std::{
    fs,
    io::Read,
    os::{fd::OwnedFd, unix::process::ExitStatusExt},
    process::ExitStatus,
};

use rustix::{
    fs::{OFlags, fcntl_getfl, fcntl_setfl},
    process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
};

use crate::proc::Stat;

/// The first process of a pid namespace. All others in it end with it.
#[derive(Debug)]
pub(crate) struct InitProcess {
    pub(crate) pid: u32,
    pub(crate) pidfd: OwnedFd,
    /// Where the inner program says how the command has ended, and what of that was read.
    status: fs::File,
    said: Vec<u8>,
}

impl InitProcess {
    /// Takes charge of one. `said` is what was already read of `status`.
    pub(crate) fn new(pid: u32, pidfd: OwnedFd, status: fs::File, said: Vec<u8>) -> Self {
        Self { pid, pidfd, status, said }
    }

    /// How the command has ended, if that was said. To be asked once bubblewrap has ended: nothing more comes then.
    pub(crate) fn ended(mut self) -> Option<ExitStatus> {
        let flags = fcntl_getfl(&self.status).ok()?;
        fcntl_setfl(&self.status, flags | OFlags::NONBLOCK).ok()?;
        let _ = self.status.by_ref().take(64).read_to_end(&mut self.said);
        let raw = str::from_utf8(&self.said).ok()?.strip_prefix('x')?.trim_end().parse().ok()?;
        Some(ExitStatus::from_raw(raw))
    }

    /// Sends SIGTERM to what it was started for: its children, in there. To those whose parent it still is once they are held, so
    /// that no stranger is hit.
    pub(crate) fn ask_to_end(&self) {
        let children =
            fs::read_to_string(format!("/proc/{pid}/task/{pid}/children", pid = self.pid)).unwrap_or_default();
        for pid in children.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()) {
            let raw = i32::try_from(pid).ok().and_then(Pid::from_raw);
            let Some(pidfd) = raw.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) else { continue };
            if Stat::of(pid).is_ok_and(|stat| stat.parent == self.pid) {
                let _ = pidfd_send_signal(&pidfd, Signal::TERM);
            }
        }
    }
}
