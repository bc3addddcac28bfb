//! The mesh at work: it runs `core::mesh` over the store, the clients' streams and the wake paths, and decides nothing that
//! could be decided there.
//!
//! ```text
//!  verb ── who ── store (one commit) ── core ──┬─ Ring ──► wake adapter ── what became of it ──► core
//!                                              ├─ Note ──► written down behind, metrics, events
//!                                              └─ Reread ► store ──► core
//! ```
//! Nothing is acknowledged before it is on disk. Bells and what is told of them come after that: a daemon that is killed
//! in between finds the signal in the store, and rings again.

mod agents;
mod drain;
mod inside;
mod overview;
mod owed;
mod polls;
mod record;
mod signals;
mod streams;
pub mod tools;
mod trouble;
mod upkeep;
mod verbs;
mod waiting;
pub mod wake;
mod wake_test;
mod watch;
mod who;

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
};

pub use inside::Chats;
use prism_api::events::{BellEvent, ObligationEvent, SupportEvent};
use prism_bridge::drive::SessionTable;
use prism_config::{self as config, Env};
use prism_core::mesh::{self as core, BellOutcome, MeshAction, Name, Time, WakePath};
use prism_core::time::rfc3339;
use prism_os::clock::Clock;
use prism_store::Store;
use prism_telemetry::{events::EventBus, mesh::MeshMetrics};
use serde_json::json;
use tokio::sync::Notify;
use tracing::{info, warn};
pub use trouble::{MeshError, MeshErrorCode};
use uuid::Uuid;
pub use verbs::run;
pub use who::MeshCaller;

use self::{agents::WindowFacts, polls::LongPolls, record::MeshRecorder, streams::AgentStreams};
use crate::wake::{AgentFacts, RingOutcome, WakeAdapters, WakeBell, WakeSettings};

/// Signals out of date that are ended in one commit before the mesh starts.
const ENDED_AT_START: u32 = 1000;

/// All of the mesh. There is one for the daemon's life.
pub struct Mesh {
    state: Mutex<MeshState>,
    store: Store,
    adapters: WakeAdapters,
    sessions: Arc<SessionTable>,
    recorder: MeshRecorder,
    pub events: EventBus,
    pub metrics: Arc<MeshMetrics>,
    clock: Clock,
    settings: config::MeshConfig,
    /// Rung when the next deadline may be another.
    changed: Arc<Notify>,
    chats: OnceLock<Arc<dyn Chats>>,
    this: Weak<Self>,
}

struct MeshState {
    core: core::MeshMachine,
    /// What is known of agents' windows that their doorbells do not care for.
    facts: HashMap<Name, WindowFacts>,
    by_mcp: HashMap<u128, Name>,
    by_instance: HashMap<u128, Name>,
    /// Clients, by their session or shim, whose name another has taken since.
    displaced: HashMap<u128, Name>,
    streams: AgentStreams,
    polls: LongPolls,
}

// === impl Mesh ===

impl Mesh {
    /// Takes up what the store has of the mesh.
    pub async fn open(
        store: Store,
        sessions: Arc<SessionTable>,
        metrics: Arc<MeshMetrics>,
        settings: config::MeshConfig,
        (env, home): (Env, PathBuf),
    ) -> anyhow::Result<Arc<Self>> {
        let again = store.unsettle_all().await?;
        if again > 0 {
            info!(signals = again, "Signals that may not have reached their agents will be given again");
        }
        let now = Clock::start().now();
        while !store.expire(now.0, ENDED_AT_START).await?.is_empty() {}
        let config::MeshConfig { tmux, editor_chat, desktop, ref secrets, .. } = settings;
        let allowed = WakeSettings { tmux, editor_chat, desktop, env, home, secrets: secrets.clone() };
        let mesh = Arc::new_cyclic(|this: &Weak<Self>| Self {
            state: Mutex::new(MeshState {
                core: core::MeshMachine::new(settings.patience),
                facts: HashMap::new(),
                by_mcp: HashMap::new(),
                by_instance: HashMap::new(),
                displaced: HashMap::new(),
                streams: AgentStreams::default(),
                polls: LongPolls::default(),
            }),
            recorder: MeshRecorder::new(store.clone()),
            store,
            adapters: WakeAdapters::new(&inside::of(this.clone()), &allowed),
            sessions,
            events: EventBus::default(),
            metrics,
            clock: Clock::start(),
            settings,
            changed: Arc::default(),
            chats: OnceLock::new(),
            this: this.clone(),
        });
        mesh.take_up()?;
        tokio::spawn(mesh.recorder.clone().run());
        tokio::spawn(upkeep::deadlines(Arc::downgrade(&mesh)));
        tokio::spawn(upkeep::housekeeping(Arc::downgrade(&mesh)));
        tokio::spawn(watch::watching(Arc::downgrade(&mesh)));
        Ok(mesh)
    }

