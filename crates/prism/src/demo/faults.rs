//! The ways to misbehave: at the pipe, between the kit and the client. What is said is not decided here.

use std::{
    collections::{HashMap, HashSet},
    fs::File,
    io::{self, Write},
    sync::{Mutex, MutexGuard, PoisonError},
};

use bytes::BytesMut;
use prism_core::{
    mcp::Method,
    wire::{Message, MessageKind},
};
use serde_json::Value;

use super::{DemoFault, talk};
use prism_mcp::kit::{LineVerdict, StdioInterceptor};

/// The gate of a server with a fault, and the record of what has come through it.
pub(super) struct FaultInterceptor {
    fault: DemoFault,
    record: Option<File>,
    seen: Mutex<FaultState>,
}

#[derive(Default)]
struct FaultState {
    /// Calls of tools that have no answer yet, by the text of their id.
    calls: HashSet<String>,
    /// The questions that come after the answers to these calls.
    late: HashMap<String, Value>,
    /// Broken off: the half line stays the last thing written.
    silent: bool,
}

/// The kind of thing that children leave on stdout: a banner, a log line that begins like a message but is not even
/// UTF-8, a blank line, and JSON that is no message.
const NOISE: &[u8] = b"> demo listening\n{\"level\":\"info\",\"text\":\"\xff\n\n[]\n42\n";

impl FaultInterceptor {
    pub(super) fn new(fault: DemoFault, record: Option<File>) -> Self {
        Self { fault, record, seen: Mutex::default() }
    }

    fn seen(&self) -> MutexGuard<'_, FaultState> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn admit_message(&self, message: &Message) -> LineVerdict {
        match (self.fault, message.kind()) {
            (DemoFault::Deaf, MessageKind::Request(Method::Initialize)) => LineVerdict::Last,
            (DemoFault::Mute, MessageKind::Request(Method::ToolsCall)) => LineVerdict::Never,
            (DemoFault::HalfLine, MessageKind::Request(Method::ToolsCall)) => {
                self.seen().calls.extend(message.id().map(str::to_owned));
                LineVerdict::On
            }
            // In the modern era there is no way to ask that late.
            (DemoFault::LateAsk, MessageKind::Request(Method::ToolsCall))
                if message.params().meta_version.is_none() =>
            {
                let params: Option<Value> = message.params_text().and_then(|text| serde_json::from_str(text).ok());
                if let (Some(id), Some(params)) = (message.id(), params.filter(|params| params["name"] == "ask")) {
                    self.seen().late.insert(id.to_owned(), talk::late_question(&params["arguments"]));
                }
                LineVerdict::On
            }
            _ => LineVerdict::On,
        }
    }
}

impl StdioInterceptor for FaultInterceptor {
    fn admit(&self, line: &[u8]) -> io::Result<LineVerdict> {
        if let Some(mut file) = self.record.as_ref() {
            // Before the line is acted on: a test that has seen the answer finds the request in the file.
            file.write_all(&[line, b"\n"].concat())?;
        }
        if self.fault == DemoFault::None {
            return Ok(LineVerdict::On);
        }
        let message = Message::parse(bytes::Bytes::copy_from_slice(line));
        Ok(message.map_or(LineVerdict::On, |message| self.admit_message(&message)))
    }

    fn put(&self, message: &[u8], to: &mut BytesMut) {
        let put = |message: &[u8], to: &mut BytesMut| ().put(message, to);
        match self.fault {
            DemoFault::Garbage => {
                to.extend_from_slice(NOISE);
                put(message, to);
            }
            DemoFault::HalfLine => {
                let mut seen = self.seen();
                if seen.silent {
                    return;
                }
                match id_of(message).is_some_and(|id| seen.calls.contains(&id)) {
                    true => {
                        seen.silent = true;
                        to.extend_from_slice(&message[..message.len() / 2]);
                    }
                    false => put(message, to),
                }
            }
            DemoFault::LateAsk => {
                put(message, to);
                let question = id_of(message).and_then(|id| self.seen().late.remove(&id));
                if let Some(question) = question {
                    put(question.to_string().as_bytes(), to);
                }
            }
            DemoFault::None | DemoFault::Deaf | DemoFault::DieAtStart | DemoFault::Mute => put(message, to),
        }
    }
}

fn id_of(message: &[u8]) -> Option<String> {
    Message::parse(bytes::Bytes::copy_from_slice(message)).ok()?.id().map(str::to_owned)
}
