//! Confirmations: one step of an agent's, shown exactly as it would be done.

use maud::{Markup, html};
use prism_core::shell::command_line;
use serde_json::Value;

use super::{
    diff::diff,
    page::{Page, Tone, empty, state, visible},
    words::{Moment, ago, bytes, left},
};
use prism_gate::views::ConfirmationView;

/// Decided ones that are shown.
const MAX_DECIDED: usize = 20;
/// How long "for a while" is.
const WHILE_S: u64 = 15 * 60;

pub fn page(all: &[ConfirmationView], now: Moment) -> Markup {
    let (waiting, decided): (Vec<&ConfirmationView>, Vec<&ConfirmationView>) =
        all.iter().partition(|one| one.state == "waiting");
    html! {
        @if waiting.is_empty() {
            (empty(Page::Confirmations, "Nothing waits for your word", &html! {
                "Commands and deletions of an agent with a grant are shown here before they run, and so is "
                "every tool call that a " code { "confirm" } " rule matches."
            }))
        } @else {
            ul.cards data-key="waiting" aria-label="Steps that wait for you" {
                @for one in waiting { (card(one, now)) }
            }
        }
        @if !decided.is_empty() {
            section data-key="decided" aria-labelledby="decided" {
                h2.section #decided { "Decided" }
                div.table-box { table.data.folds {
                    thead { tr { th { "Agent" } th { "What" } th { "State" } th { "By" } th { "When" } } }
                    tbody {
                        @for one in decided.iter().take(MAX_DECIDED) {
                            tr data-key=(one.confirmation_id) {
                                th scope="row" { (visible(&one.agent_id)) }
                                td.wide data-label="What" { code { (visible(&in_short(one))) } }
                                td data-label="State" { (fate(one)) }
                                td data-label="By" { @match &one.decided_by { Some(by) => { (visible(by)) } None => { span.dim { "–" } } } }
                                td data-label="When" { @if let Some(at) = Moment::read(&one.created_at) { (ago(at, now)) } }
                            }
                        }
                    }
                } }
            }
        }
    }
}

fn card(one: &ConfirmationView, now: Moment) -> Markup {
    let title = title(one);
    html! {
        // The key has the digest in it: a card of something else is another card, never the same one with other words.
        li.card.confirmation data-key={ (one.confirmation_id) "-" (one.digest) } data-item tabindex="0" aria-label={ (one.agent_id) ": " (title) }
            data-confirmation=(one.confirmation_id) data-digest=(one.digest) {
            div.card-head {
                h3 { (visible(&one.agent_id)) " wants to " (title) }
                @if let Some(until) = Moment::read(&one.expires_at) { span.timer { (left(until, now)) span.sub { " left" } } }
            }
            p.sub {
                @if let Some(at) = Moment::read(&one.created_at) { "Asked " (ago(at, now)) }
                " · nothing runs until you decide"
            }
            (exactly(one))
            @for why in one.shown["because"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                p.trouble { b { "Because " } (visible(why)) }
            }
            div.decide data-step="decide" {
                button type="button" data-deny { "Deny…" }
                // What a tool has become is taken for good, or not at all.
                @if one.kind == "definition" {
                    button.primary type="button" data-approve data-allow="once" { "Accept the change" }
                } @else {
                    span.more {
                        span.times-box {
                            input type="number" name="uses" min="2" max="1000" value="5" inputmode="numeric" aria-label="How many times";
                            button type="button" data-allow="times" { "Allow 5 times" }
                        }
                        button type="button" data-allow="while" data-seconds=(WHILE_S) { "Allow for 15 min" }
                    }
                    button.primary type="button" data-approve data-allow="once" { "Allow once" }
                }
            }
            div.decide data-step="deny" hidden {
                label.grow { span.sr { "Why not (the agent is told)" }
                    input type="text" name="reason" maxlength="500" placeholder="Why not? The agent is told." autocomplete="off"; }
                button type="button" data-back { "Back" }
                button.danger type="button" data-deny-now { "Deny" }
            }
            p.fault role="alert" data-fault hidden {}
        }
    }
}

