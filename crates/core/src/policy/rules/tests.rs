//! A denied name is never let through, whatever else is in the message.

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::wire::splice::tests::value;

fn glob(text: &str) -> Glob {
    Glob::new(text).expect("a pattern")
}

fn rule(tool: &str, arguments: &[(&str, &str)]) -> Rule {
    Rule::new(glob(tool), arguments.iter().map(|(path, text)| ((*path).into(), glob(text))).collect())
}

fn message(text: &str) -> Message {
    Message::parse(Bytes::copy_from_slice(text.as_bytes())).expect("a message")
}

fn call(params: &str) -> Message {
    message(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#))
}

fn with(tool: &str, arguments: Value) -> Message {
    call(&json!({"name": tool, "arguments": arguments}).to_string())
}

fn files() -> Rules {
    Rules {
        allow: vec![rule("*", &[])],
        confirm: vec![rule("write_*", &[]), rule("delete_draft", &[])],
        deny: vec![rule("delete_*", &[]), rule("*", &[("path", "*/.ssh/*")])],
        otherwise: Otherwise::Deny,
    }
}

#[test]
fn refused_beats_confirmed_beats_allowed() {
    let rules = files();
    assert_eq!(rules.judge(&with("read", json!({}))), Verdict::Allowed("*"));
    assert_eq!(rules.judge(&with("write_file", json!({}))), Verdict::Confirm("write_*"));
    assert_eq!(rules.judge(&with("delete_draft", json!({}))), Verdict::Denied("delete_*"));
    let denied = Verdict::Denied(r#"* with path = "*/.ssh/*""#);
    assert_eq!(rules.judge(&with("read", json!({"path": "/home/a/.ssh/id"}))), denied);
    assert_eq!(rules.judge(&message(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#)), Verdict::Free);
    assert_eq!(Rules::default().judge(&with("any", json!({}))), Verdict::Free);
    for (otherwise, wanted) in [
        (Otherwise::Allow, Verdict::Free),
        (Otherwise::Confirm, Verdict::Confirm(OTHERWISE)),
        (Otherwise::Deny, Verdict::Denied(OTHERWISE)),
    ] {
        let rules = Rules { allow: vec![rule("read", &[])], otherwise, ..Rules::default() };
        assert_eq!(rules.judge(&with("reads", json!({}))), wanted);
    }
}

#[test]
fn arguments_are_found_by_name_and_matched_by_what_they_say() {
    let judged = |path: &str, pattern: &str, arguments: Value| {
        let deny = Rules { deny: vec![rule("*", &[(path, pattern)])], ..Rules::default() };
        let allow = Rules { allow: deny.deny.clone(), otherwise: Otherwise::Deny, ..Rules::default() };
        let call = with("t", arguments);
        (deny.judge(&call) != Verdict::Free, matches!(allow.judge(&call), Verdict::Allowed(_)))
    };
    for (path, pattern, arguments, wanted) in [
        ("sql", "select *", json!({"sql": "select 1"}), (true, true)),
        ("sql", "select *", json!({"sql": "DROP x"}), (false, false)),
        ("sql", "select *", json!({}), (false, false)),
        ("n", "1?", json!({"n": 12}), (true, true)),
        ("force", "true", json!({"force": true}), (true, true)),
        ("a.b", "x", json!({"a": {"b": "x"}}), (true, true)),
        ("a.b", "x", json!({"a.b": "x"}), (true, true)),
        // L6: what climbs out again is not beneath, and no reason to say so of what is refused.
        ("path", "/project/*", json!({"path": "/project/a/b"}), (true, true)),
        ("path", "/project/*", json!({"path": "/project/../etc/passwd"}), (true, false)),
        ("path", "/project/*", json!({"path": "/project/a..b/..c"}), (true, true)),
        ("path", "/project/*", json!({"path": "/project/..\\..\\etc"}), (true, false)),
        ("path", "*/x", json!({"path": ["/a/x", "/a/../x"]}), (true, false)),
        ("path", "../shared/*", json!({"path": "../shared/a"}), (true, true)),
        ("path", "../shared/*", json!({"path": "../shared/../../a"}), (true, false)),
        ("text", "a*", json!({"text": "a .. b/../c"}), (true, true)),
        // Of several, one is enough to refuse, and all are needed to allow.
        ("a.b", "x", json!({"a": {"b": "x"}, "a.b": "y"}), (true, false)),
        ("paths", "/tmp/*", json!({"paths": ["/tmp/a", "/etc/b"]}), (true, false)),
        ("paths", "/tmp/*", json!({"paths": ["/tmp/a", "/tmp/b"]}), (true, true)),
        ("edits.path", "/e*", json!({"edits": [{"path": "/a"}, {"path": "/e"}]}), (true, false)),
        ("o", "x", json!({"o": {"deep": [["x"]]}}), (true, true)),
    ] {
        assert_eq!(judged(path, pattern, arguments.clone()), wanted, "{path} {pattern} {arguments}");
    }
}

// A server that reads JSON in another way must not see another call than the one that was judged.
#[test]
fn what_another_reader_could_read_differently_is_refused() {
    let deny = Rules { deny: vec![rule("delete", &[])], ..Rules::default() };
    let looks = Rules { deny: vec![rule("*", &[("sql", "DROP*")])], ..Rules::default() };
    let unclear = |rules: &Rules, message: &Message| matches!(rules.judge(message), Verdict::Unclear(_));
    for params in [
        r#"{"name":"read","Name":"delete"}"#,
        r#"{"NAME":"delete"}"#,
        r#"{"name":"read","argument\u017f":{}}"#,
        r#"["delete",{}]"#,
        r#"{"name":7}"#,
        r#"{"name":"\ud800"}"#,
        r#"{}"#,
        r#"{"name":"read","arguments":{},"arguments":{}}"#,
    ] {
        assert!(unclear(&deny, &call(params)), "{params}");
    }
    for text in [
        r#"{"jsonrpc":"2.0","id":1,"method":"other","Method":"tools/call","params":{"name":"delete"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read"},"Params":{"name":"delete"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read"},"paramſ":{"name":"delete"}}"#,
        r#"{"jsonrpc":"2.0","method":"other","METHOD":"tools/call","params":{"name":"delete"}}"#,
    ] {
        assert!(unclear(&deny, &message(text)), "{text}");
    }
    for arguments in [
        r#"{"sql":"select 1","sql":"DROP x"}"#,
        r#"{"sql":"select 1","SQL":"DROP x"}"#,
        r#"{"Sql":"DROP x"}"#,
        r#"{"nested":[{"a":1,"\u0061":2}]}"#,
        r#"{"sql":"\ud800"}"#,
    ] {
        let call = call(&format!(r#"{{"name":"query","arguments":{arguments}}}"#));
        assert!(unclear(&looks, &call), "{arguments}");
        // Nobody looks at them here.
        assert_eq!(deny.judge(&call), Verdict::Free, "{arguments}");
    }
    assert!(unclear(&looks, &call(&format!(r#"{{"name":"q","arguments":{}1{}}}"#, "[".repeat(999), "]".repeat(999)))));
    // What is called alike elsewhere is none of a rule's business.
    assert_eq!(looks.judge(&with("q", json!({"env": {"SQL": "DROP"}}))), Verdict::Free);
    let deep = Rules { deny: vec![rule("*", &[("a.b", "x")])], ..Rules::default() };
    for (arguments, is) in [(json!({"A": {"b": 1}}), true), (json!({"a": [{"B": 1}]}), true), (json!({"B": 1}), false)]
    {
        assert_eq!(unclear(&deep, &with("q", arguments.clone())), is, "{arguments}");
    }
    // A note that calls is no way around.
    let note = message(r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"delete"}}"#);
    assert_eq!(deny.judge(&note), Verdict::Denied("delete"));
}

/// A string as JSON, any of its letters escaped.
fn written(text: &str, escapes: &[bool]) -> String {
    let letter = |(at, c): (usize, char)| match escapes.get(at) {
        Some(true) => c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect(),
        _ => serde_json::to_string(&c).expect("a letter").trim_matches('"').replace("\\\\\"", "\\\""),
    };
    format!("\"{}\"", text.chars().enumerate().map(letter).collect::<String>())
}

proptest! {
    // Whatever surrounds the name, and however it is written.
    #[test]
    fn a_denied_name_is_never_let_through(
        name in "delete_[a-z0-9_é]{0,8}",
        escapes in proptest::collection::vec(any::<bool>(), 16),
        arguments in value(),
        meta in value(),
        space in "[ \t\r\n]{0,3}",
        order in any::<[bool; 2]>(),
        second in proptest::option::of(("[Nn][Aa][Mm][Ee]", "[a-z]{0,4}")),
    ) {
        let rules = Rules { allow: vec![rule("*", &[])], deny: vec![rule("delete_*", &[])], ..Rules::default() };
        let name = format!("{}:{space}{}", written("name", &escapes[8..]), written(&name, &escapes));
        let mut members = vec![name, format!(r#""arguments":{arguments}"#), format!(r#""_meta":{{"x":{meta}}}"#)];
        if let Some((member, other)) = second {
            members.insert(usize::from(order[1]), format!(r#""{member}":"{other}""#));
        }
        if order[0] {
            members.reverse();
        }
        let params = format!("{{{space}{}}}", members.join(&format!("{space},")));
        let text = format!(r#"{{{space}"jsonrpc":"2.0","params":{params},"id":1,"m\u0065thod":"tools\/call"{space}}}"#);
        // One that the envelope refuses goes nowhere.
        if let Ok(message) = Message::parse(Bytes::from(text)) {
            prop_assert!(matches!(rules.judge(&message), Verdict::Denied(_) | Verdict::Unclear(_)));
        }
    }

    // No order of lists, and no other rule, lets it through.
    #[test]
    fn no_other_rule_lets_it_through(
        others in proptest::collection::vec(("[a-z*?]{1,6}", 0..3usize), 0..8),
        arguments in value(),
    ) {
        let mut rules = Rules { deny: vec![rule("drop", &[])], ..Rules::default() };
        for (pattern, list) in others {
            [&mut rules.allow, &mut rules.confirm, &mut rules.deny][list].insert(0, rule(&pattern, &[]));
        }
        prop_assert!(matches!(rules.judge(&with("drop", arguments)), Verdict::Denied(_)));
    }
}
