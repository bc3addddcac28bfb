//! A Streamable HTTP server of the legacy era behind the daemon: what it is sent, what its sessions and streams come to
//! (B-22). What it may do wrong is in `upstream_faults.rs`.

use std::time::{Duration, Instant};

use hyper::Method;
use serde_json::{Value, json};

use crate::support::{
    Launch, NEWEST,
    upstream::{
        Asked, Upstream, call, calling, calling_modern, got, got_fault, got_text, greeting, modern_root, note,
        nothing_is_left, posting, root, streaming, text,
    },
};

/// Clients that share one session at the server, as they do where the config says so.
const SHARED: &[&str] = &["--process", "shared_always"];

// mcp-eras 1.2
// checks 112
#[tokio::test]
async fn each_request_says_what_the_protocol_wants_and_nothing_of_the_clients_own() {
    let mut upstream = Upstream::start().await;
    let daemon = upstream.bridge(&[]).await;
    let opening = tokio::spawn({
        let client = root(&daemon);
        async move { client.initialize().await }
    });
    let both = Some("application/json, text/event-stream");
    let check_session = |asked: &Asked| {
        assert_eq!(asked.path, "/mcp");
        assert_eq!(asked.header("mcp-session-id"), Some("up-1"), "{}", asked.what());
        // What was negotiated, not what we would have liked.
        assert_eq!(asked.header("mcp-protocol-version"), Some("2025-06-18"), "{}", asked.what());
    };

    let discover = upstream.asked("server/discover").await;
    assert_eq!(discover.header("accept"), both);
    assert_eq!((discover.header("mcp-session-id"), discover.header("mcp-method")), (None, Some("server/discover")));
    discover.status(404).await;
    let initialize = upstream.asked("initialize").await;
    assert_eq!((initialize.header("accept"), initialize.header("content-type")), (both, Some("application/json")));
    assert_eq!(initialize.header("mcp-session-id"), None);
    let asked_for = initialize.body["params"]["protocolVersion"].as_str().unwrap().to_owned();
    assert!(initialize.header("mcp-protocol-version").is_none_or(|version| version == asked_for));
    let result =
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "u", "version": "1"}});
    let body = json!({"jsonrpc": "2.0", "id": initialize.id(), "result": result}).to_string();
    let head = [("content-type", "application/json; charset=utf-8"), ("mcp-session-id", "up-1")];
    initialize.answer(200, &head, &body).await;
    let initialized = upstream.asked("notifications/initialized").await;
    check_session(&initialized);
    assert_eq!(initialized.header("accept"), both);
    initialized.status(202).await;
    let listen = upstream.asked("GET").await;
    check_session(&listen);
    assert_eq!((listen.header("accept"), listen.header("last-event-id")), (Some("text/event-stream"), None));
    listen.status(405).await;

    let client = opening.await.unwrap();
    let own = client.session().to_owned();
    let calling = tokio::spawn({
        let body = json!({"jsonrpc": "2.0", "id": "mine", "method": "tools/call", "params": {"name": "t"}});
        let request = client.request(hyper::Method::POST).header("mcp-name", "x").header("x-own", "y");
        async move { request.body(body.to_string()).send().await.answer().await }
    });
    let asked = upstream.asked("tools/call").await;
    check_session(&asked);
    assert_eq!((asked.header("accept"), asked.header("content-type")), (both, Some("application/json")));
    assert_eq!((asked.header("mcp-method"), asked.header("mcp-name"), asked.header("x-own")), (None, None, None));
    assert!(!asked.all().contains(&own), "our session is ours: {}", asked.all());
    asked.result(text("fine")).await;
    assert_eq!(calling.await.unwrap()["id"], "mine");

    // B-22: the last session of ours ends the server's.
    assert_eq!(client.delete().await.status, 204);
    let delete = upstream.asked("DELETE").await;
    check_session(&delete);
    delete.status(204).await;
    nothing_is_left(&daemon, "run").await;
}

