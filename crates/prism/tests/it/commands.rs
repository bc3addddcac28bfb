//! The command line as a person meets it: what is printed, where it listens, how it refuses (D-01, D-03, D-04).

use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::support::{
    Client, Daemon, Home, Launch, Modern, Place, demo, destination,
    seen::{NOTHING, logged, seen},
};

fn words(arguments: &[&str]) -> Vec<String> {
    arguments.iter().map(|word| (*word).to_owned()).collect()
}

// The README's two commands.
// checks 4
#[tokio::test]
async fn with_nothing_configured_it_says_where_it_listens_where_the_token_is_and_what_to_type_next() {
    let daemon = Launch::prism(words(&["--port", "0"])).start().await;
    let said = daemon.stdout();
    let starts =
        |word: &str| said.lines().find(|line| line.starts_with(word)).unwrap_or_else(|| panic!("{said}")).to_owned();
    assert_eq!(starts("listening on "), format!("listening on http://127.0.0.1:{}", daemon.port()));
    let token = daemon.home().path().join("http-mcp-token");
    assert!(starts("token").contains(token.to_str().unwrap()));
    assert!(starts("next").contains("prism add"));
    assert!(!said.contains(&daemon.token()), "where it is, not what it is");
    assert_eq!(std::fs::metadata(token).unwrap().permissions().mode() & 0o777, 0o600);
    let reply = daemon.client_at("/files/mcp").say_hello().await;
    assert_eq!(reply.status, 404);
    assert!(reply.text().await.contains("prism add"));
}

#[tokio::test]
async fn run_says_what_it_bridges_and_how_a_client_gets_there() {
    let daemon = Daemon::run(&[], &[]).await;
    let said = daemon.stdout();
    let url = format!("http://127.0.0.1:{}/mcp", daemon.port());
    assert!(said.contains(&format!("listening on {url}")), "{said}");
    assert!(
        said.contains("demo-server") && said.contains(&format!("claude mcp add --transport http prism {url}")),
        "{said}"
    );
    // It is also where a configured destination would be.
    daemon.client_at("/run/mcp").initialize().await.child().await;
}

// B-01
#[tokio::test]
async fn run_bridges_a_url_and_says_so_without_its_query() {
    let arguments = words(&[
        "run",
        "--port",
        "0",
        "--url",
        "http://127.0.0.1:9/there?key=hunter2",
        "--type",
        "sse",
        "--header",
        "Authorization: Bearer env:DOCS_TOKEN",
        "--era",
        "legacy",
        "--event-names",
        "method",
        "--legacy-sse",
    ]);
    let daemon = Launch::prism(arguments.clone()).env("DOCS_TOKEN", "hunter2").start().await;
    let said = daemon.stdout();
    assert!(said.contains("bridging     http://127.0.0.1:9/there\n"), "{said}");
    assert!(!said.contains("hunter2") && !daemon.stderr().contains("hunter2"), "{said}");
    let (status, said) = Launch::prism(arguments).fail().await;
    assert_eq!(status.code(), Some(1));
    assert!(said.contains("option --header:") && said.contains("DOCS_TOKEN, which is not set"), "{said}");
}

// B-01
#[tokio::test]
async fn run_wants_one_server_and_options_that_fit_to_it() {
    for (arguments, why) in [
        (&["run"][..], "fix: prism run -- npx -y some-mcp-server, or prism run --url https://example.com/mcp"),
        (&["run", "--url", "http://127.0.0.1:9/", "--", "cat"], "fix: keep one of the two"),
        (&["run", "--url", "127.0.0.1"], "option --url: url is not an absolute http or https URL"),
        (&["run", "--type", "sse", "--", "cat"], "--type is for --url, and there is a command"),
        (&["run", "--header", "A: b", "--", "cat"], "--header is for --url, and there is a command"),
    ] {
        let (status, said) = Launch::prism(words(arguments)).fail().await;
        assert_eq!(status.code(), Some(1), "{said}");
        assert!(said.contains(why), "{said}");
    }
}

// B-01
#[tokio::test]
async fn serve_looks_for_no_program_behind_a_url() {
    let config = "[destination.docs]\nurl = \"http://127.0.0.1:9/mcp\"\n";
    let daemon = Launch::serve(config).start().await;
    assert!(daemon.stdout().contains("/docs/mcp"), "{}", daemon.stdout());
    assert!(!daemon.stderr().contains("PATH"), "{}", daemon.stderr());
}

// D-03: a token is made once.
#[tokio::test]
async fn the_token_outlives_the_daemon() {
    let home = Home::new();
    let mut daemon = Launch::run(&[], &demo(&[])).home(&home).start().await;
    let token = daemon.token();
    daemon.kill().await;
    let daemon = Launch::run(&[], &demo(&[])).home(&home).start().await;
    assert_eq!(daemon.token(), token);
    daemon.client().initialize().await;
}

