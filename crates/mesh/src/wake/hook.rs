//! `hook`: a `prism wait --hook …` that the agent's own program started, and that ends in the way this program takes for a
//! reason to go on.

use std::sync::Arc;

use prism_core::mesh::Path;

use super::{AgentFacts, Bell, Contact, Doing, Inside, Poll, Probe, Rung, WakeAdapter, inside};

const ABSENT: &str = "no hook of this agent is waiting: prism install CLIENT --hooks sets them up";

pub(super) struct Hook {
    inside: Arc<dyn Inside>,
}

// === impl Hook ===

impl Hook {
    pub(super) fn new(inside: Arc<dyn Inside>) -> Self {
        Self { inside }
    }
}

impl WakeAdapter for Hook {
    fn path(&self) -> Path {
        Path::Hook
    }

    fn attach(&self, agent: &Arc<AgentFacts>) -> Option<Contact> {
        Some(inside::contact(agent))
    }

    fn probe<'a>(&'a self, contact: &'a Contact) -> Doing<'a, Probe> {
        Box::pin(async { inside::probe(self.inside.as_ref(), self.path(), contact, ABSENT) })
    }

    fn ring<'a>(&'a self, contact: &'a Contact, bell: &'a Bell) -> Doing<'a, Rung> {
        Box::pin(async { inside::rung(contact, self.inside.finish(Poll::Hook, &contact.session, bell), ABSENT) })
    }
}
