//! The person in an editor: what waits for them is shown there, and what they say there counts as in the console. And what
//! counts for nothing: of a window that nobody is at, about something else than was shown, too late, too often.

mod configs;
mod floods;

use std::{fs, time::Instant};

use serde_json::{Value, json};

use crate::support::{
    DEADLINE,
    gate::{Gate, Granted, SETTINGS, answer, text},
    plugin::{Editor, Line, VERBS, knock, owning, register, registered, state},
    until,
};

/// A window with another folder open: what agents do is done by the built-in editor.
fn deciding(gate: &Gate) -> Value {
    let elsewhere = gate.daemon.home().path().to_str().expect("temporary folders have plain names");
    let mut register = register(elsewhere, &[]);
    register["decides"] = true.into();
    register
}

/// A daemon, and a window in which a person decides.
async fn with_window() -> (Gate, Line) {
    let gate = Gate::start().await;
    let line = owning(&gate, "edit", deciding(&gate)).await;
    (gate, line)
}

/// Waits for a picture that is like this.
async fn shown(line: &mut Line, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
    let look = async {
        loop {
            let desk = line.hears("desk").await;
            if is_it(&desk) {
                return desk;
            }
        }
    };
    tokio::time::timeout(DEADLINE, look).await.unwrap_or_else(|_| panic!("{what} is never shown"))
}

async fn shown_confirmation(line: &mut Line) -> Value {
    shown(line, "a confirmation", |desk| desk["confirmations"][0].is_object()).await["confirmations"][0].clone()
}

/// Says something and waits for what came of it.
async fn decided(line: &mut Line, word: Value) -> Value {
    line.says(word.clone()).await;
    loop {
        let decided = line.hears("decided").await;
        if decided["id"] == word["id"] {
            return decided;
        }
    }
}

async fn refused(line: &mut Line, word: Value) -> (String, String) {
    let decided = decided(line, word.clone()).await;
    assert_eq!(decided["status"], "error", "{word}: {decided}");
    (text(&decided["error"]["code"]), text(&decided["error"]["message"]))
}

async fn accepted(line: &mut Line, word: Value) {
    let decided = decided(line, word.clone()).await;
    assert_eq!(decided, json!({"type": "decided", "id": word["id"], "status": "ok"}), "{word}");
}

fn confirming(id: u64, confirmation: &Value, approve: bool) -> Value {
    json!({"type": "decide", "id": id, "confirmation_id": confirmation["confirmation_id"],
        "digest": confirmation["digest"], "approve": approve})
}

//
#[tokio::test]
async fn a_person_decides_on_requests_in_the_editor_and_is_on_record_for_it() {
    let (gate, mut line) = with_window().await;
    let first = shown(&mut line, "what there is", |_| true).await;
    assert_eq!(first, json!({"type": "desk", "requests": [], "confirmations": [], "grants": []}));
    let asked = gate.ask("fixer", &["read:files", "edit:buffer"]).await;
    let desk = shown(&mut line, "the request", |desk| desk["requests"][0].is_object()).await;
    assert_eq!(desk["requests"][0], gate.request_seen(&asked.id).await, "as over HTTP");
    let word = json!({"type": "decide", "id": 1, "request_id": asked.id, "approve": true, "ttl_seconds": 60,
        "approved_scopes": ["read:files"], "approved_roots": [gate.path("")], "confirm_changes": true});
    accepted(&mut line, word).await;
    let desk = shown(&mut line, "the grant", |desk| desk["grants"][0].is_object()).await;
    assert_eq!(desk["requests"], json!([]));
    let grant = &desk["grants"][0];
    assert_eq!((&grant["allowed_scopes"], &grant["confirm_changes"]), (&json!(["read:files"]), &json!(true)));
    let seen = gate.request_seen(&asked.id).await;
    assert_eq!(seen["approved_by"], "editor edit#1");
    let line_of = gate.audited("approve", "allowed").await;
    assert_eq!(line_of["actor"], "person (editor edit#1)");
    // The agent has its token, and the editor never had it.
    let claim = json!({"request_id": asked.id, "claim": asked.claim});
    let (_, claimed) = gate.as_agent("/mcp/claim", claim).await;
    assert!(claimed["session_token"].is_string(), "{claimed}");
    accepted(&mut line, json!({"type": "revoke", "id": 2, "session_id": grant["session_id"]})).await;
    shown(&mut line, "that it is over", |desk| desk["grants"] == json!([])).await;
    assert_eq!(gate.audited("revoke", "allowed").await["actor"], "person (editor edit#1)");
    let asked = gate.ask("fixer", &["read:files"]).await;
    let word = json!({"type": "decide", "id": 3, "request_id": asked.id, "approve": false, "reason": "not today"});
    accepted(&mut line, word).await;
    assert_eq!(gate.request_seen(&asked.id).await["denied_because"], "not today");
    assert_eq!(gate.daemon.metric("prism_plugin_decisions_total{result=\"ok\"}").await, Some(3));
}

