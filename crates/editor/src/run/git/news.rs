//! Tells what happens in repositories, whoever does it: an action, a command, the person in a shell. All of them look in the
//! same place what was known, so nothing is told twice.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde_json::json;
use tokio::time::sleep;

use super::{
    call::Git,
    porcelain::absolute,
    repository::Repository,
    state::{RepositoryNews, RepositoryState},
    status,
};
use crate::{disk::watch::RepositoryObserver, happening::Happenings, roots::GrantedRoots, run::RunState};

/// What is known of repositories, by where their `.git` is.
#[derive(Debug, Default)]
pub(super) struct KnownRepositories(Mutex<HashMap<PathBuf, SeenRepository>>);

#[derive(Debug, Default)]
struct SeenRepository {
    state: RepositoryState,
    /// Whether it was told that there are conflicts in what is under way.
    is_conflict_told: bool,
    /// Whether somebody will look soon.
    is_due: bool,
}

/// Repositories that are kept in mind. Beyond it the others are forgotten: what happens in them until they are looked at again
/// is not told.
const MAX_KNOWN: usize = 64;

/// How long is waited after something has changed: git writes several files for one commit.
const PAUSE: Duration = Duration::from_millis(100);

impl KnownRepositories {
    /// Keeps in mind how a repository stands, unless that is known.
    pub(super) fn remember(&self, repository: &Repository) {
        let (own, common) = repository.halves();
        if self.lock().contains_key(&repository.own) {
            return;
        }
        let state = RepositoryState::read(own, common);
        let mut known = self.lock();
        if known.len() >= MAX_KNOWN {
            known.clear();
        }
        known.entry(repository.own.clone()).or_insert(SeenRepository { state, ..SeenRepository::default() });
    }

    /// Looks how a repository stands, and tells what has happened since the last look. Returns whether it should be asked for
    /// conflicts.
    pub(super) fn look(&self, repository: &Repository, happenings: &Happenings, by: Option<u128>) -> bool {
        let (own, common) = repository.halves();
        let mut known = self.lock();
        // Under the lock, so that of two who look at once only one has news.
        let state = RepositoryState::read(own, common);
        let Some(seen) = known.get_mut(&repository.own) else {
            drop(known);
            self.remember(repository);
            return state.is_merging;
        };
        let news = state.since(&seen.state, own, common);
        seen.is_conflict_told &= state.is_merging;
        let is_in_question = state.is_merging && !seen.is_conflict_told;
        seen.state = state;
        drop(known);
        for piece in news {
            tell(happenings, &repository.worktree, by, &piece);
        }
        is_in_question
    }

    /// Says that conflicts are told of; `false` if they were before.
    fn mark_conflicts_told(&self, repository: &Repository) -> bool {
        let mut known = self.lock();
        known.get_mut(&repository.own).is_some_and(|seen| !std::mem::replace(&mut seen.is_conflict_told, true))
    }

    /// Says that somebody will look soon; `false` if somebody will anyway.
    fn is_first(&self, own: &Path, is_due: bool) -> bool {
        let mut known = self.lock();
        let Some(seen) = known.get_mut(own) else { return true };
        std::mem::replace(&mut seen.is_due, is_due) != is_due
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PathBuf, SeenRepository>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn tell(happenings: &Happenings, worktree: &Path, by: Option<u128>, news: &RepositoryNews) {
    let (name, data) = match news {
        RepositoryNews::Branch(branch) => ("branch_changed", json!({ "branch": branch })),
        RepositoryNews::Commit(commit) => ("commit_made", json!({ "commit": commit })),
        RepositoryNews::Push { branch, commit } => ("push_completed", json!({ "branch": branch, "commit": commit })),
        RepositoryNews::Status => ("status_updated", json!({})),
    };
    match by {
        Some(by) => happenings.tell_of(name, Some(worktree), by, data),
        None => happenings.tell(name, Some(worktree), data),
    }
}

impl RepositoryObserver for Arc<RunState> {
    /// Takes note how the repository stands: from then on `changed` knows what is new.
    fn attend(&self, roots: &GrantedRoots, folder: &Path) {
        attend(self, roots, folder);
    }

    /// Works out what has changed, a little later and once for all that comes together. `folder` is the work tree.
    fn changed(&self, roots: &GrantedRoots, folder: &Path) {
        changed(self, roots, folder);
    }
}

/// To be called by who watches a granted folder, as the watch begins: from then on `changed` knows what is new.
pub(crate) fn attend(state: &RunState, roots: &GrantedRoots, folder: &Path) {
    if let Ok(repository) = Repository::find(roots, Some(&folder.display().to_string())) {
        state.repositories.known.remember(&repository);
    }
}

/// To be called by who watches, when something in a `.git` has changed (HEAD, refs, logs, index, MERGE_HEAD). What that was is
/// worked out here, a little later and once for all that comes together. `folder` is the work tree.
pub(crate) fn changed(state: &Arc<RunState>, roots: &GrantedRoots, folder: &Path) {
    let (state, roots, folder) = (state.clone(), roots.clone(), folder.display().to_string());
    // A folder that is no repository any more has no news.
    let Ok(repository) = Repository::find(&roots, Some(&folder)) else { return };
    if !state.repositories.known.is_first(&repository.own, true) {
        return;
    }
    tokio::spawn(async move {
        sleep(PAUSE).await;
        state.repositories.known.is_first(&repository.own, false);
        let (at, happenings) = (state.clone(), state.editor.happenings.clone());
        let looked = state.editor.blocking(move |_| {
            let is_in_question = at.repositories.known.look(&repository, &happenings, None);
            Ok((repository, is_in_question))
        });
        let Ok((repository, true)) = looked.await else { return };
        let Ok(git) = Git::open(repository, &roots, &state).await else { return };
        let Ok((status, _)) = status::read(&git).await else { return };
        let worktree = &git.repository.worktree;
        let paths: Vec<String> = status.conflicts().map(|entry| absolute(worktree, &entry.path)).collect();
        if !paths.is_empty() && state.repositories.known.mark_conflicts_told(&git.repository) {
            state.editor.happenings.tell("merge_conflict", Some(worktree), json!({ "paths": paths }));
        }
    });
}
