//! Editors that do not keep to the protocol: nothing they do or leave undone hangs an agent, reaches another, or harms the
//! daemon.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{
    gate::{Gate, Holder},
    plugin::{Line, owning, register, state},
    until,
};

async fn with(verbs: &[&str]) -> (Gate, Holder, Line) {
    let gate = Gate::start().await;
    let holder = gate.hold(&gate.granted(&["*"]).await).await;
    let line = owning(&gate, "edit", register(&gate.project(), verbs)).await;
    (gate, holder, line)
}

fn ok(id: &Value, data: Value) -> Value {
    json!({"type": "result", "id": id, "status": "ok", "data": data})
}

// A-06
#[tokio::test]
async fn answers_twice_under_wrong_ids_and_garbage_harm_nobody() {
    let (gate, mut holder, mut line) = with(&["get_cursor_pos", "get_selection"]).await;
    let (one, two) =
        (holder.begins("get_cursor_pos", json!({})).await, holder.begins("get_selection", json!({})).await);
    let mut commands = [line.hears("cmd").await, line.hears("cmd").await];
    commands.sort_by_key(|cmd| cmd["action"].to_string());
    let [cursor, selection] = commands;
    for bad in [
        "",
        "null",
        "{",
        "{\"type\":\"result\"}",
        "{\"type\":\"approve\",\"id\":1}",
        "[1,2]",
        "{\"type\":7}",
        r#"{"type":"result","id":1,"id":2,"status":"ok"}"#,
        r#"{"type":"registered"}"#,
    ] {
        line.says_text(bad).await;
        assert_eq!(line.hears("error").await["error"]["code"], "bad_arguments", "{bad}");
    }
    for id in [json!(0), json!(99_999), json!(u64::MAX)] {
        line.says(ok(&id, json!({"wrong": true}))).await;
    }
    line.says(ok(&cursor["id"], json!({"n": 1}))).await;
    line.says(ok(&cursor["id"], json!({"n": 2}))).await;
    assert_eq!(holder.result(&one).await["data"], json!({"n": 1}));
    line.says(ok(&selection["id"], json!({"n": 3}))).await;
    assert_eq!(holder.result(&two).await["data"], json!({"n": 3}));
    until("what nobody asked for is counted", async || {
        gate.daemon.metric("prism_plugin_commands_total{result=\"unasked\"}").await == Some(4)
    })
    .await;
}

// A-06
#[tokio::test]
async fn an_editor_that_dies_at_a_command_ends_it_at_once() {
    let (_gate, mut holder, mut line) = with(&["edit_buffer"]).await;
    let edit = json!({"path": "main.rs", "old_text": "main", "new_text": "start"});
    let asked = holder.begins("edit_buffer", edit).await;
    line.hears("cmd").await;
    drop(line);
    let result = holder.result(&asked).await;
    assert_eq!(result["data"]["code"], "failed", "{result}");
    assert!(result["data"]["message"].as_str().is_some_and(|text| text.contains("went away")), "{result}");
    // And the folder is the built-in editor's again.
    let edit = json!({"path": "main.rs", "old_text": "main", "new_text": "start"});
    until("the built-in editor does it", async || holder.does("edit_buffer", edit.clone()).await["status"] == "ok")
        .await;
}

// A-06
#[tokio::test]
async fn a_command_whose_grant_is_revoked_is_taken_back() {
    let gate = Gate::start().await;
    let granted = gate.granted(&["*"]).await;
    let mut holder = gate.hold(&granted).await;
    let mut line = owning(&gate, "edit", register(&gate.project(), &["find_in_project"])).await;
    holder.begins("find_in_project", json!({"text": "main"})).await;
    let cmd = line.hears("cmd").await;
    assert_eq!(cmd["session_id"], granted.id.as_str());
    gate.as_person("/mcp/revoke", json!({"session_id": granted.id})).await;
    assert_eq!(line.hears("cancel").await["id"], cmd["id"]);
    assert_eq!(holder.closed().await, 4001);
}

