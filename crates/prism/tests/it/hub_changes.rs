//! What changes behind the hub, and who hears of it (B-27).

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::support::{
    Client, Daemon, Events, Home, Modern, NEWEST, SUBSCRIPTION_ID, destination,
    hub::{Scripted, names, serve, unavailable},
    lines, rests, until,
    upstream::note,
};

const COUNTER_A: &str = "hub://a/demo://counter";
const COUNTER_B: &str = "hub://b/demo://counter";

async fn two(eras: [&str; 2]) -> Daemon {
    serve(&[destination("a", &["--era", eras[0]], ""), destination("b", &["--era", eras[1]], "")]).await
}

async fn touch(client: &Client, member: &str) -> String {
    client.text(&format!("{member}__touch"), json!({"uri": "demo://counter"})).await
}

/// The next message of a stream, which has to be this note: what it says.
async fn told(stream: &mut Events, method: &str) -> Value {
    let mut message = stream.message().await;
    assert_eq!(message["method"], format!("notifications/{method}"), "{message}");
    message["params"].take()
}

/// A server whose only tool is called after how often the list has changed.
async fn changing() -> (Scripted, Arc<AtomicUsize>) {
    let version = Arc::new(AtomicUsize::new(0));
    let seen = version.clone();
    let server = Scripted::start(move |method, _| match method {
        "tools/list" => {
            let name = format!("v{}", seen.load(Ordering::SeqCst));
            Ok(json!({"tools": [{"name": name, "inputSchema": {}}]}))
        }
        _ => Err(json!({"code": -32601, "message": "no"})),
    });
    (server.await, version)
}

fn tools_changed() -> Value {
    note("notifications/tools/list_changed", json!({}))
}

// B-27
#[tokio::test]
async fn a_change_of_a_members_list_is_told_and_then_listed() {
    let (server, version) = changing().await;
    let daemon = serve(&[server.destination("s", ""), destination("a", &[], "")]).await;
    let (first, second) = (daemon.hub().initialize().await, daemon.hub().initialize().await);
    let elsewhere = daemon.hub().at("/mcp?only=a").initialize().await;
    let (mut one, mut two, mut other) = (first.listen().await, second.listen().await, elsewhere.listen().await);
    let mut modern = daemon.modern_hub().listen(json!("l"), json!({"toolsListChanged": true})).await;
    told(&mut modern, "subscriptions/acknowledged").await;
    assert!(first.tools().await.iter().any(|tool| tool == "s__v0"));
    for round in 1..=3 {
        version.store(round, Ordering::SeqCst);
        server.say(&tools_changed()).await;
        for stream in [&mut one, &mut two, &mut modern] {
            told(stream, "tools/list_changed").await;
        }
        let now = format!("s__v{round}");
        for list in [
            first.result("tools/list", json!({})).await,
            daemon.modern_hub().result("tools/list", json!({})).await,
            daemon.hub().at("/mcp?only=s").result("tools/list", json!({})).await,
        ] {
            let tools = names(&list, "tools", "name");
            assert!(tools.contains(&now), "{now}: {tools:?}");
        }
    }
    // Told once, and that is that.
    rests(&daemon, Duration::from_millis(300)).await;
    // A view that does not show the server hears nothing of it.
    second.text("a__change", json!({"what": "prompts"})).await;
    told(&mut other, "prompts/list_changed").await;
}

// B-27: what comes while a list is being fetched is not lost.
#[tokio::test]
async fn a_list_that_changed_while_it_was_fetched_is_fetched_again() {
    let (version, pages) = (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(0)));
    let (seen, turn) = (version.clone(), pages.clone());
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let server = Scripted::start_waiting(move |method, params| {
        let second = params["cursor"].is_string();
        let answer = match (method.as_str(), second) {
            ("tools/list", false) => {
                count.fetch_add(1, Ordering::SeqCst);
                let name = format!("v{}", seen.load(Ordering::SeqCst));
                Ok(json!({"tools": [{"name": name, "inputSchema": {}}], "nextCursor": "2"}))
            }
            ("tools/list", true) => Ok(json!({"tools": []})),
            _ => Err(json!({"code": -32601, "message": "no"})),
        };
        let turn = turn.clone();
        Box::pin(async move {
            // Each second page waits for the test.
            if second {
                turn.acquire().await.unwrap().forget();
            }
            answer
        })
    })
    .await;
    let daemon = serve(&[server.destination("s", "era = \"legacy\""), destination("a", &[], "")]).await;
    let hub = daemon.hub().initialize().await;
    let mut stream = hub.listen().await;
    // It is between two pages when it changes.
    until("the first page is fetched", async || asked.load(Ordering::SeqCst) == 1 && server.streams() == 1).await;
    version.store(1, Ordering::SeqCst);
    server.say(&tools_changed()).await;
    told(&mut stream, "tools/list_changed").await;
    pages.add_permits(10);
    let tools = hub.tools().await;
    assert!(tools.iter().any(|tool| tool == "s__v1"), "{tools:?}");
}

