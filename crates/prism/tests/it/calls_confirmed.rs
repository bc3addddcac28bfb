//! Calls that a person has to allow: they wait, and what was shown is what is called. An Allow is for one caller, one
//! tool as it is, one set of arguments.

use hyper::Method;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::support::{
    Client, Daemon, Events, Home, Launch, Modern, Plain, destination, lines, person::Person, result_text, until,
};

const RULES: &str = "[destination.demo.tools]\nconfirm = [\"echo\", \"progress\"]\n";

struct House {
    daemon: Daemon,
    person: Person,
    record: String,
}

impl House {
    async fn open(settings: &str) -> Self {
        Self::open_with("", settings).await
    }

    async fn open_with(globals: &str, gate: &str) -> Self {
        let home = Home::new();
        let record = home.file("record");
        let demo = destination("demo", &["--record", &record], &format!("legacy_sse = true\n{RULES}"));
        let daemon = Launch::serve(&format!("{globals}\n{demo}[gate]\n{gate}\n")).home(&home).start().await;
        let person = daemon.person();
        Self { daemon, person, record }
    }

    async fn client(&self) -> Client {
        self.daemon.client_at("/demo/mcp").initialize().await
    }

    /// Calls of the tool that its server has heard of.
    fn heard(&self) -> usize {
        lines(&self.record).iter().filter(|line| line.contains("tools/call") && line.contains("\"echo\"")).count()
    }

    /// A call that waits, while the test goes on.
    fn call(&self, client: &Client, arguments: Value) -> JoinHandle<Value> {
        let client = client.clone();
        tokio::spawn(async move { client.call("echo", arguments).await.answer().await })
    }
}

fn handle(answer: &Value) -> &str {
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    let said = result_text(answer);
    assert!(said.contains("waits for a person"), "{said}");
    said
}

fn with_token(tool: &str, arguments: Value) -> Value {
    json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": "t"}})
}

/// The next message of a stream, which has to say that a person is being waited for. Returns how far it has come, and its
/// words.
async fn beat(events: &mut Events) -> (f64, String) {
    let beat = events.message().await;
    assert_eq!((&beat["method"], &beat["params"]["progressToken"]), (&json!("notifications/progress"), &json!("t")));
    let said = beat["params"]["message"].as_str().expect("it says why");
    assert!(
        said.starts_with("waiting for your approval: prism confirm") && said.ends_with(" (or prism console)"),
        "{said}"
    );
    (beat["params"]["progress"].as_f64().expect("a number"), said.to_owned())
}

// A-10
#[tokio::test]
async fn a_call_waits_until_it_is_allowed_and_what_was_shown_is_what_is_called() {
    let house = House::open("").await;
    let client = house.client().await;
    let waiting = house.call(&client, json!({"text": "rm -rf /\u{202e}"}));
    let asked = house.person.asked().await;
    assert_eq!((&asked["kind"], &asked["agent_id"]), (&json!("tool"), &json!("it")), "{asked}");
    let shown = &asked["shown"];
    assert_eq!((&shown["destination"], &shown["tool"]), (&json!("demo"), &json!("echo")));
    let arguments = shown["arguments"].as_str().expect("they are text, as they were written");
    assert_eq!(arguments, "{\n  \"text\": \"rm -rf /\u{202e}\"\n}");
    assert!(shown["definition"].as_str().is_some_and(|text| text.contains("inputSchema")), "{shown}");
    assert_eq!(house.heard(), 0);
    house.person.allow(&asked).await;
    assert_eq!(result_text(&waiting.await.expect("an answer")), "rm -rf /\u{202e}");
    assert_eq!(house.heard(), 1);
    let line = house.daemon.audited(&json!({"action": "tools/call", "result": "allowed"})).await;
    assert_eq!((&line["actor"], &line["args"]["rule"]), (&json!("it"), &json!("echo")), "{line}");
    // The next one is another.
    let again = house.call(&client, json!({"text": "rm -rf /\u{202e}"}));
    house.person.deny(&house.person.asked().await, "not today").await;
    let answer = again.await.expect("an answer");
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    assert!(result_text(&answer).contains("Their reason: not today"), "{answer}");
    assert_eq!(house.heard(), 1);
}

