//! The plugin protocol: what an editor and the daemon say to each other at `/plugin/{plugin_id}`. Types only; who is
//! let in, who owns a folder and what becomes of a command is in `crates/gate/src/router`.
//!
//! Messages are JSON texts with a `type`, one to a WebSocket message. Members that one side does not know are passed over,
//! so that either may be the newer one; what would not be understood at all has another `protocol`.
//! `docs/plugin.md` tells it to those who write plugins, `docs/plugin.schema.json` is made from here.

mod desk;
mod place;
mod schema;
mod show;

use std::fmt;

use prism_core::policy::{Code, Refusal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use desk::{
    DecideMessage, DecidedMessage, DecisionError, PendingDecisions, RevokeMessage, RingMessage, RungMessage,
    UnseenConfig,
};
pub use place::{as_path, is_beneath};
pub use schema::schema;
pub use show::{RunShow, RunShowEnded, RunShowKind, RunShowOutput, RunShowResized};

/// The version of all this. A plugin that speaks another is told so and closed.
pub const PROTOCOL: u32 = 1;

/// How places in a line are counted: in UTF-16 units, as LSP and VS Code do.
pub const POSITIONS: &str = "utf-16";

/// What a plugin says.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum FromPlugin {
    Register(RegisterMessage),
    State(StateMessage),
    Result(ResultMessage),
    Progress(ProgressMessage),
    Event(EventMessage),
    Pong(Pong),
    Decide(DecideMessage),
    Revoke(RevokeMessage),
    Rung(RungMessage),
}

/// What the daemon says.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToPlugin {
    Registered(RegisteredMessage),
    Cmd(CommandMessage),
    Cancel(CancelMessage),
    Ping(Ping),
    GetState(GetStateMessage),
    Desk(PendingDecisions),
    Decided(DecidedMessage),
    Ring(RingMessage),
    Show(RunShow),
    ShowOutput(RunShowOutput),
    ShowResized(RunShowResized),
    ShowEnded(RunShowEnded),
    Error(ErrorMessage),
}

/// The first message of a connection: who this is, and what it can do.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RegisterMessage {
    /// 1.
    pub protocol: u32,
    /// One window's or process's life: it differs after each start, and is the same when only the connection is new.
    pub instance_id: String,
    /// The kind of editor: `vscode`, `neovim`, …
    pub kind: String,
    /// The plugin's own version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// The folders that are open in it, absolute. All below belongs to it while it is the newest that is alive.
    pub roots: Vec<String>,
    /// The verbs it can do, by the names that agents use. Others are done without it or answered with `unsupported`; what runs
    /// programs always is done without it.
    pub capabilities: Vec<String>,
    /// Whether there is a window that a person looks at. Then a pong must have gone through that window.
    #[serde(default)]
    pub ui: bool,
    /// Whether the person decides here too, on what agents ask for. Only with a window.
    #[serde(default)]
    pub decides: bool,
    /// Whether bells may be put into the editor's own chat: the person has switched that on there.
    #[serde(default)]
    pub chat: bool,
    /// Whether it shows the person what agents run in its folders.
    #[serde(default)]
    pub shows: bool,
    /// When this instance began, in milliseconds since 1970. Of two instances the later one owns a folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The editors' secret, for who cannot send an `Authorization` header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<SecretText>,
}

/// The answer to a registration.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RegisteredMessage {
    pub protocol: u32,
    /// What this connection is called in logs and lists.
    pub assigned_id: String,
    pub bridge_version: String,
    /// Grows with each registration of the daemon's life.
    pub epoch: u64,
    /// `utf-16`: lines from zero, and in a line UTF-16 units from zero.
    pub positions: String,
    /// Whether `desk` comes here, and `decide` counts. It does not where the person has switched it off, and without a window.
    #[serde(default)]
    pub decides: bool,
    pub limits: PluginLimits,
}

/// What is too much, and what is too late.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PluginLimits {
    /// A larger message closes the connection.
    pub max_message_bytes: u64,
    /// Commands that wait for results at the same time; no more are sent.
    pub max_commands: u64,
    /// Unsaved texts that are kept of one plugin, by number and by all their bytes; what is beyond is lost if the plugin is.
    pub max_buffers: u64,
    pub max_buffer_bytes: u64,
    /// Events a second; what is beyond is dropped, and counts as a gap.
    pub max_events_per_second: u64,
    pub ping_every_ms: u64,
    /// A pong that comes later counts as none.
    pub pong_within_ms: u64,
}

/// A verb to be done. There is one result to it, within its deadline.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CommandMessage {
    pub id: u64,
    /// A verb that the plugin has registered.
    pub action: String,
    /// As agents give them; paths are absolute, real, and beneath one of the plugin's folders.
    pub args: Map<String, Value>,
    /// Whose doing it is: terminals, watches and the like belong to one session.
    pub session_id: String,
    /// After that many milliseconds nobody waits for the result any more.
    pub deadline_ms: u64,
    /// The folders that were granted to it. What a verb finds out to change besides its arguments, as a rename does, lies in
    /// them, or nothing is changed. Left out where Prism itself asks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roots: Vec<String>,
}

