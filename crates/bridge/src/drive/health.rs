//! How a destination's server really is: the one place that `/readyz`, `prism status`, the console, `prism doctor` and
//! `prism_destinations` ask (D-05).
//!
//! What a link's machine does says little: a connection that is up may lead to nobody. So whoever uses the server notes
//! here how that went, and the last use counts: one that failed stands until one that worked. Nothing is started for a
//! look, and a call that goes well costs one read of an atomic.

use std::{
    fmt,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use prism_core::mcp::{CallFault, LinkState};

use super::{destination::lock, stderr::StderrLine};
use prism_config::{self as config, HttpConfig};
use prism_mcp::remote::RemoteFailure;

/// The longest line of a server's that is told of in a sentence. The rest is cut.
const MAX_LINE: usize = 200;
/// Lines that are told of.
const MAX_LINES: usize = 3;

/// What a server is, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerState {
    NeverUsed,
    Starting,
    Up,
    /// It is up, and did not answer in time.
    Slow,
    /// It cannot be started, does not stay up, or answers with nothing but errors.
    Failing,
    /// Its program is not there, or cannot be executed.
    Missing,
    /// It is reached over HTTP, and nobody takes a request there.
    Refusing,
    /// It is reached over HTTP, and wants other credentials.
    Unauthorized,
    /// It was used and is not now; it starts with the next call.
    Asleep,
}

/// How a server is, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerHealth {
    pub state: ServerState,
    /// One plain sentence with the reason.
    pub said: String,
    /// What to type, where there is something to mend.
    pub fix: Option<String>,
}

/// How the last use of a server went.
#[derive(Debug, Default)]
pub struct HealthObservations {
    /// Whether there is something to take back.
    ails: AtomicBool,
    last: Mutex<Option<ObservedFault>>,
    /// What a server that is being started printed, and is no message.
    printed: Mutex<Option<String>>,
}

#[derive(Clone, Debug)]
struct ObservedFault {
    state: ServerState,
    said: String,
    at: Instant,
    /// It counts although a link is up: that is what it is about.
    of_one_that_is_up: bool,
    /// Nobody tries to start it any more.
    given_up: bool,
}

/// The starts of a link's server since one of them went well.
#[derive(Debug)]
pub struct FailedStarts {
    count: u32,
    since: Instant,
}

// === impl ServerState ===

impl ServerState {
    /// For programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::NeverUsed => "never_used",
            Self::Starting => "starting",
            Self::Up => "up",
            Self::Slow => "slow",
            Self::Failing => "failing",
            Self::Missing => "missing",
            Self::Refusing => "refusing",
            Self::Unauthorized => "unauthorized",
            Self::Asleep => "asleep",
        }
    }

    /// Whether a call that comes now can be expected to be answered. One that does not run is started by it.
    pub fn is_ready(self) -> bool {
        match self {
            Self::NeverUsed | Self::Starting | Self::Up | Self::Asleep => true,
            Self::Slow | Self::Failing | Self::Missing | Self::Refusing | Self::Unauthorized => false,
        }
    }
}

/// The word for a state that came over the wire, for people.
pub fn word(name: &str) -> String {
    name.replace('_', " ")
}

impl fmt::Display for ServerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&word(self.name()))
    }
}

// === impl HealthObservations ===

impl HealthObservations {
    /// Somebody had an answer: whatever was wrong with a server that is up is over.
    pub fn answered(&self) {
        if self.ails.load(Relaxed) {
            self.take_back(|ailment| ailment.of_one_that_is_up);
        }
    }

    /// The server has greeted us.
    pub fn greeted(&self) {
        if self.ails.load(Relaxed) {
            self.take_back(|_| true);
        }
    }

    fn take_back(&self, is_over: impl Fn(&ObservedFault) -> bool) {
        let mut last = lock(&self.last);
        *last = last.take().filter(|ailment| !is_over(ailment));
        self.ails.store(last.is_some(), Relaxed);
    }

