//! One daemon per home: who is first holds it, the others are told who that is, and the dead hold nothing (D-01, D-02).

use std::fs;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Daemon, Home, Launch, until};

/// Starts at once.
const RACES: usize = 20;
/// What `prism serve` exits with when another one runs.
const ALREADY_RUNNING: Option<i32> = Some(3);

fn registered(home: &Home) -> Value {
    let text = fs::read(home.path().join("http-mcp.json")).expect("a daemon that listens is registered");
    serde_json::from_slice(&text).expect("JSON")
}

// D-02
#[tokio::test]
async fn of_two_that_race_one_wins_and_the_other_names_it() {
    let home = Home::new();
    for race in 0..RACES {
        let start = || Launch::serve("").home(&home).begin();
        let (mut first, mut second) = (start(), start());
        let first_lost = tokio::select! {
            _ = first.ended() => true,
            _ = second.ended() => false,
        };
        let (loser, winner): (Daemon, Daemon) = if first_lost { (first, second) } else { (second, first) };
        let lost = loser.end().await;
        assert_eq!(lost.code, ALREADY_RUNNING, "race {race}: {}", lost.stderr);
        let named = format!("pid {},", winner.pid());
        assert!(lost.stderr.contains("already runs") && lost.stderr.contains(&named), "race {race}: {}", lost.stderr);
        assert_eq!(lost.stdout, "", "race {race}: it has listened nowhere");
        until("the winner is registered", async || home.path().join("http-mcp.json").exists()).await;
        assert_eq!(registered(&home)["pid"], winner.pid(), "race {race}");
        winner.stop().await;
    }
}

// D-02
#[tokio::test]
async fn a_second_start_says_who_runs_since_when_and_where() {
    let daemon = Launch::serve("").start().await;
    let second = || Launch::serve("").home(daemon.home());
    let ended = second().end().await;
    assert_eq!(ended.code, ALREADY_RUNNING);
    let (pid, url) = (daemon.pid(), format!("http://127.0.0.1:{}", daemon.port()));
    let since = registered(daemon.home())["started_at"].as_str().unwrap().to_owned();
    for part in [format!("pid {pid}"), url.clone(), since, "prism stop".to_owned()] {
        assert!(ended.stderr.contains(&part), "{part}: {}", ended.stderr);
    }
    let fine = Launch::prism(["serve", "--if-running", "ok"].map(str::to_owned).to_vec()).home(daemon.home());
    let ended = fine.end().await;
    assert_eq!(ended.code, Some(0));
    assert!(ended.stdout.contains(&url) && ended.stdout.contains(&pid.to_string()), "{}", ended.stdout);
    assert_eq!(daemon.get("/healthz").await.status, 200);
}

// D-02, D-03
#[tokio::test]
async fn what_a_killed_daemon_left_keeps_nobody_out_and_is_overwritten() {
    let home = Home::new();
    let mut daemon = Launch::serve("").home(&home).start().await;
    daemon.kill().await;
    let left = registered(&home);
    assert_eq!(left["pid"], daemon.pid());
    assert!(!fs::read(home.path().join("daemon.lock")).unwrap().is_empty());
    let next = Launch::serve("").home(&home).start().await;
    let now = registered(&home);
    assert_eq!((&now["pid"], &now["port"]), (&next.pid().into(), &next.port().into()));
    let lock: Value = serde_json::from_slice(&fs::read(home.path().join("daemon.lock")).unwrap()).unwrap();
    assert_eq!(lock["pid"], next.pid());
}

// D-03
#[tokio::test]
async fn the_registration_tells_all_and_goes_with_the_daemon() {
    use std::os::unix::fs::PermissionsExt;

    let mut daemon = Launch::serve("").start().await;
    let home = daemon.home().clone();
    let told = registered(&home);
    assert_eq!(told["url"], format!("http://127.0.0.1:{}", daemon.port()));
    assert_eq!(told["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(told["socket"], home.file("prism.sock"));
    assert!(told["process_started"].as_u64().unwrap() > 0 && told["started_at"].as_str().unwrap().ends_with('Z'));
    for private in ["http-mcp.json", "http-mcp-token", "daemon.lock", "prism.sock"] {
        let mode = fs::metadata(home.path().join(private)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{private}");
    }
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.ended().await.code(), Some(0));
    assert!(!home.path().join("http-mcp.json").exists());
    assert!(!home.path().join("prism.sock").exists());
}

// A bridge for a moment is not the daemon, and in nobody's way.
#[tokio::test]
async fn a_bridge_takes_no_lock_and_is_not_registered() {
    let bridge = Daemon::run(&[], &[]).await;
    assert!(!bridge.home().path().join("http-mcp.json").exists());
    let daemon = Launch::serve("").home(bridge.home()).start().await;
    assert_eq!(registered(bridge.home())["pid"], daemon.pid());
}

// D-03
#[tokio::test]
async fn a_token_that_others_can_read_is_refused_with_the_fix() {
    use std::os::unix::fs::PermissionsExt;

    let home = Home::new();
    let token = home.file("http-mcp-token");
    fs::write(&token, "known-to-all\n").unwrap();
    fs::set_permissions(&token, fs::Permissions::from_mode(0o644)).unwrap();
    for arguments in [["serve", "--port", "0"].as_slice(), &["serve", "--port", "0", "--detach"]] {
        let launch = Launch::prism(arguments.iter().map(|word| (*word).to_owned()).collect()).home(&home);
        let ended = launch.end().await;
        assert_eq!(ended.code, Some(1), "{arguments:?}");
        assert!(ended.stderr.contains(&format!("chmod 600 {token}")), "{}", ended.stderr);
        assert!(ended.stderr.contains("0644") && ended.stderr.contains(&format!("rm {token}")), "{}", ended.stderr);
        assert!(!home.path().join("http-mcp.json").exists());
    }
    fs::remove_file(&token).unwrap();
    let daemon = Launch::serve("").home(&home).start().await;
    assert_ne!(daemon.token(), "known-to-all");
}
