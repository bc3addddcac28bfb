//! Requests of the modern era (2026-07-28): each stands for itself, says in its headers what its body says, and is
//! cancelled by closing it.

use std::sync::Arc;

use bytes::Bytes;
use hyper::{
    HeaderMap, Response, StatusCode,
    header::{CONTENT_TYPE, HeaderName},
};
use prism_core::{
    mcp::{
        AcceptedFormats, CallFault, LinkAnswer, MemberNames, Method, ModernCall, Revision,
        link::read_state,
        modern::{self, ClientMeta, ListenFilter, RoutingHeader, RoutingHeaders},
    },
    wire::Message,
};
use tokio::sync::oneshot;

use super::{
    DaemonSnapshot,
    body::ResponseBody,
    correlation::CallOrigin,
    fault::{self, JSON, RequestDenial},
    hold::AnswerFormat,
    hub,
    inbound::{Delivery, Inbound},
    piggyback,
    post::{open, respond},
    request::{Ingress, PROTOCOL_VERSION},
};
use prism_bridge::{
    access::TrackedRequest,
    admitted::Admitted,
    drive::{Destination, LinkCommand, LinkHandle, LinkReply, ReplyHead, hub::HubView, sessions::BusyGuard},
};

const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const PARAM_PREFIX: &str = "mcp-param-";
/// `Mcp-Param-*` headers that are looked at. What comes after them is ignored, as unknown ones are.
const MAX_PARAMS: usize = 64;

/// How often a call is sent to another link before it drives out another call instead.
const MAX_MOVES: usize = 16;

/// What the routing headers of a request say, where they do not name a legacy revision.
#[derive(Debug, Default)]
pub(super) struct RoutingCopy {
    version: HeaderCopy,
    method: HeaderCopy,
    name: HeaderCopy,
    params: Vec<(String, String)>,
}

/// One header, copied: the head itself must not be held while the body is waited for.
#[derive(Debug, Default)]
enum HeaderCopy {
    #[default]
    Nothing,
    Once(String),
    Repeatedly,
}

impl RoutingCopy {
    /// Reads the routing headers; `None` if the request names a legacy revision or none.
    pub(super) fn read(headers: &HeaderMap) -> Option<Box<Self>> {
        let version = HeaderCopy::of(headers, &PROTOCOL_VERSION);
        match &version {
            HeaderCopy::Nothing => return None,
            HeaderCopy::Once(version) if Revision::named(version).is_some() => return None,
            _ => {}
        }
        let params = headers.iter().filter_map(|(name, value)| {
            let name = name.as_str().strip_prefix(PARAM_PREFIX)?;
            Some((name.to_owned(), value.to_str().unwrap_or("=?base64??=").to_owned()))
        });
        let (method, name) = (HeaderCopy::of(headers, &METHOD), HeaderCopy::of(headers, &NAME));
        let params = params.take(MAX_PARAMS).collect();
        Some(Box::new(Self { version, method, name, params }))
    }

    /// What they say if they name a legacy revision after all: nothing else of them was read.
    pub(super) fn legacy(revision: Option<Revision>) -> Box<Self> {
        let version = revision.map_or(HeaderCopy::Nothing, |revision| HeaderCopy::Once(revision.name().to_owned()));
        Box::new(Self { version, ..Self::default() })
    }

    /// Whether they name the modern revision.
    pub(super) fn is_modern(&self) -> bool {
        matches!(&self.version, HeaderCopy::Once(version) if version == modern::VERSION)
    }

    /// The revision that they name, as it is shown to people.
    pub(super) fn version(&self) -> String {
        match &self.version {
            HeaderCopy::Once(version) => version.clone(),
            HeaderCopy::Nothing | HeaderCopy::Repeatedly => "?".to_owned(),
        }
    }

    fn headers(&self) -> RoutingHeaders<'_> {
        RoutingHeaders {
            version: self.version.as_header(),
            method: self.method.as_header(),
            name: self.name.as_header(),
        }
    }
}

