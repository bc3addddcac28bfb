//! The checked configuration: what every other crate reads. `raw` knows how it is written down. And Prism's own folder: what
//! lies in it (`home`), whose it is (`lock`), and where its daemon is (`registration`).
//!
//! The environment enters the program as an [`Env`]; whoever needs a variable is handed it. So a test passes a map, and
//! no two modules ever see two different environments.

use std::{
    collections::BTreeMap,
    fmt, io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    path::{Path, PathBuf},
    time::Duration,
};

use prism_core::mcp::Era;

pub use editor::Editor;
pub use env::Env;
pub use gate::{AuditCalls, AuditConfig, GateConfig};
pub use http::{HttpConfig, may_forward};
pub use hub::{HubConfig, HubMode, ProfileConfig};
pub use inherit::{EnvInheritance, OWN_SECRETS};
pub use mesh::MeshConfig;
pub use prism_core::mcp::Transport;
pub use sandbox::SandboxConfig;
pub use table::{ServerKey, ServerTable};
pub use times::{TimeLimitOverrides, TimeLimits};
pub use tools::{PinPolicy, ToolsConfig};

pub mod editor;
mod env;
pub mod file;
pub mod gate;
pub mod home;
pub mod http;
pub mod hub;
mod inherit;
pub mod lock;
pub mod mcp_json;
pub mod mesh;
pub mod raw;
pub mod registration;
mod sandbox;
pub mod secret;
mod table;
mod times;
mod tools;
pub mod trust;
mod value;

#[cfg(test)]
mod tests;

/// Sessions one destination may have at a time, unless somebody says otherwise (B-10).
const DEFAULT_MAX_SESSIONS: usize = 10;

/// Everything the daemon needs to know, checked and complete.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    pub address: IpAddr,
    pub port: u16,
    /// Names beside the loopback ones that a `Host` header may carry.
    pub allowed_hosts: Vec<String>,
    /// Origins beside the loopback ones that a browser page may have.
    pub allowed_origins: Vec<String>,
    /// `None` waits for ever (written as `0`).
    pub request_timeout: Option<Duration>,
    /// When a call ends at the latest, whatever its server tells of it.
    pub max_request_time: Duration,
    /// How long a server may take to start, which is no call's time; `None` waits for ever.
    pub start_timeout: Option<Duration>,
    pub max_message_bytes: usize,
    pub session_idle_timeout: Option<Duration>,
    /// How long calls in flight may take to finish when the daemon stops.
    pub drain_timeout: Duration,
    /// The cap of every destination that does not set its own (B-10).
    pub max_sessions: usize,
    /// What every child inherits of the daemon's environment, unless its destination says otherwise.
    pub inherit_env: EnvInheritance,
    /// Whether children get the PATH of the user's login shell, too.
    pub login_path: bool,
    /// Bytes that each child and all it starts may hold, unless its destination says otherwise.
    pub max_memory: Option<u64>,
    /// Whether the log records of calls carry the bodies (`AUDIT_LOG_BODIES`).
    pub log_bodies: bool,
    /// How clients hear that a call has failed, at the hub and wherever a destination does not say otherwise.
    pub error_statuses: ErrorStatuses,
    pub hub: HubConfig,
    pub mesh: MeshConfig,
    pub gate: GateConfig,
    pub audit: AuditConfig,
    pub editor: Editor,
    pub profiles: BTreeMap<String, ProfileConfig>,
    /// The root of the workspace memory; `None`: nobody said, and the config is no project's own.
    pub workspace: Option<PathBuf>,
    pub destinations: BTreeMap<String, DestinationConfig>,
}

