//! `prism stdio`: an MCP server on a pipe that is really the daemon. For clients that can start a program and cannot
//! speak HTTP (D-07). Lines come in and become requests; what comes back, on whichever stream, leaves as lines.
//!
//! It knows no method but those that its transport is made of: every revision passes, byte for byte. What it adds is
//! that a restart of the daemon is not the client's affair; see `machine`.
//!
//! With a NAME it goes to that destination itself: its own name, instructions and tools are what a person wants who has
//! given a client this one server. So it waits for the server's greeting, however long that takes to start, as a client
//! does that has started the server itself: what greets in its place has other tools, and clients list once. A server
//! that does not start is an error, after `start_timeout`. Without a NAME the hub greets, which needs no server.

mod bells;
mod exchange;
mod machine;
#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    future::pending,
    io,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::BytesMut;
use prism_core::wire::{LineSplitter, splice::push_flat};
use prism_os::reader::StdoutReader;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, Stdin, Stdout},
    signal::unix::{Signal, SignalKind, signal},
    sync::mpsc,
    task::{AbortHandle, JoinHandle, spawn_blocking},
    time::{sleep_until, timeout},
};
use uuid::Uuid;

use self::{
    bells::BellPoller,
    exchange::ReportSender,
    machine::{ExchangeReport, ShimAction, ShimMachine, Ticket},
};
use crate::say;
use prism_config::home::Token;
use prism_mcp::{folder, remote::RemoteTarget};

pub(crate) use machine::ShimRoute;

/// The longest message, either way. A longer one is refused.
const MAX_MESSAGE_BYTES: usize = 64 << 20;
/// Reports that may wait for us. Beyond it the exchanges wait, and with them the daemon's sockets.
const REPORTS: usize = 64;
/// Bytes that may wait for the client to read them. Beyond it we listen to nobody but the client.
const MAX_UNWRITTEN_BYTES: usize = 256 << 10;
/// How long what is in flight may take when the client has closed its end.
const FINISH_AFTER_END: Duration = Duration::from_secs(10);
/// The same for somebody who wants us gone. Clients kill after two seconds.
const FINISH_AFTER_SIGNAL: Duration = Duration::from_secs(1);
/// How long the end of the session may take to tell.
const FAREWELL: Duration = Duration::from_secs(1);

/// How the daemon is found.
pub(crate) trait DaemonLocator: Send + Sync {
    /// Sees to it that the daemon runs. May take a while. The error is for people.
    fn start(&self) -> Result<DaemonAddress, String>;
    /// Where it is if it runs, without much ado.
    fn look(&self) -> Option<DaemonAddress>;
}

/// Where the daemon is.
#[derive(Clone, Debug)]
pub(crate) struct DaemonAddress {
    /// As in `http://127.0.0.1:7420`.
    pub(crate) base: String,
    pub(crate) socket: Option<PathBuf>,
    pub(crate) token: Token,
}

struct Shim {
    machine: ShimMachine,
    door: Arc<dyn DaemonLocator>,
    /// Which run of `prism stdio` this is: a modern client has no session that could tell (M-01).
    instance: Uuid,
    /// The pane of the user's own tmux that we run in, as in `%3`.
    pane: Option<String>,
    target: Option<(DaemonAddress, Arc<RemoteTarget>)>,
    starting: Option<JoinHandle<Result<DaemonAddress, String>>>,
    bells: BellPoller,
    running: HashMap<Ticket, AbortHandle>,
    reports: mpsc::Sender<(Ticket, ExchangeReport)>,
    /// What the client has not read yet. Bounded, but for one message: see [`MAX_UNWRITTEN_BYTES`].
    unwritten: BytesMut,
}

