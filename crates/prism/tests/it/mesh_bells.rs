//! Bells as agents hear them, on real sockets: one for a cycle, none for others, and what becomes of an agent whose stream
//! dies without a word (M-04, M-09).

mod relay;

use std::{collections::HashSet, time::Duration};

use serde_json::{Value, json};
use tokio::task::JoinSet;

use self::relay::Relay;
use crate::support::{
    Client, Daemon, SUBSCRIPTION_ID,
    agents::{Agent, At, Ears, PENDING, mesh, text},
    until,
};

/// A burst of signals, and those who have nothing to do with it.
const BURST: usize = 1000;
const OTHERS: usize = 20;
/// The line that a tool's result carries.
const CARRIED: &str =
    "Signal from donna: Question. Use prism_signals_pending to read; prism_signal_reply to reply if needed.";

async fn send(from: &Agent, to: &str, kind: &str) -> Value {
    from.does("send", json!({"to": to, "type": kind, "body": "hush-hush"})).await
}

/// An agent whose stream is open, and known to be.
async fn listening(daemon: &Daemon, at: At, name: &str) -> (Agent, Ears) {
    let agent = daemon.agent(at, name).await;
    let stream = agent.listen().await;
    agent.until_support("full").await;
    (agent, stream)
}

// M-03, M-04, M-05, M-07: on the GET stream of a session, whether it was open before the start or not.
#[tokio::test]
async fn the_bell_rings_once_until_the_drain_and_has_no_content() {
    for at in [At::Hub, At::Own] {
        for early in [true, false] {
            let daemon = mesh("").await;
            let donna = daemon.agent(At::Hub, "donna").await;
            let (mut sable, mut stream);
            if early {
                sable = daemon.window(at).await;
                stream = sable.listen().await;
                sable.start(json!({"agent": "sable"})).await;
            } else {
                sable = daemon.agent(at, "sable").await;
                stream = sable.listen().await;
            }
            sable.until_support("full").await;
            for _ in 0..2 {
                for kind in ["Question", "StatusUpdate", "Acknowledgment"] {
                    send(&donna, "sable", kind).await;
                }
                stream.bell().await;
                sable.until_bell("sse", "coalesced").await;
                assert_eq!(sable.seen().await["bell"]["outstanding"], true);
                let peek = sable.does("pending", json!({"peek": true})).await;
                assert_eq!(peek["remaining"], 0, "{peek}");
                send(&donna, "sable", "Question").await;
                assert_eq!(sable.drain().await.len(), 4);
                sable.until_bell("sse", "confirmed").await;
                assert_eq!(sable.seen().await["bell"]["outstanding"], false);
            }
            // Had another one rung, it would be heard before this.
            if at == At::Hub {
                stream.nothing(&donna).await;
            }
            let bells = sable.bells().await;
            let of = |result: &str| bells.iter().filter(|(_, of)| of == result).count();
            assert_eq!((of("rang"), of("coalesced"), of("confirmed")), (2, 6, 2), "{at:?} {early}: {bells:?}");
        }
    }
}

// M-14
#[tokio::test]
async fn the_bell_rings_on_a_modern_listen_for_the_agents_session() {
    let daemon = mesh("").await;
    let donna = daemon.agent(At::Modern, "donna").await;
    let sable = daemon.agent(At::Modern, "sable").await;
    let mut streams = Vec::new();
    for agent in [&donna, &sable] {
        let uri = format!("{PENDING}/{}", agent.session);
        let wanted = json!({"resourceSubscriptions": [uri], "toolsListChanged": true});
        let mut stream = daemon.modern_hub().listen(json!(text(&json!(agent.session))), wanted).await;
        assert_eq!(stream.message().await["method"], "notifications/subscriptions/acknowledged");
        agent.until_support("full").await;
        streams.push(stream);
    }
    for _ in 0..3 {
        send(&donna, "sable", "Question").await;
    }
    let bell = streams[1].message().await;
    let params = json!({"uri": format!("{PENDING}/{}", sable.session), "_meta": {SUBSCRIPTION_ID: sable.session}});
    let whole = json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": params});
    assert_eq!(bell, whole);
    sable.until_bell("sse", "coalesced").await;
    // That was the only one, and nobody else heard it.
    daemon.hub().initialize().await.text("d__change", json!({"what": "tools"})).await;
    for stream in &mut streams {
        assert_eq!(stream.message().await["method"], "notifications/tools/list_changed");
    }
    assert_eq!(sable.drain().await.len(), 3);
    sable.until_bell("sse", "confirmed").await;
}

