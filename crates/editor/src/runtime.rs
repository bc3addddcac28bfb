//! The runtime: which verb is done by what, and how much is done at once.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::PathBuf,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use prism_core::policy::{self, Action, Code, Refusal};
use prism_os::census::Owner;
use serde_json::{Map, Value};
use tokio::{
    sync::{Semaphore, broadcast},
    task::spawn_blocking,
};

use crate::{
    Happening, Holder, Settings,
    args::Args,
    buffers::{self, Buffers},
    command, edit,
    fence::Fences,
    files, find,
    git::{self, Repositories},
    ground::{Closed, Ground},
    happening::Happenings,
    lsp::{self, Servers},
    names,
    observe::RunObserver,
    panes::{self, Panes},
    prepared::{Doing, Opened, Prepared},
    project,
    scene::Scene,
    search, syntax,
    terminal::{self, Terminals},
    tree,
    watch::{self, GitHooks, Watches},
    workspace,
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
    /// A folder of Prism's own for unsaved text, which it is taken up from when the daemon is started again.
    pub unsaved: Option<PathBuf>,
    pub settings: Settings,
}

/// One action of a holder's.
#[derive(Debug)]
pub struct Order {
    pub verb: &'static Action,
    pub args: Map<String, Value>,
    /// What the grant has. Relative paths are the first one's.
    pub roots: Vec<policy::Root>,
    pub holder: Holder,
}

/// What all actions share.
#[derive(Debug)]
pub(crate) struct Desk {
    pub(crate) env: BTreeMap<OsString, OsString>,
    pub(crate) owner: Owner,
    pub(crate) settings: Settings,
    pub(crate) buffers: Buffers,
    pub(crate) panes: Panes,
    pub(crate) repositories: Repositories,
    pub(crate) watches: Watches,
    pub(crate) servers: Servers,
    pub(crate) happenings: Happenings,
    pub(crate) fences: Fences,
    pub(crate) terminals: Terminals,
    pub(crate) closed: Arc<Closed>,
    /// Who is told of what is run, if anybody is.
    pub(crate) observer: OnceLock<Arc<dyn RunObserver>>,
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
    /// Must be called within a tokio runtime.
    pub fn new(surroundings: Surroundings) -> Self {
        let Surroundings { env, owner, closed, unsaved, settings } = surroundings;
        let happenings = Happenings::new();
        let env = command::without_secrets(env);
        let closed = Arc::new(Closed::new(closed));
        let servers = Servers::new(env.clone(), owner.clone(), settings.clone(), happenings.clone());
        let desk = Arc::new(Desk {
            fences: Fences::new(&settings, &env, closed.clone()),
            terminals: Terminals::default(),
            env,
            owner,
            settings,
            buffers: Buffers::new(happenings.clone(), unsaved),
            panes: Panes::default(),
            repositories: Repositories::new(),
            watches: Watches::new(Some(GitHooks { attend: git::news::attend, changed: git::news::changed })),
            servers,
            happenings,
            closed,
            observer: OnceLock::new(),
            at_work: Arc::new(Semaphore::new(MAX_AT_WORK)),
            admitted: Arc::new(Semaphore::new(MAX_AT_WORK + MAX_WAITING)),
            commands: Arc::new(Semaphore::new(MAX_COMMANDS)),
        });
        tokio::spawn(buffers::keeping(Arc::downgrade(&desk)));
        Self(desk)
    }

    /// Opens all that an action is about. Nothing is changed.
    pub async fn prepare(&self, order: Order) -> Result<Prepared, Refusal> {
        let Order { verb, args, roots, holder } = order;
        let way = way_of(verb)?;
        let ground = Ground::new(roots, self.0.closed.clone());
        let scene = Scene { ground, desk: self.0.clone(), holder };
        let opened = match way {
            Way::Blocking(prepare) => self.0.blocking(move |_| prepare(Args::new(args), &scene)).await?,
            Way::Async(prepare) => prepare(Args::new(args), scene).await?,
        };
        Ok(Prepared::new(self.0.clone(), opened))
    }

    /// Closes these files to all verbs, and no others: what the daemon is configured by, wherever that lies. Builds and
    /// commands are kept from folders only, as a fence that goes around a file leaves nobody room to make another beside it.
    pub fn close_files(&self, files: &[PathBuf]) {
        self.0.closed.close_files(files);
    }

    /// Why what it runs is kept by less than a sandbox, if it is. Blocks, for some milliseconds at the first time.
    pub fn lacks_sandbox(&self) -> Option<String> {
        self.0.fences.lacks()
    }

