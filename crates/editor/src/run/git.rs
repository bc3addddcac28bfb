//! Git, over the git program: what has changed, what is committed, which branch. Nothing of the repository's runs (`guard`), and
//! nothing of it lies outside of the granted folders (`repository`). What goes over the network is not done here.

mod add;
mod branch;
mod call;
mod commit;
mod diff;
mod guard;
pub(crate) mod news;
mod picture;
mod porcelain;
mod repository;
mod state;
mod status;

use std::{path::Path, sync::Arc, time::Duration};

pub(crate) use add::add;
pub(crate) use branch::branch;
use call::Git;
pub(crate) use commit::commit;
pub(crate) use diff::diff;
use news::KnownRepositories;
use prism_core::policy::{Code, Refusal};
use repository::Repository;
use serde_json::{Value, json};
use state::RepositoryState;
pub(crate) use status::status;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::{
    args::Args,
    refusal::failed,
    roots::GrantedRoots,
    run::observe::{ObservedRun, RunEnding, RunView},
    run::{RunContext, RunState},
};

/// What is known of the repositories that somebody has asked about, and how many ask at a time.
#[derive(Debug)]
pub(crate) struct Repositories {
    turns: Semaphore,
    known: KnownRepositories,
}

/// Runs of git at the same time. Further ones wait for their turn, which their actions' deadlines bound: each takes
/// milliseconds, and more at once would not make the disk faster.
const MAX_RUNS: usize = 8;

/// How long an action of git's may take: a few runs, each with its own patience.
const WITHIN: Duration = Duration::from_secs(60);

impl Repositories {
    pub(crate) fn new() -> Self {
        Self { turns: Semaphore::new(MAX_RUNS), known: KnownRepositories::default() }
    }

    async fn turn(&self) -> Result<SemaphorePermit<'_>, Refusal> {
        self.turns.acquire().await.map_err(|_| failed("the daemon is stopping"))
    }
}

/// Opens the repository that an action is about.
async fn opened(context: &RunContext, cwd: Option<String>) -> Result<Arc<Git>, Refusal> {
    let (roots, state) = (context.roots.clone(), context.state.clone());
    let found = move |_: &_| {
        let repository = Repository::find(&roots, cwd.as_deref())?;
        state.repositories.known.remember(&repository);
        Ok(repository)
    };
    let repository = context.state.editor.blocking(found).await?;
    let git = Git::open(repository, &context.roots, &context.state).await?;
    Ok(Arc::new(git))
}

/// Does a verb in sight of those who watch. Its runs of git take milliseconds and speak to programs, so what is shown is what came of
/// them all.
async fn in_sight(
    context: &RunContext,
    git: &Git,
    (verb, command): (&'static str, &str),
    doing: impl Future<Output = Result<Value, Refusal>>,
) -> Result<Value, Refusal> {
    let folder = &git.repository.worktree;
    let run = ObservedRun { verb, holder: &context.holder, name: "git", command, folder, size: None };
    let view = RunView::begin(&context.state, &run);
    let done = doing.await;
    if view.is_seen() {
        view.lines(&done.as_ref().map_or_else(|refusal| refusal.message.clone(), picture::draw));
    }
    view.ended(RunEnding { exit_code: Some(done.is_err().into()), ..RunEnding::default() });
    done
}

/// Tells what an action has done. That it could not be looked at takes nothing from what was done.
async fn tell(context: &RunContext, git: &Git) {
    let (state, repository, by) = (context.state.clone(), git.repository.clone(), context.holder.id);
    let look = move |_: &_| Ok(state.repositories.known.look(&repository, &state.editor.happenings, Some(by)));
    let _ = context.state.editor.blocking(look).await;
}

/// Says what is checked out in a folder, without running git: nothing where there is no repository, and why it is not told
/// where that lies elsewhere.
pub(crate) fn glance(roots: &GrantedRoots, folder: &str) -> Value {
    match Repository::look(roots, Some(folder)) {
        Ok(repository) => {
            let (own, common) = repository.halves();
            let state = RepositoryState::read(own, common);
            json!({
                "path": repository.worktree.display().to_string(),
                "branch": state.branch,
                "commit": state.commit,
                "is_merging": state.is_merging,
            })
        }
        Err(refusal) if refusal.code == Code::NotFound => Value::Null,
        Err(refusal) => json!({ "branch": null, "commit": null, "why": refusal.message }),
    }
}

/// The paths of buffers beneath a work tree that git does not see, as they are not saved.
fn unsaved(state: &RunState, worktree: &Path) -> Vec<String> {
    state.text.buffers.unsaved_beneath(worktree)
}

/// Takes a word that git reads as a name: of a branch, of a commit.
fn name(args: &mut Args, argument: &'static str) -> Result<Option<String>, Refusal> {
    const MOST: usize = 250;
    let Some(name) = args.maybe_text(argument)? else { return Ok(None) };
    let is_none = name.is_empty() || name.len() > MOST || name.starts_with('-') || name.chars().any(char::is_control);
    if is_none {
        let message = format!("`{argument}` must be 1 to {MOST} bytes, not begin with `-`, and hold no line breaks");
        return Err(Refusal::new(Code::BadArguments, message));
    }
    Ok(Some(name))
}

#[cfg(test)]
mod tests;
