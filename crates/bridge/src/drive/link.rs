//! One link's task: it owns the machine, the way to the server and the clients' streams, and decides nothing.
//!
//! The loop is the same every time: wait for a command, for the server or for a deadline; hand it to the machine; do
//! what the machine says; write what it wrote. One task reads and writes both, so a call crosses two tasks on its way
//! there and two on its way back, no more.

mod actions;
mod far_end;
mod handle;
mod relays;
mod ring;
mod saving;
mod successor;

use std::{
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant},
};

use prism_core::{
    mcp::{
        AcceptedFormats, CallFault, Link, LinkRefusal, LinkSettings,
        link::{SessionKey, StreamKey, WireId},
    },
    numbers::{NumberMap, NumberSet},
    wire::{LineSplitter, Message},
};
use tokio::{
    io::AsyncReadExt,
    net::unix::pipe,
    sync::{mpsc, oneshot},
    time::{Sleep, sleep_until},
};

pub use handle::{LinkCommand, LinkHandle, LinkReply, ParkedSince, ReplyHead};

use self::{relays::HomeRelays, saving::SaveSchedule, successor::LinkSuccessor};
use super::{
    ForwardedHeaders,
    destination::DestinationState,
    health::FailedStarts,
    keeper::ChildSupervisor,
    outlet::Outlet,
    stderr::StderrMark,
    vitals::{LinkPurpose, LinkVitals, StreamKind, StreamReport, StreamVitals},
};
use crate::admitted::Admitted;
use prism_mcp::kit::BuiltinConnection;
use prism_mcp::remote::{RemoteConnection, RemoteEvent};

/// Commands taken at a time: enough to fill one write, few enough to keep reading.
const TAKEN_AT_ONCE: usize = 64;
/// Reads of what a child that has ended had written: more than its pipe can hold.
const LAST_READS: usize = 64;
/// Requests that are remembered to have been sent a second time, since the last start. Beyond it they fail.
const MAX_RESENT: usize = 4096;
/// How long a child that is being stopped is read from: longer than its keeper lets it live.
const LAST_WORDS: Duration = Duration::from_secs(5);

struct LinkDriver {
    machine: Link,
    number: u64,
    shared: Arc<DestinationState>,
    /// The way into our own mailbox, for the child's keeper.
    commands: mpsc::WeakSender<LinkCommand>,
    back: Option<LinkUpstream>,
    /// How often the server was started, and whether what it is given then is still being looked up.
    starts: u64,
    preparing: bool,
    /// Where the sessions that have parts here have their streams.
    relays: HomeRelays,
    parked: ParkedSince,
    vitals: Arc<LinkVitals>,
    /// Starts since the server last greeted us; where its stderr was at the last one, and the first line of its stdout
    /// since then that is no message.
    tries: Option<FailedStarts>,
    stderr_from: StderrMark,
    printed: Option<String>,
    /// Requests that the server did not take because it had forgotten our session.
    unsent: Vec<Message>,
    /// What goes along with calls of a server over HTTP, and with what opens a session that is its client's alone.
    carried: NumberMap<u64, Arc<ForwardedHeaders>>,
    opener: Option<Arc<ForwardedHeaders>>,
    resent: NumberSet<u64>,
    /// There is a new session, and they can go.
    reopened: bool,
    waiting: NumberMap<WireId, PendingReply>,
    streams: NumberMap<StreamKey, ClientStream>,
    timer: Pin<Box<Sleep>>,
    armed: Option<Instant>,
    saving: SaveSchedule,
    /// The daemon is stopping: nothing new is taken.
    stopping: bool,
    successor: LinkSuccessor,
    /// Which version of what is known of the server's tools the machine has.
    tools_seen: u64,
    /// What the log has been told once, and need not be told with every message.
    told: WarnedOnce,
}

#[derive(Default)]
struct WarnedOnce {
    garbage: bool,
    unowned: bool,
}

/// What is at the other end.
enum LinkUpstream {
    Child(ChildPipes),
    Remote(Box<RemoteConnection>),
    /// A server that Prism is itself.
    BuiltIn(BuiltinConnection),
}

struct ChildPipes {
    stdin: pipe::Sender,
    stdout: pipe::Receiver,
    lines: LineSplitter,
    keeper: ChildSupervisor,
    /// The pipe is full: wait until it can be written to.
    full: bool,
    /// It closed its stdout.
    silent: bool,
}

struct PendingReply {
    reply: oneshot::Sender<ReplyHead>,
    key: Option<SessionKey>,
    /// It waits for a session to be opened.
    opens: bool,
}

