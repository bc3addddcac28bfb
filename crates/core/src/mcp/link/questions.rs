//! The server's questions (sampling, elicitation, roots): whose they are, and the answer back.
//!
//! A pipe does not say which call caused a question. It is shown to a client only where its owner is certain; else it
//! is refused, never guessed (B-04, mcp-eras 5.6).

use std::time::{Duration, Instant};

use super::{
    Exchange, ExchangeOwner, Link, LinkAction, Method, ReplyRoute, SessionKey, WireId, exchange::RequestStanding,
    lifecycle::LinkPhase,
};
use crate::{
    mcp::{era::Revision, hello::ClientClass, payload, replay::ReplayKind, session::QuestionOrigin},
    wire::{Members, Message, splice::around, text},
};

/// How long a person may take. Then the server gets an error and can go on.
pub(super) const PATIENCE: Duration = Duration::from_secs(10 * 60);
/// Questions one session may have open. Beyond it the server gets an error: a person cannot answer that many.
const MAX_QUESTIONS: usize = 64;

enum QuestionOwner {
    /// It belongs to this session; on this call's stream if one is certain.
    Session(SessionKey, Option<WireId>),
    /// It belongs to this call of the modern era, which stands for itself.
    Call(WireId),
    /// It belongs to a client that has no session and so no way to answer.
    Stateless,
    /// It belongs to no call, and several could be meant.
    Unrelated,
    /// It belongs to a call that was cancelled.
    Over,
    Ambiguous,
}

impl Link {
    pub(super) fn handle_question(&mut self, about: Option<WireId>, method: Method, message: &Message, now: Instant) {
        let Some(id) = message.id() else { return };
        if self.is_stuck() {
            return;
        }
        if self.is_spoken_to_modern() {
            // That era has no such thing, and a modern server would not know what to do with an answer (check 110).
            return self.garbage(message.bytes().clone(), "a request from a server of the modern era");
        }
        match method {
            Method::Ping => {
                let pong = text::result(id, "{}");
                self.output.write_text(&pong);
            }
            Method::Sample | Method::Elicit | Method::RootsList => {
                self.actions.push_back(LinkAction::Asked);
                // From now on its calls take turns: the owner of its next question must be certain.
                self.exclusive |= self.settings.class.answers_questions();
                self.put(about, method, message, now);
            }
            _ => self.output.write_error(id, -32601, "method not found"),
        }
    }

