//! Which editor does what an agent asks for: the one that has the folder open, or the built-in one (A-06). The gate has
//! decided before that it may be done; here it is only decided by whom.
//!
//! ```text
//!  order ── paths, by handle ── whose? ──┬─ an editor that can do the verb ──► cmd … result, under a deadline
//!                                        ├─ one that cannot, and it only reads ──► built-in
//!                                        ├─ it runs programs ──► built-in, and shown in the editor
//!                                        ├─ one that cannot ──► `unsupported`
//!                                        └─ nobody's ──► built-in
//! ```
//! What editors tell is told on only as far as it is about their own folders; who of the agents hears it is decided where
//! all happenings are (A-07).

mod chat;
mod drawing;
mod handover;
mod kept;
mod mirror;
mod owners;
pub mod plugin;
mod prepared;
mod shows;
mod sieve;
mod trace;
mod voice;

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

pub use plugin::Plugin;
pub use prepared::RoutedVerb;
use prism_api::gate::PluginView;
use prism_core::policy::{Code, GrantRoot, Refusal};
use prism_editor::{
    BuiltinEditor, EditorEvent,
    protocol::{POSITIONS, PROTOCOL, PluginLimits, RegisterMessage, RegisteredMessage, ToPlugin, as_path},
};
use prism_os::clock::Clock;
use prism_telemetry::gate::GateMetrics;
use tokio::sync::{broadcast, mpsc, watch};
pub use voice::RelayedMessage;

use self::{
    kept::LooseTexts,
    owners::{FolderOwners, OwnershipStage},
    plugin::PluginLiveness,
    shows::RunRouter,
};

/// All editors there are, the built-in one among them. One for the daemon.
#[derive(Debug)]
pub struct EditorRouter {
    builtin: BuiltinEditor,
    owners: FolderOwners,
    kept: LooseTexts,
    /// What the built-in editor took back from one that left: the text as it was then, by its digest, and whose it was. An
    /// editor that comes back with that text has not changed it meanwhile.
    adopted: Mutex<HashMap<PathBuf, handover::AdoptedText>>,
    /// Instances that do not say when they began, and when they first came.
    first_seen: Mutex<VecDeque<(String, u64)>>,
    epoch: AtomicU64,
    /// Changes of texts that the built-in editor is at.
    at_work: watch::Sender<usize>,
    /// Whether a person may decide in editors.
    decides: AtomicBool,
    is_closing: AtomicBool,
    metrics: Arc<GateMetrics>,
    clock: Clock,
    this: Weak<Self>,
}

/// The largest message of an editor's: a text at the largest, and its wrapping.
pub const MAX_MESSAGE: usize = 16 << 20;
/// How often an editor is asked whether somebody is there; the answer is due before the next time.
pub const BEAT: Duration = Duration::from_secs(10);

/// How long an order waits for a folder that is changing hands.
const SETTLE_WITHIN: Duration = Duration::from_secs(15);
/// Folders and names of one registration.
const MAX_ROOTS: usize = 64;
const MAX_NAME: usize = 128;
/// Instances that are remembered. Beyond it the oldest is forgotten, and counts as new when it comes back.
const MAX_SEEN: usize = 256;

impl EditorRouter {
    /// Over the built-in editor. `decides`: whether a person may decide in others.
    pub fn new(builtin: BuiltinEditor, metrics: Arc<GateMetrics>, decides: bool) -> Arc<Self> {
        let router = Arc::new_cyclic(|this| Self {
            builtin,
            owners: FolderOwners::new(),
            kept: LooseTexts::default(),
            adopted: Mutex::default(),
            first_seen: Mutex::default(),
            epoch: AtomicU64::new(0),
            at_work: watch::Sender::new(0),
            decides: AtomicBool::new(decides),
            is_closing: AtomicBool::new(false),
            metrics,
            clock: Clock::start(),
            this: this.clone(),
        });
        router.builtin.observe_runs(Arc::new(RunRouter(router.this.clone())));
        router
    }

    /// Closes these files to every verb, whoever does it, and no others: all paths are found by the built-in editor.
    pub fn guard_files(&self, files: &[PathBuf]) {
        self.builtin.close_files(files);
    }

    /// What happens in any of them.
    pub fn listen(&self) -> broadcast::Receiver<Arc<EditorEvent>> {
        self.builtin.listen()
    }

