//! What of the mesh outlives the daemon: agents and their windows, what waits, what is owed, what became of bells (M-12).

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{
    Daemon, Home, Launch,
    agents::{Agent, At, mesh_in, text},
    until,
};

async fn send(from: &Agent, to: &str, kind: &str) -> String {
    text(&from.does("send", json!({"to": to, "type": kind, "body": "hush-hush"})).await["signal_id"])
}

/// The roster, as it has to be after a kill: all but what only a living client shows.
async fn roster(daemon: &Daemon) -> Value {
    let mut told = daemon.script().does("status", json!({})).await;
    for agent in told["agents"].as_array_mut().unwrap() {
        let agent = agent.as_object_mut().unwrap();
        for of_the_moment in ["presence", "surface_support", "paths", "last_seen_ms"] {
            agent.remove(of_the_moment).unwrap_or_else(|| panic!("no {of_the_moment}: {agent:?}"));
        }
    }
    told
}

/// Everything that is or was owed, with its telemetry.
async fn owed(daemon: &Daemon) -> Vec<Value> {
    let mut all = Vec::new();
    for state in ["open", "heard", "done", "recalled", "expired"] {
        let mut told = daemon.script().does("obligations", json!({"of": "all", "state": state})).await;
        all.append(told["obligations"].as_array_mut().unwrap());
    }
    all.sort_by_key(|owed| text(&owed["signal_id"]));
    all
}

async fn owed_for(daemon: &Daemon, signal: &str) -> Value {
    owed(daemon).await.into_iter().find(|owed| owed["signal_id"] == signal).unwrap_or_default()
}

/// Drains a page, and says that it has arrived: what is not known to have been received is given again after a kill.
async fn settle(agent: &Agent) {
    let page = agent.does("pending", json!({})).await;
    assert_eq!(agent.does("pending", json!({"after": page["cursor"]})).await["signals"], json!([]));
}

// M-01, M-08, M-12
#[tokio::test]
async fn a_kill_changes_nothing_of_what_is_known_and_owed() {
    let home = Home::new();
    let mut first = mesh_in(&home, "").await;
    let donna = first.agent(At::Hub, "donna").await;
    let mut sable = first.window(At::Own).await;
    sable.start(json!({"agent": "sable", "surface": "cursor", "workspace": "/w", "surface_session": "s"})).await;
    let onyx = first.agent(At::Modern, "onyx").await;
    let gone = first.agent(At::Hub, "gone").await;
    gone.does("wrap", json!({})).await;
    // One that was heard, one that was answered, one that was taken back.
    let [heard, answered] = [send(&donna, "sable", "TaskAssigned").await, send(&donna, "sable", "Question").await];
    settle(&sable).await;
    sable.does("reply", json!({"to_signal": answered, "body": "yes"})).await;
    settle(&donna).await;
    donna.does("recall", json!({"signal_id": send(&donna, "onyx", "Question").await})).await;
    // One that rang, one that was coalesced, and one for somebody who cannot be reached.
    let mut stream = sable.listen().await;
    sable.until_support("full").await;
    let [rang, coalesced] = [send(&donna, "sable", "ReviewRequested").await, send(&donna, "sable", "Question").await];
    stream.bell().await;
    let uncaptured = send(&donna, "onyx", "Question").await;
    for (signal, rings, result) in [(&rang, 1, "rang"), (&coalesced, 0, "coalesced"), (&uncaptured, 0, "uncaptured")] {
        until("it is written down", async || owed_for(&first, signal).await["last_wake_result"] == result).await;
        let owed = owed_for(&first, signal).await;
        assert_eq!((&owed["wake_attempt_count"], &owed["wake_ring_count"]), (&json!(1), &json!(rings)), "{owed}");
    }
    let before = (roster(&first).await, owed(&first).await, sable.bells().await, onyx.bells().await);
    assert_eq!(before.1.len(), 7, "one is the answer: {:?}", before.1);
    first.kill().await;

    let second = mesh_in(&home, "").await;
    let (sable_now, onyx_now) = (second.agent_again(&sable), second.agent_again(&onyx));
    let after = (roster(&second).await, owed(&second).await, sable_now.bells().await, onyx_now.bells().await);
    assert_eq!(after, before);
    assert_eq!(sable_now.support().await, "degraded", "its stream went with the daemon");
    // Who had wrapped is still nobody, and has to start anew.
    let why = second.agent_again(&gone).refused("pending", json!({})).await;
    assert!(why.contains("prism_start"), "{why}");
    // The clients are still their agents, without a start.
    assert_eq!(onyx_now.drain().await.len(), 1);
    assert_eq!(owed_for(&second, &heard).await["state"], "heard");
    sable_now.does("reply", json!({"to_signal": heard, "body": "done"})).await;
    assert_eq!(owed_for(&second, &heard).await["state"], "done");
    let sent = second.agent_again(&donna).drain().await;
    assert_eq!(sent.len(), 1);
    assert_eq!((&sent[0]["from"], &sent[0]["type"]), (&json!("sable"), &json!("TaskCompleted")));
}

