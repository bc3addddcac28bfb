//! Requests: how an agent asks, how a person decides, and how the agent learns of it (A-01 … A-04).

use std::{path::Path, time::Duration};

use prism_api::{
    events::RequestEvent,
    gate::{AccessRequest, AccessRequested, ApproveRequest, AskerView, ClaimAnswer},
};
use prism_core::{
    policy::{GrantRoot, Preset, RequestState, RequestStep, Scopes},
    time::rfc3339,
};
use prism_os::root::real_path;
use prism_store::gate::{AddRequestResult, GrantRow, RequestPatch, RequestRow};
use serde_json::json;
use subtle::ConstantTimeEq;
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use super::{
    Gate, GateError,
    ends::{DeniedRequest, unwritten},
    grants::IssuedGrant,
    paper::AuditSubject,
    roots_text,
    secret::{self, mint, new_id},
    trouble::already,
    views::{names_of, read_id, written_id},
};

/// The longest name of an agent, reason and list of roots.
const MAX_NAME: usize = 128;
const MAX_REASON: usize = 2000;
const MAX_ROOTS: usize = 16;
/// The longest that an agent waits for a decision in one call.
const MAX_WAIT: Duration = Duration::from_secs(60);
/// How long a grant may take from the disk into its holder's hands.
const COMING: Duration = Duration::from_secs(2);

impl Gate {
    /// Takes a request. A person hears of it once it is on disk.
    pub async fn request(&self, ask: AccessRequest, asker: AskerView) -> Result<AccessRequested, GateError> {
        let scopes = self.understood(&ask)?;
        // Whether a folder is there is told to who asks for it, as one that has mistyped it should know. Whoever goes on asking is
        // seen in the log (L3).
        let roots = folders(ask.roots.clone()).await.inspect_err(|trouble| {
            self.record_refusal(&ask.agent_id, "request_access", &json!({"roots": ask.roots}), trouble.code);
        })?;
        // The management secret lies there: who could read it could approve.
        let own = self.audit.folder().parent().and_then(|home| home.canonicalize().ok());
        if let Some(own) = own
            && let Some(root) = roots.iter().find(|root| Path::new(root.base()).starts_with(&own))
        {
            self.record_refusal(&ask.agent_id, "request_access", &json!({"roots": ask.roots}), "forbidden");
            return Err(GateError::forbidden(format!("{root} is Prism's own folder, which nobody is granted")));
        }
        let (claim, claim_hash) = mint()?;
        let (id, now) = (new_id()?, self.clock.now());
        let ttl = self.ttl(ask.ttl_seconds)?;
        let settings = self.settings();
        let expires_at = now + settings.gate.request_ttl;
        let shown: Vec<String> = roots.iter().map(ToString::to_string).collect();
        let asked = json!({"scopes": scopes.names(), "roots": shown, "reason": ask.reason, "via": asker.via});
        let row = RequestRow {
            id: id.as_u128(),
            agent: ask.agent_id.clone(),
            scopes: scopes.to_string(),
            roots: roots_text(&roots),
            reason: ask.reason.clone(),
            ttl_s: i64::try_from(ttl.as_secs()).unwrap_or(i64::MAX),
            state: RequestState::Requested.name().to_owned(),
            created_at_us: now.0,
            expires_at_us: expires_at.0,
            decided_at_us: None,
            decided_by: None,
            denied_because: None,
            grant_id: None,
            claim_hash,
            claimed: false,
            asker: json!(asker).to_string(),
        };
        let most = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let (of_agent, all) = (most(settings.gate.max_requests_per_agent), most(settings.gate.max_requests));
        match self.store.add_request(row, of_agent, all).await? {
            AddRequestResult::Added => {}
            AddRequestResult::TooManyOfAgent => {
                let why = format!("{} has {of_agent} requests open already; wait for the person", ask.agent_id);
                return Err(self.too_many(&ask.agent_id, why));
            }
            AddRequestResult::TooMany => {
                let why = format!("{all} requests are open already; wait for the person");
                return Err(self.too_many(&ask.agent_id, why));
            }
        }
        let about = AuditSubject { request: Some(id.as_u128()), ..AuditSubject::agent(&ask.agent_id) };
        if let Err(error) = self.record(about, "request_access", &asked, "requested").await {
            // What is not on record has not happened.
            let _ = self.store.step_request(id.as_u128(), &["REQUESTED"], "EXPIRED", RequestPatch::default()).await;
            return Err(error.into());
        }
        let open = RequestState::Requested.after(RequestStep::Told).unwrap_or(RequestState::Pending);
        self.store
            .step_request(id.as_u128(), &[RequestState::Requested.name()], open.name(), RequestPatch::default())
            .await?;
        self.metrics.request(open);
        self.somebody_waits();
        self.tell_of_request(id.as_u128());
        self.call_person(&format!("{} asks for access: {}. See: prism console", ask.agent_id, one_line(&ask.reason)));
        Ok(AccessRequested {
            request_id: id.to_string(),
            claim: claim.expose().to_owned(),
            status: open,
            expires_at: rfc3339(expires_at),
            next: format!("a person decides; `prism approve {id}` or the console (`prism console`)"),
        })
    }

