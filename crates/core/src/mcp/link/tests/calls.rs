//! Calls and their answers: whose id, whose token, and on what the answer comes.

use super::check;

/// Every id and token that a client may choose comes back as it was written, and the server sees our own (B-04).
// checks 10 96
#[test]
fn an_id_and_a_token_come_back_byte_by_byte() {
    for id in ["1", r#""1""#, "0", "-7", "9007199254740993", r#""""#, r#""a\u0031\"b""#, "18446744073709551616"] {
        for token in ["1", r#""1""#, "9007199254740993", r#""\u0074""#, "1.50"] {
            check(&format!(
                r#"
                up a
                a > {{"id":{id},"method":"tools/call","params":{{"name":"x","_meta":{{"progressToken":{token}}}}}}}
                server < {{"id":$1,"method":"tools/call","params":{{"name":"x","_meta":{{"progressToken":$1}}}}}}
                server > {{"method":"notifications/progress","params":{{"progressToken":$1,"progress":1}}}}
                a ~ 1-0
                a ~ 1-1 {{"method":"notifications/progress","params":{{"progressToken":{token},"progress":1}}}}
                server > {{"result":{{"ok":true}},"id":$1}}
                a ~ 1-2 {{"result":{{"ok":true}},"id":{id}}}
                a end
                ~ 0 in flight
                "#
            ));
        }
    }
}

// Invariant 4.
// checks 11
#[test]
fn what_is_not_ours_passes_untouched() {
    let odd = "\"n\":1.0,\"big\":1e400,\"u\":\"\u{2028}\u{2029}\u{85}\",\"lone\":\"\\ud800\",\"n\":1.0,\"e\":\"\\u00e9\", \"s\" : [ ]";
    check(&format!(
        r#"
        up a
        a > {{"id":1,"method":"tools/call","params":{{"name":"x","arguments":{{{odd}}},"_meta":{{"traceparent":"00-1","x/y":{{"progressToken":3}}}}}}}}
        server < {{"id":$1,"method":"tools/call","params":{{"name":"x","arguments":{{{odd}}},"_meta":{{"traceparent":"00-1","x/y":{{"progressToken":3}}}}}}}}
        server > {{"id":$1,"result":{{{odd},"id":7}}}}
        a < {{"id":1,"result":{{{odd},"id":7}}}}
        "#
    ));
}

// checks 93
#[test]
fn a_pretty_printed_body_becomes_one_line() {
    check(
        r#"
        up a
        a > {⏎  "jsonrpc": "2.0",⏎  "id": 1,⏎  "method": "tools/call",⏎  "params": {"name": "x\n"}⏎}⏎
        server < {   "jsonrpc": "2.0",   "id": $1,   "method": "tools/call",   "params": {"name": "x\n"} }…
        "#,
    );
}

// B-17.
// checks 98
#[test]
fn the_same_id_twice_in_flight_is_answered_on_each_its_own_post() {
    check(
        r#"
        up a
        a:x > {"id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":1}}}
        server < {"id":$1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":$1}}}
        a:y > {"id":1,"method":"tools/call","params":{"name":"y","_meta":{"progressToken":1}}}
        server < {"id":$2,"method":"tools/call","params":{"name":"y","_meta":{"progressToken":$2}}}
        server > {"method":"notifications/progress","params":{"progressToken":$1,"progress":5}}
        a:x ~ 1-0
        a:x ~ {"method":"notifications/progress","params":{"progressToken":1,"progress":5}}
        server > {"id":$2,"result":"y"}
        a:y < {"id":1,"result":"y"}
        server > {"id":$1,"result":"x"}
        a:x ~ {"id":1,"result":"x"}
        a:x end
        "#,
    );
}

