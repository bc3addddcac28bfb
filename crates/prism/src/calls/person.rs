//! The person, as calls see them: somebody who may be asked, and who has everything written down. At the gate that is so
//! for everything; calls need this much of it.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use serde_json::Value;
use uuid::Uuid;

pub(crate) type Eventually<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What is asked.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    /// `tool` or `definition`.
    pub(crate) kind: &'static str,
    pub(crate) agent: String,
    pub(crate) digest: [u8; 32],
    pub(crate) shown: Value,
    pub(crate) wait: Duration,
    pub(crate) asked: Asked,
}

/// Under which id a person is being asked, once they are: whoever waits for them is told what to type.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked(Arc<Mutex<Option<Uuid>>>);

/// What the person said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Allowed,
    Denied(Option<String>),
    /// Nothing yet; the question stays under this id.
    Unanswered(Uuid),
    TooMany,
}

pub(crate) trait Person: Send + Sync {
    /// Asks, or uses what they said before of the very same thing. Dropped, the question is taken back. An error says what
    /// is broken.
    fn ask(&self, question: Question) -> Eventually<'_, Result<Said, String>>;

    /// Returns once the question is no longer open, with whether it was allowed; `None` if that is not to be known.
    fn decided(&self, question: Uuid) -> Eventually<'static, Option<bool>>;

    /// Writes down what is about to happen, and returns once it is on disk.
    fn record<'a>(
        &'a self,
        who: (&'a str, Option<Uuid>),
        args: &'a Value,
        result: &'a str,
    ) -> Eventually<'a, Result<(), String>>;

    /// Writes down that a call was refused.
    fn refused(&self, actor: &str, args: &Value, why: &str);

    /// Writes down something that was seen.
    fn note(&self, action: &str, args: &Value, result: &str);

    /// Whether calls that no rule is for are written down, too.
    fn audits_all(&self) -> bool;

    /// How long a question stays open, and how long a call waits that cannot be kept waiting.
    fn patience(&self) -> (Duration, Duration);
}

// === impl Asked ===

impl Asked {
    pub(crate) fn note(&self, question: Uuid) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(question);
    }

    /// The question that is open now, or was the last.
    pub(crate) fn question(&self) -> Option<Uuid> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
