//! What sessions share of the server's state: resource subscriptions, counted, and the log level, the most verbose.

use std::{collections::BTreeMap, time::Instant};

use super::{Exchange, Link, Method, SessionKey, StreamKey, WireId, exchange::ExchangeOwner, lifecycle::LinkPhase};
use crate::{
    mcp::{
        era::Era,
        level::LogLevel,
        modern::{self, OwnClientMeta},
    },
    wire::{Message, text},
};

/// Resources one session may watch. Beyond it subscribing is refused.
const MAX_WATCHED: usize = 1024;

/// Who watches a resource.
#[derive(Debug, Default)]
pub(super) struct ResourceWatch {
    watchers: Vec<Watcher>,
    /// Those whose `resources/subscribe` is on its way to the server.
    pending: Vec<(WireId, Watcher)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Watcher {
    Session(SessionKey),
    /// A modern client's listen.
    Listen(StreamKey),
}

/// Who hears of an update: whoever watches that URI or, by path segments, a parent of it; each as if it were the
/// server's only client (mcp-eras 5.5).
pub(super) fn watchers(watches: &BTreeMap<String, ResourceWatch>, uri: &str) -> Vec<Watcher> {
    let parents = uri.match_indices('/').flat_map(|(at, _)| [&uri[..at], &uri[..=at]]);
    let watched = parents.chain([uri]).filter_map(|watched| watches.get(watched));
    let mut all: Vec<Watcher> = watched.flat_map(|watch| &watch.watchers).copied().collect();
    all.sort_unstable();
    all.dedup();
    all
}

impl ResourceWatch {
    fn is_empty(&self) -> bool {
        self.watchers.is_empty() && self.pending.is_empty()
    }

    pub(super) fn has(&self, watcher: Watcher) -> bool {
        self.watchers.contains(&watcher)
    }

    /// Whether it will be known later whether this one watches.
    pub(super) fn expects(&self, watcher: Watcher) -> bool {
        self.pending.iter().any(|(_, pending)| *pending == watcher)
    }

    pub(super) fn add(&mut self, watcher: Watcher) {
        if !self.has(watcher) {
            self.watchers.push(watcher);
        }
    }

    /// One watches no more. Returns whether it was the last one to do so, or to want to.
    fn release(&mut self, watcher: Watcher) -> bool {
        self.watchers.retain(|one| *one != watcher);
        self.pending.retain(|(_, one)| *one != watcher);
        self.is_empty()
    }
}

impl Link {
    // --- Subscriptions ---

    pub(super) fn subscribe(&mut self, id: WireId, message: Message, now: Instant) {
        let Some((key, uri)) = self.watcher(id, &message, now) else { return };
        let watcher = Watcher::Session(key);
        let watched = self.watches.values().filter(|watch| watch.has(watcher)).count();
        let aliases = self.sessions.get(&key).map_or(0, |session| session.aliases.len());
        if watched.max(aliases) >= MAX_WATCHED {
            return self.refuse_locally(id, -32603, "too many subscriptions in this session", now);
        }
        self.note_alias(id, key, &uri);
        let modern = self.era() == Era::Modern;
        if modern && self.greeting().is_some_and(|greeting| !greeting.subscribe) {
            return self.refuse_locally(id, -32601, "the server has no subscriptions", now);
        }
        let watch = self.watches.entry(uri).or_default();
        if watch.watchers.is_empty() {
            watch.pending.push((id, watcher));
            match modern {
                // Its answer comes with the acknowledgement of the link's own listen.
                true => self.adjust_union(now),
                false => self.forward(id, &message),
            }
        } else {
            watch.add(watcher);
            self.note_change(key);
            self.answer_locally(id, "{}", now);
        }
    }

