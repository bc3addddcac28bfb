//! What the shim does about each line of its client and each word of the daemon, without I/O and without a clock. How
//! bytes get in and out is in `shim` and `exchange`.
//!
//! Every message that has to leave is a *flight* with a ticket of our own: clients may use an id twice, and what is
//! sent again keeps its ticket. A flight is answered exactly once, by the daemon or by us.

mod answers;
mod channel;
mod flight;
mod outage;
mod session;

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    time::{Duration, Instant},
};

use bytes::Bytes;
use hyper::header::HeaderValue;
use prism_core::{
    mcp::{Method, link::error_body, params::ToolHeaders},
    wire::{
        EnvelopeError, Frame, Message, MessageKind,
        envelope::{TruncatedId, cut_message},
    },
};
use serde_json::value::RawValue;

use self::{
    flight::{OutboundKind, OutboundMessage, OutboundState},
    outage::Outage,
    session::SessionBarrier,
};
use prism_mcp::remote::headers::ProtocolHeaders;

/// Messages of the client that may be under way. Beyond it stdin is not read, and the client waits as it would for any
/// server that is busy.
pub(super) const MAX_IN_FLIGHT: usize = 256;
/// Messages in one batch of 2025-03-26. Beyond it the batch is refused whole.
const MAX_BATCH: usize = 256;
/// How long a client waits for the daemon before it is told that there is none.
const PATIENCE: Duration = Duration::from_secs(30);
/// The pause before a stream is resumed, unless the daemon says otherwise, and the longest one.
const RETRY: Duration = Duration::from_millis(100);
const MAX_RETRY: Duration = Duration::from_secs(5);
/// Attempts to go on with the stream of a call that bring nothing. Then the call counts as lost.
const MAX_RESUMES: u32 = 5;

const INTERNAL: i32 = -32603;
const INVALID_REQUEST: i32 = -32600;
const PARSE_ERROR: i32 = -32700;

const INTERRUPTED: &str =
    "the Prism daemon was restarted while this call ran; it may or may not have been done: look before you call again";

pub(super) type Ticket = u64;

/// Where the messages go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ShimRoute {
    /// Everything, at the hub.
    Hub,
    /// One destination, as it is: whatever it takes to start, nobody greets in its place.
    Direct(String),
}

/// What has to be done.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one at a time, done as soon as it is made")]
pub(super) enum ShimAction {
    /// A line for the client, without its end.
    Write(Bytes),
    Post {
        ticket: Ticket,
        path: String,
        message: Message,
        params: Vec<(String, String)>,
        lane: ProtocolHeaders,
    },
    /// The session's stream, or the rest of a call's: then `answers` is the call's id.
    Get {
        ticket: Ticket,
        path: String,
        lane: ProtocolHeaders,
        after: Option<String>,
        answers: Option<String>,
    },
    /// To be ended, whatever came of it.
    Close(Ticket),
    /// See to it that the daemon runs, and tell [`ShimMachine::handle_started`].
    Start,
    /// See whether the daemon is somewhere else by now.
    Look,
    /// Wait for bells, and tell [`ShimMachine::handle_bell`].
    Attend,
    /// Words for stderr.
    Say(String),
}

/// What came of a flight, or on it.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "most of what comes is an answer")]
pub(super) enum ExchangeReport {
    /// Something before the answer.
    Message(Bytes),
    Answer {
        status: u16,
        message: Message,
        session: Option<HeaderValue>,
        retry: Option<Duration>,
    },
    /// It was taken, and there is no answer.
    Accepted,
    /// No, and no words with it.
    Status {
        status: u16,
    },
    /// It was sent, and the response ended without an answer.
    Ended {
        after: Option<String>,
        retry: Option<Duration>,
    },
    /// There was no connection: it was certainly not done.
    Unsent {
        why: String,
    },
    /// The answer is none that could be passed on.
    Broken {
        why: String,
    },
}