    /// What came of a request, for who asked; and, once, the token. Waits for a decision as long as it is told to.
    pub async fn claim(&self, id: Uuid, claim: &str, wait: Duration) -> Result<ClaimAnswer, GateError> {
        let until = Instant::now() + wait.min(MAX_WAIT);
        let mut decided = self.decided.subscribe();
        loop {
            let row = self.store.request(id.as_u128())?.ok_or_else(GateError::unknown_request)?;
            if !bool::from(secret::hash(claim.as_bytes()).ct_eq(&row.claim_hash)) {
                self.record_refusal("?", "claim", &json!({"request_id": id}), "unauthorized");
                self.metrics.failed_auth("claim");
                // The same as for one that is not there: nobody learns which are.
                return Err(GateError::unknown_request());
            }
            let state = RequestState::named(&row.state).unwrap_or(RequestState::Expired);
            let until = if self.is_coming(&row) { until.max(Instant::now() + COMING) } else { until };
            let waits = (state.is_open() || self.is_coming(&row))
                && timeout_at(until, decided.changed()).await.is_ok_and(|seen| seen.is_ok());
            if !waits {
                return self.claimed(&row, state).await;
            }
        }
    }

    /// Whether the grant is written down and cannot be held yet: whoever asks between the two must not miss it.
    fn is_coming(&self, row: &RequestRow) -> bool {
        let unheld = |id: &u128| !self.state().live.contains_key(id);
        let Some(id) = row.grant_id.filter(unheld) else { return false };
        let grant = self.store.grant(id).ok().flatten();
        grant.is_some_and(|grant| grant.ended_at_us.is_none() && grant.expires_at_us > self.clock.now().0)
    }

    async fn claimed(&self, row: &RequestRow, state: RequestState) -> Result<ClaimAnswer, GateError> {
        let told = ClaimAnswer {
            request_id: written_id(row.id),
            status: state,
            reason: row.denied_because.clone(),
            ..ClaimAnswer::default()
        };
        let grant = row.grant_id.and_then(|grant| self.state().live.get(&grant).cloned());
        let Some(live) = grant else { return Ok(told) };
        let mut told = ClaimAnswer {
            session_id: Some(written_id(live.id)),
            expires_at: Some(rfc3339(live.grant.expires_at)),
            allowed_scopes: Some(names_of(live.grant.scopes)),
            roots: Some(live.grant.roots.iter().map(ToString::to_string).collect()),
            ..told
        };
        if row.claimed {
            told.next = Some("the token was given before; it is given once".to_owned());
            return Ok(told);
        }
        let (token, hash) = mint()?;
        let about = AuditSubject { request: Some(row.id), ..AuditSubject::holder(&live) };
        self.record(about, "claim", &json!({}), "allowed").await?;
        if self.store.claim(row.id, row.claim_hash, hash).await? {
            self.metrics.token_issued();
            told.session_token = Some(token.expose().to_owned());
        }
        Ok(told)
    }

