//! Agents that send each other signals: who is there, whose doorbell rings, and what is owed. Signals themselves are in the
//! store; nothing here knows a body, so no bell can tell one (M-03).
//!
//! Nothing surface-specific is here either: how a bell goes down a path is in `crates/mesh/src/wake`.

mod backlog;
mod bell;
mod chat;
mod doorbell;
mod health;
mod obligation;
pub mod path;
pub mod signal;
mod support;
pub mod words;

pub use backlog::BacklogView;
pub use bell::{Bell, BellOutcome, SignalHeader};
pub use chat::ChatFailure;
pub use doorbell::DoorbellTiming;
pub use obligation::{Obligation, ObligationTerms, WakeTally};
pub use path::WakePath;
pub use signal::{SignalDuty, SignalType};
pub use support::{StreamConnection, WakeSupport};

pub use crate::Time;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use self::{
    doorbell::{Doorbell, DoorbellAction},
    health::PathHealth,
    obligation::Obligations,
};

/// The human at the machine: always there, never started.
pub const PERSON: &str = "person";
/// Who has sent what nobody has: nobody else may have that name.
pub const SYSTEM: &str = "prism";
/// The longest name of an agent.
const MAX_NAME: usize = 64;
/// How long a call of an agent's shows that it is at work.
const ACTIVE_FOR: Duration = Duration::from_secs(60);

/// An agent's name, which is its address for as long as there is a store.
pub type Name = Arc<str>;

/// What is updated when a signal has come for the agent of a session; with a slash and an id of an agent's session, for
/// that one.
pub const PENDING: &str = "prism://signals/pending";

/// All agents of the machine.
#[derive(Debug)]
pub struct MeshMachine {
    patience: DoorbellTiming,
    agents: BTreeMap<Name, MeshAgent>,
    /// Whose each session is, ended ones that another has taken over included.
    sessions: HashMap<u128, Name>,
    obligations: Obligations,
    due: BTreeSet<(Time, Name)>,
    actions: VecDeque<MeshAction>,
}

#[derive(Debug)]
struct MeshAgent {
    window: Option<Window>,
    bell: Doorbell,
    due: Option<Time>,
}

/// One window of an agent: its controller session (M-01).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    pub session: u128,
    pub surface: Box<str>,
    pub workspace: Option<Box<str>>,
    pub transport: Box<str>,
    /// Whether its program acts on what comes down its stream unasked.
    pub heeds_stream: bool,
    /// What the program itself calls it, by which its hooks are known.
    pub surface_session: Option<Box<str>>,
    pub started: Time,
    pub seen: Time,
    pub wrapped: Option<Time>,
    /// Its client has left without a word.
    pub left: bool,
}

/// What is known of where an agent is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// A path leads to it now.
    Connected,
    /// It has called something a moment ago.
    Active,
    /// It is registered, and nothing more is known.
    Silent,
    /// Its client has left without a word.
    Gone,
    Wrapped,
}

/// What the shell has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MeshAction {
    /// Ring, and say with [`MeshMachine::rung`] what became of it.
    Ring {
        agent: Name,
        session: u128,
        path: WakePath,
        attempt: u64,
        bell: Bell,
    },
    /// Put on record what became of a bell: `surface_doorbell_sent`.
    Note {
        agent: Name,
        session: u128,
        path: WakePath,
        outcome: BellOutcome,
        lead: SignalHeader,
        after: Option<Duration>,
        at: Time,
    },
    /// Look into the agent's queue, and say with [`MeshMachine::reconciled`] what is there.
    Reread(Name),
    Support(Name, WakeSupport),
    /// Whether the agent's next tool result is to carry the bell.
    Piggyback(Name, bool),
    /// Something is owed for longer than was agreed: a person is to know.
    Overdue(Box<Obligation>),
}

/// Why a name is none.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("an agent's name has letters, digits, '.', '_' and '-', begins with a letter or digit, and is at most 64 long")]
pub struct AgentNameError;

/// A name as it is kept: in lower case.
pub fn name(text: &str) -> Result<Name, AgentNameError> {
    let folded = text.trim().to_ascii_lowercase();
    let mut bytes = folded.bytes();
    let begins = bytes.next().is_some_and(|first| first.is_ascii_alphanumeric());
    let goes_on = bytes.all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    if begins && goes_on && folded.len() <= MAX_NAME { Ok(folded.into()) } else { Err(AgentNameError) }
}

