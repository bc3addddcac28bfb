//! A child's stderr: always drained, logged at WARN with the destination's name, never forwarded (B-15).

use std::time::{Duration, Instant};

use prism_core::wire::{Frame, Lines};
use tokio::net::unix::pipe::Receiver;
use tracing::warn;

/// The longest line that is shown whole.
const MAX_LINE_BYTES: usize = 8 << 10;
/// Lines shown per second. A server in a loop of errors must not bury the rest of the log.
const LINES_PER_SECOND: u32 = 50;

/// Reads until the child has closed it.
pub(super) fn drain(stderr: Receiver, destination: String) {
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
                let (Frame::Line(text) | Frame::TooLong { head: text, .. }) = frame;
                warn!(destination, "stderr: {}", String::from_utf8_lossy(&text).escape_debug());
            }
        }
    });
}
