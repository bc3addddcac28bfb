//! How the mesh is: the roster, one agent's diagnostics, and everything at once for `prism mesh`.

use std::collections::HashMap;

use prism_core::mesh::{Mesh as Core, Name, PERSON, Path, Time, name};
use prism_store::mesh::BellRow;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    Caller, Mesh, State, Trouble,
    agents::{MAX_NOTES, heeds_stream, surface_of},
    hyphenated,
    who::Claim,
};
use prism_core::time::rfc3339;
use prism_mcp::kit::CallerMark;
use prism_telemetry::mesh::Seen;

/// Bells that are shown of one agent, and of all.
const RECENT: u32 = 20;
/// Obligations that are shown at once.
const MAX_SHOWN: usize = 500;

#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Diagnose {
    /// The `session` that prism_start returned. Needed only if you are told so.
    session: Option<String>,
    /// Another agent's name, to see how it can be reached.
    agent: Option<String>,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

impl Mesh {
    /// Everybody, and whether they are really there.
    pub fn roster(&self, caller: &Caller) -> Value {
        let now = self.now();
        let state = self.state();
        let owed = state.owed();
        let agents: Vec<Value> = state.core.names().map(|agent| state.shown(agent, &owed, caller, now)).collect();
        json!({"agents": agents})
    }

