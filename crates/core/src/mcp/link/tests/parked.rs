//! A legacy server that asks in the middle of a modern client's call: the question in the place of the answer, and the
//! way back to it (mcp-eras 5.7 A, 5.16).

use super::check;

/// Two modern clients of one child whose calls take turns. `A`'s runs, and has asked.
pub(super) const ASKED: &str = r#"
    settings exclusive, stateless 1m, class {"elicitation":{}}
    up modern
    modern:a > {"id":"a1","method":"tools/call","params":{"name":"deploy","arguments":{"to":1.0},"_meta":{‹{"elicitation":{}} A›,"progressToken":"t"}}}
    server < {"id":$1,"method":"tools/call","params":{"name":"deploy","arguments":{"to":1.0},"_meta":{"progressToken":$1}}}
    server > {"id":1,"method":"elicitation/create","params":{"mode":"form","message":"sure?","requestedSchema":{}}}
    ! asked
    + 20ms
    modern:a < {"id":"a1","result":{"resultType":"input_required","inputRequests":{"r1":{"method":"elicitation/create","params":{"mode":"form","message":"sure?","requestedSchema":{}}}},"requestState":"prism.7.$s","_meta":{‹s›}}}
    ~ 1 parked
"#;

/// What `A` says when it comes back.
pub(super) fn retry(id: &str, answers: &str, state: &str) -> String {
    format!(
        r#"{{"id":{id},"method":"tools/call","params":{{"name":"deploy","arguments":{{"to":1.0}},"inputResponses":{answers},"requestState":"{state}","_meta":{{‹{{"elicitation":{{}}}} A›,"progressToken":"u"}}}}}}"#
    )
}

pub(super) const ACCEPT: &str = r#"{"r1":{"action":"accept","content":{"yes":true}}}"#;
pub(super) const REFUSED: &str =
    r#""error":{"code":-32602,"message":"this `requestState` is not good for this request…"#;

// mcp-eras 5.16, as it is written there.
// checks 72 73 75 86 105
#[test]
fn the_worked_example() {
    let back = retry(r#""a2""#, ACCEPT, "prism.7.$s");
    check(&format!(
        r#"
        settings exclusive, class {{"elicitation":{{}}}}
        up modern
        modern:a > {{"id":"a1","method":"tools/call","params":{{"name":"deploy","arguments":{{"to":1.0}},"_meta":{{‹{{"elicitation":{{}}}} A›,"progressToken":"t"}}}}}}
        server < {{"id":$7,"method":"tools/call",…"_meta":{{"progressToken":$7}}}}}}
        modern:b > {{"id":"a1","method":"tools/call","params":{{"name":"deploy","_meta":{{‹{{"elicitation":{{}}}} B›}}}}}}
        ~ 1 held
        server > {{"method":"notifications/progress","params":{{"progressToken":$7,"progress":1,"total":3}}}}
        modern:a ~ {{"method":"notifications/progress","params":{{"progressToken":"t","progress":1,"total":3}}}}
        server > {{"id":1,"method":"elicitation/create","params":{{"message":"sure?"}}}}
        ! asked
        + 20ms
        modern:a ~ {{"id":"a1","result":{{"resultType":"input_required","inputRequests":{{"r1":{{"method":"elicitation/create","params":{{"message":"sure?"}}}}}},"requestState":"prism.7.$s","_meta":{{‹s›}}}}}}
        modern:a end
        modern:b elsewhere {{"id":"a1","method":"tools/call","params":{{"name":"deploy","_meta":{{‹{{"elicitation":{{}}}} B›}}}}}}
        modern:c > {{"id":"a1","method":"tools/call","params":{{"name":"deploy","_meta":{{‹{{"elicitation":{{}}}} B›}}}}}}
        ~ 1 held
        server > {{"method":"notifications/progress","params":{{"progressToken":$7,"progress":1.5,"total":3}}}}
        modern:a > {back}
        server < {{"id":1,"result":{{"action":"accept","content":{{"yes":true}}}}}}
        server > {{"method":"notifications/progress","params":{{"progressToken":$7,"progress":2,"total":3}}}}
        modern:a ~ {{"method":"notifications/progress","params":{{"progressToken":"u","progress":2,"total":3}}}}
        ~ 0 parked
        server > {{"id":$7,"result":{{"content":[]}}}}
        ! answered deploy
        modern:a ~ {{"id":"a2","result":{{"resultType":"complete","content":[],"_meta":{{‹s›}}}}}}
        modern:a end
        server < {{"id":$8,"method":"tools/call","params":{{"name":"deploy","_meta":{{}}}}}}
        ~ 0 aliases
        server > {{"id":$8,"result":{{}}}}
        ! answered deploy
        modern:c < {{"id":"a1","result":{{"resultType":"complete","_meta":{{‹s›}}}}}}
        ~ 0 exchanges
        "#
    ));
}

