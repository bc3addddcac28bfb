//! Clients that are asked whether they are there.

use super::check;

// M-11
#[test]
fn a_client_is_asked_as_often_as_it_was_said_and_its_answer_reaches_no_server() {
    check(
        r#"
        up a b
        a get
        a get ~ 0-0
        b get
        b get ~ 0-0
        watch a 15s
        a get ~ 0-1 {"id":$p,"method":"ping"}
        a > {"id":$p,"result":{}}
        ! seen a
        a > {"id":$p,"result":{}}
        b > {"id":$p,"result":{}}
        + 14s
        + 1s
        a get ~ 0-2 {"id":$q,"method":"ping"}
        a > {"id":$q,"error":{"code":-32601,"message":"no"}}
        ! seen a
        watch a off
        + 60s
        "#,
    );
}

// M-11
#[test]
fn only_who_has_answered_before_is_silent_and_only_once_and_until_it_answers_again() {
    check(
        r#"
        up a
        a get
        a get ~ 0-0
        watch a 15s
        a get ~ {"id":$1,"method":"ping"}
        + 15s
        a get ~ {"id":$2,"method":"ping"}
        + 15s
        a get ~ {"id":$3,"method":"ping"}
        a > {"id":$2,"result":{}}
        ! seen a
        + 15s
        a get ~ {"id":$4,"method":"ping"}
        + 15s
        ! silent a
        a get ~ {"id":$5,"method":"ping"}
        + 15s
        a get ~ {"id":$6,"method":"ping"}
        a > {"id":$4,"result":{}}
        ! seen a
        + 15s
        a get ~ {"id":$7,"method":"ping"}
        + 15s
        ! silent a
        a get ~ {"id":$8,"method":"ping"}
        "#,
    );
}

// M-11 B-28
#[test]
fn a_ping_goes_to_the_newest_stream_and_is_not_told_again() {
    check(
        r#"
        up a
        watch a 15s
        a get
        a get ~ 0-0
        a get:2
        a get:2 ~ 0-0
        + 15s
        a get:2 ~ 0-1 {"id":$1,"method":"ping"}
        drop a get:2 having 0
        a get:3 after 0-0
        drop a get
        drop a get:3
        + 15s
        a > {"id":$1,"result":{}}
        + 15s
        "#,
    );
}

// M-11: what it is asked is numbered with the questions of its server.
#[test]
fn a_ping_and_a_question_have_numbers_of_their_own() {
    check(
        r#"
        settings class {"roots":{}}
        up a {"roots":{}}
        a get
        a get ~ 0-0
        watch a 15s
        a get ~ {"id":1,"method":"ping"}
        server > {"id":1,"method":"roots/list"}
        ! asked
        a get ~ {"id":2,"method":"roots/list"}
        a > {"id":2,"result":{"roots":[]}}
        server < {"id":1,"result":{"roots":[]}}
        a > {"id":1,"result":{}}
        ! seen a
        "#,
    );
}
