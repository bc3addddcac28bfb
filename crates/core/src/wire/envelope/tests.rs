//! The envelope against a parser that builds the whole tree: the same members, at the right places.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::wire::Method;

fn parse(text: &str) -> Result<Message, EnvelopeError> {
    Message::parse(Bytes::copy_from_slice(text.as_bytes()))
}

fn kind(text: &str) -> MessageKind {
    parse(text).unwrap_or_else(|error| panic!("{text}: {error}")).kind()
}

#[test]
fn the_members_say_what_a_message_is() {
    assert_eq!(kind(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#), MessageKind::Request(Method::Ping));
    assert_eq!(kind(r#"{"method":"tools/call","jsonrpc":"2.0","id":"a"}"#), MessageKind::Request(Method::ToolsCall));
    assert_eq!(kind(r#"{"jsonrpc":"2.0","id":-1,"method":"x/y"}"#), MessageKind::Request(Method::Other));
    assert_eq!(
        kind(r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#),
        MessageKind::Notification(Method::Progress)
    );
    assert_eq!(kind(r#"{"jsonrpc":"2.0","id":1,"result":null}"#), MessageKind::Response);
    assert_eq!(kind(r#"{"jsonrpc":"2.0","id":1,"error":{}}"#), MessageKind::Response);
    assert_eq!(kind(r#"{"jsonrpc":"2.0","id":null,"error":{}}"#), MessageKind::Response);
    assert_eq!(kind(r#"{"jsonrpc":"2.0","error":{}}"#), MessageKind::Response);
    assert_eq!(
        kind(" \r\n{\"jsonrpc\":\"2.0\",\"m\\u0065thod\":\"pin\\u0067\",\"id\":1} \n"),
        MessageKind::Request(Method::Ping)
    );
    assert!(parse(r#"{"jsonrpc":"2.0","id":1,"error":{}}"#).unwrap().failed());
    assert!(!parse(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#).unwrap().failed());
}

// Checks 6 and 7.
#[test]
fn what_is_no_message_is_refused_for_what_it_is() {
    for text in [r#"{"jsonrpc":"2.0""#, "", "  ", "{]", r#"{"jsonrpc":"2.0","method":"x"} x"#, "tru", "{\"a\":\"\n\"}"]
    {
        assert!(matches!(parse(text), Err(EnvelopeError::Syntax(_))), "{text}");
    }
    assert!(matches!(Message::parse(Bytes::from_static(b"{\"a\":\"\xff\"}")), Err(EnvelopeError::NotUtf8)));
    assert!(matches!(parse(r#" [{"jsonrpc":"2.0","method":"x"}]"#), Err(EnvelopeError::Batch)));
    for text in [
        "42",
        "null",
        r#""text""#,
        "{}",
        r#"{"method":"x","id":1}"#,
        r#"{"jsonrpc":"1.0","method":"x","id":1}"#,
        r#"{"jsonrpc":2.0,"method":"x","id":1}"#,
        r#"{"jsonrpc":"2.0","method":7,"id":1}"#,
        r#"{"jsonrpc":"2.0","method":null,"id":1}"#,
        r#"{"jsonrpc":"2.0","method":"x","id":null}"#,
        r#"{"jsonrpc":"2.0","method":"x","id":1.5}"#,
        r#"{"jsonrpc":"2.0","method":"x","id":1e3}"#,
        r#"{"jsonrpc":"2.0","method":"x","id":{}}"#,
        r#"{"jsonrpc":"2.0","method":"x","id":[1]}"#,
        r#"{"jsonrpc":"2.0","method":"x","id":true}"#,
        r#"{"jsonrpc":"2.0","id":1}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":1,"error":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"x","result":1}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"x","params":7}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"_meta":7}}"#,
    ] {
        assert!(matches!(parse(text), Err(EnvelopeError::Shape(_))), "{text}: {:?}", parse(text));
    }
}

// Invariant 6: two readers may differ in which of two they take.
#[test]
fn a_member_that_stands_twice_is_refused() {
    for text in [
        r#"{"jsonrpc":"2.0","jsonrpc":"2.0","method":"x"}"#,
        r#"{"jsonrpc":"1.0","jsonrpc":"2.0","method":"x"}"#,
        r#"{"jsonrpc":"2.0","method":"x","method":"y"}"#,
        r#"{"jsonrpc":"2.0","method":"x","m\u0065thod":"y"}"#,
        r#"{"jsonrpc":"2.0","method":"x","id":1,"id":1}"#,
        r#"{"jsonrpc":"2.0","method":"x","params":{},"params":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":1,"result":1}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":1,"error":1}"#,
        r#"{"jsonrpc":"2.0","method":"x","params":{"name":"a","name":"b"}}"#,
        r#"{"jsonrpc":"2.0","method":"x","params":{"uri":"a","uri":"a"}}"#,
        r#"{"jsonrpc":"2.0","method":"x","params":{"_meta":{},"_meta":{}}}"#,
        r#"{"jsonrpc":"2.0","method":"x","params":{"_meta":{"progressToken":1,"progressToken":1}}}"#,
        r#"{"jsonrpc":"2.0","method":"x","params":{"requestId":1,"requestId":1}}"#,
    ] {
        let error = parse(text).unwrap_err();
        assert!(matches!(&error, EnvelopeError::Shape(why) if why.starts_with("duplicate field")), "{text}: {error}");
    }
    // What is not ours to read is not ours to judge.
    parse(r#"{"jsonrpc":"2.0","id":1,"result":{"a":1,"a":2},"x":1,"x":2}"#).unwrap();
}

#[test]
fn params_that_are_null_or_an_array_have_no_members() {
    for params in ["null", "[]", r#"["_meta",{"progressToken":1}]"#, "{\"_meta\":null}", "{\"_meta\":[]}"] {
        let message = parse(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{params}}}"#)).unwrap();
        assert!(message.params().meta_token.is_none() && message.params().name.is_none(), "{params}");
    }
}

#[test]
fn nesting_costs_no_stack() {
    let (open, close) = ("[".repeat(100_000), "]".repeat(100_000));
    let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{{"arguments":{open}{close}}}}}"#);
    assert_eq!(parse(&text).unwrap().id(), Some("1"));
    assert!(matches!(parse(&open), Err(EnvelopeError::Batch)));
}

#[test]
fn a_string_is_read_with_its_escapes() {
    let message =
        parse(r#"{"jsonrpc":"2.0","id":"\u0061","method":"x","params":{"name":"a\u0062\"","uri":7}}"#).unwrap();
    assert_eq!(message.id(), Some(r#""\u0061""#));
    assert_eq!(message.string(message.params().name).as_deref(), Some("ab\""));
    assert_eq!(message.string(message.params().uri), None);
    assert_eq!(message.string(None), None);
}

// B-18: servers write `id` first, or last.
#[test]
fn a_cut_message_still_says_whom_it_concerns() {
    let response = |id| Some(TruncatedId::Response(id));
    let request = |id: &str| Some(TruncatedId::Request(id.to_owned()));
    let cases: [(&str, &str, Option<TruncatedId>); 18] = [
        (r#"{"jsonrpc":"2.0","id":17,"result":{"x":"aaaa"#, r#"aaaa"}}"#, response(17)),
        (r#"{"jsonrpc":"2.0","id":"17","result":{"x":"aaaa"#, r#"aaaa"}}"#, response(17)),
        (r#"{"result":{"x":"aaaa"#, r#"aaaa"},"id":17}"#, response(17)),
        (r#"{"result":{"id":3,"x":"aaaa"#, "aaaa\"} , \"id\" : 17 } \r", response(17)),
        (r#" {"error":{"x":"aaaa"#, r#"aaaa"},"jsonrpc":"2.0","id":17}"#, response(17)),
        (r#"{"id":17,"method":"x","params":{"x":"aaaa"#, r#"aaaa"}}"#, request("17")),
        (r#"{"id":"a b","method":"x","params":{"x":"aaaa"#, r#"aaaa"}}"#, request(r#""a b""#)),
        (r#"{"method":"x","params":{"x":"aaaa"#, r#"aaaa"},"id":17}"#, request("17")),
        (r#"{"params":{"x":"aaaa"#, r#"aaaa"},"method":"x","id":17}"#, request("17")),
        (r#"{"method":"x","params":{"x":"aaaa"#, r#"aaaa"}}"#, None),
        (r#"{"result":{"x":"aaaa"#, r#"aaaa","id":17}}"#, None),
        (r#"{"result":"aaaa"#, r#"aaaa\"id\":17}"}"#, None),
        (r#"{"result":"aaaa"#, r#"aaaa","id":1.5}"#, None),
        (r#"{"result":"aaaa"#, r#"aaaa","id":}"#, None),
        (r#"{"result":"aaaa"#, r#"aaaa","id":99999999999999999999}"#, None),
        ("log: {", r#"{"id":17}"#, None),
        ("", "", None),
        ("{\"id\":1", "7}", None),
    ];
    for (head, tail, concerns) in cases {
        assert_eq!(cut_message(head.as_bytes(), tail.as_bytes()), concerns, "{head} … {tail}");
    }
    assert_eq!(cut_message(b"{\"id\":5,\"result\":\"\xc3", b"\"}"), response(5), "cut within a character");
}

#[test]
fn a_number_of_ours_is_a_number_or_its_decimal_string() {
    for (raw, number) in
        [("7", Some(7)), ("\"7\"", Some(7)), ("-7", None), ("7.0", None), ("\"a\"", None), ("\"7", None)]
    {
        assert_eq!(own_number(raw), number, "{raw}");
    }
}

/// What the tree says a span must hold.
fn same(message: &Message, span: Option<ByteSpan>, tree: Option<&Value>) -> bool {
    match (span, tree) {
        (None, None) => true,
        (Some(span), Some(tree)) => {
            span.range().end <= message.bytes().len()
                && serde_json::from_str::<Value>(message.text(span)).is_ok_and(|value| value == *tree)
        }
        _ => false,
    }
}

/// A message that is likely to be one: its members are drawn one by one, of the right kind more often than not.
fn message() -> impl Strategy<Value = Value> {
    use crate::wire::splice::tests::value;
    let mostly = |right: BoxedStrategy<Value>| prop_oneof![8 => right, 1 => value()].boxed();
    let id = mostly(prop_oneof![any::<i64>().prop_map(Value::from), "[ -~]{0,4}".prop_map(Value::from)].boxed());
    let text = || mostly("[ -~\u{e9}]{0,4}".prop_map(Value::from).boxed());
    let method = mostly(
        proptest::sample::select(Method::all().map(Method::name).collect::<Vec<_>>()).prop_map(Value::from).boxed(),
    );
    let names = ["_meta", "progressToken", "requestId", "name", "uri", "level", "mode", "arguments"];
    let meta = proptest::collection::btree_map(
        proptest::sample::select(vec!["progressToken", "io.modelcontextprotocol/protocolVersion", "x"]),
        text(),
        0..3,
    );
    let meta = mostly(meta.prop_map(|members| json!(members)).boxed());
    let params = proptest::collection::btree_map(proptest::sample::select(names.to_vec()), text(), 0..5);
    let params = (params, proptest::option::of(meta)).prop_map(|(members, meta)| {
        let mut params = json!(members);
        if let Some(meta) = meta {
            params["_meta"] = meta;
        }
        params
    });
    let params = mostly(params.boxed());
    let half = |strategy: BoxedStrategy<Value>| proptest::option::of(strategy);
    let version = prop_oneof![9 => Just(json!("2.0")), 1 => value()];
    (version, half(id), half(method), half(params), half(value().boxed()), proptest::option::weighted(0.2, value()))
        .prop_map(|(version, id, method, params, result, error)| {
            let mut message = json!({"jsonrpc": version});
            let members = [("id", id), ("method", method), ("params", params), ("result", result), ("error", error)];
            for (name, value) in members {
                if let Some(value) = value {
                    message[name] = value;
                }
            }
            message
        })
}

/// What the tree says the message is; `None` if it is none.
fn expected(tree: &Value) -> Option<MessageKind> {
    let is_id = |id: &Value| id.is_string() || id.is_i64() || id.is_u64();
    let params = tree.get("params");
    let has_members = |value: Option<&Value>| value.is_none_or(|v| v.is_object() || v.is_array() || v.is_null());
    if tree["jsonrpc"] != "2.0" || !has_members(params) || !has_members(params.and_then(|params| params.get("_meta"))) {
        return None;
    }
    let id = match tree.get("id") {
        None => None,
        Some(Value::Null) if tree.get("method").is_none() => None,
        Some(id) if is_id(id) => Some(id),
        Some(_) => return None,
    };
    match (tree.get("method"), tree.get("result").is_some(), tree.get("error").is_some()) {
        (Some(Value::String(name)), false, false) if id.is_some() => Some(MessageKind::Request(Method::named(name))),
        (Some(Value::String(name)), false, false) => Some(MessageKind::Notification(Method::named(name))),
        (None, true, false) | (None, false, true) => Some(MessageKind::Response),
        _ => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn arbitrary_bytes_never_panic(bytes: Vec<u8>, text in "[\\[\\]{}\",:0-9a-z \\\\.eE+-]{0,60}") {
        let _ = Message::parse(Bytes::from(bytes.clone()));
        let _ = parse(&text);
        let _ = cut_message(&bytes, text.as_bytes());
        let _ = cut_message(text.as_bytes(), &bytes);
    }

    #[test]
    fn a_message_is_what_its_tree_says_and_every_span_lies_on_its_value(tree in message(), pretty: bool) {
        let text = if pretty { serde_json::to_string_pretty(&tree).unwrap() } else { tree.to_string() };
        let message = parse(&text);
        prop_assert_eq!(message.as_ref().ok().map(Message::kind), expected(&tree), "{} {:?}", text, message);
        let Ok(message) = message else { return Ok(()) };
        prop_assert!(same(&message, message.id_span(), tree.get("id").filter(|id| !id.is_null())));
        prop_assert_eq!(message.failed(), tree.get("error").is_some());
        prop_assert_eq!(message.method_text().map(str::to_owned), tree.get("method").map(Value::to_string));
        let (params, meta) = (&tree["params"], &tree["params"]["_meta"]);
        let found = message.params();
        prop_assert!(same(&message, found.meta_token, meta.get("progressToken")));
        prop_assert!(same(&message, found.meta_version, meta.get("io.modelcontextprotocol/protocolVersion")));
        prop_assert!(same(&message, found.token, params.get("progressToken")));
        prop_assert!(same(&message, found.request_id, params.get("requestId")));
        prop_assert!(same(&message, found.name, params.get("name")));
        prop_assert!(same(&message, found.uri, params.get("uri")));
        prop_assert!(same(&message, found.level, params.get("level")));
        prop_assert!(same(&message, found.mode, params.get("mode")));
    }

    // However a line is cut, it is never taken for another's answer.
    #[test]
    fn a_cut_message_concerns_whom_the_whole_one_does_or_nobody(tree in message(), at in 0..100usize, keep in 1..64usize) {
        let text = tree.to_string();
        let (at, keep) = (at.min(text.len()), keep.min(text.len()));
        let number = |id: &Value| own_number(&id.to_string());
        match cut_message(&text.as_bytes()[..at], &text.as_bytes()[text.len() - keep..]) {
            Some(TruncatedId::Response(id)) => prop_assert!(number(&tree["id"]) == Some(id), "{}", text),
            Some(TruncatedId::Request(id)) => prop_assert_eq!(tree["id"].to_string(), id, "{}", text),
            None => {}
        }
    }
}

#[test]
fn a_part_put_in_the_place_of_another_is_as_if_it_had_been_read() {
    let texts = [
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"abc","arguments":{"name":1},"_meta":{"progressToken":"t"}}}"#,
        r#"{"params":{"_meta":{"progressToken":5},"uri":"x","name":"abc","requestState":"s"},"method":"tools/call","jsonrpc":"2.0","id":"i"}"#,
    ];
    for text in texts {
        let message = Message::parse(Bytes::from(text)).unwrap();
        for name in [r#""""#, r#""ab""#, r#""a much longer name than it had before""#] {
            let told = message.with(message.params().name.unwrap(), name);
            let read = Message::parse(told.bytes().clone()).unwrap();
            assert_eq!(format!("{told:?}"), format!("{read:?}"));
            assert_eq!(told.text(told.params().name.unwrap()), name);
        }
        let (id, token) = (message.id_span().unwrap(), message.params().meta_token.unwrap());
        for meta in
            ["{}", r#"{"a":{"progressToken":1},"progressToken":12345,"io.modelcontextprotocol/protocolVersion":"v"}"#]
        {
            let replaced = [(message.params().meta.unwrap(), meta), (id, "123")];
            for mut edits in [vec![(id, "123"), (token, "456")], vec![(token, "4"), (id, "1")], replaced.to_vec()] {
                let told = message.edited(&mut edits);
                let read = Message::parse(told.bytes().clone()).unwrap();
                assert_eq!(format!("{told:?}"), format!("{read:?}"));
            }
        }
    }
}
