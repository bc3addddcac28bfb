//! The daemon's whole time: what answers requests now, the config that takes its place, idle sessions, and the end.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use prism_core::mcp::CallFault;
use tokio::{
    sync::{Semaphore, watch},
    time::{interval, timeout},
};
use tracing::{info, warn};

use super::{
    DaemonContext, DaemonSnapshot, DestinationChange, DestinationError, behind_hub, plugin::MAX_STRANGERS,
    status::DaemonFacts,
};
use crate::console::{Console, trend::CallTotals};
use prism_bridge::drive::{
    Destination, Hub, SessionTable, destination,
    keeping::{self, USE_NOTED_EVERY},
    replace,
};
use prism_config::{Config, trust::UntrustedFile};
use prism_gate as gate;

/// How often sessions are looked through for idle ones.
const SWEEP: Duration = Duration::from_secs(5);
/// The longest that a stop lets calls finish, whatever `drain_timeout` says: whoever stops us waits too.
const MAX_DRAIN: Duration = Duration::from_secs(60);
/// How long the last answers may take to be written, at a stop.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(500);
/// How long a stop waits for children. A child gets 2 s to end by itself and 2 s after SIGTERM.
const STOP_TIMEOUT: Duration = Duration::from_secs(8);

/// What is there for as long as the daemon is.
pub struct DaemonService {
    current: RwLock<Arc<DaemonSnapshot>>,
    context: DaemonContext,
    pub(super) life: Arc<DaemonLifetime>,
    sessions: Arc<SessionTable>,
    hub: Arc<Hub>,
    /// One reload at a time.
    reloading: tokio::sync::Mutex<()>,
}

/// What all that ever answers has in common.
pub(super) struct DaemonLifetime {
    stopping: AtomicBool,
    /// Tells connections to end with what they are at. Each holds a receiver.
    pub(super) hang_up: watch::Sender<()>,
    /// Places for editors that have not shown who they are.
    pub(super) plugin_strangers: Arc<Semaphore>,
    /// Whether another user was turned away at the socket.
    pub(super) met_stranger: AtomicBool,
    pub(super) about: DaemonFacts,
    pub(super) console: Console,
}

// === impl DaemonService ===

impl DaemonService {
    pub fn new(server: Arc<DaemonSnapshot>, context: DaemonContext) -> Arc<Self> {
        let (life, sessions, hub) = (server.life.clone(), server.sessions.clone(), server.hub.clone());
        Arc::new(Self {
            current: RwLock::new(server),
            context,
            life,
            sessions,
            hub,
            reloading: tokio::sync::Mutex::default(),
        })
    }

    /// What answers a request that comes now.
    pub fn current(&self) -> Arc<DaemonSnapshot> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes up the sessions that the last daemon has left.
    pub async fn take_up_sessions(&self) {
        let server = self.current();
        keeping::take_up(&self.sessions, &server.destinations, &self.hub, server.config.session_idle_timeout).await;
        if let Some(mesh) = &server.mesh {
            mesh.arm_all();
        }
    }

    /// Goes on with another config. Destinations that are as they were do not notice; sessions of those that are not go
    /// on with the new ones (D-09). Where we listen changes with a restart only.
    pub async fn reload(
        &self,
        config: Config,
        file: Option<&Path>,
        untrusted: &[UntrustedFile],
    ) -> Result<(), DestinationError> {
        let _turn = self.reloading.lock().await;
        if self.life.is_stopping() {
            return Ok(());
        }
        let before = self.current();
        let restart = needs_restart(&before.config, &config);
        let Config { address, port, login_path, .. } = before.config;
        let (mesh, editor) = (before.config.mesh.clone(), before.config.editor.clone());
        let config = Config { address, port, login_path, mesh, editor, ..config };
        if config == before.config {
            self.life.about.configured_by(file, restart, untrusted);
            return Ok(());
        }
        let (next, changes) = before.next(config, &self.context)?;
        if let Some(gate) = &self.context.gate {
            gate.obey(gate::GateSettings::of(&next.config.gate, &next.config.audit));
        }
        self.context.bridge.environment.look_ahead(&next.config.destinations);
        self.hub.reload(behind_hub(&next.destinations), &next.config);
        let (now, then) = (next.destinations.len(), before.destinations.len());
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = next;
        info!(destinations = now, before = then, changed = changes.len(), "Took over the changed config");
        for change in changes {
            match change {
                DestinationChange::Replaced { from, to } => replace::hand_over(&from, &to, &self.sessions).await,
                DestinationChange::Removed(from) => {
                    let why = CallFault::Unavailable { why: "it was taken out of the config".to_owned() };
                    drop(replace::shut_down(from.links(), why).await);
                }
            }
        }
        self.hub.reloaded();
        self.life.about.configured_by(file, restart, untrusted);
        Ok(())
    }

