//! `prism mesh` on a terminal, and the mesh's commands in front of the real daemon.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{
    Daemon, Ended, Launch,
    mesh::{FakeMesh, happened},
    soon,
    terminal::Terminal,
    until,
};

const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";

fn page(agents: &[&str]) -> Value {
    json!({"agents": agents.iter().map(|name| json!({"agent": name, "presence": "active"})).collect::<Vec<_>>()})
}

/// Answers looks until something is shown.
async fn shows(mesh: &mut FakeMesh, terminal: &Terminal, page: &Value, what: &str) {
    let showing = async {
        while !terminal.shown().contains(what) {
            mesh.answer("", page.clone()).await;
        }
    };
    soon(what, showing).await;
}

// A live view of the mesh.
#[tokio::test]
async fn the_mesh_is_drawn_anew_when_something_happens_and_the_screen_given_back() {
    for leave in ["q", "SIGINT", "SIGTERM"] {
        let mut mesh = FakeMesh::start().await;
        let mut terminal = Terminal::run(mesh.home(), &["mesh"], (80, 24));
        mesh.answer("", page(&["planner"])).await;
        let stream = mesh.asked("events").await.events();
        until("the first is shown", async || terminal.shown().contains("planner")).await;
        assert!(terminal.shown().starts_with(ENTER) && !terminal.is_plain(), "{:?}", terminal.shown());
        happened(&stream, "agent", &json!({"agent": "reviewer"})).await;
        shows(&mut mesh, &terminal, &page(&["planner", "reviewer"]), "reviewer").await;
        // In a narrower one no line is longer than it.
        terminal.resize((20, 5));
        shows(&mut mesh, &terminal, &page(&["planner", "reviewer"]), "prism mesh  2 of 2 …").await;
        match leave {
            "q" => terminal.press("xq"),
            "SIGINT" => terminal.signal(Signal::INT),
            _ => terminal.signal(Signal::TERM),
        }
        assert_eq!(terminal.ended().await.code(), Some(0), "{leave}");
        until("the screen is given back", async || terminal.shown().ends_with(LEAVE)).await;
        assert!(terminal.is_plain(), "{leave}");
    }
}

#[tokio::test]
async fn a_daemon_that_goes_is_waited_for() {
    let mut mesh = FakeMesh::start().await;
    let mut terminal = Terminal::run(mesh.home(), &["mesh"], (80, 24));
    mesh.answer("", page(&["planner"])).await;
    let stream = mesh.asked("events").await.events();
    until("the first is shown", async || terminal.shown().contains("planner")).await;
    drop(stream);
    mesh.go().await;
    until("it is said", async || terminal.shown().contains("Prism is not running")).await;
    mesh.come();
    let _stream = mesh.asked("events").await.events();
    shows(&mut mesh, &terminal, &page(&["planner", "tester"]), "tester").await;
    terminal.press("q");
    assert_eq!(terminal.ended().await.code(), Some(0));
}

/// A command for the daemon of a home.
fn prism(daemon: &Daemon, words: &[&str]) -> Launch {
    Launch::prism(words.iter().map(|word| (*word).to_owned()).collect()).home(daemon.home())
}

async fn ok(daemon: &Daemon, words: &[&str]) -> Ended {
    let ended = prism(daemon, words).end().await;
    assert_eq!(ended.code, Some(0), "{words:?}: {}", ended.stderr);
    ended
}

async fn json_of(daemon: &Daemon, words: &[&str]) -> Value {
    serde_json::from_str(&ok(daemon, words).await.stdout).unwrap()
}

async fn start(daemon: &Daemon, arguments: Value) {
    let client = daemon.client_at("/prism/mesh/start");
    let reply = client.request(hyper::Method::POST).body(arguments.to_string()).send().await;
    assert_eq!(reply.status, 200);
}

