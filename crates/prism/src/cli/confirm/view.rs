//! What an agent wants to do, as a person reads it. Nothing of it is left out, and no letter that cannot be seen stays
//! unseen.

use prism_core::shell::command_line;
use serde_json::Value;

use crate::cli::{
    moments::{distance, moment},
    say::{Colour, Line},
    visible::{visible, visible_line},
};

/// In a few words, for a list.
pub(super) fn in_short(shown: &Value) -> String {
    let what = &shown["shown"];
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let text = match what["kind"].as_str() {
        Some("command") => format!("run {}", command(&what["command"])),
        Some("diff") => format!("change {}", word(&what["path"])),
        Some("delete") => format!("delete {}", word(&what["path"])),
        Some("rename") => format!("rename {} to {}", word(&what["from"]), word(&what["to"])),
        Some("plain") => word(&what["title"]),
        _ => match (shown["tool"].as_str(), shown["destination"].as_str()) {
            (Some(tool), Some(destination)) => format!("call {tool} of {destination}"),
            _ => shown.to_string(),
        },
    };
    visible(&text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// All of it.
pub(super) fn in_full(row: &Value, now: i64) -> Vec<Line> {
    let word = |name: &str| row[name].as_str().unwrap_or_default();
    let ends = moment(&row["expires_at"]).map(|at| distance(at, now)).unwrap_or_default();
    let head = match word("state") {
        "waiting" => format!(" wants to (expires {ends}):"),
        state => format!(" wanted to do this; it is {state}"),
    };
    let mut lines = vec![vec![(visible_line(word("agent_id")), Some(Colour::Green)), (head, None)]];
    let shown = &row["shown"];
    let what = if shown["shown"].is_object() { &shown["shown"] } else { shown };
    let label = |text: &str| (format!("  {text:<9}"), Some(Colour::Dim));
    let mut add = |name: &str, text: &str| {
        for (at, line) in visible(text).split('\n').enumerate() {
            lines.push(vec![label(if at == 0 { name } else { "" }), (line.to_owned(), None)]);
        }
    };
    let text = |name: &str| what[name].as_str().unwrap_or_default();
    match what["kind"].as_str() {
        Some("command") => {
            match &what["command"] {
                Value::String(shell) => add("command", shell),
                words => add("run", &command(words)),
            }
            add("in", text("cwd"));
            for (name, value) in what["env"].as_object().into_iter().flatten() {
                add("with", &format!("{name}={}", value.as_str().unwrap_or_default()));
            }
            if let Some(ms) = what["timeout_ms"].as_u64() {
                add("for", &format!("{} s at most", ms.div_ceil(1000)));
            }
            // What the words only name is a part of it, too.
            for script in what["runs"].as_array().into_iter().flatten() {
                ran(&mut add, script);
            }
            // Behind the command's last line, and in another colour than what is run.
            let lines_of_shell = what["command"].as_str().map(|shell| shell.split('\n').count());
            if let Some(last) = lines_of_shell.and_then(|count| lines.get_mut(count)) {
                last.push(("   (run with sh -c)".to_owned(), Some(Colour::Dim)));
            }
        }
        Some("diff") => {
            add("change", text("path"));
            lines.extend(diff(text("unified")));
        }
        Some("delete") => {
            add("delete", text("path"));
            let bytes = what["bytes"].as_u64().unwrap_or_default();
            add("", &format!("a {} of {bytes} bytes; it cannot be undone", text("what")));
        }
        Some("rename") => {
            add("rename", text("from"));
            add("to", text("to"));
            if what["replaces"] == true {
                add("", "what is there now is replaced");
            }
        }
        Some("plain") => {
            add("do", text("title"));
            for line in what["lines"].as_array().into_iter().flatten() {
                add("", line.as_str().unwrap_or_default());
            }
        }
        // What this program does not know of is shown as it came.
        _ => add("", &serde_json::to_string_pretty(what).unwrap_or_default()),
    }
    for (at, why) in shown["because"].as_array().into_iter().flatten().enumerate() {
        let why = visible_line(why.as_str().unwrap_or_default());
        lines.push(vec![label(if at == 0 { "because" } else { "" }), (why, Some(Colour::Yellow))]);
    }
    lines
}

/// A file that a command runs: which one, and what is in it.
fn ran(add: &mut impl FnMut(&str, &str), script: &Value) {
    let text = |name: &str| script[name].as_str().unwrap_or_default();
    let bytes = script["bytes"].as_u64().unwrap_or_default();
    add("runs", &visible_line(text("path")));
    add("", &format!("{bytes} bytes, SHA-256 {}; it is not run if it changes before", text("digest")));
    match script["content"].as_str() {
        Some(content) => content.lines().for_each(|line| add("", &format!("| {line}"))),
        None => add("", "(no text, so it is not shown)"),
    }
    if script["is_cut"] == true && script["content"].is_string() {
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
fn command(words: &Value) -> String {
    match words {
        Value::String(shell) => shell.clone(),
        Value::Array(words) => {
            let words: Vec<String> = words.iter().map(|word| word.as_str().unwrap_or_default().to_owned()).collect();
            command_line(&words)
        }
        other => other.to_string(),
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
        in_full(&row, 0).iter().map(line).collect()
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
