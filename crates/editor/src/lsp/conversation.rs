//! The talk with one server, without the pipes: what is asked and answered, what the server asks of us, and what is learned
//! from it. The shell around it is `client.rs`.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::{Map, Value, json};
use tokio::{sync::oneshot, time::Instant};

use super::{
    documents::{Documents, LspDocument},
    known::{DiagnosticOrigin, ServerKnowledge, ServerPhase},
    lack,
    message::{self, LspError, LspMessage, NO_SUCH_METHOD},
    uri,
};

pub(crate) struct Conversation {
    /// What is to be written.
    pub(crate) out: Vec<u8>,
    asked: HashMap<i64, OpenQuestion>,
    documents: Documents,
    known: Arc<ServerKnowledge>,
    greeting: LspGreeting,
    /// Files whose diagnostics have changed since this was last emptied.
    pub(crate) changed: Vec<PathBuf>,
    has_left: bool,
}

/// How a server is greeted and what it is told of the person's wishes.
#[derive(Clone, Debug)]
pub(crate) struct LspGreeting {
    pub(crate) folder: PathBuf,
    pub(crate) options: Value,
    /// By section, as `workspace/configuration` asks for it.
    pub(crate) configuration: Value,
    /// Whether it is told of changed files and need not look for itself.
    pub(crate) leaves_watching: bool,
}

struct OpenQuestion {
    reply: oneshot::Sender<Result<LspAnswer, LspFault>>,
    until: Instant,
    texts: Vec<SentText>,
    was_busy: bool,
    /// Set if the answer is the diagnostics of this file, about this version.
    diagnostics_of: Option<(PathBuf, Option<u64>)>,
}

/// One thing that is asked of a server.
pub(crate) struct LspQuestion {
    pub(crate) id: i64,
    /// What the server must have before.
    pub(crate) documents: Vec<LspDocument>,
    pub(crate) method: &'static str,
    pub(crate) params: Value,
    pub(crate) until: Instant,
    pub(crate) reply: oneshot::Sender<Result<LspAnswer, LspFault>>,
}

#[derive(Debug)]
pub(crate) struct LspAnswer {
    pub(crate) value: Value,
    /// The texts that it is about.
    pub(crate) texts: Vec<SentText>,
    /// Whether the server had not loaded everything when it was asked, or when it answered.
    pub(crate) was_busy: bool,
}

/// A text that the server had when it was asked.
#[derive(Clone, Debug)]
pub(crate) struct SentText {
    pub(crate) path: PathBuf,
    pub(crate) version: u64,
    /// What the server calls this version.
    pub(crate) number: i32,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum LspFault {
    /// The server has ended, for this reason.
    Gone(String),
    TimedOut,
    Refused(LspError),
    /// Too much is asked of it at once.
    Busy,
}

/// Questions that a server has not answered. Further ones are refused, not queued: it is as slow as it is.
const MAX_ASKED: usize = 64;

const INITIALIZE: i64 = 0;
const SHUTDOWN: i64 = -1;

impl Conversation {
    pub(crate) fn new(greeting: LspGreeting, known: Arc<ServerKnowledge>) -> Self {
        let mut out = Vec::new();
        message::ask(&mut out, INITIALIZE, "initialize", &hello(&greeting));
        let documents = Documents::default();
        Self { out, asked: HashMap::new(), documents, known, greeting, changed: Vec::new(), has_left: false }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.asked.is_empty()
    }

