//! A modern server that answers a legacy client's call with questions: real requests on the call's stream, and the call
//! made again with the answers (mcp-eras 5.7 B).

use super::check;

const ALL: &str = r#"{"roots":{},"sampling":{},"elicitation":{"form":{},"url":{}}}"#;

/// A client that can be asked anything calls a modern server.
fn called(settings: &str, then: &str) {
    check(&format!(
        r#"
        settings pinned modern{settings}
        up a {ALL}
        a > {{"id":1,"method":"tools/call","params":{{"name":"x","arguments":{{"n":1.0}},"_meta":{{"progressToken":"t","k":1}}}}}}
        server < {{"id":$1,"method":"tools/call","params":{{"name":"x","arguments":{{"n":1.0}},"_meta":{{"progressToken":$1,"k":1,‹{ALL} info c›}}}}}}
        {then}
        "#
    ));
}

/// It asks by a form and for roots, with a state.
const ASKED: &str = r#"
    server > {"id":$1,"result":{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"message":"?"}},"b":{"method":"roots/list"}},"requestState":"S\u0020t"}}
    a ~ 1-0
    a ~ 1-1 {"id":1,"method":"elicitation/create","params":{"message":"?"}}
    a ~ 1-2 {"id":2,"method":"roots/list","params":{}}
    ~ 2 questions
"#;

// B1, B2.
// checks 32 33 110
#[test]
fn questions_are_asked_at_once_and_the_call_is_made_again_with_all_answers_and_the_exact_state() {
    called(
        "",
        &format!(
            r#"
            {ASKED}
            a > {{"id":2,"result":{{"roots":[]}}}}
            server > {{"method":"notifications/progress","params":{{"progressToken":$1,"progress":1}}}}
            a > {{"id":1,"result":{{"action":"accept","content":{{"n":1.0}}}}}}
            server < {{"id":$2,"method":"tools/call","params":{{"name":"x","arguments":{{"n":1.0}},"_meta":{{"progressToken":$2,"k":1,‹{ALL} info c›}},"inputResponses":{{"b":{{"roots":[]}},"a":{{"action":"accept","content":{{"n":1.0}}}}}},"requestState":"S\u0020t"}}}}
            a > {{"id":1,"result":{{"action":"accept","content":"again"}}}}
            server > {{"method":"notifications/progress","params":{{"progressToken":$1,"progress":2}}}}
            server > {{"method":"notifications/progress","params":{{"progressToken":$2,"progress":3}}}}
            a ~ {{"method":"notifications/progress","params":{{"progressToken":"t","progress":3}}}}
            server > {{"id":$1,"result":{{"resultType":"complete","content":["late"]}}}}
            server > {{"id":$2,"result":{{"resultType":"complete","content":[],"_meta":{{‹s›}}}}}}
            a ~ {{"id":1,"result":{{"content":[]}}}}
            a end
            ~ 0 exchanges
            ~ 0 aliases
            "#
        ),
    );
}

#[test]
fn a_server_may_ask_again_with_another_state_or_none() {
    called(
        "",
        &format!(
            r#"
            {ASKED}
            a > {{"id":2,"result":{{"roots":[]}}}}
            a > {{"id":1,"result":{{"action":"decline"}}}}
            server < {{"id":$2,…"requestState":"S\u0020t"}}}}
            server > {{"id":$2,"result":{{"resultType":"input_required","inputRequests":{{"a":{{"method":"sampling/createMessage","params":{{"messages":[]}}}}}}}}}}
            a ~ {{"id":3,"method":"sampling/createMessage","params":{{"messages":[]}}}}
            a > {{"id":3,"result":{{"model":"m"}}}}
            server < {{"id":$3,"method":"tools/call","params":{{"name":"x","arguments":{{"n":1.0}},"_meta":{{…}},"inputResponses":{{"a":{{"model":"m"}}}}}}}}
            server > {{"id":$3,"result":{{"resultType":"complete","content":[]}}}}
            a ~ {{"id":1,"result":{{"content":[]}}}}
            a end
            "#
        ),
    );
}

