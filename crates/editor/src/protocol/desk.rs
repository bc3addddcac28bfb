//! What a person decides in an editor: the daemon shows what waits for them and who holds what, the editor says what they
//! said. Only an editor with a window takes part, and only while that window answers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::ResultStatus;

/// All that a person can decide about now. Each is the whole of it: what is not in it any more is decided or over. Members
/// are those that `GET /mcp/requests`, `/mcp/confirmations` and `/mcp/sessions` give. Configs are only shown.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct PendingDecisions {
    /// Requests that are open, the newest first.
    pub requests: Vec<Map<String, Value>>,
    /// What waits to be confirmed, the newest first. One with `is_cut` is not shown whole: it can be denied here, and allowed
    /// only where all of it is shown.
    pub confirmations: Vec<Map<String, Value>>,
    /// Grants that are alive.
    pub grants: Vec<Map<String, Value>>,
    /// Configs that wait for the person to see them. Left out if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub configs: Vec<UnseenConfig>,
}

/// A config file that does not count as it is until the person has seen what it says. Nothing about it is decided in an
/// editor: the person's word is `fix`, typed in a terminal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UnseenConfig {
    pub path: String,
    /// Why it waits, in a line.
    pub why: String,
    /// What to type.
    pub fix: String,
    /// What is new in it, as a unified diff. Secrets are hidden.
    pub unified: String,
    /// Whether the diff is not shown whole.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_cut: bool,
}

/// The person's word on a request or on a confirmation; it names one of the two. Answered with `decided`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DecideMessage {
    /// The plugin's own number; the answer has it.
    pub id: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmation_id: Option<String>,
    /// Of a confirmation: the digest that came with what the person saw.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    pub approve: bool,
    /// Of a request: less than was asked for. Left out, all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved_scopes: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved_roots: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_seconds: Option<u64>,
    /// Of a request: each change is to be shown to the person first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm_changes: Option<bool>,
    /// Why not, for the agent to read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Ends a grant and all that came from it. Answered with `decided`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RevokeMessage {
    pub id: u64,
    pub session_id: String,
}

/// What came of a `decide` or a `revoke`. It may come in another order than they did.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DecidedMessage {
    pub id: u64,
    pub status: ResultStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<DecisionError>,
}

/// Why something was not decided.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DecisionError {
    /// `not_pending`, `changed`, `unknown_request`, … as over HTTP.
    pub code: String,
    /// For the person: what is wrong, and what to do about it.
    pub message: String,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub details: Map<String, Value>,
}

/// A bell for an agent that lives in the editor's own chat: to be put there as a message that begins a turn. It carries no
/// content of a signal. Answered with `rung`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RingMessage {
    pub id: u64,
    pub agent: String,
    pub text: String,
    /// After that many milliseconds nobody waits for the answer any more.
    pub deadline_ms: u64,
}

/// What came of a `ring`: `ok` if the chat took the text.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RungMessage {
    pub id: u64,
    pub status: ResultStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<DecisionError>,
}
