//! `cargo xtask checks`: the 120 things that must hold between clients and servers of all revisions, each with the
//! tests that assert it. A test says so itself, in the line above it: `// checks 12 34`.

mod scan;

#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, fmt::Write};

use anyhow::{Context, ensure};

use crate::{Outcome, Place, say::say, test::Verdict, tidy::tree::Tree};

use scan::Marked;

/// One line a check: number, revisions it holds in, what must hold. A: all; L: 2025-03-26 to 2025-11-25; S: 2024-11-05
/// over HTTP+SSE; M: 2026-07-28; D: our own decision.
const LIST: &str = include_str!("checks/list.txt");

struct Check {
    number: u32,
    tags: &'static str,
    what: &'static str,
}

/// Who asserts what, and what is wrong.
struct Report {
    rows: Vec<(Check, Vec<String>)>,
    faults: Vec<String>,
}

pub(crate) fn run(place: &Place) -> anyhow::Result<Outcome> {
    let report = Report::of(LIST, scan::scan(&Tree::read(&place.root)?))?;
    say(report.text());
    Ok(if report.missing().is_empty() && report.faults.is_empty() { Outcome::Good } else { Outcome::Bad })
}

pub(crate) fn lane(place: &Place) -> anyhow::Result<Verdict> {
    let report = Report::of(LIST, scan::scan(&Tree::read(&place.root)?))?;
    say(report.text());
    ensure!(report.faults.is_empty(), "{}", report.faults.join("; "));
    ensure!(report.missing().is_empty(), "{}", report.summary());
    Ok(Verdict::Passed)
}

fn parse(list: &'static str) -> anyhow::Result<Vec<Check>> {
    let check = |line: &'static str| {
        let (number, rest) = line.split_once(' ')?;
        let (tags, what) = rest.split_once(' ')?;
        Some(Check { number: number.parse().ok()?, tags, what })
    };
    list.lines().map(|line| check(line).with_context(|| format!("checks/list.txt: {line:?}"))).collect()
}

// === impl Report ===

impl Report {
    fn of(list: &'static str, (marked, mut faults): (Vec<Marked>, Vec<String>)) -> anyhow::Result<Self> {
        let mut tests: BTreeMap<u32, Vec<String>> = BTreeMap::new();
        for Marked { numbers, test } in marked {
            for number in numbers {
                tests.entry(number).or_default().push(test.clone());
            }
        }
        let rows = parse(list)?.into_iter().map(|check| (tests.remove(&check.number).unwrap_or_default(), check));
        let rows: Vec<(Check, Vec<String>)> = rows.map(|(tests, check)| (check, tests)).collect();
        faults.extend(tests.iter().map(|(number, tests)| format!("there is no check {number}: {}", tests.join(", "))));
        Ok(Self { rows, faults })
    }

    fn missing(&self) -> Vec<u32> {
        self.rows.iter().filter(|(_, tests)| tests.is_empty()).map(|(check, _)| check.number).collect()
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for (check, tests) in &self.rows {
            let _ = writeln!(text, "{:>3} [{}] {}", check.number, check.tags, check.what);
            for test in tests {
                let _ = writeln!(text, "      {test}");
            }
            if tests.is_empty() {
                text.push_str("      MISSING\n");
            }
        }
        for fault in &self.faults {
            let _ = writeln!(text, "{fault}");
        }
        text + &self.summary()
    }

    fn summary(&self) -> String {
        let missing: Vec<String> = self.missing().iter().map(u32::to_string).collect();
        let found = self.rows.len() - missing.len();
        let end = if missing.is_empty() { String::new() } else { format!(", missing {}", missing.join(" ")) };
        format!("checks: {found}/{} asserted{end}", self.rows.len())
    }
}
