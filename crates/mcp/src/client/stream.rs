//! An event stream as somebody sees it who wants to know everything about it: names, ids, comments. What the events
//! mean is not decided here.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use prism_core::wire::sse::{SseEvent, SseSplitter};

use crate::remote::pool::PooledBody;

/// A stream that is being read.
pub struct SseStream {
    body: PooledBody,
    events: SseSplitter,
    comments: CommentCounter,
    /// The id that was known when the last event was handed out.
    last_id: Option<Box<str>>,
}

/// What is next on a stream.
pub enum SseItem {
    Event {
        name: Option<Box<str>>,
        id: Option<Box<str>>,
        data: Bytes,
    },
    /// Lines that only say that the stream lives.
    Comments(usize),
    /// An event over the limit. It was not kept.
    TooLong,
    End,
}

/// Counts the lines of a stream that begin with a colon.
#[derive(Default)]
struct CommentCounter {
    in_line: bool,
}

impl SseStream {
    pub(super) fn new(body: PooledBody, limit: usize) -> Self {
        Self { body, events: SseSplitter::new(limit), comments: CommentCounter::default(), last_id: None }
    }

    /// Cancel safe.
    pub async fn next(&mut self) -> SseItem {
        loop {
            if let Some(event) = self.events.next_event() {
                return match event {
                    SseEvent::TooLong => SseItem::TooLong,
                    SseEvent::Data { name, data } => SseItem::Event { name, id: self.new_id(), data },
                };
            }
            // An id that came without data is a place to resume from, and not the next event's.
            self.new_id();
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    let Some(data) = frame.data_ref() else { continue };
                    self.events.push(data);
                    let comments = self.comments.count(data);
                    if comments > 0 {
                        return SseItem::Comments(comments);
                    }
                }
                Some(Err(_)) | None => return SseItem::End,
            }
        }
    }

    /// The id of the event that was just read, if it had one of its own.
    fn new_id(&mut self) -> Option<Box<str>> {
        let id = self.events.last_id().filter(|id| self.last_id.as_deref() != Some(id))?;
        self.last_id = Some(id.into());
        self.last_id.clone()
    }

    /// Where to resume.
    pub fn last_id(&self) -> Option<&str> {
        self.events.last_id().filter(|id| !id.is_empty())
    }

    pub fn retry(&self) -> Option<Duration> {
        self.events.retry_ms().map(Duration::from_millis)
    }
}

impl CommentCounter {
    fn count(&mut self, bytes: &[u8]) -> usize {
        let mut found = 0;
        for byte in bytes {
            found += usize::from(!self.in_line && *byte == b':');
            self.in_line = !matches!(byte, b'\n' | b'\r');
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_counted_wherever_a_chunk_ends() {
        let text = b": a\ndata: :b\n\n:\r\n: c\r:d\n";
        for size in 1..text.len() {
            let mut comments = CommentCounter::default();
            let found: usize = text.chunks(size).map(|chunk| comments.count(chunk)).sum();
            assert_eq!(found, 4, "chunks of {size}");
        }
    }
}
