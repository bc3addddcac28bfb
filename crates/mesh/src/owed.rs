//! What is owed, for who asks; and obligations in the store's words and in the core's.

use prism_api::mesh::{
    ObligationView, ObligationsArguments, ObligationsPage, SignalWaived, WaiveArguments, WhoseObligations,
};
use prism_bridge::admission::AgentBells;
use prism_core::{
    mesh::{BellOutcome, Obligation, PERSON, SignalType, Time, WakePath, WakeSupport, WakeTally, name},
    time::rfc3339,
};
use prism_store::mesh::{ObligationFilter, ObligationRow, WaiveResult};
use tracing::debug;

use super::{Mesh, MeshCaller, MeshError, MeshErrorCode, hyphenated, signals::uuid, who::CallerClaim};

/// Obligations that are told at once.
const MAX_ROWS: u32 = 1000;
/// The longest reason why something is not owed any more.
const MAX_REASON: usize = 1024;

impl Mesh {
    pub fn obligations(
        &self,
        caller: &MeshCaller,
        arguments: ObligationsArguments,
    ) -> Result<ObligationsPage, MeshError> {
        let claim = CallerClaim { session: arguments.session.as_deref(), agent: arguments.agent.as_deref() };
        let agent = self.about(caller, claim)?;
        let whose =
            arguments.of.unwrap_or(if *agent == *PERSON { WhoseObligations::All } else { WhoseObligations::Me });
        let filter = ObligationFilter {
            debtor: (whose == WhoseObligations::Me).then(|| agent.to_string()),
            creditor: (whose == WhoseObligations::Others).then(|| agent.to_string()),
            is_open: arguments.state.is_none(),
            state: arguments.state,
            limit: MAX_ROWS,
        };
        let obligations = self.store.obligations(&filter)?.iter().map(shown_obligation).collect();
        Ok(ObligationsPage { obligations, bell: self.bell_for(caller, &agent) })
    }
}

impl Mesh {
    /// Ends what is owed without a reply: who owes it declines, who asked lets them off, the person decides for both.
    pub async fn waive(&self, caller: &MeshCaller, arguments: WaiveArguments) -> Result<SignalWaived, MeshError> {
        let claim = CallerClaim { session: arguments.session.as_deref(), agent: arguments.agent.as_deref() };
        let agent = self.who(caller, claim)?;
        let reason = arguments.reason.trim();
        if reason.is_empty() || reason.len() > MAX_REASON {
            let why = format!("`reason` says why, in at most {MAX_REASON} bytes: the other side is told");
            return Err(MeshError::bad(why));
        }
        let signal = uuid("signal_id", &arguments.signal_id)?;
        let by = Some(&*agent).filter(|by| **by != *PERSON);
        let (code, why) = match self.store.waive(signal, by, reason, self.now().0).await? {
            WaiveResult::Done { debtor, creditor } => {
                let ended = self.act(|state, _| state.core.done(signal));
                self.tell_ended(ended.into_iter(), "waived");
                for other in [&debtor, &creditor].into_iter().filter(|other| ***other != *agent) {
                    let verb = if *agent == *debtor { "declines" } else { "waives" };
                    let body = format!("{agent} {verb} what was asked with {}: {reason}", hyphenated(signal));
                    self.tell_quietly(other, body).await;
                }
                return Ok(SignalWaived { waived: true, signal_id: hyphenated(signal), reason: reason.to_owned() });
            }
            WaiveResult::AlreadyClosed => (MeshErrorCode::AlreadyGone, "nothing is owed for it any more".to_owned()),
            WaiveResult::NotYours => (
                MeshErrorCode::NotYours,
                "only who was asked, or who has asked, can waive it; so can the person: prism signal waive".to_owned(),
            ),
            WaiveResult::Unknown => {
                (MeshErrorCode::UnknownSignal, format!("nothing is owed for a signal {}", hyphenated(signal)))
            }
        };
        Err(MeshError::new(code, why))
    }

