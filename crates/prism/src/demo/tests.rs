//! What the tools do, and what each fault looks like. The protocol is tested with the kit, and calls that wait belong to
//! the integration tests.

use serde_json::{Value, json};

use super::*;

/// Feeds the lines to a server and returns all it wrote until they ended.
async fn written(server: &Arc<BuiltinServer>, eras: Eras, fault: DemoFault, lines: &[Value]) -> String {
    let mut input = String::new();
    for line in lines {
        let mut line = line.clone();
        line["jsonrpc"] = "2.0".into();
        input.push_str(&format!("{line}\n"));
    }
    let mut output = Vec::new();
    kit::serve(server.clone(), eras, input.as_bytes(), &mut output, &FaultInterceptor::new(fault, None)).await.unwrap();
    String::from_utf8_lossy(&output).into_owned()
}

async fn messages(eras: Eras, lines: &[Value]) -> Vec<Value> {
    let written = written(&server(DemoFault::None), eras, DemoFault::None, lines).await;
    written.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn tool(id: u64, name: &str, arguments: Value) -> Value {
    json!({"id": id, "method": "tools/call", "params": {"name": name, "arguments": arguments}})
}

/// The same as a request of the modern era.
fn modern(mut request: Value, capabilities: Value) -> Value {
    request["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
        "progressToken": 1,
    });
    request
}

/// Calls a tool and returns its text; `"!"` goes before it if the tool failed.
async fn called(name: &str, arguments: Value) -> String {
    let result = messages(Eras::Legacy, &[tool(1, name, arguments)]).await.pop().unwrap()["result"].take();
    let mark = if result["isError"] == true { "!" } else { "" };
    format!("{mark}{}", result["content"][0]["text"].as_str().unwrap())
}

#[test]
fn every_tool_explains_itself() {
    let tools = server(DemoFault::None).tool_entries();
    assert!(tools.len() > 20);
    let route = tools.iter().find(|tool| tool["name"] == "route").unwrap();
    assert_eq!(route["inputSchema"]["properties"]["region"]["x-mcp-header"], "Region");
    assert_eq!(route["inputSchema"]["properties"]["priority"]["type"], "integer");
}

#[tokio::test]
async fn tools_answer_what_they_say() {
    assert_eq!(called("echo", json!({"text": "hé"})).await, "hé");
    assert_eq!(called("echo", json!({"text": "", "size": 3})).await, "xxx");
    assert_eq!(called("echo", json!({})).await, "!missing argument `text`");
    assert_eq!(called("trouble", json!({"text": "why"})).await, "!why");
    assert_eq!(called("route", json!({"region": "eu"})).await, "to eu with null");
    assert!(called("big", json!({"bytes": -1})).await.starts_with("!argument `bytes`: invalid value"));
    assert!(called("big", json!({"bytes": u64::MAX})).await.starts_with("!at most"));
    assert!(called("stream", json!({"chunks": 1000, "bytes": u64::MAX})).await.starts_with("!at most"));
    assert!(called("change", json!({"what": "minds"})).await.starts_with("!argument `what`: unknown variant"));
    let failed = messages(Eras::Legacy, &[tool(1, "fail", json!({"code": -7}))]).await;
    assert_eq!(failed[0]["error"]["code"], -7);
}

#[tokio::test]
async fn failures_have_their_codes() {
    let requests = [
        json!({"id": 1, "method": "server/discover"}),
        tool(2, "nope", json!({})),
        json!({"id": 3, "method": "resources/read", "params": {"uri": "demo://nope"}}),
        json!({"id": 4, "method": "prompts/get", "params": {"name": "greet"}}),
        json!({"id": 5, "method": "completion/complete", "params": {"ref": {"type": "ref/prompt", "name": "x"}}}),
        json!({"id": 6, "method": "tools/list", "params": {"cursor": ""}}),
    ];
    let told = messages(Eras::Legacy, &requests).await;
    let codes: Vec<_> = told.iter().map(|message| message["error"]["code"].as_i64().unwrap()).collect();
    assert_eq!(codes, [-32601, -32602, -32002, -32602, -32602, -32602]);
}

#[tokio::test]
async fn a_large_answer_is_reported_chunk_by_chunk() {
    let request = modern(tool(1, "stream", json!({"chunks": 3, "bytes": 5})), json!({}));
    let told = messages(Eras::Modern, &[request]).await;
    let reports: Vec<_> = told[..3].iter().map(|note| note["params"]["message"].as_str().unwrap()).collect();
    assert_eq!(reports, ["chunk 1 of 3", "chunk 2 of 3", "chunk 3 of 3"]);
    let block = json!({"type": "text", "text": "xxxxx"});
    assert_eq!(told[3]["result"]["content"], json!([block, block, block]));
}

