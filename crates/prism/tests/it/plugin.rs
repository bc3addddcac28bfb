//! Editors at the door: who is let in, whose a folder is, and what grants are told when an editor goes away.

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio_tungstenite::{
    client_async,
    tungstenite::{Message, client::IntoClientRequest},
};

use crate::support::{
    gate::{Gate, Holder},
    plugin::{Editor, VERBS, knock, owning, owns, register, registered, state},
    soon, until,
};

//
#[tokio::test]
async fn an_editor_needs_its_secret_in_a_header_or_in_its_registration() {
    let gate = Gate::start().await;
    let token = gate.plugin_secret();
    // The clients' token is what agents have, and an agent is no editor.
    for wrong in ["nonsense".to_owned(), gate.daemon.token()] {
        let wrong = format!("Bearer {wrong}");
        let mut wrong = knock(&gate, "edit", &[("authorization", &wrong)]).await.unwrap();
        assert_eq!(wrong.closed().await, 1008);
    }
    let mut none = knock(&gate, "edit", &[]).await.unwrap();
    none.says(register(&gate.project(), VERBS)).await;
    assert_eq!(none.closed().await, 1008);
    let mut told = register(&gate.project(), VERBS);
    told["token"] = "nonsense".into();
    let mut wrong = knock(&gate, "edit", &[]).await.unwrap();
    wrong.says(told.clone()).await;
    assert_eq!(wrong.closed().await, 1008);
    gate.audited("plugin_connect", "refused: unauthorized").await;

    told["token"] = token.as_str().into();
    let mut right = knock(&gate, "edit", &[]).await.unwrap();
    right.says(told).await;
    let hello = right.next().await.unwrap();
    assert_eq!((&hello["type"], &hello["positions"]), (&json!("registered"), &json!("utf-16")));
    let line = gate.audited("plugin_connect", "allowed").await;
    assert_eq!((&line["actor"], &line["args"]["kind"]), (&json!("plugin edit"), &json!("testedit")), "{line}");
    assert!(!gate.audit().iter().any(|line| line.to_string().contains(&token)), "no secret is in the log");
    drop(right);
    gate.audited("plugin_disconnect", "ok").await;

    let bearer = format!("Bearer {token}");
    let foreign = [("authorization", bearer.as_str()), ("origin", "http://evil.example")];
    assert_eq!(knock(&gate, "edit", &foreign).await.err(), Some(403));
    let page = [("authorization", bearer.as_str()), ("origin", "http://127.0.0.1:1")];
    assert_eq!(knock(&gate, "edit", &page).await.err(), Some(403), "another page of this machine is another page");
    assert_eq!(knock(&gate, "edit?token=x", &[("authorization", &bearer)]).await.err(), Some(400));
}

//
#[tokio::test]
async fn a_registration_that_cannot_be_used_is_told_why_and_closed() {
    let gate = Gate::start().await;
    let bearer = format!("Bearer {}", gate.plugin_secret());
    let good = register(&gate.project(), VERBS);
    let with = |member: &str, value: Value| {
        let mut register = good.clone();
        register[member] = value;
        register
    };
    for (bad, why) in [
        (with("protocol", json!(2)), "protocol 1"),
        (with("roots", json!([])), "roots"),
        (with("roots", json!(["relative", "/no/such/folder", gate.path("main.rs")])), "folder"),
        (with("instance_id", json!("")), "instance_id"),
        (with("kind", json!("a b")), "kind"),
        (with("roots", json!("one")), "not understood"),
        (json!({"type": "cmd", "id": 1}), ""),
        (json!([1]), ""),
    ] {
        let mut line = knock(&gate, "edit", &[("authorization", &bearer)]).await.unwrap();
        line.says(bad.clone()).await;
        let mut said = String::new();
        let code = loop {
            match line.next().await {
                Ok(message) => said.push_str(&message.to_string()),
                Err(code) => break code,
            }
        };
        assert_eq!(code, 1002, "{bad}");
        assert!(said.contains(why), "{bad}: {said}");
    }
    assert_eq!(state(&gate, "edit").await, None);
    // One of them is there, and that is enough.
    let roots = json!(["/no/such/folder", gate.project()]);
    owning(&gate, "edit", with("roots", roots)).await;
}