// an approval only narrows, and a second one does nothing.
#[tokio::test]
async fn the_first_answer_counts_and_the_second_hears_whose_it_was() {
    let (gate, mut line) = with_window().await;
    let asked = gate.ask("fixer", &["read:files"]).await;
    let decide = |id: u64, more: Value| {
        let mut word = json!({"type": "decide", "id": id, "request_id": asked.id, "approve": true});
        word.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        word
    };
    let (code, _) = refused(&mut line, decide(1, json!({"approved_scopes": ["run:commands"]}))).await;
    assert_eq!(code, "forbidden");
    let (code, _) = refused(&mut line, decide(2, json!({"approved_roots": ["/etc"]}))).await;
    assert_eq!(code, "forbidden");
    let (code, _) = refused(&mut line, decide(3, json!({"ttl_seconds": 1_000_000_000}))).await;
    assert_eq!(code, "bad_arguments");
    gate.approve(&asked, json!({})).await;
    for (id, approve) in [(4, true), (5, false)] {
        let (code, message) = refused(&mut line, decide(id, json!({"approve": approve}))).await;
        assert_eq!(code, "not_pending");
        assert!(message.starts_with("already approved (over HTTP, "), "{message}");
    }
    let asked = gate.ask("fixer", &["read:files"]).await;
    accepted(&mut line, json!({"type": "decide", "id": 6, "request_id": asked.id, "approve": false})).await;
    let (status, told) = gate.try_approve(&asked, json!({})).await;
    assert_eq!(status, 409, "{told}");
    assert!(told.to_string().contains("already denied (by you, in the editor edit#1, "), "{told}");
}

//
#[tokio::test]
async fn what_is_confirmed_in_the_editor_is_what_was_shown_there() {
    let (gate, mut line) = with_window().await;
    let granted = gate.granted(&["*"]).await;
    let mut holder = gate.hold(&granted).await;
    let asked = holder.begins("delete_file", json!({"path": "main.rs"})).await;
    let confirmation = shown_confirmation(&mut line).await;
    assert_eq!(confirmation["shown"]["shown"]["kind"], "delete", "{confirmation}");
    let with = |id: u64, digest: Value| {
        let mut word = confirming(id, &confirmation, true);
        word["digest"] = digest;
        word
    };
    for (id, digest, expected) in
        [(1, json!("0".repeat(64)), "changed"), (2, json!("no digest"), "changed"), (3, Value::Null, "bad_arguments")]
    {
        assert_eq!(refused(&mut line, with(id, digest)).await.0, expected);
    }
    assert!(fs::exists(gate.path("main.rs")).unwrap());
    accepted(&mut line, confirming(4, &confirmation, true)).await;
    assert_eq!(holder.result(&asked).await["status"], "ok");
    assert!(!fs::exists(gate.path("main.rs")).unwrap());
    for (id, approve) in [(5, true), (6, false)] {
        let (code, message) = refused(&mut line, confirming(id, &confirmation, approve)).await;
        assert_eq!(code, "not_pending");
        assert!(message.starts_with("already allowed (by you, in the editor edit#1, "), "{message}");
    }
    gate.audited("confirm", "refused: changed").await;
    assert_eq!(gate.audited("confirm", "allowed").await["actor"], "person (editor edit#1)");
    // And no, with why.
    fs::write(gate.path("main.rs"), "fn main() {}\n").unwrap();
    let asked = holder.begins("delete_file", json!({"path": "main.rs"})).await;
    let confirmation = shown_confirmation(&mut line).await;
    let mut word = confirming(7, &confirmation, false);
    word["reason"] = "keep it".into();
    accepted(&mut line, word).await;
    let result = holder.result(&asked).await;
    assert_eq!((&result["data"]["code"], &result["data"]["message"]), (&json!("denied"), &json!("keep it")));
}

