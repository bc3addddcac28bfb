//! The server's notifications: which session each belongs to, and on which of its two paths it goes (N-01).

use std::time::Instant;

use bytes::Bytes;

use super::{
    Exchange, ExchangeOwner, Link, LinkAction, Method, ReplyRoute, SessionKey, StreamKey, WireId,
    exchange::RequestStanding,
    lifecycle::LinkPhase,
    questions::PATIENCE,
    watch::{self, Watcher},
};
use crate::{
    mcp::{
        era::Era,
        level::LogLevel,
        modern,
        replay::ReplayKind,
        session::{Session, missed_note},
    },
    wire::{Message, envelope::own_number, frame, splice::around},
};

/// Whom a log note, or one that no revision knows, belongs to. A pipe does not say, so while calls run it is certain or it
/// is nobody (mcp-eras 5.9); what is said outside of any call is about the server, and all may hear it (B-04).
enum NoteOwner {
    Call(WireId),
    Session(SessionKey),
    Everybody,
    Nobody,
}

impl Link {
    pub(super) fn handle_note(&mut self, about: Option<WireId>, method: Method, message: Message, now: Instant) {
        match method {
            Method::Progress => self.progress(&message, now),
            Method::Log => self.log_note(about, message, now),
            Method::ToolsChanged | Method::PromptsChanged | Method::ResourcesChanged => {
                self.actions.push_back(LinkAction::ListChanged(method));
                self.tell_of_list(method, &message);
                self.tell_caller(about, &message, now);
            }
            Method::ResourceUpdated => self.resource_updated(&message),
            Method::Acknowledged => self.union_acknowledged(&message, now),
            Method::Cancelled => match message.params().request_id.and_then(|span| own_number(message.text(span))) {
                // The server ends a listen of ours. The two directions count separately, so only a modern one can.
                Some(number) if self.era() == Era::Modern && self.union.has(number) => self.union_over(number, now),
                _ => self.question_withdrawn(&message),
            },
            _ => self.custom_note(about, message),
        }
    }

    /// Progress goes to the call that its token names, under the client's own token. Late or foreign progress is
    /// dropped: forwarding it makes clients close the connection.
    fn progress(&mut self, message: &Message, now: Instant) {
        let Some(span) = message.params().token else { return };
        let Some(number) = own_number(message.text(span)) else { return };
        let id = self.exchange_of(number);
        let Some(exchange) = self.exchanges.get(&id.0).filter(|e| e.wire == number) else { return };
        let ExchangeOwner::Client { token: Some(token), .. } = &exchange.owner else { return };
        if !exchange.is_awaited() {
            return;
        }
        let token = token.clone();
        self.note_progress(id, message, now);
        if self.commit(id, now) {
            self.send_on_call(id, &around(message, span, &token));
        }
    }

    fn log_note(&mut self, about: Option<WireId>, message: Message, now: Instant) {
        let level = message.string(message.params().level).and_then(|name| LogLevel::named(&name));
        match self.note_owner(about) {
            NoteOwner::Call(id) => {
                let exchange = self.exchanges.get(&id.0);
                if let Some(modern) = exchange.and_then(Exchange::modern) {
                    // Only who asked for notes gets any, and not below the level it named.
                    if modern.envelope.level.is_some_and(|least| level.is_none_or(|level| level >= least))
                        && self.commit(id, now)
                    {
                        self.send_on_call(id, &[message.bytes()]);
                    }
                    return;
                }
                let key = exchange.and_then(Exchange::session);
                if key.is_some_and(|key| !self.wants(key, level)) {
                    return;
                }
                if self.commit(id, now) {
                    self.send_on_call(id, &[message.bytes()]);
                } else if let Some(key) = key {
                    self.send_standalone(key, &message, ReplayKind::Message);
                }
            }
            NoteOwner::Session(key) if self.wants(key, level) => {
                self.send_standalone(key, &message, ReplayKind::Message)
            }
            NoteOwner::Session(_) => {}
            NoteOwner::Everybody => self.tell_everybody(message, |link, key| link.wants(key, level)),
            NoteOwner::Nobody => self.actions.push_back(LinkAction::Unowned(message)),
        }
    }

    /// A note that no revision knows. It never turns a POST into a stream: its client may not expect that.
    fn custom_note(&mut self, about: Option<WireId>, message: Message) {
        let owner = match self.note_owner(about) {
            NoteOwner::Call(id) => self.exchanges.get(&id.0).and_then(Exchange::session),
            NoteOwner::Session(key) => Some(key),
            NoteOwner::Everybody => return self.tell_everybody(message, |_, _| true),
            NoteOwner::Nobody => None,
        };
        match owner {
            Some(key) => self.send_standalone(key, &message, ReplayKind::Message),
            None => self.actions.push_back(LinkAction::Unowned(message)),
        }
    }

