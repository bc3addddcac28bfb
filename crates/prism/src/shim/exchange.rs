//! One request to the daemon, from its first byte to its last: what comes is told to the machine, which decides what it
//! means.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use hyper::{
    HeaderMap, Method as Verb, Response,
    header::{HeaderValue, RETRY_AFTER},
};
use prism_core::wire::{Message, MessageKind};
use tokio::{sync::mpsc, time::timeout};

use super::machine::{ExchangeReport, Ticket};
use prism_mcp::remote::{
    RemoteFailure, RemoteTarget,
    headers::{self, ProtocolHeaders, SESSION_ID},
    pool::PooledBody,
    reading::{self, EventReader, ResponseContent, StreamPiece},
};

/// What is read of the body of a response that says no, and how long that may take.
const MAX_ERROR_BYTES: usize = 1 << 20;
const ERROR_TIMEOUT: Duration = Duration::from_secs(5);

/// Where to tell what came.
pub(super) struct ReportSender {
    pub(super) ticket: Ticket,
    pub(super) reports: mpsc::Sender<(Ticket, ExchangeReport)>,
}

impl ReportSender {
    async fn say(&self, says: ExchangeReport) {
        // Nobody listens any more when the shim ends.
        let _ = self.reports.send((self.ticket, says)).await;
    }
}

/// Posts a message, and reads until it is answered.
pub(super) async fn post(
    target: Arc<RemoteTarget>,
    path: String,
    message: Message,
    params: Vec<(String, String)>,
    lane: ProtocolHeaders,
    voice: ReportSender,
) {
    let head = || headers::of_post(&target, &message, &params, &lane);
    let wanted = match message.kind() {
        MessageKind::Request(_) => ExpectedResponse::Answer(message.id().unwrap_or_default().to_owned()),
        _ => ExpectedResponse::Nothing,
    };
    let last = match send(&target, Verb::POST, &path, head, message.bytes().clone()).await {
        Ok(response) => read(response, &wanted, target.max_message_bytes(), &voice).await,
        Err(says) => says,
    };
    voice.say(last).await;
}

/// Opens a stream, and reads it: the session's own, or the rest of a call's.
pub(super) async fn get(
    target: Arc<RemoteTarget>,
    path: String,
    lane: ProtocolHeaders,
    after: Option<String>,
    answers: Option<String>,
    voice: ReportSender,
) {
    let after = after.and_then(|id| HeaderValue::from_str(&id).ok());
    let head = || headers::of_get(&target, &lane, after.as_ref());
    let wanted = answers.map_or(ExpectedResponse::Stream, ExpectedResponse::Answer);
    let last = match send(&target, Verb::GET, &path, head, Bytes::new()).await {
        Ok(response) => read(response, &wanted, target.max_message_bytes(), &voice).await,
        Err(says) => says,
    };
    voice.say(last).await;
}

/// Ends a session.
pub(super) async fn delete(target: &RemoteTarget, path: &str, lane: &ProtocolHeaders) {
    let _ = send(target, Verb::DELETE, path, || headers::of_get(target, lane, None), Bytes::new()).await;
}

/// What a response is read for.
enum ExpectedResponse {
    /// The answer to the request with this id.
    Answer(String),
    Nothing,
    Stream,
}

async fn send(
    target: &RemoteTarget,
    verb: Verb,
    path: &str,
    headers: impl Fn() -> HeaderMap,
    body: Bytes,
) -> Result<Response<PooledBody>, ExchangeReport> {
    let mut parts = target.url.clone().into_parts();
    parts.path_and_query = path.parse().ok();
    let url = hyper::Uri::from_parts(parts).unwrap_or_else(|_| target.url.clone());
    match target.send(verb, &url, headers, body).await {
        Ok((_, response)) => Ok(response),
        Err(RemoteFailure::Unreachable { why }) => Err(ExchangeReport::Unsent { why }),
        Err(RemoteFailure::Cut) => Err(ExchangeReport::Ended { after: None, retry: None }),
        Err(failure) => Err(ExchangeReport::Broken { why: failure.to_string() }),
    }
}

/// Reads a response. Returns the last word on it.
async fn read(
    response: Response<PooledBody>,
    wanted: &ExpectedResponse,
    limit: usize,
    voice: &ReportSender,
) -> ExchangeReport {
    let status = response.status().as_u16();
    let header = |name| response.headers().get(name).cloned();
    let mut session = header(SESSION_ID);
    if let Some(session) = &mut session {
        session.set_sensitive(true);
    }
    let retry = header(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok()).map(Duration::from_secs);
    let content = reading::content(response.headers());
    let body = response.into_body();
    if !(200..300).contains(&status) {
        let body = timeout(ERROR_TIMEOUT, reading::whole(body, MAX_ERROR_BYTES)).await;
        let message = body.ok().and_then(Result::ok).and_then(|bytes| Message::parse(bytes).ok());
        return match message.filter(Message::failed) {
            Some(message) => ExchangeReport::Answer { status, message, session, retry },
            None => ExchangeReport::Status { status },
        };
    }
    match (content, wanted) {
        (ResponseContent::Events, ExpectedResponse::Answer(_) | ExpectedResponse::Stream) => {
            read_events(EventReader::new(body, limit), wanted, session, voice).await
        }
        (_, ExpectedResponse::Nothing) => {
            reading::drain(body).await;
            ExchangeReport::Accepted
        }
        (ResponseContent::Json, ExpectedResponse::Answer(id)) if status != 202 => {
            let bytes = match reading::whole(body, limit).await {
                Ok(bytes) => bytes,
                Err(RemoteFailure::Cut) => return ExchangeReport::Ended { after: None, retry: None },
                Err(failure) => return ExchangeReport::Broken { why: failure.to_string() },
            };
            match Message::parse(bytes) {
                Ok(message) if answers(&message, id) => ExchangeReport::Answer { status, message, session, retry },
                _ => ExchangeReport::Broken { why: "Prism's answer does not answer the request".to_owned() },
            }
        }
        (_, ExpectedResponse::Stream) => {
            reading::drain(body).await;
            ExchangeReport::Status { status: 405 }
        }
        _ => {
            reading::drain(body).await;
            ExchangeReport::Accepted
        }
    }
}

async fn read_events(
    mut reading: EventReader,
    wanted: &ExpectedResponse,
    session: Option<HeaderValue>,
    voice: &ReportSender,
) -> ExchangeReport {
    loop {
        match reading.next().await {
            StreamPiece::Event { name, data } if reading::is_message(name.as_deref()) => {
                match (wanted, Message::parse(data)) {
                    (ExpectedResponse::Answer(id), Ok(message)) if answers(&message, id) => {
                        return ExchangeReport::Answer { status: 200, message, session, retry: None };
                    }
                    (_, Ok(message)) => voice.say(ExchangeReport::Message(message.bytes().clone())).await,
                    (_, Err(_)) => {}
                }
            }
            StreamPiece::Event { .. } => {}
            StreamPiece::TooLong => return ExchangeReport::Broken { why: "Prism's answer is too large".to_owned() },
            StreamPiece::End => {
                let after = reading.last_id().filter(|id| !id.is_empty()).map(str::to_owned);
                return ExchangeReport::Ended { after, retry: reading.retry() };
            }
        }
    }
}

/// Whether it is the answer to the request in whose response it came. An error may lack the id.
fn answers(message: &Message, id: &str) -> bool {
    message.kind() == MessageKind::Response && message.id().is_none_or(|given| given == id)
}