/// One MCP server behind Prism.
#[derive(Clone, PartialEq)]
pub struct DestinationConfig {
    pub name: String,
    /// The word that it stands below in the file.
    pub table: ServerTable,
    /// What starts it; empty for one that is reached over HTTP.
    pub command: Vec<String>,
    /// As it is written: what stands elsewhere is looked up when the child starts (`secret.rs`).
    pub env: BTreeMap<String, String>,
    pub inherit_env: EnvInheritance,
    /// Bytes that a child and all it starts may hold.
    pub max_memory: Option<u64>,
    pub cwd: Option<PathBuf>,
    /// What it has in its sandbox; `None`: it runs as any program of the person's.
    pub sandbox: Option<SandboxConfig>,
    /// Where it is, if somebody else runs it.
    pub http: Option<HttpConfig>,
    /// How it is spoken to; `None` finds out.
    pub era: Option<Era>,
    pub process: ProcessSharing,
    /// `Some(false)`: this server never asks its client anything, so everybody may share one child.
    pub asks: Option<bool>,
    pub sessions: SessionRequirement,
    pub max_sessions: usize,
    /// How long a shared child outlives its last session.
    pub keep_warm: Duration,
    /// How long a child with sessions may be of no use to any of them before it is stopped; `None`: as long as it likes.
    pub idle_stop: Option<Duration>,
    /// What it says of how long things may take.
    pub times: TimeLimitOverrides,
    /// Each message on one GET stream only, as the protocol says, instead of on all of them.
    pub strict_streams: bool,
    /// Whether clients of the first revision find it at `/NAME/sse` too (B-20, B-21).
    pub legacy_sse: bool,
    pub event_names: EventNames,
    /// Whether the hub shows it.
    pub hub: bool,
    /// Whether a POST may be answered with a stream. If not, what a call says on its way goes to the session's own.
    pub post_sse: bool,
    /// How its clients hear that a call has failed; `None`: as the daemon's do.
    pub error_statuses: Option<ErrorStatuses>,
    /// Which tools may be called. Another word on that is no reason to start the server again.
    pub tools: ToolsConfig,
}

/// Who shares a child (B-04).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProcessSharing {
    #[default]
    Shared,
    PerSession,
    SharedAlways,
}

/// Whether a call needs a session (B-24).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SessionRequirement {
    #[default]
    Optional,
    Required,
    Never,
}

/// What the `event:` lines of a stream say (N-03).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EventNames {
    /// Always `message`: most clients drop every other event.
    #[default]
    Message,
    /// The method of the message that the event carries.
    Method,
}

/// How a client over HTTP hears that a call has failed which nothing is wrong with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ErrorStatuses {
    /// By its status, as the protocol has it; clients that are known not to survive that, in the body of a 200.
    #[default]
    Auto,
    /// By its status, whoever asks.
    Http,
    /// In the body of a 200, whoever asks.
    Ok,
}

/// The settings that a command line may carry. They beat the environment, which beats the file.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Flags {
    /// Address to listen on; any but loopback also needs --insecure
    #[arg(long, value_name = "IP")]
    pub address: Option<String>,
    /// Allow an address that other machines can reach, without TLS
    #[arg(long)]
    pub insecure: bool,
    /// Port to listen on; 0 takes any free one
    #[arg(long)]
    pub port: Option<u16>,
    /// How long a client that takes no stream waits for an answer, as in 30s; 0 waits for ever
    #[arg(long, value_name = "DURATION")]
    pub request_timeout: Option<String>,
    /// When a call ends at the latest, as in 10m
    #[arg(long, value_name = "DURATION")]
    pub max_request_time: Option<String>,
    /// How long a server may take to start, as in 2m; 0 waits for ever
    #[arg(long, value_name = "DURATION")]
    pub start_timeout: Option<String>,
    /// Largest message in either direction, as in 2MiB
    #[arg(long, value_name = "SIZE")]
    pub max_message_bytes: Option<String>,
    /// When an idle session ends, as in 30m; 0 keeps it
    #[arg(long, value_name = "DURATION")]
    pub session_idle_timeout: Option<String>,
    /// Sessions that one server may have at a time
    #[arg(long, value_name = "N")]
    pub max_sessions: Option<usize>,
    /// Write the bodies of calls into the log
    #[arg(long)]
    pub log_bodies: bool,
    /// Only `prism serve` has a hub and a workspace, and fills these in.
    #[arg(skip)]
    pub hub_mode: Option<String>,
    #[arg(skip)]
    pub workspace: Option<String>,
}

