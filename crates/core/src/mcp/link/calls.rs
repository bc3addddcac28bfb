//! Calls: from a client to the server under an id of ours, and the answer back under the client's own.

use std::time::Instant;

use super::{
    AcceptedFormats, CallFault, Exchange, ExchangeOwner, Link, LinkAction, LinkAnswer, LinkRefusal,
    MAX_CALLS_PER_SESSION, MAX_HELD, Modern, ReplyRoute, SessionKey, StreamKey, WireId,
    exchange::{ExchangeOutcome, RequestClient, RequestStanding},
    lifecycle::LinkPhase,
};
use crate::{
    mcp::{MemberNames, Method, era::Era},
    wire::{ByteChain, Message, MessageKind, envelope, splice::around, text},
};

impl Link {
    /// Takes a client's request. The answer comes as an [`LinkAction`] under the returned id. `names` are for a client of the
    /// hub's whose session does not say them.
    pub fn call(
        &mut self,
        session: Option<SessionKey>,
        message: Message,
        accepts: AcceptedFormats,
        names: Option<MemberNames>,
        now: Instant,
    ) -> Result<WireId, LinkRefusal> {
        self.admit(session)?;
        let session_of = session.and_then(|key| self.sessions.get(&key));
        let reply = match session_of {
            Some(session) if session.is_plain() => ReplyRoute::Track(session.standalone_track()),
            _ => ReplyRoute::Held,
        };
        let names = names.or_else(|| session_of.and_then(|session| session.part.as_ref()?.names.clone()));
        let id = self.enter(RequestClient { session, accepts, names }, &message, reply, None, now);
        self.dispatch_or_hold(id, message, now);
        Ok(id)
    }

    /// Asks for a list as a session would, for the hub to look at. The session hears nothing of it.
    pub fn fetch(&mut self, session: SessionKey, message: Message, now: Instant) -> Result<WireId, LinkRefusal> {
        let accepts = AcceptedFormats { json: true, events: false, by_method: false };
        let id = self.call(Some(session), message, accepts, None, now)?;
        self.mark_fetch(id);
        Ok(id)
    }

    /// Notes that a call is the hub's own question.
    pub(super) fn mark_fetch(&mut self, id: WireId) {
        if let Some(exchange) = self.exchanges.get_mut(&id.0) {
            exchange.is_fetch = true;
            self.fetches += 1;
        }
    }

    /// Takes a batch (2025-03-26). Its answers come on one stream, which is returned unless there is nothing to answer.
    pub fn batch(
        &mut self,
        key: SessionKey,
        messages: Vec<Message>,
        by_method: bool,
        now: Instant,
    ) -> Result<Option<StreamKey>, LinkRefusal> {
        self.admit(Some(key))?;
        let (calls, tellings): (Vec<_>, Vec<_>) =
            messages.into_iter().partition(|message| matches!(message.kind(), MessageKind::Request(_)));
        let mut stream = None;
        if !calls.is_empty() {
            let opened = self.next_stream(now);
            let session = self.sessions.get_mut(&key).ok_or(LinkRefusal::UnknownSession)?;
            let track = session.open_post(opened, calls.len(), by_method, &mut self.actions);
            stream = Some(opened);
            for message in calls {
                let accepts = AcceptedFormats { json: false, events: true, by_method };
                let client = RequestClient { session: Some(key), accepts, names: None };
                let id = self.enter(client, &message, ReplyRoute::Track(track), None, now);
                self.dispatch_or_hold(id, message, now);
            }
        }
        for message in tellings {
            self.tell(Some(key), message, now);
        }
        Ok(stream)
    }

    pub(super) fn admit(&self, session: Option<SessionKey>) -> Result<(), LinkRefusal> {
        if let Some(key) = session {
            let session = self.sessions.get(&key).ok_or(LinkRefusal::UnknownSession)?;
            if session.calls >= MAX_CALLS_PER_SESSION {
                return Err(LinkRefusal::Busy);
            }
        }
        if self.is_stuck() {
            return Err(LinkRefusal::Stuck);
        }
        if self.held.len() >= MAX_HELD {
            return Err(LinkRefusal::Busy);
        }
        Ok(())
    }