    /// Makes a request a grant: at most what was asked for.
    pub async fn approve(
        &self,
        approve: ApproveRequest,
        by: &str,
        wants_token: bool,
    ) -> Result<IssuedGrant, GateError> {
        let id = read_id(&approve.request_id)?.as_u128();
        let row = self.store.request(id)?.ok_or_else(GateError::unknown_request)?;
        let about = || AuditSubject { request: Some(id), ..AuditSubject::person(by) };
        let refused = |trouble: GateError| {
            self.record_behind(about(), "approve", &json!({"agent": row.agent}), &format!("refused: {}", trouble.code));
            trouble
        };
        let now = self.clock.now();
        let is_open = RequestState::named(&row.state).is_some_and(RequestState::is_open) && row.expires_at_us > now.0;
        if !is_open || self.is_denied(id) {
            return Err(refused(self.not_pending(&row)));
        }
        let asked = Scopes::read(row.scopes.split_whitespace()).unwrap_or_default();
        let scopes = match &approve.approved_scopes {
            None => asked,
            Some(words) => {
                Scopes::read(words.iter().map(String::as_str)).map_err(|error| GateError::bad(error.to_string()))?
            }
        };
        if !scopes.is_within(asked) {
            let more = scopes.without(asked).names().join(", ");
            return Err(refused(GateError::forbidden(format!(
                "the agent has not asked for {more}; an approval only narrows"
            ))));
        }
        let asked_roots = super::roots_of(&row.roots).unwrap_or_default();
        let narrowed = |path: &String| {
            let found = asked_roots.iter().find_map(|root| root.narrowed_to(path));
            found.ok_or_else(|| {
                GateError::forbidden(format!("the agent has not asked for {path:?}; an approval only narrows"))
            })
        };
        let roots: Vec<GrantRoot> = match &approve.approved_roots {
            None => asked_roots.clone(),
            Some(paths) => paths.iter().map(narrowed).collect::<Result<_, _>>().map_err(&refused)?,
        };
        if scopes.is_empty() || roots.is_empty() {
            return Err(refused(GateError::bad("approve at least one scope and one root, or deny the request")));
        }
        let asked_ttl = u64::try_from(row.ttl_s).ok().filter(|_| approve.ttl_seconds.is_none());
        let ttl = self.ttl(approve.ttl_seconds.or(asked_ttl))?;
        let alive = self.state().live.values().filter(|live| live.parent.is_none()).count();
        let settings = self.settings();
        if alive >= settings.gate.max_grants {
            let why = format!(
                "{alive} grants are alive already (gate.max_concurrent_sessions); revoke one first: prism grants"
            );
            return Err(refused(GateError::new("too_many", 429, why)));
        }
        let grant = GrantRow {
            id: new_id()?.as_u128(),
            request_id: Some(id),
            parent: None,
            agent: row.agent.clone(),
            scopes: scopes.to_string(),
            roots: roots_text(&roots),
            state: RequestState::Approved.name().to_owned(),
            created_at_us: now.0,
            expires_at_us: (now + ttl).0,
            ended_at_us: None,
            per_second: settings.gate.limits.per_second,
            burst: settings.gate.limits.burst,
            max_edit_bytes: i64::try_from(settings.gate.limits.max_edit_bytes).unwrap_or(i64::MAX),
            confirms_changes: approve.confirm_changes,
        };
        let what = json!({
            "agent": row.agent, "scopes": scopes.names(), "roots": roots.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "ttl_seconds": ttl.as_secs(), "confirm_changes": approve.confirm_changes,
        });
        let about_grant = AuditSubject { session: Some(grant.id), ..about() };
        self.record(about_grant, "approve", &what, "allowed").await?;
        let minted = if wants_token { Some(mint()?) } else { None };
        let hash = minted.as_ref().map(|(_, hash)| *hash);
        if !self.store.approve(id, now.0, by.to_owned(), grant.clone(), hash).await? {
            let row = self.store.request(id)?.ok_or_else(GateError::unknown_request)?;
            return Err(refused(self.not_pending(&row)));
        }
        let live = self.enliven(grant).ok_or_else(GateError::unknown_session)?;
        self.metrics.request(RequestState::Approved);
        if minted.is_some() {
            self.metrics.token_issued();
        }
        self.decided_on(&row);
        self.tell_of_grant(&live);
        let token = minted.map(|(token, _)| token);
        Ok(IssuedGrant { id: Uuid::from_u128(live.id), token, expires_at: live.grant.expires_at })
    }

