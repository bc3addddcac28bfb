//! What is written down behind the work: what became of bells, what that means for obligations, which drains have surely
//! arrived. While one commit is under way the next gathers here, so a thousand bells are a handful of commits.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use prism_core::mesh::{BellOutcome, SignalHeader, Time, WakePath, WakeSupport};
use prism_store::{
    Store, StoreWriteError,
    mesh::{BellRow, MeshNotes, WakeNote},
};
use tokio::{sync::Notify, time::sleep};
use tracing::warn;

/// Bells that may wait to be written down. Beyond it the newest are not recorded, which is logged: the store has been out of
/// order for long.
const MAX_UNWRITTEN: usize = 65_536;
/// How long after its answer a drain counts as arrived: long enough for the answer to leave through its socket.
const ARRIVES_WITHIN: Duration = Duration::from_secs(1);

#[derive(Clone)]
pub(super) struct MeshRecorder {
    unwritten: Arc<Mutex<UnwrittenNotes>>,
    wanted: Arc<Notify>,
    store: Store,
}

#[derive(Default)]
struct UnwrittenNotes {
    bells: Vec<BellRow>,
    wakes: Vec<WakeNote>,
    buckets: HashMap<String, &'static str>,
    overdue: Vec<(u128, i64)>,
    drains: HashMap<String, i64>,
    seen: HashMap<String, i64>,
    lost: u64,
}

impl MeshRecorder {
    pub(super) fn new(store: Store) -> Self {
        Self { unwritten: Arc::default(), wanted: Arc::default(), store }
    }

    fn add(&self, add: impl FnOnce(&mut UnwrittenNotes)) {
        add(&mut self.unwritten());
        self.wanted.notify_one();
    }

    fn unwritten(&self) -> MutexGuard<'_, UnwrittenNotes> {
        self.unwritten.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[expect(clippy::too_many_arguments, reason = "a row has that many columns")]
    pub(super) fn bell(
        &self,
        agent: &str,
        session: u128,
        path: WakePath,
        outcome: BellOutcome,
        lead: &SignalHeader,
        after: Option<Duration>,
        Time(at_us): Time,
    ) {
        let (path, result) = (path.name().to_owned(), outcome.name().to_owned());
        let bell = BellRow {
            at_us,
            agent: agent.to_owned(),
            session,
            path: path.clone(),
            result: result.clone(),
            signal: Some(lead.signal),
            kind: lead.kind.name().to_owned(),
            trace: Some(lead.trace),
            millis: after.map(|after| i64::try_from(after.as_millis()).unwrap_or(i64::MAX)),
        };
        // That a bell was heard is no wake of its own: the last one is the push.
        let wake = lead.kind.duty().filter(|_| outcome != BellOutcome::Confirmed).map(|_| WakeNote {
            signal: lead.signal,
            attempts_added: 1,
            rings_added: u32::from(outcome == BellOutcome::Rang),
            at_us,
            path,
            result,
        });
        self.add(|unwritten| {
            if unwritten.bells.len() >= MAX_UNWRITTEN {
                unwritten.lost += 1;
                return;
            }
            unwritten.bells.push(bell);
            unwritten.wakes.extend(wake);
        });
    }

    pub(super) fn bucket(&self, agent: &str, support: WakeSupport) {
        self.add(|unwritten| {
            unwritten.buckets.insert(agent.to_owned(), support.name());
        });
    }

    pub(super) fn overdue(&self, signal: u128, Time(at_us): Time) {
        self.add(|unwritten| unwritten.overdue.push((signal, at_us)));
    }

    pub(super) fn seen(&self, agent: &str, Time(at_us): Time) {
        self.add(|unwritten| {
            unwritten.seen.insert(agent.to_owned(), at_us);
        });
    }

    /// What was drained up to there is on its way to its agent, and will have arrived in a moment.
    pub(super) fn drained(&self, agent: &str, up_to: i64) {
        let (recorder, agent) = (self.clone(), agent.to_owned());
        tokio::spawn(async move {
            sleep(ARRIVES_WITHIN).await;
            recorder.add(|unwritten| {
                let known = unwritten.drains.entry(agent).or_insert(up_to);
                *known = up_to.max(*known);
            });
        });
    }

    /// Writes for as long as the store takes it.
    pub(super) async fn run(self) {
        loop {
            self.wanted.notified().await;
            let taken = std::mem::take(&mut *self.unwritten());
            match self.write(taken).await {
                Ok(()) => {}
                Err(StoreWriteError::Closed) => return,
                Err(error) => warn!(%error, "What became of bells could not be written down"),
            }
        }
    }

    async fn write(&self, taken: UnwrittenNotes) -> Result<(), StoreWriteError> {
        let UnwrittenNotes { bells, wakes, buckets, overdue, drains, seen, lost } = taken;
        if lost > 0 {
            warn!(bells = lost, "What became of some bells was not written down: there were too many");
        }
        let (overdue, escalated) = (overdue.clone(), overdue);
        let buckets = buckets.into_iter().map(|(agent, bucket)| (agent, bucket.to_owned())).collect();
        let (settled, seen) = (drains.into_iter().collect(), seen.into_iter().collect());
        self.store.note(MeshNotes { bells, wakes, buckets, overdue, escalated, settled, seen }).await
    }
}
