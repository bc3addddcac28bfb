//! A modern server that answers a legacy client's call with questions (mcp-eras 5.7 B): each becomes a real request on
//! the call's stream, and when all are answered the call is made again.

use std::time::{Duration, Instant};

use super::{
    Link, Method, ReplyRoute, SessionKey, WireId,
    questions::{PATIENCE, can_answer_params},
};
use crate::{
    mcp::{
        era::Era,
        modern::{InputRequest, InputRequired, InputRound},
        payload,
        replay::ReplayKind,
        session::{QuestionOrigin, SessionQuestion},
    },
    wire::{Message, members::JsonString, text},
};

/// Rounds of one call. A server that asks more often than that is going in circles.
const MAX_ROUNDS: u32 = 10;
/// How long to wait before a call is repeated for which nobody was asked anything.
const PACE: Duration = Duration::from_millis(250);

/// How far the questions of one call have come.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    count: u32,
    pub(super) round: InputRound,
    /// Keys whose answers are not here yet.
    open: Vec<String>,
    pub(super) again_at: Option<Instant>,
}

impl Link {
    /// Takes a modern server's questions in the place of an answer. Returns whether it was such.
    pub(super) fn asks_in_return(&mut self, id: WireId, message: &Message, now: Instant) -> bool {
        if self.era() == Era::Legacy {
            return false;
        }
        let Some(exchange) = self.exchanges.get(&id.0).filter(|e| e.modern().is_none()) else { return false };
        let result = message.result_span().map(|span| message.text(span));
        let Some(asked) = result.and_then(InputRequired::read) else { return false };
        let (key, may_ask, awaited) = (exchange.session(), exchange.method.may_ask(), exchange.is_awaited());
        self.set_wire(id, 0);
        match key {
            Some(key) if may_ask && awaited => self.ask_round(id, key, asked, now),
            _ if !awaited => drop(self.retire(id)),
            _ => self.cannot_ask(id, "the server asks something, and this client cannot be asked here", now),
        }
        true
    }

    fn ask_round(&mut self, id: WireId, key: SessionKey, asked: InputRequired, now: Instant) {
        let InputRequired { requests, state } = asked;
        let Some(exchange) = self.exchanges.get_mut(&id.0) else { return };
        let rounds = exchange.rounds.get_or_insert_default();
        rounds.count += 1;
        rounds.round = InputRound { responses: Vec::new(), state };
        rounds.open = requests.iter().map(|request| request.key.clone()).collect();
        if rounds.count > MAX_ROUNDS {
            return self.cannot_ask(id, "the server asks again and again, and was stopped", now);
        }
        if requests.is_empty() {
            rounds.again_at = Some(now + PACE);
            return self.check_by(Some(now + PACE));
        }
        for (at, request) in requests.into_iter().enumerate() {
            if !self.ask_one(id, key, at, request, now) {
                return;
            }
        }
        self.answer_round(id);
    }

    /// Puts one question to the client. Returns false if the call is over because that cannot be done.
    fn ask_one(&mut self, id: WireId, key: SessionKey, at: usize, request: InputRequest, now: Instant) -> bool {
        let InputRequest { key: name, method, params } = request;
        let Some(session) = self.sessions.get(&key) else { return false };
        let (class, revision) = (session.class, session.revision);
        let round = self.exchanges.get(&id.0).and_then(|e| e.rounds.as_ref()).map_or(0, |rounds| rounds.count);
        let elicitation = format!("prism-{}-{round}-{at}", id.0);
        let told = match can_answer_params(class, method, &params) {
            Ok(()) => payload::question_to_legacy(revision, method, &params, &elicitation),
            Err((_, why)) => Err(why),
        };
        let params = match told {
            Ok(told) => told.unwrap_or(params),
            Err(why) => return self.refuse_leg(id, &name, method, why, now),
        };
        if !self.commit(id, now) {
            return self.refuse_leg(id, &name, method, "the client does not take events", now);
        }
        let Some(ReplyRoute::Track(track)) = self.exchanges.get(&id.0).map(|e| e.reply) else { return false };
        let (strict, deadline) = (self.settings.strict_streams, now + PATIENCE);
        self.check_by(Some(deadline));
        let Some(session) = self.sessions.get_mut(&key) else { return false };
        let asked_by = QuestionOrigin::Round { call: id, key: name };
        let number = session.ask(asked_by, method, None, Some(track), deadline);
        let text = text::request(number, method, &params);
        session.send_on_track(track, &[text.as_bytes()], ReplayKind::Question(number), strict, &mut self.actions);
        true
    }

