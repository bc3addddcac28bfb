//! `channel`: `notifications/claude/channel`, which Claude Code takes for a reason to start a turn where its maker has
//! switched channels on. Nobody tells us whether: it is fire and forget, and only a drain shows that it was heard.
//!
//! Only a server on stdio can declare a channel, so this is `prism stdio`'s to do: it declares one to Claude Code, waits at
//! the daemon as a hook would, and says the bell in its client's words. A stream would not do: clients of 2026-07-28
//! have none that is theirs, and others must never see this.

use std::sync::Arc;

use prism_core::mesh::Path;

use super::{AgentFacts, Bell, Contact, Doing, Inside, Poll, Probe, Rung, WakeAdapter, inside};

const ABSENT: &str = "no prism stdio with a channel waits for this agent: only Claude Code has one";

pub(super) struct Channel {
    inside: Arc<dyn Inside>,
}

// === impl Channel ===

impl Channel {
    pub(super) fn new(inside: Arc<dyn Inside>) -> Self {
        Self { inside }
    }
}

impl WakeAdapter for Channel {
    fn path(&self) -> Path {
        Path::Channel
    }

    fn attach(&self, agent: &Arc<AgentFacts>) -> Option<Contact> {
        agent.client.has_channel.then(|| inside::contact(agent))
    }

    fn probe<'a>(&'a self, contact: &'a Contact) -> Doing<'a, Probe> {
        Box::pin(async { inside::probe(self.inside.as_ref(), self.path(), contact, ABSENT) })
    }

    fn ring<'a>(&'a self, contact: &'a Contact, bell: &'a Bell) -> Doing<'a, Rung> {
        Box::pin(async { inside::rung(contact, self.inside.finish(Poll::Channel, &contact.session, bell), ABSENT) })
    }
}
