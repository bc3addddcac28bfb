//! Edits of a message in place: new values for a few spans, every other byte as it came (invariant 4).

use bytes::{BufMut, Bytes, BytesMut};

use super::envelope::{ByteSpan, Message};

/// Below this a copy is cheaper than a second piece.
const COPY_BYTES: usize = 16 << 10;

/// A message in up to three pieces, so that a large answer gets another id without being copied.
#[derive(Clone, Debug, Default)]
pub struct ByteChain {
    pieces: [Bytes; 3],
}

/// Appends the message as one line, its edited spans replaced. `edits` may come in any order but must not overlap.
pub fn push_line(out: &mut BytesMut, message: &Message, edits: &mut [(ByteSpan, &str)]) {
    edits.sort_unstable_by_key(|(span, _)| span.range().start);
    let bytes = message.bytes();
    out.reserve(bytes.len() + 64);
    let mut done = 0;
    for (span, text) in edits.iter() {
        let range = span.range();
        push_flat(out, &bytes[done..range.start]);
        out.put_slice(text.as_bytes());
        done = range.end;
    }
    push_flat(out, &bytes[done..]);
    out.put_u8(b'\n');
}

/// Appends JSON without its line breaks. In valid JSON a raw CR or LF is whitespace between tokens, never data; a
/// pretty-printed body must not become two lines on a pipe, nor two lines of an event.
pub fn push_flat(out: &mut BytesMut, json: &[u8]) {
    if memchr::memchr2(b'\n', b'\r', json).is_none() {
        out.put_slice(json);
    } else {
        out.extend(json.iter().map(|&b| if matches!(b, b'\n' | b'\r') { b' ' } else { b }));
    }
}

/// The three parts of a message around one span, the middle replaced.
pub fn around<'a>(message: &'a Message, span: ByteSpan, text: &'a str) -> [&'a [u8]; 3] {
    let bytes = message.bytes();
    let range = span.range();
    [&bytes[..range.start], text.as_bytes(), &bytes[range.end..]]
}

// === impl ByteChain ===

impl ByteChain {
    /// The message with one span replaced.
    pub fn spliced(message: &Message, span: ByteSpan, text: &str) -> Self {
        let bytes = message.bytes();
        if bytes.len() < COPY_BYTES {
            let parts = around(message, span, text);
            let mut out = Vec::with_capacity(bytes.len() + text.len());
            parts.iter().for_each(|part| out.extend_from_slice(part));
            return Self::from(Bytes::from(out));
        }
        let range = span.range();
        let middle = Bytes::copy_from_slice(text.as_bytes());
        Self { pieces: [bytes.slice(..range.start), middle, bytes.slice(range.end..)] }
    }

    pub fn len(&self) -> usize {
        self.pieces.iter().map(Bytes::len).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes the next piece that is not empty.
    pub fn pop(&mut self) -> Option<Bytes> {
        self.pieces.iter_mut().find(|piece| !piece.is_empty()).map(std::mem::take)
    }

    pub fn to_vec(&self) -> Vec<u8> {
        self.pieces.concat()
    }
}

impl From<Bytes> for ByteChain {
    fn from(whole: Bytes) -> Self {
        Self { pieces: [whole, Bytes::new(), Bytes::new()] }
    }
}

#[cfg(test)]
pub(crate) mod tests;
