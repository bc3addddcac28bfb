//! Whose turn it is, without I/O: what the editor and the agent say to each other passes byte for byte; a bell waits for the
//! end of a turn, becomes a prompt of our own, and its answer is kept from the editor, which did not ask.
//!
//! An agent has one turn in a session at a time. While ours runs, a prompt of the person's is held until it is over; to
//! cancel is to cancel both.

#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet, VecDeque};

use bytes::Bytes;
use prism_core::wire::{Frame, Members, Message, MessageKind};
use serde_json::json;

use super::AcpBell;

/// Requests of the editor's that may wait for an answer. Beyond it the oldest kind of bookkeeping is lost: such a session
/// counts as idle.
const MAX_ASKED: usize = 1024;
/// Sessions that are known. Beyond it a session passes, and has no bell.
const MAX_SESSIONS: usize = 64;

/// What has to be done.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AcpAction {
    /// A line, without its end.
    ToAgent(Bytes),
    ToHost(Bytes),
    /// A session is there to be woken.
    Opened {
        session: String,
        folder: String,
    },
    /// Words for stderr.
    Say(String),
}

#[derive(Default)]
pub(crate) struct AcpMachine {
    /// What the editor has asked, by its own ids.
    asked: HashMap<String, HostRequest>,
    sessions: HashMap<String, AcpSession>,
    /// The session that was spoken in last.
    newest: Option<String>,
    bells: u64,
    actions: VecDeque<AcpAction>,
}

enum HostRequest {
    /// A session in this folder; its id if it is an old one.
    Open {
        folder: String,
        session: Option<String>,
    },
    Prompt {
        session: String,
    },
}

#[derive(Default)]
struct AcpSession {
    /// Prompts of the editor's that the agent has.
    turns: HashSet<String>,
    /// Ours that it has.
    bell: Option<String>,
    /// A bell that waits for the end of the turn.
    waiting: Option<String>,
    /// Prompts of the editor's that wait for the end of ours. As many as the editor has open, at most.
    held: VecDeque<(String, Bytes)>,
}

// === impl AcpMachine ===

impl AcpMachine {
    pub(crate) fn poll_action(&mut self) -> Option<AcpAction> {
        self.actions.pop_front()
    }

    /// Takes a line of the editor's.
    pub(crate) fn handle_host(&mut self, frame: Frame) {
        let Some(line) = self.line(frame, "the editor") else { return };
        if self.keeps(&line) {
            return;
        }
        self.actions.push_back(AcpAction::ToAgent(line));
    }