/// Runs until stdin ends, stdout is closed or somebody wants us to stop.
pub(crate) async fn run(route: ShimRoute, door: Arc<dyn DaemonLocator>, pane: Option<String>) -> io::Result<()> {
    let (reports, mut arriving) = mpsc::channel(REPORTS);
    let mut shim = Shim {
        machine: ShimMachine::new(route),
        door,
        instance: Uuid::now_v7(),
        pane,
        target: None,
        starting: None,
        bells: BellPoller::default(),
        running: HashMap::new(),
        reports,
        unwritten: BytesMut::new(),
    };
    let mut lines = LineSplitter::new(MAX_MESSAGE_BYTES);
    let (mut stdin, mut stdout) = (tokio::io::stdin(), ShimStdout::new());
    let mut ends = StopSignals::new()?;
    let mut at_end = false;
    loop {
        while !shim.machine.is_full()
            && let Some(frame) = lines.next_frame()
        {
            shim.machine.handle_line(frame, Instant::now());
        }
        shim.act();
        if shim.machine.is_over(Instant::now()) {
            break;
        }
        let due = shim.machine.poll_timeout();
        let quiet = shim.unwritten.len() < MAX_UNWRITTEN_BYTES;
        tokio::select! {
            report = arriving.recv(), if quiet => {
                if let Some((ticket, says)) = report {
                    shim.report(ticket, says);
                }
            }
            written = stdout.write(&mut shim.unwritten) => if written.is_err() {
                // Nobody reads what we say.
                break;
            },
            read = read(&mut stdin, &mut lines), if !at_end && !shim.machine.is_full() => {
                if read.unwrap_or(0) == 0 {
                    at_end = true;
                    // A last line may lack its end.
                    lines.space().extend_from_slice(b"\n");
                    shim.machine.handle_end(Instant::now() + FINISH_AFTER_END);
                }
            }
            started = finished(&mut shim.starting) => shim.started(started),
            bell = shim.bells.next(shim.target.as_ref().map(|(_, target)| target), shim.instance), if quiet => {
                shim.machine.handle_bell(&bell);
            }
            () = sleep_until(due.unwrap_or_else(Instant::now).into()), if due.is_some() => {
                shim.machine.handle_timeout(Instant::now());
            }
            () = ends.next() => {
                at_end = true;
                shim.machine.handle_end(Instant::now() + FINISH_AFTER_SIGNAL);
            }
        }
    }
    shim.act();
    shim.end(stdout).await;
    Ok(())
}

/// Reads what has come. Cancel safe: what was read is in `lines`.
async fn read(stdin: &mut Stdin, lines: &mut LineSplitter) -> io::Result<usize> {
    stdin.read_buf(lines.space()).await
}

/// Waits for the daemon to have started, if it is being started. Cancel safe.
async fn finished(starting: &mut Option<JoinHandle<Result<DaemonAddress, String>>>) -> Result<DaemonAddress, String> {
    match starting {
        Some(running) => {
            let started = running.await.unwrap_or_else(|_| Err("the daemon could not be started".to_owned()));
            *starting = None;
            started
        }
        None => pending().await,
    }
}

// === impl Shim ===

impl Shim {
    /// Does what the machine wants done.
    fn act(&mut self) {
        while let Some(action) = self.machine.poll_action() {
            match action {
                ShimAction::Write(message) => {
                    push_flat(&mut self.unwritten, &message);
                    self.unwritten.extend_from_slice(b"\n");
                }
                ShimAction::Post { ticket, path, message, params, lane } => {
                    self.exchange(ticket, |target, voice| exchange::post(target, path, message, params, lane, voice));
                }
                ShimAction::Get { ticket, path, lane, after, answers } => {
                    self.exchange(ticket, |target, voice| exchange::get(target, path, lane, after, answers, voice));
                }
                ShimAction::Close(ticket) => {
                    if let Some(task) = self.running.remove(&ticket) {
                        task.abort();
                    }
                }
                ShimAction::Start => {
                    let door = self.door.clone();
                    self.starting = Some(spawn_blocking(move || door.start()));
                }
                ShimAction::Look => {
                    if let Some(address) = self.door.look() {
                        let _ = self.go_to(address);
                    }
                }
                ShimAction::Attend => self.bells.attend(),
                ShimAction::Say(text) => say::warning(&text),
            }
        }
    }

    fn exchange<E>(&mut self, ticket: Ticket, exchange: impl FnOnce(Arc<RemoteTarget>, ReportSender) -> E)
    where
        E: Future<Output = ()> + Send + 'static,
    {
        let voice = ReportSender { ticket, reports: self.reports.clone() };
        match &self.target {
            Some((_, target)) => {
                let task = tokio::spawn(exchange(target.clone(), voice));
                self.running.insert(ticket, task.abort_handle());
            }
            None => self.report(ticket, ExchangeReport::Unsent { why: "it is not known where it is".to_owned() }),
        }
    }

