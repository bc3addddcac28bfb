//! What a watchdog asks: are you alive, are you ready, how are you.

use std::time::Duration;

use hyper::{
    Response, StatusCode,
    header::{CONTENT_TYPE, HeaderValue},
};
use prism_core::mcp::{Answer, Refusal};
use tokio::{sync::oneshot, time::timeout};

use super::{Server, body::Body, fault::json};
use crate::drive::{Command, Destination, Head};

/// How long a server may take to answer a ping before it counts as not ready.
const PING_TIMEOUT: Duration = Duration::from_secs(2);

pub(super) fn healthz() -> Response<Body> {
    json(StatusCode::OK, r#"{"status":"alive"}"#.to_owned())
}

/// Whether the daemon and its servers can do their work.
pub(super) struct Readiness {
    ready: bool,
    destinations: Vec<(String, &'static str)>,
    /// What the hub cannot show, and why.
    unavailable: Vec<(String, String)>,
}

/// Every server that runs must answer a ping. One that does not run is started by its first client.
pub(super) async fn readiness(server: &Server) -> Readiness {
    let mut destinations = Vec::new();
    for destination in server.configured() {
        destinations.push((destination.config().name.clone(), state(destination).await));
    }
    let ready = !server.is_stopping() && destinations.iter().all(|(_, state)| *state != "silent");
    let known = server.hub.overview().into_iter();
    let unavailable = known.filter_map(|known| Some((known.name, known.why?))).collect();
    Readiness { ready, destinations, unavailable }
}

impl Readiness {
    pub(super) fn in_short(&self) -> Response<Body> {
        self.response(&serde_json::json!({"status": self.word()}))
    }

    pub(super) fn in_detail(&self) -> Response<Body> {
        let states: serde_json::Map<_, _> =
            self.destinations.iter().map(|(name, state)| (name.clone(), (*state).into())).collect();
        let mut body = serde_json::json!({"status": self.word(), "destinations": states});
        if !self.unavailable.is_empty() {
            let why = self.unavailable.iter().map(|(name, why)| (name.clone(), why.clone().into()));
            body["unavailable"] = why.collect::<serde_json::Map<_, _>>().into();
        }
        self.response(&body)
    }

    fn word(&self) -> &'static str {
        if self.ready { "ready" } else { "not ready" }
    }

    fn response(&self, body: &serde_json::Value) -> Response<Body> {
        json(if self.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, body.to_string())
    }
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
            Ok(Some(Head::Answer(Answer::Message(_)))) => state = "answers",
            // It does not even read what it is sent.
            Ok(Some(Head::Refused(Refusal::Stuck))) | Err(_) => return "silent",
            Ok(_) => {}
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
