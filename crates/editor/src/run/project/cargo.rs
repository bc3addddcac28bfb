//! Cargo: its messages are JSON, and those of the test harness are lines between them.

use serde::Deserialize;

use super::findings::{Diagnostic, Findings, OutputReader, Severity, TestCase, TestCounts, TestOutcome};

#[derive(Debug, Default)]
pub(super) struct Cargo {
    /// The failed test whose words are being read, and the words.
    telling: Option<(String, String)>,
}

#[derive(Deserialize)]
struct CargoLine {
    reason: String,
    message: Option<CargoMessage>,
}

#[derive(Deserialize)]
struct CargoMessage {
    message: String,
    level: String,
    #[serde(default)]
    code: Option<CargoCode>,
    #[serde(default)]
    spans: Vec<CargoSpan>,
    #[serde(default)]
    rendered: Option<String>,
}

#[derive(Deserialize)]
struct CargoCode {
    code: String,
}

#[derive(Deserialize)]
struct CargoSpan {
    file_name: String,
    line_start: u32,
    line_end: u32,
    column_start: u32,
    column_end: u32,
    is_primary: bool,
    #[serde(default)]
    text: Vec<CargoText>,
}

#[derive(Deserialize)]
struct CargoText {
    text: String,
}

/// Bytes of a failed test's words. The rest is dropped.
const MAX_WORDS: usize = 8 << 10;

impl OutputReader for Cargo {
    fn line(&mut self, line: &str, found: &mut Findings) {
        if line.starts_with("{\"reason\":") {
            if let Ok(CargoLine { reason, message: Some(message) }) = serde_json::from_str(line)
                && reason == "compiler-message"
            {
                found.extend_with(message);
            }
            return;
        }
        // What a test printed stands between its name and the next, and may look like anything.
        if let Some(name) = line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----")) {
            self.tell(found);
            self.telling = Some((name.to_owned(), String::new()));
            return;
        }
        if let Some((_, words)) = &mut self.telling {
            if line == "failures:" {
                self.tell(found);
            } else if words.len() + line.len() < MAX_WORDS {
                words.push_str(line);
                words.push('\n');
            }
            return;
        }
        if let Some(counts) = line.strip_prefix("test result: ").and_then(summary) {
            found.add_summary(counts);
        } else if let Some(number) = line.strip_prefix("running ").and_then(|rest| rest.strip_suffix(" tests")) {
            found.expected += number.parse::<u64>().unwrap_or(0);
        } else if line == "running 1 test" {
            found.expected += 1;
        } else if let Some(case) = case(line) {
            found.case(case);
        }
    }

    fn end(&mut self, found: &mut Findings) {
        self.tell(found);
    }
}

impl Cargo {
    fn tell(&mut self, found: &mut Findings) {
        let Some((name, words)) = self.telling.take() else { return };
        if let Some(case) = found.failed_case(&name) {
            case.path = panicked_at(&words);
            case.message = Some(words.trim().to_owned());
        }
    }
}

impl Findings {
    fn extend_with(&mut self, message: CargoMessage) {
        let span = message.spans.iter().find(|span| span.is_primary).or(message.spans.first());
        // What only counts the others is no finding.
        let is_sum = message.message.starts_with("aborting due to") || message.message.ends_with(" emitted");
        if span.is_none() && (is_sum || message.level == "failure-note") {
            return;
        }
        let mut diagnostic = Diagnostic {
            severity: Severity::of(&message.level),
            source: "rustc",
            code: message.code.map(|code| code.code),
            // The short form leaves out what helps most; the rendered one has it, and the place a second time.
            message: message.rendered.map_or(message.message, |rendered| rendered.trim_end().to_owned()),
            ..Diagnostic::default()
        };
        if let Some(span) = span {
            diagnostic.path = span.file_name.clone();
            diagnostic.start = (span.line_start.saturating_sub(1), span.character(span.column_start, true));
            diagnostic.end = Some((span.line_end.saturating_sub(1), span.character(span.column_end, false)));
        }
        self.diagnostic(diagnostic);
    }
}

impl CargoSpan {
    /// A column, counted in letters from one, in UTF-16 units from zero.
    fn character(&self, column: u32, is_first: bool) -> u32 {
        let line = if is_first { self.text.first() } else { self.text.last() };
        let letters = column.saturating_sub(1) as usize;
        let units =
            |text: &CargoText| text.text.chars().take(letters).map(|letter| letter.len_utf16() as u32).sum::<u32>();
        line.map_or(column.saturating_sub(1), |text| {
            units(text) + (letters.saturating_sub(text.text.chars().count())) as u32
        })
    }
}

/// `test NAME ... ok`
fn case(line: &str) -> Option<TestCase> {
    let (name, verdict) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
    let (verdict, reason) = match verdict.split_once(", ") {
        Some((verdict, reason)) => (verdict, Some(reason.to_owned())),
        None => (verdict, None),
    };
    let outcome = match verdict {
        "ok" => TestOutcome::Passed,
        "FAILED" => TestOutcome::Failed,
        "ignored" => TestOutcome::Ignored,
        _ => return None,
    };
    let name = name.strip_suffix(" - should panic").unwrap_or(name).to_owned();
    Some(TestCase { name, outcome, message: reason, ..TestCase::default() })
}

/// `FAILED. 1 passed; 1 failed; 0 ignored; …`
fn summary(line: &str) -> Option<TestCounts> {
    let (_, counts) = line.split_once(". ")?;
    let count = |name: &str| {
        let part = counts.split("; ").find(|part| part.ends_with(name))?;
        part.split(' ').next()?.parse::<u64>().ok()
    };
    Some(TestCounts { passed: count(" passed")?, failed: count(" failed")?, ignored: count(" ignored")? })
}

fn panicked_at(words: &str) -> Option<String> {
    let (_, rest) = words.split_once(" panicked at ")?;
    super::findings::place(rest.lines().next()?).map(|(path, _)| path.to_owned())
}
