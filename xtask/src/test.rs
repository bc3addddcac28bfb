//! `cargo xtask test`: the lanes, in order, and what came of them.

mod apart;

use std::{
    collections::BTreeSet,
    fs,
    io::IsTerminal,
    panic::resume_unwind,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, bail, ensure};

use crate::{Outcome, Place, checks, extension, fuzz, say::say, supply, tidy, yardstick};

/// How often the daemon is killed under calls, and under signals.
const KILLS: &str = "50";
const KILLS_UNDER_SIGNALS: &str = "100";
const KILLS_UNDER_SAVES: &str = "100";

/// Lanes that run side by side: as many as the smallest machine that this is meant for has cores.
const AT_ONCE: usize = 2;

/// What a terminal prints that nobody reads.
const PRINTED_MB: &str = "1024";

struct Lane {
    name: &'static str,
    about: &'static str,
    needs: Needs,
    beside: Beside,
    part: Part,
    run: fn(&Place) -> anyhow::Result<Verdict>,
}

/// What may run at the same time as a lane.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Beside {
    /// It kills, counts or measures, and is not to be disturbed.
    Nothing,
    /// It waits much of its time, or builds where no other lane does.
    Another,
}

/// Of which runs a lane is a part, beside those that name it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Whole,
    /// The developer's loop, too.
    Both,
    /// That loop only: the whole has its tests in another lane.
    Quick,
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
    /// With something that whoever reads the summary should know.
    PassedBut(String),
    Skipped(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    lane("fmt", "cargo fmt --all --check", fmt).quick(),
    lane("tidy", "the invariants, read off the source", tidy::lane).quick(),
    lane("checks", "what must hold between all revisions, and the tests that say so", checks::lane).quick(),
    lane(RELEASE, "the release binaries", release).beside(),
    lane("lint", "cargo clippy, warnings are errors", lint).beside().quick(),
    lane("core", "the tests of what needs no process, no socket and no disk", core).only_quick(),
    lane("fuzz", "each fuzz target for a few seconds (PRISM_FUZZ_SECS)", fuzz::lane).beside(),
    lane(
        "supply",
        "licences, duplicates and sources of what is compiled in, and each unsafe with its reason",
        supply::lane,
    )
    .beside(),
    lane("extension", "the extension of VS Code: types, tests, and that what is built is committed", extension::lane)
        .beside(),
    lane(UNIT, "every test of the workspace", unit),
    yard("survival", "the daemon killed 50 times under load, and nothing lost or grown", survival),
    yard("mesh-survival", "the daemon killed 100 times under signals, each drained exactly once", mesh_survival),
    yard("attacks", "what attacks once found, tried again by an ordinary user", attacks),
    yard(
        "editor-ends",
        "killed 100 times while it saves, a terminal that prints 1 GB, a build that forks",
        editor_ends,
    ),
    yard(
        "editor",
        "the checklist of a sub-agent's life in Rust, Python and TypeScript, and the contract, with real servers",
        editor,
    )
    .beside(),
    yard("work", "builds, tests, browsers and language servers in the sandbox, as people have them", yardstick::work)
        .beside(),
    yard("crosstalk", "many sessions with the same ids on one child", yardstick::crosstalk).beside(),
    yard("conformance", "the official suite, both ways", yardstick::conformance).beside(),
    yard("clients", "real clients on a server of either era", yardstick::clients).beside(),
    yard("sdks", "clients on the SDKs that people use, by every way, as whole as directly", yardstick::sdks),
    yard("matrix", "every revision on every kind of server", yardstick::matrix).beside(),
    yard("servers", "real servers behind one hub, one of them killed", yardstick::servers).beside(),
    yard("newcomer", "from an empty home to a call, as a new user types it", yardstick::newcomer).beside(),
    yard("console", "a person at a browser who decides, and an agent that waits", yardstick::console).beside(),
    yard("vscode", "a person and an agent in real windows of two VS Codes (PRISM_SKIP_VSCODE=1)", vscode),
    yard("vscode-contract", "the contract, in real windows of two VS Codes (PRISM_SKIP_VSCODE=1)", vscode_contract),
    yard("neovim", "the plugin in a real Neovim, and the contract", neovim),
    yard(
        "real-clients",
        "real agents that prism install has set up (PRISM_REAL_CLIENTS=1: fetches 1.2 GB)",
        yardstick::real_clients,
    ),
];

