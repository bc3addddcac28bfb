//! When what has changed in a link's sessions is written down.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use super::LinkDriver;

/// Between two times. The first one is at once: a client that was told so may rely on it the next moment.
const PAUSE: Duration = Duration::from_millis(50);

#[derive(Default)]
pub(super) struct SaveSchedule {
    at: Option<Instant>,
    last: Option<Instant>,
    busy: Arc<AtomicBool>,
}

impl SaveSchedule {
    /// When it is to be done next, if there is anything to do.
    pub(super) fn due(&self) -> Option<Instant> {
        self.at
    }

    /// There is something to write down.
    pub(super) fn ask(&mut self, now: Instant) {
        let soon = self.last.map_or(now, |last| now.max(last + PAUSE));
        self.at.get_or_insert(soon);
    }
}

impl LinkDriver {
    /// Has what has changed written down, when it is time.
    pub(super) fn save(&mut self, now: Instant) {
        if self.saving.at.is_none_or(|at| at > now) {
            return;
        }
        // One at a time, or an older state could be written over a newer one.
        if self.saving.busy.swap(true, Ordering::Acquire) {
            self.saving.at = Some(now + PAUSE);
            return;
        }
        (self.saving.at, self.saving.last) = (None, Some(now));
        let (kept, sessions) = (self.machine.take_unsaved(), self.shared.sessions().clone());
        let busy = self.saving.busy.clone();
        tokio::spawn(async move {
            if let Some(keeping) = sessions.keeping() {
                keeping.save(kept).await;
            }
            busy.store(false, Ordering::Release);
        });
    }
}
