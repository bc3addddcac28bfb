//! The members of one JSON object, in their order and as they were written, for the few places where an object is
//! rebuilt around members of ours.

use std::{borrow::Cow, fmt};

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// An object's members. A name that comes twice is kept twice: what is carried along is not ours to mend.
#[derive(Clone, Debug, Default)]
pub struct Members<'a> {
    list: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

impl<'a> Members<'a> {
    /// Reads the text of an object; `None` if it is none.
    pub fn read(text: &'a str) -> Option<Self> {
        // An array would do for a derived struct, not here: the visitor only takes maps.
        serde_json::from_str(text).ok()
    }

    /// The raw text of a member.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.list.iter().find(|(known, _)| known == name).map(|(_, raw)| &**raw)
    }

    /// A member that is a string.
    pub fn string(&self, name: &str) -> Option<Cow<'_, str>> {
        super::envelope::unquoted(self.get(name)?)
    }

    /// A member that is an object.
    pub fn object(&self, name: &str) -> Option<Members<'_>> {
        Members::read(self.get(name)?)
    }

    pub fn remove(&mut self, name: &str) {
        self.list.retain(|(known, _)| known != name);
    }

    /// Puts a member in the place of the one that has its name, or at the end.
    pub fn set(&mut self, name: &'static str, raw: impl Into<Cow<'a, str>>) {
        match self.list.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => *old = raw.into(),
            None => self.list.push((Cow::Borrowed(name), raw.into())),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn len(&self) -> usize {
        self.list.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.list.iter().map(|(name, raw)| (&**name, &**raw))
    }
}

impl fmt::Display for Members<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("{")?;
        for (at, (name, raw)) in self.list.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            write!(f, "{comma}{}:{raw}", Quoted(name))?;
        }
        f.write_str("}")
    }
}

/// A text as a JSON string.
pub struct Quoted<'a>(pub &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let plain = |b: u8| b >= 0x20 && b != b'"' && b != b'\\';
        if self.0.bytes().all(plain) {
            write!(f, "\"{}\"", self.0)
        } else {
            write!(f, "{}", serde_json::Value::from(self.0))
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(serde::Deserialize)]
        struct Name<'a>(#[serde(borrow)] Cow<'a, str>);
        struct MembersVisitor;
        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut list = Vec::new();
                while let Some((Name(name), raw)) = map.next_entry::<Name<'de>, &'de RawValue>()? {
                    list.push((name, Cow::Borrowed(raw.get())));
                }
                Ok(Members { list })
            }
        }
        deserializer.deserialize_map(MembersVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_touched_keeps_its_text_and_its_place() {
        let text = r#"{"b":1.0,"a\u0062":[1e400, "\u2028"],"b":2,"_meta":{}}"#;
        let mut members = Members::read(text).unwrap();
        assert_eq!(members.get("ab"), Some(r#"[1e400, "\u2028"]"#));
        members.set("_meta", r#"{"x":1}"#);
        members.set("new", "true");
        assert_eq!(members.to_string(), r#"{"b":1.0,"ab":[1e400, "\u2028"],"b":2,"_meta":{"x":1},"new":true}"#);
        members.remove("b");
        assert_eq!(members.len(), 3);
    }

    #[test]
    fn only_an_object_has_members() {
        for text in ["[]", "null", "1", "\"x\"", "", "{"] {
            assert!(Members::read(text).is_none(), "{text}");
        }
        assert!(Members::read(" { } ").unwrap().is_empty());
    }

    #[test]
    fn a_text_is_quoted_as_json() {
        assert_eq!(Quoted("a\"\\\n").to_string(), r#""a\"\\\n""#);
        assert_eq!(Quoted("é").to_string(), "\"é\"");
    }
}
