//! JSON-RPC with an app-server over a WebSocket: one question at a time. What it says unasked is not for us.

use std::io;

use futures_util::{SinkExt, StreamExt};
use hyper::header::{AUTHORIZATION, HeaderValue};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::UnixStream,
};
use tokio_tungstenite::{
    WebSocketStream, client_async_with_config,
    tungstenite::{Error, Message, client::IntoClientRequest, error::ProtocolError, protocol::WebSocketConfig},
};

use super::{super::Why, AppServerAddress};

/// The longest message that is read. Nothing that we ask for is near it.
const MAX_MESSAGE_BYTES: usize = 4 << 20;

trait AppServerSocket: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> AppServerSocket for T {}

pub(super) struct AppServerConnection {
    socket: WebSocketStream<Box<dyn AppServerSocket>>,
    last: u64,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum AppServerError {
    /// All is in order, but nobody is there to be woken.
    Nobody(Why),
    /// It said no, in these words.
    Refused(String),
    Broken(Why),
    /// It has what it was asked for, and has not said whether it does it.
    Unanswered(Why),
}

// === impl AppServerConnection ===

impl AppServerConnection {
    pub(super) async fn connect(to: &AppServerAddress, token: Option<&str>) -> Result<Self, AppServerError> {
        let (socket, url) = match to {
            AppServerAddress::Net(server) => {
                let socket = server.connect().await.map(|socket| Box::new(socket) as Box<dyn AppServerSocket>);
                (socket, format!("ws://{}{}/", server.authority(), server.path))
            }
            AppServerAddress::Unix(path) => {
                let socket = UnixStream::connect(path).await.map(|socket| Box::new(socket) as Box<dyn AppServerSocket>);
                (socket, "ws://localhost/".to_owned())
            }
        };
        let socket = socket.map_err(|error| unreachable(&error))?;
        let mut request = url.into_client_request().map_err(|error| broken(&error))?;
        if let Some(token) = token {
            let mut value = HeaderValue::from_str(&format!("Bearer {token}"))
                .map_err(|_| AppServerError::Broken("the token is none that a header can hold".into()))?;
            value.set_sensitive(true);
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        let mut limits = WebSocketConfig::default();
        limits.max_message_size = Some(MAX_MESSAGE_BYTES);
        limits.max_frame_size = Some(MAX_MESSAGE_BYTES);
        match client_async_with_config(request, socket, Some(limits)).await {
            Ok((socket, _)) => Ok(Self { socket, last: 0 }),
            Err(Error::Http(answer)) if matches!(answer.status().as_u16(), 401 | 403) => Err(AppServerError::Broken(
                "the app-server does not take the token: wake.codex_app_server.token_file must be the file of its \
                 --ws-token-file"
                    .into(),
            )),
            Err(Error::Http(answer)) => Err(AppServerError::Broken(
                format!("what listens there is no Codex app-server (HTTP {})", answer.status().as_u16()).into(),
            )),
            Err(error) => Err(broken(&error)),
        }
    }

    /// Asks, and waits for the answer to this.
    pub(super) async fn ask(&mut self, method: &str, params: Value) -> Result<Value, AppServerError> {
        self.last += 1;
        let id = self.last;
        self.say(&json!({ "id": id, "method": method, "params": params })).await?;
        loop {
            let mut answer = self.hear().await?;
            if answer["id"] != id || !answer["method"].is_null() {
                continue;
            }
            let error = &answer["error"];
            if error.is_object() {
                return Err(AppServerError::Refused(
                    error["message"].as_str().unwrap_or("without a reason").to_owned(),
                ));
            }
            return Ok(answer["result"].take());
        }
    }

    pub(super) async fn note(&mut self, method: &str) -> Result<(), AppServerError> {
        self.say(&json!({ "method": method })).await
    }

    async fn say(&mut self, message: &Value) -> Result<(), AppServerError> {
        let sent = self.socket.send(Message::text(message.to_string())).await;
        sent.map_err(|error| broken(&error))
    }

    async fn hear(&mut self) -> Result<Value, AppServerError> {
        loop {
            let text = match self.socket.next().await {
                Some(Ok(Message::Text(text))) => text,
                Some(Ok(Message::Close(_))) | None => return Err(hung_up()),
                // Pings are answered by the socket itself.
                Some(Ok(_)) => continue,
                Some(Err(error)) => return Err(broken(&error)),
            };
            return serde_json::from_str(&text).map_err(|_| {
                AppServerError::Broken("what listens there is no Codex app-server: it speaks no JSON".into())
            });
        }
    }
}

fn unreachable(error: &io::Error) -> AppServerError {
    let why = match error.kind() {
        io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => {
            "no app-server listens there: start codex app-server --listen URL, and Codex with codex --remote URL"
                .to_owned()
        }
        _ => format!("the app-server cannot be reached: {error}"),
    };
    AppServerError::Broken(why.into())
}

fn broken(error: &Error) -> AppServerError {
    match error {
        Error::ConnectionClosed
        | Error::AlreadyClosed
        | Error::Protocol(ProtocolError::ResetWithoutClosingHandshake | ProtocolError::HandshakeIncomplete) => {
            hung_up()
        }
        Error::Io(error) => AppServerError::Broken(format!("the app-server hung up: {error}").into()),
        error => AppServerError::Broken(format!("what listens there is no Codex app-server: {error}").into()),
    }
}

fn hung_up() -> AppServerError {
    AppServerError::Broken("the app-server hung up before it had answered: look at what it printed".into())
}