// B-04.
// checks 97
#[test]
fn two_clients_with_the_same_ids_and_tokens_each_get_their_own() {
    check(
        r#"
        up a b
        a > {"id":1,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":"t"}}}
        server < {"id":$1,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":$1}}}
        b > {"id":1,"method":"tools/call","params":{"name":"b","_meta":{"progressToken":"t"}}}
        server < {"id":$2,"method":"tools/call","params":{"name":"b","_meta":{"progressToken":$2}}}
        server > {"method":"notifications/progress","params":{"progressToken":$2,"progress":1}}
        b ~ 1-0
        b ~ {"method":"notifications/progress","params":{"progressToken":"t","progress":1}}
        server > {"id":$2,"result":"for b"}
        b ~ {"id":1,"result":"for b"}
        b end
        server > {"id":$1,"result":"for a"}
        a < {"id":1,"result":"for a"}
        "#,
    );
}

// mcp-eras 5.4.
// checks 96
#[test]
fn a_server_that_turns_ids_into_strings_is_understood() {
    check(
        r#"
        up a
        a > {"id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":7}}}
        server < {"id":$1,…
        server > {"method":"notifications/progress","params":{"progressToken":"$1","progress":1}}
        a ~ 1-0
        a ~ {"method":"notifications/progress","params":{"progressToken":7,"progress":1}}
        server > {"id":"$1","result":{}}
        a ~ {"id":1,"result":{}}
        a end
        "#,
    );
}

#[test]
fn an_error_of_the_servers_is_an_answer_like_any_other() {
    check(
        r#"
        up a
        a > {"id":"e","method":"no/such"}
        server < {"id":$1,"method":"no/such"}
        server > {"id":$1,"error":{"code":-32601,"message":"?","data":{"id":$1}}}
        a < {"id":"e","error":{"code":-32601,"message":"?","data":{"id":$1}}}
        "#,
    );
}

// Forwarding progress that is late or foreign makes clients close the connection.
// checks 99
#[test]
fn progress_that_is_late_foreign_or_was_never_asked_for_is_dropped() {
    check(
        r#"
        up a b
        a > {"id":1,"method":"tools/call","params":{"name":"x"}}
        server < {"id":$1,…
        b > {"id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":1}}}
        server < {"id":$2,…
        server > {"method":"notifications/progress","params":{"progressToken":$1,"progress":1}}
        server > {"method":"notifications/progress","params":{"progressToken":99999,"progress":1}}
        server > {"method":"notifications/progress","params":{"progressToken":"t","progress":1}}
        server > {"method":"notifications/progress","params":{"progress":1}}
        server > {"id":$2,"result":{}}
        b < {"id":1,"result":{}}
        server > {"method":"notifications/progress","params":{"progressToken":$2,"progress":2}}
        server > {"id":$1,"result":{}}
        a < {"id":1,"result":{}}
        "#,
    );
}

// checks 99
#[test]
fn an_answer_to_no_call_or_a_second_one_reaches_nobody() {
    check(
        r#"
        up a
        a > {"id":1,"method":"tools/list"}
        server < {"id":$1,"method":"tools/list"}
        server > {"id":0,"result":{}}
        server > {"id":99999,"result":{}}
        server > {"id":"a","result":{}}
        server > {"id":null,"error":{"code":-32600,"message":"?"}}
        server > {"id":$1,"result":1}
        a < {"id":1,"result":1}
        server > {"id":$1,"result":2}
        ~ 0 exchanges
        "#,
    );
}

// B-06, N-02.
// checks 31
#[test]
fn a_client_that_takes_only_json_gets_json_even_with_progress() {
    check(
        r#"
        up a
        a json > {"id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":1}}}
        server < {"id":$1,…
        server > {"method":"notifications/progress","params":{"progressToken":$1,"progress":1}}
        server > {"method":"notifications/message","params":{"level":"info","data":"falls back to the GET stream"}}
        server > {"id":$1,"result":{}}
        a < {"id":1,"result":{}}
        a get
        a get ~ 0-0
        a get ~ {"method":"notifications/message","params":{"level":"info","data":"falls back to the GET stream"}}
        "#,
    );
}