/// Why there is no configuration. The text names the place, quotes the line and says how to mend it.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("cannot read {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{} cannot be read, and so nobody knows which configs you trust", path.display())]
    Trust { path: PathBuf, source: io::Error },
    #[error("{} does not exist\n  fix: prism add NAME --config {} -- COMMAND", path.display(), path.display())]
    NoFile { path: PathBuf },
    #[error("{at}: {problem}{}{}", at.quoted(), fix.as_deref().map(|fix| format!("\n  fix: {fix}")).unwrap_or_default())]
    Syntax { at: Origin, problem: String, fix: Option<String> },
    #[error("{at}: unknown key {key:?}{}\n  fix: {fix}", at.quoted())]
    UnknownKey { at: Origin, key: String, fix: String },
    #[error("{at}: {key} {problem}{}\n  fix: {fix}", at.quoted())]
    Value { at: Origin, key: String, problem: String, fix: String },
    #[error("{at}: {problem}{}\n  fix: {}", at.quoted(), problem.fix())]
    Name { at: Origin, problem: NameError },
    #[error(
        "{at}: server {destination:?} has neither a command nor a url{}\n  \
         fix: command = [\"npx\", \"-y\", \"some-mcp-server\"], or url = \"https://example.com/mcp\"",
        at.quoted()
    )]
    NoServer { at: Origin, destination: String },
    #[error("{at}: server {destination:?} has both a command and a url{}\n  fix: keep one of the two", at.quoted())]
    TwoServers { at: Origin, destination: String },
    #[error(
        "{at}: server {name:?} is there twice: as [{table}.{name}] here, and as [{before}.{name}] at {first}{}\n  \
         fix: if that is one server, write [{before}.{name}] here too, and each setting once; if they are two, call this \
         one [{table}.{name}-2], for example",
        at.quoted()
    )]
    TwoTables { at: Origin, table: ServerTable, first: Origin, before: ServerTable, name: String },
    #[error(
        "{at}: address {address} can be reached from other machines, and there is no TLS{}\n  \
         fix: address = \"127.0.0.1\", or say that you mean it: insecure = true (or --insecure)",
        at.quoted()
    )]
    NotLoopback { at: Origin, address: IpAddr },
    #[error(
        "{at}: server {destination:?} wants the environment variable {variable}, which is not set, or empty{}\n  \
         fix: export {variable}=... first, where Prism is started",
        at.quoted()
    )]
    NoVariable { at: Origin, destination: String, variable: String },
    #[error("cannot write {}; nothing was changed", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("{} is written in a way that cannot be edited safely; nothing was changed", path.display())]
    Edit { path: PathBuf, source: Option<Box<Self>> },
}

/// Why a word cannot be the name of a destination or a profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("{name:?} cannot name a server: letters, digits, `-` and `_`, at most 32, a letter or digit first")]
    Shape { name: String },
    #[error("{name:?} cannot name a profile: letters, digits, `-` and `_`, at most 32, a letter or digit first")]
    Profile { name: String },
    #[error("{name:?} cannot name a server: it is a path of Prism's own")]
    Reserved { name: String },
}

/// Where a setting was written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    File(Box<SourceLocation>),
    Variable(String),
    Flag(String),
}

/// A place in a file. Line and column count from one, as editors do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLocation {
    pub file: PathBuf,
    pub line: usize,
    pub column: usize,
    /// The line itself, as far as it is fit to be shown.
    pub text: String,
}