// B-27
#[tokio::test]
async fn a_change_at_a_child_of_the_sessions_own_is_told_to_it() {
    let daemon = two(["legacy", "modern"]).await;
    let asked = json!({"elicitation": {}});
    let (mine, other) =
        (daemon.hub().initialize_as(NEWEST, asked.clone()).await, daemon.hub().initialize_as(NEWEST, asked).await);
    let (mut stream, mut others) = (mine.listen().await, other.listen().await);
    other.text("a__whoami", json!({})).await;
    mine.text("a__change", json!({"what": "resources"})).await;
    told(&mut stream, "resources/list_changed").await;
    // The other session has a child of its own, which says nothing.
    other.text("a__change", json!({"what": "prompts"})).await;
    told(&mut others, "prompts/list_changed").await;
    // A modern server is one for all.
    mine.tools().await;
    mine.text("b__change", json!({"what": "tools"})).await;
    told(&mut stream, "tools/list_changed").await;
    told(&mut others, "tools/list_changed").await;
}

// B-27
#[tokio::test]
async fn an_update_comes_with_the_hubs_uri_until_it_is_unsubscribed() {
    for eras in [["legacy", "legacy"], ["modern", "both"]] {
        let daemon = two(eras).await;
        for capabilities in [json!({}), json!({"elicitation": {}})] {
            let hub = daemon.hub().initialize_as(NEWEST, capabilities).await;
            let mut stream = hub.listen().await;
            for uri in [COUNTER_A, COUNTER_B] {
                assert_eq!(hub.result("resources/subscribe", json!({"uri": uri})).await, json!({}));
            }
            for (member, uri) in [("b", COUNTER_B), ("a", COUNTER_A), ("b", COUNTER_B)] {
                touch(&hub, member).await;
                assert_eq!(told(&mut stream, "resources/updated").await["uri"], uri, "{eras:?}");
            }
            assert_eq!(hub.result("resources/unsubscribe", json!({"uri": COUNTER_A})).await, json!({}));
            touch(&hub, "a").await;
            touch(&hub, "b").await;
            assert_eq!(told(&mut stream, "resources/updated").await["uri"], COUNTER_B, "{eras:?}");
            let error = hub.error("resources/subscribe", json!({"uri": "demo://counter"})).await;
            assert_eq!(error["code"], -32002);
            hub.delete().await;
        }
    }
}