const RELEASE: &str = "release";
const UNIT: &str = "unit";

/// In the place of lanes: those of the developer's loop, warm in a minute or two.
pub(crate) const QUICK: &str = "quick";

/// Whose tests are that quick. Built by themselves they have other features than with all others, and so a few small crates are
/// there twice; all others need not be compiled.
const QUICK_CRATES: [&str; 2] = ["prism-core", "xtask"];

const fn lane(name: &'static str, about: &'static str, run: fn(&Place) -> anyhow::Result<Verdict>) -> Lane {
    Lane { name, about, needs: Needs::Nothing, beside: Beside::Nothing, part: Part::Whole, run }
}

const fn yard(name: &'static str, about: &'static str, run: fn(&Place) -> anyhow::Result<Verdict>) -> Lane {
    Lane { name, about, needs: Needs::Release, beside: Beside::Nothing, part: Part::Whole, run }
}

/// Runs the named lanes, or all of them. One that fails does not stop the others, but nothing runs on a
/// binary that could not be built. Many lanes that nobody watches are told in a line each, and some of them run side by side.
pub(crate) fn run(place: &Place, names: &[String]) -> anyhow::Result<Outcome> {
    let lanes = chosen(names)?;
    let is_quiet = names.len() != 1 && !std::io::stdout().is_terminal();
    let mut rows: Vec<Row> = Vec::new();
    for group in lanes.chunk_by(|one, next| is_quiet && one.goes_with(next)) {
        let unbuilt = rows.iter().any(|row| row.lane == RELEASE && row.mark == Mark::Failed);
        rows.extend(side_by_side(group, |lane| {
            let row = Row::of(lane, || match lane.needs {
                Needs::Release if unbuilt => Ok(Verdict::Skipped("the release build failed".into())),
                Needs::Release | Needs::Nothing if is_quiet => apart::run(place, lane),
                Needs::Release | Needs::Nothing => lane.aloud(place),
            });
            say(if is_quiet { row.to_string() } else { format!("--- {row}") });
            row
        }));
    }
    let failed = || rows.iter().filter(|row| row.mark == Mark::Failed);
    if is_quiet {
        failed().for_each(|row| apart::explain(place, row.lane));
    }
    say("");
    if rows.iter().any(|row| row.lane == UNIT) {
        skipped(&skipped_tests(place)).iter().for_each(|test| say(format_args!("skipped: {test}")));
    }
    rows.iter().filter(|row| !is_quiet || row.mark == Mark::Failed).for_each(say);
    let count = |mark| rows.iter().filter(|row| row.mark == mark).count();
    let (passed, failed, skipped) = (count(Mark::Passed), count(Mark::Failed), count(Mark::Skipped));
    say(format_args!("{passed} passed, {failed} failed, {skipped} skipped"));
    Ok(if failed == 0 { Outcome::Good } else { Outcome::Bad })
}

/// Runs lanes in their order, `AT_ONCE` of them at a time.
fn side_by_side(lanes: &[&'static Lane], run: impl Fn(&Lane) -> Row + Sync) -> Vec<Row> {
    let next = AtomicUsize::new(0);
    let work = || {
        let take = || lanes.get(next.fetch_add(1, Ordering::Relaxed));
        std::iter::from_fn(take).map(|lane| run(lane)).collect::<Vec<Row>>()
    };
    thread::scope(|scope| {
        let others: Vec<_> = (1..AT_ONCE.min(lanes.len())).map(|_| scope.spawn(work)).collect();
        let mut rows = work();
        rows.extend(others.into_iter().flat_map(|other| other.join().unwrap_or_else(|panic| resume_unwind(panic))));
        rows
    })
}

/// The lanes, as they are typed, with what each is about.
pub(crate) fn lanes() -> impl Iterator<Item = (&'static str, &'static str)> {
    LANES.iter().map(|lane| (lane.name, lane.about))
}

/// The lanes of the developer's loop.
pub(crate) fn quick() -> impl Iterator<Item = &'static str> {
    LANES.iter().filter(|lane| lane.part != Part::Whole).map(|lane| lane.name)
}

