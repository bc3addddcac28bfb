//! Who can be reached, and how: links of Prism's own server tell of their clients' streams as they come and go, so that
//! somebody who has something for a client knows where to ring (M-05). Who that is, they do not know.

use std::{
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use prism_core::mcp::link::{SessionKey, StreamKey};
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

use super::LinkCommand;

/// Told by links which clients can be reached. It is called from a link's task and from requests: it must not wait.
pub trait StreamObserver: Send + Sync {
    /// A stream is open that the bell of a session, or of modern clients that listen, can ring on.
    fn stream_opened(&self, stream: OpenedStream);
    fn stream_closed(&self, stream: StreamId);
    /// A session is over: deleted, idle for too long, or ended by its link. Not so when the daemon stops.
    fn session_ended(&self, session: SessionKey);
    /// A sign of life: a client has answered a ping.
    fn seen(&self, _session: SessionKey) {}
    /// A client that has answered pings before does so no more.
    fn silent(&self, _session: SessionKey) {}
    /// A tool's answer to a session whose visit rings ([`super::visitor::ClientActivity::let_ring`]) is about to leave: the
    /// text that it is to carry. Asked with each one until the visit rings no more.
    fn piggyback(&self, _session: SessionKey) -> Option<String> {
        None
    }
    /// The same for a modern client behind this run of `prism stdio`, while [`ObserverSlot::let_instances_ring`].
    fn piggyback_instance(&self, _instance: Uuid) -> Option<String> {
        None
    }
}

/// A stream that was opened.
pub struct OpenedStream {
    /// Where to ring.
    pub link: LinkSender,
    pub stream: StreamId,
    /// Whose it is; `None` if it is a modern client's.
    pub session: Option<SessionKey>,
    /// What a modern client was promised to hear of on it.
    pub uris: Vec<String>,
}

/// A stream among those of all links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId {
    pub link: u64,
    pub stream: StreamKey,
}

/// Whose bell is to ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RingTarget {
    /// A session's, on its own streams.
    Session(SessionKey),
    /// Those of modern clients that listen for this URI.
    Uri(String),
}

/// The way to a link. It does not keep it alive.
#[derive(Clone)]
pub struct LinkSender(mpsc::WeakSender<LinkCommand>);

impl LinkSender {
    pub(super) fn new(commands: mpsc::WeakSender<LinkCommand>) -> Self {
        Self(commands)
    }

    /// Rings, now or not at all. Returns whether a stream has taken it.
    pub async fn ring(&self, to: RingTarget) -> bool {
        let (rung, told) = oneshot::channel();
        let Some(commands) = self.0.upgrade() else { return false };
        commands.send(LinkCommand::Ring { to, rung }).await.is_ok() && told.await.unwrap_or(false)
    }

    /// Has a session's client asked every so often whether it is there, from now on, or not any more. What it answers is
    /// told by [`StreamObserver::seen`] and [`StreamObserver::silent`]. Only for the legacy era: the modern one has no such questions.
    pub async fn watch(&self, session: SessionKey, every: Option<Duration>) {
        if let Some(commands) = self.0.upgrade() {
            let _ = commands.send(LinkCommand::Watch { key: session, every }).await;
        }
    }
}

impl fmt::Debug for LinkSender {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("Line")
    }
}

/// Who wants to know, if anybody does.
#[derive(Default)]
pub struct ObserverSlot {
    by: OnceLock<Arc<dyn StreamObserver>>,
    /// The daemon is stopping: what ends now is not over.
    closed: AtomicBool,
    /// There is a modern client whose bell rings.
    instances_ring: AtomicBool,
}

impl ObserverSlot {
    /// Says who wants to know. Only the first time counts, and what was opened before is not told.
    pub fn tell(&self, reach: Arc<dyn StreamObserver>) {
        let _ = self.by.set(reach);
    }

    /// Says whether there is a modern client behind `prism stdio` whose bell rings.
    pub fn let_instances_ring(&self, ring: bool) {
        self.instances_ring.store(ring, Ordering::Relaxed);
    }

    pub fn instances_ring(&self) -> bool {
        self.instances_ring.load(Ordering::Relaxed)
    }

    /// From now on nothing is told.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    pub fn get(&self) -> Option<&Arc<dyn StreamObserver>> {
        self.by.get().filter(|_| !self.closed.load(Ordering::Relaxed))
    }
}
