//! The gate at work: agents ask, a person decides out of band, and what was decided is what happens. It runs
//! `core::policy` over the store, the audit log, the runtime and the holders' sockets, and decides nothing that could be
//! decided there.
//!
//! ```text
//!  request ── store ── person (console, `prism approve`, HTTP) ──► grant ──► holder's socket
//!  action ── core::policy ── audit (on disk) ── runtime: prepare ──[ person ]── run ── audit
//! ```
//! Nothing happens that is not in the audit log first (A-11), and nothing is acknowledged that is not on disk. The one
//! exception is taking away, which nothing may keep from being done: see `ends`.

mod act;
mod calls;
mod confirm;
mod desk;
mod editors;
mod ends;
mod flood;
pub mod grant_server;
mod grants;
mod live;
mod paper;
mod requests;
pub mod router;
pub mod secret;
mod trouble;
mod upkeep;
pub mod views;

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

pub use act::ActionWaiter;
pub use desk::ChangeCounts;
pub use grants::IssuedGrant;
pub use live::{GrantEnd, GrantLease};
use prism_config::{self as config, home::Token};
use prism_core::{
    mesh::Name,
    policy::{GrantRoot, Redaction, RequestState as Stage},
};
use prism_editor::BuiltinEditor;
use prism_os::clock::Clock;
use prism_store::{
    Store,
    audit::AuditLog,
    gate::{GrantFilter, GrantRow},
};
use prism_telemetry::{events::EventBus, gate::GateMetrics};
use tokio::{
    sync::{Notify, watch},
    time::timeout,
};
use tracing::info;
pub use trouble::GateError;
pub use views::read_id;

use self::{ends::UnwrittenEnds, flood::RefusalCounts, live::LiveGrant};
use crate::router::EditorRouter;

/// How long the editor has for its end. What runs on then is killed with the rest.
const EDITOR_ENDS_WITHIN: Duration = Duration::from_secs(3);

/// All of the gate. There is one for the daemon's life.
pub struct Gate {
    state: Mutex<GateState>,
    store: Store,
    pub audit: Arc<AuditLog>,
    audit_trouble: Option<String>,
    /// The number of the newest line that the database knows of.
    noted: AtomicU64,
    pub metrics: Arc<GateMetrics>,
    pub events: EventBus,
    runtime: Arc<EditorRouter>,
    messenger: OnceLock<Arc<dyn Messenger>>,
    /// What opens approval. No agent has it (A-03).
    secret: Token,
    /// What editors show, and no agent has either: who is taken for an editor sees what all agents do there.
    plugin_secret: Token,
    settings: RwLock<Arc<GateSettings>>,
    /// Whose machine this is, for the audit.
    person: String,
    clock: Clock,
    /// Rung when the next end of a grant may be another.
    changed: Arc<Notify>,
    /// Grows with each change of what a person looks at.
    changes: watch::Sender<ChangeCounts>,
    /// Rung at each decision on a request.
    decided: watch::Sender<u64>,
    /// Whether anything may be waiting for a person, and so for its end.
    awaits: AtomicBool,
    this: Weak<Self>,
}

/// Who brings word to those that the gate cannot reach itself. Neither waits.
pub trait Messenger: Send + Sync {
    /// Shows a notice on the person's screen, where there is one.
    fn notify(&self, text: &str);

    /// Tells an agent what came of something that it has asked for.
    fn tell_agent(&self, agent: Name, text: String);
}

/// What the gate is made of.
pub struct GateSetup {
    pub store: Store,
    pub audit: Arc<AuditLog>,
    /// What is wrong with the end of the log, as its opening has found.
    pub audit_trouble: Option<String>,
    /// Where ends are noted that nothing else has room for.
    pub ends: PathBuf,
    pub runtime: BuiltinEditor,
    pub metrics: Arc<GateMetrics>,
    pub secret: Token,
    /// What editors show.
    pub plugin_secret: Token,
    pub settings: GateSettings,
    /// Whose machine this is, for the audit.
    pub person: String,
}

/// What a person has set. A reload puts another in its place, whole.
#[derive(Clone, Debug, Default)]
pub struct GateSettings {
    pub gate: config::GateConfig,
    redaction: Redaction,
    /// Whether calls that no rule is about are written down too.
    audits_all: bool,
    /// Full files of the audit log that are kept; 0: all.
    keep: usize,
}

#[derive(Default)]
struct GateState {
    live: HashMap<u128, Arc<LiveGrant>>,
    confirmations: confirm::ConfirmWaiters,
    flood: RefusalCounts,
    owing: UnwrittenEnds,
}

// === impl Gate ===

