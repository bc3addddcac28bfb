//! The far end of a link: a child's pipes, or a connection over HTTP. What the machine writes goes there, and what comes
//! from there goes to the machine.

use std::{io, time::Instant};

use bytes::Buf;
use prism_core::{
    mcp::Fault,
    wire::{Frame, Kind, Lines, Message, envelope::own_number},
};
use prism_os::child::{Child, Spec};
use tokio::time::timeout;
use tracing::{debug, info, warn};

use super::{Back, Driver, LAST_READS, LAST_WORDS, MAX_RESENT, Running};
use crate::{
    builtin::kit::{Connection, Said},
    config::Transport,
    drive::{
        keeper::Keeper,
        remote::{Arrival, Failure, Remote},
        stderr,
    },
};

impl Driver {
    pub(super) fn start(&mut self, now: Instant) {
        if let Some(server) = &self.shared.built_in {
            self.shared.metrics.starts.inc();
            self.back = Some(Back::BuiltIn(Connection::open(server.clone())));
            return;
        }
        if let Some(target) = &self.shared.target {
            // One that has forgotten our session is opened anew over the connection there is.
            if self.back.is_none() {
                self.shared.metrics.starts.inc();
                self.back = Some(Back::Remote(Box::new(Remote::open(target.clone()))));
            }
            return;
        }
        let config = &self.shared.config;
        let spec = Spec { command: &config.command, env: &config.env, cwd: config.cwd.as_deref() };
        self.shared.metrics.starts.inc();
        match Child::spawn(&spec, &self.shared.owner) {
            Ok(Child { stdin, stdout, stderr, group }) => {
                stderr::drain(stderr, self.shared.config.name.clone());
                let keeper = Keeper::take(group, self.shared.clone(), self.commands.clone());
                let lines = Lines::new(self.shared.max_message_bytes);
                self.back = Some(Back::Child(Running { stdin, stdout, lines, keeper, full: false, silent: false }));
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

    pub(super) fn take_frames(&mut self, now: Instant) {
        if let Some(Back::Child(child)) = &mut self.back {
            while let Some(frame) = child.lines.next_frame() {
                self.machine.handle_child(frame, now);
            }
        }
    }

    pub(super) fn take_arrival(&mut self, arrival: Arrival, now: Instant) {
        match arrival {
            Arrival::Answer { about, message } => self.machine.handle_message(Some(about), message, now),
            Arrival::Message { about: Some(number), frame } => self.machine.handle_reply(number, frame, now),
            Arrival::Message { about: None, frame } => {
                if self.shared.target.as_ref().and_then(|target| target.transport()) == Some(Transport::Sse) {
                    self.machine.over_one_stream();
                }
                self.machine.handle_child(frame, now);
            }
            Arrival::Failed { id, failure } => {
                debug!(destination = self.name(), ?failure, "A request to the server failed");
                let (fault, evidence) = told(failure);
                self.machine.handle_failed(id, fault, evidence, now);
            }
            Arrival::SessionLost { message } => self.session_lost(message, now),
            Arrival::Ended { why } => {
                warn!(destination = self.name(), why, "The connection to the server is lost");
                self.back = None;
                self.machine.handle_lost(why, now);
            }
        }
    }

    /// The server does not know our session any more. What it did not take is sent again, once, when there is a new one.
    fn session_lost(&mut self, message: Option<Message>, now: Instant) {
        let request = message.filter(|message| matches!(message.kind(), Kind::Request(_)));
        match request.and_then(|message| Some((message.id().and_then(own_number)?, message))) {
            Some((number, message)) if self.resent.len() < MAX_RESENT && self.resent.insert(number) => {
                self.unsent.push(message);
            }
            Some((number, _)) => {
                let why = "it forgets its sessions at once".to_owned();
                self.machine.handle_failed(number, Fault::Refused { why }, false, now);
            }
            // A note or an answer: it was about the session that is gone.
            None => {}
        }
        info!(destination = self.name(), "The server has forgotten our session; opening another");
        // What was written since, and has not left, is for the next one, too.
        let written = self.take_output();
        self.unsent.extend(written.into_iter().filter(|message| matches!(message.kind(), Kind::Request(_))));
        self.machine.handle_session_lost(now);
    }

    /// The messages that the machine has written.
    fn take_output(&mut self) -> Vec<Message> {
        let mut output = self.machine.output().split();
        let mut messages = Vec::new();
        while let Some(end) = memchr::memchr(b'\n', &output) {
            let line = output.split_to(end).freeze();
            output.advance(1);
            messages.extend(Message::parse(line));
        }
        messages
    }

    pub(super) fn exited(&mut self, pid: u32, now: Instant) {
        // One that was stopped is seen to its end elsewhere.
        let is_it = |back: &Back| matches!(back, Back::Child(child) if child.keeper.pid() == pid);
        if !self.back.as_ref().is_some_and(is_it) {
            return;
        }
        // What it wrote before it ended counts. A grandchild may go on writing: that does not.
        for _ in 0..LAST_READS {
            let Some(Back::Child(child)) = &mut self.back else { return };
            if !matches!(child.stdout.try_read_buf(child.lines.space()), Ok(1..)) {
                break;
            }
            self.take_frames(now);
        }
        self.back = None;
        self.machine.handle_exit(now);
    }

    /// Writes what the server takes now. The rest stays with the machine, which refuses calls when it is too much.
    pub(super) fn write(&mut self) {
        match &mut self.back {
            None => {}
            Some(Back::Child(child)) => {
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
            Some(Back::BuiltIn(_)) => {
                let written = self.take_output();
                let Some(Back::BuiltIn(connection)) = &mut self.back else { return };
                for message in written {
                    connection.send(message);
                }
            }
            Some(Back::Remote(_)) => {
                let written = self.take_output();
                let Some(Back::Remote(remote)) = &mut self.back else { return };
                for message in written {
                    let params = self.machine.param_headers(&message);
                    remote.send_with(message, params);
                }
                if std::mem::take(&mut self.reopened) {
                    // Whoever gave up meanwhile was told so: what it asked for must not be done now.
                    for message in self.unsent.drain(..) {
                        if message.id().and_then(own_number).is_some_and(|number| self.machine.still_wants(number)) {
                            remote.send(message);
                        }
                    }
                }
            }
        }
    }

    /// Closes the child's stdin and sees it to its end, in a task of its own (B-13); or lets go of the connection.
    pub(super) fn stop(&mut self) {
        self.unsent.clear();
        self.resent.clear();
        // The keeper, dropped, does the rest. A child that is blocked on writing cannot end: its last words are read.
        if let Some(Back::Child(Running { stdout, .. })) = self.back.take() {
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

impl From<Said> for Arrival {
    fn from(Said { about, is_answer, bytes }: Said) -> Self {
        match (about.filter(|_| is_answer), Message::parse(bytes.clone())) {
            (Some(about), Ok(message)) => Self::Answer { about, message },
            _ => Self::Message { about, frame: Frame::Line(bytes) },
        }
    }
}

/// A failed request in the machine's words, and whether it says that the server is of the other era.
fn told(failure: Failure) -> (Fault, bool) {
    match failure {
        Failure::Unauthorized { status } => {
            let why = format!("it wants other credentials (HTTP {status}); set them in the destination's `headers`");
            (Fault::Refused { why }, false)
        }
        Failure::Status { status } if status >= 500 => {
            (Fault::Unavailable { why: format!("it answered HTTP {status}") }, false)
        }
        Failure::Status { status } => {
            let why = format!("it answered HTTP {status}; is this the URL of an MCP server?");
            (Fault::Refused { why }, true)
        }
        Failure::Unreachable { why } => (Fault::Unavailable { why }, false),
        Failure::Cut => (Fault::Cut, false),
        Failure::TooLarge { limit } => (Fault::TooLarge { limit }, false),
        Failure::Redirected { to } => {
            let why = format!("it sends us on to {to}, another place; if it is right, configure that URL");
            (Fault::Refused { why }, false)
        }
        Failure::NotMcp { why } => (Fault::Refused { why: format!("its answer is no MCP: {why}") }, true),
    }
}