//
#[tokio::test]
async fn who_does_not_register_in_time_is_closed() {
    let gate = Gate::start().await;
    let bearer = format!("Bearer {}", gate.plugin_secret());
    let mut line = knock(&gate, "edit", &[("authorization", &bearer)]).await.unwrap();
    assert_eq!(line.closed().await, 1002);
}

/// Asks where the cursor is, which only an owner with a window knows.
async fn cursor_in(gate: &Gate, holder: &mut Holder) -> Value {
    holder.does("get_cursor_pos", json!({"path": gate.path("main.rs")})).await
}

//
#[tokio::test]
async fn an_editor_without_a_window_is_a_ghost_and_owns_nothing() {
    let gate = Gate::start().await;
    let mut holder = gate.hold(&gate.granted(&["read:files"]).await).await;
    let mut ghost = registered(&gate, "edit", register(&gate.project(), VERBS)).await;
    assert_eq!(state(&gate, "edit").await.as_deref(), Some("unsure"), "nobody has answered yet");
    ghost.pongs(false).await;
    // Its next message is heard after its pong.
    ghost.says_text("garbage").await;
    assert_eq!(ghost.hears("error").await["error"]["code"], "bad_arguments");
    assert_eq!(state(&gate, "edit").await.as_deref(), Some("unsure"));
    let opened = holder.does("open_file", json!({"path": gate.path("main.rs")})).await;
    assert_eq!(opened["status"], "ok", "the built-in editor did it: {opened}");
}

//
#[tokio::test]
async fn the_newest_window_owns_the_folder_and_an_old_one_that_reconnects_does_not() {
    let gate = Gate::start().await;
    let mut holder = gate.hold(&gate.granted(&["sync:cursor"]).await).await;
    let window = |instance: &str, started: u64| {
        let mut register = register(&gate.project(), &["get_cursor_pos"]);
        (register["instance_id"], register["started_at_ms"]) = (instance.into(), started.into());
        register
    };
    let mut new = owning(&gate, "new", window("new", 2_000)).await;
    // It was there before, and comes back now.
    let mut old = owning(&gate, "old", window("old", 1_000)).await;
    let asked = holder.begins("get_cursor_pos", json!({})).await;
    let cmd = new.hears("cmd").await;
    new.says(json!({"type": "result", "id": cmd["id"], "status": "ok", "data": {"ui": true, "by": "new"}})).await;
    assert_eq!(holder.result(&asked).await["data"]["by"], "new");
    drop(new);
    until("the new window has left", async || state(&gate, "new").await.is_none()).await;
    let asked = holder.begins("get_cursor_pos", json!({})).await;
    let cmd = old.hears("cmd").await;
    old.says(json!({"type": "result", "id": cmd["id"], "status": "ok", "data": {"by": "old"}})).await;
    assert_eq!(holder.result(&asked).await["data"]["by"], "old");
}

//
#[tokio::test]
async fn the_same_window_that_connects_anew_replaces_its_old_connection() {
    let gate = Gate::start().await;
    let mut before = owning(&gate, "edit", register(&gate.project(), VERBS)).await;
    let _after = owning(&gate, "edit", register(&gate.project(), VERBS)).await;
    assert_eq!(before.closed().await, 4009);
    until("one is left", async || gate.seen("/mcp/plugins").await["plugins"].as_array().map(Vec::len) == Some(1)).await;
    owns(&gate, "edit").await;
}

