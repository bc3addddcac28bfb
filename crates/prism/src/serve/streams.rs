//! GET: a session's stream of what belongs to no call, or a resumed one. DELETE: the end of a session.

use std::{sync::Arc, time::Duration};

use hyper::{HeaderMap, Response, StatusCode, header::HeaderName};
use prism_core::wire::frame::EventId;
use tokio::{sync::oneshot, time::timeout};

use super::{
    Server,
    body::Body,
    fault::{self, Denial},
    post::open,
    request::{accepts, foreign_version, session},
};
use crate::drive::{Command, Destination, Entry, Head};

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// How long a DELETE waits for the link to have let go.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// A client that wants a stream.
pub(super) struct Listener {
    entry: Arc<Entry>,
    after: Option<EventId>,
}

impl Listener {
    pub(super) fn read(server: &Server, destination: &Arc<Destination>, headers: &HeaderMap) -> Result<Self, Denial> {
        if !accepts(headers).events {
            return Err(Denial::Accept { wanted: "text/event-stream" });
        }
        let entry = existing_session(server, destination, headers)?;
        let after = match headers.get(LAST_EVENT_ID).map(|value| value.to_str().unwrap_or_default().trim()) {
            None | Some("") => None,
            Some(text) => Some(text.parse::<EventId>().map_err(|()| Denial::BadEventId)?),
        };
        Ok(Self { entry, after })
    }

    pub(super) async fn open(self, server: &Server) -> Result<Response<Body>, Denial> {
        let Self { entry, after } = self;
        let busy = server.sessions.occupy(&entry);
        let (reply, head) = oneshot::channel();
        let listen = Command::Listen { key: entry.key(), after, reply };
        entry.link.commands.send(listen).await.map_err(|_| Denial::UnknownSession)?;
        match head.await {
            Ok(Head::Stream(stream, reader)) => Ok(open((stream, reader), entry.link.clone(), Some(busy))),
            Ok(Head::Refused(refusal)) => Ok(fault::refused(refusal, None)),
            Ok(Head::Accepted | Head::Answer(_)) | Err(_) => Err(Denial::UnknownSession),
        }
    }
}

/// The session that a request must name.
pub(super) fn existing_session(
    server: &Server,
    destination: &Arc<Destination>,
    headers: &HeaderMap,
) -> Result<Arc<Entry>, Denial> {
    let entry = session(server, destination, headers)?.ok_or(Denial::NoSessionId)?;
    foreign_version(headers).map_or(Ok(entry), |version| Err(Denial::BadVersion(version)))
}

pub(super) async fn delete(server: &Server, entry: &Entry) -> Result<Response<Body>, Denial> {
    // Two at once: the second finds nothing.
    let entry = server.sessions.remove(&entry.id).ok_or(Denial::UnknownSession)?;
    let (done, closed) = oneshot::channel();
    if entry.link.commands.send(Command::Close { key: entry.key(), done: Some(done) }).await.is_ok() {
        let _ = timeout(CLOSE_TIMEOUT, closed).await;
    }
    let mut response = Response::new(Body::Empty);
    *response.status_mut() = StatusCode::NO_CONTENT;
    Ok(response)
}