// D-01
// checks 4
#[tokio::test]
async fn an_address_that_others_can_reach_needs_a_word_of_its_own() {
    let refused = Launch::run(&["--address", "0.0.0.0"], &demo(&[]));
    let (status, said) = refused.fail().await;
    assert_eq!(status.code(), Some(1));
    assert!(said.contains("0.0.0.0") && said.contains("--insecure"), "{said}");
    let daemon = Daemon::run(&["--address", "0.0.0.0", "--insecure"], &[]).await;
    daemon.client().initialize().await;
    // what it truly listens on, and what that means.
    let said = daemon.stdout();
    assert!(said.contains("listening on http://0.0.0.0:") && said.contains("; from here http://127.0.0.1:"), "{said}");
    let warned = daemon.stderr();
    assert!(warned.contains("other machines can reach 0.0.0.0, without TLS") && warned.contains("fix: "), "{warned}");
    seen(NOTHING, logged(&said, "listening on"), logged(&warned, "other machines can reach"));
}

// What to do is said.
#[tokio::test]
async fn a_port_in_use_is_an_error_that_names_the_flag() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let mut arguments = words(&["run", "--port", &port, "--"]);
    arguments.extend(demo(&[]));
    let (status, said) = Launch::prism(arguments).fail().await;
    assert_eq!(status.code(), Some(1));
    assert!(said.contains(&port) && said.contains("in use") && said.contains("--port"), "{said}");
}

#[tokio::test]
async fn a_config_error_shows_the_file_the_line_and_the_fix() {
    let config = "[destination.files]\ncommand = [\"x\"]\nproces = \"shared\"\n";
    let (status, said) = Launch::serve(config).fail().await;
    assert_eq!(status.code(), Some(1));
    assert!(said.contains("it.toml:3:1") && said.contains("proces") && said.contains("process"), "{said}");
}

#[tokio::test]
async fn run_without_a_program_says_so_and_starts_nothing() {
    let (status, said) = Launch::run(&[], &words(&["no-such-mcp-server"])).fail().await;
    assert_eq!(status.code(), Some(1));
    assert!(said.contains("no-such-mcp-server") && said.contains("PATH"), "{said}");
}

// D-01
#[tokio::test]
async fn serve_answers_on_its_unix_socket_too() {
    let daemon = Launch::serve(&destination("a", &[], "")).start().await;
    let socket = daemon.home().path().join("prism.sock");
    let client = Client::new(Place::Unix(socket.clone()), "/a/mcp", Some(daemon.token()));
    let session = client.initialize().await;
    assert_eq!(session.text("echo", json!({"text": "hello"})).await, "hello");
    // One session, whichever way its requests come.
    let by_port = daemon.client_at("/a/mcp").with_session(session.session());
    assert_eq!(by_port.child().await, session.child().await);
    let stranger = Client::new(Place::Unix(socket), "/a/mcp", None);
    assert_eq!(stranger.say_hello().await.status, 401);
}

// D-01: one daemon per home; a dead one's socket is in nobody's way.
#[tokio::test]
async fn a_second_serve_in_one_home_is_refused_and_a_dead_one_is_replaced() {
    let home = Home::new();
    let config = destination("a", &[], "");
    let mut daemon = Launch::serve(&config).home(&home).start().await;
    let (status, said) = Launch::serve(&config).home(&home).fail().await;
    assert_eq!(status.code(), Some(3));
    assert!(said.contains("already runs") && said.contains("PRISM_HOME"), "{said}");
    daemon.client_at("/a/mcp").initialize().await;
    daemon.kill().await;
    assert!(home.path().join("prism.sock").exists());
    let next = Launch::serve(&config).home(&home).start().await;
    let client = Client::new(Place::Unix(home.path().join("prism.sock")), "/a/mcp", Some(next.token()));
    client.initialize().await;
}

// D-09: `prism add`, and what was added is served.
#[tokio::test]
async fn what_add_has_written_is_what_serve_serves() {
    let home = Home::new();
    let mut arguments = words(&["add", "files", "--"]);
    arguments.extend(demo(&[]));
    let (status, said) = Launch::prism(arguments).home(&home).fail().await;
    assert_eq!(status.code(), Some(0), "{said}");
    let daemon = Launch::prism(words(&["--port", "0"])).home(&home).start().await;
    assert!(daemon.stdout().contains("/files/mcp"), "{}", daemon.stdout());
    daemon.client_at("/files/mcp").initialize().await.child().await;
}

// N-01, N-07
#[tokio::test]
async fn the_demo_server_listens_and_its_posts_are_streams_or_plain_json() {
    for (flag, kind) in [("--enable-post-sse", "text/event-stream"), ("--enable-post-sse=false", "application/json")] {
        let daemon = Launch::prism(words(&["demo-server", "--http", "127.0.0.1:0", flag])).start().await;
        let client = || Client::new(daemon.place(), "/mcp", None);
        let session = client().initialize().await;
        let mut aside = session.listen().await;
        let reply = session.call("log", json!({"level": "error", "text": "hear me"})).await;
        assert_eq!(reply.header("content-type"), Some(kind));
        match kind {
            "application/json" => {
                assert_eq!(reply.json().await["result"]["content"][0]["text"], "1 notes sent");
                assert_eq!(aside.message().await["params"]["data"], "hear me");
            }
            _ => assert_eq!(reply.events().message().await["params"]["data"], "hear me"),
        }
        // A listen has no other way than its POST.
        let mut heard = Modern::new(client()).listen(json!(1), json!({"toolsListChanged": true})).await;
        assert_eq!(heard.message().await["method"], "notifications/subscriptions/acknowledged", "{flag}");
    }
}
