//! What outlives the daemon: its sessions, with their streams, levels and subscriptions (D-09).

use serde_json::{Value, json};

use crate::support::{Client, Daemon, Events, Home, Launch, destination, process, until};

/// A daemon in a home that another may have been in before.
async fn daemon(home: &Home, config: &str) -> Daemon {
    Launch::serve(config).home(home).start().await
}

/// The same client at the next daemon.
fn again(client: &Client, daemon: &Daemon, path: &str) -> Client {
    daemon.client_at(path).with_session(client.session())
}

/// The next message of a stream that is this note: what it says. Others may come before it.
async fn told(stream: &mut Events, method: &str) -> Value {
    loop {
        let mut message = stream.message().await;
        if message["method"] == format!("notifications/{method}") {
            return message["params"].take();
        }
    }
}

/// How a daemon ends.
#[derive(Clone, Copy, Debug)]
enum End {
    Stopped,
    Killed,
}

async fn end(mut daemon: Daemon, how: End) {
    match how {
        End::Stopped => drop(daemon.stop().await),
        End::Killed => daemon.kill().await,
    }
}

#[tokio::test]
async fn a_session_goes_on_after_the_daemon_was_stopped_or_killed() {
    for how in [End::Stopped, End::Killed] {
        let (home, config) = (Home::new(), destination("d", &[], ""));
        let first = daemon(&home, &config).await;
        let client = first.client_at("/d/mcp").initialize().await;
        let child = client.child().await;
        end(first, how).await;

        let second = daemon(&home, &config).await;
        let client = again(&client, &second, "/d/mcp");
        assert_ne!(client.child().await, child, "{how:?}");
        until("nothing is left of the first daemon", async || !process::is_there(child)).await;
        assert_eq!(client.delete().await.status, 204);
        end(second, how).await;

        // One that is over stays over.
        let third = daemon(&home, &config).await;
        let reply = again(&client, &third, "/d/mcp").call("whoami", json!({})).await;
        assert_eq!(reply.status, 404, "{how:?}");
    }
}

// B-28
#[tokio::test]
async fn a_stream_is_resumed_over_a_restart_and_what_was_watched_is_watched_again() {
    for how in [End::Stopped, End::Killed] {
        let (home, config) = (Home::new(), destination("d", &[], ""));
        let first = daemon(&home, &config).await;
        let client = first.client_at("/d/mcp").initialize().await;
        let mut stream = client.listen().await;
        client.result("resources/subscribe", json!({"uri": "demo://counter"})).await;
        // Two calls at a time: whose note it is nobody knows, so it comes on the session's own stream.
        let long = json!({"name": "progress", "arguments": {"steps": 500, "ms": 20}, "_meta": {"progressToken": 1}});
        let mut long = client.ask("tools/call", long).await.events();
        long.message().await;
        client.text("log", json!({"count": 2, "text": "kept"})).await;
        let mut ids = Vec::new();
        while ids.len() < 2 {
            let event = stream.next().await.expect("the stream goes on");
            if event.data.contains("kept") {
                ids.push(event.id.expect("an event has an id"));
            }
        }
        until("it is written down", async || saved_events(&home) >= 2).await;
        end(first, how).await;

        let second = daemon(&home, &config).await;
        let client = again(&client, &second, "/d/mcp");
        let mut stream = client.resume(&ids[0]).await.events();
        let missed = stream.next().await.expect("the stream goes on");
        assert!(missed.data.contains("kept") && missed.id.as_deref() == Some(&ids[1]), "{how:?}: {missed:?}");
        assert_eq!(told(&mut stream, "resources/updated").await["uri"], "demo://counter", "it may have changed");
        assert_eq!(client.text("touch", json!({"uri": "demo://counter"})).await, "update sent");
        assert_eq!(told(&mut stream, "resources/updated").await["uri"], "demo://counter");
    }
}

