//! Clients over HTTP that call without end, all with the same ids, and listen. Each judges what it gets: its own answers,
//! each once; an error only for what was in flight; its session for ever.

use std::{collections::HashSet, sync::Arc};

use hyper::Method;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::life::{Life, below};
use crate::support::{Client, Event, Events, Lost, Reply, result_text, soon};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// On the child that all share.
    Sharing,
    Hub,
    /// On a child of its own, which logs for nobody else.
    Alone,
}

pub(super) struct Caller {
    number: usize,
    kind: Kind,
    client: Client,
    life: Arc<Life>,
    /// The log notes it has had, on whichever stream.
    notes: watch::Sender<HashSet<String>>,
}

/// One call, whose text nobody else says.
struct Call {
    id: u64,
    tool: String,
    arguments: Value,
    text: String,
}

impl Caller {
    pub(super) fn new(number: usize, kind: Kind, client: Client, life: Arc<Life>) -> Self {
        Self { number, kind, client, life, notes: watch::Sender::default() }
    }

    /// Calls without end, several at a time.
    pub(super) async fn work(self: Arc<Self>) {
        for round in 0_u64.. {
            self.life.turn().await;
            let since = self.life.now();
            let call = |id, tool: &str, arguments| self.call_of(round, id, tool, arguments);
            let (echo, slow) = (call(1, "echo", json!({})), call(2, "slow", json!({"ms": 50 + below(150)})));
            let progress = call(3, "progress", json!({"steps": 4, "ms": 15}));
            // Notes that nobody but its own client may see, or that all hear of.
            let note = match self.kind {
                Kind::Alone => call(4, "log", json!({})),
                _ if self.number == 0 => call(4, "change", json!({"what": "tools"})),
                _ => call(4, "echo", json!({})),
            };
            let made = tokio::join!(self.call(&echo), self.call(&slow), self.call(&progress), self.call(&note));
            if self.kind == Kind::Alone && made.3 {
                let mut notes = self.notes.subscribe();
                soon("the note of an answered call is heard", async {
                    tokio::select! {
                        _ = notes.wait_for(|notes| notes.contains(&note.text)) => {}
                        () = self.life.killed(since) => {}
                    }
                })
                .await;
            }
        }
    }

    fn call_of(&self, round: u64, id: u64, tool: &str, mut arguments: Value) -> Call {
        let text = format!("{}{round}.{id}", mark(self.number));
        arguments["text"] = text.clone().into();
        let prefix = match (self.kind, id % 2) {
            (Kind::Hub, 0) => "d__",
            (Kind::Hub, _) => "e__",
            _ => "",
        };
        Call { id, tool: format!("{prefix}{tool}"), arguments, text }
    }

    /// Makes a call, once. Tells whether it was answered; if not, the daemon died over it.
    async fn call(&self, call: &Call) -> bool {
        loop {
            let since = self.life.now();
            let mut cursor = None;
            match self.attempt(call, &mut cursor).await {
                Ok(()) => {
                    self.life.answered(self.number);
                    return true;
                }
                Err(lost) => {
                    assert!(self.life.was_killed(since), "{}: {lost:?}, and the daemon lives", call.text);
                    self.life.is_back().await;
                    if lost == Lost::Broken {
                        self.life.lost();
                        if let Some(cursor) = cursor {
                            self.ask_for_the_rest(call, &cursor).await;
                        }
                        return false;
                    }
                }
            }
        }
    }

    async fn attempt(&self, call: &Call, cursor: &mut Option<String>) -> Result<(), Lost> {
        let meta = json!({"progressToken": call.id});
        let params = json!({"name": call.tool, "arguments": call.arguments, "_meta": meta});
        let message = json!({"jsonrpc": "2.0", "id": call.id, "method": "tools/call", "params": params});
        let reply = self.client.request(Method::POST).body(message.to_string()).attempt().await?;
        let reply = self.taken(reply).await?;
        let answer = match reply.is_stream() {
            true => self.last_of(reply.events(), call, cursor).await?,
            false => serde_json::from_str(&reply.attempt_text().await?).expect("an answer is JSON"),
        };
        self.judge(call, &answer);
        Ok(())
    }

    /// The daemon knows the session, whichever daemon it is.
    async fn taken(&self, reply: Reply) -> Result<Reply, Lost> {
        match reply.status {
            200 => Ok(reply),
            status => panic!("{}refused with {status}: {}", mark(self.number), reply.attempt_text().await?),
        }
    }

