//! Agents and their windows: who registers, who leaves, and what is known of each beside its doorbell (M-01).

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use prism_api::{
    events::AgentEvent,
    mesh::{AgentStarted, AgentWrapped, CheckpointArguments, CheckpointNoted, StartArguments, WrapArguments},
};
use prism_core::{
    mesh::{
        BacklogView, Name, PENDING, PERSON, Presence, SYSTEM, SignalHeader, SignalType, Time, WakePath, WakeSupport,
        Window, name,
    },
    time::rfc3339,
};
use prism_store::{
    StoreReadError,
    mesh::{AgentRow, MailboxCount},
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tracing::{info, warn};
use uuid::Uuid;

use super::{Mesh, MeshCaller, MeshError, MeshErrorCode, MeshState, hyphenated, watch::HELD, who::CallerClaim};
use crate::wake::{AgentFacts, ClientFacts, ProbeOutcome, RingOutcome, Tmux, WakeContact};

/// Names of agents, those included that are away. Beyond it no new one can start; one that nobody has seen for a month is
/// forgotten.
const MAX_AGENTS: usize = 10_000;
/// Clients that are remembered as displaced. Beyond it all are forgotten, and told less.
const MAX_DISPLACED: usize = 1024;
/// Changes of what a surface supports that are remembered for each agent; the oldest goes first.
const MAX_CHANGES: usize = 16;
/// Notes that are kept of each agent; the oldest goes first.
pub(super) const MAX_NOTES: u32 = 20;
/// The longest text that an agent may give for anything but a signal's body.
const MAX_TEXT: usize = 1024;
/// Peers that are told that somebody has come or gone. Beyond it nobody reads it.
const MAX_PEERS: usize = 64;
/// Programs that agents live in. A client's own name holds one of these, or is one itself.
const SURFACES: [&str; 9] =
    ["claude_code", "claude_desktop", "codex", "opencode", "cursor", "void", "vscode", "gemini", "zed"];

/// What is known of an agent's window.
pub(super) struct WindowFacts {
    pub(super) told: Arc<AgentFacts>,
    contacts: Vec<(WakePath, WakeContact)>,
    pub(super) mcp_session: Option<u128>,
    pub(super) instance: Option<u128>,
    pub(super) checkpoint: Option<(Time, String)>,
    pub(super) support_changes: VecDeque<(Time, WakeSupport)>,
    pub(super) rungs: HashMap<WakePath, (Time, String)>,
    /// Why nobody is at the other end of a path, by who looked last.
    pub(super) absent: HashMap<WakePath, String>,
}

/// What the store keeps of an agent's facts, as JSON.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct KeptFacts {
    wake: Map<String, Value>,
    tmux_pane: Option<String>,
}

// === impl Mesh ===

impl Mesh {
    /// Takes up the agents that the last daemon has known, what waits for them, and what they owe.
    pub(super) fn take_up(&self) -> Result<(), StoreReadError> {
        let waiting: HashMap<String, MailboxCount> =
            self.store.pending_counts()?.into_iter().map(|pending| (pending.agent.clone(), pending)).collect();
        let (agents, obligations) = (self.store.agents()?, self.store.open_obligations()?);
        self.act(|state, now| {
            for row in agents {
                let Ok(agent) = name(&row.name) else { continue };
                let (look, first) = waiting.get(&row.name).map(look).unwrap_or_default();
                state.core.restore(&agent, Some(window(&row)), look, first, now);
                if row.wrapped_at_us.is_none() {
                    self.enter(state, &agent, WindowFacts::read(&row), now);
                }
            }
            for row in obligations {
                if let Some(obligation) = super::owed::obligation(&row) {
                    state.core.restore_obligation(obligation);
                }
            }
        });
        Ok(())
    }

