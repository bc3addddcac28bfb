//! Processes as `/proc` shows them: who lives, whose child, how much memory.

use std::{fs, path::Path};

use rustix::process::{Pid, Signal, kill_process};

/// What the daemon writes into the environment of its children.
const MARKER: &str = "PRISM_CHILD_OF";

/// A process that names a daemon as the one it belongs to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Marked {
    pub(crate) pid: u32,
    pub(crate) owner: u32,
}

pub(crate) fn signal(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a pid is a small positive number");
    kill_process(pid, signal).expect("the process is there, and ours");
}

/// Sends a signal to a process that may have ended a moment ago.
pub(crate) fn signal_if_there(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}

/// Tells whether a process runs. A zombie does not: whoever should reap it is just slow.
pub(crate) fn is_alive(pid: u32) -> bool {
    stat(pid).is_some_and(|(state, _)| !matches!(state, 'Z' | 'X'))
}

/// Tells whether anything is left of a process, a zombie included.
pub(crate) fn is_there(pid: u32) -> bool {
    stat(pid).is_some()
}

pub(crate) fn parent(pid: u32) -> Option<u32> {
    stat(pid).map(|(_, parent)| parent)
}

/// The processes that were started with a variable and an argument like these.
pub(crate) fn started_with(variable: &str, argument: &str) -> Vec<u32> {
    let has = |pid: u32, file: &str, word: &str| {
        let text = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        text.split(|byte| *byte == 0).any(|one| one == word.as_bytes())
    };
    pids().filter(|pid| has(*pid, "environ", variable) && has(*pid, "cmdline", argument)).collect()
}

/// The session that a process belongs to.
pub(crate) fn session(pid: u32) -> Option<u32> {
    fields(pid)?.get(3)?.parse().ok()
}

fn stat(pid: u32) -> Option<(char, u32)> {
    let fields = fields(pid)?;
    Some((fields.first()?.chars().next()?, fields.get(1)?.parse().ok()?))
}

/// The fields of `/proc/PID/stat` behind the name, which may contain blanks and brackets; the last bracket ends it.
fn fields(pid: u32) -> Option<Vec<String>> {
    let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let text = String::from_utf8_lossy(&text);
    Some(text.rsplit_once(')')?.1.split_ascii_whitespace().map(str::to_owned).collect())
}

/// Processor time that a process has used, in ticks of 10 ms.
pub(crate) fn ticks(pid: u32) -> u64 {
    let fields = fields(pid).expect("the process is there");
    // User and system time: the 14th and 15th field, of which the first two were cut off.
    fields[11..13].iter().map(|field| field.parse::<u64>().expect("a number")).sum()
}

/// The processes that daemons of this home have started, zombies aside, and what those have started.
pub(crate) fn marked(home: &Path) -> Vec<Marked> {
    let prefix = format!("{MARKER}={}|", home.display());
    let owner = |pid: u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
        let marker = environment.split(|byte| *byte == 0).find_map(|v| v.strip_prefix(prefix.as_bytes()))?;
        // After the home: namespace, pid, start.
        String::from_utf8_lossy(marker).split('|').nth(1)?.parse().ok()
    };
    pids().filter_map(|pid| Some(Marked { pid, owner: owner(pid)? })).collect()
}

/// All processes that were given this home, whoever has started them: daemons, shims, attempts to start a daemon.
pub(crate) fn of_home(home: &Path) -> Vec<u32> {
    let variable = format!("PRISM_HOME={}", home.display());
    let is_given = |pid: &u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|given| given == variable.as_bytes())
    };
    pids().filter(is_given).collect()
}

/// Processes that live in a folder, whatever has become of their parents and their environment.
pub(crate) fn working_in(folder: &Path) -> Vec<u32> {
    let works = |pid: &u32| fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(folder));
    pids().filter(works).filter(|pid| is_alive(*pid)).collect()
}

/// These, and all that they and theirs have started: in a sandbox nobody bears a mark.
pub(crate) fn with_descendants(of: &[u32]) -> Vec<u32> {
    let parents: Vec<(u32, u32)> = pids().filter_map(|pid| Some((pid, parent(pid)?))).collect();
    let mut found = of.to_vec();
    let mut next = 0;
    while let Some(above) = found.get(next).copied() {
        let below = parents.iter().filter(|(_, parent)| *parent == above).map(|(pid, _)| *pid);
        let new: Vec<u32> = below.filter(|pid| !found.contains(pid)).collect();
        found.extend(new);
        next += 1;
    }
    found
}

fn pids() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").expect("there is a /proc");
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Memory that a process holds now, in KiB.
pub(crate) fn resident_kib(pid: u32) -> u64 {
    status(pid, "VmRSS:")
}

/// The most it ever held, in KiB.
pub(crate) fn peak_kib(pid: u32) -> u64 {
    status(pid, "VmHWM:")
}

fn status(pid: u32, field: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process is there");
    let line = text.lines().find_map(|line| line.strip_prefix(field)).expect("every process has this field");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// How many files, sockets and pipes a process has open.
pub(crate) fn open_files(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, |files| files.count())
}
