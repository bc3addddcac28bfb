//! Calls that were cancelled and are never answered: they block nobody, and nobody else is asked on their behalf.

use super::check;

// R-15, B-04: for as long as the child lives; and once that was in somebody's way, the child does not live for long.
#[test]
fn what_is_asked_on_behalf_of_a_cancelled_call_is_put_to_nobody_else_however_late() {
    check(
        r#"
        settings class {"sampling":{}}
        up a b {"sampling":{}}
        a > {"id":1,"method":"tools/call","params":{"name":"x"}}
        server < {"id":$1,…
        a > {"method":"notifications/cancelled","params":{"requestId":1}}
        server < {"method":"notifications/cancelled",…
        a cancelled
        + 10m
        ~ 0 in flight
        b > {"id":1,"method":"tools/call","params":{"name":"x"}}
        server < {"id":$2,…
        server > {"id":5,"method":"sampling/createMessage","params":{}}
        ! asked
        ! ambiguous
        server < {"id":5,"error":{"code":-32603,"message":"ambiguous_owner: …
        + 1s
        server > {"id":$2,"result":{}}
        ! answered x
        b < {"id":1,"result":{}}
        + 1s
        ! stop
        ! start
        server < {"id":$i,"method":"initialize",…
        greet
        ! ready s 1
        server < {"method":"notifications/initialized"}
        b > {"id":2,"method":"tools/call","params":{"name":"x"}}
        server < {"id":$3,…
        server > {"id":6,"method":"sampling/createMessage","params":{}}
        ! asked
        b ~ 1-0
        b ~ {"id":1,"method":"sampling/createMessage","params":{}}
        "#,
    );
}

// R-15: its own client's next call is asked, and an answer lays the ghost.
#[test]
fn a_ghost_is_in_nobodys_way_but_others_and_gone_when_it_is_answered() {
    let ghost = r#"
        settings class {"sampling":{},"elicitation":{}}
        up a b {"sampling":{},"elicitation":{}}
        a > {"id":1,"method":"tools/call","params":{"name":"x"}}
        server < {"id":$1,…
        a > {"method":"notifications/cancelled","params":{"requestId":1}}
        server < {"method":"notifications/cancelled",…
        a cancelled
        + 1m"#;
    check(&format!(
        r#"
        {ghost}
        server > {{"id":5,"method":"sampling/createMessage","params":{{}}}}
        ! asked
        server < {{"id":5,"error":{{"code":-32603,"message":"the call that asks this was cancelled"}}}}
        server > {{"id":6,"method":"elicitation/create","params":{{}}}}
        ! asked
        server < {{"id":6,"result":{{"action":"cancel"}}}}
        a > {{"id":2,"method":"tools/call","params":{{"name":"x"}}}}
        server < {{"id":$2,…
        server > {{"id":7,"method":"sampling/createMessage","params":{{}}}}
        ! asked
        a ~ 1-0
        a ~ {{"id":1,"method":"sampling/createMessage","params":{{}}}}
        "#
    ));
    check(&format!(
        r#"
        {ghost}
        server > {{"id":$1,"result":"late"}}
        ! answered x
        b > {{"id":2,"method":"tools/call","params":{{"name":"x"}}}}
        server < {{"id":$2,…
        server > {{"id":7,"method":"sampling/createMessage","params":{{}}}}
        ! asked
        b ~ 1-0
        b ~ {{"id":1,"method":"sampling/createMessage","params":{{}}}}
        "#
    ));
}

#[test]
fn more_ghosts_than_are_remembered_leave_no_question_certain() {
    let each = |text: &dyn Fn(usize) -> String| (0..=256).map(text).collect::<String>();
    let cancelled = each(&|n| {
        format!(
            r#"a > {{"id":1,"method":"tools/call","params":{{"name":"x"}}}}
            server < {{"id":$g{n},…
            a > {{"method":"notifications/cancelled","params":{{"requestId":1}}}}
            server < {{"method":"notifications/cancelled",…
            a cancelled
            "#
        )
    });
    let answered =
        each(&|n| format!("server > {{\"id\":$g{n},\"result\":{{}}}}\n{}\n", if n == 0 { "" } else { "! answered x" }));
    check(&format!(
        r#"
        settings class {{"sampling":{{}}}}
        up a b {{"sampling":{{}}}}
        {cancelled}
        + 1s
        ~ 256 exchanges
        {answered}
        ~ 0 exchanges
        b > {{"id":2,"method":"tools/call","params":{{"name":"x"}}}}
        server < {{"id":$2,…
        server > {{"id":7,"method":"sampling/createMessage","params":{{}}}}
        ! asked
        ! ambiguous
        server < {{"id":7,…
        "#
    ));
}
