//! The mesh as lines of text, within the room that a terminal has. Where it comes from is `mesh.rs`.

use prism_core::mesh::words;
use serde_json::Value;

use crate::cli::{
    columns::{Cell, Column, GAP, cut, number, table, text},
    moments::{clock, distance, moment},
    say::{Colour, Line},
    status::words::{ago, took},
};

const AGENTS: [Column; 10] = [
    text("AGENT", 0),
    text("PRESENCE", 0),
    text("SURFACE", 3),
    text("WAKE", 2),
    number("PENDING", 0),
    number("OWES", 1),
    text("LAST BELL", 4),
    text("SEEN", 5),
    text("WORKSPACE", 6),
    text("CHECKPOINT", 7),
];

const OBLIGATIONS: [Column; 7] = [
    text("OWES", 0),
    text("TO", 0),
    text("WHAT", 0),
    text("STATE", 2),
    text("DUE", 0),
    text("LAST WAKE", 3),
    text("SIGNAL", 4),
];

const BELLS: [Column; 6] =
    [text("BELL", 4), text("FOR", 0), text("WHAT", 1), text("PATH", 0), text("RESULT", 0), number("TOOK", 3)];

/// Bells that are shown.
const MAX_BELLS: usize = 12;

/// All of it, no line longer than `width`, and no more than `height` lines.
pub(super) fn lines(page: &Value, width: usize, height: usize, now: i64) -> Vec<Line> {
    let head = head(page);
    let bells = newest(list(page, "bells"));
    let agents = list(page, "agents").iter().map(|one| agent(one, &bells)).collect::<Vec<_>>();
    let mut owed: Vec<&Value> = list(page, "obligations").iter().filter(|one| one["closed_at"].is_null()).collect();
    // What is due first comes first, and what was due already before that.
    owed.sort_by_key(|one| moment(&one["due_at"]).unwrap_or(i64::MAX));
    let owed = owed.into_iter().map(|one| obligation(one, now)).collect::<Vec<_>>();
    let bells = bells.iter().take(MAX_BELLS).map(|one| bell(one)).collect::<Vec<_>>();

    let room = shares([agents.len(), owed.len(), bells.len()], height.saturating_sub(head.len()));
    let mut lines = head;
    let none = "no agents yet; an agent comes with prism_start";
    section(&mut lines, &AGENTS, agents, room[0], width, Some(none));
    section(&mut lines, &OBLIGATIONS, owed, room[1], width, None);
    section(&mut lines, &BELLS, bells, room[2], width, None);
    lines.truncate(height);
    lines.into_iter().map(|line| cut(line, width)).collect()
}

/// Lines of a part that are no rows: a blank one, and the heads of its columns.
const AROUND: usize = 2;
/// Rows without which a part is not worth its heads.
const WORTH: usize = 2;

/// Gives each part its share of the lines: what one does not need is the others', and where there is no room for all the
/// last goes first.
fn shares(wanted: [usize; 3], room: usize) -> [usize; 3] {
    let needed = |parts: usize| -> usize {
        wanted[..parts].iter().filter(|rows| **rows > 0).map(|rows| AROUND + (*rows).min(WORTH)).sum()
    };
    let parts = (1..=3).rev().find(|parts| needed(*parts) <= room).unwrap_or(1);
    let around = AROUND * wanted[..parts].iter().filter(|rows| **rows > 0).count();
    let mut given = [0; 3];
    let mut left = room.saturating_sub(around);
    let mut hungry = true;
    while left > 0 && hungry {
        hungry = false;
        for (given, wanted) in given.iter_mut().zip(wanted).take(parts) {
            if *given < wanted && left > 0 {
                *given += 1;
                left -= 1;
                hungry = true;
            }
        }
    }
    given
}

fn section(
    lines: &mut Vec<Line>,
    columns: &[Column],
    mut rows: Vec<Vec<Cell>>,
    room: usize,
    width: usize,
    none: Option<&str>,
) {
    if rows.is_empty() {
        lines.extend(none.map(|none| vec![(none.to_owned(), None)]));
        return;
    }
    if room == 0 {
        return;
    }
    lines.push(Vec::new());
    let hidden = rows.len().saturating_sub(room);
    rows.truncate(room.saturating_sub(usize::from(hidden > 0)));
    let more = hidden + usize::from(hidden > 0);
    lines.extend(table(columns, rows.into_iter().map(|cells| (cells, Vec::new())).collect(), width));
    if hidden > 0 {
        lines.push(vec![(format!("… and {more} more"), Some(Colour::Dim))]);
    }
}

fn head(page: &Value) -> Vec<Line> {
    let agents = list(page, "agents");
    let there = agents.iter().filter(|one| matches!(word(one, "presence"), "connected" | "active")).count();
    let pending: u64 = agents.iter().filter_map(|one| one["pending"].as_u64()).sum();
    let overdue = list(page, "obligations").iter().filter(|one| one["overdue"] == true && one["closed_at"].is_null());
    let overdue = overdue.count();
    let mut line = vec![
        ("prism mesh".to_owned(), None),
        (format!("{GAP}{there} of {} agents there", agents.len()), None),
        (format!("{GAP}{pending} pending"), None),
    ];
    if overdue > 0 {
        line.push((format!("{GAP}{overdue} overdue"), Some(Colour::Red)));
    }
    let mut lines = vec![line];
    let latencies = latencies(&page["latencies"]);
    if !latencies.is_empty() {
        lines.push(vec![(latencies.join(GAP), Some(Colour::Dim))]);
    }
    lines
}