// B-28: a number that one daemon has given to an event is given to no other by the next.
#[tokio::test]
async fn a_stream_is_resumed_over_many_kills_from_events_that_nobody_wrote_down() {
    let (home, config) = (Home::new(), destination("d", &[], ""));
    let mut last = daemon(&home, &config).await;
    let mut client = last.client_at("/d/mcp").initialize().await;
    let (mut seen, mut stream) = (Vec::new(), client.listen().await);
    for _ in 0..3 {
        client.text("change", json!({"what": "tools"})).await;
        // After a start all that may have changed is told; the last of it is what was called for.
        let event = loop {
            let event = stream.next().await.expect("the stream goes on");
            if event.data.contains("tools/list_changed") {
                break event.id.expect("an event has an id");
            }
        };
        assert!(!seen.contains(&event), "{event} after {seen:?}");
        last.kill().await;
        last = daemon(&home, &config).await;
        client = again(&client, &last, "/d/mcp");
        let reply = client.resume(&event).await;
        assert_eq!(reply.status, 200, "{event} after {seen:?}");
        stream = reply.events();
        seen.push(event);
    }
}

fn saved_events(home: &Home) -> i64 {
    // A test may look where the daemon writes.
    prism_store::Store::open(&home.path().join("prism.db"))
        .unwrap()
        .sessions()
        .unwrap()
        .iter()
        .map(|session| session.events.len() as i64)
        .sum()
}

// B-27
#[tokio::test]
async fn a_session_of_the_hub_goes_on_with_its_parts() {
    let (home, config) = (Home::new(), destination("a", &[], "") + &destination("b", &[], ""));
    let mut first = daemon(&home, &config).await;
    let hub = first.hub().at("/mcp?only=a,b").initialize().await;
    hub.result("logging/setLevel", json!({"level": "warning"})).await;
    hub.result("resources/subscribe", json!({"uri": "hub://b/demo://counter"})).await;
    hub.text("a__echo", json!({"text": "x"})).await;
    first.kill().await;

    let second = daemon(&home, &config).await;
    let hub = again(&hub, &second, "/mcp");
    let mut stream = hub.listen().await;
    told(&mut stream, "tools/list_changed").await;
    assert_eq!(told(&mut stream, "resources/updated").await["uri"], "hub://b/demo://counter");
    assert_eq!(hub.text("b__touch", json!({"uri": "demo://counter"})).await, "update sent");
    assert_eq!(told(&mut stream, "resources/updated").await["uri"], "hub://b/demo://counter");
    assert_eq!(hub.text("a__log", json!({"level": "info"})).await, "0 notes sent");
    let tools = hub.result("tools/list", json!({})).await;
    let names: Vec<&str> = tools["tools"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert!(!names.iter().any(|name| name.starts_with("workspace")), "it sees what it saw: {names:?}");
}

#[tokio::test]
async fn a_session_whose_destination_is_gone_is_over() {
    let home = Home::new();
    let first = daemon(&home, &destination("d", &[], "")).await;
    let client = first.client_at("/d/mcp").initialize().await;
    end(first, End::Stopped).await;
    let second = daemon(&home, &destination("e", &[], "")).await;
    end(second, End::Stopped).await;
    let third = daemon(&home, &destination("d", &[], "")).await;
    assert_eq!(again(&client, &third, "/d/mcp").call("whoami", json!({})).await.status, 404);
}

#[tokio::test]
async fn an_idle_child_is_stopped_and_the_next_call_starts_another() {
    let daemon = daemon(&Home::new(), &destination("d", &[], "idle_stop = \"300ms\"")).await;
    let client = daemon.client_at("/d/mcp").initialize().await;
    let _stream = client.listen().await;
    let child = client.child().await;
    until("it is stopped", async || !process::is_there(child)).await;
    assert_ne!(client.child().await, child);
    assert_eq!(client.delete().await.status, 204);

    // Neither the hub nor who listens there for changes of lists keeps it awake.
    let hub = daemon.hub().initialize().await;
    let mut stream = hub.listen().await;
    let child: u32 = hub.text("d__whoami", json!({})).await.parse().unwrap();
    until("it is stopped", async || !process::is_there(child)).await;
    assert_eq!(hub.text("d__echo", json!({"text": "awake"})).await, "awake");
    told(&mut stream, "tools/list_changed").await;
}
