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
use prism_os::child::{Child, Spec};
use tokio::{
    io::AsyncReadExt,
    net::unix::pipe,
    sync::{mpsc, oneshot},
    time::{Sleep, sleep_until, timeout},
};
use tracing::{debug, info, warn};

use super::{
    destination::Shared,
    keeper::Keeper,
    outlet::{Outlet, Pushed, Reader},
    stderr,
};

/// Commands that may wait for a link. Beyond it the sender waits, and with it its client's socket.
const MAILBOX: usize = 1024;
/// Commands taken at a time: enough to fill one write, few enough to keep reading.
const TAKEN_AT_ONCE: usize = 64;
/// Reads of what a child that has ended had written: more than its pipe can hold.
const LAST_READS: usize = 64;
/// How long a child that is being stopped is read from: longer than its keeper lets it live.
const LAST_WORDS: Duration = Duration::from_secs(5);

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
    /// The child with this pid has ended.
    Exited {
        pid: u32,
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
    /// The way into our own mailbox, for the child's keeper.
    commands: mpsc::WeakSender<Command>,
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
    keeper: Keeper,
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
    /// What the child has written is in its buffer.
    Read,
    Closed,
    Deadline,
}

// === impl LinkHandle ===

impl LinkHandle {
    pub fn spawn(settings: Settings, shared: Arc<Shared>) -> Self {
        let (commands, mailbox) = mpsc::channel(MAILBOX);
        let driver = Driver {
            machine: Link::new(settings),
            commands: commands.downgrade(),
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
            match turn {
                Turn::Ready => {}
                Turn::Read => self.take_frames(now),
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
                // Cancel safe, and unlike `readable` followed by `try_read` it needs no second read to learn that the
                // pipe is empty.
                read = child.stdout.read_buf(child.lines.space()), if !child.silent => {
                    // A server that closed its stdout can answer nothing any more.
                    if !matches!(read, Ok(1..)) {
                        child.silent = true;
                        child.keeper.kill();
                    }
                    Turn::Read
                }
                count = mailbox.recv_many(taken, TAKEN_AT_ONCE) => commands(count),
                _ = child.stdin.writable(), if child.full => {
                    child.full = false;
                    Turn::Ready
                }
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
            Command::Exited { pid } => self.exited(pid, now),
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
                stderr::drain(stderr, self.shared.config.name.clone());
                let keeper = Keeper::take(group, self.shared.clone(), self.commands.clone());
                let lines = Lines::new(self.shared.max_message_bytes);
                self.child = Some(Running { stdin, stdout, lines, keeper, full: false, silent: false });
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

    fn take_frames(&mut self, now: Instant) {
        if let Some(child) = &mut self.child {
            while let Some(frame) = child.lines.next_frame() {
                self.machine.handle_child(frame, now);
            }
        }
    }

    fn exited(&mut self, pid: u32, now: Instant) {
        // One that was stopped is seen to its end elsewhere.
        if self.child.as_ref().is_none_or(|child| child.keeper.pid() != pid) {
            return;
        }
        // What it wrote before it ended counts. A grandchild may go on writing: that does not.
        for _ in 0..LAST_READS {
            let Some(child) = &mut self.child else { return };
            if !matches!(child.stdout.try_read_buf(child.lines.space()), Ok(1..)) {
                break;
            }
            self.take_frames(now);
        }
        self.child = None;
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
        // The keeper, dropped, does the rest. A child that is blocked on writing cannot end: its last words are read.
        if let Some(Running { stdout, .. }) = self.child.take() {
            tokio::spawn(timeout(LAST_WORDS, async move {
                let mut sink = [0; 4096];
                while stdout.readable().await.is_ok() {
                    match stdout.try_read(&mut sink) {
                        Ok(1..) => {}
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                        _ => break,
                    }
                }
            }));
        }
    }

    fn name(&self) -> &str {
        &self.shared.config.name
    }
}
