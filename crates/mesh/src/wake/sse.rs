//! `sse`: `notifications/resources/updated` for the doorbell on the agent's own stream (M-03). Clients refresh what they show;
//! none was seen to start a turn for it.

use std::sync::Arc;

use prism_core::mesh::WakePath;

use super::{AgentFacts, DaemonChannels, Doing, ProbeOutcome, RingOutcome, WakeAdapter, WakeBell, WakeContact, inside};

const ABSENT: &str = "the agent has no open stream";

pub(super) struct SseAdapter {
    inside: Arc<dyn DaemonChannels>,
}

// === impl SseAdapter ===

impl SseAdapter {
    pub(super) fn new(inside: Arc<dyn DaemonChannels>) -> Self {
        Self { inside }
    }
}

impl WakeAdapter for SseAdapter {
    fn path(&self) -> WakePath {
        WakePath::Sse
    }

    fn attach(&self, agent: &Arc<AgentFacts>) -> Option<WakeContact> {
        Some(inside::contact(agent))
    }

    fn probe<'a>(&'a self, contact: &'a WakeContact) -> Doing<'a, ProbeOutcome> {
        Box::pin(async { inside::probe(self.inside.as_ref(), self.path(), contact, ABSENT) })
    }

    fn ring<'a>(&'a self, contact: &'a WakeContact, _bell: &'a WakeBell) -> Doing<'a, RingOutcome> {
        Box::pin(inside::asked(contact, self.inside.ring_stream(&contact.session), ABSENT))
    }
}
