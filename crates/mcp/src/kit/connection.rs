//! One client of a built-in server within this process: one more kind of far end for a link.

use std::sync::Arc;

use bytes::Bytes;
use prism_core::wire::Message;

use super::{
    room::{Eras, Peer},
    server::BuiltinServer,
};

/// A connection to a built-in server. It speaks the modern era only: the link translates for older clients.
///
/// Calls run as tasks of the runtime that `send` is called in. Dropped, it cancels them all.
pub struct BuiltinConnection {
    room: Arc<Peer>,
}

/// One message from the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerMessage {
    /// Our number of the request that it belongs to: the call that reports, the listen that hears.
    pub about: Option<u64>,
    /// Whether it is the answer to that request, after which nothing more is said about it.
    pub is_answer: bool,
    pub bytes: Bytes,
}

impl BuiltinConnection {
    pub fn open(server: Arc<BuiltinServer>) -> Self {
        Self { room: Peer::open(server, Eras::Modern) }
    }

    /// Hands over a message. Never waits; a request beyond what is served at a time is answered with an error.
    pub fn send(&mut self, message: Message) {
        self.room.handle(&message);
    }

    /// Returns the next message. Cancel safe.
    pub async fn next(&mut self) -> ServerMessage {
        self.room.out.next().await
    }
}

impl Drop for BuiltinConnection {
    fn drop(&mut self) {
        self.room.close();
    }
}

#[cfg(test)]
impl BuiltinConnection {
    pub(super) fn room(&self) -> &Arc<Peer> {
        &self.room
    }

    /// Whether every call has its answer.
    pub(super) fn is_idle(&self) -> bool {
        self.room.state().calls.is_empty()
    }
}
