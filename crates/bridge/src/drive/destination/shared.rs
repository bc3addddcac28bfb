//! What the links of one destination share, and what they have learned of its server: which eras it speaks, and whether
//! it ever asks its clients anything (B-04).

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use prism_core::mcp::{
    Method, SpokenEras,
    link::SessionKey,
    params::ToolHeaders,
    quiet::{QuestionLedger, QuietVerdict},
};
use prism_os::census::OwnerDaemon;
use prism_store::{LearnedEra, Store, StoredList};
use tracing::{info, warn};
use uuid::Uuid;

use super::{BridgeContext, BuiltIn, ToolDefinitions, lock};
use crate::drive::{
    Environment, SessionTable, health::HealthObservations, reach::StreamObserver, stderr::StderrTail, vitals::LastFault,
};
use prism_config::{self as config, Config};
use prism_mcp::{kit, remote::RemoteTarget};
use prism_telemetry::metrics::DestinationMetrics;

/// How long it counts that a server was found not to speak an era: that it learned it is not noticed otherwise
/// (mcp-eras 4.1).
const REFUSAL_COUNTS_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// What a destination's links share.
pub struct DestinationState {
    pub(crate) config: config::DestinationConfig,
    pub(crate) metrics: Arc<DestinationMetrics>,
    pub(crate) trouble: LastFault,
    /// How the last use of its server went.
    pub(crate) sightings: HealthObservations,
    /// What its servers last wrote to stderr.
    pub(crate) stderr: Arc<StderrTail>,
    max_message_bytes: AtomicUsize,
    pub(crate) owner: OwnerDaemon,
    pub(crate) environment: Arc<Environment>,
    pub(super) sessions: Arc<SessionTable>,
    ledger: Mutex<QuestionLedger>,
    pub(super) definitions: ToolDefinitions,
    /// The server itself, if it is one of Prism's own.
    pub(crate) built_in: Option<Arc<kit::BuiltinServer>>,
    /// Its tools may wait for hours; its clients are agents ([`BuiltIn`]).
    pub(super) waits: bool,
    pub(super) meets_agents: bool,
    /// Where the server is, if it is reached over HTTP.
    pub(crate) target: Option<Arc<RemoteTarget>>,
    /// Which eras the server was found to speak, and when.
    speaks: Mutex<(SpokenEras, Instant)>,
    /// The server has said so itself, in this life of the daemon's.
    heard: AtomicBool,
    /// Which headers calls of tools must carry, as any link has learned it, and how often that has changed.
    tools: Mutex<Arc<ToolHeaders>>,
    tools_version: AtomicU64,
    /// Name and version of the server that runs, or of the one that was learned to be quiet.
    server: Mutex<(String, String)>,
    store: Option<Store>,
    /// How often its links have heard that tools, prompts or resources are no longer what they were.
    list_changes: [AtomicU64; 3],
    /// What it listed at the hub, in another life of the daemon's.
    lists: Vec<StoredList>,
}

/// What was learned of a server, in another life of the daemon's.
#[derive(Default)]
pub struct LearnedServer {
    /// Name and version of the server that was found to be quiet.
    pub quiet: Option<(String, String)>,
    pub speaks: SpokenEras,
    /// What it listed at the hub.
    pub lists: Vec<StoredList>,
}

impl DestinationState {
    pub(super) fn new(
        config: config::DestinationConfig,
        daemon: &Config,
        context: &BridgeContext,
        LearnedServer { quiet, speaks, lists }: LearnedServer,
        target: Option<Arc<RemoteTarget>>,
        built_in: Option<BuiltIn>,
    ) -> Self {
        Self {
            metrics: context.metrics.destination(&config.name),
            trouble: LastFault::default(),
            sightings: HealthObservations::default(),
            stderr: Arc::default(),
            heard: AtomicBool::new(false),
            max_message_bytes: AtomicUsize::new(daemon.max_message_bytes),
            owner: context.owner.clone(),
            environment: context.environment.clone(),
            sessions: context.sessions.clone(),
            ledger: Mutex::new(QuestionLedger::with_verdict(if quiet.is_some() {
                QuietVerdict::Quiet
            } else {
                QuietVerdict::Unknown
            })),
            server: Mutex::new(quiet.unwrap_or_default()),
            definitions: ToolDefinitions::default(),
            lists,
            store: context.store.clone(),
            waits: built_in.as_ref().is_some_and(|built_in| built_in.waits),
            meets_agents: built_in.as_ref().is_some_and(|built_in| built_in.meets_agents),
            built_in: built_in.map(|built_in| Arc::new(built_in.server)),
            target,
            speaks: Mutex::new((speaks, Instant::now())),
            tools: Mutex::default(),
            tools_version: AtomicU64::new(0),
            list_changes: Default::default(),
            config,
        }
    }

    /// Who wants to know which clients can be reached here. Other servers' clients are nobody's business.
    pub(crate) fn reach(&self) -> Option<&Arc<dyn StreamObserver>> {
        if self.meets_agents { self.sessions.reached().get() } else { None }
    }

    pub(crate) fn sessions(&self) -> &Arc<SessionTable> {
        &self.sessions
    }

    /// The longest message that its server may send.
    pub(crate) fn max_message_bytes(&self) -> usize {
        self.max_message_bytes.load(Ordering::Relaxed)
    }