// === impl MeshMachine ===

impl MeshMachine {
    pub fn new(patience: DoorbellTiming) -> Self {
        Self {
            patience,
            agents: BTreeMap::new(),
            sessions: HashMap::new(),
            obligations: Obligations::default(),
            due: BTreeSet::new(),
            actions: VecDeque::new(),
        }
    }

    pub fn poll_action(&mut self) -> Option<MeshAction> {
        self.actions.pop_front()
    }

    // --- Agents ---

    /// Takes up an agent that another daemon has known.
    pub fn restore(
        &mut self,
        agent: &Name,
        window: Option<Window>,
        look: BacklogView,
        first: Option<SignalHeader>,
        now: Time,
    ) {
        self.enter(agent, window, look, first, now);
    }

    /// Takes up what is owed.
    pub fn restore_obligation(&mut self, obligation: Obligation) {
        self.obligations.insert(obligation);
    }

    /// An agent's window registers (M-01). Returns the one that it takes over, if that had not ended. What waits for the
    /// agent rings on the first path that opens; a start itself never carries it.
    pub fn start(
        &mut self,
        agent: &Name,
        window: Window,
        look: BacklogView,
        first: Option<SignalHeader>,
        now: Time,
    ) -> Option<Window> {
        let before = self.agents.get(agent).and_then(|agent| agent.window.clone());
        self.enter(agent, Some(window), look, first, now);
        before.filter(|before| before.wrapped.is_none() && !before.left)
    }

    fn enter(
        &mut self,
        agent: &Name,
        window: Option<Window>,
        look: BacklogView,
        first: Option<SignalHeader>,
        now: Time,
    ) {
        if let Some(window) = &window {
            self.sessions.insert(window.session, agent.clone());
        }
        let patience = self.patience;
        let entry = self.agents.entry(agent.clone()).or_insert_with(|| MeshAgent {
            window: None,
            bell: Doorbell::new(patience),
            due: None,
        });
        if let Some(old) = std::mem::replace(&mut entry.window, window) {
            let is_same = entry.window.as_ref().is_some_and(|window| window.session == old.session);
            if !is_same {
                self.sessions.remove(&old.session);
            }
        }
        let heeds_stream = entry.window.as_ref().is_none_or(|window| window.heeds_stream);
        entry.bell.take_up(look, first, heeds_stream, now);
        self.settle(agent, now);
    }

    /// An agent's window says good-bye. Its name stays an address.
    pub fn wrap(&mut self, agent: &Name, now: Time) {
        if let Some(window) = self.window_mut(agent) {
            window.wrapped = Some(now);
        }
        self.close_all(agent, now);
    }

    /// An agent's client has left without a word. What leads to it by other ways may still do so.
    pub fn left(&mut self, agent: &Name, now: Time) {
        if let Some(window) = self.window_mut(agent) {
            window.left = true;
        }
        self.with(agent, now, |bell| bell.stream_closed(now));
    }

    /// A sign of life.
    pub fn seen(&mut self, agent: &Name, now: Time) {
        if let Some(window) = self.window_mut(agent) {
            (window.seen, window.left) = (now, false);
        }
    }

    fn close_all(&mut self, agent: &Name, now: Time) {
        self.with(agent, now, |bell| {
            for path in WakePath::ALL.into_iter().filter(|path| *path != WakePath::Sse) {
                bell.close(path, now);
            }
            bell.stream_closed(now);
        });
    }

    /// Nobody has seen the agent for so long that its name means nothing any more.
    pub fn forget(&mut self, agent: &Name) {
        let Some(MeshAgent { window, due, .. }) = self.agents.remove(agent) else { return };
        if let Some(window) = window {
            self.sessions.remove(&window.session);
        }
        if let Some(due) = due {
            self.due.remove(&(due, agent.clone()));
        }
    }

    pub fn len(&self) -> usize {
        self.agents.len()
    }

    pub fn is_empty(&self) -> bool {
        self.agents.is_empty()
    }

    pub fn is_known(&self, agent: &str) -> bool {
        agent == PERSON || self.agents.contains_key(agent)
    }

    pub fn names(&self) -> impl Iterator<Item = &Name> {
        self.agents.keys()
    }

