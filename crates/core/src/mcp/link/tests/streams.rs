//! Streams: what goes on a session's GET streams, and how a stream that broke is taken up again.

use super::check;

/// A call has become a stream and shown two messages.
const STREAMED: &str = r#"
    a > {"id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":7}}}
    server < {"id":$1,…
    server > {"method":"notifications/progress","params":{"progressToken":$1,"progress":1}}
    a ~ 1-0
    a ~ 1-1 {"method":"notifications/progress","params":{"progressToken":7,"progress":1}}
    server > {"method":"notifications/progress","params":{"progressToken":$1,"progress":2}}
    a ~ 1-2 {"method":"notifications/progress","params":{"progressToken":7,"progress":2}}
"#;

// B-11, N-04.
// checks 34
#[test]
fn what_came_before_the_get_stream_was_opened_is_queued_and_a_change_only_once() {
    check(
        r#"
        up a
        server > {"method":"notifications/tools/list_changed"}
        server > {"method":"notifications/message","params":{"level":"info","data":1}}
        server > {"method":"notifications/tools/list_changed"}
        server > {"method":"notifications/message","params":{"level":"info","data":1}}
        server > {"method":"notifications/prompts/list_changed"}
        a get
        a get ~ 0-0
        a get ~ 0-1 {"method":"notifications/tools/list_changed"}
        a get ~ 0-2 {"method":"notifications/message","params":{"level":"info","data":1}}
        a get ~ 0-3 {"method":"notifications/message","params":{"level":"info","data":1}}
        a get ~ 0-4 {"method":"notifications/prompts/list_changed"}
        server > {"method":"notifications/tools/list_changed"}
        a get ~ 0-5 {"method":"notifications/tools/list_changed"}
        "#,
    );
}

// N-04: older clients choke on an event without data.
// checks 41
#[test]
fn a_priming_event_is_only_for_those_who_know_it() {
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18"] {
        check(&format!(
            r#"
            up a {revision}
            a get
            a events > {{"id":1,"method":"ping"}}
            a ~ 1-1 {{"id":1,"result":{{}}}}
            a end
            server > {{"method":"notifications/tools/list_changed"}}
            a get ~ 0-1 {{"method":"notifications/tools/list_changed"}}
            "#
        ));
    }
    check(
        r#"
        up a 2025-11-25
        a get
        a get ~ 0-0
        a events > {"id":1,"method":"ping"}
        a ~ 1-0
        a ~ 1-1 {"id":1,"result":{}}
        a end
        "#,
    );
}

// B-12.
#[test]
fn each_get_stream_gets_every_notification_and_a_question_goes_on_exactly_one() {
    check(
        r#"
        settings class {"roots":{}}
        up a {"roots":{}}
        a get:1
        a get:1 ~ 0-0
        a get:2
        a get:2 ~ 0-0
        server > {"method":"notifications/tools/list_changed"}
        a get:1 ~ 0-1 {"method":"notifications/tools/list_changed"}
        a get:2 ~ 0-1 {"method":"notifications/tools/list_changed"}
        server > {"id":"q","method":"roots/list"}
        ! asked
        a get:2 ~ 0-2 {"id":1,"method":"roots/list"}
        drop a get:1
        server > {"method":"notifications/tools/list_changed"}
        a get:2 ~ 0-3 {"method":"notifications/tools/list_changed"}
        "#,
    );
}

// B-12: as the protocol says it.
#[test]
fn with_strict_streams_each_message_goes_on_one_stream() {
    check(
        r#"
        settings strict
        up a
        a get:1
        a get:1 ~ 0-0
        a get:2
        a get:2 ~ 0-0
        server > {"method":"notifications/tools/list_changed"}
        a get:2 ~ 0-1 {"method":"notifications/tools/list_changed"}
        drop a get:2
        server > {"method":"notifications/tools/list_changed"}
        a get:1 ~ 0-2 {"method":"notifications/tools/list_changed"}
        "#,
    );
}

