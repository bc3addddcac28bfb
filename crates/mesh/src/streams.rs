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

use super::{Mesh, State};
use prism_bridge::drive::reach::{Line, Open, Reach, Ringing, StreamId};

#[derive(Default)]
pub(super) struct Streams {
    open: HashMap<StreamId, Stream>,
    /// Sessions whose streams are there and whose clients do not answer.
    silent: HashSet<u128>,
}

struct Stream {
    line: Line,
    to: To,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum To {
    Session(u128),
    /// Agents' sessions that a modern client listens for.
    Doorbells(Vec<u128>),
}

/// What links tell, brought to the mesh.
struct Told(Weak<Mesh>);

impl Mesh {
    /// Who is told by links which clients can be reached.
    pub fn reach(self: &Arc<Self>) -> Arc<dyn Reach> {
        Arc::new(Told(Arc::downgrade(self)))
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
            if let Ringing::Session(session) = ringing {
                tokio::spawn(async move { line.watch(session, every).await });
            }
        }
    }
}

impl State {
    fn agents_at(&self, to: &To) -> Vec<Name> {
        match to {
            To::Session(session) => self.by_mcp.get(session).cloned().into_iter().collect(),
            To::Doorbells(sessions) => sessions.iter().filter_map(|id| self.core.agent_of(*id).cloned()).collect(),
        }
    }

    /// Whether a stream leads to a client that is no agent yet.
    pub(super) fn has_stream_of(&self, session: Uuid) -> bool {
        let to = To::Session(session.as_u128());
        self.streams.open.values().any(|stream| stream.to == to) && !self.streams.silent.contains(&session.as_u128())
    }

    /// Whether a stream leads to an agent, and its client answers.
    pub(super) fn has_stream(&self, agent: &Name) -> bool {
        !self.lines(agent).is_empty()
    }

    /// Where to ring for an agent: on its session's own streams, or where somebody listens for its doorbell.
    pub(super) fn lines(&self, agent: &Name) -> Vec<(Line, Ringing)> {
        let mcp = self.facts.get(agent).and_then(|facts| facts.mcp_session);
        let window = self.core.window(agent).map(|window| window.session);
        let mut lines: Vec<(Line, Ringing)> = Vec::new();
        for Stream { line, to } in self.streams.open.values() {
            let ringing = match to {
                To::Session(session) if Some(*session) == mcp && !self.streams.silent.contains(session) => {
                    Ringing::Session(SessionKey(*session))
                }
                To::Doorbells(sessions) => match window.filter(|window| sessions.contains(window)) {
                    Some(window) => Ringing::Uri(format!("{PENDING}/{}", Uuid::from_u128(window))),
                    None => continue,
                },
                To::Session(_) => continue,
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

impl Reach for Told {
    fn stream_opened(&self, open: Open) {
        let Some(mesh) = self.0.upgrade() else { return };
        let to = match open.session {
            Some(session) => To::Session(session.0),
            None => To::Doorbells(doorbells(&open.uris)),
        };
        if to == To::Doorbells(Vec::new()) {
            return;
        }
        let agents = mesh.act(|state, now| {
            if let To::Session(session) = &to {
                state.streams.silent.remove(session);
            }
            let agents = state.agents_at(&to);
            state.streams.open.insert(open.stream, Stream { line: open.link, to });
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
            let Some(Stream { to, .. }) = state.streams.open.remove(&stream) else { return };
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