// M-06: news of Prism's own are drained like the rest, and never ring.
#[tokio::test]
async fn system_types_never_ring() {
    let daemon = mesh("").await;
    let (mut sable, mut stream) = listening(&daemon, At::Hub, "sable").await;
    sable.start(json!({"agent": "sable", "workspace": "/w"})).await;
    sable.until_support("full").await;
    let mut peer = daemon.window(At::Hub).await;
    peer.start(json!({"agent": "donna", "workspace": "/w"})).await;
    peer.does("wrap", json!({})).await;
    until("both are filtered", async || {
        sable.bells().await.iter().filter(|(_, result)| result == "filtered").count() == 2
    })
    .await;
    stream.nothing(&sable).await;
    let kinds: Vec<String> = sable.drain().await.iter().map(|signal| text(&signal["type"])).collect();
    assert_eq!(kinds, ["PeerJoined", "PeerLeft"]);
    assert_eq!(sable.bells().await.len(), 2);
}

// M-04
#[tokio::test]
async fn a_burst_is_one_bell_drained_in_pages_and_nobody_else_notices() {
    for limit in [200, 20] {
        let daemon = mesh("climb_after = \"10m\"").await;
        let mut others = Vec::new();
        for number in 0..OTHERS {
            others.push(listening(&daemon, At::Hub, &format!("other-{number}")).await);
        }
        let (sable, mut stream) = listening(&daemon, At::Hub, "sable").await;
        let mut senders = JoinSet::new();
        for sender in 0..10 {
            let donna = daemon.agent(At::Hub, &format!("donna-{sender}")).await;
            senders.spawn(async move {
                for number in 0..BURST / 10 {
                    let body = format!("{sender}.{number}");
                    donna.does("send", json!({"to": "sable", "type": "Question", "body": body})).await;
                }
            });
        }
        senders.join_all().await;
        stream.bell().await;
        assert_eq!(sable.seen().await["pending"], BURST);
        let (mut seen, mut after, mut pages) = (HashSet::new(), None, 0);
        while seen.len() < BURST {
            let mut asked = json!({"limit": limit});
            if let Some(after) = after {
                asked["after"] = after;
            }
            let mut page = sable.does("pending", asked).await;
            let signals = page["signals"].as_array().unwrap();
            assert_eq!(signals.len(), limit, "{page}");
            for signal in signals {
                assert!(seen.insert(text(&signal["body"])), "twice: {signal}");
                assert_eq!(signal.get("redelivered"), None, "{signal}");
            }
            pages += 1;
            assert_eq!(page["remaining"], BURST - seen.len());
            after = Some(page["cursor"].take());
        }
        assert_eq!(pages, BURST / limit);
        sable.until_bell("sse", "confirmed").await;
        // One bell for all of it: the next thing on its stream, and on all others, is this.
        stream.nothing(&sable).await;
        for (_, stream) in &mut others {
            stream.mark().await;
        }
        for (other, _) in &others {
            assert_eq!(other.bells().await, []);
        }
        let rang = r#"prism_mesh_bells_total{path="sse",result="rang"}"#;
        assert_eq!(daemon.metric(rang).await, Some(1), "one bell, {limit} a page");
        let coalesced = r#"prism_mesh_bells_total{path="sse",result="coalesced"}"#;
        assert_eq!(daemon.metric(coalesced).await, Some(BURST as u64 - 1));
    }
}

/// Sable, behind a relay that can go dark, and Donna, who is not.
struct Stage {
    daemon: Daemon,
    donna: Agent,
    sable: Agent,
    relay: Relay,
}

impl Stage {
    async fn open() -> Self {
        let daemon = mesh("ping_every = \"250ms\"").await;
        let relay = Relay::start(daemon.port()).await;
        let donna = daemon.agent(At::Hub, "donna").await;
        let sable = daemon.agent(At::Hub, "sable").await;
        Self { daemon, donna, sable, relay }
    }

    /// Opens Sable's stream through the relay, and answers pings for as long as it can.
    async fn listen(&self) -> JoinSet<()> {
        let client = Client::new(self.relay.place(), "/mcp", Some(self.daemon.token()));
        let stream = Ears::open(client.with_session(self.sable.client().session())).await;
        let mut ears = JoinSet::new();
        ears.spawn(stream.answer_pings());
        self.sable.until_support("full").await;
        ears
    }

    /// The stream is dead, and known to be: what comes now is captured by nobody until Sable calls something, or listens.
    async fn is_dead(&self) {
        self.sable.until_support("degraded").await;
        let changes = self.sable.seen().await["support_changes"].clone();
        let told: Vec<String> =
            changes.as_array().unwrap().iter().map(|change| text(&change["surface_support"])).collect();
        assert_eq!(told.last().map(String::as_str), Some("degraded"), "{changes}");
        assert_eq!(self.sable.seen().await["connection"], "disconnected");
        let sent = send(&self.donna, "sable", "Question").await;
        assert_eq!(sent["recipient_state"]["surface_support"], "degraded", "{sent}");
        self.sable.until_bell("sse", "uncaptured").await;
        // Its next call, of whichever server, carries the bell; the one after that does not.
        let carried = self.sable.client().result("tools/call", echo()).await;
        let blocks = carried["content"].as_array().unwrap();
        let words: Vec<&str> = blocks.iter().map(|block| block["text"].as_str().unwrap()).collect();
        assert_eq!(words, ["x", CARRIED]);
        self.sable.until_bell("piggyback", "rang").await;
        assert_eq!(self.sable.client().text("d__echo", json!({"text": "x"})).await, "x");
        let plain = self.sable.client().result("tools/call", echo()).await;
        assert_eq!(plain["content"].as_array().unwrap().len(), 1, "{plain}");
        // Nobody has drained it. More comes, and is coalesced.
        for _ in 0..4 {
            send(&self.donna, "sable", "StatusUpdate").await;
        }
        self.sable.until_bell("piggyback", "coalesced").await;
    }