    fn report(&mut self, ticket: Ticket, says: ExchangeReport) {
        if !matches!(says, ExchangeReport::Message(_)) {
            self.running.remove(&ticket);
        }
        self.machine.handle_report(ticket, says, Instant::now());
    }

    fn started(&mut self, started: Result<DaemonAddress, String>) {
        let there = started.and_then(|address| self.go_to(address));
        self.machine.handle_started(there, Instant::now());
    }

    /// Connections are kept for as long as the daemon is where it was.
    fn go_to(&mut self, address: DaemonAddress) -> Result<(), String> {
        if self.target.as_ref().is_some_and(|(old, _)| old.is(&address)) {
            return Ok(());
        }
        let target = address.target(self.instance, self.pane.as_deref()).map_err(|error| error.to_string())?;
        self.target = Some((address, target));
        Ok(())
    }

    /// Writes the last words, and ends the session.
    async fn end(mut self, mut stdout: ShimStdout) {
        for (_, task) in self.running.drain() {
            task.abort();
        }
        let words = async { while !self.unwritten.is_empty() && stdout.write(&mut self.unwritten).await.is_ok() {} };
        let session = async {
            if let (Some((path, lane)), Some((_, target))) = (self.machine.farewell(), &self.target) {
                exchange::delete(target, &path, &lane).await;
            }
        };
        let _ = timeout(FAREWELL, async { tokio::join!(words, session) }).await;
    }
}

// === impl DaemonAddress ===

impl DaemonAddress {
    fn is(&self, other: &Self) -> bool {
        let same = |a: &Token, b: &Token| a.expose() == b.expose();
        self.base == other.base && self.socket == other.socket && same(&self.token, &other.token)
    }

    fn target(
        &self,
        instance: Uuid,
        pane: Option<&str>,
    ) -> Result<Arc<RemoteTarget>, prism_mcp::remote::RemoteTargetError> {
        let headers = [
            ("authorization", format!("Bearer {}", self.token.expose())),
            ("prism-transport", "stdio".to_owned()),
            ("prism-instance", instance.to_string()),
            ("user-agent", concat!("prism-stdio/", env!("CARGO_PKG_VERSION")).to_owned()),
        ];
        let mut headers = headers.map(|(name, value)| (name.to_owned(), value)).to_vec();
        if let Some(number) = pane.and_then(|pane| pane.strip_prefix('%')) {
            headers.push(("prism-tmux-pane".to_owned(), number.to_owned()));
        }
        // Clients start their servers in the folder that they work in.
        if let Ok(folder) = std::env::current_dir() {
            headers.push(("prism-folder".to_owned(), folder::escaped(&folder)));
        }
        match &self.socket {
            Some(socket) => {
                RemoteTarget::over_socket(socket.clone(), "http://localhost/mcp", headers, MAX_MESSAGE_BYTES)
            }
            None => RemoteTarget::new(&format!("{}/mcp", self.base), headers, None, MAX_MESSAGE_BYTES),
        }
    }
}

/// Stdout, and whether somebody still reads it.
struct ShimStdout {
    stdout: Stdout,
    /// `None` where that cannot be seen: a file, for one.
    reader: Option<StdoutReader>,
    /// Something was given to the system and may not have arrived.
    unflushed: bool,
}

// === impl ShimStdout ===

impl ShimStdout {
    fn new() -> Self {
        Self { stdout: tokio::io::stdout(), reader: StdoutReader::of_stdout().ok(), unflushed: false }
    }

    /// Writes what there is, or waits until nobody is left to read it. Cancel safe: what is taken out is written.
    async fn write(&mut self, bytes: &mut BytesMut) -> io::Result<()> {
        if bytes.is_empty() && !self.unflushed {
            let Some(reader) = &self.reader else { return pending().await };
            reader.gone().await;
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        if !bytes.is_empty() {
            self.stdout.write_buf(bytes).await?;
            self.unflushed = true;
        }
        self.stdout.flush().await?;
        self.unflushed = false;
        Ok(())
    }
}

/// Whoever wants us to stop.
struct StopSignals([Signal; 3]);

impl StopSignals {
    fn new() -> io::Result<Self> {
        Ok(Self([signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?, signal(SignalKind::hangup())?]))
    }

    /// Cancel safe.
    async fn next(&mut self) {
        let [terminate, interrupt, hangup] = &mut self.0;
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}
