//! The server's notifications: which session each belongs to, and on which of its two paths it goes (N-01).

use std::time::Instant;

use super::{Action, Exchange, Link, Method, Owner, Reply, SessionKey, WireId, lifecycle::Phase, watch, wire_id};
use crate::{
    mcp::{level::Level, replay::What},
    wire::{Message, splice::around},
};

/// Whom a log note belongs to. A pipe does not say, so it is certain or it is nobody (mcp-eras 5.9).
enum NoteOwner {
    Call(WireId),
    Session(SessionKey),
    Nobody,
}

impl Link {
    pub(super) fn handle_note(&mut self, method: Method, message: Message, now: Instant) {
        match method {
            Method::Progress => self.progress(&message, now),
            Method::Log => self.log_note(message, now),
            Method::ToolsChanged | Method::PromptsChanged | Method::ResourcesChanged => {
                self.tell_everybody(&message, &What::Change(method.name().into()));
            }
            Method::ResourceUpdated => self.resource_updated(&message),
            Method::Cancelled => self.question_withdrawn(&message),
            // Unknown ones only where there is no doubt whom they are for.
            _ => match self.sole_session() {
                Some(key) => self.send_standalone(key, &message, What::Message),
                None => self.actions.push_back(Action::Unowned(message)),
            },
        }
    }

    /// Progress goes to the call that its token names, under the client's own token. Late or foreign progress is
    /// dropped: forwarding it makes clients close the connection.
    fn progress(&mut self, message: &Message, now: Instant) {
        let Some(span) = message.params().token else { return };
        let Some(id) = wire_id(message.text(span)) else { return };
        let Some(exchange) = self.exchanges.get(&id.0) else { return };
        let Owner::Client { token: Some(token), .. } = &exchange.owner else { return };
        if !exchange.is_awaited() {
            return;
        }
        let token = token.clone();
        self.push_back_deadline(id, now);
        if self.commit(id, now) {
            self.send_on_call(id, &around(message, span, &token));
        }
    }

    fn log_note(&mut self, message: Message, now: Instant) {
        let level = message.string(message.params().level).and_then(|name| Level::named(&name));
        match self.note_owner() {
            NoteOwner::Call(id) => {
                let key = self.exchanges.get(&id.0).and_then(Exchange::session);
                if key.is_some_and(|key| !self.wants(key, level)) {
                    return;
                }
                if self.commit(id, now) {
                    self.send_on_call(id, &[message.bytes()]);
                } else if let Some(key) = key {
                    self.send_standalone(key, &message, What::Message);
                }
            }
            NoteOwner::Session(key) if self.wants(key, level) => self.send_standalone(key, &message, What::Message),
            NoteOwner::Session(_) => {}
            NoteOwner::Nobody => self.actions.push_back(Action::Unowned(message)),
        }
    }

    fn note_owner(&self) -> NoteOwner {
        let calls = || self.exchanges.iter().filter(|(_, e)| matches!(e.owner, Owner::Client { .. }));
        // Before its handshake a child has seen no call.
        match if self.phase == Phase::Up { self.calls } else { 0 } {
            0 => self.sole_session().map_or(NoteOwner::Nobody, NoteOwner::Session),
            1 => match calls().next() {
                Some((id, exchange)) if exchange.is_awaited() => NoteOwner::Call(WireId(*id)),
                Some((_, exchange)) => exchange.session().map_or(NoteOwner::Nobody, NoteOwner::Session),
                None => NoteOwner::Nobody,
            },
            _ => {
                // Under load the last caller is nearly always still waiting: one look decides.
                let all_of = |key: SessionKey| self.sessions.get(&key).is_some_and(|s| s.calls == self.calls);
                let candidate = self.last_caller.filter(|key| all_of(*key));
                let candidate =
                    candidate.or_else(|| calls().next().and_then(|(_, e)| e.session()).filter(|key| all_of(*key)));
                candidate.map_or(NoteOwner::Nobody, NoteOwner::Session)
            }
        }
    }

    /// The one session of this link, if nobody else ever had a call on its child: what an ended session's call left
    /// behind must not reach the next one.
    pub(super) fn sole_session(&self) -> Option<SessionKey> {
        match self.sessions.len() {
            1 if self.owners == 1 && self.stateless_until.is_none() => self.sessions.keys().next().copied(),
            _ => None,
        }
    }

    fn tell_everybody(&mut self, message: &Message, what: &What) {
        let strict = self.settings.strict_streams;
        for session in self.sessions.values_mut() {
            session.send_standalone(&[message.bytes()], what.clone(), strict, &mut self.actions);
        }
    }

    fn resource_updated(&mut self, message: &Message) {
        let Some(uri) = message.string(message.params().uri) else { return };
        let what = What::Change(format!("{} {uri}", Method::ResourceUpdated.name()).into());
        for key in watch::watchers(&self.watches, &uri) {
            if let Some(session) = self.sessions.get_mut(&key) {
                session.send_standalone(
                    &[message.bytes()],
                    what.clone(),
                    self.settings.strict_streams,
                    &mut self.actions,
                );
            }
        }
    }

    pub(super) fn send_standalone(&mut self, key: SessionKey, message: &Message, what: What) {
        if let Some(session) = self.sessions.get_mut(&key) {
            session.send_standalone(&[message.bytes()], what, self.settings.strict_streams, &mut self.actions);
        }
    }

    /// Sends something on the stream that a call has become.
    pub(super) fn send_on_call(&mut self, id: WireId, parts: &[&[u8]]) {
        let Some(exchange) = self.exchanges.get(&id.0) else { return };
        match exchange.reply {
            Reply::Track(track) => {
                if let Some(session) = exchange.session().and_then(|key| self.sessions.get_mut(&key)) {
                    session.send_post(track, parts, What::Message, &mut self.actions);
                }
            }
            Reply::Bare(stream) => self.push_bare(stream, parts),
            Reply::Held | Reply::Left | Reply::Nobody => {}
        }
    }
}
