//! `prism run -- COMMAND` and `prism run --url URL`: one server, bridged, with nothing configured.

use std::{
    io::ErrorKind,
    net::{SocketAddr, TcpListener},
    path::Path,
};

use anyhow::{bail, ensure};
use prism_os::program::{self, ProgramLookupError};

use super::{
    daemon::{self, LogArgs},
    say,
    target::TargetArgs,
};
use prism_config::{
    Config, Env, EnvInheritance, Flags, ProcessSharing, home::TokenOrigin, raw::RawConfig, registration::Registration,
};
use prism_daemon::lifecycle::{DaemonSetup, sessions_by_open_files};

/// The name that a lone server has in logs and metrics.
const NAME: &str = "run";

/// Bridge one server, with nothing configured
#[derive(clap::Args)]
#[command(after_help = "Examples:
  prism run -- npx -y @modelcontextprotocol/server-filesystem .
  prism run --port 0 -- prism demo-server     on any free port
  prism run --url https://example.com/mcp --header 'Authorization: Bearer env:DOCS_TOKEN'")]
pub struct RunArgs {
    #[command(flatten)]
    flags: Flags,
    /// Ask nobody for a token. Every program on this machine can then use the server
    #[arg(long)]
    no_auth: bool,
    /// Who shares the server's process: shared, per_session or shared_always
    #[arg(long, value_name = "HOW", default_value = "shared", value_parser = process)]
    process: ProcessSharing,
    #[command(flatten)]
    log: LogArgs,
    /// Whether a POST may be answered with a stream
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set, hide = true)]
    post_sse: bool,
    #[command(flatten)]
    target: TargetArgs,
}

impl RunArgs {
    /// Bridges a server of our own, for everybody on this machine.
    pub(super) fn own(command: Vec<String>, address: SocketAddr, post_sse: bool) -> Self {
        let flags = Flags { address: Some(address.ip().to_string()), port: Some(address.port()), ..Flags::default() };
        let target = TargetArgs { command, ..TargetArgs::default() };
        Self { flags, no_auth: true, process: ProcessSharing::default(), log: LogArgs::warnings(), post_sse, target }
    }

    pub fn run(self, env: &Env) -> anyhow::Result<()> {
        let mut destination = self.target.destination(NAME, "prism run", Some(env))?;
        if let Some(wanted) = destination.command.first() {
            let path = env.var("PATH").unwrap_or_default();
            match program::find(wanted, None, path) {
                Ok(_) => {}
                Err(ProgramLookupError::NotOnPath { .. }) => bail!(
                    "{wanted:?} was not found on PATH\n  \
                     fix: install it, or give its full path: prism run -- /path/to/{wanted}"
                ),
                Err(absent) => bail!("{absent}\n  fix: {}", absent.fix()),
            }
        }
        let home = daemon::home(env)?;
        let capped = self.flags.max_sessions.is_some() || Config::caps_sessions(env);
        let mut config = RawConfig::default().config(env, &self.flags)?;
        // The port that nobody has chosen for this is the daemon's, and that may well be running.
        let daemon = Registration::alive(home.path()).filter(|daemon| daemon.port == config.port);
        let is_default = daemon.is_some() || env.var("PRISM_PORT").is_none();
        if self.flags.port.is_none() && is_default && is_taken(&config) {
            let holder = match daemon {
                Some(daemon) => format!("Prism's own daemon (pid {})", daemon.pid),
                None => "another program".to_owned(),
            };
            say::note(&format!("{holder} has port {}, so this takes a free one; --port N chooses one", config.port));
            config.port = 0;
        }
        // In the user's own shell, it runs as if it were typed there.
        destination.inherit_env = EnvInheritance::All;
        destination.max_memory = config.max_memory;
        config.login_path = false;
        // One server for whoever comes: the cap of a configured destination would only surprise here.
        let max_sessions = if capped { config.max_sessions } else { sessions_by_open_files() };
        ensure!(max_sessions > 0, "--max-sessions must be at least 1");
        destination.process = self.process;
        destination.max_sessions = max_sessions;
        destination.post_sse = self.post_sse;
        let server = say::server(&destination);
        config.destinations.insert(NAME.to_owned(), destination);
        let daemon = DaemonSetup {
            config,
            file: None,
            guarded: Vec::new(),
            untrusted: Vec::new(),
            root: Some(NAME.to_owned()),
            authenticated: !self.no_auth,
            socket: None,
            log: self.log.log,
            colour: say::colour(),
            warn: say::warning,
            standing: None,
            reloader: None,
        };
        let token = home.path().join("http-mcp-token");
        daemon.run(&home, |config, origin| announce(config, origin, &server, &token))
    }
}

/// Whether somebody listens there already.
fn is_taken(config: &Config) -> bool {
    let bound = TcpListener::bind((config.address, config.port));
    bound.is_err_and(|error| error.kind() == ErrorKind::AddrInUse)
}

fn announce(config: &Config, origin: Option<&TokenOrigin>, server: &str, token: &Path) {
    let url = config.root_url();
    say::line(&daemon::listening(config, &url));
    daemon::warn_if_exposed(config, origin.is_some());
    say::line(&format!("bridging     {server}"));
    let bearer = daemon::introduce_token(origin, token);
    say::line(&format!("next         claude mcp add --transport http prism {url}{bearer}"));
}

fn process(text: &str) -> Result<ProcessSharing, String> {
    let all = ProcessSharing::ALL.map(ProcessSharing::as_str);
    ProcessSharing::ALL.into_iter().find(|p| p.as_str() == text).ok_or_else(|| format!("one of {}", all.join(", ")))
}
