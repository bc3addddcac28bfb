//! The runtime: which verb is done by what, and how much is done at once.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use prism_core::policy::{self, Action, Code, Refusal};
use prism_os::census::Owner;
use serde_json::{Map, Value};
use tokio::{sync::Semaphore, task::spawn_blocking};

use crate::{
    Shown,
    args::Args,
    command, edit, files, find,
    ground::{Closed, Ground},
    names,
    prepared::{Prepared, Work},
    tree, workspace,
};

/// Does what grants allow. One for the daemon; a copy is the same one.
#[derive(Clone, Debug)]
pub struct Runtime(Arc<Desk>);

/// What the daemon has to say about where its children run.
#[derive(Debug)]
pub struct Surroundings {
    /// What commands are given. Prism's own variables and secrets are taken out.
    pub env: BTreeMap<OsString, OsString>,
    /// Whose children they are, for the census of orphans.
    pub owner: Owner,
    /// Folders that no action reaches, even beneath a granted one: Prism's home, with the management secret.
    pub closed: Vec<PathBuf>,
}

/// One action of a holder's.
#[derive(Debug)]
pub struct Order {
    pub verb: &'static Action,
    pub args: Map<String, Value>,
    /// What the grant has. Relative paths are the first one's.
    pub roots: Vec<policy::Root>,
}

/// What all actions share.
#[derive(Debug)]
pub(crate) struct Desk {
    pub(crate) env: BTreeMap<OsString, OsString>,
    pub(crate) owner: Owner,
    closed: Arc<Closed>,
    at_work: Arc<Semaphore>,
    admitted: Arc<Semaphore>,
    pub(crate) commands: Arc<Semaphore>,
}

/// Whether nobody waits for the work any more.
#[derive(Debug)]
pub(crate) struct Stop(Arc<AtomicBool>);

/// Actions that touch files at the same time. Further ones wait, up to `MAX_WAITING`: more would not make a disk faster, and
/// the runtime's threads are for others too.
const MAX_AT_WORK: usize = 8;

/// Actions that wait for their turn. Further ones are refused and told to come back: so many wait only if the disk hangs.
const MAX_WAITING: usize = 256;

/// Commands that run at the same time. Further ones are refused, not queued: one can take ten minutes.
pub(crate) const MAX_COMMANDS: usize = 16;

// === impl Runtime ===

impl Runtime {
    pub fn new(surroundings: Surroundings) -> Self {
        let Surroundings { env, owner, closed } = surroundings;
        Self(Arc::new(Desk {
            env: command::without_secrets(env),
            owner,
            closed: Arc::new(Closed::new(closed)),
            at_work: Arc::new(Semaphore::new(MAX_AT_WORK)),
            admitted: Arc::new(Semaphore::new(MAX_AT_WORK + MAX_WAITING)),
            commands: Arc::new(Semaphore::new(MAX_COMMANDS)),
        }))
    }

    /// Opens all that an action is about. Nothing is changed.
    pub async fn prepare(&self, order: Order) -> Result<Prepared, Refusal> {
        let Order { verb, args, roots } = order;
        let prepare = way_of(verb)?;
        let ground = Ground::new(roots, self.0.closed.clone());
        let opened = self.0.blocking(move |_| prepare(Args::new(args), &ground)).await?;
        Ok(Prepared::new(self.0.clone(), opened))
    }
}

type Prepare = fn(Args, &Ground) -> Result<(Shown, Work), Refusal>;

fn way_of(verb: &Action) -> Result<Prepare, Refusal> {
    Ok(match verb.verb {
        "open_file" => files::open,
        "create_file" => files::create,
        "write_file" => files::write,
        "delete_file" => names::delete,
        "rename_file" => names::rename,
        "search_files" => tree::search,
        "edit_buffer" => edit::edit,
        "explore_tree" => tree::explore,
        "get_workspace_info" => workspace::info,
        "exec_command" => command::prepare,
        "find_in_file" => find::find,
        other => {
            let message = format!("{other} needs an editor that is connected; the built-in one cannot do it");
            return Err(Refusal::new(Code::Unsupported, message));
        }
    })
}

// === impl Desk ===

impl Desk {
    /// Has work done that blocks. If the future is dropped, the work is told, and finishes on its own.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Stop) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let busy = |_| Refusal {
            code: Code::TooFast,
            message: "too many actions wait for the disk; try again".to_owned(),
            retry_after: Some(Duration::from_secs(1)),
        };
        let admitted = self.admitted.clone().try_acquire_owned().map_err(busy)?;
        let turn = self.at_work.clone().acquire_owned().await.map_err(|_| failed("the daemon is stopping"))?;
        let (stop, stops) = Stop::new();
        let done = spawn_blocking(move || {
            let _held = (admitted, turn);
            work(&stop)
        })
        .await;
        drop(stops);
        done.unwrap_or_else(|_| Err(failed("the action broke down; this is a fault of Prism's")))
    }
}

// === impl Stop ===

/// Tells the work when it is dropped.
struct Stops(Arc<AtomicBool>);

impl Stop {
    fn new() -> (Self, Stops) {
        let flag = Arc::new(AtomicBool::new(false));
        (Self(flag.clone()), Stops(flag))
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Stops {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

pub(crate) fn failed(message: impl Into<String>) -> Refusal {
    Refusal::new(Code::Failed, message)
}
