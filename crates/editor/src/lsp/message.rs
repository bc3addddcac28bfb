//! JSON-RPC as LSP has it: what a server says, told apart, and what it is told. How messages lie on the stream is in `frame.rs`.

use serde::Deserialize;
use serde_json::{Value, json};

use super::frame;

/// What a server says.
#[derive(Debug, PartialEq)]
pub(crate) enum LspMessage {
    Answer {
        id: i64,
        outcome: Result<Value, LspError>,
    },
    /// It wants an answer. Its ids are its own business.
    Question {
        id: Value,
        method: String,
        params: Value,
    },
    Note {
        method: String,
        params: Value,
    },
}

/// Why a server does not do what it was asked to.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct LspError {
    pub(crate) code: i64,
    #[serde(default)]
    pub(crate) message: String,
}

/// JSON-RPC: there is no such method.
pub(crate) const NO_SUCH_METHOD: i64 = -32601;
/// LSP 3.17: the text has changed under it; whoever still wants an answer asks again.
const CONTENT_MODIFIED: i64 = -32801;
const SERVER_CANCELLED: i64 = -32802;

impl LspError {
    /// Tells whether the same question may well be answered a moment later.
    pub(crate) fn is_passing(&self) -> bool {
        matches!(self.code, CONTENT_MODIFIED | SERVER_CANCELLED)
    }
}

#[derive(Deserialize)]
struct LspEnvelope {
    id: Option<Value>,
    method: Option<String>,
    #[serde(default)]
    params: Value,
    #[serde(default)]
    result: Value,
    error: Option<LspError>,
}

/// Returns what a body says; `None` if it is no message.
pub(crate) fn read(body: &[u8]) -> Option<LspMessage> {
    let LspEnvelope { id, method, params, result, error } = serde_json::from_slice(body).ok()?;
    Some(match (method, id.filter(|id| !id.is_null())) {
        (Some(method), Some(id)) => LspMessage::Question { id, method, params },
        (Some(method), None) => LspMessage::Note { method, params },
        (None, id) => LspMessage::Answer { id: id?.as_i64()?, outcome: error.map_or(Ok(result), Err) },
    })
}

pub(crate) fn ask(out: &mut Vec<u8>, id: i64, method: &str, params: &Value) {
    let message = match params {
        // JSON-RPC has no `null` for parameters, and some servers insist.
        Value::Null => json!({ "jsonrpc": "2.0", "id": id, "method": method }),
        params => json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }),
    };
    put(out, &message);
}

pub(crate) fn tell(out: &mut Vec<u8>, method: &str, params: &Value) {
    let message = match params {
        Value::Null => json!({ "jsonrpc": "2.0", "method": method }),
        params => json!({ "jsonrpc": "2.0", "method": method, "params": params }),
    };
    put(out, &message);
}

pub(crate) fn answer(out: &mut Vec<u8>, id: &Value, outcome: Result<Value, (i64, &str)>) {
    let message = match outcome {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err((code, message)) => {
            json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
        }
    };
    put(out, &message);
}

fn put(out: &mut Vec<u8>, message: &Value) {
    frame::write(out, message.to_string().as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_answers_and_notes_are_told_apart() {
        let said = |text: &str| read(text.as_bytes());
        let note = LspMessage::Note { method: "m".to_owned(), params: Value::Null };
        assert_eq!(said(r#"{"jsonrpc":"2.0","method":"m"}"#), Some(note));
        let question = LspMessage::Question { id: json!("a"), method: "m".to_owned(), params: json!([1]) };
        assert_eq!(said(r#"{"id":"a","method":"m","params":[1]}"#), Some(question));
        assert_eq!(said(r#"{"id":3,"result":null}"#), Some(LspMessage::Answer { id: 3, outcome: Ok(Value::Null) }));
        let complaint = LspError { code: -32801, message: "later".to_owned() };
        assert!(complaint.is_passing());
        let complains = LspMessage::Answer { id: 3, outcome: Err(complaint) };
        assert_eq!(said(r#"{"id":3,"error":{"code":-32801,"message":"later"}}"#), Some(complains));
        for nothing in ["", "[]", "7", r#"{"result":1}"#, r#"{"id":"x","result":1}"#, r#"{"id":1,"error":7}"#] {
            assert_eq!(said(nothing), None, "{nothing}");
        }
    }
}
