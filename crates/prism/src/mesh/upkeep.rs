//! What the mesh does by itself: deadlines of bells and obligations, signals out of date, the history's end.

use std::{sync::Weak, time::Duration};

use prism_core::mesh::name;
use prism_store::mesh::Trim;
use tokio::time::{sleep, timeout};
use tracing::warn;

use super::Mesh;

/// How often signals are looked through for those that are out of date.
const EXPIRE_EVERY: Duration = Duration::from_secs(1);
/// What the history keeps: of each agent the newest, and nothing older than a month.
const KEPT_PER_AGENT: u32 = 1000;
const KEPT_FOR: Duration = Duration::from_secs(30 * 24 * 3600);
/// Signals that are ended, and forgotten, at once: the writer is held up for that long, a few milliseconds.
const ENDED_AT_ONCE: u32 = 100;
const FORGOTTEN_AT_ONCE: u32 = 20;
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
                let _ = timeout(time, strong.changed.notified()).await;
            }
        }
    }
}

/// Ends what is out of date, and forgets what is long over.
pub(super) async fn housekeeping(mesh: Weak<Mesh>) {
    loop {
        sleep(EXPIRE_EVERY).await;
        let Some(mesh) = mesh.upgrade() else { return };
        let now = mesh.now();
        match mesh.store.expire(now.0, ENDED_AT_ONCE).await {
            Ok(expired) => mesh.act(|state, now| {
                for one in expired {
                    if let Ok(recipient) = name(&one.recipient) {
                        state.core.gone(&recipient, one.seq, one.rings, one.id, now);
                    }
                }
            }),
            Err(prism_store::WriteError::Closed) => return,
            Err(error) => warn!(%error, "Cannot end signals that are out of date"),
        }
        mesh.note_seen();
        let kept_for = i64::try_from(KEPT_FOR.as_micros()).unwrap_or(i64::MAX);
        let before_us = Some(now.0.saturating_sub(kept_for));
        let trim = Trim { keep_per_agent: Some(KEPT_PER_AGENT), before_us, limit: FORGOTTEN_AT_ONCE };
        if let Err(error) = mesh.store.trim_history(trim).await {
            warn!(%error, "Cannot trim the history of signals");
        }
    }
}

impl Mesh {
    /// Has it written down when agents were last seen, so that the next daemon knows.
    fn note_seen(&self) {
        let now = self.now();
        let state = self.state();
        for agent in state.core.names() {
            if let Some(window) = state.core.window(agent).filter(|window| now.since(window.seen) <= EXPIRE_EVERY) {
                self.recorder.seen(agent, window.seen);
            }
        }
    }
}
