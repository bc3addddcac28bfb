//! Agents of the mesh, as their programs are: an MCP session at the hub or at Prism's own server, a modern client, a script.

use hyper::Method;
use serde_json::{Value, json};

use super::{Client, Daemon, Events, Home, Launch, Modern, Reply, Request, client::request, destination, until};

/// What is updated when a signal has come.
pub(crate) const PENDING: &str = "prism://signals/pending";

/// Where an agent calls Prism's verbs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum At {
    Hub,
    Own,
    Modern,
}

/// An agent, or a program that would be one.
#[derive(Clone)]
pub(crate) struct Agent {
    by: By,
    /// Its name and its agent session, once it has started.
    name: String,
    pub(crate) session: String,
    /// Who looks on.
    onlooker: Client,
}

#[derive(Clone)]
enum By {
    Legacy(Client),
    Modern(Modern),
    Script(Client),
}

/// The stream of a session, whose client answers pings as clients do.
pub(crate) struct Ears {
    client: Client,
    events: Events,
}

/// A daemon with a demo server behind its hub, and these settings of the mesh.
pub(crate) async fn mesh(settings: &str) -> Daemon {
    mesh_in(&Home::new(), settings).await
}

/// The same in a home that another may have been in before.
pub(crate) async fn mesh_in(home: &Home, settings: &str) -> Daemon {
    let config = format!("{}\n[mesh]\ndesktop = false\n{settings}\n", destination("d", &[], ""));
    Launch::serve(&config).home(home).start().await
}

// === impl At ===

impl At {
    pub(crate) const ALL: [Self; 3] = [Self::Hub, Self::Own, Self::Modern];
}

// === impl Daemon ===

impl Daemon {
    /// A client that has started as an agent.
    pub(crate) async fn agent(&self, at: At, name: &str) -> Agent {
        let mut agent = self.window(at).await;
        agent.start(json!({"agent": name})).await;
        agent
    }

    /// A client that has not started yet.
    pub(crate) async fn window(&self, at: At) -> Agent {
        let by = match at {
            At::Hub => By::Legacy(self.hub().initialize().await),
            At::Own => By::Legacy(self.client_at("/prism/mcp").initialize().await),
            At::Modern => By::Modern(self.modern_hub()),
        };
        self.agent_by(by)
    }

    fn agent_by(&self, by: By) -> Agent {
        Agent::new(by, self.client_at("/prism/mesh"))
    }

    /// The session of a client at this daemon, whoever opened it where.
    pub(crate) fn agent_again(&self, agent: &Agent) -> Agent {
        let by = match &agent.by {
            By::Legacy(client) => By::Legacy(client.moved(self.place())),
            By::Modern(_) => By::Modern(self.modern_hub()),
            By::Script(_) => By::Script(self.person_at("/prism/mesh")),
        };
        Agent { name: agent.name.clone(), session: agent.session.clone(), ..self.agent_by(by) }
    }

    /// A program of the user's that has the token.
    pub(crate) fn script(&self) -> Agent {
        self.agent_by(By::Script(self.person_at("/prism/mesh")))
    }
}

// === impl Agent ===

impl Agent {
    /// A client that has a session.
    pub(crate) fn of_session(client: Client) -> Self {
        let onlooker = client.clone();
        Self::new(By::Legacy(client), onlooker)
    }

    pub(crate) fn of_modern(modern: Modern, onlooker: &Client) -> Self {
        Self::new(By::Modern(modern), onlooker.clone())
    }

    pub(crate) fn of_script(client: &Client) -> Self {
        Self::new(By::Script(client.clone()), client.clone())
    }

    fn new(by: By, onlooker: Client) -> Self {
        Self { by, name: String::new(), session: String::new(), onlooker }
    }

    /// Whether it is known by its MCP session. Who is not says with each call who it is.
    pub(crate) fn has_session(&self) -> bool {
        matches!(self.by, By::Legacy(_))
    }

    /// Registers it.
    pub(crate) async fn start(&mut self, arguments: Value) -> Value {
        let started = self.does("start", arguments).await;
        self.session = started["session"].as_str().expect("a start gives a session").to_owned();
        self.name = text(&started["agent"]);
        started
    }

