//! How large the terminal is that stdout is, if it is one, and the keys that are pressed at the one that stdin is.

use std::io::{self, Read};

use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};

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

/// A terminal that gives each key as it is pressed, and does not show it. Ctrl-C is a signal as ever. Dropping it gives
/// the terminal back as it was.
pub struct RawTerminal {
    before: Termios,
}

impl RawTerminal {
    /// Fails where stdin is no terminal.
    pub fn take() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut modes = before.clone();
        modes.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        modes.special_codes[SpecialCodeIndex::VMIN] = 1;
        modes.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(io::stdin(), OptionalActions::Now, &modes)?;
        Ok(Self { before })
    }

    /// Waits for the next byte of a key; `None` when there are no more. Blocks.
    pub fn next() -> Option<u8> {
        let mut byte = [0];
        loop {
            match io::stdin().lock().read(&mut byte) {
                Ok(0) => return None,
                Ok(_) => return Some(byte[0]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing back.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}
