//! `channel`: `notifications/claude/channel`, which Claude Code takes for a reason to start a turn where its maker has
//! switched channels on. Nobody tells us whether: it is fire and forget, and only a drain shows that it was heard.
//!
//! Only a server on stdio can declare a channel, so this is `prism stdio`'s to do: it declares one to Claude Code, waits at
//! the daemon as a hook would, and says the bell in its client's words. A stream would not do: clients of 2026-07-28
//! have none that is theirs, and others must never see this.

use std::sync::Arc;

use prism_core::mesh::WakePath;

use super::{
    AgentFacts, DaemonChannels, Doing, PollKind, ProbeOutcome, RingOutcome, WakeAdapter, WakeBell, WakeContact, inside,
};

const ABSENT: &str = "no prism stdio with a channel waits for this agent: only Claude Code has one";

pub(super) struct ChannelAdapter {
    inside: Arc<dyn DaemonChannels>,
}

// === impl ChannelAdapter ===

impl ChannelAdapter {
    pub(super) fn new(inside: Arc<dyn DaemonChannels>) -> Self {
        Self { inside }
    }
}

impl WakeAdapter for ChannelAdapter {
    fn path(&self) -> WakePath {
        WakePath::Channel
    }

    fn attach(&self, agent: &Arc<AgentFacts>) -> Option<WakeContact> {
        agent.client.has_channel.then(|| inside::contact(agent))
    }

    fn probe<'a>(&'a self, contact: &'a WakeContact) -> Doing<'a, ProbeOutcome> {
        Box::pin(async { inside::probe(self.inside.as_ref(), self.path(), contact, ABSENT) })
    }

    fn ring<'a>(&'a self, contact: &'a WakeContact, bell: &'a WakeBell) -> Doing<'a, RingOutcome> {
        Box::pin(async { inside::rung(contact, self.inside.finish(PollKind::Channel, &contact.session, bell), ABSENT) })
    }
}
