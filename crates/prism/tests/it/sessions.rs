//! How many sessions there may be, how long they last, and doing without (B-03, B-10, B-24).

use hyper::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::{Daemon, Home, Launch, demo, destination, lines, process, result_text, until};

// B-10
#[tokio::test]
async fn the_eleventh_session_of_a_destination_is_503_with_a_time_to_come_back() {
    let config = [destination("a", &[], ""), destination("b", &[], "")].concat();
    let daemon = Launch::serve(&config).start().await;
    let client = daemon.client_at("/a/mcp");
    let mut sessions = Vec::new();
    for _ in 0..10 {
        sessions.push(client.initialize().await);
    }
    let reply = client.say_hello().await;
    assert_eq!((reply.status, reply.header("retry-after")), (503, Some("5")));
    assert_eq!(reply.header("mcp-session-id"), None);
    let body = reply.json().await;
    let message = body["error"]["message"].as_str().unwrap();
    assert!(message.contains("10") && message.contains("max_sessions"), "{message}");
    // Those who are in stay in, the neighbour has a cap of its own, and a place given back is a place.
    sessions[0].child().await;
    daemon.client_at("/b/mcp").initialize().await;
    assert_eq!(sessions.pop().unwrap().delete().await.status, 204);
    client.initialize().await;
    assert_eq!(client.say_hello().await.status, 503);
}

// B-10
#[tokio::test]
async fn the_cap_may_come_from_the_environment() {
    for variable in ["MAX_STDIO_CONNECTIONS", "PRISM_MAX_SESSIONS"] {
        let daemon = Launch::run(&[], &demo(&[])).env(variable, "2").start().await;
        let (_first, _second) = (daemon.client().initialize().await, daemon.client().initialize().await);
        let reply = daemon.client().say_hello().await;
        assert_eq!((reply.status, reply.header("retry-after")), (503, Some("5")), "{variable}");
    }
}

