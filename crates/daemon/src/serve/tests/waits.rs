//! Calls of Prism's own server take as long as they take, and end with their client.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use super::{Door, NEWEST, SOON, modern_headers, modern_meta, request};
use prism_config::Config;

/// The shortest times that a config can have for calls: over long before any of this is.
fn hasty() -> Config {
    let at_once = Duration::from_millis(1);
    Config { request_timeout: Some(at_once), max_request_time: at_once, ..Config::default() }
}

fn call(meta: Value) -> String {
    request("tools/call", json!({"name": "prism_wait", "arguments": {}, "_meta": meta})).to_string()
}

// M-04
#[tokio::test]
async fn a_wait_is_ended_by_its_client_and_by_no_clock() {
    for path in ["/mcp", "/prism/mcp"] {
        let door = Door::open_with(hasty()).await;
        let session = door.initialize(path, &[], NEWEST).await;
        let headers = [("mcp-session-id", session.as_str())];
        // What it is told meanwhile comes on its stream; nothing but its client ends it.
        let mut streaming = door.send("POST", path, &headers, &call(json!({"progressToken": 7}))).await;
        streaming.until("notifications/progress").await;
        let silent = door.send("POST", path, &headers, &call(json!({}))).await;
        door.post(path, &headers, &request("ping", json!({}))).await;
        assert!(timeout(Duration::from_millis(100), door.cancelled.notified()).await.is_err());
        drop(silent);
        timeout(SOON, door.cancelled.notified()).await.expect("it is cancelled");
        let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
        door.post(path, &headers, &cancel).await;
        timeout(SOON, door.cancelled.notified()).await.expect("it is cancelled");
        streaming.rest().await;
        // The modern era.
        let headers = modern_headers("tools/call", Some("prism_wait"));
        let mut meta = modern_meta();
        meta["progressToken"] = json!("p");
        let mut streaming = door.send("POST", path, &headers, &call(meta)).await;
        streaming.until("notifications/progress").await;
        drop(streaming);
        timeout(SOON, door.cancelled.notified()).await.expect("it is cancelled");
    }
}
