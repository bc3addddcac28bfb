//! `prism probe` against servers that misbehave, each in one way: that very check fails, the others do not, and nothing
//! hangs. And what is said when there is no MCP server at all.

use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::{
    probe::{check, json, not_ok, probe},
    support::{
        Daemon, Ended, Home, Launch,
        upstream::{Asked, Flow, Upstream, note, text},
    },
    upstream_tls,
};

/// A way to be wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Wrong {
    Nothing,
    NoGet,
    /// Answers every call with JSON, so that notes have no way to come.
    JsonOnly,
    /// Calls its events after their methods.
    Names,
    /// Sends progress on the GET stream as well.
    BothPaths,
    /// Sends the notes of a call after its result.
    Late,
    /// Sends nothing on the GET stream.
    SilentGet,
    /// Takes `notifications/cancelled`, and goes on.
    Deaf,
    /// Knows every session.
    AnySession,
    /// Serves pages of every origin.
    AnyOrigin,
    /// Replays what was already seen.
    Doubles,
}

/// A server like the demo server, in the legacy era, that is wrong in one way.
struct Server {
    wrong: Wrong,
    name: &'static str,
    get: Option<Flow>,
    /// Events of the GET stream so far, and those that nobody listened to.
    events: Vec<(u32, Value)>,
    ended: bool,
    /// Calls that go on until they are cancelled.
    going: Vec<(u64, JoinHandle<()>)>,
    /// Tools that were called.
    called: Vec<String>,
}

impl Server {
    fn new(wrong: Wrong) -> Self {
        Self {
            wrong,
            name: "prism-demo",
            get: None,
            events: Vec::new(),
            ended: false,
            going: Vec::new(),
            called: Vec::new(),
        }
    }

    async fn answer(&mut self, asked: Asked) {
        if asked.header("origin").is_some() && self.wrong != Wrong::AnyOrigin {
            return asked.status(403).await;
        }
        let session = asked.header("mcp-session-id").map(str::to_owned);
        let opening = matches!(asked.what(), "server/discover" | "initialize");
        match session.as_deref() {
            _ if opening => {}
            None => return asked.status(400).await,
            Some("s1") if !self.ended => {}
            Some(_) if self.wrong == Wrong::AnySession => {}
            Some(_) => return asked.status(404).await,
        }
        if asked.header("mcp-protocol-version") == Some("1999-12-31") {
            return asked.status(400).await;
        }
        if asked.verb == "POST" && asked.header("accept") == Some("text/plain") {
            return asked.status(406).await;
        }
        match asked.what() {
            "POST" => asked.status(400).await,
            "server/discover" => asked.status(404).await,
            "initialize" => {
                let mut greeting = crate::support::upstream::greeting();
                greeting["serverInfo"]["name"] = self.name.into();
                let body = json!({"jsonrpc": "2.0", "id": asked.id(), "result": greeting}).to_string();
                asked.answer(200, &[("content-type", "application/json"), ("mcp-session-id", "s1")], &body).await;
            }
            "notifications/initialized" => asked.status(202).await,
            "notifications/cancelled" => {
                let id = asked.body["params"]["requestId"].as_u64().unwrap();
                if self.wrong != Wrong::Deaf {
                    self.going.retain(|(going, task)| {
                        if *going == id {
                            task.abort();
                        }
                        *going != id
                    });
                }
                asked.status(202).await;
            }
            "ping" => asked.result(json!({})).await,
            "tools/list" => {
                let names = ["log", "progress", "slow", "ask", "change", "big"];
                let tools: Vec<Value> = names.iter().map(|name| json!({"name": name, "inputSchema": {}})).collect();
                asked.result(json!({"tools": tools})).await;
            }
            "tools/call" => self.call(asked).await,
            "GET" if self.wrong == Wrong::NoGet => asked.status(405).await,
            "GET" => self.listen(asked).await,
            "DELETE" => {
                self.ended = true;
                asked.status(204).await;
            }
            method if method.ends_with("/list") => {
                asked.result(json!({"resources": [], "resourceTemplates": []})).await
            }
            what => panic!("{what}"),
        }
    }

