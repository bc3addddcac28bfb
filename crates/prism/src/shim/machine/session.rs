//! The client's session, where its era has one: how it is opened, what must wait for that, and how it is opened again
//! when the daemon no longer knows it.
//!
//! A session that was opened again numbers its questions from the beginning. So that an answer to one of the old
//! questions is not taken for an answer to a new one, the questions of later sessions have names of ours.

use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::header::HeaderValue;
use prism_core::{
    mcp::{Method, Revision, hello::ServerGreeting},
    wire::{Members, Message, MessageKind, envelope::unquoted},
};

use super::{
    ShimAction, ShimMachine, Ticket,
    answers::{LISTS, changed},
    flight::{OutboundKind, OutboundMessage, OutboundState, ShimMessage},
};
use prism_mcp::remote::headers::ProtocolHeaders;

/// Resources whose subscriptions are repeated in a new session. Beyond it a subscription is lost with its session.
const MAX_WATCHED: usize = 1024;

/// What must be over before the rest may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionBarrier {
    Open,
    /// `initialize` is not answered.
    Opening(Ticket),
    /// `notifications/initialized` is not accepted: nothing may overtake it.
    Greeting(Ticket),
    /// The session is opened again.
    Reopening(Ticket),
}

// === impl SessionBarrier ===

impl SessionBarrier {
    pub(super) fn lets(self, ticket: Ticket, flight: &OutboundMessage) -> bool {
        self == Self::Open || self.is_of(ticket) || flight.is_modern()
    }

    pub(super) fn is_of(self, ticket: Ticket) -> bool {
        match self {
            Self::Open => false,
            Self::Opening(of) | Self::Greeting(of) | Self::Reopening(of) => of == ticket,
        }
    }
}

// === impl ShimMachine ===

impl ShimMachine {
    /// The client begins anew: whatever was before is over.
    pub(super) fn greeting_again(&mut self) {
        self.lane = ProtocolHeaders::default();
        self.greeted = false;
        for ticket in self.tickets(|flight| flight.what == OutboundKind::Stream) {
            self.close(ticket);
        }
    }

    /// `initialize` is answered.
    pub(super) fn opened(&mut self, answer: &Message, session: Option<HeaderValue>) {
        self.gate = SessionBarrier::Open;
        if let Some(result) = answer.result_span() {
            let version = Members::read(answer.text(result)).unwrap_or_default();
            let version = version.string("protocolVersion").and_then(|version| HeaderValue::from_str(&version).ok());
            self.lane = ProtocolHeaders { session, version };
            let greeting = ServerGreeting::read(answer).ok();
            let says = |list: Method| {
                greeting.as_ref().is_some_and(|greeting| match list {
                    Method::ToolsChanged => greeting.tools_changed,
                    Method::PromptsChanged => greeting.prompts_changed,
                    _ => greeting.resources_changed,
                })
            };
            self.changes = LISTS.into_iter().filter(|list| says(*list)).collect();
        }
    }

    /// `notifications/initialized` has arrived: now there may be something to hear.
    pub(super) fn greeted(&mut self) {
        self.gate = SessionBarrier::Open;
        if self.lane.session.is_some() {
            let ticket = self.add(OutboundMessage::new(OutboundKind::Stream, None));
            // First, so that nothing is said before somebody listens.
            self.held.push_front(ticket);
        }
    }

    pub(super) fn has_batches(&self) -> bool {
        let version = self.lane.version.as_ref().and_then(|version| version.to_str().ok());
        version.and_then(Revision::named).is_some_and(Revision::has_batches)
    }

    /// Keeps what the client sets in its session, to set it again in the next one.
    pub(super) fn remember(&mut self, message: &Message) {
        if message.params().meta_version.is_some() {
            return;
        }
        let uri = || message.string(message.params().uri).map(|uri| uri.into_owned());
        match message.kind() {
            MessageKind::Request(Method::Initialize) => {
                (self.hello, self.level) = (Some(message.clone()), None);
                self.watched.clear();
            }
            MessageKind::Request(Method::SetLevel) => self.level = Some(message.clone()),
            MessageKind::Request(Method::ResourcesSubscribe) => {
                if let Some(uri) = uri().filter(|_| self.watched.len() < MAX_WATCHED) {
                    self.watched.insert(uri, message.clone());
                }
            }
            MessageKind::Request(Method::ResourcesUnsubscribe) => {
                self.watched.remove(&uri().unwrap_or_default());
            }
            _ => {}
        }
    }

    // --- Messages of our own ---