    /// Denies a request: at once, as what takes away (H6). Returns what is not written down yet, if so.
    pub async fn deny(&self, id: Uuid, reason: Option<String>, by: &str) -> Result<Option<String>, GateError> {
        let row = self.store.request(id.as_u128())?.ok_or_else(GateError::unknown_request)?;
        let about = AuditSubject { request: Some(row.id), ..AuditSubject::person(by) };
        let what = json!({"agent": row.agent, "reason": reason});
        let patch = RequestPatch {
            decided_at_us: Some(self.clock.now().0),
            decided_by: Some(by.to_owned()),
            denied_because: reason,
        };
        let is_open = RequestState::named(&row.state).is_some_and(RequestState::is_open);
        let denying = is_open.then(|| self.deny_in_memory(DeniedRequest { request: row.id, patch })).flatten();
        let Some(denying) = denying else {
            self.record_behind(about, "deny", &what, "refused: not_pending");
            return Err(self.not_pending(&row));
        };
        let logged = self.audit.owe(self.entry(about.clone(), "deny", &what, "denied")).await.map(drop);
        let stored = denying.store().await;
        if matches!(stored, Ok(false)) {
            self.record_behind(about, "deny", &what, "refused: not_pending");
            let row = self.store.request(row.id)?.ok_or_else(GateError::unknown_request)?;
            return Err(self.not_pending(&row));
        }
        self.metrics.request(RequestState::Denied);
        self.decided_on(&row);
        Ok(unwritten(&logged, &stored.map(drop)))
    }

    fn not_pending(&self, row: &RequestRow) -> GateError {
        let mut state =
            RequestState::named(&row.state).filter(|state| !state.is_open()).unwrap_or(RequestState::Expired);
        let (mut by, mut at) = (row.decided_by.clone(), row.decided_at_us);
        if let Some(denial) = self.state().owing.denial(row.id) {
            state = RequestState::Denied;
            (by, at) = (denial.patch.decided_by.clone(), denial.patch.decided_at_us);
        }
        let why = match &by {
            Some(by) => {
                already(if state == RequestState::Denied { "denied" } else { "approved" }, by, at, self.clock.now())
            }
            None => "it expired: nobody decided in time".to_owned(),
        };
        GateError::new("not_pending", 409, why)
    }

    fn is_denied(&self, request: u128) -> bool {
        self.state().owing.denial(request).is_some()
    }

    /// Nobody has decided on these in time.
    pub(super) fn requests_expired(&self, ids: &[u128]) {
        for id in ids {
            let about = AuditSubject { actor: "prism".to_owned(), request: Some(*id), ..AuditSubject::default() };
            self.record_behind(about, "request_access", &json!({}), "expired");
            self.metrics.request(RequestState::Expired);
            self.tell_of_request(*id);
        }
        self.decided.send_modify(|count| *count += 1);
    }

