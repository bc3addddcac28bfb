//! Framing: lines of a stdio server in, server-sent events out. Every size is bounded.

use std::borrow::Cow;

use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::{
    Method,
    envelope::{Message, MessageKind},
    splice::push_flat,
};

/// What is kept of a line that is too long: enough to see which call it would have answered.
const KEPT_HEAD_BYTES: usize = 1024;
const KEPT_TAIL_BYTES: usize = 64;
/// Room made for one read. Grows with the line that is being read, so that a long one needs few reads.
const READ_BYTES: usize = 32 << 10;

/// Splits what a stdio server writes into lines.
#[derive(Debug)]
pub struct LineSplitter {
    buffer: BytesMut,
    /// How far the buffer is known to hold no line end.
    scanned: usize,
    limit: usize,
    /// The first bytes of a line over the limit, while the rest of it is thrown away.
    skipping: Option<Bytes>,
}

/// One line, or what is left of one that was over the limit.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame {
    Line(Bytes),
    TooLong { head: Bytes, tail: Bytes },
}

/// Which event a stream's event is: the stream's number in its session, and the event's number in the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EventId {
    pub stream: u64,
    pub event: u64,
}

// === impl LineSplitter ===

impl LineSplitter {
    pub fn new(limit: usize) -> Self {
        Self { buffer: BytesMut::new(), scanned: 0, limit, skipping: None }
    }

    /// From now on lines may be that long. One that is being skipped stays skipped.
    pub fn limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// The buffer to append what was read to, with room in it. Take the frames out before the next read: that is what
    /// keeps it bounded.
    pub fn space(&mut self) -> &mut BytesMut {
        self.buffer.reserve(READ_BYTES.max(self.buffer.len().min(self.limit)));
        &mut self.buffer
    }

    /// The next whole line, without its end. Blank lines are skipped.
    pub fn next_frame(&mut self) -> Option<Frame> {
        loop {
            // Only 0x0A ends a line: U+2028 and its like are data.
            let Some(found) = memchr::memchr(b'\n', &self.buffer[self.scanned..]) else {
                self.scanned = self.buffer.len();
                self.bound();
                return None;
            };
            let end = self.scanned + found;
            let mut line = self.buffer.split_to(end);
            self.buffer.advance(1);
            self.scanned = 0;
            if line.last() == Some(&b'\r') {
                line.truncate(line.len() - 1);
            }
            let skipped = self.skipping.take();
            if skipped.is_some() || line.len() > self.limit {
                let tail = Bytes::copy_from_slice(&line[line.len().saturating_sub(KEPT_TAIL_BYTES)..]);
                return Some(Frame::TooLong { head: skipped.unwrap_or_else(|| self.kept_head(&line)), tail });
            }
            if !line.trim_ascii().is_empty() {
                return Some(Frame::Line(line.freeze()));
            }
        }
    }

    /// Throws away what has come of a line that can no longer be within the limit.
    fn bound(&mut self) {
        // One more than the limit: it may be the CR of a line that is just within.
        if self.buffer.len() <= self.limit + 1 && self.skipping.is_none() {
            return;
        }
        let kept = self.buffer.len().min(KEPT_TAIL_BYTES + 1);
        if self.skipping.is_none() {
            self.skipping = Some(self.kept_head(&self.buffer));
            // Not `advance`: that would keep the oversized allocation.
            self.buffer = BytesMut::from(&self.buffer[self.buffer.len() - kept..]);
        } else {
            self.buffer.advance(self.buffer.len() - kept);
        }
        self.scanned = self.buffer.len();
    }

    /// The first bytes of a line that is too long: never more than are there when that is noticed.
    fn kept_head(&self, line: &[u8]) -> Bytes {
        Bytes::copy_from_slice(&line[..KEPT_HEAD_BYTES.min(self.limit)])
    }
}

// === Server-sent events ===

/// A comment that no client takes for an event, to keep a silent stream open (N-04).
pub const KEEP_ALIVE: &[u8] = b": keep-alive\n\n";

