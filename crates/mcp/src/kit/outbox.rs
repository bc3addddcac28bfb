//! What is said to one client and was not fetched yet.
//!
//! Answers are never lost: each is owed to a request that was admitted, or is the short refusal of one that was not.
//! Notes of a call (progress, log) do not wait for room, because a tool must not stand still for a client that does not
//! read: the oldest makes way, as a later one says more. Changes are merged with an equal one that waits: hearing of it
//! once is enough.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use tokio::sync::Notify;

use super::connection::ServerMessage;

/// Notes that wait, and the bytes of them. Beyond either the oldest notes of calls are dropped, and counted in the log.
const MAX_NOTES: usize = 1024;
const MAX_NOTE_BYTES: usize = 8 << 20;
/// Answers that wait before no more requests are read from a pipe. In process the link bounds what it asks for.
const MAX_ANSWERS: usize = 64;

#[derive(Default)]
pub(super) struct Outbox {
    queue: Mutex<OutboxQueue>,
    /// Something was put in.
    filled: Notify,
    /// Something was taken out, or written.
    taken: Notify,
}

#[derive(Default)]
struct OutboxQueue {
    waiting: VecDeque<(OverflowPolicy, ServerMessage)>,
    /// Those that are no answers, and their bytes.
    notes: usize,
    note_bytes: usize,
    dropped: u64,
    /// Taken out, and not known to be written yet.
    in_hand: usize,
}

/// What becomes of a message when there is no room.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OverflowPolicy {
    /// It is kept.
    Answer,
    /// It is kept, unless an equal one waits.
    Change,
    /// It makes way.
    Note,
}

impl Outbox {
    fn queue(&self) -> MutexGuard<'_, OutboxQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn answer(&self, about: Option<u64>, bytes: Bytes) {
        self.queue().waiting.push_back((OverflowPolicy::Answer, ServerMessage { about, is_answer: true, bytes }));
        self.filled.notify_one();
    }

    /// Puts in what a call says on its way.
    pub(super) fn note(&self, about: Option<u64>, bytes: Bytes) {
        let mut queue = self.queue();
        queue.push(OverflowPolicy::Note, about, bytes);
        queue.make_room();
        drop(queue);
        self.filled.notify_one();
    }

    /// Puts in what must be heard, once.
    pub(super) fn change(&self, about: Option<u64>, bytes: Bytes) {
        let mut queue = self.queue();
        let is_it = |said: &ServerMessage| said.about == about && said.bytes == bytes;
        if queue.is_full() && queue.waiting.iter().any(|(_, said)| is_it(said)) {
            return;
        }
        queue.push(OverflowPolicy::Change, about, bytes);
        drop(queue);
        self.filled.notify_one();
    }

    /// Takes out the oldest, or waits for one. Cancel safe: it is taken in the poll that returns it.
    pub(super) async fn next(&self) -> ServerMessage {
        loop {
            if let Some(said) = self.try_next() {
                return said;
            }
            self.filled.notified().await;
        }
    }

    pub(super) fn try_next(&self) -> Option<ServerMessage> {
        let mut queue = self.queue();
        let said = queue.remove(0)?;
        queue.in_hand += 1;
        drop(queue);
        self.taken.notify_waiters();
        Some(said)
    }

    /// What was taken out is written.
    pub(super) fn written(&self) {
        self.queue().in_hand = 0;
        self.taken.notify_waiters();
    }

    /// Waits until all that was said is written; only on a pipe, as nobody else says so.
    pub(super) async fn drained(&self) {
        self.wait_until(|queue| queue.waiting.is_empty() && queue.in_hand == 0).await;
    }

    /// Waits until there is room for a note.
    pub(super) async fn room(&self) {
        self.wait_until(|queue| !queue.is_full()).await;
    }

    /// Waits until few answers wait.
    pub(super) async fn calm(&self) {
        self.wait_until(|queue| queue.waiting.len() - queue.notes < MAX_ANSWERS).await;
    }

    async fn wait_until(&self, good: impl Fn(&OutboxQueue) -> bool) {
        loop {
            let taken = self.taken.notified();
            if good(&self.queue()) {
                return;
            }
            taken.await;
        }
    }
}

impl OutboxQueue {
    fn is_full(&self) -> bool {
        self.notes >= MAX_NOTES || self.note_bytes >= MAX_NOTE_BYTES
    }

    fn push(&mut self, weight: OverflowPolicy, about: Option<u64>, bytes: Bytes) {
        self.notes += 1;
        self.note_bytes += bytes.len();
        self.waiting.push_back((weight, ServerMessage { about, is_answer: false, bytes }));
    }

    /// Drops the oldest notes until those that wait are within the bounds.
    fn make_room(&mut self) {
        while self.notes > MAX_NOTES || self.note_bytes > MAX_NOTE_BYTES {
            let Some(oldest) = self.waiting.iter().position(|(weight, _)| *weight == OverflowPolicy::Note) else {
                return;
            };
            self.remove(oldest);
            self.dropped += 1;
            // One record for each doubling: a flood of notes must not become one of records.
            if self.dropped.is_power_of_two() {
                tracing::warn!(dropped = self.dropped, "Notes of a built-in server are dropped: nobody fetches them");
            }
        }
    }

    fn remove(&mut self, at: usize) -> Option<ServerMessage> {
        let (_, said) = self.waiting.remove(at)?;
        if !said.is_answer {
            self.notes -= 1;
            self.note_bytes -= said.bytes.len();
        }
        Some(said)
    }
}
