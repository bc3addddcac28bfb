//! `prism stdio`: every revision through a pipe, as if the server were at its other end (D-07).

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    time::{Duration, Instant},
};

use rustix::process::Signal;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::{
    Home, MODERN, NEWEST, SUBSCRIPTION_ID, demo, result_text,
    shim::{Shim, home_config, home_with_demo, modern, registered},
    until,
    upstream::{Asked, Upstream, note, text},
};

const CALLS: u64 = 200;

fn asking() -> Value {
    json!({"sampling": {}, "elicitation": {}, "roots": {"listChanged": true}})
}

// D-07
#[tokio::test]
async fn a_legacy_client_has_all_of_a_server_through_the_pipe() {
    let home = home_with_demo(&[]);
    let mut shim = Shim::start(&home, &["demo"]);
    // Nobody had started the daemon.
    let greeting = shim.initialize("2025-06-18", asking()).await;
    assert_eq!(
        (&greeting["protocolVersion"], &greeting["serverInfo"]["name"]),
        (&json!("2025-06-18"), &json!("prism-demo"))
    );
    assert!(greeting["instructions"].as_str().is_some_and(|own| own.contains("`echo`")), "{greeting}");
    let tools = shim.result("tools/list", json!({})).await;
    assert!(tools["tools"].as_array().is_some_and(|tools| tools.iter().any(|tool| tool["name"] == "echo")));

    let params =
        json!({"name": "progress", "arguments": {"steps": 3, "ms": 1, "text": "on"}, "_meta": {"progressToken": "p"}});
    let id = shim.ask("tools/call", params);
    assert_eq!(result_text(&shim.answer(id).await), "on");
    let said = shim.said();
    let at = |wanted: &dyn Fn(&Value) -> bool| said.iter().position(wanted).expect("it was said");
    assert!(at(&|it| it["params"]["progressToken"] == "p") < at(&|it| it["id"] == id), "{said:?}");
    assert_eq!(shim.count("notifications/progress"), 3);

    let id = shim.call("sample", json!({"prompt": "well?"}));
    let question = shim.heard("sampling/createMessage").await;
    assert_eq!(question["params"]["messages"][0]["content"]["text"], "well?");
    let content = json!({"role": "assistant", "model": "it", "content": {"type": "text", "text": "quite"}});
    shim.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": content}));
    assert_eq!(result_text(&shim.answer(id).await), "quite");

    shim.call("change", json!({"what": "tools"}));
    shim.heard("notifications/tools/list_changed").await;
    shim.result("resources/subscribe", json!({"uri": "demo://counter"})).await;
    shim.call("touch", json!({"uri": "demo://counter"}));
    assert_eq!(shim.heard("notifications/resources/updated").await["params"]["uri"], "demo://counter");

    shim.close_stdin();
    assert_eq!(shim.ended().await.code(), Some(0));
    assert_eq!(shim.stderr(), "");
}

#[tokio::test]
async fn a_modern_client_has_all_of_a_server_through_the_pipe() {
    let home = home_with_demo(&[]);
    let mut shim = Shim::start(&home, &["demo"]);
    let none = json!({});
    let discovered = shim.result("server/discover", modern(json!({}), &none)).await;
    assert_eq!(discovered["supportedVersions"], json!([MODERN]));
    shim.result("tools/list", modern(json!({}), &none)).await;

    let params = json!({"name": "progress", "arguments": {"steps": 2, "ms": 1, "text": "größer"}, "_meta": {"progressToken": 7}});
    let id = shim.ask("tools/call", modern(params, &none));
    assert_eq!(result_text(&shim.answer(id).await), "größer");
    assert_eq!(shim.count("notifications/progress"), 2);

    // Asked, it asks back in the answer.
    let call = json!({"name": "ask", "arguments": {"kind": "elicitation", "text": "sure?"}});
    let asked = shim.result("tools/call", modern(call.clone(), &json!({"elicitation": {}}))).await;
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let key = asked["inputRequests"].as_object().and_then(|all| all.keys().next()).expect("it asks").clone();
    let mut again = modern(call, &json!({"elicitation": {}}));
    again["inputResponses"] = json!({key: {"action": "accept", "content": {"answer": "yes"}}});
    again["requestState"] = asked["requestState"].clone();
    let id = shim.ask("tools/call", again);
    assert!(result_text(&shim.answer(id).await).contains("yes"));

    let listen = shim.ask("subscriptions/listen", modern(json!({"notifications": {"toolsListChanged": true}}), &none));
    let heard = shim.heard("notifications/subscriptions/acknowledged").await;
    assert_eq!(heard["params"]["_meta"][SUBSCRIPTION_ID], listen);
    shim.ask("tools/call", modern(json!({"name": "change", "arguments": {"what": "tools"}}), &none));
    let heard = shim.heard("notifications/tools/list_changed").await;
    assert_eq!(heard["params"]["_meta"][SUBSCRIPTION_ID], listen);
    // Over a pipe a note cancels; over HTTP the stream has to be closed.
    shim.note("notifications/cancelled", json!({"requestId": listen}));
    let id = shim.ask("tools/call", modern(json!({"name": "change", "arguments": {"what": "tools"}}), &none));
    shim.answer(id).await;
    shim.close_stdin();
    assert_eq!(shim.ended().await.code(), Some(0));
    assert_eq!(shim.count("notifications/tools/list_changed"), 1);
    assert_eq!(shim.answers(listen), Vec::<Value>::new());
}

