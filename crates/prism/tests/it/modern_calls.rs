//! Calls of the modern era: what comes on the way to an answer, what closing means, and how failures are told (mcp-eras
//! 3, 5.4, 5.9, 5.10).

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::{Daemon, Event, Home, Launch, demo, lines, result_text, until};

const BACKS: [&str; 2] = ["legacy", "modern"];
/// Far sooner than a keep-alive finds out that nobody is there, every 15 seconds.
const PROMPT: Duration = Duration::from_secs(5);

fn messages(events: &[Event]) -> Vec<Value> {
    events.iter().map(Event::json).collect()
}

fn parsed(record: &str) -> Vec<Value> {
    lines(record).iter().filter_map(|line| line.parse().ok()).collect()
}

// checks 12 13 73 75
#[tokio::test]
async fn progress_comes_under_the_clients_own_token_and_the_answer_is_last() {
    for era in BACKS {
        let daemon = Daemon::run(&[], &["--era", era]).await;
        let client = daemon.modern();
        for token in [json!("tok"), json!(7), json!("7"), json!(0)] {
            let call = client.progress(token.clone(), 3, 1);
            let reply = client.post(&call).await;
            assert_eq!((reply.status, reply.header("content-type")), (200, Some("text/event-stream")));
            assert_eq!(reply.header("cache-control"), Some("no-cache, no-transform"));
            assert_eq!(reply.header("x-accel-buffering"), Some("no"));
            let events = reply.events().rest().await;
            assert!(events.iter().all(|event| event.name.as_deref() == Some("message")), "{events:?}");
            let all = messages(&events);
            assert_eq!(all.len(), 4, "{era}: {all:?}");
            // N-06: what belongs to one call has one mark.
            let mark = json!({"correlation_id": all[3]["result"]["_meta"]["correlation_id"]});
            for (i, note) in all[..3].iter().enumerate() {
                assert_eq!(note["method"], "notifications/progress");
                let params = json!({"progressToken": token, "progress": i + 1, "total": 3, "_meta": mark});
                assert_eq!(note["params"], params);
            }
            assert_eq!((&all[3]["id"], &all[3]["result"]["resultType"]), (&call["id"], &json!("complete")));
            assert_eq!(result_text(&all[3]), "3 steps done");
        }
        // Who names no token hears nothing, and gets its answer as it is.
        let reply = client.post(&client.tool("progress", json!({"steps": 2, "ms": 1}))).await;
        assert!(!reply.is_stream());
        assert_eq!(result_text(&reply.json().await), "2 steps done");
    }
}

// checks 73 97 98
#[tokio::test]
async fn calls_with_equal_ids_and_equal_tokens_each_get_their_own() {
    for era in BACKS {
        let daemon = Daemon::run(&[], &["--era", era]).await;
        let mut calls = JoinSet::new();
        for i in 0..20_u64 {
            let client = daemon.modern().named(if i % 2 == 0 { "one" } else { "other" });
            calls.spawn(async move {
                let text = format!("text {i}");
                let arguments = json!({"steps": 2, "ms": 40 - i, "text": text});
                let params = json!({"name": "progress", "arguments": arguments, "_meta": {"progressToken": 1}});
                let mut call = client.message("tools/call", params);
                call["id"] = 1.into();
                let all = messages(&client.post(&call).await.events().rest().await);
                assert_eq!(all.len(), 3, "{all:?}");
                for note in &all[..2] {
                    assert_eq!(
                        (&note["params"]["message"], &note["params"]["progressToken"]),
                        (&json!(text), &json!(1))
                    );
                }
                assert_eq!((&all[2]["id"], result_text(&all[2])), (&json!(1), text.as_str()));
            });
        }
        calls.join_all().await;
        assert_eq!(daemon.children().len(), 1, "{era}");
    }
}

