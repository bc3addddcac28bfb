//! Destinations behind the hub that are dead, hang, or come late: the others are not held up (B-27).

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{
    Client, Daemon, Events, Home, Launch, NEWEST, demo, destination,
    hub::{LISTS, Scripted, names, serve, unavailable},
    lines, process, rests, result_text, until,
    upstream::Upstream,
};

/// A patience that no test waits out: who would wait for one that does not answer would not come to its end.
const PATIENT: &str = "[hub]\npatience = \"10m\"\n";
/// One that is over soon.
const HASTY: &str = "[hub]\npatience = \"200ms\"\nfirst_patience = \"200ms\"\n";

fn child(name: &str, command: &[&str], settings: &str) -> String {
    format!("[destination.{name}]\ncommand = {command:?}\n{settings}\n")
}

async fn told(stream: &mut Events, method: &str) -> Value {
    let mut message = stream.message().await;
    assert_eq!(message["method"], format!("notifications/{method}"), "{message}");
    message["params"].take()
}

/// What Prism says of each destination.
async fn overview(client: &Client) -> Vec<(String, String, Value)> {
    let said: Value = client.text("prism_destinations", json!({})).await.parse().expect("it is JSON");
    let all = said["destinations"].as_array().expect("it is a list");
    let text = |value: &Value| value.as_str().expect("it is a text").to_owned();
    all.iter().map(|one| (text(&one["name"]), text(&one["state"]), one["why"].clone())).collect()
}

// B-27
#[tokio::test]
async fn the_dead_are_named_and_the_others_are_there() {
    let config = [
        PATIENT.to_owned(),
        child("dead", &["/bin/false"], ""),
        child("nowhere", &["/no/such/program"], ""),
        destination("dies", &["--fault", "die-at-start"], ""),
        "[destination.refused]\nurl = \"http://127.0.0.1:9/mcp\"\n".to_owned(),
        destination("a", &[], ""),
    ];
    let daemon = serve(&config).await;
    let dead = ["dead", "dies", "nowhere", "refused"];
    let hub = daemon.hub().initialize().await;
    for (method, items, name) in LISTS {
        for list in [hub.result(method, json!({})).await, daemon.modern_hub().result(method, json!({})).await] {
            assert_eq!(unavailable(&list), dead, "{method}: {list}");
            for missing in list["_meta"]["prism/unavailable"].as_array().unwrap() {
                assert!(!missing["why"].as_str().unwrap().is_empty(), "{list}");
            }
            assert!(names(&list, items, name).iter().any(|name| name.contains('a')), "{list}");
        }
    }
    let nowhere = &hub.result("tools/list", json!({})).await["_meta"]["prism/unavailable"][2];
    assert!(nowhere["why"].as_str().unwrap().contains("/no/such/program"), "{nowhere}");
    for (name, state, why) in overview(&hub).await {
        assert_eq!(
            (["failing", "missing", "refusing"].contains(&&*state), why.is_string()),
            (dead.contains(&&*name), dead.contains(&&*name)),
            "{name}"
        );
    }
    // Calls say so, too, each for itself.
    let calls = ["dead", "nowhere", "refused"].map(|name| {
        let (hub, modern) = (hub.clone(), daemon.modern_hub());
        async move {
            let call = json!({"name": format!("{name}__x"), "arguments": {}});
            let (one, other) = tokio::join!(hub.ask("tools/call", call.clone()), modern.ask("tools/call", call));
            assert_eq!((one.status, other.status), (503, 503), "{name}");
            for answer in [one.json().await, other.json().await] {
                assert!(answer["error"]["message"].is_string() && answer["id"].is_u64(), "{answer}");
            }
        }
    });
    join_all(calls).await;
    assert_eq!(hub.text("a__echo", json!({"text": "x"})).await, "x");
    rests(&daemon, Duration::from_millis(300)).await;
}

