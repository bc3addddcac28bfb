//! One agent's doorbell: when it rings, by which path, and when it is known to have been heard (M-03 … M-09, M-16).
//!
//! A **cycle** begins with the first signal that nobody was told of and ends with the drain. Within it each path rings at
//! most once: a second signal is coalesced, a path that brought no drain in time is followed by the next (the ladder),
//! and only the drain tells that one was heard. A stream that comes back is a new path: what went down the old one
//! may be lost with it.
//!
//! A ring that did not ring has told nobody anything, so it spends nothing: the next signal tries its path again, and so
//! does time, ever more seldom. Nor does one that could wake nobody: only those that could have are counted. Of one that was
//! not answered nobody knows; only the next signal tries that path again.

mod cycle;
mod patience;

use std::{collections::VecDeque, time::Duration};

use self::cycle::{Cycle, RingAttempt};
pub use self::patience::DoorbellTiming;
use super::{
    BellOutcome, SignalHeader, StreamConnection, Time, WakePath, WakeSupport,
    backlog::{Backlog, BacklogView},
    health::PathHealth,
    path::{PathGrade, Paths},
    signal::SignalDuty,
};

/// The ladder from its first rung to its last. What is open now and seen by the model comes first; a person is disturbed last.
const LADDER: [WakePath; 10] = [
    WakePath::Wait,
    WakePath::CodexAppServer,
    WakePath::Opencode,
    WakePath::Acp,
    WakePath::Hook,
    WakePath::Sse,
    WakePath::Channel,
    WakePath::Tmux,
    WakePath::EditorChat,
    WakePath::Desktop,
];

/// What a doorbell wants done, or has to tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DoorbellAction {
    Ring {
        attempt: u64,
        path: WakePath,
        lead: SignalHeader,
        more: u64,
    },
    /// `surface_doorbell_sent`.
    Note {
        path: WakePath,
        outcome: BellOutcome,
        lead: SignalHeader,
        after: Option<Duration>,
    },
    /// The queue is to be read again.
    Reread,
    Support(WakeSupport),
    /// Whether the next tool result is to carry the bell.
    Piggyback(bool),
}

#[derive(Debug)]
pub struct Doorbell {
    patience: DoorbellTiming,
    connection: StreamConnection,
    backlog: Backlog,
    /// The last signal that rings, for a cycle that begins with a drain.
    newest: Option<SignalHeader>,
    /// Paths by which the agent can be reached, and how they are.
    health: PathHealth,
    /// Whether the agent's program acts on what comes down its stream.
    heeds_stream: bool,
    cycle: Option<Cycle>,
    /// A bell whose drain came before the word that it had rung.
    drained_early: Option<(RingAttempt, SignalHeader)>,
    /// Bells went unheard. Until a stream is back, or one is heard.
    unheard: bool,
    attempts: u64,
    told: (WakeSupport, bool),
    chimes: VecDeque<DoorbellAction>,
}

// === impl Doorbell ===

impl Doorbell {
    pub fn new(patience: DoorbellTiming) -> Self {
        Self {
            patience,
            connection: StreamConnection::Disconnected,
            backlog: Backlog::default(),
            newest: None,
            health: PathHealth::default(),
            heeds_stream: true,
            cycle: None,
            drained_early: None,
            unheard: false,
            attempts: 0,
            told: (WakeSupport::Degraded, false),
            chimes: VecDeque::new(),
        }
    }

    pub fn poll(&mut self) -> Option<DoorbellAction> {
        self.chimes.pop_front()
    }

    pub fn connection(&self) -> StreamConnection {
        self.connection
    }

    pub fn pending(&self) -> u64 {
        self.backlog.all()
    }

    pub fn ringing(&self) -> u64 {
        self.backlog.ringing()
    }

    /// Since when a bell is out that no drain has followed.
    pub fn outstanding(&self) -> Option<(WakePath, Time)> {
        self.cycle.as_ref().and_then(|cycle| cycle.last)
    }

