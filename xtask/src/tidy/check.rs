//! The checks, one per rule. Each says in `rule` what must hold and what to do instead.

mod cited;
mod code;
mod house;
mod layout;

use super::{
    Check, Finding, Weight,
    source::words,
    tree::{File, Tree},
};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "core-depends-on-nothing",
        rule: "core depends on no runtime, filesystem, socket, clock or randomness (invariant 1). Take time and \
               entropy as arguments, and do I/O in crates/bridge, crates/daemon or crates/os",
        find: code::core_dependencies,
    },
    Check {
        name: "core-does-no-io",
        rule: "core does no I/O and reads no clock (invariant 1). Return an action and let the crate that drives it do it",
        find: code::core_io,
    },
    Check {
        name: "crates-keep-their-floor",
        rule: "a crate names only those below it that ARCHITECTURE.md gives it. Take what you need of another as a trait of \
               your own, and let the daemon fill it in",
        find: house::floors,
    },
    Check {
        name: "rooms-have-no-knots",
        rule: "the top-level modules of a crate form no cycle. Move what both need below both",
        find: house::cycles,
    },
    Check {
        name: "one-way-in",
        rule: "calls are checked in serve/inbound.rs and nowhere else. Go through `Inbound`",
        find: house::one_way_in,
    },
    Check {
        name: "unsafe-is-in-os",
        rule: "only crates/os says `unsafe`, and each one carries a `SAFETY:` comment (invariant 2). Move it there, or \
               write down why it is sound",
        find: code::unsafe_code,
    },
    Check {
        name: "sql-is-in-store",
        rule: "only crates/store writes SQL (invariant 3). Add a function there",
        find: code::sql,
    },
    Check {
        name: "status-is-in-serve",
        rule: "only serve knows HTTP status codes (invariant 3). Return an error and let serve/fault.rs choose",
        find: code::status_codes,
    },
    Check {
        name: "environment-is-in-config",
        rule: "only config reads environment variables (invariant 3). Read it there once and pass the value on",
        find: code::environment,
    },
    Check {
        name: "queues-are-bounded",
        rule: "every queue is bounded by a named constant whose doc comment says what happens when it is full \
               (invariant 5)",
        find: code::queues,
    },
    Check {
        name: "payloads-are-not-traced",
        rule: "payloads never reach a trace (invariant 7). Log ids, names, sizes and times",
        find: code::payloads,
    },
    Check {
        name: "cited-numbers-exist",
        rule: "a requirement or a finding that is cited is a row of docs/requirements.md or docs/findings.md, once. Write \
               the row, or cite the one that is meant",
        find: cited::numbers,
    },
    Check {
        name: "cited-sections-exist",
        rule: "a cited section, invariant or check is in docs/mcp-eras.md, docs/style.md, ARCHITECTURE.md or \
               xtask/src/checks/list.txt. Cite the one that is meant",
        find: cited::sections,
    },
    Check {
        name: "cited-pages-exist",
        rule: "a page that is named or linked to is in the repository, with that heading. Mend the link",
        find: cited::pages,
    },
    Check {
        name: "comments-outlive-the-work",
        rule: "a comment says what holds, not in which piece of work it came about (style 6). Cite a requirement, or say it",
        find: cited::process,
    },
    Check {
        name: "api-does-nothing",
        rule: "crates/api says what our processes tell each other and does nothing: it depends on core and serde's family",
        find: code::api_dependencies,
    },
    Check {
        name: "answers-are-typed",
        rule: "the command line, the console and the gate read JSON by its type, so that what is renamed on one side does \
               not compile on the other. Add the member in crates/api, or, of other programs' JSON, in client/shapes.rs",
        find: code::lookups,
    },
    Check {
        name: "no-ignored-tests",
        rule: "a test runs or does not exist. Make it fast, or delete it",
        find: layout::ignored,
    },
    Check {
        name: "expect-not-allow",
        rule: "write `#[expect(lint, reason = \"...\")]`, which complains when it is no longer needed",
        find: layout::allowed,
    },
    Check { name: "no-mod-rs", rule: "modules are `foo.rs` plus `foo/` for children. Rename it", find: layout::mod_rs },
    Check {
        name: "no-forgotten-file",
        rule: "a file that no `mod` names is not compiled, and its tests do not run. Name it or delete it",
        find: layout::forgotten,
    },
    Check {
        name: "one-test-binary",
        rule: "one test binary per crate, because linking is what costs. Make it a module of tests/it/main.rs",
        find: layout::test_binaries,
    },
    Check {
        name: "files-are-short",
        rule: "files have 100 to 400 lines; from 600 look for the second subject, 700 is too many. Split by subject",
        find: layout::long_files,
    },
    Check {
        name: "manifests",
        rule: "crates come from crates.io and share the workspace's lints, so that a fresh clone builds anywhere",
        find: layout::manifests,
    },
    Check {
        name: "no-machine-paths",
        rule: "the repository works in any folder of any machine, with whatever registry is configured there. Use a \
               relative path, or leave the host to the tool",
        find: layout::machine_paths,
    },
];

// === helpers ===

fn error(file: &File, at: usize, what: impl Into<String>) -> Finding {
    Finding { path: file.path.clone(), line: file.line(at), what: what.into(), weight: Weight::Error }
}

/// Every place in shipped code, outside of `but_in`, where one of the words stands.
fn shipped_words(tree: &Tree, sought: &[&str], but_in: &[&str]) -> Vec<Finding> {
    let outside = |file: &&File| !but_in.iter().any(|module| file.belongs_to(module));
    tree.shipped().filter(outside).flat_map(|file| sought.iter().flat_map(move |word| places(file, word))).collect()
}

fn places<'a>(file: &'a File, word: &'a str) -> impl Iterator<Item = Finding> + 'a {
    words(&file.code, word).filter(|at| !file.in_test(*at)).map(move |at| error(file, at, format!("`{word}`")))
}

/// The lines of a manifest with their section and offset, without comments.
fn manifest_lines(file: &File) -> impl Iterator<Item = (&str, usize, &str)> {
    let mut section = "";
    let mut at = 0;
    file.text.split_inclusive('\n').map(move |line| {
        let start = at;
        at += line.len();
        let line = line.split('#').next().unwrap_or_default().trim();
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']');
        }
        (section, start, line)
    })
}
