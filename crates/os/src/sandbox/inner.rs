//! What is the first to run inside of a sandbox: it binds itself by landlock, takes its limits, says that it is ready, waits to be
//! told to go on, starts the command, and says how that ended. It reads no config, no variable and no home.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, File},
    io::{self, Read, Write},
    os::{
        fd::{FromRawFd, RawFd},
        unix::{ffi::OsStrExt, ffi::OsStringExt, process::CommandExt},
    },
    path::{Path, PathBuf},
    process::{Command, ExitCode, exit},
};

use rustix::{
    io::{Errno, FdFlags, fcntl_setfd},
    process::{Resource, Rlimit, WaitOptions, getpid, setpgid, setrlimit, wait},
    stdio::stdin,
    termios::{isatty, tcsetpgrp},
};

use super::fence;

/// Processes and threads that there may be in one sandbox. The kernel counts them by namespace of users, so those of others are
/// not among them.
const PROCESSES: u64 = 4096;

/// Files that a program has open, as it is used to: what the daemon has raised for itself is not for others.
const FILES: u64 = 1024;

/// What the kernel ends first when the machine has no memory left, from -1000 to 1000: rather this than the daemon. Everybody may
/// raise his own.
const OUT_OF_MEMORY_SCORE: &str = "500";

/// What it exits with if it is not told to go on: nobody is there to be told why.
const LEFT: u8 = 125;

/// The version of what is said between the daemon and this, the first word on the command line. After an upgrade the daemon is
/// still the old one.
pub(super) const PROTOCOL: &str = "1";

/// What is to be done inside.
#[derive(Debug, Default)]
pub(super) struct InnerPlan {
    /// What landlock lets be written.
    pub(super) written: Vec<PathBuf>,
    /// What may be executed; all that is there if `None`.
    pub(super) exec: Option<Vec<PathBuf>>,
    /// Ports that are not connected to.
    pub(super) closed_ports: Vec<u16>,
    pub(super) command: Vec<OsString>,
}

/// Returns whether this process is the inner program of a sandbox, by the name that only a sandbox gives it. To be asked before
/// anything else.
pub fn is_called() -> bool {
    std::env::args_os().next().is_some_and(|name| name == super::INNER)
}

/// Runs the command that the sandbox is for. Only an error comes back from that.
pub fn run() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    let is_known = words.next().is_some_and(|word| word == PROTOCOL);
    let numbers: Vec<RawFd> =
        words.filter_map(|word| word.to_str()?.parse().ok()).filter(|number| *number > 2).collect();
    let [go, status, plan] = numbers[..] else { return ExitCode::from(LEFT) };
    let [go, mut status, plan] = [go, status, plan].map(file);
    if !is_known {
        let _ = status
            .write_all(b"e prism was replaced by another version since the daemon was started; type: prism restart\n");
        return ExitCode::from(LEFT);
    }
    match run_command(go, &mut status, plan) {
        Ok(None) => {}
        Ok(Some(error)) | Err(error) => {
            let code = error.raw_os_error().map_or_else(String::new, |code| code.to_string());
            let _ = status.write_all(format!("e{code} {error}\n").as_bytes());
        }
    }
    ExitCode::from(LEFT)
}

#[expect(unsafe_code, reason = "descriptors that are inherited have numbers, and no owner")]
fn file(number: RawFd) -> File {
    // SAFETY: whoever starts this has opened these for it and for nobody else, and says so once, on the command line.
    unsafe { File::from_raw_fd(number) }
}

