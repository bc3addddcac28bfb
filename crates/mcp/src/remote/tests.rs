//! A `RemoteConnection` on one side, a server on a real socket on the other, and a script between them: each request that the
//! server gets is handed to the test, which answers it as it likes.

mod answers;
mod credentials;
mod failures;
mod older;
mod sessions;
mod streams;
mod tls;

use std::{
    collections::VecDeque,
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::{
    HeaderMap, Request, Response,
    body::{Frame as BodyFrame, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use prism_core::wire::{Frame, Message};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
    sync::{mpsc, oneshot},
    task::JoinSet,
    time::timeout,
};

use super::{RemoteConnection, RemoteEvent, RemoteFailure, RemoteTarget, Transport, target};

/// Longer than anything here takes.
const DEADLINE: Duration = Duration::from_secs(20);
/// Long enough to see that something does not happen.
const A_WHILE: Duration = Duration::from_millis(80);
/// What the servers here may send at once.
const LIMIT: usize = 1 << 20;
/// Requests that may wait for a script.
const ASKED: usize = 4096;
/// Chunks that may wait for the socket.
const CHUNKS: usize = 4;

const INITIALIZE: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// A server that does what the test says.
struct Server {
    url: String,
    asked: mpsc::Receiver<Asked>,
    connections: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

/// A request that the server got.
struct Asked {
    method: String,
    path: String,
    headers: HeaderMap,
    body: String,
    reply: oneshot::Sender<Response<Script>>,
}

/// A response's body, chunk by chunk.
struct Script(mpsc::Receiver<io::Result<Bytes>>);

/// The way to write such a body. Dropping it ends the body well.
struct Flow(mpsc::Sender<io::Result<Bytes>>);

/// A remote and its server. Whichever is waited for, both are driven.
struct Bench {
    remote: RemoteConnection,
    server: Server,
    arrived: VecDeque<RemoteEvent>,
}

fn message(text: &str) -> Message {
    Message::parse(Bytes::copy_from_slice(text.as_bytes())).unwrap()
}

fn call(id: u64) -> Message {
    message(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t"}}}}"#))
}

fn modern_call(id: u64) -> Message {
    message(&format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t","_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}}}}"#
    ))
}

fn cancelled(id: u64) -> Message {
    message(&format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#))
}

fn result(id: u64) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)
}

fn note(number: usize) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{number}}}}}"#)
}

fn target(url: &str) -> Arc<RemoteTarget> {
    RemoteTarget::new(url, Vec::new(), None, LIMIT).unwrap()
}

/// A target that waits for nothing longer than `patience`.
fn hasty(url: &str, transport: Option<Transport>, patience: Duration) -> Arc<RemoteTarget> {
    let mut target = Arc::into_inner(RemoteTarget::new(url, Vec::new(), transport, LIMIT).unwrap()).unwrap();
    target.patience = target::RemotePatience { fade: patience, greeting: patience, endpoint: patience };
    Arc::new(target)
}

async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    timeout(DEADLINE, future).await.unwrap_or_else(|_| panic!("waited in vain for {what}"))
}

/// The arrival as `about: text`, for comparing.
fn shown(arrival: RemoteEvent) -> String {
    match arrival {
        RemoteEvent::Message { about, frame: Frame::Line(line) } => {
            let about = about.map_or("-".to_owned(), |id| id.to_string());
            format!("{about}: {}", String::from_utf8(line.to_vec()).unwrap())
        }
        RemoteEvent::Answer { about, message } => {
            format!("{about}: {}", String::from_utf8(message.bytes().to_vec()).unwrap())
        }
        other => format!("{other:?}"),
    }
}

// === impl Server ===

impl Server {
    async fn start() -> Self {
        Self::start_with(|socket| async move { Some(socket) }).await
    }

    /// Starts a server whose connections are first wrapped, as in TLS.
    async fn start_with<S, F>(wrap: impl Fn(tokio::net::TcpStream) -> F + Send + 'static) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        F: Future<Output = Option<S>> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let (tx, asked) = mpsc::channel(ASKED);
        let connections = Arc::new(AtomicUsize::new(0));
        let count = connections.clone();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut sockets = JoinSet::new();
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                count.fetch_add(1, Ordering::Relaxed);
                socket.set_nodelay(true).unwrap();
                let (tx, socket) = (tx.clone(), wrap(socket));
                sockets.spawn(async move {
                    let Some(socket) = socket.await else { return };
                    let service = service_fn(move |request| serve(request, tx.clone()));
                    // A client that hangs up, or a body that the script cuts, is no error here.
                    let _ = http1::Builder::new().serve_connection(TokioIo::new(socket), service).await;
                });
            }
        });
        Self { url, asked, connections, _tasks: tasks }
    }

    async fn asked(&mut self) -> Asked {
        within("a request", self.asked.recv()).await.unwrap()
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

async fn serve(request: Request<Incoming>, tx: mpsc::Sender<Asked>) -> Result<Response<Script>, io::Error> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let (reply, answer) = oneshot::channel();
    let asked = Asked {
        method: head.method.to_string(),
        path: head.uri.to_string(),
        headers: head.headers,
        body: String::from_utf8(body.to_vec()).unwrap(),
        reply,
    };
    let _ = tx.send(asked).await;
    // A script that drops the request drops the connection.
    answer.await.map_err(io::Error::other)
}

