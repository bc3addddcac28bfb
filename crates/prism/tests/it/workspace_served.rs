//! The workspace's memory as the daemon serves it: one POST is enough (W-01), however many there are, and stdio gives
//! the same answers (W-03).

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use crate::support::{Client, Daemon, Home, Launch, Modern, process, result_text};

/// Enough for what is kept to be there, and for what leaks to show.
const CALLS: usize = 1000;

/// What a process may have more after that many calls, in KiB: far less than one byte for each byte of an answer.
const SLACK_KIB: u64 = 4 << 10;

/// A workspace with a note of each kind.
fn workspace(home: &Home) -> String {
    let root = home.path().join("desk");
    for (folder, title) in [("decisions", "Use SQLite"), ("lessons", "Read the log"), ("notes", "Ports")] {
        fs::create_dir_all(root.join(folder)).unwrap();
        let text = format!("---\ntitle: {title}\ncreated: 2026-01-02\n---\nWhat there is to say of it.\n");
        fs::write(root.join(folder).join("260102-one.md"), text).unwrap();
    }
    root.to_str().unwrap().to_owned()
}

async fn served(home: &Home, root: &str) -> Daemon {
    Launch::serve(&format!("[workspace]\nroot = {root:?}\n")).home(home).start().await
}

async fn context(client: &Client) -> Value {
    let reply = client.call("workspace_get_context", json!({})).await;
    assert_eq!(reply.status, 200);
    let mut answer = reply.json().await;
    // Its own, each time.
    answer["result"].as_object_mut().unwrap().remove("_meta");
    answer["result"].clone()
}

// W-01
#[tokio::test]
async fn a_thousand_posts_give_one_answer_and_leave_nothing_behind() {
    let home = Home::new();
    let root = workspace(&home);
    let daemon = served(&home, &root).await;
    let client = daemon.client().at("/workspace/mcp");
    let first = context(&client).await;
    assert!(first["structuredContent"]["decisions"][0]["title"] == "Use SQLite", "{first}");
    for _ in 0..CALLS / 5 {
        assert_eq!(context(&client).await, first);
    }
    let before = (process::open_files(daemon.pid()), process::resident_kib(daemon.pid()));
    for _ in 0..CALLS {
        assert_eq!(context(&client).await, first);
    }
    let after = (process::open_files(daemon.pid()), process::resident_kib(daemon.pid()));
    assert!(after.0 <= before.0, "open files: {before:?} before, {after:?} after");
    assert!(after.1 <= before.1 + SLACK_KIB, "KiB: {before:?} before, {after:?} after");
    assert!(daemon.children().is_empty(), "it is no process of its own");
}

// W-01
#[tokio::test]
async fn sessions_and_both_eras_find_the_same_memory() {
    let home = Home::new();
    let root = workspace(&home);
    let daemon = served(&home, &root).await;
    let client = daemon.client().at("/workspace/mcp");
    let first = context(&client).await;
    assert_eq!(context(&client.initialize().await).await, first);
    let modern = Modern::new(client.clone()).call("workspace_get_context", json!({})).await;
    assert_eq!(modern["structuredContent"], first["structuredContent"]);
    let hub = context(&daemon.client().at("/mcp").initialize().await).await;
    assert_eq!(hub, first, "and at the hub under the same name");
}

// W-03
#[tokio::test]
async fn a_thousand_calls_on_stdio_give_the_same_answer_and_leave_nothing_behind() {
    let home = Home::new();
    let root = workspace(&home);
    let posted = context(&served(&home, &root).await.client().at("/workspace/mcp")).await;
    let mut server = Command::new(env!("CARGO_BIN_EXE_prism"))
        .args(["workspace", "mcp", "--root", &root])
        .env("PRISM_HOME", home.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = server.stdin.take().unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let mut ask = |method: &str, params: Value| {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        writeln!(input, "{request}").unwrap();
        serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap()
    };
    ask(
        "initialize",
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}),
    );
    let mut call = || {
        let mut answer = ask("tools/call", json!({"name": "workspace_get_context", "arguments": {}}));
        answer["result"].as_object_mut().unwrap().remove("_meta");
        assert_eq!(answer["result"], posted);
    };
    (0..CALLS / 5).for_each(|_| call());
    let before = (process::open_files(server.id()), process::resident_kib(server.id()));
    (0..CALLS).for_each(|_| call());
    let after = (process::open_files(server.id()), process::resident_kib(server.id()));
    assert!(after.0 <= before.0, "open files: {before:?} before, {after:?} after");
    assert!(after.1 <= before.1 + SLACK_KIB, "KiB: {before:?} before, {after:?} after");
    drop(input);
    assert!(server.wait().unwrap().success());
}

// W-02
#[tokio::test]
async fn without_a_root_every_tool_says_what_to_do() {
    let home = Home::new();
    // The config in Prism's home belongs to no workspace.
    fs::write(home.path().join("prism.toml"), "").unwrap();
    let daemon = Launch::prism(["serve", "--port", "0"].map(str::to_owned).to_vec()).home(&home).start().await;
    let client = daemon.client().at("/workspace/mcp");
    for (tool, arguments) in [
        ("workspace_get_context", json!({})),
        ("workspace_search", json!({"query": "x"})),
        ("workspace_remember", json!({"title": "x", "text": "y"})),
        ("workspace_forget", json!({"document_path": "x.md"})),
    ] {
        let answer = client.call(tool, arguments).await.json().await;
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        assert!(result_text(&answer).contains("--workspace"), "{answer}");
    }
}