/// Runs one lane, and nothing that it needs.
pub(crate) fn run_one(place: &Place, name: &str) -> anyhow::Result<Outcome> {
    let lane = LANES.iter().find(|lane| lane.name == name).with_context(|| format!("unknown lane {name:?}"))?;
    let row = Row::of(lane, || lane.aloud(place));
    say(format_args!("--- {row}"));
    Ok(if row.mark == Mark::Failed { Outcome::Bad } else { Outcome::Good })
}

/// The named lanes in their own order, with the build that they need.
fn chosen(names: &[String]) -> anyhow::Result<Vec<&'static Lane>> {
    for name in names.iter().filter(|name| *name != QUICK) {
        if !LANES.iter().any(|lane| lane.name == name) {
            let known: Vec<&str> = LANES.iter().map(|lane| lane.name).collect();
            bail!("unknown lane {name:?}; there are {}, and {QUICK}", known.join(", "));
        }
    }
    let is_quick = names.iter().any(|name| name == QUICK);
    let named = |lane: &Lane| match lane.part {
        Part::Whole | Part::Both if names.is_empty() => true,
        Part::Both | Part::Quick if is_quick => true,
        Part::Whole | Part::Both | Part::Quick => names.iter().any(|name| name == lane.name),
    };
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

fn core(place: &Place) -> anyhow::Result<Verdict> {
    let crates = QUICK_CRATES.iter().flat_map(|name| ["-p", name]);
    let words: &[&str] = match succeeds(place.cargo(&["nextest", "--version"])) {
        true => &["nextest", "run", "--locked", "--no-fail-fast", "--status-level", "slow"],
        false => &["test", "--locked", "--no-fail-fast", "--quiet"],
    };
    pass(place.cargo(&words.iter().copied().chain(crates).collect::<Vec<_>>()), "see above")
}

fn unit(place: &Place) -> anyhow::Result<Verdict> {
    yardstick::prepare(place).iter().for_each(|missing| say(format_args!("missing: {missing}")));
    let list = skipped_tests(place);
    let _ = fs::remove_file(&list);
    fs::create_dir_all(place.target.join("xtask")).context("cannot make a folder for the list of skipped tests")?;
    let run = |arguments: &[&str], hint| {
        let mut command = place.cargo(arguments);
        command.env("PRISM_TESTS_SKIPPED", &list);
        pass(command, hint)
    };
    if !succeeds(place.cargo(&["nextest", "--version"])) {
        run(&["test", "--workspace", "--locked", "--no-fail-fast"], "see above")?;
    } else {
        let words = ["nextest", "run", "--workspace", "--locked", "--no-fail-fast", "--status-level", "slow"];
        run(&words, "see above")?;
        // nextest does not run the examples in doc comments.
        run(&["test", "--doc", "--workspace", "--locked", "--quiet"], "an example in a doc comment")?;
    }
    Ok(match skipped(&list).len() {
        0 => Verdict::Passed,
        count => Verdict::PassedBut(format!("{count} skipped, named below")),
    })
}

/// Where tests write down that they were skipped, and what to install.
fn skipped_tests(place: &Place) -> PathBuf {
    place.target.join("xtask/skipped-tests")
}

fn skipped(list: &Path) -> BTreeSet<String> {
    fs::read_to_string(list).unwrap_or_default().lines().map(str::to_owned).collect()
}

/// With the same features as `cargo run --release` has them, so that what a person has compiled is compiled.
const RELEASED: [&str; 4] = ["-p", "prism", "-p", "perf"];

fn release(place: &Place) -> anyhow::Result<Verdict> {
    pass(place.cargo(&[&["build", "--release", "--locked"], &RELEASED[..]].concat()), "see above")
}

/// A test of the workspace, which kills a few times only, on the binary that people use.
fn survival(place: &Place) -> anyhow::Result<Verdict> {
    let mut command = integration(place, "cycles::");
    command.env("PRISM_CYCLES", KILLS).env("PRISM_TESTED_BINARY", place.release("prism"));
    pass(command, "see above")
}

/// The same of signals. It prints what it counted.
fn mesh_survival(place: &Place) -> anyhow::Result<Verdict> {
    let mut command = integration(place, "mesh_survival::");
    command.env("PRISM_KILLS", KILLS_UNDER_SIGNALS).env("PRISM_TESTED_BINARY", place.release("prism"));
    pass(command, "see above")
}

