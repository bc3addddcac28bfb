//! The gate as calls of tools see it: a person to ask, and a log to be written to first.

use std::time::Duration;

use prism_core::policy::person::{Eventually, Person, PersonQuestion, PersonVerdict};
use serde_json::Value;
use tokio::sync::broadcast::error::RecvError;
use uuid::Uuid;

use super::{Gate, paper::AuditSubject};

/// What the log calls it.
const ACTION: &str = "tools/call";

impl Person for Gate {
    fn ask(&self, question: PersonQuestion) -> Eventually<'_, Result<PersonVerdict, String>> {
        Box::pin(async move { self.ask_person(question).await.map_err(|trouble| trouble.message) })
    }

    fn decided(&self, question: Uuid) -> Eventually<'static, Option<bool>> {
        // Before the store is asked, so that nothing comes between.
        let (mut events, gate) = (self.events.listen(), self.this.clone());
        Box::pin(async move {
            loop {
                match gate.upgrade()?.store.confirmation(question.as_u128()).ok()??.state.as_str() {
                    "waiting" => {}
                    "allowed" => return Some(true),
                    "withdrawn" => return None,
                    _ => return Some(false),
                }
                loop {
                    match events.recv().await {
                        Ok(event) if event.name == "confirmation" => break,
                        Ok(_) => {}
                        Err(RecvError::Lagged(_)) => break,
                        Err(RecvError::Closed) => return None,
                    }
                }
            }
        })
    }

    fn record<'a>(
        &'a self,
        (actor, session): (&'a str, Option<Uuid>),
        args: &'a Value,
        result: &'a str,
    ) -> Eventually<'a, Result<(), String>> {
        let about = AuditSubject {
            actor: actor.to_owned(),
            session: session.map(|id| id.as_u128()),
            ..AuditSubject::default()
        };
        Box::pin(
            async move { self.record(about, ACTION, args, result).await.map(drop).map_err(|error| error.to_string()) },
        )
    }

    fn refused(&self, actor: &str, args: &Value, why: &str) {
        self.record_refusal(actor, ACTION, args, why);
    }

    fn note(&self, action: &str, args: &Value, result: &str) {
        self.record_behind(AuditSubject { actor: "prism".to_owned(), ..AuditSubject::default() }, action, args, result);
    }

    fn audits_all(&self) -> bool {
        self.settings().audits_all
    }

    fn patience(&self) -> (Duration, Duration) {
        let settings = self.settings();
        (settings.gate.confirm_within, settings.gate.call_wait)
    }
}