// B-06.
// checks 31
#[test]
fn a_client_that_takes_only_events_gets_a_stream() {
    check(
        r#"
        up a
        a events > {"id":1,"method":"tools/list"}
        server < {"id":$1,"method":"tools/list"}
        server > {"id":$1,"result":{}}
        a ~ 1-0
        a ~ 1-1 {"id":1,"result":{}}
        a end
        a events > {"id":2,"method":"ping"}
        a ~ 2-0
        a ~ 2-1 {"id":2,"result":{}}
        a end
        "#,
    );
}

// checks 46 100
#[test]
fn a_ping_is_answered_by_us_both_ways() {
    check(
        r#"
        open a
        ! start
        server < {"id":$0,"method":"initialize",…
        a:p > {"id":"p","method":"ping"}
        a:p < {"id":"p","result":{}}
        server > {"id":"q","method":"ping"}
        server < {"id":"q","result":{}}
        greet
        server < {"method":"notifications/initialized"}
        ! ready s 1
        a < {"id":0,…
        a > {"id":1,"method":"tools/call","params":{"name":"busy"}}
        server < {"id":$1,…
        a:p > {"id":2,"method":"ping"}
        a:p < {"id":2,"result":{}}
        server > {"id":9007199254740993,"method":"ping"}
        server < {"id":9007199254740993,"result":{}}
        server > {"id":$1,"result":{}}
        a < {"id":1,"result":{}}
        "#,
    );
}

// B-05, B-04: between several clients nothing says whose roots changed.
#[test]
fn a_clients_note_reaches_only_a_server_of_its_own() {
    check(
        r#"
        up a b
        a > {"method":"notifications/roots/list_changed"}
        a > {"method":"notifications/initialized"}
        "#,
    );
    check(
        r#"
        settings alone
        up a
        a > {"method":"notifications/initialized"}
        a > {⏎"jsonrpc":"2.0","method":"notifications/roots/list_changed"}
        server < { "jsonrpc":"2.0","method":"notifications/roots/list_changed"}
        "#,
    );
}

// B-04: what a destination that might ask is judged by.
#[test]
fn tools_and_their_calls_are_counted_where_clients_can_be_asked() {
    check(
        r#"
        settings class {"roots":{}}
        up a {"roots":{}}
        a > {"id":1,"method":"tools/list"}
        server < {"id":$1,…
        server > {"id":$1,"result":{"tools":[{"name":"x"},{"name":"y"}],"nextCursor":"c"}}
        a < …
        ! listed x y …and more
        a > {"id":2,"method":"tools/list","params":{"cursor":"c"}}
        server < {"id":$2,…
        server > {"id":$2,"result":{"tools":[{"name":"z"}]}}
        a < …
        ! listed z
        a > {"id":3,"method":"tools/call","params":{"name":"\u0078"}}
        server < {"id":$3,…
        server > {"id":$3,"result":{}}
        ! answered x
        a < {"id":3,"result":{}}
        "#,
    );
}

// D-05.
#[test]
fn a_probe_is_a_list_of_tools_that_reaches_the_child() {
    check(
        r#"
        probe
        probe refused
        up a
        probe
        server < {"id":$1,"method":"tools/list"}
        server > {"id":$1,"result":{"tools":[]}}
        probe <
        probe
        server < {"id":$2,"method":"tools/list"}
        server > {"id":$2,"error":{"code":-32603,"message":"no"}}
        probe fault refused: it answers `tools/list` with an error
        probe
        server < {"id":$3,"method":"tools/list"}
        exit
        probe fault exited
        probe
        probe refused
        "#,
    );
}

// D-05.
#[test]
fn a_server_without_tools_is_pinged() {
    check(
        r#"
        open a
        ! start
        server < …
        greet {"logging":{}}
        ! ready s 1
        server < …
        a < …
        probe
        server < {"id":$1,"method":"ping"}
        server > {"id":$1,"error":{"code":-32601,"message":"what?"}}
        probe <
        "#,
    );
}

#[test]
fn a_probe_that_nobody_waits_for_leaves_nothing_behind() {
    check(
        r#"
        up a
        probe
        server < {"id":$1,"method":"tools/list"}
        left probe
        ~ 0 exchanges
        server > {"id":$1,"result":{}}
        "#,
    );
}