    /// Tells who waits for a reply that it is late, so that they can do something about it.
    pub(super) async fn tell_overdue(&self, obligation: &Obligation) {
        let Obligation { debtor, kind, signal, heard, .. } = obligation;
        let how = if heard.is_some() { "has read it" } else { "has not read it" };
        let body = format!(
            "{debtor} owes you a reply to your {} {} for longer than was agreed, and {how}. Ask again, ask somebody else, or \
             let it go with prism_signal_waive.",
            kind.name(),
            hyphenated(*signal)
        );
        self.tell_quietly(&obligation.creditor, body).await;
    }

    /// Tells an agent, or the person, what nobody waits to have told.
    async fn tell_quietly(&self, agent: &str, body: String) {
        let Ok(agent) = name(agent) else { return };
        if let Err(why) = self.tell_agent(agent.clone(), body).await {
            debug!(agent = &*agent, why, "An agent could not be told what became of a signal");
        }
    }
}

fn shown_obligation(row: &ObligationRow) -> ObligationView {
    let at = |us: Option<i64>| us.map(|us| rfc3339(Time(us)));
    ObligationView {
        signal_id: hyphenated(row.signal),
        kind: row.kind.clone(),
        debtor: row.debtor.clone(),
        creditor: row.creditor.clone(),
        state: row.state.clone(),
        action_required: row.action_required,
        reply_required: row.reply_required,
        opened_at: rfc3339(Time(row.opened_at_us)),
        due_at: at(row.due_at_us),
        overdue: row.overdue_at_us.is_some(),
        escalated_at: at(row.escalated_at_us),
        sla_exempt: row.bucket == WakeSupport::Degraded.name(),
        heard_at: at(row.heard_at_us),
        closed_at: at(row.closed_at_us),
        closed_why: row.closed_why.clone(),
        wake_attempt_count: row.wake_attempt_count,
        wake_ring_count: row.wake_ring_count,
        last_wake_at: at(row.last_wake_at_us),
        last_wake_path: row.last_wake_path.clone(),
        last_wake_result: row.last_wake_result.clone(),
    }
}

pub(super) fn obligation_row(obligation: &Obligation) -> ObligationRow {
    ObligationRow {
        signal: obligation.signal,
        trace: obligation.trace,
        kind: obligation.kind.name().to_owned(),
        debtor: obligation.debtor.to_string(),
        creditor: obligation.creditor.to_string(),
        state: "open".to_owned(),
        action_required: obligation.needs_reply(),
        reply_required: obligation.needs_reply(),
        ends_on_drain: !obligation.needs_reply(),
        opened_at_us: obligation.opened.0,
        due_at_us: obligation.due.map(|due| due.0),
        heard_at_us: None,
        closed_at_us: None,
        closed_by: None,
        bucket: obligation.bucket.name().to_owned(),
        overdue_at_us: None,
        escalated_at_us: None,
        wake_attempt_count: 0,
        wake_ring_count: 0,
        last_wake_at_us: None,
        last_wake_path: None,
        last_wake_result: None,
        closed_why: None,
    }
}

/// What the store has of an obligation, in the core's words.
pub(super) fn obligation(row: &ObligationRow) -> Option<Obligation> {
    let last = row.last_wake_at_us.map(Time).and_then(|at| {
        let path = WakePath::named(row.last_wake_path.as_deref()?)?;
        Some((at, path, BellOutcome::named(row.last_wake_result.as_deref()?)?))
    });
    Some(Obligation {
        signal: row.signal,
        trace: row.trace,
        kind: SignalType::named(&row.kind)?,
        debtor: row.debtor.as_str().into(),
        creditor: row.creditor.as_str().into(),
        opened: Time(row.opened_at_us),
        due: row.due_at_us.map(Time),
        heard: row.heard_at_us.map(Time),
        overdue: row.overdue_at_us.map(Time),
        bucket: if row.bucket == WakeSupport::Full.name() { WakeSupport::Full } else { WakeSupport::Degraded },
        wakes: WakeTally { attempts: row.wake_attempt_count, rings: row.wake_ring_count, last },
    })
}