// of an editor's own text, what it shows is a diff against that text.
#[tokio::test]
async fn an_edit_that_waits_shows_its_diff_and_the_other_window_decides() {
    let gate = Gate::start().await;
    let mut line = owning(&gate, "desk", deciding(&gate)).await;
    let editor = Editor::start(&gate, "edit", VERBS).await;
    editor.person("edit_buffer", json!({"path": "main.rs", "old_text": "main", "new_text": "typed"})).await;
    let asked = gate.ask("fixer", &["*"]).await;
    let granted = gate.approve(&asked, json!({"confirm_changes": true})).await;
    let mut holder = gate.hold(&granted).await;
    let edit = json!({"path": "main.rs", "old_text": "typed", "new_text": "agreed"});
    let asked = holder.begins("edit_buffer", edit).await;
    let confirmation = shown_confirmation(&mut line).await;
    let shown = &confirmation["shown"]["shown"];
    assert_eq!((&shown["kind"], &shown["path"]), (&json!("diff"), &json!(gate.path("main.rs"))), "{confirmation}");
    let unified = text(&shown["unified"]);
    assert!(unified.contains("-fn typed() {}") && unified.contains("+fn agreed() {}"), "{unified}");
    accepted(&mut line, confirming(1, &confirmation, true)).await;
    assert_eq!(holder.result(&asked).await["status"], "ok");
    let there = editor.person("open_file", json!({"path": "main.rs"})).await;
    assert_eq!(there["content"], "fn agreed() {}\n");
}

//
#[tokio::test]
async fn what_is_unknown_or_not_understood_is_refused_with_what_to_do() {
    let (gate, mut line) = with_window().await;
    let nobody = "00000000-0000-4000-8000-000000000000";
    for (word, code) in [
        (json!({"type": "decide", "id": 1, "request_id": nobody, "approve": true}), "unknown_request"),
        (json!({"type": "decide", "id": 2, "request_id": "../etc", "approve": false}), "unknown_request"),
        (
            json!({"type": "decide", "id": 3, "confirmation_id": nobody, "digest": "0", "approve": true}),
            "unknown_confirmation",
        ),
        (json!({"type": "decide", "id": 4, "approve": true}), "bad_arguments"),
        (
            json!({"type": "decide", "id": 5, "approve": true, "request_id": nobody, "confirmation_id": nobody}),
            "bad_arguments",
        ),
        (json!({"type": "revoke", "id": 6, "session_id": nobody}), "unknown_session"),
        (json!({"type": "revoke", "id": 7, "session_id": "x"}), "unknown_session"),
        (
            json!({"type": "decide", "id": 8, "request_id": nobody, "approve": false, "reason": "x".repeat(5_000)}),
            "bad_arguments",
        ),
    ] {
        let (found, message) = refused(&mut line, word.clone()).await;
        assert_eq!(found, code, "{word}: {message}");
    }
    for bad in [json!({"type": "decide", "approve": true}), json!({"type": "decide", "id": 1, "approve": "yes"})] {
        line.says(bad.clone()).await;
        assert_eq!(line.hears("error").await["error"]["code"], "bad_arguments", "{bad}");
    }
    assert_eq!(state(&gate, "edit").await.as_deref(), Some("owner"), "the connection goes on");
}

