//! The tools: one table, from which the list is made, arguments are checked, and calls are run. Reading lines
//! and writing messages is not done here.
//!
//! A tool is a function from a `Call` to a text. Waiting goes through the call's mailbox, so that a cancellation
//! ends it at once.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::arguments::Kind::{self, Count, Integer, OneOf, Text};
use super::arguments::{Argument, check, may, must, schema, shown};
use super::modern::{self, Caller, Failed, Question};
use super::{DEFAULT_LEVEL, Failure, Fault, LEVELS, Server, Wake, level, shelf};

struct Tool {
    name: &'static str,
    about: &'static str,
    arguments: &'static [Argument],
    pace: Pace,
    run: fn(&Call) -> Result<String, Stop>,
}

#[derive(Clone, Copy)]
enum Pace {
    /// Runs in the reader's thread, so that answers leave in the order of the calls.
    AtOnce,
    /// Runs in a thread of its own.
    Waits,
}

/// One `tools/call` being served.
struct Call {
    server: Arc<Server>,
    id: Value,
    /// Who calls, if it is a call of the modern era.
    caller: Option<Caller>,
    params: Value,
    progress_token: Option<Value>,
    /// The other end of the mailbox, to be left with a question.
    tx: SyncSender<Wake>,
    mailbox: Receiver<Wake>,
}

/// Why a call ends without its text.
enum Stop {
    /// The tool failed; the model is told why.
    Trouble(String),
    /// The result is more than a text.
    Whole(Value),
    /// The call failed; the client is told why.
    Failed(Failure),
    /// No answer is owed: the call was cancelled, or has its answer already.
    Silent,
    /// The client is gone.
    Lost(io::Error),
}

const LISTS: Kind = OneOf(&["tools", "prompts", "resources"]);

#[rustfmt::skip] // One row, one tool.
static TOOLS: &[Tool] = &[
    Tool { name: "echo", about: "Says it back; with `size`, that many bytes instead.",
        arguments: &[must("text", Text), may("size", Count)], pace: Pace::AtOnce, run: echo },
    Tool { name: "slow", about: "Says it back after `ms` milliseconds.",
        arguments: &[must("ms", Count), must("text", Text)], pace: Pace::Waits, run: slow },
    Tool { name: "progress", about: "Reports `steps` steps of `ms` milliseconds, with `text` as their message, and says it back.",
        arguments: &[must("steps", Count), must("ms", Count), may("text", Text)], pace: Pace::Waits, run: progress },
    Tool { name: "log", about: "Logs `count` notes, if the level is not below the one set.",
        arguments: &[may("level", OneOf(&LEVELS)), may("count", Count), may("text", Text)], pace: Pace::AtOnce, run: log },
    Tool { name: "ask", about: "Asks the client, with `also` two things at once, and answers what it replied.",
        arguments: &[must("kind", OneOf(&["sampling", "elicitation", "roots"])), must("text", Text), may("also", Text)], pace: Pace::Waits, run: ask },
    Tool { name: "visit", about: "Wants a page opened, and is content when it is called again for it.",
        arguments: &[must("url", Text)], pace: Pace::AtOnce, run: visit },
    Tool { name: "route", about: "Answers where to; HTTP clients of the modern era say it in headers, too.",
        arguments: &[shown("Region", must("region", Text)), shown("Priority", may("priority", Count))], pace: Pace::AtOnce, run: route },
    Tool { name: "show", about: "Answers a block of that kind.",
        arguments: &[must("kind", OneOf(&["audio", "resource_link", "structured", "list"]))], pace: Pace::AtOnce, run: show },
    Tool { name: "fail", about: "Fails with `code`, as an error of the protocol.",
        arguments: &[must("code", Integer)], pace: Pace::AtOnce, run: fail },
    Tool { name: "ping_client", about: "Pings the client, and answers when it did.",
        arguments: &[], pace: Pace::Waits, run: ping_client },
    Tool { name: "touch", about: "Reports an update of `uri`, if it is subscribed to.",
        arguments: &[must("uri", Text)], pace: Pace::AtOnce, run: touch },
    Tool { name: "change", about: "Reports that a list changed.",
        arguments: &[must("what", LISTS)], pace: Pace::AtOnce, run: change },
    Tool { name: "later", about: "Answers at once, and reports that a list changed after `ms` milliseconds.",
        arguments: &[must("ms", Count), must("what", LISTS)], pace: Pace::Waits, run: later },
    Tool { name: "whoami", about: "Answers the process id.",
        arguments: &[], pace: Pace::AtOnce, run: whoami },
    Tool { name: "crash", about: "Exits with `code`, or 1, without an answer.",
        arguments: &[may("code", Count)], pace: Pace::AtOnce, run: crash },
    Tool { name: "stderr", about: "Writes a line to stderr.",
        arguments: &[must("text", Text)], pace: Pace::AtOnce, run: stderr },
    Tool { name: "big", about: "Answers a text of that many bytes.",
        arguments: &[must("bytes", Count)], pace: Pace::AtOnce, run: big },
    Tool { name: "caps", about: "Answers what the client said of itself, as JSON.",
        arguments: &[], pace: Pace::AtOnce, run: caps },
    Tool { name: "subscriptions", about: "Answers the subscribed URIs and the log level, as JSON.",
        arguments: &[], pace: Pace::AtOnce, run: subscriptions },
];

