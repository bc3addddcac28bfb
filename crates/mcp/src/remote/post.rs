//! One message on its way: a POST, what its response says, and the answer on its stream. Which message may leave when
//! is decided by the `RemoteConnection`; what a stream needs to be resumed is in `stream`.

use std::{pin::pin, sync::Arc, time::Duration};

use bytes::Bytes;
use hyper::{
    Method as Verb, Response, Uri,
    header::{HeaderName, HeaderValue},
};
use prism_core::wire::{EnvelopeError, Frame, Message, MessageKind, envelope::own_number};
use serde::Deserialize;
use tokio::time::{sleep, timeout};
use tracing::debug;

use super::{
    RemoteFailure, RemoteTarget, Transport,
    headers::{self, ProtocolHeaders, SESSION_ID},
    pool::PooledBody,
    reading::{self, EventReader, ResponseContent, StreamPiece},
    report::{ReportContent, TaskReporter},
    request_id, returned,
    stream::{self, StreamCursor, StreamRefusal},
};

/// How long a note may take to be accepted. Requests have deadlines elsewhere.
const NOTE_TIMEOUT: Duration = Duration::from_secs(30);
/// What is read of the body of a response that says no, and how long that may take.
const MAX_ERROR_BYTES: usize = 64 << 10;
const ERROR_TIMEOUT: Duration = Duration::from_secs(5);
/// Attempts to resume a stream that may fail one after the other, before the answer counts as lost.
const MAX_RESUMES: u32 = 5;

/// A message that is about to leave.
pub(super) struct PostJob {
    pub(super) target: Arc<RemoteTarget>,
    pub(super) voice: TaskReporter,
    pub(super) to: Uri,
    /// `Mcp-Param-*` headers, without that prefix.
    pub(super) params: Vec<(String, String)>,
    /// Headers of its client's.
    pub(super) along: Vec<(HeaderName, HeaderValue)>,
    pub(super) message: Message,
    /// What the request says of its session. Empty in the modern era, and where there is no session yet.
    pub(super) lane: ProtocolHeaders,
}

/// How a request ended.
enum PostEnd {
    /// With this as the last word.
    With(Box<ReportContent>),
    /// The last word was said, and this body is left to be read.
    Said(Option<PooledBody>),
}

impl PostJob {
    /// Sends a request, and reads until it is answered.
    pub(super) async fn request(mut self, id: u64) {
        let end = match self.post().await {
            Ok(response) => self.read(id, response, OpeningAnswer::No).await,
            Err(failure) => PostEnd::with(ReportContent::Failed(failure)),
        };
        self.finish(end).await;
    }

    /// Sends `initialize`, whose answer brings the session.
    pub(super) async fn initialize(mut self, id: u64) {
        let response = match self.post().await {
            Ok(response) => response,
            Err(failure) => return self.voice.say(ReportContent::Failed(failure)).await,
        };
        let status = response.status().as_u16();
        let end = self.read(id, response, OpeningAnswer::Yes).await;
        // That is how servers of the older transport answer a POST to the URL of their stream (mcp-eras 4.1).
        let end = match end {
            PostEnd::With(otherwise) if matches!(status, 400 | 404 | 405) && self.target.may_probe() => {
                PostEnd::with(ReportContent::NotStreamable { message: self.message.clone(), otherwise })
            }
            end => end,
        };
        self.finish(end).await;
    }

    /// Sends a request whose answer comes on the stream of the older transport.
    pub(super) async fn request_over_sse(mut self) {
        let end = match self.post().await {
            Ok(response) if response.status().is_success() => {
                self.voice.say(ReportContent::Taken).await;
                PostEnd::Said(Some(response.into_body()))
            }
            Ok(response) => match request_id(&self.message) {
                Some(id) => PostEnd::with(self.refused(id, response).await),
                None => PostEnd::Said(None),
            },
            Err(failure) => PostEnd::with(ReportContent::Failed(failure)),
        };
        self.finish(end).await;
    }

    /// Sends a notification or an answer of ours. If it fails, there is nobody to tell.
    pub(super) async fn note(mut self) {
        if let Some((_, body)) = self.deliver().await {
            reading::drain(body).await;
        }
    }

    /// Sends `notifications/initialized`, and tells when it is known to have arrived.
    pub(super) async fn greet(mut self, number: u64) {
        let (voice, patience) = (self.voice.clone(), self.target.patience.greeting);
        let mut delivery = pin!(self.deliver());
        let delivered = match timeout(patience, &mut delivery).await {
            Ok(delivered) => {
                let accepted = matches!(delivered, Some((true, _)));
                voice.say(ReportContent::Greeted { number, accepted }).await;
                delivered
            }
            // It is not given up, but the rest waits no longer.
            Err(_) => {
                voice.say(ReportContent::Greeted { number, accepted: true }).await;
                delivery.await
            }
        };
        if let Some((_, body)) = delivered {
            reading::drain(body).await;
        }
    }