/// Reads a duration as settings are written, as in `30s`.
pub fn duration(text: &str) -> Result<Duration, String> {
    value::duration(&value::ConfigValue::Bare(text)).map_err(|_| "write it as 500ms, 30s or 5m".to_owned())
}

// === impl Config ===

impl Config {
    /// Returns the URL at which a client on this machine finds a destination.
    #[must_use]
    pub fn url(&self, destination: &str) -> String {
        format!("{}/{destination}/mcp", self.base_url())
    }

    /// Returns the URL of the one destination that is at the root.
    #[must_use]
    pub fn root_url(&self) -> String {
        format!("{}/mcp", self.base_url())
    }

    /// Returns where a client on this machine finds the daemon.
    #[must_use]
    pub fn base_url(&self) -> String {
        let host = match self.address {
            IpAddr::V4(Ipv4Addr::UNSPECIFIED) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(Ipv6Addr::UNSPECIFIED) => Ipv6Addr::LOCALHOST.into(),
            address => address,
        };
        format!("http://{}", std::net::SocketAddr::new(host, self.port))
    }

    /// Returns whether the environment sets the cap on sessions.
    #[must_use]
    pub fn caps_sessions(env: &Env) -> bool {
        ["PRISM_MAX_SESSIONS", "MAX_STDIO_CONNECTIONS"].iter().any(|name| env.var(name).is_some())
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: 7420,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            request_timeout: Some(Duration::from_secs(30)),
            max_request_time: Duration::from_secs(10 * 60),
            // The first `npx` of a server downloads it.
            start_timeout: Some(Duration::from_secs(2 * 60)),
            max_message_bytes: 1 << 20,
            session_idle_timeout: Some(Duration::from_secs(30 * 60)),
            drain_timeout: Duration::from_secs(5),
            max_sessions: DEFAULT_MAX_SESSIONS,
            inherit_env: EnvInheritance::default(),
            login_path: true,
            max_memory: None,
            log_bodies: false,
            error_statuses: ErrorStatuses::default(),
            hub: HubConfig::default(),
            mesh: MeshConfig::default(),
            gate: GateConfig::default(),
            audit: AuditConfig::default(),
            editor: Editor::default(),
            profiles: BTreeMap::new(),
            workspace: None,
            destinations: BTreeMap::new(),
        }
    }
}

// === impl DestinationConfig ===

impl DestinationConfig {
    /// A stdio destination with every setting at its default.
    pub fn stdio(name: &str, command: Vec<String>) -> Self {
        Self {
            name: name.to_owned(),
            table: ServerTable::default(),
            command,
            env: BTreeMap::new(),
            inherit_env: EnvInheritance::default(),
            max_memory: None,
            cwd: None,
            sandbox: None,
            http: None,
            era: None,
            process: ProcessSharing::default(),
            asks: None,
            sessions: SessionRequirement::default(),
            max_sessions: DEFAULT_MAX_SESSIONS,
            keep_warm: Duration::ZERO,
            idle_stop: None,
            times: TimeLimitOverrides::default(),
            strict_streams: false,
            legacy_sse: false,
            event_names: EventNames::default(),
            hub: true,
            post_sse: true,
            error_statuses: None,
            tools: ToolsConfig::default(),
        }
    }

    /// A destination behind a URL, with every setting at its default.
    pub fn http(name: &str, http: HttpConfig) -> Self {
        // Its clients come from the time of that transport, and look for it where they always have (B-21).
        let legacy_sse = http.transport == Some(Transport::Sse);
        Self { http: Some(http), legacy_sse, ..Self::stdio(name, Vec::new()) }
    }

    /// Returns what its settings stand below.
    pub fn key(&self) -> ServerKey<'_> {
        ServerKey { table: self.table, name: &self.name }
    }
}

