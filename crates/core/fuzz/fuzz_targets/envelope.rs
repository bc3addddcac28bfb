//! Bytes as a message: what the one pass finds is what a parser that builds the whole tree finds.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use prism_core::wire::{
    MessageKind, Message, ByteSpan,
    envelope::{TruncatedId, cut_message, own_number},
};
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    let (head, tail) = data.split_at(data.len() / 2);
    let cut = cut_message(head, tail);
    let Ok(message) = Message::parse(Bytes::copy_from_slice(data)) else { return };
    // A line that is cut concerns whom the whole line does, or nobody.
    match (cut, message.id()) {
        (Some(TruncatedId::Response(id)), Some(own)) => assert_eq!(own_number(own), Some(id)),
        (Some(TruncatedId::Request(id)), Some(own)) => assert_eq!(own, id),
        (Some(cut), None) => panic!("{cut:?} of a message without an id"),
        (None, _) => {}
    }
    // The tree has bounds of its own: depth, and numbers that fit.
    let Ok(tree) = serde_json::from_slice::<Value>(data) else { return };
    let same = |span: Option<ByteSpan>, value: Option<&Value>| match (span, value) {
        (Some(span), Some(value)) => {
            let read: Value = serde_json::from_str(message.text(span)).expect("a span lies on a value");
            assert_eq!(read, *value);
        }
        (span, value) => assert_eq!(span.is_some(), value.is_some()),
    };
    assert_eq!(tree["jsonrpc"], "2.0");
    same(message.id_span(), tree.get("id").filter(|id| !id.is_null()));
    let (params, meta) = (&tree["params"], &tree["params"]["_meta"]);
    let found = message.params();
    same(found.meta_token, meta.get("progressToken"));
    same(found.meta_version, meta.get("io.modelcontextprotocol/protocolVersion"));
    same(found.token, params.get("progressToken"));
    same(found.request_id, params.get("requestId"));
    same(found.name, params.get("name"));
    same(found.uri, params.get("uri"));
    same(found.level, params.get("level"));
    same(found.mode, params.get("mode"));
    let (result, error) = (tree.get("result").is_some(), tree.get("error").is_some());
    match message.kind() {
        MessageKind::Request(_) => assert!(tree["method"].is_string() && !tree["id"].is_null() && !result && !error),
        MessageKind::Notification(_) => assert!(tree["method"].is_string() && tree.get("id").is_none() && !result && !error),
        MessageKind::Response => assert!(tree.get("method").is_none() && result != error && message.failed() == error),
    }
});
