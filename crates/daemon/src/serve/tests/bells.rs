//! Streams that a bell can ring on are told of, and ringing one says whether it was taken (M-05).

use std::time::Duration;

use prism_core::mcp::link::SessionKey;
use serde_json::json;
use uuid::Uuid;

use super::{Door, Event, NEWEST, modern_headers, modern_meta, request};
use prism_bridge::drive::reach::RingTarget;

fn key(session: &str) -> SessionKey {
    SessionKey(Uuid::try_parse(session).expect("an id").as_u128())
}

// M-05
#[tokio::test]
async fn a_session_is_rung_while_its_stream_is_open_and_its_end_is_told() {
    for path in ["/mcp", "/prism/mcp"] {
        let door = Door::open().await;
        let session = door.initialize(path, &[], NEWEST).await;
        let own = [("mcp-session-id", session.as_str())];
        let mut stream = door.send("GET", path, &own, "").await;
        let (line, opened, whose, uris) = door.reach.opened(1).await;
        assert_eq!((whose, uris.len()), (Some(key(&session)), 0));
        assert!(line.ring(RingTarget::Session(key(&session))).await);
        stream.until(r#""method":"notifications/resources/updated","params":{"uri":"prism://signals/pending"}"#).await;
        assert!(!line.ring(RingTarget::Session(SessionKey(7))).await);
        drop(stream);
        door.reach.has(&[Event::Closed(opened)]).await;
        assert!(!line.ring(RingTarget::Session(key(&session))).await);
        door.send("DELETE", path, &own, "").await.rest().await;
        door.reach.has(&[Event::Ended(key(&session))]).await;
    }
}

// M-05
#[tokio::test]
async fn a_modern_client_is_rung_for_the_session_that_it_listens_for() {
    for path in ["/mcp", "/prism/mcp"] {
        let door = Door::open().await;
        let uri = format!("prism://signals/pending/{}", Uuid::now_v7());
        let wanted = json!({"notifications": {"resourceSubscriptions": [uri]}, "_meta": modern_meta()});
        let body = request("subscriptions/listen", wanted).to_string();
        let mut stream = door.send("POST", path, &modern_headers("subscriptions/listen", None), &body).await;
        stream.until("acknowledged").await;
        let (line, opened, whose, uris) = door.reach.opened(1).await;
        assert_eq!((whose, &uris[..]), (None, std::slice::from_ref(&uri)));
        assert!(!line.ring(RingTarget::Uri("prism://signals/pending".to_owned())).await);
        assert!(line.ring(RingTarget::Uri(uri.clone())).await);
        stream.until("notifications/resources/updated").await;
        drop(stream);
        door.reach.has(&[Event::Closed(opened)]).await;
        assert!(!line.ring(RingTarget::Uri(uri)).await);
    }
}

// M-05
#[tokio::test]
async fn a_session_of_the_oldest_transport_is_rung_on_its_stream() {
    let door = Door::open().await;
    let mut stream = door.send("GET", "/prism/sse", &[], "").await;
    stream.until("/prism/message?sessionId=").await;
    let session = stream.until("\n").await.trim().to_owned();
    let params =
        json!({"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}});
    door.post(&format!("/prism/message?sessionId={session}"), &[], &request("initialize", params)).await;
    stream.until("serverInfo").await;
    let (line, opened, whose, _) = door.reach.opened(1).await;
    assert_eq!(whose, Some(key(&session)));
    assert!(line.ring(RingTarget::Session(key(&session))).await);
    stream.until("notifications/resources/updated").await;
    drop(stream);
    door.reach.has(&[Event::Closed(opened), Event::Ended(key(&session))]).await;
}

// M-11
#[tokio::test]
async fn a_client_that_answers_a_ping_is_seen() {
    for path in ["/mcp", "/prism/mcp"] {
        let door = Door::open().await;
        let session = door.initialize(path, &[], NEWEST).await;
        let own = [("mcp-session-id", session.as_str())];
        let mut stream = door.send("GET", path, &own, "").await;
        let (line, ..) = door.reach.opened(1).await;
        line.watch(key(&session), Some(Duration::from_secs(3600))).await;
        stream.until(r#"{"jsonrpc":"2.0","id":"#).await;
        let number: u64 = stream.until(r#","method":"ping"}"#).await.parse().expect("a number");
        door.post(path, &own, &json!({"jsonrpc": "2.0", "id": number, "result": {}})).await;
        door.reach.has(&[Event::Seen(key(&session))]).await;
    }
}

// M-01: a session goes on with the next daemon.
#[tokio::test]
async fn nothing_is_over_because_the_daemon_stops() {
    let door = Door::open().await;
    let session = door.initialize("/mcp", &[], NEWEST).await;
    let stream = door.send("GET", "/mcp", &[("mcp-session-id", &session)], "").await;
    let (_, opened, ..) = door.reach.opened(1).await;
    door.front.stop().await;
    stream.rest().await;
    assert_eq!(*door.reach.said.lock().expect("no panic"), [Event::Opened(opened)]);
}
