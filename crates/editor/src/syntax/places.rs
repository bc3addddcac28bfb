//! Where a byte of a text is as editors count (lines and UTF-16 units from zero), for many bytes of a text that may be one long
//! line: counting from the line's start each time would take time without end.

use serde_json::{Value, json};

/// Line starts, and how many UTF-16 units stand before every `STEP`th byte.
pub(super) struct PlaceIndex<'a> {
    text: &'a str,
    /// Where each line begins, and where it ends without its break, as in `edit::TextLines`.
    lines: Vec<(usize, usize)>,
    units: Vec<usize>,
}

const STEP: usize = 512;

impl<'a> PlaceIndex<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        let bytes = text.as_bytes();
        let (mut lines, mut units) = (Vec::new(), Vec::with_capacity(bytes.len() / STEP + 1));
        let (mut start, mut total) = (0, 0);
        for (i, byte) in bytes.iter().enumerate() {
            if i % STEP == 0 {
                units.push(total);
            }
            total += width(*byte);
            let is_break = *byte == b'\n' || *byte == b'\r' && bytes.get(i + 1) != Some(&b'\n');
            if is_break {
                let is_pair = *byte == b'\n' && i > start && bytes[i - 1] == b'\r';
                lines.push((start, if is_pair { i - 1 } else { i }));
                start = i + 1;
            }
        }
        lines.push((start, bytes.len()));
        Self { text, lines, units }
    }

    /// Returns line and character of a byte. Within a line break it is the line's end.
    pub(super) fn at(&self, byte: usize) -> (usize, usize) {
        let byte = byte.min(self.text.len());
        let line = self.lines.partition_point(|(start, _)| *start <= byte).saturating_sub(1);
        let (start, end) = self.lines[line];
        (line, self.units_before(byte.min(end)) - self.units_before(start))
    }

    pub(super) fn range(&self, bytes: std::ops::Range<usize>) -> Value {
        let place = |byte| {
            let (line, character) = self.at(byte);
            json!({ "line": line, "character": character })
        };
        json!({ "start": place(bytes.start), "end": place(bytes.end) })
    }

    fn units_before(&self, byte: usize) -> usize {
        let Some(known) = self.units.get(byte / STEP) else {
            // Only of an end that falls on a step, behind which there is nothing to have counted.
            let Some(last) = byte.checked_sub(1) else { return 0 };
            return self.units_before(last) + width(self.text.as_bytes()[last]);
        };
        let from = byte / STEP * STEP;
        known + self.text.as_bytes()[from..byte].iter().copied().map(width).sum::<usize>()
    }
}

/// UTF-16 units that a character has, counted at its first byte.
fn width(byte: u8) -> usize {
    match byte {
        0x80..=0xBF => 0,
        0xF0.. => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::text::edit::TextLines;

    proptest! {
        #[test]
        fn they_are_the_places_that_edits_are_made_at(text in "([a-z]{0,9}|\u{e9}|\u{1F980}|\r|\n|\r\n|[ -~]{300}){0,12}") {
            let (places, lines) = (PlaceIndex::of(&text), TextLines::of(&text));
            prop_assert_eq!(places.lines.len(), lines.count());
            for (byte, _) in text.char_indices().chain([(text.len(), ' ')]) {
                let is_in_break = byte > 0 && &text.as_bytes()[byte - 1..(byte + 1).min(text.len())] == b"\r\n";
                let (line, character) = places.at(byte);
                let back = lines.offset((line as u64, character as u64));
                prop_assert_eq!(back, Ok(if is_in_break { byte - 1 } else { byte }));
            }
        }
    }
}
