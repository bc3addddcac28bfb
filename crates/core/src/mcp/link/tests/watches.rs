//! Resource subscriptions, which the sessions of a child share, and changes, which all of them hear of.

use super::check;

/// `a` watches a URI.
fn watched(by: &str, uri: &str, name: &str) -> String {
    format!(
        r#"
        {by} > {{"id":1,"method":"resources/subscribe","params":{{"uri":"{uri}"}}}}
        server < {{"id":${name},"method":"resources/subscribe","params":{{"uri":"{uri}"}}}}
        server > {{"id":${name},"result":{{}}}}
        {by} < {{"id":1,"result":{{}}}}
        "#
    )
}

// checks 102
#[test]
fn two_watchers_are_one_subscription_and_the_last_one_gone_ends_it() {
    let first = watched("a", "file:///x", "1");
    check(&format!(
        r#"
        up a b c
        {first}
        b > {{"id":7,"method":"resources/subscribe","params":{{"uri":"file:///x"}}}}
        b < {{"id":7,"result":{{}}}}
        b > {{"id":8,"method":"resources/subscribe","params":{{"uri":"file:///x"}}}}
        b < {{"id":8,"result":{{}}}}
        c > {{"id":1,"method":"resources/unsubscribe","params":{{"uri":"file:///x"}}}}
        c < {{"id":1,"result":{{}}}}
        c > {{"id":2,"method":"resources/unsubscribe","params":{{"uri":"file:///other"}}}}
        c < {{"id":2,"result":{{}}}}
        a > {{"id":2,"method":"resources/unsubscribe","params":{{"uri":"file:///x"}}}}
        a < {{"id":2,"result":{{}}}}
        b > {{"id":9,"method":"resources/unsubscribe","params":{{"uri":"file:///x"}}}}
        server < {{"id":$2,"method":"resources/unsubscribe","params":{{"uri":"file:///x"}}}}
        server > {{"id":$2,"result":{{}}}}
        b < {{"id":9,"result":{{}}}}
        ~ 0 watches
        "#
    ));
}

// checks 22 102
#[test]
fn a_session_that_ends_releases_what_only_it_watched() {
    let (x, y) = (watched("a", "file:///x", "1"), watched("a", "file:///y", "2"));
    check(&format!(
        r#"
        up a b
        {x}
        {y}
        b > {{"id":1,"method":"resources/subscribe","params":{{"uri":"file:///x"}}}}
        b < {{"id":1,"result":{{}}}}
        close a
        server < {{"id":$3,"method":"resources/unsubscribe","params":{{"uri":"file:///y"}}}}
        ~ 1 watches
        server > {{"id":$3,"result":{{}}}}
        ~ 0 exchanges
        "#
    ));
}

// checks 101
#[test]
fn an_update_reaches_those_who_watch_that_uri_or_a_parent_of_it_and_nobody_else() {
    let (exact, parent, folder) = (
        watched("exact", "file:///d/x", "1"),
        watched("parent", "file:///d", "2"),
        watched("folder", "file:///d/", "3"),
    );
    let sibling = watched("sibling", "file:///d/x2", "4");
    check(&format!(
        r#"
        up exact parent folder sibling none
        {exact}
        {parent}
        {folder}
        {sibling}
        exact get
        exact get ~ 0-0
        parent get
        parent get ~ 0-0
        folder get
        folder get ~ 0-0
        sibling get
        sibling get ~ 0-0
        none get
        none get ~ 0-0
        server > {{"method":"notifications/resources/updated","params":{{"uri":"file:///d/x","title":"t"}}}}
        exact get ~ {{"method":"notifications/resources/updated","params":{{"uri":"file:///d/x","title":"t"}}}}
        parent get ~ {{"method":"notifications/resources/updated","params":{{"uri":"file:///d/x","title":"t"}}}}
        folder get ~ {{"method":"notifications/resources/updated","params":{{"uri":"file:///d/x","title":"t"}}}}
        server > {{"method":"notifications/resources/updated","params":{{"uri":"file:///d/x/deep"}}}}
        exact get ~ {{"method":"notifications/resources/updated","params":{{"uri":"file:///d/x/deep"}}}}
        parent get ~ {{"method":"notifications/resources/updated","params":{{"uri":"file:///d/x/deep"}}}}
        folder get ~ {{"method":"notifications/resources/updated","params":{{"uri":"file:///d/x/deep"}}}}
        server > {{"method":"notifications/resources/updated","params":{{"uri":"file:///dd"}}}}
        server > {{"method":"notifications/resources/updated","params":{{"uri":7}}}}
        server > {{"method":"notifications/resources/updated"}}
        "#
    ));
}

