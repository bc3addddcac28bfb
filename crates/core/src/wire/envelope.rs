//! The JSON-RPC envelope, read without building a tree: which kind of message it is, and where in its bytes the few
//! parts stand that are ours to read or replace. Everything else is scanned once, for validity, and never touched.

mod cut;

use std::{borrow::Cow, fmt, ops::Range};

use bytes::{Bytes, BytesMut};
use serde::de::{self, Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{error::Category, value::RawValue};

pub use self::cut::{TruncatedId, cut_message};
use super::Method;

/// Where a part of a message stands in its bytes. Messages are bounded far below 4 GiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteSpan {
    start: u32,
    end: u32,
}

/// What a message is, by the members it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageKind {
    Request(Method),
    Notification(Method),
    Response,
}

/// One JSON-RPC message: its bytes as they came, and the places of what we read.
#[derive(Clone, Debug)]
pub struct Message {
    bytes: Bytes,
    kind: MessageKind,
    /// Absent on notifications, and on the answers with `"id": null` that some servers give to them.
    id: Option<ByteSpan>,
    method: Option<ByteSpan>,
    params: ParamSpans,
    result: Option<ByteSpan>,
    error: Option<ByteSpan>,
    odd: bool,
}

/// The members of `params` that the method table says are ours. All are places of raw JSON values.
#[derive(Clone, Copy, Debug, Default)]
pub struct ParamSpans {
    pub meta: Option<ByteSpan>,
    /// `_meta.progressToken` of a request.
    pub meta_token: Option<ByteSpan>,
    /// `_meta["io.modelcontextprotocol/protocolVersion"]`: the claim to be of the modern era.
    pub meta_version: Option<ByteSpan>,
    /// `progressToken` of `notifications/progress`.
    pub token: Option<ByteSpan>,
    /// `requestId` of `notifications/cancelled`.
    pub request_id: Option<ByteSpan>,
    pub name: Option<ByteSpan>,
    /// `arguments` of a call. Of two the last; the message is odd then.
    pub arguments: Option<ByteSpan>,
    pub uri: Option<ByteSpan>,
    pub level: Option<ByteSpan>,
    /// `mode` of `elicitation/create`.
    pub mode: Option<ByteSpan>,
    /// `requestState` and `inputResponses` of a call that goes on after a question (2026-07-28).
    pub request_state: Option<ByteSpan>,
    pub input_responses: Option<ByteSpan>,
}

/// Why bytes are not one JSON-RPC message.
#[derive(Debug, thiserror::Error)]
pub enum EnvelopeError {
    #[error("the message is not valid UTF-8")]
    NotUtf8,
    #[error("the message is not valid JSON")]
    Syntax(#[source] serde_json::Error),
    #[error("a JSON array (a batch) is not one message")]
    Batch,
    #[error("not a JSON-RPC 2.0 message: {0}")]
    Shape(String),
}

// === impl Message ===

impl Message {
    /// The same in memory of its own. A message pins the buffer that it was read into, which is for those who keep it
    /// for a moment only.
    #[must_use]
    pub fn detached(&self) -> Self {
        Self { bytes: Bytes::copy_from_slice(&self.bytes), ..self.clone() }
    }

