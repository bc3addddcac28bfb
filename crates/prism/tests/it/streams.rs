//! Streams that live longer than a call: GET, resuming, questions, subscriptions (B-11, B-12, B-28, N-01, N-04).

use std::collections::HashSet;

use hyper::Method;
use serde_json::{Value, json};

use crate::support::{Client, Daemon, Event, Home, Launch, NEWEST, demo, destination, lines, result_text, until};

fn progress(steps: u32, ms: u32) -> Value {
    json!({"name": "progress", "arguments": {"steps": steps, "ms": ms}, "_meta": {"progressToken": "p"}})
}

async fn change(session: &Client, what: &str) {
    session.text("change", json!({"what": what})).await;
}

fn messages(events: &[Event]) -> Vec<Value> {
    events.iter().filter(|event| !event.data.is_empty()).map(Event::json).collect()
}

/// Waits until the daemon has noticed that this many streams are open.
async fn open_streams(daemon: &Daemon, count: u64) {
    let metric = r#"prism_streams{destination="run"}"#;
    until("streams are open", async || daemon.metric(metric).await == Some(count)).await;
}

// B-11, N-04
// checks 12 13 34 35 101
#[tokio::test]
async fn what_belongs_to_no_call_comes_on_the_get_stream() {
    let daemon = Daemon::run(&[], &[]).await;
    let (session, other) = (daemon.client().initialize().await, daemon.client().initialize().await);
    let reply = session.request(Method::GET).send().await;
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("text/event-stream")));
    assert_eq!(reply.header("cache-control"), Some("no-cache, no-transform"));
    assert_eq!(reply.header("x-accel-buffering"), Some("no"));
    let (mut stream, mut others) = (reply.events(), other.listen().await);
    for what in ["tools", "prompts", "resources"] {
        let reply = session.call("change", json!({"what": what})).await;
        assert!(!reply.is_stream(), "never on the stream of a call that it does not belong to");
    }
    let mut ids = HashSet::new();
    for what in ["tools", "prompts", "resources"] {
        for stream in [&mut stream, &mut others] {
            let event = loop {
                let event = stream.next().await.unwrap();
                if !event.data.is_empty() {
                    break event;
                }
            };
            assert_eq!(event.json()["method"], format!("notifications/{what}/list_changed"));
            assert_eq!(event.name.as_deref(), Some("message"));
            ids.insert((what, event.id.unwrap()));
        }
    }
    assert!(ids.len() >= 3);
}

// B-11: from the queue first, then live.
#[tokio::test]
async fn what_came_before_the_get_stream_waits_for_it_told_once() {
    let daemon = Daemon::run(&[], &[]).await;
    let session = daemon.client().initialize().await;
    for what in ["tools", "prompts", "tools", "tools"] {
        change(&session, what).await;
    }
    let mut stream = session.listen().await;
    assert_eq!(stream.message().await["method"], "notifications/tools/list_changed");
    assert_eq!(stream.message().await["method"], "notifications/prompts/list_changed");
    change(&session, "resources").await;
    assert_eq!(stream.message().await["method"], "notifications/resources/list_changed");
}

// B-12
// checks 30
#[tokio::test]
async fn each_get_stream_of_a_session_gets_every_notification() {
    let daemon = Daemon::run(&[], &[]).await;
    let session = daemon.client().initialize().await;
    let mut streams = vec![session.listen().await, session.listen().await, session.listen().await];
    change(&session, "tools").await;
    for stream in &mut streams {
        assert_eq!(stream.message().await["method"], "notifications/tools/list_changed");
    }
    // One that leaves takes nothing from the others.
    drop(streams.remove(1));
    open_streams(&daemon, 2).await;
    change(&session, "prompts").await;
    for stream in &mut streams {
        assert_eq!(stream.message().await["method"], "notifications/prompts/list_changed");
    }
}

// B-12
// checks 30
#[tokio::test]
async fn strict_streams_sends_each_message_on_one_stream_only() {
    let daemon = Launch::serve(&destination("a", &[], "strict_streams = true")).start().await;
    let session = daemon.client_at("/a/mcp").initialize().await;
    let mut first = session.listen().await;
    let mut second = session.listen().await;
    change(&session, "tools").await;
    assert_eq!(second.message().await["method"], "notifications/tools/list_changed");
    drop(second);
    let streams = r#"prism_streams{destination="a"}"#;
    until("one is left", async || daemon.metric(streams).await == Some(1)).await;
    change(&session, "prompts").await;
    assert_eq!(first.message().await["method"], "notifications/prompts/list_changed");
}