struct ClientStream {
    outlet: Arc<Outlet>,
    key: Option<SessionKey>,
    kind: StreamKind,
    /// Somebody was told that a bell can ring on it.
    told: bool,
}

/// What ended the wait.
#[expect(clippy::large_enum_variant, reason = "there is one at a time, and it stays on the stack")]
enum LinkWakeup {
    Ready,
    /// What the child has written is in its buffer.
    Read,
    Arrived(RemoteEvent),
    Closed,
    Deadline,
}

// === impl LinkDriver ===

impl LinkDriver {
    fn new(
        settings: LinkSettings,
        shared: Arc<DestinationState>,
        commands: mpsc::WeakSender<LinkCommand>,
        parked: ParkedSince,
        vitals: Arc<LinkVitals>,
    ) -> Self {
        Self {
            number: settings.number,
            machine: Link::new(settings),
            commands,
            back: None,
            starts: 0,
            preparing: false,
            relays: HomeRelays::new(),
            parked,
            vitals,
            tries: None,
            stderr_from: StderrMark::default(),
            printed: None,
            unsent: Vec::new(),
            carried: NumberMap::default(),
            opener: None,
            resent: NumberSet::default(),
            reopened: false,
            waiting: NumberMap::default(),
            streams: NumberMap::default(),
            timer: Box::pin(sleep_until(Instant::now().into())),
            armed: None,
            saving: SaveSchedule::default(),
            stopping: false,
            successor: LinkSuccessor::None,
            tools_seen: 0,
            told: WarnedOnce::default(),
            shared,
        }
    }

    async fn run(mut self, mut mailbox: mpsc::Receiver<LinkCommand>) {
        let mut taken = Vec::with_capacity(TAKEN_AT_ONCE);
        loop {
            let turn = self.wait(&mut mailbox, &mut taken).await;
            let now = Instant::now();
            // Whatever woke us, everybody gets a turn: a child that floods its stdout must not keep commands waiting,
            // nor commands its answers.
            while taken.len() < TAKEN_AT_ONCE
                && let Ok(command) = mailbox.try_recv()
            {
                taken.push(command);
            }
            for command in taken.drain(..) {
                self.take(command, now);
            }
            let closed = matches!(turn, LinkWakeup::Closed);
            match turn {
                LinkWakeup::Ready => {}
                LinkWakeup::Read => self.take_frames(now),
                LinkWakeup::Arrived(arrival) => self.take_arrival(arrival, now),
                LinkWakeup::Deadline => {
                    self.listen_closely();
                    self.machine.handle_timeout(now);
                }
                LinkWakeup::Closed => drop(self.machine.shut_down(CallFault::Stopping, now)),
            }
            // Before anybody hears of it.
            self.note_giving_up();
            self.act(now);
            self.write();
            self.save(now);
            self.parked.note(self.machine.is_parked(now));
            self.vitals.note(self.machine.condition());
            self.note_giving_up();
            if closed || self.machine.is_over() {
                break;
            }
        }
        // Replies that are still in the mailbox are dropped with it, and their clients told that the link is gone.
        mailbox.close();
        self.stop();
    }

    /// Waits for whatever comes first. Nothing is lost when the others are dropped: what was read lies in the struct.
    async fn wait(&mut self, mailbox: &mut mpsc::Receiver<LinkCommand>, taken: &mut Vec<LinkCommand>) -> LinkWakeup {
        let deadline = [self.machine.poll_timeout(), self.saving.due()].into_iter().flatten().min();
        if let Some(at) = deadline.filter(|_| deadline != self.armed) {
            self.timer.as_mut().reset(at.into());
        }
        self.armed = deadline;
        let commands = |count| if count == 0 { LinkWakeup::Closed } else { LinkWakeup::Ready };
        match &mut self.back {
            Some(LinkUpstream::Remote(remote)) => tokio::select! {
                biased;
                arrival = remote.next() => LinkWakeup::Arrived(arrival),
                count = mailbox.recv_many(taken, TAKEN_AT_ONCE) => commands(count),
                () = self.timer.as_mut(), if deadline.is_some() => LinkWakeup::Deadline,
            },
            Some(LinkUpstream::BuiltIn(connection)) => tokio::select! {
                biased;
                said = connection.next() => LinkWakeup::Arrived(said.into()),
                count = mailbox.recv_many(taken, TAKEN_AT_ONCE) => commands(count),
                () = self.timer.as_mut(), if deadline.is_some() => LinkWakeup::Deadline,
            },
            None => tokio::select! {
                biased;
                count = mailbox.recv_many(taken, TAKEN_AT_ONCE) => commands(count),
                () = self.timer.as_mut(), if deadline.is_some() => LinkWakeup::Deadline,
            },
            Some(LinkUpstream::Child(child)) => tokio::select! {
                biased;
                // Cancel safe, and unlike `readable` followed by `try_read` it needs no second read to learn that the
                // pipe is empty.
                read = child.stdout.read_buf(child.lines.space()), if !child.silent => {
                    // A server that closed its stdout can answer nothing any more.
                    if !matches!(read, Ok(1..)) {
                        child.silent = true;
                        child.keeper.kill();
                    }
                    LinkWakeup::Read
                }
                count = mailbox.recv_many(taken, TAKEN_AT_ONCE) => commands(count),
                _ = child.stdin.writable(), if child.full => {
                    child.full = false;
                    LinkWakeup::Ready
                }
                () = self.timer.as_mut(), if deadline.is_some() => LinkWakeup::Deadline,
            },
        }
    }

