//! What is about to change in a file, for a person to read. Secrets are not shown: a transcript is read by others too.

use std::{path::Path, time::Duration};

use similar::{ChangeTag, TextDiff};

/// One line of a diff.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiffLine {
    Head(String),
    Same(String),
    Added(String),
    Removed(String),
}

/// Lines that are shown around a change.
const AROUND: usize = 3;

/// How long the shortest difference is looked for; after that, one that is longer does. Two texts of a mebibyte that have
/// nothing in common would take minutes.
const LOOKED_FOR: Duration = Duration::from_millis(500);

/// What stands around texts, the longest first.
const QUOTES: [&str; 4] = ["\"\"\"", "'''", "\"", "'"];

/// What names of secrets have in them.
const SECRET_NAMES: [&str; 7] = ["authorization", "token", "key", "secret", "password", "credential", "bearer"];

/// Returns what changes in a file; `None` is a file that is not there.
pub fn lines(path: &Path, before: Option<&str>, after: Option<&str>) -> Vec<DiffLine> {
    lines_as(path, before, after, masked)
}

/// The same with secrets, for a person who is to see all of it.
pub fn lines_in_full(path: &Path, before: Option<&str>, after: Option<&str>) -> Vec<DiffLine> {
    lines_as(path, before, after, str::to_owned)
}

fn lines_as(path: &Path, before: Option<&str>, after: Option<&str>, shown: fn(&str) -> String) -> Vec<DiffLine> {
    let (old, new) = (before.unwrap_or_default(), after.unwrap_or_default());
    let diff = TextDiff::configure().timeout(LOOKED_FOR).diff_lines(old, new);
    let name = |text: Option<&str>| text.map_or_else(|| "/dev/null".to_owned(), |_| path.display().to_string());
    let mut lines =
        vec![DiffLine::Head(format!("--- {}", name(before))), DiffLine::Head(format!("+++ {}", name(after)))];
    let mut unified = diff.unified_diff();
    for hunk in unified.context_radius(AROUND).iter_hunks() {
        lines.push(DiffLine::Head(hunk.header().to_string()));
        for change in hunk.iter_changes() {
            let text = shown(change.value().trim_end_matches(['\n', '\r']));
            lines.push(match change.tag() {
                ChangeTag::Equal => DiffLine::Same(format!(" {text}")),
                ChangeTag::Insert => DiffLine::Added(format!("+{text}")),
                ChangeTag::Delete => DiffLine::Removed(format!("-{text}")),
            });
        }
    }
    lines
}

/// Returns a diff as one text.
pub fn text(lines: &[DiffLine]) -> String {
    lines.iter().map(|line| format!("{}\n", line.as_str())).collect()
}

/// Hides the texts behind names that sound like secrets.
fn masked(line: &str) -> String {
    let mut shown = String::with_capacity(line.len());
    let mut rest = line;
    // Whether the next text is the value of such a name.
    let mut secret = false;
    while let Some((start, quote)) = quote_in(rest) {
        let (before, quoted) = rest.split_at(start);
        let (text, after) = quoted.split_at(end_of(quoted, quote));
        shown.push_str(before);
        secret |= is_assigned(before) && sounds_secret(before);
        let is_name = after.trim_start().starts_with([':', '=']);
        match (is_name, secret) {
            (false, true) if text.len() > 2 * quote.len() => shown.push_str(&format!("{quote}…{quote}")),
            _ => shown.push_str(text),
        }
        secret = is_name && sounds_secret(text);
        rest = after;
    }
    shown.push_str(rest);
    shown
}

/// Where a text begins, and with what: as in JSON, or one of TOML's. An apostrophe begins none.
fn quote_in(line: &str) -> Option<(usize, &'static str)> {
    line.char_indices().find_map(|(at, _)| {
        let (before, rest) = line.split_at(at);
        let quote = QUOTES.into_iter().find(|quote| rest.starts_with(quote))?;
        let is_apostrophe = || before.ends_with(char::is_alphanumeric) || !rest[1..].contains('\'');
        (quote != "'" || !is_apostrophe()).then_some((at, quote))
    })
}

/// Where such a text ends, behind its last quote.
fn end_of(quoted: &str, quote: &str) -> usize {
    let escapes = quote.starts_with('"');
    let mut is_escaped = false;
    for (at, c) in quoted.char_indices().skip(quote.len()) {
        if !is_escaped && quoted[at..].starts_with(quote) {
            return at + quote.len();
        }
        is_escaped = escapes && c == '\\' && !is_escaped;
    }
    quoted.len()
}

/// Whether a name without quotes stands in front of a value, as in TOML.
fn is_assigned(before: &str) -> bool {
    before.trim_end().ends_with('=')
}

fn sounds_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_NAMES.iter().any(|word| name.contains(word))
}

// === impl DiffLine ===

impl DiffLine {
    pub fn as_str(&self) -> &str {
        match self {
            Self::Head(text) | Self::Same(text) | Self::Added(text) | Self::Removed(text) => text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown_and_all_else_is() {
        for (line, shown) in [
            (r#"  "Authorization": "Bearer abc""#, r#"  "Authorization": "…""#),
            (
                r#"{"url": "http://x", "headers": {"X-Api-Key": "k"}}"#,
                r#"{"url": "http://x", "headers": {"X-Api-Key": "…"}}"#,
            ),
            (r#"http_headers = { Authorization = "Bearer abc" }"#, r#"http_headers = { Authorization = "…" }"#),
            (r#""env": {"GITHUB_TOKEN": "t", "HOME": "/h"}"#, r#""env": {"GITHUB_TOKEN": "…", "HOME": "/h"}"#),
            (r#"  "command": "npx","#, r#"  "command": "npx","#),
            (r"env = { API_KEY = 'a\', HOME = '/h' }", r"env = { API_KEY = '…', HOME = '/h' }"),
            (r#"API_KEY = "a\"b", "c""#, r#"API_KEY = "…", "c""#),
            (r#"API_KEY = """a"b""" # it's"#, r#"API_KEY = """…""" # it's"#),
            (r##"# don't: API_KEY = "k""##, r##"# don't: API_KEY = "…""##),
            (r##"# 'tis API_KEY = "k""##, r##"# 'tis API_KEY = "…""##),
            (r#"API_KEY = """#, r#"API_KEY = """#),
        ] {
            assert_eq!(masked(line), shown);
        }
    }
}
