//! Edits on a text by byte, made all at once, and what undoes them.

use std::{fmt, ops::Range};

/// One replacement, about the text as it was before any of its fellows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TextEdit {
    pub(crate) range: Range<usize>,
    pub(crate) new_text: String,
}

/// Two edits, by their places in the list, that are about the same part of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Overlap(usize, usize);

/// Returns the text with all edits made, and the edits that lead back. Several insertions at one place stay in their order.
/// Ranges must lie within the text and on characters' borders.
pub(crate) fn apply(text: &str, edits: &[TextEdit]) -> Result<(String, Vec<TextEdit>), Overlap> {
    let mut order: Vec<usize> = (0..edits.len()).collect();
    order.sort_by_key(|i| (edits[*i].range.start, edits[*i].range.end, *i));
    let mut new = String::with_capacity(text.len());
    let mut back = Vec::with_capacity(edits.len());
    let (mut done, mut last) = (0, 0);
    for i in order {
        let TextEdit { range, new_text } = &edits[i];
        if range.start < done {
            return Err(Overlap(last, i));
        }
        new.push_str(&text[done..range.start]);
        let start = new.len();
        new.push_str(new_text);
        back.push(TextEdit { range: start..new.len(), new_text: text[range.clone()].to_owned() });
        (done, last) = (range.end, i);
    }
    new.push_str(&text[done..]);
    Ok((new, back))
}

impl fmt::Display for Overlap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "edits {} and {} overlap", self.0, self.1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_undoes_edits_leads_back(text in "[a-zß😀\n]{0,40}", cuts in proptest::collection::vec((0_usize..60, 0_usize..4, "[xyß]{0,3}"), 0..6)) {
            let borders: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
            let edit = |(at, length, new_text): (usize, usize, String)| {
                let (start, end) = (at % borders.len(), (at % borders.len() + length).min(borders.len() - 1));
                TextEdit { range: borders[start]..borders[end], new_text }
            };
            let edits: Vec<TextEdit> = cuts.into_iter().map(edit).collect();
            if let Ok((new, back)) = apply(&text, &edits) {
                prop_assert_eq!(apply(&new, &back).unwrap().0, text);
            }
        }
    }
}