    // --- Commands ---

    fn take(&mut self, command: LinkCommand, now: Instant) {
        // Moving a command about costs; so does asking, but less.
        let command = match &self.successor {
            LinkSuccessor::None => command,
            _ => match self.redirect(command) {
                Some(command) => command,
                None => return,
            },
        };
        match command {
            LinkCommand::Open { reply, .. }
            | LinkCommand::Call { reply, .. }
            | LinkCommand::Fetch { reply, .. }
            | LinkCommand::Batch { reply, .. }
            | LinkCommand::Ask { reply, .. }
            | LinkCommand::Attend { reply, .. }
            | LinkCommand::OpenPlain { reply, .. }
            | LinkCommand::Post { reply, .. }
                if self.stopping =>
            {
                drop(reply.send(ReplyHead::Refused(LinkRefusal::Closed)));
            }
            LinkCommand::Open { key, hello, message, accepts, part, carried, reply } => {
                self.opener = carried.filter(|_| self.vitals.purpose == LinkPurpose::Own);
                let part = part.map(|part| {
                    let (part, home) = *part;
                    self.relays.lead_to(home.commands);
                    part
                });
                match self.machine.open(key, *hello, message, accepts, part, now) {
                    Ok(id) => drop(self.waiting.insert(id, PendingReply { reply, key: Some(key), opens: true })),
                    Err(refusal) => drop(reply.send(ReplyHead::Refused(refusal))),
                }
            }
            LinkCommand::Call { key, message, accepts, names, carried, reply } => {
                let taken = self.machine.call(key, message.into_message(), accepts, names, now);
                self.carry(&taken, carried);
                self.await_answer(taken, key, reply);
            }
            LinkCommand::Fetch { key, message, reply } => {
                let taken = self.machine.fetch(key, message.into_message(), now);
                self.await_answer(taken, Some(key), reply);
            }
            LinkCommand::Batch { key, messages, by_method, reply } => {
                let messages = messages.into_iter().map(Admitted::into_message).collect();
                match self.machine.batch(key, messages, by_method, now) {
                    Ok(Some(stream)) => self.open_stream(stream, StreamKind::Post, Some(key), reply, now),
                    Ok(None) => drop(reply.send(ReplyHead::Accepted)),
                    Err(refusal) => drop(reply.send(ReplyHead::Refused(refusal))),
                }
            }
            LinkCommand::Ask { ask, carried, reply } => {
                if let Some(tools) = self.shared.tools_since(&mut self.tools_seen) {
                    self.machine.know_tools(tools);
                }
                let taken = self.machine.ask(ask.into_ask(), now);
                self.carry(&taken, carried);
                self.await_answer(taken, None, reply);
            }
            LinkCommand::Attend { message, filter, by_method, names, reply } => {
                match self.machine.attend(&message, *filter, by_method, names, now) {
                    Ok(stream) => self.open_stream(stream, StreamKind::Listen, None, reply, now),
                    Err(refusal) => drop(reply.send(ReplyHead::Refused(refusal))),
                }
            }
            LinkCommand::OpenPlain { key, hello, message, by_method, outlet, carried, reply } => {
                self.opener = carried.filter(|_| self.vitals.purpose == LinkPurpose::Own);
                match self.machine.open_plain(key, *hello, message, by_method, now) {
                    Ok(stream) => {
                        let (key, kind) = (Some(key), StreamKind::Sse);
                        self.streams.insert(stream, ClientStream { outlet, key, kind, told: false });
                        self.shared.metrics.streams.inc();
                        drop(reply.send(ReplyHead::Accepted));
                        self.tell_of(stream, Vec::new());
                    }
                    Err(refusal) => drop(reply.send(ReplyHead::Refused(refusal))),
                }
            }
            LinkCommand::Post { key, message, carried, reply } => {
                let accepts = AcceptedFormats { json: false, events: true, by_method: false };
                let taken = self.machine.call(Some(key), message.into_message(), accepts, None, now);
                self.carry(&taken, carried);
                drop(reply.send(match taken {
                    Ok(_) => ReplyHead::Accepted,
                    Err(refusal) => ReplyHead::Refused(refusal),
                }));
            }
            LinkCommand::Tell { key, message } => self.machine.tell(key, message.into_message(), now),
            LinkCommand::Listen { key, after, by_method, reply } => {
                match self.machine.listen(key, after, by_method, now) {
                    Ok(stream) => self.open_stream(stream, StreamKind::Get, Some(key), reply, now),
                    Err(refusal) => drop(reply.send(ReplyHead::Refused(refusal))),
                }
            }
            LinkCommand::Close { key, done } => {
                self.machine.close(key, now);
                // Whoever deleted it may have left.
                let _ = done.map(|done| done.send(()));
            }
            LinkCommand::Relay { home, text, what } => self.machine.relay(home, &text, what, now),
            LinkCommand::Missed { home, count } => self.machine.missed(home, count),
            LinkCommand::Announce { method, to, listens } => self.machine.announce(method, &to, &listens),
            LinkCommand::Ring { to, rung } => self.ring(&to, rung, now),
            LinkCommand::Watch { key, every } => self.machine.watch_over(key, every, now),
            LinkCommand::Left => self.sweep(now),
            LinkCommand::StreamGone { stream } => self.stream_gone(stream, now),
            LinkCommand::Provided { start, provided } => self.provided(start, provided, now),
            LinkCommand::Exited { pid, status, why } => self.exited(pid, &status, why, now),
            LinkCommand::Restart => self.restart(now),
            LinkCommand::Limit(settings) => self.limit(&settings),
            // Whoever asked may have left.
            LinkCommand::Streams { reply } => drop(reply.send(self.report())),
            LinkCommand::Probe { reply } => {
                let taken = self.machine.probe(now);
                self.await_answer(taken, None, reply);
            }
            LinkCommand::TakeUp { key, hello, kept, numbers_from } => {
                self.machine.take_up(key, *hello, *kept, numbers_from, now);
            }
            LinkCommand::ShutDown { why, kept } => {
                self.stopping = true;
                if why == CallFault::Replaced {
                    self.await_successor();
                }
                let left = self.machine.shut_down(why, now);
                self.act(now);
                // Whoever gave up waiting has no use for it.
                let _ = kept.send(left);
            }
            LinkCommand::Moved { to } => self.moved(to),
        }
    }

