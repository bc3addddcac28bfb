//! One connection of a link to an MCP server over HTTP: Streamable HTTP of both eras, and the HTTP+SSE of 2024-11-05.
//! JSON-RPC messages go in, frames come out. It knows which headers, streams and statuses a transport has, and nothing
//! of what the messages mean beyond that.
//!
//! Every message that leaves is a chore of its own, and so is the stream that is listened to. They report through one
//! bounded channel; whatever has to be remembered (the session, who is under way, what waits) is here, without a lock,
//! and changes only in [`RemoteConnection::send`] and [`RemoteConnection::next`].

pub mod address;
mod chores;
pub mod credentials;
mod failure;
pub mod headers;
pub mod pool;
mod post;
pub mod reading;
mod report;
mod returned;
mod socket;
mod sse;
mod stream;
mod target;
#[cfg(test)]
mod tests;

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures_util::future::AbortHandle;
use hyper::{
    HeaderMap, Method as Verb, Uri,
    header::{HeaderName, HeaderValue},
};
use prism_core::{
    mcp::Method,
    numbers::NumberMap,
    wire::{Frame, Message, MessageKind, envelope::own_number},
};
use tokio::{
    runtime::Handle,
    sync::mpsc,
    time::{sleep_until, timeout},
};
use tracing::debug;

use chores::RemoteTasks;
pub use failure::RemoteFailure;
use headers::ProtocolHeaders;
use post::PostJob;
use report::{ReportContent, ReportSource, SseLoss, TaskReport, TaskReporter};
pub use target::{RemoteTarget, RemoteTargetError};

use prism_core::mcp::Transport;

use crate::kit;

/// Reports that may wait for the link. Beyond it the chores wait, and with them the server's sockets.
const REPORTS: usize = 32;
/// Requests that wait or are under way, each with its own connection. Beyond it a request is refused.
const MAX_REQUESTS: usize = 1024;
/// Messages of any kind that wait or are under way: more than requests, because a request may depend on a note or an
/// answer of ours. Beyond it they are dropped.
const MAX_MESSAGES: usize = 2048;
/// Refusals that may wait for the link. Beyond it nothing is said: the link has a deadline for every request.
const MAX_REFUSED: usize = 1024;
/// How long the first messages of a session wait for its stream to open.
const LISTENS_WITHIN: Duration = Duration::from_secs(1);
/// How long the end of a session may take to tell.
const DELETE_TIMEOUT: Duration = Duration::from_secs(2);

/// One connection to a server. Dropping it ends all that it has under way, and its session.
pub struct RemoteConnection {
    target: Arc<RemoteTarget>,
    way: RemoteTransport,
    lane: ProtocolHeaders,
    /// The number of the `notifications/initialized` that has left and was not accepted yet: nothing may overtake it.
    greeting: Option<u64>,
    greetings: u64,
    /// Until when what waits for the handshake waits for the session's stream, too.
    listens_by: Option<Instant>,
    waiting: VecDeque<OutgoingMessage>,
    chores: RemoteTasks,
    running: NumberMap<u64, RunningRequest>,
    /// Cancelled requests and when they are given up, in that order. As many as are under way, at most.
    fading: VecDeque<(Instant, u64)>,
    listening: Option<AbortHandle>,
    /// The number of the stream that is listened to. What an older one still says is dropped.
    stream: u64,
    refused: VecDeque<RemoteEvent>,
    reports: mpsc::Sender<TaskReport>,
    arriving: mpsc::Receiver<TaskReport>,
}

/// What came.
#[derive(Debug)]
pub enum RemoteEvent {
    /// A message. `about` is the number of the request on whose POST response it came; `None` on a stream that belongs
    /// to no request.
    Message { about: Option<u64>, frame: Frame },
    /// The answer to a request, on its POST response. It may lack the id.
    Answer { about: u64, message: Message },
    /// What of the head of the response to a request concerns its caller. The answer follows.
    Told { id: u64, head: HeaderMap },
    /// A request of ours will get no answer.
    Failed { id: u64, failure: RemoteFailure },
    /// The server does not know our session: it did not process this message, if that is how it was found out. The
    /// session is forgotten by now.
    SessionLost { message: Option<Message> },
    /// The connection as a whole is lost. Nothing comes after this.
    Ended { why: String },
}

enum RemoteTransport {
    Streamable,
    /// The server refused to be initialized over Streamable HTTP; whether it speaks the older transport is being found
    /// out. `otherwise` is what the request gets if not.
    Probing {
        initialize: OutgoingMessage,
        otherwise: Box<TaskReport>,
    },
    /// Without an endpoint until the stream has named it.
    Sse {
        endpoint: Option<Uri>,
    },
    Ended,
}