    async fn finish(self, end: PostEnd) {
        match end {
            PostEnd::With(says) => self.voice.say(*says).await,
            PostEnd::Said(Some(body)) => reading::drain(body).await,
            PostEnd::Said(None) => {}
        }
    }

    async fn post(&mut self) -> Result<Response<PooledBody>, RemoteFailure> {
        let headers = || {
            let own = headers::of_post(&self.target, &self.message, &self.params, &self.lane);
            headers::along(own, &self.along)
        };
        let bytes = self.message.bytes().clone();
        self.target.send(Verb::POST, &self.to, headers, bytes).await.map(|(_, response)| response)
    }

    /// Delivers a note: whether it was accepted, and what is left to be read. `None` if there is no response.
    async fn deliver(&mut self) -> Option<(bool, PooledBody)> {
        let response = match timeout(NOTE_TIMEOUT, self.post()).await {
            Ok(Ok(response)) => response,
            Ok(Err(failure)) => {
                debug!(failure = failure.name(), "The server did not accept a note");
                return None;
            }
            Err(_) => {
                debug!("The server did not accept a note in time");
                return None;
            }
        };
        let (status, accepted) = (response.status().as_u16(), response.status().is_success());
        if let Some(lost) = self.session_lost(status) {
            self.voice.say(lost).await;
        } else if !accepted {
            debug!(status, "The server did not accept a note");
        }
        Some((accepted, response.into_body()))
    }

    /// What a 404 says to a request of a session. To others it is a status like any other.
    fn session_lost(&self, status: u16) -> Option<ReportContent> {
        let session = self.lane.session.clone().filter(|_| status == 404)?;
        Some(ReportContent::SessionLost { session, message: self.message.clone() })
    }

    // --- The response to a request ---

    async fn read(&mut self, id: u64, response: Response<PooledBody>, opening: OpeningAnswer) -> PostEnd {
        let status = response.status().as_u16();
        if let Some(head) = returned::brought_back(response.headers()) {
            self.voice.say(ReportContent::Told(head)).await;
        }
        if !response.status().is_success() {
            return PostEnd::with(match self.session_lost(status) {
                Some(lost) => lost,
                None => self.refused(id, response).await,
            });
        }
        if opening == OpeningAnswer::Yes {
            self.lane.session = response.headers().get(SESSION_ID).cloned();
            if let Some(session) = &mut self.lane.session {
                session.set_sensitive(true);
            }
        }
        let not_mcp = |why: String| PostEnd::with(ReportContent::Failed(RemoteFailure::NotMcp { why }));
        match reading::content(response.headers()) {
            ResponseContent::Json if status != 202 => {
                match reading::whole(response.into_body(), self.target.max_message_bytes()).await {
                    Ok(bytes) => self.read_whole(id, bytes, opening).await,
                    Err(failure) => PostEnd::with(ReportContent::Failed(failure)),
                }
            }
            ResponseContent::Events => self.read_events(id, response.into_body(), opening).await,
            ResponseContent::Json | ResponseContent::Unnamed => {
                not_mcp(format!("the server answered a request with {status} and no answer"))
            }
            ResponseContent::Other(kind) => not_mcp(format!("the server answered a request with {kind:?}")),
        }
    }

    async fn read_whole(&mut self, id: u64, bytes: Bytes, opening: OpeningAnswer) -> PostEnd {
        let mut answer = None;
        for part in reading::messages(bytes) {
            match Message::parse(part) {
                Ok(message) if answers(&message, id) => answer = Some(message),
                Ok(message) => self.pass_on(&message).await,
                Err(error) => {
                    let why = match error {
                        // It may quote what came.
                        EnvelopeError::Shape(_) => "the server's answer is not a JSON-RPC 2.0 message".to_owned(),
                        error => error.to_string(),
                    };
                    return PostEnd::with(ReportContent::Failed(RemoteFailure::NotMcp { why }));
                }
            }
        }
        match answer {
            Some(message) => {
                self.answer(message, opening).await;
                PostEnd::Said(None)
            }
            None => {
                let why = "the server's answer does not answer the request".to_owned();
                PostEnd::with(ReportContent::Failed(RemoteFailure::NotMcp { why }))
            }
        }
    }

