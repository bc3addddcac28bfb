//! The person: somebody who may be asked, and who has everything written down. The gate is one (`crates/gate`); whoever needs
//! a person's word has this much of it and knows no gate.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use serde_json::Value;
use uuid::Uuid;

/// An answer that takes as long as a person or a disk does.
pub type Eventually<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What is asked.
#[derive(Clone, Debug)]
pub struct PersonQuestion {
    /// `action`, `tool` or `definition`.
    pub kind: &'static str,
    pub grant: Option<u128>,
    /// Whose wish it is.
    pub agent: String,
    /// Of what is shown, and of whom it is for.
    pub digest: [u8; 32],
    pub shown: Value,
    /// How long whoever asks can wait.
    pub wait: Duration,
    /// Hears under which id it is asked.
    pub asked: AskedUnder,
}

/// Under which id a person is being asked, once they are: whoever waits for them is told what to type.
#[derive(Clone, Debug, Default)]
pub struct AskedUnder(Arc<Mutex<Option<Uuid>>>);

/// What the person said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PersonVerdict {
    Allowed,
    Denied(Option<String>),
    /// Nothing yet. It goes on waiting under this id.
    Unanswered(Uuid),
    /// There is no room for another question.
    TooMany,
}

/// How long a call can be kept waiting for a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallPatience {
    /// As long as the question is open: its client hears that it waits.
    Long,
    /// Until the client would give up.
    Short,
}

/// Whoever is asked for a person's word.
pub trait Person: Send + Sync {
    /// Asks, or uses what they said before of the very same thing. Dropped, the question is taken back. An error says what
    /// is broken.
    fn ask(&self, question: PersonQuestion) -> Eventually<'_, Result<PersonVerdict, String>>;

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

// === impl AskedUnder ===

impl AskedUnder {
    pub fn note(&self, question: Uuid) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(question);
    }

    /// The question that is open now, or was the last.
    pub fn question(&self) -> Option<Uuid> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