// B-27
#[tokio::test]
async fn one_that_hangs_is_waited_for_once_at_most() {
    let patience = "[hub]\npatience = \"500ms\"\nfirst_patience = \"3s\"\n".to_owned();
    let daemon = serve(&[patience, child("hangs", &["sleep", "600"], ""), destination("a", &[], "")]).await;
    let hub = daemon.hub().initialize().await;
    let begun = Instant::now();
    let first = hub.result("tools/list", json!({})).await;
    let waited = begun.elapsed();
    assert_eq!(unavailable(&first), ["hangs"]);
    assert!(first["_meta"]["prism/unavailable"][0]["why"].as_str().unwrap().contains("hub.patience"), "{first}");
    assert!(names(&first, "tools", "name").iter().any(|tool| tool == "a__echo"));
    // Neither for the same list again, nor for another one, nor by another client.
    let begun = Instant::now();
    for (method, ..) in LISTS {
        for list in [
            hub.result(method, json!({})).await,
            daemon.modern_hub().result(method, json!({})).await,
            daemon.hub().initialize().await.result(method, json!({})).await,
        ] {
            assert_eq!(unavailable(&list), ["hangs"], "{method}");
        }
    }
    assert!(begun.elapsed() < waited, "{:?}, after {waited:?}", begun.elapsed());
    let (_, state, why) = overview(&hub).await.into_iter().find(|(name, ..)| name == "hangs").unwrap();
    assert_eq!((state.as_str(), why.is_string()), ("starting", true), "{why}");
}

// B-27
#[tokio::test]
async fn who_does_not_ask_for_the_one_that_hangs_does_not_wait_for_it() {
    let daemon = serve(&[PATIENT.to_owned(), child("hangs", &["sleep", "600"], ""), destination("a", &[], "")]).await;
    // Everything but a list of all is answered at once.
    let hub = daemon.hub().initialize().await;
    assert_eq!(hub.text("a__echo", json!({"text": "x"})).await, "x");
    assert_eq!(daemon.modern_hub().text("a__echo", json!({"text": "x"})).await, "x");
    let read = hub.result("resources/read", json!({"uri": "hub://a/demo://hello"})).await;
    assert_eq!(read["contents"][0]["text"], "Hello from prism-demo.");
    hub.result("prompts/get", json!({"name": "a__greet", "arguments": {"name": "Ada"}})).await;
    assert_eq!(overview(&hub).await.len(), 3, "the two, and the workspace");
    let mut listen = daemon.modern_hub().listen(json!(1), json!({"toolsListChanged": true})).await;
    told(&mut listen, "subscriptions/acknowledged").await;
    let narrow = daemon.hub().at("/mcp?only=a").initialize().await;
    assert!(narrow.tools().await.iter().any(|tool| tool == "a__echo"));
}

/// A child that says nothing until a file is there, and is the demo server from then on.
fn late(name: &str, file: &str) -> String {
    let demo = crate::support::demo(&[]).join(" ");
    let script = format!("while [ ! -e {file} ]; do sleep 0.02; done; exec {demo}");
    child(name, &["sh", "-c", &script], "")
}

// B-27
#[tokio::test]
async fn one_that_comes_late_is_announced_and_then_there() {
    let home = Home::new();
    let file = home.file("go");
    let daemon =
        Launch::serve(&[HASTY.to_owned(), late("late", &file), destination("a", &[], "")].concat()).start().await;
    let hub = daemon.hub().initialize().await;
    let mut stream = hub.listen().await;
    let mut listen = daemon.modern_hub().listen(json!("l"), json!({"toolsListChanged": true})).await;
    told(&mut listen, "subscriptions/acknowledged").await;
    for list in [hub.result("tools/list", json!({})).await, daemon.modern_hub().result("tools/list", json!({})).await] {
        assert_eq!(unavailable(&list), ["late"]);
    }
    std::fs::write(&file, "").unwrap();
    told(&mut listen, "tools/list_changed").await;
    // Whatever else it has is news, too.
    while stream.message().await["method"] != "notifications/tools/list_changed" {}
    for list in [hub.result("tools/list", json!({})).await, daemon.modern_hub().result("tools/list", json!({})).await] {
        assert_eq!(unavailable(&list), Vec::<String>::new());
        assert!(names(&list, "tools", "name").iter().any(|tool| tool == "late__echo"));
    }
    assert_eq!(hub.text("late__echo", json!({"text": "x"})).await, "x");
    assert!(overview(&hub).await.iter().all(|(_, state, _)| ["up", "asleep"].contains(&&**state)));
}

