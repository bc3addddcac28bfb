//! How children end: with their last session, with the daemon, and after a daemon that could not end them (B-13, B-25).

use rustix::process::Signal;
use serde_json::json;
use tokio::task::JoinSet;

use crate::support::{Daemon, Home, Launch, demo, destination, lines, process, until};

/// Sessions that are opened and abandoned, half of them with children that end by themselves
/// when their stdin does, half with children that do not.
const ABANDONED: usize = 200;

fn pids(file: &str) -> Vec<u32> {
    lines(file).iter().map(|line| line.parse().expect("the demo server writes its pid")).collect()
}

/// A demo server behind a shell that has started something else before.
fn with_grandchild(home: &Home, flags: &[&str]) -> Vec<String> {
    let (pid, server) = (home.file("grandchild"), demo(flags).join(" "));
    ["sh", "-c", &format!("sleep 1000 & echo $! > {pid}; exec {server}")].map(str::to_owned).to_vec()
}

// B-25
#[tokio::test]
async fn after_a_killed_daemon_the_next_one_leaves_no_child_of_two_hundred() {
    let home = Home::new();
    let starts = home.file("starts");
    let settings = format!("process = \"per_session\"\nmax_sessions = {ABANDONED}");
    let config = [
        destination("plain", &["--starts", &starts], &settings),
        destination("deaf", &["--starts", &starts, "--fault", "deaf"], &settings),
    ];
    let mut daemon = Launch::serve(&config.concat()).home(&home).start().await;
    let mut opened = JoinSet::new();
    for i in 0..ABANDONED {
        let client = daemon.client_at(if i % 2 == 0 { "/plain/mcp" } else { "/deaf/mcp" });
        opened.spawn(async move { client.initialize().await });
        // A few at a time, as people come.
        if opened.len() == 8 {
            opened.join_next().await;
        }
    }
    opened.join_all().await;
    let children = pids(&starts);
    assert_eq!(children.len(), ABANDONED);
    assert!(children.iter().all(|pid| process::is_alive(*pid)));

    daemon.kill().await;
    assert!(children.iter().any(|pid| process::is_alive(*pid)), "the deaf ones cannot know");
    let next = Launch::serve("").home(&home).start().await;
    until("every child is gone", async || children.iter().all(|pid| !process::is_alive(*pid))).await;
    assert_eq!(process::marked(home.path()), []);
    assert_eq!(next.get("/healthz").await.status, 200);
}

// B-25: what a child has started bears the mark as well, wherever it went.
#[tokio::test]
async fn after_a_killed_daemon_the_next_one_ends_grandchildren_too() {
    let home = Home::new();
    let command = with_grandchild(&home, &[]);
    let mut daemon = Launch::run(&[], &command).home(&home).start().await;
    daemon.client().initialize().await.child().await;
    let grandchild = pids(&home.file("grandchild"))[0];
    daemon.kill().await;
    assert!(process::is_alive(grandchild));
    let _next = Launch::run(&[], &command).home(&home).start().await;
    until("the grandchild is gone", async || !process::is_alive(grandchild)).await;
}

// B-25: the other daemon of this home lives, and so do its children.
#[tokio::test]
async fn a_second_daemon_leaves_the_children_of_the_first_alone() {
    let home = Home::new();
    let first = Launch::run(&[], &demo(&[])).home(&home).start().await;
    let session = first.client().initialize().await;
    let child = session.child().await;
    let mut second = Launch::run(&[], &demo(&[])).home(&home).start().await;
    let other = second.client().initialize().await;
    other.child().await;
    second.signal(Signal::TERM);
    assert_eq!(second.ended().await.code(), Some(0));
    assert_eq!(session.child().await, child);
}

