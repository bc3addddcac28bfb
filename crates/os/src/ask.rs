//! Asks another program something: starts it, reads what it prints, and is done with it by a deadline. For programs that
//! run on, with pipes to talk over, there is `child.rs`.
//!
//! The program gets a session of its own. Without a terminal it can neither prompt there nor be stopped for trying to,
//! as an interactive shell would be in the background of ours. All of the session ends with a deadline that is missed.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    io::{self, PipeReader, Read},
    os::unix::process::CommandExt,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, Signal, kill_process, kill_process_group, pidfd_open, setsid},
};

use crate::proc::{Stat, pids};

/// What a program printed, and whether it said that all went well.
#[derive(Debug)]
pub struct ProgramAnswer {
    pub stdout: Vec<u8>,
    pub success: bool,
    /// What it exited with, if it was not killed.
    pub code: Option<i32>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ProgramRunError {
    #[error("cannot start {program:?}")]
    Start { program: String, source: io::Error },
    #[error("{program:?} did not end within {patience:?}")]
    Late { program: String, patience: Duration },
    #[error("{program:?} printed more than {MAX_BYTES} bytes")]
    Long { program: String },
}

/// The most that is read. Beyond it the program is ended: nothing that is asked here has so long an answer.
const MAX_BYTES: usize = 1 << 20;

/// Runs a program to its end. Blocks for as long as `patience` at most. Its environment is `env` and nothing else.
pub fn ask(
    program: &OsStr,
    arguments: &[&str],
    env: &BTreeMap<OsString, OsString>,
    patience: Duration,
) -> Result<ProgramAnswer, ProgramRunError> {
    ask_until(program, arguments, env, patience, |_| false)
}

/// Like [`ask`], with what the program complains of on stderr in its answer, in the order it was said.
pub fn ask_aloud(
    program: &OsStr,
    arguments: &[&str],
    env: &BTreeMap<OsString, OsString>,
    patience: Duration,
) -> Result<ProgramAnswer, ProgramRunError> {
    run(program, arguments, env, None, patience, Complaints::Kept, |_| false)
}

/// The same, in this folder.
pub fn ask_aloud_in(
    folder: &Path,
    program: &OsStr,
    arguments: &[&str],
    env: &BTreeMap<OsString, OsString>,
    patience: Duration,
) -> Result<ProgramAnswer, ProgramRunError> {
    run(program, arguments, env, Some(folder), patience, Complaints::Kept, |_| false)
}

/// Like [`ask`], but done as soon as `is_enough` says so of what was printed. What then still runs of the program's own
/// group is ended.
pub(crate) fn ask_until(
    program: &OsStr,
    arguments: &[&str],
    env: &BTreeMap<OsString, OsString>,
    patience: Duration,
    is_enough: impl Fn(&[u8]) -> bool,
) -> Result<ProgramAnswer, ProgramRunError> {
    run(program, arguments, env, None, patience, Complaints::Dropped, is_enough)
}

/// What becomes of what is said on stderr.
enum Complaints {
    Kept,
    Dropped,
}

fn run(
    program: &OsStr,
    arguments: &[&str],
    env: &BTreeMap<OsString, OsString>,
    folder: Option<&Path>,
    patience: Duration,
    complaints: Complaints,
    is_enough: impl Fn(&[u8]) -> bool,
) -> Result<ProgramAnswer, ProgramRunError> {
    let until = Instant::now() + patience;
    let name = || program.to_string_lossy().into_owned();
    let cannot_start = |source| ProgramRunError::Start { program: name(), source };
    let (printed, printer) = io::pipe().map_err(cannot_start)?;
    let stderr = match complaints {
        Complaints::Kept => Stdio::from(printer.try_clone().map_err(cannot_start)?),
        Complaints::Dropped => Stdio::null(),
    };
    let mut command = Command::new(program);
    command.args(arguments).env_clear().envs(env);
    if let Some(folder) = folder {
        command.current_dir(folder);
    }
    command.stdin(Stdio::null()).stdout(printer).stderr(stderr);
    in_a_session_of_its_own(&mut command);
    let mut child = command.spawn().map_err(cannot_start)?;
    // It holds our copies of the writing end, and there is no end of what is printed as long as one is open.
    drop(command);

    let pid = Pid::from_child(&child);
    let read = read_until(printed, until, &is_enough);
    let ended = match &read {
        Ok(printed) if !is_enough(printed) => has_ended(pid, until),
        _ => false,
    };
    // While the leader is not reaped, both ids are certainly its own.
    let _ = kill_process_group(pid, Signal::KILL);
    if matches!(&read, Err(Stopped::Late)) || matches!(&read, Ok(printed) if !ended && !is_enough(printed)) {
        kill_session(pid);
    }
    let status = child.wait().map_err(cannot_start)?;
    match read {
        Ok(stdout) if is_enough(&stdout) => Ok(ProgramAnswer { stdout, success: true, code: None }),
        Ok(stdout) if ended => Ok(ProgramAnswer { stdout, success: status.success(), code: status.code() }),
        Ok(_) | Err(Stopped::Late) => Err(ProgramRunError::Late { program: name(), patience }),
        Err(Stopped::Long) => Err(ProgramRunError::Long { program: name() }),
        Err(Stopped::Broken(source)) => Err(cannot_start(source)),
    }
}

/// Why reading stopped before its end.
enum Stopped {
    Late,
    Long,
    Broken(io::Error),
}

fn read_until(mut stdout: PipeReader, until: Instant, is_enough: &impl Fn(&[u8]) -> bool) -> Result<Vec<u8>, Stopped> {
    let mut printed = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let left = Timespec::try_from(until.saturating_duration_since(Instant::now())).ok();
        match poll(&mut [PollFd::new(&stdout, PollFlags::IN)], left.as_ref()) {
            Ok(0) => return Err(Stopped::Late),
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(Stopped::Broken(error.into())),
        }
        match stdout.read(&mut piece) {
            Ok(0) => return Ok(printed),
            Ok(count) => printed.extend_from_slice(&piece[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Stopped::Broken(error)),
        }
        if is_enough(&printed) {
            return Ok(printed);
        }
        if printed.len() > MAX_BYTES {
            return Err(Stopped::Long);
        }
    }
}

/// Waits until a process has ended. It is not reaped.
fn has_ended(pid: Pid, until: Instant) -> bool {
    let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else {
        return false;
    };
    let left = Timespec::try_from(until.saturating_duration_since(Instant::now())).ok();
    poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], left.as_ref()).is_ok_and(|ready| ready > 0)
}

