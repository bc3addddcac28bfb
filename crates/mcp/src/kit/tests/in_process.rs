//! A connection within this process: the modern era, and what becomes of calls.

use super::*;

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

#[tokio::test]
async fn only_what_is_there_is_advertised() {
    let mut client = Client::open();
    client.request(1, "server/discover", json!({}), json!({}));
    let found = client.result(1).await;
    assert_eq!(found["supportedVersions"], json!(["2026-07-28"]));
    let all = json!({
        "tools": {}, "logging": {}, "completions": {}, "prompts": {},
        "resources": {"subscribe": true, "listChanged": true},
    });
    assert_eq!(found["capabilities"], all);
    assert_eq!((&found["resultType"], &found["cacheScope"]), (&json!("complete"), &json!("public")));
    assert_eq!(found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "toy");

    let bare = Arc::new(BuiltinServer::new("bare", "Bare", "").tool(Echo));
    client.connection = BuiltinConnection::open(bare);
    client.request(1, "server/discover", json!({}), json!({}));
    assert_eq!(client.result(1).await["capabilities"], json!({"tools": {}, "logging": {}}));
    for method in ["resources/list", "resources/read", "prompts/list", "prompts/get", "completion/complete"] {
        client.request(2, method, json!({"uri": "x", "name": "x"}), json!({}));
        assert_eq!(client.error(2).await["code"], -32601, "{method}");
    }
}

#[tokio::test]
async fn what_is_no_modern_request_is_refused() {
    let mut client = Client::open();
    client.send(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}));
    assert_eq!(client.error(1).await["code"], -32602);
    client.send(json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": ["a"]}));
    assert_eq!(client.error(2).await["code"], -32602);
    client
        .send(json!({"jsonrpc": "2.0", "id": 3, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}));
    assert_eq!(client.error(3).await["data"], json!({"supported": ["2026-07-28"], "requested": "2025-11-25"}));
    client.request(4, "tools/list", json!({}), json!({"io.modelcontextprotocol/protocolVersion": "v9"}));
    assert_eq!(client.error(4).await["code"], -32022);
    client.request(5, "tools/list", json!({}), json!({"io.modelcontextprotocol/logLevel": "loud"}));
    assert_eq!(client.error(5).await["code"], -32602);
    for method in ["ping", "initialize", "logging/setLevel", "resources/subscribe", "no/such"] {
        client.request(6, method, json!({"uri": "toy://one", "level": "info"}), json!({}));
        assert_eq!(client.error(6).await["code"], -32601, "{method}");
    }
    client.request(7, "tools/list", json!({"cursor": ""}), json!({}));
    assert_eq!(client.error(7).await["code"], -32602);
    client.call(8, "none", json!({}), json!({}));
    assert_eq!(client.error(8).await["code"], -32602);
}

// N-05, N-06
#[tokio::test]
async fn everything_about_a_call_has_its_correlation_id() {
    let mut client = Client::open();
    let id = "0197c6f2-0000-7000-8000-000000000001";
    let meta = json!({"progressToken": "t", "correlation_id": id, "io.modelcontextprotocol/logLevel": "error"});
    client.call(7, "report", json!({}), meta);
    let (answer, notes) = client.answer(7).await;
    let own = json!({"correlation_id": id});
    let progress = |params: Value| json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params});
    assert_eq!(
        notes,
        [
            progress(json!({"progressToken": "t", "progress": 1, "total": 2, "message": "half", "_meta": own})),
            json!({"jsonrpc": "2.0", "method": "notifications/message",
                "params": {"level": "error", "data": {"why": "test"}, "_meta": {"correlation_id": id, "step": 2}}}),
            progress(json!({"progressToken": "t", "progress": 2, "total": 2, "_meta": own})),
        ]
    );
    assert_eq!(answer["result"]["_meta"]["correlation_id"], id);
    assert_eq!(text(&answer["result"]), id);
}

// N-06
#[tokio::test]
async fn the_record_of_a_call_has_its_id_and_nothing_of_what_was_said() {
    let record = Record::default();
    let subscriber = tracing_subscriber::fmt().with_writer(record.clone()).with_ansi(false).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let mut client = Client::open();
    let id = "0197c6f2-0000-7000-8000-000000000002";
    client.call(1, "echo", json!({"text": "secret"}), json!({"correlation_id": id}));
    client.result(1).await;
    client.call(2, "echo", json!({"text": 7}), json!({}));
    client.result(2).await;
    client.call(3, "made-up", json!({}), json!({}));
    client.error(3).await;
    let text = String::from_utf8(record.0.lock().unwrap().clone()).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    for part in ["server=\"toy\"", "tool=\"echo\"", &format!("correlation_id={id}"), "latency_ms=", "outcome=\"ok\""] {
        assert!(lines[0].contains(part), "{part}: {text}");
    }
    assert!(lines[1].contains("outcome=\"tool_error\""), "{text}");
    assert!(!text.contains("secret") && !text.contains("made-up"), "{text}");
}

/// A log that can be read back.
#[derive(Clone, Default)]
struct Record(Arc<std::sync::Mutex<Vec<u8>>>);

impl std::io::Write for Record {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl tracing_subscriber::fmt::MakeWriter<'_> for Record {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn a_correlation_id_is_made_where_none_is_given() {
    let mut client = Client::open();
    for given in [json!({}), json!({"correlation_id": "no uuid"}), json!({"correlation_id": 7})] {
        client.call(1, "report", json!({}), given);
        // No token and no level: nothing is said on the way.
        let result = client.result(1).await;
        let made = uuid::Uuid::try_parse(text(&result)).unwrap();
        assert_eq!(made.get_version_num(), 7);
        assert_eq!(result["_meta"]["correlation_id"], made.to_string());
    }
}

