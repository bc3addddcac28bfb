//! An MCP server over HTTP on a real socket that does what the test says: each request that it gets is handed to the
//! test, which answers it as it likes. And what puts the daemon in front of one.

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::{
    HeaderMap, Request, Response,
    body::{Body, Frame, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::{
    net::{TcpListener, TcpSocket},
    sync::{mpsc, oneshot},
    task::{JoinHandle, JoinSet},
};
use tokio_rustls::TlsAcceptor;

use super::{Client, Daemon, Launch, MODERN, Modern, NEWEST, Reply, soon, stays, until};

/// Requests that may wait for a script.
const ASKED: usize = 1024;
/// Long enough to see that something does not happen.
const A_WHILE: Duration = Duration::from_millis(300);
/// Chunks that may wait for the socket.
const CHUNKS: usize = 4;

/// A server that does what the test says.
pub(crate) struct Upstream {
    address: SocketAddr,
    scheme: &'static str,
    tls: Option<TlsAcceptor>,
    state: State,
    sender: mpsc::Sender<Asked>,
    asked: mpsc::Receiver<Asked>,
}

enum State {
    /// The port is ours, and whoever connects is refused.
    Away(TcpSocket),
    /// The task has the sockets, and takes them with it.
    Up(JoinSet<()>),
}

/// A request that the server got. Dropped, it takes its connection with it.
pub(crate) struct Asked {
    pub(crate) verb: String,
    pub(crate) path: String,
    headers: HeaderMap,
    /// The message; null where there is no body.
    pub(crate) body: Value,
    reply: oneshot::Sender<Response<Script>>,
}

/// A response's body, chunk by chunk.
struct Script(mpsc::Receiver<io::Result<Bytes>>);

/// The way to write such a body. Dropping it ends the body well.
pub(crate) struct Flow(mpsc::Sender<io::Result<Bytes>>);

/// What a client got: the status, and the message that came last.
pub(crate) type Got = (u16, Value);

// === impl Upstream ===

impl Upstream {
    pub(crate) async fn start() -> Self {
        let mut upstream = Self::away();
        upstream.come();
        upstream
    }

    /// One behind TLS.
    pub(crate) async fn start_tls(tls: TlsAcceptor) -> Self {
        let mut upstream = Self { tls: Some(tls), scheme: "https", ..Self::away() };
        upstream.come();
        upstream
    }

    /// One that is not there yet, on a port that nobody else gets.
    pub(crate) fn away() -> Self {
        let socket = reusable();
        socket.bind(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a free port");
        let address = socket.local_addr().expect("a bound socket has an address");
        let (sender, asked) = mpsc::channel(ASKED);
        Self { address, scheme: "http", tls: None, state: State::Away(socket), sender, asked }
    }

    /// Listens.
    pub(crate) fn come(&mut self) {
        let State::Away(socket) = std::mem::replace(&mut self.state, State::Up(JoinSet::new())) else {
            panic!("it is there already");
        };
        let listener = socket.listen(1024).expect("a bound socket can listen");
        let mut task = JoinSet::new();
        task.spawn(accept(listener, self.tls.clone(), self.sender.clone()));
        self.state = State::Up(task);
    }

    /// Goes away, with every connection there is. Its port stays reserved.
    pub(crate) async fn go(&mut self) {
        if let State::Up(task) = &mut self.state {
            soon("the server to go", task.shutdown()).await;
        }
        let socket = reusable();
        until("the port is ours again", async || socket.bind(self.address).is_ok()).await;
        self.state = State::Away(socket);
        // Who asked the one that is gone is not for the next.
        while self.asked.try_recv().is_ok() {}
    }

    pub(crate) fn url(&self) -> String {
        self.at("/mcp")
    }

    pub(crate) fn at(&self, path: &str) -> String {
        format!("{}://{}{path}", self.scheme, self.address)
    }

    /// The next request, whatever it is.
    pub(crate) async fn next(&mut self) -> Asked {
        soon("a request", self.asked.recv()).await.expect("we hold a sender")
    }

    /// The next request, however long that takes: for servers that answer whatever comes.
    pub(crate) async fn next_or_never(&mut self) -> Asked {
        self.asked.recv().await.expect("we hold a sender")
    }

    /// The next request, which has to be this: the method of a message, or the verb where there is none.
    pub(crate) async fn asked(&mut self, what: &str) -> Asked {
        let asked = self.next().await;
        assert_eq!(asked.what(), what, "{} {} {}", asked.verb, asked.path, asked.body);
        asked
    }

    /// As [`Self::asked`], past attempts to open a stream, which this server does not have.
    pub(crate) async fn asked_past_streams(&mut self, what: &str) -> Asked {
        loop {
            let asked = self.next().await;
            if asked.what() == "GET" {
                asked.status(404).await;
                continue;
            }
            assert_eq!(asked.what(), what, "{} {} {}", asked.verb, asked.path, asked.body);
            return asked;
        }
    }

    /// Nothing comes for as long as it would take to come.
    pub(crate) async fn is_left_alone(&mut self) {
        stays("the server is left alone", A_WHILE, async || {
            self.asked_nothing_more();
            true
        })
        .await;
    }

    /// Checks that nothing was asked that the test did not take.
    pub(crate) fn asked_nothing_more(&mut self) {
        if let Ok(asked) = self.asked.try_recv() {
            panic!("{} {} {}", asked.verb, asked.path, asked.body);
        }
    }

    /// Greets as a server of the legacy era with a session of this name and no stream of its own.
    pub(crate) async fn greet(&mut self, session: &str) {
        self.open(session).await;
        self.asked("GET").await.status(405).await;
    }

    /// Greets as a server of the legacy era with a session of this name, and returns its stream.
    pub(crate) async fn greet_and_listen(&mut self, session: &str) -> Flow {
        self.open(session).await;
        self.asked("GET").await.events()
    }

    /// The handshake, up to where we are asked for a stream.
    async fn open(&mut self, session: &str) {
        let mut asked = self.next().await;
        if asked.what() == "server/discover" {
            asked.status(400).await;
            asked = self.next().await;
        }
        asked.welcome(session).await;
        self.asked("notifications/initialized").await.status(202).await;
    }

    /// Greets as a server of the modern era.
    pub(crate) async fn greet_modern(&mut self) {
        self.asked("server/discover").await.result(discovered()).await;
    }

    // --- The daemon in front of it ---

    /// `prism run --url` of this server.
    pub(crate) async fn bridge(&self, flags: &[&str]) -> Daemon {
        self.launch(flags).start().await
    }

    pub(crate) fn launch(&self, flags: &[&str]) -> Launch {
        bridge(&self.url(), flags)
    }

    /// A daemon in front of it with a session, after the handshake of the legacy era.
    pub(crate) async fn bridged(&mut self, flags: &[&str]) -> (Daemon, Client) {
        let daemon = self.bridge(flags).await;
        let client = self.initialized(&daemon, "s1").await;
        (daemon, client)
    }

    /// A first session of this daemon; this server greets with a session of this name.
    pub(crate) async fn initialized(&mut self, daemon: &Daemon, session: &str) -> Client {
        let client = root(daemon);
        let (client, ()) = tokio::join!(client.initialize(), self.greet(session));
        client
    }
}

/// A socket whose port can be taken again while connections of the last one fade.
fn reusable() -> TcpSocket {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_reuseaddr(true).expect("a socket has this option");
    socket
}

/// `prism run --url`.
pub(crate) fn bridge(url: &str, flags: &[&str]) -> Launch {
    let arguments = ["run", "--port", "0", "--url", url].into_iter().chain(flags.iter().copied());
    Launch::prism(arguments.map(str::to_owned).collect())
}

/// A client of the destination that `prism run` serves.
pub(crate) fn root(daemon: &Daemon) -> Client {
    daemon.client_at("/mcp")
}

pub(crate) fn modern_root(daemon: &Daemon) -> Modern {
    Modern::new(root(daemon))
}

/// What a legacy server says of itself.
pub(crate) fn greeting() -> Value {
    let capabilities = json!({"tools": {"listChanged": true}, "resources": {"subscribe": true}, "logging": {}});
    json!({"protocolVersion": NEWEST, "capabilities": capabilities, "serverInfo": {"name": "up", "version": "1"}})
}

/// What a modern server says of itself.
pub(crate) fn discovered() -> Value {
    json!({
        "supportedVersions": [MODERN],
        "capabilities": {"tools": {}},
        "resultType": "complete",
        "ttlMs": 0,
        "cacheScope": "public",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "up", "version": "1"}},
    })
}

/// The result of a tool with this text.
pub(crate) fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

/// The result of a tool of a modern server.
pub(crate) fn modern_text(said: &str) -> Value {
    json!({"content": [{"type": "text", "text": said}], "resultType": "complete"})
}

/// Calls a tool without waiting for it.
pub(crate) fn calling(client: &Client, tool: &str, arguments: Value) -> JoinHandle<Got> {
    posting(client, "tools/call", json!({"name": tool, "arguments": arguments}))
}

/// Posts a request without waiting for the answer.
pub(crate) fn posting(client: &Client, method: &'static str, params: Value) -> JoinHandle<Got> {
    let client = client.clone();
    tokio::spawn(async move {
        let reply = client.ask(method, params).await;
        (reply.status, reply.answer().await)
    })
}

/// As [`calling`], by a client of the modern era.
pub(crate) fn calling_modern(client: &Modern, tool: &str, arguments: Value) -> JoinHandle<Got> {
    let (client, message) = (client.clone(), client.tool(tool, arguments));
    tokio::spawn(async move {
        let reply = client.post(&message).await;
        (reply.status, reply.answer().await)
    })
}

pub(crate) async fn got(waiting: JoinHandle<Got>) -> Got {
    soon("an answer", waiting).await.expect("the call did not panic")
}

/// What a call came to that has to succeed.
pub(crate) async fn got_text(waiting: JoinHandle<Got>) -> String {
    let (status, answer) = got(waiting).await;
    assert_eq!(status, 200, "{answer}");
    super::result_text(&answer).to_owned()
}

/// What a call came to that has to fail in this way. Returns the words.
pub(crate) async fn got_fault(waiting: JoinHandle<Got>, expected: u16, reason: &str) -> String {
    let (status, answer) = got(waiting).await;
    assert_eq!(status, expected, "{answer}");
    fault(&answer, reason)
}

/// The words of an error of our own.
pub(crate) fn fault(answer: &Value, reason: &str) -> String {
    let error = &answer["error"];
    assert_eq!((&error["code"], &error["data"]["reason"]), (&json!(-32603), &json!(reason)), "{answer}");
    assert!(answer["id"].is_u64(), "{answer}");
    error["message"].as_str().expect("an error has a message").to_owned()
}

/// Checks that nothing of a destination is left: no session, and no stream.
pub(crate) async fn nothing_is_left(daemon: &Daemon, name: &str) {
    for what in ["sessions", "streams"] {
        let metric = format!("prism_{what}{{destination=\"{name}\"}}");
        until(&format!("no {what} are left"), async || daemon.metric(&metric).await == Some(0)).await;
    }
}

async fn accept(listener: TcpListener, tls: Option<TlsAcceptor>, tx: mpsc::Sender<Asked>) {
    let mut sockets = JoinSet::new();
    loop {
        let (socket, _) = listener.accept().await.expect("a listener accepts");
        socket.set_nodelay(true).expect("a socket has this option");
        let (tls, tx) = (tls.clone(), tx.clone());
        sockets.spawn(async move {
            let service = service_fn(move |request| serve(request, tx.clone()));
            // A client that hangs up, or a body that the script cuts, is no error here.
            let _ = match tls {
                None => http1::Builder::new().serve_connection(TokioIo::new(socket), service).await,
                Some(tls) => match tls.accept(socket).await {
                    Ok(socket) => http1::Builder::new().serve_connection(TokioIo::new(socket), service).await,
                    Err(_) => return,
                },
            };
        });
    }
}

async fn serve(request: Request<Incoming>, tx: mpsc::Sender<Asked>) -> Result<Response<Script>, io::Error> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let (reply, answer) = oneshot::channel();
    let asked = Asked {
        verb: head.method.to_string(),
        path: head.uri.to_string(),
        headers: head.headers,
        body: serde_json::from_slice(&body).unwrap_or_default(),
        reply,
    };
    let _ = tx.send(asked).await;
    answer.await.map_err(io::Error::other)
}