impl HeaderCopy {
    fn of(headers: &HeaderMap, name: &HeaderName) -> Self {
        let mut values = headers.get_all(name).iter();
        match (values.next(), values.next()) {
            (None, _) => Self::Nothing,
            (Some(value), None) => value.to_str().map_or(Self::Repeatedly, |value| Self::Once(value.to_owned())),
            (Some(_), Some(_)) => Self::Repeatedly,
        }
    }

    fn as_header(&self) -> RoutingHeader<'_> {
        match self {
            Self::Nothing => RoutingHeader::Absent,
            Self::Once(value) => RoutingHeader::Once(value),
            Self::Repeatedly => RoutingHeader::Repeated,
        }
    }
}

/// All that a request of the modern era says, read once.
pub(super) struct ModernRequest {
    /// What its client sees, if it has come to the hub.
    pub(super) view: Option<Arc<HubView>>,
    pub(super) routing: Box<RoutingCopy>,
    pub(super) through: Ingress,
    pub(super) message: Message,
    pub(super) method: Method,
    pub(super) accepts: AcceptedFormats,
}

/// Answers a request whose body, or whose headers, claim to be of the modern era.
pub(super) async fn serve(
    server: &Arc<DaemonSnapshot>,
    destination: Arc<Destination>,
    ModernRequest { view, routing, through, message, method, accepts }: ModernRequest,
    record: &mut TrackedRequest,
) -> Result<Response<ResponseBody>, RequestDenial> {
    let id = message.id().map(str::to_owned);
    let envelope = modern::check(&message, method, &routing.headers())
        .map_err(|unfit| RequestDenial::Unfit { unfit, id: id.clone() })?;
    // Rare ones: the others are not worth a lock.
    if matches!(method, Method::Discover | Method::Listen) {
        let at = view.is_none().then(|| destination.config().name.clone());
        server.callers.note(&envelope.info, at, through.way);
    }
    match (view, method) {
        (None, Method::Listen) => attend(&destination, envelope, message, accepts).await,
        (None, _) => {
            let asker = Asker { envelope, headers: routing.params, names: None, accepts, through };
            asker.ask(server, &destination, message, method, record).await
        }
        (Some(view), Method::Listen) => hub::attend(server, &view, &envelope, message, accepts).await,
        (Some(view), _) => {
            let asker = Asker { envelope, headers: routing.params, names: None, accepts, through };
            hub::ask(server, &view, asker, message, method, record).await
        }
    }
}

/// A client of the modern era with a request.
#[derive(Clone)]
pub(super) struct Asker {
    pub(super) envelope: ClientMeta,
    /// `Mcp-Param-*`, without that prefix.
    pub(super) headers: Vec<(String, String)>,
    pub(super) names: Option<MemberNames>,
    pub(super) accepts: AcceptedFormats,
    pub(super) through: Ingress,
}

impl Asker {
    pub(super) async fn ask(
        self,
        server: &Arc<DaemonSnapshot>,
        destination: &Arc<Destination>,
        message: Message,
        method: Method,
        record: &mut TrackedRequest,
    ) -> Result<Response<ResponseBody>, RequestDenial> {
        let state = message.string(message.params().request_state);
        let resumed = match state.as_deref().map(read_state) {
            Some(Some((number, ticket))) => match destination.link_numbered(number) {
                Some(link) => Some((link, ticket)),
                None => return Ok(unknown_state(message.id())),
            },
            // Not ours: a modern server's own, or made up.
            Some(None) if destination.speaks().modern == Some(false) => return Ok(unknown_state(message.id())),
            _ => None,
        };
        drop(state);
        let delivery = AskDelivery { asker: self.clone(), destination: destination.clone(), method, resumed };
        let from = CallOrigin::Modern(self.through, &self.envelope.info);
        Inbound { server, destination, from, record }.pass(message, delivery).await
    }