    pub fn is_open(&self, path: WakePath) -> bool {
        self.health.is_open(path)
    }

    /// Whether a path is there, rings, and is heard.
    pub fn is_healthy(&self, path: WakePath) -> bool {
        self.health.is_healthy(path)
    }

    /// Whether a bell can be pushed to the agent now.
    pub fn is_reached(&self) -> bool {
        self.health.is_reached()
    }

    /// Whether the agent can be woken: a path that could is healthy, and it has not let all its bells go by.
    pub fn support(&self) -> WakeSupport {
        if self.unheard { WakeSupport::Degraded } else { self.health.support(self.heeds_stream) }
    }

    fn can_wake(&self, path: WakePath) -> bool {
        self.health.can_wake(path, self.heeds_stream)
    }

    // --- Signals ---

    /// Takes up what another daemon, or another window of the agent's, has left. Its first path rings for it.
    pub fn take_up(&mut self, look: BacklogView, first: Option<SignalHeader>, heeds_stream: bool, now: Time) {
        self.backlog.looked(look);
        (self.connection, self.health, self.unheard) = (StreamConnection::Disconnected, PathHealth::default(), false);
        self.heeds_stream = heeds_stream;
        let first = first.or_else(|| self.newest.clone()).filter(|_| self.backlog.ringing() > 0);
        self.cycle = first.map(|lead| Cycle::new(lead, now));
        self.tell();
    }

    /// A signal is on disk.
    pub fn arrived(&mut self, lead: SignalHeader, now: Time) {
        let rings = lead.kind.rings();
        let is_news = self.backlog.arrived(lead.seq, rings);
        if !rings {
            return self.note(self.foremost(), BellOutcome::Filtered, lead, None);
        }
        self.newest = Some(lead.clone());
        match &mut self.cycle {
            // A drain was quicker: it has given it out, or has said that something is left; unless somebody waits for it.
            None if !(is_news || self.health.is_open(WakePath::Wait) && self.backlog.ringing() > 0) => {
                self.note(self.foremost(), BellOutcome::Coalesced, lead, None);
            }
            // No bell is out that this one could be coalesced with.
            Some(cycle) if !cycle.is_told() => match cycle.yields_to(&lead) {
                true => {
                    cycle.lead = lead;
                    self.try_again(now);
                }
                false => {
                    self.try_again(now);
                    let told = self.cycle.as_ref().is_some_and(Cycle::is_told);
                    let outcome = if told { BellOutcome::Coalesced } else { BellOutcome::Uncaptured };
                    self.note(self.foremost(), outcome, lead, None);
                }
            },
            Some(cycle) => {
                let wakes = cycle.wakes(|path| self.health.can_wake(path, self.heeds_stream));
                let path = cycle.newest_path();
                self.note(path.unwrap_or_else(|| self.foremost()), BellOutcome::Coalesced, lead, None);
                // A bell is out, but none that could have woken anybody.
                if !wakes {
                    self.try_again(now);
                }
            }
            // The bell that is about to ring for what had gathered is for this one, too.
            None if self.connection == StreamConnection::Reconciling => {
                self.note(WakePath::Sse, BellOutcome::Coalesced, lead, None);
            }
            None => self.begin(lead, now),
        }
        self.tell();
    }

    /// A drain gave out that many, and this is what it has left.
    pub fn drained(&mut self, count: u64, left: BacklogView, now: Time) {
        self.backlog.looked(left);
        // One that looked before a cycle's first signal was there is not the drain of that cycle.
        let covered = self.cycle.as_ref().is_none_or(|cycle| cycle.lead.seq <= left.newest);
        self.heard(count > 0 && covered, now);
    }

    /// What was drained has not arrived, and waits again: this is what there is now.
    pub fn put_back(&mut self, look: BacklogView, first: Option<SignalHeader>, now: Time) {
        self.backlog.looked(look);
        if let (None, Some(lead)) = (&self.cycle, first.filter(|_| self.backlog.ringing() > 0)) {
            self.begin(lead, now);
        }
        self.tell();
    }

