//! The events of one stream: what a client has not had yet, and what it may ask for again (B-28).
//!
//! One bounded window serves as both the queue of a stream that nobody listens to and the memory of one that broke.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::wire::frame;

/// Events kept for a client that comes back, per stream. Beyond it the oldest is dropped and counted, and a marker in its
/// place tells the client; changes and questions that nobody has had are the last to go.
const MAX_EVENTS: usize = 256;
/// And their bytes. One event over it is kept alone: it may be the answer.
const MAX_BYTES: usize = 1 << 20;

/// Events that a stream may tell before it is saved that it has told them.
pub const UNSAVED: u64 = 1 << 20;

/// A stream's events, numbered from 1.
#[derive(Debug, Default)]
pub struct Replay {
    kept: VecDeque<ReplayEvent>,
    bytes: usize,
    last: u64,
    /// The newest event that went out to anybody.
    delivered: u64,
    /// The newest of those that went out and are kept no more.
    forgotten: u64,
}

#[derive(Debug)]
struct ReplayEvent {
    number: u64,
    bytes: Bytes,
    what: ReplayKind,
}

/// What an event is to the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplayKind {
    /// A message that must arrive each time it is sent.
    Message,
    /// A change, of a list or of a resource: telling it twice says no more than telling it once.
    Change(Box<str>),
    /// A question with this number, which exactly one stream of the client may show.
    Question(u64),
    /// Events were here that nobody has had, and are kept no more.
    Gap(LostEvents),
}

/// What a client will never have of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LostEvents {
    pub events: u64,
    /// As many of them are log notes; of what had gone out to somebody that is not known.
    pub logs: u64,
}

impl Replay {
    /// The window of a stream as another daemon has left it. Events that were told since it was saved have numbers that
    /// nobody knows any more, so the next ones have far higher ones.
    pub fn resume(last: u64, delivered: u64, events: impl Iterator<Item = (u64, Bytes)>) -> Self {
        let mut replay = Self::default();
        for (number, bytes) in events {
            replay.last = number.saturating_sub(1);
            replay.push(bytes, ReplayKind::Message);
        }
        let last = last.max(replay.last);
        Self { last: last + UNSAVED, delivered: delivered.min(last), ..replay }
    }

    /// The newest event.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// The oldest event that is kept, or the next one if none is.
    pub fn oldest(&self) -> u64 {
        self.kept.front().map_or(self.last + 1, |event| event.number)
    }

    /// The number the next event will have.
    pub fn next_number(&self) -> u64 {
        self.last + 1
    }

    /// Whether a change is waiting already that says the same.
    pub fn holds_undelivered(&self, change: &ReplayKind) -> bool {
        matches!(change, ReplayKind::Change(_))
            && self.kept.iter().any(|e| e.number > self.delivered && e.what == *change)
    }

    /// Events that went out to nobody.
    pub fn undelivered(&self) -> usize {
        self.kept.iter().filter(|event| event.number > self.delivered).count()
    }

    /// Adds an event. Returns how many events that nobody has had were dropped to make room.
    pub fn push(&mut self, bytes: Bytes, what: ReplayKind) -> usize {
        self.last += 1;
        self.bytes += bytes.len();
        self.kept.push_back(ReplayEvent { number: self.last, bytes, what });
        let mut lost = 0;
        let full = |replay: &Self| replay.kept.len() > MAX_EVENTS && replay.events() > MAX_EVENTS;
        while full(self) || (self.bytes > MAX_BYTES && self.events() > 1) {
            // What cannot be said again by whoever comes back and asks is kept for as long as there is anything else.
            let spared =
                |event: &ReplayEvent| event.number > self.delivered && !matches!(event.what, ReplayKind::Message);
            let older = self.kept.len() - 1;
            let at = self.kept.iter().take(older).position(|event| !spared(event));
            let at = at.or_else(|| self.kept.iter().take(older).position(|event| !event.is_gap()));
            let Some(at) = at else { break };
            lost += self.forget(at);
        }
        lost
    }

    /// Events, without the markers of gaps. There are two of those at most: what is lost next to one is counted in it.
    fn events(&self) -> usize {
        self.kept.len() - self.kept.iter().filter(|event| event.is_gap()).count()
    }

