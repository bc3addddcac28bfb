//! `git_commit`: commits what is in the index, as the person's config says who they are.

use std::path::Path;

use prism_core::policy::{Code, Refusal};
use serde_json::{Value, json};

use super::{
    WITHIN,
    call::{Git, MAX_STDOUT},
    diff::{self, Compared},
    guard::GitReach,
    in_sight, opened,
    porcelain::lossy,
    unsaved,
};
use crate::{
    args::{Args, wrong},
    prepared::{Doing, Opened, Work},
    refusal::failed,
    run::RunContext,
    shown::ActionPreview,
};

/// Bytes of a message; a person has to read it.
const MAX_MESSAGE: usize = 64 << 10;

/// Files that are shown to a person.
const MAX_SHOWN: usize = 200;

pub(crate) fn commit(mut args: Args, context: RunContext) -> Doing<Opened> {
    Box::pin(async move {
        let cwd = args.maybe_text("cwd")?;
        let message = args.text("message")?;
        args.done()?;
        if message.trim().is_empty() || message.contains('\0') {
            return Err(wrong("`message` must hold words, and no NUL"));
        }
        if message.len() > MAX_MESSAGE {
            let told = format!("a message of {} bytes; at most {MAX_MESSAGE} are allowed", message.len());
            return Err(Refusal::new(Code::TooLarge, told));
        }
        let git = opened(&context, cwd).await?;
        let staged = staged(&git).await?;
        if staged.is_empty() && !is_merging(&git) {
            return Err(failed("nothing is staged; git_add first"));
        }
        let shown = shown(&git, &message, &staged);
        let work = Work::task(move |_| async move {
            let doing = async {
                // What was shown is what is committed.
                if self::staged(&git).await? != staged {
                    let told = "what is in the index has changed since it was shown; look again, then try again";
                    return Err(Refusal::new(Code::Changed, told));
                }
                let answer = made(&git, &message).await;
                super::tell(&context, &git).await;
                let mut answer = answer?;
                answer["unsaved"] = unsaved(&context.state, &git.repository.worktree).into();
                Ok(answer)
            };
            let command = format!("git commit -m {:?}", message.lines().next().unwrap_or_default());
            in_sight(&context, &git, ("git_commit", &command), doing).await
        });
        Ok((shown, work.within(WITHIN).affecting(Vec::new())))
    })
}

/// Returns what is in the index and not in the last commit: paths with what they hold.
async fn staged(git: &Git) -> Result<Vec<u8>, Refusal> {
    let words = [
        "diff",
        "--cached",
        "--raw",
        "-z",
        "--no-abbrev",
        "--no-renames",
        "--no-ext-diff",
        "--no-textconv",
        "--ignore-submodules=dirty",
    ];
    let said = git.run(GitReach::Reads, &words, b"", MAX_STDOUT).await?;
    match said.code {
        Some(0) => Ok(said.stdout),
        None => Err(Refusal::new(Code::TooLarge, "too many files are staged for one commit")),
        Some(_) => Err(said.refusal("git diff failed")),
    }
}

/// A merge whose result is what was there before is a commit all the same.
fn is_merging(git: &Git) -> bool {
    let (own, _) = git.repository.halves();
    own.open_file(Path::new("MERGE_HEAD")).is_ok()
}

fn shown(git: &Git, message: &str, staged: &[u8]) -> ActionPreview {
    // `:modes hashes X`, then the path.
    let records: Vec<String> = super::porcelain::NulRecords(staged).map(lossy).collect();
    let file = |pair: &[String]| match pair {
        [about, path] => Some(format!("{} {path}", about.rsplit(' ').next()?)),
        _ => None,
    };
    let files: Vec<String> = records.chunks(2).filter_map(file).collect();
    let mut lines: Vec<String> = message.lines().map(str::to_owned).collect();
    lines.push(String::new());
    lines.extend(files.iter().take(MAX_SHOWN).cloned());
    if files.len() > MAX_SHOWN {
        lines.push(format!("… and {} more", files.len() - MAX_SHOWN));
    }
    ActionPreview::Plain { title: format!("Commit to {}", git.repository.worktree.display()), lines }
}

async fn made(git: &Git, message: &str) -> Result<Value, Refusal> {
    let words = ["commit", "--quiet", "--no-verify", "--no-gpg-sign", "--no-edit", "--cleanup=whitespace", "--file=-"];
    let said = git.run(GitReach::Records, &words, message.as_bytes(), MAX_STDOUT).await?;
    if said.code != Some(0) {
        return Err(refusal(&said));
    }
    let commit = lossy(&git.ask(GitReach::Reads, &["rev-parse", "--verify", "HEAD"]).await?).trim().to_owned();
    // Fails where no branch is checked out.
    let branch = git.run(GitReach::Reads, &["symbolic-ref", "--quiet", "--short", "HEAD"], b"", MAX_STDOUT).await?;
    let branch = (branch.code == Some(0)).then(|| lossy(&branch.stdout).trim().to_owned());
    let (files, _) = diff::files(git, &Compared::Commit(commit.clone()), None).await?;
    let worktree = &git.repository.worktree;
    let files: Vec<Value> = files.iter().map(|file| file.to_json(worktree)).collect();
    Ok(json!({
        "path": worktree.display().to_string(),
        "commit": commit,
        "branch": branch,
        "files": files,
        "fence": git.fence(),
    }))
}

/// Says what to do about what often goes wrong.
fn refusal(said: &super::call::GitOutput) -> Refusal {
    let words = format!("{}\n{}", said.stderr, lossy(&said.stdout));
    if words.contains("identity unknown") || words.contains("auto-detection is disabled") {
        let message = "git does not know who the person is; they set it once with \
                       `git config --global user.name NAME` and `git config --global user.email ADDRESS`";
        return failed(message);
    }
    if words.contains("unmerged files") {
        return failed("some files are in conflict (git_status names them); solve them and git_add them first");
    }
    said.refusal("git could not commit it")
}
