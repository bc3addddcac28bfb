//! Prism's own entry, in the words of each surface, and how it is known again.

use std::net::Ipv4Addr;

use serde_json::Value;

use super::{node::ConfigNode, surface::Surface};

/// The name of the entry, in every file.
pub const NAME: &str = "prism";

/// How a surface comes to the daemon.
#[derive(Clone, Debug)]
pub enum SurfaceTransport {
    Http {
        url: String,
        token: String,
    },
    /// By the shim. `home` is said where it is not the usual one: desktop programs have no shell's variables.
    Stdio {
        command: String,
        home: Option<String>,
    },
}

/// What says that an entry is ours.
#[derive(Clone, Debug)]
pub struct EntryMarks {
    pub url: String,
    pub token: Option<String>,
}

// === impl SurfaceTransport ===

impl SurfaceTransport {
    /// Returns what it is called in reports.
    pub fn transport(&self) -> &'static str {
        match self {
            Self::Http { .. } => "http",
            Self::Stdio { .. } => "stdio",
        }
    }

    /// Returns whether the entry holds the secret.
    pub fn is_secret(&self) -> bool {
        matches!(self, Self::Http { .. })
    }

    /// Returns the entry as the surface wants it.
    pub(super) fn entry(&self, surface: Surface, second_version: bool) -> ConfigNode {
        match self {
            Self::Http { url, token } => http(surface, second_version, url, token),
            Self::Stdio { command, home } => stdio(surface, second_version, command, home.as_deref()),
        }
    }
}

fn http(surface: Surface, second_version: bool, url: &str, token: &str) -> ConfigNode {
    let url = ConfigNode::text(url);
    let headers = ConfigNode::table([("Authorization", ConfigNode::Text(format!("Bearer {token}")))]);
    match surface {
        Surface::ClaudeCode | Surface::VsCode => {
            ConfigNode::table([("type", ConfigNode::text("http")), ("url", url), ("headers", headers)])
        }
        Surface::Windsurf => ConfigNode::table([("serverUrl", url), ("headers", headers)]),
        Surface::GeminiCli => ConfigNode::table([("httpUrl", url), ("headers", headers)]),
        Surface::Codex => ConfigNode::table([("url", url), ("http_headers", headers)]),
        Surface::OpenCode if second_version => {
            ConfigNode::table([("type", ConfigNode::text("remote")), ("url", url), ("headers", headers)])
        }
        Surface::OpenCode => ConfigNode::table([
            ("type", ConfigNode::text("remote")),
            ("url", url),
            ("headers", headers),
            ("enabled", ConfigNode::Other(true.into())),
        ]),
        Surface::Cursor | Surface::ClaudeDesktop | Surface::Void | Surface::Zed => {
            ConfigNode::table([("url", url), ("headers", headers)])
        }
    }
}

fn stdio(surface: Surface, second_version: bool, command: &str, home: Option<&str>) -> ConfigNode {
    let arguments = || ConfigNode::List(vec!["stdio".to_owned()]);
    let mut members = match surface {
        Surface::OpenCode => {
            vec![
                ("type", ConfigNode::text("local")),
                ("command", ConfigNode::List(vec![command.to_owned(), "stdio".to_owned()])),
            ]
        }
        Surface::ClaudeCode | Surface::VsCode => {
            vec![("type", ConfigNode::text("stdio")), ("command", ConfigNode::text(command)), ("args", arguments())]
        }
        _ => vec![("command", ConfigNode::text(command)), ("args", arguments())],
    };
    if let Some(home) = home {
        let name = if surface == Surface::OpenCode { "environment" } else { "env" };
        members.push((name, ConfigNode::table([("PRISM_HOME", ConfigNode::text(home))])));
    }
    if surface == Surface::OpenCode && !second_version {
        members.push(("enabled", ConfigNode::Other(true.into())));
    }
    ConfigNode::Table(members.into_iter().map(|(name, node)| (name.to_owned(), node)).collect())
}

// === impl EntryMarks ===

impl EntryMarks {
    /// Returns whether an entry leads to this Prism: to its port, with its token, or by its shim.
    pub fn are_on(&self, entry: &Value) -> bool {
        if let Some(url) = url(entry) {
            return is_loopback(url)
                && (same_authority(url, &self.url)
                    || self.token.as_deref().is_some_and(|token| {
                        headers(entry).any(|(_, value)| value.as_str() == Some(&format!("Bearer {token}")))
                    }));
        }
        let words = words(entry);
        let program = words.first().and_then(|program| program.rsplit('/').next());
        program == Some("prism") && words.get(1) == Some(&"stdio")
    }
}

/// Returns the URL of an entry, whatever its surface calls it.
pub fn url(entry: &Value) -> Option<&str> {
    ["url", "serverUrl", "httpUrl"].iter().find_map(|key| entry.get(key)?.as_str())
}

pub fn headers(entry: &Value) -> impl Iterator<Item = (&String, &Value)> {
    ["headers", "http_headers"].iter().filter_map(|key| entry.get(key)?.as_object()).flatten()
}

/// Returns the command of an entry: a text and its arguments, or one list, or (Zed's old way) an object.
pub fn words(entry: &Value) -> Vec<&str> {
    let (entry, program) = match entry.get("command") {
        Some(command @ Value::Object(_)) => (command, command.get("path")),
        command => (entry, command),
    };
    match program {
        Some(Value::String(program)) => {
            let arguments = entry.get("args").and_then(Value::as_array).into_iter().flatten();
            std::iter::once(program.as_str()).chain(arguments.filter_map(Value::as_str)).collect()
        }
        Some(Value::Array(words)) => words.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// Returns the host and the port of a URL.
fn authority(url: &str) -> Option<&str> {
    url.split_once("://")?.1.split(['/', '?', '#']).next()
}

/// Whether a URL leads to this machine.
pub(super) fn is_loopback(url: &str) -> bool {
    let Some(authority) = authority(url) else {
        return false;
    };
    let host = authority.rsplit_once(':').filter(|_| !authority.ends_with(']')).map_or(authority, |(host, _)| host);
    let is_loopback = |host: &str| host.parse().is_ok_and(|host: Ipv4Addr| host.is_loopback());
    host.eq_ignore_ascii_case("localhost") || host == "[::1]" || is_loopback(host)
}

/// Whether two URLs of this machine have the same port.
pub(super) fn same_authority(a: &str, b: &str) -> bool {
    let port = |url| authority(url).and_then(|authority| authority.rsplit_once(':')).map(|(_, port)| port.to_owned());
    port(a) == port(b)
}
