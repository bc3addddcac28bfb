//! The verbs of the mesh through the whole daemon, from each door that agents have: a session at the hub, a session at
//! Prism's own server, a modern client. Bells are in `mesh_bells`, what is owed in `mesh_obligations`.

use serde_json::{Value, json};

use crate::support::{
    Daemon,
    agents::{Agent, At, mesh, text},
    until,
};

/// Two agents at one door.
async fn pair(daemon: &Daemon, at: At) -> [Agent; 2] {
    [daemon.agent(at, "donna").await, daemon.agent(at, "sable").await]
}

fn signals(page: &Value) -> &Vec<Value> {
    page["signals"].as_array().unwrap_or_else(|| panic!("no page: {page}"))
}

fn bodies(page: &Value) -> Vec<String> {
    signals(page).iter().map(|signal| text(&signal["body"])).collect()
}

async fn send(from: &Agent, to: &str, body: &str) -> Value {
    from.does("send", json!({"to": to, "type": "StatusUpdate", "body": body})).await
}

// M-01, M-02
#[tokio::test]
async fn a_signal_goes_from_agent_to_agent_at_every_door() {
    for at in At::ALL {
        let daemon = mesh("").await;
        let mut donna = daemon.window(at).await;
        assert!(donna.refused("pending", json!({})).await.contains("call prism_start first"), "{at:?}");
        let started = donna
            .start(json!({"agent": "Donna", "surface": "cursor", "workspace": "/w", "surface_session": "s-1"}))
            .await;
        let told = [&started["agent"], &started["surface"], &started["workspace"], &started["transport"]];
        assert_eq!(told, ["donna", "cursor", "/w", "http"], "{at:?}");
        assert_eq!(started["doorbell"], format!("prism://signals/pending/{}", donna.session));
        let sable = daemon.agent(at, "sable").await;

        let asked = json!({"to": "SABLE", "type": "Question", "body": "Ready? — «ja»\n\"{}\""});
        let sent = donna.does("send", asked).await;
        assert_eq!(sent["recipient_state"]["pending"], 1, "{sent}");
        assert!(sent["obligation"]["due_at"].is_string() && sent["trace_id"].is_string(), "{sent}");
        let page = sable.does("pending", json!({})).await;
        let [signal] = &signals(&page)[..] else { panic!("{page}") };
        assert_eq!(signal["body"], "Ready? — «ja»\n\"{}\"");
        assert_eq!((&signal["from"], &signal["type"]), (&json!("donna"), &json!("Question")));
        assert_eq!((&signal["signal_id"], &signal["seq"]), (&sent["signal_id"], &sent["seq"]));
        assert_eq!((&signal["reply_with"], signal.get("redelivered")), (&json!("Answer"), None));
        assert!(text(&page["notice"]).contains("no authority"), "{page}");
        assert_eq!(page["remaining"], 0);

        let replied = sable.does("reply", json!({"to_signal": sent["signal_id"], "body": "yes"})).await;
        assert_eq!(replied["trace_id"], sent["trace_id"], "{at:?}");
        let page = donna.does("pending", json!({})).await;
        let answer = &signals(&page)[0];
        assert_eq!((&answer["type"], &answer["body"]), (&json!("Answer"), &json!("yes")));
        assert_eq!(answer["reply_to"], sent["signal_id"]);
        assert_eq!(donna.does("pending", json!({})).await["signals"], json!([]), "a drain takes what it gives");

        // M-03: what was drained is in the history.
        let past = daemon.script().does("history", json!({"agent": "sable"})).await;
        let states: Vec<&Value> = signals(&past).iter().map(|signal| &signal["state"]).collect();
        assert_eq!(states, ["drained", "drained"]);
    }
}

