//! What a command prints: its beginning and its end, as much as an answer should hold.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use tokio::io::{AsyncRead, AsyncReadExt};

use crate::run::observe::RunStream;

/// The beginning and the end of a stream; what is between them is only counted.
#[derive(Default)]
pub(crate) struct BoundedOutput {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    left_out: u64,
    /// The beginning of a line that has not ended.
    line: Vec<u8>,
    /// For those who watch all of it.
    stream: RunStream,
}

/// What is kept of the beginning, and as much again of the end: 1 MiB in all. The rest is read and dropped, so that a command
/// that prints much does not stand still; a mark says how much it was.
pub(super) const HALF: usize = 512 << 10;

/// Bytes of a line. The rest of a longer one is not seen by whoever looks at lines.
const MAX_LINE: usize = 1 << 20;

impl BoundedOutput {
    pub(super) fn of(stream: RunStream) -> Self {
        Self { stream, ..Self::default() }
    }

    /// Reads to the end, and shows each line. What was read is kept if the future is dropped.
    pub(super) async fn read(&mut self, stream: &mut (impl AsyncRead + Unpin), seen: &Mutex<impl FnMut(&str)>) {
        let mut buffer = vec![0; 64 << 10];
        // An error is an end: the pipe is the child's.
        while let Ok(bytes @ 1..) = stream.read(&mut buffer).await {
            self.stream.take(&buffer[..bytes]);
            self.take(&buffer[..bytes]);
            self.lines(&buffer[..bytes], seen);
        }
    }

    fn lines(&mut self, mut bytes: &[u8], seen: &Mutex<impl FnMut(&str)>) {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            self.add(&bytes[..end]);
            self.end_line(seen);
            bytes = &bytes[end + 1..];
        }
        self.add(bytes);
    }

    fn add(&mut self, bytes: &[u8]) {
        let room = MAX_LINE - self.line.len();
        self.line.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// Shows what there is of the last line.
    pub(super) fn end(&mut self, seen: &Mutex<impl FnMut(&str)>) {
        if !self.line.is_empty() {
            self.end_line(seen);
        }
        self.stream.end();
    }

    fn end_line(&mut self, seen: &Mutex<impl FnMut(&str)>) {
        let line = String::from_utf8_lossy(&self.line);
        seen.lock().unwrap_or_else(PoisonError::into_inner)(line.strip_suffix('\r').unwrap_or(&line));
        self.line.clear();
        // One long line must not cost its length for ever.
        self.line.shrink_to(4096);
    }

    fn take(&mut self, bytes: &[u8]) {
        let (first, rest) = bytes.split_at(bytes.len().min(HALF - self.head.len()));
        self.head.extend_from_slice(first);
        self.tail.extend(rest);
        let too_many = self.tail.len().saturating_sub(HALF);
        self.tail.drain(..too_many);
        self.left_out += too_many as u64;
    }

    /// Returns it as text, with a mark where something was left out, and how many bytes that was.
    pub(crate) fn into_text(mut self) -> (String, u64) {
        let mut bytes = self.head;
        if self.left_out > 0 {
            bytes.extend_from_slice(format!("\n[… {} bytes left out …]\n", self.left_out).as_bytes());
        }
        bytes.extend_from_slice(self.tail.make_contiguous());
        (String::from_utf8_lossy(&bytes).into_owned(), self.left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_and_the_end_are_kept_and_the_rest_is_counted() {
        let mut output = BoundedOutput::default();
        output.take(b"first");
        for _ in 0..40 {
            output.take(&[b'.'; 64 << 10]);
        }
        output.take(b"last");
        let (text, left_out) = output.into_text();
        assert!(text.starts_with("first.") && text.ends_with(".last"));
        assert_eq!(left_out, (40 * (64 << 10) + 9 - 2 * HALF) as u64);
        assert!(text.contains(&format!("\n[… {left_out} bytes left out …]\n")));
    }

    #[test]
    fn what_fits_is_kept_as_it_is() {
        let mut output = BoundedOutput::default();
        output.take(&vec![b'a'; 2 * HALF]);
        assert_eq!(output.into_text(), ("a".repeat(2 * HALF), 0));
    }
}