// === impl Script ===

impl Body for Script {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        self.0.poll_recv(context).map(|chunk| chunk.map(|chunk| chunk.map(Frame::data)))
    }
}

// === impl Asked ===

impl Asked {
    /// The method of the message, or the verb where there is none.
    pub(crate) fn what(&self) -> &str {
        self.body["method"].as_str().unwrap_or(&self.verb)
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.get_all(name).iter();
        let value = values.next()?;
        assert!(values.next().is_none(), "{name} came twice");
        Some(value.to_str().expect("our headers are ASCII"))
    }

    /// Everything that was said, for what must not be anywhere in it.
    pub(crate) fn all(&self) -> String {
        format!("{} {:?} {}", self.path, self.headers, self.body)
    }

    pub(crate) fn id(&self) -> u64 {
        self.body["id"].as_u64().unwrap_or_else(|| panic!("no number of ours: {}", self.body))
    }

    /// The progress token of a call.
    pub(crate) fn token(&self) -> Value {
        self.body["params"]["_meta"]["progressToken"].clone()
    }

    /// Sends the head of a response, and leaves the body to be written.
    pub(crate) fn begin(self, status: u16, headers: &[(&str, &str)]) -> Flow {
        let (tx, rx) = mpsc::channel(CHUNKS);
        let mut response = Response::builder().status(status);
        for (name, value) in headers {
            response = response.header(*name, *value);
        }
        let _ = self.reply.send(response.body(Script(rx)).expect("tests send valid heads"));
        Flow(tx)
    }

