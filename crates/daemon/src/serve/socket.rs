//! WebSockets: a holder's session (A-05), and the gate's events for whoever looks on.

use std::{collections::BTreeSet, pin::pin, sync::Arc, time::Duration};

use futures_util::{SinkExt, StreamExt};
use hyper::{Request, Response, body::Incoming};
use hyper_util::rt::TokioIo;
use prism_api::socket::{
    CommandOutcome, CommandProgress, HolderCommand, HolderEvent, HolderEventData, HolderMessage, SessionOpened,
};
use prism_editor::{EditorEvent, ProgressNote, ProgressSink};
use prism_gate::{ActionWaiter, Gate, GateError, GrantLease};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::{Semaphore, broadcast::error::RecvError, mpsc, watch},
    time::{MissedTickBehavior, interval, timeout},
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Message, Utf8Bytes,
        handshake::server::create_response,
        protocol::{CloseFrame, Role, WebSocketConfig, frame::coding::CloseCode},
    },
};
use uuid::Uuid;

use super::{DaemonSnapshot, access, body::ResponseBody, fault::RequestDenial, route::Answering};

/// The largest message of a holder's: an edit at the largest limit, and its wrapping.
const MAX_MESSAGE: usize = 16 << 20;
/// Commands of one socket that are worked on at a time. Beyond it the next is not read.
const MAX_AT_ONCE: usize = 16;
/// Answers that may wait for a holder who does not read. Beyond it those who made them wait.
const MAX_UNSENT: usize = 64;
/// How often a silent holder is asked whether it is there, and how long it may take to say so.
const PING: Duration = Duration::from_secs(20);
const MAX_SILENCE: Duration = Duration::from_secs(60);
/// How long a peer may take to read what is sent to it.
const SEND_WITHIN: Duration = Duration::from_secs(20);
const CLOSE_WITHIN: Duration = Duration::from_secs(2);

/// Sockets of one grant: an agent's windows, and those of its helpers. Beyond it one more is told to come back later. (L9)
const MAX_SOCKETS: usize = 32;

const SCOPE: u16 = 4002;
/// RFC 6455 registers it as "try again later".
const LATER: u16 = 1013;
pub(super) const TOKEN: u16 = 1008;
pub(super) const GOING_AWAY: u16 = 1001;

pub(super) type Socket = WebSocketStream<TokioIo<hyper::upgrade::Upgraded>>;

/// Opens a holder's session. Who has no right to it learns that from the close code (A-05).
pub(super) fn session(
    server: &DaemonSnapshot,
    gate: Arc<Gate>,
    id: Uuid,
    request: Request<Incoming>,
) -> Result<Answering, RequestDenial> {
    let hang_up = server.life.hang_up.subscribe();
    let headers = request.headers();
    let held = if access::is_same_origin(headers) {
        let held = gate.hold(Some(id), access::bearer(headers).unwrap_or_default());
        held.and_then(|held| match held.sockets() <= MAX_SOCKETS {
            true => Ok(held),
            false => {
                gate.record_refusal(held.agent(), "connect", &json!({"session_id": id}), "too_many");
                let why = format!("{MAX_SOCKETS} sockets of this grant are open already; close one");
                Err(GateError::new("too_many", 429, why))
            }
        })
    } else {
        gate.record_refusal("?", "connect", &json!({"session_id": id}), "foreign origin");
        gate.metrics.failed_auth("origin");
        return Err(RequestDenial::ForeignOrigin(format!("{:?}", headers.get(hyper::header::ORIGIN))));
    };
    upgraded(request, |socket| async move {
        match held {
            Ok(held) => serve(gate, held, socket, hang_up).await,
            Err(trouble) => {
                let code = match trouble.code {
                    "expired" => prism_gate::GrantEnd::Expired.close_code(),
                    "revoked" => prism_gate::GrantEnd::Revoked.close_code(),
                    "too_many" => LATER,
                    _ => TOKEN,
                };
                close(socket, code, &trouble.message).await;
            }
        }
    })
}