    /// Makes the call, where it waited for its client if it did.
    async fn go(
        self,
        server: &DaemonSnapshot,
        destination: &Destination,
        message: Admitted,
        method: Method,
        resumed: Option<(LinkHandle, u128)>,
        record: &mut TrackedRequest,
    ) -> Result<Response<ResponseBody>, RequestDenial> {
        let class = self.envelope.class;
        let carries = piggyback::may_carry(destination, message.message());
        let mut moves = 0;
        loop {
            let movable = resumed.is_none() && destination.speaks().modern.is_none() && moves < MAX_MOVES;
            let (link, evicts, resumes) = match &resumed {
                Some((link, ticket)) => (link.clone(), false, Some(*ticket)),
                None => {
                    let (link, evicts) = destination.modern_link(class, method.may_ask());
                    (link, evicts || moves >= MAX_MOVES, None)
                }
            };
            // Only who can be asked something needs a way back.
            let ticket = if class.answers_questions() && method.may_ask() {
                random().ok_or(RequestDenial::Stopping)?
            } else {
                0
            };
            let Self { envelope, headers, names, accepts, .. } = &self;
            let (envelope, headers, names, accepts) = (envelope.clone(), headers.clone(), names.clone(), *accepts);
            let ask = message.clone().asking(|message| ModernCall {
                message,
                envelope,
                headers,
                accepts,
                names,
                ticket,
                resumes,
                evicts,
                movable,
                fetch: false,
            });
            let (tx, rx) = oneshot::channel();
            let reply = LinkReply::new(rx, link.clone());
            let carried = record.carried();
            link.commands
                .send(LinkCommand::Ask { ask, carried, reply: tx })
                .await
                .map_err(|_| RequestDenial::LinkGone)?;
            return match reply.head().await.ok_or(RequestDenial::LinkGone)? {
                ReplyHead::Answer(LinkAnswer::Error { code, body }) => {
                    let mut response = Response::new(ResponseBody::Whole(body));
                    *response.status_mut() = status(code);
                    response.headers_mut().insert(CONTENT_TYPE, JSON);
                    Ok(response)
                }
                // There is no session that could have ended: it is the daemon that does.
                ReplyHead::Answer(LinkAnswer::Fault { fault: CallFault::Stopping, .. }) => Err(RequestDenial::Stopping),
                ReplyHead::Elsewhere(_) => {
                    moves += 1;
                    continue;
                }
                head => {
                    let head = if carries { piggyback::for_instance(server, self.through, head) } else { head };
                    Ok(respond(head, accepts, link, None, None, record))
                }
            };
        }
    }
}

/// To the link where the owner of a question is certain, or where the call waited for its client.
#[derive(Clone)]
struct AskDelivery {
    asker: Asker,
    destination: Arc<Destination>,
    method: Method,
    resumed: Option<(LinkHandle, u128)>,
}

impl Delivery for AskDelivery {
    fn manner(&self) -> AnswerFormat {
        AnswerFormat { accepts: self.asker.accepts, modern: true }
    }

    fn occupy(&self, _server: &DaemonSnapshot) -> Option<BusyGuard> {
        None
    }

    fn is_resumed(&self) -> bool {
        self.resumed.is_some()
    }

    async fn deliver(
        self,
        server: &Arc<DaemonSnapshot>,
        message: Admitted,
        record: &mut TrackedRequest,
    ) -> Result<Response<ResponseBody>, RequestDenial> {
        let Self { asker, destination, method, resumed } = self;
        asker.go(server, &destination, message, method, resumed, record).await
    }
}

