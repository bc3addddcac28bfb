//! How the commands that ask a server something get there: a URL as it is, a configured name by way of the daemon that
//! runs, or of a server in this process when none does. What they ask is their own affair.

use std::{
    future::Future,
    io,
    net::Ipv4Addr,
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, anyhow, bail};
use bytes::Bytes;
use hyper::{HeaderMap, Method as Verb, header::HeaderValue};
use prism_api::status::StatusReport;
use prism_bridge::drive::health;
use prism_config::{
    Config, Env, Flags, HttpConfig,
    file::{self, ConfigPaths, LoadedConfig},
    home::{Home, Token},
    raw,
    registration::Registration,
};
use prism_core::shell::command_line;
use prism_daemon::{
    lifecycle, own_server,
    running::{RunningServer, ServerPersistence},
    serve::{self},
};
use prism_mcp::{
    client::{ClientError, ClientOptions, McpClient, QuestionHandler, RevisionChoice, TrafficObserver},
    remote::{RemoteFailure, RemoteTarget, reading},
};
use prism_telemetry::DaemonLog;
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    time::timeout,
};
use tracing::level_filters::LevelFilter;

use super::{daemon, say, target::header};

/// How long whoever listens on Prism's port may take to say who it is.
const WHO_TIMEOUT: Duration = Duration::from_secs(3);
/// What is read of what it says.
const MAX_WHO_BYTES: usize = 32 << 20;
/// What a shell expects of a command that was interrupted.
const INTERRUPTED: u8 = 130;

/// What the command line says about the way there.
#[derive(Debug, clap::Args)]
pub(super) struct ConnectArgs {
    /// Config file to read, instead of ./prism.toml or the one in Prism's home
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// Bearer token for a URL: as it is, env:NAME, or @FILE
    #[arg(long)]
    pub(super) token: Option<String>,
    /// Header for every request to a URL, as in 'X-Key: env:NAME'
    #[arg(long = "header", value_name = "NAME: VALUE", value_parser = header)]
    pub(super) headers: Vec<(String, String)>,
    /// Revision of the protocol to speak: auto, or one by its date; a probe also knows all
    #[arg(long, value_name = "REVISION", default_value = "auto")]
    pub(super) revision: String,
}

/// The way to every destination of a config.
pub(super) struct ServerReach {
    pub(super) config: Config,
    base: String,
    token: Token,
    running: Option<RunningServer>,
}

/// Whoever wants us to stop. Made once, at the start: what comes while nobody looks is not lost.
pub(super) struct Interrupts {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

/// Whether a word on the command line is a URL, and not the name of a destination.
pub(super) fn is_url(word: &str) -> bool {
    word.contains("://")
}

/// Runs a command to its end, or until somebody presses Ctrl-C; the command puts away what it has started.
pub(super) fn run(command: impl Future<Output = anyhow::Result<ExitCode>>) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(lifecycle::workers())
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let code = runtime.block_on(command);
    // A thread may wait for a person's answer that nobody wants any more.
    runtime.shutdown_background();
    code
}

// === impl Interrupts ===

impl Interrupts {
    pub(super) fn new() -> io::Result<Self> {
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        let [interrupt, terminate, hangup] = kinds.map(signal);
        Ok(Self { interrupt: interrupt?, terminate: terminate?, hangup: hangup? })
    }

    /// Returns when somebody wants us to stop, or has wanted to since the last time. Cancel safe.
    pub(super) async fn next(&mut self) -> ExitCode {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hangup.recv() => {}
        }
        ExitCode::from(INTERRUPTED)
    }
}

// === impl ConnectArgs ===

impl ConnectArgs {
    /// A URL with what goes with every request to it.
    pub(super) fn http(&self, url: &str, env: &Env) -> anyhow::Result<HttpConfig> {
        if !url.starts_with("http://") && !url.starts_with("https://") {
            bail!("{url:?} is no http or https URL\n  fix: https://example.com/mcp, or the name of a server");
        }
        let mut headers = self.headers.clone();
        if let Some(token) = &self.token {
            let token = match token.strip_prefix('@') {
                Some(file) => {
                    let read = std::fs::read_to_string(file);
                    read.with_context(|| format!("cannot read the token in {file}"))?.trim().to_owned()
                }
                None => token.clone(),
            };
            headers.retain(|(name, _)| !name.eq_ignore_ascii_case("authorization"));
            headers.push(("Authorization".to_owned(), format!("Bearer {token}")));
        }
        Ok(HttpConfig::from_flags("url", url, None, &headers, Some(env))?)
    }

