//! What happens in the mesh, for whoever looks on: `GET /prism/mesh/events`.

use prism_core::mesh::Time;
use serde_json::Value;
use tokio::sync::broadcast;

use crate::clock::written;

/// Events that a slow onlooker may be behind. Beyond it, it misses the oldest and is told how many.
const MAX_BEHIND: usize = 1024;

/// Something that happened.
#[derive(Clone, Debug)]
pub struct Event {
    pub name: &'static str,
    /// JSON, with the time in it.
    pub data: std::sync::Arc<str>,
}

#[derive(Debug)]
pub struct Events(broadcast::Sender<Event>);

impl Events {
    pub fn listen(&self) -> broadcast::Receiver<Event> {
        self.0.subscribe()
    }

    /// Tells what happened, in words that are only looked for if somebody looks on.
    pub(super) fn tell(&self, name: &'static str, at: Time, data: impl FnOnce() -> Value) {
        if self.0.receiver_count() > 0 {
            let mut data = data();
            data["at"] = written(at).into();
            let _ = self.0.send(Event { name, data: data.to_string().into() });
        }
    }
}

impl Default for Events {
    fn default() -> Self {
        Self(broadcast::Sender::new(MAX_BEHIND))
    }
}
