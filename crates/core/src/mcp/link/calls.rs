//! Calls: from a client to the server under an id of ours, and the answer back under the client's own.

use std::time::{Duration, Instant};

use bytes::Bytes;

use super::{
    Accepts, Action, Answer, Exchange, Fault, Link, MAX_CALLS_PER_SESSION, MAX_HELD, Owner, Refusal, Reply, SessionKey,
    StreamKey, WireId,
    fault::{error_body, push_error_line},
    lifecycle::Phase,
    wire_id,
};
use crate::{
    mcp::{Method, replay::What},
    wire::{
        Chain, Frame, Kind, Message,
        envelope::{self, Cut},
        frame,
        splice::{around, push_line},
    },
};

/// How long a held POST may be silent before it becomes a stream with keep-alives. Longer than the default
/// `request_timeout`, so that its 504 can still be a status; far shorter than the 300 s after which Node gives up.
const HOLD: Duration = Duration::from_secs(60);
/// How long a call that nobody waits for still counts as one the server may ask about.
const GRACE: Duration = Duration::from_secs(30);

impl Link {
    /// Takes a client's request. The answer comes as an [`Action`] under the returned id.
    pub fn call(
        &mut self,
        session: Option<SessionKey>,
        message: Message,
        accepts: Accepts,
        now: Instant,
    ) -> Result<WireId, Refusal> {
        self.admit(session)?;
        let id = self.enter(session, &message, accepts, Reply::Held, now);
        self.dispatch_or_hold(id, message, now);
        Ok(id)
    }

    /// Takes a batch (2025-03-26). Its answers come on one stream, which is returned unless there is nothing to answer.
    pub fn batch(
        &mut self,
        key: SessionKey,
        messages: Vec<Message>,
        now: Instant,
    ) -> Result<Option<StreamKey>, Refusal> {
        self.admit(Some(key))?;
        let (calls, tellings): (Vec<_>, Vec<_>) =
            messages.into_iter().partition(|message| matches!(message.kind(), Kind::Request(_)));
        let mut stream = None;
        if !calls.is_empty() {
            let opened = self.next_stream(now);
            let session = self.sessions.get_mut(&key).ok_or(Refusal::UnknownSession)?;
            let track = session.open_post(opened, calls.len(), &mut self.actions);
            stream = Some(opened);
            for message in calls {
                let accepts = Accepts { json: false, events: true };
                let id = self.enter(Some(key), &message, accepts, Reply::Track(track), now);
                self.dispatch_or_hold(id, message, now);
            }
        }
        for message in tellings {
            self.tell(Some(key), message, now);
        }
        Ok(stream)
    }

    fn admit(&self, session: Option<SessionKey>) -> Result<(), Refusal> {
        if let Some(key) = session {
            let session = self.sessions.get(&key).ok_or(Refusal::UnknownSession)?;
            if session.calls >= MAX_CALLS_PER_SESSION {
                return Err(Refusal::Busy);
            }
        }
        if self.is_stuck() {
            return Err(Refusal::Stuck);
        }
        if self.held.len() >= MAX_HELD {
            return Err(Refusal::Busy);
        }
        Ok(())
    }

    fn enter(
        &mut self,
        session: Option<SessionKey>,
        message: &Message,
        accepts: Accepts,
        reply: Reply,
        now: Instant,
    ) -> WireId {
        let id = self.next_id();
        let method = match message.kind() {
            Kind::Request(method) => method,
            _ => Method::Other,
        };
        // The name is only of interest where questions are counted.
        let counted = method == Method::ToolsCall && self.settings.class.answers_questions();
        let name =
            if counted { message.string(message.params().name).map(|name| name.into_owned().into()) } else { None };
        let exchange = Exchange {
            method,
            owner: Owner::Client {
                session,
                id: message.id().unwrap_or_default().into(),
                token: message.params().meta_token.map(|span| message.text(span).into()),
                accepts,
                name,
            },
            reply,
            deadline: self.settings.request_timeout.map(|timeout| now + timeout),
            latest: now + self.settings.max_request_time,
            hold_until: accepts.events.then_some(now + HOLD),
        };
        self.check_by(exchange.due());
        self.exchanges.insert(id.0, exchange);
        self.calls += 1;
        match session.and_then(|key| self.sessions.get_mut(&key)) {
            Some(session) => session.calls += 1,
            None => self.stateless_until = Some(now + self.settings.keep_stateless),
        }
        self.last_caller = session;
        id
    }

