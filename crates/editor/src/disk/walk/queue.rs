//! What waits to be done by some threads that all find more to do.

use std::{
    ops::Deref,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
};

/// The last that was put in is taken first, so that a tree is gone through to its depth and few folders are open at a time.
pub(super) struct WalkQueue<T> {
    state: Mutex<QueueState<T>>,
    changed: Condvar,
}

struct QueueState<T> {
    waiting: Vec<T>,
    /// Those at work, who may put in more.
    at_work: usize,
    is_closed: bool,
}

/// Something that is being done until it is dropped.
pub(super) struct TakenJob<'a, T> {
    queue: &'a WalkQueue<T>,
    thing: T,
}

/// Folders and parts of folders that wait. What does not fit is not looked into, and the answer says that it is not complete:
/// it would be a folder with that many in it.
const MAX_WAITING: usize = 100_000;

impl<T> WalkQueue<T> {
    /// Returns what to do next; `None` when all is done, or it is over.
    pub(super) fn take(&self) -> Option<TakenJob<'_, T>> {
        let mut state = self.state();
        loop {
            if state.is_closed {
                return None;
            }
            if let Some(thing) = state.waiting.pop() {
                state.at_work += 1;
                return Some(TakenJob { queue: self, thing });
            }
            if state.at_work == 0 {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Tells whether all of it could be put in.
    pub(super) fn put(&self, things: impl ExactSizeIterator<Item = T>) -> bool {
        if things.len() == 0 {
            return true;
        }
        let mut state = self.state();
        let (more, room) = (things.len(), MAX_WAITING.saturating_sub(state.waiting.len()));
        // Those that come last are taken first.
        state.waiting.extend(things.skip(more.saturating_sub(room)));
        drop(state);
        self.changed.notify_all();
        more <= room
    }

    /// Has nothing more done.
    pub(super) fn close(&self) {
        self.state().is_closed = true;
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, QueueState<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Default for WalkQueue<T> {
    fn default() -> Self {
        let state = QueueState { waiting: Vec::new(), at_work: 0, is_closed: false };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }
}

impl<T> Deref for TakenJob<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.thing
    }
}

impl<T> Drop for TakenJob<'_, T> {
    fn drop(&mut self) {
        let mut state = self.queue.state();
        state.at_work -= 1;
        if state.at_work == 0 {
            drop(state);
            self.queue.changed.notify_all();
        }
    }
}
