//! The gate (docs/gate.md): requests, grants and confirmations, as they are shown, asked for and decided.

use prism_core::policy::{ConfirmationState, RequestState};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::audit::AuditLine;

// --- What is shown ---

/// A request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RequestView {
    pub request_id: String,
    pub agent_id: String,
    pub scopes: Vec<String>,
    /// Those that no grant of this agent had before.
    pub new_scopes: Vec<String>,
    pub roots: Vec<String>,
    pub new_roots: Vec<String>,
    pub reason: String,
    #[schemars(with = "String")]
    pub status: RequestState,
    pub created_at: String,
    pub expires_at: String,
    pub ttl_seconds: i64,
    pub approved_by: Option<String>,
    pub denied_because: Option<String>,
    pub session_id: Option<String>,
    pub asker: AskerView,
}

/// Through what somebody asks, and from which client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AskerView {
    /// `http`, `cli` or `mcp`.
    pub via: String,
    /// Its name in the mesh.
    pub agent: Option<String>,
    pub client: Option<String>,
}

/// A grant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct GrantView {
    pub session_id: String,
    pub request_id: Option<String>,
    pub parent: Option<String>,
    pub agent_id: String,
    pub allowed_scopes: Vec<String>,
    pub roots: Vec<String>,
    #[schemars(with = "String")]
    pub status: RequestState,
    pub created_at: String,
    pub expires_at: String,
    pub expires_in_ms: u64,
    pub rate_limit: u32,
    pub max_edit_bytes: u64,
    pub confirm_changes: bool,
    /// Editors that served it and are gone: what is done meanwhile, the built-in one does.
    pub degraded: Vec<String>,
    pub sockets: usize,
    pub actions: u64,
    pub last_actions: Vec<ActionView>,
}

/// Something that the holder of a grant did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ActionView {
    pub at: String,
    pub action: String,
    pub about: String,
    pub result: String,
}

/// Something that a person is asked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ConfirmationView {
    pub confirmation_id: String,
    /// `action`, `tool` or `definition`.
    pub kind: String,
    pub agent_id: String,
    pub session_id: Option<String>,
    /// Of what is shown, and of whom it is for.
    pub digest: String,
    /// What the digest is of, to the letter; `crate::shown` has the forms that are known of it.
    pub shown: Value,
    #[schemars(with = "String")]
    pub state: ConfirmationState,
    pub created_at: String,
    pub expires_at: String,
    pub decided_by: Option<String>,
    pub reason: Option<String>,
    pub uses_left: i64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RequestsPage {
    pub requests: Vec<RequestView>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct GrantsPage {
    pub sessions: Vec<GrantView>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ConfirmationsPage {
    pub confirmations: Vec<ConfirmationView>,
}

/// Lines of the audit log, the newest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AuditPage {
    pub logs: Vec<AuditLine>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PluginsPage {
    pub plugins: Vec<PluginView>,
}

/// An editor that is connected.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PluginView {
    pub plugin: String,
    pub connection: String,
    pub instance: String,
    pub kind: String,
    pub version: String,
    pub roots: Vec<String>,
    pub ui: bool,
    /// Whether the person decides there, and whether bells may be put into its chat.
    pub decides: bool,
    pub chat: bool,
    /// Whether what agents run is shown there.
    pub shows: bool,
    /// The verbs that it does, in the order of the table.
    pub capabilities: Vec<String>,
    pub pid: Option<u32>,
    /// `unsure`, `changing` or `owner`, where it is listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Files that it has not saved, and events of its that were dropped, where it is listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsaved: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events_dropped: Option<u64>,
}

// --- What is asked for ---

/// Asks for access.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AccessRequest {
    pub agent_id: String,
    #[serde(default)]
    pub scopes: Vec<String>,
    pub roots: Vec<String>,
    pub reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_seconds: Option<u64>,
}

/// Answers who has asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AccessRequested {
    pub request_id: String,
    /// The secret that what is granted is claimed with.
    pub claim: String,
    #[schemars(with = "String")]
    pub status: RequestState,
    pub expires_at: String,
    pub next: String,
}

/// Asks what came of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClaimRequest {
    pub request_id: String,
    pub claim: String,
    /// How long to wait for a decision.
    #[serde(default)]
    pub wait_seconds: u64,
}

/// Says what came of a request; the token is said once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ClaimAnswer {
    pub request_id: String,
    #[schemars(with = "String")]
    pub status: RequestState,
    /// Why it was denied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_token: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_scopes: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roots: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// How the holder goes on, for a model.
    #[serde(rename = "use", skip_serializing_if = "Option::is_none")]
    pub usage: Option<GrantUsage>,
}

/// How the holder of a grant goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct GrantUsage {
    /// The holder's socket.
    pub url: String,
    /// The same verbs as tools.
    pub mcp: String,
    pub header: String,
    /// A command as it is sent on the socket.
    pub send: Value,
    pub note: String,
}

/// Approves a request, or a part of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApproveRequest {
    pub request_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved_scopes: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved_roots: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_seconds: Option<u64>,
    #[serde(default)]
    pub confirm_changes: bool,
}

/// Answers an approval, or a narrowing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct GrantIssued {
    pub session_id: String,
    pub session_token: Option<String>,
    /// In seconds since 1970.
    pub expires_at: i64,
}

/// Denies a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DenyRequest {
    pub request_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Answers a decision whose only effect is itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DecisionTaken {
    /// What is not written down yet, and why; nothing if all is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unwritten: Option<String>,
}

/// Revokes a grant, with all that came from it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RevokeRequest {
    pub session_id: String,
}

/// Says what a revocation took away.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct GrantsRevoked {
    /// How many grants have ended.
    pub revoked: usize,
    /// What is not written down yet, and why; nothing if all is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unwritten: Option<String>,
}

/// Makes a smaller grant for a helper, as its holder asks for it. What is not said stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NarrowRequest {
    pub agent_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roots: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_seconds: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_edit_bytes: Option<u64>,
}

/// Answers a confirmation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConfirmRequest {
    pub confirmation_id: String,
    /// Of what the person saw.
    pub digest: String,
    pub allow: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uses: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_seconds: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A link into the console that opens it once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ConsoleLink {
    pub url: String,
    pub expires_in_seconds: u64,
}
