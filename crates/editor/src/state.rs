//! What all rooms of the editor share: how things are set, what happens, which folders are closed, and how much is done at once.
//! What only one room has (open texts, terminals, language servers) is in that room's own state, which holds this one. So a room
//! sees what is below it, and none above.

mod cancellation;
mod context;

use std::{collections::BTreeMap, ffi::OsString, sync::Arc, time::Duration};

use prism_core::policy::{Code, Refusal};
use prism_os::census::OwnerDaemon;
use tokio::{sync::Semaphore, task::spawn_blocking};

use crate::{happening::Happenings, refusal::failed, roots::ClosedPaths, settings::EditorSettings};
pub(crate) use cancellation::Cancellation;
pub use context::GrantHolder;
pub(crate) use context::OrderContext;

/// What all actions share.
#[derive(Debug)]
pub(crate) struct EditorState {
    /// What children are given, without Prism's secrets.
    pub(crate) env: BTreeMap<OsString, OsString>,
    pub(crate) owner: OwnerDaemon,
    pub(crate) settings: EditorSettings,
    pub(crate) happenings: Happenings,
    pub(crate) closed: Arc<ClosedPaths>,
    at_work: Arc<Semaphore>,
    admitted: Arc<Semaphore>,
}

/// Actions that touch files at the same time. Further ones wait, up to `MAX_WAITING`: more would not make a disk faster, and
/// the runtime's threads are for others too.
const MAX_AT_WORK: usize = 8;

/// Actions that wait for their turn. Further ones are refused and told to come back: so many wait only if the disk hangs.
const MAX_WAITING: usize = 256;

impl EditorState {
    pub(crate) fn new(
        env: BTreeMap<OsString, OsString>,
        owner: OwnerDaemon,
        settings: EditorSettings,
        closed: Arc<ClosedPaths>,
    ) -> Self {
        Self {
            env,
            owner,
            settings,
            happenings: Happenings::new(),
            closed,
            at_work: Arc::new(Semaphore::new(MAX_AT_WORK)),
            admitted: Arc::new(Semaphore::new(MAX_AT_WORK + MAX_WAITING)),
        }
    }

    /// Has work done that blocks. If the future is dropped, the work is told, and finishes on its own.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Cancellation) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let busy = |_| Refusal {
            code: Code::TooFast,
            message: "too many actions wait for the disk; try again".to_owned(),
            retry_after: Some(Duration::from_secs(1)),
        };
        let admitted = self.admitted.clone().try_acquire_owned().map_err(busy)?;
        let turn = self.at_work.clone().acquire_owned().await.map_err(|_| failed("the daemon is stopping"))?;
        let (cancellation, cancels) = Cancellation::new();
        let done = spawn_blocking(move || {
            let _held = (admitted, turn);
            work(&cancellation)
        })
        .await;
        drop(cancels);
        done.unwrap_or_else(|_| Err(failed("the action broke down; this is a fault of Prism's")))
    }
}
