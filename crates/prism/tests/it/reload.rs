//! A config that changes while the daemon runs (D-09): who is concerned, and who does not notice.

use std::fs;

use hyper::Method;
use serde_json::{Value, json};

use crate::support::{Client, Daemon, Events, Home, Launch, destination, gate::audit_in, process, until};

struct House {
    daemon: Daemon,
    home: Home,
}

impl House {
    async fn open(config: &str) -> Self {
        let home = Home::new();
        Self { daemon: Launch::serve(config).home(&home).start().await, home }
    }

    fn write(&self, config: &str) {
        // As editors do it.
        let beside = self.home.file("it.toml.new");
        fs::write(&beside, config).unwrap();
        fs::rename(beside, self.home.file("it.toml")).unwrap();
    }

    /// Writes another config, and waits until the daemon says this of it.
    async fn change(&self, config: &str, said: &str) {
        let count = || self.daemon.stderr().matches(said).count();
        let before = count();
        self.write(config);
        until("the daemon has seen it", async || count() > before).await;
    }

    fn client(&self, path: &str) -> Client {
        self.daemon.client_at(path)
    }
}

const TAKEN_OVER: &str = "Took over the changed config";

async fn told(stream: &mut Events, method: &str) -> Value {
    loop {
        let mut message = stream.message().await;
        if message["method"] == format!("notifications/{method}") {
            return message["params"].take();
        }
    }
}

#[tokio::test]
async fn a_changed_destination_is_started_anew_and_its_sessions_go_on_while_the_others_do_not_notice() {
    let unchanged = destination("same", &[], "");
    let house = House::open(&(destination("changed", &[], "") + &unchanged)).await;
    let (changed, same) =
        (house.client("/changed/mcp").initialize().await, house.client("/same/mcp").initialize().await);
    let mut stream = changed.listen().await;
    changed.result("resources/subscribe", json!({"uri": "demo://counter"})).await;
    let (old, kept) = (changed.child().await, same.child().await);
    let long = same.clone();
    let long = tokio::spawn(async move { long.text("slow", json!({"ms": 2000, "text": "whole"})).await });

    house.change(&(destination("changed", &["--era", "legacy"], "") + &unchanged), "Its settings have changed").await;

    assert!(stream.next().await.is_none_or(|event| event.data.is_empty()), "its stream ends, to be resumed");
    assert_ne!(changed.child().await, old);
    until("the old one is gone", async || !process::is_there(old)).await;
    let mut stream = changed.listen().await;
    assert_eq!(told(&mut stream, "resources/updated").await["uri"], "demo://counter", "it may have changed");
    assert_eq!(changed.text("touch", json!({"uri": "demo://counter"})).await, "update sent");
    assert_eq!(same.child().await, kept);
    assert_eq!(long.await.unwrap(), "whole");
}

#[tokio::test]
async fn a_call_that_a_changed_server_worked_on_fails_with_a_clear_error() {
    let house = House::open(&destination("d", &[], "")).await;
    let client = house.client("/d/mcp").initialize().await;
    let waiting = {
        let client = client.clone();
        tokio::spawn(async move { client.call("slow", json!({"ms": 600_000, "text": "never"})).await })
    };
    until("it runs", async || client.child().await > 0).await;
    house.change(&destination("d", &[], "keep_warm = \"1s\""), "Its settings have changed").await;
    let reply = waiting.await.unwrap();
    let (status, answer) = (reply.status, reply.answer().await);
    assert_eq!(status, 503);
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("changed settings") && message.contains("call again"), "{message}");
}

