//! The server's questions (sampling, elicitation, roots): whose they are, and the answer back.
//!
//! A pipe does not say which call caused a question. It is shown to a client only where its owner is certain; else it
//! is refused, never guessed (B-04, mcp-eras 5.6).

use std::time::{Duration, Instant};

use super::{Action, Link, Method, Owner, Reply, SessionKey, WireId, fault::push_error_line, lifecycle::Phase};
use crate::{
    mcp::{hello::Class, replay::What},
    wire::{
        Message,
        splice::{around, push_line},
    },
};

/// How long a person may take. Then the server gets an error and can go on.
const PATIENCE: Duration = Duration::from_secs(10 * 60);
/// Questions one session may have open. Beyond it the server gets an error: a person cannot answer that many.
const MAX_QUESTIONS: usize = 64;

enum Asker {
    /// It belongs to this session; on this call's stream if one is certain.
    Session(SessionKey, Option<WireId>),
    /// It belongs to a client that has no session and so no way to answer.
    Stateless,
    /// It belongs to no call, and several could be meant.
    Unrelated,
    Ambiguous,
}

impl Link {
    pub(super) fn handle_question(&mut self, method: Method, message: &Message, now: Instant) {
        let Some(id) = message.id() else { return };
        if self.is_stuck() {
            return;
        }
        match method {
            Method::Ping => {
                let pong = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
                self.push_text(&pong);
            }
            Method::Sample | Method::Elicit | Method::RootsList => {
                self.actions.push_back(Action::Asked);
                self.ask(method, message, now);
            }
            _ => push_error_line(&mut self.output, id, -32601, "method not found"),
        }
    }

    fn ask(&mut self, method: Method, message: &Message, now: Instant) {
        let (Some(id), Some(span)) = (message.id(), message.id_span()) else { return };
        let (key, call) = match self.asker() {
            Asker::Session(key, call) => (key, call),
            Asker::Stateless => {
                return push_error_line(&mut self.output, id, -32601, "the client cannot be asked: it has no session");
            }
            Asker::Unrelated => {
                let why = "the question belongs to no call of any client";
                return push_error_line(&mut self.output, id, -32602, why);
            }
            Asker::Ambiguous => {
                self.actions.push_back(Action::Ambiguous);
                let why = "ambiguous_owner: calls of several clients are running and nothing says which of them asks";
                return push_error_line(&mut self.output, id, -32603, why);
            }
        };
        let Some(session) = self.sessions.get(&key) else {
            return push_error_line(&mut self.output, id, -32603, "the client's session has ended");
        };
        if let Err((code, why)) = can_answer(session.class, method, message) {
            return push_error_line(&mut self.output, id, code, why);
        }
        if session.questions.len() >= MAX_QUESTIONS {
            return push_error_line(&mut self.output, id, -32603, "the client has too many open questions");
        }
        // On the stream of the call that asks; else on the GET stream, which is where such a message waits.
        let has_get = session.has_get_stream();
        let call = call.or_else(|| if has_get { None } else { self.newest_call(key) });
        let track = match call {
            Some(call) if self.commit(call, now) => match self.exchanges.get(&call.0).map(|e| e.reply) {
                Some(Reply::Track(track)) => Some(track),
                _ => None,
            },
            _ => None,
        };
        let deadline = now + PATIENCE;
        self.check_by(Some(deadline));
        let Some(session) = self.sessions.get_mut(&key) else { return };
        let token = message.params().meta_token.map(|span| message.text(span));
        let number = session.ask(id, token, track, deadline);
        let text = number.to_string();
        let parts = around(message, span, &text);
        let strict = self.settings.strict_streams;
        match track {
            Some(track) => session.send_post(track, &parts, What::Question(number), &mut self.actions),
            None => session.send_standalone(&parts, What::Question(number), strict, &mut self.actions),
        }
    }

    /// Whose question this is. A call counts until the server has answered it, even one that was cancelled: a server
    /// that ignored the cancel may still ask.
    fn asker(&self) -> Asker {
        let mut owners = self.exchanges.iter().filter_map(|(id, exchange)| match &exchange.owner {
            // Before its handshake a child has seen no call.
            Owner::Client { session, .. } if exchange.method.may_ask() && self.phase == Phase::Up => {
                Some((WireId(*id), *session, exchange.is_awaited()))
            }
            _ => None,
        });
        let Some((call, first, awaited)) = owners.next() else {
            return match self.sole_session() {
                Some(key) => Asker::Session(key, None),
                None => Asker::Unrelated,
            };
        };
        let mut only = true;
        for (_, other, _) in owners {
            if other != first || first.is_none() {
                return Asker::Ambiguous;
            }
            only = false;
        }
        match first {
            Some(key) => Asker::Session(key, (only && awaited).then_some(call)),
            None => Asker::Stateless,
        }
    }

    fn newest_call(&self, key: SessionKey) -> Option<WireId> {
        let asks =
            self.exchanges.iter().filter(|(_, e)| e.session() == Some(key) && e.method.may_ask() && e.is_awaited());
        asks.map(|(id, _)| WireId(*id)).max()
    }

    /// A client answers: the server hears it under its own id. An answer to nothing is dropped.
    pub(super) fn answer_question(&mut self, key: Option<SessionKey>, message: &Message) {
        let (Some(span), Some(number)) = (message.id_span(), message.id().and_then(|raw| raw.parse::<u64>().ok()))
        else {
            return;
        };
        let Some(session) = key.and_then(|key| self.sessions.get_mut(&key)) else { return };
        if let Some(question) = session.take_question(|question| question.number == number) {
            push_line(&mut self.output, message, &mut [(span, &question.server_id)]);
        }
    }

    /// A client reports progress on a question; only under a token that it was given.
    pub(super) fn client_progress(&mut self, key: Option<SessionKey>, message: &Message) {
        let Some(token) = message.params().token.map(|span| message.text(span)) else { return };
        let session = key.and_then(|key| self.sessions.get(&key));
        if session.is_some_and(|s| s.questions.iter().any(|q| q.token.as_deref() == Some(token))) {
            push_line(&mut self.output, message, &mut []);
        }
    }

    /// The server takes a question back.
    pub(super) fn question_withdrawn(&mut self, message: &Message) {
        let Some(span) = message.params().request_id else { return };
        let id = message.text(span);
        for session in self.sessions.values_mut() {
            if let Some(question) = session.take_question(|question| *question.server_id == *id) {
                let number = question.number.to_string();
                let parts = around(message, span, &number);
                let strict = self.settings.strict_streams;
                session.send_on_track(question.track, &parts, What::Message, strict, &mut self.actions);
                return;
            }
        }
    }

    pub(super) fn expire_questions(&mut self, now: Instant) {
        for session in self.sessions.values_mut() {
            while let Some(question) = session.take_question(|question| question.deadline <= now) {
                push_error_line(&mut self.output, &question.server_id, -32603, "the client did not answer in time");
            }
        }
    }
}

/// Whether a client said that it can answer this (mcp-eras 5.6, last paragraph).
fn can_answer(class: Class, method: Method, message: &Message) -> Result<(), (i32, &'static str)> {
    match method {
        Method::Sample if !class.sampling => Err((-32601, "the client does not support sampling")),
        Method::RootsList if !class.roots => Err((-32601, "the client does not support roots")),
        Method::Elicit => {
            let url = message.string(message.params().mode).is_some_and(|mode| mode == "url");
            let able = if url { class.url } else { class.form };
            able.then_some(()).ok_or((-32602, "the client does not support this kind of elicitation"))
        }
        _ => Ok(()),
    }
}
