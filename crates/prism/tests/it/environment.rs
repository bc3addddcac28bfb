//! What children find in their environment: what they need, what they are given, and the PATH of the user's shell.

use std::{collections::BTreeMap, fs, os::unix::fs::PermissionsExt};

use crate::support::{Client, Daemon, Home, Launch, demo, destination, until};

/// The variables that a client's child was started with, less the mark that all children bear.
async fn variables(session: &Client) -> BTreeMap<String, String> {
    let environment = fs::read_to_string(format!("/proc/{}/environ", session.child().await)).unwrap();
    let variables = environment.split_terminator('\0').map(|line| line.split_once('=').unwrap());
    let mut variables: BTreeMap<_, _> = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    variables.remove("PRISM_CHILD_OF").expect("every child bears the mark");
    variables
}

fn names(variables: &BTreeMap<String, String>) -> Vec<&str> {
    variables.keys().map(String::as_str).collect()
}

/// A daemon in whose environment there is more than a server should see.
fn full(launch: Launch) -> Launch {
    let launch =
        launch.env("AWS_SECRET_ACCESS_KEY", "hunter2").env("AWS_PROFILE", "work").env("GITHUB_TOKEN", "hunter3");
    launch.env("LC_ALL", "C.UTF-8").env("https_proxy", "http://proxy").env("PRISM_API_KEY", KEY)
}

const KEY: &str = "0123456789abcdef0123456789abcdef";

async fn client(daemon: &Daemon, path: &str) -> Client {
    Client::new(daemon.place(), path, Some(KEY.to_owned())).initialize().await
}

#[tokio::test]
async fn a_child_sees_what_it_needs_and_what_its_destination_names() {
    let config = [
        "login_path = false",
        &destination("plain", &[], "env = { MINE = \"env:GITHUB_TOKEN\", LC_ALL = \"C\" }"),
        &destination("more", &[], "inherit_env = [\"AWS_*\", \"PRISM_*\"]"),
        &destination("all", &[], "inherit_env = \"all\""),
    ]
    .join("\n");
    let daemon = full(Launch::serve(&config)).start().await;

    let plain = variables(&client(&daemon, "/plain/mcp").await).await;
    assert_eq!(names(&plain), ["HOME", "LC_ALL", "MINE", "PATH", "https_proxy"]);
    assert_eq!((plain["MINE"].as_str(), plain["LC_ALL"].as_str()), ("hunter3", "C"));

    let more = variables(&client(&daemon, "/more/mcp").await).await;
    let expected = ["AWS_PROFILE", "AWS_SECRET_ACCESS_KEY", "HOME", "LC_ALL", "PATH", "PRISM_HOME", "https_proxy"];
    assert_eq!(names(&more), expected, "and never Prism's own key");

    let all = variables(&client(&daemon, "/all/mcp").await).await;
    assert_eq!(all["GITHUB_TOKEN"], "hunter3");
    assert!(!all.values().any(|value| value.contains(KEY)), "{all:?}");
}

#[tokio::test]
async fn what_is_inherited_can_be_set_for_all_and_unset_for_one() {
    let config = [
        "login_path = false\ninherit_env = [\"AWS_PROFILE\"]",
        &destination("a", &[], ""),
        &destination("b", &[], "inherit_env = \"allowed\""),
    ]
    .join("\n");
    let daemon = full(Launch::serve(&config)).start().await;
    let [a, b] = [client(&daemon, "/a/mcp").await, client(&daemon, "/b/mcp").await];
    assert!(variables(&a).await.contains_key("AWS_PROFILE"));
    assert!(!variables(&b).await.contains_key("AWS_PROFILE"));
}

#[tokio::test]
async fn a_server_that_was_typed_runs_as_if_it_were_typed_alone() {
    let daemon = full(Launch::run(&[], &demo(&[]))).start().await;
    let seen = variables(&client(&daemon, "/mcp").await).await;
    assert_eq!(seen["GITHUB_TOKEN"], "hunter3");
    assert!(!seen.contains_key("PRISM_API_KEY"));
}