    pub(super) fn limit(&self, max_message_bytes: usize) {
        self.max_message_bytes.store(max_message_bytes, Ordering::Relaxed);
        if let Some(target) = &self.target {
            target.limit(max_message_bytes);
        }
    }

    pub(super) fn verdict(&self) -> QuietVerdict {
        lock(&self.ledger).verdict()
    }

    /// The link ended a session by itself.
    pub(crate) fn ended(&self, key: SessionKey) {
        self.sessions.remove(&Uuid::from_u128(key.0));
    }

    pub(crate) fn greeted(&self, name: &str, version: &str, speaks: SpokenEras) {
        self.heard.store(true, Ordering::Relaxed);
        self.definitions.doubt();
        self.learned(speaks);
        let now = (name.to_owned(), version.to_owned());
        let before = std::mem::replace(&mut *lock(&self.server), now.clone());
        // What was learned of another version says nothing about this one.
        if before != now && before != Default::default() {
            *lock(&self.ledger) = QuestionLedger::default();
            self.forget();
        }
    }

    pub(crate) fn listed(&self, tools: &[String], whole: bool) {
        let mut ledger = lock(&self.ledger);
        ledger.page(tools);
        if whole {
            ledger.listed();
        }
    }

    pub(crate) fn definitions(&self) -> &ToolDefinitions {
        &self.definitions
    }

    /// A link has heard that a list has changed. Nobody is told of it before that is known here: who is told, asks.
    pub(crate) fn note_change(&self, told: Method) {
        if told == Method::ToolsChanged {
            self.definitions.doubt();
        }
        self.list_changes[changed_list(told)].fetch_add(1, Ordering::Release);
    }

    /// How often that was so.
    pub(crate) fn changes(&self, told: Method) -> u64 {
        self.list_changes[changed_list(told)].load(Ordering::Acquire)
    }

    pub(crate) fn know_tools(&self, tools: Arc<ToolHeaders>) {
        *lock(&self.tools) = tools;
        self.tools_version.fetch_add(1, Ordering::Release);
    }

    /// What is known of the tools, if it is newer than what was seen.
    pub(crate) fn tools_since(&self, seen: &mut u64) -> Option<Arc<ToolHeaders>> {
        let version = self.tools_version.load(Ordering::Acquire);
        (version != *seen).then(|| {
            *seen = version;
            lock(&self.tools).clone()
        })
    }

    /// Which eras the server was found to speak, as long as that counts.
    pub(super) fn known(&self) -> SpokenEras {
        what_counts(*lock(&self.speaks))
    }

    pub(super) fn has_heard(&self) -> bool {
        self.heard.load(Ordering::Relaxed)
    }

    /// Name and version of the server, as it last gave them.
    pub(super) fn server(&self) -> Option<(String, String)> {
        Some(lock(&self.server).clone()).filter(|server| *server != Default::default())
    }

    fn learned(&self, speaks: SpokenEras) {
        let (before, now) = {
            let mut known = lock(&self.speaks);
            let before = what_counts(*known);
            let now = before.and(speaks);
            // What it refused counts from then on, however often it has greeted us since.
            let since = if now.refuses_more_than(before) { Instant::now() } else { known.1 };
            *known = (now, since);
            (before, now)
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

    /// What it listed in another life of the daemon's: no items, if it was waited for in vain.
    pub(crate) fn remembered(&self) -> &[StoredList] {
        &self.lists
    }

    /// Has it written down what it lists now, or that it was waited for in vain.
    pub(crate) fn remember(&self, list: String, items: Option<String>) {
        let Some(store) = self.store.clone().filter(|_| self.built_in.is_none()) else { return };
        let listed = StoredList { destination: key(&self.config), list, items };
        tokio::spawn(async move {
            if let Err(error) = store.remember_listed(listed, now_us()).await {
                warn!(%error, "Cannot remember what a server lists");
            }
        });
    }

    /// Notes a call that was answered without a question. Returns whether the server is known to be quiet since now.
    pub(crate) fn answered(&self, tool: &str) -> bool {
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

    pub(crate) fn asked(&self) {
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

/// What of that is still believed: a server that refused an era may have learned it.
fn what_counts((speaks, since): (SpokenEras, Instant)) -> SpokenEras {
    if since.elapsed() < REFUSAL_COUNTS_FOR { speaks } else { speaks.without_refusals() }
}

/// What a destination is remembered by: another command, or another place, is another server.
fn changed_list(told: Method) -> usize {
    match told {
        Method::ToolsChanged => 0,
        Method::PromptsChanged => 1,
        _ => 2,
    }
}

pub fn key(config: &config::DestinationConfig) -> String {
    match &config.http {
        Some(http) => format!("{} {}", config.name, http.shown_url()),
        None => format!("{} {}", config.name, config.command.join(" ")),
    }
}

/// The eras that were learned of a destination, if it was not too long ago.
pub fn still_counts(learned: &LearnedEra) -> Option<SpokenEras> {
    let speaks = SpokenEras::named(&learned.era)?;
    let age = now_us().saturating_sub(learned.learned_at_us);
    let limit = i64::try_from(REFUSAL_COUNTS_FOR.as_micros()).unwrap_or(i64::MAX);
    Some(if age < limit { speaks } else { speaks.without_refusals() })
}

/// Microseconds since 1970, UTC, as the store has them.
pub fn now_us() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_micros()).unwrap_or(i64::MAX)
}
