//! The transport of 2024-11-05, where it is asked for: one stream that everything comes on, and a place to post to
//! (B-20, mcp-eras 4.4).

use std::time::{Duration, Instant};

use hyper::Method;
use serde_json::{Value, json};

use crate::support::{Client, Daemon, Home, Launch, Plain, demo, destination, lines, process, result_text, until};

const BACKS: [&str; 2] = ["legacy", "modern"];
/// Far sooner than a keep-alive finds out that nobody is there, every 15 seconds.
const PROMPT: Duration = Duration::from_secs(5);
const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

async fn daemon(era: &str) -> Daemon {
    Daemon::run(&["--legacy-sse"], &["--era", era]).await
}

fn sse(daemon: &Daemon) -> Client {
    daemon.client_at("/sse")
}

// checks 12 13 16 54
#[tokio::test]
async fn a_stream_begins_with_where_to_post_and_then_has_messages_only() {
    for era in BACKS {
        let daemon = daemon(era).await;
        let reply = sse(&daemon).request(Method::GET).send().await;
        assert_eq!((reply.status, reply.header("content-type")), (200, Some("text/event-stream")));
        assert_eq!(reply.header("cache-control"), Some("no-cache, no-transform"));
        assert_eq!(reply.header("x-accel-buffering"), Some("no"));
        drop(reply);
        let plain = Plain::open(sse(&daemon)).await;
        let id = plain.endpoint.strip_prefix("/message?sessionId=").unwrap_or_else(|| panic!("{}", plain.endpoint));
        assert_eq!((id.len(), id.as_bytes()[14]), (36, b'4'), "a path on this server, with a UUID v4");
        assert_ne!(Plain::open(sse(&daemon)).await.endpoint, plain.endpoint);

        let mut plain = Plain::initialize(sse(&daemon), json!({})).await;
        plain.send("tools/call", json!({"name": "change", "arguments": {"what": "tools"}})).await;
        for _ in 0..2 {
            let event = plain.stream.next().await.unwrap();
            assert_eq!((event.name.as_deref(), &event.id), (Some("message"), &None), "{era}");
            assert!(event.json().is_object(), "one message each");
        }
    }
}

// checks 54
#[tokio::test]
async fn behind_a_proxy_with_a_path_of_its_own_the_place_to_post_has_that_path() {
    let config = destination("files", &[], "legacy_sse = true");
    let daemon = Launch::serve(&config).start().await;
    for (prefix, expected) in [
        ("/tools", "/tools/files/message?"),
        ("/a/b/", "/a/b/files/message?"),
        ("https://evil.example", "/files/message?"),
        ("//evil.example", "/files/message?"),
    ] {
        let request = daemon.client_at("/files/sse").request(Method::GET).header("x-forwarded-prefix", prefix);
        let endpoint = request.send().await.events().next().await.unwrap().data;
        assert!(endpoint.starts_with(expected), "{prefix}: {endpoint}");
    }
    let mut plain = Plain::initialize(daemon.client_at("/files/sse"), json!({})).await;
    assert_eq!(result_text(&plain.call("echo", json!({"text": "hello"})).await), "hello");
}

// checks 10 55
#[tokio::test]
async fn what_is_posted_is_answered_on_the_stream() {
    for era in BACKS {
        let daemon = daemon(era).await;
        let mut plain = Plain::initialize(sse(&daemon), json!({})).await;
        for id in [json!(1), json!("1"), json!(9_007_199_254_740_993_u64)] {
            let params = json!({"name": "echo", "arguments": {"text": "hello"}});
            let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
            let reply = plain.post(&call).await;
            assert_eq!((reply.status, reply.is_stream()), (202, false));
            assert!(reply.text().await.len() < 64, "whatever comes of it comes on the stream");
            let answer = plain.stream.message().await;
            assert_eq!((&answer["id"], result_text(&answer)), (&id, "hello"), "{era}");
        }
        // Errors as well.
        let answer = plain.answer("nothing/like/it", json!({})).await;
        assert_eq!(answer["error"]["code"], -32601, "{era}");
    }
}

