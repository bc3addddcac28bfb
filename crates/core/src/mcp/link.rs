//! One upstream link: a connection to a server, and the clients it serves.
//!
//! The link owns everything that could get mixed up: ids, progress tokens, subscriptions, log levels, questions. It is
//! a plain machine. Inputs are `handle_*` and friends, each with the time; after every input drain
//! [`Link::poll_action`] and [`Link::output`], and come back at [`Link::poll_timeout`].

mod calls;
mod condition;
mod deadlines;
mod ends;
mod exchange;
mod fault;
mod flights;
mod floor;
mod ghosts;
mod handshake;
mod holdings;
mod incoming;
mod keep;
mod lifecycle;
mod listens;
mod notes;
mod output;
mod park;
mod patience;
mod pings;
mod questions;
mod ring;
mod rounds;
mod translate;
mod turns;
mod union;
mod watch;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;

use self::{
    condition::Fate,
    exchange::{Exchange, ExchangeOwner, Modern, ReplyRoute},
    flights::SharedFetch,
    floor::Floor,
    ghosts::Ghosts,
    handshake::EraProbe,
    lifecycle::LinkPhase,
    listens::ClientListen,
    union::Union,
    watch::ResourceWatch,
};
pub use self::{
    condition::{LinkCondition, LinkState},
    fault::{CallFault, LinkRefusal, error_body},
    holdings::LinkHoldings,
    output::LinkOutput,
    park::{ModernCall, PARKED_FOR, read_state},
};
use super::{
    cache::ResponseCache,
    era::{Era, SpokenEras},
    hello::{ClientClass, ClientHello, ServerGreeting},
    level::LogLevel,
    names::MemberNames,
    params::ToolHeaders,
    replay::ReplayKind,
    session::Session,
};
use crate::{
    numbers::NumberMap,
    wire::{ByteChain, Message, Method, frame::EventId},
};

/// Calls one session may have waiting. Beyond it a call is refused, not queued: a model retries in seconds, and a queue
/// would hide the stall from it.
const MAX_CALLS_PER_SESSION: usize = 512;
/// Calls that wait for a child that is starting. Beyond it they are refused.
const MAX_HELD: usize = 1024;
/// Bytes that a child has not read yet. Beyond it calls and probes are refused, and notes to it and its own requests
/// are dropped: the child is stuck.
const MAX_UNREAD_BYTES: usize = 4 << 20;
/// How long a child's answer to a probe is remembered to be owed.
const PROBE_PATIENCE: Duration = Duration::from_secs(10);
/// Keep-alive comments on streams (N-04).
const BEAT: Duration = Duration::from_secs(15);

/// A session of a client: the number in its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionKey(pub u128);

/// Our id for a call, towards the server: an integer from 1 upward, never used twice on a link. It is the call's
/// progress token too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WireId(pub u64);

/// An HTTP stream that is open towards a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamKey(pub u64);

/// What a client will take as the answer to a POST.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AcceptedFormats {
    pub json: bool,
    pub events: bool,
    /// Events named after their methods (N-03).
    pub by_method: bool,
}

/// How a link finds out which era its server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EraDiscovery {
    /// Nobody knows: it is asked in both ways.
    Probe,
    /// Known from before. If it is no longer true, the other era is tried.
    Learned(Era),
    /// Somebody said so: this or nothing.
    Pinned(Era),
}

/// What the server is reached over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpstreamKind {
    /// One pipe, or one stream, for everything: it does not say which call a message belongs to.
    Pipe,
    /// A request each: what comes with a request's response belongs to that request.
    Http,
}

#[derive(Clone, Debug)]
pub struct LinkSettings {
    pub request_timeout: Option<Duration>,
    pub max_request_time: Duration,
    /// How long a server may take to greet us; `None`: for ever. That is no call's time.
    pub start_timeout: Option<Duration>,
    /// Whether a legacy client that leaves a call cancels it, as a modern one does: for calls that may take for ever.
    pub leaving_cancels: bool,
    pub max_message_bytes: usize,
    /// How long the child outlives its last session.
    pub keep_warm: Duration,
    /// How long it outlives the last call that had no session.
    pub keep_stateless: Duration,
    /// How long it idles while it has sessions; `None`: for ever. The next call starts it again.
    pub idle_stop: Option<Duration>,
    pub strict_streams: bool,
    /// The questions that all clients of this link can answer.
    pub class: ClientClass,
    /// Whether this link has one owner for its whole life.
    pub alone: bool,
    pub opening: EraDiscovery,
    /// The era of the clients that this link is for: a server that speaks both is spoken to in theirs.
    pub prefers: Era,
    pub wire: UpstreamKind,
    /// Whether calls without a session that may be asked something run one at a time, so that a question's owner is
    /// certain. A link whose server asks does so anyway.
    pub exclusive: bool,
    /// The link's number in the daemon: the part of a `requestState` that leads back here.
    pub number: u64,
}

