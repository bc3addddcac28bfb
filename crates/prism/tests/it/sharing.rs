//! Who shares a child, and who has one of their own (B-04).

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::{Client, Daemon, Home, Launch, NEWEST, demo, destination, lines, process, until};

async fn with(client: &Client, capabilities: Value) -> Client {
    client.initialize_as(NEWEST, capabilities).await
}

// B-04
#[tokio::test]
async fn sessions_that_cannot_be_asked_share_one_child() {
    let daemon = Daemon::run(&[], &[]).await;
    let first = daemon.client().initialize().await;
    // Whatever its revision, and whatever else it can do.
    let second = daemon.client().initialize_as("2025-03-26", json!({"experimental": {"x": {}}})).await;
    assert_eq!(first.child().await, second.child().await);
    assert_eq!(daemon.children().len(), 1);
}

// B-02, mcp-eras 5.3
// checks 94 96
#[tokio::test]
async fn many_clients_at_once_make_one_handshake() {
    let home = Home::new();
    let record = home.file("record");
    let daemon = Launch::run(&["--era", "legacy"], &demo(&["--record", &record])).home(&home).start().await;
    let mut crowd = JoinSet::new();
    for i in 0..30_u32 {
        let (client, modern) = (daemon.client(), daemon.modern());
        crowd.spawn(async move {
            match i % 3 {
                0 => modern.child().await,
                1 => client.child().await,
                _ => client.initialize().await.child().await,
            }
        });
    }
    let children = crowd.join_all().await;
    assert!(children.iter().all(|child| *child == children[0]), "{children:?}");
    let seen: Vec<Value> = lines(&record).iter().map(|line| line.parse().unwrap()).collect();
    let methods: Vec<&str> = seen.iter().map(|message| message["method"].as_str().unwrap()).collect();
    assert_eq!(methods[..2], ["initialize", "notifications/initialized"]);
    assert!(methods[2..].iter().all(|method| *method == "tools/call"), "{methods:?}");
    let mut ids: Vec<u64> = seen.iter().filter_map(|message| message.get("id")?.as_u64()).collect();
    assert_eq!(ids.len(), 31, "each has one");
    ids.sort_unstable();
    ids.dedup();
    assert_eq!((ids.len(), ids[0] >= 1), (31, true), "and no two the same");
}

// mcp-eras 5.5
// checks 100
#[tokio::test]
async fn a_ping_of_the_server_is_answered_and_reaches_nobody() {
    let daemon = Daemon::run(&[], &[]).await;
    let session = with(&daemon.client(), json!({"sampling": {}})).await;
    let mut stream = session.listen().await;
    let reply = session.call("ping_client", json!({})).await;
    assert!(!reply.is_stream());
    assert_eq!(reply.json().await["result"]["content"][0]["text"], "pong");
    assert_eq!(daemon.modern().text("ping_client", json!({})).await, "pong");
    session.text("change", json!({"what": "tools"})).await;
    assert_eq!(stream.message().await["method"], "notifications/tools/list_changed", "the first on this stream");
}

// B-04
// checks 105
#[tokio::test]
async fn sessions_that_can_be_asked_get_a_child_of_their_own() {
    let daemon = Daemon::run(&[], &[]).await;
    let plain = daemon.client().initialize().await;
    let mut children = vec![plain.child().await];
    for capabilities in
        [json!({"sampling": {}}), json!({"sampling": {}}), json!({"elicitation": {}}), json!({"roots": {}})]
    {
        children.push(with(&daemon.client(), capabilities).await.child().await);
    }
    let mut distinct = children.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), children.len(), "{children:?}");
}

// B-04: each child sees what its own client said.
#[tokio::test]
async fn a_child_of_ones_own_sees_ones_own_words() {
    let daemon = Daemon::run(&[], &[]).await;
    let session = with(&daemon.client(), json!({"roots": {"listChanged": true}})).await;
    let seen: Value = serde_json::from_str(&session.text("caps", json!({})).await).unwrap();
    assert_eq!(seen["capabilities"], json!({"roots": {"listChanged": true}}));
    assert_eq!(seen["clientInfo"]["name"], "it");
    let shared = daemon.client().initialize().await;
    let seen: Value = serde_json::from_str(&shared.text("caps", json!({})).await).unwrap();
    assert_eq!((&seen["capabilities"], &seen["clientInfo"]["name"]), (&json!({}), &json!("prism")));
}

