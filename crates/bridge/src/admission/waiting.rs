//! Calls that wait for a person, and how their clients take them back.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;
use uuid::Uuid;

/// Calls that may wait at a time. Beyond it what needs a person is refused: each holds its client's connection.
const MAX_WAITING: usize = 1024;

#[derive(Default)]
pub(super) struct WaitingCalls(Arc<Mutex<WaitingTable>>);

#[derive(Default)]
struct WaitingTable {
    calls: HashMap<u64, WaitingCall>,
    last: u64,
}

struct WaitingCall {
    session: Option<Uuid>,
    id: String,
    cancelled: Arc<Notify>,
}

/// A call's place among those that wait, given back when it is dropped.
pub(super) struct WaitingSlot {
    number: u64,
    cancelled: Arc<Notify>,
    waiting: Arc<Mutex<WaitingTable>>,
}

impl WaitingCalls {
    /// Takes a place for a call; `None` if there is none left.
    pub(super) fn enter(&self, session: Option<Uuid>, id: &str) -> Option<WaitingSlot> {
        let mut state = lock(&self.0);
        if state.calls.len() >= MAX_WAITING {
            return None;
        }
        state.last += 1;
        let (number, cancelled) = (state.last, Arc::new(Notify::new()));
        state.calls.insert(number, WaitingCall { session, id: id.to_owned(), cancelled: cancelled.clone() });
        Some(WaitingSlot { number, cancelled, waiting: self.0.clone() })
    }

    pub(super) fn cancel(&self, session: Uuid, id: &str) {
        self.end(|call| call.session == Some(session) && call.id == id);
    }

    pub(super) fn leave(&self, session: Uuid) {
        self.end(|call| call.session == Some(session));
    }

    fn end(&self, which: impl Fn(&WaitingCall) -> bool) {
        for call in lock(&self.0).calls.values().filter(|call| which(call)) {
            call.cancelled.notify_one();
        }
    }
}

impl WaitingSlot {
    /// Returns when the client does not want it any more.
    pub(super) async fn cancelled(&self) {
        self.cancelled.notified().await;
    }
}

impl Drop for WaitingSlot {
    fn drop(&mut self) {
        lock(&self.waiting).calls.remove(&self.number);
    }
}

fn lock(state: &Mutex<WaitingTable>) -> MutexGuard<'_, WaitingTable> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn only_its_own_client_takes_a_call_back() {
        let waiting = WaitingCalls::default();
        let (one, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let place = waiting.enter(Some(one), "7").expect("a place");
        waiting.cancel(other, "7");
        waiting.cancel(one, "\"7\"");
        waiting.leave(other);
        assert!(place.cancelled().now_or_never().is_none());
        waiting.cancel(one, "7");
        assert!(place.cancelled().now_or_never().is_some());
        waiting.leave(one);
        assert!(place.cancelled().now_or_never().is_some());
    }

    #[test]
    fn there_are_so_many_places_and_each_is_given_back() {
        let waiting = WaitingCalls::default();
        let places: Vec<_> = (0..MAX_WAITING).map_while(|_| waiting.enter(None, "1")).collect();
        assert_eq!(places.len(), MAX_WAITING);
        assert!(waiting.enter(None, "1").is_none());
        drop(places);
        assert!(waiting.enter(None, "1").is_some());
    }
}
