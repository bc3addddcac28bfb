//! What a request of the modern era must say, in its body and in its headers, before anybody serves it (mcp-eras 1.2,
//! 1.4, 1.8).

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::support::{Daemon, Home, Launch, MODERN, Modern, Reply, Request, demo, lines, result_text, soon};

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// The status, the code and the id of a refusal.
async fn refusal(reply: Reply) -> (u16, i64, Value) {
    let status = reply.status;
    let body = reply.json().await;
    let code = body["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error: {body}"));
    (status, code, body["id"].clone())
}

/// Checks that a request is refused, with the id of its message.
async fn refused(request: Request, message: &Value, code: i64) {
    assert_eq!(refusal(request.send().await).await, (400, code, message["id"].clone()), "{message}");
}

async fn served(request: Request) {
    let reply = request.send().await;
    let (status, body) = (reply.status, reply.json().await);
    assert_eq!(status, 200, "{body}");
    assert!(body["result"].is_object(), "{body}");
}

/// A message with one thing changed in its `_meta`.
fn spoilt(client: &Modern, change: impl Fn(&mut Value)) -> Value {
    let mut message = client.message("tools/list", json!({}));
    change(&mut message["params"]["_meta"]);
    message
}

// checks 58
#[tokio::test]
async fn an_envelope_that_lacks_something_is_refused_with_the_id_of_its_request() {
    let home = Home::new();
    let record = home.file("record");
    let daemon = Launch::run(&[], &demo(&["--record", &record])).home(&home).start().await;
    let client = daemon.modern();
    let mut bare = client.message("tools/list", json!({}));
    bare["params"].as_object_mut().unwrap().remove("_meta");
    let mut no_params = client.message("tools/list", json!({}));
    no_params.as_object_mut().unwrap().remove("params");
    let remove = |name: &'static str| spoilt(&client, move |meta| drop(meta.as_object_mut().unwrap().remove(name)));
    for message in [
        bare,
        no_params,
        remove(VERSION),
        remove(CAPABILITIES),
        spoilt(&client, |meta| meta[VERSION] = 7.into()),
        spoilt(&client, |meta| meta[CAPABILITIES] = "all".into()),
        spoilt(&client, |meta| *meta = json!([])),
    ] {
        refused(client.request(&message), &message, -32602).await;
    }
    assert!(lines(&record).is_empty() && daemon.children().is_empty(), "nobody was started for any of it");
}

// checks 59
#[tokio::test]
async fn a_client_need_not_say_who_it_is() {
    for era in ["legacy", "modern"] {
        let daemon = Daemon::run(&[], &["--era", era]).await;
        let client = daemon.modern();
        let nameless = spoilt(&client, |meta| {
            meta.as_object_mut().unwrap().remove("io.modelcontextprotocol/clientInfo").unwrap();
        });
        served(client.request(&nameless)).await;
    }
}

// checks 60
#[tokio::test]
async fn the_version_header_must_be_there_and_say_what_the_body_says() {
    let daemon = Daemon::run(&[], &[]).await;
    let client = daemon.modern();
    let message = client.message("tools/list", json!({}));
    refused(client.request(&message).without("mcp-protocol-version"), &message, -32020).await;
    for other in ["2025-11-25", "2024-11-05", "banana"] {
        refused(client.request(&message).header("mcp-protocol-version", other), &message, -32020).await;
    }
    served(client.request(&message)).await;
}

// checks 61
#[tokio::test]
async fn a_version_that_is_not_served_is_refused_with_the_ones_that_are() {
    let daemon = Daemon::run(&[], &[]).await;
    let client = daemon.modern();
    let discovered = client.result("server/discover", json!({})).await;
    let known = discovered["supportedVersions"].as_array().unwrap();
    for version in ["v999", "2027-01-01", "2025-11-26"] {
        let message = spoilt(&client, |meta| meta[VERSION] = version.into());
        let reply = client.request(&message).header("mcp-protocol-version", version).send().await;
        assert_eq!(reply.status, 400, "{version}");
        let body = reply.json().await;
        assert_eq!((&body["error"]["code"], &body["id"]), (&json!(-32022), &message["id"]), "{body}");
        assert_eq!(body["error"]["data"]["requested"], version, "{body}");
        let supported = body["error"]["data"]["supported"].as_array().unwrap();
        assert!(!supported.is_empty() && supported.iter().all(|version| known.contains(version)), "{body}");
    }
}