    /// Tells it where the editors' chats are, which agents may live in.
    pub fn chats_are_at(&self, chats: Arc<dyn Chats>) {
        let _ = self.chats.set(chats);
    }

    fn state(&self) -> MutexGuard<'_, MeshState> {
        // Nothing panics while it holds the lock; and a mesh that stands still would be worse than one that is off by one.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Time {
        self.clock.now()
    }

    /// Does something to the state, and then what that leads to.
    fn act<T>(&self, act: impl FnOnce(&mut MeshState, Time) -> T) -> T {
        let now = self.now();
        let (done, actions) = {
            let mut state = self.state();
            let done = act(&mut state, now);
            let mut actions = Vec::new();
            while let Some(action) = state.core.poll_action() {
                actions.push(action);
            }
            (done, actions)
        };
        for action in actions {
            self.perform(action);
        }
        self.changed.notify_one();
        done
    }

    fn perform(&self, action: MeshAction) {
        match action {
            MeshAction::Ring { agent, session, path, attempt, bell } => self.ring(agent, session, path, attempt, &bell),
            MeshAction::Note { agent, session, path, outcome, lead, after, at } => {
                self.metrics.bell(path, outcome, after);
                let told = || {
                    json!(BellEvent {
                        at: rfc3339(at),
                        agent: agent.to_string(),
                        session: hyphenated(session),
                        path: path.name().to_owned(),
                        result: outcome.name().to_owned(),
                        signal_id: hyphenated(lead.signal),
                        signal_type: lead.kind.name().to_owned(),
                        trace_id: hyphenated(lead.trace),
                        after_ms: after.map(|after| after.as_secs_f64() * 1e3),
                    })
                };
                self.events.tell("surface_doorbell_sent", told);
                self.recorder.bell(&agent, session, path, outcome, &lead, after, at);
            }
            MeshAction::Reread(agent) => self.reread(agent),
            MeshAction::Support(agent, _) => self.note_support(&agent),
            MeshAction::Piggyback(agent, _) => self.arm(&self.state(), &agent),
            MeshAction::Overdue(obligation) => self.escalate(&obligation),
        }
    }

    /// Puts on record what an agent's surface supports: what it does now, as news of it may come in any order.
    fn note_support(&self, agent: &Name) {
        let now = self.now();
        let support = {
            let mut state = self.state();
            let support = state.core.support(agent);
            if let Some(facts) = state.facts.get_mut(agent) {
                facts.note_support(support, now);
            }
            support
        };
        info!(agent = &**agent, support = support.name(), "What an agent's surface supports has changed");
        self.recorder.bucket(agent, support);
        self.events.tell("support", || {
            let (at, agent) = (rfc3339(now), agent.to_string());
            json!(SupportEvent { at, agent, surface_support: support.name().to_owned() })
        });
    }

    /// Lets results of tools carry an agent's bell, or not, at the doors that they leave by.
    fn arm(&self, state: &MeshState, agent: &Name) {
        let carries = |agent: &Name| state.core.bell(agent).is_some_and(|bell| bell.carries());
        let Some(facts) = state.facts.get(agent) else { return };
        if let Some(entry) = facts.mcp_session.and_then(|session| self.sessions.get(&Uuid::from_u128(session))) {
            entry.visit.let_ring(carries(agent));
        }
        if facts.instance.is_some() {
            let any = state.by_instance.values().any(carries);
            self.sessions.reached().let_instances_ring(any);
        }
    }

    /// The same for everybody: the sessions of the last daemon have been taken up.
    pub fn arm_all(&self) {
        let state = self.state();
        for agent in state.facts.keys() {
            self.arm(&state, agent);
        }
    }

    fn ring(&self, agent: Name, session: u128, path: WakePath, attempt: u64, bell: &core::Bell) {
        let contact = self.state().facts.get(&agent).and_then(|facts| facts.contact(path));
        let bell = WakeBell {
            text: bell.to_string().into(),
            agent: agent.clone(),
            session: hyphenated(session).into(),
            sender: bell.sender.clone().into(),
            kind: bell.kind.name().into(),
        };
        let Some(mesh) = self.this.upgrade() else { return };
        tokio::spawn(async move {
            let rung = match (mesh.adapters.of(path), &contact) {
                (Some(adapter), Some(contact)) => adapter.ring(contact, &bell).await,
                _ => RingOutcome::Uncaptured("the agent cannot be reached that way".into()),
            };
            let outcome = match &rung {
                RingOutcome::Rang => BellOutcome::Rang,
                RingOutcome::Uncaptured(_) => BellOutcome::Uncaptured,
                RingOutcome::SendFailed(_) => BellOutcome::SendFailed,
                RingOutcome::Unanswered(_) => BellOutcome::Unanswered,
            };
            match &rung {
                RingOutcome::Rang | RingOutcome::Uncaptured(_) => {}
                RingOutcome::SendFailed(why) => {
                    warn!(agent = &*agent, path = path.name(), why = &**why, "A bell could not be rung");
                }
                RingOutcome::Unanswered(why) => {
                    warn!(agent = &*agent, path = path.name(), why = &**why, "Nobody knows whether a bell rang");
                }
            }
            mesh.act(|state, now| {
                if let Some(facts) = state.facts.get_mut(&agent) {
                    facts.note_rung(path, &rung, now);
                }
                state.core.rung(&agent, attempt, outcome, now);
            });
            // Whether somebody is there at all is what tells when they are back.
            if let Some(contact) = contact.filter(|_| outcome != BellOutcome::Rang && !watch::HELD.contains(&path)) {
                mesh.look_at(&agent, path, &contact).await;
            }
        });
    }

    /// Looks into an agent's queue for a stream that has come.
    fn reread(&self, agent: Name) {
        let Some(mesh) = self.this.upgrade() else { return };
        tokio::spawn(async move {
            let (look, first) = match mesh.look(&agent) {
                Ok((look, first)) => (Some(look), first),
                Err(error) => {
                    warn!(agent = &*agent, %error, "Cannot look into an agent's queue");
                    (None, None)
                }
            };
            mesh.act(|state, now| state.core.reconciled(&agent, look, first, now));
        });
    }

    /// What waits for an agent, and the first of it that rings.
    fn look(
        &self,
        agent: &str,
    ) -> Result<(core::BacklogView, Option<core::SignalHeader>), prism_store::StoreReadError> {
        let pending = self.store.pending_of(agent)?;
        Ok(agents::look(&pending))
    }

    fn escalate(&self, obligation: &core::Obligation) {
        let core::Obligation { debtor, creditor, kind, .. } = obligation;
        let at = self.now();
        warn!(
            agent = &**debtor,
            from = &**creditor,
            kind = kind.name(),
            "Something is owed for longer than was agreed"
        );
        self.metrics.overdue(obligation.bucket);
        self.recorder.overdue(obligation.signal, at);
        let told = || {
            json!(ObligationEvent {
                at: rfc3339(at),
                state: "overdue".to_owned(),
                signal_id: hyphenated(obligation.signal),
                kind: kind.name().to_owned(),
                debtor: debtor.to_string(),
                creditor: creditor.to_string(),
                sla_exempt: Some(obligation.is_exempt()),
            })
        };
        self.events.tell("obligation", told);
        self.notify(&format!("{debtor} has not dealt with a {} from {creditor}. See: prism mesh", kind.name()));
        let (Some(mesh), obligation) = (self.this.upgrade(), obligation.clone()) else { return };
        tokio::spawn(async move { mesh.tell_overdue(&obligation).await });
    }

    /// Puts a notice on the person's screen, where that is allowed and there is one.
    pub fn notify(&self, text: &str) {
        let person = AgentFacts { agent: core::PERSON.into(), ..AgentFacts::default() };
        let bell = WakeBell {
            text: text.into(),
            agent: core::PERSON.into(),
            session: "".into(),
            sender: core::SYSTEM.into(),
            kind: core::SignalType::StatusUpdate.name().into(),
        };
        let Some(mesh) = self.this.upgrade() else { return };
        tokio::spawn(async move {
            if let Some(adapter) = mesh.adapters.of(WakePath::Desktop)
                && let Some(contact) = adapter.attach(&Arc::new(person))
                && let RingOutcome::SendFailed(why) = adapter.ring(&contact, &bell).await
            {
                warn!(why = &*why, "The person could not be sent a notice");
            }
        });
    }
}

/// An id as everybody else writes it.
fn hyphenated(id: u128) -> String {
    Uuid::from_u128(id).to_string()
}