impl Gate {
    /// Takes up what the store has of the gate.
    pub async fn open(opening: GateSetup) -> anyhow::Result<Arc<Self>> {
        let GateSetup { store, audit, audit_trouble, ends, runtime, metrics, secret, plugin_secret, settings, person } =
            opening;
        let (owing, marks) = UnwrittenEnds::open(&ends);
        let gate = Arc::new_cyclic(|this| Self {
            state: Mutex::new(GateState { owing, ..GateState::default() }),
            store,
            audit,
            audit_trouble,
            noted: AtomicU64::new(0),
            runtime: EditorRouter::new(runtime, metrics.clone(), settings.gate.editors_decide),
            metrics,
            events: EventBus::default(),
            messenger: OnceLock::new(),
            secret,
            plugin_secret,
            settings: RwLock::new(Arc::new(settings)),
            person,
            clock: Clock::start(),
            changed: Arc::default(),
            changes: watch::Sender::default(),
            decided: watch::Sender::new(0),
            awaits: AtomicBool::new(true),
            this: Weak::clone(this),
        });
        // Who waited for an answer is gone with the last daemon; what is allowed late still counts for who asks again.
        let alive = gate.store.grants(&GrantFilter { alive_only: true, limit: u32::MAX, ..GrantFilter::default() })?;
        let count = alive.len();
        for row in alive {
            gate.enliven(row);
        }
        if count > 0 {
            info!(grants = count, "Took up the grants of the last daemon");
        }
        gate.end_what_was_marked(marks).await;
        tokio::spawn(editors::watch(Arc::downgrade(&gate)));
        tokio::spawn(upkeep::ends(Arc::downgrade(&gate)));
        tokio::spawn(upkeep::housekeeping(Arc::downgrade(&gate)));
        Ok(gate)
    }

    /// Tells it who brings notices to the person and word to agents.
    pub fn tells_by(&self, messenger: Arc<dyn Messenger>) {
        let _ = self.messenger.set(messenger);
    }

    /// Whether this is the management secret, in a time that does not depend on where it differs.
    pub fn is_management(&self, shown: &[u8]) -> bool {
        self.secret.matches(shown)
    }

    /// The same of what editors show.
    pub fn is_plugin(&self, shown: &[u8]) -> bool {
        self.plugin_secret.matches(shown)
    }

    /// What counts now. Whoever looks twice may see two.
    pub fn settings(&self) -> Arc<GateSettings> {
        self.settings.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Goes on with other settings. They count from the next request, grant, question and line on; what was given is as it
    /// was given. (R-45)
    pub fn obey(&self, settings: GateSettings) {
        self.audit.keep(settings.keep);
        self.runtime.let_decide(settings.gate.editors_decide);
        *self.settings.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(settings);
    }

    /// Ends what is under way in the editor: terminals, language servers. Unsaved text is kept.
    /// A port that the daemon listens at: no holder's program reaches it, whatever network it has.
    pub fn keep_from(&self, port: u16) {
        self.runtime.keep_from(port);
    }

    pub async fn end_editor(&self) {
        let _ = timeout(EDITOR_ENDS_WITHIN, self.runtime.close()).await;
    }

    /// Closes the log.
    pub fn close(&self) {
        self.record_rest_of_flood();
        self.audit.close();
    }

    fn state(&self) -> MutexGuard<'_, GateState> {
        // Nothing panics while it holds the lock, and each change of it is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a grant one that can be held.
    fn enliven(&self, row: GrantRow) -> Option<Arc<LiveGrant>> {
        Stage::named(&row.state).filter(|stage| stage.is_granted())?;
        let live = Arc::new(LiveGrant::of(row, self.clock.now())?);
        live.served(&self.runtime.serving(&live.grant.roots));
        self.state().live.insert(live.id, live.clone());
        self.changed.notify_one();
        Some(live)
    }

    /// Says on the person's screen that something waits for them, where there is a desktop.
    fn call_person(&self, text: &str) {
        if let Some(messenger) = self.messenger.get() {
            messenger.notify(text);
        }
    }

    fn somebody_waits(&self) {
        self.awaits.store(true, Ordering::Relaxed);
    }
}

// === impl GateSettings ===

impl GateSettings {
    /// Of `[gate]` and `[audit]`.
    pub fn of(gate: &config::GateConfig, audit: &config::AuditConfig) -> Self {
        Self {
            gate: gate.clone(),
            redaction: Redaction::new(&audit.redact, audit.bodies),
            audits_all: audit.calls == config::AuditCalls::All,
            keep: audit.keep,
        }
    }
}

/// Folders as the store has them.
fn roots_of(text: &str) -> Option<Vec<GrantRoot>> {
    let pairs: Vec<(String, String)> = serde_json::from_str(text).ok()?;
    pairs.iter().map(|(base, beneath)| GrantRoot::kept(base, beneath).ok()).collect()
}

fn roots_text(roots: &[GrantRoot]) -> String {
    let pairs: Vec<(&str, &str)> = roots.iter().map(|root| (root.base(), root.beneath())).collect();
    serde_json::to_string(&pairs).unwrap_or_default()
}

#[cfg(test)]
mod tests;
