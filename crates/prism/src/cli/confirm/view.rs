//! What an agent wants to do, as a person reads it. Nothing of it is left out, and no letter that cannot be seen stays
//! unseen.

use prism_api::{
    gate::ConfirmationView,
    shown::{CommandWords, ShownAction, ShownScript, ShownStep, ShownToolCall},
};
use prism_core::{policy::ConfirmationState, shell::command_line};
use serde::Deserialize;
use serde_json::Value;

use crate::cli::{
    moments::until,
    say::{Colour, Line},
    visible::{visible, visible_line},
};

/// In a few words, for a list.
pub(super) fn in_short(shown: &Value) -> String {
    let call =
        ShownToolCall::deserialize(shown).ok().filter(|call| !call.tool.is_empty() && !call.destination.is_empty());
    let text = match (pictured(shown).0, call) {
        (Some(ShownStep::Command(run)), _) => format!("run {}", command(&run.command)),
        (Some(ShownStep::Diff(change)), _) => format!("change {}", change.path),
        (Some(ShownStep::Delete(gone)), _) => format!("delete {}", gone.path),
        (Some(ShownStep::Rename(names)), _) => format!("rename {} to {}", names.from, names.to),
        (Some(ShownStep::Plain(plain)), _) => plain.title,
        (None, Some(call)) => format!("call {} of {}", call.tool, call.destination),
        (None, None) => shown.to_string(),
    };
    visible(&text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Reads the picture of an action, if it is one that is known, and why a person is asked at all.
fn pictured(shown: &Value) -> (Option<ShownStep>, Vec<String>) {
    let action = ShownAction::deserialize(shown).unwrap_or_default();
    let picture = if action.shown.is_object() { &action.shown } else { shown };
    (ShownStep::deserialize(picture).ok(), action.because)
}

/// All of it.
pub(super) fn in_full(row: &ConfirmationView, now: i64) -> Vec<Line> {
    let head = match row.state {
        ConfirmationState::Waiting => format!(" wants to (expires {}):", until(&row.expires_at, now)),
        state => format!(" wanted to do this; it is {}", state.name()),
    };
    let mut lines = vec![vec![(visible_line(&row.agent_id), Some(Colour::Green)), (head, None)]];
    let label = |text: &str| (format!("  {text:<9}"), Some(Colour::Dim));
    let mut add = |name: &str, text: &str| {
        for (at, line) in visible(text).split('\n').enumerate() {
            lines.push(vec![label(if at == 0 { name } else { "" }), (line.to_owned(), None)]);
        }
    };
    let (picture, because) = pictured(&row.shown);
    match picture {
        Some(ShownStep::Command(run)) => {
            match &run.command {
                CommandWords::Shell(shell) => add("command", shell),
                words @ CommandWords::List(_) => add("run", &command(words)),
            }
            add("in", &run.cwd);
            for (name, value) in &run.env {
                add("with", &format!("{name}={value}"));
            }
            if let Some(ms) = run.timeout_ms {
                add("for", &format!("{} s at most", ms.div_ceil(1000)));
            }
            // What the words only name is a part of it, too.
            for script in &run.runs {
                ran(&mut add, script);
            }
            // Behind the command's last line, and in another colour than what is run.
            let lines_of_shell = match &run.command {
                CommandWords::Shell(shell) => Some(shell.split('\n').count()),
                CommandWords::List(_) => None,
            };
            if let Some(last) = lines_of_shell.and_then(|count| lines.get_mut(count)) {
                last.push(("   (run with sh -c)".to_owned(), Some(Colour::Dim)));
            }
        }
        Some(ShownStep::Diff(change)) => {
            add("change", &change.path);
            lines.extend(diff(&change.unified));
        }
        Some(ShownStep::Delete(gone)) => {
            add("delete", &gone.path);
            let bytes = gone.bytes.unwrap_or_default();
            add("", &format!("a {} of {bytes} bytes; it cannot be undone", gone.what));
        }
        Some(ShownStep::Rename(names)) => {
            add("rename", &names.from);
            add("to", &names.to);
            if names.replaces {
                add("", "what is there now is replaced");
            }
        }
        Some(ShownStep::Plain(plain)) => {
            add("do", &plain.title);
            plain.lines.iter().for_each(|line| add("", line));
        }
        // What this program does not know of is shown as it came.
        None => {
            let action = ShownAction::deserialize(&row.shown).unwrap_or_default();
            let what = if action.shown.is_object() { &action.shown } else { &row.shown };
            add("", &serde_json::to_string_pretty(what).unwrap_or_default());
        }
    }
    for (at, why) in because.iter().enumerate() {
        lines.push(vec![label(if at == 0 { "because" } else { "" }), (visible_line(why), Some(Colour::Yellow))]);
    }
    lines
}

/// A file that a command runs: which one, and what is in it.
fn ran(add: &mut impl FnMut(&str, &str), script: &ShownScript) {
    add("runs", &visible_line(&script.path));
    add("", &format!("{} bytes, SHA-256 {}; it is not run if it changes before", script.bytes, script.digest));
    match &script.content {
        Some(content) => content.lines().for_each(|line| add("", &format!("| {line}"))),
        None => add("", "(no text, so it is not shown)"),
    }
    if script.is_cut && script.content.is_some() {
        add("", "(only its beginning is shown)");
    }
}

/// A difference in the colours of one.
fn diff(unified: &str) -> Vec<Line> {
    let line = |line: &str| {
        let colour = match line.as_bytes().first() {
            Some(b'+') => Some(Colour::Green),
            Some(b'-') => Some(Colour::Red),
            Some(b'@') => Some(Colour::Dim),
            _ => None,
        };
        vec![(format!("    {}", visible(line)), colour)]
    };
    unified.lines().map(line).collect()
}

/// Words as they are given to the system, each told from the next.
fn command(command: &CommandWords) -> String {
    match command {
        CommandWords::Shell(shell) => shell.clone(),
        CommandWords::List(words) => command_line(words),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn drawn(shown: Value) -> Vec<String> {
        let row =
            json!({"agent_id": "fixer", "state": "waiting", "expires_at": "1970-01-01T00:10:00Z", "shown": shown});
        let line = |line: &Line| line.iter().map(|(text, _)| text.as_str()).collect::<String>().trim_end().to_owned();
        in_full(&serde_json::from_value(row).unwrap(), 0).iter().map(line).collect()
    }

    // L10
    #[test]
    fn what_a_command_runs_is_a_part_of_it() {
        let script = json!({"path": "/p/s.sh", "bytes": 9, "digest": "ab", "content": "rm -rf x\n", "is_cut": true});
        let lines = drawn(json!({"shown": {"kind": "command", "command": "sh s.sh", "cwd": "/p", "runs": [script]}}));
        assert_eq!(
            lines[1..],
            [
                "  command  sh s.sh   (run with sh -c)",
                "  in       /p",
                "  runs     /p/s.sh",
                "           9 bytes, SHA-256 ab; it is not run if it changes before",
                "           | rm -rf x",
                "           (only its beginning is shown)",
            ]
        );
    }

    //
    #[test]
    fn why_it_is_shown_is_said() {
        let diff = json!({"kind": "diff", "path": "/p/.envrc", "unified": "+x\n"});
        let lines = drawn(json!({"shown": diff, "because": ["/p/.envrc: a shell runs it\n  change   /p/a"]}));
        assert_eq!(lines.last().unwrap(), "  because  /p/.envrc: a shell runs it\\n  change   /p/a");
    }

    //
    #[test]
    fn the_exact_command_is_shown() {
        let shell = json!({"action": "exec_command", "shown": {"kind": "command", "command": "rm -r x\necho done",
                           "cwd": "/p", "env": {"A": "1"}, "timeout_ms": 60_000}});
        assert_eq!(in_short(&shell), "run rm -r x echo done");
        assert_eq!(
            drawn(shell),
            [
                "fixer wants to (expires in 10 min):",
                "  command  rm -r x",
                "           echo done   (run with sh -c)",
                "  in       /p",
                "  with     A=1",
                "  for      60 s at most",
            ]
        );
        let list = drawn(json!({"shown": {"kind": "command", "command": ["rm", "a b", ""], "cwd": "/p"}}));
        assert_eq!(list[1], "  run      rm 'a b' ''");
    }

    #[test]
    fn the_difference_is_shown_and_what_would_be_lost() {
        let lines = drawn(json!({"shown": {"kind": "diff", "path": "/p/a", "unified": "@@ -1 +1 @@\n-old\n+new\n"}}));
        assert_eq!(lines[1..], ["  change   /p/a", "    @@ -1 +1 @@", "    -old", "    +new"]);
        let lines = drawn(json!({"shown": {"kind": "rename", "from": "/p/a", "to": "/p/b", "replaces": true}}));
        assert_eq!(lines[1..], ["  rename   /p/a", "  to       /p/b", "           what is there now is replaced"]);
        let lines = drawn(json!({"shown": {"kind": "delete", "path": "/p/a", "what": "file", "bytes": 7}}));
        assert_eq!(lines[1..], ["  delete   /p/a", "           a file of 7 bytes; it cannot be undone"]);
    }

    #[test]
    fn what_is_not_known_is_shown_as_it_came() {
        let lines = drawn(json!({"kind": "tool", "destination": "db", "tool": "drop", "arguments": {"table": "t"}}));
        assert!(lines.iter().any(|line| line.contains("\"table\": \"t\"")), "{lines:?}");
        assert_eq!(in_short(&json!({"destination": "db", "tool": "drop"})), "call drop of db");
    }

    #[test]
    fn letters_that_turn_or_hide_others_are_written_out() {
        let lines = drawn(json!({"shown": {"kind": "command", "command": "ls \u{202e}cba\u{200b}\rrm", "cwd": "/"}}));
        assert_eq!(lines[1], "  command  ls \\u{202e}cba\\u{200b}\\u{d}rm   (run with sh -c)");
    }
}
