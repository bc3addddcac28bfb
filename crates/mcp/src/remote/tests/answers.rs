//! What a server says to a request, in either era, and what a request says to the server.

use super::*;

// checks 112
#[tokio::test]
async fn a_json_answer_is_one_frame() {
    let mut bench = Bench::start().await;
    let request = call(7);
    bench.remote.send(request.clone());
    let asked = bench.asked().await;
    assert_eq!(asked.line(), "POST /mcp");
    assert_eq!(asked.header("accept"), Some("application/json, text/event-stream"));
    assert_eq!(asked.header("content-type"), Some("application/json"));
    assert_eq!(asked.header("accept-encoding"), None);
    assert_eq!(asked.body.as_bytes(), &request.bytes()[..]);
    asked.json(&result(7)).await;
    assert_eq!(bench.shown().await, format!("7: {}", result(7)));
    bench.silence().await;
}

// checks 115
#[tokio::test]
async fn an_event_stream_brings_notes_and_then_the_answer() {
    let mut bench = Bench::start().await;
    bench.remote.send(call(7));
    let flow = bench.asked().await.events();
    flow.push(": hello\n\nid: 1\ndata:\n\nevent: ping\ndata: {}\n\nevent: message\n").await;
    flow.event(&note(1)).await;
    assert_eq!(bench.shown().await, format!("7: {}", note(1)));
    flow.event(&note(2)).await;
    flow.event(r#"{"jsonrpc":"2.0","id":"7","result":{}}"#).await;
    drop(flow);
    assert_eq!(bench.shown().await, format!("7: {}", note(2)));
    assert_eq!(bench.shown().await, r#"7: {"jsonrpc":"2.0","id":"7","result":{}}"#);
    bench.silence().await;
}

#[tokio::test]
async fn a_batch_is_taken_apart() {
    let mut bench = Bench::start().await;
    bench.remote.send(call(7));
    bench.asked().await.json(&format!("[{},{}]", result(7), note(1))).await;
    assert_eq!(bench.shown().await, format!("7: {}", note(1)));
    assert_eq!(bench.shown().await, format!("7: {}", result(7)));
    bench.remote.send(call(8));
    bench.asked().await.events().event(&format!("[{},{}]", note(1), result(8))).await;
    assert_eq!(bench.shown().await, format!("8: {}", note(1)));
    assert_eq!(bench.shown().await, format!("8: {}", result(8)));
}

#[tokio::test]
async fn a_connection_is_used_again() {
    let mut bench = Bench::start().await;
    for id in 1..=10 {
        bench.remote.send(call(id));
        let asked = bench.asked().await;
        let (headers, text) = match id % 2 {
            0 => ([("content-type", "application/json")], result(id)),
            _ => ([("content-type", "text/event-stream")], format!("data: {}\n\n", result(id))),
        };
        let flow = asked.begin(200, &headers);
        flow.push(&text).await;
        if id % 2 == 0 {
            drop(flow);
            assert_eq!(bench.shown().await, format!("{id}: {}", result(id)));
        } else {
            // The end of the response comes behind the answer, and is waited for.
            assert_eq!(bench.shown().await, format!("{id}: {}", result(id)));
            drop(flow);
        }
        // The connection goes back to the pool a moment later.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(bench.server.connections(), 1);
}

// checks 116
#[tokio::test]
async fn a_modern_request_names_itself_in_its_headers() {
    let mut bench = Bench::opened().await;
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;
    for (method, params, name) in [
        ("tools/call", r#""name":"read file","#, Some("read file")),
        ("tools/call", r#""name":"gr\u00f6\u00dfe","#, Some("=?base64?Z3LDtsOfZQ==?=")),
        ("tools/call", r#""name":"=?base64?eA==?=","#, Some("=?base64?PT9iYXNlNjQ/ZUE9PT89?=")),
        ("prompts/get", r#""name":"p ","uri":"x:","#, Some("=?base64?cCA=?=")),
        ("resources/read", r#""uri":"file:///a","name":"x","#, Some("file:///a")),
        ("tools/list", r#""name":"x","uri":"x:","#, None),
        ("server/discover", "", None),
    ] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{{{params}{meta}}}}}"#);
        bench.remote.send(message(&text));
        let asked = bench.asked().await;
        assert_eq!(asked.header("mcp-protocol-version"), Some("2026-07-28"));
        assert_eq!(asked.header("mcp-method"), Some(method));
        assert_eq!(asked.header("mcp-name"), name, "{text}");
        // There is a session here, but it is none of the modern era's.
        assert_eq!(asked.header("mcp-session-id"), None);
        asked.json(&result(7)).await;
        assert_eq!(bench.shown().await, format!("7: {}", result(7)));
    }
}

// checks 116
#[tokio::test]
async fn parameters_travel_in_headers_of_their_own() {
    let mut bench = Bench::start().await;
    let params = [("Region", "eu west"), ("Größe", "x"), ("City", "Köln"), ("Empty", "")];
    let params = params.map(|(name, text)| (name.to_owned(), text.to_owned()));
    bench.remote.send_with(modern_call(7), params.to_vec());
    let asked = bench.asked().await;
    assert_eq!(asked.header("mcp-param-region"), Some("eu west"));
    assert_eq!(asked.header("mcp-param-city"), Some("=?base64?S8O2bG4=?="));
    assert_eq!(asked.header("mcp-param-empty"), Some(""));
    let count = asked.headers.keys().filter(|name| name.as_str().starts_with("mcp-param-")).count();
    assert_eq!(count, 3);
}

// checks 118
#[tokio::test]
async fn configured_headers_go_with_everything_and_replace_nothing_of_the_protocol() {
    let server = Server::start().await;
    let configured = [
        ("Authorization", "Bearer ours"),
        ("X-Team", "a"),
        ("Accept", "text/html"),
        ("Content-Type", "text/plain"),
        ("Accept-Encoding", "gzip"),
        ("Mcp-Session-Id", "forged"),
        ("MCP-Protocol-Version", "1"),
        ("Mcp-Name", "other"),
        ("Last-Event-ID", "9"),
    ];
    let configured = configured.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let target = RemoteTarget::new(&server.url, configured, None, LIMIT).unwrap();
    let mut bench = Bench::with(server, target);
    bench.remote.send(message(INITIALIZE));
    let initialize = bench.asked().await;
    assert_eq!(initialize.header("authorization"), Some("Bearer ours"));
    assert_eq!(initialize.header("x-team"), Some("a"));
    assert_eq!(initialize.header("accept"), Some("application/json, text/event-stream"));
    assert_eq!(initialize.header("content-type"), Some("application/json"));
    for name in ["accept-encoding", "mcp-session-id", "mcp-protocol-version", "mcp-name", "last-event-id"] {
        assert_eq!(initialize.header(name), None, "{name}");
    }
    initialize.initialized("s1").await;
    bench.arrival().await;
    bench.remote.send(message(INITIALIZED));
    bench.asked().await.status(202).await;
    let listen = bench.asked().await;
    assert_eq!((listen.method.as_str(), listen.header("authorization")), ("GET", Some("Bearer ours")));
    assert_eq!(listen.header("accept"), Some("text/event-stream"));
    listen.status(405).await;
    let Bench { remote, mut server, .. } = bench;
    drop(remote);
    let delete = server.asked().await;
    assert_eq!((delete.method.as_str(), delete.header("authorization")), ("DELETE", Some("Bearer ours")));
}

#[tokio::test]
async fn cancelling_a_modern_request_hangs_up_and_says_nothing() {
    let mut bench = Bench::start().await;
    // One that has no head yet, and one that is a stream.
    bench.remote.send(modern_call(1));
    let mut silent = bench.asked().await;
    bench.remote.send(modern_call(2));
    let flow = bench.asked().await.events();
    flow.event(&note(1)).await;
    assert_eq!(bench.shown().await, format!("2: {}", note(1)));
    bench.remote.send(cancelled(1));
    bench.remote.send(cancelled(2));
    bench.driving(silent.hung_up()).await;
    bench.driving(flow.hung_up()).await;
    bench.silence().await;
}

#[tokio::test]
async fn what_a_cancelled_request_had_said_is_dropped() {
    let mut bench = Bench::start().await;
    bench.remote.send(modern_call(1));
    bench.asked().await.json(&result(1)).await;
    // The answer lies in the channel by now; nobody has taken it yet.
    tokio::time::sleep(A_WHILE).await;
    bench.remote.send(cancelled(1));
    bench.silence().await;
    // And again, when it is long over.
    bench.remote.send(cancelled(1));
    bench.silence().await;
}

#[tokio::test]
async fn cancelling_a_legacy_request_is_posted_and_gives_it_up_later() {
    let server = Server::start().await;
    let target = hasty(&server.url, None, Duration::from_millis(300));
    let mut bench = Bench::with(server, target);
    bench.remote.send(call(7));
    let mut silent = bench.asked().await;
    bench.remote.send(call(8));
    let flow = bench.asked().await.events();
    for id in [7, 8] {
        bench.remote.send(cancelled(id));
        let asked = bench.asked().await;
        assert_eq!(asked.body.as_bytes(), &cancelled(id).bytes()[..]);
        asked.status(202).await;
    }
    // An answer that crossed the cancellation is passed on.
    flow.event(&result(8)).await;
    assert_eq!(bench.shown().await, format!("8: {}", result(8)));
    assert!(!silent.reply.is_closed());
    bench.silence().await;
    tokio::select! {
        () = silent.hung_up() => {}
        arrival = bench.remote.next() => panic!("{arrival:?}"),
    }
}

#[tokio::test]
async fn dropping_the_remote_hangs_up() {
    let mut bench = Bench::start().await;
    bench.remote.send(call(1));
    let mut silent = bench.asked().await;
    bench.remote.send(call(2));
    let flow = bench.asked().await.events();
    let Bench { remote, .. } = bench;
    drop(remote);
    silent.hung_up().await;
    flow.hung_up().await;
}

#[tokio::test]
async fn a_server_that_says_too_much_has_to_wait() {
    let mut bench = Bench::start().await;
    bench.remote.send(call(7));
    let flow = bench.asked().await.events();
    let event = format!("data: {}\n\n", note(1).replace("1}", &format!("\"{}\"}}", "x".repeat(64 << 10))));
    let mut sent = 0;
    while let Ok(Ok(())) = timeout(A_WHILE, flow.0.send(Ok(Bytes::from(event.clone())))).await {
        sent += 1;
        assert!(sent < 1000, "nothing slows it down");
    }
    for _ in 0..sent {
        assert!(matches!(
            bench.arrival().await,
            RemoteEvent::Message { about: Some(7), .. } | RemoteEvent::Answer { about: 7, .. }
        ));
    }
    flow.event(&result(7)).await;
    assert_eq!(bench.shown().await, format!("7: {}", result(7)));
}
