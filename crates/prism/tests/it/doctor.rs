//! `prism doctor`: what it finds in real homes, with a daemon and without, and what it says to type (D-05).

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use serde_json::{Value, json};

use crate::support::{Daemon, Ended, Home, Launch, destination, process, until, upstream::Upstream};

/// `prism doctor` in a home. Nobody listens on the port of its config, but for what a test puts there.
async fn doctor(home: &Home, config: &str, port: &str, flags: &[&str]) -> Ended {
    let arguments = ["doctor"].iter().chain(flags).map(|word| (*word).to_owned()).collect();
    // A shell that has nothing to say: the one of whoever runs the tests may ask back.
    fs::write(home.path().join("prism.toml"), config).unwrap();
    Launch::prism(arguments).home(home).env("PRISM_PORT", port).env("SHELL", "/bin/sh").end().await
}

fn nobody() -> (Upstream, String) {
    let upstream = Upstream::away();
    let port = port_of(&upstream);
    (upstream, port)
}

fn port_of(upstream: &Upstream) -> String {
    upstream.at("").rsplit(':').next().expect("a URL has a port").to_owned()
}

/// The findings of `--json`.
fn findings(ended: &Ended) -> Vec<Value> {
    let found: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{ended:?}"));
    found.as_array().unwrap().clone()
}

