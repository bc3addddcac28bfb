//! Starts what is to run in a sandbox: bubblewrap is given its files, says who the first process inside is, the inner program says
//! that it stands, and then it is told to go on.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::File,
    io::{self, Read, Write},
    os::{
        fd::{OwnedFd, RawFd},
        unix::process::CommandExt,
    },
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    pipe::{PipeFlags, pipe_with},
    process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open},
};

use super::{
    BegunChild, INNER, SandboxRoom,
    fence::{SandboxEnforcement, SandboxPolicy},
    inner::{InnerPlan, PROTOCOL},
    memory,
    profile::BwrapProfile,
    spawner,
};
use crate::{
    census::{MARKER, OwnerDaemon},
    pid_namespace::InitProcess,
    proc::Stat,
};

/// What is to run inside.
#[derive(Debug)]
pub(crate) struct SandboxCommand<'a> {
    /// The program and its arguments.
    pub(crate) command: &'a [String],
    pub(crate) env: &'a BTreeMap<OsString, OsString>,
    pub(crate) cwd: &'a Path,
}

/// Our ends of what a sandbox is started with.
#[derive(Debug)]
pub(crate) struct SandboxStage {
    /// What bubblewrap inherits; to be closed once it has.
    theirs: BwrapProfile,
    go: File,
    status: File,
    info: File,
    network: super::NetworkAccess,
}

/// How long bubblewrap and the inner program may take; they mostly need 10 ms.
const PATIENCE: Duration = Duration::from_secs(20);

/// Bytes of what they say.
const MAX_SAID: usize = 4096;

impl SandboxStage {
    /// Prepares the command that starts something in its room. The streams of that command are whoever starts it's to choose.
    pub(crate) fn set(
        inside: &SandboxCommand<'_>,
        fence: &SandboxPolicy,
        room: &SandboxRoom,
        owner: &OwnerDaemon,
    ) -> io::Result<(Command, Self)> {
        // A name like `/proc/self/fd/7` says which folder, and that nobody can have swapped it; inside it has its own.
        let swapped = inside.cwd.starts_with("/proc/self/fd");
        let cwd = if swapped { std::fs::read_link(inside.cwd)? } else { inside.cwd.to_owned() };
        let mut profile = BwrapProfile::new(fence, room, inside.env, &cwd)?;
        let (their_go, go) = pipe_with(PipeFlags::CLOEXEC)?;
        let (status, their_status) = pipe_with(PipeFlags::CLOEXEC)?;
        let (info, their_info) = pipe_with(PipeFlags::CLOEXEC)?;
        let plan = InnerPlan {
            written: profile.written.clone(),
            exec: fence.exec.clone(),
            closed_ports: room.sandbox.out_of_reach(room.network),
            command: inside.command.iter().map(OsString::from).collect(),
        };
        let inner = [their_go, their_status, memory(&plan.bytes())?].map(|file| profile.inherit(file).to_string());
        let mut words = profile.bytes();
        for filter in &room.sandbox.filters {
            let number = profile.inherit(memory(filter)?);
            words.extend(format!("--add-seccomp-fd\0{number}\0").bytes());
        }
        let number = profile.inherit(their_info);
        words.extend(format!("--info-fd\0{number}\0").bytes());
        let words = profile.inherit(memory(&words)?).to_string();

        let mut command = Command::new(&room.sandbox.program);
        command.args(["--as-pid-1", "--args", &words, "--", INNER, PROTOCOL]).args(inner);
        // What the command is given is not bubblewrap's: it would be read outside, by the loader for one.
        command.env_clear().env(MARKER, owner.marker()).current_dir("/");
        pass_on(&mut command, profile.inherited.clone());
        let stage =
            Self { theirs: profile, go: go.into(), status: status.into(), info: info.into(), network: room.network };
        Ok((command, stage))
    }

