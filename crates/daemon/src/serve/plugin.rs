//! `/plugin/{plugin_id}`: editors on their sockets. Over TCP and over the Unix socket alike, as both speak HTTP and so
//! WebSocket. Who is let in and how long a connection lasts is here; what is said on it is in `prism_gate::router`.

use std::{sync::Arc, time::Duration};

use futures_util::{SinkExt, StreamExt};
use hyper::{Method, Request, body::Incoming, header::AUTHORIZATION};
use prism_core::policy::{Code, Refusal};
use prism_editor::protocol::{ErrorMessage, FromPlugin, Ping, PluginError, RegisterMessage, ToPlugin};
use serde_json::json;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::{OwnedSemaphorePermit, mpsc, watch},
    time::{MissedTickBehavior, interval, timeout},
};
use tokio_tungstenite::{WebSocketStream, tungstenite::Message};

use super::{
    DaemonSnapshot, access,
    desk::{DecisionFeed, DecisionInput},
    fault::RequestDenial,
    route::Answering,
    socket::{GOING_AWAY, TOKEN, close, upgraded},
};
use prism_config::trust::UntrustedFile;
use prism_gate::{
    Gate, GateError,
    router::{self as editor, EditorRouter, Plugin, RelayedMessage},
};

/// How long an editor may take to say who it is; and one that has not shown the secret in the head of its request (M7).
const REGISTER_WITHIN: Duration = Duration::from_secs(10);
const STRANGER_REGISTERS_WITHIN: Duration = Duration::from_secs(5);
/// Connections without the secret in their head that may be there at a time. Beyond it they are refused: an editor comes again.
pub(super) const MAX_STRANGERS: usize = 8;
/// How long it may take to read what it is sent.
const SEND_WITHIN: Duration = Duration::from_secs(20);

/// What breaks the protocol.
const PROTOCOL: u16 = 1002;
const WRONG_SECRET: &str = "show what plugin-token in Prism's folder holds, in a header or in `register`";
/// An editor that does not answer, or that another connection of the same instance has replaced.
const SILENT: u16 = 4008;
const REPLACED: u16 = 4009;

/// What a connection has shown of the editors' secret so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SecretCheck {
    Right,
    Wrong,
    /// It may come with the registration.
    Nothing,
}

/// What a conversation is held with.
struct PluginConnection<S> {
    socket: WebSocketStream<S>,
    hang_up: watch::Receiver<()>,
    untrusted: watch::Receiver<Vec<UntrustedFile>>,
}

/// Ends an editor's ownership with its connection, however that ends.
struct OwnershipGuard<'a> {
    router: &'a EditorRouter,
    plugin: Arc<Plugin>,
}

/// Answers an editor that knocks. The head is read here, before anything is waited for.
pub(super) fn answer(
    server: &Arc<DaemonSnapshot>,
    name: String,
    request: Request<Incoming>,
) -> Result<Answering, RequestDenial> {
    let gate = server.gate.clone().ok_or(RequestDenial::NoRoute)?;
    if server.is_stopping() {
        return Err(RequestDenial::Stopping);
    }
    if *request.method() != Method::GET {
        return Err(RequestDenial::Method { allowed: "GET" });
    }
    if let Err(trouble) = access::check_url(&gate, "plugin", request.uri().query()) {
        return Ok(Box::pin(std::future::ready(access::refused(&trouble))));
    }
    let headers = request.headers();
    if !access::is_same_origin(headers) {
        gate.record_refusal("?", "plugin_connect", &json!({"plugin": name}), "foreign origin");
        gate.metrics.failed_auth("origin");
        return Err(RequestDenial::ForeignOrigin(format!("{:?}", headers.get(hyper::header::ORIGIN))));
    }
    let shown = match access::bearer(headers) {
        Some(secret) if gate.is_plugin(secret) => SecretCheck::Right,
        None if !headers.contains_key(AUTHORIZATION) => SecretCheck::Nothing,
        _ => SecretCheck::Wrong,
    };
    // Who shows nothing may be anybody, and holds a file meanwhile.
    let place = match shown {
        SecretCheck::Nothing => match server.life.plugin_strangers.clone().try_acquire_owned() {
            Ok(place) => Some(place),
            Err(_) => {
                gate.record_refusal("?", "plugin_connect", &json!({"plugin": name}), "too_many");
                let why =
                    "too many connections have not shown the editors' secret yet; show it in the Authorization header";
                let trouble = GateError { retry_after_ms: Some(1000), ..GateError::new("too_many", 429, why) };
                return Ok(Box::pin(std::future::ready(access::refused(&trouble))));
            }
        },
        SecretCheck::Right | SecretCheck::Wrong => None,
    };
    let (hang_up, untrusted) = (server.life.hang_up.subscribe(), server.life.about.untrusted_changes());
    upgraded(request, move |socket| async move {
        let line = PluginConnection { socket, hang_up, untrusted };
        converse(&gate, &name, (shown, place), line).await;
    })
}

