//! How a text came to be, so that it can be led back, and forth again.

use std::{collections::VecDeque, sync::Arc};

use prism_core::policy::Refusal;

use crate::{
    args::wrong,
    encoding,
    text::edit::{TextEdit, apply},
};

/// Changes that can be undone, the last one last, and those that were undone.
#[derive(Debug, Default)]
pub(super) struct EditHistory {
    back: VecDeque<HistoryStep>,
    forth: Vec<HistoryStep>,
    bytes: usize,
}

/// What leads from one text to the next, and whose change that is.
#[derive(Debug)]
struct HistoryStep {
    edits: Vec<TextEdit>,
    by: u128,
}

/// Where so many steps lead.
pub(super) struct Walked {
    pub(super) text: Arc<str>,
    pub(super) digest: String,
    /// Whose changes they are.
    pub(super) makers: Vec<u128>,
}

/// So many changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Steps {
    Back(u64),
    Forth(u64),
}

/// What is kept of one buffer: changes, and bytes of text in them. The oldest are forgotten, and cannot be undone any more.
const MAX_STEPS: usize = 1_000;
const MAX_BYTES: usize = 4 << 20;

/// What an edit costs beside its text.
const EDIT_BYTES: usize = std::mem::size_of::<TextEdit>();

impl EditHistory {
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Notes what leads back from a change that was just made. What had been undone before it cannot be redone.
    pub(super) fn changed(&mut self, back: Vec<TextEdit>, by: u128) {
        let undone: usize = self.forth.drain(..).map(|made| bytes_of(&made.edits)).sum();
        self.bytes = self.bytes - undone + bytes_of(&back);
        self.back.push_back(HistoryStep { edits: back, by });
        while self.back.len() > MAX_STEPS || self.bytes > MAX_BYTES {
            let Some(oldest) = self.back.pop_front() else { break };
            self.bytes -= bytes_of(&oldest.edits);
        }
    }

    /// Returns where so many steps lead. Nothing is changed.
    pub(super) fn retraced(&self, text: &str, steps: Steps) -> Result<Walked, Refusal> {
        let mut now = text.to_owned();
        let walk: Box<dyn Iterator<Item = &HistoryStep>> = match steps {
            Steps::Back(_) => Box::new(self.back.iter().rev()),
            Steps::Forth(_) => Box::new(self.forth.iter().rev()),
        };
        let (count, there_are) = match steps {
            Steps::Back(count) => (count, self.back.len()),
            Steps::Forth(count) => (count, self.forth.len()),
        };
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        if count > there_are {
            let name = if matches!(steps, Steps::Back(_)) { "undone" } else { "redone" };
            return Err(wrong(format!("{there_are} changes can be {name}, not {count}")));
        }
        let mut makers = Vec::new();
        for made in walk.take(count) {
            // They were made for exactly this text, so they cannot overlap.
            if let Ok((text, _)) = apply(&now, &made.edits) {
                now = text;
            }
            makers.push(made.by);
        }
        makers.dedup();
        let digest = encoding::digest_of(now.as_bytes());
        Ok(Walked { text: now.into(), digest, makers })
    }

    /// Goes these steps. `text` is where they begin.
    pub(super) fn walk(&mut self, text: &str, steps: Steps) {
        let (Steps::Back(count) | Steps::Forth(count)) = steps;
        let mut now = text.to_owned();
        for _ in 0..count {
            let made = match steps {
                Steps::Back(_) => self.back.pop_back(),
                Steps::Forth(_) => self.forth.pop(),
            };
            let Some(HistoryStep { edits, by }) = made else { return };
            let Ok((text, inverse)) = apply(&now, &edits) else { return };
            self.bytes = self.bytes + bytes_of(&inverse) - bytes_of(&edits);
            // Whoever undoes or redoes it, it stays the change of who made it.
            let made = HistoryStep { edits: inverse, by };
            match steps {
                Steps::Back(_) => self.forth.push(made),
                Steps::Forth(_) => self.back.push_back(made),
            }
            now = text;
        }
    }
}

fn bytes_of(edits: &[TextEdit]) -> usize {
    edits.iter().map(|edit| edit.new_text.len() + EDIT_BYTES).sum()
}
