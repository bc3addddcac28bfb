//! Letters that turn, hide or imitate others, and blanks that push a text out of sight: what somebody else has written could look
//! like something else because of them. Who shows such text to a person writes them out, in its own way.

/// A piece of a text, for who shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextPiece<'a> {
    /// What can be seen as it is.
    Seen(&'a str),
    Unseen(char),
    /// So many blanks in a row.
    Blanks(usize),
}

/// Blanks in a row that are still taken for an indent or a column.
const MAX_BLANKS: usize = 32;

/// Whether a letter is not seen, turns the direction of others around, or is a blank that is none.
pub fn is_unseen(letter: char) -> bool {
    matches!(u32::from(letter),
        0x00a0 | 0x00ad | 0x034f | 0x061c | 0x115f | 0x1160 | 0x1680 | 0x17b4 | 0x17b5 | 0x180b..=0x180f
        | 0x2000..=0x200f | 0x2028..=0x202f | 0x205f..=0x206f | 0x2800 | 0x3000 | 0x3164 | 0xfe00..=0xfe0f | 0xfeff
        | 0xffa0 | 0xfff0..=0xfffb | 0x1d173..=0x1d17a | 0xe0000..=0xe0fff)
}

/// The same for text that is shown wherever it comes from, emoji and scripts included that are written with such letters: a joiner or
/// a form is one only behind a letter that takes it, and a wide blank hides nothing.
pub fn misleads(before: Option<char>, letter: char) -> bool {
    match u32::from(letter) {
        0x00a0 | 0x1680 | 0x2000..=0x200a | 0x202f | 0x205f | 0x2800 | 0x3000 => false,
        0x200c | 0x200d | 0xfe00..=0xfe0f | 0xe0100..=0xe01ef => before.is_none_or(|before| before.is_ascii()),
        _ => is_unseen(letter),
    }
}

/// Takes a text apart. Line breaks and tabs are seen; what else controls a terminal is not.
pub fn pieces(text: &str) -> Vec<TextPiece<'_>> {
    let hides = |letter: char| (letter.is_control() && !matches!(letter, '\n' | '\t')) || is_unseen(letter);
    let is_blank = |letter: char| matches!(letter, ' ' | '\t');
    let mut pieces = Vec::new();
    let (mut rest, mut from) = (text, 0);
    while let Some(letter) = rest[from..].chars().next() {
        let blanks = rest[from..].find(|letter| !is_blank(letter)).unwrap_or(rest.len() - from);
        let (piece, length) = match letter {
            letter if hides(letter) => (TextPiece::Unseen(letter), letter.len_utf8()),
            _ if blanks > MAX_BLANKS => (TextPiece::Blanks(blanks), blanks),
            _ => {
                from += blanks.max(letter.len_utf8());
                continue;
            }
        };
        if from > 0 {
            pieces.push(TextPiece::Seen(&rest[..from]));
        }
        pieces.push(piece);
        (rest, from) = (&rest[from + length..], 0);
    }
    if !rest.is_empty() {
        pieces.push(TextPiece::Seen(rest));
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    // M3, L9
    #[test]
    fn what_turns_or_hides_is_taken_out_of_what_is_seen() {
        use TextPiece::*;
        assert_eq!(pieces(""), []);
        assert_eq!(pieces("a b\n\tc é"), [Seen("a b\n\tc é")]);
        assert_eq!(pieces("ls \u{202e}cba\r"), [Seen("ls "), Unseen('\u{202e}'), Seen("cba"), Unseen('\r')]);
        assert_eq!(pieces("\u{1b}[2J\u{85}"), [Unseen('\u{1b}'), Seen("[2J"), Unseen('\u{85}')]);
        let far = format!("ls{}rm", " ".repeat(300));
        assert_eq!(pieces(&far), [Seen("ls"), Blanks(300), Seen("rm")]);
        let indented = format!("{}x", " ".repeat(MAX_BLANKS));
        assert_eq!(pieces(&indented), [Seen(&indented)]);
        assert_eq!(pieces("a\u{a0}\u{3000}b").len(), 4);
    }

    #[test]
    fn a_joiner_between_letters_that_take_it_is_one() {
        let letters = |text: &str| {
            let mut before = None;
            let hides = |letter| misleads(before.replace(letter), letter);
            text.chars().map(hides).filter(|hides| *hides).count()
        };
        assert_eq!(letters("👨\u{200d}👩 ❤\u{fe0f} می\u{200c}خواهم a\u{a0}b"), 0);
        assert_eq!(letters("r\u{200d}m \u{202e}x \u{200b} \u{2028}\u{e0041}"), 5);
    }
}
