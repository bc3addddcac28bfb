//! `prism probe` against our own daemon: what it sees of both ways to stream, and what it says of it (N-07).

use serde_json::{Value, json};

use crate::support::{Daemon, Ended, Home, Launch, destination, process, upstream::Upstream};

/// `prism probe` of a daemon's root, with its token.
pub(crate) async fn probe(daemon: &Daemon, path: &str, flags: &[&str]) -> Ended {
    let url = format!("http://127.0.0.1:{}{path}", daemon.port());
    let words = ["probe", &url, "--token", "env:TOKEN"];
    let launch = Launch::prism(words.iter().chain(flags).map(|word| (*word).to_owned()).collect());
    launch.env("TOKEN", &daemon.token()).end().await
}

/// The one object that `--json` prints.
pub(crate) fn json(ended: &Ended) -> Value {
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"))
}

/// A check of a run, as its verdict and reason.
pub(crate) fn check(run: &Value, name: &str) -> (String, String) {
    let checks = run["checks"].as_array().unwrap();
    let found = checks.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("no {name}: {checks:?}"));
    (found["verdict"].as_str().unwrap().to_owned(), found["reason"].as_str().unwrap().to_owned())
}

/// The checks that are not ok. Whether messages carry correlation ids is up to the server.
pub(crate) fn not_ok(run: &Value) -> Vec<&str> {
    let checks = run["checks"].as_array().unwrap().iter();
    checks
        .filter(|check| check["verdict"] != "ok" && check["name"] != "correlation")
        .map(|check| check["name"].as_str().unwrap())
        .collect()
}

/// The messages of a run of a method, as the stream and the call that they came on.
fn came(run: &Value, method: &str) -> Vec<(String, Option<u64>)> {
    let messages = run["messages"].as_array().unwrap().iter().filter(|message| message["method"] == method);
    messages.map(|message| (message["stream"].as_str().unwrap().to_owned(), message["call"].as_u64())).collect()
}

// N-07, N-01, N-02, N-04
#[tokio::test]
async fn both_ways_to_stream_are_exercised_in_both_eras() {
    let daemon = Daemon::run(&[], &[]).await;
    let ended = probe(&daemon, "/mcp", &["--json"]).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let all = json(&ended);
    assert_eq!((&all["verdict"], &all["checks"]["failed"]), (&json!("ok"), &json!(0)), "{all}");
    let [modern, legacy] = all["runs"].as_array().unwrap().as_slice() else { panic!("{all}") };

    assert_eq!((&legacy["revision"], &legacy["era"]), (&json!("2025-11-25"), &json!("legacy")));
    assert_eq!(legacy["server"]["name"], "prism-demo");
    assert_eq!(legacy["session"], json!({"issued": true, "format": "UUID v4"}));
    assert!(legacy["counts"]["tools"].as_u64().unwrap() > 5, "{legacy}");
    assert!(legacy["ping_ms"].is_f64());
    assert_eq!(not_ok(legacy), ["keep_alive"], "{legacy}");

    // Progress and notes of a call on its own stream, what belongs to none on the GET stream.
    let call = legacy["calls"].as_array().unwrap().iter().find(|call| call["what"] == "tools/call progress").unwrap();
    assert_eq!((&call["status"], &call["content_type"]), (&json!(200), &json!("text/event-stream")));
    let on_call = ("post".to_owned(), call["n"].as_u64());
    assert_eq!(came(legacy, "notifications/progress")[..3], [on_call.clone(), on_call.clone(), on_call]);
    for what in ["tools", "prompts", "resources"] {
        assert_eq!(came(legacy, &format!("notifications/{what}/list_changed")), [("get".to_owned(), None)]);
    }
    let logs = came(legacy, "notifications/message");
    assert_eq!(logs.iter().map(|(stream, _)| stream.as_str()).collect::<Vec<_>>(), ["post", "post", "get"]);
    let messages = legacy["messages"].as_array().unwrap();
    let position = |what: &str, kind: &str| {
        messages
            .iter()
            .position(|one| one["call"] == call["n"] && (one["method"] == what || one["kind"] == kind))
            .unwrap()
    };
    assert!(position("notifications/progress", "") < position("", "result"), "{messages:?}");
    assert!(messages.windows(2).all(|pair| pair[0]["ms"].as_f64() <= pair[1]["ms"].as_f64()), "in the order they came");
    let streamed = messages.iter().filter(|message| message["stream"] != "json");
    assert!(streamed.clone().all(|message| message["event"] == "message" && message["event_id"].is_string()));

    assert_eq!((&modern["revision"], &modern["era"]), (&json!("2026-07-28"), &json!("modern")));
    assert_eq!(modern["session"]["issued"], false);
    assert_eq!(check(modern, "listen_note").0, "ok");
    let absent = ["session", "ping", "keep_alive", "resume", "wrong_session", "missing_session", "delete"];
    assert_eq!(not_ok(modern), absent, "{modern}");
}

