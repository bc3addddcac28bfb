//! Transcripts of one connection, in memory. Calls that wait are only tested where the outcome does not depend
//! on the clock; the rest belongs to the integration tests.

mod modern;

use super::*;

/// A stdout that can be read back.
#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Feeds the lines to a server and returns all it wrote until they ended.
fn written(fault: Fault, lines: impl AsRef<[u8]>) -> String {
    written_in(Eras::Legacy, fault, lines)
}

fn written_in(eras: Eras, fault: Fault, lines: impl AsRef<[u8]>) -> String {
    let sink = Sink::default();
    let server = Arc::new(Server::new(fault, eras, Box::new(sink.clone())));
    listen(&server, lines.as_ref(), None).unwrap();
    let bytes = sink.0.lock().unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn messages(lines: &str) -> Vec<Value> {
    written(Fault::None, lines).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Calls a tool and returns its text; `"!"` goes before it if the tool failed.
fn called(name: &str, arguments: Value) -> String {
    let params = json!({"name": name, "arguments": arguments});
    let line = json!({"id": 1, "method": "tools/call", "params": params}).to_string();
    let result = messages(&line).pop().unwrap()["result"].take();
    let mark = if result["isError"] == true { "!" } else { "" };
    format!("{mark}{}", result["content"][0]["text"].as_str().unwrap())
}

#[test]
fn the_version_asked_for_is_spoken_and_any_other_gets_our_last() {
    for (asked, spoken) in [("2024-11-05", "2024-11-05"), ("2026-07-28", "2025-11-25")] {
        let line = json!({"id": 1, "method": "initialize", "params": {"protocolVersion": asked}});
        assert_eq!(messages(&line.to_string())[0]["result"]["protocolVersion"], spoken);
    }
}

#[test]
fn failures_have_their_codes() {
    let codes: Vec<_> = messages(
        r#"
        {"id":1,"method":"server/discover"}
        {"id":2,"method":"tools/call","params":{"name":"nope"}}
        {"id":3,"method":"resources/read","params":{"uri":"demo://nope"}}
        {"id":4,"method":"prompts/get","params":{"name":"greet"}}
        {"id":5,"method":"logging/setLevel","params":{"level":"loud"}}
        {"id":6,"method":"tools/list","params":{"cursor":""}}
        "#,
    )
    .iter()
    .map(|message| message["error"]["code"].as_i64().unwrap())
    .collect();
    assert_eq!(codes, [-32601, -32602, -32002, -32602, -32602, -32602]);
}

#[test]
fn odd_lines_are_skipped_and_odd_params_answered() {
    let lines = b"\xff\n\n[]\n42\n{}\n{\"id\":0}\n{\"method\":7,\"id\":1}\n{\"method\":\"notifications/cancelled\"}\n\
        {\"id\":null,\"method\":\"tools/call\",\"params\":[]}\n\
        {\"id\":{},\"method\":\"tools/call\",\"params\":{\"name\":\"log\",\"arguments\":[]}}\n\
        {\"id\":2,\"method\":\"completion/complete\",\"params\":\"x\"}";
    // The second of the last three is the log tool, which sends one note before its answer.
    assert_eq!(written(Fault::None, lines).lines().count(), 4);
}

#[test]
fn arguments_are_checked_against_the_table() {
    assert_eq!(called("echo", json!({"text": "hé"})), "hé");
    assert_eq!(called("echo", json!({"text": "", "size": 3})), "xxx");
    assert_eq!(called("echo", json!({})), "!argument text is missing");
    assert!(called("big", json!({"bytes": -1})).starts_with("!argument bytes does not fit"));
    assert!(called("big", json!({"bytes": u64::MAX})).starts_with("!at most"));
    assert!(called("change", json!({"what": "minds"})).starts_with("!argument what does not fit"));
}

#[test]
fn a_note_below_the_level_is_not_sent() {
    let sent = messages(
        r#"
        {"id":1,"method":"logging/setLevel","params":{"level":"warning"}}
        {"id":2,"method":"tools/call","params":{"name":"log","arguments":{"level":"notice"}}}
        {"id":3,"method":"tools/call","params":{"name":"log","arguments":{"level":"error","text":"a"}}}
        "#,
    );
    let notes: Vec<_> = sent.iter().filter(|message| message["method"].is_string()).collect();
    assert_eq!(notes.len(), 1);
    assert_eq!(notes[0]["params"], json!({"level": "error", "logger": "prism-demo", "data": "a"}));
}

#[test]
fn an_update_goes_to_subscribers_only() {
    let touch = r#"{"id":1,"method":"tools/call","params":{"name":"touch","arguments":{"uri":"demo://counter"}}}"#;
    let subscribe = r#"{"id":2,"method":"resources/subscribe","params":{"uri":"demo://counter"}}"#;
    let read = r#"{"id":3,"method":"resources/read","params":{"uri":"demo://counter"}}"#;
    let sent = messages(&[touch, subscribe, touch, read].join("\n"));
    assert_eq!(sent[0]["result"]["content"][0]["text"], "not subscribed");
    assert_eq!(sent[2]["method"], "notifications/resources/updated");
    assert_eq!(sent[3]["result"]["content"][0]["text"], "update sent");
    assert_eq!(sent[4]["result"]["contents"][0]["text"], "2");
}

#[test]
fn a_cancelled_call_is_not_answered_and_its_question_is_withdrawn() {
    let sink = Sink::default();
    let server = Arc::new(Server::new(Fault::None, Eras::Legacy, Box::new(sink.clone())));
    let feed = |line: &str| listen(&server, line.as_bytes(), None).unwrap();
    let wait_for = |what: &str| {
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while !String::from_utf8_lossy(&sink.0.lock().unwrap()).contains(what) {
            assert!(std::time::Instant::now() < deadline, "{what} did not come");
            std::thread::yield_now();
        }
    };
    feed(r#"{"id":"c","method":"tools/call","params":{"name":"ask","arguments":{"kind":"roots","text":""}}}"#);
    wait_for("roots/list");
    feed(r#"{"method":"notifications/cancelled","params":{"requestId":"c"}}"#);
    wait_for(r#""params":{"requestId":0}"#);
    assert!(!String::from_utf8_lossy(&sink.0.lock().unwrap()).contains(r#""id":"c""#));
    assert!(server.state().questions.is_empty());
}

#[test]
fn completion_offers_what_begins_alike() {
    let params = json!({"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "name", "value": "A"}});
    let line = json!({"id": 1, "method": "completion/complete", "params": params}).to_string();
    assert_eq!(messages(&line)[0]["result"]["completion"]["values"], json!(["Ada", "Alan"]));
}

#[test]
fn each_fault_shows_in_what_is_written() {
    let ping = r#"{"id":1,"method":"ping"}"#;
    let call = r#"{"id":2,"method":"tools/call","params":{"name":"whoami"}}"#;
    let pong = "{\"id\":1,\"jsonrpc\":\"2.0\",\"result\":{}}\n";
    let all = format!("{ping}\n{call}\n{ping}\n");
    assert_eq!(written(Fault::Mute, &all), [pong, pong].concat());
    assert_eq!(written(Fault::HalfLine, &all), [pong, "{\"id\":2,\"jsonrpc\":"].concat());
    assert!(written(Fault::Garbage, ping).ends_with(&["\n\n[]\n42\n", pong].concat()));
}