    /// Reads the envelope of one message.
    pub fn parse(bytes: Bytes) -> Result<Self, EnvelopeError> {
        let text = std::str::from_utf8(&bytes).map_err(|_| EnvelopeError::NotUtf8)?;
        // A derived struct would also accept an array, positionally: the first byte decides.
        match text.trim_start().as_bytes().first() {
            Some(b'{') => {}
            Some(b'[') => return Err(EnvelopeError::Batch),
            _ => return Err(not_an_object(text)),
        }
        let top: Top = serde_json::from_str(text).map_err(|error| match error.classify() {
            Category::Data => EnvelopeError::Shape(without_position(&error)),
            _ => EnvelopeError::Syntax(error),
        })?;
        let shape = |why: &str| Err(EnvelopeError::Shape(why.to_owned()));
        if top.version.is_none_or(|raw| raw.0 != "\"2.0\"") {
            return shape("`jsonrpc` must be \"2.0\"");
        }
        let id = match top.id.map(|raw| raw.0) {
            None => None,
            Some("null") if top.method.is_none() => None,
            Some(raw) if is_id(raw) => Some(raw),
            Some(_) => return shape("`id` must be a string or an integer"),
        };
        let kind = match top.method {
            Some(_) if top.result.is_some() || top.error.is_some() => return shape("both a call and an answer"),
            Some(RawText(raw)) => {
                let Some(name) = unquoted(raw) else { return shape("`method` must be a string") };
                let method = Method::named(&name);
                if id.is_some() { MessageKind::Request(method) } else { MessageKind::Notification(method) }
            }
            None if top.result.is_some() != top.error.is_some() => MessageKind::Response,
            None => return shape("neither `method` nor exactly one of `result` and `error`"),
        };
        let spot = |raw: Option<RawText>| raw.map(|part| ByteSpan::of(text, part.0));
        let p = top.params.unwrap_or_default();
        // Small, and read twice: once for its place, once for what is in it.
        let meta: RawMeta = match p.meta {
            Some(raw) => serde_json::from_str(raw.0).map_err(|error| EnvelopeError::Shape(without_position(&error)))?,
            None => RawMeta::default(),
        };
        let params = ParamSpans {
            meta: spot(p.meta),
            meta_token: spot(meta.token),
            meta_version: spot(meta.version),
            token: spot(p.token),
            request_id: spot(p.request_id),
            name: spot(p.name),
            arguments: spot(p.arguments),
            uri: spot(p.uri),
            level: spot(p.level),
            mode: spot(p.mode),
            request_state: spot(p.request_state),
            input_responses: spot(p.input_responses),
        };
        let odd = top.odd || p.odd;
        let (id, method, result, error) = (spot(id.map(RawText)), spot(top.method), spot(top.result), spot(top.error));
        Ok(Self { bytes, kind, id, method, params, result, error, odd })
    }

    /// The same message with another value, a JSON text, in the place of one of its parts. It is not read again.
    #[must_use]
    pub fn with(&self, span: ByteSpan, value: &str) -> Self {
        self.edited(&mut [(span, value)])
    }

    /// The same with other values in the place of some of its parts, in any order; none may overlap another. Of what is
    /// replaced only `_meta` is looked into again.
    #[must_use]
    pub fn edited(&self, edits: &mut [(ByteSpan, &str)]) -> Self {
        edits.sort_unstable_by_key(|(span, _)| span.start);
        let grown = |(span, value): &(ByteSpan, &str)| value.len() as i64 - i64::from(span.end - span.start);
        let length = self.bytes.len() as i64 + edits.iter().map(grown).sum::<i64>();
        let mut bytes = BytesMut::with_capacity(usize::try_from(length).unwrap_or_default());
        let mut done = 0;
        for (span, value) in edits.iter() {
            let Range { start, end } = span.range();
            bytes.extend_from_slice(&self.bytes[done..start]);
            bytes.extend_from_slice(value.as_bytes());
            done = end;
        }
        bytes.extend_from_slice(&self.bytes[done..]);
        let moved = |at: u32| {
            let before = edits.iter().filter(|(span, _)| span.end <= at).map(grown).sum::<i64>();
            u32::try_from(i64::from(at) + before).unwrap_or(at)
        };
        let shifted =
            |part: Option<ByteSpan>| part.map(|part| ByteSpan { start: moved(part.start), end: moved(part.end) });
        let p = &self.params;
        let new_meta = edits.iter().find(|(span, _)| Some(*span) == p.meta);
        let (meta_token, meta_version) = match new_meta {
            Some((span, value)) => {
                let found: RawMeta = serde_json::from_str(value).unwrap_or_default();
                let at = moved(span.start);
                let spot = |part: Option<RawText>| part.map(|part| ByteSpan::of(value, part.0).later(at));
                (spot(found.token), spot(found.version))
            }
            None => (shifted(p.meta_token), shifted(p.meta_version)),
        };
        let params = ParamSpans {
            meta: shifted(p.meta),
            meta_token,
            meta_version,
            token: shifted(p.token),
            request_id: shifted(p.request_id),
            name: shifted(p.name),
            arguments: shifted(p.arguments),
            uri: shifted(p.uri),
            level: shifted(p.level),
            mode: shifted(p.mode),
            request_state: shifted(p.request_state),
            input_responses: shifted(p.input_responses),
        };
        let (id, method) = (shifted(self.id), shifted(self.method));
        let (result, error) = (shifted(self.result), shifted(self.error));
        Self { bytes: bytes.freeze(), kind: self.kind, id, method, params, result, error, odd: self.odd }
    }

    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    pub fn kind(&self) -> MessageKind {
        self.kind
    }

