//! `piggyback`: the next tool result that leaves for the agent ends with the bell. The floor under all other paths: no
//! signal is lost to an agent that still calls tools.

use std::sync::Arc;

use prism_core::mesh::WakePath;

use super::{AgentFacts, DaemonChannels, Doing, ProbeOutcome, RingOutcome, WakeAdapter, WakeBell, WakeContact, inside};

const ABSENT: &str = "the agent has no session that a tool result could leave on";

pub(super) struct PiggybackAdapter {
    inside: Arc<dyn DaemonChannels>,
}

// === impl PiggybackAdapter ===

impl PiggybackAdapter {
    pub(super) fn new(inside: Arc<dyn DaemonChannels>) -> Self {
        Self { inside }
    }
}

impl WakeAdapter for PiggybackAdapter {
    fn path(&self) -> WakePath {
        WakePath::Piggyback
    }

    fn attach(&self, agent: &Arc<AgentFacts>) -> Option<WakeContact> {
        Some(inside::contact(agent))
    }

    fn probe<'a>(&'a self, contact: &'a WakeContact) -> Doing<'a, ProbeOutcome> {
        Box::pin(async { inside::probe(self.inside.as_ref(), self.path(), contact, ABSENT) })
    }

    fn ring<'a>(&'a self, contact: &'a WakeContact, bell: &'a WakeBell) -> Doing<'a, RingOutcome> {
        Box::pin(async { inside::rung(contact, self.inside.arm_piggyback(&contact.session, bell), ABSENT) })
    }
}
