//! HTTP without any help: a connection per request, nothing added, nothing followed, nothing retried. What the
//! requests say is in `client.rs`.

use std::{
    collections::VecDeque,
    convert::Infallible,
    path::PathBuf,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::{
    HeaderMap, Method,
    body::{Frame, Incoming, SizeHint},
    client::conn::http1,
    header::{HeaderName, HeaderValue},
};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, UnixStream},
    task::JoinHandle,
};

use super::soon;

/// Where a daemon listens.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    Tcp(u16),
    Unix(PathBuf),
}

/// A request that is being put together.
#[derive(Clone)]
pub(crate) struct Request {
    place: Place,
    method: Method,
    path: String,
    headers: HeaderMap,
    body: Sent,
}

#[derive(Clone)]
enum Sent {
    Whole(Option<Bytes>),
    /// The same bytes so many times, and no word of how many there will be.
    Chunks(Bytes, usize),
}

/// A response whose body has not been read. Dropping it closes the connection.
pub(crate) struct Reply {
    pub(crate) status: u16,
    headers: HeaderMap,
    body: Incoming,
    connection: Connection,
}

/// The events of a response that is a stream. Dropping it closes the connection.
pub(crate) struct Events {
    body: Incoming,
    buffer: Vec<u8>,
    ready: VecDeque<Event>,
    _connection: Connection,
}

/// One server-sent event, field by field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) name: Option<String>,
    pub(crate) id: Option<String>,
    pub(crate) retry: Option<u64>,
    pub(crate) data: String,
}

struct Connection(JoinHandle<()>);

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// Nobody listens: the request was not sent.
    Unsent,
    /// The connection broke before the answer was whole.
    Broken,
}

// === impl Request ===

impl Request {
    pub(crate) fn new(place: Place, method: Method, path: &str) -> Self {
        Self { place, method, path: path.to_owned(), headers: HeaderMap::new(), body: Sent::Whole(None) }
    }

    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        let value = HeaderValue::from_str(value).expect("tests send valid headers");
        self.headers.insert(HeaderName::from_static(name), value);
        self
    }

    /// Sends a header that is there already once more.
    pub(crate) fn again(mut self, name: &'static str, value: &str) -> Self {
        let value = HeaderValue::from_str(value).expect("tests send valid headers");
        self.headers.append(HeaderName::from_static(name), value);
        self
    }

    pub(crate) fn without(mut self, name: &'static str) -> Self {
        self.headers.remove(name);
        self
    }

    pub(crate) fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = Sent::Whole(Some(body.into()));
        self
    }

    pub(crate) fn chunks(mut self, chunk: impl Into<Bytes>, count: usize) -> Self {
        self.body = Sent::Chunks(chunk.into(), count);
        self
    }

    pub(crate) async fn send(self) -> Reply {
        self.attempt().await.expect("the daemon listens, and answers")
    }

    /// Sends it to a daemon that may not be there, or not for long.
    pub(crate) async fn attempt(self) -> Result<Reply, Lost> {
        soon("an answer", async {
            match self.place.clone() {
                Place::Tcp(port) => {
                    let stream = TcpStream::connect(("127.0.0.1", port)).await.map_err(|_| Lost::Unsent)?;
                    stream.set_nodelay(true).expect("a socket has this option");
                    self.send_over(stream).await
                }
                Place::Unix(path) => {
                    let stream = UnixStream::connect(path).await.map_err(|_| Lost::Unsent)?;
                    self.send_over(stream).await
                }
            }
        })
        .await
    }

    async fn send_over(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Result<Reply, Lost> {
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.expect("a new connection is ready");
        let connection = Connection(tokio::spawn(async move { drop(connection.await) }));
        let mut request = hyper::Request::new(self.body);
        *request.method_mut() = self.method;
        *request.uri_mut() = self.path.parse().expect("tests send valid paths");
        *request.headers_mut() = self.headers;
        let (head, body) = sender.send_request(request).await.map_err(|_| Lost::Broken)?.into_parts();
        Ok(Reply { status: head.status.as_u16(), headers: head.headers, body, connection })
    }
}

