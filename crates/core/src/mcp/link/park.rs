//! A legacy server that asks in the middle of a modern client's call (mcp-eras 5.7 A).
//!
//! The client gets the question in the place of an answer, and its call is parked: it goes on running at the server
//! until the client comes back with the answer. A secret leads back to it, which is good once, for the same client with
//! the same request, and not for ever.

use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::Value;

use super::{
    AcceptedFormats, ExchangeOwner, Link, LinkAction, LinkAnswer, LinkRefusal, MemberNames, Method, Modern, ReplyRoute,
    WireId,
    exchange::{ExchangeOutcome, LegacyQuestion, RequestClient},
    fault::error_body,
    questions::{can_answer, can_answer_params},
};
use crate::{
    mcp::{
        era::Era,
        modern::{ClientMeta, InputRequest, InputRequired},
        payload,
    },
    wire::{ByteChain, Members, Message, MessageKind, text},
};

/// How long to wait for more questions before the first is put to the client.
const WINDOW: Duration = Duration::from_millis(20);
/// How long a client may take to come back.
pub const PARKED_FOR: Duration = Duration::from_secs(10 * 60);
/// Calls that may be parked at a time. Beyond it the server gets an error for its question.
const MAX_PARKED: usize = 64;
/// Questions one call may have open. Beyond it the server gets an error.
const MAX_ASKED: usize = 16;
/// How long a server outlives a question of Prism's own, so that the call that it was asked for finds it there.
pub(super) const OWN_WARM: Duration = Duration::from_secs(10);

/// A call of the modern era, as the shell hands it over.
#[derive(Debug)]
pub struct ModernCall {
    pub message: Message,
    pub envelope: ClientMeta,
    /// `Mcp-Param-*` headers, without that prefix.
    pub headers: Vec<(String, String)>,
    pub accepts: AcceptedFormats,
    /// How its client calls what the server has, where that is not as the server does.
    pub names: Option<MemberNames>,
    /// Fresh randomness: the secret under which the call can go on if its client must be asked something.
    pub ticket: u128,
    /// The secret of the call that this one goes on with.
    pub resumes: Option<u128>,
    /// There is nowhere else to go: the call that has waited for its client the longest gives way.
    pub evicts: bool,
    /// Which era the server speaks was not known when this link was chosen: there may be a better one.
    pub movable: bool,
    /// It is the hub's own question: it does not wait for a server that could not be started to be started again.
    pub fetch: bool,
}

/// Reads our own `requestState`: the link's number, and the secret.
pub fn read_state(state: &str) -> Option<(u64, u128)> {
    let (link, ticket) = state.strip_prefix("prism.")?.split_once('.')?;
    let canonical = ticket.len() == 32 && ticket.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if !canonical {
        return None;
    }
    // One text for one state: `+1` and `01` are not what we wrote.
    let number: u64 = link.parse().ok()?;
    (number.to_string() == link).then_some((number, u128::from_str_radix(ticket, 16).ok()?))
}

impl Link {
    /// Takes a call of the modern era. The answer comes as an [`LinkAction`] under the returned id.
    pub fn ask(&mut self, ask: ModernCall, now: Instant) -> Result<WireId, LinkRefusal> {
        self.admit(None)?;
        let ModernCall { message, envelope, headers, accepts, names, ticket, resumes, evicts, movable, fetch } = ask;
        match resumes.map(|state| self.resumable(state, &message, &envelope).ok_or(state)) {
            Some(Ok(parked)) => Ok(self.resume(parked, &message, envelope, accepts, ticket, now)),
            Some(Err(_)) => {
                let client = RequestClient { session: None, accepts, names };
                let id = self.enter_modern(client, &message, envelope, headers, ticket, now);
                let why = "this `requestState` is not good for this request: it was used, has expired, or belongs to \
                           another client or other arguments";
                self.refuse_modern(id, -32602, why, "", now);
                Ok(id)
            }
            None => {
                if evicts && method_of(&message).may_ask() {
                    self.evict(now);
                }
                let client = RequestClient { session: None, accepts, names };
                let kept_until = self.stateless_until;
                let id = self.enter_modern(client, &message, envelope, headers, ticket, now);
                if fetch {
                    self.mark_fetch(id);
                    // A question of our own is no client that may come back: who wants the server kept says so.
                    self.stateless_until = kept_until.max(Some(now + OWN_WARM.min(self.settings.keep_stateless)));
                }
                if let Some(modern) = self.exchanges.get_mut(&id.0).and_then(|e| e.modern_mut()) {
                    modern.movable = movable;
                }
                self.dispatch_or_hold(id, message, now);
                Ok(id)
            }
        }
    }

