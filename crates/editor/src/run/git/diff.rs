//! `git_diff`: what has changed, as text and in numbers.

use std::path::PathBuf;

use prism_core::policy::Refusal;
use serde_json::{Value, json};

use super::{
    WITHIN,
    call::Git,
    guard::GitReach,
    in_sight, name, opened,
    porcelain::{self, Numbers, lossy},
    unsaved,
};
use crate::{
    args::{Args, wrong},
    prepared::{Doing, Opened, Work},
    run::RunContext,
    shown::ActionPreview,
};

/// Bytes of a diff, and of the list of its files. Beyond it the rest is left out, and the answer says so.
const MAX_DIFF: usize = 1 << 20;

/// What is compared.
pub(super) enum Compared {
    /// The work tree with the index.
    Worktree,
    /// The index with the last commit.
    Staged,
    /// A commit with the one before it.
    Commit(String),
    /// One commit with another.
    Commits(String, String),
}

/// Neither a program of the repository's, nor a form of its own choice.
const FORM: [&str; 7] = [
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--ignore-submodules=dirty",
    "--submodule=short",
    "--src-prefix=a/",
    "--dst-prefix=b/",
];

pub(crate) fn diff(mut args: Args, context: RunContext) -> Doing<Opened> {
    Box::pin(async move {
        let cwd = args.maybe_text("cwd")?;
        let path = args.maybe_text("path")?;
        let is_staged = args.flag("staged")?;
        let commit = name(&mut args, "commit")?;
        args.done()?;
        if is_staged && commit.is_some() {
            return Err(wrong("give `staged` or `commit`, not both"));
        }
        let git = opened(&context, cwd).await?;
        let path = match path {
            Some(path) => {
                let (roots, repository) = (context.roots.clone(), git.repository.clone());
                Some(context.state.editor.blocking(move |_| repository.path_of(&roots.resolve(&path)?)).await?)
            }
            None => None,
        };
        let compared = match commit {
            Some(commit) => resolved(&git, &commit).await?,
            None if is_staged => Compared::Staged,
            None => Compared::Worktree,
        };
        let command = if is_staged { "git diff --staged" } else { "git diff" };
        let shown = ActionPreview::plain(format!("Show what has changed in {}", git.repository.worktree.display()));
        let work = Work::task(move |_| async move {
            let doing = async {
                let (diff, is_whole) = printed(&git, &compared, "--patch", path.as_ref()).await?;
                let (files, are_all) = files(&git, &compared, path.as_ref()).await?;
                let worktree = &git.repository.worktree;
                let files: Vec<Value> = files.iter().map(|file| file.to_json(worktree)).collect();
                Ok(json!({
                    "path": worktree.display().to_string(),
                    "diff": lossy(&diff),
                    "files": files,
                    "is_complete": is_whole && are_all,
                    "unsaved": unsaved(&context.state, worktree),
                    "fence": git.fence(),
                }))
            };
            in_sight(&context, &git, ("git_diff", command), doing).await
        });
        Ok((shown, work.within(WITHIN)))
    })
}

/// Finds the commit that a name is for, or the two that a range is between.
async fn resolved(git: &Git, name: &str) -> Result<Compared, Refusal> {
    let Some((old, new)) = name.split_once("..") else { return Ok(Compared::Commit(commit_of(git, name).await?)) };
    if new.starts_with('.') {
        return Err(wrong("`commit` is one commit, or two with `..` between them"));
    }
    let or_head = |name: &str| if name.is_empty() { "HEAD".to_owned() } else { name.to_owned() };
    Ok(Compared::Commits(commit_of(git, &or_head(old)).await?, commit_of(git, &or_head(new)).await?))
}

pub(super) async fn commit_of(git: &Git, name: &str) -> Result<String, Refusal> {
    let named = format!("{name}^{{commit}}");
    let words = ["rev-parse", "--verify", "--quiet", "--end-of-options", &named];
    let said = git.run(GitReach::Reads, &words, b"", MAX_DIFF).await?;
    match said.code {
        Some(0) => Ok(lossy(&said.stdout).trim().to_owned()),
        _ => Err(wrong(format!("there is no commit {name:?}"))),
    }
}

/// Returns what each file has gained and lost, and whether these are all.
pub(super) async fn files(
    git: &Git,
    compared: &Compared,
    path: Option<&PathBuf>,
) -> Result<(Vec<Numbers>, bool), Refusal> {
    let (listed, are_all) = printed(git, compared, "--numstat", path).await?;
    Ok((porcelain::numbers(&listed), are_all))
}

/// Returns a diff in some form, up to its last whole line, and whether that is all of it.
async fn printed(
    git: &Git,
    compared: &Compared,
    form: &str,
    path: Option<&PathBuf>,
) -> Result<(Vec<u8>, bool), Refusal> {
    let mut words = match compared {
        Compared::Worktree => vec!["diff"],
        Compared::Staged => vec!["diff", "--cached"],
        Compared::Commit(_) => vec!["diff-tree", "-r", "-M", "--root", "--no-commit-id", "--diff-merges=first-parent"],
        Compared::Commits(..) => vec!["diff-tree", "-r", "-M"],
    };
    words.extend(FORM);
    words.push(form);
    let is_patch = form == "--patch";
    if !is_patch {
        words.push("-z");
    }
    words.push("--end-of-options");
    match compared {
        Compared::Commit(commit) => words.push(commit),
        Compared::Commits(old, new) => words.extend([old.as_str(), new]),
        Compared::Worktree | Compared::Staged => {}
    }
    words.push("--");
    let path = path.map(|path| path.display().to_string());
    words.extend(path.as_deref());
    let said = git.run(GitReach::Reads, &words, b"", MAX_DIFF).await?;
    match said.code {
        Some(0) => Ok((said.stdout, true)),
        Some(_) => Err(said.refusal("git diff failed")),
        None => {
            let mut cut = said.stdout;
            let end =
                if is_patch { cut.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1) } else { cut.len() };
            cut.truncate(end);
            Ok((cut, false))
        }
    }
}