// mcp-eras 1.7
// checks 118
#[tokio::test]
async fn the_clients_token_stays_here_and_the_configured_one_goes_with_every_request() {
    let mut upstream = Upstream::start().await;
    let flags = ["--header", "Authorization: Bearer env:UP_KEY", "--header", "X-Tenant=blue"];
    let daemon = upstream.launch(&flags).env("UP_KEY", "upstream-secret").start().await;
    let ours = daemon.token();
    let check = |asked: &Asked| {
        assert_eq!(asked.header("authorization"), Some("Bearer upstream-secret"), "{}", asked.what());
        assert_eq!(asked.header("x-tenant"), Some("blue"), "{}", asked.what());
        assert!(!asked.all().contains(&ours), "{}", asked.all());
    };
    let opening = tokio::spawn({
        let client = root(&daemon);
        async move { client.initialize().await }
    });
    let discover = upstream.asked("server/discover").await;
    check(&discover);
    discover.status(400).await;
    let initialize = upstream.asked("initialize").await;
    check(&initialize);
    initialize.welcome("s1").await;
    let initialized = upstream.asked("notifications/initialized").await;
    check(&initialized);
    initialized.status(202).await;
    let listen = upstream.asked("GET").await;
    check(&listen);
    listen.status(405).await;
    let client = opening.await.unwrap();
    let waiting = calling(&client, "t", json!({}));
    let asked = upstream.asked("tools/call").await;
    check(&asked);
    asked.result(text("fine")).await;
    assert_eq!(got_text(waiting).await, "fine");
    client.delete().await;
    let delete = upstream.asked("DELETE").await;
    check(&delete);
    delete.status(200).await;
    let log = daemon.stop().await;
    assert!(!log.contains("upstream-secret") && !log.contains(&ours), "{log}");
}

// checks 113
#[tokio::test]
async fn a_session_that_the_server_forgot_is_opened_again_and_the_call_sent_once_more() {
    let mut upstream = Upstream::start().await;
    let (daemon, client) = upstream.bridged(&[]).await;
    let mut stream = client.listen().await;
    let waiting = calling(&client, "t", json!({"n": 1}));
    let first = upstream.asked("tools/call").await;
    let arguments = first.body["params"]["arguments"].clone();
    first.status(404).await;
    upstream.greet("s2").await;
    let again = upstream.asked("tools/call").await;
    assert_eq!((again.header("mcp-session-id"), &again.body["params"]["arguments"]), (Some("s2"), &arguments));
    again.result(text("served")).await;
    assert_eq!(got_text(waiting).await, "served");
    // The client's own session goes on; what the new one of the server may have forgotten is told.
    assert_eq!(stream.message().await["method"], "notifications/tools/list_changed");

    // A server that forgets at once is not asked for ever.
    let waiting = calling(&client, "t", json!({}));
    upstream.asked("tools/call").await.status(404).await;
    upstream.greet("s3").await;
    upstream.asked("tools/call").await.status(404).await;
    let why = got_fault(waiting, 502, "upstream_unavailable").await;
    assert!(why.contains("forgets its sessions"), "{why}");
    upstream.greet("s4").await;
    let waiting = calling(&client, "t", json!({}));
    let asked = upstream.asked("tools/call").await;
    assert_eq!(asked.header("mcp-session-id"), Some("s4"));
    asked.result(text("again")).await;
    assert_eq!(got_text(waiting).await, "again");
    drop(stream);
    client.delete().await;
    upstream.asked("DELETE").await.status(200).await;
    nothing_is_left(&daemon, "run").await;
}

