//! What is bounded, and what happens at the bound (invariant 5).

use super::check;

// Style 3: refuse, rather than hide the stall.
#[test]
fn a_session_with_too_many_calls_is_refused_more_and_others_are_not() {
    let calls: String = (0..512)
        .map(|n| {
            format!(
                "a:{n} > {{\"id\":1,\"method\":\"completion/complete\"}}\nserver < {{\"id\":$w{n},\"method\":\"completion/complete\"}}\n"
            )
        })
        .collect();
    check(&format!(
        r#"
        up a b
        {calls}
        a:x > {{"id":1,"method":"completion/complete"}}
        a:x refused Busy
        b > {{"id":1,"method":"completion/complete"}}
        server < {{"id":$b,"method":"completion/complete"}}
        server > {{"id":$w7,"result":{{}}}}
        a:7 < {{"id":1,"result":{{}}}}
        a:x > {{"id":1,"method":"completion/complete"}}
        server < {{"id":$x,"method":"completion/complete"}}
        ~ 513 in flight
        "#
    ));
}

#[test]
fn when_too_many_calls_wait_for_the_child_more_are_refused_and_so_are_sessions() {
    let calls = |of: &str| -> String {
        (0..512).map(|n| format!("{of}:{n} > {{\"id\":1,\"method\":\"tools/list\"}}\n")).collect()
    };
    let (a, b) = (calls("a"), calls("b"));
    check(&format!(
        r#"
        up a b c
        exit
        {a}
        {b}
        ~ 1024 held
        c > {{"id":1,"method":"tools/list"}}
        c refused Busy
        open d
        d refused Busy
        ~ 3 sessions
        c > {{"id":1,"method":"ping"}}
        c refused Busy
        "#
    ));
}

// Style 3: the child's own pipe is what stops being read.
#[test]
fn a_child_that_stops_reading_is_told_no_more_than_it_can_hold() {
    let long = "x".repeat(1 << 20);
    let calls: String = (0..4)
        .map(|n| format!("a:{n} > {{\"id\":{n},\"method\":\"tools/call\",\"params\":{{\"name\":\"{long}\"}}}}\n"))
        .collect();
    check(&format!(
        r#"
        settings alone, timeout off
        up a
        stuck
        {calls}
        a > {{"method":"notifications/roots/list_changed"}}
        a:x > {{"id":1,"method":"tools/list"}}
        a:x refused Stuck
        probe
        probe refused
        server > {{"id":1,"method":"ping"}}
        server > {{"id":2,"method":"roots/list"}}
        server > {{"id":3,"method":"x"}}
        stateless > {{"id":1,"method":"tools/list"}}
        stateless refused Stuck
        reads
        server < …
        server < …
        server < …
        server < …
        probe
        server < {{"id":$1,"method":"tools/list"}}
        a > {{"method":"notifications/roots/list_changed"}}
        server < {{"method":"notifications/roots/list_changed"}}
        "#
    ));
}

// A refused session is none: what the one before it hears stays certain.
#[test]
fn a_session_that_was_refused_takes_nothing_from_the_one_there_is() {
    let long = "x".repeat(5 << 20);
    check(&format!(
        r#"
        up a
        stuck
        a > {{"id":1,"method":"tools/call","params":{{"name":"{long}"}}}}
        open b
        b refused Stuck
        reads
        server < …
        server > {{"method":"notifications/tools/list_changed"}}
        server > {{"method":"notifications/custom"}}
        a get
        a get ~ 0-0
        a get ~ {{"method":"notifications/tools/list_changed"}}
        a get ~ {{"method":"notifications/custom"}}
        "#
    ));
}

