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

use prism_core::policy::{Code, Refusal};
use serde_json::{Value, json};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::{
    args::Args,
    ground::Ground,
    observe::{ObservedRun, RunEnding, RunView},
    runtime::{Desk, failed},
    scene::Scene,
};
pub(crate) use add::add;
pub(crate) use branch::branch;
use call::Git;
pub(crate) use commit::commit;
pub(crate) use diff::diff;
use news::Known;
use repository::Repository;
use state::State;
pub(crate) use status::status;

/// What is known of the repositories that somebody has asked about, and how many ask at a time.
#[derive(Debug)]
pub(crate) struct Repositories {
    turns: Semaphore,
    known: Known,
}

/// Runs of git at the same time. Further ones wait for their turn, which their actions' deadlines bound: each takes
/// milliseconds, and more at once would not make the disk faster.
const MAX_RUNS: usize = 8;

/// How long an action of git's may take: a few runs, each with its own patience.
const WITHIN: Duration = Duration::from_secs(60);

impl Repositories {
    pub(crate) fn new() -> Self {
        Self { turns: Semaphore::new(MAX_RUNS), known: Known::default() }
    }

    async fn turn(&self) -> Result<SemaphorePermit<'_>, Refusal> {
        self.turns.acquire().await.map_err(|_| failed("the daemon is stopping"))
    }
}

/// Opens the repository that an action is about.
async fn opened(scene: &Scene, cwd: Option<String>) -> Result<Arc<Git>, Refusal> {
    let (ground, desk) = (scene.ground.clone(), scene.desk.clone());
    let found = move |_: &_| {
        let repository = Repository::find(&ground, cwd.as_deref())?;
        desk.repositories.known.seen(&repository);
        Ok(repository)
    };
    let repository = scene.desk.blocking(found).await?;
    let git = Git::open(repository, &scene.ground, &scene.desk).await?;
    Ok(Arc::new(git))
}

/// Does a verb in sight of those who watch. Its runs of git take milliseconds and speak to programs, so what is shown is what came of
/// them all.
async fn in_sight(
    scene: &Scene,
    git: &Git,
    (verb, command): (&'static str, &str),
    doing: impl Future<Output = Result<Value, Refusal>>,
) -> Result<Value, Refusal> {
    let folder = &git.repository.worktree;
    let run = ObservedRun { verb, holder: &scene.holder, name: "git", command, folder, size: None };
    let view = RunView::begin(&scene.desk, &run);
    let done = doing.await;
    if view.is_seen() {
        view.lines(&done.as_ref().map_or_else(|refusal| refusal.message.clone(), picture::draw));
    }
    view.ended(RunEnding { exit_code: Some(done.is_err().into()), ..RunEnding::default() });
    done
}

/// Tells what an action has done. That it could not be looked at takes nothing from what was done.
async fn tell(scene: &Scene, git: &Git) {
    let (desk, repository, by) = (scene.desk.clone(), git.repository.clone(), scene.holder.id);
    let look = move |_: &_| Ok(desk.repositories.known.look(&repository, &desk.happenings, Some(by)));
    let _ = scene.desk.blocking(look).await;
}

/// Says what is checked out in a folder, without running git: nothing where there is no repository, and why it is not told
/// where that lies elsewhere.
pub(crate) fn glance(ground: &Ground, folder: &str) -> Value {
    match Repository::look(ground, Some(folder)) {
        Ok(repository) => {
            let (own, common) = repository.halves();
            let state = State::read(own, common);
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
fn unsaved(desk: &Desk, worktree: &Path) -> Vec<String> {
    desk.buffers.unsaved_beneath(worktree)
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
