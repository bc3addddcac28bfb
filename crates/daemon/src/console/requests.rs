//! Requests: who asks for what, and the dialog in which a person decides.

use maud::{Markup, html};
use prism_api::gate::RequestView;
use prism_core::policy::{ActionCategory, GrantScope, RequestState, Risk, VerbSpec};

use super::{
    page::{ConsolePage, Tone, empty, icon, prose, state, tag, typed, visible},
    words::{Moment, ago, count, left, span},
};

/// Decided requests that are shown.
const MAX_DECIDED: usize = 20;
/// The time limits that are offered, in seconds.
const TIMES: [u64; 3] = [15 * 60, 60 * 60, 8 * 60 * 60];

pub fn page(all: &[RequestView], now: Moment) -> Markup {
    let (open, decided): (Vec<&RequestView>, Vec<&RequestView>) = all.iter().partition(|one| is_open(one));
    html! {
        @if open.is_empty() {
            (empty(ConsolePage::Requests, "No requests", &html! {
                "When an agent calls " (typed("prism_request_access")) ", its request appears here by itself."
            }))
        } @else {
            ul.rows data-key="open" aria-label="Requests that wait for you" {
                @for one in open { (row(one, now)) }
            }
        }
        @if !decided.is_empty() {
            section data-key="decided" aria-labelledby="decided" {
                h2.section #decided { "Decided" }
                div.table-box { table.data.folds {
                    thead { tr { th { "Agent" } th { "Asked for" } th { "State" } th { "By" } th { "When" } } }
                    tbody {
                        @for one in decided.iter().take(MAX_DECIDED) {
                            tr data-key=(one.request_id) {
                                th scope="row" { (visible(&one.agent_id)) span.sub { (visible(&short(&one.reason))) } }
                                td data-label="Asked for" { (count(one.scopes.len() as u64, "scope")) }
                                td data-label="State" { (fate(one.status)) }
                                td data-label="By" {
                                    @match &one.approved_by { Some(by) => { (visible(by)) } None => { span.dim { "–" } } }
                                }
                                td data-label="When" { @if let Some(at) = Moment::read(&one.created_at) { (ago(at, now)) } }
                            }
                        }
                    }
                } }
            }
        }
    }
}

fn row(one: &RequestView, now: Moment) -> Markup {
    let words: Vec<&str> = one.scopes.iter().filter_map(|name| GrantScope::named(name)).map(short_words).collect();
    html! {
        li data-key=(one.request_id) {
            button.row type="button" data-item data-open={ "/console/requests/" (one.request_id) } aria-haspopup="dialog" {
                span.row-main {
                    span.row-title {
                        b { (visible(&one.agent_id)) }
                        @if !one.new_scopes.is_empty() { " " (tag(Tone::Notice, &format!("{} new", one.new_scopes.len()))) }
                        @if one.scopes.iter().any(|name| is_dangerous(name)) { " " (tag(Tone::Bad, "can run or delete")) }
                    }
                    span.row-text { (visible(&short(&one.reason))) }
                    span.row-sub { "wants to " (listed(&words)) }
                }
                span.row-side {
                    @if let Some(at) = Moment::read(&one.created_at) { (ago(at, now)) }
                    span.go { "Decide" (icon("M6 3l5 5-5 5")) }
                }
            }
        }
    }
}

