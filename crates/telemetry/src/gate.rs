//! The gate in numbers: who asked and what was decided, grants and what was done with them, what waited for a
//! person, who was turned away, and what the audit log cost.

use std::time::Duration;

use prism_core::policy::{Code, RequestState, VerbSpec};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

use super::latency::Latency;

#[derive(Debug)]
pub struct GateMetrics {
    /// Requests by the state they came to.
    requests: Family<StateLabel, Counter>,
    approvals: Counter,
    denials: Counter,
    /// Requests that were refused since too many were open.
    flooded: Counter,
    grants: Gauge,
    lasted: Family<StateLabel, Histogram, fn() -> Histogram>,
    tokens: Counter,
    failed_auth: Family<PlaceLabel, Counter>,
    actions: Family<ActionLabels, Counter>,
    asked: Family<ConfirmationKindLabel, Counter>,
    answered: Family<OutcomeLabel, Counter>,
    waiting: Gauge,
    audit_lines: Counter,
    audit: Latency,
    plugins: Gauge,
    plugin_commands: Family<ResultLabel, Counter>,
    plugin_events_dropped: Counter,
    plugin_decisions: Family<ResultLabel, Counter>,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ResultLabel {
    result: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct StateLabel {
    state: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct PlaceLabel {
    at: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ActionLabels {
    action: &'static str,
    result: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ConfirmationKindLabel {
    kind: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OutcomeLabel {
    outcome: &'static str,
}

/// Upper bounds of how long grants lasted, in seconds: from one that was taken back at once to a day's work.
const LASTED: [f64; 9] = [10.0, 60.0, 300.0, 900.0, 1800.0, 3600.0, 7200.0, 14_400.0, 28_800.0];

/// What a person may be asked about.
const KINDS: [&str; 3] = ["action", "tool", "definition"];
/// What may come of it.
const OUTCOMES: [&str; 4] = ["allowed", "denied", "expired", "withdrawn"];
/// Why a decision may not count, beside the codes of actions.
const OBJECTIONS: [&str; 5] = ["not_pending", "unknown_request", "unknown_confirmation", "unknown_session", "too_many"];
/// The label of what is in no table: labels are of a known set, whatever clients say.
const OTHER: &str = "other";

impl Default for GateMetrics {
    fn default() -> Self {
        Self {
            requests: Family::default(),
            approvals: Counter::default(),
            denials: Counter::default(),
            flooded: Counter::default(),
            grants: Gauge::default(),
            lasted: Family::new_with_constructor(|| Histogram::new(LASTED)),
            tokens: Counter::default(),
            failed_auth: Family::default(),
            actions: Family::default(),
            asked: Family::default(),
            answered: Family::default(),
            waiting: Gauge::default(),
            audit_lines: Counter::default(),
            audit: Latency::default(),
            plugins: Gauge::default(),
            plugin_commands: Family::default(),
            plugin_events_dropped: Counter::default(),
            plugin_decisions: Family::default(),
        }
    }
}

impl GateMetrics {
    pub(super) fn register(&self, own: &mut Registry) {
        let gate = own.sub_registry_with_prefix("gate");
        gate.register("requests", "Requests for access by the state they came to", self.requests.clone());
        gate.register("approvals", "Requests that a person approved", self.approvals.clone());
        gate.register("denials", "Requests that a person denied", self.denials.clone());
        gate.register("requests_refused", "Requests refused as too many were open", self.flooded.clone());
        gate.register("grants", "Grants that are alive", self.grants.clone());
        gate.register("grant_seconds", "How long grants lasted, by how they ended", self.lasted.clone());
        gate.register("tokens_issued", "Tokens of grants that were handed out", self.tokens.clone());
        gate.register("failed_auth", "Wrong or missing secrets by where they were shown", self.failed_auth.clone());
        gate.register("actions", "Actions of grants by what came of them", self.actions.clone());
        gate.register("confirmations_asked", "Things a person was asked to confirm", self.asked.clone());
        gate.register("confirmations", "Confirmations by what came of them", self.answered.clone());
        gate.register("confirmations_waiting", "Confirmations that wait for a person", self.waiting.clone());
        gate.register("audit_lines", "Lines given to the audit log", self.audit_lines.clone());
        gate.register("audit_write_seconds", "Time until a line of the audit log is on disk", self.audit.clone());
        let plugins = own.sub_registry_with_prefix("plugin");
        plugins.register("connections", "Editors that are connected", self.plugins.clone());
        plugins.register("commands", "Commands to editors by what came of them", self.plugin_commands.clone());
        let decisions = self.plugin_decisions.clone();
        plugins.register("decisions", "What a person decided in an editor, by what came of it", decisions);
        let dropped = self.plugin_events_dropped.clone();
        plugins.register("events_dropped", "Events of editors that nobody may be told of", dropped);
    }

    /// Counts a request that came to this state.
    pub fn request(&self, state: RequestState) {
        self.requests.get_or_create(&StateLabel { state: state.name() }).inc();
        match state {
            RequestState::Approved => self.approvals.inc(),
            RequestState::Denied => self.denials.inc(),
            _ => 0,
        };
    }

    /// Counts a request that was refused since too many are open.
    pub fn flooded(&self) {
        self.flooded.inc();
    }

    /// Says how many grants are alive.
    pub fn alive(&self, count: usize) {
        self.grants.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Counts a grant that is over, and how.
    pub fn ended(&self, state: RequestState, lasted: Duration) {
        self.lasted.get_or_create(&StateLabel { state: state.name() }).observe(lasted.as_secs_f64());
    }

    pub fn token_issued(&self) {
        self.tokens.inc();
    }

    /// Counts a wrong or missing secret by the place where it was shown.
    pub fn failed_auth(&self, at: &'static str) {
        self.failed_auth.get_or_create(&PlaceLabel { at }).inc();
    }

    /// Counts an action by what came of it: `ok`, or the name of a code.
    pub fn acted(&self, verb: &str, result: &str) {
        let action = VerbSpec::named(verb).map_or(OTHER, |action| action.verb);
        let codes = Code::ALL.into_iter().map(Code::name).chain(["ok", "waiting"]);
        self.actions.get_or_create(&ActionLabels { action, result: known(codes, result) }).inc();
    }

    /// Counts what a person is asked about.
    pub fn asked(&self, kind: &str) {
        self.asked.get_or_create(&ConfirmationKindLabel { kind: known(KINDS, kind) }).inc();
    }

    /// Counts what came of it. One that is over may be allowed late, and then counts as both.
    pub fn answered(&self, outcome: &str) {
        self.answered.get_or_create(&OutcomeLabel { outcome: known(OUTCOMES, outcome) }).inc();
    }

    /// Says how many confirmations wait for a person.
    pub fn waits(&self, count: usize) {
        self.waiting.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Counts a line of the audit log that was waited for.
    pub fn audited(&self, took: Duration) {
        self.audit_lines.inc();
        self.audit.observe(took);
    }

    /// Says how many editors are connected.
    pub fn plugins(&self, count: usize) {
        self.plugins.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Counts a command to an editor by what came of it: `ok`, the name of a code, or `unasked` for a result too many.
    pub fn plugin_command(&self, result: &str) {
        let results = Code::ALL.into_iter().map(Code::name).chain(["ok", "unasked"]);
        self.plugin_commands.get_or_create(&ResultLabel { result: known(results, result) }).inc();
    }

    pub fn plugin_event_dropped(&self) {
        self.plugin_events_dropped.inc();
    }

    /// Counts what a person decided in an editor, or tried to: `ok`, or the name of a code.
    pub fn plugin_decision(&self, result: &str) {
        let results = Code::ALL.into_iter().map(Code::name).chain(["ok"]).chain(OBJECTIONS);
        self.plugin_decisions.get_or_create(&ResultLabel { result: known(results, result) }).inc();
    }

    /// Counts a line that nobody waited for.
    pub fn audited_behind(&self) {
        self.audit_lines.inc();
    }
}

fn known(all: impl IntoIterator<Item = &'static str>, word: &str) -> &'static str {
    all.into_iter().find(|known| *known == word).unwrap_or(OTHER)
}

#[cfg(test)]
mod tests {
    use crate::Metrics;

    use super::*;

    //
    #[test]
    fn what_the_gate_does_is_in_the_metrics() {
        let metrics = Metrics::default();
        let gate = &metrics.gate;
        gate.request(RequestState::Pending);
        gate.request(RequestState::Approved);
        gate.request(RequestState::Denied);
        gate.flooded();
        gate.alive(3);
        gate.ended(RequestState::Revoked, Duration::from_secs(61));
        gate.token_issued();
        gate.failed_auth("management");
        gate.acted("open_file", "ok");
        gate.acted("open_file", Code::Forbidden.name());
        gate.asked("action");
        gate.answered("allowed");
        gate.waits(1);
        gate.audited(Duration::from_micros(300));
        gate.audited_behind();
        gate.plugins(2);
        gate.plugin_command("ok");
        gate.plugin_event_dropped();
        gate.plugin_decision("not_pending");
        let text = metrics.text();
        for line in [
            "prism_gate_requests_total{state=\"PENDING\"} 1",
            "prism_gate_approvals_total 1",
            "prism_gate_denials_total 1",
            "prism_gate_requests_refused_total 1",
            "prism_gate_grants 3",
            "prism_gate_grant_seconds_bucket{le=\"60.0\",state=\"REVOKED\"} 0",
            "prism_gate_grant_seconds_bucket{le=\"300.0\",state=\"REVOKED\"} 1",
            "prism_gate_tokens_issued_total 1",
            "prism_gate_failed_auth_total{at=\"management\"} 1",
            "prism_gate_actions_total{action=\"open_file\",result=\"ok\"} 1",
            "prism_gate_actions_total{action=\"open_file\",result=\"forbidden\"} 1",
            "prism_gate_confirmations_asked_total{kind=\"action\"} 1",
            "prism_gate_confirmations_total{outcome=\"allowed\"} 1",
            "prism_gate_confirmations_waiting 1",
            "prism_gate_audit_lines_total 2",
            "prism_gate_audit_write_seconds_count 1",
            "prism_plugin_connections 2",
            "prism_plugin_commands_total{result=\"ok\"} 1",
            "prism_plugin_events_dropped_total 1",
            "prism_plugin_decisions_total{result=\"not_pending\"} 1",
        ] {
            assert!(text.lines().any(|own| own == line), "{line}\n{text}");
        }
    }

    #[test]
    fn labels_are_of_a_known_set_whatever_a_client_says() {
        let metrics = Metrics::default();
        for n in 0..1000 {
            metrics.gate.acted(&format!("verb{n}"), &format!("result{n}"));
            metrics.gate.asked(&format!("kind{n}"));
            metrics.gate.answered(&format!("outcome{n}"));
        }
        let text = metrics.text();
        let of = |name: &str| text.lines().filter(|line| line.starts_with(name)).count();
        assert_eq!(of("prism_gate_actions_total{"), 1, "{text}");
        assert_eq!(of("prism_gate_confirmations_asked_total{") + of("prism_gate_confirmations_total{"), 2, "{text}");
    }
}
