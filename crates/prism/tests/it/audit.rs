//! The audit log from the command line, without a daemon: what is shown, found, checked and copied, and how it ends.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    os::unix::fs::PermissionsExt,
    path::PathBuf,
};

use prism_store::audit::{AuditEntry, AuditLog, AuditSettings};
use serde_json::{Value, json};

use crate::support::{Ended, Home, Launch, until};

/// Files of a few lines each.
const SMALL: AuditSettings = AuditSettings { max_file_bytes: 2000, keep: 0 };

struct Log {
    home: Home,
}

impl Log {
    async fn with(lines: u64) -> Self {
        let log = Self { home: Home::new() };
        log.add(1, lines).await;
        log
    }

    async fn add(&self, from: u64, to: u64) {
        let audit = AuditLog::open(&self.folder(), SMALL).unwrap();
        for number in from..=to {
            let of_two = |odd: &str, even: &str| if number.is_multiple_of(2) { even } else { odd }.to_owned();
            let entry = AuditEntry {
                actor: of_two("reviewer", "fixer"),
                user: "me".to_owned(),
                action: of_two("open_file", "git_commit"),
                args: json!({"path": format!("/p/{number}.rs")}).to_string(),
                result: of_two("ok", "refused: forbidden"),
                session_id: Some("0198f6a2-0000-7000-8000-000000000001".to_owned()),
                request_id: None,
                of: None,
            };
            assert_eq!(audit.write(entry).await.unwrap(), number);
        }
        audit.close();
    }

    fn folder(&self) -> PathBuf {
        self.home.path().join("audit")
    }

    fn command(&self, words: &[&str]) -> Launch {
        let words = ["audit"].iter().chain(words).map(|word| (*word).to_owned()).collect();
        Launch::prism(words).home(&self.home)
    }

    async fn prism(&self, words: &[&str]) -> Ended {
        self.command(words).end().await
    }
}

/// The numbers of whole lines: the last one may be on its way.
fn seqs(text: &str) -> Vec<u64> {
    text.split_inclusive('\n')
        .filter(|line| line.ends_with('\n'))
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["seq"].as_u64().unwrap())
        .collect()
}

#[tokio::test]
async fn the_newest_lines_are_shown_and_lines_are_found() {
    let log = Log::with(30).await;
    let tail = log.prism(&["tail", "-n", "2"]).await;
    assert_eq!(tail.code, Some(0), "{}", tail.stderr);
    let lines: Vec<&str> = tail.stdout.lines().collect();
    assert!(
        lines[0].starts_with("#29 20") && lines[0].ends_with("reviewer open_file {\"path\":\"/p/29.rs\"} ok 0198f6a2")
    );
    assert!(lines[1].contains("fixer git_commit") && lines[1].contains("refused: forbidden") && lines.len() == 2);
    let json = log.prism(&["tail", "-n", "3", "--json"]).await;
    assert_eq!(seqs(&json.stdout), [28, 29, 30]);

    let found = async |words: &[&str]| seqs(&log.prism(&[&["search", "--json"], words].concat()).await.stdout);
    assert_eq!(found(&["--agent", "fixer", "--limit", "2"]).await, [30, 28]);
    assert_eq!(found(&["--action", "git_*", "--before", "5"]).await, [4, 2]);
    assert_eq!(found(&["/P/7.rs"]).await, [7]);
    assert_eq!(found(&["--since", "1h", "--agent", "reviewer"]).await.len(), 15);
    assert_eq!(found(&["--since", "2026-01-01T00:00:00Z"]).await.len(), 30);
    assert_eq!(found(&["--since", "2126-01-01T00:00:00Z"]).await, [0; 0]);
    let more = log.prism(&["search", "--limit", "2"]).await;
    assert!(more.stderr.contains("--before 29"), "{}", more.stderr);
    let none = log.prism(&["search", "no such thing"]).await;
    assert_eq!((none.code, none.stdout.as_str()), (Some(1), ""));
    let slip = log.prism(&["search", "--since", "soon"]).await;
    assert_eq!(slip.code, Some(2));
    assert!(slip.stderr.contains("2h"), "{}", slip.stderr);
}

