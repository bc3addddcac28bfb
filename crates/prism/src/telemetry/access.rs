//! One record per request: POST at its answer, GET when its stream closes, DELETE (B-23).

use std::{
    io::Write,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use prism_core::mcp::Method;

use super::{
    log::{Log, Timestamp},
    metrics::{DestinationMetrics, Metrics},
};

/// The longest text of a client's making that enters the log. The rest is cut.
const MAX_TEXT: usize = 128;
/// The same for a body, where bodies are logged at all.
const MAX_BODY: usize = 64 << 10;

/// Where records of requests go: the log and the metrics.
#[derive(Clone)]
pub struct Access {
    pub log: Log,
    pub metrics: Arc<Metrics>,
    /// Whether records carry the bodies.
    pub bodies: bool,
}

/// A request that is being served. It is recorded when this is dropped, however that comes about: a client that leaves
/// is recorded too.
pub struct Pending {
    access: Access,
    verb: &'static str,
    destination: Option<Arc<DestinationMetrics>>,
    method: Option<Method>,
    /// The method's name and the id as the client wrote them: JSON text.
    name: Option<Box<str>>,
    id: Option<Box<str>>,
    status: u16,
    started: Instant,
    request: Option<Bytes>,
    response: Option<Bytes>,
}

// === impl Pending ===

impl Pending {
    pub fn start(access: &Access, verb: &'static str) -> Self {
        Self {
            access: access.clone(),
            verb,
            destination: None,
            method: None,
            name: None,
            id: None,
            // What nginx says of a client that left before the answer.
            status: 499,
            started: Instant::now(),
            request: None,
            response: None,
        }
    }

    pub fn destination(&mut self, metrics: &Arc<DestinationMetrics>) {
        self.destination = Some(metrics.clone());
    }

    pub fn message(&mut self, method: Method, name: Option<&str>, id: Option<&str>) {
        self.method = Some(method);
        // A known name is in the table; only a foreign one has to be kept.
        self.name = name.filter(|_| method == Method::Other).map(|name| cut(name).into());
        self.id = id.map(|id| cut(id).into());
    }

    pub fn request_body(&mut self, body: &Bytes) {
        if self.access.bodies {
            self.request = Some(body.slice(..body.len().min(MAX_BODY)));
        }
    }

    pub fn response_body(&mut self, body: impl FnOnce() -> Vec<u8>) {
        if self.access.bodies {
            let mut body = body();
            body.truncate(MAX_BODY);
            self.response = Some(Bytes::from(body));
        }
    }

    pub fn status(&mut self, status: u16) {
        self.status = status;
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let took = self.started.elapsed();
        if let Some(destination) = &self.destination {
            destination.request(self.verb, self.method, self.status, took);
        }
        if self.access.log.wants_access() {
            self.access.log.record(|out| {
                // Writing to memory cannot fail.
                let _ = self.write(out, took);
            });
        }
    }
}

impl Pending {
    fn write(&self, out: &mut Vec<u8>, took: Duration) -> std::io::Result<()> {
        let destination = self.destination.as_ref().map_or("-", |d| d.name());
        write!(out, "{}  INFO {} destination={destination}", Timestamp::now(), self.verb)?;
        match (&self.name, self.method) {
            (Some(name), _) => write!(out, " mcp_method={}", printable(name))?,
            (None, Some(method)) => write!(out, " mcp_method={}", method.name())?,
            (None, None) => {}
        }
        if let Some(id) = &self.id {
            write!(out, " rpc_id={}", printable(id))?;
        }
        let micros = took.as_micros();
        write!(out, " status_code={} latency_ms={}.{:03}", self.status, micros / 1000, micros % 1000)?;
        for (name, body) in [("request_body", &self.request), ("response_body", &self.response)] {
            if let Some(body) = body {
                write!(out, " {name}={}", printable(&String::from_utf8_lossy(body)))?;
            }
        }
        out.push(b'\n');
        Ok(())
    }
}

fn cut(text: &str) -> &str {
    let end = (0..=MAX_TEXT.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    &text[..end]
}

/// Text of a client's making, on one line and without control characters: nobody writes records but us.
fn printable(text: &str) -> impl std::fmt::Display {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_cut_between_characters() {
        assert_eq!(cut("short"), "short");
        let long = "ä".repeat(200);
        assert!(cut(&long).len() <= MAX_TEXT && long.starts_with(cut(&long)));
    }

    #[test]
    fn a_client_cannot_forge_a_record() {
        assert_eq!(printable("1\n2026 INFO forged").to_string(), "1 2026 INFO forged");
    }
}
