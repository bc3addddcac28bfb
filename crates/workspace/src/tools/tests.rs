//! The server as a client meets it, within this process and on a pipe.

use std::{fs, time::Duration};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    time::timeout,
};

use super::*;
use prism_mcp::kit::{self, Eras};

const SOON: Duration = Duration::from_secs(10);

struct Desk {
    root: TempDir,
    home: TempDir,
}

impl Desk {
    fn new() -> Self {
        Self { root: TempDir::new().unwrap(), home: TempDir::new().unwrap() }
    }

    fn server(&self) -> Arc<BuiltinServer> {
        Arc::new(server(Some(self.root.path()), self.home.path()))
    }

    /// Calls tools one after the other on a pipe, as an older client, and returns their results.
    async fn call(&self, calls: &[(&str, Value)]) -> Vec<Value> {
        self.call_and_hear(calls).await.0
    }

    /// The same, and what was logged meanwhile.
    async fn call_and_hear(&self, calls: &[(&str, Value)]) -> (Vec<Value>, Vec<Value>) {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let (input, output) = tokio::io::split(theirs);
        let serving = {
            let server = self.server();
            tokio::spawn(async move { kit::serve(server, Eras::Both, input, output, &()).await })
        };
        let (read, mut write) = tokio::io::split(ours);
        let mut lines = BufReader::new(read).lines();
        let hello =
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let (mut results, mut notes) = (Vec::new(), Vec::new());
        let calls = calls.iter().map(|(name, arguments)| match name.contains('/') {
            true => (*name, arguments.clone()),
            false => ("tools/call", json!({"name": name, "arguments": arguments})),
        });
        let requests = [("initialize", hello)].into_iter().chain(calls);
        for (id, (method, params)) in requests.enumerate() {
            let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
            write.write_all(format!("{request}\n").as_bytes()).await.unwrap();
            let answer = timeout(SOON, async {
                loop {
                    let line = lines.next_line().await.unwrap().expect("the server goes on");
                    let message: Value = serde_json::from_str(&line).unwrap();
                    if message["id"] == id {
                        break message;
                    }
                    notes.push(message);
                }
            });
            results.push(answer.await.expect("an answer in time")["result"].clone());
            if id == 0 {
                let done = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
                write.write_all(format!("{done}\n").as_bytes()).await.unwrap();
            }
        }
        drop(write);
        serving.abort();
        (results.split_off(1), notes)
    }
}

// R-23, N-05: it announces logging, and logs what it has done to a client that wants to know.
#[tokio::test]
async fn what_was_stored_and_taken_out_is_logged() {
    let desk = Desk::new();
    let note = ("workspace_remember", json!({"title": "A lesson", "text": "Look twice."}));
    assert_eq!(desk.call_and_hear(std::slice::from_ref(&note)).await.1, [] as [Value; 0], "not unless it is wanted");
    let level = ("logging/setLevel", json!({"level": "debug"}));
    let (results, notes) = desk.call_and_hear(&[level, note]).await;
    let stored = &results[1]["structuredContent"]["_meta"]["document_path"];
    let [note] = &notes[..] else { panic!("{notes:?}") };
    assert_eq!((&note["params"]["logger"], &note["params"]["level"]), (&json!("workspace"), &json!("debug")));
    assert_eq!(note["params"]["data"]["done"], "workspace_remember");
    assert!(stored.is_string() && note["params"]["data"]["document_path"] == *stored, "{note} {results:?}");
    assert_eq!(note["params"]["_meta"]["correlation_id"], results[1]["_meta"]["correlation_id"]);
}

// W-02
#[test]
fn each_optional_argument_says_what_happens_without_it_and_no_other_claims_to_be_optional() {
    let desk = Desk::new();
    let tools = desk.server().tool_entries();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["workspace_get_context", "workspace_remember", "workspace_search", "workspace_forget"]);
    for tool in &tools {
        let schema = &tool["inputSchema"];
        let required: Vec<&str> = schema["required"]
            .as_array()
            .map(|all| all.iter().map(|name| name.as_str().unwrap()).collect())
            .unwrap_or_default();
        for (name, property) in schema["properties"].as_object().unwrap() {
            let said = property["description"].as_str().unwrap();
            let optional = said.starts_with("Optional; left out");
            assert_eq!(optional, !required.contains(&name.as_str()), "{name} of {}: {said}", tool["name"]);
            for word in ["must", "required", "always", "should"] {
                assert!(required.contains(&name.as_str()) || !said.contains(word), "{name}: {said}");
            }
        }
    }
    assert_eq!(tools[0]["inputSchema"]["required"], Value::Null, "a call without arguments will do");
    assert_eq!(tools[1]["inputSchema"]["required"], json!(["title", "text"]));
    assert_eq!(tools[2]["inputSchema"]["required"], json!(["query"]));
}

