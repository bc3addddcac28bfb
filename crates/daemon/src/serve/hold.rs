//! Requests that wait until it is known whether they may go on: at once, for as long as their clients have patience, or on a
//! stream that says every few seconds that a person is being waited for.

use std::{pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::{Response, StatusCode, header::CONTENT_TYPE};
use prism_core::{
    mcp::{AcceptedFormats, Method, hello::OWN_INFO, link::error_body, modern::SERVER_INFO},
    policy::person::{AskedUnder, CallPatience},
    wire::{frame, members::JsonString, text},
};
use tokio::{
    sync::mpsc,
    time::{MissedTickBehavior, interval, timeout},
};

use super::{
    DaemonSnapshot,
    body::ResponseBody,
    fault::{self, RequestDenial},
    hub::answer,
    post::events,
};
use prism_bridge::{
    admission::{AdmissionOutcome, CallIdentity, PendingCall},
    admitted::Admitted,
};

/// How long a call may be held back without a word: what needs no person is known by then.
const GRACE: Duration = Duration::from_millis(500);
/// How often a client hears that a person is being waited for. Clients that count progress give up after a minute or so.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// Pieces of a stream that wait for its reader. Beyond it the call's own stream waits, and is cut off if it has to.
const MAX_PIECES: usize = 16;

/// What is to be done with a call.
pub(super) enum HoldOutcome {
    /// It goes on.
    Go(Admitted),
    /// It is answered already.
    Done(Response<ResponseBody>),
}

/// How a request is to be answered.
#[derive(Clone, Copy)]
pub(super) struct AnswerFormat {
    pub(super) accepts: AcceptedFormats,
    /// Of the modern era, where a result says what kind it is.
    pub(super) modern: bool,
}

pub(super) type Answering = Pin<Box<dyn Future<Output = Result<Response<ResponseBody>, RequestDenial>> + Send>>;

/// Waits until it is known whether a call may go on. If that takes a person, and its client can be kept waiting, the answer
/// becomes a stream, on which `resume` goes on with it.
pub(super) async fn hold(
    server: &Arc<DaemonSnapshot>,
    held: Box<PendingCall>,
    who: CallIdentity,
    manner: AnswerFormat,
    resume: impl FnOnce(Admitted) -> Answering + Send + 'static,
) -> HoldOutcome {
    let id = held.message().id().unwrap_or_default().to_owned();
    let token = held.message().params().meta_token.map(|span| held.message().text(span).to_owned());
    let token = token.filter(|_| manner.accepts.events && held.may_ask());
    let patience = if token.is_some() { CallPatience::Long } else { CallPatience::Short };
    let asked = held.asked();
    let mut settling = Box::pin(held.settle(server.calls.clone(), who, patience));
    let Some(token) = token else { return next(settling.await, &id, manner) };
    match timeout(GRACE, &mut settling).await {
        Ok(outcome) => next(outcome, &id, manner),
        Err(_) => {
            let (pieces, body) = mpsc::channel(MAX_PIECES);
            let waiting = WaitingStream { pieces, token, by_method: manner.accepts.by_method, asked };
            tokio::spawn(async move {
                let Some(outcome) = waiting.beside(settling).await else { return };
                let response = match next(outcome, &id, manner) {
                    HoldOutcome::Done(response) => response,
                    HoldOutcome::Go(admitted) => tokio::select! {
                        response = resume(admitted) => {
                            response.unwrap_or_else(|denial| denial.answer_to(Some(&id)))
                        }
                        () = waiting.pieces.closed() => return,
                    },
                };
                waiting.pass_on(response).await;
            });
            HoldOutcome::Done(events(ResponseBody::Fed(Box::new(body))))
        }
    }
}

/// The same for a call whose answer has its own way: what is to be told on it, instead of the call, if anything.
pub(super) async fn hold_quietly(
    server: &Arc<DaemonSnapshot>,
    held: Box<PendingCall>,
    who: CallIdentity,
    mut say: impl FnMut(String),
) -> Result<Admitted, Option<String>> {
    let id = held.message().id().unwrap_or_default().to_owned();
    let token = held.message().params().meta_token.map(|span| held.message().text(span).to_owned());
    let token = token.filter(|_| held.may_ask());
    let patience = if token.is_some() { CallPatience::Long } else { CallPatience::Short };
    let asked = held.asked();
    let mut settling = Box::pin(held.settle(server.calls.clone(), who, patience));
    let mut outcome = timeout(GRACE, &mut settling).await.ok();
    let mut beats = beats();
    let mut count = 0;
    while outcome.is_none() {
        tokio::select! {
            known = &mut settling => outcome = Some(known),
            _ = beats.tick(), if token.is_some() => {
                count += 1;
                say(progress(token.as_deref().unwrap_or_default(), count, &asked));
            }
        }
    }
    match outcome {
        Some(AdmissionOutcome::Admitted(admitted)) => Ok(*admitted),
        Some(AdmissionOutcome::Answer(result)) => Err(Some(text::result(&id, result))),
        Some(AdmissionOutcome::Invalid(why)) => Err(Some(error_body(Some(&id), -32600, &why, None))),
        Some(AdmissionOutcome::Cancelled) | None => Err(None),
    }
}

/// A stream whose client waits for a person.
struct WaitingStream {
    pieces: mpsc::Sender<Bytes>,
    token: String,
    by_method: bool,
    asked: AskedUnder,
}

impl WaitingStream {
    /// Says that a person is being waited for, for as long as it takes; `None` if the client has left.
    async fn beside(&self, mut settling: impl Future<Output = AdmissionOutcome> + Unpin) -> Option<AdmissionOutcome> {
        let mut beats = beats();
        let mut count = 0;
        loop {
            tokio::select! {
                outcome = &mut settling => return Some(outcome),
                () = self.pieces.closed() => return None,
                _ = beats.tick() => {
                    count += 1;
                    // One that does not read knows that it waits.
                    let _ = self.pieces.try_send(self.event(progress(&self.token, count, &self.asked).as_bytes()));
                }
            }
        }
    }

    /// Gives the answer that the call would have had.
    async fn pass_on(&self, response: Response<ResponseBody>) {
        let streams =
            response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/event"));
        let mut body = response.into_body();
        let mut whole = Vec::new();
        loop {
            let frame = tokio::select! {
                frame = body.frame() => frame,
                () = self.pieces.closed() => return,
            };
            let Some(Ok(frame)) = frame else { break };
            match frame.into_data() {
                Ok(data) if streams => {
                    if self.pieces.send(data).await.is_err() {
                        return;
                    }
                }
                Ok(data) => whole.extend_from_slice(&data),
                Err(_) => {}
            }
        }
        if !whole.is_empty() {
            let _ = self.pieces.send(self.event(&whole)).await;
        }
    }

    fn event(&self, message: &[u8]) -> Bytes {
        let event = frame::event(None, &[message]);
        if self.by_method { frame::by_method(&event) } else { event }
    }
}

fn beats() -> tokio::time::Interval {
    let mut beats = interval(HEARTBEAT);
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    beats
}

/// Progress has to grow, and what the server says later of its own must still be more.
fn progress(token: &str, count: u32, asked: &AskedUnder) -> String {
    let message = match asked.question() {
        Some(id) => format!("waiting for your approval: prism confirm {} (or prism console)", &id.to_string()[..8]),
        // It waits for what comes of another call's question.
        None => "waiting for your approval: prism confirmations (or prism console)".to_owned(),
    };
    let progress = f64::from(count) * 1e-6 - 1e-2;
    let params = format!(r#"{{"progressToken":{token},"progress":{progress:.6},"message":{}}}"#, JsonString(&message));
    text::note(Method::Progress, params)
}

fn next(outcome: AdmissionOutcome, id: &str, manner: AnswerFormat) -> HoldOutcome {
    HoldOutcome::Done(match outcome {
        AdmissionOutcome::Admitted(admitted) => return HoldOutcome::Go(*admitted),
        AdmissionOutcome::Answer(result) => {
            let result = match (manner.modern, result.strip_prefix('{')) {
                (true, Some(rest)) => {
                    format!(r#"{{"resultType":"complete","_meta":{{"{SERVER_INFO}":{OWN_INFO}}},{rest}"#)
                }
                _ => result,
            };
            answer(text::result(id, result), manner.accepts)
        }
        AdmissionOutcome::Invalid(why) => answer(error_body(Some(id), -32600, &why, None), manner.accepts),
        AdmissionOutcome::Cancelled if manner.accepts.events => events(ResponseBody::Empty),
        AdmissionOutcome::Cancelled => {
            fault::json(StatusCode::OK, error_body(Some(id), -32800, "the call was cancelled", None))
        }
    })
}
