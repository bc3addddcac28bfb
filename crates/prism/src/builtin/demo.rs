//! `prism demo-server`: a small, real stdio MCP server, to try things out with and to stand behind the bridge in our
//! tests. This file is the connection: lines, state, answers, in the legacy era. The modern one is in `modern.rs`, what
//! the server has on offer in `tools.rs` and `shelf.rs`; how it writes, and writes badly on request, in `outbox.rs`.
//!
//! One thread reads. A call that may wait runs in a thread of its own, so that a ping, a cancellation or the
//! reply to our own question is seen while it waits. The entry in `State::calls` is the right to answer:
//! whoever removes it, the finished call or its cancellation, has decided which of the two came first.

mod arguments;
mod modern;
mod outbox;
mod shelf;
#[cfg(test)]
mod tests;
mod tools;

use std::collections::{BTreeMap, BTreeSet, HashMap, hash_map::RandomState};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use outbox::Outbox;

// The doc comment is what `--help` prints. The options are not in it: all of them are for tests.
/// Serves a small MCP server on stdin and stdout, to try things out with
#[derive(clap::Args, Debug, Default)]
pub struct Options {
    /// Misbehave in one way
    #[arg(long, value_enum, default_value_t, hide = true)]
    pub fault: Fault,
    /// Speak the eras of the protocol that are named
    #[arg(long, value_enum, default_value_t, hide = true)]
    pub era: Eras,
    /// Append the process id to FILE at each start, so that starts can be counted
    #[arg(long, value_name = "FILE", hide = true)]
    pub starts: Option<PathBuf>,
    /// Append every line read from stdin to FILE, before acting on it
    #[arg(long, value_name = "FILE", hide = true)]
    pub record: Option<PathBuf>,
}

/// Which eras of the protocol are spoken.
#[derive(clap::ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Eras {
    #[default]
    Legacy,
    Modern,
    /// Whichever the client speaks. From `initialize` on it is the legacy one.
    Both,
}

/// One way in which a child can be bad. The bridge has to outlive every one.
#[derive(clap::ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    #[default]
    None,
    /// Writes what is no message before each message.
    Garbage,
    /// Breaks off in the middle of its first tool answer, and writes nothing after that.
    HalfLine,
    /// Answers `initialize`, then reads no more: not even the end of stdin.
    Deaf,
    /// Exits with status 1 before it reads anything.
    DieAtStart,
    /// Answers everything except tool calls.
    Mute,
    /// Answers the call of `ask` first, and asks afterwards: a question that belongs to no call.
    LateAsk,
}

/// One connection, which for stdio is one process.
struct Server {
    fault: Fault,
    out: Outbox,
    /// What marks a state that a client brings back as ours.
    seal: RandomState,
    state: Mutex<State>,
}

struct State {
    /// The eras that are spoken from here on.
    eras: Eras,
    /// The params of `initialize`, whole: `caps` shows them.
    client: Value,
    /// Index into `LEVELS`.
    level: usize,
    subscribed: BTreeSet<String>,
    /// Who listens in the modern era, by the JSON text of the request's id.
    listens: BTreeMap<String, modern::Listen>,
    /// Pages that a client was told to open.
    opened: BTreeSet<String>,
    /// How often `demo://counter` was touched.
    counter: u64,
    /// Calls not yet answered, by the JSON text of their id: `1` and `"1"` are two ids.
    calls: HashMap<String, SyncSender<Wake>>,
    /// Our own requests not yet answered. Their ids count from 0, as those of the SDKs do: a gateway that
    /// takes 0 for "no id", or shares ids between children, is found out here.
    questions: HashMap<u64, SyncSender<Wake>>,
    next_question: u64,
}

/// What ends the waiting of a call.
enum Wake {
    Cancelled,
    /// The reply to one of our questions: an object with `result` or `error`.
    Replied(u64, Value),
}

/// A JSON-RPC error.
struct Failure {
    code: i64,
    message: String,
    data: Value,
}

