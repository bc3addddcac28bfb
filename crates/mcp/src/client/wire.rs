//! Requests and responses: what leaves has a deadline, what arrives is shown to whoever watches. What is asked, and
//! what an answer means, is decided by the `McpClient`.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use hyper::{
    HeaderMap, Method as Verb,
    header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue, WWW_AUTHENTICATE},
};
use prism_core::wire::Message;
use serde_json::Value;
use tokio::time::timeout;

use super::{ClientError, stream::SseStream};
use crate::remote::{
    RemoteTarget,
    headers::{self, ProtocolHeaders},
    pool::PooledBody,
    reading::{self, ResponseContent},
};

/// Letters of a foreign body that are repeated to a person.
const SHOWN: usize = 200;
/// What is read of the body of a response that says no.
const MAX_ERROR_BYTES: usize = 64 << 10;

/// One server, as far as HTTP goes.
pub struct HttpEndpoint {
    pub target: Arc<RemoteTarget>,
    /// How long any one wait may take.
    pub patience: Duration,
    pub watch: Arc<dyn TrafficObserver>,
}

/// Whoever wants to see what arrives.
pub trait TrafficObserver: Send + Sync {
    fn message(&self, arrival: &ReceivedMessage);
    /// A request of ours that is about to leave: its method, and the tool that it calls.
    fn asks(&self, _request: u64, _what: &str) {}
    /// It is answered, or will not be.
    fn ends(&self, _request: u64) {}
    /// The head of the response to a request of ours.
    fn head(&self, _request: u64, _status: u16, _content: &str) {}
    /// Comment lines, which keep a stream alive.
    fn comments(&self, _path: ArrivalPath, _count: usize) {}
}

/// A message that arrived.
#[derive(Clone, Debug)]
pub struct ReceivedMessage {
    pub path: ArrivalPath,
    /// The name of its event; `None` if that was left out, or if there was none.
    pub event: Option<String>,
    pub event_id: Option<String>,
    pub message: Value,
    pub bytes: usize,
}

/// The way that a message came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrivalPath {
    /// The stream of the POST with this request.
    Post(u64),
    /// The body of the response to this request.
    Json(u64),
    /// The session's own stream.
    Get,
}

/// A response whose body is still to be read.
pub struct UnreadResponse {
    pub status: u16,
    pub headers: HeaderMap,
    pub content: ResponseContent,
    body: PooledBody,
    limit: usize,
}

// === impl HttpEndpoint ===

impl HttpEndpoint {
    /// Posts a message with the headers that fit to it.
    pub async fn post(
        &self,
        message: &Message,
        params: &[(String, String)],
        lane: &ProtocolHeaders,
    ) -> Result<UnreadResponse, ClientError> {
        let headers = headers::of_post(&self.target, message, params, lane);
        self.send(Verb::POST, headers, message.bytes().clone()).await
    }

    /// The headers of a POST with this message.
    pub fn post_headers(&self, message: &Message, lane: &ProtocolHeaders) -> HeaderMap {
        headers::of_post(&self.target, message, &[], lane)
    }

    /// The headers of a GET or DELETE in a session.
    pub fn headers(&self, lane: &ProtocolHeaders, after: Option<&str>) -> HeaderMap {
        let after = after.and_then(|id| HeaderValue::from_str(id).ok());
        headers::of_get(&self.target, lane, after.as_ref())
    }

    /// The headers of a POST whose body is no message.
    pub fn raw_headers(&self, lane: &ProtocolHeaders) -> HeaderMap {
        let mut headers = self.headers(lane, None);
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers
    }

    pub async fn send(&self, verb: Verb, headers: HeaderMap, body: Bytes) -> Result<UnreadResponse, ClientError> {
        let sending = self.target.send(verb, &self.target.url, || headers.clone(), body);
        let late = |_| ClientError::Timeout { what: "response".to_owned(), after: self.patience };
        let (_, response) = timeout(self.patience, sending).await.map_err(late)??;
        let (head, body) = response.into_parts();
        let content = reading::content(&head.headers);
        Ok(UnreadResponse {
            status: head.status.as_u16(),
            headers: head.headers,
            content,
            body,
            limit: self.target.max_message_bytes(),
        })
    }

    /// Shows a message to whoever watches, and returns it; what is no JSON is nothing to anybody.
    pub fn arrived(
        &self,
        path: ArrivalPath,
        event: Option<&str>,
        event_id: Option<&str>,
        bytes: &Bytes,
    ) -> Option<Value> {
        let message: Value = serde_json::from_slice(bytes).ok()?;
        self.watch.message(&ReceivedMessage {
            path,
            event: event.map(str::to_owned),
            event_id: event_id.map(str::to_owned),
            message: message.clone(),
            bytes: bytes.len(),
        });
        Some(message)
    }
}

// === impl UnreadResponse ===

impl UnreadResponse {
    pub fn header(&self, name: &HeaderName) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The kind of its body, in a word.
    pub fn kind(&self) -> &str {
        match &self.content {
            ResponseContent::Json => "application/json",
            ResponseContent::Events => "text/event-stream",
            ResponseContent::Other(kind) => kind,
            ResponseContent::Unnamed => "",
        }
    }

    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    pub fn into_stream(self) -> SseStream {
        SseStream::new(self.body, self.limit)
    }

    pub async fn whole(self, patience: Duration) -> Result<Bytes, ClientError> {
        let late = |_| ClientError::Timeout { what: "rest of the response".to_owned(), after: patience };
        Ok(timeout(patience, reading::whole(self.body, self.limit)).await.map_err(late)??)
    }

    /// Why a response is none: its status and what its body says.
    pub async fn refusal(self, patience: Duration) -> ClientError {
        let (status, content) = (self.status, self.kind().to_owned());
        let challenge = self.header(&WWW_AUTHENTICATE).map(str::to_owned);
        let body = timeout(patience, reading::whole(self.body, self.limit.min(MAX_ERROR_BYTES))).await;
        let body = body.ok().and_then(Result::ok).unwrap_or_default();
        if content == "text/html" && !matches!(status, 401 | 403) {
            return ClientError::Page { status };
        }
        let said = serde_json::from_slice::<Value>(&body).ok();
        let message = said.as_ref().and_then(|said| {
            let error = &said["error"];
            error["message"].as_str().or(error.as_str()).or(said["message"].as_str()).map(str::to_owned)
        });
        let why = match message {
            Some(message) => Some(message),
            None if content.starts_with("text/plain") => {
                Some(String::from_utf8_lossy(&body).trim().chars().take(SHOWN).collect())
            }
            None => None,
        };
        let why = why.filter(|why: &String| !why.is_empty());
        match status {
            401 | 403 => ClientError::Unauthorized { status, why: why.or(challenge) },
            _ => ClientError::Status { status, why },
        }
    }
}