/// Opens a stream of changes.
async fn attend(
    destination: &Destination,
    envelope: ClientMeta,
    message: Message,
    accepts: AcceptedFormats,
) -> Result<Response<ResponseBody>, RequestDenial> {
    let id = message.id().map(str::to_owned);
    let filter = listened_for(&message, &envelope, accepts)?;
    if destination.speaks().modern.is_none() {
        find_out(destination, &envelope).await?;
    }
    let (link, _) = destination.modern_link(envelope.class, false);
    let (reply, head) = oneshot::channel();
    let (filter, by_method) = (Box::new(filter), accepts.by_method);
    let attend = LinkCommand::Attend { message, filter, by_method, names: None, reply };
    link.commands.send(attend).await.map_err(|_| RequestDenial::LinkGone)?;
    match head.await {
        Ok(ReplyHead::Stream(stream, reader)) => Ok(open((stream, reader), link, None)),
        Ok(ReplyHead::Refused(refusal)) => Ok(fault::refused(refusal, id.as_deref())),
        Ok(ReplyHead::Accepted | ReplyHead::Answer(_) | ReplyHead::Elsewhere(_)) | Err(_) => {
            Err(RequestDenial::LinkGone)
        }
    }
}

/// What a `subscriptions/listen` wants to hear of, if it may.
pub(super) fn listened_for(
    message: &Message,
    envelope: &ClientMeta,
    accepts: AcceptedFormats,
) -> Result<ListenFilter, RequestDenial> {
    let id = || message.id().map(str::to_owned);
    if !accepts.events {
        return Err(RequestDenial::Accept { wanted: "text/event-stream" });
    }
    let Some(filter) = ListenFilter::read(message) else {
        let why = "`params.notifications` must be an object of what to listen for".to_owned();
        return Err(RequestDenial::Invalid { code: -32602, why, id: id() });
    };
    if ListenFilter::names_tasks(message) && !envelope.tasks {
        return Err(RequestDenial::Lacks { capability: modern::TASKS, id: id() });
    }
    Ok(filter)
}

/// Finds out whether the server speaks the modern era: a listen must be where the calls of its client will be.
pub(super) async fn find_out(destination: &Destination, envelope: &ClientMeta) -> Result<(), RequestDenial> {
    let (link, _) = destination.modern_link(envelope.class, false);
    let discover = Bytes::from_static(br#"{"jsonrpc":"2.0","id":0,"method":"server/discover"}"#);
    let message = Message::parse(discover).map_err(RequestDenial::Envelope)?;
    let message = Admitted::no_tool(message).ok_or(RequestDenial::LinkGone)?;
    let accepts = AcceptedFormats { json: true, events: false, by_method: false };
    let envelope = envelope.clone();
    let ask = message.asking(|message| ModernCall {
        message,
        envelope,
        headers: Vec::new(),
        accepts,
        names: None,
        ticket: 0,
        resumes: None,
        evicts: false,
        movable: true,
        fetch: false,
    });
    let (tx, rx) = oneshot::channel();
    let reply = LinkReply::new(rx, link.clone());
    link.commands
        .send(LinkCommand::Ask { ask, carried: None, reply: tx })
        .await
        .map_err(|_| RequestDenial::LinkGone)?;
    // Whatever it is, the listen itself will tell.
    reply.head().await.map(drop).ok_or(RequestDenial::LinkGone)
}

/// The status of an error, where the era has one for it (mcp-eras 1.3).
pub(super) fn status(code: i32) -> StatusCode {
    match code {
        -32601 => StatusCode::NOT_FOUND,
        modern::HEADER_MISMATCH | modern::MISSING_CAPABILITY | modern::UNSUPPORTED_VERSION => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}

/// A `requestState` of ours that leads nowhere any more.
fn unknown_state(id: Option<&str>) -> Response<ResponseBody> {
    let why = "this `requestState` is not known: it was used, has expired, or the daemon was restarted since";
    fault::json(StatusCode::OK, prism_core::mcp::link::error_body(id, -32602, why, None))
}

fn random() -> Option<u128> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).ok()?;
    Some(u128::from_ne_bytes(bytes))
}
