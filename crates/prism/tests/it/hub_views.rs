//! Parts of the hub: `?only=`, profiles, and two tools that stand for all (B-27).

use serde_json::{Value, json};

use crate::support::{
    Client, Modern, NEWEST, destination,
    hub::{PRISM, Scripted, names, serve},
    result_text,
};

async fn tools_at(client: &Client, path: &str) -> Vec<String> {
    client.at(path).initialize().await.tools().await
}

fn prefixes(tools: &[String]) -> Vec<&str> {
    let mut all: Vec<&str> = tools.iter().filter_map(|tool| Some(tool.split_once("__")?.0)).collect();
    all.dedup();
    all
}

// B-27
#[tokio::test]
async fn a_url_may_name_the_destinations_that_it_shows() {
    let daemon = serve(&["a", "b", "c"].map(|name| destination(name, &[], ""))).await;
    let hub = daemon.hub();
    for (path, shown) in [
        ("/mcp", vec!["a", "b", "c"]),
        ("/mcp?only=b", vec!["b"]),
        ("/mcp?only=c,a", vec!["a", "c"]),
        ("/mcp?only=a%2Cc", vec!["a", "c"]),
        ("/mcp?only=a%2cc", vec!["a", "c"]),
        ("/mcp?only=prism", vec![]),
        ("/mcp?x=y&only=a&events=method", vec!["a"]),
    ] {
        let tools = tools_at(&hub, path).await;
        assert_eq!((prefixes(&tools), tools[0].as_str()), (shown.clone(), "prism_destinations"), "{path}");
        let modern = daemon.modern_hub().client_at(path).result("tools/list", json!({})).await;
        assert_eq!(prefixes(&names(&modern, "tools", "name")), shown, "{path}");
    }
    // What is not shown is not there, by whatever name.
    let only = hub.at("/mcp?only=a").initialize().await;
    assert_eq!(only.error("tools/call", json!({"name": "b__whoami"})).await["code"], -32602);
    assert_eq!(only.error("resources/read", json!({"uri": "hub://b/demo://hello"})).await["code"], -32002);
    assert_eq!(only.error("prompts/get", json!({"name": "b__greet"})).await["code"], -32602);
    let reference =
        json!({"ref": {"type": "ref/prompt", "name": "b__greet"}, "argument": {"name": "name", "value": ""}});
    assert_eq!(only.error("completion/complete", reference).await["code"], -32602);
    let modern = daemon.modern_hub().client_at("/mcp?only=a");
    assert_eq!(modern.ask("tools/call", json!({"name": "b__whoami"})).await.answer().await["error"]["code"], -32602);
    // A session sees what it was opened with, whatever the URL of a request says.
    assert_eq!(only.at("/mcp?only=b").error("tools/call", json!({"name": "b__whoami"})).await["code"], -32602);
    assert!(only.at("/mcp").text("a__whoami", json!({})).await.parse::<u32>().is_ok());
}

// B-27
#[tokio::test]
async fn what_there_is_not_is_refused_with_what_there_is() {
    let profile = "[profile.work]\nonly = [\"a\"]\n[profile.home]\nexcept = [\"a\"]\n".to_owned();
    let daemon = serve(&[profile, destination("a", &[], ""), destination("b", &[], "")]).await;
    for (path, words) in [
        ("/mcp?only=x", vec!["\"x\"", "a, b"]),
        ("/mcp?only=a,x", vec!["\"x\"", "a, b"]),
        ("/mcp?only=", vec!["\"\"", "a, b"]),
        ("/mcp?profile=x", vec!["\"x\"", "home, work"]),
        ("/mcp?mode=x", vec!["\"x\"", "list, search"]),
        ("/mcp?prefix=x", vec!["\"x\"", "true or false"]),
    ] {
        for reply in [
            daemon.hub().at(path).say_hello().await,
            daemon.modern_hub().client_at(path).ask("tools/list", json!({})).await,
        ] {
            assert_eq!(reply.status, 404, "{path}");
            let why = reply.json().await["error"]["message"].as_str().unwrap().to_owned();
            assert!(words.iter().all(|word| why.contains(word)), "{path}: {why}");
        }
    }
}

