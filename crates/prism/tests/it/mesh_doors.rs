//! Who may do what in the mesh, and who may read what: nobody acts as another, and what a signal says leaves by the drain
//! and by nothing else.

use std::sync::{Arc, Mutex};

use hyper::Method;
use serde_json::{Value, json};

use crate::support::{
    Daemon, Launch,
    agents::{Agent, At, PENDING, mesh, text},
    destination, until,
};

async fn pair(daemon: &Daemon, at: At) -> [Agent; 2] {
    [daemon.agent(at, "donna").await, daemon.agent(at, "sable").await]
}

// M-01: a name in the arguments makes nobody another.
#[tokio::test]
async fn a_client_that_names_another_agent_is_itself_all_the_same() {
    for at in At::ALL {
        let daemon = mesh("").await;
        let [donna, sable] = pair(&daemon, at).await;
        donna.does("send", json!({"to": "sable", "type": "Question", "body": "b"})).await;
        assert_eq!(donna.does("pending", json!({"agent": "sable"})).await["signals"], json!([]), "{at:?}");
        donna.does("send", json!({"to": "sable", "type": "StatusUpdate", "body": "b", "agent": "onyx"})).await;
        let drained = sable.drain().await;
        assert_eq!(drained.len(), 2);
        assert!(drained.iter().all(|signal| signal["from"] == "donna"), "{drained:?}");
        // Nor does it make somebody of nobody.
        let stranger = daemon.window(at).await;
        for verb in ["pending", "checkpoint", "wrap", "wait", "obligations"] {
            let why = stranger.refused(verb, json!({"agent": "sable"})).await;
            assert!(why.contains("not_started"), "{at:?} {verb}: {why}");
        }
        assert_eq!(sable.does("status", json!({})).await["agents"][1]["presence"], "active");
    }
}

// M-01: a window is one agent, even if it has got hold of another's session.
#[tokio::test]
async fn a_window_does_not_act_in_another_agents_session() {
    for at in [At::Hub, At::Own] {
        let daemon = mesh("").await;
        let [donna, sable] = pair(&daemon, at).await;
        let sent = sable.does("send", json!({"to": "donna", "type": "Question", "body": "b"})).await;
        donna.does("send", json!({"to": "sable", "type": "Question", "body": "b"})).await;
        let theirs = &sable.session;
        for (verb, mut arguments) in [
            ("pending", json!({})),
            ("send", json!({"to": "sable", "body": "b"})),
            ("reply", json!({"to_signal": sent["signal_id"], "body": "b"})),
            ("recall", json!({"signal_id": sent["signal_id"]})),
            ("wait", json!({})),
            ("checkpoint", json!({"note": "n"})),
            ("wrap", json!({})),
            ("obligations", json!({})),
            ("diagnostics", json!({})),
        ] {
            arguments["session"] = theirs.as_str().into();
            let why = donna.refused(verb, arguments).await;
            assert!(why.contains("not_yours") && why.contains("this window is donna"), "{at:?} {verb}: {why}");
        }
        assert_eq!(sable.drain().await.len(), 1, "nothing of hers was touched");
        // Its own it may name.
        donna.does("pending", json!({"session": donna.session})).await;
    }
}

// R-28: a client of 2026-07-28 has no session of its own, and its start must not end its own window.
#[tokio::test]
async fn a_client_without_a_session_is_told_to_give_the_one_that_its_start_returned() {
    let daemon = mesh("").await;
    let sable = daemon.agent(At::Modern, "sable").await;
    let said = sable.does("diagnostics", json!({"session": null})).await;
    let next = text(&said["next"]);
    assert!(next.contains("give the `session` that it returned") && next.contains("do not start again"), "{said}");
    // Nothing is known of it, so nothing is said: it may be somebody whose stream is open.
    assert_eq!([&said["agent"], &said["connection"], &said["surface_support"]], [&Value::Null; 3], "{said}");
    let own = sable.does("diagnostics", json!({})).await;
    assert_eq!((&own["agent"], &own["next"]), (&json!("sable"), &Value::Null), "{own}");
    // Who has a session of its own is told at once what is missing.
    let stranger = daemon.window(At::Own).await.does("diagnostics", json!({})).await;
    assert!(text(&stranger["next"]).contains("call prism_start"), "{stranger}");
}

// M-01: no agent is told another's session, by which a modern client shows who it is.
#[tokio::test]
async fn no_agent_is_told_anothers_session() {
    for at in At::ALL {
        let daemon = mesh("").await;
        let [donna, sable] = pair(&daemon, at).await;
        donna.does("send", json!({"to": "sable", "type": "Question", "body": "b"})).await;
        sable.does("send", json!({"to": "donna", "type": "Question", "body": "b"})).await;
        for (verb, arguments) in [
            ("status", json!({})),
            ("diagnostics", json!({"agent": "sable"})),
            ("obligations", json!({"of": "all"})),
            ("pending", json!({})),
            ("send", json!({"to": "sable", "body": "b"})),
        ] {
            let mut arguments = arguments;
            if verb == "diagnostics" && at == At::Modern {
                arguments["session"] = Value::Null;
            }
            let said = donna.raw(verb, arguments).await;
            assert!(!said.contains(&sable.session), "{at:?} {verb}: {said}");
        }
    }
}

