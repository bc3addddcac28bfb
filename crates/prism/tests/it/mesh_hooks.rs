//! `prism wait --hook`: what each program says to its hooks, and what it understands of the answer (M-13). And that a hook
//! is silent whatever goes wrong: it must never break an agent's turn.

use std::process::{Command, Stdio};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{
    Ended, Home, Launch,
    mesh::FakeMesh,
    prism,
    process::{self, is_alive},
    until,
};

const HOOKS: [&str; 6] = ["claude-start", "claude-rewake", "claude-stop", "codex-start", "codex-stop", "cursor-stop"];
const BELL: &str =
    "Signal from planner: Question. Use prism_signals_pending to read; prism_signal_reply to reply if needed.";

fn rang() -> Value {
    json!({"bell": true, "agent": "reviewer", "text": BELL, "pending": 1})
}

/// What Claude Code writes to its hooks.
fn claude(event: &str) -> Value {
    json!({"session_id": "s1", "transcript_path": "/t.jsonl", "cwd": "/srv/sites", "hook_event_name": event,
           "permission_mode": "default", "stop_hook_active": false})
}

fn cursor(loop_count: u64) -> Value {
    json!({"conversation_id": "c1", "generation_id": "g1", "hook_event_name": "stop", "status": "completed",
           "loop_count": loop_count, "workspace_roots": ["/srv/sites"], "cursor_version": "3.7.21"})
}

/// What a hook gets to hear.
fn input(hook: &str) -> Value {
    match hook {
        "cursor-stop" => cursor(0),
        "claude-start" | "codex-start" => claude("SessionStart"),
        _ => claude("Stop"),
    }
}

fn hook(mesh: &FakeMesh, name: &str, input: &Value) -> Launch {
    mesh.prism(&["wait", "--hook", name]).stdin(&input.to_string())
}

fn is_silent(ended: &Ended) -> bool {
    ended.code == Some(0) && ended.stdout.is_empty() && ended.stderr.is_empty()
}

#[tokio::test]
async fn claude_is_woken_by_exit_code_two_with_the_bell_on_stderr() {
    let mut mesh = FakeMesh::start().await;
    let waiting = hook(&mesh, "claude-rewake", &claude("Stop")).begin();
    let asked = mesh.answer("wait", json!({"bell": false, "why": "timeout"})).await;
    let whose = json!({"surface": "claude_code", "surface_session": "s1", "workspace": "/srv/sites",
                       "hook": "claude-rewake", "timeout_s": 300});
    assert_eq!(asked, whose);
    // It waits for as long as it takes, whatever becomes of the daemon.
    let asked = mesh.asked("wait").await;
    assert_eq!(asked.body, whose);
    drop(asked);
    mesh.go().await;
    mesh.come();
    mesh.answer("wait", rang()).await;
    let ended = waiting.end().await;
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (Some(2), "", &*format!("{BELL}\n")));
}

#[tokio::test]
async fn a_waiter_that_nobody_needs_any_more_ends_without_a_word() {
    let mut mesh = FakeMesh::start().await;
    for why in ["superseded", "wrapped"] {
        let waiting = hook(&mesh, "claude-rewake", &claude("Stop")).begin();
        mesh.answer("wait", json!({"bell": false, "why": why})).await;
        assert!(is_silent(&waiting.end().await), "{why}");
    }
    // A session without a terminal would be held up at its start.
    let held =
        hook(&mesh, "claude-rewake", &claude("SessionStart")).env("CLAUDE_CODE_ENTRYPOINT", "sdk-cli").end().await;
    assert!(is_silent(&held), "{held:?}");
    mesh.asked_nothing_more();
}

#[tokio::test]
async fn a_waiter_ends_with_the_program_that_started_it() {
    let mut mesh = FakeMesh::start().await;
    let file = mesh.home().file("input.json");
    std::fs::write(&file, claude("Stop").to_string()).unwrap();
    // The shell stands for the program: it starts the hook and lives on.
    let script = format!("{} wait --hook claude-rewake < {file} > /dev/null & echo $! > {file}.pid; wait", prism());
    let mut program = Command::new("sh")
        .args(["-c", &script])
        .env("PRISM_HOME", mesh.home().path())
        .env("HOME", mesh.home().path())
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let asked = mesh.asked("wait").await;
    let pid: u32 = std::fs::read_to_string(format!("{file}.pid")).unwrap().trim().parse().unwrap();
    assert!(is_alive(pid));
    process::signal(program.id(), Signal::KILL);
    program.wait().unwrap();
    until("the waiter ends", async || !is_alive(pid)).await;
    drop(asked);
}

#[tokio::test]
async fn the_end_of_a_turn_goes_on_if_something_waits_and_only_once() {
    let mut mesh = FakeMesh::start().await;
    for (name, surface) in [("claude-stop", "claude_code"), ("codex-stop", "codex")] {
        let stopping = hook(&mesh, name, &claude("Stop")).begin();
        let asked = mesh.answer("wait", rang()).await;
        let expected = json!({"surface": surface, "surface_session": "s1", "workspace": "/srv/sites",
                              "hook": name, "timeout_s": 0});
        assert_eq!(asked, expected, "it looks in, and does not wait");
        let ended = stopping.end().await;
        assert_eq!(ended.code, Some(0));
        let said: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!(said, json!({"decision": "block", "reason": BELL}), "{name}");

        let stopping = hook(&mesh, name, &claude("Stop")).begin();
        mesh.answer("wait", json!({"bell": false, "why": "timeout"})).await;
        assert!(is_silent(&stopping.end().await), "{name}");

        let mut again = claude("Stop");
        again["stop_hook_active"] = true.into();
        assert!(is_silent(&hook(&mesh, name, &again).end().await), "{name}");
    }
    mesh.asked_nothing_more();
}

