//! What of a request's head goes on to a server over HTTP (B-22). What of the server's head comes back with the answer is in
//! `prism_mcp::remote::returned`.
//!
//! Prism is the client there, so nothing passes by itself but what ties one call together across machines, and what tells for
//! whom an answer is written. `forward_headers` lets more through. Credentials never pass: they open Prism, or something that
//! the server has no business with; what a server wants is in its `headers`.

use std::sync::{Arc, OnceLock};

use hyper::{
    HeaderMap,
    header::{HeaderName, HeaderValue},
};

use prism_config::{HttpConfig, may_forward};

/// Headers that always pass: tracing (W3C), ids of requests, and the language that a person reads.
const ALWAYS: [&str; 6] =
    ["accept-language", "baggage", "traceparent", "tracestate", "x-correlation-id", "x-request-id"];

/// Those of them that are of one request, and of no other of the same session.
const OF_ONE_REQUEST: [&str; 5] = ["baggage", "traceparent", "tracestate", "x-correlation-id", "x-request-id"];

/// The most that one request carries along, and the longest of it. The rest stays behind.
const MAX_CARRIED: usize = 32;
const MAX_VALUE: usize = 4096;

/// What one request carries along, and what it brings back.
#[derive(Debug, Default)]
pub struct ForwardedHeaders {
    to: Vec<(HeaderName, HeaderValue)>,
    back: OnceLock<HeaderMap>,
}

impl ForwardedHeaders {
    /// Takes from a head what any of these servers may get.
    pub fn gather<'a>(head: &HeaderMap, servers: impl Iterator<Item = &'a HttpConfig> + Clone) -> Option<Arc<Self>> {
        servers.clone().next()?;
        let may = |name: &HeaderName| servers.clone().any(|server| passes(server, name));
        let to = head.iter().filter(|(name, value)| value.len() <= MAX_VALUE && may(name));
        let to = to.take(MAX_CARRIED).map(|(name, value)| (name.clone(), value.clone())).collect();
        Some(Arc::new(Self { to, back: OnceLock::new() }))
    }

    /// What of it goes to this server.
    pub fn to(&self, server: &HttpConfig) -> Vec<(HeaderName, HeaderValue)> {
        self.to.iter().filter(|(name, _)| passes(server, name)).cloned().collect()
    }

    /// What of it goes to this server with the rest of the session that it has opened.
    pub fn lasting(&self, server: &HttpConfig) -> Vec<(HeaderName, HeaderValue)> {
        let mut to = self.to(server);
        to.retain(|(name, _)| !OF_ONE_REQUEST.contains(&name.as_str()));
        to
    }

    /// Notes what came back with the answer. Only the first counts: a call has one.
    pub fn answered(&self, head: HeaderMap) {
        let _ = self.back.set(head);
    }

    pub fn back(&self) -> Option<&HeaderMap> {
        self.back.get()
    }
}

fn passes(server: &HttpConfig, name: &HeaderName) -> bool {
    let name = name.as_str();
    let named = |pattern: &String| match pattern.strip_suffix('*') {
        Some(begin) => name.starts_with(begin),
        None => name == pattern,
    };
    // Most of what comes is nobody's: the short look goes first.
    (ALWAYS.contains(&name) || server.forward_headers.iter().any(named)) && may_forward(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(names: &[&'static str]) -> HeaderMap {
        names.iter().map(|name| (HeaderName::from_static(name), HeaderValue::from_static("1"))).collect()
    }

    fn carried(names: &[&'static str], forward: &[&str]) -> Vec<String> {
        let forward_headers = forward.iter().map(|name| (*name).to_owned()).collect();
        let server = HttpConfig { forward_headers, ..HttpConfig::new("https://example.com/mcp") };
        let carried = ForwardedHeaders::gather(&head(names), [&server].into_iter()).unwrap();
        let mut to: Vec<String> = carried.to(&server).into_iter().map(|(name, _)| name.to_string()).collect();
        to.sort_unstable();
        to
    }

    //
    #[test]
    fn tracing_always_passes_and_the_rest_only_where_it_is_asked_for() {
        let names = ["traceparent", "tracestate", "baggage", "x-tenant", "x-team-id", "user-agent", "authorization"];
        assert_eq!(carried(&names, &[]), ["baggage", "traceparent", "tracestate"]);
        assert_eq!(carried(&["x-tenant", "x-team-id", "y"], &["x-tenant"]), ["x-tenant"]);
        assert_eq!(carried(&["x-tenant", "x-team-id", "y"], &["x-*"]), ["x-team-id", "x-tenant"]);
    }

    //
    #[test]
    fn credentials_and_what_is_the_protocols_never_pass() {
        let names = [
            "authorization",
            "cookie",
            "proxy-authorization",
            "mcp-session-id",
            "host",
            "connection",
            "prism-transport",
        ];
        assert!(carried(&names, &["*"]).is_empty());
        assert!(names.iter().all(|name| !may_forward(name)));
    }
}
