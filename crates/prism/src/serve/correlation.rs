//! One id for a call of Prism's own servers: in the log, in the notes on either stream, and in the result (N-06).

use std::borrow::Cow;

use bytes::Bytes;
use prism_core::wire::{Kind, Members, Message, members::Quoted};
use uuid::Uuid;

use crate::{drive::Destination, telemetry::access::Pending};

const CORRELATION_ID: &str = "correlation_id";

/// A request as one of Prism's own servers gets it: under the client's own correlation id, or a new one.
pub(super) fn correlated(destination: &Destination, message: Message, record: &mut Pending) -> Message {
    let calls = matches!(message.kind(), Kind::Request(method) if method.may_ask());
    if !destination.is_built_in() || !calls {
        return message;
    }
    let told = (|| {
        let whole = std::str::from_utf8(message.bytes()).ok()?;
        let mut top = Members::read(whole)?;
        let mut params = Members::read(message.params_text()?)?;
        let mut meta = params.object("_meta").unwrap_or_default();
        let given = meta.string(CORRELATION_ID).map(Cow::into_owned).and_then(|text| Uuid::try_parse(&text).ok());
        let id = given.unwrap_or_else(Uuid::now_v7);
        record.correlation_id(id);
        meta.set(CORRELATION_ID, Quoted(&id.to_string()).to_string());
        let meta = meta.to_string();
        params.set("_meta", meta);
        let params = params.to_string();
        top.set("params", params);
        Message::parse(Bytes::from(top.to_string())).ok()
    })();
    told.unwrap_or(message)
}