/// The dialog. `longest` is how long a grant may last.
pub fn dialog(one: &RequestView, longest: u64, now: Moment) -> Markup {
    if !is_open(one) {
        return decided(one);
    }
    let client = one.asker.client.as_deref().unwrap_or(match one.asker.via.as_str() {
        "http" => "the HTTP API",
        "cli" => "the command line",
        "mcp" => "an MCP client",
        _ => "a client that does not say which",
    });
    html! {
        form.consent method="dialog" data-request=(one.request_id) data-key=(one.request_id) {
            div.sheet-head {
                div {
                    h2 #dialog-title { (visible(&one.agent_id)) " asks for access" }
                    p.sub {
                        "through " (visible(client))
                        @if let Some(at) = Moment::read(&one.created_at) { " · " (ago(at, now)) }
                        @if let Some(until) = Moment::read(&one.expires_at) { " · expires in " (left(until, now)) }
                    }
                }
                (close())
            }
            div.sheet-body {
                section {
                    h3 { "Why, in its own words" }
                    blockquote { (prose(&one.reason)) }
                }
                section {
                    h3 { "It wants to" }
                    @for (category, scopes) in grouped(one) {
                        fieldset data-key=(category.name()) {
                            legend { (category.in_words()) }
                            @for scope in scopes { (choice(one, scope)) }
                        }
                    }
                }
                section {
                    fieldset {
                        legend.big { "In these folders" }
                        @for root in &one.roots {
                            label.check {
                                input type="checkbox" name="root" value=(root) checked;
                                span.check-text { code { (visible(root)) } }
                                @if one.new_roots.contains(root) { (tag(Tone::Notice, "new")) }
                            }
                        }
                    }
                }
                section { (times(one, longest)) }
                section {
                    label.check {
                        input type="checkbox" name="confirm_changes";
                        span.check-text { "Show me every change before it is made" span.sub { "Commands and deletions are always shown first." } }
                    }
                }
                p.fault role="alert" data-fault hidden {}
            }
            div.sheet-foot {
                div.decide data-step="decide" {
                    button type="button" data-deny { "Deny…" }
                    button.primary type="submit" data-approve { span data-tally { "Approve all " (one.scopes.len()) } }
                }
                div.decide data-step="deny" hidden {
                    label.grow { span.sr { "Why not (the agent is told)" }
                        input type="text" name="reason" maxlength="500" placeholder="Why not? The agent is told." autocomplete="off"; }
                    button type="button" data-back { "Back" }
                    button.danger type="button" data-deny-now { "Deny" }
                }
            }
        }
    }
}

fn decided(one: &RequestView) -> Markup {
    html! {
        div.consent data-key={ (one.request_id) "-decided" } {
            div.sheet-head { h2 #dialog-title { (visible(&one.agent_id)) " asked for access" } (close()) }
            div.sheet-body {
                p { (fate(one.status)) @if let Some(by) = &one.approved_by { " by " (visible(by)) } }
                @if let Some(why) = &one.denied_because { blockquote { (prose(why)) } }
                p.sub { "There is nothing left to decide here." }
            }
            div.sheet-foot { div.decide { button.primary type="button" data-close { "Close" } } }
        }
    }
}

pub fn close() -> Markup {
    html! { button.quiet.close type="button" data-close aria-label="Close" { (icon("M4 4l8 8M12 4l-8 8")) } }
}

fn choice(one: &RequestView, scope: GrantScope) -> Markup {
    let (words, note) =
        scope.in_words().split_once("; ").map_or((scope.in_words(), None), |(words, note)| (words, Some(note)));
    html! {
        label.check {
            input type="checkbox" name="scope" value=(scope.name()) checked;
            span.check-text { (words) @if let Some(note) = note { span.sub { (note) } } }
            span.tags {
                @if risk(scope) >= Risk::Runs { (tag(Tone::Bad, danger(scope))) }
                @if one.new_scopes.iter().any(|name| name == scope.name()) { (tag(Tone::Notice, "new")) }
            }
            code.name { (scope.name()) }
        }
    }
}

fn times(one: &RequestView, longest: u64) -> Markup {
    let asked = u64::try_from(one.ttl_seconds).unwrap_or_default().clamp(1, longest.max(1));
    let offered = TIMES.into_iter().filter(|time| *time <= longest);
    let is_offered = TIMES.contains(&asked);
    html! {
        fieldset.times {
            legend.big { "For how long" }
            div.segments {
                @for time in offered {
                    label { input type="radio" name="time" value=(time) checked[time == asked]; span { (span(time)) } }
                }
                label { input type="radio" name="time" value="custom" checked[!is_offered]; span { "Other" } }
            }
            label.custom data-custom hidden[is_offered] {
                input type="number" name="minutes" min="1" max=(longest.div_ceil(60)) step="1" value=(asked.div_ceil(60)) inputmode="numeric";
                span { "minutes, " (longest.div_ceil(60)) " at most" }
            }
        }
        p.sub { "It asked for " (span(asked)) ". You can revoke it at any moment." }
    }
}

/// What is asked for, by category, in the table's order.
fn grouped(one: &RequestView) -> Vec<(ActionCategory, Vec<GrantScope>)> {
    let scopes: Vec<GrantScope> = one.scopes.iter().filter_map(|name| GrantScope::named(name)).collect();
    let of =
        |category| scopes.iter().copied().filter(|scope| scope.category() == category).collect::<Vec<GrantScope>>();
    ActionCategory::ALL.into_iter().map(|category| (category, of(category))).filter(|(_, of)| !of.is_empty()).collect()
}

/// The worst that a scope lets an agent do.
fn risk(scope: GrantScope) -> Risk {
    VerbSpec::all()
        .filter(|action| action.needs.contains(&scope))
        .map(|action| action.risk)
        .max()
        .unwrap_or(Risk::Reads)
}

fn danger(scope: GrantScope) -> &'static str {
    match scope {
        GrantScope::DeleteFiles => "deletes",
        _ => "runs code",
    }
}

