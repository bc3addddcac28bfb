//! One record per request: POST at its answer, GET when its stream closes, DELETE (B-23).

use std::{
    io::Write,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use prism_core::mcp::Method;
use uuid::Uuid;

use prism_telemetry::{
    log::DaemonLog,
    metrics::{DestinationMetrics, Metrics},
    veil::BodyRedactor,
};

use crate::drive::ForwardedHeaders;

/// The longest text of a client's making that enters the log. The rest is cut.
const MAX_TEXT: usize = 128;
/// The longest body that is looked into, where bodies are logged at all. Of a longer one there is only its length.
const MAX_BODY: usize = 1 << 20;
/// What is kept of a stream. Of what is beyond it is only said how much it was.
const MAX_STREAMED: usize = 64 << 10;

/// Where records of requests go: the log and the metrics.
#[derive(Clone)]
pub struct AccessLog {
    pub log: DaemonLog,
    pub metrics: Arc<Metrics>,
    /// By what rules records carry the bodies; `None`: they do not.
    pub bodies: Option<Arc<BodyRedactor>>,
    pub in_flight: InFlightCounter,
}

/// Counts the requests that somebody waits for the answer of.
#[derive(Clone, Default)]
pub struct InFlightCounter(Arc<AtomicUsize>);

/// One of them, for as long as it is one.
struct InFlightGuard(InFlightCounter);

/// A request that is being served. It is recorded when this is dropped, however that comes about: a client that leaves
/// is recorded too.
pub struct TrackedRequest {
    access: AccessLog,
    started: Instant,
    request: RequestRecord,
    /// `None` for streams, which nobody waits for the end of.
    awaited: Option<InFlightGuard>,
    /// What of its head goes on to a server over HTTP, and of that one's comes back.
    carried: Option<Arc<ForwardedHeaders>>,
}

/// What is recorded of a request.
struct RequestRecord {
    verb: &'static str,
    destination: Option<Arc<DestinationMetrics>>,
    method: Option<Method>,
    /// The method's name and the id as the client wrote them: JSON text.
    name: Option<Box<str>>,
    id: Option<Box<str>>,
    /// What a request is known by everywhere (N-06).
    correlation_id: Option<Uuid>,
    status: u16,
    took: Duration,
    bodies: Option<Box<Bodies>>,
}

/// The request's and the response's.
struct Bodies {
    veil: Arc<BodyRedactor>,
    request: Bytes,
    response: Bytes,
    /// What a response that is a stream has said, and how much of it is not in here.
    streamed: Vec<u8>,
    unkept: usize,
}

// === impl InFlightCounter ===

impl InFlightCounter {
    /// Returns how many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }

    fn one_more(&self) -> InFlightGuard {
        self.0.fetch_add(1, Ordering::AcqRel);
        InFlightGuard(self.clone())
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::AcqRel);
    }
}

// === impl TrackedRequest ===

impl TrackedRequest {
    /// When it came.
    pub fn started(&self) -> Instant {
        self.started
    }

    pub fn start(access: &AccessLog, verb: &'static str) -> Self {
        let request = RequestRecord {
            verb,
            destination: None,
            method: None,
            name: None,
            id: None,
            correlation_id: None,
            // What nginx says of a client that left before the answer.
            status: 499,
            took: Duration::ZERO,
            bodies: access.bodies.clone().map(|veil| Box::new(Bodies::under(veil))),
        };
        let awaited = (verb != "GET").then(|| access.in_flight.one_more());
        Self { access: access.clone(), started: Instant::now(), request, awaited, carried: None }
    }

    pub fn destination(&mut self, metrics: &Arc<DestinationMetrics>) {
        self.request.destination = Some(metrics.clone());
    }

    pub fn message(&mut self, method: Method, name: Option<&str>, id: Option<&str>) {
        self.request.method = Some(method);
        if method == Method::Listen {
            self.awaited = None;
        }
        // A known name is in the table; only a foreign one has to be kept.
        self.request.name = name.filter(|_| method == Method::Other).map(|name| cut(name).into());
        self.request.id = id.map(|id| cut(id).into());
    }

