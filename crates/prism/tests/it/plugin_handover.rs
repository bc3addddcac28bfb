//! Texts change hands with the folder, and none is lost.

use std::fs;

use serde_json::{Value, json};

use crate::support::{
    gate::{Gate, Holder, answer},
    plugin::{Editor, Left, VERBS, owning, register, state},
    until,
};

async fn started() -> (Gate, Holder) {
    let gate = Gate::start().await;
    let holder = gate.hold(&gate.granted(&["*"]).await).await;
    (gate, holder)
}

async fn edits(holder: &mut Holder, old: &str, new: &str) {
    let edited = holder.does("edit_buffer", json!({"path": "main.rs", "old_text": old, "new_text": new})).await;
    assert_eq!(edited["status"], "ok", "{edited}");
}

/// What an agent sees of a text: itself, and whether it is unsaved.
async fn sees(holder: &mut Holder) -> (Value, Value) {
    let opened = holder.does("open_file", json!({"path": "main.rs"})).await;
    (opened["data"]["content"].clone(), opened["data"]["is_dirty"].clone())
}

/// Waits until the daemon has heard of the text that the editor has not saved.
async fn unsaved_is_known(gate: &Gate) {
    until("the daemon has heard of it", async || gate.seen("/mcp/plugins").await["plugins"][0]["unsaved"] == 1).await;
}

/// An agent has edited in an editor, which then died: what is left of it.
async fn left_alone() -> (Gate, Holder, Left) {
    let (gate, mut holder) = started().await;
    let editor = Editor::start(&gate, "edit", VERBS).await;
    edits(&mut holder, "main", "agent").await;
    unsaved_is_known(&gate).await;
    let left = editor.dies().await;
    holder.event("runtime_degraded").await;
    (gate, holder, left)
}

//
#[tokio::test]
async fn unsaved_text_goes_to_the_editor_that_comes_and_back_when_it_leaves() {
    let (gate, mut holder) = started().await;
    edits(&mut holder, "main", "agent").await;
    let editor = Editor::start(&gate, "edit", VERBS).await;
    let there = editor.person("open_file", json!({"path": "main.rs"})).await;
    assert_eq!((&there["content"], &there["is_dirty"]), (&json!("fn agent() {}\n"), &json!(true)));
    // The person types on, and the window is killed.
    editor.person("edit_buffer", json!({"path": "main.rs", "old_text": "{}", "new_text": "{ typed }"})).await;
    while !holder.event("buffer_changed").await.to_string().contains("typed") {}
    let left = editor.dies().await;
    holder.event("runtime_degraded").await;
    assert_eq!(sees(&mut holder).await, (json!("fn agent() { typed }\n"), json!(true)));
    assert_eq!(fs::read_to_string(gate.path("main.rs")).unwrap(), "fn main() {}\n", "nothing was saved");
    // The agent works on meanwhile; the window comes back with what it had, and gets that too.
    edits(&mut holder, "typed", "typed; worked_on").await;
    let editor = Editor::back(&gate, "edit", left).await;
    let there = editor.person("open_file", json!({"path": "main.rs"})).await;
    assert_eq!((&there["content"], &there["is_dirty"]), (&json!("fn agent() { typed; worked_on }\n"), &json!(true)));
    let listed = holder.does("get_buffers", json!({})).await;
    assert_eq!(listed["data"]["buffers"].as_array().map(Vec::len), Some(1), "one owner: {listed}");
    assert_eq!(listed["data"]["buffers"][0].get("is_conflicted"), None);
}

//
#[tokio::test]
async fn a_window_that_was_only_away_keeps_what_was_typed_in_it_meanwhile() {
    let (gate, mut holder, left) = left_alone().await;
    assert_eq!(sees(&mut holder).await, (json!("fn agent() {}\n"), json!(true)));
    // Nobody told the daemon of this.
    let away = Editor::back_alone(&gate, left);
    away.person("edit_buffer", json!({"path": "main.rs", "old_text": "{}", "new_text": "{ typed }"})).await;
    let editor = Editor::back(&gate, "edit", away.dies().await).await;
    assert_eq!(sees(&mut holder).await, (json!("fn agent() { typed }\n"), json!(true)));
    let listed = holder.does("get_buffers", json!({})).await;
    assert_eq!(listed["data"]["buffers"][0].get("is_conflicted"), None, "{listed}");
    drop(editor);
}

//
#[tokio::test]
async fn a_window_that_lost_its_text_in_a_crash_gets_it_back() {
    let (gate, mut holder) = started().await;
    let editor = Editor::start(&gate, "edit", VERBS).await;
    editor.person("edit_buffer", json!({"path": "main.rs", "old_text": "{}", "new_text": "{ typed }"})).await;
    unsaved_is_known(&gate).await;
    editor.dies().await;
    holder.event("runtime_degraded").await;
    // Another start of it: it knows the disk only.
    let editor = Editor::start(&gate, "edit", VERBS).await;
    let there = editor.person("open_file", json!({"path": "main.rs"})).await;
    assert_eq!((&there["content"], &there["is_dirty"]), (&json!("fn main() { typed }\n"), &json!(true)));
}

