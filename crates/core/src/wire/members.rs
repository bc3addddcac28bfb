//! The members of one JSON object, in their order and as they were written, for the places where an object is rebuilt
//! around members of ours.
//!
//! What is carried along is never decoded, so its numbers, escapes and order stay as written. An edit is a function from
//! text to `Option<String>`, and `None` means "as it is".

use std::{borrow::Cow, fmt};

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::envelope::unquoted;

/// An object's members. A name that comes twice is kept twice: what is carried along is not ours to mend.
#[derive(Clone, Debug, Default)]
pub struct Members<'a> {
    list: Vec<ObjectMember<'a>>,
    changed: bool,
}

#[derive(Clone, Debug)]
struct ObjectMember<'a> {
    /// The name as it was written, quotes included.
    key: Cow<'a, str>,
    name: Cow<'a, str>,
    value: Cow<'a, str>,
}

impl<'a> Members<'a> {
    /// Reads the text of an object; `None` if it is none.
    pub fn read(text: &'a str) -> Option<Self> {
        // An array would do for a derived struct, not here: the visitor only takes maps.
        serde_json::from_str(text).ok()
    }

    /// The raw text of a member. Of two the last counts, as for nearly every reader of JSON.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.list.iter().rfind(|member| member.name == name).map(|member| &*member.value)
    }

    /// A member that is a string.
    pub fn string(&self, name: &str) -> Option<Cow<'_, str>> {
        unquoted(self.get(name)?)
    }

    /// Whether a member is this string.
    pub fn says(&self, name: &str, text: &str) -> bool {
        self.string(name).is_some_and(|found| found == text)
    }

    /// A member that is an object.
    pub fn object(&self, name: &str) -> Option<Members<'_>> {
        Members::read(self.get(name)?)
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn len(&self) -> usize {
        self.list.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.list.iter().map(|member| (&*member.name, &*member.value))
    }

    // --- Changes ---

    /// Puts a member in the place of the one that has its name, or at the end.
    pub fn set(&mut self, name: &'static str, raw: impl Into<Cow<'a, str>>) {
        self.changed = true;
        let value = raw.into();
        match self.list.iter_mut().rfind(|member| member.name == name) {
            Some(member) => member.value = value,
            None => {
                let key = Cow::Owned(JsonString(name).to_string());
                self.list.push(ObjectMember { key, name: Cow::Borrowed(name), value });
            }
        }
    }

    /// Edits the member of that name; of several each, so that none escapes.
    pub fn edit(&mut self, name: &str, mut edit: impl FnMut(&str) -> Option<String>) {
        for member in self.list.iter_mut().filter(|member| member.name == name) {
            self.changed |= member.edit(&mut edit);
        }
    }

    pub fn edit_all(&mut self, mut edit: impl FnMut(&str) -> Option<String>) {
        for member in &mut self.list {
            self.changed |= member.edit(&mut edit);
        }
    }

    pub fn remove(&mut self, name: &str) {
        self.retain(|member| member.name != name);
    }

    pub fn remove_all(&mut self, names: &[&str]) {
        self.retain(|member| !names.contains(&&*member.name));
    }

    pub fn keep(&mut self, names: &[&str]) {
        self.retain(|member| names.contains(&&*member.name));
    }

    /// Removes members of the object `name`, and the object too if nothing is left of it.
    pub fn strip(&mut self, name: &str, names: &[&str]) {
        let mut changed = false;
        self.retain(|member| {
            let stripped =
                member.name == name && member.edit(|inside| edited(inside, |inside| inside.remove_all(names)));
            changed |= stripped;
            !stripped || member.value != "{}"
        });
        self.changed |= changed;
    }

    fn retain(&mut self, keep: impl FnMut(&mut ObjectMember<'a>) -> bool) {
        let before = self.list.len();
        self.list.retain_mut(keep);
        self.changed |= self.list.len() != before;
    }

    /// The text, if it is no longer what was read.
    pub fn if_changed(&self) -> Option<String> {
        self.changed.then(|| self.to_string())
    }
}

impl ObjectMember<'_> {
    fn edit(&mut self, edit: impl FnOnce(&str) -> Option<String>) -> bool {
        let Some(value) = edit(&self.value) else { return false };
        self.value = Cow::Owned(value);
        true
    }
}

impl fmt::Display for Members<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("{")?;
        for (at, member) in self.list.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            write!(f, "{comma}{}:{}", member.key, member.value)?;
        }
        f.write_str("}")
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;
        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut list = Vec::new();
                while let Some((key, value)) = map.next_entry::<&RawValue, &RawValue>()? {
                    let key = key.get();
                    // Half a surrogate pair is no text. With its quotes on it is no name of ours either.
                    let name = unquoted(key).unwrap_or(Cow::Borrowed(key));
                    list.push(ObjectMember { key: Cow::Borrowed(key), name, value: Cow::Borrowed(value.get()) });
                }
                Ok(Members { list, changed: false })
            }
        }
        deserializer.deserialize_map(MembersVisitor)
    }
}

/// A text as a JSON string.
pub struct JsonString<'a>(pub &'a str);

impl fmt::Display for JsonString<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let plain = |b: u8| b >= 0x20 && b != b'"' && b != b'\\';
        if self.0.bytes().all(plain) {
            write!(f, "\"{}\"", self.0)
        } else {
            write!(f, "{}", serde_json::Value::from(self.0))
        }
    }
}

// --- Objects and arrays as text ---

/// An object, edited.
pub fn edited(object: &str, edit: impl FnOnce(&mut Members)) -> Option<String> {
    let mut members = Members::read(object)?;
    edit(&mut members);
    members.if_changed()
}

/// An array, each of its items edited.
pub fn each(list: &str, mut edit: impl FnMut(&str) -> Option<String>) -> Option<String> {
    let mut changed = false;
    let edited = items(list)?.into_iter().map(|item| match edit(item) {
        Some(new) => {
            changed = true;
            Cow::Owned(new)
        }
        None => Cow::Borrowed(item),
    });
    let edited: Vec<Cow<str>> = edited.collect();
    changed.then(|| array(&edited))
}

/// A value that may stand alone or in an array, edited.
pub fn one_or_each(value: &str, mut edit: impl FnMut(&str) -> Option<String>) -> Option<String> {
    if value.starts_with('[') { each(value, edit) } else { edit(value) }
}

/// The items of an array, as they were written; `None` if it is none.
pub fn items(list: &str) -> Option<Vec<&str>> {
    let items: Vec<&RawValue> = serde_json::from_str(list).ok()?;
    Some(items.into_iter().map(RawValue::get).collect())
}

pub fn array<T: AsRef<str>>(items: &[T]) -> String {
    let items: Vec<&str> = items.iter().map(AsRef::as_ref).collect();
    format!("[{}]", items.join(","))
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
        assert_eq!(members.to_string(), r#"{"b":1.0,"a\u0062":[1e400, "\u2028"],"b":2,"_meta":{"x":1},"new":true}"#);
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
        assert_eq!(JsonString("a\"\\\n").to_string(), r#""a\"\\\n""#);
        assert_eq!(JsonString("é").to_string(), "\"é\"");
    }
}
