//! A server of HTTP+SSE (2024-11-05) behind the daemon: at `/{d}/mcp` like any other, and at `/{d}/sse` + `/{d}/message`
//! as it is itself (B-21).

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::support::{
    Daemon, Launch, Plain, process, stays,
    upstream::{
        Flow, Upstream, calling, calling_modern, fault, got_fault, got_text, greeting, note, nothing_is_left, root,
        text,
    },
};

/// Long enough to see that something does not happen.
const A_WHILE: Duration = Duration::from_millis(150);

/// A daemon with this server as its destination `old`.
async fn serve(upstream: &Upstream) -> Daemon {
    serve_with(upstream, "").await
}

async fn serve_with(upstream: &Upstream, global: &str) -> Daemon {
    let url = upstream.at("/sse");
    Launch::serve(&format!("{global}\n[destination.old]\nurl = {url:?}\ntype = \"sse\"\nprocess = \"shared_always\"\n"))
        .start()
        .await
}

/// Opens the stream, and names where to post.
async fn stream(upstream: &mut Upstream, endpoint: &str) -> Flow {
    let get = upstream.asked("GET").await;
    assert_eq!((get.path.as_str(), get.header("accept")), ("/sse", Some("text/event-stream")));
    assert_eq!((get.header("mcp-session-id"), get.header("last-event-id")), (None, None));
    let flow = get.events();
    flow.push(&format!("event: endpoint\ndata: {endpoint}\n\n")).await;
    flow
}

/// Takes a message, which has to be this one and to come to this place.
async fn taken(upstream: &mut Upstream, what: &str, endpoint: &str) -> Value {
    let asked = upstream.asked(what).await;
    assert_eq!((asked.verb.as_str(), asked.path.as_str()), ("POST", endpoint));
    assert_eq!(asked.header("mcp-session-id"), None);
    let body = asked.body.clone();
    asked.answer(202, &[], "Accepted").await;
    body
}

/// The handshake over a stream that is open.
async fn greet(upstream: &mut Upstream, flow: &Flow, endpoint: &str) {
    let initialize = taken(upstream, "initialize", endpoint).await;
    let mut result = greeting();
    result["protocolVersion"] = json!("2024-11-05");
    flow.push(&event(&json!({"jsonrpc": "2.0", "id": initialize["id"], "result": result}))).await;
    taken(upstream, "notifications/initialized", endpoint).await;
}

/// Both, one after the other.
async fn open(upstream: &mut Upstream, endpoint: &str) -> Flow {
    let flow = stream(upstream, endpoint).await;
    greet(upstream, &flow, endpoint).await;
    flow
}

fn event(message: &Value) -> String {
    format!("event: message\ndata: {message}\n\n")
}

/// Answers a call that was taken.
async fn answer(flow: &Flow, call: &Value, said: &str) {
    flow.push(&event(&json!({"jsonrpc": "2.0", "id": call["id"], "result": text(said)}))).await;
}

// B-21
// checks 120
#[tokio::test]
async fn a_server_of_the_first_transport_is_at_mcp_like_any_other() {
    let mut upstream = Upstream::start().await;
    let daemon = serve(&upstream).await;
    let client = daemon.client_at("/old/mcp");
    let (client, flow) = tokio::join!(client.initialize(), open(&mut upstream, "/messages?s=1"));
    let mut changes = client.listen().await;
    let reply = tokio::spawn({
        let client = client.clone();
        let params = json!({"name": "t", "arguments": {}, "_meta": {"progressToken": "mine"}});
        async move { client.post(&json!({"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": params})).await }
    });
    let call = taken(&mut upstream, "tools/call", "/messages?s=1").await;
    flow.progress(&call["params"]["_meta"]["progressToken"], 1).await;
    let mut stream = reply.await.unwrap().events();
    assert_eq!(stream.message().await["params"], json!({"progressToken": "mine", "progress": 1}));
    flow.event(&note("notifications/tools/list_changed", json!({}))).await;
    answer(&flow, &call, "fine").await;
    let said = stream.message().await;
    assert_eq!((&said["id"], &said["result"]), (&json!("a"), &text("fine")));
    assert_eq!(changes.message().await["method"], "notifications/tools/list_changed");
    // A modern client finds it there, too, and without a session of its own.
    let modern = crate::support::Modern::new(daemon.client_at("/old/mcp"));
    let waiting = calling_modern(&modern, "t", json!({}));
    let call = taken(&mut upstream, "tools/call", "/messages?s=1").await;
    assert!(call["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"].is_null(), "{call}");
    answer(&flow, &call, "modern").await;
    assert_eq!(got_text(waiting).await, "modern");
    drop(changes);
    assert_eq!(client.delete().await.status, 204);
    nothing_is_left(&daemon, "old").await;
}

