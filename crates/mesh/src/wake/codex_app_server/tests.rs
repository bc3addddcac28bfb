//! Against an app-server that is ours, over real sockets: what a real one was seen to answer, and everything that can go
//! wrong on the way there.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path as FilePath, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::AsyncReadExt,
    net::{TcpListener, UnixListener},
};
use tokio_tungstenite::{
    accept_hdr_async,
    tungstenite::{
        Message,
        handshake::server::{ErrorResponse, Request, Response},
    },
};

use super::{
    super::{
        ProbeOutcome, RingOutcome, WakeAdapter, WakeSettings,
        secret::PointedSecrets,
        tests::{TEXT, bell, contact, failed, rung},
    },
    CodexAdapter,
};

/// What the server does to whoever comes.
#[derive(Clone, Copy, PartialEq)]
enum Mood {
    Idle,
    Active,
    /// As `Active`, but the turn has ended when it is to be steered.
    Ending,
    Unknown,
    NotLoaded,
    /// A second person is there.
    Crowded,
    /// Hangs up on the first question after the greeting.
    Leaves,
    /// Says nothing after the greeting.
    Silent,
    /// Starts a turn, and does not say so.
    Slow,
}

struct Server {
    url: String,
    asked: Arc<Mutex<Vec<Value>>>,
    folder: TempDir,
}

impl Server {
    async fn start(mood: Mood) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("ws://{}", listener.local_addr().unwrap());
        let asked: Arc<Mutex<Vec<Value>>> = Arc::default();
        let seen = asked.clone();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(serve(socket, mood, seen.clone()));
            }
        });
        Self { url, asked, folder: tempfile::tempdir().unwrap() }
    }

    fn told(&self) -> Value {
        json!({ "url": self.url, "thread": "t-1", "token_file": self.token("right\n") })
    }

    fn token(&self, text: &str) -> PathBuf {
        write(&self.folder.path().join("token"), text, 0o600)
    }

    /// What was asked since the greeting, without what is in it.
    fn methods(&self) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        asked.iter().filter_map(|message| message["method"].as_str().map(str::to_owned)).collect()
    }

    fn last(&self) -> Value {
        self.asked.lock().unwrap().last().cloned().unwrap()
    }
}

fn write(path: &FilePath, text: &str, mode: u32) -> PathBuf {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    path.to_owned()
}

#[expect(clippy::result_large_err, reason = "the library's own shape")]
fn door(request: &Request, response: Response) -> Result<Response, ErrorResponse> {
    let token = request.headers().get("authorization").and_then(|value| value.to_str().ok());
    if token == Some("Bearer right") {
        return Ok(response);
    }
    let mut refusal = ErrorResponse::new(None);
    *refusal.status_mut() = hyper::StatusCode::UNAUTHORIZED;
    Err(refusal)
}

async fn serve(
    socket: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    mood: Mood,
    asked: Arc<Mutex<Vec<Value>>>,
) {
    let Ok(mut socket) = accept_hdr_async(socket, door).await else { return };
    while let Some(Ok(Message::Text(text))) = socket.next().await {
        let message: Value = serde_json::from_str(&text).unwrap();
        asked.lock().unwrap().push(message.clone());
        let Some(id) = message["id"].as_u64() else { continue };
        // A server speaks unasked, and may use our numbers for questions of its own.
        let noise = json!({ "id": id, "method": "item/tool/requestUserInput", "params": {} });
        socket.send(Message::text(noise.to_string())).await.unwrap();
        let method = message["method"].as_str().unwrap();
        let answer = match (method, mood) {
            ("initialize", _) => json!({ "result": { "userAgent": "codex" } }),
            (_, Mood::Leaves) => return,
            (_, Mood::Silent) | ("turn/start", Mood::Slow) => continue,
            ("thread/loaded/list", Mood::Crowded) => json!({ "result": { "data": ["t-1", "t-2"] } }),
            ("thread/loaded/list", _) => json!({ "result": { "data": ["title", "t-1", "sub", "gone"] } }),
            ("thread/read", _) if message["params"]["threadId"] == "gone" => {
                json!({ "error": { "code": -32600, "message": "thread not loaded: gone" } })
            }
            ("thread/read", Mood::Unknown) => {
                json!({ "error": { "code": -32600, "message": "thread not loaded: t-1" } })
            }
            ("thread/read", mood) => json!({ "result": { "thread": { "status": { "type": match mood {
                Mood::Active | Mood::Ending => "active",
                Mood::NotLoaded => "notLoaded",
                _ => "idle",
            } }, "ephemeral": message["params"]["threadId"] == "title",
                "parentThreadId": (message["params"]["threadId"] == "sub").then_some("t-1") } } }),
            ("thread/turns/list", _) => json!({ "result": { "data": [{ "id": "turn-9", "status": "inProgress" }] } }),
            ("turn/steer", Mood::Ending) => {
                json!({ "error": { "code": -32600, "message": "no active turn to steer" } })
            }
            ("turn/steer", _) => json!({ "result": { "turnId": "turn-9" } }),
            ("turn/start", _) => json!({ "result": { "turn": { "id": "turn-10" } } }),
            _ => json!({ "error": { "code": -32601, "message": "no such method" } }),
        };
        let mut answer = answer;
        answer["id"] = json!(id);
        socket.send(Message::text(answer.to_string())).await.unwrap();
    }
}

