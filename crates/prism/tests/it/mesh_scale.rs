//! Thousands of signals that nobody reads and hundreds of agents: what they cost, and that each is still read once. How fast
//! that is, with ten thousand and a thousand, `cargo xtask bench mesh-scale` says.

use std::{collections::HashMap, ops::Range};

use hyper::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::{Client, Launch, process};

const AGENTS: usize = 300;
const SIGNALS: usize = 3000;
/// For every agent but the first, for whom all the others wait.
const EACH: usize = 5;
const SPREAD: usize = EACH * (AGENTS - 1);
/// Signals that are sent and read once more.
const AGAIN: usize = 1000;
/// Connections at a time.
const SENDERS: usize = 8;
/// What all agents, and then all signals, may cost: a few KiB each. A signal's text is on disk and nowhere else.
const MAX_AGENTS_KIB: u64 = 24 << 10;
const MAX_SIGNALS_KIB: u64 = 24 << 10;
/// What more may be left after another thousand: the allocator's.
const MAX_LEFT_KIB: u64 = 4 << 10;

async fn verb(client: &Client, verb: &str, arguments: Value) -> Value {
    let request = client.at(&format!("/prism/mesh/{verb}")).request(Method::POST);
    let reply = request.header("content-type", "application/json").body(arguments.to_string()).send().await;
    let (status, answer) = (reply.status, reply.json().await);
    assert_eq!(status, 200, "{verb}: {answer}");
    answer
}

/// Does something many times, on several connections.
async fn many(client: &Client, times: Range<usize>, name: &'static str, arguments: fn(usize) -> Value) -> Vec<Value> {
    let mut tasks = JoinSet::new();
    for first in 0..SENDERS {
        let (client, mine) = (client.clone(), times.clone().skip(first).step_by(SENDERS));
        tasks.spawn(async move {
            let mut answers = Vec::new();
            for n in mine {
                answers.push((n, verb(&client, name, arguments(n)).await));
            }
            answers
        });
    }
    let mut answers: Vec<(usize, Value)> = tasks.join_all().await.into_iter().flatten().collect();
    answers.sort_by_key(|(n, _)| *n);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

fn recipient(n: usize) -> usize {
    if n < SPREAD { 1 + n % (AGENTS - 1) } else { 0 }
}

fn signal(n: usize) -> Value {
    json!({"to": format!("agent-{}", recipient(n)), "type": "StatusUpdate", "body": format!("{n} {}", "x".repeat(500))})
}

async fn waiting(client: &Client) -> u64 {
    let told = client.at("/prism/mesh").request(Method::GET).send().await.json().await;
    told["agents"].as_array().unwrap().iter().map(|agent| agent["pending"].as_u64().unwrap()).sum()
}

/// Reads all that waits for an agent, with pages of a size that the wish for them must lead to.
async fn read(mut page: impl AsyncFnMut() -> Value, most: usize, expected: usize, read: &mut HashMap<String, usize>) {
    let mut left = expected;
    while left > 0 {
        let page = page().await;
        let signals = page["signals"].as_array().unwrap();
        assert_eq!(signals.len(), left.min(most));
        left -= signals.len();
        assert_eq!(page["remaining"], left);
        assert!(page.to_string().len() < 512 << 10, "a page is bounded");
        for signal in signals {
            *read.entry(signal["body"].as_str().unwrap().to_owned()).or_default() += 1;
        }
    }
}

// M-12
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_of_signals_and_agents_cost_little_and_each_signal_is_read_once() {
    let daemon = Launch::serve("").start().await;
    let client = daemon.client_at("/mcp");
    let resident = || process::resident_kib(daemon.pid());
    let bare = resident();
    let start = |n: usize| json!({"agent": format!("agent-{n}"), "surface": "script"});
    let sessions: Vec<Value> =
        many(&client, 0..AGENTS, "start", start).await.iter().map(|agent| agent["session"].clone()).collect();
    let before = resident();
    assert!(before.saturating_sub(bare) < MAX_AGENTS_KIB, "{AGENTS} agents cost {} KiB", before - bare);
    let mcp = client.initialize().await;
    let client = daemon.person_at("/mcp");
    many(&client, 0..SIGNALS, "send", signal).await;
    assert_eq!(waiting(&client).await, SIGNALS as u64);
    let grown = resident().saturating_sub(before);
    assert!(grown < MAX_SIGNALS_KIB, "{SIGNALS} signals cost {grown} KiB");

    let mut found = HashMap::new();
    for session in &sessions[1..] {
        let page = async || {
            let answer = mcp.call("prism_signals_pending", json!({"session": session})).await.answer().await;
            answer["result"]["structuredContent"].clone()
        };
        read(page, 20, EACH, &mut found).await;
    }
    // As many as can be asked for at once, which is fewer than are asked for.
    let page = async || verb(&client, "pending", json!({"session": sessions[0], "limit": 1000})).await;
    read(page, 200, SIGNALS - SPREAD, &mut found).await;
    assert_eq!((found.len(), found.values().max()), (SIGNALS, Some(&1)));
    assert_eq!(waiting(&client).await, 0);

    let after = resident();
    many(&client, SPREAD..SPREAD + AGAIN, "send", signal).await;
    let mut found = HashMap::new();
    read(page, 200, AGAIN, &mut found).await;
    let grown = resident().saturating_sub(after);
    assert!(grown < MAX_LEFT_KIB, "the next {AGAIN} signals have left {grown} KiB");
}
