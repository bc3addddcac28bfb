//! A map of a scope: its folders, without files.

use std::{fs, path::Path};

use super::super::{MemoryView, layout::is_skipped, scope::ResolvedScope};

/// How deep the map goes.
const MAX_DEPTH: usize = 3;

/// Folders of one folder that are shown; the rest is counted.
const MAX_IN_ONE: usize = 30;

/// Folders of the whole map.
const MAX_LINES: usize = 150;

/// Draws the folders of a scope, of each base that has it.
pub(super) fn of(view: &MemoryView<'_>, place: &ResolvedScope) -> String {
    let mut lines = Vec::new();
    for base in view.layout.of_workspace(&place.workspace) {
        let scope = base.scope(&place.domain, &place.repository);
        let folder = view.root.join(&scope);
        if folder.is_dir() {
            lines.push(format!("{}/", if scope.is_empty() { "." } else { &scope }));
            draw(&folder, 1, &mut lines);
        }
    }
    if lines.len() >= MAX_LINES {
        lines.push("… more folders".to_owned());
    }
    lines.join("\n")
}

fn draw(folder: &Path, depth: usize, lines: &mut Vec<String>) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut names: Vec<String> = folders.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.retain(|name| !is_skipped(name));
    names.sort_unstable();
    let indent = "  ".repeat(depth);
    for (i, name) in names.iter().enumerate() {
        if lines.len() >= MAX_LINES {
            return;
        }
        if i == MAX_IN_ONE {
            lines.push(format!("{indent}… {} more", names.len() - i));
            return;
        }
        lines.push(format!("{indent}{}/", name.replace(char::is_control, "\u{fffd}")));
        if depth < MAX_DEPTH {
            draw(&folder.join(name), depth + 1, lines);
        }
    }
}
