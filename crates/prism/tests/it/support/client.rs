//! An MCP client, as far as tests need one: it says what a client says, and judges nothing.

use std::sync::atomic::{AtomicU64, Ordering};

use hyper::Method;
use serde_json::{Value, json};

use super::http::{Events, Place, Reply, Request};

/// The newest revision of the legacy era.
pub(crate) const NEWEST: &str = "2025-11-25";

/// A client of one destination; with a session once it is initialized.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    place: Place,
    path: String,
    token: Option<String>,
    session: Option<String>,
    accept: &'static str,
}

/// Ids that differ from each other, over all clients. Where the same id is the point, tests write it themselves.
static LAST_ID: AtomicU64 = AtomicU64::new(0);

impl Client {
    pub(crate) fn new(place: Place, path: &str, token: Option<String>) -> Self {
        Self { place, path: path.to_owned(), token, session: None, accept: "application/json, text/event-stream" }
    }

    /// The same client at another path.
    pub(crate) fn at(&self, path: &str) -> Self {
        Self { path: path.to_owned(), ..self.clone() }
    }

    /// The same client of a daemon that listens elsewhere.
    pub(crate) fn moved(&self, place: Place) -> Self {
        Self { place, ..self.clone() }
    }

    /// The same client, if it took no streams.
    pub(crate) fn taking_json(&self) -> Self {
        Self { accept: "application/json", ..self.clone() }
    }

    /// The same client with this session, whether there is one or not.
    pub(crate) fn with_session(&self, session: &str) -> Self {
        Self { session: Some(session.to_owned()), ..self.clone() }
    }

    pub(crate) fn session(&self) -> &str {
        self.session.as_deref().expect("the client is initialized")
    }

    /// A request with everything a good client sends.
    pub(crate) fn request(&self, method: Method) -> Request {
        let request = Request::new(self.place.clone(), method.clone(), &self.path).header("host", "localhost");
        let request = match method {
            Method::POST => request.header("content-type", "application/json").header("accept", self.accept),
            Method::GET => request.header("accept", "text/event-stream"),
            _ => request,
        };
        let request = match &self.token {
            Some(token) => request.header("authorization", &format!("Bearer {token}")),
            None => request,
        };
        match &self.session {
            Some(session) => request.header("mcp-session-id", session),
            None => request,
        }
    }

    pub(crate) async fn post(&self, message: &Value) -> Reply {
        self.post_text(&message.to_string()).await
    }

    pub(crate) async fn post_text(&self, body: &str) -> Reply {
        self.request(Method::POST).body(body.to_owned()).send().await
    }

    /// Opens a session with no capabilities, at the newest revision.
    pub(crate) async fn initialize(&self) -> Self {
        self.initialize_as(NEWEST, json!({})).await
    }

    pub(crate) async fn initialize_as(&self, version: &str, capabilities: Value) -> Self {
        let reply = self.post(&hello(version, capabilities)).await;
        let (status, session) = (reply.status, reply.header("mcp-session-id").map(str::to_owned));
        let body = reply.answer().await;
        assert_eq!(status, 200, "{body}");
        let client = self.with_session(&session.expect("an initialized session has an id"));
        let reply = client.notify("notifications/initialized", json!({})).await;
        assert_eq!(reply.status, 202);
        client
    }

    /// Sends a bare `initialize` and leaves the answer to the caller.
    pub(crate) async fn say_hello(&self) -> Reply {
        self.post(&hello(NEWEST, json!({}))).await
    }

    pub(crate) async fn ask(&self, method: &str, params: Value) -> Reply {
        self.post(&request(method, params)).await
    }

    pub(crate) async fn notify(&self, method: &str, params: Value) -> Reply {
        self.post(&json!({"jsonrpc": "2.0", "method": method, "params": params})).await
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Reply {
        self.ask("tools/call", json!({"name": tool, "arguments": arguments})).await
    }

    /// Calls a tool that has to succeed, and returns its text.
    pub(crate) async fn text(&self, tool: &str, arguments: Value) -> String {
        let reply = self.call(tool, arguments).await;
        let status = reply.status;
        let answer = reply.answer().await;
        assert_eq!(status, 200, "{answer}");
        result_text(&answer).to_owned()
    }

    /// The pid of the child that serves this client.
    pub(crate) async fn child(&self) -> u32 {
        self.text("whoami", json!({})).await.parse().expect("whoami answers a pid")
    }

    /// Opens the stream of what belongs to no call.
    pub(crate) async fn listen(&self) -> Events {
        let reply = self.request(Method::GET).send().await;
        assert_eq!(reply.status, 200);
        reply.events()
    }

    pub(crate) async fn resume(&self, last_event_id: &str) -> Reply {
        self.request(Method::GET).header("last-event-id", last_event_id).send().await
    }

    pub(crate) async fn delete(&self) -> Reply {
        self.request(Method::DELETE).send().await
    }
}

fn hello(version: &str, capabilities: Value) -> Value {
    let info = json!({"name": "it", "version": "1"});
    let params = json!({"protocolVersion": version, "capabilities": capabilities, "clientInfo": info});
    request("initialize", params)
}

pub(super) fn request(method: &str, params: Value) -> Value {
    let id = LAST_ID.fetch_add(1, Ordering::Relaxed) + 1;
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// The text of a tool's answer.
pub(crate) fn result_text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {answer}"))
}
