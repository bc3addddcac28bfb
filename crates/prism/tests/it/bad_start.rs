//! Children that do not get through the handshake, or break it off: whoever waits is told, nothing is left behind
//! (B-02, B-07, B-08).

use rustix::process::Signal;
use serde_json::json;

use crate::support::{Daemon, Home, Launch, demo, process, until};

fn shell(script: &str) -> Vec<String> {
    ["sh", "-c", script].map(str::to_owned).to_vec()
}

/// A server that gives the same answer to every request.
fn parrot(answer: &str) -> Vec<String> {
    shell(&format!(r#"exec sed -u 's/.*"id":\([0-9]*\).*/{{"jsonrpc":"2.0","id":\1,{answer}}}/'"#))
}

async fn no_session_and_no_child(daemon: &Daemon) {
    until("nothing is left", async || daemon.children().is_empty()).await;
    assert_eq!(daemon.metric(r#"prism_sessions{destination="run"}"#).await, Some(0));
    assert_eq!(daemon.metric(r#"prism_children{destination="run"}"#).await, Some(0));
}

// B-02
#[tokio::test]
async fn a_server_that_refuses_initialize_is_quoted() {
    for process in ["shared", "per_session"] {
        let refusal = r#""error":{"code":-32602,"message":"not today"}"#;
        let daemon = Launch::run(&["--process", process], &parrot(refusal)).start().await;
        let reply = daemon.client().say_hello().await;
        assert_eq!(reply.header("mcp-session-id"), None);
        assert_eq!(reply.json().await["error"], json!({"code": -32602, "message": "not today"}));
        no_session_and_no_child(&daemon).await;
    }
}

// B-02
#[tokio::test]
async fn an_answer_to_initialize_that_is_none_is_503() {
    for process in ["shared", "per_session"] {
        let daemon = Launch::run(&["--process", process], &parrot(r#""result":5"#)).start().await;
        let reply = daemon.client().say_hello().await;
        assert_eq!(reply.status, 503);
        assert!(reply.json().await["error"]["message"].as_str().unwrap().contains("initialize"));
        no_session_and_no_child(&daemon).await;
    }
}

// B-07, R-16: a start has a limit of its own, and its error says what to type.
#[tokio::test]
async fn a_child_that_never_answers_initialize_is_503_and_frees_its_place() {
    let flags = ["--process", "per_session", "--start-timeout", "300ms", "--max-sessions", "1"];
    let server = shell("echo downloading the world >&2; exec sleep 1000");
    let daemon = Launch::run(&flags, &server).start().await;
    for _ in 0..2 {
        let reply = daemon.client().say_hello().await;
        assert_eq!(reply.status, 503);
        let told = reply.text().await;
        assert!(told.contains("`start_timeout` (300ms)") && told.contains("downloading the world"), "{told}");
    }
    no_session_and_no_child(&daemon).await;
}

// R-16: whoever was slower to start than a call may take could not be used at all.
#[tokio::test]
async fn a_server_that_starts_slower_than_a_call_may_take_can_be_used() {
    let home = Home::new();
    for process in ["shared", "per_session"] {
        let pipe = home.file(process);
        let script = format!("mkfifo {pipe}; cat {pipe} >/dev/null; exec {}", demo(&[]).join(" "));
        let flags = ["--process", process, "--request-timeout", "100ms"];
        let daemon = Launch::run(&flags, &shell(&script)).start().await;
        let client = daemon.client();
        // Its greeting has waited for longer than a call may when it becomes a stream.
        let reply = client.say_hello().await;
        assert_eq!((reply.status, reply.is_stream()), (200, true));
        assert!(reply.header("mcp-session-id").is_some());
        std::fs::write(&pipe, "go\n").unwrap();
        let answer = reply.events().message().await;
        assert_eq!(answer["result"]["serverInfo"]["name"], "prism-demo", "{answer}");
    }
}

// B-08: it can answer nothing any more, so it is as good as dead.
#[tokio::test]
async fn a_child_that_closes_its_stdout_is_ended_and_started_again() {
    let home = Home::new();
    let pipe = home.file("pipe");
    // The demo server writes into a pipe of its own, and what carries that to the daemon can be cut.
    let server = demo(&[]).join(" ");
    let script = format!("rm -f {pipe}; mkfifo {pipe}; cat <{pipe} & echo $! > {pipe}.pid; exec {server} >{pipe}");
    let daemon = Launch::run(&[], &shell(&script)).home(&home).start().await;
    let session = daemon.client().initialize().await;
    let child = session.child().await;
    let carrier: u32 = std::fs::read_to_string(format!("{pipe}.pid")).unwrap().trim().parse().unwrap();
    process::signal(carrier, Signal::KILL);
    until("the child is ended", async || !process::is_alive(child)).await;
    // A call may come between its end and the moment that the daemon knows of it.
    until("another one answers", async || session.call("whoami", json!({})).await.status == 200).await;
    assert_ne!(session.child().await, child);
}

// B-13: a frozen process cannot hear SIGTERM.
#[tokio::test]
async fn a_frozen_child_is_killed() {
    let daemon = Daemon::run(&["--request-timeout", "300ms", "--max-request-time", "300ms"], &[]).await;
    let session = daemon.client().initialize().await;
    let child = session.child().await;
    process::signal(child, Signal::STOP);
    assert_eq!(session.call("whoami", json!({})).await.status, 504);
    assert_eq!(session.delete().await.status, 204);
    until("it is gone", async || !process::is_there(child)).await;
    daemon.client().initialize().await.child().await;
}
