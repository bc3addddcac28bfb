//! Servers over HTTP that fail (B-22): each failure is a clear error or is made good, nothing hangs,
//! nothing stays behind, and the next call is served. Those that say too much are in `upstream_floods.rs`.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use crate::support::{
    Client, Daemon, Reply, stays, until,
    upstream::{
        Upstream, bridge, calling, calling_modern, fault, got, got_fault, got_text, modern_root, modern_text, note,
        nothing_is_left, posting, root, text,
    },
};

/// Long enough to see that something does not happen.
const A_WHILE: Duration = Duration::from_millis(150);

/// The next call is served, in a session that the server knows by this name.
async fn is_served(upstream: &mut Upstream, client: &Client, session: &str) {
    let waiting = calling(client, "t", json!({}));
    let asked = upstream.asked_past_streams("tools/call").await;
    assert_eq!(asked.header("mcp-session-id"), Some(session));
    asked.result(text("served")).await;
    assert_eq!(got_text(waiting).await, "served");
}

/// Ends the one session there is, and checks that nothing of it stays.
async fn ends(daemon: &Daemon, upstream: &mut Upstream, client: &Client) {
    assert_eq!(client.delete().await.status, 204);
    upstream.asked_past_streams("DELETE").await.status(200).await;
    nothing_is_left(daemon, "run").await;
}

/// A call whose progress its client wants to see.
fn tracked(client: &Client) -> impl Future<Output = Reply> + use<> {
    let params = json!({"name": "t", "_meta": {"progressToken": "t"}});
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    client.request(hyper::Method::POST).body(message.to_string()).send()
}

/// What `initialize` came to that has to fail. Returns the words.
async fn refused(client: &Client, status: u16) -> String {
    let reply = client.say_hello().await;
    assert_eq!(reply.status, status);
    assert_eq!(reply.header("mcp-session-id"), None);
    let answer = reply.json().await;
    fault(&answer, "upstream_unavailable")
}

#[tokio::test]
async fn a_server_that_is_restarted_in_mid_stream_gets_a_new_session() {
    let mut upstream = Upstream::start().await;
    let daemon = upstream.bridge(&[]).await;
    let client = root(&daemon);
    let (client, listening) = tokio::join!(client.initialize(), upstream.greet_and_listen("s1"));
    let mut changes = client.listen().await;
    let reply = tokio::spawn(tracked(&client));
    let asked = upstream.asked("tools/call").await;
    let token = asked.token();
    let flow = asked.events();
    flow.progress(&token, 1).await;
    let mut stream = reply.await.unwrap().events();
    assert_eq!(stream.message().await["params"]["progress"], 1);

    upstream.go().await;
    drop((flow, listening));
    let why = fault(&stream.message().await, "upstream_exited");
    assert!(why.contains("call again if that is safe"), "{why}");
    assert!(stream.rest().await.is_empty());
    // While it is away, a call says so at once. The session stays.
    let why = got_fault(calling(&client, "t", json!({})), 503, "upstream_unavailable").await;
    assert!(why.contains("cannot be reached") && why.contains("refused"), "{why}");

    upstream.come();
    let waiting = calling(&client, "t", json!({}));
    let asked = upstream.asked_past_streams("tools/call").await;
    assert_eq!(asked.header("mcp-session-id"), Some("s1"));
    asked.status(404).await;
    upstream.greet("s2").await;
    let again = upstream.asked("tools/call").await;
    assert_eq!(again.header("mcp-session-id"), Some("s2"));
    again.result(text("back")).await;
    assert_eq!(got_text(waiting).await, "back");
    assert_eq!(changes.message().await["method"], "notifications/tools/list_changed");
    drop(changes);
    ends(&daemon, &mut upstream, &client).await;
}

