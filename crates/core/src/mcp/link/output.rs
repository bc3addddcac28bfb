//! What the machine has written to its server, and the shell has not taken yet: lines, where everything goes down one pipe, or
//! messages, where each is sent by itself.
//!
//! A message keeps what is known of it, so that nobody reads again what was just written.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

use super::{UpstreamKind, fault::error_body};
use crate::wire::{
    ByteSpan, Message,
    splice::{push_flat, push_line},
};

#[derive(Debug)]
pub enum LinkOutput {
    Lines(BytesMut),
    Messages(VecDeque<Message>),
}

impl LinkOutput {
    pub(super) fn new(wire: UpstreamKind) -> Self {
        match wire {
            UpstreamKind::Pipe => Self::Lines(BytesMut::new()),
            UpstreamKind::Http => Self::Messages(VecDeque::new()),
        }
    }

    /// Bytes for the child's stdin. The shell takes from the front what the pipe takes; `None` where there is no pipe.
    pub fn lines(&mut self) -> Option<&mut BytesMut> {
        match self {
            Self::Lines(lines) => Some(lines),
            Self::Messages(_) => None,
        }
    }

    /// Takes the next message, where each is sent by itself.
    pub fn next_message(&mut self) -> Option<Message> {
        match self {
            Self::Lines(_) => None,
            Self::Messages(messages) => messages.pop_front(),
        }
    }

    /// Writes a message with other values, JSON texts, in the place of some of its parts, in any order.
    pub(super) fn write(&mut self, message: &Message, edits: &mut [(ByteSpan, &str)]) {
        match self {
            Self::Lines(lines) => push_line(lines, message, edits),
            Self::Messages(messages) => messages.push_back(message.edited(edits)),
        }
    }

    /// Writes a message of our own making. A client's own words in it may have line breaks.
    pub(super) fn write_text(&mut self, text: &str) {
        match self {
            Self::Lines(lines) => {
                push_flat(lines, text.as_bytes());
                lines.extend_from_slice(b"\n");
            }
            Self::Messages(messages) => messages.extend(Message::parse(Bytes::copy_from_slice(text.as_bytes()))),
        }
    }

    /// Writes an error as the answer to a server's request.
    pub(super) fn write_error(&mut self, id: &str, code: i32, why: &str) {
        self.write_text(&error_body(Some(id), code, why, None));
    }

    pub(super) fn clear(&mut self) {
        match self {
            Self::Lines(lines) => lines.clear(),
            Self::Messages(messages) => messages.clear(),
        }
    }

    /// How much the server has not read yet.
    pub(super) fn unread_bytes(&self) -> usize {
        match self {
            Self::Lines(lines) => lines.len(),
            Self::Messages(messages) => messages.iter().map(|message| message.bytes().len()).sum(),
        }
    }
}
