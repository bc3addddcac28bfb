//! How a link and its server are, for those who look from outside: `prism status`, `/metrics`, `/readyz` (D-05, D-08).
//!
//! The link's task writes, whoever looks reads, and nobody waits: all of it is single numbers, and a number that is a
//! moment old is as good as any. What goes wrong is rare, so that alone has a lock.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use prism_core::mcp::{Condition, Era, Fault, Settings, State, link::SessionKey};

use super::destination::lock;

/// The longest text of an error that is kept. The rest is cut.
const MAX_ERROR: usize = 300;

/// One link's.
#[derive(Debug)]
pub struct Vitals {
    pub purpose: Purpose,
    epoch: Instant,
    state: AtomicU8,
    era: AtomicU8,
    /// The server's process; 0 if it has none.
    pid: AtomicU32,
    /// Milliseconds since the link was made, plus one; 0 while there is no server.
    up_since: AtomicU64,
    restarts: AtomicU64,
    starts: AtomicU64,
    sessions: AtomicUsize,
    calls: AtomicUsize,
    /// As `up_since`: when the server last proved to be healthy, and at which start.
    healthy: AtomicU64,
    healthy_start: AtomicU64,
}

/// Who a link is for (B-04).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// All clients of one class.
    Shared,
    /// One client, which may be asked questions, or the config wants it so.
    Own,
    /// Calls without a session whose clients may be asked something: one at a time.
    Turns,
}

/// What last went wrong at a destination. Never what anybody said in a message.
#[derive(Debug, Default)]
pub struct Trouble(Mutex<Option<(String, Instant)>>);

/// How one event stream is.
#[derive(Clone, Copy, Debug)]
pub struct StreamVitals {
    pub session: Option<SessionKey>,
    pub kind: StreamKind,
    /// Events that its client has not taken yet.
    pub waiting: usize,
    pub open_for: Duration,
    /// Since when nothing left on it, a keep-alive included.
    pub silent_for: Duration,
}

/// What a stream is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamKind {
    /// A session's own.
    Get,
    /// The answer to a call.
    Post,
    /// Changes, for a modern client.
    Listen,
    /// The one stream of a 2024-11-05 session.
    Sse,
}

/// What a link tells of its streams.
#[derive(Debug, Default)]
pub struct StreamReport {
    pub streams: Vec<StreamVitals>,
    /// Events that wait for a session without a stream.
    pub undelivered: Vec<(SessionKey, usize)>,
}

// === impl Vitals ===

impl Vitals {
    pub fn new(settings: &Settings) -> Arc<Self> {
        let purpose = match (settings.alone, settings.exclusive) {
            (true, _) => Purpose::Own,
            (false, true) => Purpose::Turns,
            (false, false) => Purpose::Shared,
        };
        Arc::new(Self::of(purpose))
    }

    fn of(purpose: Purpose) -> Self {
        Self {
            purpose,
            epoch: Instant::now(),
            state: AtomicU8::new(0),
            era: AtomicU8::new(0),
            pid: AtomicU32::new(0),
            up_since: AtomicU64::new(0),
            restarts: AtomicU64::new(0),
            starts: AtomicU64::new(0),
            sessions: AtomicUsize::new(0),
            calls: AtomicUsize::new(0),
            healthy: AtomicU64::new(0),
            healthy_start: AtomicU64::new(0),
        }
    }

    /// Notes how the machine is, after every turn of the link's task.
    pub(super) fn note(&self, Condition { state, sessions, calls }: Condition) {
        self.sessions.store(sessions, Relaxed);
        self.calls.store(calls, Relaxed);
        let before = self.state.swap(code(state), Relaxed);
        if before != code(state) && !matches!(state, State::Up | State::Starting) {
            self.pid.store(0, Relaxed);
            self.up_since.store(0, Relaxed);
        }
    }

    /// Notes that a server is started. Returns whether that is because the last one was lost.
    pub(super) fn starts(&self) -> bool {
        self.starts.fetch_add(1, Relaxed);
        let again = matches!(self.state(), State::Restarting | State::Up);
        if again {
            self.restarts.fetch_add(1, Relaxed);
        }
        self.pid.store(0, Relaxed);
        self.up_since.store(self.now(), Relaxed);
        again
    }

    pub(super) fn runs_as(&self, pid: u32) {
        self.pid.store(pid, Relaxed);
    }

    pub(super) fn speaks(&self, era: Era) {
        self.era.store(if era == Era::Legacy { 1 } else { 2 }, Relaxed);
    }

    pub fn state(&self) -> State {
        match self.state.load(Relaxed) {
            1 => State::Starting,
            2 => State::Up,
            3 => State::Restarting,
            4 => State::Failed,
            5 => State::Asleep,
            _ => State::Down,
        }
    }

    /// The era that the server was last spoken to in.
    pub fn era(&self) -> Option<Era> {
        match self.era.load(Relaxed) {
            1 => Some(Era::Legacy),
            2 => Some(Era::Modern),
            _ => None,
        }
    }

    /// The server's process, if it has one that runs.
    pub fn pid(&self) -> Option<u32> {
        Some(self.pid.load(Relaxed)).filter(|pid| *pid != 0)
    }

