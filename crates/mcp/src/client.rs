//! A small MCP client over Streamable HTTP, for the commands that ask a server something: `prism probe`, `prism tools`
//! and `prism call`. It speaks every revision; bridging servers to other clients is `bridge::drive`, not this.
//!
//! Every wait has a deadline. What arrives, on whichever path, is shown to a `TrafficObserver`.

mod fault;
mod open;
mod questions;
mod shapes;
mod stream;
mod wire;

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
pub use fault::ClientError;
use hyper::Method as Verb;
pub use open::{ClientOptions, RevisionChoice};
use prism_core::{
    mcp::{Era, modern, params::ToolHeaders},
    wire::Message,
};
pub use questions::QuestionHandler;
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
pub use shapes::{
    AskedForm, ContentBlock, Foreign, ListedTool, SchemaKind, SchemaPart, SeenCapabilities, SeenError, SeenMessage,
    SeenParams, ToolResult, lenient,
};
pub use stream::{SseItem, SseStream};
use tokio::{
    task::JoinHandle,
    time::{sleep, timeout, timeout_at},
};
pub use wire::{ArrivalPath, HttpEndpoint, ReceivedMessage, TrafficObserver, UnreadResponse};

use crate::remote::{
    headers::ProtocolHeaders,
    reading::{self, ResponseContent},
};

/// Pages of one list that are read. A server with more is cut off there, not read for ever.
const MAX_PAGES: usize = 100;
/// Times that a modern server may ask back before it answers.
const MAX_ROUNDS: usize = 10;
/// Attempts to resume a stream that broke off before its answer.
const MAX_RESUMES: usize = 3;
/// The pause before a stream is resumed, unless the server says otherwise, and the longest one.
const RETRY: Duration = Duration::from_millis(500);
const MAX_RETRY: Duration = Duration::from_secs(5);
/// How long one request may take in all, however much is heard of it meanwhile.
const MAX_CALL: Duration = Duration::from_secs(60 * 60);
/// How long the end of a session may take.
const FAREWELL: Duration = Duration::from_secs(2);
/// How often the session's stream is opened again before we do without.
const MAX_LISTENS: usize = 10;

/// A client of one server.
pub struct McpClient {
    pub wire: HttpEndpoint,
    pub lane: ProtocolHeaders,
    pub greeting: ServerDescription,
    manners: QuestionHandler,
    capabilities: Value,
    /// The level of log notes that each modern request asks for.
    level: Option<&'static str>,
    ids: AtomicU64,
    /// The request that was taken back last: its stream is not resumed.
    cancelled: AtomicU64,
    /// Which arguments go into headers, too.
    tool_headers: Mutex<ToolHeaders>,
    listener: Mutex<Option<JoinHandle<()>>>,
}

/// What a server says of itself.
#[derive(Clone, Debug, Default)]
pub struct ServerDescription {
    pub era: Option<Era>,
    pub revision: String,
    pub name: String,
    pub version: String,
    pub capabilities: Value,
    pub instructions: Option<String>,
    pub session: Option<String>,
    /// Headers of its first answer, those that say something about the transport.
    pub headers: Vec<(String, String)>,
}

/// The result of a request: to be looked at, and as it came.
#[derive(Debug)]
pub struct RpcResult {
    pub result: Value,
    pub raw: Box<RawValue>,
}

/// How far the reading of a response got.
enum ResponseReading {
    Answered(RpcResult),
    /// The stream ended early, with a place to go on from.
    Resumable {
        after: String,
        pause: Duration,
    },
}

// === impl McpClient ===

impl McpClient {
    pub fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub fn era(&self) -> Era {
        self.greeting.era.unwrap_or(Era::Legacy)
    }

    /// Whether the server says that it has this.
    pub fn has(&self, capability: &str) -> bool {
        self.greeting.capabilities.get(capability).is_some()
    }

    /// A request, as it leaves.
    pub fn message(&self, id: u64, method: &str, mut params: Value) -> Value {
        if self.era() == Era::Modern {
            open::envelop(&mut params, &self.capabilities, self.level);
        }
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
    }

    pub async fn ask(&self, method: &str, params: Value) -> Result<RpcResult, ClientError> {
        self.request(self.next_id(), method, params).await
    }

