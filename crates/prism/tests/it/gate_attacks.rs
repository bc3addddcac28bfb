//! Attacks on the gate: each is refused, and each is in the audit log.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Method, client::conn::http1};
use hyper_util::rt::TokioIo;
use prism_config::home::Token;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::support::{
    gate::{Gate, answer, text},
    process, soon, until,
};

const NOBODY: &str = "00000000-0000-4000-8000-000000000000";

fn is_refused(line: &Value, action: &str) -> bool {
    line["action"] == action && line["result"].as_str().is_some_and(|result| result.starts_with("refused: "))
}

/// Every route that decides or shows something, with a body that would be understood.
fn management_routes(request: &str, session: &str) -> Vec<(Method, &'static str, &'static str, Value)> {
    let digest = "0".repeat(64);
    vec![
        (Method::GET, "/mcp/requests", "requests", Value::Null),
        (Method::POST, "/mcp/approve", "approve", json!({ "request_id": request })),
        (Method::POST, "/mcp/deny", "deny", json!({ "request_id": request })),
        (Method::GET, "/mcp/sessions", "sessions", Value::Null),
        (Method::GET, "/mcp/confirmations", "confirmations", Value::Null),
        (Method::POST, "/mcp/confirm", "confirm", json!({"confirmation_id": NOBODY, "digest": digest, "allow": true})),
        (Method::GET, "/mcp/events", "events", Value::Null),
        (Method::GET, "/mcp/logs", "logs", Value::Null),
        (Method::POST, "/mcp/revoke", "revoke", json!({ "session_id": session })),
    ]
}

//
#[tokio::test]
async fn an_agents_token_opens_no_management_route() {
    let gate = Gate::start().await;
    let granted = gate.granted(&["read:files"]).await;
    let asked = gate.ask("fixer", &["read:files"]).await;
    let client = gate.daemon.token();
    // A grant's token is an agent's, too; only its own grant can be given up with it.
    for secret in [Some(client.as_str()), Some(granted.token.as_str()), Some("wrong"), None] {
        for (method, path, _, body) in management_routes(&asked.id, NOBODY) {
            let body = if body.is_null() { String::new() } else { body.to_string() };
            let reply = gate.request(method, path, secret).body(body).send().await;
            let status = reply.status;
            let told = reply.json().await;
            assert!(matches!(status, 401 | 403), "{path} with {secret:?}: {status} {told}");
            assert!(told["error"]["code"].is_string(), "{path}: {told}");
        }
    }
    for (_, _, action, _) in management_routes(&asked.id, NOBODY) {
        // Without the management secret a revocation is a holder's, who is not let in.
        let action = if action == "revoke" { "connect" } else { action };
        until(&format!("{action} is on record"), async || gate.audit().iter().any(|line| is_refused(line, action)))
            .await;
    }
    assert_eq!(gate.request_seen(&asked.id).await["status"], "PENDING");
    assert_eq!(gate.grant_seen(&granted.id).await["status"], "APPROVED");
    let failed = gate.daemon.metric("prism_gate_failed_auth_total{at=\"approve\"}").await;
    assert!(failed.is_some_and(|count| count >= 4), "{failed:?}");
}

// the management secret is no client's token either, so that nobody is tempted to hand it to an agent.
#[tokio::test]
async fn the_two_secrets_are_not_the_same() {
    let gate = Gate::start().await;
    assert_ne!(gate.management(), gate.daemon.token());
    let mcp = gate.request(Method::POST, "/mcp", Some(&gate.management())).body("{}").send().await;
    assert_eq!(mcp.status, 401);
    // without a scheme.
    let bare = gate.request(Method::GET, "/mcp/requests", None).header("authorization", &gate.management());
    assert_eq!(bare.send().await.status, 200);
}