    fn enter_modern(
        &mut self,
        client: RequestClient,
        message: &Message,
        envelope: ClientMeta,
        headers: Vec<(String, String)>,
        ticket: u128,
        now: Instant,
    ) -> WireId {
        let modern = Modern {
            envelope,
            ticket,
            headers,
            asked: Vec::new(),
            last_key: 0,
            ask_at: None,
            expires: None,
            outcome: None,
            movable: false,
            floor_by: None,
        };
        self.enter(client, message, ReplyRoute::Held, Some(Box::new(modern)), now)
    }

    /// The parked call that a request may go on with: its own client's, with the same request.
    fn resumable(&self, state: u128, message: &Message, envelope: &ClientMeta) -> Option<WireId> {
        let parked = *self.parked.get(&state)?;
        let exchange = self.exchanges.get(&parked.0).filter(|e| e.reply == ReplyRoute::Parked)?;
        let origin = exchange.origin.as_ref()?;
        let same = exchange.modern()?.envelope.info == envelope.info
            && origin.method_text() == message.method_text()
            && bound_params(origin)? == bound_params(message)?;
        same.then_some(parked)
    }

    /// Goes on with a parked call: the server gets the answers, and the client the rest of the call.
    fn resume(
        &mut self,
        parked: WireId,
        message: &Message,
        envelope: ClientMeta,
        accepts: AcceptedFormats,
        ticket: u128,
        now: Instant,
    ) -> WireId {
        let id = self.next_id();
        let Some(mut exchange) = self.exchanges.remove(&parked.0) else { return id };
        let wire = exchange.wire;
        if wire != 0 {
            self.aliases.insert(wire, id);
        }
        self.renumber_floor(parked, id);
        exchange.reply = ReplyRoute::Held;
        self.stateless_until = Some(now + self.settings.keep_stateless);
        let mut outcome = None;
        let mut answers = Vec::new();
        if let ExchangeOwner::Client { id: own, token, accepts: takes, modern: Some(modern), .. } = &mut exchange.owner
        {
            *own = message.id().unwrap_or_default().into();
            *token = message.params().meta_token.map(|span| message.text(span).into());
            *takes = accepts;
            self.parked.remove(&modern.ticket);
            modern.ticket = ticket;
            modern.envelope = envelope;
            modern.expires = None;
            outcome = modern.outcome.take();
            let given = message.params().input_responses.and_then(|span| Members::read(message.text(span)));
            let given = given.unwrap_or_default();
            modern.asked.retain(|asked| match given.object(&asked.key).and_then(|_| given.get(&asked.key)) {
                Some(answer) => {
                    answers.push(text::result(&asked.server_id, answer));
                    false
                }
                None => true,
            });
            // What it said that it can answer, it said for its last request only.
            let class = modern.envelope.class;
            modern.asked.retain(|asked| match can_answer_params(class, asked.method, &asked.params) {
                Ok(()) => true,
                Err((code, why)) => {
                    answers.push(error_body(Some(&asked.server_id), code, why, None));
                    false
                }
            });
            if !modern.asked.is_empty() && outcome.is_none() {
                // It is asked for the rest again.
                modern.ask_at = Some(now);
            }
        }
        self.start_clocks(&mut exchange, now);
        self.check_by(exchange.due());
        self.exchanges.insert(id.0, exchange);
        for answer in answers {
            self.output.write_text(&answer);
        }
        match outcome {
            Some(ExchangeOutcome::Message(answer)) => {
                // Only a server of the other era has questions that a call is parked for.
                if let Some(told) = self.reworded(id, Era::Legacy, &answer) {
                    self.finish_told(id, told, now);
                }
            }
            Some(ExchangeOutcome::Fault(fault)) => self.fail(id, fault, now),
            None => {}
        }
        id
    }

    /// A question on behalf of a modern client's call.
    pub(super) fn ask_modern(&mut self, id: WireId, method: Method, message: &Message, now: Instant) {
        let Some(server_id) = message.id() else { return };
        let parked = self.parked.len();
        let Some(exchange) = self.exchanges.get_mut(&id.0) else { return };
        let gone = !exchange.is_awaited() && exchange.reply != ReplyRoute::Parked;
        let Some(modern) = exchange.modern_mut() else { return };
        let refusal = match can_answer(modern.envelope.class, method, message) {
            Err(refusal) => Some(refusal),
            Ok(()) if gone => Some((-32603, "the client has left")),
            Ok(()) if parked >= MAX_PARKED || modern.asked.len() >= MAX_ASKED => {
                Some((-32603, "too many questions are open"))
            }
            Ok(()) => None,
        };
        if let Some((code, why)) = refusal {
            return self.output.write_error(server_id, code, why);
        }
        modern.last_key += 1;
        let params = message.params_text().unwrap_or("{}");
        modern.asked.push(LegacyQuestion {
            key: format!("r{}", modern.last_key),
            server_id: server_id.into(),
            method,
            params: payload::question_to_modern(params).unwrap_or_else(|| params.to_owned()),
        });
        if exchange.is_awaited() {
            let at = now + WINDOW;
            if let Some(modern) = exchange.modern_mut() {
                modern.ask_at.get_or_insert(at);
            }
            self.check_by(Some(at));
        }
    }