    /// Forgets an event, and marks its place if nobody has had it. Returns how many such there were.
    fn forget(&mut self, at: usize) -> usize {
        let Some(ReplayEvent { number, bytes, what }) = self.kept.remove(at) else { return 0 };
        self.bytes -= bytes.len();
        if number <= self.delivered {
            self.forgotten = self.forgotten.max(number);
            return 0;
        }
        let lost = LostEvents { events: 1, logs: u64::from(frame::is_log(&bytes)) };
        let lost = if let ReplayKind::Gap(lost) = what { lost } else { lost };
        let delivered = self.delivered;
        match self.kept.iter_mut().filter(|event| event.number > delivered).find_map(ReplayEvent::gap) {
            Some(gap) => *gap = LostEvents { events: gap.events + lost.events, logs: gap.logs + lost.logs },
            None => self.kept.insert(at, ReplayEvent { number, bytes: Bytes::new(), what: ReplayKind::Gap(lost) }),
        }
        1
    }

    /// A client goes on from this event, or has had no more than that: what it will never have is marked.
    pub fn mark_forgotten(&mut self, from: u64) {
        let forgotten = self.forgotten;
        if forgotten > from && !self.kept.iter().any(|event| event.number <= forgotten) {
            let lost = LostEvents { events: forgotten - from, logs: 0 };
            self.kept.push_front(ReplayEvent { number: forgotten, bytes: Bytes::new(), what: ReplayKind::Gap(lost) });
        }
    }

    /// Uses up a number, for an event that is never told again.
    pub fn skip(&mut self) {
        self.last += 1;
    }

    /// Forgets all but the newest event. Returns how many of them nobody has had.
    pub fn keep_only_newest(&mut self) -> usize {
        let mut lost = 0;
        while self.events() > 1 {
            let Some(oldest) = self.kept.iter().position(|event| !event.is_gap()) else { break };
            lost += self.forget(oldest);
        }
        lost
    }

    pub fn mark_delivered(&mut self) {
        self.delivered = self.last;
    }

    /// Takes back that the events after this one went out.
    pub fn rewind(&mut self, to: u64) {
        self.delivered = self.delivered.min(to);
        self.mark_forgotten(to);
    }

    /// The newest event that went out to anybody: where a client without a memory of its own goes on.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Whether a client can have had this event.
    pub fn has_sent(&self, number: u64) -> bool {
        number <= self.last
    }

    /// The events after the given one that are still kept.
    pub fn after(&self, number: u64) -> impl Iterator<Item = (u64, &Bytes, &ReplayKind)> {
        let events = self.kept.iter().filter(move |event| event.number > number);
        events.map(|event| (event.number, &event.bytes, &event.what))
    }

    /// The questions after the given event, by their numbers.
    pub fn questions_after(&self, number: u64) -> Vec<u64> {
        let questions = self.after(number).filter_map(|(_, _, what)| match what {
            ReplayKind::Question(number) => Some(*number),
            ReplayKind::Message | ReplayKind::Change(_) | ReplayKind::Gap(_) => None,
        });
        questions.collect()
    }

    /// Forgets a question that was answered or withdrawn: nobody may be asked it again. Returns it.
    pub fn forget_question(&mut self, number: u64) -> Option<Bytes> {
        let at = self.kept.iter().position(|event| event.what == ReplayKind::Question(number))?;
        let event = self.kept.remove(at)?;
        self.bytes -= event.bytes.len();
        Some(event.bytes)
    }

    pub fn kept_bytes(&self) -> usize {
        self.bytes
    }
}

impl ReplayEvent {
    fn is_gap(&self) -> bool {
        matches!(self.what, ReplayKind::Gap(_))
    }

