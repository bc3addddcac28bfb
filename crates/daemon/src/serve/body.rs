//! What a response carries: nothing, a whole answer, or an open stream of events.

use std::{
    collections::VecDeque,
    convert::Infallible,
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use prism_core::{
    mcp::link::StreamKey,
    wire::{
        ByteChain, Message, MessageKind, frame,
        sse::{SseEvent, SseSplitter},
    },
};

use tokio::sync::mpsc::Receiver;

use super::plain::LegacySseStream;
use prism_bridge::{
    access::TrackedRequest,
    drive::{LinkCommand, LinkHandle, hub::HubSubscription, outlet::OutletReader, sessions::BusyGuard},
};

pub enum ResponseBody {
    Empty,
    Whole(ByteChain),
    Stream(Box<EventStream>),
    /// The one stream of a 2024-11-05 session.
    Plain(Box<LegacySseStream>),
    /// A stream of changes of several servers.
    Merged(Box<MergedStream>),
    /// What somebody makes piece by piece. Its end is the answer's.
    Fed(Box<Receiver<Bytes>>),
}

/// An open stream. Dropping it, which is how a client's leaving looks from here, tells the link.
pub struct EventStream {
    reader: OutletReader,
    link: LinkHandle,
    stream: StreamKey,
    busy: Option<BusyGuard>,
    record: Option<TrackedRequest>,
}

impl EventStream {
    pub fn new(reader: OutletReader, link: LinkHandle, stream: StreamKey, busy: Option<BusyGuard>) -> Self {
        Self { reader, link, stream, busy, record: None }
    }

    /// Keeps the record of the request until the stream ends: only then is the request over.
    pub fn record_at_end(&mut self, record: TrackedRequest) {
        self.record = Some(record);
    }

    pub fn key(&self) -> StreamKey {
        self.stream
    }

    /// The next bytes of the stream; `None` at its end.
    pub async fn next(&mut self) -> Option<Bytes> {
        poll_fn(|context| Pin::new(&mut self.reader).poll_next(context)).await
    }
}

/// Streams of changes that reach a client as one: the hub's own, and those of its members. It ends with the hub's own.
pub struct MergedStream {
    ready: VecDeque<Bytes>,
    home: EventStream,
    members: Vec<(EventStream, SseSplitter)>,
    by_method: bool,
    _listening: HubSubscription,
}

impl MergedStream {
    /// Streams whose acknowledgements were read: `first` says all that they said. What came with them is still in their
    /// readers.
    pub fn new(
        first: Bytes,
        (home, mut early): (EventStream, SseSplitter),
        members: Vec<(EventStream, SseSplitter)>,
        by_method: bool,
        listening: HubSubscription,
    ) -> Self {
        let mut merged = Self { ready: VecDeque::from([first]), home, members, by_method, _listening: listening };
        merged.take(&mut early, true);
        let mut members = std::mem::take(&mut merged.members);
        for (_, events) in &mut members {
            merged.take(events, false);
        }
        merged.members = members;
        merged
    }

    /// Keeps the record of the request until the stream ends.
    pub fn record_at_end(&mut self, record: TrackedRequest) {
        self.home.record_at_end(record);
    }

    /// Takes over what a stream has said. That a member's is over is the member's affair.
    fn take(&mut self, events: &mut SseSplitter, with_end: bool) {
        while let Some(event) = events.next_event() {
            let SseEvent::Data { data, .. } = event else { continue };
            let is_note = Message::parse(data.clone()).is_ok_and(|m| matches!(m.kind(), MessageKind::Notification(_)));
            if is_note || with_end {
                let event = frame::event(None, &[&data]);
                self.ready.push_back(if self.by_method { frame::by_method(&event) } else { event });
            }
        }
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(bytes) = self.ready.pop_front() {
            return Poll::Ready(Some(bytes));
        }
        if let Poll::Ready(bytes) = Pin::new(&mut self.home.reader).poll_next(context) {
            return Poll::Ready(bytes);
        }
        let mut members = std::mem::take(&mut self.members);
        members.retain_mut(|(stream, events)| {
            loop {
                match Pin::new(&mut stream.reader).poll_next(context) {
                    Poll::Ready(Some(bytes)) => {
                        events.push(&bytes);
                        self.take(events, false);
                    }
                    Poll::Ready(None) => return false,
                    Poll::Pending => return true,
                }
            }
        });
        self.members = members;
        self.ready.pop_front().map_or(Poll::Pending, |bytes| Poll::Ready(Some(bytes)))
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        if let Some(busy) = self.busy.as_ref().filter(|_| !self.reader.is_over()) {
            busy.breaks_off();
        }
        // A full mailbox is no loss: the link finds the reader gone at the next event or keep-alive.
        let _ = self.link.commands.try_send(LinkCommand::StreamGone { stream: self.stream });
    }
}

impl hyper::body::Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = match self.get_mut() {
            Self::Empty => Poll::Ready(None),
            Self::Whole(chain) => Poll::Ready(chain.pop()),
            Self::Stream(stream) => noted(Pin::new(&mut stream.reader).poll_next(context), &mut stream.record),
            Self::Plain(stream) => noted(Pin::new(&mut stream.reader).poll_next(context), &mut stream.record),
            Self::Merged(merged) => noted(merged.poll_next(context), &mut merged.home.record),
            Self::Fed(pieces) => pieces.poll_recv(context),
        };
        next.map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Empty => SizeHint::with_exact(0),
            Self::Whole(chain) => SizeHint::with_exact(chain.len() as u64),
            Self::Stream(_) | Self::Plain(_) | Self::Merged(_) | Self::Fed(_) => SizeHint::default(),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Empty => true,
            Self::Whole(chain) => chain.is_empty(),
            Self::Stream(_) | Self::Plain(_) | Self::Merged(_) | Self::Fed(_) => false,
        }
    }
}

/// What was read of a stream, which is in the record of its request where bodies are.
fn noted(read: Poll<Option<Bytes>>, record: &mut Option<TrackedRequest>) -> Poll<Option<Bytes>> {
    if let (Poll::Ready(Some(piece)), Some(record)) = (&read, record) {
        record.streamed(piece);
    }
    read
}

impl From<String> for ResponseBody {
    fn from(text: String) -> Self {
        Self::Whole(ByteChain::from(Bytes::from(text)))
    }
}
