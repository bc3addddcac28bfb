//! A child that nobody uses is stopped, and started by the next call.

use super::check;

#[test]
fn an_idle_child_is_stopped_and_the_next_call_starts_it_with_all_that_it_knew() {
    check(
        r#"
        settings idle 1m
        up a
        a > {"id":1,"method":"logging/setLevel","params":{"level":"debug"}}
        server < {"id":$1,…
        + 10s
        server > {"id":$1,"result":{}}
        a < {"id":1,"result":{}}
        a get
        a get ~ 0-0
        + 59s
        + 1s
        ! stop
        a get:2
        a get:2 ~ 0-0
        a > {"id":2,"method":"tools/call","params":{"name":"x"}}
        ! start
        server < {"id":$0,"method":"initialize",…
        greet
        server < {"method":"notifications/initialized"}
        server < {"id":$2,"method":"logging/setLevel","params":{"level":"debug"}}
        server < {"id":$3,"method":"tools/call",…
        ! ready s 1
        a get ~ {"method":"notifications/tools/list_changed"}
        a get ~ {"method":"notifications/prompts/list_changed"}
        a get ~ {"method":"notifications/resources/list_changed"}
        a get:2 ~ {"method":"notifications/tools/list_changed"}
        a get:2 ~ {"method":"notifications/prompts/list_changed"}
        a get:2 ~ {"method":"notifications/resources/list_changed"}
        "#,
    );
}

#[test]
fn a_child_that_works_or_is_watched_is_not_idle() {
    check(
        r#"
        settings idle 1m, timeout off
        up a b
        a json > {"id":1,"method":"tools/call","params":{"name":"x"}}
        server < {"id":$1,…
        + 3m
        server > {"id":$1,"result":{}}
        a < {"id":1,"result":{}}
        b > {"id":1,"method":"resources/subscribe","params":{"uri":"file:///x"}}
        server < {"id":$2,…
        server > {"id":$2,"result":{}}
        b < {"id":1,"result":{}}
        + 3m
        b > {"id":2,"method":"resources/unsubscribe","params":{"uri":"file:///x"}}
        server < {"id":$3,…
        server > {"id":$3,"result":{}}
        b < {"id":2,"result":{}}
        + 1m
        ! stop
        close a
        close b
        "#,
    );
}
