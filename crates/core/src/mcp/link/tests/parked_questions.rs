//! What a legacy server may ask a modern client in the middle of a call: which questions, of which call, and how each is
//! answered, asked again or taken back (mcp-eras 5.7 A). How the call goes on is in `parked`.

use super::{
    check,
    parked::{ACCEPT, ASKED, retry},
};

// checks 88
#[test]
fn whoever_answers_a_part_is_asked_for_the_rest_and_what_was_not_asked_is_ignored() {
    check(
        r#"
        settings class {"elicitation":{},"roots":{}}
        up modern
        modern:a > {"id":1,"method":"resources/read","params":{"uri":"u","_meta":{‹{"elicitation":{},"roots":{}}›}}}
        server < {"id":$1,"method":"resources/read","params":{"uri":"u","_meta":{}}}
        server > {"id":1,"method":"elicitation/create","params":{"message":"?"}}
        ! asked
        + 19ms
        server > {"id":"1","method":"roots/list","params":{}}
        ! asked
        + 1ms
        modern:a < {"id":1,"result":{"resultType":"input_required","inputRequests":{"r1":{…},"r2":{"method":"roots/list","params":{}}},"requestState":"prism.7.$s",…
        modern:a > {"id":2,"method":"resources/read","params":{"requestState":"prism.7.$s","inputResponses":{"r1":{"action":"decline"},"r2":7,"r3":{"no":"body"},"x":{}},"uri":"u","_meta":{‹{"elicitation":{},"roots":{}}›}}}
        server < {"id":1,"result":{"action":"decline"}}
        + 0ms
        modern:a < {"id":2,"result":{"resultType":"input_required","inputRequests":{"r2":{"method":"roots/list","params":{}}},"requestState":"prism.7.$t",…
        server > {"id":2,"method":"elicitation/create","params":{"message":"and?"}}
        ! asked
        modern:a > {"id":3,"method":"resources/read","params":{"requestState":"prism.7.$s","inputResponses":{"r2":{"roots":[]}},"uri":"u","_meta":{‹{"elicitation":{},"roots":{}}›}}}
        modern:a error {"id":3,"error":{"code":-32602,…
        modern:a > {"id":3,"method":"resources/read","params":{"requestState":"prism.7.$t","inputResponses":{"r2":{"roots":[]}},"uri":"u","_meta":{‹{"elicitation":{},"roots":{}}›}}}
        server < {"id":"1","result":{"roots":[]}}
        + 0ms
        modern:a < {"id":3,"result":{"resultType":"input_required","inputRequests":{"r3":{"method":"elicitation/create","params":{"message":"and?"}}},"requestState":"prism.7.$u",…
        modern:a > {"id":4,"method":"resources/read","params":{"requestState":"prism.7.$u","inputResponses":{"r3":{"action":"cancel"}},"uri":"u","_meta":{‹{"elicitation":{},"roots":{}}›}}}
        server < {"id":2,"result":{"action":"cancel"}}
        server > {"id":3,"method":"elicitation/create","params":{"message":"still?"}}
        ! asked
        + 20ms
        modern:a < {"id":4,"result":{"resultType":"input_required","inputRequests":{"r4":{"method":"elicitation/create","params":{"message":"still?"}}},"requestState":"prism.7.$v",…
        modern:a > {"id":5,"method":"resources/read","params":{"requestState":"prism.7.$v","inputResponses":{"r4":{"action":"accept"}},"uri":"u","_meta":{‹{"elicitation":{},"roots":{}}›}}}
        server < {"id":3,"result":{"action":"accept"}}
        server > {"id":$1,"result":{"contents":[]}}
        modern:a < {"id":5,"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","contents":[],"_meta":{‹s›}}}
        ~ 0 exchanges
        "#,
    );
}

#[test]
fn a_retry_without_any_answer_is_asked_again() {
    let warm = ASKED.replace("stateless 1m", "stateless 20m");
    let back = retry("2", "{}", "prism.7.$s");
    check(&format!(
        r#"
        {warm}
        modern:a > {back}
        + 0ms
        modern:a < {{"id":2,"result":{{"resultType":"input_required","inputRequests":{{"r1":{{"method":"elicitation/create",…"requestState":"prism.7.$t",…
        + 600s
        server < {{"id":1,"result":{{"action":"cancel"}}}}
        server < {{"method":"notifications/cancelled","params":{{"requestId":$1}}}}
        "#
    ));
}

// mcp-eras 5.7 A4: unless the server took it back.
#[test]
fn a_question_that_the_server_took_back_is_neither_answered_nor_asked_again() {
    let back = retry("2", ACCEPT, "prism.7.$s");
    check(&format!(
        r#"
        {ASKED}
        server > {{"method":"notifications/cancelled","params":{{"requestId":1}}}}
        modern:a > {back}
        + 0ms
        server > {{"id":$1,"result":{{}}}}
        ! answered deploy
        modern:a < {{"id":2,"result":{{"resultType":"complete",…
        "#
    ));
    // Before it was put to the client it never was.
    check(
        r#"
        settings class {"elicitation":{}}
        up modern
        modern:a > {"id":1,"method":"tools/call","params":{"name":"x","_meta":{‹{"elicitation":{}}›}}}
        server < {"id":$1,…
        server > {"id":"q","method":"elicitation/create","params":{}}
        ! asked
        + 10ms
        server > {"method":"notifications/cancelled","params":{"requestId":"q"}}
        + 10ms
        server > {"id":$1,"result":{}}
        ! answered x
        modern:a < {"id":1,"result":{"resultType":"complete",…
        "#,
    );
}

#[test]
fn an_answer_in_the_window_makes_the_question_moot() {
    check(
        r#"
        settings class {"elicitation":{}}
        up modern
        modern:a > {"id":1,"method":"tools/call","params":{"name":"x","_meta":{‹{"elicitation":{}}›}}}
        server < {"id":$1,…
        server > {"id":"q","method":"elicitation/create","params":{}}
        ! asked
        server > {"id":$1,"result":{}}
        ! answered x
        server < {"id":"q","result":{"action":"cancel"}}
        modern:a < {"id":1,"result":{"resultType":"complete",…
        + 20ms
        ~ 0 parked
        "#,
    );
}

// checks 85 106
#[test]
fn only_what_this_very_request_declared_is_asked() {
    let cases = [
        ("{}", "sampling/createMessage", "{}", "-32601"),
        ("{}", "roots/list", "{}", "-32601"),
        ("{}", "elicitation/create", "{}", "-32602"),
        (r#"{"elicitation":{}}"#, "elicitation/create", r#"{"mode":"url"}"#, "-32602"),
        (r#"{"elicitation":{"url":{}}}"#, "elicitation/create", "{}", "-32602"),
    ];
    for (capabilities, method, params, code) in cases {
        check(&format!(
            r#"
            settings class {{"elicitation":{{"form":{{}},"url":{{}}}},"sampling":{{}},"roots":{{}}}}
            up modern
            modern:a > {{"id":1,"method":"tools/call","params":{{"name":"x","_meta":{{‹{capabilities}›}}}}}}
            server < {{"id":$1,…
            server > {{"id":"q","method":"{method}","params":{params}}}
            ! asked
            server < {{"id":"q","error":{{"code":{code},…
            + 20ms
            server > {{"id":$1,"result":{{}}}}
            ! answered x
            modern:a < {{"id":1,"result":{{"resultType":"complete",…
            "#
        ));
    }
    // What the retry does not declare any more is not asked again.
    let back = retry("2", "{}", "prism.7.$s").replace(r#"‹{"elicitation":{}}"#, r#"‹{"roots":{}}"#);
    check(&format!(
        r#"
        {ASKED}
        modern:a > {back}
        server < {{"id":1,"error":{{"code":-32602,…
        + 20ms
        server > {{"id":$1,"result":{{}}}}
        ! answered deploy
        modern:a < {{"id":2,"result":{{"resultType":"complete",…
        "#
    ));
}

// mcp-eras 5.7 A8, 5.14.
// checks 85 104
#[test]
fn a_question_of_no_call_that_may_ask_is_refused() {
    check(
        r#"
        settings class {"elicitation":{},"roots":{}}
        up modern
        modern:a > {"id":1,"method":"tools/list","params":{"_meta":{‹{"elicitation":{}}›}}}
        server < {"id":$1,…
        server > {"id":"q","method":"elicitation/create","params":{}}
        ! asked
        server < {"id":"q","error":{"code":-32602,…
        server > {"id":"r","method":"roots/list"}
        ! asked
        server < {"id":"r","result":{"roots":[]}}
        server > {"id":$1,"result":{"tools":[{"name":"t"}]}}
        ! listed t
        modern:a < {"id":1,"result":{"resultType":"complete",…
        "#,
    );
    // Two that may ask, and nothing says which.
    check(
        r#"
        settings class {"elicitation":{}}
        up modern
        modern:a > {"id":1,"method":"tools/call","params":{"name":"x","_meta":{‹{"elicitation":{}}›}}}
        server < {"id":$1,…
        modern:b > {"id":1,"method":"tools/call","params":{"name":"x","_meta":{‹{"elicitation":{}}›}}}
        server < {"id":$2,…
        server > {"id":"q","method":"elicitation/create","params":{}}
        ! asked
        ! ambiguous
        server < {"id":"q","error":{"code":-32603,"message":"ambiguous_owner…
        + 20ms
        modern:c > {"id":1,"method":"tools/call","params":{"name":"x","_meta":{‹{"elicitation":{}}›}}}
        ~ 1 held
        server > {"id":$1,"result":{}}
        ! answered x
        modern:a < {"id":1,…
        ~ 1 held
        server > {"id":$2,"result":{}}
        ! answered x
        modern:b < {"id":1,…
        server < {"id":$3,…
        "#,
    );
}

// Over HTTP the question says whose it is.
#[test]
fn a_question_that_came_with_a_calls_response_is_that_calls() {
    check(
        r#"
        settings http, class {"elicitation":{}}
        up modern
        modern:a > {"id":1,"method":"tools/call","params":{"name":"x","_meta":{‹{"elicitation":{}}›}}}
        server < {"id":$1,…
        modern:b > {"id":1,"method":"tools/call","params":{"name":"x","_meta":{‹{"elicitation":{}}›}}}
        server < {"id":$2,…
        server about $2 > {"id":5,"method":"elicitation/create","params":{}}
        ! asked
        + 20ms
        modern:b < {"id":1,"result":{"resultType":"input_required",…"requestState":"prism.7.$s",…
        modern:b > {"id":2,"method":"tools/call","params":{"name":"x","inputResponses":{"r1":{"action":"decline"}},"requestState":"prism.7.$s","_meta":{‹{"elicitation":{}}›}}}
        server < {"id":5,"result":{"action":"decline"}}
        server about $2 > {"id":6,"method":"elicitation/create","params":{}}
        ! asked
        + 20ms
        modern:b < {"id":2,"result":{"resultType":"input_required",…"requestState":"prism.7.$t",…
        "#,
    );
}

// mcp-eras 5.10.
// checks 76
#[test]
fn a_client_that_leaves_while_it_is_asked_takes_the_question_back() {
    check(
        r#"
        settings class {"elicitation":{}}
        up modern
        modern:a > {"id":1,"method":"tools/call","params":{"name":"x","_meta":{‹{"elicitation":{}}›}}}
        server < {"id":$1,…
        server > {"id":"q","method":"elicitation/create","params":{}}
        ! asked
        left modern:a
        server < {"id":"q","result":{"action":"cancel"}}
        server < {"method":"notifications/cancelled","params":{"requestId":$1}}
        + 20ms
        server > {"id":"p","method":"elicitation/create","params":{}}
        ! asked
        server < {"id":"p","error":{"code":-32603,"message":"the client has left"}}
        server > {"id":$1,"result":"late"}
        ! answered x
        ~ 0 exchanges
        "#,
    );
}

#[test]
fn a_call_that_times_out_while_the_question_waits_takes_it_back() {
    check(
        r#"
        settings class {"elicitation":{}}, timeout 30s
        up modern
        modern:a json > {"id":1,"method":"tools/call","params":{"name":"x","_meta":{‹{"elicitation":{}}›}}}
        server < {"id":$1,…
        + 29990ms
        server > {"id":"q","method":"elicitation/create","params":{}}
        ! asked
        + 10ms
        server < {"id":"q","result":{"action":"cancel"}}
        server < {"method":"notifications/cancelled","params":{"requestId":$1}}
        modern:a fault timeout
        + 1s
        ~ 0 parked
        "#,
    );
}
