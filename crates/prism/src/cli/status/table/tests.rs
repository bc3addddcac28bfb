//! What a person reads, letter by letter.

use serde_json::json;

use super::*;
use crate::cli::say::Line;

fn status() -> StatusReport {
    let link = |number, purpose: &str, pid| {
        json!({"number": number, "purpose": purpose, "state": "up", "era": "legacy", "pid": pid,
               "memory_bytes": 45 << 20, "uptime_s": 7300, "restarts": 0, "sessions": 1, "in_flight": 0})
    };
    serde_json::from_value(json!({
        "daemon": {"version": "0.1.0", "pid": 4242, "uptime_s": 7400.0, "url": "http://127.0.0.1:7411",
                   "memory_bytes": 12 << 20, "open_files": 45, "max_open_files": 1024,
                   "config": {"file": "/home/ann/.prism/prism.toml", "state": "ok"}},
        "destinations": [
            {"name": "files", "kind": "stdio", "state": "up", "era": "legacy", "model": "mixed",
             "model_why": "shared, except clients that support sampling, elicitation or roots: they get their own process",
             "sessions": 2, "max_sessions": 10, "in_flight": 1, "requests": 130, "calls": 120, "failures": 2,
             "p50_ms": 1.24, "p99_ms": 245.0, "starts": 3, "restarts": 1, "memory_bytes": 90 << 20,
             "last_error": {"text": "its process ended: exit status: 1", "ago_s": 125.0},
             "links": [link(1, "shared", 101), link(2, "own", 102)]},
            {"name": "search", "kind": "streamable_http", "state": "refusing", "ready": false, "model": "shared",
             "why": "nobody answers at http://127.0.0.1:9/mcp: connection refused", "fix": "start that server",
             "model_why": "asks = false is set", "requests": 1, "failures": 1,
             "last_error": {"text": "connection refused", "ago_s": 0.2}},
            {"name": "prism", "kind": "built_in", "state": "never_used", "ready": true},
            {"name": "workspace", "kind": "built_in", "state": "up", "era": "modern", "model": "shared", "requests": 4,
             "links": [{"purpose": "shared", "state": "up", "uptime_s": 30}]},
        ],
        "sessions": [
            {"id": "0badcafe", "client": {"name": "cursor", "version": "2.1"}, "revision": "2025-06-18",
             "transport": "http", "hub": true, "parts": ["files", "search"], "calls": 118, "idle_s": 4.2,
             "streams": [{"kind": "get", "silent_s": 3.0}, {"kind": "post"}]},
            {"id": "12345678", "client": {"name": "zed"}, "revision": "2025-11-25", "transport": "stdio",
             "destination": "files", "calls": 2, "idle_s": 0.3, "streams": [], "undelivered": 3},
            {"id": "9abcdef0", "transport": "sse", "destination": "files", "idle_s": 3700.0,
             "streams": [{"kind": "sse", "silent_s": 90.0, "waiting": 1}]},
        ],
        "listens": [{"destination": "files"}, {"destination": "prism"}],
        "clients": [{"client": {"name": "agent", "version": "9"}, "transport": "http", "ago_s": 61.0}],
    }))
    .unwrap()
}

