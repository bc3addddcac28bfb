//! What a watchdog asks: are you alive, are you ready, how are you.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use hyper::{
    Response, StatusCode,
    header::{CONTENT_TYPE, HeaderValue},
};
use prism_core::mcp::{Answer, Fault, Refusal};
use tokio::{sync::oneshot, time::timeout};

use super::{Server, body::Body, fault::json, status};
use crate::drive::{Command, Destination, Head, LinkHandle};

/// How long a server may take to list its tools before it counts as not ready.
const LIST_TIMEOUT: Duration = Duration::from_secs(2);
/// How long it counts that it has. A watchdog that asks more often costs the server nothing more.
const COUNTS_FOR: Duration = Duration::from_secs(2);

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

/// Every server that runs must list its tools: an open port, or a process, is not health. One that does not run is started
/// by its first client.
pub(super) async fn readiness(server: &Server) -> Readiness {
    let states =
        server.configured().map(|destination| async { (destination.config().name.clone(), state(destination).await) });
    let destinations = join_all(states).await;
    let is_well = |state: &str| !matches!(state, "silent" | "fails");
    let ready = !server.is_stopping() && destinations.iter().all(|(_, state)| is_well(state));
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

/// The worst that any of its links has to say.
async fn state(destination: &Destination) -> &'static str {
    let links = destination.living_links();
    let health = join_all(links.iter().map(health)).await;
    let order = ["silent", "fails", "answers"];
    order.into_iter().find(|state| health.contains(&Some(state))).unwrap_or("idle")
}

/// Whether the server does what it is there for; `None` if there is none.
async fn health(link: &LinkHandle) -> Option<&'static str> {
    if link.vitals.was_healthy_within(COUNTS_FOR) {
        return Some("answers");
    }
    let (reply, head) = oneshot::channel();
    let answer = async {
        link.commands.send(Command::Probe { reply }).await.ok()?;
        head.await.ok()
    };
    match timeout(LIST_TIMEOUT, answer).await {
        Ok(Some(Head::Answer(Answer::Message(_)))) => {
            link.vitals.proved_healthy();
            Some("answers")
        }
        Ok(Some(Head::Answer(Answer::Fault { fault: Fault::Refused { .. }, .. }))) => Some("fails"),
        // It does not even read what it is sent.
        Ok(Some(Head::Refused(Refusal::Stuck))) | Err(_) => Some("silent"),
        Ok(_) => None,
    }
}

pub(super) async fn metrics(server: &Arc<Server>) -> Response<Body> {
    status::refresh(server).await;
    let mut response = Response::new(Body::from(server.access.metrics.text()));
    let kind = HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}