// the window that comes after a crash has restored what its backups had, which is not the last that was typed.
#[tokio::test]
async fn what_a_window_lost_in_a_crash_is_kept_beside_its_backup() {
    let (gate, mut holder) = started().await;
    let editor = Editor::start(&gate, "edit", VERBS).await;
    editor.person("edit_buffer", json!({"path": "main.rs", "old_text": "{}", "new_text": "{ typed }"})).await;
    unsaved_is_known(&gate).await;
    let left = editor.dies().await;
    holder.event("runtime_degraded").await;
    let restored = Editor::back_alone(&gate, left);
    restored.person("edit_buffer", json!({"path": "main.rs", "old_text": "typed", "new_text": "typ"})).await;
    let _editor = Editor::found_again(&gate, "edit", restored.dies().await).await;
    assert_eq!(sees(&mut holder).await.0, "fn main() { typ }\n", "the window's own text stays");
    let kept = holder.does("open_file", json!({"path": "main.rs", "kept": true})).await;
    assert_eq!(kept["data"]["kept"][0]["content"], "fn main() { typed }\n", "{kept}");
}

//
#[tokio::test]
async fn a_text_that_both_sides_changed_is_kept_and_told_of() {
    let (gate, mut holder, left) = left_alone().await;
    edits(&mut holder, "agent", "agent_alone").await;
    let away = Editor::back_alone(&gate, left);
    away.person("edit_buffer", json!({"path": "main.rs", "old_text": "{}", "new_text": "{ typed }"})).await;
    let _editor = Editor::back(&gate, "edit", away.dies().await).await;
    loop {
        let told = holder.event("buffer_changed").await;
        if told["data"]["is_conflicted"] == true {
            break;
        }
    }
    assert_eq!(sees(&mut holder).await.0, "fn agent() { typed }\n", "the editor's own text stays");
    let listed = holder.does("get_buffers", json!({})).await;
    let buffer = &listed["data"]["buffers"][0];
    assert_eq!((&buffer["is_conflicted"], &buffer["kept"][0]["from"]), (&json!(true), &json!("built-in")), "{listed}");
    let kept = holder.does("open_file", json!({"path": "main.rs", "kept": true})).await;
    assert_eq!(kept["data"]["kept"][0]["content"], "fn agent_alone() {}\n", "{kept}");
    assert_eq!(holder.refused("close_buffer", json!({"path": "main.rs", "kept": true})).await, "bad_arguments");
    let dropping = holder.begins("close_buffer", json!({"path": "main.rs", "kept": true, "discard": true})).await;
    let shown = gate.confirmation().await;
    assert!(shown["shown"]["because"][0].as_str().is_some_and(|why| why.contains("kept aside")), "R-07: {shown}");
    answer(&gate, &shown, &shown["digest"], true).await;
    let dropped = holder.result(&dropping).await;
    assert_eq!(dropped["status"], "ok", "{dropped}");
    assert_eq!(holder.refused("open_file", json!({"path": "main.rs", "kept": true})).await, "not_found");
}

//
#[tokio::test]
async fn an_edit_that_waits_for_the_person_does_not_come_behind_an_editors_back() {
    let gate = Gate::start().await;
    let asked = gate.ask("fixer", &["*"]).await;
    let mut holder = gate.hold(&gate.approve(&asked, json!({"confirm_changes": true})).await).await;
    let edit = json!({"path": "main.rs", "old_text": "main", "new_text": "late"});
    let asked = holder.begins("edit_buffer", edit).await;
    let confirmation = gate.confirmation().await;
    let editor = Editor::start(&gate, "edit", VERBS).await;
    crate::support::gate::answer(&gate, &confirmation, &confirmation["digest"], true).await;
    assert_eq!(holder.result(&asked).await["data"]["code"], "changed");
    assert_eq!(editor.person("open_file", json!({"path": "main.rs"})).await["content"], "fn main() {}\n");
}

//
#[tokio::test]
async fn an_editor_that_does_not_take_a_text_does_not_lose_it() {
    let (gate, mut holder) = started().await;
    edits(&mut holder, "main", "agent").await;
    // It registers neither open_file nor edit_buffer.
    let line = owning(&gate, "edit", register(&gate.project(), &["get_cursor_pos"])).await;
    let listed = holder.does("get_buffers", json!({})).await;
    assert_eq!(listed["data"]["buffers"][0]["is_conflicted"], true, "{listed}");
    let kept = holder.does("open_file", json!({"path": "main.rs", "kept": true})).await;
    assert_eq!(kept["data"]["kept"][0]["content"], "fn agent() {}\n");
    drop(line);
    until("it is gone", async || state(&gate, "edit").await.is_none()).await;
}
