//! A line of the audit log as a person reads it.

use serde_json::Value;

use super::super::say::{Colour, Line};

/// Characters of arguments that are shown. All of them are there with `--json`.
const ARGS_WIDTH: usize = 160;

/// Returns a line's number.
pub(super) fn seq(line: &str) -> Option<u64> {
    serde_json::from_str::<Value>(line).ok()?["seq"].as_u64()
}

/// `#12 2026-11-16T06:00:00Z reviewer edit_buffer {"path":…} ok`
pub(super) fn line(line: &str) -> Line {
    let value = serde_json::from_str::<Value>(line).ok().filter(|value| value["seq"].is_u64());
    let Some(value) = value else {
        return vec![(format!("no audit line: {line}"), Some(Colour::Red))];
    };
    let text = |name: &str| value[name].as_str().unwrap_or_default();
    let moment = text("ts").get(..19).unwrap_or_default();
    let of = value["of"].as_u64().map(|of| format!(" (of #{of})")).unwrap_or_default();
    let args = match &value["args"] {
        Value::Null => String::new(),
        Value::Object(members) if members.is_empty() => String::new(),
        args => format!(" {}", short(&args.to_string())),
    };
    let session = value["session_id"].as_str().map(|id| format!(" {}", id.get(..8).unwrap_or(id)));
    vec![
        (format!("#{} ", value["seq"]), Some(Colour::Dim)),
        (format!("{moment}Z "), Some(Colour::Dim)),
        (format!("{} ", text("actor")), None),
        (text("action").to_owned(), None),
        (args, Some(Colour::Dim)),
        (format!(" {}", text("result")), colour(text("result"))),
        (of, Some(Colour::Dim)),
        (session.unwrap_or_default(), Some(Colour::Dim)),
    ]
}

fn short(args: &str) -> String {
    if args.chars().count() <= ARGS_WIDTH {
        return args.to_owned();
    }
    format!("{}…", args.chars().take(ARGS_WIDTH).collect::<String>())
}

fn colour(result: &str) -> Option<Colour> {
    match result.split(':').next() {
        Some("ok" | "allowed" | "approved") => Some(Colour::Green),
        Some("refused" | "error" | "denied") => Some(Colour::Red),
        _ => Some(Colour::Yellow),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> String {
        line(text).iter().map(|(text, _)| text.as_str()).collect()
    }

    #[test]
    fn a_line_says_who_did_what_and_what_came_of_it() {
        let text = r#"{"seq":12,"ts":"2026-11-16T06:00:00.123456Z","actor":"reviewer","user":"me","action":"open_file",
            "args":{"path":"/p"},"result":"refused: forbidden","session_id":"0198f6a2-0000","request_id":null,"of":11}"#;
        let expected =
            "#12 2026-11-16T06:00:00Z reviewer open_file {\"path\":\"/p\"} refused: forbidden (of #11) 0198f6a2";
        assert_eq!(plain(text), expected);
        assert_eq!(plain("garbage"), "no audit line: garbage");
        assert_eq!(plain("{}"), "no audit line: {}");
        assert_eq!(seq(text), Some(12));
    }

    #[test]
    fn long_arguments_are_cut() {
        let text = format!(r#"{{"seq":1,"args":"{}"}}"#, "é".repeat(500));
        assert!(plain(&text).contains('…') && plain(&text).chars().count() < 200);
    }
}