    /// Sends a request and reads until it is answered. Dropping the future closes the response, which a modern server
    /// takes for a cancellation; a legacy one has to be told ([`Self::cancel`]).
    pub async fn request(&self, id: u64, method: &str, params: Value) -> Result<RpcResult, ClientError> {
        let tool = params["name"].as_str().filter(|_| method == "tools/call").map(|tool| format!(" {tool}"));
        self.wire.watch.asks(id, &format!("{method}{}", tool.unwrap_or_default()));
        let message = parse(&self.message(id, method, params))?;
        let answered = async {
            let params = self.tool_headers.lock().unwrap_or_else(PoisonError::into_inner).headers(&message);
            let reply = self.wire.post(&message, &params, &self.lane).await?;
            self.wire.watch.head(id, reply.status, reply.kind());
            let mut read = self.read(id, reply).await?;
            let mut resumes = 0;
            loop {
                let (after, pause) = match read {
                    ResponseReading::Answered(outcome) => return Ok(outcome),
                    ResponseReading::Resumable { after, pause } => (after, pause),
                };
                resumes += 1;
                if resumes > MAX_RESUMES || self.cancelled.load(Ordering::Relaxed) == id {
                    return Err(ClientError::Cut);
                }
                sleep(pause.min(MAX_RETRY)).await;
                let headers = self.wire.headers(&self.lane, Some(&after));
                let reply = self.wire.send(Verb::GET, headers, Bytes::new()).await?;
                read = self.read(id, reply).await?;
            }
        };
        let late = |_| Err(ClientError::Timeout { what: format!("answer to {method}"), after: MAX_CALL });
        let answered = timeout(MAX_CALL, answered).await.unwrap_or_else(late);
        self.wire.watch.ends(id);
        answered
    }

    async fn read(&self, id: u64, reply: UnreadResponse) -> Result<ResponseReading, ClientError> {
        match reply.content {
            ResponseContent::Events if reply.is_success() => self.read_events(id, reply.into_stream()).await,
            ResponseContent::Json if !matches!(reply.status, 401 | 403) => {
                let status = reply.status;
                let body = reply.whole(self.wire.patience).await?;
                for part in reading::messages(body) {
                    if let Some(message) = self.wire.arrived(ArrivalPath::Json(id), None, None, &part)
                        && is_answer(&message, id, status)
                    {
                        return outcome(&part).map(ResponseReading::Answered);
                    }
                }
                Err(match status {
                    200..300 => {
                        ClientError::NotMcp { why: "the JSON in the response is no answer to our request".to_owned() }
                    }
                    _ => ClientError::Status { status, why: None },
                })
            }
            _ if !reply.is_success() => Err(reply.refusal(self.wire.patience).await),
            ResponseContent::Other(ref kind) if kind == "text/html" => Err(ClientError::Page { status: reply.status }),
            _ => Err(ClientError::NotMcp {
                why: format!(
                    "HTTP {} with {}",
                    reply.status,
                    if reply.kind().is_empty() { "no content type" } else { reply.kind() }
                ),
            }),
        }
    }

    async fn read_events(&self, id: u64, mut stream: SseStream) -> Result<ResponseReading, ClientError> {
        let mut heard = tokio::time::Instant::now();
        loop {
            let late =
                |_| ClientError::Timeout { what: "answer on the event stream".to_owned(), after: self.wire.patience };
            // Comments say that the stream lives, not that somebody works.
            let piece = timeout_at(heard + self.wire.patience, stream.next()).await.map_err(late)?;
            let (name, event_id, data) = match piece {
                SseItem::Event { name, id, data } => (name, id, data),
                SseItem::Comments(count) => {
                    self.wire.watch.comments(ArrivalPath::Post(id), count);
                    continue;
                }
                SseItem::TooLong => return Err(ClientError::TooLarge { limit: self.wire.target.max_message_bytes() }),
                SseItem::End => {
                    let after =
                        stream.last_id().filter(|_| self.era() == Era::Legacy).ok_or(ClientError::Cut)?.to_owned();
                    return Ok(ResponseReading::Resumable { after, pause: stream.retry().unwrap_or(RETRY) });
                }
            };
            for part in reading::messages(data) {
                let arrived = self.wire.arrived(ArrivalPath::Post(id), name.as_deref(), event_id.as_deref(), &part);
                let Some(message) = arrived else { continue };
                if is_answer(&message, id, 200) {
                    return outcome(&part).map(ResponseReading::Answered);
                }
                self.reply_to(&message).await;
            }
            heard = tokio::time::Instant::now();
        }
    }

