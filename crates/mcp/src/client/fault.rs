//! Why there is no answer, in words for the person who typed the command, and what that person can do about it.

use std::time::Duration;

use serde_json::Value;

use crate::remote::RemoteFailure;

/// Why a server did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("nobody listens there (connection refused)")]
    Refused,
    #[error("there is no such host: {why}")]
    NoHost { why: String },
    #[error("no trusted connection (TLS): {why}")]
    Tls { why: String },
    #[error("the server cannot be reached: {why}")]
    Unreachable { why: String },
    #[error("the server {} (HTTP {status}{})", wish(*.status), told(.why))]
    Unauthorized { status: u16, why: Option<String> },
    #[error("this is a web page, not an MCP server (HTTP {status}, text/html)")]
    Page { status: u16 },
    #[error("the server answered HTTP {status}{}", told(.why))]
    Status { status: u16, why: Option<String> },
    #[error("this is no answer of MCP: {why}")]
    NotMcp { why: String },
    #[error("this is the older HTTP+SSE transport of 2024-11-05, which this command does not speak")]
    OlderTransport,
    #[error("no common revision: we asked for {asked}, the server speaks {}", offered.join(", "))]
    Revision { asked: String, offered: Vec<String> },
    #[error("the server redirects to {to}")]
    Redirected { to: String },
    #[error("the response ended before the answer")]
    Cut,
    #[error("the answer is over {limit} bytes")]
    TooLarge { limit: usize },
    #[error("no {what} within {:.1} s", after.as_secs_f64())]
    Timeout { what: String, after: Duration },
    #[error("{message} (error {code})")]
    Rpc { code: i64, message: String, data: Value },
    #[error("the server still asks after {rounds} rounds of answers")]
    Rounds { rounds: usize },
}

/// What a server wants that does not let us in.
fn wish(status: u16) -> &'static str {
    if status == 401 { "asks you to sign in, or to show a token" } else { "does not take these credentials" }
}

/// What a server said of its refusal, behind a colon.
fn told(why: &Option<String>) -> String {
    why.as_deref().map(|why| format!(": {why}")).unwrap_or_default()
}

impl ClientError {
    /// A short word for programs.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::NoHost { .. } => "no_host",
            Self::Tls { .. } => "tls",
            Self::Unreachable { .. } => "unreachable",
            Self::Unauthorized { .. } => "unauthorized",
            Self::Page { .. } => "html",
            Self::Status { .. } => "status",
            Self::NotMcp { .. } => "not_mcp",
            Self::OlderTransport => "older_transport",
            Self::Revision { .. } => "revision",
            Self::Redirected { .. } => "redirected",
            Self::Cut => "cut",
            Self::TooLarge { .. } => "too_large",
            Self::Timeout { .. } => "timeout",
            Self::Rpc { .. } => "rpc",
            Self::Rounds { .. } => "rounds",
        }
    }

    /// What to do about it, where that is not plain from the words.
    pub fn fix(&self, url: &str) -> Option<String> {
        Some(match self {
            Self::Refused => {
                "start the server, or look at the port in the URL; Prism itself is started by: prism serve".to_owned()
            }
            Self::NoHost { .. } => "look at the host in the URL".to_owned(),
            Self::Tls { .. } => "if the certificate is your own: export SSL_CERT_FILE=/path/to/ca.pem; \
                                 if the server has no TLS: http://"
                .to_owned(),
            Self::Unauthorized { status: 401, .. } => {
                let own = r#"--token @"${PRISM_HOME:-$HOME/.prism}/http-mcp-token""#;
                format!("Prism cannot sign in for you, so use a token: pass --token TOKEN; for Prism's own: {own}")
            }
            Self::Unauthorized { .. } => "the server knows who you are, or where you come from, and says no".to_owned(),
            Self::Page { .. } => {
                let guess = url.trim_end_matches('/');
                format!("look for the MCP endpoint of this server: often it is {guess}/mcp")
            }
            Self::Status { status: 404, .. } => {
                "look at the path in the URL: Prism's servers are at /NAME/mcp".to_owned()
            }
            Self::Status { status: 500..=599, .. } => "look into the server's log".to_owned(),
            Self::OlderTransport => format!("put Prism in front of it: prism run --port 7421 --type sse --url {url}"),
            Self::Revision { .. } => "ask for one of those: --revision, or leave it at auto".to_owned(),
            Self::Redirected { to } => format!("use that URL: {to}"),
            Self::Timeout { .. } => "wait longer with --timeout 60s, or look into the server's log".to_owned(),
            Self::Status { .. }
            | Self::TooLarge { .. }
            | Self::NotMcp { .. }
            | Self::Unreachable { .. }
            | Self::Cut
            | Self::Rpc { .. }
            | Self::Rounds { .. } => return None,
        })
    }

    /// Whether a Prism says that it cannot reach the server behind it.
    pub fn is_behind_prism(&self) -> bool {
        matches!(self, Self::Rpc { data, .. } if data["reason"].is_string())
    }

    /// As an error of a command, with the way out; `advice` is for a server behind a Prism.
    pub fn explained(&self, url: &str, advice: Option<&str>) -> anyhow::Error {
        let advice = advice.filter(|_| self.is_behind_prism()).map(str::to_owned);
        match self.fix(url).or(advice) {
            Some(fix) => anyhow::anyhow!("{self}\n  fix: {fix}"),
            None => anyhow::anyhow!("{self}"),
        }
    }
}

impl From<RemoteFailure> for ClientError {
    fn from(failure: RemoteFailure) -> Self {
        match failure {
            RemoteFailure::Unauthorized { status } => Self::Unauthorized { status, why: None },
            RemoteFailure::Status { status } => Self::Status { status, why: None },
            RemoteFailure::Unreachable { why } if why.contains("refused") => Self::Refused,
            RemoteFailure::Unreachable { why }
                if why.contains("certificate") || why.contains("tls") || why.contains("corrupt message") =>
            {
                Self::Tls { why }
            }
            RemoteFailure::Unreachable { why } if why.contains("dns error") || why.contains("lookup") => {
                Self::NoHost { why }
            }
            RemoteFailure::Unreachable { why } => Self::Unreachable { why },
            RemoteFailure::Cut => Self::Cut,
            RemoteFailure::TooLarge { limit } => Self::TooLarge { limit },
            RemoteFailure::Redirected { to } => Self::Redirected { to },
            RemoteFailure::NotMcp { why } => Self::NotMcp { why },
        }
    }
}
