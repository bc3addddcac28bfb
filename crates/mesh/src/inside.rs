//! What the daemon holds for agents, offered to the wake paths that lead through it.

use std::{
    path::Path as FilePath,
    sync::{Arc, Weak},
    time::Duration,
};

use prism_core::mesh::{ChatFailure, Name, WakePath};

use super::{Mesh, MeshState};
use crate::wake::{DaemonChannels, Doing, PollKind, WakeBell};

/// The editors' own chats.
pub trait Chats: Send + Sync {
    /// Whether a window of this kind has the folder open and lets bells into its chat.
    fn has_chat<'a>(&'a self, kind: &'a str, folder: Option<&'a FilePath>) -> Doing<'a, bool>;

    /// Has that window put the bell into its chat.
    fn ring_chat<'a>(
        &'a self,
        kind: &'a str,
        folder: Option<&'a FilePath>,
        bell: &'a WakeBell,
        within: Duration,
    ) -> Doing<'a, Result<(), ChatFailure>>;
}

struct DaemonWake(Weak<Mesh>);

pub(super) fn of(mesh: Weak<Mesh>) -> Arc<dyn DaemonChannels> {
    Arc::new(DaemonWake(mesh))
}

impl DaemonWake {
    fn with<T>(&self, session: &str, look: impl FnOnce(&mut MeshState, &Name) -> T) -> Option<T> {
        let mesh = self.0.upgrade()?;
        let mut state = mesh.state();
        let agent = state.of_session(session).ok()?;
        Some(look(&mut state, &agent))
    }

    fn chats(&self) -> Option<Arc<dyn Chats>> {
        self.0.upgrade()?.chats.get().cloned()
    }
}

impl DaemonChannels for DaemonWake {
    fn is_open(&self, path: WakePath, session: &str) -> bool {
        let open = self.with(session, |state, agent| match path {
            WakePath::Sse => state.has_stream(agent),
            WakePath::Piggyback => state.facts.get(agent).is_some_and(|facts| facts.mcp_session.is_some()),
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

    fn finish(&self, poll: PollKind, session: &str, bell: &WakeBell) -> bool {
        self.with(session, |state, agent| state.polls.finish(poll, agent, bell)).unwrap_or(false)
    }

    fn arm_piggyback(&self, session: &str, _bell: &WakeBell) -> bool {
        // The doorbell itself arms it, for as long as something waits.
        self.is_open(WakePath::Piggyback, session)
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
        bell: &'a WakeBell,
        within: Duration,
    ) -> Doing<'a, Result<(), ChatFailure>> {
        Box::pin(async move {
            let chats = self.chats().ok_or(ChatFailure::Nobody)?;
            chats.ring_chat(kind, folder, bell, within).await
        })
    }
}