// B-28
// checks 36 37
#[tokio::test]
async fn a_call_whose_stream_was_cut_goes_on_where_it_stopped() {
    let daemon = Daemon::run(&[], &[]).await;
    for version in ["2025-06-18", NEWEST] {
        let session = daemon.client().initialize_as(version, json!({})).await;
        let mut stream = session.ask("tools/call", progress(30, 20)).await.events();
        let mut had = Vec::new();
        while messages(&had).len() < 4 {
            had.push(stream.next().await.unwrap());
        }
        drop(stream);
        change(&session, "tools").await;
        let last = had.last().unwrap().id.clone().unwrap();
        let reply = session.resume(&last).await;
        assert_eq!((reply.status, reply.header("content-type")), (200, Some("text/event-stream")));
        had.extend(reply.events().rest().await);
        let all = messages(&had);
        let steps: Vec<u64> = all.iter().filter_map(|message| message["params"]["progress"].as_u64()).collect();
        assert_eq!(steps, (1..=30).collect::<Vec<u64>>(), "nothing lost, nothing doubled, nothing of other streams");
        assert_eq!((all.len(), result_text(all.last().unwrap())), (31, "30 steps done"));
        let ids: HashSet<_> = had.iter().map(|event| event.id.clone().unwrap()).collect();
        assert_eq!(ids.len(), had.len());

        // It is over, and can still be asked for again.
        let again = session.resume(&last).await.events().rest().await;
        assert_eq!(messages(&again), all[4..]);
    }
}

// B-28, N-04: cut before the first message, there is the priming event to go on from.
#[tokio::test]
async fn a_call_cut_right_at_its_beginning_is_resumed_from_its_priming_event() {
    let daemon = Daemon::run(&[], &[]).await;
    let session = daemon.client().initialize().await;
    let mut stream = session.ask("tools/call", progress(3, 10)).await.events();
    let first = stream.next().await.unwrap();
    assert_eq!(first.data, "");
    drop(stream);
    let rest = session.resume(&first.id.unwrap()).await.events().rest().await;
    assert_eq!(messages(&rest).len(), 4);
}

// B-28
#[tokio::test]
async fn a_get_stream_that_was_cut_is_resumed_without_loss_or_repetition() {
    let daemon = Daemon::run(&[], &[]).await;
    let session = daemon.client().initialize().await;
    let mut stream = session.listen().await;
    change(&session, "tools").await;
    let first = stream.next().await.unwrap();
    let first = if first.data.is_empty() { stream.next().await.unwrap() } else { first };
    drop(stream);
    change(&session, "prompts").await;
    change(&session, "resources").await;
    let mut stream = session.resume(&first.id.unwrap()).await.events();
    assert_eq!(stream.message().await["method"], "notifications/prompts/list_changed");
    assert_eq!(stream.message().await["method"], "notifications/resources/list_changed");
    change(&session, "tools").await;
    assert_eq!(stream.message().await["method"], "notifications/tools/list_changed");
}

// B-28, mcp-eras 1.2
#[tokio::test]
async fn an_event_that_never_was_cannot_be_resumed_from() {
    let daemon = Daemon::run(&[], &[]).await;
    let session = daemon.client().initialize().await;
    let other = daemon.client().initialize().await;
    let mut stream = other.ask("tools/call", progress(1, 1)).await.events();
    let foreign = stream.next().await.unwrap().id.unwrap();
    for id in ["7-1", "0-99", "banana", "1", "-", &foreign] {
        let reply = session.resume(id).await;
        assert_eq!(reply.status, 400, "{id}");
        assert!(reply.text().await.contains("Last-Event-ID"), "{id}");
    }
}

// B-05
// checks 32 33
#[tokio::test]
async fn a_question_comes_on_the_stream_of_its_call_and_is_answered_by_post() {
    let daemon = Daemon::run(&[], &[]).await;
    let session = daemon.client().initialize_as(NEWEST, json!({"sampling": {}})).await;
    let mut aside = session.listen().await;
    for text in ["first?", "second?"] {
        let mut stream = session.call("ask", json!({"kind": "sampling", "text": text})).await.events();
        let question = stream.message().await;
        assert_eq!(question["method"], "sampling/createMessage");
        assert_eq!(question["params"]["messages"][0]["content"]["text"], text);
        let content = json!({"type": "text", "text": format!("an answer to {text}")});
        let result = json!({"role": "assistant", "model": "m", "content": content});
        let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": result});
        let reply = session.post(&answer).await;
        assert_eq!((reply.status, reply.text().await.as_str()), (202, ""));
        assert_eq!(result_text(&stream.message().await), format!("an answer to {text}"));
        assert_eq!(stream.next().await, None);
        // Answered twice is answered once.
        assert_eq!(session.post(&answer).await.status, 202);
    }
    change(&session, "tools").await;
    assert_eq!(aside.message().await["method"], "notifications/tools/list_changed", "the first on this stream");
}

