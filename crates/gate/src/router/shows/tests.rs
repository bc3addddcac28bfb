//! What an editor is told of runs, in which order, and what it costs if it does not read.

use serde_json::{Value, json};

use super::*;

fn begun(shows: &RunShows) -> u64 {
    let show = |id| RunShow {
        id,
        kind: RunShowKind::Command,
        verb: "exec_command".to_owned(),
        title: "one: ls".to_owned(),
        command: "ls".to_owned(),
        agent_id: "one".to_owned(),
        session_id: "s".to_owned(),
        path: "/w".to_owned(),
        rows: None,
        cols: None,
    };
    shows.begin(show).unwrap()
}

fn prints(shows: &RunShows, id: u64, text: &str) {
    shows.change(id, |run| run.push(text));
}

fn ends(shows: &RunShows, id: u64, exit_code: i32) {
    shows.change(id, |run| run.ended = Some(RunEnding { exit_code: Some(exit_code), ..RunEnding::default() }));
}

/// The next message, as it is written.
async fn next(shows: &RunShows) -> Value {
    serde_json::to_value(shows.next().await).unwrap()
}

#[tokio::test]
async fn a_run_is_told_in_order_and_what_is_printed_together_comes_together() {
    let shows = RunShows::default();
    let id = begun(&shows);
    prints(&shows, id, "one\r\n");
    prints(&shows, id, "two\r\n");
    let show = next(&shows).await;
    assert_eq!((&show["type"], &show["id"], &show["kind"]), (&json!("show"), &json!(1), &json!("command")));
    assert!(show.get("rows").is_none(), "{show}");
    assert_eq!(next(&shows).await, json!({"type": "show_output", "id": 1, "text": "one\r\ntwo\r\n"}));
    prints(&shows, id, "three");
    ends(&shows, id, 3);
    // So often and no more.
    let at = shows.table().next_at.unwrap();
    let (None, Some(again)) = shows.table().next(at - PIECE_EVERY / 2) else { panic!("it has its time") };
    assert_eq!(again, at);
    assert_eq!(next(&shows).await, json!({"type": "show_output", "id": 1, "text": "three"}));
    assert_eq!(next(&shows).await, json!({"type": "show_ended", "id": 1, "exit_code": 3}));
    assert!(shows.table().runs.is_empty());
}

#[tokio::test]
async fn runs_take_turns() {
    let shows = RunShows::default();
    let (one, two) = (begun(&shows), begun(&shows));
    for id in [one, two] {
        prints(&shows, id, &"x".repeat(MAX_PIECE + 1));
    }
    let mut told = Vec::new();
    for _ in 0..6 {
        let message = next(&shows).await;
        if message["type"] == "show_output" {
            told.push(message["id"].as_u64().unwrap());
        }
    }
    assert_eq!(told, [one, two, one, two]);
}

#[tokio::test]
async fn of_what_nobody_reads_the_end_is_kept_and_a_line_says_how_much_is_not() {
    let shows = RunShows::default();
    let id = begun(&shows);
    let line = "ünd so weiter\r\n";
    let count = 4 * MAX_WAITING / line.len();
    (0..count).for_each(|_| prints(&shows, id, line));
    prints(&shows, id, "the end\r\n");
    ends(&shows, id, 0);
    assert!(shows.table().runs[&id].text.len() <= MAX_WAITING);
    next(&shows).await;
    let (mut text, mut pieces) = (String::new(), 0);
    loop {
        let message = next(&shows).await;
        match message["text"].as_str() {
            Some(piece) => {
                assert!(piece.len() <= MAX_PIECE);
                text.push_str(piece);
                pieces += 1;
            }
            None => break,
        }
    }
    assert!(pieces >= (MAX_WAITING - 2 * DROPPED_AT_ONCE) / MAX_PIECE, "{pieces}");
    let rest = text.strip_prefix("\x1b[0m\r\n[… ").unwrap();
    let (left_out, rest) = rest.split_once(" bytes were not shown …]\r\n").unwrap();
    let shown = rest.strip_suffix("the end\r\n").unwrap();
    assert!(shown.starts_with(line) && !rest.contains('\u{fffd}'), "whole lines: {:?}", &rest[..40]);
    assert_eq!(left_out.parse::<usize>().unwrap() + shown.len(), count * line.len());
}

#[tokio::test]
async fn one_line_without_an_end_is_cut_between_letters() {
    let shows = RunShows::default();
    let id = begun(&shows);
    (0..MAX_WAITING).for_each(|_| prints(&shows, id, "ü"));
    next(&shows).await;
    ends(&shows, id, 0);
    let mut seen = 0;
    while let Some(text) = next(&shows).await["text"].as_str() {
        assert!(!text.contains('\u{fffd}'));
        seen += text.matches('ü').count();
    }
    assert!(seen >= (MAX_WAITING - 2 * DROPPED_AT_ONCE) / 2, "{seen}");
}

#[test]
fn there_is_room_for_so_many_and_none_once_it_is_gone() {
    let shows = RunShows::default();
    for expected in 1..=MAX_SHOWS as u64 {
        assert_eq!(begun(&shows), expected);
    }
    assert_eq!(shows.begin(|_| unreachable!("there is no room")), None);
    shows.close();
    prints(&shows, 1, "nobody is there");
    assert!(shows.table().runs.is_empty());
    assert_eq!(shows.begin(|_| unreachable!("it is closed")), None);
}

#[test]
fn a_title_is_one_line_of_what_can_be_seen() {
    assert_eq!(in_a_line("one: echo a\n\x1b]0;b\x07", 80), "one: echo a  ]0;b ");
    assert_eq!(in_a_line("  äöü  ", 3), "äöü");
    assert_eq!(in_a_line("abcd", 3), "ab…");
}