/// The gate's events, each as one message.
pub(super) fn events(
    server: &DaemonSnapshot,
    gate: &Gate,
    request: Request<Incoming>,
) -> Result<Answering, RequestDenial> {
    let mut seen = gate.events.listen();
    let mut hang_up = server.life.hang_up.subscribe();
    upgraded(request, |mut socket: Socket| async move {
        loop {
            let text = tokio::select! {
                event = seen.recv() => match event {
                    Ok(event) => format!(r#"{{"type":"event","event":"{}","data":{}}}"#, event.name, event.data),
                    Err(RecvError::Lagged(count)) => format!(r#"{{"type":"event","event":"missed","data":{{"events":{count}}}}}"#),
                    Err(RecvError::Closed) => return,
                },
                _ = hang_up.changed() => return close(socket, GOING_AWAY, "Prism is stopping").await,
                heard = socket.next() => match heard {
                    // Nothing that an onlooker says has a meaning.
                    Some(Ok(message)) if !message.is_close() => continue,
                    _ => return,
                },
            };
            if timeout(SEND_WITHIN, socket.send(Message::text(text))).await.is_err() {
                return;
            }
        }
    })
}

pub(super) fn upgraded<F: Future<Output = ()> + Send + 'static>(
    mut request: Request<Incoming>,
    then: impl FnOnce(Socket) -> F + Send + 'static,
) -> Result<Answering, RequestDenial> {
    let mut head = Request::new(());
    *head.method_mut() = request.method().clone();
    *head.uri_mut() = request.uri().clone();
    *head.headers_mut() = request.headers().clone();
    let response = create_response(&head).map_err(|_| RequestDenial::NotAWebSocket)?;
    let upgrade = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        let Ok(upgraded) = upgrade.await else { return };
        let config = WebSocketConfig::default().max_message_size(Some(MAX_MESSAGE)).max_frame_size(Some(MAX_MESSAGE));
        then(WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, Some(config)).await).await;
    });
    let (parts, ()) = response.into_parts();
    let response = Response::from_parts(parts, ResponseBody::Empty);
    Ok(Box::pin(std::future::ready(response)))
}

async fn serve(gate: Arc<Gate>, held: GrantLease, mut socket: Socket, mut hang_up: watch::Receiver<()>) {
    if let Err(trouble) = gate.connected(&held).await {
        return close(socket, GOING_AWAY, &trouble.message).await;
    }
    let held = Arc::new(held);
    let (answers, mut answered) = mpsc::channel::<SocketReply>(MAX_UNSENT);
    let places = Arc::new(Semaphore::new(MAX_AT_ONCE));
    let mut work = tokio::task::JoinSet::new();
    let mut ping = interval(PING);
    ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut heard_at = tokio::time::Instant::now();
    let mut happenings = gate.happenings();
    let mut lost = held.lost();
    let mut seq = 0_u64;
    let greeting = greeting(&held);
    if !send(&mut socket, greeting).await {
        return;
    }
    let ended = held.clone();
    let mut ended = std::pin::pin!(async move { ended.ended().await });
    loop {
        tokio::select! {
            biased;
            how = &mut ended => return close(socket, how.close_code(), &format!("the grant was {}", how.name())).await,
            _ = hang_up.changed() => return close(socket, GOING_AWAY, "Prism is stopping").await,
            Some(said) = answered.recv() => match said {
                SocketReply::Text(text) => if !send(&mut socket, text).await {
                    return;
                },
                SocketReply::Close(code, why) => return close(socket, code, why).await,
            },
            happening = happenings.recv() => {
                let told = match happening {
                    Ok(happening) if held.hears_of(&happening) => {
                        seq += 1;
                        event(&happening, held.id(), seq)
                    }
                    Ok(_) => continue,
                    Err(RecvError::Lagged(count)) => {
                        seq += 1;
                        missed(count, seq)
                    }
                    // The editor has ended, and Prism is about to.
                    Err(RecvError::Closed) => return close(socket, GOING_AWAY, "Prism is stopping").await,
                };
                if !send(&mut socket, told).await {
                    return;
                }
            }
            Ok(()) = lost.changed() => {
                seq += 1;
                let told = runtime(&lost.borrow_and_update(), seq);
                if !send(&mut socket, told).await {
                    return;
                }
            }
            // A place first: what cannot be worked on is not read.
            heard = async {
                let place = places.clone().acquire_owned().await;
                (socket.next().await, place)
            } => {
                heard_at = tokio::time::Instant::now();
                let (Some(Ok(message)), Ok(place)) = heard else { return };
                let text = match message {
                    Message::Text(text) => text,
                    Message::Ping(_) | Message::Pong(_) => continue,
                    Message::Close(_) => return,
                    Message::Binary(_) | Message::Frame(_) => return close(socket, 1003, "messages are JSON texts").await,
                };
                let (gate, held, answers) = (gate.clone(), held.clone(), answers.clone());
                work.spawn(async move {
                    let _place = place;
                    let (text, trespassed) = answer(&gate, &held, &text, &answers).await;
                    let _ = answers.send(SocketReply::Text(text)).await;
                    if trespassed {
                        let _ = answers.send(SocketReply::Close(SCOPE, "too many actions out of scope")).await;
                    }
                });
                while work.try_join_next().is_some() {}
            },
            _ = ping.tick() => {
                if heard_at.elapsed() > MAX_SILENCE {
                    return;
                }
                if !matches!(timeout(SEND_WITHIN, socket.send(Message::Ping(bytes::Bytes::new()))).await, Ok(Ok(()))) {
                    return;
                }
            }
        }
    }
}

