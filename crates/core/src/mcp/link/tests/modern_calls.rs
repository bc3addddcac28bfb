//! Calls of modern clients: told to a legacy server in its own words, to a modern one in theirs (mcp-eras 5.13).

use super::check;

// checks 71 95
#[test]
fn an_envelope_stays_with_us_and_what_is_not_ours_passes() {
    check(
        r#"
        up modern
        modern:a > {"id":"1","method":"tools/call","params":{"name":"x","arguments":{"n":1.0,"e":1e400},"_meta":{"traceparent":"00-a","progressToken":"t",‹{"roots":{}} A›,"com.example/x":[1.0]}}}
        server < {"id":$1,"method":"tools/call","params":{"name":"x","arguments":{"n":1.0,"e":1e400},"_meta":{"traceparent":"00-a","progressToken":$1,"com.example/x":[1.0]}}}
        server > {"id":$1,"result":{"content":[1.0],"isError":false,"_meta":{"x":1.0}}}
        modern:a < {"id":"1","result":{"resultType":"complete","content":[1.0],"isError":false,"_meta":{"x":1.0,‹s›}}}
        ~ 0 exchanges
        "#,
    );
}

// checks 71
#[test]
fn the_six_cacheable_results_have_hints_and_no_other() {
    for (method, ttl) in [
        ("tools/list", Some(0)),
        ("prompts/list", Some(0)),
        ("resources/list", Some(0)),
        ("resources/templates/list", Some(0)),
        ("prompts/get", None),
        ("completion/complete", None),
    ] {
        let hints = ttl.map(|ttl| format!(r#","ttlMs":{ttl},"cacheScope":"private""#)).unwrap_or_default();
        check(&format!(
            r#"
            up modern
            modern:a > {{"id":1,"method":"{method}","params":{{"name":"n","uri":"u","_meta":{{‹{{}}›}}}}}}
            server < {{"id":$1,"method":"{method}","params":{{"name":"n","uri":"u","_meta":{{}}}}}}
            server > {{"id":$1,"result":{{"resultType":"?","x":1}}}}
            modern:a < {{"id":1,"result":{{"resultType":"complete"{hints},"x":1,"_meta":{{‹s›}}}}}}
            "#
        ));
    }
    check(
        r#"
        up modern
        modern:a > {"id":1,"method":"resources/read","params":{"uri":"u","_meta":{‹{}›}}}
        server < {"id":$1,…
        server > {"id":$1,"result":{"ttlMs":9,"contents":[]}}
        modern:a < {"id":1,"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","contents":[],"_meta":{‹s›}}}
        "#,
    );
}

// checks 67
#[test]
fn what_a_server_is_is_told_from_its_handshake() {
    check(
        r#"
        modern:a > {"id":"x","method":"server/discover","params":{"_meta":{‹{}›}}}
        ! start
        server < {"id":$i,"method":"initialize",…
        server > {"id":$i,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"tasks":{},"extensions":{"x/y":{}}},"serverInfo":{"name":"s","version":"1"},"instructions":"do"}}
        ! ready s 1
        server < {"method":"notifications/initialized"}
        modern:a < {"id":"x","result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"instructions":"do","ttlMs":300000,"cacheScope":"public","_meta":{‹s›}}}
        "#,
    );
    check(
        r#"
        settings pinned modern
        modern:a > {"id":"x","method":"server/discover","params":{"_meta":{‹{}›}}}
        ! start
        server < {"id":$d,"method":"server/discover",…
        discover {"tools":{},"extensions":{"x/y":{}}}
        ! ready s 2 modern
        modern:a < {"id":"x","result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"extensions":{"x/y":{}},"tools":{}},"ttlMs":300000,"cacheScope":"public",…
        "#,
    );
}

// checks 69
#[test]
fn a_method_that_the_era_or_the_server_does_not_have_is_not_found() {
    for method in ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"] {
        check(&format!(
            r#"
            up modern
            modern:a > {{"id":1,"method":"{method}","params":{{"_meta":{{‹{{}}›}}}}}}
            modern:a unfit Method
            "#
        ));
    }
    for method in ["tasks/get", "tasks/list", "x/y"] {
        check(&format!(
            r#"
            up modern
            modern:a > {{"id":1,"method":"{method}","params":{{"_meta":{{‹{{}}›}}}}}}
            modern:a error {{"id":1,"error":{{"code":-32601,"message":"method not found"}}}}
            "#
        ));
    }
    check(
        r#"
        settings pinned modern
        up modern
        modern:a > {"id":1,"method":"x/y","params":{"_meta":{‹{}›}}}
        server < {"id":$1,"method":"x/y","params":{"_meta":{‹{}›}}}
        server > {"id":$1,"error":{"code":-32601,"message":"?"}}
        modern:a error {"id":1,"error":{"code":-32601,"message":"?"}}
        "#,
    );
}

// checks 91
#[test]
fn errors_of_a_legacy_server_are_told_in_the_codes_of_the_era() {
    for (error, told) in [
        (r#"{"code":-32002,"message":"m","data":{"uri":"u"}}"#, r#"{"code":-32602,"message":"m","data":{"uri":"u"}}"#),
        (r#"{"code":-32042,"message":"m"}"#, r#"{"code":-32603,"message":…"original":{"code":-32042,…"#),
        (r#"{"code":-32020,"message":"m"}"#, r#"{"code":-32603,"message":…"original":{"code":-32020,…"#),
        (r#"{"code":-32099,"message":"m"}"#, r#"{"code":-32603,"message":…"original":{"code":-32099,…"#),
        (r#"{"code":-32000,"message":"m","data":1.0}"#, r#"{"code":-32000,"message":"m","data":1.0}"#),
        (r#"{"code":-32602,"message":"m"}"#, r#"{"code":-32602,"message":"m"}"#),
    ] {
        check(
            &format!(
                r#"
            up modern
            modern:a > {{"id":1,"method":"resources/read","params":{{"uri":"u","_meta":{{‹{{}}›}}}}}}
            server < {{"id":$1,…
            server > {{"id":$1,"error":{error}}}
            modern:a error {{"id":1,"error":{told}}}
            "#
            )
            .replace("…}", "…"),
        );
    }
}

// mcp-eras 5.7 A7.
// checks 85 90 91
#[test]
fn an_error_that_asks_to_open_pages_is_a_question_and_the_retry_calls_again() {
    let error = r#""error":{"code":-32042,"message":"m","data":{"elicitations":[{"mode":"url","elicitationId":"e","url":"https://e","message":"go"},{"url":"https://f"}]}}"#;
    check(&format!(
        r#"
        settings class {{"elicitation":{{"url":{{}}}}}}
        up modern
        modern:a > {{"id":1,"method":"tools/call","params":{{"name":"x","_meta":{{‹{{"elicitation":{{"url":{{}}}}}}›}}}}}}
        server < {{"id":$1,…
        server > {{"id":$1,{error}}}
        ! answered x
        modern:a < {{"id":1,"result":{{"resultType":"input_required","inputRequests":{{"r1":{{"method":"elicitation/create","params":{{"mode":"url","url":"https://e","message":"go"}}}},"r2":{{"method":"elicitation/create","params":{{"url":"https://f","mode":"url"}}}}}},"_meta":{{‹s›}}}}}}
        ~ 0 exchanges
        modern:a > {{"id":2,"method":"tools/call","params":{{"name":"x","inputResponses":{{"r1":{{"action":"accept"}}}},"_meta":{{‹{{"elicitation":{{"url":{{}}}}}}›,"progressToken":1}}}}}}
        server < {{"id":$2,"method":"tools/call","params":{{"name":"x","_meta":{{"progressToken":$2}}}}}}
        server > {{"id":$2,"result":{{}}}}
        ! answered x
        modern:a < {{"id":2,"result":{{"resultType":"complete",…
        modern:b > {{"id":3,"method":"tools/call","params":{{"name":"x","_meta":{{‹{{"elicitation":{{}}}}›}}}}}}
        server < {{"id":$3,…
        server > {{"id":$3,{error}}}
        ! answered x
        modern:b error {{"id":3,"error":{{"code":-32021,"message":"the client must be able to open a page","data":{{"requiredCapabilities":{{"elicitation":{{"url":{{}}}}}}}}}}}}
        "#
    ));
}

// mcp-eras 5.13: between two of the era nothing is rewritten but ids and tokens.
// checks 96 110
#[test]
fn a_modern_server_gets_a_modern_clients_own_words_and_answers_in_its_own() {
    check(
        r#"
        settings pinned modern
        up modern
        modern:a > {"id":"1","method":"tools/call","params":{"name":"x","_meta":{"progressToken":"t",‹{"elicitation":{}} debug A›},"inputResponses":{"k":{"x":1.0}},"requestState":"S\u0020"}}
        server < {"id":$1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":$1,‹{"elicitation":{}} debug A›},"inputResponses":{"k":{"x":1.0}},"requestState":"S\u0020"}}
        server > {"method":"notifications/progress","params":{"progressToken":$1,"progress":1.0}}
        modern:a ~ {"method":"notifications/progress","params":{"progressToken":"t","progress":1.0}}
        server > {"id":$1,"result":{"resultType":"input_required","requestState":"T\u0020","inputRequests":{"k":{"method":"elicitation/create","params":{"x":1.0}}}}}
        modern:a ~ {"id":"1","result":{"resultType":"input_required","requestState":"T\u0020","inputRequests":{"k":{"method":"elicitation/create","params":{"x":1.0}}}}}
        modern:a end
        ~ 0 parked
        modern:a > {"id":2,"method":"resources/read","params":{"uri":"u","_meta":{‹{}›}}}
        server < {"id":$2,"method":"resources/read","params":{"uri":"u","_meta":{‹{}›}}}
        server > {"id":$2,"result":{"resultType":"complete","ttlMs":7,"cacheScope":"public","contents":[]}}
        modern:a < {"id":2,"result":{"resultType":"complete","ttlMs":7,"cacheScope":"public","contents":[]}}
        modern:a > {"id":3,"method":"tools/call","params":{"name":"x","_meta":{‹{}›}}}
        server < {"id":$3,…
        server > {"id":$3,"error":{"code":-32021,"message":"m","data":{"requiredCapabilities":{"sampling":{}}}}}
        modern:a error {"id":3,"error":{"code":-32021,"message":"m","data":{"requiredCapabilities":{"sampling":{}}}}}
        ~ 0 exchanges
        "#,
    );
}

// checks 14 97
#[test]
fn clients_of_both_eras_with_the_same_ids_and_tokens_each_get_their_own() {
    for era in ["legacy", "modern"] {
        let told =
            if era == "legacy" { r#""resultType":"complete","for":"#.to_owned() } else { r#""for":"#.to_owned() };
        let meta = if era == "legacy" { r#","_meta":{‹s›}"# } else { "" };
        check(&format!(
            r#"
            settings pinned {era}
            up a modern
            a > {{"id":1,"method":"tools/call","params":{{"name":"x","_meta":{{"progressToken":1}}}}}}
            server < {{"id":$1,…
            modern:a > {{"id":1,"method":"tools/call","params":{{"name":"x","_meta":{{"progressToken":1,‹{{}}›}}}}}}
            server < {{"id":$2,…
            modern:b > {{"id":1,"method":"tools/call","params":{{"name":"x","_meta":{{"progressToken":1,‹{{}}›}}}}}}
            server < {{"id":$3,…
            server > {{"method":"notifications/progress","params":{{"progressToken":$3,"progress":3}}}}
            modern:b ~ {{"method":"notifications/progress","params":{{"progressToken":1,"progress":3}}}}
            server > {{"method":"notifications/progress","params":{{"progressToken":$2,"progress":2}}}}
            modern:a ~ {{"method":"notifications/progress","params":{{"progressToken":1,"progress":2}}}}
            server > {{"id":$1,"result":{{"for":"a"}}}}
            a < {{"id":1,"result":{{"for":"a"}}}}
            server > {{"id":$3,"result":{{"for":"modern:b"}}}}
            modern:b ~ {{"id":1,"result":{{{told}"modern:b"{meta}}}}}
            modern:b end
            server > {{"method":"notifications/progress","params":{{"progressToken":$3,"progress":3}}}}
            server > {{"id":$2,"result":{{"for":"modern:a"}}}}
            modern:a ~ {{"id":1,"result":{{{told}"modern:a"{meta}}}}}
            modern:a end
            "#
        ));
    }
}

// checks 75
#[test]
fn there_is_no_progress_for_who_asked_for_none() {
    check(
        r#"
        up modern
        modern:a > {"id":1,"method":"tools/call","params":{"name":"x","_meta":{‹{}›}}}
        server < {"id":$1,…
        server > {"method":"notifications/progress","params":{"progressToken":$1,"progress":3}}
        server > {"id":$1,"result":{}}
        modern:a < {"id":1,…
        "#,
    );
}

// mcp-eras 5.10: leaving is how one cancels.
// checks 76
#[test]
fn a_client_that_leaves_has_cancelled_and_hears_nothing_more() {
    for era in ["legacy", "modern"] {
        check(&format!(
            r#"
            settings pinned {era}
            up modern
            modern:a > {{"id":1,"method":"tools/call","params":{{"name":"x","_meta":{{"progressToken":1,‹{{}}›}}}}}}
            server < {{"id":$1,…
            left modern:a
            server < {{"method":"notifications/cancelled","params":{{"requestId":$1}}}}
            server > {{"method":"notifications/progress","params":{{"progressToken":$1,"progress":3}}}}
            server > {{"id":$1,"result":"late"}}
            ~ 0 exchanges
            modern:b > {{"id":1,"method":"tools/call","params":{{"name":"x","_meta":{{"progressToken":1,‹{{}}›}}}}}}
            server < {{"id":$2,…
            server > {{"method":"notifications/progress","params":{{"progressToken":$2,"progress":3}}}}
            modern:b ~ {{"method":"notifications/progress",…
            drop modern:b
            server < {{"method":"notifications/cancelled","params":{{"requestId":$2}}}}
            + 30s
            ~ 0 exchanges
            "#
        ));
    }
    // One that the server has not seen yet, it never sees.
    check(
        r#"
        modern:a > {"id":1,"method":"tools/call","params":{"name":"x","_meta":{‹{}›}}}
        ! start
        server < {"id":$i,"method":"initialize",…
        left modern:a
        greet
        ! ready s 1
        server < {"method":"notifications/initialized"}
        ~ 0 exchanges
        "#,
    );
}

#[test]
fn a_modern_call_can_time_out_and_its_server_can_end() {
    check(
        r#"
        settings timeout 30s
        up modern
        modern:a json > {"id":1,"method":"tools/call","params":{"name":"x","_meta":{‹{}›}}}
        server < {"id":$1,…
        + 30s
        server < {"method":"notifications/cancelled","params":{"requestId":$1}}
        modern:a fault timeout
        modern:b > {"id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":1,‹{}›}}}
        server < {"id":$2,…
        server > {"method":"notifications/progress","params":{"progressToken":$2,"progress":3}}
        modern:b ~ {"method":"notifications/progress",…
        exit
        modern:b ~ {"id":1,"error":{"code":-32603,…"data":{"reason":"upstream_exited"}}}
        modern:b end
        "#,
    );
}

// mcp-eras 5.13: a state that nobody gave out.
// checks 87
#[test]
fn a_legacy_server_is_not_called_for_a_state_that_nobody_gave_out() {
    check(
        r#"
        modern:a > {"id":1,"method":"tools/call","params":{"name":"x","requestState":"S","_meta":{‹{}›}}}
        ! start
        server < {"id":$i,"method":"initialize",…
        greet
        ! ready s 1
        server < {"method":"notifications/initialized"}
        modern:a error {"id":1,"error":{"code":-32602,…
        "#,
    );
}

// checks 65
#[test]
fn the_headers_of_a_tool_that_was_listed_must_fit_its_arguments() {
    let list = r#"{"tools":[{"name":"t","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"n":{"type":"integer","x-mcp-header":"N"}}}}]}"#;
    let listed = format!(
        r#"
        up modern
        modern:l > {{"id":1,"method":"tools/list","params":{{"_meta":{{‹{{}}›}}}}}}
        server < {{"id":$0,…
        server > {{"id":$0,"result":{list}}}
        modern:l < {{"id":1,…
        "#
    );
    let call = |headers: &str, arguments: &str| {
        format!(
            r#"{listed}
            modern:a {headers} > {{"id":1,"method":"tools/call","params":{{"name":"t","arguments":{arguments},"_meta":{{‹{{}}›}}}}}}"#
        )
    };
    for (headers, arguments) in [
        ("Mcp-Param-Region=eu", r#"{"region":"eu"}"#),
        ("Mcp-Param-region=eu Mcp-Param-Other=x", r#"{"region":"eu"}"#),
        ("Mcp-Param-Region==?base64?w6k=?=", r#"{"region":"é"}"#),
        ("Mcp-Param-N=42.0", r#"{"n":42}"#),
        ("Mcp-Param-N=42", r#"{"n":42.0,"region":null}"#),
        ("json", "{}"),
    ] {
        check(&format!("{}\nserver < {{\"id\":$1,\"method\":\"tools/call\",…", call(headers, arguments)));
    }
    for (headers, arguments) in [
        ("Mcp-Param-Region=us", r#"{"region":"eu"}"#),
        ("json", r#"{"region":"eu"}"#),
        ("Mcp-Param-Region=eu", "{}"),
        ("Mcp-Param-Region=eu Mcp-Param-Region=eu", r#"{"region":"eu"}"#),
        ("Mcp-Param-Region==?base64?!!!!?=", r#"{"region":"eu"}"#),
        ("Mcp-Param-N=43", r#"{"n":42}"#),
    ] {
        check(&format!("{}\nmodern:a error {{\"id\":1,\"error\":{{\"code\":-32020,…", call(headers, arguments)));
    }
}

// checks 92
#[test]
fn what_one_request_declares_is_not_remembered_for_the_next() {
    check(
        r#"
        settings class {"sampling":{}}
        up modern
        modern:a > {"id":1,"method":"tools/call","params":{"name":"x","_meta":{‹{"sampling":{}} error A›}}}
        server < {"id":$s,"method":"logging/setLevel","params":{"level":"error"}}
        server < {"id":$1,…
        server > {"id":$1,"result":{}}
        ! answered x
        modern:a < {"id":1,…
        modern:a > {"id":1,"method":"tools/call","params":{"name":"x","_meta":{‹{} A›}}}
        server < {"id":$2,…
        server > {"method":"notifications/message","params":{"level":"error","data":1}}
        server > {"id":"q","method":"sampling/createMessage","params":{}}
        ! asked
        server < {"id":"q","error":{"code":-32601,…
        server > {"id":$2,"result":{}}
        ! answered x
        modern:a < {"id":1,…
        "#,
    );
}

// N-03.
#[test]
fn events_are_named_by_method_for_who_wants_it() {
    check(
        r#"
        up modern
        modern:a named > {"id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":1,‹{}›}}}
        server < {"id":$1,…
        server > {"method":"notifications/progress","params":{"progressToken":$1,"progress":3}}
        modern:a ~ @notifications/progress {"method":"notifications/progress","params":{"progressToken":1,"progress":3}}
        server > {"id":$1,"result":{}}
        modern:a ~ @result {"id":1,"result":{"resultType":"complete",…
        modern:a end
        open a named
        a < {"id":0,…
        a named > {"id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":1}}}
        server < {"id":$2,…
        server > {"method":"notifications/progress","params":{"progressToken":$2,"progress":3}}
        a ~ 1-0
        a ~ @notifications/progress 1-1 {"method":"notifications/progress","params":{"progressToken":1,"progress":3}}
        "#,
    );
}

// checks 94
#[test]
fn clients_of_both_eras_at_once_are_one_handshake() {
    check(
        r#"
        modern:a > {"id":1,"method":"tools/call","params":{"name":"x","_meta":{‹{}›}}}
        ! start
        server < {"id":$i,"method":"initialize",…
        open b
        modern:c > {"id":1,"method":"server/discover","params":{"_meta":{‹{}›}}}
        modern:l > {"id":1,"method":"subscriptions/listen","params":{"notifications":{},"_meta":{‹{}›}}}
        ~ 3 held
        greet
        ! ready s 1
        server < {"method":"notifications/initialized"}
        server < {"id":$1,"method":"tools/call",…
        b < {"id":0,…
        modern:c < {"id":1,…
        modern:l ~ {"method":"notifications/subscriptions/acknowledged",…
        "#,
    );
}

// It has asked for no handshake, and would not understand how one failed.
#[test]
fn a_server_that_cannot_be_had_is_told_in_our_words() {
    for (end, why) in [
        ("failed", "no such program"),
        (r#"server > {"id":$i,"error":{"code":-5,"message":"no licence"}}"#, "it refused `initialize`"),
    ] {
        let stop = if end == "failed" { "" } else { "! stop" };
        check(&format!(
            r#"
            modern:a > {{"id":1,"method":"tools/call","params":{{"name":"x","_meta":{{‹{{}}›}}}}}}
            ! start
            server < {{"id":$i,"method":"initialize",…
            {end}
            modern:a fault unavailable: {why}
            {stop}
            "#
        ));
    }
}

// mcp-eras 5.5, 5.14: what has no meaning across eras, or no certain owner.
#[test]
fn notes_that_a_modern_client_does_not_know_reach_none() {
    check(
        r#"
        up modern
        modern:a > {"id":1,"method":"tools/call","params":{"name":"x","_meta":{‹{} debug›,"progressToken":1}}}
        server < {"id":$s,"method":"logging/setLevel",…
        server < {"id":$1,…
        modern:l > {"id":2,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{‹{}›}}}
        modern:l ~ {"method":"notifications/subscriptions/acknowledged",…
        server > {"method":"notifications/elicitation/complete","params":{"elicitationId":"e"}}
        ! unowned "notifications/elicitation/complete"
        server > {"method":"notifications/custom"}
        ! unowned "notifications/custom"
        server > {"id":1,"method":"ping"}
        server < {"id":1,"result":{}}
        "#,
    );
}

// Over HTTP a connection can break under one call.
#[test]
fn a_call_whose_connection_broke_says_so() {
    check(
        r#"
        settings http
        up a modern
        a > {"id":1,"method":"tools/call","params":{"name":"x"}}
        server < {"id":$1,…
        modern:a > {"id":1,"method":"tools/call","params":{"name":"x","_meta":{‹{}›}}}
        server < {"id":$2,…
        cut $2
        modern:a fault cut
        cut $1
        a fault cut
        cut $1
        ~ 0 exchanges
        "#,
    );
}
