//! The YAML that may stand at the head of a Markdown file. One that cannot be read hides nothing: the file counts as
//! text from its first line on, and what is wrong is said.

use serde_json::{Map, Value};

/// A file's two parts.
#[derive(Debug, Default, PartialEq)]
pub(super) struct NoteParts<'a> {
    pub(super) front_matter: Map<String, Value>,
    pub(super) body: &'a str,
    pub(super) problem: Option<String>,
}

/// Front matter beyond this size is not read as such: it is some other file between two lines of dashes.
const MAX_BYTES: usize = 64 << 10;

/// Takes a file apart.
pub(super) fn split(text: &str) -> NoteParts<'_> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let whole =
        |problem: Option<&str>| NoteParts { body: text, problem: problem.map(str::to_owned), ..NoteParts::default() };
    let Some(rest) = after_fence(text, &["---"]) else { return whole(None) };
    let Some((yaml, body)) = to_fence(rest) else {
        // A single line of dashes is a rule, unless keys follow it.
        let keys = rest.lines().next().is_some_and(|line| line.split_once(": ").is_some_and(|(key, _)| is_key(key)));
        return whole(keys.then_some("its front matter has no end: put a line `---` behind it"));
    };
    if yaml.len() > MAX_BYTES {
        return whole(Some("its front matter is longer than 64 KiB and was taken for text"));
    }
    match parse(yaml) {
        Ok(Value::Object(front_matter)) => NoteParts { front_matter, body, problem: None },
        Ok(Value::Null) => NoteParts { body, ..NoteParts::default() },
        // Text between two rules.
        Ok(Value::String(_)) => whole(None),
        Ok(_) => whole(Some("its front matter is no list of `key: value` lines and was taken for text")),
        Err(error) => {
            // The first line says what and where; the rest quotes the file.
            let error = error.to_string();
            let error = error.lines().next().unwrap_or_default();
            whole(Some(&format!("its front matter cannot be read and was taken for text: {error}")))
        }
    }
}

fn parse(yaml: &str) -> Result<Value, serde_saphyr::Error> {
    // `N`, `no` and `on` are words, as in YAML 1.2.
    serde_saphyr::from_str_with_options(yaml, serde_saphyr::options! { strict_booleans: true })
}

/// Writes `key: value`, so that it reads as the same text again.
pub(super) fn line(key: &str, value: &str) -> String {
    format!("{key}: {}\n", scalar(value))
}

/// Writes `key: [a, b]`.
pub(super) fn list(key: &str, values: &[String]) -> String {
    format!("{key}: [{}]\n", values.iter().map(|value| scalar(value)).collect::<Vec<_>>().join(", "))
}

/// Returns a text as YAML: plain where that is read back as the same text, else in quotes.
fn scalar(text: &str) -> String {
    let plain = text.chars().all(|c| c.is_alphanumeric() || " -_./()".contains(c)) && !text.starts_with('-');
    let same = |read: Result<Value, _>| read.is_ok_and(|read: Value| read == Value::String(text.to_owned()));
    if plain && same(parse(text)) { text.to_owned() } else { quoted(text) }
}

fn quoted(text: &str) -> String {
    let mut out = "\"".to_owned();
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            // What YAML 1.2 lets stand in a file (5.1), less what other readers take for line ends.
            ' '..='~' | '\u{a0}'..='\u{2027}' | '\u{202a}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}' | '\u{10000}'.. => {
                out.push(c)
            }
            _ => out.push_str(&format!("\\u{:04x}", u32::from(c))),
        }
    }
    out.push('"');
    out
}

/// Returns a text of the front matter, of any of these keys; numbers count as text.
pub(super) fn text(front_matter: &Map<String, Value>, keys: &[&str]) -> String {
    let found = keys.iter().find_map(|key| match front_matter.get(*key)? {
        Value::String(text) if !text.trim().is_empty() => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    });
    found.unwrap_or_default()
}

