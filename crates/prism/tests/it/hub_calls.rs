//! Calls through the hub: each goes to its own destination, and comes back as from there (B-27).

use std::{collections::HashSet, fs};

use futures_util::future::join_all;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{
    Client, Daemon, Events, Home, NEWEST, Plain, demo, destination,
    hub::{Scripted, serve},
    lines, process, result_text, until,
    upstream::{calling, got, got_fault, got_text},
};

/// Two demo servers, and whatever a test has more to say of them.
async fn two(settings: &str) -> Daemon {
    serve(&[settings.to_owned(), destination("a", &[], ""), destination("b", &[], "")]).await
}

fn progress(tool: &str, token: Value, ms: u32) -> Value {
    json!({"name": tool, "arguments": {"steps": 3, "ms": ms}, "_meta": {"progressToken": token}})
}

/// A child that is asked whose it is: the same for calls of one session, another one for each member.
async fn child(client: &Client, member: &str) -> u32 {
    client.text(&format!("{member}__whoami"), json!({})).await.parse().expect("whoami answers a pid")
}

fn counted(record: &str, what: &str) -> usize {
    lines(record).iter().filter(|line| line.contains(what)).count()
}

// B-27
#[tokio::test]
async fn answers_errors_and_failures_come_as_from_the_destination_itself() {
    let daemon = two("").await;
    let (hub, alone) = (daemon.hub().initialize().await, daemon.client_at("/a/mcp").initialize().await);
    let cases = [
        ("echo", json!({"text": "hi"})),
        ("echo", json!({"text": 7})),
        ("fail", json!({"code": -32099})),
        ("show", json!({"kind": "structured"})),
        ("show", json!({"kind": "audio"})),
        ("nothing", json!({})),
    ];
    for (tool, arguments) in cases {
        let mut through = hub.call(&format!("a__{tool}"), arguments.clone()).await.answer().await;
        let mut direct = alone.call(tool, arguments).await.answer().await;
        // Its own, each time.
        for answer in [&mut through, &mut direct] {
            answer["id"] = Value::Null;
            answer["result"]["_meta"] = Value::Null;
        }
        assert_eq!(through, direct, "{tool}");
    }
    // Ids are the client's own, whatever they look like.
    for id in [json!(0), json!("x"), json!(-1), json!(9_007_199_254_740_993_u64)] {
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "b__whoami", "arguments": {}}});
        assert_eq!(hub.post(&call).await.answer().await["id"], id);
        let list = json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"});
        assert_eq!(hub.post(&list).await.answer().await["id"], id);
    }
}

// B-27
#[tokio::test]
async fn progress_comes_on_the_calls_stream_under_its_own_token() {
    for era in ["legacy", "modern"] {
        let daemon = serve(&[destination("a", &["--era", era], ""), destination("b", &["--era", era], "")]).await;
        let hub = daemon.hub().initialize().await;
        // Both at once, under the same token: each stream tells of its own call.
        let calls = ["a", "b"].map(|member| {
            let (hub, tool) = (hub.clone(), format!("{member}__progress"));
            async move { hub.ask("tools/call", progress(&tool, json!("same"), 5)).await.events().rest().await }
        });
        for events in join_all(calls).await {
            let messages: Vec<Value> = events.iter().filter(|e| !e.data.is_empty()).map(|e| e.json()).collect();
            let steps: Vec<&Value> = messages.iter().filter_map(|m| m["params"].get("progress")).collect();
            assert_eq!(steps, [&json!(1), &json!(2), &json!(3)], "{era}: {messages:?}");
            assert!(messages[..3].iter().all(|note| note["params"]["progressToken"] == "same"), "{era}: {messages:?}");
            assert_eq!(result_text(messages.last().unwrap()), "3 steps done");
        }
    }
}

async fn notes(client: &Client, member: &str, level: &str) -> usize {
    let reply = client.call(&format!("{member}__log"), json!({"level": level, "text": "x"})).await;
    if !reply.is_stream() {
        reply.answer().await;
        return 0;
    }
    let events = reply.events().rest().await;
    events.iter().filter(|event| event.data.contains("notifications/message")).count()
}

