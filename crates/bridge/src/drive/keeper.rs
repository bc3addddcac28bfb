//! A child's keeper: a task that owns the process group until nothing of it is left, and tells the link of its end.

use std::{future::pending, io, process::ExitStatus, sync::Arc, time::Duration};

use prism_os::group::{self, ProcessGroup};
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};
use tracing::{info, warn};

use super::{LinkCommand, ceiling::MemoryLimit, destination::DestinationState};

/// How long a child gets to end by itself, and again after SIGTERM (B-13).
const STOP_GRACE: Duration = Duration::from_secs(2);
/// How long the end of a child waits for its last words: a grandchild may keep its stderr open for ever.
const LAST_WORDS: Duration = Duration::from_millis(200);
/// Orders that may wait. Beyond it an order is dropped: one is enough.
const ORDERS: usize = 1;

/// The link's hold on its child's process. Dropping it stops the child: gently first, then by force.
pub(super) struct ChildSupervisor {
    pid: u32,
    orders: mpsc::Sender<KillOrder>,
}

struct KillOrder;

impl ChildSupervisor {
    pub(super) fn take(
        group: ProcessGroup,
        ceiling: Option<MemoryLimit>,
        stderr: oneshot::Receiver<()>,
        shared: Arc<DestinationState>,
        link: mpsc::WeakSender<LinkCommand>,
    ) -> Self {
        let (orders, received) = mpsc::channel(ORDERS);
        let pid = group.pid();
        shared.metrics.children.inc();
        info!(destination = shared.config.name, pid, "Started the server");
        tokio::spawn(keep(group, ceiling, stderr, received, shared, link));
        Self { pid, orders }
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// Ends the child at once.
    pub(super) fn kill(&self) {
        let _ = self.orders.try_send(KillOrder);
    }
}

async fn keep(
    group: ProcessGroup,
    ceiling: Option<MemoryLimit>,
    stderr: oneshot::Receiver<()>,
    mut orders: mpsc::Receiver<KillOrder>,
    shared: Arc<DestinationState>,
    link: mpsc::WeakSender<LinkCommand>,
) {
    let pid = group.pid();
    let exceeded = async {
        match &ceiling {
            Some(ceiling) => ceiling.exceeded(pid).await,
            None => pending().await,
        }
    };
    let (order, went_over) = tokio::select! {
        () = group.exited() => (Some(KillOrder), false),
        order = orders.recv() => (order, false),
        () = exceeded => (Some(KillOrder), true),
    };
    let destination = &shared.config.name;
    match order {
        Some(KillOrder) => {
            group.kill();
            group.exited().await;
            let status = shown(group.finish());
            let why = ceiling.filter(|ceiling| went_over || ceiling.was_enforced()).map(|ceiling| ceiling.why());
            match &why {
                Some(why) => warn!(destination, pid, status, "Out of memory: {why}"),
                None => warn!(destination, pid, status, "The server ended"),
            }
            shared.trouble.note(&why.clone().unwrap_or_else(|| format!("its process ended: {status}")));
            // What it wrote last is mostly why it ended.
            let _ = timeout(LAST_WORDS, stderr).await;
            if let Some(link) = link.upgrade() {
                let _ = link.send(LinkCommand::Exited { pid, status, why }).await;
            }
        }
        // The link let go.
        None => {
            let status = shown(group::stop(group, STOP_GRACE).await);
            info!(destination, pid, status, "Stopped the server");
        }
    }
    shared.metrics.children.dec();
}

fn shown(status: io::Result<ExitStatus>) -> String {
    status.map_or_else(|error| error.to_string(), |status| status.to_string())
}
