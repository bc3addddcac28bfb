//! What agents owe each other: from the signal that asks to the drain or the reply that ends it (M-08, M-10).

use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};

use super::{
    BellOutcome, Time, WakePath, WakeSupport,
    signal::{SignalDuty, SignalType},
};

/// Something owed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obligation {
    pub signal: u128,
    pub trace: u128,
    pub kind: SignalType,
    /// Who owes it, and to whom.
    pub debtor: Box<str>,
    pub creditor: Box<str>,
    pub opened: Time,
    pub due: Option<Time>,
    pub heard: Option<Time>,
    pub overdue: Option<Time>,
    /// Whether its debtor could be woken when it came; if not, no promise about time holds for it.
    pub bucket: WakeSupport,
    pub wakes: WakeTally,
}

/// The bells that were rung for an obligation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WakeTally {
    /// All attempts, whatever became of them.
    pub attempts: u32,
    /// Those that rang.
    pub rings: u32,
    pub last: Option<(Time, WakePath, BellOutcome)>,
}

/// How long each kind may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObligationTerms {
    pub question: Duration,
    pub task: Duration,
    pub review: Duration,
}

/// All that is open.
#[derive(Debug, Default)]
pub(super) struct Obligations {
    open: HashMap<u128, Obligation>,
    due: BTreeSet<(Time, u128)>,
}

// === impl Obligation ===

impl Obligation {
    /// What a signal makes its recipient owe, if anything.
    pub fn of(
        kind: SignalType,
        ids: (u128, u128),
        [creditor, debtor]: [&str; 2],
        bucket: WakeSupport,
        now: Time,
        terms: &ObligationTerms,
    ) -> Option<Self> {
        kind.duty()?;
        let (signal, trace) = ids;
        let within = match kind {
            SignalType::Question => Some(terms.question),
            SignalType::TaskAssigned => Some(terms.task),
            SignalType::ReviewRequested => Some(terms.review),
            _ => None,
        };
        Some(Self {
            signal,
            trace,
            kind,
            debtor: debtor.into(),
            creditor: creditor.into(),
            opened: now,
            due: within.map(|within| now + within),
            heard: None,
            overdue: None,
            bucket,
            wakes: WakeTally::default(),
        })
    }

    pub fn needs_reply(&self) -> bool {
        self.kind.duty() == Some(SignalDuty::Reply)
    }

    pub fn is_exempt(&self) -> bool {
        self.bucket == WakeSupport::Degraded
    }
}

// === impl WakeTally ===

impl WakeTally {
    pub fn note(&mut self, path: WakePath, outcome: BellOutcome, now: Time) {
        // That a bell was heard is the end of an attempt, not another one: the last wake is when it was pushed.
        if outcome == BellOutcome::Confirmed {
            return;
        }
        self.attempts += 1;
        self.rings += u32::from(outcome == BellOutcome::Rang);
        self.last = Some((now, path, outcome));
    }
}

// === impl Obligations ===

impl Obligations {
    pub(super) fn insert(&mut self, obligation: Obligation) {
        if let Some(due) = obligation.due.filter(|_| obligation.overdue.is_none()) {
            self.due.insert((due, obligation.signal));
        }
        self.open.insert(obligation.signal, obligation);
    }

    pub(super) fn get(&self, signal: u128) -> Option<&Obligation> {
        self.open.get(&signal)
    }

    pub(super) fn get_mut(&mut self, signal: u128) -> Option<&mut Obligation> {
        self.open.get_mut(&signal)
    }

    pub(super) fn close(&mut self, signal: u128) -> Option<Obligation> {
        let closed = self.open.remove(&signal)?;
        if let Some(due) = closed.due {
            self.due.remove(&(due, signal));
        }
        Some(closed)
    }

    /// Moves all that an agent owes to another bucket.
    pub(super) fn rebucket(&mut self, debtor: &str, bucket: WakeSupport) {
        for obligation in self.open.values_mut().filter(|obligation| &*obligation.debtor == debtor) {
            obligation.bucket = bucket;
        }
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        self.due.first().map(|(due, _)| *due)
    }

    /// The next one that is overdue, marked so.
    pub(super) fn next_overdue(&mut self, now: Time) -> Option<&Obligation> {
        let first = *self.due.first().filter(|(due, _)| *due <= now)?;
        self.due.remove(&first);
        let (_, signal) = first;
        let obligation = self.open.get_mut(&signal)?;
        obligation.overdue = Some(now);
        Some(obligation)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Obligation> {
        self.open.values()
    }
}

impl Default for ObligationTerms {
    fn default() -> Self {
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        Self { question: minutes(10), task: minutes(60), review: minutes(60) }
    }
}
