//! The verbs of the mesh, as the commands ask them of the daemon: `POST /prism/mesh/VERB`, the page of everything, and
//! the events. What is asked, and what is made of the answer, is each command's own affair.

use std::{ops::Deref, path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use anyhow::anyhow;
use bytes::Bytes;
use hyper::{
    HeaderMap, Method, Response, Uri,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue, USER_AGENT},
};
use prism_api::mesh::{MeshOverview, MeshVerb};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{DeserializeOwned, Error as _, IgnoredAny},
};
use serde_json::Value;
use tokio::time::timeout;

use super::{daemon, say, start};
use prism_config::{
    Env,
    home::{self, Token},
    registration::Registration,
};
use prism_mcp::remote::{
    RemoteFailure, RemoteTarget,
    pool::PooledBody,
    reading::{self, EventReader, ResponseContent, StreamPiece},
};

/// Who it is when nobody says.
pub(super) const PERSON: &str = "person";
/// What commands that only look exit with when there is no daemon, as `prism status` does.
pub(super) const NOT_RUNNING: u8 = 3;
/// How long a verb may take that waits for nobody.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
/// The longest answer that is read. A page of 200 signals is far below it.
const MAX_ANSWER_BYTES: usize = 32 << 20;
/// How long the head of an event stream may take.
const STREAM_PATIENCE: Duration = Duration::from_secs(5);

/// The mesh of a daemon.
pub(super) struct MeshClient {
    target: Arc<RemoteTarget>,
    token: Token,
}

/// Why a verb has no result.
#[derive(Debug, thiserror::Error)]
pub(super) enum DaemonCallError {
    /// Nobody is there, or the connection broke.
    #[error("the daemon cannot be reached: {0}")]
    Away(String),
    #[error("the daemon did not answer within {} s\n  fix: prism doctor", .0.as_secs())]
    Late(Duration),
    #[error("{message}{}", hint(code))]
    Refused { code: String, message: String },
    #[error("the daemon's answer cannot be read: {0}\n  fix: an older Prism is replaced by `prism restart`")]
    Strange(String),
}

/// An answer as it is read, and as it came: programs get it to the letter, whatever a newer daemon says in it.
#[derive(Debug)]
pub(super) struct Answered<T> {
    read: T,
    pub(super) raw: Value,
}

/// What a verb answers with: the result, or one row after the other.
pub(super) enum VerbReply<T> {
    Result(T),
    Rows(Box<EventFeed>),
}

/// Events that come as they happen.
pub(super) struct EventFeed(EventReader);

/// What is next on a stream of events.
pub(super) enum FeedItem {
    Event { name: String, data: Value },
    End,
}

/// What a person can do about a refusal, by its code.
fn hint(code: &str) -> &'static str {
    match code {
        "unknown_agent" => "\n  fix: prism mesh --once shows who is there",
        "unknown_signal" => "\n  fix: prism signals shows them with their ids",
        "unauthorized" => {
            "\n  fix: set PRISM_HOME (or PRISM_API_KEY) as it was set where the daemon was started, or stop it"
        }
        "no_mesh" => "\n  fix: an older Prism is replaced by `prism restart`",
        _ => "",
    }
}

/// Says that there is no daemon.
pub(super) fn say_not_running() -> ExitCode {
    say::note("Prism is not running");
    say::note("  fix: prism serve --detach");
    ExitCode::from(NOT_RUNNING)
}

/// Returns whom a command acts for: as it was said, or as the environment of an agent says.
pub(super) fn acting(named: Option<&str>, env: &Env) -> Option<String> {
    let from_env = || env.var("PRISM_AGENT").and_then(|name| name.to_str());
    named.or_else(from_env).map(|name| name.trim().to_lowercase()).filter(|name| !name.is_empty())
}

// === impl MeshClient ===

impl MeshClient {
    /// Returns the mesh of the daemon, which is started if there is none. Blocks until it answers.
    pub(super) fn started(env: &Env) -> anyhow::Result<Self> {
        let existing = home::existing_token(env)?;
        if let Some(elsewhere) = existing.and_then(|token| Self::elsewhere(env, &token).transpose()) {
            return elsewhere;
        }
        let home = daemon::home(env)?;
        let daemon = start::ensure_running(env, &home)?;
        let (token, _) = home.token()?;
        Self::at(daemon, token)
    }

    /// Returns the mesh of the daemon, if there is one. Looks at files only.
    pub(super) fn running(env: &Env) -> anyhow::Result<Option<Self>> {
        // A daemon that lives has made its token.
        home::existing_token(env)?.map_or(Ok(None), |token| Self::shown(env, token))
    }