    /// Makes an agent reachable by all that is known of it.
    fn enter(&self, state: &mut MeshState, agent: &Name, mut facts: WindowFacts, now: Time) {
        facts.contacts = self.adapters.attach(&facts.told);
        facts.checkpoint =
            self.store.agent_notes(agent, 1).unwrap_or_default().pop().map(|(at, note)| (Time(at), note));
        let outside = facts.outside();
        if let Some(session) = facts.mcp_session {
            state.displaced.remove(&session);
            state.by_mcp.insert(session, agent.clone());
        }
        if let Some(instance) = facts.instance {
            state.displaced.remove(&instance);
            state.by_instance.insert(instance, agent.clone());
        }
        state.facts.insert(agent.clone(), facts);
        for (path, _) in outside {
            state.core.attach(agent, path, now);
        }
        for path in state.attach_polls(agent) {
            state.core.open(agent, path, now);
        }
        if state.has_stream(agent) {
            state.core.stream_opened(agent, now);
        }
        self.arm(state, agent);
    }

    pub async fn start(&self, caller: &MeshCaller, arguments: StartArguments) -> Result<AgentStarted, MeshError> {
        let agent = name(&arguments.agent)?;
        if [PERSON, SYSTEM].contains(&&*agent) {
            return Err(MeshError::bad(format!(
                "{agent:?} is the human at this machine, or Prism itself; choose another name"
            )));
        }
        {
            let state = self.state();
            if !state.core.is_known(&agent) && state.core.len() >= MAX_AGENTS {
                let why =
                    format!("there are {MAX_AGENTS} agents already; start under a name that there is: prism_status");
                return Err(MeshError::new(MeshErrorCode::Busy, why));
            }
        }
        for text in [&arguments.surface, &arguments.workspace, &arguments.surface_session].into_iter().flatten() {
            if text.len() > MAX_TEXT {
                return Err(MeshError::bad(format!("a text is longer than {MAX_TEXT} bytes")));
            }
        }
        self.adapters.check(&arguments.wake).map_err(|why| {
            // It may have pointed to what it was not to have. (H9)
            warn!(agent = &*agent, why, "A wake contact was not taken");
            MeshError::bad(why)
        })?;
        let now = self.now();
        let (same, other) = self.windows_of(caller, &agent);
        if let Some(other) = other {
            self.leave(&other, true).await?;
        }
        let row = row(&agent, caller, arguments, same.unwrap_or_else(|| Uuid::now_v7().as_u128()), now);
        self.store.save_agent(row.clone()).await?;
        let (look, first) = self.look(&agent)?;
        let before = self.act(|state, now| {
            if same.is_none() {
                state.displace(&agent);
            }
            state.forget(&agent);
            if same.is_none() {
                state.polls.taken_over(&agent);
            }
            let before = state.core.start(&agent, window(&row), look, first, now);
            self.enter(state, &agent, WindowFacts::read(&row), now);
            before.filter(|before| before.session != row.session)
        });
        let at = self.now();
        self.events.tell("agent", || {
            json!(AgentEvent {
                at: rfc3339(at),
                agent: agent.to_string(),
                change: "started".to_owned(),
                surface: Some(row.surface.clone()),
            })
        });
        info!(agent = &*agent, surface = row.surface, transport = row.transport, "An agent has started");
        self.watch_over(&agent);
        let mut news = Vec::new();
        if before.is_some() {
            let body = format!("Another window has started as {agent}; the one before has ended.");
            news.push((SignalType::MasterPreempted, agent.clone(), body));
        }
        if same.is_none() {
            for peer in self.peers(&agent) {
                news.push((SignalType::PeerJoined, peer, format!("{agent} has joined ({}).", row.surface)));
            }
        }
        self.tell_news(news).await;
        self.settle_paths(&agent).await;
        let support = self.state().core.support(&agent);
        let next = "You are registered. Other agents' signals wait for you until you call prism_signals_pending; to be told \
                    at once, call prism_signals_wait. Call prism_wrap when you are done.";
        Ok(AgentStarted {
            session: hyphenated(row.session),
            agent: agent.to_string(),
            surface: row.surface,
            workspace: row.workspace,
            transport: row.transport,
            surface_support: support.name().to_owned(),
            doorbell: format!("{PENDING}/{}", hyphenated(row.session)),
            next: next.to_owned(),
        })
    }

    /// The session that this caller has under this name already, and another agent that it is. One window is one session.
    fn windows_of(&self, caller: &MeshCaller, agent: &Name) -> (Option<u128>, Option<Name>) {
        let MeshCaller::Client(mark) = caller else { return (None, None) };
        let state = self.state();
        match state.of_client(mark) {
            Some(known) if known == *agent => (state.core.window(agent).map(|window| window.session), None),
            known => (None, known),
        }
    }

