//! A grant over MCP: what its holder is offered, what comes of a call, and that all of it ends with the grant.

use hyper::Method;
use serde_json::{Value, json};

use crate::support::{
    Client, Events, Modern,
    gate::{Gate, Granted, answer, text},
    seen::{line, seen},
};

const PATH: &str = "/editor/mcp";

fn client(gate: &Gate, granted: &Granted) -> Client {
    Client::new(gate.daemon.place(), PATH, Some(granted.token.clone()))
}

fn modern(gate: &Gate, granted: &Granted) -> Modern {
    Modern::new(client(gate, granted))
}

fn names(list: &Value) -> Vec<String> {
    list["tools"].as_array().unwrap().iter().map(|tool| text(&tool["name"])).collect()
}

async fn result(client: &Client, method: &str, params: Value) -> Value {
    client.ask(method, params).await.answer().await["result"].clone()
}

async fn called(client: &Client, tool: &str, arguments: Value) -> Value {
    result(client, "tools/call", json!({"name": tool, "arguments": arguments})).await
}

//
#[tokio::test]
async fn exactly_the_granted_verbs_are_tools_in_every_revision() {
    let gate = Gate::start().await;
    let granted = gate.granted(&["read:files", "delete:files"]).await;
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let client = client(&gate, &granted).initialize_as(version, json!({})).await;
        let list = result(&client, "tools/list", json!({})).await;
        assert_eq!(names(&list), ["open_file", "delete_file"], "{version}");
        let opened = called(&client, "open_file", json!({"path": "main.rs"})).await;
        let opened: Value = serde_json::from_str(&text(&opened["content"][0]["text"])).unwrap();
        assert_eq!(opened["content"], "fn main() {}\n", "{opened}");
    }
    let modern = modern(&gate, &granted);
    let list = modern.result("tools/list", json!({})).await;
    assert_eq!(names(&list), ["open_file", "delete_file"]);
    let tool = &list["tools"][0];
    assert_eq!(tool["annotations"]["readOnlyHint"], true, "{tool}");
    assert_eq!(tool["inputSchema"]["required"], json!(["path"]));
    assert_eq!(list["tools"][1]["annotations"]["destructiveHint"], true);
    let opened = modern.call("open_file", json!({"path": gate.path("main.rs")})).await;
    assert_eq!(opened["structuredContent"]["content"], "fn main() {}\n", "{opened}");
    let line = gate.audited("open_file", "allowed").await;
    assert_eq!(line["session_id"], granted.id.as_str(), "{line}");
}

//
#[tokio::test]
async fn what_is_refused_is_an_error_with_a_code_and_is_on_record() {
    let gate = Gate::start_with("[gate]\nrate_limit = 1000\nmax_edit_bytes = \"10B\"\n").await;
    let granted = gate.granted(&["read:files", "write:files"]).await;
    let client = client(&gate, &granted).initialize().await;
    let big = json!({"path": "main.rs", "content": "x".repeat(11)});
    for (tool, arguments, code, status) in [
        ("create_file", json!({"path": "a", "content": ""}), "forbidden", 403),
        ("open_file", json!({"path": "/etc/passwd"}), "outside_root", 403),
        ("open_file", json!({"path": "nothing"}), "not_found", 404),
        ("open_file", json!({"paht": "main.rs", "path": "main.rs"}), "bad_arguments", 400),
        ("open_file", json!({}), "bad_arguments", 400),
        ("write_file", big, "too_large", 413),
    ] {
        let before = gate.audit().len();
        let refused = called(&client, tool, arguments).await;
        assert_eq!(refused["isError"], true, "{tool}: {refused}");
        let told = &refused["structuredContent"];
        assert_eq!((&told["code"], &told["details"]["status"]), (&json!(code), &json!(status)), "{refused}");
        assert!(text(&refused["content"][0]["text"]).contains(&text(&told["message"])), "{refused}");
        gate.audited_after(before, tool, &format!("refused: {code}")).await;
    }
    let unknown = client.call("format_disk", json!({})).await.answer().await;
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    assert_eq!(std::fs::read_to_string(gate.path("main.rs")).unwrap(), "fn main() {}\n");
}

