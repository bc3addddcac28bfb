//! Bells in an editor's chat: for agents that live in that editor and folder, where both the daemon's person and the editor's
//! allow it, and answered in time or not at all.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{
    agents::{Agent, At},
    gate::Gate,
    plugin::{Line, owning, register},
    until,
};

const ALLOWED: &str = "[mesh]\neditor_chat = true\nclimb_after = \"1s\"\n";

fn window(gate: &Gate, kind: &str) -> Value {
    let mut register = register(&gate.project(), &[]);
    (register["kind"], register["chat"], register["instance_id"]) = (kind.into(), true.into(), kind.into());
    register
}

/// An agent that lives in this program and folder, and another that sends it a question.
async fn rung(gate: &Gate, surface: &str, folder: &str) -> (Agent, Agent) {
    let donna = gate.daemon.agent(At::Own, "donna").await;
    let mut sable = gate.daemon.window(At::Own).await;
    sable.start(json!({"agent": "sable", "surface": surface, "workspace": folder})).await;
    donna.does("send", json!({"to": "sable", "type": "Question", "body": "hush-hush"})).await;
    (donna, sable)
}

async fn says(line: &mut Line, ring: &Value, status: &str) {
    let mut rung = json!({"type": "rung", "id": ring["id"], "status": status});
    if status == "error" {
        rung["error"] = json!({"code": "failed", "message": "no chat is open"});
    }
    line.says(rung).await;
}

// M-03, M-04: the bell has no content, and what was heard shows in the drain.
#[tokio::test]
async fn an_agent_in_an_editors_chat_is_rung_there() {
    let gate = Gate::start_with(ALLOWED).await;
    let mut other = owning(&gate, "void", window(&gate, "void")).await;
    let mut line = owning(&gate, "cursor", window(&gate, "cursor")).await;
    let (_donna, sable) = rung(&gate, "cursor", &gate.path("")).await;
    let ring = line.hears("ring").await;
    assert_eq!(ring["agent"], "sable");
    let text = ring["text"].as_str().unwrap();
    assert!(text.starts_with("Signal from donna: Question.") && !text.contains("hush"), "{text}");
    assert!(ring["deadline_ms"].as_u64().is_some_and(|ms| ms <= 5_000), "{ring}");
    says(&mut line, &ring, "ok").await;
    sable.until_bell("editor_chat", "rang").await;
    assert_eq!(sable.drain().await.len(), 1);
    sable.until_bell("editor_chat", "confirmed").await;
    // The window of another kind heard nothing: its next word is an answer to this.
    other.says_text("x").await;
    assert_eq!(other.hears("error").await["error"]["code"], "bad_arguments");
}

// M-03
#[tokio::test]
async fn an_editor_that_cannot_or_does_not_answer_is_one_more_rung_of_the_ladder() {
    let gate = Gate::start_with(ALLOWED).await;
    let mut line = owning(&gate, "code", window(&gate, "code-server")).await;
    let (_donna, sable) = rung(&gate, "vscode", &gate.project()).await;
    let ring = line.hears("ring").await;
    says(&mut line, &ring, "error").await;
    let failed = ("editor_chat".to_owned(), "send-failed".to_owned());
    until("it is on record that it failed", async || sable.bells().await.contains(&failed)).await;
    let tested = wake_test(&gate).await;
    assert_eq!(tested["outcome"], "there", "{tested}");
    // One that says nothing: nobody waits longer than the deadline.
    assert_eq!(sable.drain().await.len(), 1);
    let begun = Instant::now();
    let asked = gate.daemon.script();
    let (answer, ring) = tokio::join!(asked.does("wake_test", json!({"agent": "sable", "ring": true})), async {
        line.hears("ring").await
    });
    let row = chat_row(&answer);
    assert_eq!(row["outcome"], "unanswered", "R-27: it may have opened the chat; {row}");
    assert!(row["note"].as_str().is_some_and(|note| note.contains("did not answer within 5 s")), "{row}");
    assert!(begun.elapsed() < Duration::from_secs(20));
    // Its late answer is nobody's.
    says(&mut line, &ring, "ok").await;
    line.says_text("x").await;
    assert_eq!(line.hears("error").await["error"]["code"], "bad_arguments");
}

// M-03: nothing is put into a chat that nobody opened for it.
#[tokio::test]
async fn nobody_is_rung_elsewhere_or_where_it_is_not_allowed() {
    let elsewhere = tempfile::tempdir().unwrap();
    for (settings, chat, ui, surface, folder) in [
        ("", true, true, "cursor", None),
        (ALLOWED, false, true, "cursor", None),
        (ALLOWED, true, false, "cursor", None),
        (ALLOWED, true, true, "codex", None),
        (ALLOWED, true, true, "cursor", Some(elsewhere.path().to_str().unwrap())),
    ] {
        let gate = Gate::start_with(settings).await;
        let mut register = window(&gate, "cursor");
        (register["chat"], register["ui"]) = (chat.into(), ui.into());
        let mut line = owning(&gate, "cursor", register).await;
        let folder = folder.map_or_else(|| gate.project(), str::to_owned);
        let (_donna, _sable) = rung(&gate, surface, &folder).await;
        let asked = gate.daemon.script();
        let answer = asked.does("wake_test", json!({"agent": "sable", "ring": true})).await;
        let outcome = chat_row(&answer)["outcome"].clone();
        assert!(outcome == "not set up" || outcome == "absent", "{surface}: {outcome}");
        line.says_text("x").await;
        assert_eq!(line.next().await.unwrap()["type"], "error", "{surface}: it was told nothing before this");
    }
}

async fn wake_test(gate: &Gate) -> Value {
    chat_row(&gate.daemon.script().does("wake_test", json!({"agent": "sable"})).await)
}

fn chat_row(answer: &Value) -> Value {
    let rows = answer["rows"].as_array().unwrap();
    rows.iter().find(|row| row["path"] == "editor_chat").unwrap().clone()
}
