//! A session that the server forgets: what was not taken is sent again, once, and only if somebody still wants it.

use serde_json::json;
use tokio::task::JoinSet;

use crate::support::{
    Launch, Plain,
    upstream::{Asked, Upstream, calling, got, got_fault, got_text, root, text},
};

/// The server takes a new session.
async fn reopened(upstream: &mut Upstream, initialize: Asked) {
    initialize.welcome("s2").await;
    upstream.asked("notifications/initialized").await.status(202).await;
    upstream.asked("GET").await.status(405).await;
}

// A call that waits for a new session, and that its client was told has failed, must not be made afterwards.
#[tokio::test]
async fn a_call_that_was_given_up_while_the_session_is_opened_again_is_not_made() {
    let mut upstream = Upstream::start().await;
    let (_daemon, client) = upstream.bridged(&["--request-timeout", "300ms", "--max-request-time", "300ms"]).await;
    let waiting = calling(&client, "pay", json!({}));
    upstream.asked("tools/call").await.status(404).await;
    let initialize = upstream.asked("initialize").await;
    got_fault(waiting, 504, "upstream_timeout").await;
    reopened(&mut upstream, initialize).await;
    upstream.is_left_alone().await;
}

// The same by a client's own wish.
#[tokio::test]
async fn a_call_that_was_cancelled_while_the_session_is_opened_again_is_not_made() {
    let mut upstream = Upstream::start().await;
    let (_daemon, client) = upstream.bridged(&[]).await;
    let message = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "pay"}});
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { client.post(&message).await.status }
    });
    upstream.asked("tools/call").await.status(404).await;
    let initialize = upstream.asked("initialize").await;
    assert_eq!(client.notify("notifications/cancelled", json!({"requestId": 7})).await.status, 202);
    waiting.await.unwrap();
    reopened(&mut upstream, initialize).await;
    upstream.is_left_alone().await;
}

// R-18, B-22: a server may keep things by session, so no two clients share one.
#[tokio::test]
async fn each_session_of_ours_has_one_of_its_own_at_the_server() {
    let mut upstream = Upstream::start().await;
    let (daemon, first) = upstream.bridged(&[]).await;
    let second = upstream.initialized(&daemon, "s2").await;
    for (client, session) in [(&first, "s1"), (&second, "s2"), (&first, "s1")] {
        let waiting = calling(client, "t", json!({}));
        let asked = upstream.asked("tools/call").await;
        assert_eq!(asked.header("mcp-session-id"), Some(session));
        asked.result(text("served")).await;
        assert_eq!(got_text(waiting).await, "served");
    }
    assert_eq!(second.delete().await.status, 204);
    let ended = upstream.asked("DELETE").await;
    assert_eq!(ended.header("mcp-session-id"), Some("s2"), "it ends with ours, and the other does not");
    ended.status(204).await;
}

// Calls that arrive in the moment when the session is found to be lost.
#[tokio::test]
async fn no_call_is_lost_when_sessions_are_forgotten_under_load() {
    let mut upstream = Upstream::start().await;
    let (_daemon, client) = upstream.bridged(&["--request-timeout", "5s"]).await;
    let mut calls = JoinSet::new();
    for _ in 0..32 {
        let client = client.clone();
        calls.spawn(async move {
            let mut bad = Vec::new();
            for n in 0..60 {
                let (status, answer) = got(calling(&client, "t", json!({"n": n}))).await;
                if status != 200 {
                    bad.push((status, answer));
                }
            }
            bad
        });
    }
    let serving = async {
        let mut session = "s1".to_owned();
        let (mut sessions, mut served) = (1, 0);
        loop {
            let asked = upstream.next().await;
            match asked.what().to_owned().as_str() {
                "initialize" => {
                    sessions += 1;
                    session = format!("s{sessions}");
                    served = 0;
                    asked.welcome(&session).await;
                }
                "GET" => asked.status(405).await,
                "notifications/initialized" => asked.status(202).await,
                "tools/call" if asked.header("mcp-session-id") != Some(session.as_str()) => asked.status(404).await,
                "tools/call" => {
                    served += 1;
                    if served == 100 {
                        session = "none".to_owned();
                        asked.status(404).await;
                    } else {
                        asked.result(text("fine")).await;
                    }
                }
                _ => asked.status(202).await,
            }
        }
    };
    let bad = tokio::select! {
        bad = calls.join_all() => bad.concat(),
        () = serving => unreachable!(),
    };
    assert!(bad.is_empty(), "{} {:?}", bad.len(), bad.first());
}

// The stream of a session that the server has forgotten.
#[tokio::test]
async fn a_session_that_is_found_forgotten_by_its_stream_is_opened_again() {
    let mut upstream = Upstream::start().await;
    let daemon = upstream.bridge(&[]).await;
    let client = root(&daemon);
    let (client, flow) = tokio::join!(client.initialize(), upstream.greet_and_listen("s1"));
    let mut changes = client.listen().await;
    flow.push("retry: 10\n\n").await;
    flow.cut().await;
    let again = upstream.asked("GET").await;
    assert_eq!(again.header("mcp-session-id"), Some("s1"));
    again.status(404).await;
    let flow = upstream.greet_and_listen("s2").await;
    assert_eq!(changes.message().await["method"], "notifications/tools/list_changed");
    drop(flow);
    let waiting = calling(&client, "t", json!({}));
    upstream.asked_past_streams("tools/call").await.result(text("fine")).await;
    assert_eq!(got_text(waiting).await, "fine");
}