// B-27
#[tokio::test]
async fn a_listen_hears_of_every_member_and_of_all_lists_under_one_tag() {
    for eras in [["legacy", "modern"], ["both", "legacy"]] {
        let daemon = two(eras).await;
        let modern = daemon.modern_hub();
        let wanted = json!({
            "toolsListChanged": true,
            "promptsListChanged": true,
            "resourceSubscriptions": [COUNTER_B, "hub://a/demo://nowhere", "prism://nothing", COUNTER_A, "hub://c/x", "x"],
        });
        for id in [json!("l"), json!(7)] {
            let mut stream = modern.listen(id.clone(), wanted.clone()).await;
            let first = told(&mut stream, "subscriptions/acknowledged").await;
            assert_eq!(first["_meta"][SUBSCRIPTION_ID], id);
            let honoured = json!({
                "toolsListChanged": true, "promptsListChanged": true, "resourceSubscriptions": [COUNTER_B, COUNTER_A],
            });
            assert_eq!(first["notifications"], honoured, "{eras:?}");
            modern.result("tools/list", json!({})).await;
            for (member, uri) in [("a", COUNTER_A), ("b", COUNTER_B), ("a", COUNTER_A)] {
                modern.text(&format!("{member}__touch"), json!({"uri": "demo://counter"})).await;
                let note = told(&mut stream, "resources/updated").await;
                assert_eq!((&note["uri"], &note["_meta"][SUBSCRIPTION_ID]), (&json!(uri), &id), "{eras:?}");
            }
            for (member, what) in [("a", "tools"), ("b", "prompts"), ("b", "tools")] {
                watched(&daemon, &modern, member).await;
                modern.text(&format!("{member}__change"), json!({"what": what})).await;
                let note = told(&mut stream, &format!("{what}/list_changed")).await;
                assert_eq!(note["_meta"][SUBSCRIPTION_ID], id, "{eras:?}");
            }
            // What was not asked for is not told.
            modern.text("a__change", json!({"what": "resources"})).await;
            modern.text("a__change", json!({"what": "prompts"})).await;
            told(&mut stream, "prompts/list_changed").await;
        }
    }
}

/// Makes sure that the hub listens to a member: it does from the first list on.
async fn watched(daemon: &Daemon, modern: &Modern, member: &str) {
    let listens = format!("prism_streams{{destination=\"{member}\"}}");
    modern.result("tools/list", json!({})).await;
    until("the hub listens", async || daemon.metric(&listens).await >= Some(1)).await;
}

// B-27
#[tokio::test]
async fn a_listen_that_is_closed_is_closed_at_the_members() {
    let home = Home::new();
    let record = home.file("a");
    let daemon = serve(&[destination("a", &["--record", &record], "era = \"legacy\"")]).await;
    let modern = daemon.modern_hub();
    let mut stream = modern.listen(json!(1), json!({"resourceSubscriptions": [COUNTER_A]})).await;
    let first = told(&mut stream, "subscriptions/acknowledged").await;
    assert_eq!(first["notifications"]["resourceSubscriptions"], json!([COUNTER_A]));
    let seen = |what: &str| lines(&record).iter().any(|line| line.contains(what));
    assert!(seen("resources/subscribe"));
    drop(stream);
    until("the member is unsubscribed", async || seen("resources/unsubscribe")).await;
    let reply = modern.request(&modern.message("subscriptions/listen", json!({}))).send().await;
    assert_eq!(reply.answer().await["error"]["code"], -32602);
    let listen = modern.message("subscriptions/listen", json!({"notifications": {}}));
    assert_eq!(modern.request(&listen).header("accept", "application/json").send().await.status, 406);
}

// B-27: what two have in common is called by the hub's name, without prefixes, too.
#[tokio::test]
async fn without_prefixes_a_resource_is_told_of_as_it_was_asked_for() {
    for eras in [["legacy", "modern"], ["both", "legacy"]] {
        let daemon = two(eras).await;
        let path = "/mcp?prefix=false";
        let hub = daemon.hub().at(path).initialize().await;
        let listed = names(&hub.result("resources/list", json!({})).await, "resources", "uri");
        assert!(listed.iter().any(|uri| uri == COUNTER_A) && listed.iter().any(|uri| uri == COUNTER_B), "{listed:?}");
        let modern = daemon.modern_hub().client_at(path);
        let mut stream = hub.listen().await;
        for (member, uri) in [("a", COUNTER_A), ("b", COUNTER_B)] {
            let read = hub.result("resources/read", json!({"uri": uri})).await;
            assert_eq!(read["contents"][0]["uri"], uri, "{eras:?}");
            assert_eq!(modern.result("resources/read", json!({"uri": uri})).await["contents"][0]["uri"], uri);
            assert_eq!(
                daemon.hub().at(path).result("resources/read", json!({"uri": uri})).await["contents"][0]["uri"],
                uri
            );
            hub.result("resources/subscribe", json!({"uri": uri})).await;
            touch(&hub, member).await;
            assert_eq!(told(&mut stream, "resources/updated").await["uri"], uri, "{eras:?}");
        }
        let mut listen = modern.listen(json!(1), json!({"resourceSubscriptions": [COUNTER_B, COUNTER_A]})).await;
        let first = told(&mut listen, "subscriptions/acknowledged").await;
        assert_eq!(first["notifications"]["resourceSubscriptions"], json!([COUNTER_B, COUNTER_A]), "{eras:?}");
        for (member, uri) in [("a", COUNTER_A), ("b", COUNTER_B)] {
            modern.text(&format!("{member}__touch"), json!({"uri": "demo://counter"})).await;
            assert_eq!(told(&mut listen, "resources/updated").await["uri"], uri, "{eras:?}");
        }
    }
    // What only one has is called as that one does.
    let daemon = serve(&[destination("a", &[], "")]).await;
    let hub = daemon.hub().at("/mcp?prefix=false").initialize().await;
    let mut stream = hub.listen().await;
    hub.result("resources/subscribe", json!({"uri": "demo://counter"})).await;
    hub.text("touch", json!({"uri": "demo://counter"})).await;
    assert_eq!(told(&mut stream, "resources/updated").await["uri"], "demo://counter");
}

