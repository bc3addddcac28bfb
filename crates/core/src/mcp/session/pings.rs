//! Whether a session's client is there: it is asked every now and then, on its newest stream, and what it answers reaches
//! no server (M-11).

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use super::{Actions, Session};
use crate::{
    mcp::{
        Method,
        link::{LinkAction, SessionKey},
    },
    wire::text,
};

/// Pings that a late answer is still taken for. Of more the oldest is forgotten.
const MAX_UNANSWERED: usize = 8;

/// How a client is asked, and what came of it.
#[derive(Debug)]
pub struct ClientPings {
    every: Duration,
    pub due: Instant,
    unanswered: VecDeque<u64>,
    /// It is one that answers: only such a one's silence says anything.
    answers: bool,
    silent: bool,
}

impl ClientPings {
    pub fn new(every: Duration, now: Instant) -> Self {
        Self { every, due: now, unanswered: VecDeque::new(), answers: false, silent: false }
    }

    pub fn set_interval(&mut self, every: Duration, now: Instant) {
        self.every = every;
        self.due = self.due.min(now + every);
    }

    /// Takes an answer. Returns whether it was one to a ping.
    pub fn answered(&mut self, number: u64) -> bool {
        let is_one = self.unanswered.contains(&number);
        if is_one {
            self.unanswered.clear();
            (self.answers, self.silent) = (true, false);
        }
        is_one
    }
}

impl Session {
    /// Asks the client whether it is there, if that is due. What it did not answer for a whole interval it will not.
    pub fn ping(&mut self, key: SessionKey, now: Instant, actions: &mut Actions) {
        let newest = self.gets.last().map(|get| get.stream);
        let Some(pings) = self.pings.as_mut().filter(|pings| pings.due <= now) else { return };
        pings.due = now + pings.every;
        if newest.is_none() {
            // It cannot have heard.
            return pings.unanswered.clear();
        }
        if !pings.unanswered.is_empty() && pings.answers && !std::mem::replace(&mut pings.silent, true) {
            actions.push_back(LinkAction::Silent(key));
        }
        self.last_question += 1;
        if pings.unanswered.len() >= MAX_UNANSWERED {
            pings.unanswered.pop_front();
        }
        pings.unanswered.push_back(self.last_question);
        let ping = text::bare_request(self.last_question, Method::Ping);
        self.ring(&[ping.as_bytes()], true, actions);
    }
}
