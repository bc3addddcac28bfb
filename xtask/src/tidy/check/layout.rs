//! The manner of the house: attributes, files, manifests, and what must not be committed.

use super::{
    super::{
        Finding, Weight,
        source::{closing, words},
        tree::{File, Tree},
    },
    error, manifest_lines,
};

/// Lines from which a file is looked at for its second subject, and beyond which it must be split.
const LONG: usize = 600;
const TOO_LONG: usize = 700;

pub(super) fn ignored(tree: &Tree) -> Vec<Finding> {
    let ignore = |text: &str| words(text, "ignore").next().is_some();
    let all = tree.rust().flat_map(|file| attributes(file).map(move |(at, attribute)| (file, at, attribute)));
    all.filter(|(_, _, attribute)| ignore(attribute)).map(|(file, at, _)| error(file, at, "`#[ignore]`")).collect()
}

/// The attributes of a file with their offsets: what stands between the brackets.
fn attributes(file: &File) -> impl Iterator<Item = (usize, &str)> {
    file.code.match_indices('#').filter_map(|(at, _)| {
        let rest = &file.code[at + 1..];
        let open = at + 1 + usize::from(rest.starts_with('!'));
        file.code[open..].starts_with('[').then(|| (at, &file.code[open + 1..closing(&file.code, open) - 1]))
    })
}

pub(super) fn allowed(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        for (at, attribute) in attributes(file) {
            if words(attribute, "allow").next().is_some() {
                findings.push(error(file, at, "`allow`"));
            } else if words(attribute, "expect").next().is_some() && words(attribute, "reason").next().is_none() {
                findings.push(error(file, at, "`expect` without a reason"));
            }
        }
    }
    findings
}

pub(super) fn mod_rs(tree: &Tree) -> Vec<Finding> {
    tree.rust().filter(|file| file.path.ends_with("/mod.rs")).map(|file| error(file, 0, "a `mod.rs`")).collect()
}

pub(super) fn forgotten(tree: &Tree) -> Vec<Finding> {
    let is_root = |path: &str| {
        path.ends_with("/main.rs")
            || path.ends_with("/src/lib.rs")
            || path.contains("/src/bin/")
            || path.ends_with("/build.rs")
    };
    let is_named = |file: &&File| {
        let Some((folder, name)) = file.path.rsplit_once('/') else {
            return true;
        };
        let declaration = format!("mod {}", name.trim_end_matches(".rs"));
        let parents = [
            format!("{folder}.rs"),
            format!("{folder}/lib.rs"),
            format!("{folder}/main.rs"),
            format!("{folder}/mod.rs"),
        ];
        let names_it = |parent: &File| words(&parent.code, &declaration).next().is_some();
        parents.iter().filter_map(|path| tree.file(path)).any(names_it)
    };
    let in_tests = |path: &str| path.split_once("/tests/").is_some_and(|(_, rest)| !rest.contains('/'));
    let all = tree
        .rust()
        .filter(|file| !is_root(&file.path) && (file.path.contains("/src/") || file.path.contains("/tests/")));
    // A file directly in tests/ is a binary of its own.
    let all = all.filter(|file| file.path.contains("/src/") || !in_tests(&file.path));
    all.filter(|file| !is_named(file)).map(|file| error(file, 0, "no `mod` names this file")).collect()
}

pub(super) fn test_binaries(tree: &Tree) -> Vec<Finding> {
    let is_binary = |path: &str| {
        path.split_once("/tests/").is_some_and(|(head, rest)| {
            !head.contains("/src")
                && (!rest.contains('/') || rest.matches('/').count() == 1 && rest.ends_with("/main.rs"))
        })
    };
    let extra = |file: &&File| is_binary(&file.path) && !file.path.ends_with("/tests/it/main.rs");
    tree.crates().filter(extra).map(|file| error(file, 0, "a test binary besides `it`")).collect()
}

pub(super) fn long_files(tree: &Tree) -> Vec<Finding> {
    let long = |file: &File| {
        let lines = file.text.lines().count();
        let weight = if lines > TOO_LONG { Weight::Error } else { Weight::Warning };
        (lines > LONG).then(|| Finding { path: file.path.clone(), line: lines, what: format!("{lines} lines"), weight })
    };
    tree.crates().filter_map(long).collect()
}

pub(super) fn manifests(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &tree.files {
        let ours = !file.path.starts_with("yardstick/");
        if file.path.ends_with("Cargo.toml") && ours {
            let git = manifest_lines(file).filter(|(section, _, line)| {
                section.contains("dependencies")
                    && words(line, "git").any(|at| line[at + 3..].trim_start().starts_with('='))
            });
            findings.extend(git.map(|(_, at, _)| error(file, at, "a git dependency")));
            let patch = manifest_lines(file).find(|(section, _, _)| section.starts_with("patch"));
            findings.extend(patch.map(|(_, at, _)| error(file, at, "a `[patch]`")));
            let linted =
                manifest_lines(file).any(|(section, _, line)| section == "lints" && line.starts_with("workspace"));
            let member = file.path.starts_with("crates/") && !file.path.contains("/fuzz/");
            if member && !linted {
                findings.push(error(file, 0, "no `[lints]` with `workspace = true`"));
            }
        }
        if file.path.ends_with("Cargo.lock") {
            let foreign =
                manifest_lines(file).filter(|(_, _, line)| line.starts_with("source = ") && !line.contains(CRATES_IO));
            findings.extend(foreign.map(|(_, at, line)| error(file, at, line.to_owned())));
        }
    }
    findings
}

const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

pub(super) fn machine_paths(tree: &Tree) -> Vec<Finding> {
    // In two halves each, or this file would be its own first finding.
    const PATHS: [&str; 3] = [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/home", "/runner/")];
    const HOSTS: [&str; 8] = [
        concat!("registry.npm", "js.org"),
        concat!("npm.pkg.", "github.com"),
        concat!("pypi.", "org/simple"),
        concat!("files.python", "hosted.org"),
        concat!("index.cra", "tes.io"),
        concat!("static.cra", "tes.io"),
        concat!("art", "ifactory"),
        concat!("jf", "rog"),
    ];
    let mut findings = Vec::new();
    for file in &tree.files {
        for path in PATHS {
            // Behind a letter or a dot it is the middle of a URL or of a relative path.
            let inner = |at: usize| {
                file.text[..at].ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '}' | '*'))
            };
            let found = file.text.match_indices(path).filter(|(at, _)| !inner(*at));
            findings.extend(found.map(|(at, _)| error(file, at, format!("`{path}`"))));
        }
        for host in HOSTS {
            findings.extend(file.text.match_indices(host).map(|(at, _)| error(file, at, format!("`{host}`"))));
        }
    }
    findings
}
