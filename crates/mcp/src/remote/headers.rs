//! The headers of what we send, built from the message itself (mcp-eras 1.2, 1.8). What of a client's head goes along is
//! decided in `bridge::drive::carried`.

use hyper::{
    HeaderMap,
    header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue},
};
use prism_core::{
    mcp::Method,
    wire::{Message, MessageKind, envelope::unquoted},
};
use tracing::debug;

use super::RemoteTarget;

pub const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

const BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");

/// Headers that are the protocol's, or the connection's, and that no configuration may set. `accept-encoding` is among
/// them because nothing here could decode what came of it.
const RESERVED: [&str; 10] = [
    "accept",
    "accept-encoding",
    "connection",
    "content-length",
    "content-type",
    "keep-alive",
    "last-event-id",
    "te",
    "transfer-encoding",
    "upgrade",
];

/// What the handshake of the legacy era settled, and every later request carries.
#[derive(Clone, Debug, Default)]
pub struct ProtocolHeaders {
    pub session: Option<HeaderValue>,
    pub version: Option<HeaderValue>,
}

pub(super) fn is_reserved(name: &HeaderName) -> bool {
    name.as_str().starts_with("mcp-") || RESERVED.contains(&name.as_str())
}

/// The headers of a POST that carries this message.
pub fn of_post(
    target: &RemoteTarget,
    message: &Message,
    params: &[(String, String)],
    lane: &ProtocolHeaders,
) -> HeaderMap {
    let mut headers = target.headers();
    headers.insert(ACCEPT, BOTH);
    headers.insert(CONTENT_TYPE, JSON);
    match message.string(message.params().meta_version) {
        Some(version) => of_modern(&mut headers, &version, message, params),
        None => of_lane(&mut headers, lane),
    }
    headers
}

/// The same with headers of a client's. Whatever is ours to say they do not change.
pub(super) fn along(mut own: HeaderMap, along: &[(HeaderName, HeaderValue)]) -> HeaderMap {
    if !along.is_empty() {
        let mut theirs: HeaderMap = along.iter().cloned().collect();
        for name in own.keys() {
            theirs.remove(name);
        }
        own.extend(theirs);
    }
    own
}

/// The headers of a GET that opens a stream, and of a DELETE.
pub fn of_get(target: &RemoteTarget, lane: &ProtocolHeaders, after: Option<&HeaderValue>) -> HeaderMap {
    let mut headers = target.headers();
    headers.insert(ACCEPT, EVENTS);
    of_lane(&mut headers, lane);
    if let Some(id) = after {
        headers.insert(LAST_EVENT_ID, id.clone());
    }
    headers
}

fn of_lane(headers: &mut HeaderMap, lane: &ProtocolHeaders) {
    if let Some(session) = &lane.session {
        headers.insert(SESSION_ID, session.clone());
    }
    if let Some(version) = &lane.version {
        headers.insert(PROTOCOL_VERSION, version.clone());
    }
}

fn of_modern(headers: &mut HeaderMap, version: &str, message: &Message, params: &[(String, String)]) {
    insert(headers, PROTOCOL_VERSION, version);
    if let Some(method) = message.method_text().and_then(unquoted) {
        insert(headers, METHOD, &method);
    }
    let name = match message.kind() {
        MessageKind::Request(Method::ToolsCall | Method::PromptsGet) => message.params().name,
        MessageKind::Request(Method::ResourcesRead) => message.params().uri,
        _ => None,
    };
    if let Some(name) = message.string(name) {
        insert(headers, NAME, &name);
    }
    for (name, text) in params {
        match HeaderName::from_bytes(format!("mcp-param-{name}").as_bytes()) {
            Ok(name) => insert(headers, name, text),
            Err(_) => debug!("A parameter's header name is no token; the header is left out"),
        }
    }
}

fn insert(headers: &mut HeaderMap, name: HeaderName, text: &str) {
    // What is encoded is printable ASCII, which any header can hold.
    if let Ok(text) = HeaderValue::from_str(&encoded(text)) {
        headers.insert(name, text);
    }
}

/// A text as a header's value: as it is, or between the base64 marks where it could not stand, or not be told from
/// what is encoded.
fn encoded(text: &str) -> std::borrow::Cow<'_, str> {
    let printable = text.bytes().all(|byte| matches!(byte, 0x20..=0x7E));
    let sentinel = text.starts_with("=?base64?") && text.ends_with("?=");
    if printable && !sentinel && text.trim_matches(' ') == text {
        return text.into();
    }
    format!("=?base64?{}?=", base64(text.as_bytes())).into()
}

/// Standard base64 with padding: the one direction that we need.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        for place in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * place)) as usize & 63];
            out.push(if place <= group.len() { digit.into() } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_the_standard_one() {
        for (text, expected) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")] {
            assert_eq!(base64(text.as_bytes()), expected);
        }
        assert_eq!(base64(&[0xFB, 0xFF, 0xFE]), "+//+");
    }

    // checks 116
    #[test]
    fn only_what_a_header_cannot_hold_is_encoded() {
        for plain in ["", "read file", "a?=", "=?base64?x", "=?Base64?eA==?=", "~!"] {
            assert_eq!(encoded(plain), plain);
        }
        for (text, expected) in [
            ("größe", "=?base64?Z3LDtsOfZQ==?="),
            (" a", "=?base64?IGE=?="),
            ("a ", "=?base64?YSA=?="),
            ("a\nb", "=?base64?YQpi?="),
            ("a\tb", "=?base64?YQli?="),
            ("=?base64?eA==?=", "=?base64?PT9iYXNlNjQ/ZUE9PT89?="),
        ] {
            assert_eq!(encoded(text), expected, "{text:?}");
        }
    }
}