    /// Whose session that is, or was last.
    pub fn agent_of(&self, session: u128) -> Option<&Name> {
        self.sessions.get(&session)
    }

    pub fn window(&self, agent: &str) -> Option<&Window> {
        self.agents.get(agent)?.window.as_ref()
    }

    fn window_mut(&mut self, agent: &str) -> Option<&mut Window> {
        self.agents.get_mut(agent)?.window.as_mut()
    }

    pub fn presence(&self, agent: &str, now: Time) -> Presence {
        let Some(MeshAgent { window: Some(window), bell, .. }) = self.agents.get(agent) else { return Presence::Gone };
        match window {
            Window { wrapped: Some(_), .. } => Presence::Wrapped,
            _ if bell.is_reached() => Presence::Connected,
            Window { left: true, .. } => Presence::Gone,
            Window { seen, .. } if now.since(*seen) <= ACTIVE_FOR => Presence::Active,
            _ => Presence::Silent,
        }
    }

    pub fn support(&self, agent: &str) -> WakeSupport {
        self.agents.get(agent).map_or(WakeSupport::Degraded, |agent| agent.bell.support())
    }

    /// What a window would support if it registered now, with a stream or without.
    pub fn support_of(heeds_stream: bool, has_stream: bool) -> WakeSupport {
        let mut health = PathHealth::default();
        if has_stream {
            health.opened(WakePath::Sse);
        }
        health.support(heeds_stream)
    }

    /// The state of an agent's doorbell.
    pub fn bell(&self, agent: &str) -> Option<&Doorbell> {
        self.agents.get(agent).map(|agent| &agent.bell)
    }

    // --- Signals ---

    /// A signal, and what it makes its recipient owe, is on disk.
    pub fn arrived(&mut self, recipient: &Name, lead: SignalHeader, obligation: Option<Obligation>, now: Time) {
        if let Some(obligation) = obligation {
            self.obligations.insert(obligation);
        }
        self.with(recipient, now, |bell| bell.arrived(lead, now));
    }

    /// A drain gave out that many, which leaves this; `heard` and `closed` are the obligations concerned.
    pub fn drained(&mut self, agent: &Name, count: u64, left: BacklogView, heard: &[u128], closed: &[u128], now: Time) {
        self.with(agent, now, |bell| bell.drained(count, left, now));
        for signal in heard {
            if let Some(obligation) = self.obligations.get_mut(*signal) {
                obligation.heard = Some(now);
            }
        }
        for signal in closed {
            self.obligations.close(*signal);
        }
    }

    /// What was drained has not arrived, and waits again.
    pub fn put_back(&mut self, agent: &Name, look: BacklogView, first: Option<SignalHeader>, now: Time) {
        self.with(agent, now, |bell| bell.put_back(look, first, now));
    }

    /// A signal was recalled, or is out of date.
    pub fn gone(&mut self, recipient: &Name, seq: i64, rings: bool, signal: u128, now: Time) {
        self.obligations.close(signal);
        self.with(recipient, now, |bell| bell.gone(seq, rings, now));
    }

    /// What a signal asked for is done.
    pub fn done(&mut self, signal: u128) -> Option<Obligation> {
        self.obligations.close(signal)
    }

    pub fn obligation(&self, signal: u128) -> Option<&Obligation> {
        self.obligations.get(signal)
    }

    pub fn obligations(&self) -> impl Iterator<Item = &Obligation> {
        self.obligations.all()
    }

    // --- Paths ---

    pub fn stream_opened(&mut self, agent: &Name, now: Time) {
        self.with(agent, now, Doorbell::stream_opened);
    }

    /// What the look brought; `None` if it failed.
    pub fn reconciled(&mut self, agent: &Name, look: Option<BacklogView>, first: Option<SignalHeader>, now: Time) {
        self.with(agent, now, |bell| bell.reconciled(look, first, now));
    }

    pub fn stream_closed(&mut self, agent: &Name, now: Time) {
        self.with(agent, now, |bell| bell.stream_closed(now));
    }

    pub fn open(&mut self, agent: &Name, path: WakePath, now: Time) {
        self.with(agent, now, |bell| bell.open(path, now));
    }

    /// The agent can be reached by that, if anybody is there: see [`MeshMachine::looked`].
    pub fn attach(&mut self, agent: &Name, path: WakePath, now: Time) {
        self.with(agent, now, |bell| bell.attach(path));
    }

