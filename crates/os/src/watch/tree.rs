//! What changes beneath some folders, by name: made, written, renamed, removed. What was there before is remembered, and what
//! counts is the difference: a file that came and went in between is none, and a file that was replaced is written.
//!
//! Folders are opened one from the other's handle, as everywhere beneath a root; no link is followed.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ffi::{OsStr, OsString},
    io, mem,
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::names::{MoveEnd, NameEvent, NameWatch, Watched};
use crate::root::{self, FileKind, FolderError, FolderHandle, FolderListing};

/// Folders that are watched with all that is in them.
#[derive(Debug)]
pub struct TreeWatch {
    names: Arc<NameWatch>,
    roots: BTreeMap<PathBuf, FolderHandle>,
    folders: HashMap<Watched, SeenFolder>,
    by_path: BTreeMap<PathBuf, Watched>,
    known: usize,
    is_partial: bool,
}

/// Tells when something has changed.
#[derive(Clone, Debug)]
pub struct WatchBell(Arc<NameWatch>);

/// Something that has changed, by where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FolderChange {
    Created(PathBuf, FileKind),
    Deleted(PathBuf, FileKind),
    Renamed {
        from: PathBuf,
        to: PathBuf,
        kind: FileKind,
    },
    Written(PathBuf),
    /// More has happened than the kernel could keep: look everywhere again. What was made and removed is told all the same,
    /// what was written is not.
    Lost,
}

/// Says what is watched.
pub trait WatchFilter {
    /// Is told of a folder, and the names in it, before any of them is asked about. Those above it came before.
    fn enter(&mut self, folder: &FolderListing, path: &Path, names: &[(OsString, FileKind)]);

    /// Tells whether something in a folder that was entered is left out, with all that is in it.
    fn leaves_out(&self, path: &Path, kind: FileKind) -> bool;
}

/// A folder and what was in it when last seen.
#[derive(Debug)]
struct SeenFolder {
    path: PathBuf,
    names: HashMap<OsString, FileKind>,
}

/// Folders that are watched at a time, and names in them. What is beyond is not watched, and `is_partial` says so: the kernel
/// counts for each user, and editors want some too.
const MAX_FOLDERS: usize = 8_192;
const MAX_KNOWN: usize = 500_000;

/// Folders in one another.
const MAX_DEPTH: usize = 64;

