//! How long a call may take, and what its client hears meanwhile (B-07).
//!
//! Two clocks run. A client that takes JSON only hears nothing before the answer, so at `request_timeout` it gets an
//! error. One that takes a stream gets it at that moment: with keep-alives, with progress of ours if it gave a token, and
//! with as much time as `max_request_time` is. What its server tells of itself restarts the first clock.

use std::time::{Duration, Instant};

use super::{BEAT, Exchange, ExchangeOwner, Link, Message, Method, WireId, lifecycle::LinkPhase};
use crate::wire::{Members, text};

/// How long a POST may be silent before it becomes a stream, whatever `request_timeout` says: far shorter than the 300 s
/// after which Node gives up.
const HOLD: Duration = Duration::from_secs(60);

/// How far below a server's first word, or above its last, our own progress stays: each note must say more than the one
/// before it, and the server may yet begin at 0 or go on with the next step.
const BELOW: f64 = 1e-3;
const ABOVE: f64 = 1e-6;

/// How far a call is, as its client was told.
#[derive(Debug, Default)]
pub(super) struct CallProgress {
    /// What the server said last: its number, and the total as it wrote it.
    said: Option<(f64, Option<Box<str>>)>,
    /// Our own notes since.
    ours: u32,
}

impl Link {
    /// Gives a call its time, from now on.
    pub(super) fn start_clocks(&self, exchange: &mut Exchange, now: Instant) {
        exchange.latest = now + self.settings.max_request_time;
        exchange.deadline = self.deadline(exchange, now);
        exchange.tell_at = exchange.takes_events().then_some(now + self.silence());
    }

    /// The server gets a call that has waited for its turn, or for a server to start, which is not the call's time.
    pub(super) fn restart_clock(&mut self, id: WireId, now: Instant) {
        let Some(exchange) = self.exchanges.get(&id.0) else { return };
        let waited = exchange.deadline.is_none();
        let latest = if waited { now + self.settings.max_request_time } else { exchange.latest };
        if let Some(exchange) = self.exchanges.get_mut(&id.0) {
            exchange.latest = latest;
        }
        self.push_back_deadline(id, now);
    }

    /// Restarts a call's clock: it shows signs of life.
    pub(super) fn push_back_deadline(&mut self, id: WireId, now: Instant) {
        let Some(exchange) = self.exchanges.get(&id.0) else { return };
        let deadline = self.deadline(exchange, now);
        if let Some(exchange) = self.exchanges.get_mut(&id.0) {
            exchange.deadline = deadline;
            let due = exchange.due();
            self.check_by(due);
        }
    }

    /// When a call that goes on as it does now has taken too long. What nobody hears of has the time that a client which hears
    /// nothing has.
    pub(super) fn deadline(&self, exchange: &Exchange, now: Instant) -> Option<Instant> {
        let timeout = self.settings.request_timeout?;
        let is_told = exchange.takes_events() && !exchange.reply_is_deserted(&self.sessions);
        Some(if is_told { exchange.latest } else { (now + timeout).min(exchange.latest) })
    }

    /// A call waits until its turn has come, which is not the call's time either, but has a limit.
    pub(super) fn wait_for_turn(&mut self, id: WireId, now: Instant) {
        let longest = self.settings.max_request_time;
        let Some(exchange) = self.exchanges.get_mut(&id.0) else { return };
        if exchange.deadline.is_none() {
            exchange.latest = now + longest;
        }
        exchange.deadline = Some(exchange.latest);
        let due = exchange.due();
        self.check_by(due);
    }

    /// How long a client that takes a stream hears nothing.
    fn silence(&self) -> Duration {
        self.settings.request_timeout.unwrap_or(HOLD).min(HOLD)
    }

    /// A call's client has heard nothing for long: it is told that the call goes on.
    pub(super) fn tell_of_waiting(&mut self, id: WireId, now: Instant) {
        if self.exchanges.get(&id.0).is_none_or(|e| e.tell_at.is_none_or(|at| at > now)) || !self.commit(id, now) {
            return;
        }
        let starting = self.phase != LinkPhase::Up;
        // A call that may take for ever tells of itself, or does not.
        let tells = starting || self.settings.request_timeout.is_some();
        let Some(exchange) = self.exchanges.get_mut(&id.0) else { return };
        exchange.tell_at = None;
        // Without a token nothing can be told; keep-alives go on all streams.
        let ExchangeOwner::Client { token: Some(token), .. } = &exchange.owner else { return };
        if !tells {
            return;
        }
        exchange.tell_at = Some(now + BEAT);
        // What nobody reads would only push out what its client may come back for.
        if exchange.reply_is_deserted(&self.sessions) {
            return;
        }
        let left = exchange.latest.saturating_duration_since(now);
        let seconds = self.settings.max_request_time.saturating_sub(left).as_secs();
        let doing = if starting { "the server is starting" } else { "still running" };
        let progress = exchange.progress.get_or_insert_default().next();
        let params = format!(r#"{{"progressToken":{token},{progress},"message":"{doing}, {seconds} s"}}"#);
        let note = text::note(Method::Progress, params);
        self.send_on_call(id, &[note.as_bytes()]);
    }

    /// The server says how far a call is.
    pub(super) fn note_progress(&mut self, id: WireId, message: &Message, now: Instant) {
        self.push_back_deadline(id, now);
        let silence = self.silence();
        let Some(exchange) = self.exchanges.get_mut(&id.0) else { return };
        exchange.tell_at = exchange.takes_events().then_some(now + silence);
        let params = message.params_text().and_then(Members::read).unwrap_or_default();
        if let Some(value) = params.get("progress").and_then(|raw| raw.parse().ok()) {
            let said = Some((value, params.get("total").map(Into::into)));
            exchange.progress = Some(Box::new(CallProgress { said, ours: 0 }));
        }
    }
}

impl CallProgress {
    /// The members of our next note: more than the last one said, and less than the server will say.
    fn next(&mut self) -> String {
        self.ours = self.ours.saturating_add(1);
        let ours = f64::from(self.ours);
        match &self.said {
            None => format!(r#""progress":{}"#, -BELOW / ours),
            Some((said, total)) => {
                let value = said + said.abs().max(1.0) * ABOVE * (1.0 - 1.0 / (ours + 1.0));
                let total = total.as_ref().map(|total| format!(r#","total":{total}"#)).unwrap_or_default();
                format!(r#""progress":{value}{total}"#)
            }
        }
    }
}
