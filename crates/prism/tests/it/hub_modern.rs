//! Clients of the modern era at the hub: no session, and all that belongs to one all the same (B-27).

use futures_util::future::join_all;
use hyper::Method;
use serde_json::{Value, json};

use crate::support::{
    Daemon, Home, MODERN, Modern, destination, hub::serve, lines, result_text, until, upstream::calling_modern,
};

fn everything() -> Value {
    json!({"sampling": {}, "elicitation": {"form": {}, "url": {}}, "roots": {}})
}

async fn both() -> Daemon {
    serve(&[
        destination("l", &[], ""),
        destination("m", &["--era", "modern"], ""),
        destination("b", &["--era", "both"], ""),
    ])
    .await
}

fn accept(text: &str) -> Value {
    json!({"action": "accept", "content": {"answer": text}})
}

/// The key of the one thing that is asked.
fn key(asked: &Value) -> String {
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let requests = asked["inputRequests"].as_object().expect("something is asked");
    assert_eq!(requests.len(), 1, "{asked}");
    requests.keys().next().expect("there is one").clone()
}

fn ask(text: &str) -> Value {
    json!({"kind": "elicitation", "text": text})
}

// B-27
#[tokio::test]
async fn a_question_of_any_member_is_the_answer_and_the_call_goes_on_with_the_clients() {
    let daemon = both().await;
    let client = daemon.modern_hub().can(everything());
    for member in ["l", "m", "b"] {
        let tool = format!("{member}__ask");
        let message = json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "mine"}});
        for (kind, answer, text) in [
            ("elicitation", accept("mine"), accept("mine").to_string()),
            ("sampling", message, "mine".to_owned()),
            ("roots", json!({"roots": []}), r#"{"roots":[]}"#.to_owned()),
        ] {
            let arguments = json!({"kind": kind, "text": "what?"});
            let asked = client.call(&tool, arguments.clone()).await;
            let done = client.retry(&tool, arguments, &asked, json!({key(&asked): answer})).await;
            assert_eq!(result_text(&done), text, "{member} {kind}");
            assert_eq!(done["result"]["resultType"], "complete", "{member} {kind}");
        }
    }
}

// B-27
#[tokio::test]
async fn calls_that_wait_at_several_members_are_not_mixed_up() {
    let daemon = both().await;
    let clients: Vec<Modern> =
        (0..3).map(|at| daemon.modern_hub().can(everything()).named(&format!("client {at}"))).collect();
    let all = clients.iter().flat_map(|client| ["l", "m", "b"].map(|member| (client, format!("{member}__ask"))));
    let all: Vec<(&Modern, String)> = all.collect();
    let asked = join_all(all.iter().enumerate().map(|(at, (client, tool))| {
        let text = format!("{at}?");
        async move { client.call(tool, ask(&text)).await }
    }))
    .await;
    // The last one first, and none of them at another's tool.
    for (at, (client, tool)) in all.iter().enumerate().rev() {
        let asked = &asked[at];
        let key = key(asked);
        assert_eq!(asked["inputRequests"][&key]["params"]["message"], format!("{at}?"), "{tool}");
        let done = client.retry(tool, ask(&format!("{at}?")), asked, json!({key: accept(&at.to_string())})).await;
        assert_eq!(result_text(&done), accept(&at.to_string()).to_string(), "{tool}");
    }
}

// B-27
#[tokio::test]
async fn a_state_is_good_for_its_own_call_only() {
    let daemon = both().await;
    let client = daemon.modern_hub().can(everything());
    let asked = client.call("l__ask", ask("x")).await;
    let (key, state) = (key(&asked), &asked["requestState"]);
    let answers = json!({&key: accept("x")});
    for (client, tool) in [(client.clone(), "m__ask"), (client.clone(), "b__ask"), (client.named("other"), "l__ask")] {
        let reply = client.post(&client.retried(tool, ask("x"), state, answers.clone())).await;
        let answer = reply.answer().await;
        assert!(answer.get("error").is_some() || answer["result"]["isError"] == true, "{tool}: {answer}");
    }
    let done = client.retry("l__ask", ask("x"), &asked, answers.clone()).await;
    assert_eq!(result_text(&done), accept("x").to_string());
    let again = client.post(&client.retried("l__ask", ask("x"), state, answers)).await.answer().await;
    assert_eq!(again["error"]["code"], -32602, "it was used: {again}");
}

// B-27
#[tokio::test]
async fn headers_are_checked_against_the_hubs_names() {
    let daemon = both().await;
    let client = daemon.modern_hub();
    for member in ["l", "m"] {
        let message = client.tool(&format!("{member}__echo"), json!({"text": "x"}));
        let reply = client.request(&message).header("mcp-name", "echo").send().await;
        let (status, answer) = (reply.status, reply.answer().await);
        assert_eq!((status, &answer["error"]["code"]), (400, &json!(-32020)), "{answer}");
        assert_eq!(result_text(&client.post(&message).await.answer().await), "x");
        // What a tool wants to see in headers.
        client.result("tools/list", json!({})).await;
        let route = client.tool(&format!("{member}__route"), json!({"region": "eu", "priority": 7}));
        let request = client.request(&route).header("mcp-param-region", "eu").header("mcp-param-priority", "7");
        assert_eq!(result_text(&request.clone().send().await.answer().await), "to eu with 7", "{member}");
        let wrong = request.header("mcp-param-region", "us").send().await;
        let direct = client.client_at(&format!("/{member}/mcp"));
        let alone = direct.tool("route", json!({"region": "eu", "priority": 7}));
        let alone =
            direct.request(&alone).header("mcp-param-region", "us").header("mcp-param-priority", "7").send().await;
        assert_eq!(wrong.status, alone.status, "{member}");
    }
}