/// The longest text made to order. Beyond it the call fails: a typing error must not eat the machine.
const MAX_TEXT_BYTES: u64 = 256 << 20;

pub(super) fn list() -> Value {
    let tools: Vec<_> = TOOLS
        .iter()
        .map(|tool| json!({"name": tool.name, "description": tool.about, "inputSchema": schema(tool.arguments)}))
        .collect();
    json!({"tools": tools})
}

/// Runs a call, here or in its own thread.
pub(super) fn call(server: &Arc<Server>, id: Value, params: Value, caller: Option<Caller>) -> io::Result<()> {
    let Some(tool) = TOOLS.iter().find(|tool| params["name"] == tool.name) else {
        let failure = Failure::invalid(format!("unknown tool: {}", params["name"]));
        return server.respond(&id, Err(failure));
    };
    let (tx, mailbox) = match server.open_call(&id) {
        Ok(ends) => ends,
        Err(failure) => return server.respond(&id, Err(failure)),
    };
    let token = params.pointer("/_meta/progressToken").cloned();
    let call = Call {
        server: Arc::clone(server),
        id: id.clone(),
        caller,
        params,
        progress_token: token.filter(|token| !token.is_null()),
        tx,
        mailbox,
    };
    match tool.pace {
        Pace::AtOnce => call.run(tool),
        Pace::Waits => {
            // A client that is gone is noticed by the reader; this thread just ends.
            let task = move || drop(call.run(tool));
            let thread = thread::Builder::new().name(tool.name.to_owned());
            match thread.spawn(task) {
                Ok(_) => Ok(()),
                Err(_) => server.close_call(&id, Err(Failure::new(-32603, "no thread left"))),
            }
        }
    }
}

fn echo(call: &Call) -> Result<String, Stop> {
    call.count("size").map_or_else(|| Ok(call.text("text").to_owned()), filler)
}

fn slow(call: &Call) -> Result<String, Stop> {
    call.pause("ms")?;
    Ok(call.text("text").to_owned())
}

fn progress(call: &Call) -> Result<String, Stop> {
    let steps = call.count("steps").unwrap_or_default();
    for step in 1..=steps {
        call.pause("ms")?;
        let Some(token) = &call.progress_token else {
            continue;
        };
        let mut note = json!({"progressToken": token, "progress": step, "total": steps});
        if let Some(text) = call.params["arguments"].get("text") {
            note["message"] = text.clone();
        }
        call.server.notify("notifications/progress", note)?;
    }
    match call.text("text") {
        "" => Ok(format!("{steps} steps done")),
        text => Ok(text.to_owned()),
    }
}

fn log(call: &Call) -> Result<String, Stop> {
    let grade = level(call.text("level")).unwrap_or(DEFAULT_LEVEL);
    let count = call.count("count").unwrap_or(1);
    let wanted = match &call.caller {
        None => Some(call.server.state().level),
        Some(caller) => caller.level,
    };
    if wanted.is_none_or(|wanted| grade < wanted) {
        return Ok("0 notes sent".to_owned());
    }
    for i in 1..=count {
        let data = match call.text("text") {
            "" => format!("note {i}"),
            text => text.to_owned(),
        };
        let note = json!({"level": LEVELS[grade], "logger": "prism-demo", "data": data});
        call.server.notify("notifications/message", note)?;
    }
    Ok(format!("{count} notes sent"))
}

/// In the legacy era it asks whatever the client said it can do: a well-bred server would look first, but then nobody
/// would see how a question out of turn is refused.
fn ask(call: &Call) -> Result<String, Stop> {
    let kind = call.text("kind");
    let mut questions = vec![question("first", kind, call.text("text"))];
    if let Some(also) = call.params["arguments"]["also"].as_str() {
        questions.push(question("second", kind, also));
    }
    if call.server.fault == Fault::LateAsk {
        call.answer("the question comes later")?;
        // In the modern era there is no way to ask that late.
        if let (None, Some(Question { method, params, .. })) = (&call.caller, questions.pop()) {
            call.server.ask(method, params, None)?;
        }
        return Err(Stop::Silent);
    }
    let mut results = call.ask(questions)?;
    match results.as_mut_slice() {
        [result] => match result["content"]["text"].as_str() {
            Some(text) if kind == "sampling" => Ok(text.to_owned()),
            // The other kinds give objects, which are shown as they came.
            _ => Ok(result.to_string()),
        },
        results => Ok(json!(results).to_string()),
    }
}

