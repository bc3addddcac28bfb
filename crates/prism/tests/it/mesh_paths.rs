//! How paths and agents really are, and what a ring that did not ring leaves behind: with servers that are not ready, or die,
//! and real panes (R-27, R-28, R-29).

mod stand_ins;

use std::time::Duration;

use hyper::Method;
use serde_json::{Value, json};

use self::stand_ins::{Codex, Opencode, Panes};
use crate::support::{
    Daemon, Home, Launch,
    agents::{Agent, At, mesh, mesh_in, text},
    shim::Shim,
    until,
};

/// Settings under which nothing is tried again by time, nor looked at: what happens is the next signal's doing.
const SIGNALS_ONLY: &str = "climb_after = \"10m\"\nping_every = \"10m\"\ntmux = true";

async fn ask(from: &Agent, to: &str) {
    from.does("send", json!({"to": to, "type": "Question", "body": "b"})).await;
}

/// An agent that can be woken by this, beside MCP, and what its start said of it.
async fn started(daemon: &Daemon, wake: Value) -> (Agent, Value) {
    let mut agent = daemon.window(At::Own).await;
    let said = agent.start(json!({"agent": "sable", "surface": "x", "wake": wake})).await;
    (agent, said)
}

async fn healthy(agent: &Agent, path: &str) -> bool {
    let seen = agent.seen().await;
    let paths = seen["paths"].as_array().unwrap();
    paths.iter().find(|one| one["path"] == path).unwrap()["healthy"] == true
}

/// The first signal finds nobody ready, the second somebody.
async fn rings_when_ready(wake: Value, path: &str, missed: &str, make_ready: impl Future<Output = ()>) {
    let daemon = mesh(SIGNALS_ONLY).await;
    let donna = daemon.agent(At::Hub, "donna").await;
    let (sable, _) = started(&daemon, wake).await;
    ask(&donna, "sable").await;
    sable.until_bell(path, missed).await;
    assert!(!healthy(&sable, path).await, "{path} has just failed");
    make_ready.await;
    ask(&donna, "sable").await;
    sable.until_bell(path, "rang").await;
    until("it is healthy", async || healthy(&sable, path).await).await;
    // M-04: now a bell is out.
    ask(&donna, "sable").await;
    sable.until_bell(path, "coalesced").await;
    assert_eq!(sable.drain().await.len(), 3);
    sable.until_bell(path, "confirmed").await;
    let bells: Vec<String> = sable.bells().await.into_iter().rev().map(|(_, result)| result).collect();
    assert_eq!(bells, [missed, "rang", "coalesced", "confirmed"], "{path}");
}

// R-27
#[tokio::test]
async fn opencode_that_was_not_ready_for_the_first_signal_is_rung_for_the_second() {
    let server = Opencode::start(false).await;
    rings_when_ready(server.wake(), "opencode", "send-failed", async { server.be_ready(true) }).await;
    assert_eq!(server.prompts(), 1);
}

// R-27
#[tokio::test]
async fn codex_that_was_not_ready_for_the_first_signal_is_rung_for_the_second() {
    let server = Codex::start(false).await;
    rings_when_ready(server.wake(), "codex_app_server", "uncaptured", async { server.be_ready(true) }).await;
    assert_eq!(server.turns(), 1);
}

// R-27
#[tokio::test]
async fn a_pane_with_half_a_draft_at_the_first_signal_is_typed_into_at_the_second() {
    let Some(panes) = Panes::open().await else { return };
    panes.draft("half a thou").await;
    rings_when_ready(panes.wake(), "tmux", "uncaptured", panes.clear()).await;
    until("it was typed", async || panes.sent().contains("Signal from donna: Question")).await;
    assert_eq!(panes.sent().lines().count(), 1);
}

// R-27: nobody has to send anything.
#[tokio::test]
async fn time_tries_again_what_did_not_ring() {
    let daemon = mesh("climb_after = \"100ms\"\nping_every = \"10m\"\ntmux = true").await;
    let Some(panes) = Panes::open().await else { return };
    panes.draft("half a thou").await;
    let donna = daemon.agent(At::Hub, "donna").await;
    let (sable, _) = started(&daemon, panes.wake()).await;
    ask(&donna, "sable").await;
    sable.until_bell("tmux", "uncaptured").await;
    panes.clear().await;
    sable.until_bell("tmux", "rang").await;
}

