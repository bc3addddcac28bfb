//! Servers over HTTP that say more than anybody wants to hear (B-18): it is not read, or not kept, and
//! the client is told.

use std::time::Duration;

use bytes::Bytes;
use serde_json::json;

use crate::support::{
    Client, Daemon, process, soon,
    upstream::{
        Flow, Upstream, calling, calling_modern, got_fault, got_text, modern_root, modern_text, note, nothing_is_left,
        root, text,
    },
};

/// More than any setting lets through.
const FLOOD: usize = 100 << 20;
/// What the daemon may grow by, at its peak, over a flood. The limit is 1 MiB, and some lies in buffers.
const MAX_GROWTH_KIB: u64 = 24 << 10;
/// What is written at once.
const CHUNK: usize = 64 << 10;

/// Writes that many bytes for as long as somebody reads them, and says how many were taken.
async fn flood(flow: &Flow, chunk: &str) -> usize {
    let chunk = Bytes::from(chunk.repeat(CHUNK.div_ceil(chunk.len())));
    let mut written = 0;
    while written < FLOOD && flow.push_bytes(chunk.clone()).await {
        written += chunk.len();
    }
    written
}

/// Memory that the daemon holds now; at the end it is compared with the most that it ever held.
struct Memory {
    before: u64,
    pid: u32,
}

impl Memory {
    fn of(daemon: &Daemon) -> Self {
        Self { before: process::resident_kib(daemon.pid()), pid: daemon.pid() }
    }

    fn stayed_small(&self) {
        let grown = process::peak_kib(self.pid).saturating_sub(self.before);
        assert!(grown < MAX_GROWTH_KIB, "it grew by {grown} KiB");
    }
}

/// After all that the next call is served, nothing was kept, and everything ends.
async fn goes_on(upstream: &mut Upstream, daemon: &Daemon, client: &Client, memory: &Memory) {
    let waiting = calling(client, "t", json!({}));
    upstream.asked("tools/call").await.result(text("served")).await;
    assert_eq!(got_text(waiting).await, "served");
    memory.stayed_small();
    client.delete().await;
    upstream.asked("DELETE").await.status(200).await;
    nothing_is_left(daemon, "run").await;
}

#[tokio::test]
async fn a_json_body_of_100_mb_is_not_read() {
    let mut upstream = Upstream::start().await;
    let (daemon, client) = upstream.bridged(&[]).await;
    let memory = Memory::of(&daemon);
    let length = FLOOD.to_string();
    for head in [vec![("content-length", length.as_str())], vec![]] {
        let waiting = calling(&client, "t", json!({}));
        let head = [head, vec![("content-type", "application/json")]].concat();
        let flow = upstream.asked("tools/call").await.begin(200, &head);
        flow.push("{\"jsonrpc\":\"2.0\",\"result\":\"").await;
        let written = flood(&flow, "x").await;
        assert!(written < FLOOD / 2, "{written} bytes were taken");
        let why = got_fault(waiting, 502, "upstream_answer_too_large").await;
        assert!(why.contains("`max_message_bytes`") && why.contains("1048576"), "{why}");
        flow.hung_up().await;
    }
    goes_on(&mut upstream, &daemon, &client, &memory).await;
}

#[tokio::test]
async fn an_event_of_100_mb_and_one_without_end_are_not_read() {
    let mut upstream = Upstream::start().await;
    let (daemon, client) = upstream.bridged(&[]).await;
    let memory = Memory::of(&daemon);
    // One long line; many lines of one event; an event of lines that say nothing; a field that nobody knows.
    for (begin, more) in [("data: ", "x"), ("", "data: xxxxxxxxxxxx\n"), ("id: 1\n", "data\n"), ("odd: ", "x")] {
        let waiting = calling(&client, "t", json!({}));
        let flow = upstream.asked("tools/call").await.events();
        flow.push(begin).await;
        let written = flood(&flow, more).await;
        assert!(written < FLOOD / 2, "{begin:?} {more:?}: {written} bytes were taken");
        let why = got_fault(waiting, 502, "upstream_answer_too_large").await;
        assert!(why.contains("`max_message_bytes`"), "{why}");
        flow.hung_up().await;
    }
    goes_on(&mut upstream, &daemon, &client, &memory).await;
}

