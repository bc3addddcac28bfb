//! Clients that misbehave: the others do not notice, and memory stays bounded (B-10, B-12, B-19).

use hyper::Method;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
};

use crate::support::{Client, Daemon, Home, Launch, demo, lines, process, soon, until};

const MADE_UP: &str = "11111111-2222-4333-8444-555555555555";

/// Opens a GET stream of a session and reads its head, no more.
async fn stalled_listener(daemon: &Daemon, session: &Client) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", daemon.port())).await.unwrap();
    let head = format!(
        "GET /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nMcp-Session-Id: {}\r\n\
         Accept: text/event-stream\r\n\r\n",
        daemon.token(),
        session.session()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut begin = [0; 15];
    soon("the head", stream.read_exact(&mut begin)).await.unwrap();
    assert_eq!(&begin, b"HTTP/1.1 200 OK");
    stream
}

// Style 3 (cut off)
#[tokio::test]
async fn a_client_that_stops_reading_is_cut_off_and_nobody_else_notices() {
    const NOTES: usize = 40;
    let daemon = Daemon::run(&[], &[]).await;
    let session = daemon.client().initialize().await;
    let other = daemon.client().initialize().await;
    let mut good = session.listen().await;
    let mut others = other.listen().await;
    let mut stalled = stalled_listener(&daemon, &session).await;
    let before = process::peak_kib(daemon.pid());
    let cut_off = r#"prism_events_total{destination="run",event="cut_off"}"#;

    // 20 MB, which is more than sockets and queues hold. A client that takes JSON only has the notes of its calls on
    // its GET streams, on each of them.
    let text = "x".repeat(500_000);
    for i in 0..NOTES {
        let arguments = json!({"level": "info", "text": format!("{i} {text}")});
        let params = json!({"name": "log", "arguments": arguments});
        let call = json!({"jsonrpc": "2.0", "id": i, "method": "tools/call", "params": params});
        let request = session.request(Method::POST).header("accept", "application/json");
        assert_eq!(request.body(call.to_string()).send().await.status, 200);
        let note = good.message().await;
        assert!(note["params"]["data"].as_str().unwrap().starts_with(&format!("{i} ")));
    }
    assert_eq!(daemon.metric(cut_off).await, Some(1));
    // The other session has heard nothing of it, and hears what it should.
    session.text("change", json!({"what": "prompts"})).await;
    assert_eq!(others.message().await["method"], "notifications/prompts/list_changed");
    assert_eq!(good.message().await["method"], "notifications/prompts/list_changed");
    let grown = process::peak_kib(daemon.pid()) - before;
    assert!(grown < 24 << 10, "grew by {grown} KiB");

    // What it had been sent is still there for it to read, then its stream ends; it may come back.
    let mut read = Vec::new();
    let mut buffer = vec![0; 1 << 16];
    while !read.ends_with(b"0\r\n\r\n") {
        let count = soon("the end of the stream", stalled.read(&mut buffer)).await.unwrap();
        assert!(count > 0, "the connection is still good");
        read.extend_from_slice(&buffer[..count]);
    }
    assert!(read.len() < NOTES * 500_000);
    let read = String::from_utf8_lossy(&read);
    let last = read.lines().rev().find_map(|line| line.strip_prefix("id: ")).expect("an id was sent");
    let again = session.request(Method::GET).header("last-event-id", last).send().await;
    assert_eq!(again.status, 200);
}

// We end a stream early only when its reader has stopped reading (above). By then it has had an id, and been told how
// soon to come back.
// checks 42
#[tokio::test]
async fn whoever_may_be_cut_off_has_an_id_to_come_back_with_and_knows_when() {
    let daemon = Daemon::run(&[], &[]).await;
    let session = daemon.client().initialize().await;
    let first = session.listen().await.next().await.unwrap();
    assert_eq!((first.data.as_str(), first.retry), ("", Some(1000)));
    let last = first.id.expect("an id");
    session.text("change", json!({"what": "tools"})).await;
    let mut again = session.request(Method::GET).header("last-event-id", &last).send().await.events();
    assert_eq!(again.message().await["method"], "notifications/tools/list_changed");
}

