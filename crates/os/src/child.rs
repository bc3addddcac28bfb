//! Starts a child with a pipe on each of its three streams, in a process group of its own. How the child
//! ends is in `group.rs`; what its bytes mean is nobody's business here.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use rustix::pipe::fcntl_setpipe_size;
use tokio::net::unix::pipe::{Receiver, Sender};

use crate::{
    census::{MARKER, OwnerDaemon},
    cgroup::Cgroup,
    group::{self, ProcessGroup},
    sandbox::{
        BegunChild, SandboxCommand, SandboxStage,
        fence::{SandboxEnforcement, SandboxPolicy},
    },
};

/// What to start.
#[derive(Clone, Copy, Debug)]
pub struct ChildSpec<'a> {
    /// The program and its arguments.
    pub command: &'a [String],
    /// All of its environment; the daemon's own is not inherited.
    pub env: &'a BTreeMap<OsString, OsString>,
    /// The daemon's own working directory if `None`.
    pub cwd: Option<&'a Path>,
    /// The control group that it begins its life in; the daemon's own if `None`.
    pub cgroup: Option<&'a Cgroup>,
    /// What it and all that it starts may touch; all that the daemon may if `None`.
    pub fence: Option<&'a SandboxPolicy>,
}

/// A running child. Dropping `group` ends it; dropping `stdin` asks it to end by itself.
#[derive(Debug)]
pub struct Child {
    pub stdin: Sender,
    pub stdout: Receiver,
    pub stderr: Receiver,
    pub group: ProcessGroup,
    /// What has become of the fence, if one was asked for.
    pub enforced: Option<SandboxEnforcement>,
}

/// Why a child was not started. Whatever the reason, no process is left.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    #[error("no command given")]
    NoCommand,
    #[error("command {command:?} not found on PATH")]
    NotFound { command: String },
    #[error("working directory {path:?} does not exist")]
    Cwd { path: PathBuf },
    #[error("cannot start {command:?}")]
    Exec { command: String, source: io::Error },
}

/// A command that waits to be started. Its streams are whoever starts it's to choose.
#[derive(Debug)]
pub(crate) struct Staged {
    pub(crate) command: Command,
    /// What is needed to see it start, if it is to live in a sandbox.
    stage: Option<SandboxStage>,
}

impl Child {
    /// Starts `spec`, marked as `owner`'s. Must be called within a tokio runtime.
    pub fn spawn(spec: &ChildSpec<'_>, owner: &OwnerDaemon) -> Result<Self, SpawnError> {
        let mut staged = spec.stage(owner)?;
        let streams = staged.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        streams.process_group(0);
        let BegunChild { child: mut leader, enforced, first } = spec.start(staged)?;

        let stdin = leader.stdin.take().expect("stdin was asked for as a pipe above").into();
        let stdout = leader.stdout.take().expect("stdout was asked for as a pipe above").into();
        let stderr = leader.stderr.take().expect("stderr was asked for as a pipe above").into();
        // The group comes first: from here on an early return ends the child.
        ProcessGroup::adopt(leader, first)
            .and_then(|group| Self::attach(group, stdin, stdout, stderr))
            .map(|child| Self { enforced, ..child })
            .map_err(|source| spec.failed(source))
    }

    fn attach(group: ProcessGroup, stdin: OwnedFd, stdout: OwnedFd, stderr: OwnedFd) -> io::Result<Self> {
        if group::living() <= MAX_WIDE {
            widen(&stdin);
            widen(&stdout);
        }
        Ok(Self {
            stdin: Sender::from_owned_fd(stdin)?,
            stdout: Receiver::from_owned_fd(stdout)?,
            stderr: Receiver::from_owned_fd(stderr)?,
            group,
            enforced: None,
        })
    }
}

// === impl ChildSpec ===

impl ChildSpec<'_> {
    /// Returns what is to be started, all but its streams and its group.
    pub(crate) fn stage(&self, owner: &OwnerDaemon) -> Result<Staged, SpawnError> {
        let [program, arguments @ ..] = self.command else {
            return Err(SpawnError::NoCommand);
        };
        // The kernel says "no such file" both for a missing program and for a missing directory.
        if let Some(cwd) = self.cwd.filter(|cwd| !cwd.is_dir()) {
            return Err(SpawnError::Cwd { path: cwd.to_owned() });
        }
        let room = self.fence.and_then(|fence| Some((fence, fence.room.as_ref()?)));
        let mut staged = match room {
            Some((fence, room)) => {
                let cwd = self.cwd.unwrap_or(Path::new("/"));
                let inside = SandboxCommand { command: self.command, env: self.env, cwd };
                let set = SandboxStage::set(&inside, fence, room, owner);
                let (command, stage) = set.map_err(|source| self.failed(source))?;
                Staged { command, stage: Some(stage) }
            }
            None => {
                let mut command = Command::new(program);
                command
                    .args(arguments)
                    .env_clear()
                    .envs(self.env)
                    // Last, so that nobody's configuration can hide a child from the census.
                    .env(MARKER, owner.marker());
                if let Some(cwd) = self.cwd {
                    command.current_dir(cwd);
                }
                Staged { command, stage: None }
            }
        };
        if let Some(cgroup) = self.cgroup {
            cgroup.take_in(&mut staged.command).map_err(|source| self.failed(source))?;
        }
        Ok(staged)
    }

    /// Starts it, behind the fence if there is one.
    pub(crate) fn start(&self, staged: Staged) -> Result<BegunChild, SpawnError> {
        let Staged { mut command, stage } = staged;
        let begun = |child, enforced| BegunChild { child, enforced, first: None };
        let started = match (stage, self.fence) {
            (Some(stage), _) => stage.start(command),
            (None, None) => command.spawn().map(|child| begun(child, None)),
            (None, Some(fence)) => {
                let started = fence.spawn(move || command.spawn());
                started.and_then(|(child, enforced)| Ok(begun(child?, Some(enforced))))
            }
        };
        started.map_err(|source| self.failed(source))
    }

    pub(crate) fn failed(&self, source: io::Error) -> SpawnError {
        let command = self.command.first().cloned().unwrap_or_default();
        match source.kind() {
            // A path is not looked up; there the kernel's own words say more (the file, or its `#!`).
            io::ErrorKind::NotFound if !command.contains('/') => SpawnError::NotFound { command },
            _ => SpawnError::Exec { command, source },
        }
    }
}

/// The most an unprivileged process may ask for (`/proc/sys/fs/pipe-max-size`).
const WIDE_BYTES: usize = 1 << 20;

/// Children with wide pipes; later ones get the usual 64 KiB. Linux grants a user 64 MiB of pipes in all
/// (`pipe-user-pages-soft`) and once they are used up shrinks every new pipe of that user, in any program,
/// to two pages. Two pipes for each of these children are half of that.
const MAX_WIDE: usize = 16;

/// Lets a big answer cross in a few switches between us and the child instead of one per 64 KiB. A kernel
/// that refuses costs speed and nothing else, so its refusal is ignored.
fn widen(pipe: impl AsFd) {
    let _ = fcntl_setpipe_size(pipe, WIDE_BYTES);
}

#[cfg(test)]
mod tests;
