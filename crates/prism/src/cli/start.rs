//! Finds the daemon of a home, or starts it in the background. Everybody who needs one comes by here: `prism serve
//! --detach`, `prism restart`, the stdio shim. Any number may come at once: the lock decides whose daemon it is, and the
//! others find that one.

use std::{
    fs::{self, File, OpenOptions},
    io::{Read, Seek, SeekFrom},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, anyhow};
use prism_os::detach;

use super::{say, service};
use prism_config::{Env, home::Home, registration::Registration};

/// The log of a daemon in the background, in Prism's home.
pub const LOG: &str = "prism.log";
/// What a daemon exits with that found another one in its place.
pub const ALREADY_RUNNING: u8 = 3;

/// How long a daemon may take from its start to its first answer.
const START_TIMEOUT: Duration = Duration::from_secs(10);
/// How long to wait for another daemon that holds the home and is not to be reached: it is starting, or it is stopping
/// and then ours can start. A stop takes as long as the calls that it lets finish and the children that it ends.
const TAKEOVER_TIMEOUT: Duration = Duration::from_secs(30);
/// How often to look, and how long to leave another daemon alone before ours is tried again.
const LOOK: Duration = Duration::from_millis(5);
const TRY_AGAIN: Duration = Duration::from_millis(100);
/// What is shown of the log of a daemon that did not start.
const SHOWN_LINES: usize = 12;
const MAX_SHOWN_BYTES: u64 = 64 << 10;

/// How a daemon is started: as if these words were typed in that folder.
#[derive(Clone, Debug)]
pub(super) struct DaemonCommandLine {
    pub(super) arguments: Vec<String>,
    pub(super) folder: PathBuf,
}

/// Whose daemon it is that runs now.
#[derive(Debug)]
pub(super) enum StartOutcome {
    Started(Registration),
    /// Somebody else's was there, or was faster.
    Found(Registration),
}

/// Returns the daemon of this home, which is started if there is none. Blocks until it answers.
///
/// It is started on the config in Prism's home, whatever the folder: who opens a cloned project in an editor has not said
/// that its servers may run. Where the system is to run it, the system is asked first: one of our own in its place would
/// not be started again.
pub fn ensure_running(env: &Env, home: &Home) -> anyhow::Result<Registration> {
    if let Some(found) = running(home.path()) {
        return Ok(found);
    }
    if service::begin_installed(env, home.path())
        && let Some(found) = appears(home.path())
    {
        return Ok(found);
    }
    let start = DaemonCommandLine { arguments: vec!["serve".to_owned()], folder: home.path().to_owned() };
    match start.run(home)? {
        StartOutcome::Started(registration) | StartOutcome::Found(registration) => Ok(registration),
    }
}

/// Waits for a daemon that somebody else starts.
fn appears(home: &Path) -> Option<Registration> {
    let begun = Instant::now();
    while begun.elapsed() < START_TIMEOUT {
        if let Some(found) = running(home) {
            return Some(found);
        }
        thread::sleep(LOOK);
    }
    None
}

/// Returns the daemon of a home, if one lives and answers.
pub(super) fn running(home: &Path) -> Option<Registration> {
    Registration::alive(home).filter(Registration::answers)
}

