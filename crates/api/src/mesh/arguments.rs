//! What the verbs are told. The doc comments are what a model reads of them.

use prism_core::mesh::SignalType;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::is_false;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StartArguments {
    /// The name under which other agents reach you, such as `sable`. Letters, digits, `.`, `_` and `-`.
    pub agent: String,
    /// The program that you live in: `claude_code`, `codex`, `cursor`, `opencode`, …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub surface: Option<String>,
    /// The folder that you work in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// What that program calls this session, if you were told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub surface_session: Option<String>,
    /// How you can be woken beside MCP, if you know: `{"codex_app_server": {"url": …, "thread": …}}`,
    /// `{"opencode": {"url": …, "session": …}}`, `{"tmux": {"pane": …}}`.
    #[serde(default)]
    pub wake: Map<String, Value>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckpointArguments {
    /// The `session` that prism_start returned. Needed only if you are told so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub agent: Option<String>,
    /// What you have reached, for whoever looks at the roster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WrapArguments {
    /// The `session` that prism_start returned. Needed only if you are told so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub agent: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoArguments {}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SendArguments {
    /// The name of the agent that it is for; `person` is the human at this machine.
    pub to: String,
    /// `Question`, `TaskAssigned` and `ReviewRequested` ask for a reply; `StatusUpdate` and `Acknowledgment` do not.
    #[serde(rename = "type", default = "question")]
    pub kind: String,
    /// What you have to say.
    pub body: String,
    /// The `session` that prism_start returned. Needed only if you are told so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub agent: Option<String>,
    /// The signal that this one is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    /// Groups signals that belong together; a reply keeps it by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    /// An id of your own (a UUID). Sent again under the same one, it is the same signal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal_id: Option<String>,
    /// `sync` refuses it unless the recipient can be woken now; `async` (the default) lets it wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery: Option<SignalDelivery>,
    /// Seconds after which it is no longer worth reading.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_s: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SignalDelivery {
    Async,
    Sync,
}

fn question() -> String {
    SignalType::Question.name().to_owned()
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplyArguments {
    /// The `signal_id` of the signal that you reply to.
    pub to_signal: String,
    /// What you have to say.
    pub body: String,
    /// Left out, it is the kind that ends what was asked for: `Answer`, `TaskCompleted` or `ReviewCompleted`. `StatusUpdate`
    /// and `Acknowledgment` say that you are at it.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The `session` that prism_start returned. Needed only if you are told so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub agent: Option<String>,
    /// An id of your own (a UUID). Sent again under the same one, it is the same signal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal_id: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecallArguments {
    /// The `signal_id` of a signal that you have sent and that was not read yet.
    pub signal_id: String,
    /// The `session` that prism_start returned. Needed only if you are told so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub agent: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WaiveArguments {
    /// The `signal_id` of what was asked: of you, if you will not do it, or by you, if it need not be done any more.
    pub signal_id: String,
    /// Why. The other side is told.
    pub reason: String,
    /// The `session` that prism_start returned. Needed only if you are told so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub agent: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PendingArguments {
    /// The `session` that prism_start returned. Needed only if you are told so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub agent: Option<String>,
    /// Look without taking anything.
    #[serde(default)]
    pub peek: bool,
    /// The `cursor` of your last page: all up to it has reached you, and all after it is given, even if it was given before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<i64>,
    /// How many at most; 20 if not said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HistoryArguments {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WaitArguments {
    /// The `session` that prism_start returned. Needed only if you are told so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// How many seconds at most. Your program may allow less.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_s: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub agent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub surface: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub workspace: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub surface_session: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub instance: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub hook: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ObligationsArguments {
    /// The `session` that prism_start returned. Needed only if you are told so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub agent: Option<String>,
    /// What you owe (`me`, the default), what others owe you (`others`), or everything (`all`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<WhoseObligations>,
    /// Only those that are `open`, `heard`, `done`, `recalled`, `expired` or `waived`. Left out: those that are not over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WhoseObligations {
    Me,
    Others,
    All,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DiagnosticsArguments {
    /// The `session` that prism_start returned. Needed only if you are told so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Another agent's name, to see how it can be reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WakeTestArguments {
    /// Whom to try; everybody if not said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Really ring, which may start a turn. Else it is only looked who is there.
    #[serde(default, skip_serializing_if = "is_false")]
    pub ring: bool,
}
