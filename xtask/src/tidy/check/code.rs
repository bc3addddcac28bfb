//! The invariants of `ARCHITECTURE.md` that text can show.

use super::{
    super::{
        Finding,
        source::{closing, words},
        tree::{File, Tree},
    },
    error, manifest_lines, places, shipped_words,
};

/// Lines above an `unsafe` in which its `SAFETY:` may stand.
const SAFETY_REACH: usize = 8;

pub(super) fn core_dependencies(tree: &Tree) -> Vec<Finding> {
    const BANNED: [&str; 15] = [
        "async-std",
        "chrono",
        "getrandom",
        "http",
        "hyper",
        "hyper-util",
        "libc",
        "mio",
        "nix",
        "rand",
        "rusqlite",
        "rustix",
        "socket2",
        "time",
        "tokio",
    ];
    let Some(file) = tree.file("crates/core/Cargo.toml") else {
        return Vec::new();
    };
    let banned = |(section, at, line): (&str, usize, &str)| {
        let (table, named) = section.rsplit_once("dependencies").unwrap_or(("dev-", ""));
        let name = named.strip_prefix('.').unwrap_or_else(|| line.split(['=', '.', ' ']).next().unwrap_or_default());
        let runtime = !table.ends_with("dev-") && BANNED.contains(&name.trim_matches('"'));
        runtime.then(|| error(file, at, format!("core depends on {name}")))
    };
    manifest_lines(file).filter_map(banned).collect()
}

pub(super) fn api_dependencies(tree: &Tree) -> Vec<Finding> {
    const NEEDED: [&str; 4] = ["prism-core", "schemars", "serde", "serde_json"];
    let Some(file) = tree.file("crates/api/Cargo.toml") else {
        return Vec::new();
    };
    let other = |(section, at, line): (&str, usize, &str)| {
        let (table, named) = section.rsplit_once("dependencies")?;
        let name = named.strip_prefix('.').unwrap_or_else(|| line.split(['=', '.', ' ']).next().unwrap_or_default());
        let name = name.trim_matches('"');
        let is_other =
            !table.ends_with("dev-") && !name.is_empty() && !name.starts_with('[') && !NEEDED.contains(&name);
        is_other.then(|| error(file, at, format!("api depends on {name}")))
    };
    manifest_lines(file).filter_map(other).collect()
}

/// Members that are looked up by name, as in `answer["status"]`, where everything has a type.
pub(super) fn lookups(tree: &Tree) -> Vec<Finding> {
    // What editors say and verbs answer is still read by name: those shapes are the editor's (`crates/editor/src/protocol`).
    const UNTYPED: [&str; 2] = ["crates/gate/src/router", "crates/gate/src/grant_server"];
    const TYPED: [&str; 3] = ["crates/prism/src/cli", "crates/daemon/src/console", "crates/daemon/src/serve/console"];
    let is_typed = |file: &File| {
        TYPED.iter().any(|room| file.belongs_to(room))
            || (file.path.starts_with("crates/gate/") && !UNTYPED.iter().any(|room| file.belongs_to(room)))
    };
    let mut findings = Vec::new();
    for file in tree.shipped().filter(|file| is_typed(file)) {
        for (at, _) in file.bare.match_indices("[\"").filter(|(at, _)| !file.in_test(*at)) {
            let name = file.bare[at + 2..].split('"').next().unwrap_or_default();
            let is_looked_up = file.bare[..at].ends_with(|last: char| last.is_alphanumeric() || "_])".contains(last))
                && file.bare[at + 2 + name.len()..].starts_with("\"]")
                && !name.is_empty()
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            if is_looked_up {
                findings.push(error(file, at, format!("`[\"{name}\"]`")));
            }
        }
    }
    findings
}

pub(super) fn core_io(tree: &Tree) -> Vec<Finding> {
    const BANNED: [&str; 5] = ["fs", "net", "env", "process", "thread"];
    const WORDS: [&str; 4] = ["tokio", "Instant::now", "SystemTime::now", "println"];
    let mut findings = Vec::new();
    for file in tree.shipped().filter(|file| file.path.starts_with("crates/core/")) {
        findings.extend(WORDS.iter().flat_map(|word| places(file, word)));
        for at in words(&file.code, "std").filter(|at| !file.in_test(*at)) {
            let Some(rest) = file.code[at..].strip_prefix("std::") else {
                continue;
            };
            // `std::fs`, or `fs` among the first names in `std::{fs::File, net}`.
            let names =
                if rest.starts_with('{') { first_names(&rest[1..closing(rest, 0) - 1]) } else { vec![ident(rest)] };
            let banned = names.into_iter().filter(|name| BANNED.contains(name));
            findings.extend(banned.map(|name| error(file, at, format!("`std::{name}`"))));
        }
    }
    findings
}