/// Kills what a shell has put into groups of their own, as shells do with their jobs.
fn kill_session(leader: Pid) {
    let session = leader.as_raw_nonzero().get().unsigned_abs();
    for pid in pids().filter(|pid| Stat::of(*pid).is_ok_and(|stat| stat.session == session)) {
        if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

#[expect(unsafe_code, reason = "the standard library cannot start a session yet")]
fn in_a_session_of_its_own(command: &mut Command) {
    // SAFETY: between fork and exec only what is async-signal-safe may run. This is one system call, which neither
    // allocates nor locks.
    unsafe { command.pre_exec(|| Ok(setsid().map(drop)?)) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{environment, is_alive};

    const LONG: Duration = Duration::from_secs(20);
    const SHORT: Duration = Duration::from_millis(300);

    fn sh(script: &str, patience: Duration) -> Result<ProgramAnswer, ProgramRunError> {
        ask(OsStr::new("sh"), &["-c", script], &environment(), patience)
    }

    #[test]
    fn what_is_printed_is_the_answer_and_stderr_is_not() {
        let answer = sh("echo yes; echo no >&2; exit 3", LONG).unwrap();
        assert_eq!((answer.stdout.as_slice(), answer.success), (&b"yes\n"[..], false));
        assert!(sh("true", LONG).unwrap().success);
    }

    #[test]
    fn what_is_complained_of_is_in_the_answer_of_who_wants_it() {
        let arguments = ["-c", "echo yes; echo no >&2; exit 3"];
        let answer = ask_aloud(OsStr::new("sh"), &arguments, &environment(), LONG).unwrap();
        assert_eq!((answer.stdout.as_slice(), answer.success), (&b"yes\nno\n"[..], false));
        let answer = ask_aloud_in(Path::new("/"), OsStr::new("sh"), &["-c", "pwd"], &environment(), LONG).unwrap();
        assert_eq!((answer.stdout.as_slice(), answer.code), (&b"/\n"[..], Some(0)));
    }

    #[test]
    fn there_is_nothing_on_stdin_and_no_terminal() {
        let answer = sh("cat; (: > /dev/tty) 2> /dev/null || echo none", LONG).unwrap();
        assert_eq!(answer.stdout, b"none\n");
    }

    #[test]
    fn whoever_is_late_ends_with_all_it_started() {
        // With job control, each job has a group of its own.
        let file = tempfile();
        let script = format!("set -m; sleep 1000 & echo $! > {file}; wait");
        let started = Instant::now();
        assert!(matches!(sh(&script, SHORT), Err(ProgramRunError::Late { .. })));
        assert!(started.elapsed() < LONG);
        let job: u32 = std::fs::read_to_string(&file).unwrap().trim().parse().unwrap();
        std::fs::remove_file(&file).unwrap();
        assert!(!is_alive(job) || died_soon(job));
    }

    #[test]
    fn closing_stdout_is_not_ending() {
        assert!(matches!(sh("exec >&-; sleep 1000", SHORT), Err(ProgramRunError::Late { .. })));
    }

    #[test]
    fn who_talks_without_end_is_ended() {
        assert!(matches!(sh("yes", LONG), Err(ProgramRunError::Long { .. })));
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let error = ask(OsStr::new("prism-no-such-program"), &[], &environment(), LONG).unwrap_err();
        assert_eq!(error.to_string(), "cannot start \"prism-no-such-program\"");
    }

    fn tempfile() -> String {
        let name = format!("prism-ask-{}-{:?}", std::process::id(), std::thread::current().id());
        std::env::temp_dir().join(name.replace(['(', ')'], "")).to_str().unwrap().to_owned()
    }

    /// A killed process is gone in a moment.
    fn died_soon(pid: u32) -> bool {
        let until = Instant::now() + LONG;
        while is_alive(pid) && Instant::now() < until {
            std::thread::yield_now();
        }
        !is_alive(pid)
    }
}
