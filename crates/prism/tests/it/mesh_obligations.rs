//! What agents owe each other, through the whole daemon: one test for each row of the table in M-10, and what is
//! known of the bells that were rung for it (M-08).

use hyper::Method;
use serde_json::{Value, json};

use crate::support::{
    Daemon,
    agents::{Agent, At, mesh, text},
    until,
};

struct Stage {
    daemon: Daemon,
    donna: Agent,
    sable: Agent,
}

impl Stage {
    async fn open(settings: &str) -> Self {
        let daemon = mesh(settings).await;
        let (donna, sable) = (daemon.agent(At::Hub, "donna").await, daemon.agent(At::Own, "sable").await);
        Self { daemon, donna, sable }
    }

    async fn send(&self, kind: &str) -> String {
        text(&self.donna.does("send", json!({"to": "sable", "type": kind, "body": "b"})).await["signal_id"])
    }

    /// What Sable owes for a signal, over or not. Somebody else looks: her own look would bring her the bell.
    async fn owed(&self, signal: &str) -> Value {
        for state in [None, Some("done"), Some("waived")] {
            let mut asked = json!({"agent": "sable"});
            if let Some(state) = state {
                asked["state"] = state.into();
            }
            let told = self.daemon.script().does("obligations", asked).await;
            let owed = told["obligations"].as_array().unwrap().iter().find(|owed| owed["signal_id"] == signal).cloned();
            if let Some(owed) = owed {
                return owed;
            }
        }
        Value::Null
    }

    async fn state(&self, signal: &str) -> String {
        text(&self.owed(signal).await["state"])
    }

    /// A row that asks for action and a reply, and ends with this kind of reply and none of these.
    async fn replied(&self, kind: &str, ends: &str, not: &[&str]) {
        let signal = self.send(kind).await;
        let owed = self.owed(&signal).await;
        assert_eq!((&owed["action_required"], &owed["reply_required"]), (&json!(true), &json!(true)), "{owed}");
        assert_eq!((&owed["debtor"], &owed["creditor"]), (&json!("sable"), &json!("donna")));
        assert_eq!((&owed["state"], &owed["type"]), (&json!("open"), &json!(kind)));
        assert!(owed["due_at"].is_string(), "{owed}");
        self.sable.drain().await;
        let owed = self.owed(&signal).await;
        assert_eq!(owed["state"], "heard", "a drain does not end it: {owed}");
        assert!(owed["heard_at"].is_string() && owed["closed_at"].is_null(), "{owed}");
        for kind in not {
            self.sable.does("reply", json!({"to_signal": signal, "type": kind, "body": "b"})).await;
            assert_eq!(self.state(&signal).await, "heard", "{kind} does not end it");
        }
        // Nobody else ends it, and no signal that is about something else.
        let why = self.donna.refused("reply", json!({"to_signal": signal, "body": "b"})).await;
        assert!(why.contains("not_yours"), "{why}");
        self.sable.does("send", json!({"to": "donna", "type": ends, "body": "b"})).await;
        assert_eq!(self.state(&signal).await, "heard");
        let roster = self.donna.does("status", json!({})).await;
        assert_eq!(roster["agents"][1]["owes"], 1, "{roster}");
        self.sable.does("reply", json!({"to_signal": signal, "body": "done"})).await;
        let owed = self.owed(&signal).await;
        assert_eq!(owed["state"], "done", "{owed}");
        assert!(owed["closed_at"].is_string(), "{owed}");
        let replies = self.donna.drain().await;
        assert_eq!(replies.last().unwrap()["type"], ends);
        // By its name, as by leaving it out; and with a plain send.
        for verb in ["reply", "send"] {
            let signal = self.send(kind).await;
            let reply = match verb {
                "reply" => json!({"to_signal": signal, "type": ends, "body": "done"}),
                _ => json!({"to": "donna", "type": ends, "reply_to": signal, "body": "done"}),
            };
            self.sable.does(verb, reply).await;
            assert_eq!(self.state(&signal).await, "done", "{verb}");
        }
    }

    /// A row that asks for nothing and ends on drain.
    async fn drained(&self, kind: &str) {
        let signal = self.send(kind).await;
        let owed = self.owed(&signal).await;
        assert_eq!((&owed["action_required"], &owed["reply_required"]), (&json!(false), &json!(false)), "{owed}");
        assert_eq!((&owed["state"], &owed["due_at"]), (&json!("open"), &Value::Null), "{owed}");
        self.sable.does("pending", json!({"peek": true})).await;
        assert_eq!(self.state(&signal).await, "open", "a look is no drain");
        self.sable.drain().await;
        let owed = self.owed(&signal).await;
        assert_eq!(owed["state"], "done", "{owed}");
        assert!(owed["closed_at"].is_string(), "{owed}");
    }

