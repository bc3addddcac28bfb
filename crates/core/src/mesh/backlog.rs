//! How much waits for one agent, as far as memory knows. The store knows exactly; the two meet at each look into it.
//!
//! A look and an arrival are committed in one order and may be heard of in the other. Each signal has a number that
//! grows with every commit, and each look says up to which number it saw: so what it has seen is never counted twice, and
//! what came after it is never forgotten.

use std::collections::VecDeque;

/// What the store has for an agent, up to a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BacklogView {
    /// Undrained signals that ring, and those that do not.
    pub ringing: u64,
    pub quiet: u64,
    /// The newest signal of all that was there.
    pub newest: i64,
}

#[derive(Debug, Default)]
pub(super) struct Backlog {
    seen: BacklogView,
    /// What came after that, and whether it rings. The store refuses signals beyond a bound, so this is bounded too.
    since: VecDeque<(i64, bool)>,
}

impl Backlog {
    /// Notes a signal. Returns whether that is news: a look may have been quicker.
    pub(super) fn arrived(&mut self, seq: i64, rings: bool) -> bool {
        let is_news = seq > self.seen.newest;
        if is_news {
            self.since.push_back((seq, rings));
        }
        is_news
    }

    /// Takes over what the store said, unless a later look was quicker.
    pub(super) fn looked(&mut self, look: BacklogView) {
        if look.newest >= self.seen.newest {
            self.seen = look;
            self.since.retain(|(seq, _)| *seq > look.newest);
        }
    }

    /// A signal is gone without being drained.
    pub(super) fn gone(&mut self, seq: i64, rings: bool) {
        if let Some(at) = self.since.iter().position(|(known, _)| *known == seq) {
            self.since.remove(at);
        } else if seq <= self.seen.newest {
            let count = if rings { &mut self.seen.ringing } else { &mut self.seen.quiet };
            *count = count.saturating_sub(1);
        }
    }

    pub(super) fn ringing(&self) -> u64 {
        self.seen.ringing + self.ringing_since()
    }

    pub(super) fn all(&self) -> u64 {
        self.seen.ringing + self.seen.quiet + self.since.len() as u64
    }

    /// Those that ring of which the last look knew nothing.
    pub(super) fn ringing_since(&self) -> u64 {
        self.since.iter().filter(|(_, rings)| *rings).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arrival_and_a_look_may_be_heard_of_in_either_order() {
        let mut backlog = Backlog::default();
        assert!(backlog.arrived(1, true) && backlog.arrived(3, true));
        backlog.looked(BacklogView { ringing: 1, quiet: 0, newest: 2 });
        assert_eq!((backlog.ringing(), backlog.ringing_since()), (2, 1));
        assert!(!backlog.arrived(2, true), "the look has seen it");
        backlog.looked(BacklogView { ringing: 0, quiet: 0, newest: 1 });
        assert_eq!(backlog.ringing(), 2, "an older look says nothing new");
    }

    #[test]
    fn what_is_recalled_is_not_counted() {
        let mut backlog = Backlog::default();
        backlog.looked(BacklogView { ringing: 1, quiet: 1, newest: 2 });
        backlog.arrived(3, true);
        backlog.gone(3, true);
        backlog.gone(1, true);
        backlog.gone(9, true);
        assert_eq!((backlog.ringing(), backlog.all()), (0, 1));
    }
}
