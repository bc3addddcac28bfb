//! `git_branch`: which branches there are; makes one, and changes to one. None is deleted, nothing is forced.

use prism_core::policy::{Code, Refusal};
use serde_json::{Value, json};

use super::{
    WITHIN,
    add::{listed, refuse_configured},
    call::{Git, MAX_STDOUT},
    diff::commit_of,
    guard::GitReach,
    in_sight, name, opened,
    porcelain::{self, BRANCHES, NulRecords, lossy},
    unsaved,
};
use crate::{
    args::{Args, wrong},
    prepared::{Doing, Opened, Work},
    refusal::failed,
    run::RunContext,
    shown::ActionPreview,
};

/// Branches of an answer. Of more, those that were committed to last.
const MAX_BRANCHES: usize = 1_000;

/// What is wanted of a branch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BranchChange {
    Create,
    Switch,
    Both,
}

pub(crate) fn branch(mut args: Args, context: RunContext) -> Doing<Opened> {
    Box::pin(async move {
        let cwd = args.maybe_text("cwd")?;
        let named = name(&mut args, "name")?;
        let wish = match (args.flag("create")?, args.flag("switch")?) {
            (false, false) => None,
            (true, false) => Some(BranchChange::Create),
            (false, true) => Some(BranchChange::Switch),
            (true, true) => Some(BranchChange::Both),
        };
        let from = name(&mut args, "from")?;
        args.done()?;
        if from.is_some() && !matches!(wish, Some(BranchChange::Create | BranchChange::Both)) {
            return Err(wrong("`from` is where a branch that is created begins"));
        }
        let asked = match (named, wish) {
            (Some(name), Some(wish)) => Some((name, wish)),
            (None, None) => None,
            (Some(_), None) => return Err(wrong("say what to do with it: `create`, `switch` or both")),
            (None, Some(_)) => return Err(wrong("`name` is missing: a string")),
        };
        let git = opened(&context, cwd).await?;
        let worktree = git.repository.worktree.display();
        let from = match &from {
            Some(from) => Some(commit_of(&git, from).await?),
            None => None,
        };
        let shown = ActionPreview::plain(match &asked {
            None => format!("List the branches of {worktree}"),
            Some((name, BranchChange::Create)) => format!("Make the branch {name:?} in {worktree}"),
            Some((name, BranchChange::Switch)) => format!("Change {worktree} to the branch {name:?}"),
            Some((name, BranchChange::Both)) => format!("Make the branch {name:?}, and change {worktree} to it"),
        });
        let work = Work::task(move |_| async move {
            let doing = async {
                if let Some((name, wish)) = &asked {
                    let done = done(&git, name, *wish, from.as_deref()).await;
                    super::tell(&context, &git).await;
                    done?;
                }
                let mut answer = list(&git).await?;
                answer["unsaved"] = unsaved(&context.state, &git.repository.worktree).into();
                Ok(answer)
            };
            let command = match &asked {
                None => "git branch".to_owned(),
                Some((name, BranchChange::Create)) => format!("git branch {name}"),
                Some((name, BranchChange::Switch)) => format!("git switch {name}"),
                Some((name, BranchChange::Both)) => format!("git switch --create {name}"),
            };
            in_sight(&context, &git, ("git_branch", &command), doing).await
        });
        Ok((shown, work.within(WITHIN).affecting(Vec::new())))
    })
}

async fn done(git: &Git, name: &str, wish: BranchChange, from: Option<&str>) -> Result<(), Refusal> {
    let full = format!("refs/heads/{name}");
    if git.run(GitReach::Reads, &["check-ref-format", &full], b"", MAX_STDOUT).await?.code != Some(0) {
        return Err(wrong(format!("{name:?} cannot be a branch's name")));
    }
    let exists = git.run(GitReach::Reads, &["show-ref", "--verify", "--quiet", &full], b"", MAX_STDOUT).await?.code;
    if wish == BranchChange::Switch && exists != Some(0) {
        let message = format!("there is no branch {name:?}; `create` makes it");
        return Err(Refusal::new(Code::NotFound, message));
    }
    if wish != BranchChange::Switch && exists == Some(0) {
        return Err(wrong(format!("there is a branch {name:?} already")));
    }
    if wish != BranchChange::Create {
        let target = if wish == BranchChange::Switch { Some(full.as_str()) } else { from };
        refuse_filtered(git, target).await?;
    }
    let switch = ["switch", "--quiet", "--no-guess", "--no-progress", "--no-recurse-submodules"];
    let (reach, mut words) = match wish {
        BranchChange::Create => (GitReach::Records, vec!["branch", "--end-of-options", name]),
        BranchChange::Switch => (GitReach::Writes, [&switch[..], &[name]].concat()),
        BranchChange::Both => (GitReach::Writes, [&switch[..], &["--create", name]].concat()),
    };
    words.extend(from);
    let said = git.run(reach, &words, b"", MAX_STDOUT).await?;
    match said.code {
        Some(0) => Ok(()),
        // Its own words say which files are in the way.
        _ => Err(failed(said.complaint().unwrap_or_else(|| "git could not do it".to_owned()))),
    }
}

/// Refuses to check out files that a filter would have to run for: without it they would be there as they should not.
async fn refuse_filtered(git: &Git, target: Option<&str>) -> Result<(), Refusal> {
    let Some(target) = target.filter(|_| !git.configured.filters.is_empty()) else { return Ok(()) };
    let words =
        ["diff-index", "--name-only", "-z", "--no-renames", "--ignore-submodules=all", "--cached", target, "--"];
    let names = git.ask(GitReach::Reads, &words).await?;
    let names: Vec<Vec<u8>> = NulRecords(&names).map(<[u8]>::to_vec).collect();
    let source = format!("--source={target}");
    for words in [vec!["check-attr", "-z", "--stdin", &source, "filter"], vec!["check-attr", "-z", "--stdin", "filter"]]
    {
        let said = git.run(GitReach::Reads, &words, &listed(&names), MAX_STDOUT).await?;
        if said.code != Some(0) {
            return Err(said.refusal("git check-attr failed"));
        }
        refuse_configured(git, &said.stdout, "change to it with a command")?;
    }
    Ok(())
}

async fn list(git: &Git) -> Result<Value, Refusal> {
    let count = format!("--count={}", MAX_BRANCHES + 1);
    let words = ["for-each-ref", "--sort=-committerdate", &count, BRANCHES, "refs/heads"];
    let mut branches = porcelain::branches(&git.ask(GitReach::Reads, &words).await?);
    let is_complete = branches.len() <= MAX_BRANCHES;
    branches.truncate(MAX_BRANCHES);
    // A branch without a commit is in no list, and may be checked out all the same.
    let head = git.run(GitReach::Reads, &["symbolic-ref", "--quiet", "--short", "HEAD"], b"", MAX_STDOUT).await?;
    let current = (head.code == Some(0)).then(|| lossy(&head.stdout).trim().to_owned());
    let told = |branch: &porcelain::Branch| {
        json!({
            "name": branch.name,
            "commit": branch.commit,
            "is_current": branch.is_current,
            "upstream": branch.upstream,
        })
    };
    Ok(json!({
        "path": git.repository.worktree.display().to_string(),
        "branches": branches.iter().map(told).collect::<Vec<_>>(),
        "branch": current,
        "is_complete": is_complete,
        "fence": git.fence(),
    }))
}