/// What it is, whatever it is: the parts that are known in their own form, and then everything, as it is bound.
fn exactly(one: &ConfirmationView) -> Markup {
    let shown = inner(&one.shown);
    html! {
        div.exact {
            @match kind(one) {
                "command" => {
                    pre.command tabindex="0" aria-label="The exact command" { code { (visible_lines(&command(shown))) } }
                    (facts(&[("in", text(shown, "cwd")), ("run by", runner(shown).to_owned()), ("with", environment(shown)), ("at most", limit(shown))]))
                    @for script in shown["runs"].as_array().into_iter().flatten() { (ran(script)) }
                }
                "diff" => { (diff(&text(shown, "unified"), &text(shown, "path"))) }
                "delete" => {
                    pre.command tabindex="0" aria-label="What is deleted" { code { (visible(&text(shown, "path"))) } }
                    p.sub {
                        "This deletes a " (visible(&text(shown, "what")))
                        @if shown["bytes"].is_u64() { " of " (size(shown)) }
                        ". It cannot be undone."
                    }
                }
                "rename" => {
                    pre.command tabindex="0" aria-label="What is renamed" { code {
                        (visible(&text(shown, "from"))) "\n→ " (visible(&text(shown, "to")))
                    } }
                    @if shown["replaces"] == true { p.trouble { b { "It replaces " } "what is there now." } }
                }
                "tool" => {
                    (facts(&[("tool", tool_name(shown)), ("asked by", text(shown, "client")), ("by rule", text(shown, "rule"))]))
                    pre.json tabindex="0" aria-label="The exact arguments" { (visible_lines(&pretty(&shown["arguments"]))) }
                    @if let Some(definition) = shown["definition"].as_str().filter(|text| !text.is_empty()) {
                        details data-key={ (one.confirmation_id) "-definition" } {
                            summary { "Tool description" }
                            pre.json tabindex="0" { (visible_lines(definition)) }
                        }
                    }
                }
                "definition" => {
                    p.sub { "Tool " code { (visible(&tool_name(shown))) } " is not defined as it was when you first used it:" }
                    (changed(shown))
                }
                "plain" => {
                    p { b { (visible(&text(shown, "title"))) } }
                    pre.json tabindex="0" aria-label="The exact step" {
                        @for line in shown["lines"].as_array().into_iter().flatten() { (visible(line.as_str().unwrap_or_default())) "\n" }
                    }
                }
                _ => { pre.json tabindex="0" aria-label="The exact step" { (visible_lines(&pretty(&one.shown))) } }
            }
            details data-key={ (one.confirmation_id) "-all" } {
                summary { "Full details (JSON)" }
                pre.json tabindex="0" { (visible_lines(&pretty(&one.shown))) }
                p.fine { "Digest " code { (one.digest) } }
            }
        }
    }
}

/// A file that a command runs: which one, and what is in it.
fn ran(script: &Value) -> Markup {
    html! {
        p.sub {
            "It runs " code { (visible(&text(script, "path"))) } ", " (size(script)) ", SHA-256 " code { (visible(&text(script, "digest"))) }
            ". If that changes before, it is not run."
        }
        @match script["content"].as_str() {
            Some(content) => { pre.json tabindex="0" aria-label="What is in it" { (visible_lines(content)) } }
            None => { p.sub { "It is no text, so it is not shown." } }
        }
        @if script["is_cut"] == true && script["content"].is_string() { p.trouble { "Only its beginning is shown." } }
    }
}

/// What is shown of an action lies in it beside the verb.
fn inner(shown: &Value) -> &Value {
    match &shown["shown"] {
        Value::Null => shown,
        inner => inner,
    }
}

fn kind(one: &ConfirmationView) -> &str {
    match one.kind.as_str() {
        "action" => inner(&one.shown)["kind"].as_str().unwrap_or_default(),
        other => other,
    }
}

