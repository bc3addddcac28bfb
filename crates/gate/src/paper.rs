//! What the gate writes down: one entry for each thing that is about to happen, and one for what came of it.

use std::sync::atomic::Ordering;

use prism_api::audit::AuditLine;
use prism_store::audit::{AuditEntry, AuditError, AuditHead, AuditQuery, search};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    Gate, GateError,
    flood::UntoldRefusals,
    live::LiveGrant,
    secret::{hash, hex},
};

/// Who did something, and on whose behalf.
#[derive(Clone, Debug, Default)]
pub(super) struct AuditSubject {
    pub(super) actor: String,
    pub(super) session: Option<u128>,
    pub(super) request: Option<u128>,
    pub(super) of: Option<u64>,
}

impl Gate {
    /// Writes an entry; returns its number once it is on disk.
    pub(super) async fn record(
        &self,
        about: AuditSubject,
        action: &str,
        args: &Value,
        result: &str,
    ) -> Result<u64, AuditError> {
        let begun = std::time::Instant::now();
        let written = self.audit.write(self.entry(about, action, args, result)).await;
        self.metrics.audited(begun.elapsed());
        written
    }

    /// The same, and nobody waits for it: for what came of something, which has happened by then.
    pub(super) fn record_behind(&self, about: AuditSubject, action: &str, args: &Value, result: &str) {
        self.metrics.audited_behind();
        self.audit.write_behind(self.entry(about, action, args, result));
    }

    /// Writes that somebody was turned away. Refusals are not waited for either: nothing happens after them.
    pub fn record_refusal(&self, actor: &str, action: &str, args: &Value, why: &str) {
        let told = self.state().flood.refused(actor, action);
        if let Some(count) = told {
            let args = if count > 1 { with(args, "so_far", count) } else { args.clone() };
            let about = AuditSubject { actor: actor.to_owned(), ..AuditSubject::default() };
            self.record_behind(about, action, &args, &format!("refused: {why}"));
        }
    }

    /// Writes what a person did that changes nothing by itself, such as to come in.
    pub fn record_person(&self, by: &str, action: &str, args: &Value, result: &str) {
        self.record_behind(AuditSubject::person(by), action, args, result);
    }

    /// Writes how many refusals there were that had no line of their own, and counts anew.
    pub(super) fn record_rest_of_flood(&self) {
        let rest = self.state().flood.calm_down();
        for UntoldRefusals { actor, action, refused } in rest {
            let about = AuditSubject { actor, ..AuditSubject::default() };
            self.record_behind(about, &action, &json!({"so_far": refused}), "refused: so many in all");
        }
    }

    /// Has the database know how far the log has come, so that nobody can cut it short unnoticed.
    pub async fn note_audit_head(&self) {
        let head = self.audit.head();
        if self.noted.swap(head.seq, Ordering::Relaxed) != head.seq
            && let Err(error) = self.store.note_audit_head(head).await
        {
            self.noted.store(0, Ordering::Relaxed);
            tracing::debug!(%error, "How far the audit log has come could not be noted");
        }
    }

    /// What is wrong with what is on record, in sentences: lines of the log that are not what was written, and what could not be
    /// written down yet.
    pub fn record_troubles(&self) -> Vec<String> {
        let broken = self
            .audit_trouble
            .iter()
            .map(|why| format!("the audit log is not what was written ({why}); `prism audit verify` checks all of it"));
        broken.chain(self.unsettled()).collect()
    }

    /// The line that the database knows of.
    pub fn known_head(&self) -> Option<AuditHead> {
        self.store.audit_head().ok().flatten()
    }

    /// Lines of the log, the newest first.
    pub async fn lines(&self, query: AuditQuery) -> Result<Vec<AuditLine>, GateError> {
        let folder = self.audit.folder().to_owned();
        let search = tokio::task::spawn_blocking(move || search(&folder, &query));
        let found = search.await.map_err(|_| GateError::new("failed", 500, "the search ended early; try again"))?;
        let lines =
            found.map_err(|error| GateError::new("failed", 503, format!("{:#}", anyhow::Error::from(error))))?;
        Ok(lines.iter().filter_map(|line| serde_json::from_str(line).ok()).collect())
    }

    pub(super) fn entry(&self, about: AuditSubject, action: &str, args: &Value, result: &str) -> AuditEntry {
        let written = |id: u128| Uuid::from_u128(id).to_string();
        AuditEntry {
            actor: about.actor,
            user: self.person.clone(),
            action: action.to_owned(),
            args: self.settings().redaction.redact(args, &|bytes| hex(&hash(bytes))),
            result: result.to_owned(),
            session_id: about.session.map(written),
            request_id: about.request.map(written),
            of: about.of,
        }
    }
}

impl AuditSubject {
    pub(super) fn holder(live: &LiveGrant) -> Self {
        Self { actor: live.agent.clone(), session: Some(live.id), request: live.request, of: None }
    }

    pub(super) fn person(by: &str) -> Self {
        Self { actor: format!("person ({by})"), ..Self::default() }
    }

    pub(super) fn agent(name: &str) -> Self {
        Self { actor: name.to_owned(), ..Self::default() }
    }
}

/// Adds a member to what is written down of an action, whose arguments have whatever members it likes.
pub(super) fn with(args: &Value, name: &str, value: u64) -> Value {
    let mut args = args.as_object().cloned().unwrap_or_default();
    args.insert(name.to_owned(), value.into());
    Value::Object(args)
}

/// What of an action's arguments is worth a few words in a list.
pub(super) fn in_short(args: &Value) -> String {
    let text = ["path", "command", "cwd", "query", "pattern"].iter().find_map(|name| args.get(*name));
    let text = match text {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    };
    if text.chars().count() > 80 { text.chars().take(79).chain(['…']).collect() } else { text }
}

pub(super) fn lineage(live: &LiveGrant) -> Value {
    json!({"parent": live.parent.map(|id| Uuid::from_u128(id).to_string())})
}