    /// Notes what the editor says; true if it is not for the agent, or not yet.
    fn keeps(&mut self, line: &Bytes) -> bool {
        let Ok(message) = Message::parse(line.clone()) else { return false };
        let (Some(method), id) = (message.method(), message.id().map(str::to_owned)) else { return false };
        let params = params(&message);
        let text = |name: &str| params.get(name).cloned();
        match (&*method, id) {
            ("session/new", Some(id)) => {
                self.ask(id, HostRequest::Open { folder: text("cwd").unwrap_or_default(), session: None });
            }
            ("session/load" | "session/resume", Some(id)) => {
                let folder = text("cwd").unwrap_or_default();
                self.ask(id, HostRequest::Open { folder, session: text("sessionId") });
            }
            ("session/prompt", Some(id)) => {
                let Some(name) = text("sessionId") else { return false };
                self.newest = Some(name.clone());
                if let Some(session) = self.sessions.get_mut(&name) {
                    if session.bell.is_some() {
                        session.held.push_back((id, line.clone()));
                        return true;
                    }
                    session.turns.insert(id.clone());
                    self.ask(id, HostRequest::Prompt { session: name });
                }
            }
            ("session/cancel", None) => {
                let session = text("sessionId").and_then(|name| self.sessions.get_mut(&name));
                for (id, _) in session.into_iter().flat_map(|session| session.held.drain(..)) {
                    let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"stopReason":"cancelled"}}}}"#);
                    self.actions.push_back(AcpAction::ToHost(answer.into()));
                }
            }
            _ => {}
        }
        false
    }

    fn ask(&mut self, id: String, what: HostRequest) {
        if self.asked.len() < MAX_ASKED {
            self.asked.insert(id, what);
        }
    }

    /// Takes a line of the agent's.
    pub(crate) fn handle_agent(&mut self, frame: Frame) {
        let Some(line) = self.line(frame, "the agent") else { return };
        let message = Message::parse(line.clone()).ok().filter(|message| message.kind() == MessageKind::Response);
        let Some((message, id)) = message.and_then(|message| message.id().map(str::to_owned).map(|id| (message, id)))
        else {
            return self.actions.push_back(AcpAction::ToHost(line));
        };
        let ours = self.sessions.iter().find(|(_, session)| session.bell.as_deref() == Some(id.as_str()));
        if let Some(name) = ours.map(|(name, _)| name.clone()) {
            if message.failed() {
                self.actions.push_back(AcpAction::Say("the agent refused the prompt that its bell is".to_owned()));
            }
            return self.bell_over(&name);
        }
        self.actions.push_back(AcpAction::ToHost(line));
        match self.asked.remove(&id) {
            Some(HostRequest::Open { folder, session }) if !message.failed() => {
                let session = session.or_else(|| result(&message).remove("sessionId"));
                if let Some(session) = session {
                    self.opened(session, folder);
                }
            }
            Some(HostRequest::Prompt { session: name }) => {
                if let Some(session) = self.sessions.get_mut(&name) {
                    session.turns.remove(&id);
                }
                self.ring(&name);
            }
            _ => {}
        }
    }

    fn opened(&mut self, session: String, folder: String) {
        self.newest = Some(session.clone());
        if self.sessions.contains_key(&session) || self.sessions.len() >= MAX_SESSIONS {
            return;
        }
        self.sessions.insert(session.clone(), AcpSession::default());
        self.actions.push_back(AcpAction::Opened { session, folder });
    }

    /// A bell has rung. Of several that wait the last one counts: it tells of all.
    pub(crate) fn handle_bell(&mut self, bell: AcpBell) {
        let Some(name) = bell.session.or_else(|| self.newest.clone()) else { return };
        if let Some(session) = self.sessions.get_mut(&name) {
            session.waiting = Some(bell.text);
            self.ring(&name);
        }
    }

    /// Prompts with the bell that waits, if no turn is under way.
    fn ring(&mut self, name: &str) {
        let Some(session) = self.sessions.get_mut(name) else { return };
        if !session.turns.is_empty() || session.bell.is_some() {
            return;
        }
        let Some(text) = session.waiting.take() else { return };
        self.bells += 1;
        let id = format!(r#""prism-bell-{}""#, self.bells);
        session.bell = Some(id.clone());
        let content = json!({ "type": "text", "text": text });
        let params = json!({ "sessionId": name, "prompt": [content] });
        let prompt = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"session/prompt","params":{params}}}"#);
        // The person sees why the agent begins to speak.
        let update = json!({ "sessionUpdate": "user_message_chunk", "content": content });
        let note = json!({
            "jsonrpc": "2.0",
            "method": "session/update",
            "params": { "sessionId": name, "update": update },
        });
        self.actions.push_back(AcpAction::ToHost(note.to_string().into()));
        self.actions.push_back(AcpAction::ToAgent(prompt.into()));
    }

    /// Our turn is over: now it is the editor's, if it waited, or the next bell's.
    fn bell_over(&mut self, name: &str) {
        let Some(session) = self.sessions.get_mut(name) else { return };
        session.bell = None;
        for (id, line) in std::mem::take(&mut session.held) {
            session.turns.insert(id.clone());
            self.actions.push_back(AcpAction::ToAgent(line));
            if self.asked.len() < MAX_ASKED {
                self.asked.insert(id, HostRequest::Prompt { session: name.to_owned() });
            }
        }
        self.ring(name);
    }

    fn line(&mut self, frame: Frame, whose: &str) -> Option<Bytes> {
        match frame {
            Frame::Line(line) => Some(line),
            Frame::TooLong { .. } => {
                self.actions.push_back(AcpAction::Say(format!("a message of {whose} is too long and was left out")));
                None
            }
        }
    }
}

/// The members of a message's params that are texts.
fn params(message: &Message) -> HashMap<String, String> {
    texts(message, "params")
}

fn result(message: &Message) -> HashMap<String, String> {
    texts(message, "result")
}

fn texts(message: &Message, name: &str) -> HashMap<String, String> {
    let whole = std::str::from_utf8(message.bytes()).unwrap_or_default();
    let members = Members::read(whole).unwrap_or_default();
    let Some(inner) = members.object(name) else { return HashMap::new() };
    let text = |(key, _): (&str, &str)| Some((key.to_owned(), inner.string(key)?.into_owned()));
    inner.iter().filter_map(text).collect()
}