// B-04: a client is never asked what it did not say it can answer.
// checks 106
#[tokio::test]
async fn a_client_that_cannot_answer_is_not_asked() {
    let daemon = Daemon::run(&[], &[]).await;
    let sampler = daemon.client().initialize_as(NEWEST, json!({"sampling": {}})).await;
    let plain = daemon.client().initialize().await;
    for (session, kind, code) in
        [(&sampler, "elicitation", "-32602"), (&sampler, "roots", "-32601"), (&plain, "sampling", "-32601")]
    {
        let answer = session.call("ask", json!({"kind": kind, "text": "x"})).await.json().await;
        assert_eq!(answer["result"]["isError"], true, "{kind}");
        assert!(result_text(&answer).starts_with(code), "{kind}: {answer}");
    }
}

// B-12: a question goes to exactly one stream.
#[tokio::test]
async fn a_question_that_belongs_to_no_call_is_asked_on_one_stream_only() {
    let daemon = Daemon::run(&[], &["--fault", "late-ask"]).await;
    let session = daemon.client().initialize_as(NEWEST, json!({"roots": {}})).await;
    let (mut first, mut second) = (session.listen().await, session.listen().await);
    session.text("ask", json!({"kind": "roots", "text": "x"})).await;
    let question = second.message().await;
    assert_eq!(question["method"], "roots/list");
    change(&session, "tools").await;
    assert_eq!(first.message().await["method"], "notifications/tools/list_changed");
    assert_eq!(second.message().await["method"], "notifications/tools/list_changed");
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}});
    assert_eq!(session.post(&answer).await.status, 202);
}

// B-04, mcp-eras 5.8
// checks 101 102
#[tokio::test]
async fn updates_reach_those_who_subscribed_and_nobody_else() {
    let daemon = Daemon::run(&[], &[]).await;
    let (watcher, other) = (daemon.client().initialize().await, daemon.client().initialize().await);
    let (mut watched, mut unwatched) = (watcher.listen().await, other.listen().await);
    let uri = json!({"uri": "demo://counter"});
    assert_eq!(watcher.ask("resources/subscribe", uri.clone()).await.json().await["result"], json!({}));
    other.text("touch", uri.clone()).await;
    assert_eq!(watched.message().await["params"], uri);
    // Counted: the child is told when the last one has gone.
    other.ask("resources/subscribe", uri.clone()).await;
    assert_eq!(watcher.delete().await.status, 204);
    assert_eq!(other.text("touch", uri.clone()).await, "update sent");
    assert_eq!(unwatched.message().await["params"], uri);
    other.ask("resources/unsubscribe", uri.clone()).await;
    assert_eq!(other.text("touch", uri).await, "not subscribed");
    assert_eq!(watched.next().await, None, "its session was deleted");
}

// B-13, mcp-eras 5.8
// checks 22 102
#[tokio::test]
async fn a_deleted_session_watches_nothing_any_more() {
    let home = Home::new();
    let record = home.file("record");
    let daemon = Launch::run(&[], &demo(&["--record", &record])).home(&home).start().await;
    let (session, other) = (daemon.client().initialize().await, daemon.client().initialize().await);
    let uri = json!({"uri": "demo://counter"});
    assert_eq!(session.ask("resources/subscribe", uri.clone()).await.json().await["result"], json!({}));
    assert_eq!(session.delete().await.status, 204);
    let told = || lines(&record).iter().filter(|line| line.contains(r#""resources/unsubscribe""#)).count();
    until("the child is told", async || told() == 1).await;
    assert_eq!(other.text("touch", uri).await, "not subscribed");
}

// B-13
// checks 22
#[tokio::test]
async fn a_deleted_session_is_gone_with_its_streams_and_calls() {
    let daemon = Daemon::run(&[], &[]).await;
    let (session, other) = (daemon.client().initialize().await, daemon.client().initialize().await);
    let mut stream = session.listen().await;
    stream.next().await;
    let mut call = session.ask("tools/call", progress(1000, 50)).await.events();
    call.next().await;
    let reply = session.delete().await;
    assert_eq!((reply.status, reply.text().await.as_str()), (204, ""));
    assert_eq!(stream.next().await, None);
    let last = messages(&call.rest().await).pop();
    assert!(last.is_none_or(|last| last.get("error").is_some() || last["method"] == "notifications/progress"));
    for reply in
        [session.ask("ping", json!({})).await, session.delete().await, session.request(Method::GET).send().await]
    {
        assert_eq!(reply.status, 404);
        assert_eq!(reply.json().await["error"]["code"], -32001);
    }
    other.child().await;
}