    /// Reads the stream of a call: its progress, step by step, and its answer.
    async fn last_of(&self, mut events: Events, call: &Call, cursor: &mut Option<String>) -> Result<Value, Lost> {
        let mut steps = 0;
        while let Some(event) = events.attempt_next().await? {
            cursor.clone_from(&event.id);
            if event.data.is_empty() {
                continue;
            }
            let message = event.json();
            match message["method"].as_str() {
                Some("notifications/progress") => {
                    steps += 1;
                    let params = &message["params"];
                    let told = (params["progressToken"].as_u64(), params["progress"].as_u64(), &params["message"]);
                    assert_eq!(told, (Some(call.id), Some(steps), &json!(call.text)));
                }
                Some(_) => self.hear(&message),
                None => {
                    let wanted = call.arguments["steps"].as_u64().unwrap_or_default();
                    assert_eq!(steps, wanted, "{}: all steps are told", call.text);
                    assert_eq!(events.attempt_next().await, Ok(None), "{}: the answer is the last event", call.text);
                    return Ok(message);
                }
            }
        }
        panic!("{}: the stream ended without an answer", call.text)
    }

    fn judge(&self, call: &Call, answer: &Value) {
        assert_eq!(answer["id"], call.id, "{}: {answer}", call.text);
        match call.tool.as_str() {
            "log" => assert_eq!(result_text(answer), "1 notes sent"),
            "change" => assert_eq!(result_text(answer), "change sent"),
            _ => assert_eq!(result_text(answer), call.text, "an answer of another"),
        }
    }

    /// What a client does whose call's stream broke. The rest died with the daemon, and it is told so at once; its session
    /// goes on.
    async fn ask_for_the_rest(&self, call: &Call, cursor: &str) {
        let since = self.life.now();
        let request = self.client.request(Method::GET).header("last-event-id", cursor);
        match request.attempt().await {
            Ok(reply) => assert_eq!(reply.status, 400, "{}", call.text),
            Err(lost) => assert!(self.life.was_killed(since), "{}: {lost:?}", call.text),
        }
    }

    /// Listens without end, each time from the last event on that it has had.
    pub(super) async fn listen(self: Arc<Self>) {
        let mut last: Option<String> = None;
        loop {
            let since = self.life.now();
            let request = self.client.request(Method::GET);
            let request = match &last {
                Some(last) => request.header("last-event-id", last),
                None => request,
            };
            let lost = match request.attempt().await {
                Ok(reply) => self.follow(reply, &mut last).await,
                Err(lost) => lost,
            };
            assert!(self.life.was_killed(since), "{}{lost:?}, and the daemon lives", mark(self.number));
            self.life.is_back().await;
        }
    }

    async fn follow(&self, reply: Reply, last: &mut Option<String>) -> Lost {
        let mut events = match self.taken(reply).await {
            Ok(reply) => reply.events(),
            Err(lost) => return lost,
        };
        loop {
            match events.attempt_next().await {
                Ok(Some(event)) => self.note(&event, last),
                Ok(None) => panic!("{}the stream was ended", mark(self.number)),
                Err(lost) => return lost,
            }
        }
    }

    /// Takes an event of the session's own stream: each has a higher number than all before it.
    fn note(&self, event: &Event, last: &mut Option<String>) {
        let number = |id: &str| id.strip_prefix("0-").and_then(|number| number.parse::<u64>().ok());
        let id = event.id.clone().expect("an event has an id");
        let (before, now) = (last.as_deref().and_then(number), number(&id).expect("it is of the session's own stream"));
        if !event.data.is_empty() {
            assert!(before.is_none_or(|before| before < now), "{}told again: {last:?}, {event:?}", mark(self.number));
            self.hear(&event.json());
        }
        *last = Some(id);
    }

    /// Hears something that may come on any stream, but only once, and to one client.
    fn hear(&self, message: &Value) {
        match message["method"].as_str() {
            Some("notifications/message") => {
                let text = message["params"]["data"].as_str().unwrap_or_else(|| panic!("no text: {message}"));
                assert!(text.starts_with(&mark(self.number)), "{}heard of {text}", mark(self.number));
                let new = self.notes.send_if_modified(|notes| notes.insert(text.to_owned()));
                assert!(new, "{text} was told twice");
            }
            Some(method) if method.ends_with("/list_changed") => {}
            _ => panic!("{}{message}", mark(self.number)),
        }
    }
}

/// How everything begins that a session says.
pub(super) fn mark(number: usize) -> String {
    format!("session {number}: ")
}