//
#[tokio::test]
async fn only_a_grants_own_token_opens_it_and_never_from_a_url() {
    let gate = Gate::start().await;
    let [one, other] = [gate.granted(&["read:files"]).await, gate.granted(&["read:files"]).await];
    for token in [Some(gate.daemon.token()), Some(gate.management()), Some("guessed".to_owned()), None] {
        let reply = Client::new(gate.daemon.place(), PATH, token).say_hello().await;
        assert_eq!(reply.status, 401);
        assert!(reply.header("www-authenticate").is_some());
        assert_eq!(reply.json().await["error"]["data"]["code"], "unauthorized");
    }
    gate.audited("connect", "refused: unauthorized").await;
    let in_url = client(&gate, &one).at(&format!("{PATH}?token={}", one.token)).say_hello().await;
    assert_eq!(in_url.status, 400);
    // Nor is a session of one grant found with the token of another.
    let session = client(&gate, &one).initialize().await;
    let stolen = client(&gate, &other).with_session(session.session());
    assert_eq!(stolen.ask("tools/list", json!({})).await.status, 404);
    assert_eq!(stolen.request(Method::GET).send().await.status, 404);
    assert_eq!(stolen.delete().await.status, 404);
    assert_eq!(session.ask("tools/list", json!({})).await.status, 200);
    // And the clients' token opens no session of a grant's elsewhere.
    let hub = gate.daemon.client_at("/mcp").with_session(session.session());
    assert_eq!(hub.ask("tools/list", json!({})).await.status, 404);
}

// all that a grant has ends with it.
#[tokio::test]
async fn sessions_streams_and_calls_end_with_the_grant() {
    let gate = Gate::start().await;
    let granted = gate.granted(&["read:files", "run:commands"]).await;
    let unharmed = client(&gate, &gate.granted(&["read:files"]).await).initialize().await;
    let session = client(&gate, &granted).initialize().await;
    let mut stream = session.listen().await;
    let modern = modern(&gate, &granted);
    let mut heard = modern.listen(json!(1), json!({"resourcesListChanged": true})).await;
    heard.next().await.expect("it is acknowledged");
    let runs = json!({"command": "sleep 600", "cwd": gate.project()});
    let running = async {
        let waiting = gate.confirmation().await;
        answer(&gate, &waiting, &waiting["digest"], true).await;
        gate.audited("exec_command", "allowed").await;
        let (status, _) = gate.as_person("/mcp/revoke", json!({"session_id": granted.id})).await;
        assert_eq!(status, 200);
    };
    let (ended, ()) = tokio::join!(called(&session, "exec_command", runs), running);
    assert_eq!((&ended["isError"], &ended["structuredContent"]["code"]), (&json!(true), &json!("revoked")), "{ended}");
    gate.audited("exec_command", "error: revoked").await;
    while stream.next().await.is_some() {}
    while heard.next().await.is_some() {}
    for reply in [
        session.ask("tools/list", json!({})).await,
        session.say_hello().await,
        modern.ask("tools/list", json!({})).await,
    ] {
        assert_eq!(reply.status, 401);
        assert_eq!(reply.json().await["error"]["data"]["code"], "revoked");
    }
    assert_eq!(unharmed.ask("tools/list", json!({})).await.status, 200);
}

//
#[tokio::test]
async fn what_destroys_waits_for_the_person_and_a_no_is_told() {
    let gate = Gate::start().await;
    let granted = gate.granted(&["delete:files"]).await;
    let modern = modern(&gate, &granted);
    for (allow, code) in [(false, "denied"), (true, "")] {
        let deleting = modern.call("delete_file", json!({"path": "main.rs"}));
        let deciding = async {
            let waiting = gate.confirmation().await;
            answer(&gate, &waiting, &waiting["digest"], allow).await;
        };
        let (deleted, ()) = tokio::join!(deleting, deciding);
        assert_eq!(deleted["structuredContent"]["code"].as_str().unwrap_or_default(), code, "{deleted}");
        assert_eq!(std::fs::exists(gate.path("main.rs")).unwrap(), !allow);
    }
}

