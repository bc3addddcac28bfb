//! The runtime: which verb is done by what, and how much is done at once.

pub(crate) mod locate;
mod workspace;

use std::{collections::BTreeMap, ffi::OsString, path::PathBuf, sync::Arc};

use prism_core::policy::{self, Code, Refusal, VerbSpec};
use prism_os::census::OwnerDaemon;
use serde_json::{Map, Value};
use tokio::{sync::broadcast, task::spawn_blocking};

use crate::run::observe::RunObserver;
use crate::{
    args::Args,
    disk::{
        files, find, names, search, tree,
        watch::{self, WatchContext, Watches},
    },
    happening::EditorEvent,
    lsp::{self, LspContext, LspState},
    prepared::{Doing, Opened, PreparedVerb},
    roots::{ClosedPaths, GrantedRoots},
    run::{RunContext, RunState, command, fence::Fences, git, project, terminal},
    settings::EditorSettings,
    state::{EditorState, GrantHolder, OrderContext},
    syntax,
    text::{TextContext, TextState, buffers, edit, panes},
};

/// Does what grants allow. One for the daemon; a copy is the same one.
#[derive(Clone, Debug)]
pub struct BuiltinEditor(Arc<RuntimeState>);

/// What the daemon has to say about where its children run.
#[derive(Debug)]
pub struct EditorEnvironment {
    /// What commands are given. Prism's own variables and secrets are taken out.
    pub env: BTreeMap<OsString, OsString>,
    /// Whose children they are, for the census of orphans.
    pub owner: OwnerDaemon,
    /// Folders that no action reaches, even beneath a granted one: Prism's home, with the management secret.
    pub closed: Vec<PathBuf>,
    /// A folder of Prism's own for unsaved text, which it is taken up from when the daemon is started again.
    pub unsaved: Option<PathBuf>,
    pub settings: EditorSettings,
}

/// One action of a holder's.
#[derive(Debug)]
pub struct VerbOrder {
    pub verb: &'static VerbSpec,
    pub args: Map<String, Value>,
    /// What the grant has. Relative paths are the first one's.
    pub roots: Vec<policy::GrantRoot>,
    pub holder: GrantHolder,
}

/// Every room's state, from the lowest up.
#[derive(Debug)]
pub(crate) struct RuntimeState {
    pub(crate) editor: Arc<EditorState>,
    pub(crate) text: Arc<TextState>,
    pub(crate) watches: Arc<Watches>,
    pub(crate) run: Arc<RunState>,
    pub(crate) lsp: Arc<LspState>,
    fences: Arc<Fences>,
}

// === impl BuiltinEditor ===

impl BuiltinEditor {
    /// Must be called within a tokio runtime.
    pub fn new(surroundings: EditorEnvironment) -> Self {
        let state = RuntimeState::new(surroundings);
        tokio::spawn(buffers::keep_unsaved(Arc::downgrade(&state.text)));
        Self(Arc::new(state))
    }

    /// Opens all that an action is about. Nothing is changed.
    pub async fn prepare(&self, order: VerbOrder) -> Result<PreparedVerb, Refusal> {
        let VerbOrder { verb, args, roots, holder } = order;
        let preparation = preparation_of(verb)?;
        let roots = GrantedRoots::new(roots, self.0.editor.closed.clone());
        let (args, state) = (Args::new(args), &self.0);
        let opened = match preparation {
            Preparation::Text(prepare) => state.blocking(args, roots, holder, &state.text, prepare).await?,
            Preparation::Watch(prepare) => state.blocking(args, roots, holder, &state.watches, prepare).await?,
            Preparation::Run(prepare) => state.blocking(args, roots, holder, &state.run, prepare).await?,
            Preparation::All(prepare) => state.blocking(args, roots, holder, state, prepare).await?,
            Preparation::Git(prepare) => {
                prepare(args, OrderContext { roots, holder, state: state.run.clone() }).await?
            }
            Preparation::Lsp(prepare) => {
                prepare(args, OrderContext { roots, holder, state: state.lsp.clone() }).await?
            }
        };
        Ok(PreparedVerb::new(state.editor.clone(), opened))
    }

    /// Closes these files to all verbs, and no others: what the daemon is configured by, wherever that lies. Builds and
    /// commands are kept from folders only, as a fence that goes around a file leaves nobody room to make another beside it.
    pub fn close_files(&self, files: &[PathBuf]) {
        self.0.editor.closed.close_files(files);
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
        let _ = self.0.run.observer.set(observer);
    }

    pub(crate) fn state(&self) -> &RuntimeState {
        &self.0
    }

    /// What happens from now on.
    pub fn listen(&self) -> broadcast::Receiver<Arc<EditorEvent>> {
        self.0.editor.happenings.listen()
    }

    /// Has what changes from outside beneath a holder's folders told, until it leaves.
    pub async fn watch(&self, holder: u128, roots: Vec<policy::GrantRoot>) -> Result<(), Refusal> {
        let (watches, roots) = (self.0.watches.clone(), GrantedRoots::new(roots, self.0.editor.closed.clone()));
        self.0.editor.blocking(move |_| watches.want(holder, roots)).await
    }