    /// What is due about a call's questions. Returns whether there was anything.
    pub(super) fn look_at_questions(&mut self, id: WireId, now: Instant) -> bool {
        let Some(exchange) = self.exchanges.get_mut(&id.0) else { return false };
        let reply = exchange.reply;
        if let Some(rounds) = &mut exchange.rounds
            && rounds.again_at.is_some_and(|at| at <= now)
        {
            rounds.again_at = None;
            self.forward_again(id);
            return true;
        }
        let Some(modern) = exchange.modern_mut() else { return false };
        if modern.ask_at.is_some_and(|at| at <= now) {
            modern.ask_at = None;
            if reply != ReplyRoute::Parked && !modern.asked.is_empty() {
                self.park(id, now);
            }
            return true;
        }
        if modern.expires.is_some_and(|at| at <= now) {
            modern.expires = None;
            let over = modern.outcome.is_some();
            if over {
                self.retire(id);
            } else {
                self.stop_call(id, None, now);
            }
            return true;
        }
        false
    }

    /// Puts a call's questions to its client, in the place of an answer.
    fn park(&mut self, id: WireId, now: Instant) {
        let number = self.settings.number;
        if self.exchanges.get(&id.0).is_some_and(|e| e.reply == ReplyRoute::Held && !e.accepts_json()) {
            self.commit(id, now);
        }
        let Some(exchange) = self.exchanges.get_mut(&id.0) else { return };
        let reply = std::mem::replace(&mut exchange.reply, ReplyRoute::Parked);
        let by_method = exchange.by_method();
        exchange.deadline = None;
        exchange.tell_at = None;
        let ExchangeOwner::Client { id: own, modern: Some(modern), .. } = &mut exchange.owner else { return };
        let asked = modern.asked.iter().map(|asked| InputRequest {
            key: asked.key.clone(),
            method: asked.method,
            params: asked.params.clone(),
        });
        let state = format!("\"prism.{number}.{:032x}\"", modern.ticket).into();
        let body = InputRequired { requests: asked.collect(), state: Some(state) }.write(own, self.greeting.as_ref());
        modern.expires = Some(now + PARKED_FOR);
        self.parked.insert(modern.ticket, id);
        self.check_by(Some(now + PARKED_FOR));
        self.check_by(self.parked_moments().min());
        match reply {
            ReplyRoute::Held => {
                let answer = LinkAnswer::Message(ByteChain::from(Bytes::from(body)));
                self.actions.push_back(LinkAction::Answer(id, answer));
            }
            ReplyRoute::Bare(stream) => {
                let bytes = super::exchange::named(crate::wire::frame::event(None, &[body.as_bytes()]), by_method);
                self.actions.push_back(LinkAction::Event { stream, number: 0, bytes });
                self.actions.push_back(LinkAction::End(stream));
            }
            _ => {}
        }
    }

    /// Keeps what came of a call until its client asks for it.
    pub(super) fn keep_outcome(&mut self, id: WireId, outcome: ExchangeOutcome) {
        self.set_wire(id, 0);
        if let Some(modern) = self.exchanges.get_mut(&id.0).and_then(|e| e.modern_mut()) {
            // A server that answered and then ended has answered.
            modern.outcome.get_or_insert(outcome);
        }
    }

    /// Tells the server that its questions on behalf of a call will not be answered. In this era that is also how a
    /// person's refusal looks.
    pub(super) fn withdraw_asked(&mut self, id: WireId) {
        let Some(modern) = self.exchanges.get_mut(&id.0).and_then(|e| e.modern_mut()) else { return };
        for LegacyQuestion { server_id, method, .. } in std::mem::take(&mut modern.asked) {
            match method {
                Method::Elicit => {
                    let text = text::result(server_id, r#"{"action":"cancel"}"#);
                    self.output.write_text(&text);
                }
                Method::Sample => self.output.write_error(&server_id, -1, "the user did not answer"),
                _ => self.output.write_error(&server_id, -32603, "the client did not answer"),
            }
        }
    }

    /// The server takes a question back that a modern client was asked.
    pub(super) fn asked_withdrawn(&mut self, server_id: &str) {
        for exchange in self.exchanges.values_mut() {
            if let Some(modern) = exchange.modern_mut() {
                modern.asked.retain(|asked| *asked.server_id != *server_id);
            }
        }
    }
}

fn method_of(message: &Message) -> Method {
    match message.kind() {
        MessageKind::Request(method) => method,
        _ => Method::Other,
    }
}

/// The parameters that a parked call is bound to: all but what may differ when its client comes back.
fn bound_params(message: &Message) -> Option<Value> {
    let mut params: Value = serde_json::from_str(message.params_text()?).ok()?;
    let members = params.as_object_mut()?;
    for name in ["_meta", "inputResponses", "requestState"] {
        members.remove(name);
    }
    Some(params)
}
