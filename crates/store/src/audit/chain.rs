//! One line and how it hangs on the one before it.
//!
//! ```text
//! {"seq":7,"ts":"2026-11-16T06:00:00.123456Z","actor":…,"request_id":…,"prev":"64 hex","hash":"64 hex"}
//! └──────────────────────────── the hash is of this ───────────────────────────────┘
//! ```
//! The ends of a line are always alike, so a line is taken apart without being parsed.

use std::time::{SystemTime, UNIX_EPOCH};

use ring::digest;
use serde::de::IgnoredAny;

use super::AuditEntry;
use prism_core::time::date_and_time;

/// SHA-256 in lower-case hexadecimal digits.
pub(super) type Hash = [u8; 64];

/// What the very first line has as the hash of the one before it.
pub(super) const GENESIS: ChainLink = ChainLink { seq: 0, hash: [b'0'; 64] };

/// Bytes of each text of an entry, and of its arguments. What is longer is cut, or counted: a line is read by people.
const MAX_TEXT_BYTES: usize = 1024;
const MAX_ARGS_BYTES: usize = 16 << 10;

/// A place in the chain: the newest line's number and hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChainLink {
    pub(super) seq: u64,
    pub(super) hash: Hash,
}

/// A line, taken apart.
#[derive(Debug)]
pub(super) struct LineParts<'a> {
    pub(super) seq: u64,
    pub(super) prev: &'a [u8],
    pub(super) hash: &'a [u8],
    hashed: &'a [u8],
}

const SEQ: &[u8] = b"{\"seq\":";
const TS: &[u8] = b",\"ts\":\"";
const PREV: &[u8] = b",\"prev\":\"";
const HASH: &[u8] = b"\",\"hash\":\"";
const END: &[u8] = b"\"}";

// === impl ChainLink ===

impl ChainLink {
    /// Adds the line of an entry to `out`, with its line end, and moves on to it.
    pub(super) fn add(&mut self, out: &mut Vec<u8>, entry: &AuditEntry, ts: &str) {
        let start = out.len();
        self.seq += 1;
        out.extend_from_slice(SEQ);
        out.extend_from_slice(self.seq.to_string().as_bytes());
        out.extend_from_slice(TS);
        out.extend_from_slice(ts.as_bytes());
        out.push(b'"');
        add_text(out, "actor", &entry.actor);
        add_text(out, "user", &entry.user);
        add_text(out, "action", &entry.action);
        out.extend_from_slice(b",\"args\":");
        add_args(out, &entry.args);
        add_text(out, "result", &entry.result);
        for (name, text) in [("session_id", &entry.session_id), ("request_id", &entry.request_id)] {
            match text {
                Some(text) => add_text(out, name, text),
                None => out.extend_from_slice(format!(",\"{name}\":null").as_bytes()),
            }
        }
        if let Some(of) = entry.of {
            out.extend_from_slice(format!(",\"of\":{of}").as_bytes());
        }
        out.extend_from_slice(PREV);
        out.extend_from_slice(&self.hash);
        out.push(b'"');
        self.hash = sha256(&out[start..]);
        out.extend_from_slice(&HASH[1..]);
        out.extend_from_slice(&self.hash);
        out.extend_from_slice(END);
        out.push(b'\n');
    }
}

fn add_text(out: &mut Vec<u8>, name: &str, text: &str) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
    if text.len() <= MAX_TEXT_BYTES {
        return add_string(out, text);
    }
    let mut end = MAX_TEXT_BYTES;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    add_string(out, &format!("{}…", &text[..end]));
}

fn add_string(out: &mut Vec<u8>, text: &str) {
    // A string can be written as JSON, and memory takes all that is written.
    let _ = serde_json::to_writer(out, text);
}

/// Adds arguments as they are, if they are JSON in one line.
fn add_args(out: &mut Vec<u8>, args: &str) {
    if args.len() > MAX_ARGS_BYTES {
        return out.extend_from_slice(format!("{{\"cut_bytes\":{}}}", args.len()).as_bytes());
    }
    if serde_json::from_str::<IgnoredAny>(args).is_err() {
        return add_string(out, args);
    }
    // Between the values of JSON there may be line ends, and within them there are none.
    out.extend(args.bytes().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte }));
}

// === impl LineParts ===

impl<'a> LineParts<'a> {
    /// Takes a line without its line end apart. Returns nothing if it is none of ours.
    pub(super) fn of(line: &'a [u8]) -> Option<Self> {
        let (rest, end) = line.split_at_checked(line.len().checked_sub(END.len())?)?;
        let (rest, hash) = rest.split_at_checked(rest.len().checked_sub(64)?)?;
        let (rest, before_hash) = rest.split_at_checked(rest.len().checked_sub(HASH.len())?)?;
        let (rest, prev) = rest.split_at_checked(rest.len().checked_sub(64)?)?;
        let (middle, before_prev) = rest.split_at_checked(rest.len().checked_sub(PREV.len())?)?;
        let seq = number(middle)?;
        let is_ours = end == END && before_hash == HASH && before_prev == PREV && is_hex(prev) && is_hex(hash);
        // To the quote that ends the hash of the line before.
        let hashed = &line[..line.len() - END.len() - 64 - HASH.len() + 1];
        is_ours.then_some(Self { seq, prev, hash, hashed })
    }