/// The first name of each member of a `use` group, without looking into groups inside it.
fn first_names(group: &str) -> Vec<&str> {
    let mut depth = 0;
    let members = group.split(move |letter| {
        depth += i32::from(letter == '{') - i32::from(letter == '}');
        depth == 0 && letter == ','
    });
    members.map(|member| ident(member.trim_start())).collect()
}

fn ident(text: &str) -> &str {
    text.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next().unwrap_or_default()
}

pub(super) fn unsafe_code(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        for at in words(&file.code, "unsafe") {
            if !file.path.starts_with("crates/os/") {
                findings.push(error(file, at, "`unsafe` outside of crates/os"));
                continue;
            }
            let line = file.line(at);
            let above = file.text.lines().take(line).skip(line.saturating_sub(SAFETY_REACH + 1));
            if !above.into_iter().any(|line| line.contains("SAFETY:") || line.contains("# Safety")) {
                findings.push(error(file, at, "`unsafe` without `SAFETY:`"));
            }
        }
    }
    findings
}

pub(super) fn sql(tree: &Tree) -> Vec<Finding> {
    const STATEMENTS: [&str; 5] = ["SELECT ", "INSERT INTO ", "DELETE FROM ", "CREATE TABLE ", "PRAGMA "];
    let mut findings = Vec::new();
    for file in tree.crates().filter(|file| !file.path.starts_with("crates/store/")) {
        for statement in STATEMENTS {
            let found = file.bare.match_indices(statement);
            findings.extend(found.map(|(at, _)| error(file, at, format!("`{}`", statement.trim_end()))));
        }
    }
    findings
}

pub(super) fn status_codes(tree: &Tree) -> Vec<Finding> {
    shipped_words(tree, &["StatusCode"], &["crates/daemon/src/serve"])
}

pub(super) fn environment(tree: &Tree) -> Vec<Finding> {
    let readers = ["env::var", "env::var_os", "env::vars", "env::vars_os"];
    shipped_words(tree, &readers, &["crates/config/src"])
}

pub(super) fn queues(tree: &Tree) -> Vec<Finding> {
    let mut findings = shipped_words(tree, &["unbounded_channel", "UnboundedSender", "UnboundedReceiver"], &[]);
    for file in tree.shipped() {
        for maker in ["mpsc::channel", "broadcast::channel", "sync_channel"] {
            for at in words(&file.code, maker).filter(|at| !file.in_test(*at)) {
                let Some(capacity) = argument(&file.code[at + maker.len()..]) else {
                    continue;
                };
                let name = capacity.rsplit("::").next().unwrap_or_default();
                let constant =
                    !name.is_empty() && name.bytes().all(|byte| matches!(byte, b'A'..=b'Z' | b'0'..=b'9' | b'_'));
                if !constant || name.as_bytes()[0].is_ascii_digit() {
                    findings.push(error(file, at, format!("`{maker}({capacity})`")));
                } else if !is_documented(tree, name) {
                    findings.push(error(file, at, format!("`{name}` has no doc comment")));
                }
            }
        }
    }
    findings
}

/// The argument of the call that begins here, behind a turbofish if there is one. An import has none.
fn argument(code: &str) -> Option<&str> {
    let mut depth = 0;
    let generics = code.strip_prefix("::").map_or(0, |rest| {
        let end = rest.find(|letter| {
            depth += i32::from(letter == '<') - i32::from(letter == '>');
            depth == 0
        });
        "::".len() + end.map_or(0, |end| end + 1)
    });
    let call = &code[generics..];
    call.starts_with('(').then(|| call[1..closing(call, 0) - 1].trim().trim_end_matches(',').trim())
}

/// Whether a constant of that name has a doc comment, attributes in between aside.
fn is_documented(tree: &Tree, name: &str) -> bool {
    let definition = format!("const {name}:");
    tree.crates().any(|file| {
        words(&file.code, definition.trim_end_matches(':')).any(|at| {
            let mut above = file.text[..at].rsplit('\n').skip(1).map(str::trim);
            above.find(|line| !line.starts_with("#[")).is_some_and(|line| line.starts_with("///"))
        })
    })
}

pub(super) fn payloads(tree: &Tree) -> Vec<Finding> {
    const NAMES: [&str; 9] = ["arguments", "body", "bytes", "frame", "line", "message", "params", "payload", "request"];
    let mut findings = Vec::new();
    for file in tree.shipped() {
        // `?name` behind a space, a comma or a bracket is tracing's Debug; the operator stands behind its operand.
        for (at, _) in file.code.match_indices(['?', '%']) {
            let before = file.code[..at].bytes().next_back().unwrap_or(b'\n');
            let sigil = &file.code[at..=at];
            let name = ident(&file.code[at + 1..]);
            let argument =
                matches!(before, b' ' | b',' | b'(') && file.code[..at].trim_end().ends_with(['(', ',', '=']);
            if argument && NAMES.contains(&name) && !file.code[at + 1 + name.len()..].starts_with(['.', '(']) {
                findings.push(error(file, at, format!("`{sigil}{name}`")));
            }
        }
    }
    findings
}