#[tokio::test]
async fn a_forged_origin_is_refused_even_with_the_secret() {
    let gate = Gate::start().await;
    let asked = gate.ask("fixer", &["read:files"]).await;
    let port = gate.daemon.port();
    let (tls, name) = (format!("https://127.0.0.1:{port}"), format!("http://localhost:{port}"));
    for (at, origin) in ["http://evil.example", "http://127.0.0.1:1", "null", &tls, &name].into_iter().enumerate() {
        let approve = gate.request(Method::POST, "/mcp/approve", Some(&gate.management())).header("origin", origin);
        let reply = approve.body(json!({"request_id": asked.id}).to_string()).send().await;
        assert_eq!(reply.status, 403, "{origin}");
        // Of many of a kind the first three have a line each.
        until(&format!("{origin} is on record"), async || {
            gate.audit().iter().filter(|line| is_refused(line, "approve")).count() > at.min(2)
        })
        .await;
    }
    assert_eq!(gate.request_seen(&asked.id).await["status"], "PENDING");
    let own = format!("http://127.0.0.1:{port}");
    let reply =
        gate.request(Method::GET, "/mcp/requests", Some(&gate.management())).header("origin", &own).send().await;
    assert_eq!(reply.status, 200, "our own page is no other");
}

#[tokio::test]
async fn a_web_socket_of_another_page_is_refused() {
    let gate = Gate::start().await;
    let granted = gate.granted(&["read:files"]).await;
    for origin in ["http://127.0.0.1:1", "http://evil.example", "null"] {
        let knocked = gate.knock(&granted.id, Some(&granted.token), &[("origin", origin)]).await;
        assert_eq!(knocked.err(), Some(403), "{origin}");
        let bearer = format!("Bearer {}", gate.management());
        let events = gate.connect("/mcp/events/ws", &[("authorization", &bearer), ("origin", origin)]).await;
        assert_eq!(events.err(), Some(403), "{origin}");
    }
    until("the socket is on record", async || {
        let lines = gate.audit();
        ["session", "events"].iter().all(|action| lines.iter().any(|line| is_refused(line, action)))
    })
    .await;
    assert_eq!(gate.grant_seen(&granted.id).await["sockets"], 0);
}

/// The code of a link that opens the console once.
async fn console_code(gate: &Gate) -> String {
    let (status, told) = gate.as_person("/prism/console/link", json!({})).await;
    assert_eq!(status, 200, "{told}");
    let url = text(&told["url"]);
    url.split_once('#').expect("the code is in the fragment, which no log has").1.to_owned()
}

/// What somebody at a browser sends who has loaded our own page.
fn browser(gate: &Gate, path: &str) -> crate::support::Request {
    let own = format!("http://127.0.0.1:{}", gate.daemon.port());
    gate.request(Method::POST, path, None).header("origin", &own).header("sec-fetch-site", "same-origin")
}

//
#[tokio::test]
async fn a_link_to_the_console_opens_it_once() {
    let gate = Gate::start().await;
    let (status, _) = gate.as_agent("/prism/console/link", json!({})).await;
    assert!(matches!(status, 401 | 403), "an agent gets no link: {status}");
    let code = console_code(&gate).await;
    let enter = |code: &str| browser(&gate, "/console/login").body(json!({ "code": code }).to_string()).send();
    let entered = enter(&code).await;
    assert_eq!(entered.status, 200);
    assert!(entered.json().await["secret"].is_string(), "a session");
    let replayed = enter(&code).await;
    assert_eq!(replayed.status, 403);
    assert_eq!(replayed.json().await["secret"], Value::Null);
    assert_eq!(enter(&"0".repeat(64)).await.status, 403);
    until("it is on record", async || {
        gate.audit().iter().filter(|line| line["result"].as_str().is_some_and(|it| it.starts_with("refused"))).count()
            >= 2
    })
    .await;
}

// a page of another site that knows the console's routes, in a browser that has a session.
#[tokio::test]
async fn another_page_cannot_act_in_the_console() {
    let gate = Gate::start().await;
    let asked = gate.ask("fixer", &["read:files"]).await;
    let code = console_code(&gate).await;
    let entered = browser(&gate, "/console/login").body(json!({ "code": code }).to_string()).send().await;
    assert_eq!(entered.status, 200);
    let approve = json!({"request_id": asked.id}).to_string();
    let act = |origin: &str, site: &str| {
        let request = gate.request(Method::POST, "/console/act/approve", None);
        request.header("origin", origin).header("sec-fetch-site", site).body(approve.clone()).send()
    };
    assert_eq!(act("http://127.0.0.1:1", "same-site").await.status, 403);
    gate.audited("console", "refused: origin").await;
    // Even a request that looks as if it came from our page lacks what only our page has.
    let own = format!("http://127.0.0.1:{}", gate.daemon.port());
    assert_eq!(act(&own, "same-origin").await.status, 401);
    gate.audited("console", "refused: no session").await;
    assert_eq!(gate.request_seen(&asked.id).await["status"], "PENDING");
}