// A refusal that comes late, when there is a new session already, costs no further one.
#[tokio::test]
async fn a_late_404_of_an_old_session_does_not_end_the_new_one() {
    let mut upstream = Upstream::start().await;
    let (_daemon, client) = upstream.bridged(&[]).await;
    let waiting = [calling(&client, "a", json!({})), calling(&client, "b", json!({}))];
    let first = upstream.asked("tools/call").await;
    let late = upstream.asked("tools/call").await;
    first.status(404).await;
    upstream.greet("s2").await;
    upstream.asked("tools/call").await.result(text("fine")).await;
    late.status(404).await;
    let again = upstream.asked("tools/call").await;
    assert_eq!(again.header("mcp-session-id"), Some("s2"));
    again.result(text("fine")).await;
    for waiting in waiting {
        assert_eq!(got_text(waiting).await, "fine");
    }
}

// The third way: the new session cannot be opened, the call is said to have failed, and is made later all the same.
#[tokio::test]
async fn a_call_that_failed_because_no_session_could_be_opened_is_not_made_later() {
    let mut upstream = Upstream::start().await;
    let (_daemon, client) = upstream.bridged(&[]).await;
    let waiting = calling(&client, "pay", json!({}));
    upstream.asked("tools/call").await.status(404).await;
    upstream.asked("initialize").await.status(503).await;
    let (status, answer) = got(waiting).await;
    assert!(status != 200, "{answer}");
    // The client tries again; that one is made, once.
    let waiting = calling(&client, "pay", json!({}));
    upstream.greet("s2").await;
    upstream.asked("tools/call").await.result(text("paid")).await;
    assert_eq!(got_text(waiting).await, "paid");
    upstream.is_left_alone().await;
}

// What is said of a server over HTTP is not what is true of a process.
#[tokio::test]
async fn a_lost_connection_is_not_called_a_process_that_ended() {
    let mut upstream = Upstream::start().await;
    let (_daemon, client) = upstream.bridged(&[]).await;
    let waiting = calling(&client, "t", json!({}));
    upstream.asked("tools/call").await.status(404).await;
    upstream.asked("initialize").await.status(503).await;
    let (_, answer) = got(waiting).await;
    let why = answer["error"]["message"].as_str().unwrap();
    assert!(!why.contains("process") && !why.contains("stderr"), "{why}");
}

// whichever way a client came, and whether it came to the server or to the hub.
#[tokio::test]
async fn what_ties_calls_together_passes_from_a_client_of_2024_11_05_and_through_the_hub() {
    const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let mut upstream = Upstream::start().await;
    let settings = "era = \"legacy\"\nlegacy_sse = true\nforward_headers = [\"X-Tenant\"]";
    let config = format!("[destination.docs]\nurl = {:?}\n{settings}\n", upstream.url());
    let daemon = Launch::serve(&config).start().await;
    let info = json!({"name": "it", "version": "1"});
    let hello = json!({"protocolVersion": "2024-11-05", "capabilities": {"roots": {}}, "clientInfo": info});
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}).to_string();
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "t"}}).to_string();
    let mut plain = Plain::open(daemon.client_at("/docs/sse")).await;
    assert_eq!(plain.request().header("x-tenant", "blue").body(hello).send().await.status, 202);
    let initialize = upstream.asked("initialize").await;
    assert_eq!(initialize.header("x-tenant"), Some("blue"));
    initialize.welcome("s1").await;
    upstream.asked("notifications/initialized").await.status(202).await;
    upstream.asked("GET").await.status(405).await;
    assert_eq!(plain.stream.message().await["id"], 0);
    assert_eq!(plain.request().header("traceparent", TRACE).body(call.clone()).send().await.status, 202);
    let asked = upstream.asked("tools/call").await;
    assert_eq!((asked.header("traceparent"), asked.header("mcp-session-id")), (Some(TRACE), Some("s1")));
    asked.result(text("done")).await;
    assert_eq!(plain.stream.message().await["id"], 1);

    let hub = daemon.hub().initialize_as("2025-11-25", json!({"roots": {}})).await;
    let call = call.replace("\"t\"", "\"docs__t\"");
    let request = hub.request(hyper::Method::POST).header("x-tenant", "blue").header("traceparent", TRACE).body(call);
    let calling = tokio::spawn(request.send());
    // The hub looks for itself what there is, in a session of its own.
    let mut tenants = Vec::new();
    let asked = loop {
        let asked = upstream.next().await;
        match asked.what().to_owned().as_str() {
            "initialize" => {
                tenants.push(asked.header("x-tenant").map(str::to_owned));
                let session = if asked.header("x-tenant").is_some() { "of the client" } else { "of the hub" };
                asked.welcome(session).await;
            }
            "tools/call" => break asked,
            "GET" => asked.status(405).await,
            "tools/list" => asked.result(json!({"tools": [{"name": "t", "inputSchema": {}}]})).await,
            _ => asked.status(202).await,
        }
    };
    assert_eq!(tenants.iter().flatten().collect::<Vec<_>>(), ["blue"], "{tenants:?}");
    assert_eq!((asked.header("traceparent"), asked.header("mcp-session-id")), (Some(TRACE), Some("of the client")));
    asked.result(text("done")).await;
    assert_eq!(calling.await.unwrap().answer().await["result"], text("done"));
}
