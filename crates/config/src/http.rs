//! Servers that somebody else runs: what their URL and our headers to them may be. How that is written in a file is
//! `raw.rs`; how such a server is spoken to is `mcp::remote`.
//!
//! Headers are where people keep their tokens, and a URL's query sometimes is. So neither is ever repeated in a
//! complaint, and `Debug` shows neither.

use std::{collections::BTreeMap, fmt};

use hyper::{
    Uri,
    header::{HeaderName, HeaderValue},
};

use prism_core::mcp::Transport;

use super::{
    ConfigError, Env, Origin,
    secret::{self, SecretError, SecretReference},
    value::{self, ConfigValue},
};

#[cfg(test)]
mod tests;

/// A server behind a URL.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpConfig {
    /// Absolute, `http` or `https`, without user and fragment.
    pub url: String,
    /// How it is spoken to; `None` finds out.
    pub transport: Option<Transport>,
    /// What every request to it carries, beside what the protocol wants. As it is written: what stands elsewhere is
    /// looked up when it is connected to (`secret.rs`).
    pub headers: BTreeMap<String, String>,
    /// Which headers of clients it gets to see, beside those that always pass: names in small letters, or their beginnings
    /// with `*` behind.
    pub forward_headers: Vec<String>,
}

/// What is wrong with a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum HeaderError {
    #[error("is not the name of a header")]
    Name,
    #[error("belongs to the protocol, and Prism sets it by itself")]
    Protocol,
    #[error("is there twice: capitals make no difference in the name of a header")]
    Twice,
    #[error("{0}")]
    Reference(&'static str),
    #[error("has a value that no header can carry: one line, without blanks around it")]
    Value,
}

/// Headers while they are being read.
pub(super) struct HeaderReader<'a> {
    destination: &'a str,
    /// Where references are looked up; without it, they stay as they are written.
    env: Option<&'a Env>,
    read: BTreeMap<String, String>,
}

/// Headers that we set, because the protocol says how, or because they are about the connection and not the message.
const PROTOCOL_HEADERS: [&str; 17] = [
    "accept",
    "connection",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
const PROTOCOL_PREFIX: &str = "mcp-param-";

/// Headers that no setting lets through: credentials, the protocol's, the connection's, and what says where a request is from.
const NEVER: [&str; 28] = [
    "accept",
    "accept-encoding",
    "authorization",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "cookie",
    "cookie2",
    "expect",
    "forwarded",
    "host",
    "keep-alive",
    "last-event-id",
    "mcp-session-id",
    "origin",
    "prism-instance",
    "proxy-authorization",
    "referer",
    "set-cookie",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
];
const NEVER_PREFIXES: [&str; 4] = ["mcp-", "prism-", "proxy-", "sec-"];

/// Whether a header of this name may be let through by a setting at all.
pub fn may_forward(name: &str) -> bool {
    !NEVER.contains(&name) && !NEVER_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Checks a URL, and returns what is wrong with it.
pub(super) fn check_url(text: &str) -> Result<(), &'static str> {
    if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("has a character that no URL has: blanks and letters beyond ASCII are written as %20 and the like");
    }
    if text.contains('#') {
        return Err("has a fragment (#...), which no server ever sees");
    }
    let uri: Uri = text.parse().map_err(|_| "is not a URL")?;
    let (Some("http" | "https"), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
        return Err("is not an absolute http or https URL");
    };
    if authority.as_str().contains('@') {
        return Err("has a user or a password in it, which belong into headers");
    }
    if authority.host().is_empty() {
        return Err("has no host");
    }
    // What follows the host is nothing, or a colon and a port that fits.
    let has_port = authority.as_str().len() > authority.host().len();
    if has_port && authority.port_u16().is_none_or(|port| port == 0) {
        return Err("has a port that is not one");
    }
    Ok(())
}

/// Checks a header as it is written, which may end with a reference.
pub(super) fn check_header(name: &str, value: &str) -> Result<(), HeaderError> {
    let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| HeaderError::Name)?;
    // `HeaderName` is in small letters, whatever it was made from.
    if PROTOCOL_HEADERS.contains(&name.as_str()) || name.as_str().starts_with(PROTOCOL_PREFIX) {
        return Err(HeaderError::Protocol);
    }
    if !is_header_value(value) {
        return Err(HeaderError::Value);
    }
    secret::check_header(value).map_err(HeaderError::Reference)
}