    /// Answers a question of the server, if it is one.
    pub async fn reply_to(&self, message: &Value) {
        let (Some(id), Some(method)) = (message.get("id"), message["method"].as_str()) else { return };
        let answer = match self.manners.answer(method, &message["params"]).await {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err((code, why)) => json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": why}}),
        };
        // If it does not arrive the server waits, and our own deadline ends that.
        if let Ok(answer) = parse(&answer) {
            let _ = self.wire.post(&answer, &[], &self.lane).await;
        }
    }

    /// Sends a note; `Ok` if it was accepted.
    pub async fn notify(&self, method: &str, params: Value) -> Result<(), ClientError> {
        let message = parse(&json!({"jsonrpc": "2.0", "method": method, "params": params}))?;
        let reply = self.wire.post(&message, &[], &self.lane).await?;
        if reply.is_success() { Ok(()) } else { Err(reply.refusal(self.wire.patience).await) }
    }

    /// Takes a request back. In the modern era closing its response has done that.
    pub async fn cancel(&self, id: u64, why: &str) {
        self.cancelled.store(id, Ordering::Relaxed);
        if self.era() == Era::Legacy {
            let note = self.notify("notifications/cancelled", json!({"requestId": id, "reason": why}));
            let _ = timeout(FAREWELL, note).await;
        }
    }

    /// Reads a list to its last page: `tools`, `prompts`, `resources` or `resourceTemplates`.
    pub async fn list(&self, method: &str, member: &str) -> Result<Vec<Value>, ClientError> {
        let mut all = Vec::new();
        let mut params = json!({});
        for _ in 0..MAX_PAGES {
            let RpcResult { mut result, raw } = self.ask(method, params.clone()).await?;
            if method == "tools/list" {
                self.tool_headers.lock().unwrap_or_else(PoisonError::into_inner).learn(raw.get());
            }
            match result[member].take() {
                Value::Array(page) => all.extend(page),
                _ => return Err(ClientError::NotMcp { why: format!("the answer to {method} has no {member}") }),
            }
            match result["nextCursor"].take() {
                Value::String(cursor) => params = json!({"cursor": cursor}),
                _ => break,
            }
        }
        Ok(all)
    }

    pub async fn tools(&self) -> Result<Vec<Value>, ClientError> {
        self.list("tools/list", "tools").await
    }

    /// Calls a tool, and answers what it asks on the way. `id` is the first request's, for whoever wants to cancel;
    /// later rounds are of the modern era, where closing does that.
    pub async fn call(&self, id: u64, tool: &str, arguments: &Value) -> Result<RpcResult, ClientError> {
        let base = json!({"name": tool, "arguments": arguments});
        let (mut id, mut params) = (id, base.clone());
        for _ in 0..MAX_ROUNDS {
            params["_meta"] = json!({"progressToken": id});
            let outcome = self.request(id, "tools/call", params).await?;
            if outcome.result["resultType"] != "input_required" {
                return Ok(outcome);
            }
            let mut answers = serde_json::Map::new();
            for (key, question) in outcome.result["inputRequests"].as_object().into_iter().flatten() {
                let method = question["method"].as_str().unwrap_or_default();
                // There is no way to say no but for forms: who declines the rest does not come back (mcp-eras 2.6).
                let answer = self.manners.answer(method, &question["params"]).await;
                let declined = |(code, why): questions::Declined| ClientError::Rpc {
                    code,
                    message: why.to_owned(),
                    data: Value::Null,
                };
                answers.insert(key.clone(), answer.map_err(declined)?);
            }
            params = base.clone();
            params["inputResponses"] = Value::Object(answers);
            if let Some(state) = outcome.result.get("requestState") {
                params["requestState"] = state.clone();
            }
            id = self.next_id();
        }
        Err(ClientError::Rounds { rounds: MAX_ROUNDS })
    }

