//! What happens, for whoever looks on: the data of the events of the mesh (`/prism/mesh/events`) and of the gate
//! (`/mcp/events`). Each is told under its name.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::gate::PluginView;

/// `signal_sent`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SignalSentEvent {
    pub at: String,
    pub signal_id: String,
    pub seq: i64,
    #[serde(rename = "type")]
    pub kind: String,
    pub from: String,
    pub to: String,
}

/// `signal_drained`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SignalDrainedEvent {
    pub at: String,
    pub signal_id: String,
    pub seq: i64,
    pub agent: String,
}

/// `surface_doorbell_sent`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct BellEvent {
    pub at: String,
    pub agent: String,
    pub session: String,
    pub path: String,
    pub result: String,
    pub signal_id: String,
    pub signal_type: String,
    pub trace_id: String,
    pub after_ms: Option<f64>,
}

/// `agent`: somebody came or went.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AgentEvent {
    pub at: String,
    pub agent: String,
    /// `started`, `left` or `wrapped`.
    pub change: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub surface: Option<String>,
}

/// `support`: an agent can be woken, or no longer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SupportEvent {
    pub at: String,
    pub agent: String,
    pub surface_support: String,
}

/// `obligation`: what is owed has ended, or is late.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ObligationEvent {
    pub at: String,
    pub state: String,
    pub signal_id: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub debtor: String,
    pub creditor: String,
    /// Said of what is late.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sla_exempt: Option<bool>,
}

/// `missed`: the onlooker did not keep up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MissedEvent {
    pub events: u64,
}

/// `plugin`: an editor came or went.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PluginEvent {
    pub plugin: PluginView,
    /// `connected` or `gone`.
    pub state: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// `request` of one that cannot be read any more.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RequestEvent {
    pub request_id: String,
}

/// `confirmation` of one that cannot be read any more.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ConfirmationEvent {
    pub confirmation_id: String,
}
