//! Pieces of a text that are put in the place of others.

use std::ops::Range;

/// A piece of a text, and what comes into its place.
#[derive(Debug)]
pub(super) struct Splice {
    pub(super) range: Range<usize>,
    text: String,
}

/// Returns a text with its pieces replaced. They do not overlap, and stand in the order of the text.
pub(super) fn apply(text: &str, splices: Vec<Splice>) -> String {
    let mut changed = String::with_capacity(text.len() + 256);
    let mut end = 0;
    for Splice { range, text: new } in splices {
        changed.push_str(&text[end..range.start]);
        changed.push_str(&new);
        end = range.end;
    }
    changed.push_str(&text[end..]);
    changed
}

/// Returns the line end that a text has.
pub(super) fn newline(text: &str) -> &'static str {
    match text.find('\n') {
        Some(end) if text[..end].ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

// === impl Splice ===

impl Splice {
    pub(super) fn new(range: Range<usize>, text: String) -> Self {
        Self { range, text }
    }

    pub(super) fn add(place: usize, text: String) -> Self {
        Self { range: place..place, text }
    }

    pub(super) fn cut(range: Range<usize>) -> Self {
        Self { range, text: String::new() }
    }
}
