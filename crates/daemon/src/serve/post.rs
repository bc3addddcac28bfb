//! POST: one message in; an answer, a stream, or nothing more than "accepted" out.

use std::sync::Arc;

use bytes::Bytes;
use hyper::{
    HeaderMap, Response, StatusCode, Uri,
    body::Incoming,
    header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue},
};
use prism_core::{
    mcp::{
        AcceptedFormats, CallFault, ClientHello, LinkAnswer, Method, Revision,
        link::{SessionKey, error_body},
    },
    wire::{EnvelopeError, Message, MessageKind},
};
use prism_os::random::random_id;
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use super::{
    DaemonSnapshot,
    body::{EventStream, ResponseBody},
    correlation::{CallOrigin, recorded},
    fault::{self, JSON, RequestDenial},
    hold::AnswerFormat,
    hub,
    inbound::{Delivery, Inbound},
    modern::{self, ModernRequest, RoutingCopy},
    piggyback,
    quirks::FailureStyle,
    request::{Ingress, SESSION_ID, accepts, by_method, check_content, named_revision, read_message, session},
};
use prism_bridge::{
    access::TrackedRequest,
    admission::AdmissionCheck,
    admitted::Admitted,
    drive::{
        Destination, LinkCommand, LinkHandle, LinkReply, ReplyHead, SessionEntry,
        hub::HubView,
        sessions::{BusyGuard, OpenedSession, SessionRole, is_error},
        visitor::ClientActivity,
    },
};
use prism_config::SessionRequirement;

const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Messages in one batch. Beyond it the batch is refused.
const MAX_BATCH: usize = 256;

/// What the head of a POST says.
pub(super) struct PostHead {
    accepts: AcceptedFormats,
    entry: Option<Arc<SessionEntry>>,
    /// What the client sees, if it has come to the hub.
    view: Option<Arc<HubView>>,
    /// What the routing headers say, where they do not name a legacy revision.
    routing: Option<Box<RoutingCopy>>,
    /// The legacy revision that they name.
    revision: Option<Revision>,
    through: Ingress,
    telling: FailureStyle,
}

impl PostHead {
    pub(super) fn read(
        server: &DaemonSnapshot,
        destination: &Arc<Destination>,
        view: Option<Arc<HubView>>,
        headers: &HeaderMap,
        uri: &Uri,
    ) -> Result<Self, RequestDenial> {
        check_content(headers)?;
        let mut accepts = accepts(headers);
        if !accepts.json && !accepts.events {
            return Err(RequestDenial::Accept { wanted: "application/json and text/event-stream" });
        }
        accepts.by_method = by_method(destination, uri);
        let routing = RoutingCopy::read(headers);
        let entry = match destination.config().sessions {
            SessionRequirement::Never => None,
            // The modern era has no sessions, whatever else a request may say.
            _ if routing.as_ref().is_some_and(|routing| routing.is_modern()) => None,
            _ => session(server, destination, view.is_some(), headers)?,
        };
        let revision = if routing.is_none() { named_revision(headers) } else { None };
        let through = Ingress::read(entry.as_deref(), headers);
        let telling = FailureStyle::to(server, destination, entry.as_deref(), headers);
        Ok(Self { accepts, entry, view, routing, revision, through, telling })
    }

    /// Whether its client would not survive to hear by a status that the daemon stops.
    pub(super) fn hears_in_body(&self) -> bool {
        matches!(self.telling, FailureStyle::InBody)
    }
}

