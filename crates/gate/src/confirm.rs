//! Confirmations: something is shown to the person, exactly as it would be done, and waits for their word.
//!
//! An Allow is bound to the digest of what was shown. It is kept as so many uses of that digest: whoever waits takes one,
//! and if nobody waits any more, whoever asks for the very same thing again does, once.

use std::{collections::HashMap, sync::Arc, time::Duration};

use prism_api::{events::ConfirmationEvent, gate::ConfirmRequest};
use prism_core::{
    Time,
    policy::{
        ConfirmationState,
        person::{PersonQuestion, PersonVerdict},
    },
};
use prism_store::gate::{self as kept, ConfirmationRow};
use serde_json::json;
use tokio::{sync::watch, time::timeout};
use uuid::Uuid;

use super::{
    Gate, GateError,
    desk::unknown_confirmation,
    ends::unwritten,
    paper::AuditSubject,
    secret::{hex, new_id, unhex},
    trouble::already,
    views::{read_id, view_of_confirmation, written_id},
};

/// Confirmations that may wait at a time. Beyond it what needs one is refused: a person who is flooded decides nothing.
const MAX_WAITING: usize = 100;
/// How long an Allow counts that nobody has used yet.
const KEPT: Duration = Duration::from_secs(15 * 60);
/// The most uses of one Allow, and the longest that it counts.
const MAX_USES: u32 = 1000;
const MAX_UNTIL: Duration = Duration::from_secs(8 * 3600);

#[derive(Clone, Debug)]
enum PersonChoice {
    Allow,
    Deny(Option<String>),
}

/// Who waits for which answer.
#[derive(Debug, Default)]
pub(super) struct ConfirmWaiters(HashMap<u128, (watch::Sender<Option<PersonChoice>>, [u8; 32])>);

/// One that waits. Dropped before there was an answer, it takes the question back.
struct ConfirmWait {
    gate: Arc<Gate>,
    id: u128,
    said: Option<watch::Receiver<Option<PersonChoice>>>,
}

impl Gate {
    /// Asks the person, or uses what they said before of the very same thing.
    pub async fn ask_person(&self, question: PersonQuestion) -> Result<PersonVerdict, GateError> {
        let now = self.clock.now();
        let digest = question.digest;
        if self.store.use_approval(digest, now.0).await?.is_some() {
            return Ok(PersonVerdict::Allowed);
        }
        let Some(gate) = self.this.upgrade() else { return Ok(PersonVerdict::TooMany) };
        let (id, is_new) = match self.join(digest)? {
            JoinOutcome::Full => return Ok(PersonVerdict::TooMany),
            JoinOutcome::Same(id) => (id, false),
            JoinOutcome::New(id) => (id, true),
        };
        let said = self.state().confirmations.0.get(&id).map(|(said, _)| said.subscribe());
        let mut wait = ConfirmWait { gate, id, said };
        if is_new {
            let row = ConfirmationRow {
                id,
                kind: question.kind.to_owned(),
                grant_id: question.grant,
                agent: question.agent.clone(),
                digest,
                shown: question.shown.to_string(),
                state: ConfirmationState::Waiting.name().to_owned(),
                created_at_us: now.0,
                expires_at_us: (now + self.settings().gate.confirm_within).0,
                decided_at_us: None,
                decided_by: None,
                reason: None,
                uses_left: 0,
                until_us: None,
            };
            self.store.add_confirmation(row).await?;
            self.metrics.asked(question.kind);
            self.somebody_waits();
            self.tell_of_confirmation(id);
            self.call_person(&format!(
                "{} wants to do something that you have to allow. See: prism console",
                question.agent
            ));
        }
        question.asked.note(Uuid::from_u128(id));
        let heard = match &mut wait.said {
            Some(said) => {
                timeout(question.wait, said.wait_for(Option::is_some)).await.ok().and_then(|said| (*said.ok()?).clone())
            }
            None => None,
        };
        wait.said = None;
        match heard {
            None => Ok(PersonVerdict::Unanswered(Uuid::from_u128(id))),
            Some(PersonChoice::Deny(reason)) => Ok(PersonVerdict::Denied(reason)),
            Some(PersonChoice::Allow) => match self.store.use_approval(digest, self.clock.now().0).await? {
                Some(_) => Ok(PersonVerdict::Allowed),
                None => {
                    Ok(PersonVerdict::Denied(Some("it was allowed once, and another call has used that".to_owned())))
                }
            },
        }
    }