    /// Reads the request's stream, and resumes it where that is possible, until the answer has come.
    async fn read_events(&mut self, id: u64, body: PooledBody, opening: OpeningAnswer) -> PostEnd {
        let mut cursor = StreamCursor::default();
        let mut reading = EventReader::new(body, self.target.max_message_bytes());
        loop {
            match reading.next().await {
                StreamPiece::Event { name, data } if reading::is_message(name.as_deref()) => {
                    cursor.moved();
                    let mut answered = false;
                    for part in reading::messages(data) {
                        match Message::parse(part.clone()) {
                            Ok(message) if answers(&message, id) => {
                                self.answer(message, opening).await;
                                answered = true;
                            }
                            Ok(message) => self.pass_on(&message).await,
                            // The link counts what is no message.
                            Err(_) => self.voice.say(ReportContent::Message(Frame::Line(part))).await,
                        }
                    }
                    if answered {
                        return PostEnd::Said(Some(reading.into_body()));
                    }
                }
                StreamPiece::Event { .. } => {}
                StreamPiece::TooLong => {
                    return PostEnd::with(ReportContent::Failed(RemoteFailure::TooLarge {
                        limit: self.target.max_message_bytes(),
                    }));
                }
                StreamPiece::End => {
                    cursor.ended(&reading);
                    drop(reading);
                    match self.resume(&mut cursor).await {
                        Some(body) => reading = EventReader::new(body, self.target.max_message_bytes()),
                        None => return PostEnd::with(ReportContent::Failed(RemoteFailure::Cut)),
                    }
                }
            }
        }
    }

    /// Opens a stream again that ended before the answer. The request itself is never sent twice: it may be at work.
    async fn resume(&self, cursor: &mut StreamCursor) -> Option<PooledBody> {
        // 2026-07-28 has no event ids; before it, a stream without them cannot be resumed.
        if self.message.params().meta_version.is_some() {
            return None;
        }
        while cursor.can_resume() && cursor.failures() < MAX_RESUMES {
            sleep(cursor.pause()).await;
            match stream::open(&self.target, &self.lane, cursor).await {
                Ok(body) => return Some(body),
                Err(StreamRefusal::ForGood | StreamRefusal::Unknown) => return None,
                Err(StreamRefusal::ForNow) => cursor.failed(),
            }
        }
        None
    }

    /// Passes on what came before the answer.
    async fn pass_on(&self, message: &Message) {
        if message.kind() == MessageKind::Response {
            // What answers another request belongs into its response. Here it would only be taken for somebody's.
            debug!("The server answered a request in the response to another; it is dropped");
        } else {
            self.voice.say(ReportContent::Message(Frame::Line(message.bytes().clone()))).await;
        }
    }

    async fn answer(&mut self, message: Message, opening: OpeningAnswer) {
        self.target.found(Transport::StreamableHttp);
        if opening == OpeningAnswer::Yes && !message.failed() {
            self.lane.version = negotiated(&message);
            self.voice.say(ReportContent::Opened(std::mem::take(&mut self.lane))).await;
        }
        self.voice.say(ReportContent::Answer(message)).await;
    }

    /// What a status that says no means. A JSON-RPC error in the body says more than any status.
    async fn refused(&self, id: u64, response: Response<PooledBody>) -> ReportContent {
        let status = response.status().as_u16();
        if matches!(status, 401 | 403) {
            return ReportContent::Failed(RemoteFailure::Unauthorized { status });
        }
        let body = timeout(ERROR_TIMEOUT, reading::whole(response.into_body(), MAX_ERROR_BYTES)).await;
        let message = body.ok().and_then(Result::ok).and_then(|bytes| Message::parse(bytes).ok());
        match message.filter(|message| answers(message, id)) {
            Some(message) => ReportContent::Answer(message),
            None => ReportContent::Failed(RemoteFailure::Status { status }),
        }
    }
}

impl PostEnd {
    fn with(says: ReportContent) -> Self {
        Self::With(Box::new(says))
    }
}

/// Whether an answer opens a session.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OpeningAnswer {
    Yes,
    No,
}

/// Whether it is the answer to the request in whose response it came. A server that could not read the id leaves it
/// out, or gives null.
fn answers(message: &Message, id: u64) -> bool {
    message.kind() == MessageKind::Response && (message.id().is_none() || message.id().and_then(own_number) == Some(id))
}

/// The revision that the server chose.
fn negotiated(message: &Message) -> Option<HeaderValue> {
    #[derive(Deserialize)]
    struct InitializeResponse {
        result: InitializeResult,
    }
    #[derive(Deserialize)]
    struct InitializeResult {
        #[serde(rename = "protocolVersion")]
        version: String,
    }
    let answer: InitializeResponse = serde_json::from_slice(message.bytes()).ok()?;
    HeaderValue::from_str(&answer.result.version).ok()
}
