//! Taking away (H6): it is done first, in memory, where nothing that is full can keep it from being done, and written down as
//! soon as it can be. Until then whoever did it is told so, and a mark outlives the daemon, so that what has ended stays so.

use std::{
    collections::HashSet,
    sync::{Arc, atomic::Ordering},
};

use prism_api::gate::GrantsRevoked;
use prism_core::policy::RequestState;
use prism_store::{
    StoreWriteError,
    audit::{AuditEntry, AuditError},
    gate::{EndMark, EndMarks, RequestPatch},
};
use serde_json::json;
use tracing::{info, warn};
use uuid::Uuid;

use super::{
    Gate,
    live::{GrantEnd, LiveGrant},
    paper::AuditSubject,
};

/// What has been done and is not in the database yet.
#[derive(Default)]
pub(super) struct UnwrittenEnds {
    ends: Vec<UnwrittenEnd>,
    /// Requests that nobody can approve any more, whatever the database says.
    denied: Vec<DeniedRequest>,
    /// Those of them that could not be written, and are tried again.
    denials: Vec<DeniedRequest>,
    /// Gone where the file could not be made.
    marks: Option<EndMarks>,
    /// Whether there is something in it.
    is_marked: bool,
}

#[derive(Clone, PartialEq, Eq)]
struct UnwrittenEnd {
    ids: Vec<u128>,
    how: GrantEnd,
    by: String,
    at_us: i64,
}

/// A request that was denied.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct DeniedRequest {
    pub(super) request: u128,
    pub(super) patch: RequestPatch,
}

// === impl UnwrittenEnds ===

impl UnwrittenEnds {
    /// Opens the file of marks, and returns what the last daemon could not write down.
    pub(super) fn open(path: &std::path::Path) -> (Self, Vec<EndMark>) {
        match EndMarks::open(path) {
            Ok((marks, found)) => {
                let is_marked = !found.is_empty();
                (Self { marks: Some(marks), is_marked, ..Self::default() }, found)
            }
            Err(error) => {
                warn!(%error, "What is revoked on a full disk will not outlive a kill: its file cannot be opened");
                (Self::default(), Vec::new())
            }
        }
    }

    /// Takes an end that log or database do not have yet; in a mark, too, for the next daemon.
    fn owe(&mut self, owed: UnwrittenEnd, not_stored: bool) {
        // What ends by its time is over at the next start, too.
        let marked: &[u128] = if owed.how == GrantEnd::Revoked { &owed.ids } else { &[] };
        for grant in marked {
            let Some(marks) = &mut self.marks else { break };
            self.is_marked = true;
            if let Err(error) = marks.add(&EndMark { grant: *grant, at_us: owed.at_us, by: owed.by.clone() }) {
                warn!(%error, grant = %Uuid::from_u128(*grant), "A grant that was revoked lives again if Prism is killed now");
            }
        }
        if not_stored {
            self.ends.push(owed);
        }
    }

    /// The denial of a request, if only memory has it.
    pub(super) fn denial(&self, request: u128) -> Option<&DeniedRequest> {
        self.denied.iter().find(|denial| denial.request == request)
    }

    fn forget(&mut self, denial: &DeniedRequest) {
        self.denied.retain(|other| other != denial);
        self.denials.retain(|other| other != denial);
    }
}

/// A denial that is being written down. If it is not when this is dropped, it is tried again.
pub(super) struct DenialWrite<'a> {
    gate: &'a Gate,
    denial: DeniedRequest,
}

impl DenialWrite<'_> {
    /// Has the database know of it. Returns whether the request was open.
    pub(super) async fn store(&self) -> Result<bool, StoreWriteError> {
        let stored = self.gate.store_denial(&self.denial).await;
        if stored.is_ok() {
            self.gate.state().owing.forget(&self.denial);
        }
        stored
    }
}

impl Drop for DenialWrite<'_> {
    fn drop(&mut self) {
        let owing = &mut self.gate.state().owing;
        if owing.denied.contains(&self.denial) {
            owing.denials.push(self.denial.clone());
        }
    }
}

// === impl Gate ===

impl Gate {
    /// Ends what the last daemon had ended and could not write down.
    pub(super) async fn end_what_was_marked(&self, marks: Vec<EndMark>) {
        for EndMark { grant, at_us, by } in marks {
            info!(grant = %Uuid::from_u128(grant), "Ended a grant that was revoked before the last daemon was killed");
            self.end_in_memory(&[grant], GrantEnd::Revoked);
            let about = AuditSubject { session: Some(grant), ..AuditSubject::person(&by) };
            let line = self.entry(about, "revoke", &json!({"written_after_a_restart": true}), "allowed");
            let _ = self.audit.owe(line).await;
            self.state().owing.ends.push(UnwrittenEnd { ids: vec![grant], how: GrantEnd::Revoked, by, at_us });
        }
        self.settle().await;
    }

    /// Ends grants and all that came from them for their holders, now: sockets close, and what they had started ends. Returns
    /// those that have ended by this.
    pub(super) fn end_in_memory(&self, ids: &[u128], how: GrantEnd) -> Vec<Arc<LiveGrant>> {
        let ending: Vec<Arc<LiveGrant>> = {
            let state = self.state();
            let mut branch: HashSet<u128> = ids.iter().copied().collect();
            // Whoever came from one of them has it above; so deep as there are grants at most.
            while state
                .live
                .values()
                .any(|live| live.parent.is_some_and(|up| branch.contains(&up)) && branch.insert(live.id))
            {}
            state.live.values().filter(|live| branch.contains(&live.id)).cloned().collect()
        };
        let ending: Vec<Arc<LiveGrant>> = ending.into_iter().filter(|live| live.end(how)).collect();
        for live in &ending {
            // What it had of its own in the editor goes with it: terminals, watches, panes.
            let (runtime, id) = (self.runtime.clone(), live.id);
            tokio::spawn(async move { runtime.leave(id).await });
            self.tell_of_grant(live);
        }
        ending
    }

