//! Lists that several ask for at once, and lists that are kept (mcp-eras 5.11).

use super::check;

// checks 119
#[test]
fn a_list_that_two_want_at_once_is_fetched_once_and_each_hears_it_in_its_own_words() {
    check(
        r#"
        up a b
        a > {"id":1,"method":"tools/list"}
        server < {"id":$1,"method":"tools/list"}
        b > {"id":"x","method":"tools/list","params":{"_meta":{"progressToken":1}}}
        modern:c > {"id":3,"method":"tools/list","params":{"_meta":{‹{}›}}}
        a:2 > {"id":2,"method":"tools/list","params":{"cursor":"2"}}
        server < {"id":$2,"method":"tools/list","params":{"cursor":"2"}}
        server > {"id":$1,"result":{"tools":[1.0]}}
        b < {"id":"x","result":{"tools":[1.0]}}
        modern:c < {"id":3,"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[1.0],"_meta":{‹s›}}}
        a < {"id":1,"result":{"tools":[1.0]}}
        server > {"id":$2,"result":{"tools":[2]}}
        a:2 < {"id":2,"result":{"tools":[2]}}
        ~ 0 exchanges
        "#,
    );
}

// R-56: what the link keeps is put right by the server's own note. What a modern client keeps is not, unless it listens.
// checks 119
#[test]
fn a_list_is_kept_until_its_time_is_up_or_it_changes_but_not_by_a_modern_client() {
    check(
        r#"
        up a b
        a > {"id":1,"method":"tools/list"}
        server < {"id":$1,"method":"tools/list"}
        server > {"id":$1,"result":{"tools":[1]}}
        a < {"id":1,"result":{"tools":[1]}}
        b > {"id":2,"method":"tools/list","params":{}}
        b < {"id":2,"result":{"tools":[1]}}
        + 10s
        modern:c > {"id":3,"method":"tools/list","params":{"_meta":{‹{}›}}}
        modern:c < {"id":3,"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[1],"_meta":{‹s›}}}
        a get
        a get ~ 0-0
        server > {"method":"notifications/tools/list_changed"}
        a get ~ {"method":"notifications/tools/list_changed"}
        a > {"id":4,"method":"tools/list"}
        server < {"id":$4,"method":"tools/list"}
        server > {"id":$4,"result":{"tools":[2]}}
        a < {"id":4,"result":{"tools":[2]}}
        a > {"id":5,"method":"prompts/list"}
        server < {"id":$5,"method":"prompts/list"}
        server > {"id":$5,"error":{"code":-32603,"message":"no"}}
        a < {"id":5,"error":{"code":-32603,"message":"no"}}
        a json > {"id":6,"method":"prompts/list"}
        server < {"id":$6,"method":"prompts/list"}
        + 30s
        a fault timeout
        server < {"method":"notifications/cancelled",…
        a > {"id":7,"method":"tools/list"}
        server < {"id":$7,"method":"tools/list"}
        "#,
    );
}

#[test]
fn whoever_waits_for_anothers_list_asks_itself_when_that_one_is_cancelled() {
    check(
        r#"
        up a b c
        a > {"id":1,"method":"tools/list"}
        server < {"id":$1,"method":"tools/list"}
        b > {"id":2,"method":"tools/list"}
        c > {"id":3,"method":"tools/list"}
        c > {"method":"notifications/cancelled","params":{"requestId":3}}
        c cancelled
        a > {"method":"notifications/cancelled","params":{"requestId":1}}
        server < {"method":"notifications/cancelled","params":{"requestId":$1}}
        a cancelled
        server < {"id":$2,"method":"tools/list"}
        server > {"id":$1,"result":{"tools":["late"]}}
        server > {"id":$2,"result":{"tools":[]}}
        b < {"id":2,"result":{"tools":[]}}
        ~ 0 exchanges
        "#,
    );
}

#[test]
fn a_list_that_dies_with_its_server_fails_for_all_who_wait_and_is_not_kept() {
    check(
        r#"
        up a b
        a > {"id":1,"method":"tools/list"}
        server < {"id":$1,"method":"tools/list"}
        b > {"id":2,"method":"tools/list"}
        exit
        a fault exited
        b fault exited
        ~ 0 exchanges
        "#,
    );
}

// checks 119
#[test]
fn a_modern_server_says_how_long_its_answers_are_good_and_for_whom() {
    check(
        r#"
        settings pinned modern
        up modern
        modern:a > {"id":1,"method":"resources/read","params":{"uri":"u","_meta":{‹{}›}}}
        server < {"id":$1,…
        server > {"id":$1,"result":{"resultType":"complete","ttlMs":1000,"cacheScope":"public","contents":[]}}
        modern:a < {"id":1,"result":{"resultType":"complete","ttlMs":1000,"cacheScope":"public","contents":[]}}
        + 400ms
        modern:b > {"id":2,"method":"resources/read","params":{"uri":"u","_meta":{‹{}›}}}
        modern:b < {"id":2,"result":{"resultType":"complete","ttlMs":600,"cacheScope":"public","contents":[]}}
        + 600ms
        modern:b > {"id":3,"method":"resources/read","params":{"uri":"u","_meta":{‹{}›}}}
        server < {"id":$3,…
        server > {"id":$3,"result":{"resultType":"complete","ttlMs":0,"cacheScope":"public","contents":[]}}
        modern:b < {"id":3,"result":{"resultType":"complete","ttlMs":0,"cacheScope":"public","contents":[]}}
        modern:b > {"id":4,"method":"resources/read","params":{"uri":"u","_meta":{‹{}›}}}
        server < {"id":$4,…
        "#,
    );
}

// R-20: some servers offer more to clients that can do more, and a modern one hears it with the request.
#[test]
fn a_list_of_a_modern_server_is_shared_by_clients_that_can_do_the_same() {
    check(
        r#"
        settings pinned modern
        up modern
        modern:a > {"id":1,"method":"tools/list","params":{"_meta":{‹{}›}}}
        server < {"id":$1,…
        modern:b > {"id":2,"method":"tools/list","params":{"_meta":{‹{"sampling":{}}›}}}
        server < {"id":$2,…
        modern:c > {"id":3,"method":"tools/list","params":{"_meta":{‹{"sampling":{}}›}}}
        server > {"id":$2,"result":{"resultType":"complete","ttlMs":1000,"cacheScope":"public","tools":[1,2]}}
        modern:b < {"id":2,"result":{"resultType":"complete","ttlMs":1000,"cacheScope":"public","tools":[1,2]}}
        modern:c < {"id":3,"result":{"resultType":"complete","ttlMs":1000,"cacheScope":"public","tools":[1,2]}}
        server > {"id":$1,"result":{"resultType":"complete","ttlMs":1000,"cacheScope":"public","tools":[1]}}
        modern:a < {"id":1,"result":{"resultType":"complete","ttlMs":1000,"cacheScope":"public","tools":[1]}}
        modern:b > {"id":4,"method":"tools/list","params":{"_meta":{‹{"sampling":{}}›}}}
        modern:b < {"id":4,…"tools":[1,2]}}
        modern:a > {"id":5,"method":"tools/list","params":{"_meta":{‹{}›}}}
        modern:a < {"id":5,…"tools":[1]}}
        "#,
    );
}

// R-56: a client that was told of a change, or has made one, must not be given what another asked for before.
#[test]
fn a_list_that_was_asked_for_before_a_change_is_nobody_elses_and_not_kept() {
    check(
        r#"
        up a b
        a > {"id":1,"method":"tools/list"}
        server < {"id":$1,"method":"tools/list"}
        b get
        b get ~ 0-0
        server > {"method":"notifications/tools/list_changed"}
        b get ~ {"method":"notifications/tools/list_changed"}
        b > {"id":2,"method":"tools/list"}
        server < {"id":$2,"method":"tools/list"}
        server > {"id":$2,"result":{"tools":[1,2]}}
        b < {"id":2,"result":{"tools":[1,2]}}
        server > {"id":$1,"result":{"tools":[1]}}
        a < {"id":1,"result":{"tools":[1]}}
        a > {"id":3,"method":"tools/list"}
        a < {"id":3,"result":{"tools":[1,2]}}
        "#,
    );
}

// R-56: over HTTP the note comes on a stream of its own, after the answer of the call that it is about, and to that session only.
#[test]
fn over_http_a_list_is_never_older_than_the_last_answer() {
    check(
        r#"
        settings http
        up a b
        a > {"id":1,"method":"tools/list"}
        server < {"id":$1,"method":"tools/list"}
        b > {"id":1,"method":"tools/call","params":{"name":"grow"}}
        server < {"id":$2,…
        server about $2 > {"id":$2,"result":{}}
        b < {"id":1,"result":{}}
        b > {"id":2,"method":"tools/list"}
        server < {"id":$3,"method":"tools/list"}
        server about $3 > {"id":$3,"result":{"tools":[1,2]}}
        b < {"id":2,"result":{"tools":[1,2]}}
        server about $1 > {"id":$1,"result":{"tools":[1]}}
        a < {"id":1,"result":{"tools":[1]}}
        a > {"id":3,"method":"tools/list"}
        server < {"id":$4,"method":"tools/list"}
        "#,
    );
}
