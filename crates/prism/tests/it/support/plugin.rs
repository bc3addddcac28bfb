//! Editors for tests, on a real WebSocket. One that does every verb, as a built-in editor of its own that is reached through
//! the protocol only; and a line on which a test says whatever a bad one would.

use std::{sync::Arc, time::Duration};

use futures_util::{SinkExt, StreamExt, stream::SplitStream};
use prism_core::policy::{Code, GrantRoot, Refusal, VerbSpec};
use prism_editor::{
    BuiltinEditor, EditorEnvironment, EditorEvent, EditorSettings, GrantHolder, ProgressSink, VerbOrder,
    protocol::{CommandMessage, EventMessage, FromPlugin, OpenBuffer, Pong, ResultMessage, StateMessage, ToPlugin},
};
use prism_os::census::OwnerDaemon;
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::{
    net::TcpStream,
    sync::{broadcast::error::RecvError, mpsc},
    task::JoinHandle,
};
use tokio_tungstenite::{WebSocketStream, tungstenite::Message};

use super::{
    gate::{Gate, next_message},
    soon, until,
};

/// An editor whose every word a test says.
pub(crate) struct Line {
    socket: WebSocketStream<TcpStream>,
}

/// An editor that works.
pub(crate) struct Editor {
    /// What it does the verbs with.
    pub(crate) runtime: BuiltinEditor,
    root: GrantRoot,
    task: JoinHandle<()>,
    _home: TempDir,
}

/// What is left of one that died.
pub(crate) type Left = (BuiltinEditor, TempDir);

/// Verbs that the built-in editor has.
pub(crate) const VERBS: &[&str] = &[
    "open_file",
    "create_file",
    "write_file",
    "delete_file",
    "rename_file",
    "search_files",
    "get_buffers",
    "edit_buffer",
    "save_buffer",
    "switch_buffer",
    "split_pane",
    "close_buffer",
    "explore_tree",
    "get_workspace_info",
    "find_in_file",
    "get_cursor_pos",
    "set_cursor_pos",
    "get_selection",
    "sync_viewport",
];

/// A registration for a folder.
pub(crate) fn register(root: &str, verbs: &[&str]) -> Value {
    json!({"type": "register", "protocol": 1, "instance_id": "one", "kind": "testedit", "version": "1.0",
        "roots": [root], "capabilities": verbs, "ui": true})
}