/// What was found wrong: about what, and what to type.
fn wrong(ended: &Ended) -> Vec<(String, String, String)> {
    let text = |finding: &Value, key: &str| finding[key].as_str().unwrap_or_default().to_owned();
    let wrong = findings(ended).into_iter().filter(|finding| finding["verdict"] == "wrong");
    wrong.map(|finding| (text(&finding, "what"), text(&finding, "said"), text(&finding, "fix"))).collect()
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Writes an editor's config that leads to a port with a token.
fn write_cursor(home: &Home, port: u16, token: &str) {
    fs::create_dir_all(home.path().join(".cursor")).unwrap();
    let entry =
        json!({"url": format!("http://127.0.0.1:{port}/mcp"), "headers": {"Authorization": format!("Bearer {token}")}});
    let text = format!("// mine\n{}", json!({"mcpServers": {"prism": entry}}));
    fs::write(home.path().join(".cursor/mcp.json"), text).unwrap();
}

// D-05: all is well, and a real call was made to every destination.
#[tokio::test]
async fn a_daemon_that_is_well_is_said_to_be() {
    let config = [destination("a", &[], ""), destination("b", &["--era", "modern"], "")].concat();
    let daemon = Launch::serve(&config).start().await;
    write_cursor(daemon.home(), daemon.port(), &daemon.token());
    let ended = doctor(daemon.home(), &config, "1", &[]).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(!ended.stdout.contains('\x1b') && !ended.stderr.contains('\x1b'), "no colour in a pipe: {ended:?}");
    let row = |start: &str| ended.stdout.lines().find(|line| line.starts_with(start)).unwrap_or_default().to_owned();
    assert!(row("ok       daemon").contains(&format!("pid {}", daemon.pid())), "{}", ended.stdout);
    assert!(row("ok       cursor").ends_with("leads to the daemon"), "{}", ended.stdout);
    for name in ["a", "b"] {
        let start = format!("ok       {name} ");
        let called = ended.stdout.lines().any(|line| line.starts_with(&start) && line.contains("answers in "));
        assert!(called, "{name}: {}", ended.stdout);
    }
    assert!(ended.stdout.ends_with("All is well.\n"), "{}", ended.stdout);
    // By way of the daemon: it counts them.
    let requests = r#"prism_requests_total{destination="a",method="tools/list",status="2xx"}"#;
    assert_eq!(daemon.metric(requests).await, Some(1));
    assert!(!ended.stdout.contains(&daemon.token()));
}

// R-57: a client that had another server at this URL gets 400, and most do not initialize again after that.
#[tokio::test]
async fn a_client_that_still_has_the_session_of_another_server_is_spoken_of() {
    let config = destination("a", &[], "");
    let daemon = Launch::serve(&config).start().await;
    let foreign = daemon.client_at("/a/mcp").with_session("another-servers-session");
    assert_eq!(foreign.ask("ping", json!({})).await.status, 400);
    let ended = doctor(daemon.home(), &config, "1", &["--json", "--no-calls"]).await;
    let found = findings(&ended);
    let note = found.iter().find(|finding| finding["what"] == "clients").unwrap_or_else(|| panic!("{found:#?}"));
    assert!(note["verdict"] == "note" && note["fix"].as_str().unwrap().contains("restart the client"), "{note}");
}

// D-05: with the daemon down it is useful, too, and what is wrong comes with what to type.
#[tokio::test]
async fn without_a_daemon_every_destination_is_tested_all_the_same() {
    let (_port, port) = nobody();
    let home = Home::new();
    let config = [
        destination("alive", &[], ""),
        destination("dead", &["--fault", "die-at-start"], ""),
        "[destination.gone]\ncommand = [\"no-such-program\"]\n".to_owned(),
        destination("secret", &[], "env = { KEY = \"env:DOCTOR_TEST_KEY\" }"),
    ]
    .concat();
    let ended = doctor(&home, &config, &port, &["--json"]).await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let found = findings(&ended);
    let alive = found.iter().find(|finding| finding["what"] == "alive" && finding["took_ms"].is_u64()).unwrap();
    assert_eq!(alive["verdict"], "ok", "{alive}");
    let daemon = found.iter().find(|finding| finding["what"] == "daemon").unwrap();
    assert_eq!((&daemon["verdict"], &daemon["fix"]), (&json!("note"), &json!("prism serve --detach")));
    let wrong = wrong(&ended);
    let about = |what: &str, said: &str, fix: &str| {
        let found = wrong.iter().any(|(a, b, c)| a == what && b.contains(said) && c.contains(fix));
        assert!(found, "{what}, {said}, {fix}: {wrong:#?}");
    };
    about("gone", "its program \"no-such-program\" was not found", "command -v no-such-program");
    about("secret", "DOCTOR_TEST_KEY", "export DOCTOR_TEST_KEY=…");
    about("dead", "", "demo-server --fault die-at-start");
    // Each once: that one without its program does not answer is no second thing to mend.
    let mut names: Vec<&str> = wrong.iter().map(|(what, ..)| what.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["dead", "gone", "secret"], "{wrong:#?}");
    assert_eq!(process::marked(home.path()), [], "what it started has ended");

    let ended = doctor(&home, &config, &port, &["--no-calls"]).await;
    let expected = "\
                       fix: command -v no-such-program, and write the whole path into the config; or prism remove gone\n";
    assert!(ended.stdout.contains(expected), "{}", ended.stdout);
    assert!(ended.stdout.ends_with("2 problems. The fix is below each.\n"), "{}", ended.stdout);
}

// D-03: a secret that others can read, and a folder that they can look into.
#[tokio::test]
async fn a_home_that_is_open_to_others_is_found_and_left_as_it_is() {
    let (_port, port) = nobody();
    let home = Home::new();
    let token = home.path().join("http-mcp-token");
    fs::write(&token, "secret\n").unwrap();
    set_mode(&token, 0o644);
    set_mode(home.path(), 0o750);
    let ended = doctor(&home, "", &port, &["--json"]).await;
    assert_eq!(ended.code, Some(1));
    let wrong = wrong(&ended);
    let (_, said, fix) = wrong.iter().find(|(what, ..)| what == "home").unwrap();
    assert!(said.contains("mode 0750") && *fix == format!("chmod 700 {}", home.path().display()), "{wrong:?}");
    let (_, said, fix) = wrong.iter().find(|(what, ..)| what == "token").unwrap();
    assert!(said.contains("mode 0644") && fix.starts_with("rm ") && fix.ends_with("prism restart"), "{wrong:?}");
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&token), mode(home.path())), (0o644, 0o750));
    assert!(!ended.stdout.contains("secret"));
}

// Somebody else has the port, and is named.
#[tokio::test]
async fn a_port_that_another_program_has_is_said_with_its_pid() {
    let upstream = Upstream::start().await;
    let (home, config) = (Home::new(), destination("a", &[], ""));
    let ended = doctor(&home, &config, &port_of(&upstream), &["--json", "--no-calls"]).await;
    let wrong = wrong(&ended);
    let (_, said, fix) = wrong.iter().find(|(what, ..)| what == "port").unwrap_or_else(|| panic!("{ended:?}"));
    assert!(said.contains(&format!("(pid {}, ", std::process::id())), "{said}");
    assert!(fix.contains("port = …"), "{fix}");
}

