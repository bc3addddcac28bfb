//! What ends badly and leaves nothing behind: language servers that are killed, a terminal that prints without end, a build
//! whose grant is revoked (A-10, S-20).

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use hyper::Method;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{
    gate::{Gate, Granted, Holder, answer},
    process, until,
};

/// Language servers that are killed, one after the other.
const KILLED: usize = 24;

/// What the terminal prints. `cargo xtask test editor-ends` has it print a gigabyte, with the release build.
const PRINTED_MB: u64 = 48;

/// What a build starts.
const FORKS: usize = 500;

/// How much more memory a daemon may have held in the middle of it than before, in KiB. A terminal keeps a MiB of history and
/// its screen, and what is under way between the two ends of a socket is bounded.
const MAX_GROWN: u64 = 48 << 10;

async fn held(gate: &Gate) -> (Granted, Holder) {
    let granted = gate.approve(&gate.ask("breaker", &["*"]).await, json!({})).await;
    let holder = gate.hold(&granted).await;
    (granted, holder)
}

/// Has something done that the person is asked about, and allows.
async fn allowed(gate: &Gate, holder: &mut Holder, action: &str, args: Value) -> Value {
    let id = holder.begins(action, args).await;
    let shown = gate.confirmation().await;
    answer(gate, &shown, &shown["digest"], true).await;
    let result = holder.result(&id).await;
    assert_eq!(result["status"], "ok", "{result}");
    result["data"].clone()
}

fn say(line: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stdout(), "{line}");
}

// E-01
#[tokio::test]
async fn language_servers_that_are_killed_are_started_again_and_none_is_left() {
    let script =
        fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("../editor/src/lsp/tests/server.py")).unwrap();
    let folder = script.parent().unwrap().to_owned();
    let notes = tempfile::tempdir().unwrap();
    let settings = format!(
        "[gate]\nrate_limit = 1000\n[editor]\nreadable = [{folder:?}]\nwritable = [{:?}]\n\
         [editor.servers]\nmarkdown = [\"python3\", {script:?}, \"push\", {:?}]\n",
        notes.path(),
        notes.path(),
    );
    let gate = Gate::start_in(&settings, &[("PATH", "/usr/local/bin:/usr/bin:/bin".to_owned())]).await;
    fs::write(gate.path("a.md"), "good\nbad\n").unwrap();
    let (_, mut holder) = held(&gate).await;
    let asked = json!({"path": "a.md", "position": {"line": 0, "character": 0}});
    let (mut memory, mut seen, begun) = (0, Vec::new(), Instant::now());
    for at in 0..=KILLED {
        let mut last = Value::Null;
        until("the server answers", async || {
            last = holder.does("goto_definition", asked.clone()).await;
            last["status"] == "ok"
        })
        .await;
        let servers = gate.daemon.children();
        assert_eq!(servers.len(), 1, "one at a time: {servers:?}");
        assert!(!seen.contains(&servers[0]), "another than before");
        seen.extend(&servers);
        if at == KILLED / 4 {
            memory = process::resident_kib(gate.daemon.pid());
        }
        if at < KILLED {
            process::signal(servers[0], Signal::KILL);
            until("it is gone", async || !process::is_there(servers[0])).await;
        }
    }
    let grown = process::resident_kib(gate.daemon.pid()).saturating_sub(memory);
    assert!(grown < 16 << 10, "eighteen dead servers have cost {grown} KiB");
    say(&format!(
        "ends: {KILLED} language servers killed in {:.1} s, the daemon grew by {grown} KiB",
        begun.elapsed().as_secs_f64()
    ));
    let Gate { daemon, .. } = gate;
    let home = daemon.home().clone();
    daemon.stop().await;
    until("nothing is left", async || process::marked(home.path()).is_empty()).await;
}