    pub(super) fn enter(
        &mut self,
        RequestClient { session, accepts, names }: RequestClient,
        message: &Message,
        reply: ReplyRoute,
        modern: Option<Box<Modern>>,
        now: Instant,
    ) -> WireId {
        let id = self.next_id();
        let method = match message.kind() {
            MessageKind::Request(method) => method,
            _ => Method::Other,
        };
        // The name is only of interest where questions are counted.
        let counted = method == Method::ToolsCall && self.settings.class.answers_questions();
        let name =
            if counted { message.string(message.params().name).map(|name| name.into_owned().into()) } else { None };
        let mut exchange = Exchange {
            method,
            owner: ExchangeOwner::Client {
                session,
                id: message.id().unwrap_or_default().into(),
                token: message.params().meta_token.map(|span| message.text(span).into()),
                accepts,
                name,
                names,
                modern,
            },
            reply,
            deadline: None,
            latest: now,
            tell_at: None,
            progress: None,
            wire: 0,
            standing: RequestStanding::Running,
            origin: None,
            rounds: None,
            is_fetch: false,
        };
        self.start_clocks(&mut exchange, now);
        self.check_by(exchange.due());
        self.exchanges.insert(id.0, exchange);
        self.calls += 1;
        match session.and_then(|key| self.sessions.get_mut(&key)) {
            Some(session) => session.calls += 1,
            None => self.stateless_until = Some(now + self.settings.keep_stateless),
        }
        self.last_caller = session;
        self.used_at = Some(now);
        id
    }

    pub(super) fn dispatch_or_hold(&mut self, id: WireId, message: Message, now: Instant) {
        match (self.phase, message.kind()) {
            // A ping asks whether we are there (mcp-eras 6, check 46).
            (_, MessageKind::Request(Method::Ping)) => self.dispatch(id, message, now),
            (LinkPhase::Up, _) => {
                let is_others_turn = self.must_wait(id);
                if !is_others_turn && !self.awaits_floor(id, now) {
                    return self.dispatch(id, message, now);
                }
                self.wait_for_turn(id, now);
                self.held.push_back((id, message));
                if is_others_turn {
                    self.rouse_ghosts(now);
                }
            }
            _ => {
                // The time that a server takes to start is not the call's: a start has a limit of its own (B-07).
                if let Some(exchange) = self.exchanges.get_mut(&id.0) {
                    exchange.deadline = None;
                }
                self.held.push_back((id, message));
                self.want(now);
            }
        }
    }

    /// Sends a call to the server, or answers it where it is ours to answer.
    pub(super) fn dispatch(&mut self, id: WireId, message: Message, now: Instant) {
        let MessageKind::Request(method) = message.kind() else { return };
        if self.exchanges.get(&id.0).is_some_and(|e| e.modern().is_some()) {
            return self.dispatch_modern(id, method, message, now);
        }
        match method {
            Method::Ping => self.answer_locally(id, "{}", now),
            Method::Initialize => match self.welcome(id, &message) {
                Some(welcome) => {
                    self.finish(id, &[&welcome], now);
                    // A session that has set no level counts, too.
                    self.adjust_level();
                }
                None => self.refuse_locally(id, -32602, "the `initialize` message is malformed", now),
            },
            // The other era's, and no part of a session.
            Method::Discover | Method::Listen => self.refuse_locally(id, -32601, "method not found", now),
            Method::SetLevel => self.set_level(id, message, now),
            Method::ResourcesSubscribe => self.subscribe(id, message, now),
            Method::ResourcesUnsubscribe => self.unsubscribe(id, message, now),
            _ if self.shares(id, &message, now) => {}
            _ => self.forward(id, &message),
        }
    }

    /// Takes a client's notification, or its answer to a question (B-05).
    pub fn tell(&mut self, key: Option<SessionKey>, message: Message, now: Instant) {
        match message.kind() {
            MessageKind::Response => self.answer_question(key, &message, now),
            MessageKind::Notification(Method::Cancelled) => self.cancel(key, &message, now),
            MessageKind::Notification(Method::Progress) => self.client_progress(key, &message),
            // The handshake with the server is ours.
            MessageKind::Notification(Method::Initialized) => {}
            // One that wants no answer is no call, and some server might take it for one.
            MessageKind::Notification(Method::ToolsCall) => {}
            // Between several clients nothing says whose roots changed, or whom an unknown note is about; and the
            // modern era has no such notes.
            MessageKind::Notification(_)
                if self.settings.alone
                    && self.phase == LinkPhase::Up
                    && self.era() == Era::Legacy
                    && !self.is_stuck() =>
            {
                self.output.write(&message, &mut []);
            }
            _ => {}
        }
    }