    /// What is asked for, if it is something that can be granted.
    fn understood(&self, ask: &AccessRequest) -> Result<Scopes, GateError> {
        let name = ask.agent_id.trim();
        if name.is_empty() || name.len() > MAX_NAME || name.chars().any(char::is_control) {
            return Err(GateError::bad(format!("agent_id is the agent's name: 1 to {MAX_NAME} bytes in one line")));
        }
        if ask.reason.trim().is_empty() || ask.reason.len() > MAX_REASON {
            return Err(GateError::bad(format!("reason says to a person what for: 1 to {MAX_REASON} bytes")));
        }
        let preset = match ask.preset.as_deref() {
            None => Scopes::NONE,
            Some(name) => {
                let known = || Preset::ALL.map(Preset::name).join(", ");
                let preset = Preset::named(name);
                preset
                    .ok_or_else(|| GateError::bad(format!("there is no preset {name:?}; there are {}", known())))?
                    .scopes()
            }
        };
        let scopes =
            Scopes::read(ask.scopes.iter().map(String::as_str)).map_err(|error| GateError::bad(error.to_string()))?;
        let scopes = scopes | preset;
        if scopes.is_empty() || ask.roots.is_empty() || ask.roots.len() > MAX_ROOTS {
            return Err(GateError::bad(format!("ask for at least one scope, and for 1 to {MAX_ROOTS} roots")));
        }
        Ok(scopes)
    }

    fn ttl(&self, seconds: Option<u64>) -> Result<Duration, GateError> {
        let settings = self.settings();
        let longest = settings.gate.max_ttl;
        match seconds.map(Duration::from_secs) {
            None => Ok(settings.gate.default_ttl.min(longest)),
            Some(Duration::ZERO) => Err(GateError::bad("ttl_seconds is at least 1")),
            Some(ttl) if ttl > longest => {
                let most = longest.as_secs();
                Err(GateError::bad(format!("ttl_seconds is at most {most} (gate.max_ttl)")))
            }
            Some(ttl) => Ok(ttl),
        }
    }

    fn too_many(&self, agent: &str, why: String) -> GateError {
        self.record_refusal(agent, "request_access", &json!({}), "too_many");
        self.metrics.flooded();
        GateError { retry_after_ms: Some(10_000), ..GateError::new("too_many", 429, why) }
    }

    /// Tells of a decision: whoever waits for it, whoever looks on, and the agent, if it can be rung.
    fn decided_on(&self, row: &RequestRow) {
        self.decided.send_modify(|count| *count += 1);
        self.tell_of_request(row.id);
        let asker: AskerView = serde_json::from_str(&row.asker).unwrap_or_default();
        let Some(Ok(agent)) = asker.agent.as_deref().map(prism_core::mesh::name) else { return };
        let id = Uuid::from_u128(row.id);
        let text = format!("Your request for access {id} was decided. Call prism_access_status to see how.");
        if let Some(messenger) = self.messenger.get() {
            messenger.tell_agent(agent, text);
        }
    }

    fn tell_of_request(&self, id: u128) {
        self.waiting_changed();
        self.events.tell("request", || match self.store.request(id) {
            Ok(Some(row)) => json!(self.view_of_request(&row).ok()),
            _ => json!(RequestEvent { request_id: written_id(id) }),
        });
    }
}

/// The folders that names lead to in the end: what a person approves is the folder itself, not a link that may lead
/// elsewhere tomorrow.
async fn folders(paths: Vec<String>) -> Result<Vec<GrantRoot>, GateError> {
    let real = |path: &String| {
        let named = GrantRoot::new(path).map_err(|error| GateError::bad(error.to_string()))?;
        let real = real_path(Path::new(named.base())).ok().filter(|real| real.is_dir());
        let real = real.ok_or_else(|| GateError::bad(format!("{path:?} is no folder on this machine")))?;
        let real = real.to_str().ok_or_else(|| GateError::bad(format!("{path:?} has a name that is no UTF-8")))?;
        GrantRoot::new(real).map_err(|error| GateError::bad(error.to_string()))
    };
    let look = tokio::task::spawn_blocking(move || paths.iter().map(real).collect());
    look.await.unwrap_or_else(|_| Err(GateError::new("failed", 500, "the folders could not be looked at; try again")))
}

fn one_line(text: &str) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() > 100 { line.chars().take(99).chain(['…']).collect() } else { line }
}