// B-28.
#[test]
fn a_get_stream_goes_on_after_the_event_its_client_had_last() {
    check(
        r#"
        up a
        a get
        a get ~ 0-0
        server > {"method":"notifications/message","params":{"level":"info","data":1}}
        a get ~ 0-1 {…
        server > {"method":"notifications/message","params":{"level":"info","data":2}}
        a get ~ 0-2 {…
        drop a get
        server > {"method":"notifications/message","params":{"level":"info","data":3}}
        a get after 0-1
        a get ~ 0-2 {"method":"notifications/message","params":{"level":"info","data":2}}
        a get ~ 0-3 {"method":"notifications/message","params":{"level":"info","data":3}}
        server > {"method":"notifications/message","params":{"level":"info","data":4}}
        a get ~ 0-4 {"method":"notifications/message","params":{"level":"info","data":4}}
        drop a get
        server > {"method":"notifications/message","params":{"level":"info","data":5}}
        a get
        a get ~ 0-4
        a get ~ 0-5 {"method":"notifications/message","params":{"level":"info","data":5}}
        "#,
    );
}

// B-11: sent into a connection that nobody read any more, it is not delivered.
#[test]
fn what_a_broken_get_stream_did_not_take_is_queued_for_the_next_one() {
    check(
        r#"
        settings alone, class {"roots":{}}
        up a {"roots":{}}
        a get
        a get ~ 0-0
        server > {"method":"notifications/message","params":{"level":"info","data":1}}
        a get ~ 0-1 {…
        server > {"method":"notifications/message","params":{"level":"info","data":2}}
        a get ~ 0-2 {…
        server > {"id":"q","method":"roots/list"}
        ! asked
        a get ~ 0-3 {…
        drop a get having 1
        server > {"method":"notifications/message","params":{"level":"info","data":4}}
        a get
        a get ~ 0-1
        a get ~ 0-2 {"method":"notifications/message","params":{"level":"info","data":2}}
        a get ~ 0-3 {"id":1,"method":"roots/list"}
        a get ~ 0-4 {"method":"notifications/message","params":{"level":"info","data":4}}
        drop a get having 0
        a get
        a get ~ 0-1
        a get ~ 0-2 {…
        a get ~ 0-3 {…
        a get ~ 0-4 {…
        "#,
    );
}

#[test]
fn what_another_get_stream_has_had_is_not_queued_again() {
    check(
        r#"
        up a
        a get:1
        a get:1 ~ 0-0
        a get:2
        a get:2 ~ 0-0
        server > {"method":"notifications/message","params":{"level":"info","data":1}}
        a get:1 ~ 0-1 {…
        a get:2 ~ 0-1 {…
        server > {"method":"notifications/message","params":{"level":"info","data":2}}
        a get:1 ~ 0-2 {…
        a get:2 ~ 0-2 {…
        drop a get:1 having 1
        drop a get:2 having 0
        a get
        a get ~ 0-1
        a get ~ 0-2 {…
        "#,
    );
}

// B-28.
// checks 37 38
#[test]
fn a_post_stream_that_broke_is_taken_up_again_and_brings_the_answer() {
    check(&format!(
        r#"
        up a
        a get
        a get ~ 0-0
        {STREAMED}
        drop a
        server > {{"method":"notifications/progress","params":{{"progressToken":$1,"progress":3}}}}
        server > {{"method":"notifications/tools/list_changed"}}
        a get ~ 0-1 {{"method":"notifications/tools/list_changed"}}
        a get:again after 1-1
        a get:again ~ 1-2 {{"method":"notifications/progress","params":{{"progressToken":7,"progress":2}}}}
        a get:again ~ 1-3 {{"method":"notifications/progress","params":{{"progressToken":7,"progress":3}}}}
        server > {{"method":"notifications/prompts/list_changed"}}
        a get ~ 0-2 {{"method":"notifications/prompts/list_changed"}}
        server > {{"id":$1,"result":{{}}}}
        a get:again ~ 1-4 {{"id":1,"result":{{}}}}
        a get:again end
        "#
    ));
}

// B-28.
// checks 37
#[test]
fn the_end_of_a_post_stream_can_be_had_after_it_is_over() {
    check(&format!(
        r#"
        up a
        {STREAMED}
        drop a
        server > {{"id":$1,"result":{{}}}}
        ~ 0 in flight
        a get:1 after 1-2
        a get:1 ~ 1-3 {{"id":1,"result":{{}}}}
        a get:1 end
        a get:2 after 1-0
        a get:2 ~ 1-1 {{…
        a get:2 ~ 1-2 {{…
        a get:2 ~ 1-3 {{"id":1,"result":{{}}}}
        a get:2 end
        a get:3 after 1-3
        a get:3 end
        "#
    ));
}

#[test]
fn the_newest_connection_is_the_one_that_counts() {
    check(&format!(
        r#"
        up a
        {STREAMED}
        a get:again after 1-2
        a end
        server > {{"id":$1,"result":{{}}}}
        a get:again ~ 1-3 {{"id":1,"result":{{}}}}
        a get:again end
        "#
    ));
}

#[test]
fn a_stream_that_broke_can_still_time_out_and_be_cancelled() {
    check(&format!(
        r#"
        up a
        {STREAMED}
        drop a
        + 5m
        server < {{"method":"notifications/cancelled","params":{{"requestId":$1}}}}
        a get:again after 1-2
        a get:again ~ 1-3 {{"id":1,"error":{{"code":-32603,"message":"no answer within…
        a get:again end
        "#
    ));
    check(&format!(
        r#"
        up a
        {STREAMED}
        drop a
        a > {{"method":"notifications/cancelled","params":{{"requestId":1}}}}
        server < {{"method":"notifications/cancelled","params":{{"requestId":$1}}}}
        a get:again after 1-2
        a get:again end
        "#
    ));
}

#[test]
fn an_event_that_never_was_or_is_another_sessions_cannot_be_resumed() {
    check(&format!(
        r#"
        up a b
        {STREAMED}
        a get after 1-3
        a get refused UnknownEvent
        a get after 2-0
        a get refused UnknownEvent
        a get after 0-1
        a get refused UnknownEvent
        b get after 1-1
        b get refused UnknownEvent
        a get after 0-0
        "#
    ));
}

#[test]
fn a_finished_stream_is_forgotten_after_eight_more_or_five_minutes() {
    let finished = |first: u32, last: u32| -> String {
        (first..=last)
            .map(|n| {
                format!(
                    "a events > {{\"id\":{n},\"method\":\"ping\"}}\na ~ {n}-0\na ~ {n}-1 {{\"id\":{n},\"result\":{{}}}}\na end\n"
                )
            })
            .collect()
    };
    let (eight, more, last) = (finished(1, 8), finished(9, 9), finished(10, 10));
    check(&format!(
        r#"
        up a
        {eight}
        a get:1 after 1-1
        a get:1 end
        {more}
        a get:1 after 1-1
        a get:1 refused UnknownEvent
        a get:2 after 2-1
        a get:2 end
        + 300s
        {last}
        a get:9 after 9-1
        a get:9 refused UnknownEvent
        a get:10 after 10-0
        a get:10 ~ 10-1 {{"id":10,"result":{{}}}}
        a get:10 end
        "#
    ));
}

// B-12, B-28: nobody may be asked twice.
#[test]
fn a_question_is_not_shown_again_while_it_is_shown_or_once_it_is_answered() {
    check(
        r#"
        settings alone, class {"roots":{}}
        up a {"roots":{}}
        a get:1
        a get:1 ~ 0-0
        server > {"id":"q","method":"roots/list"}
        ! asked
        a get:1 ~ 0-1 {"id":1,"method":"roots/list"}
        a get:2 after 0-0
        drop a get:1
        a get:2 ~ 0-2 {"id":1,"method":"roots/list"}
        a get:3 after 0-0
        drop a get:2
        a get:3 ~ 0-3 {"id":1,"method":"roots/list"}
        a > {"id":1,"result":{}}
        server < {"id":"q","result":{}}
        drop a get:3
        a get:4 after 0-0
        "#,
    );
}

#[test]
fn a_question_on_a_post_stream_that_broke_is_shown_on_the_resumed_one() {
    check(&format!(
        r#"
        settings class {{"roots":{{}}}}
        up a {{"roots":{{}}}}
        {STREAMED}
        drop a
        server > {{"id":"q","method":"roots/list"}}
        ! asked
        a get:again after 1-2
        a get:again ~ 1-3 {{"id":1,"method":"roots/list"}}
        a > {{"id":1,"result":{{}}}}
        server < {{"id":"q","result":{{}}}}
        a get:once-more after 1-2
        a get:again end
        "#
    ));
}

// N-04: as long as a stream is open, and no longer.
#[test]
fn keep_alives_come_every_fifteen_seconds_while_a_stream_is_open() {
    check(
        r#"
        up a
        + 60s
        ~ 0 beats
        a get
        a get ~ 0-0
        + 14s
        ~ 0 beats
        + 1s
        ~ 1 beats
        + 60s
        ~ 4 beats
        drop a get
        + 15s
        ~ 1 beats
        + 60s
        ~ 0 beats
        "#,
    );
}

// Style 3: the oldest is dropped, and counted if nobody has had it.
#[test]
fn the_queue_of_a_session_that_never_listens_is_bounded() {
    let flood = |count: usize| {
        "server > {\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":1}}\n".repeat(count)
    };
    check(&format!(
        "up a\n{}server > {{\"method\":\"x\"}}\n! dropped 1\na get after 0-255\na get ~ 0-256 {{…\na get ~ 0-257 {{…",
        flood(256)
    ));
    let delivered = "a get ~ {…\n".repeat(256);
    check(&format!("up a\n{}a get\na get ~ 0-0\n{delivered}drop a get\nserver > {{\"method\":\"x\"}}", flood(256)));
}

// R-21: a client is told once that it missed something, and of changes it misses none.
#[test]
fn a_client_is_told_what_its_queue_has_dropped() {
    let flood = "server > {\"method\":\"notifications/message\",\"params\":{\"level\":\"error\",\"data\":1}}\n";
    let dropped = format!("{flood}! dropped 1\n").repeat(9);
    let (first, rest) = (flood.repeat(253), "a get ~ {…\n".repeat(253));
    let overflown = format!(
        r#"
        up a
        server > {{"method":"x"}}
        server > {{"method":"notifications/tools/list_changed"}}
        server > {{"method":"notifications/tools/list_changed"}}
        server > {{"method":"x"}}
        {first}
        {dropped}
        "#
    );
    let gap = r#"a get ~ 0-1 {"method":"notifications/message","params":{"level":"warning","logger":"prism","data":{"dropped":9,"log_notes":7,"message":"Up to 9 messages came while nobody read this stream, which keeps no more than 256, and were dropped"}}}"#;
    let change = "a get ~ 0-2 {\"method\":\"notifications/tools/list_changed\"}";
    check(&format!(
        r#"
        {overflown}
        a get
        a get ~ 0-0
        {gap}
        {change}
        {rest}
        a get ~ 0-264 {{…
        a get ~ 0-265 {{…
        drop a get
        a get:2
        a get:2 ~ 0-265
        "#
    ));
    // By its level, as any other note.
    check(&format!(
        r#"
        {overflown}
        a > {{"id":1,"method":"logging/setLevel","params":{{"level":"error"}}}}
        server < {{"id":$1,…
        server > {{"id":$1,"result":{{}}}}
        a < {{"id":1,"result":{{}}}}
        a get
        a get ~ 0-0
        {change}
        {rest}
        a get ~ 0-264 {{…
        a get ~ 0-265 {{…
        "#
    ));
}

#[test]
fn what_a_resumed_post_stream_has_had_is_no_loss() {
    let flood: String = (0..256)
        .map(|_| "server > {\"method\":\"notifications/progress\",\"params\":{\"progressToken\":$1,\"progress\":3}}\n")
        .collect();
    let had = "a get:again ~ {…\n".repeat(256);
    check(&format!(
        r#"
        up a
        {STREAMED}
        drop a
        {flood}
        a get:again after 1-2
        {had}
        drop a get:again
        server > {{"method":"notifications/progress","params":{{"progressToken":$1,"progress":4}}}}
        "#
    ));
}

// R-21: nor does anything get lost in silence on its way from another server to the hub.
#[test]
fn a_client_is_told_what_did_not_get_through_to_its_home() {
    check(
        r#"
        up a b
        a get
        a get ~ 0-0
        missed a 3
        a get ~ {"method":"notifications/message","params":{"level":"warning","logger":"prism","data":{"dropped":3,"message":"3 messages came while Prism had too much to do, and were dropped"}}}
        b > {"id":1,"method":"logging/setLevel","params":{"level":"error"}}
        server < {"id":$1,…
        b < …
        b get
        b get ~ 0-0
        missed b 3
        "#,
    );
}
