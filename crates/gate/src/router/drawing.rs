//! What of a program's output may go to the person's own terminal: what draws. An agent's program could else have the terminal do
//! things for it, with the rights of the person's editor: set the clipboard (OSC 52), name the window, end marks of a shell's.
//!
//! Control sequences (CSI: colours, the cursor, parts of the screen) pass; control strings (OSC, DCS, SOS, PM, APC) do not.

/// Reads output piece by piece, and leaves control strings out.
#[derive(Debug, Default)]
pub(super) struct DrawingFilter(Reading);

#[derive(Clone, Copy, Debug, Default)]
enum Reading {
    #[default]
    Text,
    /// After an ESC, which is passed on with what follows.
    Escape,
    /// In a control string, which ends with ST or BEL.
    Skipped,
    /// In one, after an ESC.
    SkippedEscape,
}

impl DrawingFilter {
    /// Returns what of a piece is to be drawn. A sequence may begin in one piece and end in the next.
    pub(super) fn take(&mut self, text: &str) -> String {
        let mut drawn = String::with_capacity(text.len());
        for letter in text.chars() {
            self.0 = match (self.0, letter) {
                (Reading::Text, '\x1b') => Reading::Escape,
                // The same in one letter (C1): DCS, SOS, OSC, PM, APC.
                (Reading::Text, '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}') => Reading::Skipped,
                (Reading::Escape, 'P' | 'X' | ']' | '^' | '_') => Reading::Skipped,
                (Reading::Escape, '\x1b') => Reading::Escape,
                (Reading::Escape, _) => {
                    drawn.push('\x1b');
                    drawn.push(letter);
                    Reading::Text
                }
                (Reading::Text, _) => {
                    drawn.push(letter);
                    Reading::Text
                }
                (Reading::Skipped | Reading::SkippedEscape, '\x07' | '\u{9c}') => Reading::Text,
                (Reading::Skipped | Reading::SkippedEscape, '\x1b') => Reading::SkippedEscape,
                (Reading::SkippedEscape, '\\') => Reading::Text,
                // CAN and SUB break a string off.
                (Reading::Skipped | Reading::SkippedEscape, '\x18' | '\x1a') => Reading::Text,
                (Reading::Skipped, _) => Reading::Skipped,
                // Another sequence breaks it off, too.
                (Reading::SkippedEscape, 'P' | 'X' | ']' | '^' | '_') => Reading::Skipped,
                (Reading::SkippedEscape, _) => {
                    drawn.push('\x1b');
                    drawn.push(letter);
                    Reading::Text
                }
            };
        }
        drawn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_and_the_cursor_pass_and_control_strings_do_not() {
        for (text, expected) in [
            ("\x1b[32mok\x1b[0m\r\n", "\x1b[32mok\x1b[0m\r\n"),
            ("\x1b[2J\x1b[1;1Hü\x1b(B\x1b7", "\x1b[2J\x1b[1;1Hü\x1b(B\x1b7"),
            ("a\x1b]52;c;c2VjcmV0\x07b", "ab"),
            ("a\x1b]0;title\x1b\\b", "ab"),
            ("a\x1bP1$r\x1b\\b\x1b_apc\x1b\\c\x1b^pm\x1b\\d\x1bXsos\x1b\\e", "abcde"),
            ("a\u{9d}52;c;x\u{9c}b", "ab"),
            ("a\x1b\x1b]52;c;x\x07b", "ab"),
            // A string that is broken off by another sequence hides nothing more.
            ("a\x1b]0;t\x1b[31mred", "a\x1b[31mred"),
            ("a\x1b]0;t\x1b]52;c;x\x07b", "ab"),
            ("a\x1b]0;never ended", "a"),
        ] {
            assert_eq!(DrawingFilter::default().take(text), expected, "{text:?}");
            // In whatever pieces it comes.
            let mut filter = DrawingFilter::default();
            let drawn: String = text.chars().map(|letter| filter.take(&letter.to_string())).collect();
            assert_eq!(drawn, expected, "{text:?} in pieces");
        }
    }
}
