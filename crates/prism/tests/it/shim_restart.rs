//! `prism stdio` while the daemon goes away and comes back: no request is lost, and none is done twice (D-07).

use std::{fs, time::Duration};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{
    Home, NEWEST, SUBSCRIPTION_ID, lines, process, result_text,
    shim::{Shim, home_config, home_with_demo, modern, registered},
    until,
};

const CYCLES: usize = 5;
const CALLS: usize = 20;

/// `kill -9`, and it is gone when this returns.
async fn kill_daemon(home: &Home) -> u32 {
    let pid = registered(home).expect("a daemon runs");
    process::signal(pid, Signal::KILL);
    // All of it: a process whose first thread has ended may still have its sockets.
    until("the daemon is gone", async || !process::is_there(pid)).await;
    pid
}

/// The calls of a tool that reached the server.
fn reached(record: &str, tool: &str) -> usize {
    lines(record).iter().filter(|line| line.contains(&format!("\"{tool}\""))).count()
}

// D-07
#[tokio::test]
async fn a_killed_daemon_is_started_again_and_only_what_ran_is_told_so() {
    let home = Home::new();
    let record = home.file("record");
    home_config(&home, &format!("[destination.demo]\ncommand = {:?}\n", crate::support::demo(&["--record", &record])));
    let mut shim = Shim::start(&home, &["demo"]);
    shim.initialize(NEWEST, json!({})).await;
    for cycle in 1..=CYCLES {
        let before = reached(&record, "slow");
        let running: Vec<u64> =
            (0..CALLS).map(|_| shim.call("slow", json!({"ms": 600_000, "text": "never"}))).collect();
        until("all calls are with the server", async || reached(&record, "slow") == before + CALLS).await;
        let pid = kill_daemon(&home).await;
        let next: Vec<u64> = (0..CALLS).map(|i| shim.call("echo", json!({"text": format!("{cycle} {i}")}))).collect();
        let list = shim.ask("tools/list", json!({}));
        for id in &running {
            let answer = shim.answer(*id).await;
            assert_eq!(answer["error"]["data"]["reason"], "daemon_restarted", "{answer}");
            let why = answer["error"]["message"].as_str().unwrap_or_default();
            assert!(why.contains("may or may not have been done"), "{why}");
        }
        for (i, id) in next.iter().enumerate() {
            assert_eq!(result_text(&shim.answer(*id).await), format!("{cycle} {i}"));
        }
        assert!(shim.answer(list).await["result"]["tools"].is_array());
        assert_ne!(registered(&home), Some(pid));
        // Nothing is done twice, and nothing is answered twice.
        assert_eq!(reached(&record, "slow"), before + CALLS);
        assert_eq!(reached(&record, "echo"), cycle * CALLS);
        for id in running.iter().chain(&next).chain([&list]) {
            assert_eq!(shim.answers(*id).len(), 1, "{id}");
        }
    }
}

#[tokio::test]
async fn a_listen_of_the_modern_era_goes_on_after_a_restart() {
    let home = home_with_demo(&[]);
    let mut shim = Shim::start(&home, &["demo"]);
    let none = json!({});
    let listen = shim.ask("subscriptions/listen", modern(json!({"notifications": {"toolsListChanged": true}}), &none));
    shim.heard("notifications/subscriptions/acknowledged").await;
    kill_daemon(&home).await;
    // Whoever only listens does not start a daemon; a request does.
    let id = shim.ask("tools/list", modern(json!({}), &none));
    assert!(shim.answer(id).await["result"].is_object());
    // What may have changed meanwhile is told, once.
    until("what was missed is told", async || shim.count("notifications/tools/list_changed") == 1).await;
    shim.ask("tools/call", modern(json!({"name": "change", "arguments": {"what": "tools"}}), &none));
    until("the change is heard", async || shim.count("notifications/tools/list_changed") == 2).await;
    let heard = shim.heard("notifications/tools/list_changed").await;
    assert_eq!(heard["params"]["_meta"][SUBSCRIPTION_ID], listen);
    assert_eq!(shim.count("notifications/subscriptions/acknowledged"), 1);
    assert_eq!(shim.answers(listen), Vec::<Value>::new());
}

#[tokio::test]
async fn a_legacy_stream_goes_on_after_a_restart() {
    let home = home_with_demo(&[]);
    let mut shim = Shim::start(&home, &["demo"]);
    shim.initialize(NEWEST, json!({})).await;
    shim.result("resources/subscribe", json!({"uri": "demo://counter"})).await;
    kill_daemon(&home).await;
    let id = shim.call("touch", json!({"uri": "demo://counter"}));
    shim.answer(id).await;
    // The subscription may be a moment behind the first call.
    until("the update is heard", async || {
        shim.call("touch", json!({"uri": "demo://counter"}));
        shim.count("notifications/resources/updated") > 0
    })
    .await;
}

// A stop that drains: what comes meanwhile is done by the next daemon.
#[tokio::test]
async fn a_stopped_daemon_takes_no_request_with_it() {
    let home = home_with_demo(&[]);
    let mut shim = Shim::start(&home, &["demo"]);
    shim.initialize(NEWEST, json!({})).await;
    for i in 0..CYCLES {
        let pid = registered(&home).expect("a daemon runs");
        process::signal(pid, Signal::TERM);
        let calls: Vec<u64> = (0..CALLS).map(|_| shim.call("echo", json!({"text": i.to_string()}))).collect();
        for id in calls {
            let answer = shim.answer(id).await;
            assert!(
                answer["result"].is_object() || answer["error"]["data"]["reason"] == "daemon_restarted",
                "{answer}"
            );
            assert_eq!(shim.answers(id).len(), 1);
        }
        until("the daemon is gone", async || !process::is_alive(pid)).await;
        let id = shim.call("echo", json!({"text": "after"}));
        assert_eq!(result_text(&shim.answer(id).await), "after");
    }
}

#[tokio::test]
async fn a_daemon_that_cannot_start_is_told_with_the_reason() {
    let home = Home::new();
    fs::write(home.file("prism.toml"), "port = \"many\"\n").expect("the home can be written to");
    let mut shim = Shim::start(&home, &[]);
    let id =
        shim.ask("initialize", json!({"protocolVersion": NEWEST, "capabilities": {}, "clientInfo": {"name": "it"}}));
    let answer = shim.answer(id).await;
    let why = answer["error"]["message"].as_str().unwrap_or_default();
    assert!(why.contains("port") && why.contains("prism serve"), "{answer}");
    // It is mended, and the next request finds a daemon.
    home_config(&home, "");
    assert!(shim.initialize(NEWEST, json!({})).await["serverInfo"].is_object());
}

// Somebody who stops the daemon does not want it back because an editor is open.
#[tokio::test]
async fn a_client_that_only_listens_starts_no_daemon() {
    let home = home_with_demo(&[]);
    let mut shim = Shim::start(&home, &["demo"]);
    shim.initialize(NEWEST, json!({})).await;
    shim.result("ping", json!({})).await;
    kill_daemon(&home).await;
    crate::support::stays("there is no daemon", Duration::from_millis(700), async || registered(&home).is_none()).await;
    assert!(process::is_alive(shim.pid()));
    shim.result("ping", json!({})).await;
}