#[test]
fn a_session_that_watches_too_much_is_refused_more() {
    let watched: String = (0..1024)
        .map(|n| {
            format!(
                "a > {{\"id\":1,\"method\":\"resources/subscribe\",\"params\":{{\"uri\":\"u:{n}\"}}}}\nserver < {{\"id\":$w{n},…\n\
                 server > {{\"id\":$w{n},\"result\":{{}}}}\na < …\n"
            )
        })
        .collect();
    check(&format!(
        r#"
        up a b
        {watched}
        a > {{"id":2,"method":"resources/subscribe","params":{{"uri":"u:more"}}}}
        a < {{"id":2,"error":{{"code":-32603,"message":"too many subscriptions in this session"}}}}
        b > {{"id":2,"method":"resources/subscribe","params":{{"uri":"u:more"}}}}
        server < {{"id":$b,…
        ~ 1025 watches
        "#
    ));
}

// Style 3: the oldest go first, and the streams that run do not escape the bound of their session.
#[test]
fn what_is_kept_for_a_client_that_reads_nothing_is_bounded() {
    let data = "x".repeat(100_000);
    let notes = format!("server > {{\"method\":\"x\",\"params\":{{\"d\":\"{data}\"}}}}\n").repeat(10);
    let more = format!("server > {{\"method\":\"x\",\"params\":{{\"d\":\"{data}\"}}}}\n! dropped 1\n").repeat(20);
    check(&format!("up a\n{notes}{more}~ 1048576 bytes kept at most"));
    let post = |n: usize| {
        let progress = format!(
            "server > {{\"method\":\"notifications/progress\",\"params\":{{\"progressToken\":$p{n},\"message\":\"{data}\"}}}}\n\
             a:{n} ~ {{…\n"
        );
        format!(
            "a:{n} > {{\"id\":1,\"method\":\"tools/call\",\"params\":{{\"_meta\":{{\"progressToken\":1}}}}}}\nserver < {{\"id\":$p{n},…\n{}",
            progress.replacen(&format!("a:{n} ~"), &format!("a:{n} ~ {}-0\na:{n} ~", n + 1), 1) + &progress.repeat(11)
        )
    };
    let posts: String = (0..16).map(post).collect();
    check(&format!("up a\n{posts}~ 9437184 bytes kept at most"));
}

// Style 3.
#[test]
fn a_call_has_at_most_sixteen_questions_open() {
    let asked: String = (1..=16)
        .map(|n| format!("server > {{\"id\":{n},\"method\":\"elicitation/create\",\"params\":{{}}}}\n! asked\n"))
        .collect();
    check(&format!(
        r#"
        settings class {{"elicitation":{{}}}}
        up modern
        modern:a > {{"id":1,"method":"tools/call","params":{{"name":"x","_meta":{{‹{{"elicitation":{{}}}}›}}}}}}
        server < {{"id":$1,…
        {asked}
        server > {{"id":17,"method":"elicitation/create","params":{{}}}}
        ! asked
        server < {{"id":17,"error":{{"code":-32603,"message":"too many questions are open"}}}}
        + 20ms
        modern:a < {{"id":1,"result":{{"resultType":"input_required",…
        "#
    ));
}

// Style 3.
#[test]
fn there_is_an_end_to_calls_that_are_parked() {
    // All before the first question: from then on they would take turns.
    let call = |n: u32| {
        format!(
            r#"
            modern:{n} > {{"id":1,"method":"tools/call","params":{{"name":"x","_meta":{{‹{{"elicitation":{{}}}}›}}}}}}
            server < {{"id":${n},…
            "#
        )
    };
    let question = |n: u32| {
        let asked = r#""method":"elicitation/create","params":{}"#;
        format!("server about ${n} > {{\"id\":\"q{n}\",{asked}}}\n! asked\n")
    };
    let calls: String = (1..=65).map(call).collect();
    let asked: String = (1..=64).map(|n| format!("{}\n+ 20ms\nmodern:{n} < {{\"id\":1,…\n", question(n))).collect();
    check(&format!(
        r#"
        settings http, class {{"elicitation":{{}}}}
        up modern
        {calls}
        {asked}
        ~ 64 parked
        {}
        server < {{"id":"q65","error":{{"code":-32603,"message":"too many questions are open"}}}}
        + 20ms
        ~ 64 parked
        "#,
        question(65)
    ));
}
