//! The same in the modern era, and which of the two is spoken.

use super::*;

fn meta(capabilities: Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
    })
}

fn request(id: impl Into<Value>, method: &str, mut params: Value, capabilities: Value) -> Value {
    params["_meta"] = meta(capabilities);
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params})
}

fn tool(id: impl Into<Value>, name: &str, arguments: Value) -> Value {
    request(id, "tools/call", json!({"name": name, "arguments": arguments}), json!({}))
}

fn answers(eras: Eras, lines: &[Value]) -> Vec<Value> {
    let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
    written_in(eras, Fault::None, lines).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// One server for several feedings, as the state of a question is good for one process only.
struct Talk {
    sink: Sink,
    server: Arc<Server>,
}

impl Talk {
    fn new() -> Self {
        let sink = Sink::default();
        let server = Arc::new(Server::new(Fault::None, Eras::Modern, Box::new(sink.clone())));
        Self { sink, server }
    }

    /// Feeds a request and waits for the message with its id.
    fn answer(&self, request: &Value) -> Value {
        listen(&self.server, format!("{request}\n").as_bytes(), None).unwrap();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        loop {
            let written = String::from_utf8_lossy(&self.sink.0.lock().unwrap()).into_owned();
            let found = written.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
            if let Some(answer) = found.into_iter().find(|message| message["id"] == request["id"]) {
                return answer;
            }
            assert!(std::time::Instant::now() < deadline, "no answer to {request}");
            std::thread::yield_now();
        }
    }
}

#[test]
fn discover_names_the_one_revision_and_every_result_has_its_kind() {
    let told = answers(
        Eras::Modern,
        &[
            request(1, "server/discover", json!({}), json!({})),
            request(2, "tools/list", json!({}), json!({})),
            tool(3, "whoami", json!({})),
        ],
    );
    assert_eq!(told[0]["result"]["supportedVersions"], json!(["2026-07-28"]));
    assert_eq!(told[0]["result"]["capabilities"]["tools"], json!({"listChanged": true}));
    assert!(told[0]["result"].get("protocolVersion").is_none());
    for answer in &told {
        assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
        assert_eq!(answer["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "prism-demo");
    }
    assert!(told[..2].iter().all(|answer| answer["result"]["ttlMs"].is_u64()));
    assert!(told[2]["result"].get("ttlMs").is_none(), "only what may be kept says how long");
}

#[test]
fn a_request_that_lacks_its_envelope_or_is_of_another_revision_is_refused() {
    let mut incapable = request(2, "tools/list", json!({}), json!({}));
    incapable["params"]["_meta"].as_object_mut().unwrap().remove("io.modelcontextprotocol/clientCapabilities");
    let mut older = request(3, "tools/list", json!({}), json!({}));
    older["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2025-11-25".into();
    let mut loud = request(4, "tools/list", json!({}), json!({}));
    loud["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = "loud".into();
    let told = answers(
        Eras::Modern,
        &[
            json!({"id": 1, "method": "tools/list"}),
            incapable,
            older,
            loud,
            request(5, "ping", json!({}), json!({})),
            request(6, "resources/read", json!({"uri": "demo://nope"}), json!({})),
            json!({"id": 7, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}),
        ],
    );
    let codes: Vec<_> = told.iter().map(|answer| answer["error"]["code"].as_i64().unwrap()).collect();
    assert_eq!(codes, [-32602, -32602, -32022, -32602, -32601, -32602, -32022]);
    assert_eq!(told[2]["error"]["data"], json!({"supported": ["2026-07-28"], "requested": "2025-11-25"}));
}

#[test]
fn both_speaks_what_its_client_speaks_until_initialize_binds_it() {
    let discover = request(1, "server/discover", json!({}), json!({}));
    let hello = json!({"id": 2, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}});
    let list = json!({"id": 3, "method": "tools/list"});
    let told = answers(Eras::Both, &[discover.clone(), list.clone(), hello, list, discover]);
    assert_eq!(told[0]["result"]["supportedVersions"], json!(["2026-07-28"]));
    assert!(told[1]["result"].get("resultType").is_none());
    assert_eq!(told[2]["result"]["protocolVersion"], "2025-11-25");
    assert!(told[3]["result"]["tools"].is_array());
    assert_eq!(told[4]["error"]["code"], -32601, "it is bound to the legacy era now");
}

#[test]
fn notes_are_sent_only_where_a_level_was_named_and_not_below_it() {
    let mut asking = tool(2, "log", json!({"level": "error", "text": "a"}));
    asking["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = "warning".into();
    let mut below = tool(3, "log", json!({"level": "info"}));
    below["params"]["_meta"] = asking["params"]["_meta"].clone();
    let told = answers(Eras::Modern, &[tool(1, "log", json!({"level": "emergency"})), asking, below]);
    assert_eq!(told.len(), 4, "{told:?}");
    assert_eq!(told[0]["result"]["content"][0]["text"], "0 notes sent");
    assert_eq!(told[1]["params"]["data"], "a");
    assert_eq!(told[3]["result"]["content"][0]["text"], "0 notes sent");
}

#[test]
fn a_listen_is_acknowledged_first_and_hears_what_it_asked_for_under_its_id() {
    let wanted = json!({"toolsListChanged": true, "resourceSubscriptions": ["demo://counter", "demo://nope"]});
    let told = answers(
        Eras::Modern,
        &[
            tool(1, "touch", json!({"uri": "demo://counter"})),
            request("l", "subscriptions/listen", json!({"notifications": wanted}), json!({})),
            tool(2, "change", json!({"what": "tools"})),
            tool(3, "change", json!({"what": "prompts"})),
            tool(4, "touch", json!({"uri": "demo://counter"})),
            json!({"method": "notifications/cancelled", "params": {"requestId": "l"}}),
            tool(5, "change", json!({"what": "tools"})),
            request(6, "subscriptions/listen", json!({}), json!({})),
        ],
    );
    let tag = json!({"io.modelcontextprotocol/subscriptionId": "l"});
    assert_eq!(told[0]["result"]["content"][0]["text"], "not subscribed");
    let honoured = json!({"toolsListChanged": true, "resourceSubscriptions": ["demo://counter"]});
    assert_eq!(told[1]["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(told[1]["params"], json!({"notifications": honoured, "_meta": tag}));
    assert_eq!(told[2]["method"], "notifications/tools/list_changed");
    assert_eq!(told[2]["params"], json!({"_meta": tag}));
    assert_eq!((&told[3]["id"], &told[4]["id"]), (&json!(2), &json!(3)), "nothing of prompts");
    assert_eq!(told[5]["params"], json!({"uri": "demo://counter", "_meta": tag}));
    assert_eq!(told[6]["result"]["content"][0]["text"], "update sent");
    assert_eq!(told[7]["id"], 5, "it is over");
    assert_eq!(told[8]["error"]["code"], -32602);
}

#[test]
fn a_question_is_a_result_and_the_same_call_with_the_answers_goes_on() {
    let talk = Talk::new();
    let ask = |id: u64, more: Value| {
        let arguments = json!({"kind": "elicitation", "text": "a?", "also": "b?"});
        let mut params = json!({"name": "ask", "arguments": arguments});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        talk.answer(&request(id, "tools/call", params, json!({"elicitation": {}})))["result"].take()
    };
    let first = ask(1, json!({}));
    assert_eq!(first["resultType"], "input_required");
    assert_eq!(first["inputRequests"]["first"]["method"], "elicitation/create");
    assert_eq!(first["inputRequests"]["second"]["params"]["message"], "b?");
    // Half an answer, and something that nobody asked for.
    let half = json!({"second": {"action": "decline"}, "third": {}});
    let again = ask(2, json!({"inputResponses": half, "requestState": first["requestState"]}));
    assert_eq!(again["inputRequests"].as_object().unwrap().keys().collect::<Vec<_>>(), ["first"]);
    let rest = json!({"first": {"action": "accept", "content": {"answer": "x"}}});
    let done = ask(3, json!({"inputResponses": rest, "requestState": again["requestState"]}));
    assert_eq!(done["resultType"], "complete");
    let both = json!([{"action": "accept", "content": {"answer": "x"}}, {"action": "decline"}]);
    assert_eq!(done["content"][0]["text"], both.to_string());
}

#[test]
fn a_state_that_is_altered_or_of_another_call_is_refused_and_so_is_a_client_that_cannot_answer() {
    let talk = Talk::new();
    let ask = |id: u64, text: &str, state: Value, capabilities: Value| {
        let arguments = json!({"kind": "roots", "text": text});
        let mut params = json!({"name": "ask", "arguments": arguments, "inputResponses": {"first": {"roots": []}}});
        if !state.is_null() {
            params["requestState"] = state;
        }
        talk.answer(&request(id, "tools/call", params, capabilities))
    };
    let half = json!({"kind": "roots", "text": "a", "also": "b"});
    let params = json!({"name": "ask", "arguments": half});
    let state = talk.answer(&request(1, "tools/call", params, json!({"roots": {}})))["result"]["requestState"].take();
    assert_eq!(ask(2, "a", state, json!({"roots": {}}))["error"]["code"], -32602, "of another call");
    assert_eq!(ask(3, "a", json!("demo.0.{}"), json!({"roots": {}}))["error"]["code"], -32602);
    let refused = ask(4, "a", Value::Null, json!({"sampling": {}}));
    assert_eq!(refused["error"]["code"], -32021);
    assert_eq!(refused["error"]["data"], json!({"requiredCapabilities": {"roots": {}}}));
    assert_eq!(ask(5, "a", Value::Null, json!({"roots": {}}))["result"]["content"][0]["text"], r#"{"roots":[]}"#);
}

#[test]
fn a_cancelled_call_is_not_answered() {
    let told = answers(
        Eras::Modern,
        &[
            tool("c", "slow", json!({"ms": 600_000, "text": "never"})),
            json!({"method": "notifications/cancelled", "params": {"requestId": "c"}}),
            tool("d", "whoami", json!({})),
        ],
    );
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0]["id"], "d");
}
