//! The streams that clients of Prism's own server have open, and which agent each leads to.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Weak},
};

use prism_core::{
    mcp::link::SessionKey,
    mesh::{Name, PENDING},
};
use tracing::debug;
use uuid::Uuid;

use super::{Mesh, MeshState};
use prism_bridge::drive::reach::{LinkSender, OpenedStream, RingTarget, StreamId, StreamObserver};

#[derive(Default)]
pub(super) struct AgentStreams {
    open: HashMap<StreamId, AgentStream>,
    /// Sessions whose streams are there and whose clients do not answer.
    silent: HashSet<u128>,
}

struct AgentStream {
    line: LinkSender,
    to: StreamTarget,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum StreamTarget {
    Session(u128),
    /// Agents' sessions that a modern client listens for.
    Doorbells(Vec<u128>),
}

/// What links tell, brought to the mesh.
struct MeshObserver(Weak<Mesh>);

impl Mesh {
    /// Who is told by links which clients can be reached.
    pub fn reach(self: &Arc<Self>) -> Arc<dyn StreamObserver> {
        Arc::new(MeshObserver(Arc::downgrade(self)))
    }
}

impl Mesh {
    /// Has the clients asked, now and then, whether they are there, whose streams lead to an agent. Those that listen with
    /// `subscriptions/listen` cannot be: 2026-07-28 has no ping, and no other request that a server may begin with. Their
    /// streams count until they break.
    pub(super) fn watch_over(&self, agent: &Name) {
        let lines = self.state().lines(agent);
        let every = Some(self.settings.ping_every).filter(|every| !every.is_zero());
        for (line, ringing) in lines {
            if let RingTarget::Session(session) = ringing {
                tokio::spawn(async move { line.watch(session, every).await });
            }
        }
    }
}

impl MeshState {
    fn agents_at(&self, to: &StreamTarget) -> Vec<Name> {
        match to {
            StreamTarget::Session(session) => self.by_mcp.get(session).cloned().into_iter().collect(),
            StreamTarget::Doorbells(sessions) => {
                sessions.iter().filter_map(|id| self.core.agent_of(*id).cloned()).collect()
            }
        }
    }

    /// Whether a stream leads to a client that is no agent yet.
    pub(super) fn has_stream_of(&self, session: Uuid) -> bool {
        let to = StreamTarget::Session(session.as_u128());
        self.streams.open.values().any(|stream| stream.to == to) && !self.streams.silent.contains(&session.as_u128())
    }

    /// Whether a stream leads to an agent, and its client answers.
    pub(super) fn has_stream(&self, agent: &Name) -> bool {
        !self.lines(agent).is_empty()
    }

    /// Where to ring for an agent: on its session's own streams, or where somebody listens for its doorbell.
    pub(super) fn lines(&self, agent: &Name) -> Vec<(LinkSender, RingTarget)> {
        let mcp = self.facts.get(agent).and_then(|facts| facts.mcp_session);
        let window = self.core.window(agent).map(|window| window.session);
        let mut lines: Vec<(LinkSender, RingTarget)> = Vec::new();
        for AgentStream { line, to } in self.streams.open.values() {
            let ringing = match to {
                StreamTarget::Session(session) if Some(*session) == mcp && !self.streams.silent.contains(session) => {
                    RingTarget::Session(SessionKey(*session))
                }
                StreamTarget::Doorbells(sessions) => match window.filter(|window| sessions.contains(window)) {
                    Some(window) => RingTarget::Uri(format!("{PENDING}/{}", Uuid::from_u128(window))),
                    None => continue,
                },
                StreamTarget::Session(_) => continue,
            };
            // A link rings on all streams of a session at once.
            if !lines.iter().any(|(_, known)| *known == ringing) {
                lines.push((line.clone(), ringing));
            }
        }
        lines
    }
}

/// The agents' sessions that these URIs are the doorbells of.
fn doorbells(uris: &[String]) -> Vec<u128> {
    let session = |uri: &String| Uuid::try_parse(uri.strip_prefix(PENDING)?.strip_prefix('/')?).ok();
    uris.iter().filter_map(session).map(|id| id.as_u128()).collect()
}

impl StreamObserver for MeshObserver {
    fn stream_opened(&self, open: OpenedStream) {
        let Some(mesh) = self.0.upgrade() else { return };
        let to = match open.session {
            Some(session) => StreamTarget::Session(session.0),
            None => StreamTarget::Doorbells(doorbells(&open.uris)),
        };
        if to == StreamTarget::Doorbells(Vec::new()) {
            return;
        }
        let agents = mesh.act(|state, now| {
            if let StreamTarget::Session(session) = &to {
                state.streams.silent.remove(session);
            }
            let agents = state.agents_at(&to);
            state.streams.open.insert(open.stream, AgentStream { line: open.link, to });
            for agent in &agents {
                state.core.seen(agent, now);
                state.core.stream_opened(agent, now);
            }
            agents
        });
        for agent in agents {
            mesh.watch_over(&agent);
        }
    }

    fn stream_closed(&self, stream: StreamId) {
        let Some(mesh) = self.0.upgrade() else { return };
        mesh.act(|state, now| {
            let Some(AgentStream { to, .. }) = state.streams.open.remove(&stream) else { return };
            for agent in state.agents_at(&to) {
                if !state.has_stream(&agent) {
                    state.core.stream_closed(&agent, now);
                }
            }
        });
    }

    fn session_ended(&self, SessionKey(session): SessionKey) {
        let Some(mesh) = self.0.upgrade() else { return };
        let agent = {
            let mut state = mesh.state();
            state.streams.silent.remove(&session);
            state.by_mcp.remove(&session)
        };
        if let Some(agent) = agent {
            tokio::spawn(async move {
                if let Err(trouble) = mesh.leave(&agent, false).await {
                    debug!(agent = &*agent, why = trouble.message, "An agent's leaving could not be told");
                }
            });
        }
    }

    fn piggyback(&self, SessionKey(session): SessionKey) -> Option<String> {
        let mesh = self.0.upgrade()?;
        let bell = mesh.act(|state, now| {
            let agent = state.by_mcp.get(&session).cloned()?;
            state.core.piggyback(&agent, now)
        })?;
        Some(bell.to_string())
    }

    fn piggyback_instance(&self, instance: Uuid) -> Option<String> {
        let mesh = self.0.upgrade()?;
        let bell = mesh.act(|state, now| {
            let agent = state.by_instance.get(&instance.as_u128()).cloned()?;
            state.core.piggyback(&agent, now)
        })?;
        Some(bell.to_string())
    }

    fn seen(&self, SessionKey(session): SessionKey) {
        let Some(mesh) = self.0.upgrade() else { return };
        mesh.act(|state, now| {
            let Some(agent) = state.by_mcp.get(&session).cloned() else { return };
            state.core.seen(&agent, now);
            if state.streams.silent.remove(&session) && state.has_stream(&agent) {
                state.core.stream_opened(&agent, now);
            }
        });
    }

    fn silent(&self, SessionKey(session): SessionKey) {
        let Some(mesh) = self.0.upgrade() else { return };
        mesh.act(|state, now| {
            state.streams.silent.insert(session);
            if let Some(agent) = state.by_mcp.get(&session).cloned()
                && !state.has_stream(&agent)
            {
                state.core.stream_closed(&agent, now);
            }
        });
    }
}