enum SocketReply {
    Text(String),
    Close(u16, &'static str),
}

/// What a holder is told first: what it may do, and how long.
fn greeting(held: &GrantLease) -> String {
    let grant = held.grant();
    let opened = SessionOpened {
        session_id: Uuid::from_u128(held.id()).to_string(),
        allowed_scopes: grant.scopes.names().into_iter().map(str::to_owned).collect(),
        roots: grant.roots.iter().map(ToString::to_string).collect(),
        expires_at: prism_core::time::rfc3339(grant.expires_at),
        max_edit_bytes: grant.limits.max_edit_bytes,
        rate_limit: grant.limits.per_second,
        degraded: held.lost().borrow().iter().cloned().collect(),
    };
    message("session_state", None, "session_opened", json!(opened))
}

/// An event (A-05, A-07): its category, and in its data its name. Numbered, so that a holder sees if it missed one.
fn event(happening: &EditorEvent, holder: u128, seq: u64) -> String {
    message(happening.event.category, Some(seq), happening.event.name, happening.told_to(holder))
}

/// A holder that did not keep up has missed events, of whatever kind: what it knows of the editor's state may be old.
fn missed(count: u64, seq: u64) -> String {
    message("session_state", Some(seq), "missed", json!({"events": count}))
}

/// The grant's editor went away, or is back (A-06). The built-in one stands in for it meanwhile.
fn runtime(lost: &BTreeSet<String>, seq: u64) -> String {
    let event = if lost.is_empty() { "runtime_recovered" } else { "runtime_degraded" };
    message("session_state", Some(seq), event, json!({"plugins": lost}))
}

/// An event as it is sent, with what it says of itself.
fn message(category: &str, seq: Option<u64>, name: &str, said: Value) -> String {
    let Value::Object(more) = said else { return String::new() };
    let data = HolderEventData { event: name.to_owned(), path: None, more };
    json!(HolderMessage::Event(HolderEvent { event: category.to_owned(), seq, data })).to_string()
}

/// Does what a message asks for, and meanwhile tells how far it is.
async fn answer(gate: &Gate, held: &GrantLease, text: &str, answers: &mpsc::Sender<SocketReply>) -> (String, bool) {
    let command = match serde_json::from_str::<HolderCommand>(text) {
        Ok(command) if command.kind == "cmd" => command,
        Ok(command) => {
            let why = format!("a message is of the type \"cmd\", not {:?}", command.kind);
            return (result(command.id, Err(GateError::bad(why))), false);
        }
        Err(error) => {
            let shape = r#"a command is {"type":"cmd","id":…,"action":…,"args":{…}}"#;
            return (result(Value::Null, Err(GateError::bad(format!("{shape}: {error}")))), false);
        }
    };
    let (progress, mut notes) = ProgressSink::channel();
    let mut acting = pin!(gate.act(held, &command.action, command.args, ActionWaiter::patient(progress)));
    let outcome = loop {
        tokio::select! {
            biased;
            outcome = &mut acting => break outcome,
            Some(ProgressNote { message, done, total }) = notes.recv() => {
                let data = CommandProgress { message, done, total };
                let text = json!(HolderMessage::Progress { id: command.id.clone(), data }).to_string();
                // If there is no room, the next note is truer anyway.
                let _ = answers.try_send(SocketReply::Text(text));
            }
        }
    };
    (result(command.id, outcome.result), outcome.trespassed)
}

fn result(id: Value, result: Result<Value, GateError>) -> String {
    let outcome = match result {
        Ok(data) => CommandOutcome::Ok(data),
        Err(trouble) => CommandOutcome::Error(trouble.told()),
    };
    // Memory takes all that is written, and no map of it has keys that are no texts.
    serde_json::to_string(&HolderMessage::Result { id, outcome }).unwrap_or_default()
}

async fn send(socket: &mut Socket, text: String) -> bool {
    matches!(timeout(SEND_WITHIN, socket.send(Message::text(text))).await, Ok(Ok(())))
}

/// Closes with a code that says why, and lets the peer read it.
pub(super) async fn close<S>(mut socket: WebSocketStream<S>, code: u16, why: &str)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    // A reason has 123 bytes at most.
    let fits = |end: &usize| why.is_char_boundary(*end);
    let end = (0..=why.len().min(120)).rev().find(fits).unwrap_or(0);
    let reason = Utf8Bytes::from(&why[..end]);
    let frame = CloseFrame { code: CloseCode::from(code), reason };
    let _ = timeout(CLOSE_WITHIN, async {
        let _ = socket.close(Some(frame)).await;
        while let Some(Ok(_)) = socket.next().await {}
    })
    .await;
}