/// Opens a socket at `/plugin/{name}`, with this token in a header. `Err`: the status of the refusal.
pub(crate) async fn knock(gate: &Gate, name: &str, headers: &[(&'static str, &str)]) -> Result<Line, u16> {
    gate.socket(&format!("/plugin/{name}"), headers).await.map(|socket| Line { socket })
}

/// The same, let in and registered; no ping is answered yet.
pub(crate) async fn registered(gate: &Gate, name: &str, register: Value) -> Line {
    let bearer = format!("Bearer {}", gate.plugin_secret());
    let mut line = knock(gate, name, &[("authorization", &bearer)]).await.expect("it is let in");
    line.says(register).await;
    let hello = line.next().await.expect("it is greeted");
    assert_eq!((&hello["type"], &hello["protocol"]), (&json!("registered"), &json!(1)), "{hello}");
    line
}

/// The same, and it is the owner of its folder.
pub(crate) async fn owning(gate: &Gate, name: &str, register: Value) -> Line {
    let mut line = registered(gate, name, register).await;
    line.pongs(true).await;
    owns(gate, name).await;
    line
}

/// Waits until an editor owns its folder.
pub(crate) async fn owns(gate: &Gate, name: &str) {
    until("the editor owns its folder", async || state(gate, name).await.as_deref() == Some("owner")).await;
}

/// How the newest connection of an editor is; `None` if there is none.
pub(crate) async fn state(gate: &Gate, name: &str) -> Option<String> {
    let listed = gate.seen("/mcp/plugins").await;
    let found = listed["plugins"].as_array()?.iter().find(|plugin| plugin["plugin"] == name)?;
    found["state"].as_str().map(str::to_owned)
}

// === impl Line ===

impl Line {
    pub(crate) async fn says(&mut self, message: Value) {
        self.says_text(&message.to_string()).await;
    }

    pub(crate) async fn says_text(&mut self, text: &str) {
        soon("it is sent", self.socket.send(Message::text(text))).await.expect("the socket is open");
    }

    pub(crate) async fn tries_text(&mut self, text: &str) {
        let _ = soon("it is sent or refused", self.socket.send(Message::text(text))).await;
    }

    /// The next message; `Err`: the code with which it was closed.
    pub(crate) async fn next(&mut self) -> Result<Value, u16> {
        next_message(&mut self.socket).await
    }

    /// Waits for a message of this type. Pings in between are answered, so that it stays alive.
    pub(crate) async fn hears(&mut self, kind: &str) -> Value {
        let heard = async {
            loop {
                let message = self.next().await.unwrap_or_else(|code| panic!("closed with {code} instead of {kind}"));
                if message["type"] == kind {
                    return message;
                }
                if message["type"] == "ping" {
                    self.says(json!({"type": "pong", "id": message["id"], "ui": true})).await;
                }
            }
        };
        soon(kind, heard).await
    }

    /// Waits for a message of this type, and answers nothing in between.
    pub(crate) async fn hears_raw(&mut self, kind: &str) -> Value {
        loop {
            let message = self.next().await.unwrap_or_else(|code| panic!("closed with {code} instead of {kind}"));
            if message["type"] == kind {
                return message;
            }
        }
    }

    /// Answers the next ping.
    pub(crate) async fn pongs(&mut self, ui: bool) {
        let ping = loop {
            let message = self.next().await.expect("a ping");
            if message["type"] == "ping" {
                break message;
            }
        };
        self.says(json!({"type": "pong", "id": ping["id"], "ui": ui})).await;
    }

    /// Waits for the close; returns its code.
    pub(crate) async fn closed(&mut self) -> u16 {
        loop {
            if let Err(code) = self.next().await {
                return code;
            }
        }
    }

    pub(crate) async fn event(&mut self, seq: u64, event: &str, data: Value) {
        self.says(json!({"type": "event", "event": event, "seq": seq, "data": data})).await;
    }
}

// === impl Editor ===

impl Editor {
    /// An editor that has the gate's project open.
    pub(crate) async fn start(gate: &Gate, name: &str, verbs: &[&str]) -> Self {
        let path = std::env::var("PATH").unwrap_or_default();
        Self::start_in(gate, name, verbs, &[("PATH", path)]).await
    }

    /// One whose commands and language servers have this environment.
    pub(crate) async fn start_in(gate: &Gate, name: &str, verbs: &[&str], env: &[(&'static str, String)]) -> Self {
        let home = TempDir::new().expect("a temporary folder");
        let runtime = runtime(home.path(), env);
        Self::with(gate, (name, "one"), verbs, runtime, home).await
    }

    async fn with(
        gate: &Gate,
        (name, instance): (&str, &str),
        verbs: &[&str],
        runtime: BuiltinEditor,
        home: TempDir,
    ) -> Self {
        let mut registration = register(&gate.project(), verbs);
        registration["instance_id"] = instance.into();
        let mut line = registered(gate, name, registration).await;
        let root = GrantRoot::new(&gate.project()).expect("a folder");
        let state = state_of(&runtime, &root, 0).await;
        line.says(message(FromPlugin::State(state))).await;
        let task = tokio::spawn(work(line.socket, runtime.clone(), root.clone()));
        owns(gate, name).await;
        Self { runtime, root, task, _home: home }
    }

    /// Does a verb as the person at the window would.
    pub(crate) async fn person(&self, verb: &str, args: Value) -> Value {
        done(&self.runtime, &self.root, verb, members(args), 1).await.expect("the person can do it")
    }

    /// Breaks the connection, as a window that is killed does.
    pub(crate) async fn dies(self) -> Left {
        self.task.abort();
        let _ = self.task.await;
        (self.runtime, self._home)
    }

    /// The window while it is not connected.
    pub(crate) fn back_alone(gate: &Gate, (runtime, home): Left) -> Self {
        let root = GrantRoot::new(&gate.project()).expect("a folder");
        Self { runtime, root, task: tokio::spawn(async {}), _home: home }
    }

    /// A window that has restored its texts.
    pub(crate) async fn back(gate: &Gate, name: &str, (runtime, home): Left) -> Self {
        Self::with(gate, (name, "one"), VERBS, runtime, home).await
    }

    /// The same texts in another window: they were in its backups.
    pub(crate) async fn found_again(gate: &Gate, name: &str, (runtime, home): Left) -> Self {
        Self::with(gate, (name, "two"), VERBS, runtime, home).await
    }
}

fn runtime(home: &std::path::Path, env: &[(&'static str, String)]) -> BuiltinEditor {
    BuiltinEditor::new(EditorEnvironment {
        env: env.iter().map(|(name, value)| (name.into(), value.into())).collect(),
        owner: OwnerDaemon::this_process(home),
        closed: Vec::new(),
        settings: EditorSettings { fence: false, ..EditorSettings::default() },
        unsaved: None,
    })
}

/// Serves until the connection ends.
async fn work(socket: WebSocketStream<TcpStream>, runtime: BuiltinEditor, root: GrantRoot) {
    let (mut sink, mut stream) = socket.split();
    let (tx, mut rx) = mpsc::channel::<Value>(1024);
    let (mut happenings, mut seq) = (runtime.listen(), 0_u64);
    loop {
        tokio::select! {
            heard = heard(&mut stream) => match heard {
                Some(ToPlugin::Cmd(cmd)) => {
                    let (runtime, root, tx) = (runtime.clone(), root.clone(), tx.clone());
                    tokio::spawn(async move {
                        let id = cmd.id;
                        let result = serve(&runtime, &root, cmd).await;
                        let _ = tx.send(message(FromPlugin::Result(ResultMessage::of(id, result)))).await;
                    });
                }
                Some(ToPlugin::Ping(ping)) => {
                    let _ = tx.send(message(FromPlugin::Pong(Pong { id: ping.id, ui: true }))).await;
                }
                Some(ToPlugin::GetState(_)) => {
                    let state = state_of(&runtime, &root, seq).await;
                    let _ = tx.send(message(FromPlugin::State(state))).await;
                }
                Some(_) => {}
                None => return,
            },
            happening = happenings.recv() => match happening {
                Ok(happening) => {
                    seq += 1;
                    let told = told(&runtime, &root, &happening, seq).await;
                    let _ = tx.send(message(FromPlugin::Event(told))).await;
                }
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return,
            },
            Some(message) = rx.recv() => if sink.send(Message::text(message.to_string())).await.is_err() {
                return;
            },
        }
    }
}

async fn heard(stream: &mut SplitStream<WebSocketStream<TcpStream>>) -> Option<ToPlugin> {
    loop {
        match stream.next().await?.ok()? {
            Message::Text(text) => return serde_json::from_str(&text).ok(),
            Message::Close(_) => return None,
            _ => {}
        }
    }
}

async fn serve(runtime: &BuiltinEditor, root: &GrantRoot, cmd: CommandMessage) -> Result<Value, Refusal> {
    let holder = uuid::Uuid::parse_str(&cmd.session_id).expect("sessions have ids").as_u128();
    let within = Duration::from_millis(cmd.deadline_ms);
    let doing = done(runtime, root, &cmd.action, cmd.args, holder);
    let mut result =
        tokio::time::timeout(within, doing).await.unwrap_or_else(|_| Err(Refusal::new(Code::TimedOut, "late")))?;
    // There is a window here.
    if result.get("ui").is_some() {
        result["ui"] = true.into();
    }
    Ok(result)
}

async fn done(
    runtime: &BuiltinEditor,
    root: &GrantRoot,
    verb: &str,
    args: Map<String, Value>,
    holder: u128,
) -> Result<Value, Refusal> {
    let verb = VerbSpec::named(verb).ok_or_else(|| Refusal::new(Code::Unsupported, "no such verb"))?;
    let holder = GrantHolder { id: holder, name: "editor".to_owned(), ..GrantHolder::default() };
    let order = VerbOrder { verb, args, roots: vec![root.clone()], holder };
    runtime.prepare(order).await?.run(ProgressSink::unseen()).await
}

/// What happened, with the text that the daemon keeps.
async fn told(runtime: &BuiltinEditor, root: &GrantRoot, happening: &Arc<EditorEvent>, seq: u64) -> EventMessage {
    let mut data = members(happening.data.clone());
    if happening.event.name == "buffer_changed" {
        let path = data["path"].clone();
        let opened = done(runtime, root, "open_file", Map::from_iter([("path".to_owned(), path)]), 1).await;
        if let Ok(opened) = opened {
            for (name, from) in [("text", "content"), ("version", "version"), ("is_dirty", "is_dirty")] {
                data.insert(name.to_owned(), opened[from].clone());
            }
        }
    }
    EventMessage { event: happening.event.name.to_owned(), seq, data }
}

async fn state_of(runtime: &BuiltinEditor, root: &GrantRoot, seq: u64) -> StateMessage {
    let listed = done(runtime, root, "get_buffers", Map::new(), 1).await.expect("buffers are listed");
    let mut buffers = Vec::new();
    for buffer in listed["buffers"].as_array().into_iter().flatten() {
        let path = buffer["path"].as_str().expect("a path").to_owned();
        let args = members(json!({"path": path}));
        let Ok(opened) = done(runtime, root, "open_file", args, 1).await else { continue };
        let is_dirty = buffer["is_dirty"] == true;
        let text = opened["content"].as_str().filter(|_| is_dirty).map(str::to_owned);
        buffers.push(OpenBuffer { path, version: opened["version"].as_u64().unwrap_or(0), is_dirty, text });
    }
    StateMessage { seq, buffers }
}

fn message(message: FromPlugin) -> Value {
    serde_json::to_value(message).expect("it is JSON")
}

fn members(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}