// checks 114
#[tokio::test]
async fn a_server_that_is_restarted_is_asked_for_the_rest_of_the_stream() {
    let mut upstream = Upstream::start().await;
    let (daemon, client) = upstream.bridged(&[]).await;
    for remembers in [true, false] {
        let reply = tokio::spawn(tracked(&client));
        let asked = upstream.asked("tools/call").await;
        let (id, token) = (asked.id(), asked.token());
        let flow = asked.events();
        let params = json!({"progressToken": token, "progress": 1});
        flow.push("retry: 50\n").await;
        flow.numbered("e-1", &note("notifications/progress", params)).await;
        let mut stream = reply.await.unwrap().events();
        assert_eq!(stream.message().await["params"]["progress"], 1);
        upstream.go().await;
        drop(flow);
        upstream.come();
        let resumed = upstream.asked("GET").await;
        assert_eq!((resumed.header("last-event-id"), resumed.header("mcp-session-id")), (Some("e-1"), Some("s1")));
        if remembers {
            resumed.events().result(id, text("kept")).await;
            assert_eq!(stream.message().await["result"], text("kept"));
        } else {
            resumed.status(404).await;
            let why = fault(&stream.message().await, "upstream_exited");
            assert!(why.contains("call again if that is safe"), "{why}");
        }
        assert!(stream.rest().await.is_empty());
    }
    let waiting = calling(&client, "t", json!({}));
    upstream.asked("tools/call").await.status(404).await;
    upstream.greet("s2").await;
    upstream.asked("tools/call").await.result(text("served")).await;
    assert_eq!(got_text(waiting).await, "served");
    ends(&daemon, &mut upstream, &client).await;
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named_and_found_when_it_comes() {
    let mut upstream = Upstream::away();
    let daemon = upstream.bridge(&[]).await;
    let client = root(&daemon);
    let why = refused(&client, 503).await;
    let url = upstream.url();
    for words in ["cannot be reached", "refused", url.as_str(), "start that server, or correct its URL"] {
        assert!(why.contains(words), "{words:?} is not said: {why}");
    }
    nothing_is_left(&daemon, "run").await;
    upstream.come();
    let client = upstream.initialized(&daemon, "s1").await;
    is_served(&mut upstream, &client, "s1").await;
    ends(&daemon, &mut upstream, &client).await;
}

#[tokio::test]
async fn a_client_that_comes_before_the_server_waits_for_it_a_little() {
    let mut upstream = Upstream::away();
    let daemon = upstream.bridge(&[]).await;
    let client = root(&daemon);
    let come = async {
        let tried = "prism_child_starts_total{destination=\"run\"}";
        until("it was tried", async || daemon.metric(tried).await == Some(1)).await;
        // To be refused takes no time. That it is waited for is seen from the client's side only.
        stays("it is tried again", A_WHILE, async || daemon.metric(tried).await == Some(1)).await;
        upstream.come();
        upstream.greet("s1").await;
    };
    let (client, ()) = tokio::join!(client.initialize(), come);
    is_served(&mut upstream, &client, "s1").await;
}

#[tokio::test]
async fn an_outage_of_the_server_fails_the_call_and_costs_no_session() {
    let mut upstream = Upstream::start().await;
    let (daemon, client) = upstream.bridged(&[]).await;
    for status in [500, 502, 503, 504] {
        let waiting = calling(&client, "t", json!({}));
        upstream.asked("tools/call").await.answer(status, &[("content-type", "text/html")], "<h1>oops</h1>").await;
        let why = got_fault(waiting, 503, "upstream_unavailable").await;
        assert!(why.contains(&format!("HTTP {status}")) && !why.contains("oops"), "{why}");
    }
    // What it says itself is better than what we could say.
    let waiting = calling(&client, "t", json!({}));
    let error = json!({"code": -32000, "message": "the database is away"});
    upstream.asked("tools/call").await.error(500, error.clone()).await;
    let (status, answer) = got(waiting).await;
    assert_eq!((status, &answer["error"]), (200, &error));
    is_served(&mut upstream, &client, "s1").await;
    ends(&daemon, &mut upstream, &client).await;
}

#[tokio::test]
async fn an_outage_at_the_start_is_waited_out() {
    let mut upstream = Upstream::start().await;
    let daemon = upstream.bridge(&[]).await;
    let client = root(&daemon);
    let outage = async {
        // No evidence of anything: it is asked the same again.
        upstream.asked("server/discover").await.status(503).await;
        upstream.asked("server/discover").await.status(400).await;
        upstream.asked("initialize").await.status(502).await;
        upstream.greet("s1").await;
    };
    let (client, ()) = tokio::join!(client.initialize(), outage);
    is_served(&mut upstream, &client, "s1").await;
}

#[tokio::test]
async fn a_server_that_wants_other_credentials_is_named_with_what_to_set() {
    let mut upstream = Upstream::start().await;
    let daemon = upstream.bridge(&[]).await;
    let client = root(&daemon);
    for status in [401, 403] {
        let asked = async {
            let challenge = [("www-authenticate", "Bearer resource_metadata=\"https://as.example/\"")];
            upstream.asked("server/discover").await.answer(status, &challenge, "").await;
        };
        let (why, ()) = tokio::join!(refused(&client, 503), asked);
        assert!(why.contains(&format!("HTTP {status}")) && why.contains("`headers`"), "{why}");
        nothing_is_left(&daemon, "run").await;
    }
    // A refusal says nothing of the era, and nothing is remembered of it.
    let client = upstream.initialized(&daemon, "s1").await;
    let waiting = calling(&client, "t", json!({}));
    upstream.asked("tools/call").await.status(401).await;
    let why = got_fault(waiting, 502, "upstream_unavailable").await;
    assert!(
        why.contains("sign in") && why.contains("`headers`") && why.contains("prism add run --force --url http"),
        "{why}"
    );
    is_served(&mut upstream, &client, "s1").await;
    ends(&daemon, &mut upstream, &client).await;
}

// mcp-eras 5.10
#[tokio::test]
async fn a_server_that_is_slow_is_told_to_stop_and_the_client_not_kept() {
    let mut upstream = Upstream::start().await;
    let (daemon, client) = upstream.bridged(&["--request-timeout", "300ms", "--max-request-time", "300ms"]).await;
    // No head, a head without a body, and a stream that says nothing.
    for slow in ["head", "body", "event"] {
        let waiting = calling(&client, "t", json!({}));
        let asked = upstream.asked("tools/call").await;
        let id = asked.id();
        let mut kept = None;
        let flow = match slow {
            "head" => {
                kept = Some(asked);
                None
            }
            "body" => Some(asked.begin(200, &[("content-type", "application/json"), ("content-length", "100")])),
            _ => Some(asked.events()),
        };
        let why = got_fault(waiting, 504, "upstream_timeout").await;
        assert!(why.contains("`max_request_time`") && why.contains("300ms"), "{slow}: {why}");
        let cancelled = upstream.asked("notifications/cancelled").await;
        assert_eq!(cancelled.body["params"]["requestId"], id, "{slow}");
        cancelled.status(202).await;
        drop((kept, flow));
    }
    is_served(&mut upstream, &client, "s1").await;
    ends(&daemon, &mut upstream, &client).await;
}

// mcp-eras 5.10
#[tokio::test]
async fn a_modern_server_that_is_slow_is_hung_up_on() {
    let mut upstream = Upstream::start().await;
    let daemon = upstream.bridge(&["--request-timeout", "300ms", "--max-request-time", "300ms"]).await;
    let client = modern_root(&daemon);
    let waiting = calling_modern(&client, "t", json!({}));
    upstream.greet_modern().await;
    upstream.asked("tools/call").await.result(modern_text("first")).await;
    assert_eq!(got_text(waiting).await, "first");
    let waiting = calling_modern(&client, "t", json!({}));
    let mut asked = upstream.asked("tools/call").await;
    let why = got_fault(waiting, 504, "upstream_timeout").await;
    assert!(why.contains("`max_request_time`"), "{why}");
    asked.hung_up().await;
    let waiting = calling_modern(&client, "t", json!({}));
    let flow = upstream.asked("tools/call").await.events();
    got_fault(waiting, 504, "upstream_timeout").await;
    flow.hung_up().await;
    let waiting = calling_modern(&client, "t", json!({}));
    upstream.asked("tools/call").await.result(modern_text("in time")).await;
    assert_eq!(got_text(waiting).await, "in time");
    upstream.asked_nothing_more();
    nothing_is_left(&daemon, "run").await;
}

#[tokio::test]
async fn a_server_that_is_slow_to_greet_keeps_nobody() {
    let mut upstream = Upstream::start().await;
    let daemon = upstream.bridge(&["--start-timeout", "300ms", "--process", "shared_always"]).await;
    let client = root(&daemon);
    let reply = client.say_hello().await;
    let status = reply.status;
    let why = fault(&reply.json().await, "upstream_unavailable");
    assert!(status == 503 && why.contains("`start_timeout` (300ms)"), "{status} {why}");
    nothing_is_left(&daemon, "run").await;
    let mut asked = upstream.asked("server/discover").await;
    asked.hung_up().await;
    let client = upstream.initialized(&daemon, "s2").await;
    is_served(&mut upstream, &client, "s2").await;
}

#[tokio::test]
async fn nobody_is_sent_on_to_another_host() {
    let mut upstream = Upstream::start().await;
    let mut other = Upstream::start().await;
    let flags = ["--header", "X-Key=env:UP_KEY"];
    let daemon = upstream.launch(&flags).env("UP_KEY", "secret").start().await;
    let elsewhere = other.at("/mcp?next=secret");
    let location = [("location", elsewhere.as_str())];
    let client = root(&daemon);
    let opening = async { upstream.asked("server/discover").await.answer(307, &location, "").await };
    let (why, ()) = tokio::join!(refused(&client, 503), opening);
    assert!(why.contains(&other.at("/mcp")) && why.contains("configure that URL"), "{why}");
    nothing_is_left(&daemon, "run").await;
    let client = upstream.initialized(&daemon, "s1").await;
    for status in [301, 302, 303, 307, 308] {
        let waiting = calling(&client, "t", json!({}));
        upstream.asked("tools/call").await.answer(status, &location, "").await;
        let why = got_fault(waiting, 502, "upstream_unavailable").await;
        assert!(why.contains(&other.at("/mcp")) && !why.contains("secret"), "{why}");
    }
    is_served(&mut upstream, &client, "s1").await;
    ends(&daemon, &mut upstream, &client).await;
    other.asked_nothing_more();
}

#[tokio::test]
async fn a_redirect_within_the_origin_is_followed_with_everything() {
    let mut upstream = Upstream::start().await;
    let daemon = upstream.launch(&["--header", "X-Key=env:UP_KEY"]).env("UP_KEY", "k").start().await;
    let client = upstream.initialized(&daemon, "s1").await;
    for (status, location) in [(307, "/v2/mcp/"), (308, "./v2/mcp/")] {
        let waiting = calling(&client, "t", json!({"a": 1}));
        let first = upstream.asked("tools/call").await;
        let body = first.body.clone();
        first.answer(status, &[("location", location)], "").await;
        let again = upstream.asked("tools/call").await;
        assert_eq!((again.path.as_str(), &again.body), ("/v2/mcp/", &body));
        assert_eq!((again.header("mcp-session-id"), again.header("x-key")), (Some("s1"), Some("k")));
        again.result(text("moved")).await;
        assert_eq!(got_text(waiting).await, "moved");
    }
    // What would turn the POST into a GET is not followed, nor is a circle.
    let waiting = calling(&client, "t", json!({}));
    upstream.asked("tools/call").await.answer(302, &[("location", "/v2/mcp")], "").await;
    got_fault(waiting, 502, "upstream_unavailable").await;
    let waiting = calling(&client, "t", json!({}));
    for _ in 0..4 {
        upstream.asked("tools/call").await.answer(307, &[("location", "/mcp")], "").await;
    }
    got_fault(waiting, 502, "upstream_unavailable").await;
    is_served(&mut upstream, &client, "s1").await;
}

#[tokio::test]
async fn a_page_is_no_mcp_server() {
    let mut upstream = Upstream::start().await;
    let daemon = upstream.bridge(&[]).await;
    let client = root(&daemon);
    let html = [("content-type", "text/html; charset=utf-8")];
    let page = async {
        upstream.asked("server/discover").await.answer(200, &html, "<html>Welcome</html>").await;
        upstream.asked("initialize").await.answer(200, &html, "<html>Welcome</html>").await;
    };
    let (why, ()) = tokio::join!(refused(&client, 503), page);
    assert!(why.contains("text/html") && !why.contains("Welcome"), "{why}");
    // Nor is one that has no such page; that may be a server of the older transport, so it is asked for a stream.
    let page = async {
        upstream.asked("server/discover").await.answer(404, &html, "<html>Not found</html>").await;
        upstream.asked("initialize").await.answer(404, &html, "<html>Not found</html>").await;
        upstream.asked("GET").await.answer(404, &html, "<html>Not found</html>").await;
    };
    let (why, ()) = tokio::join!(refused(&client, 503), page);
    assert!(why.contains("HTTP 404") && why.contains("is this the URL of an MCP server?"), "{why}");
    nothing_is_left(&daemon, "run").await;
    // And one that becomes a page for a moment.
    let client = upstream.initialized(&daemon, "s1").await;
    for (kind, body) in [("text/html", "<html>"), ("application/json", "<html>"), ("application/json", "{\"a\":1}")] {
        let waiting = calling(&client, "t", json!({}));
        upstream.asked("tools/call").await.answer(200, &[("content-type", kind)], body).await;
        let why = got_fault(waiting, 502, "upstream_unavailable").await;
        assert!(why.contains("no MCP") && !why.contains("<html>"), "{why}");
    }
    is_served(&mut upstream, &client, "s1").await;
    ends(&daemon, &mut upstream, &client).await;
}

#[tokio::test]
async fn what_is_no_http_is_said_to_be_none() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut head = [0; 1024];
            let _ = socket.read(&mut head).await;
            let _ = socket.write_all(b"220 mail.example ESMTP\r\n").await;
        }
    });
    let daemon = bridge(&url, &[]).start().await;
    let why = refused(&root(&daemon), 503).await;
    assert!(why.contains("not HTTP"), "{why}");
    nothing_is_left(&daemon, "run").await;
    server.abort();
}