    /// Whether another reader could take it for another call: it has arguments twice, or a member that differs from one that
    /// says what is called in its capitals only. Nobody minds but those who have to know what is called.
    pub fn is_odd(&self) -> bool {
        self.odd
    }

    pub fn id_span(&self) -> Option<ByteSpan> {
        self.id
    }

    /// The id as it was written: `1` and `"1"` are two.
    pub fn id(&self) -> Option<&str> {
        self.id.map(|span| self.text(span))
    }

    /// The method's name as JSON text, quotes included.
    pub fn method_text(&self) -> Option<&str> {
        self.method.map(|span| self.text(span))
    }

    pub fn params(&self) -> &ParamSpans {
        &self.params
    }

    /// The method's name; `None` on a response.
    pub fn method(&self) -> Option<Cow<'_, str>> {
        self.string(self.method)
    }

    /// Whether this is a response that carries an error.
    pub fn failed(&self) -> bool {
        self.error.is_some()
    }

    pub fn result_span(&self) -> Option<ByteSpan> {
        self.result
    }

    pub fn error_span(&self) -> Option<ByteSpan> {
        self.error
    }

    /// The text of `params`, found in a pass of its own: few messages are ever asked for it.
    pub fn params_text(&self) -> Option<&str> {
        #[derive(serde::Deserialize)]
        struct ParamsOnly<'a> {
            #[serde(borrow)]
            params: &'a RawValue,
        }
        serde_json::from_slice::<ParamsOnly>(&self.bytes).ok().map(|call| call.params.get())
    }

    pub fn text(&self, span: ByteSpan) -> &str {
        // The bytes were checked as UTF-8 and the span lies on JSON tokens; an empty text is the harmless reading of
        // a span that came from another message.
        self.bytes.get(span.range()).and_then(|part| std::str::from_utf8(part).ok()).unwrap_or_default()
    }

    /// The string at `span`, unescaped; `None` if it is no string.
    pub fn string(&self, span: Option<ByteSpan>) -> Option<Cow<'_, str>> {
        unquoted(self.text(span?))
    }
}

/// A number of ours, given back as a number or as its decimal string.
pub fn own_number(raw: &str) -> Option<u64> {
    raw.strip_prefix('"').and_then(|r| r.strip_suffix('"')).unwrap_or(raw).parse().ok()
}

/// The text of a JSON string.
pub fn unquoted(raw: &str) -> Option<Cow<'_, str>> {
    let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') { serde_json::from_str(raw).ok().map(Cow::Owned) } else { Some(Cow::Borrowed(inner)) }
}

fn is_id(raw: &str) -> bool {
    match raw.as_bytes() {
        [b'"', ..] => true,
        [b'-', rest @ ..] | rest => !rest.is_empty() && rest.iter().all(u8::is_ascii_digit),
    }
}

fn not_an_object(text: &str) -> EnvelopeError {
    match serde_json::from_str::<IgnoredAny>(text) {
        Ok(_) => EnvelopeError::Shape("not an object".to_owned()),
        Err(error) => EnvelopeError::Syntax(error),
    }
}

/// serde_json appends " at line 1 column 80", which says nothing about a message on one line.
fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or_default().to_owned()
}

// === impl ByteSpan ===

