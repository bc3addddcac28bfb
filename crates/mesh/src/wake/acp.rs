//! `acp`: an agent behind `prism acp`, which waits at the daemon and prompts the agent itself; see `prism::acp`.

use std::sync::Arc;

use prism_core::mesh::WakePath;

use super::{
    AgentFacts, DaemonChannels, Doing, PollKind, ProbeOutcome, RingOutcome, WakeAdapter, WakeBell, WakeContact, inside,
};

const ABSENT: &str = "no prism acp stands in front of this agent: let the editor start it as prism acp -- COMMAND";

pub(super) struct AcpAdapter {
    inside: Arc<dyn DaemonChannels>,
}

// === impl AcpAdapter ===

impl AcpAdapter {
    pub(super) fn new(inside: Arc<dyn DaemonChannels>) -> Self {
        Self { inside }
    }
}

impl WakeAdapter for AcpAdapter {
    fn path(&self) -> WakePath {
        WakePath::Acp
    }

    fn attach(&self, agent: &Arc<AgentFacts>) -> Option<WakeContact> {
        Some(inside::contact(agent))
    }

    fn probe<'a>(&'a self, contact: &'a WakeContact) -> Doing<'a, ProbeOutcome> {
        Box::pin(async { inside::probe(self.inside.as_ref(), self.path(), contact, ABSENT) })
    }

    fn ring<'a>(&'a self, contact: &'a WakeContact, bell: &'a WakeBell) -> Doing<'a, RingOutcome> {
        Box::pin(async { inside::rung(contact, self.inside.finish(PollKind::Acp, &contact.session, bell), ABSENT) })
    }
}
