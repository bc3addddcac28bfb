//! The way out: one message, one line, one flush, from any thread. Also the two faults that lie in the bytes
//! themselves. What is said, and when, is not decided here.

use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use super::Fault;

pub(super) struct Outbox {
    pipe: Mutex<Pipe>,
}

struct Pipe {
    to: Box<dyn Write + Send>,
    mood: Mood,
}

/// What becomes of a message that is sent.
enum Mood {
    Clean,
    Noisy,
    /// Broken off: the half line stays the last thing written.
    Silent,
}

/// The kind of thing that children leave on stdout: a banner, a log line that begins like a message but is not
/// even UTF-8, a blank line, and JSON that is no message.
const NOISE: &[u8] = b"> demo listening\n{\"level\":\"info\",\"text\":\"\xff\n\n[]\n42\n";

// === impl Outbox ===

impl Outbox {
    pub(super) fn new(fault: Fault, to: Box<dyn Write + Send>) -> Self {
        let mood = if fault == Fault::Garbage { Mood::Noisy } else { Mood::Clean };
        Self { pipe: Mutex::new(Pipe { to, mood }) }
    }

    pub(super) fn send(&self, message: &Value) -> io::Result<()> {
        // The line is made before the lock is taken, and written at once: others wait for the pipe only.
        // Compact JSON escapes line breaks, so the one we add is the only one.
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        let mut pipe = self.pipe.lock().unwrap_or_else(PoisonError::into_inner);
        match pipe.mood {
            Mood::Clean => {}
            Mood::Noisy => pipe.to.write_all(NOISE)?,
            Mood::Silent => return Ok(()),
        }
        pipe.to.write_all(&line)?;
        pipe.to.flush()
    }

    /// Writes the first half of a message, and never anything again.
    pub(super) fn break_off(&self, message: &Value) -> io::Result<()> {
        let line = serde_json::to_vec(message)?;
        let mut pipe = self.pipe.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(pipe.mood, Mood::Silent) {
            return Ok(());
        }
        pipe.mood = Mood::Silent;
        pipe.to.write_all(&line[..line.len() / 2])?;
        pipe.to.flush()
    }
}
