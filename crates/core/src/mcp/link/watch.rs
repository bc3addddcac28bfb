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

/// Who hears of an update: whoever watches that URI or, by path segments, a parent of it; each as if it were the
/// server's only client (mcp-eras 5.5).
pub(super) fn watchers(watches: &BTreeMap<String, Watch>, uri: &str) -> Vec<SessionKey> {
    let parents = uri.match_indices('/').flat_map(|(at, _)| [&uri[..at], &uri[..=at]]);
    let watched = parents.chain([uri]).filter_map(|watched| watches.get(watched));
    let mut keys: Vec<SessionKey> = watched.flat_map(|watch| &watch.sessions).copied().collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

impl Watch {
    fn is_empty(&self) -> bool {
        self.sessions.is_empty() && self.pending.is_empty()
    }

    /// A session watches no more. Returns whether it was the last one to do so, or to want to.
    fn release(&mut self, key: SessionKey) -> bool {
        self.sessions.retain(|session| *session != key);
        self.pending.retain(|(_, session)| *session != key);
        self.is_empty()
    }
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
        let is_it = |watch: &Watch| watch.pending.iter().position(|(pending, _)| *pending == id);
        let Some((uri, at)) = self.watches.iter().find_map(|(uri, watch)| Some((uri.clone(), is_it(watch)?))) else {
            return;
        };
        let Some(watch) = self.watches.get_mut(&uri) else { return };
        let (_, key) = watch.pending.remove(at);
        if !failed && self.sessions.contains_key(&key) {
            if !watch.sessions.contains(&key) {
                watch.sessions.push(key);
            }
        } else if watch.is_empty() {
            self.watches.remove(&uri);
            if !failed {
                // It came true after its session had ended.
                self.ask_on_our_own(Method::ResourcesUnsubscribe, &uri_params(&uri));
            }
        }
    }

    pub(super) fn unsubscribe(&mut self, id: WireId, message: Message, now: Instant) {
        let Some((key, uri)) = self.watcher(id, &message, now) else { return };
        let Some(watch) = self.watches.get_mut(&uri) else { return self.answer_locally(id, "{}", now) };
        if watch.release(key) {
            self.watches.remove(&uri);
            self.forward(id, &message);
        } else {
            self.answer_locally(id, "{}", now);
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

    /// A session ended: what only it watched is watched no more.
    pub(super) fn release_watches(&mut self, key: SessionKey) {
        let mut released = Vec::new();
        self.watches.retain(|uri, watch| {
            // Its subscriptions on their way stay: the answer says whether there is something to undo.
            watch.sessions.retain(|session| *session != key);
            if watch.is_empty() {
                released.push(uri.clone());
            }
            !watch.is_empty()
        });
        for uri in released {
            self.ask_on_our_own(Method::ResourcesUnsubscribe, &uri_params(&uri));
        }
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