    /// One of our own messages is over, with this answer if there is one.
    pub(super) fn own_answered(
        &mut self,
        ticket: Ticket,
        own: ShimMessage,
        answer: Option<(Message, Option<HeaderValue>)>,
    ) {
        self.flights.remove(&ticket);
        let answer = answer.filter(|(message, _)| !message.failed());
        match own {
            ShimMessage::Replay => {}
            ShimMessage::Learn { of } => self.learned(of, answer.map(|(message, _)| message)),
            ShimMessage::Greet => {
                self.greeted();
                self.restore();
            }
            ShimMessage::Reopen => match answer {
                Some((message, session)) => self.reopened(&message, session),
                None => {
                    self.gate = SessionBarrier::Open;
                    let waits = |flight: &OutboundMessage| flight.owes_answer() && flight.state == OutboundState::Held;
                    for ticket in self.tickets(|flight| waits(flight) && !flight.is_modern()) {
                        let why = "the session was lost, and Prism did not open another; start this client again";
                        self.fail(ticket, why, "session_lost");
                    }
                }
            },
        }
    }

    // --- A session that was lost ---

    /// The daemon does not know the session that a message was sent in.
    pub(super) fn session_lost(&mut self, ticket: Ticket, now: Instant) {
        let Some(flight) = self.flights.get_mut(&ticket) else { return };
        flight.losses += 1;
        let (what, session) = (flight.what, flight.session.clone());
        let greets = self.gate == SessionBarrier::Greeting(ticket);
        if greets {
            // The new session is greeted by us.
            self.flights.remove(&ticket);
        } else if what != OutboundKind::Stream {
            self.trouble(ticket, now);
            self.again(ticket);
        }
        // Several may learn of it, one after the other; by the last there may be a new session.
        if (self.gate != SessionBarrier::Open && !greets) || session != self.lane.session {
            return;
        }
        let Some(hello) = self.hello.clone() else { return };
        for ticket in self.tickets(|flight| flight.what == OutboundKind::Stream) {
            self.close(ticket);
        }
        self.actions.push_back(ShimAction::Say(
            "the daemon does not know this session any more; it is opened again".to_owned(),
        ));
        let reopen = self.add(OutboundMessage::new(OutboundKind::Own(ShimMessage::Reopen), Some(hello)));
        self.trouble(reopen, now);
        self.gate = SessionBarrier::Reopening(reopen);
        self.held.push_front(reopen);
    }

    fn reopened(&mut self, answer: &Message, session: Option<HeaderValue>) {
        self.opened(answer, session);
        self.generation += 1;
        if !self.greeted {
            return;
        }
        let note = Bytes::from_static(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        if let Ok(note) = Message::parse(note) {
            let greet = self.add(OutboundMessage::new(OutboundKind::Own(ShimMessage::Greet), Some(note)));
            self.gate = SessionBarrier::Greeting(greet);
            self.held.push_front(greet);
        }
    }

    /// Sets in the new session what was set in the old one, and tells the client what it may have missed.
    fn restore(&mut self) {
        self.broken = false;
        self.set_again();
        for note in self.changes.iter().filter_map(|list| changed(*list)) {
            self.actions.push_back(ShimAction::Write(note.bytes().clone()));
        }
    }

    /// Sets what the client has set in its session. To do that twice does no harm.
    pub(super) fn set_again(&mut self) {
        let set: Vec<Message> = self.level.iter().chain(self.watched.values()).cloned().collect();
        for message in set {
            let ticket = self.add(OutboundMessage::new(OutboundKind::Own(ShimMessage::Replay), Some(message)));
            self.held.push_front(ticket);
        }
    }

    /// The session's stream is refused.
    pub(super) fn stream_refused(&mut self, ticket: Ticket, status: u16, now: Instant) {
        let Some(flight) = self.flights.get_mut(&ticket) else { return };
        match status {
            404 => self.session_lost(ticket, now),
            // What it was to go on from is forgotten.
            400 if flight.cursor.take().is_some() => self.later(ticket, Duration::ZERO, now),
            401 | 408 | 409 | 429 | 500..=599 => self.later(ticket, Duration::ZERO, now),
            // There is none.
            _ => {
                self.flights.remove(&ticket);
            }
        }
    }

    // --- Questions of later sessions ---

    /// A message of the daemon's as the client gets to see it.
    pub(super) fn renamed(&self, message: &Message) -> Bytes {
        let span = match message.kind() {
            MessageKind::Request(_) => message.id_span(),
            MessageKind::Notification(Method::Cancelled) => message.params().request_id,
            _ => None,
        };
        match span.filter(|_| self.generation > 0) {
            Some(span) => {
                let name = format!(r#""prism-{}-{}""#, self.generation, message.text(span).trim_matches('"'));
                message.with(span, &name).bytes().clone()
            }
            None => message.bytes().clone(),
        }
    }

    /// The client's answer under the number that the daemon knows; `None` if it is to a question of an older session.
    pub(super) fn own_number(&self, message: Message) -> Option<Message> {
        let Some(span) = message.id_span().filter(|_| self.generation > 0) else { return Some(message) };
        let name = unquoted(message.text(span))?;
        let number = name.strip_prefix(&format!("prism-{}-", self.generation))?;
        Some(message.with(span, number))
    }
}
