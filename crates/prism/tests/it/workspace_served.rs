//! The workspace's memory as the daemon serves it: one POST is enough (W-01), however many there are, and stdio gives
//! the same answers (W-03).

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use crate::support::{Client, Daemon, Home, Launch, Modern, NEWEST, process, result_text, shim::Shim};

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

/// All four tools.
fn tools() -> [(&'static str, Value); 4] {
    [
        ("workspace_get_context", json!({})),
        ("workspace_search", json!({"query": "log"})),
        ("workspace_remember", json!({"title": "from another", "text": "y"})),
        ("workspace_forget", json!({"document_path": "notes/260102-one.md"})),
    ]
}

/// A workspace, and another one beside it.
fn two(home: &Home) -> (String, String) {
    let other = home.path().join("other");
    fs::create_dir_all(other.join(".git")).unwrap();
    (workspace(home), other.to_str().unwrap().to_owned())
}

fn refuses(answer: &Value, root: &str, other: &str) {
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    let told = result_text(answer);
    assert!(told.contains(root) && told.contains(&format!("prism workspace mcp --root {other}")), "{told}");
}

fn is_untouched(root: &str) {
    let notes: Vec<_> = fs::read_dir(format!("{root}/notes")).unwrap().map(|note| note.unwrap().file_name()).collect();
    assert_eq!(notes, ["260102-one.md"], "nothing was written, nothing was forgotten");
}

// refused rather than mixed.
#[tokio::test]
async fn who_works_in_another_folder_by_its_roots_neither_reads_nor_writes_this_memory() {
    let home = Home::new();
    let (root, other) = two(&home);
    let daemon = served(&home, &root).await;
    let rooted = |folder: &str| json!({"roots": [{"uri": format!("file://{folder}"), "name": "x"}]});
    for path in ["/workspace/mcp", "/mcp"] {
        let session = daemon.client().at(path).initialize_as(NEWEST, json!({"roots": {}})).await;
        let call = async |tool: &str, arguments: Value, roots: Value| {
            let mut stream = session.call(tool, arguments).await.events();
            let question = stream.message().await;
            assert_eq!(question["method"], "roots/list", "{question}");
            session.post(&json!({"jsonrpc": "2.0", "id": question["id"], "result": roots})).await;
            stream.message().await
        };
        for (tool, arguments) in tools() {
            refuses(&call(tool, arguments, rooted(&other)).await, &root, &other);
        }
        is_untouched(&root);
        // Its own, a folder in it, one of several, and a client that has none open.
        let several = json!({"roots": [{"uri": format!("file://{other}")}, {"uri": format!("file://{root}")}]});
        for roots in [rooted(&root), rooted(&format!("{root}/notes")), several, json!({"roots": []})] {
            let answer = call("workspace_get_context", json!({}), roots.clone()).await;
            assert!(answer["result"]["structuredContent"]["decisions"].is_array(), "{roots}: {answer}");
        }
        let modern = Modern::new(daemon.client().at(path)).can(json!({"roots": {}}));
        let arguments = json!({"title": "t", "text": "x"});
        let asked = modern.call("workspace_remember", arguments.clone()).await;
        assert_eq!(asked["inputRequests"]["roots"]["method"], "roots/list", "{asked}");
        let answer = modern.retry("workspace_remember", arguments, &asked, json!({"roots": rooted(&other)})).await;
        refuses(&answer, &root, &other);
        is_untouched(&root);
    }
}

//
#[tokio::test]
async fn who_was_started_in_another_folder_neither_reads_nor_writes_this_memory() {
    let home = Home::new();
    let (root, other) = two(&home);
    let _daemon = served(&home, &root).await;
    let inside = std::path::Path::new(&other).join("a b");
    fs::create_dir(&inside).unwrap();
    let call = |tool: &str, arguments: Value| json!({"name": tool, "arguments": arguments});
    let mut shim = Shim::start_in(&inside, &home, &["workspace"]);
    shim.initialize(NEWEST, json!({})).await;
    for (tool, arguments) in tools() {
        refuses(&json!({"result": shim.result("tools/call", call(tool, arguments)).await}), &root, &other);
    }
    is_untouched(&root);
    // In a folder that is no workspace a client may be anybody's.
    // The first one to go takes the daemon along.
    let mut shims = vec![shim];
    for folder in [root.as_ref(), home.path()] {
        let mut shim = Shim::start_in(folder, &home, &["workspace"]);
        shim.initialize(NEWEST, json!({})).await;
        let answer = shim.result("tools/call", call("workspace_get_context", json!({}))).await;
        assert!(answer["structuredContent"]["decisions"].is_array(), "{answer}");
        shims.push(shim);
    }
}
