//! How calls end: with an answer, with a fault, or with nobody there to hear of it.

use std::time::Instant;

use bytes::Bytes;

use super::{
    CallFault, Exchange, ExchangeOwner, Link, LinkAction, LinkAnswer, ReplyRoute, SessionKey, StreamKey, WireId,
    exchange::{ExchangeOutcome, RequestStanding},
    fault::error_body,
    ghosts::MOMENT,
};
use crate::{
    mcp::{Method, replay::ReplayKind},
    wire::{ByteChain, frame, text},
};

/// An answer in our words. The code, if it is an error and the client's era is the one where codes are statuses.
pub(super) struct TranslatedAnswer {
    pub(super) body: String,
    pub(super) code: Option<i32>,
}

impl Link {
    /// Answers a call ourselves.
    pub(super) fn answer_locally(&mut self, id: WireId, result: &str, now: Instant) {
        self.answer_with(id, |own| text::result(own, result), now);
    }

    pub(super) fn refuse_locally(&mut self, id: WireId, code: i32, message: &str, now: Instant) {
        self.answer_with(id, |own| error_body(Some(own), code, message, None), now);
    }

    fn answer_with(&mut self, id: WireId, body: impl FnOnce(&str) -> String, now: Instant) {
        let Some(ExchangeOwner::Client { id: own, .. }) = self.exchanges.get(&id.0).map(|e| &e.owner) else { return };
        let body = body(own);
        self.finish(id, &[body.as_bytes()], now);
    }

    /// The id that a call's client gave it.
    pub(super) fn own_id(&self, id: WireId) -> Option<Box<str>> {
        match &self.exchanges.get(&id.0)?.owner {
            ExchangeOwner::Client { id, .. } => Some(id.clone()),
            ExchangeOwner::Link => None,
        }
    }