pub(super) async fn post(
    server: &Arc<DaemonSnapshot>,
    destination: Arc<Destination>,
    asked: PostHead,
    body: Incoming,
    record: &mut TrackedRequest,
) -> Result<Response<ResponseBody>, RequestDenial> {
    let bytes = read_message(body, server.config.max_message_bytes).await?;
    record.request_body(&bytes);
    let message = match Message::parse(bytes.clone()) {
        Ok(message) => message,
        Err(EnvelopeError::Batch) => {
            let PostHead { entry, through, accepts, .. } = asked;
            return Box::pin(batch(server, entry, through, accepts, &bytes, record)).await;
        }
        Err(error) => return Err(RequestDenial::Envelope(error)),
    };
    drop(bytes);
    match asked.telling {
        FailureStyle::ByStatus => take(server, destination, asked, message, record).await,
        telling => {
            let id = message.id().filter(|_| matches!(message.kind(), MessageKind::Request(_))).map(str::to_owned);
            let outcome = match server.is_stopping() {
                true => Err(RequestDenial::Stopping),
                false => take(server, destination, asked, message, record).await,
            };
            telling.tell(server, outcome, id.as_deref())
        }
    }
}

async fn take(
    server: &Arc<DaemonSnapshot>,
    destination: Arc<Destination>,
    PostHead { mut accepts, entry, view, routing, revision, through, telling: _ }: PostHead,
    message: Message,
    record: &mut TrackedRequest,
) -> Result<Response<ResponseBody>, RequestDenial> {
    let method = match message.kind() {
        MessageKind::Request(method) | MessageKind::Notification(method) => method,
        MessageKind::Response => Method::Other,
    };
    record.message(method, message.method_text(), message.id());
    recorded(&message, record);
    // A listen is a stream or nothing, and who takes nothing but a stream could not read another answer.
    accepts.events &= destination.config().post_sse || method == Method::Listen || !accepts.json;
    let id = || message.id().map(str::to_owned);
    // Which era a client is of, its body says first (mcp-eras 4.2). Some name their newest revision in the header while
    // they still ask which one to use.
    let claims = message.params().meta_version.is_some();
    let header_claims = routing.as_ref().is_some_and(|routing| routing.is_modern());
    match message.kind() {
        MessageKind::Request(_) if claims || (header_claims && method != Method::Initialize) => {
            let routing = routing.unwrap_or_else(|| RoutingCopy::legacy(revision));
            let request = ModernRequest { view, routing, through, message, method, accepts };
            return modern::serve(server, destination, request, record).await;
        }
        // The era knows no notes of clients over HTTP: none has any effect.
        MessageKind::Notification(_) if claims || header_claims => return Ok(accepted()),
        MessageKind::Response if header_claims => {
            let why = "a response has no place in the modern era; answers go into `inputResponses`".to_owned();
            return Err(RequestDenial::Invalid { code: -32600, why, id: id() });
        }
        _ => {}
    }
    if let Some(routing) = routing.filter(|_| method != Method::Initialize) {
        return Err(RequestDenial::BadVersion { version: routing.version(), id: id() });
    }
    if let (MessageKind::Request(_), Some(entry)) = (message.kind(), &entry) {
        entry.visit.call(record.started());
    }
    match (message.kind(), entry) {
        (MessageKind::Request(Method::Initialize), Some(_)) => {
            let why = "the session is initialized already; leave Mcp-Session-Id out to open another".to_owned();
            Err(RequestDenial::Invalid { code: -32600, why, id: id() })
        }
        (MessageKind::Request(Method::Initialize), None)
            if destination.config().sessions != SessionRequirement::Never =>
        {
            Box::pin(initialize(server, destination, view, message, accepts, through, record)).await
        }
        (_, None) if destination.config().sessions == SessionRequirement::Required => Err(RequestDenial::NoSessionId),
        (MessageKind::Request(_), entry) => match view {
            None => call(server, destination, entry, through, message, accepts, record).await,
            Some(view) => {
                let revision = revision.unwrap_or(Revision::NEWEST);
                let client = hub::HubClient { view, entry, revision, through };
                hub::call(server, client, message, accepts, record).await
            }
        },
        (_, Some(entry)) if entry.hub().is_some() => {
            hub::tell(server, &entry, message).await;
            Ok(accepted())
        }
        (_, entry) => {
            // Written to the child and forgotten (B-05).
            if let Some(entry) = entry {
                let _busy = server.sessions.occupy(&entry);
                server.calls.cancel(entry.id, &message);
                if let Some(message) = server.calls.tell(&entry.destination, message) {
                    let _ = entry.link.commands.send(LinkCommand::Tell { key: Some(entry.key()), message }).await;
                }
            }
            Ok(accepted())
        }
    }
}

