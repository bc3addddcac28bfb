//! The legacy era's session: how it begins, what may not overtake what, and how it ends.

use super::*;

// checks 112
#[tokio::test]
async fn initialize_has_no_session_and_what_follows_has() {
    let mut bench = Bench::start().await;
    bench.remote.send(message(INITIALIZE));
    let asked = bench.asked().await;
    assert_eq!(asked.header("mcp-session-id"), None);
    assert_eq!(asked.header("mcp-protocol-version"), None);
    assert_eq!(asked.header("mcp-method"), None);
    asked.initialized("s1").await;
    bench.arrival().await;
    assert_eq!(bench.remote.target.transport(), Some(Transport::StreamableHttp));
    bench.remote.send(message(INITIALIZED));
    let asked = bench.asked().await;
    assert_eq!(asked.body, INITIALIZED);
    assert_eq!(asked.header("mcp-session-id"), Some("s1"));
    assert_eq!(asked.header("mcp-protocol-version"), Some("2025-06-18"));
    asked.status(202).await;
    let listen = bench.asked().await;
    assert_eq!(listen.line(), "GET /mcp");
    assert_eq!(listen.header("accept"), Some("text/event-stream"));
    assert_eq!(listen.header("content-type"), None);
    assert_eq!(listen.header("mcp-session-id"), Some("s1"));
    assert_eq!(listen.header("mcp-protocol-version"), Some("2025-06-18"));
    assert_eq!(listen.header("last-event-id"), None);
    let flow = listen.events();
    bench.remote.send(call(2));
    let asked = bench.asked().await;
    assert_eq!(asked.header("mcp-session-id"), Some("s1"));
    assert_eq!(asked.header("mcp-protocol-version"), Some("2025-06-18"));
    // Again, on the same connection: a new session, so the old one is not named.
    bench.remote.send(message(INITIALIZE));
    let asked = bench.asked().await;
    assert_eq!(asked.header("mcp-session-id"), None);
    assert_eq!(asked.header("mcp-protocol-version"), None);
    asked.initialized("s2").await;
    bench.arrival().await;
    bench.driving(flow.hung_up()).await;
    bench.remote.send(call(3));
    assert_eq!(bench.asked().await.header("mcp-session-id"), Some("s2"));
}

