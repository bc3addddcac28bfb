//! A report in words and tables for people, and as JSON for programs. The names of the members are a promise.

use std::time::Duration;

use prism_core::mcp::Era;
use prism_mcp::client::{ArrivalPath, Foreign, ReceivedMessage, SeenError, SeenMessage};
use serde_json::{Map, Value, json};

use super::{
    check::{ProbeCheck, ProbeVerdict},
    judge::{correlation_of, counted, format_of},
    record::TimedMessage,
    run::{DEMO, ProbeReport},
};
use crate::cli::say::{self, Colour};

/// Letters of what a server says that are repeated.
const SHOWN: usize = 48;

/// Prints the report of one run.
pub(super) fn report(report: &ProbeReport, url: &str) {
    say::line("");
    if let Some(fault) = &report.fault {
        say::parts(&[
            ("no MCP server answered", Some(Colour::Red)),
            (&format!(" to revision {}: {fault}", report.wanted.name()), None),
        ]);
        if let Some(fix) = fault.fix(url) {
            say::line(&format!("  fix: {fix}"));
        }
        return;
    }
    let greeting = &report.greeting;
    say::line(&format!(
        "revision {} ({} era), asked for {}",
        greeting.revision,
        greeting.era.map_or("", Era::name),
        report.wanted.name()
    ));
    let capabilities: Vec<&str> =
        greeting.capabilities.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
    let session = greeting.session.as_deref().map_or("none".to_owned(), format_of);
    let headers: Vec<String> = greeting.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    let counts: Vec<String> = report.counts.iter().map(|(what, count)| counted(what, *count)).collect();
    let ping = report.ping.map(|ping| format!(", ping {} ms", milliseconds(ping))).unwrap_or_default();
    for (what, text) in [
        ("server", format!("{} {}", greeting.name, greeting.version)),
        ("session", session),
        ("capabilities", capabilities.join(", ")),
        ("headers", headers.join("; ")),
        ("lists", counts.join(", ")),
        ("time", format!("opened in {} ms{ping}", milliseconds(report.open))),
    ] {
        say::line(format!("  {what:13} {text}").trim_end());
    }
    section("calls", &calls(report), 3);
    section("messages", &messages(report), 2);
    if report.dropped > 0 {
        say::line(&format!("  and {} more", report.dropped));
    }
    say::line("\nchecks");
    let width = report.checks.iter().map(|check| check.name.len()).max().unwrap_or_default();
    for check in &report.checks {
        say_check(check, width);
    }
}

/// Prints the last line.
pub(super) fn verdict(ok: usize, failed: usize, skipped: usize) {
    let colour = if failed == 0 { Colour::Green } else { Colour::Red };
    say::line("");
    say::parts(&[(&format!("{ok} ok, {failed} failed, {skipped} skipped"), Some(colour))]);
}

fn say_check(check: &ProbeCheck, width: usize) {
    let colour = match check.verdict {
        ProbeVerdict::Ok => Colour::Green,
        ProbeVerdict::Fail => Colour::Red,
        ProbeVerdict::Skipped => Colour::Dim,
    };
    let word = format!("{:7}", check.verdict.word());
    say::parts(&[("  ", None), (&word, Some(colour)), (&format!("  {:width$}  {}", check.name, check.reason), None)]);
    if let Some(fix) = &check.fix {
        say::line(&format!("           {:width$}  fix: {fix}", ""));
    }
}

fn section(title: &str, rows: &[Vec<String>], numbers: usize) {
    say::line(&format!("\n{title}"));
    for line in table(rows, numbers) {
        say::line(&format!("  {line}"));
    }
}

