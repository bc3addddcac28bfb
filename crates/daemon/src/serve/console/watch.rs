//! What has changed, for an open page: it is told the names of the pages, and fetches what it shows of them again.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use hyper::Response;
use serde_json::json;
use tokio::{
    sync::{
        broadcast::{Receiver, error::RecvError},
        mpsc, watch,
    },
    time::{Instant, Interval, interval, timeout_at},
};

use super::pages::waiting;
use crate::{
    console::{audit::ChainStatus, door::ConsoleSession, page::ConsolePage, trend},
    serve::{DaemonSnapshot, body::ResponseBody, post::events},
};
use prism_telemetry::events::DaemonEvent;

/// Pieces that may wait for a page. Beyond it whoever makes them waits; what changes meanwhile is one change.
const MAX_PIECES: usize = 4;
/// What happens within this time is told at once.
const GATHER: Duration = Duration::from_millis(80);

/// The pages that have changed, each by its place in `ConsolePage::ALL`.
#[derive(Clone, Copy, Default)]
struct ChangedPages([bool; ConsolePage::ALL.len()]);

impl ChangedPages {
    fn note(&mut self, pages: &[ConsolePage]) {
        for (changed, page) in self.0.iter_mut().zip(ConsolePage::ALL) {
            *changed |= pages.contains(&page);
        }
    }

    fn names(self) -> Vec<&'static str> {
        ConsolePage::ALL.into_iter().zip(self.0).filter(|(_, changed)| *changed).map(|(page, _)| page.name()).collect()
    }
}

/// The stream of changes, until the session is over.
pub(super) fn watch(server: &Arc<DaemonSnapshot>, session: ConsoleSession) -> Response<ResponseBody> {
    let (feed, fed) = mpsc::channel::<Bytes>(MAX_PIECES);
    let server = server.clone();
    tokio::spawn(async move {
        tokio::select! {
            () = server.console().door.over(&session) => {
                let _ = feed.send(Bytes::from_static(b"event: over\ndata: {}\n\n")).await;
            }
            () = feed.closed() => {}
            () = tell(&server, &feed) => {}
        }
    });
    events(ResponseBody::Fed(Box::new(fed)))
}

async fn tell(server: &DaemonSnapshot, feed: &mpsc::Sender<Bytes>) {
    let mut seen = PageWatcher {
        gate: server.gate.as_ref().map(|gate| gate.events.listen()),
        audit: server.gate.as_ref().map(|gate| gate.audit.subscribe()),
        chain: server.console().chain.subscribe(),
        mesh: server.mesh.as_ref().map(|mesh| mesh.events.listen()),
        // The first look comes at once, and shows the page that somebody is there.
        look: interval(trend::EVERY),
    };
    loop {
        let mut changed = ChangedPages::default();
        changed.note(seen.next().await);
        let until = Instant::now() + GATHER;
        while let Ok(pages) = timeout_at(until, seen.next()).await {
            changed.note(pages);
        }
        let data = json!({"pages": changed.names(), "waiting": waiting(server).by_page()});
        if feed.send(Bytes::from(format!("event: changed\ndata: {data}\n\n"))).await.is_err() {
            return;
        }
    }
}

/// Everything that is looked at.
struct PageWatcher {
    gate: Option<Receiver<DaemonEvent>>,
    audit: Option<Receiver<Arc<str>>>,
    chain: watch::Receiver<ChainStatus>,
    mesh: Option<Receiver<DaemonEvent>>,
    look: Interval,
}

impl PageWatcher {
    /// The pages that the next thing to happen changes. Cancel safe.
    async fn next(&mut self) -> &'static [ConsolePage] {
        tokio::select! {
            event = happened(&mut self.gate) => match event.map(|event| event.name) {
                Some("request") => &[ConsolePage::Requests, ConsolePage::Grants],
                Some("grant") => &[ConsolePage::Grants, ConsolePage::Requests],
                Some("confirmation") => &[ConsolePage::Confirmations, ConsolePage::Destinations],
                Some("action") => &[ConsolePage::Grants],
                // Some were missed, or it is one that came to be after this.
                _ => &[ConsolePage::Requests, ConsolePage::Grants, ConsolePage::Confirmations],
            },
            _ = happened(&mut self.audit) => &[ConsolePage::Audit],
            Ok(()) = self.chain.changed() => &[ConsolePage::Audit],
            _ = happened(&mut self.mesh) => &[ConsolePage::Signals],
            _ = self.look.tick() => &[ConsolePage::Destinations],
        }
    }
}

/// The next thing to happen; `None` if some were missed. Cancel safe.
async fn happened<T: Clone>(events: &mut Option<Receiver<T>>) -> Option<T> {
    if let Some(receiver) = events {
        match receiver.recv().await {
            Ok(event) => return Some(event),
            Err(RecvError::Lagged(_)) => return None,
            Err(RecvError::Closed) => *events = None,
        }
    }
    std::future::pending().await
}