    /// Refuses a call of the modern era, where the code decides the status.
    pub(super) fn refuse_modern(&mut self, id: WireId, code: i32, message: &str, data: &str, now: Instant) {
        let Some(ExchangeOwner::Client { id: own, .. }) = self.exchanges.get(&id.0).map(|e| &e.owner) else { return };
        let message = crate::wire::members::JsonString(message);
        let data = if data.is_empty() { String::new() } else { format!(r#","data":{data}"#) };
        let body = text::error(own, format_args!(r#"{{"code":{code},"message":{message}{data}}}"#));
        self.finish_told(id, TranslatedAnswer { body, code: Some(code) }, now);
    }

    /// Gives a call an answer in other words than the server's.
    pub(super) fn finish_told(&mut self, id: WireId, TranslatedAnswer { body, code }: TranslatedAnswer, now: Instant) {
        match code {
            Some(code) if self.exchanges.get(&id.0).is_some_and(|e| e.reply == ReplyRoute::Held) => {
                self.retire(id);
                let body = ByteChain::from(Bytes::from(body));
                self.actions.push_back(LinkAction::Answer(id, LinkAnswer::Error { code, body }));
                if self.sessions.is_empty() {
                    self.settle(now);
                }
            }
            _ => self.finish(id, &[body.as_bytes()], now),
        }
    }

    /// Gives a call its answer, whichever way its client hears it, and forgets it.
    pub(super) fn finish(&mut self, id: WireId, parts: &[&[u8]], now: Instant) {
        if self.exchanges.get(&id.0).is_some_and(|e| e.reply == ReplyRoute::Held && !e.accepts_json()) {
            self.commit(id, now);
        }
        // Forgotten before it is answered: progress that comes after the answer must find nothing (mcp-eras 5.4).
        let Some(exchange) = self.retire(id) else { return };
        match exchange.reply {
            ReplyRoute::Held => {
                let answer = LinkAnswer::Message(ByteChain::from(Bytes::from(parts.concat())));
                self.actions.push_back(LinkAction::Answer(id, answer));
            }
            ReplyRoute::Track(track) => {
                if let Some(session) = exchange.session().and_then(|key| self.sessions.get_mut(&key)) {
                    let strict = self.settings.strict_streams;
                    session.send_on_track(track, parts, ReplayKind::Message, strict, &mut self.actions);
                    session.finish_post(track, now, &mut self.actions);
                }
            }
            ReplyRoute::Bare(stream) => {
                self.push_bare(&exchange, stream, parts);
                self.actions.push_back(LinkAction::End(stream));
            }
            ReplyRoute::Left | ReplyRoute::Nobody | ReplyRoute::Parked => {}
        }
        if self.sessions.is_empty() {
            self.settle(now);
        }
    }

    /// Tells a call's client what went wrong, and forgets the call.
    pub(super) fn fail(&mut self, id: WireId, fault: CallFault, now: Instant) {
        self.withdraw_asked(id);
        self.lost_flight(id, now);
        let Some(exchange) = self.exchanges.get(&id.0) else { return };
        let own = match &exchange.owner {
            ExchangeOwner::Client { id, .. } => id.clone(),
            ExchangeOwner::Link => Box::default(),
        };
        if exchange.reply == ReplyRoute::Held {
            self.retire(id);
            self.actions.push_back(LinkAction::Answer(id, LinkAnswer::Fault { fault, id: own }));
        } else if exchange.reply == ReplyRoute::Parked {
            self.keep_outcome(id, ExchangeOutcome::Fault(fault));
        } else {
            let body = fault.body(Some(&own));
            self.finish(id, &[body.as_bytes()], now);
        }
    }

    /// Lets a call's client go, with a fault or, when it cancelled, with nothing. The server may still work on it, so
    /// it counts until the answer comes or the moment is over.
    pub(super) fn abandon(&mut self, id: WireId, fault: Option<CallFault>, now: Instant) {
        self.lost_flight(id, now);
        let Some(exchange) = self.exchanges.get_mut(&id.0) else { return };
        let ExchangeOwner::Client { session, id: own, .. } = &exchange.owner else { return };
        let (key, own) = (*session, own.clone());
        let reply = std::mem::replace(&mut exchange.reply, ReplyRoute::Nobody);
        exchange.deadline = Some(now + MOMENT);
        exchange.standing = RequestStanding::Stopped;
        let (due, by_method) = (exchange.deadline, exchange.by_method());
        self.check_by(due);
        let body = fault.as_ref().map(|fault| fault.body(Some(&own)));
        let parts: Vec<&[u8]> = body.iter().map(|body| body.as_bytes()).collect();
        match reply {
            ReplyRoute::Held => {
                let answer = match fault {
                    Some(fault) => LinkAnswer::Fault { fault, id: own },
                    None => LinkAnswer::Cancelled { id: own },
                };
                self.actions.push_back(LinkAction::Answer(id, answer));
            }
            ReplyRoute::Track(track) => {
                if let Some(session) = key.and_then(|key| self.sessions.get_mut(&key)) {
                    if !parts.is_empty() {
                        let strict = self.settings.strict_streams;
                        session.send_on_track(track, &parts, ReplayKind::Message, strict, &mut self.actions);
                    }
                    session.finish_post(track, now, &mut self.actions);
                }
            }
            ReplyRoute::Bare(stream) => {
                if !parts.is_empty() {
                    let bytes = super::exchange::named(frame::event(None, &parts), by_method);
                    self.actions.push_back(LinkAction::Event { stream, number: 0, bytes });
                }
                self.actions.push_back(LinkAction::End(stream));
            }
            ReplyRoute::Left | ReplyRoute::Nobody | ReplyRoute::Parked => {}
        }
        // The server does not have it, or not any more: there is nothing to wait for.
        if self.exchanges.get(&id.0).is_some_and(|e| e.wire == 0) {
            self.retire(id);
        }
    }

    /// Turns a held POST into a stream, if its client takes one. Returns whether it is one now.
    pub(super) fn commit(&mut self, id: WireId, now: Instant) -> bool {
        let Some(exchange) = self.exchanges.get(&id.0) else { return false };
        let ExchangeOwner::Client { session: key, accepts, .. } = exchange.owner else { return false };
        if exchange.reply != ReplyRoute::Held {
            return exchange.is_awaited();
        }
        if !accepts.events {
            return false;
        }
        let stream = self.next_stream(now);
        self.actions.push_back(LinkAction::Stream(id, stream));
        let reply = match key.and_then(|key| self.sessions.get_mut(&key)) {
            Some(session) => ReplyRoute::Track(session.open_post(stream, 1, accepts.by_method, &mut self.actions)),
            None => ReplyRoute::Bare(stream),
        };
        if let Some(exchange) = self.exchanges.get_mut(&id.0) {
            exchange.reply = reply;
        }
        true
    }

    /// Sends something on the stream of a client without a session: it has no number, for nobody can resume it.
    pub(super) fn push_bare(&mut self, exchange: &Exchange, stream: StreamKey, parts: &[&[u8]]) {
        let bytes = exchange.named(frame::event(None, parts));
        self.actions.push_back(LinkAction::Event { stream, number: 0, bytes });
    }

    /// One call less is waited for.
    pub(super) fn count_off(&mut self, session: Option<SessionKey>, sent: bool) {
        self.calls -= 1;
        self.sent -= usize::from(sent);
        if let Some(session) = session.and_then(|key| self.sessions.get_mut(&key)) {
            session.calls -= 1;
        }
    }

    /// Forgets a call.
    pub(super) fn retire(&mut self, id: WireId) -> Option<Exchange> {
        if !self.flights.is_empty() {
            self.leave_flight(id);
        }
        let exchange = self.exchanges.remove(&id.0)?;
        self.fetches -= usize::from(exchange.is_fetch);
        if let ExchangeOwner::Client { session, .. } = exchange.owner {
            // A ghost does not count already.
            if exchange.standing != RequestStanding::Ghost {
                self.count_off(session, exchange.wire != 0);
            }
        }
        if exchange.method == Method::ResourcesSubscribe {
            self.forget_pending_watch(id);
        }
        if exchange.wire != id.0 {
            self.aliases.remove(&exchange.wire);
        }
        if exchange.method == Method::ToolsList {
            self.refreshing.retain(|(refresh, _)| *refresh != id);
        }
        self.leaves_floor(id);
        if let Some(modern) = exchange.modern() {
            self.parked.remove(&modern.ticket);
        }
        Some(exchange)
    }
}
