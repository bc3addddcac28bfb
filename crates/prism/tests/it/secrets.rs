//! Secrets of destinations: where they are taken from, when, and where they never appear.

use std::{fs, os::unix::fs::PermissionsExt};

use rustix::process::Signal;

use crate::support::{Client, Home, Launch, Reply, destination, process, until, upstream::Upstream};

const SECRET: &str = "hunter2-hunter2";

/// Writes a file that only its owner can read.
fn write(home: &Home, name: &str, text: &str) -> String {
    let file = home.file(name);
    fs::write(&file, text).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    file
}

async fn variable(session: &Client, name: &str) -> Option<String> {
    let environment = fs::read_to_string(format!("/proc/{}/environ", session.child().await)).unwrap();
    environment.split('\0').find_map(|line| line.strip_prefix(name)?.strip_prefix('=').map(str::to_owned))
}

async fn why(reply: Reply) -> String {
    assert_eq!(reply.status, 503);
    reply.json().await["error"]["message"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_file_is_read_at_every_start_of_the_child() {
    let home = Home::new();
    write(&home, "secret", "first\n");
    // Relative: to the config file.
    let daemon = Launch::serve(&destination("a", &[], "env = { K = \"file:secret\" }")).home(&home).start().await;
    let session = daemon.client_at("/a/mcp").initialize().await;
    assert_eq!(variable(&session, "K").await.as_deref(), Some("first"));
    write(&home, "secret", "second\n");
    let child = session.child().await;
    process::signal(child, Signal::KILL);
    until("the child is reaped", async || !process::is_there(child)).await;
    assert_eq!(variable(&session, "K").await.as_deref(), Some("second"), "the session lives on with the new one");
}

#[tokio::test]
async fn a_secret_that_is_missing_costs_its_own_destination_only_and_can_come_later() {
    let home = Home::new();
    let config = [
        destination("unset", &[], "env = { K = \"env:NOBODY_HAS_SET_THIS\" }"),
        destination("open", &[], "env = { K = \"file:open\" }"),
        destination("late", &[], "env = { K = \"file:late\" }"),
        destination("keyring", &[], "env = { K = \"keyring:a/b\", PATH = \"/usr/bin:/bin\" }"),
        destination("good", &[], ""),
    ]
    .join("\n");
    fs::write(home.path().join("open"), SECRET).unwrap();
    fs::set_permissions(home.path().join("open"), fs::Permissions::from_mode(0o644)).unwrap();
    let daemon = Launch::serve(&config).home(&home).env("PATH", "/usr/bin:/bin").start().await;
    let hello = async |name: &str| daemon.client_at(&format!("/{name}/mcp")).say_hello().await;

    let text = why(hello("unset").await).await;
    assert!(text.contains("environment variable NOBODY_HAS_SET_THIS, which is not set"), "{text}");
    let text = why(hello("open").await).await;
    assert!(text.contains("can be read by others (mode 0644); chmod 600 it"), "{text}");
    let text = why(hello("late").await).await;
    assert!(text.contains(&home.file("late")), "{text}");
    daemon.client_at("/good/mcp").initialize().await.child().await;

    write(&home, "late", SECRET);
    let session = daemon.client_at("/late/mcp").initialize().await;
    assert_eq!(variable(&session, "K").await.as_deref(), Some(SECRET));
    let log = daemon.stop().await;
    assert!(log.contains("NOBODY_HAS_SET_THIS") && !log.contains(SECRET), "{log}");
}

#[tokio::test]
async fn the_keyring_is_asked_by_way_of_its_own_program() {
    let home = Home::new();
    let tool = home.path().join("bin/secret-tool");
    fs::create_dir_all(tool.parent().unwrap()).unwrap();
    fs::write(&tool, format!("#!/bin/sh\n[ \"$*\" = 'lookup service files username me' ] && echo {SECRET}\n")).unwrap();
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", home.file("bin"), std::env::var("PATH").unwrap());
    let config = [
        destination("a", &[], "env = { K = \"keyring:files/me\" }"),
        destination("b", &[], "env = { K = \"keyring:files/you\" }"),
    ];
    let daemon = Launch::serve(&config.join("\n")).home(&home).env("PATH", &path).start().await;
    let session = daemon.client_at("/a/mcp").initialize().await;
    assert_eq!(variable(&session, "K").await.as_deref(), Some(SECRET));
    let command = fs::read(format!("/proc/{}/cmdline", session.child().await)).unwrap();
    assert!(!String::from_utf8_lossy(&command).contains(SECRET));
    let text = why(daemon.client_at("/b/mcp").say_hello().await).await;
    assert!(text.contains("no secret for service \"files\" and account \"you\""), "{text}");
}

#[tokio::test]
async fn a_header_is_looked_up_at_every_connection() {
    let home = Home::new();
    let file = write(&home, "secret", "first");
    let mut upstream = Upstream::start().await;
    let header = format!("X-Key=file:{file}");
    let daemon = upstream.launch(&["--header", &header, "--era", "legacy"]).start().await;
    for key in ["first", "second"] {
        write(&home, "secret", key);
        let hello = tokio::spawn({
            let client = daemon.client_at("/mcp");
            async move { client.say_hello().await.status }
        });
        let asked = upstream.asked("initialize").await;
        assert_eq!(asked.header("x-key"), Some(key));
        // It does not want us, so that the next client is a new connection's first.
        asked.status(401).await;
        assert_eq!(hello.await.unwrap(), 503);
    }
    let log = daemon.stop().await;
    assert!(!log.contains("first") && !log.contains("second"), "{log}");
}

#[tokio::test]
async fn no_list_shows_what_is_written_out() {
    let home = Home::new();
    let settings = format!("env = {{ API_KEY = \"{SECRET}\" }}");
    let list = |flags: &[&str]| {
        let arguments = ["list"].iter().chain(flags).map(|word| (*word).to_owned()).collect();
        Launch::prism(arguments).home(&home).config(&destination("a", &[], &settings)).output()
    };
    for flags in [&[][..], &["--json"]] {
        let text = list(flags).await;
        assert!(text.contains("demo-server") && !text.contains(SECRET), "{text}");
    }
    let daemon = Launch::serve(&destination("a", &[], &settings)).home(&home).start().await;
    assert_eq!(variable(&daemon.client_at("/a/mcp").initialize().await, "API_KEY").await.as_deref(), Some(SECRET));
    let log = daemon.stop().await;
    assert!(log.contains("has a secret (API_KEY) written out") && !log.contains(SECRET), "{log}");
}
