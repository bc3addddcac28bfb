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

use prism_core::mcp::{CallFault, Era, LinkCondition, LinkSettings, LinkState, link::SessionKey};

use super::destination::lock;

/// The longest text of an error that is kept. The rest is cut.
const MAX_ERROR: usize = 300;

/// One link's.
#[derive(Debug)]
pub struct LinkVitals {
    pub purpose: LinkPurpose,
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
pub enum LinkPurpose {
    /// All clients of one class.
    Shared,
    /// One client, which may be asked questions, or the config wants it so.
    Own,
    /// Calls without a session whose clients may be asked something: one at a time.
    Turns,
}

/// What last went wrong at a destination. Never what anybody said in a message.
#[derive(Debug, Default)]
pub struct LastFault(Mutex<Option<(String, Instant)>>);

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

// === impl LinkVitals ===

impl LinkVitals {
    pub fn new(settings: &LinkSettings) -> Arc<Self> {
        let purpose = match (settings.alone, settings.exclusive) {
            (true, _) => LinkPurpose::Own,
            (false, true) => LinkPurpose::Turns,
            (false, false) => LinkPurpose::Shared,
        };
        Arc::new(Self::of(purpose))
    }

    fn of(purpose: LinkPurpose) -> Self {
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
    pub(super) fn note(&self, LinkCondition { state, sessions, calls }: LinkCondition) {
        self.sessions.store(sessions, Relaxed);
        self.calls.store(calls, Relaxed);
        let before = self.state.swap(code(state), Relaxed);
        if before != code(state) && !matches!(state, LinkState::Up | LinkState::Starting) {
            self.pid.store(0, Relaxed);
            self.up_since.store(0, Relaxed);
        }
    }

    /// Notes that a server is started. Returns whether that is because the last one was lost.
    pub(super) fn starts(&self) -> bool {
        self.starts.fetch_add(1, Relaxed);
        let again = matches!(self.state(), LinkState::Restarting | LinkState::Up);
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

    pub fn state(&self) -> LinkState {
        match self.state.load(Relaxed) {
            1 => LinkState::Starting,
            2 => LinkState::Up,
            3 => LinkState::Restarting,
            4 => LinkState::Failed,
            5 => LinkState::Asleep,
            _ => LinkState::Down,
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
        self.state() == LinkState::Up
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

fn code(state: LinkState) -> u8 {
    match state {
        LinkState::Down => 0,
        LinkState::Starting => 1,
        LinkState::Up => 2,
        LinkState::Restarting => 3,
        LinkState::Failed => 4,
        LinkState::Asleep => 5,
    }
}

impl LinkPurpose {
    pub fn name(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::Own => "own",
            Self::Turns => "turns",
        }
    }
}

// === impl LastFault ===

impl LastFault {
    pub fn note(&self, why: &str) {
        let why = why.lines().next().unwrap_or_default();
        let end = (0..=MAX_ERROR.min(why.len())).rev().find(|at| why.is_char_boundary(*at)).unwrap_or(0);
        *lock(&self.0) = Some((why[..end].to_owned(), Instant::now()));
    }

    /// Notes why a call has no answer, unless that is nobody's fault. What the server's end was is known better already.
    pub fn note_fault(&self, fault: &CallFault) {
        match fault {
            CallFault::Timeout { after, setting } => self.note(&format!("no answer within `{setting}` ({after:?})")),
            CallFault::Unavailable { why } | CallFault::DoesNotStart { said: why } | CallFault::Refused { why } => {
                self.note(why)
            }
            CallFault::Cut | CallFault::TooLarge { .. } | CallFault::Stuck => self.note(&fault.message()),
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

    fn note(vitals: &LinkVitals, state: LinkState) {
        vitals.note(LinkCondition { state, sessions: 1, calls: 2 });
    }

    fn vitals() -> LinkVitals {
        LinkVitals::of(LinkPurpose::Shared)
    }

    #[test]
    fn a_start_after_a_loss_is_a_restart_and_any_other_is_none() {
        let vitals = vitals();
        assert!(!vitals.starts());
        note(&vitals, LinkState::Starting);
        assert!(!vitals.starts(), "it was asked in the other era's words");
        note(&vitals, LinkState::Up);
        note(&vitals, LinkState::Restarting);
        assert!(vitals.starts());
        note(&vitals, LinkState::Up);
        note(&vitals, LinkState::Down);
        assert!(!vitals.starts(), "somebody came back");
        assert_eq!((vitals.started(), vitals.restarts()), (4, 1));
    }

    #[test]
    fn what_is_gone_has_neither_a_process_nor_a_time() {
        let vitals = vitals();
        vitals.starts();
        vitals.runs_as(7);
        note(&vitals, LinkState::Up);
        assert_eq!((vitals.pid(), vitals.uptime().is_some()), (Some(7), true));
        assert_eq!((vitals.sessions(), vitals.in_flight()), (1, 2));
        note(&vitals, LinkState::Restarting);
        assert_eq!((vitals.pid(), vitals.uptime()), (None, None));
    }

    #[test]
    fn health_is_proved_by_the_server_that_runs() {
        let vitals = vitals();
        let minute = Duration::from_secs(60);
        vitals.starts();
        note(&vitals, LinkState::Up);
        assert!(!vitals.was_healthy_within(minute));
        vitals.proved_healthy();
        assert!(vitals.was_healthy_within(minute));
        note(&vitals, LinkState::Restarting);
        assert!(!vitals.was_healthy_within(minute));
        vitals.starts();
        note(&vitals, LinkState::Up);
        assert!(!vitals.was_healthy_within(minute), "that was another one");
    }

    #[test]
    fn an_error_is_one_short_line() {
        let trouble = LastFault::default();
        trouble.note(&format!("{}\nand more", "ä".repeat(400)));
        let (why, _) = trouble.last().unwrap();
        assert!(why.len() <= MAX_ERROR && why.chars().all(|c| c == 'ä'), "{why}");
        trouble.note_fault(&CallFault::SessionEnded);
        assert_eq!(trouble.last().unwrap().0, why);
    }
}
