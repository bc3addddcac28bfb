//! `git_status`: what is checked out, and what differs from it.

use prism_core::policy::Refusal;
use serde_json::{Value, json};

use super::{
    WITHIN,
    call::{Git, MAX_STDOUT},
    guard::GitReach,
    in_sight, opened,
    porcelain::{EntryChange, WorktreeStatus},
    unsaved,
};
use crate::{
    args::Args,
    prepared::{Doing, Opened, Work},
    run::{RunContext, RunState},
    shown::ActionPreview,
};

/// Entries of an answer. Of more the first are told, and that there are more.
const MAX_ENTRIES: usize = 5_000;

pub(crate) fn status(mut args: Args, context: RunContext) -> Doing<Opened> {
    Box::pin(async move {
        let cwd = args.maybe_text("cwd")?;
        args.done()?;
        let git = opened(&context, cwd).await?;
        let shown = ActionPreview::plain(format!("Look what has changed in {}", git.repository.worktree.display()));
        let work = Work::task(move |_| async move {
            let doing = async {
                let (status, is_whole) = read(&git).await?;
                Ok(status_json(&git, &context.state, &status, is_whole))
            };
            in_sight(&context, &git, ("git_status", "git status"), doing).await
        });
        Ok((shown, work.within(WITHIN)))
    })
}

/// Reads the status, and tells whether it is all of it.
pub(super) async fn read(git: &Git) -> Result<(WorktreeStatus, bool), Refusal> {
    // What is in a submodule is the submodule's, whose config could run code once more.
    let words = ["status", "--porcelain=v2", "--branch", "-z", "--ignore-submodules=dirty", "--untracked-files=normal"];
    let said = git.run(GitReach::Reads, &words, b"", MAX_STDOUT).await?;
    match said.code {
        Some(0) => Ok((WorktreeStatus::parse(&said.stdout), true)),
        None => Ok((WorktreeStatus::parse(&said.stdout), false)),
        Some(_) => Err(said.refusal("git status failed")),
    }
}

pub(super) fn status_json(git: &Git, state: &RunState, status: &WorktreeStatus, is_whole: bool) -> Value {
    let worktree = &git.repository.worktree;
    let entries: Vec<Value> = status.entries.iter().take(MAX_ENTRIES).map(|entry| entry.to_json(worktree)).collect();
    let is_clean = status.entries.iter().all(|entry| entry.worktree == EntryChange::Ignored);
    let mut told = json!({
        "path": worktree.display().to_string(),
        "branch": status.branch,
        "commit": status.commit,
        "upstream": status.upstream,
        "ahead": status.ahead,
        "behind": status.behind,
        "is_complete": is_whole && entries.len() == status.entries.len(),
        "entries": entries,
        "is_clean": is_clean,
        "unsaved": unsaved(state, worktree),
        "fence": git.fence(),
    });
    if !git.configured.filters.is_empty() {
        // Files that have one may be told to be modified where git would filter them first.
        told["filters_not_run"] = git.configured.filters.iter().cloned().collect();
    }
    told
}