pub(super) struct ShimMachine {
    route: ShimRoute,
    lane: ProtocolHeaders,
    gate: SessionBarrier,
    /// The client's `initialize`, as it came.
    hello: Option<Message>,
    /// Whether the client has said that it is initialized.
    greeted: bool,
    /// What the server may change, as it has said.
    changes: Vec<Method>,
    /// Whether the client was told that it has a channel, and bells are waited for.
    attends: bool,
    /// Sessions that were lost and opened again.
    generation: u32,
    level: Option<Message>,
    watched: HashMap<String, Message>,
    tools: ToolHeaders,
    flights: BTreeMap<Ticket, OutboundMessage>,
    last: Ticket,
    /// Flights that wait to leave, in the order in which they came. As many as are in flight, at most.
    held: VecDeque<Ticket>,
    outage: Option<Outage>,
    /// A connection broke, and nobody has been heard since.
    broken: bool,
    ending: Option<Instant>,
    actions: VecDeque<ShimAction>,
}

// === impl ShimMachine ===

impl ShimMachine {
    /// Begins by seeing to it that the daemon runs.
    pub(super) fn new(route: ShimRoute) -> Self {
        Self {
            route,
            lane: ProtocolHeaders::default(),
            gate: SessionBarrier::Open,
            hello: None,
            greeted: false,
            changes: Vec::new(),
            attends: false,
            generation: 0,
            level: None,
            watched: HashMap::new(),
            tools: ToolHeaders::default(),
            flights: BTreeMap::new(),
            last: 0,
            held: VecDeque::new(),
            outage: Some(Outage::starting()),
            broken: false,
            ending: None,
            actions: VecDeque::from([ShimAction::Start]),
        }
    }

    pub(super) fn poll_action(&mut self) -> Option<ShimAction> {
        self.actions.pop_front()
    }

    /// Whether no more lines can be taken for now.
    pub(super) fn is_full(&self) -> bool {
        self.flights.len() >= MAX_IN_FLIGHT
    }

    /// Takes a line of the client's.
    pub(super) fn handle_line(&mut self, frame: Frame, now: Instant) {
        match frame {
            Frame::Line(line) => match Message::parse(line.clone()) {
                Ok(message) => self.take(message, now),
                Err(EnvelopeError::Batch) => self.take_batch(&line, now),
                Err(error @ EnvelopeError::Shape(_)) => self.refuse(None, INVALID_REQUEST, &error.to_string()),
                Err(error) => self.refuse(None, PARSE_ERROR, &error.to_string()),
            },
            Frame::TooLong { head, tail } => {
                let id = match cut_message(&head, &tail) {
                    Some(TruncatedId::Request(id)) => Some(id),
                    _ => None,
                };
                self.refuse(id.as_deref(), INVALID_REQUEST, "the message is too long");
            }
        }
        self.release(now);
    }

    /// No more lines come. What is under way has until then to end.
    pub(super) fn handle_end(&mut self, until: Instant) {
        self.ending = Some(self.ending.map_or(until, |earlier| earlier.min(until)));
    }

    /// Whether all is done that there is time for. Who is still owed an answer then is told that there is none.
    pub(super) fn is_over(&mut self, now: Instant) -> bool {
        let Some(until) = self.ending else { return false };
        let unfinished = |flight: &OutboundMessage| flight.owes_answer() || flight.what == OutboundKind::Note;
        if until > now && self.flights.values().any(unfinished) {
            return false;
        }
        for ticket in self.tickets(|flight| flight.owes_answer()) {
            self.fail(ticket, "prism stdio was told to end before this was answered", "ended");
        }
        true
    }

    /// The session that is to be ended last.
    pub(super) fn farewell(&self) -> Option<(String, ProtocolHeaders)> {
        self.lane.session.as_ref()?;
        Some((self.route.path(), self.lane.clone()))
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let flights = self.flights.values().flat_map(|flight| [due(flight), self.is_late(flight)]);
        let others = [self.outage.as_ref().and_then(Outage::due), self.ending];
        flights.chain(others).flatten().min()
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        for ticket in self.tickets(|_| true) {
            let Some(flight) = self.flights.get(&ticket) else { continue };
            if self.is_late(flight).is_some_and(|at| at <= now) {
                self.give_up(ticket, None);
            } else if due(flight).is_some_and(|at| at <= now) {
                self.again(ticket);
            }
        }
        if self.outage.as_ref().and_then(Outage::due).is_some_and(|at| at <= now) {
            self.start();
        }
        self.release(now);
    }