/// What the shell must do.
#[derive(Debug)]
pub enum LinkAction {
    /// Start the child. [`Link::output`] begins with `initialize`.
    Start,
    /// Close the child's stdin and end it.
    Stop,
    /// Answer a POST whose head is still held back.
    Answer(WireId, LinkAnswer),
    /// Turn such a POST into a stream.
    Stream(WireId, StreamKey),
    /// Take a call to another link: here it would wait for somebody's answer to another call.
    Elsewhere(WireId, Message),
    /// Send an event on a stream. Its number in the stream, or 0 if it has none.
    Event {
        stream: StreamKey,
        number: u64,
        bytes: Bytes,
    },
    /// A modern client has been told that it will hear of these resources on this stream.
    Promised {
        stream: StreamKey,
        uris: Vec<String>,
    },
    End(StreamKey),
    /// Give what belongs to no call to the link where the rest of this session is.
    Relay {
        home: SessionKey,
        text: Bytes,
        what: ReplayKind,
    },
    /// Send a comment on every open stream.
    KeepAlive,
    /// The session is over, by no act of its client.
    Ended(SessionKey),
    /// The client of a session has answered a ping.
    Seen(SessionKey),
    /// The client of a session, which has answered pings before, does so no more.
    Silent(SessionKey),
    /// Something has changed that outlives the daemon: ask for it soon, with [`Link::take_unsaved`].
    Unsaved,
    /// The server asked something.
    Asked,
    /// A question had no certain owner and was refused.
    Ambiguous,
    /// A page of `tools/list`.
    Listed {
        tools: Vec<String>,
        whole: bool,
    },
    /// Which headers calls of tools must carry. Other links of the server's should know.
    Tools(Arc<ToolHeaders>),
    /// The `result` of a `tools/list`, as the server gave it.
    Defined(Box<str>),
    /// The server has said, with this note, that a list of its own has changed.
    ListChanged(Method),
    /// A tool's call was answered, and its client could have been asked.
    Answered {
        tool: Box<str>,
    },
    /// This many events were dropped that no client has had.
    Dropped(usize),
    /// A log note had no certain owner.
    Unowned(Message),
    /// The server wrote something that is no message.
    Garbage {
        line: Bytes,
        why: &'static str,
    },
    /// The server has greeted us, in this era.
    Ready {
        name: String,
        version: String,
        era: Era,
        speaks: SpokenEras,
    },
}

#[derive(Debug)]
pub enum LinkAnswer {
    Message(ByteChain),
    /// An error, to a client of the modern era, where its code decides the status.
    Error {
        code: i32,
        body: ByteChain,
    },
    /// The client cancelled the call: it gets no answer.
    Cancelled {
        id: Box<str>,
    },
    Fault {
        fault: CallFault,
        id: Box<str>,
    },
}

pub struct Link {
    settings: LinkSettings,
    opening: EraDiscovery,
    speaks: SpokenEras,
    knock: EraProbe,
    /// Why the server could not be reached the last time.
    why: Option<String>,
    /// Why the child that is just ending was ended, if that is our doing.
    ended: Option<String>,
    phase: LinkPhase,
    hello: Option<ClientHello>,
    greeting: Option<ServerGreeting>,
    sessions: NumberMap<SessionKey, Session>,
    exchanges: NumberMap<u64, Exchange>,
    /// Where the exchange is that the server knows by this number, if that is not its own.
    aliases: NumberMap<u64, WireId>,
    /// Calls whose clients were asked something, by the secret under which each may go on.
    parked: NumberMap<u128, WireId>,
    listens: BTreeMap<StreamKey, ClientListen>,
    union: Union,
    cache: ResponseCache,
    flights: Vec<SharedFetch>,
    tools: Arc<ToolHeaders>,
    floor: Option<Floor>,
    /// The most verbose level that calls without a session have wanted of this child.
    call_level: Option<LogLevel>,
    exclusive: bool,
    ghosts: Ghosts,
    held: VecDeque<(WireId, Message)>,
    last_id: u64,
    last_stream: u64,
    /// Clients' calls that the server has not answered, the ones that were stopped a moment ago included.
    calls: usize,
    /// Those of them that the server has.
    sent: usize,
    /// Those of them that are the hub's own questions.
    fetches: usize,
    /// Lists of tools that were asked for on behalf of a call.
    refreshing: Vec<(WireId, WireId)>,
    last_caller: Option<SessionKey>,
    /// Sessions that this child has had, the ended ones included.
    owners: usize,
    /// Sessions were taken up whose clients know another child.
    resumed: bool,
    watches: BTreeMap<String, ResourceWatch>,
    level: Option<LogLevel>,
    output: LinkOutput,
    actions: VecDeque<LinkAction>,
    /// Restarts used up, and since when the child has been up.
    tries: usize,
    up_since: Option<Instant>,
    /// Why there is no server.
    fate: Fate,
    /// No exchange or question is due before this.
    check_at: Option<Instant>,
    beat_at: Option<Instant>,
    /// When a client is to be asked whether it is there.
    ping_at: Option<Instant>,
    stop_at: Option<Instant>,
    stateless_until: Option<Instant>,
    /// When a client last used the child, and when it is looked after whether any does.
    used_at: Option<Instant>,
    idle_at: Option<Instant>,
    streams: usize,
}

