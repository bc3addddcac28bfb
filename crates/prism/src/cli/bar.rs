//! A progress bar on a terminal; in a pipe, a line now and then. What takes no time shows nothing.

use std::{
    io::{self, IsTerminal},
    time::{Duration, Instant},
};

use super::say;

/// How far one piece of work is. It goes away when it is dropped.
pub struct ProgressBar {
    what: &'static str,
    terminal: bool,
    begun: Instant,
    drawn: Option<Instant>,
}

/// What is done sooner than this needs no bar.
const PATIENCE: Duration = Duration::from_millis(200);

/// How often a bar is drawn, and a line is written in its place.
const FRAME: Duration = Duration::from_millis(50);
const LINE: Duration = Duration::from_secs(2);

/// Characters of the bar itself.
const WIDTH: usize = 24;

impl ProgressBar {
    /// Begins a bar for something, as in "indexing notes".
    #[must_use]
    pub fn new(what: &'static str) -> Self {
        Self { what, terminal: io::stderr().is_terminal(), begun: Instant::now(), drawn: None }
    }

    /// Shows how much of how much is done.
    pub fn show(&mut self, done: usize, total: usize) {
        let now = Instant::now();
        let (first, pause) = if self.terminal { (PATIENCE, FRAME) } else { (LINE, LINE) };
        let due = self.drawn.map_or(self.begun + first, |drawn| drawn + pause);
        if now < due {
            return;
        }
        self.drawn = Some(now);
        if self.terminal {
            say::status(Some(&drawn(self.what, done, total)));
        } else {
            say::note(&format!("{}: {done} of {total}", self.what));
        }
    }

    /// Returns how long it has been going on.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }
}

impl Drop for ProgressBar {
    fn drop(&mut self) {
        if self.terminal && self.drawn.is_some() {
            say::status(None);
        }
    }
}

fn drawn(what: &str, done: usize, total: usize) -> String {
    let part = |of: usize| done.saturating_mul(of).checked_div(total).unwrap_or(of).min(of);
    let filled = part(WIDTH);
    format!("{what} [{}{}] {:3}% {done}/{total}", "=".repeat(filled), " ".repeat(WIDTH - filled), part(100))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_fills_up() {
        assert_eq!(drawn("indexing", 0, 8), format!("indexing [{}]   0% 0/8", " ".repeat(24)));
        assert_eq!(drawn("indexing", 4, 8), format!("indexing [{}{}]  50% 4/8", "=".repeat(12), " ".repeat(12)));
        assert_eq!(drawn("indexing", 8, 8), format!("indexing [{}] 100% 8/8", "=".repeat(24)));
        assert_eq!(drawn("indexing", 0, 0), format!("indexing [{}] 100% 0/0", "=".repeat(24)));
    }
}
