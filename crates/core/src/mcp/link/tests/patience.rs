//! Starting is not calling, and what a client that waits hears meanwhile (B-07, R-16, R-51).

use super::check;

// R-16: with a server of its own, a client could never use one that starts slower than a call may take.
#[test]
fn the_time_a_server_takes_to_start_is_not_its_clients() {
    for settings in ["timeout 1s", r#"timeout 1s, alone, class {"roots":{}}"#] {
        check(&format!(
            r#"
            settings {settings}
            open a 2025-11-25 {{"roots":{{}}}}
            ! start
            server < {{"id":$0,"method":"initialize",…
            + 1s
            a ~ 1-0
            + 44s
            ~ 1 sessions
            greet
            server < {{"method":"notifications/initialized"}}
            ! ready s 1
            a ~ {{"id":0,"result":…
            a end
            a > {{"id":1,"method":"prompts/list"}}
            server < {{"id":$1,"method":"prompts/list"}}
            server > {{"id":$1,"result":{{"prompts":[]}}}}
            a < {{"id":1,"result":{{"prompts":[]}}}}
            "#
        ));
    }
}

// R-16: the call's own clock begins when its server has it.
#[test]
fn a_call_that_has_waited_for_its_server_has_all_of_its_time_left() {
    check(
        r#"
        settings timeout 30s, stateless 60s
        stateless json > {"id":1,"method":"tools/call","params":{"name":"x"}}
        ! start
        server < {"id":$0,"method":"initialize",…
        + 45s
        greet
        server < {"method":"notifications/initialized"}
        server < {"id":$1,"method":"tools/call",…
        ! ready s 1
        + 29s
        + 1s
        server < {"method":"notifications/cancelled","params":{"requestId":$1}}
        stateless fault timeout
        + 59s
        ! stop
        "#,
    );
    // So it is after a restart.
    check(
        r#"
        settings timeout 1s
        up a
        exit
        a json > {"id":1,"method":"tools/call","params":{"name":"x"}}
        + 500ms
        ! start
        server < {"id":$0,"method":"initialize",…
        + 45s
        greet
        server < {"method":"notifications/initialized"}
        server < {"id":$1,"method":"tools/call",…
        ! ready s 1
        server > {"id":$1,"result":"done"}
        a < {"id":1,"result":"done"}
        "#,
    );
}

// R-16: who asked first may lose patience; those who wait with it do not lose their server.
#[test]
fn a_server_that_starts_is_not_ended_when_one_of_those_who_wait_leaves() {
    check(
        r#"
        open a
        ! start
        server < {"id":$0,"method":"initialize",…
        + 10s
        open b
        left a
        + 15s
        greet
        server < {"method":"notifications/initialized"}
        ! ready s 1
        b < {"id":0,"result":…
        "#,
    );
}

// R-16: it was stopped 5 ms after it had become ready, and the next try began anew.
#[test]
fn a_server_that_becomes_ready_when_all_have_left_waits_for_them_to_come_back() {
    check(
        r#"
        open a
        ! start
        server < {"id":$0,"method":"initialize",…
        left a
        + 45s
        greet
        server < {"method":"notifications/initialized"}
        ! ready s 1
        + 59s
        open b
        b < {"id":0,"result":…
        close b
        ! stop
        "#,
    );
}

// Half a minute after its client has left, a stream that `initialize` became is its session's no more.
#[test]
fn a_session_that_was_never_opened_ends_when_its_client_does_not_come_back() {
    let opened = r#"
        settings alone, class {"roots":{}}
        open a 2025-11-25 {"roots":{}}
        ! start
        server < {"id":$0,"method":"initialize",…
        + 30s
        a ~ 1-0
        drop a
        + 29s
    "#;
    check(&format!("{opened}\n+ 1s\n! ended a\n! stop\n~ 0 sessions"));
    check(&format!(
        "{opened}\na get after 1-0\n+ 30s\n~ 1 sessions\ngreet\nserver < …\n! ready s 1\na get ~ 1-1 {{\"id\":0,…\na get end"
    ));
}

#[test]
fn without_a_limit_a_server_may_take_for_ever_to_start() {
    check(
        r#"
        settings start off, timeout off
        stateless json > {"id":1,"method":"tools/call","params":{"name":"x"}}
        ! start
        server < {"id":$0,"method":"initialize",…
        + 30h
        greet
        server < {"method":"notifications/initialized"}
        server < {"id":$1,"method":"tools/call",…
        ! ready s 1
        server > {"id":$1,"result":"done"}
        stateless < {"id":1,"result":"done"}
        + 1m
        ! stop
        "#,
    );
}

// B-08: only who was up can have stayed up.
#[test]
fn a_server_that_ends_late_in_its_start_has_three_more_tries_and_not_one_more() {
    let again = |wait: &str| format!("+ {wait}\n! start\nserver < …\n+ 90s\nexit\n");
    check(&format!(
        r#"
        stateless json > {{"id":1,"method":"tools/call","params":{{"name":"x"}}}}
        ! start
        server < …
        + 90s
        exit
        {}{}{}
        stateless fault unavailable…
        "#,
        again("500ms"),
        again("1s"),
        again("2s")
    ));
}

// R-51: a call of 40 s worked without us, and failed with us.
#[test]
fn a_client_that_takes_a_stream_gets_one_when_its_time_is_up_and_the_call_goes_on() {
    check(
        r#"
        settings timeout 30s, at most 10m
        up a
        a > {"id":1,"method":"tools/call","params":{"name":"x"}}
        server < {"id":$1,…
        + 29s
        + 1s
        a ~ 1-0
        + 10s
        server > {"id":$1,"result":"done"}
        a ~ {"id":1,"result":"done"}
        a end
        stateless > {"id":2,"method":"tools/call","params":{"name":"x"}}
        server < {"id":$2,…
        + 599s
        + 1s
        server < {"method":"notifications/cancelled","params":{"requestId":$2}}
        stateless ~ {"id":2,"error":{"code":-32603,"message":"no answer within `max_request_time` (600s); the server was told to cancel. Raise the setting for slower tools","data":{"reason":"upstream_timeout"}}}
        stateless end
        "#,
    );
    check(
        r#"
        settings timeout 30s, at most 10m
        up modern
        modern:a > {"id":1,"method":"tools/call","params":{"name":"x","_meta":{‹{}›}}}
        server < {"id":$1,…
        + 40s
        server > {"id":$1,"result":{"content":[]}}
        modern:a ~ {"id":1,"result":{"resultType":"complete",…
        modern:a end
        "#,
    );
}

// R-51: what we tell is more each time, and less than whatever the server may say next.
#[test]
fn a_client_that_gave_a_token_hears_of_progress_that_the_servers_own_can_follow() {
    check(
        r#"
        up a
        a > {"id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":"t"}}}
        server < {"id":$1,…
        + 30s
        a ~ 1-0
        a ~ {"method":"notifications/progress","params":{"progressToken":"t","progress":-0.001,"message":"still running, 30 s"}}
        + 15s
        a ~ {"method":"notifications/progress","params":{"progressToken":"t","progress":-0.0005,"message":"still running, 45 s"}}
        server > {"method":"notifications/progress","params":{"progressToken":$1,"progress":0,"total":10}}
        a ~ {"method":"notifications/progress","params":{"progressToken":"t","progress":0,"total":10}}
        + 29s
        server > {"method":"notifications/progress","params":{"progressToken":$1,"progress":4,"total":10}}
        a ~ {"method":"notifications/progress","params":{"progressToken":"t","progress":4,"total":10}}
        + 29s
        + 1s
        a ~ {"method":"notifications/progress","params":{"progressToken":"t","progress":4.000002,"total":10,"message":"still running, 104 s"}}
        + 15s
        a ~ {"method":"notifications/progress","params":{"progressToken":"t","progress":4.00000266…,"total":10,"message":"still running, 119 s"}}
        server > {"method":"notifications/progress","params":{"progressToken":$1,"progress":5,"total":10}}
        a ~ {"method":"notifications/progress","params":{"progressToken":"t","progress":5,"total":10}}
        server > {"id":$1,"result":"done"}
        a ~ {"id":1,"result":"done"}
        a end
        "#,
    );
    // Also while there is no server yet.
    check(
        r#"
        stateless > {"id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":7}}}
        ! start
        server < {"id":$0,"method":"initialize",…
        + 30s
        stateless ~ {"method":"notifications/progress","params":{"progressToken":7,"progress":-0.001,"message":"the server is starting, 30 s"}}
        + 14s
        greet
        server < {"method":"notifications/initialized"}
        server < {"id":$1,"method":"tools/call",…
        ! ready s 1
        + 1s
        stateless ~ {"method":"notifications/progress","params":{"progressToken":7,"progress":-0.0005,"message":"still running, 1 s"}}
        server > {"id":$1,"result":"done"}
        stateless ~ {"id":1,"result":"done"}
        stateless end
        "#,
    );
}

// R-51, R-15: a program that was killed in a call comes back to nothing, and others want to hear what the server logs.
#[test]
fn a_call_whose_client_is_gone_for_good_has_no_more_time_than_one_that_hears_nothing() {
    let left = r#"
        settings timeout 30s, at most 10m
        up a b
        a > {"id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":"t"}}}
        server < {"id":$1,…
        + 30s
        a ~ 1-0
        a ~ {"method":"notifications/progress",…
        drop a
        + 20s
    "#;
    check(&format!(
        r#"
        {left}
        + 10s
        server < {{"method":"notifications/cancelled","params":{{"requestId":$1}}}}
        + 1s
        b > {{"id":1,"method":"tools/call","params":{{"name":"y"}}}}
        server < {{"id":$2,…
        server > {{"method":"notifications/message","params":{{"level":"info","data":1}}}}
        b ~ 1-0
        b ~ {{"method":"notifications/message","params":{{"level":"info","data":1}}}}
        "#
    ));
    // Its server's word is a sign of life, as it is for those who hear nothing.
    check(&format!(
        r#"
        {left}
        server > {{"method":"notifications/progress","params":{{"progressToken":$1,"progress":1}}}}
        + 29s
        + 1s
        server < {{"method":"notifications/cancelled","params":{{"requestId":$1}}}}
        "#
    ));
    // Back in time, it has all of it again.
    check(&format!(
        r#"
        {left}
        a get after 1-1
        + 100s
        a get ~ 1-2 {{"method":"notifications/progress",…
        a get ~ …
        a get ~ …
        a get ~ …
        a get ~ …
        a get ~ …
        a get ~ 1-8 {{"method":"notifications/progress",…
        server > {{"id":$1,"result":"done"}}
        a get ~ {{"id":1,"result":"done"}}
        a get end
        "#
    ));
}

// R-16: no wait is without an end, whether the server was there when a call came or not.
#[test]
fn a_call_that_waited_for_its_server_and_then_for_its_turn_does_not_wait_for_ever() {
    check(
        r#"
        settings exclusive, class {"elicitation":{}}, at most 60s
        modern:a json > {"id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":"t",‹{"elicitation":{}} A›}}}
        ! start
        server < {"id":$0,"method":"initialize",…
        modern:b json > {"id":2,"method":"tools/call","params":{"name":"y","_meta":{‹{"elicitation":{}} B›}}}
        + 90s
        greet
        server < {"method":"notifications/initialized"}
        server < {"id":$1,…
        ! ready s 1
        ~ 1 held
        + 20s
        server > {"method":"notifications/progress","params":{"progressToken":$1,"progress":1}}
        + 20s
        server > {"method":"notifications/progress","params":{"progressToken":$1,"progress":2}}
        + 19s
        + 1s
        modern:b fault timeout
        modern:a fault timeout
        ! stop
        "#,
    );
}