// B-25, D-02: what a killed daemon left: its children, and where it said that it was.
#[tokio::test]
async fn orphans_and_a_stale_registration_are_found() {
    let (_port, port) = nobody();
    // It never reads, so it does not notice that its daemon is gone.
    let config = destination("a", &["--fault", "deaf"], "");
    let mut daemon = Launch::serve(&config).start().await;
    daemon.client_at("/a/mcp").initialize().await;
    let child = daemon.children()[0];
    daemon.kill().await;
    let home = daemon.home().clone();
    let ended = doctor(&home, &config, &port, &["--json", "--no-calls"]).await;
    let found = findings(&ended);
    let orphans = found.iter().find(|finding| finding["what"] == "orphans").unwrap();
    assert_eq!((&orphans["verdict"], &orphans["fix"]), (&json!("wrong"), &json!(format!("kill {child}"))), "{orphans}");
    let stale = found.iter().find(|finding| finding["what"] == "registration").unwrap();
    assert!(stale["said"].as_str().unwrap().contains(&format!("pid {}", daemon.pid())), "{stale}");
    process::signal(child, rustix::process::Signal::KILL);
    until("it is gone", async || !process::is_alive(child)).await;
    let ended = doctor(&home, &config, &port, &["--json", "--no-calls"]).await;
    let found = findings(&ended);
    assert_eq!(found.iter().find(|finding| finding["what"] == "orphans").unwrap()["verdict"], "ok");
}

// Editors that lead elsewhere, and a config that is broken.
#[tokio::test]
async fn an_editor_with_an_old_port_or_token_is_found_and_so_is_a_config_with_a_fault() {
    let config = destination("a", &[], "");
    let daemon: Daemon = Launch::serve(&config).start().await;
    for (port, token, said) in
        [(1, daemon.token(), "leads to http://127.0.0.1:1/mcp"), (daemon.port(), "old".to_owned(), "has another token")]
    {
        write_cursor(daemon.home(), port, &token);
        let ended = doctor(daemon.home(), &config, "1", &["--json", "--no-calls"]).await;
        let wrong = wrong(&ended);
        let [(what, told, fix)] = wrong.as_slice() else { panic!("{wrong:?}") };
        assert!(what == "cursor" && told.contains(said) && fix == "prism install cursor", "{wrong:?}");
    }
    let ended = doctor(daemon.home(), "[destination.a]\ncommnad = [\"x\"]\n", "1", &["--json"]).await;
    let wrong = wrong(&ended);
    let (_, told, _) = wrong.iter().find(|(what, ..)| what == "config").unwrap();
    assert!(told.contains("prism.toml:2") && told.contains("commnad"), "{told}");
}

/// Where each surface that is given the URL keeps it, and in which words.
const WITH_URL: [(&str, &str, &str); 8] = [
    (
        "cursor",
        ".cursor/mcp.json",
        r#"{"mcpServers":{"prism":{"url":"URL","headers":{"Authorization":"Bearer TOKEN"}}}}"#,
    ),
    (
        "claude-code",
        ".claude.json",
        r#"{"mcpServers":{"prism":{"url":"URL","headers":{"Authorization":"Bearer TOKEN"}}}}"#,
    ),
    (
        "vscode",
        ".config/Code/User/mcp.json",
        r#"{"servers":{"prism":{"url":"URL","headers":{"Authorization":"Bearer TOKEN"}}}}"#,
    ),
    (
        "windsurf",
        ".codeium/windsurf/mcp_config.json",
        r#"{"mcpServers":{"prism":{"serverUrl":"URL","headers":{"Authorization":"Bearer TOKEN"}}}}"#,
    ),
    (
        "zed",
        ".config/zed/settings.json",
        r#"{"context_servers":{"prism":{"url":"URL","headers":{"Authorization":"Bearer TOKEN"}}}}"#,
    ),
    (
        "codex",
        ".codex/config.toml",
        "[mcp_servers.prism]\nurl = \"URL\"\nhttp_headers = { Authorization = \"Bearer TOKEN\" }\n",
    ),
    (
        "gemini-cli",
        ".gemini/settings.json",
        r#"{"mcpServers":{"prism":{"httpUrl":"URL","headers":{"Authorization":"Bearer TOKEN"}}}}"#,
    ),
    (
        "opencode",
        ".config/opencode/opencode.json",
        r#"{"mcp":{"prism":{"url":"URL","headers":{"Authorization":"Bearer TOKEN"}}}}"#,
    ),
];

/// Writes a config of every surface that is given the URL.
fn write_all(home: &Home, port: u16, token: &str) {
    for (_, place, text) in WITH_URL {
        let path = home.path().join(place);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text.replace("URL", &format!("http://127.0.0.1:{port}/mcp")).replace("TOKEN", token)).unwrap();
    }
}

