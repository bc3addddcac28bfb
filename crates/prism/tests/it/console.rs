//! The console's door over plain HTTP: who gets in, with what, and who does not (A-13). What a person sees there is tried in
//! a real browser by `yardstick/console`.

use hyper::Method;
use serde_json::{Value, json};

use crate::support::{Daemon, Launch, Reply, Request, agents::At};

/// A browser at the console of a daemon: it sends what browsers send.
struct Browser<'a> {
    daemon: &'a Daemon,
    cookie: Option<String>,
}

impl<'a> Browser<'a> {
    fn at(daemon: &'a Daemon) -> Self {
        Self { daemon, cookie: None }
    }

    fn host(&self) -> String {
        format!("127.0.0.1:{}", self.daemon.port())
    }

    fn get(&self, path: &str) -> Request {
        let request = Request::new(self.daemon.place(), Method::GET, path).header("host", &self.host());
        match &self.cookie {
            Some(cookie) => request.header("cookie", &format!("prism_console={cookie}")),
            None => request,
        }
    }

    fn post(&self, path: &str, body: &Value) -> Request {
        let request = Request::new(self.daemon.place(), Method::POST, path)
            .header("host", &self.host())
            .header("origin", &format!("http://{}", self.host()))
            .header("content-type", "application/json")
            .body(body.to_string());
        match &self.cookie {
            Some(cookie) => request.header("cookie", &format!("prism_console={cookie}")),
            None => request,
        }
    }

    /// Comes in by a link, as the login page's script does.
    async fn enter(&mut self, code: &str) -> Reply {
        let reply = self.post("/console/login", &json!({"code": code})).send().await;
        let cookie = reply.header("set-cookie").map(str::to_owned);
        self.cookie = cookie.and_then(|cookie| Some(cookie.split_once('=')?.1.split(';').next()?.to_owned()));
        reply
    }

