//! What a server says instead of an answer.

use super::*;

const REFUSAL: &str = r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"no"}}"#;
const JSON: [(&str, &str); 1] = [("content-type", "application/json")];

/// What becomes of a request that is answered so.
async fn outcome(status: u16, headers: &[(&str, &str)], body: &str) -> RemoteEvent {
    let mut bench = Bench::start().await;
    bench.remote.send(call(7));
    bench.asked().await.answer(status, headers, body).await;
    let arrival = bench.arrival().await;
    bench.silence().await;
    arrival
}

async fn failure(status: u16, headers: &[(&str, &str)], body: &str) -> RemoteFailure {
    match outcome(status, headers, body).await {
        RemoteEvent::Failed { id: 7, failure } => failure,
        other => panic!("{other:?}"),
    }
}

// checks 117
#[tokio::test]
async fn a_status_that_says_no_is_told() {
    for status in [400, 404, 405, 406, 429, 500, 502, 503] {
        assert_eq!(failure(status, &[], "").await, RemoteFailure::Status { status });
    }
    let html = [("content-type", "text/html")];
    assert_eq!(failure(502, &html, "<html>").await, RemoteFailure::Status { status: 502 });
    // A message, but no answer to this request.
    assert_eq!(failure(400, &JSON, &result(8)).await, RemoteFailure::Status { status: 400 });
    assert_eq!(failure(400, &JSON, &note(1)).await, RemoteFailure::Status { status: 400 });
}

// checks 117
#[tokio::test]
async fn missing_rights_are_told_whatever_the_body_says() {
    for status in [401, 403] {
        assert_eq!(failure(status, &[], "").await, RemoteFailure::Unauthorized { status });
        assert_eq!(failure(status, &JSON, REFUSAL).await, RemoteFailure::Unauthorized { status });
    }
}

