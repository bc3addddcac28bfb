//! JSON-RPC messages of our own making. Ids, parameters, results and errors are JSON text.

use std::fmt::Display;

use super::Method;

pub fn request(id: impl Display, method: Method, params: impl Display) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{}","params":{params}}}"#, method.name())
}

/// A request that has nothing to say.
pub fn bare_request(id: impl Display, method: Method) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{}"}}"#, method.name())
}

pub fn note(method: Method, params: impl Display) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{}","params":{params}}}"#, method.name())
}

pub fn result(id: impl Display, result: impl Display) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

pub fn error(id: impl Display, error: impl Display) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)
}

/// Says that a request will not be waited for.
pub fn cancelled(request: impl Display) -> String {
    note(Method::Cancelled, format_args!(r#"{{"requestId":{request}}}"#))
}