    /// A client cancels a call of its own (mcp-eras 5.10).
    fn cancel(&mut self, key: Option<SessionKey>, message: &Message, now: Instant) {
        let (Some(key), Some(named)) = (key, message.params().request_id) else { return };
        let named = message.text(named);
        let mut found = self.exchanges.iter().filter(|(_, e)| {
            let ExchangeOwner::Client { session, id, .. } = &e.owner else { return false };
            *session == Some(key) && **id == *named && e.is_awaited() && e.method != Method::Initialize
        });
        // Two calls under one id: nothing says which one is meant.
        let (Some((id, _)), None) = (found.next(), found.next()) else { return };
        let id = WireId(*id);
        self.withdraw_round(id);
        if let Some(at) = self.held.iter().position(|(held, _)| *held == id) {
            self.held.remove(at);
            self.abandon(id, None, now);
            self.retire(id);
        } else {
            self.push_cancel(id, Some(message));
            self.abandon(id, None, now);
        }
        self.settle(now);
    }

    /// Tells the server to stop working on a call, and its client why; nothing, if it was the client who said so.
    pub(super) fn stop_call(&mut self, id: WireId, fault: Option<CallFault>, now: Instant) {
        // One that was not sent yet never is.
        self.held.retain(|(held, _)| *held != id);
        self.withdraw_asked(id);
        self.withdraw_round(id);
        self.push_cancel(id, None);
        self.abandon(id, fault, now);
    }

    /// Tells the server to stop working on a call; in the client's words where it has some.
    pub(super) fn push_cancel(&mut self, id: WireId, words: Option<&Message>) {
        // What it has not seen, or has answered, it need not stop.
        let Some(number) = self.exchanges.get(&id.0).map(|e| e.wire).filter(|wire| *wire != 0) else { return };
        let number = number.to_string();
        match words.and_then(|message| message.params().request_id.map(|span| (message, span))) {
            Some((message, span)) => self.output.write(message, &mut [(span, &number)]),
            None => self.output.write_text(&text::cancelled(number)),
        }
    }

    /// The client of a POST whose head is still held back has left (B-19).
    pub fn handle_left(&mut self, id: WireId, now: Instant) {
        let Some(exchange) = self.exchanges.get(&id.0).filter(|e| e.reply == ReplyRoute::Held) else { return };
        if matches!(exchange.owner, ExchangeOwner::Link) {
            self.retire(id);
        } else if let Some(at) = self.held.iter().position(|(held, _)| *held == id) {
            self.held.remove(at);
            // A session whose `initialize` nobody waits for will never be used.
            if let Some(exchange) = self.retire(id)
                && exchange.method == Method::Initialize
                && let Some(key) = exchange.session()
            {
                self.sessions.remove(&key);
            }
        } else {
            self.leave(id, now);
        }
        self.settle(now);
    }

    /// Notes that a call's client is gone. The server works on, and is told to stop when the call's time is up; at once
    /// if the client is of the modern era, where leaving is how one cancels, or if the calls here may take for ever.
    pub(super) fn leave(&mut self, id: WireId, now: Instant) {
        let timeout = self.settings.request_timeout;
        let Some(exchange) = self.exchanges.get_mut(&id.0) else { return };
        exchange.reply = ReplyRoute::Left;
        if exchange.modern().is_some() || self.settings.leaving_cancels {
            return self.stop_call(id, None, now);
        }
        // Nobody can have its answer: it need not have the time that its client would have waited. Without a timeout, a
        // server that never answers would keep it for ever.
        let limit = timeout.map_or(exchange.latest, |timeout| (now + timeout).min(exchange.latest));
        let due = exchange.deadline.map_or(limit, |at| at.min(limit));
        exchange.deadline = Some(due);
        self.check_by(Some(due));
    }

