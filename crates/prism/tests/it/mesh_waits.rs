//! `prism_signals_wait`: a call that ends when a signal comes, takes nothing, and loses nothing whatever becomes of it.

use serde_json::{Value, json};

use crate::support::{
    Daemon, Reply,
    agents::{Agent, At, mesh, text},
    soon, until,
};

const TEXT: &str =
    "Signal from donna: Question. Use prism_signals_pending to read; prism_signal_reply to reply if needed.";

async fn pair(daemon: &Daemon, at: At) -> [Agent; 2] {
    [daemon.agent(at, "donna").await, daemon.agent(at, "sable").await]
}

async fn ask(from: &Agent) -> Value {
    from.does("send", json!({"to": "sable", "type": "Question", "body": "hush-hush"})).await
}

/// Waits until an agent is known to wait, or not to.
async fn until_waits(agent: &Agent, waits: bool) {
    until(&format!("it waits: {waits}"), async || {
        let told = agent.seen().await;
        let mut paths = told["paths"].as_array().unwrap().iter();
        paths.any(|path| path["path"] == "wait" && path["healthy"] == true) == waits
    })
    .await;
}

/// A wait that has begun.
fn begin(agent: &Agent, arguments: Value) -> tokio::task::JoinHandle<Result<Value, String>> {
    let agent = agent.clone();
    tokio::spawn(async move { agent.attempt("wait", arguments).await })
}

// M-13
#[tokio::test]
async fn a_wait_ends_with_the_signal_and_takes_nothing() {
    for at in At::ALL {
        let daemon = mesh("").await;
        let [donna, sable] = pair(&daemon, at).await;
        let waiting = begin(&sable, json!({}));
        until_waits(&sable, true).await;
        assert_eq!(sable.support().await, "full", "who waits can be woken");
        let sent = ask(&donna).await;
        assert_eq!(sent["recipient_state"]["surface_support"], "full", "{sent}");
        let told = soon("the wait ends", waiting).await.unwrap().unwrap();
        assert_eq!((&told["bell"], &told["text"], &told["pending"]), (&json!(true), &json!(TEXT), &json!(1)), "{at:?}");
        sable.until_bell("wait", "rang").await;
        // It is there for the next one, too: only the drain takes it.
        assert_eq!(sable.does("wait", json!({})).await["text"], TEXT, "{at:?}");
        assert_eq!(sable.drain().await[0]["body"], "hush-hush");
        sable.until_bell("wait", "confirmed").await;
        let told = sable.does("wait", json!({"timeout_s": 0})).await;
        assert_eq!((&told["bell"], &told["why"]), (&json!(false), &json!("timeout")), "{told}");
        assert!(text(&told["next"]).contains("prism_signals_wait again"), "{told}");
    }
}

// M-13
#[tokio::test]
async fn a_signal_that_is_there_ends_a_wait_at_once() {
    for at in At::ALL {
        let daemon = mesh("").await;
        let [donna, sable] = pair(&daemon, at).await;
        ask(&donna).await;
        ask(&donna).await;
        let told = sable.does("wait", json!({"timeout_s": 3600})).await;
        assert_eq!((&told["bell"], &told["pending"]), (&json!(true), &json!(2)), "{told}");
        assert!(text(&told["text"]).starts_with("Signal from donna: Question and 1 more. Use"), "{told}");
    }
}

// M-13: a system type wakes nobody.
#[tokio::test]
async fn news_of_prisms_own_end_no_wait() {
    let daemon = mesh("").await;
    let mut sable = daemon.window(At::Hub).await;
    sable.start(json!({"agent": "sable", "workspace": "/w"})).await;
    let mut waiting = begin(&sable, json!({"timeout_s": 1}));
    until_waits(&sable, true).await;
    let mut donna = daemon.window(At::Hub).await;
    donna.start(json!({"agent": "donna", "workspace": "/w"})).await;
    let told = soon("the wait ends", &mut waiting).await.unwrap().unwrap();
    assert_eq!((&told["bell"], &told["why"]), (&json!(false), &json!("timeout")), "{told}");
    assert_eq!(sable.drain().await[0]["type"], "PeerJoined");
}

