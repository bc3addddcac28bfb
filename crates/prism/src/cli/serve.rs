//! `prism serve`: the daemon, on its configuration or on none.

use std::path::{Path, PathBuf};

use super::{
    add::is_program,
    daemon::{self, Daemon, LogFlags},
    say,
};
use crate::{
    config::{
        Config, Env, Flags,
        file::{self, Places},
    },
    home::TokenOrigin,
};

#[derive(clap::Args)]
pub struct Serve {
    /// The config file, instead of ./prism.toml or the one in Prism's home
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// An `mcpServers` JSON of an editor to serve as well, as in .cursor/mcp.json
    #[arg(long, value_name = "FILE")]
    mcp_json: Vec<PathBuf>,
    #[command(flatten)]
    flags: Flags,
    /// What the hub's list of tools shows: list (every tool) or search (two, to find and call the others)
    #[arg(long, value_name = "MODE")]
    hub_mode: Option<String>,
    /// Root of the workspace memory, instead of the folder of a project's own config file
    #[arg(long, value_name = "DIR")]
    workspace: Option<String>,
    /// Ask nobody for a token. Every program on this machine can then use every server
    #[arg(long)]
    no_auth: bool,
    #[command(flatten)]
    log: LogFlags,
}

impl Serve {
    pub fn run(self, env: &Env) -> anyhow::Result<()> {
        let home = daemon::home(env)?;
        let places = Places { explicit: self.config, here: PathBuf::new(), home: home.path().to_owned() };
        let flags = Flags { hub_mode: self.hub_mode, workspace: self.workspace, ..self.flags };
        let loaded = file::load(&places, &self.mcp_json, &flags, env)?;
        for warning in &loaded.warnings {
            say::warning(&warning.to_string());
        }
        for destination in loaded.config.destinations.values() {
            // One that is reached over HTTP has none.
            let Some(program) = destination.command.first() else {
                continue;
            };
            if !is_program(program, destination.cwd.as_deref(), env) {
                say::warning(&format!("destination {:?}: {program:?} was not found on PATH", destination.name));
            }
        }
        let file = loaded.file;
        let daemon = Daemon {
            config: loaded.config,
            root: None,
            authenticated: !self.no_auth,
            socket: Some(home.path().join("prism.sock")),
            log: self.log,
        };
        let token = home.path().join("http-mcp-token");
        let program = daemon::program(env);
        daemon.run(&home, |config, origin| announce(config, origin, file.as_deref(), &token, &program))
    }
}

fn announce(config: &Config, origin: Option<&TokenOrigin>, file: Option<&Path>, token: &Path, program: &str) {
    say::line(&format!("listening on {}", config.base_url()));
    match file {
        Some(file) => say::line(&format!("config       {}", file.display())),
        None => say::line("config       none; everything is at its default"),
    }
    let bearer = daemon::introduce_token(origin, token);
    say::line(&format!("hub          {}", config.root_url()));
    for name in config.destinations.keys() {
        say::line(&format!("destination  {}", config.url(name)));
    }
    match config.destinations.keys().next() {
        None => {
            say::line(&format!("next         {program} add files -- npx -y @modelcontextprotocol/server-filesystem ."));
            say::line("             and start this again; or try one server at once, with nothing configured:");
            say::line(&format!("             {program} run --port 0 -- {program} demo-server"));
        }
        Some(_) => {
            say::line(&format!("next         claude mcp add --transport http prism {}{bearer}", config.root_url()));
        }
    }
}
