//! `[gate]` and `[audit]`, as written, and their way into a [`GateConfig`] and an [`AuditConfig`].

use serde::Deserialize;

use super::{ConfigContext, RawConfig, Setting};
use crate::{
    AuditConfig, ConfigError, GateConfig,
    value::{ValueProblem, audit_calls, boolean, bytes, count, files_kept, in_words, member_patterns, patience},
};

/// `[gate]`, as written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table, as in [gate] and below it max_concurrent_sessions = 16")]
pub(super) struct RawGate {
    max_requests_per_agent: Setting,
    max_requests: Setting,
    #[serde(alias = "max_grants")]
    max_concurrent_sessions: Setting,
    request_ttl: Setting,
    default_ttl: Setting,
    max_ttl: Setting,
    #[serde(alias = "rate_limit")]
    rate_limit_per_session: Setting,
    burst: Setting,
    max_edit_bytes: Setting,
    confirm_within: Setting,
    call_wait: Setting,
    editors_decide: Setting,
}

/// `[audit]`, as written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table, as in [audit] and below it bodies = true")]
pub(super) struct RawAudit {
    bodies: Setting,
    redact: Setting,
    keep: Setting,
    calls: Setting,
}

impl RawConfig {
    pub(super) fn gate(&self, around: Option<ConfigContext<'_>>) -> Result<GateConfig, ConfigError> {
        let mut gate = GateConfig::default();
        let written = &self.gate;
        macro_rules! take {
            ($($key:ident: $parse:ident => $place:expr),* $(,)?) => { $(
                if let Some((value, _)) = self.global(concat!("gate.", stringify!($key)), &written.$key, $parse, around)? {
                    $place = value;
                }
            )* };
        }
        take!(
            max_requests_per_agent: count => gate.max_requests_per_agent,
            max_requests: count => gate.max_requests,
            max_concurrent_sessions: count => gate.max_grants,
            request_ttl: patience => gate.request_ttl,
            confirm_within: patience => gate.confirm_within,
            call_wait: patience => gate.call_wait,
            editors_decide: boolean => gate.editors_decide,
        );

        let default_ttl = self.global("gate.default_ttl", &written.default_ttl, patience, around)?;
        let max_ttl = self.global("gate.max_ttl", &written.max_ttl, patience, around)?;
        match (default_ttl, max_ttl) {
            (Some((usual, at)), Some((longest, _))) if usual > longest => {
                let problem = "is longer than gate.max_ttl".to_owned();
                let example = format!("\"{}\"", in_words(longest));
                return Err(ValueProblem { problem, example }.at("gate.default_ttl", &at));
            }
            (usual, longest) => {
                let (usual, longest) = (usual.map(|(ttl, _)| ttl), longest.map(|(ttl, _)| ttl));
                gate.max_ttl = longest.unwrap_or(gate.max_ttl.max(usual.unwrap_or_default()));
                gate.default_ttl = usual.unwrap_or(gate.default_ttl.min(gate.max_ttl));
            }
        }

        let limits = &mut gate.limits;
        let narrow = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        if let Some((rate, _)) =
            self.global("gate.rate_limit_per_session", &written.rate_limit_per_session, count, around)?
        {
            limits.per_second = narrow(rate);
            limits.burst = limits.per_second.saturating_mul(2);
        }
        if let Some((burst, _)) = self.global("gate.burst", &written.burst, count, around)? {
            limits.burst = narrow(burst);
        }
        if let Some((most, _)) = self.global("gate.max_edit_bytes", &written.max_edit_bytes, bytes, around)? {
            limits.max_edit_bytes = most as u64;
        }
        Ok(gate)
    }

    pub(super) fn audit(&self, around: Option<ConfigContext<'_>>) -> Result<AuditConfig, ConfigError> {
        let RawAudit { bodies, redact, keep, calls } = &self.audit;
        let mut audit = AuditConfig::default();
        if let Some((bodies, _)) = self.global("audit.bodies", bodies, boolean, around)? {
            audit.bodies = bodies;
        }
        if let Some((redact, _)) = self.global("audit.redact", redact, member_patterns, around)? {
            audit.redact = redact;
        }
        if let Some((keep, _)) = self.global("audit.keep", keep, files_kept, around)? {
            audit.keep = keep;
        }
        if let Some((calls, _)) = self.global("audit.calls", calls, audit_calls, around)? {
            audit.calls = calls;
        }
        Ok(audit)
    }
}