// B1.
#[test]
fn a_page_to_open_gets_an_id_of_its_own_each_time() {
    let ask = |name: &str| {
        format!(
            r#"server > {{"id":${name},"result":{{"resultType":"input_required","inputRequests":{{"a":{{"method":"elicitation/create","params":{{"mode":"url","url":"https://e"}}}},"b":{{"method":"elicitation/create","params":{{"mode":"url","url":"https://f"}}}}}}}}}}"#
        )
    };
    let (first, second) = (ask("1"), ask("2"));
    called(
        "",
        &format!(
            r#"
            {first}
            a ~ 1-0
            a ~ {{"id":1,"method":"elicitation/create","params":{{"mode":"url","url":"https://e","elicitationId":"prism-$c-1-0"}}}}
            a ~ {{"id":2,"method":"elicitation/create","params":{{"mode":"url","url":"https://f","elicitationId":"prism-$c-1-1"}}}}
            a > {{"id":1,"result":{{"action":"accept"}}}}
            a > {{"id":2,"result":{{"action":"accept"}}}}
            server < {{"id":$2,…
            {second}
            a ~ {{"id":3,"method":"elicitation/create","params":{{"mode":"url","url":"https://e","elicitationId":"prism-$c-2-0"}}}}
            a ~ {{"id":4,"method":"elicitation/create","params":{{"mode":"url","url":"https://f","elicitationId":"prism-$c-2-1"}}}}
            "#
        ),
    );
}

// B2.
#[test]
fn a_round_without_questions_is_paced() {
    called(
        "",
        r#"
        server > {"id":$1,"result":{"resultType":"input_required","requestState":"s1"}}
        + 249ms
        + 1ms
        server < {"id":$2,"method":"tools/call","params":{"name":"x","arguments":{"n":1.0},"_meta":{…},"requestState":"s1"}}
        server > {"id":$2,"result":{"resultType":"input_required","requestState":"s2"}}
        + 100ms
        a > {"method":"notifications/cancelled","params":{"requestId":1}}
        a cancelled
        + 1s
        ~ 0 exchanges
        "#,
    );
}

// B2: the cap.
#[test]
fn the_eleventh_round_ends_the_call() {
    let rounds: String = (1..=10)
        .map(|n| {
            format!(
                r#"
                server > {{"id":${n},"result":{{"resultType":"input_required","requestState":"s{n}"}}}}
                + 250ms
                server < {{"id":${},…"requestState":"s{n}"}}}}
                "#,
                n + 1
            )
        })
        .collect();
    called(
        "",
        &format!(
            r#"
            {rounds}
            server > {{"id":$11,"result":{{"resultType":"input_required","requestState":"s11"}}}}
            a < {{"id":1,"result":{{"content":[{{"type":"text","text":"the server asks again and again, and was stopped"}}],"isError":true}}}}
            + 1s
            ~ 0 exchanges
            "#
        ),
    );
}

