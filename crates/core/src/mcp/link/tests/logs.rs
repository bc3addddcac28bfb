//! Log notes: whose they are, which is certain or nobody's, and who wants them.

use super::check;

// mcp-eras 5.9, N-02.
// checks 32
#[test]
fn a_note_while_one_call_runs_goes_on_its_post_stream() {
    check(
        r#"
        up a b
        a get
        a get ~ 0-0
        a > {"id":1,"method":"tools/call","params":{"name":"x"}}
        server < {"id":$1,…
        server > {"method":"notifications/message","params":{"level":"info","data":"working"}}
        a ~ 1-0
        a ~ 1-1 {"method":"notifications/message","params":{"level":"info","data":"working"}}
        server > {"id":$1,"result":{}}
        a ~ 1-2 {"id":1,"result":{}}
        a end
        "#,
    );
}

#[test]
fn a_note_while_several_calls_of_one_session_run_goes_on_its_get_stream() {
    check(
        r#"
        up a b
        a get
        a get ~ 0-0
        a:x > {"id":1,"method":"tools/call","params":{"name":"x"}}
        server < {"id":$1,…
        a:y > {"id":2,"method":"tools/list"}
        server < {"id":$2,…
        server > {"method":"notifications/message","params":{"level":"info","data":"working"}}
        a get ~ 0-1 {"method":"notifications/message","params":{"level":"info","data":"working"}}
        "#,
    );
}

// B-04: certain, or nobody's.
#[test]
fn a_note_while_calls_of_several_sessions_run_reaches_nobody() {
    for (other, priming) in [("b", "b ~ 1-0"), ("stateless", "")] {
        check(&format!(
            r#"
            up a b
            a get
            a get ~ 0-0
            b get
            b get ~ 0-0
            a > {{"id":1,"method":"tools/call","params":{{"name":"x"}}}}
            server < {{"id":$1,…
            {other} > {{"id":1,"method":"tools/call","params":{{"name":"x"}}}}
            server < {{"id":$2,…
            server > {{"method":"notifications/message","params":{{"level":"alert","data":"whose?"}}}}
            ! unowned "notifications/message"
            server > {{"id":$1,"result":{{}}}}
            a < {{"id":1,"result":{{}}}}
            server > {{"method":"notifications/message","params":{{"level":"alert","data":"the other's"}}}}
            {priming}
            {other} ~ {{"method":"notifications/message","params":{{"level":"alert","data":"the other's"}}}}
            "#
        ));
    }
}

// A server that ignores the cancel goes on logging; what it says is still about that call.
#[test]
fn a_note_about_a_call_that_nobody_waits_for_goes_to_its_own_session_or_nobody() {
    check(
        r#"
        up a b
        a get
        a get ~ 0-0
        a > {"id":1,"method":"tools/call","params":{"name":"x"}}
        server < {"id":$1,…
        a > {"method":"notifications/cancelled","params":{"requestId":1}}
        server < {"method":"notifications/cancelled","params":{"requestId":$1}}
        a cancelled
        server > {"method":"notifications/message","params":{"level":"info","data":"still at it"}}
        a get ~ {"method":"notifications/message","params":{"level":"info","data":"still at it"}}
        b > {"id":1,"method":"tools/call","params":{"name":"x"}}
        server < {"id":$2,…
        server > {"method":"notifications/message","params":{"level":"info","data":"whose?"}}
        ! unowned "notifications/message"
        close a
        a get end
        server > {"method":"notifications/message","params":{"level":"info","data":"whose?"}}
        ! unowned "notifications/message"
        server > {"id":$1,"result":{}}
        server > {"method":"notifications/message","params":{"level":"info","data":"of b"}}
        b ~ 1-0
        b ~ {"method":"notifications/message","params":{"level":"info","data":"of b"}}
        "#,
    );
}

// The same for one that left: until its time is up and the server was told, it may log. R-15: then for a moment only.
#[test]
fn a_note_about_a_call_whose_client_left_reaches_no_other_session_until_it_was_stopped() {
    check(
        r#"
        up a b
        a > {"id":1,"method":"tools/call","params":{"name":"x"}}
        server < {"id":$1,…
        left a
        + 29s
        b > {"id":1,"method":"tools/call","params":{"name":"x"}}
        server < {"id":$2,…
        server > {"method":"notifications/message","params":{"level":"info","data":"whose?"}}
        ! unowned "notifications/message"
        + 1s
        server < {"method":"notifications/cancelled","params":{"requestId":$1}}
        + 999ms
        server > {"method":"notifications/message","params":{"level":"info","data":"whose?"}}
        ! unowned "notifications/message"
        + 1ms
        server > {"method":"notifications/message","params":{"level":"info","data":"of b"}}
        b ~ 1-0
        b ~ {"method":"notifications/message","params":{"level":"info","data":"of b"}}
        "#,
    );
}

// R-15: a server that never answers what was cancelled, or what took too long, takes nobody's notes away.
#[test]
fn a_call_that_is_never_answered_takes_no_notes_from_others() {
    let note = r#"{"method":"notifications/message","params":{"level":"info","data":"of b"}}"#;
    for end in [
        r#"a > {"method":"notifications/cancelled","params":{"requestId":1}}
        server < {"method":"notifications/cancelled",…
        a cancelled"#,
        "+ 30s\na fault timeout\nserver < {\"method\":\"notifications/cancelled\",…",
        "close a\na fault session ended\nserver < {\"method\":\"notifications/cancelled\",…",
    ] {
        check(&format!(
            r#"
            up a b
            a json > {{"id":1,"method":"tools/call","params":{{"name":"x"}}}}
            server < {{"id":$1,…
            {end}
            + 1s
            b:x > {{"id":1,"method":"tools/call","params":{{"name":"x"}}}}
            server < {{"id":$2,…
            server > {note}
            b:x ~ 1-0
            b:x ~ {note}
            b:y > {{"id":2,"method":"tools/call","params":{{"name":"x"}}}}
            server < {{"id":$3,…
            server > {note}
            b get
            b get ~ 0-0
            b get ~ {note}
            "#
        ));
    }
}

// R-19, B-04: it is about the server, and every session of the child may hear it, each by its own level.
#[test]
fn a_note_while_no_call_runs_goes_to_every_session() {
    check(
        r#"
        up a
        server > {"method":"notifications/message","params":{"level":"info","data":1}}
        server > {"method":"notifications/custom","params":{"x":1}}
        a get
        a get ~ 0-0
        a get ~ {"method":"notifications/message","params":{"level":"info","data":1}}
        a get ~ {"method":"notifications/custom","params":{"x":1}}
        open b
        b < {"id":0,…
        b get
        b get ~ 0-0
        b > {"id":1,"method":"logging/setLevel","params":{"level":"error"}}
        server < {"id":$1,"method":"logging/setLevel","params":{"level":"info"}}
        b < {"id":1,"result":{}}
        server > {"method":"notifications/message","params":{"level":"info","data":2}}
        a get ~ {"method":"notifications/message","params":{"level":"info","data":2}}
        server > {"method":"notifications/message","params":{"level":"error","data":3}}
        a get ~ {"method":"notifications/message","params":{"level":"error","data":3}}
        b get ~ {"method":"notifications/message","params":{"level":"error","data":3}}
        server > {"method":"notifications/custom"}
        a get ~ {"method":"notifications/custom"}
        b get ~ {"method":"notifications/custom"}
        close b
        b get end
        server > {"method":"notifications/message","params":{"level":"info","data":4}}
        a get ~ {"method":"notifications/message","params":{"level":"info","data":4}}
        "#,
    );
}

// R-19: while a call runs, a note that no revision knows belongs to its session, as a log note does; never to its POST.
#[test]
fn a_custom_note_while_calls_run_goes_to_their_session_or_nobody() {
    check(
        r#"
        up a b
        a get
        a get ~ 0-0
        a > {"id":1,"method":"tools/call","params":{"name":"x"}}
        server < {"id":$1,…
        server > {"method":"notifications/custom"}
        a get ~ {"method":"notifications/custom"}
        b > {"id":1,"method":"tools/call","params":{"name":"x"}}
        server < {"id":$2,…
        server > {"method":"notifications/custom"}
        ! unowned "notifications/custom"
        server > {"id":$1,"result":{}}
        a < {"id":1,"result":{}}
        "#,
    );
    check(
        r#"
        settings http
        up a b
        a > {"id":1,"method":"tools/call","params":{"name":"x"}}
        server < {"id":$1,…
        b > {"id":1,"method":"tools/call","params":{"name":"x"}}
        server < {"id":$2,…
        server about $2 > {"method":"notifications/custom"}
        b get
        b get ~ 0-0
        b get ~ {"method":"notifications/custom"}
        "#,
    );
}

// checks 103
#[test]
fn the_server_logs_at_the_most_verbose_level_and_each_session_hears_its_own() {
    check(
        r#"
        up a b
        a > {"id":1,"method":"logging/setLevel","params":{"level":"error"}}
        server < {"id":$1,"method":"logging/setLevel","params":{"level":"info"}}
        a < {"id":1,"result":{}}
        b > {"id":1,"method":"logging/setLevel","params":{"level":"debug"}}
        server < {"id":$2,"method":"logging/setLevel","params":{"level":"debug"}}
        server > {"id":$2,"result":{}}
        b < {"id":1,"result":{}}
        a > {"id":2,"method":"logging/setLevel","params":{"level":"warning"}}
        a < {"id":2,"result":{}}
        a > {"id":3,"method":"tools/call","params":{"name":"x"}}
        server < {"id":$3,…
        server > {"method":"notifications/message","params":{"level":"notice","data":"too small for a"}}
        server > {"method":"notifications/message","params":{"level":"warning","data":"for a"}}
        a ~ 1-0
        a ~ {"method":"notifications/message","params":{"level":"warning","data":"for a"}}
        server > {"method":"notifications/message","params":{"level":"unheard of","data":"passes"}}
        a ~ {"method":"notifications/message","params":{"level":"unheard of","data":"passes"}}
        server > {"id":$3,"result":{}}
        a ~ {"id":3,"result":{}}
        a end
        b > {"id":4,"method":"tools/call","params":{"name":"x"}}
        server < {"id":$4,…
        server > {"method":"notifications/message","params":{"level":"debug","data":"for b"}}
        b ~ 1-0
        b ~ {"method":"notifications/message","params":{"level":"debug","data":"for b"}}
        close b
        b ~ {"id":4,"error":…
        b end
        server < {"method":"notifications/cancelled",…
        server < {"id":$5,"method":"logging/setLevel","params":{"level":"warning"}}
        "#,
    );
}

// mcp-eras 5.9: a session that never set a level counts as `info`.
#[test]
fn a_session_that_set_no_level_is_spared_anothers_debugging_and_gets_its_info() {
    check(
        r#"
        up a
        a > {"id":1,"method":"logging/setLevel","params":{"level":"emergency"}}
        server < {"id":$1,"method":"logging/setLevel","params":{"level":"emergency"}}
        server > {"id":$1,"result":{}}
        a < {"id":1,"result":{}}
        open b
        server < {"id":$2,"method":"logging/setLevel","params":{"level":"info"}}
        b < {"id":0,…
        a > {"id":2,"method":"logging/setLevel","params":{"level":"debug"}}
        server < {"id":$3,"method":"logging/setLevel","params":{"level":"debug"}}
        server > {"id":$3,"result":{}}
        a < {"id":2,"result":{}}
        b > {"id":4,"method":"tools/call","params":{"name":"x"}}
        server < {"id":$4,…
        server > {"method":"notifications/message","params":{"level":"debug","data":"not for b"}}
        server > {"method":"notifications/message","params":{"level":"info","data":"for b"}}
        b ~ 1-0
        b ~ {"method":"notifications/message","params":{"level":"info","data":"for b"}}
        "#,
    );
}

// checks 47
#[test]
fn a_level_that_is_none_is_refused() {
    check(
        r#"
        up a
        a > {"id":1,"method":"logging/setLevel","params":{"level":"loud"}}
        a < {"id":1,"error":{"code":-32602,"message":"unknown log level"}}
        a > {"id":2,"method":"logging/setLevel","params":{}}
        a < {"id":2,"error":{"code":-32602,…
        stateless > {"id":3,"method":"logging/setLevel","params":{"level":"info"}}
        stateless < {"id":3,"error":{"code":-32600,…
        "#,
    );
    check(
        r#"
        open a
        ! start
        server < {"id":$0,"method":"initialize",…
        greet {"tools":{}}
        server < {"method":"notifications/initialized"}
        ! ready s 1
        a < {"id":0,…
        a > {"id":1,"method":"logging/setLevel","params":{"level":"info"}}
        a < {"id":1,"error":{"code":-32601,…
        "#,
    );
}

// R-19: the hub looks at lists for itself, and what a server says meanwhile is not about that.
#[test]
fn what_the_hub_asks_for_itself_takes_no_notes_from_anybody() {
    let note = r#"{"method":"notifications/message","params":{"level":"info","data":1}}"#;
    check(&format!(
        r#"
        up a b
        a get
        a get ~ 0-0
        modern:x fetch > {{"id":7,"method":"tools/list","params":{{"_meta":{{‹{{}}›}}}}}}
        server < {{"id":$7,…
        server > {note}
        a get ~ {note}
        a > {{"id":1,"method":"tools/call","params":{{"name":"x"}}}}
        server < {{"id":$1,…
        server > {note}
        a ~ 1-0
        a ~ {note}
        a:y > {{"id":2,"method":"tools/call","params":{{"name":"x"}}}}
        server < {{"id":$2,…
        server > {note}
        a get ~ {note}
        server > {{"id":$7,"result":{{"tools":[]}}}}
        modern:x < …
        b get
        b get ~ 0-0
        b get ~ {note}
        "#
    ));
}
