//! What the gate does by itself: grants end at their time, requests and confirmations too, and old ones are forgotten.

use std::{
    sync::{Weak, atomic::Ordering},
    time::Duration,
};

use prism_core::Time;
use prism_store::gate::RequestFilter;
use tokio::time::{interval, sleep};
use tracing::warn;

use super::{Gate, GateError, live::GrantEnd};

/// How often it looks after requests and confirmations.
const EVERY: Duration = Duration::from_secs(1);
/// The most that is looked at: more than may wait.
const MOST: u32 = 10_000;
/// What is over is kept this long, and that many are forgotten in one commit. What happened stays in the audit log.
const KEEP: Duration = Duration::from_secs(30 * 24 * 3600);
const FORGOTTEN_AT_ONCE: u32 = 500;
/// How often what is old is forgotten, in looks.
const TRIM_EVERY: u64 = 3600;
/// How often it is noted how far the audit log has come, in looks.
const NOTE_EVERY: u64 = 5;
/// How often refusals are counted anew, in looks.
const CALM_EVERY: u64 = 60;

/// Ends grants at their time: their sockets hear it at that moment.
pub(super) async fn ends(gate: Weak<Gate>) {
    loop {
        let Some(here) = gate.upgrade() else { return };
        let now = here.clock.now();
        let over: Vec<u128> = here.ending_by(now);
        if !over.is_empty()
            && let Some(why) = here.end(over, GrantEnd::Expired, "time").await.unwritten
        {
            // For their holders they are over all the same.
            warn!(why, "Expired grants could not be written down yet");
        }
        let next = here.next_end().map_or(Duration::from_secs(3600), |at| at.since(here.clock.now()));
        let changed = here.changed.clone();
        drop(here);
        tokio::select! {
            () = sleep(next) => {}
            () = changed.notified() => {}
        }
    }
}

pub(super) async fn housekeeping(gate: Weak<Gate>) {
    let mut ticks = interval(EVERY);
    for look in 0u64.. {
        ticks.tick().await;
        let Some(gate) = gate.upgrade() else { return };
        gate.settle().await;
        if gate.awaits.swap(false, Ordering::Relaxed) {
            gate.end_what_waited().await;
        }
        if look % NOTE_EVERY == 0 {
            gate.note_audit_head().await;
        }
        if look % CALM_EVERY == 0 {
            gate.record_rest_of_flood();
        }
        if look % TRIM_EVERY == 0 {
            let before = gate.clock.now().0.saturating_sub(i64::try_from(KEEP.as_micros()).unwrap_or(i64::MAX));
            let _ = gate.store.trim_gate(before, FORGOTTEN_AT_ONCE).await;
        }
    }
}

impl Gate {
    fn ending_by(&self, now: Time) -> Vec<u128> {
        let state = self.state();
        let over = state.live.values().filter(|live| live.ended().is_none() && live.grant.is_over(now));
        over.map(|live| live.id).collect()
    }

    fn next_end(&self) -> Option<Time> {
        let state = self.state();
        state.live.values().filter(|live| live.ended().is_none()).map(|live| live.grant.expires_at).min()
    }

    /// Ends requests and confirmations that nobody has decided in time. What there is to end is looked up first: a commit a
    /// second for nothing would wear the disk.
    async fn end_what_waited(&self) {
        if let Err(trouble) = self.try_to_end_what_waited().await {
            self.somebody_waits();
            warn!(why = trouble.message, "What waits for the person could not be looked after");
        }
    }

    async fn try_to_end_what_waited(&self) -> Result<(), GateError> {
        let now = self.clock.now().0;
        let open = self.store.requests(&RequestFilter { open_only: true, limit: MOST, ..RequestFilter::default() })?;
        // Not what they show, which may be large.
        let first_end = self.store.first_end_of_confirmations()?;
        if !open.is_empty() || first_end.is_some() {
            self.somebody_waits();
        }
        if open.iter().any(|row| row.expires_at_us <= now) {
            let expired = self.store.expire_requests(now).await?;
            self.requests_expired(&expired);
        }
        if first_end.is_some_and(|at| at <= now) {
            let expired = self.store.expire_confirmations(now).await?;
            self.confirmations_expired(&expired);
        }
        Ok(())
    }
}
