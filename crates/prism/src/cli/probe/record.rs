//! Everything that arrives while a server is probed, in its order, and what was asked when.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::{sync::Notify, time::timeout};

use prism_mcp::client::{ArrivalPath, ReceivedMessage, TrafficObserver};

/// Messages that are kept. A server that sends more has the rest counted.
const MAX_KEPT: usize = 2000;

/// The record of one run.
pub(super) struct ProbeRecord {
    began: Instant,
    state: Mutex<ProbeTraffic>,
    changed: Notify,
}

#[derive(Default)]
pub(super) struct ProbeTraffic {
    pub(super) arrivals: Vec<TimedMessage>,
    /// Messages beyond those that are kept.
    pub(super) dropped: usize,
    pub(super) asked: Vec<ProbeRequest>,
    pub(super) comments: usize,
}

/// A message that arrived, and when. Streams are read side by side: the time is taken where the order is made, so that the
/// two agree.
#[derive(Clone, Debug)]
pub(super) struct TimedMessage {
    pub(super) at: Duration,
    pub(super) arrival: ReceivedMessage,
}

/// A request of ours. There are as many as the stages of a run ask for.
#[derive(Clone, Debug)]
pub(super) struct ProbeRequest {
    pub(super) id: u64,
    pub(super) what: String,
    pub(super) at: Duration,
    /// The head of its response.
    pub(super) status: Option<u16>,
    pub(super) content: String,
    pub(super) took: Option<Duration>,
}

impl ProbeRecord {
    pub(super) fn new() -> Self {
        Self { began: Instant::now(), state: Mutex::default(), changed: Notify::new() }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, ProbeTraffic> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something has arrived; `false` if it did not in time.
    pub(super) async fn until(&self, patience: Duration, condition: impl Fn(&ProbeTraffic) -> bool) -> bool {
        let waiting = async {
            loop {
                let changed = self.changed.notified();
                if condition(&self.state()) {
                    return;
                }
                changed.await;
            }
        };
        timeout(patience, waiting).await.is_ok()
    }
}

impl ProbeTraffic {
    /// How many messages arrived that are like this.
    pub(super) fn count(&self, like: impl Fn(&ReceivedMessage) -> bool) -> usize {
        self.arrivals.iter().filter(|one| like(&one.arrival)).count()
    }
}

impl TrafficObserver for ProbeRecord {
    fn message(&self, arrival: &ReceivedMessage) {
        let mut state = self.state();
        match state.arrivals.len() < MAX_KEPT {
            true => state.arrivals.push(TimedMessage { at: self.began.elapsed(), arrival: arrival.clone() }),
            false => state.dropped += 1,
        }
        drop(state);
        self.changed.notify_waiters();
    }

    fn asks(&self, request: u64, what: &str) {
        let asked = ProbeRequest {
            id: request,
            what: what.to_owned(),
            at: self.began.elapsed(),
            status: None,
            content: String::new(),
            took: None,
        };
        self.state().asked.push(asked);
    }

    fn ends(&self, request: u64) {
        let now = self.began.elapsed();
        if let Some(asked) = self.state().asked.iter_mut().find(|asked| asked.id == request) {
            asked.took = Some(now.saturating_sub(asked.at));
        }
    }

    fn head(&self, request: u64, status: u16, content: &str) {
        if let Some(asked) = self.state().asked.iter_mut().find(|asked| asked.id == request) {
            (asked.status, asked.content) = (Some(status), content.to_owned());
        }
    }

    fn comments(&self, _: ArrivalPath, count: usize) {
        self.state().comments += count;
        self.changed.notify_waiters();
    }
}
