//! Secrets inside of a text: a command, a header, a URL, or what looks like a key.

use std::borrow::Cow;

use super::{HIDDEN, boundary};

/// How well-known keys begin.
const PREFIXES: [&str; 20] = [
    "sk-",
    "sk_live_",
    "sk_test_",
    "rk_live_",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "npm_",
    "xoxa-",
    "xoxb-",
    "xoxp-",
    "xoxr-",
    "xoxs-",
    "AKIA",
    "ASIA",
    "AIza",
];

/// What begins a signed token in three parts: `{"` in base64.
const JWT: &str = "eyJ";

/// The least such a key has.
const MIN_KEY: usize = 16;

/// Returns a text without its secrets. `hides` tells whether what stands behind a name, as in `name=value`, is one.
pub(super) fn scrub<'a>(text: &'a str, hides: &dyn Fn(&str) -> bool) -> Cow<'a, str> {
    let bytes = text.as_bytes();
    let mut out = String::new();
    let (mut at, mut kept) = (0, 0);
    while at < bytes.len() {
        if !is_word(bytes[at]) {
            at += 1;
            continue;
        }
        let end = run(bytes, at, is_word);
        match secret(text, at, end, hides) {
            Some((start, stop)) if stop > start => {
                out.push_str(&text[kept..start]);
                out.push_str(HIDDEN);
                (kept, at) = (stop, stop);
            }
            _ => at = end,
        }
    }
    if kept == 0 && out.is_empty() {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[kept..]);
    Cow::Owned(out)
}

/// Returns where the secret is that a word is, or that stands behind it.
fn secret(text: &str, at: usize, end: usize, hides: &dyn Fn(&str) -> bool) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    let word = &text[at..end];
    let run_end = run(bytes, at, is_key);
    let long = &text[at..run_end];
    if let Some(prefix) = PREFIXES.iter().find(|prefix| word.starts_with(**prefix))
        && word.len() >= MIN_KEY
    {
        return Some((at + prefix.len(), end));
    }
    if word.starts_with(JWT) && long.len() >= MIN_KEY && long.contains('.') {
        return Some((at + JWT.len(), run_end));
    }
    if word.starts_with("-----BEGIN") {
        let rest = &text[end..];
        let is_private = rest.lines().next().is_some_and(|line| line.contains("PRIVATE KEY"));
        let stop = rest.find("-----END").map_or(text.len(), |stop| end + stop);
        return is_private.then_some((end, stop));
    }
    if word.eq_ignore_ascii_case("bearer") || word.eq_ignore_ascii_case("basic") {
        let start = run(bytes, end, is_blank);
        let stop = run(bytes, start, is_key);
        let value = &text[start..stop];
        let is_key = value.len() >= MIN_KEY || value.len() >= 8 && value.bytes().any(|byte| byte.is_ascii_digit());
        return (start > end && is_key).then_some((start, stop));
    }
    // `https://user:password@host`
    if text[end..].starts_with("://") {
        let start = end + 3;
        let stop = start + text[start..].find(|c: char| c == '/' || c.is_whitespace()).unwrap_or(text.len() - start);
        let host = text[start..stop].rfind('@').map(|host| start + host)?;
        let password = text[start..host].find(':').map_or(start, |colon| start + colon + 1);
        return Some((password, host));
    }
    if !hides(word) {
        return None;
    }
    let value = behind(bytes, word, end)?;
    Some(value_at(text, word, value))
}

/// Returns where the value of a name begins: behind `=`, `:`, or a blank if the name is an option.
fn behind(bytes: &[u8], word: &str, end: usize) -> Option<usize> {
    let quoted = run(bytes, end, |byte| matches!(byte, b'"' | b'\'' | b'\\' | b']' | b' '));
    if matches!(bytes.get(quoted), Some(b'=' | b':')) {
        return Some(run(bytes, quoted, |byte| matches!(byte, b'=' | b':' | b'>' | b' ' | b'\t')));
    }
    let option = word.starts_with('-');
    let value = run(bytes, end, is_blank);
    (option && value > end && bytes.get(value).is_some_and(|byte| *byte != b'-')).then_some(value)
}

/// Returns where a value is that begins here: in quotes, or up to what parts words.
fn value_at(text: &str, name: &str, start: usize) -> (usize, usize) {
    let bytes = text.as_bytes();
    let quotes = run(bytes, start, |byte| byte == b'\\');
    if let Some(quote @ (b'"' | b'\'')) = bytes.get(quotes).copied() {
        let inner = quotes + 1;
        // Quotes that were escaped to get here end escaped.
        let escaped = quotes > start;
        let mut at = inner;
        while at < bytes.len() && bytes[at] != quote {
            at += if bytes[at] == b'\\' && !escaped { 2 } else { 1 };
        }
        return (inner, boundary(text, at));
    }
    // What these have consists of several words.
    let lower = name.to_ascii_lowercase();
    let whole_line = lower.contains("authorization") || lower.contains("cookie");
    let ends = |byte: u8| match byte {
        b'\n' | b'\r' | b'"' | b'\'' => true,
        _ => !whole_line && (byte.is_ascii_whitespace() || matches!(byte, b',' | b';' | b'&' | b')' | b'}' | b'|')),
    };
    (start, run(bytes, start, |byte| !ends(byte)))
}

/// Returns the end of what begins at `from` and is of these bytes.
fn run(bytes: &[u8], from: usize, is: impl Fn(u8) -> bool) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    from + rest.iter().position(|byte| !is(*byte)).unwrap_or(rest.len())
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

fn is_key(byte: u8) -> bool {
    is_word(byte) || matches!(byte, b'.' | b'+' | b'/' | b'=' | b'~')
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}