// R-16: clients that list once would never have it.
#[tokio::test]
async fn one_that_starts_for_the_first_time_is_in_the_first_list_and_from_then_on_at_once() {
    let home = Home::new();
    let file = home.file("go");
    let config = [
        "[hub]\npatience = \"1ms\"\n".to_owned(),
        late("late", &file),
        child("hangs", &["sleep", "600"], "start_timeout = \"100ms\""),
    ]
    .concat();
    let daemon = Launch::serve(&config).home(&home).start().await;
    let hub = daemon.hub().initialize().await;
    let first = tokio::spawn({
        let hub = hub.clone();
        async move { hub.result("tools/list", json!({})).await }
    });
    until("the other one is given up", async || {
        overview(&hub).await.iter().any(|(name, _, why)| name == "hangs" && why.to_string().contains("start_timeout"))
    })
    .await;
    assert!(!first.is_finished(), "one that is starting is waited for");
    std::fs::write(&file, "").unwrap();
    let first = first.await.unwrap();
    assert!(names(&first, "tools", "name").iter().any(|tool| tool == "late__echo"), "{first}");
    assert_eq!(unavailable(&first), ["hangs"]);
    until("the rest of its lists is known", async || {
        let lists = daemon.hub().initialize().await.result("prompts/list", json!({})).await;
        names(&lists, "prompts", "name").iter().any(|prompt| prompt == "late__greet")
    })
    .await;
    daemon.stop().await;
    // The next daemon shows it while it starts, and a call waits for the start.
    std::fs::remove_file(&file).unwrap();
    let daemon = Launch::serve(&config).home(&home).start().await;
    let hub = daemon.hub().initialize().await;
    let list = hub.result("tools/list", json!({})).await;
    assert!(names(&list, "tools", "name").iter().any(|tool| tool == "late__echo"), "{list}");
    let call = tokio::spawn(async move { hub.text("late__echo", json!({"text": "x"})).await });
    std::fs::write(&file, "").unwrap();
    assert_eq!(call.await.unwrap(), "x");
}

// R-16, R-51: a client with a server of its own hears meanwhile that it starts; that it gave up once does not begin it anew.
#[tokio::test]
async fn a_client_that_can_be_asked_waits_at_the_hub_as_it_does_at_the_server() {
    let home = Home::new();
    let (file, starts) = (home.file("go"), home.file("starts"));
    let demo = demo(&[]).join(" ");
    let script = format!("echo begun >> {starts}; while [ ! -e {file} ]; do sleep 0.02; done; exec {demo}");
    let config = [child("late", &["sh", "-c", &script], "request_timeout = \"100ms\"")].concat();
    std::fs::write(&file, "").unwrap();
    let daemon = Launch::serve(&config).home(&home).start().await;
    assert!(daemon.hub().initialize().await.tools().await.iter().any(|tool| tool == "late__slow"));
    daemon.stop().await;
    std::fs::remove_file(&file).unwrap();
    let daemon = Launch::serve(&config).home(&home).start().await;
    let hub = daemon.hub().initialize_as(NEWEST, json!({"elicitation": {}})).await;
    let call = json!({"name": "late__slow", "arguments": {"ms": 1, "text": "x"}, "_meta": {"progressToken": "t"}});
    let reply = hub.ask("tools/call", call.clone()).await;
    assert_eq!((reply.status, reply.is_stream()), (200, true), "it hears before the server is there");
    let mut events = reply.events();
    let told = events.message().await;
    assert!(told["params"]["message"].as_str().unwrap().starts_with("the server is starting"), "{told}");
    drop(events);
    let begun = lines(&starts).len();
    let mut events = hub.ask("tools/call", call).await.events();
    events.message().await;
    std::fs::write(&file, "").unwrap();
    let answer = loop {
        let message = events.message().await;
        if message["method"].is_null() {
            break message;
        }
    };
    assert_eq!(result_text(&answer), "x");
    assert_eq!(lines(&starts).len(), begun, "no start was begun anew");
}

