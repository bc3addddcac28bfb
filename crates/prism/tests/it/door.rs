//! Who gets in, and where to: tokens, origins, hosts, paths, verbs, headers (D-01, D-04, B-01, B-03, B-20).

use hyper::Method;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::support::{
    Client, Daemon, Home, Launch, NEWEST, Reply, demo, destination, lines,
    seen::{NOTHING, seen},
    soon, until,
};

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
/// A UUID v4 that no session has.
const NOBODY: &str = "11111111-2222-4333-8444-555555555555";

/// The status, the JSON-RPC error code and the message of a refusal.
async fn refusal(reply: Reply) -> (u16, i64, String) {
    let status = reply.status;
    assert_eq!(reply.header("content-type"), Some("application/json"));
    let body = reply.json().await;
    let code = body["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error: {body}"));
    assert_eq!(body["jsonrpc"], "2.0");
    assert_eq!(body.get("id"), None, "where it is not known it is left out, not null");
    (status, code, body["error"]["message"].as_str().unwrap().to_owned())
}

/// One request of each verb, to be spoilt.
fn verbs(client: &Client) -> [crate::support::Request; 3] {
    [client.request(Method::POST).body(PING), client.request(Method::GET), client.request(Method::DELETE)]
}

// D-04
// There is one principal: whoever has the token.
// checks 15 23
#[tokio::test]
async fn without_the_token_nobody_gets_in() {
    let daemon = Daemon::run(&[], &[]).await;
    let session = daemon.client().initialize().await;
    let stranger = daemon.client_without_token().with_session(session.session());
    for request in verbs(&stranger) {
        let reply = request.send().await;
        assert_eq!(reply.header("www-authenticate"), Some(r#"Bearer realm="prism""#));
        let (status, _, message) = refusal(reply).await;
        assert_eq!(status, 401);
        assert!(message.contains("Authorization: Bearer"), "{message}");
    }
    session.child().await;
}

// D-04
// checks 15 23
#[tokio::test]
async fn a_wrong_token_is_refused_and_the_right_one_is_not_told() {
    let daemon = Daemon::run(&[], &[]).await;
    let session = daemon.client().initialize().await;
    let right = daemon.token();
    let shorter = &right[..right.len() - 1];
    for token in ["wrong", shorter, &format!("{right}0"), ""] {
        for request in verbs(&session) {
            let reply = request.header("authorization", &format!("Bearer {token}")).send().await;
            assert_eq!(reply.header("www-authenticate"), Some(r#"Bearer realm="prism", error="invalid_token""#));
            let (status, _, message) = refusal(reply).await;
            assert_eq!(status, 401);
            assert!(message.contains("wrong token") && !message.contains(&right), "{message}");
        }
    }
    let basic = session.request(Method::POST).header("authorization", &format!("Basic {right}")).body(PING);
    assert_eq!(basic.send().await.status, 401);
    let in_the_query = daemon.client_without_token().at(&format!("/mcp?token={right}&access_token={right}"));
    assert_eq!(in_the_query.post_text(PING).await.status, 401);
    // L5: nor beside a right header, so that nobody grows used to it.
    for path in ["/mcp", "/run/mcp", "/metrics"] {
        let both = daemon.client_at(&format!("{path}?token={right}"));
        let (status, _, message) = refusal(both.request(Method::POST).body(PING).send().await).await;
        assert_eq!(status, 400, "{path}");
        assert!(message.contains("no place in a URL") && !message.contains(&right), "{message}");
        seen(format!("{status}: {message}"), NOTHING, daemon.counted("token").await);
    }
}

// D-04
#[tokio::test]
async fn an_unknown_path_is_not_told_apart_without_the_token() {
    let daemon = Daemon::run(&[], &[]).await;
    for path in ["/mcp", "/nothing", "/nothing/mcp", "/run/sse", "/metrics"] {
        assert_eq!(daemon.get(path).await.status, 401, "{path}");
    }
}

// D-04
// checks 1 2
#[tokio::test]
async fn a_foreign_origin_is_refused_before_anything_is_read() {
    let home = Home::new();
    let record = home.file("record");
    let daemon = Launch::run(&[], &demo(&["--record", &record])).home(&home).start().await;
    let session = daemon.client().initialize().await;
    session.child().await;
    let seen = lines(&record).len();
    for origin in ["https://evil.example", "http://localhost.evil.example", "http://127.0.0.1.nip.io:80", "null"] {
        for request in verbs(&session) {
            let reply = request.header("origin", origin).send().await;
            assert_eq!(reply.header("access-control-allow-origin"), None);
            let (status, _, message) = refusal(reply).await;
            assert_eq!(status, 403, "{origin}");
            assert!(message.contains("allowed_origins"), "{message}");
        }
    }
    assert_eq!(lines(&record).len(), seen, "the child has heard of none of it");
    for origin in ["http://localhost:3000", "https://127.0.0.1", "http://[::1]:8080"] {
        let reply = session.request(Method::POST).header("origin", origin).body(PING).send().await;
        assert_eq!(reply.header("access-control-allow-origin"), Some(origin));
        assert_eq!(reply.status, 200, "{origin}");
    }
}

// D-04
#[tokio::test]
async fn an_origin_that_is_configured_is_let_in() {
    let config = format!("allowed_origins = [\"https://app.example\"]\n{}", destination("a", &[], ""));
    let daemon = Launch::serve(&config).start().await;
    let client = daemon.client_at("/a/mcp");
    let reply = client.request(Method::POST).header("origin", "https://app.example").body(PING).send().await;
    assert_eq!(reply.status, 200);
    assert_eq!(
        client.request(Method::POST).header("origin", "https://other.example").body(PING).send().await.status,
        403
    );
}

// D-04
// checks 3
#[tokio::test]
async fn a_foreign_host_is_refused_and_a_missing_one_too() {
    let daemon = Daemon::run(&[], &[]).await;
    let session = daemon.client().initialize().await;
    for host in ["evil.example", "localhost.evil.example", "127.0.0.1.nip.io", "127.0.0.2"] {
        for request in verbs(&session) {
            let (status, _, message) = refusal(request.header("host", host).send().await).await;
            assert_eq!(status, 403, "{host}");
            assert!(message.contains("allowed_hosts"), "{message}");
        }
    }
    let (status, _, message) = refusal(session.request(Method::POST).without("host").body(PING).send().await).await;
    assert_eq!(status, 400);
    assert!(message.contains("Host"), "{message}");
    let port = daemon.port();
    for host in ["localhost".to_owned(), format!("127.0.0.1:{port}"), format!("[::1]:{port}"), "LOCALHOST".to_owned()] {
        assert_eq!(session.request(Method::POST).header("host", &host).body(PING).send().await.status, 200, "{host}");
    }
    // What tells of health is no exception.
    let client = daemon.client_at("/healthz");
    assert_eq!(client.request(Method::GET).header("host", "evil.example").send().await.status, 403);
}

// B-01
#[tokio::test]
async fn an_unknown_destination_is_404_and_the_known_ones_are_listed() {
    let config = [destination("files", &[], ""), destination("git", &[], "")].concat();
    let daemon = Launch::serve(&config).start().await;
    let (status, _, message) = refusal(daemon.client_at("/flies/mcp").post_text(PING).await).await;
    assert_eq!(status, 404);
    assert!(message.contains("flies") && message.contains("files, git"), "{message}");
    for path in ["/", "/files", "/files/mcp/more", "/FILES/mcp"] {
        assert_eq!(daemon.client_at(path).post_text(PING).await.status, 404, "{path}");
    }
}

// checks 8
#[tokio::test]
async fn a_verb_that_means_nothing_here_is_405_with_the_ones_that_do() {
    let daemon = Daemon::run(&[], &[]).await;
    let session = daemon.client().initialize().await;
    for verb in [Method::PUT, Method::PATCH, Method::HEAD] {
        let reply = session.request(verb.clone()).send().await;
        assert_eq!((reply.status, reply.header("allow")), (405, Some("POST, GET, DELETE")), "{verb}");
    }
    let reply = daemon.client_at("/healthz").post_text("{}").await;
    assert_eq!((reply.status, reply.header("allow")), (405, Some("GET, HEAD")));
}

// B-20
#[tokio::test]
async fn the_old_sse_transport_is_gone_and_its_paths_point_to_the_new_one() {
    let daemon = Launch::serve(&destination("files", &[], "")).start().await;
    for request in [
        daemon.client_at("/files/sse").request(Method::GET),
        daemon.client_at("/files/message").request(Method::POST).body(PING),
    ] {
        let (status, _, message) = refusal(request.send().await).await;
        assert_eq!(status, 410);
        assert!(message.contains("/files/mcp"), "{message}");
    }
    assert_eq!(daemon.client_at("/flies/sse").request(Method::GET).send().await.status, 404);
}

// B-03, B-11, B-13
// A GET without a session id is 400 by B-11; the check would have 405, as a decision that may be changed.
// checks 21 29
#[tokio::test]
async fn a_session_id_is_missing_malformed_or_unknown() {
    let daemon = Daemon::run(&[], &[]).await;
    let client = daemon.client();
    for id in ["42", "not a uuid", &NOBODY.replace('-', ""), "11111111-2222-1333-8444-555555555555"] {
        for request in verbs(&client.with_session(id)) {
            let (status, _, message) = refusal(request.send().await).await;
            assert_eq!(status, 400, "{id}");
            assert!(message.contains("UUID v4"), "{message}");
        }
    }
    for request in verbs(&client.with_session(NOBODY)) {
        let (status, code, message) = refusal(request.send().await).await;
        assert_eq!((status, code), (404, -32001));
        assert!(message.starts_with("Session not found") && message.contains("initialize again"), "{message}");
    }
    for request in [client.request(Method::GET), client.request(Method::DELETE)] {
        let (status, _, message) = refusal(request.send().await).await;
        assert_eq!(status, 400);
        assert!(message.contains("Mcp-Session-Id"), "{message}");
    }
}

// checks 5
#[tokio::test]
async fn a_body_must_say_that_it_is_json() {
    let daemon = Daemon::run(&[], &[]).await;
    let session = daemon.client().initialize().await;
    for kind in ["text/plain", "text/plain; a=application/json", "application/jsonx"] {
        let reply = session.request(Method::POST).header("content-type", kind).body(PING).send().await;
        let (status, _, message) = refusal(reply).await;
        assert_eq!(status, 415, "{kind}");
        assert!(message.contains("application/json"), "{message}");
    }
    assert_eq!(session.request(Method::POST).without("content-type").body(PING).send().await.status, 415);
    for kind in ["application/json; charset=utf-8", "Application/JSON"] {
        let reply = session.request(Method::POST).header("content-type", kind).body(PING).send().await;
        assert_eq!(reply.status, 200, "{kind}");
    }
}

// B-11
// checks 28 29
#[tokio::test]
async fn a_client_must_accept_what_it_can_be_given() {
    let daemon = Daemon::run(&[], &[]).await;
    let session = daemon.client().initialize().await;
    for accept in ["text/html", "application/xml, image/*", "application/json;q=0, text/event-stream;q=0"] {
        let (status, _, message) =
            refusal(session.request(Method::POST).header("accept", accept).body(PING).send().await).await;
        assert_eq!(status, 406, "{accept}");
        assert!(message.contains("Accept"), "{message}");
    }
    for accept in ["*/*", "application/*", "application/json", "text/event-stream"] {
        let reply = session.request(Method::POST).header("accept", accept).body(PING).send().await;
        assert_eq!(reply.status, 200, "{accept}");
        assert_eq!(reply.is_stream(), accept == "text/event-stream", "{accept}");
        assert_eq!(reply.answer().await["result"], json!({}), "{accept}");
    }
    assert_eq!(session.request(Method::POST).without("accept").body(PING).send().await.status, 200);
    for accept in ["application/json", "text/html"] {
        let (status, _, message) = refusal(session.request(Method::GET).header("accept", accept).send().await).await;
        assert_eq!(status, 406, "{accept}");
        assert!(message.contains("text/event-stream"), "{message}");
    }
    for accept in ["text/event-stream", "*/*", "text/*", "application/json, text/event-stream"] {
        assert_eq!(session.request(Method::GET).header("accept", accept).send().await.status, 200, "{accept}");
    }
}

// checks 24 25
#[tokio::test]
async fn a_version_that_nobody_knows_is_400_on_a_session() {
    let daemon = Daemon::run(&[], &[]).await;
    let session = daemon.client().initialize().await;
    for version in ["banana", "2025-11-26"] {
        for request in verbs(&session) {
            let reply = request.header("mcp-protocol-version", version).send().await;
            assert_eq!(reply.status, 400, "{version}");
            let body = reply.json().await;
            assert_eq!(body["error"]["code"], -32022, "{body}");
            assert_eq!(body["error"]["data"]["requested"], version, "{body}");
            let message = body["error"]["message"].as_str().unwrap();
            assert!(message.contains(version) && message.contains(NEWEST), "{message}");
        }
    }
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", NEWEST] {
        let reply = session.request(Method::POST).header("mcp-protocol-version", version).body(PING).send().await;
        assert_eq!(reply.status, 200, "{version}");
    }
}

// mcp-eras 4.2: some clients name their newest revision while they still ask which one to use.
// checks 26
#[tokio::test]
async fn the_version_header_of_an_initialize_does_not_count() {
    let daemon = Daemon::run(&[], &[]).await;
    let params =
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}});
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}).to_string();
    for version in [NEWEST, "2026-07-28"] {
        let request = daemon.client().request(Method::POST).header("mcp-protocol-version", version);
        let reply = request.body(hello.clone()).send().await;
        assert_eq!(reply.status, 200, "{version}");
        assert_eq!(reply.json().await["result"]["protocolVersion"], "2025-06-18");
    }
}