fn question(key: &'static str, kind: &str, text: &str) -> Question {
    let (method, params) = match kind {
        "sampling" => {
            let content = json!({"type": "text", "text": text});
            let messages = json!([{"role": "user", "content": content}]);
            ("sampling/createMessage", json!({"messages": messages, "maxTokens": 100}))
        }
        "elicitation" => {
            let schema = json!({"type": "object", "properties": {"answer": {"type": "string"}}});
            ("elicitation/create", json!({"message": text, "requestedSchema": schema}))
        }
        _ => ("roots/list", Value::Null),
    };
    Question { key, method, params }
}

fn visit(call: &Call) -> Result<String, Stop> {
    let url = call.text("url");
    let page = json!({"mode": "url", "url": url, "message": "Please open this page."});
    if call.caller.is_some() {
        let question = Question { key: "page", method: "elicitation/create", params: page };
        return Ok(call.ask(vec![question])?.pop().unwrap_or_default().to_string());
    }
    if call.server.state().opened.remove(url) {
        return Ok(format!("{url} was opened"));
    }
    call.server.state().opened.insert(url.to_owned());
    let mut page = page;
    page["elicitationId"] = "visit-1".into();
    let data = json!({"elicitations": [page]});
    Err(Stop::Failed(Failure { data, ..Failure::new(-32042, "a page must be opened first") }))
}

fn route(call: &Call) -> Result<String, Stop> {
    Ok(format!("to {} with {}", call.text("region"), call.params["arguments"]["priority"]))
}

fn show(call: &Call) -> Result<String, Stop> {
    let result = match call.text("kind") {
        "audio" => json!({"content": [{"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"}]}),
        "resource_link" => json!({"content": [{"type": "resource_link", "uri": "demo://hello", "name": "hello"}]}),
        "structured" => json!({"content": [], "structuredContent": {"sum": 3}}),
        _ => json!({"content": [], "structuredContent": [1, 2]}),
    };
    Err(Stop::Whole(result))
}

fn fail(call: &Call) -> Result<String, Stop> {
    let code = call.params["arguments"]["code"].as_i64().unwrap_or_default();
    Err(Stop::Failed(Failure::new(code, "as you wish")))
}

fn ping_client(call: &Call) -> Result<String, Stop> {
    if call.caller.is_some() {
        return Err(Stop::Trouble(format!("{} has no ping", modern::VERSION)));
    }
    call.ask(vec![Question { key: "ping", method: "ping", params: Value::Null }])?;
    Ok("pong".to_owned())
}

fn touch(call: &Call) -> Result<String, Stop> {
    let uri = call.text("uri");
    let subscribed = {
        let mut state = call.server.state();
        state.counter += u64::from(uri == shelf::COUNTER);
        state.subscribed.contains(uri)
    };
    let told = call.server.tell_updated(uri)?;
    if subscribed {
        call.server.notify("notifications/resources/updated", json!({"uri": uri}))?;
    }
    Ok(if subscribed || told > 0 { "update sent" } else { "not subscribed" }.to_owned())
}

fn change(call: &Call) -> Result<String, Stop> {
    call.report_change()?;
    Ok("change sent".to_owned())
}

fn later(call: &Call) -> Result<String, Stop> {
    call.answer("the change comes later")?;
    call.pause("ms")?;
    call.report_change()?;
    Err(Stop::Silent)
}

fn whoami(_: &Call) -> Result<String, Stop> {
    Ok(std::process::id().to_string())
}

fn crash(call: &Call) -> Result<String, Stop> {
    let code = call.count("code").and_then(|code| i32::try_from(code).ok());
    std::process::exit(code.unwrap_or(1))
}

fn stderr(call: &Call) -> Result<String, Stop> {
    // One write, so that the line arrives whole. A closed stderr is the tool's trouble, not the server's end.
    let line = format!("{}\n", call.text("text"));
    match io::stderr().write_all(line.as_bytes()) {
        Ok(()) => Ok("written".to_owned()),
        Err(error) => Err(Stop::Trouble(error.to_string())),
    }
}

fn big(call: &Call) -> Result<String, Stop> {
    filler(call.count("bytes").unwrap_or_default())
}

fn caps(call: &Call) -> Result<String, Stop> {
    match &call.caller {
        None => Ok(call.server.state().client.to_string()),
        Some(caller) => Ok(caller.introduction().to_string()),
    }
}

