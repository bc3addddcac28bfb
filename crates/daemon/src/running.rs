//! A server that runs in this process: what it stands on, how it starts, and that nothing of it is left when it stops.
//! `prism serve` and `prism run` are one for as long as they live; `prism call` and `prism tools` are one for a moment
//! when no daemon listens.

use std::{
    future::Future,
    io::IsTerminal,
    path::{Path, PathBuf},
    sync::{Arc, Weak},
    time::Duration,
};

use anyhow::Context;
use prism_core::{
    mesh::{ChatFailure, Name},
    policy::person::Person,
};
use prism_editor::{BuiltinEditor, EditorEnvironment, EditorSettings, ServerSandboxes};
use prism_os::census;
use prism_store::{
    Store,
    audit::{self, AuditLog},
};
use tokio::{
    net::{TcpListener, UnixListener},
    task::JoinHandle,
};
use tracing::warn;

use crate::serve::{DaemonContext, DaemonService, DaemonSnapshot};
use prism_bridge::{
    access::{AccessLog, InFlightCounter},
    admission::{AgentBells, CallAdmission},
    drive::{Environment, SessionTable, destination::BridgeContext, keeping::SessionStore},
};
use prism_config::{Config, Editor, Env, EnvInheritance, home::Token};
use prism_gate::{self as gate, Gate, Messenger, router::EditorRouter};
use prism_mesh::{
    Chats, Mesh,
    wake::{Doing, WakeBell},
};
use prism_telemetry::{BodyRedactor, DaemonLog, Metrics};

/// The database, in Prism's home.
pub const DATABASE: &str = "prism.db";
/// The folder of the audit log, in Prism's own.
pub const AUDIT: &str = "audit";
/// Ends of grants that neither log nor database had room for.
const ENDS: &str = "ends";
/// Where servers in a sandbox have their folders.
const CHILDREN: &str = "children";
/// Where text is that agents have not saved.
const UNSAVED: &str = "unsaved";

/// A server, and what has to be put away after it.
pub struct RunningServer {
    pub front: Arc<DaemonService>,
    owner: census::OwnerDaemon,
    store: Option<Store>,
    gate: Option<Arc<Gate>>,
    log: DaemonLog,
    /// What accepts connections.
    fronts: Vec<JoinHandle<()>>,
}

/// What outlives a server.
#[derive(Clone, Debug)]
pub enum ServerPersistence {
    /// Its sessions, its mesh and its gate: the next daemon of this home takes them up.
    All {
        /// What lets a person decide what agents may do.
        management: Token,
        /// What editors show.
        plugin: Token,
    },
    Nothing,
}

/// Whether the user's login shell is asked for its PATH. Whoever types the command has that already.
pub fn asks_shell(config: &Config) -> bool {
    config.login_path && !std::io::stdin().is_terminal()
}

impl RunningServer {
    /// Builds the server. It takes connections once it is given listeners. `guarded` is closed to all that runs in a sandbox.
    pub async fn start(
        config: Config,
        root: Option<&str>,
        token: Option<Token>,
        home: &Path,
        guarded: &[PathBuf],
        lasting: ServerPersistence,
        (log, warn_person): (DaemonLog, fn(&str)),
    ) -> anyhow::Result<Self> {
        // All it remembers yet is who is quiet and who speaks how. To forget that costs processes and a question at
        // the start; to refuse to start would cost the day.
        let store = match Store::open(&home.join(DATABASE)) {
            Ok(store) => Some(store),
            Err(error) => {
                warn_person(&format!("nothing will be remembered: {:#}", anyhow::Error::from(error)));
                None
            }
        };
        let folder = home.to_owned();
        // In the background: a new child carries this daemon's mark and is never taken for an orphan.
        tokio::task::spawn_blocking(move || end_orphans(&folder));
        let lasting = match lasting {
            ServerPersistence::All { management, plugin } => store.clone().map(|store| (store, (management, plugin))),
            ServerPersistence::Nothing => None,
        };
        let sessions = Arc::new(SessionTable::new(lasting.clone().map(|(store, _)| SessionStore::new(store))));
        let metrics = Arc::new(Metrics::default());
        let owner = census::OwnerDaemon::this_process(home);
        let (mesh, gate) = match lasting {
            Some((store, secrets)) => {
                let mesh = mesh(store.clone(), &sessions, &metrics, &config, home).await?;
                let gate = gate(store, secrets, &metrics, &config, (home, &owner)).await?;
                introduce(&gate, &mesh);
                (Some(mesh), Some(gate))
            }
            None => (None, None),
        };
        let person = gate.clone().map(|gate| gate as Arc<dyn Person>);
        let agents = mesh.clone().map(|mesh| mesh as Arc<dyn AgentBells>);
        let calls = CallAdmission::new(person, store.clone(), agents);
        let environment = Environment::new(Env::process(), asks_shell(&config), quarters(&config, home));
        environment.look_ahead(&config.destinations);
        let bridge = BridgeContext { sessions, metrics, owner: owner.clone(), store: store.clone(), environment };
        let access = AccessLog {
            log: log.clone(),
            metrics: bridge.metrics.clone(),
            bodies: config
                .log_bodies
                .then(|| Arc::new(BodyRedactor::new(&config.audit, bridge.environment.secrets().clone()))),
            in_flight: InFlightCounter::default(),
        };
        let context = DaemonContext { bridge, home: home.to_owned(), mesh, calls, gate: gate.clone() };
        let server = DaemonSnapshot::new(config, root, token, access, &context)?;
        let front = DaemonService::new(server, context);
        // Before sessions of another daemon's are taken up: their servers start with them.
        front.guard_files(guarded);
        front.take_up_sessions().await;
        tokio::spawn(front.clone().sweep());
        Ok(Self { front, owner, store, gate, log, fronts: Vec::new() })
    }