#[test]
fn one_who_watches_a_resource_and_its_parent_hears_of_it_once() {
    let (x, d) = (watched("a", "file:///d/x", "1"), watched("a", "file:///d", "2"));
    check(&format!(
        r#"
        up a
        {x}
        {d}
        a get
        a get ~ 0-0
        server > {{"method":"notifications/resources/updated","params":{{"uri":"file:///d/x"}}}}
        a get ~ {{"method":"notifications/resources/updated","params":{{"uri":"file:///d/x"}}}}
        "#
    ));
}

#[test]
fn a_subscription_that_the_server_refuses_is_none() {
    check(
        r#"
        up a b
        a > {"id":1,"method":"resources/subscribe","params":{"uri":"file:///x"}}
        server < {"id":$1,…
        server > {"id":$1,"error":{"code":-32002,"message":"no such resource"}}
        a < {"id":1,"error":{"code":-32002,"message":"no such resource"}}
        ~ 0 watches
        a > {"id":2,"method":"resources/subscribe","params":{"uri":3}}
        a < {"id":2,"error":{"code":-32602,…
        stateless > {"id":3,"method":"resources/subscribe","params":{"uri":"file:///x"}}
        stateless < {"id":3,"error":{"code":-32600,…
        "#,
    );
}

// While the first subscription is on its way, the second one goes along: each gets the server's own answer.
#[test]
fn one_of_two_who_subscribe_at_once_can_leave_without_taking_the_other_along() {
    for leaving in [
        r#"a > {"id":2,"method":"resources/unsubscribe","params":{"uri":"file:///x"}}
        a < {"id":2,"result":{}}"#,
        "close a",
    ] {
        check(&format!(
            r#"
            up a b
            a > {{"id":1,"method":"resources/subscribe","params":{{"uri":"file:///x"}}}}
            server < {{"id":$1,…
            b > {{"id":1,"method":"resources/subscribe","params":{{"uri":"file:///x"}}}}
            server < {{"id":$2,…
            server > {{"id":$1,"result":{{}}}}
            a < {{"id":1,"result":{{}}}}
            {leaving}
            server > {{"id":$2,"result":{{}}}}
            b < {{"id":1,"result":{{}}}}
            b get
            b get ~ 0-0
            server > {{"method":"notifications/resources/updated","params":{{"uri":"file:///x"}}}}
            b get ~ {{"method":"notifications/resources/updated","params":{{"uri":"file:///x"}}}}
            "#
        ));
    }
}

#[test]
fn who_unsubscribes_before_the_server_has_answered_watches_nothing() {
    check(
        r#"
        up a
        a:x > {"id":1,"method":"resources/subscribe","params":{"uri":"file:///x"}}
        server < {"id":$1,…
        a:y > {"id":2,"method":"resources/unsubscribe","params":{"uri":"file:///x"}}
        server < {"id":$2,"method":"resources/unsubscribe","params":{"uri":"file:///x"}}
        server > {"id":$1,"result":{}}
        a:x < {"id":1,"result":{}}
        server > {"id":$2,"result":{}}
        a:y < {"id":2,"result":{}}
        ~ 0 watches
        "#,
    );
}

#[test]
fn a_subscription_that_comes_true_after_its_session_ended_is_undone() {
    check(
        r#"
        up a b
        a > {"id":1,"method":"resources/subscribe","params":{"uri":"file:///x"}}
        server < {"id":$1,…
        close a
        a fault session ended
        server < {"method":"notifications/cancelled","params":{"requestId":$1}}
        server > {"id":$1,"result":{}}
        server < {"id":$2,"method":"resources/unsubscribe","params":{"uri":"file:///x"}}
        ~ 0 watches
        "#,
    );
}

#[test]
fn a_subscription_that_is_never_answered_is_forgotten() {
    check(
        r#"
        up a
        a json > {"id":1,"method":"resources/subscribe","params":{"uri":"file:///x"}}
        server < {"id":$1,…
        + 30s
        a fault timeout
        server < {"method":"notifications/cancelled","params":{"requestId":$1}}
        + 30s
        ~ 0 watches
        ~ 0 exchanges
        "#,
    );
}

// checks 34 101
#[test]
fn a_changed_list_is_told_to_every_session_once() {
    check(
        r#"
        up a b
        a get
        a get ~ 0-0
        a > {"id":1,"method":"tools/list"}
        server < {"id":$1,…
        server > {"method":"notifications/tools/list_changed","params":{"_meta":{}}}
        a get ~ 0-1 {"method":"notifications/tools/list_changed","params":{"_meta":{}}}
        server > {"method":"notifications/prompts/list_changed"}
        a get ~ 0-2 {"method":"notifications/prompts/list_changed"}
        server > {"method":"notifications/tools/list_changed"}
        a get ~ 0-3 {"method":"notifications/tools/list_changed"}
        b get
        b get ~ 0-0
        b get ~ 0-1 {"method":"notifications/tools/list_changed","params":{"_meta":{}}}
        b get ~ 0-2 {"method":"notifications/prompts/list_changed"}
        "#,
    );
}