    /// Has nothing that it runs connect to a port, whatever network was granted.
    pub fn keep_from(&self, port: u16) {
        self.0.fences.keep_from(port);
    }

    /// Has somebody told of everything that is run from now on. The first one stays.
    pub fn observe_runs(&self, observer: Arc<dyn RunObserver>) {
        let _ = self.0.observer.set(observer);
    }

    pub(crate) fn desk(&self) -> Arc<Desk> {
        self.0.clone()
    }

    /// What happens from now on.
    pub fn listen(&self) -> broadcast::Receiver<Arc<Happening>> {
        self.0.happenings.listen()
    }

    /// Has what changes from outside beneath a holder's folders told, until it leaves.
    pub async fn watch(&self, holder: u128, roots: Vec<policy::Root>) -> Result<(), Refusal> {
        let (desk, ground) = (self.0.clone(), Ground::new(roots, self.0.closed.clone()));
        self.0.blocking(move |_| desk.watches.want(&desk, holder, ground)).await
    }

    /// Ends what a holder had of its own.
    pub async fn leave(&self, holder: u128) {
        self.0.panes.left(holder);
        self.0.servers.left(holder);
        self.0.terminals.left(holder);
        self.0.fences.left(holder);
        let desk = self.0.clone();
        let _ = spawn_blocking(move || desk.watches.left(&desk, holder)).await;
    }

    /// Ends everything. Unsaved text is kept.
    pub async fn close(&self) {
        // What waits for its end longest, first.
        tokio::join!(self.0.servers.close(), self.0.terminals.close());
        self.0.watches.close();
        let desk = self.0.clone();
        let _ = spawn_blocking(move || {
            desk.buffers.keep();
            desk.fences.close();
        })
        .await;
    }
}

/// How a verb is prepared: on a thread that may block, or waiting for others.
enum Way {
    Blocking(fn(Args, &Scene) -> Result<Opened, Refusal>),
    Async(fn(Args, Scene) -> Doing<Opened>),
}

fn way_of(verb: &Action) -> Result<Way, Refusal> {
    use Way::{Async, Blocking};
    Ok(match verb.verb {
        "open_file" => Blocking(files::open),
        "create_file" => Blocking(files::create),
        "write_file" => Blocking(files::write),
        "delete_file" => Blocking(names::delete),
        "rename_file" => Blocking(names::rename),
        "search_files" => Blocking(tree::search),
        "watch_file" => Blocking(watch::watch),
        "get_buffers" => Blocking(buffers::list),
        "edit_buffer" => Blocking(edit::edit),
        "save_buffer" => Blocking(buffers::save),
        "close_buffer" => Blocking(buffers::close),
        "switch_buffer" => Blocking(panes::switch),
        "split_pane" => Blocking(panes::split),
        "get_cursor_pos" => Blocking(panes::cursor),
        "set_cursor_pos" => Blocking(panes::set_cursor),
        "get_selection" => Blocking(panes::selection),
        "sync_viewport" => Blocking(panes::viewport),
        "analyze_syntax" => Blocking(syntax::analyze),
        "git_status" => Async(git::status),
        "git_add" => Async(git::add),
        "git_commit" => Async(git::commit),
        "git_diff" => Async(git::diff),
        "git_branch" => Async(git::branch),
        "get_errors" => Async(lsp::errors),
        "get_completions" => Async(lsp::completions),
        "format_code" => Async(lsp::format),
        "goto_definition" => Async(lsp::locate),
        "get_code_lens" => Async(lsp::lenses),
        "apply_quick_fix" => Async(lsp::fix),
        "refactor_symbol" => Async(lsp::rename),
        "manage_plugins" => Async(lsp::manage),
        "explore_tree" => Blocking(tree::explore),
        "get_workspace_info" => Blocking(workspace::info),
        "build_project" => Blocking(project::build),
        "run_tests" => Blocking(project::test),
        "exec_command" => Blocking(command::prepare),
        "open_terminal" => Blocking(terminal::open),
        "get_output" => Blocking(terminal::output),
        "send_input" => Blocking(terminal::input),
        "find_in_file" => Blocking(find::find),
        "find_in_project" => Blocking(search::words),
        "regex_search" => Blocking(search::expression),
        "replace_text" => Blocking(search::replace),
        other => {
            let message = format!("{other} is for editors that are connected; the built-in one does not have it");
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

impl Drop for Stops {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

pub(crate) fn failed(message: impl Into<String>) -> Refusal {
    Refusal::new(Code::Failed, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    // E-01
    #[test]
    fn every_verb_is_served_with_no_editor_open() {
        for verb in Action::all() {
            assert!(way_of(verb).is_ok(), "{}", verb.verb);
        }
    }
}
