//! What the log may say of a body, where bodies are logged at all: without its secrets (R-11). Those are what `[audit] redact`
//! names, what looks like one, and what a config has had looked up: `env:NAME` stands in no log either way.

use std::{
    collections::BTreeSet,
    sync::{Arc, PoisonError, RwLock},
};

use prism_core::policy::{HIDDEN, Redaction};
use serde_json::Value;

use prism_config as config;

/// The shortest text that is taken for a secret wherever it stands. A shorter one would be found everywhere.
const MIN_SECRET: usize = 6;
/// Values that are remembered. Beyond it the first in their order go: there are not as many destinations.
const MAX_SECRETS: usize = 1024;

/// Values that were looked up for servers.
#[derive(Default)]
pub struct KnownSecrets(RwLock<BTreeSet<String>>);

/// By what rules bodies are shown. It holds secrets, so it has no `Debug`.
pub struct BodyRedactor {
    redaction: Redaction,
    secrets: Arc<KnownSecrets>,
}

impl KnownSecrets {
    /// Notes a value that was looked up; of a header, what stands behind the scheme, too.
    pub fn note(&self, value: &str) {
        let last = value.rsplit(' ').next().unwrap_or_default();
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        for secret in [value.trim(), last] {
            if secret.len() >= MIN_SECRET {
                known.insert(secret.to_owned());
            }
        }
        while known.len() > MAX_SECRETS {
            known.pop_first();
        }
    }

    /// A text without them, as they are and as JSON has them. Also without the beginning of one that the text ends in.
    fn hidden(&self, text: &str) -> String {
        let mut out = text.to_owned();
        // The longest first: one may be the beginning of another.
        let mut known: Vec<String> = self.0.read().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect();
        known.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        for secret in known {
            let quoted = Value::from(secret.as_str()).to_string();
            for form in [secret.as_str(), &quoted[1..quoted.len() - 1]] {
                out = out.replace(form, HIDDEN);
                let begun = (MIN_SECRET..form.len())
                    .rev()
                    .find(|end| form.is_char_boundary(*end) && out.ends_with(&form[..*end]));
                if let Some(end) = begun {
                    out.truncate(out.len() - end);
                    out.push_str(HIDDEN);
                }
            }
        }
        out
    }
}

impl BodyRedactor {
    pub fn new(audit: &config::AuditConfig, secrets: Arc<KnownSecrets>) -> Self {
        Self { redaction: Redaction::new(&audit.redact, true), secrets }
    }

    /// A body, in one line.
    pub fn body(&self, bytes: &[u8]) -> String {
        let text = self.secrets.hidden(&String::from_utf8_lossy(bytes));
        if text.is_empty() {
            return text;
        }
        let value = serde_json::from_str(&text).unwrap_or(Value::String(text));
        self.redaction.redact(&value, &|_| String::new())
    }

    /// What a stream of events has said, in one line.
    pub fn events(&self, bytes: &[u8]) -> String {
        let text = String::from_utf8_lossy(bytes);
        let data = text.lines().filter_map(|line| line.strip_prefix("data:")).map(str::trim);
        let shown: Vec<String> = data.filter(|data| !data.is_empty()).map(|data| self.body(data.as_bytes())).collect();
        shown.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn veil(redact: &[&str], secrets: &[&str]) -> BodyRedactor {
        let known = Arc::new(KnownSecrets::default());
        secrets.iter().for_each(|secret| known.note(secret));
        let redact = redact.iter().map(|name| (*name).to_owned()).collect();
        BodyRedactor::new(&config::AuditConfig { redact, ..config::AuditConfig::default() }, known)
    }

    // R-11
    #[test]
    fn passwords_keys_and_what_was_looked_up_are_in_no_body() {
        let veil = veil(&["pin_*"], &["Bearer s3cr\"et-value", "plain-value"]);
        let body = r#"{"password":"hunter22","args":{"api_key":"k","pin_code":"4711","note":"plain-value, s3cr\"et-value"},
            "text":"kept","key":"ghp_0123456789abcdef0123456789abcdef0123"}"#;
        let shown = veil.body(body.as_bytes());
        for secret in ["hunter22", "\"k\"", "4711", "plain-value", "et-value", "0123456789abcdef"] {
            assert!(!shown.contains(secret), "{secret}: {shown}");
        }
        assert!(shown.contains("kept") && !shown.contains('\n'), "{shown}");
        // What is no JSON, such as one that was cut.
        let cut = veil.body(br#"{"password":"hunter22","note":"plain-va"#);
        assert!(!cut.contains("hunter22") && !cut.contains("plain-va"), "{cut}");
    }

    // R-11
    #[test]
    fn a_stream_is_shown_by_what_its_events_say() {
        let stream = b"event: message\nid: 1\ndata: {\"token\":\"abcdef\",\"n\":1}\n\n: keep-alive\n\ndata:\n\ndata: {\"n\":2}\n\ndata: {\"n\":";
        let shown = veil(&[], &[]).events(stream);
        assert!(shown.starts_with(r#"{"n":1,"token":"[hidden]"} {"n":2} "#), "{shown}");
    }
}
