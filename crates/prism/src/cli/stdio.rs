//! `prism stdio`: where the daemon is, and then the shim.

use std::{
    io::{self, IsTerminal},
    process::ExitCode,
    sync::Arc,
};

use anyhow::Context;

use super::{daemon, say, start};
use crate::shim::{self, DaemonAddress, DaemonLocator, ShimRoute};
use prism_config::{Env, NameError, home::Home, raw, registration::Registration};
use prism_mesh::wake::Tmux;

/// Be an MCP server on stdio, for clients that cannot speak HTTP
#[derive(clap::Args)]
#[command(after_help = "Examples:
  prism stdio                                all destinations, as one server
  prism stdio files                          one of them
  claude mcp add prism -- prism stdio        in the config of a client

It is a client that starts this. The daemon is started if it does not run.")]
pub struct StdioArgs {
    /// One server; all of them, as one server, if left out
    name: Option<String>,
    /// Where a daemon is that need not be looked for, nor started
    #[arg(long, value_name = "URL", hide = true)]
    url: Option<String>,
}

impl StdioArgs {
    pub fn run(self, env: &Env) -> anyhow::Result<ExitCode> {
        let route = match self.name {
            None => ShimRoute::Hub,
            Some(name) => {
                // It goes into a URL. Names that nobody can give are those of Prism's own servers.
                match raw::check_name(&name) {
                    Ok(()) | Err(NameError::Reserved { .. }) => ShimRoute::Direct(name),
                    Err(error) => return Err(error.into()),
                }
            }
        };
        if io::stdin().is_terminal() {
            say::note("this speaks MCP on stdin and stdout: it is for a client to start, as in `prism install void`");
            say::note("  Ctrl-D ends it; to look at your servers yourself, type prism tools");
        }
        let url = self.url.or_else(|| env.var("PRISM_URL").and_then(|url| url.to_str().map(str::to_owned)));
        let door = Arc::new(HomeLocator { env: env.clone(), home: daemon::home(env)?, url });
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start the runtime")?;
        let ended = runtime.block_on(shim::run(route, door, pane(env)));
        // A thread may still wait for a line that does not come.
        runtime.shutdown_background();
        ended.context("cannot speak on stdin and stdout")?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The pane that this runs in, if it is one of the user's own tmux: the daemon finds no other server by a number.
fn pane(env: &Env) -> Option<String> {
    let var = |name: &str| env.var(name).and_then(|value| value.to_str());
    let told = Tmux::read(var("TMUX")?, var("TMUX_PANE")?)?;
    told.socket.filter(|socket| socket.ends_with("default")).map(|_| told.pane)
}

/// The daemon of this home.
struct HomeLocator {
    env: Env,
    home: Home,
    url: Option<String>,
}

impl HomeLocator {
    /// The way to a daemon. The socket is preferred: it needs no port, and a port may be somebody else's tomorrow.
    fn address(&self, daemon: Registration) -> anyhow::Result<DaemonAddress> {
        let (token, _) = self.home.token()?;
        Ok(DaemonAddress { base: daemon.url, socket: daemon.socket.filter(|socket| socket.exists()), token })
    }

    fn elsewhere(&self) -> anyhow::Result<Option<DaemonAddress>> {
        let Some(url) = &self.url else { return Ok(None) };
        let (token, _) = self.home.token()?;
        Ok(Some(DaemonAddress { base: url.trim_end_matches('/').to_owned(), socket: None, token }))
    }
}

impl DaemonLocator for HomeLocator {
    fn start(&self) -> Result<DaemonAddress, String> {
        let started = match self.elsewhere() {
            Ok(None) => start::ensure_running(&self.env, &self.home).and_then(|daemon| self.address(daemon)),
            Ok(Some(address)) => Ok(address),
            Err(error) => Err(error),
        };
        started.map_err(|error| format!("{error:#}"))
    }

    fn look(&self) -> Option<DaemonAddress> {
        let elsewhere = self.elsewhere().ok()?;
        elsewhere.or_else(|| self.address(Registration::alive(self.home.path())?).ok())
    }
}