// B-27
#[tokio::test]
async fn the_log_level_counts_at_members_in_use_and_at_those_that_come_later() {
    for era in ["legacy", "modern"] {
        // Each session its own child, so that a note has one owner and one level.
        let settings = r#"process = "per_session""#;
        let daemon = serve(&["a", "b", "c"].map(|name| destination(name, &["--era", era], settings))).await;
        let hub = daemon.hub().initialize().await;
        assert_eq!(notes(&hub, "a", "error").await, 1, "{era}");
        hub.result("logging/setLevel", json!({"level": "error"})).await;
        // At once, and at a member that has not been used before.
        assert_eq!((notes(&hub, "a", "warning").await, notes(&hub, "a", "error").await), (0, 1), "{era}");
        assert_eq!((notes(&hub, "b", "warning").await, notes(&hub, "b", "error").await), (0, 1), "{era}");
        hub.result("logging/setLevel", json!({"level": "debug"})).await;
        assert_eq!((notes(&hub, "a", "debug").await, notes(&hub, "b", "debug").await), (1, 1), "{era}");
        for wrong in [json!({"level": "loud"}), json!({"level": 7}), json!({})] {
            assert!(hub.error("logging/setLevel", wrong).await["code"].is_i64());
        }
        // One that was refused counts nowhere.
        assert_eq!((notes(&hub, "a", "debug").await, notes(&hub, "c", "debug").await), (1, 1), "{era}");
    }
}

// B-27
#[tokio::test]
async fn a_call_is_cancelled_where_it_is() {
    let home = Home::new();
    let (a, b) = (home.file("a"), home.file("b"));
    let daemon = serve(&[destination("a", &["--record", &a], ""), destination("b", &["--record", &b], "")]).await;
    let hub = daemon.hub().initialize().await;
    child(&hub, "b").await;
    let call = json!({"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": progress("a__progress", json!(1), 60_000)});
    let waiting = tokio::spawn({
        let hub = hub.clone();
        async move { hub.post(&call).await.text().await }
    });
    let seen = |file: &str, what: &str| lines(file).iter().any(|line| line.contains(what));
    until("the call is there", async || seen(&a, "60000")).await;
    hub.notify("notifications/cancelled", json!({"requestId": "c", "reason": "enough"})).await;
    assert!(!waiting.await.unwrap().contains("result"), "a cancelled call is not answered");
    until("its server knows", async || seen(&a, "notifications/cancelled")).await;
    child(&hub, "b").await;
    assert!(!seen(&b, "notifications/cancelled"), "the other one has nothing to do with it");
    // A client of the modern era closes its request.
    let modern = daemon.modern_hub();
    let reply = modern.post(&modern.message("tools/call", progress("b__progress", json!(1), 0))).await;
    reply.answer().await;
    let call = modern.message("tools/call", progress("b__slow", json!(1), 0));
    let mut call = call;
    call["params"]["arguments"] = json!({"ms": 60_001, "text": "x"});
    let waiting = tokio::spawn({
        let modern = modern.clone();
        async move { modern.post(&call).await.status }
    });
    until("the call is there", async || seen(&b, "60001")).await;
    waiting.abort();
    until("its server knows", async || seen(&b, "notifications/cancelled")).await;
}

