//! What somebody else has written, as a person reads it who decides by it: no letter that cannot be seen stays unseen, and no line
//! looks like one of ours. For everything else `say` hides what a terminal would act on.

use prism_core::unseen::{TextPiece, pieces};

/// Empty lines in a row that are shown. What comes behind more of them could be out of sight.
const MAX_EMPTY: usize = 4;

/// Writes out what turns, hides or imitates other letters, and says how many blanks there are where there are many. Line breaks
/// stay: who shows several lines marks each.
pub(super) fn visible(text: &str) -> String {
    let mut seen = String::with_capacity(text.len());
    for piece in pieces(text) {
        match piece {
            TextPiece::Seen(text) => seen.push_str(text),
            TextPiece::Unseen(letter) => seen.push_str(&format!("\\u{{{:x}}}", u32::from(letter))),
            TextPiece::Blanks(count) => seen.push_str(&format!(" [{count} blanks] ")),
        }
    }
    close_ranks(&seen)
}

/// The same where there is one line only.
pub(super) fn visible_line(text: &str) -> String {
    visible(text).replace('\n', "\\n")
}

fn close_ranks(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut empty = 0;
    let closes = |lines: &mut Vec<String>, empty: usize| {
        if empty > MAX_EMPTY {
            lines.truncate(lines.len() - empty);
            lines.push(format!("[{empty} empty lines]"));
        }
    };
    for line in text.split('\n') {
        if line.trim().is_empty() {
            empty += 1;
        } else {
            closes(&mut lines, std::mem::take(&mut empty));
        }
        lines.push(line.to_owned());
    }
    closes(&mut lines, empty);
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    // M3, L9
    #[test]
    fn what_would_mislead_is_written_out() {
        assert_eq!(visible("pro\u{202e}jtxt\u{200b}"), "pro\\u{202e}jtxt\\u{200b}");
        assert_eq!(visible("a\n  b\tc"), "a\n  b\tc");
        assert_eq!(visible_line("a\nfolders /home/me/harmless"), "a\\nfolders /home/me/harmless");
        assert_eq!(visible("\u{1b}[2J\r"), "\\u{1b}[2J\\u{d}");
        assert_eq!(visible(&format!("ls{}; rm x", " ".repeat(99))), "ls [99 blanks] ; rm x");
        assert_eq!(visible(&format!("ls{}rm x", "\n".repeat(40))), "ls\n[39 empty lines]\nrm x");
        assert_eq!(visible("a\n\n\n\nb"), "a\n\n\n\nb");
    }
}