// 2026-07-28 wants some arguments in headers, which a client on a pipe knows nothing of (mcp-eras 1.8).
#[tokio::test]
async fn arguments_that_belong_into_headers_get_there() {
    let home = home_with_demo(&["--era", "modern"]);
    let mut shim = Shim::start(&home, &["demo"]);
    let none = json!({});
    let tools = json!({"name": "route", "arguments": {"region": "north", "priority": 3}});
    // It has not listed the tools: what it needs to know is fetched for it.
    let id = shim.ask("tools/call", modern(tools, &none));
    let answer = shim.answer(id).await;
    assert!(answer["error"]["code"] != -32020, "{answer}");
}

#[tokio::test]
async fn two_hundred_calls_at_once_are_not_mixed_up() {
    let home = home_with_demo(&[]);
    let mut shim = Shim::start(&home, &["demo"]);
    shim.initialize(NEWEST, json!({})).await;
    let mut calls = Vec::new();
    for i in 0..CALLS {
        // Later ones come back earlier.
        let text = format!("{i} {}", "x".repeat(usize::try_from(i * 37 % 5000).expect("small")));
        calls.push((shim.call("slow", json!({"ms": (CALLS - i) % 50, "text": text})), text));
    }
    for (id, text) in calls {
        assert_eq!(result_text(&shim.answer(id).await), text);
        assert_eq!(shim.answers(id).len(), 1);
    }
    assert!(shim.said().iter().all(|said| said.get("not a message").is_none()));
}

// R-49: a server that cannot start at all looked like one that works. The hub needs no server to greet.
#[tokio::test]
async fn a_server_that_does_not_come_up_is_an_error_and_the_hub_greets_without_it() {
    let home = Home::new();
    home_config(&home, "start_timeout = \"300ms\"\n[destination.never]\ncommand = [\"sleep\", \"3600\"]\n");
    let mut shim = Shim::start(&home, &["never"]);
    let hello = json!({"protocolVersion": NEWEST, "capabilities": {}, "clientInfo": {"name": "it"}});
    let id = shim.ask("initialize", hello);
    let answer = shim.answer(id).await;
    let why = answer["error"]["message"].as_str().unwrap_or_default();
    assert!(why.contains("`start_timeout` (300ms)"), "{answer}");
    let mut shim = Shim::start(&home, &[]);
    let greeting = shim.initialize(NEWEST, json!({})).await;
    assert_eq!(greeting["serverInfo"]["name"], "prism", "{greeting}");
    let discovered = shim.result("server/discover", modern(json!({}), &json!({}))).await;
    assert_eq!(discovered["supportedVersions"], json!([MODERN]));
}

#[tokio::test]
async fn the_hub_is_there_without_a_name_and_an_unknown_name_is_told() {
    let home = home_with_demo(&[]);
    let mut shim = Shim::start(&home, &[]);
    shim.initialize(NEWEST, json!({})).await;
    until("the demo's tools are listed", async || {
        let tools = shim.result("tools/list", json!({})).await;
        tools["tools"].as_array().is_some_and(|tools| tools.iter().any(|tool| tool["name"] == "demo__echo"))
    })
    .await;
    let mut other = Shim::start(&home, &["dmeo"]);
    let id =
        other.ask("initialize", json!({"protocolVersion": NEWEST, "capabilities": {}, "clientInfo": {"name": "it"}}));
    let answer = other.answer(id).await;
    assert!(answer["error"]["message"].as_str().is_some_and(|why| why.contains("known: demo")), "{answer}");
}