// B-27
#[tokio::test]
async fn a_call_is_cancelled_while_its_server_starts() {
    let home = Home::new();
    let (mute, starts) = (home.file("mute"), home.file("starts"));
    let script = r#"if [ -e "$1" ]; then echo started >>"$2"; exec sleep 600; fi; shift 2; exec "$@""#;
    let command = [&["sh", "-c", script, "sh", &mute, &starts].map(str::to_owned)[..], &demo(&[])].concat();
    let daemon = serve(&[format!("[destination.a]\ncommand = {command:?}\n")]).await;
    let hub = daemon.hub().initialize_as(NEWEST, json!({"sampling": {}})).await;
    assert!(hub.tools().await.contains(&"a__echo".to_owned()));
    // The client can be asked, so its calls have a child of their own: one that never says a word.
    fs::write(&mute, "").unwrap();
    let call = json!({"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": {"name": "a__echo", "arguments": {"text": "x"}}});
    let waiting = tokio::spawn({
        let hub = hub.clone();
        async move { hub.post(&call).await.text().await }
    });
    until("its server is being started", async || !lines(&starts).is_empty()).await;
    assert!(!waiting.is_finished());
    hub.notify("notifications/cancelled", json!({"requestId": "c"})).await;
    assert_eq!(waiting.await.unwrap(), "", "a cancelled call is not answered");
}

// B-08, B-27
#[tokio::test]
async fn a_child_that_dies_takes_its_own_calls_and_nothing_else() {
    let home = Home::new();
    let (a_seen, b_seen) = (home.file("a"), home.file("b"));
    let daemon =
        serve(&[destination("a", &["--record", &a_seen], ""), destination("b", &["--record", &b_seen], "")]).await;
    let hub = daemon.hub().initialize().await;
    let (a, b) = (child(&hub, "a").await, child(&hub, "b").await);
    let lost = calling(&hub, "a__slow", json!({"ms": 60_000, "text": "x"}));
    let other = calling(&hub, "b__slow", json!({"ms": 300, "text": "still here"}));
    until("the calls are under way", async || [&a_seen, &b_seen].iter().all(|file| counted(file, "slow") == 1)).await;
    process::signal(a, Signal::KILL);
    got_fault(lost, 503, "upstream_exited").await;
    assert_eq!(got_text(other).await, "still here");
    // The session goes on, with a new child there and the same one here.
    let next = child(&hub, "a").await;
    assert_ne!(next, a);
    assert_eq!(child(&hub, "b").await, b);
}

// B-27
#[tokio::test]
async fn a_call_that_takes_too_long_fails_alone() {
    let daemon = two("request_timeout = \"500ms\"\nmax_request_time = \"500ms\"\n").await;
    let hub = daemon.hub().initialize().await;
    // The time that its server takes to start is not the call's, and makes a stream of it.
    assert_eq!(hub.text("a__echo", json!({"text": "x"})).await, "x");
    let late = calling(&hub, "a__slow", json!({"ms": 60_000, "text": "x"}));
    let (status, answer) = got(late).await;
    assert!(answer["error"]["message"].is_string(), "{status} {answer}");
    let direct = daemon.client_at("/a/mcp").initialize().await;
    let (expected, direct) = got(calling(&direct, "slow", json!({"ms": 60_000, "text": "x"}))).await;
    assert_eq!((status, &answer["error"]["data"]), (expected, &direct["error"]["data"]));
    assert_eq!(hub.text("a__echo", json!({"text": "next"})).await, "next");
    assert_eq!(hub.text("b__echo", json!({"text": "other"})).await, "other");
}

// B-27
#[tokio::test]
async fn big_answers_come_whole() {
    let daemon = two("max_message_bytes = \"4MiB\"\n").await;
    let hub = daemon.hub().initialize().await;
    let answers = join_all(["a", "b"].map(|member| {
        let hub = hub.clone();
        async move { hub.text(&format!("{member}__big"), json!({"bytes": 3 << 20})).await }
    }));
    assert!(answers.await.iter().all(|text| text.len() == 3 << 20));
    let modern = daemon.modern_hub().text("a__big", json!({"bytes": 1 << 20})).await;
    assert_eq!(modern.len(), 1 << 20);
}

