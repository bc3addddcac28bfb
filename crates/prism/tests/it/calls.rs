//! From a request to its answer: the handshake, JSON or a stream, ids, cancelling, and who hears what (B-02 … B-07,
//! B-17, N-01 … N-03).

use hyper::Method;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
};

use crate::support::{Client, Daemon, Home, Launch, NEWEST, demo, lines, result_text, soon, until};

fn tool(id: Value, name: &str, arguments: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": name, "arguments": arguments}})
}

fn with_progress(id: Value, token: Value, arguments: Value) -> Value {
    let mut call = tool(id, "progress", arguments);
    call["params"]["_meta"] = json!({"progressToken": token});
    call
}

fn hello(version: &str) -> Value {
    let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}});
    json!({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": params})
}

// B-02
// By B-03 the id is a UUID v4: 122 of its bits are random.
// checks 16 17 18
#[tokio::test]
async fn initialize_opens_a_session_at_the_revision_that_was_asked_for() {
    let daemon = Daemon::run(&[], &[]).await;
    let mut sessions = Vec::new();
    let versions =
        [("2024-11-05", "2024-11-05"), ("2025-03-26", "2025-03-26"), ("2025-06-18", "2025-06-18"), (NEWEST, NEWEST)];
    for (asked, given) in versions.into_iter().chain([("2026-07-28", NEWEST), ("banana", NEWEST)]) {
        let reply = daemon.client().post(&hello(asked)).await;
        assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/json")));
        let session = reply.header("mcp-session-id").unwrap().to_owned();
        assert_eq!(session.len(), 36);
        assert_eq!(session.as_bytes()[14], b'4', "a UUID v4: {session}");
        assert!(!sessions.contains(&session));
        sessions.push(session);
        let answer = reply.json().await;
        assert_eq!((&answer["id"], &answer["jsonrpc"]), (&json!("hello"), &json!("2.0")));
        assert_eq!(answer["result"]["protocolVersion"], given);
        assert_eq!(answer["result"]["serverInfo"]["name"], "prism-demo");
        assert_eq!(answer["result"]["capabilities"]["tools"], json!({"listChanged": true}));
        assert!(answer["result"]["instructions"].is_string());
    }
    assert_eq!(daemon.children().len(), 1, "one child, one handshake with it");
}

// B-05
// checks 19 27 40
#[tokio::test]
async fn what_has_no_answer_is_202_with_an_empty_body() {
    let daemon = Daemon::run(&[], &[]).await;
    let session = daemon.client().initialize().await;
    for message in [
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 4711}}),
        json!({"jsonrpc": "2.0", "method": "notifications/nobody/knows"}),
        json!({"jsonrpc": "2.0", "id": 4711, "result": {}}),
        json!({"jsonrpc": "2.0", "id": "x", "error": {"code": 1, "message": "no"}}),
    ] {
        let reply = session.post(&message).await;
        assert_eq!(reply.status, 202, "{message}");
        assert_eq!(reply.text().await, "");
    }
    session.child().await;
}

// B-06
// checks 31
#[tokio::test]
async fn an_answer_with_nothing_before_it_is_json() {
    let daemon = Daemon::run(&[], &[]).await;
    let session = daemon.client().initialize().await;
    let reply = session.post(&tool(json!(1), "echo", json!({"text": "hello"}))).await;
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/json")));
    assert_eq!(reply.header("mcp-session-id"), None, "only the answer to initialize has it");
    assert_eq!(result_text(&reply.json().await), "hello");
}