#[tokio::test]
async fn the_answer_to_initialize_may_be_a_stream() {
    let mut bench = Bench::start().await;
    bench.remote.send(message(INITIALIZE));
    let flow = bench.asked().await.begin(200, &[("content-type", "text/event-stream"), ("mcp-session-id", "s1")]);
    flow.event(r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-03-26"}}"#).await;
    bench.arrival().await;
    bench.remote.send(call(2));
    let asked = bench.asked().await;
    assert_eq!(asked.header("mcp-session-id"), Some("s1"));
    assert_eq!(asked.header("mcp-protocol-version"), Some("2025-03-26"));
}

#[tokio::test]
async fn a_server_without_sessions_is_sent_none() {
    let mut bench = Bench::start().await;
    bench.remote.send(message(INITIALIZE));
    bench.asked().await.json(r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18"}}"#).await;
    bench.arrival().await;
    bench.remote.send(call(2));
    let asked = bench.asked().await;
    assert_eq!(asked.header("mcp-session-id"), None);
    assert_eq!(asked.header("mcp-protocol-version"), Some("2025-06-18"));
    asked.status(404).await;
    // There is no session that it could be about.
    assert_eq!(bench.failure().await, (2, RemoteFailure::Status { status: 404 }));
    let Bench { remote, mut server, .. } = bench;
    drop(remote);
    assert!(timeout(A_WHILE, server.asked.recv()).await.is_err(), "there is nothing to delete");
}

#[tokio::test]
async fn a_session_of_a_failed_handshake_is_none() {
    let mut bench = Bench::start().await;
    bench.remote.send(message(INITIALIZE));
    let headers = [("content-type", "application/json"), ("mcp-session-id", "s1")];
    bench.asked().await.answer(200, &headers, r#"{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}"#).await;
    bench.arrival().await;
    bench.remote.send(call(2));
    assert_eq!(bench.asked().await.header("mcp-session-id"), None);
}

// checks 94
#[tokio::test]
async fn nothing_overtakes_initialized() {
    let mut bench = Bench::start().await;
    bench.remote.send(message(INITIALIZE));
    bench.asked().await.initialized("s1").await;
    bench.arrival().await;
    bench.remote.send(message(INITIALIZED));
    bench.remote.send(call(2));
    bench.remote.send(call(3));
    bench.remote.send(call(4));
    let initialized = bench.asked().await;
    assert_eq!(initialized.body, INITIALIZED);
    bench.silence().await;
    // One that never left needs no cancellation either.
    bench.remote.send(cancelled(3));
    bench.silence().await;
    initialized.status(202).await;
    let mut lines = Vec::new();
    for _ in 0..3 {
        let asked = bench.asked().await;
        lines.push(format!("{} {}", asked.line(), asked.body));
    }
    lines.sort();
    let post = |id| format!("POST /mcp {}", std::str::from_utf8(call(id).bytes()).unwrap());
    assert_eq!(lines, ["GET /mcp ".to_owned(), post(2), post(4)]);
}

#[tokio::test]
async fn initialized_that_is_not_accepted_in_time_holds_nothing_up() {
    let server = Server::start().await;
    let target = hasty(&server.url, None, Duration::from_millis(50));
    let mut bench = Bench::with(server, target);
    bench.remote.send(message(INITIALIZED));
    bench.remote.send(call(2));
    let initialized = bench.asked().await;
    assert_eq!(initialized.body, INITIALIZED);
    let listen = bench.asked().await;
    assert_eq!(listen.line(), "GET /mcp");
    assert_eq!(bench.asked().await.body.as_bytes(), &call(2).bytes()[..]);
    assert!(!initialized.reply.is_closed(), "it is not given up");
}

#[tokio::test]
async fn initialized_that_is_refused_opens_no_stream() {
    let mut bench = Bench::start().await;
    bench.remote.send(message(INITIALIZED));
    bench.asked().await.status(400).await;
    bench.silence().await;
    bench.remote.send(call(2));
    assert_eq!(bench.asked().await.method, "POST");
}

// checks 113
#[tokio::test]
async fn a_lost_session_is_told_with_what_was_not_processed() {
    let mut bench = Bench::start().await;
    bench.open("s1").await;
    let stream = bench.asked().await.events();
    bench.remote.send(call(2));
    let first = bench.asked().await;
    bench.remote.send(call(3));
    let second = bench.asked().await;
    // A note, whose loss nobody waits for, tells it as well.
    bench.remote.send(message(&note(1)));
    bench.asked().await.status(404).await;
    let lost = |arrival| match arrival {
        RemoteEvent::SessionLost { message: Some(message) } => String::from_utf8(message.bytes().to_vec()).unwrap(),
        other => panic!("{other:?}"),
    };
    assert_eq!(lost(bench.arrival().await), note(1));
    bench.driving(stream.hung_up()).await;
    first.answer(404, &[("content-type", "application/json")], r#"{"jsonrpc":"2.0","id":null,"error":{}}"#).await;
    assert_eq!(lost(bench.arrival().await).as_bytes(), &call(2).bytes()[..]);
    bench.open("s2").await;
    bench.asked().await.status(405).await;
    // A straggler of the old session does not take the new one along: it is sent again there.
    second.status(404).await;
    let again = bench.asked().await;
    assert_eq!((again.header("mcp-session-id"), again.body.as_bytes()), (Some("s2"), &call(3).bytes()[..]));
    again.json(&result(3)).await;
    assert_eq!(bench.shown().await, format!("3: {}", result(3)));
    bench.remote.send(call(4));
    let asked = bench.asked().await;
    assert_eq!(asked.header("mcp-session-id"), Some("s2"));
    asked.status(400).await;
    assert_eq!(bench.failure().await, (4, RemoteFailure::Status { status: 400 }));
}

#[tokio::test]
async fn what_waits_for_a_session_is_lost_with_it() {
    let mut bench = Bench::start().await;
    bench.remote.send(message(INITIALIZE));
    bench.asked().await.initialized("s1").await;
    bench.arrival().await;
    bench.remote.send(message(INITIALIZED));
    bench.remote.send(call(2));
    bench.asked().await.status(404).await;
    for expected in [INITIALIZED.as_bytes(), &call(2).bytes()[..]] {
        match bench.arrival().await {
            RemoteEvent::SessionLost { message: Some(message) } => assert_eq!(&message.bytes()[..], expected),
            other => panic!("{other:?}"),
        }
    }
    bench.silence().await;
    bench.open("s2").await;
}

#[tokio::test]
async fn a_dropped_remote_deletes_its_session() {
    let Bench { remote, mut server, .. } = Bench::opened().await;
    drop(remote);
    let delete = server.asked().await;
    assert_eq!(delete.line(), "DELETE /mcp");
    assert_eq!(delete.header("mcp-session-id"), Some("s1"));
    assert_eq!(delete.header("mcp-protocol-version"), Some("2025-06-18"));
    delete.status(405).await;
}

#[tokio::test]
async fn a_server_that_does_not_take_the_delete_is_left_alone() {
    let Bench { remote, mut server, .. } = Bench::opened().await;
    drop(remote);
    let mut delete = server.asked().await;
    delete.hung_up().await;
}

#[tokio::test]
async fn messages_that_wait_are_bounded() {
    let mut bench = Bench::start().await;
    bench.remote.send(message(INITIALIZED));
    let initialized = bench.asked().await;
    let room = u64::try_from(crate::remote::MAX_REQUESTS).unwrap();
    for id in 1..=room + 2 {
        bench.remote.send(call(id));
    }
    for id in [room + 1, room + 2] {
        let (refused, failure) = bench.failure().await;
        assert_eq!(refused, id);
        assert!(matches!(failure, RemoteFailure::Unreachable { why } if why.contains("too many")));
    }
    // One refusal is not the end of it, and answers of ours are not refused: requests may wait for them.
    bench.remote.send(cancelled(1));
    bench.remote.send(call(room + 3));
    bench.remote.send(message(&result(2)));
    bench.remote.send(cancelled(2));
    assert_eq!(bench.remote.waiting.len(), crate::remote::MAX_REQUESTS);
    bench.silence().await;
    for _ in 0..2 * room {
        bench.remote.send(message(&result(2)));
    }
    assert!(bench.remote.waiting.len() < crate::remote::MAX_MESSAGES);
    drop(initialized);
}