// "Approved scopes can only narrow the asked ones."
#[tokio::test]
async fn more_than_was_asked_cannot_be_approved() {
    let gate = Gate::start().await;
    let asked = gate.ask("fixer", &["read:files"]).await;
    let above = std::path::Path::new(&gate.project()).parent().unwrap().to_str().unwrap().to_owned();
    for more in [
        json!({"approved_scopes": ["read:files", "delete:files"]}),
        json!({"approved_scopes": ["*"]}),
        json!({"approved_roots": [above]}),
        json!({"approved_roots": [gate.project(), "/"]}),
        json!({"approved_roots": [gate.path("../")]}),
        json!({"approved_scopes": []}),
        json!({"approved_roots": []}),
    ] {
        let (status, told) = gate.try_approve(&asked, more.clone()).await;
        assert!(matches!(status, 400 | 403), "{more}: {status} {told}");
    }
    let (status, _) = gate.try_approve(&asked, json!({"ttl_seconds": 9 * 3600})).await;
    assert_eq!(status, 400, "no longer than the longest");
    gate.audited("approve", "refused: forbidden").await;
    assert_eq!(gate.request_seen(&asked.id).await["status"], "PENDING");
}

//
#[tokio::test]
async fn what_is_over_cannot_be_approved() {
    let gate = Gate::start_with("[gate]\nrequest_ttl = \"1s\"\n").await;
    let asked = gate.ask("fixer", &["read:files"]).await;
    until("its time is over", async || gate.request_seen(&asked.id).await["status"] == "EXPIRED").await;
    let (status, told) = gate.try_approve(&asked, json!({})).await;
    assert_eq!((status, &told["error"]["code"]), (409, &json!("not_pending")), "{told}");
    gate.audited("approve", "refused: not_pending").await;
    assert_eq!(gate.seen("/mcp/sessions?all=1").await["sessions"], json!([]));
}

#[tokio::test]
async fn one_request_is_decided_once_however_many_decide_at_once() {
    let gate = Gate::start().await;
    let asked = gate.ask("fixer", &["read:files"]).await;
    let approve = || gate.try_approve(&asked, json!({}));
    let (a, b, c) = tokio::join!(approve(), approve(), approve());
    let mut statuses = [a.0, b.0, c.0];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409, 409]);
    let (status, _) = gate.as_person("/mcp/deny", json!({"request_id": asked.id})).await;
    assert_eq!(status, 409, "what was approved is revoked, not denied");
    gate.audited("approve", "refused: not_pending").await;
    gate.audited("deny", "refused: not_pending").await;
    assert_eq!(gate.seen("/mcp/sessions").await["sessions"].as_array().map(Vec::len), Some(1));
}

// what was shown is what runs, and nothing else.
#[tokio::test]
async fn altered_arguments_do_not_pass_for_what_was_confirmed() {
    let gate = Gate::start().await;
    let granted = gate.granted(&["run:commands"]).await;
    let mut holder = gate.hold(&granted).await;
    let harmless = json!({"command": ["true"], "cwd": gate.project()});
    let first = holder.begins("exec_command", harmless.clone()).await;
    let shown = gate.confirmation().await;
    assert_eq!(shown["shown"]["shown"]["command"], json!(["true"]), "{shown}");
    // While the first waits, another comes: it gets a question of its own, and the answer to the first does not count.
    let marker = gate.path("marker");
    let second = holder.begins("exec_command", json!({"command": ["touch", marker], "cwd": gate.project()})).await;
    let mut other = Value::Null;
    until("both wait", async || {
        let page = gate.seen("/mcp/confirmations").await;
        let rows = page["confirmations"].as_array().cloned().unwrap_or_default();
        other = rows.iter().find(|row| row["digest"] != shown["digest"]).cloned().unwrap_or_default();
        rows.len() == 2
    })
    .await;
    assert_eq!(answer(&gate, &shown, &shown["digest"], true).await.0, 200);
    assert_eq!(holder.result(&first).await["status"], "ok");
    assert_eq!(answer(&gate, &other, &other["digest"], false).await.0, 200);
    assert_eq!(holder.result(&second).await["data"]["code"], "denied");
    assert!(!std::path::Path::new(&marker).exists());
    gate.audited("exec_command", "refused: denied").await;
    // It counted once.
    holder.begins("exec_command", harmless).await;
    assert_ne!(gate.confirmation().await["confirmation_id"], shown["confirmation_id"]);
}

