//! A built-in server on a pipe: lines in, lines out, in whichever era the client speaks.

use std::{future::pending, io, sync::Arc};

use bytes::{Bytes, BytesMut};
use prism_core::{
    mcp::Revision,
    wire::{EnvelopeError, Frame, LineSplitter, Message},
};
use serde_json::{json, value::RawValue};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::{
    BuiltinServer,
    reply::INVALID_REQUEST,
    room::{Eras, Peer},
};

/// The longest line that is read. A longer one is skipped to its end and answered with an error.
const MAX_LINE_BYTES: usize = 64 << 20;
/// Messages in one batch. Beyond it the batch is refused whole.
const MAX_BATCH: usize = 256;
/// What is written at once: small messages that wait together leave together.
const WRITE_BYTES: usize = 64 << 10;

const PARSE_ERROR: i32 = -32700;

/// Serves on stdin and stdout until stdin ends. Calls still in flight are abandoned then.
///
/// A read of stdin may still be under way when stdout is gone, so let the runtime end with `shutdown_background`.
pub async fn serve_stdio(server: Arc<BuiltinServer>) -> io::Result<()> {
    serve(server, Eras::Both, tokio::io::stdin(), tokio::io::stdout(), &()).await
}

/// What stands between a pipe and the server: nothing, but for tests of what is at the other end.
pub trait StdioInterceptor {
    /// Looks at a line that came, before anything is done about it.
    fn admit(&self, _line: &[u8]) -> io::Result<LineVerdict> {
        Ok(LineVerdict::On)
    }

    /// Appends a message to what will be written.
    fn put(&self, message: &[u8], to: &mut BytesMut) {
        // Compact JSON escapes line breaks, so the one we add is the only one.
        to.extend_from_slice(message);
        to.extend_from_slice(b"\n");
    }
}

/// What becomes of a line.
pub enum LineVerdict {
    On,
    /// Nobody hears of it.
    Never,
    /// It goes on, and nothing is read after it.
    Last,
}

impl StdioInterceptor for () {}

/// Serves on a pair of pipes until the input ends.
pub async fn serve(
    server: Arc<BuiltinServer>,
    eras: Eras,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin,
    gate: &impl StdioInterceptor,
) -> io::Result<()> {
    let room = Peer::open_in_order(server, eras);
    let mut pipe = OutputPipe { output, gate, unwritten: BytesMut::new() };
    let outcome = tokio::select! {
        biased;
        outcome = read(&room, input, gate) => outcome,
        outcome = pipe.write(&room) => outcome,
    };
    room.close();
    let last = match outcome {
        Ok(()) => pipe.finish(&room).await,
        Err(error) => Err(error),
    };
    match last {
        // A client that closes both pipes at once may leave requests for us to read. It is gone all the same.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome,
    }
}

/// The way out. What was taken from the outbox stays here until it is written, whatever becomes of the writing.
struct OutputPipe<'g, W, G> {
    output: W,
    gate: &'g G,
    unwritten: BytesMut,
}

async fn read(room: &Arc<Peer>, mut input: impl AsyncRead + Unpin, gate: &impl StdioInterceptor) -> io::Result<()> {
    let mut lines = LineSplitter::new(MAX_LINE_BYTES);
    loop {
        let count = input.read_buf(lines.space()).await?;
        if count == 0 {
            // A last line may lack its end.
            lines.space().extend_from_slice(b"\n");
        }
        while let Some(frame) = lines.next_frame() {
            room.out.calm().await;
            match frame {
                Frame::Line(line) => match gate.admit(&line)? {
                    LineVerdict::On => take(room, line),
                    LineVerdict::Never => {}
                    LineVerdict::Last => {
                        take(room, line);
                        pending::<()>().await;
                    }
                },
                Frame::TooLong { .. } => {
                    refuse(room, INVALID_REQUEST, &format!("a message may have {MAX_LINE_BYTES} bytes at most"));
                }
            }
        }
        if count == 0 {
            return Ok(());
        }
    }
}

fn take(room: &Arc<Peer>, line: Bytes) {
    match Message::parse(line.clone()) {
        Ok(message) => room.handle(&message),
        Err(EnvelopeError::Batch) => take_batch(room, &line),
        Err(error @ EnvelopeError::Shape(_)) => refuse(room, INVALID_REQUEST, &error.to_string()),
        Err(error) => refuse(room, PARSE_ERROR, &error.to_string()),
    }
}

/// 2025-03-26 alone has batches. Their answers come one by one, which it allows.
fn take_batch(room: &Arc<Peer>, line: &Bytes) {
    if room.state().revision != Some(Revision::V2025_03_26) {
        return refuse(room, INVALID_REQUEST, "a JSON array (a batch) is not one message");
    }
    match serde_json::from_slice::<Vec<&RawValue>>(line) {
        Ok(parts) if (1..=MAX_BATCH).contains(&parts.len()) => {
            for part in parts {
                match Message::parse(line.slice_ref(part.get().as_bytes())) {
                    Ok(message) => room.handle(&message),
                    Err(error) => refuse(room, INVALID_REQUEST, &error.to_string()),
                }
            }
        }
        Ok(_) => refuse(room, INVALID_REQUEST, &format!("a batch has 1 to {MAX_BATCH} messages")),
        Err(_) => refuse(room, PARSE_ERROR, "the message is not valid JSON"),
    }
}

/// Answers what is no message. It has no id that could be given back.
fn refuse(room: &Peer, code: i32, why: &str) {
    let answer = json!({"jsonrpc": "2.0", "error": {"code": code, "message": why}});
    room.out.answer(None, Bytes::from(answer.to_string()));
}

// === impl OutputPipe ===

impl<W: AsyncWrite + Unpin, G: StdioInterceptor> OutputPipe<'_, W, G> {
    /// Writes what is said, as it comes. Cancel safe: what is not written yet can be written later.
    async fn write(&mut self, room: &Peer) -> io::Result<()> {
        loop {
            if self.unwritten.is_empty() {
                let said = room.out.next().await;
                self.gate.put(&said.bytes, &mut self.unwritten);
            }
            while let Some(said) = (self.unwritten.len() < WRITE_BYTES).then(|| room.out.try_next()).flatten() {
                self.gate.put(&said.bytes, &mut self.unwritten);
            }
            self.flush().await?;
            room.out.written();
        }
    }

    /// Writes what is left when the input has ended.
    async fn finish(&mut self, room: &Peer) -> io::Result<()> {
        while let Some(said) = room.out.try_next() {
            self.gate.put(&said.bytes, &mut self.unwritten);
        }
        self.flush().await
    }

    async fn flush(&mut self) -> io::Result<()> {
        while !self.unwritten.is_empty() {
            self.output.write_buf(&mut self.unwritten).await?;
        }
        self.output.flush().await
    }
}
