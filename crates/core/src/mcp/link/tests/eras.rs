//! Which era a server speaks: how it is asked, and what each answer means (mcp-eras 4.1).

use super::check;

/// A client waits, and a pipe was asked in both ways.
const PROBED: &str = r#"
    settings probe
    open a
    ! start
    server < {"id":$d,"method":"server/discover","params":{"_meta":{‹{} prism›}}}
    server < {"id":$i,"method":"initialize","params":{"protocolVersion":"2025-11-25",…
"#;

const WELCOME: &str = r#"a < {"id":0,"result":{"protocolVersion":"2025-11-25",…"serverInfo":{"name":"s",…"#;

// checks 111
#[test]
fn a_legacy_server_on_a_pipe_is_not_kept_waiting_for_the_other_answer() {
    // Silent, or late with any kind of refusal.
    for late in [
        "",
        r#"server > {"id":$d,"error":{"code":-32601,"message":"method not found"}}"#,
        r#"server > {"id":$d,"error":{"code":-32602,"message":"not initialized"}}"#,
        r#"server > {"id":$d,"error":{"code":-32022,"message":"no","data":{"supported":["2026-07-28"]}}}"#,
        r#"server > {"id":$d,"result":{}}"#,
    ] {
        check(&format!(
            r#"
            {PROBED}
            greet
            ! ready s 1
            server < {{"method":"notifications/initialized"}}
            {WELCOME}
            {late}
            a > {{"id":1,"method":"tools/list"}}
            server < {{"id":$1,"method":"tools/list"}}
            exit
            a fault exited
            + 500ms
            ! start
            server < {{"id":$j,"method":"initialize",…
            "#
        ));
    }
}

#[test]
fn a_refusal_of_the_modern_question_is_legacy_whatever_its_code() {
    for refusal in [
        r#""error":{"code":-32601,"message":"method not found"}"#,
        r#""error":{"code":-32602,"message":"not initialized"}"#,
        r#""error":{"code":-32020,"message":"what header?"}"#,
        r#""error":{"code":-32022,"message":"no","data":{"supported":["2027-01-01"]}}"#,
        r#""result":{"supportedVersions":["2025-11-25"],"capabilities":{}}"#,
        r#""result":7"#,
    ] {
        check(&format!(
            r#"
            {PROBED}
            server > {{"id":$d,{refusal}}}
            greet
            ! ready s 1
            server < {{"method":"notifications/initialized"}}
            {WELCOME}
            "#
        ));
        // The same where it is known from before, and no longer true.
        check(&format!(
            r#"
            settings learned modern
            open a
            ! start
            server < {{"id":$d,"method":"server/discover",…
            server > {{"id":$d,{refusal}}}
            server < {{"id":$i,"method":"initialize",…
            greet
            ! ready s 1
            server < {{"method":"notifications/initialized"}}
            {WELCOME}
            "#
        ));
    }
}

// checks 111
#[test]
fn a_server_that_ends_on_the_modern_question_is_started_again_without_it() {
    check(&format!(
        r#"
        {PROBED}
        exit
        ! start
        server < {{"id":$j,"method":"initialize",…
        greet
        ! ready s 1
        server < {{"method":"notifications/initialized"}}
        {WELCOME}
        "#
    ));
    // That was none of its restarts: it still has all three.
    check(&format!(
        r#"
        {PROBED}
        exit
        ! start
        server < {{"id":$j,"method":"initialize",…
        exit
        + 500ms
        ! start
        server < {{"id":$k,"method":"initialize",…
        exit
        + 1s
        ! start
        server < {{"id":$l,"method":"initialize",…
        exit
        + 2s
        ! start
        server < {{"id":$m,"method":"initialize",…
        exit
        ! ended a
        a fault unavailable: its process ended again and again right after the start
        "#
    ));
}

#[test]
fn a_server_of_both_eras_is_started_again_once_and_spoken_to_in_the_modern_one() {
    check(&format!(
        r#"
        {PROBED}
        discover
        greet
        ! stop
        ! start
        server < {{"id":$e,"method":"server/discover",…
        discover
        ! ready s 2 modern
        {WELCOME}
        server < {{"id":$union,"method":"subscriptions/listen",…
        ack
        exit
        + 500ms
        ! start
        server < {{"id":$f,"method":"server/discover",…
        "#
    ));
}

#[test]
fn a_server_of_both_eras_that_says_so_too_late_is_legacy_until_its_next_start() {
    check(&format!(
        r#"
        {PROBED}
        greet
        ! ready s 1
        server < {{"method":"notifications/initialized"}}
        {WELCOME}
        discover
        a > {{"id":1,"method":"tools/list"}}
        server < {{"id":$1,"method":"tools/list"}}
        exit
        a fault exited
        + 500ms
        ! start
        server < {{"id":$e,"method":"server/discover",…
        discover
        ! ready s 2 modern
        server < {{"id":$union,"method":"subscriptions/listen",…
        "#
    ));
}

#[test]
fn a_server_of_the_modern_era_only_is_not_started_again() {
    for answers in [
        r#"discover
           server > {"id":$i,"error":{"code":-32601,"message":"method not found"}}"#,
        r#"server > {"id":$i,"error":{"code":-32601,"message":"method not found"}}
           discover"#,
    ] {
        check(&format!(
            r#"
            {PROBED}
            {answers}
            ! ready s 2 modern
            {WELCOME}
            server < {{"id":$union,"method":"subscriptions/listen",…
            "#
        ));
    }
}

// R-52: a process of Python's SDK 2.3 is bound to the era of the first question, and says of the other only that.
#[test]
fn a_server_that_was_bound_to_the_modern_era_is_started_again_for_clients_of_the_older_one() {
    let probed = PROBED.replace("settings probe", "settings probe, prefers legacy");
    let bound =
        r#"server > {"id":$i,"error":{"code":-32022,"message":"connection is serving the 2026-07-28 protocol"}}"#;
    let again = r#"! stop
                   ! start
                   server < {"id":$j,"method":"initialize",…"#;
    check(&format!(
        r#"
        {probed}
        discover
        {bound}
        {again}
        greet
        ! ready s 1
        server < {{"method":"notifications/initialized"}}
        {WELCOME}
        ~ speaks both
        exit
        + 500ms
        ! start
        server < {{"id":$k,"method":"initialize",…
        "#
    ));
    // One that refuses it as the first question, too, speaks the modern era only; the same process takes that.
    for code in ["-32022", "-32600"] {
        check(&format!(
            r#"
            {probed}
            discover
            {bound}
            {again}
            server > {{"id":$j,"error":{{"code":{code},"message":"no"}}}}
            server < {{"id":$e,"method":"server/discover",…
            discover
            ! ready s 2 modern
            {WELCOME}
            server < {{"id":$union,"method":"subscriptions/listen",…
            ~ speaks modern
            "#
        ));
    }
    // For clients of the modern era it is right as it is; what else it speaks nobody knows yet.
    check(&format!(
        r#"
        {PROBED}
        discover
        {bound}
        ! ready s 2 modern
        {WELCOME}
        server < {{"id":$union,"method":"subscriptions/listen",…
        ~ speaks unknown
        "#
    ));
}

#[test]
fn a_modern_server_that_has_no_answer_to_initialize_is_asked_no_more() {
    for end in ["+ 4s\n+ 1s\n! stop", "exit"] {
        check(&format!(
            r#"
            {PROBED}
            discover
            {end}
            ! start
            server < {{"id":$e,"method":"server/discover",…
            discover
            ! ready s 2 modern
            {WELCOME}
            server < {{"id":$union,"method":"subscriptions/listen",…
            "#
        ));
    }
}

#[test]
fn a_server_that_refuses_both_is_quoted_and_one_that_says_nothing_is_given_up() {
    for answers in [
        r#"server > {"id":$d,"error":{"code":-32601,"message":"?"}}
           server > {"id":$i,"error":{"code":-5,"message":"no licence"}}"#,
        r#"server > {"id":$i,"error":{"code":-5,"message":"no licence"}}
           server > {"id":$d,"error":{"code":-32601,"message":"?"}}"#,
    ] {
        check(&format!(
            r#"
            {PROBED}
            {answers}
            a < {{"id":0,"error":{{"code":-5,"message":"no licence"}}}}
            ! stop
            ! ended a
            "#
        ));
    }
    check(&format!(
        r#"
        {}
        + 119s
        a ~ 1-0
        + 1s
        a ~ {{"id":0,"error":{{"code":-32603,"message":"the MCP server cannot be reached: it did not answer `initialize`…
        a end
        ! stop
        ! ended a
        "#,
        PROBED.replace("settings probe", "settings probe, timeout off")
    ));
}

#[test]
fn a_legacy_server_that_has_become_modern_says_so_in_its_refusal() {
    for code in ["-32601", "-32022"] {
        check(&format!(
            r#"
            settings learned legacy
            open a
            ! start
            server < {{"id":$i,"method":"initialize",…
            server > {{"id":$i,"error":{{"code":{code},"message":"no"}}}}
            server < {{"id":$d,"method":"server/discover",…
            discover
            ! ready s 2 modern
            {WELCOME}
            server < {{"id":$union,"method":"subscriptions/listen",…
            "#
        ));
    }
    // Another refusal is one of this client, or of everybody, and no era's.
    check(
        r#"
        settings learned legacy
        open a
        ! start
        server < {"id":$i,"method":"initialize",…
        server > {"id":$i,"error":{"code":-32000,"message":"no licence"}}
        a < {"id":0,"error":{"code":-32000,"message":"no licence"}}
        ! stop
        ! ended a
        "#,
    );
    // And the first words count if it is not modern after all.
    check(
        r#"
        settings learned legacy
        open a
        ! start
        server < {"id":$i,"method":"initialize",…
        server > {"id":$i,"error":{"code":-32601,"message":"first"}}
        server < {"id":$d,"method":"server/discover",…
        server > {"id":$d,"error":{"code":-32601,"message":"second"}}
        a < {"id":0,"error":{"code":-32601,"message":"first"}}
        ! stop
        ! ended a
        "#,
    );
}

#[test]
fn a_pinned_era_is_this_or_nothing() {
    check(
        r#"
        settings pinned modern
        open a
        ! start
        server < {"id":$d,"method":"server/discover",…
        server > {"id":$d,"error":{"code":-32601,"message":"?"}}
        a fault unavailable: it does not speak the revision 2026-07-28 (era = "modern" is set)
        ! stop
        ! ended a
        open b
        ! start
        server < {"id":$e,"method":"server/discover",…
        "#,
    );
    check(
        r#"
        settings pinned legacy
        open a
        ! start
        server < {"id":$i,"method":"initialize",…
        server > {"id":$i,"error":{"code":-32022,"message":"?","data":{"supported":["2026-07-28"]}}}
        a < {"id":0,"error":{"code":-32022,…
        ! stop
        ! ended a
        "#,
    );
}

// checks 117
#[test]
fn a_refusal_that_names_our_own_revision_is_asked_once_more() {
    let refusal = r#""error":{"code":-32022,"message":"no","data":{"supported":["2025-11-25","2026-07-28"]}}"#;
    check(&format!(
        r#"
        settings http, probe
        open a
        ! start
        server < {{"id":$d,"method":"server/discover",…
        server > {{"id":$d,{refusal}}}
        server < {{"id":$e,"method":"server/discover",…
        discover
        ! ready s 2 modern
        {WELCOME}
        server < {{"id":$union,"method":"subscriptions/listen",…
        "#
    ));
    check(&format!(
        r#"
        settings http, probe
        open a
        ! start
        server < {{"id":$d,"method":"server/discover",…
        server > {{"id":$d,{refusal}}}
        server < {{"id":$e,"method":"server/discover",…
        server > {{"id":$e,{refusal}}}
        server < {{"id":$i,"method":"initialize",…
        "#
    ));
}

#[test]
fn over_http_one_question_comes_first_and_a_refusal_of_any_kind_is_legacy() {
    for refusal in [
        "refused $d",
        r#"server about $d > {"error":{"code":-32000,"message":"Bad Request: no session"}}"#,
        r#"server about $d > {"id":null,"error":{"code":-32000,"message":"Bad Request: no session"}}"#,
        r#"server about $d > {"id":$d,"error":{"code":-32601,"message":"?"}}"#,
        r#"server about $d > {"id":$d,"result":{"supportedVersions":["2025-11-25"]}}"#,
    ] {
        check(&format!(
            r#"
            settings http, probe
            open a
            ! start
            server < {{"id":$d,"method":"server/discover",…
            {refusal}
            server < {{"id":$i,"method":"initialize",…
            greet
            ! ready s 1
            server < {{"method":"notifications/initialized"}}
            {WELCOME}
            "#
        ));
    }
}

// checks 117
#[test]
fn an_outage_says_nothing_about_eras() {
    check(&format!(
        r#"
        settings http, probe
        open a
        ! start
        server < {{"id":$d,"method":"server/discover",…
        unanswered $d
        + 500ms
        ! start
        server < {{"id":$e,"method":"server/discover",…
        discover
        ! ready s 2 modern
        {WELCOME}
        server < {{"id":$union,"method":"subscriptions/listen",…
        "#
    ));
    check(
        r#"
        settings http, learned modern
        open a
        ! start
        server < {"id":$d,"method":"server/discover",…
        unanswered $d
        + 500ms
        ! start
        server < {"id":$e,"method":"server/discover",…
        unanswered $e
        + 1s
        ! start
        server < {"id":$f,"method":"server/discover",…
        unanswered $f
        + 2s
        ! start
        server < {"id":$g,"method":"server/discover",…
        unanswered $g
        ! ended a
        a fault unavailable: it does not answer
        "#,
    );
}

#[test]
fn a_discovery_that_is_too_long_ends_the_wait_at_once() {
    let long = "x".repeat(600);
    check(&format!(
        r#"
        settings pinned modern, limit 500
        open a
        ! start
        server < {{"id":$d,"method":"server/discover",…
        server > {{"id":$d,"result":{{"supportedVersions":["2026-07-28"],"instructions":"{long}"}}}}
        a fault unavailable: the server's answer is over `max_message_bytes` (500 bytes); raise the setting or ask for less
        ! stop
        ! ended a
        "#
    ));
}

// mcp-eras 5.13, modern → legacy HTTP: what was not answered is for the shell to send again.
#[test]
fn a_session_that_the_server_forgot_is_opened_again_and_the_calls_go_on() {
    check(
        r#"
        settings http
        up a
        a get
        a get ~ 0-0
        a > {"id":1,"method":"resources/subscribe","params":{"uri":"file:///x"}}
        server < {"id":$1,…
        server > {"id":$1,"result":{}}
        a < {"id":1,"result":{}}
        a > {"id":2,"method":"logging/setLevel","params":{"level":"error"}}
        server < {"id":$2,…
        server > {"id":$2,"result":{}}
        a < {"id":2,"result":{}}
        a:x > {"id":3,"method":"tools/call","params":{"name":"x"}}
        server < {"id":$3,…
        modern:m > {"id":3,"method":"tools/call","params":{"name":"x","_meta":{‹{}›}}}
        server < {"id":$4,…
        session lost
        ! start
        server < {"id":$i,"method":"initialize",…
        a:y > {"id":4,"method":"tools/list"}
        greet
        ! ready s 1
        server < {"method":"notifications/initialized"}
        server < {"id":$5,"method":"logging/setLevel","params":{"level":"error"}}
        server < {"id":$6,"method":"resources/subscribe","params":{"uri":"file:///x"}}
        server < {"id":$7,"method":"tools/list"}
        a get ~ {"method":"notifications/resources/updated","params":{"uri":"file:///x"}}
        a get ~ {"method":"notifications/tools/list_changed"}
        a get ~ {"method":"notifications/prompts/list_changed"}
        a get ~ {"method":"notifications/resources/list_changed"}
        server about $3 > {"id":$3,"result":{"n":3}}
        a:x < {"id":3,"result":{"n":3}}
        server about $4 > {"id":$4,"result":{"n":4}}
        modern:m < {"id":3,"result":{"resultType":"complete","n":4,"_meta":{‹s›}}}
        "#,
    );
}

#[test]
fn a_new_session_that_promises_something_else_answers_what_was_in_flight() {
    check(
        r#"
        settings http
        up a
        a > {"id":3,"method":"tools/call","params":{"name":"x"}}
        server < {"id":$3,…
        modern:l > {"id":"l","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{‹{}›}}}
        modern:l ~ {"method":"notifications/subscriptions/acknowledged",…
        session lost
        ! start
        server < {"id":$i,"method":"initialize",…
        greet {"tools":{}}
        ! ready s 1
        ! ended a
        ! stop
        a fault session ended
        modern:l ~ {"id":"l","result":{"resultType":"complete","_meta":{‹#"l"›}}}
        modern:l end
        "#,
    );
    // One that was not acknowledged yet is begun anew.
    check(
        r#"
        settings http
        up modern
        modern:l > {"id":"l","method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["u"]},"_meta":{‹{}›}}}
        server < {"id":$1,"method":"resources/subscribe","params":{"uri":"u"}}
        session lost
        ! start
        server < {"id":$i,"method":"initialize",…
        greet {"resources":{"subscribe":true}}
        ! ready s 1
        server < {"method":"notifications/initialized"}
        server < {"id":$2,"method":"resources/subscribe","params":{"uri":"u"}}
        server about $2 > {"id":$2,"result":{}}
        modern:l ~ {"method":"notifications/subscriptions/acknowledged","params":{"notifications":{"resourceSubscriptions":["u"]},"_meta":{‹#"l"›}}}
        server about $1 > {"id":$1,"result":{}}
        ~ 1 watches
        ~ 0 exchanges
        "#,
    );
}

#[test]
fn a_modern_server_is_probed_by_asking_for_its_tools() {
    check(
        r#"
        settings pinned modern
        up modern
        probe
        server < {"id":$p,"method":"tools/list","params":{"_meta":{‹{} prism›}}}
        server > {"id":$p,"result":{}}
        probe <
        "#,
    );
}