// checks 74
#[tokio::test]
async fn log_notes_come_only_to_who_names_a_level_and_not_below_it() {
    for era in BACKS {
        let daemon = Daemon::run(&[], &["--era", era]).await;
        let client = daemon.modern();
        let log = |level: &str| json!({"level": level, "count": 2, "text": "hear me"});
        let reply = client.post(&client.tool("log", log("emergency"))).await;
        assert!(!reply.is_stream(), "{era}: without a level there are no notes");
        let warned = client.at_level("warning");
        let reply = warned.post(&warned.tool("log", log("info"))).await;
        assert!(!reply.is_stream(), "{era}: not below the level");
        let all = messages(&warned.post(&warned.tool("log", log("error"))).await.events().rest().await);
        assert_eq!(all.len(), 3, "{era}: {all:?}");
        for note in &all[..2] {
            assert_eq!(
                (&note["method"], &note["params"]["data"]),
                (&json!("notifications/message"), &json!("hear me"))
            );
        }
        assert_eq!(result_text(&all[2]), "2 notes sent");
        // What was named for one request is not remembered for the next.
        assert!(!client.post(&client.tool("log", log("error"))).await.is_stream(), "{era}");
        let loud = client.at_level("loud");
        let reply = loud.post(&loud.tool("log", log("error"))).await;
        let (status, body) = (reply.status, reply.json().await);
        assert_eq!((status, &body["error"]["code"]), (400, &json!(-32602)), "{body}");
    }
}

// checks 76
#[tokio::test]
async fn closing_a_call_cancels_it_at_the_server() {
    for era in BACKS {
        let home = Home::new();
        let record = home.file("record");
        let daemon =
            Launch::run(&["--era", era], &demo(&["--era", era, "--record", &record])).home(&home).start().await;
        let client = daemon.modern();
        let child = client.child().await;
        let upstream = |tool: &str| {
            let mut calls = parsed(&record).into_iter();
            calls.find(|message| message["params"]["name"] == tool).map(|message| message["id"].clone())
        };
        let cancelled = |id: &Value| {
            let notes = parsed(&record).into_iter().filter(|message| message["method"] == "notifications/cancelled");
            notes.filter(|note| note["params"]["requestId"] == *id).count()
        };

        // While the answer is waited for.
        let waiting = {
            let client = client.clone();
            tokio::spawn(
                async move { client.post(&client.tool("slow", json!({"ms": 600_000, "text": "x"}))).await.status },
            )
        };
        until("the call is with the child", async || upstream("slow").is_some()).await;
        let left = Instant::now();
        waiting.abort();
        let id = upstream("slow").unwrap();
        until("the child is told", async || cancelled(&id) == 1).await;

        // And when it has become a stream.
        let mut stream = client.post(&client.progress(json!("p"), 1000, 20)).await.events();
        stream.next().await.unwrap();
        drop(stream);
        let id = upstream("progress").unwrap();
        until("the child is told", async || cancelled(&id) == 1).await;
        assert!(left.elapsed() < PROMPT, "{:?}", left.elapsed());

        // Nobody else has noticed.
        assert_eq!(client.child().await, child, "{era}");
        let streams = r#"prism_streams{destination="run"}"#;
        until("no stream is left", async || daemon.metric(streams).await == Some(0)).await;
    }
}

// checks 70
#[tokio::test]
async fn what_a_client_would_have_to_be_able_to_do_is_named() {
    let daemon = Daemon::run(&[], &["--era", "modern"]).await;
    for (kind, able, required) in [
        ("sampling", json!({"elicitation": {}}), json!({"sampling": {}})),
        ("roots", json!({}), json!({"roots": {}})),
        ("elicitation", json!({"elicitation": {"url": {}}}), json!({"elicitation": {}})),
    ] {
        let client = daemon.modern().can(able);
        let call = client.tool("ask", json!({"kind": kind, "text": "x"}));
        let reply = client.post(&call).await;
        assert_eq!(reply.status, 400, "{kind}");
        let body = reply.json().await;
        assert_eq!((&body["error"]["code"], &body["id"]), (&json!(-32021), &call["id"]), "{body}");
        assert_eq!(body["error"]["data"]["requiredCapabilities"], required, "{body}");
    }
}