    /// Ends grants: in memory, and then in the database, now or as soon as there is room.
    pub(super) async fn end(&self, ids: Vec<u128>, how: GrantEnd, by: &str) -> GrantsRevoked {
        let ended = self.end_in_memory(&ids, how).len();
        self.put_on_record(ids, how, by, None, ended).await
    }

    /// Writes down that grants have ended: `line` in the log, before anything else is written there, and then the end itself.
    pub(super) async fn put_on_record(
        &self,
        ids: Vec<u128>,
        how: GrantEnd,
        by: &str,
        line: Option<AuditEntry>,
        ended: usize,
    ) -> GrantsRevoked {
        let logged = match line {
            Some(line) => self.audit.owe(line).await.map(drop),
            None => Ok(()),
        };
        let owed = UnwrittenEnd { ids, how, by: by.to_owned(), at_us: self.clock.now().0 };
        let stored = self.store_end(&owed).await;
        let revoked = *stored.as_ref().unwrap_or(&ended);
        let stored = stored.map(drop);
        let unwritten = unwritten(&logged, &stored);
        if unwritten.is_some() {
            self.state().owing.owe(owed, stored.is_err());
        }
        GrantsRevoked { revoked, unwritten }
    }

    /// Has the database know of an end, with the whole branch as it is there. Returns how many grants that were.
    async fn store_end(&self, owed: &UnwrittenEnd) -> Result<usize, StoreWriteError> {
        let UnwrittenEnd { ids, how, by, at_us } = owed;
        let state = match how {
            GrantEnd::Expired => RequestState::Expired,
            GrantEnd::Revoked => RequestState::Revoked,
        };
        // With what a holder has narrowed this very moment. Until that is written they stay where they are, over: nobody finds
        // them in neither place.
        let ended = self.store.end_grants(ids.clone(), state.name(), *at_us).await?;
        let ending: Vec<Arc<LiveGrant>> = ended.iter().filter_map(|id| self.state().live.remove(id)).collect();
        for live in &ending {
            if live.end(*how) {
                let (runtime, id) = (self.runtime.clone(), live.id);
                tokio::spawn(async move { runtime.leave(id).await });
            }
            let args = json!({"by": by, "actions": live.actions.load(Ordering::Relaxed)});
            self.record_behind(AuditSubject::holder(live), "end", &args, how.name());
            self.metrics.ended(state, self.clock.now().since(live.created_at));
            self.tell_of_grant(live);
        }
        Ok(ended.len())
    }

    /// Writes down what could not be before. What still cannot waits for the next time.
    pub(super) async fn settle(&self) {
        let (ends, denials, is_marked) = {
            let owing = &self.state().owing;
            (owing.ends.clone(), owing.denials.clone(), owing.is_marked)
        };
        if ends.is_empty() && denials.is_empty() && !is_marked {
            return;
        }
        for owed in ends {
            if self.store_end(&owed).await.is_ok() {
                self.state().owing.ends.retain(|other| *other != owed);
            }
        }
        for denial in denials {
            if self.store_denial(&denial).await.is_ok() {
                self.state().owing.forget(&denial);
            }
        }
        let lines = self.audit.owed();
        let owing = &mut self.state().owing;
        if owing.is_marked && owing.ends.is_empty() && lines == 0 {
            owing.is_marked = owing.marks.as_mut().is_some_and(|marks| marks.clear().is_err());
        }
    }

    /// Denies a request, now: nobody can approve it from here on. `None`: it is denied already.
    pub(super) fn deny_in_memory(&self, denial: DeniedRequest) -> Option<DenialWrite<'_>> {
        let owing = &mut self.state().owing;
        if owing.denial(denial.request).is_some() {
            return None;
        }
        owing.denied.push(denial.clone());
        Some(DenialWrite { gate: self, denial })
    }

    async fn store_denial(&self, denial: &DeniedRequest) -> Result<bool, StoreWriteError> {
        let open = [RequestState::Requested.name(), RequestState::Pending.name()];
        self.store.step_request(denial.request, &open, RequestState::Denied.name(), denial.patch.clone()).await
    }

    /// What is done and not written down yet, in words; nothing if all is.
    pub fn unsettled(&self) -> Option<String> {
        let (in_store, in_log) = {
            let owing = &self.state().owing;
            (owing.ends.len() + owing.denials.len(), self.audit.owed())
        };
        (in_store + in_log > 0).then(|| {
            format!(
                "what was taken away is not written down yet: {in_log} lines of the audit log, {in_store} changes of the \
                 database; make room on the disk"
            )
        })
    }
}

/// What is not written down, if so.
pub(super) fn unwritten(logged: &Result<(), AuditError>, stored: &Result<(), StoreWriteError>) -> Option<String> {
    let logged = logged.as_ref().err().map(|why| format!("the audit log has no line of it yet ({})", because(why)));
    let stored = stored.as_ref().err().map(|why| format!("the database does not have it yet ({})", because(why)));
    let missing: Vec<String> = [logged, stored].into_iter().flatten().collect();
    (!missing.is_empty()).then(|| {
        format!(
            "it is done, and {}; it is written as soon as there is room, and nothing is allowed before",
            missing.join(", and ")
        )
    })
}

/// An error with what caused it, in one line.
fn because(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", because(source)),
        None => error.to_string(),
    }
}
