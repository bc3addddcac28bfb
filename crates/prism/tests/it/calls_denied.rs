//! A tool that a rule denies, by every way that leads to it: its server never hears of the call, the model is told why, and
//! it is on record. The tool's own name counts, whatever it is called on the way.

use std::fs;

use serde_json::{Value, json};

use crate::support::{
    Client, Daemon, Ended, Home, Launch, Modern, NEWEST, Plain, destination, lines, result_text,
    shim::{Shim, home_config},
    until,
    upstream::Upstream,
};

const RULES: &str = "[destination.demo.tools]\ndeny = [\"ech?\"]\npin = \"off\"\n";

/// A server that writes down what it hears, and a daemon before it.
struct House {
    daemon: Daemon,
    record: String,
}

impl House {
    async fn open(settings: &str) -> Self {
        let home = Home::new();
        let record = home.file("record");
        let config = destination("demo", &["--record", &record], settings);
        Self { daemon: Launch::serve(&config).home(&home).start().await, record }
    }

    fn client(&self) -> Client {
        self.daemon.client_at("/demo/mcp")
    }

    /// Calls of that tool that its server has heard of.
    fn heard(&self, tool: &str) -> usize {
        lines(&self.record).iter().filter(|line| line.contains("tools/call") && line.contains(tool)).count()
    }

    fn heard_nothing(&self) {
        let heard = lines(&self.record);
        assert!(!heard.iter().any(|line| line.contains("tools/call")), "{heard:?}");
    }
}

/// An answer that says why, where a model can read it.
fn is_refused(answer: &Value) {
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    let said = result_text(answer);
    for part in ["\"echo\" of \"demo\"", "deny = \"ech?\"", "[destination.demo.tools]", "tell the person"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

fn echo(id: u32) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "echo", "arguments": {"text": "x"}}})
}

#[tokio::test]
async fn with_and_without_a_session_and_in_both_eras() {
    let house = House::open(&format!("sessions = \"optional\"\n{RULES}")).await;
    let client = house.client().initialize().await;
    is_refused(&client.post(&echo(1)).await.answer().await);
    is_refused(&house.client().post(&echo(2)).await.answer().await);
    let modern = Modern::new(house.client());
    let reply = modern.ask("tools/call", json!({"name": "echo", "arguments": {"text": "x"}})).await;
    assert_eq!(reply.status, 200);
    let answer = reply.answer().await;
    is_refused(&answer);
    assert_eq!(answer["result"]["resultType"], "complete");
    house.heard_nothing();
    // Everything else is as it was.
    client.child().await;
    assert_eq!(house.heard("whoami"), 1);
    let line = house.daemon.audited(&json!({"action": "tools/call", "result": "refused: denied"})).await;
    assert_eq!((&line["args"]["tool"], &line["args"]["rule"]), (&json!("echo"), &json!("ech?")), "{line}");
}

#[tokio::test]
async fn at_the_hub_under_any_name() {
    let house = House::open(&format!("{RULES}[destination.other]\ncommand = [\"false\"]\n")).await;
    let hub = house.daemon.hub().initialize().await;
    let refused = async |client: &Client, tool: &str| {
        is_refused(&client.call(tool, json!({"text": "x"})).await.answer().await);
    };
    refused(&hub, "demo__echo").await;
    refused(&house.daemon.hub(), "demo__echo").await;
    // Without a prefix, and without a session.
    let bare = house.daemon.client_at("/mcp?only=demo&prefix=false").initialize().await;
    refused(&bare, "echo").await;
    let modern = house.daemon.modern_hub();
    let reply = modern.ask("tools/call", json!({"name": "demo__echo", "arguments": {"text": "x"}})).await;
    is_refused(&reply.answer().await);
    // By the tool that stands for all others.
    let search = house.daemon.client_at("/mcp?mode=search").initialize().await;
    let arguments = json!({"name": "demo__echo", "arguments": {"text": "x"}});
    is_refused(&search.call("prism_call_tool", arguments).await.answer().await);
    house.heard_nothing();
}

#[tokio::test]
async fn in_a_batch_while_the_rest_of_it_is_answered() {
    let house = House::open(RULES).await;
    let other =
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "whoami", "arguments": {}}});
    for path in ["/demo/mcp", "/mcp?only=demo&prefix=false"] {
        let client = house.daemon.client_at(path).initialize_as("2025-03-26", json!({})).await;
        let reply = client.post(&json!([echo(1), other, {"jsonrpc": "2.0", "id": 3, "method": "ping"}])).await;
        let Value::Array(answers) = reply.answer().await else { panic!("answers to a batch are a list") };
        let by_id = |id: u32| answers.iter().find(|answer| answer["id"] == id).expect("each has its answer");
        assert_eq!(answers.len(), 3, "{answers:?}");
        is_refused(by_id(1));
        assert!(result_text(by_id(2)).parse::<u32>().is_ok(), "{answers:?}");
    }
    assert_eq!(house.heard("echo"), 0);
}

#[tokio::test]
async fn over_the_first_transport() {
    let house = House::open(&format!("legacy_sse = true\n{RULES}")).await;
    let mut plain = Plain::initialize(house.daemon.client_at("/demo/sse"), json!({})).await;
    is_refused(&plain.call("echo", json!({"text": "x"})).await);
    assert!(result_text(&plain.call("whoami", json!({})).await).parse::<u32>().is_ok());
    assert_eq!(house.heard("echo"), 0);
}

