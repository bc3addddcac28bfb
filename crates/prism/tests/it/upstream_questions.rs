//! Questions across eras with a server over HTTP behind the daemon: whose they are is told by the stream they come on,
//! so clients need not wait for each other (mcp-eras 5.6, 5.7).

use serde_json::{Value, json};

use crate::support::{
    NEWEST, Request,
    upstream::{Asked, Upstream, calling_modern, got, modern_root, modern_text, nothing_is_left, root, text},
};

const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn question(id: u64, message: &str) -> Value {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let params = json!({"message": message, "requestedSchema": schema});
    json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params})
}

/// The one question in a result, and the key it has.
fn asked(answer: &Value) -> (&String, &Value) {
    assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
    let mut requests = answer["result"]["inputRequests"].as_object().expect("there are requests").iter();
    let one = requests.next().expect("there is one");
    assert!(requests.next().is_none(), "{answer}");
    one
}

// checks 86 92 104
#[tokio::test]
async fn two_modern_clients_are_asked_at_once_and_each_gets_its_own() {
    let mut upstream = Upstream::start().await;
    let daemon = upstream.bridge(&["--era", "legacy"]).await;
    let clients = ["a", "b"].map(|name| modern_root(&daemon).can(json!({"elicitation": {}})).named(name));
    let mut waiting = Vec::new();
    let mut calls: Vec<Asked> = Vec::new();
    for (at, client) in clients.iter().enumerate() {
        waiting.push(calling_modern(client, "ask", json!({"n": at})));
        if at == 0 {
            upstream.greet("s1").await;
        }
        calls.push(upstream.asked("tools/call").await);
    }
    let ids: Vec<u64> = calls.iter().map(Asked::id).collect();
    let flows: Vec<_> = calls.into_iter().map(Asked::events).collect();
    // Under the same number: it is the server's own business.
    for (at, flow) in flows.iter().enumerate().rev() {
        flow.event(&question(1, &format!("for {at}?"))).await;
        flow.progress(&json!(99), 1).await;
    }
    let mut states = Vec::new();
    for (at, waiting) in waiting.into_iter().enumerate() {
        let (status, answer) = got(waiting).await;
        assert_eq!(status, 200, "{answer}");
        let (key, request) = asked(&answer);
        assert_eq!(request["params"]["message"], format!("for {at}?"));
        states.push((key.clone(), answer["result"].clone()));
    }
    // The state of one is worth nothing to the other, and the call is untouched by that.
    let (key, state) = &states[0];
    let answers = json!({key: {"action": "accept", "content": {"name": "thief"}}});
    let stolen = clients[1].retried("ask", json!({"n": 1}), &state["requestState"], answers);
    let refused = clients[1].post(&stolen).await.answer().await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    upstream.asked_nothing_more();
    for at in [1, 0] {
        let (key, state) = &states[at];
        let content = json!({"name": at.to_string()});
        let answers = json!({key: {"action": "accept", "content": content}});
        let message = clients[at].retried("ask", json!({"n": at}), &state["requestState"], answers);
        let retry = tokio::spawn({
            let client = clients[at].clone();
            async move { client.post(&message).await.answer().await }
        });
        let answer = upstream.asked("POST").await;
        assert_eq!((&answer.body["id"], &answer.body["result"]["content"]), (&json!(1), &content));
        assert_eq!(answer.header("mcp-session-id"), Some("s1"));
        answer.status(202).await;
        flows[at].result(ids[at], text(&format!("hello {at}"))).await;
        let answer = retry.await.unwrap();
        assert_eq!(answer["result"]["content"], text(&format!("hello {at}"))["content"], "{answer}");
    }
    upstream.asked_nothing_more();
    nothing_is_left(&daemon, "run").await;
}

// mcp-eras 5.7 B
#[tokio::test]
async fn what_a_modern_server_needs_is_asked_of_a_legacy_client() {
    let mut upstream = Upstream::start().await;
    let daemon = upstream.bridge(&["--era", "modern"]).await;
    let client = root(&daemon);
    let capabilities = json!({"elicitation": {}});
    let (client, ()) = tokio::join!(client.initialize_as(NEWEST, capabilities), upstream.greet_modern());
    let call: Request = {
        let params = json!({"name": "ask", "arguments": {"n": 1}});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        client.request(hyper::Method::POST).header("traceparent", TRACE).body(body.to_string())
    };
    let reply = tokio::spawn(call.send());
    let first = upstream.asked("tools/call").await;
    let declared = &first.body["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    assert!(declared["elicitation"].is_object(), "{}", first.body);
    let (first_id, first_trace) = (first.id(), first.header("traceparent").map(str::to_owned));
    let wanted = json!({"who": {"method": "elicitation/create", "params": question(1, "Who?")["params"]}});
    first.result(json!({"resultType": "input_required", "inputRequests": wanted, "requestState": "opaque"})).await;
    let mut stream = reply.await.unwrap().events();
    let question = stream.message().await;
    assert_eq!((&question["method"], &question["params"]["message"]), (&json!("elicitation/create"), &json!("Who?")));
    let result = json!({"action": "accept", "content": {"name": "me"}});
    let reply = client.post(&json!({"jsonrpc": "2.0", "id": question["id"], "result": result})).await;
    assert_eq!(reply.status, 202);
    let again = upstream.asked("tools/call").await;
    assert_ne!(again.id(), first_id, "a retry is another request");
    // of the same call.
    assert_eq!((first_trace.as_deref(), again.header("traceparent")), (Some(TRACE), Some(TRACE)));
    let params = &again.body["params"];
    assert_eq!((&params["requestState"], &params["inputResponses"]["who"]), (&json!("opaque"), &result));
    assert_eq!((&params["arguments"], again.header("mcp-name")), (&json!({"n": 1}), Some("ask")));
    again.result(modern_text("hello")).await;
    let answer = stream.message().await;
    assert_eq!((&answer["id"], &answer["result"]), (&json!(1), &text("hello")));
    upstream.asked_nothing_more();
}