    /// Closes the files that the config is from to every agent, and to servers in a sandbox. (C1)
    pub fn guard_files(&self, files: &[PathBuf]) {
        if let Some(gate) = &self.context.gate {
            gate.router().guard_files(files);
        }
        self.context.bridge.environment.quarters().close_files(files);
    }

    /// Has nothing in a sandbox connect to a port of ours.
    pub fn keep_from(&self, port: u16) {
        if let Some(gate) = &self.context.gate {
            gate.keep_from(port);
        }
        self.context.bridge.environment.quarters().keep_from(port);
    }

    /// What the daemon knows of itself.
    pub fn about(&self) -> &DaemonFacts {
        &self.life.about
    }

    /// Ends sessions that nobody uses (B-10), and has it noted which are used, for ever.
    pub async fn sweep(self: Arc<Self>) {
        let mut noted = Instant::now();
        loop {
            let limit = self.current().config.session_idle_timeout.unwrap_or(Duration::MAX);
            tokio::time::sleep(SWEEP.min(limit / 2).max(Duration::from_millis(50))).await;
            self.life.console.trend.sample(Instant::now(), || {
                let counted = |(name, destination): (&String, &Arc<Destination>)| {
                    let (calls, took) = destination.metrics().calls();
                    (name.clone(), CallTotals { calls, took })
                };
                self.current().destinations.iter().map(counted).collect()
            });
            for idle in self.sessions.idle_for(limit, None) {
                if let Some(entry) = self.sessions.remove(&idle.id) {
                    info!(destination = entry.destination.config().name, "Ended an idle session");
                    destination::close(&entry);
                }
            }
            if let Some(keeping) = self.sessions.keeping().filter(|_| noted.elapsed() >= USE_NOTED_EVERY) {
                keeping.touch(self.sessions.used_within(noted.elapsed())).await;
                noted = Instant::now();
            }
        }
    }

    /// Takes nothing new, and waits until what is in flight is answered, or for as long as the config says (D-09).
    pub async fn drain(&self) {
        self.life.stopping.store(true, Ordering::Relaxed);
        let server = self.current();
        if let Some(mesh) = &server.mesh {
            mesh.stop();
        }
        let in_flight = &server.access.in_flight;
        let answered = async {
            let mut looks = interval(Duration::from_millis(5));
            while in_flight.count() > 0 {
                looks.tick().await;
            }
        };
        if timeout(server.config.drain_timeout.min(MAX_DRAIN), answered).await.is_err() {
            warn!(calls = in_flight.count(), "Calls that did not finish in time are ended");
        }
    }

    /// Lets every connection end with what it is at, so that no last answer is lost in a buffer.
    pub async fn hang_up(&self) {
        self.life.hang_up.send_replace(());
        let _ = timeout(FLUSH_TIMEOUT, self.life.hang_up.closed()).await;
    }

    /// Ends sessions, streams and children, and waits until they are gone (B-25). Returns whether they are.
    pub async fn stop(&self) -> bool {
        self.life.stopping.store(true, Ordering::Relaxed);
        if let Some(keeping) = self.sessions.keeping() {
            keeping.close();
        }
        self.sessions.reached().close();
        let server = self.current();
        let doors = server.doors.destinations();
        let links = server.destinations.values().chain(&doors).flat_map(|destination| destination.links()).collect();
        let left = replace::shut_down(links, CallFault::Stopping).await;
        if let Some(keeping) = self.sessions.keeping() {
            keeping.save(left).await;
        }
        let all = async {
            // Links stay, idle, until the process ends; what must be gone are their children.
            let mut looks = interval(Duration::from_millis(5));
            while prism_os::group::living() > 0 {
                looks.tick().await;
            }
        };
        timeout(STOP_TIMEOUT, all).await.is_ok()
    }
}

// === impl DaemonLifetime ===

impl DaemonLifetime {
    pub(super) fn new(home: &Path) -> Self {
        Self {
            stopping: AtomicBool::new(false),
            hang_up: watch::Sender::new(()),
            plugin_strangers: Arc::new(Semaphore::new(MAX_STRANGERS)),
            met_stranger: AtomicBool::new(false),
            about: DaemonFacts::new(home),
            console: Console::default(),
        }
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }
}

/// What of a config only a restart brings into effect.
fn needs_restart(before: &Config, now: &Config) -> Option<String> {
    // Port 0 is any port, and we have one.
    let same_port = now.port == before.port || now.port == 0;
    if now.address != before.address || !same_port {
        return Some(format!("we listen on another port or address ({}) after `prism restart`", now.base_url()));
    }
    if now.mesh != before.mesh {
        return Some("`[mesh]` counts after `prism restart`".to_owned());
    }
    if now.editor != before.editor {
        return Some("`[editor]` counts after `prism restart`".to_owned());
    }
    (now.login_path != before.login_path).then(|| "`login_path` counts after `prism restart`".to_owned())
}
