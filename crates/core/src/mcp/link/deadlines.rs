//! What is due, and when: calls that have waited long enough, for their server or for their client.

use std::time::{Duration, Instant};

use super::{CallFault, Exchange, ExchangeOwner, Link, Method, ReplyRoute, SessionKey, WireId};

/// How long the stream of a call may be without its client, where leaving is cancelling. One that lost it by accident is
/// back within seconds.
const RETURN_WITHIN: Duration = Duration::from_secs(30);

impl Link {
    pub(super) fn check_deadlines(&mut self, now: Instant) {
        self.check_at = None;
        let mut due: Vec<u64> =
            self.exchanges.iter().filter(|(_, e)| e.due().is_some_and(|at| at <= now)).map(|(id, _)| *id).collect();
        due.sort_unstable();
        for id in due {
            self.look_at(WireId(id), now);
        }
        self.expire_questions(now);
        self.pump(now);
        self.send_elsewhere(now);
        self.acknowledge_listens();
        let next = self.exchanges.values().filter_map(Exchange::due).min();
        self.check_by(next);
        let questions = self.sessions.values().flat_map(|s| s.questions.iter().map(|q| q.deadline)).min();
        self.check_by(questions);
        self.check_by(self.floor_due(now));
        self.check_by(self.parked_moments().filter(|at| *at > now).min());
    }

    fn look_at(&mut self, id: WireId, now: Instant) {
        if self.look_at_questions(id, now) {
            return;
        }
        let Some(exchange) = self.exchanges.get(&id.0) else { return };
        let timeout = self.settings.request_timeout.unwrap_or_default();
        if exchange.deadline.is_none_or(|at| at > now) {
            return self.tell_of_waiting(id, now);
        }
        if matches!(exchange.owner, ExchangeOwner::Link) {
            self.retire(id);
            return;
        }
        if exchange.reply == ReplyRoute::Nobody {
            return self.look_at_stopped(id, now);
        }
        let deserted = exchange.reply_is_deserted(&self.sessions);
        if deserted && self.settings.leaving_cancels {
            return self.stop_call(id, Some(CallFault::Deserted), now);
        }
        // While a person is asked, the clock stands still, up to the hard limit.
        let asked = exchange.session().and_then(|key| self.sessions.get(&key)).is_some_and(|s| !s.questions.is_empty());
        if asked && exchange.method.may_ask() && exchange.latest > now {
            self.push_back_deadline(id, now);
            return;
        }
        let fault = match exchange.latest <= now {
            _ if deserted && exchange.method == Method::Initialize => CallFault::Deserted,
            true => CallFault::Timeout { after: self.settings.max_request_time, setting: "max_request_time" },
            false => CallFault::Timeout { after: timeout, setting: "request_timeout" },
        };
        if let Some(at) = self.held.iter().position(|(held, _)| *held == id) {
            self.held.remove(at);
            let opened = Some(exchange).filter(|e| e.method == Method::Initialize).and_then(Exchange::session);
            self.fail(id, fault, now);
            if let Some(key) = opened {
                self.end_session(key);
            }
        } else {
            self.stop_call(id, Some(fault), now);
        }
    }

    /// The stream that a session's call had become is gone. Its client may come back to it, but not for ever: until then
    /// the call may be whom its server speaks of, and others on the child are not told.
    pub(super) fn await_return(&mut self, key: SessionKey, now: Instant) {
        let (soon, timeout) = (now + RETURN_WITHIN, self.settings.request_timeout);
        let ends = |e: &Exchange| self.settings.leaving_cancels || e.method == Method::Initialize;
        let own = self.exchanges.values_mut().filter(|exchange| exchange.session() == Some(key));
        for exchange in own.filter(|exchange| exchange.reply_is_deserted(&self.sessions)) {
            match (exchange.deadline, timeout) {
                (None, _) if ends(exchange) => exchange.deadline = Some(soon),
                (Some(at), Some(timeout)) => exchange.deadline = Some(at.min(now + timeout)),
                // It waits for a server to start, or calls may take for ever here.
                _ => {}
            }
        }
        let due = self.exchanges.values().filter_map(Exchange::due).min();
        self.check_by(due);
    }

    /// A client reads the stream of its calls again.
    pub(super) fn has_returned(&mut self, key: SessionKey, track: u64, now: Instant) {
        let own = |e: &Exchange| e.session() == Some(key) && e.reply == ReplyRoute::Track(track);
        let ids: Vec<WireId> = self.exchanges.iter().filter(|(_, e)| own(e)).map(|(id, _)| WireId(*id)).collect();
        for id in ids {
            let Some(exchange) = self.exchanges.get(&id.0) else { continue };
            let is_new = exchange.method == Method::Initialize;
            let deadline = if is_new { None } else { exchange.deadline.and_then(|_| self.deadline(exchange, now)) };
            if let Some(exchange) = self.exchanges.get_mut(&id.0) {
                exchange.deadline = deadline;
            }
        }
    }
}
