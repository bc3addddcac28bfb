//! What `GET /status` says, field by field. The names are promised (docs/status.md): fields are added, none is renamed.
//!
//! It holds names, numbers and times. Session ids are secrets and only shown as a short hash; what clients and servers
//! said to each other is not in here at all.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct StatusReport {
    pub daemon: DaemonStatus,
    pub destinations: Vec<DestinationStatus>,
    pub sessions: Vec<SessionStatus>,
    /// Open `subscriptions/listen` streams of modern clients, which have no sessions.
    pub listens: Vec<ListenStatus>,
    /// Modern clients that have lately introduced themselves, the last one first.
    pub clients: Vec<ModernClientStatus>,
    /// `null`: there is none, as there is no database.
    pub mesh: Option<MeshStatus>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DaemonStatus {
    pub version: String,
    pub pid: u32,
    pub uptime_s: f64,
    pub home: String,
    pub url: String,
    pub socket: Option<String>,
    pub memory_bytes: u64,
    pub open_files: u64,
    pub max_open_files: u64,
    pub stopping: bool,
    /// Requests that showed a session which no Prism has given out: their clients had another server at this URL.
    pub foreign_sessions: u64,
    /// What is wrong with what is on record: a broken audit log, ends of grants that there was no room to write down.
    pub record: Vec<String>,
    pub config: ConfigStatus,
}

/// The config that is in effect.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ConfigStatus {
    /// `null`: there is none, and everything is at its default.
    pub file: Option<String>,
    pub state: ConfigState,
    /// What is wrong with the file as it is now, if the old config was kept; what a restart would change; or what you have
    /// not seen yet, and what to type.
    pub error: Option<String>,
    /// How long ago the file was last read and taken, or not taken.
    pub taken_s: Option<f64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConfigState {
    /// What the file says is in effect.
    #[default]
    Ok,
    /// It is, but for what only a restart changes.
    NeedsRestart,
    /// The file was changed and could not be read: what it said before is in effect.
    KeptOld,
    /// A file says what you have not seen: what you saw last is in effect, or nothing of it.
    Untrusted,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DestinationStatus {
    pub name: String,
    /// `stdio`, `streamable_http`, `sse`, `http` (not known yet which of the two), or `built_in`.
    pub kind: String,
    /// Whether it runs in a sandbox, or not at all.
    pub sandboxed: bool,
    /// What the server calls itself.
    pub server: Option<PeerName>,
    /// `never_used`, `starting`, `up`, `slow`, `failing`, `missing`, `refusing`, `unauthorized` or `asleep`
    /// (docs/status.md).
    pub state: String,
    /// Whether a call that comes now can be expected to be answered.
    pub ready: bool,
    /// The state in a sentence, with its reason; and what to type about it.
    pub why: String,
    pub fix: Option<String>,
    /// `legacy`, `modern` or `both`; `null` if that is not known.
    pub era: Option<String>,
    /// `set` (by the config), `asked` (the server, in this life of the daemon), `remembered` (from an earlier one).
    pub era_from: Option<String>,
    /// `shared`, `per_session`, or `mixed`: shared but for clients that can be asked questions.
    pub model: String,
    pub model_why: String,
    pub sessions: i64,
    pub max_sessions: Option<u64>,
    pub streams: i64,
    pub in_flight: u64,
    /// POSTs since the daemon was started; those that failed (5xx); and those that called a tool.
    pub requests: u64,
    pub failures: u64,
    pub calls: u64,
    /// Of the calls of tools. `null` while there was none.
    pub p50_ms: Option<f64>,
    pub p99_ms: Option<f64>,
    pub starts: u64,
    pub restarts: u64,
    pub children: i64,
    /// Of all its processes together.
    pub memory_bytes: u64,
    pub last_error: Option<LastTrouble>,
    /// Tools that are no longer what they were when they were first used, since the daemon was started.
    pub changed_tools: Vec<String>,
    pub links: Vec<LinkStatus>,
}

impl DestinationStatus {
    /// Whether there is something to say about how it is. (A daemon of an older version says nothing.)
    pub fn is_ill(&self) -> bool {
        !self.ready && !self.why.is_empty()
    }
}

/// What last went wrong.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LastTrouble {
    pub text: String,
    pub ago_s: f64,
}

/// One connection to the server: a child of its own, or a connection over HTTP.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LinkStatus {
    pub number: u64,
    /// `shared`, `own` (of one client), `turns` (modern clients that can be asked, one at a time).
    pub purpose: String,
    pub state: String,
    pub era: Option<String>,
    pub pid: Option<u32>,
    pub memory_bytes: Option<u64>,
    pub uptime_s: Option<f64>,
    pub restarts: u64,
    pub sessions: u64,
    pub in_flight: u64,
}

/// A client, or a server, as it names itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PeerName {
    pub name: String,
    pub version: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SessionStatus {
    /// A short hash: the id itself would let whoever reads it take part.
    pub id: String,
    pub client: Option<PeerName>,
    pub revision: Option<String>,
    /// `http`, `sse` (2024-11-05) or `stdio` (through `prism stdio`).
    pub transport: String,
    /// The destination that it came to; `null` for one of the hub's.
    pub destination: Option<String>,
    pub hub: bool,
    /// The destinations that a session of the hub's has used.
    pub parts: Vec<String>,
    pub calls: u64,
    pub age_s: f64,
    /// Since its last request.
    pub idle_s: f64,
    /// Open streams; `null` if the link was too busy to say.
    pub streams: Option<Vec<StreamStatus>>,
    /// Events that wait for it to open a stream.
    pub undelivered: u64,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct StreamStatus {
    /// `get`, `post` or `sse`.
    pub kind: String,
    pub open_s: f64,
    /// Since an event, or a keep-alive, left on it. Keep-alives are 15 s apart.
    pub silent_s: f64,
    /// Events that the client has not taken.
    pub waiting: u64,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ListenStatus {
    pub destination: String,
    pub open_s: f64,
    pub silent_s: f64,
    pub waiting: u64,
}

/// A modern client that has introduced itself (`server/discover`, `subscriptions/listen`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ModernClientStatus {
    pub client: Option<PeerName>,
    pub transport: String,
    /// `null` is the hub.
    pub destination: Option<String>,
    pub ago_s: f64,
}

/// The mesh: its agents, and whether each can be woken.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MeshStatus {
    /// Those that have a window and have not said good-bye, and whoever owes a reply all the same.
    pub agents: Vec<AgentStatus>,
    /// The human at the machine, who is no agent and can be asked like one.
    pub person: ReplyDebts,
}

/// Replies that somebody owes, and those that they owe for longer than was agreed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ReplyDebts {
    pub owes: u64,
    pub overdue: u64,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AgentStatus {
    pub agent: String,
    pub presence: String,
    pub surface: Option<String>,
    pub transport: Option<String>,
    /// `full`: it can be woken. `degraded`: it hears of its signals with its next call.
    pub surface_support: String,
    /// The healthy ones.
    pub paths: Vec<String>,
    pub pending: u64,
    #[serde(flatten)]
    pub debts: ReplyDebts,
}
