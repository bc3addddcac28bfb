//! A whole front within this process, whose own server tells what it was told: what no daemon from outside shows.

mod bells;
mod callers;
mod carried;
mod waits;

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use crate::own_server;
use prism_core::mcp::link::SessionKey;
use prism_core::mesh::PENDING;
use prism_editor::ServerSandboxes;
use prism_os::census::OwnerDaemon;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Notify,
    time::timeout,
};
use tracing::level_filters::LevelFilter;

use super::DaemonContext;
use super::{DaemonLifetime, DaemonService, DaemonSnapshot, own};
use prism_bridge::access::AccessLog;
use prism_bridge::{
    access::InFlightCounter,
    drive::{
        Destination, Environment, Hub, SessionTable,
        destination::{BridgeContext, BuiltIn},
        reach::{LinkSender, OpenedStream, StreamId, StreamObserver},
    },
};
use prism_config::{self as config, Config, Env};
use prism_mcp::kit::{self, CallFailure, Resources, ServerCall, ToolReply, TypedTool};
use prism_telemetry::{DaemonLog, Metrics};

/// How long a test waits for what must come.
const SOON: Duration = Duration::from_secs(10);
const NEWEST: &str = "2025-11-25";
const MODERN: &str = "2026-07-28";

/// A front on a port of its own.
struct Door {
    address: String,
    front: Arc<DaemonService>,
    reach: Arc<Told>,
    sessions: Arc<SessionTable>,
    /// A wait was cancelled.
    cancelled: Arc<Notify>,
    _home: TempDir,
}

/// What was told of clients that can be reached.
#[derive(Default)]
struct Told {
    open: Mutex<Vec<OpenedStream>>,
    said: Mutex<Vec<Event>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Event {
    Opened(StreamId),
    Closed(StreamId),
    Ended(SessionKey),
    Seen(SessionKey),
}

impl StreamObserver for Told {
    fn stream_opened(&self, stream: OpenedStream) {
        self.said.lock().expect("no panic").push(Event::Opened(stream.stream));
        self.open.lock().expect("no panic").push(stream);
    }

    fn stream_closed(&self, stream: StreamId) {
        self.said.lock().expect("no panic").push(Event::Closed(stream));
    }

    fn session_ended(&self, session: SessionKey) {
        self.said.lock().expect("no panic").push(Event::Ended(session));
    }

    fn seen(&self, session: SessionKey) {
        self.said.lock().expect("no panic").push(Event::Seen(session));
    }

    fn piggyback(&self, session: SessionKey) -> Option<String> {
        Some(format!("a signal for {}", uuid::Uuid::from_u128(session.0)))
    }

    fn piggyback_instance(&self, instance: uuid::Uuid) -> Option<String> {
        Some(format!("a signal for {instance}"))
    }
}

impl Told {
    /// Waits until all of this was told, in whatever order.
    async fn has(&self, all: &[Event]) {
        let told = async {
            while !all.iter().all(|event| self.said.lock().expect("no panic").contains(event)) {
                tokio::task::yield_now().await;
            }
        };
        assert!(timeout(SOON, told).await.is_ok(), "{all:?} in {:?}", self.said.lock());
    }

    /// Waits for that many streams to have been opened. Returns the last: where to ring, which it is, whose, for what.
    async fn opened(&self, count: usize) -> (LinkSender, StreamId, Option<SessionKey>, Vec<String>) {
        let told = async {
            loop {
                if let Some(open) = self.open.lock().expect("no panic").get(count - 1) {
                    return (open.link.clone(), open.stream, open.session, open.uris.clone());
                }
                tokio::task::yield_now().await;
            }
        };
        timeout(SOON, told).await.expect("a stream was told of")
    }
}

/// Says who calls, as it was told.
struct WhoCalls;

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

impl TypedTool for WhoCalls {
    type Arguments = Nothing;
    const NAME: &'static str = "prism_who_calls";
    const TITLE: &'static str = "Who calls";
    const DESCRIPTION: &'static str = "Says who calls.";

