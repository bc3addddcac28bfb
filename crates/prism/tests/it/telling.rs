//! What the daemon tells about itself: probes, metrics, and its log (D-05, B-23).

use hyper::Method;
use serde_json::{Value, json};

use crate::support::{
    Daemon, Launch, demo, destination,
    seen::{NOTHING, logged, seen},
    until,
};

async fn ready(daemon: &Daemon) -> (u16, Value) {
    let reply = daemon.client_at("/readyz").request(Method::GET).send().await;
    (reply.status, reply.json().await)
}

/// The log records of requests with this word, once there is one.
async fn records(daemon: &Daemon, word: &str) -> Vec<String> {
    let found = || {
        let log = daemon.stderr();
        let records = log.lines().filter(|line| line.contains("status_code=") && line.contains(word));
        records.map(str::to_owned).collect::<Vec<_>>()
    };
    until(&format!("a record of {word}"), async || !found().is_empty()).await;
    found()
}

// D-05
#[tokio::test]
async fn healthz_says_alive_to_anybody() {
    let daemon = Daemon::run(&[], &[]).await;
    let reply = daemon.get("/healthz").await;
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/json")));
    assert_eq!(reply.json().await, json!({"status": "alive"}));
}

// D-05
#[tokio::test]
async fn readyz_says_which_servers_answer_and_names_them_only_to_those_with_the_token() {
    let config = [destination("a", &[], ""), destination("b", &[], "")].concat();
    let daemon = Launch::serve(&config).start().await;
    let told = |a: &str, b: &str| (200, json!({"status": "ready", "destinations": {"a": a, "b": b}}));
    assert_eq!(ready(&daemon).await, told("never_used", "never_used"));
    let session = daemon.client_at("/a/mcp").initialize().await;
    assert_eq!(ready(&daemon).await, told("up", "never_used"));
    assert_eq!(session.delete().await.status, 204);
    assert_eq!(ready(&daemon).await, told("asleep", "never_used"));
    // Nobody is started to be asked.
    assert_eq!(daemon.metric(r#"prism_child_starts_total{destination="a"}"#).await, Some(1));
    assert_eq!(daemon.metric(r#"prism_child_starts_total{destination="b"}"#).await, Some(0));
    let reply = daemon.get("/readyz").await;
    assert_eq!((reply.status, reply.json().await), (200, json!({"status": "ready"})));
}

// D-05
#[tokio::test]
async fn readyz_is_503_while_a_server_is_silent() {
    let daemon = Daemon::run(&[], &["--fault", "deaf"]).await;
    daemon.client().initialize().await;
    let (code, told) = ready(&daemon).await;
    assert_eq!((code, &told["destinations"]), (503, &json!({"run": "slow"})), "{told}");
    assert_eq!(told["unavailable"]["run"], "it did not answer `tools/list` within 2s");
}

// D-05
#[tokio::test]
async fn metrics_count_what_happened_and_want_the_token() {
    let daemon = Daemon::run(&[], &[]).await;
    assert_eq!(daemon.get("/metrics").await.status, 401);
    let session = daemon.client().initialize().await;
    for _ in 0..3 {
        session.text("echo", json!({"text": "x"})).await;
    }
    session.call("crash", json!({})).await;
    session.request(Method::POST).body("not json").send().await;
    let stream = session.listen().await;
    let metric = async |name: &str| daemon.metric(name).await;
    let calls = r#"prism_requests_total{destination="run",method="tools/call",status="2xx"}"#;
    assert_eq!(metric(calls).await, Some(3));
    assert_eq!(metric(r#"prism_requests_total{destination="run",method="tools/call",status="5xx"}"#).await, Some(1));
    assert_eq!(metric(r#"prism_requests_total{destination="run",method="initialize",status="2xx"}"#).await, Some(1));
    assert_eq!(metric(r#"prism_refused_total{reason="token"}"#).await, Some(1));
    assert_eq!(metric(r#"prism_refused_total{reason="message"}"#).await, Some(1));
    assert_eq!(metric(r#"prism_sessions{destination="run"}"#).await, Some(1));
    assert_eq!(metric(r#"prism_streams{destination="run"}"#).await, Some(1));
    drop(stream);
    assert_eq!(session.delete().await.status, 204);
    let sessions = r#"prism_sessions{destination="run"}"#;
    until("the gauge is back at zero", async || daemon.metric(sessions).await == Some(0)).await;
}

// B-23
#[tokio::test]
async fn every_request_leaves_a_record_and_no_secret() {
    let daemon = Daemon::run(&[], &[]).await;
    let session = daemon.client().initialize().await;
    let call = |id: &str, text: &str| {
        let params = json!({"name": "echo", "arguments": {"text": text}});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    };
    session.post(&call("call-7", "a private matter")).await;
    session.post(&json!({"jsonrpc": "2.0", "id": "a\nforged INFO line", "method": "x/y"})).await;
    session.post(&json!({"jsonrpc": "2.0", "id": "late", "method": "tools/call", "params": {"name": "none"}})).await;
    drop(session.listen().await);
    let record = &records(&daemon, "call-7").await[0];
    for part in ["POST", "destination=run", "mcp_method=tools/call", r#"rpc_id="call-7""#, "status_code=200"] {
        assert!(record.contains(part), "{part}: {record}");
    }
    // N-06, R-23: of servers that are not Prism's own, too; the client's own if it has given one.
    let id = record.split("correlation_id=").nth(1).and_then(|rest| rest.split(' ').next()).unwrap_or_default();
    assert_eq!(uuid::Uuid::try_parse(id).map(|id| id.get_version_num()), Ok(7), "{record}");
    let given = "0190163d-8694-739b-aea5-966c26f8ad91";
    let params = json!({"name": "echo", "arguments": {"text": "x"}, "_meta": {"correlation_id": given}});
    session.post(&json!({"jsonrpc": "2.0", "id": "call-8", "method": "tools/call", "params": params})).await;
    let record8 = &records(&daemon, "call-8").await[0];
    assert!(record8.contains(&format!(" correlation_id={given} ")), "{record8}");
    // R-23: what the hub answers by itself, and what opens a session, have one as well.
    let with_hub = Launch::serve("").start().await;
    let hub = with_hub.hub().initialize().await;
    hub.post(&json!({"jsonrpc": "2.0", "id": "list-9", "method": "tools/list"})).await;
    for of in ["list-9", "mcp_method=initialize"] {
        let record = &records(&with_hub, of).await[0];
        assert!(record.contains(" correlation_id="), "{record}");
    }
    let latency = record.split("latency_ms=").nth(1).unwrap();
    assert!(latency.parse::<f64>().unwrap() >= 0.0, "{record}");
    let forged = &records(&daemon, "forged").await[0];
    assert!(forged.contains("POST") && forged.contains(r#"mcp_method="x/y""#), "{forged}");
    // A stream is recorded when it closes, whoever closed it.
    assert!(records(&daemon, " GET ").await[0].contains("status_code=200"));
    assert_eq!(session.delete().await.status, 204);
    assert!(records(&daemon, " DELETE ").await[0].contains("status_code=204"));
    session.ask("ping", json!({})).await;
    assert!(records(&daemon, "status_code=404").await[0].contains("POST"));
    let token = daemon.token();
    let log = daemon.stop().await;
    assert!(!log.contains(&token) && !log.contains("a private matter"), "{log}");
}

// B-23
#[tokio::test]
async fn bodies_are_recorded_only_where_that_was_asked_for() {
    let by_flag = Launch::run(&["--log-bodies"], &demo(&[]));
    let by_variable = Launch::run(&[], &demo(&[])).env("AUDIT_LOG_BODIES", "true");
    for launch in [by_flag, by_variable] {
        let daemon = launch.start().await;
        let session = daemon.client().initialize().await;
        session.text("echo", json!({"text": "a private matter"})).await;
        let record = records(&daemon, "a private matter").await.pop().unwrap();
        let (request, response) = record.split_once("response_body=").unwrap();
        assert!(request.contains("request_body=") && request.contains("a private matter"), "{record}");
        assert!(response.contains("a private matter"), "{record}");
        assert!(!daemon.stderr().contains(&daemon.token()));
    }
}

// R-11: "`AUDIT_LOG_BODIES=1` logs passwords, API keys and resolved `env:` secrets in clear; streamed answers are logged empty"
#[tokio::test]
async fn bodies_that_are_recorded_have_no_secrets_in_them_and_streams_have_content() {
    let settings = "log_bodies = true\n[audit]\nredact = [\"pin\"]\n";
    let server = destination("demo", &[], "env = { KEY = \"env:THE_KEY\" }");
    let daemon = Launch::serve(&format!("{settings}{server}")).env("THE_KEY", "resolved-value").start().await;
    let session = daemon.client_at("/demo/mcp").initialize().await;
    let text = "kept, resolved-value, ghp_0123456789abcdef0123456789abcdef0123";
    let answer = session.call("echo", json!({"text": text, "password": "hunter22", "pin": "4711"})).await;
    let status = answer.status;
    answer.text().await;
    // With progress the answer is a stream.
    let params = json!({"name": "slow", "arguments": {"ms": 50, "text": "streamed words, resolved-value"}, "_meta": {"progressToken": 1}});
    session.ask("tools/call", params).await.text().await;
    let record = records(&daemon, "kept").await.pop().unwrap();
    assert!(!record.contains("hunter22") && record.contains("[hidden]"), "{record}");
    let hidden = record.find("\"password").map(|at| &record[at..]).unwrap_or(&record);
    seen(format!("{status}: its own answer"), NOTHING, logged(hidden, "password"));
    let (_, response) = record.split_once("response_body=").unwrap();
    assert!(response.contains("kept"), "{record}");
    let streamed = records(&daemon, "streamed words").await.pop().unwrap();
    let (_, response) = streamed.split_once("response_body=").unwrap();
    assert!(response.contains("streamed words"), "{streamed}");
    let log = daemon.stop().await;
    for secret in ["hunter22", "4711", "resolved-value", "0123456789abcdef"] {
        assert!(!log.contains(secret), "{secret}: {log}");
    }
}

// B-23
#[tokio::test]
async fn a_quiet_log_keeps_quiet() {
    let daemon = Daemon::run(&["--log", "error"], &[]).await;
    let session = daemon.client().initialize().await;
    session.text("stderr", json!({"text": "complaint"})).await;
    session.delete().await;
    assert_eq!(daemon.stop().await, "");
}
