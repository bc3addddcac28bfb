//! The work that a `RemoteConnection` has under way: one future per message on its way, and one per stream. They are driven by
//! whoever waits for what comes of them, in the link's own task: a task each would cost every call two more hops between
//! threads.

use std::pin::Pin;

use futures_util::{
    StreamExt,
    future::{AbortHandle, Abortable},
    stream::FuturesUnordered,
};

type Chore = Pin<Box<dyn Future<Output = ()> + Send>>;

#[derive(Default)]
pub(super) struct RemoteTasks {
    under_way: FuturesUnordered<Abortable<Chore>>,
}

impl RemoteTasks {
    /// Takes on one more. It moves when [`Self::run`] is waited for.
    pub(super) fn add(&mut self, chore: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        let (handle, registration) = AbortHandle::new_pair();
        self.under_way.push(Abortable::new(Box::pin(chore), registration));
        handle
    }

    pub(super) fn len(&self) -> usize {
        self.under_way.len()
    }

    /// Works until one is done or was aborted; for ever if there is none. Cancel safe.
    pub(super) async fn run(&mut self) {
        if self.under_way.next().await.is_none() {
            std::future::pending::<()>().await;
        }
    }

    /// Drops all of them, and with them their connections.
    pub(super) fn abort_all(&mut self) {
        self.under_way.clear();
    }
}