    async fn csrf(&self) -> String {
        let page = self.get("/console/requests").send().await.text().await;
        let at = page.split_once(r#"name="prism-csrf" content=""#).expect("pages carry the token").1;
        at.split('"').next().unwrap().to_owned()
    }
}

async fn launched() -> Daemon {
    Launch::serve("").start().await
}

fn management(daemon: &Daemon) -> String {
    std::fs::read_to_string(daemon.home().file("management-token")).unwrap().trim().to_owned()
}

fn link(daemon: &Daemon, secret: &str) -> Request {
    Request::new(daemon.place(), Method::POST, "/prism/console/link")
        .header("host", "localhost")
        .header("authorization", &format!("Bearer {secret}"))
}

async fn code(daemon: &Daemon) -> String {
    let told = link(daemon, &management(daemon)).send().await.json().await;
    told["url"].as_str().expect("a link").split_once('#').expect("the code is behind the #").1.to_owned()
}

// A-03, A-13; issue 7, must show 4: agent token on management routes, forged Origin
#[tokio::test]
async fn a_link_is_for_the_management_secret_alone() {
    let daemon = launched().await;
    assert_eq!(link(&daemon, &daemon.token()).send().await.status, 401, "the agents' token");
    assert_eq!(link(&daemon, "").send().await.status, 401);
    let foreign = link(&daemon, &management(&daemon)).header("origin", "http://127.0.0.1:1");
    assert_eq!(foreign.send().await.status, 403);
    let told = link(&daemon, &management(&daemon)).send().await.json().await;
    let url = told["url"].as_str().unwrap();
    assert!(url.starts_with(&format!("http://127.0.0.1:{}/console/login#", daemon.port())), "{url}");
}

// A-13; issue 7, must show 4: replayed one-time link
#[tokio::test]
async fn a_link_opens_one_session_and_the_cookie_is_the_browsers_alone() {
    let daemon = launched().await;
    let code = code(&daemon).await;
    let mut person = Browser::at(&daemon);
    let reply = person.enter(&code).await;
    assert_eq!(reply.status, 200);
    let cookie = reply.header("set-cookie").unwrap();
    for attribute in ["HttpOnly", "SameSite=Strict", "Path=/console;", "Max-Age=28800"] {
        assert!(cookie.contains(attribute), "{attribute}: {cookie}");
    }
    assert_eq!(person.get("/console/requests").send().await.status, 200);
    let mut thief = Browser::at(&daemon);
    assert_eq!(thief.enter(&code).await.status, 403);
    assert_eq!(thief.cookie, None);
    assert_eq!(thief.get("/console/requests").send().await.status, 401);
    assert_eq!(thief.enter("").await.status, 403);
}

// A-13
#[tokio::test]
async fn every_page_is_closed_to_whoever_has_no_session() {
    let daemon = launched().await;
    let nobody = Browser { daemon: &daemon, cookie: Some("0".repeat(64)) };
    for page in ["requests", "grants", "confirmations", "audit", "destinations", "signals"] {
        let reply = nobody.get(&format!("/console/{page}")).send().await;
        assert_eq!(reply.status, 401, "{page}");
        assert!(reply.text().await.contains("prism console"), "{page} says what to type");
    }
    assert_eq!(nobody.get("/console/events").send().await.status, 401);
    assert_eq!(nobody.post("/console/act/approve", &json!({})).send().await.status, 401);
    // The agents' token is none of the console's keys.
    let agent = nobody.get("/console/requests").header("authorization", &format!("Bearer {}", daemon.token()));
    assert_eq!(agent.send().await.status, 401);
}

// A-13; issue 7, must show 4: forged Origin
#[tokio::test]
async fn a_change_needs_our_own_page_and_its_token() {
    let daemon = launched().await;
    let mut person = Browser::at(&daemon);
    person.enter(&code(&daemon).await).await;
    let csrf = person.csrf().await;
    let act = || person.post("/console/act/verify", &json!({}));
    assert_eq!(act().send().await.status, 403, "without the token");
    assert_eq!(act().header("x-prism-csrf", &"0".repeat(64)).send().await.status, 403);
    for origin in ["http://127.0.0.1:1", "http://localhost:7420", "null"] {
        let forged = act().header("x-prism-csrf", &csrf).header("origin", origin);
        assert_eq!(forged.send().await.status, 403, "{origin}");
    }
    assert_eq!(act().header("x-prism-csrf", &csrf).without("origin").send().await.status, 403, "from nowhere");
    let other_site = act().header("x-prism-csrf", &csrf).header("sec-fetch-site", "same-site");
    assert_eq!(other_site.send().await.status, 403, "a page of another port");
    assert_eq!(act().header("x-prism-csrf", &csrf).send().await.status, 200);
    // Another session's token is not this one's.
    let mut other = Browser::at(&daemon);
    other.enter(&code(&daemon).await).await;
    assert_eq!(act().header("x-prism-csrf", &other.csrf().await).send().await.status, 403);
}

// A-13
#[tokio::test]
async fn pages_are_kept_by_nobody_and_their_files_for_ever() {
    let daemon = launched().await;
    let mut person = Browser::at(&daemon);
    person.enter(&code(&daemon).await).await;
    let reply = person.get("/console/audit").send().await;
    let policy = reply.header("content-security-policy").unwrap().to_owned();
    for part in ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"] {
        assert!(policy.contains(part), "{part}: {policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    let page = reply.text().await;
    let script = page.split('"').find(|part| part.starts_with("/console/assets/") && part.ends_with(".js")).unwrap();
    let reply = person.get(script).send().await;
    assert_eq!(reply.header("cache-control"), Some("public, max-age=31536000, immutable"));
    assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
}

// R-31: the numbers that a page was made with are those that it is told afterwards.
#[tokio::test]
async fn an_open_page_hears_of_overdue_replies_beside_what_waits_at_the_gate() {
    let daemon = Launch::serve("[mesh]\ndesktop = false\nquestion_within = \"300ms\"").start().await;
    let mut person = Browser::at(&daemon);
    person.enter(&code(&daemon).await).await;
    let mut events = person.get("/console/events").send().await.events();
    let waiting = events.next().await.unwrap().json()["waiting"].take();
    assert_eq!(waiting, json!({"requests": 0, "confirmations": 0, "signals": 0}));
    let (donna, _sable) = (daemon.agent(At::Own, "donna").await, daemon.agent(At::Own, "sable").await);
    donna.does("send", json!({"to": "sable", "type": "Question", "body": "b"})).await;
    loop {
        let told = events.next().await.expect("it goes on").json();
        if told["waiting"]["signals"] == 1 {
            assert!(told["pages"].as_array().unwrap().contains(&json!("signals")), "{told}");
            break;
        }
    }
    let page = person.get("/console/signals").send().await.text().await;
    assert!(page.contains("<title>(1) Prism"), "{page}");
}

// A-13
#[tokio::test]
async fn an_open_page_hears_of_a_request_and_of_the_end_of_its_session() {
    let daemon = launched().await;
    let mut person = Browser::at(&daemon);
    person.enter(&code(&daemon).await).await;
    let mut events = person.get("/console/events").send().await.events();
    assert_eq!(events.next().await.unwrap().json()["waiting"]["requests"], 0);
    let ask = json!({"agent_id": "helper", "scopes": ["read:files"], "roots": ["/tmp"], "reason": "to see"});
    let asked = daemon.client_at("/mcp/request_access").request(Method::POST).body(ask.to_string()).send().await;
    assert_eq!(asked.status, 200);
    loop {
        let told = events.next().await.expect("it goes on").json();
        let pages = told["pages"].as_array().unwrap().clone();
        if pages.contains(&json!("requests")) {
            assert_eq!(told["waiting"]["requests"], 1);
            break;
        }
    }
    let csrf = person.csrf().await;
    let out = person.post("/console/logout", &json!({})).header("x-prism-csrf", &csrf).send().await;
    assert!(out.header("set-cookie").unwrap().contains("Max-Age=0"));
    while let Some(event) = events.next().await {
        assert!(event.name.as_deref() == Some("over") || event.name.as_deref() == Some("changed"), "{event:?}");
    }
    assert_eq!(person.get("/console/requests").send().await.status, 401);
}