/// Rows as lines whose columns stand under each other. The first columns are of numbers.
fn table(rows: &[Vec<String>], numbers: usize) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| match column {
            column if column < numbers => format!("{cell:>width$}"),
            _ => format!("{cell:width$}"),
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

fn calls(report: &ProbeReport) -> Vec<Vec<String>> {
    let mut rows = vec![["#", "ms", "took", "answer", "what"].map(str::to_owned).to_vec()];
    for asked in &report.asked {
        let answer = match asked.status {
            Some(status) => format!("{status} {}", asked.content).trim_end().to_owned(),
            None => "none".to_owned(),
        };
        let took = asked.took.map_or(String::new(), milliseconds);
        rows.push(vec![asked.id.to_string(), milliseconds(asked.at), took, answer, asked.what.clone()]);
    }
    rows
}

fn messages(report: &ProbeReport) -> Vec<Vec<String>> {
    let mut rows = vec![["#", "ms", "stream", "event", "id", "what"].map(str::to_owned).to_vec()];
    for (i, TimedMessage { at, arrival: one }) in report.arrivals.iter().enumerate() {
        let event = match (&one.event, one.path) {
            (Some(event), _) => event.clone(),
            (None, ArrivalPath::Json(_)) => String::new(),
            (None, _) => "(unnamed)".to_owned(),
        };
        let id = one.event_id.clone().unwrap_or_default();
        rows.push(vec![(i + 1).to_string(), milliseconds(*at), stream(one.path), event, id, what(report, one)]);
    }
    rows
}

fn stream(path: ArrivalPath) -> String {
    match path {
        ArrivalPath::Post(call) => format!("POST of {call}"),
        ArrivalPath::Json(call) => format!("JSON to {call}"),
        ArrivalPath::Get => "GET".to_owned(),
    }
}

/// What a message is about, in a few words: never all that is in it.
fn what(report: &ProbeReport, arrival: &ReceivedMessage) -> String {
    let SeenMessage { id, method, params, error } = SeenMessage::of(&arrival.message);
    let mut text = match method.as_deref() {
        Some("notifications/progress") => {
            let total = params.total.map(|total| format!("/{total}")).unwrap_or_default();
            format!("progress {}{total}", params.progress.unwrap_or_default())
        }
        Some("notifications/message") => {
            // What somebody else's server logs may be nobody else's business.
            let data = match params.data.as_str().filter(|_| report.greeting.name == DEMO) {
                Some(text) => format!("{:?}", excerpt(text)),
                None => format!("{} bytes", arrival.bytes),
            };
            format!("log {} {data}", params.level.as_ref().and_then(Value::as_str).unwrap_or_default())
        }
        Some(method) if id.is_some() => format!("question {method}"),
        Some(method) => method.to_owned(),
        None => {
            let id = id.unwrap_or_default();
            let asked = report.asked.iter().find(|asked| id == asked.id);
            let of = asked.map_or_else(|| format!("of {id}"), |asked| format!("of {}", asked.what));
            match error {
                Some(SeenError { code, message }) => {
                    format!("error {} {of}: {}", code.unwrap_or_default(), excerpt(&message))
                }
                None => format!("result {of}, {} bytes", arrival.bytes),
            }
        }
    };
    if let Some(id) = correlation_of(&arrival.message) {
        text.push_str(&format!(" [correlation {}]", excerpt(id)));
    }
    text
}

fn excerpt(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn milliseconds(time: Duration) -> String {
    format!("{:.1}", time.as_secs_f64() * 1000.0)
}

fn number(time: Duration) -> Value {
    ((time.as_secs_f64() * 10_000.0).round() / 10.0).into()
}

// === impl ProbeReport ===

impl ProbeReport {
    /// The whole of it, for programs.
    pub(super) fn json(&self, url: &str) -> Value {
        if let Some(fault) = &self.fault {
            let error = json!({"kind": fault.name(), "message": fault.to_string(), "fix": fault.fix(url)});
            return json!({"asked_revision": self.wanted.name(), "error": error});
        }
        let greeting = &self.greeting;
        let counts: Map<String, Value> =
            self.counts.iter().map(|(what, count)| ((*what).to_owned(), (*count).into())).collect();
        let headers: Map<String, Value> =
            greeting.headers.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect();
        let session = greeting.session.as_deref();
        json!({
            "asked_revision": self.wanted.name(),
            "error": null,
            "revision": greeting.revision,
            "era": greeting.era.map(Era::name),
            "server": {"name": greeting.name, "version": greeting.version},
            "session": {"issued": session.is_some(), "format": session.map(format_of)},
            "capabilities": greeting.capabilities,
            "has_instructions": greeting.instructions.is_some(),
            "headers": headers,
            "counts": counts,
            "open_ms": number(self.open),
            "ping_ms": self.ping.map(number),
            "calls": self.asked.iter().map(|asked| json!({
                "n": asked.id,
                "what": asked.what,
                "ms": number(asked.at),
                "took_ms": asked.took.map(number),
                "status": asked.status,
                "content_type": asked.content,
            })).collect::<Vec<_>>(),
            "messages": self.arrivals.iter().enumerate().map(|(i, one)| self.message(i + 1, one)).collect::<Vec<_>>(),
            "messages_dropped": self.dropped,
            "comments": self.comments,
            "checks": self.checks.iter().map(ProbeCheck::json).collect::<Vec<_>>(),
        })
    }

    fn message(&self, n: usize, TimedMessage { at, arrival: one }: &TimedMessage) -> Value {
        let (stream, call) = match one.path {
            ArrivalPath::Post(call) => ("post", Some(call)),
            ArrivalPath::Json(call) => ("json", Some(call)),
            ArrivalPath::Get => ("get", None),
        };
        let SeenMessage { id, method, params, error } = SeenMessage::of(&one.message);
        let kind = match (&method, id, &error) {
            (Some(_), Some(_), _) => "request",
            (Some(_), None, _) => "notification",
            (None, _, Some(_)) => "error",
            (None, _, None) => "result",
        };
        json!({
            "n": n,
            "ms": number(*at),
            "stream": stream,
            "call": call,
            "event": one.event,
            "event_id": one.event_id,
            "kind": kind,
            "method": method,
            "level": params.level,
            "progress": params.progress,
            "total": params.total,
            "correlation_id": correlation_of(&one.message),
            "error_code": error.and_then(|error| error.code),
            "bytes": one.bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_under_each_other() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let lines = table(&[row(["#", "ms", "what"]), row(["10", "1.5", "größe"]), row(["9", "100.0", ""])], 2);
        assert_eq!(lines, [" #     ms  what", "10    1.5  größe", " 9  100.0"]);
        assert!(table(&[], 2).is_empty());
    }

    #[test]
    fn long_texts_are_cut_at_a_letter() {
        assert_eq!(excerpt(&"ß".repeat(60)), format!("{}…", "ß".repeat(SHOWN)));
        assert_eq!(excerpt("short"), "short");
    }
}
