//! Batches, which only 2025-03-26 has: their answers come on one stream (B-16).

use super::check;

// checks 43
#[test]
fn the_answers_to_a_batch_come_on_one_stream_that_ends_with_the_last() {
    check(
        r#"
        up a 2025-03-26
        a batch > [{"id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":1}}},{"method":"notifications/initialized"},{"id":2,"method":"ping"},{"id":1,"method":"tools/list"}]
        server < {"id":$1,"method":"tools/call",…
        server < {"id":$2,"method":"tools/list"}
        a ~ 1-1 {"id":2,"result":{}}
        server > {"method":"notifications/progress","params":{"progressToken":$1,"progress":1}}
        a ~ 1-2 {"method":"notifications/progress","params":{"progressToken":1,"progress":1}}
        server > {"id":$2,"result":{}}
        a ~ 1-3 {"id":1,"result":{}}
        server > {"id":$1,"error":{"code":1,"message":"?"}}
        a ~ 1-4 {"id":1,"error":{"code":1,"message":"?"}}
        a end
        ~ 0 exchanges
        "#,
    );
}

// checks 44
#[test]
fn a_batch_of_notes_and_answers_is_just_accepted() {
    check(
        r#"
        settings class {"roots":{}}
        up a {"roots":{}} 2025-03-26
        a get
        server > {"id":"q","method":"roots/list"}
        ! asked
        a get ~ {"id":1,"method":"roots/list"}
        a batch > [{"method":"notifications/initialized"},{"id":1,"result":{"roots":[]}}]
        a accepted
        server < {"id":"q","result":{"roots":[]}}
        "#,
    );
}

#[test]
fn each_call_of_a_batch_ends_in_its_own_way_and_the_stream_after_all() {
    check(
        r#"
        up a 2025-03-26
        a batch > [{"id":1,"method":"tools/call","params":{"name":"x"}},{"id":2,"method":"tools/call","params":{"name":"y"}},{"id":3,"method":"tools/list"}]
        server < {"id":$1,…
        server < {"id":$2,…
        server < {"id":$3,…
        a > {"method":"notifications/cancelled","params":{"requestId":1}}
        server < {"method":"notifications/cancelled","params":{"requestId":$1}}
        server > {"id":$3,"result":{}}
        a ~ {"id":3,"result":{}}
        + 5m
        server < {"method":"notifications/cancelled","params":{"requestId":$2}}
        a ~ {"id":2,"error":{"code":-32603,…
        a end
        "#,
    );
}

#[test]
fn a_batch_waits_for_the_child_and_fails_with_it() {
    check(
        r#"
        up a 2025-03-26
        exit
        a batch > [{"id":1,"method":"completion/complete"},{"id":2,"method":"completion/complete"}]
        ~ 2 held
        + 500ms
        ! start
        server < {"id":$0,"method":"initialize",…
        greet
        server < {"method":"notifications/initialized"}
        server < {"id":$1,"method":"completion/complete"}
        server < {"id":$2,"method":"completion/complete"}
        ! ready s 1
        server > {"id":$2,"result":{}}
        a ~ {"id":2,"result":{}}
        exit
        a ~ {"id":1,"error":{"code":-32603,…
        a end
        "#,
    );
}

#[test]
fn a_batch_that_is_given_up_is_answered_before_its_session_ends() {
    check(
        r#"
        up a 2025-03-26
        exit
        a batch > [{"id":1,"method":"tools/list"},{"id":2,"method":"tools/list"}]
        + 500ms
        ! start
        server < {"id":$0,"method":"initialize",…
        failed
        a ~ {"id":1,"error":{"code":-32603,"message":"the MCP server cannot be reached: no such program",…
        a ~ {"id":2,"error":{"code":-32603,…
        a end
        ! ended a
        "#,
    );
}

// B-28.
#[test]
fn the_stream_of_a_batch_can_be_resumed() {
    check(
        r#"
        up a 2025-03-26
        a batch > [{"id":1,"method":"tools/list"},{"id":2,"method":"ping"}]
        server < {"id":$1,"method":"tools/list"}
        a ~ 1-1 {"id":2,"result":{}}
        drop a
        a get after 1-0
        a get ~ 1-1 {"id":2,"result":{}}
        server > {"id":$1,"result":{}}
        a get ~ 1-2 {"id":1,"result":{}}
        a get end
        "#,
    );
}
