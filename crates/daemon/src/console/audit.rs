//! The audit: what happened, newest first, and whether the chain holds.

use maud::{Markup, html};
use prism_api::audit::AuditLine;
use serde_json::{Map, Value};

use super::{
    page::{ConsolePage, Tone, empty, state, tag, typed, visible},
    words::{Moment, ago, count},
};

/// What is known of the chain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ChainStatus {
    /// Nobody has looked yet, or somebody is at it for the first time.
    #[default]
    Unknown,
    Holds {
        lines: u64,
        files: u64,
        head: String,
        at: Moment,
    },
    Broken {
        why: String,
        at: Moment,
    },
}

/// After this time a log that is quickly checked is checked again when somebody looks.
const STALE_MS: i64 = 30_000;
/// As many lines are checked in no time that a person would notice.
const QUICK_LINES: u64 = 100_000;

impl ChainStatus {
    /// Whether to look again, now that somebody looks.
    pub fn is_stale(&self, now: Moment) -> bool {
        match self {
            Self::Unknown => true,
            Self::Holds { lines, at, .. } => *lines < QUICK_LINES && now.0 - at.0 > STALE_MS,
            // What is broken stays broken; a person asks for another look.
            Self::Broken { .. } => false,
        }
    }
}

/// What is shown: lines as they are in the log, newest first.
#[derive(Debug)]
pub struct AuditView<'a> {
    pub lines: &'a [AuditLine],
    /// What was searched for.
    pub query: &'a str,
    pub chain: &'a ChainStatus,
    /// Where the next page begins, if there is one.
    pub before: Option<u64>,
}

pub fn page(shown: &AuditView<'_>, now: Moment) -> Markup {
    html! {
        (chain(shown.chain, now))
        form.search role="search" data-search data-key="search" method="get" action="/console/audit" {
            label.grow { span.sr { "Search the audit" }
                input type="search" name="q" value=(shown.query) placeholder="Search: an agent, an action, a path…" autocomplete="off" spellcheck="false"; }
            button type="submit" { "Search" }
        }
        @if shown.lines.is_empty() {
            @if shown.query.is_empty() {
                (empty(ConsolePage::Audit, "Nothing is on record yet", &html! {
                    "Requests, decisions and every action of a grant are written here before they happen. "
                    "At a terminal: " (typed("prism audit tail"))
                }))
            } @else {
                (empty(ConsolePage::Audit, "No line has that in it", &html! { "Search for less, or " a href="/console/audit" { "see all of it" } "." }))
            }
        } @else {
            ol.lines data-key="lines" aria-label="Audit lines, newest first" {
                @for line in shown.lines { (entry(line, now)) }
            }
            @if let Some(before) = shown.before {
                p.next data-key="next" { a.button href=(older(shown.query, before)) { "Older lines" } }
            }
        }
    }
}

fn chain(chain: &ChainStatus, now: Moment) -> Markup {
    let verify = html! { button.small type="button" disabled[*chain == ChainStatus::Unknown] data-post="/console/act/verify" data-done="Checking the chain" { "Check now" } };
    html! {
        div.chain data-key="chain" {
            @match chain {
                ChainStatus::Unknown => { (state(Tone::Quiet, "checking the chain…")) span.sub {} (verify) }
                ChainStatus::Holds { lines, files, head, at } => {
                    (state(Tone::Good, "chain verified"))
                    span.sub { (count(*lines, "line")) " in " (count(*files, "file")) " · head " code title=(head) { (head.get(..12).unwrap_or(head)) } " · " (ago(*at, now)) }
                    (verify)
                }
                ChainStatus::Broken { why, at } => {
                    (state(Tone::Bad, "chain broken"))
                    span.sub { (visible(why)) " · " (ago(*at, now)) }
                    (verify)
                }
            }
        }
    }
}

