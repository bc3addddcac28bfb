//! Both eras at once, on one URL and towards one server: who speaks what, how it is found out, and what a client of the
//! older era sees of a server of the newer one (mcp-eras 4.1, 4.3, 5.7 B).

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::{Daemon, Home, Launch, MODERN, Modern, NEWEST, demo, destination, lines, result_text, until};

const BACKS: [&str; 2] = ["legacy", "modern"];

const STARTS: &str = r#"prism_child_starts_total{destination="a"}"#;

fn shell(script: &str) -> Vec<String> {
    ["sh", "-c", script].map(str::to_owned).to_vec()
}

/// The revision that the server was spoken to in.
async fn spoken(client: &Modern) -> String {
    let seen: Value = client.text("caps", json!({})).await.parse().unwrap();
    seen["protocolVersion"].as_str().unwrap().to_owned()
}

/// What `prism list` says of the one destination: its era, and whether it was set.
async fn listed(home: &Home) -> (String, bool) {
    let arguments = ["list", "--json", "--config", &home.file("it.toml")].map(str::to_owned).to_vec();
    let text = Launch::prism(arguments).home(home).output().await;
    let rows: Value = text.parse().unwrap();
    (rows[0]["era"].as_str().unwrap().to_owned(), rows[0]["era_set"].as_bool().unwrap())
}

// checks 14
#[tokio::test]
async fn a_modern_client_beside_a_legacy_session_changes_nothing_for_either() {
    for era in BACKS {
        let daemon = Daemon::run(&["--era", era], &["--era", era]).await;
        let session = daemon.client().initialize().await;
        let mut aside = session.listen().await;
        session.ask("logging/setLevel", json!({"level": "debug"})).await;
        // With the id of the session in its head, which means nothing to it.
        let modern = Modern::new(session.clone());
        let mut calls = JoinSet::new();
        for i in 0..20_u64 {
            let (session, modern) = (session.clone(), modern.clone());
            calls.spawn(async move {
                let text = format!("text {i}");
                let arguments = json!({"steps": 2, "ms": 30 - i, "text": text});
                let params = json!({"name": "progress", "arguments": arguments, "_meta": {"progressToken": 1}});
                let mut call = modern.message("tools/call", params);
                call["id"] = 1.into();
                let reply = if i % 2 == 0 {
                    modern.post(&call).await
                } else {
                    call["params"]["_meta"] = json!({"progressToken": 1});
                    session.post(&call).await
                };
                let events = reply.events().rest().await;
                assert_eq!(events.iter().any(|event| event.id.is_some()), i % 2 == 1, "only sessions are resumed");
                let all: Vec<Value> = events.iter().filter(|e| !e.data.is_empty()).map(|event| event.json()).collect();
                assert_eq!(all.len(), 3, "{all:?}");
                assert!(all[..2].iter().all(|note| note["params"]["message"] == text.as_str()), "{all:?}");
                assert_eq!((&all[2]["id"], result_text(&all[2])), (&json!(1), text.as_str()));
                assert_eq!(all[2]["result"].get("resultType").is_some(), i % 2 == 0, "{}", all[2]);
            });
        }
        calls.join_all().await;
        // The session's level is not the other's, nor its capabilities, nor its stream.
        let log = json!({"level": "error", "text": "x"});
        assert!(!modern.post(&modern.tool("log", log.clone())).await.is_stream(), "{era}");
        assert!(session.call("log", log).await.is_stream(), "{era}");
        let asked = modern.can(json!({"roots": {}})).call("ask", json!({"kind": "roots", "text": "x"})).await;
        assert_eq!(asked["resultType"], "input_required", "{era}");
        let answer = session.call("ask", json!({"kind": "roots", "text": "x"})).await.answer().await;
        assert!(answer["result"]["isError"] == true || answer["error"].is_object(), "{era}: {answer}");
        session.text("change", json!({"what": "tools"})).await;
        assert_eq!(aside.message().await["method"], "notifications/tools/list_changed", "{era}: and nothing before it");
        let sessions = r#"prism_sessions{destination="run"}"#;
        assert_eq!(daemon.metric(sessions).await, Some(1), "{era}");
    }
}