fn run_command(mut go: File, status: &mut File, mut plan: File) -> io::Result<Option<io::Error>> {
    let mut bytes = Vec::new();
    plan.read_to_end(&mut bytes)?;
    drop(plan);
    let plan = InnerPlan::read(&bytes);
    let _ = fs::write("/proc/self/oom_score_adj", OUT_OF_MEMORY_SCORE);
    let version = fence::bind_inside(&plan.written, plan.exec.as_deref(), &plan.closed_ports)?;
    let limit = |resource, most| {
        // A lower one that holds already stays.
        let _ = setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) });
    };
    limit(Resource::Nproc, PROCESSES);
    limit(Resource::Core, 0);
    let _ =
        setrlimit(Resource::Nofile, Rlimit { current: Some(FILES), ..rustix::process::getrlimit(Resource::Nofile) });
    fcntl_setfd(&*status, FdFlags::CLOEXEC)?;
    status.write_all(format!("r{version}\n").as_bytes())?;
    // Nothing comes if whoever has started this is gone.
    if go.read(&mut [0])? == 0 {
        return Ok(None);
    }
    drop(go);
    let [program, arguments @ ..] = plan.command.as_slice() else { return Ok(None) };
    let mut command = Command::new(program);
    command.args(arguments);
    if isatty(stdin()) {
        to_the_front(&mut command);
    }
    let started = match command.spawn() {
        Ok(started) => started,
        Err(error) => return Ok(Some(error)),
    };
    status.write_all(b"s\n")?;
    Ok(Some(end_with(started.id(), status)))
}

/// Waits for the command as the first process of its namespace: whoever has lost its parent is this one's to bury. When the command
/// ends this does too, and with it whatever else is there. How it ended is said: an exit status alone cannot tell a signal.
fn end_with(command: u32, status: &mut File) -> io::Error {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, how))) if pid.as_raw_nonzero().get().unsigned_abs() == command => {
                let _ = status.write_all(format!("x{}\n", how.as_raw()).as_bytes());
                exit(how.exit_status().unwrap_or_else(|| 128 + how.terminating_signal().unwrap_or_default()));
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return error.into(),
        }
    }
}

/// Puts the command in front of its terminal, in a group of its own: what is typed to interrupt it would else end bubblewrap, and
/// the whole sandbox with it.
#[expect(unsafe_code, reason = "before its program runs, a child can only be told to do something this way")]
fn to_the_front(command: &mut Command) {
    // SAFETY: between fork and exec only what is async-signal-safe may run. These are four system calls that neither allocate nor
    // lock.
    unsafe {
        command.pre_exec(|| {
            setpgid(None, None)?;
            // Who puts himself in front without being there is stopped, unless he does not mind.
            libc::signal(libc::SIGTTOU, libc::SIG_IGN);
            let _ = tcsetpgrp(stdin(), getpid());
            libc::signal(libc::SIGTTOU, libc::SIG_DFL);
            Ok(())
        });
    }
}

// === impl InnerPlan ===

impl InnerPlan {
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut say = |kind: u8, word: &OsStr| {
            bytes.push(kind);
            bytes.extend_from_slice(word.as_bytes());
            bytes.push(0);
        };
        self.written.iter().for_each(|path| say(b'w', path.as_os_str()));
        if let Some(exec) = &self.exec {
            // An empty list is a list, too.
            say(b'x', OsStr::new(""));
            exec.iter().for_each(|path| say(b'x', path.as_os_str()));
        }
        self.closed_ports.iter().for_each(|port| say(b'p', OsStr::new(&port.to_string())));
        self.command.iter().for_each(|word| say(b'c', word));
        bytes
    }

    fn read(bytes: &[u8]) -> Self {
        let mut plan = Self::default();
        for line in bytes.split(|byte| *byte == 0) {
            let Some((kind, word)) = line.split_first() else { continue };
            let word = OsString::from_vec(word.to_vec());
            match kind {
                b'w' => plan.written.push(word.into()),
                b'x' => {
                    let exec = plan.exec.get_or_insert_default();
                    exec.extend(Some(PathBuf::from(word)).filter(|path| path != Path::new("")));
                }
                b'p' => plan.closed_ports.extend(word.to_str().and_then(|port| port.parse::<u16>().ok())),
                _ => plan.command.push(word),
            }
        }
        plan
    }
}