    pub(crate) fn ask(&mut self, question: LspQuestion) {
        let LspQuestion { id, documents, method, params, until, reply } = question;
        if reply.is_closed() {
            return;
        }
        if self.asked.len() >= MAX_ASKED {
            return drop(reply.send(Err(LspFault::Busy)));
        }
        self.sync(&documents);
        let text = |document: &LspDocument| {
            let path = document.path.clone();
            let (version, number) = (self.documents.version(&path)?, self.documents.number(&path)?);
            Some(SentText { path, version, number })
        };
        let texts: Vec<SentText> = documents.iter().filter_map(text).collect();
        let diagnostics_of = (method == "textDocument/diagnostic")
            .then(|| params["textDocument"]["uri"].as_str().and_then(uri::path))
            .flatten()
            .map(|path| (path.clone(), self.documents.version(&path)));
        message::ask(&mut self.out, id, method, &params);
        self.asked.insert(id, OpenQuestion { reply, until, texts, was_busy: self.is_busy(), diagnostics_of });
    }

    /// Sends texts and nothing else.
    pub(crate) fn sync(&mut self, documents: &[LspDocument]) {
        documents.iter().for_each(|document| self.documents.sync(&mut self.out, document));
        self.note_open();
    }

    /// Sends texts, and one of them last, again if need be. Returns the number that the server then has of it.
    pub(crate) fn freshen(&mut self, documents: &[LspDocument], path: &Path) -> Option<i32> {
        let (last, others): (Vec<_>, Vec<_>) = documents.iter().partition(|document| document.path == path);
        others.iter().for_each(|document| self.documents.sync(&mut self.out, document));
        for document in last {
            self.documents.sync(&mut self.out, document);
            self.documents.freshen(&mut self.out, document);
        }
        self.note_open();
        self.documents.number(path)
    }

    fn note_open(&self) {
        let numbers = self.documents.numbers();
        if self.known.read(|facts| facts.open != numbers) {
            self.known.write(|facts| facts.open = numbers);
        }
    }

    pub(crate) fn close(&mut self, path: &Path) {
        if self.documents.close(&mut self.out, path) {
            self.known.write(|facts| facts.closed(path));
        }
    }

    /// Says that a file was saved, or has changed on the disk.
    pub(crate) fn saved(&mut self, path: &Path) {
        if self.documents.version(path).is_some() {
            self.documents.has_news();
            let params = json!({ "textDocument": { "uri": uri::of(path) } });
            message::tell(&mut self.out, "textDocument/didSave", &params);
        }
    }

    pub(crate) fn changed_on_disk(&mut self, changes: &[(PathBuf, DiskChange)]) {
        self.documents.has_news();
        let told = |(path, change): &(PathBuf, DiskChange)| json!({ "uri": uri::of(path), "type": *change as u8 });
        let changes: Vec<Value> = changes.iter().map(told).collect();
        message::tell(&mut self.out, "workspace/didChangeWatchedFiles", &json!({ "changes": changes }));
    }

    /// Nobody waits for it any more.
    pub(crate) fn cancel(&mut self, id: i64) {
        if self.asked.remove(&id).is_some() {
            message::tell(&mut self.out, "$/cancelRequest", &json!({ "id": id }));
        }
    }

    /// Gives up what is over its time. Returns when to look again.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<Instant> {
        let over: Vec<i64> = self.asked.iter().filter(|(_, asked)| asked.until <= now).map(|(id, _)| *id).collect();
        for id in over {
            if let Some(asked) = self.asked.remove(&id) {
                let _ = asked.reply.send(Err(LspFault::TimedOut));
                message::tell(&mut self.out, "$/cancelRequest", &json!({ "id": id }));
            }
        }
        self.asked.values().map(|asked| asked.until).min()
    }

    /// Bids farewell. `has_left` tells when the server has agreed.
    pub(crate) fn leave(&mut self) {
        message::ask(&mut self.out, SHUTDOWN, "shutdown", &Value::Null);
    }

    pub(crate) fn has_left(&self) -> bool {
        self.has_left
    }