// M-13: a wait that is cancelled, or whose connection is cut, leaves nobody waiting, and what comes then is not lost.
#[tokio::test]
async fn a_wait_that_is_cancelled_or_cut_loses_nothing() {
    for at in At::ALL {
        for cancelled in [true, false] {
            if cancelled && at == At::Modern {
                // The modern era has no other way to cancel than to leave.
                continue;
            }
            let daemon = mesh("").await;
            let [donna, sable] = pair(&daemon, at).await;
            let (id, request) = sable.request_with_id("wait", json!({"timeout_s": 40}));
            let waiting = tokio::spawn(request.attempt());
            until_waits(&sable, true).await;
            if cancelled {
                let gone = sable.client().notify("notifications/cancelled", json!({"requestId": id})).await;
                assert_eq!(gone.status, 202);
            } else {
                waiting.abort();
            }
            until_waits(&sable, false).await;
            let sent = ask(&donna).await;
            sable.until_bell("sse", "uncaptured").await;
            let told = sable.does("wait", json!({})).await;
            assert_eq!(told["text"], TEXT, "{at:?} {cancelled}");
            let drained = sable.drain().await;
            assert_eq!(drained.len(), 1);
            assert_eq!(drained[0]["signal_id"], sent["signal_id"]);
        }
    }
}

// M-13: a stream that dies while the bell is on its way to it. The signal was not taken.
#[tokio::test]
async fn a_wait_that_is_cut_as_its_bell_rings_loses_nothing() {
    for at in At::ALL {
        let daemon = mesh("").await;
        let [donna, sable] = pair(&daemon, at).await;
        for round in 0..20 {
            let waiting = begin(&sable, json!({"timeout_s": 40}));
            until_waits(&sable, true).await;
            let (sent, ()) = tokio::join!(ask(&donna), async { waiting.abort() });
            let told = sable.does("wait", json!({})).await;
            assert_eq!(told["bell"], true, "{at:?} {round}: {told}");
            let drained = sable.drain().await;
            assert_eq!(drained.len(), 1, "{at:?} {round}");
            assert_eq!(drained[0]["signal_id"], sent["signal_id"]);
        }
    }
}

// M-13: each surface has its cap, whatever is asked for. Its progress says so.
#[tokio::test]
async fn a_wait_has_a_cap_by_surface_and_is_heard_of_meanwhile() {
    let daemon = mesh("").await;
    let mut streams = Vec::new();
    for (surface, cap) in [("cursor", 50), ("codex", 280), ("claude_code", 24 * 3600)] {
        let mut agent = daemon.window(At::Hub).await;
        agent.start(json!({"agent": surface, "surface": surface})).await;
        let arguments = json!({"timeout_s": 1_000_000});
        let params = json!({"name": "prism_signals_wait", "arguments": arguments, "_meta": {"progressToken": surface}});
        let client = agent.client().clone();
        streams.push((cap, tokio::spawn(async move { client.ask("tools/call", params).await })));
    }
    for (cap, asked) in streams {
        let reply: Reply = soon("it is answered with a stream", asked).await.unwrap();
        let note = reply.events().message().await;
        assert_eq!(note["method"], "notifications/progress", "{note}");
        assert_eq!((&note["params"]["progress"], &note["params"]["total"]), (&json!(10), &json!(cap)), "{note}");
    }
}

// M-01: a wrap ends the waits of its window.
#[tokio::test]
async fn a_wrap_ends_the_wait() {
    for at in At::ALL {
        let daemon = mesh("").await;
        let [_, sable] = pair(&daemon, at).await;
        let waiting = begin(&sable, json!({}));
        until_waits(&sable, true).await;
        sable.does("wrap", json!({})).await;
        let told = soon("the wait ends", waiting).await.unwrap().unwrap();
        assert_eq!((&told["bell"], &told["why"]), (&json!(false), &json!("wrapped")), "{told}");
    }
}

// M-13: for scripts and hooks.
#[tokio::test]
async fn a_script_waits_for_an_agents_bell_and_a_newer_hook_takes_over() {
    let daemon = mesh("").await;
    let [donna, sable] = pair(&daemon, At::Hub).await;
    let hook = json!({"agent": "sable", "hook": "claude-rewake", "timeout_s": 3600});
    let script = daemon.script();
    let old = begin(&script, hook.clone());
    let has_hook = async || {
        let told = sable.seen().await;
        told["paths"].as_array().unwrap().iter().any(|path| path["path"] == "hook" && path["healthy"] == true)
    };
    until("the hook is there", has_hook).await;
    let new = begin(&script, hook);
    let told = soon("the older one ends", old).await.unwrap().unwrap();
    assert_eq!((&told["bell"], &told["why"]), (&json!(false), &json!("superseded")), "{told}");
    ask(&donna).await;
    let told = soon("the newer one rings", new).await.unwrap().unwrap();
    assert_eq!((&told["bell"], &told["agent"], &told["text"]), (&json!(true), &json!("sable"), &json!(TEXT)));
    sable.until_bell("hook", "rang").await;
    assert_eq!(sable.drain().await.len(), 1);
}