/// The revisions we speak, oldest first; a client that asks for any other is offered the last.
const VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// The log levels, from chatty to grave.
#[rustfmt::skip]
const LEVELS: [&str; 8] = [
    "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency",
];

/// The level until the client sets one. The legacy texts leave the choice to the server.
const DEFAULT_LEVEL: usize = 1;

/// Calls that may wait at the same time, each in a thread of its own. Beyond it a call is refused, not queued.
const MAX_CALLS: usize = 1024;

/// Room in a call's mailbox: it asks two questions at most, so two replies and one cancellation. More is dropped.
const MAILBOX: usize = 3;

const INSTRUCTIONS: &str = "A server to try things out with. Call `echo` to hear yourself, `slow` and \
    `progress` to wait, `ask` to be asked, `change` and `touch` to be notified.";

/// Serves MCP on stdin and stdout until stdin ends. Calls still in flight are abandoned then, so the caller is
/// expected to leave the process.
pub fn run(options: Options) -> io::Result<()> {
    if let Some(path) = &options.starts {
        // One write, so that lines of servers that start together do not mix.
        append(path)?.write_all(format!("{}\n", std::process::id()).as_bytes())?;
    }
    if options.fault == Fault::DieAtStart {
        std::process::exit(1);
    }
    let record = options.record.as_deref().map(append).transpose()?;
    let server = Arc::new(Server::new(options.fault, options.era, Box::new(io::stdout())));
    match listen(&server, io::stdin().lock(), record) {
        // A client that closes both pipes at once may leave requests for us to read. It is gone all the same.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome,
    }
}

fn append(path: &Path) -> io::Result<File> {
    let opened = OpenOptions::new().create(true).append(true).open(path);
    opened.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

/// Handles line after line until the input ends. Lines are not bounded here: the client that started us is
/// trusted, and what a huge line does to the next hop is for that hop to show.
fn listen(server: &Arc<Server>, mut input: impl BufRead, mut record: Option<File>) -> io::Result<()> {
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        if let Some(file) = &mut record {
            // Before the line is acted on: a test that has seen the answer finds the request in the file.
            file.write_all(&line)?;
        }
        if !line.trim_ascii().is_empty() {
            server.handle_line(&line)?;
        }
        line.clear();
    }
    Ok(())
}

// === impl Server ===

impl Server {
    fn new(fault: Fault, eras: Eras, to: Box<dyn Write + Send>) -> Self {
        let state = State {
            eras,
            client: Value::Null,
            level: DEFAULT_LEVEL,
            subscribed: BTreeSet::new(),
            listens: BTreeMap::new(),
            opened: BTreeSet::new(),
            counter: 0,
            calls: HashMap::new(),
            questions: HashMap::new(),
            next_question: 0,
        };
        Self { fault, out: Outbox::new(fault, to), seal: modern::new_seal(), state: Mutex::new(state) }
    }

