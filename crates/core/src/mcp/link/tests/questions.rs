//! The server's questions: shown to the one client they are for, or refused, and the answer back.

use super::check;

// checks 32 33
#[test]
fn a_question_goes_on_the_stream_of_the_call_that_asks_and_the_answer_back_under_the_servers_id() {
    for id in ["1", r#""q""#, "9007199254740993", r#""\u0031""#] {
        check(&format!(
            r#"
            settings class {{"sampling":{{}}}}
            up a {{"sampling":{{}}}}
            a get
            a get ~ 0-0
            a > {{"id":1,"method":"tools/call","params":{{"name":"x"}}}}
            server < {{"id":$1,…
            server > {{"id":{id},"method":"sampling/createMessage","params":{{"n":1.0}}}}
            ! asked
            a ~ 1-0
            a ~ 1-1 {{"id":1,"method":"sampling/createMessage","params":{{"n":1.0}}}}
            ~ 1 questions
            a > {{"result":{{"text":"yes"}},⏎"jsonrpc":"2.0","id":1}}
            server < {{"result":{{"text":"yes"}}, "jsonrpc":"2.0","id":{id}}}
            ~ 0 questions
            a > {{"id":1,"result":{{"text":"again"}}}}
            server > {{"id":$1,"result":{{}}}}
            ! answered x
            a ~ {{"id":1,"result":{{}}}}
            a end
            "#
        ));
    }
}

#[test]
fn a_client_may_answer_with_an_error() {
    check(
        r#"
        settings class {"sampling":{}}
        up a {"sampling":{}}
        a > {"id":1,"method":"tools/call","params":{"name":"x"}}
        server < {"id":$1,…
        server > {"id":"q","method":"sampling/createMessage","params":{}}
        ! asked
        a ~ 1-0
        a ~ {"id":1,"method":"sampling/createMessage","params":{}}
        a > {"id":1,"error":{"code":-1,"message":"the user said no"}}
        server < {"id":"q","error":{"code":-1,"message":"the user said no"}}
        "#,
    );
}

// mcp-eras 5.6, rule 3.
#[test]
fn a_question_while_several_calls_of_one_session_run_goes_on_its_get_stream_or_else_its_newest_call() {
    check(
        r#"
        settings class {"sampling":{}}
        up a b {"sampling":{}}
        a:x > {"id":1,"method":"tools/call","params":{"name":"x"}}
        server < {"id":$1,…
        a:y > {"id":2,"method":"prompts/get","params":{"name":"y"}}
        server < {"id":$2,…
        a:z > {"id":3,"method":"tools/list"}
        server < {"id":$3,…
        server > {"id":7,"method":"sampling/createMessage","params":{}}
        ! asked
        a:y ~ 1-0
        a:y ~ {"id":1,"method":"sampling/createMessage","params":{}}
        a get
        a get ~ 0-0
        server > {"id":8,"method":"sampling/createMessage","params":{}}
        ! asked
        a get ~ {"id":2,"method":"sampling/createMessage","params":{}}
        a > {"id":2,"result":8}
        server < {"id":8,"result":8}
        a > {"id":1,"result":7}
        server < {"id":7,"result":7}
        "#,
    );
}

// B-04: never guessed.
// checks 104
#[test]
fn a_question_while_calls_of_two_sessions_run_is_shown_to_neither() {
    for other in ["b", "stateless"] {
        check(&format!(
            r#"
            settings class {{"sampling":{{}}}}
            up a b {{"sampling":{{}}}}
            a > {{"id":1,"method":"tools/call","params":{{"name":"x"}}}}
            server < {{"id":$1,…
            {other} > {{"id":1,"method":"resources/read","params":{{"uri":"x"}}}}
            server < {{"id":$2,…
            server > {{"id":"q","method":"sampling/createMessage","params":{{}}}}
            ! asked
            ! ambiguous
            server < {{"id":"q","error":{{"code":-32603,"message":"ambiguous_owner: calls of several clients are running and nothing says which of them asks"}}}}
            ~ 0 questions
            "#
        ));
    }
}

// mcp-eras 5.6: it counts until the server has answered it.
// checks 104
#[test]
fn a_call_that_was_cancelled_and_not_answered_still_counts() {
    for end in [
        r#"a > {"method":"notifications/cancelled","params":{"requestId":1}}
        server < {"method":"notifications/cancelled",…
        a cancelled"#,
        "left a",
        "close a\na fault session ended\nserver < {\"method\":\"notifications/cancelled\",…",
    ] {
        check(&format!(
            r#"
            settings class {{"sampling":{{}}}}
            up a b {{"sampling":{{}}}}
            a > {{"id":1,"method":"tools/call","params":{{"name":"x"}}}}
            server < {{"id":$1,…
            {end}
            b > {{"id":1,"method":"tools/call","params":{{"name":"x"}}}}
            server < {{"id":$2,…
            server > {{"id":5,"method":"sampling/createMessage","params":{{}}}}
            ! asked
            ! ambiguous
            server < {{"id":5,"error":{{"code":-32603,…
            server > {{"id":$1,"result":{{}}}}
            ! answered x
            server > {{"id":6,"method":"sampling/createMessage","params":{{}}}}
            ! asked
            b ~ 1-0
            b ~ {{"id":1,"method":"sampling/createMessage","params":{{}}}}
            "#
        ));
    }
}

// Over HTTP it is certain: what comes with the response to a call that is over is nobody else's.
#[test]
fn what_comes_with_a_call_that_is_over_reaches_no_other_client() {
    check(
        r#"
        settings http, class {"sampling":{}}
        up a b {"sampling":{}}
        a > {"id":1,"method":"tools/call","params":{"name":"x"}}
        server < {"id":$1,…
        server > {"id":$1,"result":{}}
        ! answered x
        a < {"id":1,"result":{}}
        b > {"id":1,"method":"tools/call","params":{"name":"x"}}
        server < {"id":$2,…
        server about $1 > {"method":"notifications/message","params":{"level":"info","data":"a's"}}
        ! unowned "notifications/message"
        server about $1 > {"id":5,"method":"sampling/createMessage","params":{}}
        ! asked
        server < {"id":5,"error":{"code":-32602,…
        "#,
    );
}

#[test]
fn calls_that_cannot_ask_do_not_count() {
    check(
        r#"
        settings class {"sampling":{}}
        up a b {"sampling":{}}
        a > {"id":1,"method":"tools/call","params":{"name":"x"}}
        server < {"id":$1,…
        b > {"id":1,"method":"tools/list"}
        server < {"id":$2,…
        server > {"id":6,"method":"sampling/createMessage","params":{}}
        ! asked
        a ~ 1-0
        a ~ {"id":1,"method":"sampling/createMessage","params":{}}
        "#,
    );
}

#[test]
fn a_question_that_belongs_to_no_call_goes_to_the_only_owner_or_nobody() {
    check(
        r#"
        settings alone, class {"roots":{}}
        up a {"roots":{}}
        server > {"id":0,"method":"roots/list"}
        ! asked
        a get
        a get ~ 0-0
        a get ~ {"id":1,"method":"roots/list"}
        a > {"id":1,"result":{"roots":[]}}
        server < {"id":0,"result":{"roots":[]}}
        "#,
    );
    check(
        r#"
        settings class {"roots":{}}
        up a b {"roots":{}}
        server > {"id":0,"method":"roots/list"}
        ! asked
        server < {"id":0,"result":{"roots":[]}}
        close b
        server > {"id":1,"method":"roots/list"}
        ! asked
        server < {"id":1,"result":{"roots":[]}}
        server > {"id":2,"method":"sampling/createMessage"}
        ! asked
        server < {"id":2,"error":{"code":-32602,…
        "#,
    );
}

#[test]
fn a_client_without_a_session_cannot_be_asked() {
    check(
        r#"
        settings class {"sampling":{}}
        up a {"sampling":{}}
        stateless > {"id":1,"method":"tools/call","params":{"name":"x"}}
        server < {"id":$1,…
        server > {"id":6,"method":"sampling/createMessage","params":{}}
        ! asked
        server < {"id":6,"error":{"code":-32601,…
        "#,
    );
}

// checks 106
#[test]
fn what_a_client_did_not_say_it_can_answer_it_is_not_asked() {
    let cases = [
        ("{}", "sampling/createMessage", "{}", "-32601"),
        ("{}", "roots/list", "{}", "-32601"),
        ("{}", "elicitation/create", "{}", "-32602"),
        (r#"{"elicitation":{}}"#, "elicitation/create", r#"{"mode":"url"}"#, "-32602"),
        (r#"{"elicitation":{"url":{}}}"#, "elicitation/create", r#"{"mode":"form"}"#, "-32602"),
        (r#"{"elicitation":{"url":{}}}"#, "elicitation/create", "{}", "-32602"),
    ];
    for (capabilities, method, params, code) in cases {
        check(&format!(
            r#"
            up a {capabilities}
            a > {{"id":1,"method":"tools/call","params":{{"name":"x"}}}}
            server < {{"id":$1,…
            server > {{"id":"q","method":"{method}","params":{params}}}
            ! asked
            server < {{"id":"q","error":{{"code":{code},…
            server > {{"id":$1,"result":{{}}}}
            a < {{"id":1,"result":{{}}}}
            "#
        ));
    }
    for (capabilities, params) in [
        (r#"{"elicitation":{}}"#, r#"{"mode":"form"}"#),
        (r#"{"elicitation":{}}"#, "{}"),
        (r#"{"elicitation":{"url":{}}}"#, r#"{"mode":"\u0075rl"}"#),
    ] {
        check(&format!(
            r#"
            up a {capabilities}
            a > {{"id":1,"method":"tools/call","params":{{"name":"x"}}}}
            server < {{"id":$1,…
            server > {{"id":"q","method":"elicitation/create","params":{params}}}
            ! asked
            a ~ 1-0
            a ~ {{"id":1,"method":"elicitation/create","params":{params}}}
            "#
        ));
    }
}

#[test]
fn a_question_that_no_revision_knows_is_refused() {
    check(
        r#"
        up a
        server > {"id":"q","method":"fs/format","params":{}}
        server < {"id":"q","error":{"code":-32601,"message":"method not found"}}
        "#,
    );
}

// B-04: the numbers of one session mean nothing in another.
#[test]
fn nobody_can_answer_a_question_that_another_was_asked() {
    check(
        r#"
        settings class {"sampling":{}}
        up a b {"sampling":{}}
        a > {"id":1,"method":"tools/call","params":{"name":"x"}}
        server < {"id":$1,…
        server > {"id":"for a","method":"sampling/createMessage","params":{}}
        ! asked
        a ~ 1-0
        a ~ {"id":1,"method":"sampling/createMessage","params":{}}
        b > {"id":1,"result":"from b"}
        b > {"id":"for a","result":"from b"}
        stateless > {"id":1,"result":"from nobody"}
        a > {"id":"1","result":"a string is another id"}
        a > {"id":2,"result":"there is no second"}
        a > {"id":1,"result":"from a"}
        server < {"id":"for a","result":"from a"}
        "#,
    );
}

#[test]
fn a_question_that_the_server_takes_back_is_cancelled_where_it_was_asked_and_under_our_number() {
    check(
        r#"
        settings class {"sampling":{}}
        up a b {"sampling":{}}
        a > {"id":1,"method":"tools/call","params":{"name":"x"}}
        server < {"id":$1,…
        server > {"id":"q","method":"sampling/createMessage","params":{}}
        ! asked
        a ~ 1-0
        a ~ {"id":1,"method":"sampling/createMessage","params":{}}
        server > {"method":"notifications/cancelled","params":{"requestId":"other"}}
        server > {"method":"notifications/cancelled","params":{"reason":"?"}}
        server > {"method":"notifications/cancelled","params":{"requestId":"q","reason":"done"}}
        a ~ {"method":"notifications/cancelled","params":{"requestId":1,"reason":"done"}}
        a > {"id":1,"result":"late"}
        ~ 0 questions
        "#,
    );
}

#[test]
fn a_question_that_nobody_answers_is_answered_with_an_error_after_ten_minutes() {
    check(
        r#"
        settings class {"sampling":{}}, timeout off, alone
        up a {"sampling":{}}
        a get
        a get ~ 0-0
        server > {"id":"q","method":"sampling/createMessage","params":{}}
        ! asked
        a get ~ {"id":1,"method":"sampling/createMessage","params":{}}
        + 599s
        + 1s
        server < {"id":"q","error":{"code":-32603,"message":"the client did not answer in time"}}
        a > {"id":1,"result":"late"}
        ~ 0 questions
        "#,
    );
}

// B-07, 5.10: a person may take a while; the hard limit holds all the same.
#[test]
fn the_clock_of_a_call_stands_still_while_its_client_is_asked() {
    check(
        r#"
        settings class {"sampling":{}}, timeout 30s, at most 100s
        up a {"sampling":{}}
        a > {"id":1,"method":"tools/call","params":{"name":"x"}}
        server < {"id":$1,…
        server > {"id":"q","method":"sampling/createMessage","params":{}}
        ! asked
        a ~ 1-0
        a ~ {"id":1,"method":"sampling/createMessage","params":{}}
        + 99s
        + 1s
        a ~ {"id":1,"error":{"code":-32603,"message":"no answer within…
        a end
        server < {"method":"notifications/cancelled","params":{"requestId":$1}}
        "#,
    );
}

#[test]
fn a_session_that_ends_answers_its_questions() {
    check(
        r#"
        settings class {"sampling":{}}
        up a b {"sampling":{}}
        a > {"id":1,"method":"tools/call","params":{"name":"x"}}
        server < {"id":$1,…
        server > {"id":"q","method":"sampling/createMessage","params":{}}
        ! asked
        a ~ 1-0
        a ~ {"id":1,"method":"sampling/createMessage","params":{}}
        close a
        server < {"id":"q","error":{"code":-32603,"message":"the client's session has ended"}}
        server < {"method":"notifications/cancelled","params":{"requestId":$1}}
        a ~ {"id":1,"error":…
        a end
        "#,
    );
}

#[test]
fn a_question_about_a_call_of_a_session_that_ended_is_refused() {
    check(
        r#"
        settings class {"sampling":{}}
        up a b {"sampling":{}}
        a > {"id":1,"method":"tools/call","params":{"name":"x"}}
        server < {"id":$1,…
        close a
        server < {"method":"notifications/cancelled","params":{"requestId":$1}}
        a fault session ended
        server > {"id":"q","method":"sampling/createMessage","params":{}}
        ! asked
        server < {"id":"q","error":{"code":-32603,"message":"the client's session has ended"}}
        "#,
    );
}

#[test]
fn a_client_reports_progress_only_on_a_question_it_was_asked() {
    check(
        r#"
        settings class {"sampling":{}}
        up a b {"sampling":{}}
        a > {"id":1,"method":"tools/call","params":{"name":"x"}}
        server < {"id":$1,…
        server > {"id":"q","method":"sampling/createMessage","params":{"_meta":{"progressToken":"t"}}}
        ! asked
        a ~ 1-0
        a ~ {"id":1,"method":"sampling/createMessage","params":{"_meta":{"progressToken":"t"}}}
        b > {"method":"notifications/progress","params":{"progressToken":"t","progress":9}}
        a > {"method":"notifications/progress","params":{"progressToken":"u","progress":9}}
        a > {"method":"notifications/progress","params":{"progressToken":"t","progress":1}}
        server < {"method":"notifications/progress","params":{"progressToken":"t","progress":1}}
        a > {"id":1,"result":{}}
        server < {"id":"q","result":{}}
        a > {"method":"notifications/progress","params":{"progressToken":"t","progress":2}}
        "#,
    );
}

#[test]
fn a_client_that_takes_only_json_is_asked_on_its_get_stream() {
    check(
        r#"
        settings class {"sampling":{}}
        up a {"sampling":{}}
        a json > {"id":1,"method":"tools/call","params":{"name":"x"}}
        server < {"id":$1,…
        server > {"id":"q","method":"sampling/createMessage","params":{}}
        ! asked
        a get
        a get ~ 0-0
        a get ~ {"id":1,"method":"sampling/createMessage","params":{}}
        a > {"id":1,"result":{}}
        server < {"id":"q","result":{}}
        server > {"id":$1,"result":{}}
        ! answered x
        a < {"id":1,"result":{}}
        "#,
    );
}

// A person cannot answer that many.
#[test]
fn the_sixty_fifth_open_question_is_refused() {
    let asked: String = (1..=64)
        .map(|n| {
            format!(
                "server > {{\"id\":{n},\"method\":\"roots/list\"}}\n! asked\na get ~ {{\"id\":{n},\"method\":\"roots/list\"}}\n"
            )
        })
        .collect();
    check(&format!(
        r#"
        settings alone, class {{"roots":{{}}}}
        up a {{"roots":{{}}}}
        a get
        a get ~ 0-0
        {asked}
        server > {{"id":65,"method":"roots/list"}}
        ! asked
        server < {{"id":65,"error":{{"code":-32603,…
        "#
    ));
}
