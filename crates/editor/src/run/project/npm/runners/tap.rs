//! TAP, as node writes it: a line for each test, indented as deep as the suites it is in, then a few lines about it.

use crate::run::project::findings::{Findings, TestCase, TestOutcome, place};

#[derive(Debug, Default)]
pub(super) struct Tap {
    /// The names of the tests and suites that are open, by depth.
    names: Vec<String>,
    /// What the lines that follow are about.
    last: Option<Last>,
    /// Whether the lines are the rest of its message.
    is_telling: bool,
}

#[derive(Debug)]
struct Last {
    case: TestCase,
    is_suite: bool,
}

const MAX_DEPTH: usize = 64;

/// Bytes of a failed test's words. The rest is dropped.
const MAX_WORDS: usize = 4 << 10;

impl Tap {
    pub(super) fn line(&mut self, line: &str, found: &mut Findings) {
        let text = line.trim_start();
        let depth = ((line.len() - text.len()) / 4).min(MAX_DEPTH);
        if let Some(name) = text.strip_prefix("# Subtest: ") {
            self.end(found);
            self.names.truncate(depth);
            self.names.push(name.to_owned());
        } else if let Some(case) = self.case(text, depth) {
            self.end(found);
            self.last = Some(Last { case, is_suite: false });
        } else if let Some(sum) = text.strip_prefix("# ").filter(|_| depth == 0) {
            self.end(found);
            if let Some((what, number)) = sum.split_once(' ')
                && let Ok(number) = number.parse::<u64>()
            {
                super::count(found.summary.get_or_insert_default(), what, number);
            }
        } else if text == "..." {
            self.end(found);
        } else {
            self.about(text);
        }
    }

    /// `not ok 2 - lies`, `ok 3 - later # SKIP not yet`
    fn case(&self, text: &str, depth: usize) -> Option<TestCase> {
        let (mut outcome, rest) = match text.strip_prefix("not ok ") {
            Some(rest) => (TestOutcome::Failed, rest),
            None => (TestOutcome::Passed, text.strip_prefix("ok ")?),
        };
        let (_, name) = rest.split_once(" - ")?;
        let (name, directive) =
            name.split_once(" # ").map_or((name, None), |(name, directive)| (name, Some(directive)));
        let mut message = None;
        if let Some(directive) = directive
            && let Some(why) = directive.strip_prefix("SKIP").or_else(|| directive.strip_prefix("TODO"))
        {
            outcome = TestOutcome::Ignored;
            message = Some(why.trim().to_owned()).filter(|why| !why.is_empty());
        }
        let above = self.names.iter().take(depth).map(String::as_str);
        let name = above.chain([name]).collect::<Vec<_>>().join(" > ");
        Some(TestCase { name, outcome, message, ..TestCase::default() })
    }

    fn about(&mut self, text: &str) {
        let Some(Last { case, is_suite }) = &mut self.last else { return };
        let known = ["duration_ms", "type", "location", "failureType", "error", "code", "name", "expected", "actual"];
        let known = known.iter().chain(&["operator", "stack", "severity"]);
        let entry = text.split_once(':').filter(|(key, _)| known.clone().any(|known| known == key));
        let Some((key, value)) = entry else {
            if self.is_telling
                && let Some(message) = &mut case.message
                && message.len() + text.len() < MAX_WORDS
            {
                message.push_str(text);
                message.push('\n');
            }
            return;
        };
        let value = value.trim();
        let bare = value.trim_matches('\'');
        self.is_telling = false;
        match key {
            "duration_ms" => case.duration_ms = value.parse::<f64>().ok().map(|duration| duration.round() as u64),
            "type" => *is_suite = bare == "suite",
            "location" => case.path = place(bare).map(|(path, _)| path.to_owned()),
            "error" if value.starts_with(['|', '>']) => {
                case.message = Some(String::new());
                self.is_telling = true;
            }
            "error" => case.message = Some(bare.to_owned()),
            _ => {}
        }
    }

    /// Tells of the last test, once all about it is known.
    pub(super) fn end(&mut self, found: &mut Findings) {
        self.is_telling = false;
        if let Some(Last { mut case, is_suite: false }) = self.last.take() {
            case.message = case.message.map(|message| message.trim_end().to_owned());
            found.case(case);
        }
    }
}
