//! Whether anybody still waits for a piece of work.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// Whether nobody waits for the work any more.
#[derive(Debug)]
pub(crate) struct Cancellation(Arc<AtomicBool>);

/// Tells the work when it is dropped.
pub(super) struct CancelOnDrop(Arc<AtomicBool>);

impl Cancellation {
    pub(super) fn new() -> (Self, CancelOnDrop) {
        let flag = Arc::new(AtomicBool::new(false));
        (Self(flag.clone()), CancelOnDrop(flag))
    }

    /// For work that ends by itself.
    pub(crate) fn never() -> Self {
        Self(Arc::default())
    }

    #[cfg(test)]
    pub(crate) fn at_once() -> Self {
        Self(Arc::new(AtomicBool::new(true)))
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