// E-01
#[tokio::test]
async fn a_terminal_that_prints_without_end_costs_no_memory_and_nobody_elses_time() {
    let megabytes = std::env::var("PRISM_PRINTED_MB")
        .map_or(PRINTED_MB, |text| text.parse().expect("PRISM_PRINTED_MB is a number"));
    let gate = Gate::start_with("[gate]\nrate_limit = 1000\n").await;
    let (_, mut holder) = held(&gate).await;
    let (_, mut other) = held(&gate).await;
    other.does("open_file", json!({"path": "main.rs"})).await;
    let before = process::resident_kib(gate.daemon.pid());
    let begun = Instant::now();
    // A line of its own at the end, so that it is known to have come through.
    let print =
        format!("yes a line of many that nobody is going to read | head -c {}; echo; echo the end", megabytes << 20);
    let opened = allowed(&gate, &mut holder, "open_terminal", json!({"command": ["sh", "-c", print]})).await;
    let terminal = opened["terminal"].clone();
    let (mut longest, mut answers, mut last) = (Duration::ZERO, 0, Value::Null);
    // It takes as long as it takes; what is bounded is how long others wait.
    while last["is_running"] != false {
        let asked = Instant::now();
        let opened = other.does("open_file", json!({"path": "main.rs"})).await;
        assert_eq!(opened["status"], "ok", "{opened}");
        longest = longest.max(asked.elapsed());
        answers += 1;
        let told = holder.does("get_output", json!({"terminal": terminal, "wait_ms": 50})).await;
        assert_eq!(told["status"], "ok", "{told}");
        last = told["data"].clone();
    }
    assert_eq!(last["exit_code"], 0, "{}", last["exit_code"]);
    assert!(last["output"].as_str().is_some_and(|text| text.contains("the end")), "its last words are kept");
    let grown = process::peak_kib(gate.daemon.pid()).saturating_sub(before);
    say(&format!(
        "ends: a terminal printed {megabytes} MiB in {:.1} s; the daemon held {grown} KiB more at most; {answers} other actions, the \
         longest {:.0} ms",
        begun.elapsed().as_secs_f64(),
        longest.as_secs_f64() * 1e3,
    ));
    assert!(grown < MAX_GROWN, "the daemon held {grown} KiB more");
    assert!(longest < Duration::from_secs(5), "{longest:?}");
    until("its processes are gone", async || gate.daemon.children().is_empty()).await;
}

// A-04, E-01
#[tokio::test]
async fn nothing_is_left_of_a_build_that_forks_when_its_grant_is_revoked() {
    let gate = Gate::start_with("[gate]\nrate_limit = 1000\n").await;
    let makefile = format!(
        "all:\n\t@i=0; while [ $$i -lt {FORKS} ]; do sleep 3600 & i=$$((i+1)); done; setsid sleep 3600 & (setsid sh -c 'sleep 3600 & wait' &) ; \
         echo > forked; wait\n"
    );
    fs::write(gate.path("Makefile"), makefile).unwrap();
    let (granted, mut holder) = held(&gate).await;
    holder.begins("build_project", json!({"tool": "make"})).await;
    until("all of them run", async || fs::exists(gate.path("forked")).unwrap()).await;
    let children = process::with_descendants(&gate.daemon.children());
    assert!(children.len() > FORKS, "{} processes", children.len());
    let begun = Instant::now();
    let (status, told) = gate.as_person("/mcp/revoke", json!({"session_id": granted.id})).await;
    assert_eq!(status, 200, "{told}");
    assert_eq!(holder.closed().await, 4001);
    let is_alive = |pid: &u32| process::is_alive(*pid);
    until("nothing is left", async || gate.daemon.children().is_empty() && !children.iter().any(is_alive)).await;
    let took = begun.elapsed();
    // Whom nobody waits for any more, the system's first process reaps in its own time.
    let is_ours = |pid: u32| process::parent(pid) == Some(gate.daemon.pid());
    until("the daemon has reaped its own", async || !children.iter().any(|pid| is_ours(*pid))).await;
    assert!(children.iter().all(|pid| !process::is_alive(*pid)));
    say(&format!(
        "ends: {} processes of a build were gone {:.0} ms after the revocation",
        children.len(),
        took.as_secs_f64() * 1e3
    ));
    gate.audited("build_project", "error: revoked").await;
    // It serves others as before.
    let reply = gate.request(Method::GET, "/mcp/requests", Some(&gate.management())).send().await;
    assert_eq!(reply.status, 200);
}
