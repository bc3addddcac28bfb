//! The holder of a grant, on a WebSocket. It asks for everything, or for some scopes, and approves itself with the person's secret.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context, anyhow, bail, ensure};
use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::{
    WebSocketStream, client_async_with_config,
    tungstenite::{Message, client::IntoClientRequest, protocol::WebSocketConfig},
};

pub(super) struct Holder {
    socket: WebSocketStream<TcpStream>,
    commands: u64,
    /// Where the person is asked, and by what they are known there.
    url: String,
    management: String,
}

/// How long something may take until it waits for the person.
const ASKED: Duration = Duration::from_secs(20);

impl Holder {
    pub(super) async fn enter(url: &str, home: &Path, root: &Path) -> anyhow::Result<Self> {
        Self::enter_for(&["*"], url, home, root).await
    }

    pub(super) async fn enter_for(scopes: &[&str], url: &str, home: &Path, root: &Path) -> anyhow::Result<Self> {
        let secret = |name: &str| {
            let file = home.join(name);
            fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))
        };
        let ask = json!({"agent_id": "bench", "scopes": scopes, "roots": [root], "reason": "to measure"});
        // The bench's daemon has its clients' token from its environment.
        let token = std::env::var("PRISM_API_KEY").or_else(|_| secret("http-mcp-token"))?;
        let asked = post(url, "/mcp/request_access", token.trim(), &ask).await?;
        let approve = json!({"request_id": asked["request_id"]});
        let management = secret("management-token")?.trim().to_owned();
        let granted = post(url, "/mcp/approve", &management, &approve).await?;
        let (id, token) = (granted["session_id"].as_str(), granted["session_token"].as_str());
        let (Some(id), Some(token)) = (id, token) else { bail!("not approved: {granted}") };
        let address = url.strip_prefix("http://").context("the URL is of plain HTTP")?;
        let mut request = format!("ws://{address}/mcp/session/{id}").into_client_request()?;
        request.headers_mut().insert("authorization", format!("Bearer {token}").parse()?);
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let config = WebSocketConfig::default().max_message_size(None).max_frame_size(None);
        let (socket, _) = client_async_with_config(request, stream, Some(config)).await?;
        Ok(Self { socket, commands: 0, url: url.to_owned(), management })
    }

    /// Runs a command that the person allows. Returns how long it took from then on.
    pub(super) async fn runs_allowed(&mut self, args: Value) -> anyhow::Result<(Value, Duration)> {
        let id = self.begin("exec_command", args).await?;
        let until = Instant::now() + ASKED;
        let shown = loop {
            let mut told = get(&self.url, "/mcp/confirmations", &self.management).await?;
            match told["confirmations"].get_mut(0) {
                Some(shown) => break shown.take(),
                None => ensure!(Instant::now() < until, "nothing waits for the person"),
            }
        };
        let allow = json!({"confirmation_id": shown["confirmation_id"], "digest": shown["digest"], "allow": true});
        let begun = Instant::now();
        let (url, management) = (self.url.clone(), self.management.clone());
        let ended = async { self.result(&id).await.map(|told| (told, begun.elapsed())) };
        let (ended, _) = tokio::try_join!(ended, post(&url, "/mcp/confirm", &management, &allow))?;
        Ok(ended)
    }

    pub(super) async fn does(&mut self, action: &str, args: Value) -> anyhow::Result<Value> {
        let id = self.begin(action, args).await?;
        self.result(&id).await
    }

    pub(super) async fn begin(&mut self, action: &str, args: Value) -> anyhow::Result<String> {
        self.commands += 1;
        let id = format!("c{}", self.commands);
        let command = json!({"type": "cmd", "id": id, "action": action, "args": args});
        self.socket.send(Message::text(command.to_string())).await?;
        Ok(id)
    }

    pub(super) async fn result(&mut self, id: &str) -> anyhow::Result<Value> {
        loop {
            let mut message = self.next().await?;
            if message["type"] == "result" && message["id"] == id {
                if message["status"] != "ok" {
                    bail!("refused: {}", message["data"]);
                }
                return Ok(message["data"].take());
            }
        }
    }

    /// The next event of that name, and when it came.
    pub(super) async fn event(&mut self, name: &str) -> anyhow::Result<(Instant, Value)> {
        loop {
            let mut message = self.next().await?;
            let at = Instant::now();
            if message["type"] == "event" && message["data"]["event"] == name {
                return Ok((at, message["data"].take()));
            }
        }
    }

    async fn next(&mut self) -> anyhow::Result<Value> {
        loop {
            match self.socket.next().await {
                Some(Ok(Message::Text(text))) => return Ok(serde_json::from_str(&text)?),
                Some(Ok(Message::Close(frame))) => bail!("closed: {frame:?}"),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error.into()),
                None => bail!("the socket has ended"),
            }
        }
    }
}

async fn get(url: &str, path: &str, secret: &str) -> anyhow::Result<Value> {
    let request = Request::get(format!("{url}{path}")).header("authorization", format!("Bearer {secret}"));
    send(path, request.body(Full::default())?).await
}

async fn post(url: &str, path: &str, secret: &str, body: &Value) -> anyhow::Result<Value> {
    let request = Request::post(format!("{url}{path}"))
        .header("authorization", format!("Bearer {secret}"))
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(body.to_string())))?;
    send(path, request).await
}

async fn send(path: &str, request: Request<Full<Bytes>>) -> anyhow::Result<Value> {
    let client = Client::builder(TokioExecutor::new()).build_http();
    let response = client.request(request).await?;
    let status = response.status();
    let told: Value = serde_json::from_slice(&response.into_body().collect().await?.to_bytes())?;
    if status.is_success() { Ok(told) } else { Err(anyhow!("{path}: {status} {told}")) }
}