// checks 1 15 55
#[tokio::test]
async fn a_place_to_post_that_was_never_given_out_is_404_and_the_door_is_the_same_as_elsewhere() {
    let daemon = daemon("legacy").await;
    let plain = Plain::initialize(sse(&daemon), json!({})).await;
    let astray = |path: &str| daemon.client_at(path).request(Method::POST).body(PING).send();
    for path in ["/message?sessionId=11111111-2222-4333-8444-555555555555", "/message?sessionId=banana"] {
        assert_eq!(astray(path).await.status, 404, "{path}");
    }
    assert_eq!(astray("/message").await.status, 400);
    for verb in [Method::GET, Method::DELETE, Method::PUT] {
        let reply = daemon.client_at(&plain.endpoint).request(verb.clone()).send().await;
        assert_eq!((reply.status, reply.header("allow")), (405, Some("POST")), "{verb}");
    }
    for (verb, path) in [(Method::GET, "/sse"), (Method::POST, plain.endpoint.as_str())] {
        let stranger = daemon.client_without_token().at(path).request(verb.clone()).body(PING);
        let reply = stranger.send().await;
        assert_eq!((reply.status, reply.header("www-authenticate")), (401, Some(r#"Bearer realm="prism""#)), "{verb}");
        let foreign = daemon.client_at(path).request(verb.clone()).body(PING).header("origin", "https://evil.example");
        assert_eq!(foreign.send().await.status, 403, "{verb}");
        let foreign = daemon.client_at(path).request(verb.clone()).body(PING).header("host", "evil.example");
        assert_eq!(foreign.send().await.status, 403, "{verb}");
    }
    assert_eq!(plain.request().header("content-type", "text/plain").body(PING).send().await.status, 415);
    assert_eq!(plain.request().body("not json").send().await.status, 400);
    assert_eq!(sse(&daemon).request(Method::GET).header("accept", "text/html").send().await.status, 406);
}

// checks 33 56
#[tokio::test]
async fn questions_and_notifications_come_on_the_stream_and_answers_are_posted() {
    for era in BACKS {
        let daemon = daemon(era).await;
        let mut plain = Plain::initialize(sse(&daemon), json!({"sampling": {}, "roots": {}})).await;
        let id =
            plain.send("tools/call", json!({"name": "ask", "arguments": {"kind": "sampling", "text": "what?"}})).await;
        let question = plain.stream.message().await;
        assert_eq!(question["method"], "sampling/createMessage", "{era}: {question}");
        assert_eq!(question["params"]["messages"][0]["content"]["text"], "what?", "{era}");
        let message = json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "that"}});
        let reply = plain.post(&json!({"jsonrpc": "2.0", "id": question["id"], "result": message})).await;
        assert_eq!(reply.status, 202);
        let answer = plain.stream.message().await;
        assert_eq!((&answer["id"], result_text(&answer)), (&id, "that"), "{era}");

        // What a call has to say on its way, and what belongs to none.
        let arguments = json!({"steps": 2, "ms": 1});
        let params = json!({"name": "progress", "arguments": arguments, "_meta": {"progressToken": "tok"}});
        let id = plain.send("tools/call", params).await;
        for step in 1..=2 {
            let mut note = plain.stream.message().await;
            let mark = note["params"]["_meta"].take();
            assert!(mark["correlation_id"].is_string(), "{era}: {mark}");
            let params = json!({"progressToken": "tok", "progress": step, "total": 2, "_meta": null});
            assert_eq!(note["params"], params, "{era}");
        }
        assert_eq!(plain.stream.message().await["id"], id, "{era}");
        let id =
            plain.send("tools/call", json!({"name": "log", "arguments": {"level": "error", "text": "hear me"}})).await;
        assert_eq!(plain.stream.message().await["params"]["data"], "hear me", "{era}");
        assert_eq!(plain.stream.message().await["id"], id, "{era}");
        let uri = json!({"uri": "demo://counter"});
        assert_eq!(plain.answer("resources/subscribe", uri.clone()).await["result"], json!({}), "{era}");
        plain.send("tools/call", json!({"name": "touch", "arguments": uri})).await;
        let mut both = [plain.stream.message().await, plain.stream.message().await];
        both.sort_by_key(|message| message.get("id").is_some());
        assert_eq!(
            (&both[0]["method"], &both[0]["params"]),
            (&json!("notifications/resources/updated"), &uri),
            "{era}"
        );
    }
}