impl ByteSpan {
    fn of(whole: &str, part: &str) -> Self {
        let start = part.as_ptr().addr() - whole.as_ptr().addr();
        let narrow = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        Self { start: narrow(start), end: narrow(start + part.len()) }
    }

    /// The same part of a text that begins so much further on.
    fn later(self, by: u32) -> Self {
        Self { start: self.start.saturating_add(by), end: self.end.saturating_add(by) }
    }

    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

// === The one pass over the bytes ===

#[derive(Default)]
struct Top<'a> {
    version: Option<RawText<'a>>,
    id: Option<RawText<'a>>,
    method: Option<RawText<'a>>,
    params: Option<RawParams<'a>>,
    result: Option<RawText<'a>>,
    error: Option<RawText<'a>>,
    odd: bool,
}

#[derive(Default)]
struct RawParams<'a> {
    meta: Option<RawText<'a>>,
    token: Option<RawText<'a>>,
    request_id: Option<RawText<'a>>,
    name: Option<RawText<'a>>,
    arguments: Option<RawText<'a>>,
    uri: Option<RawText<'a>>,
    level: Option<RawText<'a>>,
    mode: Option<RawText<'a>>,
    request_state: Option<RawText<'a>>,
    input_responses: Option<RawText<'a>>,
    odd: bool,
}

#[derive(Default)]
struct RawMeta<'a> {
    token: Option<RawText<'a>>,
    version: Option<RawText<'a>>,
}

/// Takes a member's raw value, once. A second one of the same name is refused: what we read must be what is
/// forwarded, and two readers may differ in which of two they take (invariant 6).
fn once<'de, A, T>(slot: &mut Option<T>, name: &'static str, map: &mut A) -> Result<(), A::Error>
where
    A: MapAccess<'de>,
    T: Deserialize<'de>,
{
    if slot.is_some() {
        return Err(de::Error::duplicate_field(name));
    }
    *slot = Some(map.next_value()?);
    Ok(())
}

/// A value as it was written.
#[derive(Clone, Copy)]
struct RawText<'a>(&'a str);

impl<'de> Deserialize<'de> for RawText<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&RawValue>::deserialize(deserializer).map(|raw| Self(raw.get()))
    }
}

/// Declares a visitor that accepts an object, member by member.
macro_rules! members {
    ($visitor:ident -> $value:ident, $what:literal, |$map:ident, $found:ident, $key:ident| $body:block) => {
        struct $visitor;

        impl<'de> Visitor<'de> for $visitor {
            type Value = $value<'de>;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str($what)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut $map: A) -> Result<Self::Value, A::Error> {
                let mut $found = $value::default();
                while let Some(MemberKey($key)) = $map.next_key()? $body
                Ok($found)
            }

            fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
                Ok($value::default())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok($value::default())
            }
        }

        impl<'de> Deserialize<'de> for $value<'de> {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any($visitor)
            }
        }
    };
}

members!(TopVisitor -> Top, "a JSON-RPC message", |map, found, key| {
    match key {
        EnvelopeMember::Jsonrpc => once(&mut found.version, "jsonrpc", &mut map)?,
        EnvelopeMember::Id => once(&mut found.id, "id", &mut map)?,
        EnvelopeMember::Method => once(&mut found.method, "method", &mut map)?,
        EnvelopeMember::Params => once(&mut found.params, "params", &mut map)?,
        EnvelopeMember::Result => once(&mut found.result, "result", &mut map)?,
        EnvelopeMember::Error => once(&mut found.error, "error", &mut map)?,
        EnvelopeMember::Alike => {
            found.odd = true;
            map.next_value::<IgnoredAny>()?;
        }
        _ => drop(map.next_value::<IgnoredAny>()?),
    }
});

