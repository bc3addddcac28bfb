//! The far end of a link: a child's pipes, or a connection over HTTP. What the machine writes goes there, and what comes
//! from there goes to the machine.

use std::{io, sync::Arc, time::Instant};

use bytes::Buf;
use hyper::header::{HeaderName, HeaderValue};
use prism_core::{
    mcp::{CallFault, Link, LinkRefusal, LinkSettings, LinkState, Method, link::WireId},
    numbers::NumberMap,
    wire::{LineSplitter, Message, MessageKind, envelope::own_number},
};
use prism_os::child::Child;
use tokio::time::timeout;
use tracing::{debug, info, warn};

use super::{ChildPipes, LAST_READS, LAST_WORDS, LinkCommand, LinkDriver, LinkUpstream, MAX_RESENT};
use crate::drive::{
    ForwardedHeaders,
    beginning::{self, PreparedStart, StartedChild},
    destination::DestinationState,
    health::{self, FailedStarts, ServerState},
    keeper::ChildSupervisor,
    stderr,
};
use prism_config::{HttpConfig, Transport};
use prism_mcp::{
    kit::BuiltinConnection,
    remote::{RemoteConnection, RemoteEvent, RemoteFailure},
};

impl LinkDriver {
    pub(super) fn start(&mut self, now: Instant) {
        if let Some(server) = self.shared.built_in.clone() {
            self.note_start(now);
            self.back = Some(LinkUpstream::BuiltIn(BuiltinConnection::open(server)));
            return;
        }
        // One that has forgotten our session is opened anew over the connection there is.
        if self.shared.target.is_some() && self.back.is_some() {
            return;
        }
        self.note_start(now);
        self.starts += 1;
        if let Some(given) = self.shared.environment.at_once(&self.shared.config) {
            return self.start_with(given.map(PreparedStart::Given).map_err(|error| error.to_string()), now);
        }
        self.preparing = true;
        let (start, link) = (self.starts, self.commands.clone());
        let provided = beginning::provide(self.shared.clone());
        tokio::spawn(async move {
            let provided = provided.await.map(Box::new);
            if let Some(link) = link.upgrade() {
                let _ = link.send(LinkCommand::Provided { start, provided }).await;
            }
        });
    }

    /// What the server is given has been looked up. Meanwhile the start may have been called off: one that runs already is dropped.
    pub(super) fn provided(&mut self, start: u64, provided: Result<Box<PreparedStart>, String>, now: Instant) {
        if start == self.starts && std::mem::take(&mut self.preparing) {
            self.start_with(provided.map(|provided| *provided), now);
        }
    }

    fn start_with(&mut self, provided: Result<PreparedStart, String>, now: Instant) {
        let started = provided.and_then(|provided| match (&self.shared.target, provided) {
            (Some(target), PreparedStart::Given(given)) => match target.set_headers(given.headers) {
                Ok(()) => Ok(LinkUpstream::Remote(Box::new(RemoteConnection::open(target.clone())))),
                Err(error) => Err(error.to_string()),
            },
            (None, PreparedStart::Given(given)) => {
                beginning::begin(&self.shared, &given).map(|begun| self.attend(begun))
            }
            (_, PreparedStart::Begun(begun)) => Ok(self.attend(begun)),
        });
        match started {
            Ok(back) => self.back = Some(back),
            Err(why) => {
                warn!(destination = self.name(), why, "Cannot start the server");
                let said = format!("{} cannot be started: {why}", self.name());
                self.shared.trouble.note(&said);
                self.shared.sightings.start_failed(said.clone());
                self.machine.explain(Some(said));
                self.machine.handle_start_failed(&why, now);
            }
        }
    }

    fn note_start(&mut self, now: Instant) {
        if self.tries.is_none() {
            self.printed = None;
            self.shared.sightings.printed(None);
        }
        self.tries.get_or_insert_with(|| FailedStarts::begin(now)).add();
        self.stderr_from = self.shared.stderr.mark();
        self.shared.metrics.starts.inc();
        if self.vitals.starts() {
            self.shared.metrics.restarts.inc();
        }
    }

