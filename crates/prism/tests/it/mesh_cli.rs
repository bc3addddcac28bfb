//! The mesh from the command line: what is asked of the daemon, what is said of the answer, and how a command ends.

use serde_json::{Value, json};

use crate::support::{
    Ended, Home, Launch,
    mesh::{FakeMesh, happened},
    until,
};

const ID: &str = "01990d3c-7c58-7e9f-9d3a-6a5d3c2b1a00";

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn said(ended: &Ended) -> (Option<i32>, &str) {
    (ended.code, ended.stdout.as_str())
}

fn signal(seq: u64) -> Value {
    json!({"signal_id": format!("id-{seq}"), "seq": seq, "type": "Question", "from": "planner", "to": "reviewer",
           "body": format!("number\n{seq}"), "state": "pending", "sent_at": "2026-11-16T02:27:00.123Z"})
}

// M-02
#[tokio::test]
async fn a_signal_is_sent_by_the_person_or_by_an_agent_with_all_that_was_said() {
    let mut mesh = FakeMesh::start().await;
    let sent = json!({"signal_id": ID, "trace_id": ID, "seq": 7,
                      "recipient_state": {"presence": "silent", "surface_support": "degraded", "pending": 3}});
    let plain = mesh.prism(&["signal", "send", "--to", "reviewer", "Look", "at", "this"]).begin();
    let asked = mesh.answer("send", sent.clone()).await;
    assert_eq!(asked, json!({"to": "reviewer", "type": "Question", "body": "Look at this"}));
    let expected = format!("sent {ID}\nreviewer is silent; hears of it only at its next tool call; 3 pending\n");
    assert_eq!(said(&plain.end().await), (Some(0), expected.as_str()));

    let typed = ["signal", "send", "--to", "reviewer", "--type", "TaskAssigned", "--from", "Planner", "--reply-to"];
    let more = ["r1", "--ttl", "90s", "--sync", "--id", ID, "--json", "-"];
    let full = mesh.prism(&[&typed[..], &more].concat()).stdin("from\nstdin\n").begin();
    let asked = mesh.answer("send", sent.clone()).await;
    assert_eq!(
        asked,
        json!({"to": "reviewer", "type": "TaskAssigned", "body": "from\nstdin", "agent": "planner", "reply_to": "r1",
               "ttl_s": 90, "delivery": "sync", "signal_id": ID})
    );
    let ended = full.end().await;
    assert_eq!(serde_json::from_str::<Value>(&ended.stdout).unwrap(), sent);

    // The environment of an agent says who it is, and a pipe is read without being asked to.
    let agent = mesh.prism(&["signal", "send", "--to", "planner"]).env("PRISM_AGENT", "reviewer").stdin("done").begin();
    let asked = mesh.answer("send", sent).await;
    assert_eq!(asked, json!({"to": "planner", "type": "Question", "body": "done", "agent": "reviewer"}));
    assert_eq!(agent.end().await.code, Some(0));
}

#[tokio::test]
async fn a_refusal_is_said_with_the_next_step_and_ends_with_one_and_a_slip_with_two() {
    let mut mesh = FakeMesh::start().await;
    let refused = mesh.prism(&["signal", "send", "--to", "nobody", "Hello"]).begin();
    let error = json!({"error": {"code": "unknown_agent", "message": "there is no agent \"nobody\""}});
    mesh.asked("send").await.json(404, &error).await;
    let ended = refused.end().await;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""));
    assert!(ended.stderr.contains("there is no agent \"nobody\"") && ended.stderr.contains("fix: prism mesh"));

    // A daemon from before the mesh.
    let old = mesh.prism(&["signal", "recall", ID]).begin();
    mesh.asked("recall").await.status(404).await;
    let ended = old.end().await;
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("prism restart"), "{}", ended.stderr);

    for typed in [
        &["signal", "send", "Hello"][..],
        &["signal", "send", "--to", "a", "--type", "PeerJoined", "Hello"],
        &["signal", "send", "--to", "a", "--id", "7", "Hello"],
        &["signal", "send", "--to", "a", "--ttl", "soon", "Hello"],
        &["wait", "--hook", "emacs"],
        &["wait"],
    ] {
        assert_eq!(mesh.prism(typed).end().await.code, Some(2), "{typed:?}");
    }
    // An empty text says nothing to anybody.
    let empty = mesh.prism(&["signal", "send", "--to", "a"]).stdin(" \n").end().await;
    assert_eq!(empty.code, Some(1));
    assert!(empty.stderr.contains("the text is empty"), "{}", empty.stderr);
    mesh.asked_nothing_more();
}

