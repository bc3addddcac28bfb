//! What the built-in editor runs in a folder that a plugin has open: the plugin is told, for the person to see.

use std::{fs, process::Command};

use serde_json::{Value, json};

use crate::support::{
    gate::{Gate, Holder, answer},
    plugin::{Line, owning, register},
    soon,
};

/// A registration of one that shows what runs.
fn showing(root: &str) -> Value {
    let mut register = register(root, &["get_cursor_pos"]);
    register["shows"] = true.into();
    register
}

async fn with_editor() -> (Gate, Holder, Line) {
    let gate = Gate::start().await;
    let holder = gate.hold(&gate.granted(&["*"]).await).await;
    let line = owning(&gate, "edit", showing(&gate.project())).await;
    (gate, holder, line)
}

/// Has something done that the person allows.
async fn allowed(gate: &Gate, holder: &mut Holder, verb: &str, args: Value) -> Value {
    let asked = holder.begins(verb, args).await;
    let confirmation = gate.confirmation().await;
    answer(gate, &confirmation, &confirmation["digest"], true).await;
    let result = holder.result(&asked).await;
    assert_eq!(result["status"], "ok", "{result}");
    result["data"].clone()
}

/// What is told of one run from its `show` on: that, its text, and its end.
async fn shown(line: &mut Line) -> (Value, String, Value) {
    let show = line.hears("show").await;
    let (text, end) = rest(line, &show["id"]).await;
    (show, text, end)
}

async fn rest(line: &mut Line, id: &Value) -> (String, Value) {
    let mut text = String::new();
    let end = soon("the run's end is told", async {
        loop {
            let message = line.next().await.expect("it is connected");
            match message["type"].as_str() {
                Some("show_output") => text += message["text"].as_str().expect("a text"),
                Some("show_ended") => return message,
                Some("ping") => line.says(json!({"type": "pong", "id": message["id"], "ui": true})).await,
                _ => {}
            }
        }
    });
    let end = end.await;
    assert_eq!(end["id"], *id);
    (text, end)
}

/// Says something that is answered at once, and hears nothing but that.
async fn hears_of_no_run(line: &mut Line) {
    line.says_text("{}").await;
    loop {
        let message = line.next().await.expect("it is connected");
        match message["type"].as_str() {
            Some("error") => return,
            Some("ping") => line.says(json!({"type": "pong", "id": message["id"], "ui": true})).await,
            other => assert!(!other.is_some_and(|kind| kind.starts_with("show")), "{message}"),
        }
    }
}

//
#[tokio::test]
async fn an_editor_sees_a_command_as_it_runs_in_order_and_ended_with_its_code() {
    let (gate, mut holder, mut line) = with_editor().await;
    let command = "printf '\\033[32mone\\033[0m\\n'; echo zwölf; printf '\\033]52;c;eA==\\007'; exit 3";
    let done = allowed(&gate, &mut holder, "exec_command", json!({"command": command})).await;
    let (show, text, end) = shown(&mut line).await;
    for (member, expected) in [
        ("kind", "command"),
        ("verb", "exec_command"),
        ("agent_id", "fixer"),
        ("command", command),
        ("path", done["cwd"].as_str().unwrap()),
    ] {
        assert_eq!(show[member], expected, "{show}");
    }
    assert!(show["title"].as_str().is_some_and(|title| title.starts_with("fixer: printf")), "{show}");
    // What draws is there; what would set the person's clipboard is not.
    assert_eq!(text, "\x1b[32mone\x1b[0m\r\nzwölf\r\n");
    assert_eq!(end, json!({"type": "show_ended", "id": show["id"], "exit_code": 3}));
    // The agent has all of it.
    assert!(done["stdout"].as_str().is_some_and(|stdout| stdout.contains("52;c;")), "{done}");
}

