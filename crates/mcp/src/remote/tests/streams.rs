//! Streams that break off and are resumed, and streams that say more than anybody wants to hear.

use super::*;

// checks 114 115
#[tokio::test]
async fn the_stream_of_a_session_is_resumed_where_it_was_left() {
    let mut bench = Bench::start().await;
    bench.open("s1").await;
    let flow = bench.asked().await.events();
    flow.push(": hello\n\nevent: other\ndata: {}\n\nretry: 10\nid: a-1\ndata:\n\n").await;
    flow.event(&note(1)).await;
    assert_eq!(bench.shown().await, format!("-: {}", note(1)));
    flow.cut().await;
    let again = bench.asked().await;
    assert_eq!(again.line(), "GET /mcp");
    assert_eq!(again.header("last-event-id"), Some("a-1"));
    assert_eq!(again.header("mcp-session-id"), Some("s1"));
    assert_eq!(again.header("mcp-protocol-version"), Some("2025-06-18"));
    let flow = again.events();
    flow.push(&format!("id: a-2\ndata: {}\n\n", note(2))).await;
    assert_eq!(bench.shown().await, format!("-: {}", note(2)));
    // A good end is treated like a bad one.
    drop(flow);
    let again = bench.asked().await;
    assert_eq!(again.header("last-event-id"), Some("a-2"));
    // An outage passes; a refusal is the end of it.
    again.status(503).await;
    let again = bench.asked().await;
    assert_eq!(again.header("last-event-id"), Some("a-2"));
    again.status(405).await;
    tokio::time::sleep(A_WHILE).await;
    bench.silence().await;
}

#[tokio::test]
async fn a_server_without_a_stream_is_not_asked_again() {
    let mut benches = Vec::new();
    for status in [405, 404, 400, 501, 204, 307] {
        let mut bench = Bench::start().await;
        bench.open("s1").await;
        bench.asked().await.answer(status, &[("location", "http://other/")], "").await;
        benches.push(bench);
    }
    // Longer than it takes to ask again.
    tokio::time::sleep(Duration::from_millis(1200)).await;
    for mut bench in benches {
        bench.silence().await;
    }
}

#[tokio::test]
async fn a_stream_that_ends_at_once_is_asked_for_less_and_less() {
    let mut bench = Bench::start().await;
    bench.open("s1").await;
    bench.asked().await.events().push("retry: 1\n\n").await;
    let begun = std::time::Instant::now();
    for _ in 0..3 {
        drop(bench.asked().await.events());
    }
    assert!(begun.elapsed() >= Duration::from_millis(100 + 200), "{:?}", begun.elapsed());
}

// checks 114
#[tokio::test]
async fn the_stream_of_a_request_is_resumed_and_stays_its_own() {
    let mut bench = Bench::opened().await;
    bench.remote.send(call(7));
    let flow = bench.asked().await.events();
    flow.push(&format!("retry: 10\nid: p-1\ndata: {}\n\n", note(1))).await;
    assert_eq!(bench.shown().await, format!("7: {}", note(1)));
    flow.cut().await;
    let again = bench.asked().await;
    assert_eq!(again.line(), "GET /mcp");
    assert_eq!(again.header("last-event-id"), Some("p-1"));
    assert_eq!(again.header("mcp-session-id"), Some("s1"));
    again.status(503).await;
    let again = bench.asked().await;
    assert_eq!(again.header("last-event-id"), Some("p-1"));
    let flow = again.events();
    flow.push(&format!("data: {}\n\n", note(2))).await;
    assert_eq!(bench.shown().await, format!("7: {}", note(2)));
    drop(flow);
    // Polling: a stream that ends without a word, and the answer on the next.
    let again = bench.asked().await;
    assert_eq!(again.header("last-event-id"), Some("p-1"));
    drop(again.events());
    bench.asked().await.events().event(&result(7)).await;
    assert_eq!(bench.shown().await, format!("7: {}", result(7)));
    bench.silence().await;
}

// checks 114
#[tokio::test]
async fn a_stream_without_ids_cannot_be_resumed_and_nothing_is_sent_again() {
    let mut bench = Bench::opened().await;
    for id in [2, 3] {
        bench.remote.send(call(id));
        let flow = bench.asked().await.events();
        flow.push("retry: 1\n\n").await;
        flow.event(&note(1)).await;
        assert_eq!(bench.shown().await, format!("{id}: {}", note(1)));
        if id == 2 {
            flow.cut().await;
        } else {
            drop(flow);
        }
        assert_eq!(bench.failure().await, (id, RemoteFailure::Cut));
        bench.silence().await;
    }
}

#[tokio::test]
async fn a_stream_of_the_modern_era_is_never_resumed() {
    let mut bench = Bench::start().await;
    bench.remote.send(modern_call(7));
    bench.asked().await.events().push("retry: 1\nid: 1\ndata:\n\n").await;
    assert_eq!(bench.failure().await, (7, RemoteFailure::Cut));
    bench.silence().await;
}

