//! What is in a body: JSON or not, one message or several, small or large (B-14, B-16, B-18).

use hyper::Method;
use serde_json::{Value, json};

use crate::support::{Client, Daemon, Home, Launch, Reply, demo, lines, process};

const MIB: usize = 1 << 20;

async fn error(reply: Reply) -> (u16, i64, String) {
    let status = reply.status;
    let body = reply.json().await;
    let code = body["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error: {body}"));
    (status, code, body["error"]["message"].as_str().unwrap().to_owned())
}

/// Text, status, code.
async fn refused(client: &Client, bodies: &[&str], status: u16, code: i64) {
    for body in bodies {
        let reply = client.post_text(body).await;
        let told = error(reply).await;
        assert_eq!((told.0, told.1), (status, code), "{body}: {}", told.2);
    }
}

// checks 6
#[tokio::test]
async fn what_is_not_json_is_400_with_a_parse_error() {
    let daemon = Daemon::run(&[], &[]).await;
    let session = daemon.client().initialize().await;
    let bodies =
        ["not json", "", "{", r#"{"jsonrpc":"2.0","id":1,"method":"ping""#, r#"{"jsonrpc":"2.0","id":1,}"#, "{} {}"];
    refused(&session, &bodies, 400, -32700).await;
    refused(&daemon.client(), &["not json"], 400, -32700).await;
    let body = &b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}"[..];
    let reply = session.request(Method::POST).body(body).send().await;
    let told = reply.json().await;
    assert_eq!((&told["error"]["code"], told.get("id")), (&json!(-32700), None), "{told}");
}

// checks 7
#[tokio::test]
async fn json_that_is_no_message_is_400_with_invalid_request() {
    let home = Home::new();
    let record = home.file("record");
    let daemon = Launch::run(&[], &demo(&["--record", &record])).home(&home).start().await;
    let session = daemon.client().initialize().await;
    session.child().await;
    let seen = lines(&record).len();
    let bodies = [
        r#"{"jsonrpc":"2.0","id":null,"method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":1.5,"method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":{},"method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":[1],"method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":true,"method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":7}"#,
        r#"{"jsonrpc":"1.0","id":1,"method":"tools/list"}"#,
        r#"{"id":1,"method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":1}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"x"}}"#,
        "42",
        r#""text""#,
        "null",
    ];
    refused(&session, &bodies, 400, -32600).await;
    // Which of the two would count is anybody's guess (invariant 6).
    let twice = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"tools/call"}"#;
    refused(&session, &[twice], 400, -32600).await;
    assert_eq!(lines(&record).len(), seen, "the child has heard of none of it");
}

// B-16
// checks 45
#[tokio::test]
async fn a_batch_is_refused_where_the_revision_has_none() {
    let daemon = Daemon::run(&[], &[]).await;
    let batch = r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#;
    for version in ["2025-06-18", "2025-11-25"] {
        let session = daemon.client().initialize_as(version, json!({})).await;
        refused(&session, &[batch, "[]"], 400, -32600).await;
    }
    let (_, _, message) = error(daemon.client().post_text(batch).await).await;
    assert!(message.contains("2025-03-26") && message.contains("one message per request"), "{message}");
}

// B-16
// checks 43 44 45
#[tokio::test]
async fn a_batch_is_served_at_2025_03_26() {
    let daemon = Daemon::run(&[], &[]).await;
    let session = daemon.client().initialize_as("2025-03-26", json!({})).await;
    let call = |id: Value, text: &str| {
        let params = json!({"name": "echo", "arguments": {"text": text}});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    };
    let note = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}});
    let reply = session.post(&json!([call(json!(7), "a"), note, call(json!("7"), "b")])).await;
    assert_eq!(reply.status, 200);
    let mut answers: Vec<Value> = reply.events().rest().await.iter().map(|event| event.json()).collect();
    answers.sort_by_key(|answer| answer["id"].is_string());
    assert_eq!(answers.len(), 2);
    assert_eq!((&answers[0]["id"], &answers[0]["result"]["content"][0]["text"]), (&json!(7), &json!("a")));
    assert_eq!((&answers[1]["id"], &answers[1]["result"]["content"][0]["text"]), (&json!("7"), &json!("b")));

    let reply = session.post(&json!([note, {"jsonrpc": "2.0", "id": 5, "result": {}}])).await;
    assert_eq!(reply.status, 202);
    assert_eq!(reply.text().await, "");
    let hello = r#"[{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}]"#;
    let spoilt = r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"id":2}]"#;
    refused(&session, &["[]", hello, spoilt], 400, -32600).await;
    refused(&session, &["[", r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},]"#], 400, -32700).await;
}

