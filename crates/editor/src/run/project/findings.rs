//! What a build or a test run has found, as much as an answer should hold. The counts are always whole.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

use serde::Serialize;
use serde_json::{Value, json};

/// Where a tool's words are read, line by line. What it finds goes to `Findings`.
pub(super) trait OutputReader: Send {
    fn line(&mut self, line: &str, found: &mut Findings);

    /// There are no more lines.
    fn end(&mut self, _: &mut Findings) {}
}

#[derive(Debug, Default)]
pub(super) struct Findings {
    diagnostics: Vec<Diagnostic>,
    /// What was told already: a file that is compiled twice warns twice.
    told: HashSet<(String, u32, u32, String)>,
    pub(super) errors: u64,
    pub(super) warnings: u64,
    cases: Vec<TestCase>,
    counted: TestCounts,
    /// What the tool itself counts, where it does: it knows of tests that it does not name.
    pub(super) summary: Option<TestCounts>,
    is_cut: bool,
    /// Tests that it says there will be.
    pub(super) expected: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TestCounts {
    pub(super) passed: u64,
    pub(super) failed: u64,
    pub(super) ignored: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Diagnostic {
    /// As the tool writes it.
    pub(super) path: String,
    /// Zero-based, in UTF-16 units as far as the tool tells.
    pub(super) start: (u32, u32),
    pub(super) end: Option<(u32, u32)>,
    pub(super) severity: Severity,
    pub(super) message: String,
    pub(super) source: &'static str,
    pub(super) code: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Severity {
    #[default]
    Error,
    Warning,
    Information,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TestCase {
    pub(super) name: String,
    pub(super) outcome: TestOutcome,
    pub(super) message: Option<String>,
    pub(super) path: Option<String>,
    pub(super) duration_ms: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum TestOutcome {
    #[default]
    Passed,
    Failed,
    Ignored,
}

/// Diagnostics of an answer. Further ones are only counted.
const MAX_DIAGNOSTICS: usize = 500;

/// Cases of an answer that did not fail, and that did. Further ones are only counted.
const MAX_CASES: usize = 1000;
const MAX_FAILED: usize = 500;

/// Bytes of one message. The rest is cut off.
const MAX_MESSAGE: usize = 4096;

// === impl Findings ===

impl Findings {
    pub(super) fn diagnostic(&mut self, mut diagnostic: Diagnostic) {
        cut(&mut diagnostic.message);
        let (line, character) = diagnostic.start;
        if self.told.len() < 8 * MAX_DIAGNOSTICS
            && !self.told.insert((diagnostic.path.clone(), line, character, diagnostic.message.clone()))
        {
            return;
        }
        match diagnostic.severity {
            Severity::Error => self.errors += 1,
            Severity::Warning => self.warnings += 1,
            Severity::Information => {}
        }
        if self.diagnostics.len() < MAX_DIAGNOSTICS {
            self.diagnostics.push(diagnostic);
        } else {
            self.is_cut = true;
        }
    }

    pub(super) fn case(&mut self, mut case: TestCase) {
        if let Some(message) = &mut case.message {
            cut(message);
        }
        cut(&mut case.name);
        match case.outcome {
            TestOutcome::Passed => self.counted.passed += 1,
            TestOutcome::Failed => self.counted.failed += 1,
            TestOutcome::Ignored => self.counted.ignored += 1,
        }
        let (kept, most) = if case.outcome == TestOutcome::Failed {
            (self.counted.failed, MAX_FAILED)
        } else {
            (self.counted.passed + self.counted.ignored, MAX_CASES)
        };
        if kept <= most as u64 {
            self.cases.push(case);
        } else {
            self.is_cut = true;
        }
    }

    /// A case that was told of before, to say more about it.
    pub(super) fn failed_case(&mut self, name: &str) -> Option<&mut TestCase> {
        self.cases.iter_mut().rev().find(|case| case.outcome == TestOutcome::Failed && case.name == name)
    }

    /// Adds what a tool counts for one of its parts.
    pub(super) fn add_summary(&mut self, counts: TestCounts) {
        let sum = self.summary.get_or_insert_default();
        sum.passed += counts.passed;
        sum.failed += counts.failed;
        sum.ignored += counts.ignored;
    }

    pub(super) fn counts(&self) -> TestCounts {
        self.summary.unwrap_or(self.counted)
    }

    /// How many tests have ended.
    pub(super) fn ended(&self) -> u64 {
        self.counted.passed + self.counted.failed + self.counted.ignored
    }

    pub(super) fn is_complete(&self) -> bool {
        !self.is_cut
    }

    pub(super) fn diagnostics_json(&self, base: &PathBase) -> Value {
        self.diagnostics.iter().map(|diagnostic| diagnostic.to_json(base)).collect()
    }

    pub(super) fn tests_json(&self, base: &PathBase) -> Value {
        let TestCounts { passed, failed, ignored } = self.counts();
        let cases: Value = self.cases.iter().map(|case| case.to_json(base)).collect();
        json!({ "passed": passed, "failed": failed, "ignored": ignored, "cases": cases })
    }

    #[cfg(test)]
    pub(super) fn parts(&self) -> (&[Diagnostic], &[TestCase]) {
        (&self.diagnostics, &self.cases)
    }
}

/// Where a tool's relative paths begin: in the folder it runs in or, as with a workspace, in one above.
#[derive(Debug)]
pub(super) struct PathBase {
    pub(super) folder: PathBuf,
    /// The granted folder, above which nobody looks.
    pub(super) root: PathBuf,
}

impl PathBase {
    pub(super) fn resolve(&self, path: &str) -> PathBuf {
        let written = Path::new(path);
        let above = self.folder.ancestors().take_while(|folder| folder.starts_with(&self.root));
        let found = above.map(|folder| folder.join(written)).find(|path| path.exists());
        let path = found.unwrap_or_else(|| self.folder.join(written));
        // Without the dots that tools leave in.
        path.components().filter(|part| !matches!(part, std::path::Component::CurDir)).collect()
    }
}

impl Diagnostic {
    fn to_json(&self, base: &PathBase) -> Value {
        let position = |(line, character): (u32, u32)| json!({ "line": line, "character": character });
        let end = self.end.filter(|end| *end >= self.start).unwrap_or(self.start);
        let path = (!self.path.is_empty()).then(|| base.resolve(&self.path));
        json!({
            "path": path,
            "range": { "start": position(self.start), "end": position(end) },
            "severity": self.severity.name(),
            "message": self.message,
            "source": self.source,
            "code": self.code,
        })
    }
}

impl Severity {
    /// What a tool calls it.
    pub(super) fn of(word: &str) -> Self {
        match word.trim().to_ascii_lowercase().as_str() {
            "warning" | "warn" => Self::Warning,
            "note" | "info" | "information" | "help" | "hint" => Self::Information,
            _ => Self::Error,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Information => "information",
        }
    }
}

/// One test, as results have it.
#[derive(Serialize)]
struct TestReport<'a> {
    name: &'a str,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<u64>,
}

impl TestCase {
    fn to_json(&self, base: &PathBase) -> Value {
        json!(TestReport {
            name: &self.name,
            outcome: self.outcome.name(),
            message: self.message.as_deref(),
            path: self.path.as_ref().map(|path| base.resolve(path).display().to_string()),
            duration_ms: self.duration_ms,
        })
    }
}

impl TestOutcome {
    fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Ignored => "ignored",
        }
    }
}

fn cut(text: &mut String) {
    if text.len() > MAX_MESSAGE {
        let end = (0..=MAX_MESSAGE).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
}

/// Takes `path:line:column` apart, or `path:line`. Lines and columns are counted from one there, and here from zero.
pub(super) fn place(text: &str) -> Option<(&str, (u32, u32))> {
    let (rest, last) = text.trim_end_matches(':').rsplit_once(':')?;
    let last = last.parse::<u32>().ok()?.checked_sub(1)?;
    let found = match rest.rsplit_once(':').and_then(|(path, line)| Some((path, line.parse::<u32>().ok()?))) {
        Some((path, line)) => (path, (line.checked_sub(1)?, last)),
        None => (rest, (last, 0)),
    };
    (!found.0.is_empty()).then_some(found)
}

/// `path:line:column: rest`, as compilers write it; the path has no blank before its first colon.
pub(super) fn placed_line(line: &str) -> Option<(&str, (u32, u32), &str)> {
    let (mut end, mut best) = (0, None);
    for _ in 0..4 {
        let colon = end + line.get(end..)?.find(':')?;
        end = colon + 1;
        if let Some((path, start)) =
            place(&line[..colon]).filter(|(path, _)| !path.contains(' ') && looks_like_file(path))
        {
            best = Some((path, start, line[end..].trim_start()));
        } else if best.is_some() {
            break;
        }
        if line.get(end..).is_none_or(|rest| !rest.contains(':')) {
            break;
        }
    }
    best
}

fn looks_like_file(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    (path.contains('/') || name.contains('.')) && !path.contains("://")
}