    /// Starts it, and comes back when the command has begun.
    pub(crate) fn start(self, command: Command) -> io::Result<BegunChild> {
        let Self { theirs, mut go, status, info, network } = self;
        let mut child = spawner::spawn(command)?;
        let covered = theirs.covered.clone();
        drop(theirs);
        let until = Instant::now() + PATIENCE;
        let begun = (|| {
            let mut info = StatusPipe::new(info);
            let (pid, pidfd) = first(&info.line(until, b'}')?, child.id())?;
            let mut status = StatusPipe::new(status);
            let ready = status.line(until, b'\n')?;
            let Some(version) = ready.strip_prefix('r').and_then(|version| version.trim().parse().ok()) else {
                return Err(failure(&ready));
            };
            go.write_all(b"g")?;
            drop(go);
            match status.line(until, b'\n')?.as_str() {
                "s\n" => Ok((InitProcess::new(pid, pidfd, status.pipe, status.rest), version)),
                said => Err(failure(said)),
            }
        })();
        match begun {
            Ok((first, version)) => {
                let landlock = Some(version).filter(|version| *version > 0);
                let enforced = Some(SandboxEnforcement::Sandbox { landlock, network, covered });
                Ok(BegunChild { child, enforced, first: Some(first) })
            }
            Err(error) => {
                let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
                let _ = child.kill();
                let _ = child.wait();
                Err(complaint(&mut child).unwrap_or(error))
            }
        }
    }
}

/// Has a child inherit these and nothing else but its streams.
#[expect(unsafe_code, reason = "before its program runs, a child can only be told to do something this way")]
fn pass_on(command: &mut Command, inherited: Vec<RawFd>) {
    // SAFETY: between fork and exec only what is async-signal-safe may run. These are system calls about descriptors, which
    // neither allocate nor lock; the list was made before.
    unsafe {
        command.pre_exec(move || {
            // Whatever somebody has opened without saying so.
            libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
            for number in &inherited {
                if libc::fcntl(*number, libc::F_SETFD, 0) < 0 {
                    return Err(io::Error::last_os_error());
                }
            }
            Ok(())
        });
    }
}

/// Takes hold of the first process inside, which bubblewrap names by its number out here.
fn first(info: &str, bwrap: u32) -> io::Result<(u32, OwnedFd)> {
    let number = info.split_once("\"child-pid\"").and_then(|(_, rest)| {
        let digits = rest.trim_start_matches(|c: char| !c.is_ascii_digit());
        digits.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u32>().ok()
    });
    let gone = || io::Error::other("the sandbox ended before it began");
    let pid = number.ok_or_else(gone)?;
    let raw = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or_else(gone)?;
    let pidfd: OwnedFd = pidfd_open(raw, PidfdFlags::empty())?;
    // A number that has come to be another's while it was told.
    if Stat::of(pid)?.parent != bwrap {
        return Err(gone());
    }
    Ok((pid, pidfd))
}

fn failure(said: &str) -> io::Error {
    let said = said.trim();
    let Some((code, words)) = said.strip_prefix('e').and_then(|said| said.split_once(' ')) else {
        return io::Error::other(format!(
            "the sandbox could not be made{}{said}",
            if said.is_empty() { "" } else { ": " }
        ));
    };
    code.parse().map_or_else(|_| io::Error::other(words.to_owned()), io::Error::from_raw_os_error)
}

/// What bubblewrap said before it ended, where it was not at a terminal.
fn complaint(child: &mut std::process::Child) -> Option<io::Error> {
    let mut said = String::new();
    child.stderr.as_mut()?.take(MAX_SAID as u64).read_to_string(&mut said).ok()?;
    let line = said.lines().rev().find(|line| line.starts_with("bwrap:"))?;
    Some(io::Error::other(format!("the sandbox could not be made: {line}")))
}

/// Words from a pipe, for which is not waited for ever.
struct StatusPipe {
    pipe: File,
    rest: Vec<u8>,
}

impl StatusPipe {
    fn new(pipe: File) -> Self {
        Self { pipe, rest: Vec::new() }
    }

    /// Reads up to `end`, or to where nobody has anything more to say.
    fn line(&mut self, until: Instant, end: u8) -> io::Result<String> {
        loop {
            if let Some(at) = self.rest.iter().position(|byte| *byte == end) {
                let rest = self.rest.split_off(at + 1);
                return Ok(String::from_utf8_lossy(&std::mem::replace(&mut self.rest, rest)).into_owned());
            }
            let left = until.saturating_duration_since(Instant::now());
            let mut polled = [PollFd::new(&self.pipe, PollFlags::IN)];
            if left.is_zero() || poll(&mut polled, Timespec::try_from(left).ok().as_ref())? == 0 {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "the sandbox was not ready in time"));
            }
            let mut buffer = [0; 512];
            match self.pipe.read(&mut buffer)? {
                0 => return Ok(String::from_utf8_lossy(&std::mem::take(&mut self.rest)).into_owned()),
                count if self.rest.len() < MAX_SAID => self.rest.extend_from_slice(&buffer[..count]),
                _ => return Err(io::Error::other("the sandbox says more than it should")),
            }
        }
    }
}
