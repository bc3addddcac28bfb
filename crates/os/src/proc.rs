//! What `/proc` says about processes. Who may conclude what from it is in `census.rs`.

use std::{fs, io, os::unix::fs::MetadataExt, path::Path, thread, time::Duration};

use rustix::io::Errno;

/// A few fields of `/proc/PID/stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    state: u8,
    pub(crate) parent: u32,
    pub(crate) group: u32,
    pub(crate) session: u32,
    flags: u64,
    /// When the process started, in clock ticks since boot.
    pub(crate) start_ticks: u64,
    pub(crate) resident_pages: u64,
    /// Where the program's code begins. The kernel fills it in last when it loads a program; 0 until then.
    code: u64,
    environment_bytes: u64,
}

/// `PF_KTHREAD` of the kernel's `sched.h`.
const KERNEL_THREAD: u64 = 0x0020_0000;

impl Stat {
    pub(crate) fn of(pid: u32) -> io::Result<Self> {
        let line = fs::read(format!("/proc/{pid}/stat"))?;
        Self::parse(&line).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Tells whether the process has ended and only waits to be reaped.
    pub(crate) fn is_dead(self) -> bool {
        matches!(self.state, b'Z' | b'X')
    }

    /// Tells whether an empty environment is the truth, and not just the moment between two programs.
    fn has_no_environment(self) -> bool {
        self.is_dead() || self.flags & KERNEL_THREAD != 0 || self.code != 0 && self.environment_bytes == 0
    }

    /// proc(5): the second field is the name in parentheses, which may itself contain blanks, parentheses and
    /// bytes that are not UTF-8. So count from the last parenthesis; the field after it is number 3.
    fn parse(line: &[u8]) -> Option<Self> {
        let name_end = line.iter().rposition(|&byte| byte == b')')?;
        let rest = str::from_utf8(&line[name_end + 1..]).ok()?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        Some(Self {
            state: *fields.first()?.as_bytes().first()?,
            parent: number(4)?.try_into().ok()?,
            group: number(5)?.try_into().ok()?,
            session: number(6)?.try_into().ok()?,
            flags: number(9)?,
            start_ticks: number(22)?,
            resident_pages: number(24)?,
            code: number(26)?,
            environment_bytes: number(51)?.saturating_sub(number(50)?),
        })
    }
}

/// Tells whether a process is a shell with a command on its command line.
pub(crate) fn is_shell_for_one_command(pid: u32) -> bool {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let mut words = line.split(|byte| *byte == 0);
    let program = words.next().unwrap_or_default().rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let flag = words.next().unwrap_or_default();
    [&b"sh"[..], b"bash", b"dash", b"zsh", b"ash"].contains(&program) && flag.starts_with(b"-") && flag.ends_with(b"c")
}

/// Returns the inode of our pid namespace, 0 where there is none.
pub(crate) fn pid_namespace() -> u64 {
    fs::metadata("/proc/self/ns/pid").map_or(0, |metadata| metadata.ino())
}

/// Tells whether `/proc` counts pids the way this process does.
pub(crate) fn is_ours() -> bool {
    fs::read_link("/proc/self").is_ok_and(|link| link == Path::new(&std::process::id().to_string()))
}

pub(crate) fn pids() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// How often, a millisecond apart, to look at a process that is about to become another program.
const EXEC_LOOKS: usize = 50;

/// Returns the environment a process was started with; `None` if it is gone or not ours to read.
///
/// In the middle of `execve` the kernel has already dropped the old environment and does not show the new
/// one yet. Such a process is looked at again, else the census would miss it.
pub(crate) fn environment(pid: u32) -> Option<Vec<u8>> {
    for _ in 0..EXEC_LOOKS {
        // In this order: if the program is loaded now, what is read after that is not too early.
        let stat = Stat::of(pid).ok()?;
        let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
        if !environment.is_empty() || stat.has_no_environment() {
            return Some(environment);
        }
        thread::sleep(Duration::from_millis(1));
    }
    None
}

/// SIGKILL in the mask of signals that wait for a process (proc(5), `ShdPnd`).
const KILL_WAITS: u64 = 1 << (9 - 1);

/// Tells whether a process was sent SIGKILL and is only on its way out. The kernel leaves the signal in its mask until the end.
pub(crate) fn is_killed(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let waiting = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("ShdPnd:")?.trim(), 16).ok());
    waiting.is_some_and(|waiting| waiting & KILL_WAITS != 0)
}

