//! Clients of `prism stdio` that call without end. Their shims find or start the next daemon, and say of each call that was
//! in flight that it was.

use std::{
    collections::HashMap,
    io::{BufRead, BufReader},
    process::ChildStdout,
    sync::Arc,
    thread,
};

use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{
    callers::mark,
    life::{Life, Since, below},
};
use crate::support::{NEWEST, result_text, shim::Shim, soon};

/// Lines that may wait for the test. Beyond it the shim waits.
const LINES: usize = 64;

pub(super) struct Caller {
    number: usize,
    prefix: &'static str,
    shim: Shim,
    lines: mpsc::Receiver<Value>,
    life: Arc<Life>,
}

/// A call that is not answered.
struct Open {
    text: String,
    steps: u64,
    since: Since,
}

impl Caller {
    pub(super) async fn open(
        number: usize,
        prefix: &'static str,
        mut shim: Shim,
        stdout: ChildStdout,
        life: Arc<Life>,
    ) -> Self {
        let (tx, lines) = mpsc::channel(LINES);
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let message = serde_json::from_str(&line).unwrap_or_else(|_| json!({"not a message": line}));
                if tx.blocking_send(message).is_err() {
                    break;
                }
            }
        });
        let info = json!({"name": "it", "version": "1"});
        shim.ask("initialize", json!({"protocolVersion": NEWEST, "capabilities": {}, "clientInfo": info}));
        let mut caller = Self { number, prefix, shim, lines, life };
        let greeting = caller.line().await;
        assert!(greeting["result"]["serverInfo"].is_object(), "{greeting}");
        caller.shim.note("notifications/initialized", json!({}));
        caller
    }

    /// Calls without end, several at a time. The ids are those of every other shim.
    pub(super) async fn work(mut self) {
        for round in 0_u64.. {
            self.life.turn().await;
            let mut open = HashMap::new();
            self.call(&mut open, round, "echo", json!({}));
            self.call(&mut open, round, "slow", json!({"ms": 50 + below(150)}));
            self.call(&mut open, round, "progress", json!({"steps": 4, "ms": 15}));
            while !open.is_empty() {
                let line = self.line().await;
                self.judge(&line, &mut open);
            }
        }
    }

    fn call(&mut self, open: &mut HashMap<u64, Open>, round: u64, tool: &str, mut arguments: Value) {
        let text = format!("{}{round}.{tool}", mark(self.number));
        arguments["text"] = text.clone().into();
        let since = self.life.now();
        let name = format!("{}{tool}", self.prefix);
        let token = json!({"progressToken": tool});
        let id = self.shim.ask("tools/call", json!({"name": name, "arguments": arguments, "_meta": token}));
        open.insert(id, Open { text, steps: 0, since });
    }

    fn judge(&self, line: &Value, open: &mut HashMap<u64, Open>) {
        match line["method"].as_str() {
            Some("notifications/progress") => {
                let text = line["params"]["message"].as_str().unwrap_or_default();
                let call = open.values_mut().find(|call| call.text == text);
                let call = call.unwrap_or_else(|| panic!("{}progress of no open call: {line}", mark(self.number)));
                call.steps += 1;
                assert_eq!(line["params"]["progress"], call.steps, "{text}");
            }
            Some(method) => assert!(method.ends_with("/list_changed"), "{line}"),
            None => {
                let call = line["id"].as_u64().and_then(|id| open.remove(&id));
                let call = call.unwrap_or_else(|| panic!("{}an answer to nothing: {line}", mark(self.number)));
                match line["error"]["data"]["reason"].as_str() {
                    Some("daemon_restarted") if self.life.was_killed(call.since) => self.life.lost(),
                    Some(_) => panic!("{}: {line}", call.text),
                    None => {
                        assert_eq!(result_text(line), call.text, "an answer of another");
                        self.life.answered(self.number);
                    }
                }
            }
        }
    }

    async fn line(&mut self) -> Value {
        soon("the shim says something", self.lines.recv()).await.expect("the shim lives")
    }
}
