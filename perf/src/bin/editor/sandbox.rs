//! What the sandbox costs: the same on two daemons in turns, one of which keeps no fences.

use std::{fs, path::Path, time::Duration};

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};

use super::{Options, holder::Holder, milliseconds};

/// Times that a program is run that does nothing, on each side; the first ones do not count.
const TURNS: usize = 60;
const UNCOUNTED: usize = 5;

/// Times that tests are run, on each side, after one that does not count.
const RUNS: usize = 9;

/// What tests have to do at least: a project that works for a second.
const SECOND: Duration = Duration::from_millis(1_050);

/// Runs that say how long the tests take.
const LOOKS: usize = 3;

/// Numbers that are tried at first, and at most, until the tests take that long.
const FEWEST: u64 = 100_000;
const MOST: u64 = 100_000_000;

/// A command that a person allows, from then on to its end.
pub(super) async fn nothing(options: &Options) -> anyhow::Result<Value> {
    let mut sides = Sides::enter(options, &options.dir).await?;
    for turn in 0..TURNS + UNCOUNTED {
        for side in Sides::in_turn(turn) {
            let (told, took) = sides.holders[side].runs_allowed(json!({"command": ["true"]})).await?;
            ensure!(told["exit_code"] == 0, "{told}");
            if let Some(why) = told_otherwise(side, &told)? {
                return Ok(why);
            }
            if turn >= UNCOUNTED {
                sides.took[side].push(took);
            }
        }
    }
    Ok(sides.figures())
}

/// `cargo test` of a project that is built already.
pub(super) async fn cargo_test(options: &Options) -> anyhow::Result<Value> {
    let folder = options.dir.join("works-for-a-second");
    fs::create_dir_all(folder.join("src"))?;
    let manifest = "[package]\nname = \"works\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[workspace]\n";
    fs::write(folder.join("Cargo.toml"), manifest)?;
    let mut sides = Sides::enter(options, &folder).await?;
    let mut numbers = FEWEST;
    loop {
        fs::write(folder.join("src/lib.rs"), TESTS.replace("NUMBERS", &numbers.to_string()))?;
        // The first run builds it; the quickest of the others says how long it works where nothing else does.
        sides.tests(OUTSIDE).await?;
        let mut took = Duration::MAX;
        for _ in 0..LOOKS {
            took = took.min(sides.tests(OUTSIDE).await?.1);
        }
        if took >= SECOND {
            break;
        }
        ensure!(numbers < MOST, "the tests are done in {took:?}, whatever they have to do");
        numbers *= 2;
    }
    for turn in 0..=RUNS {
        for side in Sides::in_turn(turn) {
            let (told, took) = sides.tests(side).await?;
            if let Some(why) = told_otherwise(side, &told)? {
                return Ok(why);
            }
            if turn > 0 {
                sides.took[side].push(took);
            }
        }
    }
    Ok(sides.figures())
}

/// Tests that reckon, write files and start programs, as those of projects do.
const TESTS: &str = r#"#[cfg(test)]
mod tests {
    #[test]
    fn reckons() {
        let is_prime = |n: &u64| (2..).take_while(|d| d * d <= *n).all(|d| n % d != 0);
        assert!((2..NUMBERS).filter(is_prime).count() > 0);
    }

    #[test]
    fn writes_and_reads() {
        let folder = std::env::temp_dir().join(format!("works-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for number in 0..500 {
            let file = folder.join(number.to_string());
            std::fs::write(&file, "x".repeat(4096)).unwrap();
            assert_eq!(std::fs::read(&file).unwrap().len(), 4096);
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn starts_programs() {
        for _ in 0..50 {
            assert!(std::process::Command::new("true").status().unwrap().success());
        }
    }
}
"#;

/// Without the network, as most grants are.
const SCOPES: [&str; 2] = ["run:commands", "test:code"];

/// The holders of a grant of each daemon, and what everything took there.
struct Sides {
    holders: [Holder; 2],
    took: [Vec<Duration>; 2],
}

const INSIDE: usize = 0;
const OUTSIDE: usize = 1;

impl Sides {
    async fn enter(options: &Options, root: &Path) -> anyhow::Result<Self> {
        let (Some(url), Some(home)) = (&options.other_url, &options.other_home) else {
            bail!("--other-url and --other-home are wanted: a daemon without fences");
        };
        let inside = Holder::enter_for(&SCOPES, &options.url, &options.home, root).await?;
        let outside = Holder::enter_for(&SCOPES, url, home, root).await?;
        Ok(Self { holders: [inside, outside], took: [Vec::new(), Vec::new()] })
    }

    /// Both, the other one first in every second turn.
    fn in_turn(turn: usize) -> [usize; 2] {
        if turn.is_multiple_of(2) { [INSIDE, OUTSIDE] } else { [OUTSIDE, INSIDE] }
    }

    async fn tests(&mut self, side: usize) -> anyhow::Result<(Value, Duration)> {
        let begun = std::time::Instant::now();
        let told = self.holders[side].does("run_tests", json!({"tool": "cargo"})).await?;
        let took = begun.elapsed();
        ensure!(told["is_ok"] == true && told["tests"]["passed"] == 3, "{told}");
        Ok((told, took))
    }

    fn figures(&mut self) -> Value {
        let [inside, outside] = &mut self.took;
        let mut figures = of(inside);
        figures["floor"] = of(outside);
        figures
    }
}

/// That nothing was measured, where this machine has no sandbox.
fn told_otherwise(side: usize, told: &Value) -> anyhow::Result<Option<Value>> {
    let enforced = told["fence"]["enforced"].as_str().context("a result says what was enforced")?;
    match (side, enforced) {
        (INSIDE, "sandbox") | (OUTSIDE, "none") => Ok(None),
        (INSIDE, _) => Ok(Some(json!({"skipped": "no sandbox here: `prism doctor` says what is missing"}))),
        (_, other) => bail!("a daemon without fences has enforced {other}"),
    }
}

fn of(took: &mut [Duration]) -> Value {
    took.sort_unstable();
    let at = |part: f64| took.get(((took.len() as f64 - 1.0) * part).round() as usize).map(milliseconds);
    json!({"ms": at(0.5), "p90_ms": at(0.9), "least_ms": at(0.0), "count": took.len()})
}