// mcp-eras 5.15
#[tokio::test]
async fn a_new_session_of_the_server_is_told_what_the_old_one_knew() {
    let mut upstream = Upstream::start().await;
    let (_daemon, client) = upstream.bridged(&[]).await;
    let mut stream = client.listen().await;
    for (method, params) in
        [("resources/subscribe", json!({"uri": "file:///a"})), ("logging/setLevel", json!({"level": "debug"}))]
    {
        let waiting = posting(&client, method, params);
        upstream.asked(method).await.result(json!({})).await;
        assert_eq!(got(waiting).await.0, 200);
    }
    let waiting = calling(&client, "t", json!({}));
    upstream.asked("tools/call").await.status(404).await;
    let flow = upstream.greet_and_listen("s2").await;
    // In whichever order.
    let mut told = Vec::new();
    for _ in 0..3 {
        let asked = upstream.next().await;
        assert_eq!(asked.header("mcp-session-id"), Some("s2"), "{}", asked.body);
        told.push(format!("{} {}", asked.what(), asked.body["params"]["uri"].as_str().unwrap_or_default()));
        match asked.what() {
            "tools/call" => asked.result(text("served")).await,
            _ => asked.result(json!({})).await,
        }
    }
    told.sort();
    assert_eq!(told, ["logging/setLevel ", "resources/subscribe file:///a", "tools/call "]);
    assert_eq!(got_text(waiting).await, "served");
    flow.event(&note("notifications/resources/updated", json!({"uri": "file:///a", "n": 2}))).await;
    while stream.message().await["params"]["n"] != 2 {}
    upstream.is_left_alone().await;
}

// checks 113
#[tokio::test]
async fn no_other_status_of_the_4xx_costs_a_session() {
    let mut upstream = Upstream::start().await;
    let (_daemon, client) = upstream.bridged(&[]).await;
    for status in [400, 405, 409, 410, 418, 422, 429] {
        let waiting = calling(&client, "t", json!({}));
        upstream.asked("tools/call").await.status(status).await;
        let why = got_fault(waiting, 502, "upstream_unavailable").await;
        assert!(why.contains(&status.to_string()), "{why}");
    }
    // A JSON-RPC error says more than any status, and reaches the client as it is.
    let waiting = calling(&client, "t", json!({}));
    let error = json!({"code": -32602, "message": "no such tool", "data": {"tool": "t"}});
    upstream.asked("tools/call").await.error(400, error.clone()).await;
    let (status, answer) = got(waiting).await;
    assert_eq!((status, &answer["error"]), (200, &error));
    let waiting = calling(&client, "t", json!({}));
    let asked = upstream.asked("tools/call").await;
    assert_eq!(asked.header("mcp-session-id"), Some("s1"));
    asked.result(text("same session")).await;
    assert_eq!(got_text(waiting).await, "same session");
}

// mcp-eras 5.4
// checks 97
#[tokio::test]
async fn two_clients_with_equal_ids_and_tokens_each_get_their_own() {
    let mut upstream = Upstream::start().await;
    let (daemon, first) = upstream.bridged(SHARED).await;
    // One session of the server serves them both.
    let second = root(&daemon).initialize().await;
    let mut asked = Vec::new();
    let mut replies = Vec::new();
    for client in [&first, &second] {
        replies.push(tokio::spawn(call(client, 1, &json!("same")).send()));
        asked.push(upstream.asked("tools/call").await);
    }
    assert!(asked.iter().all(|asked| asked.header("mcp-session-id") == Some("s1")));
    let ids: Vec<u64> = asked.iter().map(Asked::id).collect();
    let tokens: Vec<Value> = asked.iter().map(Asked::token).collect();
    assert!(ids[0] != ids[1] && tokens[0] != tokens[1], "{ids:?} {tokens:?}");
    let flows: Vec<_> = asked.into_iter().map(Asked::events).collect();
    // The later one first, and a note that is about the other's call.
    for at in [1, 0] {
        flows[at].progress(&tokens[at], 10 + u32::try_from(at).unwrap()).await;
    }
    for at in [1, 0] {
        flows[at].result(ids[at], text(&format!("for {at}"))).await;
    }
    for (at, reply) in replies.into_iter().enumerate() {
        let mut stream = reply.await.unwrap().events();
        assert_eq!(stream.message().await["params"], json!({"progressToken": "same", "progress": 10 + at}));
        let answer = stream.message().await;
        assert_eq!((&answer["id"], &answer["result"]), (&json!(1), &text(&format!("for {at}"))));
        assert!(stream.rest().await.is_empty());
    }
}

