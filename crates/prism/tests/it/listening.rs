//! Clients of the modern era that want to hear of changes: `subscriptions/listen` (mcp-eras 2.7, 5.8).

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{Daemon, Events, Home, Launch, Reply, SUBSCRIPTION_ID, demo, lines, process, until};

const BACKS: [&str; 2] = ["legacy", "modern"];

fn everything() -> Value {
    json!({
        "toolsListChanged": true,
        "promptsListChanged": true,
        "resourcesListChanged": true,
        "resourceSubscriptions": ["demo://counter"],
    })
}

/// The acknowledgement of a listen, which has to be the first that comes: what it will hear of, and its tag.
async fn acknowledged(stream: &mut Events) -> (Value, Value) {
    let event = stream.next().await.unwrap();
    assert_eq!((event.name.as_deref(), &event.id), (Some("message"), &None));
    let mut first = event.json();
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged", "{first}");
    (first["params"]["notifications"].take(), first["params"]["_meta"][SUBSCRIPTION_ID].take())
}

/// The next change that a listen hears of: its method, its URI, its tag.
async fn change(stream: &mut Events) -> (String, Value, Value) {
    let mut note = stream.message().await;
    assert_eq!(note.get("id"), None, "{note}");
    let method = note["method"].as_str().unwrap().trim_start_matches("notifications/").to_owned();
    (method, note["params"]["uri"].take(), note["params"]["_meta"][SUBSCRIPTION_ID].take())
}

fn counted(record: &str, what: &str) -> usize {
    lines(record).iter().filter(|line| line.contains(what)).count()
}

// checks 12 13 81
#[tokio::test]
async fn what_a_listen_will_hear_of_is_said_first_under_its_own_id() {
    for era in BACKS {
        let daemon = Daemon::run(&[], &["--era", era]).await;
        let client = daemon.modern();
        for id in [json!(0), json!(7), json!("7"), json!(""), json!("ünï"), json!(9_007_199_254_740_993_u64)] {
            let mut message = client.message("subscriptions/listen", json!({"notifications": everything()}));
            message["id"] = id.clone();
            let reply = client.post(&message).await;
            assert_eq!((reply.status, reply.header("content-type")), (200, Some("text/event-stream")));
            assert_eq!(reply.header("x-accel-buffering"), Some("no"));
            assert_eq!(reply.header("mcp-session-id"), None);
            let mut stream = reply.events();
            assert_eq!(acknowledged(&mut stream).await, (everything(), id.clone()), "{era}");
            client.text("change", json!({"what": "tools"})).await;
            assert_eq!(change(&mut stream).await, ("tools/list_changed".to_owned(), Value::Null, id), "{era}");
        }
    }
}

// checks 81
#[tokio::test]
async fn what_the_server_does_not_tell_of_is_left_out() {
    for era in BACKS {
        let daemon = Daemon::run(&[], &["--era", era]).await;
        let wanted = json!({
            "promptsListChanged": false,
            "toolsListChanged": true,
            "resourceSubscriptions": ["demo://nowhere", "demo://counter"],
            "fancyThings": true,
        });
        let mut stream = daemon.modern().listen(json!("l"), wanted).await;
        let honoured = json!({"toolsListChanged": true, "resourceSubscriptions": ["demo://counter"]});
        assert_eq!(acknowledged(&mut stream).await.0, honoured, "{era}");
        let mut stream = daemon.modern().listen(json!("m"), json!({})).await;
        assert_eq!(acknowledged(&mut stream).await.0, json!({}), "{era}: nothing was wanted");
    }
    // One of the older era that says nothing of changes may tell of them all the same, as the Python SDK 1.x does; of what it
    // does not have at all it does not (R-56).
    let script = r#"exec sed -u -n 's/.*"id":\([0-9]*\),"method":"initialize".*/{"jsonrpc":"2.0","id":\1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{}},"serverInfo":{"name":"poor","version":"1"}}}/p'"#;
    let daemon = Launch::run(&[], &["sh", "-c", script].map(str::to_owned)).start().await;
    let mut stream = daemon.modern().listen(json!("l"), everything()).await;
    let honoured = json!({"toolsListChanged": true, "resourcesListChanged": true});
    assert_eq!(acknowledged(&mut stream).await, (honoured, json!("l")));
}

