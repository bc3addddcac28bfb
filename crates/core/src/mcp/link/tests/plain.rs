//! Sessions of 2024-11-05: one stream, which carries everything and is the session's life (mcp-eras 4.4).

use super::check;

const UP: &str = r#"
    plain p 2024-11-05
    ! start
    server < {"id":$i,"method":"initialize",…
    greet
    ! ready s 1
    server < {"method":"notifications/initialized"}
    p ~ {"id":0,"result":{"protocolVersion":"2024-11-05",…
"#;

// checks 16
#[test]
fn everything_comes_on_the_one_stream_without_ids() {
    check(&format!(
        r#"
        {UP}
        p > {{"id":1,"method":"tools/call","params":{{"name":"x","_meta":{{"progressToken":"t"}}}}}}
        server < {{"id":$1,…
        p > {{"id":"1","method":"ping"}}
        p ~ {{"id":"1","result":{{}}}}
        server > {{"method":"notifications/progress","params":{{"progressToken":$1,"progress":1}}}}
        p ~ {{"method":"notifications/progress","params":{{"progressToken":"t","progress":1}}}}
        server > {{"method":"notifications/message","params":{{"level":"info","data":1}}}}
        p ~ {{"method":"notifications/message",…
        server > {{"method":"notifications/tools/list_changed"}}
        p ~ {{"method":"notifications/tools/list_changed"}}
        server > {{"id":$1,"result":{{"content":[{{"type":"audio","data":"aa","mimeType":"audio/wav"}}]}}}}
        p ~ {{"id":1,"result":{{"content":[{{"type":"resource",…
        ~ 0 exchanges
        ~ 0 bytes kept at most
        "#
    ));
}

// checks 56
#[test]
fn a_question_comes_on_the_stream_and_its_answer_goes_back() {
    check(
        r#"
        settings class {"sampling":{}}
        plain p 2024-11-05 {"sampling":{}}
        ! start
        server < {"id":$i,"method":"initialize",…
        greet
        ! ready s 1
        server < {"method":"notifications/initialized"}
        p ~ {"id":0,…
        p > {"id":1,"method":"tools/call","params":{"name":"x"}}
        server < {"id":$1,…
        server > {"id":"q","method":"sampling/createMessage","params":{"messages":[]}}
        ! asked
        p ~ {"id":1,"method":"sampling/createMessage","params":{"messages":[]}}
        p > {"id":1,"result":{"model":"m"}}
        server < {"id":"q","result":{"model":"m"}}
        server > {"id":"r","method":"sampling/createMessage","params":{"messages":[]}}
        ! asked
        p ~ {"id":2,"method":"sampling/createMessage","params":{"messages":[]}}
        server > {"method":"notifications/cancelled","params":{"requestId":"r"}}
        p ~ {"method":"notifications/cancelled","params":{"requestId":2}}
        server > {"id":$1,"result":{}}
        ! answered x
        p ~ {"id":1,"result":{}}
        "#,
    );
}

// checks 57
#[test]
fn a_stream_that_ends_takes_its_session_along() {
    check(&format!(
        r#"
        {UP}
        open b
        b < {{"id":0,…
        p > {{"id":7,"method":"resources/subscribe","params":{{"uri":"u"}}}}
        server < {{"id":$1,…
        server > {{"id":$1,"result":{{}}}}
        p ~ {{"id":7,"result":{{}}}}
        p > {{"id":1,"method":"tools/call","params":{{"name":"x"}}}}
        server < {{"id":$2,…
        drop p
        server < {{"method":"notifications/cancelled","params":{{"requestId":$2}}}}
        server < {{"id":$3,"method":"resources/unsubscribe","params":{{"uri":"u"}}}}
        ~ 1 sessions
        ~ 0 watches
        server > {{"id":$2,"result":"late"}}
        close b
        ! stop
        "#
    ));
    // Also before the server was there.
    check(
        r#"
        plain p 2024-11-05
        ! start
        server < {"id":$i,"method":"initialize",…
        drop p
        ~ 0 sessions
        greet
        server < {"method":"notifications/initialized"}
        ! ready s 1
        + 59s
        + 1s
        ! stop
        "#,
    );
}

#[test]
fn a_cancelled_call_is_silent_and_a_lost_one_fails_on_the_stream() {
    check(&format!(
        r#"
        {UP}
        p > {{"id":1,"method":"tools/call","params":{{"name":"x"}}}}
        server < {{"id":$1,…
        p > {{"method":"notifications/cancelled","params":{{"requestId":1}}}}
        server < {{"method":"notifications/cancelled","params":{{"requestId":$1}}}}
        p > {{"id":2,"method":"tools/call","params":{{"name":"x"}}}}
        server < {{"id":$2,…
        exit
        p ~ {{"id":2,"error":{{"code":-32603,…
        p > {{"id":3,"method":"tools/list"}}
        + 500ms
        ! start
        server < {{"id":$j,"method":"initialize",…
        greet
        ! ready s 1
        server < {{"method":"notifications/initialized"}}
        server < {{"id":$3,"method":"tools/list"}}
        p ~ {{"method":"notifications/tools/list_changed"}}
        p ~ {{"method":"notifications/prompts/list_changed"}}
        p ~ {{"method":"notifications/resources/list_changed"}}
        + 299s
        + 1s
        server < {{"method":"notifications/cancelled","params":{{"requestId":$3}}}}
        p ~ {{"id":3,"error":{{"code":-32603,"message":"no answer within `max_request_time`…
        "#
    ));
}

#[test]
fn a_stream_ends_when_its_session_does() {
    check(&format!("{UP}\nclose p\np end\n! stop\n~ 0 sessions"));
    check(&format!("{UP}\nshut down\np end\n! ended p\n! stop"));
    check(
        r#"
        plain p 2024-11-05
        ! start
        server < {"id":$i,"method":"initialize",…
        failed
        p ~ {"id":0,"error":{"code":-32603,"message":"the MCP server cannot be reached: no such program",…
        p end
        ! ended p
        "#,
    );
}

// The same on a modern server: real requests, and real answers.
// checks 49 56
#[test]
fn a_plain_session_is_asked_what_a_modern_server_asks() {
    check(
        r#"
        settings pinned modern
        plain p 2024-11-05 {"sampling":{}}
        ! start
        server < {"id":$d,"method":"server/discover",…
        discover
        ! ready s 2 modern
        p ~ {"id":0,"result":{"protocolVersion":"2024-11-05",…
        server < {"id":$union,"method":"subscriptions/listen",…
        ack
        p > {"id":1,"method":"tools/call","params":{"name":"x"}}
        server < {"id":$1,…
        server > {"id":$1,"result":{"resultType":"input_required","inputRequests":{"k":{"method":"sampling/createMessage","params":{"messages":[]}}}}}
        p ~ {"id":1,"method":"sampling/createMessage","params":{"messages":[]}}
        p > {"id":1,"result":{"model":"m"}}
        server < {"id":$2,…"inputResponses":{"k":{"model":"m"}}}}
        server > {"id":$2,"result":{"resultType":"complete"}}
        p ~ {"id":1,"result":{}}
        "#,
    );
}

// N-04: as long as the stream is open, and no longer.
#[test]
fn keep_alives_come_on_a_plain_stream() {
    check(&format!("{UP}\n+ 31s\n~ 2 beats\ndrop p\n! stop\n+ 60s\n~ 1 beats"));
}
