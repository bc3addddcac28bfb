//! Rules for calls of a destination's tools: which go through, which a person is asked about, which are refused.
//!
//! A verdict is about the very bytes that are forwarded. What its server could read differently from how it is read here
//! is refused where there are rules: a member that is there twice, or twice but for its capitals (Go's JSON overlooks
//! them), a call whose name is not where names are.

mod read;

use super::{
    NameGlob,
    canonical::{Json, JsonAmbiguity},
};
use crate::{
    mcp::Method,
    wire::{Message, MessageKind, envelope::alike},
};

/// The rules of one destination.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolRules {
    pub allow: Vec<ToolRule>,
    pub confirm: Vec<ToolRule>,
    pub deny: Vec<ToolRule>,
    pub otherwise: DefaultRule,
}

/// One rule: a tool, and what its arguments are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolRule {
    tool: NameGlob,
    /// Each must fit. A name with dots leads to a member of a member.
    arguments: Vec<(Box<str>, NameGlob)>,
    /// As a person is shown it.
    shown: Box<str>,
}

/// What becomes of a call that no rule is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DefaultRule {
    #[default]
    Allow,
    Confirm,
    Deny,
}

/// What the rules say of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleVerdict<'a> {
    /// No rule is for it, and it may pass.
    Free,
    Allowed(&'a str),
    Confirm(&'a str),
    Denied(&'a str),
    /// It cannot be said what it is, so it is refused.
    Unclear(JsonAmbiguity),
}

/// What stands for a rule where none was for a call.
pub const OTHERWISE: &str = "otherwise";

impl ToolRule {
    pub fn new(tool: NameGlob, arguments: Vec<(Box<str>, NameGlob)>) -> Self {
        let wanted: Vec<String> =
            arguments.iter().map(|(path, glob)| format!("{path} = {:?}", glob.as_str())).collect();
        let shown = match wanted.is_empty() {
            true => tool.as_str().into(),
            false => format!("{tool} with {}", wanted.join(", ")).into(),
        };
        Self { tool, arguments, shown }
    }

    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// Whether the rule is for this call. `every`: all that a name leads to must fit; else one is enough.
    fn is_for(&self, tool: &str, arguments: Option<&Json>, every: bool) -> bool {
        self.tool.fits(tool)
            && self.arguments.iter().all(|(path, glob)| {
                let mut found = Vec::new();
                arguments.inspect(|arguments| gather(arguments, path, &mut found));
                // What is allowed beneath a folder does not climb out of it again. (L6)
                let fits = |scalar: &&str| glob.fits(scalar) && !(every && climbs(glob, scalar));
                if every { !found.is_empty() && found.iter().all(fits) } else { found.iter().any(fits) }
            })
    }
}

/// Whether a path has more steps up in it than the pattern that it fits.
fn climbs(glob: &NameGlob, path: &str) -> bool {
    let steps = |path: &str| path.split(['/', '\\']).filter(|part| *part == "..").count();
    glob.as_str().contains('/') && steps(path) > steps(glob.as_str())
}

impl ToolRules {
    /// Whether a call's arguments matter.
    fn look_at_arguments(&self) -> bool {
        self.all().any(|rule| !rule.arguments.is_empty())
    }

    fn all(&self) -> impl Iterator<Item = &ToolRule> {
        self.allow.iter().chain(&self.confirm).chain(&self.deny)
    }

    /// What becomes of a message of a client's. What is refused beats what is confirmed, which beats what is allowed.
    pub fn judge(&self, message: &Message) -> RuleVerdict<'_> {
        if message.is_odd() {
            return RuleVerdict::Unclear(read::oddity(message));
        }
        match message.kind() {
            MessageKind::Request(Method::ToolsCall) | MessageKind::Notification(Method::ToolsCall) => {}
            _ => return RuleVerdict::Free,
        }
        let Some(tool) = message.string(message.params().name) else {
            return RuleVerdict::Unclear(JsonAmbiguity::NoName);
        };
        let arguments = message.params().arguments.filter(|_| self.look_at_arguments());
        let arguments = match arguments.map(|span| Json::read(message.text(span))).transpose() {
            Ok(arguments) => arguments,
            Err(unclear) => return RuleVerdict::Unclear(unclear),
        };
        if let Some(unclear) = arguments.as_ref().and_then(|arguments| self.looks_like(arguments)) {
            return RuleVerdict::Unclear(unclear);
        }
        let arguments = arguments.as_ref();
        let find = |rules: &'_ [ToolRule], every| rules.iter().position(|rule| rule.is_for(&tool, arguments, every));
        if let Some(at) = find(&self.deny, false) {
            return RuleVerdict::Denied(self.deny[at].shown());
        }
        if let Some(at) = find(&self.confirm, false) {
            return RuleVerdict::Confirm(self.confirm[at].shown());
        }
        if let Some(at) = find(&self.allow, true) {
            return RuleVerdict::Allowed(self.allow[at].shown());
        }
        match self.otherwise {
            DefaultRule::Allow => RuleVerdict::Free,
            DefaultRule::Confirm => RuleVerdict::Confirm(OTHERWISE),
            DefaultRule::Deny => RuleVerdict::Denied(OTHERWISE),
        }
    }

    /// An argument that is nearly called like one that a rule is about.
    fn looks_like(&self, arguments: &Json) -> Option<JsonAmbiguity> {
        self.all().flat_map(|rule| &rule.arguments).find_map(|(path, _)| near(arguments, path))
    }
}

/// A member on the way to where a name leads that is called nearly so.
fn near(value: &Json, path: &str) -> Option<JsonAmbiguity> {
    match value {
        Json::Object(members) => members.iter().find_map(|(name, value)| {
            heads(path).find_map(|(head, rest)| match **name == *head {
                true => near(value, rest?),
                false => alike(head, name).then(|| JsonAmbiguity::Alike(name.clone().into_owned(), head.to_owned())),
            })
        }),
        Json::Array(items) => items.iter().find_map(|item| near(item, path)),
        Json::Text(_) | Json::Other(_) => None,
    }
}

/// The names that a path may begin with, and what is left of it then: `a`, and `a.b`.
fn heads(path: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    let split = |(at, _)| (&path[..at], Some(&path[at + 1..]));
    path.match_indices('.').map(split).chain([(path, None)])
}

/// The scalars that a name leads to, however it is split: `a.b` is the member `b` of `a`, and a member called `a.b`.
fn gather<'a>(value: &'a Json, path: &str, found: &mut Vec<&'a str>) {
    match value {
        Json::Object(members) => {
            for (name, value) in members {
                for (_, rest) in heads(path).filter(|(head, _)| **head == **name) {
                    match rest {
                        Some(rest) => gather(value, rest, found),
                        None => scalars(value, found),
                    }
                }
            }
        }
        // Whichever of a list it is.
        Json::Array(items) => items.iter().for_each(|item| gather(item, path, found)),
        Json::Text(_) | Json::Other(_) => {}
    }
}

/// All that stands in a value, at any depth: strings by their text, others as they were written.
fn scalars<'a>(value: &'a Json, found: &mut Vec<&'a str>) {
    match value {
        Json::Object(members) => members.iter().for_each(|(_, value)| scalars(value, found)),
        Json::Array(items) => items.iter().for_each(|item| scalars(item, found)),
        Json::Text(text) => found.push(text),
        Json::Other(text) => found.push(text),
    }
}

/// Whether no reader could take a message for a call that it is not.
pub fn is_clear(message: &Message) -> bool {
    !message.is_odd()
}

/// The arguments of a call, if they mean one thing only; none are an empty object.
pub fn arguments(message: &Message) -> Result<Json<'_>, JsonAmbiguity> {
    if message.is_odd() {
        return Err(read::oddity(message));
    }
    message.params().arguments.map_or_else(|| Ok(Json::Object(Vec::new())), |span| Json::read(message.text(span)))
}

#[cfg(test)]
mod tests;