// B-27
#[tokio::test]
async fn progress_and_notes_come_on_the_calls_stream() {
    let daemon = both().await;
    for member in ["l", "m", "b"] {
        let client = daemon.modern_hub().at_level("debug");
        let mut call = client.progress(json!("mine"), 2, 1);
        call["params"]["name"] = format!("{member}__progress").into();
        let events = client.post(&call).await.events().rest().await;
        let told = events.iter().filter(|event| event.json()["params"]["progressToken"] == "mine").count();
        assert_eq!((told, result_text(&events.last().unwrap().json())), (2, "2 steps done"), "{member}");
        let log = |client: &Modern| client.tool(&format!("{member}__log"), json!({"level": "warning", "text": "x"}));
        let events = client.post(&log(&client)).await.events().rest().await;
        assert!(events[0].json()["method"] == "notifications/message", "{member}: {events:?}");
        let quiet = daemon.modern_hub().at_level("error");
        assert!(!quiet.post(&log(&quiet)).await.is_stream(), "{member}");
    }
}

// B-27
#[tokio::test]
async fn errors_have_the_eras_statuses() {
    let daemon = both().await;
    let client = daemon.modern_hub();
    for (method, params, status, code) in [
        ("tools/call", json!({"name": "l__fail", "arguments": {"code": -7}}), 200, -7),
        ("tools/call", json!({"name": "nothing", "arguments": {}}), 200, -32602),
        ("prompts/get", json!({"name": "x__greet"}), 200, -32602),
        ("resources/read", json!({"uri": "hub://l/demo://nothing"}), 200, -32602),
        ("tools/list", json!({"cursor": "x"}), 200, -32602),
        ("no/such", json!({}), 404, -32601),
        ("logging/setLevel", json!({"level": "info"}), 404, -32601),
        ("resources/subscribe", json!({"uri": "hub://l/demo://hello"}), 404, -32601),
    ] {
        let reply = client.ask(method, params).await;
        let (said, answer) = (reply.status, reply.answer().await);
        assert_eq!((said, &answer["error"]["code"]), (status, &json!(code)), "{method}: {answer}");
        assert!(answer["id"].is_u64(), "{method}: {answer}");
    }
    // It has neither streams nor sessions.
    for verb in [Method::GET, Method::DELETE] {
        assert_eq!(client.bare(verb).send().await.status, 405);
    }
    let seen: Value = client.text("m__caps", json!({})).await.parse().unwrap();
    assert!(seen.to_string().contains("\"it\""), "the client itself is shown, not the hub: {seen}");
    assert_eq!(client.result("server/discover", json!({})).await["supportedVersions"][0], MODERN);
}

// B-27
#[tokio::test]
async fn only_events_are_given_to_who_accepts_only_events() {
    let daemon = both().await;
    let client = daemon.modern_hub();
    for (method, params) in [
        ("tools/list", json!({})),
        ("prompts/list", json!({})),
        ("tools/call", json!({"name": "nothing", "arguments": {}})),
        ("tools/call", json!({"name": "l__echo", "arguments": {"text": "x"}})),
        ("tools/call", json!({"name": "prism_find_tools", "arguments": {"query": "echo"}})),
        ("tools/call", json!({"name": "prism_destinations", "arguments": {}})),
    ] {
        let message = client.message(method, params.clone());
        let whole = client.request(&message).header("accept", "application/json").send().await;
        assert!(!whole.is_stream());
        let mut whole = whole.json().await;
        let events = client.request(&message).header("accept", "text/event-stream").send().await.events().rest().await;
        let mut last = events.last().unwrap().json();
        for answer in [&mut last, &mut whole] {
            if let Some(result) = answer.get("result") {
                let server = &result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"];
                assert!(server.is_string() && result["resultType"] == "complete", "{method} {params}: {answer}");
                // Each call of Prism's own has another.
                answer["result"]["_meta"]["correlation_id"] = Value::Null;
            }
        }
        assert_eq!(last, whole, "{method} {params}");
        let session = daemon.hub().initialize().await;
        let plain = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let request = session.request(Method::POST).header("accept", "text/event-stream").body(plain.to_string());
        let events = request.send().await.events().rest().await;
        assert_eq!(events.last().unwrap().json()["id"], 1, "{method} {params}");
    }
}

// B-27: a stateless client that leaves takes nothing with it but its call.
#[tokio::test]
async fn a_parked_call_at_one_member_does_not_hold_up_another() {
    let home = Home::new();
    let record = home.file("l");
    let daemon = serve(&[destination("l", &["--record", &record], ""), destination("o", &[], "")]).await;
    let client = daemon.modern_hub().can(everything());
    let asked = client.call("l__ask", ask("first")).await;
    let second = client.call("l__ask", ask("second")).await;
    assert_eq!(client.text("o__echo", json!({"text": "x"})).await, "x");
    let waiting = calling_modern(&client, "l__slow", json!({"ms": 60_000, "text": "never"}));
    until("the call is there", async || lines(&record).iter().any(|line| line.contains("60000"))).await;
    assert_eq!(client.text("o__echo", json!({"text": "y"})).await, "y");
    waiting.abort();
    for (asked, text) in [(second, "second"), (asked, "first")] {
        let done = client.retry("l__ask", ask(text), &asked, json!({key(&asked): accept(text)})).await;
        assert_eq!(result_text(&done), accept(text).to_string());
    }
}
