//! The audit log on real files.

mod end;
mod owed;
mod start;
mod tamper;
mod trouble;

use std::{fs, os::unix::fs::PermissionsExt};

use serde_json::Value;
use tempfile::TempDir;
use tokio::task::JoinSet;

use super::*;

/// Files of a few lines each.
const SMALL: AuditSettings = AuditSettings { max_file_bytes: 1500, keep: 0 };

/// A file that is where a process works which a test has started from this very program.
const CHILD: &str = "child";

fn open(home: &TempDir, settings: AuditSettings) -> AuditLog {
    AuditLog::open(&home.path().join("audit"), settings).unwrap()
}

fn folder(home: &TempDir) -> PathBuf {
    home.path().join("audit")
}

fn entry(number: usize) -> AuditEntry {
    AuditEntry {
        actor: format!("agent {}", number % 3),
        user: "me".to_owned(),
        action: if number.is_multiple_of(2) { "file.open" } else { "git.commit" }.to_owned(),
        args: format!("{{\"number\":{number},\"text\":\"Grün \\\"{number}\\\"\"}}"),
        result: "ok".to_owned(),
        session_id: number.is_multiple_of(5).then(|| "s5".to_owned()),
        request_id: None,
        of: None,
    }
}

/// A log of so many lines, closed.
async fn written(settings: AuditSettings, lines: usize) -> TempDir {
    let home = TempDir::new().unwrap();
    let audit = open(&home, settings);
    for number in 1..=lines {
        assert_eq!(audit.write(entry(number)).await.unwrap(), number as u64);
    }
    audit.close();
    home
}

fn verified(home: &TempDir) -> VerifiedLog {
    verify(&folder(home), |_, _| {}).unwrap()
}

fn broken(home: &TempDir) -> AuditBreak {
    match verify(&folder(home), |_, _| {}) {
        Err(AuditVerifyError::Broken(broken)) => broken,
        other => panic!("{other:?}"),
    }
}

fn seq(line: &str) -> u64 {
    serde_json::from_str::<Value>(line).unwrap()["seq"].as_u64().unwrap()
}

/// What was done, in its order; `?` where a line was tampered with.
fn actions(home: &TempDir) -> Vec<String> {
    let action = |line: &String| {
        let line: Value = serde_json::from_str(line).unwrap_or_default();
        line["action"].as_str().unwrap_or("?").to_owned()
    };
    tail(&folder(home), 1000).unwrap().iter().rev().map(action).collect()
}

//
#[tokio::test]
async fn what_is_written_is_there_in_its_order_and_verifies() {
    let home = written(AuditSettings::default(), 25).await;
    let verified = verified(&home);
    assert_eq!((verified.lines, verified.files, verified.first_seq), (25, 1, 1));
    assert_eq!((verified.head.seq, verified.unfinished_bytes), (25, 0));
    let lines = tail(&folder(&home), 100).unwrap();
    assert_eq!(lines.iter().map(|line| seq(line)).collect::<Vec<_>>(), (1..=25).rev().collect::<Vec<_>>());
    let value: Value = serde_json::from_str(&lines[20]).unwrap();
    assert_eq!(value["args"], serde_json::json!({"number": 5, "text": "Grün \"5\""}));
    let next: Value = serde_json::from_str(&lines[19]).unwrap();
    assert_eq!(next["prev"], value["hash"]);
}

#[tokio::test]
async fn only_its_owner_can_read_it() {
    let home = written(SMALL, 9).await;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder(&home)), 0o700);
    for file in fs::read_dir(folder(&home)).unwrap() {
        assert_eq!(mode(&file.unwrap().path()), 0o600);
    }
}

#[tokio::test]
async fn many_at_once_share_a_write_and_each_gets_its_own_number() {
    let home = TempDir::new().unwrap();
    let audit = Arc::new(open(&home, AuditSettings::default()));
    let mut writers = JoinSet::new();
    for number in 0..3000 {
        let audit = audit.clone();
        writers.spawn(async move { audit.write(entry(number)).await.unwrap() });
    }
    let mut numbers = writers.join_all().await;
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=3000).collect::<Vec<_>>());
    audit.close();
    assert_eq!(verified(&home).lines, 3000);
    assert!(matches!(audit.write(entry(1)).await, Err(AuditError::Closed)));
}

#[tokio::test]
async fn the_chain_goes_on_in_new_files_and_after_a_restart() {
    let home = TempDir::new().unwrap();
    for round in 0..4 {
        let audit = open(&home, SMALL);
        for number in 1..=7 {
            assert_eq!(audit.write(entry(number)).await.unwrap(), round * 7 + number as u64);
        }
        audit.close();
        assert_eq!(verified(&home).lines, round * 7 + 7);
    }
    let verified = verified(&home);
    assert!(verified.files > 4, "{verified:?}");
    assert!(folder(&home).join("audit-000002.jsonl").exists());
    assert_eq!(tail(&folder(&home), 1000).unwrap().len(), 28);
    assert_eq!(actions(&home).len(), 28, "nothing had to be mended");
}

#[tokio::test]
async fn only_so_many_files_are_kept_and_the_rest_still_verifies() {
    let keep = AuditSettings { keep: 2, ..SMALL };
    let home = written(keep, 40).await;
    let verified = verified(&home);
    assert_eq!(verified.files, 3);
    assert!(verified.first_seq > 20 && verified.lines == 41 - verified.first_seq, "{verified:?}");
    // One more than was let go of is noticed.
    let first = files::full(&folder(&home)).unwrap().remove(0).1;
    fs::remove_file(first).unwrap();
    assert!(matches!(broken(&home), AuditBreak { line: Some(1), what: BreakKind::Number { .. }, .. }));
}

