//! What changes from outside: beneath the granted folders, for as long as somebody has asked for their events, and by the
//! files that somebody watches. One watch serves all; who hears of what is decided elsewhere.

mod choice;
mod news;
mod verb;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use choice::WatchChoice;
use prism_core::policy::{Code, Refusal};
use prism_os::{
    root::{self, FolderHandle},
    watch::{TreeWatch, WatchBell},
};
use tokio::{runtime::Handle, task::AbortHandle, time::sleep};
pub(crate) use verb::watch;

use crate::{refusal::failed, roots::GrantedRoots, state::OrderContext, text::TextState};

/// All that is watched. One for the runtime.
#[derive(Debug)]
pub(crate) struct Watches {
    text: Arc<TextState>,
    repositories: Option<Box<dyn RepositoryObserver>>,
    wanted: Mutex<WatchRequests>,
    eyes: Mutex<Option<ActiveWatch>>,
}

/// Where an order to watch something is carried out.
pub(crate) type WatchContext = OrderContext<Watches>;

/// Makes news of what changes in the repositories of watched folders.
pub(crate) trait RepositoryObserver: fmt::Debug + Send + Sync {
    /// A work tree is watched from now on.
    fn attend(&self, roots: &GrantedRoots, folder: &Path);

    /// Something has changed in its `.git`: HEAD, refs, index, logs or MERGE_HEAD.
    fn changed(&self, roots: &GrantedRoots, folder: &Path);
}

/// Who has asked for what.
#[derive(Debug, Default)]
struct WatchRequests {
    /// Each holder's folders.
    roots: HashMap<u128, GrantedRoots>,
    /// Each holder's files, with the folder that each is in.
    files: HashMap<u128, BTreeMap<PathBuf, WatchedFile>>,
}

#[derive(Debug)]
struct WatchedFile {
    folder: FolderHandle,
    roots: GrantedRoots,
}

/// What looks, and what it looks at.
#[derive(Debug)]
struct ActiveWatch {
    tree: TreeWatch,
    chosen: WatchChoice,
    /// The folders that are watched, as they were asked for.
    roots: BTreeSet<PathBuf>,
    follower: AbortHandle,
}

/// Files that one holder watches by name. A further one is refused: whoever wants more is told of whole folders anyway.
const MAX_FILES: usize = 256;

/// How long changes are gathered before they are told: what an editor does to save a file is one change.
const PAUSE: Duration = Duration::from_millis(40);

impl Watches {
    pub(crate) fn new(text: Arc<TextState>, repositories: Option<Box<dyn RepositoryObserver>>) -> Self {
        Self { text, repositories, wanted: Mutex::default(), eyes: Mutex::default() }
    }

    /// Has what changes beneath a holder's folders told, until it leaves. Blocks; what changes from then on is told.
    pub(crate) fn want(self: &Arc<Self>, holder: u128, roots: GrantedRoots) -> Result<(), Refusal> {
        self.wanted().roots.insert(holder, roots);
        self.look_at_what_is_wanted()
    }

    /// A holder is gone. Blocks.
    pub(crate) fn release(self: &Arc<Self>, holder: u128) {
        let mut wanted = self.wanted();
        let had = (wanted.roots.remove(&holder).is_some(), wanted.files.remove(&holder).is_some());
        drop(wanted);
        if had != (false, false) {
            let _ = self.look_at_what_is_wanted();
        }
    }

    /// Ends all watching.
    pub(crate) fn close(&self) {
        *self.wanted() = WatchRequests::default();
        *self.eyes() = None;
    }

    /// Watches a file for a holder, or no longer.
    fn watch_file(self: &Arc<Self>, holder: u128, path: PathBuf, watched: Option<WatchedFile>) -> Result<(), Refusal> {
        let mut wanted = self.wanted();
        let files = wanted.files.entry(holder).or_default();
        match watched {
            None => drop(files.remove(&path)),
            Some(_) if files.len() >= MAX_FILES && !files.contains_key(&path) => {
                let message = format!("{MAX_FILES} files are watched already; `stop` ends one of them");
                return Err(Refusal::new(Code::TooLarge, message));
            }
            Some(watched) => drop(files.insert(path, watched)),
        }
        if files.is_empty() {
            wanted.files.remove(&holder);
        }
        drop(wanted);
        self.look_at_what_is_wanted()
    }

