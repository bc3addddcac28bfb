//! What a terminal shows: what was printed, drawn. It is drawn anew each time, from the history, so that nobody pays for it who
//! does not look; what was printed before the history begins is not seen.

use std::num::NonZero;

use prism_os::pty::PtySize;
use serde_json::{Value, json};

pub(super) fn draw(size: PtySize, printed: &[u8]) -> Value {
    let [rows, cols] = [size.rows, size.cols].map(|length| NonZero::new(length).unwrap_or(NonZero::<u16>::MIN));
    let mut parser = vt100::Parser::new(rows, cols, 0);
    parser.process(printed);
    let screen = parser.screen();
    let (line, character) = screen.cursor_position();
    json!({
        "text": screen.contents(),
        "rows": size.rows,
        "cols": size.cols,
        "cursor": { "line": line, "character": character },
        "is_cursor_hidden": screen.hide_cursor(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_overwritten_is_not_seen() {
        let drawn = draw(PtySize { rows: 3, cols: 10 }, b"one\r\ntwo\x1b[1;1HONE\x1b[2;1H\x1b[K\x1b[31mred\x1b[0m");
        assert_eq!(drawn["text"], "ONE\nred");
        assert_eq!(drawn["cursor"], json!({ "line": 1, "character": 3 }));
    }

    #[test]
    fn only_the_last_rows_are_seen() {
        let printed: String = (0..100).map(|i| format!("{i}\r\n")).collect();
        assert_eq!(draw(PtySize { rows: 3, cols: 10 }, printed.as_bytes())["text"], "98\n99");
    }
}
