//! How a link is, for those who look at it from outside.

use super::{Link, Phase, SessionKey};

/// What a link has to do, and whether its server is there to do it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition {
    pub state: State,
    pub sessions: usize,
    /// Clients' calls that the server has not answered.
    pub calls: usize,
}

/// What a link's server is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// There is none, and none is wanted.
    Down,
    /// It was stopped because nobody used it. Its sessions go on, and the next call starts it.
    Asleep,
    Starting,
    Up,
    /// It ended, and is started again in a moment.
    Restarting,
    /// There is none: the last one could not be started, or did not stay up. Who comes next tries again.
    Failed,
}

impl Link {
    /// How the link is.
    pub fn condition(&self) -> Condition {
        Condition {
            state: match self.phase {
                Phase::Starting { .. } => State::Starting,
                Phase::Up => State::Up,
                Phase::Restarting { .. } => State::Restarting,
                Phase::Asleep => State::Asleep,
                Phase::Down if self.failed => State::Failed,
                Phase::Down => State::Down,
            },
            sessions: self.sessions.len(),
            calls: self.calls,
        }
    }

    /// The sessions that have missed something so far, and how much: events that nobody was there to take.
    pub fn undelivered(&self) -> impl Iterator<Item = (SessionKey, usize)> {
        let each = self.sessions.iter().map(|(key, session)| (*key, session.undelivered()));
        each.filter(|(_, events)| *events > 0)
    }
}
