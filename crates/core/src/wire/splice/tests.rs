//! An edit changes what it names and nothing else.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn parse(text: &str) -> Message {
    Message::parse(Bytes::copy_from_slice(text.as_bytes())).unwrap()
}

fn line(message: &Message, edits: &mut [(ByteSpan, &str)]) -> String {
    let mut out = BytesMut::new();
    push_line(&mut out, message, edits);
    String::from_utf8(out.to_vec()).unwrap()
}

// Invariant 4.
// checks 11
#[test]
fn a_message_without_edits_keeps_its_bytes() {
    let text = r#" { "jsonrpc" : "2.0", "method":"x","params":{"a":1.0,"b":1e400,"c":"\ud800 "}}"#;
    assert_eq!(line(&parse(text), &mut []), format!("{text}\n"));
}

#[test]
fn edits_may_come_in_any_order() {
    let message = parse(r#"{"params":{"_meta":{"progressToken":"t"}},"id":7,"method":"x","jsonrpc":"2.0"}"#);
    let (id, token) = (message.id_span().unwrap(), message.params().meta_token.unwrap());
    let edited = "{\"params\":{\"_meta\":{\"progressToken\":11}},\"id\":22,\"method\":\"x\",\"jsonrpc\":\"2.0\"}\n";
    assert_eq!(line(&message, &mut [(id, "22"), (token, "11")]), edited);
    assert_eq!(line(&message, &mut [(token, "11"), (id, "22")]), edited);
}

// checks 93
#[test]
fn a_line_break_between_tokens_becomes_a_space_and_one_in_a_string_stays_escaped() {
    let message = parse("{\r\n\"jsonrpc\":\"2.0\",\n\t\"method\":\"x\\n\\r\"\r}");
    assert_eq!(line(&message, &mut []), "{  \"jsonrpc\":\"2.0\", \t\"method\":\"x\\n\\r\" }\n");
}

#[test]
fn a_large_answer_gets_another_id_without_being_copied() {
    let text = format!(r#"{{"jsonrpc":"2.0","id":1,"result":"{}"}}"#, "x".repeat(2 * COPY_BYTES));
    let message = parse(&text);
    let mut chain = ByteChain::spliced(&message, message.id_span().unwrap(), "\"a\"");
    assert_eq!(chain.len(), text.len() + 2);
    assert_eq!(chain.to_vec(), text.replacen("\"id\":1", "\"id\":\"a\"", 1).into_bytes());
    let (head, id, rest) = (chain.pop().unwrap(), chain.pop().unwrap(), chain.pop().unwrap());
    assert_eq!(&id[..], b"\"a\"");
    let whole = message.bytes().as_ptr_range();
    assert!(whole.contains(&head.as_ptr()) && whole.contains(&rest.as_ptr()), "the large part is shared");
    assert_eq!(chain.pop(), None);
    assert!(chain.is_empty());
}

/// JSON without what only the parser's own tree would change: duplicate names and numbers out of range.
pub(crate) fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        "[ -~\u{e9}\u{2028}\u{1f600}\n\"\\\\]{0,10}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let name =
            prop_oneof!["[a-z]{1,4}", Just("id".to_owned()), Just("method".to_owned()), Just("_meta".to_owned())];
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(name, inner, 0..4).prop_map(|members| json!(members)),
        ]
    })
}

/// A request, as text in one of several manners, and its tree.
fn request() -> impl Strategy<Value = (String, Value)> {
    let id = prop_oneof![any::<i64>().prop_map(Value::from), "[ -~]{0,6}".prop_map(Value::from)];
    let token =
        proptest::option::of(prop_oneof![any::<u32>().prop_map(Value::from), "[ -~]{0,6}".prop_map(Value::from)]);
    (id, token, value(), value(), any::<bool>()).prop_map(|(id, token, arguments, other, pretty)| {
        let mut meta = json!({"other": other});
        if let Some(token) = token {
            meta["progressToken"] = token;
        }
        let params = json!({"name": "x", "arguments": arguments, "_meta": meta});
        let tree = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        let text = if pretty { serde_json::to_string_pretty(&tree).unwrap() } else { tree.to_string() };
        (text, tree)
    })
}

proptest! {
    #[test]
    fn an_edit_of_the_text_is_an_edit_of_the_tree((text, mut tree) in request(), number: u64) {
        let message = parse(&text);
        let number_text = number.to_string();
        let spans = [message.id_span(), message.params().meta_token];
        let mut edits: Vec<(ByteSpan, &str)> = spans.into_iter().flatten().map(|span| (span, number_text.as_str())).collect();
        let edited = line(&message, &mut edits);
        prop_assert_eq!(edited.matches('\n').count(), 1, "one line");
        tree["id"] = json!(number);
        if message.params().meta_token.is_some() {
            tree["params"]["_meta"]["progressToken"] = json!(number);
        }
        prop_assert_eq!(serde_json::from_str::<Value>(&edited).unwrap(), tree);
        // And back: what is restored is what it was, but for its line breaks.
        let (id, token) = (message.id().unwrap(), message.params().meta_token.map(|span| message.text(span)));
        let there = parse(edited.trim_end_matches('\n'));
        let mut back = vec![(there.id_span().unwrap(), id)];
        back.extend(there.params().meta_token.zip(token));
        prop_assert_eq!(line(&there, &mut back), text.replace('\n', " ") + "\n");
    }

    #[test]
    fn a_chain_and_the_parts_around_a_span_are_the_same_bytes((text, _) in request(), long: bool) {
        let text = if long { text.replacen("\"x\"", &format!("\"{}\"", "x".repeat(COPY_BYTES)), 1) } else { text };
        let message = parse(&text);
        let span = message.id_span().unwrap();
        let mut chain = ByteChain::spliced(&message, span, "\"new\"");
        let whole = around(&message, span, "\"new\"").concat();
        prop_assert_eq!(chain.len(), whole.len());
        prop_assert_eq!(chain.to_vec(), whole.clone());
        let mut popped = Vec::new();
        while let Some(piece) = chain.pop() {
            popped.extend_from_slice(&piece);
        }
        prop_assert_eq!(popped, whole);
    }
}
