//! What a pane shows where its cursor is: whether that is an empty prompt, from the bytes that `capture-pane -e` prints.
//!
//! What was seen of Claude Code 2.1 and Codex 0.166: a sign (`❯`, `›`), a space, the cursor. Where the prompt is empty
//! there may stand words of the program's own, faint. Claude Code paints its cursor as a reversed cell, over the first of
//! those words or over the first of the person's.

/// Signs that an agent's prompt begins with.
const SIGNS: [char; 3] = ['❯', '›', '>'];
/// What frames a prompt.
const FRAMES: [char; 4] = ['│', '┃', '|', '▌'];

/// What a pane shows, and where its cursor is.
#[derive(Debug)]
pub(super) struct PaneScreen {
    lines: Vec<Vec<ScreenCell>>,
    column: usize,
    row: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ScreenCell {
    letter: char,
    faint: bool,
    reversed: bool,
}

// === impl PaneScreen ===

impl PaneScreen {
    pub(super) fn read(captured: &str, column: usize, row: usize) -> Self {
        // Colours go on from one line to the next.
        let mut style = ScreenCell { letter: ' ', faint: false, reversed: false };
        Self { lines: captured.split('\n').map(|line| cells(line, &mut style)).collect(), column, row }
    }

    /// A sign before the cursor and nothing else; after it nothing but what the program itself says there; and no second
    /// line of a draft.
    pub(super) fn is_empty_prompt(&self) -> bool {
        let (before, _) = self.at_cursor();
        let mut ink = before.iter().map(|cell| cell.letter).filter(|letter| is_ink(*letter));
        ink.next().is_some_and(|sign| SIGNS.contains(&sign)) && ink.next().is_none() && self.ends_here()
    }

    /// Whether the prompt holds this text, whole, and nothing else. Breaks and indents are those of whoever shows it, and
    /// are not compared.
    pub(super) fn holds(&self, text: &str) -> bool {
        let above = self.lines.get(..self.row).unwrap_or_default();
        let (before, _) = self.at_cursor();
        let mut lines: Vec<&[ScreenCell]> = above.iter().map(Vec::as_slice).collect();
        lines.push(before);
        // From the last line that begins with a sign on, up to the cursor.
        let begins =
            |line: &&[ScreenCell]| line.iter().find(|cell| is_ink(cell.letter)).is_some_and(ScreenCell::is_sign);
        let Some(first) = lines.iter().rposition(begins) else { return false };
        let shown = lines[first..].iter().copied().flatten().map(|cell| cell.letter).filter(|letter| is_ink(*letter));
        shown.skip(1).eq(text.chars().filter(|letter| is_ink(*letter))) && self.ends_here()
    }

    /// Whether another look shows the same where the cursor is. The rest of a screen moves while an agent works.
    pub(super) fn is_as(&self, other: &Self) -> bool {
        let next = |it: &Self| it.lines.get(it.row + 1).cloned();
        (self.column, self.row) == (other.column, other.row)
            && self.at_cursor() == other.at_cursor()
            && next(self) == next(other)
    }

    /// Whether nothing of a person's stands after the cursor.
    fn ends_here(&self) -> bool {
        let (_, after) = self.at_cursor();
        // The cell of a painted cursor is the program's if what follows is.
        let painted = after.first().is_some_and(|cell| cell.reversed)
            && after.get(1).is_some_and(|next| next.faint && is_ink(next.letter));
        let below = self.lines.get(self.row + 1).map(Vec::as_slice).unwrap_or_default();
        after.iter().skip(usize::from(painted)).all(|cell| cell.faint || !is_ink(cell.letter))
            && below.iter().all(|cell| cell.faint || !cell.letter.is_alphanumeric())
    }

    /// The line of the cursor, before it and from it on.
    fn at_cursor(&self) -> (&[ScreenCell], &[ScreenCell]) {
        let line = self.lines.get(self.row).map(Vec::as_slice).unwrap_or_default();
        line.split_at(self.column.min(line.len()))
    }
}

// === impl ScreenCell ===

impl ScreenCell {
    fn is_sign(&self) -> bool {
        SIGNS.contains(&self.letter)
    }
}

/// Neither blank nor a part of a frame.
fn is_ink(letter: char) -> bool {
    !letter.is_whitespace() && !FRAMES.contains(&letter)
}

/// A line without its escapes, each letter with what they said of it.
fn cells(line: &str, style: &mut ScreenCell) -> Vec<ScreenCell> {
    let mut cells = Vec::new();
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter != '\u{1b}' {
            cells.push(ScreenCell { letter, ..*style });
            continue;
        }
        if letters.next_if_eq(&'[').is_none() {
            continue;
        }
        let mut parameters = String::new();
        let end = loop {
            match letters.next() {
                Some(letter @ ('0'..='9' | ';' | ':')) => parameters.push(letter),
                other => break other,
            }
        };
        if end == Some('m') {
            dress(style, &parameters);
        }
    }
    cells
}

