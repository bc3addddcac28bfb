//! The page that lists every setting: a key that it leaves out is one that nobody finds.

use super::config;
use crate::raw::keys::{
    AUDIT_KEYS, DESTINATION_KEYS, EDITOR_KEYS, GATE_KEYS, GLOBAL_KEYS, HUB_KEYS, MESH_KEYS, PROFILE_KEYS, SANDBOX_KEYS,
    TOOLS_KEYS, WORKSPACE_KEYS,
};

const PAGE: &str = include_str!("../../../../docs/config.md");

/// Tables, which have a heading each in place of a row.
pub(super) const TABLES: [&str; 9] =
    ["hub", "mesh", "gate", "audit", "editor", "profile", "workspace", "server", "destination"];

/// The part of the page from a heading to the next of its kind.
fn part(heading: &str) -> &'static str {
    let from = PAGE.find(heading).unwrap_or_else(|| panic!("no heading {heading:?}"));
    let rest = &PAGE[from + heading.len()..];
    let until = ["\n## ", "\n### "].iter().filter_map(|mark| rest.find(mark)).min();
    &rest[..until.unwrap_or(rest.len())]
}

#[track_caller]
fn has_a_row_for_each(heading: &str, keys: &[&str]) {
    let rows: Vec<&str> = part(heading).lines().filter_map(|line| line.strip_prefix("| `")).collect();
    for key in keys {
        let is_named =
            |row: &&str| row.split(" | ").next().is_some_and(|names| names.split('`').any(|name| name == *key));
        assert!(rows.iter().any(is_named), "docs/config.md has no row for {key} below {heading:?}");
    }
}

//
#[test]
fn every_setting_is_on_its_page() {
    let settings: Vec<&str> = GLOBAL_KEYS.into_iter().filter(|key| !TABLES.contains(key)).collect();
    has_a_row_for_each("## At the top", &settings);
    let settings: Vec<&str> = DESTINATION_KEYS.into_iter().filter(|key| *key != "tools").collect();
    has_a_row_for_each("## Servers: `[server.NAME]`", &settings);
    has_a_row_for_each("### Rules for tools: `[server.NAME.tools]`", &TOOLS_KEYS);
    has_a_row_for_each("### A server in a sandbox: `[server.NAME.sandbox]`", &SANDBOX_KEYS);
    has_a_row_for_each("## All servers at one URL: `[hub]` and `[profile.NAME]`", &HUB_KEYS);
    has_a_row_for_each("## All servers at one URL: `[hub]` and `[profile.NAME]`", &PROFILE_KEYS);
    has_a_row_for_each("## Agents among themselves: `[mesh]`", &MESH_KEYS);
    has_a_row_for_each("## Access for sub-agents: `[gate]`", &GATE_KEYS);
    has_a_row_for_each("### `[audit]`", &AUDIT_KEYS);
    has_a_row_for_each("## The built-in editor: `[editor]`", &EDITOR_KEYS);
    has_a_row_for_each("## Workspace memory: `[workspace]`", &WORKSPACE_KEYS);
}

/// The settings of a part whose defaults are values, each with the one that the page has for it.
fn defaults(heading: &str) -> Vec<(&'static str, &'static str)> {
    let code = |text: &'static str| text.strip_prefix('`')?.strip_suffix('`').filter(|one| !one.contains('`'));
    let cells = |row: &'static str| {
        let mut cells = row.trim_start_matches("| ").split(" | ");
        Some((cells.next()?, cells.next()?))
    };
    let pairs = part(heading).lines().filter_map(cells).flat_map(|(keys, values)| {
        let values: Vec<&str> = values.split(", ").collect();
        let nth = move |i: usize| if values.len() == 1 { values.first().copied() } else { values.get(i).copied() };
        keys.split(", ").enumerate().filter_map(move |(i, key)| Some((code(key)?, code(nth(i)?)?)))
    });
    pairs.collect()
}

// written into the file, a default of the page's changes nothing.
#[test]
fn the_defaults_of_the_page_are_those_that_count() {
    let command = "[server.d]\ncommand = [\"d\"]\n";
    let room = "[server.d]\ncommand = [\"d\"]\n[server.d.sandbox]\n";
    let url = "[server.d]\nurl = \"http://127.0.0.1/mcp\"\n";
    let mut compared = 0;
    for (heading, table) in [
        ("## At the top", ""),
        ("## Servers: `[server.NAME]`", command),
        ("### A server in a sandbox: `[server.NAME.sandbox]`", room),
        ("## All servers at one URL: `[hub]` and `[profile.NAME]`", "[hub]\n"),
        ("## Agents among themselves: `[mesh]`", "[mesh]\n"),
        ("## Access for sub-agents: `[gate]`", "[gate]\n"),
        ("### `[audit]`", "[audit]\n"),
        ("## The built-in editor: `[editor]`", "[editor]\n"),
    ] {
        for (key, value) in defaults(heading) {
            let table = if key == "forward_headers" { url } else { table };
            let written = config(&format!("{table}{key} = {value}\n")).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(
                written,
                config(table).unwrap(),
                "docs/config.md has another default for {key} below {heading:?}"
            );
            compared += 1;
        }
    }
    assert!(compared > 60, "the page is written in another way: {compared}");
}