    fn note(&self, state: ServerState, said: String, of_one_that_is_up: bool, given_up: bool) {
        *lock(&self.last) = Some(ObservedFault { state, said, at: Instant::now(), of_one_that_is_up, given_up });
        self.ails.store(true, Relaxed);
    }

    /// A server that is up did not answer in time.
    pub fn slow(&self, said: String) {
        self.note(ServerState::Slow, said, true, false);
    }

    /// A call got no answer. Only what is the server's own fault says how it is.
    pub fn fault(&self, fault: &CallFault) {
        match fault {
            CallFault::Timeout { after, setting } => {
                self.slow(format!("it did not answer within `{setting}` ({after:?})"))
            }
            CallFault::Stuck => self.slow("it does not read what it is sent".to_owned()),
            _ => {}
        }
    }

    /// A server that is up has nothing but an error for a question that it must be able to answer.
    pub fn errs(&self, said: String) {
        self.note(ServerState::Failing, said, true, true);
    }

    /// A request over HTTP failed. What says something about that request only is not noted.
    pub fn failed(&self, failure: &RemoteFailure, url: &str) {
        match failure {
            RemoteFailure::Unauthorized { status } => {
                self.note(ServerState::Unauthorized, unauthorized(*status), true, true)
            }
            RemoteFailure::Unreachable { why } => {
                self.note(ServerState::Refusing, format!("nobody answers at {url}: {why}"), true, true)
            }
            RemoteFailure::Status { status } if *status >= 500 => {
                self.note(ServerState::Refusing, format!("{url} answers HTTP {status}"), true, true);
            }
            RemoteFailure::Cut => {}
            // Whatever it says, somebody says it.
            _ => self.answered(),
        }
    }

    /// It did not start, or did not stay up long enough to greet us.
    pub fn start_failed(&self, said: String) {
        self.note(ServerState::Failing, said, false, false);
    }

    /// Nobody tries any more. If it was noted what is wrong over HTTP, that says more.
    pub fn given_up(&self, why: Option<&CallFault>) {
        let mut last = lock(&self.last);
        match (&mut *last, why) {
            (Some(ailment), None) => ailment.given_up = true,
            (Some(ailment), Some(_)) if ailment.of_one_that_is_up && ailment.state != ServerState::Slow => {}
            (_, Some(why)) => {
                drop(last);
                let said = match why {
                    CallFault::Unavailable { why } => why.clone(),
                    fault => fault.message(),
                };
                self.note(ServerState::Failing, said, false, true);
            }
            (None, None) => {}
        }
    }

    /// A server that is being started printed what is no message; `None`: another one is being started.
    pub fn printed(&self, line: Option<&str>) {
        *lock(&self.printed) = line.map(str::to_owned);
    }

    /// Whether what is wrong is known for longer than that, and might be over.
    pub fn ails_since(&self, time: Duration) -> bool {
        lock(&self.last).as_ref().is_some_and(|ailment| ailment.at.elapsed() >= time)
    }

    /// What is wrong, seen beside what the links do.
    pub fn now(&self, links: &[LinkState]) -> Option<(ServerState, String)> {
        let last = lock(&self.last);
        let ailment = last.as_ref()?;
        let is_up = links.contains(&LinkState::Up);
        let is_tried = links.iter().any(|state| matches!(state, LinkState::Starting | LinkState::Restarting));
        let counts = match ailment.state {
            // One that went away since is slow no more.
            ServerState::Slow => is_up,
            _ if ailment.of_one_that_is_up => true,
            _ => !is_up && (ailment.given_up || !is_tried),
        };
        counts.then(|| (ailment.state, ailment.said.clone()))
    }

    /// What a server that is being started has said so far, or how the tries before this one went.
    pub fn so_far(&self) -> Option<String> {
        let printed = heard(lock(&self.printed).as_deref(), &[]);
        printed.or_else(|| lock(&self.last).as_ref().map(|ailment| ailment.said.clone()))
    }
}

