//! Grants: who may hold one, how it is made smaller for a helper, and how it ends, with all that came from it.

use std::time::Duration;

use prism_api::gate::{GrantsRevoked, NarrowRequest};
use prism_core::{
    Time,
    policy::{EventSpec, GrantNarrowing, RequestState, Scopes},
};
use prism_store::gate::GrantRow;
use serde_json::json;
use uuid::Uuid;

use super::{
    Gate, GateError,
    live::{GrantEnd, GrantLease, LiveGrant},
    paper::{AuditSubject, lineage},
    roots_text,
    secret::{hash, mint, new_id},
};
use prism_config::home::Token;

/// Grants that came from another. Beyond it no holder can make another one.
const MAX_NARROWED: usize = 256;

/// A grant that was just given.
#[derive(Clone, Debug)]
pub struct IssuedGrant {
    pub id: Uuid,
    /// Shown once.
    pub token: Option<Token>,
    pub expires_at: Time,
}

impl Gate {
    /// Gives a grant into the hands of whoever shows its token. `None` for the id: whichever grant the token is of.
    pub fn hold(&self, id: Option<Uuid>, token: &[u8]) -> Result<GrantLease, GateError> {
        let wrong =
            || GateError::unauthorized("this is no token of a grant that is alive; ask with prism_request_access");
        let row = self.store.grant_of_token(hash(token))?;
        let Some(row) = row.filter(|row| id.is_none_or(|id| id.as_u128() == row.id)) else {
            self.metrics.failed_auth("session");
            let session = id.map(|id| id.to_string());
            self.record_refusal("?", "connect", &json!({"session_id": session}), "unauthorized");
            return Err(wrong());
        };
        let live = self.state().live.get(&row.id).cloned();
        let over = |code| GateError::new(code, 401, "the grant is over; ask for another with prism_request_access");
        match (live, RequestState::named(&row.state)) {
            (Some(live), _) => match live.ended() {
                None => Ok(GrantLease::new(live)),
                Some(ended) => Err(over(ended.name())),
            },
            (None, Some(RequestState::Expired)) => Err(over("expired")),
            // One that can no longer be used has ended, whether or not that is written down yet.
            (None, Some(_)) if row.expires_at_us <= self.clock.now().0 => Err(over("expired")),
            (None, Some(_)) => Err(over("revoked")),
            (None, None) => Err(wrong()),
        }
    }

    /// Whether this opens anything at the gate: a secret of the person's or of editors, or the token of a grant that is alive.
    pub fn knows(&self, shown: &[u8]) -> bool {
        let is_grant = || {
            let row = self.store.grant_of_token(hash(shown)).ok().flatten();
            row.and_then(|row| self.state().live.get(&row.id).cloned()).is_some_and(|live| live.ended().is_none())
        };
        self.is_management(shown) || self.is_plugin(shown) || is_grant()
    }

    /// Notes that the holder was here.
    pub async fn connected(&self, held: &GrantLease) -> Result<(), GateError> {
        let live = &held.live;
        self.record(AuditSubject::holder(live), "connect", &json!({}), "allowed").await?;
        if !live.used.swap(true, std::sync::atomic::Ordering::Relaxed) {
            self.store.activate_grant(live.id).await?;
            self.tell_of_grant(live);
        }
        // What others do there is only looked out for if the holder may hear of it. It connects meanwhile.
        let from_outside = ["buffer_changed", "file_created", "workspace_changed", "status_updated"];
        let hears = |name: &str| EventSpec::named(name).is_some_and(|event| event.is_seen_with(live.grant.scopes));
        if from_outside.into_iter().any(hears) {
            let (runtime, id, roots) = (self.runtime.clone(), live.id, live.grant.roots.clone());
            tokio::spawn(async move { runtime.watch(id, roots).await });
        }
        Ok(())
    }

