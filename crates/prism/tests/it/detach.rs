//! The daemon in the background: `prism serve --detach`, `stop`, `restart`, `logs`.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::PathBuf,
};

use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::support::{Client, Ended, Home, Launch, Place, demo, destination, lines, process, until};

/// A home whose daemon, should one run in the background, ends with the test.
struct Background {
    home: Home,
}

impl Background {
    fn new() -> Self {
        Self { home: Home::new() }
    }

    async fn prism(&self, words: &[&str]) -> Ended {
        Launch::prism(words.iter().map(|word| (*word).to_owned()).collect()).home(&self.home).end().await
    }

    async fn start(&self, flags: &[&str]) -> Value {
        let words: Vec<&str> = ["serve", "--port", "0", "--detach"].iter().chain(flags).copied().collect();
        let ended = self.prism(&words).await;
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        self.registered().expect("it is registered")
    }

    fn registered(&self) -> Option<Value> {
        serde_json::from_slice(&fs::read(self.home.path().join("http-mcp.json")).ok()?).ok()
    }

    fn log(&self) -> PathBuf {
        self.home.path().join("prism.log")
    }

    fn client(&self, registered: &Value, path: &str) -> Client {
        let token = fs::read_to_string(self.home.path().join("http-mcp-token")).unwrap().trim().to_owned();
        Client::new(Place::Tcp(port(registered)), path, Some(token))
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let Some(pid) = self.registered().map(|registered| pid(&registered)) else { return };
        let children = process::marked(self.home.path());
        process::signal_if_there(pid, Signal::KILL);
        for child in children {
            process::signal_if_there(child.pid, Signal::KILL);
        }
    }
}

fn pid(registered: &Value) -> u32 {
    registered["pid"].as_u64().unwrap().try_into().unwrap()
}

fn port(registered: &Value) -> u16 {
    registered["port"].as_u64().unwrap().try_into().unwrap()
}

// D-01
#[tokio::test]
async fn it_runs_on_in_a_session_of_its_own_until_it_is_stopped() {
    let background = Background::new();
    let ended = background.prism(&["serve", "--port", "0", "--detach"]).await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let registered = background.registered().expect("it answers, so it is registered");
    let pid = pid(&registered);
    for said in [registered["url"].as_str().unwrap(), &pid.to_string(), " stop, ", "prism.log"] {
        assert!(ended.stdout.contains(said), "{said}: {}", ended.stdout);
    }
    assert!(process::is_alive(pid));
    assert_eq!(process::session(pid), Some(pid));
    assert_ne!(process::parent(pid), Some(std::process::id()));
    assert_eq!(fs::metadata(background.log()).unwrap().mode() & 0o777, 0o600);
    let reply = background.client(&registered, "/metrics").request(hyper::Method::GET).send().await;
    assert_eq!(reply.status, 200);

    let ended = background.prism(&["stop"]).await;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), format!("stopped (pid {pid})\n").as_str()));
    assert!(!process::is_alive(pid));
    assert_eq!(background.registered(), None);
    let again = background.prism(&["stop"]).await;
    assert_eq!((again.code, again.stdout.as_str()), (Some(0), "not running\n"));
}

// D-02
#[tokio::test]
async fn of_many_at_once_one_starts_it_and_all_find_it() {
    const STARTS: usize = 8;
    let background = Background::new();
    let words = ["serve", "--port", "0", "--detach", "--if-running", "ok", "--json"].map(str::to_owned);
    let start = |_| Launch::prism(words.to_vec()).home(&background.home).begin();
    let starts: Vec<_> = (0..STARTS).map(start).collect();
    let mut ended = Vec::new();
    for start in starts {
        ended.push(start.end().await);
    }
    let registered = background.registered().expect("one runs");
    for one in &ended {
        assert_eq!(one.code, Some(0), "{}", one.stderr);
        let told: Value = serde_json::from_str(&one.stdout).expect("the registration");
        assert_eq!(told, registered);
    }
    let home = format!("PRISM_HOME={}", background.home.path().display());
    let only = vec![pid(&registered)];
    until("no other one is left", async || process::started_with(&home, "--detached") == only).await;
    let again = background.prism(&["serve", "--port", "0", "--detach"]).await;
    assert_eq!(again.code, Some(3));
    assert!(again.stderr.contains(&format!("pid {}", pid(&registered))), "{}", again.stderr);
}