struct OutgoingMessage {
    message: Message,
    params: Vec<(String, String)>,
    along: Vec<(HeaderName, HeaderValue)>,
}

struct RunningRequest {
    task: AbortHandle,
    modern: bool,
    fading: bool,
}

// === impl RemoteConnection ===

impl RemoteConnection {
    pub fn open(target: Arc<RemoteTarget>) -> Self {
        let (reports, arriving) = mpsc::channel(REPORTS);
        let mut remote = Self {
            way: RemoteTransport::Streamable,
            lane: ProtocolHeaders::default(),
            greeting: None,
            greetings: 0,
            listens_by: None,
            waiting: VecDeque::new(),
            chores: RemoteTasks::default(),
            running: NumberMap::default(),
            fading: VecDeque::new(),
            listening: None,
            stream: 0,
            refused: VecDeque::new(),
            reports,
            arriving,
            target,
        };
        if remote.target.transport() == Some(Transport::Sse) {
            remote.way = RemoteTransport::Sse { endpoint: None };
            remote.open_sse();
        }
        remote
    }

    /// Sends one message of ours. Never waits; beyond the bounds a request is refused, and a note is dropped.
    pub fn send(&mut self, message: Message) {
        self.send_with(message, Vec::new());
    }

    /// As [`Self::send`], with `Mcp-Param-*` headers: their names without the prefix, their values as plain text.
    pub fn send_with(&mut self, message: Message, params: Vec<(String, String)>) {
        self.send_along(message, params, Vec::new());
    }

    /// The same, with headers of its client's. What is ours to say they do not change.
    pub fn send_along(
        &mut self,
        message: Message,
        params: Vec<(String, String)>,
        along: Vec<(HeaderName, HeaderValue)>,
    ) {
        if matches!(self.way, RemoteTransport::Ended) {
            return;
        }
        match message.kind() {
            MessageKind::Request(_) => {
                let Some(id) = request_id(&message) else {
                    debug!("A request without a number of ours was not sent");
                    return;
                };
                if matches!(self.way, RemoteTransport::Sse { .. }) && is_modern_only(&message) {
                    // There is no modern era on this transport; a server of it need not be asked.
                    return self.refuse(id, RemoteFailure::Status { status: 405 });
                }
                if self.waiting.len() + self.running.len() >= MAX_REQUESTS {
                    let why = "too many messages wait for the server".to_owned();
                    return self.refuse(id, RemoteFailure::Unreachable { why });
                }
            }
            MessageKind::Notification(Method::Cancelled) if self.cancel(&message) => return,
            _ if self.waiting.len() + self.chores.len() >= MAX_MESSAGES => {
                debug!("A note to the server was dropped: too many wait");
                return;
            }
            _ => {}
        }
        self.waiting.push_back(OutgoingMessage { message, params, along });
        self.start_waiting();
    }

    /// The next thing that came. Cancel safe: what was not returned comes next time.
    pub async fn next(&mut self) -> RemoteEvent {
        loop {
            if let Some(arrival) = self.refused.pop_front() {
                return arrival;
            }
            let fades = [self.fading.front().map(|(at, _)| *at), self.listens_by].into_iter().flatten().min();
            tokio::select! {
                biased;
                Some(report) = self.arriving.recv() => {
                    if let Some(arrival) = self.take(report) {
                        return arrival;
                    }
                }
                () = self.chores.run() => {}
                () = sleep_until(fades.unwrap_or_else(Instant::now).into()), if fades.is_some() => self.give_up(),
            }
        }
    }

    // --- What goes out ---

    fn refuse(&mut self, id: u64, failure: RemoteFailure) {
        if self.refused.len() < MAX_REFUSED {
            self.refused.push_back(RemoteEvent::Failed { id, failure });
        }
    }

    /// Does what a cancellation asks for here; true if that was all, and it need not be sent.
    fn cancel(&mut self, message: &Message) -> bool {
        let Some(id) = message.params().request_id.and_then(|span| own_number(message.text(span))) else {
            return false;
        };
        let waiting = self.waiting.len();
        self.waiting.retain(|outgoing| request_id(&outgoing.message) != Some(id));
        if self.waiting.len() < waiting {
            return true;
        }
        match self.running.get_mut(&id) {
            // 2026-07-28: closing the stream is the cancellation.
            Some(running) if running.modern => {
                running.task.abort();
                self.running.remove(&id);
                true
            }
            Some(running) => {
                if !std::mem::replace(&mut running.fading, true) {
                    if self.fading.len() >= MAX_REQUESTS {
                        self.fading.retain(|(_, id)| self.running.contains_key(id));
                    }
                    self.fading.push_back((Instant::now() + self.target.patience.fade, id));
                }
                false
            }
            // It is over. A server of the modern era has no use for the note.
            None => matches!(self.way, RemoteTransport::Streamable) && self.lane.version.is_none(),
        }
    }