    /// Tells every session that wants it, once.
    fn tell_everybody(&mut self, message: Message, wants: impl Fn(&Self, SessionKey) -> bool) {
        if self.sessions.is_empty() {
            return self.actions.push_back(LinkAction::Unowned(message));
        }
        let mut keys: Vec<SessionKey> = self.sessions.keys().copied().filter(|key| wants(self, *key)).collect();
        keys.sort_unstable();
        for key in keys {
            self.send_standalone(key, &message, ReplayKind::Message);
        }
    }

    fn note_owner(&self, about: Option<WireId>) -> NoteOwner {
        // A modern server on a pipe notes only what the one call is about that has told it a level.
        let about = about.or_else(|| self.log_hearer());
        if let Some(id) = about {
            return match self.exchanges.get(&id.0) {
                // It came with the answer to a request of ours.
                Some(exchange) if exchange.is_fetch || matches!(exchange.owner, ExchangeOwner::Link) => {
                    NoteOwner::Everybody
                }
                Some(exchange) if exchange.is_awaited() => NoteOwner::Call(id),
                // It is about a call that is over: its client's, and nobody else's.
                Some(exchange) => exchange.session().map_or(NoteOwner::Nobody, NoteOwner::Session),
                None => self.sole_session().map_or(NoteOwner::Nobody, NoteOwner::Session),
            };
        }
        // A ghost's notes are nobody's, and nobody is kept waiting for them; nor do the hub's own questions for lists.
        let counts = |e: &Exchange| e.wire != 0 && e.standing != RequestStanding::Ghost;
        let is_sent = |e: &Exchange| counts(e) && !e.is_fetch && matches!(e.owner, ExchangeOwner::Client { .. });
        let calls = || self.exchanges.iter().filter(|(_, e)| is_sent(e));
        let fetches = |of: &dyn Fn(&Exchange) -> bool| match self.fetches {
            0 => 0,
            _ => self.exchanges.values().filter(|e| e.is_fetch && of(e)).count(),
        };
        // Before its handshake a child has seen no call.
        let sent = if self.phase == LinkPhase::Up { self.sent - fetches(&counts) } else { 0 };
        match sent {
            0 => NoteOwner::Everybody,
            // A modern server notes only what told it a level, and none of them did.
            _ if self.era() == Era::Modern => NoteOwner::Nobody,
            1 => match calls().next() {
                Some((id, exchange)) if exchange.is_awaited() => NoteOwner::Call(WireId(*id)),
                Some((_, exchange)) => exchange.session().map_or(NoteOwner::Nobody, NoteOwner::Session),
                None => NoteOwner::Nobody,
            },
            _ => {
                // Under load the last caller is nearly always still waiting: one look decides.
                let calls_of =
                    |key, session: &Session| session.calls - fetches(&|e: &Exchange| e.session() == Some(key));
                let all_of = |key: SessionKey| self.sessions.get(&key).is_some_and(|s| calls_of(key, s) == sent);
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

    /// Tells every client that has asked to be told that a list has changed, once.
    fn tell_of_list(&mut self, method: Method, message: &Message) {
        self.outdate(method);
        if !self.hears(message) {
            return;
        }
        let untagged = self.untagged(message);
        let text = untagged.as_deref().unwrap_or(message.bytes());
        let (strict, what) = (self.settings.strict_streams, ReplayKind::Change(method.name().into()));
        for session in self.sessions.values_mut().filter(|session| session.hears_of_lists()) {
            session.send_standalone(&[text], what.clone(), strict, &mut self.actions);
        }
        if !self.listens.is_empty() {
            self.tell_listens(method, &String::from_utf8_lossy(text));
        }
    }

    /// Passes a change on to the modern client on whose call's stream a modern server says it (FastMCP 4.1 does): one that
    /// listens to nothing hears of it there or not at all.
    fn tell_caller(&mut self, about: Option<WireId>, message: &Message, now: Instant) {
        let Some(id) = about.filter(|_| self.era() == Era::Modern) else { return };
        let is_modern = |e: &Exchange| e.is_awaited() && e.modern().is_some();
        if self.exchanges.get(&id.0).is_some_and(is_modern) && self.commit(id, now) {
            self.send_on_call(id, &[message.bytes()]);
        }
    }

    fn resource_updated(&mut self, message: &Message) {
        let Some(uri) = message.string(message.params().uri).filter(|_| self.hears(message)) else { return };
        self.outdate(Method::ResourceUpdated);
        let untagged = self.untagged(message);
        let text = untagged.as_deref().unwrap_or(message.bytes());
        for watcher in watch::watchers(&self.watches, &uri) {
            self.tell_watcher(watcher, &uri, text);
        }
    }

    /// A change without the listen of ours that it came on; `None` if it came on none.
    fn untagged(&self, message: &Message) -> Option<Vec<u8>> {
        (self.era() == Era::Modern).then(|| modern::untagged(message).into_bytes())
    }

    /// Tells of an update of a resource, under the name that the watcher has for it.
    pub(super) fn tell_watcher(&mut self, watcher: Watcher, uri: &str, text: &[u8]) {
        let names = match watcher {
            Watcher::Session(key) => self.sessions.get(&key).and_then(|session| session.names_of(uri)),
            Watcher::Listen(stream) => self.listens.get(&stream).and_then(|listen| listen.names.clone()),
        };
        let renamed = names.as_ref().and_then(|names| {
            let message = Message::parse(Bytes::copy_from_slice(text)).ok()?;
            names.updated(&message)
        });
        let text = renamed.as_deref().unwrap_or(text);
        match watcher {
            Watcher::Session(key) => {
                if let Some(session) = self.sessions.get_mut(&key) {
                    let uri = names.map_or_else(|| uri.to_owned(), |names| names.uri(uri));
                    let what = ReplayKind::Change(format!("{} {uri}", Method::ResourceUpdated.name()).into());
                    session.send_standalone(&[text], what, self.settings.strict_streams, &mut self.actions);
                }
            }
            Watcher::Listen(stream) => self.tell_listen(stream, &String::from_utf8_lossy(text)),
        }
    }

    /// Says at home what a part of a session has to say that belongs to no call.
    pub fn relay(&mut self, home: SessionKey, text: &Bytes, what: ReplayKind, now: Instant) {
        let Some(session) = self.sessions.get_mut(&home) else { return };
        if let ReplayKind::Question(number) = what {
            let deadline = now + PATIENCE;
            if !session.host(number, deadline) {
                return self.actions.push_back(LinkAction::Dropped(1));
            }
            session.send_standalone(&[text], what, self.settings.strict_streams, &mut self.actions);
            return self.check_by(Some(deadline));
        }
        session.send_standalone(&[text], what, self.settings.strict_streams, &mut self.actions);
    }

    /// Tells a session of how much it has missed that a part of it had to say. (R-21)
    pub fn missed(&mut self, home: SessionKey, count: u64) {
        if !self.wants(home, Some(LogLevel::Warning)) {
            return;
        }
        if let Some(session) = self.sessions.get_mut(&home) {
            let text = missed_note(count);
            session.send_standalone(
                &[text.as_bytes()],
                ReplayKind::Message,
                self.settings.strict_streams,
                &mut self.actions,
            );
        }
    }

    /// Tells these sessions, and those of these listens that want it, that a list has changed which is not the server's
    /// own.
    pub fn announce(&mut self, method: Method, to: &[SessionKey], listens: &[StreamKey]) {
        let text = format!(r#"{{"jsonrpc":"2.0","method":"{}"}}"#, method.name());
        for key in to {
            if let Some(session) = self.sessions.get_mut(key) {
                let (strict, what) = (self.settings.strict_streams, ReplayKind::Change(method.name().into()));
                session.send_standalone(&[text.as_bytes()], what, strict, &mut self.actions);
            }
        }
        for stream in listens {
            if self.listens.get(stream).is_some_and(|listen| listen.wanted.wants(method)) {
                self.tell_listen(*stream, &text);
            }
        }
    }

    pub(super) fn send_standalone(&mut self, key: SessionKey, message: &Message, what: ReplayKind) {
        if let Some(session) = self.sessions.get_mut(&key) {
            session.send_standalone(&[message.bytes()], what, self.settings.strict_streams, &mut self.actions);
        }
    }

    /// Sends something on the stream that a call has become.
    pub(super) fn send_on_call(&mut self, id: WireId, parts: &[&[u8]]) {
        let Some(exchange) = self.exchanges.get(&id.0) else { return };
        match exchange.reply {
            ReplyRoute::Track(track) => {
                if let Some(session) = exchange.session().and_then(|key| self.sessions.get_mut(&key)) {
                    let strict = self.settings.strict_streams;
                    session.send_on_track(track, parts, ReplayKind::Message, strict, &mut self.actions);
                }
            }
            ReplyRoute::Bare(stream) => {
                let bytes = exchange.named(frame::event(None, parts));
                self.actions.push_back(LinkAction::Event { stream, number: 0, bytes });
            }
            ReplyRoute::Held | ReplyRoute::Left | ReplyRoute::Nobody | ReplyRoute::Parked => {}
        }
    }
}
