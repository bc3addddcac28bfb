//! Ghosts: calls that the server was told to stop working on, and has not answered. They block nobody, and what it may
//! still ask on their behalf is put to nobody else (B-04).
//!
//! The protocol tells servers not to answer a cancelled call, and some go on working on it. So a stopped call counts as
//! running for a moment, and not for longer: then notes are the others' again, and the server may go to sleep. As the
//! one who may ask a question it counts for as long as the child lives, or the question would be shown to whoever
//! happens to call. Where that stands in somebody's way, the child is replaced as soon as nothing runs on it.

use std::time::{Duration, Instant};

use super::{Exchange, Link, WireId, exchange::RequestStanding};
use crate::mcp::era::Era;

/// How long a call that was stopped counts as running. A server that answers a cancelled call at all does so at once
/// (the SDK for Python; the one for TypeScript never does), and what it had written before comes with that.
pub(super) const MOMENT: Duration = Duration::from_secs(1);
/// Ghosts that one child may have. Beyond it the oldest is forgotten, and of questions that could be anybody's none has
/// a certain owner any more until the child ends.
const MAX_GHOSTS: usize = 256;

/// What is known of a child's ghosts beside the calls themselves.
#[derive(Debug, Default)]
pub(super) struct Ghosts {
    /// There were more than can be remembered.
    crowd: bool,
    /// A question was refused because it might have been a ghost's.
    in_the_way: bool,
}

impl Link {
    /// A stopped call's moment is over, or it is a ghost and somebody waits for it to be gone.
    pub(super) fn look_at_stopped(&mut self, id: WireId, now: Instant) {
        let Some(exchange) = self.exchanges.get(&id.0) else { return };
        if exchange.standing != RequestStanding::Ghost {
            if !self.may_haunt(exchange) {
                self.retire(id);
                return;
            }
            self.uncount(id);
            self.forget_oldest_ghost();
        }
        let waited_for = self.ghosts.in_the_way || self.held.iter().any(|(held, _)| self.must_wait(*held));
        if waited_for && self.sent == 0 {
            return self.recycle(now);
        }
        if let Some(exchange) = self.exchanges.get_mut(&id.0) {
            exchange.deadline = waited_for.then_some(now + MOMENT);
        }
    }

    /// Somebody waits for the ghosts to be gone.
    pub(super) fn rouse_ghosts(&mut self, now: Instant) {
        let mut any = false;
        for exchange in self.exchanges.values_mut().filter(|e| e.standing == RequestStanding::Ghost) {
            exchange.deadline = Some(now);
            any = true;
        }
        if any {
            self.check_by(Some(now));
        }
    }

    /// A question was refused, as nothing says whose it is.
    pub(super) fn doubt_ghosts(&mut self, now: Instant) {
        self.ghosts.in_the_way = true;
        self.rouse_ghosts(now);
    }

    /// Whether there were more ghosts than are remembered.
    pub(super) fn is_crowded(&self) -> bool {
        self.ghosts.crowd
    }

    /// Whether the server may still ask something on behalf of a stopped call that another client could be shown. A
    /// modern one asks only in its answers, and where there is one client, or none that can be asked, nothing can
    /// reach the wrong one.
    fn may_haunt(&self, exchange: &Exchange) -> bool {
        let askable = self.exclusive || self.settings.class.answers_questions();
        askable && !self.settings.alone && self.era() == Era::Legacy && exchange.may_be_asked()
    }

    /// Counts a call as running no more.
    fn uncount(&mut self, id: WireId) {
        let Some(exchange) = self.exchanges.get_mut(&id.0) else { return };
        exchange.standing = RequestStanding::Ghost;
        // Nobody goes on with it.
        (exchange.origin, exchange.rounds) = (None, None);
        if let Some(modern) = exchange.modern() {
            self.parked.remove(&modern.ticket);
        }
        let session = exchange.session();
        self.count_off(session, true);
        self.leaves_floor(id);
    }

    fn forget_oldest_ghost(&mut self) {
        let ghosts = || self.exchanges.iter().filter(|(_, e)| e.standing == RequestStanding::Ghost).map(|(id, _)| *id);
        if ghosts().count() > MAX_GHOSTS
            && let Some(oldest) = ghosts().min()
        {
            self.ghosts.crowd = true;
            self.retire(WireId(oldest));
        }
    }
}