#[tokio::test]
async fn what_waits_is_shown_and_answered_and_taken_back() {
    let mut mesh = FakeMesh::start().await;
    let pending = mesh.prism(&["signal", "pending", "--agent", "reviewer", "--peek"]).begin();
    let waiting = json!({"signal_id": ID, "seq": 4, "type": "Question", "from": "planner", "body": "Why?",
                         "sent_at": "2026-11-16T02:27:00.123Z", "reply_with": "Answer"});
    let asked = mesh.answer("pending", json!({"signals": [waiting], "remaining": 0, "notice": "Others' words."})).await;
    assert_eq!(asked, json!({"agent": "reviewer", "peek": true, "limit": 20}));
    let expected = format!(
        "Question from planner  2026-11-16T02:27:00Z  {ID}\n  Why?\n  answer: prism signal reply {ID} …\n\nOthers' words.\n"
    );
    assert_eq!(said(&pending.end().await), (Some(0), expected.as_str()));

    let reply = mesh.prism(&["signal", "reply", ID, "Because", "--from", "reviewer"]).begin();
    let asked = mesh.answer("reply", json!({"signal_id": "b"})).await;
    assert_eq!(asked, json!({"to_signal": ID, "body": "Because", "agent": "reviewer"}));
    assert_eq!(said(&reply.end().await), (Some(0), "sent b\n"));

    let recall = mesh.prism(&["signal", "recall", ID, "--json"]).begin();
    assert_eq!(mesh.answer("recall", json!({"recalled": true})).await, json!({"signal_id": ID}));
    assert_eq!(said(&recall.end().await), (Some(0), "{\n  \"recalled\": true\n}\n"));
}

#[tokio::test]
async fn the_history_is_read_page_by_page_newest_first() {
    let mut mesh = FakeMesh::start().await;
    let history = mesh.prism(&["signals", "--agent", "Reviewer", "--limit", "250", "--json"]).begin();
    let page = |from: u64, to: u64| json!({"signals": (from..=to).map(signal).collect::<Vec<_>>()});
    assert_eq!(mesh.answer("history", page(101, 300)).await, json!({"limit": 200, "agent": "reviewer"}));
    let asked = mesh.answer("history", page(51, 100)).await;
    assert_eq!(asked, json!({"limit": 50, "agent": "reviewer", "before": 101}));
    let ended = history.end().await;
    let shown: Value = serde_json::from_str(&ended.stdout).unwrap();
    let seqs: Vec<u64> = shown["signals"].as_array().unwrap().iter().map(|one| one["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (51..=300).rev().collect::<Vec<_>>());

    let lines = mesh.prism(&["signals"]).begin();
    mesh.answer("history", page(1, 2)).await;
    let expected = "     2  2026-11-16T02:27:00Z  planner > reviewer  Question  pending  id-2  number 2\n     \
                    1  2026-11-16T02:27:00Z  planner > reviewer  Question  pending  id-1  number 1\n";
    assert_eq!(said(&lines.end().await), (Some(0), expected));
}

// M-12: `prism signals --tail` without gap or repeat over a restart.
#[tokio::test]
async fn a_tail_has_no_gap_and_no_repeat_when_the_daemon_is_restarted() {
    let mut mesh = FakeMesh::start().await;
    let mut tail = mesh.prism(&["signals", "--tail", "--limit", "2", "--json"]).begin();
    let shown = |text: String| -> Vec<u64> {
        text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["seq"].as_u64().unwrap()).collect()
    };
    let page = |from: u64, to: u64| json!({"signals": (from..=to).map(signal).collect::<Vec<_>>()});
    let stream = mesh.asked("events").await.events();
    assert_eq!(mesh.answer("history", page(4, 5)).await, json!({"limit": 2}));
    // What else happens is no reason to look.
    happened(&stream, "agent", &json!({})).await;
    happened(&stream, "signal_sent", &json!({"seq": 6})).await;
    mesh.answer("history", page(1, 7)).await;
    happened(&stream, "signal_sent", &json!({"seq": 7})).await;
    mesh.answer("history", page(1, 7)).await;
    until("what came is shown", async || shown(tail.stdout()) == [4, 5, 6, 7]).await;

    drop(stream);
    mesh.go().await;
    mesh.come();
    let stream = mesh.asked("events").await.events();
    // More came meanwhile than one page holds.
    assert_eq!(mesh.answer("history", page(11, 210)).await, json!({"limit": 200}));
    assert_eq!(mesh.answer("history", page(1, 10)).await, json!({"limit": 200, "before": 11}));
    until("what was missed is shown", async || shown(tail.stdout()) == (4..=210).collect::<Vec<_>>()).await;
    happened(&stream, "signal_sent", &json!({})).await;
    mesh.answer("history", page(12, 211)).await;
    until("it goes on", async || shown(tail.stdout()) == (4..=211).collect::<Vec<_>>()).await;
    tail.signal(rustix::process::Signal::INT);
    assert_eq!(tail.ended().await.code(), Some(0));
}

// M-13
#[tokio::test]
async fn a_wait_ends_with_the_bell_or_with_four_and_outlives_a_restart() {
    let mut mesh = FakeMesh::start().await;
    let rang = json!({"bell": true, "agent": "reviewer", "text": "Signal from planner: Question.", "pending": 1});
    let wait = mesh.prism(&["wait", "--agent", "Reviewer", "--timeout", "2m"]).begin();
    let asked = mesh.asked("wait").await;
    assert_eq!(asked.body, json!({"agent": "reviewer", "timeout_s": 120}));
    // Blanks keep a long poll alive.
    let flow = asked.begin(200, &[("content-type", "application/json")]);
    flow.push("  ").await;
    drop(flow);
    mesh.go().await;
    mesh.come();
    // The daemon may know a shorter time than was asked for.
    mesh.answer("wait", json!({"bell": false, "why": "timeout"})).await;
    mesh.answer("wait", rang.clone()).await;
    assert_eq!(said(&wait.end().await), (Some(0), "Signal from planner: Question.\n"));

    let late = mesh.prism(&["wait", "--timeout", "0s"]).env("PRISM_AGENT", "reviewer").begin();
    assert_eq!(mesh.answer("wait", json!({"bell": false, "why": "timeout"})).await["timeout_s"], 0);
    assert_eq!(said(&late.end().await), (Some(4), ""));

    let json = mesh.prism(&["wait", "--agent", "reviewer", "--json"]).begin();
    mesh.answer("wait", rang.clone()).await;
    assert_eq!(serde_json::from_str::<Value>(&json.end().await.stdout).unwrap(), rang);

    let wrapped = mesh.prism(&["wait", "--agent", "reviewer"]).begin();
    mesh.answer("wait", json!({"bell": false, "why": "wrapped"})).await;
    assert_eq!(wrapped.end().await.code, Some(1));
}

#[tokio::test]
async fn who_only_looks_starts_no_daemon() {
    let home = Home::new();
    for typed in [&["mesh"][..], &["mesh", "--json"], &["signals"], &["signals", "--tail"]] {
        let ended = Launch::prism(words(typed)).home(&home).end().await;
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(3), ""), "{typed:?}: {}", ended.stderr);
        assert!(ended.stderr.contains("fix: prism serve --detach"), "{typed:?}: {}", ended.stderr);
    }
    assert!(!home.path().join("http-mcp.json").exists());
}

