//! The one listen that a link has at a modern server, for all its clients (mcp-eras 5.8).

use super::check;

const EVERY_LIST: &str = r#"{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true}"#;

/// A line of the link's own listen.
fn listens(wanted: &str) -> String {
    format!(
        r#"server < {{"id":$union,"method":"subscriptions/listen","params":{{"notifications":{wanted},"_meta":{{‹{{}} prism›}}}}}}"#
    )
}

fn listen(handle: &str, id: &str, wanted: &str) -> String {
    format!(
        r#"{handle} > {{"id":{id},"method":"subscriptions/listen","params":{{"notifications":{wanted},"_meta":{{‹{{}}›}}}}}}"#
    )
}

fn ack(handle: &str, id: &str, honoured: &str) -> String {
    format!(
        r#"{handle} ~ {{"method":"notifications/subscriptions/acknowledged","params":{{"notifications":{honoured},"_meta":{{‹#{id}›}}}}}}"#
    )
}

/// A session is open at a modern server, and hears of every list.
fn up() -> String {
    format!(
        r#"
        settings pinned modern
        open a
        ! start
        server < {{"id":$d,"method":"server/discover",…
        discover
        ! ready s 2 modern
        a < {{"id":0,…
        {}
        ack
        ~ 0 watches
        a get
        a get ~ 0-0
        "#,
        listens(EVERY_LIST)
    )
}

// checks 34 49 101 110
#[test]
fn sessions_share_one_listen_and_hear_of_changes_without_its_tag() {
    check(&format!(
        r#"
        {}
        open b
        b < {{"id":0,…
        b get
        b get ~ 0-0
        server > {{"method":"notifications/tools/list_changed","params":{{"_meta":{{‹#$union›}}}}}}
        a get ~ {{"method":"notifications/tools/list_changed"}}
        b get ~ {{"method":"notifications/tools/list_changed"}}
        server > {{"method":"notifications/prompts/list_changed","params":{{"_meta":{{"x":1.0,‹#$union›}}}}}}
        a get ~ {{"method":"notifications/prompts/list_changed","params":{{"_meta":{{"x":1.0}}}}}}
        b get ~ {{"method":"notifications/prompts/list_changed","params":{{"_meta":{{"x":1.0}}}}}}
        server > {{"method":"notifications/tools/list_changed","params":{{"_meta":{{‹#99999›}}}}}}
        close b
        b get end
        close a
        a get end
        ! stop
        "#,
        up()
    ));
}

// checks 82 101 110
#[test]
fn a_modern_listen_hears_under_its_own_id_and_changes_nothing_that_is_asked_for_already() {
    check(&format!(
        r#"
        {}
        {}
        {}
        server > {{"method":"notifications/tools/list_changed","params":{{"_meta":{{‹#"$union"›}}}}}}
        a get ~ {{"method":"notifications/tools/list_changed"}}
        modern:l ~ {{"method":"notifications/tools/list_changed","params":{{"_meta":{{‹#"l"›}}}}}}
        server > {{"method":"notifications/prompts/list_changed","params":{{"_meta":{{‹#$union›}}}}}}
        a get ~ {{"method":"notifications/prompts/list_changed"}}
        "#,
        up(),
        listen("modern:l", r#""l""#, r#"{"toolsListChanged":true}"#),
        ack("modern:l", r#""l""#, r#"{"toolsListChanged":true}"#),
    ));
}

// A change of the filter: the new one, its acknowledgement, the end of the old one; what comes on both is told once.
#[test]
fn the_old_listen_counts_until_the_new_one_is_acknowledged() {
    let with_x = r#"{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["file:///x"]}"#;
    check(&format!(
        r#"
        {}
        a > {{"id":1,"method":"tools/list"}}
        server < {{"id":$t,…
        server > {{"id":$t,"result":{{"resultType":"complete","tools":[]}}}}
        a < {{"id":1,"result":{{"tools":[]}}}}
        {}
        server < {{"id":$new,"method":"subscriptions/listen","params":{{"notifications":{with_x},…
        server > {{"method":"notifications/tools/list_changed","params":{{"_meta":{{‹#$old›}}}}}}
        a get ~ {{"method":"notifications/tools/list_changed"}}
        server > {{"method":"notifications/tools/list_changed","params":{{"_meta":{{‹#$new›}}}}}}
        ack
        server < {{"method":"notifications/cancelled","params":{{"requestId":$old}}}}
        {}
        server > {{"method":"notifications/tools/list_changed","params":{{"_meta":{{‹#$old›}}}}}}
        server > {{"id":$old,"result":{{"resultType":"complete"}}}}
        server > {{"method":"notifications/resources/updated","params":{{"uri":"file:///x","_meta":{{‹#$new›}}}}}}
        modern:l ~ {{"method":"notifications/resources/updated","params":{{"uri":"file:///x","_meta":{{‹#7›}}}}}}
        drop modern:l
        {}
        ack
        server < {{"method":"notifications/cancelled","params":{{"requestId":$new}}}}
        "#,
        up().replace("$union", "$old"),
        listen("modern:l", "7", r#"{"resourceSubscriptions":["file:///x"]}"#),
        ack("modern:l", "7", r#"{"resourceSubscriptions":["file:///x"]}"#),
        listens(EVERY_LIST),
    ));
}

#[test]
fn a_listen_that_is_overtaken_is_ended_at_once() {
    check(&format!(
        r#"
        {}
        {}
        server < {{"id":$one,"method":"subscriptions/listen",…["file:///x"]…
        {}
        server < {{"method":"notifications/cancelled","params":{{"requestId":$one}}}}
        server < {{"id":$two,"method":"subscriptions/listen",…["file:///x","file:///y"]…
        ack {{"resourceSubscriptions":["file:///y"]}}
        server < {{"method":"notifications/cancelled","params":{{"requestId":$old}}}}
        {}
        {}
        "#,
        up().replace("$union", "$old"),
        listen("modern:l", "1", r#"{"resourceSubscriptions":["file:///x"]}"#),
        listen("modern:m", "2", r#"{"resourceSubscriptions":["file:///y"]}"#),
        ack("modern:l", "1", "{}"),
        ack("modern:m", "2", r#"{"resourceSubscriptions":["file:///y"]}"#),
    ));
}

// mcp-eras 5.8, 5.13: `{}` once the acknowledgement honours it.
// checks 102
#[test]
fn a_legacy_subscription_is_answered_by_the_acknowledgement() {
    check(&format!(
        r#"
        {}
        a > {{"id":1,"method":"resources/subscribe","params":{{"uri":"file:///x"}}}}
        server < {{"id":$one,"method":"subscriptions/listen",…"resourceSubscriptions":["file:///x"]…
        a:y > {{"id":2,"method":"resources/subscribe","params":{{"uri":"file:///y"}}}}
        server < {{"method":"notifications/cancelled","params":{{"requestId":$one}}}}
        server < {{"id":$two,"method":"subscriptions/listen",…"resourceSubscriptions":["file:///x","file:///y"]…
        ack {{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["file:///x"]}}
        server < {{"method":"notifications/cancelled","params":{{"requestId":$old}}}}
        a < {{"id":1,"result":{{}}}}
        a:y < {{"id":2,"error":{{"code":-32602,"message":"the server does not tell of this resource"}}}}
        ~ 1 watches
        a:y > {{"id":2,"method":"resources/subscribe","params":{{"uri":"file:///y"}}}}
        a:y < {{"id":2,"error":{{"code":-32602,"message":"the server does not tell of this resource"}}}}
        ~ 1 watches
        open b
        b < {{"id":0,…
        {}
        ack
        server < {{"method":"notifications/cancelled","params":{{"requestId":$two}}}}
        b > {{"id":1,"method":"resources/subscribe","params":{{"uri":"file:///x"}}}}
        b < {{"id":1,"result":{{}}}}
        server > {{"method":"notifications/resources/updated","params":{{"uri":"file:///x/1","_meta":{{‹#$union›}}}}}}
        a get ~ {{"method":"notifications/resources/updated","params":{{"uri":"file:///x/1"}}}}
        a > {{"id":3,"method":"resources/unsubscribe","params":{{"uri":"file:///x"}}}}
        a < {{"id":3,"result":{{}}}}
        b > {{"id":3,"method":"resources/unsubscribe","params":{{"uri":"file:///x"}}}}
        b < {{"id":3,"result":{{}}}}
        {}
        ~ 0 watches
        "#,
        up().replace("$union", "$old"),
        listens(
            r#"{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["file:///x"]}"#
        ),
        listens(EVERY_LIST),
    ));
}

#[test]
fn a_subscription_can_be_cancelled_and_end_with_its_session_before_it_is_acknowledged() {
    check(&format!(
        r#"
        {}
        a > {{"id":1,"method":"resources/subscribe","params":{{"uri":"file:///x"}}}}
        server < {{"id":$one,"method":"subscriptions/listen",…
        a > {{"method":"notifications/cancelled","params":{{"requestId":1}}}}
        a cancelled
        ~ 0 watches
        ack
        server < {{"method":"notifications/cancelled","params":{{"requestId":$old}}}}
        open b
        b < {{"id":0,…
        {}
        ack
        server < {{"method":"notifications/cancelled","params":{{"requestId":$one}}}}
        b > {{"id":1,"method":"resources/subscribe","params":{{"uri":"file:///x"}}}}
        server < {{"id":$two,"method":"subscriptions/listen",…
        close b
        b fault session ended
        server < {{"method":"notifications/cancelled","params":{{"requestId":$two}}}}
        ~ 0 watches
        "#,
        up().replace("$union", "$old"),
        listens(EVERY_LIST),
    ));
}

#[test]
fn a_server_without_subscriptions_says_so() {
    check(
        r#"
        settings pinned modern
        open a
        ! start
        server < {"id":$d,"method":"server/discover",…
        discover {"resources":{}}
        ! ready s 2 modern
        a < {"id":0,…
        a > {"id":1,"method":"resources/subscribe","params":{"uri":"file:///x"}}
        a < {"id":1,"error":{"code":-32601,"message":"the server has no subscriptions"}}
        modern:l > {"id":1,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["u"],"toolsListChanged":true},"_meta":{‹{}›}}}
        modern:l ~ {"method":"notifications/subscriptions/acknowledged","params":{"notifications":{},"_meta":{‹#1›}}}
        ~ 0 watches
        "#,
    );
}

// mcp-eras 5.8: what was missed meanwhile is told once somebody listens again.
#[test]
fn a_listen_that_the_server_ends_is_opened_again_and_the_clients_are_told() {
    for end in [
        r#"server > {"id":$old,"result":{"resultType":"complete"}}"#,
        r#"server > {"method":"notifications/cancelled","params":{"requestId":$old}}"#,
        "cut $old",
    ] {
        check(&format!(
            r#"
            {}
            {}
            {}
            {end}
            + 499ms
            + 1ms
            {}
            ack
            a get ~ {{"method":"notifications/tools/list_changed"}}
            a get ~ {{"method":"notifications/prompts/list_changed"}}
            a get ~ {{"method":"notifications/resources/list_changed"}}
            modern:l ~ {{"method":"notifications/tools/list_changed","params":{{"_meta":{{‹#1›}}}}}}
            "#,
            up().replace("$union", "$old"),
            listen("modern:l", "1", r#"{"toolsListChanged":true}"#),
            ack("modern:l", "1", r#"{"toolsListChanged":true}"#),
            listens(EVERY_LIST),
        ));
    }
}

#[test]
fn a_listen_that_is_refused_or_never_acknowledged_is_tried_again_less_and_less_often() {
    check(&format!(
        r#"
        settings pinned modern
        open a
        ! start
        server < {{"id":$d,"method":"server/discover",…
        discover
        ! ready s 2 modern
        a < {{"id":0,…
        server < {{"id":$one,…
        a > {{"id":1,"method":"resources/subscribe","params":{{"uri":"file:///x"}}}}
        server < {{"method":"notifications/cancelled","params":{{"requestId":$one}}}}
        server < {{"id":$two,…
        {}
        server > {{"id":$two,"error":{{"code":-32601,"message":"?"}}}}
        a < {{"id":1,"error":{{"code":-32602,…
        {}
        + 500ms
        server < {{"id":$three,…
        + 9s
        + 1s
        server < {{"method":"notifications/cancelled","params":{{"requestId":$three}}}}
        + 999ms
        + 1ms
        server < {{"id":$four,…
        ack
        server > {{"method":"notifications/tools/list_changed","params":{{"_meta":{{‹#$four›}}}}}}
        modern:l ~ {{"method":"notifications/tools/list_changed",…
        "#,
        listen("modern:l", "1", r#"{"toolsListChanged":true}"#),
        ack("modern:l", "1", "{}"),
    ));
}

// checks 109
#[test]
fn after_a_restart_the_new_child_is_listened_to_before_the_clients_are_told() {
    check(&format!(
        r#"
        {}
        a > {{"id":1,"method":"resources/subscribe","params":{{"uri":"file:///x"}}}}
        server < {{"id":$one,…
        ack
        server < {{"method":"notifications/cancelled",…
        a < {{"id":1,"result":{{}}}}
        exit
        + 500ms
        ! start
        server < {{"id":$e,"method":"server/discover",…
        discover
        ! ready s 2 modern
        {}
        ack
        a get ~ {{"method":"notifications/resources/updated","params":{{"uri":"file:///x"}}}}
        a get ~ {{"method":"notifications/tools/list_changed"}}
        a get ~ {{"method":"notifications/prompts/list_changed"}}
        a get ~ {{"method":"notifications/resources/list_changed"}}
        "#,
        up().replace("$union", "$old"),
        listens(
            r#"{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["file:///x"]}"#
        ),
    ));
}

#[test]
fn a_listen_at_a_modern_server_waits_for_it_and_ends_in_order() {
    check(&format!(
        r#"
        settings pinned modern
        {}
        ! start
        server < {{"id":$d,"method":"server/discover",…
        discover
        ! ready s 2 modern
        {}
        server > {{"method":"notifications/tools/list_changed","params":{{"_meta":{{‹#$union›}}}}}}
        ack
        {}
        + 10m
        shut down
        ! stop
        modern:l ~ {{"id":0,"result":{{"resultType":"complete","_meta":{{‹#0›}}}}}}
        modern:l end
        "#,
        listen("modern:l", "0", r#"{"toolsListChanged":true}"#),
        listens(r#"{"toolsListChanged":true}"#),
        ack("modern:l", "0", r#"{"toolsListChanged":true}"#),
    ));
    check(&format!(
        r#"
        settings pinned modern, stateless 20m
        up modern
        {}
        {}
        ack
        {}
        drop modern:l
        server < {{"method":"notifications/cancelled","params":{{"requestId":$union}}}}
        "#,
        listen("modern:l", "0", r#"{"toolsListChanged":true}"#),
        listens(r#"{"toolsListChanged":true}"#),
        ack("modern:l", "0", r#"{"toolsListChanged":true}"#),
    ));
}

#[test]
fn a_subscription_that_is_taken_back_before_it_is_acknowledged_is_answered() {
    check(&format!(
        r#"
        {}
        a:x > {{"id":1,"method":"resources/subscribe","params":{{"uri":"file:///x"}}}}
        server < {{"id":$one,"method":"subscriptions/listen",…
        a:y > {{"id":2,"method":"resources/unsubscribe","params":{{"uri":"file:///x"}}}}
        a:x < {{"id":1,"result":{{}}}}
        a:y < {{"id":2,"result":{{}}}}
        server < {{"method":"notifications/cancelled","params":{{"requestId":$one}}}}
        ~ 0 exchanges
        ~ 0 watches
        "#,
        up(),
    ));
}

// checks 81 82
#[test]
fn who_comes_to_a_server_that_was_started_again_for_it_has_missed_nothing() {
    let tools = r#"{"toolsListChanged":true}"#;
    check(&format!(
        r#"
        {}
        close a
        a get end
        ! stop
        {}
        ! start
        server < {{"id":$e,"method":"server/discover",…
        discover
        ! ready s 2 modern
        {}
        ack
        {}
        "#,
        up(),
        listen("modern:l", "1", tools),
        listens(tools),
        ack("modern:l", "1", tools),
    ));
}

// R-56: a server on FastMCP 4 announces `false`, lets nobody listen, and tells.
#[test]
fn a_change_that_was_not_announced_is_told_all_the_same() {
    check(&format!(
        r#"
        settings pinned modern
        {}
        ! start
        server < {{"id":$d,"method":"server/discover",…
        discover {{"tools":{{"listChanged":false}}}}
        ! ready s 2 modern
        {}
        server > {{"method":"notifications/tools/list_changed"}}
        modern:l ~ {{"method":"notifications/tools/list_changed","params":{{"_meta":{{‹#1›}}}}}}
        server > {{"method":"notifications/prompts/list_changed"}}
        "#,
        listen("modern:l", "1", EVERY_LIST),
        ack("modern:l", "1", r#"{"toolsListChanged":true}"#),
    ));
}
