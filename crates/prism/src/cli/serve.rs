//! `prism serve`: the daemon, on its configuration or on none; here, or in the background.

use std::{
    path::{self, Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, anyhow};
use prism_os::program;

use super::{
    daemon::{self, LogArgs},
    say,
    service::LAUNCHD,
    start::{self, ALREADY_RUNNING, DaemonCommandLine, StartOutcome},
};
use prism_config::{
    Config, Env, Flags,
    file::{self, ConfigPaths, ExplicitTrust, LoadedConfig},
    home::{Home, TokenOrigin},
    lock::{DaemonLock, LockError, LockHolder},
    raw::RawConfig,
    registration::Registration,
    trust::TrustStore,
};
use prism_daemon::{
    lifecycle::{DaemonIdentity, DaemonSetup},
    reload::ConfigReloader,
};

/// Serve every configured server
#[derive(clap::Args)]
#[command(after_help = "Examples:
  prism serve                             here, until Ctrl-C
  prism serve --detach                    in the background; then prism stop, restart, logs
  prism serve --detach --if-running ok    in a script: fine if it runs already
  prism serve --check                     start nothing; is the config right?

Exits with 3 if another daemon of the same home runs already.")]
pub struct ServeArgs {
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
    /// Run in the background; returns when it answers
    #[arg(long)]
    detach: bool,
    /// Only read the config, and say what is wrong with it
    #[arg(long, conflicts_with = "detach")]
    check: bool,
    /// If a daemon is already running: `ok` exits 0, `error` exits 3
    #[arg(long, value_name = "HOW", default_value = "error")]
    if_running: IfRunning,
    /// Print where the daemon is as JSON
    #[arg(long, requires = "detach")]
    json: bool,
    #[command(flatten)]
    log: LogArgs,
    /// This is the daemon in the background: stdout and stderr are the log
    #[arg(long, hide = true, conflicts_with = "detach")]
    detached: bool,
    /// Who starts it again when it ends
    #[arg(long, value_name = "NAME", hide = true, conflicts_with = "detach")]
    supervised: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum IfRunning {
    Ok,
    Error,
}

impl ServeArgs {
    pub fn run(mut self, env: &Env) -> anyhow::Result<ExitCode> {
        let home = daemon::home(env)?;
        let folder = std::env::current_dir().context("the folder this was started in is gone")?;
        if self.detach {
            return self.start_in_background(env, &home, &folder);
        }
        if self.check {
            return self.check(env, &home, &folder);
        }
        let lock = match DaemonLock::take(home.path()) {
            Ok(lock) => lock,
            // Whoever started us looks for the other one itself.
            Err(LockError::Held { .. }) if self.detached => return Ok(ExitCode::from(ALREADY_RUNNING)),
            Err(LockError::Held { holder, .. }) => return Ok(self.already_running(&home, holder.as_ref())),
            Err(error) => return Err(error.into()),
        };
        if self.detached {
            self.mean_absolute_paths();
        }
        // launchd has been told to write there, too.
        let to_file = self.detached || self.supervised.as_deref() == Some(LAUNCHD);
        let log_file = to_file.then(|| home.path().join(start::LOG));
        self.mean(&home, &folder)?;
        let reloader = self.reloader(env, &home, &folder);
        let loaded = reloader.load()?;
        self.warn(&loaded, env);
        if self.detached {
            let rest = resting_folder(loaded.file.as_deref(), &home, env);
            std::env::set_current_dir(&rest).with_context(|| format!("cannot go to {}", rest.display()))?;
        }
        let file = loaded.file;
        let standing = DaemonIdentity { lock, arguments: typed(), folder, log_file, supervisor: self.supervised };
        let daemon = DaemonSetup {
            config: loaded.config,
            file: file.clone(),
            guarded: loaded.guarded,
            untrusted: loaded.untrusted,
            root: None,
            authenticated: !self.no_auth,
            socket: Some(home.path().join("prism.sock")),
            log: self.log.log,
            colour: say::colour(),
            warn: say::warning,
            standing: Some(standing),
            reloader: Some(reloader),
        };
        let token = home.path().join("http-mcp-token");
        let program = daemon::program(env);
        daemon.run(&home, |config, origin| announce(config, origin, file.as_deref(), &token, &program))?;
        Ok(ExitCode::SUCCESS)
    }

    fn start_in_background(self, env: &Env, home: &Home, folder: &Path) -> anyhow::Result<ExitCode> {
        if start::running(home.path()).is_some() {
            return Ok(self.already_running(home, None));
        }
        self.mean(home, folder)?;
        // What is wrong with the config is said here and now, not in a log.
        let loaded = self.reloader(env, home, folder).load()?;
        self.warn(&loaded, env);
        home.token()?;
        let start = DaemonCommandLine { arguments: typed(), folder: folder.to_owned() };
        match start.run(home)? {
            StartOutcome::Started(registration) if self.json => {
                say::line(&serde_json::to_string_pretty(&registration)?)
            }
            StartOutcome::Started(registration) => start::announce(&registration, &daemon::program(env)),
            StartOutcome::Found(_) => return Ok(self.already_running(home, None)),
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Says who runs (D-02).
    fn already_running(&self, home: &Home, holder: Option<&LockHolder>) -> ExitCode {
        let registered = Registration::alive(home.path());
        if let (true, Some(registration)) = (self.json, &registered) {
            say::line(&serde_json::to_string_pretty(registration).unwrap_or_default());
        }
        let who = match (&registered, holder) {
            (Some(found), _) => format!("pid {}, since {}, at {}", found.pid, found.started_at, found.url),
            (None, Some(found)) => format!("pid {}, since {}; it does not listen", found.pid, found.started_at),
            (None, None) => "it is just starting, or stopping".to_owned(),
        };
        match self.if_running {
            IfRunning::Ok if self.json => ExitCode::SUCCESS,
            IfRunning::Ok => {
                say::line(&format!("already runs ({who})"));
                ExitCode::SUCCESS
            }
            IfRunning::Error => {
                say::error(&anyhow!(
                    "Prism already runs in {} ({who})\n  fix: prism stop, or prism restart; \
                     or give this one a folder of its own with PRISM_HOME",
                    home.path().display()
                ));
                ExitCode::from(ALREADY_RUNNING)
            }
        }
    }

    /// Says what is wrong with what the files say now, and whether that counts.
    fn check(&self, env: &Env, home: &Home, folder: &Path) -> anyhow::Result<ExitCode> {
        let places = self.places(home, folder);
        let loaded = file::load(&places, &self.mcp_json, &self.flags(), env)?;
        for untrusted in &loaded.untrusted {
            RawConfig::parse(&untrusted.path, &untrusted.text)?.config(env, &self.flags())?;
        }
        self.warn(&loaded, env);
        Ok(ExitCode::SUCCESS)
    }

    /// What is named on the command line counts as it is now if somebody has just typed that, and else as it was then.
    fn mean(&self, home: &Home, folder: &Path) -> anyhow::Result<()> {
        let typed = !self.detached && self.supervised.is_none();
        let named = if typed { ExplicitTrust::Now } else { ExplicitTrust::Before };
        for changed in file::mean(&self.places(home, folder), &self.mcp_json, named)? {
            say::note(&format!(
                "{} has changed since it last counted; named here, it counts as it is now",
                changed.display()
            ));
        }
        Ok(())
    }

    fn places(&self, home: &Home, folder: &Path) -> ConfigPaths {
        // Where the daemon goes on from is another folder than where it was started.
        let here = if self.detached { folder.to_owned() } else { PathBuf::new() };
        ConfigPaths { explicit: self.config.clone(), here, home: home.path().to_owned() }
    }

    fn flags(&self) -> Flags {
        Flags { hub_mode: self.hub_mode.clone(), workspace: self.workspace.clone(), ..self.flags.clone() }
    }

    /// How the config is read, now and whenever it changes.
    fn reloader(&self, env: &Env, home: &Home, folder: &Path) -> ConfigReloader {
        let places = self.places(home, folder);
        let (mcp_json, flags, env) = (self.mcp_json.clone(), self.flags(), env.clone());
        let trusted = TrustStore::of(home.path()).file();
        let files = places.candidates().into_iter().chain(mcp_json.clone()).chain([trusted]).collect();
        ConfigReloader::new(files, move || Ok(file::load_as(&places, &mcp_json, &flags, &env, ExplicitTrust::Before)?))
    }

    fn warn(&self, loaded: &LoadedConfig, env: &Env) {
        say::untrusted(&loaded.untrusted);
        daemon::warn_if_exposed(&loaded.config, !self.no_auth);
        for warning in &loaded.warnings {
            say::warning(&warning.to_string());
        }
        let asks_shell = prism_daemon::running::asks_shell(&loaded.config);
        for destination in loaded.config.destinations.values() {
            // One that is reached over HTTP has none.
            let Some(wanted) = destination.command.first() else {
                continue;
            };
            // What the login shell would find is not known yet; of that the log will tell.
            let path = env.var("PATH").unwrap_or_default();
            let absent = program::find(wanted, destination.cwd.as_deref(), path).err();
            if let Some(absent) = absent.filter(|_| !asks_shell) {
                say::warning(&format!("server {:?}: {absent}", destination.name));
            }
        }
    }

    fn mean_absolute_paths(&mut self) {
        let absolute = |path: &PathBuf| path::absolute(path).unwrap_or_else(|_| path.clone());
        self.config = self.config.as_ref().map(absolute);
        self.mcp_json = self.mcp_json.iter().map(absolute).collect();
        let workspace = self.workspace.as_ref().map(|path| absolute(&PathBuf::from(path)));
        self.workspace = workspace.map(|path| path.to_string_lossy().into_owned());
    }
}

/// What was typed, without what says only how this one start is to be: a restart types it again.
fn typed() -> Vec<String> {
    let mut kept = Vec::new();
    let mut words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    while let Some(word) = words.next() {
        match word.as_str() {
            "--detach" | "--detached" | "--json" => {}
            "--if-running" | "--supervised" => drop(words.next()),
            other if other.starts_with("--if-running=") || other.starts_with("--supervised=") => {}
            _ => kept.push(word),
        }
    }
    kept
}

/// Where a daemon in the background works: with the project whose config it runs on, else where its user is at home, as
/// a service does. Not in Prism's home: servers are told `.` as the folder to show, and the token lies there.
fn resting_folder(file: Option<&Path>, home: &Home, env: &Env) -> PathBuf {
    let project = file.and_then(Path::parent).filter(|folder| *folder != home.path() && folder.is_dir());
    let user = env.var("HOME").map(Path::new).filter(|folder| folder.is_dir());
    project.or(user).unwrap_or(Path::new("/")).to_owned()
}

fn announce(config: &Config, origin: Option<&TokenOrigin>, file: Option<&Path>, token: &Path, program: &str) {
    say::line(&daemon::listening(config, &config.base_url()));
    match file {
        Some(file) => say::line(&format!("config       {}", file.display())),
        None => say::line("config       none; everything is at its default"),
    }
    let bearer = daemon::introduce_token(origin, token);
    say::line(&format!("hub          {}", config.root_url()));
    for name in config.destinations.keys() {
        say::line(&format!("server       {}", config.url(name)));
    }
    match config.destinations.keys().next() {
        None => {
            say::line(&format!("next         {program} add files -- npx -y @modelcontextprotocol/server-filesystem ."));
            say::line("             which is taken up at once; or try one server, with nothing configured:");
            say::line(&format!("             {program} run --port 0 -- {program} demo-server"));
        }
        Some(_) => {
            say::line(&format!("by hand      claude mcp add --transport http prism {}{bearer}", config.root_url()));
            say::line(&format!("next         {program} install cursor claude-code, or {program} install --all"));
        }
    }
}