// R-55: limits concern no process, and so no process is concerned.
#[tokio::test]
async fn changed_limits_count_at_once_and_no_server_is_started_anew() {
    let d = destination("d", &[], "");
    let house = House::open(&d).await;
    let (client, other) = (house.client("/d/mcp").initialize().await, house.client("/d/mcp").initialize().await);
    let stream = client.listen().await;
    let child = client.child().await;
    let why = async |tool: &str, arguments: Value| {
        let answer = client.call(tool, arguments).await.answer().await;
        answer["error"]["message"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    };
    assert_eq!(client.text("big", json!({"bytes": 100_000})).await.len(), 100_000);

    house.change(&format!("max_message_bytes = 65536\n{d}"), TAKEN_OVER).await;
    let told = why("big", json!({"bytes": 100_000})).await;
    assert!(told.contains("`max_message_bytes` (65536 bytes)"), "{told}");
    assert_eq!(client.child().await, child);

    house.change(&format!("request_timeout = \"200ms\"\nmax_request_time = \"300ms\"\n{d}"), TAKEN_OVER).await;
    let told = why("slow", json!({"ms": 600_000, "text": "never"})).await;
    assert!(told.contains("request_time"), "{told}");

    house.change(&format!("max_sessions = 2\n{d}"), TAKEN_OVER).await;
    assert_eq!(house.client("/d/mcp").say_hello().await.status, 503);
    assert_eq!((client.child().await, other.child().await), (child, child), "their sessions have gone on");
    assert_eq!(client.text("big", json!({"bytes": 100_000})).await.len(), 100_000, "the other limits are as they were");

    house.change(&format!("session_idle_timeout = \"300ms\"\n{d}"), TAKEN_OVER).await;
    until("nobody uses the other one", async || {
        house.daemon.metric(r#"prism_sessions{destination="d"}"#).await.is_some_and(|sessions| sessions < 2)
    })
    .await;
    assert_eq!(house.daemon.metric(r#"prism_child_starts_total{destination="d"}"#).await, Some(1));
    drop(stream);
}

// R-45
#[tokio::test]
async fn changed_settings_of_the_gate_and_of_the_audit_log_count_at_once() {
    let house = House::open("").await;
    let ask = async || {
        let ask = json!({"agent_id": "a", "scopes": ["read:files"], "roots": ["/tmp"], "reason": "My number is 4711"});
        house.client("/mcp/request_access").request(Method::POST).body(ask.to_string()).send().await.status
    };
    assert_eq!(ask().await, 200);
    house.change("[gate]\nmax_requests_per_agent = 2\n[audit]\nredact = [\"reason\"]\n", TAKEN_OVER).await;
    assert_eq!((ask().await, ask().await), (200, 429));
    let lines = audit_in(house.home.path());
    let asked: Vec<String> = lines
        .iter()
        .filter(|line| line["action"] == "request_access" && line["result"] == "requested")
        .map(Value::to_string)
        .collect();
    assert_eq!(asked.iter().map(|line| line.contains("4711")).collect::<Vec<_>>(), [true, false], "{asked:?}");
}

#[tokio::test]
async fn destinations_come_and_go_and_clients_of_the_hub_see_it() {
    let (a, b) = (destination("a", &[], ""), destination("b", &[], ""));
    let house = House::open(&a).await;
    let hub = house.client("/mcp").initialize().await;
    let mut stream = hub.listen().await;
    let tools = async || {
        let tools = hub.result("tools/list", json!({})).await;
        let names = tools["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    let has = |tools: &[String], name: &str| tools.iter().any(|tool| tool == name);
    assert!(!has(&tools().await, "b__echo"));
    hub.result("resources/subscribe", json!({"uri": "hub://a/demo://counter"})).await;
    let child = hub.text("a__whoami", json!({})).await;

    house.change(&(a.clone() + &b), TAKEN_OVER).await;
    told(&mut stream, "tools/list_changed").await;
    assert!(has(&tools().await, "b__echo"));
    assert_eq!(hub.text("b__echo", json!({"text": "there"})).await, "there");
    assert_eq!(hub.text("a__whoami", json!({})).await, child, "the one that was there has not noticed");
    let direct = house.client("/b/mcp").initialize().await;

    // What is watched at one that changes is watched at the next.
    let changed = destination("a", &["--era", "legacy"], "");
    house.change(&(changed + &b), "Its settings have changed").await;
    assert_eq!(told(&mut stream, "resources/updated").await["uri"], "hub://a/demo://counter");
    assert_ne!(hub.text("a__whoami", json!({})).await, child);
    assert_eq!(hub.text("a__touch", json!({"uri": "demo://counter"})).await, "update sent");
    assert_eq!(told(&mut stream, "resources/updated").await["uri"], "hub://a/demo://counter");

    house.change(&b, TAKEN_OVER).await;
    let tools = tools().await;
    assert!(has(&tools, "b__echo") && !has(&tools, "a__echo"));
    house.change(&a, TAKEN_OVER).await;
    assert_eq!(direct.call("echo", json!({"text": "x"})).await.status, 404, "its destination is gone");
    assert_eq!(hub.text("a__echo", json!({"text": "back"})).await, "back");
}

#[tokio::test]
async fn a_client_that_was_to_see_one_server_does_not_see_the_others_when_that_one_goes() {
    let (a, b) = (destination("a", &[], ""), destination("b", &[], ""));
    let house = House::open(&(a.clone() + &b)).await;
    let client = house.client("/mcp?only=a").initialize().await;
    let seen = async |prefix: &str| {
        let tools = client.result("tools/list", json!({})).await;
        tools["tools"].as_array().unwrap().iter().any(|tool| tool["name"].as_str().unwrap().starts_with(prefix))
    };
    assert!(seen("a__").await && !seen("b__").await);

    house.change(&b, TAKEN_OVER).await;
    assert_eq!(client.call("b__echo", json!({"text": "x"})).await.status, 404, "what its URL names is not there");
    house.change(&(a + &b), TAKEN_OVER).await;
    assert!(seen("a__").await && !seen("b__").await);
}

#[tokio::test]
async fn a_bad_config_changes_nothing_and_says_so() {
    let house = House::open(&destination("d", &[], "")).await;
    let client = house.client("/d/mcp").initialize().await;
    let child = client.child().await;
    house.change("[destination.d]\ncomand = [\"x\"]\n", "The config has an error").await;
    house.daemon.logged("did you mean").await;
    assert_eq!(client.child().await, child);
    house.change(&destination("d", &[], ""), "The config is in effect").await;
    assert_eq!(client.child().await, child, "it is the config that was in effect all the time");
}

#[tokio::test]
async fn a_server_that_is_added_to_a_running_daemon_is_there_at_once() {
    let home = Home::new();
    let daemon = Launch::prism(["serve", "--port", "0"].map(str::to_owned).to_vec()).home(&home).start().await;
    let add = ["add", "late", "--", env!("CARGO_BIN_EXE_prism"), "demo-server"].map(str::to_owned).to_vec();
    Launch::prism(add).home(&home).output().await;
    until("it is there", async || daemon.stderr().contains(TAKEN_OVER)).await;
    assert_eq!(daemon.client_at("/late/mcp").initialize().await.text("echo", json!({"text": "x"})).await, "x");
}

// `[destination.NAME]` goes on working, beside `[server.NAME]`.
#[tokio::test]
async fn servers_by_both_words_in_one_file_are_served_and_another_word_is_no_other_server() {
    let (old, new) = (destination("old", &[], ""), destination("new", &[], "").replace("[destination.", "[server."));
    let house = House::open(&format!("{old}{new}")).await;
    let (a, b) = (house.client("/old/mcp").initialize().await, house.client("/new/mcp").initialize().await);
    let children = (a.child().await, b.child().await);

    // The person goes over to the newer word, and adds one more.
    let (now, third) = (old.replace("[destination.", "[server."), destination("third", &[], ""));
    house.change(&format!("{now}{new}{third}"), TAKEN_OVER).await;
    assert_eq!((a.child().await, b.child().await), children, "nobody is started anew for a word");
    assert_eq!(house.client("/third/mcp").initialize().await.text("echo", json!({"text": "x"})).await, "x");

    house.change(&format!("{old}{new}{now}"), "The config has an error").await;
    house.daemon.logged("is there twice").await;
    assert_eq!(a.text("echo", json!({"text": "x"})).await, "x", "the config before it counts");
}