    /// Takes the person's answer. It has to name the digest of what they saw.
    /// To say no is to take away: it counts whether or not it can be written down (H6). Returns what is not written down yet.
    pub async fn confirm(&self, answer: ConfirmRequest, by: &str) -> Result<Option<String>, GateError> {
        let id = read_id(&answer.confirmation_id)?.as_u128();
        let row = self.store.confirmation(id)?.ok_or_else(unknown_confirmation)?;
        let about = || AuditSubject { session: row.grant_id, ..AuditSubject::person(by) };
        let what = json!({
            "confirmation_id": answer.confirmation_id, "kind": row.kind, "agent": row.agent, "digest": hex(&row.digest),
            "uses": answer.uses, "until_seconds": answer.until_seconds, "reason": answer.reason,
        });
        let refused = |trouble: GateError| {
            self.record_behind(about(), "confirm", &what, &format!("refused: {}", trouble.code));
            trouble
        };
        if unhex(&answer.digest) != Some(row.digest) {
            return Err(refused(GateError::new("changed", 409, "this is not what was shown; look at it again")));
        }
        let now = self.clock.now();
        let uses = answer.uses.unwrap_or(1);
        if uses == 0 || uses > MAX_USES {
            return Err(refused(GateError::bad(format!("uses is 1 to {MAX_USES}"))));
        }
        let until = answer.until_seconds.map(Duration::from_secs);
        if until.is_some_and(|until| until > MAX_UNTIL) {
            return Err(refused(GateError::bad(format!("until_seconds is at most {}", MAX_UNTIL.as_secs()))));
        }
        let logged = if answer.allow {
            self.record(about(), "confirm", &what, "allowed").await?;
            Ok(())
        } else {
            self.audit.owe(self.entry(about(), "confirm", &what, "denied")).await.map(drop)
        };
        let decided = kept::ConfirmationAnswer {
            confirmation: id,
            digest: row.digest,
            allow: answer.allow,
            at_us: now.0,
            by: by.to_owned(),
            reason: answer.reason.clone(),
            // For a time, it counts as often as it is asked for.
            uses: if until.is_some() && answer.uses.is_none() { i64::from(MAX_USES) } else { i64::from(uses) },
            until_us: Some((now + until.unwrap_or(KEPT)).0),
        };
        let stored = self.store.decide_confirmation(decided).await;
        if answer.allow
            && let Err(error) = stored
        {
            return Err(error.into());
        }
        if matches!(stored, Ok(false)) {
            let row = self.store.confirmation(id)?.ok_or_else(unknown_confirmation)?;
            return Err(refused(not_waiting(&row, self.clock.now())));
        }
        let said = if answer.allow { PersonChoice::Allow } else { PersonChoice::Deny(answer.reason) };
        let waiting = self.state().confirmations.0.remove(&id);
        if let Some((waiting, _)) = waiting {
            waiting.send_replace(Some(said));
        }
        self.metrics.answered(if answer.allow { "allowed" } else { "denied" });
        self.tell_of_confirmation(id);
        Ok(unwritten(&logged, &stored.map(drop)))
    }

    /// Takes back what nobody waits for any more.
    async fn withdraw(&self, id: u128) {
        if self.state().confirmations.0.remove(&id).is_some() {
            let _ =
                self.store.end_confirmations(vec![id], ConfirmationState::Withdrawn.name(), self.clock.now().0).await;
            self.metrics.answered("withdrawn");
            self.tell_of_confirmation(id);
        }
    }

    /// Lets those wait no longer whose time is over.
    pub(super) fn confirmations_expired(&self, ids: &[u128]) {
        for id in ids {
            let waiting = self.state().confirmations.0.remove(id);
            if let Some((waiting, _)) = waiting {
                waiting.send_replace(Some(PersonChoice::Deny(Some("nobody answered in time".to_owned()))));
            }
            self.metrics.answered("expired");
            self.tell_of_confirmation(*id);
        }
    }

    fn join(&self, digest: [u8; 32]) -> Result<JoinOutcome, GateError> {
        let id = new_id()?.as_u128();
        let waiting = &mut self.state().confirmations.0;
        if let Some((id, _)) = waiting.iter().find(|(_, (_, of))| *of == digest) {
            return Ok(JoinOutcome::Same(*id));
        }
        if waiting.len() >= MAX_WAITING {
            return Ok(JoinOutcome::Full);
        }
        waiting.insert(id, (watch::Sender::new(None), digest));
        Ok(JoinOutcome::New(id))
    }

    fn tell_of_confirmation(&self, id: u128) {
        self.waiting_changed();
        self.metrics.waits(self.state().confirmations.0.len());
        self.events.tell("confirmation", || match self.store.confirmation(id) {
            Ok(Some(row)) => json!(view_of_confirmation(row)),
            _ => json!(ConfirmationEvent { confirmation_id: written_id(id) }),
        });
    }
}

fn not_waiting(row: &ConfirmationRow, now: Time) -> GateError {
    let why = match &row.decided_by {
        Some(by) => already(&row.state, by, row.decided_at_us, now),
        None => format!("it is {}: nobody waits for it any more", row.state),
    };
    GateError::new("not_waiting", 409, why)
}

enum JoinOutcome {
    /// The very same thing is being asked already.
    Same(u128),
    New(u128),
    Full,
}

impl Drop for ConfirmWait {
    fn drop(&mut self) {
        if self.said.take().is_none() {
            return;
        }
        let others = self.gate.state().confirmations.0.get(&self.id).is_some_and(|(said, _)| said.receiver_count() > 0);
        if !others {
            let (gate, id) = (self.gate.clone(), self.id);
            tokio::spawn(async move { gate.withdraw(id).await });
        }
    }
}
