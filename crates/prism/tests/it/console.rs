//! The console's door over plain HTTP: who gets in, with what, and who does not. What a person sees there is tried in
//! a real browser by `yardstick/console`.

use hyper::Method;
use serde_json::{Value, json};

use crate::support::{
    Daemon, Launch, Request,
    agents::At,
    seen::{NOTHING, line, logged, seen},
};

/// A browser at the console of a daemon: it sends what our own page's script sends.
struct Browser<'a> {
    daemon: &'a Daemon,
    secret: Option<String>,
}

impl<'a> Browser<'a> {
    fn at(daemon: &'a Daemon) -> Self {
        Self { daemon, secret: None }
    }

    fn host(&self) -> String {
        format!("127.0.0.1:{}", self.daemon.port())
    }

    fn get(&self, path: &str) -> Request {
        let request = Request::new(self.daemon.place(), Method::GET, path).header("host", &self.host());
        match &self.secret {
            Some(secret) => request.header("x-prism-console", secret),
            None => request,
        }
    }

    fn post(&self, path: &str, body: &Value) -> Request {
        let request = Request::new(self.daemon.place(), Method::POST, path)
            .header("host", &self.host())
            .header("origin", &format!("http://{}", self.host()))
            .header("content-type", "application/json")
            .body(body.to_string());
        match &self.secret {
            Some(secret) => request.header("x-prism-console", secret),
            None => request,
        }
    }