/// Returns a list of the front matter, which may be written as a list or as `a, b`.
pub(super) fn words(front_matter: &Map<String, Value>, key: &str) -> Vec<String> {
    let one = |value: &Value| match value {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let all: Vec<String> = match front_matter.get(key) {
        Some(Value::Array(values)) => values.iter().filter_map(one).collect(),
        Some(Value::String(text)) => text.split(',').map(|word| word.trim().to_owned()).collect(),
        Some(other) => one(other).into_iter().collect(),
        None => Vec::new(),
    };
    // One a line in the index.
    all.into_iter().map(|word| word.replace(['\n', '\r'], " ")).filter(|word| !word.is_empty()).collect()
}

/// Returns what follows a first line that is one of these.
fn after_fence<'a>(text: &'a str, fences: &[&str]) -> Option<&'a str> {
    let (line, rest) = text.split_once('\n').unwrap_or((text, ""));
    fences.contains(&line.trim_end()).then_some(rest)
}

fn to_fence(text: &str) -> Option<(&str, &str)> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if let Some(body) = after_fence(&text[at..], &["---", "..."]) {
            return Some((&text[..at], body));
        }
        at += line.len();
    }
    None
}

fn is_key(key: &str) -> bool {
    !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    // W-02
    #[test]
    fn front_matter_is_read_as_people_write_it() {
        let seed = "---\nname: Migrate MCP Transport\ncreated: 2026-03-01\ntags: [mcp, nestjs]\n---\n\n# Title\n";
        let parts = split(seed);
        let expected = json!({"name": "Migrate MCP Transport", "created": "2026-03-01", "tags": ["mcp", "nestjs"]});
        assert_eq!(Value::Object(parts.front_matter), expected);
        assert_eq!((parts.body, parts.problem), ("\n# Title\n", None));
        let parts = split("\u{feff}---\r\nstatus: done\r\ntags: a, b\r\n---\r\ntext");
        assert_eq!(text(&parts.front_matter, &["state", "status"]), "done");
        assert_eq!(words(&parts.front_matter, "tags"), ["a", "b"]);
        assert_eq!(parts.body, "text");
        assert_eq!(split("---\n---\ntext").body, "text");
    }

    // W-02
    #[test]
    fn what_is_wrong_hides_nothing_and_is_said() {
        for (file, problem) in [
            ("---\ntags: [a, b\n---\ntext", Some("cannot be read")),
            ("---\na: 1\na: 2\n---\ntext", Some("cannot be read")),
            ("---\n- a\n- b\n---\ntext", Some("no list of")),
            ("---\ntitle: x\ntext goes on", Some("has no end")),
            ("---\n\ntext between rules\n\n---\nmore", None),
            ("---\n", None),
            ("text", None),
            ("", None),
        ] {
            let parts = split(file);
            assert_eq!(parts.body, file, "{file:?}");
            match problem {
                Some(words) => {
                    assert!(parts.problem.as_deref().is_some_and(|p| p.contains(words)), "{file:?}: {parts:?}")
                }
                None => assert_eq!(parts.problem, None, "{file:?}"),
            }
        }
    }

    #[test]
    fn a_front_matter_that_unfolds_without_end_is_refused() {
        let mut bomb = "---\na0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
        for i in 1..12 {
            let inner = vec![format!("*a{}", i - 1); 9].join(", ");
            bomb.push_str(&format!("a{i}: &a{i} [{inner}]\n"));
        }
        bomb.push_str("---\ntext");
        assert!(split(&bomb).problem.is_some());
    }

    #[test]
    fn any_text_is_read_back_as_it_was_written() {
        proptest!(|(value in any::<String>(), tags in prop::collection::vec("[^,]{0,8}", 0..4))| {
            let yaml = format!("---\n{}{}---\nbody", line("name", &value), list("tags", &tags));
            let parts = split(&yaml);
            prop_assert_eq!(parts.problem, None);
            prop_assert_eq!(&parts.front_matter["name"], &json!(value));
            prop_assert_eq!(&parts.front_matter["tags"], &json!(tags));
            prop_assert_eq!(parts.body, "body");
        });
        for value in ["true", "1.5", "null", "~", "2026-03-01", "- x", "a: b", "#x", "no", "0x1f", "..."] {
            prop_assert_reads_back(value);
        }
    }

    fn prop_assert_reads_back(value: &str) {
        let yaml = format!("---\n{}---\n", line("name", value));
        assert_eq!(split(&yaml).front_matter["name"], json!(value), "{yaml}");
    }
}
