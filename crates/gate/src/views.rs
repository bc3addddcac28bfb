//! What is shown of the gate: the same over HTTP, in the console and on the command line.

use prism_api::gate::{ActionView, ConfirmationView, GrantView, RequestView};
use prism_core::{
    Time,
    policy::{ConfirmationState, RequestState, Scopes},
    time::rfc3339,
};
use prism_store::gate::{ConfirmationFilter, ConfirmationRow, GrantFilter, GrantRow, RequestFilter, RequestRow};
use uuid::Uuid;

use super::{Gate, GateError, live::LiveGrant, roots_of, secret::hex};

/// The most of each that is shown at once.
const MOST: u32 = 200;

impl Gate {
    /// Requests, the newest first.
    pub fn requests(&self, open_only: bool) -> Result<Vec<RequestView>, GateError> {
        let rows = self.store.requests(&RequestFilter { open_only, limit: MOST, ..RequestFilter::default() })?;
        rows.iter().map(|row| self.view_of_request(row)).collect()
    }

    pub fn request_view(&self, id: Uuid) -> Result<RequestView, GateError> {
        let row = self.store.request(id.as_u128())?.ok_or_else(GateError::unknown_request)?;
        self.view_of_request(&row)
    }

    /// Grants that are alive, the newest first, each followed by those that came from it; then, if wanted, those that are
    /// over.
    pub fn grants(&self, alive_only: bool) -> Result<Vec<GrantView>, GateError> {
        let wanted = |live: &&std::sync::Arc<LiveGrant>| !alive_only || live.ended().is_none();
        let mut live: Vec<_> = self.state().live.values().filter(wanted).cloned().collect();
        live.sort_by_key(|live| std::cmp::Reverse(live.created_at));
        let mut views: Vec<GrantView> = Vec::with_capacity(live.len());
        let is_root = |one: &&std::sync::Arc<LiveGrant>| {
            one.parent.is_none_or(|parent| live.iter().all(|other| other.id != parent))
        };
        for root in live.iter().filter(is_root) {
            self.branch(root, &live, &mut views);
        }
        if !alive_only {
            let rows = self.store.grants(&GrantFilter { limit: MOST, ..GrantFilter::default() })?;
            let over = |row: &GrantRow| row.ended_at_us.is_some() && live.iter().all(|live| live.id != row.id);
            let over = rows.into_iter().filter(over);
            views.extend(over.filter_map(|row| self.view_of_row(row)));
        }
        Ok(views)
    }

    /// Confirmations, the newest first.
    pub fn confirmations(&self, waiting_only: bool) -> Result<Vec<ConfirmationView>, GateError> {
        let filter = ConfirmationFilter { waiting_only, limit: MOST, ..ConfirmationFilter::default() };
        Ok(self.store.confirmations(&filter)?.into_iter().map(view_of_confirmation).collect())
    }

    /// How much waits for the person: requests, and confirmations.
    pub fn waiting(&self) -> Result<(usize, usize), GateError> {
        let requests =
            self.store.requests(&RequestFilter { open_only: true, limit: MOST, ..RequestFilter::default() })?;
        Ok((requests.len(), self.store.waiting_confirmations(MOST)?.len()))
    }

    fn branch(&self, of: &LiveGrant, all: &[std::sync::Arc<LiveGrant>], views: &mut Vec<GrantView>) {
        views.push(self.view_of_grant(of));
        for child in all.iter().filter(|live| live.parent == Some(of.id)) {
            self.branch(child, all, views);
        }
    }