// mcp-eras 5.5
// checks 101
#[tokio::test]
async fn a_change_that_the_server_tells_of_reaches_each_session_once() {
    let mut upstream = Upstream::start().await;
    let daemon = upstream.bridge(SHARED).await;
    let client = root(&daemon);
    let (first, flow) = tokio::join!(client.initialize(), upstream.greet_and_listen("s1"));
    let second = root(&daemon).initialize().await;
    let mut streams = [first.listen().await, second.listen().await];
    let watching = posting(&second, "resources/subscribe", json!({"uri": "file:///a"}));
    upstream.asked("resources/subscribe").await.result(json!({})).await;
    got(watching).await;
    flow.event(&note("notifications/tools/list_changed", json!({}))).await;
    flow.event(&note("notifications/resources/updated", json!({"uri": "file:///a/b"}))).await;
    flow.event(&note("notifications/prompts/list_changed", json!({}))).await;
    for (stream, watches) in streams.iter_mut().zip([false, true]) {
        assert_eq!(stream.message().await["method"], "notifications/tools/list_changed");
        if watches {
            assert_eq!(stream.message().await["params"]["uri"], "file:///a/b");
        }
        assert_eq!(stream.message().await["method"], "notifications/prompts/list_changed");
    }
}

// B-22
#[tokio::test]
async fn the_servers_session_lives_as_long_as_one_of_ours() {
    let mut upstream = Upstream::start().await;
    let (daemon, first) = upstream.bridged(SHARED).await;
    let second = root(&daemon).initialize().await;
    assert_eq!(first.delete().await.status, 204);
    upstream.is_left_alone().await;
    let waiting = calling(&second, "t", json!({}));
    upstream.asked("tools/call").await.result(text("still here")).await;
    assert_eq!(got_text(waiting).await, "still here");
    assert_eq!(second.delete().await.status, 204);
    let delete = upstream.asked("DELETE").await;
    assert_eq!(delete.header("mcp-session-id"), Some("s1"));
    // A server that does not want to be told is not asked twice.
    delete.status(405).await;
    nothing_is_left(&daemon, "run").await;
    // The next client finds a new one.
    let third = upstream.initialized(&daemon, "s2").await;
    let waiting = calling(&third, "t", json!({}));
    let asked = upstream.asked("tools/call").await;
    assert_eq!(asked.header("mcp-session-id"), Some("s2"));
    asked.result(text("new")).await;
    assert_eq!(got_text(waiting).await, "new");
    // And a daemon that stops ends it, too.
    let told = async { upstream.asked("DELETE").await.status(200).await };
    tokio::join!(daemon.stop(), told);
}

// B-22
#[tokio::test]
async fn a_server_without_sessions_is_never_told_of_one() {
    let mut upstream = Upstream::start().await;
    let daemon = upstream.bridge(&["--era", "legacy"]).await;
    let greet = async {
        // Any answer may be a stream, the first one too.
        let asked = upstream.asked("initialize").await;
        let id = asked.id();
        let flow = asked.events();
        flow.push("id: 0\ndata:\n\n").await;
        flow.result(id, greeting()).await;
        drop(flow);
        upstream.asked("notifications/initialized").await.status(202).await;
        upstream.asked("GET").await.status(405).await;
    };
    let client = root(&daemon);
    let (client, ()) = tokio::join!(client.initialize(), greet);
    let waiting = calling(&client, "t", json!({}));
    let asked = upstream.asked("tools/call").await;
    assert_eq!((asked.header("mcp-session-id"), asked.header("mcp-protocol-version")), (None, Some(NEWEST)));
    // There is no session that a 404 could be about.
    asked.status(404).await;
    got_fault(waiting, 502, "upstream_unavailable").await;
    assert_eq!(client.delete().await.status, 204);
    upstream.is_left_alone().await;
    nothing_is_left(&daemon, "run").await;
}

