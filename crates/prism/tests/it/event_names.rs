//! What the event lines of streams say: `message`, or for those who ask for it the method (N-03).

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{Client, Daemon, Event, Launch, Modern, NEWEST, Plain, destination};

/// The name of an event, and what it should be called after its method.
fn names(event: &Event) -> (String, String) {
    let message = event.json();
    let method = message["method"].as_str().unwrap_or("result").to_owned();
    (event.name.clone().expect("a name is always written"), method)
}

/// Opens every kind of stream at these paths, and returns the names of all events that carry a message, each with the
/// one that its method would give it.
async fn all_streams(mut daemon: Daemon, mcp: &str, sse: &str) -> Vec<(String, String)> {
    let mut events: Vec<Event> = Vec::new();
    let session = daemon.client_at(mcp).initialize_as(NEWEST, json!({"sampling": {}})).await;
    let mut get = session.listen().await;
    events.extend(call(&session).await);
    session.text("change", json!({"what": "tools"})).await;
    while events.last().unwrap().data.is_empty() || names(events.last().unwrap()).1 == "result" {
        events.push(get.next().await.unwrap());
    }
    let mut asking = session.call("ask", json!({"kind": "sampling", "text": "x"})).await.events();
    while events.last().unwrap().data.is_empty() || names(events.last().unwrap()).1 != "sampling/createMessage" {
        events.push(asking.next().await.unwrap());
    }
    drop(asking);

    let modern = Modern::new(daemon.client_at(mcp));
    events.extend(modern.post(&modern.progress(json!("p"), 1, 1)).await.events().rest().await);
    let mut listen = modern.listen(json!("l"), json!({"promptsListChanged": true})).await;
    events.push(listen.next().await.unwrap());
    modern.text("change", json!({"what": "prompts"})).await;
    events.push(listen.next().await.unwrap());

    let mut plain = Plain::initialize(daemon.client_at(sse), json!({})).await;
    plain.send("tools/call", json!({"name": "log", "arguments": {"level": "error"}})).await;
    events.push(plain.stream.next().await.unwrap());
    events.push(plain.stream.next().await.unwrap());
    daemon.signal(Signal::TERM);
    events.extend(listen.rest().await);
    assert_eq!(daemon.ended().await.code(), Some(0));
    events.iter().filter(|event| !event.data.is_empty()).map(names).collect()
}

async fn call(session: &Client) -> Vec<Event> {
    let params = json!({"name": "progress", "arguments": {"steps": 2, "ms": 1}, "_meta": {"progressToken": 1}});
    session.ask("tools/call", params).await.events().rest().await
}

fn expected() -> Vec<&'static str> {
    vec![
        "notifications/progress",
        "notifications/progress",
        "result",
        "notifications/tools/list_changed",
        "sampling/createMessage",
        "notifications/progress",
        "result",
        "notifications/subscriptions/acknowledged",
        "notifications/prompts/list_changed",
        "notifications/message",
        "result",
        "result",
    ]
}

// N-03
// checks 12
#[tokio::test]
async fn every_event_is_called_message() {
    let paths =
        [("/mcp", "/sse"), ("/mcp?events=message", "/sse?events="), ("/mcp?xevents=method", "/sse?events=methods")];
    for (mcp, sse) in paths {
        let daemon = Daemon::run(&["--legacy-sse"], &[]).await;
        let all = all_streams(daemon, mcp, sse).await;
        assert_eq!(all.iter().map(|(_, method)| method.as_str()).collect::<Vec<_>>(), expected());
        assert!(all.iter().all(|(name, _)| name == "message"), "{all:?}");
    }
}

// N-03
#[tokio::test]
async fn a_destination_that_is_told_to_names_events_after_their_methods() {
    let by_flag = Daemon::run(&["--legacy-sse", "--event-names", "method"], &[]).await;
    let all = all_streams(by_flag, "/mcp", "/sse").await;
    assert_eq!(all.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), expected(), "{all:?}");
    let config = destination("a", &[], "legacy_sse = true\nsse_event_names = \"method\"");
    let by_config = Launch::serve(&config).start().await;
    let all = all_streams(by_config, "/a/mcp", "/a/sse").await;
    assert_eq!(all.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), expected(), "{all:?}");
}

// N-03
#[tokio::test]
async fn a_client_may_ask_for_names_by_the_method_in_its_url() {
    let daemon = Daemon::run(&["--legacy-sse"], &[]).await;
    // Beside one that has not.
    let other = daemon.client().initialize().await;
    let (events, all) = {
        let asking = call(&daemon.client_at("/mcp?x=1&events=method").initialize().await).await;
        let named: Vec<_> = asking.iter().filter(|event| !event.data.is_empty()).map(names).collect();
        assert!(named.iter().all(|(name, method)| name == method), "{named:?}");
        (call(&other).await, named)
    };
    assert_eq!(all.len(), 3);
    assert!(events.iter().all(|event| event.name.as_deref() == Some("message")), "{events:?}");
    let all = all_streams(daemon, "/mcp?events=method", "/sse?events=method").await;
    assert_eq!(all.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), expected(), "{all:?}");
}

// N-03: a stream that is resumed has the names that it had.
#[tokio::test]
async fn a_resumed_stream_keeps_its_names() {
    let daemon = Daemon::run(&["--event-names", "method"], &[]).await;
    let session = daemon.client().initialize().await;
    let params = json!({"name": "progress", "arguments": {"steps": 3, "ms": 5}, "_meta": {"progressToken": 1}});
    let mut stream = session.ask("tools/call", params).await.events();
    let first = stream.next().await.unwrap();
    drop(stream);
    let rest = session.resume(&first.id.unwrap()).await.events().rest().await;
    let found: Vec<Value> = rest.iter().map(|event| json!(event.name)).collect();
    let note = "notifications/progress";
    assert_eq!(found, [note, note, note, "result"]);
}

// N-03: what the URL of a stream asks for is asked for that stream, and for no other of its session.
#[tokio::test]
async fn each_stream_of_a_session_has_the_names_that_its_own_url_asks_for() {
    let daemon = Daemon::run(&[], &[]).await;
    let session = daemon.client().initialize().await;
    let by_method = session.at("/mcp?events=method");
    let named = |events: Vec<Event>| {
        let events = events.into_iter().filter(|event| !event.data.is_empty());
        events.map(|event| event.name.unwrap()).collect::<Vec<_>>()
    };
    let note = "notifications/progress";
    assert_eq!(named(call(&by_method).await), [note, note, "result"], "a POST that asks for it");
    let _get = by_method.listen().await;
    assert_eq!(named(call(&session).await), ["message"; 3], "a POST that does not, beside a GET that does");
}
