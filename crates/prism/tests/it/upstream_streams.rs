//! Streams of a Streamable HTTP server of the legacy era: what comes on them, and what becomes of one that breaks (B-22,
//! B-28).

use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{
    NEWEST, until,
    upstream::{Upstream, call, calling, fault, got_fault, got_text, note, nothing_is_left, root, streaming, text},
};

// checks 114 115
#[tokio::test]
async fn a_stream_that_broke_off_is_resumed_after_its_event_when_the_server_says() {
    const RETRY: Duration = Duration::from_millis(300);
    let mut upstream = Upstream::start().await;
    let (_daemon, client) = upstream.bridged(&[]).await;
    let (reply, id, token, flow) = streaming(&mut upstream, &client, 1).await;
    flow.push(&format!("retry: {}\nid: p-0\ndata:\n\n", RETRY.as_millis())).await;
    let progress = |n: u32| note("notifications/progress", json!({"progressToken": token, "progress": n}));
    flow.numbered("p-1", &progress(1)).await;
    let mut stream = reply.await.unwrap().events();
    assert_eq!(stream.message().await["params"], json!({"progressToken": "t", "progress": 1}));
    let cut = Instant::now();
    flow.cut().await;
    let resumed = upstream.asked("GET").await;
    assert!(cut.elapsed() >= RETRY, "{:?}", cut.elapsed());
    assert_eq!(resumed.header("last-event-id"), Some("p-1"));
    assert_eq!(resumed.header("mcp-session-id"), Some("s1"));
    assert_eq!(resumed.header("mcp-protocol-version"), Some(NEWEST));
    let flow = resumed.events();
    flow.numbered("p-2", &progress(2)).await;
    assert_eq!(stream.message().await["params"]["progress"], 2);
    flow.result(id, text("whole")).await;
    let answer = stream.message().await;
    assert_eq!((&answer["id"], &answer["result"]), (&json!(1), &text("whole")));
    assert!(stream.rest().await.is_empty());
    upstream.is_left_alone().await;
}

// checks 114
#[tokio::test]
async fn a_stream_without_event_ids_is_lost_and_no_call_is_made_twice() {
    let mut upstream = Upstream::start().await;
    let (daemon, client) = upstream.bridged(&[]).await;
    // Before the head, in the middle, and with a proper end that is none.
    let waiting = calling(&client, "t", json!({}));
    drop(upstream.asked("tools/call").await);
    let why = got_fault(waiting, 502, "upstream_exited").await;
    assert!(why.contains("not known") && why.contains("call again if that is safe"), "{why}");
    for cut in [true, false] {
        let reply = tokio::spawn(call(&client, 7, &json!(1)).send());
        let asked = upstream.asked("tools/call").await;
        let token = asked.token();
        let flow = asked.events();
        flow.push("retry: 1\n\n").await;
        flow.progress(&token, 1).await;
        let mut stream = reply.await.unwrap().events();
        assert_eq!(stream.message().await["method"], "notifications/progress");
        if cut {
            flow.cut().await;
        } else {
            drop(flow);
        }
        let answer = stream.message().await;
        assert_eq!(answer["id"], 7);
        fault(&answer, "upstream_exited");
        assert!(stream.rest().await.is_empty());
    }
    upstream.is_left_alone().await;
    let waiting = calling(&client, "t", json!({}));
    upstream.asked("tools/call").await.result(text("next")).await;
    assert_eq!(got_text(waiting).await, "next");
    client.delete().await;
    upstream.asked("DELETE").await.status(200).await;
    nothing_is_left(&daemon, "run").await;
}

