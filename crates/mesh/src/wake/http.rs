//! One request to a server on this machine, on a connection of its own: rings are too rare to keep any. No redirects,
//! no TLS; what an answer means is for the caller. Deadlines too: before there is a [`LoopbackConnection`] nothing was asked.

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::{
    Method, Request,
    client::conn::http1,
    header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue},
};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::task::JoinHandle;

use super::loopback::LoopbackServer;

/// What is read of an answer. A longer one is cut off, and is none.
const MAX_ANSWER_BYTES: usize = 1 << 20;

pub(super) struct LoopbackResponse {
    pub(super) status: u16,
    /// What it said; `null` if that was no JSON.
    pub(super) body: Value,
}

pub(super) enum LoopbackError {
    /// There was no connection.
    Unreachable(std::io::Error),
    /// There was one, and no answer.
    Cut,
}

/// A connection that one request can go down.
pub(super) struct LoopbackConnection<'a> {
    server: &'a LoopbackServer,
    sender: http1::SendRequest<Full<Bytes>>,
    _driver: ConnectionTask,
}

/// Ends the connection's task with whoever waits for it.
struct ConnectionTask(JoinHandle<()>);

impl Drop for ConnectionTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

// === impl LoopbackConnection ===

impl<'a> LoopbackConnection<'a> {
    pub(super) async fn open(server: &'a LoopbackServer) -> Result<Self, LoopbackError> {
        let stream = server.connect().await.map_err(LoopbackError::Unreachable)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(|_| LoopbackError::Cut)?;
        let driver = tokio::spawn(async move {
            let _ = connection.await;
        });
        Ok(Self { server, sender, _driver: ConnectionTask(driver) })
    }

    /// Asks, and reads all of the answer.
    pub(super) async fn ask(
        mut self,
        method: Method,
        path: &str,
        authorization: Option<&HeaderValue>,
        body: Option<&Value>,
    ) -> Result<LoopbackResponse, LoopbackError> {
        let bytes = body.map(|body| Bytes::from(body.to_string())).unwrap_or_default();
        let mut request = Request::new(Full::new(bytes));
        *request.method_mut() = method;
        *request.uri_mut() = format!("{}{path}", self.server.path).parse().map_err(|_| LoopbackError::Cut)?;
        let host = HeaderValue::from_str(&self.server.authority()).map_err(|_| LoopbackError::Cut)?;
        request.headers_mut().insert(HOST, host);
        if body.is_some() {
            request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        if let Some(value) = authorization {
            request.headers_mut().insert(AUTHORIZATION, value.clone());
        }
        let response = self.sender.send_request(request).await.map_err(|_| LoopbackError::Cut)?;
        let status = response.status().as_u16();
        let body =
            Limited::new(response.into_body(), MAX_ANSWER_BYTES).collect().await.map_err(|_| LoopbackError::Cut)?;
        Ok(LoopbackResponse { status, body: serde_json::from_slice(&body.to_bytes()).unwrap_or(Value::Null) })
    }
}
