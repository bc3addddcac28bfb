//! Grants: who may do what right now, until when, and what they did last.

use std::collections::HashMap;

use maud::{Markup, html};
use prism_api::gate::{ActionView, GrantView, RevokeRequest};
use prism_core::policy::{GrantScope, RequestState};

use super::{
    page::{ConsolePage, Tone, empty, state, tag, typed, visible},
    requests::fate,
    words::{Moment, ago, count, left},
};

/// Grants that are over and still shown.
const MAX_OVER: usize = 20;
/// Steps that a child is moved to the right by, at most.
const MAX_DEPTH: usize = 4;
/// Actions that are shown of a grant.
const MAX_ACTIONS: usize = 5;

pub fn page(all: &[GrantView], now: Moment) -> Markup {
    let (alive, over): (Vec<&GrantView>, Vec<&GrantView>) = all.iter().partition(|one| is_alive(one));
    let depth = depths(&alive);
    html! {
        @if alive.is_empty() {
            (empty(ConsolePage::Grants, "Nobody holds a grant", &html! {
                "Approve a request, and who may do what is here with its timer. "
                "At a terminal: " (typed("prism grants"))
            }))
        } @else {
            ul.cards data-key="alive" aria-label="Grants that count now" {
                @for one in &alive {
                    (card(one, depth.get(&*one.session_id).copied().unwrap_or(0), below(one, &alive), now))
                }
            }
        }
        @if !over.is_empty() {
            section data-key="over" aria-labelledby="over" {
                h2.section #over { "Ended" }
                div.table-box { table.data.folds {
                    thead { tr { th { "Agent" } th { "Had" } th { "State" } th { "Given" } } }
                    tbody {
                        @for one in over.iter().take(MAX_OVER) {
                            tr data-key=(one.session_id) {
                                th scope="row" { (visible(&one.agent_id)) }
                                td data-label="Had" { (count(one.allowed_scopes.len() as u64, "scope")) }
                                td data-label="State" { (fate(one.status)) }
                                td data-label="Given" { @if let Some(at) = Moment::read(&one.created_at) { (ago(at, now)) } }
                            }
                        }
                    }
                } }
            }
        }
    }
}

fn card(one: &GrantView, depth: usize, below: usize, now: Moment) -> Markup {
    let (from, until) = (Moment::read(&one.created_at), Moment::read(&one.expires_at));
    let ends = match below {
        0 => String::new(),
        n => format!(" It ends {} that came from it, too.", count(n as u64, "grant")),
    };
    html! {
        li.card.grant data-key=(one.session_id) data-item tabindex="0" data-depth=[(depth > 0).then_some(depth)] aria-label={ "Grant of " (one.agent_id) } {
            div.card-head {
                h3 { (visible(&one.agent_id)) }
                (state(if one.status == RequestState::Active { Tone::Good } else { Tone::Quiet }, if one.status == RequestState::Active { "in use" } else { "not used yet" }))
                @if one.parent.is_some() { (tag(Tone::Quiet, "narrowed")) }
                @if !one.degraded.is_empty() { (tag(Tone::Notice, &format!("without {}", one.degraded.join(", ")))) }
                @if one.confirm_changes { (tag(Tone::Notice, "changes are shown first")) }
                @if let Some(until) = until { span.timer { (left(until, now)) span.sub { " left" } } }
                button.small.danger data-act type="button" data-ask={ "Revoke it now?" (ends) } data-yes="Revoke"
                    data-post="/console/act/revoke" data-body=(serde_json::json!(RevokeRequest { session_id: one.session_id.clone() }))
                    data-done={ "Revoked the grant of " (one.agent_id) } { "Revoke" }
            }
            @if let (Some(from), Some(until)) = (from, until) {
                progress.life max=((until.0 - from.0).max(1)) value=((until.0 - now.0).max(0)) data-until=(until.0) aria-label="Time left" {}
            }
            p.sub {
                (count(one.actions, "action")) " · " (sockets(one.sockets)) " · at most " (one.rate_limit) " actions a second"
            }
            ul.scopes aria-label="May" {
                @for name in &one.allowed_scopes {
                    li title=[GrantScope::named(name).map(GrantScope::in_words)] { code { (name) } }
                }
            }
            ul.roots aria-label="In these folders" { @for root in &one.roots { li { code { (visible(root)) } } } }
            @if one.last_actions.is_empty() {
                p.none { "It has done nothing yet." }
            } @else {
                ol.actions aria-label="What it did last" {
                    @for action in one.last_actions.iter().take(MAX_ACTIONS) { (did(action, now)) }
                }
            }
        }
    }
}

