//! What a request says: its session, its revision, what it accepts, and its body.

use std::{path::Path, sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::{
    HeaderMap, Uri,
    body::{Body as _, Incoming},
    header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, HeaderName},
};
use prism_core::{
    mcp::{AcceptedFormats, Revision},
    wire::depth::is_too_deep,
};
use prism_gate::grant_server;
use tokio::time::timeout;
use uuid::Uuid;

use super::{DaemonSnapshot, fault::RequestDenial};
use prism_bridge::drive::{Destination, SessionEntry, visitor::ClientTransport};
use prism_config::EventNames;
use prism_mcp::folder;

pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
/// What `prism stdio` says of itself: that it is one, and which.
const PRISM_TRANSPORT: HeaderName = HeaderName::from_static("prism-transport");
const PRISM_INSTANCE: HeaderName = HeaderName::from_static("prism-instance");
const PRISM_TMUX_PANE: HeaderName = HeaderName::from_static("prism-tmux-pane");
const PRISM_FOLDER: HeaderName = HeaderName::from_static("prism-folder");
pub(super) const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// How long a body may take.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// What is read and thrown away of a body that is too large, so that its client lives to see the answer.
const MAX_THROWN_AWAY: usize = 64 << 20;

/// The session that the request names; `None` if it names none.
pub(super) fn session(
    server: &DaemonSnapshot,
    destination: &Arc<Destination>,
    of_hub: bool,
    headers: &HeaderMap,
) -> Result<Option<Arc<SessionEntry>>, RequestDenial> {
    let Some(value) = headers.get(SESSION_ID) else { return Ok(None) };
    let text = value.to_str().map_err(|_| RequestDenial::BadSessionId)?;
    let id = Uuid::try_parse(text).ok().filter(|id| text.len() == 36 && id.get_version_num() == 4);
    let entry = server.sessions.get(&id.ok_or(RequestDenial::BadSessionId)?);
    // A session of another destination is unknown here; one that is being replaced is the same. Grants' are all called the
    // same, and none is another's.
    let is_here = |entry: &Arc<SessionEntry>| {
        let name = &destination.config().name;
        let is_replaced = entry.destination.config().name == *name && name != grant_server::NAME;
        (is_replaced || Arc::ptr_eq(&entry.destination, destination)) && entry.hub().is_some() == of_hub
    };
    let entry = entry.filter(is_here).ok_or(RequestDenial::UnknownSession)?;
    server.hub.is_back(&entry);
    Ok(Some(entry))
}

/// What a request has come through.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ingress {
    pub(super) way: ClientTransport,
    /// The run of `prism stdio` that sent it, if one did.
    pub(super) instance: Option<Uuid>,
    /// The pane of the user's own tmux that it runs in.
    pub(super) pane: Option<u32>,
    /// The folder that it was started in.
    pub(super) folder: Option<&'static Path>,
}

impl Ingress {
    /// What has a session was asked for its way when that was opened.
    pub(super) fn read(entry: Option<&SessionEntry>, headers: &HeaderMap) -> Self {
        let is_stdio = || headers.get(PRISM_TRANSPORT).is_some_and(|value| value.as_bytes() == b"stdio");
        let way = match entry {
            Some(entry) => entry.visit.way(),
            None if is_stdio() => ClientTransport::Stdio,
            None => ClientTransport::Http,
        };
        let instance = || Uuid::try_parse(headers.get(PRISM_INSTANCE)?.to_str().ok()?).ok();
        let pane = || headers.get(PRISM_TMUX_PANE)?.to_str().ok()?.parse().ok();
        match way {
            ClientTransport::Stdio => {
                let folder = headers.get(PRISM_FOLDER).and_then(|text| folder::remembered(text.to_str().ok()?));
                Self { way, instance: instance(), pane: pane(), folder }
            }
            _ => Self { way, ..Self::default() },
        }
    }
}

/// The legacy revision that a request names.
pub(super) fn named_revision(headers: &HeaderMap) -> Option<Revision> {
    Revision::named(headers.get(PROTOCOL_VERSION)?.to_str().ok()?)
}

/// Whether events are to be named after their methods (N-03): for the whole destination, or for whoever asks for it.
pub(super) fn by_method(destination: &Destination, uri: &Uri) -> bool {
    destination.config().event_names == EventNames::Method
        || uri.query().is_some_and(|query| query.split('&').any(|pair| pair == "events=method"))
}

