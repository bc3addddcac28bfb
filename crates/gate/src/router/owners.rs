//! Whose a folder is. Of all editors that have it open and show that somebody is there, the newest; with none, it is the
//! built-in editor's. Never two at a time: while texts change hands the folder is nobody's, and who wants something there
//! waits.
//!
//! An old window that reconnects is still the old one (VS Code keeps the hosts of closed windows for hours, and they come
//! back first): what counts is when an instance began, not when it connected.

use std::{
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::watch;

use super::plugin::Plugin;

/// All editors that are connected.
#[derive(Debug)]
pub(super) struct FolderOwners {
    table: Mutex<Vec<OwnerEntry>>,
    /// Grows with each change.
    changed: watch::Sender<u64>,
}

#[derive(Clone, Debug)]
struct OwnerEntry {
    plugin: Arc<Plugin>,
    stage: OwnershipStage,
}

/// How far an editor is with its folders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OwnershipStage {
    /// It owns nothing: nobody has answered there yet, or does any more.
    Unsure,
    /// It is being given the texts of its folders.
    Taking,
    Owner,
    /// They are being taken back.
    Leaving,
}

/// Whose a path is.
#[derive(Clone, Debug)]
pub(super) enum PathOwner {
    BuiltIn,
    Plugin(Arc<Plugin>),
    /// It changes hands.
    Nobody,
}

/// Editors that are connected at a time. A further one is refused: nobody has that many windows.
pub(super) const MAX_PLUGINS: usize = 64;

impl FolderOwners {
    pub(super) fn new() -> Self {
        Self { table: Mutex::default(), changed: watch::Sender::new(0) }
    }

    /// Adds one that owns nothing yet. Returns whether there was room.
    pub(super) fn add(&self, plugin: Arc<Plugin>) -> bool {
        let mut table = self.table();
        if table.len() >= MAX_PLUGINS {
            return false;
        }
        table.push(OwnerEntry { plugin, stage: OwnershipStage::Unsure });
        drop(table);
        self.tell();
        true
    }

    pub(super) fn set(&self, plugin: &Arc<Plugin>, stage: OwnershipStage) {
        let mut table = self.table();
        if let Some(entry) = table.iter_mut().find(|entry| Arc::ptr_eq(&entry.plugin, plugin)) {
            entry.stage = stage;
        }
        drop(table);
        self.tell();
    }

    pub(super) fn remove(&self, plugin: &Arc<Plugin>) {
        self.table().retain(|entry| !Arc::ptr_eq(&entry.plugin, plugin));
        self.tell();
    }

    pub(super) fn of(&self, path: &Path) -> PathOwner {
        let table = self.table();
        let covering = table.iter().filter(|entry| entry.stage != OwnershipStage::Unsure && entry.plugin.covers(path));
        match covering.max_by_key(|entry| entry.plugin.newness) {
            None => PathOwner::BuiltIn,
            Some(OwnerEntry { plugin, stage: OwnershipStage::Owner }) => PathOwner::Plugin(plugin.clone()),
            Some(_) => PathOwner::Nobody,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.table().is_empty()
    }

    /// All that are connected, the newest first.
    pub(super) fn all(&self) -> Vec<(Arc<Plugin>, OwnershipStage)> {
        let mut all: Vec<_> = self.table().iter().map(|entry| (entry.plugin.clone(), entry.stage)).collect();
        all.sort_by_key(|(plugin, _)| std::cmp::Reverse(plugin.newness));
        all
    }

    /// Grows with each change.
    pub(super) fn generation(&self) -> u64 {
        *self.changed.borrow()
    }

    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    fn tell(&self) {
        self.changed.send_modify(|count| *count += 1);
    }

    fn table(&self) -> MutexGuard<'_, Vec<OwnerEntry>> {
        // Nothing panics while it holds the lock, and each change of it is whole.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use prism_core::Time;
    use serde_json::json;

    use super::*;

    fn plugin(name: &str, roots: &[&str], newness: (u64, u64)) -> Arc<Plugin> {
        let register = json!({"protocol": 1, "instance_id": name, "kind": name, "roots": roots, "capabilities": []});
        let roots = roots.iter().map(PathBuf::from).collect();
        Plugin::new(name, &serde_json::from_value(register).unwrap(), roots, newness, Time(0)).0
    }

    fn owner(owners: &FolderOwners, path: &str) -> String {
        match owners.of(Path::new(path)) {
            PathOwner::BuiltIn => "built-in".to_owned(),
            PathOwner::Plugin(plugin) => plugin.about.plugin.clone(),
            PathOwner::Nobody => "nobody".to_owned(),
        }
    }

    //
    #[test]
    fn a_path_belongs_to_the_newest_editor_that_is_alive_above_it() {
        let owners = FolderOwners::new();
        let (old, new) = (plugin("old", &["/w"], (1, 2)), plugin("new", &["/w/a", "/v"], (5, 1)));
        for one in [&old, &new] {
            assert!(owners.add(one.clone()));
        }
        assert_eq!(owner(&owners, "/w/a/x"), "built-in", "neither has shown that it is alive");
        owners.set(&old, OwnershipStage::Owner);
        assert_eq!(owner(&owners, "/w/a/x"), "old");
        owners.set(&new, OwnershipStage::Taking);
        assert_eq!(owner(&owners, "/w/a/x"), "nobody");
        owners.set(&new, OwnershipStage::Owner);
        let whose = ["/w/a/x", "/w/a", "/w/ab", "/w", "/v/x", "/"].map(|path| owner(&owners, path));
        assert_eq!(whose, ["new", "new", "old", "old", "new", "built-in"]);
        owners.set(&new, OwnershipStage::Leaving);
        assert_eq!(owner(&owners, "/v/x"), "nobody");
        owners.set(&new, OwnershipStage::Unsure);
        assert_eq!(owner(&owners, "/w/a/x"), "old");
        owners.remove(&old);
        assert_eq!(owner(&owners, "/w/a/x"), "built-in");
    }

    //
    #[test]
    fn an_old_instance_that_comes_back_does_not_take_over_from_a_newer_one() {
        let owners = FolderOwners::new();
        let (window, ghost) = (plugin("window", &["/w"], (20, 1)), plugin("ghost", &["/w"], (10, 2)));
        for one in [&window, &ghost] {
            owners.add(one.clone());
            owners.set(one, OwnershipStage::Owner);
        }
        assert_eq!(owner(&owners, "/w/x"), "window");
    }

    #[test]
    fn there_is_room_for_so_many() {
        let owners = FolderOwners::new();
        let mut newness = 0..;
        let mut next = || plugin("p", &["/w"], (0, newness.next().unwrap()));
        assert!((0..MAX_PLUGINS).all(|_| owners.add(next())));
        assert!(!owners.add(next()));
    }
}
