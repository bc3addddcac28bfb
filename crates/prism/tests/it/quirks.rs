//! Clients that do not survive what the protocol allows, told apart by what they send (R-48).

use hyper::Method;
use serde_json::{Value, json};

use crate::support::{Client, Daemon, Launch, NEWEST, destination, until};

/// What the Python SDK 1.x sends.
const PYTHON: &str = "python-httpx/0.28.1";
/// What the Python SDK 2 sends.
const SURVIVOR: &str = "python-httpx2/2.16.0";
const SHORT: &str = "request_timeout = \"2s\"\nmax_message_bytes = \"64KiB\"\n";

/// Calls that fail each in their own way, and with which status.
fn failures() -> [(u16, &'static str, Value); 3] {
    [
        (504, "slow", json!({"ms": 60_000, "text": "late"})),
        (503, "crash", json!({})),
        (502, "big", json!({"bytes": 100_000})),
    ]
}

/// Calls a tool as this client, and returns the status and the answer. It takes JSON only: a stream has its status before
/// anything fails.
async fn call(client: &Client, agent: &str, tool: &str, arguments: &Value) -> (u16, Value) {
    let params = json!({"name": tool, "arguments": arguments});
    let body = json!({"jsonrpc": "2.0", "id": "x1", "method": "tools/call", "params": params}).to_string();
    let request = client.request(Method::POST).header("user-agent", agent).header("accept", "application/json");
    let reply = request.body(body).send().await;
    (reply.status, reply.answer().await)
}

async fn start(config: &str) -> Daemon {
    Launch::serve(&format!("{SHORT}{config}")).start().await
}

// R-48
#[tokio::test]
async fn a_client_that_dies_of_a_status_hears_of_a_failed_call_in_the_body_of_a_200() {
    let daemon = start(&[destination("a", &[], ""), destination("b", &[], "")].concat()).await;
    for (path, prefix) in [("/a/mcp", ""), ("/mcp", "b__")] {
        let session = daemon.client_at(path).initialize().await;
        for (status, tool, arguments) in failures() {
            let tool = format!("{prefix}{tool}");
            let (shown, answer) = call(&session, PYTHON, &tool, &arguments).await;
            assert_eq!((shown, &answer["id"]), (200, &json!("x1")), "{path} {tool}: {answer}");
            let why = answer["error"]["message"].as_str().unwrap_or_default();
            assert!(!why.is_empty(), "the reason reaches its user: {answer}");
            // Its session lives: the next call is answered, as soon as there is a server again.
            let echo = format!("{prefix}echo");
            let next = async || call(&session, PYTHON, &echo, &json!({"text": "next"})).await;
            until("the next call", async || next().await.1["result"]["content"][0]["text"] == "next").await;
            // The statuses are as they were for those that survive them.
            assert_eq!(call(&session, SURVIVOR, &tool, &arguments).await.0, status, "{path} {tool}");
            until("the next call", async || next().await.1["result"].is_object()).await;
        }
    }
    for name in ["a", "b"] {
        let kept = format!(r#"prism_requests_total{{destination="{name}",method="tools/call",status="5xx"}}"#);
        assert!(daemon.metric(&kept).await >= Some(6), "{name}: the metrics say what it was, however it was told");
    }
}

// R-48: one that its user gave a `User-Agent` of its own is known by the name that the SDK gives it.
#[tokio::test]
async fn a_session_is_known_by_what_its_client_calls_itself() {
    let daemon = start(&destination("a", &[], "")).await;
    let client = daemon.client_at("/a/mcp");
    let info = json!({"name": "mcp", "version": "0.1.0"});
    let params = json!({"protocolVersion": NEWEST, "capabilities": {}, "clientInfo": info});
    let reply = client.ask("initialize", params).await;
    let session = client.with_session(reply.header("mcp-session-id").unwrap());
    let [(_, tool, arguments), ..] = failures();
    assert_eq!(call(&session, "my-agent/1", tool, &arguments).await.0, 200);
}

// R-48
#[tokio::test]
async fn error_statuses_pins_how_failures_are_told() {
    let config = [
        "error_statuses = \"http\"\n".to_owned(),
        destination("a", &[], ""),
        destination("b", &[], "error_statuses = \"ok\""),
        destination("c", &[], "error_statuses = \"auto\""),
    ];
    let daemon = start(&config.concat()).await;
    let [(_, tool, arguments), ..] = failures();
    for (path, python, survivor) in [("/a/mcp", 504, 504), ("/b/mcp", 200, 200), ("/c/mcp", 200, 504)] {
        let session = daemon.client_at(path).initialize().await;
        assert_eq!(call(&session, PYTHON, tool, &arguments).await.0, python, "{path}");
        assert_eq!(call(&session, SURVIVOR, tool, &arguments).await.0, survivor, "{path}");
    }
    let session = daemon.client_at("/mcp").initialize().await;
    assert_eq!(call(&session, PYTHON, &format!("a__{tool}"), &arguments).await.0, 504, "at the hub, what the top says");
}

// R-48: what clients go by stays: a session that is gone is initialized again.
#[tokio::test]
async fn a_status_that_means_something_to_clients_stays() {
    let daemon = start(&destination("a", &[], "")).await;
    let nobody = daemon.client_at("/a/mcp").with_session("11111111-2222-4333-8444-555555555555");
    let reply = nobody.request(Method::POST).header("user-agent", PYTHON);
    assert_eq!(reply.body(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).send().await.status, 404);
}