// B-27
#[tokio::test]
async fn a_profile_chooses_destinations_and_tools() {
    let profiles = r#"
        [profile.work]
        only = ["a", "c"]
        [profile.rest]
        except = ["a"]
        [profile.few]
        tools = ["a__who*", "*__echo", "prism_*"]
        [profile.plain]
        only = ["c"]
        prefix = false
        [profile.search]
        mode = "search"
    "#;
    let config = [profiles.to_owned(), destination("a", &[], ""), destination("b", &[], ""), destination("c", &[], "")];
    let daemon = serve(&config).await;
    let hub = daemon.hub();
    assert_eq!(prefixes(&tools_at(&hub, "/mcp?profile=work").await), ["a", "c"]);
    assert_eq!(prefixes(&tools_at(&hub, "/mcp?profile=rest").await), ["b", "c"]);
    assert_eq!(prefixes(&tools_at(&hub, "/mcp?profile=rest&only=a").await), ["a"], "the URL has the last word");
    assert!(tools_at(&hub, "/mcp?profile=plain").await.iter().any(|tool| tool == "echo"));
    assert!(tools_at(&hub, "/mcp?profile=plain&prefix=true").await.iter().any(|tool| tool == "c__echo"));
    assert_eq!(tools_at(&hub, "/mcp?profile=search").await, ["prism_find_tools", "prism_call_tool"]);
    let few = hub.at("/mcp?profile=few").initialize().await;
    assert_eq!(few.tools().await, [&PRISM[..], &["a__echo", "a__whoami", "b__echo", "c__echo"]].concat());
    assert_eq!(few.text("c__echo", json!({"text": "x"})).await, "x");
    for hidden in ["b__whoami", "a__big", "c__fail"] {
        assert_eq!(few.error("tools/call", json!({"name": hidden, "arguments": {}})).await["code"], -32602, "{hidden}");
        // Nor by way of the tool that calls any other.
        let by_name = json!({"name": "prism_call_tool", "arguments": {"name": hidden, "arguments": {}}});
        assert_eq!(few.error("tools/call", by_name).await["code"], -32602, "{hidden}");
    }
    // Prompts and resources are not tools.
    assert_eq!(names(&few.result("prompts/list", json!({})).await, "prompts", "name").len(), 3);
    let found = few.result("tools/call", json!({"name": "prism_find_tools", "arguments": {"query": "whoami"}})).await;
    let found = names(&found["structuredContent"], "tools", "name");
    assert!(found.contains(&"a__whoami".to_owned()) && !found.contains(&"b__whoami".to_owned()), "{found:?}");
}

// --- Search ---

const SEARCH: &str = "[hub]\nmode = \"search\"\n";

fn by_name(name: &str, arguments: &Value) -> Value {
    json!({"name": "prism_call_tool", "arguments": {"name": name, "arguments": arguments}})
}