// A-06
#[tokio::test]
async fn a_gap_in_the_numbers_asks_for_the_state_and_a_flood_of_events_does_not_drown_the_daemon() {
    let (gate, mut holder, mut line) = with(&["get_cursor_pos"]).await;
    let path = gate.path("main.rs");
    line.event(1, "file_opened", json!({"path": path})).await;
    holder.event("file_opened").await;
    line.event(5, "cursor_moved", json!({"path": path, "position": {"line": 0, "character": 1}})).await;
    line.hears("get_state").await;
    line.says(json!({"type": "state", "seq": 5, "buffers": []})).await;
    let began = Instant::now();
    for seq in 6..12_006 {
        line.event(seq, "cursor_moved", json!({"path": path, "position": {"line": seq, "character": 0}})).await;
    }
    line.hears("get_state").await;
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    let dropped = gate.seen("/mcp/plugins").await["plugins"][0]["events_dropped"].as_u64();
    assert!(dropped.is_some_and(|count| count > 1_000), "{dropped:?}");
    // The agent's commands still get through.
    let mut holder = gate.hold(&gate.granted(&["sync:cursor"]).await).await;
    let asked = holder.begins("get_cursor_pos", json!({})).await;
    let cmd = line.hears("cmd").await;
    line.says(ok(&cmd["id"], json!({"n": 1}))).await;
    assert_eq!(holder.result(&asked).await["data"]["n"], 1);
}

// A-06, A-07
#[tokio::test]
async fn who_hears_of_an_event_is_decided_by_the_daemon_alone() {
    let (gate, mut holder, mut line) = with(&["open_file"]).await;
    let mut blind = gate.hold(&gate.granted(&["read:files"]).await).await;
    let path = gate.path("main.rs");
    let secret = json!({"path": "/etc/passwd", "text": "root"});
    line.event(1, "buffer_changed", secret).await;
    line.event(2, "user_typed_password", json!({"path": path})).await;
    line.event(3, "file_saved", json!({"path": format!("{}/../x", gate.project())})).await;
    line.event(4, "output_received", json!({"terminal": 1, "text": "the person's own"})).await;
    let changed = json!({"event": "buffer_changed", "path": path, "version": 7, "is_dirty": true, "text": "fn x() {}"});
    line.event(5, "editor_state", changed).await;
    // The first of its kind: what came before it is nobody's.
    let told = holder.event("buffer_changed").await;
    assert_eq!((&told["event"], &told["data"]["event"]), (&json!("editor_state"), &json!("buffer_changed")), "{told}");
    assert_eq!((&told["data"]["path"], &told["data"]["version"]), (&json!(path), &json!(7)));
    assert!(told["data"].get("text").is_none(), "whole texts are for the daemon");
    let plugins = gate.seen("/mcp/plugins").await;
    assert_eq!((&plugins["plugins"][0]["events_dropped"], &plugins["plugins"][0]["unsaved"]), (&json!(4), &json!(1)));
    // The next that the other one hears is its own result: it has no scope for any of it.
    let asked = blind.begins("open_file", json!({"path": path})).await;
    let cmd = line.hears("cmd").await;
    line.says(ok(&cmd["id"], json!({"path": path, "content": ""}))).await;
    let heard = blind.next().await.unwrap();
    assert_eq!((&heard["type"], &heard["id"]), (&json!("result"), &json!(asked)));
}

// A-06
#[tokio::test]
async fn an_editor_that_does_not_answer_its_ping_is_closed_and_loses_its_folder() {
    let (gate, mut holder, mut line) = with(&["get_cursor_pos"]).await;
    let code = line.closed().await;
    assert_eq!(code, 4008);
    until("it is gone", async || state(&gate, "edit").await.is_none()).await;
    holder.event("runtime_degraded").await;
    let audited = gate.audited("plugin_disconnect", "ok").await;
    assert_eq!(audited["args"]["why"], "no pong in time");
}

// A-06
#[tokio::test]
async fn a_message_that_is_too_large_or_no_text_ends_the_connection() {
    let (gate, _holder, mut line) = with(&[]).await;
    // It may be cut off before all of it is sent.
    line.tries_text(&format!("{{\"type\":\"{}\"}}", "x".repeat(17 << 20))).await;
    line.closed().await;
    until("it is gone", async || state(&gate, "edit").await.is_none()).await;
}