    /// Whether somebody is at the other end of a path.
    pub fn looked(&mut self, agent: &Name, path: WakePath, there: bool, now: Time) {
        self.with(agent, now, |bell| bell.looked(path, there, now));
    }

    pub fn close(&mut self, agent: &Name, path: WakePath, now: Time) {
        self.with(agent, now, |bell| bell.close(path, now));
    }

    /// The agent asks to be told when something comes. Returns the bell if something has.
    pub fn wait(&mut self, agent: &Name, now: Time) -> Option<Bell> {
        let rung = self.with(agent, now, |bell| bell.wait(now))??;
        Some(rung.into())
    }

    /// Something of the agent's program looks in for a moment. Returns the bell if it is news to it.
    pub fn look_in(&mut self, agent: &Name, path: WakePath, now: Time) -> Option<Bell> {
        let rung = self.with(agent, now, |bell| bell.look_in(path, now))??;
        Some(rung.into())
    }

    /// A tool result leaves for the agent. Returns the bell if it is to carry it.
    pub fn piggyback(&mut self, agent: &Name, now: Time) -> Option<Bell> {
        let rung = self.with(agent, now, |bell| bell.piggyback(now))??;
        Some(rung.into())
    }

    pub fn rung(&mut self, agent: &Name, attempt: u64, outcome: BellOutcome, now: Time) {
        self.with(agent, now, |bell| bell.rung(attempt, outcome, now));
    }

    // --- Time ---

    pub fn deadline(&self) -> Option<Time> {
        let bells = self.due.first().map(|(due, _)| *due);
        bells.into_iter().chain(self.obligations.deadline()).min()
    }

    pub fn handle_deadline(&mut self, now: Time) {
        while let Some(obligation) = self.obligations.next_overdue(now) {
            self.actions.push_back(MeshAction::Overdue(Box::new(obligation.clone())));
        }
        let due: Vec<Name> =
            self.due.iter().take_while(|(due, _)| *due <= now).map(|(_, agent)| agent.clone()).collect();
        for agent in due {
            self.with(&agent, now, |bell| bell.handle_deadline(now));
        }
    }

    /// Does something to an agent's doorbell, and takes over what that leads to.
    fn with<T>(&mut self, agent: &Name, now: Time, act: impl FnOnce(&mut Doorbell) -> T) -> Option<T> {
        let done = act(&mut self.agents.get_mut(agent)?.bell);
        self.settle(agent, now);
        Some(done)
    }

    fn settle(&mut self, agent: &Name, now: Time) {
        let Some(entry) = self.agents.get_mut(agent) else { return };
        let session = entry.window.as_ref().map_or(0, |window| window.session);
        while let Some(chime) = entry.bell.poll() {
            let agent = agent.clone();
            let action = match chime {
                DoorbellAction::Ring { attempt, path, lead, more } => {
                    MeshAction::Ring { agent, session, path, attempt, bell: (lead, more).into() }
                }
                DoorbellAction::Note { path, outcome, lead, after } => {
                    if let Some(obligation) = self.obligations.get_mut(lead.signal) {
                        obligation.wakes.note(path, outcome, now);
                    }
                    MeshAction::Note { agent, session, path, outcome, lead, after, at: now }
                }
                DoorbellAction::Reread => MeshAction::Reread(agent),
                DoorbellAction::Support(support) => {
                    self.obligations.rebucket(&agent, support);
                    MeshAction::Support(agent, support)
                }
                DoorbellAction::Piggyback(armed) => MeshAction::Piggyback(agent, armed),
            };
            self.actions.push_back(action);
        }
        let due = entry.bell.deadline();
        if due != entry.due {
            if let Some(before) = entry.due {
                self.due.remove(&(before, agent.clone()));
            }
            if let Some(due) = due {
                self.due.insert((due, agent.clone()));
            }
            entry.due = due;
        }
    }
}

// === impl Presence ===

impl Presence {
    pub fn name(self) -> &'static str {
        match self {
            Self::Connected => "connected",
            Self::Active => "active",
            Self::Silent => "silent",
            Self::Gone => "gone",
            Self::Wrapped => "wrapped",
        }
    }
}

#[cfg(test)]
mod tests;
