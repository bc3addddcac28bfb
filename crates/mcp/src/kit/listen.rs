//! Who wants to hear of changes, and telling them: by `subscriptions/listen` in the modern era, and in the legacy one
//! every list of a session that was opened, and the resources it subscribed to.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use bytes::Bytes;
use prism_core::{mcp::modern::SUBSCRIPTION_ID, wire::envelope::own_number};
use serde_json::{Map, Value, json};

use super::{
    CallFailure,
    room::{Eras, Peer, message},
};

/// Tells every connection of a server that something has changed. Cheap to clone; made before the server, so that its
/// tools can hold one.
///
/// There is no queue of its own: each connection's outbox merges a change with an equal one that waits there.
#[derive(Clone, Default)]
pub struct ChangeNotifier {
    rooms: Arc<Mutex<Vec<Weak<Peer>>>>,
}

/// A client that wants to hear of changes, by its `subscriptions/listen`.
pub(super) struct ChangeSubscription {
    /// The id of its request, as everything that it hears is tagged.
    id: Value,
    about: Option<u64>,
    lists: BTreeSet<&'static str>,
    pub(super) uris: BTreeSet<String>,
}

/// Listens of one connection at a time, and resources of one listen. Beyond it the listen is refused.
const MAX_LISTENS: usize = 256;
pub(super) const MAX_WATCHED: usize = 4096;

const LISTS: [(&str, &str); 3] =
    [("tools", "toolsListChanged"), ("prompts", "promptsListChanged"), ("resources", "resourcesListChanged")];

// === impl ChangeNotifier ===

impl ChangeNotifier {
    /// Tells that the list of tools has changed. Returns how many were told, as all of these do.
    pub fn tools_changed(&self) -> usize {
        self.tell(|room| room.tell_changed("tools"))
    }

    pub fn prompts_changed(&self) -> usize {
        self.tell(|room| room.tell_changed("prompts"))
    }

    pub fn resources_changed(&self) -> usize {
        self.tell(|room| room.tell_changed("resources"))
    }

    /// Tells those who watch a resource that it was updated.
    pub fn updated(&self, uri: &str) -> usize {
        self.tell(|room| room.tell_updated(uri))
    }

    fn tell(&self, tell: impl Fn(&Peer) -> usize) -> usize {
        let rooms: Vec<_> = {
            let rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
            rooms.iter().filter_map(Weak::upgrade).collect()
        };
        rooms.iter().map(|room| tell(room)).sum()
    }

    pub(super) fn join(&self, room: &Arc<Peer>) {
        let mut rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        rooms.retain(|room| room.strong_count() > 0);
        rooms.push(Arc::downgrade(room));
    }
}

// === impl Peer ===

impl Peer {
    /// Opens a listen: what it will hear of is said first.
    pub(super) fn attend(&self, id: &str, wanted: Option<&Value>) -> Result<(), CallFailure> {
        let wanted = wanted.and_then(Value::as_object);
        let wanted = wanted.ok_or_else(|| CallFailure::invalid("notifications is missing, or no object"))?;
        let server = &self.server;
        let lists = LISTS.into_iter().filter(|(_, flag)| wanted.get(*flag) == Some(&Value::Bool(true)));
        let lists: BTreeSet<_> = lists.map(|(name, _)| name).filter(|name| server.tells_of(name)).collect();
        let uris = wanted.get("resourceSubscriptions").and_then(Value::as_array).into_iter().flatten();
        let uris: BTreeSet<_> =
            uris.filter_map(Value::as_str).filter(|uri| server.can_watch(uri)).map(str::to_owned).collect();
        if uris.len() > MAX_WATCHED {
            return Err(CallFailure::invalid(format!("at most {MAX_WATCHED} resources can be watched")));
        }
        let mut honoured = Map::new();
        for (_, flag) in LISTS.into_iter().filter(|(name, _)| lists.contains(name)) {
            honoured.insert(flag.to_owned(), true.into());
        }
        if !uris.is_empty() {
            honoured.insert("resourceSubscriptions".to_owned(), json!(uris));
        }
        let tag = serde_json::from_str(id).unwrap_or_default();
        let listen = ChangeSubscription { id: tag, about: own_number(id), lists, uris };
        let mut state = self.state();
        if state.calls.contains_key(id) || state.listens.contains_key(id) {
            return Err(CallFailure::error(super::reply::INVALID_REQUEST, format!("request {id} is still in flight")));
        }
        if state.listens.len() >= MAX_LISTENS {
            return Err(CallFailure::error(super::reply::INTERNAL, format!("at most {MAX_LISTENS} listens at a time")));
        }
        // Under the lock, so that no change comes before it.
        self.tell(&listen, "notifications/subscriptions/acknowledged", json!({"notifications": honoured}));
        state.listens.insert(id.to_owned(), listen);
        Ok(())
    }

    fn tell_changed(&self, what: &str) -> usize {
        let state = self.state();
        let method = format!("notifications/{what}/list_changed");
        let listens: Vec<_> = state.listens.values().filter(|listen| listen.lists.contains(what)).collect();
        listens.iter().for_each(|listen| self.tell(listen, &method, json!({})));
        let legacy = state.eras == Eras::Legacy && self.server.tells_of(what);
        if legacy {
            self.out.change(None, Bytes::from(message(&method, Value::Null).to_string()));
        }
        listens.len() + usize::from(legacy)
    }

    fn tell_updated(&self, uri: &str) -> usize {
        const METHOD: &str = "notifications/resources/updated";
        let state = self.state();
        let listens: Vec<_> = state.listens.values().filter(|listen| listen.uris.contains(uri)).collect();
        listens.iter().for_each(|listen| self.tell(listen, METHOD, json!({"uri": uri})));
        let legacy = state.subscribed.contains(uri);
        if legacy {
            self.out.change(None, Bytes::from(message(METHOD, json!({"uri": uri})).to_string()));
        }
        listens.len() + usize::from(legacy)
    }

    fn tell(&self, listen: &ChangeSubscription, method: &str, mut params: Value) {
        params["_meta"][SUBSCRIPTION_ID] = listen.id.clone();
        self.out.change(listen.about, Bytes::from(message(method, params).to_string()));
    }

    /// The resources that somebody watches.
    pub(super) fn watched(&self) -> Vec<String> {
        let state = self.state();
        let all = state.listens.values().flat_map(|listen| &listen.uris).chain(&state.subscribed);
        let all: BTreeSet<_> = all.cloned().collect();
        all.into_iter().collect()
    }
}