// checks 91
#[tokio::test]
async fn codes_of_the_older_era_and_codes_that_nobody_defined_do_not_leave_us() {
    let daemon = Daemon::run(&[], &["--era", "legacy"]).await;
    let client = daemon.modern();
    let reply = client.ask("resources/read", json!({"uri": "demo://nowhere"})).await;
    assert_eq!(reply.status, 200);
    let told = reply.json().await["error"].take();
    assert_eq!((&told["code"], &told["data"]["uri"]), (&json!(-32602), &json!("demo://nowhere")), "{told}");
    for (code, expected) in
        [(-32002, -32602), (-32050, -32603), (-32099, -32603), (-32023, -32603), (-32000, -32000), (7, 7)]
    {
        let reply = client.post(&client.tool("fail", json!({"code": code}))).await;
        assert_eq!(reply.status, 200, "{code}");
        let told = reply.json().await["error"].take();
        assert_eq!(told["code"], expected, "{code}: {told}");
        if expected == -32603 {
            assert!(told["data"]["original"].to_string().contains(&code.to_string()), "{told}");
        }
    }
    // A tool that complains is no error of the protocol.
    let result = client.call("echo", json!({})).await;
    assert_eq!((&result["isError"], &result["resultType"]), (&json!(true), &json!("complete")));
    let reply = client.post(&client.tool("no such tool", json!({}))).await;
    assert_eq!((reply.status, reply.json().await["error"]["code"].as_i64()), (200, Some(-32602)));
}

// checks 92
#[tokio::test]
async fn what_one_request_says_of_its_client_is_not_remembered_for_the_next() {
    for era in BACKS {
        let daemon = Daemon::run(&[], &["--era", era]).await;
        let (able, plain) = (daemon.modern().can(json!({"roots": {}})), daemon.modern());
        for _ in 0..2 {
            let asked = able.call("ask", json!({"kind": "roots", "text": "x"})).await;
            assert_eq!(asked["resultType"], "input_required", "{era}: {asked}");
            let reply = plain.post(&plain.tool("ask", json!({"kind": "roots", "text": "x"}))).await;
            let answer = reply.answer().await;
            assert!(answer["error"].is_object() || answer["result"]["isError"] == true, "{era}: {answer}");
        }
    }
    // A modern server hears of each call's client what that call said.
    let daemon = Daemon::run(&["--era", "modern"], &["--era", "modern"]).await;
    let mut calls = JoinSet::new();
    for i in 0..20_u32 {
        let able = if i % 2 == 0 { json!({"roots": {}}) } else { json!({"sampling": {}}) };
        let client = daemon.modern().named(&format!("client {i}")).can(able.clone());
        calls.spawn(async move {
            let seen: Value = client.text("caps", json!({})).await.parse().unwrap();
            assert_eq!((&seen["capabilities"], &seen["clientInfo"]["name"]), (&able, &json!(format!("client {i}"))));
        });
    }
    calls.join_all().await;
    assert_eq!(daemon.children().len(), 1);
}

// checks 95 96
#[tokio::test]
async fn a_legacy_server_sees_nothing_of_the_envelope_and_all_of_the_rest() {
    let home = Home::new();
    let record = home.file("record");
    let daemon = Launch::run(&[], &demo(&["--record", &record])).home(&home).start().await;
    let client = daemon.modern().at_level("debug");
    let meta = json!({"progressToken": "mine", "traceparent": "00-1-2-01", "example.com/x": {"a": 1.0}});
    let params = json!({"name": "progress", "arguments": {"steps": 1, "ms": 1}, "_meta": meta});
    client.post(&client.message("tools/call", params)).await.answer().await;
    let seen = parsed(&record).into_iter().find(|message| message["method"] == "tools/call").unwrap();
    let id = seen["id"].as_u64().unwrap();
    assert!(id >= 1);
    let expected = json!({"progressToken": id, "traceparent": "00-1-2-01", "example.com/x": {"a": 1.0}});
    assert_eq!(seen["params"]["_meta"], expected);
    let before = lines(&record);
    assert!(
        !before.iter().skip(1).any(|line| line.contains("io.modelcontextprotocol/")),
        "but for the question of the era"
    );
}