async fn initialize(
    server: &Arc<DaemonSnapshot>,
    destination: Arc<Destination>,
    view: Option<Arc<HubView>>,
    message: Message,
    accepts: AcceptedFormats,
    through: Ingress,
    record: &mut TrackedRequest,
) -> Result<Response<ResponseBody>, RequestDenial> {
    let id = message.id().map(str::to_owned);
    let hello = ClientHello::read(&message).map_err(|error| RequestDenial::Invalid {
        code: -32602,
        why: error.to_string(),
        id: id.clone(),
    })?;
    let place = destination.place()?;
    let role =
        view.map_or(SessionRole::Direct, |view| SessionRole::Hub(Box::new(server.hub.open(view, &hello, &message))));
    let session = random_id().ok_or(RequestDenial::Stopping)?;
    let key = SessionKey(session.as_u128());
    let (link, revision) = (destination.link_for(hello.class), hello.revision);
    let (tx, rx) = oneshot::channel();
    let reply = LinkReply::new(rx, link.clone());
    let (initialize, visit) = (message.detached().bytes().clone(), ClientActivity::opened_by(&message, through.way));
    let (hello, carried) = (Box::new(hello), record.carried());
    let open = LinkCommand::Open { key, hello, message, accepts, part: None, carried, reply: tx };
    link.commands.send(open).await.map_err(|_| RequestDenial::LinkGone)?;
    let head = reply.head().await.ok_or(RequestDenial::LinkGone)?;
    if let ReplyHead::Answer(LinkAnswer::Fault { fault: CallFault::Stopping, .. }) = head {
        // No session of this client's can have ended yet: it is the daemon that does.
        return Err(RequestDenial::Stopping);
    }
    let opened = matches!(&head, ReplyHead::Answer(LinkAnswer::Message(answer)) if !is_error(answer.to_vec()))
        || matches!(&head, ReplyHead::Stream(..));
    if opened {
        let link = link.clone();
        let entry =
            server.sessions.insert(OpenedSession { id: session, place, link, revision, role, initialize, visit });
        if let Some(keeping) = server.sessions.keeping() {
            keeping.remember(&entry).await;
        }
    }
    let mut answered = respond(head, accepts, link, None, id.as_deref(), record);
    if opened && let Ok(value) = HeaderValue::from_str(&session.to_string()) {
        answered.headers_mut().insert(SESSION_ID, value);
    }
    Ok(answered)
}

/// Takes a legacy request to one server.
pub(super) async fn call(
    server: &Arc<DaemonSnapshot>,
    destination: Arc<Destination>,
    entry: Option<Arc<SessionEntry>>,
    through: Ingress,
    message: Message,
    accepts: AcceptedFormats,
    record: &mut TrackedRequest,
) -> Result<Response<ResponseBody>, RequestDenial> {
    let delivery = DirectDelivery { destination: destination.clone(), entry: entry.clone(), accepts };
    let from = entry.as_deref().map_or(CallOrigin::Stranger(through), |entry| CallOrigin::Session(entry, through));
    Inbound { server, destination: &destination, from, record }.pass(message, delivery).await
}

/// To the link of its session, or to the one for calls without.
#[derive(Clone)]
struct DirectDelivery {
    destination: Arc<Destination>,
    entry: Option<Arc<SessionEntry>>,
    accepts: AcceptedFormats,
}

impl Delivery for DirectDelivery {
    fn manner(&self) -> AnswerFormat {
        AnswerFormat::legacy(self.accepts)
    }

    fn occupy(&self, server: &DaemonSnapshot) -> Option<BusyGuard> {
        self.entry.as_ref().map(|entry| server.sessions.occupy(entry))
    }