#[tokio::test]
async fn an_event_of_100_mb_of_a_modern_server_is_not_read() {
    let mut upstream = Upstream::start().await;
    let daemon = upstream.bridge(&[]).await;
    let client = modern_root(&daemon);
    let waiting = calling_modern(&client, "t", json!({}));
    upstream.greet_modern().await;
    let memory = Memory::of(&daemon);
    let flow = upstream.asked("tools/call").await.events();
    flow.push("data: ").await;
    assert!(flood(&flow, "x").await < FLOOD / 2);
    got_fault(waiting, 502, "upstream_answer_too_large").await;
    flow.hung_up().await;
    let waiting = calling_modern(&client, "t", json!({}));
    upstream.asked("tools/call").await.result(modern_text("served")).await;
    assert_eq!(got_text(waiting).await, "served");
    memory.stayed_small();
    nothing_is_left(&daemon, "run").await;
}

#[tokio::test]
async fn an_event_of_100_mb_on_the_servers_own_stream_is_passed_over() {
    let mut upstream = Upstream::start().await;
    let daemon = upstream.bridge(&[]).await;
    let client = root(&daemon);
    let (client, flow) = tokio::join!(client.initialize(), upstream.greet_and_listen("s1"));
    let mut changes = client.listen().await;
    let memory = Memory::of(&daemon);
    flow.push("data: ").await;
    assert_eq!(flood(&flow, "x").await, FLOOD);
    flow.push("\n\n").await;
    flow.event(&note("notifications/tools/list_changed", json!({}))).await;
    assert_eq!(changes.message().await["method"], "notifications/tools/list_changed");
    // Calls went on meanwhile, and do.
    let waiting = calling(&client, "t", json!({}));
    upstream.asked("tools/call").await.result(text("served")).await;
    assert_eq!(got_text(waiting).await, "served");
    memory.stayed_small();
}

#[tokio::test]
async fn a_call_is_served_while_another_is_flooded() {
    let mut upstream = Upstream::start().await;
    let daemon = upstream.bridge(&[]).await;
    let client = root(&daemon);
    let (client, flow) = tokio::join!(client.initialize(), upstream.greet_and_listen("s1"));
    let memory = Memory::of(&daemon);
    // Small messages without end, as fast as they are taken.
    let flooding = tokio::spawn(async move {
        let message = note("notifications/message", json!({"level": "debug", "data": "x".repeat(1000)}));
        let event = format!("data: {message}\n\n").repeat(60);
        let mut written = 0_u64;
        while flow.push(&event).await {
            written += 1;
        }
        written
    });
    for n in 0..20 {
        let waiting = calling(&client, "t", json!({}));
        upstream.asked("tools/call").await.result(text(&n.to_string())).await;
        let (answer, took) = {
            let begun = std::time::Instant::now();
            (got_text(waiting).await, begun.elapsed())
        };
        assert_eq!(answer, n.to_string());
        assert!(took < Duration::from_secs(5), "{took:?}");
    }
    memory.stayed_small();
    // The flood ends with the session that it belongs to.
    assert_eq!(client.delete().await.status, 204);
    upstream.asked("DELETE").await.status(200).await;
    assert!(soon("the flood ends", flooding).await.unwrap() > 0);
    nothing_is_left(&daemon, "run").await;
}

#[tokio::test]
async fn progress_that_the_client_does_not_read_is_not_kept() {
    const EVENTS: usize = 32 << 10;
    let mut upstream = Upstream::start().await;
    let (daemon, client) = upstream.bridged(&[]).await;
    let params = json!({"name": "t", "_meta": {"progressToken": "t"}});
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let reply = tokio::spawn({
        let client = client.clone();
        async move { client.post(&message).await }
    });
    let asked = upstream.asked("tools/call").await;
    let (id, token) = (asked.id(), asked.token());
    let flow = asked.events();
    flow.progress(&token, 0).await;
    // It holds the connection, and reads nothing.
    let unread = reply.await.unwrap();
    let memory = Memory::of(&daemon);
    let params = json!({"progressToken": token, "progress": 1, "message": "x".repeat(1000)});
    let events = format!("data: {}\n\n", note("notifications/progress", params)).repeat(64);
    for _ in 0..EVENTS / 64 {
        assert!(flow.push(&events).await, "the server is read on");
    }
    flow.result(id, text("at last")).await;
    let waiting = calling(&client, "t", json!({}));
    upstream.asked("tools/call").await.result(text("served")).await;
    assert_eq!(got_text(waiting).await, "served");
    memory.stayed_small();
    drop(unread);
    client.delete().await;
    upstream.asked("DELETE").await.status(200).await;
    nothing_is_left(&daemon, "run").await;
}