// B3.
#[test]
fn a_client_that_refuses_a_form_cancels_it_and_one_that_refuses_anything_else_ends_the_call() {
    called(
        "",
        &format!(
            r#"
            {ASKED}
            a > {{"id":1,"error":{{"code":-1,"message":"no"}}}}
            a > {{"id":2,"result":{{"roots":[]}}}}
            server < {{"id":$2,…"inputResponses":{{"a":{{"action":"cancel"}},"b":{{"roots":[]}}}},…
            "#
        ),
    );
    called(
        "",
        &format!(
            r#"
            {ASKED}
            a > {{"id":2,"error":{{"code":-1,"message":"no"}}}}
            a ~ {{"method":"notifications/cancelled","params":{{"requestId":1}}}}
            a ~ {{"id":1,"result":{{"content":[{{"type":"text","text":"the client refused to answer"}}],"isError":true}}}}
            a end
            a > {{"id":1,"result":{{"action":"accept"}}}}
            ~ 0 exchanges
            "#
        ),
    );
    // Only tools have a result that says so.
    for call in [r#""prompts/get","params":{"name":"p"}"#, r#""resources/read","params":{"uri":"u"}"#] {
        check(&format!(
            r#"
            settings pinned modern
            up a {ALL}
            a > {{"id":1,"method":{call}}}
            server < {{"id":$1,…
            server > {{"id":$1,"result":{{"resultType":"input_required","inputRequests":{{"a":{{"method":"sampling/createMessage","params":{{}}}}}}}}}}
            a ~ 1-0
            a ~ {{"id":1,"method":"sampling/createMessage",…
            a > {{"id":1,"error":{{"code":-1,"message":"no"}}}}
            a ~ {{"id":1,"error":{{"code":-32603,"message":"the client refused to answer"}}}}
            a end
            "#
        ));
    }
}

// B4.
// checks 39
#[test]
fn a_client_that_cancels_during_a_round_has_its_questions_taken_back() {
    called(
        "",
        &format!(
            r#"
            {ASKED}
            a > {{"method":"notifications/cancelled","params":{{"requestId":1}}}}
            a ~ {{"method":"notifications/cancelled","params":{{"requestId":1}}}}
            a ~ {{"method":"notifications/cancelled","params":{{"requestId":2}}}}
            a end
            a > {{"id":2,"result":{{"roots":[]}}}}
            a > {{"id":1,"result":{{"action":"accept"}}}}
            ~ 0 exchanges
            ~ 0 questions
            "#
        ),
    );
    // Between two rounds the server works on it.
    called(
        "",
        &format!(
            r#"
            {ASKED}
            a > {{"id":2,"result":{{"roots":[]}}}}
            a > {{"id":1,"result":{{"action":"decline"}}}}
            server < {{"id":$2,…
            a > {{"method":"notifications/cancelled","params":{{"requestId":1,"reason":"!"}}}}
            server < {{"method":"notifications/cancelled","params":{{"requestId":$2,"reason":"!"}}}}
            a end
            server > {{"id":$2,"result":{{"resultType":"input_required","requestState":"late"}}}}
            + 1s
            ~ 0 exchanges
            "#
        ),
    );
}

#[test]
fn a_round_ends_with_its_session_its_server_or_its_time() {
    called(
        "",
        &format!(
            "{ASKED}\nclose a\na ~ {{\"method\":\"notifications/cancelled\",…\na ~ {{\"method\":\"notifications/cancelled\",…\na ~ {{\"id\":1,\"error\":…\na end\n! stop"
        ),
    );
    called(
        "",
        &format!(
            r#"
            {ASKED}
            exit
            a ~ {{"method":"notifications/cancelled","params":{{"requestId":1,"reason":"the server ended"}}}}
            a ~ {{"method":"notifications/cancelled","params":{{"requestId":2,"reason":"the server ended"}}}}
            a ~ {{"id":1,"error":{{"code":-32603,…"data":{{"reason":"upstream_exited"}}}}}}
            a end
            a > {{"id":1,"result":{{"action":"accept"}}}}
            + 500ms
            ! start
            server < {{"id":$3,"method":"server/discover",…
            "#
        ),
    );
    called(
        ", timeout 1h, at most 2m",
        &format!(
            r#"
            {ASKED}
            + 60s
            a ~ {{"method":"notifications/progress",…"message":"still running, 60 s"}}}}
            + 59s
            a ~ {{"method":"notifications/progress",…"message":"still running, 75 s"}}}}
            a ~ {{"method":"notifications/progress",…"message":"still running, 90 s"}}}}
            a ~ {{"method":"notifications/progress",…"message":"still running, 105 s"}}}}
            + 1s
            a ~ {{"method":"notifications/cancelled","params":{{"requestId":1}}}}
            a ~ {{"method":"notifications/cancelled","params":{{"requestId":2}}}}
            a ~ {{"id":1,"error":{{"code":-32603,"message":"no answer within `max_request_time`…
            a end
            ~ 0 exchanges
            ~ 0 questions
            "#
        ),
    );
}

#[test]
fn a_person_may_take_ten_minutes() {
    called(
        ", timeout off",
        r#"
        server > {"id":$1,"result":{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{}}}}}
        a ~ 1-0
        a ~ {"id":1,"method":"elicitation/create","params":{}}
        + 599s
        + 1s
        server < {"id":$2,…"inputResponses":{"a":{"action":"cancel"}}}}
        server > {"id":$2,"result":{"resultType":"input_required","inputRequests":{"a":{"method":"sampling/createMessage","params":{}}}}}
        a ~ {"id":2,"method":"sampling/createMessage","params":{}}
        + 10m
        a ~ {"id":1,"result":{"content":[{"type":"text","text":"the client did not answer in time"}],"isError":true}}
        a end
        "#,
    );
}

// B5: it was told that the client can answer nothing, and asks all the same.
#[test]
fn what_a_client_cannot_answer_it_is_not_asked() {
    let ask = |method: &str, params: &str| {
        format!(
            r#"server > {{"id":$1,"result":{{"resultType":"input_required","inputRequests":{{"a":{{"method":"{method}","params":{params}}}}}}}}}"#
        )
    };
    let call = r#"a > {"id":1,"method":"tools/call","params":{"name":"x"}}
        server < {"id":$1,"method":"tools/call","params":{"name":"x","_meta":{‹{} info c›}}}"#;
    for (method, params) in [("sampling/createMessage", "{}"), ("roots/list", "{}"), ("tools/list", "{}"), ("x", "{}")]
    {
        check(&format!(
            r#"
            settings pinned modern
            up a
            {call}
            {}
            a < {{"id":1,"result":{{"content":[{{"type":"text","text":…}}],"isError":true}}}}
            "#,
            ask(method, params)
        ));
    }
    check(&format!(
        r#"
        settings pinned modern
        up a
        {call}
        {}
        server < {{"id":$2,…"inputResponses":{{"a":{{"action":"cancel"}}}}}}}}
        "#,
        ask("elicitation/create", "{}")
    ));
    // Nor what its revision cannot express.
    let many = r#"{"requestedSchema":{"type":"object","properties":{"p":{"type":"array"}}}}"#;
    check(&format!(
        r#"
        settings pinned modern
        up a 2025-06-18 {{"elicitation":{{}}}}
        a > {{"id":1,"method":"tools/call","params":{{"name":"x"}}}}
        server < {{"id":$1,…
        {}
        server < {{"id":$2,…"inputResponses":{{"a":{{"action":"cancel"}}}}}}}}
        "#,
        ask("elicitation/create", many)
    ));
    // Nor one that takes no events, or has no session; nor in the place of a list.
    check(&format!(
        r#"
        settings pinned modern
        up a {ALL}
        a json > {{"id":1,"method":"tools/call","params":{{"name":"x"}}}}
        server < {{"id":$1,…
        {}
        a < {{"id":1,"result":{{"content":[{{"type":"text","text":"the client does not take events"}}],"isError":true}}}}
        stateless > {{"id":1,"method":"tools/call","params":{{"name":"x"}}}}
        server < {{"id":$2,…
        {}
        stateless < {{"id":1,"result":{{"content":[{{"type":"text",…}}],"isError":true}}}}
        a > {{"id":1,"method":"tools/list"}}
        server < {{"id":$3,…
        {}
        a < {{"id":1,"error":{{"code":-32603,…
        "#,
        ask("sampling/createMessage", "{}"),
        ask("sampling/createMessage", "{}").replace("$1", "$2"),
        ask("sampling/createMessage", "{}").replace("$1", "$3"),
    ));
}

// A broken stream is not the end of a call, and a question waits for its client to come back.
// checks 37 38
#[test]
fn a_round_survives_its_stream() {
    called(
        "",
        &format!(
            r#"
            {ASKED}
            drop a having 1
            a get:2 after 1-1
            a get:2 ~ 1-2 {{"id":2,"method":"roots/list","params":{{}}}}
            a > {{"id":2,"result":{{"roots":[]}}}}
            a > {{"id":1,"result":{{"action":"decline"}}}}
            server < {{"id":$2,…
            server > {{"id":$2,"result":{{"resultType":"complete"}}}}
            a get:2 ~ {{"id":1,"result":{{}}}}
            a get:2 end
            "#
        ),
    );
}

// mcp-eras 5.13, both tables: what is local, and what is dropped.
// checks 46 47 49 50 53 110
#[test]
fn a_legacy_client_does_not_notice_that_its_server_is_modern() {
    check(
        r#"
        settings pinned modern, alone
        open a {"roots":{"listChanged":true}}
        ! start
        server < {"id":$d,"method":"server/discover","params":{"_meta":{‹{} prism›}}}
        discover {"logging":{},"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}
        ! ready s 2 modern
        a < {"id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"logging":{},"tools":{}},"serverInfo":{"name":"s","version":"2"}}}
        a > {"method":"notifications/initialized"}
        a > {"method":"notifications/roots/list_changed"}
        a > {"method":"notifications/progress","params":{"progressToken":1,"progress":1}}
        a > {"method":"notifications/custom"}
        a > {"id":1,"method":"ping"}
        a < {"id":1,"result":{}}
        a > {"id":1,"method":"logging/setLevel","params":{"level":"loud"}}
        a < {"id":1,"error":{"code":-32602,…
        a > {"id":1,"method":"logging/setLevel","params":{"level":"error"}}
        a < {"id":1,"result":{}}
        a > {"id":1,"method":"resources/subscribe","params":{"uri":"u"}}
        a < {"id":1,"error":{"code":-32601,…
        a > {"id":2,"method":"tools/list","params":{"cursor":""}}
        server < {"id":$2,"method":"tools/list","params":{"cursor":"","_meta":{‹{"roots":{}} error c›}}}
        server > {"id":$2,"result":{"resultType":"complete","ttlMs":1,"cacheScope":"public","tools":[{"name":"t","outputSchema":{"type":"array"}}],"_meta":{‹s›,"x":1.0}}}
        a < {"id":2,"result":{"tools":[{"name":"t"}],"_meta":{"x":1.0}}}
        a > {"id":3,"method":"tools/call","params":{"name":"t","task":{"ttl":1}}}
        server < {"id":$3,"method":"tools/call","params":{"name":"t","_meta":{‹{"roots":{}} error c›}}}
        server > {"id":$3,"result":{"resultType":"complete","content":[],"structuredContent":[1.0]}}
        a < {"id":3,"result":{"content":[{"type":"text","text":"[1.0]"}]}}
        a > {"id":4,"method":"resources/read","params":{"uri":"u"}}
        server < {"id":$4,…
        server > {"id":$4,"error":{"code":-32602,"message":"?","data":{"uri":"u"}}}
        a < {"id":4,"error":{"code":-32002,"message":"?","data":{"uri":"u"}}}
        a > {"id":5,"method":"tools/call","params":{"name":"t"}}
        server < {"id":$5,…
        server > {"id":$5,"error":{"code":-32021,"message":"?","data":{"requiredCapabilities":{"sampling":{}}}}}
        a < {"id":5,"error":{"code":-32603,…"requiredCapabilities":{"sampling":{}}…
        a > {"id":6,"method":"completion/complete","params":{}}
        server < {"id":$6,…
        server > {"id":$6,"result":{"resultType":"complete"}}
        a < {"id":6,"result":{}}
        "#,
    );
}

// checks 110
#[test]
fn a_modern_server_that_asks_by_a_request_is_not_answered() {
    called(
        "",
        r#"
        server > {"id":1,"method":"ping"}
        ! garbage: a request from a server of the modern era
        server > {"id":2,"method":"sampling/createMessage","params":{}}
        ! garbage: a request from a server of the modern era
        server > {"id":$1,"result":{"resultType":"complete"}}
        a < {"id":1,"result":{}}
        "#,
    );
}

// checks 116
#[test]
fn a_call_whose_headers_do_not_fit_is_made_again_once_with_the_tools_read_anew() {
    let mismatch = r#""error":{"code":-32020,"message":"Mcp-Param-Region?"}"#;
    for (client, told) in [
        (r#"a > {"id":1,"method":"tools/call","params":{"name":"t"}}"#, r#"a < {"id":1,"error":{"code":-32603,…"#),
        (
            r#"modern:a > {"id":1,"method":"tools/call","params":{"name":"t","_meta":{‹{}›}}}"#,
            r#"modern:a error {"id":1,"error":{"code":-32020,…"#,
        ),
    ] {
        for list in [
            r#"server > {"id":$2,"result":{"tools":[]}}"#,
            r#"server > {"id":$2,"error":{"code":1,"message":"?"}}"#,
            "unanswered $2",
        ] {
            check(&format!(
                r#"
                settings http, pinned modern
                up a
                {client}
                server < {{"id":$1,"method":"tools/call",…
                server about $1 > {{"id":$1,{mismatch}}}
                server < {{"id":$2,"method":"tools/list","params":{{"_meta":{{‹{{}} prism›}}}}}}
                {list}
                server < {{"id":$3,"method":"tools/call",…
                server about $3 > {{"id":$3,{mismatch}}}
                {told}
                ~ 0 exchanges
                "#
            ));
        }
    }
    // The client may lose patience meanwhile, and the server its life.
    check(&format!(
        r#"
        settings http, pinned modern
        up a
        a > {{"id":1,"method":"tools/call","params":{{"name":"t"}}}}
        server < {{"id":$1,"method":"tools/call",…
        server about $1 > {{"id":$1,{mismatch}}}
        server < {{"id":$2,"method":"tools/list",…
        a > {{"method":"notifications/cancelled","params":{{"requestId":1}}}}
        a cancelled
        server > {{"id":$2,"result":{{"tools":[]}}}}
        ~ 0 exchanges
        "#
    ));
    for end in ["exit\na fault exited", "+ 30s\na fault timeout"] {
        check(&format!(
            r#"
            settings http, pinned modern, timeout 30s
            up a
            a json > {{"id":1,"method":"tools/call","params":{{"name":"t"}}}}
            server < {{"id":$1,"method":"tools/call",…
            server about $1 > {{"id":$1,{mismatch}}}
            server < {{"id":$2,"method":"tools/list",…
            {end}
            "#
        ));
    }
}

// mcp-eras 1.8: such a tool could not be called over HTTP.
// checks 116
#[test]
fn tools_whose_headers_make_no_sense_are_hidden() {
    let list = |wire: &str, left: &str| {
        let sound = r#"{"name":"s","inputSchema":{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}}"#;
        let broken = r#"{"name":"b","inputSchema":{"properties":{"a":{"type":"string","x-mcp-header":""}}}}"#;
        let left = left.replace("SOUND", sound).replace("BROKEN", broken);
        check(&format!(
            r#"
            settings pinned modern{wire}
            up a modern
            a > {{"id":1,"method":"tools/list"}}
            server < {{"id":$1,…
            server > {{"id":$1,"result":{{"resultType":"complete","tools":[{broken},{sound}]}}}}
            a < {{"id":1,"result":{{"tools":[{left}]}}}}
            modern:a > {{"id":1,"method":"tools/list","params":{{"_meta":{{‹{{}}›}}}}}}
            server < {{"id":$2,…
            server > {{"id":$2,"result":{{"resultType":"complete","tools":[{broken},{sound}]}}}}
            modern:a < {{"id":1,"result":{{"resultType":"complete","tools":[{left}]}}}}
            "#
        ));
    };
    list(", http", "SOUND");
    list("", "BROKEN,SOUND");
}
