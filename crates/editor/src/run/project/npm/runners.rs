//! Test runners of JavaScript: what speaks TAP (`tap.rs`), and those that write for people: node's own, vitest, jest, mocha. These
//! put a mark before each test and a sum at the end.

mod tap;

use tap::Tap;

use crate::run::project::findings::{Findings, TestCase, TestCounts, TestOutcome, place};

#[derive(Debug, Default)]
pub(super) struct Runners {
    tap: Option<Tap>,
    /// Suites that node has begun and not ended: their end looks like a test.
    suites: Vec<String>,
    /// What is being said of a failed test.
    telling: Option<FailureText>,
    /// Node tells of the failed ones a second time.
    is_repeating: bool,
}

#[derive(Debug)]
struct FailureText {
    name: String,
    words: String,
    /// A section with blank lines in it, not just the lines below a mark.
    is_section: bool,
}

/// Suites in suites. Deeper ones are not followed.
const MAX_DEPTH: usize = 64;

/// Bytes of a failed test's words. The rest is dropped.
const MAX_WORDS: usize = 4 << 10;

impl Runners {
    /// Tells whether the line was one of theirs.
    pub(super) fn line(&mut self, line: &str, found: &mut Findings) -> bool {
        if let Some(tap) = &mut self.tap {
            tap.line(line, found);
            return true;
        }
        if line.starts_with("TAP version ") {
            self.tap = Some(Tap::default());
            return true;
        }
        if let Some(name) = section(line) {
            self.tell(found);
            self.telling = Some(FailureText { name, words: String::new(), is_section: true });
            return true;
        }
        if self.sum(line, found) {
            self.tell(found);
            return true;
        }
        if let Some((outcome, name, duration_ms)) = mark(line) {
            self.tell(found);
            self.mark(outcome, name, duration_ms, found);
            return true;
        }
        if let Some(name) = line.trim_start().strip_prefix("▶ ") {
            if self.suites.len() < MAX_DEPTH {
                self.suites.push(name.trim().to_owned());
            }
            return true;
        }
        let Some(telling) = &mut self.telling else { return false };
        let is_over = if telling.is_section { line.starts_with('⎯') } else { line.trim().is_empty() };
        if is_over {
            self.tell(found);
        } else if telling.words.len() + line.len() < MAX_WORDS {
            telling.words.push_str(line);
            telling.words.push('\n');
        }
        true
    }

    pub(super) fn end(&mut self, found: &mut Findings) {
        self.tell(found);
        if let Some(tap) = &mut self.tap {
            tap.end(found);
        }
    }

    fn mark(&mut self, outcome: TestOutcome, name: String, duration_ms: Option<u64>, found: &mut Findings) {
        if name == "failing tests:" {
            self.is_repeating = true;
        }
        if self.is_repeating {
            return;
        }
        if self.suites.last().is_some_and(|suite| *suite == name) {
            self.suites.pop();
            return;
        }
        if outcome == TestOutcome::Failed {
            self.telling = Some(FailureText { name: name.clone(), words: String::new(), is_section: false });
        }
        found.case(TestCase { name, outcome, duration_ms, ..TestCase::default() });
    }

    /// Gives a failed test its words.
    fn tell(&mut self, found: &mut Findings) {
        let Some(FailureText { name, words, is_section }) = self.telling.take() else { return };
        // The mark had the last part only.
        let last = name.rsplit(" > ").next().and_then(|name| name.rsplit(" › ").next()).unwrap_or(&name);
        let Some(case) = found.failed_case(last) else { return };
        if words.trim().is_empty() {
            return;
        }
        case.path = words.lines().find_map(placed);
        if is_section {
            case.name = name;
        }
        case.message = Some(words.trim().to_owned());
    }