    /// Has what changes from outside beneath a holder's folders told, until it leaves. A folder that cannot be watched is one
    /// that nothing is told of.
    pub async fn watch(&self, holder: u128, roots: Vec<GrantRoot>) {
        let _ = self.builtin.watch(holder, roots).await;
    }

    /// Why what is run here is kept by less than a sandbox, if it is.
    pub async fn lacks_sandbox(&self) -> Option<String> {
        let builtin = self.builtin.clone();
        let looked = tokio::task::spawn_blocking(move || builtin.lacks_sandbox()).await;
        looked.unwrap_or_else(|_| Some("nobody could look for one".to_owned()))
    }

    /// Has nothing that is run here connect to a port, whatever network was granted.
    pub fn keep_from(&self, port: u16) {
        self.builtin.keep_from(port);
    }

    /// Ends what a holder had, wherever it had it.
    pub async fn leave(&self, holder: u128) {
        self.builtin.leave(holder).await;
    }

    pub async fn close(&self) {
        self.is_closing.store(true, Ordering::Relaxed);
        for (plugin, _) in self.owners.all() {
            plugin.end();
        }
        self.builtin.close().await;
    }

    /// Whether a person may decide in editors.
    pub fn decides(&self) -> bool {
        self.decides.load(Ordering::Relaxed)
    }

    /// Says whether a person may. If so, in editors that come from now on: the others were told otherwise.
    pub fn let_decide(&self, may: bool) {
        self.decides.store(may, Ordering::Relaxed);
    }

    // --- Editors that come and go ---

    /// Takes an editor in. It owns nothing until somebody has answered there.
    pub async fn admit(
        &self,
        name: &str,
        register: &RegisterMessage,
    ) -> Result<(Arc<Plugin>, RegisteredMessage, mpsc::Receiver<ToPlugin>), Refusal> {
        check(name, register)?;
        let register =
            &RegisterMessage { decides: register.decides && register.ui && self.decides(), ..register.clone() };
        let roots = real_roots(register.roots.clone()).await?;
        let epoch = self.epoch.fetch_add(1, Ordering::Relaxed) + 1;
        let now = self.clock.now();
        let newness = (self.began(name, register), epoch);
        let (plugin, outgoing) = Plugin::new(name, register, roots, newness, now);
        for (same, _) in self.owners.all() {
            // The old connection of the same window: it has noticed the loss before we did.
            if same.about.plugin == name && same.about.instance == register.instance_id {
                same.end();
            }
        }
        if !self.owners.add(plugin.clone()) {
            return Err(Refusal::new(Code::TooFast, "too many editors are connected; close some"));
        }
        if let Some(router) = self.this.upgrade() {
            tokio::spawn(router.keep(plugin.clone()));
        }
        self.metrics.plugins(self.owners.all().len());
        let registered = RegisteredMessage {
            protocol: PROTOCOL,
            assigned_id: plugin.about.connection.clone(),
            bridge_version: env!("CARGO_PKG_VERSION").to_owned(),
            epoch,
            positions: POSITIONS.to_owned(),
            decides: register.decides,
            limits: PluginLimits {
                max_message_bytes: MAX_MESSAGE as u64,
                max_commands: plugin::MAX_COMMANDS as u64,
                max_buffers: mirror::MAX_UNSAVED as u64,
                max_buffer_bytes: mirror::MAX_BYTES as u64,
                max_events_per_second: u64::from(plugin::EVENTS_PER_SECOND),
                ping_every_ms: u64::try_from(BEAT.as_millis()).unwrap_or(u64::MAX),
                pong_within_ms: u64::try_from(BEAT.as_millis()).unwrap_or(u64::MAX),
            },
        };
        Ok((plugin, registered, outgoing))
    }

    /// Notes that an editor has answered in time, and whether its window did.
    pub fn ponged(&self, plugin: &Plugin, ui: bool) {
        let life = if ui || !plugin.about.ui { PluginLiveness::Alive } else { PluginLiveness::Unsure };
        plugin.life.send_if_modified(|now| {
            let changes = *now != life && *now != PluginLiveness::Gone;
            if changes {
                *now = life;
            }
            changes
        });
    }

    /// Notes that a connection is over.
    pub fn left(&self, plugin: &Plugin) {
        plugin.end();
    }

