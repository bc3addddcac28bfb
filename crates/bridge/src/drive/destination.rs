//! One destination: its links, who gets which (B-04), and how many sessions it may have (B-10).

mod audience;
mod definitions;
mod look;
mod shared;

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use prism_core::mcp::{
    ClientClass, Era, EraDiscovery, LinkSettings, SpokenEras, UpstreamKind, link::SessionKey, quiet::QuietVerdict,
};
use prism_os::census::OwnerDaemon;
use prism_store::Store;
use tracing::info;

pub use audience::Audience;
pub use definitions::{DefinitionLookup, PinCheck, ToolDefinition, ToolDefinitions};
pub use look::SharingModel;
pub use shared::{DestinationState, LearnedServer, key, now_us, still_counts};

use super::{Environment, LinkCommand, LinkHandle, SessionEntry, SessionTable};
use prism_config::{self as config, Config, ProcessSharing};
use prism_mcp::kit;
use prism_mcp::remote::{RemoteTarget, RemoteTargetError};
use prism_telemetry::metrics::{DestinationMetrics, Metrics};

/// How long a session must have been idle before a new one may take its place at the cap. A client between two calls
/// of one task must not lose its session to the next editor window.
pub(super) const EVICTABLE_AFTER: Duration = Duration::from_secs(60);

/// Children of one class for calls without a session: each but the first is there because all before it wait for
/// somebody's answer. Beyond it the call that has waited the longest gives way.
const MAX_TWINS: usize = 8;
/// As long as a call of Prism's own server may take: a time that no client waits for, and that a clock can still tell.
const FOR_EVER: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// How long such a further child outlives its last call.
const TWIN_WARM: Duration = Duration::from_secs(60);

pub struct Destination {
    shared: Arc<DestinationState>,
    /// By what their clients can answer, and by the era that they are spoken to in where the server speaks both.
    links: Mutex<HashMap<(ClientClass, Era), LinkHandle>>,
    alone: Mutex<Vec<LinkHandle>>,
    twins: Mutex<HashMap<ClientClass, Vec<LinkHandle>>>,
    /// What its links begin with. The limits in it can become others while everything else stays.
    settings: RwLock<LinkSettings>,
    max_sessions: AtomicUsize,
    /// Which of its tools may be called. It can become another while everything else stays.
    tools: RwLock<Arc<config::ToolsConfig>>,
    count: AtomicUsize,
    last_number: AtomicU64,
}

/// What all destinations have in common.
#[derive(Clone)]
pub struct BridgeContext {
    pub sessions: Arc<SessionTable>,
    pub metrics: Arc<Metrics>,
    pub owner: OwnerDaemon,
    pub store: Option<Store>,
    pub environment: Arc<Environment>,
}

/// A server that Prism is itself.
pub struct BuiltIn {
    pub server: kit::BuiltinServer,
    /// Its tools may wait for hours, for something to come or for a person. They bound themselves.
    pub waits: bool,
    /// Its clients are agents: it has to know who calls, and where their bells ring is told.
    pub meets_agents: bool,
}

/// A place among a destination's sessions, given back unless the session is opened.
pub struct SessionSlot {
    destination: Arc<Destination>,
    kept: bool,
}

/// There is no room for another session.
pub struct SessionsFull {
    pub max_sessions: usize,
}

// === impl Destination ===

impl Destination {
    pub fn new(
        config: config::DestinationConfig,
        daemon: &Config,
        context: &BridgeContext,
        learned: LearnedServer,
    ) -> Result<Arc<Self>, RemoteTargetError> {
        Self::make(config, daemon, context, learned, None)
    }

    /// A server that Prism is itself. It speaks the modern era, and the link translates.
    pub fn built_in(
        config: config::DestinationConfig,
        server: BuiltIn,
        daemon: &Config,
        context: &BridgeContext,
    ) -> Result<Arc<Self>, RemoteTargetError> {
        let config = config::DestinationConfig { era: Some(Era::Modern), asks: Some(false), ..config };
        Self::make(config, daemon, context, LearnedServer::default(), Some(server))
    }

    fn make(
        config: config::DestinationConfig,
        daemon: &Config,
        context: &BridgeContext,
        learned: LearnedServer,
        built_in: Option<BuiltIn>,
    ) -> Result<Arc<Self>, RemoteTargetError> {
        let target = match &config.http {
            Some(http) => {
                // Its headers may hold secrets, which are looked up when it is connected to.
                Some(RemoteTarget::new(&http.url, Vec::new(), http.transport, daemon.max_message_bytes)?)
            }
            None => None,
        };
        let waits = built_in.as_ref().is_some_and(|built_in| built_in.waits);
        let times = config.times.within(daemon);
        let settings = LinkSettings {
            request_timeout: times.request_timeout.filter(|_| !waits),
            max_request_time: if waits { FOR_EVER } else { times.max_request_time },
            start_timeout: times.start_timeout,
            leaving_cancels: waits,
            max_message_bytes: daemon.max_message_bytes,
            keep_warm: config.keep_warm,
            keep_stateless: keep_stateless_for(daemon),
            idle_stop: config.idle_stop.filter(|_| config.http.is_none() && built_in.is_none()),
            strict_streams: config.strict_streams,
            class: ClientClass::NONE,
            alone: false,
            opening: EraDiscovery::Probe,
            prefers: Era::Legacy,
            wire: if target.is_some() || built_in.is_some() { UpstreamKind::Http } else { UpstreamKind::Pipe },
            exclusive: false,
            number: 0,
        };
        let tools = RwLock::new(Arc::new(config.tools.clone()));
        let max_sessions = AtomicUsize::new(config.max_sessions);
        let shared = Arc::new(DestinationState::new(config, daemon, context, learned, target, built_in));
        Ok(Arc::new(Self {
            shared,
            links: Mutex::default(),
            alone: Mutex::default(),
            twins: Mutex::default(),
            settings: RwLock::new(settings),
            max_sessions,
            tools,
            count: AtomicUsize::new(0),
            last_number: AtomicU64::new(0),
        }))
    }

