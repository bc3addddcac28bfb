//! A child's stderr: always drained, logged at WARN with the destination's name, never forwarded (B-15). The last lines are
//! kept for whoever looks at the destination.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use prism_core::wire::{Frame, Lines};
use tokio::net::unix::pipe::Receiver;
use tracing::warn;

use super::destination::lock;

/// The longest line that is shown whole.
const MAX_LINE_BYTES: usize = 8 << 10;
/// Lines shown per second. A server in a loop of errors must not bury the rest of the log.
const LINES_PER_SECOND: u32 = 50;
/// Lines that are kept of one destination. Beyond it the oldest goes.
const MAX_KEPT: usize = 50;
/// What is kept of a line. The rest is cut.
const MAX_KEPT_BYTES: usize = 500;

/// The last lines of a destination's servers.
#[derive(Debug, Default)]
pub struct Tail(Mutex<VecDeque<Written>>);

/// A line as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    pub text: String,
}

impl Tail {
    fn keep(&self, line: &[u8]) {
        let cut = &line[..line.len().min(MAX_KEPT_BYTES)];
        let mut text = String::from_utf8_lossy(cut).trim_end().to_owned();
        if cut.len() < line.len() {
            text.push('…');
        }
        let mut kept = lock(&self.0);
        if kept.len() >= MAX_KEPT {
            kept.pop_front();
        }
        kept.push_back(Written { text });
    }

    /// The oldest first.
    pub fn lines(&self) -> Vec<Written> {
        lock(&self.0).iter().cloned().collect()
    }
}

/// Reads until the child has closed it.
pub(super) fn drain(stderr: Receiver, destination: String, tail: Arc<Tail>) {
    tokio::spawn(async move {
        let mut lines = Lines::new(MAX_LINE_BYTES);
        let (mut second, mut shown, mut hidden) = (Instant::now(), 0, 0_u32);
        while stderr.readable().await.is_ok() {
            match stderr.try_read_buf(lines.space()) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
                Err(_) => break,
            }
            while let Some(frame) = lines.next_frame() {
                let (Frame::Line(text) | Frame::TooLong { head: text, .. }) = frame;
                tail.keep(&text);
                if second.elapsed() >= Duration::from_secs(1) {
                    if hidden > 0 {
                        warn!(destination, lines = hidden, "More lines on the server's stderr were not shown");
                    }
                    (second, shown, hidden) = (Instant::now(), 0, 0);
                }
                if shown >= LINES_PER_SECOND {
                    hidden += 1;
                    continue;
                }
                shown += 1;
                warn!(destination, "stderr: {}", String::from_utf8_lossy(&text).escape_debug());
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_lines_are_kept_and_none_is_long() {
        let tail = Tail::default();
        for line in 0..MAX_KEPT + 3 {
            tail.keep(format!("line {line}\r").as_bytes());
        }
        assert_eq!(tail.lines().len(), MAX_KEPT);
        assert_eq!(tail.lines()[0].text, "line 3");
        tail.keep("ä".repeat(MAX_KEPT_BYTES).as_bytes());
        let long = tail.lines().pop().unwrap().text;
        assert!(long.ends_with('…') && long.len() <= MAX_KEPT_BYTES + 3, "{}", long.len());
    }
}
