//! The bell of a link's clients, and whom it tells where one can be rung.

use std::time::Instant;

use prism_core::{mcp::link::StreamKey, mesh::PENDING};
use tokio::sync::oneshot;

use super::LinkDriver;
use crate::drive::reach::{LinkSender, OpenedStream, RingTarget, StreamId, StreamObserver};

impl LinkDriver {
    pub(super) fn ring(&mut self, to: &RingTarget, rung: oneshot::Sender<bool>, now: Instant) {
        // What was to be sent before it is sent before it.
        self.act(now);
        let told = match to {
            RingTarget::Session(key) => self.machine.ring(*key, PENDING),
            RingTarget::Uri(uri) => self.machine.ring_listens(uri),
        };
        self.act(now);
        // A stream that did not take it is no more.
        let taken = told.iter().any(|stream| self.streams.contains_key(stream));
        // Whoever rang may have left.
        let _ = rung.send(taken);
    }

    /// Tells of a stream that a bell can ring on.
    pub(super) fn tell_of(&mut self, stream: StreamKey, uris: Vec<String>) {
        let Some(reach) = self.shared.reach() else { return };
        let Some(open) = self.streams.get_mut(&stream) else { return };
        // The rest of a call's answer is none, whatever it comes on.
        if open.key.is_some_and(|key| !self.machine.rings_on(key, stream)) {
            return;
        }
        open.told = true;
        let (link, session) = (LinkSender::new(self.commands.clone()), open.key);
        reach.stream_opened(OpenedStream { link, stream: StreamId { link: self.number, stream }, session, uris });
    }

    pub(super) fn tell_closed(&self, stream: StreamKey, told: bool) {
        if told {
            self.tell(|reach| reach.stream_closed(StreamId { link: self.number, stream }));
        }
    }

    pub(super) fn tell(&self, what: impl FnOnce(&dyn StreamObserver)) {
        if let Some(reach) = self.shared.reach() {
            what(&**reach);
        }
    }
}
