//! What a person is told who has just come: in an empty home, with nothing configured and nothing running.

use crate::support::{Ended, Home, Launch, demo};

async fn prism(home: &Home, line: &str) -> Ended {
    Launch::prism(line.split_whitespace().map(str::to_owned).collect()).home(home).end().await
}

#[tokio::test]
async fn every_refusal_says_why_and_what_to_type() {
    let home = Home::new();
    for (line, code, told) in [
        ("instal", 2, "'install'"),
        ("status", 3, "fix: prism serve --detach"),
        ("install", 1, "which program?"),
        ("install nosuch", 2, "claude-code, claude-desktop"),
        ("uninstall", 1, "which program?"),
        ("logs", 1, "fix: prism serve --detach"),
        ("tools", 1, "fix: prism add files --"),
        ("call files read", 1, "fix: prism add files --"),
        ("remove files", 1, "there is nothing to remove"),
        ("stdio bad/name", 1, "cannot name a server"),
        ("man nosuch", 1, "fix: prism --help"),
        ("completions tcsh", 2, "bash"),
    ] {
        let ended = prism(&home, line).await;
        assert_eq!(ended.code, Some(code), "{line}: {ended:?}");
        assert!(ended.stderr.contains(told) && ended.stdout.is_empty(), "{line}: {ended:?}");
        for raw in ["panicked", "Os {", "Error:"] {
            assert!(!ended.stderr.contains(raw), "{line}: {ended:?}");
        }
    }
}

#[tokio::test]
async fn what_needs_nothing_ends_well() {
    let home = Home::new();
    for (line, told) in [
        ("--help", "Examples:\n  prism add files --"),
        ("help install", "prism install cursor claude-code"),
        ("stop", "not running"),
        ("list", "next: prism add files --"),
        ("doctor --no-calls", "fix: prism serve --detach"),
        ("import", "there is nothing to import"),
        ("completions bash", "complete -F _prism"),
        // The source of the page: this is a pipe.
        ("man", ".TH prism 1"),
        ("man service install", ".TH prism-service-install 1"),
    ] {
        let ended = prism(&home, line).await;
        assert_eq!(ended.code, Some(0), "{line}: {ended:?}");
        assert!(ended.stdout.contains(told) && ended.stderr.is_empty(), "{line}: {ended:?}");
        assert!(!ended.stdout.contains('\u{1b}'), "no colour in a pipe: {line}");
    }
}

// whoever added a server hears at once whether it works, and can use it with the next command.
#[tokio::test]
async fn add_waits_until_the_server_has_answered_once_or_says_why_it_does_not() {
    let home = Home::new();
    let arguments = ["serve", "--port", "0"].map(str::to_owned).to_vec();
    let daemon = Launch::prism(arguments).home(&home).start().await;
    let added = prism(&home, &format!("add good -- {}", demo(&[]).join(" "))).await;
    assert_eq!(added.code, Some(0), "{added:?}");
    let last = added.stdout.lines().last().unwrap();
    assert!(last.starts_with("ready, ") && last.ends_with(" tools. Try: prism tools good"), "{}", added.stdout);
    let listed = prism(&home, "tools good").await;
    assert_eq!(listed.code, Some(0), "{listed:?}");
    // It was replaced: the one that answers is the new one.
    let replaced = prism(&home, &format!("add good --force -- {}", demo(&["--fault", "die-at-start"]).join(" "))).await;
    assert_eq!(replaced.code, Some(4), "{replaced:?}");
    let told = "error: good is in the config, and does not answer: good keeps exiting (status 1, ";
    assert!(replaced.stderr.starts_with(told) && replaced.stderr.contains("\n  fix: prism logs"), "{replaced:?}");
    let gone = prism(&home, "add gone -- ./no-such-server").await;
    assert_eq!(gone.code, Some(4), "{gone:?}");
    assert!(gone.stderr.contains("no-such-server does not exist (missing)"), "{gone:?}");
    assert!(prism(&home, "list").await.stdout.contains("gone"), "it was added all the same");
    daemon.stop().await;
}

// what the README says can be typed while the daemon runs.
#[tokio::test]
async fn run_takes_a_free_port_where_the_daemon_has_its_own() {
    let home = Home::new();
    let daemon = Launch::serve("").home(&home).start().await;
    let words = ["run", "--"].map(str::to_owned).into_iter().chain(demo(&[])).collect();
    let port = daemon.port().to_string();
    let bridge = Launch::prism(words).home(&home).env("PRISM_PORT", &port).start().await;
    assert_ne!(bridge.port(), daemon.port());
    let told = format!("Prism's own daemon (pid {}) has port {port}, so this takes a free one", daemon.pid());
    bridge.logged(&told).await;
    bridge.client_at("/mcp").initialize().await;
    // Whoever names a port means it.
    let words = ["run", "--port", &port, "--"].map(str::to_owned).into_iter().chain(demo(&[])).collect();
    let ended = Launch::prism(words).home(&home).end().await;
    assert!(ended.code == Some(1) && ended.stderr.contains(&port), "{ended:?}");
}

// D-09: nobody is told to start what runs, or to restart what needs none.
#[tokio::test]
async fn add_says_whether_the_daemon_takes_it_up() {
    let home = Home::new();
    let add = |name: &str| format!("add {name} -- {}", demo(&[]).join(" "));
    let said = prism(&home, &add("a")).await.stdout;
    assert!(said.ends_with("\nnext: prism serve --detach\n"), "{said}");
    let arguments = ["serve", "--port", "0"].map(str::to_owned).to_vec();
    let daemon = Launch::prism(arguments).home(&home).start().await;
    let said = prism(&home, &add("b --no-wait")).await.stdout;
    let (begin, end) =
        (format!("\nthe daemon (pid {}) reads", daemon.pid()), "; next: prism tools b, once prism status shows it\n");
    assert!(said.contains(&begin) && said.ends_with(end), "{said}");
    let elsewhere = format!("{} --config {}", "add c", home.file("other.toml"));
    let said = prism(&home, &format!("{elsewhere} -- cat")).await.stdout;
    assert!(said.contains("next: prism stop, then prism serve --detach --config"), "{said}");
}
