//! The basic flow of a request and what holds its holder (A-01 to A-08), item by item, with the real daemon over real sockets.

use hyper::Method;
use serde_json::{Value, json};

use crate::support::{
    gate::{Gate, text},
    until,
};

// A-01, A-02: "Request access → PENDING visible to Cursor."
#[tokio::test]
async fn request_access_is_pending_and_visible_to_the_person() {
    let gate = Gate::start().await;
    let onlooker = gate.request(Method::GET, "/mcp/events", Some(&gate.management())).send().await;
    let mut events = onlooker.events();
    let asked = gate.ask("fixer", &["read:files", "git:*"]).await;
    let row = gate.request_seen(&asked.id).await;
    assert_eq!(
        (&row["status"], &row["agent_id"], &row["reason"]),
        (&json!("PENDING"), &json!("fixer"), &json!("a test"))
    );
    assert_eq!(row["scopes"], json!(["read:files", "git:status", "git:commit", "git:branch"]));
    assert_eq!(row["roots"], json!([gate.project()]));
    assert_eq!(row["new_scopes"], row["scopes"], "nothing was granted before");
    let told = loop {
        let event = events.next().await.expect("the stream goes on");
        if event.name.as_deref() == Some("request") {
            break serde_json::from_str::<Value>(&event.data).unwrap();
        }
    };
    assert_eq!((&told["request_id"], &told["status"]), (&json!(asked.id), &json!("PENDING")));
    let line = gate.audited("request_access", "requested").await;
    assert_eq!((&line["actor"], &line["request_id"]), (&json!("fixer"), &json!(asked.id)));
}

// R-38: the person was shown an agent with a header of ours as the command line.
#[tokio::test]
async fn an_agent_cannot_pass_for_the_command_line() {
    let gate = Gate::start().await;
    let ask = json!({"agent_id": "a", "scopes": ["read:files"], "roots": [gate.project()], "reason": "r"}).to_string();
    for (secret, via) in [(gate.daemon.token(), "http"), (gate.management(), "cli")] {
        let request = gate.request(Method::POST, "/mcp/request_access", Some(&secret));
        let reply = request.header("user-agent", "prism-cli/9.9").body(ask.clone()).send().await;
        let asked: Value = reply.json().await;
        assert_eq!(gate.request_seen(&text(&asked["request_id"])).await["asker"]["via"], via);
    }
}

// A-02, A-03: "Approve → Session token returned."
#[tokio::test]
async fn approve_returns_a_session_token_for_at_most_what_was_asked() {
    let gate = Gate::start().await;
    let asked = gate.ask("fixer", &["read:files", "write:files", "create:files"]).await;
    let body = json!({"request_id": asked.id, "approved_scopes": ["read:files", "create:files"], "ttl_seconds": 300});
    let (status, told) = gate.as_person("/mcp/approve", body).await;
    assert_eq!(status, 200, "{told}");
    assert_eq!(text(&told["session_token"]).len(), 64, "256 bits");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let left = told["expires_at"].as_u64().expect("seconds since 1970 (A-02)") - now;
    assert!((200..=300).contains(&left), "{left}");
    let grant = gate.grant_seen(&text(&told["session_id"])).await;
    assert_eq!(grant["allowed_scopes"], json!(["read:files", "create:files"]));
    assert_eq!(gate.request_seen(&asked.id).await["status"], "APPROVED");
    gate.audited("approve", "allowed").await;

    // The agent takes a token of its own, once, with the claim that only it has.
    let claim = json!({"request_id": asked.id, "claim": asked.claim});
    let (_, told) = gate.as_agent("/mcp/claim", claim.clone()).await;
    let token = text(&told["session_token"]);
    let (_, again) = gate.as_agent("/mcp/claim", claim).await;
    assert!(again["session_token"].is_null(), "{again}");
    let (status, _) = gate.as_agent("/mcp/claim", json!({"request_id": asked.id, "claim": "f".repeat(64)})).await;
    assert_eq!(status, 404, "whoever has no claim learns nothing");
    // Neither is on disk as it is.
    let store = std::fs::read_dir(gate.daemon.home().path()).unwrap().filter_map(|file| Some(file.ok()?.path()));
    for file in store.filter(|path| path.is_file()) {
        let bytes = std::fs::read(&file).unwrap();
        let has = |secret: &str| bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
        assert!(!has(&token) && !has(&asked.claim), "{}", file.display());
    }
}