fn adapter() -> CodexAdapter {
    CodexAdapter::new(PointedSecrets::new(&WakeSettings::default()))
}

/// One that may use the file that this agent points to.
fn adapter_for(told: &Value) -> CodexAdapter {
    CodexAdapter::new(PointedSecrets::new(&allowed_for(told)))
}

fn allowed_for(told: &Value) -> WakeSettings {
    let listed = told["token_file"].as_str().map(|file| ("codex".to_owned(), format!("file:{file}")));
    WakeSettings { secrets: listed.into_iter().collect(), ..WakeSettings::default() }
}

async fn ring(told: &Value) -> RingOutcome {
    rung(&adapter_for(told), told).await
}

// H9
#[tokio::test]
async fn a_token_file_that_the_persons_config_does_not_list_is_neither_taken_nor_sent() {
    let server = Server::start(Mood::Idle).await;
    let told = server.told();
    let refused = adapter().check(&told).unwrap_err();
    assert!(refused.contains("below [mesh]") && refused.contains("/token"), "{refused}");
    // One that an earlier Prism has taken up.
    let kept = contact(&adapter_for(&told), &told);
    assert!(failed(adapter().ring(&kept, &bell()).await).contains("does not list"));
    assert!(server.methods().is_empty(), "nothing was sent");
    adapter_for(&told).check(&told).unwrap();
    let named = json!({ "url": server.url, "thread": "t-1", "secret": "codex" });
    assert_eq!(rung(&adapter_for(&told), &named).await, RingOutcome::Rang);
    assert!(!server.methods().is_empty());
}

#[tokio::test]
async fn an_idle_thread_gets_a_turn_with_the_bell_and_nothing_else() {
    let server = Server::start(Mood::Idle).await;
    assert_eq!(ring(&server.told()).await, RingOutcome::Rang);
    assert_eq!(server.methods(), ["initialize", "initialized", "thread/read", "turn/start"]);
    assert_eq!(server.last()["params"], json!({ "threadId": "t-1", "input": [{ "type": "text", "text": TEXT }] }));
}

#[tokio::test]
async fn an_active_turn_is_steered() {
    let server = Server::start(Mood::Active).await;
    assert_eq!(ring(&server.told()).await, RingOutcome::Rang);
    assert_eq!(server.methods()[2..], ["thread/read", "thread/turns/list", "turn/steer"]);
    assert_eq!(server.last()["params"]["expectedTurnId"], "turn-9");
    assert_eq!(server.last()["params"]["input"][0]["text"], TEXT);
}

#[tokio::test]
async fn a_turn_that_ends_while_it_is_steered_is_followed_by_one_of_ours() {
    let server = Server::start(Mood::Ending).await;
    assert_eq!(ring(&server.told()).await, RingOutcome::Rang);
    assert_eq!(server.methods()[4..], ["turn/steer", "turn/start"]);
}

#[tokio::test]
async fn a_thread_that_nobody_has_open_is_left_alone() {
    for mood in [Mood::Unknown, Mood::NotLoaded] {
        let server = Server::start(mood).await;
        let rung = ring(&server.told()).await;
        assert!(matches!(&rung, RingOutcome::Uncaptured(why) if why.contains("codex --remote")), "{rung:?}");
        assert_eq!(server.methods()[2..], ["thread/read"], "it is not resumed");
    }
}

#[tokio::test]
async fn the_only_thread_need_not_be_named() {
    let server = Server::start(Mood::Idle).await;
    let mut told = server.told();
    told.as_object_mut().unwrap().remove("thread");
    assert_eq!(ring(&told).await, RingOutcome::Rang);
    assert_eq!(server.last()["params"]["threadId"], "t-1");
    let crowded = Server::start(Mood::Crowded).await;
    told["url"] = json!(crowded.url);
    assert!(matches!(ring(&told).await, RingOutcome::Uncaptured(why) if why.contains("several threads")));
}