/// Returns a process's command line as one would type it, more or less.
pub(crate) fn command_line(pid: u32) -> String {
    let raw = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&raw).trim_end_matches('\0').replace('\0', " ")
}

/// Tells whether an error from `/proc/PID/…` says that there is no such process.
pub(crate) fn means_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(Errno::SRCH.raw_os_error())
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    fn line(name: &str, state: char, code: u64, environment: &str) -> Vec<u8> {
        let between = "0 ".repeat(50 - 27);
        format!(
            "42 ({name}) {state} 7 41 42 0 -1 64 1 2 3 4 5 6 7 8 20 0 1 0 4242 0 9 0 {code} {between}{environment} 0\n"
        )
        .into()
    }

    #[test]
    fn a_name_may_look_like_fields() {
        let stat = Stat::parse(&line("a) Z 1 (\u{ff}", 'S', 5, "10 30")).unwrap();
        let expected = Stat {
            state: b'S',
            parent: 7,
            group: 41,
            session: 42,
            flags: 64,
            start_ticks: 4242,
            resident_pages: 9,
            code: 5,
            environment_bytes: 20,
        };
        assert_eq!(stat, expected);
    }

    #[test]
    fn an_empty_environment_is_believed_unless_a_program_is_being_loaded() {
        let believed = |state, code, place| Stat::parse(&line("sh", state, code, place)).unwrap().has_no_environment();
        assert!(believed('S', 5, "10 10"));
        assert!(believed('Z', 0, "0 0"));
        assert!(!believed('R', 0, "0 0"));
        assert!(!believed('R', 0, "10 10"));
        assert!(!believed('R', 5, "10 30"));
        assert!(Stat::of(2).map_or(true, |stat| stat.parent != 0 || stat.has_no_environment()), "kthreadd");
    }

    #[test]
    fn a_cut_line_is_no_stat() {
        let whole = line("sh", 'S', 5, "10 30");
        assert!(Stat::parse(&whole).is_some());
        assert_eq!(Stat::parse(&whole[..30]), None);
        assert_eq!(Stat::parse(b"42 (sh)"), None);
        assert_eq!(Stat::parse(b""), None);
    }

    #[test]
    fn an_environment_that_is_just_being_loaded_is_waited_for() {
        // `spawn` returns in the middle of `execve`. The moment is short, so try often.
        for _ in 0..200 {
            let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
            let environment = environment(child.id()).unwrap();
            child.kill().unwrap();
            child.wait().unwrap();
            assert!(!environment.is_empty());
        }
    }

    #[test]
    fn one_that_was_killed_shows_it_until_it_is_reaped() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        assert!(!is_killed(child.id()));
        child.kill().unwrap();
        while !Stat::of(child.id()).unwrap().is_dead() {
            assert!(is_killed(child.id()));
            thread::yield_now();
        }
        assert!(is_killed(child.id()));
        child.wait().unwrap();
        assert!(!is_killed(child.id()), "there is nobody");
    }

    #[test]
    fn the_parent_of_a_child_is_us() {
        let mut child = Command::new("true").spawn().unwrap();
        let stat = Stat::of(child.id()).unwrap();
        child.wait().unwrap();
        assert_eq!(stat.parent, std::process::id());
        assert!(stat.start_ticks >= Stat::of(std::process::id()).unwrap().start_ticks);
    }
}
