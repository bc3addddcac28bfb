//! The gate as its three kinds of callers have it: agents with the client's token, the person with the management secret,
//! holders with the token of their grant, on a WebSocket.

use std::{fs, path::Path, time::Duration};

use futures_util::{SinkExt, StreamExt};
use hyper::Method;
use serde_json::{Value, json};
use tokio::{net::TcpStream, time::timeout};
use tokio_tungstenite::{
    WebSocketStream, client_async,
    tungstenite::{self, Message, client::IntoClientRequest, protocol::frame::coding::CloseCode},
};

use super::{Daemon, Home, Launch, Reply, Request, soon, stays, until};

/// A build may take its time, and pings come meanwhile.
const ANSWERED_WITHIN: Duration = Duration::from_secs(180);

/// A daemon with a gate, and a folder to grant: not in the daemon's own, which is part of no grant.
pub(crate) struct Gate {
    pub(crate) daemon: Daemon,
    folder: Home,
}

/// A request that an agent has made.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) id: String,
    pub(crate) claim: String,
}

/// A grant in somebody's hands.
#[derive(Clone, Debug)]
pub(crate) struct Granted {
    pub(crate) id: String,
    pub(crate) token: String,
}

/// A holder on its socket.
pub(crate) struct Holder {
    socket: WebSocketStream<TcpStream>,
    last: u64,
}

/// Settings of a gate that is in nobody's way.
pub(crate) const SETTINGS: &str = "[gate]\nrate_limit = 1000\n";

/// The same, with editors that run commands themselves.
pub(crate) const UNFENCED: &str = "[gate]\nrate_limit = 1000\n[editor]\nfence = false\n";

impl Gate {
    pub(crate) async fn start() -> Self {
        Self::start_with(SETTINGS).await
    }

    pub(crate) async fn start_with(settings: &str) -> Self {
        Self::start_in(settings, &[]).await
    }

    /// In this home.
    pub(crate) async fn start_at(settings: &str, home: &Home) -> Self {
        let folder = Home::new();
        fs::write(folder.path().join("main.rs"), "fn main() {}\n").expect("the folder can be written to");
        Self { daemon: Launch::serve(settings).home(home).start().await, folder }
    }