// B-06, N-01, N-02, N-03
// checks 12 13 31 32
#[tokio::test]
async fn a_call_becomes_a_stream_at_its_first_interim_message() {
    let daemon = Daemon::run(&[], &[]).await;
    let session = daemon.client().initialize().await;
    let mut aside = session.listen().await;
    assert_eq!(aside.next().await.unwrap().data, "");
    let reply = session.post(&with_progress(json!("a"), json!("tok"), json!({"steps": 3, "ms": 1}))).await;
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("text/event-stream")));
    assert_eq!(reply.header("cache-control"), Some("no-cache, no-transform"));
    assert_eq!(reply.header("x-accel-buffering"), Some("no"));
    let events = reply.events().rest().await;
    assert!(events.iter().all(|event| event.name.as_deref() == Some("message")), "{events:?}");
    let messages: Vec<Value> = events.iter().filter(|event| !event.data.is_empty()).map(|e| e.json()).collect();
    // N-06: what belongs to one call has one mark.
    let mark = json!({"correlation_id": messages[3]["result"]["_meta"]["correlation_id"]});
    for (i, note) in messages[..3].iter().enumerate() {
        assert_eq!(note["method"], "notifications/progress");
        assert_eq!(note["params"], json!({"progressToken": "tok", "progress": i + 1, "total": 3, "_meta": mark}));
    }
    assert_eq!((&messages[3]["id"], result_text(&messages[3])), (&json!("a"), "3 steps done"));
    assert_eq!(messages.len(), 4);
    // None of it went the other way.
    session.text("change", json!({"what": "tools"})).await;
    assert_eq!(aside.message().await["method"], "notifications/tools/list_changed");
}

// N-02: the log notes of a call too, each as it was written.
// checks 11 31
#[tokio::test]
async fn the_log_notes_of_a_call_come_on_its_stream_before_its_result() {
    let daemon = Daemon::run(&[], &[]).await;
    let session = daemon.client().initialize().await;
    let text = "line\u{2028}break \u{1f600} \"quoted\" \\ \r\n end";
    let reply = session.post(&tool(json!(1), "log", json!({"level": "warning", "count": 2, "text": text}))).await;
    let mut stream = reply.events();
    for _ in 0..2 {
        let note = stream.message().await;
        assert_eq!((&note["method"], &note["params"]["data"]), (&json!("notifications/message"), &json!(text)));
    }
    assert_eq!(result_text(&stream.message().await), "2 notes sent");
    assert_eq!(stream.next().await, None);
}

// N-02: if the stream cannot be made, JSON is the fallback.
#[tokio::test]
async fn a_client_that_takes_no_stream_gets_json_and_its_notes_on_the_get_stream() {
    let daemon = Daemon::run(&[], &[]).await;
    let session = daemon.client().initialize().await;
    let mut aside = session.listen().await;
    let request = session.request(Method::POST).header("accept", "application/json");
    let reply = request.body(tool(json!(1), "log", json!({"text": "hear me"})).to_string()).send().await;
    assert_eq!(reply.header("content-type"), Some("application/json"));
    assert_eq!(result_text(&reply.json().await), "1 notes sent");
    assert_eq!(aside.message().await["params"]["data"], "hear me");
}

// N-04
// checks 41
#[tokio::test]
async fn only_clients_of_2025_11_25_get_an_event_without_a_message() {
    let daemon = Daemon::run(&[], &[]).await;
    for (version, primed) in [("2025-03-26", false), ("2025-06-18", false), (NEWEST, true)] {
        let session = daemon.client().initialize_as(version, json!({})).await;
        let reply = session.post(&with_progress(json!(1), json!(1), json!({"steps": 1, "ms": 1}))).await;
        let first = reply.events().next().await.unwrap();
        assert_eq!(first.data.is_empty(), primed, "{version}");
        assert!(first.id.is_some());
        if primed {
            assert_eq!(session.listen().await.next().await.unwrap().data, "");
        }
    }
}