// M-02, M-03, M-05, M-10, M-16: the same verbs, from the shell.
#[tokio::test]
async fn a_question_goes_to_an_agent_and_its_answer_to_the_person_by_the_real_daemon() {
    let daemon = Launch::serve("").start().await;
    start(&daemon, json!({"agent": "reviewer", "surface": "claude_code", "surface_session": "s1"})).await;
    let id = "01990d3c-7c58-7e9f-9d3a-6a5d3c2b1a00";
    let sent = json_of(&daemon, &["signal", "send", "--to", "reviewer", "--id", id, "--json", "Why?"]).await;
    assert_eq!(sent["signal_id"], id);
    // Sent again, it is the same one.
    ok(&daemon, &["signal", "send", "--to", "reviewer", "--id", id, "Why?"]).await;
    let hook = json!({"session_id": "s1", "cwd": "/srv", "hook_event_name": "Stop", "stop_hook_active": false});
    let stop = || prism(&daemon, &["wait", "--hook", "claude-stop"]).stdin(&hook.to_string()).end();
    let said: Value = serde_json::from_str(&stop().await.stdout).unwrap();
    assert_eq!(said["decision"], "block");
    assert!(said["reason"].as_str().unwrap().starts_with("Signal from person: Question."), "{said}");
    assert!(!said.to_string().contains("Why?"), "a bell has no content");

    let peeked = json_of(&daemon, &["signal", "pending", "--agent", "reviewer", "--peek", "--json"]).await;
    let read = json_of(&daemon, &["signal", "pending", "--agent", "reviewer", "--json"]).await;
    assert_eq!((peeked["signals"][0]["body"].as_str(), read["signals"].as_array().unwrap().len()), (Some("Why?"), 1));
    assert!(stop().await.stdout.is_empty(), "nothing waits any more");
    let ended = prism(&daemon, &["wait", "--agent", "reviewer", "--timeout", "0s"]).end().await;
    assert_eq!(ended.code, Some(4), "{}", ended.stderr);
    let ended = prism(&daemon, &["signal", "recall", id]).end().await;
    assert_eq!(ended.code, Some(1), "it was read: {}", ended.stdout);

    ok(&daemon, &["signal", "reply", id, "--from", "reviewer", "Because."]).await;
    let answer = ok(&daemon, &["signal", "pending"]).await.stdout;
    assert!(answer.contains("Answer from reviewer") && answer.contains("  Because."), "{answer}");
    let history = json_of(&daemon, &["signals", "--json"]).await;
    let states: Vec<&str> =
        history["signals"].as_array().unwrap().iter().map(|one| one["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["drained", "drained"]);
    let shown = ok(&daemon, &["mesh"]).await.stdout;
    assert!(shown.contains("reviewer") && shown.contains("claude_code"), "{shown}");
    let tested = ok(&daemon, &["wake", "test", "reviewer"]).await.stdout;
    assert!(tested.contains("piggyback") && tested.contains("not set up"), "{tested}");
}

// M-13: the hook's waiter rings with the signal, and one per session waits.
#[tokio::test]
async fn a_hook_that_waits_is_rung_by_the_real_daemon_and_superseded_by_the_next() {
    let daemon = Launch::serve("").start().await;
    let hook = json!({"session_id": "s1", "cwd": "/srv", "hook_event_name": "Stop"}).to_string();
    // The first is there before its agent is.
    let older = prism(&daemon, &["wait", "--hook", "claude-rewake"]).stdin(&hook).begin();
    start(&daemon, json!({"agent": "reviewer", "surface": "claude_code", "surface_session": "s1"})).await;
    let attached = async || {
        let page = json_of(&daemon, &["mesh", "--json"]).await;
        page["agents"][0]["paths"].as_array().is_some_and(|paths| paths.contains(&json!("hook")))
    };
    until("it is a way to the agent", attached).await;
    let newer = prism(&daemon, &["wait", "--hook", "claude-rewake"]).stdin(&hook).begin();
    let ended = older.end().await;
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "superseded");
    ok(&daemon, &["signal", "send", "--to", "reviewer", "Wake up"]).await;
    let ended = newer.end().await;
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.starts_with("Signal from person: Question."), "{}", ended.stderr);
}

// M-12: `--tail` over a restart of the real daemon.
#[tokio::test]
async fn a_tail_goes_on_with_the_next_daemon() {
    let mut daemon = Launch::serve("").start().await;
    start(&daemon, json!({"agent": "reviewer"})).await;
    ok(&daemon, &["signal", "send", "--to", "reviewer", "one"]).await;
    let mut tail = prism(&daemon, &["signals", "--tail", "--json"]).begin();
    let bodies = |text: String| -> Vec<String> {
        let body = |line: &str| serde_json::from_str::<Value>(line).unwrap()["body"].as_str().unwrap().to_owned();
        text.lines().map(body).collect()
    };
    until("the first is shown", async || bodies(tail.stdout()) == ["one"]).await;
    ok(&daemon, &["signal", "send", "--to", "reviewer", "two"]).await;
    until("the second is shown", async || bodies(tail.stdout()) == ["one", "two"]).await;
    let home = daemon.home().clone();
    daemon.kill().await;
    let daemon = Launch::serve("").home(&home).start().await;
    ok(&daemon, &["signal", "send", "--to", "reviewer", "three"]).await;
    until("the third is shown", async || bodies(tail.stdout()) == ["one", "two", "three"]).await;
    tail.signal(Signal::INT);
    assert_eq!(tail.ended().await.code(), Some(0));
}