// checks 57
#[tokio::test]
async fn closing_the_stream_cancels_its_calls_and_frees_its_place() {
    for era in BACKS {
        let home = Home::new();
        let record = home.file("record");
        let flags = ["--legacy-sse", "--max-sessions", "1", "--era", era];
        let daemon = Launch::run(&flags, &demo(&["--era", era, "--record", &record])).home(&home).start().await;
        // Who has no session keeps the child, which would end with its last one.
        let other = daemon.modern();
        let child = other.child().await;
        let plain = Plain::initialize(sse(&daemon), json!({})).await;
        let endpoint = plain.endpoint.clone();
        plain.send("tools/call", json!({"name": "slow", "arguments": {"ms": 600_000, "text": "never"}})).await;
        let call = || lines(&record).iter().find(|line| line.contains("slow")).cloned();
        until("the call is with the child", async || call().is_some()).await;
        let call: Value = call().unwrap().parse().unwrap();
        assert_eq!(sse(&daemon).request(Method::GET).send().await.status, 503, "there is one place");
        let left = Instant::now();
        drop(plain);
        let told = || {
            let mut notes = lines(&record).into_iter().filter(|line| line.contains("notifications/cancelled"));
            notes.any(|line| line.parse::<Value>().unwrap()["params"]["requestId"] == call["id"])
        };
        until("the child is told", async || told()).await;
        assert!(left.elapsed() < PROMPT, "{:?}", left.elapsed());
        let sessions = r#"prism_sessions{destination="run"}"#;
        until("the place is free", async || daemon.metric(sessions).await == Some(0)).await;
        assert_eq!(daemon.client_at(&endpoint).post_text(PING).await.status, 404, "{era}");
        let mut next = Plain::initialize(sse(&daemon), json!({})).await;
        assert_eq!(result_text(&next.call("echo", json!({"text": "hello"})).await), "hello", "{era}");
        assert_eq!(other.child().await, child, "{era}");
    }
}

// checks 57
#[tokio::test]
async fn closing_the_stream_ends_the_child_that_was_its_own() {
    let daemon = daemon("legacy").await;
    let mut plain = Plain::initialize(sse(&daemon), json!({"sampling": {}})).await;
    let child: u32 = result_text(&plain.call("whoami", json!({})).await).parse().unwrap();
    drop(plain);
    until("its child is gone", async || !process::is_there(child)).await;
}

// checks 46 47 49 50
#[tokio::test]
async fn small_requests_have_the_answers_that_clients_expect() {
    for era in BACKS {
        let daemon = daemon(era).await;
        let mut plain = Plain::initialize(sse(&daemon), json!({})).await;
        assert_eq!(plain.answer("ping", json!({})).await["result"], json!({}), "{era}");
        assert_eq!(plain.answer("logging/setLevel", json!({"level": "debug"})).await["result"], json!({}), "{era}");
        let answer = plain.answer("logging/setLevel", json!({"level": "loud"})).await;
        assert_eq!(answer["error"]["code"], -32602, "{era}");
        let answer = plain.answer("resources/read", json!({"uri": "demo://nowhere"})).await;
        assert_eq!(answer["error"]["code"], -32002, "{era}");
        for (method, params) in [
            ("tools/list", json!({})),
            ("resources/list", json!({})),
            ("prompts/list", json!({})),
            ("resources/read", json!({"uri": "demo://hello"})),
            ("tools/call", json!({"name": "whoami", "arguments": {}})),
        ] {
            let result = plain.answer(method, params).await["result"].take();
            assert!(result.is_object(), "{era} {method}");
            for name in ["resultType", "ttlMs", "cacheScope"] {
                assert_eq!(result.get(name), None, "{era} {method}: {result}");
            }
            assert!(!result["_meta"].to_string().contains("io.modelcontextprotocol/"), "{era} {method}: {result}");
        }
    }
}