// M-01: what a client writes where the door writes who calls.
#[tokio::test]
async fn a_forged_mark_counts_for_nothing() {
    let daemon = mesh("").await;
    let [donna, sable] = pair(&daemon, At::Hub).await;
    donna.does("send", json!({"to": "sable", "body": "b"})).await;
    let theirs = json!({"session": sable.client().session(), "transport": "http"});
    let meta = json!({"prism/caller": theirs});
    let params = json!({"name": "prism_signals_pending", "arguments": {}, "_meta": meta});
    let own = donna.client().result("tools/call", params.clone()).await;
    assert_eq!(own["structuredContent"]["signals"], json!([]), "{own}");
    let stranger = daemon.hub().initialize().await.result("tools/call", params.clone()).await;
    assert!(stranger["isError"] == true && stranger.to_string().contains("not_started"), "{stranger}");
    let modern = daemon.modern_hub().result("tools/call", params).await;
    assert!(modern["isError"] == true && modern.to_string().contains("not_started"), "{modern}");
    assert_eq!(sable.drain().await.len(), 1);
}

// M-03: a word that is only in the bodies is looked for in every byte that is not the drain's answer.
#[tokio::test]
async fn what_a_signal_says_leaves_by_the_drain_alone() {
    const WORD: &str = "hush-hush";
    let config = format!("{}\n[mesh]\ndesktop = false\nquestion_within = \"1s\"\n", destination("d", &[], ""));
    let arguments = ["serve", "--port", "0", "--log", "trace"].map(str::to_owned).to_vec();
    let daemon = Launch::prism(arguments).config(&config).start().await;
    let [donna, sable] = pair(&daemon, At::Hub).await;
    let modern = daemon.agent(At::Modern, "onyx").await;
    let seen = Arc::new(Mutex::new(String::new()));
    let note = |text: &str| seen.lock().unwrap().push_str(text);
    let events = daemon.client_at("/prism/mesh/events").request(Method::GET).send().await;
    let mut events = events.events();

    let body = format!("{WORD} and more of it");
    for to in ["sable", "onyx", "person"] {
        for kind in ["Question", "TaskAssigned", "StatusUpdate"] {
            note(&donna.raw("send", json!({"to": to, "type": kind, "body": body})).await);
        }
    }
    let long = format!("{WORD}{}", "x".repeat(64 << 10));
    note(&donna.raw("send", json!({"to": "sable", "body": long})).await);
    note(&donna.raw("send", json!({"to": WORD.replace('-', "."), "body": body})).await);
    // The floor: the next result of any tool, once.
    let carried = sable.client().ask("tools/call", json!({"name": "d__echo", "arguments": {"text": "x"}})).await;
    let carried = carried.text().await;
    // Nobody was told of any of them, so it is about the last that asks for something.
    assert!(carried.contains("Signal from donna: TaskAssigned and 2 more. Use prism_signals_pending"), "{carried}");
    note(&carried);
    let mut stream = sable.listen().await;
    note(&stream.hear().await.to_string());
    for agent in [&sable, &modern] {
        for verb in ["status", "wait", "diagnostics", "obligations", "checkpoint"] {
            note(&agent.raw(verb, json!({})).await);
        }
    }
    for uri in [PENDING.to_owned(), format!("{PENDING}/{}", sable.session)] {
        let read = sable.client().result("resources/read", json!({"uri": uri})).await.to_string();
        assert!(read.contains(r#"\"pending\":3"#), "{read}");
        note(&read);
    }
    note(&sable.client().result("resources/list", json!({})).await.to_string());
    let script = daemon.script();
    until("one is overdue", async || {
        script.does("obligations", json!({})).await["obligations"].to_string().contains(r#""overdue":true"#)
    })
    .await;
    for verb in ["obligations", "diagnostics", "status", "wake_test"] {
        note(&script.raw(verb, json!({"agent": "sable"})).await);
    }
    for path in ["/prism/mesh", "/metrics"] {
        note(&daemon.client_at(path).request(Method::GET).send().await.text().await);
    }
    // The drain is where it is read, and the history.
    for agent in [&sable, &modern] {
        let drained = agent.drain().await;
        assert_eq!(drained.iter().filter(|signal| signal["body"] == body).count(), 3);
    }
    loop {
        let event = events.next().await.expect("events go on");
        note(&format!("{event:?}"));
        if event.name.as_deref() == Some("signal_drained") && text(&event.json()["agent"]) == "onyx" {
            break;
        }
    }
    note(&daemon.stop().await);
    let seen = seen.lock().unwrap();
    assert!(seen.contains("surface_doorbell_sent") && seen.contains("An agent has started"), "{seen}");
    for line in seen.lines() {
        assert!(!line.contains(WORD), "{line}");
    }
}