// D-05, D-06: what `prism install` has once written is stale in every surface, and what to type mends it.
#[tokio::test]
async fn a_stale_entry_is_found_in_every_surface_and_install_mends_it() {
    let config = destination("a", &[], "");
    let daemon = Launch::serve(&config).start().await;
    let (port, token) = (daemon.port(), daemon.token());
    for (stale_port, stale_token, said) in
        [(1, token.as_str(), "leads to http://127.0.0.1:1/mcp"), (port, "old", "another token")]
    {
        write_all(daemon.home(), stale_port, stale_token);
        let ended = doctor(daemon.home(), &config, "1", &["--json", "--no-calls"]).await;
        let wrong = wrong(&ended);
        assert_eq!(wrong.len(), WITH_URL.len(), "{wrong:#?}");
        for (surface, place, _) in WITH_URL {
            let (_, told, fix) =
                wrong.iter().find(|(what, ..)| what == surface).unwrap_or_else(|| panic!("{wrong:#?}"));
            assert!(told.contains(place) && told.contains(said), "{told}");
            assert_eq!(*fix, format!("prism install {surface}"));
        }
        let words = ["install"].into_iter().chain(WITH_URL.map(|(surface, ..)| surface)).map(str::to_owned).collect();
        Launch::prism(words).home(daemon.home()).output().await;
        let ended = doctor(daemon.home(), &config, "1", &["--json", "--no-calls"]).await;
        assert_eq!(ended.code, Some(0), "{ended:?}");
    }
    // Neither port nor token says that these are ours, but it is remembered.
    write_all(daemon.home(), 1, "old");
    let ended = doctor(daemon.home(), &config, "1", &["--json", "--no-calls"]).await;
    assert!(wrong(&ended).iter().all(|(what, _, fix)| *fix == format!("prism install {what}")), "{ended:?}");
    // Then nobody remembers, either.
    fs::remove_dir_all(daemon.home().path().join("installed")).unwrap();
    let ended = doctor(daemon.home(), &config, "1", &["--json", "--no-calls"]).await;
    assert_eq!(wrong(&ended).len(), WITH_URL.len());
    assert!(wrong(&ended).iter().all(|(what, _, fix)| *fix == format!("prism install {what} --force")), "{ended:?}");
}

// D-05: editors that start the shim, where it is no more.
#[tokio::test]
async fn a_shim_that_is_gone_is_found_and_install_mends_it() {
    let (_port, port) = nobody();
    let home = Home::new();
    let surfaces = [("claude-desktop", ".config/Claude/claude_desktop_config.json"), ("void", ".void-editor/mcp.json")];
    for (_, place) in surfaces {
        let path = home.path().join(place);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, r#"{"mcpServers": {"prism": {"command": "/gone/bin/prism", "args": ["stdio"]}}}"#).unwrap();
    }
    // A project's own, in the words of a project.
    fs::write(
        home.path().join(".mcp.json"),
        r#"{"mcpServers": {"prism": {"command": "/gone/prism", "args": ["stdio"]}}}"#,
    )
    .unwrap();
    let ended = doctor(&home, "", &port, &["--json", "--no-calls"]).await;
    let found = wrong(&ended);
    for (surface, place) in surfaces {
        let (_, told, fix) = found.iter().find(|(what, ..)| what == surface).unwrap_or_else(|| panic!("{found:#?}"));
        assert!(told.contains(place) && told.contains("/gone/bin/prism does not exist"), "{told}");
        assert_eq!(*fix, format!("prism install {surface}"));
    }
    let (_, _, fix) = found.iter().find(|(what, ..)| what == "claude-code").unwrap_or_else(|| panic!("{found:#?}"));
    assert_eq!(fix, "prism install claude-code --project");
    let install =
        |words: &[&str]| Launch::prism(words.iter().map(|word| (*word).to_owned()).collect()).home(&home).output();
    install(&["install", "claude-desktop", "void"]).await;
    install(&["install", "claude-code", "--project"]).await;
    let ended = doctor(&home, "", &port, &["--json", "--no-calls"]).await;
    assert_eq!(wrong(&ended), [], "{ended:?}");
}

// A config that its own editor cannot read is named, and is no reason to stop.
#[tokio::test]
async fn a_broken_editors_config_is_noted() {
    let (_port, port) = nobody();
    let home = Home::new();
    fs::create_dir_all(home.path().join(".cursor")).unwrap();
    fs::write(home.path().join(".cursor/mcp.json"), "{\"mcpServers\": {").unwrap();
    let ended = doctor(&home, "", &port, &["--json", "--no-calls"]).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let cursor = findings(&ended).into_iter().find(|finding| finding["what"] == "cursor").unwrap();
    assert!(cursor["said"].as_str().unwrap().contains("mcp.json:1:"), "{cursor}");
    assert_eq!((&cursor["verdict"], &cursor["fix"]), (&json!("note"), &json!("mend it, then prism install cursor")));
}
