//! A child that holds more memory than it may (`max_memory`).

use std::fs;

use serde_json::{Value, json};

use crate::support::{Daemon, Home, Launch, demo, lines, until};

/// A config with a demo server beside which, as soon as a file is there, something of its group holds 200 MiB.
fn config(home: &Home, settings: &str) -> String {
    let hold = "held = b'x' * (200 << 20); import signal; signal.pause()";
    let flag = home.file("hold");
    let script = format!(
        "(while [ ! -e {flag} ]; do sleep 0.05; done; rm {flag}; exec python3 -c \"{hold}\") & exec {}",
        demo(&["--record", &home.file("record")]).join(" ")
    );
    format!("[destination.a]\ncommand = {:?}\n{settings}\n", ["sh", "-c", &script])
}

/// Has the child hold too much while a call is with it, and returns the status and the answer.
async fn grow(daemon: &Daemon, home: &Home, session: &crate::support::Client) -> (u16, Option<String>, Value) {
    let before = lines(&home.file("record")).len();
    let call = tokio::spawn({
        let session = session.clone();
        async move {
            let reply = session.call("slow", json!({"ms": 600_000, "text": "never"})).await;
            let retry = reply.header("retry-after").map(str::to_owned);
            (reply.status, retry, reply.json().await)
        }
    });
    until("the call is with the child", async || {
        lines(&home.file("record")).iter().skip(before).any(|line| line.contains(r#""slow""#))
    })
    .await;
    fs::write(home.file("hold"), "").unwrap();
    let answer = crate::support::soon("the child is ended", call).await.unwrap();
    assert!(daemon.metric(r#"prism_child_starts_total{destination="a"}"#).await.is_some());
    answer
}

#[tokio::test]
async fn a_child_over_its_ceiling_is_ended_and_its_clients_hear_why_and_go_on_with_the_next() {
    let home = Home::new();
    let text = config(&home, "max_memory = \"100MiB\"");
    let daemon = Launch::serve(&text).home(&home).start().await;
    let session = daemon.client_at("/a/mcp").initialize().await;
    let child = session.child().await;
    let (status, retry, body) = grow(&daemon, &home, &session).await;
    assert_eq!((status, retry.is_some()), (503, true), "{body}");
    assert_eq!(body["error"]["data"]["reason"], "upstream_exited", "{body}");
    let message = body["error"]["message"].as_str().unwrap();
    let expected = "the server used more than max_memory = 100 MiB and was ended; raise it in prism.toml";
    assert!(message.starts_with(expected), "{message}");

    let next = session.child().await;
    assert_ne!(next, child, "the session lives on");
    until("all of the old child's group is gone", async || {
        daemon.children().iter().all(|pid| prism_os::memory::of_process(*pid).is_none_or(|held| held < 100 << 20))
    })
    .await;
    assert!(
        daemon.stderr().lines().any(|line| line.contains("WARN") && line.contains(expected)),
        "{}",
        daemon.stderr()
    );
}

#[tokio::test]
async fn without_a_ceiling_nobody_is_ended() {
    let home = Home::new();
    let text = format!("max_memory = \"100MiB\"\n{}", config(&home, "max_memory = 0"));
    let daemon = Launch::serve(&text).home(&home).start().await;
    let session = daemon.client_at("/a/mcp").initialize().await;
    let child = session.child().await;
    fs::write(home.file("hold"), "").unwrap();
    let heavy = async || {
        daemon.children().iter().any(|pid| prism_os::memory::of_process(*pid).is_some_and(|held| held > 190 << 20))
    };
    until("much is held", heavy).await;
    // Longer than it takes to look.
    crate::support::stays("it holds it", std::time::Duration::from_millis(1500), heavy).await;
    assert_eq!(session.child().await, child);
}