/// What a change of colours says of faintness and reversal.
fn dress(style: &mut ScreenCell, parameters: &str) {
    let mut numbers = parameters.split(';');
    while let Some(number) = numbers.next() {
        match number {
            "" | "0" => (style.faint, style.reversed) = (false, false),
            "2" => style.faint = true,
            "22" => style.faint = false,
            "7" => style.reversed = true,
            "27" => style.reversed = false,
            // A colour of its own: the numbers that follow are its parts.
            "38" | "48" | "58" => {
                let parts = if numbers.next() == Some("2") { 3 } else { 1 };
                for _ in 0..parts {
                    numbers.next();
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::PaneScreen;

    const RULE: &str = "────────";

    fn is_empty(line: &str, below: &str, column: usize) -> bool {
        PaneScreen::read(&format!("above\n{line}\n{below}\n"), column, 1).is_empty_prompt()
    }

    #[test]
    fn prompts_that_were_seen_empty_are_empty() {
        // As Codex 0.166 and Claude Code 2.1 print them; the last is a box around a prompt.
        for (line, below, column) in [
            ("\x1b[1m›\x1b[0m\x1b[39m\x1b[49m \x1b[2mAsk Codex to do anything", "\x1b[0m\x1b[39m\x1b[49m", 2),
            ("❯\u{a0}\x1b[7m", RULE, 2),
            ("❯\u{a0}\x1b[7m \x1b[0m\x1b[39m\x1b[49m", RULE, 2),
            ("❯\u{a0}\x1b[7mT\x1b[0;2mry \"fix it\"\x1b[0m", RULE, 2),
            ("\x1b[38;5;246m❯\u{a0}\x1b[7m\x1b[39m \x1b[0m", RULE, 2),
            ("\x1b[38;2;2;2;2m❯ ", RULE, 2),
            ("│ >          │", "╰──────────╯", 4),
        ] {
            assert!(is_empty(line, below, column), "{line:?}");
        }
    }

    #[test]
    fn a_persons_draft_is_never_an_empty_prompt() {
        for (line, below, column) in [
            ("› half a draft", "", 14),
            // The cursor was moved to its start.
            ("› half a draft", "", 2),
            ("❯\u{a0}\x1b[7mh\x1b[0m\x1b[39m\x1b[49malf a draft", RULE, 2),
            ("❯\u{a0}\x1b[7mh\x1b[0m", RULE, 2),
            // Its first line, or its last one, is empty.
            ("❯ ", "  second line", 2),
            ("  ", RULE, 2),
            // A question of the program's.
            ("❯ 1. Yes", "  2. No", 0),
            ("❯ 1. Yes", "  2. No", 2),
            // A colour whose parts look like faintness.
            ("\x1b[38;5;2m› draft", "", 2),
            ("\x1b[38;2;2;2;2m› draft", "", 2),
            // No prompt at all, or one that is not known.
            ("$ ", "", 2),
            ("", "", 0),
            ("> > ", "", 4),
        ] {
            assert!(!is_empty(line, below, column), "{line:?}");
        }
    }

    #[test]
    fn a_prompt_holds_a_text_whatever_the_breaks() {
        let holds = |screen: &str, column, row| PaneScreen::read(screen, column, row).holds("one two three");
        assert!(holds("❯ earlier\n❯ one two three\n────", 15, 1));
        assert!(holds("› one two\n  three\n\n  status", 7, 1));
        assert!(holds("│ > one two  │\n│   three    │\n╰──╯", 9, 1));
        assert!(!holds("❯ one two threex\n────", 16, 0), "somebody typed after it");
        assert!(!holds("❯ xone two three\n────", 16, 0), "or before it");
        assert!(!holds("❯ one two threex\n────", 15, 0), "or moved back");
        assert!(!holds("❯ one two\n────", 9, 0), "a part of it");
        assert!(!holds("one two three\n", 13, 0), "at no prompt");
    }

    #[test]
    fn what_moves_elsewhere_is_no_change() {
        let screen = |above: &str, line: &str| PaneScreen::read(&format!("{above}\n{line}\n"), 2, 1);
        assert!(screen("◦ Working", "❯ ").is_as(&screen("• Working", "❯ ")));
        assert!(!screen("", "❯ ").is_as(&screen("", "❯ x")));
    }
}