    /// Calls a verb that has to succeed.
    pub(crate) async fn does(&self, verb: &str, arguments: Value) -> Value {
        self.attempt(verb, arguments.clone()).await.unwrap_or_else(|why| panic!("{verb} {arguments}: {why}"))
    }

    /// Calls a verb that has to be refused. Returns the words, with the code in brackets.
    pub(crate) async fn refused(&self, verb: &str, arguments: Value) -> String {
        match self.attempt(verb, arguments.clone()).await {
            Ok(done) => panic!("{verb} {arguments}: {done}"),
            Err(why) => why,
        }
    }

    pub(crate) async fn attempt(&self, verb: &str, arguments: Value) -> Result<Value, String> {
        let reply = self.reply(verb, arguments).await;
        read(&self.by, reply.status, reply.answer().await)
    }

    /// Everything that comes back for a verb, byte by byte.
    pub(crate) async fn raw(&self, verb: &str, arguments: Value) -> String {
        self.reply(verb, arguments).await.text().await
    }

    async fn reply(&self, verb: &str, arguments: Value) -> Reply {
        self.request(verb, arguments).send().await
    }

    fn request(&self, verb: &str, arguments: Value) -> Request {
        self.request_with_id(verb, arguments).1
    }

    /// The request that calls a verb, and its id.
    pub(crate) fn request_with_id(&self, verb: &str, arguments: Value) -> (Value, Request) {
        let (message, request) = match &self.by {
            By::Legacy(client) => {
                let message = request("tools/call", json!({"name": tool(verb), "arguments": arguments}));
                let request = client.request(Method::POST).body(message.to_string());
                (message, request)
            }
            By::Modern(modern) => {
                let message = modern.tool(tool(verb), self.named(verb, arguments));
                let request = modern.request(&message);
                (message, request)
            }
            By::Script(client) => {
                let client = client.at(&format!("/prism/mesh/{verb}"));
                (Value::Null, client.request(Method::POST).body(arguments.to_string()))
            }
        };
        (message["id"].clone(), request)
    }

    /// What comes back for a verb of a daemon that may die over it: `None` if it did.
    pub(crate) async fn survive(&self, verb: &str, arguments: Value) -> Option<Result<Value, String>> {
        let reply = self.request(verb, arguments).attempt().await.ok()?;
        let (status, is_stream) = (reply.status, reply.is_stream());
        let answer = match is_stream {
            true => {
                let (mut events, mut last) = (reply.events(), None);
                while let Some(event) = events.attempt_next().await.ok()? {
                    last = Some(event).filter(|event| !event.data.is_empty()).or(last);
                }
                last?.json()
            }
            false => serde_json::from_str(&reply.attempt_text().await.ok()?).expect("an answer is JSON"),
        };
        Some(read(&self.by, status, answer))
    }

    /// A modern client says with each call who it is.
    fn named(&self, verb: &str, mut arguments: Value) -> Value {
        let alone = matches!(verb, "start" | "status") || self.session.is_empty();
        if !alone && arguments.get("session").is_none() {
            arguments["session"] = self.session.clone().into();
        }
        arguments
    }

    /// Opens its stream, on which bells ring. Only a session of the legacy era has one.
    pub(crate) async fn listen(&self) -> Ears {
        Ears::open(self.client().clone()).await
    }

    /// The client of a session.
    pub(crate) fn client(&self) -> &Client {
        match &self.by {
            By::Legacy(client) | By::Script(client) => client,
            By::Modern(_) => panic!("a modern client has no session"),
        }
    }

    /// All that waits, taken page by page.
    pub(crate) async fn drain(&self) -> Vec<Value> {
        let mut all = Vec::new();
        loop {
            let mut page = self.does("pending", json!({})).await;
            all.append(page["signals"].as_array_mut().expect("a page has signals"));
            if page["remaining"] == 0 {
                return all;
            }
        }
    }

    /// How it can be reached, as somebody sees it who looks on: it has called nothing.
    pub(crate) async fn seen(&self) -> Value {
        let asked = json!({"agent": self.name}).to_string();
        let reply = self.onlooker.at("/prism/mesh/diagnostics").request(Method::POST).body(asked).send().await;
        assert_eq!(reply.status, 200);
        reply.json().await
    }

