//! What a response carries: nothing, a whole answer, or an open stream of events.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use prism_core::{mcp::link::StreamKey, wire::Chain};

use super::plain::PlainStream;
use crate::{
    drive::{Command, LinkHandle, outlet::Reader, sessions::Busy},
    telemetry::access::Pending,
};

pub enum Body {
    Empty,
    Whole(Chain),
    Stream(Box<EventStream>),
    /// The one stream of a 2024-11-05 session.
    Plain(Box<PlainStream>),
}

/// An open stream. Dropping it, which is how a client's leaving looks from here, tells the link.
pub struct EventStream {
    reader: Reader,
    link: LinkHandle,
    stream: StreamKey,
    _busy: Option<Busy>,
    record: Option<Pending>,
}

impl EventStream {
    pub fn new(reader: Reader, link: LinkHandle, stream: StreamKey, busy: Option<Busy>) -> Self {
        Self { reader, link, stream, _busy: busy, record: None }
    }

    /// Keeps the record of the request until the stream ends: only then is the request over.
    pub fn record_at_end(&mut self, record: Pending) {
        self.record = Some(record);
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        // A full mailbox is no loss: the link finds the reader gone at the next event or keep-alive.
        let _ = self.link.commands.try_send(Command::StreamGone { stream: self.stream });
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = match self.get_mut() {
            Self::Empty => Poll::Ready(None),
            Self::Whole(chain) => Poll::Ready(chain.pop()),
            Self::Stream(stream) => Pin::new(&mut stream.reader).poll_next(context),
            Self::Plain(stream) => Pin::new(&mut stream.reader).poll_next(context),
        };
        next.map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Empty => SizeHint::with_exact(0),
            Self::Whole(chain) => SizeHint::with_exact(chain.len() as u64),
            Self::Stream(_) | Self::Plain(_) => SizeHint::default(),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Empty => true,
            Self::Whole(chain) => chain.is_empty(),
            Self::Stream(_) | Self::Plain(_) => false,
        }
    }
}

impl From<String> for Body {
    fn from(text: String) -> Self {
        Self::Whole(Chain::from(Bytes::from(text)))
    }
}