    /// With these variables.
    pub(crate) async fn start_in(settings: &str, variables: &[(&'static str, String)]) -> Self {
        let launch = Launch::serve(settings);
        let launch = variables.iter().fold(launch, |launch, (name, value)| launch.env(name, value));
        Self::start_by(launch, Home::new()).await
    }

    /// As it is launched, with this folder to grant.
    pub(crate) async fn start_by(launch: Launch, folder: Home) -> Self {
        fs::write(folder.path().join("main.rs"), "fn main() {}\n").expect("the folder can be written to");
        Self { daemon: launch.start().await, folder }
    }

    /// Started in the project that is granted, on a config there which the person has seen.
    pub(crate) async fn start_in_project(config: &str) -> Self {
        let (home, folder) = (Home::new(), Home::new());
        fs::write(folder.path().join("prism.toml"), config).expect("the folder can be written to");
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let prism = |line: &[&str]| Launch::prism(words(line)).home(&home).folder(folder.path());
        prism(&["trust", "--yes"]).output().await;
        Self { daemon: prism(&["serve", "--port", "0"]).start().await, folder }
    }

    /// Stops that one, and starts the next.
    pub(crate) async fn started_in_project_again(self) -> Self {
        let Self { daemon, folder } = self;
        let home = daemon.home().clone();
        daemon.stop().await;
        let serve = ["serve", "--port", "0"].map(str::to_owned).to_vec();
        Self { daemon: Launch::prism(serve).home(&home).folder(folder.path()).start().await, folder }
    }

    /// Kills the daemon and starts the next one in the same home.
    pub(crate) async fn killed_and_started(mut self, settings: &str) -> Self {
        self.daemon.kill().await;
        self.started_again(settings).await
    }

    /// Starts the next daemon in the home of one that was killed.
    pub(crate) async fn started_again(self, settings: &str) -> Self {
        let home = self.daemon.home().clone();
        Self { daemon: Launch::serve(settings).home(&home).start().await, folder: self.folder }
    }

    pub(crate) fn project(&self) -> String {
        self.folder.path().to_str().expect("temporary folders have plain names").to_owned()
    }

    pub(crate) fn path(&self, below: &str) -> String {
        format!("{}/{below}", self.project())
    }

    pub(crate) fn management(&self) -> String {
        self.secret("management-token")
    }

    /// What editors show.
    pub(crate) fn plugin_secret(&self) -> String {
        self.secret("plugin-token")
    }

    fn secret(&self, file: &str) -> String {
        let file = self.daemon.home().path().join(file);
        fs::read_to_string(file).expect("a daemon that listens has made its secret").trim().to_owned()
    }

    /// A command of the person's.
    pub(crate) fn prism(&self, words: &[&str]) -> Launch {
        Launch::prism(words.iter().map(|word| (*word).to_owned()).collect()).home(self.daemon.home())
    }

    // --- HTTP ---

    /// A request with this secret, or none.
    pub(crate) fn request(&self, method: Method, path: &str, secret: Option<&str>) -> Request {
        let request = Request::new(self.daemon.place(), method, path)
            .header("host", &format!("127.0.0.1:{}", self.daemon.port()))
            .header("content-type", "application/json");
        match secret {
            Some(secret) => request.header("authorization", &format!("Bearer {secret}")),
            None => request,
        }
    }

    pub(crate) async fn post(&self, path: &str, secret: &str, body: Value) -> (u16, Value) {
        told(self.request(Method::POST, path, Some(secret)).body(body.to_string()).send().await).await
    }

    pub(crate) async fn as_agent(&self, path: &str, body: Value) -> (u16, Value) {
        self.post(path, &self.daemon.token(), body).await
    }

    pub(crate) async fn as_person(&self, path: &str, body: Value) -> (u16, Value) {
        self.post(path, &self.management(), body).await
    }

    /// What the person is shown.
    pub(crate) async fn seen(&self, path: &str) -> Value {
        let reply = self.request(Method::GET, path, Some(&self.management())).send().await;
        let (status, page) = told(reply).await;
        assert_eq!(status, 200, "{path}: {page}");
        page
    }

    pub(crate) async fn request_seen(&self, id: &str) -> Value {
        let page = self.seen("/mcp/requests").await;
        find(&page["requests"], "request_id", id)
    }

    pub(crate) async fn grant_seen(&self, id: &str) -> Value {
        let page = self.seen("/mcp/sessions?all=1").await;
        find(&page["sessions"], "session_id", id)
    }

    pub(crate) async fn ask(&self, agent: &str, scopes: &[&str]) -> Asked {
        let body = json!({"agent_id": agent, "scopes": scopes, "roots": [self.project()], "reason": "a test"});
        let (status, told) = self.as_agent("/mcp/request_access", body).await;
        assert_eq!(status, 200, "{told}");
        assert_eq!(told["status"], "PENDING");
        Asked { id: text(&told["request_id"]), claim: text(&told["claim"]) }
    }

    /// Approves with more members of the body.
    pub(crate) async fn approve(&self, asked: &Asked, more: Value) -> Granted {
        let (status, told) = self.try_approve(asked, more).await;
        assert_eq!(status, 200, "{told}");
        Granted { id: text(&told["session_id"]), token: text(&told["session_token"]) }
    }

    pub(crate) async fn try_approve(&self, asked: &Asked, more: Value) -> (u16, Value) {
        let mut body = json!({ "request_id": asked.id });
        for (name, value) in more.as_object().into_iter().flatten() {
            body[name] = value.clone();
        }
        self.as_person("/mcp/approve", body).await
    }

    /// A grant for these scopes.
    pub(crate) async fn granted(&self, scopes: &[&str]) -> Granted {
        self.approve(&self.ask("fixer", scopes).await, json!({})).await
    }

    /// The one confirmation that waits.
    pub(crate) async fn confirmation(&self) -> Value {
        let mut found = Value::Null;
        until("something waits for the person", async || {
            found = self.seen("/mcp/confirmations").await["confirmations"][0].clone();
            found.is_object()
        })
        .await;
        found
    }

    /// A person who gives everything that waits the same answer, for as long as it is polled: with verbs that may have to be
    /// asked about, or not.
    pub(crate) async fn answers(&self, allow: bool) {
        stays("the person is there", Duration::from_secs(3600), async || {
            let waiting = self.seen("/mcp/confirmations").await["confirmations"][0].clone();
            if waiting.is_object() {
                answer(self, &waiting, &waiting["digest"], allow).await;
            }
            true
        })
        .await;
    }

    // --- Sockets ---

    pub(crate) async fn hold(&self, granted: &Granted) -> Holder {
        let mut holder = self.knock(&granted.id, Some(&granted.token), &[]).await.expect("it is let in");
        let hello = holder.next().await.expect("it is greeted");
        assert_eq!(hello["event"], "session_state", "{hello}");
        holder
    }

    /// Opens a socket at a grant, whatever comes of it. `Err`: the status of the refusal.
    pub(crate) async fn knock(
        &self,
        id: &str,
        token: Option<&str>,
        headers: &[(&'static str, &str)],
    ) -> Result<Holder, u16> {
        let bearer = token.map(|token| format!("Bearer {token}"));
        let bearer = bearer.iter().map(|bearer| ("authorization", bearer.as_str()));
        let all: Vec<_> = bearer.chain(headers.iter().copied()).collect();
        self.connect(&format!("/mcp/session/{id}"), &all).await
    }

    pub(crate) async fn connect(&self, path: &str, headers: &[(&'static str, &str)]) -> Result<Holder, u16> {
        self.socket(path, headers).await.map(|socket| Holder { socket, last: 0 })
    }

    /// Opens a socket. `Err`: the status of the refusal.
    pub(super) async fn socket(
        &self,
        path: &str,
        headers: &[(&'static str, &str)],
    ) -> Result<WebSocketStream<TcpStream>, u16> {
        let address = format!("127.0.0.1:{}", self.daemon.port());
        let mut request = format!("ws://{address}{path}").into_client_request().expect("tests send valid URLs");
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().expect("tests send valid headers"));
        }
        let stream = TcpStream::connect(&address).await.expect("the daemon listens");
        match soon("an answer to the handshake", client_async(request, stream)).await {
            Ok((socket, _)) => Ok(socket),
            Err(tungstenite::Error::Http(response)) => Err(response.status().as_u16()),
            Err(error) => panic!("{error}"),
        }
    }

    // --- The audit log ---

    pub(crate) fn audit(&self) -> Vec<Value> {
        audit_in(self.daemon.home().path())
    }

    /// Waits for the line that says this, and returns it.
    pub(crate) async fn audited(&self, action: &str, result: &str) -> Value {
        self.audited_after(0, action, result).await
    }

    /// Waits for such a line behind the first so many.
    pub(crate) async fn audited_after(&self, before: usize, action: &str, result: &str) -> Value {
        let mut found = None;
        until(&format!("the audit log says {action}: {result}"), async || {
            let lines = self.audit();
            found = lines.into_iter().skip(before).find(|line| line["action"] == action && line["result"] == result);
            found.is_some()
        })
        .await;
        found.expect("it was found")
    }
}

/// Answers a confirmation, with this digest.
pub(crate) async fn answer(gate: &Gate, confirmation: &Value, digest: &Value, allow: bool) -> (u16, Value) {
    let body = json!({"confirmation_id": confirmation["confirmation_id"], "digest": digest, "allow": allow});
    gate.as_person("/mcp/confirm", body).await
}

/// The lines of an audit log, all of its files.
pub(crate) fn audit_in(home: &Path) -> Vec<Value> {
    let mut files: Vec<_> = fs::read_dir(home.join("audit"))
        .map(|all| all.filter_map(|file| Some(file.ok()?.path())).collect())
        .unwrap_or_default();
    files.retain(|file: &std::path::PathBuf| file.extension().is_some_and(|end| end == "jsonl"));
    files.sort();
    let text: String = files.iter().map(|file| fs::read_to_string(file).unwrap_or_default()).collect();
    // The last line may be half way to the disk.
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

async fn told(reply: Reply) -> (u16, Value) {
    (reply.status, reply.json().await)
}

fn find(rows: &Value, member: &str, id: &str) -> Value {
    let found = rows.as_array().and_then(|rows| rows.iter().find(|row| row[member] == id));
    found.unwrap_or_else(|| panic!("no {id} in {rows}")).clone()
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}

// === impl Holder ===

impl Holder {
    /// Has something done; returns the result.
    pub(crate) async fn does(&mut self, action: &str, args: Value) -> Value {
        let id = self.begins(action, args).await;
        self.result(&id).await
    }

    /// Asks for something, and does not wait for it.
    pub(crate) async fn begins(&mut self, action: &str, args: Value) -> String {
        self.last += 1;
        let id = format!("c{}", self.last);
        let command = json!({"type": "cmd", "id": id, "action": action, "args": args});
        self.says(&command.to_string()).await;
        id
    }

    pub(crate) async fn says(&mut self, text: &str) {
        soon("it is sent", self.socket.send(Message::text(text))).await.expect("the socket is open");
    }

    /// Waits for the result of a command, whatever else is told meanwhile.
    pub(crate) async fn result(&mut self, id: &str) -> Value {
        let found = async {
            loop {
                let message = self.next().await.unwrap_or_else(|code| panic!("closed with {code}"));
                if message["type"] == "result" && message["id"] == id {
                    return message;
                }
            }
        };
        timeout(ANSWERED_WITHIN, found).await.unwrap_or_else(|_| panic!("no result of {id}"))
    }

    /// Waits for the event of this name.
    pub(crate) async fn event(&mut self, name: &str) -> Value {
        loop {
            let message = self.next().await.unwrap_or_else(|code| panic!("closed with {code} instead of {name}"));
            if message["type"] == "event" && message["data"]["event"] == name {
                return message;
            }
        }
    }

    /// The code of a refusal.
    pub(crate) async fn refused(&mut self, action: &str, args: Value) -> String {
        let result = self.does(action, args).await;
        assert_eq!(result["status"], "error", "{result}");
        text(&result["data"]["code"])
    }

    /// The next message; `Err`: the code with which it was closed.
    pub(crate) async fn next(&mut self) -> Result<Value, u16> {
        next_message(&mut self.socket).await
    }

    /// Waits for the close; returns its code.
    pub(crate) async fn closed(&mut self) -> u16 {
        loop {
            if let Err(code) = self.next().await {
                return code;
            }
        }
    }
}

/// The next message on a socket; `Err`: the code with which it was closed.
pub(crate) async fn next_message(socket: &mut WebSocketStream<TcpStream>) -> Result<Value, u16> {
    loop {
        match soon("a message", socket.next()).await {
            Some(Ok(Message::Text(text))) => return Ok(serde_json::from_str(&text).expect("messages are JSON")),
            Some(Ok(Message::Close(frame))) => return Err(frame.map_or(1005, |frame| u16::from(frame.code))),
            Some(Ok(_)) => {}
            Some(Err(_)) | None => return Err(u16::from(CloseCode::Abnormal)),
        }
    }
}
