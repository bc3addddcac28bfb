//! The table of open sessions: from the id a client shows to the link that serves it.

use std::{
    collections::HashMap,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use prism_core::mcp::{Revision, link::SessionKey};
use uuid::Uuid;

use super::{Destination, LinkHandle};

/// All sessions of the daemon.
pub struct Sessions {
    open: RwLock<HashMap<Uuid, Arc<Entry>>>,
    epoch: Instant,
}

/// One session, as a request finds it.
pub struct Entry {
    pub id: Uuid,
    pub destination: Arc<Destination>,
    pub link: LinkHandle,
    pub revision: Revision,
    /// Requests and streams that are open. While there are any, the session is not idle.
    busy: AtomicU32,
    /// Milliseconds since the table was made.
    last_used: AtomicU64,
}

/// Something open on a session; idle time counts from its end.
pub struct Busy {
    entry: Arc<Entry>,
    epoch: Instant,
}

// === impl Sessions ===

impl Default for Sessions {
    fn default() -> Self {
        Self { open: RwLock::default(), epoch: Instant::now() }
    }
}

impl Sessions {
    /// Enters a session whose place in its destination was taken with [`Destination::enter`].
    pub fn insert(&self, id: Uuid, destination: Arc<Destination>, link: LinkHandle, revision: Revision) {
        let last_used = AtomicU64::new(millis(self.epoch));
        destination.metrics().sessions.inc();
        let entry = Arc::new(Entry { id, destination, link, revision, busy: AtomicU32::new(0), last_used });
        self.open.write().unwrap_or_else(PoisonError::into_inner).insert(id, entry);
    }

    pub fn get(&self, id: &Uuid) -> Option<Arc<Entry>> {
        self.open.read().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    /// Takes a session out of the table. `None` if somebody else did.
    pub fn remove(&self, id: &Uuid) -> Option<Arc<Entry>> {
        let entry = self.open.write().unwrap_or_else(PoisonError::into_inner).remove(id)?;
        entry.destination.metrics().sessions.dec();
        entry.destination.leave();
        Some(entry)
    }

    /// Marks a session as in use.
    pub fn occupy(&self, entry: &Arc<Entry>) -> Busy {
        entry.busy.fetch_add(1, Ordering::Relaxed);
        Busy { entry: entry.clone(), epoch: self.epoch }
    }

    /// Sessions that nobody has used for that long, the longest idle first.
    pub fn idle_for(&self, time: Duration, destination: Option<&Arc<Destination>>) -> Vec<Arc<Entry>> {
        let now = millis(self.epoch);
        let limit = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        let mut idle: Vec<(u64, Arc<Entry>)> = open
            .values()
            .filter(|entry| destination.is_none_or(|wanted| Arc::ptr_eq(wanted, &entry.destination)))
            .filter(|entry| entry.busy.load(Ordering::Relaxed) == 0)
            .map(|entry| (now.saturating_sub(entry.last_used.load(Ordering::Relaxed)), entry))
            .filter(|(idle, _)| *idle >= limit)
            .map(|(idle, entry)| (idle, entry.clone()))
            .collect();
        idle.sort_by_key(|(idle, _)| std::cmp::Reverse(*idle));
        idle.into_iter().map(|(_, entry)| entry).collect()
    }

    pub fn len(&self) -> usize {
        self.open.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn millis(epoch: Instant) -> u64 {
    u64::try_from(epoch.elapsed().as_millis()).unwrap_or(u64::MAX)
}

impl Entry {
    pub fn key(&self) -> SessionKey {
        SessionKey(self.id.as_u128())
    }
}

impl Busy {
    pub fn entry(&self) -> &Arc<Entry> {
        &self.entry
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.entry.last_used.store(millis(self.epoch), Ordering::Relaxed);
        self.entry.busy.fetch_sub(1, Ordering::Relaxed);
    }
}