    fn await_answer(
        &mut self,
        taken: Result<WireId, LinkRefusal>,
        key: Option<SessionKey>,
        reply: oneshot::Sender<ReplyHead>,
    ) {
        match taken {
            Ok(id) => drop(self.waiting.insert(id, PendingReply { reply, key, opens: false })),
            Err(refusal) => drop(reply.send(ReplyHead::Refused(refusal))),
        }
    }

    fn report(&self) -> StreamReport {
        let streams = self.streams.values().map(|ClientStream { outlet, key, kind, .. }| {
            let (waiting, open_for, silent_for) = outlet.health();
            StreamVitals { session: *key, kind: *kind, waiting, open_for, silent_for }
        });
        StreamReport { streams: streams.collect(), undelivered: self.machine.undelivered().collect() }
    }

    /// Finds out who has left without a word (B-19).
    fn sweep(&mut self, now: Instant) {
        let left: Vec<WireId> = self.waiting.iter().filter(|(_, w)| w.reply.is_closed()).map(|(id, _)| *id).collect();
        for id in left {
            self.waiting.remove(&id);
            self.machine.handle_left(id, now);
        }
    }

    fn open_stream(
        &mut self,
        stream: StreamKey,
        kind: StreamKind,
        key: Option<SessionKey>,
        reply: oneshot::Sender<ReplyHead>,
        now: Instant,
    ) {
        let (outlet, reader) = Outlet::open();
        self.streams.insert(stream, ClientStream { outlet, key, kind, told: false });
        self.shared.metrics.streams.inc();
        if reply.send(ReplyHead::Stream(stream, reader)).is_err() {
            self.stream_gone(stream, now);
        } else if kind == StreamKind::Get {
            self.tell_of(stream, Vec::new());
        }
    }

    fn stream_gone(&mut self, stream: StreamKey, now: Instant) {
        if let Some(ClientStream { key, outlet, told, .. }) = self.streams.remove(&stream) {
            self.shared.metrics.streams.dec();
            self.tell_closed(stream, told);
            self.machine.handle_stream_gone(key, stream, outlet.taken(), now);
        }
    }

    fn name(&self) -> &str {
        &self.shared.config.name
    }
}