// === impl Link ===

impl Link {
    pub fn new(settings: LinkSettings) -> Self {
        Self {
            opening: settings.opening,
            exclusive: settings.exclusive,
            output: LinkOutput::new(settings.wire),
            settings,
            speaks: SpokenEras::default(),
            knock: EraProbe::default(),
            why: None,
            ended: None,
            phase: LinkPhase::Down,
            hello: None,
            greeting: None,
            sessions: NumberMap::default(),
            exchanges: NumberMap::default(),
            aliases: NumberMap::default(),
            parked: NumberMap::default(),
            listens: BTreeMap::new(),
            union: Union::default(),
            cache: ResponseCache::default(),
            flights: Vec::new(),
            tools: Arc::default(),
            floor: None,
            call_level: None,
            ghosts: Ghosts::default(),
            held: VecDeque::new(),
            last_id: 0,
            last_stream: 0,
            calls: 0,
            sent: 0,
            fetches: 0,
            refreshing: Vec::new(),
            last_caller: None,
            owners: 0,
            resumed: false,
            watches: BTreeMap::new(),
            level: None,
            actions: VecDeque::new(),
            tries: 0,
            up_since: None,
            fate: Fate::default(),
            check_at: None,
            beat_at: None,
            ping_at: None,
            stop_at: None,
            stateless_until: None,
            used_at: None,
            idle_at: None,
            streams: 0,
        }
    }

    #[must_use]
    pub fn poll_action(&mut self) -> Option<LinkAction> {
        self.actions.pop_front()
    }

