//! What the audit log says of an action's arguments: enough to know what was done, without the secrets in them and, unless
//! that is wanted, without what was written and read.
//!
//! Whether something is a secret can only be guessed: by the name of its member, and by what keys look like (`scrub`). The
//! guess is generous: a word too many that is hidden costs little.

mod scrub;

use std::fmt::Write;

use serde_json::{Map, Value};

use scrub::scrub;

use super::NameGlob;

/// What is written in place of a secret.
pub const HIDDEN: &str = "[hidden]";

/// The most that arguments take in a line. What is beyond it is cut, with a mark.
pub const MAX_ARGS_BYTES: usize = 12 << 10;

/// The most of one text, of the members of one object or list, and of the lists in lists. What is beyond is cut.
const MAX_TEXT_BYTES: usize = 2 << 10;
const MAX_MEMBERS: usize = 128;
const MAX_DEPTH: usize = 16;

/// A body that is shorter than this could be guessed from its digest, a typed password above all.
const MIN_DIGEST_BYTES: usize = 32;

/// Members that are what was written or read, not what was done.
const BODIES: [&str; 6] = ["content", "text", "new_text", "edits", "data", "input"];

/// What is hidden.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Redaction {
    /// Patterns in small letters: `*` stands for any text.
    names: Vec<NameGlob>,
    bodies: bool,
}

impl Redaction {
    /// Hides what always is, and members whose names fit one of these patterns (`*` for any text, in whichever case). With
    /// `bodies`, what was written and read is shown.
    pub fn new(names: &[String], bodies: bool) -> Self {
        Self { names: names.iter().filter_map(|name| NameGlob::new(&name.to_lowercase()).ok()).collect(), bodies }
    }

    /// Returns arguments as the audit log may have them: JSON in one line of at most [`MAX_ARGS_BYTES`]. `digest` is told
    /// the bytes of a body, and returns what they are to be known by.
    pub fn redact(&self, args: &Value, digest: &dyn Fn(&[u8]) -> String) -> String {
        let mut out = Out { text: String::new(), redaction: self, digest };
        out.value(args, 0);
        out.text
    }

    /// Whether a member of this name is a secret.
    fn hides(&self, name: &str) -> bool {
        is_secret(name) || !self.names.is_empty() && self.hides_by_pattern(&name.to_lowercase())
    }

    fn hides_by_pattern(&self, name: &str) -> bool {
        self.names.iter().any(|pattern| pattern.fits(name))
    }
}

/// Names that tell of a secret, in small letters and without what parts words.
const SECRETS: [&str; 13] = [
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "apikey",
    "authorization",
    "cookie",
    "privatekey",
    "credential",
    "accesskey",
    "sshkey",
    "signingkey",
];

fn is_secret(name: &str) -> bool {
    // `tokenizer` is none.
    let name: String = name.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
    let name = name.replace("tokeniz", "");
    SECRETS.iter().any(|secret| name.contains(secret))
}

/// What is written, and by which rules.
struct Out<'a> {
    text: String,
    redaction: &'a Redaction,
    digest: &'a dyn Fn(&[u8]) -> String,
}

impl Out<'_> {
    fn value(&mut self, value: &Value, depth: usize) {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => {
                // A string takes all that is written. A number may be as long as whoever sent it liked.
                let _ = if self.has_room(64) { write!(self.text, "{value}") } else { self.text.write_str("\"…\"") };
            }
            Value::String(text) => {
                let scrubbed = scrub(text, &|name| self.redaction.hides(name));
                self.string(&scrubbed);
            }
            Value::Array(_) | Value::Object(_) if depth >= MAX_DEPTH || !self.has_room(0) => {
                self.text.push_str("\"…\"")
            }
            Value::Array(list) => self.list(list, depth),
            Value::Object(members) => self.object(members, depth),
        }
    }

    fn list(&mut self, list: &[Value], depth: usize) {
        self.text.push('[');
        let mut flag = false;
        for (at, value) in list.iter().enumerate() {
            self.text.push_str(if at == 0 { "" } else { "," });
            if at == MAX_MEMBERS || !self.has_room(0) {
                let _ = write!(self.text, "\"… {} more\"", list.len() - at);
                break;
            }
            // `["--password", "x"]`, as commands are given.
            match value {
                Value::String(text) if flag && !text.starts_with('-') => self.string(HIDDEN),
                _ => self.value(value, depth + 1),
            }
            flag = value.as_str().is_some_and(|text| text.starts_with('-') && self.redaction.hides(text));
        }
        self.text.push(']');
    }

    fn object(&mut self, members: &Map<String, Value>, depth: usize) {
        self.text.push('{');
        for (at, (name, value)) in members.iter().enumerate() {
            self.text.push_str(if at == 0 { "" } else { "," });
            if at == MAX_MEMBERS || !self.has_room(0) {
                let _ = write!(self.text, "\"…\":\"{} more\"", members.len() - at);
                break;
            }
            let shown = scrub(name, &|name| self.redaction.hides(name));
            self.string(&shown);
            self.text.push(':');
            let is_some = !matches!(value, Value::Null | Value::Bool(_));
            // `max_tokens` counts.
            let counts = value.is_number() && name.to_lowercase().ends_with("tokens");
            if self.redaction.hides(name) && is_some && !counts {
                self.string(HIDDEN);
            } else if !self.redaction.bodies && BODIES.contains(&name.as_str()) {
                self.body(value, depth + 1);
            } else {
                self.value(value, depth + 1);
            }
        }
        self.text.push('}');
    }

    /// Writes how much there is, and what it is known by.
    fn body(&mut self, value: &Value, depth: usize) {
        let json;
        let bytes = match value {
            Value::String(text) => text.as_bytes(),
            Value::Array(_) | Value::Object(_) => {
                json = value.to_string();
                json.as_bytes()
            }
            _ => return self.value(value, depth),
        };
        let _ = write!(self.text, "{{\"bytes\":{}", bytes.len());
        if bytes.len() >= MIN_DIGEST_BYTES {
            self.text.push_str(",\"sha256\":");
            self.string(&(self.digest)(bytes));
        }
        self.text.push('}');
    }

    /// Writes a text, or as much of it as there is room for.
    fn string(&mut self, text: &str) {
        let mut end = boundary(text, MAX_TEXT_BYTES);
        loop {
            let left = text.len() - end;
            let cut = if left > 0 { format!("{}… {left} bytes more", &text[..end]) } else { text.to_owned() };
            let json = Value::String(cut).to_string();
            // What is escaped is up to six times as long.
            if self.has_room(json.len()) || end == 0 {
                return self.text.push_str(&json);
            }
            end = boundary(text, end / 2);
        }
    }

    /// Room is left for the ends of what is open, and for marks.
    fn has_room(&self, bytes: usize) -> bool {
        self.text.len() + bytes < MAX_ARGS_BYTES - 64 * (MAX_DEPTH + 1)
    }
}

/// Returns the last place at or before `at` where a character ends.
fn boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

#[cfg(test)]
mod tests;