    pub async fn checkpoint(
        &self,
        caller: &MeshCaller,
        arguments: CheckpointArguments,
    ) -> Result<CheckpointNoted, MeshError> {
        let CheckpointArguments { session, agent, note } = arguments;
        let agent = self.who(caller, CallerClaim { session: session.as_deref(), agent: agent.as_deref() })?;
        // A checkpoint is a sign of life without one, and leaves the last that was given where it is.
        let note = note.filter(|note| !note.trim().is_empty());
        if note.as_ref().is_some_and(|note| note.len() > MAX_TEXT) {
            return Err(MeshError::bad(format!("`note` is longer than {MAX_TEXT} bytes")));
        }
        let now = self.now();
        if let Some(note) = &note {
            self.store.add_agent_note(&agent, now.0, note, MAX_NOTES).await?;
        }
        let mut state = self.state();
        let session = state.core.window(&agent).map_or(0, |window| window.session);
        if let (Some(note), Some(facts)) = (note, state.facts.get_mut(&agent)) {
            facts.checkpoint = Some((now, note));
        }
        Ok(CheckpointNoted { session: hyphenated(session), agent: agent.to_string(), checkpoint_at: rfc3339(now) })
    }

    pub async fn wrap(&self, caller: &MeshCaller, arguments: WrapArguments) -> Result<AgentWrapped, MeshError> {
        let WrapArguments { session, agent } = arguments;
        let agent = self.who(caller, CallerClaim { session: session.as_deref(), agent: agent.as_deref() })?;
        let session = self.state().core.window(&agent).map(|window| window.session);
        let session = session
            .ok_or_else(|| MeshError::new(MeshErrorCode::NotStarted, format!("{agent} has no session to wrap")))?;
        self.leave(&agent, true).await?;
        Ok(AgentWrapped { session: hyphenated(session), agent: agent.to_string(), wrapped_at: rfc3339(self.now()) })
    }

    /// An agent's window is no more: it has said good-bye, or its client has left.
    pub(super) async fn leave(&self, agent: &Name, wrapped: bool) -> Result<(), MeshError> {
        let now = self.now();
        if wrapped && let Some(row) = self.row_of(agent) {
            self.store.save_agent(AgentRow { wrapped_at_us: Some(now.0), ..row }).await?;
        }
        let peers = self.peers(agent);
        let is_gone = self.act(|state, now| {
            if !wrapped {
                state.core.left(agent, now);
                return state.core.presence(agent, now) == Presence::Gone;
            }
            state.polls.wrapped(agent);
            state.core.wrap(agent, now);
            for (path, contact) in state.facts.get(agent).into_iter().flat_map(|facts| &facts.contacts) {
                if let Some(adapter) = self.adapters.of(*path) {
                    adapter.detach(contact);
                }
            }
            state.forget(agent);
            true
        });
        if !is_gone {
            return Ok(());
        }
        let change = if wrapped { "wrapped" } else { "left" };
        self.events.tell("agent", || {
            let (at, agent) = (rfc3339(now), agent.to_string());
            json!(AgentEvent { at, agent, change: change.to_owned(), surface: None })
        });
        let body = format!("{agent} has {}.", if wrapped { "wrapped up" } else { "gone without a word" });
        self.tell_news(peers.into_iter().map(|peer| (SignalType::PeerLeft, peer, body.clone())).collect()).await;
        Ok(())
    }

    fn row_of(&self, agent: &Name) -> Option<AgentRow> {
        let state = self.state();
        let (window, facts) = (state.core.window(agent)?, state.facts.get(agent)?);
        Some(AgentRow {
            name: agent.to_string(),
            session: window.session,
            surface: window.surface.to_string(),
            workspace: window.workspace.as_deref().unwrap_or_default().to_owned(),
            transport: window.transport.to_string(),
            surface_session: window.surface_session.as_deref().map(str::to_owned),
            facts: facts.write(),
            mcp_session: facts.mcp_session,
            instance: facts.instance,
            started_at_us: window.started.0,
            seen_at_us: window.seen.0,
            wrapped_at_us: window.wrapped.map(|at| at.0),
        })
    }

