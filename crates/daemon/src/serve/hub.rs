//! Requests to the hub: each is answered by the member that it is for, by Prism itself, or by the hub, which knows what
//! all of them list.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use futures_util::future::join_all;
use hyper::{
    Response,
    header::{CONTENT_TYPE, HeaderValue},
};
use prism_core::{
    mcp::{
        AcceptedFormats, HubPart, LinkAnswer, LinkRefusal, MemberNames, Method, Revision,
        hello::OWN_INFO,
        level::LogLevel,
        link::error_body,
        modern::{self as era, ClientMeta, ListenFilter},
    },
    wire::{
        ByteChain, Message, MessageKind, frame,
        splice::around,
        sse::{SseEvent, SseSplitter},
    },
};
use tokio::{
    sync::oneshot,
    time::{Duration, timeout},
};

use super::{
    DaemonSnapshot,
    body::{EventStream, MergedStream, ResponseBody},
    correlation::{CallOrigin, recorded},
    fault::{JSON, RequestDenial},
    hold::AnswerFormat,
    inbound::{Delivery, Inbound},
    modern::{self, Asker},
    piggyback,
    post::{self, accepted, events, respond},
    request::Ingress,
};
use prism_bridge::{
    access::TrackedRequest,
    admitted::Admitted,
    drive::{
        Audience, Destination, LinkCommand, LinkHandle, LinkReply, ReplyHead, SessionEntry,
        hub::{HubMember, HubSession, HubTarget, HubView, HubViewer, MemberSessionError},
        sessions::BusyGuard,
    },
};

/// How long a member may take to say what it will tell of. Then the client is told that it will not.
const CONFIRM_WITHIN: Duration = Duration::from_secs(10);
/// The longest event of a member's that is read.
const MAX_EVENT: usize = 1 << 20;

pub(super) const JSON_ONLY: AcceptedFormats = AcceptedFormats { json: true, events: false, by_method: false };

/// Who asks.
#[derive(Clone)]
pub(super) struct HubClient {
    pub(super) view: Arc<HubView>,
    pub(super) entry: Option<Arc<SessionEntry>>,
    pub(super) revision: Revision,
    pub(super) through: Ingress,
}

