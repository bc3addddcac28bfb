//! What of sessions outlives the daemon, as it is written down, and how the next daemon takes it up. What changes when,
//! the machines know.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use prism_core::{
    mcp::{ClientHello, SessionSnapshot, level::LogLevel, link::SessionKey},
    wire::{Message, frame::EventId},
};
use prism_store::{SessionUpdate, Store, StoreWriteError, StoredEvent, StoredSession};
use serde::{Deserialize, Serialize};
use tracing::{debug, info, warn};
use uuid::Uuid;

use super::{
    Destination, Hub, LinkCommand, SessionEntry, SessionTable,
    destination::now_us,
    sessions::{OpenedSession, SessionRole},
    visitor::{ClientActivity, ClientTransport},
};
use prism_config as config;

/// How old the note of a session's last use may be: it is not written with each one.
pub const USE_NOTED_EVERY: Duration = Duration::from_secs(60);

/// Where sessions are kept.
pub struct SessionStore {
    store: Store,
    /// The daemon is stopping: sessions end here, and are not over.
    closed: AtomicBool,
}

/// How a client opened its session.
#[derive(Serialize, Deserialize)]
struct OpeningRecord {
    initialize: String,
    /// What it sees of the hub, if it came there.
    view: Option<String>,
    #[serde(default)]
    way: ClientTransport,
}

/// What a link says of a session.
#[derive(Default, Serialize, Deserialize)]
struct SessionRecord {
    level: Option<String>,
    watched: Vec<String>,
    last: u64,
    delivered: u64,
}

impl SessionStore {
    pub fn new(store: Store) -> Self {
        Self { store, closed: AtomicBool::new(false) }
    }

    /// From now on a session that ends is not over.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    /// Writes down that a session was opened. Its client has its id only when this is done.
    pub async fn remember(&self, entry: &SessionEntry) {
        let initialize = String::from_utf8_lossy(&entry.initialize).into_owned();
        let view = entry.hub().map(|hub| hub.view().asked().to_owned());
        let opening = OpeningRecord { initialize, view, way: entry.visit.way() };
        let Ok(opening) = serde_json::to_string(&opening) else { return };
        let name = &entry.destination.config().name;
        told(self.store.remember_session(entry.id.as_u128(), name, opening, now_us()).await);
    }

    /// Writes down what has changed.
    pub async fn save(&self, kept: Vec<(SessionKey, SessionSnapshot)>) {
        let saves = kept.into_iter().filter_map(|(key, kept)| save(key, kept)).collect();
        told(self.store.save_sessions(saves, now_us()).await);
    }

    /// Writes down what has changed in a session's life at the hub.
    pub async fn save_hub(&self, entry: &SessionEntry) {
        if let Some((version, text)) = entry.hub().and_then(|hub| hub.to_text()) {
            told(self.store.save_hub(entry.id.as_u128(), text, version).await);
        }
    }

    /// Notes which sessions are in use.
    pub async fn touch(&self, ids: Vec<Uuid>) {
        if !ids.is_empty() {
            told(self.store.touch_sessions(ids.iter().map(Uuid::as_u128).collect(), now_us()).await);
        }
    }

    /// A session is over, and so it is written down, unless the daemon is what ends.
    pub fn forget(&self, id: Uuid) -> impl Future<Output = ()> + Send + use<> {
        let store = (!self.closed.load(Ordering::Relaxed)).then(|| self.store.clone());
        async move {
            if let Some(store) = store {
                told(store.forget_sessions(vec![id.as_u128()]).await);
            }
        }
    }
}

/// Takes up the sessions that the last daemon has left; those that nobody has used for `idle` are over.
pub async fn take_up(
    sessions: &Arc<SessionTable>,
    destinations: &BTreeMap<String, Arc<Destination>>,
    hub: &Arc<Hub>,
    idle: Option<Duration>,
) {
    let Some(keeping) = sessions.keeping() else { return };
    let stored = match keeping.store.sessions() {
        Ok(stored) => stored,
        Err(error) => return warn!(%error, "Cannot read the sessions of the last daemon"),
    };
    if stored.is_empty() {
        return;
    }
    let micros = |idle: Duration| i64::try_from((idle + USE_NOTED_EVERY).as_micros()).unwrap_or(i64::MAX);
    let oldest = idle.map_or(i64::MIN, |idle| now_us().saturating_sub(micros(idle)));
    // Before any of their clients can be told anything.
    told(keeping.store.renew_sessions(stored.iter().filter_map(renewed).collect()).await);
    let (mut taken, mut over) = (0, Vec::new());
    for session in stored {
        let id = session.id;
        let destination = destinations.get(&session.destination).filter(|_| session.used_at_us >= oldest);
        let taken_up = match destination {
            Some(destination) => take_up_one(sessions, destination, hub, session).await,
            None => None,
        };
        match taken_up {
            Some(()) => taken += 1,
            None => over.push(id),
        }
    }
    if taken > 0 {
        info!(sessions = taken, "Took up the sessions of the last daemon");
    }
    if !over.is_empty() {
        debug!(sessions = over.len(), "Forgot sessions that are over");
        told(keeping.store.forget_sessions(over).await);
    }
}

