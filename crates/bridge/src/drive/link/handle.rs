//! A link from outside: what it can be told, what it replies, and where its mailbox is.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use prism_core::{
    mcp::{
        AcceptedFormats, CallFault, ClientHello, HubPart, LinkAnswer, LinkRefusal, LinkSettings, MemberNames, Method,
        SessionSnapshot,
        link::{SessionKey, StreamKey},
        modern::ListenFilter,
        replay::ReplayKind,
    },
    wire::{Message, frame},
};
use tokio::sync::{mpsc, oneshot};

use super::LinkDriver;
use crate::{
    admitted::{Admitted, AdmittedAsk},
    drive::{
        Destination, ForwardedHeaders,
        beginning::PreparedStart,
        destination::DestinationState,
        outlet::{Outlet, OutletReader},
        reach::RingTarget,
        vitals::{LinkVitals, StreamReport},
    },
};

/// Commands that may wait for a link. Beyond it the sender waits, and with it its client's socket.
const MAILBOX: usize = 1024;

/// What a link can be told: the task's whole interface. What a client says reaches the server in commands that take
/// [`Admitted`] messages only, so that nothing gets past the rules.
pub enum LinkCommand {
    Open {
        key: SessionKey,
        hello: Box<ClientHello>,
        message: Message,
        accepts: AcceptedFormats,
        /// It is a part of a session of the hub's, whose streams are at that link.
        part: Option<Box<(HubPart, LinkHandle)>>,
        carried: Option<Arc<ForwardedHeaders>>,
        reply: oneshot::Sender<ReplyHead>,
    },
    Call {
        key: Option<SessionKey>,
        message: Admitted,
        accepts: AcceptedFormats,
        names: Option<MemberNames>,
        /// What of its head goes along, if its server is one over HTTP.
        carried: Option<Arc<ForwardedHeaders>>,
        reply: oneshot::Sender<ReplyHead>,
    },
    /// Asks for a list as a session would, for the hub to look at.
    Fetch {
        key: SessionKey,
        message: Admitted,
        reply: oneshot::Sender<ReplyHead>,
    },
    Batch {
        key: SessionKey,
        messages: Vec<Admitted>,
        by_method: bool,
        reply: oneshot::Sender<ReplyHead>,
    },
    Tell {
        key: Option<SessionKey>,
        message: Admitted,
    },
    /// A call of the modern era.
    Ask {
        ask: Box<AdmittedAsk>,
        carried: Option<Arc<ForwardedHeaders>>,
        reply: oneshot::Sender<ReplyHead>,
    },
    /// A modern client's stream of changes.
    Attend {
        message: Message,
        filter: Box<ListenFilter>,
        by_method: bool,
        names: Option<MemberNames>,
        reply: oneshot::Sender<ReplyHead>,
    },
    /// Opens a session whose one stream is there already (2024-11-05).
    OpenPlain {
        key: SessionKey,
        hello: Box<ClientHello>,
        message: Message,
        by_method: bool,
        outlet: Arc<Outlet>,
        carried: Option<Arc<ForwardedHeaders>>,
        reply: oneshot::Sender<ReplyHead>,
    },
    /// A request of such a session: its answer comes on that stream.
    Post {
        key: SessionKey,
        message: Admitted,
        carried: Option<Arc<ForwardedHeaders>>,
        reply: oneshot::Sender<ReplyHead>,
    },
    Listen {
        key: SessionKey,
        after: Option<frame::EventId>,
        by_method: bool,
        reply: oneshot::Sender<ReplyHead>,
    },
    Close {
        key: SessionKey,
        done: Option<oneshot::Sender<()>>,
    },
    /// Takes up a session that another daemon, or another link, has left.
    TakeUp {
        key: SessionKey,
        hello: Box<ClientHello>,
        kept: Box<SessionSnapshot>,
        numbers_from: u32,
    },
    /// Something that a part of a session has to say which belongs to no call.
    Relay {
        home: SessionKey,
        text: Bytes,
        what: ReplayKind,
    },
    /// So much of that did not get through.
    Missed {
        home: SessionKey,
        count: u64,
    },
    /// A list has changed that is not this server's own: these sessions and listens hear of it.
    Announce {
        method: Method,
        to: Vec<SessionKey>,
        listens: Vec<StreamKey>,
    },
    /// Rings the bell of a client, now or not at all, and says whether a stream has taken it.
    Ring {
        to: RingTarget,
        rung: oneshot::Sender<bool>,
    },
    /// Has a session's client asked every so often whether it is there, or not any more.
    Watch {
        key: SessionKey,
        every: Option<Duration>,
    },
    /// Somebody who waited for a reply has left.
    Left,
    StreamGone {
        stream: StreamKey,
    },
    /// What the server that this start is for is given has been looked up, or why it cannot be.
    Provided {
        start: u64,
        provided: Result<Box<PreparedStart>, String>,
    },
    /// The child with this pid has ended, how, and why, if that is our doing.
    Exited {
        pid: u32,
        status: String,
        why: Option<String>,
    },
    /// Goes on with the limits of these settings.
    Limit(Box<LinkSettings>),
    /// Has the server's process ended, as a person wants another one.
    Restart,
    /// Asks how the streams are.
    Streams {
        reply: oneshot::Sender<StreamReport>,
    },
    /// Asks the server for its tools; refused when there is no server.
    Probe {
        reply: oneshot::Sender<ReplyHead>,
    },
    /// Ends everything, for that reason, and gives back what outlives it.
    ShutDown {
        why: CallFault,
        kept: oneshot::Sender<Vec<(SessionKey, SessionSnapshot)>>,
    },
    /// Its sessions are there now.
    Moved {
        to: Arc<Destination>,
    },
}