#[tokio::test]
async fn calls_that_need_no_session_are_told_of_failures_too() {
    let mut upstream = Upstream::start().await;
    let daemon = upstream.bridge(&[]).await;
    let waiting = calling(&root(&daemon), "t", json!({}));
    upstream.greet("s1").await;
    upstream.asked("tools/call").await.status(503).await;
    let why = got_fault(waiting, 503, "upstream_unavailable").await;
    assert!(why.contains("HTTP 503"), "{why}");
    let waiting = calling_modern(&modern_root(&daemon), "t", json!({}));
    upstream.asked("tools/call").await.status(401).await;
    let why = got_fault(waiting, 502, "upstream_unavailable").await;
    assert!(why.contains("`headers`"), "{why}");
    nothing_is_left(&daemon, "run").await;
}

// mcp-eras 5.15
#[tokio::test]
async fn one_call_that_fails_leaves_the_others_alone() {
    let mut upstream = Upstream::start().await;
    let (_daemon, client) = upstream.bridged(&[]).await;
    let mut waiting = Vec::new();
    let mut asked = Vec::new();
    for n in 0..4 {
        waiting.push(posting(&client, "tools/call", json!({"name": "t", "arguments": {"n": n}})));
        asked.push(upstream.asked("tools/call").await);
    }
    let mut asked = asked.into_iter();
    drop(asked.next());
    asked.next().unwrap().status(500).await;
    asked.next().unwrap().events().cut().await;
    let last = asked.next().unwrap();
    let mut waiting = waiting.into_iter();
    for (status, reason) in [(502, "upstream_exited"), (503, "upstream_unavailable"), (502, "upstream_exited")] {
        got_fault(waiting.next().unwrap(), status, reason).await;
    }
    stays("the last one waits", A_WHILE, async || {
        upstream.asked_nothing_more();
        true
    })
    .await;
    let n: Value = last.body["params"]["arguments"]["n"].clone();
    last.result(text("untouched")).await;
    assert_eq!((n, got_text(waiting.next().unwrap()).await), (json!(3), "untouched".to_owned()));
}
