//! The server of a [`World`](super::world::World): what it was asked, what it asks, and what it is owed.

use std::time::{Duration, Instant};

use super::world::Owner;
use crate::{
    mcp::Method,
    wire::{LineSplitter, Message},
};

/// How long a server that was told to stop may go on logging about a call. It may ask for as long as it lives.
const MOMENT: Duration = Duration::from_secs(1);

pub(crate) struct Server {
    pub(crate) lines: LineSplitter,
    /// The link's `initialize`, while it is not answered.
    pub(crate) initialize: Option<u64>,
    greeted: bool,
    initialized: bool,
    /// What it has not answered.
    pub(crate) requests: Vec<Request>,
    /// Ids it has answered.
    pub(crate) done: Vec<u64>,
    pub(crate) questions: Vec<Question>,
    /// The link's listens that it has not acknowledged, and that it has.
    pub(crate) listens: Vec<u64>,
    pub(crate) listening: Vec<u64>,
    pings: Vec<String>,
    modern: bool,
}

pub(crate) struct Request {
    pub(crate) id: u64,
    pub(crate) method: Method,
    /// The client's call, if it is one's.
    pub(crate) call: Option<usize>,
    /// It told a log level.
    pub(crate) level: bool,
    cancelled: Option<Instant>,
}

pub(crate) struct Question {
    /// Its id, as the server writes it.
    pub(crate) id: String,
    pub(crate) owner: Owner,
    pub(crate) state: Asked,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Open,
    Answered,
    Withdrawn,
}

impl Request {
    /// Whether it may log about it.
    pub(crate) fn may_log(&self, now: Instant) -> bool {
        self.cancelled.is_none_or(|at| now < at + MOMENT)
    }
}

impl Server {
    pub(crate) fn new(limit: usize, modern: bool) -> Self {
        Self {
            lines: LineSplitter::new(limit),
            initialize: None,
            greeted: false,
            initialized: false,
            requests: Vec::new(),
            done: Vec::new(),
            questions: Vec::new(),
            listens: Vec::new(),
            listening: Vec::new(),
            pings: Vec::new(),
            modern,
        }
    }

    /// Takes the request that it is to answer, if there is one.
    pub(crate) fn take(&mut self, at: usize) -> Option<Request> {
        let at = at.checked_rem(self.requests.len())?;
        let request = self.requests.remove(at);
        self.done.push(request.id);
        Some(request)
    }

    pub(crate) fn greet(&mut self) -> Option<u64> {
        self.greeted |= self.initialize.is_some();
        // One of the modern era waits for no `initialized`.
        self.initialized |= self.modern && self.initialize.is_some();
        self.initialize.take()
    }

    pub(crate) fn is_modern(&self) -> bool {
        self.modern
    }

    pub(crate) fn is_up(&self) -> bool {
        self.initialized
    }

    /// Whether it works on this, and was not told to stop.
    pub(crate) fn is_running(&self, id: u64) -> bool {
        self.requests.iter().any(|request| request.id == id && request.cancelled.is_none())
    }

    pub(crate) fn ping(&mut self, id: String) {
        self.pings.push(id);
    }

    pub(crate) fn has_open_pings(&self) -> bool {
        !self.pings.is_empty()
    }

    // --- What it reads ---

    pub(crate) fn requested(&mut self, id: u64, method: Method, call: Option<usize>, level: bool) {
        assert!(!(self.modern && method == Method::Initialize), "`initialize` to a modern server");
        if method == Method::Initialize || self.modern && !self.greeted {
            assert!(!self.greeted && self.initialize.replace(id).is_none(), "a second `initialize`");
            return;
        }
        // Check 94.
        assert!(self.initialized, "{method:?} came before the handshake was over");
        match method {
            Method::Listen => self.listens.push(id),
            _ => self.requests.push(Request { id, method, call, level, cancelled: None }),
        }
    }

    pub(crate) fn notified(&mut self, method: Method, about: Option<&str>, now: Instant) {
        match method {
            Method::Initialized => {
                assert!(self.greeted && !self.initialized, "`initialized` out of place");
                self.initialized = true;
            }
            Method::Cancelled => {
                let id = about.and_then(|id| id.parse::<u64>().ok()).expect("it names one of our ids");
                let all = self.listens.len() + self.listening.len();
                self.listens.retain(|listen| *listen != id);
                self.listening.retain(|listen| *listen != id);
                if self.listens.len() + self.listening.len() < all {
                    return;
                }
                let request = self.requests.iter_mut().find(|request| request.id == id);
                let request = request.expect("what is cancelled is running");
                assert!(request.cancelled.replace(now).is_none(), "{id} is cancelled twice");
            }
            _ => assert!(self.initialized, "{method:?} came before the handshake was over"),
        }
    }

    /// An answer to a question of its own, once.
    pub(crate) fn answered(&mut self, message: &Message) -> Option<&mut Question> {
        // Check 110.
        assert!(!self.modern, "an answer to a modern server");
        let id = message.id().expect("an answer names a question");
        if let Some(at) = self.pings.iter().position(|ping| ping == id) {
            self.pings.remove(at);
            return None;
        }
        let question = self.questions.iter_mut().find(|question| question.id == id);
        let question = question.unwrap_or_else(|| panic!("{id} answers nothing"));
        assert_eq!(question.state, Asked::Open, "{id} is answered again");
        question.state = Asked::Answered;
        Some(question)
    }
}