/// The beginning of what a request gets.
pub enum ReplyHead {
    Answer(LinkAnswer),
    Stream(StreamKey, OutletReader),
    Accepted,
    /// The call would have to wait here for a person's answer to another one: find another link.
    Elsewhere(Message),
    Refused(LinkRefusal),
}

/// Waits for a link's reply. Dropped before it came, which is how a client's leaving looks, it says so.
pub struct LinkReply {
    head: oneshot::Receiver<ReplyHead>,
    link: LinkHandle,
    came: bool,
}

#[derive(Clone)]
pub struct LinkHandle {
    pub commands: mpsc::Sender<LinkCommand>,
    /// What leads back here from a `requestState`.
    pub number: u64,
    pub parked: ParkedSince,
    pub vitals: Arc<LinkVitals>,
}

/// Since when a link's call waits for its client's answer, and others would have to wait with it.
#[derive(Clone)]
pub struct ParkedSince {
    /// Milliseconds since the link was made, plus one; 0 while it does not.
    since: Arc<AtomicU64>,
    epoch: Instant,
}

// === impl LinkHandle ===

impl LinkHandle {
    pub fn spawn(settings: LinkSettings, shared: Arc<DestinationState>) -> Self {
        let (commands, mailbox) = mpsc::channel(MAILBOX);
        let (number, parked) = (settings.number, ParkedSince { since: Arc::default(), epoch: Instant::now() });
        let vitals = LinkVitals::new(&settings);
        let driver = LinkDriver::new(settings, shared, commands.downgrade(), parked.clone(), vitals.clone());
        tokio::spawn(driver.run(mailbox));
        Self { commands, number, parked, vitals }
    }
}

// === impl LinkReply ===

impl LinkReply {
    pub fn new(head: oneshot::Receiver<ReplyHead>, link: LinkHandle) -> Self {
        Self { head, link, came: false }
    }

    /// `None` if the link is gone.
    pub async fn head(mut self) -> Option<ReplyHead> {
        let head = (&mut self.head).await;
        self.came = true;
        head.ok()
    }
}

impl Drop for LinkReply {
    fn drop(&mut self) {
        if !self.came {
            // A full mailbox is no loss: the link looks for leavers with every keep-alive.
            self.head.close();
            let _ = self.link.commands.try_send(LinkCommand::Left);
        }
    }
}

// === impl ParkedSince ===

impl ParkedSince {
    /// How long that has been so; `None` if it is not.
    pub fn age(&self) -> Option<Duration> {
        match self.since.load(Ordering::Relaxed) {
            0 => None,
            since => Some(self.epoch.elapsed().saturating_sub(Duration::from_millis(since - 1))),
        }
    }

    pub(super) fn note(&self, parked: bool) {
        let was = self.since.load(Ordering::Relaxed) != 0;
        if parked != was {
            let now = u64::try_from(self.epoch.elapsed().as_millis()).unwrap_or(u64::MAX - 1) + 1;
            self.since.store(if parked { now } else { 0 }, Ordering::Relaxed);
        }
    }
}