async fn take_up_one(
    sessions: &SessionTable,
    destination: &Arc<Destination>,
    hub: &Arc<Hub>,
    stored: StoredSession,
) -> Option<()> {
    if destination.config().sessions == config::SessionRequirement::Never {
        return None;
    }
    let opening: OpeningRecord = serde_json::from_str(&stored.opening).ok()?;
    let initialize = Message::parse(Bytes::from(opening.initialize)).ok()?;
    let hello = ClientHello::read(&initialize).ok()?;
    let place = destination.place().ok()?;
    let role = match opening.view {
        Some(asked) => SessionRole::Hub(Box::new(hub.take_up(&asked, &hello, &initialize, stored.hub.as_deref())?)),
        None => SessionRole::Direct,
    };
    let kept = kept(stored.state.as_deref(), stored.events);
    let (id, link, revision) = (Uuid::from_u128(stored.id), destination.link_for(hello.class), hello.revision);
    let command = LinkCommand::TakeUp {
        key: SessionKey(stored.id),
        hello: Box::new(hello),
        kept: Box::new(kept),
        numbers_from: numbers_from(),
    };
    link.commands.send(command).await.ok()?;
    let (visit, initialize) = (ClientActivity::opened_by(&initialize, opening.way), initialize.bytes().clone());
    sessions.insert(OpenedSession { id, place, link, revision, role, initialize, visit });
    Some(())
}

/// What a session is from when it is taken up on: the same, but that its events have new numbers.
fn renewed(stored: &StoredSession) -> Option<(u128, String)> {
    let kept = kept(stored.state.as_deref(), stored.events.clone());
    let last = kept.numbers_after();
    Some((stored.id, text(&SessionSnapshot { last, ..kept })?))
}

/// Where the numbers of a session's streams and questions begin, if another may have used the first ones.
pub fn numbers_from() -> u32 {
    // Without randomness nothing secret can be made either, and no session be opened.
    getrandom::u32().unwrap_or_default() >> 1
}

fn save(key: SessionKey, kept: SessionSnapshot) -> Option<SessionUpdate> {
    let state = text(&kept)?;
    let event =
        |(id, bytes): (EventId, Bytes)| StoredEvent { stream: id.stream, number: id.event, bytes: bytes.into() };
    let events = kept.events.into_iter().map(event).collect();
    Some(SessionUpdate { id: key.0, state, oldest: kept.oldest, events })
}

fn text(kept: &SessionSnapshot) -> Option<String> {
    let level = kept.level.map(|level| level.name().to_owned());
    let state = SessionRecord { level, watched: kept.watched.clone(), last: kept.last, delivered: kept.delivered };
    serde_json::to_string(&state).ok()
}

fn kept(state: Option<&str>, events: Vec<StoredEvent>) -> SessionSnapshot {
    let SessionRecord { level, watched, last, delivered } =
        state.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let id = |event: &StoredEvent| EventId { stream: event.stream, event: event.number };
    let events = events.into_iter().map(|event| (id(&event), Bytes::from(event.bytes))).collect();
    SessionSnapshot {
        level: level.and_then(|name| LogLevel::named(&name)),
        watched,
        last,
        delivered,
        oldest: 0,
        events,
    }
}

fn told(written: Result<(), StoreWriteError>) {
    match written {
        // The daemon is stopping, and whoever could have waited for this is gone.
        Ok(()) | Err(StoreWriteError::Closed) => {}
        Err(error) => warn!(%error, "Cannot write down a session; it will not outlive this daemon"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_down_is_what_is_taken_up() {
        let event = (EventId { stream: 3, event: 4 }, Bytes::from_static(b"data: x\n\n"));
        let before = SessionSnapshot {
            level: Some(LogLevel::Warning),
            watched: vec!["file:///a\nb".to_owned()],
            last: 7,
            delivered: 5,
            oldest: 2,
            events: vec![event],
        };
        let SessionUpdate { id, state, oldest, events } = save(SessionKey(9), before.clone()).unwrap();
        assert_eq!((id, oldest), (9, 2));
        assert_eq!(SessionSnapshot { oldest: 2, ..kept(Some(&state), events) }, before);
    }

    #[test]
    fn no_two_daemons_number_events_alike() {
        let mut stored = StoredSession {
            id: 9,
            destination: "d".to_owned(),
            opening: String::new(),
            state: None,
            hub: None,
            used_at_us: 0,
            events: vec![StoredEvent { stream: 0, number: 12, bytes: Vec::new() }],
        };
        let mut before = 12;
        for _ in 0..3 {
            let taken_up = kept(stored.state.as_deref(), stored.events.clone()).numbers_after();
            assert!(taken_up > before, "{taken_up} after {before}");
            stored.state = renewed(&stored).map(|(_, state)| state);
            before = taken_up;
        }
    }

    #[test]
    fn a_text_of_another_version_is_as_good_as_none() {
        assert_eq!(kept(Some("{\"new\":1}"), Vec::new()), SessionSnapshot::default());
    }
}
