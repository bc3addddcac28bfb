//! Sessions of the hub's: their parts at the servers, and their homes (B-27).

use super::check;

/// `a`, the second part of a session of the hub's, on a server that is up.
const UP: &str = "up a part:2";

// B-27
#[test]
fn what_belongs_to_no_call_is_said_at_home() {
    check(&format!(
        r#"
        settings alone
        {UP}
        server > {{"method":"notifications/message","params":{{"level":"error","data":1}}}}
        ! relay {{"method":"notifications/message","params":{{"level":"error","data":1}}}}
        server > {{"method":"notifications/tools/list_changed"}}
        ! relay {{"method":"notifications/tools/list_changed"}}
        "#
    ));
}

// B-27
#[test]
fn a_shared_servers_lists_are_watched_by_the_hub_itself() {
    check(&format!(
        r#"
        {UP}
        server > {{"method":"notifications/tools/list_changed"}}
        "#
    ));
}

// B-27, B-28
#[test]
fn the_numbers_that_a_client_sees_say_which_part_they_are_of() {
    check(
        r#"
        settings alone
        open a 2025-06-18 part:2 {"roots":{}}
        ! start
        server < {"id":$0,"method":"initialize",…}
        server > {"id":$0,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}
        server < {"method":"notifications/initialized"}
        ! ready s 1
        a < …
        server > {"id":"q","method":"roots/list"}
        ! asked
        ! relay 8589934593 {"id":8589934593,"method":"roots/list"}
        a > {"id":8589934593,"result":{"roots":[]}}
        server < {"id":"q","result":{"roots":[]}}
        a:x > {"id":1,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":5}}}
        server < {"id":$1,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":$1}}}
        server > {"method":"notifications/progress","params":{"progressToken":$1,"progress":1}}
        a:x ~ 8589934593-1 {"method":"notifications/progress","params":{"progressToken":5,"progress":1}}
        drop a:x
        server > {"id":$1,"result":{}}
        a get after 8589934593-1
        a get ~ 8589934593-2 {"id":1,"result":{}}
        a get end
        "#,
    );
}

// B-27
#[test]
fn resources_have_the_hubs_names_wherever_the_client_sees_them() {
    check(&format!(
        r#"
        {UP}
        a > {{"id":1,"method":"resources/subscribe","params":{{"uri":"x:1"}}}}
        server < {{"id":$1,"method":"resources/subscribe","params":{{"uri":"x:1"}}}}
        server > {{"id":$1,"result":{{}}}}
        a < {{"id":1,"result":{{}}}}
        server > {{"method":"notifications/resources/updated","params":{{"uri":"x:1"}}}}
        ! relay {{"method":"notifications/resources/updated","params":{{"uri":"hub://d/x:1"}}}}
        a > {{"id":2,"method":"resources/read","params":{{"uri":"x:1"}}}}
        server < {{"id":$2,"method":"resources/read","params":{{"uri":"x:1"}}}}
        server > {{"id":$2,"result":{{"contents":[{{"uri":"x:1","text":"t"}}]}}}}
        a < {{"id":2,"result":{{"contents":[{{"uri":"hub://d/x:1","text":"t"}}]}}}}
        a > {{"id":3,"method":"tools/call","params":{{"name":"t"}}}}
        server < {{"id":$3,"method":"tools/call","params":{{"name":"t"}}}}
        server > {{"id":$3,"result":{{"content":[{{"type":"resource_link","uri":"x:2"}}]}}}}
        a < {{"id":3,"result":{{"content":[{{"type":"resource_link","uri":"hub://d/x:2"}}]}}}}
        "#
    ));
}

// B-27, B-28
#[test]
fn what_a_part_says_goes_down_the_streams_of_its_home_and_is_kept_there() {
    check(
        r#"
        up a
        relay a {"method":"notifications/message","params":{}}
        a get
        a get ~ 0-0
        a get ~ 0-1 {"method":"notifications/message","params":{}}
        relay a 8589934593 {"id":8589934593,"method":"roots/list"}
        a get ~ 0-2 {"id":8589934593,"method":"roots/list"}
        drop a get having 1
        a get:2 after 0-1
        a get:2 ~ 0-2 {"id":8589934593,"method":"roots/list"}
        a > {"id":8589934593,"result":{"roots":[]}}
        drop a get:2 having 1
        a get:3 after 0-1
        "#,
    );
}

// B-28: the old connection is often known to be gone only after the new one is there.
#[test]
fn a_client_that_is_back_before_it_was_gone_misses_no_question() {
    for had in [0, 1] {
        check(&format!(
            r#"
            up a
            a get
            a get ~ 0-0
            relay a 8589934593 {{"id":8589934593,"method":"roots/list"}}
            a get ~ 0-1 {{"id":8589934593,"method":"roots/list"}}
            a get:2 after 0-0
            drop a get having {had}
            a get:2 ~ 0-2 {{"id":8589934593,"method":"roots/list"}}
            "#
        ));
    }
    // Two streams at once: what has left on one is not shown on the other, unless it was lost.
    for (had, again) in [(1, ""), (0, r#"a get ~ 0-2 {"id":8589934593,"method":"roots/list"}"#)] {
        check(&format!(
            r#"
            up a
            a get
            a get ~ 0-0
            a get:2
            a get:2 ~ 0-0
            relay a 8589934593 {{"id":8589934593,"method":"roots/list"}}
            a get:2 ~ 0-1 {{"id":8589934593,"method":"roots/list"}}
            drop a get:2 having {had}
            {again}
            "#
        ));
    }
}

// B-27
#[test]
fn a_question_of_a_part_is_shown_on_one_stream_and_outlives_the_homes_own_server() {
    check(
        r#"
        up a
        a get
        a get ~ 0-0
        a get:2
        a get:2 ~ 0-0
        relay a 4294967297 {"id":4294967297,"method":"roots/list"}
        a get:2 ~ 0-1 {"id":4294967297,"method":"roots/list"}
        exit
        + 500ms
        ! start
        server < …
        "#,
    );
}

// B-08, B-27
#[test]
fn the_hub_does_not_wait_for_a_server_that_fails_at_its_start() {
    check(
        r#"
        settings learned legacy
        modern:x fetch > {"id":1,"method":"tools/list","params":{"_meta":{‹{}›}}}
        ! start
        server < {"id":$1,"method":"initialize",…}
        modern:y > {"id":2,"method":"prompts/list","params":{"_meta":{‹{}›}}}
        + 2ms
        exit
        modern:x fault unavailable: …
        + 500ms
        ! start
        server < {"id":$2,"method":"initialize",…}
        "#,
    );
}