    /// Opens the session's own stream, or goes on with it after an event.
    pub async fn listen(&self, after: Option<&str>) -> Result<UnreadResponse, ClientError> {
        let headers = self.wire.headers(&self.lane, after);
        self.wire.send(Verb::GET, headers, Bytes::new()).await
    }

    /// Listens to the session's own stream until the client is closed. Most servers have none.
    pub fn keep_listening(self: &Arc<Self>) {
        if self.era() == Era::Modern {
            return;
        }
        let client = Arc::downgrade(self);
        let task = tokio::spawn(async move {
            let mut after: Option<String> = None;
            for _ in 0..MAX_LISTENS {
                let Some(client) = client.upgrade() else { return };
                let Ok(reply) = client.listen(after.as_deref()).await else { return };
                if !reply.is_success() || reply.content != ResponseContent::Events {
                    return;
                }
                let mut stream = reply.into_stream();
                while let SseItem::Event { .. } | SseItem::Comments(_) = client.hear(&mut stream).await {}
                after = stream.last_id().map(str::to_owned);
                sleep(stream.retry().unwrap_or(RETRY).min(MAX_RETRY)).await;
            }
        });
        *self.listener.lock().unwrap_or_else(PoisonError::into_inner) = Some(task);
    }

    /// Takes the next thing from the session's stream, shows it, and answers it if it is a question.
    pub async fn hear(&self, stream: &mut SseStream) -> SseItem {
        let piece = stream.next().await;
        match &piece {
            SseItem::Event { name, id, data } => {
                for part in reading::messages(data.clone()) {
                    if let Some(message) = self.wire.arrived(ArrivalPath::Get, name.as_deref(), id.as_deref(), &part) {
                        self.reply_to(&message).await;
                    }
                }
            }
            SseItem::Comments(count) => self.wire.watch.comments(ArrivalPath::Get, *count),
            SseItem::TooLong | SseItem::End => {}
        }
        piece
    }

    /// Ends the session. Returns the status of that, if there was one.
    pub async fn close(&self) -> Option<u16> {
        let listener = self.listener.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(listener) = listener {
            listener.abort();
        }
        self.lane.session.as_ref()?;
        let headers = self.wire.headers(&self.lane, None);
        let ended = timeout(FAREWELL, self.wire.send(Verb::DELETE, headers, Bytes::new())).await;
        Some(ended.ok()?.ok()?.status)
    }
}

impl Drop for McpClient {
    fn drop(&mut self) {
        if let Some(listener) = self.listener.lock().unwrap_or_else(PoisonError::into_inner).take() {
            listener.abort();
        }
    }
}

/// Whether a message answers a request. Where the request could not even be read, an error may come without its id.
fn is_answer(message: &Value, id: u64, status: u16) -> bool {
    let own = message.get("result").is_some() || message.get("error").is_some();
    let nobodys =
        message.get("id").is_none_or(Value::is_null) && message.get("error").is_some() && (400..500).contains(&status);
    own && (message["id"] == id || nobodys)
}

/// What an answer says.
fn outcome(bytes: &Bytes) -> Result<RpcResult, ClientError> {
    #[derive(Deserialize)]
    struct RpcResponse {
        result: Option<Box<RawValue>>,
        #[serde(default)]
        error: Value,
    }
    let read = |why: serde_json::Error| ClientError::NotMcp { why: why.to_string() };
    let RpcResponse { result, error } = serde_json::from_slice(bytes).map_err(read)?;
    match result {
        Some(raw) => Ok(RpcResult { result: serde_json::from_str(raw.get()).map_err(read)?, raw }),
        None => Err(ClientError::Rpc {
            code: error["code"].as_i64().unwrap_or_default(),
            message: error["message"].as_str().unwrap_or("the server gives no reason").to_owned(),
            data: error["data"].clone(),
        }),
    }
}

pub fn parse(message: &Value) -> Result<Message, ClientError> {
    let why = |_| ClientError::NotMcp { why: "what was to be sent is no message".to_owned() };
    Message::parse(Bytes::from(message.to_string())).map_err(why)
}

/// The revision that has no handshake.
pub const MODERN: &str = modern::VERSION;