    async fn call(&self, _: Nothing, call: &ServerCall) -> Result<ToolReply, CallFailure> {
        let told = call.caller_mark().map(|mark| {
            let id = |id: Option<uuid::Uuid>| id.map(|id| id.to_string());
            json!({"session": id(mark.session), "instance": id(mark.instance), "transport": mark.transport,
                "client": mark.client})
        });
        Ok(ToolReply::structured(json!({"mark": told})))
    }
}

/// A tool of another server.
struct Echo;

impl TypedTool for Echo {
    type Arguments = Nothing;
    const NAME: &'static str = "other_echo";
    const TITLE: &'static str = "Echo";
    const DESCRIPTION: &'static str = "Says something.";

    async fn call(&self, _: Nothing, _: &ServerCall) -> Result<ToolReply, CallFailure> {
        Ok(ToolReply::text("echo"))
    }
}

/// The same as one that never carries a bell.
struct Start;

impl TypedTool for Start {
    type Arguments = Nothing;
    const NAME: &'static str = "prism_start";
    const TITLE: &'static str = "Start";
    const DESCRIPTION: &'static str = "Says something.";

    async fn call(&self, _: Nothing, _: &ServerCall) -> Result<ToolReply, CallFailure> {
        Ok(ToolReply::text("echo"))
    }
}

/// Waits until nobody waits for it any more.
struct Wait(Arc<Notify>);

impl TypedTool for Wait {
    type Arguments = Nothing;
    const NAME: &'static str = "prism_wait";
    const TITLE: &'static str = "Wait";
    const DESCRIPTION: &'static str = "Waits until it is cancelled.";

    async fn call(&self, _: Nothing, call: &ServerCall) -> Result<ToolReply, CallFailure> {
        call.progress(1, None, "waiting");
        call.cancelled().await;
        self.0.notify_one();
        Ok(ToolReply::text("too late"))
    }
}

/// Resources that can be watched, as those of the real one.
struct Bells;

impl Resources for Bells {
    async fn list(&self, _: &ServerCall) -> Result<Vec<Value>, CallFailure> {
        Ok(Vec::new())
    }

    async fn read(&self, uri: &str, _: &ServerCall) -> Result<Vec<Value>, CallFailure> {
        Err(CallFailure::no_resource(uri))
    }

    fn can_watch(&self, uri: &str) -> bool {
        uri.starts_with(PENDING)
    }
}

fn quarters(home: &Path) -> Arc<ServerSandboxes> {
    ServerSandboxes::new(&Default::default(), Default::default(), home.join("children"), vec![home.to_owned()])
}

impl Door {
    async fn open() -> Self {
        Self::open_with(Config::default()).await
    }

    async fn open_with(config: Config) -> Self {
        let home = tempfile::tempdir().expect("a folder");
        let cancelled = Arc::new(Notify::new());
        let bridge = BridgeContext {
            sessions: Arc::new(SessionTable::new(None)),
            metrics: Arc::new(Metrics::default()),
            owner: OwnerDaemon::this_process(home.path()),
            store: None,
            environment: Environment::new(Env::process(), false, quarters(home.path())),
        };
        let reach = Arc::new(Told::default());
        bridge.sessions.reached().tell(reach.clone());
        let access = AccessLog {
            log: DaemonLog::start(LevelFilter::OFF, false),
            metrics: bridge.metrics.clone(),
            bodies: None,
            in_flight: InFlightCounter::default(),
        };
        let prism = kit::BuiltinServer::new("prism", "Prism", "")
            .tool(WhoCalls)
            .tool(Start)
            .tool(Wait(cancelled.clone()))
            .resources(Bells);
        let settings = config::DestinationConfig::stdio(own_server::NAME, Vec::new());
        let settings = config::DestinationConfig { max_sessions: usize::MAX, legacy_sse: true, ..settings };
        let prism = Destination::built_in(
            settings,
            BuiltIn { server: prism, waits: true, meets_agents: true },
            &config,
            &bridge,
        )
        .expect("a destination");
        let other = kit::BuiltinServer::new("other", "Another", "").tool(Echo);
        let other = own("other", BuiltIn { server: other, waits: false, meets_agents: false }, &config, &bridge)
            .expect("a destination");
        let hub = Hub::new(prism.clone(), [other.clone()], &config, bridge.sessions.clone());
        let server = Arc::new(DaemonSnapshot {
            config,
            destinations: BTreeMap::from([(own_server::NAME.to_owned(), prism), ("other".to_owned(), other)]),
            root: None,
            hub,
            sessions: bridge.sessions.clone(),
            mesh: None,
            calls: Arc::default(),
            gate: None,
            doors: super::GrantDestinations::new(&bridge),
            plains: Arc::default(),
            callers: Arc::default(),
            token: None,
            access,
            life: Arc::new(DaemonLifetime::new(home.path())),
        });
        let sessions = bridge.sessions.clone();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let context =
            DaemonContext { bridge, home: home.path().to_owned(), mesh: None, calls: Arc::default(), gate: None };
        let front = DaemonService::new(server, context);
        tokio::spawn(front.clone().serve_tcp(listener));
        Self { address, front, reach, sessions, cancelled, _home: home }
    }

