//! Metrics for Prometheus. Labels come from enums and from the config, never from a request.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use prism_core::mcp::Method;
use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

/// Bounds of the latency histogram, in seconds: from a local tool's answer to the default timeout.
const LATENCY_BUCKETS: [f64; 12] = [0.0002, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0];

pub struct Metrics {
    registry: Mutex<Registry>,
    requests: Family<RequestLabels, Counter>,
    latency: Family<MethodLabels, Histogram>,
    sessions: Family<DestinationLabel, Gauge>,
    streams: Family<DestinationLabel, Gauge>,
    children: Family<DestinationLabel, Gauge>,
    starts: Family<DestinationLabel, Counter>,
    events: Family<EventLabels, Counter>,
    refused: Family<ReasonLabel, Counter>,
}

/// The metrics of one destination, with every label looked up once.
pub struct DestinationMetrics {
    name: String,
    requests: Family<RequestLabels, Counter>,
    /// By method and class of status; made at first use.
    counted: [[std::sync::OnceLock<Counter>; 6]; Method::COUNT],
    latency: Vec<Histogram>,
    pub sessions: Gauge,
    pub streams: Gauge,
    pub children: Gauge,
    pub starts: Counter,
    pub dropped: Counter,
    pub unowned: Counter,
    pub garbage: Counter,
    pub questions: Counter,
    pub ambiguous: Counter,
    pub cut_off: Counter,
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
        let mut registry = Registry::with_prefix("prism");
        let requests = Family::<RequestLabels, Counter>::default();
        let latency = Family::<MethodLabels, Histogram>::new_with_constructor(|| Histogram::new(LATENCY_BUCKETS));
        let (sessions, streams, children) = (Family::default(), Family::default(), Family::default());
        let (starts, events, refused) = (Family::default(), Family::default(), Family::default());
        registry.register("requests", "HTTP requests by method and class of status", requests.clone());
        registry.register("request_seconds", "Time from a request to its answer", latency.clone());
        registry.register("sessions", "Open sessions", Family::clone(&sessions));
        registry.register("streams", "Open event streams", Family::clone(&streams));
        registry.register("children", "Running server processes", Family::clone(&children));
        registry.register("child_starts", "Starts of server processes", Family::clone(&starts));
        registry.register("events", "Messages with a fate worth knowing", Family::clone(&events));
        registry.register("refused", "Requests refused at the door", Family::clone(&refused));
        Self { registry: Mutex::new(registry), requests, latency, sessions, streams, children, starts, events, refused }
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
            latency.observe(took.as_secs_f64());
        }
    }
}

const CLASSES: [&str; 6] = ["0xx", "1xx", "2xx", "3xx", "4xx", "5xx"];