// B-25
#[tokio::test]
async fn sigterm_closes_streams_ends_children_and_exits_with_0() {
    let home = Home::new();
    let record = home.file("record");
    let config = [destination("a", &[], ""), destination("b", &["--record", &record], "process = \"per_session\"")];
    let launch = Launch::serve(&config.concat()).home(&home).env("PRISM_DRAIN_TIMEOUT", "50ms");
    let mut daemon = launch.start().await;
    let a = daemon.client_at("/a/mcp").initialize().await;
    let b = daemon.client_at("/b/mcp").initialize().await;
    let mut stream = a.listen().await;
    assert_eq!(stream.next().await.unwrap().data, "");
    let call = tokio::spawn(async move { b.call("slow", json!({"ms": 600_000, "text": "never"})).await.status });
    until("the call is with its child", async || lines(&record).iter().any(|line| line.contains("slow"))).await;
    let children = daemon.children();
    assert_eq!(children.len(), 2);
    let socket = daemon.home().path().join("prism.sock");
    assert!(socket.exists());

    daemon.signal(Signal::TERM);
    // It ends as a stream should, not by a broken connection.
    assert_eq!(stream.next().await, None);
    assert!([404, 503].contains(&call.await.unwrap()));
    assert_eq!(daemon.ended().await.code(), Some(0));
    for child in children {
        assert!(!process::is_alive(child));
    }
    assert_eq!(process::marked(daemon.home().path()), []);
    assert!(!socket.exists());
}

// B-25: with nothing to wait for, and whichever way it is asked.
#[tokio::test]
async fn every_polite_signal_ends_the_daemon_with_0() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let mut daemon = Daemon::run(&[], &[]).await;
        daemon.signal(signal);
        assert_eq!(daemon.ended().await.code(), Some(0), "{signal:?}");
    }
}

// B-13, B-25: stdin closed, then SIGTERM, then SIGKILL.
// checks 108
#[tokio::test]
async fn a_child_that_ignores_everything_is_killed_and_the_daemon_still_exits_with_0() {
    let server = demo(&["--fault", "deaf"]).join(" ");
    let stubborn = ["sh", "-c", &format!("trap '' TERM; exec {server}")].map(str::to_owned);
    let mut daemon = Launch::run(&[], &stubborn).start().await;
    daemon.client().initialize().await;
    let children = daemon.children();
    assert_eq!(children.len(), 1);
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.ended().await.code(), Some(0));
    assert!(!process::is_alive(children[0]));
}

// B-25: a person who has no patience left.
#[tokio::test]
async fn a_second_ctrl_c_kills_what_the_first_one_only_asked() {
    let server = demo(&["--fault", "deaf"]).join(" ");
    let stubborn = ["sh", "-c", &format!("trap '' TERM INT; exec {server}")].map(str::to_owned);
    let mut daemon = Launch::run(&[], &stubborn).start().await;
    daemon.client().initialize().await;
    let child = daemon.children()[0];
    daemon.signal(Signal::INT);
    until("it is stopping", async || daemon.stderr().contains("Stopping")).await;
    daemon.signal(Signal::INT);
    assert_eq!(daemon.ended().await.code(), Some(0));
    daemon.logged("are killed").await;
    until("the child is gone", async || !process::is_alive(child)).await;
}

// B-25: also in the middle of a handshake.
#[tokio::test]
async fn sigterm_ends_a_child_that_has_not_answered_yet() {
    let silent = ["sh", "-c", "while read -r line; do :; done"].map(str::to_owned);
    let mut daemon = Launch::run(&[], &silent).env("PRISM_DRAIN_TIMEOUT", "50ms").start().await;
    let client = daemon.client();
    let hello = tokio::spawn(async move { client.say_hello().await.status });
    until("the child is there", async || !daemon.children().is_empty()).await;
    let child = daemon.children()[0];
    daemon.signal(Signal::TERM);
    assert_eq!(hello.await.unwrap(), 503);
    assert_eq!(daemon.ended().await.code(), Some(0));
    assert!(!process::is_alive(child));
}

// B-13, B-25: the whole process group.
// checks 108
#[tokio::test]
async fn a_grandchild_ends_with_its_child() {
    let home = Home::new();
    let mut daemon = Launch::run(&[], &with_grandchild(&home, &[])).home(&home).start().await;
    let session = daemon.client().initialize().await;
    let (child, grandchild) = (session.child().await, pids(&home.file("grandchild"))[0]);
    assert!(process::is_alive(grandchild));
    assert_eq!(session.delete().await.status, 204);
    until("both are gone", async || !process::is_alive(child) && !process::is_alive(grandchild)).await;

    // By a crash.
    let session = daemon.client().initialize().await;
    let (child, grandchild) = (session.child().await, pids(&home.file("grandchild"))[0]);
    process::signal(child, Signal::KILL);
    until("the grandchild is gone", async || !process::is_alive(grandchild)).await;

    // With the daemon.
    session.child().await;
    let grandchild = pids(&home.file("grandchild"))[0];
    assert!(process::is_alive(grandchild));
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.ended().await.code(), Some(0));
    assert!(!process::is_alive(grandchild));
}