    /// For how long the server has been there.
    pub fn uptime(&self) -> Option<Duration> {
        self.since(&self.up_since)
    }

    pub fn started(&self) -> u64 {
        self.starts.load(Relaxed)
    }

    /// Starts that followed a loss.
    pub fn restarts(&self) -> u64 {
        self.restarts.load(Relaxed)
    }

    pub fn sessions(&self) -> usize {
        self.sessions.load(Relaxed)
    }

    /// Calls that the server has not answered.
    pub fn in_flight(&self) -> usize {
        self.calls.load(Relaxed)
    }

    /// Notes that the server that runs has just listed its tools.
    pub fn proved_healthy(&self) {
        self.healthy_start.store(self.started(), Relaxed);
        self.healthy.store(self.now(), Relaxed);
    }

    /// Whether the server that runs has done so within that time.
    pub fn was_healthy_within(&self, time: Duration) -> bool {
        self.state() == State::Up
            && self.healthy_start.load(Relaxed) == self.started()
            && self.since(&self.healthy).is_some_and(|age| age <= time)
    }

    fn since(&self, at: &AtomicU64) -> Option<Duration> {
        match at.load(Relaxed) {
            0 => None,
            at => Some(self.epoch.elapsed().saturating_sub(Duration::from_millis(at - 1))),
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_millis()).unwrap_or(u64::MAX - 1) + 1
    }
}

fn code(state: State) -> u8 {
    match state {
        State::Down => 0,
        State::Starting => 1,
        State::Up => 2,
        State::Restarting => 3,
        State::Failed => 4,
        State::Asleep => 5,
    }
}

impl Purpose {
    pub fn name(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::Own => "own",
            Self::Turns => "turns",
        }
    }
}

// === impl Trouble ===

impl Trouble {
    pub fn note(&self, why: &str) {
        let why = why.lines().next().unwrap_or_default();
        let end = (0..=MAX_ERROR.min(why.len())).rev().find(|at| why.is_char_boundary(*at)).unwrap_or(0);
        *lock(&self.0) = Some((why[..end].to_owned(), Instant::now()));
    }

    /// Notes why a call has no answer, unless that is nobody's fault. What the server's end was is known better already.
    pub fn note_fault(&self, fault: &Fault) {
        match fault {
            Fault::Timeout { after, setting } => self.note(&format!("no answer within `{setting}` ({after:?})")),
            Fault::Unavailable { why } | Fault::DoesNotStart { said: why } | Fault::Refused { why } => self.note(why),
            Fault::Cut | Fault::TooLarge { .. } | Fault::Stuck => self.note(&fault.message()),
            _ => {}
        }
    }

    /// What it was, and how long ago.
    pub fn last(&self) -> Option<(String, Duration)> {
        lock(&self.0).as_ref().map(|(why, at)| (why.clone(), at.elapsed()))
    }
}

// === impl StreamKind ===

impl StreamKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Post => "post",
            Self::Listen => "listen",
            Self::Sse => "sse",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(vitals: &Vitals, state: State) {
        vitals.note(Condition { state, sessions: 1, calls: 2 });
    }

    fn vitals() -> Vitals {
        Vitals::of(Purpose::Shared)
    }

    #[test]
    fn a_start_after_a_loss_is_a_restart_and_any_other_is_none() {
        let vitals = vitals();
        assert!(!vitals.starts());
        note(&vitals, State::Starting);
        assert!(!vitals.starts(), "it was asked in the other era's words");
        note(&vitals, State::Up);
        note(&vitals, State::Restarting);
        assert!(vitals.starts());
        note(&vitals, State::Up);
        note(&vitals, State::Down);
        assert!(!vitals.starts(), "somebody came back");
        assert_eq!((vitals.started(), vitals.restarts()), (4, 1));
    }

    #[test]
    fn what_is_gone_has_neither_a_process_nor_a_time() {
        let vitals = vitals();
        vitals.starts();
        vitals.runs_as(7);
        note(&vitals, State::Up);
        assert_eq!((vitals.pid(), vitals.uptime().is_some()), (Some(7), true));
        assert_eq!((vitals.sessions(), vitals.in_flight()), (1, 2));
        note(&vitals, State::Restarting);
        assert_eq!((vitals.pid(), vitals.uptime()), (None, None));
    }

    #[test]
    fn health_is_proved_by_the_server_that_runs() {
        let vitals = vitals();
        let minute = Duration::from_secs(60);
        vitals.starts();
        note(&vitals, State::Up);
        assert!(!vitals.was_healthy_within(minute));
        vitals.proved_healthy();
        assert!(vitals.was_healthy_within(minute));
        note(&vitals, State::Restarting);
        assert!(!vitals.was_healthy_within(minute));
        vitals.starts();
        note(&vitals, State::Up);
        assert!(!vitals.was_healthy_within(minute), "that was another one");
    }

    #[test]
    fn an_error_is_one_short_line() {
        let trouble = Trouble::default();
        trouble.note(&format!("{}\nand more", "ä".repeat(400)));
        let (why, _) = trouble.last().unwrap();
        assert!(why.len() <= MAX_ERROR && why.chars().all(|c| c == 'ä'), "{why}");
        trouble.note_fault(&Fault::SessionEnded);
        assert_eq!(trouble.last().unwrap().0, why);
    }
}
