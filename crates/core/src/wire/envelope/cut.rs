//! What can still be told of a message that was too long to be kept: whom it concerns.

use std::fmt;

use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

use super::{ByteSpan, EnvelopeMember, MemberKey, RawText, is_id, own_number};

/// Whom a message that was cut off concerns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TruncatedId {
    /// It answers the request of ours with this number.
    Response(u64),
    /// It is a request with this id, as it was written.
    Request(String),
}

/// What can be told of a message that was cut off from its first bytes and, for servers that write `id` last, its last
/// ones.
pub fn cut_message(head: &[u8], tail: &[u8]) -> Option<TruncatedId> {
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        // A cut may fall within a character.
        Err(error) => std::str::from_utf8(&head[..error.valid_up_to()]).ok()?,
    };
    if !text.trim_start().starts_with('{') {
        return None;
    }
    let mut seen = SeenMembers::default();
    let mut deserializer = serde_json::Deserializer::from_str(text);
    // It ends in an error, always: the text is cut. What was seen before that counts.
    let _ = deserializer.deserialize_map(SeenVisitor(&mut seen));
    // A number at the very end of what is left may be longer than it looks.
    let whole = seen.id.filter(|id| ByteSpan::of(text, id).range().end < text.len());
    let id = whole.or_else(|| {
        // `…"id":17}` at the very end, closed by one brace: only a member of the outermost object stands there.
        let text = tail.trim_ascii_end().strip_suffix(b"}")?.trim_ascii_end();
        let digits = text.iter().rev().take_while(|b| b.is_ascii_digit()).count();
        let (rest, number) = text.split_at(text.len() - digits);
        rest.trim_ascii_end().strip_suffix(b":")?.trim_ascii_end().strip_suffix(b"\"id\"")?;
        std::str::from_utf8(number).ok().filter(|number| !number.is_empty())
    })?;
    // The two directions count separately: a request's number says nothing about ours.
    match seen.calls {
        true if is_id(id) => Some(TruncatedId::Request(id.to_owned())),
        true => None,
        false => own_number(id).map(TruncatedId::Response),
    }
}

/// The members of a cut message that were seen before the cut.
#[derive(Default)]
struct SeenMembers<'a> {
    id: Option<&'a str>,
    /// `method` or `params`: it is no answer.
    calls: bool,
}

struct SeenVisitor<'s, 'a>(&'s mut SeenMembers<'a>);

impl<'de> Visitor<'de> for SeenVisitor<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(MemberKey(key)) = map.next_key()? {
            self.0.calls |= matches!(key, EnvelopeMember::Method | EnvelopeMember::Params);
            match key {
                EnvelopeMember::Id => self.0.id = Some(map.next_value::<RawText>()?.0),
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}
