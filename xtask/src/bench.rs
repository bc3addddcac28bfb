//! `cargo xtask bench`: Prism and the floor (or a plain proxy), interleaved in one run, held against the promises.
//!
//! A figure by itself says more about the machine than about Prism. So each round measures both sides back
//! to back, and what counts is the ratio: the median over the rounds.

mod measure;
mod rig;

use anyhow::{Context, bail, ensure};

use crate::{Outcome, Place, say::say, yardstick};

use measure::{MEASURES, Measure};
use rig::Rig;

struct Options {
    measures: Vec<&'static Measure>,
    rounds: usize,
    secs: f64,
    sessions: usize,
    form: Form,
    /// Another bridge in Prism's place, with `{port}` and `{echo}` (a command) or `{upstream}` (a URL) to fill in.
    bridge: Option<Vec<String>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Lines,
    Json,
}

pub(crate) fn run(place: &Place, arguments: &[String]) -> anyhow::Result<Outcome> {
    let options = Options::parse(arguments)?;
    build(place, &options)?;
    if options.bridge.is_none() && options.measures.iter().any(|measure| measure.wants_ripgrep()) {
        yardstick::install_ripgrep();
    }
    if options.bridge.is_none() && options.measures.iter().any(|measure| measure.wants_bubblewrap()) {
        yardstick::install_bubblewrap();
    }
    let rig = Rig::new(place, options);
    let mut missed = Vec::new();
    for measure in &rig.options.measures {
        let report = measure.run(&rig)?;
        match rig.options.form {
            Form::Lines => say(&report),
            Form::Json => say(report.to_json()),
        }
        if !report.is_kept() {
            missed.push(measure.name);
        }
    }
    if missed.is_empty() {
        return Ok(Outcome::Good);
    }
    if rig.options.form == Form::Lines {
        say(format_args!("MISSED: {}", missed.join(", ")));
    }
    Ok(Outcome::Bad)
}

/// The measures, as they are typed.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    MEASURES.iter().map(|measure| measure.name)
}

fn build(place: &Place, options: &Options) -> anyhow::Result<()> {
    let mut arguments = vec!["build", "--release", "--locked", "-p", "perf"];
    if options.bridge.is_none() {
        arguments.extend(["-p", "prism"]);
    }
    let status = place.cargo(&arguments).status().context("cannot run cargo")?;
    ensure!(status.success(), "the release build failed");
    Ok(())
}

impl Options {
    fn parse(arguments: &[String]) -> anyhow::Result<Self> {
        let mut options =
            Self { measures: Vec::new(), rounds: 5, secs: 3.0, sessions: 1000, form: Form::Lines, bridge: None };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().with_context(|| format!("{argument} wants a value"));
            match argument.as_str() {
                "--json" => options.form = Form::Json,
                "--rounds" => options.rounds = value()?.parse().context("--rounds wants a number")?,
                "--secs" => options.secs = value()?.parse().context("--secs wants seconds")?,
                "--sessions" => options.sessions = value()?.parse().context("--sessions wants a number")?,
                "--bridge" => options.bridge = Some(value()?.split_whitespace().map(str::to_owned).collect()),
                name => match MEASURES.iter().find(|measure| measure.name == name) {
                    Some(measure) => options.measures.push(measure),
                    None => {
                        let known: Vec<&str> = MEASURES.iter().map(|measure| measure.name).collect();
                        bail!("unknown measure {name:?}; there are {}", known.join(", "));
                    }
                },
            }
        }
        ensure!(options.rounds > 0 && options.secs > 0.0 && options.sessions > 0, "nothing to measure");
        ensure!(options.bridge.as_ref().is_none_or(|command| !command.is_empty()), "--bridge wants a command");
        if options.measures.is_empty() {
            options.measures = MEASURES.iter().collect();
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> anyhow::Result<Options> {
        Options::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn measures_and_options_may_stand_in_any_order() {
        let options = parse("call16 --rounds 5 idle --secs 0.5 --json --sessions 20").unwrap();
        let names: Vec<&str> = options.measures.iter().map(|measure| measure.name).collect();
        assert_eq!(names, ["call16", "idle"]);
        assert_eq!((options.rounds, options.sessions, options.form), (5, 20, Form::Json));
    }

    #[test]
    fn everything_is_measured_unless_told() {
        assert_eq!(parse("").unwrap().measures.len(), MEASURES.len());
    }

    #[test]
    fn what_cannot_be_measured_is_refused() {
        for line in ["call17", "--rounds", "--rounds many", "--rounds 0", "--secs -1"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