//
#[tokio::test]
async fn an_editor_of_another_folder_is_asked_nothing() {
    let gate = Gate::start().await;
    let elsewhere = tempfile::tempdir().unwrap();
    let mut holder = gate.hold(&gate.granted(&["*"]).await).await;
    let root = elsewhere.path().to_str().unwrap();
    let mut line = owning(&gate, "edit", register(root, VERBS)).await;
    assert_eq!(holder.does("open_file", json!({"path": gate.path("main.rs")})).await["status"], "ok");
    assert_eq!(holder.does("get_buffers", json!({})).await["status"], "ok", "its buffers are not asked for either");
    // An event from there is not this grant's, and one of a folder that it has not registered is nobody's.
    line.event(1, "file_saved", json!({"path": gate.path("main.rs")})).await;
    until("it was dropped", async || gate.seen("/mcp/plugins").await["plugins"][0]["events_dropped"] == 1).await;
    line.says_text("x").await;
    assert_eq!(line.next().await.unwrap()["type"], "error", "it was asked nothing before this");
}

//
#[tokio::test]
async fn an_editor_whose_window_no_longer_answers_loses_its_folder_and_has_it_back_when_it_does() {
    let gate = Gate::start().await;
    let mut holder = gate.hold(&gate.granted(&["sync:cursor"]).await).await;
    let mut line = owning(&gate, "edit", register(&gate.project(), &["get_cursor_pos"])).await;
    line.pongs(false).await;
    holder.event("runtime_degraded").await;
    assert_eq!(cursor_in(&gate, &mut holder).await["data"]["ui"], false, "the built-in editor stands in");
    line.pongs(true).await;
    holder.event("runtime_recovered").await;
    owns(&gate, "edit").await;
}

//
#[tokio::test]
async fn an_editor_may_come_over_the_unix_socket() {
    let gate = Gate::start().await;
    let stream = tokio::net::UnixStream::connect(gate.daemon.home().path().join("prism.sock")).await.unwrap();
    let mut request = "ws://localhost/plugin/edit".into_client_request().unwrap();
    let bearer = format!("Bearer {}", gate.plugin_secret());
    request.headers_mut().insert("authorization", bearer.parse().unwrap());
    let (mut socket, _) = soon("an answer", client_async(request, stream)).await.unwrap();
    let register = Message::text(register(&gate.project(), VERBS).to_string());
    socket.send(register).await.unwrap();
    let hello = soon("a greeting", socket.next()).await.unwrap().unwrap();
    assert!(hello.to_text().unwrap().contains("\"registered\""), "{hello}");
}

//
#[tokio::test]
async fn a_grant_whose_editor_is_gone_is_degraded_until_it_is_back() {
    let gate = Gate::start().await;
    let granted = gate.granted(&["read:files", "sync:cursor"]).await;
    let mut holder = gate.hold(&granted).await;
    let editor = Editor::start(&gate, "edit", VERBS).await;
    assert_eq!(gate.grant_seen(&granted.id).await["degraded"], json!([]));
    let left = editor.dies().await;
    let told = holder.event("runtime_degraded").await;
    assert_eq!((&told["event"], &told["data"]["plugins"]), (&json!("session_state"), &json!(["edit"])), "{told}");
    assert_eq!(gate.grant_seen(&granted.id).await["degraded"], json!(["edit"]));
    gate.audited("runtime_degraded", "ok").await;
    let listed = gate.prism(&["grants"]).end().await;
    assert!(listed.stdout.contains("degraded"), "{listed:?}");
    // It goes on with the built-in editor.
    assert_eq!(cursor_in(&gate, &mut holder).await["data"]["ui"], false);
    let _editor = Editor::back(&gate, "edit", left).await;
    holder.event("runtime_recovered").await;
    assert_eq!(gate.grant_seen(&granted.id).await["degraded"], json!([]));
    assert_eq!(cursor_in(&gate, &mut holder).await["data"]["ui"], true);
    gate.audited("runtime_recovered", "ok").await;
}