    /// Keeps the name that a client of the hub's has for a resource: updates of it come under that name.
    fn note_alias(&mut self, id: WireId, key: SessionKey, uri: &str) {
        let Some(ExchangeOwner::Client { names, .. }) = self.exchanges.get(&id.0).map(|exchange| &exchange.owner)
        else {
            return;
        };
        let Some(session) = self.sessions.get_mut(&key) else { return };
        match names.clone().filter(|_| session.part.as_ref().is_some_and(|part| part.names.is_none())) {
            Some(names) => drop(session.aliases.insert(uri.to_owned(), names)),
            None => drop(session.aliases.remove(uri)),
        }
    }

    /// Watches a resource for a modern client's listen.
    pub(super) fn watch_for(&mut self, watcher: Watcher, uri: &str, by: Instant) {
        // A modern server is asked by the link's own listen.
        let modern = self.era() == Era::Modern;
        let watch = self.watches.entry(uri.to_owned()).or_default();
        if modern || !watch.watchers.is_empty() {
            return watch.add(watcher);
        }
        if let Some((id, _)) = watch.pending.first().copied() {
            // The answer to another's is good for this one, too.
            return watch.pending.push((id, watcher));
        }
        let id = self.ask_on_our_own(Method::ResourcesSubscribe, &uri_params(uri), Some(by));
        if let Some(watch) = self.watches.get_mut(uri) {
            watch.pending.push((id, watcher));
        }
    }

    /// The server answered a `resources/subscribe`.
    pub(super) fn note_subscribed(&mut self, id: WireId, failed: bool, now: Instant) {
        let is_it = |watch: &ResourceWatch| watch.pending.iter().any(|(pending, _)| *pending == id);
        let Some(uri) = self.watches.iter().find(|(_, watch)| is_it(watch)).map(|(uri, _)| uri.clone()) else { return };
        let Some(watch) = self.watches.get_mut(&uri) else { return };
        for (_, watcher) in watch.pending.extract_if(.., |(pending, _)| *pending == id).collect::<Vec<_>>() {
            let lives = match watcher {
                Watcher::Session(key) => {
                    let session = self.sessions.get_mut(&key);
                    session.map(|session| session.changed(&mut self.actions)).is_some()
                }
                Watcher::Listen(stream) => self.listens.contains_key(&stream),
            };
            if !failed && lives {
                watch.add(watcher);
            }
        }
        if watch.is_empty() {
            self.watches.remove(&uri);
            if !failed {
                // It came true after its session had ended.
                self.unwatch(&uri, now);
            }
        }
    }

    pub(super) fn unsubscribe(&mut self, id: WireId, message: Message, now: Instant) {
        let Some((key, uri)) = self.watcher(id, &message, now) else { return };
        if let Some(session) = self.sessions.get_mut(&key) {
            session.aliases.remove(&uri);
            session.changed(&mut self.actions);
        }
        let modern = self.era() == Era::Modern;
        let Some(watch) = self.watches.get_mut(&uri) else { return self.answer_locally(id, "{}", now) };
        let watcher = Watcher::Session(key);
        // Those are answered by an acknowledgement at a modern server, and now there is none to wait for.
        let own = watch.pending.iter().filter(|(_, one)| *one == watcher && modern);
        let taken_back: Vec<WireId> = own.map(|(pending, _)| *pending).collect();
        let last = watch.release(watcher);
        for pending in taken_back {
            self.answer_locally(pending, "{}", now);
        }
        if !last {
            return self.answer_locally(id, "{}", now);
        }
        self.watches.remove(&uri);
        match self.era() {
            Era::Legacy => self.forward(id, &message),
            Era::Modern => {
                self.adjust_union(now);
                self.answer_locally(id, "{}", now);
            }
        }
    }

    /// Tells the server that nobody watches a resource any more.
    fn unwatch(&mut self, uri: &str, now: Instant) {
        match self.era() {
            Era::Legacy => drop(self.ask_on_our_own(Method::ResourcesUnsubscribe, &uri_params(uri), None)),
            Era::Modern => self.adjust_union(now),
        }
    }

