//! The transport of 2024-11-05: one stream that everything comes on, and a place where messages are posted (B-20, B-21).
//!
//! The stream is opened before anything is known of its client, so it waits here until `initialize` says which link is
//! its own. It is the session: when it ends, so does that.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use hyper::{HeaderMap, Response, Uri, body::Incoming, header::HeaderName};
use prism_core::{
    mcp::{
        ClientHello, Method,
        link::{SessionKey, error_body},
    },
    wire::{Message, MessageKind, frame, text},
};
use prism_os::random::random_id;
use tokio::sync::oneshot;
use uuid::Uuid;

use super::{
    DaemonSnapshot,
    body::ResponseBody,
    correlation::{CallOrigin, recorded},
    fault::{self, RequestDenial},
    hold::hold_quietly,
    inbound::Inbound,
    post::{accepted, events},
    quirks::passes,
    request::{accepts, by_method, check_content, read_message},
};
use prism_bridge::{
    access::TrackedRequest,
    admission::{AdmissionCheck, CallAdmission, CallIdentity, PendingCall},
    drive::{
        Destination, ForwardedHeaders, LinkCommand, LinkHandle, ReplyHead,
        destination::SessionSlot,
        outlet::{Outlet, OutletReader},
        visitor::{ClientActivity, ClientIdentity, ClientTransport},
    },
};

const FORWARDED_PREFIX: HeaderName = HeaderName::from_static("x-forwarded-prefix");

/// How long a client may leave its stream without `initialize`. It takes a session's place meanwhile.
const INITIALIZE_WITHIN: Duration = Duration::from_secs(60);

/// All open streams of this kind.
#[derive(Default)]
pub(super) struct LegacySseSessions {
    open: Mutex<HashMap<Uuid, Arc<LegacySseSession>>>,
}

/// One client's stream, and from `initialize` on its link.
pub(super) struct LegacySseSession {
    pub(super) id: Uuid,
    pub(super) destination: Arc<Destination>,
    pub(super) outlet: Arc<Outlet>,
    by_method: bool,
    link: OnceLock<LinkHandle>,
    pub(super) visit: ClientActivity,
    _place: SessionSlot,
}

/// The reader's end of such a stream. Dropping it ends the session.
pub struct LegacySseStream {
    pub(super) reader: OutletReader,
    plain: Arc<LegacySseSession>,
    plains: Arc<LegacySseSessions>,
    calls: Arc<CallAdmission>,
    pub(super) record: Option<TrackedRequest>,
}