    pub(crate) fn handle(&mut self, said: LspMessage) -> Result<(), String> {
        match said {
            LspMessage::Answer { id: INITIALIZE, outcome } => self.greeted(outcome)?,
            LspMessage::Answer { id: SHUTDOWN, .. } => {
                message::tell(&mut self.out, "exit", &Value::Null);
                self.has_left = true;
            }
            // What nobody asked for, or was given up, is nobody's.
            LspMessage::Answer { id, outcome } => {
                if let Some(asked) = self.asked.remove(&id) {
                    self.answered(asked, outcome);
                }
            }
            LspMessage::Question { id, method, params } => {
                let outcome = self.asked_for(&method, &params);
                message::answer(&mut self.out, &id, outcome);
            }
            LspMessage::Note { method, params } => self.noted(&method, params),
        }
        Ok(())
    }

    fn greeted(&mut self, outcome: Result<Value, LspError>) -> Result<(), String> {
        let mut result = outcome.map_err(|complaint| format!("it refused to begin: {}", brief(&complaint.message)))?;
        let encoding = result["capabilities"]["positionEncoding"].as_str().unwrap_or("utf-16");
        if encoding != "utf-16" {
            return Err(format!("it counts in {} although only utf-16 was offered", brief(encoding)));
        }
        message::tell(&mut self.out, "initialized", &json!({}));
        let settings = json!({ "settings": self.greeting.configuration });
        message::tell(&mut self.out, "workspace/didChangeConfiguration", &settings);
        self.known.write(|facts| {
            facts.capabilities = result["capabilities"].take();
            facts.phase = ServerPhase::Ready;
        });
        Ok(())
    }

    fn answered(&mut self, asked: OpenQuestion, outcome: Result<Value, LspError>) {
        let was_busy = asked.was_busy || self.is_busy();
        if let (Some((path, version)), Ok(report)) = (asked.diagnostics_of, &outcome) {
            // `unchanged` leaves what was said before, which is about this version then too; it is only said to who
            // names an earlier report, and nobody here does.
            if let Some(items) = report["items"].as_array() {
                self.diagnosed(&path, DiagnosticOrigin::Pulled { was_busy }, version, None, items.clone());
            }
        }
        let texts = asked.texts;
        let _ = asked.reply.send(outcome.map(|value| LspAnswer { value, texts, was_busy }).map_err(LspFault::Refused));
    }

    fn is_busy(&self) -> bool {
        self.known.read(|facts| facts.busy_with().is_some())
    }

    fn asked_for(&self, method: &str, params: &Value) -> Result<Value, (i64, &'static str)> {
        match method {
            "workspace/configuration" => {
                let sections = params["items"].as_array().into_iter().flatten();
                let wanted = |item: &Value| section(&self.greeting.configuration, item["section"].as_str());
                Ok(sections.map(wanted).collect())
            }
            "client/registerCapability" => {
                let registrations = params["registrations"].as_array().into_iter().flatten();
                self.known.write(|facts| {
                    for wanted in registrations {
                        if let (Some(id), Some(method)) = (wanted["id"].as_str(), wanted["method"].as_str()) {
                            facts.register(id, method, wanted["registerOptions"].clone());
                        }
                    }
                });
                Ok(Value::Null)
            }
            "client/unregisterCapability" => {
                // The misspelling is the protocol's.
                let registrations = params["unregisterations"].as_array().into_iter().flatten();
                let ids = registrations.filter_map(|unwanted| unwanted["id"].as_str());
                self.known.write(|facts| ids.for_each(|id| facts.unregister(id)));
                Ok(Value::Null)
            }
            "workspace/applyEdit" => {
                // Nothing that is asked of it here is an edit, so nobody has seen or allowed this one.
                Ok(json!({ "applied": false, "failureReason": "nobody asked for an edit" }))
            }
            "workspace/diagnostic/refresh" => {
                self.known.write(|facts| facts.refreshes += 1);
                Ok(Value::Null)
            }
            "window/showDocument" => Ok(json!({ "success": false })),
            "workspace/workspaceFolders" => Ok(json!([folder(&self.greeting.folder)])),
            "window/workDoneProgress/create" | "window/showMessageRequest" => Ok(Value::Null),
            other if other.starts_with("workspace/") && other.ends_with("/refresh") => Ok(Value::Null),
            _ => Err((NO_SUCH_METHOD, "there is no such method here")),
        }
    }