// checks 63
#[tokio::test]
async fn the_method_header_must_name_the_method() {
    let daemon = Daemon::run(&[], &[]).await;
    let client = daemon.modern();
    let message = client.message("tools/list", json!({}));
    refused(client.request(&message).without("mcp-method"), &message, -32020).await;
    for other in ["prompts/list", "Tools/List", "TOOLS/LIST", "tools/list/"] {
        refused(client.request(&message).header("mcp-method", other), &message, -32020).await;
    }
    // The name of a header has no case.
    let body = client.tool("echo", json!({"text": "hello"})).to_string();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAUTHORIZATION: Bearer {}\r\nContent-Type: application/json\r\n\
         mcp-PROTOCOL-version: {MODERN}\r\nMCP-METHOD: tools/call\r\nmCP-nAME: echo\r\nConnection: close\r\n\
         Content-Length: {}\r\n\r\n{body}",
        daemon.token(),
        body.len()
    );
    let mut stream = TcpStream::connect(("127.0.0.1", daemon.port())).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    soon("the answer", stream.read_to_string(&mut answer)).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("hello"), "{answer}");
}

// checks 64
#[tokio::test]
async fn the_name_header_must_name_what_is_called_got_or_read() {
    let daemon = Daemon::run(&[], &[]).await;
    let client = daemon.modern();
    let cases = [
        (client.tool("echo", json!({"text": "x"})), "echo", "=?base64?ZWNobw==?="),
        (
            client.message("prompts/get", json!({"name": "greet", "arguments": {"name": "Ada"}})),
            "greet",
            "=?base64?Z3JlZXQ=?=",
        ),
        (
            client.message("resources/read", json!({"uri": "demo://hello"})),
            "demo://hello",
            "=?base64?ZGVtbzovL2hlbGxv?=",
        ),
    ];
    for (message, name, coded) in cases {
        refused(client.request(&message).without("mcp-name"), &message, -32020).await;
        let other = format!("{name}s");
        let upper = name.to_uppercase();
        for wrong in [&other, &upper, "", "=?base64?!!!?=", "=?base64?ZWNobwo?=", "=?base64?AAAA?="] {
            refused(client.request(&message).header("mcp-name", wrong), &message, -32020).await;
        }
        served(client.request(&message)).await;
        served(client.request(&message).header("mcp-name", &format!("  {name}\t"))).await;
        served(client.request(&message).header("mcp-name", coded)).await;
    }
    // Where nothing is named, the header means nothing.
    let list = client.message("tools/list", json!({}));
    served(client.request(&list).header("mcp-name", "echo")).await;
}

// checks 65
#[tokio::test]
async fn arguments_that_a_tool_wants_in_headers_must_be_there_and_equal() {
    for era in ["legacy", "modern"] {
        let daemon = Daemon::run(&[], &["--era", era]).await;
        let client = daemon.modern();
        let tools = client.result("tools/list", json!({})).await;
        assert!(tools.to_string().contains("x-mcp-header"), "{tools}");
        let route = |arguments: Value| client.tool("route", arguments);
        let both = route(json!({"region": "Zürich", "priority": 42}));
        let with = |message: &Value, region: &str, priority: &str| {
            let request = client.request(message).header("mcp-param-region", region);
            request.header("mcp-param-priority", priority)
        };
        let zurich = "=?base64?WsO8cmljaA==?=";
        served(with(&both, zurich, "42")).await;
        served(with(&both, zurich, "42.0")).await;
        served(with(&both, zurich, "42").header("mcp-param-whatever", "x")).await;
        refused(with(&both, zurich, "43"), &both, -32020).await;
        refused(with(&both, "=?base64?WmU=?=", "42"), &both, -32020).await;
        refused(with(&both, "=?base64?W?=", "42"), &both, -32020).await;
        refused(with(&both, zurich, "42").without("mcp-param-priority"), &both, -32020).await;
        refused(client.request(&both), &both, -32020).await;
        // What is not there needs no header, and null is not there.
        let one = route(json!({"region": "north"}));
        served(client.request(&one).header("mcp-param-region", "north")).await;
        refused(client.request(&one).header("mcp-param-region", "North"), &one, -32020).await;
        let null = route(json!({"region": "north", "priority": null}));
        served(client.request(&null).header("mcp-param-region", "north")).await;
        // A tool that wants none is not asked for any.
        served(client.request(&client.tool("echo", json!({"text": "x"}))).header("mcp-param-text", "y")).await;
    }
}

