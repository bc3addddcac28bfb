//! `git_add`: puts what is in the work tree into the index. What is ignored is not added, nor what a filter would have to run for.

use std::{
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use prism_core::policy::{Code, Refusal};
use serde_json::Value;

use super::{
    WITHIN,
    call::{Git, MAX_STDOUT},
    guard::GitReach,
    in_sight, opened,
    porcelain::{EntryChange, NulRecords, WorktreeStatus, lossy},
    status,
};
use crate::{
    args::{Args, kind_of, wrong},
    prepared::{Doing, Opened, Work},
    run::RunContext,
    shown::ActionPreview,
};

/// Paths of one action.
const MAX_PATHS: usize = 1_000;

pub(crate) fn add(mut args: Args, context: RunContext) -> Doing<Opened> {
    Box::pin(async move {
        let cwd = args.maybe_text("cwd")?;
        let paths = paths(&mut args)?;
        args.done()?;
        let git = opened(&context, cwd).await?;
        let (roots, repository) = (context.roots.clone(), git.repository.clone());
        let found = move |_: &_| paths.iter().map(|path| repository.path_of(&roots.resolve(path)?)).collect();
        let mut paths: Vec<PathBuf> = context.state.editor.blocking(found).await?;
        if paths.is_empty() {
            paths.push(PathBuf::from("."));
        }
        let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        let shown = ActionPreview::Plain {
            title: format!("Add to the index of {}", git.repository.worktree.display()),
            lines: names.clone(),
        };
        let command = format!("git add {}", names.join(" "));
        let work = Work::task(move |_| async move {
            let doing = async {
                let changed = changed(&git, &paths).await?;
                refuse_filtered(&git, &changed).await?;
                let words = ["update-index", "--add", "--remove", "--replace", "-z", "--stdin"];
                let said = git.run(GitReach::Records, &words, &listed(&changed), MAX_STDOUT).await?;
                if said.code != Some(0) {
                    return Err(said.refusal("git could not add it"));
                }
                let (status, is_whole) = status::read(&git).await?;
                super::tell(&context, &git).await;
                Ok(status::status_json(&git, &context.state, &status, is_whole))
            };
            in_sight(&context, &git, ("git_add", &command), doing).await
        });
        Ok((shown, work.within(WITHIN).affecting(Vec::new())))
    })
}

/// Takes what is to be added; nothing means all.
fn paths(args: &mut Args) -> Result<Vec<String>, Refusal> {
    let (path, listed, all) = (args.maybe_text("path")?, args.take("paths"), args.flag("all")?);
    match (path, listed, all) {
        (Some(path), None, false) => Ok(vec![path]),
        (None, None, true) => Ok(Vec::new()),
        (None, Some(Value::Array(listed)), false) if (1..=MAX_PATHS).contains(&listed.len()) => {
            let path = |path| match path {
                Value::String(path) => Ok(path),
                other => Err(wrong(format!("`paths` must hold strings, not {}", kind_of(&other)))),
            };
            listed.into_iter().map(path).collect()
        }
        (None, Some(Value::Array(_)), false) => Err(wrong(format!("`paths` must hold 1 to {MAX_PATHS} paths"))),
        (None, Some(other), false) => Err(wrong(format!("`paths` must be an array, not {}", kind_of(&other)))),
        _ => Err(wrong("give one of `path`, `paths` and `all: true`")),
    }
}

/// Returns all files beneath the paths that differ from the index. `git add` would look into submodules, too, and run what
/// their config says; so git is asked what there is, and then told what to take, one by one.
async fn changed(git: &Git, paths: &[PathBuf]) -> Result<Vec<Vec<u8>>, Refusal> {
    let mut words = vec![
        "status",
        "--porcelain=v2",
        "-z",
        "--no-renames",
        "--ignore-submodules=dirty",
        "--untracked-files=all",
        "--ignored=matching",
        "--",
    ];
    let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    words.extend(names.iter().map(String::as_str));
    let status = WorktreeStatus::parse(&git.ask(GitReach::Reads, &words).await?);
    for (path, name) in paths.iter().zip(&names) {
        let of_it = |entry: &&super::porcelain::StatusEntry| {
            let entry = entry.path.strip_suffix(b"/").unwrap_or(&entry.path);
            Path::new(&lossy(entry)).starts_with(path) || path.as_path() == Path::new(".")
        };
        let is_ignored = |entry: &super::porcelain::StatusEntry| {
            let ignored = Path::new(std::ffi::OsStr::from_bytes(&entry.path)).to_owned();
            entry.worktree == EntryChange::Ignored && path.starts_with(ignored)
        };
        if status.entries.iter().any(is_ignored) {
            return Err(wrong(format!("{name:?} is ignored (.gitignore), and nothing that is ignored is added")));
        }
        let is_there = git.repository.folder.spot(path).and_then(|spot| spot.look()).is_ok_and(|found| found.is_some());
        if !is_there && path.as_path() != Path::new(".") && !status.entries.iter().any(|entry| of_it(&entry)) {
            return Err(Refusal::new(Code::NotFound, format!("{name:?} is neither there nor known to git")));
        }
    }
    let is_changed =
        |entry: &super::porcelain::StatusEntry| !matches!(entry.worktree, EntryChange::None | EntryChange::Ignored);
    let trimmed =
        |entry: super::porcelain::StatusEntry| entry.path.strip_suffix(b"/").map_or(entry.path.clone(), <[u8]>::to_vec);
    Ok(status.entries.into_iter().filter(is_changed).map(trimmed).collect())
}

/// Refuses files that a filter is set for (`filter=lfs`): without it they would get into the repository as they should not.
async fn refuse_filtered(git: &Git, paths: &[Vec<u8>]) -> Result<(), Refusal> {
    if git.configured.filters.is_empty() || paths.is_empty() {
        return Ok(());
    }
    let words = ["check-attr", "-z", "--stdin", "filter"];
    let said = git.run(GitReach::Reads, &words, &listed(paths), MAX_STDOUT).await?;
    if said.code != Some(0) {
        return Err(said.refusal("git check-attr failed"));
    }
    refuse_configured(git, &said.stdout, "add it with a command")
}

/// Refuses if one of the paths that `git check-attr -z` names has a filter that is set.
pub(super) fn refuse_configured(git: &Git, attributes: &[u8], instead: &str) -> Result<(), Refusal> {
    let mut records = NulRecords(attributes);
    while let (Some(path), Some(_), Some(filter)) = (records.next(), records.next(), records.next()) {
        let filter = lossy(filter);
        if git.configured.filters.contains(&filter) {
            let message =
                format!("{:?} needs the filter {filter:?}, and no filters are run here; {instead}", lossy(path));
            return Err(Refusal::new(Code::Unsupported, message));
        }
    }
    Ok(())
}

pub(super) fn listed(paths: &[Vec<u8>]) -> Vec<u8> {
    paths.iter().flat_map(|path| path.iter().copied().chain([0])).collect()
}