// N-03, B-27
#[tokio::test]
async fn events_are_named_after_their_methods_for_who_asks_for_it() {
    let daemon = two(["legacy", "modern"]).await;
    let hub = daemon.hub().at("/mcp?events=method").initialize().await;
    let mut stream = hub.listen().await;
    let modern = daemon.modern_hub().client_at("/mcp?events=method");
    let wanted = json!({"toolsListChanged": true, "resourceSubscriptions": [COUNTER_A, COUNTER_B]});
    let mut listen = modern.listen(json!(1), wanted).await;
    let name = async |stream: &mut Events| loop {
        let event = stream.next().await.unwrap();
        if !event.data.is_empty() {
            assert_eq!(event.json()["method"].as_str(), event.name.as_deref());
            return event.name.unwrap();
        }
    };
    assert_eq!(name(&mut listen).await, "notifications/subscriptions/acknowledged");
    for (member, uri) in [("a", COUNTER_A), ("b", COUNTER_B)] {
        hub.result("resources/subscribe", json!({"uri": uri})).await;
        touch(&hub, member).await;
        assert_eq!(name(&mut stream).await, "notifications/resources/updated");
        assert_eq!(name(&mut listen).await, "notifications/resources/updated");
    }
    hub.text("b__change", json!({"what": "tools"})).await;
    assert_eq!(name(&mut stream).await, "notifications/tools/list_changed");
    assert_eq!(name(&mut listen).await, "notifications/tools/list_changed");
    let progress = json!({"name": "a__progress", "arguments": {"steps": 1, "ms": 1}, "_meta": {"progressToken": 1}});
    let mut events = hub.ask("tools/call", progress).await.events();
    assert_eq!(name(&mut events).await, "notifications/progress");
}

// B-27
#[tokio::test]
async fn a_list_is_fetched_once_for_everybody() {
    let home = Home::new();
    let record = home.file("a");
    let daemon = serve(&[destination("a", &["--record", &record], "")]).await;
    let counted = |what: &str| lines(&record).iter().filter(|line| line.contains(&format!("\"{what}\""))).count();
    for _ in 0..5 {
        let hub = daemon.hub().initialize().await;
        for (method, ..) in crate::support::hub::LISTS {
            assert_eq!(unavailable(&hub.result(method, json!({})).await), Vec::<String>::new());
        }
        daemon.modern_hub().result("tools/list", json!({})).await;
    }
    for (method, ..) in crate::support::hub::LISTS {
        assert_eq!(counted(method), 1, "{method}");
    }
}

// M-05
#[tokio::test]
async fn the_bell_of_prism_itself_can_be_watched_and_nothing_like_it() {
    let daemon = serve(&[]).await;
    for client in [daemon.hub().initialize().await, daemon.client_at("/prism/mcp").initialize().await] {
        for rest in ["", "/0197f3a4-5b6c-7d8e-9f00-112233445566"] {
            client.result("resources/subscribe", json!({"uri": format!("prism://signals/pending{rest}")})).await;
        }
        for rest in ["/", "/x", "s"] {
            client.error("resources/subscribe", json!({"uri": format!("prism://signals/pending{rest}")})).await;
        }
    }
}