    pub(super) fn view_of_request(&self, row: &RequestRow) -> Result<RequestView, GateError> {
        let scopes = Scopes::read(row.scopes.split_whitespace()).unwrap_or_default();
        let roots: Vec<String> = roots_of(&row.roots).unwrap_or_default().iter().map(ToString::to_string).collect();
        let (mut had, mut had_roots) = (Scopes::NONE, Vec::new());
        for before in self.store.granted_before(&row.agent)?.iter().filter(|before| before.request_id != Some(row.id)) {
            had = had | Scopes::read(before.scopes.split_whitespace()).unwrap_or_default();
            had_roots.extend(roots_of(&before.roots).unwrap_or_default());
        }
        let is_new = |root: &&String| !had_roots.iter().any(|had| had.narrowed_to(root).is_some());
        let decided = RequestState::named(&row.state).unwrap_or(RequestState::Expired);
        // What became of the grant says more than that there was one.
        let grant = row.grant_id.filter(|_| decided.is_granted()).and_then(|id| self.store.grant(id).ok()?);
        let status = grant.and_then(|grant| RequestState::named(&grant.state)).unwrap_or(decided);
        Ok(RequestView {
            request_id: written_id(row.id),
            agent_id: row.agent.clone(),
            scopes: names_of(scopes),
            new_scopes: names_of(scopes.without(had)),
            new_roots: roots.iter().filter(is_new).cloned().collect(),
            roots,
            reason: row.reason.clone(),
            status,
            created_at: rfc3339(Time(row.created_at_us)),
            expires_at: rfc3339(Time(row.expires_at_us)),
            ttl_seconds: row.ttl_s,
            approved_by: row.decided_by.clone(),
            denied_because: row.denied_because.clone(),
            session_id: row.grant_id.map(written_id),
            asker: serde_json::from_str(&row.asker).unwrap_or_default(),
        })
    }

    pub(super) fn view_of_grant(&self, live: &LiveGrant) -> GrantView {
        use std::sync::atomic::Ordering::Relaxed;
        let (grant, now) = (&live.grant, self.clock.now());
        let status = match live.ended() {
            Some(super::GrantEnd::Expired) => RequestState::Expired,
            Some(super::GrantEnd::Revoked) => RequestState::Revoked,
            None if live.used.load(Relaxed) => RequestState::Active,
            None => RequestState::Approved,
        };
        let action = |done: super::live::ActionRecord| ActionView {
            at: rfc3339(done.at),
            action: done.verb,
            about: done.about,
            result: done.result,
        };
        GrantView {
            session_id: written_id(live.id),
            request_id: live.request.map(written_id),
            parent: live.parent.map(written_id),
            agent_id: live.agent.clone(),
            allowed_scopes: names_of(grant.scopes),
            roots: grant.roots.iter().map(ToString::to_string).collect(),
            status,
            created_at: rfc3339(live.created_at),
            expires_at: rfc3339(grant.expires_at),
            expires_in_ms: u64::try_from(grant.expires_at.since(now).as_millis()).unwrap_or(u64::MAX),
            rate_limit: grant.limits.per_second,
            max_edit_bytes: grant.limits.max_edit_bytes,
            confirm_changes: grant.confirms_changes,
            degraded: live.lost(),
            sockets: live.sockets.load(Relaxed),
            actions: live.actions.load(Relaxed),
            last_actions: live.last().into_iter().map(action).collect(),
        }
    }

    /// One that is over, as the store has it.
    fn view_of_row(&self, row: GrantRow) -> Option<GrantView> {
        let state = RequestState::named(&row.state)?;
        let live = LiveGrant::of(row, self.clock.now())?;
        Some(GrantView { status: state, expires_in_ms: 0, ..self.view_of_grant(&live) })
    }
}

pub(super) fn view_of_confirmation(row: ConfirmationRow) -> ConfirmationView {
    ConfirmationView {
        confirmation_id: written_id(row.id),
        kind: row.kind,
        agent_id: row.agent,
        session_id: row.grant_id.map(written_id),
        digest: hex(&row.digest),
        shown: serde_json::from_str(&row.shown).unwrap_or_default(),
        state: ConfirmationState::named(&row.state).unwrap_or(ConfirmationState::Expired),
        created_at: rfc3339(Time(row.created_at_us)),
        expires_at: rfc3339(Time(row.expires_at_us)),
        decided_by: row.decided_by,
        reason: row.reason,
        uses_left: row.uses_left,
    }
}

/// Writes an id as everybody outside knows it.
pub(super) fn written_id(id: u128) -> String {
    Uuid::from_u128(id).to_string()
}

/// Reads an id that somebody outside has given.
pub fn read_id(text: &str) -> Result<Uuid, GateError> {
    Uuid::try_parse(text).map_err(|_| GateError::bad(format!("{text:?} is no id: it is a UUID")))
}

pub(super) fn names_of(scopes: Scopes) -> Vec<String> {
    scopes.names().into_iter().map(str::to_owned).collect()
}
