//! Log levels across the eras: a session's, a request's, and the one that a server is told (mcp-eras 5.9).

use super::check;

const NOTE: &str = r#"{"method":"notifications/message","params":{"level":"#;

// checks 74
#[test]
fn a_legacy_server_is_as_verbose_as_a_call_wants_and_only_that_call_hears_it() {
    check(&format!(
        r#"
        up modern
        modern:a > {{"id":1,"method":"tools/call","params":{{"name":"x","_meta":{{‹{{}} warning›}}}}}}
        server < {{"id":$s,"method":"logging/setLevel","params":{{"level":"warning"}}}}
        server < {{"id":$1,"method":"tools/call","params":{{"name":"x","_meta":{{}}}}}}
        server > {{"id":$s,"result":{{}}}}
        server > {NOTE}"info","data":1}}}}
        server > {NOTE}"error","data":2}}}}
        modern:a ~ {NOTE}"error","data":2}}}}
        server > {{"id":$1,"result":{{}}}}
        modern:a ~ {{"id":1,…
        modern:a end
        server > {NOTE}"error","data":3}}}}
        ! unowned "notifications/message"
        modern:b > {{"id":1,"method":"tools/call","params":{{"name":"x","_meta":{{‹{{}}›}}}}}}
        server < {{"id":$2,…
        server > {NOTE}"emergency","data":4}}}}
        modern:c > {{"id":1,"method":"tools/call","params":{{"name":"x","_meta":{{‹{{}} error›}}}}}}
        server < {{"id":$3,…
        server > {NOTE}"emergency","data":5}}}}
        ! unowned "notifications/message"
        modern:d > {{"id":1,"method":"tools/call","params":{{"name":"x","_meta":{{‹{{}} debug›}}}}}}
        server < {{"id":$t,"method":"logging/setLevel","params":{{"level":"debug"}}}}
        server < {{"id":$4,…
        "#
    ));
}

// checks 74 103
#[test]
fn a_session_is_spared_what_a_modern_call_wanted_and_a_new_child_is_told_only_of_the_session() {
    check(&format!(
        r#"
        up a
        a > {{"id":1,"method":"logging/setLevel","params":{{"level":"error"}}}}
        server < {{"id":$1,…
        server > {{"id":$1,"result":{{}}}}
        a < {{"id":1,"result":{{}}}}
        modern:a > {{"id":1,"method":"tools/call","params":{{"name":"x","_meta":{{‹{{}} debug›}}}}}}
        server < {{"id":$2,"method":"logging/setLevel","params":{{"level":"debug"}}}}
        server < {{"id":$3,…
        server > {{"id":$3,"result":{{}}}}
        modern:a < {{"id":1,…
        a > {{"id":2,"method":"tools/call","params":{{"name":"x"}}}}
        server < {{"id":$4,…
        server > {NOTE}"debug","data":1}}}}
        server > {NOTE}"error","data":2}}}}
        a ~ 1-0
        a ~ {NOTE}"error","data":2}}}}
        exit
        a ~ {{"id":2,"error":…
        a end
        + 500ms
        ! start
        server < {{"id":$i,"method":"initialize",…
        greet
        ! ready s 1
        server < {{"method":"notifications/initialized"}}
        server < {{"id":$5,"method":"logging/setLevel","params":{{"level":"error"}}}}
        "#
    ));
}

#[test]
fn a_server_without_logging_is_not_told_of_levels() {
    check(
        r#"
        modern:a > {"id":1,"method":"tools/call","params":{"name":"x","_meta":{‹{} debug›}}}
        ! start
        server < {"id":$i,"method":"initialize",…
        greet {"tools":{}}
        ! ready s 1
        server < {"method":"notifications/initialized"}
        server < {"id":$1,"method":"tools/call",…
        "#,
    );
}

// A note on a modern pipe names no request: one call at a time has told its level, and the next waits for it.
// checks 73 74
#[test]
fn one_call_at_a_time_hears_the_log_of_a_modern_pipe() {
    check(&format!(
        r#"
        settings pinned modern
        up modern
        modern:a > {{"id":1,"method":"tools/call","params":{{"name":"x","_meta":{{‹{{}} warning›,"progressToken":"t"}}}}}}
        server < {{"id":$1,"method":"tools/call","params":{{"name":"x","_meta":{{‹{{}} warning›,"progressToken":$1}}}}}}
        modern:b > {{"id":1,"method":"tools/call","params":{{"name":"x","_meta":{{‹{{}} debug›,"progressToken":"t"}}}}}}
        modern:d > {{"id":1,"method":"tools/call","params":{{"name":"x","_meta":{{‹{{}}›}}}}}}
        server < {{"id":$4,"method":"tools/call","params":{{"name":"x","_meta":{{‹{{}}›}}}}}}
        server > {NOTE}"error","data":1}}}}
        modern:a ~ {NOTE}"error","data":1}}}}
        server > {NOTE}"debug","data":2}}}}
        server > {{"id":$1,"result":{{"resultType":"complete"}}}}
        modern:a ~ {{"id":1,…
        modern:a end
        server < {{"id":$2,"method":"tools/call","params":{{"name":"x","_meta":{{‹{{}} debug›,"progressToken":$2}}}}}}
        server > {NOTE}"debug","data":3}}}}
        modern:b ~ {NOTE}"debug","data":3}}}}
        drop modern:b
        server < {{"method":"notifications/cancelled","params":{{"requestId":$2}}}}
        server > {NOTE}"debug","data":4}}}}
        ! unowned "notifications/message"
        "#
    ));
}