// B-25
#[tokio::test]
async fn a_server_that_does_not_let_go_keeps_no_daemon() {
    let mut upstream = Upstream::start().await;
    let (daemon, client) = upstream.bridged(&[]).await;
    let waiting = calling(&client, "t", json!({}));
    let _asked = upstream.asked("tools/call").await;
    let begun = Instant::now();
    daemon.stop().await;
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    let (status, answer) = got(waiting).await;
    assert_eq!((status, &answer["error"]["data"]["reason"]), (503, &json!("daemon_stopping")), "{answer}");
}

// mcp-eras 5.10
// checks 76
#[tokio::test]
async fn a_modern_client_that_leaves_has_its_call_cancelled() {
    let mut upstream = Upstream::start().await;
    let daemon = upstream.bridge(&["--era", "legacy"]).await;
    let waiting = calling_modern(&modern_root(&daemon), "t", json!({}));
    upstream.greet("s1").await;
    let asked = upstream.asked("tools/call").await;
    waiting.abort();
    let cancelled = upstream.asked("notifications/cancelled").await;
    assert_eq!(cancelled.body["params"]["requestId"], asked.id());
    cancelled.status(202).await;
    // A legacy client that leaves may come back for its answer.
    let client = upstream.initialized(&daemon, "s2").await;
    let waiting = calling(&client, "t", json!({}));
    let _asked = upstream.asked("tools/call").await;
    waiting.abort();
    upstream.is_left_alone().await;
}

// B-22
// checks 118
#[tokio::test]
async fn configured_servers_get_their_own_headers_and_their_own_clients() {
    let mut servers = [Upstream::start().await, Upstream::start().await];
    let config: Vec<String> = servers
        .iter()
        .zip(["one", "two"])
        .map(|(server, name)| {
            let key = format!("headers = {{ X-Key = \"env:KEY_{}\" }}", name.to_uppercase());
            format!("[destination.{name}]\nurl = {:?}\ntype = \"streamable_http\"\n{key}\n", server.url())
        })
        .collect();
    let launch = Launch::serve(&config.join("\n")).env("KEY_ONE", "first").env("KEY_TWO", "second");
    let daemon = launch.start().await;
    for (server, (name, key)) in servers.iter_mut().zip([("one", "first"), ("two", "second")]) {
        let client = daemon.client_at(&format!("/{name}/mcp"));
        let (client, ()) = tokio::join!(client.initialize(), server.greet(name));
        let waiting = calling(&client, "t", json!({}));
        let asked = server.asked("tools/call").await;
        assert_eq!((asked.header("x-key"), asked.header("mcp-session-id")), (Some(key), Some(name)));
        asked.result(text(name)).await;
        assert_eq!(got_text(waiting).await, name);
        client.delete().await;
        server.asked("DELETE").await.status(200).await;
        nothing_is_left(&daemon, name).await;
    }
    for server in &mut servers {
        server.asked_nothing_more();
    }
}

// B-22, mcp-eras 5.7 D
#[tokio::test]
async fn a_question_goes_to_the_client_and_its_answer_to_the_server() {
    let mut upstream = Upstream::start().await;
    let daemon = upstream.bridge(&[]).await;
    let client = root(&daemon);
    let capabilities = json!({"elicitation": {}});
    let (client, ()) = tokio::join!(client.initialize_as(NEWEST, capabilities), upstream.greet("s1"));
    let reply = tokio::spawn(call(&client, 1, &json!("t")).send());
    let asked = upstream.asked("tools/call").await;
    let id = asked.id();
    let flow = asked.events();
    let params = json!({"message": "Your name?", "requestedSchema": {"type": "object", "properties": {}}});
    flow.event(&json!({"jsonrpc": "2.0", "id": "q-1", "method": "elicitation/create", "params": params})).await;
    let mut stream = reply.await.unwrap().events();
    let question = stream.message().await;
    assert_eq!(
        (&question["method"], &question["params"]["message"]),
        (&json!("elicitation/create"), &json!("Your name?"))
    );
    let result = json!({"action": "accept", "content": {}});
    let reply = client.post(&json!({"jsonrpc": "2.0", "id": question["id"], "result": result})).await;
    assert_eq!(reply.status, 202);
    let answer = upstream.asked("POST").await;
    assert_eq!((&answer.body["id"], &answer.body["result"]), (&json!("q-1"), &result));
    assert_eq!(answer.header("mcp-session-id"), Some("s1"));
    answer.status(202).await;
    flow.result(id, text("hello")).await;
    assert_eq!(stream.message().await["result"], text("hello"));
}