fn did(one: &ActionView, now: Moment) -> Markup {
    let tone = match one.result.as_str() {
        "ok" => Tone::Good,
        "allowed" | "waits" => Tone::Quiet,
        _ => Tone::Bad,
    };
    html! {
        li data-key={ (one.at) (one.action) } {
            code { (visible(&one.action)) }
            span.about { (visible(&one.about)) }
            (state(tone, &one.result))
            @if let Some(at) = Moment::read(&one.at) { (ago(at, now)) }
        }
    }
}

fn sockets(open: usize) -> String {
    match open {
        0 => "not connected".to_owned(),
        1 => "connected".to_owned(),
        n => format!("{n} connections"),
    }
}

fn is_alive(one: &GrantView) -> bool {
    one.status.is_granted()
}

/// How deep each grant lies below the one that a person gave.
fn depths<'a>(alive: &[&'a GrantView]) -> HashMap<&'a str, usize> {
    let parents: HashMap<&str, Option<&str>> =
        alive.iter().map(|one| (&*one.session_id, one.parent.as_deref())).collect();
    let depth = |one: &GrantView| {
        let above = std::iter::successors(one.parent.as_deref(), |parent| parents.get(parent).copied().flatten());
        above.take_while(|parent| parents.contains_key(parent)).take(MAX_DEPTH).count()
    };
    alive.iter().map(|one| (&*one.session_id, depth(one))).collect()
}

/// How many grants came from this one.
fn below(one: &GrantView, alive: &[&GrantView]) -> usize {
    let mut found = vec![&*one.session_id];
    let mut at = 0;
    while let Some(parent) = found.get(at).copied() {
        let is_new =
            |child: &&&GrantView| child.parent.as_deref() == Some(parent) && !found.contains(&&*child.session_id);
        let children: Vec<&str> = alive.iter().filter(is_new).map(|child| &*child.session_id).collect();
        found.extend(children);
        at += 1;
    }
    found.len() - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(id: u128, parent: Option<u128>) -> GrantView {
        GrantView {
            session_id: id.to_string(),
            request_id: None,
            parent: parent.map(|id| id.to_string()),
            agent_id: format!("agent-{id}"),
            allowed_scopes: vec!["read:files".into()],
            roots: vec!["/work".into()],
            status: RequestState::Active,
            created_at: "1970-01-01T00:00:00Z".into(),
            expires_at: "1970-01-01T00:15:00Z".into(),
            expires_in_ms: 900_000,
            rate_limit: 10,
            max_edit_bytes: 1,
            confirm_changes: false,
            degraded: Vec::new(),
            sockets: 1,
            actions: 0,
            last_actions: Vec::new(),
        }
    }

    #[test]
    fn children_are_below_the_grant_that_they_came_from() {
        let all = [grant(1, None), grant(2, Some(1)), grant(3, Some(2)), grant(4, Some(99))];
        let alive: Vec<&GrantView> = all.iter().collect();
        let depths = depths(&alive);
        assert_eq!([1, 2, 3, 4].map(|id| depths[id.to_string().as_str()]), [0, 1, 2, 0]);
        assert_eq!(all.each_ref().map(|one| below(one, &alive)), [2, 1, 0, 0]);
        let shown = page(&all, Moment(60_000)).into_string();
        assert!(shown.contains("14:00") && shown.contains("data-depth=\"2\""), "{shown}");
        assert!(shown.contains("It ends 2 grants that came from it, too."), "{shown}");
    }
}