async fn converse<S>(
    gate: &Arc<Gate>,
    name: &str,
    (shown, place): (SecretCheck, Option<OwnedSemaphorePermit>),
    mut line: PluginConnection<S>,
) where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let turned_away = |why: &'static str| {
        gate.metrics.failed_auth("plugin");
        gate.record_refusal("?", "plugin_connect", &json!({"plugin": name}), why);
    };
    if shown == SecretCheck::Wrong {
        turned_away("unauthorized");
        return close(line.socket, TOKEN, WRONG_SECRET).await;
    }
    let within = if shown == SecretCheck::Right { REGISTER_WITHIN } else { STRANGER_REGISTERS_WITHIN };
    let register = match timeout(within, registration(&mut line.socket)).await {
        Ok(Some(register)) => register,
        Ok(None) => return close(line.socket, PROTOCOL, "the first message is `register`; see docs/plugin.md").await,
        Err(_) => {
            let why = format!("no `register` within {} s", within.as_secs());
            return close(line.socket, PROTOCOL, &why).await;
        }
    };
    let is_right = register.token.as_ref().is_some_and(|shown| gate.is_plugin(shown.0.as_bytes()));
    if shown == SecretCheck::Nothing && !is_right {
        turned_away("unauthorized");
        return close(line.socket, TOKEN, WRONG_SECRET).await;
    }
    drop(place);
    let router = gate.router();
    let (plugin, registered, outgoing) = match router.admit(name, &register).await {
        Ok(admitted) => admitted,
        Err(refusal) => {
            gate.record_refusal(name, "plugin_connect", &json!({"plugin": name}), refusal.code.name());
            let why = refusal.message.clone();
            say(&mut line.socket, &ToPlugin::Error(ErrorMessage { error: PluginError::from(refusal) })).await;
            return close(line.socket, PROTOCOL, &why).await;
        }
    };
    let connected = OwnershipGuard { router, plugin };
    if let Err(trouble) = gate.editor_came(&connected.plugin).await {
        return close(line.socket, GOING_AWAY, &trouble.message).await;
    }
    let (code, why) = match say(&mut line.socket, &ToPlugin::Registered(registered)).await {
        true => talk(gate, &connected, &mut line, outgoing).await,
        false => (GOING_AWAY, "it does not read"),
    };
    gate.editor_left(&connected.plugin, why);
    drop(connected);
    close(line.socket, code, why).await;
}

/// The first message, if it is what it has to be.
async fn registration<S>(socket: &mut WebSocketStream<S>) -> Option<RegisterMessage>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    loop {
        match socket.next().await? {
            Ok(Message::Text(text)) => match serde_json::from_str(&text) {
                Ok(FromPlugin::Register(register)) => return Some(register),
                Ok(_) => return None,
                Err(error) => {
                    let why = format!("`register` is not understood: {error}");
                    let error = PluginError::from(Refusal::new(Code::BadArguments, why));
                    say(socket, &ToPlugin::Error(ErrorMessage { error })).await;
                    return None;
                }
            },
            Ok(Message::Ping(_) | Message::Pong(_)) => {}
            _ => return None,
        }
    }
}

/// Listens and speaks until the connection is over. Returns with which code, and why.
async fn talk<S>(
    gate: &Arc<Gate>,
    connected: &OwnershipGuard<'_>,
    line: &mut PluginConnection<S>,
    mut outgoing: mpsc::Receiver<ToPlugin>,
) -> (u16, &'static str)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let OwnershipGuard { router, plugin } = connected;
    let (mut desk, mut pictures) = DecisionFeed::open(gate, plugin, &line.untrusted);
    let mut beat = interval(editor::BEAT);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut ended = std::pin::pin!(EditorRouter::ended(plugin));
    let (mut asked, mut answered) = (0_u64, 0_u64);
    loop {
        let message = tokio::select! {
            biased;
            _ = line.hang_up.changed() => return (GOING_AWAY, "Prism is stopping"),
            () = &mut ended => return (REPLACED, "the same instance has connected anew"),
            _ = beat.tick() => {
                if answered < asked {
                    return (SILENT, "no pong in time");
                }
                asked += 1;
                ToPlugin::Ping(Ping { id: asked })
            }
            Some(message) = outgoing.recv() => message,
            // After commands, and before more is heard: a picture is large, and nobody waits for it.
            Some(picture) = pictures.recv() => {
                if !say_text(&mut line.socket, picture).await {
                    return (GOING_AWAY, "it does not read");
                }
                continue;
            }
            // What is run meanwhile is shown when there is nothing better to say; more of it waits, or is left out.
            message = plugin.next_show() => message,
            heard = line.socket.next() => {
                match heard {
                    Some(Ok(Message::Text(text))) => {
                        match router.hear(plugin, &text) {
                            Some(RelayedMessage::Pong(pong)) if pong.id == asked => {
                                answered = asked;
                                router.ponged(plugin, pong.ui);
                            }
                            Some(RelayedMessage::Pong(_)) | None => {}
                            Some(RelayedMessage::Decide(word)) => desk.hear(DecisionInput::Decide(word)),
                            Some(RelayedMessage::Revoke(word)) => desk.hear(DecisionInput::Revoke(word)),
                        }
                    }
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                    Some(Ok(Message::Binary(_) | Message::Frame(_))) => return (1003, "messages are JSON texts"),
                    Some(Ok(Message::Close(_))) | None => return (1000, "it has left"),
                    Some(Err(_)) => return (PROTOCOL, "the connection broke"),
                }
                continue;
            }
        };
        if !say(&mut line.socket, &message).await {
            return (GOING_AWAY, "it does not read");
        }
    }
}

async fn say<S>(socket: &mut WebSocketStream<S>, message: &ToPlugin) -> bool
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let Ok(text) = serde_json::to_string(message) else { return true };
    say_text(socket, text).await
}

async fn say_text<S>(socket: &mut WebSocketStream<S>, text: String) -> bool
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    matches!(timeout(SEND_WITHIN, socket.send(Message::text(text))).await, Ok(Ok(())))
}

impl Drop for OwnershipGuard<'_> {
    fn drop(&mut self) {
        self.router.left(&self.plugin);
    }
}