/// What every event begins with. The name is always written: one client drops unnamed events, another keeps the last
/// name it saw (mcp-eras 1.5).
const NAME: &[u8] = b"event: message\n";

/// One message as a server-sent event.
pub fn event(id: Option<EventId>, parts: &[&[u8]]) -> Bytes {
    let size = parts.iter().map(|part| part.len()).sum::<usize>();
    let mut out = BytesMut::with_capacity(size + 64);
    out.put_slice(NAME);
    if let Some(id) = id {
        put_id(&mut out, id);
    }
    out.put_slice(b"data: ");
    for part in parts {
        // A bare CR is whitespace to JSON and a line end to SSE.
        push_flat(&mut out, part);
    }
    out.put_slice(b"\n\n");
    out.freeze()
}

/// The same event under another id.
pub fn renumbered(event: &Bytes, id: EventId) -> Bytes {
    const DATA: &[u8] = b"\ndata: ";
    let data = memchr::memmem::find(event, DATA).map_or(event.len(), |end| end + 1);
    let mut out = BytesMut::with_capacity(event.len() + 24);
    out.put_slice(NAME);
    put_id(&mut out, id);
    out.put_slice(&event[data..]);
    out.freeze()
}

/// Whether an event carries a log note.
pub fn is_log(event: &[u8]) -> bool {
    // What it carries was written by a server: a look at the text could be taken in.
    let data = memchr::memmem::find(event, b"data: ").map(|at| &event[at + 6..]).unwrap_or_default();
    let message = Message::parse(Bytes::copy_from_slice(data.trim_ascii_end()));
    message.is_ok_and(|message| message.kind() == MessageKind::Notification(Method::Log))
}

/// An event named after its message's method, for a client that wants to be told it by that (N-03).
pub fn by_method(event: &Bytes) -> Bytes {
    let Some(rest) = event.strip_prefix(NAME) else { return event.clone() };
    let data = memchr::memmem::find(rest, b"data: ").map(|at| &rest[at + 6..]).unwrap_or_default();
    let message = Message::parse(Bytes::copy_from_slice(data.trim_ascii_end()));
    let method = message.ok().map(|message| message.method().map(Cow::into_owned));
    let name = match method {
        // A name must not end its line.
        Some(Some(name)) if !name.contains(['\n', '\r', '\0']) => name,
        Some(_) => "result".to_owned(),
        // It carries no message.
        None => return event.clone(),
    };
    let mut out = BytesMut::with_capacity(event.len() + name.len());
    out.put_slice(b"event: ");
    out.put_slice(name.as_bytes());
    out.put_slice(b"\n");
    out.put_slice(rest);
    out.freeze()
}

/// The first event of a 2024-11-05 stream: where its client's messages go.
pub fn endpoint_event(path: &str) -> Bytes {
    Bytes::from(format!("event: endpoint\ndata: {path}\n\n"))
}

/// The event that only carries an id, so that a stream cut before its first message can be resumed, and how soon.
pub fn priming_event(id: EventId) -> Bytes {
    let mut out = BytesMut::with_capacity(64);
    out.put_slice(NAME);
    put_id(&mut out, id);
    out.put_slice(b"retry: 1000\ndata:\n\n");
    out.freeze()
}

fn put_id(out: &mut BytesMut, id: EventId) {
    use std::fmt::Write;
    // Writing to memory cannot fail.
    let _ = writeln!(out, "id: {id}");
}

// === impl EventId ===

impl std::fmt::Display for EventId {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{}-{}", self.stream, self.event)
    }
}

impl std::str::FromStr for EventId {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (stream, event) = text.split_once('-').ok_or(())?;
        let number = |digits: &str| match digits.bytes().all(|b| b.is_ascii_digit()) {
            true => digits.parse().map_err(drop),
            false => Err(()),
        };
        Ok(Self { stream: number(stream)?, event: number(event)? })
    }
}

#[cfg(test)]
pub(crate) mod tests;