    fn dispatch_or_hold(&mut self, id: WireId, message: Message, now: Instant) {
        match (self.phase, message.kind()) {
            // A ping asks whether we are there (mcp-eras 6, check 46).
            (_, Kind::Request(Method::Ping)) | (Phase::Up, _) => self.dispatch(id, message, now),
            _ => {
                self.held.push_back((id, message));
                self.want(now);
            }
        }
    }

    /// Sends a call to the server, or answers it where it is ours to answer.
    pub(super) fn dispatch(&mut self, id: WireId, message: Message, now: Instant) {
        let Kind::Request(method) = message.kind() else { return };
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
            Method::SetLevel => self.set_level(id, message, now),
            Method::ResourcesSubscribe => self.subscribe(id, message, now),
            Method::ResourcesUnsubscribe => self.unsubscribe(id, message, now),
            _ => self.forward(id, &message),
        }
    }

    /// Writes a client's request to the child, under our id and with our progress token.
    pub(super) fn forward(&mut self, id: WireId, message: &Message) {
        let Some(span) = message.id_span() else { return };
        let number = id.0.to_string();
        let mut edits = [(span, number.as_str()); 2];
        let edits = match message.params().meta_token {
            Some(token) => {
                edits[1].0 = token;
                &mut edits[..]
            }
            None => &mut edits[..1],
        };
        push_line(&mut self.output, message, edits);
    }

    /// Takes a client's notification, or its answer to a question (B-05).
    pub fn tell(&mut self, key: Option<SessionKey>, message: Message, now: Instant) {
        match message.kind() {
            Kind::Response => self.answer_question(key, &message),
            Kind::Notification(Method::Cancelled) => self.cancel(key, &message, now),
            Kind::Notification(Method::Progress) => self.client_progress(key, &message),
            // The handshake with the server is ours.
            Kind::Notification(Method::Initialized) => {}
            // Between several clients nothing says whose roots changed, or whom an unknown note is about.
            Kind::Notification(_) if self.settings.alone && self.phase == Phase::Up && !self.is_stuck() => {
                push_line(&mut self.output, &message, &mut []);
            }
            _ => {}
        }
    }

    /// A client cancels a call of its own (mcp-eras 5.10).
    fn cancel(&mut self, key: Option<SessionKey>, message: &Message, now: Instant) {
        let (Some(key), Some(named)) = (key, message.params().request_id) else { return };
        let named = message.text(named);
        let mut found = self.exchanges.iter().filter(|(_, e)| {
            let Owner::Client { session, id, .. } = &e.owner else { return false };
            *session == Some(key) && **id == *named && e.is_awaited() && e.method != Method::Initialize
        });
        // Two calls under one id: nothing says which one is meant.
        let (Some((id, _)), None) = (found.next(), found.next()) else { return };
        let id = WireId(*id);
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

    /// Tells the server to stop working on a call; in the client's words where it has some.
    pub(super) fn push_cancel(&mut self, id: WireId, words: Option<&Message>) {
        let number = id.0.to_string();
        match words.and_then(|message| message.params().request_id.map(|span| (message, span))) {
            Some((message, span)) => push_line(&mut self.output, message, &mut [(span, &number)]),
            None => self.push_text(&format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{number}}}}}"#
            )),
        }
    }

    /// The client of a POST whose head is still held back has left (B-19).
    pub fn handle_left(&mut self, id: WireId, now: Instant) {
        let Some(exchange) = self.exchanges.get(&id.0).filter(|e| e.reply == Reply::Held) else { return };
        if matches!(exchange.owner, Owner::Link) {
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
            self.leave(id);
        }
        self.settle(now);
    }

    /// Notes that a call's client is gone. The server works on, and is told to stop when the call's time is up.
    pub(super) fn leave(&mut self, id: WireId) {
        let Some(exchange) = self.exchanges.get_mut(&id.0) else { return };
        exchange.reply = Reply::Left;
        // Without a timeout, a server that never answers would keep it for ever.
        let due = *exchange.deadline.get_or_insert(exchange.latest);
        self.check_by(Some(due));
    }

    /// One line of the child's stdout (B-14).
    pub fn handle_child(&mut self, frame: Frame, now: Instant) {
        let line = match frame {
            Frame::Line(line) => line,
            Frame::TooLong { head, tail } => return self.handle_cut_line(head, &tail, now),
        };
        match Message::parse(line.clone()) {
            Ok(message) => match message.kind() {
                Kind::Response => self.handle_response(message, now),
                Kind::Request(method) => self.handle_question(method, &message, now),
                Kind::Notification(method) => self.handle_note(method, message, now),
            },
            Err(_) => self.garbage(line, "not a JSON-RPC message"),
        }
    }

    /// A line that was over the limit: what can be seen of it says whom to tell (B-18).
    fn handle_cut_line(&mut self, head: Bytes, tail: &[u8], now: Instant) {
        let limit = self.settings.max_message_bytes;
        match envelope::cut_message(&head, tail) {
            Some(Cut::Response(id)) if self.exchanges.contains_key(&id) => {
                let opening = |e: &Exchange| matches!(e.owner, Owner::Link) && e.method == Method::Initialize;
                if self.exchanges.get(&id).is_some_and(opening) {
                    self.reject(
                        &format!("its answer to `initialize` is over `max_message_bytes` ({limit} bytes)"),
                        now,
                    );
                } else {
                    self.fail(WireId(id), Fault::TooLarge { limit }, now);
                    if self.sessions.is_empty() {
                        self.settle(now);
                    }
                }
            }
            Some(Cut::Request(id)) if !self.is_stuck() => {
                let why = format!("the request is over `max_message_bytes` ({limit} bytes)");
                push_error_line(&mut self.output, &id, -32603, &why);
            }
            _ => self.garbage(head, "a line over `max_message_bytes`"),
        }
    }

    fn handle_response(&mut self, message: Message, now: Instant) {
        // An answer that names no call of ours: late, after a cancel, or wrong. It reaches nobody.
        let (Some(id), Some(span)) = (message.id().and_then(wire_id), message.id_span()) else { return };
        let Some(exchange) = self.exchanges.get_mut(&id.0) else { return };
        let method = exchange.method;
        let Owner::Client { id: own, name, accepts, .. } = &mut exchange.owner else {
            let probed = exchange.reply == Reply::Held;
            self.exchanges.remove(&id.0);
            if method == Method::Initialize {
                self.greeted(&message, now);
            } else if probed {
                self.actions.push_back(Action::Answer(id, Answer::Message(Chain::default())));
            }
            return;
        };
        if let Some(tool) = name.take() {
            self.actions.push_back(Action::Answered { tool });
        }
        let own = std::mem::take(own);
        let whole = exchange.reply == Reply::Held && accepts.json;
        match method {
            Method::ToolsList if self.settings.class.answers_questions() => self.note_tools(&message),
            Method::ResourcesSubscribe => self.note_subscribed(id, message.failed()),
            _ => {}
        }
        if whole {
            // The common case: nothing came before the answer, and it leaves as it came.
            self.retire(id);
            self.actions.push_back(Action::Answer(id, Answer::Message(Chain::spliced(&message, span, &own))));
            if self.sessions.is_empty() {
                self.settle(now);
            }
        } else {
            self.finish(id, &around(&message, span, &own), now);
        }
    }

    fn note_tools(&mut self, message: &Message) {
        #[derive(serde::Deserialize)]
        struct Page {
            result: Tools,
        }
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Tools {
            tools: Vec<Tool>,
            next_cursor: Option<serde::de::IgnoredAny>,
        }
        #[derive(serde::Deserialize)]
        struct Tool {
            name: String,
        }
        if let Ok(Page { result }) = serde_json::from_slice::<Page>(message.bytes()) {
            let tools = result.tools.into_iter().map(|tool| tool.name).collect();
            self.actions.push_back(Action::Listed { tools, whole: result.next_cursor.is_none() });
        }
    }

    // --- Ends ---

    /// Answers a call ourselves.
    pub(super) fn answer_locally(&mut self, id: WireId, result: &str, now: Instant) {
        self.answer_with(id, |own| format!(r#"{{"jsonrpc":"2.0","id":{own},"result":{result}}}"#), now);
    }

    pub(super) fn refuse_locally(&mut self, id: WireId, code: i32, message: &str, now: Instant) {
        self.answer_with(id, |own| error_body(Some(own), code, message, None), now);
    }

    fn answer_with(&mut self, id: WireId, body: impl FnOnce(&str) -> String, now: Instant) {
        let Some(Owner::Client { id: own, .. }) = self.exchanges.get(&id.0).map(|e| &e.owner) else { return };
        let body = body(own);
        self.finish(id, &[body.as_bytes()], now);
    }

    /// Gives a call its answer, whichever way its client hears it, and forgets it.
    pub(super) fn finish(&mut self, id: WireId, parts: &[&[u8]], now: Instant) {
        if self.exchanges.get(&id.0).is_some_and(|e| e.reply == Reply::Held && !accepts_json(e)) {
            self.commit(id, now);
        }
        // Forgotten before it is answered: progress that comes after the answer must find nothing (mcp-eras 5.4).
        let Some(exchange) = self.retire(id) else { return };
        match exchange.reply {
            Reply::Held => {
                let answer = Answer::Message(Chain::from(Bytes::from(parts.concat())));
                self.actions.push_back(Action::Answer(id, answer));
            }
            Reply::Track(track) => {
                if let Some(session) = exchange.session().and_then(|key| self.sessions.get_mut(&key)) {
                    session.send_post(track, parts, What::Message, &mut self.actions);
                    session.finish_post(track, now, &mut self.actions);
                }
            }
            Reply::Bare(stream) => {
                self.push_bare(stream, parts);
                self.actions.push_back(Action::End(stream));
            }
            Reply::Left | Reply::Nobody => {}
        }
        if self.sessions.is_empty() {
            self.settle(now);
        }
    }

    /// Tells a call's client what went wrong, and forgets the call.
    pub(super) fn fail(&mut self, id: WireId, fault: Fault, now: Instant) {
        let Some(exchange) = self.exchanges.get(&id.0) else { return };
        let own = match &exchange.owner {
            Owner::Client { id, .. } => id.clone(),
            Owner::Link => Box::default(),
        };
        if exchange.reply == Reply::Held {
            self.retire(id);
            self.actions.push_back(Action::Answer(id, Answer::Fault { fault, id: own }));
        } else {
            let body = fault.body(Some(&own));
            self.finish(id, &[body.as_bytes()], now);
        }
    }

    /// Lets a call's client go, with a fault or, when it cancelled, with nothing. The server may still work on it, so
    /// it counts until the answer comes or the grace is over.
    pub(super) fn abandon(&mut self, id: WireId, fault: Option<Fault>, now: Instant) {
        let Some(exchange) = self.exchanges.get_mut(&id.0) else { return };
        let Owner::Client { session, id: own, .. } = &exchange.owner else { return };
        let (key, own) = (*session, own.clone());
        let reply = std::mem::replace(&mut exchange.reply, Reply::Nobody);
        exchange.deadline = Some(now + GRACE);
        let due = exchange.deadline;
        self.check_by(due);
        let body = fault.as_ref().map(|fault| fault.body(Some(&own)));
        let parts: Vec<&[u8]> = body.iter().map(|body| body.as_bytes()).collect();
        match reply {
            Reply::Held => {
                let answer = match fault {
                    Some(fault) => Answer::Fault { fault, id: own },
                    None => Answer::Cancelled { id: own },
                };
                self.actions.push_back(Action::Answer(id, answer));
            }
            Reply::Track(track) => {
                if let Some(session) = key.and_then(|key| self.sessions.get_mut(&key)) {
                    if !parts.is_empty() {
                        session.send_post(track, &parts, What::Message, &mut self.actions);
                    }
                    session.finish_post(track, now, &mut self.actions);
                }
            }
            Reply::Bare(stream) => {
                if !parts.is_empty() {
                    self.push_bare(stream, &parts);
                }
                self.actions.push_back(Action::End(stream));
            }
            Reply::Left | Reply::Nobody => {}
        }
    }

    /// Turns a held POST into a stream, if its client takes one. Returns whether it is one now.
    pub(super) fn commit(&mut self, id: WireId, now: Instant) -> bool {
        let Some(exchange) = self.exchanges.get(&id.0) else { return false };
        let Owner::Client { session: key, accepts, .. } = exchange.owner else { return false };
        if exchange.reply != Reply::Held {
            return exchange.is_awaited();
        }
        if !accepts.events {
            return false;
        }
        let stream = self.next_stream(now);
        self.actions.push_back(Action::Stream(id, stream));
        let reply = match key.and_then(|key| self.sessions.get_mut(&key)) {
            Some(session) => Reply::Track(session.open_post(stream, 1, &mut self.actions)),
            None => Reply::Bare(stream),
        };
        if let Some(exchange) = self.exchanges.get_mut(&id.0) {
            exchange.reply = reply;
        }
        true
    }

    /// Sends something on the stream of a client without a session: it has no number, for nobody can resume it.
    pub(super) fn push_bare(&mut self, stream: StreamKey, parts: &[&[u8]]) {
        self.actions.push_back(Action::Event { stream, number: 0, bytes: frame::event(None, parts) });
    }

    /// Forgets a call.
    pub(super) fn retire(&mut self, id: WireId) -> Option<Exchange> {
        let exchange = self.exchanges.remove(&id.0)?;
        if let Owner::Client { session, .. } = exchange.owner {
            self.calls -= 1;
            if let Some(session) = session.and_then(|key| self.sessions.get_mut(&key)) {
                session.calls -= 1;
            }
        }
        if exchange.method == Method::ResourcesSubscribe {
            self.forget_pending_watch(id);
        }
        Some(exchange)
    }

    // --- Time ---

    pub(super) fn check_deadlines(&mut self, now: Instant) {
        self.check_at = None;
        let mut due: Vec<u64> =
            self.exchanges.iter().filter(|(_, e)| e.due().is_some_and(|at| at <= now)).map(|(id, _)| *id).collect();
        due.sort_unstable();
        for id in due {
            self.look_at(WireId(id), now);
        }
        self.expire_questions(now);
        let next = self.exchanges.values().filter_map(Exchange::due).min();
        self.check_by(next);
        let questions = self.sessions.values().flat_map(|s| s.questions.iter().map(|q| q.deadline)).min();
        self.check_by(questions);
    }

    fn look_at(&mut self, id: WireId, now: Instant) {
        let Some(exchange) = self.exchanges.get(&id.0) else { return };
        let timeout = self.settings.request_timeout.unwrap_or_default();
        if exchange.deadline.is_none_or(|at| at > now) {
            self.commit(id, now);
            return;
        }
        if exchange.reply == Reply::Nobody || matches!(exchange.owner, Owner::Link) {
            self.retire(id);
            return;
        }
        // While a person is asked, the clock stands still, up to the hard limit.
        let asked = exchange.session().and_then(|key| self.sessions.get(&key)).is_some_and(|s| !s.questions.is_empty());
        if asked && exchange.method.may_ask() && exchange.latest > now {
            self.push_back_deadline(id, now);
            return;
        }
        let fault = match exchange.latest <= now {
            true => Fault::Timeout { after: self.settings.max_request_time, setting: "max_request_time" },
            false => Fault::Timeout { after: timeout, setting: "request_timeout" },
        };
        if let Some(at) = self.held.iter().position(|(held, _)| *held == id) {
            self.held.remove(at);
            let opened = Some(exchange).filter(|e| e.method == Method::Initialize).and_then(Exchange::session);
            self.fail(id, fault, now);
            if let Some(key) = opened {
                self.end_session(key);
            }
        } else {
            self.push_cancel(id, None);
            self.abandon(id, Some(fault), now);
        }
    }

    /// Restarts a call's clock: it shows signs of life (B-07).
    pub(super) fn push_back_deadline(&mut self, id: WireId, now: Instant) {
        let Some(timeout) = self.settings.request_timeout else { return };
        if let Some(exchange) = self.exchanges.get_mut(&id.0) {
            exchange.deadline = Some((now + timeout).min(exchange.latest));
        }
    }

    fn garbage(&mut self, line: Bytes, why: &'static str) {
        self.actions.push_back(Action::Garbage { line, why });
    }
}

fn accepts_json(exchange: &Exchange) -> bool {
    matches!(&exchange.owner, Owner::Client { accepts, .. } if accepts.json)
}
