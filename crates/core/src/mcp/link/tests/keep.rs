//! Sessions that outlive the daemon: what they still have, and what they must not find again.

use super::check;

// D-09: clients go on with the session id they have.
#[test]
fn a_session_goes_on_after_the_daemon_was_killed_and_its_server_starts_with_its_next_call() {
    check(
        r#"
        settings keeps
        up a
        killed
        a > {"id":1,"method":"tools/call","params":{"name":"x"}}
        ! start
        server < {"id":$0,"method":"initialize",…
        greet
        server < {"method":"notifications/initialized"}
        server < {"id":$1,"method":"tools/call",…
        ! ready s 1
        server > {"id":$1,"result":{}}
        a < {"id":1,"result":{}}
        a get
        a get ~ 0-0
        a get ~ 0-1048577 {"method":"notifications/tools/list_changed"}
        a get ~ {"method":"notifications/prompts/list_changed"}
        a get ~ {"method":"notifications/resources/list_changed"}
        "#,
    );
}

#[test]
fn a_client_that_comes_back_to_listen_finds_its_server_started_and_what_it_watched_is_watched_again() {
    check(
        r#"
        settings keeps
        up a
        a > {"id":1,"method":"resources/subscribe","params":{"uri":"file:///x"}}
        server < {"id":$1,…
        server > {"id":$1,"result":{}}
        a < {"id":1,"result":{}}
        ! unsaved
        a > {"id":2,"method":"logging/setLevel","params":{"level":"debug"}}
        server < {"id":$2,…
        server > {"id":$2,"result":{}}
        a < {"id":2,"result":{}}
        save
        killed
        a get
        a get ~ 0-0
        ! start
        server < {"id":$0,"method":"initialize",…
        greet
        server < {"method":"notifications/initialized"}
        server < {"id":$3,"method":"logging/setLevel","params":{"level":"debug"}}
        server < {"id":$4,"method":"resources/subscribe","params":{"uri":"file:///x"}}
        ! ready s 1
        a get ~ {"method":"notifications/resources/updated","params":{"uri":"file:///x"}}
        a get ~ {"method":"notifications/tools/list_changed"}
        a get ~ {"method":"notifications/prompts/list_changed"}
        a get ~ {"method":"notifications/resources/list_changed"}
        server > {"id":$4,"result":{}}
        server > {"method":"notifications/resources/updated","params":{"uri":"file:///x"}}
        a get ~ {"method":"notifications/resources/updated","params":{"uri":"file:///x"}}
        "#,
    );
}

// B-28.
#[test]
fn a_client_resumes_its_stream_over_a_restart_and_has_each_note_once() {
    check(
        r#"
        settings keeps
        up a
        a get
        a get ~ 0-0
        server > {"method":"notifications/message","params":{"level":"info","data":"one"}}
        a get ~ 0-1 {"method":"notifications/message","params":{"level":"info","data":"one"}}
        ! unsaved
        server > {"method":"notifications/message","params":{"level":"info","data":"two"}}
        a get ~ 0-2 {"method":"notifications/message","params":{"level":"info","data":"two"}}
        save
        server > {"method":"notifications/message","params":{"level":"info","data":"unsaved"}}
        a get ~ 0-3 {"method":"notifications/message","params":{"level":"info","data":"unsaved"}}
        ! unsaved
        killed
        a get after 0-1
        a get ~ 0-2 {"method":"notifications/message","params":{"level":"info","data":"two"}}
        ! start
        server < {"id":$0,"method":"initialize",…
        a get:2 after 0-3
        "#,
    );
}

#[test]
fn what_nobody_has_had_when_the_daemon_stopped_waits_for_its_client_and_is_told_once() {
    check(
        r#"
        settings keeps
        up a
        server > {"method":"notifications/message","params":{"level":"info","data":"kept"}}
        ! unsaved
        restarted
        a get
        a get ~ 0-0
        a get ~ 0-1 {"method":"notifications/message","params":{"level":"info","data":"kept"}}
        ! start
        server < {"id":$0,"method":"initialize",…
        restarted
        a get
        a get ~ 0-1048577
        ! start
        server < {"id":$0,"method":"initialize",…
        "#,
    );
}

#[test]
fn an_answer_whose_stream_had_broken_is_had_from_the_next_daemon_and_no_old_number_names_a_new_stream() {
    check(
        r#"
        settings keeps
        up a
        a > {"id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":1}}}
        server < {"id":$1,…
        server > {"method":"notifications/progress","params":{"progressToken":$1,"progress":1}}
        a ~ 1-0
        a ~ 1-1 {"method":"notifications/progress",…
        drop a
        server > {"id":$1,"result":"late"}
        ! unsaved
        save
        killed
        a get after 1-1
        a get ~ 1-2 {"id":1,"result":"late"}
        a get end
        ! start
        server < {"id":$0,"method":"initialize",…
        greet
        server < {"method":"notifications/initialized"}
        ! ready s 1
        a > {"id":2,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":1}}}
        server < {"id":$2,…
        server > {"method":"notifications/progress","params":{"progressToken":$2,"progress":1}}
        a ~ 501-0
        a ~ 501-1 {"method":"notifications/progress",…
        a get:2 after 2-1
        a get:2 refused UnknownEvent
        server > {"id":$2,"result":"new"}
        a ~ {"id":2,"result":"new"}
        a end
        "#,
    );
}

#[test]
fn a_question_dies_with_the_daemon_and_its_late_answer_reaches_nobody() {
    check(
        r#"
        settings keeps, alone
        up a {"roots":{}}
        a get
        a get ~ 0-0
        server > {"id":"q","method":"roots/list"}
        a get ~ {"id":1,"method":"roots/list"}
        ! asked
        killed
        a > {"id":1,"result":{"roots":[]}}
        a get
        a get ~ 0-0
        ! start
        server < {"id":$0,"method":"initialize",…
        greet
        server < {"method":"notifications/initialized"}
        ! ready s 1
        a get ~ {"method":"notifications/tools/list_changed"}
        a get ~ {"method":"notifications/prompts/list_changed"}
        a get ~ {"method":"notifications/resources/list_changed"}
        server > {"id":"q","method":"roots/list"}
        a get ~ {"id":501,"method":"roots/list"}
        ! asked
        a > {"id":1,"result":{"roots":[]}}
        a > {"id":501,"result":{"roots":[1]}}
        server < {"id":"q","result":{"roots":[1]}}
        "#,
    );
}
