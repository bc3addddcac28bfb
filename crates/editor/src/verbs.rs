//! What each verb is for and which arguments it takes, for whoever has to be told before: a model that chooses among tools, a
//! person at a shell. What a verb does with them is its own; whether it may be done is `prism_core::policy`'s.

mod table;

use prism_core::policy::{Risk, VerbSpec};
use serde_json::{Map, Value, json};

/// A verb as it is shown.
#[derive(Debug)]
pub struct VerbDoc {
    pub name: &'static str,
    /// One sentence for a model that has to choose.
    pub about: &'static str,
    pub args: &'static [VerbArg],
    /// Arguments that make sense, as JSON.
    pub example: &'static str,
}

/// One argument of a verb.
#[derive(Clone, Copy, Debug)]
pub struct VerbArg {
    pub name: &'static str,
    pub kind: ArgKind,
    pub is_required: bool,
    pub about: &'static str,
}

/// What an argument looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgKind {
    Text,
    /// One of these words.
    Choice(&'static [&'static str]),
    Integer,
    Boolean,
    Position,
    Range,
    /// An array of strings.
    Texts,
    /// A line for the shell, or a program and its arguments.
    Command,
    /// An object whose members are strings.
    Variables,
    /// An array of edits of one text.
    Edits,
    /// An array of texts and their edits.
    Files,
}

/// Returns every verb, in the order of the policy's table.
pub fn all() -> impl Iterator<Item = &'static VerbDoc> {
    table::VERBS.iter()
}

pub fn named(name: &str) -> Option<&'static VerbDoc> {
    all().find(|verb| verb.name == name)
}

// === impl VerbDoc ===

impl VerbDoc {
    /// Its row in the policy's table; every verb has one.
    pub fn action(&self) -> Option<&'static VerbSpec> {
        VerbSpec::named(self.name)
    }

    /// Returns whether it leaves everything as it is.
    pub fn is_read_only(&self) -> bool {
        self.action().is_some_and(|action| action.risk == Risk::Reads)
    }

    /// Returns whether what it does may not be undone. What runs the project's own code may do anything.
    pub fn is_destructive(&self) -> bool {
        self.action().is_none_or(|action| action.risk >= Risk::Runs)
    }

    pub fn arg(&self, name: &str) -> Option<&'static VerbArg> {
        self.args.iter().find(|arg| arg.name == name)
    }

    /// Returns the JSON schema of its arguments.
    pub fn schema(&self) -> Value {
        let properties = self.args.iter().map(|arg| {
            let mut schema = arg.kind.schema();
            schema["description"] = arg.about.into();
            (arg.name.to_owned(), schema)
        });
        let required: Vec<_> = self.args.iter().filter(|arg| arg.is_required).map(|arg| arg.name).collect();
        object(properties.collect(), &required)
    }
}

// === impl ArgKind ===

impl ArgKind {
    /// What a person calls it.
    pub fn in_words(self) -> String {
        match self {
            Self::Text => "string".to_owned(),
            Self::Choice(words) => words.join(" | "),
            Self::Integer => "whole number".to_owned(),
            Self::Boolean => "true | false".to_owned(),
            Self::Position => "LINE:CHARACTER".to_owned(),
            Self::Range => "LINE:CHARACTER-LINE:CHARACTER".to_owned(),
            Self::Texts => "array of strings".to_owned(),
            Self::Command => "line for the shell, or array of words".to_owned(),
            Self::Variables => "object of strings".to_owned(),
            Self::Edits => "array of {range, new_text} or {old_text, new_text}".to_owned(),
            Self::Files => "array of {path, version, edits}".to_owned(),
        }
    }

    fn schema(self) -> Value {
        let text = || json!({"type": "string"});
        let whole = || json!({"type": "integer", "minimum": 0});
        let position = || members([("line", whole()), ("character", whole())], &["line", "character"]);
        let range = || members([("start", position()), ("end", position())], &["start", "end"]);
        let edit = || members([("range", range()), ("old_text", text()), ("new_text", text())], &["new_text"]);
        let edits = || json!({"type": "array", "items": edit(), "minItems": 1});
        match self {
            Self::Text => text(),
            Self::Choice(words) => json!({"type": "string", "enum": words}),
            Self::Integer => whole(),
            Self::Boolean => json!({"type": "boolean"}),
            Self::Position => position(),
            Self::Range => range(),
            Self::Texts => json!({"type": "array", "items": text()}),
            // Not a list of types: some clients refuse one.
            Self::Command => json!({"anyOf": [text(), {"type": "array", "items": text(), "minItems": 1}]}),
            Self::Variables => json!({"type": "object", "additionalProperties": text()}),
            Self::Edits => edits(),
            Self::Files => {
                let file = [("path", text()), ("version", whole()), ("edits", edits())];
                json!({"type": "array", "items": members(file, &["path", "edits"]), "minItems": 1})
            }
        }
    }
}

fn members<const N: usize>(properties: [(&str, Value); N], required: &[&str]) -> Value {
    object(properties.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect(), required)
}

fn object(properties: Map<String, Value>, required: &[&str]) -> Value {
    let mut schema = json!({"type": "object", "properties": properties, "additionalProperties": false});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

#[cfg(test)]
mod tests;
