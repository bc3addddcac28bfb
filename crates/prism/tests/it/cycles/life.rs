//! What all clients know of the daemon's life, and what is known of theirs.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};

use tokio::sync::watch;

use crate::support::soon;

pub(crate) struct Life {
    kills: watch::Sender<Kills>,
    works: watch::Sender<bool>,
    resting: AtomicUsize,
    /// By session.
    answers: Vec<AtomicU64>,
    lost: AtomicU64,
}

#[derive(Clone, Copy, Default)]
struct Kills {
    all: u64,
    /// Those after which there was a daemon again.
    survived: u64,
}

/// The kills that were over when something began.
#[derive(Clone, Copy)]
pub(crate) struct Since(u64);

impl Life {
    pub(crate) fn new(sessions: usize) -> Self {
        Self {
            kills: watch::Sender::new(Kills::default()),
            works: watch::Sender::new(false),
            resting: AtomicUsize::new(0),
            answers: (0..sessions).map(|_| AtomicU64::new(0)).collect(),
            lost: AtomicU64::new(0),
        }
    }

    /// Said before the daemon is killed, so that nobody learns of it earlier.
    pub(crate) fn killing(&self) {
        self.kills.send_modify(|kills| kills.all += 1);
    }

    /// The daemon is there again.
    pub(crate) fn back(&self) {
        self.kills.send_modify(|kills| kills.survived = kills.all);
    }

    pub(crate) fn now(&self) -> Since {
        Since(self.kills.borrow().survived)
    }

    /// Whether the daemon was dead at any moment since then.
    pub(crate) fn was_killed(&self, since: Since) -> bool {
        self.kills.borrow().all > since.0
    }

    /// Waits until the daemon was dead at any moment since then.
    pub(crate) async fn killed(&self, since: Since) {
        let mut kills = self.kills.subscribe();
        kills.wait_for(|kills| kills.all > since.0).await.expect("the test outlives its clients");
    }

    /// Waits until there is a daemon again.
    pub(crate) async fn is_back(&self) {
        let mut kills = self.kills.subscribe();
        let back = soon("the daemon is back", kills.wait_for(|kills| kills.all == kills.survived)).await;
        back.expect("the test outlives its clients");
    }

    pub(crate) fn go(&self) {
        self.works.send_replace(true);
    }

    pub(crate) fn rest(&self) {
        self.works.send_replace(false);
    }

    /// How many clients rest.
    pub(crate) fn resting(&self) -> usize {
        self.resting.load(SeqCst)
    }

    /// Waits until it is time to work.
    pub(crate) async fn turn(&self) {
        let mut works = self.works.subscribe();
        if !*works.borrow_and_update() {
            self.resting.fetch_add(1, SeqCst);
            works.wait_for(|works| *works).await.expect("the test outlives its clients");
            self.resting.fetch_sub(1, SeqCst);
        }
    }

    pub(crate) fn is_working(&self) -> bool {
        *self.works.borrow()
    }

    pub(crate) fn answered(&self, session: usize) {
        self.answers[session].fetch_add(1, SeqCst);
    }

    pub(crate) fn lost(&self) {
        self.lost.fetch_add(1, SeqCst);
    }

    pub(crate) fn answers(&self) -> Vec<u64> {
        self.answers.iter().map(|answers| answers.load(SeqCst)).collect()
    }

    /// The calls that were answered, and those that were lost with a daemon.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.answers().iter().sum(), self.lost.load(SeqCst))
    }
}

/// A random number below that.
pub(crate) fn below(bound: u64) -> u64 {
    u64::from(getrandom::u32().expect("the system has randomness")) % bound
}