    async fn call(&mut self, asked: Asked) {
        let (id, params) = (asked.id(), asked.body["params"].clone());
        let arguments = &params["arguments"];
        self.called.push(params["name"].as_str().unwrap().to_owned());
        match params["name"].as_str().unwrap() {
            "progress" if arguments["steps"] == 3 => {
                let step = |step: u32| {
                    note("notifications/progress", json!({"progressToken": id, "progress": step, "total": 3}))
                };
                let notes = [step(1), step(2), step(3)];
                self.talk(asked, &notes).await;
            }
            "progress" => {
                let flow = asked.events();
                let task = tokio::spawn(async move {
                    for step in 1.. {
                        let params = json!({"progressToken": id, "progress": step});
                        // What was cancelled is not to be resumed: nobody would know this id.
                        let id = format!("id: of call {id}, {step}");
                        if !flow.push(&format!("{id}\ndata: {}\n\n", note("notifications/progress", params))).await {
                            return;
                        }
                        // At a pace that a server might have.
                        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
                    }
                });
                self.going.push((id, task));
            }
            "log" => {
                let one = note("notifications/message", json!({"level": "warning", "data": arguments["text"]}));
                let count = arguments["count"].as_u64().unwrap();
                self.talk(asked, &vec![one; usize::try_from(count).unwrap()]).await;
            }
            "ask" => {
                let flow = asked.events();
                flow.event(
                    &json!({"jsonrpc": "2.0", "id": 0, "method": "elicitation/create", "params": {"message": "?"}}),
                )
                .await;
                flow.result(id, text("decline")).await;
            }
            "big" => asked.result(text(&"x".repeat(200_000))).await,
            "change" => {
                let method = format!("notifications/{}/list_changed", arguments["what"].as_str().unwrap());
                self.tell(note(&method, json!({}))).await;
                asked.result(text("sent")).await;
            }
            "slow" => asked.result(text("slow")).await,
            _ => asked.error(200, json!({"code": -32602, "message": "unknown tool"})).await,
        }
    }

    /// Answers a call that says something on the way.
    async fn talk(&mut self, asked: Asked, notes: &[Value]) {
        let id = asked.id();
        if self.wrong == Wrong::JsonOnly {
            return asked.result(text("done")).await;
        }
        let flow = asked.events();
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": text("done")});
        let mut all: Vec<&Value> = notes.iter().collect();
        match self.wrong {
            Wrong::Late => all.insert(0, &answer),
            _ => all.push(&answer),
        }
        // In one piece, so that a reader that stops at the answer has seen what comes after it.
        let written: String = all.iter().map(|message| self.event(None, message)).collect();
        flow.push(&written).await;
        if self.wrong == Wrong::BothPaths {
            for note in notes {
                self.tell(note.clone()).await;
            }
        }
    }

    fn event(&self, id: Option<u32>, message: &Value) -> String {
        let name = match self.wrong {
            Wrong::Names => message["method"].as_str().unwrap_or("result"),
            _ => "message",
        };
        let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
        format!("event: {name}\n{id}data: {message}\n\n")
    }

    /// Sends what belongs to no call.
    async fn tell(&mut self, message: Value) {
        let id = u32::try_from(self.events.len()).unwrap() + 1;
        self.events.push((id, message.clone()));
        if self.wrong != Wrong::SilentGet
            && let Some(get) = &self.get
        {
            get.push(&self.event(Some(id), &message)).await;
        }
    }

    async fn listen(&mut self, asked: Asked) {
        let after: u32 = asked.header("last-event-id").map_or(u32::MAX, |id| id.parse().unwrap());
        let after = if self.wrong == Wrong::Doubles && after < u32::MAX { 0 } else { after };
        let flow = asked.events();
        flow.push(": welcome\n").await;
        let missed: String = self
            .events
            .iter()
            .filter(|(id, _)| *id > after)
            .map(|(id, message)| self.event(Some(*id), message))
            .collect();
        flow.push(&missed).await;
        self.get = Some(flow);
    }
}

/// Probes such a server.
async fn probed(server: Server, flags: &[&str]) -> (Ended, Vec<String>) {
    let mut upstream = Upstream::start().await;
    let arguments = ["probe", &upstream.url(), "--json"].iter().chain(flags).map(|word| (*word).to_owned()).collect();
    let command = Launch::prism(arguments).begin();
    let mut server = server;
    let serving = async {
        loop {
            let asked = upstream.next_or_never().await;
            server.answer(asked).await;
        }
    };
    let ended = tokio::select! {
        ended = command.end() => ended,
        () = serving => unreachable!("it serves for ever"),
    };
    (ended, server.called)
}

