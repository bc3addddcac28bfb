//! A message with another id and token: nothing else of it changes, and the way back leads to where it began.
#![no_main]

use bytes::{Bytes, BytesMut};
use libfuzzer_sys::fuzz_target;
use prism_core::wire::{
    ByteChain, Message, ByteSpan,
    splice::{around, push_line},
};
use serde_json::{Value, json};

const OURS: &str = "1234567";

fuzz_target!(|data: &[u8]| {
    let Ok(message) = Message::parse(Bytes::copy_from_slice(data)) else { return };
    let spans = [message.id_span(), message.params().meta_token];
    let edited = line(&message, spans.iter().flatten().map(|span| (*span, OURS)).collect());
    assert_eq!(edited.iter().filter(|b| matches!(b, b'\n' | b'\r')).count(), 1, "one line, ended");
    let there = Message::parse(edited.slice(..edited.len() - 1)).expect("an edited message is one");
    assert_eq!(there.kind(), message.kind());
    assert_eq!(there.id(), message.id().map(|_| OURS));

    // As an edit of the tree, where the tree can hold it.
    if let Ok(mut tree) = serde_json::from_slice::<Value>(data) {
        if message.id().is_some() {
            tree["id"] = json!(1234567);
        }
        if message.params().meta_token.is_some() {
            tree["params"]["_meta"]["progressToken"] = json!(1234567);
        }
        assert_eq!(serde_json::from_slice::<Value>(&edited).expect("what was JSON is JSON"), tree);
    }

    // And back.
    let own = [message.id(), message.params().meta_token.map(|span| message.text(span))];
    let back = [there.id_span(), there.params().meta_token].into_iter().zip(own);
    let back = line(&there, back.filter_map(|(span, own)| Some((span?, own?))).collect());
    let flat = |b: &u8| if matches!(b, b'\n' | b'\r') { b' ' } else { *b };
    assert_eq!(back[..back.len() - 1], data.iter().map(flat).collect::<Vec<_>>());

    if let Some(span) = message.id_span() {
        let chain = ByteChain::spliced(&message, span, OURS);
        assert_eq!(chain.to_vec(), around(&message, span, OURS).concat());
        assert_eq!(chain.len(), data.len() - span.range().len() + OURS.len());
    }
});

fn line(message: &Message, mut edits: Vec<(ByteSpan, &str)>) -> Bytes {
    let mut out = BytesMut::new();
    push_line(&mut out, message, &mut edits);
    out.freeze()
}