    /// A signal was recalled, or is out of date.
    pub fn gone(&mut self, seq: i64, rings: bool, now: Time) {
        self.backlog.gone(seq, rings);
        self.heard(false, now);
    }

    /// The cycle is over with a drain that gave something (M-05), and when there is nothing left to ring for.
    fn heard(&mut self, drained: bool, now: Time) {
        if drained || self.backlog.ringing() == 0 {
            self.health.settled();
            if let Some(cycle) = self.cycle.take().filter(|_| drained) {
                self.confirm(cycle, now);
            }
            // What came after the drain has looked is not covered by it.
            if self.connection != StreamConnection::Reconciling
                && self.backlog.ringing_since() > 0
                && let Some(lead) = self.newest.clone()
            {
                self.begin(lead, now);
            }
        }
        self.tell();
    }

    fn confirm(&mut self, cycle: Cycle, now: Time) {
        match (cycle.last, cycle.attempt) {
            (_, Some(attempt)) if !attempt.rang => self.drained_early = Some((attempt, cycle.lead)),
            (Some((path, at)), _) if now.since(at) <= self.patience.confirm_within => {
                self.confirmed(path, cycle.lead, now.since(at));
            }
            _ => {}
        }
    }

    fn confirmed(&mut self, path: WakePath, lead: SignalHeader, after: Duration) {
        self.health.confirmed(path);
        // A bell that an agent has come for by itself does not show that it can be woken.
        self.unheard &= path == WakePath::Piggyback;
        self.note(path, BellOutcome::Confirmed, lead, Some(after));
    }

    // --- Paths ---

    /// The agent has opened a stream.
    pub fn stream_opened(&mut self) {
        self.connection = StreamConnection::Reconciling;
        self.health.closed(WakePath::Sse);
        self.chimes.push_back(DoorbellAction::Reread);
        self.tell();
    }

    /// The queue was read for a stream that has come; if it could not be, what is known has to do. What has gathered rings
    /// once.
    pub fn reconciled(&mut self, look: Option<BacklogView>, first: Option<SignalHeader>, now: Time) {
        if self.connection != StreamConnection::Reconciling {
            return;
        }
        if let Some(look) = look {
            self.backlog.looked(look);
        }
        self.connection = StreamConnection::Connected;
        self.health.opened(WakePath::Sse);
        self.unheard = false;
        match (&mut self.cycle, self.newest.clone().or(first)) {
            _ if self.backlog.ringing() == 0 => {
                self.cycle = None;
                self.health.settled();
            }
            (Some(cycle), _) => {
                // What went down the old one may be lost with it.
                for marks in [&mut cycle.rung, &mut cycle.unanswered, &mut cycle.missed] {
                    marks.remove(WakePath::Sse);
                }
                if cycle
                    .attempt
                    .is_none_or(|attempt| attempt.path == WakePath::Sse || attempt.path.grade() >= PathGrade::B)
                {
                    self.ring(WakePath::Sse, now);
                }
            }
            (None, Some(lead)) => self.begin(lead, now),
            (None, None) => {}
        }
        let rings = |cycle: &Cycle| cycle.attempt.is_some_and(|attempt| attempt.path == WakePath::Sse && !attempt.rang);
        if !self.cycle.as_ref().is_some_and(rings) {
            self.connection = StreamConnection::Emitting;
        }
        self.tell();
    }

    /// The last of its streams is gone.
    pub fn stream_closed(&mut self, now: Time) {
        self.connection = StreamConnection::Disconnected;
        self.close(WakePath::Sse, now);
    }

