//! A Streamable HTTP server of the modern era (2026-07-28) behind the daemon: the headers that it is sent, how it is
//! found out that it is one, and what never changes that (mcp-eras 1.8, 4.1).

use serde_json::{Value, json};

use crate::support::{
    Client, Daemon, Home, MODERN, NEWEST,
    upstream::{
        Asked, Upstream, calling, calling_modern, discovered, fault, got, got_fault, got_text, modern_root,
        modern_text, note, nothing_is_left, posting, root, text,
    },
};

/// A tool whose arguments go into headers.
fn tool(name: &str, properties: Value) -> Value {
    json!({"name": name, "inputSchema": {"type": "object", "properties": properties}})
}

fn annotated() -> Value {
    json!({
        "region": {"type": "string", "x-mcp-header": "Region"},
        "count": {"type": "integer", "x-mcp-header": "Count"},
        "dry": {"type": "boolean", "x-mcp-header": "Dry"},
        "plain": {"type": "string"},
    })
}

fn listed(tools: &[Value]) -> Value {
    json!({"tools": tools, "resultType": "complete", "ttlMs": 0, "cacheScope": "public"})
}

/// Checks what a modern server is told with every request, and what it is not told.
fn is_modern(asked: &Asked) {
    assert_eq!(asked.verb, "POST");
    assert_eq!(asked.header("accept"), Some("application/json, text/event-stream"));
    assert_eq!(asked.header("mcp-protocol-version"), Some(MODERN), "{}", asked.what());
    assert_eq!(asked.header("mcp-method"), Some(asked.what()));
    assert_eq!(asked.header("mcp-session-id"), None);
    let meta = &asked.body["params"]["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], MODERN, "{}", asked.body);
    assert!(meta["io.modelcontextprotocol/clientCapabilities"].is_object(), "{}", asked.body);
}

// mcp-eras 1.2, 1.8, 5.13
// checks 116
#[tokio::test]
async fn the_headers_to_the_server_are_made_from_the_body() {
    let mut upstream = Upstream::start().await;
    let daemon = upstream.bridge(&["--era", "modern", "--header", "Authorization: Bearer up"]).await;
    let client = modern_root(&daemon);
    let listing = tokio::spawn({
        let client = client.clone();
        async move { client.result("tools/list", json!({})).await }
    });
    upstream.greet_modern().await;
    let asked = upstream.asked("tools/list").await;
    is_modern(&asked);
    assert_eq!(asked.header("mcp-name"), None);
    let number = json!({"n": {"type": "array", "x-mcp-header": "N"}});
    let twice = json!({"a": {"type": "string", "x-mcp-header": "A"}, "b": {"type": "string", "x-mcp-header": "a"}});
    let blank = json!({"a": {"type": "string", "x-mcp-header": "not a token"}});
    let broken = [tool("broken", number), tool("twice", twice), tool("blank", blank)];
    let all = [[tool("good", annotated()), tool("bare", json!({}))].as_slice(), &broken].concat();
    asked.result(listed(&all)).await;
    let tools = listing.await.unwrap();
    let names: Vec<&Value> = tools["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["good", "bare"], "tools with broken annotations are hidden");

    let arguments = json!({"region": "Zürich", "count": 42, "dry": true, "plain": "p"});
    let message = client.tool("good", arguments.clone());
    let waiting = tokio::spawn({
        let request = client.request(&message);
        let request = request.header("mcp-param-region", "=?base64?WsO8cmljaA==?=").header("mcp-param-count", "42.0");
        let request = request.header("mcp-param-dry", "true").header("mcp-param-other", "kept here");
        async move {
            let reply = request.header("x-own", "y").send().await;
            (reply.status, reply.answer().await)
        }
    });
    let asked = upstream.asked("tools/call").await;
    is_modern(&asked);
    assert_eq!(asked.body["params"]["arguments"], arguments);
    assert_eq!(asked.header("mcp-name"), Some("good"));
    assert_eq!(asked.header("mcp-param-region"), Some("=?base64?WsO8cmljaA==?="));
    assert_eq!((asked.header("mcp-param-count"), asked.header("mcp-param-dry")), (Some("42"), Some("true")));
    assert_eq!((asked.header("mcp-param-other"), asked.header("x-own")), (None, None));
    assert_eq!(asked.header("authorization"), Some("Bearer up"));
    asked.result(modern_text("fine")).await;
    assert_eq!(got_text(waiting).await, "fine");

    // A legacy client knows nothing of such headers, and needs to know nothing. Its session is ours alone.
    let legacy = root(&daemon).initialize().await;
    upstream.asked_nothing_more();
    let waiting = calling(&legacy, "good", json!({"region": " edge ", "count": null}));
    let asked = upstream.asked("tools/call").await;
    is_modern(&asked);
    assert_eq!(asked.header("mcp-param-region"), Some("=?base64?IGVkZ2Ug?="));
    assert_eq!((asked.header("mcp-param-count"), asked.header("mcp-param-dry")), (None, None));
    asked.result(modern_text("fine")).await;
    let (status, answer) = got(waiting).await;
    assert_eq!((status, &answer["result"]), (200, &text("fine")), "nothing modern is left in it");
    assert_eq!(legacy.delete().await.status, 204);
    nothing_is_left(&daemon, "run").await;
    upstream.asked_nothing_more();
}

// mcp-eras 3
// checks 116
#[tokio::test]
async fn headers_that_do_not_fit_are_looked_up_once_and_the_call_made_once_more() {
    let mut upstream = Upstream::start().await;
    let daemon = upstream.bridge(&["--era", "modern"]).await;
    let (client, ()) = tokio::join!(
        async {
            let client = root(&daemon);
            client.initialize().await
        },
        upstream.greet_modern()
    );
    let mismatch = || json!({"code": -32020, "message": "Mcp-Param-Region is missing"});
    let waiting = calling(&client, "good", json!({"region": "eu"}));
    let first = upstream.asked("tools/call").await;
    assert_eq!(first.header("mcp-param-region"), None);
    first.error(400, mismatch()).await;
    let refresh = upstream.asked("tools/list").await;
    is_modern(&refresh);
    refresh.result(listed(&[tool("good", annotated())])).await;
    let again = upstream.asked("tools/call").await;
    is_modern(&again);
    assert_eq!((again.header("mcp-param-region"), again.header("mcp-name")), (Some("eu"), Some("good")));
    again.result(modern_text("fine")).await;
    assert_eq!(got_text(waiting).await, "fine");
    // It was learned for the next.
    let waiting = calling(&client, "good", json!({"region": "us"}));
    let asked = upstream.asked("tools/call").await;
    assert_eq!(asked.header("mcp-param-region"), Some("us"));
    // One that is never satisfied gets one more, and no third.
    asked.error(400, mismatch()).await;
    upstream.asked("tools/list").await.result(listed(&[tool("good", annotated())])).await;
    upstream.asked("tools/call").await.error(400, mismatch()).await;
    let (status, answer) = got(waiting).await;
    assert_eq!((status, &answer["error"]["code"]), (200, &json!(-32603)), "{answer}");
    upstream.asked_nothing_more();
    // Nor does a list that cannot be had keep the client.
    let waiting = calling(&client, "good", json!({"region": "us"}));
    upstream.asked("tools/call").await.error(400, mismatch()).await;
    upstream.asked("tools/list").await.status(500).await;
    upstream.asked("tools/call").await.result(modern_text("after all")).await;
    assert_eq!(got_text(waiting).await, "after all");
}

// mcp-eras 4.1
// checks 117
#[tokio::test]
async fn a_server_that_names_our_revision_in_its_refusal_is_asked_in_it_again() {
    let mut upstream = Upstream::start().await;
    let daemon = upstream.bridge(&[]).await;
    let waiting = calling_modern(&modern_root(&daemon), "t", json!({}));
    let asked = upstream.asked("server/discover").await;
    is_modern(&asked);
    let data = json!({"supported": ["2027-01-01", MODERN], "requested": MODERN});
    asked.error(400, json!({"code": -32022, "message": "unsupported", "data": data})).await;
    upstream.greet_modern().await;
    let asked = upstream.asked("tools/call").await;
    is_modern(&asked);
    asked.result(modern_text("fine")).await;
    assert_eq!(got_text(waiting).await, "fine");
    upstream.asked_nothing_more();
}

// mcp-eras 4.1
// checks 117
#[tokio::test]
async fn neither_refusals_nor_outages_change_what_is_known_of_the_era() {
    let home = Home::new();
    let mut upstream = Upstream::start().await;
    let daemon = upstream.launch(&["--request-timeout", "1s", "--max-request-time", "1s"]).home(&home).start().await;
    let client = modern_root(&daemon);
    // Before anything is known: a refusal is no evidence, and an outage neither.
    for status in [401, 403] {
        let waiting = calling_modern(&client, "t", json!({}));
        upstream.asked("server/discover").await.status(status).await;
        got_fault(waiting, 503, "upstream_unavailable").await;
    }
    let waiting = calling_modern(&client, "t", json!({}));
    upstream.asked("server/discover").await.status(503).await;
    drop(upstream.asked("server/discover").await);
    upstream.greet_modern().await;
    upstream.asked("tools/call").await.result(modern_text("fine")).await;
    assert_eq!(got_text(waiting).await, "fine");
    // After.
    for status in [401, 403, 500, 503] {
        let waiting = calling_modern(&client, "t", json!({}));
        let asked = upstream.asked("tools/call").await;
        is_modern(&asked);
        asked.status(status).await;
        let expected = if status < 500 { 502 } else { 503 };
        got_fault(waiting, expected, "upstream_unavailable").await;
    }
    let waiting = calling_modern(&client, "t", json!({}));
    let kept = upstream.asked("tools/call").await;
    got_fault(waiting, 504, "upstream_timeout").await;
    drop(kept);
    let waiting = calling_modern(&client, "t", json!({}));
    let asked = upstream.asked("tools/call").await;
    is_modern(&asked);
    asked.result(modern_text("still")).await;
    assert_eq!(got_text(waiting).await, "still");
    daemon.stop().await;

    // Nor for the next daemon. Its client is of the other era, which the server is asked for, too, and refuses.
    let daemon = upstream.launch(&["--request-timeout", "1s"]).home(&home).start().await;
    let waiting = calling(&root(&daemon), "t", json!({}));
    upstream.asked("server/discover").await.status(503).await;
    upstream.asked("server/discover").await.result(discovered()).await;
    upstream.asked("initialize").await.status(400).await;
    upstream.asked("GET").await.status(405).await;
    let asked = upstream.asked("tools/call").await;
    is_modern(&asked);
    asked.result(modern_text("known")).await;
    assert_eq!(got_text(waiting).await, "known");
}

// mcp-eras 4.1
#[tokio::test]
async fn a_server_that_was_found_to_be_of_the_legacy_era_is_asked_in_it_at_once() {
    let home = Home::new();
    let mut upstream = Upstream::start().await;
    let daemon = upstream.launch(&[]).home(&home).start().await;
    let client = upstream.initialized(&daemon, "s1").await;
    let gone = async { upstream.asked("DELETE").await.status(200).await };
    tokio::join!(client.delete(), gone);
    daemon.stop().await;
    let daemon = upstream.launch(&[]).home(&home).start().await;
    let opening = tokio::spawn({
        let client = root(&daemon);
        async move { client.initialize().await }
    });
    let asked = upstream.asked("initialize").await;
    assert_eq!(asked.body["params"]["protocolVersion"], NEWEST);
    asked.welcome("s2").await;
    upstream.asked("notifications/initialized").await.status(202).await;
    upstream.asked("GET").await.status(405).await;
    opening.await.unwrap();
}

// mcp-eras 5.10, 1.5
// checks 73 76
#[tokio::test]
async fn a_stream_of_a_modern_server_is_passed_on_as_it_comes_and_closing_ours_closes_it() {
    let mut upstream = Upstream::start().await;
    let daemon = upstream.bridge(&[]).await;
    let client = modern_root(&daemon);
    let reply = tokio::spawn({
        let (client, message) = (client.clone(), client.progress(json!("t"), 1, 1));
        async move { client.post(&message).await }
    });
    upstream.greet_modern().await;
    let asked = upstream.asked("tools/call").await;
    let token = asked.token();
    let flow = asked.events();
    flow.progress(&token, 1).await;
    let mut stream = reply.await.unwrap().events();
    for n in 1..=3 {
        assert_eq!(stream.message().await["params"], json!({"progressToken": "t", "progress": n}));
        flow.progress(&token, n + 1).await;
    }
    drop(stream);
    flow.hung_up().await;
    // Nobody is asked for the rest: there is no such thing in this era.
    let waiting = calling_modern(&client, "t", json!({}));
    let flow = upstream.asked("tools/call").await.events();
    flow.push("retry: 1\n\n").await;
    flow.numbered("1", &note("notifications/progress", json!({"progressToken": 0, "progress": 1}))).await;
    flow.cut().await;
    let (status, answer) = got(waiting).await;
    assert_eq!(status, 502, "{answer}");
    fault(&answer, "upstream_exited");
    upstream.asked_nothing_more();
    nothing_is_left(&daemon, "run").await;
}

/// A server whose tools change, and a client of the older era.
async fn changing(upstream: &mut Upstream) -> (Daemon, Client) {
    let daemon = upstream.bridge(&["--era", "modern"]).await;
    let mut said = discovered();
    said["capabilities"] = json!({"tools": {"listChanged": true}});
    let opening = tokio::spawn({
        let client = root(&daemon);
        async move { client.initialize().await }
    });
    upstream.asked("server/discover").await.result(said).await;
    let legacy = opening.await.unwrap();
    (daemon, legacy)
}

// mcp-eras 5.8
// checks 101
#[tokio::test]
async fn changes_of_a_modern_server_reach_sessions_and_listens_once() {
    let mut upstream = Upstream::start().await;
    let (daemon, legacy) = changing(&mut upstream).await;
    // One listen for all that want to know.
    let listen = upstream.asked("subscriptions/listen").await;
    is_modern(&listen);
    assert_eq!(listen.body["params"]["notifications"]["toolsListChanged"], true);
    let id = listen.id();
    let flow = listen.events();
    let tagged = |method: &str, mut params: Value| {
        params["_meta"] = json!({"io.modelcontextprotocol/subscriptionId": id});
        note(method, params)
    };
    let honoured = json!({"notifications": {"toolsListChanged": true}});
    flow.event(&tagged("notifications/subscriptions/acknowledged", honoured)).await;
    let mut stream = legacy.listen().await;
    let mut listening = modern_root(&daemon).listen(json!("mine"), json!({"toolsListChanged": true})).await;
    let acknowledged = listening.message().await;
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    flow.event(&tagged("notifications/tools/list_changed", json!({}))).await;
    let change = stream.message().await;
    assert_eq!(change["method"], "notifications/tools/list_changed");
    assert!(change["params"]["_meta"].is_null(), "{change}");
    let change = listening.message().await;
    assert_eq!(change["method"], "notifications/tools/list_changed");
    assert_eq!(change["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "mine");
    let waiting = posting(&legacy, "tools/call", json!({"name": "t"}));
    upstream.asked("tools/call").await.result(modern_text("fine")).await;
    assert_eq!(got_text(waiting).await, "fine");
    // Whoever wanted to know is gone.
    drop((stream, listening));
    assert_eq!(legacy.delete().await.status, 204);
    flow.hung_up().await;
    nothing_is_left(&daemon, "run").await;
}

// mcp-eras 5.8
#[tokio::test]
async fn a_stream_of_changes_that_is_lost_is_opened_again_and_all_are_told() {
    let mut upstream = Upstream::start().await;
    let (_daemon, legacy) = changing(&mut upstream).await;
    let mut stream = legacy.listen().await;
    for round in 0..3 {
        let listen = upstream.asked("subscriptions/listen").await;
        is_modern(&listen);
        let meta = json!({"io.modelcontextprotocol/subscriptionId": listen.id()});
        let flow = listen.events();
        let honoured = json!({"notifications": {"toolsListChanged": true}, "_meta": meta});
        flow.event(&note("notifications/subscriptions/acknowledged", honoured)).await;
        if round == 0 {
            flow.event(&note("notifications/tools/list_changed", json!({"_meta": meta}))).await;
        }
        // Told by the server, and then by us, because what happened meanwhile is not known.
        assert_eq!(stream.message().await["method"], "notifications/tools/list_changed");
        match round {
            0 => flow.cut().await,
            1 => drop(flow),
            _ => flow.push(": still here\n\n").await.then_some(()).expect("it is read"),
        }
    }
    let waiting = calling(&legacy, "t", json!({}));
    upstream.asked("tools/call").await.result(modern_text("fine")).await;
    assert_eq!(got_text(waiting).await, "fine");
}

// mcp-eras 5.11
// checks 119
#[tokio::test]
async fn a_list_is_fetched_once_for_as_long_as_the_server_says() {
    const TTL: u64 = 60_000;
    let mut upstream = Upstream::start().await;
    let daemon = upstream.bridge(&["--era", "modern"]).await;
    let listing = |name: &str| {
        let client = modern_root(&daemon).named(name);
        tokio::spawn(async move { client.result("tools/list", json!({})).await })
    };
    let mut fresh = listed(&[tool("t", json!({}))]);
    fresh["ttlMs"] = TTL.into();
    let waiting = [listing("a"), listing("b")];
    upstream.greet_modern().await;
    upstream.asked("tools/list").await.result(fresh).await;
    for waiting in waiting {
        let result = waiting.await.unwrap();
        assert_eq!(result["tools"][0]["name"], "t", "{result}");
    }
    // Later ones are answered from what is kept, with the time that is left of it.
    let mut left = TTL;
    for _ in 0..3 {
        let result = listing("c").await.unwrap();
        let ttl = result["ttlMs"].as_u64().unwrap_or_else(|| panic!("{result}"));
        assert!(ttl <= left && ttl > 0, "{ttl} of {left}");
        left = ttl;
    }
    let legacy = root(&daemon).initialize().await;
    let (status, answer) = got(posting(&legacy, "tools/list", json!({}))).await;
    assert_eq!((status, &answer["result"]["tools"][0]["name"]), (200, &json!("t")));
    assert!(answer["result"]["ttlMs"].is_null(), "{answer}");
    upstream.asked_nothing_more();
}
