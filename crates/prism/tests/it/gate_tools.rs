//! The gate's tools on Prism's own server: how an agent asks over MCP, and hears of the decision.

use serde_json::{Value, json};

use crate::support::{
    Client,
    agents::At,
    gate::{Gate, Granted, text},
};

async fn called(client: &Client, tool: &str, arguments: Value) -> Value {
    client.call(tool, arguments).await.answer().await["result"].clone()
}

async fn does(client: &Client, tool: &str, arguments: Value) -> Value {
    let result = called(client, tool, arguments).await;
    assert_ne!(result["isError"], true, "{tool}: {result}");
    result["structuredContent"].clone()
}

async fn fails(client: &Client, tool: &str, arguments: Value) -> String {
    let result = called(client, tool, arguments).await;
    assert_eq!(result["isError"], true, "{tool}: {result}");
    text(&result["content"][0]["text"])
}

// the tool `prism_request_access`; the token comes once, and with how to use it.
#[tokio::test]
async fn an_agent_asks_over_mcp_and_is_given_the_token_once() {
    let gate = Gate::start().await;
    let client = gate.daemon.client_at("/mcp").initialize().await;
    let ask = json!({"reason": "Tidy up", "roots": [gate.project()], "preset": "standard", "scopes": ["git:status"]});
    let why = fails(&client, "prism_request_access", ask.clone()).await;
    assert!(why.contains("agent_id") && why.contains("prism_start"), "{why}");
    let mut named = ask;
    named["agent_id"] = "tidier".into();
    let asked = does(&client, "prism_request_access", named).await;
    assert!(text(&asked["next"]).contains("A person decides"), "{asked}");
    let row = gate.request_seen(&text(&asked["request_id"])).await;
    assert_eq!((&row["agent_id"], &row["asker"]["via"]), (&json!("tidier"), &json!("mcp")));
    let claim = json!({"request_id": asked["request_id"], "claim": asked["claim"]});
    let told = does(&client, "prism_access_status", claim.clone()).await;
    assert_eq!(told["status"], "PENDING");
    assert!(told["session_token"].is_null(), "{told}");

    // One that waits hears of the decision at once.
    let mut waiting = claim.clone();
    waiting["wait_seconds"] = 60.into();
    let body = json!({"request_id": asked["request_id"], "approved_scopes": ["read:files", "explore:project"]});
    let (told, (status, _)) =
        tokio::join!(does(&client, "prism_access_status", waiting), gate.as_person("/mcp/approve", body));
    assert_eq!(status, 200);
    assert_eq!(told["allowed_scopes"], json!(["read:files", "explore:project"]), "{told}");
    let url = format!("ws://127.0.0.1:{}/mcp/session/{}", gate.daemon.port(), text(&told["session_id"]));
    assert_eq!(told["use"]["url"], url);
    let granted = Granted { id: text(&told["session_id"]), token: text(&told["session_token"]) };
    let mut holder = gate.hold(&granted).await;
    assert_eq!(holder.does("open_file", json!({"path": gate.path("main.rs")})).await["status"], "ok");
    assert!(does(&client, "prism_access_status", claim).await["session_token"].is_null(), "once");

    // A part of it for a helper, and an end to it.
    let narrow = json!({"session_token": granted.token, "agent_id": "helper", "scopes": ["read:files"]});
    let helper = does(&client, "prism_access_narrow", narrow).await;
    let helper = Granted { id: text(&helper["session_id"]), token: text(&helper["session_token"]) };
    let mut helping = gate.hold(&helper).await;
    assert_eq!(helping.refused("explore_tree", json!({"path": gate.project()})).await, "forbidden");
    let wide = json!({"session_token": helper.token, "agent_id": "x", "scopes": ["explore:project"]});
    assert!(fails(&client, "prism_access_narrow", wide).await.contains("your grant has no explore:project"));
    let other = json!({"session_token": helper.token, "session_id": granted.id});
    assert!(fails(&client, "prism_access_revoke", other).await.contains("no other"));
    assert_eq!(does(&client, "prism_access_revoke", json!({"session_token": granted.token})).await["revoked"], 2);
    assert_eq!((holder.closed().await, helping.closed().await), (4001, 4001));
}

#[tokio::test]
async fn a_wrong_claim_learns_nothing_and_a_denial_is_told_with_its_reason() {
    let gate = Gate::start().await;
    let client = gate.daemon.client_at("/prism/mcp").initialize().await;
    let asked = gate.ask("fixer", &["read:files"]).await;
    let wrong = json!({"request_id": asked.id, "claim": "0".repeat(64)});
    assert!(fails(&client, "prism_access_status", wrong).await.contains("unknown_request"));
    gate.audited("claim", "refused: unauthorized").await;
    gate.as_person("/mcp/deny", json!({"request_id": asked.id, "reason": "Not today"})).await;
    let claim = json!({"request_id": asked.id, "claim": asked.claim, "wait_seconds": 60});
    let told = does(&client, "prism_access_status", claim).await;
    assert_eq!((&told["status"], &told["reason"]), (&json!("DENIED"), &json!("Not today")));
    let unknown = json!({"session_token": "0".repeat(64)});
    assert!(fails(&client, "prism_access_revoke", unknown).await.contains("unauthorized"));
}

// A registered agent needs no name, and hears a bell when the person has decided.
#[tokio::test]
async fn a_registered_agent_is_known_by_its_name_and_rung_when_it_is_decided() {
    let gate = Gate::start().await;
    let agent = gate.daemon.agent(At::Hub, "donna").await;
    let mut ears = agent.listen().await;
    agent.until_support("full").await;
    let ask = json!({"reason": "Tidy up", "roots": [gate.project()], "scopes": ["read:files"]});
    let asked = does(agent.client(), "prism_request_access", ask).await;
    let row = gate.request_seen(&text(&asked["request_id"])).await;
    assert_eq!((&row["agent_id"], &row["asker"]["agent"]), (&json!("donna"), &json!("donna")));
    gate.as_person("/mcp/approve", json!({"request_id": asked["request_id"]})).await;
    ears.bell().await;
    let signals = agent.drain().await;
    assert_eq!(signals.len(), 1, "{signals:?}");
    assert!(text(&signals[0]["body"]).contains("prism_access_status"), "{signals:?}");
}
