//! Grants: whose token opens what, what a helper is left, and how all of it ends or outlives the daemon.

use std::{io::Write, time::Instant};

use serde_json::{Value, json};

use crate::support::{
    gate::{Gate, Granted, SETTINGS, answer, text},
    until,
};

//
#[tokio::test]
async fn a_grants_token_does_not_open_another_grants_socket() {
    let gate = Gate::start().await;
    let [one, other] = [gate.granted(&["read:files"]).await, gate.granted(&["write:files"]).await];
    for (id, token) in [(&one.id, &other.token), (&one.id, &gate.daemon.token()), (&one.id, &gate.management())] {
        let mut holder = gate.knock(id, Some(token), &[]).await.expect("it is told by the close code");
        assert_eq!(holder.closed().await, 1008);
    }
    gate.audited("connect", "refused: unauthorized").await;
    let (status, _) = gate.post("/mcp/revoke", &one.token, json!({"session_id": other.id})).await;
    assert_eq!(status, 403, "nor does it end one");
    gate.audited("revoke", "refused: forbidden").await;
    assert_eq!(gate.grant_seen(&other.id).await["status"], "APPROVED");
}

async fn narrowed(gate: &Gate, parent: &Granted, body: Value) -> Granted {
    let (status, told) = gate.post("/mcp/narrow", &parent.token, body).await;
    assert_eq!(status, 200, "{told}");
    Granted { id: text(&told["session_id"]), token: text(&told["session_token"]) }
}

//
#[tokio::test]
async fn a_narrowed_token_gets_no_more_than_it_was_left() {
    let gate = Gate::start().await;
    std::fs::create_dir(gate.path("docs")).unwrap();
    let parent = gate.granted(&["read:files", "create:files"]).await;
    let docs = json!({"agent_id": "helper", "scopes": ["read:files"], "roots": [gate.path("docs")], "ttl_seconds": 60});
    let child = narrowed(&gate, &parent, docs).await;
    assert_eq!(gate.grant_seen(&child.id).await["parent"], json!(parent.id));
    for more in [
        json!({"agent_id": "x", "scopes": ["create:files"]}),
        json!({"agent_id": "x", "roots": [gate.project()]}),
        json!({"agent_id": "x", "roots": [gate.path("docs/../")]}),
        json!({"agent_id": "x", "ttl_seconds": 3600}),
        json!({"agent_id": "x", "rate_limit": 1_000_000}),
        json!({"agent_id": "x", "max_edit_bytes": 1_000_000_000}),
    ] {
        let (status, told) = gate.post("/mcp/narrow", &child.token, more.clone()).await;
        assert_eq!(status, 403, "{more}: {told}");
    }
    gate.audited("narrow", "refused: forbidden").await;
    let mut holder = gate.hold(&child).await;
    assert_eq!(holder.refused("open_file", json!({"path": gate.path("main.rs")})).await, "outside_root");
    let path = gate.path("docs/a");
    assert_eq!(holder.refused("create_file", json!({"path": path, "content": ""})).await, "forbidden");
}

// how long it took is written to the test's output: it should be below 100 ms.
#[tokio::test]
async fn a_revoked_parent_ends_the_branch() {
    let gate = Gate::start().await;
    let parent = gate.granted(&["read:files"]).await;
    let child = narrowed(&gate, &parent, json!({"agent_id": "child"})).await;
    let grandchild = narrowed(&gate, &child, json!({"agent_id": "grandchild"})).await;
    let sibling = gate.granted(&["read:files"]).await;
    let mut unharmed = gate.hold(&sibling).await;
    let mut holders = [gate.hold(&parent).await, gate.hold(&child).await, gate.hold(&grandchild).await];
    let begun = Instant::now();
    let (revoked, ended) = tokio::join!(gate.as_person("/mcp/revoke", json!({"session_id": parent.id})), async {
        for holder in &mut holders {
            assert_eq!(holder.closed().await, 4001);
        }
        begun.elapsed()
    });
    assert_eq!(revoked, (200, json!({"revoked": 3})));
    let said = format!("from the revocation to the last of three closed sockets: {ended:?}\n");
    let _ = std::io::stderr().write_all(said.as_bytes());
    assert_eq!(unharmed.does("open_file", json!({"path": gate.path("main.rs")})).await["status"], "ok");
    for of in [&parent, &child, &grandchild] {
        assert_eq!(gate.grant_seen(&of.id).await["status"], "REVOKED");
    }
    let (status, _) = gate.post("/mcp/narrow", &child.token, json!({"agent_id": "late"})).await;
    assert_eq!(status, 401);
}

