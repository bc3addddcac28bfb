//! A grant that can be used: its limits' state, what its holder did last, and its end, which is heard at that moment.

use std::{
    collections::{BTreeSet, VecDeque},
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use prism_core::{
    Time,
    policy::{Bucket, Grant, GrantLimits, ReviewedText, Scopes},
};
use prism_editor::EditorEvent;
use prism_store::gate::GrantRow;
use tokio::sync::watch;

use super::{editors::ServingEditors, roots_of};

/// Last actions that are shown of a grant.
const SHOWN: usize = 10;
/// Actions out of its scope that a holder may try within [`PATIENCE`] before its socket is closed.
const MAX_TRESPASSES: usize = 20;
const PATIENCE: Duration = Duration::from_secs(60);
/// Refusals of one grant that are written down each: a second, and at once. Of the rest it is said how many they were.
const REFUSALS_PER_SECOND: u32 = 5;
const REFUSALS_AT_ONCE: u32 = 50;
/// Texts that a person has allowed and that are not saved yet. Of more the oldest is forgotten, and they are asked again.
const MAX_SEEN: usize = 64;

/// How a grant ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrantEnd {
    Expired,
    Revoked,
}

pub(super) struct LiveGrant {
    pub(super) id: u128,
    pub(super) request: Option<u128>,
    pub(super) parent: Option<u128>,
    pub(super) agent: String,
    pub(super) grant: Grant,
    pub(super) created_at: Time,
    pub(super) used: AtomicBool,
    /// Whether the person lets language servers run for it with less than a sandbox around them.
    pub(super) lets_servers_run: AtomicBool,
    pub(super) sockets: AtomicUsize,
    pub(super) actions: AtomicU64,
    ended: watch::Sender<Option<GrantEnd>>,
    /// Editors that served it and are gone.
    lost: watch::Sender<BTreeSet<String>>,
    inner: Mutex<LiveGrantState>,
}

struct LiveGrantState {
    bucket: Bucket,
    refusals: Bucket,
    unwritten: u64,
    trespasses: VecDeque<Time>,
    last: VecDeque<ActionRecord>,
    served: ServingEditors,
    /// What the person has allowed to be edited, until it is saved.
    seen: VecDeque<ReviewedText>,
}

/// An action that was done, or was not.
#[derive(Clone, Debug)]
pub(super) struct ActionRecord {
    pub(super) at: Time,
    pub(super) verb: String,
    pub(super) about: String,
    pub(super) result: String,
}

/// A grant in the hands of its holder: one for each socket.
pub struct GrantLease {
    pub(super) live: Arc<LiveGrant>,
    end: watch::Receiver<Option<GrantEnd>>,
    lost: watch::Receiver<BTreeSet<String>>,
}

// === impl LiveGrant ===

impl LiveGrant {
    /// What the store has, as something that can be used; `None` if it is not understood.
    pub(super) fn of(row: GrantRow, now: Time) -> Option<Self> {
        let limits = GrantLimits {
            per_second: row.per_second,
            burst: row.burst,
            max_edit_bytes: u64::try_from(row.max_edit_bytes).ok()?,
        };
        let grant = Grant {
            scopes: Scopes::read(row.scopes.split_whitespace()).ok()?,
            roots: roots_of(&row.roots)?,
            expires_at: Time(row.expires_at_us),
            limits,
            confirms_changes: row.confirms_changes,
        };
        let inner = LiveGrantState {
            bucket: Bucket::full(limits.burst, now),
            refusals: Bucket::full(REFUSALS_AT_ONCE, now),
            unwritten: 0,
            trespasses: VecDeque::new(),
            last: VecDeque::new(),
            served: ServingEditors::default(),
            seen: VecDeque::new(),
        };
        Some(Self {
            id: row.id,
            request: row.request_id,
            parent: row.parent,
            agent: row.agent,
            grant,
            created_at: Time(row.created_at_us),
            used: (row.state == "ACTIVE").into(),
            lets_servers_run: AtomicBool::new(false),
            sockets: AtomicUsize::new(0),
            actions: AtomicU64::new(0),
            ended: watch::Sender::new(None),
            lost: watch::Sender::default(),
            inner: Mutex::new(inner),
        })
    }

    /// Ends it, for all who hold it, now. The first end counts; returns whether this is it.
    pub(super) fn end(&self, how: GrantEnd) -> bool {
        self.ended.send_if_modified(|ended| ended.is_none() && ended.replace(how).is_none())
    }

    pub(super) fn ended(&self) -> Option<GrantEnd> {
        *self.ended.borrow()
    }