/// What of the legacy server that is wrong in one way is not ok.
async fn findings(wrong: Wrong) -> (Ended, Vec<String>) {
    let (ended, _) = probed(Server::new(wrong), &["--timeout", "3s"]).await;
    let run = json(&ended)["runs"][0].clone();
    let failed = run["checks"].as_array().unwrap().iter().filter(|check| check["verdict"] == "fail");
    let failed = failed.map(|check| check["name"].as_str().unwrap().to_owned()).collect();
    (ended, failed)
}

#[tokio::test]
async fn a_server_that_does_all_of_it_right_has_nothing_to_mend() {
    let (ended, failed) = findings(Wrong::Nothing).await;
    assert_eq!((ended.code, failed), (Some(0), vec![]), "{ended:?}");
    let run = &json(&ended)["runs"][0];
    assert_eq!(not_ok(run), ["token"]);
    assert_eq!(check(run, "correlation").0, "skipped", "it sends none");
    assert_eq!(check(run, "keep_alive").0, "ok", "comments are seen: {run}");
}

// N-01, N-02, N-03
#[tokio::test]
async fn each_way_to_be_wrong_is_found_by_its_own_check() {
    for (wrong, expected) in [
        // a server may answer with JSON, if what it has to say then comes on its other stream.
        (Wrong::JsonOnly, &["get_log"][..]),
        (Wrong::Names, &["event_names"]),
        (Wrong::Late, &["post_progress", "post_log"]),
        (Wrong::AnySession, &["wrong_session", "delete"]),
        (Wrong::AnyOrigin, &["origin"]),
        (Wrong::Doubles, &["resume"]),
        (Wrong::SilentGet, &["get_note"]),
        (Wrong::Deaf, &["cancel"]),
    ] {
        let (ended, failed) = findings(wrong).await;
        assert_eq!(failed, expected, "{wrong:?}: {ended:?}");
        assert_eq!(ended.code, Some(1));
    }
}

// N-01
#[tokio::test]
async fn a_message_on_two_paths_is_found() {
    // The two calls at a time are made while the GET stream is open: their note comes on both.
    let (ended, failed) = findings(Wrong::BothPaths).await;
    assert_eq!(failed, ["one_path"], "{ended:?}");
}

#[tokio::test]
async fn a_server_without_a_stream_of_its_own_is_no_failure() {
    let (ended, failed) = findings(Wrong::NoGet).await;
    assert_eq!((ended.code, failed), (Some(0), vec![]), "{ended:?}");
    let (verdict, reason) = check(&json(&ended)["runs"][0], "get_opens");
    assert!(verdict == "skipped" && reason.contains("405"), "{reason}");
}

// Nobody knows what the tools of somebody else's server do.
#[tokio::test]
async fn tools_of_a_server_that_is_not_ours_are_not_called() {
    let stranger = || Server { name: "somebody", ..Server::new(Wrong::Nothing) };
    let (ended, called) = probed(stranger(), &[]).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(called, ["prism-probe-no-such-tool"]);
    let run = &json(&ended)["runs"][0];
    assert!(check(run, "post_stream").1.contains("--call"), "{run}");
    let (ended, called) = probed(stranger(), &["--call", "big"]).await;
    assert_eq!(called, ["big", "prism-probe-no-such-tool"], "{ended:?}");
}

/// What a probe says of whatever answers each request like this.
async fn unreached(answer: impl AsyncFn(Asked), flags: &[&str]) -> Value {
    let mut upstream = Upstream::start().await;
    let arguments = ["probe", &upstream.url(), "--json"].iter().chain(flags).map(|word| (*word).to_owned()).collect();
    let command = Launch::prism(arguments).begin();
    let serving = async {
        loop {
            answer(upstream.next_or_never().await).await;
        }
    };
    let ended = tokio::select! {
        ended = command.end() => ended,
        () = serving => unreachable!("it serves for ever"),
    };
    assert_eq!(ended.code, Some(2), "{ended:?}");
    let all = json(&ended);
    assert_eq!(all["verdict"], "unreached");
    all["runs"][0]["error"].clone()
}

