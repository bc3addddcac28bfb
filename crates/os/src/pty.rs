//! Starts a child at a terminal of its own: a pseudoterminal that controls a session which the child leads. What the bytes mean
//! is nobody's business here.
//!
//! A shell puts each job into a process group, so the child's own group is not all: the session is, and what has left even
//! that is found by the census (`census::MarkedRun`).

use std::{
    io,
    os::{fd::OwnedFd, unix::process::CommandExt},
    process::Stdio,
};

use rustix::{
    fs::{OFlags, fcntl_setfl},
    process::{Pid, PidfdFlags, Signal, ioctl_tiocsctty, kill_process_group, pidfd_open, pidfd_send_signal, setsid},
    pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt},
    stdio::stdin,
    termios::{Winsize, tcgetpgrp, tcsetwinsize},
};
use tokio::net::unix::pipe::{Receiver, Sender};

use crate::{
    census::OwnerDaemon,
    child::{ChildSpec, SpawnError},
    fence::SandboxEnforcement,
    group::ProcessGroup,
    proc::{self, Stat},
    sandbox::BegunChild,
};

/// A child at a terminal. Dropping `group` ends the child; `TerminalSession::kill` ends all that runs there.
#[derive(Debug)]
pub struct Pty {
    /// What is printed. The end is an error of the kernel's (EIO) once nobody has the terminal open any more.
    pub output: Receiver,
    /// What is typed.
    pub input: Sender,
    pub session: TerminalSession,
    pub group: ProcessGroup,
    /// What has become of the fence, if one was asked for.
    pub enforced: Option<SandboxEnforcement>,
}

/// All that runs at the terminal.
#[derive(Debug)]
pub struct TerminalSession {
    master: OwnedFd,
    id: u32,
}

/// Rows and columns of letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PtySize {
    pub rows: u16,
    pub cols: u16,
}

impl Pty {
    /// Starts `spec`, marked as `owner`'s. Must be called within a tokio runtime.
    pub fn spawn(spec: &ChildSpec<'_>, owner: &OwnerDaemon, size: PtySize) -> Result<Self, SpawnError> {
        let mut staged = spec.stage(owner)?;
        let failed = |source: io::Error| spec.failed(source);
        let (master, slave) = open(size).map_err(failed)?;
        let end = || slave.try_clone().map(Stdio::from).map_err(failed);
        staged.command.stdin(end()?).stdout(end()?).stderr(end()?);
        drop(slave);
        lead_session(&mut staged.command);
        // The command has our copies of the terminal's end, and is gone after this: or its end would never come.
        let BegunChild { child: leader, enforced, first } = spec.start(staged)?;
        let group = ProcessGroup::adopt(leader, first).map_err(failed)?;
        let id = group.pid();
        let attach = || {
            let output = Receiver::from_owned_fd_unchecked(master.try_clone()?)?;
            let input = Sender::from_owned_fd_unchecked(master.try_clone()?)?;
            io::Result::Ok((output, input))
        };
        let (output, input) = attach().map_err(failed)?;
        Ok(Self { output, input, session: TerminalSession { master, id }, group, enforced })
    }
}

/// Returns the signal of that name, with or without `SIG`.
pub fn signal(name: &str) -> Option<Signal> {
    Some(match name.strip_prefix("SIG").unwrap_or(name) {
        "INT" => Signal::INT,
        "TERM" => Signal::TERM,
        "KILL" => Signal::KILL,
        "HUP" => Signal::HUP,
        "QUIT" => Signal::QUIT,
        "TSTP" => Signal::TSTP,
        "CONT" => Signal::CONT,
        "USR1" => Signal::USR1,
        "USR2" => Signal::USR2,
        _ => return None,
    })
}

fn open(size: PtySize) -> io::Result<(OwnedFd, OwnedFd)> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    tcsetwinsize(&master, size.into())?;
    // By handle: in a container the terminal's name may be another's.
    let slave = ioctl_tiocgptpeer(&master, OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    fcntl_setfl(&master, OFlags::RDWR | OFlags::NONBLOCK)?;
    Ok((master, slave))
}

#[expect(unsafe_code, reason = "before its program runs, a child can only be told to do something this way")]
fn lead_session(command: &mut std::process::Command) {
    // SAFETY: between fork and exec only what is async-signal-safe may run. These are two system calls that neither
    // allocate nor lock; the child's standard input is the terminal by then.
    unsafe {
        command.pre_exec(|| {
            setsid()?;
            ioctl_tiocsctty(stdin())?;
            Ok(())
        });
    }
}

// === impl TerminalSession ===

impl TerminalSession {
    pub fn resize(&self, size: PtySize) -> io::Result<()> {
        Ok(tcsetwinsize(&self.master, size.into())?)
    }

    /// Sends a signal to whoever is in the foreground, as a key does.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        Ok(kill_process_group(tcgetpgrp(&self.master)?, signal)?)
    }

    /// Kills all of it, background jobs too. To be called before the leader is reaped: until then its id is nobody else's.
    pub fn kill(&self) {
        // Whoever is born between a look and its kills is seen at the next.
        for _ in 0..MAX_LOOKS {
            let mut found = proc::pids().filter(|pid| self.holds(*pid)).peekable();
            if found.peek().is_none() {
                return;
            }
            found.for_each(|pid| self.kill_one(pid));
        }
    }

    /// Kills a process if it still is of the session: once the pidfd is open it stays with one process.
    fn kill_one(&self, pid: u32) {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let Some(pidfd) = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) else { return };
        if pid.is_some_and(|pid| self.holds(pid.as_raw_nonzero().get().unsigned_abs())) {
            let _ = pidfd_send_signal(&pidfd, Signal::KILL);
        }
    }

    fn holds(&self, pid: u32) -> bool {
        Stat::of(pid).is_ok_and(|stat| stat.session == self.id && !stat.is_dead())
    }
}

/// How often to look for new processes of a session that is being killed. The second look finds nobody, unless something
/// forks faster than it dies.
const MAX_LOOKS: usize = 64;

impl From<PtySize> for Winsize {
    fn from(size: PtySize) -> Self {
        Self { ws_row: size.rows, ws_col: size.cols, ws_xpixel: 0, ws_ypixel: 0 }
    }
}

#[cfg(test)]
mod tests;