// mcp-eras 1.5, 7.1
// checks 115
#[tokio::test]
async fn odd_events_are_passed_over_and_end_nothing() {
    let mut upstream = Upstream::start().await;
    let daemon = upstream.bridge(&[]).await;
    let client = root(&daemon);
    let (client, standalone) = tokio::join!(client.initialize(), upstream.greet_and_listen("s1"));
    let odd = ": a comment\n\nid: 1\ndata:\n\nevent: ping\ndata: {}\n\nevent: notifications/message\n\
               data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\nunknown: field\n\n\
               data\n\n\u{feff}\n\n";
    let mut changes = client.listen().await;
    let (reply, id, token, flow) = streaming(&mut upstream, &client, 1).await;
    flow.push(odd).await;
    flow.push(&format!(
        "event: message\r\ndata: {}\r\n\r\n",
        note("notifications/progress", json!({"progressToken": token, "progress": 1}))
    ))
    .await;
    flow.push(odd).await;
    flow.result(id, text("fine")).await;
    let mut stream = reply.await.unwrap().events();
    assert_eq!(stream.message().await["params"]["progress"], 1);
    assert_eq!(stream.message().await["result"], text("fine"));
    assert!(stream.rest().await.is_empty());
    standalone.push(odd).await;
    standalone.event(&note("notifications/resources/list_changed", json!({}))).await;
    assert_eq!(changes.message().await["method"], "notifications/resources/list_changed");
}

// B-22
#[tokio::test]
async fn progress_reaches_the_client_before_there_is_an_answer() {
    let mut upstream = Upstream::start().await;
    let (_daemon, client) = upstream.bridged(&[]).await;
    let (reply, id, token, flow) = streaming(&mut upstream, &client, 1).await;
    let mut stream = None;
    let mut reply = Some(reply);
    for n in 1..=5 {
        flow.progress(&token, n).await;
        if let Some(reply) = reply.take() {
            stream = Some(reply.await.unwrap().events());
        }
        // Nothing more is written until this one is read: no event waits for another.
        let stream = stream.as_mut().expect("it began with the first");
        assert_eq!(stream.message().await["params"], json!({"progressToken": "t", "progress": n}));
    }
    flow.result(id, text("done")).await;
    let mut stream = stream.expect("it began");
    assert_eq!(stream.message().await["result"], text("done"));
}

// B-22, B-28
// checks 37 38
#[tokio::test]
async fn a_client_that_lost_its_stream_resumes_ours_and_the_server_never_knows() {
    let mut upstream = Upstream::start().await;
    let (_daemon, client) = upstream.bridged(&[]).await;
    let (reply, id, token, flow) = streaming(&mut upstream, &client, 1).await;
    flow.progress(&token, 1).await;
    let mut stream = reply.await.unwrap().events();
    let mut last = None;
    while last.is_none() {
        let event = stream.next().await.expect("the stream goes on");
        last = event.id.filter(|_| !event.data.is_empty());
    }
    drop(stream);
    flow.progress(&token, 2).await;
    upstream.is_left_alone().await;
    let mut resumed = client.resume(&last.unwrap()).await.events();
    assert_eq!(resumed.message().await["params"], json!({"progressToken": "t", "progress": 2}));
    flow.result(id, text("whole")).await;
    let answer = resumed.message().await;
    assert_eq!((&answer["id"], &answer["result"]), (&json!(1), &text("whole")));
    upstream.is_left_alone().await;
}

// B-22, B-28
#[tokio::test]
async fn what_the_server_told_while_a_client_was_away_is_replayed_by_us() {
    let mut upstream = Upstream::start().await;
    let daemon = upstream.bridge(&[]).await;
    let client = root(&daemon);
    let (client, flow) = tokio::join!(client.initialize(), upstream.greet_and_listen("s1"));
    let mut stream = client.listen().await;
    flow.event(&note("notifications/tools/list_changed", json!({}))).await;
    let mut last = None;
    while last.is_none() {
        let event = stream.next().await.expect("the stream goes on");
        last = event.id.filter(|_| !event.data.is_empty());
    }
    drop(stream);
    let streams = "prism_streams{destination=\"run\"}";
    until("it is known that the client left", async || daemon.metric(streams).await == Some(0)).await;
    flow.event(&note("notifications/resources/list_changed", json!({}))).await;
    // A call behind it: it has been read by then.
    let waiting = calling(&client, "t", json!({}));
    upstream.asked("tools/call").await.result(text("fine")).await;
    assert_eq!(got_text(waiting).await, "fine");
    let mut resumed = client.resume(&last.unwrap()).await.events();
    assert_eq!(resumed.message().await["method"], "notifications/resources/list_changed");
    flow.event(&note("notifications/prompts/list_changed", json!({}))).await;
    assert_eq!(resumed.message().await["method"], "notifications/prompts/list_changed");
    upstream.is_left_alone().await;
}
