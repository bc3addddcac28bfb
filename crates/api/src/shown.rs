//! What a confirmation shows, where it has one of the forms that are known. The whole of it is in
//! `ConfirmationView::shown`; what has another form is shown as it came.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What is shown of an action: its verb, its picture, and why a person is asked at all.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ShownAction {
    pub action: String,
    /// A `ShownStep`, or what a newer Prism makes of it.
    pub shown: Value,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub because: Vec<String>,
}

/// The picture of an action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ShownStep {
    Command(ShownCommand),
    Diff(ShownDiff),
    Delete(ShownDelete),
    Rename(ShownRename),
    Plain(ShownPlain),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ShownCommand {
    pub command: CommandWords,
    pub cwd: String,
    /// What is added to the usual environment.
    pub env: BTreeMap<String, String>,
    pub timeout_ms: Option<u64>,
    /// The files of the granted folders that it runs, as far as that can be told from its words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<ShownScript>,
}

/// A command as it was given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum CommandWords {
    /// For `sh -c`.
    Shell(String),
    /// The program and its arguments.
    List(Vec<String>),
}

impl Default for CommandWords {
    fn default() -> Self {
        Self::List(Vec::new())
    }
}

/// A file that a command runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ShownScript {
    pub path: String,
    pub bytes: u64,
    /// SHA-256 of all of it, in hex.
    pub digest: String,
    /// Its text, or the beginning of it; `None` if it is no text.
    pub content: Option<String>,
    pub is_cut: bool,
}

/// A file as it will be, against what it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ShownDiff {
    pub path: String,
    /// Of the whole file as it is, in hex; `None` if there is none yet, or only an editor knows it.
    pub old_text_digest: Option<String>,
    pub unified: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ShownDelete {
    pub path: String,
    /// `file`, `folder`, `link` or `special`.
    pub what: String,
    pub bytes: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ShownRename {
    pub from: String,
    pub to: String,
    /// Whether something by the new name is lost.
    pub replaces: bool,
}

/// What changes nothing, or nothing that there is a picture of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ShownPlain {
    pub title: String,
    pub lines: Vec<String>,
}

/// A call of a tool that a rule wants confirmed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ShownToolCall {
    pub destination: String,
    pub tool: String,
    pub client: String,
    pub rule: String,
    /// The arguments as text: a tree would not keep numbers as they are written.
    pub arguments: String,
    pub definition: String,
}

/// A tool that is no longer defined as it was when it was first used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ShownDefinition {
    pub destination: String,
    pub tool: String,
    pub client: String,
    /// The difference; or, where there is none, both definitions.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub unified: String,
    #[serde(skip_serializing_if = "Value::is_null")]
    pub before: Value,
    #[serde(skip_serializing_if = "Value::is_null")]
    pub after: Value,
}