    pub fn config(&self) -> &config::DestinationConfig {
        &self.shared.config
    }

    /// Which of its tools may be called, as of now.
    pub fn tools(&self) -> Arc<config::ToolsConfig> {
        self.tools.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From now on other rules count. The server hears nothing of it.
    pub fn obey(&self, tools: &config::ToolsConfig) {
        *self.tools.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(tools.clone());
    }

    /// Whether it is what this config would make, but for the rules and limits that can be changed under way, and for the word
    /// that it stands below in the file.
    pub fn is_as(&self, config: &config::DestinationConfig) -> bool {
        let now = &self.shared.config;
        let (table, tools, max_sessions, times) = (now.table, now.tools.clone(), now.max_sessions, now.times);
        *now == config::DestinationConfig { table, tools, max_sessions, times, ..config.clone() }
    }

    /// From now on other limits count, also for what runs already: no process is concerned by them.
    pub fn limit(&self, config: &config::DestinationConfig, daemon: &Config) {
        let waits = self.shared.waits;
        let times = config.times.within(daemon);
        let settings = {
            let mut settings = self.settings.write().unwrap_or_else(PoisonError::into_inner);
            settings.request_timeout = times.request_timeout.filter(|_| !waits);
            settings.max_request_time = if waits { FOR_EVER } else { times.max_request_time };
            settings.start_timeout = times.start_timeout;
            settings.max_message_bytes = daemon.max_message_bytes;
            settings.keep_stateless = keep_stateless_for(daemon);
            settings.clone()
        };
        self.max_sessions.store(config.max_sessions, Ordering::Relaxed);
        self.shared.limit(daemon.max_message_bytes);
        for link in self.living_links() {
            let settings = Box::new(settings.clone());
            tokio::spawn(async move { link.commands.send(LinkCommand::Limit(settings)).await });
        }
    }

    fn settings(&self) -> LinkSettings {
        self.settings.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn max_sessions(&self) -> usize {
        self.max_sessions.load(Ordering::Relaxed)
    }

    /// Whether it is a server that Prism is itself.
    pub fn is_built_in(&self) -> bool {
        self.shared.built_in.is_some()
    }

    /// Whether its clients are agents, so that it has to know who calls.
    pub fn meets_agents(&self) -> bool {
        self.shared.meets_agents
    }

    /// What its links share.
    pub(crate) fn shared(&self) -> &DestinationState {
        &self.shared
    }

    /// How long a server may take to start.
    pub(crate) fn start_timeout(&self) -> Duration {
        self.settings().start_timeout.unwrap_or(FOR_EVER)
    }

    /// Tells whoever wants to know of Prism's own clients that a session is over.
    pub fn session_ended(&self, session: SessionKey) {
        if let Some(reach) = self.shared.reach() {
            reach.session_ended(session);
        }
    }

    pub fn metrics(&self) -> &Arc<DestinationMetrics> {
        &self.shared.metrics
    }

    /// Makes room for one more session: within the cap, or in the place of the longest idle one. A part of a session of
    /// the hub's goes first, as its client does not notice: the window may be open for days after one call.
    pub fn place(self: &Arc<Self>) -> Result<SessionSlot, SessionsFull> {
        let max_sessions = self.max_sessions();
        let try_enter = || {
            self.count
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| (count < max_sessions).then_some(count + 1))
                .is_ok()
        };
        if try_enter() {
            return Ok(SessionSlot { destination: self.clone(), kept: false });
        }
        let sessions = &self.shared.sessions;
        let idle = sessions.spare_part(self);
        if let Some(idle) = idle.or_else(|| sessions.idle_for(EVICTABLE_AFTER, Some(self)).into_iter().next())
            && let Some(entry) = self.shared.sessions.remove(&idle.id)
        {
            info!(destination = self.config().name, "Ended the longest idle session to make room for a new one");
            close(&entry);
        }
        if try_enter() {
            Ok(SessionSlot { destination: self.clone(), kept: false })
        } else {
            Err(SessionsFull { max_sessions })
        }
    }

    /// Gives the place of a session back.
    pub fn leave(&self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }

    /// The link for a new session.
    pub fn link_for(&self, class: ClientClass) -> LinkHandle {
        match self.isolates(class) {
            true => {
                let link = self.spawn(LinkSettings { class, alone: true, ..self.settings() });
                let mut alone = lock(&self.alone);
                alone.retain(|link| !link.commands.is_closed());
                alone.push(link.clone());
                link
            }
            // A modern server hears with every call what its client can answer.
            false if self.is_only_modern() => self.shared_link(ClientClass::NONE, Era::Modern),
            false if self.config().asks == Some(false) => self.shared_link(ClientClass::NONE, Era::Legacy),
            false => self.shared_link(class, Era::Legacy),
        }
    }

    /// The link for calls without a session.
    pub fn stateless_link(&self) -> LinkHandle {
        self.shared_link(ClientClass::NONE, if self.is_only_modern() { Era::Modern } else { Era::Legacy })
    }

    /// The link for a call of the modern era: one where the owner of a question is certain, without a session to tell
    /// it by. There the calls that may be asked take turns; while one waits for its client's answer, the next goes to a
    /// further child. Returns too whether the call must drive out one that waits.
    pub fn modern_link(&self, class: ClientClass, may_ask: bool) -> (LinkHandle, bool) {
        // Until it is known whether it speaks the modern era, all meet where they would meet if it does; from there they
        // are sent on.
        if self.speaks().modern != Some(false) {
            return (self.shared_link(ClientClass::NONE, Era::Modern), false);
        }
        let class = self.class_shown(class);
        if !self.has_twins(class) {
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
                let mut settings = LinkSettings { class, exclusive: true, ..self.settings() };
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

    fn shared_link(&self, class: ClientClass, prefers: Era) -> LinkHandle {
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
        let link = self.spawn(LinkSettings { class, prefers, ..self.settings() });
        links.insert((class, prefers), link.clone());
        link
    }

    fn spawn(&self, settings: LinkSettings) -> LinkHandle {
        let speaks = self.speaks();
        let opening = match (self.config().era, settings.prefers) {
            (Some(era), _) => EraDiscovery::Pinned(era),
            (None, Era::Legacy) if speaks.legacy == Some(true) => EraDiscovery::Learned(Era::Legacy),
            (None, Era::Modern) if speaks.modern == Some(true) => EraDiscovery::Learned(Era::Modern),
            // What its clients do not speak is all that is left.
            (None, Era::Legacy) if speaks.legacy == Some(false) => EraDiscovery::Learned(Era::Modern),
            (None, Era::Modern) if speaks.modern == Some(false) => EraDiscovery::Learned(Era::Legacy),
            (None, _) => EraDiscovery::Probe,
        };
        let number = self.last_number.fetch_add(1, Ordering::Relaxed) + 1;
        LinkHandle::spawn(LinkSettings { opening, number, ..settings }, self.shared.clone())
    }

    pub fn is_only_modern(&self) -> bool {
        self.speaks().legacy == Some(false)
    }

    /// Which eras the server speaks, as far as that is known or set.
    pub fn speaks(&self) -> SpokenEras {
        self.config().era.map_or_else(|| self.shared.known(), SpokenEras::only)
    }

    /// Whether a session of this class gets a child of its own.
    fn isolates(&self, class: ClientClass) -> bool {
        match self.config().process {
            ProcessSharing::PerSession => true,
            ProcessSharing::SharedAlways => false,
            // A session there costs no process, and its server may keep things by it.
            ProcessSharing::Shared if self.config().http.is_some() => !self.is_only_modern(),
            ProcessSharing::Shared => {
                class.answers_questions()
                    && self.config().asks != Some(false)
                    && self.verdict() != QuietVerdict::Quiet
                    && !self.is_only_modern()
            }
        }
    }

    pub fn verdict(&self) -> QuietVerdict {
        self.shared.verdict()
    }

    /// The links that exist.
    pub fn links(&self) -> Vec<LinkHandle> {
        let mut links: Vec<LinkHandle> = lock(&self.links).values().cloned().collect();
        links.extend(lock(&self.alone).iter().cloned());
        links.extend(lock(&self.twins).values().flatten().cloned());
        links
    }
}

// === impl SessionSlot ===

impl SessionSlot {
    /// The session is open, and gives its place back with [`Destination::leave`].
    pub fn keep(mut self) -> Arc<Destination> {
        self.kept = true;
        self.destination.clone()
    }
}

impl Drop for SessionSlot {
    fn drop(&mut self) {
        if !self.kept {
            self.destination.leave();
        }
    }
}

/// How long a child outlives the last call that had no session: as long as a session would have.
fn keep_stateless_for(daemon: &Config) -> Duration {
    daemon.session_idle_timeout.unwrap_or(Duration::from_secs(30 * 60))
}

/// Tells a link that a session is over, without waiting for it.
pub fn close(entry: &SessionEntry) {
    let (link, key) = (entry.link.clone(), entry.key());
    tokio::spawn(async move { link.commands.send(LinkCommand::Close { key, done: None }).await });
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
