//! Unsaved text, kept in a folder of Prism's own until it is saved or dropped: it outlives the daemon, however that ends. What
//! was changed in the last moment before a `kill -9` may be missing.

use std::{
    collections::HashSet,
    fs::{self, OpenOptions, Permissions},
    io::{self, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use tokio::{sync::Notify, task::spawn_blocking, time::sleep};

use super::{Buffers, MAX_OPEN, buffer::Buffer};
use crate::{encoding, text::TextState};

/// Where it is kept, and what has changed since it was last written there.
#[derive(Debug)]
pub(super) struct UnsavedKeeper {
    folder: PathBuf,
    /// Paths of buffers, so no more than are open and have just been closed.
    changed: Mutex<HashSet<PathBuf>>,
    rung: Notify,
}

/// A text that waits to be saved.
#[derive(Serialize, Deserialize)]
struct KeptText {
    path: PathBuf,
    /// Of the file that it was made from.
    digest: String,
    text: String,
}

/// How long changes are gathered before they are written.
const GATHER: Duration = Duration::from_millis(300);

/// Writes what has changed, for as long as the buffers are there.
pub(crate) async fn keep_unsaved(state: Weak<TextState>) {
    loop {
        let Some(strong) = state.upgrade() else { return };
        let Some(keeper) = strong.buffers.keeper.clone() else { return };
        drop(strong);
        keeper.rung.notified().await;
        sleep(GATHER).await;
        let Some(strong) = state.upgrade() else { return };
        let _ = spawn_blocking(move || strong.buffers.write_unsaved()).await;
    }
}

// === impl UnsavedKeeper ===

impl UnsavedKeeper {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, changed: Mutex::default(), rung: Notify::new() }
    }

    pub(super) fn changed(&self, path: &Path) {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned());
        self.rung.notify_one();
    }

    fn take_changed(&self) -> HashSet<PathBuf> {
        std::mem::take(&mut *self.changed.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn file(&self, path: &Path) -> PathBuf {
        self.folder.join(format!("{}.json", encoding::digest_of(path.as_os_str().as_encoded_bytes())))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        match fs::remove_file(self.file(path)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn write(&self, kept: &KeptText) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        fs::set_permissions(&self.folder, Permissions::from_mode(0o700))?;
        let (file, new) = (self.file(&kept.path), self.folder.join("new"));
        let mut written = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        written.write_all(&serde_json::to_vec(kept)?)?;
        fs::rename(new, file)
    }
}

// === impl Buffers ===

impl Buffers {
    /// Writes what has changed since the last time, and removes what is saved by now. Blocks.
    pub(crate) fn write_unsaved(&self) {
        let Some(keeper) = &self.keeper else { return };
        for path in keeper.take_changed() {
            let buffer = self.at(&path);
            // Not while it is saved: what was saved meanwhile would come back as unsaved.
            let _turn = buffer.as_ref().map(|buffer| buffer.saving());
            let done = match buffer.as_ref().filter(|buffer| buffer.is_dirty()) {
                Some(buffer) => {
                    let (text, digest) = buffer.unsaved();
                    keeper.write(&KeptText { path: path.clone(), digest, text: text.to_string() })
                }
                None => keeper.remove(&path),
            };
            if done.is_err() {
                // The disk may be full; at the next change it is tried again.
                keeper.changed.lock().unwrap_or_else(PoisonError::into_inner).insert(path);
            }
        }
    }

    /// Keeps no text of a file that was just saved. To be called before anybody is told: after a `kill -9` an older text would be
    /// taken for unsaved. Blocks.
    pub(super) fn is_saved(&self, path: &Path) {
        if let Some(keeper) = &self.keeper {
            let _ = keeper.remove(path);
        }
    }

    /// Opens what an earlier daemon has kept. Whether the files are still those, the first look at each tells.
    pub(super) fn restore(&self) {
        let Some(keeper) = &self.keeper else { return };
        let Ok(entries) = fs::read_dir(&keeper.folder) else { return };
        for entry in entries.flatten().take(MAX_OPEN) {
            let Ok(bytes) = fs::read(entry.path()) else { continue };
            let Ok(kept) = serde_json::from_slice::<KeptText>(&bytes) else { continue };
            let buffer = Buffer::unsaved_since(kept.path, kept.text.into(), kept.digest, || self.versions.next());
            let _ = self.add(Arc::new(buffer));
        }
    }
}
