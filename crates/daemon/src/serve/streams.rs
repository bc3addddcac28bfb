//! GET: a session's stream of what belongs to no call, or a resumed one. DELETE: the end of a session.

use std::{sync::Arc, time::Duration};

use hyper::{HeaderMap, Response, StatusCode, Uri, header::HeaderName};
use prism_core::{mcp::HubPart, wire::frame::EventId};
use tokio::{sync::oneshot, time::timeout};

use super::{
    DaemonSnapshot,
    body::ResponseBody,
    fault::{self, RequestDenial},
    modern::RoutingCopy,
    post::open,
    request::{accepts, by_method, session},
};
use prism_bridge::drive::{Destination, LinkCommand, ReplyHead, SessionEntry};

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// How long a DELETE waits for the link to have let go.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// A client that wants a stream.
pub(super) struct StreamRequest {
    entry: Arc<SessionEntry>,
    after: Option<EventId>,
    by_method: bool,
}

impl StreamRequest {
    pub(super) fn read(
        server: &DaemonSnapshot,
        destination: &Arc<Destination>,
        of_hub: bool,
        headers: &HeaderMap,
        uri: &Uri,
    ) -> Result<Self, RequestDenial> {
        if !accepts(headers).events && RoutingCopy::read(headers).is_none() {
            return Err(RequestDenial::Accept { wanted: "text/event-stream" });
        }
        let entry = existing_session(server, destination, of_hub, headers)?;
        let after = match headers.get(LAST_EVENT_ID).map(|value| value.to_str().unwrap_or_default().trim()) {
            None | Some("") => None,
            Some(text) => Some(text.parse::<EventId>().map_err(|()| RequestDenial::BadEventId)?),
        };
        Ok(Self { entry, after, by_method: by_method(destination, uri) })
    }

    pub(super) async fn open(self, server: &DaemonSnapshot) -> Result<Response<ResponseBody>, RequestDenial> {
        let Self { entry, after, by_method } = self;
        let busy = server.sessions.occupy(&entry);
        // The stream of a call through the hub is where the call was.
        let (at, busy) = match (entry.hub(), after.map_or(0, |after| HubPart::of(after.stream))) {
            (Some(hub), number @ 1..) => {
                let part = hub.part_numbered(number).ok_or(RequestDenial::BadEventId)?;
                let busy = busy.along_with(server.sessions.occupy(&part));
                (part, busy)
            }
            _ => (entry, busy),
        };
        let (reply, head) = oneshot::channel();
        let listen = LinkCommand::Listen { key: at.key(), after, by_method, reply };
        at.link.commands.send(listen).await.map_err(|_| RequestDenial::UnknownSession)?;
        match head.await {
            Ok(ReplyHead::Stream(stream, reader)) => Ok(open((stream, reader), at.link.clone(), Some(busy))),
            Ok(ReplyHead::Refused(refusal)) => Ok(fault::refused(refusal, None)),
            Ok(ReplyHead::Accepted | ReplyHead::Answer(_) | ReplyHead::Elsewhere(_)) | Err(_) => {
                Err(RequestDenial::UnknownSession)
            }
        }
    }
}

/// The session that a request must name.
pub(super) fn existing_session(
    server: &DaemonSnapshot,
    destination: &Arc<Destination>,
    of_hub: bool,
    headers: &HeaderMap,
) -> Result<Arc<SessionEntry>, RequestDenial> {
    let routing = RoutingCopy::read(headers);
    if routing.as_ref().is_some_and(|routing| routing.is_modern()) {
        // That era has neither streams of this kind nor sessions.
        return Err(RequestDenial::Method { allowed: "POST" });
    }
    let entry = session(server, destination, of_hub, headers)?.ok_or(RequestDenial::NoSessionId)?;
    routing.map_or(Ok(entry), |routing| Err(RequestDenial::BadVersion { version: routing.version(), id: None }))
}

pub(super) async fn delete(
    server: &DaemonSnapshot,
    entry: &SessionEntry,
) -> Result<Response<ResponseBody>, RequestDenial> {
    // Two at once: the second finds nothing.
    let entry = server.sessions.end(&entry.id).await.ok_or(RequestDenial::UnknownSession)?;
    let (done, closed) = oneshot::channel();
    if entry.link.commands.send(LinkCommand::Close { key: entry.key(), done: Some(done) }).await.is_ok() {
        let _ = timeout(CLOSE_TIMEOUT, closed).await;
    }
    let mut response = Response::new(ResponseBody::Empty);
    *response.status_mut() = StatusCode::NO_CONTENT;
    Ok(response)
}