// === impl Reply ===

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("our headers are ASCII"))
    }

    pub(crate) fn is_stream(&self) -> bool {
        self.header("content-type") == Some("text/event-stream")
    }

    pub(crate) async fn text(self) -> String {
        self.attempt_text().await.expect("the answer is whole")
    }

    /// The text of a daemon that may die over it.
    pub(crate) async fn attempt_text(self) -> Result<String, Lost> {
        let whole = soon("the rest of an answer", self.body.collect()).await.map_err(|_| Lost::Broken)?;
        Ok(String::from_utf8(whole.to_bytes().to_vec()).expect("answers are UTF-8"))
    }

    pub(crate) async fn json(self) -> Value {
        let text = self.text().await;
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    pub(crate) fn events(self) -> Events {
        assert!(self.is_stream(), "no stream: {} {:?}", self.status, self.headers);
        let (buffer, ready) = (Vec::new(), VecDeque::new());
        Events { body: self.body, buffer, ready, _connection: self.connection }
    }

    /// The answer, whichever way it comes: as JSON, or as the last event of a stream.
    pub(crate) async fn answer(self) -> Value {
        if !self.is_stream() {
            return self.json().await;
        }
        let events = self.events().rest().await;
        events.last().expect("a stream ends with its answer").json()
    }
}

// === impl Events ===

impl Events {
    /// The next event; `None` at the end of the stream. A stream that breaks off is an error.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        soon("an event", self.attempt_next()).await.expect("a stream ends as it should")
    }

    /// The same of a daemon that may die, or have nothing to say for long.
    pub(crate) async fn attempt_next(&mut self) -> Result<Option<Event>, Lost> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            let Some(frame) = self.body.frame().await else { return Ok(None) };
            let data = frame.map_err(|_| Lost::Broken)?.into_data().unwrap_or_default();
            self.buffer.extend_from_slice(&data);
            self.split();
        }
    }

    /// The next message, past events that carry none.
    pub(crate) async fn message(&mut self) -> Value {
        loop {
            let event = self.next().await.expect("the stream goes on");
            if !event.data.is_empty() {
                return event.json();
            }
        }
    }

    /// Everything up to the end.
    pub(crate) async fn rest(mut self) -> Vec<Event> {
        let mut all = Vec::new();
        while let Some(event) = self.next().await {
            all.push(event);
        }
        all
    }

    fn split(&mut self) {
        while let Some(end) = self.buffer.windows(2).position(|pair| pair == b"\n\n") {
            let block: Vec<u8> = self.buffer.drain(..end + 2).collect();
            let block = String::from_utf8(block).expect("events are UTF-8");
            let mut event = Event { name: None, id: None, retry: None, data: String::new() };
            let mut fields = 0;
            for line in block.trim_end_matches('\n').split('\n') {
                if line.starts_with(':') {
                    continue;
                }
                fields += 1;
                let (name, value) = line.split_once(':').unwrap_or((line, ""));
                let value = value.strip_prefix(' ').unwrap_or(value);
                match name {
                    "event" => event.name = Some(value.to_owned()),
                    "id" => event.id = Some(value.to_owned()),
                    "retry" => event.retry = Some(value.parse().expect("a number of milliseconds")),
                    "data" => event.data.push_str(value),
                    _ => panic!("a field that nobody knows: {line}"),
                }
            }
            if fields > 0 {
                self.ready.push_back(event);
            }
        }
    }
}

// === impl Event ===

impl Event {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap_or_else(|error| panic!("{error}: {}", self.data))
    }
}

// === impl Connection ===

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

// === impl Sent ===

impl hyper::body::Body for Sent {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = match self.get_mut() {
            Self::Whole(bytes) => bytes.take(),
            Self::Chunks(_, 0) => None,
            Self::Chunks(chunk, left) => {
                *left -= 1;
                Some(chunk.clone())
            }
        };
        Poll::Ready(next.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Self::Chunks(..) => SizeHint::default(),
        }
    }
}
