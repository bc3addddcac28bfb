//! `cargo xtask`: proves the tree (`test`, `checks`) and measures it (`bench`). Nothing here is run by a user of Prism.

mod attacks;
mod bench;
mod checks;
mod extension;
mod fuzz;
mod place;
mod process;
mod say;
mod supply;
mod test;
mod tidy;
mod yardstick;

use std::process::ExitCode;

use place::Place;
use say::{complain, say};

/// `{lanes}`, `{quick}` and `{measures}` are filled in with those that there are.
const USAGE: &str = "\
cargo xtask test [LANE...]      format, lints, all tests and the yardsticks, fast ones first
    (default: all, in a line each where nobody watches, with their words in target/xtask)
    a lane that needs the release binary builds it first; each installs what it needs
{lanes}

cargo xtask test quick          while you work: {quick}

cargo xtask checks              what must hold between all revisions, each with the tests that assert it

cargo xtask extension [--vsix]  build editors/vscode/dist/extension.js, and the package to install by hand

cargo xtask bench [MEASURE...]  Prism and the floor, interleaved in one run, against the promises
    measures: {measures}
    (default: all)
    --rounds N     back-to-back pairs a measure; the ratio is their median (5)
    --secs S       seconds of load in a round (3)
    --sessions N   sessions of idle, and streams of fanout (1000)
    --json         one JSON object a measure, with every round
    --bridge CMD   measure another bridge instead; {port} and {echo} (or {upstream}) are filled in";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.split_first() {
        Some((verb, rest)) if verb == "test" => Place::find().and_then(|place| test::run(&place, rest)),
        // How a run that nobody watches starts each of its lanes.
        Some((verb, [lane])) if verb == "lane" => Place::find().and_then(|place| test::run_one(&place, lane)),
        Some((verb, [])) if verb == "checks" => Place::find().and_then(|place| checks::run(&place)),
        Some((verb, rest)) if verb == "extension" => Place::find().and_then(|place| extension::build(&place, rest)),
        Some((verb, rest)) if verb == "bench" => Place::find().and_then(|place| bench::run(&place, rest)),
        Some((verb, _)) if !matches!(verb.as_str(), "help" | "--help" | "-h") => {
            Err(anyhow::anyhow!("unknown task {verb:?}; `cargo xtask` lists them"))
        }
        _ => {
            say(usage());
            Ok(Outcome::Good)
        }
    };
    match outcome {
        Ok(Outcome::Good) => ExitCode::SUCCESS,
        Ok(Outcome::Bad) => ExitCode::FAILURE,
        Err(error) => {
            complain(format_args!("xtask: {error:#}"));
            ExitCode::from(2)
        }
    }
}

fn usage() -> String {
    let lanes: Vec<String> = test::lanes().map(|(name, about)| format!("    {name:<16} {about}")).collect();
    let listed = |names: &mut dyn Iterator<Item = &'static str>| names.collect::<Vec<_>>().join(" ");
    let usage = USAGE.replace("{lanes}", &lanes.join("\n")).replace("{quick}", &listed(&mut test::quick()));
    usage.replace("{measures}", &listed(&mut bench::names()))
}

/// Whether everything a task checked held. A task that could not check is an error instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Good,
    Bad,
}

#[cfg(test)]
mod tests {
    use super::*;

    //
    #[test]
    fn the_usage_names_every_lane_and_every_measure() {
        let said = usage();
        let of_lanes: Vec<&str> = said
            .lines()
            .skip_while(|line| !line.starts_with("    fmt "))
            .map_while(|line| line.strip_prefix("    ")?.split_whitespace().next())
            .collect();
        assert_eq!(of_lanes, test::lanes().map(|(name, _)| name).collect::<Vec<_>>());
        let after = |label: &str| -> Vec<String> {
            let line = said.lines().find_map(|line| line.trim_start().strip_prefix(label)).unwrap();
            line.split_whitespace().map(str::to_owned).collect()
        };
        assert_eq!(after("measures: "), bench::names().collect::<Vec<_>>());
        assert_eq!(after("cargo xtask test quick          while you work: "), test::quick().collect::<Vec<_>>());
    }
}