// A-05: "Sub-agent WS connect with token → success."
#[tokio::test]
async fn a_sub_agent_connects_with_its_token() {
    let gate = Gate::start().await;
    let granted = gate.granted(&["read:files", "explore:project"]).await;
    let mut holder = gate.hold(&granted).await;
    let file = holder.does("open_file", json!({"path": gate.path("main.rs")})).await;
    assert_eq!(file["status"], "ok", "{file}");
    assert!(file["data"].to_string().contains("fn main() {}"), "{file}");
    // A-05: the category form is the same action.
    let same = holder.does("file_operation", json!({"op": "open_file", "path": gate.path("main.rs")})).await;
    assert_eq!(same["data"], file["data"]);
    assert_eq!(gate.grant_seen(&granted.id).await["status"], "ACTIVE");
}

// A-05: "Revoke session → WS closed & actions blocked."
#[tokio::test]
async fn revoke_closes_the_socket_and_blocks_actions() {
    let gate = Gate::start().await;
    let granted = gate.granted(&["read:files"]).await;
    let mut holders = [gate.hold(&granted).await, gate.hold(&granted).await];
    let (status, told) = gate.as_person("/mcp/revoke", json!({"session_id": granted.id})).await;
    assert_eq!((status, &told), (200, &json!({"revoked": 1})));
    for holder in &mut holders {
        assert_eq!(holder.closed().await, 4001);
    }
    let mut late = gate.knock(&granted.id, Some(&granted.token), &[]).await.expect("it is told by the close code");
    assert_eq!(late.closed().await, 4001);
    assert_eq!(gate.grant_seen(&granted.id).await["status"], "REVOKED");
    gate.audited("revoke", "allowed").await;
    gate.audited("end", "revoked").await;
    let (_, again) = gate.as_person("/mcp/revoke", json!({"session_id": granted.id})).await;
    assert_eq!(again, json!({"revoked": 0}));
}

// A-07: "Sub-agent exceeds scope limits → actions rejected."
#[tokio::test]
async fn what_exceeds_the_scope_is_rejected_and_too_much_of_it_ends_the_socket() {
    let gate = Gate::start().await;
    let mut holder = gate.hold(&gate.granted(&["read:files"]).await).await;
    let path = gate.path("new.rs");
    let result = holder.does("create_file", json!({"path": path, "content": "x"})).await;
    let data = &result["data"];
    assert_eq!((&data["code"], &data["details"]["status"]), (&json!("forbidden"), &json!(403)), "{result}");
    assert!(!std::path::Path::new(&path).exists());
    gate.audited("create_file", "refused: forbidden").await;
    assert_eq!(holder.refused("no_such_verb", json!({})).await, "unknown_action");
    // 4002: one that goes on and on is not let try for ever. The first of the twenty was above.
    let mut closed = None;
    for _ in 0..20 {
        holder.begins("exec_command", json!({"command": ["true"], "cwd": gate.project()})).await;
        match holder.next().await {
            Ok(result) => assert_eq!(result["data"]["code"], "forbidden", "{result}"),
            Err(code) => {
                closed = Some(code);
                break;
            }
        }
    }
    assert_eq!(
        match closed {
            Some(code) => code,
            None => holder.closed().await,
        },
        4002
    );
}

// A-08: a path outside of every root is refused with 403, however it is written; `crates/editor` tries the rest.
#[tokio::test]
async fn a_path_outside_the_roots_is_rejected_with_403() {
    let gate = Gate::start().await;
    let mut holder = gate.hold(&gate.granted(&["read:files"]).await).await;
    let outside = gate.daemon.home().file("management-token");
    for path in [outside, gate.path("../management-token"), "/etc/passwd".to_owned(), "../http-mcp-token".to_owned()] {
        let result = holder.does("open_file", json!({"path": path})).await;
        assert_eq!(result["data"]["code"], "outside_root", "{path}: {result}");
        assert_eq!(result["data"]["details"]["status"], 403, "{path}: {result}");
    }
    gate.audited("open_file", "refused: outside_root").await;
}