// B-27
#[tokio::test]
async fn two_tools_stand_for_all_of_them() {
    let weather = Scripted::with_tools(json!([
        {"name": "forecast", "description": "Tells how warm it will be tomorrow.", "inputSchema":
            {"type": "object", "properties": {"town": {"type": "string", "description": "Where, as a postal code."}}}},
        {"name": "rain", "description": "Radar pictures of precipitation.", "inputSchema": {"type": "object"}},
    ]))
    .await;
    let daemon = serve(&[SEARCH.to_owned(), weather.destination("weather", ""), destination("a", &[], "")]).await;
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", NEWEST] {
        let hub = daemon.hub().initialize_as(revision, json!({})).await;
        let list = hub.result("tools/list", json!({})).await;
        assert_eq!(names(&list, "tools", "name"), ["prism_find_tools", "prism_call_tool"], "{revision}");
        let found =
            hub.result("tools/call", json!({"name": "prism_find_tools", "arguments": {"query": "how warm"}})).await;
        let text = result_text(&json!({"result": found})).parse::<Value>().unwrap();
        assert_eq!(names(&text, "tools", "name")[0], "weather__forecast", "{revision}: {text}");
        assert_eq!(text["tools"][0]["inputSchema"]["properties"]["town"]["type"], "string");
        assert_eq!(found["structuredContent"], text, "{revision}");
        for query in ["postal", "forecast", "weather__forecast"] {
            let params = json!({"name": "prism_find_tools", "arguments": {"query": query, "limit": 1}});
            let found: Value = result_text(&json!({"result": hub.result("tools/call", params).await})).parse().unwrap();
            assert_eq!(names(&found, "tools", "name"), ["weather__forecast"], "{query}");
        }
        let none = hub.result("tools/call", json!({"name": "prism_find_tools", "arguments": {"query": "xyzzy"}})).await;
        assert!(none["content"][0]["text"].as_str().unwrap().starts_with("None of"), "{none}");
        assert_ne!(none["isError"], true);
        for wrong in
            [json!({}), json!({"query": 1}), json!({"query": "x", "more": 1}), json!({"query": "x", "limit": -1})]
        {
            let error = hub.error("tools/call", json!({"name": "prism_find_tools", "arguments": wrong})).await;
            assert_eq!(error["code"], -32602, "{error}");
        }
        // Odd words are words.
        for query in ["", "\"", "*", "a AND", "town:x", "(", "ünï", "NEAR/2"] {
            hub.result("tools/call", json!({"name": "prism_find_tools", "arguments": {"query": query}})).await;
        }
        // The others are as ever.
        assert_eq!(names(&hub.result("prompts/list", json!({})).await, "prompts", "name"), ["a__greet"]);
    }
}