fn shown(lines: &[Line]) -> String {
    let line = |line: &Line| line.iter().map(|(text, _)| text.as_str()).collect::<String>().trim_end().to_owned();
    lines.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_status_reads_like_this() {
    let expected = "\
prism 0.1.0  http://127.0.0.1:7411  pid 4242  up 2 h  12 MiB  45 of 1024 files
config /home/ann/.prism/prism.toml

SERVER     STATE     ERA     PROCESS  PID  MEMORY    UP  RESTARTS  SESSIONS  IN FLIGHT  CALLS  FAILED     P50     P99
files      up        legacy  mixed    2 ×  90 MiB   2 h         1      2/10          1    120       2  1.2 ms  245 ms
  pid 101, shared: up, 45 MiB, up 2 h, 1 session, 0 in flight
  pid 102, of one client: up, 45 MiB, up 2 h, 1 session, 0 in flight
  2 min ago: its process ended: exit status: 1
search     refusing  ?       shared                             0         0          0      0       1
  nobody answers at http://127.0.0.1:9/mcp: connection refused
  fix: start that server
workspace  up        modern  shared                30 s         0         0          0      0       0

CLIENT      AT                  VIA    REVISION    CALLS  IDLE  STREAMS                                    SESSION
cursor 2.1  hub: files, search  http   2025-06-18    118   4 s  1 open, 1 of calls                         0badcafe
zed         files               stdio  2025-11-25      2   0 s  none, 3 events waiting                     12345678
?           files               sse                    0   1 h  1 open, 1 event waiting, silent for 1 min  9abcdef0

2 streams of changes for modern clients: files, prism
hub  last used by agent 9 (http), 1 min ago";
    let told = shown(&lines(&status(), StatusDetail::Usual, usize::MAX));
    assert_eq!(told, expected);
}

#[test]
fn why_a_server_is_shared_is_said_to_who_asks() {
    let told = shown(&lines(&status(), StatusDetail::Why, usize::MAX));
    let expected =
        "\n  mixed: shared, except clients that support sampling, elicitation or roots: they get their own process\n";
    assert!(told.contains(expected) && told.contains("\n  shared: asks = false is set\n"), "{told}");
}

#[test]
fn columns_stand_below_their_heads() {
    let told = shown(&lines(&status(), StatusDetail::Usual, usize::MAX));
    let row = |name: &str| told.lines().find(|line| line.starts_with(name)).unwrap();
    let (head, files) = (row("SERVER"), row("files "));
    assert_eq!(head.find("STATE"), files.find("up"));
    let end = |line: &str, word: &str| line[..line.find(word).unwrap()].chars().count() + word.chars().count();
    assert_eq!(end(head, "P99"), end(files, "245 ms"), "numbers end where their head does\n{told}");
}

// Colours and tables adapt: in a narrow terminal the name, the state and what failed stay.
#[test]
fn a_narrow_terminal_leaves_columns_out_and_wraps_nothing() {
    for width in [120, 80, 60, 40] {
        let lines = lines(&status(), StatusDetail::Usual, width);
        for line in &lines {
            let letters: usize = line.iter().map(|(text, _)| text.chars().count()).sum();
            assert!(letters <= width, "{width}: {}", shown(std::slice::from_ref(line)));
        }
        let told = shown(&lines);
        assert!(told.contains("SERVER") && told.contains("refusing"), "{told}");
        if width >= 60 {
            assert!(told.contains("FAILED") && told.contains("STREAMS"), "{width}:\n{told}");
        }
        assert!(width >= 100 || !told.contains("RESTARTS"), "{told}");
    }
}

#[test]
fn what_is_wrong_has_a_colour() {
    let lines = lines(&status(), StatusDetail::Usual, usize::MAX);
    let colour = |word: &str| {
        let cell = lines.iter().flatten().find(|(text, _)| text.trim() == word);
        cell.unwrap_or_else(|| panic!("no {word}")).1
    };
    assert_eq!(colour("refusing"), Some(Colour::Red));
    assert_eq!(colour("up"), Some(Colour::Green));
    assert_eq!(colour("nobody answers at http://127.0.0.1:9/mcp: connection refused"), Some(Colour::Red));
    assert_eq!(colour("none, 3 events waiting"), Some(Colour::Yellow));
}

#[test]
fn a_config_that_was_not_taken_is_said_and_so_is_that_there_is_nothing() {
    let mut status = StatusReport::default();
    status.daemon.config.state = ConfigState::KeptOld;
    status.daemon.config.error = Some("line 3: unknown key \"commnad\"\n  did you mean \"command\"?".to_owned());
    let told = shown(&lines(&status, StatusDetail::Usual, usize::MAX));
    assert!(told.contains("is not in effect, the one before it is: line 3: unknown key"), "{told}");
    assert!(told.contains("no servers yet; next: prism add"), "{told}");
}
