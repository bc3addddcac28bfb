//! A client of 2024-11-05: one stream that everything comes on, and a place to post to.

use hyper::Method;
use serde_json::{Value, json};

use super::{
    client::{Client, request},
    http::{Event, Events, Reply, Request},
};

/// A client with its stream. Dropping it closes that.
pub(crate) struct Plain {
    pub(crate) stream: Events,
    /// Where it was told to post.
    pub(crate) endpoint: String,
    client: Client,
}

impl Plain {
    /// Opens the stream of a client whose path is that of the stream.
    pub(crate) async fn open(client: Client) -> Self {
        let reply = client.request(Method::GET).send().await;
        assert_eq!(reply.status, 200);
        let mut stream = reply.events();
        let Event { name, id, data, .. } = stream.next().await.expect("a stream begins with where to post");
        assert_eq!((name.as_deref(), id), (Some("endpoint"), None));
        Self { stream, endpoint: data.clone(), client: client.at(&data) }
    }

    /// Opens the stream and the session.
    pub(crate) async fn initialize(client: Client, capabilities: Value) -> Self {
        let mut plain = Self::open(client).await;
        let info = json!({"name": "it", "version": "1"});
        let params = json!({"protocolVersion": "2024-11-05", "capabilities": capabilities, "clientInfo": info});
        let answer = plain.answer("initialize", params).await;
        assert_eq!(answer["result"]["protocolVersion"], "2024-11-05", "{answer}");
        assert_eq!(plain.tell("notifications/initialized", json!({})).await.status, 202);
        plain
    }

    pub(crate) fn request(&self) -> Request {
        self.client.request(Method::POST)
    }

    pub(crate) async fn post(&self, message: &Value) -> Reply {
        self.client.post(message).await
    }

    pub(crate) async fn tell(&self, method: &str, params: Value) -> Reply {
        self.post(&json!({"jsonrpc": "2.0", "method": method, "params": params})).await
    }

    /// Posts a request, and leaves what comes of it to the caller.
    pub(crate) async fn send(&self, method: &str, params: Value) -> Value {
        let message = request(method, params);
        let reply = self.post(&message).await;
        assert_eq!((reply.status, reply.is_stream()), (202, false));
        message["id"].clone()
    }

    /// Posts a request, and returns the next message, which has to be its answer.
    pub(crate) async fn answer(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params).await;
        let answer = self.stream.message().await;
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.answer("tools/call", json!({"name": tool, "arguments": arguments})).await
    }
}
