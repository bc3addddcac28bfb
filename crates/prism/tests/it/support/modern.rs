//! A client of the modern era (2026-07-28): each request says all of it anew, in its body and in its headers.

use hyper::Method;
use serde_json::{Value, json};

use super::{
    client::{Client, request, result_text},
    http::{Events, Reply, Request},
};

/// The revision of the modern era.
pub(crate) const MODERN: &str = "2026-07-28";
/// Where a listen's messages say which one they are for.
pub(crate) const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// A client of one destination. There is no session: what it can do, it says with every request.
#[derive(Clone, Debug)]
pub(crate) struct Modern {
    client: Client,
    capabilities: Value,
    name: String,
    level: Option<&'static str>,
}

impl Modern {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, capabilities: json!({}), name: "it".to_owned(), level: None }
    }

    /// The same client at another path.
    pub(crate) fn client_at(&self, path: &str) -> Self {
        Self { client: self.client.at(path), ..self.clone() }
    }

    /// The same client with other capabilities.
    pub(crate) fn can(&self, capabilities: Value) -> Self {
        Self { capabilities, ..self.clone() }
    }

    /// Another client, by its name.
    pub(crate) fn named(&self, name: &str) -> Self {
        Self { name: name.to_owned(), ..self.clone() }
    }

    /// The same client, which wants log notes from this level on.
    pub(crate) fn at_level(&self, level: &'static str) -> Self {
        Self { level: Some(level), ..self.clone() }
    }

    /// What every request says of its client.
    pub(crate) fn meta(&self) -> Value {
        let mut meta = json!({
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": self.capabilities,
            "io.modelcontextprotocol/clientInfo": {"name": self.name, "version": "1"},
        });
        if let Some(level) = self.level {
            meta["io.modelcontextprotocol/logLevel"] = level.into();
        }
        meta
    }

    /// A request with its envelope; other members of `_meta` stay.
    pub(crate) fn message(&self, method: &str, mut params: Value) -> Value {
        let Value::Object(meta) = self.meta() else { unreachable!("it is one") };
        for (name, value) in meta {
            params["_meta"][name] = value;
        }
        request(method, params)
    }

    /// The call of a tool.
    pub(crate) fn tool(&self, name: &str, arguments: Value) -> Value {
        self.message("tools/call", json!({"name": name, "arguments": arguments}))
    }

    /// The call of the demo server's tool that reports progress.
    pub(crate) fn progress(&self, token: Value, steps: u32, ms: u32) -> Value {
        let arguments = json!({"steps": steps, "ms": ms});
        let meta = json!({"progressToken": token});
        self.message("tools/call", json!({"name": "progress", "arguments": arguments, "_meta": meta}))
    }

    /// A message on its way, with the headers that fit to it.
    pub(crate) fn request(&self, message: &Value) -> Request {
        let request = self.client.request(Method::POST).header("mcp-protocol-version", MODERN);
        let request = match message["method"].as_str() {
            Some(method) => request.header("mcp-method", method),
            None => request,
        };
        let params = &message["params"];
        let request = match params["name"].as_str().or(params["uri"].as_str()) {
            Some(name) => request.header("mcp-name", name),
            None => request,
        };
        request.body(message.to_string())
    }

    /// A request without a body, of this era.
    pub(crate) fn bare(&self, method: Method) -> Request {
        self.client.request(method).header("mcp-protocol-version", MODERN)
    }

    pub(crate) async fn post(&self, message: &Value) -> Reply {
        self.request(message).send().await
    }

    pub(crate) async fn ask(&self, method: &str, params: Value) -> Reply {
        self.post(&self.message(method, params)).await
    }

    /// Asks for something that has to be given, and returns the result.
    pub(crate) async fn result(&self, method: &str, params: Value) -> Value {
        let reply = self.ask(method, params).await;
        let status = reply.status;
        let mut answer = reply.answer().await;
        assert_eq!(status, 200, "{method}: {answer}");
        assert!(answer["result"].is_object(), "{method}: {answer}");
        answer["result"].take()
    }

    /// The result of a tool that answers, or asks.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Value {
        self.result("tools/call", json!({"name": tool, "arguments": arguments})).await
    }

    /// Calls a tool that has to succeed, and returns its text.
    pub(crate) async fn text(&self, tool: &str, arguments: Value) -> String {
        result_text(&json!({"result": self.call(tool, arguments).await})).to_owned()
    }

    /// The pid of the child that serves this call.
    pub(crate) async fn child(&self) -> u32 {
        self.text("whoami", json!({})).await.parse().expect("whoami answers a pid")
    }

    /// The same call again, with answers to what was asked.
    pub(crate) async fn retry(&self, tool: &str, arguments: Value, asked: &Value, answers: Value) -> Value {
        let reply = self.post(&self.retried(tool, arguments, &asked["requestState"], answers)).await;
        assert_eq!(reply.status, 200);
        reply.answer().await
    }

    pub(crate) fn retried(&self, tool: &str, arguments: Value, state: &Value, answers: Value) -> Value {
        let mut params = json!({"name": tool, "arguments": arguments, "inputResponses": answers});
        if !state.is_null() {
            params["requestState"] = state.clone();
        }
        self.message("tools/call", params)
    }

    /// Opens a stream of changes.
    pub(crate) async fn listen(&self, id: Value, wanted: Value) -> Events {
        let mut message = self.message("subscriptions/listen", json!({"notifications": wanted}));
        message["id"] = id;
        let reply = self.post(&message).await;
        assert_eq!(reply.status, 200);
        reply.events()
    }
}