#[tokio::test]
async fn notes_below_the_level_are_not_sent() {
    let set = json!({"id": 1, "method": "logging/setLevel", "params": {"level": "warning"}});
    let call = |id, level| tool(id, "log", json!({"level": level, "count": 3, "text": "a"}));
    let told = messages(Eras::Legacy, &[set, call(2, "notice"), call(3, "error")]).await;
    let notes: Vec<_> = told.iter().filter(|message| message["method"].is_string()).collect();
    assert_eq!(notes.len(), 3);
    let params = &notes[0]["params"];
    assert_eq!(
        (&params["level"], &params["logger"], &params["data"]),
        (&json!("error"), &json!("prism-demo"), &json!("a"))
    );
}

#[tokio::test]
async fn an_update_goes_to_subscribers_only() {
    let uri = json!({"uri": "demo://counter"});
    let subscribe = json!({"id": 2, "method": "resources/subscribe", "params": uri});
    let read = json!({"id": 3, "method": "resources/read", "params": uri});
    let touch = tool(1, "touch", uri);
    let told = messages(Eras::Legacy, &[touch.clone(), subscribe, touch, read]).await;
    assert_eq!(told[0]["result"]["content"][0]["text"], "not subscribed");
    assert_eq!(told[2]["method"], "notifications/resources/updated");
    assert_eq!(told[3]["result"]["content"][0]["text"], "update sent");
    assert_eq!(told[4]["result"]["contents"][0]["text"], "2");
}

#[tokio::test]
async fn two_questions_are_asked_at_once_and_half_an_answer_is_kept() {
    let server = server(DemoFault::None);
    let ask = async |more: Value| {
        let mut request = tool(1, "ask", json!({"kind": "elicitation", "text": "a?", "also": "b?"}));
        request["params"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let request = modern(request, json!({"elicitation": {}}));
        let told = written(&server, Eras::Modern, DemoFault::None, &[request]).await;
        serde_json::from_str::<Value>(&told).unwrap()["result"].take()
    };
    let first = ask(json!({})).await;
    assert_eq!(first["inputRequests"]["first"]["method"], "elicitation/create");
    assert_eq!(first["inputRequests"]["second"]["params"]["message"], "b?");
    let half = json!({"second": {"action": "decline"}, "third": {}});
    let again = ask(json!({"inputResponses": half, "requestState": first["requestState"]})).await;
    assert_eq!(again["inputRequests"].as_object().unwrap().keys().collect::<Vec<_>>(), ["first"]);
    let rest = json!({"first": {"action": "accept", "content": {"answer": "x"}}});
    let done = ask(json!({"inputResponses": rest, "requestState": again["requestState"]})).await;
    let both = json!([{"action": "accept", "content": {"answer": "x"}}, {"action": "decline"}]);
    assert_eq!(done["content"][0]["text"], both.to_string());
}

#[tokio::test]
async fn a_sample_is_asked_of_the_client() {
    let request = modern(tool(1, "sample", json!({"prompt": "Hi"})), json!({"sampling": {}}));
    let told = messages(Eras::Modern, &[request]).await;
    assert_eq!(told[0]["result"]["inputRequests"]["sample"]["method"], "sampling/createMessage");
}

#[tokio::test]
async fn completion_offers_what_begins_alike() {
    let params = json!({"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "name", "value": "A"}});
    let told = messages(Eras::Legacy, &[json!({"id": 1, "method": "completion/complete", "params": params})]).await;
    assert_eq!(told[0]["result"]["completion"]["values"], json!(["Ada", "Alan"]));
}

#[tokio::test]
async fn each_fault_shows_in_what_is_written() {
    let ping = json!({"id": 1, "method": "ping"});
    let pong = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n";
    let all = [ping.clone(), tool(2, "whoami", json!({})), ping.clone()];
    let told = async |fault: DemoFault, lines: &[Value]| written(&server(fault), Eras::Legacy, fault, lines).await;
    assert_eq!(told(DemoFault::Mute, &all).await, [pong, pong].concat());
    let half = told(DemoFault::HalfLine, &all).await;
    let half = half.strip_prefix(pong).unwrap();
    assert!(half.starts_with("{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":") && !half.contains('\n'), "{half}");
    assert!(told(DemoFault::Garbage, &[ping]).await.ends_with(&["\n\n[]\n42\n", pong].concat()));
    let late = told(DemoFault::LateAsk, &[tool(1, "ask", json!({"kind": "roots", "text": ""}))]).await;
    let (answer, question) = late.split_once('\n').unwrap();
    assert!(answer.contains("the question comes later"), "{answer}");
    assert_eq!(question, "{\"id\":0,\"jsonrpc\":\"2.0\",\"method\":\"roots/list\"}\n");
}