    /// It comes back: it can be woken again, and hears one bell for all that has gathered.
    async fn comes_back(&self) {
        let mut stream = self.sable.listen().await;
        self.sable.until_support("full").await;
        stream.bell().await;
        until("it emits", async || self.sable.seen().await["connection"] == "emitting").await;
        stream.nothing(&self.donna).await;
        assert_eq!(self.sable.drain().await.len(), 5);
        self.sable.until_bell("sse", "confirmed").await;
        send(&self.donna, "sable", "Question").await;
        stream.bell().await;
    }
}

fn echo() -> Value {
    json!({"name": "d__echo", "arguments": {"text": "x"}})
}

// M-09: its process is gone, and its socket with it.
#[tokio::test]
async fn a_stream_that_is_reset_demotes_its_agent_until_it_is_back() {
    let stage = Stage::open().await;
    let ears = stage.listen().await;
    stage.relay.reset();
    drop(ears);
    stage.is_dead().await;
    stage.comes_back().await;
}

// M-09: the sockets stay open, and nothing goes through them any more.
#[tokio::test]
async fn a_stream_that_goes_dark_demotes_its_agent_until_it_is_back() {
    let stage = Stage::open().await;
    let ears = stage.listen().await;
    // It has answered before: who never did is not known to be silent.
    stage.relay.until_carried(3).await;
    let dark = stage.relay.go_dark();
    stage.is_dead().await;
    assert!(dark.elapsed() < Duration::from_secs(10), "within a few pings, not with a time-out of the system");
    stage.comes_back().await;
    drop(ears);
}

// M-09: bells that nobody hears demote, one that is heard promotes.
#[tokio::test]
async fn unheard_bells_demote_and_a_heard_one_promotes() {
    let daemon = mesh("climb_after = \"50ms\"\nconfirm_within = \"300ms\"").await;
    let donna = daemon.agent(At::Hub, "donna").await;
    let (sable, mut stream) = listening(&daemon, At::Hub, "sable").await;
    let first = send(&donna, "sable", "Question").await;
    stream.bell().await;
    sable.until_support("degraded").await;
    let seen = sable.seen().await;
    assert_eq!(seen["connection"], "emitting", "the stream is there all the same: {seen}");
    let owed = |signal: Value| {
        let script = daemon.script();
        async move {
            let told = script.does("obligations", json!({"agent": "sable"})).await;
            let mut owed = told["obligations"].as_array().unwrap().iter();
            owed.find(|owed| owed["signal_id"] == signal["signal_id"]).cloned().unwrap_or_default()
        }
    };
    until("its bucket has changed", async || owed(first.clone()).await["sla_exempt"] == true).await;
    // A drain this late is no answer to the bell. The next bell is heard.
    assert_eq!(sable.drain().await.len(), 1);
    assert_eq!(sable.support().await, "degraded");
    send(&donna, "sable", "Question").await;
    stream.bell().await;
    sable.drain().await;
    sable.until_support("full").await;
    sable.until_bell("sse", "confirmed").await;
    until("its bucket has changed", async || owed(first.clone()).await["sla_exempt"] == false).await;
    let changes = sable.seen().await["support_changes"].clone();
    let told: Vec<String> = changes.as_array().unwrap().iter().map(|change| text(&change["surface_support"])).collect();
    assert_eq!(told, ["full", "degraded", "full"]);
}

// M-13: what an agent calls of the mesh itself brings it the bell, too; what tells of bells does not.
#[tokio::test]
async fn the_meshs_own_results_carry_the_bell_once() {
    let daemon = mesh("").await;
    let donna = daemon.agent(At::Hub, "donna").await;
    for (verb, arguments) in
        [("send", json!({"to": "donna", "type": "StatusUpdate", "body": "b"})), ("obligations", json!({}))]
    {
        let sable = daemon.agent(At::Own, "sable").await;
        sable.drain().await;
        send(&donna, "sable", "Question").await;
        assert!(sable.does("diagnostics", json!({})).await["bell"].is_object());
        let told = sable.does(verb, arguments.clone()).await;
        assert_eq!(told["bell"], CARRIED, "{verb}: {told}");
        let told = sable.does(verb, arguments).await;
        assert_eq!(told.get("bell"), None, "{verb}: {told}");
        sable.until_bell("piggyback", "rang").await;
        sable.drain().await;
        sable.until_bell("piggyback", "confirmed").await;
    }
}