    /// Notes which editors serve it now. Returns those that are gone, if that is news.
    pub(super) fn served(&self, serving: &BTreeSet<String>) -> Option<BTreeSet<String>> {
        let mut inner = self.inner();
        let lost = inner.served.now(serving).then(|| inner.served.lost.clone())?;
        self.lost.send_replace(lost.clone());
        Some(lost)
    }

    /// The editors that served it and are gone.
    pub(super) fn lost(&self) -> Vec<String> {
        self.lost.borrow().iter().cloned().collect()
    }

    pub(super) fn with_bucket<T>(&self, with: impl FnOnce(&mut Bucket) -> T) -> T {
        with(&mut self.inner().bucket)
    }

    /// Whether a refusal gets a line of its own; then also how many before it got none.
    pub(super) fn may_write_refusal(&self, now: Time) -> Option<u64> {
        let mut inner = self.inner();
        match inner.refusals.take(REFUSALS_PER_SECOND, REFUSALS_AT_ONCE, now) {
            Ok(()) => Some(std::mem::take(&mut inner.unwritten)),
            Err(_) => {
                inner.unwritten += 1;
                None
            }
        }
    }

    /// Notes an action out of its scope. Returns whether that is one too many.
    pub(super) fn trespassed(&self, now: Time) -> bool {
        let trespasses = &mut self.inner().trespasses;
        trespasses.push_back(now);
        while trespasses.front().is_some_and(|first| now.since(*first) > PATIENCE) {
            trespasses.pop_front();
        }
        trespasses.len() >= MAX_TRESPASSES
    }

    /// Notes what the person has allowed, so that saving it is not another question.
    pub(super) fn has_seen(&self, parts: Vec<ReviewedText>) {
        let seen = &mut self.inner().seen;
        for part in parts {
            seen.retain(|known| *known != part);
            seen.push_back(part);
        }
        while seen.len() > MAX_SEEN {
            seen.pop_front();
        }
    }

    /// Whether the person has allowed this. It counts once: what was saved and taken back by hand is another matter.
    pub(super) fn take_seen(&self, part: &ReviewedText) -> bool {
        let seen = &mut self.inner().seen;
        let at = seen.iter().position(|known| known == part);
        at.and_then(|at| seen.remove(at)).is_some()
    }

    pub(super) fn did(&self, done: ActionRecord) {
        self.actions.fetch_add(1, Ordering::Relaxed);
        let last = &mut self.inner().last;
        last.push_front(done);
        last.truncate(SHOWN);
    }

    pub(super) fn last(&self) -> Vec<ActionRecord> {
        self.inner().last.iter().cloned().collect()
    }

    fn inner(&self) -> std::sync::MutexGuard<'_, LiveGrantState> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl GrantLease ===

impl GrantLease {
    pub(super) fn new(live: Arc<LiveGrant>) -> Self {
        live.sockets.fetch_add(1, Ordering::Relaxed);
        let (end, lost) = (live.ended.subscribe(), live.lost.subscribe());
        Self { live, end, lost }
    }

    pub fn agent(&self) -> &str {
        &self.live.agent
    }

    pub fn grant(&self) -> &Grant {
        &self.live.grant
    }

    /// How many hold it, this one included.
    pub fn sockets(&self) -> usize {
        self.live.sockets.load(Ordering::Relaxed)
    }

    pub fn id(&self) -> u128 {
        self.live.id
    }

    /// What the editors that served it and are gone are called, now and each time that it changes.
    pub fn lost(&self) -> watch::Receiver<BTreeSet<String>> {
        self.lost.clone()
    }

    /// Whether its holder may hear of this: it has a scope for such events, and what it is about lies in a granted folder (A-07,
    ///
    pub fn hears_of(&self, happening: &EditorEvent) -> bool {
        let grant = &self.live.grant;
        let granted = |path: &Path| grant.roots.iter().any(|root| root.is_above(&path.to_string_lossy()));
        happening.event.is_seen_with(grant.scopes)
            && happening.to.is_none_or(|holder| holder == self.live.id)
            && happening.path.as_deref().is_none_or(granted)
    }

    /// Waits for its end.
    pub async fn ended(&self) -> GrantEnd {
        let mut end = self.end.clone();
        match end.wait_for(Option::is_some).await.map(|ended| *ended) {
            Ok(Some(ended)) => ended,
            // Whoever could end it is gone, and with it the grant.
            Ok(None) | Err(_) => GrantEnd::Revoked,
        }
    }
}

impl Drop for GrantLease {
    fn drop(&mut self) {
        self.live.sockets.fetch_sub(1, Ordering::Relaxed);
    }
}

// === impl GrantEnd ===

impl GrantEnd {
    /// The close code that says so.
    pub fn close_code(self) -> u16 {
        match self {
            Self::Expired => 4000,
            Self::Revoked => 4001,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Revoked => "revoked",
        }
    }
}