impl DaemonCommandLine {
    /// Has a new daemon read its config, which ends before it is one. What is wrong with it is the error.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let mut command = Command::new(own_program()?);
        command.args(&self.arguments).arg("--check").current_dir(&self.folder).stdin(Stdio::null());
        let ended = command.output().context("cannot check the config")?;
        let said = String::from_utf8_lossy(&ended.stderr);
        ended.status.success().then_some(()).ok_or_else(|| anyhow!("{}", said.trim().trim_start_matches("error: ")))
    }

    /// Starts the daemon, and returns when it answers.
    pub(super) fn run(&self, home: &Home) -> anyhow::Result<StartOutcome> {
        let begun = Instant::now();
        let mut attempt = self.spawn(home)?;
        loop {
            if let Some(found) = running(home.path()) {
                let ours = found.pid == attempt.child.id();
                attempt.leave();
                return Ok(if ours { StartOutcome::Started(found) } else { StartOutcome::Found(found) });
            }
            match attempt.child.try_wait().context("cannot look after the daemon")? {
                Some(status) if status.code() == Some(ALREADY_RUNNING.into()) => {
                    if begun.elapsed() > TAKEOVER_TIMEOUT {
                        return Err(no_answer(home));
                    }
                    thread::sleep(TRY_AGAIN);
                    // It may have become what is wanted.
                    if running(home.path()).is_none() {
                        attempt = self.spawn(home)?;
                    }
                }
                Some(status) => return Err(attempt.failed(status)),
                None if attempt.begun.elapsed() > START_TIMEOUT => {
                    // A start that failed leaves nothing behind.
                    let _ = attempt.child.kill();
                    let _ = attempt.child.wait();
                    return Err(attempt.silent());
                }
                None => thread::sleep(LOOK),
            }
        }
    }

    fn spawn(&self, home: &Home) -> anyhow::Result<Attempt> {
        let path = home.path().join(LOG);
        let log = OpenOptions::new().append(true).create(true).mode(0o600).open(&path);
        let log = log.with_context(|| format!("cannot write the log {}", path.display()))?;
        let said_before = log.metadata().map_or(0, |metadata| metadata.len());
        let program = own_program()?;
        let mut command = Command::new(&program);
        command
            .args(&self.arguments)
            .arg("--detached")
            // The folder may have been named from where we are.
            .env("PRISM_HOME", home.path())
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(log.try_clone().context("cannot share the log")?)
            .stderr(log);
        let child = detach::spawn(command)
            .with_context(|| format!("cannot start {} in {}", program.display(), self.folder.display()))?;
        Ok(Attempt { child, begun: Instant::now(), log: path, said_before })
    }
}

/// A daemon that was started and does not answer yet.
struct Attempt {
    child: Child,
    begun: Instant,
    log: PathBuf,
    /// Where its words begin in the log.
    said_before: u64,
}

impl Attempt {
    /// Leaves it to itself. Should it end before us, it must not stay a zombie.
    fn leave(mut self) {
        let _ = thread::Builder::new().name("daemon".to_owned()).spawn(move || self.child.wait());
    }

    fn failed(&self, status: ExitStatus) -> anyhow::Error {
        anyhow!("the daemon did not start ({status}); it said:\n{}", self.words())
    }

    fn silent(&self) -> anyhow::Error {
        anyhow!(
            "the daemon did not answer within {} s and was ended; it said:\n{}\n  fix: run `prism serve` to see more",
            START_TIMEOUT.as_secs(),
            self.words()
        )
    }

    /// The last lines of what it has written.
    fn words(&self) -> String {
        let words = last_words(&self.log, self.said_before).unwrap_or_default();
        let lines: Vec<&str> = words.lines().collect();
        let shown = &lines[lines.len().saturating_sub(SHOWN_LINES)..];
        match shown {
            [] => format!("  (nothing, in {})", self.log.display()),
            shown => shown.iter().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n"),
        }
    }
}

fn last_words(log: &Path, from: u64) -> std::io::Result<String> {
    let mut file = File::open(log)?;
    let length = file.metadata()?.len();
    // It is shorter when the log was begun anew meanwhile.
    let from = if length < from { 0 } else { from };
    file.seek(SeekFrom::Start(from.max(length.saturating_sub(MAX_SHOWN_BYTES))))?;
    let mut bytes = Vec::new();
    file.take(MAX_SHOWN_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn no_answer(home: &Home) -> anyhow::Error {
    let who = match Registration::alive(home.path()) {
        Some(found) => format!("the daemon with pid {} does not answer at {}", found.pid, found.url),
        None => format!("another daemon holds {} and does not answer", home.path().display()),
    };
    anyhow!("{who}\n  fix: prism stop, and try again; what it says is in {}", home.path().join(LOG).display())
}

/// The program that runs. After an upgrade the file is another one under the old name, and that is the one to start.
pub(super) fn own_program() -> anyhow::Result<PathBuf> {
    let path = std::env::current_exe().context("cannot find out which program this is")?;
    match path.to_str().and_then(|path| path.strip_suffix(" (deleted)")) {
        Some(renewed) if !path.exists() && fs::exists(renewed).unwrap_or(false) => Ok(PathBuf::from(renewed)),
        _ => Ok(path),
    }
}

/// Says where a daemon in the background is, and what can be done with it.
pub(super) fn announce(registration: &Registration, program: &str) {
    say::line(&format!("listening on {}", registration.url));
    say::line(&format!("pid          {}", registration.pid));
    if let Some(log) = &registration.log {
        say::line(&format!("log          {}", log.display()));
    }
    say::line(&format!("next         {program} status, {program} logs -f, {program} stop, {program} restart"));
}
