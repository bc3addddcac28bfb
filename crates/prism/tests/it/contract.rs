//! The contract suite (`yardstick/contract`): what any runtime must do, verb by verb, over a real WebSocket to a real daemon
//! with a real grant: the built-in editor, one behind the protocol, and real editors if there are any (`PRISM_EDITOR`). What
//! came of it is in `target/contract`.

mod case;
mod check;
mod real;
mod tally;
mod world;

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    ffi::OsString,
    fs,
    path::PathBuf,
};

use prism_core::policy::VerbSpec;
use prism_editor::usual_servers;

use self::{
    case::{Case, suites},
    tally::{Outcome, Tally},
    world::{Stopped, World},
};
use crate::support::{gate::Gate, plugin::Editor, skipped};

/// Much is asked of the gate here, and each case has a grant.
const SETTINGS: &str =
    "[gate]\nrate_limit = 1000\nmax_grants = 500\nmax_requests = 500\nmax_requests_per_agent = 500\n";

/// Where `yardstick/editor/run.sh` installs language servers, below `$YARDSTICK_CACHE`.
const SERVERS: &str = "editor/node_modules/.bin";

/// Which program serves a language.
const PROGRAMS: &[(&str, &str)] = &[("typescript", "tsc"), ("python", "pyright-langserver"), ("rust", "rust-analyzer")];

//
#[test]
fn every_verb_has_a_case_that_works_and_one_that_is_refused() {
    let suites = suites();
    for suite in &suites {
        for case in &suite.cases {
            let action = VerbSpec::named(&case.verb).unwrap_or_else(|| panic!("{} has no row", case.verb));
            assert_eq!(action.category.name(), suite.category, "{}", case.name);
            assert!(case.needs().any(|verb| verb == case.verb), "{}: {} is not done", case.verb, case.name);
        }
    }
    for action in VerbSpec::all() {
        let cases: Vec<&Case> =
            suites.iter().flat_map(|suite| &suite.cases).filter(|case| case.verb == action.verb).collect();
        assert!(cases.iter().any(|case| !case.is_refused()), "{}: no case that works", action.verb);
        assert!(cases.iter().any(|case| case.is_refused()), "{}: no case that is refused", action.verb);
    }
}

// E-04
#[tokio::test]
async fn the_built_in_editor_keeps_the_contract() {
    let path = path();
    let gate = Gate::start_in(SETTINGS, &environment(&path)).await;
    let everything = VerbSpec::all().map(|action| action.verb).collect();
    played(&gate, &path, &everything, "built-in").await.report();
}

// E-02, E-04: the same through the protocol, by an editor that has the folders open and does every verb that editors are asked for.
#[tokio::test]
async fn an_editor_behind_the_protocol_keeps_the_contract() {
    let path = path();
    let gate = Gate::start_in(SETTINGS, &environment(&path)).await;
    let verbs: BTreeSet<&str> =
        VerbSpec::all().filter(|action| !action.runs_programs()).map(|action| action.verb).collect();
    let _editor =
        Editor::start_in(&gate, "contract", &verbs.iter().copied().collect::<Vec<_>>(), &environment(&path)).await;
    played(&gate, &path, &verbs, "plugin").await.report();
}

// E-01, E-02, E-04: a real one, with its window. `cargo xtask test vscode` and `neovim` say which.
#[tokio::test]
async fn a_real_editor_keeps_the_contract() {
    let Some(told) = real::told() else { return };
    let path = path();
    let gate = Gate::start_in(SETTINGS, &environment(&path)).await;
    let editor = real::Editor::start(&gate, &told, &path).await;
    let verbs = editor.verbs(&gate).await;
    let tally = played(&gate, &path, &verbs, &told.runtime).await;
    editor.end().await;
    tally.report();
}

/// Plays all cases in folders that a runtime with these verbs has open.
async fn played(gate: &Gate, path: &str, verbs: &BTreeSet<&'static str>, runtime: &str) -> Tally {
    let only = env::var("PRISM_CONTRACT_ONLY").ok();
    let mut tally = Tally::new(runtime);
    for (at, case) in suites().into_iter().flat_map(|suite| suite.cases).enumerate() {
        if only.as_ref().is_some_and(|only| !case.verb.contains(only.as_str()) && !case.name.contains(only.as_str())) {
            continue;
        }
        let is_its_own = verbs.contains(case.verb.as_str());
        let outcome = match missing(&case, path, runtime) {
            Some(why) => {
                skipped(&format!("contract: {}: {}", case.verb, case.name), &why);
                Outcome::Skipped(why)
            }
            None => {
                let root = PathBuf::from(gate.path(&format!("case-{at}")));
                let came_to = match World::new(gate, root, verbs, &case).await {
                    Ok(mut world) => world.play(&case).await,
                    Err(why) => Err(Stopped::Broken(format!("it cannot be played: {why}"))),
                };
                match came_to {
                    Ok(()) if is_its_own => Outcome::Kept,
                    Ok(()) => Outcome::KeptBesideIt,
                    Err(Stopped::Lacks(verb)) => Outcome::Skipped(format!("the runtime did not register {verb}")),
                    Err(Stopped::Broken(why)) => Outcome::Broken(why),
                }
            }
        };
        tally.add(&case, outcome);
    }
    tally
}

/// A program that a case needs and that is not here, or cannot work, and what to type. VS Code brings the server of its
/// own language along.
fn missing(case: &Case, path: &str, runtime: &str) -> Option<String> {
    let brings = |language: &str| runtime.starts_with("vscode") && language == "typescript";
    let server = case.server.as_deref().filter(|language| !brings(language)).map(|language| {
        let known = PROGRAMS.iter().find(|(one, _)| *one == language);
        known.unwrap_or_else(|| panic!("{}: no program serves {language}", case.name)).1
    });
    let needed = case.tools.iter().map(String::as_str).chain(server);
    needed.into_iter().find_map(|program| {
        if let Some(usual) = usual_servers().find(|usual| usual.program == program) {
            let mut env: BTreeMap<OsString, OsString> = env::vars_os().collect();
            env.insert("PATH".into(), path.into());
            return usual.find(&env).err();
        }
        let is_there = env::split_paths(path).any(|folder| folder.join(program).is_file());
        (!is_there).then(|| format!("no {program} here; install it"))
    })
}

/// The search path, with the language servers that the yardstick has installed.
fn path() -> String {
    let home = env::var("HOME").unwrap_or_default();
    let cache = env::var("YARDSTICK_CACHE").unwrap_or_else(|_| format!("{home}/.cache/yardstick"));
    let servers = PathBuf::from(cache).join(SERVERS);
    let path = env::var("PATH").unwrap_or_default();
    if fs::exists(&servers).unwrap_or(false) { format!("{}:{path}", servers.display()) } else { path }
}

/// Toolchains are found over these, as the daemon of a test has a home of its own.
fn environment(path: &str) -> Vec<(&'static str, String)> {
    let home = env::var("HOME").unwrap_or_default();
    let at = |name: &str, usual: &str| env::var(name).unwrap_or_else(|_| format!("{home}/{usual}"));
    vec![
        ("PATH", path.to_owned()),
        ("RUSTUP_HOME", at("RUSTUP_HOME", ".rustup")),
        ("CARGO_HOME", at("CARGO_HOME", ".cargo")),
    ]
}