// checks 10 11
#[tokio::test]
async fn ids_and_arguments_are_not_touched() {
    for era in BACKS {
        let home = Home::new();
        let record = home.file("record");
        let flags = ["--era", era, "--request-timeout", "200ms"];
        let daemon = Launch::run(&flags, &demo(&["--era", era, "--record", &record])).home(&home).start().await;
        let client = daemon.modern();
        for id in ["1", r#""1""#, "9007199254740993", "-7", r#""\u0041\/""#, r#""""#, "0", r#""ünïcode""#] {
            let call = client.tool("whoami", json!({}));
            let text = call.to_string().replace(&format!(r#""id":{}"#, call["id"]), &format!(r#""id":{id}"#));
            let answer = client.request(&call).body(text).send().await.text().await;
            let written = answer.split(r#""id":"#).nth(1).unwrap();
            assert!(
                written.starts_with(&format!("{id},")) || written.starts_with(&format!("{id}}}")),
                "{id}: {answer}"
            );
        }
        let odd = "{ \"text\" : \"a\u{2028}b \\ud800 \\u00e9 \\/\",\r\n \"x\":[1.0,1e400,-0,12345678901234567890] }";
        let call = client.tool("echo", json!("ARGUMENTS"));
        let text = call.to_string().replace(r#""ARGUMENTS""#, odd);
        // Half a character is more than the demo server can read: its tool says so.
        let answer = client.request(&call).body(text).send().await.json().await;
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        let seen = lines(&record).into_iter().find(|line| line.contains("echo")).unwrap();
        assert!(seen.contains(&odd.replace("\r\n", "  ")), "{era}: {seen}");
    }
}

// B-25: there is no session that could have ended.
#[tokio::test]
async fn a_daemon_that_stops_says_so_to_a_call_that_waits() {
    for era in BACKS {
        let home = Home::new();
        let record = home.file("record");
        let command = demo(&["--era", era, "--record", &record]);
        let mut daemon = Launch::run(&["--era", era], &command).home(&home).start().await;
        let client = daemon.modern();
        let waiting = tokio::spawn(async move {
            let reply = client.post(&client.tool("slow", json!({"ms": 600_000, "text": "never"}))).await;
            (reply.status, reply.json().await["error"]["code"].as_i64())
        });
        until("the call is with the child", async || lines(&record).iter().any(|line| line.contains("slow"))).await;
        daemon.signal(Signal::TERM);
        assert_eq!(waiting.await.unwrap(), (503, Some(-32603)), "{era}");
        assert_eq!(daemon.ended().await.code(), Some(0));
    }
}

// B-08: the same that a client of the older era is told.
#[tokio::test]
async fn a_server_that_cannot_be_started_is_told_of() {
    let daemon = Daemon::run(&["--era", "legacy"], &["--fault", "die-at-start"]).await;
    let client = daemon.modern();
    let reply = client.ask("server/discover", json!({})).await;
    assert_eq!(reply.status, 503);
    let told = reply.json().await["error"].take();
    assert_eq!((&told["code"], &told["data"]["reason"]), (&json!(-32603), &json!("upstream_unavailable")), "{told}");
    let rest = client.listen(json!("l"), json!({"toolsListChanged": true})).await.rest().await;
    assert_eq!(rest.len(), 1, "{rest:?}");
    let last = rest[0].json();
    assert_eq!(
        (&last["id"], &last["error"]["data"]["reason"]),
        (&json!("l"), &json!("upstream_unavailable")),
        "{last}"
    );
}