#[tokio::test]
async fn an_error_in_the_body_says_more_than_the_status() {
    for status in [400, 404, 405, 500] {
        assert_eq!(shown(outcome(status, &JSON, REFUSAL).await), format!("7: {REFUSAL}"));
    }
    for nameless in [REFUSAL.replace("7", "null"), REFUSAL.replace(r#""id":7,"#, "")] {
        assert_eq!(shown(outcome(400, &JSON, &nameless).await), format!("7: {nameless}"));
        assert_eq!(shown(outcome(200, &JSON, &nameless).await), format!("7: {nameless}"));
    }
    let long = REFUSAL.replace("no", &"x".repeat(100 << 10));
    assert_eq!(failure(400, &JSON, &long).await, RemoteFailure::Status { status: 400 });
}

#[tokio::test]
async fn an_answer_that_is_none_is_told() {
    let html = [("content-type", "text/html; charset=utf-8")];
    for (status, headers, body, expected) in [
        (200, &html[..], "<html>", "text/html"),
        (200, &[][..], "", "200"),
        (202, &[][..], "", "202"),
        (202, &JSON[..], "", "202"),
        (204, &[][..], "", "204"),
        (200, &JSON[..], "{", "not valid JSON"),
        (200, &JSON[..], "", "not valid JSON"),
        (200, &JSON[..], r#"{"ok":true}"#, "JSON-RPC"),
        (200, &JSON[..], r#"{"jsonrpc":"2.0","id":7,"result":1,"id":8}"#, "not a JSON-RPC 2.0 message"),
        (200, &JSON[..], "[]", "does not answer"),
    ] {
        match failure(status, headers, body).await {
            RemoteFailure::NotMcp { why } => assert!(why.contains(expected), "{why}"),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn an_answer_to_another_request_is_no_answer() {
    let mut bench = Bench::start().await;
    bench.remote.send(call(7));
    bench.asked().await.json(&result(8)).await;
    assert!(matches!(bench.failure().await, (7, RemoteFailure::NotMcp { .. })));
    bench.remote.send(call(7));
    let flow = bench.asked().await.events();
    flow.event(&result(8)).await;
    flow.event(&result(7)).await;
    assert_eq!(bench.shown().await, format!("7: {}", result(7)));
    bench.silence().await;
}

#[tokio::test]
async fn a_response_that_breaks_off_is_told() {
    let mut bench = Bench::start().await;
    bench.remote.send(call(7));
    drop(bench.asked().await);
    assert_eq!(bench.failure().await, (7, RemoteFailure::Cut));
    bench.remote.send(call(8));
    let flow = bench.asked().await.begin(200, &JSON);
    flow.push("{").await;
    flow.cut().await;
    assert_eq!(bench.failure().await, (8, RemoteFailure::Cut));
    bench.silence().await;
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    drop(listener);
    let mut remote = RemoteConnection::open(target(&url));
    remote.send(call(7));
    match within("a failure", remote.next()).await {
        RemoteEvent::Failed { id: 7, failure: RemoteFailure::Unreachable { why } } => {
            assert!(why.contains("refused"), "{why}");
            assert!(!why.contains("127.0.0.1"), "{why}");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_server_that_speaks_no_http_is_told() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let mut remote = RemoteConnection::open(target(&url));
    remote.send(call(7));
    let greeting = async {
        let (socket, _) = listener.accept().await.unwrap();
        socket.writable().await.unwrap();
        socket.try_write(b"SSH-2.0-OpenSSH_9.9\r\n").unwrap();
        socket
    };
    let (arrival, _socket) = tokio::join!(within("a failure", remote.next()), greeting);
    assert!(matches!(arrival, RemoteEvent::Failed { id: 7, failure: RemoteFailure::NotMcp { .. } }), "{arrival:?}");
}

#[tokio::test]
async fn a_failed_note_is_told_to_nobody() {
    let mut bench = Bench::opened().await;
    for status in [400, 401, 500] {
        bench.remote.send(message(&note(1)));
        bench.asked().await.status(status).await;
        bench.silence().await;
    }
    bench.remote.send(message(&result(9)));
    drop(bench.asked().await);
    bench.silence().await;
}

#[tokio::test]
async fn a_redirect_within_the_origin_is_followed() {
    let mut bench = Bench::opened().await;
    bench.remote.send(call(7));
    for (status, location, path) in [(307, "/other?a=b", "/other?a=b"), (308, "deep/er", "/deep/er")] {
        bench.asked().await.answer(status, &[("location", location)], "").await;
        let asked = bench.asked().await;
        assert_eq!(asked.line(), format!("POST {path}"));
        assert_eq!(asked.body.as_bytes(), &call(7).bytes()[..]);
        assert_eq!(asked.header("mcp-session-id"), Some("s1"));
        assert_eq!(asked.header("content-type"), Some("application/json"));
        // And on to the next one.
        if status == 308 {
            asked.json(&result(7)).await;
        } else {
            asked.answer(307, &[("location", "/")], "").await;
        }
    }
    assert_eq!(bench.shown().await, format!("7: {}", result(7)));
}

#[tokio::test]
async fn a_redirect_that_would_change_the_request_is_not_followed() {
    for status in [301, 302, 303] {
        match failure(status, &[("location", "/other?token=x")], "").await {
            RemoteFailure::Redirected { to } => assert!(to.ends_with("/other"), "{to}"),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(failure(304, &[], "").await, RemoteFailure::Status { status: 304 });
}

#[tokio::test]
async fn a_redirect_to_another_origin_is_not_followed() {
    let mut other = Server::start().await;
    for status in [307, 308, 302] {
        let to = failure(status, &[("location", &other.url)], "").await;
        assert_eq!(to, RemoteFailure::Redirected { to: other.url.clone() });
    }
    assert!(other.asked.try_recv().is_err());
    assert_eq!(other.connections(), 0);
}

#[tokio::test]
async fn redirects_in_circles_end() {
    let mut bench = Bench::start().await;
    bench.remote.send(call(7));
    for _ in 0..4 {
        bench.asked().await.answer(307, &[("location", "/mcp")], "").await;
    }
    assert!(matches!(bench.failure().await, (7, RemoteFailure::Redirected { .. })));
    bench.silence().await;
}

#[test]
fn addresses_and_headers_that_cannot_work_are_refused() {
    let new = |url: &str, headers: &[(&str, &str)]| {
        let headers = headers.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        RemoteTarget::new(url, headers, None, LIMIT).err().map(|error| error.to_string())
    };
    assert_eq!(new("http://h/mcp", &[("X-A", "b")]), None);
    for url in ["", "/mcp", "h:1", "ftp://h/", "http:///", "http://u:secret@h/", "http://h /"] {
        let error = new(url, &[]).unwrap_or_else(|| panic!("{url} was accepted"));
        assert!(!error.contains("secret"), "{error}");
    }
    let error = new("http://h/", &[("X A", "secret")]).unwrap();
    assert!(error.contains("X A") && !error.contains("secret"), "{error}");
    assert!(new("http://h/", &[("X-A", "b\nc")]).is_some());
}
