//! Servers that ask, and clients of the modern era: a question is an answer, and the same call comes back with what was
//! asked for (mcp-eras 2.6, 5.7).

use serde_json::{Value, json};

use crate::support::{Daemon, Home, Launch, Modern, demo, lines, result_text, until};

const BACKS: [&str; 2] = ["legacy", "modern"];

fn everything() -> Value {
    json!({"sampling": {}, "elicitation": {"form": {}, "url": {}}, "roots": {}})
}

/// The keys of what is asked, in the order of the questions' texts.
fn keys(asked: &Value) -> Vec<String> {
    let requests = asked["inputRequests"].as_object().unwrap_or_else(|| panic!("nothing is asked: {asked}"));
    let mut keys: Vec<(String, String)> =
        requests.iter().map(|(key, request)| (request["params"]["message"].to_string(), key.clone())).collect();
    keys.sort();
    keys.into_iter().map(|(_, key)| key).collect()
}

fn accept(text: &str) -> Value {
    json!({"action": "accept", "content": {"answer": text}})
}

/// The one question of a call.
async fn asked(client: &Modern, arguments: Value) -> Value {
    let asked = client.call("ask", arguments).await;
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    asked
}

// checks 71 72 85 86
#[tokio::test]
async fn a_question_comes_as_the_answer_and_the_call_goes_on_with_the_clients() {
    for era in BACKS {
        let home = Home::new();
        let record = home.file("record");
        let daemon =
            Launch::run(&["--era", era], &demo(&["--era", era, "--record", &record])).home(&home).start().await;
        let client = daemon.modern().can(everything());
        let message = json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "mine"}});
        for (kind, method, answer, text) in [
            ("elicitation", "elicitation/create", accept("mine"), accept("mine").to_string()),
            ("sampling", "sampling/createMessage", message, "mine".to_owned()),
            ("roots", "roots/list", json!({"roots": []}), r#"{"roots":[]}"#.to_owned()),
        ] {
            let before = lines(&record).len();
            let arguments = json!({"kind": kind, "text": "what?"});
            let call = client.tool("ask", arguments.clone());
            let reply = client.post(&call).await;
            assert_eq!((reply.status, reply.is_stream()), (200, false), "{era} {kind}");
            let answered = reply.json().await;
            assert_eq!(answered["id"], call["id"]);
            let asked = &answered["result"];
            assert_eq!(asked["resultType"], "input_required", "{era}: {asked}");
            assert_eq!((asked.get("ttlMs"), asked.get("cacheScope")), (None, None), "{era}: {asked}");
            assert!(asked["requestState"].is_string(), "{era}: {asked}");
            let keys = keys(asked);
            assert_eq!(keys.len(), 1, "{era}: {asked}");
            let request = &asked["inputRequests"][&keys[0]];
            assert_eq!(request["method"], method, "{era}");
            assert_eq!((request.get("id"), request.get("jsonrpc")), (None, None), "{era}: {request}");
            assert_eq!(request.to_string().contains("what?"), kind != "roots", "{era}: {request}");

            let done = client.retry("ask", arguments, asked, json!({&keys[0]: answer})).await;
            assert_eq!(
                (result_text(&done), &done["result"]["resultType"]),
                (text.as_str(), &json!("complete")),
                "{era}"
            );
            assert_ne!(done["id"], call["id"], "under the id of the call that came back");
            if era == "legacy" {
                let seen: Vec<Value> = lines(&record)[before..].iter().map(|line| line.parse().unwrap()).collect();
                let calls = seen.iter().filter(|message| message["method"] == "tools/call").count();
                assert_eq!(calls, 1, "one call, however often its client came: {seen:?}");
                assert!(seen.iter().any(|message| message.get("method").is_none() && message["result"] == answer));
            }
        }
    }
}

// checks 72
#[tokio::test]
async fn a_client_that_takes_only_events_gets_its_question_as_the_last_of_them() {
    for era in BACKS {
        let daemon = Daemon::run(&["--era", era], &["--era", era]).await;
        let client = daemon.modern().can(everything());
        let arguments = json!({"kind": "elicitation", "text": "what?"});
        let request = client.request(&client.tool("ask", arguments.clone())).header("accept", "text/event-stream");
        let events = request.send().await.events().rest().await;
        assert_eq!(events.len(), 1, "{events:?}");
        let asked = events[0].json();
        assert_eq!((asked.get("method"), &asked["result"]["resultType"]), (None, &json!("input_required")), "{era}");
        let key = keys(&asked["result"]).remove(0);
        let retried = client.retried("ask", arguments, &asked["result"]["requestState"], json!({key: accept("a")}));
        let request = client.request(&retried).header("accept", "text/event-stream");
        let events = request.send().await.events().rest().await;
        assert_eq!(result_text(&events.last().unwrap().json()), accept("a").to_string(), "{era}");
        assert!(events.iter().all(|event| event.json().get("method").is_none()), "{events:?}");
    }
}

// checks 88
#[tokio::test]
async fn half_an_answer_is_asked_for_the_other_half() {
    for era in BACKS {
        let daemon = Daemon::run(&["--era", era], &["--era", era]).await;
        let client = daemon.modern().can(json!({"elicitation": {}}));
        let arguments = || json!({"kind": "elicitation", "text": "one?", "also": "two?"});
        let first = asked(&client, arguments()).await;
        let both = keys(&first);
        assert_eq!(both.len(), 2, "{era}: both at once: {first}");
        let some = json!({&both[1]: accept("to two"), "nobody asked": {"action": "accept"}});
        let second = client.retry("ask", arguments(), &first, some).await["result"].take();
        assert_eq!(second["resultType"], "input_required", "{era}: {second}");
        assert_eq!(keys(&second), both[..1], "{era}: the rest, under the same key");
        // None at all is no answer either.
        let third = client.retry("ask", arguments(), &second, json!({})).await["result"].take();
        assert_eq!(keys(&third), both[..1], "{era}");
        let done = client.retry("ask", arguments(), &third, json!({&both[0]: accept("to one")})).await;
        let expected = json!([accept("to one"), accept("to two")]).to_string();
        assert_eq!(result_text(&done), expected, "{era}");
    }
}

