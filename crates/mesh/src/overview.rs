//! How the mesh is: the roster, one agent's diagnostics, and everything at once for `prism mesh`.

use std::collections::HashMap;

use prism_api::mesh::{
    AgentDiagnostics, BellRecord, CheckpointNote, DiagnosedPaths, Diagnostics, DiagnosticsArguments, MeshOverview,
    OutstandingBell, OwedReply, PathDiagnosis, Roster, RosterAgent, SupportChange, UnregisteredDiagnostics,
};
use prism_core::{
    mesh::{MeshMachine as Core, Name, PERSON, Time, WakePath, name},
    time::rfc3339,
};
use prism_mcp::kit::CallerMark;
use prism_store::mesh::BellRow;
use prism_telemetry::mesh::MeshSnapshot;

use super::{
    Mesh, MeshCaller, MeshError, MeshState,
    agents::{MAX_NOTES, heeds_stream, surface_of},
    hyphenated,
    who::CallerClaim,
};

/// Bells that are shown of one agent, and of all.
const RECENT: u32 = 20;
/// Obligations that are shown at once.
const MAX_SHOWN: usize = 500;

impl Mesh {
    /// Everybody, and whether they are really there.
    pub fn roster(&self, caller: &MeshCaller) -> Roster {
        let now = self.now();
        let state = self.state();
        let owed = state.owed();
        Roster { agents: state.core.names().map(|agent| state.shown(agent, &owed, caller, now)).collect() }
    }

    pub fn diagnostics(&self, caller: &MeshCaller, arguments: DiagnosticsArguments) -> Result<Diagnostics, MeshError> {
        let DiagnosticsArguments { session, agent } = arguments;
        if let (MeshCaller::Client(mark), None, None) = (caller, &session, &agent)
            && self.state().of_client(mark).is_none()
        {
            return Ok(Diagnostics::Unregistered(self.state().unregistered(mark)));
        }
        let agent = match &agent {
            Some(agent) if session.is_none() => {
                let agent = name(agent)?;
                let state = self.state();
                if state.core.window(&agent).is_none() {
                    return Err(state.unknown(&agent));
                }
                agent
            }
            _ => self.about(caller, CallerClaim { session: session.as_deref(), agent: agent.as_deref() })?,
        };
        if *agent == *PERSON {
            return Err(MeshError::bad("say which `agent`: see prism_status for who there is"));
        }
        let recent_bells = self.store.bells(Some(&agent), RECENT)?.iter().map(bell).collect();
        let notes = self.store.agent_notes(&agent, MAX_NOTES)?;
        let now = self.now();
        let state = self.state();
        let one = state.shown(&agent, &state.owed(), caller, now);
        // No bell is put to it: who looks how bells ring must not change that, and `bell` says whether one is out.
        let mut told = AgentDiagnostics {
            agent: one.agent,
            session: one.session,
            presence: one.presence,
            surface: one.surface,
            workspace: one.workspace,
            transport: one.transport,
            surface_support: one.surface_support,
            paths: DiagnosedPaths::Healthy(one.paths),
            pending: one.pending,
            owes: one.owes,
            overdue: one.overdue,
            last_seen_ms: one.last_seen_ms,
            checkpoint: one.checkpoint,
            connection: None,
            bell: None,
            support_changes: None,
            recent_bells,
            checkpoints: notes.into_iter().map(|(at, note)| CheckpointNote { at: rfc3339(Time(at)), note }).collect(),
        };
        if let (Some(doorbell), Some(facts)) = (state.core.bell(&agent), state.facts.get(&agent)) {
            told.connection = Some(doorbell.connection().name().to_owned());
            told.bell = Some(match doorbell.outstanding() {
                Some((path, since)) => OutstandingBell {
                    outstanding: true,
                    path: Some(path.name().to_owned()),
                    since: Some(rfc3339(since)),
                },
                None => OutstandingBell::default(),
            });
            let paths = WakePath::ALL.into_iter().map(|path| {
                let last = facts.rungs.get(&path);
                PathDiagnosis {
                    path: path.name().to_owned(),
                    grade: path.grade().name().to_owned(),
                    attached: facts.contact(path).is_some(),
                    healthy: state.is_healthy(&agent, path),
                    last_result: last.map(|(_, result)| result.clone()),
                    last_at: last.map(|(at, _)| rfc3339(*at)),
                    absent: facts.absent.get(&path).cloned(),
                }
            });
            told.paths = DiagnosedPaths::Known(paths.collect());
            let changes = facts
                .support_changes
                .iter()
                .map(|(at, support)| SupportChange { at: rfc3339(*at), surface_support: support.name().to_owned() });
            told.support_changes = Some(changes.collect());
        }
        Ok(Diagnostics::Agent(Box::new(told)))
    }