    /// Puts a question to the client whose it is.
    fn put(&mut self, about: Option<WireId>, method: Method, message: &Message, now: Instant) {
        let (Some(id), Some(span)) = (message.id(), message.id_span()) else { return };
        let (key, call) = match self.asker(about) {
            QuestionOwner::Session(key, call) => (key, call),
            QuestionOwner::Call(call) => return self.ask_modern(call, method, message, now),
            // Right after the handshake, before any call: nobody has roots to tell of yet.
            QuestionOwner::Unrelated if method == Method::RootsList && self.settings.class.roots => {
                let none = text::result(id, r#"{"roots":[]}"#);
                return self.output.write_text(&none);
            }
            QuestionOwner::Stateless => {
                return self.output.write_error(id, -32601, "the client cannot be asked: it has no session");
            }
            QuestionOwner::Unrelated => {
                let why = "the question belongs to no call of any client";
                return self.output.write_error(id, -32602, why);
            }
            // Nobody is bothered with it.
            QuestionOwner::Over if method == Method::Elicit => {
                let cancelled = text::result(id, r#"{"action":"cancel"}"#);
                return self.output.write_text(&cancelled);
            }
            QuestionOwner::Over => {
                return self.output.write_error(id, -32603, "the call that asks this was cancelled");
            }
            QuestionOwner::Ambiguous => {
                self.actions.push_back(LinkAction::Ambiguous);
                self.doubt_ghosts(now);
                let why = "ambiguous_owner: calls of several clients are running and nothing says which of them asks";
                return self.output.write_error(id, -32603, why);
            }
        };
        let Some(session) = self.sessions.get(&key) else {
            return self.output.write_error(id, -32603, "the client's session has ended");
        };
        if let Err((code, why)) = can_answer(session.class, method, message) {
            return self.output.write_error(id, code, why);
        }
        // The newest revision says it as the server does.
        let told = match session.revision {
            Revision::NEWEST => Ok(None),
            revision => payload::question_for(revision, method, message.params_text().unwrap_or("{}")),
        };
        let told = match told {
            Ok(told) => told,
            Err(why) => return self.output.write_error(id, -32602, why),
        };
        if session.questions.len() >= MAX_QUESTIONS {
            return self.output.write_error(id, -32603, "the client has too many open questions");
        }
        // On the stream of the call that asks; else on the GET stream, which is where such a message waits.
        let has_get = session.has_get_stream();
        let call = call.or_else(|| if has_get { None } else { self.newest_call(key) });
        let track = match call {
            Some(call) if self.commit(call, now) => match self.exchanges.get(&call.0).map(|e| e.reply) {
                Some(ReplyRoute::Track(track)) => Some(track),
                _ => None,
            },
            _ => None,
        };
        let deadline = now + PATIENCE;
        self.check_by(Some(deadline));
        let Some(session) = self.sessions.get_mut(&key) else { return };
        let token = message.params().meta_token.map(|span| message.text(span));
        let number = session.ask(QuestionOrigin::Server(id.into()), method, token, track, deadline);
        let text = number.to_string();
        let strict = self.settings.strict_streams;
        let told = told.map(|params| text::request(number, method, params));
        let parts = match &told {
            Some(told) => [told.as_bytes(), &[], &[]],
            None => around(message, span, &text),
        };
        let track = track.unwrap_or(session.standalone_track());
        session.send_on_track(track, &parts, ReplayKind::Question(number), strict, &mut self.actions);
    }

    /// Whose question this is. A call counts until the server has answered it, even one that was cancelled, however long
    /// ago: a server that ignored the cancel may still ask.
    fn asker(&self, about: Option<WireId>) -> QuestionOwner {
        let of_call = |id: WireId, exchange: &Exchange| match (&exchange.owner, exchange.session()) {
            (ExchangeOwner::Client { modern: Some(_), .. }, _) => QuestionOwner::Call(id),
            (_, Some(key)) => QuestionOwner::Session(key, exchange.is_awaited().then_some(id)),
            (_, None) => QuestionOwner::Stateless,
        };
        let of_none = || self.sole_session().map_or(QuestionOwner::Unrelated, |key| QuestionOwner::Session(key, None));
        // It came with the response to that very call; or to one that is over, or to a request of ours.
        if let Some(id) = about {
            let exchange = self.exchanges.get(&id.0).filter(|e| matches!(e.owner, ExchangeOwner::Client { .. }));
            return exchange.map_or_else(of_none, |exchange| of_call(id, exchange));
        }
        if self.is_crowded() {
            return QuestionOwner::Ambiguous;
        }
        // Before its handshake a child has seen no call.
        let calls = self.exchanges.iter().filter(|(_, e)| e.may_be_asked() && self.phase == LinkPhase::Up);
        let mut calls = calls.map(|(id, exchange)| (WireId(*id), exchange));
        let Some((first, exchange)) = calls.next() else { return of_none() };
        let all: Vec<(WireId, &Exchange)> = std::iter::once((first, exchange)).chain(calls).collect();
        if all.iter().all(|(_, e)| e.standing == RequestStanding::Ghost) {
            return QuestionOwner::Over;
        }
        let [_, _, ..] = all[..] else { return of_call(first, exchange) };
        // What was stopped is over, as far as its own client's next call goes.
        let mut live = all.iter().filter(|(_, e)| e.standing == RequestStanding::Running);
        if let (Some((id, one)), None) = (live.next(), live.next())
            && all.iter().all(|(_, other)| other.is_of_the_same_client_as(one))
        {
            return of_call(*id, one);
        }
        match exchange.session() {
            Some(key) if all.iter().all(|(_, other)| other.session() == Some(key)) => QuestionOwner::Session(key, None),
            _ => QuestionOwner::Ambiguous,
        }
    }

    fn newest_call(&self, key: SessionKey) -> Option<WireId> {
        let asks =
            self.exchanges.iter().filter(|(_, e)| e.session() == Some(key) && e.method.may_ask() && e.is_awaited());
        asks.map(|(id, _)| WireId(*id)).max()
    }

    /// A client answers: the server hears it under its own id. An answer to nothing is dropped.
    pub(super) fn answer_question(&mut self, key: Option<SessionKey>, message: &Message, now: Instant) {
        let (Some(span), Some(number)) = (message.id_span(), message.id().and_then(|raw| raw.parse::<u64>().ok()))
        else {
            return;
        };
        let Some((key, session)) = key.and_then(|key| Some((key, self.sessions.get_mut(&key)?))) else { return };
        if session.pings.as_mut().is_some_and(|pings| pings.answered(number)) {
            return self.actions.push_back(LinkAction::Seen(key));
        }
        let Some(question) = session.take_question(|question| question.number == number) else { return };
        match question.asked_by.server_id() {
            Some(server_id) => self.output.write(message, &mut [(span, server_id)]),
            None => self.round_answered(question, message, now),
        }
    }

    /// A client reports progress on a question; only under a token that it was given.
    pub(super) fn client_progress(&mut self, key: Option<SessionKey>, message: &Message) {
        let Some(token) = message.params().token.map(|span| message.text(span)) else { return };
        let session = key.and_then(|key| self.sessions.get(&key));
        if session.is_some_and(|s| s.questions.iter().any(|q| q.token.as_deref() == Some(token))) {
            self.output.write(message, &mut []);
        }
    }

    /// The server takes a question back.
    pub(super) fn question_withdrawn(&mut self, message: &Message) {
        let Some(span) = message.params().request_id else { return };
        let id = message.text(span);
        self.asked_withdrawn(id);
        for session in self.sessions.values_mut() {
            if let Some(question) = session.take_question(|question| question.asked_by.server_id() == Some(id)) {
                let number = question.number.to_string();
                let parts = around(message, span, &number);
                let strict = self.settings.strict_streams;
                session.send_on_track(question.track, &parts, ReplayKind::Message, strict, &mut self.actions);
                return;
            }
        }
    }

    pub(super) fn expire_questions(&mut self, now: Instant) {
        let mut expired = Vec::new();
        for session in self.sessions.values_mut() {
            while let Some(question) = session.take_question(|question| question.deadline <= now) {
                expired.push(question);
            }
        }
        for question in expired {
            match question.asked_by.server_id() {
                Some(id) => self.output.write_error(id, -32603, "the client did not answer in time"),
                None => self.round_expired(&question, now),
            }
        }
    }
}

/// Whether a client said that it can answer this (mcp-eras 5.6, last paragraph).
pub(super) fn can_answer(class: ClientClass, method: Method, message: &Message) -> Result<(), (i32, &'static str)> {
    let url = message.string(message.params().mode).is_some_and(|mode| mode == "url");
    able(class, method, url)
}

/// The same of a question that is only parameters.
pub(super) fn can_answer_params(class: ClientClass, method: Method, params: &str) -> Result<(), (i32, &'static str)> {
    let url = Members::read(params).is_some_and(|params| params.string("mode").is_some_and(|mode| mode == "url"));
    match method {
        Method::Sample | Method::RootsList | Method::Elicit => able(class, method, url),
        _ => Err((-32601, "the server asks what no client can answer")),
    }
}

fn able(class: ClientClass, method: Method, url: bool) -> Result<(), (i32, &'static str)> {
    match method {
        Method::Sample if !class.sampling => Err((-32601, "the client does not support sampling")),
        Method::RootsList if !class.roots => Err((-32601, "the client does not support roots")),
        Method::Elicit if !(if url { class.url } else { class.form }) => {
            Err((-32602, "the client does not support this kind of elicitation"))
        }
        _ => Ok(()),
    }
}