// M-01
#[tokio::test]
async fn the_roster_says_who_is_there_and_a_wrap_ends_it() {
    for at in At::ALL {
        let daemon = mesh("").await;
        let [donna, sable] = pair(&daemon, at).await;
        send(&donna, "sable", "1").await;
        let roster = donna.does("status", json!({})).await;
        let of = |roster: &Value, name: &str| {
            let agents = roster["agents"].as_array().unwrap();
            agents.iter().find(|agent| agent["agent"] == name).unwrap_or_else(|| panic!("no {name}: {roster}")).clone()
        };
        let told = of(&roster, "sable");
        assert_eq!((&told["presence"], &told["pending"]), (&json!("active"), &json!(1)), "{told}");
        let wrapped = sable.does("wrap", json!({})).await;
        assert_eq!(wrapped["session"], sable.session);
        assert!(wrapped["wrapped_at"].is_string());
        assert_eq!(of(&donna.does("status", json!({})).await, "sable")["presence"], "wrapped");
        // Its window is no agent any more; its name is an address all the same, and what waits for it waits.
        let why = sable.refused("pending", json!({})).await;
        assert!(why.contains("prism_start"), "{why}");
        let sent = send(&donna, "sable", "2").await;
        assert_eq!(sent["recipient_state"]["presence"], "wrapped");
        let mut back = daemon.window(at).await;
        back.start(json!({"agent": "sable"})).await;
        assert_ne!(back.session, sable.session);
        assert_eq!(bodies(&back.does("pending", json!({})).await), ["1", "2"], "{at:?}");
    }
}

// M-03, M-12
#[tokio::test]
async fn pages_and_cursors_are_exact() {
    for at in At::ALL {
        let daemon = mesh("").await;
        let [donna, sable] = pair(&daemon, at).await;
        for number in 0..45 {
            send(&donna, "sable", &number.to_string()).await;
        }
        let numbers = |from: i64, to: i64| (from..to).map(|number| number.to_string()).collect::<Vec<_>>();
        // A peek takes nothing, however often.
        for _ in 0..2 {
            let peek = sable.does("pending", json!({"peek": true, "limit": 3})).await;
            assert_eq!((bodies(&peek), &peek["peek"]), (numbers(0, 3), &json!(true)));
            assert_eq!(sable.does("diagnostics", json!({})).await["pending"], 45);
        }
        let first = sable.does("pending", json!({})).await;
        assert_eq!((bodies(&first), &first["remaining"]), (numbers(0, 20), &json!(25)), "{at:?}");
        // The same cursor again gives the same page, and says so.
        let second = sable.does("pending", json!({"after": first["cursor"]})).await;
        assert_eq!((bodies(&second), &second["remaining"]), (numbers(20, 40), &json!(5)));
        assert!(signals(&second).iter().all(|signal| signal.get("redelivered").is_none()), "{second}");
        let again = sable.does("pending", json!({"after": first["cursor"]})).await;
        assert_eq!((bodies(&again), &again["cursor"]), (numbers(20, 40), &second["cursor"]));
        assert!(signals(&again).iter().all(|signal| signal["redelivered"] == true), "{again}");
        let last = sable.does("pending", json!({"after": second["cursor"], "limit": 200})).await;
        assert_eq!((bodies(&last), &last["remaining"]), (numbers(40, 45), &json!(0)));
        let none = sable.does("pending", json!({"after": last["cursor"]})).await;
        assert_eq!((bodies(&none), &none["cursor"]), (vec![], &last["cursor"]));
        assert_eq!(bodies(&sable.does("pending", json!({})).await), [""; 0]);
        let ahead = last["cursor"].as_i64().unwrap() + 1000;
        let why = sable.refused("pending", json!({"after": ahead})).await;
        assert!(why.contains("cursor_ahead") && why.contains("leave `after` out"), "{why}");
    }
}

// M-16
#[tokio::test]
async fn a_signal_is_taken_back_until_it_was_read_and_only_by_its_sender() {
    for at in At::ALL {
        let daemon = mesh("").await;
        let [donna, sable] = pair(&daemon, at).await;
        let sent = send(&donna, "sable", "never mind").await;
        let recall = json!({"signal_id": sent["signal_id"]});
        let why = sable.refused("recall", recall.clone()).await;
        assert!(why.contains("not_yours"), "{why}");
        assert_eq!(donna.does("recall", recall.clone()).await["recalled"], true);
        assert_eq!(sable.does("pending", json!({})).await["signals"], json!([]));
        let why = donna.refused("recall", recall).await;
        assert!(why.contains("already_gone"), "{why}");
        let sent = send(&donna, "sable", "read me").await;
        sable.drain().await;
        let why = donna.refused("recall", json!({"signal_id": sent["signal_id"]})).await;
        assert!(why.contains("already_drained"), "{why}");
        let why = donna.refused("recall", json!({"signal_id": "00000000-0000-4000-8000-000000000000"})).await;
        assert!(why.contains("unknown_signal"), "{why}");
    }
}