#[tokio::test]
async fn a_resume_that_is_refused_ends_the_request() {
    let mut bench = Bench::opened().await;
    bench.remote.send(call(7));
    bench.asked().await.events().push("retry: 1\nid: 1\ndata:\n\n").await;
    bench.asked().await.status(405).await;
    assert_eq!(bench.failure().await, (7, RemoteFailure::Cut));
    bench.silence().await;
}

#[tokio::test]
async fn a_resume_that_fails_too_often_ends_the_request() {
    let mut bench = Bench::opened().await;
    bench.remote.send(call(7));
    bench.asked().await.events().push("retry: 1\nid: 1\ndata:\n\n").await;
    for _ in 0..5 {
        let again = bench.asked().await;
        assert_eq!(again.method, "GET");
        // Cut off without a word.
        drop(again);
    }
    assert_eq!(bench.failure().await, (7, RemoteFailure::Cut));
    bench.silence().await;
}

#[tokio::test]
async fn a_body_over_the_limit_is_not_read() {
    let mut bench = Bench::start().await;
    let large = format!(r#"{{"jsonrpc":"2.0","id":2,"result":"{}"}}"#, "x".repeat(LIMIT));
    // With a length, and without one.
    for (id, headers) in [(1, vec![("content-length", large.len().to_string())]), (2, Vec::new())] {
        bench.remote.send(call(id));
        let mut headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        headers.push(("content-type", "application/json"));
        let flow = bench.asked().await.begin(200, &headers);
        for part in large.as_bytes().chunks(64 << 10) {
            if flow.0.send(Ok(Bytes::copy_from_slice(part))).await.is_err() {
                break;
            }
        }
        assert_eq!(bench.failure().await, (id, RemoteFailure::TooLarge { limit: LIMIT }));
        flow.hung_up().await;
    }
    let exact = format!(r#"{{"jsonrpc":"2.0","id":3,"result":"{}"}}"#, "x".repeat(LIMIT - 36));
    assert_eq!(exact.len(), LIMIT);
    bench.remote.send(call(3));
    bench.asked().await.json(&exact).await;
    assert_eq!(bench.shown().await, format!("3: {exact}"));
}

/// Writes an event of this many bytes for as long as somebody reads it, and says how many were taken.
async fn write_event(flow: &Flow, size: usize) -> usize {
    let chunk = Bytes::from(vec![b'x'; 64 << 10]);
    flow.push("data: ").await;
    let mut written = 0;
    while written < size && within("room", flow.0.send(Ok(chunk.clone()))).await.is_ok() {
        written += chunk.len();
    }
    written
}

#[tokio::test]
async fn an_event_of_100_mb_ends_its_request_and_is_not_read() {
    let mut bench = Bench::start().await;
    bench.remote.send(call(7));
    let flow = bench.asked().await.events();
    // What lies in sockets and queues between the two was written, but nobody had to keep it.
    let written = bench.driving(write_event(&flow, 100 << 20)).await;
    assert!(written < 32 << 20, "{written} bytes were read");
    assert_eq!(bench.failure().await, (7, RemoteFailure::TooLarge { limit: LIMIT }));
    bench.driving(flow.hung_up()).await;
}

#[tokio::test]
async fn an_event_of_100_mb_on_the_stream_of_a_session_is_skipped() {
    let mut bench = Bench::start().await;
    bench.open("s1").await;
    let flow = bench.asked().await.events();
    let writing = tokio::spawn(async move {
        let before = resident();
        let written = write_event(&flow, 100 << 20).await;
        let grown = resident().saturating_sub(before);
        flow.push("\n\n").await;
        flow.event(&note(1)).await;
        (flow, written, grown)
    });
    // It may be told of more than once: it is not known how long it will be.
    loop {
        match bench.arrival().await {
            RemoteEvent::Message { about: None, frame: Frame::TooLong { .. } } => {}
            other => break assert_eq!(shown(other), format!("-: {}", note(1))),
        }
    }
    let (_flow, written, grown) = writing.await.unwrap();
    assert_eq!(written, 100 << 20);
    assert!(grown < 50 << 20, "{grown} bytes were kept");
}

/// What this process has in memory.
fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

#[tokio::test]
async fn an_event_that_never_ends_is_not_waited_for() {
    let mut bench = Bench::start().await;
    bench.remote.send(modern_call(7));
    let flow = bench.asked().await.events();
    // Many lines, of which none is too long.
    let line = format!("data: {}\n", "x".repeat(1000));
    let many = line.repeat(64);
    let mut written = 0;
    while written < 2 * LIMIT && flow.push(&many).await {
        written += many.len();
    }
    assert_eq!(bench.failure().await, (7, RemoteFailure::TooLarge { limit: LIMIT }));
    bench.driving(flow.hung_up()).await;
}

#[tokio::test]
async fn keep_alives_never_add_up_to_an_event() {
    let mut bench = Bench::start().await;
    bench.remote.send(call(7));
    let flow = bench.asked().await.events();
    let comment = format!(": {}\n\n", "x".repeat(60 << 10));
    for _ in 0..30 {
        flow.push(&comment).await;
    }
    flow.event(&result(7)).await;
    assert_eq!(bench.shown().await, format!("7: {}", result(7)));
}
