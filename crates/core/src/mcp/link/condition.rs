//! How a link is, for those who look at it from outside.

use super::{CallFault, Link, LinkPhase, LinkSettings, SessionKey};

/// What a link has to do, and whether its server is there to do it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkCondition {
    pub state: LinkState,
    pub sessions: usize,
    /// Clients' calls that the server has not answered.
    pub calls: usize,
}

/// What a link's server is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkState {
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

/// Why there is no server, as far as it is known.
#[derive(Debug, Default)]
pub(super) struct Fate {
    /// Why the last one was given up, if none has been up since.
    pub(super) failed: Option<CallFault>,
    /// What the shell knows of why it does not start, and what it was heard to say meanwhile.
    explained: Option<String>,
    overheard: Option<String>,
}

impl Fate {
    /// Another one is started, of which nothing is known yet.
    pub(super) fn begin(&mut self) {
        (self.explained, self.overheard) = (None, None);
    }

    /// Says why there is none: in the shell's words, which knows more, if it has any.
    pub(super) fn told(&self, why: &str) -> CallFault {
        match (&self.explained, &self.overheard) {
            (Some(said), _) => CallFault::DoesNotStart { said: said.clone() },
            (None, Some(heard)) => CallFault::Unavailable { why: format!("{why}; {heard}") },
            (None, None) => CallFault::Unavailable { why: why.to_owned() },
        }
    }
}

impl Link {
    /// How the link is.
    pub fn condition(&self) -> LinkCondition {
        LinkCondition {
            state: match self.phase {
                LinkPhase::Starting { .. } => LinkState::Starting,
                LinkPhase::Up => LinkState::Up,
                LinkPhase::Restarting { .. } => LinkState::Restarting,
                LinkPhase::Asleep => LinkState::Asleep,
                LinkPhase::Down if self.fate.failed.is_some() => LinkState::Failed,
                LinkPhase::Down => LinkState::Down,
            },
            sessions: self.sessions.len(),
            calls: self.calls,
        }
    }

    /// Goes on with other limits. What is under way keeps the deadline that it has.
    pub fn limit(&mut self, to: &LinkSettings) {
        self.settings.request_timeout = to.request_timeout;
        self.settings.max_request_time = to.max_request_time;
        self.settings.start_timeout = to.start_timeout;
        self.settings.max_message_bytes = to.max_message_bytes;
        // One that calls take turns on has a time of its own.
        if !self.settings.exclusive {
            self.settings.keep_stateless = to.keep_stateless;
        }
    }

    /// Why the server was given up, if none has been up since.
    pub fn failure(&self) -> Option<&CallFault> {
        self.fate.failed.as_ref()
    }

    /// Says why the server does not start, in a sentence that needs no other: whoever waits for it hears that.
    pub fn explain(&mut self, said: Option<String>) {
        self.fate.explained = said;
    }

    /// Says what the server was heard to say so far, for those who hear that it did not greet us.
    pub fn overhear(&mut self, said: Option<String>) {
        self.fate.overheard = said;
    }

    /// The sessions that have missed something so far, and how much: events that nobody was there to take.
    pub fn undelivered(&self) -> impl Iterator<Item = (SessionKey, usize)> {
        let each = self.sessions.iter().map(|(key, session)| (*key, session.undelivered()));
        each.filter(|(_, events)| *events > 0)
    }
}
