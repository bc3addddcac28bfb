//! A denied name is never let through, whatever else is in the message.

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::wire::splice::tests::value;

fn glob(text: &str) -> NameGlob {
    NameGlob::new(text).expect("a pattern")
}

fn rule(tool: &str, arguments: &[(&str, &str)]) -> ToolRule {
    ToolRule::new(glob(tool), arguments.iter().map(|(path, text)| ((*path).into(), glob(text))).collect())
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

fn files() -> ToolRules {
    ToolRules {
        allow: vec![rule("*", &[])],
        confirm: vec![rule("write_*", &[]), rule("delete_draft", &[])],
        deny: vec![rule("delete_*", &[]), rule("*", &[("path", "*/.ssh/*")])],
        otherwise: DefaultRule::Deny,
    }
}

#[test]
fn refused_beats_confirmed_beats_allowed() {
    let rules = files();
    assert_eq!(rules.judge(&with("read", json!({}))), RuleVerdict::Allowed("*"));
    assert_eq!(rules.judge(&with("write_file", json!({}))), RuleVerdict::Confirm("write_*"));
    assert_eq!(rules.judge(&with("delete_draft", json!({}))), RuleVerdict::Denied("delete_*"));
    let denied = RuleVerdict::Denied(r#"* with path = "*/.ssh/*""#);
    assert_eq!(rules.judge(&with("read", json!({"path": "/home/a/.ssh/id"}))), denied);
    assert_eq!(rules.judge(&message(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#)), RuleVerdict::Free);
    assert_eq!(ToolRules::default().judge(&with("any", json!({}))), RuleVerdict::Free);
    for (otherwise, wanted) in [
        (DefaultRule::Allow, RuleVerdict::Free),
        (DefaultRule::Confirm, RuleVerdict::Confirm(OTHERWISE)),
        (DefaultRule::Deny, RuleVerdict::Denied(OTHERWISE)),
    ] {
        let rules = ToolRules { allow: vec![rule("read", &[])], otherwise, ..ToolRules::default() };
        assert_eq!(rules.judge(&with("reads", json!({}))), wanted);
    }
}

#[test]
fn arguments_are_found_by_name_and_matched_by_what_they_say() {
    let judged = |path: &str, pattern: &str, arguments: Value| {
        let deny = ToolRules { deny: vec![rule("*", &[(path, pattern)])], ..ToolRules::default() };
        let allow = ToolRules { allow: deny.deny.clone(), otherwise: DefaultRule::Deny, ..ToolRules::default() };
        let call = with("t", arguments);
        (deny.judge(&call) != RuleVerdict::Free, matches!(allow.judge(&call), RuleVerdict::Allowed(_)))
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
    let deny = ToolRules { deny: vec![rule("delete", &[])], ..ToolRules::default() };
    let looks = ToolRules { deny: vec![rule("*", &[("sql", "DROP*")])], ..ToolRules::default() };
    let unclear = |rules: &ToolRules, message: &Message| matches!(rules.judge(message), RuleVerdict::Unclear(_));
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
        assert_eq!(deny.judge(&call), RuleVerdict::Free, "{arguments}");
    }
    assert!(unclear(&looks, &call(&format!(r#"{{"name":"q","arguments":{}1{}}}"#, "[".repeat(999), "]".repeat(999)))));
    // What is called alike elsewhere is none of a rule's business.
    assert_eq!(looks.judge(&with("q", json!({"env": {"SQL": "DROP"}}))), RuleVerdict::Free);
    let deep = ToolRules { deny: vec![rule("*", &[("a.b", "x")])], ..ToolRules::default() };
    for (arguments, is) in [(json!({"A": {"b": 1}}), true), (json!({"a": [{"B": 1}]}), true), (json!({"B": 1}), false)]
    {
        assert_eq!(unclear(&deep, &with("q", arguments.clone())), is, "{arguments}");
    }
    // A note that calls is no way around.
    let note = message(r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"delete"}}"#);
    assert_eq!(deny.judge(&note), RuleVerdict::Denied("delete"));
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
        let rules = ToolRules { allow: vec![rule("*", &[])], deny: vec![rule("delete_*", &[])], ..ToolRules::default() };
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
            prop_assert!(matches!(rules.judge(&message), RuleVerdict::Denied(_) | RuleVerdict::Unclear(_)));
        }
    }

    // No order of lists, and no other rule, lets it through.
    #[test]
    fn no_other_rule_lets_it_through(
        others in proptest::collection::vec(("[a-z*?]{1,6}", 0..3usize), 0..8),
        arguments in value(),
    ) {
        let mut rules = ToolRules { deny: vec![rule("drop", &[])], ..ToolRules::default() };
        for (pattern, list) in others {
            [&mut rules.allow, &mut rules.confirm, &mut rules.deny][list].insert(0, rule(&pattern, &[]));
        }
        prop_assert!(matches!(rules.judge(&with("drop", arguments)), RuleVerdict::Denied(_)));
    }
}
