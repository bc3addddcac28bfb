//! The mesh: who is there, what they owe each other, and how the bells ring. It is the page that `prism mesh` shows.

use maud::{Markup, html};
use prism_api::mesh::{BellRecord, MeshOverview, OwedReply, RosterAgent};
use prism_core::{mesh::words as bells, time::parse_rfc3339};
use serde_json::Number;

use super::{
    page::{ConsolePage, Tone, empty, state, tag, typed},
    words::{Moment, ago, millis},
};

/// Obligations that are shown. The rest is counted.
const MAX_OBLIGATIONS: usize = 50;

/// `everything` is what the mesh says of itself; `None` if there is none.
pub fn page(everything: Option<&MeshOverview>, now: Moment) -> Markup {
    let Some(page) = everything else {
        return empty(
            ConsolePage::Signals,
            "This daemon has no mesh",
            &html! {
                "It needs Prism’s database. " (typed("prism doctor")) " says what is wrong with it."
            },
        );
    };
    let MeshOverview { agents, bells, obligations, obligations_open, .. } = page;
    html! {
        @if agents.is_empty() {
            (empty(ConsolePage::Signals, "No agents yet", &html! {
                "Run " (typed("prism install --all")) "; agents appear when they call " (typed("prism_start")) "."
            }))
        } @else {
            (self::agents(agents, now))
        }
        (owed(obligations, *obligations_open, now))
        (rung(bells, now))
    }
}

fn agents(agents: &[RosterAgent], now: Moment) -> Markup {
    html! {
        section data-key="agents" aria-labelledby="agents" {
            h2.section #agents { "Agents" }
            div.table-box { table.data.folds {
                thead { tr { th { "Agent" } th { "Presence" } th { "Woken by" } th.number { "Waiting" } th.number { "Open questions" } th { "Seen" } } }
                tbody {
                    @for one in agents {
                        tr data-key=(one.agent) data-item tabindex="0" {
                            th scope="row" {
                                (one.agent)
                                span.sub { (one.surface.as_deref().unwrap_or_default()) @if let Some(folder) = &one.workspace { " · " (folder) } }
                            }
                            td data-label="Presence" { (presence(&one.presence)) }
                            td data-label="Woken by" { (paths(one)) }
                            td.number data-label="Waiting" { (number(one.pending)) }
                            td.number data-label="Open questions" { (number(one.owes)) }
                            td data-label="Seen" { (seen(one, now)) }
                        }
                    }
                }
            } }
        }
    }
}

fn owed(obligations: &[OwedReply], open: u64, now: Moment) -> Markup {
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
                            tr data-key=(one.signal_id) data-item tabindex="0" {
                                th scope="row" { (one.debtor) }
                                td data-label="By" { (one.creditor) }
                                td data-label="What" { (one.kind) " " (tag(Tone::Quiet, &one.state)) }
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

fn rung(bells: &[BellRecord], now: Moment) -> Markup {
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
                            tr data-key={ (one.at) "-" (one.agent) "-" (one.path) "-" (one.result) } {
                                th scope="row" { (one.agent) }
                                td data-label="What" { (one.signal_type) }
                                td data-label="Path" { (one.path) }
                                td data-label="Result" { (result(&one.path, &one.result)) }
                                td.number data-label="Took" { @if let Some(ms) = one.after_ms.as_ref().and_then(Number::as_f64) { (millis(ms)) } @else { span.dim { "–" } } }
                                td data-label="When" { @if let Some(at) = moment(&one.at) { (ago(at, now)) } }
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

fn paths(one: &RosterAgent) -> Markup {
    html! {
        @if one.paths.is_empty() { span.dim { "nothing" } } @else { (one.paths.join(", ")) }
        @if one.surface_support == "degraded" { " " (tag(Tone::Notice, bells::support("degraded"))) }
    }
}

fn number(number: u64) -> Markup {
    html! { @if number == 0 { span.dim { "0" } } @else { (number) } }
}

fn seen(one: &RosterAgent, now: Moment) -> Markup {
    let Some(ms) = one.last_seen_ms.and_then(|ms| i64::try_from(ms).ok()) else {
        return html! { span.dim { "–" } };
    };
    ago(Moment(now.0 - ms), now)
}

fn due(one: &OwedReply, now: Moment) -> Markup {
    html! {
        @match one.due_at.as_deref().and_then(moment) {
            Some(due) if one.overdue => { (tag(Tone::Bad, "overdue")) " " (ago(due, now)) }
            Some(due) => { "in " (super::words::left(due, now)) }
            None if one.sla_exempt => { span.dim { "exempt" } }
            None => { span.dim { "–" } }
        }
    }
}

fn last_wake(one: &OwedReply) -> Markup {
    let Some(path) = &one.last_wake_path else { return html! { span.dim { "none" } } };
    let result = one.last_wake_result.as_deref().unwrap_or_default();
    html! { (path) " " (bells::result(path, result)) span.dim { " · " (one.wake_attempt_count) "×" } }
}

fn moment(text: &str) -> Option<Moment> {
    parse_rfc3339(text).map(Moment)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn page(everything: Option<Value>, now: Moment) -> Markup {
        let everything: Option<MeshOverview> = everything.map(|all| serde_json::from_value(all).unwrap());
        super::page(everything.as_ref(), now)
    }

    #[test]
    fn an_empty_mesh_says_how_agents_come() {
        assert!(page(Some(json!({})), Moment(0)).into_string().contains("prism_start"));
        assert!(page(None, Moment(0)).into_string().contains("prism doctor"));
    }

    #[test]
    fn what_is_overdue_says_so_in_words() {
        let owed = json!({"signal_id": "1", "debtor": "a", "creditor": "b", "type": "question", "state": "open",
            "due_at": "1970-01-01T00:00:10Z", "overdue": true});
        let page = page(Some(json!({"obligations": [owed], "obligations_open": 1})), Moment(70_000)).into_string();
        assert!(page.contains(">overdue<") && page.contains("1 min ago"), "{page}");
    }

    #[test]
    fn bells_and_agents_are_told_in_plain_words() {
        let bell = |path: &str, result: &str| json!({"agent": "a", "path": path, "result": result});
        let agent = json!({"agent": "a", "presence": "idle", "surface_support": "degraded", "owes": 2});
        let page = json!({"agents": [agent], "bells": [bell("desktop", "uncaptured"), bell("sse", "coalesced")]});
        let page = self::page(Some(page), Moment(0)).into_string();
        for words in
            ["only at its next tool call", "cannot show notices", "merged with an earlier bell", "Open questions"]
        {
            assert!(page.contains(words), "{words}: {page}");
        }
        assert!(!["degraded<", "uncaptured<", "coalesced<", "Owes"].iter().any(|word| page.contains(word)), "{page}");
    }
}