// checks 51
#[tokio::test]
async fn the_headers_of_a_later_era_are_ignored() {
    let daemon = Daemon::run(&[], &[]).await;
    let session = daemon.client().initialize().await;
    let request = session.request(Method::POST).header("mcp-method", "tools/list").header("mcp-name", "no");
    assert_eq!(request.body(PING).send().await.json().await["result"], json!({}));
}

// mcp-eras 1.2, CORS: a page of this machine may ask first, and needs no token for that.
#[tokio::test]
async fn a_browser_that_asks_first_is_told_what_it_may_send() {
    let daemon = Daemon::run(&[], &[]).await;
    let ask = |origin: &str| {
        let request = daemon.client_without_token().request(Method::OPTIONS).header("origin", origin);
        request.header("access-control-request-headers", "authorization, mcp-session-id")
    };
    let reply = ask("http://localhost:6274").send().await;
    assert_eq!(reply.status, 204);
    assert_eq!(reply.header("access-control-allow-origin"), Some("http://localhost:6274"));
    assert_eq!(reply.header("access-control-allow-headers"), Some("authorization, mcp-session-id"));
    assert_eq!(reply.header("access-control-expose-headers"), Some("Mcp-Session-Id, WWW-Authenticate"));
    assert_eq!(ask("https://evil.example").send().await.status, 403);
}