    /// Gives up the requests that were cancelled long enough ago, and waiting for a stream that does not open.
    fn give_up(&mut self) {
        let now = Instant::now();
        if self.listens_by.is_some_and(|at| at <= now) {
            self.let_go();
        }
        while let Some((_, id)) = self.fading.front().copied().filter(|(at, _)| *at <= now) {
            self.fading.pop_front();
            if let Some(running) = self.running.remove(&id) {
                running.task.abort();
            }
        }
    }

    /// Lets out what had to wait for the handshake.
    fn let_go(&mut self) {
        self.greeting = None;
        self.listens_by = None;
        self.start_waiting();
    }

    fn start_waiting(&mut self) {
        while self.greeting.is_none()
            && matches!(self.way, RemoteTransport::Streamable | RemoteTransport::Sse { endpoint: Some(_) })
            && let Some(outgoing) = self.waiting.pop_front()
        {
            self.start(outgoing);
        }
    }

    fn start(&mut self, OutgoingMessage { message, params, along }: OutgoingMessage) {
        let modern = message.params().meta_version.is_some();
        let opens = message.kind() == MessageKind::Request(Method::Initialize) && !modern;
        // `initialize` opens a session: it can be in none.
        let lane = if opens || modern { ProtocolHeaders::default() } else { self.lane.clone() };
        let (to, sse) = match &self.way {
            RemoteTransport::Sse { endpoint: Some(endpoint) } => (endpoint.clone(), true),
            _ => (self.target.url.clone(), false),
        };
        let id = request_id(&message);
        let greets = message.kind() == MessageKind::Notification(Method::Initialized);
        let voice = self.voice(id.map_or(ReportSource::Note, ReportSource::Request));
        let job = PostJob { target: self.target.clone(), voice, to, params, along, message, lane };
        let Some(id) = id else {
            if greets {
                self.greetings += 1;
                self.greeting = Some(self.greetings);
                self.chores.add(job.greet(self.greetings));
            } else {
                self.chores.add(job.note());
            }
            return;
        };
        let task = match sse {
            true => self.chores.add(job.request_over_sse()),
            false if opens => self.chores.add(job.initialize(id)),
            false => self.chores.add(job.request(id)),
        };
        self.running.insert(id, RunningRequest { task, modern, fading: false });
    }

    fn voice(&self, from: ReportSource) -> TaskReporter {
        TaskReporter { from, reports: self.reports.clone() }
    }

    // --- What comes in ---

    fn take(&mut self, TaskReport { from, says }: TaskReport) -> Option<RemoteEvent> {
        let about = match from {
            // It was cancelled, and its last words are of no interest.
            ReportSource::Request(id) if !self.running.contains_key(&id) => return None,
            ReportSource::Stream(number) if number != self.stream => return None,
            ReportSource::Request(id) => Some(id),
            ReportSource::Note | ReportSource::Stream(_) => None,
        };
        let over = matches!(
            says,
            ReportContent::Answer(_)
                | ReportContent::Failed(_)
                | ReportContent::Taken
                | ReportContent::SessionLost { .. }
        );
        if let Some(id) = about.filter(|_| over) {
            self.running.remove(&id);
        }
        match says {
            ReportContent::Message(frame) => Some(RemoteEvent::Message { about, frame }),
            ReportContent::Answer(message) => about.map(|about| RemoteEvent::Answer { about, message }),
            ReportContent::Told(head) => about.map(|id| RemoteEvent::Told { id, head }),
            ReportContent::Failed(failure) => about.map(|id| RemoteEvent::Failed { id, failure }),
            ReportContent::Taken => None,
            ReportContent::SessionLost { session, message } => {
                // Several may learn of it, one after the other; by the last there may be a new session.
                if self.lane.session.as_ref() == Some(&session) {
                    self.lane = ProtocolHeaders::default();
                    self.greeting = None;
                    self.listens_by = None;
                    self.stop_listening();
                    // What waits was meant for that session, too.
                    let waiting = self.waiting.drain(..);
                    self.refused.extend(waiting.map(|waits| RemoteEvent::SessionLost { message: Some(waits.message) }));
                }
                // It came too late to mean the one there is.
                else if self.lane.session.is_some() {
                    self.waiting.push_back(OutgoingMessage { message, params: Vec::new(), along: Vec::new() });
                    self.start_waiting();
                    return None;
                }
                Some(RemoteEvent::SessionLost { message: Some(message) })
            }
            ReportContent::SessionGone => {
                self.lane = ProtocolHeaders::default();
                self.stop_listening();
                Some(RemoteEvent::SessionLost { message: None })
            }
            ReportContent::Opened(lane) => {
                self.lane = lane;
                self.stop_listening();
                None
            }
            ReportContent::NotStreamable { message, otherwise } => {
                let initialize = OutgoingMessage { message, params: Vec::new(), along: Vec::new() };
                self.way =
                    RemoteTransport::Probing { initialize, otherwise: Box::new(TaskReport { from, says: *otherwise }) };
                self.open_sse();
                None
            }
            // One of a session that is lost by now holds nothing up.
            ReportContent::Greeted { number, .. } if self.greeting != Some(number) => None,
            ReportContent::Greeted { accepted, .. } => {
                if accepted && matches!(self.way, RemoteTransport::Streamable) {
                    // Servers ask on this stream, too, and what they ask before it is open is lost.
                    self.listen();
                    self.listens_by = Some(Instant::now() + LISTENS_WITHIN);
                } else {
                    self.let_go();
                }
                None
            }
            ReportContent::Listening => {
                self.let_go();
                None
            }
            ReportContent::Endpoint(endpoint) => {
                self.target.found(Transport::Sse);
                let before = std::mem::replace(&mut self.way, RemoteTransport::Sse { endpoint: Some(endpoint) });
                if let RemoteTransport::Probing { initialize, .. } = before {
                    debug!("The server speaks HTTP+SSE of 2024-11-05");
                    self.waiting.push_front(initialize);
                }
                self.start_waiting();
                None
            }
            ReportContent::Lost(lost) => self.lost(lost),
        }
    }