    /// Locks the state, for a few lines of memory work. A call that panicked ended itself, not the server, so
    /// poison is passed over.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn handle_line(self: &Arc<Self>, line: &[u8]) -> io::Result<()> {
        let Ok(Value::Object(mut message)) = serde_json::from_slice(line) else {
            complain(&format!("skipped {} bytes that are no message", line.len()));
            return Ok(());
        };
        match (message.remove("method"), message.remove("id")) {
            (Some(Value::String(method)), Some(id)) => {
                self.handle_request(id, &method, message.remove("params").unwrap_or_default())
            }
            (Some(Value::String(method)), None) => {
                if method == "notifications/cancelled" {
                    self.handle_cancelled(message.get("params"));
                }
                Ok(())
            }
            (None, Some(id)) => {
                self.handle_reply(&id, Value::Object(message));
                Ok(())
            }
            _ => {
                complain("skipped an object that is no message");
                Ok(())
            }
        }
    }

    fn handle_request(self: &Arc<Self>, id: Value, method: &str, params: Value) -> io::Result<()> {
        let eras = self.state().eras;
        match eras {
            Eras::Modern if method == "initialize" && !modern::is_claimed(&params) => {
                return self.respond(&id, Err(modern::wrong_version(&params["protocolVersion"])));
            }
            Eras::Modern => return self.handle_modern(id, method, params),
            Eras::Both if modern::is_claimed(&params) => return self.handle_modern(id, method, params),
            Eras::Both | Eras::Legacy => {}
        }
        match (method, self.fault) {
            ("initialize", Fault::Deaf) => {
                self.respond(&id, Ok(self.introduce(params)))?;
                loop {
                    std::thread::park();
                }
            }
            ("initialize", _) => self.respond(&id, Ok(self.introduce(params))),
            ("tools/call", Fault::Mute) => Ok(()),
            ("tools/call", Fault::HalfLine) => self.out.break_off(&response(&id, Ok(json!({})))),
            ("tools/call", _) => tools::call(self, id, params, None),
            _ => self.respond(&id, self.answer(method, &params)),
        }
    }

    fn handle_modern(self: &Arc<Self>, id: Value, method: &str, params: Value) -> io::Result<()> {
        let caller = match modern::Caller::read(&params) {
            Ok(caller) => caller,
            Err(failure) => return self.respond(&id, Err(failure)),
        };
        match (method, self.fault) {
            ("tools/call", Fault::Mute) => Ok(()),
            ("tools/call", Fault::HalfLine) => self.out.break_off(&response(&id, Ok(json!({})))),
            ("tools/call", _) => tools::call(self, id, params, Some(caller)),
            ("subscriptions/listen", _) => self.attend(id, &params),
            _ => {
                let outcome = match method {
                    "server/discover" => Ok(modern::discovery(introduction(VERSIONS[0]))),
                    method if modern::is_gone(method) => Err(unknown(method)),
                    method => self.answer(method, &params),
                };
                let outcome = outcome.map(|result| modern::dressed(method, result)).map_err(modern::refitted);
                self.respond(&id, outcome)
            }
        }
    }

    /// Wakes the call that asked. Nobody else knows what the reply is to.
    fn handle_reply(&self, id: &Value, reply: Value) {
        let Some(id) = id.as_u64() else { return };
        if let Some(asker) = self.state().questions.remove(&id) {
            let _ = asker.try_send(Wake::Replied(id, reply));
        }
    }

    /// Wakes the call that is cancelled. A call that is over, or never was, is none of our business.
    fn handle_cancelled(&self, params: Option<&Value>) {
        let Some(id) = params.and_then(|params| params.get("requestId")) else {
            return;
        };
        let id = id.to_string();
        let mut state = self.state();
        state.listens.remove(&id);
        if let Some(call) = state.calls.remove(&id) {
            let _ = call.try_send(Wake::Cancelled);
        }
    }

    fn introduce(&self, params: Value) -> Value {
        let asked = params["protocolVersion"].as_str().unwrap_or_default();
        let known = VERSIONS.into_iter().find(|version| *version == asked);
        let introduction = introduction(known.unwrap_or(VERSIONS[VERSIONS.len() - 1]));
        let mut state = self.state();
        state.client = params;
        state.eras = Eras::Legacy;
        introduction
    }

    /// Answers the requests that neither wait nor act.
    fn answer(&self, method: &str, params: &Value) -> Result<Value, Failure> {
        if method.ends_with("/list") && params.get("cursor").is_some() {
            // Every list fits on one page, so no cursor can be one of ours; the empty string is a cursor too.
            return Err(Failure::invalid("unknown cursor"));
        }
        match method {
            "ping" => Ok(json!({})),
            "tools/list" => Ok(tools::list()),
            "resources/list" => Ok(shelf::resources()),
            "resources/templates/list" => Ok(shelf::templates()),
            "resources/read" => shelf::read(params, self.state().counter),
            "resources/subscribe" => {
                let uri = shelf::uri(params)?;
                self.state().subscribed.insert(uri.to_owned());
                Ok(json!({}))
            }
            "resources/unsubscribe" => {
                let uri = shelf::uri(params)?;
                self.state().subscribed.remove(uri);
                Ok(json!({}))
            }
            "prompts/list" => Ok(shelf::prompts()),
            "prompts/get" => shelf::prompt(params),
            "completion/complete" => shelf::complete(params),
            "logging/setLevel" => {
                let level = params["level"].as_str().and_then(level);
                self.state().level = level.ok_or_else(|| Failure::invalid("unknown level"))?;
                Ok(json!({}))
            }
            _ => Err(unknown(method)),
        }
    }

    /// Opens a call: from here on it may be cancelled, and has to be answered.
    fn open_call(&self, id: &Value) -> Result<(SyncSender<Wake>, Receiver<Wake>), Failure> {
        let key = id.to_string();
        let mut state = self.state();
        if state.calls.contains_key(&key) {
            let message = format!("request {key} is still in flight");
            return Err(Failure::new(-32600, message));
        }
        if state.calls.len() >= MAX_CALLS {
            return Err(Failure::new(-32603, "too many calls in flight"));
        }
        let (tx, rx) = sync_channel(MAILBOX);
        state.calls.insert(key, tx.clone());
        Ok((tx, rx))
    }

    /// Answers a call, unless it was cancelled or answered before.
    fn close_call(&self, id: &Value, outcome: Result<Value, Failure>) -> io::Result<()> {
        let open = self.state().calls.remove(&id.to_string());
        open.map_or(Ok(()), |_| self.respond(id, outcome))
    }

    /// Sends a request of our own. Without an asker the reply is read and forgotten.
    fn ask(&self, method: &str, params: Value, asker: Option<SyncSender<Wake>>) -> io::Result<u64> {
        let id = {
            let mut state = self.state();
            let id = state.next_question;
            state.next_question += 1;
            // Before the question leaves: the reply may be here before `send` returns.
            if let Some(asker) = asker {
                state.questions.insert(id, asker);
            }
            id
        };
        let mut message = message(method, params);
        message["id"] = id.into();
        self.out.send(&message)?;
        Ok(id)
    }

    fn notify(&self, method: &str, params: Value) -> io::Result<()> {
        self.out.send(&message(method, params))
    }

    fn respond(&self, id: &Value, outcome: Result<Value, Failure>) -> io::Result<()> {
        self.out.send(&response(id, outcome))
    }
}