// R-29: it dies, is said to be dead, and is rung as soon as it is back.
#[tokio::test]
async fn a_dead_path_is_not_healthy_until_it_is_back() {
    let daemon = mesh("climb_after = \"10m\"\nping_every = \"100ms\"").await;
    let donna = daemon.agent(At::Hub, "donna").await;
    let server = Opencode::start(true).await;
    let (sable, said) = started(&daemon, server.wake()).await;
    assert_eq!(said["surface_support"], "full", "{said}");
    let seen = sable.seen().await;
    assert_eq!((&seen["presence"], &seen["paths"][2]["healthy"]), (&json!("connected"), &json!(true)), "{seen}");
    server.be_ready(false);
    until("that is seen without a signal", async || !healthy(&sable, "opencode").await).await;
    let seen = sable.seen().await;
    assert_eq!((&seen["presence"], &seen["surface_support"]), (&json!("active"), &json!("degraded")), "{seen}");
    assert!(text(&seen["paths"][2]["absent"]).contains("OpenCode"), "{seen}");
    let refused = donna.refused("send", json!({"to": "sable", "body": "b", "delivery": "sync"})).await;
    assert!(refused.contains("unreachable"), "{refused}");
    ask(&donna, "sable").await;
    sable.until_bell("opencode", "send-failed").await;
    server.be_ready(true);
    sable.until_bell("opencode", "rang").await;
    assert!(healthy(&sable, "opencode").await);
    sable.until_support("full").await;
}

// R-29: what takes bells and brings no drain is no way to an agent.
#[tokio::test]
async fn a_path_whose_bell_goes_unheard_is_not_healthy_after_its_window() {
    let daemon = mesh("climb_after = \"50ms\"\nconfirm_within = \"300ms\"\nping_every = \"50ms\"").await;
    let donna = daemon.agent(At::Hub, "donna").await;
    let server = Opencode::start(true).await;
    let (sable, _) = started(&daemon, server.wake()).await;
    ask(&donna, "sable").await;
    sable.until_bell("opencode", "rang").await;
    until("its window is over", async || !healthy(&sable, "opencode").await).await;
    sable.until_support("degraded").await;
    assert_eq!(sable.seen().await["presence"], "active");
    sable.drain().await;
    ask(&donna, "sable").await;
    sable.until_bell("opencode", "rang").await;
    sable.drain().await;
    until("one was heard", async || healthy(&sable, "opencode").await).await;
    sable.until_support("full").await;
}

// R-29, R-30
#[tokio::test]
async fn no_screen_is_no_healthy_path_and_takes_no_bells() {
    let daemon = Launch::serve("[mesh]\ndesktop = true").env("PATH", "/nowhere").start().await;
    let (donna, sable) = (daemon.agent(At::Own, "donna").await, daemon.agent(At::Own, "sable").await);
    let seen = sable.seen().await;
    let desktop = seen["paths"].as_array().unwrap().last().unwrap().clone();
    assert_eq!((&desktop["path"], &desktop["healthy"]), (&json!("desktop"), &json!(false)), "{desktop}");
    assert!(text(&desktop["absent"]).contains("notify-send"), "{desktop}");
    ask(&donna, "sable").await;
    sable.until_bell("sse", "uncaptured").await;
}

// R-28
#[tokio::test]
async fn an_agent_that_tmux_wakes_is_fully_supported_and_can_be_sent_to_at_once() {
    let daemon = mesh(SIGNALS_ONLY).await;
    let Some(panes) = Panes::open().await else { return };
    let donna = daemon.agent(At::Hub, "donna").await;
    let (_, said) = started(&daemon, panes.wake()).await;
    assert_eq!(said["surface_support"], "full", "{said}");
    donna.does("send", json!({"to": "sable", "body": "b", "delivery": "sync"})).await;
}

// R-28: the answer to a start is the truth of that moment.
#[tokio::test]
async fn a_start_with_an_open_stream_says_full() {
    let daemon = mesh("").await;
    for at in [At::Hub, At::Own] {
        let mut sable = daemon.window(at).await;
        let before = sable.does("diagnostics", json!({})).await;
        assert_eq!((&before["agent"], &before["surface_support"]), (&Value::Null, &json!("degraded")), "{before}");
        let _stream = sable.listen().await;
        until("the stream is known", async || sable.does("diagnostics", json!({})).await["surface_support"] == "full")
            .await;
        let said = sable.start(json!({"agent": format!("sable-{at:?}")})).await;
        assert_eq!((&said["surface_support"], &said["transport"]), (&json!("full"), &json!("http")), "{said}");
    }
}

