//! What the tests stand on: the daemon as a process, a client that speaks plain HTTP to it, a look at `/proc`, and
//! ways to wait that do not depend on how busy the machine is.

pub(crate) mod agents;
mod client;
mod daemon;
pub(crate) mod gate;
mod http;
pub(crate) mod hub;
pub(crate) mod mesh;
mod modern;
pub(crate) mod person;
mod plain;
pub(crate) mod plugin;
pub(crate) mod process;
pub(crate) mod seen;
pub(crate) mod shim;
pub(crate) mod terminal;
pub(crate) mod upstream;

use std::{
    env,
    fs::OpenOptions,
    io::Write,
    time::{Duration, Instant},
};

pub(crate) use self::{
    client::{Client, NEWEST, result_text},
    daemon::{Daemon, Ended, Home, Launch, demo, destination, lines, prism},
    http::{Event, Events, Lost, Place, Reply, Request},
    modern::{MODERN, Modern, SUBSCRIPTION_ID},
    plain::Plain,
};

/// Long enough for anything that works, on a machine that is busy.
pub(crate) const DEADLINE: Duration = Duration::from_secs(45);
/// How often a condition is looked at.
const LOOK: Duration = Duration::from_millis(5);

/// Waits for something that has to come.
pub(crate) async fn soon<T>(what: &str, event: impl Future<Output = T>) -> T {
    match tokio::time::timeout(DEADLINE, event).await {
        Ok(value) => value,
        Err(_) => panic!("{what}: not within {DEADLINE:?}"),
    }
}

/// Looks at a condition until it holds.
pub(crate) async fn until(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    soon(what, async {
        while !condition().await {
            tokio::time::sleep(LOOK).await;
        }
    })
    .await;
}

/// Looks at a condition that must not change by itself, for as long as a change would take.
pub(crate) async fn stays(what: &str, time: Duration, mut condition: impl AsyncFnMut() -> bool) {
    let begun = Instant::now();
    while begun.elapsed() < time {
        assert!(condition().await, "{what}: no longer after {:?}", begun.elapsed());
        tokio::time::sleep(LOOK).await;
    }
}

/// Checks that a daemon has nothing to do for a while.
pub(crate) async fn rests(daemon: &Daemon, time: Duration) {
    let before = process::ticks(daemon.pid());
    stays("the daemon rests", time, async || process::ticks(daemon.pid()) - before < 10).await;
}

/// Says that something is not tested here, and what to install: to whoever reads the output, and to the lane `unit`, which
/// lists what was skipped (`PRISM_TESTS_SKIPPED` names the file).
pub(crate) fn skipped(what: &str, why: &str) {
    eprintln!("SKIPPED {what}: {why}");
    if let Some(list) = env::var_os("PRISM_TESTS_SKIPPED") {
        let mut list = OpenOptions::new().append(true).create(true).open(list).expect("the list can be written");
        list.write_all(format!("{what}: {why}\n").as_bytes()).expect("the list can be written");
    }
}
