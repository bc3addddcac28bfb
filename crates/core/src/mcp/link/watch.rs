//! What sessions share of the server's state: resource subscriptions, counted, and the log level, the most verbose.

use std::{collections::BTreeMap, time::Instant};

use super::{Exchange, Link, Method, SessionKey, WireId, lifecycle::Phase};
use crate::{
    mcp::{level::Level, replay::What},
    wire::Message,
};

/// Resources one session may watch. Beyond it subscribing is refused.
const MAX_WATCHED: usize = 1024;

/// Who watches a resource.
#[derive(Debug, Default)]
pub(super) struct Watch {
    pub(super) sessions: Vec<SessionKey>,
    /// Sessions whose `resources/subscribe` is on its way to the server.
    pending: Vec<(WireId, SessionKey)>,
}

/// The watched URI that an update is about: itself, or the nearest parent by path segments (mcp-eras 5.5).
pub(super) fn matching<'a>(watches: &'a BTreeMap<String, Watch>, uri: &str) -> Option<&'a str> {
    if let Some((exact, _)) = watches.get_key_value(uri) {
        return Some(exact);
    }
    let parents = watches.keys().filter(|watched| {
        uri.strip_prefix(watched.as_str()).is_some_and(|rest| watched.ends_with('/') || rest.starts_with('/'))
    });
    parents.max_by_key(|watched| watched.len()).map(String::as_str)
}

impl Link {
    // --- Subscriptions ---

    pub(super) fn subscribe(&mut self, id: WireId, message: Message, now: Instant) {
        let Some((key, uri)) = self.watcher(id, &message, now) else { return };
        let watched = self.watches.values().filter(|watch| watch.sessions.contains(&key)).count();
        if watched >= MAX_WATCHED {
            return self.refuse_locally(id, -32603, "too many subscriptions in this session", now);
        }
        let watch = self.watches.entry(uri).or_default();
        if watch.sessions.is_empty() {
            watch.pending.push((id, key));
            self.forward(id, &message);
        } else {
            if !watch.sessions.contains(&key) {
                watch.sessions.push(key);
            }
            self.answer_locally(id, "{}", now);
        }
    }

    /// The server answered a `resources/subscribe`.
    pub(super) fn note_subscribed(&mut self, id: WireId, failed: bool) {
        for watch in self.watches.values_mut() {
            if let Some(at) = watch.pending.iter().position(|(pending, _)| *pending == id) {
                let (_, key) = watch.pending.remove(at);
                if !failed && self.sessions.contains_key(&key) && !watch.sessions.contains(&key) {
                    watch.sessions.push(key);
                }
                break;
            }
        }
        self.forget_empty_watches();
    }