    /// Whether the line is what it was when it was written.
    pub(super) fn is_whole(&self) -> bool {
        sha256(self.hashed) == self.hash
    }

    pub(super) fn follows(&self, before: &ChainLink) -> bool {
        self.seq == before.seq + 1 && self.prev == before.hash
    }

    pub(super) fn link(&self) -> ChainLink {
        let mut hash = [0; 64];
        hash.copy_from_slice(self.hash);
        ChainLink { seq: self.seq, hash }
    }

    /// Where the chain stood before this line, as it says.
    pub(super) fn before(&self) -> ChainLink {
        let mut hash = [0; 64];
        hash.copy_from_slice(self.prev);
        ChainLink { seq: self.seq - 1, hash }
    }
}

/// Returns the number of a line from its beginning.
pub(super) fn number(line: &[u8]) -> Option<u64> {
    let rest = line.strip_prefix(SEQ)?;
    let digits = rest.iter().position(|byte| !byte.is_ascii_digit())?;
    if !rest[digits..].starts_with(TS) || rest[0] == b'0' {
        return None;
    }
    str::from_utf8(&rest[..digits]).ok()?.parse().ok()
}

fn is_hex(text: &[u8]) -> bool {
    text.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Reads a hash that somebody typed or a file has.
pub(super) fn hash(text: &str) -> Option<Hash> {
    text.as_bytes().try_into().ok().filter(|hash: &Hash| is_hex(hash))
}

pub(super) fn sha256(bytes: &[u8]) -> Hash {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut hex = [0; 64];
    for (pair, byte) in hex.chunks_exact_mut(2).zip(digest::digest(&digest::SHA256, bytes).as_ref()) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
    hex
}

// === time ===

/// Returns this moment in microseconds since 1970.
pub(super) fn now_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

/// Returns a moment as lines have it. Texts of this form are in the order of their moments.
pub(super) fn timestamp(us: i64) -> String {
    let us = u64::try_from(us).unwrap_or(0);
    let (seconds, micros) = (us / 1_000_000, us % 1_000_000);
    format!("{}.{micros:06}Z", date_and_time(seconds))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn line(entry: &AuditEntry) -> String {
        let (mut out, mut link) = (Vec::new(), GENESIS);
        link.add(&mut out, entry, &timestamp(0));
        String::from_utf8(out).unwrap()
    }

    // A-11
    #[test]
    fn a_line_has_the_members_of_the_source_and_ends_in_its_hash() {
        let entry = AuditEntry {
            actor: "a\"b\n".to_owned(),
            user: "me".to_owned(),
            action: "open_file".to_owned(),
            args: "{\"path\":\"/p\",\n\"hash\":\"x\"}".to_owned(),
            result: "ok".to_owned(),
            session_id: Some("s".to_owned()),
            request_id: None,
            of: Some(3),
        };
        let line = line(&entry);
        assert_eq!(line.matches('\n').count(), 1);
        let value: Value = serde_json::from_str(&line).unwrap();
        let names: Vec<&String> = value.as_object().unwrap().keys().collect();
        assert_eq!(names.len(), 12);
        assert_eq!((&value["actor"], &value["args"]["hash"]), (&"a\"b\n".into(), &"x".into()));
        assert_eq!((&value["of"], &value["request_id"]), (&3.into(), &Value::Null));
        // What anybody could do with a shell: sha256sum of what is before the hash.
        let (hashed, hash) = line.rsplit_once(",\"hash\":\"").unwrap();
        assert_eq!(hash, format!("{}\"}}\n", str::from_utf8(&sha256(hashed.as_bytes())).unwrap()));
        let parts = LineParts::of(line.trim_end().as_bytes()).unwrap();
        assert!(parts.is_whole() && parts.follows(&GENESIS));
    }

    #[test]
    fn what_is_no_json_or_too_long_is_still_a_line() {
        for (args, expected) in [
            ("not json", "\"not json\""),
            ("", "\"\""),
            (&format!("\"{}\"", "x".repeat(20_000)), "{\"cut_bytes\":20002}"),
        ] {
            let line = line(&AuditEntry { args: args.to_owned(), result: "é".repeat(2000), ..AuditEntry::default() });
            let value: Value = serde_json::from_str(&line).unwrap();
            assert_eq!(value["args"].to_string(), expected);
            assert_eq!(value["result"].as_str().unwrap().chars().count(), 513);
        }
    }

    #[test]
    fn a_moment_is_written_as_rfc_3339() {
        for (us, text) in [
            (0, "1970-01-01T00:00:00.000000Z"),
            (951_825_600_000_001, "2000-02-29T12:00:00.000001Z"),
            (1_794_796_020_123_456, "2026-11-16T02:27:00.123456Z"),
        ] {
            assert_eq!(timestamp(us), text);
        }
    }

    #[test]
    fn the_hash_is_sha_256() {
        assert!(sha256(b"abc").starts_with(b"ba7816bf8f01cfea414140de5dae2223"));
    }
}
