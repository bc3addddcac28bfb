//! `git_status`: what is checked out, and what differs from it.

use prism_core::policy::Refusal;
use serde_json::{Value, json};

use super::{
    WITHIN,
    call::{Git, MAX_STDOUT},
    guard::Reach,
    in_sight, opened,
    porcelain::{Change, Status},
    unsaved,
};
use crate::{
    Shown,
    args::Args,
    prepared::{Doing, Opened, Work},
    runtime::Desk,
    scene::Scene,
};

/// Entries of an answer. Of more the first are told, and that there are more.
const MAX_ENTRIES: usize = 5_000;

pub(crate) fn status(mut args: Args, scene: Scene) -> Doing<Opened> {
    Box::pin(async move {
        let cwd = args.maybe_text("cwd")?;
        args.done()?;
        let git = opened(&scene, cwd).await?;
        let shown = Shown::plain(format!("Look what has changed in {}", git.repository.worktree.display()));
        let work = Work::task(move |_| async move {
            let doing = async {
                let (status, is_whole) = read(&git).await?;
                Ok(told(&git, &scene.desk, &status, is_whole))
            };
            in_sight(&scene, &git, ("git_status", "git status"), doing).await
        });
        Ok((shown, work.within(WITHIN)))
    })
}

/// Reads the status, and tells whether it is all of it.
pub(super) async fn read(git: &Git) -> Result<(Status, bool), Refusal> {
    // What is in a submodule is the submodule's, whose config could run code once more.
    let words = ["status", "--porcelain=v2", "--branch", "-z", "--ignore-submodules=dirty", "--untracked-files=normal"];
    let said = git.run(Reach::Reads, &words, b"", MAX_STDOUT).await?;
    match said.code {
        Some(0) => Ok((Status::parse(&said.stdout), true)),
        None => Ok((Status::parse(&said.stdout), false)),
        Some(_) => Err(said.refusal("git status failed")),
    }
}

pub(super) fn told(git: &Git, desk: &Desk, status: &Status, is_whole: bool) -> Value {
    let worktree = &git.repository.worktree;
    let entries: Vec<Value> = status.entries.iter().take(MAX_ENTRIES).map(|entry| entry.told(worktree)).collect();
    let is_clean = status.entries.iter().all(|entry| entry.worktree == Change::Ignored);
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
        "unsaved": unsaved(desk, worktree),
        "fence": git.fence(),
    });
    if !git.configured.filters.is_empty() {
        // Files that have one may be told to be modified where git would filter them first.
        told["filters_not_run"] = git.configured.filters.iter().cloned().collect();
    }
    told
}
