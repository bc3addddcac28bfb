//! What happens in the editor, for whoever listens. Who may hear of what is not decided here: a happening says which file it is
//! about, whose doing it was and, where it is nobody else's business, whom it is for.

use std::{path::Path, path::PathBuf, sync::Arc};

use prism_core::policy::EventSpec;
use serde_json::Value;
use tokio::sync::broadcast;

/// Something that happened.
#[derive(Debug)]
pub struct EditorEvent {
    pub event: &'static EventSpec,
    /// What it is about, absolute. Only those who may reach this may hear of it; of what has no path, all may.
    pub path: Option<PathBuf>,
    /// The one holder that it is for, as with a terminal of its own.
    pub to: Option<u128>,
    /// Whose doing it was; nobody's if it came from outside.
    pub by: Option<u128>,
    pub data: Value,
}

impl EditorEvent {
    /// What a holder is told of it: of what others do, not the command that they run.
    pub fn told_to(&self, holder: u128) -> Value {
        let mut data = self.data.clone();
        if let (Some(own), Some(members)) = (self.event.own, data.as_object_mut())
            && self.by != Some(holder)
        {
            members.remove(own);
        }
        data
    }
}

/// Where happenings are told.
#[derive(Clone, Debug)]
pub(crate) struct Happenings(broadcast::Sender<Arc<EditorEvent>>);

/// Happenings that a slow listener may be behind. Beyond it, it misses the oldest and is told how many.
const MAX_BEHIND: usize = 1024;

impl Happenings {
    pub(crate) fn new() -> Self {
        Self(broadcast::Sender::new(MAX_BEHIND))
    }

    pub(crate) fn listen(&self) -> broadcast::Receiver<Arc<EditorEvent>> {
        self.0.subscribe()
    }

    /// Tells of what happened in another editor.
    pub(crate) fn pass_on(&self, happening: EditorEvent) {
        let _ = self.0.send(Arc::new(happening));
    }

    /// Tells of something that came from outside, or that is the same whoever did it.
    pub(crate) fn tell(&self, name: &str, path: Option<&Path>, data: Value) {
        self.send(name, path, None, None, data);
    }

    /// Tells of something that a holder did.
    pub(crate) fn tell_of(&self, name: &str, path: Option<&Path>, by: u128, data: Value) {
        self.send(name, path, None, Some(by), data);
    }

    /// Tells a holder of what is its own.
    pub(crate) fn tell_only(&self, name: &str, to: u128, data: Value) {
        self.send(name, None, Some(to), Some(to), data);
    }

    fn send(&self, name: &str, path: Option<&Path>, to: Option<u128>, by: Option<u128>, mut data: Value) {
        // What has no row in the table is seen by nobody.
        let Some(event) = EventSpec::named(name) else { return };
        if self.0.receiver_count() == 0 {
            return;
        }
        if let Some(path) = path {
            data["path"] = path.display().to_string().into();
        }
        let _ = self.0.send(Arc::new(EditorEvent { event, path: path.map(Path::to_owned), to, by, data }));
    }
}
