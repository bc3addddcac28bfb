//! Why a request gets no answer, in words that hold nothing secret.

use std::fmt;

/// Why a request gets no answer.
#[derive(Debug, PartialEq, Eq)]
pub enum RemoteFailure {
    /// 401 or 403.
    Unauthorized {
        status: u16,
    },
    /// Another status that says no, without a JSON-RPC body.
    Status {
        status: u16,
    },
    /// There was no connection: it was certainly not processed.
    Unreachable {
        why: String,
    },
    /// The response ended without the answer and cannot be resumed.
    Cut,
    TooLarge {
        limit: usize,
    },
    /// To another origin, too often, or in a way that would not keep the request as it is.
    Redirected {
        to: String,
    },
    /// The answer is none that MCP knows.
    NotMcp {
        why: String,
    },
}

impl RemoteFailure {
    /// What to call it in the log, without what a server has a hand in.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Unauthorized { .. } => "unauthorized",
            Self::Status { .. } => "status",
            Self::Unreachable { .. } => "unreachable",
            Self::Cut => "cut",
            Self::TooLarge { .. } => "too_large",
            Self::Redirected { .. } => "redirected",
            Self::NotMcp { .. } => "not_mcp",
        }
    }
}

impl fmt::Display for RemoteFailure {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Unauthorized { status } => write!(f, "the server refused our credentials ({status})"),
            Self::Status { status } => write!(f, "the server answered {status}"),
            Self::Unreachable { why } => write!(f, "the server cannot be reached: {why}"),
            Self::Cut => f.write_str("the server's response ended before the answer"),
            Self::TooLarge { limit } => write!(f, "the server's answer is over {limit} bytes"),
            Self::Redirected { to } => write!(f, "the server redirects to {to}"),
            Self::NotMcp { why } => write!(f, "this is no answer of MCP: {why}"),
        }
    }
}