    /// Takes charge of a child that has begun.
    fn attend(&self, StartedChild { child, ceiling }: StartedChild) -> LinkUpstream {
        let Child { stdin, stdout, stderr, group, .. } = child;
        let drained = stderr::drain(stderr, self.shared.config.name.clone(), self.shared.stderr.clone());
        let keeper = ChildSupervisor::take(group, ceiling, drained, self.shared.clone(), self.commands.clone());
        self.vitals.runs_as(keeper.pid());
        let lines = LineSplitter::new(self.shared.max_message_bytes());
        LinkUpstream::Child(ChildPipes { stdin, stdout, lines, keeper, full: false, silent: false })
    }

    /// Tells whoever looks from outside when nobody tries to start the server any more.
    pub(super) fn note_giving_up(&mut self) {
        let has_stopped = matches!(self.machine.condition().state, LinkState::Failed | LinkState::Down);
        if has_stopped && self.tries.take().is_some() {
            self.shared.sightings.given_up(self.machine.failure());
        }
    }

    /// Before the machine may have had enough of a server that does not greet us: what it says instead.
    pub(super) fn listen_closely(&mut self) {
        if self.machine.condition().state == LinkState::Starting {
            let heard = self.heard();
            self.machine.overhear(heard);
        }
    }

    /// What the server has said since it was started, other than in messages.
    fn heard(&self) -> Option<String> {
        health::heard(self.printed.as_deref(), &self.shared.stderr.since(self.stderr_from))
    }

    pub(super) fn take_frames(&mut self, now: Instant) {
        if let Some(LinkUpstream::Child(child)) = &mut self.back {
            while let Some(frame) = child.lines.next_frame() {
                self.machine.handle_child(frame, now);
            }
        }
    }

    pub(super) fn take_arrival(&mut self, arrival: RemoteEvent, now: Instant) {
        match arrival {
            RemoteEvent::Answer { about, message } => {
                self.shared.sightings.answered();
                self.machine.handle_message(Some(about), message, now);
            }
            RemoteEvent::Message { about: Some(number), frame } => {
                self.shared.sightings.answered();
                self.machine.handle_reply(number, frame, now);
            }
            RemoteEvent::Message { about: None, frame } => {
                if self.shared.target.as_ref().and_then(|target| target.transport()) == Some(Transport::Sse) {
                    self.machine.over_one_stream();
                }
                self.machine.handle_child(frame, now);
            }
            RemoteEvent::Failed { id, failure } => {
                debug!(destination = self.name(), ?failure, "A request to the server failed");
                self.note_failure(&failure);
                let (fault, evidence) = self.told(failure);
                self.machine.handle_failed(id, fault, evidence, now);
            }
            RemoteEvent::Told { id, head } => {
                if let Some(carried) = self.carried.get(&id) {
                    carried.answered(head);
                }
            }
            RemoteEvent::SessionLost { message } => self.session_lost(message, now),
            RemoteEvent::Ended { why } => {
                warn!(destination = self.name(), why, "The connection to the server is lost");
                self.shared.trouble.note(&why);
                self.note_failure(&RemoteFailure::Unreachable { why: why.clone() });
                self.back = None;
                self.machine.handle_lost(why, now);
            }
        }
    }

    fn note_failure(&self, failure: &RemoteFailure) {
        if let Some(http) = &self.shared.config.http {
            self.shared.sightings.failed(failure, http.shown_url());
        }
    }