// B-04
#[tokio::test]
async fn a_server_that_is_said_to_ask_nothing_is_shared_by_all() {
    let daemon = Launch::serve(&destination("a", &[], "asks = false")).start().await;
    let client = daemon.client_at("/a/mcp");
    let plain = client.initialize().await;
    let able = with(&client, json!({"sampling": {}, "roots": {}})).await;
    assert_eq!(plain.child().await, able.child().await);
}

// B-04
#[tokio::test]
async fn shared_always_shares_even_with_sessions_that_can_be_asked() {
    let daemon = Launch::serve(&destination("a", &[], "process = \"shared_always\"")).start().await;
    let client = daemon.client_at("/a/mcp");
    let first = with(&client, json!({"sampling": {}})).await;
    let second = with(&client, json!({"sampling": {}})).await;
    assert_eq!(first.child().await, second.child().await);
}

// B-04, B-13
#[tokio::test]
async fn per_session_gives_each_session_its_child_and_ends_just_that_one() {
    let daemon = Daemon::run(&["--process", "per_session"], &[]).await;
    let (first, second) = (daemon.client().initialize().await, daemon.client().initialize().await);
    let (one, other) = (first.child().await, second.child().await);
    assert_ne!(one, other);
    assert_eq!(first.delete().await.status, 204);
    until("its child is gone", async || !process::is_there(one)).await;
    assert_eq!(second.child().await, other);
}

// B-04: on a shared child a question goes to the one session whose call runs, and is refused where two could be meant.
// checks 104
#[tokio::test]
async fn a_question_on_a_shared_child_reaches_its_owner_or_nobody() {
    let daemon = Launch::serve(&destination("a", &[], "process = \"shared_always\"")).start().await;
    let client = daemon.client_at("/a/mcp");
    let first = with(&client, json!({"roots": {}})).await;
    let second = with(&client, json!({"roots": {}})).await;
    let mut foreign = second.listen().await;
    let mut stream = first.call("ask", json!({"kind": "roots", "text": "x"})).await.events();
    let question = stream.message().await;
    assert_eq!(question["method"], "roots/list");

    // While that one is open, another call of another session makes every further question ambiguous.
    let answer = second.call("ask", json!({"kind": "roots", "text": "x"})).await.json().await;
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    assert!(answer.to_string().contains("ambiguous_owner"), "{answer}");

    let reply = first.post(&json!({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}})).await;
    assert_eq!(reply.status, 202);
    let answer = stream.message().await;
    assert_eq!(answer["result"]["content"][0]["text"], r#"{"roots":[]}"#, "{answer}");
    // Nothing of it was shown to the other one: what it sees first is what is sent to all.
    first.text("change", json!({"what": "tools"})).await;
    assert_eq!(foreign.message().await["method"], "notifications/tools/list_changed");
}

// B-04: learned, remembered over a restart of the daemon, and unlearned by one question.
#[tokio::test]
async fn a_server_that_never_asked_is_shared_until_it_asks() {
    let home = Home::new();
    let launch = || Launch::run(&[], &demo(&[])).home(&home);
    let sampling = || json!({"sampling": {}});
    let daemon = launch().start().await;
    let session = with(&daemon.client(), sampling()).await;
    let list = session.ask("tools/list", json!({})).await.json().await;
    for tool in list["result"]["tools"].as_array().unwrap() {
        let name = tool["name"].as_str().unwrap();
        for _ in 0..5 {
            // Without what they need most tools only complain; one of them would end the server.
            let arguments = if name == "crash" { json!({"code": "x"}) } else { json!({}) };
            assert_eq!(session.call(name, arguments).await.status, 200, "{name}");
        }
    }
    until("it is learned", async || daemon.stderr().contains("asks nothing")).await;
    let (first, second) = (with(&daemon.client(), sampling()).await, with(&daemon.client(), sampling()).await);
    assert_eq!(first.child().await, second.child().await);
    daemon.stop().await;

    let daemon = launch().start().await;
    let (first, second) = (with(&daemon.client(), sampling()).await, with(&daemon.client(), sampling()).await);
    let shared = first.child().await;
    assert_eq!(second.child().await, shared);
    // The one call that runs is certain to be the one that asks.
    let mut stream = first.call("ask", json!({"kind": "sampling", "text": "x"})).await.events();
    assert_eq!(stream.message().await["method"], "sampling/createMessage");
    let third = with(&daemon.client(), sampling()).await;
    assert_ne!(third.child().await, shared);
}
