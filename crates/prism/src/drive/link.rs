//! One link's task: it owns the machine, the child's pipes and the clients' streams, and decides nothing.
//!
//! The loop is the same every time: wait for a command, for the child or for a deadline; hand it to the machine; do
//! what the machine says; write what it wrote. One task reads and writes both, so a call crosses two tasks on its way
//! there and two on its way back, no more.

use std::{
    collections::HashMap,
    io,
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::{Buf, Bytes};
use prism_core::{
    mcp::{
        Accepts, Action, Answer, Hello, Link, Refusal, Settings,
        link::{SessionKey, StreamKey, WireId},
    },
    wire::{Lines, Message, frame},
};
use prism_os::{
    child::{Child, Spec},
    group::{self, Group},
};
use tokio::{
    net::unix::pipe,
    sync::{mpsc, oneshot},
    time::{Sleep, sleep_until},
};
use tracing::{debug, info, warn};

use super::{
    destination::Shared,
    outlet::{Outlet, Pushed, Reader},
    stderr,
};

/// Commands that may wait for a link. Beyond it the sender waits, and with it its client's socket.
const MAILBOX: usize = 1024;
/// Commands taken at a time: enough to fill one write, few enough to keep reading.
const TAKEN_AT_ONCE: usize = 64;
/// Reads in a row before the rest gets its turn.
const READS_IN_A_ROW: usize = 16;
/// Rounds of such reads for a child that has ended: more than its pipe can hold.
const LAST_ROUNDS: usize = 8;
/// How long a child gets to end by itself, and again after SIGTERM (B-13).
const STOP_GRACE: Duration = Duration::from_secs(2);

/// What a link can be told: the task's whole interface.
pub enum Command {
    Open {
        key: SessionKey,
        hello: Box<Hello>,
        message: Message,
        accepts: Accepts,
        reply: oneshot::Sender<Head>,
    },
    Call {
        key: Option<SessionKey>,
        message: Message,
        accepts: Accepts,
        reply: oneshot::Sender<Head>,
    },
    Batch {
        key: SessionKey,
        messages: Vec<Message>,
        reply: oneshot::Sender<Head>,
    },
    Tell {
        key: Option<SessionKey>,
        message: Message,
    },
    Listen {
        key: SessionKey,
        after: Option<frame::EventId>,
        reply: oneshot::Sender<Head>,
    },
    Close {
        key: SessionKey,
        done: Option<oneshot::Sender<()>>,
    },
    /// Somebody who waited for a reply has left.
    Left,
    StreamGone {
        stream: StreamKey,
    },
    /// Asks the child for a sign of life; refused when there is no child.
    Probe {
        reply: oneshot::Sender<Head>,
    },
    ShutDown,
}

/// The beginning of what a request gets.
pub enum Head {
    Answer(Answer),
    Stream(StreamKey, Reader),
    Accepted,
    Refused(Refusal),
}

#[derive(Clone)]
pub struct LinkHandle {
    pub commands: mpsc::Sender<Command>,
}

struct Driver {
    machine: Link,
    shared: Arc<Shared>,
    child: Option<Running>,
    waiting: HashMap<WireId, Waiting>,
    streams: HashMap<StreamKey, Stream>,
    timer: Pin<Box<Sleep>>,
    armed: Option<Instant>,
    /// The daemon is stopping: nothing new is taken.
    stopping: bool,
    /// What the log has been told once, and need not be told with every message.
    told: Told,
}

#[derive(Default)]
struct Told {
    garbage: bool,
    unowned: bool,
}

struct Running {
    stdin: pipe::Sender,
    stdout: pipe::Receiver,
    lines: Lines,
    group: Arc<Group>,
    /// Completes when the process has ended. Kept over the turns: to ask anew each time would cost more than the rest.
    exit: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// The pipe is full: wait until it can be written to.
    full: bool,
    /// It closed its stdout.
    silent: bool,
}

struct Waiting {
    reply: oneshot::Sender<Head>,
    key: Option<SessionKey>,
    /// It waits for a session to be opened.
    opens: bool,
}

struct Stream {
    outlet: Arc<Outlet>,
    key: Option<SessionKey>,
}

/// What ended the wait.
#[derive(PartialEq, Eq)]
enum Turn {
    Ready,
    Closed,
    Exited,
    Deadline,
}

// === impl LinkHandle ===

impl LinkHandle {
    pub fn spawn(settings: Settings, shared: Arc<Shared>) -> Self {
        let (commands, mailbox) = mpsc::channel(MAILBOX);
        let driver = Driver {
            machine: Link::new(settings),
            child: None,
            waiting: HashMap::new(),
            streams: HashMap::new(),
            timer: Box::pin(sleep_until(Instant::now().into())),
            armed: None,
            stopping: false,
            told: Told::default(),
            shared,
        };
        tokio::spawn(driver.run(mailbox));
        Self { commands }
    }
}

// === impl Driver ===

impl Driver {
    async fn run(mut self, mut mailbox: mpsc::Receiver<Command>) {
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
            self.read(now);
            match turn {
                Turn::Ready => {}
                Turn::Exited => self.exited(now),
                Turn::Deadline => self.machine.handle_timeout(now),
                Turn::Closed => self.machine.shut_down(now),
            }
            self.act(now);
            self.write();
            if turn == Turn::Closed || self.machine.is_over() {
                break;
            }
        }
        // Replies that are still in the mailbox are dropped with it, and their clients told that the link is gone.
        mailbox.close();
        self.stop_child();
    }

    /// Waits for whatever comes first. Nothing is lost when the others are dropped: what was read lies in the struct.
    async fn wait(&mut self, mailbox: &mut mpsc::Receiver<Command>, taken: &mut Vec<Command>) -> Turn {
        let deadline = self.machine.poll_timeout();
        if let Some(at) = deadline.filter(|_| deadline != self.armed) {
            self.timer.as_mut().reset(at.into());
        }
        self.armed = deadline;
        let commands = |count| if count == 0 { Turn::Closed } else { Turn::Ready };
        match &mut self.child {
            None => tokio::select! {
                biased;
                count = mailbox.recv_many(taken, TAKEN_AT_ONCE) => commands(count),
                () = self.timer.as_mut(), if deadline.is_some() => Turn::Deadline,
            },
            Some(child) => tokio::select! {
                biased;
                _ = child.stdout.readable(), if !child.silent => Turn::Ready,
                count = mailbox.recv_many(taken, TAKEN_AT_ONCE) => commands(count),
                _ = child.stdin.writable(), if child.full => {
                    child.full = false;
                    Turn::Ready
                }
                () = child.exit.as_mut() => Turn::Exited,
                () = self.timer.as_mut(), if deadline.is_some() => Turn::Deadline,
            },
        }
    }

    // --- Commands ---

    fn take(&mut self, command: Command, now: Instant) {
        match command {
            Command::Open { reply, .. } | Command::Call { reply, .. } | Command::Batch { reply, .. }
                if self.stopping =>
            {
                drop(reply.send(Head::Refused(Refusal::Closed)));
            }
            Command::Open { key, hello, message, accepts, reply } => {
                match self.machine.open(key, *hello, message, accepts, now) {
                    Ok(id) => drop(self.waiting.insert(id, Waiting { reply, key: Some(key), opens: true })),
                    Err(refusal) => drop(reply.send(Head::Refused(refusal))),
                }
            }
            Command::Call { key, message, accepts, reply } => {
                let taken = self.machine.call(key, message, accepts, now);
                self.await_answer(taken, key, reply);
            }
            Command::Batch { key, messages, reply } => match self.machine.batch(key, messages, now) {
                Ok(Some(stream)) => self.open_stream(stream, Some(key), reply),
                Ok(None) => drop(reply.send(Head::Accepted)),
                Err(refusal) => drop(reply.send(Head::Refused(refusal))),
            },
            Command::Tell { key, message } => self.machine.tell(key, message, now),
            Command::Listen { key, after, reply } => match self.machine.listen(key, after, now) {
                Ok(stream) => self.open_stream(stream, Some(key), reply),
                Err(refusal) => drop(reply.send(Head::Refused(refusal))),
            },
            Command::Close { key, done } => {
                self.machine.close(key, now);
                // Whoever deleted it may have left.
                let _ = done.map(|done| done.send(()));
            }
            Command::Left => self.sweep(now),
            Command::StreamGone { stream } => self.stream_gone(stream),
            Command::Probe { reply } => {
                let taken = self.machine.probe(now);
                self.await_answer(taken, None, reply);
            }
            Command::ShutDown => {
                self.stopping = true;
                self.machine.shut_down(now);
            }
        }
    }

    fn await_answer(&mut self, taken: Result<WireId, Refusal>, key: Option<SessionKey>, reply: oneshot::Sender<Head>) {
        match taken {
            Ok(id) => drop(self.waiting.insert(id, Waiting { reply, key, opens: false })),
            Err(refusal) => drop(reply.send(Head::Refused(refusal))),
        }
    }

    /// Finds out who has left without a word (B-19).
    fn sweep(&mut self, now: Instant) {
        let left: Vec<WireId> = self.waiting.iter().filter(|(_, w)| w.reply.is_closed()).map(|(id, _)| *id).collect();
        for id in left {
            self.waiting.remove(&id);
            self.machine.handle_left(id, now);
        }
    }

    fn open_stream(&mut self, stream: StreamKey, key: Option<SessionKey>, reply: oneshot::Sender<Head>) {
        let (outlet, reader) = Outlet::open();
        self.streams.insert(stream, Stream { outlet, key });
        self.shared.metrics.streams.inc();
        if reply.send(Head::Stream(stream, reader)).is_err() {
            self.stream_gone(stream);
        }
    }

    fn stream_gone(&mut self, stream: StreamKey) {
        if let Some(Stream { key, outlet }) = self.streams.remove(&stream) {
            self.shared.metrics.streams.dec();
            self.machine.handle_stream_gone(key, stream, outlet.taken());
        }
    }

    // --- Actions ---

    fn act(&mut self, now: Instant) {
        while let Some(action) = self.machine.poll_action() {
            match action {
                Action::Answer(id, answer) => {
                    if let Some(Waiting { reply, key, opens }) = self.waiting.remove(&id)
                        && reply.send(Head::Answer(answer)).is_err()
                        && let Some(key) = key.filter(|_| opens)
                    {
                        // Its client left a moment ago, and nobody else will ever know of this session.
                        self.machine.close(key, now);
                    }
                }
                Action::Stream(id, stream) => {
                    if let Some(Waiting { reply, key, .. }) = self.waiting.remove(&id) {
                        self.open_stream(stream, key, reply);
                    }
                }
                Action::Event { stream, number, bytes } => self.push(stream, number, bytes),
                Action::End(stream) => {
                    if let Some(Stream { outlet, .. }) = self.streams.get(&stream) {
                        outlet.end();
                    }
                    self.stream_gone(stream);
                }
                Action::KeepAlive => {
                    self.sweep(now);
                    let silent = |stream: &Stream| stream.outlet.beat() == Pushed::Gone;
                    let gone: Vec<StreamKey> =
                        self.streams.iter().filter(|(_, stream)| silent(stream)).map(|(key, _)| *key).collect();
                    for stream in gone {
                        self.stream_gone(stream);
                    }
                }
                Action::Start => self.start_child(now),
                Action::Stop => self.stop_child(),
                Action::Ended(key) => self.shared.ended(key),
                Action::Dropped(count) => {
                    self.shared.metrics.dropped.inc_by(count as u64);
                    debug!(destination = self.name(), count, "Dropped events that no client has had");
                }
                Action::Garbage { line, why } => {
                    self.shared.metrics.garbage.inc();
                    if !std::mem::replace(&mut self.told.garbage, true) {
                        warn!(
                            destination = self.name(),
                            why, "The server writes to stdout what is no message; it is skipped"
                        );
                    }
                    debug!(destination = self.name(), bytes = line.len(), why, "Skipped a line of the server's stdout");
                }
                Action::Unowned(message) => {
                    self.shared.metrics.unowned.inc();
                    let method = message.method_text().unwrap_or_default();
                    if !std::mem::replace(&mut self.told.unowned, true) {
                        warn!(
                            destination = self.name(),
                            method,
                            "A note of the server belongs to no certain session and is kept from all; \
                             process = \"per_session\" would tell whose it is"
                        );
                    }
                    debug!(destination = self.name(), method, "A note without an owner");
                }
                Action::Asked => {
                    self.shared.metrics.questions.inc();
                    self.shared.asked();
                }
                Action::Ambiguous => {
                    self.shared.metrics.ambiguous.inc();
                    warn!(
                        destination = self.name(),
                        "Refused a server's question: calls of several clients were running. Use process = \"per_session\""
                    );
                }
                Action::Listed { tools, whole } => self.shared.listed(&tools, whole),
                Action::Answered { tool } => self.shared.answered(&tool),
                Action::Ready { name, version } => {
                    info!(destination = self.name(), server = name, version, "Server is ready");
                    self.shared.greeted(&name, &version);
                }
            }
        }
    }

    fn push(&mut self, stream: StreamKey, number: u64, bytes: Bytes) {
        let Some(Stream { outlet, .. }) = self.streams.get(&stream) else { return };
        match outlet.push(number, bytes) {
            Pushed::Queued => {}
            Pushed::Gone => self.stream_gone(stream),
            Pushed::CutOff => {
                self.shared.metrics.cut_off.inc();
                warn!(destination = self.name(), "Cut off a client that stopped reading its stream; it can resume");
                self.stream_gone(stream);
            }
        }
    }

    // --- The child ---

    fn start_child(&mut self, now: Instant) {
        let config = &self.shared.config;
        let spec = Spec { command: &config.command, env: &config.env, cwd: config.cwd.as_deref() };
        self.shared.metrics.starts.inc();
        match Child::spawn(&spec, &self.shared.owner) {
            Ok(Child { stdin, stdout, stderr, group }) => {
                info!(destination = self.name(), pid = group.pid(), "Started the server");
                self.shared.metrics.children.inc();
                stderr::drain(stderr, self.shared.config.name.clone());
                let group = Arc::new(group);
                let watched = group.clone();
                let exit = Box::pin(async move { watched.exited().await });
                let lines = Lines::new(self.shared.max_message_bytes);
                self.child = Some(Running { stdin, stdout, lines, group, exit, full: false, silent: false });
            }
            Err(error) => {
                let why = match std::error::Error::source(&error) {
                    Some(source) => format!("{error}: {source}"),
                    None => error.to_string(),
                };
                warn!(destination = self.name(), why, "Cannot start the server");
                self.machine.handle_start_failed(&why, now);
            }
        }
    }

    /// Reads what the child has written. Returns whether there may be more.
    fn read(&mut self, now: Instant) -> bool {
        let Some(child) = &mut self.child else { return false };
        if child.silent {
            return false;
        }
        for _ in 0..READS_IN_A_ROW {
            match child.stdout.try_read_buf(child.lines.space()) {
                Ok(0) => {
                    // A server that closed its stdout can answer nothing any more.
                    child.silent = true;
                    child.group.kill();
                    return false;
                }
                Ok(_) => {
                    while let Some(frame) = child.lines.next_frame() {
                        self.machine.handle_child(frame, now);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                Err(_) => {
                    child.silent = true;
                    child.group.kill();
                    return false;
                }
            }
        }
        true
    }

    fn exited(&mut self, now: Instant) {
        // What it wrote before it ended counts. A grandchild may go on writing: that does not.
        for _ in 0..LAST_ROUNDS {
            if !self.read(now) {
                break;
            }
        }
        let Some(Running { group, exit, .. }) = self.child.take() else { return };
        drop(exit);
        self.shared.metrics.children.dec();
        let status = Arc::into_inner(group).map(Group::finish);
        let status = match status {
            Some(Ok(status)) => status.to_string(),
            Some(Err(error)) => error.to_string(),
            None => String::new(),
        };
        warn!(destination = self.name(), status, "The server ended");
        self.machine.handle_exit(now);
    }

    /// Writes what the child takes now. The rest stays with the machine, which refuses calls when it is too much.
    fn write(&mut self) {
        let Some(child) = &mut self.child else { return };
        let output = self.machine.output();
        while !output.is_empty() && !child.full {
            match child.stdin.try_write(output) {
                Ok(count) => output.advance(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => child.full = true,
                // It no longer reads. Its exit is on the way; what it was to read dies with it.
                Err(_) => output.clear(),
            }
        }
    }

    /// Closes the child's stdin and sees it to its end, in a task of its own (B-13).
    fn stop_child(&mut self) {
        let Some(Running { stdin, stdout, group, exit, .. }) = self.child.take() else { return };
        drop((stdin, exit));
        let shared = self.shared.clone();
        tokio::spawn(async move {
            if let Some(group) = Arc::into_inner(group) {
                let pid = group.pid();
                // A child that is blocked on writing cannot end: its last words are read, and dropped.
                let last_words = async {
                    let mut sink = [0; 4096];
                    while stdout.readable().await.is_ok() {
                        match stdout.try_read(&mut sink) {
                            Ok(1..) => {}
                            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                            _ => break,
                        }
                    }
                    std::future::pending::<()>().await;
                };
                let status = tokio::select! {
                    status = group::stop(group, STOP_GRACE) => status,
                    () = last_words => return,
                };
                let status = status.map_or_else(|error| error.to_string(), |status| status.to_string());
                info!(destination = shared.config.name, pid, status, "Stopped the server");
            }
            shared.metrics.children.dec();
        });
    }

    fn name(&self) -> &str {
        &self.shared.config.name
    }
}