// checks 82 101
#[tokio::test]
async fn each_listen_hears_what_it_asked_for_and_nothing_else() {
    for era in BACKS {
        let daemon = Daemon::run(&[], &["--era", era]).await;
        let client = daemon.modern().at_level("debug");
        let session = daemon.client().initialize().await;
        let mut aside = session.listen().await;
        let mut tools = client.listen(json!("t"), json!({"toolsListChanged": true})).await;
        let counter = json!({"resourceSubscriptions": ["demo://counter"], "promptsListChanged": true});
        let mut counter = client.listen(json!(2), counter).await;
        let mut all = client.listen(json!(3), everything()).await;
        for stream in [&mut tools, &mut counter, &mut all] {
            acknowledged(stream).await;
        }
        // None of what a call has to say is for them.
        let log = client.tool("log", json!({"level": "error", "text": "x"}));
        for call in [client.progress(json!("p"), 2, 1), log] {
            let reply = client.post(&call).await;
            assert!(reply.is_stream(), "{era}");
            reply.answer().await;
        }
        for what in ["tools", "prompts", "resources"] {
            client.text("change", json!({"what": what})).await;
        }
        client.text("touch", json!({"uri": "demo://counter"})).await;
        client.text("touch", json!({"uri": "demo://hello"})).await;
        client.text("change", json!({"what": "tools"})).await;

        let list = |what: &str, id: Value| (format!("{what}/list_changed"), Value::Null, id);
        let updated = |id: Value| ("resources/updated".to_owned(), json!("demo://counter"), id);
        for expected in [list("tools", json!("t")), list("tools", json!("t"))] {
            assert_eq!(change(&mut tools).await, expected, "{era}");
        }
        for expected in [list("prompts", json!(2)), updated(json!(2))] {
            assert_eq!(change(&mut counter).await, expected, "{era}");
        }
        let id = || json!(3);
        let expected =
            [list("tools", id()), list("prompts", id()), list("resources", id()), updated(id()), list("tools", id())];
        for expected in expected {
            assert_eq!(change(&mut all).await, expected, "{era}");
        }
        // A session of the older era hears of every list, once, and sees no tag; of resources only what it watches.
        for what in ["tools", "prompts", "resources", "tools"] {
            let note = aside.message().await;
            assert_eq!(note["method"], format!("notifications/{what}/list_changed"), "{era}");
            assert!(!note.to_string().contains("subscriptionId"), "{era}: {note}");
        }
    }
}

async fn error(reply: Reply) -> (u16, i64) {
    let (status, body) = (reply.status, reply.answer().await);
    (status, body["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error: {body}")))
}

// checks 83
#[tokio::test]
async fn a_listen_must_say_what_it_wants_and_take_events() {
    let daemon = Daemon::run(&[], &[]).await;
    let client = daemon.modern();
    for params in [
        json!({}),
        json!({"notifications": null}),
        json!({"notifications": []}),
        json!({"notifications": {"toolsListChanged": "yes"}}),
        json!({"notifications": {"resourceSubscriptions": "demo://counter"}}),
    ] {
        let (_, code) = error(client.ask("subscriptions/listen", params.clone()).await).await;
        assert_eq!(code, -32602, "{params}");
    }
    let message = client.message("subscriptions/listen", json!({"notifications": everything()}));
    let reply = client.request(&message).header("accept", "application/json").send().await;
    assert_eq!(error(reply).await.0, 406);
}

// checks 83
#[tokio::test]
async fn a_listen_for_tasks_needs_the_extension() {
    let daemon = Daemon::run(&[], &[]).await;
    let client = daemon.modern();
    let wanted = json!({"toolsListChanged": true, "taskIds": ["t-1"]});
    let reply = client.ask("subscriptions/listen", json!({"notifications": wanted})).await;
    assert_eq!((reply.status, reply.is_stream()), (400, false));
    let error = reply.json().await["error"].take();
    assert_eq!(error["code"], -32021, "{error}");
    let required = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    assert_eq!(error["data"]["requiredCapabilities"], required, "{error}");
}

// checks 84
#[tokio::test]
async fn a_daemon_that_stops_ends_each_listen_with_its_result() {
    for era in BACKS {
        let mut daemon = Daemon::run(&[], &["--era", era]).await;
        let client = daemon.modern();
        let ids = [json!("one"), json!(0), json!(2)];
        let mut streams = Vec::new();
        for id in &ids {
            let mut stream = client.listen(id.clone(), everything()).await;
            acknowledged(&mut stream).await;
            streams.push(stream);
        }
        daemon.signal(Signal::TERM);
        for (stream, id) in streams.into_iter().zip(ids) {
            let rest = stream.rest().await;
            assert_eq!(rest.len(), 1, "{era}: {rest:?}");
            let mut last = rest[0].json();
            assert_eq!(last["id"], id, "{era}");
            let result = json!({"resultType": "complete", "_meta": {SUBSCRIPTION_ID: id}});
            assert_eq!(last["result"].take(), result, "{era}");
        }
        assert_eq!(daemon.ended().await.code(), Some(0));
    }
}

