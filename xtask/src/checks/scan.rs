//! Finds the markers: `// checks 12 34`, directly above a test (or above a step of the matrix).

use crate::tidy::{
    source::closing,
    tree::{File, Tree},
};

const MARK: &str = "// checks ";

/// A test and the checks that it asserts.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Marked {
    pub(super) numbers: Vec<u32>,
    /// `crate::path::function`.
    pub(super) test: String,
}

/// What is marked, and what is wrong with markers: one line each, with its place.
pub(super) fn scan(tree: &Tree) -> (Vec<Marked>, Vec<String>) {
    let (mut marked, mut faults) = (Vec::new(), Vec::new());
    for file in &tree.files {
        let name: fn(&File, usize) -> Option<String> = match &file.path {
            path if path.starts_with("crates/") && path.ends_with(".rs") => rust_test,
            path if path.starts_with("yardstick/matrix/") && path.ends_with(".mjs") => step,
            _ => continue,
        };
        for (at, line) in lines(&file.text) {
            let Some(numbers) = marker(line) else { continue };
            let next = at + line.len() + 1;
            match (numbers, name(file, next)) {
                (Some(numbers), Some(test)) => marked.push(Marked { numbers, test }),
                (None, _) => faults.push(fault(file, at, "not of the form `// checks 12 34`")),
                (Some(_), None) => faults.push(fault(file, at, "not directly above a test")),
            }
        }
    }
    (marked, faults)
}

fn fault(file: &File, at: usize, what: &str) -> String {
    format!("{}:{}: {what}", file.path, file.line(at))
}

/// The numbers of a marker; `None` when the line is none, and `Some(None)` when it is one that nobody can read.
#[expect(clippy::option_option, reason = "three cases: no marker, a broken one, a good one")]
fn marker(line: &str) -> Option<Option<Vec<u32>>> {
    let rest = line.trim().strip_prefix(MARK)?;
    if !rest.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    Some(rest.split(' ').map(|word| word.parse().ok()).collect())
}

/// The test whose attribute begins at this offset.
fn rust_test(file: &File, at: usize) -> Option<String> {
    let rest = file.code.get(at..)?;
    let attribute = rest.trim_start_matches(' ');
    if !["#[test]", "#[tokio::test]", "#[tokio::test("].iter().any(|form| attribute.starts_with(form)) {
        return None;
    }
    let after = &rest[rest.find("fn ")? + 3..];
    let function = after.split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
    let mut path = module(&file.path)?;
    path.extend(inline_modules(&file.code, at));
    path.push(function.to_owned());
    Some(path.join("::"))
}

/// The module that a file is: `crates/core/src/mcp/link/tests.rs` is `prism_core::mcp::link::tests`.
fn module(path: &str) -> Option<Vec<String>> {
    let mut parts = path.strip_prefix("crates/")?.strip_suffix(".rs")?.split('/');
    let folder = parts.next()?;
    let mut module = vec![if folder == "prism" { folder.to_owned() } else { format!("prism_{folder}") }];
    let inside = parts.filter(|part| !matches!(*part, "src" | "tests" | "lib" | "main"));
    module.extend(inside.map(str::to_owned));
    // `tests` is left out as a folder beside `src`, not as the module of that name.
    if path.ends_with("/tests.rs") {
        module.push("tests".to_owned());
    }
    Some(module)
}

/// The `mod name { … }` around an offset, from the outside in.
fn inline_modules(code: &str, at: usize) -> Vec<String> {
    let heads = code[..at].match_indices("mod ").filter(|(head, _)| !code[..*head].ends_with(is_word));
    heads
        .filter_map(|(head, word)| {
            let rest = &code[head + word.len()..];
            let name = rest.split(|c: char| !is_word(c)).next()?;
            let open = head + word.len() + name.len() + 1;
            (code.get(open..)?.starts_with('{') && closing(code, open) > at).then(|| name.to_owned())
        })
        .collect()
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The step that begins at this offset: `async name(…) {`.
fn step(file: &File, at: usize) -> Option<String> {
    let line = file.text.get(at..)?.lines().next()?.trim();
    let (name, rest) = line.strip_prefix("async ")?.split_once('(')?;
    let is_step = !name.is_empty() && name.chars().all(is_word) && rest.ends_with('{');
    is_step.then(|| format!("yardstick/matrix::{name}"))
}

/// The lines of a text with their offsets.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split('\n').scan(0, |at, line| {
        let begin = *at;
        *at += line.len() + 1;
        Some((begin, line))
    })
}
