//! Why the gate refuses: a code for programs, a sentence for whoever reads it, and the status that HTTP has for it.

use prism_api::refusal::{RefusalDetails, ToldRefusal};
use prism_core::{
    Time,
    policy::{Code, Refusal},
};
use prism_store::{StoreReadError, StoreWriteError, audit::AuditError};

use prism_core::time::ago;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateError {
    pub code: &'static str,
    pub status: u16,
    pub message: String,
    pub retry_after_ms: Option<u64>,
}

impl GateError {
    pub fn new(code: &'static str, status: u16, message: impl Into<String>) -> Self {
        Self { code, status, message: message.into(), retry_after_ms: None }
    }

    pub fn bad(message: impl Into<String>) -> Self {
        Self::new(Code::BadArguments.name(), Code::BadArguments.status(), message)
    }

    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(Code::Forbidden.name(), Code::Forbidden.status(), message)
    }

    pub fn unauthorized(message: impl Into<String>) -> Self {
        Self::new("unauthorized", 401, message)
    }

    pub fn unknown_request() -> Self {
        Self::new("unknown_request", 404, "there is no such request; `prism requests --all` lists them")
    }

    pub fn unknown_session() -> Self {
        Self::new("unknown_session", 404, "there is no such grant; `prism grants` lists them")
    }

    /// `{code, message, details}`.
    pub fn told(&self) -> ToldRefusal {
        let details = RefusalDetails { status: self.status, retry_after_ms: self.retry_after_ms };
        ToldRefusal { code: self.code.to_owned(), message: self.message.clone(), details: Some(details) }
    }
}

/// That somebody was quicker, in the words of the person who is told: `already denied (by you, in the console, 2 min ago)`.
pub(super) fn already(what: &str, by: &str, at_us: Option<i64>, now: Time) -> String {
    let by = match by {
        "command line" => "by you, from the command line".to_owned(),
        "console" => "by you, in the console".to_owned(),
        "http" => "over HTTP".to_owned(),
        other => match other.strip_prefix("editor ") {
            Some(window) => format!("by you, in the editor {window}"),
            None => format!("by {other}"),
        },
    };
    let when = at_us.map(|at| format!(", {}", ago(now.since(Time(at))))).unwrap_or_default();
    format!("already {what} ({by}{when})")
}

impl From<Refusal> for GateError {
    fn from(refusal: Refusal) -> Self {
        let retry_after_ms = refusal.retry_after.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).max(1));
        Self { code: refusal.code.name(), status: refusal.code.status(), message: refusal.message, retry_after_ms }
    }
}

impl From<StoreWriteError> for GateError {
    fn from(error: StoreWriteError) -> Self {
        Self::new("failed", 503, format!("{:#}; nothing was done, try again", anyhow::Error::from(error)))
    }
}

impl From<StoreReadError> for GateError {
    fn from(error: StoreReadError) -> Self {
        Self::new("failed", 503, format!("{:#}; try again", anyhow::Error::from(error)))
    }
}

impl From<AuditError> for GateError {
    fn from(error: AuditError) -> Self {
        let why = format!("{:#}", anyhow::Error::from(error));
        Self::new("failed", 503, format!("the audit log cannot be written, so nothing was done: {why}"))
    }
}
