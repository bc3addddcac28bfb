//! What a killed process leaves, and what comes of it.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Command, Stdio},
};

use super::*;

fn add(home: &TempDir, bytes: &[u8]) {
    let path = folder(home).join("audit.jsonl");
    fs::OpenOptions::new().append(true).open(path).unwrap().write_all(bytes).unwrap();
}

#[tokio::test]
async fn a_torn_last_line_is_cut_off_and_a_line_says_so() {
    let home = written(AuditSettings::default(), 3).await;
    add(&home, b"{\"seq\":4,\"ts\":\"2026");
    assert_eq!(verified(&home).unfinished_bytes, 19, "it is no harm until then");
    let audit = open(&home, AuditSettings::default());
    assert_eq!(audit.write(entry(5)).await.unwrap(), 5);
    audit.close();
    assert_eq!(verified(&home).lines, 5);
    let lines = tail(&folder(&home), 2).unwrap();
    let mended: Value = serde_json::from_str(&lines[1]).unwrap();
    assert_eq!((&mended["action"], &mended["args"]["cut_bytes"]), (&"audit.mended".into(), &19.into()));
}

#[tokio::test]
async fn a_log_may_be_longer_than_its_head() {
    let home = written(AuditSettings::default(), 3).await;
    let old_head = fs::read(folder(&home).join("audit.head")).unwrap();
    let audit = open(&home, AuditSettings::default());
    for number in 4..=6 {
        audit.write(entry(number)).await.unwrap();
    }
    audit.close();
    fs::write(folder(&home).join("audit.head"), old_head).unwrap();
    assert_eq!(verified(&home).head.seq, 6);
    let audit = open(&home, AuditSettings::default());
    assert_eq!(audit.write(entry(7)).await.unwrap(), 7);
    audit.close();
    assert_eq!(verified(&home).lines, 7, "and nothing had to be said");
}

/// A power cut may leave the end of a write on disk and not its beginning.
#[tokio::test]
async fn what_is_broken_behind_the_head_is_cut_off_with_all_that_follows() {
    let home = written(AuditSettings::default(), 3).await;
    let other = written(AuditSettings::default(), 5).await;
    let fifth = tail(&folder(&other), 1).unwrap().remove(0);
    add(&home, format!("\0\0\0\0\n{fifth}\n").as_bytes());
    open(&home, AuditSettings::default()).close();
    assert_eq!(actions(&home), ["git.commit", "file.open", "git.commit", "audit.mended"]);
    assert_eq!(verified(&home).lines, 4);
}

#[tokio::test]
async fn a_new_file_without_a_line_is_where_the_chain_goes_on() {
    for torn in ["", "{\"seq\":"] {
        let home = written(AuditSettings { max_file_bytes: 1, keep: 0 }, 3).await;
        assert_eq!(fs::metadata(folder(&home).join("audit.jsonl")).unwrap().len(), 0);
        add(&home, torn.as_bytes());
        let audit = open(&home, AuditSettings::default());
        audit.write(entry(4)).await.unwrap();
        audit.close();
        assert_eq!(verified(&home).lines, if torn.is_empty() { 4 } else { 5 });
    }
}

/// nothing that was acknowledged is missing after `kill -9`, and the log is whole.
#[tokio::test]
async fn what_was_acknowledged_survives_being_killed() {
    let home = TempDir::new().unwrap();
    fs::write(home.path().join(CHILD), "").unwrap();
    let mut acknowledged = 0;
    for round in 1..=6_u64 {
        // This very program, as a process that only writes.
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["audit::tests::end::writes_until_it_is_killed", "--exact", "--nocapture"])
            .current_dir(home.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let numbers = lines.by_ref().filter_map(|line| line.strip_prefix("acknowledged ")?.parse::<u64>().ok());
        let mut numbers = numbers.peekable();
        for number in numbers.by_ref().take(usize::try_from(round).unwrap() * 150) {
            acknowledged = acknowledged.max(number);
        }
        child.kill().unwrap();
        // What it could still say.
        acknowledged = numbers.fold(acknowledged, u64::max);
        child.wait().unwrap();

        assert!(verified(&home).head.seq >= acknowledged);
        open(&home, SMALL).close();
        let verified = verified(&home);
        assert!(verified.lines >= acknowledged && verified.unfinished_bytes == 0, "{verified:?}");
        acknowledged = verified.lines;
    }
    assert!(actions(&home).iter().all(|action| action != "audit.broken"));
}

/// The process that is killed; elsewhere it does nothing.
#[tokio::test]
async fn writes_until_it_is_killed() {
    if !Path::new(CHILD).exists() {
        return;
    }
    let audit = Arc::new(AuditLog::open(Path::new("audit"), SMALL).unwrap());
    let mut writers = JoinSet::new();
    for writer in 0..8 {
        let audit = audit.clone();
        writers.spawn(async move {
            loop {
                let seq = audit.write(entry(writer)).await.unwrap();
                let said = format!("acknowledged {seq}\n");
                std::io::stdout().write_all(said.as_bytes()).unwrap();
            }
        });
    }
    writers.join_all().await;
}