    pub(crate) fn events(self) -> Flow {
        self.begin(200, &[("content-type", "text/event-stream")])
    }

    pub(crate) async fn answer(self, status: u16, headers: &[(&str, &str)], body: &str) {
        let flow = self.begin(status, headers);
        if !body.is_empty() {
            flow.push(body).await;
        }
    }

    pub(crate) async fn status(self, status: u16) {
        self.answer(status, &[], "").await;
    }

    pub(crate) async fn json(self, status: u16, body: &Value) {
        self.answer(status, &[("content-type", "application/json")], &body.to_string()).await;
    }

    pub(crate) async fn result(self, result: Value) {
        let body = json!({"jsonrpc": "2.0", "id": self.id(), "result": result});
        self.json(200, &body).await;
    }

    /// Answers with an error, under a status.
    pub(crate) async fn error(self, status: u16, error: Value) {
        let body = json!({"jsonrpc": "2.0", "id": self.id(), "error": error});
        self.json(status, &body).await;
    }

    /// Answers `initialize` with a session of this name.
    pub(crate) async fn welcome(self, session: &str) {
        assert_eq!(self.what(), "initialize", "{}", self.body);
        assert_eq!(self.header("mcp-session-id"), None, "it opens a session, and can be in none");
        let body = json!({"jsonrpc": "2.0", "id": self.id(), "result": greeting()}).to_string();
        self.answer(200, &[("content-type", "application/json"), ("mcp-session-id", session)], &body).await;
    }