// D-04
#[tokio::test]
async fn no_auth_lets_everybody_in_and_says_so() {
    let daemon = Daemon::run(&["--no-auth"], &[]).await;
    let session = daemon.client_without_token().initialize().await;
    session.child().await;
    let warned = || daemon.stderr().lines().any(|line| line.contains("warning:") && line.contains("no authentication"));
    until("it has warned", async || warned()).await;
    // Whoever sends a token all the same is let in as well.
    let reply = session.request(Method::POST).header("authorization", "Bearer x").body(PING).send().await;
    assert_eq!(reply.status, 200);
}

// D-03
#[tokio::test]
async fn the_token_may_come_from_the_environment() {
    let daemon = Launch::run(&[], &demo(&[])).env("PRISM_API_KEY", "s3cret").start().await;
    let client = Client::new(daemon.place(), "/mcp", Some("s3cret".to_owned()));
    let result: Value = client.initialize().await.ask("ping", json!({})).await.json().await;
    assert_eq!(result["result"], json!({}));
    assert!(!daemon.home().path().join("http-mcp-token").exists());
    assert!(!daemon.stdout().contains("s3cret"));
}

// R-24: a client that is asked for a token looks for OAuth, at the latest at its default paths. Told 401 there, too, it never
// ends; told that there is none it says what to do.
#[tokio::test]
async fn who_looks_for_oauth_is_told_that_there_is_none() {
    let daemon = Launch::serve(&destination("a", &[], "")).start().await;
    let paths = [
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/a/mcp",
        "/.well-known/oauth-authorization-server",
        "/.well-known/oauth-authorization-server/a/mcp",
        "/.well-known/openid-configuration",
        "/a/mcp/.well-known/openid-configuration",
        "/authorize",
    ];
    for path in paths {
        let reply = daemon.client_without_token().at(path).request(Method::GET).send().await;
        assert_eq!((reply.status, reply.header("content-type")), (404, Some("application/json")), "{path}");
        assert_eq!(reply.header("www-authenticate"), None, "{path}");
        let body = reply.json().await;
        let why = body["error_description"].as_str().unwrap_or_default();
        assert!(why.contains("no OAuth") && why.contains("http-mcp-token"), "{path}: {body}");
    }
    for path in ["/register", "/token"] {
        let client = daemon.client_without_token().at(path);
        assert_eq!(client.post_text("{}").await.status, 404, "{path}");
        let foreign = client.request(Method::POST).header("host", "evil.example").body("{}").send().await;
        assert_eq!(foreign.status, 403, "{path}: the door is the same as elsewhere");
    }
    // What asks for the token says where it is, and leads to no OAuth.
    let reply = daemon.client_without_token().at("/a/mcp").post_text(PING).await;
    assert!(!reply.header("www-authenticate").unwrap().contains("resource_metadata"));
    let (status, _, message) = refusal(reply).await;
    assert!(status == 401 && message.contains("/http-mcp-token (see: prism doctor)"), "{message}");
}

