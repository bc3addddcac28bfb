//! Calls that end without the server's answer: cancelled, too slow, or left by their client.

use super::check;

// mcp-eras 5.10.
// checks 39 99
#[test]
fn a_cancelled_call_gets_no_answer_and_the_server_hears_it_under_our_id() {
    check(
        r#"
        up a
        a > {"id":"1","method":"tools/call","params":{"name":"x"}}
        server < {"id":$1,…
        a > {"method":"notifications/cancelled","params":{"requestId":"1","reason":"enough"}}
        server < {"method":"notifications/cancelled","params":{"requestId":$1,"reason":"enough"}}
        a cancelled
        ~ 1 in flight
        server > {"id":$1,"result":{}}
        ~ 0 in flight
        "#,
    );
}

// checks 39
#[test]
fn a_cancelled_stream_just_ends() {
    check(
        r#"
        up a
        a > {"id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":1}}}
        server < {"id":$1,…
        server > {"method":"notifications/progress","params":{"progressToken":$1,"progress":1}}
        a ~ 1-0
        a ~ {"method":"notifications/progress",…
        a > {"method":"notifications/cancelled","params":{"requestId":1}}
        server < {"method":"notifications/cancelled","params":{"requestId":$1}}
        a end
        server > {"method":"notifications/progress","params":{"progressToken":$1,"progress":2}}
        server > {"id":$1,"error":{"code":-32800,"message":"cancelled"}}
        ~ 0 exchanges
        "#,
    );
}

// checks 40
#[test]
fn only_a_call_of_ones_own_that_runs_can_be_cancelled() {
    check(
        r#"
        up a b
        a > {"id":1,"method":"tools/call","params":{"name":"x"}}
        server < {"id":$1,…
        b > {"method":"notifications/cancelled","params":{"requestId":1}}
        a > {"method":"notifications/cancelled","params":{"requestId":"1"}}
        a > {"method":"notifications/cancelled","params":{"requestId":$1}}
        a > {"method":"notifications/cancelled","params":{}}
        a > {"method":"notifications/cancelled"}
        stateless > {"method":"notifications/cancelled","params":{"requestId":1}}
        server > {"id":$1,"result":{}}
        a < {"id":1,"result":{}}
        a > {"method":"notifications/cancelled","params":{"requestId":1}}
        "#,
    );
}

// B-17, mcp-eras 5.10: nothing says which of the two is meant.
#[test]
fn a_cancel_that_names_two_calls_cancels_neither() {
    check(
        r#"
        up a
        a:x > {"id":1,"method":"tools/call","params":{"name":"x"}}
        server < {"id":$1,…
        a:y > {"id":1,"method":"tools/call","params":{"name":"y"}}
        server < {"id":$2,…
        a > {"method":"notifications/cancelled","params":{"requestId":1}}
        server > {"id":$1,"result":{}}
        a:x < {"id":1,"result":{}}
        a > {"method":"notifications/cancelled","params":{"requestId":1}}
        server < {"method":"notifications/cancelled","params":{"requestId":$2}}
        a:y cancelled
        "#,
    );
}

#[test]
fn initialize_is_never_cancelled() {
    check(
        r#"
        open a
        ! start
        server < {"id":$0,"method":"initialize",…
        a > {"method":"notifications/cancelled","params":{"requestId":0}}
        greet
        server < {"method":"notifications/initialized"}
        ! ready s 1
        a < {"id":0,…
        "#,
    );
}

#[test]
fn a_call_that_is_cancelled_before_the_child_is_ready_never_reaches_it() {
    check(
        r#"
        up a
        exit
        a > {"id":1,"method":"tools/call","params":{"name":"x"}}
        a > {"method":"notifications/cancelled","params":{"requestId":1}}
        a cancelled
        ~ 0 in flight
        ~ 0 held
        + 500ms
        ! start
        server < {"id":$0,"method":"initialize",…
        greet
        server < {"method":"notifications/initialized"}
        ! ready s 1
        "#,
    );
}

// R-15: the server may never answer a cancelled call: that is what the protocol asks of it.
#[test]
fn a_cancelled_call_is_forgotten_after_a_moment() {
    check(
        r#"
        up a
        a > {"id":1,"method":"tools/call","params":{"name":"x"}}
        server < {"id":$1,…
        + 20s
        a > {"method":"notifications/cancelled","params":{"requestId":1}}
        server < {"method":"notifications/cancelled","params":{"requestId":$1}}
        a cancelled
        + 999ms
        ~ 1 in flight
        + 1ms
        ~ 0 in flight
        server > {"id":$1,"result":"late"}
        ~ 0 exchanges
        "#,
    );
}

// B-07.
#[test]
fn a_call_without_an_answer_times_out_and_the_server_is_told() {
    check(
        r#"
        up a b
        a json > {"id":1,"method":"tools/call","params":{"name":"x"}}
        server < {"id":$1,…
        + 10s
        b > {"id":1,"method":"tools/call","params":{"name":"x"}}
        server < {"id":$2,…
        + 19s
        + 1s
        a fault timeout
        server < {"method":"notifications/cancelled","params":{"requestId":$1}}
        server > {"id":$1,"result":"late"}
        server > {"id":$2,"result":"in time"}
        b < {"id":1,"result":"in time"}
        ~ 0 exchanges
        "#,
    );
}

// B-07.
#[test]
fn progress_restarts_the_clock_up_to_the_hard_limit() {
    check(
        r#"
        settings timeout 30s, at most 70s
        up a
        a json > {"id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":1}}}
        server < {"id":$1,…
        + 29s
        server > {"method":"notifications/progress","params":{"progressToken":$1,"progress":1}}
        + 29s
        server > {"method":"notifications/progress","params":{"progressToken":$1,"progress":2}}
        + 11s
        server > {"method":"notifications/progress","params":{"progressToken":$1,"progress":3}}
        + 1s
        a fault timeout
        server < {"method":"notifications/cancelled","params":{"requestId":$1}}
        "#,
    );
}

// B-07: once it is a stream, the 504 is an event.
#[test]
fn a_timeout_after_progress_is_an_error_on_the_stream() {
    check(
        r#"
        settings at most 30s
        up a
        a > {"id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":1}}}
        server < {"id":$1,…
        server > {"method":"notifications/progress","params":{"progressToken":$1,"progress":1}}
        a ~ 1-0
        a ~ {"method":"notifications/progress",…
        + 30s
        a ~ {"id":1,"error":{"code":-32603,"message":"no answer within `max_request_time` (30s); the server was told to cancel. Raise the setting for slower tools","data":{"reason":"upstream_timeout"}}}
        a end
        server < {"method":"notifications/cancelled","params":{"requestId":$1}}
        server > {"method":"notifications/progress","params":{"progressToken":$1,"progress":2}}
        "#,
    );
}

// B-07: `0` is never. Then the head is not held for ever, or Node gives up after 300 s of silence.
#[test]
fn without_a_timeout_a_silent_post_becomes_a_stream_after_a_minute() {
    check(
        r#"
        settings timeout off
        up a
        a > {"id":1,"method":"tools/call","params":{"name":"x"}}
        server < {"id":$1,…
        a:j json > {"id":2,"method":"tools/call","params":{"name":"x"}}
        server < {"id":$2,…
        + 59s
        + 1s
        a ~ 1-0
        ~ 0 beats
        + 15s
        ~ 1 beats
        + 60m
        ~ 240 beats
        server > {"id":$1,"result":{}}
        a ~ {"id":1,"result":{}}
        a end
        server > {"id":$2,"result":{}}
        a:j < {"id":2,"result":{}}
        "#,
    );
}

// B-19; 5.10: leaving is not cancelling, but a call that nobody waits for does not run for ever either.
#[test]
fn a_client_that_leaves_is_forgotten_and_its_answer_reaches_nobody() {
    check(
        r#"
        up a
        a:x > {"id":1,"method":"tools/call","params":{"name":"x"}}
        server < {"id":$1,…
        a:y > {"id":1,"method":"tools/call","params":{"name":"y"}}
        server < {"id":$2,…
        left a:x
        ~ 2 in flight
        a > {"method":"notifications/cancelled","params":{"requestId":1}}
        server < {"method":"notifications/cancelled","params":{"requestId":$2}}
        a:y cancelled
        server > {"id":$1,"result":{}}
        ~ 1 in flight
        "#,
    );
}

#[test]
fn a_call_whose_client_left_is_cancelled_when_its_time_is_up() {
    for (settings, time) in [("timeout 30s", "30s"), ("timeout off, at most 50s", "50s")] {
        check(&format!(
            r#"
            settings {settings}
            up a
            a > {{"id":1,"method":"tools/call","params":{{"name":"x"}}}}
            server < {{"id":$1,…
            left a
            + {time}
            server < {{"method":"notifications/cancelled","params":{{"requestId":$1}}}}
            ~ 1 in flight
            + 1s
            ~ 0 in flight
            "#
        ));
    }
}

// 5.10: deleting a session cancels its calls.
#[test]
fn a_session_that_closes_cancels_its_calls_and_answers_its_posts() {
    check(
        r#"
        up a b
        a:x > {"id":1,"method":"tools/call","params":{"name":"x"}}
        server < {"id":$1,…
        a:y > {"id":2,"method":"tools/call","params":{"name":"y","_meta":{"progressToken":1}}}
        server < {"id":$2,…
        server > {"method":"notifications/progress","params":{"progressToken":$2,"progress":1}}
        a:y ~ 1-0
        a:y ~ {"method":"notifications/progress",…
        a:z > {"id":3,"method":"tools/call","params":{"name":"z"}}
        server < {"id":$3,…
        a > {"method":"notifications/cancelled","params":{"requestId":3}}
        server < {"method":"notifications/cancelled","params":{"requestId":$3}}
        a:z cancelled
        b > {"id":1,"method":"tools/call","params":{"name":"x"}}
        server < {"id":$4,…
        a get
        a get ~ 0-0
        close a
        server < {"method":"notifications/cancelled","params":{"requestId":$1}}
        server < {"method":"notifications/cancelled","params":{"requestId":$2}}
        a:x fault session ended
        a:y ~ {"id":2,"error":{"code":-32603,"message":"the session has ended; initialize again",…
        a:y end
        a get end
        server > {"id":$2,"result":{}}
        server > {"id":$4,"result":{}}
        b < {"id":1,"result":{}}
        a > {"id":5,"method":"tools/list"}
        a refused UnknownSession
        a get
        a get refused UnknownSession
        "#,
    );
}

// M-04: a wait may take for hours, and ends with its client.
#[test]
fn where_calls_may_take_for_ever_a_client_that_leaves_one_cancels_it() {
    check(
        r#"
        settings timeout off, leaving cancels
        up a
        a:x > {"id":1,"method":"tools/call","params":{"name":"x"}}
        server < {"id":$1,…
        + 59s
        left a:x
        server < {"method":"notifications/cancelled","params":{"requestId":$1}}
        + 30s
        ~ 0 exchanges
        "#,
    );
    // Its stream may break by accident, and it may come back to it.
    check(
        r#"
        settings timeout off, leaving cancels, at most 10h
        up a
        a:x > {"id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":7}}}
        server < {"id":$1,…
        server > {"method":"notifications/progress","params":{"progressToken":$1,"progress":1}}
        a:x ~ 1-0
        a:x ~ 1-1 {"method":"notifications/progress",…
        + 1h
        drop a:x
        + 29s
        a get after 1-1
        + 1h
        server > {"method":"notifications/progress","params":{"progressToken":$1,"progress":2}}
        a get ~ 1-2 {"method":"notifications/progress",…
        drop a get
        + 29s
        + 1s
        server < {"method":"notifications/cancelled","params":{"requestId":$1}}
        a get after 1-2
        a get ~ 1-3 {"id":1,"error":{"code":-32603,"message":"nobody read …
        a get end
        + 30s
        ~ 0 exchanges
        "#,
    );
}