// N-07: one after the other, and each finds what the one before it has left behind.
#[tokio::test]
async fn the_demo_server_passes_its_own_probe_again_and_again_in_each_way_of_streaming() {
    for (flag, log) in [("--enable-post-sse", "post_log"), ("--enable-post-sse=false", "get_log")] {
        let daemon = Launch::prism(["demo-server", "--http", "127.0.0.1:0", flag].map(str::to_owned).to_vec());
        let daemon = daemon.start().await;
        let url = format!("http://127.0.0.1:{}/mcp", daemon.port());
        for round in 0..3 {
            let ended = Launch::prism(["probe", &url, "--json"].map(str::to_owned).to_vec()).end().await;
            let all = json(&ended);
            assert_eq!((ended.code, &all["checks"]["failed"]), (Some(0), &json!(0)), "{flag}, round {round}: {all}");
            let [modern, legacy] = all["runs"].as_array().unwrap().as_slice() else { panic!("{all}") };
            for name in [log, "question", "cancel", "get_note", "resume"] {
                assert_eq!(check(legacy, name).0, "ok", "{flag}, round {round}, {name}: {all}");
            }
            for name in ["question", "cancel", "listen_note"] {
                assert_eq!(check(modern, name).0, "ok", "{flag}, round {round}, {name}: {all}");
            }
        }
        // Who insists on streams is told that there are none.
        let arguments = ["probe", &url, "--json", "--test-post-sse"].map(str::to_owned).to_vec();
        let ended = Launch::prism(arguments).end().await;
        assert_eq!(ended.code, Some(i32::from(log == "get_log")), "{ended:?}");
    }
}

// What people attach to bug reports opens nothing.
#[tokio::test]
async fn a_report_holds_no_secret_and_in_a_pipe_no_colour() {
    let daemon = Daemon::run(&[], &[]).await;
    for flags in [&["--revision", "2025-06-18"][..], &["--revision", "2025-06-18", "--json"]] {
        let ended = probe(&daemon, "/mcp?key=secret", flags).await;
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(!ended.stdout.contains(&daemon.token()) && !ended.stdout.contains("secret"), "{}", ended.stdout);
        // One of version 4: those of correlation ids are newer.
        let session = |word: &str| word.len() == 36 && word.matches('-').count() == 4 && word.as_bytes()[14] == b'4';
        assert!(!ended.stdout.split([' ', '"', '\n']).any(session), "a session id: {}", ended.stdout);
        assert!(!ended.stdout.contains('\u{1b}'), "{}", ended.stdout);
    }
    let said = probe(&daemon, "/mcp", &["--revision", "2025-06-18"]).await.stdout;
    for line in ["revision 2025-06-18 (legacy era)", "server        prism-demo", "session       UUID v4", "\nchecks\n"]
    {
        assert!(said.contains(line), "{line}: {said}");
    }
    let row = said.lines().find(|line| line.contains("progress 2/3")).unwrap();
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(&cells[2..9], ["POST", "of", "7", "message", "1-2", "progress", "2/3"], "{row}");
    assert!(said.lines().last().unwrap().contains(" 0 failed, "), "{said}");
}

#[tokio::test]
async fn every_revision_can_be_probed() {
    let daemon = Daemon::run(&[], &[]).await;
    let all = json(&probe(&daemon, "/mcp", &["--revision", "all", "--json"]).await);
    let revisions: Vec<&Value> = all["runs"].as_array().unwrap().iter().map(|run| &run["revision"]).collect();
    assert_eq!(revisions, ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]);
    let checks = all["runs"].as_array().unwrap().iter().flat_map(|run| run["checks"].as_array().unwrap());
    let failed: Vec<&Value> = checks.filter(|check| check["verdict"] == "failed").collect();
    assert_eq!((&all["verdict"], failed), (&"ok".into(), Vec::new()));
}