// R-28, M-09: wherever it is shown.
#[tokio::test]
async fn cursor_on_stdio_is_degraded_wherever_it_is_shown() {
    let home = Home::new();
    let daemon = mesh_in(&home, "").await;
    let mut shim = Shim::start(&home, &[]);
    let hello = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "cursor-vscode", "version": "1"},
    });
    shim.result("initialize", hello).await;
    shim.note("notifications/initialized", json!({}));
    let diagnose = json!({"name": "prism_runtime_diagnostics", "arguments": {}});
    let before = shim.result("tools/call", diagnose.clone()).await["structuredContent"].clone();
    assert_eq!((&before["transport"], &before["surface_support"]), (&json!("stdio"), &json!("degraded")), "{before}");
    let start = json!({"name": "prism_start", "arguments": {"agent": "sable"}});
    let started = shim.result("tools/call", start).await["structuredContent"].clone();
    assert_eq!((&started["surface"], &started["transport"]), (&json!("cursor"), &json!("stdio")), "{started}");
    assert_eq!(started["surface_support"], "degraded", "{started}");
    until("its stream is there", async || {
        let seen = shim.result("tools/call", diagnose.clone()).await["structuredContent"].clone();
        seen["connection"] == "emitting" && seen["surface_support"] == "degraded"
    })
    .await;
    let everything = daemon.client_at("/prism/mesh").request(Method::GET).send().await.json().await;
    let status = daemon.client_at("/status").request(Method::GET).send().await.json().await;
    for shown in [&everything["agents"][0], &status["mesh"]["agents"][0]] {
        assert_eq!((&shown["agent"], &shown["transport"]), (&json!("sable"), &json!("stdio")), "{shown}");
        assert_eq!(shown["surface_support"], "degraded", "{shown}");
    }
    for words in [vec!["status"], vec!["mesh", "--once"]] {
        let printed = Launch::prism(words.iter().map(|&word| word.to_owned()).collect()).home(&home).output().await;
        let line = printed.lines().find(|line| line.starts_with("sable")).unwrap_or_else(|| panic!("{printed}"));
        assert!(line.contains("only at its next tool call") && line.contains("cursor"), "{words:?}: {printed}");
    }
    let donna = daemon.agent(At::Hub, "donna").await;
    let sent = donna.does("send", json!({"to": "sable", "body": "b"})).await;
    assert_eq!(sent["recipient_state"]["surface_support"], "degraded", "{sent}");
    let doorbells = daemon.metric(r#"prism_mesh_agents{transport="stdio",surface_support="degraded"}"#).await;
    assert_eq!(doorbells, Some(1));
    // The same program over HTTP, with a stream (M-09).
    let mut other = daemon.window(At::Own).await;
    other.start(json!({"agent": "other", "surface": "cursor"})).await;
    let _stream = other.listen().await;
    other.until_support("full").await;
}

// R-30: the last wake is the push, and the drain is not another one.
#[tokio::test]
async fn a_drain_does_not_overwrite_when_the_bell_was_pushed() {
    let daemon = mesh("").await;
    let donna = daemon.agent(At::Hub, "donna").await;
    let sable = daemon.agent(At::Own, "sable").await;
    let mut stream = sable.listen().await;
    sable.until_support("full").await;
    ask(&donna, "sable").await;
    stream.bell().await;
    let owed = async || daemon.script().does("obligations", json!({"agent": "sable"})).await["obligations"][0].clone();
    until("it is written down", async || owed().await["last_wake_result"] == "rang").await;
    let before = owed().await;
    tokio::time::timeout(Duration::from_secs(10), sable.drain()).await.unwrap();
    sable.until_bell("sse", "confirmed").await;
    until("it was heard", async || owed().await["state"] == "heard").await;
    let after = owed().await;
    for field in ["last_wake_at", "last_wake_result", "last_wake_path", "wake_attempt_count"] {
        assert_eq!(before[field], after[field], "{field}: {before} {after}");
    }
}