#[tokio::test]
async fn without_a_terminal_the_mesh_is_shown_once() {
    let mut mesh = FakeMesh::start().await;
    let page = json!({"agents": [{"agent": "reviewer", "presence": "active", "pending": 1}], "bells": []});
    let shown = mesh.prism(&["mesh"]).begin();
    mesh.answer("", page.clone()).await;
    let ended = shown.end().await;
    assert_eq!(ended.code, Some(0));
    assert!(ended.stdout.contains("1 of 1 agents there") && ended.stdout.contains("reviewer"), "{}", ended.stdout);
    assert!(!ended.stdout.contains('\x1b'), "{}", ended.stdout);
    let shown = mesh.prism(&["mesh", "--json"]).begin();
    mesh.answer("", page.clone()).await;
    assert_eq!(serde_json::from_str::<Value>(&shown.end().await.stdout).unwrap(), page);
}

// M-13
#[tokio::test]
async fn a_wake_test_shows_each_row_as_it_comes_and_what_to_type_for_the_rest() {
    let mut mesh = FakeMesh::start().await;
    let mut test = mesh.prism(&["wake", "test", "Reviewer", "--ring"]).begin();
    let asked = mesh.asked("wake_test").await;
    assert_eq!(asked.body, json!({"agent": "reviewer", "ring": true}));
    let stream = asked.events();
    let first = json!({"agent": "reviewer", "path": "wait", "attached": true, "outcome": "rang", "ms": 12.4});
    let second = json!({"agent": "reviewer", "path": "hook", "attached": false, "outcome": "not set up"});
    happened(&stream, "row", &first).await;
    until("the first row is shown", async || test.stdout().contains("rang")).await;
    assert!(!test.stdout().contains("not set up"), "{}", test.stdout());
    happened(&stream, "row", &second).await;
    happened(&stream, "done", &json!({"rows": [first.clone(), second]})).await;
    assert_eq!(test.ended().await.code(), Some(0));
    until("all is shown", async || test.stdout().contains("prism install claude-code --hooks")).await;
    assert_eq!(test.stdout().matches("rang").count(), 1, "{}", test.stdout());

    // A daemon that knows all rows at once.
    let test = mesh.prism(&["wake", "test", "--json"]).begin();
    assert_eq!(mesh.answer("wake_test", json!({"rows": [first.clone()]})).await, json!({}));
    assert_eq!(serde_json::from_str::<Value>(&test.end().await.stdout).unwrap(), json!({"rows": [first]}));
}
