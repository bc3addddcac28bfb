//! Words in a file, where they stand as editors count it.

use prism_core::policy::Refusal;
use serde_json::{Value, json};

use crate::{
    Shown,
    args::{Args, wrong},
    edit::Lines,
    files::whole,
    ground::{Ground, place},
    prepared::Work,
    text,
};

/// Places that an answer holds at most, and if nothing else is said; it says if there are more.
const MOST_MATCHES: u64 = 10_000;
const USUAL_MATCHES: u64 = 1_000;

/// Letters of a line that are shown.
const MAX_LINE: usize = 300;

pub(crate) fn find(mut args: Args, ground: &Ground) -> Result<(Shown, Work), Refusal> {
    let path = args.text("path")?;
    let words = args.text("text")?;
    let ignores_case = args.flag("ignore_case")?;
    let limit = args.number("limit", 1, MOST_MATCHES)?.unwrap_or(USUAL_MATCHES);
    args.done()?;
    if words.is_empty() || words.contains(['\n', '\r']) {
        return Err(wrong("`text` must be a part of one line"));
    }
    let file = ground.way(&path)?.open_file()?;
    let place = place(&file, &path).display().to_string();
    let shown = Shown::plain(format!("Search {place}"));
    let work = Work::new(move |_| {
        let bytes = whole(file, &place)?;
        let Some(text) = text::as_text(&bytes) else {
            return Err(wrong(format!("{place:?} is no text")));
        };
        let (matches, is_complete) = found(text, &words, ignores_case, usize::try_from(limit).unwrap_or(usize::MAX));
        let digest = text::digest_of(&bytes);
        Ok(json!({ "path": place, "digest": digest, "matches": matches, "is_complete": is_complete }))
    });
    Ok((shown, work))
}

/// Finds the words in each line, from left to right, where they do not overlap.
fn found(text: &str, words: &str, ignores_case: bool, limit: usize) -> (Vec<Value>, bool) {
    let fold = |text: &str| -> String { text.chars().map(|letter| folded(letter, ignores_case)).collect() };
    let (words, length) = (fold(words), words.chars().count());
    let mut matches = Vec::new();
    for (number, line) in Lines::of(text).iter().enumerate() {
        // Letter by letter it is the line, so both are walked along together.
        let folded = fold(line);
        let mut letters = line.chars();
        let mut units_of = |count| letters.by_ref().take(count).map(char::len_utf16).sum::<usize>();
        let (mut byte, mut units) = (0, 0);
        for (at, _) in folded.match_indices(&words) {
            if matches.len() == limit {
                return (matches, false);
            }
            let start = units + units_of(folded[byte..at].chars().count());
            let end = start + units_of(length);
            let range = json!({
                "start": { "line": number, "character": start },
                "end": { "line": number, "character": end },
            });
            let shown: String = line.chars().take(MAX_LINE).collect();
            matches.push(json!({ "range": range, "line_text": shown }));
            (byte, units) = (at + words.len(), end);
        }
    }
    (matches, true)
}

/// A letter as it is compared. One that has several small letters is left as it is, so that places stay places.
fn folded(letter: char, ignores_case: bool) -> char {
    if !ignores_case {
        return letter;
    }
    let mut small = letter.to_lowercase();
    match (small.next(), small.next()) {
        (Some(small), None) => small,
        _ => letter,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(text: &str, words: &str, ignores_case: bool) -> Vec<(u64, u64, u64)> {
        let place = |found: &Value| {
            let number = |end: &str, name: &str| found["range"][end][name].as_u64().unwrap();
            (number("start", "line"), number("start", "character"), number("end", "character"))
        };
        found(text, words, ignores_case, 100).0.iter().map(place).collect()
    }

    #[test]
    fn words_are_found_where_an_editor_would_put_the_cursor() {
        assert_eq!(places("ab ab\r\n😀ab\rAB", "ab", false), [(0, 0, 2), (0, 3, 5), (1, 2, 4)]);
        assert_eq!(places("ab\nAB ÄB", "äb", true), [(1, 3, 5)]);
        assert_eq!(places("aaa", "aa", false), [(0, 0, 2)]);
        assert_eq!(places("", "a", false), []);
        // Its small form has two letters.
        assert_eq!(places("İx", "x", true), [(0, 1, 2)]);
    }

    #[test]
    fn more_than_asked_for_is_said() {
        let (matches, is_complete) = found("aaa", "a", false, 2);
        assert_eq!((matches.len(), is_complete), (2, false));
        assert!(found("aaa", "a", false, 3).1);
    }
}