    /// When [`Self::handle_timeout`] is due.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let union = self.union.due();
        let due = [self.check_at, self.beat_at, self.ping_at, self.stop_at, self.idle_at, self.phase.deadline(), union];
        due.into_iter().flatten().min()
    }

    /// What is to be sent to the server.
    pub fn output(&mut self) -> &mut LinkOutput {
        &mut self.output
    }

    pub fn handle_timeout(&mut self, now: Instant) {
        if self.beat_at.is_some_and(|at| at <= now) {
            self.actions.push_back(LinkAction::KeepAlive);
            self.beat_at = (self.streams > 0).then_some(now + BEAT);
        }
        if self.ping_at.is_some_and(|at| at <= now) {
            self.ping(now);
        }
        if self.check_at.is_some_and(|at| at <= now) {
            self.check_deadlines(now);
            if self.sessions.is_empty() {
                self.settle(now);
            }
        }
        self.handle_phase_timeout(now);
        self.handle_union_timeout(now);
        if self.stop_at.is_some_and(|at| at <= now) {
            self.settle(now);
        }
        if self.idle_at.is_some_and(|at| at <= now) {
            self.look_whether_idle(now);
        }
    }

    /// Attaches a GET stream to a session (B-11), after the event the client had last (B-28).
    pub fn listen(
        &mut self,
        key: SessionKey,
        after: Option<EventId>,
        by_method: bool,
        now: Instant,
    ) -> Result<StreamKey, LinkRefusal> {
        let stream = StreamKey(self.last_stream + 1);
        let session = self.sessions.get_mut(&key).ok_or(LinkRefusal::UnknownSession)?;
        session.listen(stream, after, by_method, &mut self.actions)?;
        self.last_stream = stream.0;
        self.count_stream(now);
        if let Some(after) = after {
            self.has_returned(key, after.stream, now);
        }
        // The client of a session that was taken up is back, and expects to hear from its server.
        if self.phase == LinkPhase::Down {
            self.want(now);
        }
        Ok(stream)
    }

    /// An HTTP stream is gone, closed by the client or by us. `had` is the number of the last event that left on it.
    pub fn handle_stream_gone(&mut self, key: Option<SessionKey>, stream: StreamKey, had: u64, now: Instant) {
        self.streams = self.streams.saturating_sub(1);
        if let Some(key) = key {
            match self.sessions.get_mut(&key) {
                // Its one stream was its session (2024-11-05).
                Some(session) if session.is_plain() => {
                    session.detach(stream, had, &mut self.actions);
                    self.close(key, now);
                }
                Some(session) => {
                    session.detach(stream, had, &mut self.actions);
                    self.await_return(key, now);
                }
                None => {}
            }
        } else if self.listens.contains_key(&stream) {
            self.stop_listening(stream, now);
        } else if let Some(id) =
            self.exchanges.iter().find(|(_, e)| e.reply == ReplyRoute::Bare(stream)).map(|(id, _)| *id)
        {
            // Without a session there is no way back to the call.
            self.leave(WireId(id), now);
            self.settle(now);
        }
    }

    /// Ends a session at its client's wish, or because it was idle for too long.
    pub fn close(&mut self, key: SessionKey, now: Instant) {
        let Some(session) = self.sessions.get(&key) else { return };
        for server_id in session.questions.iter().filter_map(|question| question.asked_by.server_id()) {
            self.output.write_error(server_id, -32603, "the client's session has ended");
        }
        let own = self.exchanges.iter().filter(|(_, e)| e.session() == Some(key) && e.reply != ReplyRoute::Nobody);
        let mut own: Vec<u64> = own.map(|(id, _)| *id).collect();
        own.sort_unstable();
        for id in own {
            let id = WireId(id);
            match self.held.iter().position(|(held, _)| *held == id) {
                // The server has not seen it.
                Some(at) => {
                    self.held.remove(at);
                    self.fail(id, CallFault::SessionEnded, now);
                }
                None => self.stop_call(id, Some(CallFault::SessionEnded), now),
            }
        }
        // Its calls were answered on its streams: only now those end.
        for stream in self.sessions.remove(&key).iter().flat_map(Session::open_streams) {
            self.actions.push_back(LinkAction::End(stream));
        }
        self.release_watches(watch::Watcher::Session(key));
        self.adjust_level();
        self.adjust_union(now);
        self.settle(now);
    }

    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// Whether nothing will ever happen here again: the one owner is gone and so is its child.
    pub fn is_over(&self) -> bool {
        self.settings.alone
            && self.hello.is_some()
            && self.sessions.is_empty()
            && !self.phase.has_child()
            && self.held.is_empty()
    }

    /// Asks the server for its tools, or for a sign of life if it has none: what it is there for, not just whether it is
    /// there (D-05). Refused as closed if there is no server that could answer.
    pub fn probe(&mut self, now: Instant) -> Result<WireId, LinkRefusal> {
        if self.phase != LinkPhase::Up {
            return Err(LinkRefusal::Closed);
        }
        if self.is_stuck() {
            return Err(LinkRefusal::Stuck);
        }
        // A modern server knows no ping; that it says what it is, is a sign of life as good.
        let method = match (&self.greeting, self.era()) {
            (Some(greeting), _) if greeting.tools => Method::ToolsList,
            (_, Era::Modern) => Method::Discover,
            (_, Era::Legacy) => Method::Ping,
        };
        let id = self.ask_on_our_own(method, "", Some(now + PROBE_PATIENCE));
        if let Some(exchange) = self.exchanges.get_mut(&id.0) {
            exchange.reply = ReplyRoute::Held;
        }
        Ok(id)
    }

    /// Which era the server speaks; only known while it is up.
    fn era(&self) -> Era {
        self.greeting.as_ref().map_or(Era::Legacy, |greeting| greeting.era)
    }

    /// Takes over what another link has learned of the server's tools.
    pub fn know_tools(&mut self, tools: Arc<ToolHeaders>) {
        self.tools = tools;
    }

    pub(super) fn learn_tools(&mut self, result: &str) {
        if Arc::make_mut(&mut self.tools).learn(result) {
            self.actions.push_back(LinkAction::Tools(self.tools.clone()));
        }
        self.actions.push_back(LinkAction::Defined(result.into()));
    }

    /// Whether the child has stopped reading. What is not owed to it is then not written.
    fn is_stuck(&self) -> bool {
        self.output.unread_bytes() > MAX_UNREAD_BYTES
    }

    fn next_id(&mut self) -> WireId {
        self.last_id += 1;
        WireId(self.last_id)
    }

    fn next_stream(&mut self, now: Instant) -> StreamKey {
        self.last_stream += 1;
        self.count_stream(now);
        StreamKey(self.last_stream)
    }

    fn count_stream(&mut self, now: Instant) {
        self.streams += 1;
        self.beat_at.get_or_insert(now + BEAT);
    }

    fn check_by(&mut self, at: Option<Instant>) {
        self.check_at = [self.check_at, at].into_iter().flatten().min();
    }
}

#[cfg(test)]
mod tests;
