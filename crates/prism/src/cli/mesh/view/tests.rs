//! What a person reads, letter by letter.

use prism_core::Time;
use serde_json::{Value, json};

use super::*;
use prism_core::time::rfc3339;

const NOW: i64 = 1_794_796_020_000;

fn at(ms: i64) -> String {
    rfc3339(Time(ms * 1000))
}

/// Reads a page as the command does.
fn read_page(page: Value) -> MeshOverview {
    serde_json::from_value(page).unwrap()
}

fn page() -> Value {
    json!({
        "agents": [
            {"agent": "planner", "presence": "connected", "surface": "claude_code", "surface_support": "full",
             "pending": 0, "owes": 0, "last_seen_ms": 400, "workspace": "/srv/sites"},
            {"agent": "reviewer", "presence": "silent", "surface": "cursor", "surface_support": "degraded",
             "pending": 2, "owes": 1, "last_seen_ms": 65_000, "workspace": "/srv/sites",
             "checkpoint": {"at": at(NOW), "note": "half way\nand more"}},
        ],
        "bells": [
            {"at": at(NOW - 9000), "agent": "planner", "signal_type": "StatusUpdate", "path": "wait",
             "result": "confirmed", "after_ms": 73.0},
            {"at": at(NOW - 2000), "agent": "reviewer", "signal_type": "Question", "path": "sse", "result": "uncaptured",
             "after_ms": null},
        ],
        "obligations": [
            {"debtor": "reviewer", "creditor": "planner", "type": "Question", "state": "open", "due_at": at(NOW - 60_000),
             "overdue": true, "closed_at": null, "wake_attempt_count": 3, "last_wake_path": "sse",
             "last_wake_result": "uncaptured", "signal_id": "a1"},
            {"debtor": "planner", "creditor": "person", "type": "Question", "state": "closed", "closed_at": at(NOW)},
        ],
        "latencies": {"delivery": {"p50_ms": 0.8, "p99_ms": 4.2}},
    })
}

fn shown(width: usize, height: usize) -> Vec<String> {
    let text = |line: &Line| line.iter().map(|(text, _)| text.as_str()).collect::<String>().trim_end().to_owned();
    lines(&read_page(page()), width, height, NOW).iter().map(text).collect()
}

#[test]
fn agents_obligations_and_bells_are_shown_with_what_is_overdue() {
    assert_eq!(
        shown(usize::MAX, usize::MAX),
        [
            "prism mesh  1 of 2 agents there  2 pending  1 overdue",
            "delivery p50 0.8 ms p99 4.2 ms",
            "",
            "AGENT     PRESENCE   SURFACE      WAKE                        PENDING  OWES  LAST BELL           SEEN       WORKSPACE   CHECKPOINT",
            "planner   connected  claude_code  full                              0     0  wait read 73 ms     just now   /srv/sites",
            "reviewer  silent     cursor       only at its next tool call        2     1  sse nobody took it  1 min ago  /srv/sites  half way",
            "",
            "OWES      TO       WHAT      STATE  DUE                 LAST WAKE                SIGNAL",
            "reviewer  planner  Question  open   1 min ago, overdue  sse nobody took it, 3 ×  a1",
            "",
            "BELL      FOR       WHAT          PATH  RESULT           TOOK",
            "02:26:58  reviewer  Question      sse   nobody took it",
            "02:26:51  planner   StatusUpdate  wait  read            73 ms",
        ]
    );
}

#[test]
fn a_narrow_and_a_low_terminal_show_less_and_wrap_nothing() {
    for (width, height) in [(40, 12), (20, 5), (1, 1), (60, 9)] {
        let shown = shown(width, height);
        assert!(shown.len() <= height, "{width}×{height}: {shown:#?}");
        assert!(shown.iter().all(|line| line.chars().count() <= width), "{width}×{height}: {shown:#?}");
    }
    let narrow = shown(40, 40);
    assert!(narrow.iter().any(|line| line.starts_with("AGENT     PRESENCE")), "{narrow:#?}");
    assert!(!narrow.iter().any(|line| line.contains("WORKSPACE")), "{narrow:#?}");
}

#[test]
fn a_part_without_room_for_rows_is_left_out_with_its_heads() {
    let low = shown(80, 9);
    assert!(low.iter().any(|line| line.starts_with("OWES ")), "{low:#?}");
    assert!(!low.iter().any(|line| line.starts_with("BELL ")), "{low:#?}");
    let lower = shown(80, 6);
    assert_eq!(lower.len(), 6, "{lower:#?}");
    assert!(lower.iter().any(|line| line.starts_with("reviewer  silent")), "{lower:#?}");
}

#[test]
fn what_has_no_room_is_counted() {
    let many: Vec<Value> = (0..30).map(|at| json!({"agent": format!("a{at}"), "presence": "active"})).collect();
    let text = |line: &Line| line.iter().map(|(text, _)| text.as_str()).collect::<String>();
    let shown: Vec<String> = lines(&read_page(json!({"agents": many})), 80, 10, NOW).iter().map(text).collect();
    assert_eq!(shown.len(), 10, "{shown:#?}");
    assert_eq!(shown.last().map(String::as_str), Some("… and 24 more"), "{shown:#?}");
}

#[test]
fn an_empty_mesh_says_what_comes_next() {
    let text = |line: &Line| line.iter().map(|(text, _)| text.as_str()).collect::<String>();
    let shown: Vec<String> = lines(&read_page(json!({})), 80, 24, NOW).iter().map(text).collect();
    assert_eq!(shown, ["prism mesh  0 of 0 agents there  0 pending", "no agents yet; an agent comes with prism_start"]);
}
