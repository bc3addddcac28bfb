//! The holder's socket (A-05, docs/gate.md): commands one way; results, progress and events the other.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::refusal::ToldRefusal;

/// What a holder sends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HolderCommand {
    /// `cmd`
    #[serde(rename = "type")]
    pub kind: String,
    /// Whatever the holder likes; it comes back with what the command brings about.
    pub id: Value,
    pub action: String,
    #[serde(default)]
    pub args: Map<String, Value>,
}

/// What the daemon sends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum HolderMessage {
    Result {
        id: Value,
        #[serde(flatten)]
        outcome: CommandOutcome,
    },
    Progress {
        id: Value,
        data: CommandProgress,
    },
    Event(HolderEvent),
    /// What a newer daemon may send.
    #[serde(other)]
    Unknown,
}

/// What came of a command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "status", content = "data", rename_all = "snake_case")]
pub enum CommandOutcome {
    Ok(Value),
    Error(ToldRefusal),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CommandProgress {
    pub message: String,
    pub done: Option<u64>,
    pub total: Option<u64>,
}

/// Something that happened.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct HolderEvent {
    /// The category.
    pub event: String,
    /// Counts them, so that a holder sees if it missed one; the greeting has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    pub data: HolderEventData,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct HolderEventData {
    /// The event's name.
    pub event: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// What else is said of it.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// What a holder is told first: what it may do, and how long.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SessionOpened {
    pub session_id: String,
    pub allowed_scopes: Vec<String>,
    pub roots: Vec<String>,
    pub expires_at: String,
    pub max_edit_bytes: u64,
    pub rate_limit: u32,
    pub degraded: Vec<String>,
}