    /// The link's own listen at a modern server has changed: who waited for a resource on it gets the answer.
    pub(super) fn settle_watches(&mut self, now: Instant) {
        if !self.union.is_settled() {
            return;
        }
        let waiting: Vec<(String, WireId, Watcher)> = self
            .watches
            .iter()
            .flat_map(|(uri, watch)| watch.pending.iter().map(|(id, watcher)| (uri.clone(), *id, *watcher)))
            .collect();
        for (uri, id, watcher) in waiting {
            let is_agreed = self.union.agrees_to(&uri);
            let Some(watch) = self.watches.get_mut(&uri) else { continue };
            watch.pending.retain(|(pending, _)| *pending != id);
            if !is_agreed {
                if watch.is_empty() {
                    self.watches.remove(&uri);
                }
                self.refuse_locally(id, -32602, "the server does not tell of this resource", now);
            } else {
                watch.add(watcher);
                if let Watcher::Session(key) = watcher {
                    self.note_change(key);
                }
                self.answer_locally(id, "{}", now);
            }
        }
    }

    /// The session and the URI of a subscription; answers the call itself if there is none.
    fn watcher(&mut self, id: WireId, message: &Message, now: Instant) -> Option<(SessionKey, String)> {
        let key = self.exchanges.get(&id.0).and_then(Exchange::session);
        let uri = message.string(message.params().uri).map(std::borrow::Cow::into_owned);
        match (key, uri) {
            (Some(key), Some(uri)) => return Some((key, uri)),
            (None, _) => self.refuse_locally(id, -32600, "a subscription needs a session: initialize first", now),
            (_, None) => self.refuse_locally(id, -32602, "`params.uri` must be a string", now),
        }
        None
    }

    /// A session or a listen ended: what only it watched is watched no more.
    pub(super) fn release_watches(&mut self, watcher: Watcher) {
        let mut released = Vec::new();
        self.watches.retain(|uri, watch| {
            // Its subscriptions on their way stay: the answer says whether there is something to undo.
            watch.watchers.retain(|one| *one != watcher);
            if watch.is_empty() {
                released.push(uri.clone());
            }
            !watch.is_empty()
        });
        // A modern server hears of it when the link's own listen is adjusted.
        if self.era() == Era::Legacy {
            for uri in released {
                self.ask_on_our_own(Method::ResourcesUnsubscribe, &uri_params(&uri), None);
            }
        }
    }

    /// After a restart: the new child is told of every watch, and the watchers that they may have missed something.
    pub(super) fn replay_watches(&mut self) {
        let watched: Vec<String> =
            self.watches.iter().filter(|(_, watch)| !watch.watchers.is_empty()).map(|(uri, _)| uri.clone()).collect();
        for uri in watched {
            self.ask_on_our_own(Method::ResourcesSubscribe, &uri_params(&uri), None);
            self.tell_of_missed(&uri);
        }
    }

