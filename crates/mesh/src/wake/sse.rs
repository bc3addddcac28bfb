//! `sse`: `notifications/resources/updated` for the doorbell on the agent's own stream (M-03). Clients refresh what they show;
//! none was seen to start a turn for it.

use std::sync::Arc;

use prism_core::mesh::Path;

use super::{AgentFacts, Bell, Contact, Doing, Inside, Probe, Rung, WakeAdapter, inside};

const ABSENT: &str = "the agent has no open stream";

pub(super) struct Sse {
    inside: Arc<dyn Inside>,
}

// === impl Sse ===

impl Sse {
    pub(super) fn new(inside: Arc<dyn Inside>) -> Self {
        Self { inside }
    }
}

impl WakeAdapter for Sse {
    fn path(&self) -> Path {
        Path::Sse
    }

    fn attach(&self, agent: &Arc<AgentFacts>) -> Option<Contact> {
        Some(inside::contact(agent))
    }

    fn probe<'a>(&'a self, contact: &'a Contact) -> Doing<'a, Probe> {
        Box::pin(async { inside::probe(self.inside.as_ref(), self.path(), contact, ABSENT) })
    }

    fn ring<'a>(&'a self, contact: &'a Contact, _bell: &'a Bell) -> Doing<'a, Rung> {
        Box::pin(inside::asked(contact, self.inside.ring_stream(&contact.session), ABSENT))
    }
}