// M-02, M-12
#[tokio::test]
async fn a_signal_sent_again_under_its_own_id_is_the_same_one() {
    for at in At::ALL {
        let daemon = mesh("").await;
        let [donna, sable] = pair(&daemon, at).await;
        let id = uuid::Uuid::now_v7().to_string();
        let signal = json!({"to": "sable", "type": "Question", "body": "once", "signal_id": id});
        let first = donna.does("send", signal.clone()).await;
        let again = donna.does("send", signal.clone()).await;
        assert_eq!((&first["seq"], &first["trace_id"]), (&again["seq"], &again["trace_id"]));
        assert_eq!(sable.drain().await.len(), 1);
        // Also when it was read meanwhile.
        assert_eq!(donna.does("send", signal.clone()).await["seq"], first["seq"]);
        assert_eq!(sable.drain().await.len(), 0);
        let mut other = signal;
        other["body"] = "something else".into();
        assert!(donna.refused("send", other).await.contains("conflict"));
        // The same for a reply.
        let reply = json!({"to_signal": id, "body": "yes", "signal_id": uuid::Uuid::now_v7().to_string()});
        let first = sable.does("reply", reply.clone()).await;
        assert_eq!(sable.does("reply", reply).await["seq"], first["seq"]);
        assert_eq!(donna.drain().await.len(), 1);
    }
}

// M-02
#[tokio::test]
async fn what_is_wrong_with_a_signal_is_said_with_what_to_do() {
    let daemon = mesh("").await;
    let [donna, sable] = pair(&daemon, At::Hub).await;
    let long = "x".repeat((64 << 10) + 1);
    for (arguments, code, hint) in [
        (json!({"to": "nobody", "body": "b"}), "unknown_agent", "known: donna, sable"),
        (json!({"to": "two words", "body": "b"}), "bad_arguments", "letters, digits"),
        (json!({"to": "sable", "type": "Shout", "body": "b"}), "bad_arguments", "Question"),
        (json!({"to": "sable", "type": "PeerLeft", "body": "b"}), "bad_arguments", "only Prism itself sends"),
        (json!({"to": "sable", "type": "MasterPreempted", "body": "b"}), "bad_arguments", "only Prism itself"),
        (json!({"to": "sable", "body": long}), "bad_arguments", "send a path or a link"),
        (json!({"to": "sable", "body": "b", "signal_id": "7"}), "bad_arguments", "no UUID"),
        (json!({"to": "sable", "body": "b", "reply_to": sable.session}), "unknown_signal", "no signal"),
        (json!({"to": "sable", "body": "b", "delivery": "sync"}), "unreachable", "send it async"),
    ] {
        let why = donna.refused("send", arguments.clone()).await;
        assert!(why.contains(code) && why.contains(hint), "{:.200}: {why}", arguments.to_string());
    }
    for arguments in [json!({"to": "sable"}), json!({"to": "sable", "body": 1}), json!({"to": "sable", "x": 1})] {
        donna.refused("send", arguments).await;
    }
    assert_eq!(sable.drain().await.len(), 0);
    let why = daemon.window(At::Own).await.refused("start", json!({"agent": "person"})).await;
    assert!(why.contains("choose another name"), "{why}");
    // What reaches the limit is taken.
    let body = "x".repeat(64 << 10);
    send(&donna, "sable", &body).await;
    assert_eq!(sable.drain().await[0]["body"], body);
}

// M-16
#[tokio::test]
async fn a_signal_whose_time_is_over_is_not_read_any_more() {
    let daemon = mesh("").await;
    let [donna, sable] = pair(&daemon, At::Hub).await;
    donna.does("send", json!({"to": "sable", "type": "Question", "body": "now?", "ttl_s": 1})).await;
    send(&donna, "sable", "later").await;
    until("one is out of date", async || sable.seen().await["pending"] == 1).await;
    assert_eq!(bodies(&sable.does("pending", json!({})).await), ["later"]);
    let past = daemon.script().does("history", json!({"agent": "sable"})).await;
    let states: Vec<&Value> = signals(&past).iter().map(|signal| &signal["state"]).collect();
    assert_eq!(states, ["drained", "expired"]);
    let owed = donna.does("obligations", json!({"of": "others", "state": "expired"})).await;
    assert_eq!(owed["obligations"].as_array().map(Vec::len), Some(1), "{owed}");
}