fn subscriptions(call: &Call) -> Result<String, Stop> {
    if let Some(caller) = &call.caller {
        let level = caller.level.map(|level| LEVELS[level]);
        return Ok(json!({"subscriptions": call.server.watched(), "level": level}).to_string());
    }
    let state = call.server.state();
    Ok(json!({"subscriptions": state.subscribed, "level": LEVELS[state.level]}).to_string())
}

fn filler(bytes: u64) -> Result<String, Stop> {
    match usize::try_from(bytes) {
        Ok(length) if bytes <= MAX_TEXT_BYTES => Ok("x".repeat(length)),
        _ => Err(Stop::Trouble(format!("at most {MAX_TEXT_BYTES} bytes"))),
    }
}

// === impl Call ===

impl Call {
    fn run(&self, tool: &Tool) -> io::Result<()> {
        let outcome = check(tool.arguments, &self.params["arguments"]).map_err(Stop::Trouble);
        match outcome.and_then(|()| (tool.run)(self)) {
            Ok(text) => self.answer(&text),
            // 2025-11-25, Tools: bad arguments too are an error of the tool, which the model sees and can mend.
            Err(Stop::Trouble(why)) => {
                let content = json!([{"type": "text", "text": why}]);
                self.close(Ok(json!({"content": content, "isError": true})))
            }
            Err(Stop::Whole(result)) => self.close(Ok(result)),
            Err(Stop::Failed(failure)) => self.close(Err(failure)),
            Err(Stop::Silent) => Ok(()),
            Err(Stop::Lost(error)) => Err(error),
        }
    }

    fn answer(&self, text: &str) -> io::Result<()> {
        let content = json!([{"type": "text", "text": text}]);
        self.close(Ok(json!({"content": content})))
    }

    fn close(&self, outcome: Result<Value, Failure>) -> io::Result<()> {
        let outcome = match self.caller {
            None => outcome,
            Some(_) => outcome.map(|result| modern::dressed("tools/call", result)),
        };
        self.server.close_call(&self.id, outcome)
    }

    /// Returns an argument of kind text, empty if it was left out.
    fn text(&self, name: &str) -> &str {
        self.params["arguments"][name].as_str().unwrap_or_default()
    }

    fn count(&self, name: &str) -> Option<u64> {
        self.params["arguments"][name].as_u64()
    }

    /// Waits for as many milliseconds as the argument says, or until the call is cancelled.
    fn pause(&self, name: &str) -> Result<(), Stop> {
        let time = Duration::from_millis(self.count(name).unwrap_or_default());
        match self.mailbox.recv_timeout(time) {
            Err(RecvTimeoutError::Timeout) => Ok(()),
            _ => Err(Stop::Silent),
        }
    }

    /// Asks the client. In the modern era that ends the call, and its client calls again with the answers; in the
    /// legacy one they are waited for, however long: patience is the business of whoever called us.
    fn ask(&self, questions: Vec<Question>) -> Result<Vec<Value>, Stop> {
        if let Some(caller) = &self.caller {
            return Ok(caller.ask(&self.server, &self.params, questions)?);
        }
        let mut open = Vec::new();
        for Question { method, params, .. } in questions {
            open.push((self.server.ask(method, params, Some(self.tx.clone()))?, None));
        }
        while open.iter().any(|(_, result)| result.is_none()) {
            let Ok(Wake::Replied(id, mut reply)) = self.mailbox.recv() else {
                self.withdraw(&open)?;
                return Err(Stop::Silent);
            };
            if let Some(error) = reply.get("error") {
                let message = error["message"].as_str().unwrap_or_default();
                let why = format!("{}: {message}", error["code"]);
                self.withdraw(&open)?;
                return Err(Stop::Trouble(why));
            }
            if let Some((_, result)) = open.iter_mut().find(|(asked, _)| *asked == id) {
                *result = Some(reply.get_mut("result").map(Value::take).unwrap_or_default());
            }
        }
        Ok(open.into_iter().filter_map(|(_, result)| result).collect())
    }

    /// Takes back the questions whose replies nobody waits for any more.
    fn withdraw(&self, questions: &[(u64, Option<Value>)]) -> io::Result<()> {
        for (question, _) in questions {
            let open = self.server.state().questions.remove(question).is_some();
            if open {
                self.server.notify("notifications/cancelled", json!({"requestId": question}))?;
            }
        }
        Ok(())
    }

    fn report_change(&self) -> io::Result<()> {
        let what = self.text("what");
        if self.caller.is_some() {
            return self.server.tell_changed(what).map(drop);
        }
        self.server.notify(&format!("notifications/{what}/list_changed"), Value::Null)
    }
}

// === impl Stop ===

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Lost(error)
    }
}

impl From<Failed> for Stop {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Asks(result) => Self::Whole(result),
            Failed::Refused(failure) => Self::Failed(failure),
        }
    }
}
