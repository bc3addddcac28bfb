//! Lists that several clients ask for at once are fetched once, and kept for as long as the server lets us
//! (mcp-eras 5.11).

use std::time::{Duration, Instant};

use bytes::Bytes;

use super::{Link, LinkPhase, Method, ReplyRoute, UpstreamKind, WireId};
use crate::{
    mcp::{
        cache::{CacheHint, CacheKey, Principal},
        era::Era,
        hello::ClientClass,
        modern,
    },
    wire::{Members, Message, MessageKind, splice::around},
};

/// How long a list of a legacy server is kept, if the server says that it tells of changes.
const LEGACY_LIST: Duration = Duration::from_secs(30);

/// A request that others wait for the answer of.
#[derive(Debug)]
pub(super) struct SharedFetch {
    key: CacheKey,
    leader: WireId,
    followers: Vec<(WireId, Message)>,
    /// It may say what was true before something changed: nobody else may wait for it, and it is not kept.
    outdated: bool,
}

impl Link {
    /// Answers a call from what is kept, or lets it wait for another's answer. Returns whether it did.
    pub(super) fn shares(&mut self, id: WireId, message: &Message, now: Instant) -> bool {
        let MessageKind::Request(method) = message.kind() else { return false };
        if !method.is_list() && (method != Method::ResourcesRead || self.era() == Era::Legacy) {
            return false;
        }
        let Some(key) = CacheKey::of(method, message.params_text()) else { return false };
        // A legacy server has heard it once, of all clients of this link.
        let key = if self.era() == Era::Modern { key.by(self.class_of(id)) } else { key };
        if let Some((result, left)) = self.cache.get(&key, Principal::default(), now) {
            let result = result.to_owned();
            self.answer_kept(id, &result, Some(left), now);
            return true;
        }
        // What a resource reads as may depend on who asks, by way of its capabilities: only lists are shared unseen.
        match self.flights.iter_mut().find(|flight| flight.key == key && !flight.outdated) {
            Some(flight) if method.is_list() => {
                flight.followers.push((id, message.clone()));
                true
            }
            Some(_) => false,
            None => {
                self.flights.push(SharedFetch { key, leader: id, followers: Vec::new(), outdated: false });
                false
            }
        }
    }

    /// What the client of a call can answer.
    fn class_of(&self, id: WireId) -> ClientClass {
        let Some(exchange) = self.exchanges.get(&id.0) else { return ClientClass::NONE };
        let session = || exchange.session().and_then(|key| self.sessions.get(&key)).map(|session| session.class);
        exchange.modern().map(|modern| modern.envelope.class).or_else(session).unwrap_or(ClientClass::NONE)
    }

    /// The server answered a call that others may wait with.
    pub(super) fn landed(&mut self, id: WireId, message: &Message, now: Instant) {
        let Some(at) = self.flights.iter().position(|flight| flight.leader == id) else { return };
        let SharedFetch { key, followers, outdated, .. } = self.flights.swap_remove(at);
        if let Some(result) = message.result_span().map(|span| message.text(span)).filter(|_| !outdated) {
            let hint = match self.era() {
                Era::Modern => CacheHint::read(result),
                Era::Legacy => self.legacy_hint(key.method),
            };
            if let Some(hint) = hint {
                self.cache.put(key, Principal::default(), result, hint, now);
            }
        }
        for (follower, _) in followers {
            self.pass_on(follower, message, now);
        }
    }

    /// Something has changed: what is known, or on its way, may be untrue.
    pub(super) fn outdate(&mut self, change: Method) {
        self.cache.invalidate(change);
        for flight in self.flights.iter_mut().filter(|flight| flight.key.changes_with(change)) {
            flight.outdated = true;
        }
    }

    /// A call is answered that may have changed any list. Over HTTP that is told on a stream of its own, which may come later,
    /// or come to the session of that call only (R-56); through a pipe it has come before.
    pub(super) fn doubt_lists(&mut self) {
        if self.settings.wire == UpstreamKind::Http && self.era() == Era::Legacy {
            self.flights.iter_mut().for_each(|flight| flight.outdated = true);
        }
    }

    /// How long a list of a legacy server may be kept: only if it tells of changes here, and not for long even then.
    fn legacy_hint(&self, method: Method) -> Option<CacheHint> {
        let greeting = self.greeting.as_ref().filter(|_| self.settings.wire == UpstreamKind::Pipe)?;
        modern::tells_of_changes(method, greeting).then_some(CacheHint { ttl: LEGACY_LIST, public: false })
    }

    fn answer_kept(&mut self, id: WireId, result: &str, left: Option<Duration>, now: Instant) {
        let body = format!(r#"{{"jsonrpc":"2.0","id":0,"result":{result}}}"#);
        let Ok(message) = Message::parse(Bytes::from(body)) else { return };
        let is_modern = self.exchanges.get(&id.0).is_some_and(|e| e.modern().is_some());
        match (is_modern && self.era() == Era::Modern, left) {
            // Its time is shorter by now than the server said.
            (true, Some(left)) => {
                let told = self.reworded(id, self.era(), &message).map(|told| told.body);
                let text = told.as_deref().unwrap_or_default();
                let whole = Members::read(text).or_else(|| Members::read(std::str::from_utf8(message.bytes()).ok()?));
                let whole = whole.unwrap_or_default();
                let mut result = whole.object("result").unwrap_or_default();
                result.set("ttlMs", left.as_millis().to_string());
                let result = result.to_string();
                self.answer_locally(id, &result, now);
            }
            _ => self.pass_on(id, &message, now),
        }
    }

    /// Gives a call the answer to another one that asked for the same.
    fn pass_on(&mut self, id: WireId, message: &Message, now: Instant) {
        let Some(own) = self.own_id(id) else { return };
        match (self.reworded(id, self.era(), message), message.id_span()) {
            (Some(told), _) => self.finish_told(id, told, now),
            (None, Some(span)) => self.finish(id, &around(message, span, &own), now),
            (None, None) => {}
        }
    }

    /// A call that others wait with gets no answer: the next of them asks in its place.
    pub(super) fn lost_flight(&mut self, id: WireId, now: Instant) {
        let Some(at) = self.flights.iter().position(|flight| flight.leader == id) else { return };
        let SharedFetch { followers, .. } = self.flights.swap_remove(at);
        for (follower, message) in followers {
            if self.phase == LinkPhase::Up
                && self.exchanges.get(&follower.0).is_some_and(|e| e.reply != ReplyRoute::Nobody)
            {
                self.dispatch(follower, message, now);
            }
        }
    }

    /// A call that waits for another's answer is over; or one that others wait with, and they ask again when they may.
    pub(super) fn leave_flight(&mut self, id: WireId) {
        for flight in &mut self.flights {
            flight.followers.retain(|(follower, _)| *follower != id);
        }
        for flight in self.flights.extract_if(.., |flight| flight.leader == id) {
            self.held.extend(flight.followers);
        }
    }
}
