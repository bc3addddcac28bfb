//! The arguments of the tools. The doc comments are the descriptions that a model reads.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de::Error};

use super::super::{ContextTier, NoteKind};

/// Arguments of `workspace_get_context`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct GetContextArguments {
    /// Optional; left out, it is the only workspace that there is. Where there are several the answer names them.
    pub(super) workspace: Option<String>,
    /// Optional; left out, the answer is about all domains. A domain is a folder of the workspace.
    pub(super) domain: Option<String>,
    /// Optional; left out, the answer is about all repositories. A repository is a folder of a domain.
    pub(super) repository: Option<String>,
    /// Optional; left out, no topic is listed besides the usual parts, and `topics` names those that there are.
    pub(super) topics: WordList,
    /// Optional; left out or true, the answer has the overview, the tree, decisions, lessons and recent work. With false
    /// it has the topics alone.
    pub(super) include_defaults: Option<bool>,
    /// Optional; left out, notes of any status are told of. Else those with one of these statuses.
    pub(super) filter_status: WordList,
    /// Optional; left out, notes with any tags are told of. Else those with at least one of these tags.
    pub(super) filter_tags: WordList,
    /// Optional; left out, notes of any category are told of. Else those of one of these categories.
    pub(super) filter_category: WordList,
    /// Optional; left out it is front_matter: each note by its front matter. With overview, notes are only counted; with
    /// full, their texts are there too, as far as the answer's size allows.
    pub(super) tier: Option<ContextTier>,
}

/// Arguments of `workspace_remember`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RememberArguments {
    /// What the note is called, in a few words. The file's name is made from it.
    pub(super) title: String,
    /// The note itself, in Markdown, without front matter. Say why, not only what.
    pub(super) text: String,
    /// Optional; left out it is a note. A decision says what was chosen and why, a lesson what was learnt the hard way,
    /// a plan what is to be done.
    #[serde(default)]
    pub(super) kind: Option<NoteKind>,
    /// Optional; left out, it is the only workspace that there is. Where there are several the answer names them.
    #[serde(default)]
    pub(super) workspace: Option<String>,
    /// Optional; left out, the note is for the whole workspace. A new name begins a new domain.
    #[serde(default)]
    pub(super) domain: Option<String>,
    /// Optional; left out, the note is for all repositories of the domain.
    #[serde(default)]
    pub(super) repository: Option<String>,
    /// Optional; left out, the note lies with others of its kind. Else in the folder of this topic.
    #[serde(default)]
    pub(super) topic: Option<String>,
    /// Optional; left out, the note has no tags.
    #[serde(default)]
    pub(super) tags: WordList,
    /// Optional; left out, the note has no status. One word, such as proposed, accepted or done.
    #[serde(default)]
    pub(super) status: Option<String>,
}

/// Arguments of `workspace_search`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchNotesArguments {
    /// The words to look for. Any text will do.
    pub(super) query: String,
    /// Optional; left out, all workspaces are searched.
    #[serde(default)]
    pub(super) workspace: Option<String>,
    /// Optional; left out, all domains are searched.
    #[serde(default)]
    pub(super) domain: Option<String>,
    /// Optional; left out, all repositories are searched.
    #[serde(default)]
    pub(super) repository: Option<String>,
    /// Optional; left out, notes of all kinds are searched.
    #[serde(default)]
    pub(super) kind: Option<NoteKindFilter>,
    /// Optional; left out, notes with any tags are searched. Else those with at least one of these tags.
    #[serde(default)]
    pub(super) tags: WordList,
    /// Optional; left out it is 10. The most is 50.
    #[serde(default)]
    pub(super) limit: Option<u32>,
}

/// Arguments of `workspace_forget`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ForgetNoteArguments {
    /// The note's file, as _meta.document_path names it.
    pub(super) document_path: String,
}

// What can be searched: what can be remembered, and the overviews.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum NoteKindFilter {
    Note,
    Decision,
    Lesson,
    Plan,
    Overview,
}

/// Words, as `"a,b"` or `["a", "b"]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct WordList(Vec<String>);

/// Words of one argument; more are refused, as no list that a person keeps is that long.
const MAX_WORDS: usize = 64;

// === impl NoteKindFilter ===

impl NoteKindFilter {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Decision => "decision",
            Self::Lesson => "lesson",
            Self::Plan => "plan",
            Self::Overview => "overview",
        }
    }
}

// === impl WordList ===

impl From<WordList> for Vec<String> {
    fn from(WordList(words): WordList) -> Self {
        words
    }
}

impl<'de> Deserialize<'de> for WordList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected a list of texts, or one text with commas between them")]
        enum WordListInput {
            None(()),
            One(String),
            Many(Vec<String>),
        }
        let all: Vec<String> = match WordListInput::deserialize(deserializer)? {
            WordListInput::None(()) => Vec::new(),
            WordListInput::One(text) => text.split(',').map(|word| word.trim().to_owned()).collect(),
            WordListInput::Many(words) => words.iter().map(|word| word.trim().to_owned()).collect(),
        };
        let words: Vec<String> = all.into_iter().filter(|word| !word.is_empty()).collect();
        if words.len() > MAX_WORDS || words.iter().any(|word| word.len() > 200) {
            return Err(D::Error::custom(format!("expected at most {MAX_WORDS} words of at most 200 bytes")));
        }
        Ok(Self(words))
    }
}

impl JsonSchema for WordList {
    fn schema_name() -> Cow<'static, str> {
        "Words".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]})
    }
}
