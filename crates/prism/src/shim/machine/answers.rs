//! What the daemon says: which word is an answer, which one only comes before it, and which refusal means that the
//! message may be sent again.

use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::header::HeaderValue;
use prism_core::{
    mcp::{
        Method,
        modern::{self, ListenFilter},
    },
    wire::{Members, Message, MessageKind},
};

use super::{
    ExchangeReport, INTERRUPTED, RETRY, ShimAction, ShimMachine, Ticket,
    flight::{OutboundKind, OutboundMessage, ShimMessage},
    session::SessionBarrier,
};

/// A listen that was open for this long, and then ended, ended with the daemon: it is opened again.
const WORTHWHILE: Duration = Duration::from_secs(1);
/// Sessions that may be lost under one message. Beyond it its client is told what the daemon says.
const MAX_LOSSES: u32 = 3;
/// What Prism says of a session that it does not know.
const SESSION_NOT_FOUND: &str = "-32001";

/// What an error of the daemon's says.
#[derive(Default)]
struct DaemonRefusal {
    status: u16,
    code: String,
    /// The daemon is about to end, and has not looked at the request.
    stopping: bool,
    /// It names the request: so it got further than the door.
    is_answer: bool,
    retry: Option<Duration>,
}

// === impl ShimMachine ===

impl ShimMachine {
    /// Takes what came of a flight. Of one that is over by now nothing is heard any more.
    pub(in crate::shim) fn handle_report(&mut self, ticket: Ticket, says: ExchangeReport, now: Instant) {
        let Some(flight) = self.flights.get(&ticket) else { return };
        let what = flight.what;
        match says {
            ExchangeReport::Message(bytes) => {
                self.heard();
                self.pass_on(ticket, bytes);
            }
            ExchangeReport::Answer { status, message, session, retry } => {
                let refusal = DaemonRefusal::read(status, &message, retry);
                if !refusal.stopping {
                    self.heard();
                }
                if self.refused(ticket, &refusal, now) {
                } else if let OutboundKind::Own(own) = what {
                    self.own_answered(ticket, own, Some((message, session)));
                } else if what == OutboundKind::Request {
                    self.answered(ticket, status, message, session, now);
                } else {
                    self.not_taken(ticket);
                }
            }
            ExchangeReport::Accepted => {
                self.heard();
                match what {
                    OutboundKind::Request => {
                        self.fail(ticket, "Prism took the request and gave no answer", "no_answer")
                    }
                    OutboundKind::Own(own) => self.own_answered(ticket, own, None),
                    _ => self.not_taken(ticket),
                }
            }
            ExchangeReport::Status { status } => {
                self.heard();
                let refusal = DaemonRefusal { status, ..DaemonRefusal::default() };
                if self.refused(ticket, &refusal, now) {
                } else if let OutboundKind::Own(own) = what {
                    self.own_answered(ticket, own, None);
                } else if what == OutboundKind::Request
                    && self.flights.get(&ticket).is_some_and(|it| it.cursor.is_some())
                {
                    self.stream_lost(ticket, now);
                } else if what == OutboundKind::Request {
                    self.fail(ticket, &format!("Prism answered HTTP {status}"), "status");
                } else {
                    self.not_taken(ticket);
                }
            }
            ExchangeReport::Ended { after, retry } => self.ended(ticket, after, retry, now),
            ExchangeReport::Unsent { why } => self.unsent(ticket, &why, now),
            ExchangeReport::Broken { why } => match what {
                OutboundKind::Request => self.fail(ticket, &why, "no_answer"),
                OutboundKind::Own(own) => self.own_answered(ticket, own, None),
                _ => self.not_taken(ticket),
            },
        }
        self.release(now);
    }

    /// Passes on what came before an answer, or without one.
    fn pass_on(&mut self, ticket: Ticket, bytes: Bytes) {
        let Ok(message) = Message::parse(bytes) else { return };
        let Some(flight) = self.flights.get_mut(&ticket) else { return };
        flight.failures = 0;
        match message.kind() {
            // What answers another request belongs into its response.
            MessageKind::Response => {}
            MessageKind::Notification(Method::Acknowledged) if flight.acknowledged => {
                // The client had this once, and may have missed something since.
                let (Some(id), Some(filter)) = (flight.id(), ListenFilter::read(&message)) else { return };
                let missed = LISTS.into_iter().filter(|list| filter.wants(*list)).filter_map(changed);
                let missed: Vec<ShimAction> =
                    missed.map(|note| ShimAction::Write(modern::tagged(&note, id).into())).collect();
                self.actions.extend(missed);
            }
            kind => {
                flight.acknowledged |= kind == MessageKind::Notification(Method::Acknowledged);
                let bytes = self.renamed(&message);
                self.actions.push_back(ShimAction::Write(bytes));
            }
        }
    }