    /// A failed request in the machine's words, and whether it says that the server is of the other era.
    fn told(&self, failure: RemoteFailure) -> (CallFault, bool) {
        match failure {
            RemoteFailure::Unauthorized { status } => {
                let fix = health::fix(ServerState::Unauthorized, &self.shared.config).unwrap_or_default();
                (CallFault::Refused { why: format!("{}: {fix}", health::unauthorized(status)) }, false)
            }
            RemoteFailure::Status { status } if status >= 500 => {
                (CallFault::Unavailable { why: format!("it answered HTTP {status}") }, false)
            }
            RemoteFailure::Status { status } => {
                let why = format!("it answered HTTP {status}; is this the URL of an MCP server?");
                (CallFault::Refused { why }, true)
            }
            RemoteFailure::Unreachable { why } => {
                let url = self.shared.config.http.as_ref().map(HttpConfig::shown_url).unwrap_or_default();
                let fix = health::fix(ServerState::Refusing, &self.shared.config).unwrap_or_default();
                (CallFault::Unavailable { why: format!("nobody answers at {url} ({why}); {fix}") }, false)
            }
            RemoteFailure::Cut => (CallFault::Cut, false),
            RemoteFailure::TooLarge { limit } => (CallFault::TooLarge { limit }, false),
            RemoteFailure::Redirected { to } => {
                let why = format!("it sends us on to {to}, another place; if it is right, configure that URL");
                (CallFault::Refused { why }, false)
            }
            RemoteFailure::NotMcp { why } => (CallFault::Refused { why: format!("its answer is no MCP: {why}") }, true),
        }
    }

    /// The server does not know our session any more. What it did not take is sent again, once, when there is a new one.
    fn session_lost(&mut self, message: Option<Message>, now: Instant) {
        let request = message.filter(|message| matches!(message.kind(), MessageKind::Request(_)));
        match request.and_then(|message| Some((message.id().and_then(own_number)?, message))) {
            Some((number, message)) if self.resent.len() < MAX_RESENT && self.resent.insert(number) => {
                self.unsent.push(message);
            }
            Some((number, _)) => {
                let why = "it forgets its sessions at once".to_owned();
                self.machine.handle_failed(number, CallFault::Refused { why }, false, now);
            }
            // A note or an answer: it was about the session that is gone.
            None => {}
        }
        info!(destination = self.name(), "The server has forgotten our session; opening another");
        // What was written since, and has not left, is for the next one, too.
        while let Some(written) = self.machine.output().next_message() {
            self.unsent.extend(Some(written).filter(|message| matches!(message.kind(), MessageKind::Request(_))));
        }
        self.machine.handle_session_lost(now);
    }

    /// Other limits count from the next message on.
    pub(super) fn limit(&mut self, settings: &LinkSettings) {
        self.machine.limit(settings);
        if let Some(LinkUpstream::Child(child)) = &mut self.back {
            child.lines.limit(settings.max_message_bytes);
        }
    }

    /// Ends the server; what follows is what follows any other end of it.
    pub(super) fn restart(&mut self, now: Instant) {
        match &self.back {
            // Gently, as at any other stop: that somebody wants another one is no fault of its.
            Some(LinkUpstream::Child(_)) => {
                self.stop();
                self.machine.handle_ended("a person had it started again".to_owned(), now);
            }
            Some(LinkUpstream::Remote(_)) => {
                self.back = None;
                self.machine.handle_lost("a person has it connected to anew".to_owned(), now);
            }
            Some(LinkUpstream::BuiltIn(_)) | None => {}
        }
    }

    pub(super) fn exited(&mut self, pid: u32, status: &str, why: Option<String>, now: Instant) {
        // One that was stopped is seen to its end elsewhere.
        let is_it = |back: &LinkUpstream| matches!(back, LinkUpstream::Child(child) if child.keeper.pid() == pid);
        if !self.back.as_ref().is_some_and(is_it) {
            return;
        }
        // What it wrote before it ended counts. A grandchild may go on writing: that does not.
        for _ in 0..LAST_READS {
            let Some(LinkUpstream::Child(child)) = &mut self.back else { return };
            if !matches!(child.stdout.try_read_buf(child.lines.space()), Ok(1..)) {
                break;
            }
            self.take_frames(now);
        }
        self.back = None;
        if self.machine.condition().state == LinkState::Starting {
            self.act(now);
            let heard = self.heard();
            let tries = self.tries.get_or_insert_with(|| FailedStarts::begin(now));
            let said = match &why {
                Some(why) => why.clone(),
                None => tries.told(&self.shared.config.name, status, heard.as_deref(), now),
            };
            self.shared.sightings.start_failed(said.clone());
            self.machine.explain(Some(said));
        }
        match why {
            Some(why) => self.machine.handle_ended(why, now),
            None => self.machine.handle_exit(now),
        }
    }