// `keep` counts from the next new file on.
#[tokio::test]
async fn how_many_files_are_kept_can_change_while_it_is_written() {
    let home = TempDir::new().unwrap();
    let audit = open(&home, SMALL);
    for number in 1..=40 {
        audit.write(entry(number)).await.unwrap();
    }
    assert!(verified(&home).files > 4);
    audit.keep(2);
    for number in 41..=60 {
        audit.write(entry(number)).await.unwrap();
    }
    audit.close();
    assert_eq!(verified(&home).files, 3);
}

#[tokio::test]
async fn a_head_that_was_kept_elsewhere_shows_a_log_that_was_made_anew() {
    let home = written(AuditSettings::default(), 10).await;
    let kept = verified(&home).head;
    assert_eq!(kept.to_string().parse(), Ok(kept.clone()));
    assert!("10:xyz".parse::<AuditHead>().is_err());
    let check = |home: &TempDir| verify_with_heads(&folder(home), std::slice::from_ref(&kept), |_, _| {});
    check(&home).unwrap();
    let other = written(AuditSettings::default(), 12).await;
    verify(&folder(&other), |_, _| {}).unwrap();
    let Err(AuditVerifyError::Broken(broken)) = check(&other) else { panic!("it is another log") };
    assert_eq!((broken.line, broken.seq, broken.what), (Some(10), Some(10), BreakKind::Head));
    let shorter = written(AuditSettings::default(), 5).await;
    let Err(AuditVerifyError::Broken(broken)) = check(&shorter) else { panic!("it is too short") };
    assert_eq!((broken.line, broken.what), (Some(6), BreakKind::Missing { newest: 5 }));
}

#[tokio::test]
async fn an_empty_log_is_whole() {
    let home = TempDir::new().unwrap();
    assert_eq!(verified(&home).lines, 0);
    open(&home, AuditSettings::default()).close();
    assert_eq!((verified(&home).lines, verified(&home).head.seq), (0, 0));
    assert_eq!(tail(&folder(&home), 5).unwrap(), [""; 0]);
}

#[tokio::test]
async fn who_listens_hears_every_line() {
    let home = TempDir::new().unwrap();
    let audit = open(&home, AuditSettings::default());
    let mut lines = audit.subscribe();
    audit.write(entry(1)).await.unwrap();
    audit.write_behind(entry(2));
    audit.write(entry(3)).await.unwrap();
    for number in 1..=3 {
        assert_eq!(seq(&lines.recv().await.unwrap()), number);
    }
    audit.close();
    assert_eq!(actions(&home), ["git.commit", "file.open", "git.commit"]);
}

#[tokio::test]
async fn lines_are_found_by_what_is_asked() {
    let home = written(SMALL, 30).await;
    let found = |query: AuditQuery| -> Vec<u64> {
        let query = AuditQuery { limit: if query.limit == 0 { 100 } else { query.limit }, ..query };
        search(&folder(&home), &query).unwrap().iter().map(|line| seq(line)).collect()
    };
    let any = AuditQuery::default;
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(found(AuditQuery { actor: some("agent 1"), limit: 3, ..any() }), [28, 25, 22]);
    assert_eq!(found(AuditQuery { action: some("git.commit"), limit: 2, ..any() }), [29, 27]);
    assert_eq!(found(AuditQuery { action: some("git.*"), limit: 2, ..any() }), [29, 27]);
    assert_eq!(found(AuditQuery { action: some("git"), ..any() }), [0; 0]);
    assert_eq!(found(AuditQuery { session: some("s5"), ..any() }), [30, 25, 20, 15, 10, 5]);
    assert_eq!(found(AuditQuery { text: some("grÜN \"7\""), ..any() }), [7]);
    assert_eq!(found(AuditQuery { before_seq: Some(4), ..any() }), [3, 2, 1]);
    assert_eq!(found(AuditQuery { after_seq: Some(27), ..any() }), [30, 29, 28]);
    assert_eq!(found(AuditQuery { actor: some("agent 1"), session: some("s5"), before_seq: Some(25), ..any() }), [10]);
    assert_eq!(found(AuditQuery { since_us: Some(0), ..any() }).len(), 30);
    let to_come = chain::now_us() + 1_000_000;
    assert_eq!(found(AuditQuery { since_us: Some(to_come), ..any() }), [0; 0]);
    assert_eq!(found(AuditQuery { since_us: Some(to_come + 9_000_000_000), ..any() }), [0; 0]);
}

#[tokio::test]
async fn lines_longer_than_what_is_read_at_once_are_found() {
    let home = TempDir::new().unwrap();
    let audit = open(&home, AuditSettings::default());
    for number in 0..60 {
        let args = format!("\"{number:.>15000}\"");
        audit.write(AuditEntry { args, ..entry(number) }).await.unwrap();
    }
    let lines = tail(audit.folder(), 100).unwrap();
    assert_eq!(lines.len(), 60);
    assert!(lines[59].contains("...0\"") && lines[0].contains("..59\""));
    assert_eq!(verify(audit.folder(), |_, _| {}).unwrap().lines, 60, "while it is open");
}

#[tokio::test]
async fn a_copy_has_every_line_and_its_head() {
    let home = written(SMALL, 30).await;
    let mut copy = Vec::new();
    let exported = export(&folder(&home), |lines| {
        copy.extend_from_slice(lines);
        Ok(())
    });
    let exported = exported.unwrap();
    assert_eq!((exported.lines, &exported.head), (30, &verified(&home).head));
    let lines: Vec<u64> = str::from_utf8(&copy).unwrap().lines().map(seq).collect();
    assert_eq!(lines, (1..=30).collect::<Vec<_>>());
}
