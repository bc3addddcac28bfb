//! Questions of servers behind the hub: each reaches the client that is meant, and the answer the one that asked (B-27).

use std::collections::HashSet;

use futures_util::future::join_all;
use hyper::Method;
use serde_json::{Value, json};

use crate::support::{
    Client, Daemon, Events, Home, NEWEST, destination,
    hub::serve,
    lines, result_text, until,
    upstream::{calling, got_text, note},
};

fn everything() -> Value {
    json!({"sampling": {}, "elicitation": {}, "roots": {"listChanged": true}})
}

async fn two(a: &[&str], b: &[&str]) -> Daemon {
    serve(&[destination("a", a, ""), destination("b", b, "")]).await
}

fn ask(member: &str, kind: &str, text: &str) -> Value {
    json!({"name": format!("{member}__ask"), "arguments": {"kind": kind, "text": text}})
}

/// What a client answers a question: something that the text of the question is in.
fn reply(question: &Value) -> Value {
    let params = &question["params"];
    let result = match question["method"].as_str() {
        Some("elicitation/create") => {
            json!({"action": "accept", "content": {"answer": format!("to {}", params["message"].as_str().unwrap())}})
        }
        Some("sampling/createMessage") => {
            let text = params["messages"][0]["content"]["text"].as_str().unwrap();
            let content = json!({"type": "text", "text": format!("to {text}")});
            json!({"role": "assistant", "model": "m", "content": content})
        }
        Some("roots/list") => json!({"roots": [{"uri": format!("file:///{}", question["id"])}]}),
        other => panic!("no question: {other:?}"),
    };
    json!({"jsonrpc": "2.0", "id": question["id"], "result": result})
}

/// Reads a call's stream up to its question, which has to come.
async fn question(events: &mut Events) -> Value {
    let question = events.message().await;
    assert!(question["method"].is_string() && question.get("id").is_some(), "no question: {question}");
    question
}

// B-27
#[tokio::test]
async fn two_members_ask_one_client_at_once_and_each_gets_its_own_answer() {
    for (a, b) in [("legacy", "legacy"), ("legacy", "modern"), ("modern", "modern")] {
        let daemon = two(&["--era", a], &["--era", b]).await;
        let hub = daemon.hub().initialize_as(NEWEST, everything()).await;
        for kind in ["elicitation", "sampling", "roots"] {
            let mut asked = Vec::new();
            // Everybody asks before anybody is answered.
            for member in ["a", "b", "a", "b"] {
                let text = format!("{member} {}", asked.len());
                let mut events = hub.ask("tools/call", ask(member, kind, &text)).await.events();
                let question = question(&mut events).await;
                asked.push((text, question, events));
            }
            let ids: HashSet<String> = asked.iter().map(|(_, question, _)| question["id"].to_string()).collect();
            assert_eq!(ids.len(), 4, "{asked:?}", asked = ids);
            for (_, question, _) in asked.iter().rev() {
                assert_eq!(hub.post(&reply(question)).await.status, 202);
            }
            for (text, question, events) in asked {
                let answer = events.rest().await.last().unwrap().json();
                let said = result_text(&answer);
                match kind {
                    "roots" => assert!(said.contains(&format!("file:///{}", question["id"])), "{a} {b}: {said}"),
                    _ => assert!(said.contains(&format!("to {text}")), "{a} {b}: {said}"),
                }
            }
        }
    }
}

// B-27
#[tokio::test]
async fn an_answer_of_another_session_reaches_nobody() {
    let daemon = two(&[], &[]).await;
    let (one, other) = (
        daemon.hub().initialize_as(NEWEST, everything()).await,
        daemon.hub().initialize_as(NEWEST, everything()).await,
    );
    let mut of_one = one.ask("tools/call", ask("a", "elicitation", "one")).await.events();
    let mut of_other = other.ask("tools/call", ask("b", "elicitation", "other")).await.events();
    let (first, second) = (question(&mut of_one).await, question(&mut of_other).await);
    assert_eq!(other.post(&reply(&first)).await.status, 202);
    assert_eq!(one.post(&reply(&second)).await.status, 202);
    for wild in [json!(0), json!("x"), json!(u64::MAX), json!(4_294_967_295_u64), json!(99_u64 << 32)] {
        assert_eq!(one.post(&json!({"jsonrpc": "2.0", "id": wild, "result": {}})).await.status, 202);
    }
    one.post(&reply(&first)).await;
    other.post(&reply(&second)).await;
    assert!(result_text(&of_one.rest().await.last().unwrap().json()).contains("to one"));
    assert!(result_text(&of_other.rest().await.last().unwrap().json()).contains("to other"));
}