/// What an HTTP server wants that does not let us in.
pub fn unauthorized(status: u16) -> String {
    match status {
        401 => "it wants you to sign in or to show a token (HTTP 401); Prism cannot sign in for you, so put a token into its `headers`"
            .to_owned(),
        _ => format!("it does not take the credentials in its `headers` (HTTP {status})"),
    }
}

/// What to type about a server that is like that, where its own sentence does not say it.
pub fn fix(state: ServerState, config: &config::DestinationConfig) -> Option<String> {
    let url = config.http.as_ref().map(HttpConfig::shown_url);
    Some(match state {
        ServerState::NeverUsed | ServerState::Starting | ServerState::Up | ServerState::Asleep => return None,
        ServerState::Unauthorized => {
            let (name, url) = (&config.name, url.unwrap_or_default());
            let variable = name.to_uppercase().replace(|c: char| !c.is_ascii_alphanumeric(), "_");
            format!("prism add {name} --force --url {url} --header 'Authorization: Bearer env:{variable}_TOKEN'")
        }
        ServerState::Refusing => "start that server, or correct its URL in the config: prism list".to_owned(),
        ServerState::Failing if url.is_some() => "prism list, and look at its URL and headers".to_owned(),
        ServerState::Slow | ServerState::Failing | ServerState::Missing => "prism logs".to_owned(),
    })
}

// === impl FailedStarts ===

impl FailedStarts {
    pub fn begin(now: Instant) -> Self {
        Self { count: 0, since: now }
    }

    pub fn add(&mut self) {
        self.count += 1;
    }

    /// The sentence for a server whose last start ended like that.
    pub fn told(&self, name: &str, status: &str, heard: Option<&str>, now: Instant) -> String {
        let status = status.replace("exit status: ", "status ");
        let ended = match self.count {
            0 | 1 => format!("{name} exited at its start ({status})"),
            tries => {
                let seconds = now.saturating_duration_since(self.since).as_secs_f64().ceil();
                format!("{name} keeps exiting ({status}, {tries} tries in {seconds} s)")
            }
        };
        match heard {
            Some(heard) => format!("{ended}. {}. More: prism logs", capitalized(heard)),
            None => format!("{ended}, without a word on stderr"),
        }
    }
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// What a server was heard to say that did not greet us: on stdout what is no message, and the end of its stderr.
pub fn heard(printed: Option<&str>, stderr: &[StderrLine]) -> Option<String> {
    let printed = printed.map(|line| format!("it printed text that is not MCP: `{}`", short(line)));
    let lines = telling(stderr);
    let output = (!lines.is_empty()).then(|| format!("its last output: `{}`", lines.join(" / ")));
    match (printed, output) {
        (Some(printed), Some(output)) => Some(format!("{printed}; {output}")),
        (printed, output) => printed.or(output),
    }
}

/// The last lines; and if the word that matters stands further up, above a stack trace, that one before them.
fn telling(stderr: &[StderrLine]) -> Vec<String> {
    let lines: Vec<&str> = stderr.iter().map(|line| line.text.trim()).filter(|line| !line.is_empty()).collect();
    let says_error = |line: &&&str| line.to_ascii_lowercase().contains("error");
    let last = &lines[lines.len().saturating_sub(MAX_LINES)..];
    let mut told = Vec::new();
    if !last.iter().any(|line| says_error(&line)) {
        told.extend(lines.iter().find(says_error).map(|line| short(line)));
    }
    let room = MAX_LINES - told.len();
    told.extend(last[last.len().saturating_sub(room)..].iter().map(|line| short(line)));
    told
}

fn short(line: &str) -> String {
    let shown: String = line.trim().chars().filter(|c| !c.is_control()).take(MAX_LINE).collect();
    if shown.len() < line.trim().len() && shown.chars().count() == MAX_LINE { format!("{shown}…") } else { shown }
}

#[cfg(test)]
mod tests;