#[test]
fn a_call_waits_a_moment_to_hear_the_log_and_the_next_does_not_wait_for_the_same() {
    check(&format!(
        r#"
        settings pinned modern
        up modern
        modern:a > {{"id":1,"method":"tools/call","params":{{"name":"x","_meta":{{‹{{}} debug›}}}}}}
        server < {{"id":$1,"method":"tools/call","params":{{"name":"x","_meta":{{‹{{}} debug›}}}}}}
        modern:b > {{"id":1,"method":"tools/call","params":{{"name":"x","_meta":{{‹{{}} debug›}}}}}}
        + 1499ms
        + 1ms
        server < {{"id":$2,"method":"tools/call","params":{{"name":"x","_meta":{{‹{{}}›}}}}}}
        modern:c > {{"id":1,"method":"tools/call","params":{{"name":"x","_meta":{{‹{{}} debug›}}}}}}
        server < {{"id":$3,"method":"tools/call","params":{{"name":"x","_meta":{{‹{{}}›}}}}}}
        server > {NOTE}"debug","data":1}}}}
        modern:a ~ {NOTE}"debug","data":1}}}}
        server > {{"id":$1,"result":{{"resultType":"complete"}}}}
        modern:a ~ {{"id":1,…
        modern:a end
        server > {NOTE}"debug","data":2}}}}
        ! unowned "notifications/message"
        modern:d > {{"id":1,"method":"tools/call","params":{{"name":"x","_meta":{{‹{{}} debug›}}}}}}
        server < {{"id":$4,"method":"tools/call","params":{{"name":"x","_meta":{{‹{{}} debug›}}}}}}
        "#
    ));
}

// R-54: the log of a modern pipe is not a stopped call's for longer than a moment, and who wants it waits for that.
#[test]
fn a_cancelled_call_gives_the_log_of_a_modern_pipe_away_after_a_moment() {
    for (end, moment, rest) in [
        ("left modern:a", "10ms", "+ 990ms"),
        ("left modern:a", "1s", ""),
        ("+ 30s\nmodern:a fault timeout", "999ms", "+ 1ms"),
    ] {
        check(&format!(
            r#"
            settings pinned modern
            up modern
            modern:a json > {{"id":1,"method":"tools/call","params":{{"name":"x","_meta":{{‹{{}} debug›}}}}}}
            server < {{"id":$1,"method":"tools/call","params":{{"name":"x","_meta":{{‹{{}} debug›}}}}}}
            {end}
            server < {{"method":"notifications/cancelled","params":{{"requestId":$1}}}}
            + {moment}
            modern:b > {{"id":1,"method":"tools/call","params":{{"name":"x","_meta":{{‹{{}} debug›}}}}}}
            {rest}
            server < {{"id":$2,"method":"tools/call","params":{{"name":"x","_meta":{{‹{{}} debug›}}}}}}
            "#
        ));
    }
}