// a client that does not hear that it waits is told to come back before it gives up, and a late Allow counts.
#[tokio::test]
async fn a_client_without_progress_is_told_to_call_again_and_the_question_stays() {
    let gate = Gate::start_with("[gate]\ncall_wait = \"300ms\"\n").await;
    let granted = gate.granted(&["delete:files"]).await;
    let client = client(&gate, &granted).initialize().await;
    let delete = json!({"path": "main.rs"});
    let told = called(&client, "delete_file", delete.clone()).await;
    assert_eq!((&told["isError"], &told["structuredContent"]["code"]), (&json!(true), &json!("waiting")), "{told}");
    let waiting = gate.confirmation().await;
    let message = text(&told["structuredContent"]["message"]);
    assert!(message.contains(&text(&waiting["confirmation_id"])) && message.contains("same arguments"), "{message}");
    let line = line(&gate.audited("delete_file", "refused: waiting").await);
    seen(format!("waiting: {message}"), gate.person_saw().await, line);
    // Asked again while it waits, it is the same question.
    let again = called(&client, "delete_file", delete.clone()).await;
    assert_eq!(again["structuredContent"]["message"], message.as_str(), "{again}");
    answer(&gate, &waiting, &waiting["digest"], true).await;
    assert!(std::fs::exists(gate.path("main.rs")).unwrap(), "nothing is done that nobody waits for");
    let done = called(&client, "delete_file", delete).await;
    assert_ne!(done["isError"], true, "{done}");
    assert!(!std::fs::exists(gate.path("main.rs")).unwrap());
}

// one that hears of progress waits on.
#[tokio::test]
async fn a_client_with_a_progress_token_waits_as_long_as_the_person_needs() {
    let gate = Gate::start_with("[gate]\ncall_wait = \"1ms\"\n").await;
    let granted = gate.granted(&["delete:files"]).await;
    let client = client(&gate, &granted).initialize().await;
    let call = json!({"name": "delete_file", "arguments": {"path": "main.rs"}, "_meta": {"progressToken": "t"}});
    let deciding = async {
        let waiting = gate.confirmation().await;
        answer(&gate, &waiting, &waiting["digest"], true).await;
    };
    let (reply, ()) = tokio::join!(client.ask("tools/call", call), deciding);
    let answer = reply.answer().await;
    assert_ne!(answer["result"]["isError"], true, "{answer}");
    assert!(!std::fs::exists(gate.path("main.rs")).unwrap());
}

// an Allow that comes right behind the client's leaving does nothing.
#[tokio::test]
async fn what_was_taken_back_is_not_done_however_soon_the_allow_comes() {
    let gate = Gate::start().await;
    let granted = gate.granted(&["delete:files"]).await;
    for (name, ends_session) in [("a", false), ("b", true)] {
        std::fs::write(gate.path(name), "x").unwrap();
        let client = client(&gate, &granted).initialize().await;
        let message = json!({"jsonrpc": "2.0", "id": 77, "method": "tools/call",
                             "params": {"name": "delete_file", "arguments": {"path": name}}});
        let before = gate.audit().len();
        let leaving = async {
            let waiting = gate.confirmation().await;
            match ends_session {
                true => drop(client.delete().await),
                false => {
                    let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
                                           "params": {"requestId": 77}});
                    client.post(&cancelled).await;
                }
            }
            answer(&gate, &waiting, &waiting["digest"], true).await;
        };
        let (_, ()) = tokio::join!(client.post(&message), leaving);
        let denied = gate.audited_after(before, "delete_file", "refused: denied").await;
        assert!(std::fs::exists(gate.path(name)).unwrap());
        seen("nothing: it had left", gate.person_saw().await, line(&denied));
    }
}