// mcp-eras 5.10
#[tokio::test]
async fn a_cancellation_is_told_to_the_server_by_its_own_number() {
    let mut upstream = Upstream::start().await;
    let (_daemon, client) = upstream.bridged(&[]).await;
    let (reply, id, token, flow) = streaming(&mut upstream, &client, 7).await;
    flow.progress(&token, 1).await;
    let stream = reply.await.unwrap().events();
    assert_eq!(client.notify("notifications/cancelled", json!({"requestId": 7})).await.status, 202);
    let cancelled = upstream.asked("notifications/cancelled").await;
    assert_eq!(cancelled.body["params"]["requestId"], id);
    cancelled.status(202).await;
    // No answer, and none that comes too late.
    assert!(stream.rest().await.iter().all(|event| !event.data.contains("result")));
    flow.result(id, text("late")).await;
    drop(flow);
    let waiting = calling(&client, "t", json!({}));
    upstream.asked("tools/call").await.result(text("next")).await;
    assert_eq!(got_text(waiting).await, "next");
}

// R-18, B-22: what ties a call together passes both ways, the rest where it is asked for, credentials never.
#[tokio::test]
async fn headers_of_a_client_reach_the_server_as_far_as_they_may_and_its_own_come_back() {
    const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let mut upstream = Upstream::start().await;
    let config = format!("[destination.docs]\nurl = {:?}\nforward_headers = [\"X-Tenant\"]\n", upstream.url());
    let daemon = Launch::serve(&config).start().await;
    let hello = json!({"protocolVersion": NEWEST, "capabilities": {}, "clientInfo": {"name": "it", "version": "1"}});
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}).to_string();
    let client = daemon.client_at("/docs/mcp");
    let opening =
        client.request(Method::POST).header("x-tenant", "blue").header("traceparent", TRACE).body(hello).send();
    let (reply, ()) = tokio::join!(opening, async {
        upstream.asked("server/discover").await.status(400).await;
        let initialize = upstream.asked("initialize").await;
        assert_eq!(initialize.header("x-tenant"), Some("blue"), "the session is its client's own from the beginning");
        initialize.welcome("s1").await;
        let initialized = upstream.asked("notifications/initialized").await;
        let had = (initialized.header("x-tenant"), initialized.header("traceparent"));
        assert_eq!(had, (Some("blue"), None), "what is of one request is of no other");
        initialized.status(202).await;
        upstream.asked("GET").await.status(405).await;
    });
    let client = client.with_session(reply.header("mcp-session-id").unwrap());
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "t"}}).to_string();
    let request = client.request(Method::POST).body(call);
    let request = request.header("traceparent", TRACE).header("x-tenant", "blue").header("x-other", "1");
    let calling = tokio::spawn(request.header("cookie", "a=b").send());
    let asked = upstream.asked("tools/call").await;
    assert_eq!((asked.header("traceparent"), asked.header("x-tenant")), (Some(TRACE), Some("blue")));
    for never in ["authorization", "cookie", "x-other"] {
        assert_eq!(asked.header(never), None, "{never}");
    }
    assert_eq!(asked.header("mcp-session-id"), Some("s1"), "its own session, not ours");
    let answer = json!({"jsonrpc": "2.0", "id": asked.id(), "result": text("done")}).to_string();
    let told = [("content-type", "application/json"), ("x-request-id", "r1"), ("set-cookie", "c=d")];
    asked.answer(200, &told, &answer).await;
    let reply = calling.await.unwrap();
    assert_eq!((reply.status, reply.header("x-request-id"), reply.header("set-cookie")), (200, Some("r1"), None));
}