#[tokio::test]
async fn cursor_gets_a_next_message_until_it_went_on_too_often() {
    let mut mesh = FakeMesh::start().await;
    // Cursor on Windows puts a mark in front.
    let text = format!("\u{feff}{}", cursor(4));
    let stopping = mesh.prism(&["wait", "--hook", "cursor-stop"]).stdin(&text).begin();
    let asked = mesh.answer("wait", rang()).await;
    let expected = json!({"surface": "cursor", "surface_session": "c1", "workspace": "/srv/sites",
                          "hook": "cursor-stop", "timeout_s": 0});
    assert_eq!(asked, expected);
    let said: Value = serde_json::from_str(&stopping.end().await.stdout).unwrap();
    assert_eq!(said, json!({"followup_message": BELL}));
    assert!(is_silent(&hook(&mesh, "cursor-stop", &cursor(5)).end().await));
    let mut aborted = cursor(0);
    aborted["status"] = "aborted".into();
    assert!(is_silent(&hook(&mesh, "cursor-stop", &aborted).end().await));
    // Cursor runs Claude's hooks, too, and would wait for the one that waits.
    for name in ["claude-rewake", "claude-stop"] {
        let mut theirs = claude("Stop");
        theirs["cursor_version"] = "3.7.21".into();
        assert!(is_silent(&hook(&mesh, name, &theirs).end().await), "{name}");
    }
    mesh.asked_nothing_more();
}

#[tokio::test]
async fn a_session_is_told_of_the_mesh_and_how_to_join_it() {
    let mesh = FakeMesh::start().await;
    for (name, surface) in [("claude-start", "claude_code"), ("codex-start", "codex")] {
        let ended = hook(&mesh, name, &claude("SessionStart")).end().await;
        let said: Value = serde_json::from_str(&ended.stdout).unwrap();
        let output = &said["hookSpecificOutput"];
        assert_eq!(output["hookEventName"], "SessionStart");
        let text = output["additionalContext"].as_str().unwrap();
        let told =
            format!(r#"prism_start with agent a short name for yourself, surface "{surface}", surface_session "s1""#);
        assert!(text.contains(&told) && text.contains(r#"workspace "/srv/sites""#), "{text}");
        assert_eq!(text.matches(". ").count() + 1, 2, "two sentences: {text}");
    }
    let named = hook(&mesh, "claude-start", &claude("SessionStart")).env("PRISM_AGENT", "Reviewer").end().await;
    assert!(named.stdout.contains(r#"agent \"reviewer\", surface"#), "{}", named.stdout);
}

#[tokio::test]
async fn a_hook_acts_for_the_agent_that_it_was_told() {
    let mut mesh = FakeMesh::start().await;
    let stopping = hook(&mesh, "codex-stop", &claude("Stop")).env("PRISM_AGENT", "reviewer").begin();
    assert_eq!(mesh.answer("wait", rang()).await, json!({"agent": "reviewer", "hook": "codex-stop", "timeout_s": 0}));
    assert_eq!(stopping.end().await.code, Some(0));
    let flag = mesh.prism(&["wait", "--hook", "claude-rewake", "--agent", "tester"]).stdin("{}").begin();
    let asked = mesh.answer("wait", rang()).await;
    assert_eq!(asked, json!({"agent": "tester", "hook": "claude-rewake", "timeout_s": 300}));
    assert_eq!(flag.end().await.code, Some(2));
}

#[tokio::test]
async fn whatever_goes_wrong_a_hook_is_silent_and_ends_well() {
    let home = Home::new();
    let mut mesh = FakeMesh::start().await;
    for name in HOOKS {
        let words =
            |more: &[&str]| ["wait", "--hook", name].iter().chain(more).map(|word| (*word).to_owned()).collect();
        // No daemon, and none is started.
        let ended = Launch::prism(words(&[])).home(&home).stdin(&input(name).to_string()).end().await;
        assert!(is_silent(&ended), "{name}: {ended:?}");
        // Nothing, or nothing that can be read, on stdin.
        for text in ["", "no", "[]", "{\"session_id\":", "{}"] {
            let ended = Launch::prism(words(&[])).home(mesh.home()).stdin(text).end().await;
            assert!(is_silent(&ended), "{name}, {text:?}: {ended:?}");
        }
        // Who asks is told why.
        let verbose = Launch::prism(words(&["--verbose"])).home(&home).stdin(&input(name).to_string()).end().await;
        assert_eq!((verbose.code, verbose.stdout.as_str()), (Some(0), ""), "{name}");
        assert!(verbose.stderr.contains(name) && verbose.stderr.contains("there is no daemon"), "{}", verbose.stderr);
        if !name.ends_with("-start") {
            let running = hook(&mesh, name, &input(name)).begin();
            let error = json!({"error": {"code": "unknown_agent", "message": "there is no such agent"}});
            mesh.asked("wait").await.json(404, &error).await;
            assert!(is_silent(&running.end().await), "{name}");
        }
    }
    assert!(!home.path().join("http-mcp.json").exists());
    mesh.asked_nothing_more();
}