#[tokio::test]
async fn a_probe_starts_no_turn() {
    let server = Server::start(Mood::Active).await;
    let adapter = adapter_for(&server.told());
    assert_eq!(adapter.probe(&contact(&adapter, &server.told())).await, ProbeOutcome::There);
    assert_eq!(server.methods(), ["initialize", "initialized", "thread/read"]);
    let gone = Server::start(Mood::NotLoaded).await;
    let adapter = adapter_for(&gone.told());
    assert!(matches!(adapter.probe(&contact(&adapter, &gone.told())).await, ProbeOutcome::Absent(_)));
}

#[tokio::test]
async fn a_wrong_token_is_told_as_such_and_not_repeated() {
    let server = Server::start(Mood::Idle).await;
    let told = server.told();
    server.token("wr0ng");
    let why = failed(ring(&told).await);
    assert!(why.contains("--ws-token-file") && !why.contains("wr0ng"), "{why}");
    assert!(server.methods().is_empty());
}

#[tokio::test]
async fn a_token_file_must_look_like_one() {
    let server = Server::start(Mood::Idle).await;
    let told = server.told();
    for (text, mode, says) in [
        ("right", 0o644, "chmod 600"),
        ("two words", 0o600, "one token"),
        ("-----BEGIN KEY-----\nabc\n", 0o600, "one token"),
        ("", 0o600, "one token"),
    ] {
        write(&server.folder.path().join("token"), text, mode);
        let why = failed(ring(&told).await);
        assert!(why.contains(says), "{text:?}: {why}");
    }
    fs::remove_file(server.folder.path().join("token")).unwrap();
    assert!(failed(ring(&told).await).contains("is not there"));
    assert!(server.methods().is_empty(), "nothing was sent");
}

#[tokio::test]
async fn nothing_of_prisms_own_is_a_token() {
    let server = Server::start(Mood::Idle).await;
    let told = server.told();
    let home = server.folder.path().to_owned();
    let adapter = CodexAdapter::new(PointedSecrets::new(&WakeSettings { home, ..allowed_for(&told) }));
    let why = failed(adapter.ring(&contact(&adapter, &told), &bell()).await);
    assert!(why.contains("Prism's own folder"), "{why}");
}

#[tokio::test]
async fn nobody_listening_is_told_with_what_to_start() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}", listener.local_addr().unwrap());
    drop(listener);
    assert!(failed(ring(&json!({ "url": url, "thread": "t-1" })).await).contains("codex app-server --listen"));
    let socket = tempfile::tempdir().unwrap().path().join("gone.sock");
    let url = format!("unix://{}", socket.display());
    assert!(failed(ring(&json!({ "url": url, "thread": "t-1" })).await).contains("codex app-server --listen"));
}

#[tokio::test]
async fn a_server_that_hangs_up_midway_is_a_failure() {
    let server = Server::start(Mood::Leaves).await;
    assert!(failed(ring(&server.told()).await).contains("hung up"));
}

#[tokio::test]
async fn what_is_no_websocket_is_a_failure() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let _ = socket.read(&mut [0; 1024]).await;
    });
    let why = failed(ring(&json!({ "url": url, "thread": "t-1" })).await);
    assert!(why.contains("app-server"), "{why}");
}

#[tokio::test]
async fn a_server_that_says_nothing_costs_no_more_than_the_deadline() {
    let server = Server::start(Mood::Silent).await;
    let adapter = CodexAdapter { deadline: Duration::from_millis(50), ..adapter_for(&server.told()) };
    let why = failed(adapter.ring(&contact(&adapter, &server.told()), &bell()).await);
    assert!(why.contains("within 50ms"), "{why}");
}

// a turn that it was asked for may have begun, and is not said to have failed.
#[tokio::test]
async fn of_a_turn_that_is_not_answered_in_time_nobody_knows() {
    let server = Server::start(Mood::Slow).await;
    let adapter = CodexAdapter { deadline: Duration::from_secs(1), ..adapter_for(&server.told()) };
    let rung = adapter.ring(&contact(&adapter, &server.told()), &bell()).await;
    assert!(matches!(&rung, RingOutcome::Unanswered(why) if why.contains("within 1s")), "{rung:?}");
    assert_eq!(server.last()["method"], "turn/start");
}

#[tokio::test]
async fn a_server_on_a_unix_socket_is_as_good() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("codex.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let asked: Arc<Mutex<Vec<Value>>> = Arc::default();
    let seen = asked.clone();
    tokio::spawn(async move {
        let (socket, _) = listener.accept().await.unwrap();
        serve(socket, Mood::Idle, seen).await;
    });
    let token = write(&folder.path().join("token"), "right", 0o600);
    let told = json!({ "url": format!("unix://{}", path.display()), "thread": "t-1", "token_file": token });
    assert_eq!(ring(&told).await, RingOutcome::Rang);
    assert_eq!(asked.lock().unwrap().last().unwrap()["method"], "turn/start");
}
