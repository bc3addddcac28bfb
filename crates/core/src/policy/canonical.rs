//! JSON read so that it can mean one thing only, and written so that the same meaning is the same text: sorted members, no
//! white space, numbers as they came. Digests are made of it, and rules look at it.
//!
//! What two readers could read in two ways (a member that is there twice, half a surrogate pair) is refused, not mended.

use std::{borrow::Cow, collections::HashSet, fmt::Write};

use crate::wire::{Members, envelope::unquoted, members::JsonString};

/// How deep values may be nested. Nobody's arguments are deeper, and each level takes stack.
const MAX_DEPTH: usize = 64;

/// Members that are compared with each other one by one.
const FEW: usize = 16;

/// The members of a tool's definition that say what it is and does. What else a server tells of it may change.
const DEFINING: [&str; 6] = ["name", "title", "description", "inputSchema", "outputSchema", "annotations"];

/// A value, as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Json<'a> {
    Object(Vec<(Cow<'a, str>, Self)>),
    Array(Vec<Self>),
    Text(Cow<'a, str>),
    /// A number, `true`, `false` or `null`.
    Other(&'a str),
}

/// Why a value does not mean one thing only.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonAmbiguity {
    #[error("the member {0:?} is there twice")]
    Twice(String),
    #[error("the member {0:?} differs from {1:?} in capitals only, which some servers take for the same")]
    Alike(String, String),
    #[error("it is nested more than {MAX_DEPTH} deep")]
    Deep,
    #[error("a text in it is not valid Unicode")]
    Text,
    #[error("it is not JSON")]
    Syntax,
    #[error("it does not name a tool")]
    NoName,
}

impl<'a> Json<'a> {
    /// Reads a whole value. The text must be JSON already, as a part of a message is.
    pub fn read(text: &'a str) -> Result<Self, JsonAmbiguity> {
        let mut reader = CanonicalReader { text, at: 0 };
        let value = reader.value(0)?;
        reader.space();
        if reader.at == text.len() { Ok(value) } else { Err(JsonAmbiguity::Syntax) }
    }

    /// The one text for this meaning.
    pub fn canonical(&self) -> String {
        let mut out = String::new();
        self.put(&mut out);
        out
    }

    fn put(&self, out: &mut String) {
        match self {
            Self::Object(members) => {
                let mut sorted: Vec<_> = members.iter().collect();
                sorted.sort_by(|(a, _), (b, _)| a.cmp(b));
                put_list(out, ['{', '}'], sorted, |out, (name, value)| {
                    let _ = write!(out, "{}:", JsonString(name));
                    value.put(out);
                });
            }
            Self::Array(items) => put_list(out, ['[', ']'], items, |out, item| item.put(out)),
            Self::Text(text) => drop(write!(out, "{}", JsonString(text))),
            Self::Other(text) => out.push_str(text),
        }
    }

    /// The same for people: one member a line, in the order in which they came.
    pub fn pretty(&self) -> String {
        let mut out = String::new();
        self.put_pretty(&mut out, 0);
        out
    }

    fn put_pretty(&self, out: &mut String, depth: usize) {
        let line = |out: &mut String, depth: usize| {
            out.push('\n');
            (0..depth).for_each(|_| out.push_str("  "));
        };
        let (ends, many) = match self {
            Self::Object(members) => (['{', '}'], members.len()),
            Self::Array(items) => (['[', ']'], items.len()),
            _ => return self.put(out),
        };
        if many == 0 {
            return self.put(out);
        }
        out.push(ends[0]);
        for at in 0..many {
            line(out, depth + 1);
            match self {
                Self::Object(members) => {
                    let _ = write!(out, "{}: ", JsonString(&members[at].0));
                    members[at].1.put_pretty(out, depth + 1);
                }
                Self::Array(items) => items[at].put_pretty(out, depth + 1),
                _ => {}
            }
            if at + 1 < many {
                out.push(',');
            }
        }
        line(out, depth);
        out.push(ends[1]);
    }
}

fn put_list<T>(
    out: &mut String,
    [open, close]: [char; 2],
    items: impl IntoIterator<Item = T>,
    mut put: impl FnMut(&mut String, T),
) {
    out.push(open);
    for (at, item) in items.into_iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        put(out, item);
    }
    out.push(close);
}

/// What a tool is, of all that its server says of it; `None` if that does not mean one thing only.
pub fn definition(tool: &str) -> Option<String> {
    let mut members = Members::read(tool)?;
    members.keep(&DEFINING);
    Json::read(&members.to_string()).ok().map(|json| json.canonical())
}

struct CanonicalReader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> CanonicalReader<'a> {
    fn value(&mut self, depth: usize) -> Result<Json<'a>, JsonAmbiguity> {
        if depth > MAX_DEPTH {
            return Err(JsonAmbiguity::Deep);
        }
        self.space();
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => {
                let mut items = Vec::new();
                self.each(b']', |reader| {
                    items.push(reader.value(depth + 1)?);
                    Ok(())
                })?;
                Ok(Json::Array(items))
            }
            Some(b'"') => self.string().map(Json::Text),
            Some(_) => {
                let rest = &self.text[self.at..];
                let ends = |b: u8| matches!(b, b',' | b']' | b'}' | b' ' | b'\t' | b'\n' | b'\r');
                let length = rest.bytes().position(ends).unwrap_or(rest.len());
                let word = &rest[..length];
                self.at += length;
                // Whatever else it is, a word of this kind is one to every reader.
                let plain = serde_json::from_str::<serde::de::IgnoredAny>(word).is_ok();
                if plain { Ok(Json::Other(word)) } else { Err(JsonAmbiguity::Syntax) }
            }
            None => Err(JsonAmbiguity::Syntax),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Json<'a>, JsonAmbiguity> {
        let mut members: Vec<(Cow<'a, str>, Json<'a>)> = Vec::new();
        self.each(b'}', |reader| {
            let name = reader.string()?;
            reader.space();
            reader.expect(b':')?;
            members.push((name, reader.value(depth + 1)?));
            Ok(())
        })?;
        let twice = if members.len() <= FEW {
            let before = |at: usize| members[..at].iter().any(|(name, _)| *name == members[at].0);
            (1..members.len()).find(|at| before(*at)).map(|at| &members[at].0)
        } else {
            let mut seen = HashSet::with_capacity(members.len());
            members.iter().map(|(name, _)| name).find(|name| !seen.insert(&***name))
        };
        match twice {
            Some(name) => Err(JsonAmbiguity::Twice(name.clone().into_owned())),
            None => Ok(Json::Object(members)),
        }
    }

    /// What stands between the brackets, which the reader is at the first of.
    fn each(
        &mut self,
        close: u8,
        mut item: impl FnMut(&mut Self) -> Result<(), JsonAmbiguity>,
    ) -> Result<(), JsonAmbiguity> {
        self.at += 1;
        self.space();
        if self.peek() == Some(close) {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.space();
            item(self)?;
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                _ => return self.expect(close),
            }
        }
    }

    fn string(&mut self) -> Result<Cow<'a, str>, JsonAmbiguity> {
        let rest = &self.text[self.at..];
        if !rest.starts_with('"') {
            return Err(JsonAmbiguity::Syntax);
        }
        let bytes = rest.as_bytes();
        let mut end = 1;
        loop {
            match memchr::memchr2(b'"', b'\\', bytes.get(end..).unwrap_or_default()).map(|found| end + found) {
                Some(at) if bytes[at] == b'"' => {
                    self.at += at + 1;
                    return unquoted(&rest[..=at]).ok_or(JsonAmbiguity::Text);
                }
                Some(at) => end = at + 2,
                None => return Err(JsonAmbiguity::Syntax),
            }
        }
    }

    fn expect(&mut self, byte: u8) -> Result<(), JsonAmbiguity> {
        if self.peek() != Some(byte) {
            return Err(JsonAmbiguity::Syntax);
        }
        self.at += 1;
        Ok(())
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;
    use crate::wire::{envelope::alike, splice::tests::value};

    fn canonical(text: &str) -> Result<String, JsonAmbiguity> {
        Json::read(text).map(|json| json.canonical())
    }

    #[test]
    fn the_same_meaning_is_the_same_text() {
        let wanted = r#"{"a":[1.50,"d",null],"b":{"c":-0e400,"é":true}}"#;
        for text in [
            wanted,
            r#" { "b" : {"\u00e9":true,"c":-0e400} ,"\u0061":[ 1.50 , "\u0064",null ] } "#,
            "{\"b\":{\"é\":\ttrue,\n\"c\":-0e400},\r\"a\":[1.50,\"d\",null]}",
        ] {
            assert_eq!(canonical(text).as_deref(), Ok(wanted));
        }
        // A number is what was written: what a server makes of 1.5 and 1.50 is its own affair.
        assert_ne!(canonical("1.5"), canonical("1.50"));
    }

    #[test]
    fn what_can_be_read_in_two_ways_is_refused() {
        assert_eq!(canonical(r#"{"x":[{"a":1,"\u0061":2}]}"#), Err(JsonAmbiguity::Twice("a".to_owned())));
        assert_eq!(canonical(r#""\ud800""#), Err(JsonAmbiguity::Text));
        assert_eq!(canonical(&"[".repeat(1 << 20)), Err(JsonAmbiguity::Deep));
        for text in ["", "{", "[1,]", r#"{"a"}"#, "1 2", "nul", r#""a"#, r#""a\"#, "{,}"] {
            assert_eq!(canonical(text), Err(JsonAmbiguity::Syntax), "{text}");
        }
    }

    #[test]
    fn names_that_some_readers_take_for_the_same_are_alike() {
        for (a, b, are) in [
            ("Name", "name", true),
            ("argument\u{17f}", "arguments", true),
            ("na\u{212a}e", "nake", true),
            ("named", "name", false),
        ] {
            assert_eq!(alike(a, b), are, "{a} {b}");
        }
    }

    #[test]
    fn a_definition_is_what_a_tool_is() {
        let one = r#"{"name":"a","_meta":{"seen":1},"description":"d","icons":[],"inputSchema":{"b":1,"a":2}}"#;
        let other = r#"{"inputSchema":{"a":2,"b":1},"description":"\u0064","name":"a","execution":{}}"#;
        assert_eq!(definition(one).as_deref(), Some(r#"{"description":"d","inputSchema":{"a":2,"b":1},"name":"a"}"#));
        assert_eq!(definition(one), definition(other));
        assert_ne!(definition(one), definition(&one.replace("\"d\"", "\"e\"")));
        assert_eq!(definition(r#"{"name":"a","name":"b"}"#), None);
    }

    proptest! {
        #[test]
        fn both_ways_of_writing_keep_the_meaning(value in value()) {
            let text = value.to_string();
            let json = Json::read(&text).unwrap();
            prop_assert_eq!(&serde_json::from_str::<Value>(&json.canonical()).unwrap(), &value);
            prop_assert_eq!(&serde_json::from_str::<Value>(&json.pretty()).unwrap(), &value);
            prop_assert_eq!(canonical(&json.pretty()).unwrap(), json.canonical());
        }
    }
}
