//! One destination: its links, who gets which (B-04), and how many sessions it may have (B-10).

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use prism_core::mcp::{
    Class, Settings,
    link::SessionKey,
    quiet::{Ledger, Verdict},
};
use prism_os::census::Owner;
use prism_store::Store;
use tracing::{info, warn};
use uuid::Uuid;

use super::{Command, Entry, LinkHandle, Sessions};
use crate::{
    config::{self, Config, Process},
    telemetry::metrics::{DestinationMetrics, Metrics},
};

/// How long a session must have been idle before a new one may take its place at the cap. A client between two calls
/// of one task must not lose its session to the next editor window.
const EVICTABLE_AFTER: Duration = Duration::from_secs(60);

pub struct Destination {
    shared: Arc<Shared>,
    links: Mutex<HashMap<Class, LinkHandle>>,
    alone: Mutex<Vec<LinkHandle>>,
    settings: Settings,
    count: AtomicUsize,
}

/// What a destination's links share.
pub struct Shared {
    pub(super) config: config::Destination,
    pub(super) metrics: Arc<DestinationMetrics>,
    pub(super) max_message_bytes: usize,
    pub(super) owner: Owner,
    sessions: Arc<Sessions>,
    ledger: Mutex<Ledger>,
    /// Name and version of the server that runs, or of the one that was learned to be quiet.
    server: Mutex<(String, String)>,
    store: Option<Store>,
}

/// What destinations are made from.
pub struct Parts {
    pub sessions: Arc<Sessions>,
    pub metrics: Arc<Metrics>,
    pub owner: Owner,
    pub store: Option<Store>,
}

/// There is no room for another session.
pub struct Full {
    pub max_sessions: usize,
}

// === impl Destination ===

impl Destination {
    pub fn new(
        config: config::Destination,
        daemon: &Config,
        parts: &Parts,
        quiet: Option<(String, String)>,
    ) -> Arc<Self> {
        let settings = Settings {
            request_timeout: daemon.request_timeout,
            max_request_time: daemon.max_request_time,
            max_message_bytes: daemon.max_message_bytes,
            keep_warm: config.keep_warm,
            keep_stateless: daemon.session_idle_timeout.unwrap_or(Duration::from_secs(30 * 60)),
            strict_streams: config.strict_streams,
            class: Class::NONE,
            alone: false,
        };
        let shared = Arc::new(Shared {
            metrics: parts.metrics.destination(&config.name),
            max_message_bytes: daemon.max_message_bytes,
            owner: parts.owner.clone(),
            sessions: parts.sessions.clone(),
            ledger: Mutex::new(Ledger::with_verdict(if quiet.is_some() { Verdict::Quiet } else { Verdict::Unknown })),
            server: Mutex::new(quiet.unwrap_or_default()),
            store: parts.store.clone(),
            config,
        });
        Arc::new(Self {
            shared,
            links: Mutex::default(),
            alone: Mutex::default(),
            settings,
            count: AtomicUsize::new(0),
        })
    }

    pub fn config(&self) -> &config::Destination {
        &self.shared.config
    }

    pub fn metrics(&self) -> &Arc<DestinationMetrics> {
        &self.shared.metrics
    }

