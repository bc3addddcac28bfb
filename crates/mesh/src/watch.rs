//! Looks whether the ways to agents lead to anybody: programs outside of the daemon do not say when they come and go. What
//! is found is told to the core, which alone says how a path is.

use std::{sync::Weak, time::Duration};

use futures_util::{StreamExt as _, future::join_all, stream};
use prism_core::mesh::{Name, WakePath};
use tokio::time::{sleep, timeout};

use super::Mesh;
use crate::wake::{ProbeOutcome, WakeContact};

/// How long a start waits to say how its agent can be reached. They answer within milliseconds; who does not is not there.
const START_WAITS: Duration = Duration::from_secs(2);
/// Agents whose paths are looked at at a time.
const AT_ONCE: usize = 8;

/// What the daemon holds itself, and so knows of.
pub(super) const HELD: [WakePath; 6] =
    [WakePath::Wait, WakePath::Hook, WakePath::Acp, WakePath::Sse, WakePath::Channel, WakePath::Piggyback];

/// Has all of them looked at, now and then.
pub(super) async fn watching(mesh: Weak<Mesh>) {
    loop {
        let Some(strong) = mesh.upgrade() else { return };
        let every = strong.settings.ping_every;
        let agents: Vec<Name> = strong.state().facts.keys().cloned().collect();
        stream::iter(&agents).for_each_concurrent(AT_ONCE, |agent| strong.look_at_paths(agent)).await;
        drop(strong);
        if every.is_zero() {
            return;
        }
        sleep(every).await;
    }
}

impl Mesh {
    /// Finds out what the answer to a start tells: whether its stream and the programs outside are really there.
    pub(super) async fn settle_paths(&self, agent: &Name) {
        if let Ok((look, first)) = self.look(agent) {
            self.act(|state, now| state.core.reconciled(agent, Some(look), first, now));
        }
        let (Some(mesh), agent) = (self.this.upgrade(), agent.clone()) else { return };
        let looking = tokio::spawn(async move { mesh.look_at_paths(&agent).await });
        let _ = timeout(START_WAITS, looking).await;
    }

    async fn look_at_paths(&self, agent: &Name) {
        let outside = self.state().facts.get(agent).map(|facts| facts.outside()).unwrap_or_default();
        join_all(outside.iter().map(|(path, contact)| self.look_at(agent, *path, contact))).await;
    }

    pub(super) async fn look_at(&self, agent: &Name, path: WakePath, contact: &WakeContact) {
        let Some(adapter) = self.adapters.of(path) else { return };
        let probe = adapter.probe(contact).await;
        self.act(|state, now| {
            // It may have started anew meanwhile, and be elsewhere.
            let Some(facts) = state.facts.get_mut(agent) else { return };
            if facts.contact(path).as_ref() == Some(contact) {
                facts.note_look(path, &probe);
                state.core.looked(agent, path, probe == ProbeOutcome::There, now);
            }
        });
    }
}
