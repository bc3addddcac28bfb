//! The holder's socket, from the holder's side: commands out; results, progress and events in.

use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use futures_util::{SinkExt, StreamExt};
use hyper::Uri;
use prism_api::{
    refusal::ToldRefusal,
    socket::{CommandOutcome, CommandProgress, HolderCommand, HolderEvent, HolderMessage},
};
use serde_json::{Map, Value};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, UnixStream},
    time::timeout,
};
use tokio_tungstenite::{
    WebSocketStream, client_async_with_config,
    tungstenite::{self, Message, client::IntoClientRequest, protocol::WebSocketConfig},
};

use super::{AgentContext, kept::SavedSession, open};
use crate::cli::{say, verbs::NOT_RUNNING};
use prism_config::{Env, home, registration::Registration};

/// How long the daemon may take to let us in.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// How long nothing may come: the daemon asks every 20 s whether we are there.
const MAX_SILENCE: Duration = Duration::from_secs(60);
/// The longest message that is read: a file of 5 MiB, written as JSON.
const MAX_MESSAGE: usize = 64 << 20;
const CLOSE_WITHIN: Duration = Duration::from_secs(1);

/// A socket that is open.
pub(super) struct AgentSocket {
    stream: WebSocketStream<Box<dyn SocketStream>>,
    last: u64,
    kept: SavedSession,
}

pub(super) trait SocketStream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> SocketStream for T {}

/// What the daemon says.
#[derive(Debug)]
pub(super) enum SocketMessage {
    /// What came of the command of that number.
    Result {
        id: u64,
        result: Result<Value, ToldRefusal>,
    },
    /// How far it is.
    Progress(String),
    Event(HolderEvent),
}

/// No daemon runs. What a shell is told then is another than of other trouble.
#[derive(Debug, thiserror::Error)]
#[error("Prism is not running\n  fix: prism serve --detach, then prism agent open")]
pub(super) struct DaemonNotRunning;

impl DaemonNotRunning {
    pub(super) const CODE: u8 = NOT_RUNNING;
}

impl AgentSocket {
    /// Opens the socket of the session that is kept.
    pub(super) async fn open(around: &AgentContext<'_>) -> anyhow::Result<Self> {
        let kept = open::current(around).await?;
        let Some(given) = &kept.given else { bail!(super::kept::NONE) };
        let (pipe, authority) = pipe(around.env).await?;
        let mut request = format!("ws://{authority}/mcp/session/{}", given.session_id).into_client_request()?;
        let mut bearer = hyper::header::HeaderValue::from_str(&format!("Bearer {}", given.token()?.expose()))?;
        bearer.set_sensitive(true);
        request.headers_mut().insert(hyper::header::AUTHORIZATION, bearer);
        let config = WebSocketConfig::default().max_message_size(Some(MAX_MESSAGE)).max_frame_size(Some(MAX_MESSAGE));
        let opening = timeout(CONNECT_WITHIN, client_async_with_config(request, pipe, Some(config))).await;
        let (stream, _) = match opening.context("the daemon does not answer\n  fix: prism doctor")? {
            Ok(opened) => opened,
            Err(tungstenite::Error::Http(response)) => {
                bail!("the daemon refuses the connection (HTTP {})\n  fix: prism doctor", response.status().as_u16())
            }
            Err(error) => return Err(anyhow!(error).context("cannot open the session\n  fix: prism status")),
        };
        let mut socket = Self { stream, last: 0, kept };
        match socket.next(around).await? {
            SocketMessage::Event(_) => Ok(socket),
            SocketMessage::Result { .. } | SocketMessage::Progress(_) => {
                bail!("the daemon is of another version\n  fix: prism restart")
            }
        }
    }

    pub(super) fn kept(&self) -> &SavedSession {
        &self.kept
    }

    /// Asks for something; returns the number of it.
    pub(super) async fn send(&mut self, verb: &str, args: Map<String, Value>) -> anyhow::Result<u64> {
        self.last += 1;
        let (kind, action) = ("cmd".to_owned(), verb.to_owned());
        let command = serde_json::to_string(&HolderCommand { kind, id: self.last.into(), action, args })?;
        let sent = timeout(MAX_SILENCE, self.stream.send(Message::text(command))).await;
        sent.context("the daemon does not read\n  fix: prism status")?.context("the connection broke")?;
        Ok(self.last)
    }