// a holder that goes on trying what it may not loses its sessions.
#[tokio::test]
async fn who_goes_on_trespassing_has_to_begin_anew() {
    let gate = Gate::start().await;
    let granted = gate.granted(&["read:files"]).await;
    let session = client(&gate, &granted).initialize().await;
    let mut stream = session.listen().await;
    for _ in 0..20 {
        let refused = called(&session, "delete_file", json!({"path": "main.rs"})).await;
        assert_eq!(refused["structuredContent"]["code"], "forbidden", "{refused}");
    }
    while stream.next().await.is_some() {}
    assert_eq!(session.ask("tools/list", json!({})).await.status, 404);
    let again = client(&gate, &granted).initialize().await;
    assert_eq!(called(&again, "open_file", json!({"path": "main.rs"})).await["isError"], Value::Null);
}

fn uri(gate: &Gate, scheme: &str, name: &str) -> String {
    format!("{scheme}://{}", gate.path(name))
}

/// The next note of that kind; its URI.
async fn heard(stream: &mut Events, method: &str) -> Value {
    loop {
        let note = stream.message().await;
        if note["method"] == format!("notifications/{method}") {
            return note["params"]["uri"].clone();
        }
    }
}

// what is open is there to be read and followed, in both eras, and only by who may.
#[tokio::test]
async fn open_buffers_are_resources_that_tell_of_their_changes() {
    let gate = Gate::start().await;
    std::fs::write(gate.path("a b.txt"), "one\n").unwrap();
    let scopes = ["read:files", "read:buffers", "edit:buffers", "detect:errors", "manage:buffers"];
    let granted = gate.granted(&scopes).await;
    let session = client(&gate, &granted).initialize().await;
    let modern = modern(&gate, &granted);
    let text_uri = uri(&gate, "file", "a%20b.txt");
    assert_eq!(result(&session, "resources/list", json!({})).await["resources"], json!([]));
    let templates = result(&session, "resources/templates/list", json!({})).await;
    assert_eq!(templates["resourceTemplates"][0]["uriTemplate"], "file://{+path}");

    let mut stream = session.listen().await;
    let wanted = json!({"resourcesListChanged": true, "resourceSubscriptions": [text_uri]});
    let mut listened = modern.listen(json!("l"), wanted.clone()).await;
    let first = listened.message().await;
    assert_eq!(first["params"]["notifications"], wanted, "{first}");
    let subscribed = session.ask("resources/subscribe", json!({"uri": text_uri})).await.answer().await;
    assert!(subscribed["result"].is_object(), "{subscribed}");

    let opened = called(&session, "open_file", json!({"path": "a b.txt"})).await["structuredContent"].clone();
    heard(&mut stream, "resources/list_changed").await;
    heard(&mut listened, "resources/list_changed").await;
    let list = modern.result("resources/list", json!({})).await;
    let uris: Vec<String> = list["resources"].as_array().unwrap().iter().map(|one| text(&one["uri"])).collect();
    assert_eq!(uris, [text_uri.clone(), uri(&gate, "prism-diagnostics", "a%20b.txt")]);
    assert_eq!(list["resources"][0]["_meta"]["prism/version"], opened["version"], "{list}");

    let edit = json!({"path": "a b.txt", "old_text": "one", "new_text": "two"});
    let edited = called(&session, "edit_buffer", edit).await["structuredContent"].clone();
    assert_eq!(heard(&mut stream, "resources/updated").await, json!(text_uri));
    assert_eq!(heard(&mut listened, "resources/updated").await, json!(text_uri));
    for read in [
        result(&session, "resources/read", json!({"uri": text_uri})).await,
        modern.result("resources/read", json!({"uri": text_uri})).await,
    ] {
        let content = &read["contents"][0];
        assert_eq!((&content["text"], &content["uri"]), (&json!("two\n"), &json!(text_uri)), "{read}");
        assert_eq!(content["_meta"]["prism/version"], edited["version"], "{read}");
        assert_eq!(content["_meta"]["prism/is_dirty"], true, "{read}");
    }
    assert_eq!(std::fs::read_to_string(gate.path("a b.txt")).unwrap(), "one\n");
    called(&session, "close_buffer", json!({"path": "a b.txt", "discard": true})).await;
    heard(&mut stream, "resources/list_changed").await;
    for (uri, code) in [("file:///etc/passwd", -32602), ("demo://x", -32002), (&uri(&gate, "file", "none"), -32002)] {
        let refused = session.ask("resources/read", json!({"uri": uri})).await.answer().await;
        assert_eq!(refused["error"]["code"], code, "{refused}");
    }
}

