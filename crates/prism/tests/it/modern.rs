//! The modern era (2026-07-28) at the door: what a server is, which methods there are, and what of the older era means
//! nothing any more (mcp-eras 1.3, 4.2).

use hyper::Method;
use serde_json::{Value, json};

use crate::support::{Daemon, Home, Launch, Modern, Reply, demo, destination, lines, result_text, until};

const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// The two eras that a server can be of.
const BACKS: [&str; 2] = ["legacy", "modern"];

async fn error(reply: Reply) -> (u16, Value) {
    let status = reply.status;
    let body = reply.answer().await;
    assert!(body["error"].is_object(), "{body}");
    (status, body["error"].clone())
}

/// A server that has tools, without saying that their list changes, and nothing else.
fn poor_server() -> Vec<String> {
    let script = r#"while read -r line; do
        id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
        case "$line" in
            *'"initialize"'*) body='"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"poor","version":"1"}}';;
            *'"tools/list"'*) body='"result":{"tools":[]}';;
            *) body='"error":{"code":-32601,"message":"no such method"}';;
        esac
        case "$line" in *'"id":'*) printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$body";; esac
    done"#;
    ["sh", "-c", script].map(str::to_owned).to_vec()
}

// checks 67
#[tokio::test]
async fn discover_says_what_the_server_is_and_for_how_long() {
    for era in BACKS {
        let daemon = Daemon::run(&[], &["--era", era]).await;
        let reply = daemon.modern().ask("server/discover", json!({})).await;
        assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/json")));
        let result = reply.json().await["result"].take();
        assert_eq!(result["supportedVersions"], json!(["2026-07-28"]), "{era}");
        assert_eq!(result["resultType"], "complete", "{era}");
        assert!(result["ttlMs"].as_u64().is_some(), "{era}: {result}");
        assert!(["public", "private"].contains(&result["cacheScope"].as_str().unwrap()), "{era}: {result}");
        assert_eq!(result["capabilities"]["tools"], json!({"listChanged": true}), "{era}");
        assert_eq!(result["capabilities"]["resources"], json!({"subscribe": true, "listChanged": true}), "{era}");
        assert_eq!(result["_meta"][SERVER_INFO]["name"], "prism-demo", "{era}");
        assert!(result["instructions"].is_string(), "{era}");
        assert_eq!((result.get("serverInfo"), result.get("protocolVersion")), (None, None), "{era}");
    }
}

