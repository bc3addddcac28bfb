//! Calls that take turns, so that a question's owner is certain (mcp-eras 5.6).

use super::{
    check,
    parked::{ACCEPT, ASKED, REFUSED, retry},
};

// mcp-eras 5.6: it may still ask on behalf of the call that is over.
// checks 105
#[test]
fn a_server_that_ignores_the_cancel_is_started_again_before_the_next_call() {
    let warm = ASKED.replace("stateless 1m", "stateless 20m");
    check(&format!(
        r#"
        {warm}
        + 600s
        server < {{"id":1,"result":{{"action":"cancel"}}}}
        server < {{"method":"notifications/cancelled","params":{{"requestId":$1}}}}
        modern:b > {{"id":9,"method":"tools/call","params":{{"name":"deploy","_meta":{{‹{{"elicitation":{{}}}} B›}}}}}}
        + 999ms
        + 1ms
        ! stop
        ! start
        server < {{"id":$i,"method":"initialize",…
        greet
        ! ready s 1
        server < {{"method":"notifications/initialized"}}
        server < {{"id":$2,"method":"tools/call",…
        "#
    ));
}

// mcp-eras 5.6: exclusivity is for those who can be asked; lists, and servers that ask nothing, stay concurrent.
// checks 105
#[test]
fn calls_that_cannot_ask_and_quiet_servers_take_no_turns() {
    check(&format!(
        r#"
        {ASKED}
        modern:b > {{"id":9,"method":"tools/list","params":{{"_meta":{{‹{{"elicitation":{{}}}} B›}}}}}}
        server < {{"id":$2,"method":"tools/list","params":{{"_meta":{{}}}}}}
        modern:c > {{"id":9,"method":"tools/call","params":{{"name":"y","_meta":{{‹{{}} C›}}}}}}
        modern:d > {{"id":9,"method":"tools/call","params":{{"name":"z","_meta":{{‹{{}} D›}}}}}}
        ~ 2 held
        share
        server < {{"id":$3,…
        server < {{"id":$4,…
        ~ 0 held
        "#
    ));
    check(
        r#"
        up modern
        modern:a > {"id":9,"method":"tools/call","params":{"name":"y","_meta":{‹{} C›}}}
        server < {"id":$1,…
        modern:b > {"id":9,"method":"tools/call","params":{"name":"y","_meta":{‹{} C›}}}
        server < {"id":$2,…
        "#,
    );
}

#[test]
fn a_call_that_waits_its_turn_can_leave_time_out_or_find_its_turn_when_an_answer_is_too_long() {
    let waiting = r#"modern:b > {"id":9,"method":"tools/call","params":{"name":"y","_meta":{‹{} B›}}}
        ~ 1 held"#;
    check(&format!("{ASKED}\n{waiting}\nleft modern:b\n~ 0 held\n~ 1 in flight"));
    check(&format!(
        r#"
        {}
        + 1s
        {waiting}
        + 60s
        drop modern:b
        ~ 0 held
        ~ 1 in flight
        "#,
        ASKED.replace("settings ", "settings timeout off, ")
    ));
    check(&format!(
        r#"
        {ASKED}
        + 1s
        {waiting}
        + 299s
        + 1s
        modern:b ~ {{"id":9,"error":{{"code":-32603,"message":"no answer within `max_request_time`…
        modern:b end
        ~ 0 held
        ~ 1 in flight
        "#
    ));
    let long = "x".repeat(600);
    let back = retry("2", ACCEPT, "prism.7.$s");
    check(&format!(
        r#"
        {}
        {waiting}
        modern:a > {back}
        server < {{"id":1,"result":{{"action":"accept",…
        server > {{"id":$1,"result":"{long}"}}
        modern:a fault too large
        server < {{"id":$2,"method":"tools/call","params":{{"name":"y",…
        "#,
        ASKED.replace("settings ", "settings limit 550, ")
    ));
}

// There is nowhere else to go: the call that has waited for its client the longest gives way.
#[test]
fn a_call_that_evicts_takes_the_place_of_a_parked_one() {
    let back = retry("2", ACCEPT, "prism.7.$s");
    check(&format!(
        r#"
        {ASKED}
        modern:b evicts > {{"id":9,"method":"tools/list","params":{{"_meta":{{‹{{}} B›}}}}}}
        server < {{"id":$2,…
        ~ 1 parked
        modern:c evicts > {{"id":9,"method":"tools/call","params":{{"name":"y","_meta":{{‹{{}} B›}}}}}}
        server < {{"id":1,"result":{{"action":"cancel"}}}}
        server < {{"method":"notifications/cancelled","params":{{"requestId":$1}}}}
        ~ 0 parked
        ~ 1 held
        modern:a > {back}
        modern:a error {{"id":2,{REFUSED}
        server > {{"id":$1,"error":{{"code":0,"message":"cancelled"}}}}
        ! answered deploy
        server < {{"id":$3,"method":"tools/call","params":{{"name":"y",…
        "#
    ));
}

// What has become a stream cannot go to another link any more: it waits.
#[test]
fn a_stream_that_waits_its_turn_stays() {
    check(
        r#"
        settings exclusive, class {"elicitation":{}}, timeout off
        up modern
        modern:a > {"id":1,"method":"tools/call","params":{"name":"x","_meta":{‹{"elicitation":{}} A›}}}
        server < {"id":$1,…
        modern:b > {"id":1,"method":"tools/call","params":{"name":"x","_meta":{‹{} B›}}}
        + 61s
        modern:c > {"id":1,"method":"tools/call","params":{"name":"x","_meta":{‹{} C›}}}
        server > {"id":"q","method":"elicitation/create","params":{}}
        ! asked
        + 20ms
        modern:a ~ {"id":1,"result":{"resultType":"input_required",…
        modern:a end
        + 1s
        modern:c elsewhere {"id":1,…
        ~ 1 held
        server > {"id":$1,"result":{}}
        ! answered x
        server < {"id":"q","result":{"action":"cancel"}}
        server < {"id":$2,…
        server > {"id":$2,"result":{}}
        ! answered x
        modern:b ~ {"id":1,"result":{"resultType":"complete",…
        modern:b end
        "#,
    );
}

// A session's calls take no turns, and their server's questions are certain or refused.
// checks 104
#[test]
fn a_sessions_call_beside_a_modern_one_makes_a_question_ambiguous() {
    check(
        r#"
        settings exclusive, class {"sampling":{}}
        up a {"sampling":{}}
        a > {"id":1,"method":"tools/call","params":{"name":"x"}}
        server < {"id":$1,…
        modern:b > {"id":1,"method":"tools/call","params":{"name":"x","_meta":{‹{"sampling":{}}›}}}
        ~ 1 held
        server > {"id":$1,"result":{}}
        ! answered x
        a < {"id":1,"result":{}}
        server < {"id":$2,…
        a > {"id":1,"method":"tools/call","params":{"name":"x"}}
        server < {"id":$3,…
        server > {"id":"q","method":"sampling/createMessage","params":{}}
        ! asked
        ! ambiguous
        server < {"id":"q","error":{"code":-32603,…
        + 20ms
        ~ 0 parked
        ~ 0 questions
        "#,
    );
}

// A call that was cancelled, and that the server still works on, may still be asked about.
// checks 105
#[test]
fn the_next_call_waits_for_the_answer_to_a_cancelled_one() {
    check(
        r#"
        settings exclusive, class {"sampling":{}}
        up modern
        modern:a > {"id":1,"method":"tools/call","params":{"name":"x","_meta":{‹{"sampling":{}}›}}}
        server < {"id":$1,…
        left modern:a
        server < {"method":"notifications/cancelled","params":{"requestId":$1}}
        modern:b > {"id":1,"method":"tools/call","params":{"name":"y","_meta":{‹{"sampling":{}}›}}}
        ~ 1 held
        server > {"id":"q","method":"sampling/createMessage","params":{}}
        ! asked
        server < {"id":"q","error":{"code":-32603,"message":"the client has left"}}
        server > {"id":$1,"error":{"code":0,"message":"cancelled"}}
        ! answered x
        server < {"id":$2,"method":"tools/call","params":{"name":"y",…
        "#,
    );
}

// Of two that do not say who they are nothing says that they are one.
#[test]
fn a_client_without_a_name_does_not_inherit_the_questions_of_another() {
    check(
        r#"
        settings exclusive, class {"sampling":{}}
        up modern
        modern:a > {"id":1,"method":"tools/call","params":{"name":"x","_meta":{‹{"sampling":{}}›}}}
        server < {"id":$1,…
        left modern:a
        server < {"method":"notifications/cancelled","params":{"requestId":$1}}
        modern:b > {"id":1,"method":"tools/call","params":{"name":"y","_meta":{‹{"sampling":{}}›}}}
        + 999ms
        ~ 1 held
        server > {"id":"q","method":"sampling/createMessage","params":{}}
        ! asked
        server < {"id":"q","error":{"code":-32603,"message":"the client has left"}}
        "#,
    );
}

// R-15: another client's call waits for a moment, and for what else runs, but never for what comes after it.
#[test]
fn a_call_behind_anothers_ghost_is_not_overtaken_and_the_server_is_replaced_when_nothing_runs() {
    check(
        r#"
        settings exclusive, class {"sampling":{}}
        up modern
        modern:l > {"id":1,"method":"tools/list","params":{"_meta":{‹{"sampling":{}} A›}}}
        server < {"id":$l,…
        modern:a > {"id":1,"method":"tools/call","params":{"name":"x","_meta":{‹{"sampling":{}} A›}}}
        server < {"id":$1,…
        left modern:a
        server < {"method":"notifications/cancelled","params":{"requestId":$1}}
        modern:b > {"id":1,"method":"tools/call","params":{"name":"y","_meta":{‹{"sampling":{}} B›}}}
        modern:c > {"id":1,"method":"tools/call","params":{"name":"z","_meta":{‹{"sampling":{}} A›}}}
        + 1s
        ~ 2 held
        server > {"id":"q","method":"sampling/createMessage","params":{}}
        ! asked
        server < {"id":"q","error":{"code":-32603,"message":"the call that asks this was cancelled"}}
        server > {"id":$l,"result":{"tools":[]}}
        ! listed …
        modern:l < {"id":1,…
        + 1s
        ! stop
        ! start
        server < {"id":$i,"method":"initialize",…
        greet
        ! ready s 1
        server < {"method":"notifications/initialized"}
        server < {"id":$2,"method":"tools/call","params":{"name":"y",…
        ~ 1 held
        "#,
    );
}

// mcp-eras 5.6: the second that a call waits behind a stopped one of its own client's is over when it is over.
// checks 105
#[test]
fn a_call_behind_a_stopped_one_waits_a_second_whatever_else_is_due_meanwhile() {
    check(
        r#"
        settings learned legacy, exclusive, timeout 30s
        up modern
        modern:l json > {"id":1,"method":"prompts/list","params":{"_meta":{‹{"elicitation":{}} A›}}}
        server < {"id":$l,"method":"prompts/list",…
        + 29500ms
        modern:a > {"id":2,"method":"tools/call","params":{"name":"x","_meta":{‹{"elicitation":{}} A›}}}
        server < {"id":$1,"method":"tools/call",…
        left modern:a
        server < {"method":"notifications/cancelled","params":{"requestId":$1}}
        modern:b > {"id":3,"method":"tools/call","params":{"name":"y","_meta":{‹{"elicitation":{}} A›}}}
        ~ 1 held
        + 500ms
        modern:l fault timeout…
        server < {"method":"notifications/cancelled","params":{"requestId":$l}}
        ~ 1 held
        + 500ms
        server < {"id":$2,"method":"tools/call",…
        ~ 0 held
        "#,
    );
}

// A question on a stream of no call says nothing of its own: while one call runs it need not. (The Python SDK 1.x asks for samples so.)
#[test]
fn over_http_calls_that_may_be_asked_wait_a_moment_for_each_other() {
    let call = |who: &str| {
        let ability = r#"{"sampling":{}}"#;
        format!(
            r#"modern:{who} > {{"id":1,"method":"tools/call","params":{{"name":"x","_meta":{{‹{ability} {who}›}}}}}}"#
        )
    };
    check(&format!(
        r#"
        settings http, exclusive, class {{"sampling":{{}}}}
        up modern
        {}
        server < {{"id":$1,…
        {}
        ~ 1 held
        server > {{"id":"q","method":"sampling/createMessage","params":{{}}}}
        ! asked
        + 20ms
        modern:A < {{"id":1,"result":{{"resultType":"input_required",…
        server > {{"id":$1,"result":{{}}}}
        ! answered x
        server < {{"id":"q","error":{{…
        server < {{"id":$2,…
        "#,
        call("A"),
        call("B"),
    ));
    // Nobody waits for long, and nobody guesses then.
    check(&format!(
        r#"
        settings http, exclusive, class {{"sampling":{{}}}}
        up modern
        {}
        server < {{"id":$1,…
        {}
        + 1499ms
        + 1ms
        server < {{"id":$2,…
        {}
        server < {{"id":$3,…
        server > {{"id":"q","method":"sampling/createMessage","params":{{}}}}
        ! asked
        ! ambiguous
        server < {{"id":"q","error":{{"code":-32603,"message":"ambiguous_owner…
        "#,
        call("A"),
        call("B"),
        call("C"),
    ));
}

// What a server of the older era logs on a pipe is about anything that runs: a list waits for the call that hears the log, and that
// call for a list.
#[test]
fn a_list_and_a_call_that_hears_the_log_wait_a_moment_for_each_other() {
    let call =
        r#"modern:a > {"id":1,"method":"tools/call","params":{"name":"x","_meta":{‹{"elicitation":{}} debug A›}}}"#;
    let list = r#"modern:b > {"id":1,"method":"tools/list","params":{"_meta":{‹{"elicitation":{}} B›}}}"#;
    let note = r#"{"method":"notifications/message","params":{"level":"info","data":1}}"#;
    check(&format!(
        r#"
        settings exclusive, class {{"elicitation":{{}}}}
        up modern
        {list}
        server < {{"id":$1,"method":"tools/list",…
        {call}
        ~ 1 held
        server > {{"id":$1,"result":{{"tools":[{{"name":"x"}}]}}}}
        ! listed x
        modern:b < {{"id":1,…
        server < {{"id":$s,"method":"logging/setLevel",…
        server < {{"id":$2,"method":"tools/call",…
        {}
        ~ 1 held
        server > {note}
        modern:a ~ {note}
        + 1500ms
        server < {{"id":$3,"method":"prompts/list",…
        "#,
        list.replace("modern:b", "modern:c").replace("tools/list", "prompts/list"),
    ));
}

// R-15: a call that was cancelled and is never answered keeps the floor for a moment only.
#[test]
fn a_ghost_leaves_the_floor() {
    check(
        r#"
        settings exclusive, class {"elicitation":{}}
        up modern
        modern:a > {"id":1,"method":"tools/call","params":{"name":"x","_meta":{‹{"elicitation":{}} debug A›}}}
        server < {"id":$s,"method":"logging/setLevel",…
        server < {"id":$1,"method":"tools/call",…
        left modern:a
        server < {"method":"notifications/cancelled","params":{"requestId":$1}}
        modern:b > {"id":1,"method":"tools/list","params":{"_meta":{‹{"elicitation":{}} B›}}}
        ~ 1 held
        + 999ms
        + 1ms
        server < {"id":$2,"method":"tools/list",…
        modern:c > {"id":1,"method":"prompts/list","params":{"_meta":{‹{"elicitation":{}} C›}}}
        server < {"id":$3,"method":"prompts/list",…
        "#,
    );
}