// who asked is gone, and so is the question.
#[tokio::test]
async fn what_a_grant_wanted_that_has_ended_is_not_allowed_any_more() {
    let (gate, mut line) = with_window().await;
    let granted = gate.granted(&["*"]).await;
    let mut holder = gate.hold(&granted).await;
    holder.begins("delete_file", json!({"path": "main.rs"})).await;
    let confirmation = shown_confirmation(&mut line).await;
    accepted(&mut line, json!({"type": "revoke", "id": 1, "session_id": granted.id})).await;
    shown(&mut line, "that nothing waits", |desk| desk["confirmations"] == json!([])).await;
    let (code, message) = refused(&mut line, confirming(2, &confirmation, true)).await;
    assert_eq!(code, "not_pending", "{message}");
    assert!(fs::exists(gate.path("main.rs")).unwrap());
}

// a host whose window is gone decides nothing, whoever speaks through it.
#[tokio::test]
async fn a_ghost_decides_nothing_and_is_shown_nothing() {
    let gate = Gate::start().await;
    let asked = gate.ask("fixer", &["read:files"]).await;
    let decide = |id: u64| json!({"type": "decide", "id": id, "request_id": asked.id, "approve": true});
    let mut ghost = registered(&gate, "edit", deciding(&gate)).await;
    let ping = ghost.hears_raw("ping").await;
    // Nobody has answered it yet; then somebody has, without a window.
    for id in [1, 2] {
        let (code, message) = refused(&mut ghost, decide(id)).await;
        assert_eq!(code, "forbidden", "{message}");
        ghost.says(json!({"type": "pong", "id": ping["id"], "ui": false})).await;
    }
    // Somebody is back: it is shown at once what there is, and decides.
    ghost.pongs(true).await;
    shown(&mut ghost, "the request", |desk| desk["requests"][0].is_object()).await;
    ghost.pongs(false).await;
    let (code, _) = refused(&mut ghost, decide(3)).await;
    assert_eq!(code, "forbidden");
    assert_eq!(gate.request_seen(&asked.id).await["status"], "PENDING");
    gate.audited("approve", "refused: a window that does not answer").await;
}

//
#[tokio::test]
async fn nobody_decides_without_a_window_or_where_it_is_switched_off() {
    let gate = Gate::start().await;
    let asked = gate.ask("fixer", &["read:files"]).await;
    let mut blind = deciding(&gate);
    blind["ui"] = false.into();
    nobody_decides(&gate, blind, &asked.id).await;
    nobody_decides(&gate, register(&gate.project(), VERBS), &asked.id).await;
    let off = Gate::start_with(&format!("{SETTINGS}editors_decide = false\n")).await;
    let asked = off.ask("fixer", &["read:files"]).await;
    nobody_decides(&off, deciding(&off), &asked.id).await;
}

//
#[tokio::test]
async fn what_is_switched_off_is_off_at_once_in_an_editor_that_is_connected() {
    let (gate, mut line) = with_window().await;
    let asked = gate.ask("fixer", &["read:files"]).await;
    let off = format!("{SETTINGS}editors_decide = false\n");
    fs::write(gate.daemon.home().file("it.toml"), off).unwrap();
    until("it is taken over", async || gate.daemon.stderr().contains("Took over the changed config")).await;
    let word = json!({"type": "decide", "id": 1, "request_id": asked.id, "approve": true});
    let (code, message) = refused(&mut line, word).await;
    assert!(code == "forbidden" && message.contains("editors_decide is false"), "{code}: {message}");
    assert_eq!(gate.request_seen(&asked.id).await["status"], "PENDING");
}