#[tokio::test]
async fn what_is_no_mcp_server_is_told_by_its_kind() {
    let html = async |asked: Asked| asked.answer(200, &[("content-type", "text/html; charset=utf-8")], "<html>").await;
    let error = unreached(html, &[]).await;
    assert!(error["kind"] == "html" && error["fix"].as_str().unwrap().contains("/mcp"), "{error}");

    let broken = async |asked: Asked| asked.answer(500, &[("content-type", "text/plain")], "out of luck").await;
    let error = unreached(broken, &[]).await;
    assert!(error["kind"] == "status" && error["message"].as_str().unwrap().contains("500: out of luck"), "{error}");

    let foreign = async |asked: Asked| asked.json(200, &json!({"hello": "world"})).await;
    assert_eq!(unreached(foreign, &[]).await["kind"], "not_mcp");

    let elsewhere = async |asked: Asked| asked.answer(302, &[("location", "https://login.example/")], "").await;
    let error = unreached(elsewhere, &[]).await;
    assert!(error["kind"] == "redirected" && error["message"].as_str().unwrap().contains("login.example"), "{error}");

    let old = async |asked: Asked| match asked.verb.as_str() {
        "GET" => {
            let flow = asked.events();
            flow.push("event: endpoint\ndata: /messages\n\n").await;
            flow.hung_up().await;
        }
        _ => asked.status(405).await,
    };
    let error = unreached(old, &[]).await;
    assert!(error["kind"] == "older_transport" && error["fix"].as_str().unwrap().contains("--type sse"), "{error}");
}

// An outage says nothing about the era: nothing else is tried (mcp-eras 4.1).
#[tokio::test]
async fn a_server_that_is_down_is_asked_once() {
    let mut upstream = Upstream::start().await;
    let command = Launch::prism(vec!["probe".to_owned(), upstream.url()]).begin();
    upstream.asked("server/discover").await.status(503).await;
    assert_eq!(command.end().await.code, Some(2));
    upstream.asked_nothing_more();
}

// A deadline on every wait.
#[tokio::test]
async fn a_stream_that_never_ends_does_not_hold_up_a_probe() {
    let endless = async |asked: Asked| {
        let flow = asked.events();
        while flow.push(": still here\n\n").await {}
    };
    assert_eq!(unreached(endless, &["--timeout", "300ms"]).await["kind"], "timeout");
    let silent = async |asked: Asked| {
        let mut asked = asked;
        asked.hung_up().await;
    };
    assert_eq!(unreached(silent, &["--timeout", "300ms"]).await["kind"], "timeout");
}

#[tokio::test]
async fn a_port_that_refuses_and_a_token_that_is_missing_are_told_apart() {
    let nobody = Upstream::away();
    let ended = Launch::prism(vec!["probe".to_owned(), nobody.url()]).end().await;
    assert_eq!(ended.code, Some(2));
    assert!(ended.stdout.contains("connection refused") && ended.stdout.contains("prism serve"), "{ended:?}");
    let daemon = Daemon::run(&[], &[]).await;
    let url = format!("http://127.0.0.1:{}/mcp", daemon.port());
    let ended = Launch::prism(vec!["probe".to_owned(), url]).end().await;
    assert_eq!(ended.code, Some(2));
    assert!(ended.stdout.contains("401") && ended.stdout.contains("pass --token"), "{ended:?}");
    let ended = probe(&daemon, "/nowhere/mcp", &[]).await;
    assert!(ended.code == Some(2) && ended.stdout.contains("no server"), "{ended:?}");
}

#[tokio::test]
async fn a_certificate_that_nobody_vouches_for_is_told_and_one_that_is_trusted_is_not() {
    let mut upstream = upstream_tls::start().await;
    let arguments = || ["probe", &upstream.url(), "--json", "--test-post-sse"].map(str::to_owned).to_vec();
    let ended = Launch::prism(arguments()).end().await;
    let error = json(&ended)["runs"][0]["error"].clone();
    assert_eq!((ended.code, &error["kind"]), (Some(2), &json!("tls")), "{error}");
    assert!(error["fix"].as_str().unwrap().contains("SSL_CERT_FILE"), "{error}");
    let home = Home::new();
    std::fs::write(home.file("ca.pem"), upstream_tls::AUTHORITY).unwrap();
    let command = Launch::prism(arguments()).env("SSL_CERT_FILE", &home.file("ca.pem")).begin();
    upstream.asked("server/discover").await.status(500).await;
    assert_eq!(json(&command.end().await)["runs"][0]["error"]["kind"], "status", "it was spoken to");
}
