//! `acp`: an agent behind `prism acp`, which waits at the daemon and prompts the agent itself; see `prism::acp`.

use std::sync::Arc;

use prism_core::mesh::Path;

use super::{AgentFacts, Bell, Contact, Doing, Inside, Poll, Probe, Rung, WakeAdapter, inside};

const ABSENT: &str = "no prism acp stands in front of this agent: let the editor start it as prism acp -- COMMAND";

pub(super) struct Acp {
    inside: Arc<dyn Inside>,
}

// === impl Acp ===

impl Acp {
    pub(super) fn new(inside: Arc<dyn Inside>) -> Self {
        Self { inside }
    }
}

impl WakeAdapter for Acp {
    fn path(&self) -> Path {
        Path::Acp
    }

    fn attach(&self, agent: &Arc<AgentFacts>) -> Option<Contact> {
        Some(inside::contact(agent))
    }

    fn probe<'a>(&'a self, contact: &'a Contact) -> Doing<'a, Probe> {
        Box::pin(async { inside::probe(self.inside.as_ref(), self.path(), contact, ABSENT) })
    }

    fn ring<'a>(&'a self, contact: &'a Contact, bell: &'a Bell) -> Doing<'a, Rung> {
        Box::pin(async { inside::rung(contact, self.inside.finish(Poll::Acp, &contact.session, bell), ABSENT) })
    }
}
