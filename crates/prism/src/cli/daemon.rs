//! What `prism serve` and `prism run` have in common: start, say where, serve, stop. What runs is in `running.rs`.

use std::{
    io::IsTerminal,
    path::{Path, PathBuf},
};

use anyhow::Context;
use prism_os::limits;
use tokio::signal::unix::{SignalKind, signal};
use tracing::{info, level_filters::LevelFilter};

use super::{add::is_program, running::Running, say};
use crate::{
    config::{Config, Env},
    home::{Home, TokenOrigin},
    serve,
    telemetry::Log,
};

/// Connections that are not sessions: listeners, the database, children, a few spare.
const SPARE_FILES: u64 = 128;
/// Open files of one session: the connection of its calls and that of its stream.
const FILES_PER_SESSION: u64 = 2;

/// Beyond this many threads there is nothing left to gain: they only pass messages on.
const MAX_WORKERS: usize = 4;

/// The database, in Prism's home.
pub const DATABASE: &str = "prism.db";

/// How much the log says.
#[derive(Clone, Debug, clap::Args)]
pub struct LogFlags {
    /// How much is logged to stderr: off, error, warn, info, debug
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    log: LevelFilter,
}

impl LogFlags {
    /// Only what is not as it should be, for a daemon that nobody asked for by its name.
    pub(super) fn warnings() -> Self {
        Self { log: LevelFilter::WARN }
    }
}

/// A daemon that is about to start.
pub struct Daemon {
    pub config: Config,
    /// The destination that is at `/mcp`.
    pub root: Option<String>,
    pub authenticated: bool,
    /// Where the Unix socket goes, if there is to be one.
    pub socket: Option<PathBuf>,
    pub log: LogFlags,
}

/// As many sessions as the open-files limit allows.
pub fn sessions_by_open_files() -> usize {
    let files = limits::raise_open_files().saturating_sub(SPARE_FILES) / FILES_PER_SESSION;
    usize::try_from(files).unwrap_or(usize::MAX).max(1)
}

impl Daemon {
    /// Runs until it is told to stop. `announce` says what a person needs to know, given the port.
    pub fn run(self, home: &Home, announce: impl FnOnce(&Config, Option<&TokenOrigin>)) -> anyhow::Result<()> {
        limits::raise_open_files();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(workers())
            .enable_all()
            .build()
            .context("cannot start the runtime")?;
        runtime.block_on(self.serve(home, announce))
    }

    async fn serve(mut self, home: &Home, announce: impl FnOnce(&Config, Option<&TokenOrigin>)) -> anyhow::Result<()> {
        // The port first: if somebody has it, nothing else must have happened.
        let listener = serve::bind(&self.config).await?;
        self.config.port = listener.local_addr().context("cannot see the port")?.port();
        let socket = match &self.socket {
            Some(path) => match serve::bind_unix(path).await {
                Ok(listener) => Some((listener, path.clone())),
                Err(error @ serve::BindError::Running { .. }) => return Err(error.into()),
                // A folder too deep for a socket's name: the port does all that the socket would.
                Err(error) => {
                    say::warning(&format!("no Unix socket: {:#}", anyhow::Error::from(error)));
                    None
                }
            },
            None => None,
        };
        let log = Log::start(self.log.log, std::io::stderr().is_terminal() && say::colour());
        let (token, origin) = match self.authenticated {
            true => home.token().map(|(token, origin)| (Some(token), Some(origin)))?,
            false => (None, None),
        };
        let mut running = Running::start(self.config, self.root.as_deref(), token, home.path(), log)?;
        let mut ends =
            [signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?, signal(SignalKind::hangup())?];
        announce(&running.server.config, origin.as_ref());
        running.accept(listener);
        let path = socket.map(|(listener, path)| {
            running.accept_unix(listener);
            path
        });
        let [terminate, interrupt, hangup] = &mut ends;
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = hangup.recv() => {}
        }
        info!("Stopping: sessions are ended, servers are stopped");
        if let Some(path) = path {
            let _ = std::fs::remove_file(path);
        }
        // A second Ctrl-C: at once.
        running.stop(interrupt.recv()).await;
        Ok(())
    }
}

/// Threads to work with. Every call meets its link's task on the way there and back, and a meeting on one thread is
/// cheaper than one between two; the other half of the cores is for the servers and the agents.
pub(super) fn workers() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    (cores / 2).clamp(1, MAX_WORKERS)
}

/// Says where the token is, or that there is none, and returns how `claude mcp add` is told of it.
pub fn introduce_token(origin: Option<&TokenOrigin>, token: &Path) -> String {
    let (place, shown) = match origin {
        None => {
            say::warning("no token is asked for (--no-auth): every program on this machine can use this");
            return String::new();
        }
        Some(TokenOrigin::Environment) => ("from PRISM_API_KEY".to_owned(), "$PRISM_API_KEY".to_owned()),
        Some(_) => (token.display().to_string(), format!("$(cat {})", token.display())),
    };
    say::line(&format!("token        {place}"));
    if let Some(TokenOrigin::Tightened { was }) = origin {
        say::warning(&format!(
            "the token could be read by others (mode {was:04o}); it no longer can, but they may know it"
        ));
    }
    format!(r#" --header "Authorization: Bearer {shown}""#)
}

/// How this program is to be typed: by its name if the shell would find it, else by its path.
pub fn program(env: &Env) -> String {
    let own = std::env::current_exe().unwrap_or_default();
    let found = is_program("prism", None, env);
    match own.to_str() {
        Some(path) if !found => {
            let here =
                std::env::current_dir().ok().and_then(|here| Some(own.strip_prefix(here).ok()?.to_str()?.to_owned()));
            here.unwrap_or_else(|| path.to_owned())
        }
        _ => "prism".to_owned(),
    }
}

/// The environment names the folder; it is made where it is missing.
pub fn home(env: &Env) -> anyhow::Result<Home> {
    Ok(Home::find(env)?)
}