    /// Waits until a connection is to be closed: it was replaced, or the daemon stops.
    pub async fn ended(plugin: &Plugin) {
        let _ = plugin.life.subscribe().wait_for(|life| *life == PluginLiveness::Gone).await;
    }

    /// Rung whenever an editor comes, goes, or its folders change hands.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.owners.changes()
    }

    /// The editors that own something in or above these folders.
    pub fn serving(&self, roots: &[GrantRoot]) -> BTreeSet<String> {
        let all = self.owners.all().into_iter();
        let settled = all.filter(|(plugin, stage)| *stage == OwnershipStage::Owner && plugin.touches(roots));
        settled.map(|(plugin, _)| plugin.about.plugin.clone()).collect()
    }

    /// All editors that are connected, as they are listed.
    pub fn plugins(&self) -> Vec<PluginView> {
        self.listed(|_| true)
    }

    fn listed(&self, is_wanted: impl Fn(&Plugin) -> bool) -> Vec<PluginView> {
        let told = |(plugin, stage): (Arc<Plugin>, OwnershipStage)| {
            let state = match stage {
                OwnershipStage::Unsure => "unsure",
                OwnershipStage::Taking | OwnershipStage::Leaving => "changing",
                OwnershipStage::Owner => "owner",
            };
            PluginView {
                state: Some(state.to_owned()),
                unsaved: Some(plugin.unsaved().len()),
                events_dropped: Some(plugin.dropped()),
                ..plugin.about.clone()
            }
        };
        self.owners.all().into_iter().filter(|(plugin, _)| is_wanted(plugin)).map(told).collect()
    }

    /// When an instance began: what it says, if that is not in the future, or when it first came.
    fn began(&self, name: &str, register: &RegisterMessage) -> u64 {
        let now = u64::try_from(self.clock.now().0 / 1000).unwrap_or_default();
        if let Some(at) = register.started_at_ms {
            return at.min(now);
        }
        let instance = format!("{name}/{}", register.instance_id);
        let mut seen = self.first_seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, at)) = seen.iter().find(|(known, _)| *known == instance) {
            return *at;
        }
        seen.push_back((instance, now));
        if seen.len() > MAX_SEEN {
            seen.pop_front();
        }
        now
    }

    fn adopted(&self) -> MutexGuard<'_, HashMap<PathBuf, handover::AdoptedText>> {
        // Nothing panics while it holds the lock, and each change of it is whole.
        self.adopted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Refuses a registration that says nothing usable.
fn check(name: &str, register: &RegisterMessage) -> Result<(), Refusal> {
    let bad = |why: String| Err(Refusal::new(Code::BadArguments, why));
    let is_name = |text: &str| {
        (1..=MAX_NAME).contains(&text.len()) && text.chars().all(|letter| letter.is_ascii_graphic() && letter != '#')
    };
    if register.protocol != PROTOCOL {
        return bad(format!("this is protocol {PROTOCOL}, not {}; use a plugin that speaks it", register.protocol));
    }
    for (what, text) in [("the plugin's id", name), ("instance_id", &register.instance_id), ("kind", &register.kind)] {
        if !is_name(text) {
            return bad(format!("{what} is 1 to {MAX_NAME} letters without spaces and without `#`"));
        }
    }
    if register.version.len() > MAX_NAME || register.capabilities.len() > 1_000 {
        return bad("version or capabilities are too long".to_owned());
    }
    if register.roots.is_empty() || register.roots.len() > MAX_ROOTS {
        return bad(format!("roots are 1 to {MAX_ROOTS} folders"));
    }
    Ok(())
}

/// The folders as they really are. Those that are not there are passed over, as long as there is one.
async fn real_roots(written: Vec<String>) -> Result<Vec<PathBuf>, Refusal> {
    let found = tokio::task::spawn_blocking(move || {
        let real = |root: &String| std::fs::canonicalize(as_path(root)?).ok().filter(|root| root.is_dir());
        let mut roots: Vec<PathBuf> = written.iter().filter_map(real).collect();
        roots.sort();
        roots.dedup();
        roots
    })
    .await;
    match found {
        Ok(roots) if !roots.is_empty() => Ok(roots),
        _ => Err(Refusal::new(Code::NotFound, "none of the roots is a folder; give absolute paths")),
    }
}
