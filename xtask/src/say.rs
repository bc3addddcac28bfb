//! Lines for the person in front of the terminal. A reader that has left is no reason to stop.

use std::{fmt::Display, io::Write};

pub(crate) fn say(line: impl Display) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}");
    let _ = out.flush();
}

pub(crate) fn complain(line: impl Display) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}
