//! A line of the audit log as a person reads it.

use prism_api::audit::AuditLine;
use serde_json::Value;

use super::super::say::{Colour, Line};

/// Characters of arguments that are shown. All of them are there with `--json`.
const ARGS_WIDTH: usize = 160;

/// Returns a line's number.
pub(super) fn seq(line: &str) -> Option<u64> {
    serde_json::from_str::<AuditLine>(line).ok()?.seq
}

/// `#12 2026-11-16T06:00:00Z reviewer edit_buffer {"path":…} ok`
pub(super) fn line(line: &str) -> Line {
    let read = serde_json::from_str::<AuditLine>(line).ok().and_then(|one| Some((one.seq?, one)));
    let Some((seq, one)) = read else {
        return vec![(format!("no audit line: {line}"), Some(Colour::Red))];
    };
    let moment = one.ts.get(..19).unwrap_or_default();
    let of = one.of.map(|of| format!(" (of #{of})")).unwrap_or_default();
    let args = match &one.args {
        Value::Null => String::new(),
        Value::Object(members) if members.is_empty() => String::new(),
        args => format!(" {}", short(&args.to_string())),
    };
    let session = one.session_id.map(|id| format!(" {}", id.get(..8).unwrap_or(&id)));
    let colour = colour(&one.result);
    vec![
        (format!("#{seq} "), Some(Colour::Dim)),
        (format!("{moment}Z "), Some(Colour::Dim)),
        (format!("{} ", one.actor), None),
        (one.action, None),
        (args, Some(Colour::Dim)),
        (format!(" {}", one.result), colour),
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