    /// Another path leads to the agent. Something may be waiting to be rung for: nobody was there, or a drain has left it.
    pub fn open(&mut self, path: WakePath, now: Time) {
        self.health.opened(path);
        match (&mut self.cycle, self.newest.clone()) {
            (Some(cycle), _) => {
                cycle.missed.remove(path);
                let better = |attempt: RingAttempt| !attempt.rang || attempt.path.grade() <= path.grade();
                // A person is disturbed when it is time to, not because there is a screen.
                let may = path != WakePath::Desktop && !cycle.rung.has(path);
                if may && cycle.attempt.is_none_or(|attempt| !better(attempt)) {
                    self.ring(path, now);
                }
            }
            (None, Some(lead)) if self.backlog.ringing() > 0 && self.connection != StreamConnection::Reconciling => {
                self.begin(lead, now);
            }
            _ => {}
        }
        self.tell();
    }

    /// A path is known of, by which nobody was looked for yet. A signal is rung for by it all the same.
    pub fn attach(&mut self, path: WakePath) {
        self.health.attached(path);
        self.tell();
    }

    /// Somebody looked whether a path leads to anybody. One that does again is as good as new.
    pub fn looked(&mut self, path: WakePath, there: bool, now: Time) {
        match self.health.looked(path, there) {
            true => self.open(path, now),
            false => self.tell(),
        }
    }

    /// A path leads to the agent no more. A bell that was on it may be lost.
    pub fn close(&mut self, path: WakePath, now: Time) {
        self.health.closed(path);
        let on_it = |cycle: &Cycle| cycle.attempt.is_some_and(|attempt| attempt.rang && attempt.path == path);
        if !path.ends_with_bell() && self.cycle.as_ref().is_some_and(on_it) {
            self.climb(now);
        }
        self.tell();
    }

    /// The agent asks to be told when something comes. Returns the bell if something has: it is rung by the answer.
    pub fn wait(&mut self, now: Time) -> Option<(SignalHeader, u64)> {
        if self.backlog.ringing() == 0 {
            self.open(WakePath::Wait, now);
            return None;
        }
        match self.cycle.as_ref().map(|cycle| cycle.lead.clone()).or_else(|| self.newest.clone()) {
            Some(lead) => self.taken_along(WakePath::Wait, lead, now),
            // A drain has seen it that was quicker than the word of it, which is on its way.
            None => {
                self.open(WakePath::Wait, now);
                None
            }
        }
    }

    /// The next result of a tool leaves for the agent. Returns the bell if it is to carry it.
    pub fn piggyback(&mut self, now: Time) -> Option<(SignalHeader, u64)> {
        let lead = self.cycle.as_ref().filter(|_| self.carries())?.lead.clone();
        self.taken_along(WakePath::Piggyback, lead, now)
    }

    /// Something of the agent's program looks in for a moment. Returns the bell if it was not told of it by that path before.
    pub fn look_in(&mut self, path: WakePath, now: Time) -> Option<(SignalHeader, u64)> {
        let told = self.cycle.as_ref().is_some_and(|cycle| cycle.rung.has(path));
        let lead = self.cycle.as_ref().map(|cycle| cycle.lead.clone()).or_else(|| self.newest.clone());
        self.taken_along(path, lead.filter(|_| !told && self.backlog.ringing() > 0)?, now)
    }

    /// Rings a bell that leaves with something of the agent's own.
    fn taken_along(&mut self, path: WakePath, lead: SignalHeader, now: Time) -> Option<(SignalHeader, u64)> {
        self.attempts += 1;
        let (until, can_wake) = (now + self.patience.climb_after, self.can_wake(path));
        let cycle = self.cycle.get_or_insert_with(|| Cycle::new(lead.clone(), now));
        cycle.rang(path, can_wake, now);
        self.health.rang(path, now + self.patience.confirm_within);
        if cycle.attempt.is_none_or(|attempt| attempt.rang) {
            cycle.attempt = Some(RingAttempt { number: self.attempts, path, rang: true, until });
        }
        self.note(path, BellOutcome::Rang, lead.clone(), None);
        self.tell();
        Some((lead, self.more()))
    }

    // --- Bells ---