    /// Comes in by a link, as the login page's script does.
    async fn enter(&mut self, code: &str) -> u16 {
        let reply = self.post("/console/login", &json!({"code": code})).send().await;
        // H3: what a browser would send to other ports by itself.
        assert_eq!(reply.header("set-cookie"), None);
        let status = reply.status;
        let told = serde_json::from_str::<Value>(&reply.text().await).unwrap();
        self.secret = told["secret"].as_str().map(str::to_owned);
        status
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

// agent token on management routes, forged Origin
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

// replayed one-time link
#[tokio::test]
async fn a_link_opens_one_session_once() {
    let daemon = launched().await;
    let code = code(&daemon).await;
    let mut person = Browser::at(&daemon);
    assert_eq!(person.enter(&code).await, 200);
    assert_eq!(person.get("/console/requests?part").send().await.status, 200);
    let mut thief = Browser::at(&daemon);
    assert_eq!(thief.enter(&code).await, 403);
    assert_eq!(thief.secret, None);
    assert_eq!(thief.get("/console/requests?part").send().await.status, 401);
    assert_eq!(thief.enter("").await, 403);
}

const PAGES: [&str; 6] = ["requests", "grants", "confirmations", "audit", "destinations", "signals"];

//
#[tokio::test]
async fn every_page_is_closed_to_whoever_has_no_session() {
    let daemon = launched().await;
    let nobody = Browser { daemon: &daemon, secret: Some("0".repeat(64)) };
    for page in PAGES {
        let reply = nobody.get(&format!("/console/{page}?part")).send().await;
        assert_eq!(reply.status, 401, "{page}");
        assert!(reply.text().await.contains("prism console"), "{page} says what to type");
    }
    assert_eq!(nobody.get("/console/events").send().await.status, 401);
    assert_eq!(nobody.post("/console/act/approve", &json!({})).send().await.status, 401);
    // The agents' token is none of the console's keys.
    let agent = nobody.get("/console/requests?part").header("authorization", &format!("Bearer {}", daemon.token()));
    assert_eq!(agent.send().await.status, 401);
}

// H3: what another server of 127.0.0.1 has of a person's browser, and what a program can make of it: every cookie, any
// origin, all that is served to everybody.
#[tokio::test]
async fn what_a_browser_sends_to_other_ports_opens_nothing() {
    let daemon = launched().await;
    let ask = json!({"agent_id": "fixer", "scopes": ["read:files"], "roots": ["/tmp"], "reason": "a tell-tale reason"});
    let asked = daemon.client_at("/mcp/request_access").request(Method::POST).body(ask.to_string()).send().await;
    let request = asked.json().await["request_id"].as_str().unwrap().to_owned();
    let mut person = Browser::at(&daemon);
    person.enter(&code(&daemon).await).await;
    let secret = person.secret.clone().unwrap();

    let other = Browser::at(&daemon);
    for cookie in ["prism_console", "x-prism-console", "prism-console"].map(|name| format!("{name}={secret}")) {
        let with =
            |request: Request| request.header("cookie", &cookie).header("origin", &format!("http://{}", other.host()));
        let shell = with(other.get("/console/requests")).send().await;
        let shell = (shell.status, shell.text().await);
        assert_eq!(shell.0, 200);
        assert!(
            !shell.1.contains(&request) && !shell.1.contains("tell-tale") && !shell.1.contains(&secret),
            "{}",
            shell.1
        );
        for page in PAGES {
            assert_eq!(with(other.get(&format!("/console/{page}?part"))).send().await.status, 401, "{page}");
        }
        assert_eq!(with(other.get(&format!("/console/requests/{request}"))).send().await.status, 401);
        assert_eq!(with(other.get("/console/events")).send().await.status, 401);
        for act in ["approve", "deny", "revoke", "confirm", "restart", "verify"] {
            let body = json!({"request_id": request, "session_id": request, "destination": "demo"});
            let done = with(other.post(&format!("/console/act/{act}"), &body)).header("sec-fetch-site", "same-origin");
            assert_eq!(done.send().await.status, 401, "{act}");
        }
    }
    let part = person.get("/console/requests?part").send().await.text().await;
    assert!(part.contains("tell-tale reason"), "it still waits: {part}");
    let locked = other.get("/console/requests?part").send().await;
    let status = locked.status;
    let agent = format!("{status}: {}", locked.json().await["error"]["message"].as_str().unwrap());
    let refused = daemon.audited(&json!({"action": "console", "result": "refused: no session"})).await;
    let person = logged(&part, "tell-tale reason");
    seen(agent, person.split('<').next().unwrap_or_default(), line(&refused));
}

// H3: a shell is the same for everybody, so there is nothing to be had by having a person's browser load one.
#[tokio::test]
async fn a_page_without_its_part_is_the_same_for_everybody() {
    let daemon = launched().await;
    let (mut person, nobody) = (Browser::at(&daemon), Browser::at(&daemon));
    person.enter(&code(&daemon).await).await;
    for page in PAGES {
        let path = format!("/console/{page}");
        let ours = person.get(&path).send().await.text().await;
        assert_eq!(ours, nobody.get(&path).send().await.text().await, "{page}");
        assert!(ours.contains("prism console"), "{page} says what to type");
    }
}

// L7: a page of another port can set cookies of any name and path for this one.
#[tokio::test]
async fn cookies_that_another_port_has_tossed_change_nothing() {
    let daemon = launched().await;
    let mut person = Browser::at(&daemon);
    person.enter(&code(&daemon).await).await;
    let tossed = format!("prism_console={}; prism_console=; x-prism-console={}", "0".repeat(64), "1".repeat(64));
    for path in ["/console/requests", "/console/requests?part", "/console/events"] {
        assert_eq!(person.get(path).header("cookie", &tossed).send().await.status, 200, "{path}");
    }
    let act = person.post("/console/act/verify", &json!({})).header("cookie", &tossed);
    let acted = act.send().await.status;
    assert_eq!(acted, 200);
    seen(NOTHING, format!("the page, and what it does: {acted}"), NOTHING);
}

// forged Origin
#[tokio::test]
async fn a_change_needs_our_own_page_and_its_secret() {
    let daemon = launched().await;
    let mut person = Browser::at(&daemon);
    person.enter(&code(&daemon).await).await;
    let act = || person.post("/console/act/verify", &json!({}));
    assert_eq!(act().without("x-prism-console").send().await.status, 401, "without the secret");
    assert_eq!(act().header("x-prism-console", &"0".repeat(64)).send().await.status, 401);
    for origin in ["http://127.0.0.1:1", "http://localhost:7420", "null"] {
        assert_eq!(act().header("origin", origin).send().await.status, 403, "{origin}");
    }
    assert_eq!(act().without("origin").send().await.status, 403, "from nowhere");
    for site in ["same-site", "cross-site", "none"] {
        assert_eq!(act().header("sec-fetch-site", site).send().await.status, 403, "{site}");
        let read = person.get("/console/audit?part").header("sec-fetch-site", site);
        assert_eq!(read.send().await.status, 403, "{site}");
        let led = person.get("/console/audit").header("sec-fetch-site", site);
        assert_eq!(led.send().await.status, 200, "a link leads to a page, which shows nothing by itself");
    }
    assert_eq!(act().header("sec-fetch-site", "same-origin").send().await.status, 200);
    assert_eq!(act().send().await.status, 200);
}

//
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

// the numbers that a page was made with are those that it is told afterwards.
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
    let page = person.get("/console/signals?part").send().await.text().await;
    assert!(page.contains("&quot;signals&quot;:1}\""), "{page}");
}

//
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
    assert_eq!(person.post("/console/logout", &json!({})).send().await.status, 200);
    while let Some(event) = events.next().await {
        assert!(event.name.as_deref() == Some("over") || event.name.as_deref() == Some("changed"), "{event:?}");
    }
    assert_eq!(person.get("/console/requests?part").send().await.status, 401);
}
