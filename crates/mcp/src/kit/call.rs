//! What a running call can do: say how far it is, log, ask, and hear that nobody waits any more.

use std::{
    future::pending,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use prism_core::mcp::level::LogLevel;
use serde_json::{Map, Value, json};
use tokio::sync::watch;
use uuid::Uuid;

use super::{
    ask::Answers,
    params::{CallerMark, CallingClient, RequestParams},
    room::{Peer, message},
};

/// One request that is being served.
pub struct ServerCall {
    pub(super) room: Arc<Peer>,
    /// The request's id as our number, if it is one.
    pub(super) about: Option<u64>,
    pub(super) correlation_id: Uuid,
    /// Who calls, in the modern era. In the legacy one that is the session's affair.
    pub(super) caller: Option<CallingClient>,
    cancelled: watch::Receiver<bool>,
    pub(super) params: RequestParams,
    /// What the client has answered, as far as this run has asked (modern).
    pub(super) answers: Mutex<Answers>,
}

impl ServerCall {
    pub(super) fn new(
        room: Arc<Peer>,
        about: Option<u64>,
        params: RequestParams,
        caller: Option<CallingClient>,
        cancelled: watch::Receiver<bool>,
    ) -> Self {
        let given = params.meta.correlation_id.as_ref().and_then(Value::as_str);
        let given = given.and_then(|text| Uuid::try_parse(text).ok());
        let correlation_id = given.unwrap_or_else(Uuid::now_v7);
        Self { room, about, correlation_id, caller, cancelled, params, answers: Mutex::default() }
    }

    /// The id that everything about this call carries, in its notes, its result and Prism's own log (N-06).
    pub fn correlation_id(&self) -> Uuid {
        self.correlation_id
    }

    /// Reports how far the call is, if its client wants to know. Never waits: the oldest are dropped while the client does
    /// not keep up, see [`Self::room`].
    pub fn progress(&self, done: u64, total: Option<u64>, text: &str) {
        let Some(token) = &self.params.meta.token else { return };
        let mut params = json!({"progressToken": token, "progress": done, "_meta": self.meta()});
        if let Some(total) = total {
            params["total"] = total.into();
        }
        if !text.is_empty() {
            params["message"] = text.into();
        }
        self.note("notifications/progress", params);
    }

    /// Whether its client hears of progress, and so knows that the call is not lost.
    pub fn hears_progress(&self) -> bool {
        self.params.meta.token.is_some()
    }

    /// Logs to the client, if it wants notes of that level (N-05). Never waits, as above.
    /// What `meta` says stands beside the call's correlation id, or in its place.
    pub fn log(&self, level: LogLevel, logger: Option<&str>, data: Value, meta: Option<Map<String, Value>>) {
        if !self.wants(level) {
            return;
        }
        let mut own = self.meta();
        for (name, value) in meta.into_iter().flatten() {
            own[name] = value;
        }
        let mut params = json!({"level": level.name(), "data": data, "_meta": own});
        if let Some(logger) = logger {
            params["logger"] = logger.into();
        }
        self.note("notifications/message", params);
    }

    /// Whether the client wants notes of this level: the session's, or in the modern era this request's own.
    pub fn wants(&self, level: LogLevel) -> bool {
        self.level().is_some_and(|wanted| level >= wanted)
    }

    /// The lowest level that the client wants notes of; `None` if it wants none.
    pub fn level(&self) -> Option<LogLevel> {
        match &self.caller {
            Some(caller) => caller.level,
            None => Some(self.room.state().level),
        }
    }

    /// Waits until there is room for a note. For a tool that has many to tell and none to lose.
    pub async fn room(&self) {
        self.room.out.room().await;
    }

    /// Waits until all that was said before has left through the pipe. Not for a connection within this process.
    pub async fn drained(&self) {
        self.room.out.drained().await;
    }

    /// Returns once the call was cancelled.
    pub async fn cancelled(&self) {
        let mut cancelled = self.cancelled.clone();
        if cancelled.wait_for(|is| *is).await.is_err() {
            // Answered meanwhile: it never will be.
            pending::<()>().await;
        }
    }

    pub fn is_cancelled(&self) -> bool {
        *self.cancelled.borrow()
    }

    /// What the client said of itself: the parameters of its `initialize`, or the like of them.
    pub fn client(&self) -> Value {
        match &self.caller {
            Some(caller) => caller.introduction(),
            None => self.room.state().client.clone(),
        }
    }

    /// Who calls, by the door's word and not by the client's own. `None` where no door is, as on stdio.
    pub fn caller_mark(&self) -> Option<CallerMark> {
        CallerMark::read(self.params.meta.caller.as_ref()?)
    }

    /// Whether it is a call of the modern era.
    pub fn is_modern(&self) -> bool {
        self.caller.is_some()
    }

    /// The resources that this connection watches.
    pub fn watched(&self) -> Vec<String> {
        self.room.watched()
    }

    fn meta(&self) -> Value {
        json!({"correlation_id": self.correlation_id.to_string()})
    }

    fn note(&self, method: &str, params: Value) {
        self.room.out.note(self.about, Bytes::from(message(method, params).to_string()));
    }
}