// A-09: "Edit size > max_edit_bytes → rejected."
#[tokio::test]
async fn an_edit_larger_than_allowed_is_rejected() {
    let gate = Gate::start_with("[gate]\nmax_edit_bytes = 100\n").await;
    let mut holder = gate.hold(&gate.granted(&["create:files"]).await).await;
    let create = |bytes: usize| json!({"path": gate.path("new.txt"), "content": "x".repeat(bytes)});
    let result = holder.does("create_file", create(101)).await;
    let data = &result["data"];
    assert_eq!((&data["code"], &data["details"]["status"]), (&json!("too_large"), &json!(413)), "{result}");
    assert!(!std::path::Path::new(&gate.path("new.txt")).exists());
    gate.audited("create_file", "refused: too_large").await;
    assert_eq!(holder.does("create_file", create(100)).await["status"], "ok");
}

// A-09: "Rate limiting → excessive requests throttled."
#[tokio::test]
async fn excessive_requests_are_throttled() {
    let gate = Gate::start_with("[gate]\nrate_limit = 1\nburst = 3\n").await;
    let mut holder = gate.hold(&gate.granted(&["read:files"]).await).await;
    let mut ids = Vec::new();
    for _ in 0..20 {
        ids.push(holder.begins("open_file", json!({"path": gate.path("main.rs")})).await);
    }
    let (mut done, mut throttled) = (0, Vec::new());
    for _ in ids {
        let result = holder.next().await.expect("it is open");
        match result["data"]["code"].as_str() {
            None => done += 1,
            Some(code) => {
                assert_eq!(code, "rate_limited", "{result}");
                throttled.push(result["data"]["details"]["retry_after_ms"].as_u64().expect("when to try again"));
            }
        }
    }
    // Three at once, and on a slow machine one more for each second that it took.
    assert!(
        done >= 3 && !throttled.is_empty() && throttled.iter().all(|ms| (1..=1000).contains(ms)),
        "{done} {throttled:?}"
    );
    gate.audited("open_file", "refused: rate_limited").await;
    // What was throttled can be done later.
    until("there is room again", async || {
        holder.does("open_file", json!({"path": gate.path("main.rs")})).await["status"] == "ok"
    })
    .await;
}

// A-11: "Audit log contains entries for each sub-agent action."
#[tokio::test]
async fn the_audit_log_has_entries_for_each_action() {
    let gate = Gate::start().await;
    let granted = gate.granted(&["read:files", "create:files", "rename:files"]).await;
    let mut holder = gate.hold(&granted).await;
    let (a, b) = (gate.path("a.txt"), gate.path("b.txt"));
    for (action, args) in [
        ("create_file", json!({"path": a, "content": "the body of it"})),
        ("open_file", json!({"path": a})),
        ("rename_file", json!({"path": a, "new_path": b})),
    ] {
        assert_eq!(holder.does(action, args).await["status"], "ok", "{action}");
        let first = gate.audited(action, "allowed").await;
        let last = gate.audited(action, "ok").await;
        assert_eq!((&first["actor"], &first["session_id"]), (&json!("fixer"), &json!(granted.id)));
        assert_eq!(last["of"], first["seq"], "what came of it names what was allowed");
        assert!(first["ts"].is_string() && first["user"].is_string() && first["request_id"].is_string(), "{first}");
        assert!(first["args"].is_object(), "{first}");
    }
    assert_eq!(holder.refused("open_file", json!({"path": gate.path("missing")})).await, "not_found");
    let log: Vec<String> = gate.audit().iter().map(ToString::to_string).collect();
    assert!(!log.iter().any(|line| line.contains("the body of it")), "bodies only by a setting");
    // And over HTTP, for whoever may see it.
    let page = gate.seen("/mcp/logs?limit=5").await;
    assert_eq!(page["logs"].as_array().map(Vec::len), Some(5), "{page}");
}
