//! Whether a destination is known to be quiet: to never ask its client anything (B-04).
//!
//! Clients that can answer questions get a child each, because a pipe does not say whose call a question belongs to. A
//! server that never asks makes that isolation pure cost, so it is watched, and once it has shown enough, shared. What
//! is enough is every tool it lists, several times over: a server that asks only in one rare tool must not be taken for
//! quiet after a thousand calls of the others.

use std::collections::BTreeMap;

/// Answered calls without a question that each listed tool must have.
const CALLS_PER_TOOL: u32 = 5;
/// And of all of them together.
const CALLS: u32 = 50;
/// Tools that are counted; a server with more stays isolated.
const MAX_TOOLS: usize = 2048;

/// What was seen of one destination, over all its children.
#[derive(Debug, Default)]
pub struct QuestionLedger {
    tools: BTreeMap<String, u32>,
    listed: bool,
    verdict: QuietVerdict,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QuietVerdict {
    #[default]
    Unknown,
    Quiet,
    Asks,
}

impl QuestionLedger {
    pub fn with_verdict(verdict: QuietVerdict) -> Self {
        Self { verdict, ..Self::default() }
    }

    pub fn verdict(&self) -> QuietVerdict {
        self.verdict
    }

    /// Notes the tools of one page of `tools/list`.
    pub fn page(&mut self, names: &[String]) {
        for name in names {
            if self.tools.len() < MAX_TOOLS || self.tools.contains_key(name) {
                self.tools.entry(name.clone()).or_default();
            } else {
                self.verdict = QuietVerdict::Asks;
            }
        }
    }

    /// Notes that the last page has come.
    pub fn listed(&mut self) {
        self.listed = true;
    }

    /// Notes a call of a tool that was answered without a question, by a client that could have been asked. Returns
    /// true when that was the last proof needed.
    pub fn answered(&mut self, tool: &str) -> bool {
        let Some(calls) = self.tools.get_mut(tool) else { return false };
        *calls = calls.saturating_add(1);
        let enough = self.listed
            && self.verdict == QuietVerdict::Unknown
            && self.tools.values().all(|calls| *calls >= CALLS_PER_TOOL)
            && self.tools.values().fold(0, |sum: u32, calls| sum.saturating_add(*calls)) >= CALLS;
        if enough {
            self.verdict = QuietVerdict::Quiet;
        }
        enough
    }

    /// Notes a question. Returns true when the destination was taken for quiet until now.
    pub fn asked(&mut self) -> bool {
        let was_quiet = self.verdict == QuietVerdict::Quiet;
        self.verdict = QuietVerdict::Asks;
        was_quiet
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger(tools: &[&str]) -> QuestionLedger {
        let mut ledger = QuestionLedger::default();
        ledger.page(&tools.iter().map(|tool| (*tool).to_owned()).collect::<Vec<_>>());
        ledger.listed();
        ledger
    }

    fn answered(ledger: &mut QuestionLedger, tool: &str, times: u32) -> bool {
        (0..times).any(|_| ledger.answered(tool))
    }

    #[test]
    fn quiet_needs_every_listed_tool_and_enough_calls() {
        let mut ledger = ledger(&["echo", "ask"]);
        assert!(!answered(&mut ledger, "echo", 5000), "one tool was never tried");
        assert!(answered(&mut ledger, "ask", CALLS_PER_TOOL));
        assert_eq!(ledger.verdict(), QuietVerdict::Quiet);
    }

    #[test]
    fn a_question_unlearns_quiet_for_good() {
        let mut ledger = ledger(&["echo"]);
        assert!(answered(&mut ledger, "echo", CALLS));
        assert!(ledger.asked());
        assert!(!ledger.asked());
        assert!(!answered(&mut ledger, "echo", 5000));
        assert_eq!(ledger.verdict(), QuietVerdict::Asks);
    }

    #[test]
    fn calls_without_a_list_prove_nothing() {
        let mut ledger = QuestionLedger::default();
        assert!(!answered(&mut ledger, "echo", 5000));
        assert_eq!(ledger.verdict(), QuietVerdict::Unknown);
    }
}