// checks 102
#[tokio::test]
async fn a_legacy_server_is_told_once_for_all_who_watch_and_once_when_the_last_has_gone() {
    let home = Home::new();
    let record = home.file("record");
    let daemon = Launch::run(&["--era", "legacy"], &demo(&["--record", &record])).home(&home).start().await;
    let client = daemon.modern();
    let watch = json!({"resourceSubscriptions": ["demo://counter"]});
    let mut first = client.listen(json!(1), watch.clone()).await;
    acknowledged(&mut first).await;
    let mut second = client.listen(json!(2), watch).await;
    acknowledged(&mut second).await;
    let session = daemon.client().initialize().await;
    let reply = session.ask("resources/subscribe", json!({"uri": "demo://counter"})).await;
    assert_eq!(reply.json().await["result"], json!({}));
    assert_eq!(counted(&record, r#""resources/subscribe""#), 1);
    drop(first);
    assert_eq!(session.delete().await.status, 204);
    client.text("touch", json!({"uri": "demo://counter"})).await;
    assert_eq!(change(&mut second).await.0, "resources/updated", "one is left");
    assert_eq!(counted(&record, r#""resources/unsubscribe""#), 0);
    drop(second);
    until("the server is told", async || counted(&record, r#""resources/unsubscribe""#) == 1).await;
    assert_eq!(client.text("touch", json!({"uri": "demo://counter"})).await, "not subscribed");
    assert_eq!(counted(&record, r#""resources/subscribe""#), 1);
}

// mcp-eras 5.8, 5.15
// checks 109
#[tokio::test]
async fn a_listen_outlives_its_server_and_hears_what_may_have_changed_meanwhile() {
    for era in BACKS {
        let daemon = Daemon::run(&["--era", era], &["--era", era]).await;
        let client = daemon.modern();
        let mut stream = client.listen(json!("l"), everything()).await;
        acknowledged(&mut stream).await;
        let child = client.child().await;
        process::signal(child, Signal::KILL);
        until("the child is reaped", async || !process::is_there(child)).await;
        let mut told = Vec::new();
        while told.len() < 4 {
            let (method, _, id) = change(&mut stream).await;
            assert_eq!(id, "l", "{era}");
            told.push(method);
        }
        told.sort();
        let expected = ["prompts/list_changed", "resources/list_changed", "resources/updated", "tools/list_changed"];
        assert_eq!(told, expected, "{era}");
        // The next one knows what is wanted of it.
        assert_ne!(client.child().await, child);
        assert_eq!(client.text("touch", json!({"uri": "demo://counter"})).await, "update sent", "{era}");
        assert_eq!(change(&mut stream).await.0, "resources/updated", "{era}");
    }
}

// mcp-eras 5.8: one listen at the server for all of ours.
// checks 101 110
#[tokio::test]
async fn a_modern_server_has_one_listen_for_all_and_none_when_nobody_wants_any() {
    let home = Home::new();
    let record = home.file("record");
    let command = demo(&["--era", "modern", "--record", &record]);
    let daemon = Launch::run(&["--era", "modern"], &command).home(&home).start().await;
    let client = daemon.modern();
    let mut first = client.listen(json!(1), json!({"toolsListChanged": true})).await;
    acknowledged(&mut first).await;
    let mut second = client.listen(json!(2), json!({"toolsListChanged": true})).await;
    acknowledged(&mut second).await;
    assert_eq!(counted(&record, "subscriptions/listen"), 1, "what is heard already need not be asked for");
    let mut third = client.listen(json!(3), json!({"resourceSubscriptions": ["demo://counter"]})).await;
    acknowledged(&mut third).await;
    assert_eq!(counted(&record, "subscriptions/listen"), 2);
    until("the narrower one is ended", async || counted(&record, "notifications/cancelled") == 1).await;
    client.text("change", json!({"what": "tools"})).await;
    client.text("touch", json!({"uri": "demo://counter"})).await;
    assert_eq!(change(&mut first).await.2, 1);
    assert_eq!(change(&mut second).await.2, 2);
    assert_eq!(change(&mut third).await, ("resources/updated".to_owned(), json!("demo://counter"), json!(3)));
    drop((first, second, third));
    until("the last one is ended", async || {
        counted(&record, "notifications/cancelled") == counted(&record, "subscriptions/listen")
    })
    .await;
}

// mcp-eras 5.17: listens are bounded, and one that left is no longer counted.
#[tokio::test]
async fn a_listen_that_was_closed_is_gone() {
    let daemon = Daemon::run(&[], &[]).await;
    let client = daemon.modern();
    for i in 0..40 {
        let mut stream = client.listen(json!(i), everything()).await;
        acknowledged(&mut stream).await;
    }
    let streams = r#"prism_streams{destination="run"}"#;
    until("none is left", async || daemon.metric(streams).await == Some(0)).await;
}

// The second comes while the server has not confirmed the first.
// checks 102
#[tokio::test]
async fn a_legacy_server_is_told_once_of_two_who_come_at_the_same_time() {
    let home = Home::new();
    let record = home.file("record");
    let daemon = Launch::run(&["--era", "legacy"], &demo(&["--record", &record])).home(&home).start().await;
    let client = daemon.modern();
    let watch = json!({"resourceSubscriptions": ["demo://counter"]});
    let (mut first, mut second) =
        tokio::join!(client.listen(json!(1), watch.clone()), client.listen(json!(2), watch.clone()));
    acknowledged(&mut first).await;
    acknowledged(&mut second).await;
    assert_eq!(counted(&record, r#""resources/subscribe""#), 1);
}
