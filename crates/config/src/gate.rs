//! Settings of the gate: how many may ask and hold a grant, for how long, how fast, and what the audit log says of it.

use std::time::Duration;

use prism_core::policy::GrantLimits;

/// `[gate]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateConfig {
    /// Requests that wait for a person, of one agent and of all.
    pub max_requests_per_agent: usize,
    pub max_requests: usize,
    /// Grants that are alive at a time, those for helpers too (A-09).
    pub max_grants: usize,
    /// How long a request waits for a person.
    pub request_ttl: Duration,
    /// How long a grant lasts that nobody gave a time, and the longest that can be given.
    pub default_ttl: Duration,
    pub max_ttl: Duration,
    /// What a grant may do in a second and in one edit.
    pub limits: GrantLimits,
    /// How long an action waits for a person's word (A-10).
    pub confirm_within: Duration,
    /// How long a call of a tool waits for it whose client does not hear that it waits. Then it gets a handle.
    pub call_wait: Duration,
    /// Whether the person may decide in an editor too, by its plugin.
    pub editors_decide: bool,
}

/// `[audit]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditConfig {
    /// Whether lines carry what was written and read, and not only how much of it (`AUDIT_LOG_BODIES`).
    pub bodies: bool,
    /// Patterns of members whose values are hidden, beside those that always are.
    pub redact: Vec<String>,
    /// Full files that are kept beside the one that is written to; 0: all.
    pub keep: usize,
    pub calls: AuditCalls,
}

/// Which MCP calls have a line in the audit log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AuditCalls {
    /// Those that a rule of `[destination.NAME.tools]` is about.
    #[default]
    Ruled,
    All,
}

impl Default for GateConfig {
    fn default() -> Self {
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        Self {
            max_requests_per_agent: 5,
            max_requests: 100,
            max_grants: 16,
            request_ttl: minutes(60),
            default_ttl: minutes(15),
            max_ttl: minutes(8 * 60),
            limits: GrantLimits::default(),
            confirm_within: minutes(10),
            call_wait: Duration::from_secs(45),
            editors_decide: true,
        }
    }
}

// === impl AuditCalls ===

impl AuditCalls {
    /// Every value, in the order in which messages list them.
    pub const ALL: [Self; 2] = [Self::Ruled, Self::All];