fn entry(line: &AuditLine, now: Moment) -> Markup {
    let seq = line.seq.unwrap_or_default();
    let none = Map::new();
    let args = line.args.as_object().unwrap_or(&none);
    let ids = [
        ("user", line.user.as_str()),
        ("session id", line.session_id.as_deref().unwrap_or_default()),
        ("request id", line.request_id.as_deref().unwrap_or_default()),
    ];
    html! {
        li data-key=(seq) {
            details.entry data-key={ "line-" (seq) } {
                summary data-item {
                    span.when { @if let Some(at) = Moment::read(&line.ts) { (ago(at, now)) } }
                    span.who { (visible(&line.actor)) }
                    span.did { code { (visible(&line.action)) } " " span.about { (visible(&about(args))) } }
                    (outcome(&line.result))
                }
                dl.facts {
                    div { dt { "line" } dd { code { (seq) } } }
                    div { dt { "at" } dd { code { (line.ts) } } }
                    @for (name, value) in ids {
                        @if !value.is_empty() { div { dt { (name) } dd { code { (visible(value)) } } } }
                    }
                    @if let Some(of) = line.of { div { dt { "result of line" } dd { code { (of) } } } }
                    @if !args.is_empty() {
                        div { dt { "args" } dd { pre.json { (visible_lines(&serde_json::to_string_pretty(args).unwrap_or_default())) } } }
                    }
                    div { dt { "hash" } dd { code { (line.hash) } } }
                }
            }
        }
    }
}

/// What an action was about, in a few words: its path, its command, or the first thing that it was told.
fn about(args: &Map<String, Value>) -> String {
    let telling =
        ["path", "command", "tool", "destination", "reason", "cwd"].into_iter().find_map(|name| args.get(name));
    let text = match telling.or_else(|| args.values().find(|value| !value.is_null())) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(words)) => words.iter().filter_map(Value::as_str).collect::<Vec<&str>>().join(" "),
        Some(other @ (Value::Number(_) | Value::Bool(_))) => other.to_string(),
        _ => String::new(),
    };
    super::requests::short(&text)
}

fn outcome(result: &str) -> Markup {
    let tone = match result {
        "ok" | "approved" => Tone::Good,
        "allowed" => Tone::Quiet,
        _ if result.starts_with("refused") || result.starts_with("error") || result.starts_with("denied") => Tone::Bad,
        _ => Tone::Quiet,
    };
    tag(tone, if result.is_empty() { "–" } else { result })
}

fn older(query: &str, before: u64) -> String {
    match query {
        "" => format!("/console/audit?before={before}"),
        query => format!("/console/audit?q={}&before={before}", escaped(query)),
    }
}

/// As a part of a URL.
fn escaped(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

fn visible_lines(text: &str) -> Markup {
    html! { @for (at, line) in text.split('\n').enumerate() { @if at > 0 { "\n" } (visible(line)) } }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(lines: &[AuditLine], query: &str, chain: &ChainStatus) -> String {
        page(&AuditView { lines, query, chain, before: Some(7) }, Moment(60_000)).into_string()
    }

    //
    #[test]
    fn a_line_says_who_did_what_with_what_result() {
        let line = json!({"seq": 8, "ts": "1970-01-01T00:00:00.000000Z", "actor": "helper", "action": "write_file",
            "args": {"path": "/w/<a>"}, "result": "refused: forbidden", "hash": "ff"});
        let line = serde_json::from_value(line).unwrap();
        let page = shown(&[line], "a&b", &ChainStatus::Broken { why: "line 8".into(), at: Moment(0) });
        assert!(page.contains("/w/&lt;a&gt;") && page.contains("refused: forbidden"), "{page}");
        assert!(page.contains("chain broken") && page.contains("/console/audit?q=a%26b&amp;before=7"), "{page}");
    }

    #[test]
    fn nothing_found_is_not_nothing_there() {
        assert!(shown(&[], "", &ChainStatus::Unknown).contains("Nothing is on record yet"));
        assert!(shown(&[], "zebra", &ChainStatus::Unknown).contains("No line has that in it"));
    }
}
