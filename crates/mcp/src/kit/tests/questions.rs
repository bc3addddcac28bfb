//! Asking the client, in either era.

use super::*;

fn call(id: u64, more: Value, meta: Value) -> Value {
    let mut params = json!({"name": "ask"});
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    request(id, "tools/call", params, meta)
}

#[tokio::test]
async fn in_the_modern_era_the_client_comes_back_with_the_answers() {
    let mut client = Client::open();
    client.send(call(1, json!({}), json!({})));
    let first = client.result(1).await;
    assert_eq!(first["resultType"], "input_required");
    assert_eq!(first["inputRequests"]["name"]["method"], "elicitation/create");
    assert!(first["inputRequests"].get("roots").is_none());
    let name = json!({"action": "accept", "content": {"name": "Ada"}});
    let more = json!({"arguments": {}, "inputResponses": {"name": name}, "requestState": first["requestState"]});
    client.send(call(2, more, json!({})));
    let second = client.result(2).await;
    assert_eq!(second["inputRequests"], json!({"roots": {"method": "roots/list"}}));
    assert!(second.get("ttlMs").is_none());
    let roots = json!({"roots": []});
    // The answer to the first question is in the state: it need not be brought again.
    let more = json!({"inputResponses": {"roots": roots, "other": {}}, "requestState": second["requestState"]});
    client.send(call(3, more, json!({})));
    assert_eq!(client.result(3).await["structuredContent"], json!([name, roots]));
}

#[tokio::test]
async fn a_state_is_good_for_its_own_call_only() {
    let mut client = Client::open();
    client.send(call(1, json!({}), json!({})));
    let state = client.result(1).await["requestState"].as_str().unwrap().to_owned();
    let forged = state.replace("{}", r#"{"name":{"action":"accept"}}"#);
    for (state, arguments) in [(forged.as_str(), json!({})), ("x", json!({})), (&state, json!({"other": 1}))] {
        client.send(call(2, json!({"requestState": state, "arguments": arguments}), json!({})));
        assert_eq!(client.error(2).await["code"], -32602, "{state}");
    }
    // The same server knows it on another connection.
    client.connection = BuiltinConnection::open(client.server.clone());
    client.send(call(3, json!({"requestState": state}), json!({})));
    assert_eq!(client.result(3).await["resultType"], "input_required");
}

#[tokio::test]
async fn a_client_that_cannot_answer_is_not_asked() {
    let mut client = Client::open();
    client.send(call(1, json!({}), json!({"io.modelcontextprotocol/clientCapabilities": {"roots": {}}})));
    let error = client.error(1).await;
    assert_eq!(
        (&error["code"], &error["data"]),
        (&json!(-32021), &json!({"requiredCapabilities": {"elicitation": {}}}))
    );
    let mut piped = Piped::greeted("2025-11-25", json!({"roots": {}})).await;
    piped.request(1, "tools/call", json!({"name": "ask"})).await;
    assert_eq!(piped.next().await["result"]["isError"], true);
}

#[tokio::test]
async fn in_the_legacy_era_a_question_is_a_request() {
    let mut piped = Piped::greeted("2025-06-18", json!({"elicitation": {}, "roots": {}})).await;
    piped.request(1, "tools/call", json!({"name": "ask"})).await;
    let question = piped.next().await;
    assert_eq!((&question["id"], &question["method"]), (&json!(0), &json!("elicitation/create")));
    piped.write(r#"{"jsonrpc":"2.0","id":0,"result":{"action":"decline"}}"#).await;
    let question = piped.next().await;
    assert_eq!((&question["id"], &question["method"]), (&json!(1), &json!("roots/list")));
    // The pipe is not held up by a call that waits.
    piped.request(2, "ping", json!({})).await;
    assert_eq!(piped.next().await["id"], 2);
    piped.write(r#"{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}"#).await;
    let answer = piped.next().await;
    assert_eq!(answer["result"]["content"][0]["text"], r#"[{"action":"decline"},{"roots":[]}]"#);
    assert!(answer["result"].get("structuredContent").is_none(), "only objects are known there");
}

#[tokio::test]
async fn a_refusal_is_told_to_the_model_and_a_cancelled_question_is_taken_back() {
    let mut piped = Piped::greeted("2025-06-18", json!({"elicitation": {}, "roots": {}})).await;
    piped.request(1, "tools/call", json!({"name": "ask"})).await;
    piped.next().await;
    piped.write(r#"{"jsonrpc":"2.0","id":0,"error":{"code":-1,"message":"no"}}"#).await;
    assert_eq!(piped.next().await["result"]["content"][0]["text"], "-1: no");
    piped.request(2, "tools/call", json!({"name": "ask"})).await;
    assert_eq!(piped.next().await["id"], 1);
    piped.write(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#).await;
    let note = piped.next().await;
    assert_eq!((&note["method"], &note["params"]["requestId"]), (&json!("notifications/cancelled"), &json!(1)));
}
