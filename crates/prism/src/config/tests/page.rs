//! The page that lists every setting: a key that it leaves out is one that nobody finds.

use crate::config::raw::keys::{
    AUDIT_KEYS, DESTINATION_KEYS, EDITOR_KEYS, GATE_KEYS, GLOBAL_KEYS, HUB_KEYS, MESH_KEYS, PROFILE_KEYS, TOOLS_KEYS,
    WORKSPACE_KEYS,
};

const PAGE: &str = include_str!("../../../../../docs/config.md");

/// Tables, which have a heading each in place of a row.
const TABLES: [&str; 8] = ["hub", "mesh", "gate", "audit", "editor", "profile", "workspace", "destination"];

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
    has_a_row_for_each("## Servers: `[destination.NAME]`", &settings);
    has_a_row_for_each("### Rules for tools: `[destination.NAME.tools]`", &TOOLS_KEYS);
    has_a_row_for_each("## All servers at one URL: `[hub]` and `[profile.NAME]`", &HUB_KEYS);
    has_a_row_for_each("## All servers at one URL: `[hub]` and `[profile.NAME]`", &PROFILE_KEYS);
    has_a_row_for_each("## Agents among themselves: `[mesh]`", &MESH_KEYS);
    has_a_row_for_each("## Access for sub-agents: `[gate]`", &GATE_KEYS);
    has_a_row_for_each("### `[audit]`", &AUDIT_KEYS);
    has_a_row_for_each("## The built-in editor: `[editor]`", &EDITOR_KEYS);
    has_a_row_for_each("## Workspace memory: `[workspace]`", &WORKSPACE_KEYS);
}