// B-27
#[tokio::test]
async fn questions_that_belong_to_no_call_come_on_the_get_stream_once() {
    let home = Home::new();
    let (a, b) = (home.file("a"), home.file("b"));
    let fault = |file| ["--fault", "late-ask", "--record", file];
    let daemon = two(&fault(&a), &fault(&b)).await;
    let hub = daemon.hub().initialize_as(NEWEST, everything()).await;
    let (mut older, mut newer) = (hub.listen().await, hub.listen().await);
    for member in ["a", "b"] {
        assert_eq!(
            hub.text(&format!("{member}__ask"), json!({"kind": "elicitation", "text": member})).await,
            "the question comes later"
        );
    }
    let first = question(&mut newer).await;
    let second = question(&mut newer).await;
    assert_ne!(first["id"], second["id"]);
    for asked in [&second, &first] {
        hub.post(&reply(asked)).await;
    }
    for (file, member) in [(&a, "a"), (&b, "b")] {
        let answered = || lines(file).iter().filter(|line| line.contains(&format!("to {member}"))).count();
        until("the answer is there", async || answered() == 1).await;
        assert!(!lines(file).iter().any(|line| line.contains("to ") && !line.contains(&format!("to {member}"))));
    }
    // The other stream has seen neither; what is for all comes on both.
    hub.text("a__change", json!({"what": "prompts"})).await;
    assert_eq!(older.message().await["method"], "notifications/prompts/list_changed");
}

// B-28, B-27
#[tokio::test]
async fn a_question_that_nobody_has_seen_waits_at_home() {
    let daemon = two(&["--fault", "late-ask"], &["--fault", "late-ask"]).await;
    let hub = daemon.hub().initialize_as(NEWEST, everything()).await;
    for member in ["a", "b"] {
        hub.text(&format!("{member}__ask"), json!({"kind": "elicitation", "text": member})).await;
    }
    let mut stream = hub.listen().await;
    let events = [next(&mut stream).await, next(&mut stream).await];
    gone(&daemon, stream).await;
    // Once more from the first on: the second is still open, unless it was answered.
    let mut resumed = hub.resume(events[0].0.as_deref().unwrap()).await.events();
    assert_eq!(next(&mut resumed).await.1["id"], events[1].1["id"]);
    hub.post(&reply(&events[1].1)).await;
    gone(&daemon, resumed).await;
    let mut resumed = hub.resume(events[0].0.as_deref().unwrap()).await.events();
    hub.text("b__change", json!({"what": "tools"})).await;
    assert_eq!(next(&mut resumed).await.1["method"], "notifications/tools/list_changed", "an answered one is over");
}

