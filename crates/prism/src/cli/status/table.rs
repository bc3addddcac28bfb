//! A status as lines of text: what each line says, and how it fits into a terminal. Where it comes from is `status.rs`.

use prism_api::status::{ConfigState, DestinationStatus, LinkStatus, SessionStatus, StatusReport, StreamStatus};
use prism_bridge::drive::health;

use super::words::{ago, size, time, took};
use crate::cli::{
    columns::{Cell, Column, GAP, cut, number, table, text},
    say::{Colour, Line},
};

/// Streams are sent something every 15 s; what was silent for longer than three times that is stuck.
const STALE_S: f64 = 45.0;
const DESTINATIONS: [Column; 14] = [
    text("SERVER", 0),
    text("STATE", 0),
    text("ERA", 5),
    text("PROCESS", 6),
    number("PID", 4),
    number("MEMORY", 3),
    number("UP", 7),
    number("RESTARTS", 8),
    number("SESSIONS", 1),
    number("IN FLIGHT", 9),
    number("CALLS", 0),
    number("FAILED", 0),
    number("P50", 10),
    number("P99", 2),
];

const SESSIONS: [Column; 8] = [
    text("CLIENT", 0),
    text("AT", 0),
    text("VIA", 1),
    text("REVISION", 3),
    number("CALLS", 2),
    number("IDLE", 0),
    text("STREAMS", 0),
    text("SESSION", 4),
];

/// How much is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StatusDetail {
    Usual,
    /// Also why each server is shared, or is not.
    Why,
}

/// All of it, no line longer than `width`.
pub(super) fn lines(status: &StatusReport, detail: StatusDetail, width: usize) -> Vec<Line> {
    let mut lines = head(status);
    lines.push(Vec::new());
    lines.extend(destinations(status, detail, width));
    let sessions: Vec<(Vec<Cell>, Vec<Line>)> = status.sessions.iter().map(|one| (session(one), Vec::new())).collect();
    if !sessions.is_empty() {
        lines.push(Vec::new());
        lines.extend(table(&SESSIONS, sessions, width));
    }
    if !status.clients.is_empty() || !status.listens.is_empty() {
        lines.push(Vec::new());
        lines.extend(modern(status));
    }
    lines.extend(status.mesh.iter().flat_map(|mesh| super::agents::lines(mesh, width)));
    lines.into_iter().map(|line| cut(line, width)).collect()
}

fn head(status: &StatusReport) -> Vec<Line> {
    let daemon = &status.daemon;
    let mut lines = vec![vec![
        (format!("prism {}", daemon.version), None),
        (format!("{GAP}{}", daemon.url), None),
        (
            format!(
                "{GAP}pid {}{GAP}up {}{GAP}{}{GAP}{} of {} files",
                daemon.pid,
                time(daemon.uptime_s),
                size(daemon.memory_bytes),
                daemon.open_files,
                daemon.max_open_files
            ),
            Some(Colour::Dim),
        ),
    ]];
    if daemon.stopping {
        lines.push(vec![("it is stopping".to_owned(), Some(Colour::Yellow))]);
    }
    lines.extend(daemon.record.iter().map(|why| vec![(one_line(why), Some(Colour::Red))]));
    let file = daemon.config.file.as_deref().unwrap_or("none; everything is at its default");
    lines.push(vec![(format!("config {file}"), Some(Colour::Dim))]);
    let why = one_line(daemon.config.error.as_deref().unwrap_or("it cannot be read"));
    let said = match daemon.config.state {
        ConfigState::Ok => None,
        ConfigState::NeedsRestart => Some(format!("the config was changed and is in effect, but for one thing: {why}")),
        ConfigState::Untrusted => Some(format!("a config waits for you to see it: {why}")),
        ConfigState::KeptOld => {
            Some(format!("the config was changed and is not in effect, the one before it is: {why}"))
        }
    };
    lines.extend(said.map(|said| vec![(said, Some(Colour::Yellow))]));
    lines
}