/// Answers a request of the legacy era.
pub(super) async fn call(
    server: &Arc<DaemonSnapshot>,
    client: HubClient,
    message: Message,
    accepts: AcceptedFormats,
    record: &mut TrackedRequest,
) -> Result<Response<ResponseBody>, RequestDenial> {
    let hub = &server.hub;
    let HubClient { view, entry, revision, through } = client;
    if entry.is_none() {
        hub.touch();
    }
    let session = entry.clone();
    let session = session.as_ref().and_then(|entry| entry.hub());
    let view = session.map_or(view, |session| session.view());
    let seen = HubViewer { view: &view, session, audience: session.map_or(Audience::PLAIN, HubSession::audience) };
    let revision = entry.as_ref().map_or(revision, |entry| entry.revision);
    let id = message.id().unwrap_or_default().to_owned();
    let way = hub.way(seen, message);
    // To find it, a list may have to be waited for, and for that a server.
    let way = match (session, &entry) {
        (Some(session), Some(entry)) => match session.unless_cancelled(&id, way).await {
            Some(way) => way,
            None => {
                let head = ReplyHead::Answer(LinkAnswer::Cancelled { id: id.into() });
                return Ok(respond(head, accepts, entry.link.clone(), None, None, record));
            }
        },
        _ => way.await,
    };
    match way {
        HubTarget::Home(message) => {
            post::call(server, hub.home().clone(), entry, through, message, accepts, record).await
        }
        HubTarget::Level(message) => {
            // One that there is not is for the home to refuse.
            let named = message.string(message.params().level).and_then(|name| LogLevel::named(&name));
            if let Some(session) = session.filter(|_| named.is_some()) {
                session.set_level(&message).await;
                keep(server, entry.as_ref()).await;
            }
            post::call(server, hub.home().clone(), entry, through, message, accepts, record).await
        }
        HubTarget::Member(member, message, names) => {
            record.destination(member.destination.metrics());
            let from =
                entry.as_deref().map_or(CallOrigin::Stranger(through), |entry| CallOrigin::Session(entry, through));
            let delivery = MemberDelivery { entry: entry.clone(), member: member.clone(), names, accepts };
            Inbound { server, destination: &member.destination, from, record }.pass(message, delivery).await
        }
        HubTarget::List(list) => {
            let told = hub.listing(seen, list, Some(revision)).await;
            Ok(told.map_or_else(|| not_told(&id), |told| renumbered(&told, &id, accepts)))
        }
        HubTarget::Find(find) => {
            let result = hub.find(seen, &find).await;
            Ok(answer(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#), accepts))
        }
        HubTarget::Nobody { code, why } => Ok(answer(error_body(Some(&id), code, &why, None), accepts)),
    }
}

/// To the session's part at a member, or to the member's link for calls without.
#[derive(Clone)]
struct MemberDelivery {
    entry: Option<Arc<SessionEntry>>,
    member: Arc<HubMember>,
    names: Option<MemberNames>,
    accepts: AcceptedFormats,
}

impl Delivery for MemberDelivery {
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
        let Self { entry, member, names, accepts } = self;
        match entry {
            Some(entry) => call_part(server, &entry, &member, (message, names), accepts, record).await,
            None => {
                let link = member.destination.stateless_link();
                let carried = record.carried();
                let command = |reply| LinkCommand::Call { key: None, message, accepts, names, carried, reply };
                let head = send(&link, command).await.ok_or(RequestDenial::LinkGone)?;
                Ok(respond(head, accepts, link, None, None, record))
            }
        }
    }
}

/// Makes a call where the session has its part, which may be opened for it.
async fn call_part(
    server: &Arc<DaemonSnapshot>,
    entry: &Arc<SessionEntry>,
    member: &Arc<HubMember>,
    (message, names): (Admitted, Option<MemberNames>),
    accepts: AcceptedFormats,
    record: &mut TrackedRequest,
) -> Result<Response<ResponseBody>, RequestDenial> {
    let Some(session) = entry.hub() else { return Err(RequestDenial::UnknownSession) };
    let id = message.message().id().unwrap_or_default().to_owned();
    let carries = piggyback::may_carry(&member.destination, message.message());
    let mut again = true;
    loop {
        let busy = server.sessions.occupy(entry);
        let part = match session.part(&server.hub, entry, member, record.carried()).await {
            Ok(part) => part,
            Err(denied) => {
                let denial = match denied {
                    MemberSessionError::Full(full) => full.into(),
                    MemberSessionError::Gone => RequestDenial::LinkGone,
                };
                server.access.metrics.refused(denial.reason());
                return Ok(denial.answer_to(Some(&id)));
            }
        };
        if session.note(member, message.message(), names.as_ref()) {
            keep(server, Some(entry)).await;
        }
        let busy = busy.along_with(server.sessions.occupy(&part));
        let (key, message, names, carried) = (Some(part.key()), message.clone(), names.clone(), record.carried());
        let command = |reply| LinkCommand::Call { key, message, accepts, names, carried, reply };
        match send(&part.link, command).await {
            // The link has ended the part meanwhile; the session itself lives on.
            None | Some(ReplyHead::Refused(LinkRefusal::UnknownSession)) if again => {
                again = false;
                server.sessions.remove(&part.id);
            }
            // It could not even be opened.
            None | Some(ReplyHead::Refused(LinkRefusal::UnknownSession)) => return Err(RequestDenial::LinkGone),
            Some(head) => {
                let head = if carries { piggyback::for_session(server, entry, head) } else { head };
                return Ok(respond(head, accepts, part.link.clone(), Some(busy), Some(&id), record));
            }
        }
    }
}

/// Has it written down that a session's life at the hub has changed.
async fn keep(server: &DaemonSnapshot, entry: Option<&Arc<SessionEntry>>) {
    if let (Some(keeping), Some(entry)) = (server.sessions.keeping(), entry) {
        keeping.save_hub(entry).await;
    }
}

/// Passes on a note, or the answer to a question.
pub(super) async fn tell(server: &DaemonSnapshot, entry: &Arc<SessionEntry>, message: Message) {
    let Some(session) = entry.hub() else { return };
    let _busy = server.sessions.occupy(entry);
    let number = message.id().and_then(|raw| raw.parse().ok()).map_or(0, HubPart::of);
    server.calls.cancel(entry.id, &message);
    if let (MessageKind::Notification(Method::Cancelled), Some(named)) = (message.kind(), message.params().request_id) {
        session.cancel(message.text(named));
    }
    let parts = match message.kind() {
        // A question of a member's: its home has to know, too, so as not to show it again.
        MessageKind::Response => session.part_numbered(number).into_iter().collect(),
        // Two members may have given it the same token. Which one is meant is certain only where there is one.
        MessageKind::Notification(Method::Progress) => match &session.parts()[..] {
            [part] => vec![part.clone()],
            _ => return,
        },
        // Whose call it is, the parts know.
        _ => session.parts(),
    };
    for to in parts.iter().chain([entry]) {
        if let Some(message) = server.calls.tell(&to.destination, message.clone()) {
            let _ = to.link.commands.send(LinkCommand::Tell { key: Some(to.key()), message }).await;
        }
    }
}

/// Answers a batch (2025-03-26): its messages may be for several members, so their answers come together, at the end.
pub(super) async fn batch(
    server: &Arc<DaemonSnapshot>,
    entry: Arc<SessionEntry>,
    through: Ingress,
    messages: Vec<Message>,
    accepts: AcceptedFormats,
    record: &mut TrackedRequest,
) -> Result<Response<ResponseBody>, RequestDenial> {
    let Some(view) = entry.hub().map(|hub| hub.view()) else { return Err(RequestDenial::UnknownSession) };
    let client = HubClient { view, entry: Some(entry.clone()), revision: entry.revision, through };
    let (calls, tellings): (Vec<_>, Vec<_>) =
        messages.into_iter().partition(|message| matches!(message.kind(), MessageKind::Request(_)));
    for message in tellings {
        tell(server, &entry, message).await;
    }
    let answer = |message, mut record| {
        let client = client.clone();
        async move { (call(server, client, message, JSON_ONLY, &mut record).await, record) }
    };
    together(server, calls, accepts, record, answer).await
}

/// The answers to several calls as one, at the end.
pub(super) async fn together<F: Future<Output = (Result<Response<ResponseBody>, RequestDenial>, TrackedRequest)>>(
    server: &DaemonSnapshot,
    calls: Vec<Message>,
    accepts: AcceptedFormats,
    record: &mut TrackedRequest,
    call: impl Fn(Message, TrackedRequest) -> F,
) -> Result<Response<ResponseBody>, RequestDenial> {
    if calls.is_empty() {
        return Ok(accepted());
    }
    let carried = record.carried();
    let answers = join_all(calls.into_iter().map(|message| {
        let id = message.id().map(str::to_owned);
        let mut own = TrackedRequest::start(&server.access, "POST");
        own.carries(carried.clone());
        recorded(&message, &mut own);
        let called = call(message, own);
        async move {
            let (response, mut record) = called.await;
            let response = response.unwrap_or_else(|denial| denial.answer_to(id.as_deref()));
            record.status(response.status().as_u16());
            response
        }
    }));
    let mut all = BytesMut::new();
    for response in answers.await {
        if let ResponseBody::Whole(chain) = response.into_body() {
            all.put_slice(if all.is_empty() { b"[" } else { b"," });
            all.put_slice(&chain.to_vec());
        }
    }
    all.put_slice(b"]");
    record.response_body(|| all.to_vec());
    Ok(answer(String::from_utf8_lossy(&all).into_owned(), accepts))
}

// --- The modern era ---

/// Answers a request of the modern era.
pub(super) async fn ask(
    server: &Arc<DaemonSnapshot>,
    view: &Arc<HubView>,
    asker: Asker,
    message: Message,
    method: Method,
    record: &mut TrackedRequest,
) -> Result<Response<ResponseBody>, RequestDenial> {
    let hub = &server.hub;
    hub.touch();
    let audience = Audience::modern(asker.envelope.class);
    if method == Method::Discover {
        hub.warm(view.members(), audience);
    }
    let accepts = asker.accepts;
    let seen = HubViewer { view, session: None, audience };
    let id = message.id().unwrap_or_default().to_owned();
    match hub.way(seen, message).await {
        HubTarget::Home(message) | HubTarget::Level(message) => {
            asker.ask(server, hub.home(), message, method, record).await
        }
        HubTarget::Member(member, message, names) => {
            record.destination(member.destination.metrics());
            let asker = Asker { names, ..asker };
            asker.ask(server, &member.destination, message, method, record).await
        }
        HubTarget::List(list) => {
            let told = hub.listing(seen, list, None).await;
            Ok(told.map_or_else(|| not_told(&id), |told| renumbered(&told, &id, accepts)))
        }
        HubTarget::Find(find) => {
            let result = hub.find(seen, &find).await;
            let result = result.strip_prefix('{').unwrap_or_default();
            let meta = format!(r#""_meta":{{"{}":{OWN_INFO}}}"#, era::SERVER_INFO);
            let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete",{meta},{result}}}"#);
            Ok(answer(body, accepts))
        }
        HubTarget::Nobody { code, why } => {
            // The code that the older era has for a resource that is not there is not one of this era's.
            let code = if code == -32002 { -32602 } else { code };
            let mut response = answer(error_body(Some(&id), code, &why, None), accepts);
            *response.status_mut() = modern::status(code);
            Ok(response)
        }
    }
}

/// Opens a modern client's stream of changes: of the hub's lists, and of the members' resources.
pub(super) async fn attend(
    server: &Arc<DaemonSnapshot>,
    view: &Arc<HubView>,
    envelope: &ClientMeta,
    message: Message,
    accepts: AcceptedFormats,
) -> Result<Response<ResponseBody>, RequestDenial> {
    let id = message.id().map(str::to_owned);
    let wanted = modern::listened_for(&message, envelope, accepts)?;
    let hub = &server.hub;
    let mut listening = hub.listen();
    let audience = Audience::modern(envelope.class);
    hub.warm(view.members(), audience);
    let mut home = ListenFilter { uris: Vec::new(), ..wanted.clone() };
    let mut others: Vec<(Arc<HubMember>, Option<MemberNames>, ListenFilter)> = Vec::new();
    for uri in &wanted.uris {
        match hub.owner_of_uri(HubViewer { view, session: None, audience }, uri).await {
            Some((member, own)) if member.is_home() => home.uris.push(own),
            Some((member, own)) => {
                let names = view.names_for(&member, uri);
                let same = |(known, by, _): &&mut (Arc<HubMember>, _, _)| Arc::ptr_eq(known, &member) && *by == names;
                match others.iter_mut().find(same) {
                    Some((_, _, filter)) => filter.uris.push(own),
                    None => others.push((member, names, ListenFilter { uris: vec![own], ..ListenFilter::default() })),
                }
            }
            // Nobody will tell of it, and the acknowledgement says so.
            None => {}
        }
    }
    let at_home = open_listen(hub.home(), None, envelope, &message, home, accepts).await?;
    listening.is(at_home.stream.key(), view, audience);
    let message = &message;
    let at_members = join_all(others.into_iter().map(|(member, names, filter)| async move {
        let listen = open_listen(&member.destination, names.clone(), envelope, message, filter, accepts);
        let listen = timeout(CONFIRM_WITHIN, listen).await.ok()?.ok()?;
        let uris = listen.honoured.uris.iter().map(|uri| names.as_ref().map_or_else(|| uri.clone(), |n| n.uri(uri)));
        let uris: Vec<String> = uris.collect();
        Some((listen, uris))
    }));
    let at_members: Vec<_> = at_members.await.into_iter().flatten().collect();
    let mut honoured = at_home.honoured.clone();
    honoured.uris.extend(at_members.iter().flat_map(|(_, uris)| uris.clone()));
    // In the order in which they were asked for.
    honoured.uris.sort_by_key(|uri| wanted.uris.iter().position(|known| known == uri));
    let first = era::acknowledgement(id.as_deref().unwrap_or("null"), &honoured);
    let first = frame::event(None, &[first.as_bytes()]);
    let first = if accepts.by_method { frame::by_method(&first) } else { first };
    let streams = at_members.into_iter().map(|(listen, _)| (listen.stream, listen.events)).collect();
    let merged = MergedStream::new(first, (at_home.stream, at_home.events), streams, accepts.by_method, listening);
    Ok(events(ResponseBody::Merged(Box::new(merged))))
}

/// One listen, acknowledged.
struct HubListen {
    stream: EventStream,
    /// What came after the acknowledgement, with it.
    events: SseSplitter,
    honoured: ListenFilter,
}

async fn open_listen(
    destination: &Destination,
    names: Option<MemberNames>,
    envelope: &ClientMeta,
    message: &Message,
    filter: ListenFilter,
    accepts: AcceptedFormats,
) -> Result<HubListen, RequestDenial> {
    if destination.speaks().modern.is_none() {
        modern::find_out(destination, envelope).await?;
    }
    let (link, _) = destination.modern_link(envelope.class, false);
    let (message, by_method) = (message.clone(), accepts.by_method);
    let command = |reply| LinkCommand::Attend { message, filter: Box::new(filter), by_method, names, reply };
    let Some(ReplyHead::Stream(stream, reader)) = send(&link, command).await else {
        return Err(RequestDenial::LinkGone);
    };
    let mut stream = EventStream::new(reader, link, stream, None);
    let mut events = SseSplitter::new(MAX_EVENT);
    loop {
        events.push(&stream.next().await.ok_or(RequestDenial::LinkGone)?);
        if let Some(SseEvent::Data { data, .. }) = events.next_event() {
            let first = Message::parse(data).map_err(RequestDenial::Envelope)?;
            let honoured = ListenFilter::read(&first).unwrap_or_default();
            return Ok(HubListen { stream, events, honoured });
        }
    }
}

// --- Answers ---

async fn send(link: &LinkHandle, command: impl FnOnce(oneshot::Sender<ReplyHead>) -> LinkCommand) -> Option<ReplyHead> {
    let (tx, rx) = oneshot::channel();
    let reply = LinkReply::new(rx, link.clone());
    link.commands.send(command(tx)).await.ok()?;
    reply.head().await
}

/// An answer of the hub's own, as its client takes it.
pub(super) fn answer(body: String, accepts: AcceptedFormats) -> Response<ResponseBody> {
    let bytes = Bytes::from(body);
    if accepts.json {
        let mut response = Response::new(ResponseBody::Whole(ByteChain::from(bytes)));
        response.headers_mut().insert(CONTENT_TYPE, JSON);
        return response;
    }
    let event = frame::event(None, &[&bytes]);
    let event = if accepts.by_method { frame::by_method(&event) } else { event };
    let mut response = events(ResponseBody::Whole(ByteChain::from(event)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    response
}

/// A kept answer, under the id of this request. It is not copied: a list of the hub's is long.
fn renumbered(told: &Message, id: &str, accepts: AcceptedFormats) -> Response<ResponseBody> {
    let Some(span) = told.id_span() else { return not_told(id) };
    if !accepts.json {
        return answer(String::from_utf8_lossy(&around(told, span, id).concat()).into_owned(), accepts);
    }
    let mut response = Response::new(ResponseBody::Whole(ByteChain::spliced(told, span, id)));
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}

fn not_told(id: &str) -> Response<ResponseBody> {
    answer(error_body(Some(id), -32603, "the hub has no such list", None), JSON_ONLY)
}