/// The result of a command.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ResultMessage {
    pub id: u64,
    pub status: ResultStatus,
    /// What came of it, in the members that the verb has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// Why nothing did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<PluginError>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResultStatus {
    Ok,
    Error,
}

/// Why something was not done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PluginError {
    #[schemars(schema_with = "schema::codes")]
    pub code: String,
    /// For a person or a model to read: what is wrong, and what to do about it.
    pub message: String,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub details: Map<String, Value>,
}

/// How far a command is. It does not move its deadline.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ProgressMessage {
    pub id: u64,
    #[serde(default)]
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
}

/// Nobody waits for this command any more. What it started is to be ended; a result is no longer listened to.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CancelMessage {
    pub id: u64,
}

/// Something that happened in the editor.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EventMessage {
    /// Its name, or its category with the name in `data.event`.
    pub event: String,
    /// One more than that of the event before it, from 1 on, in one connection.
    pub seq: u64,
    /// What the event has, with the `path` it is about. Of a `buffer_changed` also `version`, `is_dirty` and either `text`,
    /// the whole new text, or `base_version` and `edits`, all of them in places of the text before.
    #[serde(default)]
    pub data: Map<String, Value>,
}

/// Asks whether the instance is alive.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Ping {
    pub id: u64,
}

/// Says so.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Pong {
    pub id: u64,
    /// Whether the window has answered, too: something was asked of it that only a window can answer.
    #[serde(default)]
    pub ui: bool,
}

/// Asks for a `state`: something was missed.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct GetStateMessage {}

/// All that is open. Sent after `registered`, and when asked for.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct StateMessage {
    /// The number of the last event that it includes; 0 if there was none.
    pub seq: u64,
    pub buffers: Vec<OpenBuffer>,
}

/// An open text of a file. What is no file (a diff, a log, a new untitled text) is none.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct OpenBuffer {
    pub path: String,
    pub version: u64,
    #[serde(default)]
    pub is_dirty: bool,
    /// All of it, if it is dirty: it comes back from here if the editor goes away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// Something that the plugin said was not understood, or is not kept. The connection goes on.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ErrorMessage {
    pub error: PluginError,
}

/// A secret that no log gets to see.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct SecretText(pub String);

// === impl ResultMessage ===

impl ResultMessage {
    pub fn of(id: u64, result: Result<Value, Refusal>) -> Self {
        match result {
            Ok(data) => Self { id, status: ResultStatus::Ok, data: Some(data), error: None },
            Err(refusal) => {
                Self { id, status: ResultStatus::Error, data: None, error: Some(PluginError::from(refusal)) }
            }
        }
    }

    /// What came of the command. A failure in the place of the data, as sessions have it, is one too.
    pub fn result(self) -> Result<Value, Refusal> {
        match self.status {
            ResultStatus::Ok => Ok(self.data.unwrap_or_else(|| Value::Object(Map::new()))),
            ResultStatus::Error => {
                let failure = self.error.or_else(|| serde_json::from_value(self.data?).ok());
                Err(failure.map_or_else(|| Refusal::new(Code::Failed, "the editor does not say why"), Refusal::from))
            }
        }
    }
}

// === impl PluginError ===

impl From<Refusal> for PluginError {
    fn from(refusal: Refusal) -> Self {
        let mut details = Map::new();
        if let Some(wait) = refusal.retry_after {
            let ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).max(1);
            details.insert("retry_after_ms".to_owned(), ms.into());
        }
        Self { code: refusal.code.name().to_owned(), message: refusal.message, details }
    }
}

impl From<PluginError> for Refusal {
    /// What a plugin says of grants, which are not its business, is an ordinary failure.
    fn from(failure: PluginError) -> Self {
        let code = Code::ALL.into_iter().find(|code| code.name() == failure.code);
        let is_ours =
            |code: &Code| matches!(code, Code::Forbidden | Code::Expired | Code::Revoked | Code::UnknownAction);
        let code = code.filter(|code| !is_ours(code)).unwrap_or(Code::Failed);
        let wait = failure.details.get("retry_after_ms").and_then(Value::as_u64);
        let message = failure.message.chars().take(MAX_MESSAGE).collect();
        Self { code, message, retry_after: wait.map(std::time::Duration::from_millis) }
    }
}

/// As much of a plugin's words as an error holds.
const MAX_MESSAGE: usize = 2_000;

// === impl EventMessage ===

impl EventMessage {
    /// Its name, whichever of the two forms it came in.
    pub fn name(&self) -> &str {
        match self.data.get("event").and_then(Value::as_str) {
            Some(name) if prism_core::policy::EventSpec::all().any(|event| event.category == self.event) => name,
            _ => &self.event,
        }
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

#[cfg(test)]
mod tests;