// B-17
// checks 10
#[tokio::test]
async fn an_id_comes_back_exactly_as_it_was_written() {
    let daemon = Daemon::run(&[], &[]).await;
    let session = daemon.client().initialize().await;
    let odd = ["1", r#""1""#, "9007199254740993", "-7", r#""\u0041\/""#, r#""""#, "0", r#""ünïcode""#];
    for id in odd {
        let call = r#"{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":{"name":"whoami"}}"#.replace("ID", id);
        let text = session.post_text(&call).await.text().await;
        let written = text.split(r#""id":"#).nth(1).unwrap();
        assert!(written.starts_with(&format!("{id},")) || written.starts_with(&format!("{id}}}")), "{id}: {text}");
    }
}

// What we do not know we do not touch.
// checks 11 93
#[tokio::test]
async fn arguments_reach_the_child_as_they_were_written() {
    let home = Home::new();
    let record = home.file("record");
    let launch = Launch::run(&["--request-timeout", "200ms"], &demo(&["--record", &record]));
    let daemon = launch.home(&home).start().await;
    let session = daemon.client().initialize().await;
    let odd = "{ \"text\" : \"a\u{2028}b \\ud800 \\u00e9 \\/\",\r\n \"x\":[1.0,1e400,-0,12345678901234567890] }";
    let call = r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"echo","arguments":ARGS}}"#;
    // Half a character is more than the demo server can read: its tool says so.
    let answer = session.post_text(&call.replace("ARGS", odd)).await.answer().await;
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    let seen = lines(&record).into_iter().find(|line| line.contains("echo")).unwrap();
    // But for the line break, which would end the message on a pipe.
    assert!(seen.contains(&odd.replace("\r\n", "  ")), "{seen}");
}

// B-17: real clients send every request with id 1.
// checks 97 98
#[tokio::test]
async fn calls_with_the_same_id_at_once_each_get_their_own_answer() {
    let daemon = Daemon::run(&[], &[]).await;
    let (one, other) = (daemon.client().initialize().await, daemon.client().initialize().await);
    let mut calls = JoinSet::new();
    for i in 0..40_u64 {
        let session = if i % 2 == 0 { one.clone() } else { other.clone() };
        calls.spawn(async move {
            let text = format!("{} {i}", session.session());
            // The later it comes, the sooner it is done.
            let arguments = json!({"steps": 2, "ms": 60 - i, "text": text});
            let mut stream = session.post(&with_progress(json!(1), json!(1), arguments)).await.events();
            for _ in 0..2 {
                let note = stream.message().await;
                assert_eq!(note["params"]["message"], text);
                assert_eq!(note["params"]["progressToken"], 1);
            }
            let answer = stream.message().await;
            assert_eq!((&answer["id"], result_text(&answer)), (&json!(1), text.as_str()));
        });
    }
    calls.join_all().await;
    assert_eq!(daemon.children().len(), 1);
}

// mcp-eras 5.10
// checks 39
#[tokio::test]
async fn a_cancelled_call_is_cancelled_upstream_and_gets_no_answer() {
    let home = Home::new();
    let record = home.file("record");
    let daemon = Launch::run(&[], &demo(&["--record", &record])).home(&home).start().await;
    let session = daemon.client().initialize().await;
    let other = daemon.client().initialize().await;
    let start = |client: &Client| {
        let client = client.clone();
        tokio::spawn(async move { client.post(&tool(json!("c"), "slow", json!({"ms": 700, "text": "x"}))).await })
    };
    let (call, foreign) = (start(&session), start(&other));
    let slow = |line: &String| line.contains("slow");
    until("both are with the child", async || lines(&record).iter().filter(|line| slow(line)).count() == 2).await;
    let reply = session.notify("notifications/cancelled", json!({"requestId": "c", "reason": "changed my mind"})).await;
    assert_eq!(reply.status, 202);
    let reply = call.await.unwrap();
    assert!(reply.is_stream());
    assert_eq!(reply.events().rest().await, [], "an empty stream: no answer");
    let told = || lines(&record).into_iter().filter(|line| line.contains("cancelled")).collect::<Vec<_>>();
    until("the child is told", async || !told().is_empty()).await;
    let told: Vec<Value> = told().iter().map(|line| line.parse().unwrap()).collect();
    assert_eq!(told.len(), 1);
    assert_eq!(told[0]["params"]["reason"], "changed my mind");
    assert!(told[0]["params"]["requestId"].is_u64(), "by the id that the child knows: {}", told[0]);
    // The other session's call has the same id, and goes on.
    assert_eq!(result_text(&foreign.await.unwrap().answer().await), "x");
}