// checks 66
#[tokio::test]
async fn a_routing_header_that_is_there_twice_is_refused() {
    let daemon = Daemon::run(&[], &[]).await;
    let client = daemon.modern();
    let message = client.tool("echo", json!({"text": "x"}));
    for (name, same, other) in
        [("mcp-protocol-version", MODERN, "2025-11-25"), ("mcp-method", "tools/call", "x"), ("mcp-name", "echo", "x")]
    {
        for value in [same, other] {
            refused(client.request(&message).again(name, value), &message, -32020).await;
        }
    }
    assert_eq!(result_text(&client.post(&message).await.json().await), "x");
}

// mcp-eras 1.4: step 9 after step 8, and 7 before both.
// checks 61
#[tokio::test]
async fn what_is_wrong_first_is_what_is_told() {
    let daemon = Daemon::run(&[], &[]).await;
    let client = daemon.modern();
    let unknown = spoilt(&client, |meta| meta[VERSION] = "v999".into());
    refused(client.request(&unknown), &unknown, -32020).await;
    refused(client.request(&unknown).header("mcp-protocol-version", "v999").without("mcp-method"), &unknown, -32022)
        .await;
    let incapable = spoilt(&client, |meta| drop(meta.as_object_mut().unwrap().remove(CAPABILITIES)));
    refused(client.request(&incapable).without("mcp-method"), &incapable, -32602).await;
    // A method that the era does not have is looked for last.
    let ping = client.message("ping", json!({}));
    refused(client.request(&ping).without("mcp-method"), &ping, -32020).await;
}

// mcp-eras 4.2: a header alone does not make a request one of the modern era, nor one of none.
// checks 58
#[tokio::test]
async fn a_header_that_names_the_era_wants_a_body_of_it() {
    let daemon = Daemon::run(&[], &[]).await;
    let message = json!({"jsonrpc": "2.0", "id": "x", "method": "tools/list", "params": {}});
    let reply = daemon.modern().request(&message).send().await;
    let status = reply.status;
    let body = reply.json().await;
    assert_eq!((status, &body["error"]["code"], &body["id"]), (400, &json!(-32602), &json!("x")), "{body}");
    assert!(body["error"]["message"].as_str().unwrap().contains(VERSION), "{body}");
    let unknown = daemon.modern().request(&message).header("mcp-protocol-version", "2029-01-01");
    refused(unknown, &message, -32022).await;
}

// Named in the way of the modern era, a legacy revision is no better than an unknown one.
// checks 62
#[tokio::test]
async fn an_envelope_that_names_a_legacy_revision_is_refused_as_one_of_its_era() {
    let daemon = Daemon::run(&[], &[]).await;
    let client = daemon.modern();
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let message = spoilt(&client, |meta| meta[VERSION] = version.into());
        let reply = client.request(&message).header("mcp-protocol-version", version).send().await;
        assert_eq!(reply.status, 400, "{version}");
        let body = reply.json().await;
        assert_eq!((&body["error"]["code"], &body["id"]), (&json!(-32022), &message["id"]), "{body}");
        assert_eq!(body["error"]["data"], json!({"supported": [MODERN], "requested": version}), "{body}");
    }
}
