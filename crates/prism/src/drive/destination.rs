//! One destination: its links, who gets which (B-04), and how many sessions it may have (B-10).

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use prism_core::mcp::{
    Class, Era, Opening, Settings, Speaks, Wire,
    link::SessionKey,
    params::ToolHeaders,
    quiet::{Ledger, Verdict},
};
use prism_os::census::Owner;
use prism_store::{LearnedEra, Store};
use tracing::{info, warn};
use uuid::Uuid;

use super::{
    Command, Entry, LinkHandle, Sessions,
    remote::{Target, TargetError, Transport},
};
use crate::{
    config::{self, Config, Process},
    telemetry::metrics::{DestinationMetrics, Metrics},
};

/// How long a session must have been idle before a new one may take its place at the cap. A client between two calls
/// of one task must not lose its session to the next editor window.
const EVICTABLE_AFTER: Duration = Duration::from_secs(60);

/// Children of one class for calls without a session: each but the first is there because all before it wait for
/// somebody's answer. Beyond it the call that has waited the longest gives way.
const MAX_TWINS: usize = 8;
/// How long such a further child outlives its last call.
const TWIN_WARM: Duration = Duration::from_secs(60);
/// How long it counts that a server was found to be of the legacy era: that it learned the new one is not noticed
/// otherwise (mcp-eras 4.1).
const LEGACY_COUNTS_FOR: Duration = Duration::from_secs(24 * 60 * 60);

pub struct Destination {
    shared: Arc<Shared>,
    /// By what their clients can answer, and by the era that they are spoken to in where the server speaks both.
    links: Mutex<HashMap<(Class, Era), LinkHandle>>,
    alone: Mutex<Vec<LinkHandle>>,
    twins: Mutex<HashMap<Class, Vec<LinkHandle>>>,
    settings: Settings,
    count: AtomicUsize,
    last_number: AtomicU64,
}

