//! `prism tools`: what is listed, by which way, and what is said of a server that is not there.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{Daemon, Ended, Home, Launch, destination, process, until, upstream::Upstream};

/// `prism tools` with a config. Nobody listens on the port that it names, but for what a test puts there.
async fn tools(home: &Home, config: &str, port: &str, flags: &[&str]) -> Ended {
    let arguments = ["tools"].iter().chain(flags).map(|word| (*word).to_owned()).collect();
    Launch::prism(arguments).home(home).env("PRISM_PORT", port).config(config).end().await
}

/// A port that refuses, for as long as the upstream lives.
fn nobody() -> (Upstream, String) {
    let upstream = Upstream::away();
    let port = port_of(&upstream);
    (upstream, port)
}

fn port_of(upstream: &Upstream) -> String {
    upstream.at("").rsplit(':').next().expect("a URL has a port").to_owned()
}

fn names(listed: &Value) -> Vec<&str> {
    listed["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

// D-05: every server side by side, and one that is dead stops nobody.
#[tokio::test]
async fn every_destination_is_listed_and_a_dead_one_is_named() {
    let (_port, port) = nobody();
    let home = Home::new();
    let config = [
        destination("alive", &[], ""),
        destination("dead", &["--fault", "die-at-start"], ""),
        destination("modern", &["--era", "modern"], ""),
    ]
    .concat();
    let ended = tools(&home, &config, &port, &[]).await;
    assert_eq!(ended.code, Some(1), "one did not answer: {ended:?}");
    assert!(ended.stdout.contains("alive  (prism-demo "), "{}", ended.stdout);
    assert!(ended.stdout.contains("modern  (prism-demo "), "{}", ended.stdout);
    assert!(ended.stdout.contains("\n  slow(ms*, text*)  "), "{}", ended.stdout);
    assert!(ended.stderr.contains("dead: ") && ended.stderr.contains("see what it says: "), "{}", ended.stderr);
    assert!(!ended.stdout.contains("dead"), "{}", ended.stdout);
    assert_eq!(process::marked(home.path()), [], "what it started has ended");

    let ended = tools(&home, &config, &port, &["--json"]).await;
    let json: Value = serde_json::from_str(&ended.stdout).unwrap();
    let [alive, dead, modern] = json["destinations"].as_array().unwrap().as_slice() else { panic!("{json}") };
    assert!(names(alive).contains(&"echo") && names(modern).contains(&"echo"), "{json}");
    assert_eq!((&dead["name"], &dead["error"]["kind"], dead.get("tools")), (&json!("dead"), &json!("rpc"), None));
    assert!(alive["tools"][0]["inputSchema"].is_object(), "all that the server said: {alive}");

    let ended = tools(&home, &config, &port, &["dead"]).await;
    assert_eq!(ended.code, Some(1), "none answered: {ended:?}");
}

// One server that says nothing holds up nobody else for longer than its deadline.
#[tokio::test]
async fn a_silent_server_has_a_deadline_of_its_own() {
    let (_port, port) = nobody();
    let mut silent = Upstream::start().await;
    let config = format!("[destination.silent]\nurl = {:?}\n{}", silent.url(), destination("alive", &[], ""));
    let home = Home::new();
    let asking = tools(&home, &config, &port, &["--timeout", "700ms"]);
    let (ended, _held) = tokio::join!(asking, silent.next());
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stdout.contains("alive  (prism-demo"), "{}", ended.stdout);
    assert!(ended.stderr.contains("silent: no ") && ended.stderr.contains("0.7 s"), "{}", ended.stderr);
}

// each is shown as it comes, and who is waited for is named with the reason.
#[tokio::test]
async fn one_that_never_greets_keeps_nobody_from_seeing_the_others() {
    let (_port, port) = nobody();
    let home = Home::new();
    let silent = "[destination.silent]\ncommand = [\"sh\", \"-c\", \"echo hello; exec sleep 600\"]\n";
    let config = format!("{silent}{}", destination("alive", &[], ""));
    let arguments = ["tools", "--timeout", "10m"].map(str::to_owned).to_vec();
    let mut asking = Launch::prism(arguments).home(&home).env("PRISM_PORT", &port).config(&config).begin();
    until("the others are there", async || asking.stdout().contains("alive  (prism-demo ")).await;
    let told = " s now (starting: it is being started; it printed text that is not MCP: `hello`)";
    until("it is named", async || asking.stderr().contains("waiting for silent for ")).await;
    assert!(asking.stderr().contains(told), "{}", asking.stderr());
    asking.signal(Signal::INT);
    assert_eq!(asking.ended().await.code(), Some(130));
}

// Where a daemon runs it is asked, and its children are used.
#[tokio::test]
async fn a_daemon_that_runs_is_asked() {
    let home = Home::new();
    let config = destination("a", &[], "keep_warm = \"5m\"");
    let daemon = Launch::serve(&config).home(&home).start().await;
    let before = daemon.client_at("/a/mcp").initialize().await.child().await;
    let ended = tools(&home, &config, &daemon.port().to_string(), &["a"]).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.starts_with("a  (prism-demo"), "{}", ended.stdout);
    assert_eq!(process::marked(home.path()).iter().map(|marked| marked.pid).collect::<Vec<_>>(), [before]);
}