impl LegacySseSessions {
    /// All of them, in the order in which they were opened.
    pub(super) fn all(&self) -> Vec<Arc<LegacySseSession>> {
        let mut all: Vec<_> = self.lock().values().cloned().collect();
        all.sort_by_key(|plain| std::cmp::Reverse(plain.visit.age()));
        all
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Uuid, Arc<LegacySseSession>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LegacySseSession {
    fn say(&self, message: &str) {
        let event = frame::event(None, &[message.as_bytes()]);
        self.outlet.push(0, if self.by_method { frame::by_method(&event) } else { event });
    }

    /// Answers a request with an error: on the stream, as everything is. Clients give up at any status but 202.
    fn fails(&self, id: Option<&str>, code: i32, why: &str) -> Response<ResponseBody> {
        self.say(&error_body(id, code, why, None));
        accepted()
    }

    fn is_open_already(&self, id: Option<&str>) -> Response<ResponseBody> {
        self.fails(id, -32600, "the session is initialized already; open another stream for another session")
    }
}

impl Drop for LegacySseStream {
    fn drop(&mut self) {
        self.plains.lock().remove(&self.plain.id);
        self.calls.leave(self.plain.id);
        self.plain.destination.metrics().sessions.dec();
        self.plain.destination.session_ended(SessionKey(self.plain.id.as_u128()));
        if let Some(link) = self.plain.link.get().cloned() {
            let key = SessionKey(self.plain.id.as_u128());
            tokio::spawn(async move { link.commands.send(LinkCommand::Close { key, done: None }).await });
        }
    }
}

/// GET: opens the stream, and says on it where to post.
pub(super) fn open(
    server: &DaemonSnapshot,
    destination: Arc<Destination>,
    headers: &HeaderMap,
    uri: &Uri,
) -> Result<Response<ResponseBody>, RequestDenial> {
    if !accepts(headers).events {
        return Err(RequestDenial::Accept { wanted: "text/event-stream" });
    }
    let place = destination.place()?;
    let id = random_id().ok_or(RequestDenial::Stopping)?;
    let by_method = by_method(&destination, uri);
    let (outlet, reader) = Outlet::open();
    // A proxy that serves us below a path of its own says so.
    let prefix = headers.get(FORWARDED_PREFIX).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let prefix = if is_path(prefix) { prefix.trim_end_matches('/') } else { "" };
    let folder = uri.path().trim_end_matches('/').strip_suffix("/sse").unwrap_or_default();
    outlet.push(0, frame::endpoint_event(&format!("{prefix}{folder}/message?sessionId={id}")));
    let plain = Arc::new(LegacySseSession {
        id,
        destination,
        outlet,
        by_method,
        link: OnceLock::new(),
        visit: ClientActivity::default(),
        _place: place,
    });
    plain.destination.metrics().sessions.inc();
    server.plains.lock().insert(id, plain.clone());
    let waiting = Arc::downgrade(&plain);
    tokio::spawn(async move {
        tokio::time::sleep(INITIALIZE_WITHIN).await;
        if let Some(plain) = waiting.upgrade().filter(|plain| plain.link.get().is_none()) {
            plain.outlet.end();
        }
    });
    let (plains, calls) = (server.plains.clone(), server.calls.clone());
    Ok(events(ResponseBody::Plain(Box::new(LegacySseStream { reader, plain, plains, calls, record: None }))))
}

fn is_path(prefix: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"/-._~%".contains(&b);
    prefix.starts_with('/') && !prefix.starts_with("//") && prefix.bytes().all(plain)
}

/// What the head of a POST says: whose message it is.
pub(super) struct LegacySsePost(Arc<LegacySseSession>);

impl LegacySsePost {
    pub(super) fn read(
        server: &DaemonSnapshot,
        destination: &Arc<Destination>,
        headers: &HeaderMap,
        uri: &Uri,
    ) -> Result<Self, RequestDenial> {
        check_content(headers)?;
        let id = uri.query().unwrap_or_default().split('&').find_map(|pair| pair.strip_prefix("sessionId="));
        let id = id.ok_or(RequestDenial::NoSessionId)?;
        let id = Uuid::try_parse(id).map_err(|_| RequestDenial::UnknownSession)?;
        let plain = server.plains.lock().get(&id).cloned();
        plain
            .filter(|plain| Arc::ptr_eq(&plain.destination, destination))
            .map(Self)
            .ok_or(RequestDenial::UnknownSession)
    }

    /// Takes the message. Whatever comes of it comes on the stream.
    pub(super) async fn take(
        self,
        server: &Arc<DaemonSnapshot>,
        body: Incoming,
        record: &mut TrackedRequest,
    ) -> Result<Response<ResponseBody>, RequestDenial> {
        let bytes = read_message(body, server.config.max_message_bytes).await?;
        record.request_body(&bytes);
        let message = Message::parse(bytes).map_err(RequestDenial::Envelope)?;
        let method = match message.kind() {
            MessageKind::Request(method) | MessageKind::Notification(method) => method,
            MessageKind::Response => Method::Other,
        };
        record.message(method, message.method_text(), message.id());
        recorded(&message, record);
        let id = message.id().map(str::to_owned);
        if matches!(message.kind(), MessageKind::Request(_)) {
            self.0.visit.call(record.started());
        }
        let key = SessionKey(self.0.id.as_u128());
        let (reply, head) = oneshot::channel();
        let command = match (message.kind(), self.0.link.get()) {
            (MessageKind::Request(Method::Initialize), None) => {
                let hello = match ClientHello::read(&message) {
                    Ok(hello) => hello,
                    Err(error) => return Ok(self.0.fails(id.as_deref(), -32602, &error.to_string())),
                };
                let link = self.0.destination.link_for(hello.class);
                // Of two at once, one is the first.
                if self.0.link.set(link).is_err() {
                    return Ok(self.0.is_open_already(id.as_deref()));
                }
                self.0.visit.introduce(ClientIdentity::new(
                    hello.info.get(),
                    hello.revision.name(),
                    ClientTransport::Sse,
                ));
                let (by_method, outlet) = (self.0.by_method, self.0.outlet.clone());
                let carried = record.carried();
                LinkCommand::OpenPlain { key, hello: Box::new(hello), message, by_method, outlet, carried, reply }
            }
            (MessageKind::Request(Method::Initialize), Some(_)) => return Ok(self.0.is_open_already(id.as_deref())),
            // Clients try out which era a server is of, or whether it is there, before they initialize.
            (MessageKind::Request(Method::Ping), None) => {
                self.0.say(&text::result(id.as_deref().unwrap_or_default(), "{}".to_owned()));
                return Ok(accepted());
            }
            (MessageKind::Request(Method::Discover), None) => {
                let why = "this transport is of 2024-11-05, which has no `server/discover`; send `initialize`";
                return Ok(self.0.fails(id.as_deref(), -32601, why));
            }
            (MessageKind::Request(_), None) => {
                let why = "the session is not initialized; send `initialize` first";
                return Ok(self.0.fails(id.as_deref(), -32600, why));
            }
            (_, None) => return Ok(accepted()),
            (MessageKind::Request(_), Some(_)) => {
                let from = CallOrigin::Plain(self.0.id, &self.0.visit);
                match (Inbound { server, destination: &self.0.destination, from, record }).check(message) {
                    AdmissionCheck::Through(message) => {
                        LinkCommand::Post { key, message, carried: record.carried(), reply }
                    }
                    AdmissionCheck::Held(held) => {
                        let who = from.who();
                        tokio::spawn(post_when_let(server.clone(), self.0, held, who, record.carried()));
                        return Ok(accepted());
                    }
                }
            }
            (_, Some(link)) => {
                server.calls.cancel(self.0.id, &message);
                if let Some(message) = server.calls.tell(&self.0.destination, message) {
                    let _ = link.commands.send(LinkCommand::Tell { key: Some(key), message }).await;
                }
                return Ok(accepted());
            }
        };
        let link = self.0.link.get().ok_or(RequestDenial::LinkGone)?;
        link.commands.send(command).await.map_err(|_| RequestDenial::LinkGone)?;
        match head.await {
            Ok(ReplyHead::Refused(refusal)) => {
                let refused = fault::refused(refusal, id.as_deref());
                match refused.body() {
                    ResponseBody::Whole(error) if id.is_some() && passes(refused.status()) => {
                        self.0.say(&String::from_utf8_lossy(&error.to_vec()));
                        Ok(accepted())
                    }
                    _ => Ok(refused),
                }
            }
            Ok(_) => Ok(accepted()),
            Err(_) => Err(RequestDenial::LinkGone),
        }
    }
}

/// Makes a call once it is known that it may be made. What comes of that comes on the stream, whose end ends it.
async fn post_when_let(
    server: Arc<DaemonSnapshot>,
    plain: Arc<LegacySseSession>,
    held: Box<PendingCall>,
    who: CallIdentity,
    carried: Option<Arc<ForwardedHeaders>>,
) {
    let say = |message: String| plain.say(&message);
    let id = held.message().id().unwrap_or_default().to_owned();
    let message = match hold_quietly(&server, held, who, say).await {
        Ok(message) => message,
        Err(Some(instead)) => return say(instead),
        Err(None) => return,
    };
    let (reply, head) = oneshot::channel();
    let (key, link) = (SessionKey(plain.id.as_u128()), plain.link.get().cloned());
    let sent = match link {
        Some(link) => link.commands.send(LinkCommand::Post { key, message, carried, reply }).await.is_ok(),
        None => false,
    };
    if !sent || !matches!(head.await, Ok(ReplyHead::Accepted)) {
        say(error_body(Some(&id), -32603, "the server cannot take the call now; try again", None));
    }
}
