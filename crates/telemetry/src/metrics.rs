//! Metrics for Prometheus. Labels come from enums and from the config, never from a request.
//!
//! What `prism status` shows is counted here, too, so that the two agree. What can only be seen by looking (memory,
//! calls in flight) is looked at when somebody asks.

use std::{
    ops::Range,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use prism_core::mcp::Method;
use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

use super::{gate::GateMetrics, latency::Latency, mesh::MeshMetrics};

pub struct Metrics {
    registry: Mutex<Registry>,
    requests: Family<RequestLabels, Counter>,
    latency: Family<MethodLabels, Latency>,
    sessions: Family<DestinationLabel, Gauge>,
    streams: Family<DestinationLabel, Gauge>,
    children: Family<DestinationLabel, Gauge>,
    starts: Family<DestinationLabel, Counter>,
    restarts: Family<DestinationLabel, Counter>,
    in_flight: Family<DestinationLabel, Gauge>,
    child_memory: Family<DestinationLabel, Gauge>,
    memory: Gauge,
    open_files: Gauge,
    events: Family<EventLabels, Counter>,
    refused: Family<ReasonLabel, Counter>,
    pub mesh: Arc<MeshMetrics>,
    pub gate: Arc<GateMetrics>,
}

/// The metrics of one destination, with every label looked up once.
pub struct DestinationMetrics {
    name: String,
    requests: Family<RequestLabels, Counter>,
    /// By method and class of status; made at first use.
    counted: [[std::sync::OnceLock<Counter>; 6]; Method::COUNT],
    latency: Vec<Latency>,
    pub sessions: Gauge,
    pub streams: Gauge,
    pub children: Gauge,
    pub starts: Counter,
    /// Starts that followed a loss.
    pub restarts: Counter,
    in_flight: Gauge,
    child_memory: Gauge,
    pub dropped: Counter,
    pub unowned: Counter,
    pub garbage: Counter,
    pub questions: Counter,
    pub ambiguous: Counter,
    pub cut_off: Counter,
}

/// What a destination has done since the daemon was started.
#[derive(Clone, Copy, Debug)]
pub struct DestinationTotals {
    /// POSTs, whatever they asked for.
    pub requests: u64,
    /// Those that were answered with a status of 500 or more: the server, or Prism, could not do its part.
    pub failures: u64,
    /// Those that called a tool, and how long half and all but one in a hundred of them took.
    pub calls: u64,
    pub p50_ms: Option<f64>,
    pub p99_ms: Option<f64>,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct DestinationLabel {
    destination: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct MethodLabels {
    destination: String,
    method: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RequestLabels {
    destination: String,
    method: &'static str,
    status: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct EventLabels {
    destination: String,
    event: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ReasonLabel {
    reason: &'static str,
}

// === impl Metrics ===

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::default();
        let (memory, open_files) = (Gauge::default(), Gauge::default());
        // The names that every exporter has for these.
        registry.register("process_resident_memory_bytes", "Memory that the daemon holds", memory.clone());
        registry.register("process_open_fds", "Files that the daemon has open", open_files.clone());
        let own = registry.sub_registry_with_prefix("prism");
        let requests = Family::<RequestLabels, Counter>::default();
        let latency = Family::<MethodLabels, Latency>::default();
        let (sessions, streams, children) = (Family::default(), Family::default(), Family::default());
        let (starts, events, refused) = (Family::default(), Family::default(), Family::default());
        let (restarts, in_flight, child_memory) = (Family::default(), Family::default(), Family::default());
        own.register("requests", "HTTP requests by method and class of status", requests.clone());
        own.register("request_seconds", "Time from a request to its answer", latency.clone());
        own.register("sessions", "Open sessions", Family::clone(&sessions));
        own.register("streams", "Open event streams", Family::clone(&streams));
        own.register("children", "Running server processes", Family::clone(&children));
        own.register("child_starts", "Starts of server processes", Family::clone(&starts));
        own.register("child_restarts", "Starts that followed a loss", Family::clone(&restarts));
        own.register("child_memory_bytes", "Memory that the servers' processes hold", Family::clone(&child_memory));
        own.register("calls_in_flight", "Requests that a server has not answered", Family::clone(&in_flight));
        own.register("events", "Messages with a fate worth knowing", Family::clone(&events));
        own.register("refused", "Requests refused at the door", Family::clone(&refused));
        let mesh = Arc::new(MeshMetrics::default());
        mesh.register(own);
        let gate = Arc::new(GateMetrics::default());
        gate.register(own);
        Self {
            registry: Mutex::new(registry),
            requests,
            latency,
            sessions,
            streams,
            children,
            starts,
            restarts,
            in_flight,
            child_memory,
            memory,
            open_files,
            events,
            refused,
            mesh,
            gate,
        }
    }
}

impl Metrics {
    pub fn destination(&self, name: &str) -> Arc<DestinationMetrics> {
        let own = || DestinationLabel { destination: name.to_owned() };
        let event = |event| {
            let labels = EventLabels { destination: name.to_owned(), event };
            self.events.get_or_create(&labels).clone()
        };
        let latency = Method::all().map(|method| {
            let labels = MethodLabels { destination: name.to_owned(), method: method.name() };
            self.latency.get_or_create(&labels).clone()
        });
        Arc::new(DestinationMetrics {
            name: name.to_owned(),
            requests: self.requests.clone(),
            counted: Default::default(),
            latency: latency.collect(),
            sessions: self.sessions.get_or_create(&own()).clone(),
            streams: self.streams.get_or_create(&own()).clone(),
            children: self.children.get_or_create(&own()).clone(),
            starts: self.starts.get_or_create(&own()).clone(),
            restarts: self.restarts.get_or_create(&own()).clone(),
            in_flight: self.in_flight.get_or_create(&own()).clone(),
            child_memory: self.child_memory.get_or_create(&own()).clone(),
            dropped: event("dropped"),
            unowned: event("unowned"),
            garbage: event("garbage"),
            questions: event("question"),
            ambiguous: event("ambiguous"),
            cut_off: event("cut_off"),
        })
    }

    /// Counts a request that never reached a destination.
    pub fn refused(&self, reason: &'static str) {
        self.refused.get_or_create(&ReasonLabel { reason }).inc();
    }

    /// How many requests were refused for this reason.
    pub fn refused_for(&self, reason: &'static str) -> u64 {
        self.refused.get_or_create(&ReasonLabel { reason }).get()
    }

    /// Notes what the daemon itself was seen to hold.
    pub fn seen(&self, memory_bytes: u64, open_files: u64) {
        self.memory.set(whole(memory_bytes));
        self.open_files.set(whole(open_files));
    }

    /// Everything, in the text format of Prometheus.
    pub fn text(&self) -> String {
        let mut out = String::new();
        let registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        // Writing to a string cannot fail.
        let _ = encode(&mut out, &registry);
        out
    }
}

// === impl DestinationMetrics ===

impl DestinationMetrics {
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn request(&self, verb: &'static str, method: Option<Method>, status: u16, took: Duration) {
        let class = usize::from(status / 100).min(5);
        let Some(method) = method else {
            // GET and DELETE: rare, so their labels are looked up each time.
            let labels = RequestLabels { destination: self.name.clone(), method: verb, status: CLASSES[class] };
            self.requests.get_or_create(&labels).inc();
            return;
        };
        let counter = self.counted[method.index()][class].get_or_init(|| {
            let (destination, method) = (self.name.clone(), method.name());
            self.requests.get_or_create(&RequestLabels { destination, method, status: CLASSES[class] }).clone()
        });
        counter.inc();
        if let Some(latency) = self.latency.get(method.index()) {
            latency.observe(took);
        }
    }

    /// Notes what the servers were seen to hold and to work on.
    pub fn seen(&self, memory_bytes: u64, in_flight: usize) {
        self.child_memory.set(whole(memory_bytes));
        self.in_flight.set(whole(in_flight as u64));
    }

    /// The calls of tools since the daemon was started, and how long they took together.
    pub fn calls(&self) -> (u64, Duration) {
        let calls = self.latency.get(Method::ToolsCall.index());
        calls.map_or_else(Default::default, |calls| (calls.count(), calls.sum()))
    }

    pub fn totals(&self) -> DestinationTotals {
        // From the family: a destination of a changed config goes on counting where the one before it was.
        let of = |method: Method, class: usize| {
            let (destination, method) = (self.name.clone(), method.name());
            let counter = self.requests.get(&RequestLabels { destination, method, status: CLASSES[class] });
            counter.map_or(0, |counter| counter.get())
        };
        let all = |classes: Range<usize>| Method::all().flat_map(|m| classes.clone().map(move |c| of(m, c))).sum();
        let calls = self.latency.get(Method::ToolsCall.index());
        let quantile = |part| calls.and_then(|calls| calls.quantile(part)).map(|seconds| seconds * 1e3);
        DestinationTotals {
            requests: all(0..CLASSES.len()),
            failures: all(5..CLASSES.len()),
            calls: calls.map_or(0, Latency::count),
            p50_ms: quantile(0.5),
            p99_ms: quantile(0.99),
        }
    }
}

const CLASSES: [&str; 6] = ["0xx", "1xx", "2xx", "3xx", "4xx", "5xx"];

/// A number as a gauge takes it.
fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_destination_that_was_changed_goes_on_counting() {
        let metrics = Metrics::default();
        let took = Duration::from_millis(2);
        let before = metrics.destination("a");
        before.request("POST", Some(Method::ToolsCall), 200, took);
        before.request("POST", Some(Method::ToolsList), 503, took);
        before.request("GET", None, 200, took);
        let after = metrics.destination("a");
        after.request("POST", Some(Method::ToolsCall), 504, took);
        let totals = after.totals();
        assert_eq!((totals.requests, totals.failures, totals.calls), (3, 2, 2));
        assert_eq!(metrics.destination("b").totals().requests, 0);
    }
}