/// What we say of ourselves when somebody comes.
fn introduction(version: &str) -> Value {
    json!({
        "protocolVersion": version,
        "capabilities": {
            "tools": {"listChanged": true},
            "resources": {"subscribe": true, "listChanged": true},
            "prompts": {"listChanged": true},
            "logging": {},
            "completions": {},
        },
        "serverInfo": info(),
        "instructions": INSTRUCTIONS,
    })
}

fn info() -> Value {
    json!({"name": "prism-demo", "version": env!("CARGO_PKG_VERSION")})
}

fn unknown(method: &str) -> Failure {
    Failure::new(-32601, format!("method not found: {method}"))
}

/// Builds a request or a notification; `Null` stands for no params.
fn message(method: &str, params: Value) -> Value {
    match params {
        Value::Null => json!({"jsonrpc": "2.0", "method": method}),
        params => json!({"jsonrpc": "2.0", "method": method, "params": params}),
    }
}

fn response(id: &Value, outcome: Result<Value, Failure>) -> Value {
    match outcome {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(failure) => {
            let mut error = json!({"code": failure.code, "message": failure.message});
            if !failure.data.is_null() {
                error["data"] = failure.data;
            }
            json!({"jsonrpc": "2.0", "id": id, "error": error})
        }
    }
}

/// Returns the place of a level in `LEVELS`.
fn level(name: &str) -> Option<usize> {
    LEVELS.iter().position(|level| *level == name)
}

/// Writes one line to stderr, which is ours to chat on; a closed one is no reason to stop serving.
fn complain(text: &str) {
    let _ = io::stderr().write_all(format!("prism-demo: {text}\n").as_bytes());
}

// === impl Failure ===

impl Failure {
    fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: Value::Null }
    }

    fn invalid(message: impl Into<String>) -> Self {
        Self::new(-32602, message)
    }
}
