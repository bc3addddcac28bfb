//! `cargo xtask test`: the lanes, in order, and what came of them.

use std::{
    fs,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, bail};

use crate::{Outcome, Place, checks, say::say, tidy, yardstick};

/// How long each fuzz target runs: enough to notice a target that falls over, no substitute for a night.
const FUZZ_SECS: u32 = 5;

/// How often the daemon is killed under calls, and under signals.
const KILLS: &str = "50";
const KILLS_UNDER_SIGNALS: &str = "100";

struct Lane {
    name: &'static str,
    about: &'static str,
    needs: Needs,
    run: fn(&Place) -> anyhow::Result<Verdict>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Needs {
    Nothing,
    /// The release binary, and so the lane that builds it.
    Release,
}

/// What a lane came to when nothing was wrong. What was wrong is an error.
#[derive(Debug)]
pub(crate) enum Verdict {
    Passed,
    Skipped(String),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Passed,
    Failed,
    Skipped,
}

struct Row {
    lane: &'static str,
    mark: Mark,
    took: Duration,
    note: String,
}

const LANES: &[Lane] = &[
    lane("fmt", "cargo fmt --all --check", fmt),
    lane("tidy", "the invariants, read off the source", tidy::lane),
    lane("checks", "what must hold between all revisions, and the tests that say so", checks::lane),
    lane("lint", "cargo clippy, warnings are errors", lint),
    lane("unit", "every test of the workspace", unit),
    lane("fuzz", "each fuzz target for a few seconds", fuzz),
    lane(RELEASE, "the release binaries", release),
    yard("survival", "the daemon killed 50 times under load, and nothing lost or grown", survival),
    yard("mesh-survival", "the daemon killed 100 times under signals, each drained exactly once", mesh_survival),
    yard("crosstalk", "many sessions with the same ids on one child", yardstick::crosstalk),
    yard("conformance", "the official suite, both ways", yardstick::conformance),
    yard("clients", "real clients on a server of either era", yardstick::clients),
    yard("matrix", "every revision on every kind of server", yardstick::matrix),
    yard("servers", "real servers behind one hub, one of them killed", yardstick::servers),
    yard("newcomer", "from an empty home to a call, as a new user types it", yardstick::newcomer),
    yard("real-clients", "real agents that prism install has set up (PRISM_REAL_CLIENTS=1)", yardstick::real_clients),
];

const RELEASE: &str = "release";

const fn lane(name: &'static str, about: &'static str, run: fn(&Place) -> anyhow::Result<Verdict>) -> Lane {
    Lane { name, about, needs: Needs::Nothing, run }
}

const fn yard(name: &'static str, about: &'static str, run: fn(&Place) -> anyhow::Result<Verdict>) -> Lane {
    Lane { name, about, needs: Needs::Release, run }
}

/// Runs the named lanes, or all of them. One that fails does not stop the others, but nothing runs on a
/// binary that could not be built.
pub(crate) fn run(place: &Place, names: &[String]) -> anyhow::Result<Outcome> {
    let lanes = chosen(names)?;
    let mut rows: Vec<Row> = Vec::new();
    for lane in lanes {
        say(format_args!("\n=== {}: {} ===", lane.name, lane.about));
        let begun = Instant::now();
        let unbuilt = rows.iter().any(|row| row.lane == RELEASE && row.mark == Mark::Failed);
        let verdict = match lane.needs {
            Needs::Release if unbuilt => Ok(Verdict::Skipped("the release build failed".into())),
            Needs::Release | Needs::Nothing => (lane.run)(place),
        };
        let (mark, note) = match verdict {
            Ok(Verdict::Passed) => (Mark::Passed, String::new()),
            Ok(Verdict::Skipped(why)) => (Mark::Skipped, why),
            Err(error) => (Mark::Failed, format!("{error:#}")),
        };
        let row = Row { lane: lane.name, mark, took: begun.elapsed(), note };
        say(format_args!("--- {row}"));
        rows.push(row);
    }
    say("");
    rows.iter().for_each(say);
    let count = |mark| rows.iter().filter(|row| row.mark == mark).count();
    let (passed, failed, skipped) = (count(Mark::Passed), count(Mark::Failed), count(Mark::Skipped));
    say(format_args!("{passed} passed, {failed} failed, {skipped} skipped"));
    Ok(if failed == 0 { Outcome::Good } else { Outcome::Bad })
}

/// The named lanes in their own order, with the build that they need.
fn chosen(names: &[String]) -> anyhow::Result<Vec<&'static Lane>> {
    for name in names {
        if !LANES.iter().any(|lane| lane.name == name) {
            let known: Vec<&str> = LANES.iter().map(|lane| lane.name).collect();
            bail!("unknown lane {name:?}; there are {}", known.join(", "));
        }
    }
    let named = |lane: &Lane| names.is_empty() || names.iter().any(|name| name == lane.name);
    let build = LANES.iter().any(|lane| lane.needs == Needs::Release && named(lane));
    Ok(LANES.iter().filter(|lane| named(lane) || (build && lane.name == RELEASE)).collect())
}

fn fmt(place: &Place) -> anyhow::Result<Verdict> {
    component(place, "fmt", "rustfmt")?;
    pass(place.cargo(&["fmt", "--all", "--check"]), "run `cargo fmt --all`")
}

fn lint(place: &Place) -> anyhow::Result<Verdict> {
    component(place, "clippy", "clippy")?;
    pass(place.cargo(&["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"]), "see above")
}