    /// The others that are there, in the same workspace.
    fn peers(&self, agent: &Name) -> Vec<Name> {
        let (state, now) = (self.state(), self.now());
        let workspace = |agent: &Name| state.core.window(agent).and_then(|window| window.workspace.clone());
        let Some(own) = workspace(agent) else { return Vec::new() };
        let is_there = |peer: &&Name| !matches!(state.core.presence(peer, now), Presence::Gone | Presence::Wrapped);
        let peers = state.core.names().filter(|peer| *peer != agent && workspace(peer).as_ref() == Some(&own));
        peers.filter(is_there).take(MAX_PEERS).cloned().collect()
    }
}

// === impl MeshState ===

impl MeshState {
    /// Forgets an agent altogether.
    pub(super) fn forget_all(&mut self, agent: &Name) {
        self.forget(agent);
        self.core.forget(agent);
    }

    /// Notes whose name another window takes now. (M6)
    fn displace(&mut self, agent: &Name) {
        let of = |among: &HashMap<u128, Name>| -> Vec<u128> {
            among.iter().filter(|(_, known)| *known == agent).map(|(id, _)| *id).collect()
        };
        let ids = [of(&self.by_mcp), of(&self.by_instance)].concat();
        if self.displaced.len() + ids.len() > MAX_DISPLACED {
            self.displaced.clear();
        }
        self.displaced.extend(ids.into_iter().map(|id| (id, agent.clone())));
    }

    /// Forgets by which ways an agent came.
    fn forget(&mut self, agent: &Name) {
        self.facts.remove(agent);
        self.by_mcp.retain(|_, known| known != agent);
        self.by_instance.retain(|_, known| known != agent);
    }
}

// === impl WindowFacts ===

impl WindowFacts {
    fn read(row: &AgentRow) -> Self {
        let kept: KeptFacts = serde_json::from_str(&row.facts).unwrap_or_default();
        let told = AgentFacts {
            agent: row.name.as_str().into(),
            session: hyphenated(row.session).into(),
            surface: row.surface.clone(),
            workspace: (!row.workspace.is_empty()).then(|| row.workspace.clone().into()),
            surface_session: row.surface_session.clone(),
            wake: kept.wake,
            client: ClientFacts {
                has_channel: row.transport == "stdio",
                tmux: kept.tmux_pane.map(|pane| Tmux { pane, socket: None }),
            },
        };
        Self {
            told: Arc::new(told),
            contacts: Vec::new(),
            mcp_session: row.mcp_session,
            instance: row.instance,
            checkpoint: None,
            support_changes: VecDeque::new(),
            rungs: HashMap::new(),
            absent: HashMap::new(),
        }
    }

    fn write(&self) -> String {
        let tmux_pane = self.told.client.tmux.as_ref().map(|tmux| tmux.pane.clone());
        json!(KeptFacts { wake: self.told.wake.clone(), tmux_pane }).to_string()
    }

    pub(super) fn contact(&self, path: WakePath) -> Option<WakeContact> {
        self.contacts.iter().find(|(known, _)| *known == path).map(|(_, contact)| contact.clone())
    }

    /// Paths that lead out of the daemon.
    pub(super) fn outside(&self) -> Vec<(WakePath, WakeContact)> {
        self.contacts.iter().filter(|(path, _)| !HELD.contains(path)).cloned().collect()
    }

    pub(super) fn note_look(&mut self, path: WakePath, probe: &ProbeOutcome) {
        match probe {
            ProbeOutcome::There => self.absent.remove(&path),
            ProbeOutcome::Absent(why) => self.absent.insert(path, why.to_string()),
        };
    }

    pub(super) fn note_support(&mut self, support: WakeSupport, now: Time) {
        if self.support_changes.len() >= MAX_CHANGES {
            self.support_changes.pop_front();
        }
        self.support_changes.push_back((now, support));
    }

