//! The memory of a workspace (docs/workspace.md): what its tools answer, and `prism workspace` shows.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A note in a list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NoteView {
    pub title: String,
    pub kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    #[serde(rename = "_meta")]
    pub meta: NoteMeta,
    /// Where the words of a search were found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snippet: Option<String>,
    /// What stands above the text (T0).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub front_matter: Option<Map<String, Value>>,
    /// The text (T1); that of an overview is its `text`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NoteMeta {
    /// Its file, relative to the root.
    pub document_path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// What there is to know about a scope.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct WorkspaceContext {
    pub root: String,
    pub workspace: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// The scope's own overview.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overview: Option<NoteView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
    /// How many notes each topic has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topics: Option<BTreeMap<String, u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decisions: Option<Vec<NoteView>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lessons: Option<Vec<NoteView>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recent: Option<Vec<NoteView>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overviews: Option<Vec<NoteView>>,
    /// How many notes there are of each kind, where none is listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notes: Option<BTreeMap<String, u64>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// The topics that were asked for: `topic:NAME`, each with its notes.
    #[serde(flatten)]
    pub asked_topics: BTreeMap<String, Vec<NoteView>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SearchAnswer {
    pub query: String,
    /// `all` of the words, `any` of them, or the `newest` notes.
    pub matched: String,
    pub total: u64,
    pub results: Vec<NoteView>,
    /// How many more there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub more: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ListAnswer {
    pub root: String,
    pub workspaces: Vec<String>,
    pub total: u64,
    pub notes: Vec<NoteView>,
    pub remarks: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NoteRemembered {
    pub remembered: String,
    pub kind: String,
    pub root: String,
    #[serde(rename = "_meta")]
    pub meta: NoteMeta,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NoteForgotten {
    pub forgotten: String,
    pub id: String,
    /// The command that puts it back.
    pub undo: String,
    #[serde(rename = "_meta")]
    pub meta: NoteMeta,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NoteRestored {
    /// Where it is again.
    pub restored: String,
}

/// A note that was forgotten and can be put back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ForgottenNote {
    pub id: String,
    pub title: String,
    pub root: String,
    pub path: String,
    pub forgotten_at: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct IndexAnswer {
    pub root: String,
    pub notes: u64,
    pub read: u64,
    pub removed: u64,
    pub remarks: Vec<String>,
    pub milliseconds: u64,
}