#[test]
fn the_hints_say_what_each_tool_does_to_the_world() {
    let desk = Desk::new();
    let hints = |at: usize| desk.server().tool_entries()[at]["annotations"].clone();
    assert_eq!(hints(0), json!({"readOnlyHint": true, "openWorldHint": false}));
    assert_eq!(hints(1), json!({"readOnlyHint": false, "destructiveHint": false, "openWorldHint": false}));
    assert_eq!(hints(2), json!({"readOnlyHint": true, "openWorldHint": false}));
    assert_eq!(hints(3), json!({"readOnlyHint": false, "destructiveHint": true, "openWorldHint": false}));
}

// W-02, W-03
#[tokio::test]
async fn what_one_call_remembers_the_next_finds_tells_and_forgets() {
    let desk = Desk::new();
    let note =
        json!({"title": "Use FTS5", "text": "It ranks.", "kind": "decision", "tags": "sql, search", "domain": ""});
    let results = desk
        .call(&[
            ("workspace_remember", note),
            ("workspace_search", json!({"query": "ranks", "tags": ["sql"], "kind": "decision"})),
            ("workspace_get_context", json!({"filter_tags": "sql,other", "tier": "full"})),
            ("workspace_get_context", json!({})),
        ])
        .await;
    let path = results[0]["structuredContent"]["_meta"]["document_path"].as_str().unwrap();
    assert!(fs::read_to_string(desk.root.path().join(path)).unwrap().contains("tags: [sql, search]"));
    let found = &results[1]["structuredContent"]["results"][0];
    assert_eq!((&found["_meta"]["document_path"], &found["snippet"]), (&path.into(), &"# Use FTS5 It «ranks».".into()));
    assert_eq!(results[2]["structuredContent"]["decisions"][0]["body"], "# Use FTS5\n\nIt ranks.");
    assert_eq!(results[3]["structuredContent"]["decisions"][0]["title"], "Use FTS5");
    let results = desk
        .call(&[("workspace_forget", json!({"document_path": path})), ("workspace_search", json!({"query": "ranks"}))])
        .await;
    assert!(results[0]["structuredContent"]["undo"].as_str().unwrap().starts_with("prism workspace restore "));
    assert_eq!(results[1]["structuredContent"]["total"], 0);
}

// W-01
#[tokio::test]
async fn repeated_calls_are_stable() {
    let desk = Desk::new();
    fs::create_dir(desk.root.path().join("notes")).unwrap();
    fs::write(desk.root.path().join("notes/a.md"), "words").unwrap();
    let calls = vec![("workspace_get_context", json!({})); 5];
    let results = desk.call(&calls).await;
    let said = |result: &Value| result["structuredContent"].clone();
    assert!(said(&results[0]).is_object());
    assert!(results.iter().all(|result| said(result) == said(&results[0])), "{results:?}");
}

// W-02
#[tokio::test]
async fn a_missing_root_and_bad_arguments_are_troubles_that_the_model_reads() {
    let desk = Desk::new();
    let results = desk
        .call(&[
            ("workspace_remember", json!({"title": "a"})),
            ("workspace_search", json!({"query": "a", "kind": "song"})),
            ("workspace_get_context", json!({"topics": 5})),
            ("workspace_get_context", json!({"domain": "nowhere"})),
        ])
        .await;
    let said =
        ["missing argument `text`", "unknown variant `song`", "a list of texts", "there is no domain \"nowhere\""];
    for (result, said) in results.iter().zip(said) {
        assert_eq!(result["isError"], true, "{result}");
        assert!(result["content"][0]["text"].as_str().unwrap().contains(said), "{result}");
    }
    fs::remove_dir(desk.root.path()).unwrap();
    let forget = json!({"document_path": "a.md"});
    for (tool, arguments) in [
        ("workspace_get_context", json!({})),
        ("workspace_search", json!({"query": "a"})),
        ("workspace_remember", json!({"title": "a", "text": "b"})),
        ("workspace_forget", forget),
    ] {
        let result = desk.call(&[(tool, arguments)]).await.remove(0);
        assert_eq!(result["isError"], true, "{tool}: {result}");
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("does not exist; set [workspace] root in prism.toml or pass --root"), "{text}");
    }
}
