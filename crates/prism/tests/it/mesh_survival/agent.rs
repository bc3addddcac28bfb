//! One agent of many: it sends, drains and replies without end, and repeats what was not answered.

use std::{collections::HashMap, sync::Arc};

use hyper::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{AGENTS, Ledger, name, question};
use crate::{
    cycles::life::{Life, below},
    support::{
        Client, Modern,
        agents::{Agent, text},
    },
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Door {
    Hub,
    Own,
    Modern,
    Script,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// It says with each drain what it has: nothing comes twice.
    Cursor,
    /// It does not: what comes twice says so.
    Plain,
}

#[derive(Clone)]
pub(super) struct Player {
    number: usize,
    mode: Mode,
    agent: Agent,
    life: Arc<Life>,
    ledger: Arc<Ledger>,
    /// What it has replied to, and with which id: a signal that comes twice is not a second question.
    replied: HashMap<String, String>,
    cursor: Value,
}

impl Mode {
    pub(super) fn of(agent: usize) -> Self {
        if agent < 8 { Self::Cursor } else { Self::Plain }
    }
}

impl Player {
    pub(super) async fn start(
        number: usize,
        door: Door,
        mode: Mode,
        hub: &Client,
        life: Arc<Life>,
        ledger: Arc<Ledger>,
    ) -> Self {
        let mut agent = match door {
            Door::Hub => Agent::of_session(hub.initialize().await),
            Door::Own => Agent::of_session(hub.at("/prism/mcp").initialize().await),
            Door::Modern => Agent::of_modern(Modern::new(hub.clone()), hub),
            Door::Script => Agent::of_script(hub),
        };
        agent.start(json!({"agent": name(number)})).await;
        Self { number, mode, agent, life, ledger, replied: HashMap::new(), cursor: Value::Null }
    }

    /// Sends, drains and replies without end. When it is time to rest, it only drains and replies.
    pub(super) async fn play(mut self) {
        loop {
            if self.life.is_working() {
                self.send().await;
            }
            self.drain().await;
            self.life.answered(self.number);
        }
    }

    async fn send(&mut self) {
        let mut to = usize::try_from(below(AGENTS as u64 - 1)).expect("a small number");
        to += usize::from(to >= self.number);
        let (id, asks) = (Uuid::now_v7().to_string(), below(2) == 0);
        let sent = self.surely("send", question(to, &id, asks)).await;
        assert_eq!(sent["signal_id"], id);
        self.ledger.sent(&id, to, asks);
    }

    /// Takes a page, and replies to what asks for it.
    async fn drain(&mut self) {
        let mut asked = json!({"limit": 1 + below(20)});
        if self.mode == Mode::Cursor && !self.cursor.is_null() {
            asked["after"] = self.cursor.clone();
        }
        let page = self.surely("pending", asked).await;
        if let Some(cursor) = page.get("cursor") {
            self.cursor = cursor.clone();
        }
        for signal in page["signals"].as_array().expect("a page has signals") {
            let (id, body) = (text(&signal["signal_id"]), text(&signal["body"]));
            assert!(body.starts_with(&format!("for {}: ", self.number)), "a signal of another: {signal}");
            let again = signal["redelivered"] == true;
            let before = self.ledger.drained(&id, again);
            assert!(before == 0 || (self.mode == Mode::Plain && again), "agent {} had it: {signal}", self.number);
            if signal.get("reply_with").is_some() {
                self.reply(&id, &text(&signal["from"])).await;
            }
        }
    }

    async fn reply(&mut self, to: &str, from: &str) {
        if self.replied.contains_key(to) {
            return;
        }
        let id = Uuid::now_v7().to_string();
        self.replied.insert(to.to_owned(), id.clone());
        let creditor: usize = from.strip_prefix("agent-").and_then(|number| number.parse().ok()).expect("an agent");
        let body = format!("for {creditor}: {id}");
        self.surely("reply", json!({"to_signal": to, "body": body, "signal_id": id})).await;
        self.ledger.sent(&id, creditor, false);
        self.ledger.replied();
    }

    /// Calls a verb until it is answered: by this daemon, or one of the next.
    async fn surely(&self, verb: &str, mut arguments: Value) -> Value {
        if !self.agent.has_session() {
            arguments["session"] = self.agent.session.clone().into();
        }
        loop {
            let since = self.life.now();
            match self.agent.survive(verb, arguments.clone()).await {
                Some(Ok(done)) => return done,
                Some(Err(why)) => panic!("agent {}: {verb} {arguments}: {why}", self.number),
                None => {
                    assert!(self.life.was_killed(since), "no answer to {verb}, and the daemon lives");
                    self.ledger.repeated();
                    self.life.is_back().await;
                }
            }
        }
    }

    /// Keeps its stream open, so that bells ring on it.
    pub(super) fn ears(&self) -> impl Future<Output = ()> + 'static {
        let (client, life) = (self.agent.client().clone(), self.life.clone());
        async move {
            loop {
                let since = life.now();
                if let Ok(reply) = client.request(Method::GET).attempt().await {
                    assert_eq!(reply.status, 200);
                    let mut events = reply.events();
                    while let Ok(Some(_)) = events.attempt_next().await {}
                }
                assert!(life.was_killed(since), "the stream ended, and the daemon lives");
                life.is_back().await;
            }
        }
    }
}
