//! `wait`: the agent has called `prism_signals_wait`, and the call ends. It confirms itself: the result is in the agent's
//! hands.

use std::sync::Arc;

use prism_core::mesh::Path;

use super::{AgentFacts, Bell, Contact, Doing, Inside, Poll, Probe, Rung, WakeAdapter, inside};

const ABSENT: &str = "the agent is not in prism_signals_wait";

pub(super) struct Wait {
    inside: Arc<dyn Inside>,
}

// === impl Wait ===

impl Wait {
    pub(super) fn new(inside: Arc<dyn Inside>) -> Self {
        Self { inside }
    }
}

impl WakeAdapter for Wait {
    fn path(&self) -> Path {
        Path::Wait
    }

    fn attach(&self, agent: &Arc<AgentFacts>) -> Option<Contact> {
        Some(inside::contact(agent))
    }

    fn probe<'a>(&'a self, contact: &'a Contact) -> Doing<'a, Probe> {
        Box::pin(async { inside::probe(self.inside.as_ref(), self.path(), contact, ABSENT) })
    }

    fn ring<'a>(&'a self, contact: &'a Contact, bell: &'a Bell) -> Doing<'a, Rung> {
        Box::pin(async { inside::rung(contact, self.inside.finish(Poll::Tool, &contact.session, bell), ABSENT) })
    }
}