// B-27: a list that is known is served, whatever its server does.
#[tokio::test]
async fn a_list_that_was_known_outlives_a_server_that_hangs() {
    let go = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
    let answers = go.clone();
    let server = Scripted::start_waiting(move |method, _| {
        let answers = answers.clone();
        Box::pin(async move {
            match method.as_str() {
                "tools/list" if !answers.load(std::sync::atomic::Ordering::SeqCst) => std::future::pending().await,
                "tools/list" => Ok(json!({"tools": [{"name": "t", "inputSchema": {}}]})),
                _ => Err(json!({"code": -32601, "message": "no"})),
            }
        })
    })
    .await;
    let config = [HASTY.to_owned(), server.destination("s", "era = \"legacy\""), destination("a", &[], "")];
    let daemon = serve(&config).await;
    let hub = daemon.hub().initialize().await;
    let mut stream = hub.listen().await;
    assert!(hub.tools().await.iter().any(|tool| tool == "s__t"));
    until("the hub listens", async || server.streams() == 1).await;
    go.store(false, std::sync::atomic::Ordering::SeqCst);
    server.say(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})).await;
    told(&mut stream, "tools/list_changed").await;
    let list = hub.result("tools/list", json!({})).await;
    assert!(names(&list, "tools", "name").iter().any(|tool| tool == "s__t"), "better an old list than none: {list}");
}

// B-08, B-27
#[tokio::test]
async fn a_member_that_went_away_and_came_back_is_used_again() {
    let mut upstream = Upstream::away();
    let config = [
        PATIENT.to_owned(),
        format!("[destination.up]\nurl = {:?}\nera = \"legacy\"\n", upstream.url()),
        destination("a", &[], ""),
    ];
    let daemon = serve(&config).await;
    let hub = daemon.hub().initialize().await;
    assert_eq!(unavailable(&hub.result("tools/list", json!({})).await), ["up"]);
    let reply = hub.call("up__t", json!({})).await;
    assert_eq!(reply.status, 503);
    upstream.come();
    let serving = tokio::spawn(async move {
        loop {
            let asked = upstream.next_or_never().await;
            match asked.what() {
                "GET" => asked.status(405).await,
                "initialize" => asked.welcome("s").await,
                "tools/call" => asked.result(crate::support::upstream::text("back")).await,
                _ => asked.status(202).await,
            }
        }
    });
    // A destination that could not be reached is left alone for a moment.
    until("it is back", async || hub.call("up__t", json!({})).await.status == 200).await;
    assert_eq!(hub.text("up__t", json!({})).await, "back");
    serving.abort();
}

// B-27: nobody is held up by a member that is started anew over and over.
#[tokio::test]
async fn a_dead_member_is_not_started_for_every_list() {
    let home = Home::new();
    let starts = home.file("starts");
    let config = [
        PATIENT.to_owned(),
        destination("dies", &["--fault", "die-at-start", "--starts", &starts], ""),
        destination("a", &[], ""),
    ];
    let daemon = serve(&config).await;
    let hub = daemon.hub().initialize().await;
    for (method, ..) in LISTS {
        assert_eq!(unavailable(&hub.result(method, json!({})).await), ["dies"]);
    }
    let before = lines(&starts).len();
    for _ in 0..20 {
        for (method, ..) in LISTS {
            assert_eq!(unavailable(&hub.result(method, json!({})).await), ["dies"]);
        }
        daemon.hub().initialize().await.delete().await;
    }
    assert!(lines(&starts).len() <= before + 1, "{before} {}", lines(&starts).len());
}

