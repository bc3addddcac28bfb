//! A server on a pipe, in both eras.

use super::*;

#[tokio::test]
async fn every_legacy_revision_is_spoken_and_any_other_gets_our_last() {
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        Piped::greeted(revision, json!({})).await;
    }
    let mut piped = Piped::open();
    piped.request(1, "initialize", json!({"protocolVersion": "2019-01-01"})).await;
    let result = piped.next().await["result"].take();
    assert_eq!(result["protocolVersion"], "2025-11-25");
    assert_eq!((&result["serverInfo"]["name"], &result["instructions"]), (&json!("toy"), &json!("Play with it.")));
    assert!(result.get("_meta").is_none() && result.get("resultType").is_none());
}

#[tokio::test]
async fn a_legacy_result_has_nothing_of_the_other_era() {
    let mut piped = Piped::greeted("2025-11-25", json!({})).await;
    piped.request(1, "ping", json!({})).await;
    assert_eq!(piped.next().await, json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
    piped.request(2, "tools/list", json!({})).await;
    let list = piped.next().await["result"].take();
    assert_eq!(list.as_object().unwrap().keys().collect::<Vec<_>>(), ["tools"]);
    piped.request(3, "tools/call", json!({"name": "echo", "arguments": {"text": "a"}})).await;
    let result = piped.next().await["result"].take();
    assert_eq!(result.as_object().unwrap().keys().collect::<Vec<_>>(), ["_meta", "content"]);
    assert_eq!(result["_meta"].as_object().unwrap().keys().collect::<Vec<_>>(), ["correlation_id"]);
    // By their names only: an array's members would have to be guessed.
    piped.request(4, "tools/call", json!([{}, "report"])).await;
    assert_eq!(piped.next().await["error"]["code"], -32602);
    piped.request(4, "resources/read", json!({"uri": "toy://x"})).await;
    assert_eq!(piped.next().await["error"]["code"], -32002);
    for method in ["server/discover", "subscriptions/listen", "no/such"] {
        piped.request(5, method, json!({"notifications": {}})).await;
        assert_eq!(piped.next().await["error"]["code"], -32601, "{method}");
    }
}

// N-05
#[tokio::test]
async fn the_session_sets_the_level_of_its_notes() {
    let mut piped = Piped::greeted("2025-11-25", json!({})).await;
    let call = json!({"name": "report", "_meta": {"progressToken": 7}});
    piped.request(1, "tools/call", call.clone()).await;
    let mut said = Vec::new();
    for _ in 0..5 {
        said.push(piped.next().await);
    }
    // Info is what a session begins with.
    let kinds: Vec<_> = said.iter().map(|note| note["params"]["level"].as_str().unwrap_or_default()).collect();
    assert_eq!(kinds, ["", "info", "error", "", ""]);
    assert_eq!(said[1]["params"]["logger"], "toy");
    assert_eq!(said[0]["params"]["progressToken"], 7);
    let id = &said[4]["result"]["_meta"]["correlation_id"];
    assert!(said[..4].iter().all(|note| note["params"]["_meta"]["correlation_id"] == *id));
    piped.request(2, "logging/setLevel", json!({"level": "warning"})).await;
    assert_eq!(piped.next().await["result"], json!({}));
    piped.request(3, "tools/call", json!({"name": "report"})).await;
    assert_eq!(piped.next().await["params"]["level"], "error");
    assert_eq!(piped.next().await["id"], 3);
    piped.request(4, "logging/setLevel", json!({"level": "loud"})).await;
    assert_eq!(piped.next().await["error"]["code"], -32602);
}

#[tokio::test]
async fn a_tool_that_waits_for_room_loses_no_note() {
    let mut piped = Piped::greeted("2025-11-25", json!({})).await;
    piped.request(1, "tools/call", json!({"name": "chatty"})).await;
    for i in 0..5000 {
        assert_eq!(piped.next().await["params"]["data"], i);
    }
    assert_eq!(piped.next().await["id"], 1);
}

#[tokio::test]
async fn the_first_words_decide_the_era() {
    let mut piped = Piped::open();
    piped.write(&request(1, "server/discover", json!({}), json!({})).to_string()).await;
    assert_eq!(piped.next().await["result"]["supportedVersions"], json!(["2026-07-28"]));
    piped.write(&request(2, "tools/call", json!({"name": "fail"}), json!({})).to_string()).await;
    assert_eq!(piped.next().await["result"]["resultType"], "complete");
    piped.request(3, "initialize", json!({"protocolVersion": "2025-11-25"})).await;
    piped.next().await;
    piped.write(&request(4, "server/discover", json!({}), json!({})).to_string()).await;
    assert_eq!(piped.next().await["error"]["code"], -32601);
}

#[tokio::test]
async fn a_legacy_session_hears_of_lists_and_of_what_it_subscribed_to() {
    let mut piped = Piped::greeted("2025-11-25", json!({})).await;
    let notifier = piped.server.notifier();
    assert_eq!((notifier.resources_changed(), notifier.tools_changed(), notifier.updated("toy://one")), (1, 0, 0));
    assert_eq!(piped.next().await, json!({"jsonrpc": "2.0", "method": "notifications/resources/list_changed"}));
    piped.request(1, "resources/subscribe", json!({"uri": "toy://one"})).await;
    piped.next().await;
    assert_eq!(notifier.updated("toy://one"), 1);
    assert_eq!(piped.next().await["params"], json!({"uri": "toy://one"}));
    piped.request(2, "resources/unsubscribe", json!({"uri": "toy://one"})).await;
    piped.next().await;
    assert_eq!(notifier.updated("toy://one"), 0);
    piped.request(3, "resources/subscribe", json!({"uri": "toy://x"})).await;
    assert_eq!(piped.next().await["error"]["code"], -32002);
}

#[tokio::test]
async fn batches_are_for_one_revision() {
    let batch = r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/initialized"},
        {"jsonrpc":"2.0","id":2,"method":"ping"}]"#
        .replace('\n', " ");
    let mut piped = Piped::greeted("2025-03-26", json!({})).await;
    piped.write(&batch).await;
    assert_eq!((piped.next().await["id"].take(), piped.next().await["id"].take()), (json!(1), json!(2)));
    piped.write("[]").await;
    assert_eq!(piped.next().await["error"]["code"], -32600);
    let mut piped = Piped::greeted("2025-06-18", json!({})).await;
    piped.write(&batch).await;
    assert_eq!(piped.next().await["error"]["code"], -32600);
}