    /// Sends a request, and gives back the connection.
    async fn send(&self, verb: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Incoming {
        let mut stream = TcpStream::connect(&self.address).await.expect("the front listens");
        let mut text = format!("{verb} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n", self.address);
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        if verb == "POST" {
            text.push_str(&format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len()));
        }
        text.push_str("accept: application/json, text/event-stream\r\n\r\n");
        text.push_str(body);
        stream.write_all(text.as_bytes()).await.expect("the front reads");
        Incoming { stream, read: String::new() }
    }

    /// Posts a message, and reads all that comes.
    async fn post(&self, path: &str, headers: &[(&str, &str)], message: &Value) -> String {
        self.send("POST", path, headers, &message.to_string()).await.rest().await
    }

    /// Opens a session. Returns its id.
    async fn initialize(&self, path: &str, headers: &[(&str, &str)], version: &str) -> String {
        let params =
            json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "it", "version": "1"}});
        let answer = self.post(path, headers, &request("initialize", params)).await;
        let id = answer.split("mcp-session-id: ").nth(1).and_then(|rest| rest.lines().next());
        id.unwrap_or_else(|| panic!("no session: {answer}")).trim().to_owned()
    }
}

/// A response that is being read.
struct Incoming {
    stream: TcpStream,
    read: String,
}

impl Incoming {
    async fn rest(mut self) -> String {
        let mut bytes = Vec::new();
        timeout(SOON, self.stream.read_to_end(&mut bytes)).await.expect("an end").expect("a response");
        self.read + &String::from_utf8_lossy(&bytes)
    }

    /// Reads until this has come. Returns all that came before it.
    async fn until(&mut self, text: &str) -> String {
        let read = async {
            while !self.read.contains(text) {
                let mut bytes = [0; 4096];
                match self.stream.read(&mut bytes).await {
                    Ok(count @ 1..) => self.read.push_str(&String::from_utf8_lossy(&bytes[..count])),
                    _ => panic!("{text:?} is not in {:?}", self.read),
                }
            }
        };
        timeout(SOON, read).await.unwrap_or_else(|_| panic!("{text:?} has not come"));
        let (before, after) = self.read.split_once(text).expect("it has come");
        let (before, after) = (before.to_owned(), after.to_owned());
        self.read = after;
        before
    }
}

fn request(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

fn modern_meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "modern-it", "version": "1"},
    })
}

/// The headers that a modern request must have.
fn modern_headers<'a>(method: &'a str, name: Option<&'a str>) -> Vec<(&'a str, &'a str)> {
    let mut headers = vec![("mcp-protocol-version", MODERN), ("mcp-method", method)];
    headers.extend(name.map(|name| ("mcp-name", name)));
    headers
}