/// A home whose user's shell finds a server that nobody else finds.
fn home_with_own_path() -> Home {
    let home = Home::new();
    let folder = home.path().join("own/bin");
    fs::create_dir_all(&folder).unwrap();
    let server = folder.join("own-mcp-server");
    fs::write(&server, format!("#!/bin/sh\nexec {}\n", demo(&[]).join(" "))).unwrap();
    fs::set_permissions(&server, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(home.path().join(".bash_profile"), "echo Welcome\nexport PATH=\"$HOME/own/bin:$PATH\"\n").unwrap();
    home
}

const OWN: &str = "[destination.own]\ncommand = [\"own-mcp-server\"]\n";

// The most common failure in practice: the daemon was not started from a shell.
#[tokio::test]
async fn a_program_that_only_the_login_shell_finds_is_started() {
    let home = home_with_own_path();
    let daemon = Launch::serve(OWN).home(&home).env("SHELL", "/bin/bash").start().await;
    let session = daemon.client_at("/own/mcp").initialize().await;
    let path = variables(&session).await.remove("PATH").unwrap();
    assert!(path.starts_with(&format!("{}:", home.file("own/bin"))), "{path}");
    for folder in std::env::var("PATH").unwrap().split(':') {
        assert!(path.split(':').any(|other| other == folder), "{folder} of the daemon's is in {path}");
    }
    assert!(!daemon.stop().await.contains("cannot be started"));
}

#[tokio::test]
async fn the_login_shell_is_not_asked_where_somebody_says_no() {
    let home = home_with_own_path();
    let config = format!("login_path = false\n{OWN}");
    let daemon = Launch::serve(&config).home(&home).env("SHELL", "/bin/bash").start().await;
    let reply = daemon.client_at("/own/mcp").say_hello().await;
    assert_eq!(reply.status, 503);
    let body = reply.json().await;
    assert!(
        body["error"]["message"].as_str().unwrap().contains("its program \"own-mcp-server\" was not found on PATH"),
        "{body}"
    );
    daemon.logged("\"own-mcp-server\" was not found on PATH").await;
}

#[tokio::test]
async fn a_path_of_the_destinations_own_beats_all_others() {
    let home = home_with_own_path();
    let settings = "env = { PATH = \"/usr/bin:/bin\" }";
    let daemon = Launch::serve(&destination("a", &[], settings)).home(&home).env("SHELL", "/bin/bash").start().await;
    let session = daemon.client_at("/a/mcp").initialize().await;
    assert_eq!(variables(&session).await["PATH"], "/usr/bin:/bin");
}

#[tokio::test]
async fn a_profile_that_hangs_holds_up_the_first_child_only_for_a_while_and_nothing_else() {
    let home = Home::new();
    fs::write(home.path().join(".bash_profile"), "sleep 1000\n").unwrap();
    let daemon = Launch::serve(&destination("a", &[], "")).home(&home).env("SHELL", "/bin/bash").start().await;
    assert_eq!(daemon.get("/healthz").await.status, 200);
    daemon.client_at("/workspace/mcp").initialize().await;
    assert!(!daemon.stderr().contains("does not say its PATH"), "nobody had to wait for the shell so far");
    let session = daemon.client_at("/a/mcp").initialize().await;
    assert_eq!(variables(&session).await["PATH"], std::env::var("PATH").unwrap());
    until("the log tells", async || daemon.stderr().contains("does not say its PATH")).await;
}

#[tokio::test]
async fn a_program_that_nobody_finds_is_in_the_log() {
    let daemon = Launch::serve("[destination.a]\ncommand = [\"no-such-mcp-server\"]\n").start().await;
    let told = "The server cannot be started: its program \"no-such-mcp-server\" was not found on PATH";
    until("the log tells", async || daemon.stderr().contains(told)).await;
}