    /// Ends what a holder had of its own.
    pub async fn leave(&self, holder: u128) {
        self.0.text.panes.release(holder);
        self.0.lsp.servers.release(holder);
        self.0.run.terminals.release(holder);
        self.0.fences.release(holder);
        let watches = self.0.watches.clone();
        let _ = spawn_blocking(move || watches.release(holder)).await;
    }

    /// Ends everything. Unsaved text is kept.
    pub async fn close(&self) {
        // What waits for its end longest, first.
        tokio::join!(self.0.lsp.servers.close(), self.0.run.terminals.close());
        self.0.watches.close();
        let state = self.0.clone();
        let _ = spawn_blocking(move || {
            state.text.buffers.write_unsaved();
            state.fences.close();
        })
        .await;
    }
}

/// How a verb is prepared: in its room, and on a thread that may block or waiting for others.
enum Preparation {
    Text(fn(Args, &TextContext) -> Result<Opened, Refusal>),
    Watch(fn(Args, &WatchContext) -> Result<Opened, Refusal>),
    Run(fn(Args, &RunContext) -> Result<Opened, Refusal>),
    Git(fn(Args, RunContext) -> Doing<Opened>),
    Lsp(fn(Args, LspContext) -> Doing<Opened>),
    All(fn(Args, &OrderContext<RuntimeState>) -> Result<Opened, Refusal>),
}

fn preparation_of(verb: &VerbSpec) -> Result<Preparation, Refusal> {
    use Preparation::{All, Git, Lsp, Run, Text, Watch};
    Ok(match verb.verb {
        "open_file" => Text(files::open),
        "create_file" => Text(files::create),
        "write_file" => Text(files::write),
        "delete_file" => Text(names::delete),
        "rename_file" => Text(names::rename),
        "search_files" => Text(tree::search),
        "watch_file" => Watch(watch::watch),
        "get_buffers" => Text(buffers::list),
        "edit_buffer" => Text(edit::edit),
        "save_buffer" => Text(buffers::save),
        "close_buffer" => Text(buffers::close),
        "switch_buffer" => Text(panes::switch),
        "split_pane" => Text(panes::split),
        "get_cursor_pos" => Text(panes::cursor),
        "set_cursor_pos" => Text(panes::set_cursor),
        "get_selection" => Text(panes::selection),
        "sync_viewport" => Text(panes::viewport),
        "analyze_syntax" => Text(syntax::analyze),
        "git_status" => Git(git::status),
        "git_add" => Git(git::add),
        "git_commit" => Git(git::commit),
        "git_diff" => Git(git::diff),
        "git_branch" => Git(git::branch),
        "get_errors" => Lsp(lsp::errors),
        "get_completions" => Lsp(lsp::completions),
        "format_code" => Lsp(lsp::format),
        "goto_definition" => Lsp(lsp::locate),
        "get_code_lens" => Lsp(lsp::lenses),
        "apply_quick_fix" => Lsp(lsp::fix),
        "refactor_symbol" => Lsp(lsp::rename),
        "manage_plugins" => Lsp(lsp::manage),
        "explore_tree" => Text(tree::explore),
        "get_workspace_info" => All(workspace::info),
        "build_project" => Run(project::build),
        "run_tests" => Run(project::test),
        "exec_command" => Run(command::prepare),
        "open_terminal" => Run(terminal::open),
        "get_output" => Run(terminal::output),
        "send_input" => Run(terminal::input),
        "find_in_file" => Text(find::find),
        "find_in_project" => Text(search::words),
        "regex_search" => Text(search::expression),
        "replace_text" => Text(search::replace),
        other => {
            let message = format!("{other} is for editors that are connected; the built-in one does not have it");
            return Err(Refusal::new(Code::Unsupported, message));
        }
    })
}

// === impl RuntimeState ===

impl RuntimeState {
    /// Has a verb prepared on a thread that may block, on the state of its room.
    async fn blocking<S: Send + Sync + 'static>(
        &self,
        args: Args,
        roots: GrantedRoots,
        holder: GrantHolder,
        state: &Arc<S>,
        prepare: fn(Args, &OrderContext<S>) -> Result<Opened, Refusal>,
    ) -> Result<Opened, Refusal> {
        let context = OrderContext { roots, holder, state: state.clone() };
        self.editor.blocking(move |_| prepare(args, &context)).await
    }

    fn new(surroundings: EditorEnvironment) -> Self {
        let EditorEnvironment { env, owner, closed, unsaved, settings } = surroundings;
        let env = command::without_secrets(env);
        let closed = Arc::new(ClosedPaths::new(closed));
        let fences = Arc::new(Fences::new(&settings, &env, closed.clone()));
        let editor = Arc::new(EditorState::new(env, owner, settings, closed));
        let text = Arc::new(TextState::new(editor.clone(), unsaved));
        let run = Arc::new(RunState::new(text.clone(), fences.clone()));
        let watches = Arc::new(Watches::new(text.clone(), Some(Box::new(run.clone()))));
        let lsp = Arc::new(LspState::new(text.clone(), fences.clone()));
        Self { editor, text, watches, run, lsp, fences }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // E-01
    #[test]
    fn every_verb_is_served_with_no_editor_open() {
        for verb in VerbSpec::all() {
            assert!(preparation_of(verb).is_ok(), "{}", verb.verb);
        }
    }
}
