//! Long polls that wait for a bell: the tool `prism_signals_wait`, and programs that agents' surfaces have started.

use prism_core::mesh::{Name, WakePath};
use tokio::sync::oneshot;

use crate::wake::{PollKind, WakeBell};

/// Polls at a time, of all agents. Beyond it the next is refused.
const MAX_POLLS: usize = 4096;

/// What a poll ends with.
#[derive(Clone, Debug)]
pub(super) enum PollEnd {
    Bell(WakeBell),
    /// A newer one has taken its place.
    Superseded,
    /// The agent has said good-bye.
    Wrapped,
    /// The daemon stops.
    Stopping,
}

/// Whose poll it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PollOwner {
    Agent(Name),
    /// A program that a surface has started, which may be there before its agent is.
    Surface {
        surface: String,
        workspace: Option<String>,
        session: Option<String>,
    },
    /// A run of `prism stdio`, for whichever agent its client is.
    Instance(u128),
}

#[derive(Default)]
pub(super) struct LongPolls {
    open: Vec<OpenPoll>,
    last: u64,
}

struct OpenPoll {
    number: u64,
    kind: PollKind,
    asked: PollOwner,
    /// The agent that it is for, once it is known.
    agent: Option<Name>,
    /// `None` once it was told how it ends: it is open until it says so itself.
    end: Option<oneshot::Sender<PollEnd>>,
}

impl LongPolls {
    /// Opens a poll. Of the programs that an agent's surface starts there is one at a time: a newer one takes over.
    pub(super) fn open(
        &mut self,
        kind: PollKind,
        asked: PollOwner,
        agent: Option<Name>,
    ) -> Option<(u64, oneshot::Receiver<PollEnd>)> {
        if kind != PollKind::Tool {
            let same = |open: &OpenPoll| {
                open.kind == kind && (open.asked == asked || (agent.is_some() && open.agent == agent))
            };
            for old in self.open.extract_if(.., |open| same(open)) {
                old.end(PollEnd::Superseded);
            }
        }
        if self.open.len() >= MAX_POLLS {
            return None;
        }
        self.last += 1;
        let (end, ended) = oneshot::channel();
        self.open.push(OpenPoll { number: self.last, kind, asked, agent, end: Some(end) });
        Some((self.last, ended))
    }

    /// A poll is over. Returns whose it was and the path that is closed, if it was the last of its kind there.
    pub(super) fn close(&mut self, number: u64) -> Option<(Name, WakePath)> {
        let at = self.open.iter().position(|open| open.number == number)?;
        let OpenPoll { kind, agent, .. } = self.open.swap_remove(at);
        let agent = agent?;
        (!self.has(kind, &agent)).then_some((agent, path(kind)))
    }

    pub(super) fn has(&self, kind: PollKind, agent: &str) -> bool {
        self.open.iter().any(|open| open.kind == kind && open.agent.as_deref() == Some(agent) && open.end.is_some())
    }

    /// Ends an agent's polls of a kind with the bell. Returns whether somebody was there to hear it.
    pub(super) fn finish(&mut self, kind: PollKind, agent: &str, bell: &WakeBell) -> bool {
        let of_it = |open: &&mut OpenPoll| open.kind == kind && open.agent.as_deref() == Some(agent);
        let ends = self.open.iter_mut().filter(of_it).filter_map(|open| open.end.take());
        ends.filter_map(|end| end.send(PollEnd::Bell(bell.clone())).ok()).count() > 0
    }

    /// An agent has said good-bye.
    pub(super) fn wrapped(&mut self, agent: &str) {
        for open in self.open.extract_if(.., |open| open.agent.as_deref() == Some(agent)) {
            open.end(PollEnd::Wrapped);
        }
    }

    /// Ends all of them: the daemon stops.
    pub(super) fn stop(&mut self) {
        for open in self.open.drain(..) {
            open.end(PollEnd::Stopping);
        }
    }

    /// Gives polls that know no agent yet to this one, if they can only be for it. Returns the paths that lead to it by polls.
    pub(super) fn attach(&mut self, agent: &Name, fits: impl Fn(&PollOwner) -> bool) -> Vec<WakePath> {
        for open in self.open.iter_mut().filter(|open| open.agent.is_none() && fits(&open.asked)) {
            open.agent = Some(agent.clone());
        }
        let of_it = |open: &&OpenPoll| open.end.is_some() && open.agent.as_ref() == Some(agent);
        self.open.iter().filter(of_it).map(|open| path(open.kind)).collect()
    }

    /// Another window of an agent's takes over. What waits in the old one has nothing to wait for; whose the rest is, is to
    /// be found out anew.
    pub(super) fn taken_over(&mut self, agent: &str) {
        let in_it = |open: &OpenPoll| open.kind == PollKind::Tool && open.agent.as_deref() == Some(agent);
        for open in self.open.extract_if(.., |open| in_it(open)) {
            open.end(PollEnd::Superseded);
        }
        for open in self.open.iter_mut().filter(|open| open.agent.as_deref() == Some(agent)) {
            open.agent = None;
        }
    }
}

impl OpenPoll {
    fn end(self, with: PollEnd) {
        if let Some(end) = self.end {
            // Who has left needs no word.
            let _ = end.send(with);
        }
    }
}

/// The path that a poll is.
pub(super) fn path(kind: PollKind) -> WakePath {
    match kind {
        PollKind::Tool => WakePath::Wait,
        PollKind::Hook => WakePath::Hook,
        PollKind::Acp => WakePath::Acp,
        PollKind::Channel => WakePath::Channel,
    }
}