    /// Brings what is watched up to what is wanted.
    fn look_at_what_is_wanted(self: &Arc<Self>) -> Result<(), Refusal> {
        let mut eyes = self.eyes();
        let (chosen, folders) = self.wanted().chosen();
        let roots: BTreeSet<PathBuf> = folders.iter().filter_map(|folder| root::place(folder).ok()).collect();
        if roots.is_empty() {
            *eyes = None;
            return Ok(());
        }
        let open = match &mut *eyes {
            Some(open) if open.roots == roots && open.chosen.is_like(&chosen) => return Ok(()),
            Some(open) => open,
            closed => {
                let tree = TreeWatch::new().map_err(|error| failed(format!("nothing can be watched: {error}")))?;
                let follower = Handle::current().spawn(follow(tree.bell(), Arc::downgrade(self))).abort_handle();
                closed.insert(ActiveWatch { tree, chosen: WatchChoice::default(), roots: BTreeSet::new(), follower })
            }
        };
        // What has happened until now, as it would be forgotten.
        let mut changes = open.tree.changes(&mut open.chosen);
        let before = std::mem::replace(&mut open.chosen, chosen);
        open.roots = roots;
        let meanwhile = open.tree.set(folders, &mut open.chosen);
        changes.extend(meanwhile.into_iter().filter(|change| !open.chosen.explains(change, &before)));
        let repositories = open.chosen.take_repositories();
        drop(eyes);
        news::tell(self, changes);
        if let Some(observer) = &self.repositories {
            for folder in repositories {
                if let Some(roots) = self.roots_of(&folder) {
                    observer.attend(&roots, &folder);
                }
            }
        }
        Ok(())
    }

    /// Looks what has changed, and tells it.
    fn look(&self) {
        let changes = {
            let mut eyes = self.eyes();
            let Some(open) = &mut *eyes else { return };
            let changes = open.tree.changes(&mut open.chosen);
            if news::has_rules(&changes) {
                open.tree.again(&mut open.chosen);
            }
            changes
        };
        news::tell(self, changes);
    }

    /// The granted folders of somebody who may reach a path.
    fn roots_of(&self, path: &Path) -> Option<GrantedRoots> {
        let wanted = self.wanted();
        let of_files = wanted.files.values().flat_map(|files| files.values()).map(|file| &file.roots);
        wanted.roots.values().chain(of_files).find(|roots| roots.holds(path)).cloned()
    }

    /// How much beneath a folder is watched: "all", "part", as there is more than can be watched, or "none", as nobody has
    /// asked for it.
    pub(crate) fn extent(&self, folder: &Path) -> &'static str {
        match &*self.eyes() {
            Some(open) if !open.roots.iter().any(|root| folder.starts_with(root)) => "none",
            Some(open) if open.tree.is_partial() => "part",
            Some(_) => "all",
            None => "none",
        }
    }

    /// Those who watch a file.
    fn watchers(&self, path: &Path) -> Vec<u128> {
        let wanted = self.wanted();
        let those = wanted.files.iter().filter(|(_, files)| files.contains_key(path));
        those.map(|(holder, _)| *holder).collect()
    }

    fn roots(&self) -> Vec<PathBuf> {
        let is_root = |path: &&PathBuf, all: &BTreeSet<PathBuf>| {
            !all.iter().any(|other| path.starts_with(other) && other != *path)
        };
        let eyes = self.eyes();
        let all = eyes.as_ref().map(|open| &open.roots);
        all.map(|all| all.iter().filter(|path| is_root(path, all)).cloned().collect()).unwrap_or_default()
    }

    fn wanted(&self) -> MutexGuard<'_, WatchRequests> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn eyes(&self) -> MutexGuard<'_, Option<ActiveWatch>> {
        self.eyes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WatchRequests {
    /// What is to be watched, and the folders that this is in.
    fn chosen(&self) -> (WatchChoice, Vec<FolderHandle>) {
        let mut chosen = WatchChoice::default();
        let mut folders = Vec::new();
        for roots in self.roots.values() {
            for root in roots.names() {
                // One that is not there, or leads elsewhere, has no events.
                let Ok(way) = roots.root(root) else { continue };
                let Ok(folder) = way.folder() else { continue };
                let Ok(place) = root::place(&folder) else { continue };
                chosen.add_root(place, way.closed().clone());
                folders.push(folder);
            }
        }
        for (path, watched) in self.files.values().flatten() {
            if let Ok(folder) = watched.folder.beneath(Path::new("")) {
                chosen.add_file(path.clone());
                folders.push(folder);
            }
        }
        (chosen, folders)
    }
}

impl Drop for ActiveWatch {
    fn drop(&mut self) {
        self.follower.abort();
    }
}

/// Looks whenever something has changed, until nobody watches any more.
async fn follow(bell: WatchBell, watches: Weak<Watches>) {
    while bell.rung().await.is_ok() {
        sleep(PAUSE).await;
        let Some(watches) = watches.upgrade() else { return };
        let looked = tokio::task::spawn_blocking(move || watches.look()).await;
        if looked.is_err() {
            return;
        }
    }
}
