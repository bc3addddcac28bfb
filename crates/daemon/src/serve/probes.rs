//! What a watchdog asks: are you alive, are you ready, how are you.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use hyper::{
    Response, StatusCode,
    header::{CONTENT_TYPE, HeaderValue},
};
use prism_core::mcp::{CallFault, LinkAnswer, LinkRefusal, LinkState};
use tokio::{sync::oneshot, time::timeout};

use super::{DaemonSnapshot, body::ResponseBody, fault::json, status};
use prism_bridge::drive::{Destination, LinkCommand, LinkHandle, ReplyHead, health::ServerHealth};

/// How long a server may take to list its tools before it counts as not ready.
const LIST_TIMEOUT: Duration = Duration::from_secs(2);
/// How long it counts that it has. A watchdog that asks more often costs the server nothing more.
const COUNTS_FOR: Duration = Duration::from_secs(2);

pub(super) fn healthz() -> Response<ResponseBody> {
    json(StatusCode::OK, r#"{"status":"alive"}"#.to_owned())
}

/// Whether the daemon and its servers can do their work.
pub(super) struct Readiness {
    ready: bool,
    servers: Vec<(String, ServerHealth)>,
    /// What the hub cannot show, and why.
    unavailable: Vec<(String, String)>,
}

/// Every server that runs must list its tools: an open port, or a process, is not health. One that does not run is started
/// by its first client, unless it is known that it cannot be.
pub(super) async fn readiness(server: &DaemonSnapshot) -> Readiness {
    let looks = server.configured().map(|destination| async {
        look(destination).await;
        (destination.config().name.clone(), destination.health())
    });
    let servers = join_all(looks).await;
    let ready = !server.is_stopping() && servers.iter().all(|(_, health)| health.state.is_ready());
    let known = server.hub.overview().into_iter();
    let unavailable = known.filter_map(|known| Some((known.name, known.why?))).collect();
    Readiness { ready, servers, unavailable }
}

impl Readiness {
    pub(super) fn in_short(&self) -> Response<ResponseBody> {
        self.response(&serde_json::json!({"status": self.word()}))
    }

    pub(super) fn in_detail(&self) -> Response<ResponseBody> {
        let states: serde_json::Map<_, _> =
            self.servers.iter().map(|(name, health)| (name.clone(), health.state.name().into())).collect();
        let mut body = serde_json::json!({"status": self.word(), "destinations": states});
        let mut why: serde_json::Map<_, _> =
            self.unavailable.iter().map(|(name, why)| (name.clone(), why.clone().into())).collect();
        let ill = self.servers.iter().filter(|(_, health)| !health.state.is_ready());
        why.extend(ill.map(|(name, health)| (name.clone(), health.said.clone().into())));
        if !why.is_empty() {
            body["unavailable"] = why.into();
        }
        self.response(&body)
    }

    fn word(&self) -> &'static str {
        if self.ready { "ready" } else { "not ready" }
    }

    fn response(&self, body: &serde_json::Value) -> Response<ResponseBody> {
        json(if self.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, body.to_string())
    }
}

/// Has every server that runs asked, and one that is somewhere else and could not be reached a while ago tried again; what
/// comes of it is noted.
async fn look(destination: &Destination) {
    let mut links = destination.living_links();
    links.retain(|link| link.vitals.state() == LinkState::Up);
    // Each session has a connection of its own to a server somewhere else, which is asked once.
    if destination.config().http.is_some() {
        links.truncate(1);
    }
    if !links.is_empty() {
        join_all(links.iter().map(|link| ask(destination, link))).await;
    } else if destination.sightings().ails_since(COUNTS_FOR) {
        let _ = timeout(LIST_TIMEOUT, destination.try_to_reach()).await;
    }
}

/// Whether the server does what it is there for.
async fn ask(destination: &Destination, link: &LinkHandle) {
    if link.vitals.was_healthy_within(COUNTS_FOR) {
        return;
    }
    let (reply, head) = oneshot::channel();
    let answer = async {
        link.commands.send(LinkCommand::Probe { reply }).await.ok()?;
        head.await.ok()
    };
    let sightings = destination.sightings();
    match timeout(LIST_TIMEOUT, answer).await {
        Ok(Some(ReplyHead::Answer(LinkAnswer::Message(_)))) => link.vitals.proved_healthy(),
        Ok(Some(ReplyHead::Answer(LinkAnswer::Fault { fault: CallFault::Refused { .. }, .. }))) => {
            sightings.errs("it answers `tools/list` with an error".to_owned());
        }
        // It does not even read what it is sent.
        Ok(Some(ReplyHead::Refused(LinkRefusal::Stuck))) => sightings.fault(&CallFault::Stuck),
        Err(_) => sightings.slow(format!("it did not answer `tools/list` within {LIST_TIMEOUT:?}")),
        Ok(_) => {}
    }
}

pub(super) async fn metrics(server: &Arc<DaemonSnapshot>) -> Response<ResponseBody> {
    status::refresh(server).await;
    let mut response = Response::new(ResponseBody::from(server.access.metrics.text()));
    let kind = HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}
