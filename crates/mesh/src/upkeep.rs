//! What the mesh does by itself: deadlines of bells and obligations, signals out of date, the history's end.

use std::{sync::Weak, time::Duration};

use prism_core::mesh::{Window, name};
use prism_store::{StoreWriteError, mesh::HistoryTrim};
use tokio::time::{sleep, timeout};
use tracing::warn;

use super::Mesh;

/// How often signals are looked through for those that are out of date.
const EXPIRE_EVERY: Duration = Duration::from_secs(1);
/// After how many of these looks it is noted who was seen, and forgotten what is long over.
const FORGET_EVERY: u64 = 60;
/// What the history keeps: of each agent the newest, and nothing older than a month.
const KEPT_PER_AGENT: u32 = 1000;
const KEPT_FOR: Duration = Duration::from_secs(30 * 24 * 3600);
/// Signals that are ended, and forgotten, at once: the writer is held up for that long, a few milliseconds.
const ENDED_AT_ONCE: u32 = 100;
const FORGOTTEN_AT_ONCE: u32 = 20;
/// How long the writer is left to others in between.
const BREATH: Duration = Duration::from_millis(50);
/// The longest sleep between two looks at the deadlines.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);

/// Has deadlines looked at when they are due.
pub(super) async fn deadlines(mesh: Weak<Mesh>) {
    loop {
        let Some(strong) = mesh.upgrade() else { return };
        let (now, due) = (strong.now(), strong.state().core.deadline());
        match due {
            Some(due) if due <= now => strong.act(|state, now| state.core.handle_deadline(now)),
            due => {
                let time = due.map_or(LONGEST_SLEEP, |due| due.since(now).min(LONGEST_SLEEP));
                let changed = strong.changed.clone();
                // Nobody is kept by waiting.
                drop(strong);
                let _ = timeout(time, changed.notified()).await;
            }
        }
    }
}

/// Ends what is out of date, and forgets what is long over.
pub(super) async fn housekeeping(mesh: Weak<Mesh>) {
    for second in 1_u64.. {
        sleep(EXPIRE_EVERY).await;
        let Some(mesh) = mesh.upgrade() else { return };
        let tidied = async {
            mesh.expire().await?;
            if second.is_multiple_of(FORGET_EVERY) {
                mesh.note_seen();
                mesh.forget().await?;
            }
            Ok(())
        };
        match tidied.await {
            Ok(()) => {}
            Err(StoreWriteError::Closed) => return,
            Err(error) => warn!(%error, "Signals that are out of date, or long over, could not be put away"),
        }
    }
}

impl Mesh {
    async fn expire(&self) -> Result<(), StoreWriteError> {
        let expired = self.store.expire(self.now().0, ENDED_AT_ONCE).await?;
        if !expired.is_empty() {
            self.act(|state, now| {
                for one in expired {
                    if let Ok(recipient) = name(&one.recipient) {
                        state.core.gone(&recipient, one.seq, one.rings, one.id, now);
                    }
                }
            });
        }
        Ok(())
    }

    async fn forget(&self) -> Result<(), StoreWriteError> {
        let kept_for = i64::try_from(KEPT_FOR.as_micros()).unwrap_or(i64::MAX);
        let before_us = self.now().0.saturating_sub(kept_for);
        let limit = FORGOTTEN_AT_ONCE;
        let trim = || HistoryTrim { keep_per_agent: Some(KEPT_PER_AGENT), before_us: Some(before_us), limit };
        while self.store.trim_history(trim()).await? == u64::from(limit) {
            sleep(BREATH).await;
        }
        let gone = self.store.forget_agents(before_us).await?;
        if !gone.is_empty() {
            self.act(|state, _| {
                gone.iter().filter_map(|gone| name(gone).ok()).for_each(|gone| state.forget_all(&gone))
            });
        }
        Ok(())
    }

    /// Has it written down when agents were last seen, so that the next daemon knows, about.
    fn note_seen(&self) {
        let now = self.now();
        let state = self.state();
        for agent in state.core.names() {
            let lately =
                |window: &&Window| now.since(window.seen) <= EXPIRE_EVERY * u32::try_from(FORGET_EVERY).unwrap_or(1);
            if let Some(window) = state.core.window(agent).filter(lately) {
                self.recorder.seen(agent, window.seen);
            }
        }
    }
}