/// What is done to editors that are killed, flooded and revoked.
fn editor_ends(place: &Place) -> anyhow::Result<Verdict> {
    let mut command = integration(place, "editor_races::");
    command.args(["editor_ends::", "--test-threads", "1"]).env("PRISM_KILLS", KILLS_UNDER_SAVES);
    command.env("PRISM_PRINTED_MB", PRINTED_MB).env("PRISM_TESTED_BINARY", place.release("prism"));
    pass(command, "see above")
}

/// The tests are those of the lane `unit`, on the binary that people use.
fn attacks(place: &Place) -> anyhow::Result<Verdict> {
    crate::attacks::run(place, &test_program(place)?)
}

/// The checklist installs the language servers that the contract is held with.
fn editor(place: &Place) -> anyhow::Result<Verdict> {
    if let Verdict::Skipped(why) = yardstick::editor(place)? {
        return Ok(Verdict::Skipped(why));
    }
    let mut command = integration(place, "contract::");
    command.env("PRISM_TESTED_BINARY", place.release("prism"));
    pass(command, "see above")
}

/// A person in real windows.
fn vscode(place: &Place) -> anyhow::Result<Verdict> {
    match yardstick::vscode_is_unwanted() {
        Some(why) => Ok(Verdict::Skipped(why)),
        None => yardstick::vscode(place, None),
    }
}

fn vscode_contract(place: &Place) -> anyhow::Result<Verdict> {
    match yardstick::vscode_is_unwanted() {
        Some(why) => Ok(Verdict::Skipped(why)),
        None => yardstick::vscode(place, Some(&test_program(place)?)),
    }
}

fn neovim(place: &Place) -> anyhow::Result<Verdict> {
    if let Verdict::Skipped(why) = yardstick::neovim(place)? {
        return Ok(Verdict::Skipped(why));
    }
    let mut command = integration(place, "contract::a_real_editor_keeps_the_contract");
    command.env("PRISM_EDITOR", "neovim").env("PRISM_TESTED_BINARY", place.release("prism"));
    let open = place.root.join("yardstick/nvim/open.sh");
    command.env("PRISM_EDITOR_COMMAND", format!("'{}'", open.display()));
    pass(command, "see above")
}

/// Builds the integration tests, and returns the program that they are.
fn test_program(place: &Place) -> anyhow::Result<PathBuf> {
    let mut command = place.cargo(&["test", "--locked", "--workspace", "--test", "it", "--no-run"]);
    let output = command
        .args(["--message-format", "json-render-diagnostics"])
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start cargo")?;
    ensure!(output.status.success(), "the tests cannot be built: see above");
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    let built = lines.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let mut programs = built
        .filter(|message| message["target"]["name"] == "it")
        .filter_map(|message| Some(message["executable"].as_str()?.into()));
    programs.next().context("cargo does not say where the tests are")
}

/// Some tests of the one integration binary, as the unit lane has built it: with `-p` cargo would choose other features,
/// and build it anew.
fn integration(place: &Place, tests: &str) -> Command {
    place.cargo(&["test", "--locked", "--workspace", "--test", "it", "--", "--nocapture", tests])
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
pub(crate) fn pass(mut command: Command, hint: &str) -> anyhow::Result<Verdict> {
    let status = command
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("cannot start {}", command.get_program().display()))?;
    if !status.success() {
        bail!("{status}: {hint}");
    }
    Ok(Verdict::Passed)
}

pub(crate) fn succeeds(mut command: Command) -> bool {
    command.stdin(Stdio::null()).output().is_ok_and(|output| output.status.success())
}

// === impl Lane ===

impl Lane {
    const fn beside(self) -> Self {
        Self { beside: Beside::Another, ..self }
    }

    const fn quick(self) -> Self {
        Self { part: Part::Both, ..self }
    }

    const fn only_quick(self) -> Self {
        Self { part: Part::Quick, ..self }
    }

    /// Whether it may run at the same time as the one after it. What needs a build comes after the build.
    fn goes_with(&self, next: &Self) -> bool {
        self.beside == Beside::Another && next.beside == Beside::Another && self.needs == next.needs
    }

    /// Runs it in sight of whoever looks.
    fn aloud(&self, place: &Place) -> anyhow::Result<Verdict> {
        say(format_args!("\n=== {}: {} ===", self.name, self.about));
        (self.run)(place)
    }
}

// === impl Row ===