    pub fn accept(&mut self, listener: TcpListener) {
        if let Ok(address) = listener.local_addr() {
            self.front.keep_from(address.port());
        }
        self.fronts.push(tokio::spawn(self.front.clone().serve_tcp(listener)));
    }

    pub fn accept_unix(&mut self, listener: UnixListener) {
        self.fronts.push(tokio::spawn(self.front.clone().serve_unix(listener)));
    }

    /// Lets calls in flight finish, ends sessions and children, and returns when they are gone, or at once when `hurry`
    /// does: dropped groups are killed.
    pub async fn stop(self, hurry: impl Future) {
        for front in &self.fronts {
            front.abort();
        }
        let orderly = async {
            self.front.drain().await;
            // Nothing changes sessions from here on, and all of them are still there.
            let clean = self.front.stop().await;
            self.front.hang_up().await;
            clean
        };
        let clean = tokio::select! {
            clean = orderly => clean,
            _ = hurry => false,
        };
        if !clean {
            warn!("Some servers did not end in time and are killed");
        }
        if let Some(gate) = &self.gate {
            gate.end_editor().await;
        }
        // What left its server's group, and so outlived it, still bears our mark.
        let owner = self.owner.clone();
        if let Ok(strays) = tokio::task::spawn_blocking(move || census::end_strays(&owner)).await {
            for stray in strays {
                warn!(pid = stray.pid, "Ended a process that a server had left behind");
            }
        }
        if let Some(gate) = self.gate {
            gate.close();
            gate.note_audit_head().await;
        }
        if let Some(store) = self.store {
            store.close();
        }
        self.log.flush();
    }
}

/// The agents' mesh, which hears of every client that Prism's own server has.
async fn mesh(
    store: Store,
    sessions: &Arc<SessionTable>,
    metrics: &Metrics,
    config: &Config,
    home: &Path,
) -> anyhow::Result<Arc<Mesh>> {
    let around = (Env::process(), home.to_owned());
    let mesh = Mesh::open(store, sessions.clone(), metrics.mesh.clone(), config.mesh.clone(), around).await?;
    sessions.reached().tell(mesh.reach());
    Ok(mesh)
}

/// Requests, grants and confirmations, and the log that all of it is in first.
async fn gate(
    store: Store,
    (management, plugin): (Token, Token),
    metrics: &Metrics,
    config: &Config,
    (home, owner): (&Path, &census::OwnerDaemon),
) -> anyhow::Result<Arc<Gate>> {
    let folder = home.join(AUDIT);
    let settings = audit::AuditSettings { keep: config.audit.keep, ..audit::AuditSettings::default() };
    let known = store.audit_head()?;
    let (audit, trouble) = AuditLog::open_after(&folder, settings, known.as_ref())
        .with_context(|| format!("the audit log in {} cannot be opened", folder.display()))?;
    let trouble = trouble.map(|trouble| format!("{:#}", anyhow::Error::from(trouble)));
    if let Some(why) = &trouble {
        warn!(why, "The audit log is not what was written; `prism audit verify` checks all of it");
    }
    let env = Env::process();
    let surroundings = EditorEnvironment {
        env: env.inherited(&EnvInheritance::default()),
        owner: owner.clone(),
        closed: vec![home.to_owned()],
        unsaved: Some(home.join(UNSAVED)),
        settings: editor_settings(&config.editor, &env),
    };
    let opening = gate::GateSetup {
        store,
        audit: Arc::new(audit),
        audit_trouble: trouble,
        ends: home.join(ENDS),
        runtime: BuiltinEditor::new(surroundings),
        metrics: metrics.gate.clone(),
        secret: management,
        plugin_secret: plugin,
        settings: gate::GateSettings::of(&config.gate, &config.audit),
        person: person(&env),
    };
    Gate::open(opening).await
}

