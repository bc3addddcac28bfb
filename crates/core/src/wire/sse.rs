//! Server-sent events as a client reads them: bytes in, events out, every size bounded.

use bytes::{Buf, Bytes, BytesMut};

/// The longest `event:` name, id or other line that is not data. Longer ones are ignored, as unknown fields are.
const MAX_FIELD_BYTES: usize = 1024;

/// Splits an event stream into events.
#[derive(Debug)]
pub struct SseSplitter {
    buffer: BytesMut,
    scanned: usize,
    limit: usize,
    /// The line that is being read is over the limit and is thrown away until it ends.
    skipping: bool,
    /// A CR was the last byte: an LF that follows belongs to it.
    after_cr: bool,
    started: bool,
    name: Option<Box<str>>,
    data: BytesMut,
    lines: usize,
    too_long: bool,
    /// The last id that came, also without data: where a resume goes on from.
    last_id: Option<Box<str>>,
    retry_ms: Option<u64>,
}

/// One event with data.
#[derive(Debug, PartialEq, Eq)]
pub enum SseEvent {
    /// An event of this name; `None` is the default, `message`.
    Data { name: Option<Box<str>>, data: Bytes },
    /// An event whose data was over the limit. It was not kept.
    TooLong,
}

impl SseSplitter {
    pub fn new(limit: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            scanned: 0,
            limit,
            skipping: false,
            after_cr: false,
            started: false,
            name: None,
            data: BytesMut::new(),
            lines: 0,
            too_long: false,
            last_id: None,
            retry_ms: None,
        }
    }

    /// Adds what was read. Take the events out before the next read: that keeps the buffer bounded.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    pub fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// How long the server asks to wait before a reconnect.
    pub fn retry_ms(&self) -> Option<u64> {
        self.retry_ms
    }

    /// The next event that has data. Events without data only move [`Self::last_id`].
    pub fn next_event(&mut self) -> Option<SseEvent> {
        loop {
            if let Some(first) = self.buffer.first().copied()
                && std::mem::take(&mut self.after_cr)
                && first == b'\n'
            {
                self.buffer.advance(1);
            }
            if !self.started && !self.buffer.is_empty() {
                let mark = b"\xEF\xBB\xBF";
                if self.buffer.len() < mark.len() && mark.starts_with(&self.buffer[..]) {
                    return None;
                }
                if self.buffer.starts_with(mark) {
                    self.buffer.advance(mark.len());
                }
                self.started = true;
            }
            let Some(found) = memchr::memchr2(b'\n', b'\r', &self.buffer[self.scanned..]) else {
                self.scanned = self.buffer.len();
                self.bound();
                return None;
            };
            let line = self.buffer.split_to(self.scanned + found).freeze();
            self.scanned = 0;
            self.after_cr = self.buffer.first() == Some(&b'\r');
            self.buffer.advance(1);
            if std::mem::take(&mut self.skipping) {
                // The end of a line whose beginning is gone.
                continue;
            }
            if line.is_empty() {
                if let Some(event) = self.dispatch() {
                    return Some(event);
                }
            } else {
                self.field(&line);
            }
        }
    }

    /// Throws away a line that cannot be within the limit any more, and with it its event.
    fn bound(&mut self) {
        if self.skipping {
            self.buffer.clear();
            self.scanned = 0;
        } else if self.buffer.len() > self.limit + MAX_FIELD_BYTES {
            self.skipping = true;
            self.too_long = true;
            self.buffer = BytesMut::new();
            self.data = BytesMut::new();
            self.scanned = 0;
        }
    }

    fn field(&mut self, line: &[u8]) {
        let (name, value) = match memchr::memchr(b':', line) {
            Some(0) => return,
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &line[line.len()..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        if name == b"data" {
            let separator = usize::from(self.lines > 0);
            if self.data.len() + separator + value.len() > self.limit {
                self.too_long = true;
                self.data = BytesMut::new();
            }
            if !self.too_long {
                if self.lines > 0 {
                    self.data.extend_from_slice(b"\n");
                }
                self.data.extend_from_slice(value);
            }
            self.lines += 1;
            return;
        }
        let Some(text) = std::str::from_utf8(value).ok().filter(|text| text.len() <= MAX_FIELD_BYTES) else { return };
        match name {
            b"event" => self.name = Some(text).filter(|name| !name.is_empty()).map(Into::into),
            b"id" if !text.contains('\0') => self.last_id = Some(text.into()),
            b"retry" if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) => {
                self.retry_ms = text.parse().ok();
            }
            _ => {}
        }
    }

    fn dispatch(&mut self) -> Option<SseEvent> {
        let name = self.name.take();
        let data = self.data.split().freeze();
        self.lines = 0;
        if std::mem::take(&mut self.too_long) {
            return Some(SseEvent::TooLong);
        }
        // No data, no event: the standard says so, and priming events rely on it.
        (!data.is_empty()).then_some(SseEvent::Data { name, data })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(chunks: &[&[u8]], limit: usize) -> (Vec<(String, String)>, SseSplitter) {
        let mut events = SseSplitter::new(limit);
        let mut out = Vec::new();
        for chunk in chunks {
            events.push(chunk);
            while let Some(event) = events.next_event() {
                out.push(match event {
                    SseEvent::Data { name, data } => {
                        (name.as_deref().unwrap_or("message").to_owned(), String::from_utf8(data.to_vec()).unwrap())
                    }
                    SseEvent::TooLong => ("too long".to_owned(), String::new()),
                });
            }
        }
        (out, events)
    }

    fn event(name: &str, data: &str) -> (String, String) {
        (name.to_owned(), data.to_owned())
    }

    const STREAM: &[u8] = b"\xEF\xBB\xBF: hello\nevent: endpoint\r\ndata: /m?x=1\r\n\r\nid: 7\ndata:\n\ndata: a\ndata:b\n\nretry: 250\rid: 8\rdata: {}\r\rdata: lost";

    #[test]
    fn events_are_read_as_the_standard_says() {
        let (events, state) = read(&[STREAM], 1000);
        assert_eq!(events, [event("endpoint", "/m?x=1"), event("message", "a\nb"), event("message", "{}")]);
        assert_eq!(state.last_id(), Some("8"));
        assert_eq!(state.retry_ms(), Some(250));
    }

    #[test]
    fn any_chunking_gives_the_same_events() {
        let whole = read(&[STREAM], 1000).0;
        for size in 1..STREAM.len() {
            let chunks: Vec<&[u8]> = STREAM.chunks(size).collect();
            assert_eq!(read(&chunks, 1000).0, whole, "chunks of {size}");
        }
    }

    // The fuzz target `events` found both.
    #[test]
    fn a_line_end_cut_in_two_ends_one_line_and_separators_count() {
        let (events, _) = read(&[b"data: a\r", b"\n", b"\n", b"data: b\r", b"\n\n"], 100);
        assert_eq!(events, [event("message", "a"), event("message", "b")]);
        assert_eq!(read(&[b"data: a\ndata:\n\n"], 1).0, [event("too long", "")]);
    }

    #[test]
    fn an_endless_event_is_dropped_within_bounds_and_the_next_is_read() {
        let mut events = SseSplitter::new(100);
        events.push(b"data: ");
        for _ in 0..1000 {
            events.push(&[b'x'; 1000]);
            assert_eq!(events.next_event(), None);
            assert!(events.buffer.len() <= 100 + MAX_FIELD_BYTES + 1000);
        }
        events.push(b"\n\ndata: y\n\n");
        assert_eq!(events.next_event(), Some(SseEvent::TooLong));
        assert_eq!(events.next_event(), Some(SseEvent::Data { name: None, data: Bytes::from_static(b"y") }));
    }

    #[test]
    fn many_lines_of_data_are_bounded_too() {
        let line = format!("data: {}\n", "x".repeat(60));
        let (events, _) = read(&[line.repeat(3).as_bytes(), b"\ndata: y\n\n"], 100);
        assert_eq!(events, [event("too long", ""), event("message", "y")]);
    }
}
