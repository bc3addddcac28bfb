//! Confirmations: one step of an agent's, shown exactly as it would be done.

use maud::{Markup, html};
use prism_api::{
    gate::ConfirmationView,
    shown::{CommandWords, ShownAction, ShownCommand, ShownDefinition, ShownScript, ShownStep, ShownToolCall},
};
use prism_core::{policy::ConfirmationState, shell::command_line};
use serde::Deserialize;
use serde_json::Value;

use super::{
    diff::diff,
    page::{ConsolePage, Tone, empty, state, visible},
    words::{Moment, ago, bytes, left},
};

/// Decided ones that are shown.
const MAX_DECIDED: usize = 20;
/// How long "for a while" is.
const WHILE_S: u64 = 15 * 60;

/// What is shown, in the form that it has.
enum Picture {
    Step(ShownStep),
    Tool(ShownToolCall),
    Definition(ShownDefinition),
    /// It has none of its own.
    Other,
}

pub fn page(all: &[ConfirmationView], now: Moment) -> Markup {
    let (waiting, decided): (Vec<&ConfirmationView>, Vec<&ConfirmationView>) =
        all.iter().partition(|one| one.state == ConfirmationState::Waiting);
    html! {
        @if waiting.is_empty() {
            (empty(ConsolePage::Confirmations, "Nothing waits for your word", &html! {
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
    let (picture, because) = pictured(one);
    let title = title(&picture);
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
            (exactly(one, &picture))
            @for why in &because {
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
fn exactly(one: &ConfirmationView, picture: &Picture) -> Markup {
    html! {
        div.exact {
            @match picture {
                Picture::Step(ShownStep::Command(run)) => {
                    pre.command tabindex="0" aria-label="The exact command" { code { (visible_lines(&command(&run.command))) } }
                    (facts(&[("in", &run.cwd), ("run by", runner(&run.command)), ("with", &environment(run)), ("at most", &limit(run))]))
                    @for script in &run.runs { (ran(script)) }
                }
                Picture::Step(ShownStep::Diff(change)) => { (diff(&change.unified, &change.path)) }
                Picture::Step(ShownStep::Delete(gone)) => {
                    pre.command tabindex="0" aria-label="What is deleted" { code { (visible(&gone.path)) } }
                    p.sub {
                        "This deletes a " (visible(&gone.what))
                        @if let Some(size) = gone.bytes { " of " (bytes(size)) }
                        ". It cannot be undone."
                    }
                }
                Picture::Step(ShownStep::Rename(names)) => {
                    pre.command tabindex="0" aria-label="What is renamed" { code {
                        (visible(&names.from)) "\n→ " (visible(&names.to))
                    } }
                    @if names.replaces { p.trouble { b { "It replaces " } "what is there now." } }
                }
                Picture::Step(ShownStep::Plain(plain)) => {
                    p { b { (visible(&plain.title)) } }
                    pre.json tabindex="0" aria-label="The exact step" {
                        @for line in &plain.lines { (visible(line)) "\n" }
                    }
                }
                Picture::Tool(call) => {
                    (facts(&[("tool", &tool_name(&call.destination, &call.tool)), ("asked by", &call.client), ("by rule", &call.rule)]))
                    pre.json tabindex="0" aria-label="The exact arguments" { (visible_lines(&call.arguments)) }
                    @if !call.definition.is_empty() {
                        details data-key={ (one.confirmation_id) "-definition" } {
                            summary { "Tool description" }
                            pre.json tabindex="0" { (visible_lines(&call.definition)) }
                        }
                    }
                }
                Picture::Definition(change) => {
                    @let name = tool_name(&change.destination, &change.tool);
                    p.sub { "Tool " code { (visible(&name)) } " is not defined as it was when you first used it:" }
                    (diff(&difference(change), &name))
                }
                Picture::Other => { pre.json tabindex="0" aria-label="The exact step" { (visible_lines(&pretty(&one.shown))) } }
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
fn ran(script: &ShownScript) -> Markup {
    html! {
        p.sub {
            "It runs " code { (visible(&script.path)) } ", " (bytes(script.bytes)) ", SHA-256 " code { (visible(&script.digest)) }
            ". If that changes before, it is not run."
        }
        @match &script.content {
            Some(content) => { pre.json tabindex="0" aria-label="What is in it" { (visible_lines(content)) } }
            None => { p.sub { "It is no text, so it is not shown." } }
        }
        @if script.is_cut && script.content.is_some() { p.trouble { "Only its beginning is shown." } }
    }
}

/// Reads what is shown, and why a person is asked at all.
fn pictured(one: &ConfirmationView) -> (Picture, Vec<String>) {
    let action = ShownAction::deserialize(&one.shown).unwrap_or_default();
    let picture = match one.kind.as_str() {
        // What is shown of an action lies in it beside the verb.
        "action" if action.shown.is_null() => ShownStep::deserialize(&one.shown).map(Picture::Step),
        "action" => ShownStep::deserialize(&action.shown).map(Picture::Step),
        "tool" => ShownToolCall::deserialize(&one.shown).map(Picture::Tool),
        "definition" => ShownDefinition::deserialize(&one.shown).map(Picture::Definition),
        _ => Ok(Picture::Other),
    };
    (picture.unwrap_or(Picture::Other), action.because)
}

fn title(picture: &Picture) -> &'static str {
    match picture {
        Picture::Step(ShownStep::Command(_)) => "run a command",
        Picture::Step(ShownStep::Diff(_)) => "change a file",
        Picture::Step(ShownStep::Delete(_)) => "delete",
        Picture::Step(ShownStep::Rename(_)) => "rename",
        Picture::Tool(_) => "call a tool",
        Picture::Definition(_) => "use a tool that has changed",
        Picture::Step(ShownStep::Plain(_)) | Picture::Other => "do this",
    }
}

/// In one line, for the list of what was decided.
fn in_short(one: &ConfirmationView) -> String {
    let (picture, _) = pictured(one);
    let whole = match &picture {
        Picture::Step(ShownStep::Command(run)) => command(&run.command),
        Picture::Step(ShownStep::Diff(change)) => format!("{} {}", title(&picture), change.path),
        Picture::Step(ShownStep::Delete(gone)) => format!("{} {}", title(&picture), gone.path),
        Picture::Step(ShownStep::Rename(names)) => format!("{} → {}", names.from, names.to),
        Picture::Tool(call) => tool_name(&call.destination, &call.tool),
        Picture::Definition(change) => tool_name(&change.destination, &change.tool),
        Picture::Step(ShownStep::Plain(_)) | Picture::Other => title(&picture).to_owned(),
    };
    super::requests::short(&whole)
}

fn fate(one: &ConfirmationView) -> Markup {
    match one.state {
        ConfirmationState::Allowed => state(Tone::Good, "allowed"),
        ConfirmationState::Denied => state(Tone::Bad, "denied"),
        ConfirmationState::Withdrawn => state(Tone::Quiet, "withdrawn"),
        ConfirmationState::Waiting | ConfirmationState::Expired => state(Tone::Quiet, "expired"),
    }
}

/// A command as it would be typed: one text for a shell, or the words that are run without one.
fn command(command: &CommandWords) -> String {
    match command {
        CommandWords::Shell(command) => command.clone(),
        CommandWords::List(words) => command_line(words),
    }
}

/// Who makes something of it: a shell, or nobody.
fn runner(command: &CommandWords) -> &'static str {
    match command {
        CommandWords::Shell(_) => "sh -c",
        CommandWords::List(_) => "itself, without a shell",
    }
}

fn limit(run: &ShownCommand) -> String {
    run.timeout_ms.map(|ms| super::words::span(ms.div_ceil(1000))).unwrap_or_default()
}

fn environment(run: &ShownCommand) -> String {
    let pairs: Vec<String> = run.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.join(" ")
}

fn facts(facts: &[(&str, &str)]) -> Markup {
    let said: Vec<&(&str, &str)> = facts.iter().filter(|(_, value)| !value.is_empty()).collect();
    html! {
        @if !said.is_empty() {
            dl.facts { @for (name, value) in said { div { dt { (name) } dd { code { (visible(value)) } } } } }
        }
    }
}

fn tool_name(destination: &str, tool: &str) -> String {
    if destination.is_empty() { tool.to_owned() } else { format!("{destination} · {tool}") }
}

/// How a definition has changed: as it came along, or as both tell.
fn difference(change: &ShownDefinition) -> String {
    if !change.unified.is_empty() {
        return change.unified.clone();
    }
    let (before, after) = (definition(&change.before), definition(&change.after));
    similar::TextDiff::from_lines(&before, &after).unified_diff().context_radius(3).to_string()
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

/// More than one line, each with what could not be seen made visible.
fn visible_lines(text: &str) -> Markup {
    html! { @for (at, line) in text.split('\n').enumerate() { @if at > 0 { "\n" } (visible(line)) } }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asked(kind: &str, shown: Value) -> String {
        let one = ConfirmationView {
            confirmation_id: "3".into(),
            kind: kind.into(),
            agent_id: "helper".into(),
            session_id: None,
            digest: "ab".repeat(32),
            shown,
            state: ConfirmationState::Waiting,
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