/// Checks that a body is what it has to be, by what its head says of it.
pub(super) fn check_content(headers: &HeaderMap) -> Result<(), RequestDenial> {
    if !is_json(headers) {
        return Err(RequestDenial::ContentType);
    }
    let encoded =
        headers.get(CONTENT_ENCODING).filter(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity"));
    match encoded {
        Some(encoding) => {
            Err(RequestDenial::Encoded { encoding: encoding.to_str().unwrap_or("?").chars().take(32).collect() })
        }
        None => Ok(()),
    }
}

pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let Some(value) = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()) else { return false };
    value.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
}

/// What the client takes, by the media ranges of its Accept header. None at all means anything.
pub(super) fn accepts(headers: &HeaderMap) -> AcceptedFormats {
    let mut accepts = AcceptedFormats { json: false, events: false, by_method: false };
    let mut any = false;
    for value in headers.get_all(ACCEPT) {
        any = true;
        for range in value.to_str().unwrap_or_default().split(',') {
            let mut parts = range.split(';').map(str::trim);
            let kind = parts.next().unwrap_or_default();
            if parts.any(|part| matches!(part, "q=0" | "q=0.0" | "q=0.00" | "q=0.000")) {
                continue;
            }
            let is = |name: &str| kind.eq_ignore_ascii_case(name);
            accepts.json |= is("application/json") || is("application/*") || is("*/*");
            accepts.events |= is("text/event-stream") || is("text/*") || is("*/*");
        }
    }
    if any { accepts } else { AcceptedFormats { json: true, events: true, by_method: false } }
}

/// The body, unless it is too large or too slow.
pub(super) async fn read(mut body: Incoming, limit: usize) -> Result<Bytes, RequestDenial> {
    let whole = async {
        let mut first = Bytes::new();
        let mut rest = BytesMut::new();
        let mut size = 0;
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(|_| RequestDenial::Unread)?.into_data() else { continue };
            size += data.len();
            if size > limit {
                // The rest is thrown away as it comes: memory stays bounded, and the answer is read.
                (first, rest) = (Bytes::new(), BytesMut::new());
                if size > MAX_THROWN_AWAY {
                    break;
                }
            } else if first.is_empty() {
                first = data;
                if body.is_end_stream() {
                    break;
                }
            } else {
                rest.extend_from_slice(&data);
            }
        }
        if size > limit {
            Err(RequestDenial::TooLarge { limit })
        } else if rest.is_empty() {
            Ok(first)
        } else {
            let mut all = BytesMut::with_capacity(size);
            all.extend_from_slice(&first);
            all.extend_from_slice(&rest);
            Ok(all.freeze())
        }
    };
    timeout(BODY_TIMEOUT, whole).await.unwrap_or(Err(RequestDenial::Slow))
}

/// The same of a message that may go on to a server.
pub(super) async fn read_message(body: Incoming, limit: usize) -> Result<Bytes, RequestDenial> {
    let bytes = read(body, limit).await?;
    if is_too_deep(&bytes) { Err(RequestDenial::TooDeep) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    fn accepted(value: &'static str) -> (bool, bool) {
        let accepts = accepts(&HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(value))]));
        (accepts.json, accepts.events)
    }

    #[test]
    fn accept_is_read_by_its_media_ranges() {
        assert_eq!(accepted("application/json, text/event-stream"), (true, true));
        assert_eq!(accepted("Application/JSON;q=0.9"), (true, false));
        assert_eq!(accepted("text/*"), (false, true));
        assert_eq!(accepted("*/*"), (true, true));
        assert_eq!(accepted("application/json;q=0, text/event-stream"), (false, true));
        assert_eq!(accepted("text/html"), (false, false));
        let silent = accepts(&HeaderMap::new());
        assert!(silent.json && silent.events);
    }

    #[test]
    fn the_content_type_is_compared_as_a_media_type() {
        let json = |value| is_json(&HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(value))]));
        assert!(json("application/json; charset=utf-8") && json("APPLICATION/JSON"));
        assert!(!json("text/plain") && !json("text/plain; a=application/json") && !json("application/jsonp"));
    }

    #[test]
    fn only_prism_stdio_tells_of_a_pane() {
        let read = |transport: &'static str, pane: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(PRISM_TRANSPORT, transport.parse().unwrap());
            headers.insert(PRISM_TMUX_PANE, pane.parse().unwrap());
            Ingress::read(None, &headers).pane
        };
        assert_eq!(read("stdio", "3"), Some(3));
        assert_eq!(read("http", "3"), None);
        assert_eq!(read("stdio", "%3 -x"), None);
    }
}