    /// Makes room for one more session: within the cap, or in the place of the longest idle one.
    pub fn enter(self: &Arc<Self>) -> Result<(), Full> {
        let max_sessions = self.config().max_sessions;
        let try_enter = || {
            self.count
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| (count < max_sessions).then_some(count + 1))
                .is_ok()
        };
        if try_enter() {
            return Ok(());
        }
        if let Some(idle) = self.shared.sessions.idle_for(EVICTABLE_AFTER, Some(self)).into_iter().next()
            && let Some(entry) = self.shared.sessions.remove(&idle.id)
        {
            info!(destination = self.config().name, "Ended the longest idle session to make room for a new one");
            close(&entry);
        }
        if try_enter() { Ok(()) } else { Err(Full { max_sessions }) }
    }

    /// Gives the place of a session back.
    pub fn leave(&self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }

    /// The link for a new session.
    pub fn link_for(&self, class: Class) -> LinkHandle {
        match self.isolates(class) {
            true => {
                let link =
                    LinkHandle::spawn(Settings { class, alone: true, ..self.settings.clone() }, self.shared.clone());
                let mut alone = lock(&self.alone);
                alone.retain(|link| !link.commands.is_closed());
                alone.push(link.clone());
                link
            }
            false if self.config().asks == Some(false) => self.shared_link(Class::NONE),
            false => self.shared_link(class),
        }
    }

    /// The link for calls without a session.
    pub fn stateless_link(&self) -> LinkHandle {
        self.shared_link(Class::NONE)
    }

    fn shared_link(&self, class: Class) -> LinkHandle {
        let spawn = || LinkHandle::spawn(Settings { class, ..self.settings.clone() }, self.shared.clone());
        let mut links = lock(&self.links);
        let link = links.entry(class).or_insert_with(spawn);
        // A shared link only ends with the daemon, or by a bug in it: then the next session gets a new one.
        if link.commands.is_closed() {
            *link = spawn();
        }
        link.clone()
    }

    /// Whether a session of this class gets a child of its own.
    fn isolates(&self, class: Class) -> bool {
        match self.config().process {
            Process::PerSession => true,
            Process::SharedAlways => false,
            Process::Shared => {
                class.answers_questions() && self.config().asks != Some(false) && self.verdict() != Verdict::Quiet
            }
        }
    }

    pub fn verdict(&self) -> Verdict {
        lock(&self.shared.ledger).verdict()
    }

    /// The links that exist.
    pub fn links(&self) -> Vec<LinkHandle> {
        lock(&self.links).values().cloned().chain(lock(&self.alone).iter().cloned()).collect()
    }
}

/// Tells a link that a session is over, without waiting for it.
pub fn close(entry: &Entry) {
    let (link, key) = (entry.link.clone(), entry.key());
    tokio::spawn(async move { link.commands.send(Command::Close { key, done: None }).await });
}

// === impl Shared ===

impl Shared {
    /// The link ended a session by itself.
    pub(super) fn ended(&self, key: SessionKey) {
        self.sessions.remove(&Uuid::from_u128(key.0));
    }

    pub(super) fn greeted(&self, name: &str, version: &str) {
        let now = (name.to_owned(), version.to_owned());
        let before = std::mem::replace(&mut *lock(&self.server), now.clone());
        // What was learned of another version says nothing about this one.
        if before != now && before != Default::default() {
            *lock(&self.ledger) = Ledger::default();
            self.forget();
        }
    }

    pub(super) fn listed(&self, tools: &[String], whole: bool) {
        let mut ledger = lock(&self.ledger);
        ledger.page(tools);
        if whole {
            ledger.listed();
        }
    }

    pub(super) fn answered(&self, tool: &str) {
        let learned = lock(&self.ledger).answered(tool);
        if !learned {
            return;
        }
        let destination = key(&self.config);
        let (server, version) = lock(&self.server).clone();
        info!(
            destination = self.config.name,
            server, version, "Learned that this server asks nothing; clients share it now"
        );
        if let Some(store) = self.store.clone() {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let at = i64::try_from(now.as_micros()).unwrap_or(i64::MAX);
            tokio::spawn(async move {
                if let Err(error) = store.remember_quiet(&destination, &server, &version, at).await {
                    warn!(%error, "Cannot remember that a server is quiet");
                }
            });
        }
    }

    pub(super) fn asked(&self) {
        let unlearned = lock(&self.ledger).asked();
        if !unlearned {
            return;
        }
        warn!(
            destination = self.config.name,
            "A server that was taken for quiet asks questions; new clients get their own"
        );
        self.forget();
    }

    fn forget(&self) {
        let destination = key(&self.config);
        if let Some(store) = self.store.clone() {
            tokio::spawn(async move {
                if let Err(error) = store.forget_quiet(&destination).await {
                    warn!(%error, "Cannot forget that a server was quiet");
                }
            });
        }
    }
}

/// What a destination is remembered by: another command is another server.
pub fn key(config: &config::Destination) -> String {
    format!("{} {}", config.name, config.command.join(" "))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
