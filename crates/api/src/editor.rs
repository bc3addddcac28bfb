//! What the editor's verbs answer (docs/editor.md), as far as a person is shown more of it than its JSON: the answers come from
//! the built-in runtime and from plugins, and have more members than these.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

/// Reads `null` as what is missing: plugins write both.
fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(from: D) -> Result<T, D::Error> {
    Option::<T>::deserialize(from).map(Option::unwrap_or_default)
}

/// What tells of any verb's answer whether what was run went well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct VerbSuccess {
    /// Said where something was run.
    pub is_ok: Option<bool>,
}

/// `open_file`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct OpenedFile {
    /// `utf-8`, or what a file that is no text is written in.
    #[serde(deserialize_with = "or_default")]
    pub encoding: String,
    #[serde(deserialize_with = "or_default")]
    pub content: String,
}

/// `get_output`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TerminalOutput {
    pub output: Option<String>,
}

/// `exec_command`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CommandOutput {
    #[serde(deserialize_with = "or_default")]
    pub stdout: String,
    #[serde(deserialize_with = "or_default")]
    pub stderr: String,
}

/// `git_diff`, and `replace_text` where it only shows what it would do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DiffResult {
    #[serde(deserialize_with = "or_default")]
    pub is_preview: bool,
    #[serde(deserialize_with = "or_default")]
    pub diff: String,
}

/// `search_files` and `explore_tree`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct EntriesFound {
    #[serde(deserialize_with = "or_default")]
    pub entries: Vec<EntryFound>,
    pub is_complete: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct EntryFound {
    pub path: String,
    /// `file`, `folder`, …
    #[serde(deserialize_with = "or_default")]
    pub kind: String,
}

/// `find_in_file`, `find_in_project` and `regex_search`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MatchesFound {
    /// Where all of them are, if they are in one file.
    pub path: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub matches: Vec<PlaceFound>,
    pub is_complete: Option<bool>,
}

/// `goto_definition`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LocationsFound {
    pub path: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub locations: Vec<PlaceFound>,
    pub is_complete: Option<bool>,
}

/// A place with its line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PlaceFound {
    pub path: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub line_text: String,
    #[serde(deserialize_with = "or_default")]
    pub range: TextRange,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TextRange {
    pub start: TextPosition,
    pub end: TextPosition,
}

/// A place in a text, counted from zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TextPosition {
    pub line: u64,
    pub character: u64,
}

/// `get_errors`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DiagnosticsFound {
    #[serde(deserialize_with = "or_default")]
    pub diagnostics: Vec<DiagnosticFound>,
    pub is_complete: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DiagnosticFound {
    #[serde(deserialize_with = "or_default")]
    pub path: String,
    #[serde(deserialize_with = "or_default")]
    pub range: TextRange,
    /// `error`, `warning`, `information` or `hint`.
    #[serde(deserialize_with = "or_default")]
    pub severity: String,
    #[serde(deserialize_with = "or_default")]
    pub message: String,
}

/// `get_completions`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CompletionsFound {
    #[serde(deserialize_with = "or_default")]
    pub items: Vec<CompletionFound>,
    pub is_complete: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CompletionFound {
    #[serde(deserialize_with = "or_default")]
    pub label: String,
    #[serde(deserialize_with = "or_default")]
    pub detail: String,
}

/// `get_buffers`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct BuffersOpen {
    #[serde(deserialize_with = "or_default")]
    pub buffers: Vec<BufferOpen>,
    pub is_complete: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct BufferOpen {
    #[serde(deserialize_with = "or_default")]
    pub path: String,
    #[serde(deserialize_with = "or_default")]
    pub version: u64,
    #[serde(deserialize_with = "or_default")]
    pub is_dirty: bool,
}

/// `git_status` and `git_add`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct GitState {
    #[serde(deserialize_with = "or_default")]
    pub branch: String,
    #[serde(deserialize_with = "or_default")]
    pub entries: Vec<GitChange>,
    pub is_complete: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct GitChange {
    #[serde(deserialize_with = "or_default")]
    pub path: String,
    /// One letter each, as git has them.
    #[serde(deserialize_with = "or_default")]
    pub index: String,
    #[serde(deserialize_with = "or_default")]
    pub worktree: String,
}

/// `build_project` and `run_tests`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct BuildResult {
    #[serde(deserialize_with = "or_default")]
    pub is_ok: bool,
    pub tests: Option<TestsRun>,
    #[serde(deserialize_with = "or_default")]
    pub diagnostics: Vec<DiagnosticFound>,
    #[serde(deserialize_with = "or_default")]
    pub stdout: String,
    #[serde(deserialize_with = "or_default")]
    pub stderr: String,
    pub duration_ms: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TestsRun {
    #[serde(deserialize_with = "or_default")]
    pub passed: u64,
    #[serde(deserialize_with = "or_default")]
    pub failed: u64,
    #[serde(deserialize_with = "or_default")]
    pub ignored: u64,
    #[serde(deserialize_with = "or_default")]
    pub cases: Vec<TestCaseRun>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TestCaseRun {
    #[serde(deserialize_with = "or_default")]
    pub name: String,
    /// `passed`, `failed` or `ignored`.
    #[serde(deserialize_with = "or_default")]
    pub outcome: String,
    #[serde(deserialize_with = "or_default")]
    pub message: String,
}
