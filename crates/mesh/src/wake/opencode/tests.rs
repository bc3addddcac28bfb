//! Against an OpenCode server that is ours, over real sockets: what a real one was seen to answer, and everything that can
//! go wrong on the way there.

use std::{
    collections::BTreeMap,
    fs,
    future::pending,
    io,
    os::unix::fs::PermissionsExt,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Request, Response, StatusCode, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::{
    super::{
        ProbeOutcome, RingOutcome, WakeAdapter, WakeSettings,
        secret::PointedSecrets,
        tests::{TEXT, bell, contact, failed, rung},
    },
    OpencodeAdapter, base64,
};
use prism_config::Env;

#[derive(Clone, Copy, PartialEq)]
enum Mood {
    Good,
    /// It answers no question.
    Silent,
    /// It takes the prompt, and does not say so.
    Slow,
    /// It hangs up on the prompt.
    Leaves,
    /// What listens is something else.
    Other,
}

type Asked = Arc<Mutex<Vec<(String, Value)>>>;

struct Server {
    url: String,
    asked: Asked,
}

impl Server {
    async fn start(mood: Mood) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked: Asked = Arc::default();
        let seen = asked.clone();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let seen = seen.clone();
                let service = service_fn(move |request| serve(request, mood, seen.clone()));
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(socket), service));
            }
        });
        Self { url, asked }
    }

    fn told(&self) -> Value {
        json!({ "url": self.url, "session": "ses_1", "password_env": "OPENCODE_SERVER_PASSWORD" })
    }

    fn paths(&self) -> Vec<String> {
        self.asked.lock().unwrap().iter().map(|(path, _)| path.clone()).collect()
    }
}

async fn serve(request: Request<Incoming>, mood: Mood, asked: Asked) -> io::Result<Response<Full<Bytes>>> {
    let answer = |status: u16, body: Value| {
        let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
        let mut response = Response::new(Full::new(body));
        *response.status_mut() = StatusCode::from_u16(status).unwrap();
        Ok(response)
    };
    let right = format!("Basic {}", base64(b"opencode:pass:word"));
    if request.headers().get("authorization").is_none_or(|value| value != right.as_str()) {
        return answer(401, Value::Null);
    }
    let path = format!("{} {}", request.method(), request.uri().path());
    let body = request.into_body().collect().await.unwrap().to_bytes();
    asked.lock().unwrap().push((path.clone(), serde_json::from_slice(&body).unwrap_or_default()));
    match (path.as_str(), mood) {
        (_, Mood::Other) => answer(404, Value::Null),
        (_, Mood::Silent) => pending().await,
        ("GET /session/ses_1", _) => answer(
            200,
            json!({ "id": "ses_1", "agent": "plan", "model": { "id": "m", "providerID": "p", "variant": "high" } }),
        ),
        ("GET /session/ses_new", _) => answer(200, json!({ "id": "ses_new" })),
        (_, Mood::Slow) => pending().await,
        (_, Mood::Leaves) => Err(io::ErrorKind::BrokenPipe.into()),
        ("POST /session/ses_1/prompt_async" | "POST /session/ses_new/prompt_async", _) => answer(204, Value::Null),
        _ => answer(404, json!({ "name": "NotFoundError", "data": { "message": "Session not found" } })),
    }
}

fn adapter() -> OpencodeAdapter {
    let env = Env::from([("OPENCODE_SERVER_PASSWORD", "pass:word"), ("OPENCODE_OTHER", "wr0ng")]);
    let listed = ["OPENCODE_SERVER_PASSWORD", "OPENCODE_OTHER", "OPENCODE_UNSET"];
    let secrets = listed.map(|name| (name.to_lowercase(), format!("env:{name}")));
    OpencodeAdapter::new(PointedSecrets::new(&WakeSettings { env, secrets: secrets.into(), ..WakeSettings::default() }))
}

async fn ring(told: &Value) -> RingOutcome {
    rung(&adapter(), told).await
}

#[tokio::test]
async fn a_session_is_prompted_with_the_bell_as_the_agent_and_model_that_it_has() {
    let server = Server::start(Mood::Good).await;
    assert_eq!(ring(&server.told()).await, RingOutcome::Rang);
    assert_eq!(server.paths(), ["GET /session/ses_1", "POST /session/ses_1/prompt_async"]);
    assert_eq!(
        server.asked.lock().unwrap()[1].1,
        json!({ "parts": [{ "type": "text", "text": TEXT }], "agent": "plan", "variant": "high",
            "model": { "providerID": "p", "modelID": "m" } })
    );
}

#[tokio::test]
async fn a_session_without_a_history_is_prompted_as_it_is() {
    let server = Server::start(Mood::Good).await;
    let mut told = server.told();
    told["session"] = json!("ses_new");
    assert_eq!(ring(&told).await, RingOutcome::Rang);
    assert_eq!(server.asked.lock().unwrap()[1].1, json!({ "parts": [{ "type": "text", "text": TEXT }] }));
}

#[tokio::test]
async fn a_probe_prompts_nobody() {
    let server = Server::start(Mood::Good).await;
    let adapter = adapter();
    assert_eq!(adapter.probe(&contact(&adapter, &server.told())).await, ProbeOutcome::There);
    let mut told = server.told();
    told["session"] = json!("ses_nope");
    assert!(matches!(adapter.probe(&contact(&adapter, &told)).await, ProbeOutcome::Absent(_)));
    assert_eq!(server.paths(), ["GET /session/ses_1", "GET /session/ses_nope"]);
}

