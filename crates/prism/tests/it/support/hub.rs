//! The hub of a real daemon, and servers behind it that answer as a function says.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
};

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{
    Client, Daemon, Launch, Modern, NEWEST,
    upstream::{Asked, Flow, Upstream},
};

/// The tools of Prism's own server, as they are listed.
pub(crate) const PRISM: [&str; 17] = [
    "prism_destinations",
    "prism_start",
    "prism_checkpoint",
    "prism_wrap",
    "prism_status",
    "prism_signal_send",
    "prism_signals_pending",
    "prism_signals_wait",
    "prism_signal_reply",
    "prism_signal_recall",
    "prism_signal_waive",
    "prism_obligations",
    "prism_runtime_diagnostics",
    "prism_request_access",
    "prism_access_status",
    "prism_access_narrow",
    "prism_access_revoke",
];

/// The lists that there are: the method, the member that holds the items, and the one that names an item.
pub(crate) const LISTS: [(&str, &str, &str); 4] = [
    ("tools/list", "tools", "name"),
    ("prompts/list", "prompts", "name"),
    ("resources/list", "resources", "uri"),
    ("resources/templates/list", "resourceTemplates", "uriTemplate"),
];

/// A daemon in front of these destinations.
pub(crate) async fn serve(config: &[String]) -> Daemon {
    Launch::serve(&config.concat()).start().await
}

impl Daemon {
    /// A client of the hub.
    pub(crate) fn hub(&self) -> Client {
        self.client_at("/mcp")
    }

    /// A client of the hub of the modern era.
    pub(crate) fn modern_hub(&self) -> Modern {
        Modern::new(self.hub())
    }
}

impl Client {
    /// Asks for something that has to be given, and returns the result.
    pub(crate) async fn result(&self, method: &str, params: Value) -> Value {
        let reply = self.ask(method, params).await;
        let status = reply.status;
        let mut answer = reply.answer().await;
        assert_eq!(status, 200, "{method}: {answer}");
        assert!(answer["result"].is_object(), "{method}: {answer}");
        answer["result"].take()
    }

    /// Asks for something that has to be refused by the protocol, and returns the error.
    pub(crate) async fn error(&self, method: &str, params: Value) -> Value {
        let reply = self.ask(method, params).await;
        let status = reply.status;
        let mut answer = reply.answer().await;
        assert_eq!(status, 200, "{method}: {answer}");
        assert!(answer["error"].is_object(), "{method}: {answer}");
        answer["error"].take()
    }

    /// The names of all tools.
    pub(crate) async fn tools(&self) -> Vec<String> {
        names(&self.result("tools/list", json!({})).await, "tools", "name")
    }
}

/// The names of what a result lists.
pub(crate) fn names(result: &Value, list: &str, name: &str) -> Vec<String> {
    let items = result[list].as_array().unwrap_or_else(|| panic!("no {list}: {result}"));
    items.iter().map(|item| item[name].as_str().expect("an item has a name").to_owned()).collect()
}

/// The destinations that a list says are missing.
pub(crate) fn unavailable(result: &Value) -> Vec<String> {
    let missing = result["_meta"]["prism/unavailable"].as_array().cloned().unwrap_or_default();
    missing.iter().map(|member| member["destination"].as_str().expect("it has a name").to_owned()).collect()
}

/// What a server answers a method with these params, or the error that it does.
type Answers = dyn Fn(String, &Value) -> Answering + Send + Sync;

/// An answer that may take its time.
pub(crate) type Answering = Pin<Box<dyn Future<Output = Result<Value, Value>> + Send>>;

/// A server over HTTP whose answers a function makes.
pub(crate) struct Scripted {
    url: String,
    streams: Arc<Mutex<Vec<Arc<Flow>>>>,
    _task: JoinSet<()>,
}

impl Scripted {
    /// One of the legacy era.
    pub(crate) async fn start(answers: impl Fn(&str, &Value) -> Result<Value, Value> + Send + Sync + 'static) -> Self {
        Self::start_waiting(move |method, params| {
            let answer = answers(&method, params);
            Box::pin(async move { answer })
        })
        .await
    }

    /// One that may take its time with each answer.
    pub(crate) async fn start_waiting(answers: impl Fn(String, &Value) -> Answering + Send + Sync + 'static) -> Self {
        let mut upstream = Upstream::start().await;
        let (url, streams) = (upstream.url(), Arc::<Mutex<Vec<Arc<Flow>>>>::default());
        let (mut task, kept, answers) = (JoinSet::new(), streams.clone(), Arc::new(answers));
        task.spawn(async move {
            let mut answering = JoinSet::new();
            loop {
                let asked = upstream.next_or_never().await;
                let (answers, kept) = (answers.clone(), kept.clone());
                answering.spawn(async move { answer(asked, &*answers, &kept).await });
            }
        });
        Self { url, streams, _task: task }
    }

    /// One that lists these tools.
    pub(crate) async fn with_tools(tools: Value) -> Self {
        Self::start(move |method, params| match method {
            "tools/list" => Ok(json!({"tools": tools})),
            "tools/call" => Ok(json!({"content": [{"type": "text", "text": params["name"]}]})),
            _ => Err(json!({"code": -32601, "message": "no"})),
        })
        .await
    }

    /// It as a destination in a config file.
    pub(crate) fn destination(&self, name: &str, settings: &str) -> String {
        format!("[destination.{name}]\nurl = {:?}\n{settings}\n", self.url)
    }

    /// Says something on every stream that is open.
    pub(crate) async fn say(&self, note: &Value) {
        let streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for stream in streams {
            stream.event(note).await;
        }
    }

    /// How many streams were opened.
    pub(crate) fn streams(&self) -> usize {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

async fn answer(asked: Asked, answers: &Answers, streams: &Mutex<Vec<Arc<Flow>>>) {
    let method = asked.what().to_owned();
    match method.as_str() {
        "GET" => {
            let flow = Arc::new(asked.events());
            streams.lock().unwrap_or_else(PoisonError::into_inner).push(flow);
        }
        "DELETE" => asked.status(204).await,
        "server/discover" => asked.status(400).await,
        "initialize" => {
            let changes = json!({"listChanged": true});
            let capabilities = json!({"tools": changes, "prompts": changes, "resources": changes});
            let server = json!({"name": "scripted", "version": "1"});
            let hello = json!({"protocolVersion": NEWEST, "capabilities": capabilities, "serverInfo": server});
            asked.result(hello).await;
        }
        _ if asked.body.get("id").is_none() => asked.status(202).await,
        _ => match answers(method, &asked.body["params"]).await {
            Ok(result) => asked.result(result).await,
            Err(error) => asked.error(200, error).await,
        },
    }
}