// B-27
#[tokio::test]
async fn sessions_at_once_are_never_mixed_up() {
    let daemon = two("max_sessions = 100\n").await;
    let asked = json!({"sampling": {}, "elicitation": {}});
    let clients = join_all((0..6).map(|_| {
        let (hub, asked) = (daemon.hub(), asked.clone());
        async move { hub.initialize_as(NEWEST, asked).await }
    }))
    .await;
    let calls = (0..8).flat_map(|round| clients.iter().enumerate().map(move |(at, client)| (round, at, client)));
    let calls = calls.map(|(round, at, client)| async move {
        let member = if (round + at) % 2 == 0 { "a" } else { "b" };
        let said = format!("{round} {at}");
        // The same id in every session.
        let call = json!({"jsonrpc": "2.0", "id": round, "method": "tools/call",
            "params": {"name": format!("{member}__slow"), "arguments": {"ms": 10, "text": said}}});
        let answer = client.post(&call).await.answer().await;
        assert_eq!((result_text(&answer), &answer["id"]), (said.as_str(), &json!(round)));
        (at, member, child(client, member).await)
    });
    let seen: HashSet<(usize, &str, u32)> = join_all(calls).await.into_iter().collect();
    assert_eq!(seen.len(), 12, "one child for each session at each member: {seen:?}");
    let children: HashSet<u32> = seen.iter().map(|(_, _, child)| *child).collect();
    assert_eq!(children.len(), 12, "and each its own: {seen:?}");
    // Each knows of its own client.
    let caps: Value = clients[0].text("a__caps", json!({})).await.parse().unwrap();
    assert_eq!((&caps["capabilities"], &caps["clientInfo"]["name"]), (&asked, &json!("it")), "{caps}");
}