#[tokio::test]
async fn through_prism_stdio() {
    let home = Home::new();
    let record = home.file("record");
    home_config(&home, &destination("demo", &["--record", &record], RULES));
    for destination in [&[][..], &["demo"][..]] {
        let tool = if destination.is_empty() { "demo__echo" } else { "echo" };
        let mut shim = Shim::start(&home, destination);
        shim.initialize(NEWEST, json!({})).await;
        let id = shim.call(tool, json!({"text": "x"}));
        is_refused(&shim.answer(id).await);
    }
    assert!(!lines(&record).iter().any(|line| line.contains("tools/call")));
}

#[tokio::test]
async fn with_prism_call_and_no_daemon_at_all() {
    let home = Home::new();
    let record = home.file("record");
    let nobody = Upstream::away();
    let port = nobody.at("").rsplit(':').next().expect("a port").to_owned();
    let words = ["call", "demo", "echo", "text=x"].map(str::to_owned).to_vec();
    let launch = Launch::prism(words).home(&home).env("PRISM_PORT", &port);
    let Ended { code, stdout, stderr } = launch.config(&destination("demo", &["--record", &record], RULES)).end().await;
    assert_ne!(code, Some(0), "{stdout}{stderr}");
    assert!((stdout.clone() + &stderr).contains("deny = \"ech?\""), "{stdout}{stderr}");
    assert!(!lines(&record).iter().any(|line| line.contains("tools/call")));
}

/// Messages that some server would read as a call of `echo`.
const TRICKS: [&str; 9] = [
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"n\u0061me":"\u0065cho","arguments":{"text":"x"}}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"tools\/call","params" : { "arguments":{"text":"x"}, "name" : "echo" } }"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"whoami","name":"echo","arguments":{"text":"x"}}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"whoami","Name":"echo","arguments":{"text":"x"}}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":["echo",{"text":"x"}]}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","Params":{"name":"echo"},"params":{"name":"whoami"}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"x/y","Method":"tools/call","params":{"name":"echo"}}"#,
    r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"echo","arguments":{"text":"x"}}}"#,
    r#"{"jsonrpc":"2.0","method":"x/y","METHOD":"tools/call","id":null,"params":{"name":"echo"}}"#,
];

#[tokio::test]
async fn however_it_is_written() {
    let house = House::open(&format!("process = \"per_session\"\n{RULES}")).await;
    let client = house.client().initialize_as("2025-03-26", json!({"roots": {}})).await;
    for trick in TRICKS {
        let reply = client.post_text(trick).await;
        assert!([200, 202, 400].contains(&reply.status), "{trick}: {}", reply.status);
        let said = reply.text().await;
        assert!(!said.contains("\"text\":\"x\""), "{trick}: {said}");
        let _ = client.post_text(&format!("[{trick}]")).await.text().await;
    }
    // What was sent before this has arrived.
    client.child().await;
    let heard = lines(&house.record);
    assert!(!heard.iter().any(|line| line.contains("echo") || line.contains("\\u0065cho")), "{heard:?}");
}

#[tokio::test]
async fn arguments_count_and_what_is_there_twice_is_refused() {
    let rules =
        "[destination.demo.tools]\nallow = [{ tool = \"echo\", arguments = { text = \"select *\" } }]\npin = \"off\"\n";
    let house = House::open(rules).await;
    let client = house.client().initialize().await;
    assert_eq!(client.text("echo", json!({"text": "select 1"})).await, "select 1");
    let line = house.daemon.audited(&json!({"action": "tools/call", "result": "allowed"})).await;
    assert_eq!(line["args"]["tool"], "echo", "{line}");
    let refused = |answer: &Value, why: &str| {
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        assert!(result_text(answer).contains(why), "{answer}");
    };
    refused(&client.call("echo", json!({"text": "DROP x"})).await.answer().await, "no rule allows it");
    refused(&client.call("whoami", json!({})).await.answer().await, "no rule allows it");
    for arguments in [r#"{"text":"select 1","text":"DROP x"}"#, r#"{"text":"select 1","Text":"DROP x"}"#] {
        let call = format!(
            r#"{{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{{"name":"echo","arguments":{arguments}}}}}"#
        );
        refused(&client.post_text(&call).await.answer().await, "more than one way");
    }
    assert_eq!(house.heard("echo"), 1);
}

#[tokio::test]
async fn changed_rules_count_at_once_and_the_server_runs_on() {
    let house = House::open("").await;
    let client = house.client().initialize().await;
    let child = client.child().await;
    assert_eq!(client.text("echo", json!({"text": "x"})).await, "x");
    let file = house.daemon.home().file("it.toml");
    let before = fs::read_to_string(&file).expect("it is there");
    fs::write(&file, format!("{before}\n{RULES}")).expect("it can be written");
    until("the rule counts", async || {
        client.call("echo", json!({"text": "x"})).await.answer().await["result"]["isError"] == true
    })
    .await;
    assert_eq!(client.child().await, child, "it was not started again");
    fs::write(&file, before).expect("it can be written");
    until("the rule is gone", async || {
        client.call("echo", json!({"text": "x"})).await.answer().await["result"]["isError"] != true
    })
    .await;
    assert_eq!(client.child().await, child);
}
