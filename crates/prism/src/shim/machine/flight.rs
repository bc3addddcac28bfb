//! One message that is on its way, or waits to be: what it is, how far it came, and whether it may be sent again.

use std::time::{Duration, Instant};

use hyper::header::HeaderValue;
use prism_core::{
    mcp::Method,
    wire::{Message, MessageKind},
};

use super::Ticket;

/// The pause after the first failure; each one more doubles it.
const MIN_BACKOFF: Duration = Duration::from_millis(100);
const MAX_BACKOFF: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct OutboundMessage {
    pub(super) what: OutboundKind,
    /// `None` is the session's own stream, which is opened with a GET.
    pub(super) message: Option<Message>,
    pub(super) state: OutboundState,
    /// The session that it was sent in.
    pub(super) session: Option<HeaderValue>,
    /// The last event of its stream that came: where to go on.
    pub(super) cursor: Option<String>,
    pub(super) sent: Option<Instant>,
    /// Since when the daemon keeps it waiting.
    pub(super) troubled: Option<Instant>,
    /// Failures in a row.
    pub(super) failures: u32,
    /// Sessions that were lost under it.
    pub(super) losses: u32,
    pub(super) cancelled: bool,
    /// It is a listen, and its client knows what it will hear of.
    pub(super) acknowledged: bool,
    /// The daemon did not know our token, and has been asked again with what may be a new one.
    pub(super) knocked: bool,
    /// What its headers are made from was fetched anew.
    pub(super) relearned: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutboundKind {
    /// The client waits for an answer.
    Request,
    /// A note of the client's, or its answer to a question.
    Note,
    /// The stream of the session.
    Stream,
    Own(ShimMessage),
}

/// Messages that the client knows nothing of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShimMessage {
    /// The client's `initialize`, again.
    Reopen,
    /// Its `notifications/initialized`, again.
    Greet,
    /// What it has set in the session that was lost.
    Replay,
    /// `tools/list`, for the headers that a call needs.
    Learn { of: Ticket },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutboundState {
    /// Until the daemon is there, and what must come before it has.
    Held,
    Later(Instant),
    Sent,
}

impl OutboundMessage {
    pub(super) fn new(what: OutboundKind, message: Option<Message>) -> Self {
        Self {
            what,
            message,
            state: OutboundState::Held,
            session: None,
            cursor: None,
            sent: None,
            troubled: None,
            failures: 0,
            losses: 0,
            cancelled: false,
            acknowledged: false,
            knocked: false,
            relearned: false,
        }
    }

    pub(super) fn id(&self) -> Option<&str> {
        self.message.as_ref().and_then(Message::id)
    }

    pub(super) fn is_modern(&self) -> bool {
        self.message.as_ref().is_some_and(|message| message.params().meta_version.is_some())
    }

    pub(super) fn is(&self, method: Method) -> bool {
        self.message.as_ref().is_some_and(|message| message.kind() == MessageKind::Request(method))
    }

    /// Whether the client waits for this to end.
    pub(super) fn owes_answer(&self) -> bool {
        self.what == OutboundKind::Request && !self.cancelled && !self.is(Method::Listen)
    }

    /// Whether it can wait for as long as the daemon is away, and is no reason to start one.
    pub(super) fn is_patient(&self) -> bool {
        self.what == OutboundKind::Stream || self.is(Method::Listen)
    }

    /// Whether it does no harm if it is done twice.
    pub(super) fn may_repeat(&self) -> bool {
        match self.message.as_ref().map(Message::kind) {
            Some(MessageKind::Request(method)) => !matches!(
                method,
                // Questions are asked by servers; one that comes from a client is as foreign as any other.
                Method::ToolsCall | Method::Other | Method::Sample | Method::Elicit | Method::RootsList
            ),
            _ => true,
        }
    }

    pub(super) fn backoff(&self) -> Duration {
        backoff(self.failures)
    }
}

pub(super) fn backoff(failures: u32) -> Duration {
    (MIN_BACKOFF * 2_u32.saturating_pow(failures.saturating_sub(1).min(16))).min(MAX_BACKOFF)
}