    /// The older transport's stream is no more, or never was.
    fn lost(&mut self, SseLoss { why, refused }: SseLoss) -> Option<RemoteEvent> {
        match std::mem::replace(&mut self.way, RemoteTransport::Ended) {
            RemoteTransport::Probing { otherwise, .. } => {
                debug!(why, "The server does not speak HTTP+SSE of 2024-11-05 either");
                self.way = RemoteTransport::Streamable;
                self.stop_listening();
                let arrival = self.take(*otherwise);
                self.start_waiting();
                return arrival;
            }
            // What was found out once is no longer so.
            RemoteTransport::Sse { endpoint: None } if refused => self.target.forget(),
            _ => {}
        }
        self.chores.abort_all();
        self.running.clear();
        self.waiting.clear();
        Some(RemoteEvent::Ended { why })
    }

    // --- Streams ---

    fn listen(&mut self) {
        self.stop_listening();
        let voice = self.voice(ReportSource::Stream(self.stream));
        self.listening = Some(self.chores.add(stream::listen(self.target.clone(), self.lane.clone(), voice)));
    }

    fn open_sse(&mut self) {
        self.stop_listening();
        let voice = self.voice(ReportSource::Stream(self.stream));
        self.listening = Some(self.chores.add(sse::run(self.target.clone(), voice)));
    }

    fn stop_listening(&mut self) {
        self.stream += 1;
        if let Some(task) = self.listening.take() {
            task.abort();
        }
    }
}

impl Drop for RemoteConnection {
    fn drop(&mut self) {
        self.chores.abort_all();
        // Without a runtime there is nobody to tell it, and the server forgets the session by itself.
        if self.lane.session.is_some()
            && let Ok(runtime) = Handle::try_current()
        {
            let (target, lane) = (self.target.clone(), std::mem::take(&mut self.lane));
            runtime.spawn(async move {
                let headers = || headers::of_get(&target, &lane, None);
                // A server may refuse (405), and then ends it in its own time.
                let _ = timeout(DELETE_TIMEOUT, target.send(Verb::DELETE, &target.url, headers, Bytes::new())).await;
            });
        }
    }
}

/// The number of a request of ours. The id of an answer of ours is the server's.
fn request_id(message: &Message) -> Option<u64> {
    message.id().filter(|_| matches!(message.kind(), MessageKind::Request(_))).and_then(own_number)
}

/// Whether only a server of the modern era understands the request.
fn is_modern_only(message: &Message) -> bool {
    message.params().meta_version.is_some() || message.method_text() == Some("\"server/discover\"")
}

impl From<kit::ServerMessage> for RemoteEvent {
    fn from(kit::ServerMessage { about, is_answer, bytes }: kit::ServerMessage) -> Self {
        match (about.filter(|_| is_answer), Message::parse(bytes.clone())) {
            (Some(about), Ok(message)) => Self::Answer { about, message },
            _ => Self::Message { about, frame: Frame::Line(bytes) },
        }
    }
}