    /// What became of a bell.
    pub fn rung(&mut self, number: u64, outcome: BellOutcome, now: Time) {
        if let Some((RingAttempt { path, .. }, lead)) = self.drained_early.take_if(|(early, _)| early.number == number)
        {
            self.note(path, outcome, lead.clone(), None);
            match outcome {
                BellOutcome::Rang => self.confirmed(path, lead, Duration::ZERO),
                _ => self.health.failed(path),
            }
            return self.settle_connection();
        }
        let Some(cycle) = &mut self.cycle else { return self.settle_connection() };
        let Some(attempt) = cycle.attempt.filter(|attempt| attempt.number == number && !attempt.rang) else {
            return self.settle_connection();
        };
        let (lead, path) = (cycle.lead.clone(), attempt.path);
        match outcome {
            BellOutcome::Rang => {
                cycle.rang(path, self.health.can_wake(path, self.heeds_stream), now);
                cycle.attempt = Some(RingAttempt { rang: true, until: now + self.patience.climb_after, ..attempt });
                self.health.rang(path, now + self.patience.confirm_within);
                self.note(path, outcome, lead, None);
                return self.settle_connection();
            }
            BellOutcome::Unanswered => cycle.unanswered.insert(path),
            _ => cycle.missed(path),
        }
        self.health.failed(path);
        self.note(path, outcome, lead, None);
        self.climb(now);
        self.settle_connection();
    }

    fn settle_connection(&mut self) {
        if self.connection == StreamConnection::Connected {
            self.connection = StreamConnection::Emitting;
        }
        self.tell();
    }

    pub fn deadline(&self) -> Option<Time> {
        let cycle = self.cycle.as_ref()?;
        let next = cycle.attempt.map(|attempt| attempt.until).into_iter().chain(cycle.retries_at());
        next.chain(self.disturbs_at(cycle)).chain(self.gives_up_at(cycle)).chain(self.health.deadline()).min()
    }

    pub fn handle_deadline(&mut self, now: Time) {
        let Some(cycle) = &self.cycle else { return };
        if self.gives_up_at(cycle).is_some_and(|at| at <= now) {
            self.unheard = true;
        }
        self.health.handle_deadline(now);
        match cycle.attempt {
            Some(attempt) if attempt.until > now => {}
            Some(RingAttempt { rang: false, number, .. }) => return self.rung(number, BellOutcome::SendFailed, now),
            Some(_) => self.climb(now),
            None if cycle.retries_at().is_some_and(|at| at <= now) => self.retry(now),
            None if self.disturbs_at(cycle).is_some_and(|at| at <= now) => self.climb(now),
            None => {}
        }
        self.tell();
    }

    /// Tries what did not ring again: something new has come.
    fn try_again(&mut self, now: Time) {
        if let Some(cycle) = &mut self.cycle {
            cycle.begin_again();
        }
        self.climb(now);
    }

    /// The same because it is time to.
    fn retry(&mut self, now: Time) {
        if let Some(cycle) = &mut self.cycle {
            (cycle.missed, cycle.retry, cycle.retries) = (Paths::default(), None, cycle.retries + 1);
        }
        self.climb(now);
    }

    /// When a person may be disturbed, if that is what is left to try.
    fn disturbs_at(&self, cycle: &Cycle) -> Option<Time> {
        let may = cycle.lead.kind.duty() == Some(SignalDuty::Reply)
            && cycle.attempt.is_none()
            && self.health.is_open(WakePath::Desktop)
            && !cycle.rung.has(WakePath::Desktop)
            && !cycle.missed.has(WakePath::Desktop);
        may.then(|| cycle.since + self.patience.confirm_within)
    }

    /// When it is plain that the agent does not hear its bells. One that could not have woken it shows nothing.
    fn gives_up_at(&self, cycle: &Cycle) -> Option<Time> {
        let at = cycle.could_have_woken.filter(|_| cycle.attempt.is_none() && !self.unheard)?;
        Some(at + self.patience.confirm_within)
    }

    fn max_attempts(&self) -> u32 {
        self.patience.max_attempts[usize::from(self.support() == WakeSupport::Degraded)]
    }

