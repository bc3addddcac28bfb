//! One request to the daemon, from its first byte to its last: what comes is told to the machine, which decides what it
//! means.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use hyper::{
    HeaderMap, Method as Verb, Response,
    header::{HeaderValue, RETRY_AFTER},
};
use prism_core::wire::{Kind, Message};
use tokio::{sync::mpsc, time::timeout};

use super::machine::{Says, Ticket};
use prism_mcp::remote::{
    Failure, Target,
    headers::{self, Lane, SESSION_ID},
    pool::Answer,
    reading::{self, Content, Piece, Reading},
};

/// What is read of the body of a response that says no, and how long that may take.
const MAX_ERROR_BYTES: usize = 1 << 20;
const ERROR_TIMEOUT: Duration = Duration::from_secs(5);

/// Where to tell what came.
pub(super) struct Voice {
    pub(super) ticket: Ticket,
    pub(super) reports: mpsc::Sender<(Ticket, Says)>,
}

impl Voice {
    async fn say(&self, says: Says) {
        // Nobody listens any more when the shim ends.
        let _ = self.reports.send((self.ticket, says)).await;
    }
}

/// Posts a message, and reads until it is answered.
pub(super) async fn post(
    target: Arc<Target>,
    path: String,
    message: Message,
    params: Vec<(String, String)>,
    lane: Lane,
    voice: Voice,
) {
    let head = || headers::of_post(&target, &message, &params, &lane);
    let wanted = match message.kind() {
        Kind::Request(_) => Wanted::Answer(message.id().unwrap_or_default().to_owned()),
        _ => Wanted::Nothing,
    };
    let last = match send(&target, Verb::POST, &path, head, message.bytes().clone()).await {
        Ok(response) => read(response, &wanted, target.max_message_bytes(), &voice).await,
        Err(says) => says,
    };
    voice.say(last).await;
}

/// Opens a stream, and reads it: the session's own, or the rest of a call's.
pub(super) async fn get(
    target: Arc<Target>,
    path: String,
    lane: Lane,
    after: Option<String>,
    answers: Option<String>,
    voice: Voice,
) {
    let after = after.and_then(|id| HeaderValue::from_str(&id).ok());
    let head = || headers::of_get(&target, &lane, after.as_ref());
    let wanted = answers.map_or(Wanted::Stream, Wanted::Answer);
    let last = match send(&target, Verb::GET, &path, head, Bytes::new()).await {
        Ok(response) => read(response, &wanted, target.max_message_bytes(), &voice).await,
        Err(says) => says,
    };
    voice.say(last).await;
}

/// Ends a session.
pub(super) async fn delete(target: &Target, path: &str, lane: &Lane) {
    let _ = send(target, Verb::DELETE, path, || headers::of_get(target, lane, None), Bytes::new()).await;
}

/// What a response is read for.
enum Wanted {
    /// The answer to the request with this id.
    Answer(String),
    Nothing,
    Stream,
}

async fn send(
    target: &Target,
    verb: Verb,
    path: &str,
    headers: impl Fn() -> HeaderMap,
    body: Bytes,
) -> Result<Response<Answer>, Says> {
    let mut parts = target.url.clone().into_parts();
    parts.path_and_query = path.parse().ok();
    let url = hyper::Uri::from_parts(parts).unwrap_or_else(|_| target.url.clone());
    match target.send(verb, &url, headers, body).await {
        Ok((_, response)) => Ok(response),
        Err(Failure::Unreachable { why }) => Err(Says::Unsent { why }),
        Err(Failure::Cut) => Err(Says::Ended { after: None, retry: None }),
        Err(failure) => Err(Says::Broken { why: failure.to_string() }),
    }
}

/// Reads a response. Returns the last word on it.
async fn read(response: Response<Answer>, wanted: &Wanted, limit: usize, voice: &Voice) -> Says {
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
            Some(message) => Says::Answer { status, message, session, retry },
            None => Says::Status { status },
        };
    }
    match (content, wanted) {
        (Content::Events, Wanted::Answer(_) | Wanted::Stream) => {
            read_events(Reading::new(body, limit), wanted, session, voice).await
        }
        (_, Wanted::Nothing) => {
            reading::drain(body).await;
            Says::Accepted
        }
        (Content::Json, Wanted::Answer(id)) if status != 202 => {
            let bytes = match reading::whole(body, limit).await {
                Ok(bytes) => bytes,
                Err(Failure::Cut) => return Says::Ended { after: None, retry: None },
                Err(failure) => return Says::Broken { why: failure.to_string() },
            };
            match Message::parse(bytes) {
                Ok(message) if answers(&message, id) => Says::Answer { status, message, session, retry },
                _ => Says::Broken { why: "Prism's answer does not answer the request".to_owned() },
            }
        }
        (_, Wanted::Stream) => {
            reading::drain(body).await;
            Says::Status { status: 405 }
        }
        _ => {
            reading::drain(body).await;
            Says::Accepted
        }
    }
}

async fn read_events(mut reading: Reading, wanted: &Wanted, session: Option<HeaderValue>, voice: &Voice) -> Says {
    loop {
        match reading.next().await {
            Piece::Event { name, data } if reading::is_message(name.as_deref()) => match (wanted, Message::parse(data))
            {
                (Wanted::Answer(id), Ok(message)) if answers(&message, id) => {
                    return Says::Answer { status: 200, message, session, retry: None };
                }
                (_, Ok(message)) => voice.say(Says::Message(message.bytes().clone())).await,
                (_, Err(_)) => {}
            },
            Piece::Event { .. } => {}
            Piece::TooLong => return Says::Broken { why: "Prism's answer is too large".to_owned() },
            Piece::End => {
                let after = reading.last_id().filter(|id| !id.is_empty()).map(str::to_owned);
                return Says::Ended { after, retry: reading.retry() };
            }
        }
    }
}

/// Whether it is the answer to the request in whose response it came. An error may lack the id.
fn answers(message: &Message, id: &str) -> bool {
    message.kind() == Kind::Response && message.id().is_none_or(|given| given == id)
}
