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
        + 999ms
        + 1ms
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

// A person may take longer than any timeout; once it is back the call's clock starts anew.
#[test]
fn the_clock_of_a_parked_call_stands_still() {
    let back = retry("2", ACCEPT, "prism.7.$s");
    check(&format!(
        r#"
        {ASKED}
        + 9m
        modern:a json > {back}
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
