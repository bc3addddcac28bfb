//! A second look at a message that is odd, to say what is.

use std::fmt;

use serde::de::{self, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::super::canonical::JsonAmbiguity;
use crate::wire::{Message, envelope::alike};

/// What was found.
#[derive(Default)]
struct CallArguments<'a> {
    arguments: Option<&'a str>,
    unclear: Option<JsonAmbiguity>,
}

/// The members that decide what is called. The envelope has seen to it that each is there once, but for the arguments.
const TOP: [&str; 2] = ["method", "params"];
const PARAMS: [&str; 2] = ["name", "arguments"];

pub(super) fn oddity(message: &Message) -> JsonAmbiguity {
    call(message).err().unwrap_or(JsonAmbiguity::Syntax)
}

fn call(message: &Message) -> Result<(), JsonAmbiguity> {
    let mut call = CallArguments::default();
    let text = std::str::from_utf8(message.bytes()).map_err(|_| JsonAmbiguity::Text)?;
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let read = deserializer.deserialize_map(TopVisitor(&mut call));
    match call.unclear.take() {
        Some(unclear) => Err(unclear),
        None => read.map_err(|_| JsonAmbiguity::Syntax),
    }
}

impl CallArguments<'_> {
    /// Notes a member that is nearly one of these, or one of them a second time.
    fn look(&mut self, name: &str, known: &[&str]) {
        // A letter that is taken for another one is never shorter.
        let fits = |known: &&&str| name.len() >= known.len() && **known != name && alike(known, name);
        if let Some(known) = known.iter().find(fits) {
            self.unclear.get_or_insert_with(|| JsonAmbiguity::Alike(name.to_owned(), (*known).to_owned()));
        }
    }
}

struct TopVisitor<'c, 'a>(&'c mut CallArguments<'a>);
struct ParamsVisitor<'c, 'a>(&'c mut CallArguments<'a>);

/// Takes the names of members as they mean, without keeping them.
struct CalledName<'c, 'a> {
    call: &'c mut CallArguments<'a>,
    known: [&'static str; 2],
}

impl<'de> de::DeserializeSeed<'de> for CalledName<'_, '_> {
    /// Which of those that are known it is.
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for CalledName<'_, '_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a member name")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<Self::Value, E> {
        let at = self.known.iter().position(|known| *known == name);
        if at.is_none() {
            self.call.look(name, &self.known);
        }
        Ok(at)
    }
}

impl<'de> Visitor<'de> for TopVisitor<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(at) = map.next_key_seed(CalledName { call: &mut *self.0, known: TOP })? {
            if at == Some(1) {
                map.next_value_seed(ParamsVisitor(&mut *self.0))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

impl<'de> de::DeserializeSeed<'de> for ParamsVisitor<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ParamsVisitor<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("`params`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(at) = map.next_key_seed(CalledName { call: &mut *self.0, known: PARAMS })? {
            if at == Some(1) {
                let arguments = map.next_value::<&RawValue>()?.get();
                if self.0.arguments.replace(arguments).is_some() {
                    self.0.unclear.get_or_insert_with(|| JsonAmbiguity::Twice("arguments".to_owned()));
                }
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        Ok(())
    }
}
