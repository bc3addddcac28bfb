//! How a server is first spoken to: which era it is of, and what it says of itself (mcp-eras 4.1).

use std::{
    sync::{Arc, Mutex, atomic::AtomicU64},
    time::Duration,
};

use bytes::Bytes;
use hyper::{Method as Verb, header::HeaderValue};
use prism_core::mcp::{Era, Revision};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{
    ClientError, HttpEndpoint, MODERN, McpClient, QuestionHandler, RpcResult, ServerDescription, SseItem,
    TrafficObserver, parse,
};
use crate::remote::{
    RemoteTarget, RemoteTargetError,
    headers::{ProtocolHeaders, SESSION_ID},
    reading::ResponseContent,
};

/// The largest message that is read.
const MAX_MESSAGE_BYTES: usize = 64 << 20;

const META: &str = "io.modelcontextprotocol/";

/// How long a server of the older transport may take to say so.
const ENDPOINT: Duration = Duration::from_secs(2);

/// Headers of the first answer that are worth a line in a bug report.
const TELLING: [&str; 9] = [
    "server",
    "via",
    "content-type",
    "content-encoding",
    "cache-control",
    "x-accel-buffering",
    "transfer-encoding",
    "mcp-protocol-version",
    "access-control-allow-origin",
];

/// Whom to speak to, and how.
pub struct ClientOptions {
    pub url: String,
    /// What goes with every request.
    pub headers: Vec<(String, String)>,
    pub wanted: RevisionChoice,
    pub patience: Duration,
    pub manners: QuestionHandler,
    /// What we say that we can be asked, if that is more than who answers would say.
    pub capabilities: Option<Value>,
    pub level: Option<&'static str>,
    pub watch: Arc<dyn TrafficObserver>,
}

/// Which revision to speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RevisionChoice {
    /// The modern one if the server has it, else the newest of the others.
    Auto,
    Modern,
    Legacy(Revision),
}

impl RevisionChoice {
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Modern => MODERN,
            Self::Legacy(revision) => revision.name(),
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        match name {
            "auto" => Some(Self::Auto),
            MODERN => Some(Self::Modern),
            _ => Revision::named(name).map(Self::Legacy),
        }
    }

    /// Every revision, the oldest first.
    pub fn all() -> Vec<Self> {
        Revision::ALL.into_iter().map(Self::Legacy).chain([Self::Modern]).collect()
    }
}

/// Puts what a modern request says of its client into its params.
pub(super) fn envelop(params: &mut Value, capabilities: &Value, level: Option<&str>) {
    let meta = &mut params["_meta"];
    meta[format!("{META}protocolVersion")] = MODERN.into();
    meta[format!("{META}clientCapabilities")] = capabilities.clone();
    meta[format!("{META}clientInfo")] = info();
    if let Some(level) = level {
        meta[format!("{META}logLevel")] = level.into();
    }
}

fn info() -> Value {
    json!({"name": "prism", "version": env!("CARGO_PKG_VERSION")})
}

impl McpClient {
    /// Finds out how the server speaks, and opens a session where there is such a thing.
    pub async fn open(options: ClientOptions) -> Result<Arc<Self>, ClientError> {
        let ClientOptions { url, headers, wanted, patience, manners, capabilities, level, watch } = options;
        let target = RemoteTarget::new(&url, headers, None, MAX_MESSAGE_BYTES).map_err(|error| match error {
            RemoteTargetError::Trust(source) => ClientError::Tls { why: source.to_string() },
            error => ClientError::Unreachable { why: error.to_string() },
        })?;
        let capabilities = capabilities.unwrap_or_else(|| manners.capabilities());
        let mut client = Self {
            wire: HttpEndpoint { target, patience, watch },
            lane: ProtocolHeaders::default(),
            greeting: ServerDescription {
                era: Some(Era::Modern),
                revision: MODERN.to_owned(),
                ..ServerDescription::default()
            },
            manners,
            capabilities,
            level,
            ids: AtomicU64::new(0),
            cancelled: AtomicU64::new(0),
            tool_headers: Mutex::default(),
            listener: Mutex::default(),
        };
        match wanted {
            RevisionChoice::Legacy(revision) => client.initialize(revision).await?,
            RevisionChoice::Modern => client.discover().await?,
            RevisionChoice::Auto => match client.discover().await {
                Ok(()) => {}
                Err(fault) if says_legacy(&fault) => client.initialize(Revision::NEWEST).await?,
                Err(fault) => return Err(fault),
            },
        }
        Ok(Arc::new(client))
    }

