//! What comes from the server, whichever way it came: read, and handed to whom it is for.

use std::time::Instant;

use bytes::Bytes;

use super::{CallFault, Exchange, ExchangeOwner, Link, LinkAction, Method, ReplyRoute, WireId};
use crate::wire::{
    Frame, Message, MessageKind,
    envelope::{self, TruncatedId},
    text,
};

impl Link {
    /// One line of the child's stdout (B-14).
    pub fn handle_child(&mut self, frame: Frame, now: Instant) {
        self.handle_frame(None, frame, now);
    }

    /// One message that came with the response to this request of ours.
    pub fn handle_reply(&mut self, about: u64, frame: Frame, now: Instant) {
        self.handle_frame(Some(about), frame, now);
    }

    fn handle_frame(&mut self, about: Option<u64>, frame: Frame, now: Instant) {
        let line = match frame {
            Frame::Line(line) => line,
            Frame::TooLong { head, tail } => return self.handle_cut_line(head, &tail, now),
        };
        match Message::parse(line.clone()) {
            Ok(message) => self.handle_message(about, message, now),
            Err(_) => self.garbage(line, "not a JSON-RPC message"),
        }
    }

    /// One message of the server's; `about`: the request of ours that it came with.
    pub fn handle_message(&mut self, about: Option<u64>, message: Message, now: Instant) {
        let about = about.map(|number| (number, self.exchange_of(number)));
        match message.kind() {
            MessageKind::Response => match (message.id(), about) {
                // An error that came as the response to our request answers it, whether it says so or not.
                (None, Some((number, _))) => self.handle_nameless(number, &message, now),
                _ => self.handle_response(message, now),
            },
            MessageKind::Request(method) => self.handle_question(about.map(|(_, id)| id), method, &message, now),
            MessageKind::Notification(method) => self.handle_note(about.map(|(_, id)| id), method, message, now),
        }
    }

    fn handle_nameless(&mut self, number: u64, message: &Message, now: Instant) {
        let Some(error) = message.error_span().map(|span| message.text(span)) else { return };
        let named = text::error(number, error);
        if let Ok(message) = Message::parse(Bytes::from(named)) {
            self.handle_response(message, now);
        }
    }

    /// A request of ours will get no answer. `evidence`: that is how a server of the other era would look.
    pub fn handle_failed(&mut self, number: u64, fault: CallFault, evidence: bool, now: Instant) {
        if self.union.has(number) {
            return self.union_over(number, now);
        }
        let id = self.exchange_of(number);
        let Some(exchange) = self.exchanges.get(&id.0).filter(|e| e.wire == number) else { return };
        match (&exchange.owner, exchange.method) {
            (ExchangeOwner::Link, method @ (Method::Discover | Method::Initialize)) if self.is_opening() => {
                self.exchanges.remove(&id.0);
                self.opening_failed(method, fault, evidence, now);
            }
            (ExchangeOwner::Link, Method::ToolsList) if exchange.reply != ReplyRoute::Held => {
                self.exchanges.remove(&id.0);
                self.tools_refreshed(id, None);
            }
            _ => {
                self.fail(id, fault, now);
                self.acknowledge_listens();
                self.pump(now);
                self.settle(now);
            }
        }
    }

    /// Whether somebody still wants what was asked under this number.
    pub fn still_wants(&self, number: u64) -> bool {
        let exchange = self.exchanges.get(&self.exchange_of(number).0);
        exchange.is_some_and(|e| {
            e.wire == number && (matches!(e.owner, ExchangeOwner::Link) || e.reply != ReplyRoute::Nobody)
        })
    }

    /// Whether a request of ours under this number waits for the server's answer.
    fn is_known(&self, number: u64) -> bool {
        self.union.has(number) || self.exchanges.get(&self.exchange_of(number).0).is_some_and(|e| e.wire == number)
    }

    /// The exchange that the server knows by this number: one that was asked again has another than its own.
    pub fn exchange_of(&self, number: u64) -> WireId {
        self.aliases.get(&number).copied().unwrap_or(WireId(number))
    }

    /// A line that was over the limit: what can be seen of it says whom to tell (B-18).
    fn handle_cut_line(&mut self, head: Bytes, tail: &[u8], now: Instant) {
        let limit = self.settings.max_message_bytes;
        match envelope::cut_message(&head, tail) {
            Some(TruncatedId::Response(number)) if self.is_known(number) => {
                let opening = |e: &Exchange| matches!(e.owner, ExchangeOwner::Link) && e.method == Method::Initialize;
                if self.exchanges.get(&number).is_some_and(opening) {
                    self.reject(
                        &format!("its answer to `initialize` is over `max_message_bytes` ({limit} bytes)"),
                        now,
                    );
                } else {
                    self.handle_failed(number, CallFault::TooLarge { limit }, false, now);
                }
            }
            Some(TruncatedId::Request(id)) if !self.is_stuck() => {
                let why = format!("the request is over `max_message_bytes` ({limit} bytes)");
                self.output.write_error(&id, -32603, &why);
            }
            _ => self.garbage(head, "a line over `max_message_bytes`"),
        }
    }

    pub(super) fn garbage(&mut self, line: Bytes, why: &'static str) {
        self.actions.push_back(LinkAction::Garbage { line, why });
    }
}
