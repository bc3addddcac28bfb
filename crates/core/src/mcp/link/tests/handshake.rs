//! The handshake, from the first client's `initialize` to the child that nobody needs any more.

use super::check;

// B-02.
// checks 16 94
#[test]
fn many_clients_at_once_are_one_handshake_and_nothing_comes_before_its_result() {
    check(
        r#"
        open a
        ! start
        server < {"id":$0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"prism",…
        open b 2024-11-05
        open c 2025-03-26
        a:x > {"id":1,"method":"completion/complete"}
        stateless > {"id":1,"method":"completion/complete"}
        ~ 5 held
        + 20s
        greet {"tools":{}}
        server < {"method":"notifications/initialized"}
        server < {"id":$1,"method":"completion/complete"}
        server < {"id":$2,"method":"completion/complete"}
        ! ready s 1
        a < {"id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}
        b < {"id":0,"result":{"protocolVersion":"2024-11-05",…
        c < {"id":0,"result":{"protocolVersion":"2025-03-26",…
        server > {"id":$2,"result":2}
        stateless < {"id":1,"result":2}
        server > {"id":$1,"result":1}
        a:x < {"id":1,"result":1}
        open d
        d < {"id":0,"result":{"protocolVersion":"2025-11-25",…
        ~ 4 sessions
        ~ 0 exchanges
        "#,
    );
}

// checks 17
#[test]
fn a_revision_that_nobody_knows_is_answered_with_our_newest() {
    check(
        r#"
        up a
        open b 2026-07-28
        b < {"id":0,"result":{"protocolVersion":"2025-11-25",…
        "#,
    );
}

// The handshake with the server is ours.
#[test]
fn a_clients_own_initialized_goes_no_further() {
    check(
        r#"
        settings alone
        up a
        a > {"method":"notifications/initialized"}
        "#,
    );
}

#[test]
fn a_shared_server_is_told_what_all_its_clients_can_answer() {
    check(
        r#"
        settings class {"sampling":{"tools":{}},"elicitation":{"url":{}}}
        open a {"sampling":{"tools":{}},"elicitation":{"url":{}}}
        ! start
        server < {"id":$0,…"capabilities":{"sampling":{"tools":{}},"elicitation":{"url":{}}},"clientInfo":{"name":"prism",…
        "#,
    );
}

// One message, one line, also where the message is the client's own `initialize`.
// checks 93
#[test]
fn a_lone_clients_pretty_printed_hello_reaches_its_server_as_one_line() {
    check(
        r#"
        settings alone
        open a {"roots":{⏎"listChanged":true}}
        ! start
        server < {"id":$0,…"capabilities":{"roots":{ "listChanged":true}},"clientInfo":{"name":"c"}}}
        "#,
    );
}

// B-24.
#[test]
fn a_handshake_without_a_session_is_answered_and_leaves_nothing_behind() {
    check(
        r#"
        stateless > {"id":"i","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{}}}
        ! start
        server < {"id":$0,"method":"initialize",…
        greet
        server < {"method":"notifications/initialized"}
        ! ready s 1
        stateless < {"id":"i","result":{"protocolVersion":"2025-06-18",…
        ~ 0 sessions
        ~ 0 exchanges
        stateless > {"id":"j","method":"initialize","params":{}}
        stateless < {"id":"j","error":{"code":-32602,…
        ~ 0 exchanges
        "#,
    );
}

#[test]
fn a_server_that_refuses_initialize_is_quoted_and_ended() {
    check(
        r#"
        open a
        ! start
        server < {"id":$0,"method":"initialize",…
        a:x events > {"id":1,"method":"tools/list"}
        stateless events > {"id":"i","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{}}}
        server > {"id":$0,"error":{"code":-1,"message":"no licence"}}
        a < {"id":0,"error":{"code":-1,"message":"no licence"}}
        a:x fault unavailable: it refused `initialize`
        stateless ~ {"id":"i","error":{"code":-1,"message":"no licence"}}
        stateless end
        ! stop
        ! ended a
        ~ 0 sessions
        ~ 0 exchanges
        "#,
    );
}

#[test]
fn a_server_whose_greeting_makes_no_sense_is_ended() {
    check(
        r#"
        open a
        ! start
        server < {"id":$0,"method":"initialize",…
        server > {"id":$0,"result":"hello"}
        a fault unavailable: the `initialize` message is malformed: …
        ! stop
        ! ended a
        ~ 0 exchanges
        "#,
    );
}

// B-18.
#[test]
fn a_greeting_that_is_too_long_ends_the_wait_at_once() {
    let long = "x".repeat(300);
    check(&format!(
        r#"
        settings limit 200
        open a
        ! start
        server < {{"id":$0,"method":"initialize",…
        server > {{"id":$0,"result":{{"instructions":"{long}"}}}}
        a fault unavailable: its answer to `initialize` is over `max_message_bytes` (200 bytes)
        ! stop
        ! ended a
        ~ 0 exchanges
        "#
    ));
}

#[test]
fn a_server_that_cannot_be_started_fails_who_waited_and_is_tried_again_for_the_next() {
    check(
        r#"
        open a
        ! start
        server < {"id":$0,"method":"initialize",…
        failed
        a fault unavailable: no such program
        ! ended a
        open b
        ! start
        server < {"id":$1,"method":"initialize",…
        greet
        server < {"method":"notifications/initialized"}
        ! ready s 1
        b < {"id":0,…
        "#,
    );
}

// R-17: what it said instead of a greeting is told with that.
#[test]
fn a_server_that_printed_something_else_is_told_with_it() {
    check(
        r#"
        settings timeout off
        open a
        ! start
        server < {"id":$0,"method":"initialize",…
        + 119s
        a ~ 1-0
        overheard it printed text that is not MCP: `hello`
        + 1s
        a ~ {"id":0,"error":{"code":-32603,"message":"the MCP server cannot be reached: it did not answer `initialize` within `start_timeout` (120s). If it is only slow, set a longer `start_timeout` for it in prism.toml; else run its command by hand; it printed text that is not MCP: `hello`","data":{"reason":"upstream_unavailable"}}}
        a end
        ! stop
        ! ended a
        "#,
    );
}

#[test]
fn a_server_that_never_greets_is_ended_after_two_minutes() {
    check(
        r#"
        settings timeout off
        open a
        ! start
        server < {"id":$0,"method":"initialize",…
        + 119s
        a ~ 1-0
        + 1s
        a ~ {"id":0,"error":{"code":-32603,"message":"the MCP server cannot be reached: it did not answer `initialize` within `start_timeout` (120s). If it is only slow, set a longer `start_timeout` for it in prism.toml; else run its command by hand","data":{"reason":"upstream_unavailable"}}}
        a end
        ! stop
        ! ended a
        "#,
    );
}

// B-19: nobody will ever know of such a session.
#[test]
fn a_client_that_leaves_before_the_handshake_takes_its_session_along() {
    check(
        r#"
        open a
        ! start
        server < {"id":$0,"method":"initialize",…
        open b
        left a
        ~ 1 sessions
        greet
        server < {"method":"notifications/initialized"}
        ! ready s 1
        b < {"id":0,…
        server > {"method":"notifications/message","params":{"level":"info","data":"b is the only one it can be for"}}
        b get
        b get ~ 0-0
        b get ~ {"method":"notifications/message","params":{"level":"info","data":"b is the only one it can be for"}}
        "#,
    );
}

#[test]
fn a_call_whose_stream_breaks_before_the_child_is_ready_never_reaches_it() {
    check(
        r#"
        settings timeout off, stateless 5m
        stateless > {"id":1,"method":"tools/call","params":{"name":"x"}}
        ! start
        server < {"id":$0,"method":"initialize",…
        + 60s
        drop stateless
        greet
        server < {"method":"notifications/initialized"}
        ! ready s 1
        ~ 0 exchanges
        "#,
    );
}

// Nothing that a child says before its handshake can be about a call: it has seen none.
#[test]
fn what_a_starting_child_says_belongs_to_no_call() {
    check(
        r#"
        settings class {"sampling":{}}
        up a {"sampling":{}}
        exit
        a:x > {"id":1,"method":"tools/call","params":{"name":"x"}}
        + 500ms
        ! start
        server < {"id":$0,"method":"initialize",…
        open b {"sampling":{}}
        server > {"method":"notifications/message","params":{"level":"info","data":"warming up"}}
        a get
        a get ~ 0-0
        a get ~ {"method":"notifications/message","params":{"level":"info","data":"warming up"}}
        server > {"id":1,"method":"sampling/createMessage","params":{}}
        ! asked
        server < {"id":1,"error":{"code":-32602,…
        "#,
    );
}

// B-13.
#[test]
fn the_child_ends_with_its_last_session() {
    check(
        r#"
        up a b
        close a
        close b
        ! stop
        ~ 0 sessions
        open c
        ! start
        server < {"id":$0,"method":"initialize",…
        greet
        server < {"method":"notifications/initialized"}
        ! ready s 1
        c < {"id":0,…
        "#,
    );
}

// B-13.
#[test]
fn a_warm_child_outlives_its_last_session_for_a_while() {
    check(
        r#"
        settings warm 10s
        up a
        close a
        + 9s
        open b
        b < {"id":0,…
        + 20s
        close b
        + 10s
        ! stop
        "#,
    );
}

// B-24: without sessions there is no last one.
#[test]
fn a_child_for_calls_without_a_session_outlives_the_last_of_them_for_a_while() {
    check(
        r#"
        settings stateless 60s
        stateless > {"id":1,"method":"tools/list"}
        ! start
        server < {"id":$0,"method":"initialize",…
        greet
        server < {"method":"notifications/initialized"}
        server < {"id":$1,"method":"tools/list"}
        ! ready s 1
        server > {"id":$1,"result":{}}
        stateless < {"id":1,"result":{}}
        + 59s
        stateless > {"id":2,"method":"tools/list"}
        server < {"id":$2,"method":"tools/list"}
        server > {"id":$2,"result":{}}
        stateless < {"id":2,"result":{}}
        + 59s
        + 1s
        ! stop
        "#,
    );
}

// B-13: a call that timed out, or whose client left, must not keep the child for ever.
#[test]
fn a_child_that_no_longer_answers_calls_without_a_session_ends_all_the_same() {
    for leaving in ["+ 30s\nstateless fault timeout\nserver < …", "left stateless\n+ 30s\nserver < …"] {
        check(&format!(
            r#"
            settings stateless 40s
            stateless json > {{"id":1,"method":"tools/call","params":{{"name":"x"}}}}
            ! start
            server < {{"id":$0,"method":"initialize",…
            greet
            server < {{"method":"notifications/initialized"}}
            server < {{"id":$1,…
            ! ready s 1
            {leaving}
            + 60s
            ! stop
            ~ 0 exchanges
            "#
        ));
    }
    check(
        r#"
        settings stateless 40s
        stateless > {"id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":1}}}
        ! start
        server < {"id":$0,"method":"initialize",…
        greet
        server < {"method":"notifications/initialized"}
        server < {"id":$1,…
        ! ready s 1
        server > {"method":"notifications/progress","params":{"progressToken":$1,"progress":1}}
        stateless ~ {"method":"notifications/progress",…
        drop stateless
        + 30s
        server < {"method":"notifications/cancelled","params":{"requestId":$1}}
        + 60s
        ! stop
        ~ 0 exchanges
        "#,
    );
}

#[test]
fn a_child_whose_last_answer_was_too_long_ends_all_the_same() {
    let long = "x".repeat(500);
    check(&format!(
        r#"
        settings stateless 40s, limit 500
        stateless > {{"id":1,"method":"tools/call","params":{{"name":"x"}}}}
        ! start
        server < {{"id":$0,"method":"initialize",…
        greet
        server < {{"method":"notifications/initialized"}}
        server < {{"id":$1,…
        ! ready s 1
        server > {{"id":$1,"result":"{long}"}}
        stateless fault too large
        + 40s
        ! stop
        "#
    ));
}

// B-04: a child of one owner is over when its owner is.
#[test]
fn a_lone_link_is_over_when_its_session_is() {
    check(
        r#"
        settings alone, warm 10s
        ~ alive
        up a
        ~ alive
        close a
        ! stop
        ~ over
        "#,
    );
    check(
        r#"
        settings alone
        open a
        ! start
        server < {"id":$0,"method":"initialize",…
        left a
        ! stop
        ~ over
        "#,
    );
}

// B-25.
#[test]
fn shutting_down_answers_who_waits_and_ends_every_stream() {
    check(
        r#"
        up a b
        a get
        a get ~ 0-0
        a > {"id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":1}}}
        server < {"id":$1,…
        server > {"method":"notifications/progress","params":{"progressToken":$1,"progress":1}}
        a ~ 1-0
        a ~ {"method":"notifications/progress",…
        b > {"id":2,"method":"tools/list"}
        server < {"id":$2,…
        shut down
        a ~ {"id":1,"error":{"code":-32603,"message":"Prism was stopped while this call ran; …
        a end
        a get end
        b fault stopping
        ! stop
        ! ended a
        ! ended b
        ~ 0 exchanges
        "#,
    );
}