// B-21
#[tokio::test]
async fn a_server_of_the_first_transport_is_at_sse_as_it_is() {
    let mut upstream = Upstream::start().await;
    let daemon = serve(&upstream).await;
    let plain = Plain::initialize(daemon.client_at("/old/sse"), json!({}));
    let (mut plain, flow) = tokio::join!(plain, open(&mut upstream, "/messages?s=1"));
    assert!(plain.endpoint.starts_with("/old/message?"), "{}", plain.endpoint);
    let params = json!({"name": "t", "arguments": {}, "_meta": {"progressToken": 5}});
    let id = plain.send("tools/call", params).await;
    let call = taken(&mut upstream, "tools/call", "/messages?s=1").await;
    flow.progress(&call["params"]["_meta"]["progressToken"], 1).await;
    assert_eq!(plain.stream.message().await["params"], json!({"progressToken": 5, "progress": 1}));
    answer(&flow, &call, "fine").await;
    let said = plain.stream.message().await;
    assert_eq!((&said["id"], &said["result"]), (&id, &text("fine")));
    flow.event(&note("notifications/tools/list_changed", json!({}))).await;
    assert_eq!(plain.stream.message().await["method"], "notifications/tools/list_changed");
    // Its stream is its session: what it had under way is cancelled.
    let other = daemon.client_at("/old/mcp").initialize().await;
    plain.send("tools/call", json!({"name": "t"})).await;
    let call = taken(&mut upstream, "tools/call", "/messages?s=1").await;
    drop(plain);
    let cancelled = taken(&mut upstream, "notifications/cancelled", "/messages?s=1").await;
    assert_eq!(cancelled["params"]["requestId"], call["id"]);
    // The server's stream is for as long as anybody is there.
    assert_eq!(other.delete().await.status, 204);
    flow.hung_up().await;
    nothing_is_left(&daemon, "old").await;
}

// B-21; mcp-eras 4.1
// checks 120
#[tokio::test]
async fn that_a_server_speaks_the_first_transport_is_found_out_and_remembered() {
    let mut upstream = Upstream::start().await;
    let daemon = crate::support::upstream::bridge(&upstream.at("/sse"), &[]).start().await;
    let client = root(&daemon);
    let finding = async {
        upstream.asked("server/discover").await.status(405).await;
        upstream.asked("initialize").await.status(405).await;
        open(&mut upstream, "/messages?s=1").await
    };
    let (client, flow) = tokio::join!(client.initialize(), finding);
    let waiting = calling(&client, "t", json!({}));
    let call = taken(&mut upstream, "tools/call", "/messages?s=1").await;
    answer(&flow, &call, "found").await;
    assert_eq!(got_text(waiting).await, "found");
    assert_eq!(client.delete().await.status, 204);
    flow.hung_up().await;
    nothing_is_left(&daemon, "run").await;
    // Known by now.
    let client = root(&daemon);
    let (client, flow) = tokio::join!(client.initialize(), open(&mut upstream, "/messages?s=2"));
    let waiting = calling(&client, "t", json!({}));
    let call = taken(&mut upstream, "tools/call", "/messages?s=2").await;
    answer(&flow, &call, "known").await;
    assert_eq!(got_text(waiting).await, "known");
}

// checks 120
#[tokio::test]
async fn a_stream_that_is_lost_fails_the_calls_and_is_opened_again() {
    let mut upstream = Upstream::start().await;
    let daemon = serve(&upstream).await;
    let client = daemon.client_at("/old/mcp");
    let (client, mut flow) = tokio::join!(client.initialize(), open(&mut upstream, "/messages?s=0"));
    let mut changes = client.listen().await;
    for n in 1..=2 {
        let waiting = calling(&client, "t", json!({}));
        taken(&mut upstream, "tools/call", &format!("/messages?s={}", n - 1)).await;
        match n {
            1 => flow.cut().await,
            _ => drop(flow),
        }
        let why = got_fault(waiting, 502, "upstream_exited").await;
        assert!(why.contains("call again"), "{why}");
        // A call that comes meanwhile waits for the new one, which has an endpoint of its own.
        let endpoint = format!("/messages?s={n}");
        let waiting = calling(&client, "t", json!({}));
        flow = open(&mut upstream, &endpoint).await;
        let call = taken(&mut upstream, "tools/call", &endpoint).await;
        answer(&flow, &call, "again").await;
        assert_eq!(got_text(waiting).await, "again");
        assert_eq!(changes.message().await["method"], "notifications/tools/list_changed");
    }
    drop(changes);
    assert_eq!(client.delete().await.status, 204);
    flow.hung_up().await;
    nothing_is_left(&daemon, "old").await;
    upstream.asked_nothing_more();
}

