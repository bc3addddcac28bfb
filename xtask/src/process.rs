//! Processes that xtask starts and must not leave behind, and the census that shows what others left behind.
//!
//! `std` cannot signal a group, so `sh` does it: its `kill` is built in and exists everywhere. A leader is
//! reaped only after its group was killed: until then the kernel cannot give its number to a stranger.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader, Read},
    os::unix::process::CommandExt,
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::{Context, bail};

use crate::say::say;

/// How often a wait looks again.
const TICK: Duration = Duration::from_millis(20);

/// How long what was killed may take to vanish.
const VANISH: Duration = Duration::from_secs(3);

/// Ends the group when xtask is gone (its end of the pipe closes), however that came about.
const GUARD: &str = "read -r _; kill -s TERM -- -$1; sleep 5; kill -s KILL -- -$1";

/// A process in a group of its own; dropping it kills the whole group.
pub(crate) struct Group {
    leader: Child,
    guard: Option<Child>,
}

/// A daemon under test: its group, and everything it was seen to start, in whatever group that is.
pub(crate) struct Daemon {
    group: Group,
    seen: BTreeMap<u32, Process>,
    /// Stands in the environment of the daemon and of nobody else.
    mark: String,
}

/// What a finished command left on its pipes.
pub(crate) struct Ran {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    /// Empty when the command was shown live.
    pub(crate) stderr: String,
}

/// A pipe that is read to its end in the background, so that nobody blocks on a full one.
struct Pipe {
    text: Arc<Mutex<String>>,
    reader: JoinHandle<()>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Show {
    Live,
    Nothing,
}

/// One line of the process table. A number is reused, a number with its start time is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    parent: u32,
    group: u32,
    state: char,
    started: u64,
    name: String,
}

/// Runs a command in a group of its own to its end, or to `limit`; `tick` is called while it runs.
pub(crate) fn run(mut command: Command, limit: Duration, show: Show, mut tick: impl FnMut()) -> anyhow::Result<Ran> {
    command.stdout(Stdio::piped());
    if show == Show::Nothing {
        command.stderr(Stdio::piped());
    }
    let mut group = Group::spawn(command)?;
    let stdout = group.leader.stdout.take().map(|pipe| Pipe::drain(pipe, show));
    let stderr = group.leader.stderr.take().map(|pipe| Pipe::drain(pipe, Show::Nothing));
    let ended = group.wait(limit, &mut tick);
    let status = group.end()?;
    let text = |pipe: Option<Pipe>| pipe.map(Pipe::text).unwrap_or_default();
    let ran = Ran { status, stdout: text(stdout), stderr: text(stderr) };
    if !ended {
        bail!("not done after {} s, killed; its last words: {}", limit.as_secs(), ran.last_words());
    }
    Ok(ran)
}

/// Ends whoever still has `mark` at the end of a variable of its environment, and returns who that was. What is
/// already on its way out gets the time to go.
pub(crate) fn sweep(mark: &str) -> Vec<String> {
    let marked = || Process::all().into_iter().filter(|process| process.carries(mark) && !process.is_dead());
    let deadline = Instant::now() + VANISH;
    while marked().next().is_some() && Instant::now() < deadline {
        thread::sleep(TICK);
    }
    let left: Vec<Process> = marked().collect();
    left.iter().for_each(|process| signal("KILL", i64::from(process.pid)));
    left.iter().map(Process::describe).collect()
}

