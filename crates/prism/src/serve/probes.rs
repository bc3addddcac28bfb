//! What a watchdog asks: are you alive, are you ready, how are you.

use std::time::Duration;

use hyper::{
    Response, StatusCode,
    header::{CONTENT_TYPE, HeaderValue},
};
use tokio::{sync::oneshot, time::timeout};

use super::{Server, body::Body, fault::json};
use crate::drive::{Command, Destination, Head};

/// How long a server may take to answer a ping before it counts as not ready.
const PING_TIMEOUT: Duration = Duration::from_secs(2);

pub(super) fn healthz() -> Response<Body> {
    json(StatusCode::OK, r#"{"status":"alive"}"#.to_owned())
}

/// Every server that runs must answer a ping. One that does not run is started by its first client.
pub(super) async fn readyz(server: &Server) -> Response<Body> {
    let mut states = Vec::new();
    for destination in server.destinations.values() {
        let state = state(destination).await;
        states.push((destination.config().name.clone(), state));
    }
    let ready = !server.is_stopping() && states.iter().all(|(_, state)| *state != "silent");
    let destinations: serde_json::Map<_, _> = states.into_iter().map(|(name, state)| (name, state.into())).collect();
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let word = if ready { "ready" } else { "not ready" };
    json(status, serde_json::json!({"status": word, "destinations": destinations}).to_string())
}

async fn state(destination: &Destination) -> &'static str {
    let mut state = "idle";
    for link in destination.links() {
        let (reply, head) = oneshot::channel();
        let answer = async {
            link.commands.send(Command::Probe { reply }).await.ok()?;
            head.await.ok()
        };
        match timeout(PING_TIMEOUT, answer).await {
            Ok(Some(Head::Answer(_))) => state = "answers",
            Ok(_) => {}
            Err(_) => return "silent",
        }
    }
    state
}

pub(super) fn metrics(server: &Server) -> Response<Body> {
    let mut response = Response::new(Body::from(server.access.metrics.text()));
    let kind = HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}