// what happens where one grant works is not another's business.
#[tokio::test]
async fn nobody_hears_of_what_is_outside_its_grant() {
    let gate = Gate::start().await;
    std::fs::create_dir(gate.path("docs")).unwrap();
    let scopes = ["read:files", "read:buffers", "edit:buffers"];
    let parent = gate.granted(&scopes).await;
    let body = json!({"agent_id": "helper", "roots": [gate.path("docs")]});
    let (_, told) = gate.post("/mcp/narrow", &parent.token, body).await;
    let child = Granted { id: text(&told["session_id"]), token: text(&told["session_token"]) };
    let outside = uri(&gate, "file", "main.rs");
    let inside = uri(&gate, "file", "docs/a");
    std::fs::write(gate.path("docs/a"), "x\n").unwrap();
    let wanted = json!({"resourceSubscriptions": [outside, inside], "resourcesListChanged": true});
    let mut stream = modern(&gate, &child).listen(json!(1), wanted).await;
    let first = stream.message().await;
    assert_eq!(first["params"]["notifications"]["resourceSubscriptions"], json!([inside]), "{first}");
    let blind = gate.granted(&["read:files"]).await;
    let capabilities = modern(&gate, &blind).result("server/discover", json!({})).await;
    assert_eq!(capabilities["capabilities"]["resources"], Value::Null, "{capabilities}");
    let session = client(&gate, &parent).initialize().await;
    for path in ["main.rs", "docs/a"] {
        let edit = json!({"path": path, "edits": [{"range": {"start": {"line": 0, "character": 0},
                          "end": {"line": 0, "character": 0}}, "new_text": "y", "old_text": ""}]});
        let edited = called(&session, "edit_buffer", edit).await;
        assert_ne!(edited["isError"], true, "{edited}");
    }
    // The first that it hears of is its own.
    let note = loop {
        let note = stream.message().await;
        if note["method"] == "notifications/resources/updated" {
            break note;
        }
    };
    assert_eq!(note["params"]["uri"], json!(inside));
    let list = modern(&gate, &child).result("resources/list", json!({})).await;
    let uris: Vec<String> = list["resources"].as_array().unwrap().iter().map(|one| text(&one["uri"])).collect();
    assert_eq!(uris, [inside]);
}

#[tokio::test]
async fn a_large_text_comes_whole_whatever_messages_may_weigh() {
    let gate = Gate::start().await;
    let large = "0123456789abcde\n".repeat(150_000);
    std::fs::write(gate.path("large.txt"), &large).unwrap();
    let granted = gate.granted(&["read:files"]).await;
    let read = modern(&gate, &granted).call("open_file", json!({"path": "large.txt"})).await;
    assert_eq!(read["structuredContent"]["content"].as_str().map(str::len), Some(large.len()));
}

// whoever waits for a build hears how far it is, in numbers that grow.
#[tokio::test]
async fn a_build_tells_how_far_it_is() {
    let gate = Gate::start().await;
    std::fs::write(gate.path("Makefile"), "all:\n\t@echo one\n\t@echo two\n").unwrap();
    let granted = gate.granted(&["build:project"]).await;
    let modern = modern(&gate, &granted);
    let build = json!({"name": "build_project", "arguments": {"tool": "make"}, "_meta": {"progressToken": "t"}});
    let session = client(&gate, &granted).initialize().await;
    for reply in
        [modern.post(&modern.message("tools/call", build.clone())).await, session.ask("tools/call", build).await]
    {
        let mut events = reply.events();
        let mut steps = Vec::new();
        let answer = loop {
            let message = events.message().await;
            if message["method"] != "notifications/progress" {
                break message;
            }
            assert_eq!(message["params"]["progressToken"], "t");
            steps.push(message["params"]["progress"].as_u64().unwrap());
        };
        assert_eq!(answer["result"]["structuredContent"]["is_ok"], true, "{answer}");
        assert!(!steps.is_empty() && steps.is_sorted_by(|a, b| a < b), "{steps:?}");
    }
}
