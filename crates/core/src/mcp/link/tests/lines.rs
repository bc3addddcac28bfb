//! What a child writes that is no message, or too much of one (B-14, B-18, check 107).

use super::check;

const LONG: &str =
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";

/// Two calls are running on a link that takes lines of a hundred bytes, and then this happens.
fn with_two_calls(then: &str) {
    // The greeting is short: the limit is for it, too.
    check(&format!(
        r#"
        settings limit 100
        open a
        ! start
        server < {{"id":$0,"method":"initialize",…
        server > {{"id":$0,"result":{{"capabilities":{{}}}}}}
        server < {{"method":"notifications/initialized"}}
        ! ready…
        a < {{"id":0,…
        a:x > {{"id":"x","method":"tools/call","params":{{"name":"x"}}}}
        server < {{"id":$1,…
        a:y > {{"id":"y","method":"tools/call","params":{{"name":"y","_meta":{{"progressToken":1}}}}}}
        server < {{"id":$2,…
        {then}
        "#
    ));
}

// checks 107
#[test]
fn lines_that_are_no_messages_are_skipped_and_end_nothing() {
    for line in [
        "hello",
        "42",
        "null",
        r#""text""#,
        "{",
        r#"{"id":$1}"#,
        r#"{"id":$1,"result":1,"error":{}}"#,
        r#"{"jsonrpc":"1.0","id":$1,"result":1}"#,
        r#"[{"jsonrpc":"2.0","id":$1,"result":1}]"#,
        r#"{"id":$1,"id":$2,"result":1}"#,
        r#"{"id":$1.0,"result":1}"#,
    ] {
        with_two_calls(&format!(
            r#"
            server > {line}
            ! garbage: not a JSON-RPC message
            server > {{"id":$1,"result":{{}}}}
            a:x < {{"id":"x","result":{{}}}}
            "#
        ));
    }
    with_two_calls("server > \nserver > \r\nserver >    \n");
}

// B-18.
#[test]
fn an_answer_that_is_too_long_fails_the_call_it_was_for() {
    for line in [
        format!(r#"{{"id":$2,"result":"{LONG}"}}"#),
        format!(r#"{{"id":"$2","result":"{LONG}"}}"#),
        format!(r#"{{"result":"{LONG}","id":$2}}"#),
        format!(r#"{{"result":{{"a":{{"id":$1}},"b":"{LONG}"}},"jsonrpc":"2.0" , "id" : $2 }} "#),
        format!(r#"{{"error":{{"code":1,"message":"{LONG}"}},"id":$2}}"#),
    ] {
        with_two_calls(&format!(
            r#"
            server > {line}
            a:y fault too large
            ~ 1 in flight
            server > {{"id":$2,"result":"late"}}
            server > {{"id":$1,"result":{{}}}}
            a:x < {{"id":"x","result":{{}}}}
            "#
        ));
    }
    with_two_calls(&format!(
        r#"
        server > {{"method":"notifications/progress","params":{{"progressToken":$2,"progress":1}}}}
        a:y ~ 1-0
        a:y ~ {{"method":"notifications/progress",…
        server > {{"id":$2,"result":"{LONG}"}}
        a:y ~ {{"id":"y","error":{{"code":-32603,"message":"the server's answer is over `max_message_bytes` (100 bytes); raise the setting or ask for less","data":{{"reason":"upstream_answer_too_large"}}}}}}
        a:y end
        "#
    ));
}

// checks 107
#[test]
fn a_line_that_is_too_long_and_answers_nothing_is_skipped() {
    for line in [
        LONG.to_owned(),
        format!(r#"{LONG} {{"id":$2}}"#),
        format!(r#"{{"method":"notifications/message","params":{{"level":"info","data":"{LONG}"}}}}"#),
        format!(r#"{{"params":{{"data":"{LONG}"}},"method":"notifications/x"}}"#),
        format!(r#"{{"id":99999,"result":"{LONG}"}}"#),
        format!(r#"{{"result":{{"b":"{LONG}","id":$2}}}}"#),
        format!(r#"{{"result":"{LONG}","id":"$2 a"}}"#),
    ] {
        with_two_calls(&format!(
            r#"
            server > {line}
            ! garbage: a line over `max_message_bytes`
            ~ 2 in flight
            "#
        ));
    }
}

// The two directions count separately: the server's question 7 is not our call 7.
#[test]
fn a_question_that_is_too_long_is_refused_and_fails_no_call() {
    for line in [
        format!(r#"{{"id":$2,"method":"sampling/createMessage","params":{{"text":"{LONG}"}}}}"#),
        format!(r#"{{"method":"sampling/createMessage","id":$2,"params":{{"text":"{LONG}"}}}}"#),
        format!(r#"{{"method":"sampling/createMessage","params":{{"text":"{LONG}"}},"id":$2}}"#),
        format!(r#"{{"params":{{"text":"{LONG}"}},"method":"sampling/createMessage","id":$2}}"#),
    ] {
        with_two_calls(&format!(
            r#"
            server > {line}
            server < {{"id":$2,"error":{{"code":-32603,"message":"the request is over `max_message_bytes` (100 bytes)"}}}}
            ~ 2 in flight
            "#
        ));
    }
    with_two_calls(&format!(
        r#"
        server > {{"id":"a question","method":"sampling/createMessage","params":{{"text":"{LONG}"}}}}
        server < {{"id":"a question","error":{{"code":-32603,…
        "#
    ));
}