fn destinations(status: &StatusReport, detail: StatusDetail, width: usize) -> Vec<Line> {
    // Prism's own servers are worth a line once somebody has used them.
    let shown = status.destinations.iter().filter(|one| one.kind != "built_in" || one.requests > 0);
    let rows: Vec<(Vec<Cell>, Vec<Line>)> = shown.map(|one| (destination(one), details(one, detail, width))).collect();
    if rows.is_empty() {
        return vec![vec![(
            "no servers yet; next: prism add files -- npx -y @modelcontextprotocol/server-filesystem .".to_owned(),
            None,
        )]];
    }
    table(&DESTINATIONS, rows, width)
}

fn destination(one: &DestinationStatus) -> Vec<Cell> {
    let plain = |text: String| (text, None);
    let running: Vec<&LinkStatus> = one.links.iter().filter(|link| link.uptime_s.is_some()).collect();
    let pid = match running.as_slice() {
        [only] => only.pid.map(|pid| pid.to_string()),
        links => {
            Some(format!("{} ×", links.iter().filter(|link| link.pid.is_some()).count())).filter(|_| links.len() > 1)
        }
    };
    let up = running.iter().filter_map(|link| link.uptime_s).fold(0.0, f64::max);
    vec![
        plain(one.name.clone()),
        (health::word(&one.state), state_colour(one)),
        plain(one.era.clone().unwrap_or_else(|| "?".to_owned())),
        plain(one.model.clone()),
        plain(pid.unwrap_or_default()),
        plain(if one.memory_bytes > 0 { size(one.memory_bytes) } else { String::new() }),
        plain(if running.is_empty() { String::new() } else { time(up) }),
        (one.restarts.to_string(), (one.restarts > 0).then_some(Colour::Yellow)),
        plain(match one.max_sessions {
            Some(max) => format!("{}/{max}", one.sessions),
            None => one.sessions.to_string(),
        }),
        plain(one.in_flight.to_string()),
        plain(one.calls.to_string()),
        (one.failures.to_string(), (one.failures > 0).then_some(Colour::Red)),
        plain(one.p50_ms.map(took).unwrap_or_default()),
        plain(one.p99_ms.map(took).unwrap_or_default()),
    ]
}

fn state_colour(one: &DestinationStatus) -> Option<Colour> {
    match one.state.as_str() {
        "up" => Some(Colour::Green),
        "slow" | "starting" => Some(Colour::Yellow),
        _ if one.is_ill() => Some(Colour::Red),
        _ => Some(Colour::Dim),
    }
}

/// What does not fit into a row: why it is shared or not if that is wanted, each process where there are several, what went
/// wrong.
fn details(one: &DestinationStatus, detail: StatusDetail, width: usize) -> Vec<Line> {
    let dim = |text: String| vec![(format!("  {text}"), Some(Colour::Dim))];
    let mut lines = Vec::new();
    if detail == StatusDetail::Why && one.kind != "built_in" {
        let sandboxed = if one.sandboxed { "sandboxed, " } else { "" };
        lines.push(dim(format!("{sandboxed}{}: {}", one.model, one.model_why)));
    }
    let running: Vec<&LinkStatus> = one.links.iter().filter(|link| link.pid.is_some()).collect();
    if running.len() > 1 {
        lines.extend(running.iter().map(|link| dim(process(link))));
    }
    if !one.changed_tools.is_empty() {
        let text = format!("  description or schema changed since first use: {}", one.changed_tools.join(", "));
        lines.push(vec![(text, Some(Colour::Yellow))]);
    }
    // How it is now; or, of one that is well, what was wrong the last time.
    if one.is_ill() {
        lines.extend(wrapped(&one_line(&one.why), width).map(|text| vec![(text, Some(Colour::Red))]));
        let fix = one.fix.iter().map(|fix| format!("fix: {}", one_line(fix)));
        lines.extend(fix.flat_map(|fix| wrapped(&fix, width).collect::<Vec<_>>()).map(|text| vec![(text, None)]));
    } else if let Some(trouble) = &one.last_error {
        lines.push(dim(format!("{}: {}", ago(trouble.ago_s), one_line(&trouble.text))));
    }
    lines
}

