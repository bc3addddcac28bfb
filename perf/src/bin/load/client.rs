//! What all loads send their requests with: a bridge to speak to, and one connection to it.

use std::{future::Future, time::Duration};

use anyhow::{Context, bail};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Request, Response, body::Incoming, client::conn::http1::SendRequest};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::Cli;

/// A call that is not answered within this is a hang.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Clone)]
pub(super) struct Target {
    pub(super) authority: String,
    pub(super) path: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) revision: String,
    pub(super) tool: String,
}

impl Target {
    pub(super) fn new(url: &str, cli: &Cli) -> anyhow::Result<Self> {
        let rest = url.strip_prefix("http://").context("an http:// url")?;
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let headers = cli
            .header
            .iter()
            .filter_map(|h| h.split_once(':'))
            .map(|(n, v)| (n.trim().to_owned(), v.trim().to_owned()))
            .collect();
        Ok(Self {
            authority: authority.into(),
            path: format!("/{path}"),
            headers,
            revision: cli.revision.clone(),
            tool: cli.tool.clone(),
        })
    }

    pub(super) fn request(
        &self,
        verb: &str,
        session: Option<&str>,
        body: Bytes,
    ) -> anyhow::Result<Request<Full<Bytes>>> {
        let mut builder = Request::builder()
            .method(verb)
            .uri(&self.path)
            .header("host", &self.authority)
            .header("accept", if verb == "GET" { "text/event-stream" } else { "application/json, text/event-stream" })
            .header("mcp-protocol-version", &self.revision);
        if verb == "POST" {
            builder = builder.header("content-type", "application/json")
        }
        if let Some(session) = session {
            builder = builder.header("mcp-session-id", session)
        }
        if self.is_modern() {
            builder = builder.header("mcp-method", "tools/call").header("mcp-name", &self.tool)
        }
        for (name, value) in &self.headers {
            builder = builder.header(name, value)
        }
        Ok(builder.body(Full::new(body))?)
    }

    /// Without sessions: each request speaks for itself.
    pub(super) fn is_modern(&self) -> bool {
        self.revision.as_str() >= "2026"
    }

    pub(super) fn client(&self) -> Client {
        Client { target: self.clone(), sender: None }
    }

    pub(super) fn call(&self, id: u64, arguments: Value) -> String {
        json!({"jsonrpc":"2.0","id":id,"method":"tools/call","params":{"name":self.tool,"arguments":arguments}})
            .to_string()
    }
}

/// One connection at a time, made when needed and again when the bridge closed it.
pub(super) struct Client {
    pub(super) target: Target,
    pub(super) sender: Option<SendRequest<Full<Bytes>>>,
}

impl Client {
    pub(super) async fn send(
        &mut self,
        verb: &str,
        session: Option<&str>,
        body: Bytes,
    ) -> anyhow::Result<Response<Incoming>> {
        if self.sender.as_ref().is_none_or(|s| s.is_closed()) {
            let stream = TcpStream::connect(&self.target.authority).await?;
            stream.set_nodelay(true)?;
            let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
            tokio::spawn(connection);
            self.sender = Some(sender);
        }
        let request = self.target.request(verb, session, body)?;
        let sender = self.sender.as_mut().context("there is a connection")?;
        sender.ready().await?;
        Ok(sender.send_request(request).await?)
    }

    /// The body of an answer whose status is a success.
    pub(super) async fn post(&mut self, session: Option<&str>, body: String) -> anyhow::Result<Bytes> {
        Ok(self.exchange(session, body).await?.1)
    }

    pub(super) async fn exchange(
        &mut self,
        session: Option<&str>,
        body: String,
    ) -> anyhow::Result<(Option<String>, Bytes)> {
        let outcome = in_time(async {
            let response = self.send("POST", session, body.into()).await?;
            let status = response.status();
            let session = response.headers().get("mcp-session-id").and_then(|v| v.to_str().ok()).map(str::to_owned);
            let body = response.into_body().collect().await?.to_bytes();
            if !status.is_success() {
                bail!("{status}: {}", String::from_utf8_lossy(&body[..body.len().min(300)]))
            }
            Ok((session, body))
        })
        .await;
        if outcome.is_err() {
            self.sender = None
        }
        outcome
    }

    /// Opens a session, where the revision has them: initialize, then notifications/initialized.
    pub(super) async fn open(&mut self) -> anyhow::Result<Option<String>> {
        if self.target.is_modern() {
            return Ok(None);
        }
        let hello = json!({"jsonrpc":"2.0","id":0,"method":"initialize","params":{
            "protocolVersion": self.target.revision, "capabilities": {}, "clientInfo": {"name":"load","version":"0"}}});
        let (session, body) = self.exchange(None, hello.to_string()).await.context("initialize")?;
        if answer_in(&body).is_none_or(|v| v.get("result").is_none()) {
            bail!("initialize: {}", String::from_utf8_lossy(&body[..body.len().min(300)]))
        }
        let note = json!({"jsonrpc":"2.0","method":"notifications/initialized"}).to_string();
        self.post(session.as_deref(), note).await.context("initialized")?;
        Ok(session)
    }

    /// The body of a plain GET.
    pub(super) async fn get(&mut self) -> anyhow::Result<Bytes> {
        in_time(async {
            let response = self.send("GET", None, Bytes::new()).await?;
            let status = response.status();
            let body = response.into_body().collect().await?.to_bytes();
            if !status.is_success() {
                bail!("{status}: {}", String::from_utf8_lossy(&body[..body.len().min(300)]))
            }
            Ok(body)
        })
        .await
    }

    pub(super) async fn listen(&mut self, session: Option<&str>) -> anyhow::Result<Incoming> {
        let response = in_time(self.send("GET", session, Bytes::new())).await.context("GET")?;
        if !response.status().is_success() {
            bail!("GET: {}", response.status())
        }
        Ok(response.into_body())
    }
}

pub(super) async fn in_time<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::time::timeout(PATIENCE, work).await.unwrap_or_else(|_| bail!("no answer in {PATIENCE:?}"))
}

/// The JSON-RPC answer in a body that is JSON or an event stream.
pub(super) fn answer_in(body: &[u8]) -> Option<Value> {
    if let Ok(value) = serde_json::from_slice::<Value>(body) {
        return Some(value);
    }
    std::str::from_utf8(body)
        .ok()?
        .lines()
        .filter_map(|l| l.strip_prefix("data:"))
        .filter_map(|d| serde_json::from_str::<Value>(d.trim()).ok())
        .find(|v| v.get("id").is_some() && (v.get("result").is_some() || v.get("error").is_some()))
}

pub(super) fn count(hay: &[u8], needle: &str) -> usize {
    hay.windows(needle.len()).filter(|w| *w == needle.as_bytes()).count()
}