    /// A row that makes nothing owed, is filtered at the bell, and drained like the rest.
    async fn filtered(&self, kind: &str) {
        self.donna.until_bell("sse", "filtered").await;
        let all = self.daemon.script().does("obligations", json!({"of": "all"})).await;
        assert_eq!(all["obligations"], json!([]));
        assert_eq!(self.donna.drain().await.iter().filter(|signal| signal["type"] == kind).count(), 1);
        let over = self.daemon.script().does("obligations", json!({"of": "all", "state": "done"})).await;
        assert_eq!(over["obligations"], json!([]));
    }
}

// M-10
#[tokio::test]
async fn row_question() {
    Stage::open("").await.replied("Question", "Answer", &["StatusUpdate", "Acknowledgment", "Question"]).await;
}

// M-10
#[tokio::test]
async fn row_task_assigned() {
    let not = ["Acknowledgment", "StatusUpdate", "Answer", "ReviewCompleted"];
    Stage::open("").await.replied("TaskAssigned", "TaskCompleted", &not).await;
}

// M-10
#[tokio::test]
async fn row_review_requested() {
    let not = ["Acknowledgment", "StatusUpdate", "Answer", "TaskCompleted"];
    Stage::open("").await.replied("ReviewRequested", "ReviewCompleted", &not).await;
}

// M-10
#[tokio::test]
async fn row_status_update() {
    Stage::open("").await.drained("StatusUpdate").await;
}

// M-10
#[tokio::test]
async fn row_acknowledgment() {
    Stage::open("").await.drained("Acknowledgment").await;
}

async fn with_workspace(stage: &mut Stage) {
    for (agent, name) in [(&mut stage.donna, "donna"), (&mut stage.sable, "sable")] {
        agent.does("wrap", json!({})).await;
        agent.start(json!({"agent": name, "workspace": "/w"})).await;
    }
}

// M-06, M-10
#[tokio::test]
async fn row_peer_joined() {
    let mut stage = Stage::open("").await;
    with_workspace(&mut stage).await;
    stage.filtered("PeerJoined").await;
}

// M-06, M-10
#[tokio::test]
async fn row_peer_left() {
    let mut stage = Stage::open("").await;
    with_workspace(&mut stage).await;
    stage.donna.drain().await;
    stage.sable.does("wrap", json!({})).await;
    stage.filtered("PeerLeft").await;
}

// M-06, M-10
#[tokio::test]
async fn row_master_preempted() {
    let mut stage = Stage::open("").await;
    stage.donna = stage.daemon.agent(At::Hub, "donna").await;
    stage.filtered("MasterPreempted").await;
}

// M-08: every attempt counts, and of the rings only those that rang.
#[tokio::test]
async fn an_obligation_knows_the_bells_that_were_rung_for_it() {
    let stage = Stage::open("").await;
    let unheard = stage.send("Question").await;
    until("it is written down", async || stage.owed(&unheard).await["wake_attempt_count"] == 1).await;
    let owed = stage.owed(&unheard).await;
    assert_eq!((&owed["wake_ring_count"], &owed["last_wake_result"]), (&json!(0), &json!("uncaptured")), "{owed}");
    assert_eq!(owed["sla_exempt"], true, "nobody could wake it");
    stage.sable.drain().await;

    let mut stream = stage.sable.listen().await;
    stage.sable.until_support("full").await;
    let [rang, coalesced] = [stage.send("Question").await, stage.send("TaskAssigned").await];
    stream.bell().await;
    for (signal, rings, result) in [(&rang, 1, "rang"), (&coalesced, 0, "coalesced")] {
        until("it is written down", async || stage.owed(signal).await["wake_attempt_count"] == 1).await;
        let owed = stage.owed(signal).await;
        assert_eq!((&owed["wake_ring_count"], &owed["last_wake_result"]), (&json!(rings), &json!(result)), "{owed}");
        assert_eq!((&owed["last_wake_path"], &owed["sla_exempt"]), (&json!("sse"), &json!(false)), "{owed}");
        assert!(owed["last_wake_at"].is_string());
    }
    // The drain confirms the bell; that is not another attempt.
    stage.sable.drain().await;
    stage.sable.until_bell("sse", "confirmed").await;
    let owed = stage.owed(&rang).await;
    assert_eq!((&owed["wake_attempt_count"], &owed["wake_ring_count"]), (&json!(1), &json!(1)), "{owed}");
    assert_eq!((&owed["state"], &owed["last_wake_result"]), (&json!("heard"), &json!("rang")), "{owed}");
}