    /// Writes what the server takes now. The rest stays with the machine, which refuses calls when it is too much.
    pub(super) fn write(&mut self) {
        match &mut self.back {
            None => {}
            Some(LinkUpstream::Child(child)) => {
                let Some(output) = self.machine.output().lines() else { return };
                while !output.is_empty() && !child.full {
                    match child.stdin.try_write(output) {
                        Ok(count) => output.advance(count),
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => child.full = true,
                        // It no longer reads. Its exit is on the way; what it was to read dies with it.
                        Err(_) => output.clear(),
                    }
                }
            }
            Some(LinkUpstream::BuiltIn(connection)) => {
                while let Some(message) = self.machine.output().next_message() {
                    connection.send(message);
                }
            }
            Some(LinkUpstream::Remote(remote)) => {
                while let Some(message) = self.machine.output().next_message() {
                    let params = self.machine.param_headers(&message);
                    let along = along(&self.shared, &self.machine, &self.carried, self.opener.as_deref(), &message);
                    remote.send_along(message, params, along);
                }
                if std::mem::take(&mut self.reopened) {
                    // Whoever gave up meanwhile was told so: what it asked for must not be done now.
                    for message in self.unsent.drain(..) {
                        if message.id().and_then(own_number).is_some_and(|number| self.machine.still_wants(number)) {
                            let along =
                                along(&self.shared, &self.machine, &self.carried, self.opener.as_deref(), &message);
                            remote.send_along(message, Vec::new(), along);
                        }
                    }
                }
            }
        }
    }

    /// Notes what goes along with a call, until it is answered.
    pub(super) fn carry(&mut self, taken: &Result<WireId, LinkRefusal>, carried: Option<Arc<ForwardedHeaders>>) {
        let (Ok(id), Some(carried), true) = (taken, carried, self.shared.target.is_some()) else { return };
        if self.carried.len() >= MAX_RESENT {
            // Those that were answered on streams.
            let machine = &self.machine;
            self.carried.retain(|id, _| machine.still_wants(*id));
        }
        self.carried.insert(id.0, carried);
    }

    /// Closes the child's stdin and sees it to its end, in a task of its own (B-13); or lets go of the connection.
    pub(super) fn stop(&mut self) {
        self.preparing = false;
        self.unsent.clear();
        self.resent.clear();
        // The keeper, dropped, does the rest. A child that is blocked on writing cannot end: its last words are read.
        if let Some(LinkUpstream::Child(ChildPipes { stdout, .. })) = self.back.take() {
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
}

/// What of its client's head goes along with a message: of the call that it is, or of the session that it is about.
fn along(
    shared: &DestinationState,
    machine: &Link,
    carried: &NumberMap<u64, Arc<ForwardedHeaders>>,
    opener: Option<&ForwardedHeaders>,
    message: &Message,
) -> Vec<(HeaderName, HeaderValue)> {
    let Some(server) = &shared.config.http else { return Vec::new() };
    let call = message.id().and_then(own_number).map(|number| machine.exchange_of(number).0);
    match (call.and_then(|call| carried.get(&call)), opener) {
        (Some(own), _) => own.to(server),
        (None, Some(opener)) if message.kind() == MessageKind::Request(Method::Initialize) => opener.to(server),
        (None, Some(opener)) => opener.lasting(server),
        (None, None) => Vec::new(),
    }
}
