//! A toy server with one of everything, and a client for either way to reach it.

mod arguments;
mod changes;
mod in_process;
mod on_stdio;
mod questions;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use prism_core::wire::Message;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf},
    time::timeout,
};

use super::*;

/// How long a test waits for what must come.
const SOON: Duration = Duration::from_secs(10);

/// The flag says that a call of `patient` has seen its cancellation.
fn toy(tidied: Arc<AtomicBool>) -> Arc<BuiltinServer> {
    let server = BuiltinServer::new("toy", "A toy", "Play with it.")
        .tool(Echo)
        .tool(Report)
        .tool(Patient(tidied))
        .tool(Stubborn)
        .tool(Broken)
        .tool(Ask)
        .tool(Fail)
        .tool(Chatty)
        .resources(Shelf)
        .prompts(Greetings)
        .completions(Names);
    Arc::new(server)
}

struct Echo;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EchoArguments {
    /// What to say back.
    text: String,
    /// How often.
    #[serde(default)]
    times: Option<u32>,
    /// How loud.
    tone: Option<Tone>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Tone {
    Low,
    High,
}

impl TypedTool for Echo {
    type Arguments = EchoArguments;
    const NAME: &'static str = "echo";
    const TITLE: &'static str = "Echo";
    const DESCRIPTION: &'static str = "Says it back.";
    const HINTS: ToolHints = ToolHints::READS;

    async fn call(&self, arguments: EchoArguments, _: &ServerCall) -> Result<ToolReply, CallFailure> {
        let text = arguments.text.repeat(arguments.times.unwrap_or(1) as usize);
        Ok(match arguments.tone {
            Some(Tone::High) => ToolReply::structured(json!({"said": text.to_uppercase()})),
            Some(Tone::Low) | None => ToolReply::text(text),
        })
    }
}

/// No arguments.
#[derive(Deserialize, JsonSchema)]
struct Nothing {}

/// Declares a tool without arguments.
macro_rules! plain_tool {
    ($tool:ty, $name:literal, |$self:ident, $call:ident| $body:block) => {
        impl TypedTool for $tool {
            type Arguments = Nothing;
            const NAME: &'static str = $name;
            const TITLE: &'static str = $name;
            const DESCRIPTION: &'static str = $name;

            async fn call(&$self, _: Nothing, $call: &ServerCall) -> Result<ToolReply, CallFailure> $body
        }
    };
}

struct Report;
struct Patient(Arc<AtomicBool>);
struct Stubborn;
struct Broken;
struct Ask;
struct Fail;
struct Chatty;

plain_tool!(Report, "report", |self, call| {
    call.progress(1, Some(2), "half");
    call.log(LogLevel::Info, Some("toy"), json!("told"), None);
    // N-05, R-23: what a server says of a note beside its call's id.
    call.log(LogLevel::Error, None, json!({"why": "test"}), json!({"step": 2}).as_object().cloned());
    tokio::task::yield_now().await;
    call.progress(2, Some(2), "");
    Ok(ToolReply::text(call.correlation_id().to_string()))
});

plain_tool!(Patient, "patient", |self, call| {
    call.progress(0, None, "waiting");
    call.cancelled().await;
    assert!(call.is_cancelled());
    self.0.store(true, Ordering::SeqCst);
    Ok(ToolReply::text("too late"))
});

plain_tool!(Stubborn, "stubborn", |self, call| {
    let _held = call.correlation_id();
    std::future::pending().await
});

plain_tool!(Broken, "broken", |self, call| {
    let nothing: Option<ToolReply> = call.is_cancelled().then(|| ToolReply::text(""));
    Ok(nothing.unwrap())
});

plain_tool!(Ask, "ask", |self, call| {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let form = json!({"message": "Who are you?", "requestedSchema": schema});
    let name = call.ask("name", "elicitation/create", form).await?;
    let roots = call.ask("roots", "roots/list", Value::Null).await?;
    Ok(ToolReply::structured(json!([name, roots])))
});

plain_tool!(Fail, "fail", |self, call| {
    match call.wants(LogLevel::Debug) {
        true => Err(CallFailure::error(4711, "as you wish").with_data(json!({"a": 1}))),
        false => Err(CallFailure::trouble("no luck")),
    }
});

plain_tool!(Chatty, "chatty", |self, call| {
    for i in 0..5000 {
        call.room().await;
        call.log(LogLevel::Error, None, json!(i), None);
    }
    Ok(ToolReply::text("enough"))
});

struct Shelf;

impl Resources for Shelf {
    const LIST_CHANGES: bool = true;

    async fn list(&self, _: &ServerCall) -> Result<Vec<Value>, CallFailure> {
        Ok(vec![json!({"uri": "toy://one", "name": "one"})])
    }