    fn begin(&mut self, lead: SignalHeader, now: Time) {
        self.cycle = Some(Cycle::new(lead, now));
        self.climb(now);
    }

    /// Goes on to the next path that there is.
    fn climb(&mut self, now: Time) {
        let (max, heeds_stream) = (self.max_attempts(), self.heeds_stream);
        let Some(cycle) = &mut self.cycle else { return };
        cycle.attempt = None;
        let disturbs =
            cycle.lead.kind.duty() == Some(SignalDuty::Reply) && now >= cycle.since + self.patience.confirm_within;
        let may = |path: &WakePath| match path {
            WakePath::Desktop => disturbs,
            WakePath::Sse => matches!(self.connection, StreamConnection::Connected | StreamConnection::Emitting),
            _ => true,
        };
        let untried = |path: &WakePath| !cycle.rung.has(*path) && !cycle.missed.has(*path);
        // Only what could wake the agent is kept back by how often that was tried, and only before it was tried itself.
        let kept_back =
            |path: WakePath| cycle.rings >= max && self.health.can_wake(path, heeds_stream) && !cycle.tried.has(path);
        let open = |path: &WakePath| self.health.is_open(*path) && untried(path) && !kept_back(*path);
        let next = LADDER.into_iter().filter(open).find(may);
        let missed = cycle.missed.all().any(|path| self.health.is_open(path));
        let unanswered = cycle.unanswered.all().next().is_some();
        match next {
            Some(path) => self.ring(path, now),
            None if missed && cycle.retry.is_none() => cycle.retry_later(self.patience.climb_after, now),
            None if !missed && !unanswered && cycle.last.is_none() && !cycle.uncaptured => {
                cycle.uncaptured = true;
                let lead = cycle.lead.clone();
                self.note(self.foremost(), BellOutcome::Uncaptured, lead, None);
            }
            None => {}
        }
    }

    fn ring(&mut self, path: WakePath, now: Time) {
        self.attempts += 1;
        let (number, more) = (self.attempts, self.more());
        let until = now + self.patience.ring_within;
        let Some(cycle) = &mut self.cycle else { return };
        cycle.rung.insert(path);
        cycle.tried.insert(path);
        cycle.attempt = Some(RingAttempt { number, path, rang: false, until });
        self.chimes.push_back(DoorbellAction::Ring { attempt: number, path, lead: cycle.lead.clone(), more });
    }

    /// How many more wait than the one that a bell is about.
    fn more(&self) -> u64 {
        self.backlog.ringing().saturating_sub(1)
    }

    /// The path that a bell would have taken: the person is no way to the agent.
    fn foremost(&self) -> WakePath {
        let open = |path: &WakePath| *path != WakePath::Desktop && self.health.is_open(*path);
        LADDER.into_iter().find(open).unwrap_or(WakePath::Sse)
    }

    fn note(&mut self, path: WakePath, outcome: BellOutcome, lead: SignalHeader, after: Option<Duration>) {
        self.chimes.push_back(DoorbellAction::Note { path, outcome, lead, after });
    }

    /// Whether the next tool result is to carry the bell: unless it did, or the model has just been told by another path.
    pub fn carries(&self) -> bool {
        self.cycle.as_ref().is_some_and(|cycle| {
            let told = cycle.attempt.is_some_and(|attempt| attempt.rang && attempt.path.grade() == PathGrade::A);
            !cycle.rung.has(WakePath::Piggyback) && !told
        })
    }

    /// Tells what has changed that others go by.
    fn tell(&mut self) {
        let now = (self.support(), self.carries());
        let before = std::mem::replace(&mut self.told, now);
        if now.0 != before.0 {
            self.chimes.push_back(DoorbellAction::Support(now.0));
        }
        if now.1 != before.1 {
            self.chimes.push_back(DoorbellAction::Piggyback(now.1));
        }
    }
}

#[cfg(test)]
mod tests;