//
#[tokio::test]
async fn an_editor_sees_terminals_and_git() {
    let (gate, mut holder, mut line) = with_editor().await;
    let args = json!({"command": ["cat"], "rows": 10, "cols": 40});
    let terminal = allowed(&gate, &mut holder, "open_terminal", args).await["terminal"].clone();
    let show = line.hears("show").await;
    assert_eq!((&show["kind"], &show["rows"], &show["cols"]), (&json!("terminal"), &json!(10), &json!(40)), "{show}");
    allowed(&gate, &mut holder, "send_input", json!({"terminal": terminal, "input": "hello\n"})).await;
    let mut text = String::new();
    while !text.contains("hello\r\nhello\r\n") {
        text += line.hears("show_output").await["text"].as_str().expect("a text");
    }
    allowed(&gate, &mut holder, "send_input", json!({"terminal": terminal, "rows": 20, "cols": 50})).await;
    let resized = json!({"type": "show_resized", "id": show["id"], "rows": 20, "cols": 50});
    assert_eq!(line.hears("show_resized").await, resized);
    allowed(&gate, &mut holder, "send_input", json!({"terminal": terminal, "close": true})).await;
    let ended = line.hears("show_ended").await;
    assert_eq!((&ended["id"], &ended["signal"]), (&show["id"], &json!(9)), "{ended}");

    let init = Command::new("git").args(["init", "-q", "-b", "main"]).current_dir(gate.project()).status();
    assert!(init.expect("git is there").success());
    assert_eq!(holder.does("git_status", json!({})).await["status"], "ok");
    let (show, text, end) = shown(&mut line).await;
    assert_eq!((&show["title"], &show["command"]), (&json!("fixer: git"), &json!("git status")));
    assert!(text.starts_with("main\r\n") && text.contains("main.rs"), "{text:?}");
    assert_eq!(end["exit_code"], 0);
}

//
#[tokio::test]
async fn nothing_is_told_of_other_folders_nor_to_who_does_not_show_it() {
    let (gate, mut holder, mut line) = with_editor().await;
    fs::create_dir(gate.path("inner")).expect("it can be made");
    // It has a folder within, and is the newer one; and one that says nothing of showing.
    let mut inner = showing(&gate.path("inner"));
    inner["instance_id"] = "two".into();
    let mut inner = owning(&gate, "inner", inner).await;
    allowed(&gate, &mut holder, "exec_command", json!({"command": "echo above"})).await;
    assert_eq!(shown(&mut line).await.1, "above\r\n");
    hears_of_no_run(&mut inner).await;
    allowed(&gate, &mut holder, "exec_command", json!({"command": "echo within", "cwd": "inner"})).await;
    assert_eq!(shown(&mut inner).await.1, "within\r\n");
    hears_of_no_run(&mut line).await;

    let mut silent = register(&gate.project(), &["get_cursor_pos"]);
    silent["instance_id"] = "three".into();
    let mut silent = owning(&gate, "silent", silent).await;
    allowed(&gate, &mut holder, "exec_command", json!({"command": "echo unseen"})).await;
    hears_of_no_run(&mut silent).await;
    hears_of_no_run(&mut line).await;
}

//
#[tokio::test]
async fn a_command_does_not_wait_for_an_editor_that_does_not_read() {
    let (gate, mut holder, mut line) = with_editor().await;
    let bytes = 64 << 20;
    let command = format!("yes 'a line of what nobody reads' | head -c {bytes}; echo the end");
    let done = allowed(&gate, &mut holder, "exec_command", json!({"command": command})).await;
    assert_eq!((&done["exit_code"], &done["timed_out"]), (&json!(0), &json!(false)));
    let (_, text, end) = shown(&mut line).await;
    assert!(text.len() < bytes / 2, "{} bytes were shown", text.len());
    assert!(text.contains(" bytes were not shown …]\r\n") && text.ends_with("the end\r\n"), "{}", text.len());
    assert_eq!(end["exit_code"], 0);
}
