//! A bell on the back of an answer, whoever gives it (M-06).

use serde_json::{Value, json};
use uuid::Uuid;

use super::{Door, NEWEST, modern_headers, modern_meta, request};

fn call(tool: &str, meta: Value) -> Value {
    request("tools/call", json!({"name": tool, "arguments": {}, "_meta": meta}))
}

/// The blocks of what a tool has said.
fn content(answer: &str) -> Vec<Value> {
    let body = answer.split("\r\n\r\n").nth(1).expect("a body");
    let answer: Value = serde_json::from_str(body).unwrap_or_else(|_| panic!("an answer: {answer}"));
    answer["result"]["content"].as_array().unwrap_or_else(|| panic!("no content: {answer}")).clone()
}

// M-06
#[tokio::test]
async fn a_session_hears_of_its_bell_with_the_answer_of_any_tool_but_those_that_must_not() {
    let door = Door::open().await;
    for (path, carrying, silent) in [
        ("/mcp", vec!["other_echo", "prism_who_calls"], "prism_start"),
        ("/prism/mcp", vec!["prism_who_calls"], "prism_start"),
    ] {
        let session = door.initialize(path, &[], NEWEST).await;
        let headers = [("mcp-session-id", session.as_str())];
        let entry = door.sessions.get(&Uuid::try_parse(&session).expect("an id")).expect("an entry");
        for tool in carrying {
            let before = content(&door.post(path, &headers, &call(tool, json!({}))).await);
            entry.visit.let_ring(true);
            let rung = content(&door.post(path, &headers, &call(tool, json!({}))).await);
            let (bell, rest) = rung.split_last().expect("a bell");
            assert_eq!(*bell, json!({"type": "text", "text": format!("a signal for {session}")}), "{path} {tool}");
            assert_eq!(rest.len(), before.len(), "{path} {tool}");
            let quiet = content(&door.post(path, &headers, &call(silent, json!({}))).await);
            assert_eq!(quiet.len(), 1, "{path} {silent}");
            entry.visit.let_ring(false);
            assert_eq!(content(&door.post(path, &headers, &call(tool, json!({}))).await).len(), before.len());
        }
        // An error is no answer that could carry one.
        entry.visit.let_ring(true);
        let error = door.post(path, &headers, &call("prism_nothing", json!({}))).await;
        assert!(error.contains(r#""error""#) && !error.contains("a signal for"), "{error}");
    }
}

// M-06
#[tokio::test]
async fn a_modern_client_behind_the_shim_hears_of_it_too() {
    let door = Door::open().await;
    let instance = Uuid::now_v7().to_string();
    for (path, tool) in [("/mcp", "other_echo"), ("/prism/mcp", "prism_who_calls")] {
        let plain = modern_headers("tools/call", Some(tool));
        let mut shim = plain.clone();
        shim.extend([("prism-transport", "stdio"), ("prism-instance", instance.as_str())]);
        let before = content(&door.post(path, &shim, &call(tool, modern_meta())).await).len();
        door.sessions.reached().let_instances_ring(true);
        let rung = content(&door.post(path, &shim, &call(tool, modern_meta())).await);
        assert_eq!(rung[before..], [json!({"type": "text", "text": format!("a signal for {instance}")})], "{path}");
        // Nobody knows who another one is.
        assert_eq!(content(&door.post(path, &plain, &call(tool, modern_meta())).await).len(), before, "{path}");
        door.sessions.reached().let_instances_ring(false);
    }
}
