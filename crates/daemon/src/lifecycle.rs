//! A daemon from its start to its end: it binds, says where it is, serves until it is told to stop, and puts away what it has
//! put there. What runs meanwhile is in `running`.

use std::{
    io::IsTerminal,
    path::{Path, PathBuf},
};

use anyhow::Context;
use prism_config::{
    Config,
    home::{Home, TokenOrigin},
    lock::DaemonLock,
    registration::Registration,
    trust::UntrustedFile,
};
use prism_os::clock::now_rfc3339;
use prism_os::{limits, process::ProcessIdentity};
use prism_telemetry::DaemonLog;
use tokio::signal::unix::{SignalKind, signal};
use tracing::{info, level_filters::LevelFilter};

use crate::{
    reload::ConfigReloader,
    running::{RunningServer, ServerPersistence},
    serve,
};

/// Connections that are not sessions: listeners, the database, children, a few spare.
const SPARE_FILES: u64 = 128;
/// Open files of one session: the connection of its calls and that of its stream.
const FILES_PER_SESSION: u64 = 2;

/// Beyond this many threads there is nothing left to gain: they only pass messages on.
const MAX_WORKERS: usize = 4;

/// A daemon that is about to start.
pub struct DaemonSetup {
    pub config: Config,
    /// Where the config is from.
    pub file: Option<PathBuf>,
    /// Files that no agent may touch.
    pub guarded: Vec<PathBuf>,
    /// Files that do not count as they are.
    pub untrusted: Vec<UntrustedFile>,
    /// The destination that is at `/mcp`.
    pub root: Option<String>,
    pub authenticated: bool,
    /// Where the Unix socket goes, if there is to be one.
    pub socket: Option<PathBuf>,
    /// How much is logged, and whether in colour on a terminal.
    pub log: LevelFilter,
    pub colour: bool,
    /// Tells the person what is not as it should be, while the daemon starts.
    pub warn: fn(&str),
    /// `None` for a bridge that nobody looks for.
    pub standing: Option<DaemonIdentity>,
    /// Where its config may change.
    pub reloader: Option<ConfigReloader>,
}

/// What makes a daemon the one of its home, and what others learn of it.
pub struct DaemonIdentity {
    /// Held until the process has nothing left to do.
    pub lock: DaemonLock,
    /// What it was started with, and where.
    pub arguments: Vec<String>,
    pub folder: PathBuf,
    /// The file that stdout and stderr go to, if that is ours to keep small.
    pub log_file: Option<PathBuf>,
    /// Who starts it again when it ends.
    pub supervisor: Option<String>,
}

/// As many sessions as the open-files limit allows.
pub fn sessions_by_open_files() -> usize {
    let files = limits::raise_open_files().saturating_sub(SPARE_FILES) / FILES_PER_SESSION;
    usize::try_from(files).unwrap_or(usize::MAX).max(1)
}

impl DaemonSetup {
    /// Runs until it is told to stop. `announce` says what a person needs to know, given the port.
    pub fn run(self, home: &Home, announce: impl FnOnce(&Config, Option<&TokenOrigin>)) -> anyhow::Result<()> {
        limits::raise_open_files();
        limits::keep_open_files();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(workers())
            .enable_all()
            .build()
            .context("cannot start the runtime")?;
        runtime.block_on(self.serve(home, announce))
    }

    async fn serve(mut self, home: &Home, announce: impl FnOnce(&Config, Option<&TokenOrigin>)) -> anyhow::Result<()> {
        let (token, origin) = match self.authenticated {
            true => home.token().map(|(token, origin)| (Some(token), Some(origin)))?,
            false => (None, None),
        };
        // Before anything that has to be put away again: if somebody has the port, nothing must have happened.
        let listener = serve::bind(&self.config).await?;
        self.config.port = listener.local_addr().context("cannot see the port")?.port();
        let socket = match &self.socket {
            Some(path) => match serve::bind_unix(path).await {
                Ok(listener) => Some((listener, path.clone())),
                Err(error @ serve::BindError::Running { .. }) => return Err(error.into()),
                // A folder too deep for a socket's name: the port does all that the socket would.
                Err(error) => {
                    (self.warn)(&format!("no Unix socket: {:#}", anyhow::Error::from(error)));
                    None
                }
            },
            None => None,
        };
        let log = DaemonLog::start(self.log, std::io::stderr().is_terminal() && self.colour);
        if let Some(file) = self.standing.as_ref().and_then(|standing| standing.log_file.clone()) {
            log.rotate(file);
        }
        // One server, bridged for whoever comes, is not there tomorrow.
        let lasting = match self.root {
            None => ServerPersistence::All { management: home.management()?, plugin: home.plugin()? },
            Some(_) => ServerPersistence::Nothing,
        };
        let mut running = RunningServer::start(
            self.config,
            self.root.as_deref(),
            token,
            home.path(),
            &self.guarded,
            lasting,
            (log, self.warn),
        )
        .await?;
        let mut ends =
            [signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?, signal(SignalKind::hangup())?];
        running.front.about().configured_by(self.file.as_deref(), None, &self.untrusted);
        running.accept(listener);
        let path = socket.map(|(listener, path)| {
            running.front.about().listens_on(&path);
            running.accept_unix(listener);
            path
        });
        let registered = match &self.standing {
            Some(standing) => Some(standing.register(&running.front.current().config, path.as_deref(), home)?),
            None => None,
        };
        announce(&running.front.current().config, origin.as_ref());
        if let Some(reloader) = self.reloader.take() {
            tokio::spawn(reloader.watch(running.front.clone()));
        }
        let [terminate, interrupt, hangup] = &mut ends;
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = hangup.recv() => {}
        }
        info!("Stopping: calls in flight may finish, then servers are ended");
        // First, so that nobody finds the way here any more.
        if let Some(registered) = registered {
            registered.remove(home.path());
        }
        if let Some(path) = path {
            let _ = std::fs::remove_file(path);
        }
        // A second Ctrl-C: at once.
        running.stop(interrupt.recv()).await;
        Ok(())
    }
}

impl DaemonIdentity {
    fn register(&self, config: &Config, socket: Option<&Path>, home: &Home) -> anyhow::Result<Registration> {
        let process = ProcessIdentity::this_process();
        let registration = Registration {
            port: config.port,
            url: config.base_url(),
            pid: process.pid,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started_at: now_rfc3339(),
            socket: socket.map(Path::to_owned),
            process_started: process.start_ticks,
            log: self.log_file.clone(),
            arguments: self.arguments.clone(),
            folder: self.folder.clone(),
            supervisor: self.supervisor.clone(),
        };
        let written = registration.write(home.path());
        written.with_context(|| format!("cannot register in {}", home.path().display()))?;
        Ok(registration)
    }
}

/// Threads to work with. Every call meets its link's task on the way there and back, and a meeting on one thread is
/// cheaper than one between two; the other half of the cores is for the servers and the agents.
pub fn workers() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    (cores / 2).clamp(1, MAX_WORKERS)
}