    /// Has what can only be seen by looking put into the metrics.
    pub fn measure(&self) {
        let state = self.state();
        let is_there = |agent: &&Name| state.core.window(agent).is_some_and(|window| window.wrapped.is_none());
        let agents = state.core.names().filter(is_there).map(|agent| {
            let transport = state.core.window(agent).map(|window| window.transport.to_string());
            (transport.unwrap_or_default(), state.core.support(agent))
        });
        let obligations = state.core.obligations().filter(|obligation| obligation.needs_reply());
        let seen = MeshSnapshot {
            agents: agents.collect(),
            obligations: obligations.map(|owed| (owed.overdue.is_some(), owed.bucket)).collect(),
        };
        self.metrics.seen(&seen);
    }

    /// How many replies are owed for longer than was agreed.
    pub fn overdue(&self) -> usize {
        self.state().core.obligations().filter(|owed| owed.needs_reply() && owed.overdue.is_some()).count()
    }

    /// How many replies the person owes, and how many of them for longer than was agreed. Nobody starts as the person, so
    /// no roster has them.
    pub fn owed_by_person(&self) -> [usize; 2] {
        self.state().owed().get(PERSON).copied().unwrap_or_default()
    }

    /// How many signals wait for who calls.
    pub fn waiting(&self, caller: &MeshCaller, session: Option<&str>) -> Result<u64, MeshError> {
        let agent = self.who(caller, CallerClaim { session, agent: None })?;
        Ok(self.state().core.bell(&agent).map_or(0, |bell| bell.pending()))
    }

    /// Everything at once.
    pub fn everything(&self) -> Result<MeshOverview, MeshError> {
        let bells = self.store.bells(None, RECENT)?.iter().map(bell).collect();
        let Roster { agents } = self.roster(&MeshCaller::Script);
        let now = self.now();
        let state = self.state();
        let mut owed: Vec<_> = state.core.obligations().filter(|obligation| obligation.needs_reply()).collect();
        owed.sort_by_key(|obligation| (obligation.due, obligation.opened));
        let open = owed.iter().take(MAX_SHOWN).map(|obligation| {
            let last = obligation.wakes.last;
            OwedReply {
                signal_id: hyphenated(obligation.signal),
                kind: obligation.kind.name().to_owned(),
                debtor: obligation.debtor.to_string(),
                creditor: obligation.creditor.to_string(),
                state: if obligation.heard.is_some() { "heard" } else { "open" }.to_owned(),
                opened_at: rfc3339(obligation.opened),
                due_at: obligation.due.map(rfc3339),
                due_in_ms: obligation.due.map(|due| (due.0 - now.0) / 1000),
                overdue: obligation.overdue.is_some(),
                sla_exempt: obligation.is_exempt(),
                closed_at: None,
                wake_attempt_count: obligation.wakes.attempts,
                wake_ring_count: obligation.wakes.rings,
                last_wake_path: last.map(|(_, path, _)| path.name().to_owned()),
                last_wake_result: last.map(|(.., outcome)| outcome.name().to_owned()),
            }
        });
        let mut counters = self.metrics.counters();
        counters.insert("store_commits".to_owned(), self.store.commits());
        Ok(MeshOverview {
            at: rfc3339(now),
            agents,
            obligations: open.collect(),
            obligations_open: owed.len() as u64,
            bells,
            counters,
            latencies: self.metrics.latencies(),
        })
    }
}