    fn sum(&mut self, line: &str, found: &mut Findings) -> bool {
        let line = line.trim_start();
        // vitest and jest: all in one line.
        if let Some(rest) = line.strip_prefix("Tests: ").or_else(|| line.strip_prefix("Tests  ")) {
            let mut counts = TestCounts::default();
            for part in rest.split(['|', ',']) {
                let mut words = part.split_whitespace();
                let number = words.next().and_then(|number| number.parse::<u64>().ok());
                let (Some(number), Some(what)) = (number, words.next()) else { continue };
                count(&mut counts, what, number);
            }
            found.summary = Some(counts);
            return true;
        }
        // node: one line for each.
        if let Some((what, number)) = line.strip_prefix("ℹ ").and_then(|rest| rest.split_once(' ')) {
            if let Ok(number) = number.parse::<u64>() {
                count(found.summary.get_or_insert_default(), what, number);
            }
            return true;
        }
        // mocha: one line for each, the other way round.
        let mut words = line.split_whitespace();
        let number = words.next().and_then(|number| number.parse::<u64>().ok());
        let what = words.next().filter(|what| matches!(*what, "passing" | "failing" | "pending"));
        let (Some(number), Some(what)) = (number, what) else { return false };
        count(found.summary.get_or_insert_default(), what, number);
        true
    }
}

pub(super) fn count(counts: &mut TestCounts, what: &str, number: u64) {
    match what {
        "pass" | "passed" | "passing" => counts.passed += number,
        "fail" | "failed" | "failing" | "cancelled" => counts.failed += number,
        "skipped" | "todo" | "pending" => counts.ignored += number,
        _ => {}
    }
}

/// `✓ adds (2 ms)`
fn mark(line: &str) -> Option<(TestOutcome, String, Option<u64>)> {
    let line = line.trim();
    let mark = line.chars().next()?;
    let outcome = match mark {
        '✔' | '✓' => TestOutcome::Passed,
        '✖' | '✕' | '×' => TestOutcome::Failed,
        '﹣' | '○' | '↓' => TestOutcome::Ignored,
        _ => return None,
    };
    let rest = line[mark.len_utf8()..].strip_prefix(' ')?.trim();
    let rest = rest.strip_prefix("skipped ").unwrap_or(rest);
    let rest = rest.split_once(" # ").map_or(rest, |(name, _)| name);
    let (name, duration_ms) = timed(rest);
    // A file of vitest's, or a sum of eslint's.
    let is_sum = name.ends_with(" tests)") || name.ends_with(" test)") || name.contains(" tests | ");
    let is_lint = name.contains(" problems (") || name.contains(" problem (");
    (!is_sum && !is_lint && !name.is_empty()).then(|| (outcome, name.to_owned(), duration_ms))
}

/// `adds (2 ms)`, `adds (1.27ms)`, `adds 5ms`
fn timed(text: &str) -> (&str, Option<u64>) {
    let bare = text.strip_suffix(')').unwrap_or(text);
    let Some(number) = bare.strip_suffix("ms").map(str::trim_end) else { return (text, None) };
    let Some(at) = number.rfind([' ', '(']) else { return (text, None) };
    match number[at + 1..].parse::<f64>() {
        Ok(duration) => (number[..at].trim_end_matches(['(', ' ']), Some(duration.round() as u64)),
        Err(_) => (text, None),
    }
}

/// ` FAIL  a.test.js > suite > lies`, `  ● suite › lies`
fn section(line: &str) -> Option<String> {
    let line = line.trim();
    let name = match line.strip_prefix("● ") {
        Some(name) => Some(name),
        None => line.strip_prefix("FAIL  ").filter(|rest| rest.contains(" > ")),
    };
    name.map(|name| name.trim().to_owned())
}

/// ` ❯ v/a.test.mjs:3:60`, `at Object.toBe (a.test.js:2:60)`, `at f (/p/a.test.cjs:3:27)`
fn placed(line: &str) -> Option<String> {
    let line = line.trim();
    let at = line.strip_prefix("❯ ").or_else(|| line.strip_prefix("at "))?;
    let at = at.rsplit_once('(').map_or(at, |(_, at)| at.trim_end_matches(')'));
    let (path, _) = place(at.split_whitespace().last()?)?;
    (!path.starts_with("node:") && !path.contains("node_modules/")).then(|| path.to_owned())
}