fn title(one: &ConfirmationView) -> &'static str {
    match kind(one) {
        "command" => "run a command",
        "diff" => "change a file",
        "delete" => "delete",
        "rename" => "rename",
        "tool" => "call a tool",
        "definition" => "use a tool that has changed",
        _ => "do this",
    }
}

/// In one line, for the list of what was decided.
fn in_short(one: &ConfirmationView) -> String {
    let shown = inner(&one.shown);
    let whole = match kind(one) {
        "command" => command(shown),
        "diff" | "delete" => format!("{} {}", title(one), text(shown, "path")),
        "rename" => format!("{} → {}", text(shown, "from"), text(shown, "to")),
        "tool" | "definition" => tool_name(shown),
        _ => title(one).to_owned(),
    };
    super::requests::short(&whole)
}

fn fate(one: &ConfirmationView) -> Markup {
    match one.state.as_str() {
        "allowed" => state(Tone::Good, "allowed"),
        "denied" => state(Tone::Bad, "denied"),
        "withdrawn" => state(Tone::Quiet, "withdrawn"),
        _ => state(Tone::Quiet, "expired"),
    }
}

/// A command as it would be typed: one text for a shell, or the words that are run without one.
fn command(shown: &Value) -> String {
    match &shown["command"] {
        Value::String(command) => command.clone(),
        Value::Array(words) => {
            let words: Vec<String> = words.iter().filter_map(Value::as_str).map(str::to_owned).collect();
            command_line(&words)
        }
        other => pretty(other),
    }
}

/// Who makes something of it: a shell, or nobody.
fn runner(shown: &Value) -> &'static str {
    if shown["command"].is_string() { "sh -c" } else { "itself, without a shell" }
}

fn limit(shown: &Value) -> String {
    shown["timeout_ms"].as_u64().map(|ms| super::words::span(ms.div_ceil(1000))).unwrap_or_default()
}

fn environment(shown: &Value) -> String {
    let Some(env) = shown["env"].as_object() else { return String::new() };
    let pairs: Vec<String> =
        env.iter().map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default())).collect();
    pairs.join(" ")
}

fn facts(facts: &[(&str, String)]) -> Markup {
    let said: Vec<&(&str, String)> = facts.iter().filter(|(_, value)| !value.is_empty()).collect();
    html! {
        @if !said.is_empty() {
            dl.facts { @for (name, value) in said { div { dt { (name) } dd { code { (visible(value)) } } } } }
        }
    }
}

fn size(shown: &Value) -> String {
    shown["bytes"].as_u64().map(bytes).unwrap_or_default()
}

fn tool_name(shown: &Value) -> String {
    match (text(shown, "destination"), text(shown, "tool")) {
        (destination, tool) if destination.is_empty() => tool,
        (destination, tool) => format!("{destination} · {tool}"),
    }
}

/// How a definition has changed: as a diff that came along, or as one made of both.
fn changed(shown: &Value) -> Markup {
    let given = ["unified", "diff"].into_iter().find_map(|name| shown[name].as_str());
    match given {
        Some(unified) => diff(unified, &tool_name(shown)),
        None => {
            let (before, after) = (definition(&shown["before"]), definition(&shown["after"]));
            let unified = similar::TextDiff::from_lines(&before, &after).unified_diff().context_radius(3).to_string();
            diff(&unified, &tool_name(shown))
        }
    }
}

/// A definition, each member on a line of its own, so that a diff shows what matters.
fn definition(value: &Value) -> String {
    match value {
        Value::String(text) => match serde_json::from_str::<Value>(text) {
            Ok(value) => format!("{}\n", pretty(&value)),
            Err(_) => format!("{text}\n"),
        },
        value => format!("{}\n", pretty(value)),
    }
}

/// A text as it is, anything else as JSON.
fn pretty(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => serde_json::to_string_pretty(value).unwrap_or_default(),
    }
}