// M-12, M-16: what has gathered is one bell when the stream is back, and its telemetry goes on where it was.
#[tokio::test]
async fn the_backlog_is_one_bell_when_a_session_comes_back() {
    let home = Home::new();
    let mut first = mesh_in(&home, "").await;
    let donna = first.agent(At::Hub, "donna").await;
    let sable = first.agent(At::Own, "sable").await;
    let mut stream = sable.listen().await;
    sable.until_support("full").await;
    let rang = send(&donna, "sable", "Question").await;
    stream.bell().await;
    for _ in 0..9 {
        send(&donna, "sable", "StatusUpdate").await;
    }
    until("it is written down", async || owed_for(&first, &rang).await["wake_ring_count"] == 1).await;
    first.kill().await;

    let second = mesh_in(&home, "").await;
    let (donna, sable) = (second.agent_again(&donna), second.agent_again(&sable));
    assert_eq!(sable.seen().await["pending"], 10);
    let mut stream = sable.listen().await;
    sable.until_support("full").await;
    stream.bell_past_changes().await;
    send(&donna, "sable", "StatusUpdate").await;
    sable.until_bell("sse", "coalesced").await;
    let rings = r#"prism_mesh_bells_total{path="sse",result="rang"}"#;
    assert_eq!(second.metric(rings).await, Some(1));
    until("it is written down", async || owed_for(&second, &rang).await["wake_attempt_count"] == 2).await;
    assert_eq!(owed_for(&second, &rang).await["wake_ring_count"], 2);
    let drained = sable.drain().await;
    assert_eq!(drained.len(), 11);
    assert!(drained.iter().all(|signal| signal.get("redelivered").is_none()), "nobody had them: {drained:?}");
    sable.until_bell("sse", "confirmed").await;
    send(&donna, "sable", "Question").await;
    stream.bell_past_changes().await;
}

// M-12, M-13: who waits again after a kill hears of what came before it, at once; a result carries it, too.
#[tokio::test]
async fn a_wait_after_a_kill_hears_of_what_came_before() {
    let home = Home::new();
    let mut first = mesh_in(&home, "").await;
    let donna = first.agent(At::Hub, "donna").await;
    let agents = [first.agent(At::Hub, "hub").await, first.agent(At::Own, "own").await];
    let modern = first.agent(At::Modern, "modern").await;
    for name in ["hub", "own", "modern"] {
        send(&donna, name, "Question").await;
    }
    first.kill().await;
    let second = mesh_in(&home, "").await;
    let words =
        "Signal from donna: Question. Use prism_signals_pending to read; prism_signal_reply to reply if needed.";
    for agent in [&agents[1], &modern] {
        let agent = second.agent_again(agent);
        assert_eq!(agent.does("wait", json!({})).await["text"], words);
        assert_eq!(agent.drain().await.len(), 1);
        agent.until_bell("wait", "confirmed").await;
    }
    let hub = second.agent_again(&agents[0]);
    let carried = hub.client().result("tools/call", json!({"name": "d__echo", "arguments": {"text": "x"}})).await;
    assert_eq!(carried["content"][1]["text"], words, "{carried}");
    assert_eq!(hub.drain().await.len(), 1);
}