    /// The last word on a request.
    pub(super) fn answered(
        &mut self,
        ticket: Ticket,
        status: u16,
        message: Message,
        session: Option<HeaderValue>,
        now: Instant,
    ) {
        let Some(flight) = self.flights.get_mut(&ticket) else { return };
        if flight.cursor.is_some() && !(200..300).contains(&status) {
            return self.stream_lost(ticket, now);
        }
        if flight.is(Method::ToolsCall) && flight.is_modern() && !flight.relearned && mismatches(&message) {
            flight.relearned = true;
            return self.learn(ticket, None);
        }
        if flight.is(Method::Listen)
            && !message.failed()
            && flight.sent.is_some_and(|sent| now.saturating_duration_since(sent) >= WORTHWHILE)
        {
            // A daemon that stops ends its listens; the client has not asked for that.
            return self.later(ticket, RETRY, now);
        }
        if flight.is(Method::ToolsList)
            && flight.is_modern()
            && let Some(result) = message.result_span()
        {
            self.tools.learn(message.text(result));
        }
        let Some(flight) = self.flights.remove(&ticket) else { return };
        if self.gate == SessionBarrier::Opening(ticket) {
            self.opened(&message, session);
        }
        let answer = match (message.id(), flight.id(), message.error_span()) {
            // It was refused before anybody knew what it was; the client wants to know which one.
            (None, Some(id), Some(error)) => {
                format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{}}}"#, message.text(error)).into()
            }
            _ => self.with_channel(&flight, &message).unwrap_or_else(|| message.bytes().clone()),
        };
        self.actions.push_back(ShimAction::Write(answer));
    }

    /// What a note, or a stream, comes to that is taken or refused for good.
    pub(super) fn not_taken(&mut self, ticket: Ticket) {
        self.flights.remove(&ticket);
        if self.gate == SessionBarrier::Greeting(ticket) {
            self.greeted();
        }
    }

    /// Sees to a refusal after which the message can be sent again: it was certainly not done.
    fn refused(&mut self, ticket: Ticket, refusal: &DaemonRefusal, now: Instant) -> bool {
        let Some(flight) = self.flights.get_mut(&ticket) else { return true };
        let unknown_session =
            refusal.code == SESSION_NOT_FOUND && flight.session.is_some() && flight.losses < MAX_LOSSES;
        match refusal.status {
            _ if flight.what == OutboundKind::Stream => self.stream_refused(ticket, refusal.status, now),
            401 if !flight.knocked => {
                flight.knocked = true;
                self.wait_for_daemon(ticket, now);
            }
            _ if refusal.stopping => self.wait_for_daemon(ticket, now),
            // Too many at once: let some finish.
            429 => {
                self.trouble(ticket, now);
                self.later(ticket, refusal.retry.unwrap_or(RETRY), now);
            }
            404 if unknown_session => {
                let done = (refusal.is_answer || flight.cursor.take().is_some()) && !flight.may_repeat();
                self.session_lost(ticket, now);
                if done {
                    self.fail(ticket, INTERRUPTED, "daemon_restarted");
                }
            }
            _ => return false,
        }
        true
    }

    /// The rest of a call's stream cannot be had.
    pub(super) fn stream_lost(&mut self, ticket: Ticket, now: Instant) {
        let Some(flight) = self.flights.get_mut(&ticket) else { return };
        flight.cursor = None;
        match flight.may_repeat() {
            true => self.wait_for_daemon(ticket, now),
            false => self.fail(ticket, INTERRUPTED, "daemon_restarted"),
        }
    }

    // --- Tools whose arguments go into headers (2026-07-28) ---

    /// Fetches what a call's headers are made from: clients on stdio need not know of it.
    fn learn(&mut self, of: Ticket, cursor: Option<&str>) {
        let meta = self.flights.get(&of).and_then(|flight| {
            let message = flight.message.as_ref()?;
            message.params().meta.map(|span| message.text(span).to_owned())
        });
        let cursor = cursor.map(|cursor| format!(r#""cursor":{cursor},"#)).unwrap_or_default();
        let request = format!(
            r#"{{"jsonrpc":"2.0","id":0,"method":"tools/list","params":{{{cursor}"_meta":{}}}}}"#,
            meta.as_deref().unwrap_or("{}")
        );
        match Message::parse(Bytes::from(request)) {
            Ok(request) => {
                let ticket =
                    self.add(OutboundMessage::new(OutboundKind::Own(ShimMessage::Learn { of }), Some(request)));
                self.held.push_front(ticket);
            }
            Err(_) => self.again(of),
        }
    }

    pub(super) fn learned(&mut self, of: Ticket, message: Option<Message>) {
        let result = message.as_ref().and_then(|message| message.result_span().map(|span| message.text(span)));
        if let Some(result) = result {
            self.tools.learn(result);
            let members = Members::read(result).unwrap_or_default();
            if let Some(cursor) = members.get("nextCursor").filter(|cursor| cursor.starts_with('"')) {
                return self.learn(of, Some(cursor));
            }
        }
        self.again(of);
    }
}

pub(super) const LISTS: [Method; 3] = [Method::ToolsChanged, Method::PromptsChanged, Method::ResourcesChanged];

/// The note that a list has changed.
pub(super) fn changed(list: Method) -> Option<Message> {
    Message::parse(Bytes::from(format!(r#"{{"jsonrpc":"2.0","method":"{}"}}"#, list.name()))).ok()
}

/// Whether it is refused because of its headers.
fn mismatches(message: &Message) -> bool {
    let code = message.error_span().map(|span| Members::read(message.text(span)).unwrap_or_default());
    code.is_some_and(|error| error.get("code") == Some(&modern::HEADER_MISMATCH.to_string()))
}

// === impl DaemonRefusal ===

impl DaemonRefusal {
    fn read(status: u16, message: &Message, retry: Option<Duration>) -> Self {
        let error = message.error_span().map(|span| Members::read(message.text(span)).unwrap_or_default());
        let error = error.unwrap_or_default();
        let stopping = status == 503 && error.object("data").is_some_and(|data| data.says("reason", "stopping"));
        let code = error.get("code").unwrap_or_default().to_owned();
        Self { status, code, stopping, is_answer: message.id().is_some(), retry }
    }
}
