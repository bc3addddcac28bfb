//! The mesh: who is there, what they owe each other, and how the bells ring. It is the page that `prism mesh` shows.

use maud::{Markup, html};
use serde_json::Value;

use super::{
    page::{Page, Tone, empty, state, tag, typed},
    words::{Moment, ago, millis},
};
use prism_core::{mesh::words as bells, time::parse_rfc3339};

/// Obligations that are shown. The rest is counted.
const MAX_OBLIGATIONS: usize = 50;

/// `everything` is what the mesh says of itself; `None` if there is none.
pub fn page(everything: Option<&Value>, now: Moment) -> Markup {
    let Some(page) = everything else {
        return empty(
            Page::Signals,
            "This daemon has no mesh",
            &html! {
                "It needs Prism’s database. " (typed("prism doctor")) " says what is wrong with it."
            },
        );
    };
    let (agents, bells, obligations) = (list(page, "agents"), list(page, "bells"), list(page, "obligations"));
    html! {
        @if agents.is_empty() {
            (empty(Page::Signals, "No agents yet", &html! {
                "Run " (typed("prism install --all")) "; agents appear when they call " (typed("prism_start")) "."
            }))
        } @else {
            (self::agents(agents, now))
        }
        (owed(obligations, page["obligations_open"].as_u64().unwrap_or_default(), now))
        (rung(bells, now))
    }
}

fn agents(agents: &[Value], now: Moment) -> Markup {
    html! {
        section data-key="agents" aria-labelledby="agents" {
            h2.section #agents { "Agents" }
            div.table-box { table.data.folds {
                thead { tr { th { "Agent" } th { "Presence" } th { "Woken by" } th.number { "Waiting" } th.number { "Open questions" } th { "Seen" } } }
                tbody {
                    @for one in agents {
                        tr data-key=(word(one, "agent")) data-item tabindex="0" {
                            th scope="row" {
                                (word(one, "agent"))
                                span.sub { (word(one, "surface")) @if !word(one, "workspace").is_empty() { " · " (word(one, "workspace")) } }
                            }
                            td data-label="Presence" { (presence(word(one, "presence"))) }
                            td data-label="Woken by" { (paths(one)) }
                            td.number data-label="Waiting" { (number(one, "pending")) }
                            td.number data-label="Open questions" { (number(one, "owes")) }
                            td data-label="Seen" { (seen(one, now)) }
                        }
                    }
                }
            } }
        }
    }
}

fn owed(obligations: &[Value], open: u64, now: Moment) -> Markup {
    let shown = obligations.len().min(MAX_OBLIGATIONS);
    let more = usize::try_from(open).unwrap_or(usize::MAX).saturating_sub(shown);
    html! {
        section data-key="obligations" aria-labelledby="obligations" {
            h2.section #obligations { "Open questions" }
            @if obligations.is_empty() {
                p.none { "Nobody waits for an answer." }
            } @else {
                div.table-box { table.data.folds {
                    thead { tr { th { "Asked" } th { "By" } th { "What" } th { "Due" } th { "Last wake" } } }
                    tbody {
                        @for one in &obligations[..shown] {
                            tr data-key=(word(one, "signal_id")) data-item tabindex="0" {
                                th scope="row" { (word(one, "debtor")) }
                                td data-label="By" { (word(one, "creditor")) }
                                td data-label="What" { (word(one, "type")) " " (tag(Tone::Quiet, word(one, "state"))) }
                                td data-label="Due" { (due(one, now)) }
                                td data-label="Last wake" { (last_wake(one)) }
                            }
                        }
                    }
                } }
                @if more > 0 { p.fine { "and " (more) " more; " (typed("prism mesh --json")) " has them all" } }
            }
        }
    }
}

fn rung(bells: &[Value], now: Moment) -> Markup {
    html! {
        section data-key="bells" aria-labelledby="bells" {
            h2.section #bells { "Last bells" }
            @if bells.is_empty() {
                p.none { "No bell has rung yet." }
            } @else {
                div.table-box { table.data.folds {
                    thead { tr { th { "For" } th { "What" } th { "Path" } th { "Result" } th.number { "Took" } th { "When" } } }
                    tbody {
                        @for one in bells {
                            tr data-key={ (word(one, "at")) "-" (word(one, "agent")) "-" (word(one, "path")) "-" (word(one, "result")) } {
                                th scope="row" { (word(one, "agent")) }
                                td data-label="What" { (word(one, "signal_type")) }
                                td data-label="Path" { (word(one, "path")) }
                                td data-label="Result" { (result(word(one, "path"), word(one, "result"))) }
                                td.number data-label="Took" { @if let Some(ms) = one["after_ms"].as_f64() { (millis(ms)) } @else { span.dim { "–" } } }
                                td data-label="When" { @if let Some(at) = moment(&one["at"]) { (ago(at, now)) } }
                            }
                        }
                    }
                } }
            }
        }
    }
}