// B-10: places are counted right when everybody comes at once, and when a start fails.
#[tokio::test]
async fn a_crowd_at_the_door_gets_as_many_places_as_there_are() {
    let home = Home::new();
    let broken = home.file("broken");
    let server = demo(&[]).join(" ");
    let command = ["sh", "-c", &format!("test ! -e {broken} && exec {server}")].map(str::to_owned);
    let daemon = Launch::run(&["--max-sessions", "5"], &command).home(&home).start().await;
    std::fs::write(&broken, "").unwrap();
    assert_eq!(daemon.client().say_hello().await.status, 503);
    std::fs::remove_file(&broken).unwrap();
    let mut crowd = JoinSet::new();
    for _ in 0..20 {
        let client = daemon.client();
        crowd.spawn(async move { client.say_hello().await.status });
    }
    let mut statuses = crowd.join_all().await;
    statuses.sort_unstable();
    assert_eq!(statuses, [vec![200; 5], vec![503; 15]].concat());
    assert_eq!(daemon.metric(r#"prism_sessions{destination="run"}"#).await, Some(5));
}

// B-10
#[tokio::test]
async fn an_idle_session_ends_by_itself_and_one_with_a_stream_or_a_call_does_not() {
    let daemon = Daemon::run(&["--session-idle-timeout", "1s"], &[]).await;
    let calling = daemon.client().initialize().await;
    let call = {
        let calling = calling.clone();
        tokio::spawn(async move { calling.text("slow", json!({"ms": 2500, "text": "still here"})).await })
    };
    let listening = daemon.client().initialize().await;
    let mut stream = listening.listen().await;
    let idle = daemon.client().initialize().await;
    let sessions = r#"prism_sessions{destination="run"}"#;
    until("the idle one is ended", async || daemon.metric(sessions).await == Some(2)).await;
    let reply = idle.ask("ping", json!({})).await;
    assert_eq!(reply.status, 404);
    assert_eq!(reply.json().await["error"]["code"], -32001);
    until("the log says so", async || daemon.stderr().contains("Ended an idle session")).await;
    assert_eq!(call.await.unwrap(), "still here");
    listening.text("change", json!({"what": "tools"})).await;
    assert_eq!(stream.message().await["method"], "notifications/tools/list_changed");
    // Then they end as well, and with the last one its child.
    let child = listening.child().await;
    drop(stream);
    until("all are ended", async || daemon.metric(sessions).await == Some(0)).await;
    until("the child is gone", async || !process::is_alive(child)).await;
}

// B-24
#[tokio::test]
async fn without_a_session_a_call_is_answered_all_the_same() {
    let home = Home::new();
    let record = home.file("record");
    let daemon = Launch::run(&[], &demo(&["--record", &record])).home(&home).start().await;
    let client = daemon.client();
    let reply = client.call("echo", json!({"text": "hello"})).await;
    assert_eq!((reply.status, reply.header("mcp-session-id")), (200, None));
    assert_eq!(result_text(&reply.json().await), "hello");
    let child = client.child().await;
    assert_eq!(client.child().await, child, "it stays for the next one");
    let hellos = lines(&record).iter().filter(|line| line.contains(r#""initialize""#)).count();
    assert_eq!(hellos, 1, "the bridge has made the handshake");

    // Its interim messages come on its own stream, like anybody's, and cannot be resumed.
    let params = json!({"name": "progress", "arguments": {"steps": 2, "ms": 1}, "_meta": {"progressToken": 7}});
    let events = client.ask("tools/call", params).await.events().rest().await;
    let progress: Vec<Value> =
        events[..2].iter().map(|event| event.json()["params"]["progressToken"].clone()).collect();
    assert_eq!(progress, [7, 7]);
    assert!(events.iter().all(|event| event.id.is_none()));
    assert_eq!(result_text(&events[2].json()), "2 steps done");

    // What would have to be remembered is refused.
    for (method, params) in
        [("logging/setLevel", json!({"level": "debug"})), ("resources/subscribe", json!({"uri": "demo://counter"}))]
    {
        let answer = client.ask(method, params).await.json().await;
        assert_eq!(answer["error"]["code"], -32600, "{method}: {answer}");
    }
    assert_eq!(client.notify("notifications/initialized", json!({})).await.status, 202);
    // And nobody is asked who could not answer.
    let answer = client.call("ask", json!({"kind": "roots", "text": "x"})).await.json().await;
    assert!(result_text(&answer).starts_with("-32601"), "{answer}");
}

// B-24
// By B-24 it is answered all the same, unless this is set.
// checks 20
#[tokio::test]
async fn sessions_required_refuses_a_call_without_one() {
    let daemon = Launch::serve(&destination("a", &[], "sessions = \"required\"")).start().await;
    let client = daemon.client_at("/a/mcp");
    let reply = client.ask("tools/list", json!({})).await;
    assert_eq!(reply.status, 400);
    let message = reply.json().await["error"]["message"].to_string();
    assert!(message.contains("Mcp-Session-Id") && message.contains("initialize"), "{message}");
    assert!(daemon.children().is_empty());
    client.initialize().await.child().await;
}

// B-24
#[tokio::test]
async fn sessions_never_gives_none_and_knows_no_get_or_delete() {
    let daemon = Launch::serve(&destination("a", &[], "sessions = \"never\"")).start().await;
    let client = daemon.client_at("/a/mcp");
    let reply = client.say_hello().await;
    assert_eq!((reply.status, reply.header("mcp-session-id")), (200, None));
    assert_eq!(reply.json().await["result"]["serverInfo"]["name"], "prism-demo");
    assert_eq!(client.text("echo", json!({"text": "hello"})).await, "hello");
    for verb in [Method::GET, Method::DELETE] {
        let reply = client.request(verb).send().await;
        assert_eq!((reply.status, reply.header("allow")), (405, Some("POST")));
    }
    // A session id from somewhere else is nobody's business here.
    let elsewhere = client.with_session("11111111-2222-4333-8444-555555555555");
    assert_eq!(elsewhere.text("echo", json!({"text": "hello"})).await, "hello");
}

// B-01, B-03
#[tokio::test]
async fn a_session_of_one_destination_is_unknown_at_another() {
    let config = [destination("a", &[], ""), destination("b", &[], "")].concat();
    let daemon = Launch::serve(&config).start().await;
    let a = daemon.client_at("/a/mcp").initialize().await;
    let b = daemon.client_at("/b/mcp").initialize().await;
    assert_ne!(a.child().await, b.child().await);
    let astray = a.at("/b/mcp");
    for reply in
        [astray.call("whoami", json!({})).await, astray.request(Method::GET).send().await, astray.delete().await]
    {
        assert_eq!(reply.status, 404);
        assert_eq!(reply.json().await["error"]["code"], -32001);
    }
    a.child().await;
}

// B-02
#[tokio::test]
async fn a_second_initialize_on_a_session_is_refused_and_harms_nothing() {
    let daemon = Daemon::run(&[], &[]).await;
    let session = daemon.client().initialize().await;
    let reply = session.say_hello().await;
    assert_eq!(reply.status, 400);
    assert!(reply.json().await["error"]["message"].as_str().unwrap().contains("leave Mcp-Session-Id out"));
    session.child().await;
}