    async fn read(&self, uri: &str, _: &ServerCall) -> Result<Vec<Value>, CallFailure> {
        match uri {
            "toy://one" => Ok(vec![json!({"uri": uri, "text": "1"})]),
            _ => Err(CallFailure::no_resource(uri)),
        }
    }

    fn can_watch(&self, uri: &str) -> bool {
        uri == "toy://one"
    }
}

struct Greetings;

impl Prompts for Greetings {
    fn list(&self) -> Vec<Value> {
        vec![json!({"name": "greet"})]
    }

    async fn get(&self, name: &str, arguments: Map<String, Value>, _: &ServerCall) -> Result<Value, CallFailure> {
        if name != "greet" {
            return Err(CallFailure::invalid("unknown prompt"));
        }
        let text = format!("Greet {}.", arguments["name"]);
        Ok(json!({"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}))
    }
}

struct Names;

impl Completions for Names {
    async fn complete(&self, asked: &CompletionRequest) -> Result<Vec<String>, CallFailure> {
        assert_eq!((asked.of.as_str(), asked.is_prompt, asked.argument.as_str()), ("greet", true, "name"));
        Ok((0..150).map(|i| format!("{}{i}", asked.begun)).collect())
    }
}

/// A client in this process.
struct Client {
    connection: BuiltinConnection,
    server: Arc<BuiltinServer>,
    tidied: Arc<AtomicBool>,
}

impl Client {
    fn open() -> Self {
        let tidied = Arc::new(AtomicBool::new(false));
        let server = toy(tidied.clone());
        Self { connection: BuiltinConnection::open(server.clone()), server, tidied }
    }

    fn send(&mut self, message: Value) {
        let bytes = Bytes::from(message.to_string());
        self.connection.send(Message::parse(bytes).unwrap());
    }

    /// Sends a request whose `_meta` has the given members besides what every request has.
    fn request(&mut self, id: u64, method: &str, params: Value, meta: Value) {
        self.send(request(id, method, params, meta));
    }

    fn call(&mut self, id: u64, tool: &str, arguments: Value, meta: Value) {
        self.request(id, "tools/call", json!({"name": tool, "arguments": arguments}), meta);
    }

    async fn next(&mut self) -> (ServerMessage, Value) {
        let said = timeout(SOON, self.connection.next()).await.unwrap();
        let value = serde_json::from_slice(&said.bytes).unwrap();
        (said, value)
    }

    /// The answer to the request, and the notes before it.
    async fn answer(&mut self, id: u64) -> (Value, Vec<Value>) {
        let mut notes = Vec::new();
        loop {
            let (said, value) = self.next().await;
            assert_eq!(said.about, Some(id), "{value}");
            if said.is_answer {
                assert_eq!(value["id"], id);
                return (value, notes);
            }
            notes.push(value);
        }
    }

    async fn result(&mut self, id: u64) -> Value {
        let (mut answer, notes) = self.answer(id).await;
        assert_eq!(notes, [] as [Value; 0]);
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].take()
    }

    async fn error(&mut self, id: u64) -> Value {
        self.answer(id).await.0["error"].take()
    }
}

fn request(id: u64, method: &str, mut params: Value, meta: Value) -> Value {
    let mut all = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}, "roots": {}},
    });
    all.as_object_mut().unwrap().extend(meta.as_object().cloned().unwrap_or_default());
    params["_meta"] = all;
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

async fn served(
    server: Arc<BuiltinServer>,
    reader: ReadHalf<DuplexStream>,
    writer: WriteHalf<DuplexStream>,
) -> std::io::Result<()> {
    serve(server, Eras::Both, reader, writer, &()).await
}

/// A client at the other end of a pipe.
struct Piped {
    input: WriteHalf<DuplexStream>,
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    server: Arc<BuiltinServer>,
    serving: tokio::task::JoinHandle<std::io::Result<()>>,
}

impl Piped {
    fn open() -> Self {
        let server = toy(Arc::default());
        let (near, far) = tokio::io::duplex(1 << 16);
        let (reader, writer) = tokio::io::split(far);
        let serving = tokio::spawn(served(server.clone(), reader, writer));
        let (reader, input) = tokio::io::split(near);
        Self { input, lines: BufReader::new(reader).lines(), server, serving }
    }

    /// A client that has said hello in a legacy revision.
    async fn greeted(revision: &str, capabilities: Value) -> Self {
        let mut client = Self::open();
        let params = json!({"protocolVersion": revision, "capabilities": capabilities, "clientInfo": {"name": "t"}});
        client.write(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}).to_string()).await;
        assert_eq!(client.next().await["result"]["protocolVersion"], revision);
        client
    }

    async fn write(&mut self, line: &str) {
        self.input.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    async fn request(&mut self, id: u64, method: &str, params: Value) {
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()).await;
    }

    async fn next(&mut self) -> Value {
        let line = timeout(SOON, self.lines.next_line()).await.unwrap().unwrap();
        serde_json::from_str(&line.expect("the server has ended")).unwrap()
    }
}
