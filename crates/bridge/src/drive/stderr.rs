//! A child's stderr: always drained, logged at WARN with the destination's name, never forwarded (B-15). The last lines are
//! kept for whoever looks at the destination.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use prism_core::wire::{Frame, LineSplitter};
use tokio::{net::unix::pipe::Receiver, sync::oneshot};
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
pub struct StderrTail(Mutex<TailBuffer>);

#[derive(Debug, Default)]
struct TailBuffer {
    lines: VecDeque<StderrLine>,
    /// How many there have been in all.
    written: u64,
}

/// A place between two lines.
#[derive(Clone, Copy, Debug, Default)]
pub struct StderrMark(u64);

/// A line as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StderrLine {
    pub text: String,
}

impl StderrTail {
    fn keep(&self, line: &[u8]) {
        let cut = &line[..line.len().min(MAX_KEPT_BYTES)];
        let mut text = String::from_utf8_lossy(cut).trim_end().to_owned();
        if cut.len() < line.len() {
            text.push('…');
        }
        let mut kept = lock(&self.0);
        if kept.lines.len() >= MAX_KEPT {
            kept.lines.pop_front();
        }
        kept.lines.push_back(StderrLine { text });
        kept.written += 1;
    }

    /// The oldest first.
    pub fn lines(&self) -> Vec<StderrLine> {
        lock(&self.0).lines.iter().cloned().collect()
    }

    /// Where the next line will be.
    pub fn mark(&self) -> StderrMark {
        StderrMark(lock(&self.0).written)
    }

    /// Those that came behind a mark, as far as they are kept.
    pub fn since(&self, mark: StderrMark) -> Vec<StderrLine> {
        let kept = lock(&self.0);
        let new = usize::try_from(kept.written.saturating_sub(mark.0)).unwrap_or(usize::MAX).min(kept.lines.len());
        kept.lines.iter().skip(kept.lines.len() - new).cloned().collect()
    }
}

/// Reads until the child, and whatever it has left behind, has closed it. The receiver hears when that is.
pub(super) fn drain(stderr: Receiver, destination: String, tail: Arc<StderrTail>) -> oneshot::Receiver<()> {
    let (closed, is_closed) = oneshot::channel::<()>();
    tokio::spawn(async move {
        let _closed = closed;
        let mut lines = LineSplitter::new(MAX_LINE_BYTES);
        let (mut second, mut shown, mut hidden) = (Instant::now(), 0, 0_u32);
        let mut over = false;
        while !over && stderr.readable().await.is_ok() {
            match stderr.try_read_buf(lines.space()) {
                // Its very last word may lack the line's end.
                Ok(0) => {
                    over = true;
                    lines.space().extend_from_slice(b"\n");
                }
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
    is_closed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_lines_are_kept_and_none_is_long() {
        let tail = StderrTail::default();
        for line in 0..MAX_KEPT + 3 {
            tail.keep(format!("line {line}\r").as_bytes());
        }
        assert_eq!(tail.lines().len(), MAX_KEPT);
        assert_eq!(tail.lines()[0].text, "line 3");
        let mark = tail.mark();
        assert_eq!((tail.since(mark), tail.since(StderrMark(0)).len()), (Vec::new(), MAX_KEPT));
        tail.keep(b"one more");
        assert_eq!(tail.since(mark), [StderrLine { text: "one more".to_owned() }]);
        tail.keep("ä".repeat(MAX_KEPT_BYTES).as_bytes());
        let long = tail.lines().pop().unwrap().text;
        assert!(long.ends_with('…') && long.len() <= MAX_KEPT_BYTES + 3, "{}", long.len());
    }
}
