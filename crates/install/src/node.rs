//! A value that is about to be written into somebody's config, with its members in the order in which they shall stand.
//! `serde_json` would sort them.

use serde_json::Value;
use toml_edit::InlineTable;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ConfigNode {
    Text(String),
    List(Vec<String>),
    Table(Vec<(String, Self)>),
    /// A list that we make: known again by the blank or the line end behind its bracket.
    Items(Vec<Self>),
    /// Whatever a file had, in its words.
    Raw(String),
    Other(Value),
}

/// How JSON is laid out.
#[derive(Clone, Debug)]
pub(super) enum JsonLayout {
    /// On one line, with a blank after each colon and comma, or without.
    Line { tight: bool },
    /// One member a line; `indent` is that of the line where the value begins.
    Lines { indent: String, unit: String, newline: &'static str },
}

// === impl ConfigNode ===

impl ConfigNode {
    pub(super) fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    pub(super) fn table<const N: usize>(members: [(&str, Self); N]) -> Self {
        Self::Table(members.into_iter().map(|(name, node)| (name.to_owned(), node)).collect())
    }

    /// Returns it as JSON.
    pub(super) fn json(&self, layout: &JsonLayout) -> String {
        match self {
            Self::Text(text) => quoted(text),
            Self::Raw(text) => text.clone(),
            Self::Other(value) => value.to_string(),
            Self::List(words) => {
                let comma = if matches!(layout, JsonLayout::Line { tight: true }) { "," } else { ", " };
                format!("[{}]", words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(comma))
            }
            Self::Table(members) => {
                let inner = layout.inner();
                let members: Vec<String> = members.iter().map(|(name, node)| inner.member(name, node)).collect();
                layout.object(&members)
            }
            Self::Items(items) => {
                let inner = layout.inner();
                layout.list(&items.iter().map(|item| item.json(&inner)).collect::<Vec<_>>())
            }
        }
    }

    /// Returns it as a value of TOML.
    pub(super) fn toml(&self) -> toml_edit::Value {
        match self {
            Self::Text(text) => text.into(),
            Self::List(words) => words.iter().collect::<toml_edit::Array>().into(),
            Self::Table(members) => {
                members.iter().map(|(name, node)| (name.as_str(), node.toml())).collect::<InlineTable>().into()
            }
            Self::Items(items) => items.iter().map(Self::toml).collect::<toml_edit::Array>().into(),
            Self::Raw(text) => text.parse().unwrap_or_else(|_| text.into()),
            Self::Other(value) => toml_value(value),
        }
    }

    /// Returns what a reader of the file finds.
    pub(super) fn value(&self) -> Value {
        match self {
            Self::Text(text) => text.clone().into(),
            Self::List(words) => words.clone().into(),
            Self::Table(members) => members.iter().map(|(name, node)| (name.clone(), node.value())).collect(),
            Self::Items(items) => items.iter().map(Self::value).collect(),
            Self::Raw(text) => serde_json::from_str(text).unwrap_or_else(|_| text.clone().into()),
            Self::Other(value) => value.clone(),
        }
    }
}

/// Returns a text as JSON writes it.
pub(super) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

fn toml_value(value: &Value) -> toml_edit::Value {
    match value {
        Value::String(text) => text.into(),
        Value::Bool(flag) => (*flag).into(),
        Value::Number(number) => match number.as_i64() {
            Some(number) => number.into(),
            None => number.as_f64().unwrap_or_default().into(),
        },
        Value::Array(values) => values.iter().map(toml_value).collect::<toml_edit::Array>().into(),
        Value::Object(members) => {
            members.iter().map(|(name, value)| (name.as_str(), toml_value(value))).collect::<InlineTable>().into()
        }
        // TOML has no null, and nobody whose entry we write has one in it.
        Value::Null => "".into(),
    }
}

// === impl JsonLayout ===

impl JsonLayout {
    /// The layout of what stands in an object of this one.
    pub(super) fn inner(&self) -> Self {
        match self {
            Self::Line { tight } => Self::Line { tight: *tight },
            Self::Lines { indent, unit, newline } => {
                Self::Lines { indent: format!("{indent}{unit}"), unit: unit.clone(), newline }
            }
        }
    }

    /// Returns a member of an object.
    pub(super) fn member(&self, name: &str, node: &ConfigNode) -> String {
        let colon = if matches!(self, Self::Line { tight: true }) { ":" } else { ": " };
        format!("{}{colon}{}", quoted(name), node.json(self))
    }

    /// Returns an object around members.
    fn object(&self, members: &[String]) -> String {
        match self {
            Self::Line { tight } => format!("{{{}}}", members.join(if *tight { "," } else { ", " })),
            Self::Lines { indent, unit, newline } => {
                let gap = format!("{newline}{indent}{unit}");
                format!("{{{gap}{}{newline}{indent}}}", members.join(&format!(",{gap}")))
            }
        }
    }

    /// Returns a list around elements.
    fn list(&self, items: &[String]) -> String {
        match self {
            Self::Line { tight } => format!("[ {} ]", items.join(if *tight { "," } else { ", " })),
            Self::Lines { indent, unit, newline } => {
                let gap = format!("{newline}{indent}{unit}");
                format!("[{gap}{}{newline}{indent}]", items.join(&format!(",{gap}")))
            }
        }
    }

    /// Returns an object around one member that makes it known as one of ours: in what others wrote no blank
    /// follows the brace when the object has nothing but our entry (see `jsonc.rs`).
    pub(super) fn container(&self, member: &str) -> String {
        match self {
            Self::Line { .. } => format!("{{ {member} }}"),
            Self::Lines { .. } => self.object(&[member.to_owned()]),
        }
    }
}
