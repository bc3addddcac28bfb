//! The bell: on what is open now, and never again.

use super::check;

const BELL: &str = r#"{"method":"notifications/resources/updated","params":{"uri":"prism://signals/pending"}}"#;

// M-05
#[test]
fn a_bell_rings_on_the_streams_that_are_open_and_on_none_that_comes_later() {
    check(&format!(
        r#"
        up a b
        ring a
        ! rang 0
        a get
        a get ~ 0-0
        ring a
        ! rang 1
        a get ~ 0-1 {BELL}
        a get:2
        a get:2 ~ 0-1
        ring a
        ! rang 2
        a get ~ 0-2 {BELL}
        a get:2 ~ 0-2 {BELL}
        drop a get
        drop a get:2
        ring a
        ! rang 0
        a get:3 after 0-1
        ring b
        ! rang 0
        "#
    ));
}

// M-05 B-28
#[test]
fn what_comes_after_a_bell_keeps_its_place() {
    check(&format!(
        r#"
        up a
        a get
        a get ~ 0-0
        server > {{"method":"notifications/tools/list_changed"}}
        a get ~ 0-1 {{"method":"notifications/tools/list_changed"}}
        ring a
        ! rang 1
        a get ~ 0-2 {BELL}
        server > {{"method":"notifications/prompts/list_changed"}}
        a get ~ 0-3 {{"method":"notifications/prompts/list_changed"}}
        drop a get having 0
        a get:2
        a get:2 ~ 0-0
        a get:2 ~ 0-1 {{"method":"notifications/tools/list_changed"}}
        a get:2 ~ 0-3 {{"method":"notifications/prompts/list_changed"}}
        drop a get:2 having 3
        a get:3 after 0-2
        a get:3 ~ 0-3 {{"method":"notifications/prompts/list_changed"}}
        "#
    ));
}

// M-05
#[test]
fn a_strict_client_is_rung_on_its_newest_stream_and_a_plain_one_on_its_only() {
    check(&format!(
        r#"
        settings strict
        up a
        a get
        a get ~ 0-0
        a get:2
        a get:2 ~ 0-0
        ring a
        ! rang 1
        a get:2 ~ 0-1 {BELL}
        "#
    ));
    check(&format!(
        r#"
        plain a 2024-11-05
        ! start
        server < {{"id":$i,"method":"initialize",…
        greet
        ! ready s 1
        server < {{"method":"notifications/initialized"}}
        a ~ {{"id":0,…
        ring a
        ! rang 1
        a ~ {BELL}
        ring a
        ! rang 1
        a ~ {BELL}
        "#
    ));
}

// M-05
#[test]
fn a_bell_is_not_kept_for_the_next_daemon() {
    check(&format!(
        r#"
        settings keeps
        up a
        a get
        a get ~ 0-0
        ring a
        ! rang 1
        a get ~ 0-1 {BELL}
        killed
        a get after 0-1
        ! start
        server < {{"id":$0,"method":"initialize",…
        "#
    ));
}

// M-05
#[test]
fn a_modern_client_is_rung_for_what_it_was_promised_under_its_own_id() {
    let listen = |handle: &str, id: &str, uri: &str| {
        format!(
            r#"{handle} > {{"id":{id},"method":"subscriptions/listen","params":{{"notifications":{{"resourceSubscriptions":["{uri}"]}},"_meta":{{‹{{}}›}}}}}}"#
        )
    };
    check(&format!(
        r#"
        up modern
        {}
        server < {{"id":$s,"method":"resources/subscribe","params":{{"uri":"prism://signals/pending/1"}}}}
        ring prism://signals/pending/1
        ! rang 0
        server > {{"id":$s,"result":{{}}}}
        modern:k ~ {{"method":"notifications/subscriptions/acknowledged",…
        {}
        server < {{"id":$t,"method":"resources/subscribe","params":{{"uri":"prism://signals/pending/2"}}}}
        server > {{"id":$t,"result":{{}}}}
        modern:l ~ {{"method":"notifications/subscriptions/acknowledged",…
        ring prism://signals/pending/1
        ! rang 1
        modern:k ~ {{"method":"notifications/resources/updated","params":{{"uri":"prism://signals/pending/1","_meta":{{‹#7›}}}}}}
        ring prism://signals/pending
        ! rang 0
        drop modern:k
        server < {{"id":$u,"method":"resources/unsubscribe",…
        ring prism://signals/pending/1
        ! rang 0
        "#,
        listen("modern:k", "7", "prism://signals/pending/1"),
        listen("modern:l", r#""l""#, "prism://signals/pending/2"),
    ));
}