/// A kill so soon after a drain that nobody knows whether its answer has arrived: it counts as arrived after a second.
const AT_ONCE: Duration = Duration::from_millis(500);

// M-12: what may not have arrived is given again and says so; who has a cursor gets nothing twice.
#[tokio::test]
async fn what_was_drained_just_before_a_kill_comes_again_unless_a_cursor_says_that_it_is_there() {
    loop {
        let home = Home::new();
        let mut first = mesh_in(&home, "").await;
        let donna = first.agent(At::Hub, "donna").await;
        let [plain, exact] = [first.agent(At::Own, "plain").await, first.agent(At::Own, "exact").await];
        for name in ["plain", "exact"] {
            for kind in ["Question", "StatusUpdate"] {
                send(&donna, name, kind).await;
            }
        }
        let began = Instant::now();
        let mut drained = plain.drain().await;
        let page = exact.does("pending", json!({})).await;
        first.kill().await;
        if began.elapsed() > AT_ONCE {
            // The machine was too busy for that. Another time.
            continue;
        }
        let second = mesh_in(&home, "").await;
        let [plain, exact] = [&plain, &exact].map(|agent| second.agent_again(agent));
        assert_eq!(exact.does("pending", json!({"after": page["cursor"]})).await["signals"], json!([]));
        for signal in &mut drained {
            signal["redelivered"] = true.into();
        }
        assert_eq!(plain.drain().await, drained);
        // Both have heard it now, once.
        for agent in [&plain, &exact] {
            assert_eq!(agent.drain().await, [] as [Value; 0]);
            let told = agent.does("obligations", json!({})).await;
            let states: Vec<String> =
                told["obligations"].as_array().unwrap().iter().map(|owed| text(&owed["state"])).collect();
            assert_eq!(states, ["heard"], "{told}");
        }
        return;
    }
}

// R-33: a sign of life says nothing, and nothing of it is kept in place of what was said.
#[tokio::test]
async fn a_checkpoint_without_a_note_leaves_those_that_were_given() {
    let daemon = mesh_in(&Home::new(), "").await;
    let sable = daemon.agent(At::Own, "sable").await;
    sable.does("checkpoint", json!({"note": "half way"})).await;
    for arguments in [json!({}), json!({"note": ""}), json!({"note": " \n"})] {
        let told = sable.does("checkpoint", arguments).await;
        assert!(told["checkpoint_at"].is_string(), "{told}");
    }
    let seen = sable.seen().await;
    assert_eq!(seen["checkpoint"]["note"], "half way", "{seen}");
    assert_eq!(seen["checkpoints"].as_array().map(Vec::len), Some(1), "{seen}");
}

// R-33: a note outlives the daemon, and only so many are kept.
#[tokio::test]
async fn notes_of_an_agent_are_there_after_a_kill() {
    let home = Home::new();
    let mut daemon = mesh_in(&home, "").await;
    let sable = daemon.agent(At::Own, "sable").await;
    for number in 1..=25 {
        sable.does("checkpoint", json!({"note": format!("step {number}")})).await;
    }
    daemon.kill().await;
    let daemon = mesh_in(&home, "").await;
    let seen = daemon.script().does("diagnostics", json!({"agent": "sable"})).await;
    assert_eq!(seen["checkpoint"]["note"], "step 25", "{seen}");
    let notes: Vec<String> = seen["checkpoints"].as_array().unwrap().iter().map(|one| text(&one["note"])).collect();
    assert_eq!((notes.len(), notes[0].as_str(), notes[19].as_str()), (20, "step 25", "step 6"), "{notes:?}");
    let shown = Launch::prism(vec!["mesh".to_owned(), "--once".to_owned()]).home(&home).output().await;
    assert!(shown.contains("CHECKPOINT") && shown.contains("step 25"), "{shown}");
}