    /// A question that the client cannot be asked, or will not answer. A form can be cancelled; there is no way to say
    /// that of anything else, so the call ends. Returns whether it goes on.
    fn refuse_leg(&mut self, id: WireId, key: &str, method: Method, why: &str, now: Instant) -> bool {
        if method == Method::Elicit {
            self.note_answer(id, key, r#"{"action":"cancel"}"#.to_owned());
            return true;
        }
        self.cannot_ask(id, why, now);
        false
    }

    fn note_answer(&mut self, id: WireId, key: &str, answer: String) {
        let Some(rounds) = self.exchanges.get_mut(&id.0).and_then(|e| e.rounds.as_mut()) else { return };
        rounds.open.retain(|open| open != key);
        rounds.round.responses.push((key.to_owned(), answer));
    }

    /// The client answered one of a round's questions.
    pub(super) fn round_answered(&mut self, question: SessionQuestion, message: &Message, now: Instant) {
        let QuestionOrigin::Round { call, key } = question.asked_by else { return };
        match message.result_span() {
            Some(result) => self.note_answer(call, &key, message.text(result).to_owned()),
            None => {
                if !self.refuse_leg(call, &key, question.method, "the client refused to answer", now) {
                    return;
                }
            }
        }
        self.answer_round(call);
    }

    /// A round's question was not answered in time.
    pub(super) fn round_expired(&mut self, question: &SessionQuestion, now: Instant) {
        if let QuestionOrigin::Round { call, key } = &question.asked_by
            && self.refuse_leg(*call, key, question.method, "the client did not answer in time", now)
        {
            self.answer_round(*call);
        }
    }

    /// Makes the call again, once all answers are here.
    fn answer_round(&mut self, id: WireId) {
        let Some(rounds) = self.exchanges.get(&id.0).and_then(|e| e.rounds.as_ref()) else { return };
        if rounds.open.is_empty() && rounds.again_at.is_none() {
            self.forward_again(id);
        }
    }

    /// Ends a call whose questions cannot be asked.
    fn cannot_ask(&mut self, id: WireId, why: &str, now: Instant) {
        self.withdraw_round(id);
        let Some(exchange) = self.exchanges.get(&id.0) else { return };
        if exchange.method == Method::ToolsCall {
            let text = JsonString(why);
            self.answer_locally(id, &format!(r#"{{"content":[{{"type":"text","text":{text}}}],"isError":true}}"#), now);
        } else {
            self.refuse_locally(id, -32603, why, now);
        }
    }

    /// Takes back the questions of a call that is over.
    pub(super) fn withdraw_round(&mut self, id: WireId) {
        let Some(session) =
            self.exchanges.get(&id.0).and_then(|e| e.session()).and_then(|key| self.sessions.get_mut(&key))
        else {
            return;
        };
        let of_call =
            |question: &SessionQuestion| matches!(question.asked_by, QuestionOrigin::Round { call, .. } if call == id);
        while let Some(question) = session.take_question(of_call) {
            let note = text::cancelled(question.number);
            let strict = self.settings.strict_streams;
            session.send_on_track(question.track, &[note.as_bytes()], ReplayKind::Message, strict, &mut self.actions);
        }
    }
}