impl TreeWatch {
    /// Begins with no folder. To be called in a runtime.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            names: Arc::new(NameWatch::new()?),
            roots: BTreeMap::new(),
            folders: HashMap::new(),
            by_path: BTreeMap::new(),
            known: 0,
            is_partial: false,
        })
    }

    pub fn bell(&self) -> WatchBell {
        WatchBell(self.names.clone())
    }

    /// Whether there was too much to watch all of it.
    pub fn is_partial(&self) -> bool {
        self.is_partial
    }

    pub fn is_watched(&self, folder: &Path) -> bool {
        self.by_path.contains_key(folder)
    }

    /// Watches exactly these folders, each with what is in it, and no others any more. Returns what has come and gone
    /// meanwhile in those that were watched before; to be called after `changes`.
    pub fn set(&mut self, roots: Vec<FolderHandle>, choice: &mut dyn WatchFilter) -> Vec<FolderChange> {
        let (before, folders) = (self.all(), self.by_path.keys().cloned().collect::<BTreeSet<_>>());
        let placed = roots.into_iter().filter_map(|folder| Some((root::place(&folder).ok()?, folder)));
        self.roots = placed.collect();
        self.again(choice);
        let is_in = |path: &Path, folders: &dyn Fn(&Path) -> bool| path.parent().is_some_and(folders);
        let mut changes = differences(&before, &self.all());
        changes.retain(|change| match change {
            FolderChange::Created(path, _) => is_in(path, &|folder| folders.contains(folder)),
            FolderChange::Deleted(path, _) => is_in(path, &|folder| self.is_watched(folder)),
            _ => true,
        });
        changes
    }

    /// Looks everywhere again, as what is left out has changed.
    pub fn again(&mut self, choice: &mut dyn WatchFilter) {
        for watched in mem::take(&mut self.folders).into_keys() {
            self.names.remove(watched);
        }
        (self.known, self.is_partial) = (0, false);
        self.by_path.clear();
        let roots: Vec<PathBuf> = self.roots.keys().cloned().collect();
        for path in roots {
            // One that lies in another is there already, unless it was left out there.
            if !self.by_path.contains_key(&path)
                && let Some(Ok(folder)) = self.roots.get(&path).map(FolderHandle::listing)
            {
                self.enter(&folder, &path, 0, choice, &mut Vec::new());
            }
        }
    }

    /// Returns what has changed since the last time.
    pub fn changes(&mut self, choice: &mut dyn WatchFilter) -> Vec<FolderChange> {
        let mut touched: BTreeMap<(PathBuf, OsString), bool> = BTreeMap::new();
        let (mut from, mut moves, mut gone) = (HashMap::new(), Vec::new(), Vec::new());
        for note in self.names.read() {
            match note {
                NameEvent::Lost => return self.lost(choice),
                NameEvent::Gone(watched) => gone.push(watched),
                NameEvent::Name { folder, name, is_written, moved } => {
                    let Some(folder) = self.folders.get(&folder) else { continue };
                    let place = (folder.path.clone(), name);
                    match moved {
                        Some((MoveEnd::From, number)) => drop(from.insert(number, place.clone())),
                        Some((MoveEnd::To, number)) => {
                            moves.extend(from.remove(&number).map(|from| (from, place.clone())));
                        }
                        None => {}
                    }
                    *touched.entry(place).or_default() |= is_written;
                }
            }
        }
        let mut changes = Vec::new();
        for (from, to) in moves {
            if self.renamed(&from, &to, choice, &mut changes) {
                touched.remove(&from);
                touched.remove(&to);
            }
        }
        for ((folder, name), is_written) in touched {
            self.touched(&folder, &name, is_written, choice, &mut changes);
        }
        for watched in gone {
            self.forget(watched);
        }
        changes
    }

    /// A move is one if something that was known is no more where it was, and is where it should be.
    fn renamed(
        &mut self,
        from: &(PathBuf, OsString),
        to: &(PathBuf, OsString),
        choice: &mut dyn WatchFilter,
        changes: &mut Vec<FolderChange>,
    ) -> bool {
        let (old, new) = (from.0.join(&from.1), to.0.join(&to.1));
        let Some(kind) = self.known_at(&from.0, &from.1) else { return false };
        let (Some(source), Some(target)) = (self.open(&from.0), self.open(&to.0)) else { return false };
        if source.kind_of(&from.1).is_some() || target.kind_of(&to.1) != Some(kind) || choice.leaves_out(&new, kind) {
            return false;
        }
        self.drop_name(&from.0, &from.1);
        self.drop_name(&to.0, &to.1);
        self.put_name(&to.0, &to.1, kind);
        changes.push(FolderChange::Renamed { from: old, to: new.clone(), kind });
        if kind == FileKind::Folder
            && let Ok(folder) = target.folder(&to.1)
        {
            // What is in it goes along, and is no news.
            self.enter(&folder, &new, 0, choice, &mut Vec::new());
        }
        true
    }

    fn touched(
        &mut self,
        folder: &Path,
        name: &OsStr,
        is_written: bool,
        choice: &mut dyn WatchFilter,
        changes: &mut Vec<FolderChange>,
    ) {
        let path = folder.join(name);
        let before = self.known_at(folder, name);
        let opened = self.open(folder);
        let now = opened.as_ref().and_then(|opened| opened.kind_of(name));
        let now = now.filter(|kind| !choice.leaves_out(&path, *kind));
        if before == now {
            if now == Some(FileKind::File) && is_written {
                changes.push(FolderChange::Written(path));
            }
            return;
        }
        if let Some(kind) = before {
            let beneath = self.beneath(&path).flat_map(|(_, folder)| folder.all());
            changes.extend(beneath.map(|(path, kind)| FolderChange::Deleted(path, kind.0)));
            self.drop_name(folder, name);
            changes.push(FolderChange::Deleted(path.clone(), kind));
        }
        if let (Some(kind), Some(opened)) = (now, opened) {
            self.put_name(folder, name, kind);
            changes.push(FolderChange::Created(path.clone(), kind));
            if kind == FileKind::Folder
                && let Ok(entered) = opened.folder(name)
            {
                self.enter(&entered, &path, 0, choice, changes);
            }
        }
    }

    /// Looks everywhere again, and tells what came and what went.
    fn lost(&mut self, choice: &mut dyn WatchFilter) -> Vec<FolderChange> {
        let before = self.all();
        // What is still waiting is about what is looked at now.
        while !self.names.read().is_empty() {}
        self.again(choice);
        let mut changes = differences(&before, &self.all());
        changes.push(FolderChange::Lost);
        changes
    }

    fn all(&self) -> BTreeSet<(PathBuf, Ranked)> {
        self.folders.values().flat_map(SeenFolder::all).collect()
    }

    /// Watches a folder and all in it. What is found there is told: it came before it was watched.
    fn enter(
        &mut self,
        folder: &FolderListing,
        path: &Path,
        depth: usize,
        choice: &mut dyn WatchFilter,
        changes: &mut Vec<FolderChange>,
    ) {
        if self.folders.len() >= MAX_FOLDERS || self.known >= MAX_KNOWN || depth > MAX_DEPTH {
            self.is_partial = true;
            return;
        }
        // First watched, then listed: what comes in between is seen twice and not never.
        let Ok(watched) = self.names.add(folder.root()) else {
            self.is_partial = true;
            return;
        };
        self.forget(watched);
        let mut listed = Vec::new();
        let all = folder.each(&mut root::NameBuffer::default(), |name, kind| {
            listed.push((name.to_owned(), kind));
            if listed.len() > MAX_KNOWN { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        self.is_partial |= !matches!(all, Ok(ControlFlow::Continue(())));
        choice.enter(folder, path, &listed);
        listed.retain(|(name, kind)| !choice.leaves_out(&path.join(name), *kind));
        self.known += listed.len();
        let names = listed.iter().cloned().collect();
        self.folders.insert(watched, SeenFolder { path: path.to_owned(), names });
        self.by_path.insert(path.to_owned(), watched);
        for (name, kind) in listed {
            let path = path.join(&name);
            changes.push(FolderChange::Created(path.clone(), kind));
            if kind != FileKind::Folder {
                continue;
            }
            match folder.folder(&name) {
                Ok(beneath) => self.enter(&beneath, &path, depth + 1, choice, changes),
                Err(FolderError::NotFound | FolderError::Linked | FolderError::NotAFolder) => {}
                Err(_) => self.is_partial = true,
            }
        }
    }

    fn open(&self, folder: &Path) -> Option<FolderListing> {
        let (above, root) = self.roots.iter().rev().find(|(above, _)| folder.starts_with(above))?;
        root.listing_beneath(folder.strip_prefix(above).ok()?).ok()
    }

    fn known_at(&self, folder: &Path, name: &OsStr) -> Option<FileKind> {
        self.folders.get(self.by_path.get(folder)?)?.names.get(name).copied()
    }

    fn put_name(&mut self, folder: &Path, name: &OsStr, kind: FileKind) {
        let folder = self.by_path.get(folder).and_then(|watched| self.folders.get_mut(watched));
        if let Some(folder) = folder
            && folder.names.insert(name.to_owned(), kind).is_none()
        {
            self.known += 1;
        }
    }

    /// Forgets a name, and if it was a folder, all that was in it.
    fn drop_name(&mut self, folder: &Path, name: &OsStr) {
        let path = folder.join(name);
        let folder = self.by_path.get(folder).and_then(|watched| self.folders.get_mut(watched));
        if folder.is_some_and(|folder| folder.names.remove(name).is_some()) {
            self.known -= 1;
        }
        let beneath: Vec<Watched> = self.beneath(&path).map(|(watched, _)| watched).collect();
        for watched in beneath {
            self.names.remove(watched);
            self.forget(watched);
        }
    }

    /// The folders at and beneath a path.
    fn beneath(&self, path: &Path) -> impl Iterator<Item = (Watched, &SeenFolder)> {
        let path = path.to_owned();
        let from = self.by_path.range(path.clone()..);
        from.take_while(move |(beneath, _)| beneath.starts_with(&path))
            .filter_map(|(_, watched)| Some((*watched, self.folders.get(watched)?)))
    }

    fn forget(&mut self, watched: Watched) {
        let Some(folder) = self.folders.remove(&watched) else { return };
        self.known -= folder.names.len();
        if self.by_path.get(&folder.path) == Some(&watched) {
            self.by_path.remove(&folder.path);
        }
    }
}

impl Drop for TreeWatch {
    /// Somebody may still wait for the bell; the kernel need not watch for that.
    fn drop(&mut self) {
        for watched in self.folders.keys() {
            self.names.remove(*watched);
        }
    }
}

impl SeenFolder {
    /// Where all that is in it is.
    fn all(&self) -> impl Iterator<Item = (PathBuf, Ranked)> {
        self.names.iter().map(|(name, kind)| (self.path.join(name), Ranked(*kind)))
    }
}

impl WatchBell {
    /// Waits until something has changed. Nothing is lost if it is dropped.
    pub async fn rung(&self) -> io::Result<()> {
        self.0.wait().await
    }
}

fn differences(before: &BTreeSet<(PathBuf, Ranked)>, now: &BTreeSet<(PathBuf, Ranked)>) -> Vec<FolderChange> {
    let gone = before.difference(now).map(|(path, kind)| FolderChange::Deleted(path.clone(), kind.0));
    let come = now.difference(before).map(|(path, kind)| FolderChange::Created(path.clone(), kind.0));
    gone.chain(come).collect()
}

/// A kind, so that it can be put in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ranked(FileKind);

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.name().cmp(other.0.name())
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests;