// B-03, B-11
#[tokio::test]
async fn a_thousand_gets_with_a_made_up_session_are_404_and_cost_nothing() {
    let daemon = Daemon::run(&[], &[]).await;
    let stranger = daemon.client().with_session(MADE_UP);
    // The first ones warm up what is made once.
    for _ in 0..50 {
        assert_eq!(stranger.request(Method::GET).send().await.status, 404);
    }
    let before = process::resident_kib(daemon.pid());
    let mut gets = JoinSet::new();
    for _ in 0..1000 {
        let request = stranger.request(Method::GET);
        gets.spawn(async move { request.send().await.status });
        if gets.len() == 50 {
            assert_eq!(gets.join_next().await.unwrap().unwrap(), 404);
        }
    }
    assert!(gets.join_all().await.iter().all(|status| *status == 404));
    let grown = process::resident_kib(daemon.pid()).saturating_sub(before);
    assert!(grown < 4 << 10, "grew by {grown} KiB");
    assert_eq!(daemon.metric(r#"prism_streams{destination="run"}"#).await, Some(0));
    assert_eq!(daemon.metric(r#"prism_sessions{destination="run"}"#).await, Some(0));
    assert!(daemon.children().is_empty(), "nobody was started for them");
}

// B-19
// checks 38 99
#[tokio::test]
async fn a_client_that_leaves_while_its_call_waits_takes_nothing_along() {
    let home = Home::new();
    let record = home.file("record");
    let daemon = Launch::run(&[], &demo(&["--record", &record])).home(&home).start().await;
    let session = daemon.client().initialize().await;
    let child = session.child().await;
    let leaver = {
        let session = session.clone();
        tokio::spawn(async move { session.call("slow", json!({"ms": 300, "text": "x"})).await.status })
    };
    until("the call is with the child", async || lines(&record).iter().any(|line| line.contains("slow"))).await;
    leaver.abort();
    let left = || daemon.stderr().lines().any(|line| line.contains("tools/call") && line.contains("status_code=499"));
    until("the record says that it left", async || left()).await;
    assert_eq!(session.child().await, child);
    // Its answer comes later, to nobody; the next ones come to their own calls.
    assert_eq!(session.text("slow", json!({"ms": 400, "text": "mine"})).await, "mine");
    assert!(!lines(&record).iter().any(|line| line.contains("notifications/cancelled")), "leaving is not cancelling");
}

// B-19: the same for a call that has become a stream.
// checks 38
#[tokio::test]
async fn a_client_that_leaves_its_stream_takes_nothing_along() {
    let home = Home::new();
    let record = home.file("record");
    let daemon = Launch::run(&[], &demo(&["--record", &record])).home(&home).start().await;
    let session = daemon.client().initialize().await;
    let child = session.child().await;
    let arguments = json!({"steps": 1000, "ms": 20});
    let params = json!({"name": "progress", "arguments": arguments, "_meta": {"progressToken": 1}});
    let mut stream = session.ask("tools/call", params).await.events();
    stream.message().await;
    assert_eq!(daemon.metric(r#"prism_streams{destination="run"}"#).await, Some(1));
    drop(stream);
    let streams = r#"prism_streams{destination="run"}"#;
    until("the stream is let go", async || daemon.metric(streams).await == Some(0)).await;
    assert_eq!(session.child().await, child);
    assert!(!lines(&record).iter().any(|line| line.contains("notifications/cancelled")));
}

// A body that never comes holds up its own connection only.
#[tokio::test]
async fn clients_that_send_half_a_request_hold_up_nobody() {
    let daemon = Daemon::run(&[], &[]).await;
    let session = daemon.client().initialize().await;
    let mut halves = Vec::new();
    for half in ["POST /mcp HTT", "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Le"] {
        for _ in 0..20 {
            let mut stream = TcpStream::connect(("127.0.0.1", daemon.port())).await.unwrap();
            stream.write_all(half.as_bytes()).await.unwrap();
            halves.push(stream);
        }
    }
    for _ in 0..20 {
        let mut stream = TcpStream::connect(("127.0.0.1", daemon.port())).await.unwrap();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nMcp-Session-Id: {}\r\n\
             Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{{\"jsonrpc\":",
            daemon.token(),
            session.session()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        halves.push(stream);
    }
    assert_eq!(session.text("echo", json!({"text": "hello"})).await, "hello");
    drop(halves);
    assert_eq!(session.text("echo", json!({"text": "hello"})).await, "hello");
}

// Style 3 (refuse): one session's calls are bounded, and the others have their own bound.
#[tokio::test]
async fn a_session_with_too_many_calls_is_told_to_wait_and_others_are_served() {
    let home = Home::new();
    let record = home.file("record");
    let daemon = Launch::run(&[], &demo(&["--record", &record])).home(&home).start().await;
    let greedy = daemon.client().initialize().await;
    let modest = daemon.client().initialize().await;
    let mut calls = JoinSet::new();
    for _ in 0..600 {
        let greedy = greedy.clone();
        calls.spawn(async move {
            let reply = greedy.call("slow", json!({"ms": 600_000, "text": "x"})).await;
            (reply.status, reply.header("retry-after").map(str::to_owned))
        });
    }
    for _ in 512..600 {
        let refused = soon("a refusal", calls.join_next()).await.unwrap().unwrap();
        assert_eq!(refused, (429, Some("1".to_owned())));
    }
    assert_eq!(modest.text("echo", json!({"text": "hello"})).await, "hello");
    calls.abort_all();
}