fn unit(place: &Place) -> anyhow::Result<Verdict> {
    if !succeeds(place.cargo(&["nextest", "--version"])) {
        return pass(place.cargo(&["test", "--workspace", "--locked", "--no-fail-fast"]), "see above");
    }
    pass(place.cargo(&["nextest", "run", "--workspace", "--locked", "--no-fail-fast"]), "see above")?;
    // nextest does not run the examples in doc comments.
    pass(place.cargo(&["test", "--doc", "--workspace", "--locked", "--quiet"]), "an example in a doc comment")
}

fn fuzz(place: &Place) -> anyhow::Result<Verdict> {
    let folder = place.root.join("crates/core/fuzz");
    let Ok(entries) = fs::read_dir(folder.join("fuzz_targets")) else {
        return Ok(Verdict::Skipped("no crates/core/fuzz/fuzz_targets in this tree".into()));
    };
    let mut compiler = Command::new("c++");
    compiler.arg("--version");
    if !succeeds(compiler) {
        return Ok(Verdict::Skipped("install a C++ compiler (g++ or clang): libFuzzer is built with it".into()));
    }
    if !succeeds(place.cargo(&["fuzz", "--version"])) {
        say(format_args!("installing cargo-fuzz: cargo install cargo-fuzz --locked"));
        if !succeeds(place.cargo(&["install", "cargo-fuzz", "--locked", "--quiet"])) {
            return Ok(Verdict::Skipped("cannot install cargo-fuzz: cargo install cargo-fuzz --locked".into()));
        }
    }
    // Without a sanitizer a stable toolchain will do, and in a crate without `unsafe` one finds nothing.
    let run = |target: &str| {
        let limit = format!("-max_total_time={FUZZ_SECS}");
        let mut command = place.cargo(&["fuzz", "run", "--sanitizer", "none", "--fuzz-dir", ".", target, "--", &limit]);
        command.current_dir(&folder).env("CARGO_TARGET_DIR", place.target.join("fuzz"));
        command
    };
    let mut targets: Vec<String> = entries
        .flatten()
        .filter_map(|entry| Some(entry.file_name().to_str()?.strip_suffix(".rs")?.to_owned()))
        .collect();
    targets.sort();
    for target in &targets {
        pass(run(target), target)?;
    }
    Ok(Verdict::Passed)
}

fn release(place: &Place) -> anyhow::Result<Verdict> {
    pass(place.cargo(&["build", "--release", "--locked", "-p", "prism", "-p", "perf"]), "see above")
}

/// A test of the workspace, which kills a few times only, on the binary that people use.
fn survival(place: &Place) -> anyhow::Result<Verdict> {
    let test = ["test", "--locked", "-p", "prism", "--test", "it", "--", "--nocapture", "cycles::"];
    let mut command = place.cargo(&test);
    command.env("PRISM_CYCLES", KILLS).env("PRISM_TESTED_BINARY", place.release("prism"));
    pass(command, "see above")
}

/// The same of signals. It prints what it counted.
fn mesh_survival(place: &Place) -> anyhow::Result<Verdict> {
    let test = ["test", "--locked", "-p", "prism", "--test", "it", "--", "--nocapture", "mesh_survival::"];
    let mut command = place.cargo(&test);
    command.env("PRISM_KILLS", KILLS_UNDER_SIGNALS).env("PRISM_TESTED_BINARY", place.release("prism"));
    pass(command, "see above")
}

/// Installs a rustup component that is not there, where there is a rustup.
fn component(place: &Place, subcommand: &str, name: &str) -> anyhow::Result<()> {
    if succeeds(place.cargo(&[subcommand, "--version"])) {
        return Ok(());
    }
    say(format_args!("installing {name}: rustup component add {name}"));
    let done = Command::new("rustup").args(["component", "add", name]).status();
    if !done.is_ok_and(|status| status.success()) {
        bail!("needs {name}: rustup component add {name}");
    }
    Ok(())
}

/// Runs a command in sight of the person, who may end it with Ctrl-C like anything else.
fn pass(mut command: Command, hint: &str) -> anyhow::Result<Verdict> {
    let status = command
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("cannot start {}", command.get_program().display()))?;
    if !status.success() {
        bail!("{status}: {hint}");
    }
    Ok(Verdict::Passed)
}

fn succeeds(mut command: Command) -> bool {
    command.stdin(Stdio::null()).output().is_ok_and(|output| output.status.success())
}

impl std::fmt::Display for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mark = match self.mark {
            Mark::Passed => "passed",
            Mark::Failed => "FAILED",
            Mark::Skipped => "SKIPPED",
        };
        let line = format!("{:<13} {mark:<8} {:>6.1} s  {}", self.lane, self.took.as_secs_f64(), self.note);
        f.write_str(line.trim_end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(of: &[&str]) -> Vec<&'static str> {
        let of: Vec<String> = of.iter().map(|&name| name.to_owned()).collect();
        chosen(&of).unwrap().iter().map(|lane| lane.name).collect()
    }

    #[test]
    fn without_a_name_every_lane_runs() {
        assert_eq!(names(&[]).len(), LANES.len());
    }

    #[test]
    fn a_yardstick_brings_its_build_and_lanes_keep_their_order() {
        assert_eq!(names(&["clients", "fmt"]), ["fmt", "release", "clients"]);
        assert_eq!(names(&["unit"]), ["unit"]);
    }

    #[test]
    fn an_unknown_lane_is_refused_with_the_known_ones() {
        let error = chosen(&["speed".into()]).err().unwrap().to_string();
        assert!(error.contains("speed") && error.contains("crosstalk"), "{error}");
    }
}