    fn noted(&mut self, method: &str, mut params: Value) {
        match method {
            "textDocument/publishDiagnostics" => {
                let Some(path) = params["uri"].as_str().and_then(uri::path) else { return };
                // Without a number it is taken to be about the text that was sent last.
                let number = params["version"].as_i64().or_else(|| self.documents.number(&path).map(i64::from));
                let version = number.and_then(|number| self.documents.version_of(&path, number));
                if let (None, Some(_)) = (version, self.documents.version(&path)) {
                    // About a text that was closed since.
                    return;
                }
                if let Value::Array(items) = params["diagnostics"].take() {
                    self.diagnosed(&path, DiagnosticOrigin::Pushed, version, number, items);
                }
            }
            "$/progress" => {
                let token = match &params["token"] {
                    Value::String(token) => token.clone(),
                    token => token.to_string(),
                };
                let title = params["value"]["title"].as_str().unwrap_or_default();
                match params["value"]["kind"].as_str() {
                    Some("begin") => self.known.write(|facts| facts.began(token, title)),
                    Some("end") => self.known.write(|facts| facts.ended(&token)),
                    _ => {}
                }
            }
            "experimental/serverStatus" => {
                if let Some(is_quiet) = params["quiescent"].as_bool() {
                    let lacks = lack::of(params["message"].as_str().unwrap_or_default());
                    self.known.write(|facts| facts.status(is_quiet, lacks));
                }
            }
            _ => {}
        }
    }

    fn diagnosed(
        &mut self,
        path: &Path,
        came: DiagnosticOrigin,
        version: Option<u64>,
        number: Option<i64>,
        items: Vec<Value>,
    ) {
        let is_another = self.known.write(|facts| facts.diagnosed(path, came, version, number, items));
        if is_another && !self.changed.iter().any(|changed| changed == path) {
            self.changed.push(path.to_owned());
        }
    }
}

/// What has become of a file on the disk; LSP's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiskChange {
    Created = 1,
    Changed = 2,
    Deleted = 3,
}

/// As much of a server's words as an error should hold.
pub(crate) fn brief(words: &str) -> String {
    let words = words.replace(char::is_control, " ");
    words.trim().chars().take(300).collect()
}

/// The line of what a program said last that tells most: the one that it calls an error, as what comes after may be where in
/// its code that was, or else the last.
pub(crate) fn telling(words: &str) -> Option<&str> {
    let mut lines = words.lines().filter(|line| !line.trim().is_empty());
    let is_error = |line: &&str| line.trim_start().get(..5).is_some_and(|start| start.eq_ignore_ascii_case("error"));
    lines.clone().find(is_error).or_else(|| lines.next_back())
}

fn section(configuration: &Value, name: Option<&str>) -> Value {
    let parts = name.unwrap_or_default().split('.').filter(|part| !part.is_empty());
    parts.fold(configuration, |value, part| &value[part]).clone()
}

fn folder(path: &Path) -> Value {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    json!({ "uri": uri::of(path), "name": name })
}

fn hello(greeting: &LspGreeting) -> Value {
    let mut params = Map::new();
    // Behind the fence nobody can be sent a signal, and servers of Microsoft's kit take that for the death of their parent
    // and end. That their pipe is closed they notice all the same.
    params.insert("processId".to_owned(), Value::Null);
    params.insert("clientInfo".to_owned(), json!({ "name": "prism" }));
    params.insert("rootUri".to_owned(), uri::of(&greeting.folder).into());
    params.insert("rootPath".to_owned(), greeting.folder.display().to_string().into());
    params.insert("workspaceFolders".to_owned(), json!([folder(&greeting.folder)]));
    params.insert("initializationOptions".to_owned(), greeting.options.clone());
    params.insert("capabilities".to_owned(), super::abilities::all(greeting.leaves_watching));
    Value::Object(params)
}
