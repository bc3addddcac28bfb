//! The table as a whole, the paths that lead through the daemon, and what the adapters' own tests share.

use std::{
    future::{pending, ready},
    sync::{Arc, Mutex},
    time::Duration,
};

use prism_core::mesh::{ChatFailure, WakePath};
use serde_json::{Value, json};

use super::{
    AgentFacts, ClientFacts, DaemonChannels, Doing, PollKind, ProbeOutcome, RingOutcome, WakeAdapter, WakeAdapters,
    WakeBell, WakeContact, WakeSettings, inside,
};

pub(super) const TEXT: &str =
    "Signal from ana: Question. Use prism_signals_pending to read; prism_signal_reply to reply if needed.";

pub(super) fn bell() -> WakeBell {
    WakeBell {
        text: TEXT.into(),
        agent: "bob".into(),
        session: "s-1".into(),
        sender: "ana".into(),
        kind: "Question".into(),
    }
}

/// An agent whose start said this under `wake`.
pub(super) fn agent(surface: &str, wake: Value) -> Arc<AgentFacts> {
    Arc::new(AgentFacts {
        agent: "bob".into(),
        session: "s-1".into(),
        surface: surface.to_owned(),
        wake: wake.as_object().cloned().unwrap_or_default(),
        ..AgentFacts::default()
    })
}

/// The contact of an agent that tells of itself by this.
pub(super) fn contact(adapter: &dyn WakeAdapter, told: &Value) -> WakeContact {
    adapter.check(told).expect("what is told can be used");
    adapter.attach(&agent("codex", json!({ (adapter.path().name()): told }))).expect("it is told")
}

/// Rings whom an agent has told of, by this path.
pub(super) async fn rung(adapter: &dyn WakeAdapter, told: &Value) -> RingOutcome {
    let contact = contact(adapter, told);
    adapter.ring(&contact, &bell()).await
}

/// Why a bell could not be rung.
pub(super) fn failed(rung: RingOutcome) -> String {
    match rung {
        RingOutcome::SendFailed(why) => why.into_owned(),
        other => panic!("{other:?}"),
    }
}

/// A mesh in which what is open is what the test says.
#[derive(Default)]
struct House {
    open: Vec<WakePath>,
    rung: Mutex<Vec<String>>,
}

impl House {
    fn rings(&self, what: &str, path: WakePath, session: &str) -> bool {
        self.rung.lock().unwrap().push(format!("{what} {session}"));
        self.open.contains(&path)
    }
}

impl DaemonChannels for House {
    fn is_open(&self, path: WakePath, _session: &str) -> bool {
        self.open.contains(&path)
    }

    fn ring_stream<'a>(&'a self, session: &'a str) -> Doing<'a, bool> {
        Box::pin(ready(self.rings("stream", WakePath::Sse, session)))
    }

    fn finish(&self, poll: PollKind, session: &str, _bell: &WakeBell) -> bool {
        let (what, path) = match poll {
            PollKind::Tool => ("wait", WakePath::Wait),
            PollKind::Hook => ("hook", WakePath::Hook),
            PollKind::Acp => ("acp", WakePath::Acp),
            PollKind::Channel => ("channel", WakePath::Channel),
        };
        self.rings(what, path, session)
    }

    fn arm_piggyback(&self, session: &str, _bell: &WakeBell) -> bool {
        self.rings("piggyback", WakePath::Piggyback, session)
    }

    fn has_chat<'a>(&'a self, _kind: &'a str, _folder: Option<&'a std::path::Path>) -> Doing<'a, bool> {
        Box::pin(ready(false))
    }

    fn ring_chat<'a>(
        &'a self,
        _kind: &'a str,
        _folder: Option<&'a std::path::Path>,
        _bell: &'a WakeBell,
        _within: Duration,
    ) -> Doing<'a, Result<(), ChatFailure>> {
        Box::pin(ready(Err(ChatFailure::Nobody)))
    }
}

/// A mesh in which nothing is open.
pub(super) fn empty_house() -> Arc<dyn DaemonChannels> {
    Arc::new(House::default())
}

const INSIDE: [(WakePath, &str); 6] = [
    (WakePath::Wait, "wait s-1"),
    (WakePath::Acp, "acp s-1"),
    (WakePath::Hook, "hook s-1"),
    (WakePath::Sse, "stream s-1"),
    (WakePath::Channel, "channel s-1"),
    (WakePath::Piggyback, "piggyback s-1"),
];

fn adapters(house: &Arc<House>, allowed: &WakeSettings) -> WakeAdapters {
    let inside: Arc<dyn DaemonChannels> = house.clone();
    WakeAdapters::new(&inside, allowed)
}

/// An agent that came through `prism stdio`.
fn shimmed() -> Arc<AgentFacts> {
    let mut facts = AgentFacts::clone(&agent("claude_code", json!({})));
    facts.client = ClientFacts { has_channel: true, tmux: None };
    Arc::new(facts)
}