//
#[tokio::test]
async fn expiry_closes_open_sockets() {
    let gate = Gate::start().await;
    let asked = gate.ask("fixer", &["read:files"]).await;
    let granted = gate.approve(&asked, json!({"ttl_seconds": 1})).await;
    let mut holder = gate.hold(&granted).await;
    assert_eq!(holder.closed().await, 4000);
    let mut late = gate.knock(&granted.id, Some(&granted.token), &[]).await.expect("it is told by the close code");
    assert_eq!(late.closed().await, 4000);
    // The holder is told first; then it is written down.
    until("it is over for everybody", async || {
        gate.seen("/mcp/sessions?all=1").await["sessions"][0]["status"] == "EXPIRED"
    })
    .await;
    gate.audited("end", "expired").await;
}

// everything that was decided, and everything that waits, is there after a kill.
#[tokio::test]
async fn a_restart_keeps_requests_grants_confirmations_and_tokens() {
    let gate = Gate::start().await;
    let waiting = gate.ask("waits", &["read:files"]).await;
    let granted = gate.granted(&["read:files", "run:commands"]).await;
    let child = narrowed(&gate, &granted, json!({"agent_id": "child", "scopes": ["read:files"]})).await;
    let revoked = gate.granted(&["read:files"]).await;
    gate.as_person("/mcp/revoke", json!({"session_id": revoked.id})).await;
    let mut holder = gate.hold(&granted).await;
    let marker = gate.path("marker");
    let command = json!({"command": ["touch", marker], "cwd": gate.project()});
    holder.begins("exec_command", command.clone()).await;
    let confirmation = gate.confirmation().await;
    let lines = gate.audit().len();

    let gate = gate.killed_and_started(SETTINGS).await;
    assert_eq!(gate.request_seen(&waiting.id).await["status"], "PENDING");
    assert_eq!(gate.confirmation().await["digest"], confirmation["digest"]);
    // The tokens are those that were given out, and what was over is over.
    let mut holder = gate.hold(&granted).await;
    assert_eq!(holder.does("open_file", json!({"path": gate.path("main.rs")})).await["status"], "ok");
    assert_eq!(gate.hold(&child).await.does("open_file", json!({"path": gate.path("main.rs")})).await["status"], "ok");
    let mut late = gate.knock(&revoked.id, Some(&revoked.token), &[]).await.expect("it is told by the close code");
    assert_eq!(late.closed().await, 4001);
    // Who asked is gone; a late Allow counts for the very same, once.
    assert!(!std::path::Path::new(&marker).exists());
    assert_eq!(answer(&gate, &confirmation, &confirmation["digest"], true).await.0, 200);
    assert_eq!(holder.does("exec_command", command).await["status"], "ok");
    assert!(std::path::Path::new(&marker).exists());
    let approved = gate.approve(&waiting, json!({})).await;
    gate.hold(&approved).await;
    // Lineage too: the branch ends with its parent.
    let (_, told) = gate.as_person("/mcp/revoke", json!({"session_id": granted.id})).await;
    assert_eq!(told, json!({"revoked": 2}));
    assert_eq!(holder.closed().await, 4001);
    // And the log goes on where it was.
    let numbers: Vec<u64> = gate.audit().iter().filter_map(|line| line["seq"].as_u64()).collect();
    assert!(numbers.len() > lines && numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "{numbers:?}");
}