// checks 46 47 48 50
#[tokio::test]
async fn small_requests_have_the_answers_that_clients_expect() {
    let daemon = Daemon::run(&[], &[]).await;
    let session = daemon.client().initialize().await;
    let ask = async |method: &str, params: Value| {
        let reply = session.ask(method, params).await;
        assert_eq!(reply.status, 200, "{method}");
        reply.json().await
    };
    assert_eq!(ask("ping", json!({})).await["result"], json!({}));
    assert_eq!(ask("logging/setLevel", json!({"level": "debug"})).await["result"], json!({}));
    assert_eq!(ask("logging/setLevel", json!({"level": "loud"})).await["error"]["code"], -32602);
    assert_eq!(ask("nothing/like/it", json!({})).await["error"]["code"], -32601);
    assert_eq!(ask("resources/read", json!({"uri": "demo://nowhere"})).await["error"]["code"], -32002);
    assert_eq!(ask("tools/call", json!({"name": "no such tool"})).await["error"]["code"], -32602);
    let texts = ask("resources/read", json!({"uri": "demo://hello"})).await;
    assert_eq!(texts["result"]["contents"][0]["text"], "Hello from prism-demo.");
    for method in ["tools/list", "prompts/list", "resources/list", "resources/templates/list"] {
        assert!(ask(method, json!({})).await["result"].is_object(), "{method}");
    }
}

// B-04: the most verbose level goes upstream, and each session hears its own.
// checks 103
#[tokio::test]
async fn log_levels_are_each_sessions_own() {
    let daemon = Daemon::run(&[], &[]).await;
    let (loud, calm) = (daemon.client().initialize().await, daemon.client().initialize().await);
    loud.ask("logging/setLevel", json!({"level": "debug"})).await;
    calm.ask("logging/setLevel", json!({"level": "error"})).await;
    let debug = json!({"level": "debug", "text": "detail"});
    let mut stream = loud.call("log", debug.clone()).await.events();
    assert_eq!(stream.message().await["params"]["data"], "detail");
    let reply = calm.call("log", debug).await;
    assert!(!reply.is_stream(), "it was sent, and not to this one");
    assert_eq!(result_text(&reply.json().await), "1 notes sent");
    assert!(calm.call("log", json!({"level": "error"})).await.is_stream());
}

// Most clients keep their connection, and many send one thing after the other on it.
#[tokio::test]
async fn one_connection_serves_many_requests_refused_ones_among_them() {
    let daemon = Daemon::run(&[], &[]).await;
    let session = daemon.client().initialize().await;
    let mut stream = TcpStream::connect(("127.0.0.1", daemon.port())).await.unwrap();
    let request = |token: &str, body: &str| {
        let (id, length) = (session.session(), body.len());
        format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nMcp-Session-Id: {id}\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        )
    };
    let ping = |id: u32| json!({"jsonrpc": "2.0", "id": id, "method": "ping"}).to_string();
    let (right, wrong) = (daemon.token(), "wrong".to_owned());
    let all = [(&right, ping(1)), (&wrong, ping(2)), (&right, "not json".to_owned()), (&right, ping(4))];
    let all: String = all.iter().map(|(token, body)| request(token, body)).collect();
    stream.write_all(all.as_bytes()).await.unwrap();
    let mut answers = String::new();
    let mut buffer = [0; 4096];
    while !answers.contains(r#""id":4"#) {
        let count = soon("the last answer", stream.read(&mut buffer)).await.unwrap();
        assert!(count > 0, "closed after: {answers}");
        answers.push_str(str::from_utf8(&buffer[..count]).unwrap());
    }
    let found: Vec<&str> = answers.split("HTTP/1.1 ").skip(1).map(|answer| &answer[..3]).collect();
    assert_eq!(found, ["200", "401", "400", "200"]);
}