    pub(super) fn unsubscribe(&mut self, id: WireId, message: Message, now: Instant) {
        let Some((key, uri)) = self.watcher(id, &message, now) else { return };
        let Some(watch) = self.watches.get_mut(&uri) else { return self.answer_locally(id, "{}", now) };
        let before = watch.sessions.len();
        watch.sessions.retain(|session| *session != key);
        if before > 0 && watch.sessions.is_empty() {
            self.forward(id, &message);
        } else {
            self.answer_locally(id, "{}", now);
        }
        self.forget_empty_watches();
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

    /// A session ended: what only it watched is watched no more.
    pub(super) fn release_watches(&mut self, key: SessionKey) {
        let mut released = Vec::new();
        for (uri, watch) in &mut self.watches {
            let before = watch.sessions.len();
            watch.sessions.retain(|session| *session != key);
            if before > 0 && watch.sessions.is_empty() {
                released.push(uri.clone());
            }
        }
        for uri in released {
            self.ask_on_our_own(Method::ResourcesUnsubscribe, &uri_params(&uri));
        }
        self.forget_empty_watches();
    }

    /// After a restart: the new child is told of every watch, and the watchers that they may have missed something.
    pub(super) fn replay_watches(&mut self) {
        let watched: Vec<String> =
            self.watches.iter().filter(|(_, watch)| !watch.sessions.is_empty()).map(|(uri, _)| uri.clone()).collect();
        for uri in watched {
            self.ask_on_our_own(Method::ResourcesSubscribe, &uri_params(&uri));
            let name = Method::ResourceUpdated.name();
            let note = format!(r#"{{"jsonrpc":"2.0","method":"{name}","params":{}}}"#, uri_params(&uri));
            let what = What::Change(format!("{name} {uri}").into());
            let sessions = self.watches.get(&uri).map(|watch| watch.sessions.clone()).unwrap_or_default();
            for key in sessions {
                if let Some(session) = self.sessions.get_mut(&key) {
                    let strict = self.settings.strict_streams;
                    session.send_standalone(&[note.as_bytes()], what.clone(), strict, &mut self.actions);
                }
            }
        }
    }

    pub(super) fn forget_pending_watches(&mut self) {
        for watch in self.watches.values_mut() {
            watch.pending.clear();
        }
        self.forget_empty_watches();
    }

    fn forget_empty_watches(&mut self) {
        self.watches.retain(|_, watch| !watch.sessions.is_empty() || !watch.pending.is_empty());
    }

    // --- Log levels ---

    pub(super) fn set_level(&mut self, id: WireId, message: Message, now: Instant) {
        let Some(key) = self.exchanges.get(&id.0).and_then(Exchange::session) else {
            return self.refuse_locally(id, -32600, "a log level needs a session: initialize first", now);
        };
        if self.greeting().is_some_and(|greeting| !greeting.logging) {
            return self.refuse_locally(id, -32601, "the server has no logging", now);
        }
        let Some(level) = message.string(message.params().level).and_then(|name| Level::named(&name)) else {
            return self.refuse_locally(id, -32602, "unknown log level", now);
        };
        if let Some(session) = self.sessions.get_mut(&key) {
            session.level = Some(level);
        }
        let wanted = self.wanted_level();
        if wanted == self.level {
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
    pub(super) fn wants(&self, key: SessionKey, level: Option<Level>) -> bool {
        let Some(level) = level else { return true };
        let own = self.sessions.get(&key).and_then(|session| session.level);
        let threshold = own.or(self.level.map(|_| Level::Info));
        threshold.is_none_or(|threshold| level >= threshold)
    }

    /// A session ended: its level no longer counts.
    pub(super) fn release_level(&mut self) {
        let wanted = self.wanted_level();
        if wanted.is_some() && wanted != self.level {
            self.replay_level();
        }
    }

    /// Sets the server's level to what the sessions want.
    pub(super) fn replay_level(&mut self) {
        self.level = self.wanted_level();
        if let Some(level) = self.level {
            self.ask_on_our_own(Method::SetLevel, &format!(r#"{{"level":"{}"}}"#, level.name()));
        }
    }

    /// The most verbose of all levels. A session that set none counts as `info` once another has set one.
    fn wanted_level(&self) -> Option<Level> {
        let set = self.sessions.values().filter_map(|session| session.level).min()?;
        let unset = self.sessions.values().any(|session| session.level.is_none());
        Some(if unset { set.min(Level::Info) } else { set })
    }

    /// A request of the link's own, whose answer matters to nobody.
    fn ask_on_our_own(&mut self, method: Method, params: &str) {
        if self.phase != Phase::Up {
            return;
        }
        let id = self.next_id();
        let request = format!(r#"{{"jsonrpc":"2.0","id":{},"method":"{}","params":{params}}}"#, id.0, method.name());
        self.push_text(&request);
        // It is not waited for: the answer finds no exchange and is dropped. An entry would only count as in flight.
        debug_assert!(!self.exchanges.contains_key(&id.0));
    }
}

fn uri_params(uri: &str) -> String {
    format!(r#"{{"uri":{}}}"#, serde_json::Value::from(uri))
}