    pub(super) fn handle_response(&mut self, message: Message, now: Instant) {
        // An answer that names no call of ours: late, after a cancel, or wrong. It reaches nobody.
        let (Some(number), Some(span)) = (message.id().and_then(envelope::own_number), message.id_span()) else {
            return;
        };
        if self.union.has(number) {
            return self.union_over(number, now);
        }
        let id = self.exchange_of(number);
        self.used_at = Some(now);
        let Some(exchange) = self.exchanges.get_mut(&id.0).filter(|e| e.wire == number) else { return };
        let (method, reply) = (exchange.method, exchange.reply);
        let ExchangeOwner::Client { id: own, name, accepts, .. } = &mut exchange.owner else {
            return self.handle_own_response(id, &message, now);
        };
        if let Some(tool) = name.take() {
            self.actions.push_back(LinkAction::Answered { tool });
        }
        let own = own.clone();
        let whole = reply == ReplyRoute::Held && accepts.json;
        self.landed(id, &message, now);
        match method {
            Method::ToolsList if !message.failed() => self.note_tools(&message),
            Method::ToolsCall => self.doubt_lists(),
            Method::ResourcesSubscribe => self.note_subscribed(id, message.failed(), now),
            _ => {}
        }
        // It has made up its mind without the answers, and is not left waiting for them.
        self.withdraw_asked(id);
        if reply == ReplyRoute::Parked {
            self.keep_outcome(id, ExchangeOutcome::Message(message));
            self.settle(now);
        } else if self.asks_in_return(id, &message, now) || self.retries(id, &message) {
            return;
        } else if let Some(told) = self.reworded(id, self.era(), &message) {
            self.finish_told(id, told, now);
        } else if whole {
            // The common case: nothing came before the answer, and it leaves as it came.
            self.retire(id);
            self.actions
                .push_back(LinkAction::Answer(id, LinkAnswer::Message(ByteChain::spliced(&message, span, &own))));
            if self.sessions.is_empty() {
                self.settle(now);
            }
        } else {
            self.finish(id, &around(&message, span, &own), now);
        }
        if !self.held.is_empty() {
            self.pump(now);
        }
    }

    /// The server answered a request of the link's own.
    fn handle_own_response(&mut self, id: WireId, message: &Message, now: Instant) {
        let Some(exchange) = self.exchanges.remove(&id.0) else { return };
        match exchange.method {
            // The shell wants to know whether there is one, not what it says. A refused ping is a sign of life, too.
            Method::ToolsList if exchange.reply == ReplyRoute::Held && message.failed() => {
                let fault = CallFault::Refused { why: "it answers `tools/list` with an error".to_owned() };
                self.actions.push_back(LinkAction::Answer(id, LinkAnswer::Fault { fault, id: Box::default() }));
            }
            _ if exchange.reply == ReplyRoute::Held => {
                self.actions.push_back(LinkAction::Answer(id, LinkAnswer::Message(ByteChain::default())));
            }
            Method::Initialize => self.greeted(message, now),
            Method::Discover => self.discovered(message, now),
            Method::ResourcesSubscribe => {
                self.note_subscribed(id, message.failed(), now);
                self.acknowledge_listens();
            }
            Method::ToolsList => self.tools_refreshed(id, Some(message)),
            _ => {}
        }
    }

    fn note_tools(&mut self, message: &Message) {
        #[derive(serde::Deserialize)]
        struct ToolPage {
            result: ListedTools,
        }
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct ListedTools {
            tools: Vec<PagedTool>,
            next_cursor: Option<serde::de::IgnoredAny>,
        }
        #[derive(serde::Deserialize)]
        struct PagedTool {
            name: String,
        }
        let text = message.result_span().map(|span| message.text(span)).unwrap_or_default();
        self.learn_tools(text);
        if !self.settings.class.answers_questions() {
            return;
        }
        if let Ok(ToolPage { result }) = serde_json::from_slice::<ToolPage>(message.bytes()) {
            let tools = result.tools.into_iter().map(|tool| tool.name).collect();
            self.actions.push_back(LinkAction::Listed { tools, whole: result.next_cursor.is_none() });
        }
    }
}