    /// Returns the daemon that runs, to be shown this secret.
    pub(super) fn shown(env: &Env, token: Token) -> anyhow::Result<Option<Self>> {
        if let Some(elsewhere) = Self::elsewhere(env, &token)? {
            return Ok(Some(elsewhere));
        }
        let Some(daemon) = Registration::alive(&home::folder(env)?) else { return Ok(None) };
        Self::at(daemon, token).map(Some)
    }

    /// Returns the same daemon, to be shown the person's secret; `None` where that cannot be read, or is for another daemon.
    pub(super) fn as_person(&self, env: &Env) -> Option<Self> {
        // The file is of the daemon of this home; the variable, of whichever daemon the environment speaks of.
        let fits = env.var("PRISM_URL").is_none() || env.var("MCP_TOKEN").is_some();
        let token = home::existing_management(env).ok().flatten().filter(|_| fits)?;
        Some(Self { target: self.target.clone(), token })
    }

    /// A daemon that need not be looked for, as with `prism stdio`.
    fn elsewhere(env: &Env, token: &Token) -> anyhow::Result<Option<Self>> {
        let Some(url) = env.var("PRISM_URL") else { return Ok(None) };
        let url = url.to_str().ok_or_else(|| anyhow!("PRISM_URL is no URL"))?;
        Self::new(url.trim_end_matches('/'), None, token.clone()).map(Some)
    }

    /// The socket is preferred: it needs no port, and a port may be somebody else's tomorrow.
    fn at(daemon: Registration, token: Token) -> anyhow::Result<Self> {
        Self::new(&daemon.url, daemon.socket.filter(|socket| socket.exists()), token)
    }

    fn new(base: &str, socket: Option<PathBuf>, token: Token) -> anyhow::Result<Self> {
        let target = match socket {
            Some(socket) => RemoteTarget::over_socket(socket, "http://localhost/", Vec::new(), MAX_ANSWER_BYTES),
            None => RemoteTarget::new(&format!("{base}/"), Vec::new(), None, MAX_ANSWER_BYTES),
        };
        Ok(Self { target: target?, token })
    }

    /// Calls a verb.
    pub(super) async fn call<T: DeserializeOwned>(
        &self,
        verb: MeshVerb,
        arguments: &impl Serialize,
        patience: Duration,
    ) -> Result<T, DaemonCallError> {
        self.post(&format!("/prism/mesh/{}", verb.name()), arguments, patience).await
    }

    /// Calls a verb that may answer row by row.
    pub(super) async fn told<T: DeserializeOwned>(
        &self,
        verb: MeshVerb,
        arguments: &impl Serialize,
    ) -> Result<VerbReply<T>, DaemonCallError> {
        let body = serde_json::to_vec(arguments)
            .map(Bytes::from)
            .map_err(|error| DaemonCallError::Strange(error.to_string()))?;
        let response = self.send(Method::POST, &format!("/prism/mesh/{}", verb.name()), body).await?;
        match reading::content(response.headers()) {
            ResponseContent::Events => {
                Ok(VerbReply::Rows(Box::new(EventFeed(EventReader::new(response.into_body(), MAX_ANSWER_BYTES)))))
            }
            _ => result(response).await.map(VerbReply::Result),
        }
    }

    /// Returns all there is to see, in one page.
    pub(super) async fn page(&self) -> Result<Answered<MeshOverview>, DaemonCallError> {
        self.get("/prism/mesh").await
    }

    /// Opens the stream of what happens.
    pub(super) async fn events(&self) -> Result<EventFeed, DaemonCallError> {
        self.events_at("/prism/mesh/events").await
    }

    /// Asks for a page of the daemon's.
    pub(super) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, DaemonCallError> {
        let asking = async { result(self.send(Method::GET, path, Bytes::new()).await?).await };
        within(PATIENCE, asking).await
    }

    /// Tells a page of the daemon's something.
    pub(super) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
        patience: Duration,
    ) -> Result<T, DaemonCallError> {
        let body =
            serde_json::to_vec(body).map(Bytes::from).map_err(|error| DaemonCallError::Strange(error.to_string()))?;
        let asking = async { result(self.send(Method::POST, path, body).await?).await };
        within(patience, asking).await
    }

    /// Opens a stream of events.
    pub(super) async fn events_at(&self, path: &str) -> Result<EventFeed, DaemonCallError> {
        let opening = async {
            let response = self.send(Method::GET, path, Bytes::new()).await?;
            match reading::content(response.headers()) {
                ResponseContent::Events => Ok(EventFeed(EventReader::new(response.into_body(), MAX_ANSWER_BYTES))),
                _ => Err(DaemonCallError::Strange("it is no stream of events".to_owned())),
            }
        };
        within(STREAM_PATIENCE, opening).await
    }

    async fn send(&self, method: Method, path: &str, body: Bytes) -> Result<Response<PooledBody>, DaemonCallError> {
        let mut parts = self.target.url.clone().into_parts();
        parts.path_and_query = path.parse().ok();
        let url = Uri::from_parts(parts).map_err(|error| DaemonCallError::Strange(error.to_string()))?;
        let sent = self.target.send(method, &url, || self.headers(), body).await;
        let (_, response) = sent.map_err(trouble)?;
        let status = response.status().as_u16();
        match status {
            200..=299 => Ok(response),
            _ => Err(refusal(status, response).await),
        }
    }

    fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("prism-cli/", env!("CARGO_PKG_VERSION"))));
        if let Ok(mut value) = HeaderValue::from_str(&format!("Bearer {}", self.token.expose())) {
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        headers
    }
}

