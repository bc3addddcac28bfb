//! Who has come: what a client calls itself, over which way it came, and what it has done since (D-08).

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use prism_core::{mcp::ClientHello, wire::Message};
use serde::{Deserialize, Serialize};

/// The longest name or version that is kept. The rest is cut.
const MAX_NAME: usize = 64;

/// What is known of a session's client.
#[derive(Debug)]
pub struct ClientActivity {
    who: OnceLock<ClientIdentity>,
    since: Instant,
    calls: AtomicU64,
    /// When the last request came, in milliseconds since it opened.
    last: AtomicU64,
    /// Its bell rings, and the answer to its next tool is to say so.
    rings: AtomicBool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientIdentity {
    /// Name and version; `None` if it gave none.
    pub client: Option<(String, String)>,
    /// The revision that it speaks.
    pub revision: &'static str,
    pub way: ClientTransport,
}

/// Over which transport a client came to Prism.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientTransport {
    #[default]
    Http,
    /// The transport of 2024-11-05.
    Sse,
    /// Its requests come from `prism stdio`.
    Stdio,
}

impl ClientIdentity {
    /// Reads what a client says of itself, `clientInfo`, as it wrote it.
    pub fn new(info: &str, revision: &'static str, way: ClientTransport) -> Self {
        Self { client: read(info), revision, way }
    }
}

/// Name and version of a `clientInfo`.
pub fn read(info: &str) -> Option<(String, String)> {
    #[derive(Deserialize)]
    struct Implementation {
        name: String,
        #[serde(default)]
        version: String,
    }
    let Implementation { name, version } = serde_json::from_str(info).ok()?;
    let cut = |text: String| text.chars().take(MAX_NAME).collect::<String>();
    (!name.is_empty()).then(|| (cut(name), cut(version)))
}

// === impl ClientActivity ===

impl Default for ClientActivity {
    fn default() -> Self {
        let (calls, last, rings) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
        Self { who: OnceLock::new(), since: Instant::now(), calls, last, rings }
    }
}

impl ClientActivity {
    /// One that begins with a client's `initialize`.
    pub fn opened_by(initialize: &Message, way: ClientTransport) -> Arc<Self> {
        let visit = Self::default();
        if let Ok(hello) = ClientHello::read(initialize) {
            visit.introduce(ClientIdentity::new(hello.info.get(), hello.revision.name(), way));
        }
        Arc::new(visit)
    }

    /// Over which way its client came.
    pub fn way(&self) -> ClientTransport {
        self.who().map_or(ClientTransport::Http, |who| who.way)
    }

    /// Notes who it is. Only the first time counts.
    pub fn introduce(&self, who: ClientIdentity) {
        let _ = self.who.set(who);
    }

    /// Notes a request that came then.
    pub fn call(&self, at: Instant) {
        self.calls.fetch_add(1, Relaxed);
        let age = at.saturating_duration_since(self.since).as_millis();
        self.last.store(u64::try_from(age).unwrap_or(u64::MAX), Relaxed);
    }

    pub fn who(&self) -> Option<&ClientIdentity> {
        self.who.get()
    }

    /// Says whether the answer to its next tool is to carry a bell.
    pub fn let_ring(&self, rings: bool) {
        self.rings.store(rings, Relaxed);
    }

    pub fn rings(&self) -> bool {
        self.rings.load(Relaxed)
    }

    pub fn calls(&self) -> u64 {
        self.calls.load(Relaxed)
    }

    pub fn age(&self) -> Duration {
        self.since.elapsed()
    }

    /// How long ago the last request came.
    pub fn idle(&self) -> Duration {
        self.age().saturating_sub(Duration::from_millis(self.last.load(Relaxed)))
    }
}

impl ClientTransport {
    pub fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Sse => "sse",
            Self::Stdio => "stdio",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_known_by_what_it_calls_itself() {
        let named = |info| read(info);
        let some = |name: &str, version: &str| Some((name.to_owned(), version.to_owned()));
        assert_eq!(named(r#"{"name":"cursor","version":"1.2","title":"Cursor"}"#), some("cursor", "1.2"));
        assert_eq!(named(r#"{"name":"x"}"#), some("x", ""));
        assert_eq!(named("{}"), None);
        assert_eq!(named(""), None);
        assert_eq!(named(&format!(r#"{{"name":"{}"}}"#, "x".repeat(500))), some(&"x".repeat(MAX_NAME), ""));
    }
}
