//! A disk that is full or gone: nobody is told that something was written which was not, and it goes on by itself.

use std::{os::unix::fs::symlink, process::Command};

use super::*;

#[tokio::test]
async fn a_log_that_cannot_be_written_says_so_and_goes_on_when_it_can() {
    let home = TempDir::new().unwrap();
    let audit = open(&home, AuditSettings::default());
    audit.write(entry(1)).await.unwrap();
    let path = folder(&home).join("audit.jsonl");
    let away = folder(&home).join("away");
    fs::rename(&path, &away).unwrap();
    fs::create_dir(&path).unwrap();
    let error = audit.write(entry(2)).await.unwrap_err();
    assert!(error.to_string().starts_with("the audit log"), "{error}");
    assert!(error.to_string().contains("audit.jsonl\" cannot be written: "), "{error}");
    // Not a link either: it could lead to a file of somebody else.
    fs::remove_dir(&path).unwrap();
    symlink(&away, &path).unwrap();
    audit.write(entry(2)).await.unwrap_err();
    audit.write_behind(entry(2));
    fs::remove_file(&path).unwrap();
    fs::rename(&away, &path).unwrap();
    assert_eq!(audit.write(entry(3)).await.unwrap(), 3, "what nobody waited for was tried again");
    audit.close();
    assert_eq!(verified(&home).lines, 3);
}

#[tokio::test]
async fn a_log_that_somebody_removes_goes_on_and_shows_it() {
    let home = TempDir::new().unwrap();
    let audit = open(&home, AuditSettings::default());
    for number in 1..=3 {
        audit.write(entry(number)).await.unwrap();
    }
    fs::remove_file(folder(&home).join("audit.jsonl")).unwrap();
    assert_eq!(audit.write(entry(4)).await.unwrap(), 4);
    audit.close();
    let broken = broken(&home);
    assert_eq!((broken.line, broken.seq, broken.what), (Some(1), Some(1), BreakKind::Number { found: 4 }));
}

#[test]
fn what_half_fits_on_the_disk_is_not_there_at_all() {
    let home = TempDir::new().unwrap();
    fs::write(home.path().join(CHILD), "").unwrap();
    // A limit to the size of files is what comes closest to a full disk: a write is cut off in its middle and then fails.
    let child = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 64; exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .args(["audit::tests::trouble::fills_its_disk", "--exact", "--nocapture"])
        .current_dir(home.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success() && said.contains("1 passed"), "{said}");
    let size = fs::metadata(folder(&home).join("audit.jsonl")).unwrap().len();
    assert!(size > 20_000, "{size}");
    assert_eq!(verified(&home).unfinished_bytes, 0);
}

/// The process with the limit; elsewhere it does nothing.
#[tokio::test]
async fn fills_its_disk() {
    if !Path::new(CHILD).exists() {
        return;
    }
    let audit = Arc::new(AuditLog::open(Path::new("audit"), AuditSettings::default()).unwrap());
    let large = |number| AuditEntry { args: format!("\"{number:.>9000}\""), ..entry(number) };
    let mut acknowledged = 0;
    while let Ok(seq) = audit.write(large(0)).await {
        acknowledged = seq;
    }
    assert!(acknowledged > 1);
    // Some at once: of these the first would fit, but not all.
    let mut several = JoinSet::new();
    for number in 0..4 {
        let audit = audit.clone();
        let entry = if number == 0 { entry(number) } else { large(number) };
        several.spawn(async move { audit.write(entry).await });
    }
    let several = several.join_all().await;
    acknowledged += several.iter().flatten().count() as u64;
    assert!(several.iter().any(Result::is_err));
    assert_eq!(audit.write(entry(1)).await.unwrap(), acknowledged + 1, "a small one still fits");
    assert_eq!(verify(audit.folder(), |_, _| {}).unwrap().lines, acknowledged + 1);
    audit.close();
}