// checks 52
#[tokio::test]
async fn what_its_revision_does_not_know_is_told_in_other_words() {
    for era in BACKS {
        let daemon = daemon(era).await;
        let mut plain = Plain::initialize(sse(&daemon), json!({})).await;
        let audio = plain.call("show", json!({"kind": "audio"})).await["result"]["content"][0].take();
        assert_eq!(audio["type"], "resource", "{era}: {audio}");
        assert_eq!(
            (&audio["resource"]["blob"], &audio["resource"]["mimeType"]),
            (&json!("UklGRg=="), &json!("audio/wav"))
        );
        let link = plain.call("show", json!({"kind": "resource_link"})).await["result"]["content"][0].take();
        assert_eq!(link["type"], "text", "{era}: {link}");
        let text = link["text"].as_str().unwrap();
        assert!(text.contains("hello") && text.contains("demo://hello"), "{era}: {link}");
    }
}

// B-20
#[tokio::test]
async fn only_destinations_that_are_told_to_serve_it() {
    let config = [destination("old", &[], "legacy_sse = true"), destination("new", &[], "")].concat();
    let daemon = Launch::serve(&config).start().await;
    let mut plain = Plain::initialize(daemon.client_at("/old/sse"), json!({})).await;
    assert!(plain.endpoint.starts_with("/old/message?"), "{}", plain.endpoint);
    assert_eq!(daemon.client_at("/new/sse").request(Method::GET).send().await.status, 410);
    assert_eq!(daemon.client_at("/sse").request(Method::GET).send().await.status, 404);
    let elsewhere = plain.endpoint.replace("/old/", "/new/");
    assert_eq!(daemon.client_at(&elsewhere).post_text(PING).await.status, 410);
    // The other ways lead to the same server.
    let session = daemon.client_at("/old/mcp").initialize().await;
    let child = result_text(&plain.call("whoami", json!({})).await).to_owned();
    assert_eq!(session.child().await.to_string(), child);
}

// mcp-eras 4.4
#[tokio::test]
async fn a_session_is_opened_once_and_before_anything_else() {
    let daemon = daemon("legacy").await;
    let mut plain = Plain::open(sse(&daemon)).await;
    assert_eq!(plain.answer("tools/list", json!({})).await["error"]["code"], -32600);
    assert!(daemon.children().is_empty(), "a stream alone starts nobody");
    let mut plain = Plain::initialize(sse(&daemon), json!({})).await;
    assert_eq!(plain.answer("initialize", hello()).await["error"]["code"], -32600);
}

fn hello() -> Value {
    json!({"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}})
}

// R-53: openai-agents and strands ask for the newest era, or whether anybody is there, before they initialize, and die of
// any status but 202.
#[tokio::test]
async fn whatever_comes_before_initialize_is_answered_on_the_stream() {
    let daemon = daemon("legacy").await;
    let mut plain = Plain::open(sse(&daemon)).await;
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
    assert_eq!(plain.answer("server/discover", json!({"_meta": meta})).await["error"]["code"], -32601);
    assert_eq!(plain.answer("ping", json!({})).await["result"], json!({}));
    assert_eq!(plain.tell("notifications/cancelled", json!({"requestId": 1})).await.status, 202);
    assert_eq!(plain.answer("initialize", json!({})).await["error"]["code"], -32602, "not even a good one");
    assert_eq!(plain.answer("initialize", hello()).await["result"]["protocolVersion"], "2024-11-05");
    assert_eq!(plain.tell("notifications/initialized", json!({})).await.status, 202);
    assert_eq!(result_text(&plain.call("echo", json!({"text": "hello"})).await), "hello");
}

// mcp-eras 5.8: a session of this kind is one among others.
#[tokio::test]
async fn every_client_hears_of_a_change_once() {
    for era in BACKS {
        let daemon = daemon(era).await;
        let mut plain = Plain::initialize(sse(&daemon), json!({})).await;
        let session = daemon.client().initialize().await;
        let mut stream = session.listen().await;
        session.text("change", json!({"what": "tools"})).await;
        session.text("change", json!({"what": "prompts"})).await;
        for what in ["tools", "prompts"] {
            for stream in [&mut stream, &mut plain.stream] {
                assert_eq!(stream.message().await["method"], format!("notifications/{what}/list_changed"), "{era}");
            }
        }
    }
}