// mcp-eras 4.1: what is not translated cannot be lost on the way, and some tools of a
// server of both eras work in one of them only.
#[tokio::test]
async fn a_server_of_both_eras_is_spoken_to_in_each_clients_own_and_that_is_remembered() {
    let home = Home::new();
    let record = home.file("record");
    let config = destination("a", &["--era", "both", "--record", &record], "");
    let daemon = Launch::serve(&config).home(&home).start().await;
    assert_eq!(listed(&home).await, ("auto".to_owned(), false));
    let session = daemon.client_at("/a/mcp").initialize().await;
    let seen: Value = session.text("caps", json!({})).await.parse().unwrap();
    assert_eq!(seen["protocolVersion"], NEWEST);
    assert_eq!(spoken(&Modern::new(daemon.client_at("/a/mcp"))).await, MODERN);
    assert_eq!(daemon.metric(STARTS).await, Some(2), "one for each");
    assert_eq!(daemon.children().len(), 2);
    let told = || daemon.stderr().lines().any(|line| line.contains("Server is ready") && line.contains("modern"));
    until("the log says so", async || told()).await;
    until("it is remembered", async || listed(&home).await == ("both".to_owned(), false)).await;
    daemon.stop().await;

    let before = lines(&record).len();
    let daemon = Launch::serve(&config).home(&home).start().await;
    assert_eq!(spoken(&Modern::new(daemon.client_at("/a/mcp"))).await, MODERN);
    assert_eq!(daemon.metric(STARTS).await, Some(1));
    let asked = &lines(&record)[before..];
    assert!(!asked.iter().any(|line| line.contains(r#""initialize""#)), "{asked:?}");
}

// R-52: Python's SDK 2.3 binds a process to the era of the first question that it reads.
#[tokio::test]
async fn a_server_whose_process_is_bound_by_the_first_question_is_spoken_to_in_each_clients_own_era() {
    let server = demo(&["--era"]).join(" ");
    let era = r#"read -r line; case "$line" in *server/discover*) era=modern;; *) era=legacy;; esac"#;
    let script = format!(r#"{era}; {{ printf '%s\n' "$line"; cat; }} | {server} $era"#);
    for modern_first in [false, true] {
        let daemon = Launch::run(&[], &shell(&script)).start().await;
        if modern_first {
            assert_eq!(spoken(&daemon.modern()).await, MODERN);
        }
        let session = daemon.client().initialize_as(NEWEST, json!({"elicitation": {}})).await;
        let seen: Value = session.text("caps", json!({})).await.parse().unwrap();
        assert_eq!(seen["protocolVersion"], NEWEST, "{seen}");
        assert_eq!(spoken(&daemon.modern()).await, MODERN);
    }
}

// mcp-eras 4.1
#[tokio::test]
async fn a_legacy_server_is_found_to_be_one_and_serves_both_kinds_of_clients() {
    let home = Home::new();
    let record = home.file("record");
    let config = destination("a", &["--record", &record], "");
    let daemon = Launch::serve(&config).home(&home).start().await;
    assert_eq!(spoken(&Modern::new(daemon.client_at("/a/mcp"))).await, NEWEST);
    daemon.client_at("/a/mcp").initialize().await.child().await;
    assert_eq!(daemon.metric(STARTS).await, Some(2), "the first was started to find out");
    until("it is remembered", async || listed(&home).await == ("legacy".to_owned(), false)).await;
    daemon.stop().await;

    let before = lines(&record).len();
    let daemon = Launch::serve(&config).home(&home).start().await;
    daemon.client_at("/a/mcp").initialize().await.child().await;
    let asked = &lines(&record)[before..];
    assert!(!asked.iter().any(|line| line.contains("server/discover")), "{asked:?}");
}

// mcp-eras 4.1: `era` is not found out.
#[tokio::test]
async fn an_era_that_is_set_is_the_one_that_is_spoken() {
    for (era, revision, never) in [("legacy", NEWEST, "server/discover"), ("modern", MODERN, r#""initialize""#)] {
        let home = Home::new();
        let record = home.file("record");
        let command = demo(&["--era", "both", "--record", &record]);
        let daemon = Launch::run(&["--era", era], &command).home(&home).start().await;
        assert_eq!(spoken(&daemon.modern()).await, revision);
        daemon.client().initialize().await.child().await;
        assert!(!lines(&record).iter().any(|line| line.contains(never)), "{era}");
        assert_eq!(daemon.metric(r#"prism_child_starts_total{destination="run"}"#).await, Some(1), "{era}");
        let settings = format!("era = {era:?}");
        let _daemon = Launch::serve(&destination("a", &[], &settings)).home(&home).start().await;
        assert_eq!(listed(&home).await, (era.to_owned(), true));
    }
    // One that does not speak it is no reason to speak the other.
    let daemon = Daemon::run(&["--era", "modern"], &[]).await;
    let reply = daemon.modern().ask("tools/list", json!({})).await;
    assert_eq!(reply.status, 503);
    let told = reply.json().await["error"]["message"].take();
    assert!(told.as_str().unwrap().contains(r#"era = "modern" is set"#), "{told}");
}

// checks 111
#[tokio::test]
async fn a_server_that_ends_on_a_question_it_does_not_know_is_served_all_the_same() {
    let server = demo(&[]).join(" ");
    let first = r#"read -r line; case "$line" in *server/discover*) exit 1;; esac"#;
    let script = format!(r#"{first}; {{ printf '%s\n' "$line"; cat; }} | {server}"#);
    let daemon = Launch::run(&[], &shell(&script)).start().await;
    assert_eq!(daemon.modern().text("echo", json!({"text": "hello"})).await, "hello");
    let session = daemon.client().initialize().await;
    assert_eq!(session.text("echo", json!({"text": "hello"})).await, "hello");
    assert_eq!(daemon.metric(r#"prism_child_starts_total{destination="run"}"#).await, Some(3));
}

// checks 111
#[tokio::test]
async fn a_server_that_says_nothing_to_a_question_it_does_not_know_keeps_nobody_waiting() {
    let script = format!("sed -u '/server.discover/d' | {}", demo(&[]).join(" "));
    let daemon = Launch::run(&[], &shell(&script)).start().await;
    let begun = Instant::now();
    assert_eq!(daemon.modern().text("echo", json!({"text": "hello"})).await, "hello");
    assert_eq!(daemon.client().initialize().await.text("echo", json!({"text": "hello"})).await, "hello");
    // The other question would be waited for that long.
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

// checks 49 50
#[tokio::test]
async fn a_legacy_client_sees_nothing_of_a_modern_server_but_what_it_knows() {
    let daemon = Daemon::run(&["--era", "modern"], &["--era", "modern"]).await;
    for version in ["2025-03-26", "2025-06-18", NEWEST] {
        let session = daemon.client().initialize_as(version, json!({})).await;
        let ask = async |method: &str, params: Value| {
            let reply = session.ask(method, params).await;
            assert_eq!(reply.status, 200, "{method}");
            reply.answer().await
        };
        assert_eq!(ask("ping", json!({})).await["result"], json!({}));
        assert_eq!(ask("logging/setLevel", json!({"level": "debug"})).await["result"], json!({}));
        assert_eq!(ask("resources/subscribe", json!({"uri": "demo://counter"})).await["result"], json!({}));
        for (method, params) in [
            ("tools/list", json!({})),
            ("prompts/list", json!({})),
            ("resources/list", json!({})),
            ("resources/templates/list", json!({})),
            ("resources/read", json!({"uri": "demo://hello"})),
            ("prompts/get", json!({"name": "greet", "arguments": {"name": "Ada"}})),
            ("tools/call", json!({"name": "whoami", "arguments": {}})),
        ] {
            let result = ask(method, params).await["result"].take();
            assert!(result.is_object(), "{method}");
            for name in ["resultType", "ttlMs", "cacheScope"] {
                assert_eq!(result.get(name), None, "{version} {method}: {result}");
            }
            assert!(!result["_meta"].to_string().contains("io.modelcontextprotocol/"), "{version} {method}: {result}");
        }
        let error = ask("resources/read", json!({"uri": "demo://nowhere"})).await["error"].take();
        assert_eq!((&error["code"], &error["data"]["uri"]), (&json!(-32002), &json!("demo://nowhere")), "{version}");
        assert_eq!(ask("nothing/like/it", json!({})).await["error"]["code"], -32601, "{version}");
    }
}

// checks 52 53
#[tokio::test]
async fn blocks_that_a_revision_does_not_know_are_told_in_other_words() {
    for era in BACKS {
        let daemon = Daemon::run(&["--era", era], &["--era", era]).await;
        let show = async |version: &str, kind: &str| {
            let session = daemon.client().initialize_as(version, json!({})).await;
            session.call("show", json!({"kind": kind})).await.answer().await["result"].take()
        };
        let link = show("2025-03-26", "resource_link").await["content"][0].take();
        assert_eq!(link["type"], "text", "{era}: {link}");
        assert!(link["text"].as_str().unwrap().contains("demo://hello"), "{era}: {link}");
        assert_eq!(show("2025-06-18", "resource_link").await["content"][0]["type"], "resource_link", "{era}");
        assert_eq!(show("2025-03-26", "audio").await["content"][0]["type"], "audio", "{era}");
        assert_eq!(show("2025-06-18", "structured").await["structuredContent"], json!({"sum": 3}), "{era}");
        let older = show("2025-03-26", "structured").await;
        assert_eq!(older.get("structuredContent"), None, "{era}: {older}");
        assert!(older["content"].to_string().contains(r#"\"sum\":3"#), "{era}: {older}");
    }
    // Only the newer era has results that are no objects.
    let daemon = Daemon::run(&["--era", "modern"], &["--era", "modern"]).await;
    for version in ["2025-06-18", NEWEST] {
        let session = daemon.client().initialize_as(version, json!({})).await;
        let result = session.call("show", json!({"kind": "list"})).await.answer().await["result"].take();
        assert_eq!(result.get("structuredContent"), None, "{version}: {result}");
        assert_eq!(result["content"][0]["text"], "[1,2]", "{version}: {result}");
    }
    assert_eq!(daemon.modern().call("show", json!({"kind": "list"})).await["structuredContent"], json!([1, 2]));
}

// mcp-eras 5.7 B
// checks 32 33
#[tokio::test]
async fn a_legacy_client_is_asked_what_a_modern_server_wants_to_know() {
    let daemon = Daemon::run(&["--era", "modern"], &["--era", "modern"]).await;
    let able = json!({"sampling": {}, "elicitation": {}, "roots": {}});
    let session = daemon.client().initialize_as(NEWEST, able).await;
    let mut aside = session.listen().await;
    let arguments = json!({"kind": "elicitation", "text": "one?", "also": "two?"});
    let mut stream = session.call("ask", arguments).await.events();
    let mut questions = [stream.message().await, stream.message().await];
    questions.sort_by_key(|question| question["params"]["message"].to_string());
    assert_ne!(questions[0]["id"], questions[1]["id"]);
    for (question, text) in questions.iter().zip(["one?", "two?"]).rev() {
        assert_eq!((&question["method"], &question["params"]["message"]), (&json!("elicitation/create"), &json!(text)));
        let result = json!({"action": "accept", "content": {"answer": format!("to {text}")}});
        assert_eq!(session.post(&json!({"jsonrpc": "2.0", "id": question["id"], "result": result})).await.status, 202);
    }
    let answer = stream.message().await;
    let answers: Value = result_text(&answer).parse().unwrap();
    assert_eq!(answers[0]["content"]["answer"], "to one?", "{answers}");
    assert_eq!(answers[1]["content"]["answer"], "to two?", "{answers}");
    assert_eq!(stream.next().await, None);

    // A person who refuses: a form is cancelled, and without an answer of a model the call has failed.
    for (kind, told) in [("elicitation", r#"{"action":"cancel"}"#), ("sampling", "refused")] {
        let mut stream = session.call("ask", json!({"kind": kind, "text": "x"})).await.events();
        let question = stream.message().await;
        let error = json!({"code": -1, "message": "no"});
        session.post(&json!({"jsonrpc": "2.0", "id": question["id"], "error": error})).await;
        let answer = stream.message().await;
        assert!(result_text(&answer).contains(told), "{answer}");
    }
    session.text("change", json!({"what": "tools"})).await;
    assert_eq!(aside.message().await["method"], "notifications/tools/list_changed", "the first on this stream");
}

// checks 110
#[tokio::test]
async fn a_modern_child_hears_requests_with_all_that_belongs_to_them_and_no_answers() {
    let home = Home::new();
    let record = home.file("record");
    let command = demo(&["--era", "modern", "--record", &record]);
    let daemon = Launch::run(&["--era", "modern"], &command).home(&home).start().await;
    let session = daemon.client().initialize_as(NEWEST, json!({"roots": {}})).await;
    let mut stream = session.listen().await;
    session.text("change", json!({"what": "tools"})).await;
    assert_eq!(stream.message().await["method"], "notifications/tools/list_changed");
    let mut asking = session.call("ask", json!({"kind": "roots", "text": "x"})).await.events();
    let question = asking.message().await;
    session.post(&json!({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}})).await;
    assert_eq!(result_text(&asking.message().await), r#"{"roots":[]}"#);
    let call = json!({"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": {
        "name": "slow", "arguments": {"ms": 600_000, "text": "x"},
    }});
    let waiting = {
        let session = session.clone();
        tokio::spawn(async move { session.post(&call).await.events().rest().await })
    };
    until("the call is with the child", async || lines(&record).iter().any(|line| line.contains("slow"))).await;
    session.notify("notifications/cancelled", json!({"requestId": "c"})).await;
    assert_eq!(waiting.await.unwrap(), []);
    session.notify("notifications/roots/list_changed", json!({})).await;
    daemon.modern().child().await;

    let seen: Vec<Value> = lines(&record).iter().map(|line| line.parse().unwrap()).collect();
    let slow = seen.iter().find(|message| message["params"]["name"] == "slow").unwrap();
    for message in &seen {
        let method = message["method"].as_str().unwrap_or_else(|| panic!("an answer: {message}"));
        if message.get("id").is_none() {
            assert_eq!((method, &message["params"]["requestId"]), ("notifications/cancelled", &slow["id"]));
            continue;
        }
        assert!(message["id"].as_u64().is_some_and(|id| id >= 1), "{message}");
        let meta = &message["params"]["_meta"];
        assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], MODERN, "{message}");
        assert!(meta["io.modelcontextprotocol/clientCapabilities"].is_object(), "{message}");
        assert!(meta["io.modelcontextprotocol/clientInfo"]["name"].is_string(), "{message}");
        assert_ne!(method, "initialize");
    }
    let asked = seen.iter().filter(|message| message["params"]["name"] == "ask");
    for call in asked {
        let able = &call["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
        assert_eq!(able, &json!({"roots": {}}), "what its own client can do");
    }
}
