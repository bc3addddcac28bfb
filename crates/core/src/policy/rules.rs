//! Rules for calls of a destination's tools: which go through, which a person is asked about, which are refused.
//!
//! A verdict is about the very bytes that are forwarded. What its server could read differently from how it is read here
//! is refused where there are rules: a member that is there twice, or twice but for its capitals (Go's JSON overlooks
//! them), a call whose name is not where names are.

mod read;

use super::{
    Glob,
    canonical::{Json, Unclear},
};
use crate::{
    mcp::Method,
    wire::{Kind, Message, envelope::alike},
};

/// The rules of one destination.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    pub allow: Vec<Rule>,
    pub confirm: Vec<Rule>,
    pub deny: Vec<Rule>,
    pub otherwise: Otherwise,
}

/// One rule: a tool, and what its arguments are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    tool: Glob,
    /// Each must fit. A name with dots leads to a member of a member.
    arguments: Vec<(Box<str>, Glob)>,
    /// As a person is shown it.
    shown: Box<str>,
}

/// What becomes of a call that no rule is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Otherwise {
    #[default]
    Allow,
    Confirm,
    Deny,
}

/// What the rules say of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict<'a> {
    /// No rule is for it, and it may pass.
    Free,
    Allowed(&'a str),
    Confirm(&'a str),
    Denied(&'a str),
    /// It cannot be said what it is, so it is refused.
    Unclear(Unclear),
}

/// What stands for a rule where none was for a call.
pub const OTHERWISE: &str = "otherwise";

impl Rule {
    pub fn new(tool: Glob, arguments: Vec<(Box<str>, Glob)>) -> Self {
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
fn climbs(glob: &Glob, path: &str) -> bool {
    let steps = |path: &str| path.split(['/', '\\']).filter(|part| *part == "..").count();
    glob.as_str().contains('/') && steps(path) > steps(glob.as_str())
}

impl Rules {
    /// Whether a call's arguments matter.
    fn look_at_arguments(&self) -> bool {
        self.all().any(|rule| !rule.arguments.is_empty())
    }

    fn all(&self) -> impl Iterator<Item = &Rule> {
        self.allow.iter().chain(&self.confirm).chain(&self.deny)
    }

    /// What becomes of a message of a client's. What is refused beats what is confirmed, which beats what is allowed.
    pub fn judge(&self, message: &Message) -> Verdict<'_> {
        if message.is_odd() {
            return Verdict::Unclear(read::oddity(message));
        }
        match message.kind() {
            Kind::Request(Method::ToolsCall) | Kind::Notification(Method::ToolsCall) => {}
            _ => return Verdict::Free,
        }
        let Some(tool) = message.string(message.params().name) else { return Verdict::Unclear(Unclear::NoName) };
        let arguments = message.params().arguments.filter(|_| self.look_at_arguments());
        let arguments = match arguments.map(|span| Json::read(message.text(span))).transpose() {
            Ok(arguments) => arguments,
            Err(unclear) => return Verdict::Unclear(unclear),
        };
        if let Some(unclear) = arguments.as_ref().and_then(|arguments| self.looks_like(arguments)) {
            return Verdict::Unclear(unclear);
        }
        let arguments = arguments.as_ref();
        let find = |rules: &'_ [Rule], every| rules.iter().position(|rule| rule.is_for(&tool, arguments, every));
        if let Some(at) = find(&self.deny, false) {
            return Verdict::Denied(self.deny[at].shown());
        }
        if let Some(at) = find(&self.confirm, false) {
            return Verdict::Confirm(self.confirm[at].shown());
        }
        if let Some(at) = find(&self.allow, true) {
            return Verdict::Allowed(self.allow[at].shown());
        }
        match self.otherwise {
            Otherwise::Allow => Verdict::Free,
            Otherwise::Confirm => Verdict::Confirm(OTHERWISE),
            Otherwise::Deny => Verdict::Denied(OTHERWISE),
        }
    }

    /// An argument that is nearly called like one that a rule is about.
    fn looks_like(&self, arguments: &Json) -> Option<Unclear> {
        self.all().flat_map(|rule| &rule.arguments).find_map(|(path, _)| near(arguments, path))
    }
}

/// A member on the way to where a name leads that is called nearly so.
fn near(value: &Json, path: &str) -> Option<Unclear> {
    match value {
        Json::Object(members) => members.iter().find_map(|(name, value)| {
            heads(path).find_map(|(head, rest)| match **name == *head {
                true => near(value, rest?),
                false => alike(head, name).then(|| Unclear::Alike(name.clone().into_owned(), head.to_owned())),
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
pub fn arguments(message: &Message) -> Result<Json<'_>, Unclear> {
    if message.is_odd() {
        return Err(read::oddity(message));
    }
    message.params().arguments.map_or_else(|| Ok(Json::Object(Vec::new())), |span| Json::read(message.text(span)))
}

#[cfg(test)]
mod tests;
