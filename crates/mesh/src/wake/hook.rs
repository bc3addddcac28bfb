//! `hook`: a `prism wait --hook …` that the agent's own program started, and that ends in the way this program takes for a
//! reason to go on.

use std::sync::Arc;

use prism_core::mesh::WakePath;

use super::{
    AgentFacts, DaemonChannels, Doing, PollKind, ProbeOutcome, RingOutcome, WakeAdapter, WakeBell, WakeContact, inside,
};

const ABSENT: &str = "no hook of this agent is waiting: prism install CLIENT --hooks sets them up";

pub(super) struct HookAdapter {
    inside: Arc<dyn DaemonChannels>,
}

// === impl HookAdapter ===

impl HookAdapter {
    pub(super) fn new(inside: Arc<dyn DaemonChannels>) -> Self {
        Self { inside }
    }
}

impl WakeAdapter for HookAdapter {
    fn path(&self) -> WakePath {
        WakePath::Hook
    }

    fn attach(&self, agent: &Arc<AgentFacts>) -> Option<WakeContact> {
        Some(inside::contact(agent))
    }

    fn probe<'a>(&'a self, contact: &'a WakeContact) -> Doing<'a, ProbeOutcome> {
        Box::pin(async { inside::probe(self.inside.as_ref(), self.path(), contact, ABSENT) })
    }

    fn ring<'a>(&'a self, contact: &'a WakeContact, bell: &'a WakeBell) -> Doing<'a, RingOutcome> {
        Box::pin(async { inside::rung(contact, self.inside.finish(PollKind::Hook, &contact.session, bell), ABSENT) })
    }
}
