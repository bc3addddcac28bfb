//! Which crate may know which, and which room of a crate which other: the map of `ARCHITECTURE.md`, held.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    super::{
        Finding,
        source::words,
        tree::{File, Tree},
    },
    error, manifest_lines, shipped_words,
};

/// The crates from the lowest floor to the highest, and which others each may name. What a crate needs of another that is not
/// here it takes as a trait of its own, and `daemon` fills it in.
const HOUSE: [(&str, &[&str]); 15] = [
    ("core", &[]),
    ("os", &["core"]),
    ("api", &["core"]),
    ("store", &["core"]),
    ("config", &["core", "os"]),
    ("telemetry", &["core", "api", "os", "config"]),
    ("mcp", &["core"]),
    ("editor", &["core", "os"]),
    ("install", &["os", "config"]),
    ("workspace", &["core", "api", "os", "store", "mcp"]),
    // A server in a sandbox lives in the editor's quarters.
    ("bridge", &["core", "api", "os", "store", "config", "telemetry", "mcp", "editor"]),
    // It hears which clients' streams are open, and rings on them.
    ("mesh", &["core", "api", "os", "store", "config", "telemetry", "mcp", "bridge"]),
    ("gate", &["core", "api", "os", "store", "config", "telemetry", "mcp", "editor"]),
    (
        "daemon",
        &[
            "core",
            "api",
            "os",
            "store",
            "config",
            "telemetry",
            "mcp",
            "editor",
            "install",
            "workspace",
            "bridge",
            "mesh",
            "gate",
        ],
    ),
    (
        "prism",
        &[
            "core",
            "api",
            "os",
            "store",
            "config",
            "telemetry",
            "mcp",
            "editor",
            "install",
            "workspace",
            "bridge",
            "mesh",
            "daemon",
        ],
    ),
];

/// Crates of others that a crate of ours has no business with, whatever its reasons.
const STRANGERS: [(&str, &[&str]); 8] = [
    ("mcp", &["rusqlite", "clap", "maud"]),
    ("store", &["hyper", "clap", "maud"]),
    ("editor", &["hyper", "rusqlite", "clap", "maud"]),
    ("install", &["hyper", "rusqlite", "tokio", "maud"]),
    ("workspace", &["hyper", "rusqlite", "clap", "maud"]),
    ("bridge", &["rusqlite", "clap", "maud"]),
    ("mesh", &["rusqlite", "clap", "maud"]),
    ("gate", &["hyper", "rusqlite", "clap", "maud"]),
];

pub(super) fn floors(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &tree.files {
        let Some(own) = file.path.strip_prefix("crates/").and_then(|rest| rest.strip_suffix("/Cargo.toml")) else {
            continue;
        };
        if own.contains('/') {
            continue;
        }
        let Some((_, may)) = HOUSE.iter().find(|(name, _)| *name == own) else {
            findings.push(error(file, 0, format!("`{own}` has no place in xtask/src/tidy/check/house.rs")));
            continue;
        };
        let strangers = STRANGERS.iter().find(|(name, _)| *name == own).map_or(&[][..], |(_, names)| names);
        for (_, at, line) in manifest_lines(file).filter(|(section, ..)| *section == "dependencies") {
            let name = line.split(['=', '.', ' ']).next().unwrap_or_default();
            let is_ours = name.strip_prefix("prism-").filter(|name| !may.contains(name));
            if let Some(ours) = is_ours {
                findings.push(error(file, at, format!("{own} depends on {ours}")));
            } else if strangers.contains(&name) {
                findings.push(error(file, at, format!("{own} depends on {name}")));
            }
        }
    }
    findings
}

/// Where calls are let pass, beside the one place for it.
pub(super) fn one_way_in(tree: &Tree) -> Vec<Finding> {
    shipped_words(tree, &["calls.check"], &["crates/daemon/src/serve/inbound"])
}

/// Top-level modules of one crate that need each other, each by way of `crate::`.
pub(super) fn cycles(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (own, _) in HOUSE {
        let source = format!("crates/{own}/src/");
        let files: Vec<(&str, &File)> = tree
            .shipped()
            .filter_map(|file| {
                let room = file.path.strip_prefix(&source)?.split('/').next()?.trim_end_matches(".rs");
                Some((room, file))
            })
            .collect();
        let rooms: BTreeSet<&str> = files.iter().map(|(room, _)| *room).filter(|room| *room != "lib").collect();
        let mut needs: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (room, file) in files.iter().filter(|(room, _)| rooms.contains(room)) {
            let named = named_rooms(file).into_iter().filter_map(|name| rooms.get(name.as_str()).copied());
            needs.entry(room).or_default().extend(named.filter(|name| name != room));
        }
        for room in needs.keys() {
            let around = reached(&needs, room);
            // Told once for each knot, at its first room.
            let knot: Vec<&str> =
                around.iter().filter(|other| reached(&needs, other).contains(room)).copied().collect();
            if knot.contains(room) && knot.first() == Some(room) {
                let file = files.iter().find(|(name, _)| name == room).map(|(_, file)| *file);
                findings.extend(file.map(|file| error(file, 0, format!("{} need each other", knot.join(", ")))));
            }
        }
    }
    findings
}

/// All that can be reached from a room; itself only if a way leads back.
fn reached<'a>(needs: &BTreeMap<&'a str, BTreeSet<&'a str>>, from: &str) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut next: Vec<&str> = needs.get(from).into_iter().flatten().copied().collect();
    while let Some(room) = next.pop() {
        if found.insert(room) {
            next.extend(needs.get(room).into_iter().flatten());
        }
    }
    found
}

/// The first names of all paths in a file that begin with `crate::`, those in groups included.
fn named_rooms(file: &File) -> Vec<String> {
    let mut names = Vec::new();
    for at in words(&file.code, "crate").filter(|at| !file.in_test(*at)) {
        let Some(rest) = file.code[at..].strip_prefix("crate::") else { continue };
        match rest.strip_prefix('{') {
            Some(group) => names.extend(first_names(group)),
            None => names.push(ident(rest)),
        }
    }
    names
}

/// The first name of each member of a group, up to its end.
fn first_names(group: &str) -> Vec<String> {
    let (mut depth, mut begins, mut names) = (0, true, Vec::new());
    for (at, letter) in group.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => begins = true,
            _ if begins && !letter.is_whitespace() => {
                names.push(ident(&group[at..]));
                begins = false;
            }
            _ => {}
        }
    }
    names
}

fn ident(text: &str) -> String {
    text.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect()
}