impl Row {
    fn of(lane: &Lane, run: impl FnOnce() -> anyhow::Result<Verdict>) -> Self {
        let begun = Instant::now();
        let (mark, note) = match run() {
            Ok(Verdict::Passed) => (Mark::Passed, String::new()),
            Ok(Verdict::PassedBut(note)) => (Mark::Passed, note),
            Ok(Verdict::Skipped(why)) => (Mark::Skipped, why),
            Err(error) => (Mark::Failed, format!("{error:#}")),
        };
        Self { lane: lane.name, mark, took: begun.elapsed(), note }
    }

    /// What came of a lane, off the line that it ended with.
    fn read(line: &str) -> Option<(Mark, String)> {
        let (head, note) = line.strip_prefix("--- ")?.split_once(" s").filter(|(head, _)| head.contains('.'))?;
        let mut marks = [Mark::Passed, Mark::Failed, Mark::Skipped].into_iter();
        let mark = marks.find(|mark| head.split_whitespace().nth(1) == Some(mark.word()))?;
        Some((mark, note.trim_start().to_owned()))
    }
}

// === impl Mark ===

impl Mark {
    fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "FAILED",
            Self::Skipped => "SKIPPED",
        }
    }
}

impl std::fmt::Display for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mark = self.mark.word();
        let line = format!("{:<15} {mark:<8} {:>6.1} s  {}", self.lane, self.took.as_secs_f64(), self.note);
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
    fn without_a_name_every_lane_runs_but_those_of_the_quick_loop_only() {
        let left_out: Vec<&str> =
            LANES.iter().map(|lane| lane.name).filter(|name| !names(&[]).contains(name)).collect();
        assert_eq!(left_out, ["core"]);
    }

    #[test]
    fn the_quick_loop_builds_no_release() {
        assert_eq!(names(&["quick"]), ["fmt", "tidy", "checks", "lint", "core"]);
        assert_eq!(names(&["quick", "unit"]).last(), Some(&"unit"));
        assert!(quick().eq(names(&["quick"])));
    }

    #[test]
    fn a_yardstick_brings_its_build_and_lanes_keep_their_order() {
        assert_eq!(names(&["clients", "fmt"]), ["fmt", "release", "clients"]);
        assert_eq!(names(&["unit"]), ["unit"]);
    }

    #[test]
    fn what_measures_runs_alone_and_what_needs_a_build_after_it() {
        let lanes = chosen(&["release".into(), "crosstalk".into(), "clients".into(), "survival".into()]).unwrap();
        let groups: Vec<Vec<&str>> = lanes
            .chunk_by(|one, next| one.goes_with(next))
            .map(|group| group.iter().map(|lane| lane.name).collect())
            .collect();
        assert_eq!(groups, [vec!["release"], vec!["survival"], vec!["crosstalk", "clients"]]);
    }

    #[test]
    fn lanes_side_by_side_all_run_once() {
        let lanes = chosen(&[]).unwrap();
        let row = |lane: &Lane| Row { lane: lane.name, mark: Mark::Passed, took: Duration::ZERO, note: String::new() };
        let mut ran: Vec<&str> = side_by_side(&lanes, row).iter().map(|row| row.lane).collect();
        let mut names = names(&[]);
        ran.sort_unstable();
        names.sort_unstable();
        assert_eq!(ran, names);
    }

    //
    #[test]
    fn the_release_that_lanes_build_is_the_one_that_a_person_runs() {
        let place = Place::find().unwrap();
        let built = |of: &[&str]| {
            let words = ["tree", "--locked", "--offline", "--prefix", "none", "--format", "{p} {f}", "--edges"];
            let output = place.cargo(&[&words[..], &["normal,build"], of].concat()).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let lines = String::from_utf8(output.stdout).unwrap();
            lines.lines().map(|line| line.replace(" (*)", "")).collect::<BTreeSet<String>>()
        };
        let (of_a_person, of_the_lane) = (built(&[]), built(&RELEASED));
        let twice: Vec<&String> = of_a_person.difference(&of_the_lane).collect();
        assert!(of_a_person.len() > 100 && twice.is_empty(), "compiled twice, with other features: {twice:?}");
    }

    #[test]
    fn an_unknown_lane_is_refused_with_the_known_ones() {
        let error = chosen(&["speed".into()]).err().unwrap().to_string();
        assert!(error.contains("speed") && error.contains("crosstalk"), "{error}");
    }
}