#[tokio::test]
async fn what_is_no_message_is_answered_and_the_rest_goes_on() {
    let home = home_with_demo(&[]);
    let mut shim = Shim::start(&home, &["demo"]);
    shim.initialize("2025-03-26", json!({})).await;
    shim.line("{nonsense");
    shim.line(r#"{"jsonrpc":"1.0","id":1}"#);
    shim.line("");
    shim.line(r#"[{"jsonrpc":"2.0","id":"a","method":"ping"},{"jsonrpc":"2.0","id":"b","method":"ping"}]"#);
    until("the batch is answered", async || ["a", "b"].iter().all(|id| shim.said().iter().any(|it| it["id"] == *id)))
        .await;
    let codes: Vec<Value> =
        shim.said().iter().filter(|it| it.get("error").is_some()).map(|it| it["error"]["code"].clone()).collect();
    assert_eq!(codes, [json!(-32700), json!(-32600)]);
}

// The parent may die in any way: nothing of ours is left behind.
#[tokio::test]
async fn it_ends_with_its_stdin_its_stdout_or_a_signal() {
    let home = home_with_demo(&[]);
    let mut first = Shim::start(&home, &["demo"]);
    first.initialize(NEWEST, json!({})).await;
    first.call("slow", json!({"ms": 600_000, "text": "never"}));
    first.signal(Signal::TERM);
    let begun = Instant::now();
    assert_eq!(first.ended().await.code(), Some(0));
    assert!(begun.elapsed() < Duration::from_secs(10));

    let (mut second, stdout) = Shim::spawn(&home, &["demo"]);
    drop(stdout);
    assert_eq!(second.ended().await.code(), Some(0));

    let mut third = Shim::start(&home, &["demo"]);
    third.initialize(NEWEST, json!({})).await;
    let id = third.call("slow", json!({"ms": 200, "text": "last"}));
    third.close_stdin();
    assert_eq!(third.ended().await.code(), Some(0));
    until("its last words are read", async || !third.answers(id).is_empty()).await;
    assert_eq!(result_text(&third.answers(id)[0]), "last");
    // The daemon is everybody's, and stays.
    assert!(registered(&home).is_some());
}

// --- What the daemon sees ---

/// A shim in front of a server that the test plays.
async fn in_front_of(upstream: &Upstream) -> Shim {
    let home = Home::new();
    let token = home.file("http-mcp-token");
    fs::write(&token, "secret\n").expect("the home can be written to");
    fs::set_permissions(token, fs::Permissions::from_mode(0o600)).expect("the file is ours");
    Shim::start(&home, &["--url", upstream.at("").as_str()])
}

/// Sends the client's first words and plays the server's, up to the stream.
async fn open(shim: &mut Shim, upstream: &mut Upstream, session: &str) -> Asked {
    shim.ask("initialize", json!({"protocolVersion": NEWEST, "capabilities": {}, "clientInfo": {"name": "it"}}));
    upstream.asked("initialize").await.welcome(session).await;
    shim.note("notifications/initialized", json!({}));
    upstream.asked("notifications/initialized").await.status(202).await;
    upstream.asked("GET").await
}

/// An error as the daemon's door gives it: it does not know whose request it was.
fn refusal(error: Value) -> Value {
    json!({"jsonrpc": "2.0", "error": error})
}

#[tokio::test]
async fn every_request_says_who_it_comes_from_and_the_session_is_ended() {
    let mut upstream = Upstream::start().await;
    let mut shim = in_front_of(&upstream).await;
    let stream = open(&mut shim, &mut upstream, "s1").await;
    assert_eq!((stream.header("mcp-session-id"), stream.header("mcp-protocol-version")), (Some("s1"), Some(NEWEST)));
    let first = stream.header("prism-instance").map(str::to_owned);
    let stream = stream.events();
    shim.call("echo", json!({}));
    let asked = upstream.asked("tools/call").await;
    let agent = concat!("prism-stdio/", env!("CARGO_PKG_VERSION"));
    for (name, value) in [
        ("prism-transport", "stdio"),
        ("user-agent", agent),
        ("authorization", "Bearer secret"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-session-id", "s1"),
    ] {
        assert_eq!(asked.header(name), Some(value), "{name}");
    }
    let instance = asked.header("prism-instance").map(str::to_owned);
    assert!(instance.as_deref().is_some_and(|id| Uuid::try_parse(id).is_ok()) && instance == first, "{instance:?}");
    asked.result(text("ok")).await;
    shim.answer(2).await;
    shim.close_stdin();
    let farewell = upstream.asked("DELETE").await;
    assert_eq!(farewell.header("mcp-session-id"), Some("s1"));
    farewell.status(204).await;
    assert_eq!(shim.ended().await.code(), Some(0));
    drop(stream);
}

// A session that is not known any more is opened again, with all that was set in it, and nothing is lost.
#[tokio::test]
async fn a_lost_session_is_opened_again_and_the_request_repeated() {
    let mut upstream = Upstream::start().await;
    let mut shim = in_front_of(&upstream).await;
    let stream = open(&mut shim, &mut upstream, "s1").await.events();
    shim.ask("logging/setLevel", json!({"level": "debug"}));
    upstream.asked("logging/setLevel").await.result(json!({})).await;
    shim.ask("resources/subscribe", json!({"uri": "a:b"}));
    upstream.asked("resources/subscribe").await.result(json!({})).await;
    let call = shim.call("echo", json!({}));
    let unknown = json!({"code": -32001, "message": "Session not found"});
    upstream.asked("tools/call").await.json(404, &refusal(unknown)).await;
    let again = upstream.asked("initialize").await;
    assert_eq!((again.header("mcp-session-id"), &again.body["params"]["clientInfo"]["name"]), (None, &json!("it")));
    again.welcome("s2").await;
    upstream.asked("notifications/initialized").await.status(202).await;
    let mut seen = Vec::new();
    while seen.len() < 4 {
        let asked = upstream.next().await;
        assert_eq!(asked.header("mcp-session-id"), Some("s2"), "{}", asked.what());
        seen.push(asked.what().to_owned());
        match asked.what() {
            "GET" => asked.status(405).await,
            "tools/call" => asked.result(text("done")).await,
            _ => asked.result(json!({})).await,
        }
    }
    seen.sort();
    assert_eq!(seen, ["GET", "logging/setLevel", "resources/subscribe", "tools/call"]);
    assert_eq!(result_text(&shim.answer(call).await), "done");
    // What may have changed meanwhile is told.
    shim.heard("notifications/tools/list_changed").await;
    upstream.asked_nothing_more();
    drop(stream);
}

#[tokio::test]
async fn a_daemon_that_stops_is_asked_again() {
    let mut upstream = Upstream::start().await;
    let mut shim = in_front_of(&upstream).await;
    open(&mut shim, &mut upstream, "s1").await.status(405).await;
    let call = shim.call("echo", json!({}));
    let stopping = json!({"code": -32603, "message": "Prism is stopping", "data": {"reason": "stopping"}});
    upstream.asked("tools/call").await.json(503, &refusal(stopping)).await;
    upstream.asked("tools/call").await.result(text("done")).await;
    assert_eq!(result_text(&shim.answer(call).await), "done");
    // The same status with other words may have come after it was done: it is not repeated.
    let call = shim.call("echo", json!({}));
    upstream.asked("tools/call").await.json(503, &refusal(json!({"code": -32603, "message": "gone"}))).await;
    assert_eq!(shim.answer(call).await["error"]["message"], "gone");
    upstream.asked_nothing_more();
}

// A stream that breaks off is gone on with where it broke.
#[tokio::test]
async fn a_call_whose_stream_breaks_is_resumed_and_not_made_again() {
    let mut upstream = Upstream::start().await;
    let mut shim = in_front_of(&upstream).await;
    open(&mut shim, &mut upstream, "s1").await.status(405).await;
    let call = shim.call("echo", json!({}));
    let flow = upstream.asked("tools/call").await.events();
    flow.push("retry: 10\n").await;
    flow.numbered("7-1", &note("notifications/first", json!({}))).await;
    shim.heard("notifications/first").await;
    flow.cut().await;
    let resumed = upstream.asked("GET").await;
    assert_eq!(resumed.header("last-event-id"), Some("7-1"));
    let flow = resumed.events();
    flow.event(&json!({"jsonrpc": "2.0", "id": call, "result": text("done")})).await;
    assert_eq!(result_text(&shim.answer(call).await), "done");
    // One that cannot be gone on with is lost, and said to be.
    let call = shim.call("echo", json!({}));
    let flow = upstream.asked("tools/call").await.events();
    flow.numbered("8-1", &note("notifications/second", json!({}))).await;
    shim.heard("notifications/second").await;
    flow.cut().await;
    upstream.asked("GET").await.status(400).await;
    let answer = shim.answer(call).await;
    assert_eq!(answer["error"]["data"]["reason"], "daemon_restarted", "{answer}");
    upstream.asked_nothing_more();
}

#[tokio::test]
async fn prisms_own_servers_have_names_too() {
    let home = Home::new();
    home_config(&home, &format!("[destination.demo]\ncommand = {:?}\n", demo(&[])));
    let mut shim = Shim::start(&home, &["prism"]);
    let greeting = shim.initialize(NEWEST, json!({})).await;
    assert_eq!(greeting["serverInfo"]["name"], "prism", "{greeting}");
}
