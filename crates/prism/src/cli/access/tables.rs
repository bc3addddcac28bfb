//! What can be granted, as `core::policy` has it: the scopes in plain words, and the actions that need them.

use prism_core::policy::{GrantScope, Preset, Risk, VerbSpec};
use serde_json::json;

use crate::cli::{
    columns::{Cell, table, text, width},
    say::{self, Colour},
};

pub(super) fn scopes(json: bool) -> anyhow::Result<()> {
    let presets = |scope: GrantScope| -> Vec<&'static str> {
        Preset::ALL.into_iter().filter(|preset| preset.scopes().has(scope)).map(Preset::name).collect()
    };
    if json {
        let scopes: Vec<_> = GrantScope::ALL
            .iter()
            .map(|scope| {
                json!({"scope": scope.name(), "means": scope.in_words(), "category": scope.category().name(),
                       "presets": presets(*scope)})
            })
            .collect();
        let presets: Vec<_> = Preset::ALL
            .into_iter()
            .map(|preset| {
                json!({"preset": preset.name(), "means": preset.in_words(), "scopes": preset.scopes().names()})
            })
            .collect();
        say::text(&serde_json::to_string_pretty(&json!({"scopes": scopes, "presets": presets}))?);
        return Ok(());
    }
    let columns = [text("SCOPE", 0), text("LETS AN AGENT", 0), text("PRESETS", 1)];
    let rows = GrantScope::ALL.iter().map(|scope| {
        let cells: Vec<Cell> = vec![
            (scope.name().to_owned(), None),
            (scope.in_words().to_owned(), None),
            (presets(*scope).join(", "), Some(Colour::Dim)),
        ];
        (cells, Vec::new())
    });
    table(&columns, rows.collect(), width()).iter().for_each(say::coloured);
    say::line("");
    for preset in Preset::ALL {
        say::line(&format!("--preset {:<10}  {}", preset.name(), preset.in_words()));
    }
    say::line("--scope git:*        all scopes that begin with git:");
    Ok(())
}

pub(super) fn actions(json: bool) -> anyhow::Result<()> {
    let needs = |action: &VerbSpec| -> Vec<&'static str> { action.needs.iter().map(|scope| scope.name()).collect() };
    if json {
        let actions: Vec<_> = VerbSpec::all()
            .map(|action| {
                json!({"action": action.verb, "category": action.category.name(), "needs_one_of": needs(action),
                       "risk": risk(action.risk).0, "paths": action.paths})
            })
            .collect();
        say::text(&serde_json::to_string_pretty(&json!({ "actions": actions }))?);
        return Ok(());
    }
    let columns = [text("ACTION", 0), text("NEEDS", 0), text("RISK", 1), text("CATEGORY", 2)];
    let rows = VerbSpec::all().map(|action| {
        let (_, words, colour) = risk(action.risk);
        let cells: Vec<Cell> = vec![
            (action.verb.to_owned(), None),
            (needs(action).join(" or "), None),
            (words.to_owned(), colour),
            (action.category.name().to_owned(), Some(Colour::Dim)),
        ];
        (cells, Vec::new())
    });
    table(&columns, rows.collect(), width()).iter().for_each(say::coloured);
    Ok(())
}

/// A risk for programs and for people.
fn risk(risk: Risk) -> (&'static str, &'static str, Option<Colour>) {
    match risk {
        Risk::Reads => ("reads", "reads", Some(Colour::Dim)),
        Risk::Changes => ("changes", "changes; shown to you first if you want", None),
        Risk::Runs => ("runs", "runs the project's code", Some(Colour::Yellow)),
        Risk::Destroys => ("destroys", "shown to you first, each time", Some(Colour::Red)),
    }
}