#[tokio::test]
async fn a_session_that_is_not_there_is_nobody() {
    let server = Server::start(Mood::Good).await;
    let mut told = server.told();
    told["session"] = json!("ses_nope");
    assert!(matches!(ring(&told).await, RingOutcome::Uncaptured(why) if why.contains("wake.opencode.session")));
}

#[tokio::test]
async fn a_wrong_password_is_told_as_such_and_not_repeated() {
    let server = Server::start(Mood::Good).await;
    let mut told = server.told();
    told["password_env"] = json!("OPENCODE_OTHER");
    let why = failed(ring(&told).await);
    assert!(why.contains("OPENCODE_SERVER_PASSWORD") && !why.contains("wr0ng"), "{why}");
    told["password_env"] = json!("OPENCODE_UNSET");
    assert!(failed(ring(&told).await).contains("has no variable OPENCODE_UNSET"));
    told.as_object_mut().unwrap().remove("password_env");
    assert!(failed(ring(&told).await).contains("does not take the password"));
    assert!(server.paths().is_empty());
}

#[tokio::test]
async fn a_password_may_be_in_a_file() {
    let server = Server::start(Mood::Good).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("password");
    fs::write(&file, "pass:word\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let listed = BTreeMap::from([("mine".to_owned(), format!("file:{}", file.display()))]);
    let adapter =
        OpencodeAdapter::new(PointedSecrets::new(&WakeSettings { secrets: listed, ..WakeSettings::default() }));
    for (key, value) in [("password_file", json!(file)), ("secret", json!("mine"))] {
        let mut told = json!({ "url": server.url, "session": "ses_1" });
        told[key] = value;
        adapter.check(&told).unwrap();
        assert_eq!(adapter.ring(&contact(&adapter, &told), &bell()).await, RingOutcome::Rang, "{key}");
    }
}

// H9: an agent has whatever it points to sent to where it says.
#[tokio::test]
async fn what_the_persons_config_does_not_list_is_neither_taken_nor_sent() {
    let server = Server::start(Mood::Good).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("vault-token");
    fs::write(&file, "pass:word\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    for (key, value, add) in [
        ("password_file", json!(file), format!("file:{}", file.display())),
        ("password_env", json!("OPENCODE_HIDDEN"), "env:OPENCODE_HIDDEN".to_owned()),
        ("secret", json!("vault"), "vault = ".to_owned()),
    ] {
        let mut told = json!({ "url": server.url, "session": "ses_1" });
        told[key] = value;
        let refused = adapter().check(&told).unwrap_err();
        assert!(refused.contains("below [mesh]") && refused.contains(&add), "{key}: {refused}");
        // One that an earlier Prism has taken up.
        let listed = [("vault", format!("file:{}", file.display())), ("NAME", "env:OPENCODE_HIDDEN".to_owned())];
        let secrets = listed.map(|(name, listed)| (name.to_owned(), listed)).into();
        let lenient = OpencodeAdapter::new(PointedSecrets::new(&WakeSettings { secrets, ..WakeSettings::default() }));
        let kept = contact(&lenient, &told);
        assert!(failed(adapter().ring(&kept, &bell()).await).contains("does not list"), "{key}");
    }
    assert!(server.paths().is_empty(), "nothing was sent");
}

#[tokio::test]
async fn nobody_listening_is_told_with_what_to_start() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    assert!(failed(ring(&json!({ "url": url, "session": "ses_1" })).await).contains("opencode --port"));
}

#[tokio::test]
async fn a_server_that_hangs_up_midway_is_a_failure() {
    let server = Server::start(Mood::Leaves).await;
    assert!(failed(ring(&server.told()).await).contains("hung up"));
}

#[tokio::test]
async fn what_is_no_opencode_is_a_failure() {
    let server = Server::start(Mood::Other).await;
    assert!(failed(ring(&server.told()).await).contains("HTTP 404"));
}

#[tokio::test]
async fn a_server_that_says_nothing_costs_no_more_than_the_deadline() {
    let server = Server::start(Mood::Silent).await;
    let adapter = OpencodeAdapter { deadline: Duration::from_millis(50), ..adapter() };
    let why = failed(adapter.ring(&contact(&adapter, &server.told()), &bell()).await);
    assert!(why.contains("within 50ms"), "{why}");
    assert!(!server.paths().iter().any(|path| path.starts_with("POST")), "nobody was prompted");
}

// a prompt that it has may have been taken, and is not said to have failed.
#[tokio::test]
async fn of_a_prompt_that_is_not_answered_in_time_nobody_knows() {
    let server = Server::start(Mood::Slow).await;
    let adapter = OpencodeAdapter { deadline: Duration::from_secs(1), ..adapter() };
    let rung = adapter.ring(&contact(&adapter, &server.told()), &bell()).await;
    assert!(matches!(&rung, RingOutcome::Unanswered(why) if why.contains("within 1s")), "{rung:?}");
    assert_eq!(server.paths(), ["GET /session/ses_1", "POST /session/ses_1/prompt_async"]);
}

#[test]
fn letters_are_those_of_rfc_4648() {
    for (plain, coded) in
        [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("foobar", "Zm9vYmFy")]
    {
        assert_eq!(base64(plain.as_bytes()), coded);
    }
    assert_eq!(base64(&[0xff, 0xfe]), "//4=");
}
