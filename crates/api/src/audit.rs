//! The audit log, line by line.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A line of the log, as it is shown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AuditLine {
    /// No line is without its number.
    pub seq: Option<u64>,
    pub ts: String,
    pub actor: String,
    pub user: String,
    pub action: String,
    /// What the action was told, with what is secret taken out.
    pub args: Value,
    pub result: String,
    pub session_id: Option<String>,
    pub request_id: Option<String>,
    /// The line whose result this is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<u64>,
    pub prev: String,
    pub hash: String,
}
