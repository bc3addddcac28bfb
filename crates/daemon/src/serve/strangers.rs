//! Connections of those who have not shown yet that they may come in (M7). They are few and short, so that nobody who has no
//! key can use up the daemon's files; whoever shows one stays as long as they like.
//!
//! Where there are too many the oldest goes, not the newest: who has a key shows it at once, and gets in however many others
//! only hold their place. Nobody goes before they had a moment for it; until then the next one waits, and the listener with it.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use prism_os::limits;
use tokio::{sync::Notify, time::sleep};

/// How long a stranger may take to show a key.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long nobody has to make room for another: a head that was sent with the connection is read by then, on a busy machine too.
const MOMENT: Duration = Duration::from_millis(500);
/// Strangers at a listener: a quarter of the files that are left, within these bounds.
const FEWEST: u64 = 4;
const MOST: u64 = 256;

/// The strangers at one listener.
#[derive(Debug)]
pub(super) struct UnverifiedConnections {
    most: usize,
    patience: Duration,
    moment: Duration,
    inside: Mutex<UnverifiedQueue>,
    /// Rung when one is known or gone.
    fewer: Notify,
}

#[derive(Debug, Default)]
struct UnverifiedQueue {
    met: u64,
    /// The oldest first.
    here: VecDeque<UnverifiedSlot>,
}

#[derive(Debug)]
struct UnverifiedSlot {
    id: u64,
    since: Instant,
    pushed_out: Arc<Notify>,
}

/// One of them, until it is known or gone.
#[derive(Debug)]
pub(super) struct UnverifiedConnection {
    all: Arc<UnverifiedConnections>,
    id: u64,
    is_known: AtomicBool,
    pushed_out: Arc<Notify>,
}

impl UnverifiedConnections {
    /// As many as this process has files for.
    pub(super) fn by_files() -> Arc<Self> {
        let (soft, _) = limits::open_files();
        let left = soft.saturating_sub(limits::open_now());
        Self::at_most(usize::try_from((left / 4).clamp(FEWEST, MOST)).unwrap_or(1), PATIENCE, MOMENT)
    }

    fn at_most(most: usize, patience: Duration, moment: Duration) -> Arc<Self> {
        Arc::new(Self { most, patience, moment, inside: Mutex::default(), fewer: Notify::new() })
    }

    /// Takes in one more. If that is one too many, the oldest is told to go, once it had its moment.
    pub(super) async fn meet(self: &Arc<Self>) -> Arc<UnverifiedConnection> {
        loop {
            let fewer = self.fewer.notified();
            let waits = match self.place() {
                Ok(stranger) => return stranger,
                Err(waits) => waits,
            };
            tokio::select! {
                () = fewer => {}
                () = sleep(waits) => {}
            }
        }
    }

    /// A place, or how long none is free yet.
    fn place(self: &Arc<Self>) -> Result<Arc<UnverifiedConnection>, Duration> {
        let mut inside = self.inside();
        if inside.here.len() >= self.most
            && let Some(oldest) = inside.here.front()
        {
            let waits = self.moment.saturating_sub(oldest.since.elapsed());
            if !waits.is_zero() {
                return Err(waits);
            }
            oldest.pushed_out.notify_one();
            inside.here.pop_front();
        }
        inside.met += 1;
        let (id, pushed_out) = (inside.met, Arc::new(Notify::new()));
        inside.here.push_back(UnverifiedSlot { id, since: Instant::now(), pushed_out: pushed_out.clone() });
        Ok(Arc::new(UnverifiedConnection { all: self.clone(), id, is_known: AtomicBool::new(false), pushed_out }))
    }

    fn forget(&self, id: u64) {
        self.inside().here.retain(|place| place.id != id);
        self.fewer.notify_one();
    }

    fn inside(&self) -> MutexGuard<'_, UnverifiedQueue> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl UnverifiedConnection {
    pub(super) fn is_known(&self) -> bool {
        self.is_known.load(Ordering::Relaxed)
    }

    /// It has shown a key, and is none any more.
    pub(super) fn is_let_in(&self) {
        self.is_known.store(true, Ordering::Relaxed);
        self.all.forget(self.id);
    }

    /// Returns when it has to go; never for one that is known by then. Cancel safe.
    pub(super) async fn has_to_go(&self) {
        tokio::select! {
            () = self.pushed_out.notified() => {}
            () = sleep(self.all.patience) => {}
        }
        if self.is_known() {
            std::future::pending().await
        }
    }
}

impl Drop for UnverifiedConnection {
    fn drop(&mut self) {
        if !self.is_known() {
            self.all.forget(self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    const NONE: Duration = Duration::ZERO;
    const LONG: Duration = Duration::from_secs(20);

    // M7
    #[tokio::test]
    async fn a_stranger_has_its_time_and_who_is_known_stays() {
        let all = UnverifiedConnections::at_most(8, Duration::from_millis(5), NONE);
        let (friend, stranger, later) = (all.meet().await, all.meet().await, all.meet().await);
        let times = async {
            friend.is_let_in();
            stranger.has_to_go().await;
            later.has_to_go().await;
        };
        tokio::select! {
            () = friend.has_to_go() => panic!("who is known has to go"),
            () = times => {}
        }
    }

    // M7
    #[tokio::test]
    async fn of_too_many_the_oldest_goes_and_nobody_who_is_known() {
        let all = UnverifiedConnections::at_most(2, LONG, NONE);
        let friend = all.meet().await;
        friend.is_let_in();
        let strangers = [all.meet().await, all.meet().await, all.meet().await];
        let gone = strangers.each_ref().map(|one| one.has_to_go().now_or_never().is_some());
        assert_eq!(gone, [true, false, false]);
        assert!(friend.has_to_go().now_or_never().is_none());
        assert_eq!(all.inside().here.len(), 2);
    }

    // A burst of clients that all have a key loses none of them.
    #[tokio::test]
    async fn nobody_has_to_go_before_their_moment_and_the_next_waits() {
        let all = UnverifiedConnections::at_most(1, LONG, LONG);
        let first = all.meet().await;
        let mut next = std::pin::pin!(all.meet());
        assert!(next.as_mut().now_or_never().is_none());
        assert!(first.has_to_go().now_or_never().is_none());
        first.is_let_in();
        tokio::time::timeout(LONG, next).await.expect("there is a place");
        assert!(first.has_to_go().now_or_never().is_none());
        // And where nobody comes forward, the next has a place after that moment.
        let all = UnverifiedConnections::at_most(1, LONG, Duration::from_millis(5));
        let first = all.meet().await;
        let _next = tokio::time::timeout(LONG, all.meet()).await.expect("there is a place");
        assert!(first.has_to_go().now_or_never().is_some());
    }

    #[tokio::test]
    async fn who_leaves_takes_no_place() {
        let all = UnverifiedConnections::at_most(2, LONG, LONG);
        for _ in 0..10 {
            drop(all.meet().await);
        }
        assert!(all.inside().here.is_empty());
        let known = all.meet().await;
        known.is_let_in();
        assert!(all.inside().here.is_empty());
    }
}