/// Blanks around a value are not part of it on the wire, so one that has them would not arrive as it is.
pub fn is_header_value(value: &str) -> bool {
    HeaderValue::from_str(value).is_ok() && value.trim() == value
}

// === impl HttpConfig ===

impl HttpConfig {
    /// A URL with nothing more to say about it. It is not checked.
    #[must_use]
    pub fn new(url: &str) -> Self {
        Self { url: url.to_owned(), transport: None, headers: BTreeMap::new(), forward_headers: Vec::new() }
    }

    /// Checks what a command line says. With an environment references are looked up, without one they stay.
    pub fn from_flags(
        destination: &str,
        url: &str,
        transport: Option<Transport>,
        headers: &[(String, String)],
        env: Option<&Env>,
    ) -> Result<Self, ConfigError> {
        let url =
            value::url(&ConfigValue::Bare(url)).map_err(|wrong| wrong.at("url", &Origin::Flag("url".to_owned())))?;
        let mut read = HeaderReader::new(destination, env);
        let at = Origin::Flag("header".to_owned());
        for (name, value) in headers {
            read.add(name, name, value, &at)?;
        }
        Ok(Self { url, transport, headers: read.finish(), forward_headers: Vec::new() })
    }

    /// Returns the URL as far as it is fit to be shown: without its query.
    #[must_use]
    pub fn shown_url(&self) -> &str {
        self.url.split('?').next().unwrap_or_default()
    }
}

impl fmt::Debug for HttpConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&String> = self.headers.keys().collect();
        f.debug_struct("Http")
            .field("url", &self.shown_url())
            .field("transport", &self.transport)
            .field("headers", &names)
            .field("forward_headers", &self.forward_headers)
            .finish()
    }
}

// === impl HeaderError ===

impl HeaderError {
    fn fix(self, name: &str, at: &Origin) -> String {
        match (self, at) {
            (Self::Protocol, _) => "take it out".to_owned(),
            (Self::Twice, _) => "keep one of the two".to_owned(),
            (Self::Name, Origin::Flag(flag)) => format!("--{flag} 'Authorization: Bearer env:NAME'"),
            (Self::Name, _) => "headers = { Authorization = \"Bearer env:NAME\" }".to_owned(),
            (Self::Reference(_) | Self::Value, Origin::Flag(flag)) => format!("--{flag} '{name}: env:NAME'"),
            (Self::Reference(_) | Self::Value, _) => format!("{name} = \"env:NAME\""),
        }
    }
}

// === impl HeaderReader ===

impl<'a> HeaderReader<'a> {
    pub(super) fn new(destination: &'a str, env: Option<&'a Env>) -> Self {
        Self { destination, env, read: BTreeMap::new() }
    }

    /// Checks a header and takes it in; `key` is what a complaint calls it.
    pub(super) fn add(&mut self, key: &str, name: &str, value: &str, at: &Origin) -> Result<(), ConfigError> {
        let refuse = |error: HeaderError, fix: String| ConfigError::Value {
            at: at.clone(),
            key: key.to_owned(),
            problem: error.to_string(),
            fix,
        };
        check_header(name, value).map_err(|error| refuse(error, error.fix(name, at)))?;
        if self.read.keys().any(|other| other.eq_ignore_ascii_case(name)) {
            return Err(refuse(HeaderError::Twice, HeaderError::Twice.fix(name, at)));
        }
        let value = match (secret::of_header(value), self.env) {
            (Some(reference), Some(env)) => {
                if let SecretReference::Variable(variable) = reference {
                    env.wanted(variable, self.destination, at)?;
                }
                let why = |error: SecretError| ConfigError::Value {
                    at: at.clone(),
                    key: key.to_owned(),
                    problem: "cannot be looked up".to_owned(),
                    fix: error.to_string(),
                };
                let value = secret::resolve_header(value, env).map_err(why)?;
                if !is_header_value(&value) {
                    return Err(refuse(HeaderError::Value, "mend what it is taken from".to_owned()));
                }
                value
            }
            _ => value.to_owned(),
        };
        self.read.insert(name.to_owned(), value);
        Ok(())
    }

    pub(super) fn finish(self) -> BTreeMap<String, String> {
        self.read
    }
}