    /// Makes a smaller grant for a helper of the holder's.
    pub async fn narrow(&self, held: &GrantLease, ask: NarrowRequest) -> Result<IssuedGrant, GateError> {
        let (parent, now) = (&held.live, self.clock.now());
        if ask.agent_id.trim().is_empty() || ask.agent_id.len() > 128 || ask.agent_id.chars().any(char::is_control) {
            return Err(GateError::bad("agent_id is the helper's name: 1 to 128 bytes in one line"));
        }
        let scopes = ask.scopes.as_ref().map(|words| Scopes::read(words.iter().map(String::as_str))).transpose();
        let by = GrantNarrowing {
            scopes: scopes.map_err(|error| GateError::bad(error.to_string()))?,
            roots: ask.roots.clone(),
            expires_at: ask.ttl_seconds.map(|seconds| now + Duration::from_secs(seconds)),
            per_second: ask.rate_limit,
            max_edit_bytes: ask.max_edit_bytes,
        };
        let asked = json!({
            "helper": ask.agent_id, "scopes": ask.scopes, "roots": ask.roots, "ttl_seconds": ask.ttl_seconds,
        });
        let refused = |trouble: GateError| {
            self.record_behind(AuditSubject::holder(parent), "narrow", &asked, &format!("refused: {}", trouble.code));
            trouble
        };
        if let Some(ended) = parent.ended() {
            return Err(refused(GateError::new(ended.name(), 401, "the grant is over")));
        }
        let grant = parent.grant.narrowed(&by, now).map_err(|wide| refused(GateError::forbidden(wide.to_string())))?;
        if self.state().live.values().filter(|live| live.parent.is_some()).count() >= MAX_NARROWED {
            return Err(refused(GateError::new("too_many", 429, "there are too many helpers' grants; revoke some")));
        }
        let row = GrantRow {
            id: new_id()?.as_u128(),
            request_id: parent.request,
            parent: Some(parent.id),
            agent: ask.agent_id.trim().to_owned(),
            scopes: grant.scopes.to_string(),
            roots: roots_text(&grant.roots),
            state: RequestState::Approved.name().to_owned(),
            created_at_us: now.0,
            expires_at_us: grant.expires_at.0,
            ended_at_us: None,
            per_second: grant.limits.per_second,
            burst: grant.limits.burst,
            max_edit_bytes: i64::try_from(grant.limits.max_edit_bytes).unwrap_or(i64::MAX),
            confirms_changes: grant.confirms_changes,
        };
        let (token, hash) = mint()?;
        self.record(AuditSubject::holder(parent), "narrow", &asked, "allowed").await?;
        if !self.store.add_grant(row.clone(), hash).await? {
            return Err(refused(GateError::new("revoked", 401, "the grant is over")));
        }
        let live = self.enliven(row).ok_or_else(GateError::unknown_session)?;
        if let Some(ended) = parent.ended() {
            // It ended while this was written; what comes from it ends with it.
            self.end(vec![live.id], ended, "its parent").await;
            return Err(GateError::new(ended.name(), 401, "the grant is over"));
        }
        self.record_behind(AuditSubject::holder(&live), "grant", &lineage(&live), "ok");
        self.metrics.token_issued();
        self.tell_of_grant(&live);
        Ok(IssuedGrant { id: Uuid::from_u128(live.id), token: Some(token), expires_at: live.grant.expires_at })
    }

    /// Ends a grant and all that came from it: at once, and whatever keeps it from being written down (H6).
    pub async fn revoke(&self, id: Uuid, by: &str) -> Result<GrantsRevoked, GateError> {
        let id = id.as_u128();
        let live = self.state().live.get(&id).cloned();
        let ended = self.end_in_memory(&[id], GrantEnd::Revoked).len();
        let (agent, request) = match live {
            Some(live) => (live.agent.clone(), live.request),
            None => {
                let row = self.store.grant(id)?.ok_or_else(GateError::unknown_session)?;
                (row.agent, row.request_id)
            }
        };
        let grants = self.store.descendants(id).map_or(ended, |branch| branch.len());
        let about = AuditSubject { session: Some(id), request, ..AuditSubject::person(by) };
        let line = self.entry(about, "revoke", &json!({"agent": agent, "grants": grants}), "allowed");
        Ok(self.put_on_record(vec![id], GrantEnd::Revoked, by, Some(line), ended).await)
    }

    /// The same by a holder: of its own grant, or of one that came from it.
    pub async fn give_up(&self, held: &GrantLease, id: Uuid) -> Result<GrantsRevoked, GateError> {
        let own = held.live.id;
        if id.as_u128() != own && !self.store.descendants(own)?.contains(&id.as_u128()) {
            let about = AuditSubject::holder(&held.live);
            self.record_behind(about, "revoke", &json!({"session_id": id}), "refused: forbidden");
            return Err(GateError::forbidden("a grant's token revokes that grant and what came from it, no other"));
        }
        self.revoke(id, &held.live.agent).await
    }

    pub(super) fn tell_of_grant(&self, live: &LiveGrant) {
        self.waiting_changed();
        self.metrics.alive(self.state().live.len());
        self.events.tell("grant", || json!(self.view_of_grant(live)));
    }
}
