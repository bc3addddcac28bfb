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
    started: Instant,
    /// Taken when it is recorded.
    request: Option<Request>,
}

/// What is recorded of a request.
pub struct Request {
    at: Timestamp,
    verb: &'static str,
    destination: Option<Arc<DestinationMetrics>>,
    method: Option<Method>,
    /// The method's name and the id as the client wrote them: JSON text.
    name: Option<Box<str>>,
    id: Option<Box<str>>,
    status: u16,
    took: Duration,
    /// The request's and the response's.
    bodies: Option<Box<[Bytes; 2]>>,
}

// === impl Pending ===

impl Pending {
    pub fn start(access: &Access, verb: &'static str) -> Self {
        let request = Request {
            at: Timestamp::default(),
            verb,
            destination: None,
            method: None,
            name: None,
            id: None,
            // What nginx says of a client that left before the answer.
            status: 499,
            took: Duration::ZERO,
            bodies: access.bodies.then(Box::default),
        };
        Self { access: access.clone(), started: Instant::now(), request: Some(request) }
    }

    pub fn destination(&mut self, metrics: &Arc<DestinationMetrics>) {
        if let Some(request) = &mut self.request {
            request.destination = Some(metrics.clone());
        }
    }

    pub fn message(&mut self, method: Method, name: Option<&str>, id: Option<&str>) {
        if let Some(request) = &mut self.request {
            request.method = Some(method);
            // A known name is in the table; only a foreign one has to be kept.
            request.name = name.filter(|_| method == Method::Other).map(|name| cut(name).into());
            request.id = id.map(|id| cut(id).into());
        }
    }

    pub fn request_body(&mut self, body: &Bytes) {
        if let Some([request, _]) = self.bodies() {
            *request = body.slice(..body.len().min(MAX_BODY));
        }
    }

    pub fn response_body(&mut self, body: impl FnOnce() -> Vec<u8>) {
        if let Some([_, response]) = self.bodies() {
            let mut body = body();
            body.truncate(MAX_BODY);
            *response = Bytes::from(body);
        }
    }

    pub fn status(&mut self, status: u16) {
        if let Some(request) = &mut self.request {
            request.status = status;
        }
    }

    fn bodies(&mut self) -> Option<&mut [Bytes; 2]> {
        self.request.as_mut()?.bodies.as_deref_mut()
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let Some(mut request) = self.request.take() else { return };
        request.took = self.started.elapsed();
        if let Some(destination) = &request.destination {
            destination.request(request.verb, request.method, request.status, request.took);
        }
        if self.access.log.wants_access() {
            request.at = Timestamp::now();
            self.access.log.request(request);
        }
    }
}

// === impl Request ===

impl Request {
    /// Puts the record into words, on one line.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        // Writing to memory cannot fail.
        let _ = self.try_write(out);
    }

    fn try_write(&self, out: &mut Vec<u8>) -> std::io::Result<()> {
        let destination = self.destination.as_ref().map_or("-", |d| d.name());
        write!(out, "{}  INFO {} destination={destination}", self.at, self.verb)?;
        match (&self.name, self.method) {
            (Some(name), _) => write!(out, " mcp_method={}", printable(name))?,
            (None, Some(method)) => write!(out, " mcp_method={}", method.name())?,
            (None, None) => {}
        }
        if let Some(id) = &self.id {
            write!(out, " rpc_id={}", printable(id))?;
        }
        let micros = self.took.as_micros();
        write!(out, " status_code={} latency_ms={}.{:03}", self.status, micros / 1000, micros % 1000)?;
        if let Some(bodies) = &self.bodies {
            for (name, body) in ["request_body", "response_body"].iter().zip(bodies.iter()) {
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
