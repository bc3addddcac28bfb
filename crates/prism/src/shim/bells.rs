//! Waits at the daemon for the bell of the agent behind this shim, by one long poll after the other. Which agent that is
//! the daemon knows by our instance, once the agent has started.

#[cfg(test)]
mod tests;

use std::{
    future::pending,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use hyper::{
    Method, Uri,
    header::{CONTENT_TYPE, HeaderValue},
};
use serde_json::{Value, json};
use tokio::{
    task::JoinHandle,
    time::{sleep_until, timeout},
};
use uuid::Uuid;

use prism_mcp::remote::{
    RemoteTarget,
    headers::{self, ProtocolHeaders},
    reading,
};

const PATH: &str = "/prism/mesh/wait";
/// How long one poll is asked to last, and how much later its answer may come.
const POLL: Duration = Duration::from_secs(300);
const GRACE: Duration = Duration::from_secs(15);
/// The pause after a bell: whatever the daemon does, a client is never rung at more often than this.
const AFTER_BELL: Duration = Duration::from_secs(5);
/// The pause after a daemon that is not there, or an agent that is none yet.
const AFTER_TROUBLE: Duration = Duration::from_secs(2);
const MAX_ANSWER_BYTES: usize = 64 << 10;

/// What rang.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ShimBell {
    pub(super) text: String,
    pub(super) agent: String,
}

#[derive(Default)]
pub(super) struct BellPoller {
    state: BellPollerState,
}

#[derive(Default)]
enum BellPollerState {
    /// Nobody wants to hear of bells, or the daemon has none.
    #[default]
    Off,
    Due(Instant),
    Polling(JoinHandle<BellPollOutcome>),
}

/// What came of a poll.
enum BellPollOutcome {
    Bell(ShimBell),
    Nothing,
    /// It is not there now.
    Trouble,
    /// It is one that knows no such thing, and will not learn it.
    Never,
}

// === impl BellPoller ===

impl BellPoller {
    /// Begins to wait.
    pub(super) fn attend(&mut self) {
        if matches!(self.state, BellPollerState::Off) {
            self.state = BellPollerState::Due(Instant::now());
        }
    }

    /// The next bell. Cancel safe: a poll goes on in its own task.
    pub(super) async fn next(&mut self, target: Option<&Arc<RemoteTarget>>, instance: Uuid) -> ShimBell {
        loop {
            match &mut self.state {
                BellPollerState::Off => return pending().await,
                BellPollerState::Due(at) => {
                    sleep_until((*at).into()).await;
                    self.state = match target {
                        Some(target) => BellPollerState::Polling(tokio::spawn(poll(target.clone(), instance))),
                        None => BellPollerState::Due(Instant::now() + AFTER_TROUBLE),
                    };
                }
                BellPollerState::Polling(task) => {
                    let heard = task.await.unwrap_or(BellPollOutcome::Trouble);
                    let now = Instant::now();
                    self.state = match &heard {
                        BellPollOutcome::Bell(_) => BellPollerState::Due(now + AFTER_BELL),
                        BellPollOutcome::Nothing => BellPollerState::Due(now),
                        BellPollOutcome::Trouble => BellPollerState::Due(now + AFTER_TROUBLE),
                        BellPollOutcome::Never => BellPollerState::Off,
                    };
                    if let BellPollOutcome::Bell(bell) = heard {
                        return bell;
                    }
                }
            }
        }
    }
}

impl Drop for BellPoller {
    fn drop(&mut self) {
        if let BellPollerState::Polling(task) = &self.state {
            task.abort();
        }
    }
}

async fn poll(target: Arc<RemoteTarget>, instance: Uuid) -> BellPollOutcome {
    let mut parts = target.url.clone().into_parts();
    parts.path_and_query = PATH.parse().ok();
    let Ok(url) = Uri::from_parts(parts) else { return BellPollOutcome::Never };
    let asked = json!({ "instance": instance.to_string(), "hook": "channel", "timeout_s": POLL.as_secs() });
    let head = || {
        let mut head = headers::of_get(&target, &ProtocolHeaders::default(), None);
        head.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        head
    };
    let asking = async {
        let (_, response) = target.send(Method::POST, &url, head, Bytes::from(asked.to_string())).await.ok()?;
        let status = response.status().as_u16();
        let body = reading::whole(response.into_body(), MAX_ANSWER_BYTES).await.ok()?;
        Some((status, serde_json::from_slice::<Value>(&body).unwrap_or_default()))
    };
    match timeout(POLL + GRACE, asking).await {
        Ok(Some((200, answer))) => heard(&answer),
        // It does not know the verb, or what we say with it.
        Ok(Some((400 | 405, _))) => BellPollOutcome::Never,
        // The mesh itself gives its reasons in words.
        Ok(Some((404, answer))) if !answer["error"]["code"].is_string() => BellPollOutcome::Never,
        _ => BellPollOutcome::Trouble,
    }
}

fn heard(answer: &Value) -> BellPollOutcome {
    let text = |name: &str| answer[name].as_str().unwrap_or_default().to_owned();
    match (answer["bell"].as_bool(), answer["why"].as_str()) {
        (Some(true), _) => BellPollOutcome::Bell(ShimBell { text: text("text"), agent: text("agent") }),
        (_, Some("timeout")) => BellPollOutcome::Nothing,
        // Its agent has gone; another may come.
        _ => BellPollOutcome::Trouble,
    }
}
