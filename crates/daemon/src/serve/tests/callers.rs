//! Prism's own server knows who calls it, by whichever way, and by no word of the client's own (M-01).

use serde_json::{Value, json};
use uuid::Uuid;

use super::{Door, NEWEST, modern_headers, modern_meta, request};

/// A call that says of itself that it is another's.
fn call(meta: Option<Value>) -> Value {
    let mut meta = meta.unwrap_or_else(|| json!({}));
    meta["prism/caller"] = json!({"session": "00000000-0000-4000-8000-000000000000", "transport": "forged"});
    request("tools/call", json!({"name": "prism_who_calls", "arguments": {}, "_meta": meta}))
}

/// The mark that the tool was called with. Older revisions get it as a text.
fn mark(answer: &str) -> Value {
    let answer = answer.replace('\\', "");
    let at = answer.find(r#""mark":"#).unwrap_or_else(|| panic!("no mark: {answer}"));
    let mut values = serde_json::Deserializer::from_str(&answer[at + r#""mark":"#.len()..]).into_iter();
    values.next().expect("a mark").expect("JSON")
}

// M-01
#[tokio::test]
async fn a_session_is_known_at_the_hub_and_at_the_server_itself() {
    let door = Door::open().await;
    let instance = Uuid::now_v7().to_string();
    let shim = [("prism-transport", "stdio"), ("prism-instance", instance.as_str())];
    for path in ["/mcp", "/prism/mcp"] {
        for (headers, transport) in [(&shim[..0], "http"), (&shim[..], "stdio")] {
            let session = door.initialize(path, headers, NEWEST).await;
            let mut headers = headers.to_vec();
            headers.push(("mcp-session-id", &session));
            let told = mark(&door.post(path, &headers, &call(None)).await);
            let instance = (transport == "stdio").then_some(&instance);
            assert_eq!(
                told,
                json!({"session": session, "instance": instance, "transport": transport, "client": "it"}),
                "{path}"
            );
        }
        // A batch (2025-03-26) is no way around it.
        let session = door.initialize(path, &[], "2025-03-26").await;
        let batch = json!([call(None)]);
        let told = mark(&door.post(path, &[("mcp-session-id", &session)], &batch).await);
        assert_eq!((&told["session"], &told["transport"]), (&json!(session), &json!("http")), "{path}");
    }
}

// M-01
#[tokio::test]
async fn who_has_no_session_is_known_by_its_shim_or_not_at_all() {
    let door = Door::open().await;
    let instance = Uuid::now_v7().to_string();
    for path in ["/mcp", "/prism/mcp"] {
        let stranger = mark(&door.post(path, &[], &call(None)).await);
        assert_eq!(stranger, json!({"session": null, "instance": null, "transport": "http", "client": null}), "{path}");
        let mut headers = modern_headers("tools/call", Some("prism_who_calls"));
        let told = mark(&door.post(path, &headers, &call(Some(modern_meta()))).await);
        assert_eq!(
            told,
            json!({"session": null, "instance": null, "transport": "http", "client": "modern-it"}),
            "{path}"
        );
        headers.extend([("prism-transport", "stdio"), ("prism-instance", &instance)]);
        let told = mark(&door.post(path, &headers, &call(Some(modern_meta()))).await);
        let all = json!({"session": null, "instance": instance, "transport": "stdio", "client": "modern-it"});
        assert_eq!(told, all, "{path}");
    }
}

// M-01
#[tokio::test]
async fn a_session_of_the_oldest_transport_is_known_too() {
    let door = Door::open().await;
    let mut stream = door.send("GET", "/prism/sse", &[], "").await;
    stream.until("/prism/message?sessionId=").await;
    let session = stream.until("\n").await.trim().to_owned();
    let path = format!("/prism/message?sessionId={session}");
    let params =
        json!({"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}});
    door.post(&path, &[], &request("initialize", params)).await;
    stream.until("serverInfo").await;
    door.post(&path, &[], &call(None)).await;
    stream.until("mark").await;
    let told = mark(&format!(r#""mark{}}}}}"#, stream.until("}}").await));
    assert_eq!(told, json!({"session": session, "instance": null, "transport": "sse", "client": "old"}));
}