/// Tells the gate who brings word to the person and to agents, and the mesh where editors' chats are. Neither keeps the other alive.
fn introduce(gate: &Arc<Gate>, mesh: &Arc<Mesh>) {
    gate.tells_by(Arc::new(MeshMessenger(Arc::downgrade(mesh))));
    mesh.chats_are_at(Arc::new(EditorChats(Arc::downgrade(gate.router()))));
}

struct MeshMessenger(Weak<Mesh>);

impl Messenger for MeshMessenger {
    fn notify(&self, text: &str) {
        if let Some(mesh) = self.0.upgrade() {
            mesh.notify(text);
        }
    }

    fn tell_agent(&self, agent: Name, text: String) {
        if let Some(mesh) = self.0.upgrade() {
            tokio::spawn(async move { mesh.tell_agent(agent, text).await });
        }
    }
}

struct EditorChats(Weak<EditorRouter>);

impl Chats for EditorChats {
    fn has_chat<'a>(&'a self, kind: &'a str, folder: Option<&'a Path>) -> Doing<'a, bool> {
        Box::pin(async move {
            match self.0.upgrade() {
                Some(editors) => editors.has_chat(kind, folder).await,
                None => false,
            }
        })
    }

    fn ring_chat<'a>(
        &'a self,
        kind: &'a str,
        folder: Option<&'a Path>,
        bell: &'a WakeBell,
        within: Duration,
    ) -> Doing<'a, Result<(), ChatFailure>> {
        Box::pin(async move {
            let editors = self.0.upgrade().ok_or(ChatFailure::Nobody)?;
            editors.ring_chat(kind, folder, (&bell.agent, &bell.text), within).await
        })
    }
}

/// Where servers live that run in a sandbox.
fn quarters(config: &Config, home: &Path) -> Arc<ServerSandboxes> {
    let env = Env::process();
    let settings = editor_settings(&config.editor, &env);
    let env = env.inherited(&EnvInheritance::default());
    let quarters = ServerSandboxes::new(&settings, env, home.join(CHILDREN), vec![home.to_owned()]);
    quarters.keep_from(config.port);
    quarters
}

/// Returns the settings of the built-in editor with what only this process knows: where the user's home is, and which program
/// this is.
#[must_use]
pub fn editor_settings(editor: &Editor, env: &Env) -> EditorSettings {
    let Editor { fence, readable, writable, servers, runs_project_code, idle_server, max_memory, max_scratch } =
        editor.clone();
    EditorSettings {
        fence,
        readable,
        writable,
        servers,
        runs_project_code,
        idle_server,
        max_memory,
        max_scratch,
        home: env.var("HOME").map(PathBuf::from),
        inner: std::env::current_exe().ok(),
    }
}

/// Whose machine this is, for the audit log.
fn person(env: &Env) -> String {
    let named = env.var("USER").or(env.var("LOGNAME")).map(|name| name.to_string_lossy().into_owned());
    // A service manager or a container starts the daemon without either.
    let named = named.or_else(prism_os::process::user_name);
    named.unwrap_or_else(|| format!("uid {}", prism_os::process::user_id()))
}

fn end_orphans(home: &Path) {
    for orphan in census::end_orphans(home) {
        // Only the program: arguments may hold secrets.
        let program = orphan.command.split_whitespace().next().unwrap_or_default();
        warn!(pid = orphan.pid, program, "Ended a server that a killed Prism had left behind");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // without these variables it was the number.
    #[test]
    fn the_audit_names_the_user_also_where_no_variable_does() {
        let uid = prism_os::process::user_id().to_string();
        let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        let named = users.lines().find_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next()?;
            (fields.nth(1)? == uid).then(|| name.to_owned())
        });
        let told = person(&Env::default());
        match named {
            Some(name) => assert_eq!(told, name),
            // In a directory elsewhere, or nowhere.
            None => assert!(told != uid && !told.is_empty(), "{told}"),
        }
        assert_eq!(person(&Env::from([("USER", "ann"), ("LOGNAME", "bob")])), "ann");
        assert_eq!(person(&Env::from([("LOGNAME", "bob")])), "bob");
    }
}