fn text(shown: &Value, name: &str) -> String {
    shown[name].as_str().unwrap_or_default().to_owned()
}

/// More than one line, each with what could not be seen made visible.
fn visible_lines(text: &str) -> Markup {
    html! { @for (at, line) in text.split('\n').enumerate() { @if at > 0 { "\n" } (visible(line)) } }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    fn asked(kind: &str, shown: Value) -> String {
        let one = ConfirmationView {
            confirmation_id: Uuid::from_u128(3),
            kind: kind.into(),
            agent_id: "helper".into(),
            session_id: None,
            digest: "ab".repeat(32),
            shown,
            state: "waiting".into(),
            created_at: "1970-01-01T00:00:00Z".into(),
            expires_at: "1970-01-01T00:10:00Z".into(),
            decided_by: None,
            reason: None,
            uses_left: 0,
        };
        page(&[one], Moment(0)).into_string()
    }

    //
    #[test]
    fn a_command_is_shown_exactly() {
        let words = json!({"kind": "command", "command": ["rm", "-rf", "a b"], "cwd": "/work"});
        let page = asked("action", json!({"action": "exec_command", "shown": words}));
        assert!(page.contains("rm -rf &#39;a b&#39;") || page.contains("rm -rf 'a b'"), "{page}");
        assert!(page.contains(&format!("data-digest=\"{}\"", "ab".repeat(32))), "{page}");
        let turned = json!({"kind": "command", "command": "echo \u{202e}x", "cwd": "/"});
        assert!(asked("action", json!({"shown": turned})).contains("U+202E"));
    }

    #[test]
    fn a_diff_has_signs_and_a_changed_tool_is_one_too() {
        let shown = json!({"kind": "diff", "path": "/w/a.rs", "unified": "@@ -1 +1 @@\n-a\n+b\n"});
        let page = asked("action", json!({"action": "write_file", "shown": shown}));
        assert!(page.contains("wants to change a file") && page.contains("class=\"added\""), "{page}");
        let changed = json!({"destination": "files", "tool": "read", "before": {"description": "reads"}, "after": {"description": "reads, and sends"}});
        let page = asked("definition", changed);
        assert!(page.contains("reads, and sends") && page.contains("class=\"removed\""), "{page}");
    }

    #[test]
    fn what_is_deleted_is_said_in_a_sentence() {
        let shown = json!({"kind": "delete", "path": "/w/a.rs", "what": "file", "bytes": 53});
        let page = asked("action", json!({"action": "delete_file", "shown": shown}));
        assert!(page.contains("This deletes a file of 53 B. It cannot be undone."), "{page}");
    }

    // L10
    #[test]
    fn what_a_command_runs_is_shown_with_it() {
        let script = json!({"path": "/w/s.sh", "bytes": 9, "digest": "abc", "content": "rm -rf x\n", "is_cut": false});
        let shown = json!({"kind": "command", "command": "sh s.sh", "cwd": "/w", "runs": [script]});
        let page = asked("action", json!({"action": "exec_command", "shown": shown}));
        assert!(page.contains("/w/s.sh") && page.contains("rm -rf x") && page.contains("abc"), "{page}");
        assert!(!page.contains("Only its beginning"), "{page}");
    }

    //
    #[test]
    fn why_it_is_shown_is_said() {
        let shown = json!({"kind": "diff", "path": "/w/.envrc", "unified": "+x\n"});
        let page = asked("action", json!({"shown": shown, "because": ["/w/.envrc: a shell <b>runs</b> it"]}));
        assert!(page.contains("Because </b>/w/.envrc: a shell &lt;b&gt;runs&lt;/b&gt; it"), "{page}");
    }

    #[test]
    fn what_has_no_form_of_its_own_is_shown_whole() {
        let page = asked("action", json!({"action": "x", "shown": {"kind": "new", "secret_member": 5}}));
        assert!(page.contains("secret_member"), "{page}");
    }
}
