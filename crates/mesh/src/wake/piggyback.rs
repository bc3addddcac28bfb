//! `piggyback`: the next tool result that leaves for the agent ends with the bell. The floor under all other paths: no
//! signal is lost to an agent that still calls tools.

use std::sync::Arc;

use prism_core::mesh::Path;

use super::{AgentFacts, Bell, Contact, Doing, Inside, Probe, Rung, WakeAdapter, inside};

const ABSENT: &str = "the agent has no session that a tool result could leave on";

pub(super) struct Piggyback {
    inside: Arc<dyn Inside>,
}

// === impl Piggyback ===

impl Piggyback {
    pub(super) fn new(inside: Arc<dyn Inside>) -> Self {
        Self { inside }
    }
}

impl WakeAdapter for Piggyback {
    fn path(&self) -> Path {
        Path::Piggyback
    }

    fn attach(&self, agent: &Arc<AgentFacts>) -> Option<Contact> {
        Some(inside::contact(agent))
    }

    fn probe<'a>(&'a self, contact: &'a Contact) -> Doing<'a, Probe> {
        Box::pin(async { inside::probe(self.inside.as_ref(), self.path(), contact, ABSENT) })
    }

    fn ring<'a>(&'a self, contact: &'a Contact, bell: &'a Bell) -> Doing<'a, Rung> {
        Box::pin(async { inside::rung(contact, self.inside.arm_piggyback(&contact.session, bell), ABSENT) })
    }
}