    async fn discover(&mut self) -> Result<(), ClientError> {
        let id = self.next_id();
        let message = parse(&self.message(id, "server/discover", json!({})))?;
        self.wire.watch.asks(id, "server/discover");
        let reply = self.wire.post(&message, &[], &self.lane).await?;
        self.wire.watch.head(id, reply.status, reply.kind());
        let headers = telling(&reply.headers);
        let RpcResult { result, .. } = self.answer(id, reply).await?;
        let offered: Vec<String> = texts(&result["supportedVersions"]);
        if !offered.iter().any(|version| version == MODERN) {
            return Err(ClientError::Revision { asked: MODERN.to_owned(), offered });
        }
        let info = &result["_meta"][format!("{META}serverInfo")];
        self.greeting = ServerDescription {
            era: Some(Era::Modern),
            revision: MODERN.to_owned(),
            headers,
            ..greeting(info, &result)
        };
        Ok(())
    }

    async fn initialize(&mut self, revision: Revision) -> Result<(), ClientError> {
        self.greeting.era = Some(Era::Legacy);
        let asked = revision.name();
        let params = json!({"protocolVersion": asked, "capabilities": self.capabilities, "clientInfo": info()});
        let id = self.next_id();
        let message = parse(&self.message(id, "initialize", params))?;
        self.wire.watch.asks(id, "initialize");
        let reply = self.wire.post(&message, &[], &ProtocolHeaders::default()).await?;
        self.wire.watch.head(id, reply.status, reply.kind());
        let (status, headers) = (reply.status, telling(&reply.headers));
        let session = reply.headers.get(SESSION_ID).cloned();
        let result = match self.answer(id, reply).await {
            Ok(outcome) => outcome.result,
            // That is how servers of the older transport answer a POST to the URL of their stream.
            Err(fault) if matches!(status, 400 | 404 | 405) => {
                return Err(if self.names_an_endpoint().await { ClientError::OlderTransport } else { fault });
            }
            Err(fault) => return Err(fault),
        };
        let version = result["protocolVersion"].as_str().unwrap_or_default().to_owned();
        let Some(negotiated) = Revision::named(&version) else {
            return Err(ClientError::Revision { asked: asked.to_owned(), offered: vec![version] });
        };
        // Revisions before that one did not know the header (mcp-eras 1.2).
        let told = negotiated >= Revision::V2025_06_18;
        self.lane = ProtocolHeaders { version: told.then(|| HeaderValue::from_static(negotiated.name())), session };
        self.greeting = ServerDescription {
            era: Some(Era::Legacy),
            revision: version,
            session: self.lane.session.as_ref().map(|id| String::from_utf8_lossy(id.as_bytes()).into_owned()),
            headers,
            ..greeting(&result["serverInfo"], &result)
        };
        self.notify("notifications/initialized", json!({})).await
    }

    async fn answer(&self, id: u64, reply: super::UnreadResponse) -> Result<RpcResult, ClientError> {
        let read = self.read(id, reply).await;
        self.wire.watch.ends(id);
        match read? {
            super::ResponseReading::Answered(outcome) => Ok(outcome),
            super::ResponseReading::Resumable { .. } => Err(ClientError::Cut),
        }
    }

    /// Whether a GET opens a stream that begins as those of 2024-11-05 do.
    async fn names_an_endpoint(&self) -> bool {
        let asking = async {
            let headers = self.wire.headers(&ProtocolHeaders::default(), None);
            let reply = self.wire.send(Verb::GET, headers, Bytes::new()).await.ok()?;
            if !reply.is_success() || reply.content != ResponseContent::Events {
                return None;
            }
            match reply.into_stream().next().await {
                SseItem::Event { name, .. } => name.filter(|name| &**name == "endpoint"),
                _ => None,
            }
        };
        timeout(ENDPOINT, asking).await.is_ok_and(|name| name.is_some())
    }
}

/// Whether an answer to `server/discover` means that there is no such era here. An outage or a wrong token means
/// nothing of the kind.
fn says_legacy(fault: &ClientError) -> bool {
    match fault {
        ClientError::Rpc { code: -32022, data, .. } => {
            !texts(&data["supported"]).iter().any(|version| version.as_str() >= MODERN)
        }
        // A Prism, of a server that it cannot reach.
        ClientError::Rpc { data, .. } if data["reason"].is_string() => false,
        ClientError::Rpc { .. }
        | ClientError::Revision { .. }
        | ClientError::Page { .. }
        | ClientError::NotMcp { .. } => true,
        ClientError::Status { status, .. } => (400..500).contains(status),
        _ => false,
    }
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn greeting(info: &Value, result: &Value) -> ServerDescription {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    ServerDescription {
        name: text(&info["name"]),
        version: text(&info["version"]),
        capabilities: result["capabilities"].clone(),
        instructions: result["instructions"].as_str().map(str::to_owned),
        ..ServerDescription::default()
    }
}

fn telling(headers: &hyper::HeaderMap) -> Vec<(String, String)> {
    let value = |name: &str| Some((name.to_owned(), headers.get(name)?.to_str().ok()?.to_owned()));
    TELLING.into_iter().filter_map(value).collect()
}