// R-57
#[tokio::test]
async fn a_slash_behind_the_path_changes_nothing() {
    let daemon = Launch::serve(&destination("a", &[], "legacy_sse = true")).start().await;
    for path in ["/a/mcp/", "/mcp/"] {
        daemon.client_at(path).initialize().await;
    }
    let reply = daemon.client_at("/a/sse/").request(Method::GET).send().await;
    let endpoint = reply.events().next().await.unwrap().data;
    assert!(endpoint.starts_with("/a/message?"), "{endpoint}");
    assert_eq!(daemon.client_at("/a//mcp").post_text(PING).await.status, 404, "no other path is another way to it");
}

// R-57
#[tokio::test]
async fn a_body_that_is_encoded_is_refused_with_what_to_do() {
    let daemon = Daemon::run(&[], &[]).await;
    let gzip: &[u8] = &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let reply = daemon.client().request(Method::POST).header("content-encoding", "gzip").body(gzip).send().await;
    assert_eq!(reply.header("accept-encoding"), Some("identity"));
    let (status, _, message) = refusal(reply).await;
    assert!(status == 415 && message.contains("Content-Encoding"), "{message}");
    let plain = daemon.client().request(Method::POST).header("content-encoding", "identity").body(PING).send().await;
    assert_eq!(plain.status, 200);
}