// checks 120
#[tokio::test]
async fn an_endpoint_of_another_origin_is_refused() {
    let mut upstream = Upstream::start().await;
    let mut other = Upstream::start().await;
    let daemon = serve(&upstream).await;
    let client = daemon.client_at("/old/mcp");
    let hello = tokio::spawn(async move { client.say_hello().await });
    let foreign = other.at("/messages?token=secret");
    // As often as it is tried: none of them is followed.
    let naming = async {
        loop {
            let flow = upstream.asked("GET").await.events();
            flow.push(&format!("event: endpoint\ndata: {foreign}\n\n")).await;
            flow.hung_up().await;
        }
    };
    let reply = tokio::select! {
        reply = hello => reply.unwrap(),
        () = naming => unreachable!("it never ends"),
    };
    assert_eq!(reply.status, 503);
    let why = fault(&reply.json().await, "upstream_unavailable");
    assert!(why.contains("another origin") && why.contains(&other.at("/messages")), "{why}");
    assert!(!why.contains("secret"), "{why}");
    other.asked_nothing_more();
    nothing_is_left(&daemon, "old").await;
    // It mends its ways.
    let client = daemon.client_at("/old/mcp");
    let endpoint = upstream.at("/messages");
    let opening = async {
        let flow = stream(&mut upstream, &endpoint).await;
        greet(&mut upstream, &flow, "/messages").await;
        flow
    };
    let (client, flow) = tokio::join!(client.initialize(), opening);
    let waiting = calling(&client, "t", json!({}));
    let call = taken(&mut upstream, "tools/call", "/messages").await;
    answer(&flow, &call, "served").await;
    assert_eq!(got_text(waiting).await, "served");
}

// mcp-eras 5.4
// checks 97
#[tokio::test]
async fn two_clients_share_the_stream_and_each_gets_its_own() {
    let mut upstream = Upstream::start().await;
    let daemon = serve(&upstream).await;
    let client = daemon.client_at("/old/mcp");
    let (first, flow) = tokio::join!(client.initialize(), open(&mut upstream, "/m"));
    let second = daemon.client_at("/old/mcp").initialize().await;
    let params = json!({"name": "t", "arguments": {}, "_meta": {"progressToken": "same"}});
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let mut replies = Vec::new();
    let mut calls = Vec::new();
    for client in [&first, &second] {
        let (client, message) = (client.clone(), message.clone());
        replies.push(tokio::spawn(async move { client.post(&message).await }));
        calls.push(taken(&mut upstream, "tools/call", "/m").await);
    }
    for (at, call) in calls.iter().enumerate().rev() {
        flow.progress(&call["params"]["_meta"]["progressToken"], u32::try_from(at).unwrap()).await;
        answer(&flow, call, &format!("for {at}")).await;
    }
    for (at, reply) in replies.into_iter().enumerate() {
        let mut stream = reply.await.unwrap().events();
        assert_eq!(stream.message().await["params"], json!({"progressToken": "same", "progress": at}));
        let said = stream.message().await;
        assert_eq!((&said["id"], &said["result"]), (&json!(1), &text(&format!("for {at}"))));
    }
}

#[tokio::test]
async fn an_event_of_100_mb_on_the_one_stream_is_passed_over() {
    let mut upstream = Upstream::start().await;
    let daemon = serve(&upstream).await;
    let client = daemon.client_at("/old/mcp");
    let (client, flow) = tokio::join!(client.initialize(), open(&mut upstream, "/m"));
    let waiting = calling(&client, "t", json!({}));
    let call = taken(&mut upstream, "tools/call", "/m").await;
    let before = process::resident_kib(daemon.pid());
    flow.push("event: message\ndata: ").await;
    let chunk = Bytes::from(vec![b'x'; 64 << 10]);
    for _ in 0..(100 << 20) / chunk.len() {
        assert!(flow.push_bytes(chunk.clone()).await, "the stream is read on");
    }
    flow.push("\n\n").await;
    answer(&flow, &call, "behind it").await;
    assert_eq!(got_text(waiting).await, "behind it");
    let grown = process::peak_kib(daemon.pid()).saturating_sub(before);
    assert!(grown < 24 << 10, "it grew by {grown} KiB");
    assert_eq!(client.delete().await.status, 204);
    flow.hung_up().await;
    nothing_is_left(&daemon, "old").await;
}

#[tokio::test]
async fn refusals_of_messages_and_silence_fail_their_calls_only() {
    let mut upstream = Upstream::start().await;
    let daemon = serve_with(&upstream, "request_timeout = \"500ms\"\nmax_request_time = \"500ms\"").await;
    let client = daemon.client_at("/old/mcp");
    let (client, flow) = tokio::join!(client.initialize(), open(&mut upstream, "/m"));
    for (status, expected) in [(401, 502), (500, 503), (404, 502)] {
        let waiting = calling(&client, "t", json!({}));
        upstream.asked("tools/call").await.status(status).await;
        let why = got_fault(waiting, expected, "upstream_unavailable").await;
        assert!(why.contains(&status.to_string()), "{why}");
    }
    // Taken, and never answered: the server is told to stop.
    let waiting = calling(&client, "t", json!({}));
    let call = taken(&mut upstream, "tools/call", "/m").await;
    got_fault(waiting, 504, "upstream_timeout").await;
    let cancelled = taken(&mut upstream, "notifications/cancelled", "/m").await;
    assert_eq!(cancelled["params"]["requestId"], call["id"]);
    // What it says too late reaches nobody.
    answer(&flow, &call, "late").await;
    let waiting = calling(&client, "t", json!({}));
    let call = taken(&mut upstream, "tools/call", "/m").await;
    answer(&flow, &call, "in time").await;
    assert_eq!(got_text(waiting).await, "in time");
    stays("the server is left alone", A_WHILE, async || {
        upstream.asked_nothing_more();
        true
    })
    .await;
}