    pub fn carries(&mut self, carried: Option<Arc<ForwardedHeaders>>) {
        self.carried = carried;
    }

    pub fn carried(&self) -> Option<Arc<ForwardedHeaders>> {
        self.carried.clone()
    }

    pub fn correlation_id(&self) -> Option<Uuid> {
        self.request.correlation_id
    }

    pub fn known_as(&mut self, id: Uuid) {
        self.request.correlation_id = Some(id);
    }

    pub fn request_body(&mut self, body: &Bytes) {
        if let Some(bodies) = &mut self.request.bodies {
            bodies.request = body.clone();
        }
    }

    pub fn response_body(&mut self, body: impl FnOnce() -> Vec<u8>) {
        if let Some(bodies) = &mut self.request.bodies {
            bodies.response = Bytes::from(body());
        }
    }

    /// A piece of a response that is a stream.
    pub fn streamed(&mut self, piece: &[u8]) {
        if let Some(bodies) = &mut self.request.bodies {
            let kept = piece.len().min(MAX_STREAMED - bodies.streamed.len());
            bodies.streamed.extend_from_slice(&piece[..kept]);
            bodies.unkept += piece.len() - kept;
        }
    }

    pub fn status(&mut self, status: u16) {
        self.request.status = status;
    }
}

impl Drop for TrackedRequest {
    fn drop(&mut self) {
        let request = &mut self.request;
        request.took = self.started.elapsed();
        if let Some(destination) = &request.destination {
            destination.request(request.verb, request.method, request.status, request.took);
        }
        if self.access.log.wants_access() {
            self.access.log.add(|out| request.write(out));
        }
    }
}

// === impl RequestRecord ===

impl RequestRecord {
    /// Puts the record into words, on one line.
    fn write(&self, out: &mut Vec<u8>) {
        let destination = self.destination.as_ref().map_or("-", |d| d.name());
        for part in ["  INFO ", self.verb, " destination=", destination] {
            out.extend_from_slice(part.as_bytes());
        }
        match (&self.name, self.method) {
            (Some(name), _) => field(out, "mcp_method", name),
            (None, Some(method)) => field(out, "mcp_method", method.name()),
            (None, None) => {}
        }
        if let Some(id) = &self.id {
            field(out, "rpc_id", id);
        }
        // Writing to memory cannot fail.
        if let Some(id) = self.correlation_id {
            let _ = write!(out, " correlation_id={id}");
        }
        let micros = self.took.as_micros();
        let _ = write!(out, " status_code={} latency_ms={}.{:03}", self.status, micros / 1000, micros % 1000);
        if let Some(bodies) = &self.bodies {
            bodies.write(out);
        }
        out.push(b'\n');
    }
}

// === impl Bodies ===

impl Bodies {
    fn under(veil: Arc<BodyRedactor>) -> Self {
        Self { veil, request: Bytes::new(), response: Bytes::new(), streamed: Vec::new(), unkept: 0 }
    }

    fn write(&self, out: &mut Vec<u8>) {
        let shown = |body: &Bytes| match body.len() {
            length if length > MAX_BODY => format!("[{length} bytes]"),
            _ => self.veil.body(body),
        };
        field(out, "request_body", &shown(&self.request));
        let mut response = shown(&self.response);
        response.push_str(&self.veil.events(&self.streamed));
        if self.unkept > 0 {
            response.push_str(&format!(" [{} more bytes]", self.unkept));
        }
        field(out, "response_body", &response);
    }
}

fn cut(text: &str) -> &str {
    let end = (0..=MAX_TEXT.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    &text[..end]
}

/// Writes a field. Text of a client's making goes on one line and without control characters: nobody writes records
/// but us.
fn field(out: &mut Vec<u8>, name: &str, text: &str) {
    out.push(b' ');
    out.extend_from_slice(name.as_bytes());
    out.push(b'=');
    match text.contains(char::is_control) {
        false => out.extend_from_slice(text.as_bytes()),
        true => out.extend(text.replace(char::is_control, " ").bytes()),
    }
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
        let mut out = Vec::new();
        field(&mut out, "rpc_id", "1\n2026 INFO forged");
        assert_eq!(out, b" rpc_id=1 2026 INFO forged");
    }
}