    fn gap(&mut self) -> Option<&mut LostEvents> {
        match &mut self.what {
            ReplayKind::Gap(lost) => Some(lost),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(replay: &Replay, after: u64) -> Vec<String> {
        replay.after(after).map(|(_, bytes, _)| String::from_utf8(bytes.to_vec()).unwrap()).collect()
    }

    #[test]
    fn what_comes_after_an_event_is_replayed_and_nothing_else() {
        let mut replay = Replay::default();
        for text in ["a", "b", "c"] {
            replay.push(Bytes::from(text), ReplayKind::Message);
        }
        assert_eq!(texts(&replay, 1), ["b", "c"]);
        assert_eq!(texts(&replay, 3), [""; 0]);
        assert!(replay.has_sent(3) && !replay.has_sent(4));
    }

    #[test]
    fn the_window_is_bounded_and_counts_what_it_loses() {
        let mut replay = Replay::default();
        let lost: usize =
            (0..MAX_EVENTS + 7).map(|n| replay.push(Bytes::from(n.to_string()), ReplayKind::Message)).sum();
        assert_eq!(lost, 7);
        assert_eq!(texts(&replay, 0).len(), MAX_EVENTS + 1, "the marker of the gap does not count");
        assert_eq!(gaps(&replay), [(1, LostEvents { events: 7, logs: 0 })]);
        replay.mark_delivered();
        assert_eq!(replay.push(Bytes::from_static(b"x"), ReplayKind::Message), 0, "a delivered event is no loss");
        replay.push(Bytes::from(vec![b'x'; 2 * MAX_BYTES]), ReplayKind::Message);
        assert_eq!(replay.events(), 1, "one large event is kept alone");
    }

    //
    #[test]
    fn changes_and_questions_that_nobody_has_had_outlast_messages() {
        let mut replay = Replay::default();
        replay.push(Bytes::from_static(b"m"), ReplayKind::Message);
        replay.push(Bytes::from_static(b"q"), ReplayKind::Question(4));
        replay.push(Bytes::from_static(b"c"), ReplayKind::Change("tools".into()));
        let lost: usize = (0..1000).map(|_| replay.push(Bytes::from_static(b"x"), ReplayKind::Message)).sum();
        assert_eq!((lost, replay.undelivered()), (1003 - MAX_EVENTS, MAX_EVENTS + 1));
        assert_eq!(texts(&replay, 0)[..4], ["", "q", "c", "x"]);
        // What else there is goes first, but the bound holds.
        let mut replay = Replay::default();
        let change = |n: usize| ReplayKind::Change(n.to_string().into());
        let lost: usize = (0..1000).map(|n| replay.push(Bytes::from_static(b"c"), change(n))).sum();
        assert_eq!((lost, gaps(&replay).len()), (1000 - MAX_EVENTS, 1));
    }

    //
    #[test]
    fn what_went_out_to_a_stream_that_nobody_read_and_is_kept_no_more_is_a_gap() {
        let mut replay = Replay::default();
        for _ in 0..MAX_EVENTS + 10 {
            replay.push(Bytes::from_static(b"x"), ReplayKind::Message);
            replay.mark_delivered();
        }
        assert_eq!(gaps(&replay), []);
        replay.rewind(4);
        assert_eq!(gaps(&replay), [(10, LostEvents { events: 6, logs: 0 })]);
        replay.mark_forgotten(4);
        assert_eq!(gaps(&replay).len(), 1, "it is told once");
    }

    fn gaps(replay: &Replay) -> Vec<(u64, LostEvents)> {
        let gap = |(number, _, what): (u64, &Bytes, &ReplayKind)| match what {
            ReplayKind::Gap(lost) => Some((number, *lost)),
            _ => None,
        };
        replay.after(0).filter_map(gap).collect()
    }

    #[test]
    fn an_undelivered_change_is_told_once() {
        let mut replay = Replay::default();
        let change = ReplayKind::Change("tools".into());
        assert!(!replay.holds_undelivered(&change));
        replay.push(Bytes::from_static(b"x"), change.clone());
        assert!(replay.holds_undelivered(&change));
        replay.mark_delivered();
        assert!(!replay.holds_undelivered(&change));
    }

    #[test]
    fn an_answered_question_is_not_asked_again() {
        let mut replay = Replay::default();
        replay.push(Bytes::from_static(b"q"), ReplayKind::Question(4));
        replay.push(Bytes::from_static(b"m"), ReplayKind::Message);
        replay.forget_question(4);
        assert_eq!(texts(&replay, 0), ["m"]);
    }
}
