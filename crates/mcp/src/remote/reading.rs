//! Reading what a server sends: whole bodies and event streams, never more of either than the bound.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::{HeaderMap, body::Body, header::CONTENT_TYPE};
use prism_core::wire::sse::{SseEvent, SseSplitter};
use serde_json::value::RawValue;
use tokio::time::timeout;

use super::{RemoteFailure, pool::PooledBody};

/// What is read of a body that nobody wants, so that its connection can be used again, and how long that may take.
const MAX_DRAINED_BYTES: usize = 64 << 10;
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);
/// What an event may have beside its data: names, ids, comments.
const EVENT_OVERHEAD_BYTES: usize = 64 << 10;

/// What a response says it carries.
#[derive(Debug, PartialEq, Eq)]
pub enum ResponseContent {
    Json,
    Events,
    Other(String),
    Unnamed,
}

/// An event stream that is being read.
pub struct EventReader {
    body: PooledBody,
    events: SseSplitter,
    limit: usize,
    /// Bytes since the last event's end, as far as that can be seen without reading them twice.
    since_event: usize,
}

/// What is next on an event stream.
pub enum StreamPiece {
    Event {
        name: Option<Box<str>>,
        data: Bytes,
    },
    /// An event over the limit. It was not kept.
    TooLong,
    End,
}

pub fn content(headers: &HeaderMap) -> ResponseContent {
    let Some(value) = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()) else {
        return ResponseContent::Unnamed;
    };
    let kind = value.split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("application/json") {
        ResponseContent::Json
    } else if kind.eq_ignore_ascii_case("text/event-stream") {
        ResponseContent::Events
    } else {
        ResponseContent::Other(kind.chars().take(64).collect())
    }
}

/// Reads a whole body. One that came in one piece is not copied.
pub async fn whole(mut body: PooledBody, limit: usize) -> Result<Bytes, RemoteFailure> {
    let too_large = RemoteFailure::TooLarge { limit };
    if body.size_hint().lower() > limit as u64 {
        return Err(too_large);
    }
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| RemoteFailure::Cut)?.into_data() else { continue };
        if first.len().max(all.len()) + data.len() > limit {
            return Err(too_large);
        }
        if first.is_empty() && all.is_empty() {
            first = data;
            continue;
        }
        if all.is_empty() {
            all.reserve(usize::try_from(body.size_hint().lower()).unwrap_or(0) + first.len() + data.len());
            all.extend_from_slice(&std::mem::take(&mut first));
        }
        all.extend_from_slice(&data);
    }
    Ok(if all.is_empty() { first } else { all.freeze() })
}

/// Reads what is left of a response, within reason, so that its connection can be used again.
pub async fn drain(mut body: PooledBody) {
    let mut read = 0;
    let all = async {
        while read <= MAX_DRAINED_BYTES
            && let Some(Ok(frame)) = body.frame().await
        {
            read += frame.data_ref().map_or(0, Bytes::len);
        }
    };
    // Dropped unread, the body takes its connection with it: that is all that is lost.
    let _ = timeout(DRAIN_TIMEOUT, all).await;
}

/// The messages in one body or event: one, but for the batches of 2025-03-26.
pub fn messages(data: Bytes) -> impl Iterator<Item = Bytes> {
    let batch = batch(&data);
    let one = batch.is_none().then_some(data);
    batch.unwrap_or_default().into_iter().chain(one)
}

fn batch(data: &Bytes) -> Option<Vec<Bytes>> {
    if data.trim_ascii_start().first() != Some(&b'[') {
        return None;
    }
    let parts: Vec<&RawValue> = serde_json::from_slice(data).ok()?;
    Some(parts.into_iter().map(|part| data.slice_ref(part.get().as_bytes())).collect())
}

/// Whether an event of this name carries a message. Other names are not for us (mcp-eras 7.1).
pub fn is_message(name: Option<&str>) -> bool {
    name.is_none_or(|name| name == "message")
}

// === impl EventReader ===

impl EventReader {
    pub fn new(body: PooledBody, limit: usize) -> Self {
        Self { body, events: SseSplitter::new(limit), limit, since_event: 0 }
    }

    /// The next event with data. Cancel safe. An event that is over the limit is not waited for: it may never end.
    pub async fn next(&mut self) -> StreamPiece {
        loop {
            if let Some(event) = self.events.next_event() {
                self.since_event = 0;
                return match event {
                    SseEvent::Data { name, data } => StreamPiece::Event { name, data },
                    SseEvent::TooLong => StreamPiece::TooLong,
                };
            }
            if self.since_event > self.limit + EVENT_OVERHEAD_BYTES {
                self.since_event = 0;
                return StreamPiece::TooLong;
            }
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    let Some(data) = frame.data_ref() else { continue };
                    // A keep-alive ends like an event does.
                    let ends = data.ends_with(b"\n\n") || data.ends_with(b"\n\r\n") || data.ends_with(b"\r\r");
                    self.since_event = if ends { 0 } else { self.since_event + data.len() };
                    self.events.push(data);
                }
                Some(Err(_)) | None => return StreamPiece::End,
            }
        }
    }

    pub fn last_id(&self) -> Option<&str> {
        self.events.last_id()
    }

    pub fn retry(&self) -> Option<Duration> {
        self.events.retry_ms().map(Duration::from_millis)
    }

    pub fn into_body(self) -> PooledBody {
        self.body
    }
}
