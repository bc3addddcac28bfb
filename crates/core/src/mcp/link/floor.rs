//! Who has the floor: the one call without a session that what the server says beside its answers is about. A log note on a pipe, and
//! a question on a stream of no call, do not say whose they are (mcp-eras 5.6, 5.9); while one call runs they need not.
//!
//! So calls that may be spoken to like that take turns, as most are short. It is no lock: one that has had the floor for long, while
//! others wait, is not waited for any more, and nobody waits for long. What has no certain owner then is dropped or refused as ever.

use std::time::{Duration, Instant};

use super::{Exchange, Link, ReplyRoute, UpstreamKind, WireId};
use crate::mcp::era::Era;

/// How long others wait for one that has the floor: longer than one that was cancelled counts as running.
const TURN: Duration = Duration::from_millis(1500);
/// How long a call waits for the floor in all, however many others had it before.
const PATIENCE: Duration = Duration::from_secs(5);

/// The call that has it.
#[derive(Debug)]
pub(super) struct Floor {
    holder: WireId,
    /// When the others stop waiting for it, once one does.
    until: Option<Instant>,
}

impl Link {
    /// Whether a call is alone with what the server logs: over HTTP each is, and on a pipe the one that has the floor.
    pub(super) fn hears_log(&mut self, id: WireId) -> bool {
        self.settings.wire == UpstreamKind::Http || self.takes_floor(id)
    }

    /// Gives a call the floor, if it is free.
    pub(super) fn takes_floor(&mut self, id: WireId) -> bool {
        self.floor.get_or_insert(Floor { holder: id, until: None }).holder == id
    }

    pub(super) fn leaves_floor(&mut self, id: WireId) {
        self.floor.take_if(|floor| floor.holder == id);
    }

    /// A call goes on under another number.
    pub(super) fn renumber_floor(&mut self, before: WireId, id: WireId) {
        if let Some(floor) = self.floor.as_mut().filter(|floor| floor.holder == before) {
            floor.holder = id;
        }
    }

    /// The one call that a modern server on a pipe was told the log level of.
    pub(super) fn log_hearer(&self) -> Option<WireId> {
        let is_told = self.era() == Era::Modern && self.settings.wire == UpstreamKind::Pipe;
        self.floor.as_ref().map(|floor| floor.holder).filter(|_| is_told)
    }

    /// Whether a call of the modern era may be spoken to without being named.
    pub(super) fn wants_floor(&self, exchange: &Exchange) -> bool {
        let Some(modern) = exchange.modern().filter(|_| exchange.method.may_ask()) else { return false };
        let logs = modern.envelope.level.is_some();
        match (self.era(), self.settings.wire) {
            (Era::Modern, UpstreamKind::Pipe) => logs,
            (Era::Modern, UpstreamKind::Http) => false,
            // Calls that may be asked take turns there, whoever waits for how long; lists do not.
            (Era::Legacy, UpstreamKind::Pipe) => self.exclusive && logs,
            (Era::Legacy, UpstreamKind::Http) => self.exclusive && modern.envelope.class.answers_questions(),
        }
    }

    /// Whether a call must wait for the floor, and notes that it does.
    pub(super) fn awaits_floor(&mut self, id: WireId, now: Instant) -> bool {
        let Some(call) = self.exchanges.get(&id.0).filter(|e| e.modern().is_some()) else { return false };
        let wants = self.wants_floor(call);
        // What a server of the older era logs on a pipe is as well about whatever else runs.
        let mingles = self.era() == Era::Legacy && self.settings.wire == UpstreamKind::Pipe && self.exclusive;
        let waits = match &mut self.floor {
            Some(floor) if wants || mingles => {
                // One that was stopped is gone in a moment, however long it took.
                let is_stopped = self.exchanges.get(&floor.holder.0).is_some_and(|e| e.reply == ReplyRoute::Nobody);
                let until = *floor.until.get_or_insert(now + TURN);
                floor.holder != id && (now < until || is_stopped)
            }
            Some(_) => false,
            None => wants && mingles && self.sent > 0,
        };
        let Some(modern) = self.exchanges.get_mut(&id.0).and_then(|e| e.modern_mut()).filter(|_| waits) else {
            return false;
        };
        let by = *modern.floor_by.get_or_insert(now + PATIENCE);
        self.check_by(Some(by));
        self.check_by(self.floor_due(now));
        now < by
    }

    /// When the next call need not wait for the floor any more.
    pub(super) fn floor_due(&self, now: Instant) -> Option<Instant> {
        let by = |id: &WireId| self.exchanges.get(&id.0).and_then(Exchange::modern)?.floor_by;
        let turn = self.floor.as_ref().and_then(|floor| floor.until);
        self.held.iter().filter_map(|(id, _)| by(id)).chain(turn).filter(|at| *at > now).min()
    }
}