// === impl Answered ===

impl<T> Answered<T> {
    pub(super) fn new(read: T, raw: Value) -> Self {
        Self { read, raw }
    }
}

impl<T> Deref for Answered<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.read
    }
}

impl<T> Serialize for Answered<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.raw.serialize(to)
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Answered<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let raw = Value::deserialize(from)?;
        let read = T::deserialize(&raw).map_err(D::Error::custom)?;
        Ok(Self { read, raw })
    }
}

// === impl EventFeed ===

impl EventFeed {
    /// The next event whose data is JSON. Cancel safe.
    pub(super) async fn next(&mut self) -> FeedItem {
        loop {
            match self.0.next().await {
                StreamPiece::Event { name, data } => {
                    let Ok(data) = serde_json::from_slice(&data) else { continue };
                    let name = name.map_or_else(|| "message".to_owned(), String::from);
                    return FeedItem::Event { name, data };
                }
                StreamPiece::TooLong => {}
                StreamPiece::End => return FeedItem::End,
            }
        }
    }
}

async fn within<T>(
    patience: Duration,
    asking: impl Future<Output = Result<T, DaemonCallError>>,
) -> Result<T, DaemonCallError> {
    timeout(patience, asking).await.unwrap_or(Err(DaemonCallError::Late(patience)))
}

/// Reads a result. What was waited for has its status before its end is known, so that it may be a refusal after all.
async fn result<T: DeserializeOwned>(response: Response<PooledBody>) -> Result<T, DaemonCallError> {
    let body = reading::whole(response.into_body(), MAX_ANSWER_BYTES).await.map_err(trouble)?;
    // A long poll that the daemon's end cut short has had nothing but blanks.
    if body.trim_ascii().is_empty() {
        return Err(DaemonCallError::Away("the answer ended before it began".to_owned()));
    }
    match refused(&body) {
        Some(refused) => Err(refused),
        None => serde_json::from_slice(&body).map_err(|error| DaemonCallError::Strange(error.to_string())),
    }
}

async fn refusal(status: u16, response: Response<PooledBody>) -> DaemonCallError {
    let body = reading::whole(response.into_body(), MAX_ANSWER_BYTES).await.unwrap_or_default();
    let said = refused(&body);
    let refused = |code: &str, message: String| DaemonCallError::Refused { code: code.to_owned(), message };
    match (said, status) {
        (Some(said), _) => said,
        (None, 401 | 403) => refused("unauthorized", "the daemon has another token than the one here".to_owned()),
        (None, 404 | 405) => refused("no_mesh", "the daemon that runs knows no mesh".to_owned()),
        (None, status) => refused("refused", format!("the daemon answers HTTP {status}")),
    }
}

/// An answer that may be a refusal: the daemon's own, or a JSON-RPC error, as the door gives it, which has a number for a code.
#[derive(Deserialize)]
struct Refusing {
    error: RefusedWith,
}

#[derive(Deserialize)]
struct RefusedWith {
    #[serde(default)]
    code: RefusalCode,
    message: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum RefusalCode {
    Word(String),
    Other(IgnoredAny),
}

impl Default for RefusalCode {
    fn default() -> Self {
        Self::Other(IgnoredAny)
    }
}

/// The refusal that an answer is, if it is one.
fn refused(body: &[u8]) -> Option<DaemonCallError> {
    let Refusing { error: RefusedWith { code, message } } = serde_json::from_slice(body).ok()?;
    let code = match code {
        RefusalCode::Word(code) => code,
        RefusalCode::Other(_) => "refused".to_owned(),
    };
    Some(DaemonCallError::Refused { code, message })
}

fn trouble(failure: RemoteFailure) -> DaemonCallError {
    match failure {
        RemoteFailure::Unreachable { why } => DaemonCallError::Away(why),
        RemoteFailure::Cut => DaemonCallError::Away("the connection broke".to_owned()),
        other => DaemonCallError::Strange(other.to_string()),
    }
}
