//! A stop lets calls finish that are in flight, takes nothing new meanwhile, and does not wait for ever (D-09).

use rustix::process::Signal;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::support::{Daemon, Home, Launch, destination, lines, result_text, soon, until};

/// Long enough for all that a test does meanwhile.
const SLOW_MS: u64 = 3000;

async fn with_slow_server(home: &Home, drain: &str) -> Daemon {
    let config = destination("a", &["--record", &home.file("record")], "");
    Launch::serve(&config).home(home).env("PRISM_DRAIN_TIMEOUT", drain).start().await
}

async fn is_called(home: &Home) {
    let record = home.file("record");
    until("the call is with its child", async || lines(&record).iter().any(|line| line.contains("slow"))).await;
}

// D-09: graceful stop drains what is in flight.
#[tokio::test]
async fn a_call_in_flight_is_answered_before_the_daemon_ends() {
    let home = Home::new();
    let mut daemon = with_slow_server(&home, "40s").await;
    let session = daemon.client_at("/a/mcp").initialize().await;
    // A connection that is kept alive, with nothing on it.
    let mut kept = TcpStream::connect(("127.0.0.1", daemon.port())).await.unwrap();
    kept.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut answer = vec![0; 4096];
    assert!(soon("it answers", kept.read(&mut answer)).await.unwrap() > 0);
    let call = tokio::spawn(async move {
        session.call("slow", json!({"ms": SLOW_MS, "text": "worth waiting"})).await.answer().await
    });
    is_called(&home).await;

    daemon.signal(Signal::TERM);
    until("it is stopping", async || daemon.stderr().contains("Stopping")).await;
    let request = format!(
        "POST /a/mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
         Content-Length: 2\r\n\r\n{{}}",
        daemon.token()
    );
    kept.write_all(request.as_bytes()).await.unwrap();
    let mut refusal = String::new();
    soon("it refuses and closes", kept.read_to_string(&mut refusal)).await.unwrap();
    let refusal = refusal.to_lowercase();
    assert!(refusal.starts_with("http/1.1 503 "), "{refusal}");
    assert!(refusal.contains("retry-after: 1") && refusal.contains("connection: close"), "{refusal}");
    until("nobody new gets in", async || TcpStream::connect(("127.0.0.1", daemon.port())).await.is_err()).await;
    assert!(!home.path().join("http-mcp.json").exists(), "nobody finds the way here");
    assert!(!call.is_finished(), "all this was while it was in flight");

    assert_eq!(result_text(&call.await.unwrap()), "worth waiting");
    assert_eq!(daemon.ended().await.code(), Some(0));
}

// A call that would take for ever is ended, and told so.
#[tokio::test]
async fn a_call_that_takes_too_long_is_ended_with_an_error() {
    let home = Home::new();
    let mut daemon = with_slow_server(&home, "100ms").await;
    let session = daemon.client_at("/a/mcp").initialize().await;
    let call = tokio::spawn(async move { session.call("slow", json!({"ms": 600_000, "text": "never"})).await.status });
    is_called(&home).await;
    daemon.signal(Signal::TERM);
    assert!([404, 503].contains(&call.await.unwrap()));
    assert_eq!(daemon.ended().await.code(), Some(0));
    until("it says so", async || daemon.stderr().contains("did not finish in time")).await;
}

// A stream is no call: it is ended at once, and so is the daemon.
#[tokio::test]
async fn open_streams_are_not_waited_for() {
    let home = Home::new();
    let mut daemon = with_slow_server(&home, "40s").await;
    let session = daemon.client_at("/a/mcp").initialize().await;
    let mut stream = session.listen().await;
    assert_eq!(stream.next().await.unwrap().data, "");
    daemon.signal(Signal::TERM);
    assert_eq!(stream.next().await, None);
    assert_eq!(daemon.ended().await.code(), Some(0));
    assert!(!daemon.stderr().contains("did not finish"), "{}", daemon.stderr());
}

// A person who has no patience left.
#[tokio::test]
async fn a_second_ctrl_c_waits_for_no_call() {
    let home = Home::new();
    let mut daemon = with_slow_server(&home, "1h").await;
    let session = daemon.client_at("/a/mcp").initialize().await;
    let call = tokio::spawn(async move { session.call("slow", json!({"ms": 600_000, "text": "never"})).await });
    is_called(&home).await;
    daemon.signal(Signal::INT);
    until("it is stopping", async || daemon.stderr().contains("Stopping")).await;
    daemon.signal(Signal::INT);
    assert_eq!(daemon.ended().await.code(), Some(0));
    call.abort();
}
