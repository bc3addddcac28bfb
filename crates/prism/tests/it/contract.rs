//! The contract suite (`yardstick/contract`): what any runtime must do, verb by verb, over a real WebSocket to a real daemon
//! with a real grant. Here the built-in editor owns the folders; a runtime of a plugin is held to the very same cases.

mod case;
mod check;
mod world;

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    io::Write,
    path::PathBuf,
};

use prism_core::policy::Action;

use self::{
    case::{Case, suites},
    world::World,
};
use crate::support::{gate::Gate, plugin::Editor};

/// Much is asked of the gate here, and each case has a grant.
const SETTINGS: &str =
    "[gate]\nrate_limit = 1000\nmax_grants = 500\nmax_requests = 500\nmax_requests_per_agent = 500\n";

/// Where `yardstick/editor/run.sh` installs language servers, below `$YARDSTICK_CACHE`.
const SERVERS: &str = "editor/node_modules/.bin";

/// Which program serves a language.
const PROGRAMS: &[(&str, &str)] = &[("typescript", "tsc"), ("python", "pyright-langserver"), ("rust", "rust-analyzer")];

/// What came of one case.
enum Outcome {
    Kept,
    Skipped(String),
    Broken(String),
}

//
#[test]
fn every_verb_has_a_case_that_works_and_one_that_is_refused() {
    let suites = suites();
    for suite in &suites {
        for case in &suite.cases {
            let action = Action::named(&case.verb).unwrap_or_else(|| panic!("{} has no row", case.verb));
            assert_eq!(action.category.name(), suite.category, "{}", case.name);
            assert!(case.needs().any(|verb| verb == case.verb), "{}: {} is not done", case.verb, case.name);
        }
    }
    for action in Action::all() {
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
    let everything = Action::all().map(|action| action.verb).collect();
    let outcomes = kept_by(&gate, &path, &everything).await;
    report("built-in", &outcomes);
}

// E-02, E-04: the same through the protocol, by an editor that has the folders open and does every verb.
#[tokio::test]
async fn an_editor_behind_the_protocol_keeps_the_contract() {
    let path = path();
    let gate = Gate::start_in(SETTINGS, &environment(&path)).await;
    let everything: BTreeSet<&str> = Action::all().map(|action| action.verb).collect();
    let verbs: Vec<&str> = everything.iter().copied().collect();
    let _editor = Editor::start_in(&gate, "contract", &verbs, &environment(&path)).await;
    let outcomes = kept_by(&gate, &path, &everything).await;
    report("plugin", &outcomes);
}

/// Plays all cases that a runtime with these verbs must keep.
async fn kept_by(gate: &Gate, path: &str, verbs: &BTreeSet<&str>) -> Vec<(Case, Outcome)> {
    let only = env::var("PRISM_CONTRACT_ONLY").ok();
    let mut outcomes = Vec::new();
    for (at, case) in suites().into_iter().flat_map(|suite| suite.cases).enumerate() {
        if only.as_ref().is_some_and(|only| !case.verb.contains(only.as_str()) && !case.name.contains(only.as_str())) {
            continue;
        }
        let lacks = case.needs().find(|verb| !verbs.contains(verb));
        let outcome = match (missing(&case, path), lacks) {
            (_, Some(verb)) => Outcome::Skipped(format!("the runtime did not register {verb}")),
            (Some(program), None) => Outcome::Skipped(format!("no {program} here")),
            (None, None) => {
                let root = PathBuf::from(gate.path(&format!("case-{at}")));
                match World::new(gate, root, &case).await {
                    Ok(mut world) => match world.play(&case).await {
                        Ok(()) => Outcome::Kept,
                        Err(why) => Outcome::Broken(why),
                    },
                    Err(why) => Outcome::Broken(format!("it cannot be played: {why}")),
                }
            }
        };
        outcomes.push((case, outcome));
    }
    outcomes
}

/// Prints a row for each verb, and fails if a case was not kept.
fn report(runtime: &str, outcomes: &[(Case, Outcome)]) {
    let mut rows: BTreeMap<usize, (usize, usize, usize)> = BTreeMap::new();
    let mut lines = Vec::new();
    for (case, outcome) in outcomes {
        let row =
            rows.entry(Action::all().position(|action| action.verb == case.verb).unwrap_or_default()).or_default();
        match outcome {
            Outcome::Kept => row.0 += 1,
            Outcome::Skipped(why) => {
                row.1 += 1;
                lines.push(format!("skipped {}: {}: {why}", case.verb, case.name));
            }
            Outcome::Broken(why) => {
                row.2 += 1;
                lines.push(format!("BROKEN  {}: {}: {why}", case.verb, case.name));
            }
        }
    }
    let mut table = format!("\n| verb | {runtime}: kept | skipped | broken |\n|---|---|---|---|\n");
    for (action, (at, row)) in rows.iter().map(|(at, row)| (Action::all().nth(*at), (at, row))) {
        let verb = action.map_or_else(|| at.to_string(), |action| action.verb.to_owned());
        table += &format!("| {verb} | {} | {} | {} |\n", row.0, row.1, row.2);
    }
    let (kept, skipped, broken) =
        rows.values().fold((0, 0, 0), |sum, row| (sum.0 + row.0, sum.1 + row.1, sum.2 + row.2));
    table +=
        &format!("{}\ncontract: {runtime}: {kept}/{} cases kept, {skipped} skipped\n", lines.join("\n"), kept + broken);
    let _ = std::io::stdout().write_all(table.as_bytes());
    assert_eq!(broken, 0, "{table}");
}

/// A program that a case needs and that is not here.
fn missing(case: &Case, path: &str) -> Option<String> {
    let server = case.server.as_deref().map(|language| {
        let known = PROGRAMS.iter().find(|(one, _)| *one == language);
        known.unwrap_or_else(|| panic!("{}: no program serves {language}", case.name)).1
    });
    let needed = case.tools.iter().map(String::as_str).chain(server);
    let is_there = |program: &str| env::split_paths(path).any(|folder| folder.join(program).is_file());
    needed.into_iter().find(|program| !is_there(program)).map(str::to_owned)
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
