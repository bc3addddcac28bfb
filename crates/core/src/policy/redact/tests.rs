use proptest::prelude::*;
use serde_json::json;

use super::*;

fn plain() -> Redaction {
    Redaction::new(&[], true)
}

fn redacted(args: &Value, redaction: &Redaction) -> Value {
    let text = redaction.redact(args, &|bytes| format!("digest of {}", bytes.len()));
    serde_json::from_str(&text).unwrap_or_else(|wrong| panic!("{wrong}: {text}"))
}

fn scrubbed(text: &str) -> String {
    redacted(&json!(text), &plain()).as_str().unwrap().to_owned()
}

//
#[test]
fn members_with_the_names_of_secrets_are_hidden() {
    for name in ["token", "API-Key", "x_api_key", "clientSecret", "Authorization", "set-cookie", "AWS_ACCESS_KEY_ID"] {
        for value in [json!("hunter2"), json!(4711), json!(["hunter2"]), json!({"a": {"b": "hunter2"}})] {
            let args = json!({"path": "/p", "deep": [{ name: value }]});
            assert_eq!(redacted(&args, &plain()), json!({"path": "/p", "deep": [{ name: HIDDEN }]}));
        }
    }
    let harmless = json!({"max_tokens": 5, "tokenizer": "bpe", "keys": ["a"], "password": null, "use_token": true});
    assert_eq!(redacted(&harmless, &plain()), harmless);
}

#[test]
fn a_person_can_name_more() {
    let redaction = Redaction::new(&["*_PIN".to_owned(), "iban".to_owned(), "a*b*c".to_owned()], true);
    let args = json!({"card_pin": 1, "Iban": "x", "pin": 2, "ibans": "x", "axxbyyc": 3, "ab": 4});
    let expected = json!({
        "card_pin": HIDDEN, "Iban": HIDDEN, "pin": 2, "ibans": "x", "axxbyyc": HIDDEN, "ab": 4,
    });
    assert_eq!(redacted(&args, &redaction), expected);
}

#[test]
fn keys_are_found_in_texts() {
    for (text, expected) in [
        ("curl -H 'Authorization: Bearer abcdefgh12345678' x", "curl -H 'Authorization: [hidden]' x"),
        ("bearer abcdefgh12345678!", "bearer [hidden]!"),
        ("a basic thing", "a basic thing"),
        ("export API_KEY=abc; ls", "export API_KEY=[hidden]; ls"),
        ("PASSWORD='a \\' b' ls", "PASSWORD='[hidden]' ls"),
        ("mysql --password hunter2 -u me", "mysql --password [hidden] -u me"),
        ("mysql --password -u me", "mysql --password -u me"),
        ("{\"password\": \"hunter2\", \"a\": 1}", "{\"password\": \"[hidden]\", \"a\": 1}"),
        ("{\\\"token\\\":\\\"x\\\"}", "{\\\"token\\\":\\\"[hidden]\"}"),
        ("git clone https://me:hunter2@host/x", "git clone https://me:[hidden]@host/x"),
        ("https://host/a:b@c", "https://host/a:b@c"),
        ("use sk-abcdefghijklmnop1234 now", "use sk-[hidden] now"),
        ("task-abcdefghijklmnopqrst", "task-abcdefghijklmnopqrst"),
        ("ghp_0123456789abcdefghij", "ghp_[hidden]"),
        ("xoxb-1234567890-abcdef", "xoxb-[hidden]"),
        ("key AKIAIOSFODNN7EXAMPLE.", "key AKIA[hidden]."),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln", "eyJ[hidden]"),
        ("Cookie: a=b; c=d\nHost: x", "Cookie: [hidden]\nHost: x"),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
            "-----BEGIN[hidden]-----END RSA PRIVATE KEY-----",
        ),
        ("the cat sat on the mat: Grün", "the cat sat on the mat: Grün"),
        ("password=", "password="),
        ("secret", "secret"),
    ] {
        assert_eq!(scrubbed(text), expected);
    }
    let command = json!(["mysql", "--password", "hunter2", "--token", "-x"]);
    assert_eq!(redacted(&command, &plain()), json!(["mysql", "--password", HIDDEN, "--token", "-x"]));
    assert_eq!(redacted(&json!({"https://a:b@c": 1}), &plain()), json!({"https://a:[hidden]@c": 1}));
}

