//! The child's end, and the next child: who hears of it, and what the new one is told.

use super::check;

/// The child of `a` and `b` has ended and the next one has come up.
const BACK: &str = r#"
    exit
    + 500ms
    ! start
    server < {"id":$0,"method":"initialize",…
    greet
    server < {"method":"notifications/initialized"}
    ! ready s 1
"#;

// R-17: whoever waits hears the reason as the shell knows it, and that of the last try.
#[test]
fn why_it_does_not_start_is_said_in_the_shells_words() {
    check(
        r#"
        open a
        ! start
        server < {"id":$0,"method":"initialize",…
        exit s keeps exiting (exit status: 1, 1 try)
        + 500ms
        ! start
        server < {"id":$1,"method":"initialize",…
        exit s keeps exiting (exit status: 1, 2 tries)
        + 1s
        ! start
        server < {"id":$2,"method":"initialize",…
        exit s keeps exiting (exit status: 1, 3 tries)
        + 2s
        ! start
        server < {"id":$3,"method":"initialize",…
        exit s keeps exiting (exit status: 1, 4 tries). Its last output: `no module foo`
        a fault unavailable: s keeps exiting (exit status: 1, 4 tries). Its last output: `no module foo`
        ! ended a
        "#,
    );
}

// B-08.
// checks 109
#[test]
fn an_exit_fails_every_call_in_flight_at_once_and_calls_that_come_meanwhile_wait() {
    check(
        r#"
        up a b
        a > {"id":1,"method":"tools/call","params":{"name":"x"}}
        server < {"id":$1,…
        b > {"id":"b","method":"tools/call","params":{"name":"x","_meta":{"progressToken":1}}}
        server < {"id":$2,…
        server > {"method":"notifications/progress","params":{"progressToken":$2,"progress":1}}
        b ~ 1-0
        b ~ {"method":"notifications/progress",…
        stateless > {"id":1,"method":"completion/complete"}
        server < {"id":$3,…
        exit
        a fault exited
        b ~ {"id":"b","error":{"code":-32603,"message":"the MCP server's process ended while it worked on this call; it is being restarted, call again (its stderr is in Prism's log)","data":{"reason":"upstream_exited"}}}
        b end
        stateless fault exited
        ~ 0 in flight
        a > {"id":2,"method":"completion/complete"}
        + 499ms
        + 1ms
        ! start
        server < {"id":$0,"method":"initialize",…
        b > {"id":3,"method":"completion/complete"}
        greet
        server < {"method":"notifications/initialized"}
        server < {"id":$4,"method":"completion/complete"}
        server < {"id":$5,"method":"completion/complete"}
        ! ready s 1
        a get
        a get ~ 0-0
        a get ~ {"method":"notifications/tools/list_changed"}
        a get ~ {"method":"notifications/prompts/list_changed"}
        a get ~ {"method":"notifications/resources/list_changed"}
        server > {"id":$5,"result":5}
        b < {"id":3,"result":5}
        server > {"id":$4,"result":4}
        a < {"id":2,"result":4}
        "#,
    );
}

// B-08: a child that was ended for a reason says so to whoever was waiting, and is restarted like any other.
#[test]
fn why_a_child_was_ended_is_heard_by_its_calls_and_when_it_is_given_up() {
    check(
        r#"
        up a
        a > {"id":1,"method":"tools/list"}
        server < {"id":$0,…
        ended it used too much
        a fault ended: it used too much
        a > {"id":2,"method":"tools/list"}
        + 500ms
        ! start
        server < {"id":$1,"method":"initialize",…
        ended it used too much
        + 1s
        ! start
        server < {"id":$2,"method":"initialize",…
        exit
        + 2s
        ! start
        server < {"id":$3,"method":"initialize",…
        ended it used too much
        a fault unavailable: it used too much
        ! ended a
        "#,
    );
}

// B-08: 0.5, 1 and 2 seconds; then no more.
// checks 109
#[test]
fn a_child_that_ends_again_and_again_is_given_up_and_its_sessions_end() {
    check(
        r#"
        up a b
        a get
        a get ~ 0-0
        exit
        a > {"id":1,"method":"tools/list"}
        + 500ms
        ! start
        server < {"id":$0,"method":"initialize",…
        exit
        + 999ms
        + 1ms
        ! start
        server < {"id":$1,"method":"initialize",…
        exit
        + 1999ms
        + 1ms
        ! start
        server < {"id":$2,"method":"initialize",…
        exit
        a fault unavailable: its process ended again and again right after the start
        a get end
        ! ended a
        ! ended b
        ~ 0 sessions
        ~ 0 exchanges
        + 10m
        open c
        ! start
        server < {"id":$3,"method":"initialize",…
        exit
        + 500ms
        ! start
        server < {"id":$4,"method":"initialize",…
        "#,
    );
}

// B-08.
#[test]
fn a_child_that_stays_up_for_a_minute_earns_its_tries_back() {
    let again = |seconds: u32, lived: &str| {
        format!(
            "exit\n + {seconds}s\n ! start\n server < {{\"id\":$s{seconds}{lived},\"method\":\"initialize\",…\n \
             greet {{}}\n server < {{\"method\":\"notifications/initialized\"}}\n ! ready s 1\n + {lived}\n"
        )
    };
    let up = "open a\n! start\nserver < {\"id\":$0,…\ngreet {}\nserver < …\n! ready s 1\na < …\n";
    let (one, two, three) = (again(1, "59s"), again(2, "58s"), again(3, "60s"));
    // The last one lived long enough: it is the first wait again, and not the end.
    check(&format!("{up}{one}{two}{three}exit\n+ 499ms\n+ 1ms\n! start\nserver < …"));
    let three = again(3, "58s");
    check(&format!("{up}{one}{two}{three}exit\n! ended a"));
}

// B-09.
// checks 109
#[test]
fn the_new_child_is_told_what_the_old_one_knew_and_the_clients_what_they_may_have_missed() {
    check(
        r#"
        up a b
        a > {"id":1,"method":"logging/setLevel","params":{"level":"debug"}}
        server < {"id":$1,"method":"logging/setLevel","params":{"level":"debug"}}
        server > {"id":$1,"result":{}}
        a < {"id":1,"result":{}}
        b > {"id":1,"method":"resources/subscribe","params":{"uri":"file:///x\u0022"}}
        server < {"id":$2,…
        server > {"id":$2,"result":{}}
        b < {"id":1,"result":{}}
        a get
        a get ~ 0-0
        b get
        b get ~ 0-0
        exit
        a > {"id":2,"method":"tools/list"}
        + 500ms
        ! start
        server < {"id":$0,"method":"initialize",…
        open c
        greet
        server < {"method":"notifications/initialized"}
        server < {"id":$3,"method":"logging/setLevel","params":{"level":"debug"}}
        server < {"id":$4,"method":"resources/subscribe","params":{"uri":"file:///x\""}}
        server < {"id":$5,"method":"tools/list"}
        ! ready s 1
        c < {"id":0,…
        a get ~ {"method":"notifications/tools/list_changed"}
        a get ~ {"method":"notifications/prompts/list_changed"}
        a get ~ {"method":"notifications/resources/list_changed"}
        b get ~ {"method":"notifications/resources/updated","params":{"uri":"file:///x\""}}
        b get ~ {"method":"notifications/tools/list_changed"}
        b get ~ {"method":"notifications/prompts/list_changed"}
        b get ~ {"method":"notifications/resources/list_changed"}
        server > {"id":$3,"result":{}}
        server > {"id":$4,"result":{}}
        server > {"id":$5,"result":{}}
        a < {"id":2,"result":{}}
        c get
        c get ~ 0-0
        ~ 0 exchanges
        "#,
    );
}

// mcp-eras 5.15: what the clients were told is no longer true.
#[test]
fn a_new_child_that_promises_something_else_ends_the_sessions_and_greets_the_new_ones() {
    check(
        r#"
        up a b
        a > {"id":1,"method":"resources/subscribe","params":{"uri":"file:///x"}}
        server < {"id":$1,…
        server > {"id":$1,"result":{}}
        a < {"id":1,"result":{}}
        a get
        a get ~ 0-0
        exit
        a > {"id":2,"method":"tools/list"}
        open c
        + 500ms
        ! start
        server < {"id":$0,"method":"initialize",…
        greet {"tools":{}}
        server < {"method":"notifications/initialized"}
        ! ready s 1
        ! ended a
        ! ended b
        a fault session ended
        a get end
        c < {"id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},…
        ~ 1 sessions
        ~ 0 watches
        ~ 0 exchanges
        "#,
    );
}

// B-08: nobody is left to restart it for.
#[test]
fn a_child_that_ends_when_nobody_needs_it_is_not_restarted() {
    check(
        r#"
        settings warm 60s
        up a
        close a
        exit
        + 60m
        up b
        exit
        close b
        + 60m
        open c
        ! start
        server < {"id":$0,"method":"initialize",…
        "#,
    );
}

#[test]
fn an_exit_before_the_handshake_is_retried_and_the_waiting_wait_on() {
    check(
        r#"
        open a
        ! start
        server < {"id":$0,"method":"initialize",…
        exit
        + 500ms
        ! start
        server < {"id":$1,"method":"initialize",…
        greet
        server < {"method":"notifications/initialized"}
        ! ready s 1
        a < {"id":0,…
        "#,
    );
}

// Ids of one child mean nothing to the next.
#[test]
fn what_belonged_to_the_old_child_does_not_touch_the_new_one() {
    check(&format!(
        r#"
        up a
        a get
        a get ~ 0-0
        a > {{"id":1,"method":"tools/call","params":{{"name":"x"}}}}
        server < {{"id":$1,…
        a > {{"method":"notifications/cancelled","params":{{"requestId":1}}}}
        server < {{"method":"notifications/cancelled","params":{{"requestId":$1}}}}
        a cancelled
        ~ 1 in flight
        {BACK}
        a get ~ …
        a get ~ …
        a get ~ …
        ~ 0 in flight
        a > {{"id":1,"method":"tools/call","params":{{"name":"y"}}}}
        server < {{"id":$2,…
        server > {{"id":$1,"result":"of the old one"}}
        server > {{"id":$2,"result":"of the new one"}}
        a < {{"id":1,"result":"of the new one"}}
        "#
    ));
}

// An answer could reach nobody any more, and the client must know it before its call is over.
#[test]
fn the_questions_of_a_child_that_ended_are_taken_back_where_they_were_asked() {
    check(
        r#"
        settings class {"sampling":{}}
        up a {"sampling":{}}
        a get
        a get ~ 0-0
        server > {"id":1,"method":"sampling/createMessage","params":{}}
        ! asked
        a get ~ {"id":1,"method":"sampling/createMessage","params":{}}
        a > {"id":1,"method":"tools/call","params":{"name":"x"}}
        server < {"id":$1,…
        server > {"id":2,"method":"sampling/createMessage","params":{}}
        ! asked
        a ~ 1-0
        a ~ {"id":2,"method":"sampling/createMessage","params":{}}
        exit
        a get ~ {"method":"notifications/cancelled","params":{"requestId":1,"reason":"the server ended"}}
        a ~ {"method":"notifications/cancelled","params":{"requestId":2,"reason":"the server ended"}}
        a ~ {"id":1,"error":{"code":-32603,…
        a end
        ~ 0 questions
        a > {"id":2,"result":{}}
        + 500ms
        ! start
        server < {"id":$0,"method":"initialize",…
        "#,
    );
}

#[test]
fn a_subscription_that_was_on_its_way_dies_with_the_child() {
    check(
        r#"
        up a
        a > {"id":1,"method":"resources/subscribe","params":{"uri":"file:///x"}}
        server < {"id":$1,…
        ~ 1 watches
        exit
        a fault exited
        ~ 0 watches
        "#,
    );
}