// A relative path means the same in the background, and after a restart, as where it was typed.
#[tokio::test]
async fn a_restart_keeps_config_and_flags() {
    let background = Background::new();
    let config = destination("a", &[], "cwd = \"/\"");
    fs::write(background.home.path().join("own.toml"), config).unwrap();
    let first = background.start(&["--config", "own.toml", "--max-sessions", "3"]).await;
    let log = fs::read_to_string(background.log()).unwrap();
    assert!(log.contains(&background.home.file("own.toml")), "whoever reads it again is elsewhere: {log}");
    let session = background.client(&first, "/a/mcp").initialize().await;
    assert_eq!(session.text("echo", json!({"text": "before"})).await, "before");

    let ended = background.prism(&["restart", "--json"]).await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let second = background.registered().unwrap();
    assert_eq!(serde_json::from_str::<Value>(&ended.stdout).unwrap(), second);
    assert_ne!(pid(&first), pid(&second));
    assert!(!process::is_alive(pid(&first)));
    assert_eq!(second["arguments"], first["arguments"]);
    assert_eq!(second["arguments"], json!(["serve", "--port", "0", "--config", "own.toml", "--max-sessions", "3"]));
    let session = background.client(&second, "/a/mcp").initialize().await;
    assert_eq!(session.text("echo", json!({"text": "after"})).await, "after");
}

#[tokio::test]
async fn a_restart_on_a_broken_config_leaves_the_old_one_running() {
    let background = Background::new();
    fs::write(background.home.path().join("own.toml"), "").unwrap();
    let first = background.start(&["--config", "own.toml"]).await;
    fs::write(background.home.path().join("own.toml"), "[editor]\nfense = true\n").unwrap();
    let ended = background.prism(&["restart"]).await;
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.starts_with("error: ") && ended.stderr.contains("own.toml:2:1"), "{}", ended.stderr);
    assert!(ended.stderr.contains("did you mean \"fence\"?") && ended.stderr.contains("runs on"), "{}", ended.stderr);
    assert_eq!(background.registered(), Some(first.clone()));
    assert!(process::is_alive(pid(&first)));
    let ended = background.prism(&["serve", "--check", "--config", "own.toml"]).await;
    assert_eq!(ended.code, Some(1), "{}", ended.stdout);
    fs::write(background.home.path().join("own.toml"), "").unwrap();
    let ended = background.prism(&["serve", "--check", "--config", "own.toml"]).await;
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
}

// A person who types `restart` wants it to run.
#[tokio::test]
async fn a_restart_of_nothing_starts_it() {
    let background = Background::new();
    let launch = Launch::prism(vec!["restart".to_owned()]).home(&background.home).env("PRISM_PORT", "0");
    let ended = launch.end().await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(process::is_alive(pid(&background.registered().unwrap())));
}

// Whoever comes while the daemon is stopping waits for its end and starts the next.
#[tokio::test]
async fn a_start_waits_for_one_that_is_stopping() {
    let background = Background::new();
    let record = background.home.file("record");
    let config = destination("a", &["--record", &record], "");
    fs::write(background.home.path().join("prism.toml"), config).unwrap();
    let first = background.start(&[]).await;
    let session = background.client(&first, "/a/mcp").initialize().await;
    let call = tokio::spawn(async move { session.text("slow", json!({"ms": 1000, "text": "done"})).await });
    until("the call is with its child", async || lines(&record).iter().any(|line| line.contains("slow"))).await;
    process::signal(pid(&first), Signal::TERM);
    until("it is stopping", async || background.registered().is_none()).await;
    let second = background.start(&[]).await;
    assert!(!process::is_alive(pid(&first)));
    assert_ne!(pid(&first), pid(&second));
    assert_eq!(call.await.unwrap(), "done");
}