    pub fn diagnostics(&self, caller: &Caller, arguments: Diagnose) -> Result<Value, Trouble> {
        let Diagnose { session, agent } = arguments;
        if let (Caller::Client(mark), None, None) = (caller, &session, &agent)
            && self.state().of_client(mark).is_none()
        {
            return Ok(self.state().unregistered(mark));
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
            _ => self.about(caller, Claim { session: session.as_deref(), agent: agent.as_deref() })?,
        };
        if *agent == *PERSON {
            return Err(Trouble::bad("say which `agent`: see prism_status for who there is"));
        }
        let bells: Vec<Value> = self.store.bells(Some(&agent), RECENT)?.iter().map(bell).collect();
        let notes = self.store.agent_notes(&agent, MAX_NOTES)?;
        let now = self.now();
        let state = self.state();
        let mut told = state.shown(&agent, &state.owed(), caller, now);
        if let (Some(doorbell), Some(facts)) = (state.core.bell(&agent), state.facts.get(&agent)) {
            told["connection"] = doorbell.connection().name().into();
            told["bell"] = match doorbell.outstanding() {
                Some((path, since)) => json!({"outstanding": true, "path": path.name(), "since": rfc3339(since)}),
                None => json!({"outstanding": false}),
            };
            let paths = Path::ALL.into_iter().map(|path| {
                let last = facts.rungs.get(&path);
                json!({
                    "path": path.name(),
                    "grade": path.grade().name(),
                    "attached": facts.contact(path).is_some(),
                    "healthy": state.is_healthy(&agent, path),
                    "last_result": last.map(|(_, result)| result),
                    "last_at": last.map(|(at, _)| rfc3339(*at)),
                    "absent": facts.absent.get(&path),
                })
            });
            told["paths"] = paths.collect();
            let changes = facts.support_changes.iter();
            told["support_changes"] =
                changes.map(|(at, support)| json!({"at": rfc3339(*at), "surface_support": support.name()})).collect();
        }
        // No bell is put to it: who looks how bells ring must not change that, and `bell` says whether one is out.
        told["recent_bells"] = bells.into();
        told["checkpoints"] = notes.iter().map(|(at, note)| json!({"at": rfc3339(Time(*at)), "note": note})).collect();
        Ok(told)
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
        let seen = Seen {
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
    pub fn waiting(&self, caller: &Caller, session: Option<&str>) -> Result<u64, Trouble> {
        let agent = self.who(caller, Claim { session, agent: None })?;
        Ok(self.state().core.bell(&agent).map_or(0, |bell| bell.pending()))
    }

    /// Everything at once.
    pub fn everything(&self) -> Result<Value, Trouble> {
        let bells: Vec<Value> = self.store.bells(None, RECENT)?.iter().map(bell).collect();
        let mut told = self.roster(&Caller::Script);
        let now = self.now();
        let state = self.state();
        let mut owed: Vec<_> = state.core.obligations().filter(|obligation| obligation.needs_reply()).collect();
        owed.sort_by_key(|obligation| (obligation.due, obligation.opened));
        let open: Vec<Value> = owed
            .iter()
            .take(MAX_SHOWN)
            .map(|obligation| {
                let last = obligation.wakes.last;
                json!({
                    "signal_id": hyphenated(obligation.signal),
                    "type": obligation.kind.name(),
                    "debtor": &*obligation.debtor,
                    "creditor": &*obligation.creditor,
                    "state": if obligation.heard.is_some() { "heard" } else { "open" },
                    "opened_at": rfc3339(obligation.opened),
                    "due_at": obligation.due.map(rfc3339),
                    "due_in_ms": obligation.due.map(|due| (due.0 - now.0) / 1000),
                    "overdue": obligation.overdue.is_some(),
                    "sla_exempt": obligation.is_exempt(),
                    "wake_attempt_count": obligation.wakes.attempts,
                    "wake_ring_count": obligation.wakes.rings,
                    "last_wake_path": last.map(|(_, path, _)| path.name()),
                    "last_wake_result": last.map(|(.., outcome)| outcome.name()),
                })
            })
            .collect();
        told["obligations"] = open.into();
        told["obligations_open"] = owed.len().into();
        told["bells"] = bells.into();
        told["counters"] = self.metrics.counters();
        told["counters"]["store_commits"] = self.store.commits().into();
        told["latencies"] = self.metrics.latencies();
        told["at"] = rfc3339(now).into();
        Ok(told)
    }
}

impl State {
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
    fn unregistered(&self, mark: &CallerMark) -> Value {
        let surface = surface_of(mark.client.as_deref().unwrap_or(&mark.transport));
        if mark.session.is_none() && mark.instance.is_none() {
            return json!({
                "agent": null,
                "surface": surface,
                "transport": mark.transport,
                "connection": null,
                "surface_support": null,
                "next": "Nobody knows who you are, as your calls do not tell by themselves. If you have called prism_start, \
                         give the `session` that it returned with this call and every other; do not start again, which \
                         would end that session. If you have not, call prism_start, and keep its `session`.",
            });
        }
        let has_stream = mark.session.is_some_and(|session| self.has_stream_of(session));
        let support = Core::support_of(heeds_stream(&surface, &mark.transport), has_stream);
        json!({
            "agent": null,
            "surface": surface,
            "transport": mark.transport,
            "connection": if has_stream { "connected" } else { "disconnected" },
            "surface_support": support.name(),
            "next": "You are not registered, so nobody can send you anything: call prism_start.",
        })
    }

    /// Whether a path works. The next result of a tool carries a bell wherever there is a client to have one.
    fn is_healthy(&self, agent: &Name, path: Path) -> bool {
        let has_client = || {
            let facts = self.facts.get(agent);
            facts.is_some_and(|facts| facts.mcp_session.is_some() || facts.instance.is_some())
        };
        match path {
            Path::Piggyback => has_client(),
            path => self.core.bell(agent).is_some_and(|bell| bell.is_healthy(path)),
        }
    }

    fn shown(&self, agent: &Name, owed: &HashMap<&str, [usize; 2]>, caller: &Caller, now: Time) -> Value {
        let window = self.core.window(agent);
        // A session is what a client without one of its own shows that it is the agent: no other agent is told it.
        let session = window.map(|window| hyphenated(window.session)).filter(|_| matches!(caller, Caller::Person));
        let bell = self.core.bell(agent);
        let healthy = |path: &Path| bell.is_some_and(|bell| bell.is_healthy(*path));
        let paths: Vec<&str> = Path::ALL.into_iter().filter(healthy).map(Path::name).collect();
        let [owes, overdue] = owed.get(&**agent).copied().unwrap_or_default();
        let checkpoint = self.facts.get(agent).and_then(|facts| facts.checkpoint.as_ref());
        json!({
            "agent": &**agent,
            "session": session,
            "presence": self.core.presence(agent, now).name(),
            "surface": window.map(|window| &*window.surface),
            "workspace": window.and_then(|window| window.workspace.as_deref()),
            "transport": window.map(|window| &*window.transport),
            "surface_support": self.core.support(agent).name(),
            "paths": paths,
            "pending": bell.map_or(0, |bell| bell.pending()),
            "owes": owes,
            "overdue": overdue,
            "last_seen_ms": window.map(|window| now.since(window.seen).as_millis()),
            "checkpoint": checkpoint.map(|(at, note)| json!({"at": rfc3339(*at), "note": note})),
        })
    }
}

fn bell(row: &BellRow) -> Value {
    json!({
        "event": "surface_doorbell_sent",
        "at": rfc3339(Time(row.at_us)),
        "agent": row.agent,
        "path": row.path,
        "result": row.result,
        "signal_id": row.signal.map(hyphenated),
        "signal_type": row.kind,
        "trace_id": row.trace.map(hyphenated),
        "after_ms": row.millis,
    })
}