    async fn deliver(
        self,
        server: &Arc<DaemonSnapshot>,
        message: Admitted,
        record: &mut TrackedRequest,
    ) -> Result<Response<ResponseBody>, RequestDenial> {
        let busy = self.occupy(server);
        let Self { destination, entry, accepts } = self;
        let carries = piggyback::may_carry(&destination, message.message());
        let key = entry.as_ref().map(|entry| entry.key());
        let link = match &entry {
            Some(entry) => entry.link.clone(),
            None => destination.stateless_link(),
        };
        let (tx, rx) = oneshot::channel();
        let reply = LinkReply::new(rx, link.clone());
        let carried = record.carried();
        let sent =
            link.commands.send(LinkCommand::Call { key, message, accepts, names: None, carried, reply: tx }).await;
        let head = match sent {
            Ok(()) => reply.head().await.ok_or(RequestDenial::LinkGone),
            Err(_) => Err(RequestDenial::LinkGone),
        };
        match (head, entry) {
            (
                Ok(ReplyHead::Refused(prism_core::mcp::LinkRefusal::UnknownSession)) | Err(RequestDenial::LinkGone),
                Some(entry),
            ) => {
                // The link ended it, and this request was on its way meanwhile.
                server.sessions.remove(&entry.id);
                Err(RequestDenial::UnknownSession)
            }
            (head, Some(entry)) if carries => {
                let head = piggyback::for_session(server, &entry, head?);
                Ok(respond(head, accepts, link, busy, None, record))
            }
            (head, _) => Ok(respond(head?, accepts, link, busy, None, record)),
        }
    }
}

async fn batch(
    server: &Arc<DaemonSnapshot>,
    entry: Option<Arc<SessionEntry>>,
    through: Ingress,
    accepts: AcceptedFormats,
    bytes: &Bytes,
    record: &mut TrackedRequest,
) -> Result<Response<ResponseBody>, RequestDenial> {
    let Some(entry) = entry.filter(|entry| entry.revision.has_batches()) else {
        return Err(RequestDenial::Envelope(EnvelopeError::Batch));
    };
    let invalid = |why: &str| RequestDenial::Invalid { code: -32600, why: why.to_owned(), id: None };
    let parts: Vec<&RawValue> =
        serde_json::from_slice(bytes).map_err(|error| RequestDenial::Envelope(EnvelopeError::Syntax(error)))?;
    if parts.is_empty() || parts.len() > MAX_BATCH {
        return Err(invalid("a batch holds between 1 and 256 messages"));
    }
    let mut messages = Vec::with_capacity(parts.len());
    for part in parts {
        let message = Message::parse(bytes.slice_ref(part.get().as_bytes())).map_err(RequestDenial::Envelope)?;
        if message.params().meta_version.is_some() {
            return Err(invalid("the modern era has no batches"));
        }
        if message.kind() == MessageKind::Request(Method::Initialize) {
            return Err(invalid("`initialize` must not be in a batch"));
        }
        messages.push(message);
    }
    if !accepts.events && messages.iter().any(|message| matches!(message.kind(), MessageKind::Request(_))) {
        return Err(RequestDenial::Accept { wanted: "text/event-stream, on which the answers to a batch come" });
    }
    if entry.hub().is_some() {
        return hub::batch(server, entry, through, messages, accepts, record).await;
    }
    let from = CallOrigin::Session(&entry, through);
    let mut admitted = Vec::with_capacity(messages.len());
    for message in &messages {
        recorded(message, record);
        let destination = &entry.destination;
        let through = match message.kind() {
            MessageKind::Request(_) => match (Inbound { server, destination, from, record }).check(message.clone()) {
                AdmissionCheck::Through(message) => Some(message),
                AdmissionCheck::Held(_) => None,
            },
            _ => server.calls.tell(destination, message.clone()),
        };
        admitted.extend(through);
    }
    if admitted.len() < messages.len() {
        return one_by_one(server, entry, through, messages, accepts, record).await;
    }
    let messages = admitted;
    let busy = server.sessions.occupy(&entry);
    let (tx, rx) = oneshot::channel();
    let reply = LinkReply::new(rx, entry.link.clone());
    let command = LinkCommand::Batch { key: entry.key(), messages, by_method: accepts.by_method, reply: tx };
    entry.link.commands.send(command).await.map_err(|_| RequestDenial::UnknownSession)?;
    let stream = match reply.head().await.ok_or(RequestDenial::LinkGone)? {
        ReplyHead::Stream(stream, reader) => (stream, reader),
        ReplyHead::Refused(refusal) => return Ok(fault::refused(refusal, None)),
        ReplyHead::Accepted | ReplyHead::Answer(_) | ReplyHead::Elsewhere(_) => return Ok(accepted()),
    };
    Ok(open(stream, entry.link.clone(), Some(busy)))
}

