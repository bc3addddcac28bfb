//! The mesh in numbers (M-11): bells by path and outcome, how long signals wait to be heard, what is owed.

use std::{collections::BTreeMap, time::Duration};

use prism_api::mesh::LatencyView;
use prism_core::mesh::{BellOutcome, Obligation, SignalType, Time, WakePath, WakeSupport};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

use super::waits::WaitTimes;

#[derive(Debug, Default)]
pub struct MeshMetrics {
    sent: Family<SignalKindLabel, Counter>,
    /// Pushes attempted (all), observed (`rang`) and acknowledged (`confirmed`).
    bells: Family<BellLabels, Counter>,
    /// From a bell to the drain that it brought about.
    heard: WaitTimes,
    /// From a signal to its drain.
    waited: WaitTimes,
    /// From a question, a task or a review to its reply.
    replied: WaitTimes,
    became_overdue: Family<SupportLabel, Counter>,
    obligations: Family<ObligationLabels, Gauge>,
    agents: Family<AgentLabels, Gauge>,
}

/// What was seen when somebody asked.
#[derive(Debug, Default)]
pub struct MeshSnapshot {
    pub agents: Vec<(String, WakeSupport)>,
    /// Whether each is overdue, and its bucket.
    pub obligations: Vec<(bool, WakeSupport)>,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct SignalKindLabel {
    kind: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct BellLabels {
    path: &'static str,
    result: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct SupportLabel {
    surface_support: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ObligationLabels {
    state: &'static str,
    surface_support: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct AgentLabels {
    transport: &'static str,
    surface_support: &'static str,
}

impl MeshMetrics {
    pub(super) fn register(&self, own: &mut Registry) {
        let mesh = own.sub_registry_with_prefix("mesh");
        mesh.register("signals_sent", "Signals accepted", self.sent.clone());
        mesh.register("bells", "Outcomes of bells by path", self.bells.clone());
        mesh.register("heard_seconds", "Time from a bell to the drain it brought about", self.heard.histogram.clone());
        mesh.register("delivery_seconds", "Time from a signal to its drain", self.waited.histogram.clone());
        mesh.register("reply_seconds", "Time from what needs a reply to the reply", self.replied.histogram.clone());
        mesh.register("became_overdue", "Obligations that were not met in time", self.became_overdue.clone());
        mesh.register("obligations", "Obligations that are open", self.obligations.clone());
        mesh.register("agents", "Agents that have a session", self.agents.clone());
    }

    pub fn sent(&self, kind: SignalType) {
        self.sent.get_or_create(&SignalKindLabel { kind: kind.name() }).inc();
    }

    pub fn bell(&self, path: WakePath, outcome: BellOutcome, after: Option<Duration>) {
        self.bells.get_or_create(&BellLabels { path: path.name(), result: outcome.name() }).inc();
        if let Some(after) = after {
            self.heard.observe(after);
        }
    }

    pub fn drained(&self, after: Duration) {
        self.waited.observe(after);
    }

    pub fn ended(&self, obligation: &Obligation, at: Time) {
        if obligation.needs_reply() {
            self.replied.observe(at.since(obligation.opened));
        }
    }

    pub fn overdue(&self, bucket: WakeSupport) {
        self.became_overdue.get_or_create(&SupportLabel { surface_support: bucket.name() }).inc();
    }

    /// Takes over what can only be seen by looking.
    pub fn seen(&self, seen: &MeshSnapshot) {
        self.agents.clear();
        for (transport, support) in &seen.agents {
            // Labels are of a known set, whatever clients say.
            let transport = ["http", "sse", "stdio"].into_iter().find(|known| known == transport).unwrap_or("script");
            self.agents.get_or_create(&AgentLabels { transport, surface_support: support.name() }).inc();
        }
        self.obligations.clear();
        for (overdue, bucket) in &seen.obligations {
            let state = if *overdue { "overdue" } else { "open" };
            self.obligations.get_or_create(&ObligationLabels { state, surface_support: bucket.name() }).inc();
        }
    }

    /// The counters, for `prism mesh`.
    pub fn counters(&self) -> BTreeMap<String, u64> {
        let count = |outcome: BellOutcome| {
            let of = |path: WakePath| self.bells.get(&BellLabels { path: path.name(), result: outcome.name() });
            WakePath::ALL.into_iter().filter_map(|path| Some(of(path)?.get())).sum::<u64>()
        };
        let mut counters: BTreeMap<String, u64> =
            BellOutcome::ALL.into_iter().map(|outcome| (outcome.name().to_owned(), count(outcome))).collect();
        let sent = SignalType::ALL
            .into_iter()
            .filter_map(|kind| Some(self.sent.get(&SignalKindLabel { kind: kind.name() })?.get()));
        counters.insert("sent".to_owned(), sent.sum());
        counters.insert("drained".to_owned(), self.waited.count());
        counters
    }

    /// How long things took, for `prism mesh`.
    pub fn latencies(&self) -> BTreeMap<String, LatencyView> {
        let of = |waits: &WaitTimes| {
            let [p50, p99] = match waits.percentiles([50, 99]) {
                Some(times) => times.map(|time| Some(time.as_secs_f64() * 1e3)),
                None => [None, None],
            };
            LatencyView { count: waits.count(), p50_ms: p50, p99_ms: p99 }
        };
        let all =
            [("bell_to_drain", &self.heard), ("signal_to_drain", &self.waited), ("asked_to_reply", &self.replied)];
        all.into_iter().map(|(name, waits)| (name.to_owned(), of(waits))).collect()
    }
}