#[test]
fn over_http_a_note_comes_with_its_call() {
    check(&format!(
        r#"
        settings http, pinned modern
        up modern
        modern:a > {{"id":1,"method":"tools/call","params":{{"name":"x","_meta":{{‹{{}} warning›}}}}}}
        server < {{"id":$1,"method":"tools/call","params":{{"name":"x","_meta":{{‹{{}} warning›}}}}}}
        modern:b > {{"id":1,"method":"tools/call","params":{{"name":"x","_meta":{{‹{{}} debug›}}}}}}
        server < {{"id":$2,"method":"tools/call","params":{{"name":"x","_meta":{{‹{{}} debug›}}}}}}
        server about $2 > {NOTE}"debug","data":1}}}}
        modern:b ~ {NOTE}"debug","data":1}}}}
        server about $1 > {NOTE}"debug","data":2}}}}
        server about $1 > {NOTE}"error","data":3}}}}
        modern:a ~ {NOTE}"error","data":3}}}}
        "#
    ));
}

// mcp-eras 5.9, last: a session's level goes with its calls, one at a time on a pipe.
#[test]
fn a_sessions_level_is_told_to_a_modern_server_with_its_calls() {
    check(&format!(
        r#"
        settings pinned modern
        up a b
        a > {{"id":1,"method":"tools/call","params":{{"name":"x"}}}}
        server < {{"id":$1,"method":"tools/call","params":{{"name":"x","_meta":{{‹{{}} info c›}}}}}}
        server > {NOTE}"info","data":0}}}}
        a ~ 1-0
        a ~ {NOTE}"info","data":0}}}}
        server > {{"id":$1,"result":{{"resultType":"complete"}}}}
        a ~ {{"id":1,"result":{{}}}}
        a end
        server > {NOTE}"error","data":"of no call"}}}}
        b get
        b get ~ 0-0
        b get ~ {NOTE}"error","data":"of no call"}}}}
        a > {{"id":1,"method":"logging/setLevel","params":{{"level":"warning"}}}}
        a < {{"id":1,"result":{{}}}}
        a > {{"id":2,"method":"tools/call","params":{{"name":"x"}}}}
        server < {{"id":$2,"method":"tools/call","params":{{"name":"x","_meta":{{‹{{}} warning c›}}}}}}
        b > {{"id":2,"method":"tools/call","params":{{"name":"x"}}}}
        server < {{"id":$3,"method":"tools/call","params":{{"name":"x","_meta":{{‹{{}} c›}}}}}}
        a:y > {{"id":3,"method":"tools/call","params":{{"name":"x"}}}}
        server < {{"id":$4,"method":"tools/call","params":{{"name":"x","_meta":{{‹{{}} c›}}}}}}
        server > {NOTE}"error","data":1}}}}
        a ~ 2-0
        a ~ {NOTE}"error","data":1}}}}
        server > {NOTE}"info","data":2}}}}
        "#
    ));
}

// While its client is asked, a call is not at the server, and another one may log.
#[test]
fn a_call_that_waits_for_its_client_gives_the_log_away() {
    check(
        r#"
        settings pinned modern
        up a {"roots":{}}
        a > {"id":1,"method":"logging/setLevel","params":{"level":"warning"}}
        a < {"id":1,"result":{}}
        a > {"id":2,"method":"tools/call","params":{"name":"x"}}
        server < {"id":$1,"method":"tools/call","params":{"name":"x","_meta":{‹{"roots":{}} warning c›}}}
        server > {"id":$1,"result":{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}}}}
        a ~ 1-0
        a ~ {"id":1,"method":"roots/list",…
        modern:b > {"id":1,"method":"tools/call","params":{"name":"x","_meta":{‹{} debug›}}}
        server < {"id":$2,"method":"tools/call","params":{"name":"x","_meta":{‹{} debug›}}}
        a > {"id":1,"result":{"roots":[]}}
        server < {"id":$3,"method":"tools/call","params":{"name":"x","_meta":{‹{"roots":{}} c›},"inputResponses":{"a":{"roots":[]}}}}
        "#,
    );
}

// checks 74
#[test]
fn a_level_that_is_none_is_unfit() {
    check(
        r#"
        up modern
        modern:a > {"id":1,"method":"tools/call","params":{"name":"x","_meta":{‹{}›,"io.modelcontextprotocol/logLevel":"loud"}}}
        modern:a unfit Meta("unknown log level \"loud\"")
        "#,
    );
}
