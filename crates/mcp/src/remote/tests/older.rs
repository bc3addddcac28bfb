//! HTTP+SSE of 2024-11-05, and how it is found out that a server speaks it.

use super::*;

async fn configured() -> Bench {
    let server = Server::start().await;
    let target = hasty(&server.url, Some(Transport::Sse), Duration::from_millis(500));
    Bench::with(server, target)
}

async fn ended(bench: &mut Bench) -> String {
    match bench.arrival().await {
        RemoteEvent::Ended { why } => why,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn messages_are_posted_to_the_endpoint_and_answered_on_the_stream() {
    let mut bench = configured().await;
    bench.remote.send(message(INITIALIZE));
    let get = bench.asked().await;
    assert_eq!(get.line(), "GET /mcp");
    assert_eq!(get.header("accept"), Some("text/event-stream"));
    let flow = get.events();
    bench.silence().await;
    flow.push("event: endpoint\ndata: messages?session=1\n\n").await;
    let post = bench.asked().await;
    assert_eq!(post.line(), "POST /messages?session=1");
    assert_eq!(post.body, INITIALIZE);
    assert_eq!(post.header("content-type"), Some("application/json"));
    post.answer(202, &[], "Accepted").await;
    flow.push(&format!("event: message\ndata: {}\n\n", result(1))).await;
    assert_eq!(bench.shown().await, format!("-: {}", result(1)));
    // The same gate as on the newer transport, but no stream of its own.
    bench.remote.send(message(INITIALIZED));
    bench.remote.send(call(2));
    let initialized = bench.asked().await;
    assert_eq!(initialized.body, INITIALIZED);
    bench.silence().await;
    initialized.status(202).await;
    let post = bench.asked().await;
    assert_eq!(post.body.as_bytes(), &call(2).bytes()[..]);
    // A server that accepts only when it is done must not keep others waiting.
    bench.remote.send(message(&result(9)));
    bench.asked().await.status(202).await;
    flow.event(&note(1)).await;
    assert_eq!(bench.shown().await, format!("-: {}", note(1)));
    post.status(202).await;
    flow.event(&result(2)).await;
    assert_eq!(bench.shown().await, format!("-: {}", result(2)));
    bench.remote.send(cancelled(2));
    assert_eq!(bench.asked().await.body.as_bytes(), &cancelled(2).bytes()[..]);
}

// checks 120
#[tokio::test]
async fn an_endpoint_of_another_origin_is_refused() {
    let mut other = Server::start().await;
    for endpoint in [other.url.clone(), other.url.replace("http:", ""), "https://127.0.0.1/".to_owned()] {
        let mut bench = configured().await;
        bench.remote.send(message(INITIALIZE));
        bench.asked().await.events().push(&format!("event: endpoint\ndata: {endpoint}?token=x\n\n")).await;
        let why = ended(&mut bench).await;
        assert!(why.contains("another origin") && !why.contains("token"), "{why}");
        bench.silence().await;
    }
    assert!(other.asked.try_recv().is_err());
    let mut bench = configured().await;
    bench.remote.send(message(INITIALIZE));
    let url = bench.server.url.replace("/mcp", "/absolute");
    let flow = bench.asked().await.events();
    flow.push(&format!("event: endpoint\ndata: {url}\n\n")).await;
    assert_eq!(bench.asked().await.line(), "POST /absolute");
}

#[tokio::test]
async fn a_stream_that_names_no_endpoint_is_no_connection() {
    for (status, kind, text, expected) in [
        (200, "text/event-stream", "data: /messages\n\n", "begins with no endpoint"),
        (200, "text/event-stream", "event: message\ndata: {}\n\n", "begins with no endpoint"),
        (200, "text/event-stream", "event: endpoint\ndata: http://[\n\n", "no URL"),
        (200, "text/event-stream", ": nothing\n\n", "ended before"),
        (200, "text/html", "<html>", "200"),
        (404, "text/event-stream", "", "404"),
        (500, "text/event-stream", "", "500"),
    ] {
        let mut bench = configured().await;
        bench.asked().await.answer(status, &[("content-type", kind)], text).await;
        let why = ended(&mut bench).await;
        assert!(why.contains(expected), "{why}");
        assert_eq!(bench.remote.target.transport(), Some(Transport::Sse));
    }
    let mut bench = configured().await;
    let flow = bench.asked().await.events();
    flow.push(": wait\n\n").await;
    assert!(ended(&mut bench).await.contains("no endpoint within"));
    bench.driving(flow.hung_up()).await;
}

// checks 120
#[tokio::test]
async fn the_end_of_the_stream_is_the_end_of_the_connection() {
    let mut bench = configured().await;
    let flow = bench.asked().await.events();
    flow.push("event: endpoint\ndata: /m\n\n").await;
    bench.remote.send(call(2));
    let mut post = bench.asked().await;
    drop(flow);
    assert!(ended(&mut bench).await.contains("ended"));
    bench.driving(post.hung_up()).await;
    bench.remote.send(call(3));
    bench.silence().await;
}

#[tokio::test]
async fn a_post_that_fails_fails_its_request() {
    let mut bench = configured().await;
    let flow = bench.asked().await.events();
    flow.push("event: endpoint\ndata: /m\n\n").await;
    for (status, failure) in [
        (500, RemoteFailure::Status { status: 500 }),
        (404, RemoteFailure::Status { status: 404 }),
        (401, RemoteFailure::Unauthorized { status: 401 }),
    ] {
        bench.remote.send(call(2));
        bench.asked().await.status(status).await;
        assert_eq!(bench.failure().await, (2, failure));
    }
    bench.remote.send(call(3));
    drop(bench.asked().await);
    assert_eq!(bench.failure().await, (3, RemoteFailure::Cut));
    bench.silence().await;
}

#[tokio::test]
async fn there_is_no_modern_era_here() {
    let mut bench = configured().await;
    let flow = bench.asked().await.events();
    for discover in [message(r#"{"jsonrpc":"2.0","id":7,"method":"server/discover","params":{}}"#), modern_call(7)] {
        bench.remote.send(discover);
        assert_eq!(bench.failure().await, (7, RemoteFailure::Status { status: 405 }));
    }
    flow.push("event: endpoint\ndata: /m\n\n").await;
    bench.silence().await;
}

#[tokio::test]
async fn a_server_that_refuses_initialize_may_speak_the_older_transport() {
    for status in [400, 404, 405] {
        let mut bench = Bench::start().await;
        bench.remote.send(message(INITIALIZE));
        bench.asked().await.answer(status, &[("content-type", "text/plain")], "Cannot POST /mcp").await;
        let get = bench.asked().await;
        assert_eq!(get.line(), "GET /mcp");
        let flow = get.events();
        flow.push("event: endpoint\ndata: /m\n\n").await;
        let post = bench.asked().await;
        assert_eq!((post.line().as_str(), post.body.as_str()), ("POST /m", INITIALIZE));
        post.status(202).await;
        flow.event(&result(1)).await;
        assert_eq!(bench.shown().await, format!("-: {}", result(1)));
        assert_eq!(bench.remote.target.transport(), Some(Transport::Sse));
        // The next one knows, and so does who asks it for the modern era.
        let mut next = RemoteConnection::open(bench.remote.target.clone());
        next.send(message(r#"{"jsonrpc":"2.0","id":7,"method":"server/discover"}"#));
        let arrival = within("a refusal", next.next()).await;
        bench.remote = next;
        assert_eq!(bench.asked().await.line(), "GET /mcp");
        assert!(
            matches!(arrival, RemoteEvent::Failed { id: 7, failure: RemoteFailure::Status { status: 405 } }),
            "{arrival:?}"
        );
    }
}

#[tokio::test]
async fn what_was_found_out_is_forgotten_when_it_is_no_longer_so() {
    let mut bench = Bench::start().await;
    bench.remote.target.found(Transport::Sse);
    for (status, then) in [(503, Some(Transport::Sse)), (405, None)] {
        bench.remote = RemoteConnection::open(bench.remote.target.clone());
        bench.asked().await.status(status).await;
        ended(&mut bench).await;
        assert_eq!(bench.remote.target.transport(), then);
    }
    bench.remote = RemoteConnection::open(bench.remote.target.clone());
    bench.remote.send(message(INITIALIZE));
    assert_eq!(bench.asked().await.line(), "POST /mcp");
}

#[tokio::test]
async fn a_server_that_speaks_neither_gets_the_first_failure_told() {
    for body in ["", r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"no"}}"#] {
        let mut bench = Bench::start().await;
        bench.remote.send(message(INITIALIZE));
        bench.asked().await.answer(400, &[("content-type", "application/json")], body).await;
        let get = bench.asked().await;
        assert_eq!(get.line(), "GET /mcp");
        get.status(405).await;
        if body.is_empty() {
            assert_eq!(bench.failure().await, (1, RemoteFailure::Status { status: 400 }));
        } else {
            assert_eq!(bench.shown().await, format!("1: {body}"));
        }
        assert_eq!(bench.remote.target.transport(), None);
        // The connection is as it was.
        bench.remote.send(call(2));
        assert_eq!(bench.asked().await.line(), "POST /mcp");
    }
}

// checks 117
#[tokio::test]
async fn other_failures_say_nothing_about_the_transport() {
    for status in [401, 403, 429, 500, 503] {
        let mut bench = Bench::start().await;
        bench.remote.send(message(INITIALIZE));
        bench.asked().await.status(status).await;
        assert_eq!(bench.failure().await.0, 1);
        bench.silence().await;
    }
    let server = Server::start().await;
    let target = hasty(&server.url, Some(Transport::StreamableHttp), DEADLINE);
    let mut bench = Bench::with(server, target);
    bench.remote.send(message(INITIALIZE));
    bench.asked().await.status(404).await;
    assert_eq!(bench.failure().await, (1, RemoteFailure::Status { status: 404 }));
    bench.silence().await;
}
