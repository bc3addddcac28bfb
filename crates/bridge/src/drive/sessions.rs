//! The table of open sessions: from the id a client shows to the link that serves it.

use std::{
    collections::HashMap,
    sync::{
        Arc, PoisonError, RwLock, Weak,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use prism_core::{
    mcp::{Revision, link::SessionKey},
    wire::Message,
};
use tokio::sync::Notify;
use uuid::Uuid;

use super::{
    Destination, LinkHandle,
    destination::{EVICTABLE_AFTER, SessionSlot},
    hub::HubSession,
    keeping::SessionStore,
    reach::ObserverSlot,
    visitor::ClientActivity,
    vitals::LinkPurpose,
};

/// How long a part at a server that others share must have been idle before its place may go to another: longer than it
/// takes from its opening to its first call.
const SPARE_AFTER: Duration = Duration::from_secs(1);

/// All sessions of the daemon.
pub struct SessionTable {
    open: RwLock<HashMap<Uuid, Arc<SessionEntry>>>,
    epoch: Instant,
    /// Where they outlive the daemon, if they do.
    keeping: Option<SessionStore>,
    /// Who wants to know which clients of Prism's own server can be reached.
    reached: ObserverSlot,
    /// A session of the hub's is over.
    left_hub: Notify,
}

/// A session that was opened, or taken up.
pub struct OpenedSession {
    pub id: Uuid,
    pub place: SessionSlot,
    pub link: LinkHandle,
    pub revision: Revision,
    pub role: SessionRole,
    /// What its client said to open it, in a copy of its own: the message pins the buffer that it was read into.
    pub initialize: Bytes,
    pub visit: Arc<ClientActivity>,
}

/// One session, as a request finds it.
pub struct SessionEntry {
    pub id: Uuid,
    pub destination: Arc<Destination>,
    pub link: LinkHandle,
    pub revision: Revision,
    pub role: SessionRole,
    pub initialize: Bytes,
    pub visit: Arc<ClientActivity>,
    open: AtomicBool,
    /// Requests and streams that are open. While there are any, the session is not idle.
    busy: AtomicU32,
    /// Milliseconds since the table was made.
    last_used: AtomicU64,
    /// When a stream of it broke off before its end, of which its client may come back for the rest; 0: never.
    broke_off: AtomicU64,
}

/// What a session is to the hub.
pub enum SessionRole {
    /// Its client came to this very destination.
    Direct,
    /// It is one of the hub's.
    Hub(Box<HubSession>),
    /// It is a part of this one of the hub's.
    Part(Weak<SessionEntry>),
}

/// Something open on a session; idle time counts from its end.
pub struct BusyGuard {
    entry: Arc<SessionEntry>,
    epoch: Instant,
    /// The part of it at a member of the hub, which is in use with it.
    part: Option<Box<Self>>,
}

// === impl SessionTable ===

impl SessionTable {
    pub fn new(keeping: Option<SessionStore>) -> Self {
        let (open, reached, left_hub) = (RwLock::default(), ObserverSlot::default(), Notify::new());
        Self { open, epoch: Instant::now(), keeping, reached, left_hub }
    }

    pub fn keeping(&self) -> Option<&SessionStore> {
        self.keeping.as_ref()
    }

    pub fn reached(&self) -> &ObserverSlot {
        &self.reached
    }

    /// Enters a session in the place that its destination has for it.
    pub fn insert(&self, opened: OpenedSession) -> Arc<SessionEntry> {
        let OpenedSession { id, place, link, revision, role, initialize, visit } = opened;
        let (destination, last_used, broke_off) = (place.keep(), AtomicU64::new(millis(self.epoch)), AtomicU64::new(0));
        destination.metrics().sessions.inc();
        let (open, busy) = (AtomicBool::new(true), AtomicU32::new(0));
        let entry =
            SessionEntry { id, destination, link, revision, role, initialize, visit, open, busy, last_used, broke_off };
        let entry = Arc::new(entry);
        self.open.write().unwrap_or_else(PoisonError::into_inner).insert(id, entry.clone());
        entry
    }

    /// Puts a session, whose client came to that very destination, in a place at another.
    pub fn renew(&self, entry: &Arc<SessionEntry>, place: SessionSlot, link: LinkHandle) -> Arc<SessionEntry> {
        entry.destination.metrics().sessions.dec();
        entry.destination.leave();
        let (id, revision, initialize) = (entry.id, entry.revision, entry.initialize.clone());
        let visit = entry.visit.clone();
        self.insert(OpenedSession { id, place, link, revision, role: SessionRole::Direct, initialize, visit })
    }

    pub fn get(&self, id: &Uuid) -> Option<Arc<SessionEntry>> {
        self.open.read().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    /// Takes a session out of the table: it is over. `None` if somebody else did.
    pub fn remove(&self, id: &Uuid) -> Option<Arc<SessionEntry>> {
        let (entry, forgotten) = self.take_out(id)?;
        tokio::spawn(forgotten);
        Some(entry)
    }

    /// The same at its client's wish. When this returns it cannot come back with the next daemon, and the client may rely
    /// on that.
    pub async fn end(&self, id: &Uuid) -> Option<Arc<SessionEntry>> {
        let (entry, forgotten) = self.take_out(id)?;
        forgotten.await;
        Some(entry)
    }

    /// Takes a session out of the table, and says how it is forgotten.
    fn take_out(&self, id: &Uuid) -> Option<(Arc<SessionEntry>, impl Future<Output = ()> + Send + use<>)> {
        let entry = self.open.write().unwrap_or_else(PoisonError::into_inner).remove(id)?;
        entry.destination.metrics().sessions.dec();
        entry.destination.leave();
        entry.open.store(false, Ordering::Relaxed);
        entry.destination.session_ended(entry.key());
        if let Some(hub) = entry.hub() {
            hub.close(self);
            self.left_hub.notify_waiters();
        }
        let kept = self.keeping.as_ref().filter(|_| !matches!(entry.role, SessionRole::Part(_)));
        let forgotten = kept.map(|keeping| keeping.forget(*id));
        Some((entry, async {
            if let Some(forgotten) = forgotten {
                forgotten.await;
            }
        }))
    }

    /// Waits for the end of a session of the hub's.
    pub async fn left_hub(&self) {
        self.left_hub.notified().await;
    }

    /// Marks a session as in use.
    pub fn occupy(&self, entry: &Arc<SessionEntry>) -> BusyGuard {
        entry.busy.fetch_add(1, Ordering::Relaxed);
        BusyGuard { entry: entry.clone(), epoch: self.epoch, part: None }
    }

    /// Sessions that nobody has used for that long, the longest idle first.
    pub fn idle_for(&self, time: Duration, destination: Option<&Arc<Destination>>) -> Vec<Arc<SessionEntry>> {
        let now = millis(self.epoch);
        let limit = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        let mut idle: Vec<(u64, Arc<SessionEntry>)> = open
            .values()
            .filter(|entry| destination.is_none_or(|wanted| Arc::ptr_eq(wanted, &entry.destination)))
            .filter_map(|entry| Some((entry.idle_at(now)?, entry)))
            .filter(|(idle, _)| *idle >= limit)
            .map(|(idle, entry)| (idle, entry.clone()))
            .collect();
        idle.sort_by_key(|(idle, _)| std::cmp::Reverse(*idle));
        idle.into_iter().map(|(_, entry)| entry).collect()
    }

    /// The part of a session of the hub's, at this destination, that has been of no use for the longest time, if any has
    /// for long enough to be spared: it is opened again when it is called next. One that watches a resource, or has a call
    /// whose client may come back to its stream, is of use.
    pub fn spare_part(&self, destination: &Arc<Destination>) -> Option<Arc<SessionEntry>> {
        let now = millis(self.epoch);
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        let is_left = |entry: &SessionEntry| {
            let broke_off = entry.broke_off.load(Ordering::Relaxed);
            broke_off > 0 && u128::from(now.saturating_sub(broke_off)) < EVICTABLE_AFTER.as_millis()
        };
        let watches = |entry: &SessionEntry| match &entry.role {
            SessionRole::Part(whole) => {
                whole.upgrade().is_some_and(|whole| whole.hub().is_some_and(|hub| hub.watches_by(entry)))
            }
            SessionRole::Direct | SessionRole::Hub(_) => false,
        };
        let parts = open.values().filter(|entry| {
            matches!(entry.role, SessionRole::Part(_))
                && Arc::ptr_eq(&entry.destination, destination)
                && entry.busy.load(Ordering::Relaxed) == 0
                && !is_left(entry)
                && !watches(entry)
        });
        let idle = parts.map(|entry| (now.saturating_sub(entry.last_used.load(Ordering::Relaxed)), entry));
        let spare = idle.filter(|(idle, entry)| {
            // One at a server of its own loses what that keeps for it.
            let after = if entry.link.vitals.purpose == LinkPurpose::Own { EVICTABLE_AFTER } else { SPARE_AFTER };
            u128::from(*idle) >= after.as_millis()
        });
        spare.max_by_key(|(idle, _)| *idle).map(|(_, entry)| entry.clone())
    }

    /// Sessions that somebody has used within that time.
    pub fn used_within(&self, time: Duration) -> Vec<Uuid> {
        let now = millis(self.epoch);
        let limit = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        let used = open.values().filter(|entry| entry.idle_at(now).is_none_or(|idle| idle <= limit));
        used.map(|entry| entry.id).collect()
    }

    /// The sessions of the hub's for which this holds.
    pub fn hub_sessions(&self, which: impl Fn(&HubSession) -> bool) -> Vec<SessionKey> {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        let fits = |entry: &&Arc<SessionEntry>| entry.hub().is_some_and(&which);
        open.values().filter(fits).map(|entry| entry.key()).collect()
    }

    /// The sessions of the hub's.
    pub fn of_hub(&self) -> Vec<Arc<SessionEntry>> {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        open.values().filter(|entry| entry.hub().is_some()).cloned().collect()
    }

    pub fn has_hub_sessions(&self) -> bool {
        self.open.read().unwrap_or_else(PoisonError::into_inner).values().any(|entry| entry.hub().is_some())
    }

    /// All of them, in the order in which they were opened.
    pub fn all(&self) -> Vec<Arc<SessionEntry>> {
        let mut all: Vec<_> = self.open.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
        all.sort_by_key(|entry| std::cmp::Reverse(entry.visit.age()));
        all
    }

    pub fn len(&self) -> usize {
        self.open.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Whether an answer to `initialize` is an error of the server's.
pub fn is_error(answer: Vec<u8>) -> bool {
    Message::parse(Bytes::from(answer)).map_or(true, |message| message.failed())
}

fn millis(epoch: Instant) -> u64 {
    u64::try_from(epoch.elapsed().as_millis()).unwrap_or(u64::MAX)
}

impl SessionEntry {
    pub fn key(&self) -> SessionKey {
        SessionKey(self.id.as_u128())
    }

    /// What it is at the hub, if it is one of the hub's.
    pub fn hub(&self) -> Option<&HubSession> {
        match &self.role {
            SessionRole::Hub(hub) => Some(hub),
            SessionRole::Direct | SessionRole::Part(_) => None,
        }
    }

    /// For how long nobody has used it, in milliseconds; `None` if somebody does. A part is used with the whole.
    fn idle_at(&self, now: u64) -> Option<u64> {
        if self.busy.load(Ordering::Relaxed) > 0 {
            return None;
        }
        let idle = now.saturating_sub(self.last_used.load(Ordering::Relaxed));
        match &self.role {
            SessionRole::Part(whole) => whole.upgrade().map_or(Some(idle), |whole| Some(whole.idle_at(now)?.min(idle))),
            SessionRole::Direct | SessionRole::Hub(_) => Some(idle),
        }
    }

    pub fn is_open(&self) -> bool {
        self.open.load(Ordering::Relaxed)
    }
}

impl BusyGuard {
    /// The same, for as long as which a part of the session is in use, too.
    pub fn along_with(mut self, part: Self) -> Self {
        self.part = Some(Box::new(part));
        self
    }

    pub fn entry(&self) -> &Arc<SessionEntry> {
        &self.entry
    }

    /// What was open broke off before its end.
    pub fn breaks_off(&self) {
        self.entry.broke_off.store(millis(self.epoch).max(1), Ordering::Relaxed);
        if let Some(part) = &self.part {
            part.breaks_off();
        }
    }
}

impl Drop for BusyGuard {
    fn drop(&mut self) {
        self.entry.last_used.store(millis(self.epoch), Ordering::Relaxed);
        self.entry.busy.fetch_sub(1, Ordering::Relaxed);
    }
}
