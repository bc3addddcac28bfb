//! What happens, for whoever looks on: events of the mesh and of the gate.

use std::sync::Arc;

use serde_json::Value;
use tokio::sync::broadcast;

/// Events that a slow onlooker may be behind. Beyond it, it misses the oldest and is told how many.
const MAX_BEHIND: usize = 1024;

/// Something that happened.
#[derive(Clone, Debug)]
pub struct DaemonEvent {
    pub name: &'static str,
    /// JSON.
    pub data: Arc<str>,
}

#[derive(Debug)]
pub struct EventBus(broadcast::Sender<DaemonEvent>);

impl EventBus {
    pub fn listen(&self) -> broadcast::Receiver<DaemonEvent> {
        self.0.subscribe()
    }

    /// Tells what happened, in words that are only looked for if somebody looks on.
    pub fn tell(&self, name: &'static str, data: impl FnOnce() -> Value) {
        if self.0.receiver_count() > 0 {
            let _ = self.0.send(DaemonEvent { name, data: data().to_string().into() });
        }
    }
}

impl Default for EventBus {
    fn default() -> Self {
        Self(broadcast::Sender::new(MAX_BEHIND))
    }
}