    pub(super) fn wanted(&self) -> anyhow::Result<RevisionChoice> {
        RevisionChoice::named(&self.revision).ok_or_else(|| unknown_revision(&self.revision))
    }

    /// Finds the way to a name, or to every name there is.
    pub(super) async fn reach(&self, name: Option<&str>, env: &Env) -> anyhow::Result<ServerReach> {
        let home = daemon::home(env)?;
        let places = ConfigPaths { explicit: self.config.clone(), here: PathBuf::new(), home: home.path().to_owned() };
        let LoadedConfig { config, untrusted, guarded, .. } = file::load(&places, &[], &Flags::default(), env)?;
        say::untrusted(&untrusted);
        // What Prism is itself is there without being configured.
        let is_own = name.is_some_and(|name| [own_server::NAME, prism_workspace::NAME].contains(&name));
        if config.destinations.is_empty() && !is_own {
            bail!("no servers yet\n  fix: prism add files -- npx -y @modelcontextprotocol/server-filesystem .");
        }
        if let Some(name) = name.filter(|name| !is_own && !config.destinations.contains_key(*name)) {
            let known = config.destinations.keys().map(String::as_str);
            bail!("{}", unknown("server", name, known));
        }
        if self.token.is_some() || !self.headers.is_empty() {
            bail!("--token and --header are for a URL; a server has its own in the config\n  fix: take them out");
        }
        // It may listen elsewhere than the config says, by a flag; but a config of somebody's own is not what it serves.
        let registered = Registration::alive(home.path()).filter(|_| self.config.is_none());
        ServerReach::open(config, &guarded, &home, registered).await
    }
}

pub(super) fn unknown_revision(name: &str) -> anyhow::Error {
    let known: Vec<&str> = RevisionChoice::all().into_iter().map(RevisionChoice::name).collect();
    anyhow!("there is no revision {name:?}\n  fix: auto, or one of {}", known.join(", "))
}

/// The words for a name that nobody has: the one that was meant, and all there are.
pub(super) fn unknown<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    let near = raw::nearest(name, known.clone()).map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
    let all: Vec<&str> = known.collect();
    let all = if all.is_empty() { "there are none".to_owned() } else { format!("known: {}", all.join(", ")) };
    format!("no {what} {name:?}{near}\n  {all}")
}

// === impl ServerReach ===

impl ServerReach {
    async fn open(
        mut config: Config,
        guarded: &[PathBuf],
        home: &Home,
        registered: Option<Registration>,
    ) -> anyhow::Result<Self> {
        let base = registered.map_or_else(|| config.base_url(), |registered| registered.url);
        if is_prism(&base).await? {
            let (token, _) = home.token()?;
            if !knows_token(&base, &token).await? {
                bail!(
                    "the Prism that listens at {base} has another token than the one in {}\n  fix: set PRISM_HOME (or \
                     PRISM_API_KEY) as it was set where that one was started, or stop it",
                    home.path().display()
                );
            }
            return Ok(Self { config, base, token, running: None });
        }
        // Nobody is there: we are the daemon, for as long as this takes and for nobody else.
        config.address = Ipv4Addr::LOCALHOST.into();
        config.port = 0;
        config.drain_timeout = Duration::ZERO;
        config.login_path = false;
        let listener = serve::bind(&config).await?;
        config.port = listener.local_addr().context("cannot see the port")?.port();
        let (base, token) = (config.base_url(), Token::random()?);
        let log = DaemonLog::start(LevelFilter::OFF, false);
        let mut running = RunningServer::start(
            config.clone(),
            None,
            Some(token.clone()),
            home.path(),
            guarded,
            ServerPersistence::Nothing,
            (log, say::warning),
        )
        .await?;
        running.accept(listener);
        Ok(Self { config, base, token, running: Some(running) })
    }