#[tokio::test]
async fn whoever_else_has_the_port_is_not_given_the_token() {
    let home = Home::new();
    let config = destination("a", &[], "");
    let mut other = Upstream::start().await;
    let port = port_of(&other);
    let (ended, asked) = tokio::join!(tools(&home, &config, &port, &[]), async {
        let asked = other.asked("GET").await;
        let said = asked.all();
        asked.answer(200, &[("content-type", "text/html")], "<html>").await;
        said
    });
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("not Prism") && ended.stderr.contains("PRISM_PORT"), "{}", ended.stderr);
    assert!(!asked.to_lowercase().contains("authorization"), "{asked}");
    other.asked_nothing_more();
}

#[tokio::test]
async fn a_daemon_with_another_token_is_told_apart() {
    let daemon = Launch::serve(&destination("a", &[], "")).start().await;
    let home = Home::new();
    let ended = tools(&home, &destination("a", &[], ""), &daemon.port().to_string(), &[]).await;
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("another token") && ended.stderr.contains("PRISM_HOME"), "{}", ended.stderr);
}

// What to do is said.
#[tokio::test]
async fn a_name_that_nobody_has_is_answered_with_those_there_are() {
    let (_port, port) = nobody();
    let home = Home::new();
    let ended = tools(&home, &destination("files", &[], ""), &port, &["flies"]).await;
    assert_eq!(ended.code, Some(1));
    assert!(
        ended.stderr.contains("did you mean \"files\"?") && ended.stderr.contains("known: files"),
        "{}",
        ended.stderr
    );
    let ended = tools(&home, "", &port, &[]).await;
    assert!(ended.stderr.contains("prism add files"), "{}", ended.stderr);
    let ended = tools(&home, "", &port, &["ftp://x/"]).await;
    assert!(ended.stderr.contains("no http or https URL"), "{}", ended.stderr);
}

// A variable that only the daemon has is no reason not to ask the daemon.
#[tokio::test]
async fn a_variable_of_the_daemons_is_not_needed_to_ask_it() {
    let home = Home::new();
    let config = destination("a", &[], "env = { KEY = \"env:ONLY_THE_DAEMON_HAS_IT\" }");
    let (_port, port) = nobody();
    let ended = tools(&home, &config, &port, &[]).await;
    assert!(ended.stderr.contains("ONLY_THE_DAEMON_HAS_IT"), "without a daemon it is: {}", ended.stderr);
    let daemon = Launch::serve(&config).env("ONLY_THE_DAEMON_HAS_IT", "1").home(&home).start().await;
    let ended = tools(&home, &config, &daemon.port().to_string(), &[]).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[tokio::test]
async fn a_url_is_asked_as_it_is() {
    let daemon = Daemon::run(&[], &[]).await;
    let (url, token) = (format!("http://127.0.0.1:{}/mcp", daemon.port()), daemon.token());
    let listing = |flags: &[&str]| {
        let arguments = ["tools", &url].iter().chain(flags).map(|word| (*word).to_owned()).collect();
        Launch::prism(arguments).env("MY_TOKEN", &token).end()
    };
    for flags in [&["--token", "env:MY_TOKEN"][..], &["--header", "Authorization: Bearer env:MY_TOKEN"]] {
        let ended = listing(flags).await;
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(ended.stdout.contains("echo(text*, size)"), "{}", ended.stdout);
    }
    let ended =
        listing(&["--token", &format!("@{}", daemon.home().file("http-mcp-token")), "--revision", "2025-03-26"]).await;
    assert!(ended.stdout.contains("prism-demo 0.1.0, 2025-03-26"), "{ended:?}");
    let ended = listing(&[]).await;
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("401") && ended.stderr.contains("--token"), "{}", ended.stderr);
}