    /// What became of its last bells, the newest first: path and result.
    pub(crate) async fn bells(&self) -> Vec<(String, String)> {
        let told = self.seen().await;
        let bells = told["recent_bells"].as_array().expect("there is a list").iter();
        bells.map(|bell| (text(&bell["path"]), text(&bell["result"]))).collect()
    }

    /// Waits until this is what became of its last bell.
    pub(crate) async fn until_bell(&self, path: &str, result: &str) {
        let wanted = (path.to_owned(), result.to_owned());
        until(&format!("the last bell is {wanted:?}"), async || self.bells().await.first() == Some(&wanted)).await;
    }

    pub(crate) async fn support(&self) -> String {
        text(&self.seen().await["surface_support"])
    }

    pub(crate) async fn until_support(&self, support: &str) {
        until(&format!("support is {support}"), async || self.support().await == support).await;
    }
}

// === impl Ears ===

impl Ears {
    /// Opens the stream of a session.
    pub(crate) async fn open(client: Client) -> Self {
        let events = client.listen().await;
        Self { client, events }
    }

    /// Answers pings for as long as it can, and hears nothing else.
    pub(crate) async fn answer_pings(mut self) {
        while let Ok(Some(event)) = self.events.attempt_next().await {
            if !event.data.is_empty() && event.json()["method"] == "ping" {
                let pong = json!({"jsonrpc": "2.0", "id": event.json()["id"], "result": {}});
                let _ = self.client.request(Method::POST).body(pong.to_string()).attempt().await;
            }
        }
    }

    /// The next thing that is said on the stream, pings aside.
    pub(crate) async fn hear(&mut self) -> Value {
        loop {
            let message = self.events.message().await;
            if message["method"] != "ping" {
                return message;
            }
            let pong = json!({"jsonrpc": "2.0", "id": message["id"], "result": {}});
            assert_eq!(self.client.post(&pong).await.status, 202);
        }
    }

    /// The next thing that is said is the bell, and has no content.
    pub(crate) async fn bell(&mut self) {
        assert_eq!(self.hear().await, bell());
    }

    /// The same of a daemon that has just begun, and says that its lists may be others.
    pub(crate) async fn bell_past_changes(&mut self) {
        let mut said = self.hear().await;
        while text(&said["method"]).ends_with("/list_changed") {
            said = self.hear().await;
        }
        assert_eq!(said, bell());
    }

    /// Nothing was said so far: what comes next is what this brings about at every session of the hub.
    pub(crate) async fn nothing(&mut self, by: &Agent) {
        by.client().text("d__change", json!({"what": "tools"})).await;
        self.mark().await;
    }

    /// The next thing that is said is that tools have changed.
    pub(crate) async fn mark(&mut self) {
        assert_eq!(self.hear().await["method"], "notifications/tools/list_changed");
    }
}

fn bell() -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": PENDING}})
}

/// The tool of a verb.
fn tool(verb: &str) -> &'static str {
    match verb {
        "start" => "prism_start",
        "checkpoint" => "prism_checkpoint",
        "wrap" => "prism_wrap",
        "status" => "prism_status",
        "send" => "prism_signal_send",
        "pending" => "prism_signals_pending",
        "wait" => "prism_signals_wait",
        "reply" => "prism_signal_reply",
        "recall" => "prism_signal_recall",
        "waive" => "prism_signal_waive",
        "obligations" => "prism_obligations",
        "diagnostics" => "prism_runtime_diagnostics",
        _ => panic!("no tool for {verb}"),
    }
}

fn read(by: &By, status: u16, mut answer: Value) -> Result<Value, String> {
    if let By::Script(_) = by {
        return match status {
            200 => Ok(answer),
            _ => Err(format!("{} ({})", text(&answer["error"]["message"]), text(&answer["error"]["code"]))),
        };
    }
    assert_eq!(status, 200, "{answer}");
    let result = &answer["result"];
    match result["isError"] == true || result.is_null() {
        true => Err(result["content"][0]["text"].as_str().map_or_else(|| answer.to_string(), str::to_owned)),
        false => Ok(answer["result"]["structuredContent"].take()),
    }
}

/// A text in an answer; empty if there is none.
pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
