//! Go: `go test -json` tells of each test as it ends; the compiler and `vet` write lines.

use std::collections::HashMap;

use serde::Deserialize;

use super::findings::{Diagnostic, Findings, OutputReader, TestCase, TestOutcome, placed_line};

#[derive(Debug, Default)]
pub(super) struct Go {
    /// What running tests have printed so far.
    words: HashMap<(String, String), String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct GoTestEvent {
    action: String,
    #[serde(default)]
    package: String,
    test: Option<String>,
    output: Option<String>,
    elapsed: Option<f64>,
}

/// Running tests whose words are kept, and bytes of each. What is beyond is dropped.
const MAX_RUNNING: usize = 1000;
const MAX_WORDS: usize = 8 << 10;

impl OutputReader for Go {
    fn line(&mut self, line: &str, found: &mut Findings) {
        match serde_json::from_str::<GoTestEvent>(line) {
            Ok(event) if line.starts_with('{') => self.event(event, found),
            _ => compiled(line, found),
        }
    }
}

impl Go {
    fn event(&mut self, event: GoTestEvent, found: &mut Findings) {
        let GoTestEvent { action, package, test, output, elapsed } = event;
        if action == "build-output" {
            compiled(output.as_deref().unwrap_or_default().trim_end(), found);
            return;
        }
        let Some(test) = test else {
            // What a package says by itself: that it does not compile, say.
            compiled(output.as_deref().unwrap_or_default().trim_end(), found);
            return;
        };
        let outcome = match action.as_str() {
            "run" => {
                found.expected += 1;
                return;
            }
            "output" => {
                if self.words.len() < MAX_RUNNING || self.words.contains_key(&(package.clone(), test.clone())) {
                    let words = self.words.entry((package, test)).or_default();
                    let output = output.unwrap_or_default();
                    if words.len() + output.len() < MAX_WORDS && !is_frame(&output) {
                        words.push_str(&output);
                    }
                }
                return;
            }
            "pass" => TestOutcome::Passed,
            "fail" => TestOutcome::Failed,
            "skip" => TestOutcome::Ignored,
            _ => return,
        };
        let words = self.words.remove(&(package.clone(), test.clone())).unwrap_or_default();
        let message = (outcome != TestOutcome::Passed && !words.trim().is_empty()).then(|| words.trim().to_owned());
        let path = message.as_deref().and_then(|message| message.lines().find_map(|line| placed_line(line.trim())));
        let path = path.map(|(path, _, _)| path.to_owned());
        let duration_ms = elapsed.map(|seconds| (seconds * 1000.0).round() as u64);
        found.case(TestCase { name: format!("{package}.{test}"), outcome, message, path, duration_ms });
    }
}

/// `=== RUN   TestA`, `--- FAIL: TestA (0.00s)`: what is known already.
fn is_frame(line: &str) -> bool {
    let line = line.trim_start();
    ["=== ", "--- PASS", "--- FAIL", "--- SKIP"].iter().any(|frame| line.starts_with(frame))
}

/// `./a.go:3:2: undefined: x`, also behind `vet: `.
fn compiled(line: &str, found: &mut Findings) {
    let line = line.strip_prefix("vet: ").unwrap_or(line);
    let Some((path, start, message)) = placed_line(line).filter(|(path, _, _)| path.ends_with(".go")) else { return };
    let (path, message) = (path.to_owned(), message.to_owned());
    found.diagnostic(Diagnostic { path, start, message, source: "go", ..Diagnostic::default() });
}
