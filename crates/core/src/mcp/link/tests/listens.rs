//! Modern clients that listen for changes at a legacy server (mcp-eras 5.8).

use super::check;

/// A listen for these, under this id.
fn listen(handle: &str, id: &str, wanted: &str) -> String {
    format!(
        r#"{handle} > {{"id":{id},"method":"subscriptions/listen","params":{{"notifications":{wanted},"_meta":{{‹{{}}›}}}}}}"#
    )
}

/// Its acknowledgement.
fn ack(handle: &str, id: &str, honoured: &str) -> String {
    format!(
        r#"{handle} ~ {{"method":"notifications/subscriptions/acknowledged","params":{{"notifications":{honoured},"_meta":{{‹#{id}›}}}}}}"#
    )
}

const TOOLS: &str = r#"{"toolsListChanged":true}"#;
const ALL: &str = r#"{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["file:///x","file:///y"]}"#;

// R-56: a server on the Python SDK 1.x announces `false`, and tells.
// checks 81
#[test]
fn a_listen_starts_the_server_and_is_acknowledged_for_what_it_may_tell_of() {
    for id in ["0", r#""0""#, "9007199254740993", r#""l\u0031""#] {
        check(&format!(
            r#"
            {}
            ! start
            server < {{"id":$i,"method":"initialize",…
            greet {{"tools":{{"listChanged":false}},"resources":{{"listChanged":true}}}}
            ! ready s 1
            server < {{"method":"notifications/initialized"}}
            {}
            server > {{"method":"notifications/tools/list_changed"}}
            modern:l ~ {{"method":"notifications/tools/list_changed","params":{{"_meta":{{‹#{id}›}}}}}}
            server > {{"method":"notifications/prompts/list_changed"}}
            "#,
            listen("modern:l", id, ALL),
            ack("modern:l", id, r#"{"toolsListChanged":true,"resourcesListChanged":true}"#),
        ));
    }
    // Nothing at all, or nothing that it tells of.
    check(&format!("up modern\n{}\n{}", listen("modern:l", "1", "{}"), ack("modern:l", "1", "{}")));
}

// checks 82 101
#[test]
fn two_listens_each_hear_what_they_asked_for_under_their_own_id() {
    check(&format!(
        r#"
        up a modern
        a get
        a get ~ 0-0
        {}
        {}
        {}
        {}
        server > {{"method":"notifications/tools/list_changed","params":{{"_meta":{{"x":1.0}}}}}}
        a get ~ {{"method":"notifications/tools/list_changed","params":{{"_meta":{{"x":1.0}}}}}}
        modern:k ~ {{"method":"notifications/tools/list_changed","params":{{"_meta":{{"x":1.0,‹#1›}}}}}}
        server > {{"method":"notifications/prompts/list_changed"}}
        a get ~ {{"method":"notifications/prompts/list_changed"}}
        modern:l ~ {{"method":"notifications/prompts/list_changed","params":{{"_meta":{{‹#"1"›}}}}}}
        server > {{"method":"notifications/resources/list_changed"}}
        a get ~ {{"method":"notifications/resources/list_changed"}}
        modern:c > {{"id":1,"method":"tools/call","params":{{"name":"x","_meta":{{‹{{}} debug›,"progressToken":1}}}}}}
        server < {{"id":$s,"method":"logging/setLevel",…
        server < {{"id":$1,…
        server > {{"method":"notifications/message","params":{{"level":"info","data":1}}}}
        modern:c ~ {{"method":"notifications/message",…
        server > {{"method":"notifications/progress","params":{{"progressToken":$1,"progress":1}}}}
        modern:c ~ {{"method":"notifications/progress",…
        drop modern:k
        server > {{"method":"notifications/tools/list_changed"}}
        a get ~ {{"method":"notifications/tools/list_changed"}}
        ~ 1 listens
        "#,
        listen("modern:k", "1", TOOLS),
        ack("modern:k", "1", TOOLS),
        listen("modern:l", r#""1""#, r#"{"toolsListChanged":false,"promptsListChanged":true}"#),
        ack("modern:l", r#""1""#, r#"{"promptsListChanged":true}"#),
    ));
}

// The server is asked first, what it says meanwhile waits, and only what it agreed to is acknowledged.
// checks 81 82 102
#[test]
fn resources_are_subscribed_to_before_the_acknowledgement_and_changes_wait_for_it() {
    check(&format!(
        r#"
        up modern
        {}
        server < {{"id":$1,"method":"resources/subscribe","params":{{"uri":"file:///x"}}}}
        server < {{"id":$2,"method":"resources/subscribe","params":{{"uri":"file:///y"}}}}
        server > {{"method":"notifications/tools/list_changed"}}
        server > {{"method":"notifications/tools/list_changed"}}
        server > {{"id":$1,"result":{{}}}}
        server > {{"method":"notifications/resources/updated","params":{{"uri":"file:///x/1"}}}}
        server > {{"method":"notifications/resources/updated","params":{{"uri":"file:///z"}}}}
        server > {{"id":$2,"error":{{"code":-32002,"message":"?"}}}}
        {}
        modern:l ~ {{"method":"notifications/tools/list_changed","params":{{"_meta":{{‹#1›}}}}}}
        modern:l ~ {{"method":"notifications/resources/updated","params":{{"uri":"file:///x/1","_meta":{{‹#1›}}}}}}
        server > {{"method":"notifications/resources/updated","params":{{"uri":"file:///y"}}}}
        server > {{"method":"notifications/resources/updated","params":{{"uri":"file:///x"}}}}
        modern:l ~ {{"method":"notifications/resources/updated","params":{{"uri":"file:///x","_meta":{{‹#1›}}}}}}
        {}
        {}
        ~ 1 watches
        drop modern:l
        drop modern:m
        server < {{"id":$3,"method":"resources/unsubscribe","params":{{"uri":"file:///x"}}}}
        ~ 0 watches
        ~ 0 exchanges
        "#,
        listen("modern:l", "1", ALL),
        ack(
            "modern:l",
            "1",
            r#"{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["file:///x"]}"#
        ),
        listen("modern:m", "2", r#"{"resourceSubscriptions":["file:///x"]}"#),
        ack("modern:m", "2", r#"{"resourceSubscriptions":["file:///x"]}"#),
    ));
}

#[test]
fn a_server_that_does_not_confirm_a_subscription_is_not_waited_for() {
    check(&format!(
        r#"
        up modern
        {}
        server < {{"id":$1,"method":"resources/subscribe",…
        server < {{"id":$2,"method":"resources/subscribe",…
        server > {{"id":$1,"result":{{}}}}
        + 9s
        + 1s
        {}
        ~ 0 exchanges
        ~ 1 watches
        "#,
        listen("modern:l", "1", ALL),
        ack("modern:l", "1", r#"{…"resourceSubscriptions":["file:///x"]}"#),
    ));
    check(&format!(
        r#"
        settings http
        up modern
        {}
        server < {{"id":$1,"method":"resources/subscribe",…
        unanswered $1
        {}
        "#,
        listen("modern:l", "1", r#"{"resourceSubscriptions":["file:///x"]}"#),
        ack("modern:l", "1", "{}"),
    ));
}

#[test]
fn one_who_leaves_before_the_confirmation_leaves_nothing_behind() {
    check(&format!(
        r#"
        up modern
        {}
        server < {{"id":$1,"method":"resources/subscribe",…
        drop modern:l
        server > {{"id":$1,"result":{{}}}}
        server < {{"id":$2,"method":"resources/unsubscribe","params":{{"uri":"file:///x"}}}}
        ~ 0 watches
        "#,
        listen("modern:l", "1", r#"{"resourceSubscriptions":["file:///x"]}"#),
    ));
}

// checks 102
#[test]
fn sessions_and_listens_count_as_watchers_of_one_resource() {
    check(&format!(
        r#"
        up a
        a get
        a get ~ 0-0
        a > {{"id":1,"method":"resources/subscribe","params":{{"uri":"file:///x"}}}}
        server < {{"id":$1,…
        server > {{"id":$1,"result":{{}}}}
        a < {{"id":1,"result":{{}}}}
        {}
        {}
        server > {{"method":"notifications/resources/updated","params":{{"uri":"file:///x"}}}}
        a get ~ {{"method":"notifications/resources/updated","params":{{"uri":"file:///x"}}}}
        modern:l ~ {{"method":"notifications/resources/updated","params":{{"uri":"file:///x","_meta":{{‹#1›}}}}}}
        a > {{"id":2,"method":"resources/unsubscribe","params":{{"uri":"file:///x"}}}}
        a < {{"id":2,"result":{{}}}}
        server > {{"method":"notifications/resources/updated","params":{{"uri":"file:///x"}}}}
        modern:l ~ {{"method":"notifications/resources/updated","params":{{"uri":"file:///x","_meta":{{‹#1›}}}}}}
        drop modern:l
        server < {{"id":$2,"method":"resources/unsubscribe","params":{{"uri":"file:///x"}}}}
        "#,
        listen("modern:l", "1", r#"{"resourceSubscriptions":["file:///x"]}"#),
        ack("modern:l", "1", r#"{"resourceSubscriptions":["file:///x"]}"#),
    ));
}

// mcp-eras 5.8, 5.15.
// checks 109
#[test]
fn a_restart_keeps_the_streams_and_tells_of_what_may_have_been_missed() {
    check(&format!(
        r#"
        up modern
        {}
        server < {{"id":$1,"method":"resources/subscribe",…
        server > {{"id":$1,"result":{{}}}}
        {}
        {}
        server < {{"id":$2,"method":"resources/subscribe","params":{{"uri":"file:///new"}}}}
        exit
        + 500ms
        ! start
        server < {{"id":$i,"method":"initialize",…
        greet
        ! ready s 1
        server < {{"method":"notifications/initialized"}}
        server < {{"id":$3,"method":"resources/subscribe","params":{{"uri":"file:///x"}}}}
        server < {{"id":$4,"method":"resources/subscribe","params":{{"uri":"file:///new"}}}}
        modern:l ~ {{"method":"notifications/resources/updated","params":{{"uri":"file:///x","_meta":{{‹#1›}}}}}}
        modern:l ~ {{"method":"notifications/tools/list_changed","params":{{"_meta":{{‹#1›}}}}}}
        server > {{"id":$4,"result":{{}}}}
        {}
        ~ 2 watches
        "#,
        listen("modern:l", "1", r#"{"toolsListChanged":true,"resourceSubscriptions":["file:///x"]}"#),
        ack("modern:l", "1", r#"{"toolsListChanged":true,"resourceSubscriptions":["file:///x"]}"#),
        listen("modern:m", "2", r#"{"resourceSubscriptions":["file:///new"]}"#),
        ack("modern:m", "2", r#"{"resourceSubscriptions":["file:///new"]}"#),
    ));
}

// What was acknowledged is no longer true: the client asks anew.
#[test]
fn a_new_child_that_promises_something_else_ends_what_was_acknowledged() {
    check(&format!(
        r#"
        up modern
        {}
        {}
        exit
        {}
        + 500ms
        ! start
        server < {{"id":$i,"method":"initialize",…
        greet {{"prompts":{{}}}}
        ! ready s 1
        server < {{"method":"notifications/initialized"}}
        modern:l ~ {{"id":1,"result":{{"resultType":"complete","_meta":{{‹#1›}}}}}}
        modern:l end
        {}
        "#,
        listen("modern:l", "1", TOOLS),
        ack("modern:l", "1", TOOLS),
        listen("modern:m", "2", TOOLS),
        ack("modern:m", "2", "{}"),
    ));
}

// checks 84
#[test]
fn an_orderly_end_is_the_empty_result() {
    check(&format!(
        r#"
        up modern
        {}
        {}
        shut down
        ! stop
        modern:l ~ {{"id":"l","result":{{"resultType":"complete","_meta":{{‹#"l"›}}}}}}
        modern:l end
        ~ 0 listens
        "#,
        listen("modern:l", r#""l""#, TOOLS),
        ack("modern:l", r#""l""#, TOOLS),
    ));
}

#[test]
fn a_server_out_of_reach_ends_a_listen_with_an_error() {
    check(&format!(
        r#"
        {}
        ! start
        server < {{"id":$i,"method":"initialize",…
        failed
        modern:l ~ {{"id":"l","error":{{"code":-32603,"message":"the MCP server cannot be reached: no such program","data":{{"reason":"upstream_unavailable"}}}}}}
        modern:l end
        "#,
        listen("modern:l", r#""l""#, TOOLS),
    ));
}

// B-13.
#[test]
fn the_child_is_kept_while_somebody_listens() {
    check(&format!(
        r#"
        settings stateless 1s
        up modern
        {}
        {}
        + 10m
        drop modern:l
        ! stop
        "#,
        listen("modern:l", "1", TOOLS),
        ack("modern:l", "1", TOOLS),
    ));
}

// checks 83
#[test]
fn a_listen_must_say_what_for() {
    for params in [
        r#""_meta":{‹{}›}"#,
        r#""notifications":7,"_meta":{‹{}›}"#,
        r#""notifications":{"toolsListChanged":1},"_meta":{‹{}›}"#,
    ] {
        check(&format!(
            r#"
            up modern
            modern:l > {{"id":1,"method":"subscriptions/listen","params":{{{params}}}}}
            modern:l unfit filter
            "#
        ));
    }
}

// Style 3.
#[test]
fn there_is_an_end_to_listens_and_to_what_waits_for_one() {
    let many: String = (1..=256)
        .map(|n| format!("{}\n{}\n", listen(&format!("modern:{n}"), "1", "{}"), ack(&format!("modern:{n}"), "1", "{}")))
        .collect();
    check(&format!("up modern\n{many}\n{}\nmodern:x refused Busy", listen("modern:x", "1", "{}")));
    let changes: String = (1..=65)
        .map(|n| {
            format!(r#"server > {{"method":"notifications/resources/updated","params":{{"uri":"file:///x/{n}"}}}}"#)
                + "\n"
        })
        .collect();
    let told: String = (2..=65)
        .map(|n| {
            format!(r#"modern:l ~ {{"method":"notifications/resources/updated","params":{{"uri":"file:///x/{n}",…"#)
                + "\n"
        })
        .collect();
    check(&format!(
        r#"
        up modern
        {}
        server < {{"id":$1,"method":"resources/subscribe","params":{{"uri":"file:///x"}}}}
        server < {{"id":$2,"method":"resources/subscribe","params":{{"uri":"file:///y"}}}}
        server > {{"id":$1,"result":{{}}}}
        {changes}
        ! dropped 1
        server > {{"id":$2,"result":{{}}}}
        modern:l ~ {{"method":"notifications/subscriptions/acknowledged",…
        {told}
        "#,
        listen("modern:l", "1", ALL),
    ));
}

// N-03, N-04.
#[test]
fn a_listen_has_names_and_keep_alives_as_other_streams() {
    check(&format!(
        r#"
        up modern
        {}
        modern:l ~ @notifications/subscriptions/acknowledged {{"method":…
        server > {{"method":"notifications/tools/list_changed"}}
        modern:l ~ @notifications/tools/list_changed {{"method":…
        + 31s
        ~ 2 beats
        "#,
        listen("modern:l named", "1", TOOLS),
    ));
}

// R-56: a client that has opened no stream of changes hears what its server says beside its own call.
#[test]
fn a_change_that_a_modern_server_tells_on_a_calls_stream_reaches_the_client_of_that_call() {
    check(
        r#"
        settings pinned modern, http
        up modern
        modern:a events > {"id":1,"method":"tools/call","params":{"name":"grow","_meta":{‹{}›}}}
        server < {"id":$1,…
        modern:b > {"id":2,"method":"tools/call","params":{"name":"other","_meta":{‹{}›}}}
        server < {"id":$2,…
        server about $1 > {"method":"notifications/tools/list_changed"}
        modern:a ~ {"method":"notifications/tools/list_changed"}
        server about $1 > {"id":$1,"result":{"resultType":"complete","content":[]}}
        modern:a ~ {"id":1,"result":{"resultType":"complete","content":[]}}
        modern:a end
        server about $2 > {"id":$2,"result":{"resultType":"complete","content":[]}}
        modern:b < {"id":2,"result":{"resultType":"complete","content":[]}}
        "#,
    );
}