impl MeshState {
    /// How many replies each agent owes, and how many of them are overdue.
    fn owed(&self) -> HashMap<&str, [usize; 2]> {
        let mut owed: HashMap<&str, [usize; 2]> = HashMap::new();
        for obligation in self.core.obligations().filter(|obligation| obligation.needs_reply()) {
            let [all, overdue] = owed.entry(&*obligation.debtor).or_default();
            *all += 1;
            *overdue += usize::from(obligation.overdue.is_some());
        }
        owed
    }

    /// How a client that has not registered could be reached if it did. One without a session of its own, as of 2026-07-28
    /// over HTTP, may have: only the session that its start returned tells.
    fn unregistered(&self, mark: &CallerMark) -> UnregisteredDiagnostics {
        let surface = surface_of(mark.client.as_deref().unwrap_or(&mark.transport));
        if mark.session.is_none() && mark.instance.is_none() {
            let next = "Nobody knows who you are, as your calls do not tell by themselves. If you have called prism_start, \
                        give the `session` that it returned with this call and every other; do not start again, which \
                        would end that session. If you have not, call prism_start, and keep its `session`.";
            return UnregisteredDiagnostics {
                surface,
                transport: mark.transport.clone(),
                next: next.to_owned(),
                ..UnregisteredDiagnostics::default()
            };
        }
        let has_stream = mark.session.is_some_and(|session| self.has_stream_of(session));
        let support = Core::support_of(heeds_stream(&surface, &mark.transport), has_stream);
        UnregisteredDiagnostics {
            agent: None,
            surface,
            transport: mark.transport.clone(),
            connection: Some(if has_stream { "connected" } else { "disconnected" }.to_owned()),
            surface_support: Some(support.name().to_owned()),
            next: "You are not registered, so nobody can send you anything: call prism_start.".to_owned(),
        }
    }

    /// Whether a path works. The next result of a tool carries a bell wherever there is a client to have one.
    fn is_healthy(&self, agent: &Name, path: WakePath) -> bool {
        let has_client = || {
            let facts = self.facts.get(agent);
            facts.is_some_and(|facts| facts.mcp_session.is_some() || facts.instance.is_some())
        };
        match path {
            WakePath::Piggyback => has_client(),
            path => self.core.bell(agent).is_some_and(|bell| bell.is_healthy(path)),
        }
    }

    fn shown(&self, agent: &Name, owed: &HashMap<&str, [usize; 2]>, caller: &MeshCaller, now: Time) -> RosterAgent {
        let window = self.core.window(agent);
        // A session is what a client without one of its own shows that it is the agent: no other agent is told it.
        let session = window.map(|window| hyphenated(window.session)).filter(|_| matches!(caller, MeshCaller::Person));
        let bell = self.core.bell(agent);
        let healthy = |path: &WakePath| bell.is_some_and(|bell| bell.is_healthy(*path));
        let [owes, overdue] = owed.get(&**agent).copied().unwrap_or_default();
        let checkpoint = self.facts.get(agent).and_then(|facts| facts.checkpoint.as_ref());
        RosterAgent {
            agent: agent.to_string(),
            session,
            presence: self.core.presence(agent, now).name().to_owned(),
            surface: window.map(|window| window.surface.to_string()),
            workspace: window.and_then(|window| window.workspace.as_deref().map(str::to_owned)),
            transport: window.map(|window| window.transport.to_string()),
            surface_support: self.core.support(agent).name().to_owned(),
            paths: WakePath::ALL.into_iter().filter(healthy).map(|path| path.name().to_owned()).collect(),
            pending: bell.map_or(0, |bell| bell.pending()),
            owes: owes as u64,
            overdue: overdue as u64,
            last_seen_ms: window.and_then(|window| u64::try_from(now.since(window.seen).as_millis()).ok()),
            checkpoint: checkpoint.map(|(at, note)| CheckpointNote { at: rfc3339(*at), note: note.clone() }),
        }
    }
}

fn bell(row: &BellRow) -> BellRecord {
    BellRecord {
        event: "surface_doorbell_sent".to_owned(),
        at: rfc3339(Time(row.at_us)),
        agent: row.agent.clone(),
        path: row.path.clone(),
        result: row.result.clone(),
        signal_id: row.signal.map(hyphenated),
        signal_type: row.kind.clone(),
        trace_id: row.trace.map(hyphenated),
        after_ms: row.millis.map(Into::into),
    }
}