#[tokio::test]
async fn odd_lines_are_answered_and_the_next_is_served() {
    let mut piped = Piped::greeted("2025-11-25", json!({})).await;
    for (line, code) in
        [("{", -32700), ("42", -32600), ("{}", -32600), (r#"{"jsonrpc":"2.0","id":{},"method":"a"}"#, -32600)]
    {
        piped.write(line).await;
        let answer = piped.next().await;
        assert_eq!(answer["error"]["code"], code, "{line}");
        assert!(answer.get("id").is_none());
    }
    piped.write(&format!("{}\n\n", "x".repeat(65 << 20))).await;
    assert_eq!(piped.next().await["error"]["code"], -32600);
    piped.request(1, "ping", json!({})).await;
    assert_eq!(piped.next().await["id"], 1);
}

#[tokio::test]
async fn a_client_that_does_not_read_is_not_read_from() {
    let mut piped = Piped::greeted("2025-11-25", json!({})).await;
    let pings = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string() + "\n";
    let flood = pings.repeat(500_000);
    tokio::select! {
        biased;
        _ = piped.input.write_all(flood.as_bytes()) => panic!("all of it was taken"),
        () = async { for _ in 0..100_000 { tokio::task::yield_now().await } } => {}
    }
    // It goes on where it was.
    assert_eq!(piped.next().await["id"], 1);
}

#[tokio::test]
async fn what_was_answered_is_written_when_the_input_ends_and_calls_are_abandoned() {
    let mut piped = Piped::greeted("2025-11-25", json!({})).await;
    piped.request(1, "tools/call", json!({"name": "stubborn"})).await;
    piped.request(2, "tools/call", json!({"name": "echo", "arguments": {"text": "a", "times": 200_000}})).await;
    // Without its line end.
    piped.input.write_all(br#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#).await.unwrap();
    piped.input.shutdown().await.unwrap();
    assert_eq!(piped.next().await["id"], 2);
    assert_eq!(piped.next().await["id"], 3);
    assert!(timeout(SOON, piped.lines.next_line()).await.unwrap().unwrap().is_none());
    timeout(SOON, piped.serving).await.unwrap().unwrap().unwrap();
}
