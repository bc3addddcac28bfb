//! How large the terminal is that stdout is, if it is one.

use std::io;

/// Returns how many letters fit into a line; `None` if that cannot be known.
pub fn width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// Returns how many lines fit; `None` if that cannot be known.
pub fn height() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    Some(usize::from(size.ws_row)).filter(|rows| *rows > 0)
}
