//! What a tool answers, and how it fails.

use serde::Serialize;
use serde_json::{Value, json};

/// What a tool answers.
#[derive(Clone, Debug, Default)]
pub struct ToolReply {
    content: Vec<Value>,
    structured: Option<Value>,
    failed: bool,
}

/// Why a request has no result of the usual kind.
#[derive(Debug)]
pub struct CallFailure(pub(super) FailureKind);

#[derive(Debug)]
pub(super) enum FailureKind {
    /// The tool failed; the model is told why.
    Trouble(String),
    /// The request failed; the client is told why.
    Error { code: i32, message: String, data: Value },
    /// The client is asked first, by this result (2026-07-28).
    Asks(Value),
    /// Nobody waits for an answer any more.
    Cancelled,
}

pub(super) const INVALID_REQUEST: i32 = -32600;
pub(super) const UNKNOWN_METHOD: i32 = -32601;
pub(super) const INVALID_PARAMS: i32 = -32602;
pub(super) const INTERNAL: i32 = -32603;
/// Legacy code of a resource that is missing; the modern era has none of its own.
pub(super) const NO_RESOURCE: i32 = -32002;

// === impl ToolReply ===

impl ToolReply {
    pub fn text(text: impl Into<String>) -> Self {
        Self::blocks(vec![json!({"type": "text", "text": text.into()})])
    }

    /// Answers a value as `structuredContent`, and as one text block for clients that do not know it.
    pub fn structured(value: impl Serialize) -> Self {
        match serde_json::to_value(value) {
            Ok(value) => Self { structured: Some(value.clone()), ..Self::text(value.to_string()) },
            // Only a map whose keys are no texts: a fault of the tool, which the model may work around.
            Err(error) => Self { failed: true, ..Self::text(format!("the answer cannot be written as JSON: {error}")) },
        }
    }

    /// Answers content blocks as they are.
    pub fn blocks(content: Vec<Value>) -> Self {
        Self { content, structured: None, failed: false }
    }

    /// Adds `structuredContent` to blocks that say the same in another way.
    #[must_use]
    pub fn with_structured(self, value: Value) -> Self {
        Self { structured: Some(value), ..self }
    }

    /// The same as what a tool says that failed (`isError`).
    #[must_use]
    pub fn failed(self) -> Self {
        Self { failed: true, ..self }
    }

    fn trouble(why: String) -> Self {
        Self { failed: true, ..Self::text(why) }
    }

    pub(super) fn into_result(self) -> Value {
        let mut result = json!({"content": self.content});
        if let Some(value) = self.structured {
            result["structuredContent"] = value;
        }
        if self.failed {
            result["isError"] = true.into();
        }
        result
    }
}

// === impl CallFailure ===

impl CallFailure {
    /// Fails the tool, not the request: the model reads why, and may do better.
    pub fn trouble(why: impl Into<String>) -> Self {
        Self(FailureKind::Trouble(why.into()))
    }

    /// Fails the request with a JSON-RPC error.
    pub fn error(code: i32, message: impl Into<String>) -> Self {
        Self(FailureKind::Error { code, message: message.into(), data: Value::Null })
    }

    /// Refuses parameters that make no sense.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::error(INVALID_PARAMS, message)
    }

    /// Says that there is no such resource.
    pub fn no_resource(uri: &str) -> Self {
        Self::error(NO_RESOURCE, "resource not found").with_data(json!({"uri": uri}))
    }

    /// Adds `data` to an error; other failures have no place for it.
    #[must_use]
    pub fn with_data(mut self, more: Value) -> Self {
        if let FailureKind::Error { data, .. } = &mut self.0 {
            *data = more;
        }
        self
    }

    pub(super) fn unknown_method(method: &str) -> Self {
        Self::error(UNKNOWN_METHOD, format!("method not found: {method}"))
    }

    pub(super) fn cancelled() -> Self {
        Self(FailureKind::Cancelled)
    }

    /// What became of a call, for the record.
    pub(super) fn outcome(&self) -> &'static str {
        match self.0 {
            FailureKind::Trouble(_) => "tool_error",
            FailureKind::Error { .. } => "error",
            FailureKind::Asks(_) => "input_required",
            FailureKind::Cancelled => "cancelled",
        }
    }

    /// The result that tells of trouble, if it is that.
    pub(super) fn or_reply(self) -> Result<ToolReply, Self> {
        match self.0 {
            FailureKind::Trouble(why) => Ok(ToolReply::trouble(why)),
            kind => Err(Self(kind)),
        }
    }
}