/// A sentence below a row, in as many lines as it needs: the end of a reason is often what matters.
fn wrapped(text: &str, width: usize) -> impl Iterator<Item = String> + use<> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is one from the start on");
        if !line.is_empty() && line.chars().count() + word.chars().count() + 3 > width {
            lines.push(word.to_owned());
        } else {
            line.push_str(if line.is_empty() { "" } else { " " });
            line.push_str(word);
        }
    }
    lines.into_iter().map(|line| format!("  {line}"))
}

fn process(link: &LinkStatus) -> String {
    let whose = match link.purpose.as_str() {
        "own" => "of one client",
        "turns" => "of modern clients, in turns",
        _ => "shared",
    };
    let pid = link.pid.map(|pid| pid.to_string()).unwrap_or_default();
    format!(
        "pid {pid}, {whose}: {}, {}, up {}, {}, {} in flight",
        link.state,
        size(link.memory_bytes.unwrap_or_default()),
        time(link.uptime_s.unwrap_or_default()),
        counted(link.sessions, "session"),
        link.in_flight
    )
}

fn session(one: &SessionStatus) -> Vec<Cell> {
    let plain = |text: String| (text, None);
    let client = one.client.as_ref().map(|client| format!("{} {}", client.name, client.version).trim().to_owned());
    let at = match (&one.destination, one.parts.as_slice()) {
        (Some(name), _) => name.clone(),
        (None, []) => "hub".to_owned(),
        (None, parts) => format!("hub: {}", parts.join(", ")),
    };
    vec![
        plain(client.unwrap_or_else(|| "?".to_owned())),
        plain(at),
        plain(one.transport.clone()),
        plain(one.revision.clone().unwrap_or_default()),
        plain(one.calls.to_string()),
        plain(time(one.idle_s)),
        health(one),
        (one.id.clone(), Some(Colour::Dim)),
    ]
}

/// Whether what the server has to say reaches the client.
fn health(one: &SessionStatus) -> Cell {
    let Some(streams) = &one.streams else { return ("?".to_owned(), Some(Colour::Yellow)) };
    let waiting: u64 = streams.iter().map(|stream| stream.waiting).sum::<u64>() + one.undelivered;
    let stale = streams.iter().map(|stream| stream.silent_s).filter(|silent| *silent > STALE_S).fold(0.0, f64::max);
    let lasting = |stream: &&StreamStatus| stream.kind != "post";
    let open = streams.iter().filter(lasting).count() as u64;
    let calls = streams.len() as u64 - open;
    let mut text = match (open, calls) {
        (0, 0) => "none".to_owned(),
        (open, 0) => format!("{open} open"),
        (open, calls) => format!("{open} open, {calls} of calls"),
    };
    let mut colour = None;
    if waiting > 0 {
        text.push_str(&format!(", {} waiting", counted(waiting, "event")));
        colour = Some(Colour::Yellow);
    }
    if stale > 0.0 {
        text.push_str(&format!(", silent for {}", time(stale)));
        colour = Some(Colour::Yellow);
    }
    (text, colour)
}

/// Modern clients have no sessions: what is known of them is what they listen to, and who came by.
fn modern(status: &StatusReport) -> Vec<Line> {
    let mut lines = Vec::new();
    if !status.listens.is_empty() {
        let mut names: Vec<&str> = status.listens.iter().map(|listen| listen.destination.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let count = counted(status.listens.len() as u64, "stream");
        lines.push(vec![(format!("{count} of changes for modern clients: {}", names.join(", ")), None)]);
    }
    for caller in &status.clients {
        let name = caller.client.as_ref().map(|client| format!("{} {}", client.name, client.version).trim().to_owned());
        let name = name.unwrap_or_else(|| "a client without a name".to_owned());
        let at = caller.destination.as_deref().unwrap_or("hub");
        let text = format!("{at}  last used by {name} ({}), {}", caller.transport, ago(caller.ago_s));
        lines.push(vec![(text, Some(Colour::Dim))]);
    }
    lines
}

fn counted(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn one_line(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