// B-27
#[tokio::test]
async fn calls_that_come_at_once_open_one_part() {
    let daemon = serve(&[destination("a", &[], "process = \"per_session\"")]).await;
    let hub = daemon.hub().initialize().await;
    let children: HashSet<u32> = join_all((0..20).map(|_| child(&hub, "a"))).await.into_iter().collect();
    assert_eq!(children.len(), 1, "{children:?}");
    assert_eq!(daemon.metric(r#"prism_sessions{destination="a"}"#).await, Some(1));
}

// B-27
#[tokio::test]
async fn the_end_of_a_session_is_the_end_of_its_parts() {
    let daemon = serve(&[destination("a", &[], "keep_warm = \"0s\""), destination("b", &[], "")]).await;
    let asked = json!({"elicitation": {}});
    let hub = daemon.hub().initialize_as(NEWEST, asked).await;
    let children = [child(&hub, "a").await, child(&hub, "b").await];
    for member in ["a", "b"] {
        let sessions = format!("prism_sessions{{destination=\"{member}\"}}");
        assert_eq!(daemon.metric(&sessions).await, Some(1));
    }
    assert_eq!(hub.delete().await.status, 204);
    for member in ["prism", "a", "b"] {
        let sessions = format!("prism_sessions{{destination=\"{member}\"}}");
        assert_eq!(daemon.metric(&sessions).await, Some(0), "{member}");
    }
    until("their children stop", async || children.iter().all(|child| !process::is_alive(*child))).await;
    assert_eq!(hub.call("a__whoami", json!({})).await.status, 404);
    assert_eq!(hub.delete().await.status, 404);
}

// B-10, B-27
#[tokio::test]
async fn a_full_member_refuses_for_itself_alone() {
    let daemon = serve(&[destination("a", &[], "max_sessions = 1"), destination("b", &[], "")]).await;
    let (first, second) = (daemon.hub().initialize().await, daemon.hub().initialize().await);
    // One that is at work gives up nothing.
    let running = first.post(&running("a__progress")).await;
    let reply = second.call("a__whoami", json!({})).await;
    assert_eq!((reply.status, reply.header("retry-after").is_some()), (503, true));
    let refused = reply.json().await;
    assert!(refused["error"]["message"].as_str().unwrap().contains("max_sessions"), "{refused}");
    assert!(refused["id"].is_u64(), "it is the answer to the call: {refused}");
    let batched = daemon.hub().initialize_as("2025-03-26", json!({})).await;
    let call = |id: &str, name: &str| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": name, "arguments": {}}});
    let answers = batched.post(&json!([call("x", "a__whoami"), call("y", "b__whoami")])).await.answer().await;
    assert_eq!((&answers[0]["id"], &answers[1]["id"]), (&json!("x"), &json!("y")), "{answers}");
    assert!(answers[0]["error"].is_object() && answers[1]["result"].is_object(), "{answers}");
    child(&second, "b").await;
    assert!(second.tools().await.iter().any(|tool| tool == "a__whoami"), "lists need no session");
    drop(running);
    first.delete().await;
    child(&second, "a").await;
}

/// A call that goes on for a minute, and says so.
fn running(tool: &str) -> Value {
    let arguments = json!({"steps": 60, "ms": 1000, "text": "at work"});
    let params = json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": 1}});
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
}

// R-25, B-10: a window that called once keeps no place from one that calls, and does not notice.
#[tokio::test]
async fn an_idle_part_gives_its_place_up_and_is_opened_again_unnoticed() {
    let daemon = serve(&[destination("a", &[], "max_sessions = 2")]).await;
    let mut windows = Vec::new();
    for _ in 0..3 {
        let window = daemon.hub().initialize().await;
        let stream = window.listen().await;
        windows.push((window, stream));
    }
    let [(first, _one), (second, _two), (third, _three)] = &mut windows[..] else { panic!("three windows") };
    let pid = child(first, "a").await;
    child(second, "a").await;
    for window in [&*third, first, second, third] {
        until("a place is given up", async || window.call("a__whoami", json!({})).await.status == 200).await;
        assert_eq!(child(window, "a").await, pid, "it is the same server");
    }
    assert_eq!(daemon.metric(r#"prism_sessions{destination="a"}"#).await, Some(2), "the cap is kept");
}

/// A third window comes to a server with two places, and to it again: whose place may it have?
async fn two_take_turns(second: &Client, third: &Client) {
    for window in [third, second, third] {
        until("a place is given up", async || window.call("a__whoami", json!({})).await.status == 200).await;
    }
}

// R-25, B-28: a part that watches, or has a call to come back to, is in use though nothing is open on it.
#[tokio::test]
async fn a_part_that_watches_or_has_a_call_that_broke_off_keeps_its_place() {
    let daemon = serve(&[destination("a", &[], "max_sessions = 2")]).await;
    let [first, second, third] =
        [daemon.hub().initialize().await, daemon.hub().initialize().await, daemon.hub().initialize().await];
    let mut stream = first.listen().await;
    let uri = "hub://a/demo://counter";
    assert_eq!(first.result("resources/subscribe", json!({"uri": uri})).await, json!({}));
    child(&second, "a").await;
    two_take_turns(&second, &third).await;
    third.text("a__touch", json!({"uri": "demo://counter"})).await;
    let told = stream.message().await;
    assert_eq!((&told["method"], &told["params"]["uri"]), (&json!("notifications/resources/updated"), &json!(uri)));
    first.result("resources/unsubscribe", json!({"uri": uri})).await;

    let mut call = first.post(&running("a__progress")).await.events();
    let last = call.next().await.unwrap();
    let last = call.next().await.unwrap_or(last).id.expect("it can be resumed");
    drop(call);
    two_take_turns(&second, &third).await;
    let resumed = first.resume(&last).await;
    assert_eq!(resumed.status, 200);
    assert_eq!(resumed.events().message().await["method"], "notifications/progress");
}

// R-57, B-13: the hub's own looks keep no server, once its sessions are over.
#[tokio::test]
async fn servers_stop_when_the_last_session_of_the_hub_has_ended() {
    let daemon = serve(&[destination("a", &[], ""), destination("b", &[], "keep_warm = \"0s\"")]).await;
    let (first, second) = (daemon.hub().initialize().await, daemon.hub().initialize().await);
    let tools = first.tools().await;
    assert!(tools.iter().any(|tool| tool == "a__echo") && tools.iter().any(|tool| tool == "b__echo"), "{tools:?}");
    child(&second, "a").await;
    first.delete().await;
    assert_eq!(daemon.children().len(), 2, "one that is there may want to hear of changes");
    second.delete().await;
    until("all servers have stopped", async || daemon.children().is_empty()).await;
}

// B-10, B-27: what a server keeps for a client it keeps for as long as the client is there.
#[tokio::test]
async fn a_part_lives_as_long_as_its_session() {
    let settings = "process = \"per_session\"";
    let daemon = serve(&[
        "session_idle_timeout = \"500ms\"\n".to_owned(),
        destination("a", &[], settings),
        destination("b", &[], settings),
    ])
    .await;
    let hub = daemon.hub().initialize().await;
    let stream = hub.listen().await;
    let first = child(&hub, "a").await;
    // One that nobody uses is over by then.
    daemon.client_at("/b/mcp").initialize().await;
    let others = r#"prism_sessions{destination="b"}"#;
    until("the other has ended", async || daemon.metric(others).await == Some(0)).await;
    assert_eq!(child(&hub, "a").await, first);
    drop(stream);
    until("it ends with the session", async || !process::is_alive(first)).await;
    assert_eq!(hub.call("a__whoami", json!({})).await.status, 404);
}

// B-24, B-27
#[tokio::test]
async fn calls_without_a_session_find_their_destination() {
    let daemon = two("").await;
    let client = daemon.hub();
    assert!(client.tools().await.iter().any(|tool| tool == "b__echo"));
    assert_eq!(client.text("a__echo", json!({"text": "1"})).await, "1");
    assert_ne!(child(&client, "a").await, child(&client, "b").await);
    let link = client.result("tools/call", json!({"name": "a__show", "arguments": {"kind": "resource_link"}})).await;
    assert_eq!(link["content"][0]["uri"], "hub://a/demo://hello");
    let mut events: Events = client.ask("tools/call", progress("b__progress", json!(4.5), 1)).await.events();
    assert_eq!(events.message().await["params"]["progressToken"], json!(4.5));
    assert_eq!(client.error("tools/call", json!({"name": "x"})).await["code"], -32602);
    assert_eq!(client.notify("notifications/initialized", json!({})).await.status, 202);
    assert_eq!(client.result("ping", json!({})).await, json!({}));
}

// B-06, B-27
#[tokio::test]
async fn a_batch_may_be_for_several_members() {
    let daemon = two("").await;
    let hub = daemon.hub().initialize_as("2025-03-26", json!({})).await;
    let call = |id: u32, name: &str, text: &str| {
        let arguments = json!({"text": text, "ms": 1, "code": -32050});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": name, "arguments": arguments}})
    };
    let batch = json!([
        call(1, "a__slow", "one"),
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}},
        call(2, "b__echo", "two"),
        {"jsonrpc": "2.0", "id": 3, "method": "prompts/list"},
        call(4, "c__echo", "nobody's"),
        call(5, "a__fail", "x"),
        {"jsonrpc": "2.0", "id": 6, "method": "ping"},
    ]);
    let all = |answer: Value| {
        let mut all = answer.as_array().unwrap().clone();
        all.sort_by_key(|answer| answer["id"].as_u64());
        all
    };
    let answers = all(hub.post(&batch).await.answer().await);
    assert_eq!(answers.len(), 6, "{answers:?}");
    assert_eq!((result_text(&answers[0]), answers[1]["result"]["content"].is_array()), ("one", true));
    assert_eq!(answers[2]["result"]["prompts"][0]["name"], "a__greet");
    assert_eq!((&answers[3]["error"]["code"], &answers[4]["error"]["code"]), (&json!(-32602), &json!(-32050)));
    assert_eq!(answers[5]["result"], json!({}));
    let notes = json!([{"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}]);
    assert_eq!(hub.post(&notes).await.status, 202);
    // Only events, where nothing else is accepted.
    let request = hub.request(hyper::Method::POST).header("accept", "text/event-stream").body(batch.to_string());
    let events = request.send().await.events().rest().await;
    assert_eq!(all(events.last().unwrap().json()).len(), 6);
    let newer = daemon.hub().initialize().await;
    assert_eq!(newer.post(&batch).await.status, 400);
}

// B-06, B-27: a batch is answered at its end, so what is asked meanwhile comes on the GET stream.
#[tokio::test]
async fn a_batch_may_be_asked_something() {
    let daemon = two("").await;
    let hub = daemon.hub().initialize_as("2025-03-26", json!({"sampling": {}})).await;
    let mut stream = hub.listen().await;
    let ask = |id: &str, member: &str| {
        let params = json!({"name": format!("{member}__ask"), "arguments": {"kind": "sampling", "text": member}});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    };
    let batch = json!([ask("x", "a"), ask("y", "b")]);
    let waiting = tokio::spawn({
        let hub = hub.clone();
        async move { hub.post(&batch).await.answer().await }
    });
    for _ in 0..2 {
        let question = stream.message().await;
        let text = question["params"]["messages"][0]["content"]["text"].as_str().unwrap();
        let content = json!({"type": "text", "text": format!("to {text}")});
        let result = json!({"role": "assistant", "model": "m", "content": content});
        hub.post(&json!({"jsonrpc": "2.0", "id": question["id"], "result": result})).await;
    }
    let answers = waiting.await.unwrap();
    assert_eq!((&answers[0]["id"], result_text(&answers[0])), (&json!("x"), "to a"), "{answers}");
    assert_eq!((&answers[1]["id"], result_text(&answers[1])), (&json!("y"), "to b"), "{answers}");
}

// B-06, B-27
#[tokio::test]
async fn a_batch_of_nothing_but_a_cancelled_call_is_still_whole() {
    let home = Home::new();
    let record = home.file("a");
    let daemon = serve(&[destination("a", &["--record", &record], "")]).await;
    let hub = daemon.hub().initialize_as("2025-03-26", json!({})).await;
    let params = json!({"name": "a__slow", "arguments": {"ms": 60_000, "text": "x"}});
    let batch = json!([{"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": params}]);
    let waiting = tokio::spawn({
        let hub = hub.clone();
        async move { hub.post(&batch).await.answer().await }
    });
    until("the call is there", async || lines(&record).iter().any(|line| line.contains("60000"))).await;
    hub.notify("notifications/cancelled", json!({"requestId": "c"})).await;
    let answers = waiting.await.unwrap();
    assert_eq!((&answers[0]["id"], &answers[0]["error"]["code"]), (&json!("c"), &json!(-32800)), "{answers}");
}

// B-21, B-27: the older transport is there for each destination, and the hub says so.
#[tokio::test]
async fn the_transport_of_2024_has_no_hub() {
    let daemon = serve(&[destination("a", &[], "legacy_sse = true")]).await;
    for path in ["/sse", "/message?sessionId=x"] {
        assert_eq!(daemon.client_at(path).request(hyper::Method::GET).send().await.status, 404, "{path}");
    }
    let mut plain = Plain::initialize(daemon.client_at("/a/sse"), json!({})).await;
    assert_eq!(result_text(&plain.call("echo", json!({"text": "x"})).await), "x");
}

// B-27
#[tokio::test]
async fn a_destination_that_is_not_for_the_hub_is_not_in_it() {
    let daemon = serve(&[destination("a", &[], ""), destination("b", &[], "hub = false")]).await;
    let hub = daemon.hub().initialize().await;
    assert!(hub.tools().await.iter().all(|tool| !tool.starts_with("b__")));
    assert_eq!(hub.error("tools/call", json!({"name": "b__whoami"})).await["code"], -32602);
    assert_eq!(daemon.client_at("/b/mcp").initialize().await.text("echo", json!({"text": "x"})).await, "x");
}

// B-27
#[tokio::test]
async fn an_upstream_over_http_is_a_member_like_any_other() {
    let server = Scripted::with_tools(json!([{"name": "t", "inputSchema": {}}])).await;
    let daemon = serve(&[server.destination("up", ""), destination("a", &[], "")]).await;
    let hub = daemon.hub().initialize().await;
    assert_eq!(hub.text("up__t", json!({})).await, "t");
    assert_eq!(daemon.modern_hub().text("up__t", json!({})).await, "t");
}