/// Sends a signal by name to a process, or to a group when `whom` is negative.
fn signal(name: &str, whom: i64) {
    let _ = Command::new("sh")
        .args(["-c", r#"kill -s "$1" -- "$2""#, "kill", name, &whom.to_string()])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status();
}

// === impl Ran ===

impl Ran {
    /// The last line that says something.
    pub(crate) fn last_words(&self) -> String {
        let last =
            |text: &str| text.lines().rev().find(|line| !line.trim().is_empty()).map(|line| line.trim().to_owned());
        last(&self.stdout).or_else(|| last(&self.stderr)).unwrap_or_else(|| "(nothing)".into())
    }
}

// === impl Pipe ===

impl Pipe {
    fn drain(pipe: impl Read + Send + 'static, show: Show) -> Self {
        let text = Arc::new(Mutex::new(String::new()));
        let shared = text.clone();
        let reader = thread::spawn(move || {
            let mut pipe = BufReader::new(pipe);
            let mut line = Vec::new();
            while pipe.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
                let words = String::from_utf8_lossy(&line);
                if show == Show::Live {
                    say(words.trim_end());
                }
                shared.lock().unwrap_or_else(PoisonError::into_inner).push_str(&words);
                line.clear();
            }
        });
        Self { text, reader }
    }

    /// Whoever escaped from the group may still hold the pipe open; the text is then what came so far.
    fn text(self) -> String {
        let deadline = Instant::now() + VANISH;
        while !self.reader.is_finished() && Instant::now() < deadline {
            thread::sleep(TICK);
        }
        self.text.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

// === impl Group ===

impl Group {
    pub(crate) fn spawn(mut command: Command) -> anyhow::Result<Self> {
        command.process_group(0).stdin(Stdio::null());
        let leader = command.spawn().with_context(|| format!("cannot start {}", command.get_program().display()))?;
        let mut group = Self { leader, guard: None };
        let guard = Command::new("sh")
            .args(["-c", GUARD, "guard", &group.pid().to_string()])
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start sh")?;
        group.guard = Some(guard);
        Ok(group)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.leader.id()
    }

    pub(crate) fn stdout(&mut self) -> Option<impl Read + Send + 'static> {
        self.leader.stdout.take()
    }

    pub(crate) fn stderr(&mut self) -> Option<impl Read + Send + 'static> {
        self.leader.stderr.take()
    }

    /// Whether the leader has ended. Does not reap it where the process table can be read.
    pub(crate) fn ended(&mut self) -> bool {
        match Process::read(self.pid()) {
            Some(process) => process.is_dead(),
            None => cfg!(target_os = "linux") || !matches!(self.leader.try_wait(), Ok(None)),
        }
    }

    /// Waits for the leader's end; false when `limit` came first.
    pub(crate) fn wait(&mut self, limit: Duration, tick: &mut impl FnMut()) -> bool {
        let deadline = Instant::now() + limit;
        while !self.ended() {
            if Instant::now() >= deadline {
                return false;
            }
            tick();
            thread::sleep(TICK);
        }
        true
    }

    /// Kills what is left of the group, then reaps the leader.
    fn end(&mut self) -> anyhow::Result<ExitStatus> {
        if let Some(mut guard) = self.guard.take() {
            let _ = guard.kill();
            let _ = guard.wait();
            signal("KILL", -i64::from(self.pid()));
        }
        self.leader.wait().context("cannot wait for a child")
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

// === impl Daemon ===

impl Daemon {
    pub(crate) fn new(group: Group, mark: String) -> Self {
        Self { group, seen: BTreeMap::new(), mark }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.group.pid()
    }

    pub(crate) fn ended(&mut self) -> bool {
        self.group.ended()
    }

    /// Notes what the daemon has started. Called often, or an orphan may be made between two looks.
    pub(crate) fn look(&mut self) {
        let table = Process::all();
        let own = self.pid();
        let tree = descendants(&table, own);
        let ours = |process: &&Process| {
            process.pid != own && (process.group == own || tree.contains(&process.pid) || process.carries(&self.mark))
        };
        let found: Vec<Process> = table.iter().filter(ours).cloned().collect();
        self.seen.extend(found.into_iter().map(|process| (process.pid, process)));
    }

    /// Children that ended and that the daemon did not reap although it had time to.
    pub(crate) fn zombies(&self) -> Vec<String> {
        let deadline = Instant::now() + VANISH;
        loop {
            let dead = |process: &Process| process.parent == self.pid() && process.is_dead();
            let found: Vec<String> =
                Process::all().iter().filter(|process| dead(process)).map(Process::describe).collect();
            if found.is_empty() || Instant::now() >= deadline {
                return found;
            }
            thread::sleep(TICK);
        }
    }

    /// Asks the daemon to end as a person would, and returns what is wrong with how it went. Nothing is
    /// left afterwards, whatever it was.
    pub(crate) fn stop(&mut self, patience: Duration) -> Vec<String> {
        let mut wrong = Vec::new();
        self.look();
        if self.ended() {
            wrong.push("it had ended by itself".to_owned());
        } else {
            signal("TERM", i64::from(self.pid()));
            if !self.group.wait(patience, &mut || ()) {
                wrong.push(format!("still running {} s after SIGTERM", patience.as_secs()));
            }
        }
        // A last look by group and mark: what it started in its last moments has no parent to be found by.
        self.look();
        let deadline = Instant::now() + VANISH;
        while wrong.is_empty() && !self.left().is_empty() && Instant::now() < deadline {
            thread::sleep(TICK);
        }
        let left = self.left();
        wrong.extend(left.iter().map(|process| format!("left behind: {}", process.describe())));
        self.end();
        wrong
    }

    /// Kills the group, and whatever else was seen to be of it.
    fn end(&mut self) {
        let _ = self.group.end();
        for process in self.left() {
            signal("KILL", i64::from(process.pid));
        }
    }

    fn left(&self) -> Vec<Process> {
        self.seen.values().filter(|process| process.is_still_there()).cloned().collect()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if self.group.guard.is_some() {
            self.look();
            self.end();
        }
    }
}

// === impl Process ===

impl Process {
    /// Reads the process table; empty where there is no `/proc`.
    pub(crate) fn all() -> Vec<Self> {
        let Ok(entries) = fs::read_dir("/proc") else {
            return Vec::new();
        };
        entries.flatten().filter_map(|entry| Self::read(entry.file_name().to_str()?.parse().ok()?)).collect()
    }

    fn read(pid: u32) -> Option<Self> {
        Self::parse(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    fn parse(pid: u32, stat: &str) -> Option<Self> {
        let (head, tail) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = tail.split_whitespace().collect();
        Some(Self {
            pid,
            name: head.split_once('(')?.1.to_owned(),
            state: fields.first()?.chars().next()?,
            parent: fields.get(1)?.parse().ok()?,
            group: fields.get(2)?.parse().ok()?,
            started: fields.get(19)?.parse().ok()?,
        })
    }

    fn is_dead(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }

    /// Still running, and still the one that was seen. A dead one that waits for its reaper is gone: once
    /// the daemon has ended that reaper is init.
    fn is_still_there(&self) -> bool {
        Self::read(self.pid).is_some_and(|now| now.started == self.started && !now.is_dead())
    }

    fn carries(&self, mark: &str) -> bool {
        let environment = fs::read(format!("/proc/{}/environ", self.pid)).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable.ends_with(mark.as_bytes()))
    }

    fn describe(&self) -> String {
        format!("{} ({}, {})", self.pid, self.name, self.state)
    }
}

/// Returns `root` and everything below it.
pub(crate) fn descendants(table: &[Process], root: u32) -> Vec<u32> {
    let mut tree = vec![root];
    let mut next = 0;
    while let Some(&parent) = tree.get(next) {
        tree.extend(
            table.iter().filter(|process| process.parent == parent && process.pid != parent).map(|process| process.pid),
        );
        next += 1;
    }
    tree
}

/// Processor time of a process itself, in microseconds. Linux counts it in hundredths of a second.
pub(crate) fn cpu_us(pid: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let tail = stat.rsplit_once(')').map_or("", |(_, tail)| tail);
    let ticks: u32 = tail.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u32>().ok()).sum();
    f64::from(ticks) * 10_000.0
}

/// Resident memory of a process.
pub(crate) fn rss_kib(pid: u32) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find(|line| line.starts_with("VmRSS:"))?.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests;