impl fmt::Debug for DestinationConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The values of `env` are where people keep their API keys; a stray `?destination` must not log them.
        let names: Vec<&String> = self.env.keys().collect();
        f.debug_struct("Destination")
            .field("name", &self.name)
            .field("table", &self.table)
            .field("command", &self.command)
            .field("env", &names)
            .field("inherit_env", &self.inherit_env)
            .field("max_memory", &self.max_memory)
            .field("cwd", &self.cwd)
            .field("sandbox", &self.sandbox)
            .field("http", &self.http)
            .field("era", &self.era)
            .field("process", &self.process)
            .field("asks", &self.asks)
            .field("sessions", &self.sessions)
            .field("max_sessions", &self.max_sessions)
            .field("keep_warm", &self.keep_warm)
            .field("idle_stop", &self.idle_stop)
            .field("times", &self.times)
            .field("strict_streams", &self.strict_streams)
            .field("legacy_sse", &self.legacy_sse)
            .field("event_names", &self.event_names)
            .field("hub", &self.hub)
            .field("post_sse", &self.post_sse)
            .field("error_statuses", &self.error_statuses)
            .field("tools", &self.tools)
            .finish()
    }
}

// === impl ProcessSharing ===

impl ProcessSharing {
    /// Every value, in the order in which messages list them.
    pub const ALL: [Self; 3] = [Self::Shared, Self::PerSession, Self::SharedAlways];

    /// Returns the value as it is written in a config.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::PerSession => "per_session",
            Self::SharedAlways => "shared_always",
        }
    }
}

// === impl SessionRequirement ===

impl SessionRequirement {
    /// Every value, in the order in which messages list them.
    pub const ALL: [Self; 3] = [Self::Optional, Self::Required, Self::Never];

    /// Returns the value as it is written in a config.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Optional => "optional",
            Self::Required => "required",
            Self::Never => "never",
        }
    }
}

// === impl EventNames ===

impl EventNames {
    /// Every value, in the order in which messages list them.
    pub const ALL: [Self; 2] = [Self::Message, Self::Method];

    /// Returns the value as it is written in a config.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Message => "message",
            Self::Method => "method",
        }
    }
}

// === impl ErrorStatuses ===

impl ErrorStatuses {
    /// Every value, in the order in which messages list them.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Http, Self::Ok];

    /// Returns the value as it is written in a config.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Http => "http",
            Self::Ok => "ok",
        }
    }
}

// === impl NameError ===

impl NameError {
    /// Returns what to do about it.
    #[must_use]
    pub fn fix(&self) -> String {
        match self {
            Self::Shape { name } | Self::Profile { name } => {
                let word: String = name
                    .trim()
                    .chars()
                    .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
                    .collect();
                let word: String = word.trim_matches('-').chars().take(32).collect();
                let word = if word.is_empty() { "files".to_owned() } else { word };
                format!("call it {word:?}, for example")
            }
            Self::Reserved { name } => format!("call it \"my-{name}\", for example"),
        }
    }
}

// === impl Origin ===

impl Origin {
    /// Returns the offending line as a line of its own, or nothing where there is no file.
    fn quoted(&self) -> String {
        match self {
            Self::File(place) if !place.text.is_empty() => format!("\n  {}", place.text),
            Self::File(_) | Self::Variable(_) | Self::Flag(_) => String::new(),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(place) => write!(f, "{}:{}:{}", place.file.display(), place.line, place.column),
            Self::Variable(name) => write!(f, "environment variable {name}"),
            Self::Flag(name) => write!(f, "option --{name}"),
        }
    }
}

// === impl SourceLocation ===

impl SourceLocation {
    /// Characters of a line that are shown. A config that was minified into one line should not fill the screen.
    const SHOWN: usize = 120;

    /// Finds the line and column of a byte offset.
    fn at_offset(file: &Path, text: &str, offset: usize) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = text[start..].lines().next().unwrap_or_default();
        Self {
            file: file.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before[start..].chars().count() + 1,
            text: line.trim().chars().take(Self::SHOWN).collect(),
        }
    }
}