// B-18
// checks 9
#[tokio::test]
async fn a_body_over_the_limit_is_413_and_never_held() {
    let daemon = Daemon::run(&[], &[]).await;
    let session = daemon.client().initialize().await;
    let text = "x".repeat(2 * MIB);
    let reply = session.call("echo", json!({"text": text})).await;
    let (status, _, message) = error(reply).await;
    assert_eq!(status, 413);
    assert!(message.contains("max_message_bytes"), "{message}");

    // Without a word of how much will come, and far more of it.
    let before = process::peak_kib(daemon.pid());
    let reply = session.request(Method::POST).chunks("x".repeat(64 << 10), 48 * 16).send().await;
    let (status, _, message) = error(reply).await;
    assert_eq!(status, 413);
    assert!(message.contains("max_message_bytes"), "{message}");
    let grown = process::peak_kib(daemon.pid()) - before;
    assert!(grown < 12 << 10, "grew by {grown} KiB over a body of 48 MiB");
    session.child().await;
}

// B-18
#[tokio::test]
async fn a_body_just_within_the_limit_passes_chunked_or_not() {
    let daemon = Daemon::run(&["--max-message-bytes", "100000"], &[]).await;
    let session = daemon.client().initialize().await;
    let envelope = r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":""}}"#;
    let body = envelope.replace(r#""x":"""#, &format!(r#""x":"{}""#, "x".repeat(100_000 - envelope.len())));
    assert_eq!(body.len(), 100_000);
    assert_eq!(session.post_text(&body).await.status, 200);
    assert_eq!(session.request(Method::POST).chunks(body.clone(), 1).send().await.status, 200);
    let (first, second) = body.split_at(50_000);
    assert_eq!(session.request(Method::POST).chunks(format!("{first} {second}"), 1).send().await.status, 413);
}

// B-18
// checks 107
#[tokio::test]
async fn an_answer_over_the_limit_is_502_and_never_held() {
    let daemon = Daemon::run(&[], &[]).await;
    let session = daemon.client().initialize().await;
    let before = process::peak_kib(daemon.pid());
    for bytes in [2 * MIB, 48 * MIB] {
        let reply = session.call("big", json!({"bytes": bytes})).await;
        let (status, _, message) = error(reply).await;
        assert_eq!(status, 502);
        assert!(message.contains("max_message_bytes"), "{message}");
    }
    let grown = process::peak_kib(daemon.pid()) - before;
    assert!(grown < 12 << 10, "grew by {grown} KiB over an answer of 48 MiB");
    assert_eq!(session.text("big", json!({"bytes": 1000})).await.len(), 1000);
}

// B-18: on a stream, where the status has been sent, the error comes as the answer.
#[tokio::test]
async fn an_answer_over_the_limit_of_an_open_stream_is_an_error_on_it() {
    let daemon = Daemon::run(&["--max-message-bytes", "10000"], &[]).await;
    let session = daemon.client().initialize().await;
    let reply = session.request(Method::POST).header("accept", "text/event-stream");
    let params = json!({"name": "big", "arguments": {"bytes": 20_000}});
    let call = json!({"jsonrpc": "2.0", "id": "b", "method": "tools/call", "params": params});
    let reply = reply.body(call.to_string()).send().await;
    let answer = reply.answer().await;
    assert_eq!(answer["id"], "b");
    assert_eq!(answer["error"]["data"]["reason"], "upstream_answer_too_large", "{answer}");
}