// B-27
#[tokio::test]
async fn a_tool_that_was_found_is_called_like_any_other() {
    let daemon =
        serve(&[SEARCH.to_owned(), destination("a", &[], ""), destination("m", &["--era", "modern"], "")]).await;
    let hub = daemon.hub().initialize_as(NEWEST, json!({"elicitation": {}})).await;
    let modern = daemon.modern_hub().can(json!({"elicitation": {}}));
    for member in ["a", "m"] {
        let tool = |name: &str| format!("{member}__{name}");
        let echo = by_name(&tool("echo"), &json!({"text": "x"}));
        assert_eq!(hub.result("tools/call", echo.clone()).await["content"][0]["text"], "x");
        let answer = modern.result("tools/call", echo).await;
        assert_eq!((&answer["content"][0]["text"], &answer["resultType"]), (&json!("x"), &json!("complete")));
        let no_arguments = json!({"name": "prism_call_tool", "arguments": {"name": tool("whoami")}});
        assert!(hub.result("tools/call", no_arguments).await["content"][0]["text"].is_string());
        // Progress passes, under the client's token.
        let mut call = by_name(&tool("progress"), &json!({"steps": 2, "ms": 1}));
        call["_meta"] = json!({"progressToken": "mine"});
        let events = hub.ask("tools/call", call).await.events().rest().await;
        let told = events.iter().filter(|event| event.data.contains(r#""progressToken":"mine""#)).count();
        assert_eq!(told, 2, "{events:?}");
        // So do questions.
        let ask = by_name(&tool("ask"), &json!({"kind": "elicitation", "text": "what?"}));
        let mut events = hub.ask("tools/call", ask.clone()).await.events();
        let question = events.message().await;
        assert_eq!(question["params"]["message"], "what?", "{question}");
        let answer = json!({"action": "accept", "content": {"answer": "that"}});
        hub.post(&json!({"jsonrpc": "2.0", "id": question["id"], "result": answer})).await;
        assert_eq!(result_text(&events.message().await), answer.to_string());
        let asked = modern.result("tools/call", ask.clone()).await;
        assert_eq!(asked["resultType"], "input_required", "{asked}");
        let key = asked["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
        let mut again = ask;
        again["requestState"] = asked["requestState"].clone();
        again["inputResponses"] = json!({key: answer});
        assert_eq!(modern.result("tools/call", again).await["content"][0]["text"], answer.to_string());
        let fails = hub.error("tools/call", by_name(&tool("fail"), &json!({"code": -32077}))).await;
        assert_eq!(fails["code"], -32077);
    }
    for wrong in
        [json!({}), json!({"name": 1}), json!({"name": "prism_call_tool"}), json!({"name": "nobody__x"}), json!([])]
    {
        let error = hub.error("tools/call", json!({"name": "prism_call_tool", "arguments": wrong})).await;
        assert_eq!(error["code"], -32602, "{error}");
    }
    let own = hub.result("tools/call", by_name("prism_destinations", &json!({}))).await;
    assert!(own["content"][0]["text"].as_str().unwrap().contains("\"m\""), "{own}");
}

// B-27: what a view does not show, its listens do not tell of.
#[tokio::test]
async fn a_listen_hears_of_the_lists_that_its_view_shows() {
    let daemon = serve(&[destination("a", &[], ""), destination("b", &[], "")]).await;
    let listen = async |path: &str| {
        let mut stream = Modern::new(daemon.hub().at(path))
            .listen(json!(1), json!({"toolsListChanged": true, "promptsListChanged": true}))
            .await;
        assert_eq!(stream.message().await["method"], "notifications/subscriptions/acknowledged");
        stream
    };
    let (mut of_a, mut of_all) = (listen("/mcp?only=a").await, listen("/mcp").await);
    let hub = daemon.hub().initialize().await;
    hub.tools().await;
    for member in ["b", "a"] {
        hub.text(&format!("{member}__change"), json!({"what": "tools"})).await;
        assert_eq!(of_all.message().await["method"], "notifications/tools/list_changed", "{member}");
    }
    hub.text("a__change", json!({"what": "prompts"})).await;
    // Of `a` alone: what `b` has said would stand before this.
    assert_eq!(of_a.message().await["method"], "notifications/tools/list_changed");
    assert_eq!(of_a.message().await["method"], "notifications/prompts/list_changed");
}

/// A server of the older era that offers one tool more to clients that can sample.
fn shy(name: &str) -> String {
    let script = r#"
        say() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
        while read -r line; do
            id=${line#*\"id\":}; id=${id%%[!0-9]*}
            case "$line" in
                *'"initialize"'*)
                    case "$line" in *sampling*) more=',{"name":"think","inputSchema":{"type":"object"}}';; esac
                    hello='"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}}'
                    say "\"result\":{$hello,\"serverInfo\":{\"name\":\"shy\",\"version\":\"1\"}}";;
                *'"tools/list"'*) say "\"result\":{\"tools\":[{\"name\":\"plain\",\"inputSchema\":{\"type\":\"object\"}}$more]}";;
                *'"tools/call"'*) say '"result":{"content":[{"type":"text","text":"done"}]}';;
                *'"method":"notifications/'*) ;;
                *) say '"error":{"code":-32601,"message":"no such method"}';;
            esac
        done"#;
    format!("[destination.{name}]\ncommand = {:?}\n", ["sh", "-c", script])
}

// R-20: not only when one of them was called.
#[tokio::test]
async fn the_first_list_has_what_servers_offer_to_clients_that_can_do_as_much() {
    let daemon = serve(&[shy("shy")]).await;
    let shown = |tools: Vec<String>| tools.into_iter().filter(|tool| tool.starts_with("shy__")).collect::<Vec<_>>();
    let able = json!({"sampling": {}});
    let (all, few) = (["shy__plain", "shy__think"], ["shy__plain"]);
    for _ in 0..2 {
        let session = daemon.hub().initialize_as(NEWEST, able.clone()).await;
        assert_eq!(shown(session.tools().await), all, "before it has called anything");
        let modern = daemon.modern_hub();
        let listed = modern.can(able.clone()).result("tools/list", json!({})).await;
        assert_eq!(shown(names(&listed, "tools", "name")), all);
        assert_eq!(shown(daemon.hub().initialize().await.tools().await), few);
        assert_eq!(shown(names(&modern.result("tools/list", json!({})).await, "tools", "name")), few);
        assert_eq!(session.text("shy__think", json!({})).await, "done");
        assert_eq!(shown(session.tools().await), all, "as after it");
    }
    // One for clients of each kind, of which those that can be asked have their calls elsewhere in each era; and one for each
    // session that has called.
    assert_eq!(daemon.metric(r#"prism_child_starts_total{destination="shy"}"#).await, Some(5));
}