    pub(super) fn note_rung(&mut self, path: WakePath, rung: &RingOutcome, now: Time) {
        let said = match rung {
            RingOutcome::Rang => "rang".to_owned(),
            RingOutcome::Uncaptured(why) => format!("uncaptured: {why}"),
            RingOutcome::SendFailed(why) => format!("send-failed: {why}"),
            RingOutcome::Unanswered(why) => format!("unanswered: {why}"),
        };
        self.rungs.insert(path, (now, said));
    }
}

fn row(agent: &Name, caller: &MeshCaller, arguments: StartArguments, session: u128, Time(now): Time) -> AgentRow {
    let StartArguments { surface, workspace, surface_session, wake, .. } = arguments;
    let (mark, transport) = match caller {
        MeshCaller::Client(mark) => (Some(mark), mark.transport.clone()),
        MeshCaller::Script | MeshCaller::Person => (None, "script".to_owned()),
    };
    let client = mark.and_then(|mark| mark.client.as_deref());
    AgentRow {
        name: agent.to_string(),
        session,
        surface: surface.unwrap_or_else(|| surface_of(client.unwrap_or(&transport))),
        workspace: workspace.unwrap_or_default(),
        transport,
        surface_session,
        facts: json!(KeptFacts { wake, tmux_pane: mark.and_then(|mark| mark.tmux_pane.clone()) }).to_string(),
        mcp_session: mark.and_then(|mark| mark.session).map(|id| id.as_u128()),
        instance: mark.and_then(|mark| mark.instance).map(|id| id.as_u128()),
        started_at_us: now,
        seen_at_us: now,
        wrapped_at_us: None,
    }
}

/// The program that a client is, by what it calls itself.
pub(super) fn surface_of(client: &str) -> String {
    let folded = client.to_ascii_lowercase().replace(['-', ' '], "_");
    let known = SURFACES.into_iter().find(|surface| folded.contains(surface));
    known.map_or(folded, str::to_owned)
}

/// Whether a program acts on what comes down its stream unasked. On stdio none was seen to read it before its own next
/// request, and Claude Desktop does not on any.
pub(super) fn heeds_stream(surface: &str, transport: &str) -> bool {
    transport != "stdio" && surface_of(surface) != "claude_desktop"
}

fn window(row: &AgentRow) -> Window {
    Window {
        session: row.session,
        surface: row.surface.as_str().into(),
        workspace: (!row.workspace.is_empty()).then(|| row.workspace.as_str().into()),
        transport: row.transport.as_str().into(),
        heeds_stream: heeds_stream(&row.surface, &row.transport),
        surface_session: row.surface_session.as_deref().map(Into::into),
        started: Time(row.started_at_us),
        seen: Time(row.seen_at_us),
        wrapped: row.wrapped_at_us.map(Time),
        left: false,
    }
}

/// What the store says of an agent's queue, in the core's words.
pub(super) fn look(pending: &MailboxCount) -> (BacklogView, Option<SignalHeader>) {
    let look = BacklogView {
        ringing: pending.ringing,
        quiet: pending.pending.saturating_sub(pending.ringing),
        newest: pending.newest,
    };
    let first = pending.first_ringing.as_ref().and_then(|first| {
        Some(SignalHeader {
            seq: first.seq,
            signal: first.id,
            trace: first.trace,
            kind: SignalType::named(&first.kind)?,
            sender: first.sender.as_str().into(),
        })
    });
    (look, first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_known_by_the_program_in_its_name() {
        for (client, surface) in [
            ("claude-code", "claude_code"),
            ("cursor-vscode", "cursor"),
            ("codex-mcp-client", "codex"),
            ("Visual Studio Code", "visual_studio_code"),
            ("opencode", "opencode"),
            ("my-agent", "my_agent"),
        ] {
            assert_eq!(surface_of(client), surface);
        }
    }

    // R-28, M-09
    #[test]
    fn a_stream_is_heeded_over_http_and_never_by_claude_desktop() {
        for (surface, transport, heeds) in [
            ("cursor", "http", true),
            ("cursor", "sse", true),
            ("cursor", "stdio", false),
            ("Claude Desktop", "stdio", false),
            ("claude_desktop", "http", false),
            ("my_agent", "http", true),
        ] {
            assert_eq!(heeds_stream(surface, transport), heeds, "{surface} {transport}");
        }
    }
}
