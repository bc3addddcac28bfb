//! The task of one server: waits for its pipes, for commands and for time, hands each to the conversation and writes what that
//! wants written. When it ends, nothing of the server is left.

use std::{
    path::PathBuf,
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use prism_os::{
    child::Child,
    group::{self, ProcessGroup},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::unix::pipe::{Receiver, Sender},
    sync::{mpsc, watch},
    time::{Instant, sleep_until, timeout},
};

use super::{
    client::{Heard, LspCommand},
    conversation::{Conversation, brief, telling},
    frame::Frames,
    known::{ServerKnowledge, ServerPhase},
    message,
};
use crate::run::fence::{Overrun, RunLimits};

pub(super) struct ServerTask {
    stdin: Sender,
    stdout: Receiver,
    stderr: Receiver,
    group: ProcessGroup,
    conversation: Conversation,
    known: Arc<ServerKnowledge>,
    inbox: mpsc::Receiver<LspCommand>,
    stopped: watch::Receiver<bool>,
    idle: Duration,
    heard: Heard,
    frames: Frames,
    /// The end of what it complains of.
    complaints: Vec<u8>,
    used: Instant,
    /// When the diagnostics that have changed are told.
    tells: Option<Instant>,
}

/// How a server ends.
enum ServerEnd {
    /// Because we want it to.
    Asked(&'static str),
    /// By itself, or because it cannot be talked to.
    Fault(String),
}

/// How long a server has to answer the greeting. Those that are any use need less than a second.
const START: Duration = Duration::from_secs(20);

/// How long a server that is to end has to say that it has heard, and then at each step to be gone.
const FAREWELL: Duration = Duration::from_secs(2);
const GRACE: Duration = Duration::from_millis(500);

/// How long is read on for the last words of one that has died.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// Bytes that wait for a server to read them. Above the first no further command is taken; above the second it is ended: it
/// asks and does not listen.
const MAX_UNREAD: usize = 8 << 20;
const MAX_UNHEARD: usize = 32 << 20;

/// What is kept of its complaints.
const MAX_COMPLAINTS: usize = 4 << 10;

/// How long after the first change of a file's diagnostics it is told: a server often says several things in a row.
const SETTLE: Duration = Duration::from_millis(100);

impl ServerTask {
    pub(super) fn new(
        child: Child,
        conversation: Conversation,
        known: Arc<ServerKnowledge>,
        inbox: mpsc::Receiver<LspCommand>,
        stopped: watch::Receiver<bool>,
        idle: Duration,
        heard: Heard,
    ) -> Self {
        let Child { stdin, stdout, stderr, group, .. } = child;
        let (frames, complaints, used) = (Frames::default(), Vec::new(), Instant::now());
        Self {
            stdin,
            stdout,
            stderr,
            group,
            conversation,
            known,
            inbox,
            stopped,
            idle,
            heard,
            frames,
            complaints,
            used,
            tells: None,
        }
    }

    pub(super) async fn run(mut self, limits: &RunLimits) {
        let exceeded = pin!(limits.exceeded(self.group.pid()));
        let end = self.talk(exceeded).await;
        let phase = match end {
            ServerEnd::Asked(why) => {
                self.inbox.close();
                self.bid_farewell().await;
                ServerPhase::Stopped(why.to_owned())
            }
            ServerEnd::Fault(why) => {
                self.group.kill();
                let mut chunk = [0; 4096];
                let last_words = async {
                    while let Ok(read @ 1..) = self.stderr.read(&mut chunk).await {
                        complain(&mut self.complaints, &chunk[..read]);
                    }
                };
                let _ = timeout(LAST_WORDS, last_words).await;
                ServerPhase::Died(self.with_last_words(why))
            }
        };
        self.known.write(|facts| facts.phase = phase);
        let Self { stdin, stdout, stderr, group, conversation, inbox, .. } = self;
        // Who waits for an answer learns of it now; and pipes that are closed keep the server from waiting for us.
        drop((conversation, inbox, stdin, stdout, stderr));
        let _ = group::stop(group, GRACE).await;
    }

    async fn talk(&mut self, mut exceeded: Pin<&mut impl Future<Output = Overrun>>) -> ServerEnd {
        let started = Instant::now();
        let mut chunk = vec![0; 64 << 10];
        let mut complaint = [0; 1024];
        loop {
            let now = Instant::now();
            let is_ready = self.known.read(|facts| facts.phase == ServerPhase::Ready);
            let over = self.conversation.expire(now);
            if !is_ready && now >= started + START {
                return ServerEnd::Fault(format!("it has not answered within {} s of its start", START.as_secs()));
            }
            if is_ready && self.conversation.is_idle() && now >= self.used + self.idle {
                return ServerEnd::Asked("nobody has asked it anything for long");
            }
            if self.tells.is_some_and(|at| now >= at) {
                self.tell();
            }
            if self.conversation.out.len() > MAX_UNHEARD {
                return ServerEnd::Fault("it does not read what it is told".to_owned());
            }
            let rest = if is_ready { self.used + self.idle } else { started + START };
            // An idle server with a question open is looked at when that is over.
            let rest = if now >= rest { now + START } else { rest };
            let wake = [Some(rest), over, self.tells].into_iter().flatten().min().unwrap_or(rest);
            let takes = is_ready && self.conversation.out.len() < MAX_UNREAD;
            // Each of these loses nothing when another comes first.
            tokio::select! {
                read = self.stdout.read(&mut chunk) => match read {
                    Ok(read @ 1..) => if let Err(why) = self.read(&chunk[..read]) {
                        return ServerEnd::Fault(why);
                    },
                    _ => return ServerEnd::Fault("it has ended".to_owned()),
                },
                written = self.stdin.write(&self.conversation.out), if !self.conversation.out.is_empty() => match written {
                    Ok(written) => drop(self.conversation.out.drain(..written)),
                    Err(_) => return ServerEnd::Fault("it has ended".to_owned()),
                },
                command = self.inbox.recv(), if takes => match command {
                    Some(command) => self.take(command),
                    None => return ServerEnd::Asked("nobody needs it any more"),
                },
                Ok(read @ 1..) = self.stderr.read(&mut complaint) => complain(&mut self.complaints, &complaint[..read]),
                () = self.group.exited() => return ServerEnd::Fault("it has ended".to_owned()),
                over = &mut exceeded => return ServerEnd::Fault(format!("{over}, and was ended")),
                changed = self.stopped.changed() => return ServerEnd::Asked(match changed {
                    Ok(()) => "it was stopped",
                    Err(_) => "nobody needs it any more",
                }),
                () = sleep_until(wake) => {}
            }
        }
    }

    fn take(&mut self, command: LspCommand) {
        self.used = Instant::now();
        match command {
            LspCommand::Ask(question) => self.conversation.ask(question),
            LspCommand::Cancel(id) => self.conversation.cancel(id),
            LspCommand::Sync(documents) => self.conversation.sync(&documents),
            LspCommand::Freshen(documents, path, reply) => {
                let _ = reply.send(self.conversation.freshen(&documents, &path));
            }
            LspCommand::Close(path) => self.conversation.close(&path),
            LspCommand::Saved(path) => self.conversation.saved(&path),
            LspCommand::ChangedOnDisk(changes) => self.conversation.changed_on_disk(&changes),
        }
    }

    fn read(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.frames.push(bytes);
        while let Some(body) = self.frames.poll().map_err(|error| format!("it does not speak LSP: {error}"))? {
            let said = message::read(body).ok_or("it does not speak LSP: a message that is no JSON-RPC")?;
            self.conversation.handle(said)?;
        }
        if self.tells.is_none() && !self.conversation.changed.is_empty() {
            self.tells = Some(Instant::now() + SETTLE);
        }
        Ok(())
    }

    fn tell(&mut self) {
        self.tells = None;
        let changed: Vec<PathBuf> = std::mem::take(&mut self.conversation.changed);
        for path in changed {
            let diagnosed = self.known.read(|facts| facts.of(&path));
            let nothing = || super::known::Diagnosed { path, items: Vec::new(), version: None, is_cut: false };
            (self.heard)(&diagnosed.unwrap_or_else(nothing));
        }
    }

    /// Lets it put its things away.
    async fn bid_farewell(&mut self) {
        self.conversation.leave();
        let mut chunk = vec![0; 64 << 10];
        let farewell = async {
            while !(self.conversation.has_left() && self.conversation.out.is_empty()) {
                tokio::select! {
                    read = self.stdout.read(&mut chunk) => match read {
                        Ok(read @ 1..) => {
                            self.frames.push(&chunk[..read]);
                            while let Ok(Some(body)) = self.frames.poll() {
                                let _ = message::read(body).map(|said| self.conversation.handle(said));
                            }
                        }
                        _ => return,
                    },
                    written = self.stdin.write(&self.conversation.out), if !self.conversation.out.is_empty() => match written {
                        Ok(written) => drop(self.conversation.out.drain(..written)),
                        Err(_) => return,
                    },
                    () = self.group.exited() => return,
                }
            }
        };
        let _ = timeout(FAREWELL, farewell).await;
    }

    fn with_last_words(&self, why: String) -> String {
        let words = String::from_utf8_lossy(&self.complaints);
        match telling(&words) {
            Some(line) => format!("{why}; its last words: {}", brief(line)),
            None => why,
        }
    }
}

fn complain(complaints: &mut Vec<u8>, bytes: &[u8]) {
    complaints.extend_from_slice(bytes);
    let over = complaints.len().saturating_sub(MAX_COMPLAINTS);
    complaints.drain(..over);
}