/// What a destination's links share.
pub struct Shared {
    pub(super) config: config::Destination,
    pub(super) metrics: Arc<DestinationMetrics>,
    pub(super) max_message_bytes: usize,
    pub(super) owner: Owner,
    sessions: Arc<Sessions>,
    ledger: Mutex<Ledger>,
    /// Where the server is, if it is reached over HTTP.
    pub(super) target: Option<Arc<Target>>,
    /// Which eras the server was found to speak, and when.
    speaks: Mutex<(Speaks, Instant)>,
    /// Which headers calls of tools must carry, as any link has learned it, and how often that has changed.
    tools: Mutex<Arc<ToolHeaders>>,
    tools_version: AtomicU64,
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
        speaks: Speaks,
    ) -> Result<Arc<Self>, TargetError> {
        let target = match &config.http {
            Some(http) => {
                let headers = http.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
                let transport = http.transport.map(|transport| match transport {
                    config::Transport::Sse => Transport::Sse,
                    config::Transport::StreamableHttp => Transport::Streamable,
                });
                Some(Target::new(&http.url, headers, transport, daemon.max_message_bytes)?)
            }
            None => None,
        };
        let settings = Settings {
            request_timeout: daemon.request_timeout,
            max_request_time: daemon.max_request_time,
            max_message_bytes: daemon.max_message_bytes,
            keep_warm: config.keep_warm,
            keep_stateless: daemon.session_idle_timeout.unwrap_or(Duration::from_secs(30 * 60)),
            strict_streams: config.strict_streams,
            class: Class::NONE,
            alone: false,
            opening: Opening::Probe,
            prefers: Era::Legacy,
            wire: if target.is_some() { Wire::Http } else { Wire::Pipe },
            exclusive: false,
            number: 0,
        };
        let shared = Arc::new(Shared {
            metrics: parts.metrics.destination(&config.name),
            max_message_bytes: daemon.max_message_bytes,
            owner: parts.owner.clone(),
            sessions: parts.sessions.clone(),
            ledger: Mutex::new(Ledger::with_verdict(if quiet.is_some() { Verdict::Quiet } else { Verdict::Unknown })),
            server: Mutex::new(quiet.unwrap_or_default()),
            store: parts.store.clone(),
            target,
            speaks: Mutex::new((speaks, Instant::now())),
            tools: Mutex::default(),
            tools_version: AtomicU64::new(0),
            config,
        });
        Ok(Arc::new(Self {
            shared,
            links: Mutex::default(),
            alone: Mutex::default(),
            twins: Mutex::default(),
            settings,
            count: AtomicUsize::new(0),
            last_number: AtomicU64::new(0),
        }))
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
                let link = self.spawn(Settings { class, alone: true, ..self.settings.clone() });
                let mut alone = lock(&self.alone);
                alone.retain(|link| !link.commands.is_closed());
                alone.push(link.clone());
                link
            }
            // A modern server hears with every call what its client can answer.
            false if self.is_only_modern() => self.shared_link(Class::NONE, Era::Modern),
            false if self.config().asks == Some(false) => self.shared_link(Class::NONE, Era::Legacy),
            false => self.shared_link(class, Era::Legacy),
        }
    }

    /// The link for calls without a session.
    pub fn stateless_link(&self) -> LinkHandle {
        self.shared_link(Class::NONE, if self.is_only_modern() { Era::Modern } else { Era::Legacy })
    }

    /// The link for a call of the modern era: one where the owner of a question is certain, without a session to tell
    /// it by. There the calls that may be asked take turns; while one waits for its client's answer, the next goes to a
    /// further child. Returns too whether the call must drive out one that waits.
    pub fn modern_link(&self, class: Class, may_ask: bool) -> (LinkHandle, bool) {
        let quiet = self.verdict() == Verdict::Quiet;
        // Until it is known whether it speaks the modern era, all meet where they would meet if it does; from there they
        // are sent on.
        if self.speaks().modern != Some(false) {
            return (self.shared_link(Class::NONE, Era::Modern), false);
        }
        if self.config().asks == Some(false) {
            return (self.shared_link(Class::NONE, Era::Legacy), false);
        }
        if !class.answers_questions() || quiet {
            return (self.shared_link(class, Era::Legacy), false);
        }
        let mut twins = lock(&self.twins);
        let twins = twins.entry(class).or_default();
        twins.retain(|link| !link.commands.is_closed());
        if let Some(free) = twins.iter().find(|link| !may_ask || link.parked.age().is_none()) {
            return (free.clone(), false);
        }
        let full = twins.len() >= MAX_TWINS;
        match twins.iter().filter(|_| full).max_by_key(|link| link.parked.age()) {
            Some(oldest) => (oldest.clone(), true),
            None => {
                let mut settings = Settings { class, exclusive: true, ..self.settings.clone() };
                if !twins.is_empty() {
                    settings.keep_stateless = settings.keep_stateless.min(TWIN_WARM);
                }
                let link = self.spawn(settings);
                twins.push(link.clone());
                (link, false)
            }
        }
    }

    /// The link of a call that waits for its client's answer.
    pub fn link_numbered(&self, number: u64) -> Option<LinkHandle> {
        self.links().into_iter().find(|link| link.number == number)
    }

    fn shared_link(&self, class: Class, prefers: Era) -> LinkHandle {
        let only_modern = self.is_only_modern();
        let mut links = lock(&self.links);
        // A server that turned out to speak nothing but the modern era has one link, whoever was the first to find out.
        let first = links.get(&(class, Era::Legacy)).filter(|link| only_modern && !link.commands.is_closed());
        if let Some(first) = first.filter(|_| !links.contains_key(&(class, Era::Modern))) {
            return first.clone();
        }
        // A shared link only ends with the daemon, or by a bug in it: then the next session gets a new one.
        if let Some(link) = links.get(&(class, prefers)).filter(|link| !link.commands.is_closed()) {
            return link.clone();
        }
        let link = self.spawn(Settings { class, prefers, ..self.settings.clone() });
        links.insert((class, prefers), link.clone());
        link
    }

    fn spawn(&self, settings: Settings) -> LinkHandle {
        let speaks = self.speaks();
        let opening = match (self.config().era, settings.prefers) {
            (Some(era), _) => Opening::Pinned(era),
            (None, Era::Legacy) if speaks.legacy == Some(true) => Opening::Learned(Era::Legacy),
            (None, Era::Modern) if speaks.modern == Some(true) => Opening::Learned(Era::Modern),
            // What its clients do not speak is all that is left.
            (None, Era::Legacy) if speaks.legacy == Some(false) => Opening::Learned(Era::Modern),
            (None, Era::Modern) if speaks.modern == Some(false) => Opening::Learned(Era::Legacy),
            (None, _) => Opening::Probe,
        };
        let number = self.last_number.fetch_add(1, Ordering::Relaxed) + 1;
        LinkHandle::spawn(Settings { opening, number, ..settings }, self.shared.clone())
    }

    fn is_only_modern(&self) -> bool {
        self.speaks().legacy == Some(false)
    }

    /// Which eras the server speaks, as far as that is known or set.
    pub fn speaks(&self) -> Speaks {
        self.config().era.map_or_else(|| self.shared.known(), Speaks::only)
    }

    /// Whether a session of this class gets a child of its own.
    fn isolates(&self, class: Class) -> bool {
        match self.config().process {
            Process::PerSession => true,
            Process::SharedAlways => false,
            Process::Shared => {
                class.answers_questions()
                    && self.config().asks != Some(false)
                    && self.verdict() != Verdict::Quiet
                    && !self.is_only_modern()
            }
        }
    }

    pub fn verdict(&self) -> Verdict {
        lock(&self.shared.ledger).verdict()
    }

    /// The links that exist.
    pub fn links(&self) -> Vec<LinkHandle> {
        let mut links: Vec<LinkHandle> = lock(&self.links).values().cloned().collect();
        links.extend(lock(&self.alone).iter().cloned());
        links.extend(lock(&self.twins).values().flatten().cloned());
        links
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

    pub(super) fn greeted(&self, name: &str, version: &str, speaks: Speaks) {
        self.learned(speaks);
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

    pub(super) fn know_tools(&self, tools: Arc<ToolHeaders>) {
        *lock(&self.tools) = tools;
        self.tools_version.fetch_add(1, Ordering::Release);
    }

    /// What is known of the tools, if it is newer than what was seen.
    pub(super) fn tools_since(&self, seen: &mut u64) -> Option<Arc<ToolHeaders>> {
        let version = self.tools_version.load(Ordering::Acquire);
        (version != *seen).then(|| {
            *seen = version;
            lock(&self.tools).clone()
        })
    }

    /// Which eras the server was found to speak, as long as that counts.
    fn known(&self) -> Speaks {
        let (mut speaks, at) = *lock(&self.speaks);
        if speaks.modern == Some(false) && at.elapsed() >= LEGACY_COUNTS_FOR {
            speaks.modern = None;
        }
        speaks
    }

    fn learned(&self, speaks: Speaks) {
        let (before, now) = {
            let mut known = lock(&self.speaks);
            let before = known.0;
            *known = (before.and(speaks), Instant::now());
            (before, known.0)
        };
        let Some(name) = now.name().filter(|_| now != before && self.config.era.is_none()) else { return };
        let destination = key(&self.config);
        if let Some(store) = self.store.clone() {
            tokio::spawn(async move {
                if let Err(error) = store.remember_era(&destination, name, now_us()).await {
                    warn!(%error, "Cannot remember which era a server speaks");
                }
            });
        }
    }

    /// Notes a call that was answered without a question. Returns whether the server is known to be quiet since now.
    pub(super) fn answered(&self, tool: &str) -> bool {
        let learned = lock(&self.ledger).answered(tool);
        if !learned {
            return false;
        }
        let destination = key(&self.config);
        let (server, version) = lock(&self.server).clone();
        info!(
            destination = self.config.name,
            server, version, "Learned that this server asks nothing; clients share it now"
        );
        if let Some(store) = self.store.clone() {
            tokio::spawn(async move {
                if let Err(error) = store.remember_quiet(&destination, &server, &version, now_us()).await {
                    warn!(%error, "Cannot remember that a server is quiet");
                }
            });
        }
        true
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

/// What a destination is remembered by: another command, or another place, is another server.
pub fn key(config: &config::Destination) -> String {
    match &config.http {
        Some(http) => format!("{} {}", config.name, http.shown_url()),
        None => format!("{} {}", config.name, config.command.join(" ")),
    }
}

/// The eras that were learned of a destination, if it was not too long ago.
pub fn still_counts(learned: &LearnedEra) -> Option<Speaks> {
    let speaks = Speaks::named(&learned.era)?;
    let age = now_us().saturating_sub(learned.learned_at_us);
    let limit = i64::try_from(LEGACY_COUNTS_FOR.as_micros()).unwrap_or(i64::MAX);
    (speaks.modern == Some(true) || age < limit).then_some(speaks)
}

fn now_us() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_micros()).unwrap_or(i64::MAX)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