/// Answers a batch of which not everything passes the rules at once: each call by itself, and all answers together.
async fn one_by_one(
    server: &Arc<DaemonSnapshot>,
    entry: Arc<SessionEntry>,
    through: Ingress,
    messages: Vec<Message>,
    accepts: AcceptedFormats,
    record: &mut TrackedRequest,
) -> Result<Response<ResponseBody>, RequestDenial> {
    let (calls, tellings): (Vec<_>, Vec<_>) =
        messages.into_iter().partition(|message| matches!(message.kind(), MessageKind::Request(_)));
    for message in tellings {
        server.calls.cancel(entry.id, &message);
        if let Some(message) = server.calls.tell(&entry.destination, message) {
            let _ = entry.link.commands.send(LinkCommand::Tell { key: Some(entry.key()), message }).await;
        }
    }
    let answer = |message, mut record| {
        let entry = entry.clone();
        async move {
            let destination = entry.destination.clone();
            let called = call(server, destination, Some(entry), through, message, hub::JSON_ONLY, &mut record).await;
            (called, record)
        }
    };
    hub::together(server, calls, accepts, record, answer).await
}

/// The response to a reply of the link.
pub(super) fn respond(
    head: ReplyHead,
    accepts: AcceptedFormats,
    link: LinkHandle,
    busy: Option<BusyGuard>,
    id: Option<&str>,
    record: &mut TrackedRequest,
) -> Response<ResponseBody> {
    match head {
        ReplyHead::Answer(LinkAnswer::Message(chain)) => {
            record.response_body(|| chain.to_vec());
            let mut response = Response::new(ResponseBody::Whole(chain));
            response.headers_mut().insert(CONTENT_TYPE, JSON);
            response
        }
        ReplyHead::Answer(LinkAnswer::Error { body, .. }) => {
            let mut response = Response::new(ResponseBody::Whole(body));
            response.headers_mut().insert(CONTENT_TYPE, JSON);
            response
        }
        // A cancelled call gets no answer: an empty stream says just that (mcp-eras 5.10).
        ReplyHead::Answer(LinkAnswer::Cancelled { .. }) if accepts.events => events(ResponseBody::Empty),
        ReplyHead::Answer(LinkAnswer::Cancelled { id }) => {
            fault::json(StatusCode::OK, error_body(Some(&id), -32800, "the call was cancelled", None))
        }
        ReplyHead::Answer(LinkAnswer::Fault { fault, id }) => fault::failed(&fault, &id),
        ReplyHead::Stream(stream, reader) => open((stream, reader), link, busy),
        ReplyHead::Accepted | ReplyHead::Elsewhere(_) => accepted(),
        ReplyHead::Refused(refusal) => fault::refused(refusal, id),
    }
}

/// A response that is a stream of events.
pub(super) fn open(
    (stream, reader): (prism_core::mcp::link::StreamKey, prism_bridge::drive::outlet::OutletReader),
    link: LinkHandle,
    busy: Option<BusyGuard>,
) -> Response<ResponseBody> {
    events(ResponseBody::Stream(Box::new(EventStream::new(reader, link, stream, busy))))
}

pub(super) fn events(body: ResponseBody) -> Response<ResponseBody> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert(ACCEL_BUFFERING, HeaderValue::from_static("no"));
    response
}

pub(super) fn accepted() -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::Empty);
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}