#[tokio::test]
async fn a_log_is_followed_over_new_files() {
    let log = Log::with(3).await;
    let mut tail = log.command(&["tail", "-n", "1", "-f", "--json"]).begin();
    until("the newest is shown", async || seqs(&tail.stdout()) == [3]).await;
    log.add(4, 40).await;
    until("what came is shown", async || seqs(&tail.stdout()) == (3..=40).collect::<Vec<_>>()).await;
    tail.kill().await;
}

//
#[tokio::test]
async fn a_whole_log_is_verified_and_a_changed_one_is_not() {
    let log = Log::with(30).await;
    let whole = log.prism(&["verify"]).await;
    assert_eq!(whole.code, Some(0), "{}", whole.stderr);
    assert!(whole.stdout.starts_with("whole: 30 lines in "), "{}", whole.stdout);
    let json: Value = serde_json::from_str(&log.prism(&["verify", "--json"]).await.stdout).unwrap();
    assert_eq!((&json["ok"], &json["lines"], &json["head"]["seq"]), (&json!(true), &json!(30), &json!(30)));
    let head = format!("30:{}", json["head"]["hash"].as_str().unwrap());
    assert!(whole.stdout.ends_with(&format!("head {head}\n")), "{}", whole.stdout);
    assert_eq!(log.prism(&["verify", "--head", &head]).await.code, Some(0));
    let other = head.replace(|c: char| c.is_ascii_alphabetic(), "0");
    assert_eq!(log.prism(&["verify", "--head", &other]).await.code, Some(1));
    assert_eq!(log.prism(&["verify", "--head", "30:x"]).await.code, Some(2));

    let first = log.folder().join("audit-000001.jsonl");
    let text = fs::read_to_string(&first).unwrap();
    fs::write(&first, text.replace("/p/2.rs", "/p/3.rs")).unwrap();
    let broken = log.prism(&["verify"]).await;
    assert_eq!(broken.code, Some(1));
    assert!(broken.stdout.contains("audit-000001.jsonl, line 2 (seq 2): this line was changed"), "{}", broken.stdout);
    let json: Value = serde_json::from_str(&log.prism(&["verify", "--json"]).await.stdout).unwrap();
    assert_eq!(
        (&json["ok"], &json["line"], &json["seq"], &json["what"]),
        (&json!(false), &json!(2), &json!(2), &json!("changed"))
    );
    fs::write(&first, text).unwrap();
    assert_eq!(log.prism(&["verify"]).await.code, Some(0));

    // A crash is no crime.
    let newest = log.folder().join("audit.jsonl");
    OpenOptions::new().append(true).open(newest).unwrap().write_all(b"{\"seq\":31").unwrap();
    let torn = log.prism(&["verify"]).await;
    assert_eq!(torn.code, Some(0));
    assert!(torn.stdout.contains("9 bytes behind the last line"), "{}", torn.stdout);
}

#[tokio::test]
async fn a_copy_goes_to_stdout_or_to_a_new_file() {
    let log = Log::with(12).await;
    let out = log.prism(&["export"]).await;
    assert_eq!(seqs(&out.stdout), (1..=12).collect::<Vec<_>>());
    assert!(out.stderr.starts_with("12 lines; head 12:"), "{}", out.stderr);
    let head = out.stderr.trim().rsplit_once(' ').unwrap().1;
    assert_eq!(log.prism(&["verify", "--head", head]).await.code, Some(0));
    let file = log.home.path().join("copy.jsonl");
    let path = file.to_str().unwrap();
    assert_eq!(log.prism(&["export", path]).await.code, Some(0));
    assert_eq!(fs::read_to_string(&file).unwrap(), out.stdout);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let again = log.prism(&["export", path]).await;
    assert_eq!(again.code, Some(1));
    assert!(again.stderr.contains("fix: name another file"), "{}", again.stderr);
}

#[tokio::test]
async fn where_there_is_no_log_the_next_step_is_said() {
    let log = Log { home: Home::new() };
    for words in [&["tail"][..], &["verify"], &["search", "x"], &["export"]] {
        let ended = log.prism(words).await;
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""));
        assert!(ended.stderr.contains("no audit log yet") && ended.stderr.contains("prism serve"), "{}", ended.stderr);
    }
}