// A-10
#[tokio::test]
async fn a_late_allow_counts_once_for_the_same_caller_and_the_same_arguments_only() {
    let house = House::open("call_wait = \"300ms\"").await;
    let (client, other) = (house.client().await, house.client().await);
    let answer = client.call("echo", json!({"text": "x"})).await.answer().await;
    let asked = house.person.asked().await;
    let id = asked["confirmation_id"].as_str().expect("it has an id");
    assert!(handle(&answer).contains(id), "{answer}");
    // The same call again waits for the same question.
    handle(&client.call("echo", json!({"text": "x"})).await.answer().await);
    assert_eq!(house.person.waiting().await.len(), 1);
    house.person.allow(&asked).await;
    for (who, arguments) in [(&other, json!({"text": "x"})), (&client, json!({"text": "y"}))] {
        handle(&who.call("echo", arguments).await.answer().await);
    }
    handle(&house.daemon.client_at("/demo/mcp").call("echo", json!({"text": "x"})).await.answer().await);
    assert_eq!(house.heard(), 0);
    // However it is written: it means the same.
    let written = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"arguments":{ "t\u0065xt":"\u0078"},"name":"ech\u006f"}}"#;
    assert_eq!(result_text(&client.post_text(written).await.answer().await), "x");
    handle(&client.call("echo", json!({"text": "x"})).await.answer().await);
    assert_eq!(lines(&house.record).iter().filter(|line| line.contains("tools/call")).count(), 1);
}

// A-10
#[tokio::test]
async fn an_allow_may_be_for_several_times_or_for_a_time() {
    let house = House::open("call_wait = \"300ms\"").await;
    let client = house.client().await;
    let first = house.call(&client, json!({"text": "n"}));
    house.person.decide(&house.person.asked().await, true, json!({"uses": 3})).await;
    // One that was faster with its answer than the person is one of the three, too.
    if first.await.expect("an answer")["result"]["isError"] == true {
        assert_eq!(client.text("echo", json!({"text": "n"})).await, "n");
    }
    for _ in 0..2 {
        assert_eq!(client.text("echo", json!({"text": "n"})).await, "n");
    }
    handle(&client.call("echo", json!({"text": "n"})).await.answer().await);
    house.person.deny(&house.person.asked().await, "").await;
    handle(&client.call("echo", json!({"text": "while"})).await.answer().await);
    house.person.decide(&house.person.asked().await, true, json!({"until_seconds": 600})).await;
    for _ in 0..5 {
        assert_eq!(client.text("echo", json!({"text": "while"})).await, "while");
    }
    assert!(house.person.waiting().await.is_empty());
}

// A-10
#[tokio::test]
async fn what_nobody_answers_is_refused_in_the_end() {
    let house = House::open("confirm_within = \"1s\"").await;
    let client = house.client().await;
    let answer = client.call("echo", json!({"text": "x"})).await.answer().await;
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    house.person.nothing_waits().await;
    assert_eq!(house.heard(), 0);
}

// The call's own time begins when it is made.
#[tokio::test]
async fn who_can_be_told_hears_every_few_seconds_that_it_waits_and_then_the_answer_on_the_same_stream() {
    let house = House::open_with("request_timeout = \"2s\"", "call_wait = \"1s\"").await;
    for path in ["/demo/mcp", "/mcp?only=demo&prefix=false"] {
        let client = house.daemon.client_at(path).initialize().await;
        let params = with_token("progress", json!({"steps": 2, "ms": 5}));
        let mut events = client.ask("tools/call", params).await.events();
        let asked = house.person.asked().await;
        let (first, _) = beat(&mut events).await;
        // Five seconds later: the call, were it under way, would be over by now.
        let (second, said) = beat(&mut events).await;
        let id = asked["confirmation_id"].as_str().expect("an id");
        assert_eq!(said, format!("waiting for your approval: prism confirm {} (or prism console)", &id[..8]));
        assert!(first < second && second < 1.0, "progress grows, and leaves room for the server's own");
        house.person.allow(&asked).await;
        let mut rest = Vec::new();
        while let Some(event) = events.next().await {
            if !event.data.is_empty() {
                rest.push(event.json());
            }
        }
        let last = rest.pop().expect("an answer");
        assert!(last["result"]["content"].is_array() && last["result"]["isError"] != true, "{last}");
        let steps: Vec<&Value> = rest.iter().map(|beat| &beat["params"]["progress"]).collect();
        assert_eq!(steps.len(), 2, "{path}: the server's own progress comes through: {rest:?}");
    }
}