fn presence(word: &str) -> Markup {
    let tone = match word {
        "connected" | "active" => Tone::Good,
        "idle" | "stale" => Tone::Notice,
        _ => Tone::Quiet,
    };
    state(tone, word)
}

fn result(path: &str, result: &str) -> Markup {
    let tone = match result {
        "confirmed" => Tone::Good,
        "send-failed" => Tone::Bad,
        "uncaptured" | "unanswered" => Tone::Notice,
        _ => Tone::Quiet,
    };
    state(tone, bells::result(path, result))
}

fn paths(one: &Value) -> Markup {
    let paths: Vec<&str> = list(one, "paths").iter().filter_map(Value::as_str).collect();
    html! {
        @if paths.is_empty() { span.dim { "nothing" } } @else { (paths.join(", ")) }
        @if word(one, "surface_support") == "degraded" { " " (tag(Tone::Notice, bells::support("degraded"))) }
    }
}

fn number(one: &Value, name: &str) -> Markup {
    let number = one[name].as_u64().unwrap_or_default();
    html! { @if number == 0 { span.dim { "0" } } @else { (number) } }
}

fn seen(one: &Value, now: Moment) -> Markup {
    let Some(ms) = one["last_seen_ms"].as_i64() else { return html! { span.dim { "–" } } };
    ago(Moment(now.0 - ms), now)
}

fn due(one: &Value, now: Moment) -> Markup {
    let overdue = one["overdue"] == true;
    html! {
        @match moment(&one["due_at"]) {
            Some(due) if overdue => { (tag(Tone::Bad, "overdue")) " " (ago(due, now)) }
            Some(due) => { "in " (super::words::left(due, now)) }
            None if one["sla_exempt"] == true => { span.dim { "exempt" } }
            None => { span.dim { "–" } }
        }
    }
}

fn last_wake(one: &Value) -> Markup {
    let attempts = one["wake_attempt_count"].as_u64().unwrap_or_default();
    match (word(one, "last_wake_path"), word(one, "last_wake_result")) {
        ("", _) => html! { span.dim { "none" } },
        (path, result) => html! { (path) " " (bells::result(path, result)) span.dim { " · " (attempts) "×" } },
    }
}

fn moment(value: &Value) -> Option<Moment> {
    parse_rfc3339(value.as_str()?).map(Moment)
}

fn list<'v>(page: &'v Value, name: &str) -> &'v [Value] {
    page[name].as_array().map_or(&[], Vec::as_slice)
}

fn word<'v>(one: &'v Value, name: &str) -> &'v str {
    one[name].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_empty_mesh_says_how_agents_come() {
        assert!(page(Some(&json!({})), Moment(0)).into_string().contains("prism_start"));
        assert!(page(None, Moment(0)).into_string().contains("prism doctor"));
    }

    #[test]
    fn what_is_overdue_says_so_in_words() {
        let owed = json!({"signal_id": "1", "debtor": "a", "creditor": "b", "type": "question", "state": "open",
            "due_at": "1970-01-01T00:00:10Z", "overdue": true});
        let page = page(Some(&json!({"obligations": [owed], "obligations_open": 1})), Moment(70_000)).into_string();
        assert!(page.contains(">overdue<") && page.contains("1 min ago"), "{page}");
    }

    #[test]
    fn bells_and_agents_are_told_in_plain_words() {
        let bell = |path: &str, result: &str| json!({"agent": "a", "path": path, "result": result});
        let agent = json!({"agent": "a", "presence": "idle", "surface_support": "degraded", "owes": 2});
        let page = json!({"agents": [agent], "bells": [bell("desktop", "uncaptured"), bell("sse", "coalesced")]});
        let page = super::page(Some(&page), Moment(0)).into_string();
        for words in
            ["only at its next tool call", "cannot show notices", "merged with an earlier bell", "Open questions"]
        {
            assert!(page.contains(words), "{words}: {page}");
        }
        assert!(!["degraded<", "uncaptured<", "coalesced<", "Owes"].iter().any(|word| page.contains(word)), "{page}");
    }
}
