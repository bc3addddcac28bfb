//! The mesh as lines of text, within the room that a terminal has. Where it comes from is `mesh.rs`.

use std::collections::BTreeMap;

use prism_api::mesh::{BellRecord, LatencyView, MeshOverview, OwedReply, RosterAgent};
use prism_core::mesh::words;
use prism_core::time::parse_rfc3339;
use serde_json::Number;

use crate::cli::{
    columns::{Cell, Column, GAP, cut, number, table, text},
    moments::{clock, distance},
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
pub(super) fn lines(page: &MeshOverview, width: usize, height: usize, now: i64) -> Vec<Line> {
    let head = head(page);
    let bells = newest(&page.bells);
    let agents = page.agents.iter().map(|one| agent(one, &bells)).collect::<Vec<_>>();
    let mut owed: Vec<&OwedReply> = page.obligations.iter().filter(|one| one.closed_at.is_none()).collect();
    // What is due first comes first, and what was due already before that.
    owed.sort_by_key(|one| one.due_at.as_deref().and_then(parse_rfc3339).unwrap_or(i64::MAX));
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

fn head(page: &MeshOverview) -> Vec<Line> {
    let there = page.agents.iter().filter(|one| matches!(&*one.presence, "connected" | "active")).count();
    let pending: u64 = page.agents.iter().map(|one| one.pending).sum();
    let overdue = page.obligations.iter().filter(|one| one.overdue && one.closed_at.is_none()).count();
    let mut line = vec![
        ("prism mesh".to_owned(), None),
        (format!("{GAP}{there} of {} agents there", page.agents.len()), None),
        (format!("{GAP}{pending} pending"), None),
    ];
    if overdue > 0 {
        line.push((format!("{GAP}{overdue} overdue"), Some(Colour::Red)));
    }
    let mut lines = vec![line];
    let latencies = latencies(&page.latencies);
    if !latencies.is_empty() {
        lines.push(vec![(latencies.join(GAP), Some(Colour::Dim))]);
    }
    lines
}

/// The latencies that are known, each with its name.
fn latencies(all: &BTreeMap<String, LatencyView>) -> Vec<String> {
    let known = |(name, one): (&String, &LatencyView)| {
        Some(format!("{} p50 {} p99 {}", name.replace('_', " "), took(one.p50_ms?), took(one.p99_ms?)))
    };
    all.iter().filter_map(known).collect()
}

fn agent(one: &RosterAgent, bells: &[&BellRecord]) -> Vec<Cell> {
    let plain = |text: &str| (text.to_owned(), None);
    let colour = match &*one.presence {
        "connected" | "active" => Some(Colour::Green),
        "silent" => Some(Colour::Yellow),
        _ => Some(Colour::Dim),
    };
    let support_colour = (one.surface_support == "degraded").then_some(Colour::Yellow);
    let last = bells.iter().find(|bell| bell.agent == one.agent);
    #[expect(clippy::cast_precision_loss, reason = "seconds, as people read them")]
    let seen = one.last_seen_ms.map(|ms| ago(ms as f64 / 1000.0)).unwrap_or_default();
    let note = one.checkpoint.as_ref().and_then(|checkpoint| checkpoint.note.lines().next());
    vec![
        plain(&one.agent),
        (one.presence.clone(), colour),
        plain(one.surface.as_deref().unwrap_or_default()),
        (words::support(&one.surface_support).to_owned(), support_colour),
        (one.pending.to_string(), (one.pending > 0).then_some(Colour::Yellow)),
        plain(&one.owes.to_string()),
        last.map(|bell| last_bell(bell)).unwrap_or_default(),
        plain(&seen),
        (one.workspace.clone().unwrap_or_default(), Some(Colour::Dim)),
        plain(note.unwrap_or_default()),
    ]
}

/// How the last bell went, in a few words.
fn last_bell(bell: &BellRecord) -> Cell {
    let after = bell.after_ms.as_ref().and_then(Number::as_f64).map(|ms| format!(" {}", took(ms))).unwrap_or_default();
    let BellRecord { path, result, .. } = bell;
    (format!("{path} {}{after}", words::result(path, result)), result_colour(result))
}

fn obligation(one: &OwedReply, now: i64) -> Vec<Cell> {
    let plain = |text: &str| (text.to_owned(), None);
    let due = match one.due_at.as_deref().and_then(parse_rfc3339) {
        Some(due) if one.overdue => (format!("{}, overdue", distance(due, now)), Some(Colour::Red)),
        Some(due) => (distance(due, now), None),
        None if one.sla_exempt => ("exempt".to_owned(), Some(Colour::Dim)),
        None => Cell::default(),
    };
    let wake = match &one.last_wake_path {
        None => Cell::default(),
        Some(path) => {
            let result = one.last_wake_result.as_deref().unwrap_or_default();
            let attempts = one.wake_attempt_count;
            (format!("{path} {}, {attempts} ×", words::result(path, result)), result_colour(result))
        }
    };
    vec![
        plain(&one.debtor),
        plain(&one.creditor),
        plain(&one.kind),
        plain(&one.state),
        due,
        wake,
        (one.signal_id.clone(), Some(Colour::Dim)),
    ]
}

fn bell(one: &BellRecord) -> Vec<Cell> {
    let plain = |text: &str| (text.to_owned(), None);
    let at = clock(&one.at);
    // The date is today's, as a rule; the time is what tells.
    let at = at.split_once('T').map_or("", |(_, time)| time.trim_end_matches('Z'));
    vec![
        (at.to_owned(), Some(Colour::Dim)),
        plain(&one.agent),
        plain(&one.signal_type),
        plain(&one.path),
        (words::result(&one.path, &one.result).to_owned(), result_colour(&one.result)),
        (one.after_ms.as_ref().and_then(Number::as_f64).map(took).unwrap_or_default(), None),
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
fn newest(bells: &[BellRecord]) -> Vec<&BellRecord> {
    let mut bells: Vec<&BellRecord> = bells.iter().collect();
    bells.sort_by_key(|one| std::cmp::Reverse(parse_rfc3339(&one.at).unwrap_or_default()));
    bells
}

#[cfg(test)]
mod tests;
