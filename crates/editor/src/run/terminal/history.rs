//! What a terminal has printed: the last of it, under the offsets that it had in all of it.

use std::collections::VecDeque;

#[derive(Debug, Default)]
pub(super) struct OutputHistory {
    kept: VecDeque<u8>,
    /// The offset of whatever comes next.
    end: u64,
}

/// A part of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OutputPiece {
    pub(super) text: String,
    /// Where the next piece begins.
    pub(super) next: u64,
    /// Bytes before it that were asked for and are gone.
    pub(super) left_out: u64,
}

/// What is kept. The oldest goes first, and an answer says how much has gone.
const MAX_KEPT: usize = 1 << 20;

impl OutputHistory {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.end += bytes.len() as u64;
        let bytes = &bytes[bytes.len().saturating_sub(MAX_KEPT)..];
        let too_many = (self.kept.len() + bytes.len()).saturating_sub(MAX_KEPT);
        self.kept.drain(..too_many);
        self.kept.extend(bytes);
    }

    pub(super) fn end(&self) -> u64 {
        self.end
    }

    fn start(&self) -> u64 {
        self.end - self.kept.len() as u64
    }

    /// All that is kept.
    pub(super) fn bytes(&self) -> Vec<u8> {
        self.kept.iter().copied().collect()
    }

    /// What comes after an offset. A letter that has come in half is left for the next piece, if more can come.
    pub(super) fn after(&self, offset: u64, limit: usize, can_grow: bool) -> OutputPiece {
        let from = offset.clamp(self.start(), self.end);
        let left_out = from.saturating_sub(offset);
        let skipped = (from - self.start()) as usize;
        let bytes: Vec<u8> = self.kept.iter().skip(skipped).take(limit).copied().collect();
        let is_last = skipped + bytes.len() == self.kept.len();
        let half = if is_last && !can_grow { 0 } else { half_letter(&bytes) };
        // An answer that cannot hold even one letter would never come on.
        let half = if half == bytes.len() && !is_last { 0 } else { half };
        let whole = &bytes[..bytes.len() - half];
        OutputPiece { text: String::from_utf8_lossy(whole).into_owned(), next: from + whole.len() as u64, left_out }
    }

    /// The end of it.
    pub(super) fn last(&self, limit: usize, can_grow: bool) -> OutputPiece {
        let from = self.end.saturating_sub(limit as u64).max(self.start());
        let first = (from - self.start()) as usize;
        // Not from the middle of a letter.
        let rest = self.kept.iter().skip(first).take(3).take_while(|byte| **byte & 0xc0 == 0x80).count();
        let from = if first == 0 { from } else { from + rest as u64 };
        OutputPiece { left_out: from, ..self.after(from, limit, can_grow) }
    }
}

/// How many bytes at the end are the beginning of a letter.
pub(crate) fn half_letter(bytes: &[u8]) -> usize {
    let tail = &bytes[bytes.len().saturating_sub(3)..];
    for back in 1..=tail.len() {
        let byte = tail[tail.len() - back];
        let length = match byte {
            0xc0..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf7 => 4,
            0x80..=0xbf => continue,
            _ => return 0,
        };
        return if length > back { back } else { 0 };
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_stay_what_they_were_and_what_is_gone_is_counted() {
        let mut history = OutputHistory::default();
        history.push(b"hello ");
        history.push(b"world");
        assert_eq!(history.after(6, 100, true), OutputPiece { text: "world".into(), next: 11, left_out: 0 });
        assert_eq!(history.after(0, 5, true), OutputPiece { text: "hello".into(), next: 5, left_out: 0 });
        assert_eq!(history.after(11, 5, true), OutputPiece { text: String::new(), next: 11, left_out: 0 });
        assert_eq!(history.after(99, 5, true).next, 11, "an offset that never was");
        history.push(&vec![b'.'; MAX_KEPT - 5]);
        assert_eq!(history.after(0, 6, true), OutputPiece { text: "world.".into(), next: 12, left_out: 6 });
        history.push(&vec![b'-'; 3 * MAX_KEPT]);
        assert_eq!((history.kept.len(), history.end()), (MAX_KEPT, (4 * MAX_KEPT + 6) as u64));
        let last = history.last(2, true);
        assert_eq!((last.text.as_str(), last.next), ("--", history.end()));
    }

    #[test]
    fn a_letter_is_given_whole() {
        let mut history = OutputHistory::default();
        history.push("aé".as_bytes());
        history.push(&"ü".as_bytes()[..1]);
        assert_eq!(history.after(0, 2, true), OutputPiece { text: "a".into(), next: 1, left_out: 0 });
        assert_eq!(history.after(1, 100, true), OutputPiece { text: "é".into(), next: 3, left_out: 0 });
        assert_eq!(history.after(3, 100, true), OutputPiece { text: String::new(), next: 3, left_out: 0 });
        assert_eq!(history.after(3, 100, false), OutputPiece { text: "\u{fffd}".into(), next: 4, left_out: 0 });
        history.push(&"ü".as_bytes()[1..]);
        assert_eq!(history.after(3, 100, true).text, "ü");
        assert_eq!(history.last(3, true).text, "ü", "not from the middle of é");
        assert_eq!(history.after(1, 1, true).next, 2, "it comes on even so");
    }
}