    /// When the client has waited long enough for a daemon that does not answer.
    fn is_late(&self, flight: &OutboundMessage) -> Option<Instant> {
        flight
            .troubled
            .filter(|_| flight.state != OutboundState::Sent && !flight.is_patient())
            .map(|since| since + PATIENCE)
    }

    // --- What the client says ---

    fn take(&mut self, message: Message, now: Instant) {
        let message = match message.kind() {
            MessageKind::Notification(Method::Cancelled) if self.cancel(&message) => return,
            MessageKind::Response => match self.own_number(message) {
                Some(message) => message,
                // It answers a question of a session that is gone.
                None => return,
            },
            _ => message,
        };
        self.remember(&message);
        let what =
            if matches!(message.kind(), MessageKind::Request(_)) { OutboundKind::Request } else { OutboundKind::Note };
        let ticket = self.add(OutboundMessage::new(what, Some(message)));
        if self.outage.is_some() || matches!(self.gate, SessionBarrier::Reopening(_)) {
            self.trouble(ticket, now);
        }
        self.held.push_back(ticket);
    }

    /// 2025-03-26 alone has batches. Each message goes its own way, and the answers come one by one, which it allows.
    fn take_batch(&mut self, line: &Bytes, now: Instant) {
        if !self.has_batches() {
            return self.refuse(None, INVALID_REQUEST, "a JSON array (a batch) is only for sessions at 2025-03-26");
        }
        match serde_json::from_slice::<Vec<&RawValue>>(line) {
            Ok(parts) if (1..=MAX_BATCH).contains(&parts.len()) => {
                for part in parts {
                    match Message::parse(line.slice_ref(part.get().as_bytes())) {
                        Ok(message) => self.take(message, now),
                        Err(error) => self.refuse(None, INVALID_REQUEST, &error.to_string()),
                    }
                }
            }
            Ok(_) => self.refuse(None, INVALID_REQUEST, &format!("a batch has 1 to {MAX_BATCH} messages")),
            Err(_) => self.refuse(None, PARSE_ERROR, "the message is not valid JSON"),
        }
    }

    /// Does what a cancellation asks for here; true if that was all, and it need not be sent.
    fn cancel(&mut self, message: &Message) -> bool {
        let Some(id) = message.params().request_id.map(|span| message.text(span)) else { return false };
        let meant = |flight: &OutboundMessage| {
            flight.what == OutboundKind::Request && !flight.cancelled && flight.id() == Some(id)
        };
        let found = self.flights.iter_mut().rev().find(|(_, flight)| meant(flight));
        let Some((&ticket, flight)) = found else {
            // It is over. Without a session there is nobody who could have it.
            return self.lane.session.is_none();
        };
        if flight.is(Method::Initialize) {
            return true;
        }
        // 2026-07-28 over HTTP: closing the stream is the cancellation.
        if flight.is_modern() || flight.sent.is_none() {
            self.close(ticket);
            return true;
        }
        flight.cancelled = true;
        if flight.state != OutboundState::Sent {
            self.flights.remove(&ticket);
        }
        false
    }

    // --- Flights ---

    fn add(&mut self, flight: OutboundMessage) -> Ticket {
        self.last += 1;
        self.flights.insert(self.last, flight);
        self.last
    }

    fn tickets(&self, which: impl Fn(&OutboundMessage) -> bool) -> Vec<Ticket> {
        self.flights.iter().filter(|(_, flight)| which(flight)).map(|(ticket, _)| *ticket).collect()
    }

    /// Sends what may leave by now, in the order in which it came.
    fn release(&mut self, now: Instant) {
        for ticket in std::mem::take(&mut self.held) {
            let Some(flight) = self.flights.get(&ticket) else { continue };
            let there = self.outage.as_ref().is_none_or(Outage::lets_through);
            if there && self.gate.lets(ticket, flight) {
                self.send(ticket, now);
            } else {
                self.held.push_back(ticket);
            }
        }
    }