//
#[tokio::test]
async fn what_has_changed_since_it_was_shown_is_not_done() {
    let gate = Gate::start().await;
    let asked = gate.ask("fixer", &["write:files"]).await;
    let granted = gate.approve(&asked, json!({"confirm_changes": true})).await;
    let mut holder = gate.hold(&granted).await;
    let path = gate.path("main.rs");
    let id = holder.begins("write_file", json!({"path": path, "content": "of the agent\n"})).await;
    let shown = gate.confirmation().await;
    assert!(text(&shown["shown"]["shown"]["unified"]).contains("+of the agent"), "{shown}");
    std::fs::write(&path, "of somebody else\n").unwrap();
    assert_eq!(answer(&gate, &shown, &shown["digest"], true).await.0, 200);
    let result = holder.result(&id).await;
    assert_eq!(result["data"]["code"], "changed", "{result}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "of somebody else\n");
    gate.audited("write_file", "error: changed").await;
}

//
#[tokio::test]
async fn the_digest_of_another_confirmation_answers_nothing() {
    let gate = Gate::start().await;
    let mut holder = gate.hold(&gate.granted(&["run:commands"]).await).await;
    holder.begins("exec_command", json!({"command": ["true"], "cwd": gate.project()})).await;
    holder.begins("exec_command", json!({"command": ["false"], "cwd": gate.project()})).await;
    let mut rows = Vec::new();
    until("both wait", async || {
        rows = gate.seen("/mcp/confirmations").await["confirmations"].as_array().cloned().unwrap_or_default();
        rows.len() == 2
    })
    .await;
    for digest in [&rows[1]["digest"], &json!("0".repeat(64)), &json!("")] {
        let (status, told) = answer(&gate, &rows[0], digest, true).await;
        assert_eq!((status, &told["error"]["code"]), (409, &json!("changed")), "{told}");
    }
    gate.audited("confirm", "refused: changed").await;
    //
    assert_eq!(gate.daemon.metric("prism_gate_confirmations_waiting").await, Some(2));
    assert_eq!(gate.daemon.metric("prism_gate_confirmations_asked_total{kind=\"action\"}").await, Some(2));
    assert_eq!(gate.seen("/mcp/confirmations").await["confirmations"].as_array().map(Vec::len), Some(2));
}

#[tokio::test]
async fn a_secret_in_a_url_opens_nothing() {
    let gate = Gate::start().await;
    let granted = gate.granted(&["read:files"]).await;
    let management = gate.management();
    for name in ["token", "access_token", "Authorization", "api_key", "secret"] {
        let path = format!("/mcp/requests?{name}={management}");
        // Not even where the header is right, so that nobody finds out that it works.
        for secret in [None, Some(management.as_str())] {
            let reply = gate.request(Method::GET, &path, secret).send().await;
            assert!(matches!(reply.status, 400 | 401), "{name}: {}", reply.status);
        }
        let path = format!("/mcp/session/{}?{name}={}", granted.id, granted.token);
        let bearer = format!("Bearer {}", granted.token);
        for headers in [&[][..], &[("authorization", bearer.as_str())]] {
            assert_eq!(gate.connect(&path, headers).await.err(), Some(400), "{name}");
        }
    }
    gate.audited("requests", "refused: a secret in a URL").await;
    gate.audited("session", "refused: a secret in a URL").await;
    let log: Vec<String> = gate.audit().iter().map(ToString::to_string).collect();
    assert!(
        !log.iter().any(|line| line.contains(&management) || line.contains(&granted.token)),
        "and is not on record"
    );
    assert!(!gate.daemon.stderr().contains(&management), "nor in the log");
    assert_eq!(gate.grant_seen(&granted.id).await["sockets"], 0);
}

// D-04: how long a wrong token takes says nothing about the right one. A measurement would be at the mercy of the machine,
// so this is held by construction: a secret that is compared has no `==`, only `matches`, which looks at every byte; grants'
// tokens and claims are never compared at all, but looked up by their SHA-256, of which a near miss is as far as any other.
#[test]
fn secrets_cannot_be_compared_byte_by_byte() {
    trait NotComparable<Marker> {
        fn holds() {}
    }
    impl<T: ?Sized> NotComparable<()> for T {}
    struct Comparable;
    impl<T: ?Sized + PartialEq> NotComparable<Comparable> for T {}
    // If `Token` were `PartialEq` both would apply, and this would not compile.
    <Token as NotComparable<_>>::holds();
}

// The wrong tokens that would be nearest are as wrong as any other.
#[tokio::test]
async fn a_nearly_right_token_is_a_wrong_one() {
    let gate = Gate::start().await;
    let granted = gate.granted(&["read:files"]).await;
    let near = |secret: &str| {
        let other = if secret.ends_with('0') { '1' } else { '0' };
        vec![
            format!("{}{other}", &secret[..secret.len() - 1]),
            secret[..secret.len() - 1].to_owned(),
            format!("{secret}0"),
        ]
    };
    for wrong in near(&gate.management()) {
        assert_eq!(gate.request(Method::GET, "/mcp/requests", Some(&wrong)).send().await.status, 401);
    }
    for wrong in near(&granted.token) {
        let mut holder = gate.knock(&granted.id, Some(&wrong), &[]).await.expect("it is told by the close code");
        assert_eq!(holder.closed().await, 1008);
    }
    gate.audited("requests", "refused: unauthorized").await;
    gate.audited("connect", "refused: unauthorized").await;
}

#[tokio::test]
async fn ten_thousand_requests_of_one_agent_are_a_handful() {
    const COUNT: usize = 10_000;
    let gate = Gate::start().await;
    let mut onlooker = gate.request(Method::GET, "/mcp/events", Some(&gate.management())).send().await.events();
    let body = json!({"agent_id": "flood", "scopes": ["*"], "roots": [gate.project()], "reason": "x".repeat(1000)});
    let body = Bytes::from(body.to_string());
    let stream = TcpStream::connect(("127.0.0.1", gate.daemon.port())).await.unwrap();
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let token = format!("Bearer {}", gate.daemon.token());
    let (mut accepted, mut refused, mut memory) = (0, 0, 0);
    for at in 0..COUNT {
        let request =
            hyper::Request::post("/mcp/request_access").header("host", "localhost").header("authorization", &token);
        let request = request.header("content-type", "application/json").body(Full::new(body.clone())).unwrap();
        soon("there is room", sender.ready()).await.unwrap();
        let reply = soon("an answer", sender.send_request(request)).await.unwrap();
        match reply.status().as_u16() {
            200 => accepted += 1,
            429 => refused += 1,
            other => panic!("{other}"),
        }
        reply.into_body().collect().await.unwrap();
        if at == COUNT / 10 {
            memory = process::resident_kib(gate.daemon.pid());
        }
    }
    assert_eq!((accepted, refused), (5, COUNT - 5), "max_requests_per_agent");
    let grown = process::resident_kib(gate.daemon.pid()).saturating_sub(memory);
    assert!(grown < 16 << 10, "nine thousand refusals have cost {grown} KiB");
    assert_eq!(gate.seen("/mcp/requests?open=1").await["requests"].as_array().map(Vec::len), Some(5));
    // Somebody else is still heard.
    gate.ask("calm", &["read:files"]).await;
    // The person has heard of the five, and of the other one.
    let mut told = 0;
    loop {
        let event = onlooker.next().await.expect("the stream goes on");
        if event.name.as_deref() == Some("request") {
            told += 1;
            if event.data.contains("calm") {
                break;
            }
        }
    }
    assert_eq!(told, 6);
    // The log has a few lines of it, and the last says how many there were.
    until("it says how many", async || {
        gate.audit().iter().any(|line| line["args"]["so_far"].as_u64().is_some_and(|count| count >= 1000))
    })
    .await;
    let lines = gate.audit().iter().filter(|line| line["result"] == "refused: too_many").count();
    assert!(lines < 20, "{lines}");
    assert!(gate.daemon.metric("prism_gate_requests_refused_total").await.is_some_and(|count| count == refused as u64));
}
