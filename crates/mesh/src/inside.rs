//! What the daemon holds for agents, offered to the wake paths that lead through it.

use std::{
    path::Path as FilePath,
    sync::{Arc, Weak},
    time::Duration,
};

use prism_core::mesh::{ChatFailure, Name, Path};

use super::{Mesh, State};
use crate::wake::{Bell, Doing, Inside, Poll};

/// The editors' own chats.
pub trait Chats: Send + Sync {
    /// Whether a window of this kind has the folder open and lets bells into its chat.
    fn has_chat<'a>(&'a self, kind: &'a str, folder: Option<&'a FilePath>) -> Doing<'a, bool>;

    /// Has that window put the bell into its chat.
    fn ring_chat<'a>(
        &'a self,
        kind: &'a str,
        folder: Option<&'a FilePath>,
        bell: &'a Bell,
        within: Duration,
    ) -> Doing<'a, Result<(), ChatFailure>>;
}

struct Held(Weak<Mesh>);

pub(super) fn of(mesh: Weak<Mesh>) -> Arc<dyn Inside> {
    Arc::new(Held(mesh))
}

impl Held {
    fn with<T>(&self, session: &str, look: impl FnOnce(&mut State, &Name) -> T) -> Option<T> {
        let mesh = self.0.upgrade()?;
        let mut state = mesh.state();
        let agent = state.of_session(session).ok()?;
        Some(look(&mut state, &agent))
    }

    fn chats(&self) -> Option<Arc<dyn Chats>> {
        self.0.upgrade()?.chats.get().cloned()
    }
}

impl Inside for Held {
    fn is_open(&self, path: Path, session: &str) -> bool {
        let open = self.with(session, |state, agent| match path {
            Path::Sse => state.has_stream(agent),
            Path::Piggyback => state.facts.get(agent).is_some_and(|facts| facts.mcp_session.is_some()),
            path => state.core.bell(agent).is_some_and(|bell| bell.is_open(path)),
        });
        open.unwrap_or(false)
    }

    fn ring_stream<'a>(&'a self, session: &'a str) -> Doing<'a, bool> {
        Box::pin(async move {
            let lines = self.with(session, |state, agent| state.lines(agent)).unwrap_or_default();
            let mut took = false;
            for (line, ringing) in lines {
                took |= line.ring(ringing).await;
            }
            took
        })
    }

    fn finish(&self, poll: Poll, session: &str, bell: &Bell) -> bool {
        self.with(session, |state, agent| state.polls.finish(poll, agent, bell)).unwrap_or(false)
    }

    fn arm_piggyback(&self, session: &str, _bell: &Bell) -> bool {
        // The doorbell itself arms it, for as long as something waits.
        self.is_open(Path::Piggyback, session)
    }

    fn has_chat<'a>(&'a self, kind: &'a str, folder: Option<&'a FilePath>) -> Doing<'a, bool> {
        Box::pin(async move {
            match self.chats() {
                Some(chats) => chats.has_chat(kind, folder).await,
                None => false,
            }
        })
    }

    fn ring_chat<'a>(
        &'a self,
        kind: &'a str,
        folder: Option<&'a FilePath>,
        bell: &'a Bell,
        within: Duration,
    ) -> Doing<'a, Result<(), ChatFailure>> {
        Box::pin(async move {
            let chats = self.chats().ok_or(ChatFailure::Nobody)?;
            chats.ring_chat(kind, folder, bell, within).await
        })
    }
}