    /// Returns the value as it is written in a config.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ruled => "ruled",
            Self::All => "all",
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        Config, Env, Flags, raw::RawConfig, raw::keys::AUDIT_KEYS, raw::keys::GATE_KEYS, tests::config_in,
        tests::keys_in,
    };

    use super::*;

    fn read(text: &str) -> Config {
        config_in(text, &Env::default(), &Flags::default()).unwrap()
    }

    fn refused(text: &str) -> String {
        config_in(text, &Env::default(), &Flags::default()).unwrap_err().to_string()
    }

    #[test]
    fn every_setting_has_its_place() {
        let text = r#"
            [gate]
            max_requests_per_agent = 1
            max_requests = 2
            max_concurrent_sessions = 3
            request_ttl = "4s"
            default_ttl = "5s"
            max_ttl = "6s"
            rate_limit_per_session = 7
            burst = 8
            max_edit_bytes = "9kB"
            confirm_within = "10s"
            call_wait = "11s"
            editors_decide = false
            [audit]
            bodies = true
            redact = ["*_pin", "iban"]
            keep = 11
            calls = "all"
        "#;
        let seconds = Duration::from_secs;
        let gate = GateConfig {
            max_requests_per_agent: 1,
            max_requests: 2,
            max_grants: 3,
            request_ttl: seconds(4),
            default_ttl: seconds(5),
            max_ttl: seconds(6),
            limits: GrantLimits { per_second: 7, burst: 8, max_edit_bytes: 9000 },
            confirm_within: seconds(10),
            call_wait: seconds(11),
            editors_decide: false,
        };
        let redact = vec!["*_pin".to_owned(), "iban".to_owned()];
        let audit = AuditConfig { bodies: true, redact, keep: 11, calls: AuditCalls::All };
        assert_eq!((read(text).gate, read(text).audit), (gate, audit));
        assert_eq!((read("").gate, read("").audit), (GateConfig::default(), AuditConfig::default()));
    }

    // R-38
    #[test]
    fn the_names_of_the_first_version_still_count() {
        let gate = read("[gate]\nmax_grants = 3\nrate_limit = 7").gate;
        assert_eq!((gate.max_grants, gate.limits.per_second), (3, 7));
        let error = refused("[gate]\nmax_grants = 3\nmax_concurrent_sessions = 4");
        assert!(error.contains("max_concurrent_sessions"), "{error}");
    }

    #[test]
    fn what_is_not_said_follows_from_what_is() {
        let gate = read("gate.max_ttl = \"5m\"\ngate.rate_limit_per_session = 30").gate;
        assert_eq!(gate.default_ttl, Duration::from_secs(300), "no longer than the longest");
        assert_eq!(gate.limits.burst, 60, "two seconds' worth");
        assert_eq!(read("gate.default_ttl = \"10h\"").gate.max_ttl, Duration::from_secs(36_000));
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_what_does() {
        let error = refused("[gate]\ndefault_ttl = \"2h\"\nmax_ttl = \"1h\"");
        assert!(error.contains("gate.default_ttl is longer than gate.max_ttl"), "{error}");
        assert!(error.contains("fix: default_ttl = \"1h\""), "{error}");
        let error = refused("[gate]\nrequest_ttl = 0");
        assert!(error.contains("gate.request_ttl is 0, not longer than nothing"), "{error}");
        let error = refused("[audit]\ncalls = \"al\"");
        assert!(error.contains("fix: calls = \"all\""), "{error}");
        let error = refused("[audit]\nkeep = -1");
        assert!(error.contains("audit.keep is -1, not a whole number"), "{error}");
        let error = refused("[audit]\nredact = \"iban\"");
        assert!(error.contains("fix: redact = [\"iban\"]"), "{error}");
        let error = refused("[gate]\nmax_concurrent_session = 3");
        assert!(error.contains("did you mean \"max_concurrent_sessions\"?"), "{error}");
        let error = refused("[audit]\nrotate = 3");
        assert!(error.contains("the keys of [audit] are bodies, redact, keep, calls"), "{error}");
    }

    // A-11
    #[test]
    fn the_environment_can_say_it_too() {
        let read = |env: Env| config_in("", &env, &Flags::default()).unwrap();
        assert_eq!(read(Env::from([("PRISM_GATE_MAX_CONCURRENT_SESSIONS", "2")])).gate.max_grants, 2);
        assert!(read(Env::from([("PRISM_AUDIT_BODIES", "true")])).audit.bodies);
        assert!(read(Env::from([("AUDIT_LOG_BODIES", "1")])).audit.bodies);
        let both = Env::from([("AUDIT_LOG_BODIES", "1"), ("PRISM_AUDIT_BODIES", "0")]);
        assert!(!read(both).audit.bodies, "the newer name counts");
        // R-38: the names of the first version, which a daemon took no notice of.
        let old = Env::from([("PRISM_GATE_MAX_GRANTS", "3"), ("PRISM_GATE_RATE_LIMIT", "7")]);
        let gate = read(old).gate;
        assert_eq!((gate.max_grants, gate.limits.per_second, gate.limits.burst), (3, 7, 14));
        let both = Env::from([("PRISM_GATE_MAX_GRANTS", "3"), ("PRISM_GATE_MAX_CONCURRENT_SESSIONS", "4")]);
        assert_eq!(read(both).gate.max_grants, 4);
    }

    #[test]
    fn the_list_of_keys_is_what_serde_accepts() {
        let error = toml::from_str::<RawConfig>("gate.zzz = 1").unwrap_err();
        let older = ["max_grants", "rate_limit"];
        let accepted: Vec<&str> = keys_in(error.message()).into_iter().filter(|key| !older.contains(key)).collect();
        assert_eq!(accepted, GATE_KEYS);
        let error = toml::from_str::<RawConfig>("audit.zzz = 1").unwrap_err();
        assert_eq!(keys_in(error.message()), AUDIT_KEYS);
    }
}