members!(ParamsVisitor -> RawParams, "`params` that are an object or an array", |map, found, key| {
    match key {
        EnvelopeMember::Meta => once(&mut found.meta, "_meta", &mut map)?,
        EnvelopeMember::ProgressToken => once(&mut found.token, "progressToken", &mut map)?,
        EnvelopeMember::RequestId => once(&mut found.request_id, "requestId", &mut map)?,
        EnvelopeMember::Name => once(&mut found.name, "name", &mut map)?,
        EnvelopeMember::Uri => once(&mut found.uri, "uri", &mut map)?,
        EnvelopeMember::Level => once(&mut found.level, "level", &mut map)?,
        EnvelopeMember::Mode => once(&mut found.mode, "mode", &mut map)?,
        EnvelopeMember::RequestState => once(&mut found.request_state, "requestState", &mut map)?,
        EnvelopeMember::InputResponses => once(&mut found.input_responses, "inputResponses", &mut map)?,
        // What is carried along is not ours to refuse.
        EnvelopeMember::Arguments => found.odd |= found.arguments.replace(map.next_value()?).is_some(),
        EnvelopeMember::Alike => {
            found.odd = true;
            map.next_value::<IgnoredAny>()?;
        }
        _ => drop(map.next_value::<IgnoredAny>()?),
    }
});

members!(MetaVisitor -> RawMeta, "`_meta` that is an object", |map, found, key| {
    match key {
        EnvelopeMember::ProgressToken => once(&mut found.token, "progressToken", &mut map)?,
        EnvelopeMember::ProtocolVersion => once(&mut found.version, "protocolVersion", &mut map)?,
        _ => drop(map.next_value::<IgnoredAny>()?),
    }
});

/// The members that say what is called, and with what.
const CALLING: [&str; 4] = ["method", "params", "name", "arguments"];

/// Whether two names are the same to a reader that overlooks capitals, as some do.
pub(crate) fn alike(a: &str, b: &str) -> bool {
    let folded =
        |text: &str| text.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect::<String>();
    // No letter is taken for one that is more than three times as long.
    let near = a.len() <= 3 * b.len() && b.len() <= 3 * a.len();
    a.eq_ignore_ascii_case(b) || (near && !(a.is_ascii() && b.is_ascii()) && folded(a) == folded(b))
}

/// A member's name, unescaped by the parser: `"m\u0065thod"` is `method`.
struct MemberKey(EnvelopeMember);

enum EnvelopeMember {
    Jsonrpc,
    Id,
    Method,
    Params,
    Result,
    Error,
    Meta,
    ProgressToken,
    ProtocolVersion,
    RequestId,
    Name,
    Uri,
    Level,
    Mode,
    RequestState,
    InputResponses,
    Arguments,
    /// Nearly the name of one that says what is called.
    Alike,
    Foreign,
}

impl<'de> Deserialize<'de> for MemberKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl Visitor<'_> for KeyVisitor {
            type Value = MemberKey;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a member name")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<MemberKey, E> {
                Ok(MemberKey(match name {
                    "jsonrpc" => EnvelopeMember::Jsonrpc,
                    "id" => EnvelopeMember::Id,
                    "method" => EnvelopeMember::Method,
                    "params" => EnvelopeMember::Params,
                    "result" => EnvelopeMember::Result,
                    "error" => EnvelopeMember::Error,
                    "_meta" => EnvelopeMember::Meta,
                    "progressToken" => EnvelopeMember::ProgressToken,
                    "io.modelcontextprotocol/protocolVersion" => EnvelopeMember::ProtocolVersion,
                    "requestId" => EnvelopeMember::RequestId,
                    "name" => EnvelopeMember::Name,
                    "uri" => EnvelopeMember::Uri,
                    "level" => EnvelopeMember::Level,
                    "mode" => EnvelopeMember::Mode,
                    "requestState" => EnvelopeMember::RequestState,
                    "inputResponses" => EnvelopeMember::InputResponses,
                    "arguments" => EnvelopeMember::Arguments,
                    name if CALLING.iter().any(|known| alike(known, name)) => EnvelopeMember::Alike,
                    _ => EnvelopeMember::Foreign,
                }))
            }
        }
        deserializer.deserialize_identifier(KeyVisitor)
    }
}

#[cfg(test)]
mod tests;