// checks 88
#[tokio::test]
async fn a_person_who_declines_or_cancels_is_heard() {
    for era in BACKS {
        let daemon = Daemon::run(&["--era", era], &["--era", era]).await;
        let client = daemon.modern().can(json!({"elicitation": {}}));
        for action in ["decline", "cancel"] {
            let arguments = json!({"kind": "elicitation", "text": "what?"});
            let asked = asked(&client, arguments.clone()).await;
            let answer = json!({"action": action});
            let done = client.retry("ask", arguments, &asked, json!({keys(&asked).remove(0): answer})).await;
            assert_eq!(result_text(&done), answer.to_string(), "{era}");
        }
    }
}

// checks 85 106
#[tokio::test]
async fn nobody_is_asked_what_they_did_not_say_they_can_answer() {
    let daemon = Daemon::run(&[], &["--era", "legacy"]).await;
    for (able, kind, code) in [
        (json!({"sampling": {}}), "elicitation", "-32602"),
        (json!({"elicitation": {"url": {}}}), "elicitation", "-32602"),
        (json!({"elicitation": {}}), "sampling", "-32601"),
        (json!({"elicitation": {}}), "roots", "-32601"),
        (json!({}), "roots", "-32601"),
    ] {
        let client = daemon.modern().can(able.clone());
        let result = client.call("ask", json!({"kind": kind, "text": "x"})).await;
        assert_eq!((&result["isError"], &result["resultType"]), (&json!(true), &json!("complete")), "{able} {result}");
        assert!(result["content"][0]["text"].as_str().unwrap().starts_with(code), "{able} {kind}: {result}");
    }
}

// checks 90
#[tokio::test]
async fn a_server_that_wants_a_page_opened_asks_for_it() {
    for era in BACKS {
        let daemon = Daemon::run(&["--era", era], &["--era", era]).await;
        let able = daemon.modern().can(everything());
        let arguments = json!({"url": "https://example.com/sign-in"});
        let asked = able.call("visit", arguments.clone()).await;
        assert_eq!(asked["resultType"], "input_required", "{era}: {asked}");
        let requests = asked["inputRequests"].as_object().unwrap();
        let (key, request) = requests.iter().next().unwrap();
        assert_eq!(request["method"], "elicitation/create", "{era}");
        assert_eq!(
            (&request["params"]["mode"], &request["params"]["url"]),
            (&json!("url"), &arguments["url"]),
            "{era}"
        );
        assert_eq!(request["params"].get("elicitationId"), None, "{era}: this era has none");
        let done = able.retry("visit", arguments.clone(), &asked, json!({key: {"action": "accept"}})).await;
        assert_eq!(done["result"]["resultType"], "complete", "{era}: {done}");

        let unable = daemon.modern().can(json!({"elicitation": {}}));
        let reply = unable.post(&unable.tool("visit", arguments)).await;
        let (status, body) = (reply.status, reply.json().await);
        assert_eq!((status, &body["error"]["code"]), (400, &json!(-32021)), "{era}: {body}");
        assert_eq!(body["error"]["data"]["requiredCapabilities"], json!({"elicitation": {"url": {}}}), "{era}");
    }
}

// mcp-eras 5.10: the POST that a question ended is over, and its call is not.
#[tokio::test]
async fn a_call_that_waits_for_its_client_is_not_cancelled() {
    let home = Home::new();
    let record = home.file("record");
    let daemon = Launch::run(&[], &demo(&["--record", &record])).home(&home).start().await;
    let client = daemon.modern().can(everything());
    let arguments = json!({"kind": "elicitation", "text": "one?", "also": "two?"});
    let first = asked(&client, arguments.clone()).await;
    let both = keys(&first);
    let second = client.retry("ask", arguments.clone(), &first, json!({&both[0]: accept("a")})).await["result"].take();
    assert_eq!(second["resultType"], "input_required");
    let done = client.retry("ask", arguments, &second, json!({&both[1]: accept("b")})).await;
    assert_eq!(result_text(&done), json!([accept("a"), accept("b")]).to_string());
    assert!(!lines(&record).iter().any(|line| line.contains("notifications/cancelled")));
    let streams = r#"prism_streams{destination="run"}"#;
    until("no stream is left", async || daemon.metric(streams).await == Some(0)).await;
}

// The demo server's state is good for one process, as that of many servers is: the era that is
// found out meanwhile must not send the client's second request to another child than its first.
// checks 86
#[tokio::test]
async fn a_question_of_a_server_whose_era_is_not_known_yet_is_answered_to_the_same_child() {
    let daemon = Daemon::run(&[], &["--era", "modern"]).await;
    let client = daemon.modern().can(everything());
    let arguments = json!({"kind": "elicitation", "text": "what?"});
    let asked = asked(&client, arguments.clone()).await;
    let done = client.retry("ask", arguments, &asked, json!({keys(&asked).remove(0): accept("mine")})).await;
    assert_eq!(done["result"]["resultType"], "complete", "{done}");
    assert_eq!(daemon.children().len(), 1);
}
