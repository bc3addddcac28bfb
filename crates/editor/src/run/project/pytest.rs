//! pytest, as `-rA --tb=short` has it tell; and `compileall`, which stands for a build.

use super::findings::{Diagnostic, Findings, OutputReader, TestCase, TestCounts, TestOutcome};

#[derive(Debug, Default)]
pub(super) struct Pytest {
    part: PytestSection,
    /// The failed test whose words are being read, and the words.
    telling: Option<(String, String)>,
    /// What was said of failed tests; their names come later.
    words: Vec<(String, String)>,
    /// The file and line of a syntax error, until the error itself is said.
    place: Option<(String, u32)>,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum PytestSection {
    #[default]
    Before,
    Failures,
    /// What tests that passed have printed.
    Passes,
    Summary,
}

/// Failed tests whose words are kept, and bytes of each.
const MAX_TOLD: usize = 500;
const MAX_WORDS: usize = 8 << 10;

impl OutputReader for Pytest {
    fn line(&mut self, line: &str, found: &mut Findings) {
        if let Some(title) = title(line, '=') {
            self.take();
            self.part = match title {
                "FAILURES" | "ERRORS" => PytestSection::Failures,
                "PASSES" => PytestSection::Passes,
                title if title.starts_with("short test summary") => PytestSection::Summary,
                title => {
                    if let Some(counts) = counts(title) {
                        found.summary = Some(counts);
                    }
                    PytestSection::Before
                }
            };
            return;
        }
        match self.part {
            PytestSection::Failures => {
                if let Some(name) = title(line, '_') {
                    self.take();
                    self.telling = Some((name.trim_start_matches("ERROR at setup of ").to_owned(), String::new()));
                } else if let Some((_, words)) = &mut self.telling
                    && words.len() + line.len() < MAX_WORDS
                {
                    words.push_str(line);
                    words.push('\n');
                }
            }
            PytestSection::Summary => {
                if let Some(counts) = counts(line) {
                    found.summary = Some(counts);
                } else {
                    self.case(line, found);
                }
            }
            PytestSection::Before => self.syntax(line, found),
            PytestSection::Passes => {}
        }
    }

    fn end(&mut self, _: &mut Findings) {
        self.take();
    }
}

impl Pytest {
    fn take(&mut self) {
        if let Some(told) = self.telling.take().filter(|_| self.words.len() < MAX_TOLD) {
            self.words.push(told);
        }
    }

    /// `FAILED tests/test_a.py::test_b - AssertionError: …`
    fn case(&mut self, line: &str, found: &mut Findings) {
        let Some((verdict, rest)) = line.split_once(' ') else { return };
        let outcome = match verdict {
            "PASSED" | "XPASS" => TestOutcome::Passed,
            "FAILED" | "ERROR" => TestOutcome::Failed,
            "SKIPPED" | "XFAIL" => TestOutcome::Ignored,
            _ => return,
        };
        let (name, reason) = rest.split_once(" - ").map_or((rest, None), |(name, reason)| (name, Some(reason)));
        if verdict == "SKIPPED" {
            // `[1] tests/test_a.py:3: why`: it says where and why, not which.
            let (_, place) = name.split_once("] ").unwrap_or(("", name));
            let (place, why) = place.split_once(": ").unwrap_or((place, ""));
            let path = super::findings::place(place).map(|(path, _)| path.to_owned());
            found.case(TestCase {
                name: place.to_owned(),
                outcome,
                message: Some(why.to_owned()),
                path,
                ..TestCase::default()
            });
            return;
        }
        // The heading has `TestClass.test_b[1]` for `test_a.py::TestClass::test_b[1]`.
        let (file, rest) = name.split_once("::").unwrap_or((name, ""));
        let heading = rest.replace("::", ".");
        let told = self.words.iter().position(|(told, _)| *told == heading || told.ends_with(file));
        let words =
            told.filter(|_| outcome == TestOutcome::Failed).map(|told| self.words.remove(told).1.trim().to_owned());
        let message = words.or(reason.map(str::to_owned));
        found.case(TestCase {
            name: name.to_owned(),
            outcome,
            message,
            path: Some(file.to_owned()),
            ..TestCase::default()
        });
    }

    /// `  File "./a.py", line 1`, and some lines later `SyntaxError: …`
    fn syntax(&mut self, line: &str, found: &mut Findings) {
        if let Some(rest) = line.trim_start().strip_prefix("File \"") {
            let place = rest.split_once("\", line ").and_then(|(path, line)| {
                let digits: String = line.chars().take_while(char::is_ascii_digit).collect();
                Some((path.to_owned(), digits.parse::<u32>().ok()?))
            });
            self.place = place;
        } else if ["SyntaxError: ", "IndentationError: ", "TabError: "]
            .iter()
            .any(|error| line.trim_start_matches("Sorry: ").starts_with(error))
            && let Some((path, line_number)) = self.place.take()
        {
            found.diagnostic(Diagnostic {
                path,
                start: (line_number.saturating_sub(1), 0),
                message: line.to_owned(),
                source: "python",
                ..Diagnostic::default()
            });
        }
    }
}

/// `==== title ====`
fn title(line: &str, mark: char) -> Option<&str> {
    let inner = line.trim_matches(mark);
    let is_one = line.starts_with(mark) && line.ends_with(mark) && inner.starts_with(' ') && inner.ends_with(' ');
    is_one.then(|| inner.trim())
}

/// `2 failed, 3 passed, 1 skipped in 0.12s`
fn counts(text: &str) -> Option<TestCounts> {
    let (counts, _) = text.rsplit_once(" in ")?;
    let mut sum = TestCounts::default();
    for part in counts.split(", ") {
        let (number, what) = part.split_once(' ')?;
        let number: u64 = number.parse().ok()?;
        match what {
            "passed" | "xpassed" => sum.passed += number,
            "failed" | "error" | "errors" => sum.failed += number,
            "skipped" | "xfailed" => sum.ignored += number,
            "deselected" | "warning" | "warnings" | "rerun" => {}
            _ => return None,
        }
    }
    Some(sum)
}