/// The latencies that are known, each with its name.
fn latencies(value: &Value) -> Vec<String> {
    let pair = |name: &str, one: &Value| {
        let number = |key: &str| one[key].as_f64().or_else(|| one[format!("{key}_ms")].as_f64());
        let (p50, p99) = (number("p50")?, number("p99")?);
        Some(format!("{name} p50 {} p99 {}", took(p50), took(p99)))
    };
    if let Some(only) = pair("latency", value) {
        return vec![only];
    }
    let members = value.as_object().into_iter().flatten();
    members.filter_map(|(name, one)| pair(&name.replace('_', " "), one)).collect()
}

fn agent(one: &Value, bells: &[&Value]) -> Vec<Cell> {
    let plain = |text: String| (text, None);
    let presence = word(one, "presence");
    let colour = match presence {
        "connected" | "active" => Some(Colour::Green),
        "silent" => Some(Colour::Yellow),
        _ => Some(Colour::Dim),
    };
    let support = word(one, "surface_support");
    let support_colour = (support == "degraded").then_some(Colour::Yellow);
    let count = |name: &str| one[name].as_u64().unwrap_or_default();
    let last = bells.iter().find(|bell| word(bell, "agent") == word(one, "agent"));
    #[expect(clippy::cast_precision_loss, reason = "seconds, as people read them")]
    let seen = one["last_seen_ms"].as_u64().map(|ms| ago(ms as f64 / 1000.0));
    vec![
        plain(word(one, "agent").to_owned()),
        (presence.to_owned(), colour),
        plain(word(one, "surface").to_owned()),
        (words::support(support).to_owned(), support_colour),
        (count("pending").to_string(), (count("pending") > 0).then_some(Colour::Yellow)),
        plain(count("owes").to_string()),
        last.map(|bell| last_bell(bell)).unwrap_or_default(),
        plain(seen.unwrap_or_default()),
        (word(one, "workspace").to_owned(), Some(Colour::Dim)),
        plain(word(&one["checkpoint"], "note").lines().next().unwrap_or_default().to_owned()),
    ]
}

/// How the last bell went, in a few words.
fn last_bell(bell: &Value) -> Cell {
    let after = bell["after_ms"].as_f64().map(|ms| format!(" {}", took(ms))).unwrap_or_default();
    let (path, result) = (word(bell, "path"), word(bell, "result"));
    (format!("{path} {}{after}", words::result(path, result)), result_colour(result))
}

fn obligation(one: &Value, now: i64) -> Vec<Cell> {
    let plain = |text: &str| (text.to_owned(), None);
    let due = match moment(&one["due_at"]) {
        Some(due) if one["overdue"] == true => (format!("{}, overdue", distance(due, now)), Some(Colour::Red)),
        Some(due) => (distance(due, now), None),
        None if one["sla_exempt"] == true => ("exempt".to_owned(), Some(Colour::Dim)),
        None => Cell::default(),
    };
    let attempts = one["wake_attempt_count"].as_u64().unwrap_or_default();
    let wake = match (word(one, "last_wake_path"), word(one, "last_wake_result")) {
        ("", _) => Cell::default(),
        (path, result) => (format!("{path} {}, {attempts} ×", words::result(path, result)), result_colour(result)),
    };
    vec![
        plain(word(one, "debtor")),
        plain(word(one, "creditor")),
        plain(word(one, "type")),
        plain(word(one, "state")),
        due,
        wake,
        (word(one, "signal_id").to_owned(), Some(Colour::Dim)),
    ]
}

fn bell(one: &Value) -> Vec<Cell> {
    let plain = |text: &str| (text.to_owned(), None);
    let at = clock(&one["at"]);
    // The date is today's, as a rule; the time is what tells.
    let at = at.split_once('T').map_or("", |(_, time)| time.trim_end_matches('Z'));
    let (path, result) = (word(one, "path"), word(one, "result"));
    vec![
        (at.to_owned(), Some(Colour::Dim)),
        plain(word(one, "agent")),
        plain(word(one, "signal_type")),
        plain(path),
        (words::result(path, result).to_owned(), result_colour(result)),
        (one["after_ms"].as_f64().map(took).unwrap_or_default(), None),
    ]
}

fn result_colour(result: &str) -> Option<Colour> {
    match result {
        "confirmed" => Some(Colour::Green),
        "send-failed" => Some(Colour::Red),
        "uncaptured" | "unanswered" => Some(Colour::Yellow),
        "coalesced" | "filtered" => Some(Colour::Dim),
        _ => None,
    }
}

/// The bells, the newest first, in whichever order they came.
fn newest(bells: &[Value]) -> Vec<&Value> {
    let mut bells: Vec<&Value> = bells.iter().collect();
    bells.sort_by_key(|one| std::cmp::Reverse(moment(&one["at"]).unwrap_or_default()));
    bells
}

fn list<'v>(page: &'v Value, name: &str) -> &'v [Value] {
    page[name].as_array().map_or(&[], Vec::as_slice)
}

fn word<'v>(one: &'v Value, name: &str) -> &'v str {
    one[name].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests;
