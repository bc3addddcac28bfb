//! Streams that are opened with a GET: the one of a session, and the rest of a POST's that broke off. What is done with
//! the messages is not decided here.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use hyper::{Method as Verb, header::HeaderValue};
use prism_core::wire::Frame;
use tokio::time::sleep;
use tracing::debug;

use super::{
    RemoteFailure, RemoteTarget,
    headers::{self, ProtocolHeaders},
    pool::PooledBody,
    reading::{self, EventReader, ResponseContent, StreamPiece},
    report::{ReportContent, TaskReporter},
};

/// How long to wait before a stream is opened again, unless the server says otherwise.
const RETRY: Duration = Duration::from_secs(1);
/// The longest wait, whatever the server says.
const MAX_RETRY: Duration = Duration::from_secs(30);
/// The shortest wait after an attempt that brought nothing.
const MIN_BACKOFF: Duration = Duration::from_millis(100);
/// A stream that was open for this long was worth it, even if nothing came.
const WORTHWHILE: Duration = Duration::from_secs(10);

/// How far a stream was read, and when to try again.
pub(super) struct StreamCursor {
    last_id: Option<HeaderValue>,
    retry: Duration,
    /// Attempts in a row that failed.
    failures: u32,
    /// Attempts in a row that brought nothing, failed or not.
    idle: u32,
    opened: Instant,
    moved: bool,
}

/// Why there is no stream.
pub(super) enum StreamRefusal {
    ForGood,
    ForNow,
    /// There is no such session, or no such stream.
    Unknown,
}

/// Reads the stream of a session for as long as there is one.
pub(super) async fn listen(target: Arc<RemoteTarget>, lane: ProtocolHeaders, voice: TaskReporter) {
    let mut cursor = StreamCursor::default();
    let (mut first, mut was_open) = (true, false);
    loop {
        let opened = open(&target, &lane, &mut cursor).await;
        if std::mem::take(&mut first) {
            voice.say(ReportContent::Listening).await;
        }
        match opened {
            Ok(body) => {
                was_open = true;
                let mut reading = EventReader::new(body, target.max_message_bytes());
                while forward(&mut reading, &voice).await {
                    cursor.moved();
                }
                cursor.ended(&reading);
            }
            // Most servers have none, and say so.
            Err(StreamRefusal::ForGood) => return,
            // It was there before.
            Err(StreamRefusal::Unknown) if was_open && lane.session.is_some() => {
                return voice.say(ReportContent::SessionGone).await;
            }
            Err(StreamRefusal::Unknown) => return,
            Err(StreamRefusal::ForNow) => cursor.failed(),
        }
        sleep(cursor.pause()).await;
    }
}

/// Passes on the next message of a stream that belongs to no request; false at its end.
pub(super) async fn forward(reading: &mut EventReader, voice: &TaskReporter) -> bool {
    match reading.next().await {
        StreamPiece::Event { name, data } if reading::is_message(name.as_deref()) => {
            for part in reading::messages(data) {
                voice.say(ReportContent::Message(Frame::Line(part))).await;
            }
        }
        StreamPiece::Event { .. } => {}
        // Whom it concerned was thrown away with it.
        StreamPiece::TooLong => {
            voice.say(ReportContent::Message(Frame::TooLong { head: Bytes::new(), tail: Bytes::new() })).await
        }
        StreamPiece::End => return false,
    }
    true
}

/// Opens a stream, or opens it again where it was left.
pub(super) async fn open(
    target: &RemoteTarget,
    lane: &ProtocolHeaders,
    cursor: &mut StreamCursor,
) -> Result<PooledBody, StreamRefusal> {
    let headers = || headers::of_get(target, lane, cursor.last_id.as_ref());
    let (_, response) = target.send(Verb::GET, &target.url, headers, Bytes::new()).await.map_err(|failure| {
        debug!(failure = failure.name(), "A stream did not open");
        if matches!(failure, RemoteFailure::Redirected { .. }) { StreamRefusal::ForGood } else { StreamRefusal::ForNow }
    })?;
    let status = response.status().as_u16();
    match status {
        200 if reading::content(response.headers()) == ResponseContent::Events => {
            cursor.opened();
            Ok(response.into_body())
        }
        // The server is busy, or has not noticed yet that the last stream ended: that passes.
        408 | 409 | 425 | 429 | 500..=599 if status != 501 => {
            debug!(status, "The server did not open a stream; it is asked again");
            Err(StreamRefusal::ForNow)
        }
        404 => Err(StreamRefusal::Unknown),
        _ => Err(StreamRefusal::ForGood),
    }
}

// === impl StreamCursor ===

impl Default for StreamCursor {
    fn default() -> Self {
        Self { last_id: None, retry: RETRY, failures: 0, idle: 0, opened: Instant::now(), moved: false }
    }
}

impl StreamCursor {
    fn opened(&mut self) {
        self.failures = 0;
        self.opened = Instant::now();
        self.moved = false;
    }

    /// A message came.
    pub(super) fn moved(&mut self) {
        self.moved = true;
    }

    /// The stream ended: this is how far it got.
    pub(super) fn ended(&mut self, reading: &EventReader) {
        // Any text that came as an id can be sent back, but for control characters.
        let id = reading.last_id().map(|id| HeaderValue::from_bytes(id.as_bytes()).ok());
        if let Some(id) = id.filter(|id| *id != self.last_id) {
            // An empty id takes the last one back.
            self.last_id = id.filter(|id| !id.is_empty());
            self.moved = true;
        }
        self.retry = reading.retry().unwrap_or(self.retry).min(MAX_RETRY);
        let worthwhile = self.moved || self.opened.elapsed() >= WORTHWHILE;
        self.idle = if worthwhile { 0 } else { self.idle + 1 };
    }

    pub(super) fn failed(&mut self) {
        self.failures += 1;
        self.idle += 1;
    }

    pub(super) fn failures(&self) -> u32 {
        self.failures
    }

    pub(super) fn can_resume(&self) -> bool {
        self.last_id.is_some()
    }

    /// How long to wait now: what the server asked for, and longer each time that it brings nothing.
    pub(super) fn pause(&self) -> Duration {
        match self.idle {
            0 => self.retry,
            idle => (self.retry.max(MIN_BACKOFF) * 2_u32.saturating_pow((idle - 1).min(16))).min(MAX_RETRY),
        }
    }
}
