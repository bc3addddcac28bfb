//! What a person is shown of an action before it is done. What is shown is what is run.

use std::collections::BTreeMap;

use serde::Serialize;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ActionPreview {
    Command {
        command: GivenCommand,
        cwd: String,
        /// What is added to the usual environment.
        env: BTreeMap<String, String>,
        timeout_ms: u64,
        /// The files of the granted folders that it runs, as far as that can be told from its words.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        runs: Vec<Script>,
    },
    /// A file as it will be, against what it is.
    Diff {
        path: String,
        /// Of the whole file as it is, in hex; `None` if there is none yet, or only an editor knows it.
        old_text_digest: Option<String>,
        unified: String,
    },
    Delete {
        path: String,
        /// `file`, `folder`, `link` or `special`.
        what: &'static str,
        bytes: u64,
    },
    Rename {
        from: String,
        to: String,
        /// Whether something by the new name is lost.
        replaces: bool,
    },
    /// What changes nothing, or nothing that there is a picture of.
    Plain { title: String, lines: Vec<String> },
}

/// A command as it was given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum GivenCommand {
    /// For `sh -c`.
    Shell(String),
    /// The program and its arguments.
    List(Vec<String>),
}

/// A file that a command runs, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Script {
    pub path: String,
    pub bytes: u64,
    /// SHA-256, in hex.
    pub digest: String,
    /// Its beginning, or all of it; `None` of what is no text.
    pub content: Option<String>,
    pub is_cut: bool,
}

impl ActionPreview {
    pub(crate) fn plain(title: impl Into<String>) -> Self {
        Self::Plain { title: title.into(), lines: Vec::new() }
    }
}