// B-13
// checks 108
#[tokio::test]
async fn the_last_session_takes_its_shared_child_along() {
    let daemon = Daemon::run(&[], &[]).await;
    let (first, second) = (daemon.client().initialize().await, daemon.client().initialize().await);
    let child = first.child().await;
    assert_eq!(first.delete().await.status, 204);
    assert_eq!(second.child().await, child, "one is left");
    assert_eq!(second.delete().await.status, 204);
    // Reaped as well: no zombie is left.
    until("the child is gone", async || !process::is_there(child)).await;
    assert_ne!(daemon.client().initialize().await.child().await, child);
}

// B-13
#[tokio::test]
async fn keep_warm_keeps_a_shared_child_for_the_next_session() {
    let config = destination("a", &[], "keep_warm = \"1h\"");
    let daemon = Launch::serve(&config).start().await;
    let client = daemon.client_at("/a/mcp");
    let session = client.initialize().await;
    let child = session.child().await;
    assert_eq!(session.delete().await.status, 204);
    assert_eq!(client.initialize().await.child().await, child);
}

// B-13: at once in `per_session`, whatever `keep_warm` says.
#[tokio::test]
async fn keep_warm_does_not_keep_a_child_that_was_one_sessions_own() {
    let config = destination("a", &[], "keep_warm = \"1h\"\nprocess = \"per_session\"");
    let daemon = Launch::serve(&config).start().await;
    let session = daemon.client_at("/a/mcp").initialize().await;
    let child = session.child().await;
    assert_eq!(session.delete().await.status, 204);
    until("the child is gone", async || !process::is_there(child)).await;
}

// B-13, B-25: no zombie is left by a crash either.
// checks 108
#[tokio::test]
async fn a_child_that_crashed_is_reaped() {
    let daemon = Daemon::run(&[], &[]).await;
    let session = daemon.client().initialize().await;
    let child = session.child().await;
    assert_eq!(session.call("crash", json!({"code": 3})).await.status, 503);
    until("the child is gone", async || !process::is_there(child)).await;
    let told = || daemon.stderr().contains("exit status: 3");
    until("the log says how it ended", async || told()).await;
}

// B-13: a client that opens sessions and never comes back leaves nothing behind either.
#[tokio::test]
async fn an_abandoned_initialize_leaves_no_session_and_no_child() {
    let home = Home::new();
    let gate = home.file("gate");
    let server = demo(&[]).join(" ");
    let slow = ["sh", "-c", &format!("mkfifo {gate}; read go < {gate}; exec {server}")].map(str::to_owned);
    let daemon = Launch::run(&["--process", "per_session"], &slow).home(&home).start().await;
    let client = daemon.client();
    let leaver = tokio::spawn(async move { client.say_hello().await.status });
    until("the child waits", async || std::fs::exists(&gate).unwrap()).await;
    leaver.abort();
    until("the child is gone", async || daemon.children().is_empty()).await;
    assert_eq!(daemon.metric(r#"prism_sessions{destination="run"}"#).await, Some(0));
}

// B-25: what left its group is still ours, and nothing is left behind.
#[tokio::test]
async fn sigterm_ends_a_grandchild_that_has_left_the_group() {
    let home = Home::new();
    let (pid, server) = (home.file("runaway"), demo(&[]).join(" "));
    let script = format!("setsid sh -c 'echo $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 1000' & exec {server}");
    let command = ["sh", "-c", &script].map(str::to_owned).to_vec();
    let mut daemon = Launch::run(&[], &command).home(&home).start().await;
    let session = daemon.client().initialize().await;
    until("it has run away", async || std::fs::exists(&pid).unwrap()).await;
    let runaway = pids(&pid)[0];
    assert_eq!(session.delete().await.status, 204);
    assert!(process::is_alive(runaway), "no group holds it");
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.ended().await.code(), Some(0));
    assert!(!process::is_alive(runaway));
}