fn is_dangerous(name: &str) -> bool {
    GrantScope::named(name).is_some_and(|scope| risk(scope) >= Risk::Runs)
}

fn short_words(scope: GrantScope) -> &'static str {
    scope.in_words().split([';', ',']).next().unwrap_or_default()
}

/// `read files, change files and 3 more`.
fn listed(words: &[&str]) -> String {
    match words {
        [] => "do nothing".to_owned(),
        [one] => (*one).to_owned(),
        [all @ .., last] if words.len() <= 3 => format!("{} and {last}", all.join(", ")),
        [one, two, rest @ ..] => format!("{one}, {two} and {} more", rest.len()),
    }
}

/// The first line of a text, cut where it is too long for one.
pub fn short(text: &str) -> String {
    const MOST: usize = 140;
    let line = text.lines().next().unwrap_or_default();
    match line.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

fn is_open(one: &RequestView) -> bool {
    one.status.is_open()
}

pub fn fate(status: RequestState) -> Markup {
    match status {
        RequestState::Requested | RequestState::Pending => state(Tone::Notice, "waiting"),
        RequestState::Approved => state(Tone::Good, "approved"),
        RequestState::Active => state(Tone::Good, "in use"),
        RequestState::Denied => state(Tone::Bad, "denied"),
        RequestState::Revoked => state(Tone::Bad, "revoked"),
        RequestState::Expired => state(Tone::Quiet, "expired"),
    }
}

#[cfg(test)]
mod tests {
    use prism_api::gate::AskerView;

    use super::*;

    fn request() -> RequestView {
        RequestView {
            request_id: "7".into(),
            agent_id: "helper <b>".into(),
            scopes: vec!["read:files".into(), "run:commands".into()],
            new_scopes: vec!["run:commands".into()],
            roots: vec!["/project/a".into()],
            new_roots: Vec::new(),
            reason: "fix it\n<script>".into(),
            status: RequestState::Pending,
            created_at: "1970-01-01T00:00:00Z".into(),
            expires_at: "1970-01-01T01:00:00Z".into(),
            ttl_seconds: 900,
            approved_by: None,
            denied_because: None,
            session_id: None,
            asker: AskerView { via: "http".into(), agent: None, client: Some("claude-code 2.1".into()) },
        }
    }

    //
    #[test]
    fn the_dialog_says_who_why_what_where_and_what_is_new() {
        let shown = dialog(&request(), 28_800, Moment(60_000)).into_string();
        for piece in [
            "helper &lt;b&gt; asks for access",
            "through claude-code 2.1",
            "fix it<br>&lt;script&gt;",
            "value=\"read:files\" checked",
            "runs code",
            ">new<",
            "<code>/project/a</code>",
            "value=\"900\" checked",
            "expires in",
        ] {
            assert!(shown.contains(piece), "{piece}: {shown}");
        }
        assert_eq!(shown.matches(">new<").count(), 1, "what it had before is not new");
    }

    #[test]
    fn what_is_decided_can_not_be_decided_again() {
        let denied = RequestView { status: RequestState::Denied, denied_because: Some("no".into()), ..request() };
        let shown = dialog(&denied, 28_800, Moment(0)).into_string();
        assert!(!shown.contains("data-approve") && shown.contains("denied"), "{shown}");
    }

    #[test]
    fn a_list_names_two_and_counts_the_rest() {
        assert_eq!(listed(&["a", "b", "c"]), "a, b and c");
        assert_eq!(listed(&["a", "b", "c", "d"]), "a, b and 2 more");
    }
}