// N-07
#[tokio::test]
async fn one_way_to_stream_can_be_tried_by_itself() {
    let daemon = Daemon::run(&[], &[]).await;
    for (flag, tried, not_tried) in
        [("--test-post-sse", "post_progress", "get_opens"), ("--test-get-sse", "get_opens", "post_progress")]
    {
        let all = json(&probe(&daemon, "/mcp", &[flag, "--revision", "2025-11-25", "--json"]).await);
        let run = &all["runs"][0];
        assert_eq!(check(run, tried).0, "ok");
        assert!(!run["checks"].to_string().contains(not_tried), "{flag}: {run}");
    }
}

// N-03
#[tokio::test]
async fn names_of_events_are_looked_at() {
    let daemon = Daemon::run(&["--event-names", "method"], &[]).await;
    let ended = probe(&daemon, "/mcp", &["--json", "--revision", "2025-11-25"]).await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let (verdict, reason) = check(&json(&ended)["runs"][0], "event_names");
    assert!(verdict == "fail" && reason.contains("notifications/progress") && reason.contains("result"), "{reason}");
    let ended = probe(&daemon, "/mcp", &["--events", "method"]).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let daemon = Daemon::run(&[], &[]).await;
    let ended = probe(&daemon, "/mcp", &["--events", "method", "--revision", "2025-11-25"]).await;
    assert_eq!(ended.code, Some(1));
    assert!(ended.stdout.contains("fix: add ?events=method to the URL"), "{}", ended.stdout);
    assert_eq!(probe(&daemon, "/mcp?events=method", &["--events", "method"]).await.code, Some(0));
}

#[tokio::test]
async fn a_tool_that_is_named_is_called() {
    let daemon = Daemon::run(&[], &[]).await;
    let run = |words: &'static [&'static str]| {
        let daemon = &daemon;
        async move {
            json(&probe(daemon, "/mcp", &[&["--json", "--revision", "2025-11-25", "--call"], words].concat()).await)
        }
    };
    let all = run(&["progress", "steps=2", "ms=1"]).await;
    assert_eq!(check(&all["runs"][0], "call"), ("ok".to_owned(), "progress answered after 2 notes".to_owned()));
    let all = run(&["progress", "steps=two", "ms=1"]).await;
    assert_eq!(check(&all["runs"][0], "call").0, "fail");
    assert_eq!(all["verdict"], "failed");
}

// A name is probed, too, with a server of its own when no daemon runs.
#[tokio::test]
async fn a_destination_is_probed_by_its_name() {
    let nobody = Upstream::away();
    let port = nobody.at("").rsplit(':').next().unwrap().to_owned();
    let home = Home::new();
    let arguments = ["probe", "demo", "--json", "--revision", "2026-07-28"].map(str::to_owned).to_vec();
    let launch = Launch::prism(arguments).home(&home).env("PRISM_PORT", &port);
    let ended = launch.config(&destination("demo", &["--era", "modern"], "")).end().await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(process::marked(home.path()), []);
}

// `auto` tries the other era as well, and does not mind if there is none.
#[tokio::test]
async fn a_server_of_one_era_only_is_no_failure() {
    let mut upstream = Upstream::start().await;
    let arguments = ["probe", &upstream.url(), "--json", "--test-post-sse"].map(str::to_owned).to_vec();
    let command = Launch::prism(arguments).begin();
    upstream.greet_modern().await;
    let answering = tokio::spawn(async move {
        loop {
            let asked = upstream.next().await;
            match asked.what() {
                "initialize" => asked.error(400, json!({"code": -32022, "message": "no"})).await,
                "GET" | "DELETE" => asked.status(405).await,
                _ => asked.error(200, json!({"code": -32601, "message": "no"})).await,
            }
        }
    });
    let ended = command.end().await;
    answering.abort();
    let all = json(&ended);
    assert_eq!(all["runs"].as_array().unwrap().len(), 1, "{all}");
    assert_eq!(all["runs"][0]["era"], "modern");
}