/// Closes a stream, and waits until the daemon has noticed.
async fn gone(daemon: &Daemon, stream: Events) {
    let streams = async || daemon.metric(r#"prism_streams{destination="prism"}"#).await.expect("it is counted");
    let before = streams().await;
    drop(stream);
    until("the stream is gone", async || streams().await < before).await;
}

/// The next event that carries a message: its id, and the message.
async fn next(stream: &mut Events) -> (Option<String>, Value) {
    loop {
        let event = stream.next().await.expect("the stream goes on");
        if !event.data.is_empty() {
            return (event.id.clone(), event.json());
        }
    }
}

// B-28, B-27
#[tokio::test]
async fn the_stream_of_a_members_call_goes_on_where_it_broke() {
    for era in ["legacy", "modern"] {
        let daemon = two(&["--era", era], &["--era", era]).await;
        let hub = daemon.hub().initialize_as(NEWEST, everything()).await;
        let mut broken = Vec::new();
        for member in ["a", "b"] {
            let mut events = hub.ask("tools/call", ask(member, "elicitation", member)).await.events();
            let first = events.next().await.unwrap();
            let question = question(&mut events).await;
            broken.push((member, first.id.unwrap(), question));
        }
        let ids: HashSet<&String> = broken.iter().map(|(_, id, _)| id).collect();
        assert_eq!(ids.len(), 2, "{era}: event ids name their stream: {ids:?}");
        for (member, after, asked) in broken {
            let mut resumed = hub.resume(&after).await.events();
            let again = question(&mut resumed).await;
            assert_eq!(again, asked, "{era}: what was not answered is told again");
            hub.post(&reply(&again)).await;
            let answer = resumed.message().await;
            assert!(result_text(&answer).contains(&format!("to {member}")), "{era}: {answer}");
            assert_eq!(resumed.next().await, None, "{era}: and it is over");
        }
        for wrong in ["38654705665-0", "8589934593-99", "99999999999999999999-0", "x"] {
            assert_eq!(hub.resume(wrong).await.status, 400, "{era} {wrong}");
        }
    }
}

// B-27
#[tokio::test]
async fn what_a_client_cannot_answer_is_refused_to_the_member() {
    let daemon = two(&[], &["--era", "modern"]).await;
    let hub = daemon.hub().initialize_as(NEWEST, json!({"elicitation": {}})).await;
    let alone = daemon.client_at("/a/mcp").initialize_as(NEWEST, json!({"elicitation": {}})).await;
    let mut direct = alone
        .ask("tools/call", json!({"name": "ask", "arguments": {"kind": "sampling", "text": "x"}}))
        .await
        .answer()
        .await;
    let mut through = hub.ask("tools/call", ask("a", "sampling", "x")).await.answer().await;
    for answer in [&mut direct, &mut through] {
        answer["id"] = Value::Null;
        answer["result"]["_meta"] = Value::Null;
    }
    assert_eq!(through, direct);
    let modern = hub.ask("tools/call", ask("b", "sampling", "x")).await.answer().await;
    assert!(modern.get("error").is_some() || modern["result"]["isError"] == true, "{modern}");
}

// B-27: what a client says to all, all hear.
#[tokio::test]
async fn a_clients_notes_reach_the_members_that_it_uses() {
    let home = Home::new();
    let (a, b) = (home.file("a"), home.file("b"));
    let daemon = two(&["--record", &a], &["--record", &b]).await;
    let hub = daemon.hub().initialize_as(NEWEST, everything()).await;
    hub.text("a__whoami", json!({})).await;
    hub.notify("notifications/roots/list_changed", json!({})).await;
    let told = |file: &str| lines(file).iter().any(|line| line.contains("roots/list_changed"));
    until("the member knows", async || told(&a)).await;
    hub.text("b__whoami", json!({})).await;
    assert!(!told(&b), "it was not there when the roots changed, and has asked for none");
    // Progress with a question goes to the one that asked.
    let mut events = hub.ask("tools/call", ask("a", "elicitation", "x")).await.events();
    let asked = question(&mut events).await;
    assert_eq!(
        hub.post(&note("notifications/progress", json!({"progressToken": "none", "progress": 1}))).await.status,
        202
    );
    hub.post(&reply(&asked)).await;
    events.rest().await;
}

// B-27
#[tokio::test]
async fn a_client_that_declines_and_a_server_that_takes_back_are_heard() {
    let home = Home::new();
    let a = home.file("a");
    let daemon = two(&["--record", &a], &[]).await;
    let hub = daemon.hub().initialize_as(NEWEST, everything()).await;
    let mut events = hub.ask("tools/call", ask("a", "elicitation", "x")).await.events();
    let asked = question(&mut events).await;
    let error = json!({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -1, "message": "no"}});
    hub.post(&error).await;
    let answer = events.rest().await.last().unwrap().json();
    assert_eq!((&answer["result"]["isError"], result_text(&answer)), (&json!(true), "-1: no"));
    // A call that is cancelled takes its question with it.
    let call = json!({"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": ask("a", "elicitation", "y")});
    let mut events = hub.post(&call).await.events();
    let asked = question(&mut events).await;
    hub.notify("notifications/cancelled", json!({"requestId": "c"})).await;
    let rest = events.rest().await;
    let taken_back = rest.iter().filter(|event| !event.data.is_empty()).map(|event| event.json());
    let taken_back: Vec<Value> = taken_back.filter(|m| m["method"] == "notifications/cancelled").collect();
    assert!(taken_back.iter().all(|m| m["params"]["requestId"] == asked["id"]), "{taken_back:?}");
    assert_eq!(hub.text("a__echo", json!({"text": "next"})).await, "next");
}

// B-27
#[tokio::test]
async fn many_sessions_are_asked_at_once_each_by_both_members() {
    let daemon =
        serve(&["max_sessions = 100\n".to_owned(), destination("a", &[], ""), destination("b", &[], "")]).await;
    let sessions = (0..5).map(|at| {
        let hub = daemon.hub();
        async move {
            let hub = hub.initialize_as(NEWEST, everything()).await;
            // One after the other at each member: on a pipe nothing says which of two calls a question belongs to.
            for round in 0..3 {
                let calls = ["a", "b"].map(|member| {
                    let (hub, text) = (hub.clone(), format!("{at} {round} {member}"));
                    async move { answered(&hub, ask(member, "sampling", &text), &text).await }
                });
                join_all(calls).await;
            }
        }
    });
    join_all(sessions).await;
}

/// Makes a call that asks, answers, and looks at what came of it.
async fn answered(hub: &Client, call: Value, text: &str) {
    let mut events = hub.ask("tools/call", call).await.events();
    let asked = question(&mut events).await;
    assert_eq!(asked["params"]["messages"][0]["content"]["text"], text);
    hub.post(&reply(&asked)).await;
    assert_eq!(result_text(&events.rest().await.last().unwrap().json()), format!("to {text}"));
}

// B-27
#[tokio::test]
async fn a_member_pings_and_the_client_is_not_bothered() {
    let daemon = two(&[], &[]).await;
    let hub = daemon.hub().initialize_as(NEWEST, everything()).await;
    assert_eq!(got_text(calling(&hub, "a__ping_client", json!({}))).await, "pong");
    assert_eq!(hub.request(Method::GET).send().await.status, 200);
}