// B-27
#[tokio::test]
async fn a_session_goes_on_when_a_members_program_does_not() {
    let home = Home::new();
    let program = home.file("server");
    std::os::unix::fs::symlink(&crate::support::demo(&[])[0], &program).unwrap();
    let config = [child("link", &[&program, "demo-server"], "process = \"per_session\""), destination("a", &[], "")];
    let daemon = Launch::serve(&config.concat()).start().await;
    let (hub, other) = (daemon.hub().initialize_as(NEWEST, json!({})).await, daemon.hub().initialize().await);
    assert_eq!(hub.text("link__echo", json!({"text": "x"})).await, "x");
    std::fs::remove_file(&program).unwrap();
    // Another session cannot come to it any more.
    let refused = other.call("link__echo", json!({"text": "x"})).await;
    assert_eq!(refused.status, 503);
    assert_eq!(other.text("a__echo", json!({"text": "y"})).await, "y");
    let crashed = hub.call("link__crash", json!({})).await;
    assert_eq!(crashed.status, 503);
    for _ in 0..3 {
        let answer = hub.call("link__echo", json!({"text": "x"})).await;
        assert_eq!(answer.status, 503, "the session itself lives: it is not 404");
    }
    std::os::unix::fs::symlink(&crate::support::demo(&[])[0], &program).unwrap();
    until("it is back", async || hub.call("link__echo", json!({"text": "x"})).await.status == 200).await;
    assert_eq!(result_text(&hub.call("a__echo", json!({"text": "z"})).await.answer().await), "z");
}

// B-25, B-27
#[tokio::test]
async fn a_daemon_with_open_hub_sessions_stops_cleanly() {
    let daemon: Daemon =
        serve(&[HASTY.to_owned(), child("hangs", &["sleep", "600"], ""), destination("a", &[], "")]).await;
    let hub = daemon.hub().initialize_as(NEWEST, json!({"elicitation": {}})).await;
    let stream = hub.listen().await;
    hub.text("a__whoami", json!({})).await;
    let listen = daemon.modern_hub().listen(json!(1), json!({"toolsListChanged": true})).await;
    let children = daemon.children();
    assert!(!children.is_empty());
    daemon.stop().await;
    assert!(children.iter().all(|child| !crate::support::process::is_alive(*child)));
    drop((stream, listen));
}

// B-08, B-09, B-27: the session outlives the part that a server was given up with, and so do its subscriptions.
#[tokio::test]
async fn what_was_watched_at_a_server_that_was_given_up_is_watched_again() {
    let home = Home::new();
    let broken = home.file("broken");
    let script = format!("[ -e {broken} ] && exit 1; exec \"$0\" demo-server");
    let command = ["sh", "-c", &script, demo(&[])[0].as_str()].map(str::to_owned);
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    let daemon = serve(&[child("a", &command, "process = \"per_session\"")]).await;
    let hub = daemon.hub().initialize().await;
    let mut stream = hub.listen().await;
    hub.result("resources/subscribe", json!({"uri": "hub://a/demo://counter"})).await;
    let pid: u32 = hub.text("a__whoami", json!({})).await.parse().unwrap();
    std::fs::write(&broken, "").unwrap();
    process::signal(pid, Signal::KILL);
    let sessions = r#"prism_sessions{destination="a"}"#;
    until("the part is given up", async || daemon.metric(sessions).await == Some(0)).await;
    std::fs::remove_file(&broken).unwrap();
    // It may have changed meanwhile.
    until("it is back", async || hub.call("a__whoami", json!({})).await.status == 200).await;
    let uri = |message: Value| {
        (message["method"] == "notifications/resources/updated").then(|| message["params"]["uri"].clone())
    };
    let mut next = async || loop {
        if let Some(uri) = uri(stream.message().await) {
            break uri;
        }
    };
    assert_eq!(next().await, "hub://a/demo://counter");
    assert_eq!(hub.text("a__touch", json!({"uri": "demo://counter"})).await, "update sent");
    assert_eq!(next().await, "hub://a/demo://counter");
}