#[tokio::test]
async fn a_level_lets_pass_what_is_as_grave() {
    let mut client = Client::open();
    for (level, count) in [("debug", 2), ("info", 2), ("error", 1), ("critical", 0)] {
        client.call(1, "report", json!({}), json!({"io.modelcontextprotocol/logLevel": level}));
        assert_eq!(client.answer(1).await.1.len(), count, "{level}");
    }
}

#[tokio::test]
async fn both_kinds_of_failure_are_told_apart() {
    let mut client = Client::open();
    client.call(1, "fail", json!({}), json!({}));
    let result = client.result(1).await;
    assert_eq!((&result["isError"], text(&result)), (&json!(true), "no luck"));
    client.call(2, "fail", json!({}), json!({"io.modelcontextprotocol/logLevel": "debug"}));
    assert_eq!(client.error(2).await, json!({"code": 4711, "message": "as you wish", "data": {"a": 1}}));
}

#[tokio::test]
async fn a_panic_ends_its_call_only() {
    let mut client = Client::open();
    client.call(1, "patient", json!({}), json!({}));
    client.call(2, "broken", json!({}), json!({}));
    assert_eq!(client.error(2).await["code"], -32603);
    client.call(3, "echo", json!({"text": "alive"}), json!({}));
    assert_eq!(text(&client.result(3).await), "alive");
}

#[tokio::test]
async fn a_cancelled_call_may_tidy_up_and_is_not_answered() {
    let mut client = Client::open();
    client.call(1, "patient", json!({}), json!({"progressToken": 1}));
    assert_eq!(client.next().await.1["params"]["message"], "waiting");
    client.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}));
    wait_for(|| client.tidied.load(Ordering::SeqCst)).await;
    // Its number is free again, and what comes next is the answer to this one.
    client.call(1, "echo", json!({"text": "next"}), json!({}));
    assert_eq!(text(&client.result(1).await), "next");
}

#[tokio::test]
async fn a_call_that_ignores_its_cancellation_is_dropped() {
    let mut client = Client::open();
    let held = Arc::strong_count(client.connection.room());
    client.call(1, "stubborn", json!({}), json!({}));
    wait_for(|| Arc::strong_count(client.connection.room()) > held).await;
    client.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}));
    wait_for(|| Arc::strong_count(client.connection.room()) == held).await;
}

#[tokio::test]
async fn dropping_the_connection_cancels_its_calls() {
    let mut client = Client::open();
    client.call(1, "patient", json!({}), json!({"progressToken": 1}));
    client.next().await;
    drop(client.connection);
    let tidied = client.tidied;
    wait_for(|| tidied.load(Ordering::SeqCst)).await;
}

#[tokio::test]
async fn calls_beyond_the_limit_are_refused_and_answers_are_never_lost() {
    let mut client = Client::open();
    for id in 1..=1024 {
        client.call(id, "stubborn", json!({}), json!({}));
    }
    for id in 2001..=2003 {
        client.call(id, "echo", json!({"text": "a"}), json!({}));
    }
    for id in 2001..=2003 {
        assert_eq!(client.error(id).await["code"], -32603);
    }
    client.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}}));
    client.call(6, "echo", json!({"text": "a"}), json!({}));
    assert_eq!(client.error(6).await["code"], -32600, "6 is still in flight");
    client.call(3000, "echo", json!({"text": "a"}), json!({}));
    client.result(3000).await;
}

#[tokio::test]
async fn notes_are_dropped_when_nobody_fetches_them_and_answers_are_not() {
    let mut client = Client::open();
    let meta = json!({"progressToken": 1});
    for id in 1..=900 {
        client.call(id, "report", json!({}), meta.clone());
    }
    let (mut answers, mut notes) = (0, 0);
    // Everything is said before anything is fetched.
    wait_for(|| client.connection.is_idle()).await;
    let mut late = 0;
    while answers < 900 {
        let (said, note) = client.next().await;
        match said.is_answer {
            true => answers += 1,
            false => {
                notes += 1;
                late += usize::from(note["params"]["progress"] == 2);
            }
        }
    }
    assert_eq!(notes, 1024);
    assert!(late > 512, "the oldest make way: {late}");
}

#[tokio::test]
async fn resources_prompts_and_completions_are_served() {
    let mut client = Client::open();
    client.request(1, "resources/list", json!({}), json!({}));
    assert_eq!(client.result(1).await["resources"][0]["name"], "one");
    client.request(2, "resources/read", json!({"uri": "toy://one"}), json!({}));
    let read = client.result(2).await;
    assert_eq!(read["contents"][0]["text"], "1");
    assert_eq!((&read["ttlMs"], &read["cacheScope"]), (&json!(0), &json!("private")));
    client.request(3, "resources/read", json!({"uri": "toy://two"}), json!({}));
    assert_eq!(
        client.error(3).await,
        json!({"code": -32602, "message": "resource not found", "data": {"uri": "toy://two"}})
    );
    client.request(4, "prompts/get", json!({"name": "greet", "arguments": {"name": "Ada"}}), json!({}));
    assert_eq!(client.result(4).await["messages"][0]["content"]["text"], "Greet \"Ada\".");
    let params = json!({"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "name", "value": "A"}});
    client.request(5, "completion/complete", params, json!({}));
    let completion = client.result(5).await["completion"].take();
    assert_eq!(completion["values"].as_array().unwrap().len(), 100);
    assert_eq!((&completion["total"], &completion["hasMore"]), (&json!(150), &json!(true)));
}

/// Lets other tasks run until something is so.
async fn wait_for(is: impl Fn() -> bool) {
    let so = async {
        while !is() {
            tokio::task::yield_now().await;
        }
    };
    timeout(SOON, so).await.unwrap();
}