    fn send(&mut self, ticket: Ticket, now: Instant) {
        let Some(flight) = self.flights.get_mut(&ticket) else { return };
        (flight.state, flight.sent) = (OutboundState::Sent, Some(now));
        let Some(message) = flight.message.clone() else {
            flight.session.clone_from(&self.lane.session);
            let (lane, after) = (self.lane.clone(), flight.cursor.clone());
            return self.actions.push_back(ShimAction::Get {
                ticket,
                path: self.route.path(),
                lane,
                after,
                answers: None,
            });
        };
        if flight.cursor.is_some() {
            let (lane, after, answers) = (self.lane.clone(), flight.cursor.clone(), message.id().map(str::to_owned));
            return self.actions.push_back(ShimAction::Get { ticket, path: self.route.path(), lane, after, answers });
        }
        let (what, modern) = (flight.what, flight.is_modern());
        let opens = message.kind() == MessageKind::Request(Method::Initialize);
        // `initialize` opens a session: it can be in none. The modern era has none.
        let lane = if opens || modern { ProtocolHeaders::default() } else { self.lane.clone() };
        flight.session.clone_from(&lane.session);
        if opens && !modern && what == OutboundKind::Request {
            self.gate = SessionBarrier::Opening(ticket);
            self.greeting_again();
        }
        if what == OutboundKind::Note && message.kind() == MessageKind::Notification(Method::Initialized) {
            (self.gate, self.greeted) = (SessionBarrier::Greeting(ticket), true);
        }
        let params = if modern { self.tools.headers(&message) } else { Vec::new() };
        self.actions.push_back(ShimAction::Post { ticket, path: self.route.path(), message, params, lane });
    }

    /// Puts a flight among those that leave as soon as they may.
    fn again(&mut self, ticket: Ticket) {
        let Some(flight) = self.flights.get_mut(&ticket) else { return };
        if flight.is_patient() && flight.failures > 0 {
            self.actions.push_back(ShimAction::Look);
        }
        flight.state = OutboundState::Held;
        self.held.push_back(ticket);
    }

    fn later(&mut self, ticket: Ticket, pause: Duration, now: Instant) {
        if let Some(flight) = self.flights.get_mut(&ticket) {
            flight.failures += 1;
            flight.state = OutboundState::Later(now + pause.max(flight.backoff()).min(MAX_RETRY));
        }
    }

    /// Ends a flight of which nothing more is wanted.
    fn close(&mut self, ticket: Ticket) {
        if self.flights.remove(&ticket).is_some_and(|flight| flight.state == OutboundState::Sent) {
            self.actions.push_back(ShimAction::Close(ticket));
        }
    }

    /// Answers for the daemon.
    fn fail(&mut self, ticket: Ticket, why: &str, reason: &str) {
        if self.gate == SessionBarrier::Opening(ticket) {
            self.gate = SessionBarrier::Open;
        }
        let Some(flight) = self.flights.remove(&ticket) else { return };
        if let Some(id) = flight.id().filter(|_| flight.what == OutboundKind::Request && !flight.cancelled) {
            let answer = error_body(Some(id), INTERNAL, why, Some(reason));
            self.actions.push_back(ShimAction::Write(answer.into()));
        }
        if flight.state == OutboundState::Sent {
            self.actions.push_back(ShimAction::Close(ticket));
        }
    }

    fn refuse(&mut self, id: Option<&str>, code: i32, why: &str) {
        self.actions.push_back(ShimAction::Write(error_body(id, code, why, None).into()));
    }
}

// === impl ShimRoute ===

impl ShimRoute {
    fn path(&self) -> String {
        match self {
            Self::Hub => "/mcp".to_owned(),
            Self::Direct(name) => format!("/{name}/mcp"),
        }
    }
}

/// When a flight is to be sent again.
fn due(flight: &OutboundMessage) -> Option<Instant> {
    match flight.state {
        OutboundState::Later(at) => Some(at),
        _ => None,
    }
}
