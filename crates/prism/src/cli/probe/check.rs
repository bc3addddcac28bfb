//! What a probe finds, one by one.

use serde_json::{Value, json};

/// One thing that was looked at.
#[derive(Clone, Debug)]
pub(super) struct ProbeCheck {
    /// A stable name, for programs and for people who talk about it.
    pub(super) name: &'static str,
    pub(super) verdict: ProbeVerdict,
    /// What was seen.
    pub(super) reason: String,
    /// What to do about it.
    pub(super) fix: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProbeVerdict {
    Ok,
    Fail,
    Skipped,
}

pub(super) fn ok(name: &'static str, reason: impl Into<String>) -> ProbeCheck {
    ProbeCheck { name, verdict: ProbeVerdict::Ok, reason: reason.into(), fix: None }
}

pub(super) fn fail(name: &'static str, reason: impl Into<String>, fix: &str) -> ProbeCheck {
    ProbeCheck { name, verdict: ProbeVerdict::Fail, reason: reason.into(), fix: Some(fix.to_owned()) }
}

pub(super) fn skipped(name: &'static str, reason: impl Into<String>) -> ProbeCheck {
    ProbeCheck { name, verdict: ProbeVerdict::Skipped, reason: reason.into(), fix: None }
}

impl ProbeVerdict {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Fail => "FAIL",
            Self::Skipped => "skipped",
        }
    }
}

impl ProbeCheck {
    pub(super) fn json(&self) -> Value {
        let verdict = self.verdict.word().to_lowercase();
        json!({"name": self.name, "verdict": verdict, "reason": self.reason, "fix": self.fix})
    }
}
