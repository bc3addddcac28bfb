//! One cycle of a doorbell, from the first signal that nobody was told of to the drain: what was tried, and what rang.

use std::time::Duration;

use super::{Paths, SignalHeader, Time, WakePath};
use crate::mesh::{path::PathGrade, signal::SignalDuty};

/// How often time alone has a ladder climbed again for what did not ring, ever more seldom. After that the next signal, or
/// the path itself, is waited for.
const MAX_RETRIES: u32 = 8;

#[derive(Debug)]
pub(super) struct Cycle {
    pub(super) lead: SignalHeader,
    pub(super) since: Time,
    /// Paths that have taken the bell, may have, or are about to.
    pub(super) rung: Paths,
    /// Those of them of which nobody knows whether they have: they did not say in time.
    pub(super) unanswered: Paths,
    /// Paths that were tried and have not.
    pub(super) missed: Paths,
    /// Paths that were tried at all, whatever came of it. How many bells have rung keeps none of them back.
    pub(super) tried: Paths,
    /// How often time has had those tried again, and when it will.
    pub(super) retries: u32,
    pub(super) retry: Option<Time>,
    pub(super) attempt: Option<RingAttempt>,
    /// The last bell that rang.
    pub(super) last: Option<(WakePath, Time)>,
    /// Those that rang and could have woken the agent, and when the last of them did.
    pub(super) rings: u32,
    pub(super) could_have_woken: Option<Time>,
    /// It was noted that there was nobody to ring at.
    pub(super) uncaptured: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct RingAttempt {
    pub(super) number: u64,
    pub(super) path: WakePath,
    /// The path has taken it.
    pub(super) rang: bool,
    pub(super) until: Time,
}

impl Cycle {
    pub(super) fn new(lead: SignalHeader, since: Time) -> Self {
        Self {
            lead,
            since,
            rung: Paths::default(),
            unanswered: Paths::default(),
            missed: Paths::default(),
            tried: Paths::default(),
            retries: 0,
            retry: None,
            attempt: None,
            last: None,
            rings: 0,
            could_have_woken: None,
            uncaptured: false,
        }
    }

    /// Whether a bell is out, or about to be.
    pub(super) fn is_told(&self) -> bool {
        self.last.is_some() || self.attempt.is_some()
    }

    /// Whether another signal is to be rung for in place of this one: unless only this one needs a reply.
    pub(super) fn yields_to(&self, other: &SignalHeader) -> bool {
        let needs_reply = |lead: &SignalHeader| lead.kind.duty() == Some(SignalDuty::Reply);
        needs_reply(other) || !needs_reply(&self.lead)
    }

    /// Whether such a bell may wake somebody: it is on its way, it went by a path that can, or there is no better one.
    pub(super) fn wakes(&self, can_wake: impl Fn(WakePath) -> bool) -> bool {
        let on_its_way = self.attempt.is_some_and(|attempt| !attempt.rang);
        let grade_a = |path: &WakePath| path.grade() == PathGrade::A;
        let better = self.missed.all().chain(self.unanswered.all()).any(|path| grade_a(&path) || can_wake(path));
        let took = |path: WakePath| grade_a(&path) && !self.unanswered.has(path) && can_wake(path);
        on_its_way || !better || self.rung.all().any(took)
    }

    /// A path has taken the bell.
    pub(super) fn rang(&mut self, path: WakePath, can_wake: bool, now: Time) {
        self.rung.insert(path);
        self.last = Some((path, now));
        if can_wake {
            self.rings += 1;
            self.could_have_woken = Some(now);
        }
    }

    /// It has not.
    pub(super) fn missed(&mut self, path: WakePath) {
        self.rung.remove(path);
        self.missed.insert(path);
    }

    /// What did not ring may be tried again: something new has come, so what may have rung already may be, too.
    pub(super) fn begin_again(&mut self) {
        self.unanswered.all().for_each(|path| self.rung.remove(path));
        (self.unanswered, self.missed) = Default::default();
        (self.retry, self.retries, self.uncaptured) = (None, 0, false);
    }

    /// By which path the agent was told last, or is being told.
    pub(super) fn newest_path(&self) -> Option<WakePath> {
        self.last.map(|(path, _)| path).or(self.attempt.map(|attempt| attempt.path))
    }

    pub(super) fn retry_later(&mut self, first: Duration, now: Time) {
        if self.retries < MAX_RETRIES {
            self.retry = Some(now + first * 2_u32.pow(self.retries));
        }
    }

    /// When what did not ring is tried again by itself.
    pub(super) fn retries_at(&self) -> Option<Time> {
        self.retry.filter(|_| self.attempt.is_none())
    }
}