// The commands find it by its registration, wherever it listens.
#[tokio::test]
async fn commands_find_one_that_listens_elsewhere() {
    let background = Background::new();
    let starts = background.home.file("starts");
    fs::write(background.home.path().join("prism.toml"), destination("a", &["--starts", &starts], "")).unwrap();
    let registered = background.start(&[]).await;
    let session = background.client(&registered, "/a/mcp").initialize().await;
    session.child().await;
    let said = background.prism(&["call", "a", "echo", "text=hello"]).await;
    assert_eq!((said.code, said.stdout.as_str()), (Some(0), "hello\n"), "{}", said.stderr);
    assert_eq!(lines(&starts).len(), 1, "by way of the daemon, whose server ran already");
}

#[tokio::test]
async fn one_that_cannot_start_is_quoted_and_leaves_nothing() {
    let background = Background::new();
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let ended = background.prism(&["serve", "--detach", "--port", &port]).await;
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("did not start") && ended.stderr.contains("is in use"), "{}", ended.stderr);
    assert_eq!(background.registered(), None);

    fs::write(background.home.path().join("prism.toml"), "port = \"x\"").unwrap();
    let ended = background.prism(&["serve", "--detach"]).await;
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("prism.toml:1"), "the config is read before anything starts: {}", ended.stderr);
}

#[tokio::test]
async fn a_stop_that_takes_too_long_says_what_still_runs() {
    let background = Background::new();
    let stubborn = format!("trap '' TERM; exec {}", demo(&["--fault", "deaf"]).join(" "));
    let config = format!("[destination.a]\ncommand = {:?}\n", ["sh", "-c", &stubborn]);
    fs::write(background.home.path().join("prism.toml"), config).unwrap();
    let registered = background.start(&[]).await;
    background.client(&registered, "/a/mcp").initialize().await;
    let ended = background.prism(&["stop", "--timeout", "50ms"]).await;
    let pid = pid(&registered);
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains(&format!("pid {pid} still runs")), "{}", ended.stderr);
    // It is no longer registered, and yet the next stop knows whom to wait for.
    let ended = background.prism(&["stop"]).await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(!process::is_alive(pid));
}

#[tokio::test]
async fn the_log_is_shown_and_kept_small() {
    let background = Background::new();
    let nothing = background.prism(&["logs"]).await;
    assert_eq!(nothing.code, Some(1));
    assert!(nothing.stderr.contains("prism serve --detach"), "{}", nothing.stderr);

    fs::write(background.log(), "x".repeat(11 << 20)).unwrap();
    fs::set_permissions(background.log(), fs::Permissions::from_mode(0o600)).unwrap();
    let registered = background.start(&["--log", "info"]).await;
    let old = background.home.path().join("prism.log.1");
    assert!(fs::metadata(&old).unwrap().len() >= 11 << 20, "what was long is another file now");
    assert!(fs::metadata(background.log()).unwrap().len() < 1 << 20);
    let ask = async || {
        let reply = background.client(&registered, "/prism/mcp").initialize().await;
        reply.session().to_owned()
    };
    ask().await;
    let logged = || fs::read_to_string(background.log()).is_ok_and(|text| text.contains("initialize"));
    until("the request is logged", async || logged()).await;
    let shown = background.prism(&["logs", "-n", "5"]).await;
    assert!(shown.stdout.contains("initialize") && shown.stdout.lines().count() <= 5, "{}", shown.stdout);

    // A file that somebody took away is begun anew: records have to go somewhere.
    fs::remove_file(background.log()).unwrap();
    until("it is begun anew", async || {
        ask().await;
        background.log().exists()
    })
    .await;
    ask().await;
    until("the request is logged there", async || logged()).await;
    assert_eq!(fs::metadata(background.log()).unwrap().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn the_log_of_one_in_the_foreground_is_where_that_is() {
    let daemon = Launch::serve("").start().await;
    let ended = Launch::prism(vec!["logs".to_owned()]).home(daemon.home()).end().await;
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("stderr") && ended.stderr.contains(&daemon.pid().to_string()), "{}", ended.stderr);
}

#[tokio::test]
async fn stop_ends_one_in_the_foreground_too() {
    let mut daemon = Launch::serve("").start().await;
    let ended = Launch::prism(vec!["stop".to_owned()]).home(daemon.home()).end().await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(daemon.ended().await.code(), Some(0));
}