#[test]
fn bodies_are_told_by_their_size_and_digest_unless_they_are_wanted() {
    let long = "x".repeat(40);
    let args = json!({"path": "/p", "content": long, "input": "hunter2", "edits": [], "data": 5, "token": "x"});
    let expected = json!({
        "path": "/p", "content": {"bytes": 40, "sha256": "digest of 40"}, "input": {"bytes": 7}, "edits": {"bytes": 2},
        "data": 5, "token": HIDDEN,
    });
    assert_eq!(redacted(&args, &Redaction::default()), expected);
    assert_eq!(redacted(&args, &plain())["content"], args["content"]);
}

#[test]
fn what_is_too_long_is_cut_with_a_mark() {
    let long = redacted(&json!({"a": "é".repeat(3000)}), &plain());
    assert_eq!(long["a"].as_str().unwrap(), format!("{}… 3952 bytes more", "é".repeat(1024)));
    let list = redacted(&json!(vec![1; 500]), &plain());
    assert_eq!((list.as_array().unwrap().len(), &list[128]), (129, &json!("… 372 more")));
    let members: Map<String, Value> = (0..200).map(|n| (format!("m{n:03}"), json!(n))).collect();
    assert_eq!(redacted(&json!(members), &plain())["…"], json!("72 more"));
    let mut deep = json!("bottom");
    (0..1000).for_each(|_| deep = json!([deep.take()]));
    assert!(!redacted(&deep, &plain()).to_string().contains("bottom"));
}

/// Arguments with secrets in many places; each secret has this in it.
const MARK: &str = "Zq7";

fn secret() -> impl Strategy<Value = String> {
    "[a-z0-9]{5,20}".prop_map(|text| format!("{MARK}{text}"))
}

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<String>().prop_map(|text| json!(text.replace(MARK, ""))),
        any::<i64>().prop_map(|number| json!(number)),
        ("[ -~]{0,40}", secret()).prop_map(|(before, secret)| json!(format!("{before} PASSWORD={secret} x"))),
        secret().prop_map(|secret| json!(format!("Authorization: Bearer {secret}"))),
        secret().prop_map(|secret| json!(format!("x\nghp_{secret}0123456789012\ny"))),
        secret().prop_map(|secret| json!(format!("{{\"api_key\":\"{secret}\"}}"))),
        secret().prop_map(|secret| json!(format!("postgres://me:{secret}@host/db"))),
        secret().prop_map(|secret| json!(["run", "--token", secret])),
        secret().prop_map(|secret| json!({"client_secret": secret})),
        secret().prop_map(|secret| json!({"My Cookie": {"deep": [secret]}})),
        (0..5000_usize, secret()).prop_map(|(size, secret)| json!(format!("{} token={secret}", "\u{1}".repeat(size)))),
    ]
}

fn tree() -> impl Strategy<Value = Value> {
    leaf().prop_recursive(6, 80, 10, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..10).prop_map(Value::from),
            prop::collection::btree_map("[a-z_]{1,9}", inner, 0..10)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    //
    #[test]
    fn no_secret_is_in_what_comes_out_which_is_json_and_short(args in tree(), bodies: bool) {
        let text = Redaction::new(&[], bodies).redact(&args, &|_| "d".repeat(64));
        prop_assert!(!text.contains(MARK), "{}", text);
        prop_assert!(text.len() <= MAX_ARGS_BYTES && !text.contains('\n'), "{}", text.len());
        let read: Result<Value, _> = serde_json::from_str(&text);
        prop_assert!(read.is_ok(), "{}", text);
    }

    #[test]
    fn no_text_is_too_strange(text: String) {
        scrubbed(&text);
    }
}
