//! What the verbs answer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{is_false, refusal::ToldRefusal};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AgentStarted {
    pub session: String,
    pub agent: String,
    pub surface: String,
    pub workspace: String,
    pub transport: String,
    pub surface_support: String,
    /// The resource that tells how many signals wait.
    pub doorbell: String,
    pub next: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CheckpointNoted {
    pub session: String,
    pub agent: String,
    pub checkpoint_at: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AgentWrapped {
    pub session: String,
    pub agent: String,
    pub wrapped_at: String,
}

/// What was sent, and what is known of its recipient.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SignalAccepted {
    pub signal_id: String,
    pub trace_id: String,
    pub seq: i64,
    pub recipient_state: RecipientState,
    /// What the recipient owes for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub obligation: Option<ReplyDue>,
    /// A bell that goes along.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bell: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RecipientState {
    /// `person` is the human at the machine, of whom nothing else is known.
    pub presence: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub surface_support: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ReplyDue {
    pub due_at: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SignalRecalled {
    pub recalled: bool,
    pub signal_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bell: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SignalWaived {
    pub waived: bool,
    pub signal_id: String,
    pub reason: String,
}

/// Signals that were drained, or only looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SignalsPage {
    pub signals: Vec<SignalView>,
    /// How many wait behind them.
    pub remaining: u64,
    pub more: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub peek: bool,
    /// What has been given is named by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notice: Option<String>,
}

/// The signals of the past, the newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct HistoryPage {
    pub signals: Vec<SignalView>,
}

/// A signal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SignalView {
    pub signal_id: String,
    pub seq: i64,
    pub trace_id: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub from: String,
    pub body: String,
    pub sent_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    #[serde(skip_serializing_if = "is_false")]
    pub redelivered: bool,
    /// The kind of signal that answers it; nothing if none does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply_with: Option<String>,
    /// Whom it was for, in the history.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// What became of it, in the history: `pending`, `drained`, `expired` or `recalled`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drained_at: Option<String>,
}

/// How a wait for the bell ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct WaitEnded {
    /// Whether it rang.
    pub bell: bool,
    /// Why it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<NoBell>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waited_s: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Why no bell rang.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NoBell {
    Timeout,
    Restarting,
    /// Somebody else waits for this bell now.
    Superseded,
    /// The agent has ended its session.
    Wrapped,
    /// What a newer daemon may say.
    #[serde(other)]
    Unknown,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct WakeTestResult {
    pub rows: Vec<WakeTestRow>,
}

/// One way to one agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct WakeTestRow {
    pub agent: String,
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grade: Option<String>,
    /// Whether it is set up for the agent.
    pub attached: bool,
    pub outcome: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ms: Option<f64>,
    pub note: Option<String>,
}

/// What comes on the stream of a wake test that is told row by row: a row, or at the end all of them, or why there are none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct WakeTestNews {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<Vec<WakeTestRow>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ToldRefusal>,
    #[serde(flatten)]
    pub row: WakeTestRow,
}

/// How many signals wait for who reads the doorbell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DoorbellRead {
    pub pending: u64,
    pub next: String,
}