// checks 86
#[test]
fn a_call_that_comes_back_is_one_call_to_the_server() {
    let back = retry("2", ACCEPT, "prism.7.$s");
    check(&format!(
        r#"
        {ASKED}
        modern:a > {back}
        server < {{"id":1,"result":{{"action":"accept","content":{{"yes":true}}}}}}
        server > {{"id":$1,"result":{{"done":1.0}}}}
        ! answered deploy
        modern:a < {{"id":2,"result":{{"resultType":"complete","done":1.0,"_meta":{{‹s›}}}}}}
        ~ 0 exchanges
        "#
    ));
}

// checks 87
#[test]
fn a_state_is_good_once_for_one_client_with_one_request() {
    let right = retry("2", ACCEPT, "prism.7.$s");
    let wrong = [
        right.replace(" A›", " B›"),
        right.replace(" A›", "›"),
        right.replace("1.0", "2.0"),
        right.replace("deploy", "destroy"),
        right.replace("tools/call", "prompts/get"),
        right.replace(r#""name":"#, r#""more":1,"name":"#),
        retry("2", ACCEPT, "prism.7.00000000000000000000000000000077"),
    ];
    for wrong in wrong {
        check(&format!(
            r#"
            {ASKED}
            modern:b > {wrong}
            modern:b error {{"id":2,{REFUSED}
            ~ 1 parked
            modern:a > {right}
            server < {{"id":1,"result":{{"action":"accept",…
            modern:c > {right}
            modern:c error {{"id":2,{REFUSED}
            server > {{"id":$1,"result":{{}}}}
            ! answered deploy
            modern:a < {{"id":2,"result":{{"resultType":"complete",…
            modern:c > {right}
            modern:c error {{"id":2,{REFUSED}
            "#
        ));
    }
    // Not ours at all, or another link's.
    for state in ["prism.8.$s", "prism.7.$s.0", "prism.7.0$s", "prism.07x.$s", "something else", ""] {
        let wrong = retry("2", ACCEPT, state);
        check(&format!(
            r#"
            {}
            modern:b > {wrong}
            ~ 1 parked
            modern:a > {right}
            server < {{"id":1,"result":{{"action":"accept",…
            server > {{"id":$1,"result":{{}}}}
            ! answered deploy
            modern:a < {{"id":2,"result":{{"resultType":"complete",…
            modern:b error {{"id":2,"error":{{"code":-32602,…
            "#,
            ASKED
        ));
    }
}

// mcp-eras 5.7 A5, 5.16: the state's time is over, and with it the call.
// checks 87 89 105
#[test]
fn a_client_that_never_comes_back_is_given_up_after_ten_minutes() {
    let warm = ASKED.replace("stateless 1m", "stateless 20m");
    let back = retry("2", ACCEPT, "prism.7.$s");
    check(&format!(
        r#"
        {warm}
        + 599s
        + 1s
        server < {{"id":1,"result":{{"action":"cancel"}}}}
        server < {{"method":"notifications/cancelled","params":{{"requestId":$1}}}}
        modern:a > {back}
        modern:a error {{"id":2,{REFUSED}
        modern:b > {{"id":9,"method":"tools/call","params":{{"name":"deploy","_meta":{{‹{{"elicitation":{{}}}} B›}}}}}}
        ~ 1 held
        server > {{"id":$1,"error":{{"code":0,"message":"cancelled"}}}}
        ! answered deploy
        server < {{"id":$2,"method":"tools/call",…
        ~ 0 parked
        "#
    ));
}

// checks 89
#[test]
fn each_kind_of_question_is_taken_back_in_its_own_words() {
    check(
        r#"
        settings stateless 20m, class {"elicitation":{},"sampling":{},"roots":{}}
        up modern
        modern:a > {"id":1,"method":"prompts/get","params":{"name":"p","_meta":{‹{"elicitation":{},"sampling":{},"roots":{}}›}}}
        server < {"id":$1,…
        server > {"id":"e","method":"elicitation/create","params":{"message":"?","elicitationId":"x","task":{},"_meta":{"progressToken":1}}}
        ! asked
        server > {"id":"s","method":"sampling/createMessage","params":{"messages":[]}}
        ! asked
        server > {"id":"r","method":"roots/list"}
        ! asked
        + 20ms
        modern:a < {"id":1,"result":{"resultType":"input_required","inputRequests":{"r1":{"method":"elicitation/create","params":{"message":"?"…}},"r2":{"method":"sampling/createMessage","params":{"messages":[]}},"r3":{"method":"roots/list","params":{}}},"requestState":"prism.7.$s","_meta":{‹s›}}}
        + 10m
        server < {"id":"e","result":{"action":"cancel"}}
        server < {"id":"s","error":{"code":-1,…
        server < {"id":"r","error":{"code":-32603,…
        server < {"method":"notifications/cancelled","params":{"requestId":$1}}
        "#,
    );
}

// mcp-eras 5.7 A5: the outcome is kept until the state expires.
#[test]
fn what_came_of_a_call_while_its_client_was_away_is_kept_for_it() {
    let back = retry("2", ACCEPT, "prism.7.$s");
    for (outcome, told) in [
        (r#""result":{"n":1}"#, r#"< {"id":2,"result":{"resultType":"complete","n":1,"_meta":{‹s›}}}"#),
        (r#""error":{"code":-32002,"message":"?"}"#, r#"error {"id":2,"error":{"code":-32602,"message":"?"}}"#),
    ] {
        check(&format!(
            r#"
            {ASKED}
            modern:b > {{"id":9,"method":"tools/call","params":{{"name":"deploy","_meta":{{‹{{"elicitation":{{}}}} B›}}}}}}
            server > {{"id":$1,{outcome}}}
            ! answered deploy
            server < {{"id":1,"result":{{"action":"cancel"}}}}
            server < {{"id":$2,"method":"tools/call",…
            ~ 1 parked
            modern:a > {back}
            modern:a {told}
            ~ 0 parked
            "#
        ));
        // It is over all the same if the server then ends.
        check(&format!(
            r#"
            {ASKED}
            server > {{"id":$1,{outcome}}}
            ! answered deploy
            server < {{"id":1,"result":{{"action":"cancel"}}}}
            exit
            modern:a > {back}
            modern:a {told}
            "#
        ));
        // And the child need not be kept for it.
        check(&format!(
            r#"
            {ASKED}
            server > {{"id":$1,{outcome}}}
            ! answered deploy
            server < {{"id":1,"result":{{"action":"cancel"}}}}
            + 59s
            + 1s
            ! stop
            modern:a > {back}
            modern:a {told}
            "#
        ));
        // But not for ever.
        check(&format!(
            r#"
            {ASKED}
            server > {{"id":$1,{outcome}}}
            ! answered deploy
            server < {{"id":1,"result":{{"action":"cancel"}}}}
            + 60s
            ! stop
            + 540s
            ~ 0 exchanges
            modern:a > {back}
            modern:a error {{"id":2,{REFUSED}
            "#
        ));
    }
}

// mcp-eras 5.7 A6, 5.16.
#[test]
fn a_server_that_ends_takes_the_parked_call_along_and_its_client_is_told() {
    let back = retry("2", ACCEPT, "prism.7.$s");
    check(&format!(
        r#"
        {ASKED}
        exit
        ~ 1 parked
        modern:a > {back}
        modern:a fault exited
        ~ 0 exchanges
        "#
    ));
    check(&format!(
        r#"
        {ASKED}
        shut down
        ! stop
        modern:a > {back}
        modern:a fault stopping
        "#
    ));
}

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
        modern:a > {"id":1,"method":"tools/call","params":{"name":"x","_meta":{‹{"elicitation":{}}›}}}
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

// A person may take longer than any timeout; once it is back the call's clock starts anew.
#[test]
fn the_clock_of_a_parked_call_stands_still() {
    let back = retry("2", ACCEPT, "prism.7.$s");
    check(&format!(
        r#"
        {ASKED}
        + 9m
        modern:a > {back}
        server < {{"id":1,"result":{{"action":"accept",…
        + 29s
        + 1s
        server < {{"method":"notifications/cancelled","params":{{"requestId":$1}}}}
        modern:a fault timeout
        "#
    ));
}

#[test]
fn a_client_that_takes_only_events_is_asked_on_a_stream() {
    check(
        r#"
        settings class {"elicitation":{}}
        up modern
        modern:a events > {"id":1,"method":"tools/call","params":{"name":"x","_meta":{‹{"elicitation":{}}›}}}
        server < {"id":$1,…
        server > {"id":"q","method":"elicitation/create","params":{}}
        ! asked
        + 20ms
        modern:a ~ {"id":1,"result":{"resultType":"input_required",…
        modern:a end
        "#,
    );
}

// B-13.
#[test]
fn the_child_is_kept_while_a_call_is_parked_and_ends_after_it() {
    let back = retry("2", ACCEPT, "prism.7.$s");
    check(&format!(
        r#"
        {ASKED}
        + 5m
        modern:a > {back}
        server < {{"id":1,"result":{{"action":"accept",…
        server > {{"id":$1,"result":{{}}}}
        ! answered deploy
        modern:a < {{"id":2,…
        + 59s
        + 1s
        ! stop
        "#
    ));
}

// mcp-eras 5.4, 5.9, 5.10: the call goes on as its client says now.
// checks 75 76
#[test]
fn a_call_that_came_back_is_its_clients_as_any_other() {
    let back = retry("2", ACCEPT, "prism.7.$s").replace(r#","progressToken":"u""#, "");
    check(&format!(
        r#"
        {ASKED}
        server > {{"method":"notifications/message","params":{{"level":"error","data":1}}}}
        ! unowned "notifications/message"
        modern:a > {back}
        server < {{"id":1,"result":{{"action":"accept",…
        server > {{"method":"notifications/progress","params":{{"progressToken":$1,"progress":1}}}}
        server > {{"method":"notifications/message","params":{{"level":"error","data":2}}}}
        left modern:a
        server < {{"method":"notifications/cancelled","params":{{"requestId":$1}}}}
        server > {{"id":$1,"result":"late"}}
        ! answered deploy
        ~ 0 exchanges
        ~ 0 aliases
        "#
    ));
    let loud = retry("2", ACCEPT, "prism.7.$s").replace(" A›", " A debug›");
    check(&format!(
        r#"
        {ASKED}
        modern:a > {loud}
        server < {{"id":1,"result":{{"action":"accept",…
        server > {{"method":"notifications/message","params":{{"level":"debug","data":2}}}}
        modern:a ~ {{"method":"notifications/message","params":{{"level":"debug","data":2}}}}
        "#
    ));
}

#[test]
fn a_connection_that_broke_while_the_client_was_away_is_told_when_it_is_back() {
    let back = retry("2", ACCEPT, "prism.7.$s");
    check(&format!(
        r#"
        {}
        cut $1
        server < {{"id":1,"result":{{"action":"cancel"}}}}
        modern:a > {back}
        modern:a fault cut
        "#,
        ASKED.replace("settings ", "settings http, ").replace("server > {\"id\":1,", "server about $1 > {\"id\":1,")
    ));
}