async fn nobody_decides(gate: &Gate, register: Value, request: &str) {
    let bearer = format!("Bearer {}", gate.plugin_secret());
    let mut line = knock(gate, "edit", &[("authorization", &bearer)]).await.unwrap();
    line.says(register).await;
    assert_eq!(line.hears("registered").await["decides"], false);
    line.pongs(true).await;
    line.says(json!({"type": "decide", "id": 1, "request_id": request, "approve": true})).await;
    let answer = line.next().await.unwrap();
    assert_eq!((&answer["type"], &answer["error"]["code"]), (&json!("decided"), &json!("forbidden")), "{answer}");
    assert_eq!(gate.request_seen(request).await["status"], "PENDING");
}

// what agents have opens no way to decide.
#[tokio::test]
async fn no_secret_that_an_agent_has_makes_it_an_editor() {
    let gate = Gate::start().await;
    let Granted { token, .. } = gate.granted(&["*"]).await;
    for secret in [token.as_str(), &gate.daemon.token(), "", "x"] {
        let bearer = format!("Bearer {secret}");
        let mut line = knock(&gate, "edit", &[("authorization", &bearer)]).await.unwrap();
        assert_eq!(line.closed().await, 1008);
        let mut line = knock(&gate, "edit", &[]).await.unwrap();
        let mut register = deciding(&gate);
        register["token"] = secret.into();
        line.says(register).await;
        assert_eq!(line.closed().await, 1008);
    }
    assert_eq!(state(&gate, "edit").await, None);
}

// agents at work change the picture, and not many times a second.
#[tokio::test]
async fn what_agents_do_is_shown_now_and_then() {
    let (gate, mut line) = with_window().await;
    let granted = gate.granted(&["read:files"]).await;
    let mut holder = gate.hold(&granted).await;
    shown(&mut line, "the grant", |desk| desk["grants"][0].is_object()).await;
    let begun = Instant::now();
    for _ in 0..200 {
        holder.does("open_file", json!({"path": "main.rs"})).await;
    }
    let mut pictures = 0;
    let desk = loop {
        let desk = line.hears("desk").await;
        pictures += 1;
        if desk["grants"][0]["actions"] == 200 {
            break desk;
        }
    };
    assert_eq!(desk["grants"][0]["last_actions"][0]["action"], "open_file");
    // One a second; and one or two for what the grant itself did when it was taken up.
    assert!(pictures <= begun.elapsed().as_secs() + 4, "{pictures} in {:?}", begun.elapsed());
}

// in two windows at once, one of them is first.
#[tokio::test]
async fn of_two_windows_that_answer_at_once_one_counts() {
    let (gate, mut one) = with_window().await;
    let mut other_register = deciding(&gate);
    other_register["instance_id"] = "two".into();
    let mut two = owning(&gate, "other", other_register).await;
    let mut holder = gate.hold(&gate.granted(&["*"]).await).await;
    let asked = holder.begins("delete_file", json!({"path": "main.rs"})).await;
    let confirmation = shown_confirmation(&mut one).await;
    assert_eq!(shown_confirmation(&mut two).await["digest"], confirmation["digest"]);
    let (yes, no) = tokio::join!(
        decided(&mut one, confirming(1, &confirmation, true)),
        decided(&mut two, confirming(1, &confirmation, false)),
    );
    let results: Vec<&Value> = vec![&yes["status"], &no["status"]];
    assert_eq!(results.iter().filter(|status| ***status == json!("ok")).count(), 1, "{yes} {no}");
    let is_done = holder.result(&asked).await["status"] == "ok";
    assert_eq!(is_done, yes["status"] == "ok");
    assert_eq!(fs::exists(gate.path("main.rs")).unwrap(), !is_done);
    let loser = if is_done { &no } else { &yes };
    assert_eq!(loser["error"]["code"], "not_pending", "{loser}");
    let (status, told) = answer(&gate, &confirmation, &confirmation["digest"], true).await;
    assert_eq!(status, 409);
    assert!(told.to_string().contains("already"), "{told}");
}