// M-10: what takes too long is overdue, and the person is told.
#[tokio::test]
async fn what_takes_too_long_is_overdue_until_it_is_done() {
    let stage = Stage::open("question_within = \"1s\"").await;
    let [late, told] = [stage.send("Question").await, stage.send("StatusUpdate").await];
    assert_eq!(stage.owed(&late).await["overdue"], false);
    until("it is overdue", async || stage.owed(&late).await["overdue"] == true).await;
    until("and that was told", async || stage.owed(&late).await["escalated_at"].is_string()).await;
    assert_eq!(stage.owed(&told).await["overdue"], false);
    assert_eq!(stage.daemon.metric(r#"prism_mesh_became_overdue_total{surface_support="degraded"}"#).await, Some(1));
    stage.sable.does("reply", json!({"to_signal": late, "body": "sorry"})).await;
    assert_eq!(stage.state(&late).await, "done");
}

// R-31: who waits for it is told, and can do something about it.
#[tokio::test]
async fn who_has_asked_is_told_that_it_takes_too_long() {
    let stage = Stage::open("question_within = \"300ms\"").await;
    let late = stage.send("Question").await;
    until("donna is told", async || stage.donna.seen().await["pending"] == 1).await;
    let told = stage.donna.drain().await;
    assert_eq!((&told[0]["type"], &told[0]["from"]), (&json!("StatusUpdate"), &json!("prism")), "{told:?}");
    let body = text(&told[0]["body"]);
    assert!(body.contains(&late) && body.contains("sable") && body.contains("prism_signal_waive"), "{body}");
    let status = stage.daemon.client_at("/status").request(Method::GET).send().await.json().await;
    let sable = status["mesh"]["agents"].as_array().unwrap().iter().find(|one| one["agent"] == "sable").unwrap();
    assert_eq!((&sable["owes"], &sable["overdue"]), (&json!(1), &json!(1)), "{status}");
    // The person, who has asked nobody, lets her off.
    let waived = stage.daemon.script().does("waive", json!({"signal_id": late, "reason": "asked elsewhere"})).await;
    assert_eq!(waived["waived"], true);
    let owed = stage.owed(&late).await;
    assert_eq!((&owed["state"], &owed["closed_why"]), (&json!("waived"), &json!("asked elsewhere")), "{owed}");
    assert!(owed["closed_at"].is_string(), "{owed}");
    for agent in [&stage.donna, &stage.sable] {
        let told = agent.drain().await;
        let last = told.last().unwrap();
        assert!(text(&last["body"]).contains("person waives") && text(&last["body"]).contains("elsewhere"), "{told:?}");
    }
}

// R-31: what is owed by whoever is gone is shown where a person looks, and so is what the person owes.
#[tokio::test]
async fn debts_are_shown_of_who_is_gone_and_of_the_person() {
    let stage = Stage::open("question_within = \"300ms\"").await;
    let onyx = stage.daemon.agent(At::Hub, "onyx").await;
    let owed = stage.send("Question").await;
    for agent in [&stage.sable, &onyx] {
        agent.does("wrap", json!({})).await;
    }
    stage.donna.does("send", json!({"to": "person", "type": "Question", "body": "b"})).await;
    let status = async || stage.daemon.client_at("/status").request(Method::GET).send().await.json().await;
    until("both are overdue", async || {
        let mesh = status().await["mesh"].take();
        mesh["person"] == json!({"owes": 1, "overdue": 1})
            && mesh["agents"].as_array().unwrap().iter().any(|one| one["agent"] == "sable" && one["overdue"] == 1)
    })
    .await;
    let shown = status().await;
    let names: Vec<String> =
        shown["mesh"]["agents"].as_array().unwrap().iter().map(|one| text(&one["agent"])).collect();
    assert_eq!(names, ["donna", "sable"], "who owes nothing and is gone is not there: {shown}");
    stage.daemon.script().does("waive", json!({"signal_id": owed, "reason": "she has left"})).await;
    assert_eq!(status().await["mesh"]["agents"].as_array().map(Vec::len), Some(1));
}

// R-31: what was read and will not be done is ended by who owes it, or to whom; and by nobody else.
#[tokio::test]
async fn what_was_read_is_declined_or_waived_with_a_reason() {
    let stage = Stage::open("").await;
    let onyx = stage.daemon.agent(At::Hub, "onyx").await;
    for (by, verb, other) in
        [(&stage.sable, "sable declines", &stage.donna), (&stage.donna, "donna waives", &stage.sable)]
    {
        let signal = stage.send("TaskAssigned").await;
        stage.sable.drain().await;
        let asked = json!({"signal_id": signal, "reason": "no longer needed"});
        let why = onyx.refused("waive", asked.clone()).await;
        assert!(why.contains("not_yours"), "{why}");
        let why = by.refused("waive", json!({"signal_id": signal, "reason": " "})).await;
        assert!(why.contains("bad_arguments"), "{why}");
        assert_eq!(stage.state(&signal).await, "heard");
        by.does("waive", asked.clone()).await;
        assert_eq!(stage.state(&signal).await, "waived");
        let why = by.refused("waive", asked).await;
        assert!(why.contains("already_gone"), "{why}");
        let told = other.drain().await;
        assert!(text(&told.last().unwrap()["body"]).contains(verb), "{told:?}");
    }
    let roster = stage.donna.does("status", json!({})).await;
    assert!(roster["agents"].as_array().unwrap().iter().all(|agent| agent["owes"] == 0), "{roster}");
}
