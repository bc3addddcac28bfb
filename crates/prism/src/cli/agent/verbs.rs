//! `prism agent verbs`: what the session may do, and how each verb is typed.

use std::process::ExitCode;

use prism_api::editor::{TextPosition, TextRange};
use prism_core::{policy::Scopes, shell::command_line};
use prism_editor::verbs::{self, ArgKind, VerbDoc};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{AgentContext, kept::SavedSession, words};
use crate::cli::{
    columns::{Cell, table, text, width},
    say::{self, Colour},
};

#[derive(Debug, clap::Args)]
pub(super) struct AgentVerbsArgs {
    /// Verb to show with its arguments and an example
    verb: Option<String>,
}

impl AgentVerbsArgs {
    pub(super) fn run(self, around: &AgentContext<'_>) -> anyhow::Result<ExitCode> {
        let kept = SavedSession::find(around)?;
        let given = kept.as_ref().and_then(|kept| kept.given.as_ref());
        let granted = given.map(|given| Scopes::read(given.scopes.iter().map(String::as_str))).transpose()?;
        if let Some(name) = &self.verb {
            let verb = words::named(name)?;
            match around.json {
                true => say::text(&serde_json::to_string_pretty(&described(verb, granted))?),
                false => one(verb, granted),
            }
            return Ok(ExitCode::SUCCESS);
        }
        match around.json {
            true => {
                let all: Vec<Value> = verbs::all().map(|verb| described(verb, granted)).collect();
                say::text(&serde_json::to_string_pretty(&json!({ "verbs": all }))?);
            }
            false => all(granted),
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Whether a verb may be used; `None` if no session is open.
fn may(verb: &VerbDoc, granted: Option<Scopes>) -> Option<bool> {
    Some(verb.action()?.scopes().has_any_of(granted?))
}

fn needs(verb: &VerbDoc) -> Vec<&'static str> {
    verb.action().map(|action| action.scopes().names()).unwrap_or_default()
}

fn described(verb: &VerbDoc, granted: Option<Scopes>) -> Value {
    json!({
        "verb": verb.name, "about": verb.about, "is_granted": may(verb, granted), "needs_one_of": needs(verb),
        "is_read_only": verb.is_read_only(), "arguments": verb.schema(), "example": typed(verb),
    })
}

fn all(granted: Option<Scopes>) {
    let shown: Vec<&VerbDoc> = verbs::all().filter(|verb| may(verb, granted) != Some(false)).collect();
    let columns = [text("VERB", 0), text("WHAT IT DOES", 0), text("NEEDS", 1)];
    let rows = shown.iter().map(|verb| {
        let cells: Vec<Cell> = vec![
            (verb.name.to_owned(), None),
            (verb.about.trim_end_matches('.').to_owned(), None),
            (needs(verb).join(" or "), Some(Colour::Dim)),
        ];
        (cells, Vec::new())
    });
    table(&columns, rows.collect(), width()).iter().for_each(say::coloured);
    match granted {
        None => say::note("no session is open; these are all verbs there are: prism agent open"),
        Some(_) => {
            let others: Vec<&str> =
                verbs::all().filter(|verb| may(verb, granted) == Some(false)).map(|verb| verb.name).collect();
            if !others.is_empty() {
                say::note(&format!("not granted: {}", others.join(" ")));
            }
        }
    }
    say::note("prism agent verbs VERB shows its arguments and an example");
}

fn one(verb: &VerbDoc, granted: Option<Scopes>) {
    say::line(&format!("{}: {}", verb.name, verb.about));
    let granted = match may(verb, granted) {
        Some(true) => ("granted", Some(Colour::Green)),
        Some(false) => ("not granted", Some(Colour::Red)),
        None => ("no session is open", Some(Colour::Dim)),
    };
    say::parts(&[("needs ", None), (&needs(verb).join(" or "), None), (" (", None), granted, (")", None)]);
    let kinds: Vec<String> = verb.args.iter().map(|arg| arg.kind.in_words()).collect();
    let wide = |texts: &mut dyn Iterator<Item = usize>| texts.max().unwrap_or_default();
    let names = wide(&mut verb.args.iter().map(|arg| arg.name.len() + 1));
    for (arg, kind) in verb.args.iter().zip(&kinds) {
        let star = if arg.is_required { "*" } else { "" };
        let name = format!("  {:names$}  ", format!("{}{star}", arg.name));
        say::parts(&[(&name, None), (arg.about, None), (&format!("  [{kind}]"), Some(Colour::Dim))]);
    }
    say::line(&format!("example: {}", typed(verb)));
}

/// The example as one would type it.
fn typed(verb: &VerbDoc) -> String {
    let example: Map<String, Value> = serde_json::from_str(verb.example).unwrap_or_default();
    let place = |TextPosition { line, character }| format!("{line}:{character}");
    let words = example.iter().map(|(name, value)| {
        let text = match (verb.arg(name).map(|arg| arg.kind), value) {
            (Some(ArgKind::Position), value) => place(TextPosition::deserialize(value).unwrap_or_default()),
            (Some(ArgKind::Range), value) => {
                let TextRange { start, end } = TextRange::deserialize(value).unwrap_or_default();
                format!("{}-{}", place(start), place(end))
            }
            // A shell shows a line break as it is.
            (_, Value::String(text)) => text.replace('\n', "\\n"),
            (_, other) => other.to_string(),
        };
        format!("{name}={text}")
    });
    let words: Vec<String> = ["prism", "agent", "run", verb.name].map(str::to_owned).into_iter().chain(words).collect();
    command_line(&words)
}
