//! `wait`: the agent has called `prism_signals_wait`, and the call ends. It confirms itself: the result is in the agent's
//! hands.

use std::sync::Arc;

use prism_core::mesh::WakePath;

use super::{
    AgentFacts, DaemonChannels, Doing, PollKind, ProbeOutcome, RingOutcome, WakeAdapter, WakeBell, WakeContact, inside,
};

const ABSENT: &str = "the agent is not in prism_signals_wait";

pub(super) struct WaitAdapter {
    inside: Arc<dyn DaemonChannels>,
}

// === impl WaitAdapter ===

impl WaitAdapter {
    pub(super) fn new(inside: Arc<dyn DaemonChannels>) -> Self {
        Self { inside }
    }
}

impl WakeAdapter for WaitAdapter {
    fn path(&self) -> WakePath {
        WakePath::Wait
    }

    fn attach(&self, agent: &Arc<AgentFacts>) -> Option<WakeContact> {
        Some(inside::contact(agent))
    }

    fn probe<'a>(&'a self, contact: &'a WakeContact) -> Doing<'a, ProbeOutcome> {
        Box::pin(async { inside::probe(self.inside.as_ref(), self.path(), contact, ABSENT) })
    }

    fn ring<'a>(&'a self, contact: &'a WakeContact, bell: &'a WakeBell) -> Doing<'a, RingOutcome> {
        Box::pin(async { inside::rung(contact, self.inside.finish(PollKind::Tool, &contact.session, bell), ABSENT) })
    }
}