#[tokio::test]
async fn the_other_era_and_the_first_transport_can_wait_too() {
    let house = House::open("call_wait = \"300ms\"").await;
    let modern = Modern::new(house.daemon.client_at("/demo/mcp"));
    let mut events = modern.ask("tools/call", with_token("echo", json!({"text": "m"}))).await.events();
    beat(&mut events).await;
    house.person.allow(&house.person.asked().await).await;
    assert_eq!(result_text(&events.message().await), "m");
    assert!(events.next().await.is_none());
    // Another client of the same kind needs a word of its own.
    handle(&json!({"result": modern.named("other").call("echo", json!({"text": "m"})).await}));
    house.person.deny(&house.person.asked().await, "").await;

    let mut plain = Plain::initialize(house.daemon.client_at("/demo/sse"), json!({})).await;
    let id = plain.send("tools/call", with_token("echo", json!({"text": "p"}))).await;
    beat(&mut plain.stream).await;
    house.person.allow(&house.person.asked().await).await;
    let answer = plain.stream.message().await;
    assert_eq!((&answer["id"], result_text(&answer)), (&id, "p"));
    handle(&plain.call("echo", json!({"text": "q"})).await);
}

#[tokio::test]
async fn whoever_leaves_or_cancels_takes_the_question_back() {
    let house = House::open("").await;
    let client = house.client().await;
    // It hangs up.
    let waiting = house.call(&client, json!({"text": "a"}));
    house.person.asked().await;
    waiting.abort();
    house.person.nothing_waits().await;
    // The same while it hears that it waits.
    let mut events = client.ask("tools/call", with_token("echo", json!({"text": "b"}))).await.events();
    beat(&mut events).await;
    house.person.asked().await;
    drop(events);
    house.person.nothing_waits().await;
    // It cancels.
    for path in ["/demo/mcp", "/mcp?only=demo&prefix=false"] {
        let client = house.daemon.client_at(path).initialize().await;
        let call = json!({"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": {"name": "echo", "arguments": {"text": "c"}}});
        let posting = {
            let client = client.clone();
            tokio::spawn(async move { client.post(&call).await.text().await })
        };
        house.person.asked().await;
        client.notify("notifications/cancelled", json!({"requestId": "c"})).await;
        house.person.nothing_waits().await;
        let said = posting.await.expect("it ends");
        assert!(!said.contains("\"result\""), "{said}");
    }
    // Its stream, which is its session, ends.
    let plain = Plain::initialize(house.daemon.client_at("/demo/sse"), json!({})).await;
    plain.send("tools/call", with_token("echo", json!({"text": "d"}))).await;
    house.person.asked().await;
    drop(plain);
    house.person.nothing_waits().await;
    assert_eq!(house.heard(), 0);
}

// M-06
#[tokio::test]
async fn an_agent_that_was_sent_away_hears_a_bell_when_the_person_has_decided() {
    let house = House::open("call_wait = \"300ms\"").await;
    let hub = house.daemon.hub().initialize().await;
    hub.text("prism_start", json!({"agent": "builder"})).await;
    let answer = hub.call("demo__echo", json!({"text": "x"})).await.answer().await;
    assert!(handle(&answer).contains("You will hear a bell"), "{answer}");
    let asked = house.person.asked().await;
    assert_eq!(asked["agent_id"], "builder", "{asked}");
    house.person.allow(&asked).await;
    let mut heard = String::new();
    until("a signal waits", async || {
        heard = hub.text("prism_signals_pending", json!({})).await;
        heard.contains("was allowed")
    })
    .await;
    assert!(heard.contains("StatusUpdate") && heard.contains("\"prism\""), "{heard}");
    assert_eq!(hub.text("demo__echo", json!({"text": "x"})).await, "x");
}

// A-03
#[tokio::test]
async fn an_agent_cannot_allow_its_own_call() {
    let house = House::open("").await;
    let client = house.client().await;
    let waiting = house.call(&client, json!({"text": "x"}));
    let asked = house.person.asked().await;
    let answer = json!({"confirmation_id": asked["confirmation_id"], "digest": asked["digest"], "allow": true});
    let reply = house.daemon.client_at("/mcp/confirm").request(Method::POST).body(answer.to_string()).send().await;
    assert!([401, 403].contains(&reply.status), "{}", reply.status);
    assert_eq!(house.person.waiting().await.len(), 1);
    house.person.deny(&asked, "").await;
    assert_eq!(waiting.await.expect("an answer")["result"]["isError"], true);
}
