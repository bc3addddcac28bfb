//! What the built-in editor runs for agents in a folder of a plugin's, for the person to see while it runs. It is told to those
//! that said `shows`; nobody answers, and nobody is waited for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something begins to run. What is printed follows as `show_output`, its end as `show_ended`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunShow {
    /// The run's number in this connection.
    pub id: u64,
    pub kind: RunShowKind,
    /// What the agent asked for.
    pub verb: String,
    /// For a tab: who, and what. No control characters.
    pub title: String,
    /// As one would type it. No control characters.
    pub command: String,
    pub agent_id: String,
    pub session_id: String,
    /// Where it runs, absolute.
    pub path: String,
    /// Of a terminal, how large its screen is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cols: Option<u16>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunShowKind {
    /// It prints, and ends.
    Command,
    /// It is a screen.
    Terminal,
}

/// What a run has printed next, to be written to a terminal as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunShowOutput {
    pub id: u64,
    pub text: String,
}

/// A terminal has another size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunShowResized {
    pub id: u64,
    pub rows: u16,
    pub cols: u16,
}

/// A run is over. Neither a code nor a signal if it was given up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunShowEnded {
    pub id: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// What else there is to say, as that its time was over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}
