//! Calls that take turns, so that a question's owner stays certain (mcp-eras 5.6): which must wait, which may go, and
//! which give way.

use std::time::{Duration, Instant};

use super::{
    Exchange, Link, LinkAction, PARKED_FOR, ReplyRoute, UpstreamKind, WireId, exchange::RequestStanding,
    lifecycle::LinkPhase,
};
use crate::mcp::era::Era;

/// How long a program takes at most to answer for its person.
const ANSWERED_WITHIN: Duration = Duration::from_secs(1);

impl Link {
    /// Whether a call has waited for its client's answer for more than a moment, and others that could be asked would have to wait for
    /// it. Within that moment a program answers; a person does not, and those others have a further server started.
    pub fn is_parked(&self, now: Instant) -> bool {
        self.parked_moments().any(|at| at <= now)
    }

    /// When each of the calls that wait for their clients' answers has waited for more than a moment.
    pub(super) fn parked_moments(&self) -> impl Iterator<Item = Instant> {
        let running =
            |id: &WireId| self.exchanges.get(&id.0).filter(|e| self.exclusive && e.wire != 0)?.modern()?.expires;
        self.parked.values().filter_map(running).filter_map(|expires| expires.checked_sub(PARKED_FOR - ANSWERED_WITHIN))
    }

    /// The server has been seen to ask nothing: its calls need not wait for each other any more.
    pub fn share_freely(&mut self, now: Instant) {
        self.exclusive = false;
        self.pump(now);
    }

    /// Sends what waits for the server, as far as it may be sent now.
    pub(super) fn pump(&mut self, now: Instant) {
        if self.phase != LinkPhase::Up {
            return;
        }
        let mut at = 0;
        while let Some((id, _)) = self.held.get(at) {
            let id = *id;
            if self.must_wait(id) || self.awaits_floor(id, now) {
                self.wait_for_turn(id, now);
                at += 1;
                continue;
            }
            let Some((_, message)) = self.held.remove(at) else { break };
            // Nobody waits for it any more, and the server has not seen it.
            if self.exchanges.get(&id.0).is_some_and(|exchange| exchange.reply == ReplyRoute::Left) {
                self.retire(id);
            } else {
                // It may have waited for its turn, or for the server.
                self.restart_clock(id, now);
                self.dispatch(id, message, now);
            }
        }
    }

    /// Whether a call must wait for another one to end, so that a question's owner stays certain (mcp-eras 5.6).
    pub(super) fn must_wait(&self, id: WireId) -> bool {
        let Some(call) = self.exchanges.get(&id.0).filter(|e| e.modern().is_some() && e.method.may_ask()) else {
            return false;
        };
        // What it still asks on behalf of a ghost is at least its client's.
        let is_over = |e: &Exchange| e.standing == RequestStanding::Ghost && e.is_of_the_same_client_as(call);
        // That client's next calls must not keep others waiting for the ghost for ever.
        let earlier = self.held.iter().map(|(held, _)| *held).take_while(|held| *held != id);
        let is_anothers =
            |e: &Exchange| e.modern().is_some() && e.method.may_ask() && !e.is_of_the_same_client_as(call);
        self.exclusive
            && self.settings.wire == UpstreamKind::Pipe
            && self.era() == Era::Legacy
            && (self.exchanges.values().any(|e| e.may_be_asked() && !is_over(e))
                || earlier.into_iter().any(|held| self.exchanges.get(&held.0).is_some_and(is_anothers)))
    }

    /// Sends calls that would wait for a person's answer to another link.
    pub(super) fn send_elsewhere(&mut self, now: Instant) {
        if !self.is_parked(now) {
            return;
        }
        // One that has become a stream stays: its head is sent.
        let is_held = |id: &WireId| self.exchanges.get(&id.0).is_some_and(|e| e.reply == ReplyRoute::Held);
        let waits_for_floor = |id: &WireId| {
            self.settings.wire == UpstreamKind::Http && self.exchanges.get(&id.0).is_some_and(|e| self.wants_floor(e))
        };
        let waits = |id: &WireId| is_held(id) && (self.must_wait(*id) || waits_for_floor(id));
        let waiting: Vec<WireId> = self.held.iter().map(|(id, _)| *id).filter(waits).collect();
        for id in waiting {
            let Some(at) = self.held.iter().position(|(held, _)| *held == id) else { continue };
            if let Some((_, message)) = self.held.remove(at) {
                self.retire(id);
                self.actions.push_back(LinkAction::Elsewhere(id, message));
            }
        }
    }

    /// Ends the call that has been parked the longest, as if its client had never come back.
    pub(super) fn evict(&mut self, now: Instant) {
        let running = |id: &WireId| self.exchanges.get(&id.0).filter(|e| e.reply == ReplyRoute::Parked && e.wire != 0);
        let since = |id: &WireId| running(id)?.modern()?.expires;
        let oldest = self.parked.values().filter_map(|id| Some((since(id)?, *id))).min();
        let Some((_, id)) = oldest else { return };
        if let Some(modern) = self.exchanges.get_mut(&id.0).and_then(|e| e.modern_mut()) {
            modern.expires = None;
            self.parked.remove(&modern.ticket);
        }
        self.stop_call(id, None, now);
        // The server may take its time over that, or for ever. Nobody else is on it: a new one is there sooner.
        if !self.exchanges.values().any(|e| e.wire != 0 && (e.is_awaited() || e.reply == ReplyRoute::Parked)) {
            self.recycle(now);
        }
    }
}
