//! How the mesh is: the roster, one agent's diagnostics, what is owed, and everything at once.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Number;

/// Everybody, and whether they are really there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Roster {
    pub agents: Vec<RosterAgent>,
}

/// An agent, as everybody may see it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RosterAgent {
    pub agent: String,
    /// Told to the person only: whoever shows it is the agent.
    pub session: Option<String>,
    pub presence: String,
    pub surface: Option<String>,
    pub workspace: Option<String>,
    pub transport: Option<String>,
    /// `full`: it can be woken. `degraded`: it hears of its signals with its next call.
    pub surface_support: String,
    /// The healthy ones.
    pub paths: Vec<String>,
    /// Signals that wait for it.
    pub pending: u64,
    /// Replies that it owes, and those that it owes for longer than was agreed.
    pub owes: u64,
    pub overdue: u64,
    pub last_seen_ms: Option<u64>,
    pub checkpoint: Option<CheckpointNote>,
}

/// What an agent said that it has reached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CheckpointNote {
    pub at: String,
    pub note: String,
}

/// How one agent can be reached, or a client that is none yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Diagnostics {
    Agent(Box<AgentDiagnostics>),
    Unregistered(UnregisteredDiagnostics),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentDiagnostics {
    pub agent: String,
    #[serde(default)]
    pub session: Option<String>,
    pub presence: String,
    #[serde(default)]
    pub surface: Option<String>,
    #[serde(default)]
    pub workspace: Option<String>,
    #[serde(default)]
    pub transport: Option<String>,
    pub surface_support: String,
    pub paths: DiagnosedPaths,
    pub pending: u64,
    pub owes: u64,
    pub overdue: u64,
    #[serde(default)]
    pub last_seen_ms: Option<u64>,
    #[serde(default)]
    pub checkpoint: Option<CheckpointNote>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bell: Option<OutstandingBell>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub support_changes: Option<Vec<SupportChange>>,
    pub recent_bells: Vec<BellRecord>,
    pub checkpoints: Vec<CheckpointNote>,
}

/// The paths to an agent: all of them, with what is known of each, or the healthy ones of an agent that has no window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum DiagnosedPaths {
    Known(Vec<PathDiagnosis>),
    Healthy(Vec<String>),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PathDiagnosis {
    pub path: String,
    pub grade: String,
    pub attached: bool,
    pub healthy: bool,
    pub last_result: Option<String>,
    pub last_at: Option<String>,
    /// Why nobody is at its other end.
    pub absent: Option<String>,
}

/// Whether a bell is out that was not heard yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct OutstandingBell {
    pub outstanding: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SupportChange {
    pub at: String,
    pub surface_support: String,
}

/// How a client could be reached if it registered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct UnregisteredDiagnostics {
    /// None.
    pub agent: Option<String>,
    pub surface: String,
    pub transport: String,
    pub connection: Option<String>,
    pub surface_support: Option<String>,
    pub next: String,
}

/// Everything at once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MeshOverview {
    pub at: String,
    pub agents: Vec<RosterAgent>,
    /// The replies that are owed, those that are due first in front; as many as are shown at once.
    pub obligations: Vec<OwedReply>,
    /// How many there are.
    pub obligations_open: u64,
    pub bells: Vec<BellRecord>,
    pub counters: BTreeMap<String, u64>,
    pub latencies: BTreeMap<String, LatencyView>,
}

/// A reply that is owed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct OwedReply {
    pub signal_id: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub debtor: String,
    pub creditor: String,
    pub state: String,
    pub opened_at: String,
    pub due_at: Option<String>,
    pub due_in_ms: Option<i64>,
    pub overdue: bool,
    pub sla_exempt: bool,
    /// Only an older daemon shows those that are over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closed_at: Option<String>,
    pub wake_attempt_count: u32,
    pub wake_ring_count: u32,
    pub last_wake_path: Option<String>,
    pub last_wake_result: Option<String>,
}

/// What is owed, for who asks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ObligationsPage {
    pub obligations: Vec<ObligationView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bell: Option<String>,
}

/// What is owed, or was.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ObligationView {
    pub signal_id: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub debtor: String,
    pub creditor: String,
    pub state: String,
    pub action_required: bool,
    pub reply_required: bool,
    pub opened_at: String,
    pub due_at: Option<String>,
    pub overdue: bool,
    pub escalated_at: Option<String>,
    pub sla_exempt: bool,
    pub heard_at: Option<String>,
    pub closed_at: Option<String>,
    pub closed_why: Option<String>,
    pub wake_attempt_count: u32,
    pub wake_ring_count: u32,
    pub last_wake_at: Option<String>,
    pub last_wake_path: Option<String>,
    pub last_wake_result: Option<String>,
}

/// A bell that rang, or should have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct BellRecord {
    /// `surface_doorbell_sent`
    pub event: String,
    pub at: String,
    pub agent: String,
    pub path: String,
    pub result: String,
    pub signal_id: Option<String>,
    pub signal_type: String,
    pub trace_id: Option<String>,
    pub after_ms: Option<Number>,
}

/// How long something took, in milliseconds; nothing while there was none of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LatencyView {
    pub count: u64,
    pub p50_ms: Option<f64>,
    pub p99_ms: Option<f64>,
}
