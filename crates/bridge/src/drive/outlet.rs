//! The near end of an event stream: a bounded queue between a link and one HTTP response.
//!
//! A link never waits for a reader. One that stops reading fills its queue and is cut off; its last event id lets it
//! resume, and nobody else notices.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use bytes::{Bytes, BytesMut};
use prism_core::wire::frame::KEEP_ALIVE;

/// Bytes that may wait for one reader. Beyond it the stream is cut off.
const MAX_WAITING_BYTES: usize = 2 << 20;
/// Room for this many events is kept for the next burst. A stream is silent most of its life.
const KEPT_ROOM: usize = 32;
/// What one frame of the body holds at most, so that a burst leaves in few writes.
const FRAME_BYTES: usize = 4 << 10;

pub struct Outlet {
    opened: Instant,
    state: Mutex<OutletState>,
}

#[derive(Default)]
struct OutletState {
    /// Events and their numbers.
    queue: VecDeque<(u64, Bytes)>,
    bytes: usize,
    /// The number of the last event that the reader took.
    taken: u64,
    /// A keep-alive is due, if nothing else is.
    beat: bool,
    ended: bool,
    reader_gone: bool,
    waker: Option<Waker>,
    /// When something last left.
    sent: Option<Instant>,
}

/// What became of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushOutcome {
    Queued,
    /// The reader is gone, or was cut off just now.
    Gone,
    CutOff,
}

/// The reader's end. Dropping it tells the link's side that nobody reads.
pub struct OutletReader {
    outlet: Arc<Outlet>,
}

// === impl Outlet ===

impl Outlet {
    pub fn open() -> (Arc<Self>, OutletReader) {
        let outlet = Arc::new(Self { opened: Instant::now(), state: Mutex::default() });
        (outlet.clone(), OutletReader { outlet })
    }

    pub fn push(&self, number: u64, event: Bytes) -> PushOutcome {
        let mut state = self.state();
        if state.reader_gone || state.ended {
            return PushOutcome::Gone;
        }
        // An event over the bound passes alone: it may be an answer.
        if state.bytes > 0 && state.bytes + event.len() > MAX_WAITING_BYTES {
            state.ended = true;
            state.queue = VecDeque::new();
            state.bytes = 0;
            wake(state);
            return PushOutcome::CutOff;
        }
        state.bytes += event.len();
        state.queue.push_back((number, event));
        wake(state);
        PushOutcome::Queued
    }

    /// Sends a keep-alive, unless something is on its way anyway. It never fills the queue of a reader that stopped.
    pub fn beat(&self) -> PushOutcome {
        let mut state = self.state();
        if state.reader_gone || state.ended {
            return PushOutcome::Gone;
        }
        state.beat = true;
        wake(state);
        PushOutcome::Queued
    }

    /// Ends the stream, after what is queued.
    pub fn end(&self) {
        let mut state = self.state();
        state.ended = true;
        wake(state);
    }

    /// The number of the last event that left.
    pub fn taken(&self) -> u64 {
        self.state().taken
    }

    /// Events that wait for the reader, how long it has been open, and how long nothing has left.
    pub fn health(&self) -> (usize, Duration, Duration) {
        let state = self.state();
        let (waiting, sent) = (state.queue.len(), state.sent.unwrap_or(self.opened));
        drop(state);
        (waiting, self.opened.elapsed(), sent.elapsed())
    }

    fn state(&self) -> MutexGuard<'_, OutletState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wakes the reader, once the lock is gone.
fn wake(mut state: MutexGuard<'_, OutletState>) {
    let waker = state.waker.take();
    drop(state);
    if let Some(waker) = waker {
        waker.wake();
    }
}

impl OutletState {
    fn take(&mut self) -> Option<Bytes> {
        let (number, event) = self.queue.pop_front()?;
        self.bytes -= event.len();
        self.taken = self.taken.max(number);
        Some(event)
    }
}

// === impl OutletReader ===

impl OutletReader {
    /// The next bytes of the stream; `None` at its end.
    pub fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let mut state = self.outlet.state();
        let beat = std::mem::take(&mut state.beat);
        let Some(first) = state.take() else {
            if state.ended {
                return Poll::Ready(None);
            }
            if beat {
                state.sent = Some(Instant::now());
                return Poll::Ready(Some(Bytes::from_static(KEEP_ALIVE)));
            }
            state.waker = Some(context.waker().clone());
            return Poll::Pending;
        };
        state.sent = Some(Instant::now());
        let fits = |size: usize, state: &OutletState| {
            state.queue.front().is_some_and(|(_, next)| size + next.len() <= FRAME_BYTES)
        };
        if !fits(first.len(), &state) {
            return Poll::Ready(Some(first));
        }
        let mut frame = BytesMut::from(&first[..]);
        while fits(frame.len(), &state)
            && let Some(next) = state.take()
        {
            frame.extend_from_slice(&next);
        }
        if state.queue.is_empty() && state.queue.capacity() > KEPT_ROOM {
            state.queue = VecDeque::new();
        }
        Poll::Ready(Some(frame.freeze()))
    }
}

impl OutletReader {
    /// Whether the stream has ended, and all of it was read.
    pub fn is_over(&self) -> bool {
        let state = self.outlet.state();
        state.ended && state.queue.is_empty()
    }
}

impl Drop for OutletReader {
    fn drop(&mut self) {
        let mut state = self.outlet.state();
        state.reader_gone = true;
        state.queue = VecDeque::new();
        state.waker = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(reader: &mut OutletReader) -> Poll<Option<Bytes>> {
        Pin::new(reader).poll_next(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn a_burst_leaves_in_one_frame_and_the_end_comes_last() {
        let (outlet, mut reader) = Outlet::open();
        assert!(read(&mut reader).is_pending());
        for (number, text) in [(4, "a"), (5, "b"), (6, "c")] {
            assert_eq!(outlet.push(number, Bytes::from(text)), PushOutcome::Queued);
        }
        outlet.end();
        assert_eq!(outlet.taken(), 0);
        assert_eq!(read(&mut reader), Poll::Ready(Some(Bytes::from("abc"))));
        assert_eq!(outlet.taken(), 6);
        assert_eq!(read(&mut reader), Poll::Ready(None));
    }

    #[test]
    fn a_reader_that_stops_is_cut_off_and_its_memory_freed() {
        let (outlet, mut reader) = Outlet::open();
        let event = Bytes::from(vec![b'x'; 100_000]);
        let queued = (0..1000).take_while(|_| outlet.push(1, event.clone()) == PushOutcome::Queued).count();
        assert_eq!(queued, MAX_WAITING_BYTES / event.len());
        assert_eq!(outlet.push(2, event), PushOutcome::Gone);
        assert_eq!(outlet.state().bytes, 0);
        assert_eq!(read(&mut reader), Poll::Ready(None));
    }

    #[test]
    fn a_keep_alive_is_sent_once_and_only_into_silence() {
        let (outlet, mut reader) = Outlet::open();
        outlet.beat();
        outlet.beat();
        assert_eq!(read(&mut reader), Poll::Ready(Some(Bytes::from_static(KEEP_ALIVE))));
        assert!(read(&mut reader).is_pending());
        outlet.beat();
        outlet.push(1, Bytes::from("a"));
        assert_eq!(read(&mut reader), Poll::Ready(Some(Bytes::from("a"))));
        assert!(read(&mut reader).is_pending());
    }

    #[test]
    fn a_reader_that_left_is_noticed() {
        let (outlet, reader) = Outlet::open();
        drop(reader);
        assert_eq!(outlet.push(1, Bytes::from("a")), PushOutcome::Gone);
    }
}
