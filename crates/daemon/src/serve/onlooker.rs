//! Events as they happen, as a stream that a browser or a script reads.

use std::time::Duration;

use bytes::Bytes;
use hyper::Response;
use prism_api::events::MissedEvent;
use serde_json::json;
use tokio::{
    sync::{
        broadcast::{Receiver, error::RecvError},
        mpsc,
    },
    time::interval,
};

use super::{body::ResponseBody, post::events};
use prism_telemetry::events::DaemonEvent;

/// Events that may wait for an onlooker. Beyond it whoever makes them waits, and counts what was missed.
const MAX_PIECES: usize = 16;
/// How often a silent stream shows that it is open.
const BEAT: Duration = Duration::from_secs(10);

/// What happens, until the onlooker leaves.
pub(super) fn stream(mut seen: Receiver<DaemonEvent>) -> Response<ResponseBody> {
    let (feed, fed) = mpsc::channel::<Bytes>(MAX_PIECES);
    tokio::spawn(async move {
        let mut beat = interval(BEAT);
        loop {
            let piece = tokio::select! {
                event = seen.recv() => match event {
                    Ok(event) => format!("event: {}\ndata: {}\n\n", event.name, event.data),
                    Err(RecvError::Lagged(count)) => format!("event: missed\ndata: {}\n\n", json!(MissedEvent { events: count })),
                    Err(RecvError::Closed) => return,
                },
                _ = beat.tick() => ": keep-alive\n\n".to_owned(),
                () = feed.closed() => return,
            };
            if feed.send(Bytes::from(piece)).await.is_err() {
                return;
            }
        }
    });
    events(ResponseBody::Fed(Box::new(fed)))
}