impl hyper::body::Body for Script {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<BodyFrame<Bytes>, io::Error>>> {
        self.0.poll_recv(context).map(|chunk| chunk.map(|chunk| chunk.map(BodyFrame::data)))
    }
}

// === impl Asked ===

impl Asked {
    fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.get_all(name).iter();
        let value = values.next()?;
        assert!(values.next().is_none(), "{name} came twice");
        Some(value.to_str().unwrap())
    }

    fn line(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    /// Sends the head of a response, and leaves the body to be written.
    fn begin(self, status: u16, headers: &[(&str, &str)]) -> Flow {
        let (tx, rx) = mpsc::channel(CHUNKS);
        let mut response = Response::builder().status(status);
        for (name, value) in headers {
            response = response.header(*name, *value);
        }
        let _ = self.reply.send(response.body(Script(rx)).unwrap());
        Flow(tx)
    }

    fn events(self) -> Flow {
        self.begin(200, &[("content-type", "text/event-stream; charset=utf-8")])
    }

    async fn answer(self, status: u16, headers: &[(&str, &str)], body: &str) {
        let flow = self.begin(status, headers);
        if !body.is_empty() {
            flow.push(body).await;
        }
    }

    async fn json(self, body: &str) {
        self.answer(200, &[("content-type", "application/json")], body).await;
    }

    async fn status(self, status: u16) {
        self.answer(status, &[], "").await;
    }

    /// Waits until the client has hung up.
    async fn hung_up(&mut self) {
        within("the client to hang up", self.reply.closed()).await;
    }
}

// === impl Flow ===

impl Flow {
    async fn push(&self, text: &str) -> bool {
        let chunk = Ok(Bytes::copy_from_slice(text.as_bytes()));
        within("room for a chunk", self.0.send(chunk)).await.is_ok()
    }

    async fn event(&self, data: &str) {
        self.push(&format!("data: {data}\n\n")).await;
    }

    /// Breaks the connection off.
    async fn cut(self) {
        let _ = self.0.send(Err(io::Error::other("cut"))).await;
    }

    async fn hung_up(&self) {
        within("the client to hang up", self.0.closed()).await;
    }
}

// === impl Bench ===

impl Bench {
    async fn start() -> Self {
        let server = Server::start().await;
        let target = target(&server.url);
        Self::with(server, target)
    }

    fn with(server: Server, target: Arc<RemoteTarget>) -> Self {
        Self { remote: RemoteConnection::open(target), server, arrived: VecDeque::new() }
    }

    /// A bench after the handshake of the legacy era, with session `s1`. The server has no stream of its own.
    async fn opened() -> Self {
        let mut bench = Self::start().await;
        bench.open("s1").await;
        let listen = bench.asked().await;
        assert_eq!(listen.line(), "GET /mcp");
        listen.status(405).await;
        bench
    }

    /// The handshake, up to where the client asks for a stream.
    async fn open(&mut self, session: &str) {
        self.remote.send(message(INITIALIZE));
        self.asked().await.initialized(session).await;
        assert!(matches!(self.arrival().await, RemoteEvent::Answer { about: 1, .. }));
        self.remote.send(message(INITIALIZED));
        self.asked().await.status(202).await;
    }

    /// The next request that the server gets.
    async fn asked(&mut self) -> Asked {
        let Self { remote, server, arrived } = self;
        loop {
            tokio::select! {
                asked = server.asked() => return asked,
                arrival = remote.next() => arrived.push_back(arrival),
            }
        }
    }

    /// Waits for something else, while the remote goes on with its work.
    async fn driving<T>(&mut self, other: impl Future<Output = T>) -> T {
        let mut other = std::pin::pin!(other);
        loop {
            tokio::select! {
                done = &mut other => return done,
                arrival = self.remote.next() => self.arrived.push_back(arrival),
            }
        }
    }

    async fn arrival(&mut self) -> RemoteEvent {
        match self.arrived.pop_front() {
            Some(arrival) => arrival,
            None => within("an arrival", self.remote.next()).await,
        }
    }

    async fn shown(&mut self) -> String {
        shown(self.arrival().await)
    }

    async fn failure(&mut self) -> (u64, RemoteFailure) {
        match self.arrival().await {
            RemoteEvent::Failed { id, failure } => (id, failure),
            other => panic!("{other:?} is no failure"),
        }
    }

    /// Nothing arrives, and the server gets nothing.
    async fn silence(&mut self) {
        let Self { remote, server, arrived } = self;
        assert!(arrived.is_empty(), "{arrived:?}");
        let something = async {
            tokio::select! {
                asked = server.asked() => asked.line(),
                arrival = remote.next() => shown(arrival),
            }
        };
        if let Ok(something) = timeout(A_WHILE, something).await {
            panic!("{something}");
        }
    }
}

impl Asked {
    /// Answers `initialize` with a session of this name.
    async fn initialized(self, session: &str) {
        assert!(self.body.contains("\"initialize\""), "{}", self.body);
        let body = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{}}}"#;
        self.answer(200, &[("content-type", "application/json"), ("mcp-session-id", session)], body).await;
    }
}