#[test]
fn every_path_has_one_adapter() {
    let adapters = adapters(&Arc::default(), &WakeSettings::default());
    let paths: Vec<WakePath> = adapters.all().map(WakeAdapter::path).collect();
    assert_eq!(paths, WakePath::ALL);
}

#[tokio::test]
async fn each_path_inside_rings_its_own_thing_and_says_when_nobody_is_there() {
    for (path, rings) in INSIDE {
        for open in [true, false] {
            let house = Arc::new(House { open: if open { vec![path] } else { Vec::new() }, ..House::default() });
            let adapters = adapters(&house, &WakeSettings::default());
            let adapter = adapters.of(path).unwrap();
            let contact = adapter.attach(&shimmed()).unwrap();
            let probe = adapter.probe(&contact).await;
            assert!(house.rung.lock().unwrap().is_empty(), "{path:?}: a probe rings nothing");
            let rung = adapter.ring(&contact, &bell()).await;
            assert_eq!(*house.rung.lock().unwrap(), [rings]);
            match (open, probe, rung) {
                (true, ProbeOutcome::There, RingOutcome::Rang)
                | (false, ProbeOutcome::Absent(_), RingOutcome::Uncaptured(_)) => {}
                (_, probe, rung) => panic!("{path:?}, open {open}: {probe:?}, {rung:?}"),
            }
        }
    }
}

#[tokio::test]
async fn a_link_that_does_not_answer_holds_no_ring_up() {
    let contact = inside::contact(&shimmed());
    let rung = inside::asked_within(Duration::from_millis(20), &contact, Box::pin(pending()), "").await;
    assert!(matches!(rung, RingOutcome::SendFailed(_)), "{rung:?}");
}

#[test]
fn only_an_agent_behind_prism_stdio_has_a_channel() {
    let adapters = adapters(&Arc::default(), &WakeSettings::default());
    let channel = adapters.of(WakePath::Channel).unwrap();
    assert!(channel.attach(&agent("claude_code", json!({}))).is_none());
    assert!(channel.attach(&shimmed()).is_some());
}

#[test]
fn a_contact_is_of_one_adapter_alone() {
    let adapters = adapters(&Arc::default(), &WakeSettings::default());
    let wake = json!({ "opencode": { "url": "http://127.0.0.1:1", "session": "ses_1" } });
    let attached = adapters.attach(&agent("opencode", wake));
    let paths: Vec<WakePath> = attached.iter().map(|(path, _)| *path).collect();
    assert_eq!(
        paths,
        [WakePath::Wait, WakePath::Opencode, WakePath::Acp, WakePath::Hook, WakePath::Sse, WakePath::Piggyback]
    );
}

#[test]
fn what_an_agent_tells_wrongly_is_refused_with_what_to_say_instead() {
    let allowed = WakeSettings { tmux: true, ..WakeSettings::default() };
    let adapters = adapters(&Arc::default(), &allowed);
    let check = |wake: Value| adapters.check(wake.as_object().unwrap());
    for (wake, says) in [
        (json!({ "telepathy": {} }), "wake.telepathy is no wake path"),
        (json!({ "sse": {} }), "wake.sse takes nothing"),
        (json!({ "codex_app_server": 1 }), "must be an object with url, thread, secret, token_file"),
        (json!({ "codex_app_server": {} }), "wake.codex_app_server.url is missing"),
        (json!({ "codex_app_server": { "url": "ws://example.com:1" } }), "on this machine"),
        (json!({ "codex_app_server": { "url": "unix://rel" } }), "on this machine"),
        (json!({ "codex_app_server": { "url": "ws://127.0.0.1:1", "token_file": "t" } }), "whole path"),
        (json!({ "codex_app_server": { "url": "ws://127.0.0.1:1", "token": "t" } }), "token is not known"),
        (json!({ "opencode": { "url": "http://127.0.0.1:1" } }), "wake.opencode.session is missing"),
        (json!({ "opencode": { "url": "http://10.1.1.1:1", "session": "s" } }), "on this machine"),
        (json!({ "opencode": { "url": "http://127.0.0.1:1", "session": "../x" } }), "session"),
        (
            json!({ "opencode": { "url": "http://127.0.0.1:1", "session": "s", "password_env": "AWS_KEY" } }),
            "secrets = { NAME = \"env:AWS_KEY\" }",
        ),
        (json!({ "tmux": { "pane": "0" } }), "as in %3"),
    ] {
        let error = check(wake.clone()).expect_err(&wake.to_string());
        assert!(error.contains(says), "{wake}: {error}");
    }
    check(json!({ "codex_app_server": { "url": "unix:///run/x.sock", "thread": "t" }, "tmux": { "pane": "%3" } }))
        .unwrap();
}