// M-03: with signals waiting, for each of the verbs and at each door.
#[tokio::test]
async fn lifecycle_verbs_never_carry_a_signal_or_a_bell() {
    for at in At::ALL {
        for verb in ["start", "checkpoint", "wrap"] {
            let daemon = mesh("").await;
            let [donna, sable] = pair(&daemon, at).await;
            let arguments = if verb == "start" { json!({"agent": "sable"}) } else { json!({}) };
            let quiet = shape(&sable.raw(verb, arguments.clone()).await);
            let mut sable = sable;
            sable.start(json!({"agent": "sable"})).await;
            for kind in ["Question", "TaskAssigned", "ReviewRequested", "StatusUpdate", "Acknowledgment"] {
                donna.does("send", json!({"to": "sable", "type": kind, "body": "hush-hush"})).await;
            }
            let said = sable.raw(verb, arguments).await;
            for word in ["hush-hush", "donna", "Signal from", "Question", "prism_signal_reply"] {
                assert!(!said.contains(word), "{at:?} {verb}: {said}");
            }
            assert_eq!(shape(&said), quiet, "{at:?} {verb}: no more than without signals");
        }
    }
}

/// The names of the members of an answer, and how many blocks it has.
fn shape(said: &str) -> (Vec<String>, usize) {
    let data =
        said.lines().find_map(|line| line.strip_prefix("data: ").filter(|data| !data.is_empty())).unwrap_or(said);
    let answer: Value = serde_json::from_str(data).unwrap_or_else(|error| panic!("{error}: {said}"));
    let result = &answer["result"];
    let members = result["structuredContent"].as_object().unwrap_or_else(|| panic!("{said}")).keys().cloned();
    (members.collect(), result["content"].as_array().unwrap().len())
}

// M-01: one window is one session.
#[tokio::test]
async fn a_window_that_starts_again_goes_on_with_its_session() {
    for at in [At::Hub, At::Own] {
        let daemon = mesh("").await;
        let [donna, mut sable] = pair(&daemon, at).await;
        send(&donna, "sable", "kept").await;
        let before = sable.session.clone();
        sable.start(json!({"agent": "Sable", "surface": "cursor"})).await;
        assert_eq!(sable.session, before, "{at:?}");
        let page = sable.does("pending", json!({})).await;
        assert_eq!(bodies(&page), ["kept"], "nobody was preempted: {page}");
        // Under another name it is another agent, and the one before has wrapped.
        sable.start(json!({"agent": "onyx"})).await;
        assert_ne!(sable.session, before);
        let roster = donna.does("status", json!({})).await;
        let presence = |name: &str| {
            let agents = roster["agents"].as_array().unwrap();
            text(&agents.iter().find(|agent| agent["agent"] == name).unwrap()["presence"])
        };
        assert_eq!((presence("sable"), presence("onyx")), ("wrapped".to_owned(), "active".to_owned()));
    }
}

// M-01: another window takes over.
#[tokio::test]
async fn another_window_of_the_same_agent_takes_over() {
    for at in At::ALL {
        let daemon = mesh("").await;
        let [donna, sable] = pair(&daemon, at).await;
        send(&donna, "sable", "kept").await;
        let other = daemon.agent(At::Hub, "sable").await;
        assert_ne!(other.session, sable.session, "{at:?}");
        let why = sable.refused("pending", json!({"session": sable.session})).await;
        assert!(why.contains("unknown_session") && why.contains("another window"), "{why}");
        let why = sable.refused("send", json!({"to": "donna", "body": "b"})).await;
        assert!(why.contains("prism_start"), "{at:?}: {why}");
        let page = other.does("pending", json!({})).await;
        let kinds: Vec<&Value> = signals(&page).iter().map(|signal| &signal["type"]).collect();
        assert_eq!(kinds, ["StatusUpdate", "MasterPreempted"], "{at:?}");
        assert_eq!(signals(&page)[1]["from"], "prism");
    }
}

// M-02, M-06: who shares a workspace hears of who comes and goes, when it drains.
#[tokio::test]
async fn peers_in_a_workspace_hear_of_each_other_at_the_next_drain() {
    let daemon = mesh("").await;
    let start = |agent: &'static str, workspace: &'static str| {
        let daemon = &daemon;
        async move {
            let mut window = daemon.window(At::Hub).await;
            window.start(json!({"agent": agent, "workspace": workspace})).await;
            window
        }
    };
    let (donna, elsewhere) = (start("donna", "/w").await, start("onyx", "/x").await);
    let sable = start("sable", "/w").await;
    sable.does("wrap", json!({})).await;
    let news = donna.drain().await;
    let kinds: Vec<&Value> = news.iter().map(|signal| &signal["type"]).collect();
    assert_eq!(kinds, ["PeerJoined", "PeerLeft"]);
    assert_eq!(elsewhere.drain().await.len(), 0);
}