    /// Where a destination is.
    pub(super) fn http(&self, name: &str) -> HttpConfig {
        let mut http = HttpConfig::new(&format!("{}/{name}/mcp", self.base));
        http.headers.insert("authorization".to_owned(), format!("Bearer {}", self.token.expose()));
        http
    }

    /// How everything is there.
    pub(super) async fn status(&self) -> Option<StatusReport> {
        let (_, body) = get(&self.base, "/status", Some(&self.token)).await.ok()?;
        serde_json::from_slice(&body).ok()
    }

    /// Why a server is still waited for, in a line.
    pub(super) async fn delay(&self, name: &str, since: Instant) -> String {
        let status = self.status().await;
        let known = status.iter().flat_map(|status| &status.destinations).find(|one| one.name == name);
        let why = known.map(|one| format!(" ({}: {})", health::word(&one.state), one.why)).unwrap_or_default();
        format!("waiting for {name} for {} s now{why}", since.elapsed().as_secs())
    }

    /// What to do about a server that does not run. Its own words are in the log of a daemon, and we are none.
    pub(super) fn advice(&self, name: &str) -> Option<String> {
        let destination = self.config.destinations.get(name).filter(|_| self.running.is_some())?;
        destination.http.is_none().then(|| format!("see what it says: {}", command_line(&destination.command)))
    }

    /// Ends what was started. Nothing of it is left when this returns.
    pub(super) async fn close(self, stop: &mut Interrupts) {
        if let Some(running) = self.running {
            running.stop(stop.next()).await;
        }
    }
}

/// Whether a Prism listens there. `false`: nobody does; somebody else is an error.
async fn is_prism(base: &str) -> anyhow::Result<bool> {
    match get(base, "/healthz", None).await {
        Ok((200, body)) if body.starts_with(br#"{"status":"alive"#) => Ok(true),
        Err(RemoteFailure::Unreachable { .. }) => Ok(false),
        _ => bail!(
            "something that is not Prism listens at {base}\n  \
             fix: stop it, or give Prism another port: `port = …` in prism.toml, or PRISM_PORT"
        ),
    }
}

async fn knows_token(base: &str, token: &Token) -> anyhow::Result<bool> {
    match get(base, "/metrics", Some(token)).await {
        Ok((status, _)) => Ok(status != 401),
        Err(failure) => bail!("the Prism at {base} does not answer: {failure}"),
    }
}

/// Asks for a page, with the token that opens it.
pub(super) async fn get(base: &str, path: &str, token: Option<&Token>) -> Result<(u16, Bytes), RemoteFailure> {
    let why = |error| RemoteFailure::Unreachable { why: format!("{error}") };
    let target: Arc<RemoteTarget> =
        RemoteTarget::new(&format!("{base}{path}"), Vec::new(), None, MAX_WHO_BYTES).map_err(why)?;
    let mut headers = HeaderMap::new();
    if let Some(value) = token.and_then(|token| HeaderValue::from_str(&format!("Bearer {}", token.expose())).ok()) {
        headers.insert(hyper::header::AUTHORIZATION, value);
    }
    let asking = async {
        let (_, response) = target.send(Verb::GET, &target.url, || headers.clone(), Bytes::new()).await?;
        let status = response.status().as_u16();
        Ok((status, reading::whole(response.into_body(), MAX_WHO_BYTES).await?))
    };
    let late = |_| Err(RemoteFailure::NotMcp { why: "no answer in time".to_owned() });
    timeout(WHO_TIMEOUT, asking).await.unwrap_or_else(late)
}

/// Opens a client with what all commands but the probe have in common.
pub(super) async fn open(
    http: HttpConfig,
    wanted: RevisionChoice,
    patience: Duration,
    manners: QuestionHandler,
    watch: Arc<dyn TrafficObserver>,
) -> Result<Arc<McpClient>, ClientError> {
    let (url, headers) = (http.url, http.headers.into_iter().collect());
    let level = Some("info");
    McpClient::open(ClientOptions { url, headers, wanted, patience, manners, capabilities: None, level, watch }).await
}

/// Says that a command was interrupted, on a line of its own.
pub(super) fn say_interrupted() {
    say::status(None);
    say::note("interrupted");
}