// checks 68
#[tokio::test]
async fn what_is_advertised_works_and_what_is_not_is_unknown() {
    let everything = [
        ("tools/list", json!({})),
        ("tools/call", json!({"name": "whoami", "arguments": {}})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("resources/read", json!({"uri": "demo://hello"})),
        ("prompts/list", json!({})),
        ("prompts/get", json!({"name": "greet", "arguments": {"name": "Ada"}})),
        (
            "completion/complete",
            json!({
                "ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "name", "value": "A"},
            }),
        ),
    ];
    for era in BACKS {
        let daemon = Daemon::run(&[], &["--era", era]).await;
        for (method, params) in everything.clone() {
            daemon.modern().result(method, params).await;
        }
    }
    let daemon = Launch::run(&[], &poor_server()).start().await;
    let client = daemon.modern();
    let told = client.result("server/discover", json!({})).await;
    assert_eq!(told["capabilities"], json!({"tools": {}}));
    assert_eq!(client.result("tools/list", json!({})).await["tools"], json!([]));
    for method in ["prompts/list", "resources/list", "completion/complete"] {
        let (status, told) = error(client.ask(method, json!({})).await).await;
        assert_eq!((status, &told["code"]), (404, &json!(-32601)), "{method}");
    }
}

// checks 47 68
#[tokio::test]
async fn what_the_server_does_not_have_a_legacy_client_is_told_so() {
    let daemon = Launch::run(&[], &poor_server()).start().await;
    let session = daemon.client().initialize().await;
    for (method, params) in [
        ("logging/setLevel", json!({"level": "debug"})),
        ("resources/subscribe", json!({"uri": "demo://counter"})),
        ("prompts/list", json!({})),
    ] {
        let (status, told) = error(session.ask(method, params).await).await;
        assert_eq!((status, &told["code"]), (200, &json!(-32601)), "{method}");
    }
    assert_eq!(session.ask("ping", json!({})).await.json().await["result"], json!({}));
}

// checks 69
#[tokio::test]
async fn a_method_that_the_era_does_not_have_is_404() {
    for era in BACKS {
        let home = Home::new();
        let record = home.file("record");
        let daemon =
            Launch::run(&["--era", era], &demo(&["--era", era, "--record", &record])).home(&home).start().await;
        let client = daemon.modern();
        client.child().await;
        let seen = lines(&record).len();
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x"}});
        for (method, params) in [
            ("initialize", hello),
            ("ping", json!({})),
            ("logging/setLevel", json!({"level": "debug"})),
            ("resources/subscribe", json!({"uri": "demo://counter"})),
            ("resources/unsubscribe", json!({"uri": "demo://counter"})),
        ] {
            let message = client.message(method, params);
            let reply = client.post(&message).await;
            assert_eq!((reply.status, reply.header("mcp-session-id")), (404, None), "{method}");
            let body = reply.json().await;
            assert_eq!((&body["error"]["code"], &body["id"]), (&json!(-32601), &message["id"]), "{method}");
        }
        assert_eq!(lines(&record).len(), seen, "no server has heard of any of it");
        let (status, told) = error(client.ask("nothing/like/it", json!({})).await).await;
        assert_eq!((status, &told["code"]), (404, &json!(-32601)), "{era}");
    }
}

// checks 71
#[tokio::test]
async fn every_result_says_its_kind_and_the_six_that_may_be_kept_say_for_how_long() {
    for era in BACKS {
        let daemon = Daemon::run(&[], &["--era", era]).await;
        let client = daemon.modern();
        for (method, params, kept) in [
            ("server/discover", json!({}), true),
            ("tools/list", json!({}), true),
            ("prompts/list", json!({}), true),
            ("resources/list", json!({}), true),
            ("resources/templates/list", json!({}), true),
            ("resources/read", json!({"uri": "demo://hello"}), true),
            ("tools/call", json!({"name": "echo", "arguments": {"text": "x"}}), false),
            ("tools/call", json!({"name": "echo", "arguments": {}}), false),
            ("prompts/get", json!({"name": "greet", "arguments": {"name": "Ada"}}), false),
        ] {
            let result = client.result(method, params).await;
            assert_eq!(result["resultType"], "complete", "{era} {method}");
            assert_eq!(result["ttlMs"].as_u64().is_some(), kept, "{era} {method}: {result}");
            let scope = result.get("cacheScope").and_then(Value::as_str);
            assert_eq!(scope.is_some_and(|scope| ["public", "private"].contains(&scope)), kept, "{era} {method}");
            assert_eq!(result["_meta"][SERVER_INFO]["name"], "prism-demo", "{era} {method}");
        }
    }
}

// checks 77
#[tokio::test]
async fn session_ids_and_event_ids_mean_nothing() {
    for era in BACKS {
        let daemon = Daemon::run(&[], &["--era", era]).await;
        let client = daemon.modern();
        let session = daemon.client().initialize().await;
        // One that is open, one that never was, and one that is none.
        for id in [session.session(), "11111111-2222-4333-8444-555555555555", "banana"] {
            let message = client.progress(json!("p"), 2, 1);
            let request = client.request(&message).header("mcp-session-id", id).header("last-event-id", "0-1");
            let reply = request.send().await;
            assert_eq!((reply.status, reply.header("mcp-session-id")), (200, None), "{era} {id}");
            let events = reply.events().rest().await;
            assert_eq!(events.len(), 3, "nothing is replayed, and nothing comes first: {events:?}");
            assert!(events.iter().all(|event| event.id.is_none() && !event.data.is_empty()), "{events:?}");
        }
        let mut stream = session.listen().await;
        session.text("change", json!({"what": "tools"})).await;
        assert_eq!(stream.message().await["method"], "notifications/tools/list_changed", "the session is as it was");
    }
}

// checks 78
#[tokio::test]
async fn there_is_nothing_to_get_or_delete() {
    let daemon = Daemon::run(&[], &[]).await;
    let session = daemon.client().initialize().await;
    let client = Modern::new(session.clone());
    for client in [&client, &daemon.modern()] {
        for verb in [Method::GET, Method::DELETE] {
            for accept in ["text/event-stream", "application/json"] {
                let reply = client.bare(verb.clone()).header("accept", accept).send().await;
                assert_eq!((reply.status, reply.header("allow")), (405, Some("POST")), "{verb}");
            }
        }
    }
    session.child().await;
}

// checks 79
#[tokio::test]
async fn a_posted_response_and_a_batch_are_refused() {
    let daemon = Daemon::run(&[], &[]).await;
    let client = daemon.modern();
    let response = json!({"jsonrpc": "2.0", "id": 1, "result": {}});
    let failure = json!({"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "no"}});
    let call = client.tool("whoami", json!({}));
    for body in [response, failure, json!([call]), json!([])] {
        let (status, told) = error(client.post(&body).await).await;
        assert_eq!((status, &told["code"]), (400, &json!(-32600)), "{body}");
    }
    // Whatever the header says: a batch with such a request in it is none of any revision.
    let session = daemon.client().initialize_as("2025-03-26", json!({})).await;
    let (status, told) = error(session.post(&json!([call])).await).await;
    assert_eq!((status, &told["code"]), (400, &json!(-32600)));
    assert!(
        daemon.metric(r#"prism_requests_total{destination="run",method="tools/call",status="2xx"}"#).await.is_none()
    );
}

// checks 80
#[tokio::test]
async fn a_posted_notification_is_202_and_touches_nobody() {
    for era in BACKS {
        let home = Home::new();
        let record = home.file("record");
        let daemon =
            Launch::run(&["--era", era], &demo(&["--era", era, "--record", &record])).home(&home).start().await;
        let client = daemon.modern();
        let mut call = client.tool("slow", json!({"ms": 700, "text": "still here"}));
        call["id"] = "c".into();
        let waiting = {
            let (client, call) = (client.clone(), call.clone());
            tokio::spawn(async move { client.post(&call).await.answer().await })
        };
        until("the call is with the child", async || lines(&record).iter().any(|line| line.contains("slow"))).await;
        let upstream: Value = lines(&record).iter().find(|line| line.contains("slow")).unwrap().parse().unwrap();
        for id in [json!("c"), upstream["id"].clone()] {
            let params = json!({"requestId": id, "_meta": client.meta()});
            let note = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
            let reply = client.post(&note).await;
            assert_eq!((reply.status, reply.text().await.as_str()), (202, ""));
        }
        assert_eq!(result_text(&waiting.await.unwrap()), "still here", "{era}");
        assert!(!lines(&record).iter().any(|line| line.contains("notifications/cancelled")), "{era}");
    }
}

// checks 1 2
#[tokio::test]
async fn a_foreign_page_is_kept_out_of_this_era_too() {
    let daemon = Daemon::run(&[], &[]).await;
    let client = daemon.modern();
    let message = client.message("server/discover", json!({}));
    let reply = client.request(&message).header("origin", "https://evil.example").send().await;
    assert_eq!(reply.status, 403);
    assert!(daemon.children().is_empty());
    let reply = client.request(&message).header("origin", "http://localhost:6274").send().await;
    assert_eq!((reply.status, reply.header("access-control-allow-origin")), (200, Some("http://localhost:6274")));
}

// checks 15
#[tokio::test]
async fn without_the_right_token_nobody_is_told_what_the_server_is() {
    let daemon = Daemon::run(&[], &[]).await;
    let stranger = Modern::new(daemon.client_without_token());
    let reply = stranger.ask("server/discover", json!({})).await;
    assert_eq!((reply.status, reply.header("www-authenticate")), (401, Some(r#"Bearer realm="prism""#)));
    let message = stranger.message("server/discover", json!({}));
    let reply = stranger.request(&message).header("authorization", "Bearer wrong").send().await;
    assert_eq!(reply.status, 401);
    assert_eq!(reply.header("www-authenticate"), Some(r#"Bearer realm="prism", error="invalid_token""#));
    let token = daemon.token();
    let in_the_query = Modern::new(daemon.client_without_token().at(&format!("/mcp?access_token={token}")));
    assert_eq!(in_the_query.ask("server/discover", json!({})).await.status, 401);
    assert!(daemon.children().is_empty());
}

// B-24: whatever is said of sessions, this era has none.
// checks 77
#[tokio::test]
async fn settings_of_sessions_do_not_matter() {
    for sessions in ["required", "never", "optional"] {
        let config = destination("a", &[], &format!("sessions = {sessions:?}"));
        let daemon = Launch::serve(&config).start().await;
        let client = Modern::new(daemon.client_at("/a/mcp"));
        assert_eq!(client.text("echo", json!({"text": "hello"})).await, "hello", "{sessions}");
        assert_eq!(client.bare(Method::GET).send().await.status, 405, "{sessions}");
    }
}