    /// What the daemon says next. Cancel safe.
    pub(super) async fn next(&mut self, around: &AgentContext<'_>) -> anyhow::Result<SocketMessage> {
        loop {
            let heard = timeout(MAX_SILENCE, self.stream.next()).await;
            let heard = heard.context("the daemon has gone silent\n  fix: prism status")?;
            let text = match heard {
                Some(Ok(Message::Text(text))) => text,
                Some(Ok(Message::Close(frame))) => {
                    let (code, why) = frame.map_or((1005, String::new()), |frame| {
                        (u16::from(frame.code), frame.reason.as_str().to_owned())
                    });
                    return Err(self.closed(code, &why, around.env));
                }
                Some(Ok(_)) => continue,
                Some(Err(error)) => return Err(anyhow!(error).context("the connection broke\n  fix: prism status")),
                None => return Err(self.closed(1006, "", around.env)),
            };
            match serde_json::from_str(&text).context("the daemon said what this cannot read")? {
                HolderMessage::Result { id, outcome } => {
                    let result = match outcome {
                        CommandOutcome::Ok(data) => Ok(data),
                        CommandOutcome::Error(refusal) => Err(refusal),
                    };
                    return Ok(SocketMessage::Result { id: id.as_u64().unwrap_or_default(), result });
                }
                HolderMessage::Progress { data, .. } => return Ok(SocketMessage::Progress(progress(&data))),
                HolderMessage::Event(event) => return Ok(SocketMessage::Event(event)),
                HolderMessage::Unknown => {}
            }
        }
    }

    /// Ends in good order.
    pub(super) async fn close(mut self) {
        let _ = timeout(CLOSE_WITHIN, self.stream.close(None)).await;
    }

    /// Why it was closed, and what to do. A session that is over is forgotten.
    fn closed(&self, code: u16, why: &str, env: &Env) -> anyhow::Error {
        let forget = || {
            if let Err(error) = self.kept.forget(env) {
                say::warning(&format!("{error:#}"));
            }
        };
        match code {
            4000 => {
                forget();
                anyhow!("the grant has expired\n  fix: prism agent open")
            }
            4001 => {
                forget();
                anyhow!("the grant was revoked\n  fix: prism agent open, if you still need it")
            }
            1008 => {
                forget();
                anyhow!("the session is not known to this daemon: {why}\n  fix: prism agent open")
            }
            4002 => anyhow!("closed: {why}\n  fix: prism agent verbs shows what is granted"),
            1001 => anyhow!("Prism is stopping\n  fix: prism serve --detach, then try again"),
            code => anyhow!("the connection was closed ({code}) {why}\n  fix: prism status"),
        }
    }
}

fn progress(CommandProgress { message, done, total }: &CommandProgress) -> String {
    match (done, total) {
        (Some(done), Some(total)) => format!("{done}/{total} {message}"),
        _ => message.clone(),
    }
}

/// The way to the daemon, and what it is called there.
async fn pipe(env: &Env) -> anyhow::Result<(Box<dyn SocketStream>, String)> {
    let url = match env.var("PRISM_URL") {
        Some(url) => url.to_str().ok_or_else(|| anyhow!("PRISM_URL is no URL"))?.trim_end_matches('/').to_owned(),
        None => {
            let daemon = Registration::alive(&home::folder(env)?).ok_or(DaemonNotRunning)?;
            if let Some(socket) = daemon.socket.filter(|socket| socket.exists()) {
                let stream = UnixStream::connect(&socket).await.map_err(|_| DaemonNotRunning)?;
                return Ok((Box::new(stream), "localhost".to_owned()));
            }
            daemon.url
        }
    };
    let parsed: Uri = url.parse().with_context(|| format!("{url:?} is no URL"))?;
    let authority = parsed.authority().filter(|_| parsed.scheme_str() == Some("http"));
    let authority = authority.ok_or_else(|| anyhow!("{url:?} is no http URL\n  fix: PRISM_URL=http://HOST:PORT"))?;
    let (host, port) = (authority.host().trim_matches(['[', ']']), authority.port_u16().unwrap_or(80));
    let connecting = timeout(CONNECT_WITHIN, TcpStream::connect((host, port))).await;
    let stream = connecting.map_err(|_| DaemonNotRunning)?.map_err(|_| DaemonNotRunning)?;
    Ok((Box::new(stream), authority.to_string()))
}
