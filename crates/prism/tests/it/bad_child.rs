//! Children that misbehave: the call they spoil gets its error, everybody else goes on (B-07, B-14, B-15).

use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::{Daemon, Home, Launch, Reply, demo, lines, process, rests, result_text, until};

async fn error(reply: Reply) -> (u16, Value) {
    (reply.status, reply.json().await["error"].clone())
}

/// The id under which a child was asked to run a tool.
fn upstream_id(record: &str, tool: &str) -> Option<Value> {
    let is_call = |message: &Value| message["method"] == "tools/call" && message["params"]["name"] == tool;
    let mut messages = lines(record).into_iter().filter_map(|line| serde_json::from_str::<Value>(&line).ok());
    messages.rfind(is_call).map(|message| message["id"].clone())
}

fn was_cancelled(record: &str, id: &Value) -> bool {
    lines(record)
        .iter()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .any(|message| message["method"] == "notifications/cancelled" && message["params"]["requestId"] == *id)
}

// B-14
// checks 107
#[tokio::test]
async fn garbage_on_stdout_is_skipped_and_everything_else_is_served() {
    let daemon = Daemon::run(&["--era", "legacy"], &["--fault", "garbage"]).await;
    let session = daemon.client().initialize().await;
    let mut stream = session.listen().await;
    assert_eq!(session.text("echo", json!({"text": "hello"})).await, "hello");
    session.text("change", json!({"what": "tools"})).await;
    assert_eq!(stream.message().await["method"], "notifications/tools/list_changed");
    let skipped = daemon.metric(r#"prism_events_total{destination="run",event="garbage"}"#).await;
    // Before each of four messages there were four lines of it that are not blank.
    assert_eq!(skipped, Some(16));
}

// B-07, B-14
// checks 46
#[tokio::test]
async fn a_child_that_writes_half_a_line_and_stops_costs_that_call_and_no_more() {
    let daemon = Daemon::run(&["--request-timeout", "300ms"], &["--fault", "half-line"]).await;
    let session = daemon.client().initialize().await;
    let (status, told) = error(session.taking_json().call("whoami", json!({})).await).await;
    assert_eq!(status, 504);
    assert!(told["message"].as_str().unwrap().contains("request_timeout"), "{told}");
    assert_eq!(told["data"]["reason"], "upstream_timeout");
    // The daemon lives, the session too, and whoever comes after gets a child that can speak.
    assert_eq!(session.ask("ping", json!({})).await.json().await["result"], json!({}));
    assert_eq!(daemon.get("/healthz").await.status, 200);
    let child = daemon.children()[0];
    assert_eq!(session.delete().await.status, 204);
    until("the child is gone", async || !process::is_alive(child)).await;
    let next = daemon.client().initialize().await;
    assert!(next.ask("tools/list", json!({})).await.answer().await["result"]["tools"].is_array());
}

// B-07
#[tokio::test]
async fn a_call_over_the_timeout_is_504_and_the_child_is_told() {
    let home = Home::new();
    let record = home.file("record");
    let launch = Launch::run(&["--request-timeout", "300ms"], &demo(&["--record", &record]));
    let daemon = launch.home(&home).start().await;
    let session = daemon.client().initialize().await;
    let (status, told) = error(session.taking_json().call("slow", json!({"ms": 600_000, "text": "x"})).await).await;
    assert_eq!(status, 504);
    assert!(told["message"].as_str().unwrap().contains("request_timeout"), "{told}");
    let id = upstream_id(&record, "slow").unwrap();
    until("the child is told", async || was_cancelled(&record, &id)).await;
    session.child().await;
}

// R-51: without us a call of 40 s works, and so it must with us, whichever way its client came.
#[tokio::test]
async fn a_silent_call_over_the_timeout_becomes_a_stream_and_is_answered_there() {
    let daemon = Daemon::run(&["--request-timeout", "200ms"], &[]).await;
    let silent = json!({"name": "slow", "arguments": {"ms": 600, "text": "here"}, "_meta": {"progressToken": "t"}});
    let session = daemon.client().initialize().await;
    for client in [session.clone(), daemon.client()] {
        let mut events = client.ask("tools/call", silent.clone()).await.events();
        let told = events.message().await;
        assert_eq!(told["params"]["progressToken"], "t", "{told}");
        assert!(told["params"]["progress"].as_f64().unwrap() < 0.0, "the server may begin at 0: {told}");
        assert_eq!(told["params"]["message"], "still running, 0 s");
        assert_eq!(result_text(&events.message().await), "here");
    }
    // What takes too long in the end is an error on the stream, and the server is told.
    let home = Home::new();
    let record = home.file("record");
    let flags = ["--request-timeout", "200ms", "--max-request-time", "500ms"];
    let daemon = Launch::run(&flags, &demo(&["--record", &record])).home(&home).start().await;
    let session = daemon.client().initialize().await;
    let reply = session.call("slow", json!({"ms": 600_000, "text": "x"})).await;
    assert_eq!((reply.status, reply.is_stream()), (200, true));
    let told = reply.answer().await["error"].clone();
    assert_eq!(told["data"]["reason"], "upstream_timeout", "{told}");
    assert!(told["message"].as_str().unwrap().contains("`max_request_time` (500ms)"), "{told}");
    let id = upstream_id(&record, "slow").unwrap();
    until("the child is told", async || was_cancelled(&record, &id)).await;
}

// B-07
#[tokio::test]
async fn progress_restarts_the_clock_up_to_the_hard_limit() {
    let flags = ["--request-timeout", "400ms", "--max-request-time", "1500ms"];
    let daemon = Daemon::run(&flags, &[]).await;
    let session = daemon.client().initialize().await;
    let call = |steps: u32| {
        let arguments = json!({"steps": steps, "ms": 100});
        let params = json!({"name": "progress", "arguments": arguments, "_meta": {"progressToken": 1}});
        session.ask("tools/call", params)
    };
    // Longer than the timeout, shorter than the limit.
    let answer = call(8).await.answer().await;
    assert_eq!(answer["result"]["content"][0]["text"], "8 steps done", "{answer}");
    // And longer than both.
    let answer = call(1000).await.answer().await;
    assert_eq!(answer["error"]["data"]["reason"], "upstream_timeout", "{answer}");
}

// B-07
#[tokio::test]
async fn a_timeout_of_0_waits() {
    let daemon = Daemon::run(&["--request-timeout", "0"], &[]).await;
    let session = daemon.client().initialize().await;
    assert_eq!(session.text("slow", json!({"ms": 700, "text": "here"})).await, "here");
}

// B-07: a mute child answers the rest.
#[tokio::test]
async fn a_child_that_is_mute_on_one_method_is_heard_on_the_others() {
    let daemon =
        Daemon::run(&["--request-timeout", "300ms", "--max-request-time", "300ms"], &["--fault", "mute"]).await;
    let session = daemon.client().initialize().await;
    assert_eq!(session.call("whoami", json!({})).await.status, 504);
    assert_eq!(session.ask("tools/list", json!({})).await.status, 200);
    assert_eq!(daemon.get("/readyz").await.status, 200, "it answers a ping");
}

// B-18, style 3
#[tokio::test]
async fn a_child_that_never_reads_is_504_then_503_and_memory_is_bounded() {
    let daemon =
        Daemon::run(&["--request-timeout", "500ms", "--max-request-time", "500ms"], &["--fault", "deaf"]).await;
    let session = daemon.client().initialize().await;
    let before = process::peak_kib(daemon.pid());
    let (status, told) = error(session.call("echo", json!({"text": "anybody there?"})).await).await;
    assert_eq!((status, &told["data"]["reason"]), (504, &json!("upstream_timeout")));

    // 45 MB for a pipe of at most 1 MiB and a buffer of 4; eight at once, so that what is on its way stays small.
    let text = "x".repeat(900_000);
    let mut calls = JoinSet::new();
    let mut outcomes = Vec::new();
    for _ in 0..50 {
        let (session, text) = (session.clone(), text.clone());
        calls.spawn(async move { error(session.call("echo", json!({"text": text})).await).await });
        if calls.len() == 8 {
            outcomes.extend(calls.join_next().await.unwrap());
        }
    }
    outcomes.extend(calls.join_all().await);
    for (status, told) in &outcomes {
        let (status, message) = (*status, told["message"].as_str().unwrap());
        assert!(status == 504 || (status == 503 && message.contains("does not read its input")), "{status}: {told}");
    }
    let waited = outcomes.iter().filter(|(status, _)| *status == 504).count();
    assert!((3..=8).contains(&waited), "{waited} were taken");
    // Even a small call is refused at once now, with a time to come back.
    let reply = session.call("whoami", json!({})).await;
    assert_eq!((reply.status, reply.header("retry-after")), (503, Some("1")));
    let grown = process::peak_kib(daemon.pid()) - before;
    assert!(grown < 32 << 10, "grew by {grown} KiB");
    rests(&daemon, Duration::from_millis(300)).await;
    assert_eq!(daemon.get("/readyz").await.status, 503);
}

// Style 3: what has no answer is bounded as well.
#[tokio::test]
async fn notifications_to_a_child_that_never_reads_do_not_pile_up() {
    let daemon = Daemon::run(&["--process", "per_session"], &["--fault", "deaf"]).await;
    let session = daemon.client().initialize().await;
    let before = process::peak_kib(daemon.pid());
    for _ in 0..60 {
        let note = json!({"filler": "x".repeat(900_000)});
        session.notify("notifications/roots/list_changed", note).await;
    }
    let grown = process::peak_kib(daemon.pid()) - before;
    assert!(grown < 24 << 10, "grew by {grown} KiB over 54 MB");
}

// B-14: an answer of a child to nothing at all reaches nobody and breaks nothing.
// checks 99
#[tokio::test]
async fn answers_that_nobody_waits_for_are_dropped() {
    let home = Home::new();
    let wrapper = home.file("server.sh");
    let answers = r#"echo '{"jsonrpc":"2.0","id":4711,"result":{}}'; echo '{"jsonrpc":"2.0","id":"x","result":{}}'"#;
    let noise =
        r#"echo '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":9,"progress":1}}'"#;
    std::fs::write(&wrapper, format!("{answers}; {noise}; exec {}", demo(&[]).join(" "))).unwrap();
    let daemon = Launch::run(&[], &["sh".to_owned(), wrapper]).home(&home).start().await;
    let session = daemon.client().initialize().await;
    assert_eq!(session.text("echo", json!({"text": "hello"})).await, "hello");
}

// B-15
// checks 107
#[tokio::test]
async fn stderr_is_logged_with_the_name_and_never_forwarded() {
    let daemon = Daemon::run(&[], &[]).await;
    let session = daemon.client().initialize().await;
    let mut stream = session.listen().await;
    let reply = session.call("stderr", json!({"text": "the disk is full\u{1b}[2J"})).await;
    assert!(!reply.is_stream());
    assert!(!reply.text().await.contains("disk"));
    let logged = || {
        let log = daemon.stderr();
        let line = log.lines().find(|line| line.contains("stderr: the disk is full"))?.to_owned();
        Some(line)
    };
    until("it is in the log", async || logged().is_some()).await;
    let line = logged().unwrap();
    assert!(line.contains("WARN") && line.contains(r#"destination="run""#), "{line}");
    assert!(!line.contains('\u{1b}'), "{line}");
    // What comes first on the stream is what was sent after it.
    session.text("change", json!({"what": "tools"})).await;
    assert_eq!(stream.message().await["method"], "notifications/tools/list_changed");
}

// B-15: a child that never stops complaining is never stopped by a full pipe.
#[tokio::test]
async fn a_flood_on_stderr_blocks_nobody() {
    let home = Home::new();
    let wrapper = home.file("server.sh");
    let flood = "i=0; while [ $i -lt 20000 ]; do echo 'a line of complaint that is long enough' >&2; i=$((i+1)); done";
    std::fs::write(&wrapper, format!("{flood}; exec {}", demo(&[]).join(" "))).unwrap();
    let daemon = Launch::run(&[], &["sh".to_owned(), wrapper]).home(&home).start().await;
    let session = daemon.client().initialize().await;
    assert_eq!(session.text("echo", json!({"text": "hello"})).await, "hello");
    let shown = daemon.stderr().lines().filter(|line| line.contains("a line of complaint")).count();
    assert!(shown < 1000, "{shown} lines");
}
