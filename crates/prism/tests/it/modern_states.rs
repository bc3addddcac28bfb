//! Whose question it is, where nothing but a `requestState` leads back to a call: for whom it is good, for what, and
//! how often (mcp-eras 5.7 A).

use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::{Daemon, Home, Launch, Modern, demo, lines, process, result_text, until};

fn arguments(text: &str) -> Value {
    json!({"kind": "elicitation", "text": text})
}

fn accept(text: &str) -> Value {
    json!({"action": "accept", "content": {"answer": text}})
}

fn named(daemon: &Daemon, name: &str) -> Modern {
    daemon.modern().named(name).can(json!({"elicitation": {}}))
}

/// Calls a tool that asks, and returns the key and the state of its question.
async fn park(client: &Modern, text: &str) -> (String, Value) {
    let asked = client.call("ask", arguments(text)).await;
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let (key, request) = asked["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert_eq!(request["params"]["message"], text, "it is the question of this call");
    (key.clone(), asked["requestState"].clone())
}

/// What comes of a call that brings a state back.
async fn present(client: &Modern, text: &str, state: &Value, key: &str, answer: &str) -> Value {
    let message = client.retried("ask", arguments(text), state, json!({key: accept(answer)}));
    let reply = client.post(&message).await;
    assert_eq!(reply.status, 200);
    reply.answer().await
}

async fn refused(client: &Modern, text: &str, state: &Value, key: &str, why: &str) {
    let answer = present(client, text, state, key, "stolen").await;
    assert_eq!(answer["error"]["code"], -32602, "{why}: {answer}");
}

fn altered(state: &Value, change: impl Fn(&str) -> String) -> Value {
    let text = state.as_str().unwrap();
    let changed = change(text);
    assert_ne!(changed, text);
    changed.into()
}

// checks 86 87 92 104
#[tokio::test]
async fn two_clients_that_are_asked_at_once_get_each_their_own_question_and_answer() {
    let home = Home::new();
    let record = home.file("record");
    let daemon = Launch::run(&[], &demo(&["--record", &record])).home(&home).start().await;
    let (a, b) = (named(&daemon, "a"), named(&daemon, "b"));
    let ((a_key, a_state), (b_key, b_state)) = tokio::join!(park(&a, "of a?"), park(&b, "of b?"));
    assert_ne!(a_state, b_state);
    // But for the handshake with a further child.
    let heard = || lines(&record).iter().filter(|line| !line.contains("initialize")).count();
    let before = heard();

    refused(&b, "of a?", &a_state, &a_key, "another client").await;
    refused(&b, "of b?", &a_state, &a_key, "another client with its own call").await;
    refused(&a, "of b?", &a_state, &a_key, "other arguments").await;
    let other = json!({"kind": "elicitation", "text": "of a?", "also": "more"});
    let message = a.retried("ask", other, &a_state, json!({&a_key: accept("stolen")}));
    assert_eq!(a.post(&message).await.answer().await["error"]["code"], -32602, "more arguments");
    let message = a.retried("echo", arguments("of a?"), &a_state, json!({&a_key: accept("stolen")}));
    assert_eq!(a.post(&message).await.answer().await["error"]["code"], -32602, "another tool");
    let last = |text: &str| {
        let digit = if text.ends_with('0') { '1' } else { '0' };
        format!("{}{digit}", &text[..text.len() - 1])
    };
    refused(&a, "of a?", &altered(&a_state, last), &a_key, "altered").await;
    refused(&a, "of a?", &altered(&a_state, |text| format!("{text}0")), &a_key, "longer").await;
    refused(&a, "of a?", &altered(&a_state, |text| text[..text.len() - 1].to_owned()), &a_key, "shorter").await;
    refused(&a, "of a?", &altered(&a_state, |text| text.replace("prism.", "prism.9")), &a_key, "of no link").await;
    refused(&a, "of a?", &json!("made up"), &a_key, "made up").await;
    assert_eq!(heard(), before, "no server has heard of any of it");

    // Nothing was lost by it, and none got the other's.
    let done = present(&b, "of b?", &b_state, &b_key, "by b").await;
    assert_eq!(result_text(&done), accept("by b").to_string());
    let done = present(&a, "of a?", &a_state, &a_key, "by a").await;
    assert_eq!(result_text(&done), accept("by a").to_string());
    refused(&a, "of a?", &a_state, &a_key, "used before").await;
    refused(&b, "of b?", &b_state, &b_key, "used before").await;

    let seen = lines(&record);
    let count = |what: &str| seen.iter().filter(|line| line.contains(what)).count();
    assert_eq!((count(r#""tools/call""#), count("by a"), count("by b"), count("stolen")), (2, 1, 1, 0), "{seen:?}");
}

// checks 87 92
#[tokio::test]
async fn many_clients_that_are_asked_at_once_are_not_mixed_up() {
    let daemon = Daemon::run(&[], &[]).await;
    let mut clients = JoinSet::new();
    for i in 0..6_u32 {
        let client = named(&daemon, &format!("client {i}"));
        clients.spawn(async move {
            for round in 0..3 {
                let text = format!("question {round} of {i}");
                let (key, state) = park(&client, &text).await;
                let answer = format!("answer {round} of {i}");
                let done = present(&client, &text, &state, &key, &answer).await;
                assert_eq!(result_text(&done), accept(&answer).to_string());
            }
        });
    }
    clients.join_all().await;
}

// That nobody comes back is also noticed after ten minutes: core proves that.
// checks 89
#[tokio::test]
async fn eight_abandoned_questions_do_not_keep_the_ninth_call_out() {
    let home = Home::new();
    let daemon = Launch::run(&["--era", "legacy"], &demo(&[])).home(&home).start().await;
    let mut parked = Vec::new();
    for i in 0..8 {
        let client = named(&daemon, &format!("client {i}"));
        let text = format!("question {i}");
        let (key, state) = park(&client, &text).await;
        parked.push((client, text, key, state));
    }
    let children = r#"prism_children{destination="run"}"#;
    assert_eq!(daemon.metric(children).await, Some(8), "each waits in a child of its own");

    let ninth = named(&daemon, "the ninth");
    let (key, state) = park(&ninth, "the ninth?").await;
    assert_eq!(
        result_text(&present(&ninth, "the ninth?", &state, &key, "at last").await),
        accept("at last").to_string()
    );
    let (client, text, key, state) = parked.remove(0);
    refused(&client, &text, &state, &key, "the oldest gave way").await;
    for (client, text, key, state) in parked {
        assert_eq!(result_text(&present(&client, &text, &state, &key, &text).await), accept(&text).to_string());
    }
    until("the child that gave way is gone", async || daemon.metric(children).await == Some(8)).await;
    assert_eq!(daemon.children().len(), 8, "none that is not accounted for");
    // The child of the call that gave way was started anew: who is cancelled owes no answer, and may never give one.
    assert_eq!(daemon.metric(r#"prism_child_starts_total{destination="run"}"#).await, Some(9));
    daemon.stop().await;
    assert_eq!(process::marked(home.path()), []);
}

// checks 89
#[tokio::test]
async fn calls_that_can_be_asked_nothing_share_a_child_and_never_wait_for_one_that_is_parked() {
    let daemon = Daemon::run(&[], &[]).await;
    let (key, state) = park(&named(&daemon, "a"), "of a?").await;
    let plain = daemon.modern();
    let child = plain.child().await;
    assert_eq!(plain.named("another").child().await, child);
    // A client that could be asked is not kept waiting either, nor is a list.
    let able = named(&daemon, "b");
    assert!(able.result("tools/list", json!({})).await["tools"].is_array());
    assert_ne!(able.child().await, child);
    let done = present(&named(&daemon, "a"), "of a?", &state, &key, "by a").await;
    assert_eq!(result_text(&done), accept("by a").to_string());
}

// mcp-eras 5.7 A6
// checks 87
#[tokio::test]
async fn a_state_does_not_outlive_its_daemon() {
    let home = Home::new();
    let launch = || Launch::run(&[], &demo(&[])).home(&home);
    let daemon = launch().start().await;
    let (key, state) = park(&named(&daemon, "a"), "of a?").await;
    daemon.stop().await;
    assert_eq!(process::marked(home.path()), []);
    let daemon = launch().start().await;
    let a = named(&daemon, "a");
    refused(&a, "of a?", &state, &key, "no such link").await;
    assert!(daemon.children().is_empty());
    // With a link of the same number it is still another's.
    let (own_key, own) = park(&a, "of a?").await;
    refused(&a, "of a?", &state, &key, "no such call").await;
    assert_eq!(result_text(&present(&a, "of a?", &own, &own_key, "by a").await), accept("by a").to_string());
}

// mcp-eras 5.7 A6, 5.15
#[tokio::test]
async fn a_call_whose_server_dies_while_its_client_is_asked_has_failed() {
    let daemon = Daemon::run(&["--era", "legacy"], &[]).await;
    let a = named(&daemon, "a");
    let (key, state) = park(&a, "of a?").await;
    let child = daemon.children()[0];
    process::signal(child, Signal::KILL);
    until("the child is reaped", async || !process::is_there(child)).await;
    let message = a.retried("ask", arguments("of a?"), &state, json!({&key: accept("too late")}));
    let answer = a.post(&message).await.answer().await;
    assert_eq!(answer["error"]["code"], -32603, "{answer}");
    assert_eq!(answer["error"]["data"]["reason"], "upstream_exited", "{answer}");
    let (key, state) = park(&a, "of a?").await;
    assert_eq!(result_text(&present(&a, "of a?", &state, &key, "by a").await), accept("by a").to_string());
}

// mcp-eras 5.7 C: between two of the modern era the state is the server's own, and so is the judgement.
// checks 87
#[tokio::test]
async fn a_modern_servers_state_is_passed_on_as_it_is() {
    let daemon = Daemon::run(&["--era", "modern"], &["--era", "modern"]).await;
    let (a, b) = (named(&daemon, "a"), named(&daemon, "b"));
    let ((a_key, a_state), (b_key, b_state)) = tokio::join!(park(&a, "of a?"), park(&b, "of b?"));
    assert!(a_state.as_str().unwrap().starts_with("kit."), "{a_state}");
    refused(&b, "of b?", &a_state, &a_key, "other arguments").await;
    refused(&a, "of a?", &altered(&a_state, |text| text.replace("kit.", "kit.0")), &a_key, "altered").await;
    assert_eq!(result_text(&present(&a, "of a?", &a_state, &a_key, "by a").await), accept("by a").to_string());
    assert_eq!(result_text(&present(&b, "of b?", &b_state, &b_key, "by b").await), accept("by b").to_string());
    assert_eq!(daemon.children().len(), 1);
}

// What was not written by us is not ours, however it is read.
// checks 87
#[tokio::test]
async fn a_state_that_is_written_otherwise_is_another() {
    let daemon = Daemon::run(&[], &[]).await;
    let a = named(&daemon, "a");
    let (key, state) = park(&a, "of a?").await;
    refused(&a, "of a?", &altered(&state, |text| text.replace("prism.", "prism.+")), &key, "with a sign").await;
    refused(&a, "of a?", &altered(&state, |text| text.replace("prism.", "prism.0")), &key, "with a zero").await;
    assert_eq!(result_text(&present(&a, "of a?", &state, &key, "by a").await), accept("by a").to_string());
}

// A server that was told that its call is cancelled owes no answer to it, and the next client must
// not wait for one (now: GRACE, 30 s).
// checks 89
#[tokio::test]
async fn the_ninth_call_does_not_wait_for_an_answer_that_nobody_owes() {
    let daemon = Daemon::run(&[], &[]).await;
    for i in 0..8 {
        park(&named(&daemon, &format!("client {i}")), "anybody?").await;
    }
    let begun = std::time::Instant::now();
    park(&named(&daemon, "the ninth"), "the ninth?").await;
    assert!(begun.elapsed() < std::time::Duration::from_secs(10), "{:?}", begun.elapsed());
}

// A state that cannot be one of ours is no reason to start a server.
// checks 87
#[tokio::test]
async fn a_state_that_was_made_up_starts_nobody() {
    let daemon = Daemon::run(&["--era", "legacy"], &[]).await;
    let a = named(&daemon, "a");
    let (key, state) = park(&a, "of a?").await;
    for made_up in ["made up", "prism.", "prism.1.0", "demo.0.{}"] {
        refused(&a, "of a?", &json!(made_up), &key, "made up").await;
    }
    assert_eq!(daemon.children().len(), 1);
    assert_eq!(result_text(&present(&a, "of a?", &state, &key, "by a").await), accept("by a").to_string());
}