// R-57: a client that had another server at this URL shows the session of that one, and 400 alone would not tell it so.
#[tokio::test]
async fn a_session_id_of_another_server_is_refused_with_what_to_do() {
    let daemon = Daemon::run(&[], &[]).await;
    let reply = daemon.client().with_session("another-servers-session").post_text(PING).await;
    let (status, _, message) = refusal(reply).await;
    assert!(
        status == 400 && message.contains("initialize again") && message.contains("restart the client"),
        "{message}"
    );
}

/// The first line of the answer to a head that is sent as it is.
async fn raw(daemon: &Daemon, head: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", daemon.port())).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    soon("an answer", stream.read_to_string(&mut answer)).await.unwrap();
    answer.lines().next().unwrap_or_default().to_owned()
}

// L4: "Of two `Host`, `Origin`, `Authorization` the first counts"
#[tokio::test]
async fn what_is_said_twice_is_refused() {
    let daemon = Daemon::run(&[], &[]).await;
    let (own, token) = (format!("127.0.0.1:{}", daemon.port()), daemon.token());
    let head = |more: &str| {
        format!("GET /status HTTP/1.1\r\n{more}Authorization: Bearer {token}\r\nConnection: close\r\n\r\n")
    };
    let once = format!("Host: {own}\r\nOrigin: http://{own}\r\n");
    assert_eq!(raw(&daemon, &head(&once)).await, "HTTP/1.1 200 OK");
    for more in [
        format!("Host: {own}\r\nHost: evil.example\r\n"),
        format!("Host: {own}\r\nHost: {own}\r\n"),
        format!("Host: {own}\r\nOrigin: http://{own}\r\nOrigin: http://evil.example\r\n"),
        format!("Host: {own}\r\nAuthorization: Bearer wrong\r\n"),
    ] {
        let answer = raw(&daemon, &head(&more)).await;
        assert_eq!(answer, "HTTP/1.1 400 Bad Request", "{more}");
        seen(answer, NOTHING, daemon.counted("head").await);
    }
}

// L4: "a foreign absolute-form authority with a good Host passes; an unknown `Expect` is ignored"
#[tokio::test]
async fn a_foreign_authority_and_an_unknown_expectation_are_refused() {
    let daemon = Daemon::run(&[], &[]).await;
    let (own, token) = (format!("127.0.0.1:{}", daemon.port()), daemon.token());
    let head = |target: &str, more: &str| {
        format!(
            "GET {target} HTTP/1.1\r\nHost: {own}\r\n{more}Authorization: Bearer {token}\r\nConnection: close\r\n\r\n"
        )
    };
    let mut told = Vec::new();
    for (target, more, answer) in [
        (format!("http://{own}/status"), "", "HTTP/1.1 200 OK"),
        ("http://evil.example/status".to_owned(), "", "HTTP/1.1 403 Forbidden"),
        ("http://127.0.0.1.evil.example/status".to_owned(), "", "HTTP/1.1 403 Forbidden"),
        ("/status".to_owned(), "Expect: 200-ok\r\n", "HTTP/1.1 417 Expectation Failed"),
    ] {
        let answered = raw(&daemon, &head(&target, more)).await;
        assert_eq!(answered, answer, "{target} {more}");
        told.push(answered.strip_prefix("HTTP/1.1 ").unwrap_or_default().to_owned());
    }
    let log = format!("{}, {}", daemon.counted("host").await, daemon.counted("head").await);
    seen(told[1..].join(", "), NOTHING, log);
}
