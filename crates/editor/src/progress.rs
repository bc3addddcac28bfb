//! How far a long work is, for whoever waits for it.

use tokio::sync::mpsc;

/// A word about how far it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgressNote {
    pub message: String,
    pub done: Option<u64>,
    pub total: Option<u64>,
}

/// Where a work says how far it is.
#[derive(Clone, Debug)]
pub struct ProgressSink(Option<mpsc::Sender<ProgressNote>>);

/// Notes that nobody has read yet. Beyond it new ones are dropped: the next is truer anyway.
const MAX_UNREAD: usize = 16;

/// Letters of a note.
const MAX_MESSAGE: usize = 200;

impl ProgressSink {
    /// For work that nobody follows.
    pub fn unseen() -> Self {
        Self(None)
    }

    pub fn channel() -> (Self, mpsc::Receiver<ProgressNote>) {
        let (sender, receiver) = mpsc::channel(MAX_UNREAD);
        (Self(Some(sender)), receiver)
    }

    /// Says how far it is. Never waits.
    pub fn say(&self, message: &str, done: Option<u64>, total: Option<u64>) {
        if let Some(notes) = &self.0 {
            let message = message.chars().take(MAX_MESSAGE).collect();
            let _ = notes.try_send(ProgressNote { message, done, total });
        }
    }
}