    /// Tells the watchers of a resource that it may have changed.
    fn tell_of_missed(&mut self, uri: &str) {
        let name = Method::ResourceUpdated.name();
        let note = format!(r#"{{"jsonrpc":"2.0","method":"{name}","params":{}}}"#, uri_params(uri));
        let watchers = self.watches.get(uri).map(|watch| watch.watchers.clone()).unwrap_or_default();
        for watcher in watchers {
            self.tell_watcher(watcher, uri, note.as_bytes());
        }
    }

    /// The link's own listen was interrupted: anything may have changed meanwhile.
    pub(super) fn tell_what_was_missed(&mut self) {
        let uris: Vec<String> = self.watches.keys().cloned().collect();
        for uri in uris {
            self.tell_of_missed(&uri);
        }
        self.tell_of_lists();
    }

    /// A `resources/subscribe` is over, and the server has not answered it.
    pub(super) fn forget_pending_watch(&mut self, id: WireId) {
        self.watches.retain(|_, watch| {
            watch.pending.retain(|(pending, _)| *pending != id);
            !watch.is_empty()
        });
    }

    // --- Log levels ---

    pub(super) fn set_level(&mut self, id: WireId, message: Message, now: Instant) {
        let Some(key) = self.exchanges.get(&id.0).and_then(Exchange::session) else {
            return self.refuse_locally(id, -32600, "a log level needs a session: initialize first", now);
        };
        if self.greeting().is_some_and(|greeting| !greeting.logging) {
            return self.refuse_locally(id, -32601, "the server has no logging", now);
        }
        let Some(level) = message.string(message.params().level).and_then(|name| LogLevel::named(&name)) else {
            return self.refuse_locally(id, -32602, "unknown log level", now);
        };
        if let Some(session) = self.sessions.get_mut(&key) {
            session.level = Some(level);
            session.changed(&mut self.actions);
        }
        let wanted = self.wanted_level();
        if wanted == self.level {
            self.answer_locally(id, "{}", now);
        } else if self.era() == Era::Modern {
            // It is told with every call.
            self.level = wanted;
            self.answer_locally(id, "{}", now);
        } else if wanted == Some(level) {
            self.level = wanted;
            self.forward(id, &message);
        } else {
            self.replay_level();
            self.answer_locally(id, "{}", now);
        }
    }

    /// Whether a session wants notes of this level. Nobody set one: the server chose. Somebody did: a session that did
    /// not is spared the other's debugging.
    pub(super) fn wants(&self, key: SessionKey, level: Option<LogLevel>) -> bool {
        let Some(level) = level else { return true };
        let own = self.sessions.get(&key).and_then(|session| session.level);
        let threshold = own.or(self.level.map(|_| LogLevel::Info));
        threshold.is_none_or(|threshold| level >= threshold)
    }

    /// A session came or ended: what all of them want may be another level.
    pub(super) fn adjust_level(&mut self) {
        let wanted = self.wanted_level();
        if wanted.is_some() && wanted != self.level {
            self.replay_level();
        }
    }

    /// Sets the server's level to what the sessions want.
    pub(super) fn replay_level(&mut self) {
        self.level = self.wanted_level();
        if let Some(level) = self.level
            && self.era() == Era::Legacy
        {
            self.ask_on_our_own(Method::SetLevel, &format!(r#"{{"level":"{}"}}"#, level.name()), None);
        }
    }

    /// The most verbose of all levels. A session that set none counts as `info` once another has set one.
    fn wanted_level(&self) -> Option<LogLevel> {
        let set = self.sessions.values().filter_map(|session| session.level).chain(self.call_level).min()?;
        let unset = self.sessions.values().any(|session| session.level.is_none());
        Some(if unset { set.min(LogLevel::Info) } else { set })
    }

    /// Makes the server as verbose as a call of the modern era wants it. It stays so: each client gets only what it
    /// asked for, and the level would change with every call.
    pub(super) fn raise_level(&mut self, level: Option<LogLevel>) {
        let Some(level) = level else { return };
        if self.greeting().is_some_and(|greeting| greeting.logging) && self.call_level.is_none_or(|set| level < set) {
            self.call_level = Some(level);
            self.adjust_level();
        }
    }

    /// A request of the link's own. Its answer matters until that time; with none, it matters to nobody.
    pub(super) fn ask_on_our_own(&mut self, method: Method, params: &str, by: Option<Instant>) -> WireId {
        let id = self.next_id();
        if self.phase != LinkPhase::Up {
            return id;
        }
        let name = method.name();
        let request = match self.era() {
            Era::Modern => modern::own_request(id.0, method, params, OwnClientMeta::OWN),
            Era::Legacy if params.is_empty() => format!(r#"{{"jsonrpc":"2.0","id":{},"method":"{name}"}}"#, id.0),
            Era::Legacy => text::request(id.0, method, params),
        };
        self.output.write_text(&request);
        // One that is not waited for has no entry: its answer finds none and is dropped, and it does not count.
        if let Some(by) = by {
            self.exchanges.insert(id.0, Exchange::own(method, id.0, Some(by), by));
            self.check_by(Some(by));
        }
        id
    }
}

fn uri_params(uri: &str) -> String {
    format!(r#"{{"uri":{}}}"#, serde_json::Value::from(uri))
}
