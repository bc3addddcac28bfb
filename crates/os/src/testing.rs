//! What the tests of this crate share.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    os::unix::ffi::OsStringExt,
    path::PathBuf,
    process::{Command, Stdio},
    time::Duration,
};

use rustix::{
    io::Errno,
    process::{Pid, PidfdFlags, pidfd_open},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, BufReader},
    net::unix::pipe::Receiver,
    time::timeout,
};

use crate::{
    census::OwnerDaemon,
    child::{Child, ChildSpec},
    proc::{self, Stat},
};

/// Long enough for anything that works, on a machine that is busy.
const DEADLINE: Duration = Duration::from_secs(20);

pub(crate) async fn soon<T>(event: impl Future<Output = T>) -> T {
    timeout(DEADLINE, event).await.expect("it should have happened by now")
}

/// A home of its own for each test, so that their censuses do not meet.
pub(crate) fn home(test: &str) -> PathBuf {
    PathBuf::from(format!("/nowhere/prism-test/{}/{test}", std::process::id()))
}

/// Starts a shell script that belongs to this process.
pub(crate) fn shell(script: &str) -> Child {
    shell_of(&OwnerDaemon::this_process(&home("any")), script)
}

pub(crate) fn shell_of(owner: &OwnerDaemon, script: &str) -> Child {
    let command = ["sh", "-c", script].map(str::to_owned);
    Child::spawn(&ChildSpec { command: &command, env: &environment(), cwd: None, cgroup: None, fence: None }, owner)
        .unwrap()
}

/// The environment of the tests themselves.
pub(crate) fn environment() -> BTreeMap<OsString, OsString> {
    let text = proc::environment(std::process::id()).unwrap();
    let variables = text.split(|byte| *byte == 0).filter_map(|line| {
        let end = line.iter().position(|byte| *byte == b'=')?;
        Some((OsString::from_vec(line[..end].to_owned()), OsString::from_vec(line[end + 1..].to_owned())))
    });
    variables.collect()
}

pub(crate) async fn line(stream: impl AsyncRead + Unpin) -> String {
    let mut line = String::new();
    soon(BufReader::new(stream).read_line(&mut line)).await.unwrap();
    line.trim_end().to_owned()
}

/// Reads the one number that a script prints.
pub(crate) async fn number(stream: impl AsyncRead + Unpin) -> u32 {
    line(stream).await.parse().unwrap()
}

/// Waits until a process, anybody's child, has exited.
pub(crate) async fn death(pid: u32) {
    let pid = Pid::from_raw(pid.try_into().unwrap()).unwrap();
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(pidfd) => {
            // A pidfd is no pipe, but becomes readable like one.
            let watch = Receiver::from_owned_fd_unchecked(pidfd).unwrap();
            soon(watch.readable()).await.unwrap();
        }
        Err(error) => assert_eq!(error, Errno::SRCH),
    }
}

pub(crate) fn is_alive(pid: u32) -> bool {
    Stat::of(pid).is_ok_and(|stat| !stat.is_dead())
}

/// Tells whether nothing is left of a process, not even a zombie.
pub(crate) fn is_reaped(pid: u32) -> bool {
    Stat::of(pid).is_err()
}

/// Starts something that can pass for a daemon, and the owner it is. It ends with this process at the latest.
pub(crate) fn daemon(test: &str) -> (std::process::Child, OwnerDaemon) {
    let daemon = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let start_ticks = Stat::of(daemon.id()).unwrap().start_ticks;
    let owner = OwnerDaemon::of(&home(test), daemon.id(), start_ticks);
    (daemon, owner)
}

/// Returns an owner that has lived and died.
pub(crate) fn dead_owner(test: &str) -> OwnerDaemon {
    let (mut daemon, owner) = daemon(test);
    daemon.kill().unwrap();
    daemon.wait().unwrap();
    owner
}