    /// Waits until the client has hung up.
    pub(crate) async fn hung_up(&mut self) {
        soon("the client to hang up", self.reply.closed()).await;
    }
}

// === impl Flow ===

impl Flow {
    /// Writes some text; false if nobody reads it any more.
    pub(crate) async fn push(&self, text: &str) -> bool {
        self.push_bytes(Bytes::copy_from_slice(text.as_bytes())).await
    }

    pub(crate) async fn push_bytes(&self, bytes: Bytes) -> bool {
        soon("room for a chunk", self.0.send(Ok(bytes))).await.is_ok()
    }

    pub(crate) async fn event(&self, message: &Value) {
        self.push(&format!("data: {message}\n\n")).await;
    }

    /// An event with an id.
    pub(crate) async fn numbered(&self, id: &str, message: &Value) {
        self.push(&format!("id: {id}\ndata: {message}\n\n")).await;
    }

    pub(crate) async fn progress(&self, token: &Value, progress: u32) {
        self.event(&note("notifications/progress", json!({"progressToken": token, "progress": progress}))).await;
    }

    pub(crate) async fn result(&self, id: u64, result: Value) {
        self.event(&json!({"jsonrpc": "2.0", "id": id, "result": result})).await;
    }

    /// Breaks the connection off.
    pub(crate) async fn cut(self) {
        let _ = self.0.send(Err(io::Error::other("cut"))).await;
    }

    pub(crate) async fn hung_up(&self) {
        soon("the client to hang up", self.0.closed()).await;
    }
}

pub(crate) fn note(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

/// A call with an id and a token of the test's own choice.
pub(crate) fn call(client: &Client, id: u64, token: &Value) -> super::Request {
    let params = json!({"name": "t", "arguments": {}, "_meta": {"progressToken": token}});
    let body = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
    client.request(hyper::Method::POST).body(body.to_string())
}

/// A call that the server answers with a stream: what its client gets, our number and token for it, and the stream.
pub(crate) async fn streaming(
    upstream: &mut Upstream,
    client: &Client,
    id: u64,
) -> (JoinHandle<Reply>, u64, Value, Flow) {
    let reply = tokio::spawn(call(client, id, &json!("t")).send());
    let asked = upstream.asked("tools/call").await;
    let (id, token) = (asked.id(), asked.token());
    (reply, id, token, asked.events())
}
