//! What the start of a daemon notices of a log that is not what was written (M8, R-10).

use super::*;

/// The newest line, as the database would know it.
fn head(home: &TempDir) -> AuditHead {
    verified(home).head
}

fn at_start(home: &TempDir, known: Option<&AuditHead>) -> Result<(), BreakKind> {
    match check_tail(&folder(home), known) {
        Ok(()) => Ok(()),
        Err(AuditVerifyError::Broken(broken)) => Err(broken.what),
        Err(error) => panic!("{error}"),
    }
}

fn log(home: &TempDir) -> PathBuf {
    folder(home).join("audit.jsonl")
}

fn change(home: &TempDir, change: impl FnOnce(String) -> String) {
    let text = fs::read_to_string(log(home)).unwrap();
    fs::write(log(home), change(text)).unwrap();
}

#[tokio::test]
async fn a_log_that_is_as_it_was_is_nothing_to_tell() {
    for settings in [AuditSettings::default(), SMALL, AuditSettings { keep: 2, ..SMALL }] {
        let home = written(settings, 40).await;
        let known = head(&home);
        assert_eq!(at_start(&home, Some(&known)), Ok(()), "{settings:?}");
        assert_eq!(at_start(&home, None), Ok(()), "{settings:?}");
        // What was being written when somebody was killed is mended, and no news.
        change(&home, |text| text + "{\"seq\":41,\"ts\":\"20");
        assert_eq!(at_start(&home, Some(&known)), Ok(()), "{settings:?}");
    }
    let nothing = TempDir::new().unwrap();
    assert_eq!(at_start(&nothing, None), Ok(()));
}

// M8: "tampered, restarted, acted; no line in the log"
#[tokio::test]
async fn a_line_that_was_changed_removed_or_swapped_is_told_at_the_start() {
    let home = written(AuditSettings::default(), 40).await;
    let known = head(&home);
    let whole = fs::read_to_string(log(&home)).unwrap();
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let mut changed = lines(&whole);
    changed[19] = changed[19].replace("file.open", "file.opem");
    let mut removed = lines(&whole);
    removed.remove(19);
    let mut swapped = lines(&whole);
    swapped.swap(19, 20);
    for (lines, wrong) in [
        (changed, BreakKind::Changed),
        (removed, BreakKind::Number { found: 21 }),
        (swapped, BreakKind::Number { found: 21 }),
    ] {
        fs::write(log(&home), lines.join("\n") + "\n").unwrap();
        assert_eq!(at_start(&home, Some(&known)), Err(wrong.clone()));
        assert_eq!(at_start(&home, None), Err(wrong));
    }
}

// M8, R-10: with the head cut off, too, only the database knows.
#[tokio::test]
async fn a_log_that_was_cut_short_with_its_head_is_told_by_what_the_database_knows() {
    let (long, short) = (written(AuditSettings::default(), 40).await, written(AuditSettings::default(), 25).await);
    let known = head(&long);
    assert_eq!(at_start(&short, None), Ok(()), "it is whole by itself");
    assert_eq!(at_start(&short, Some(&known)), Err(BreakKind::Missing { newest: 25 }));
    let other = AuditHead { seq: 20, hash: "0".repeat(64) };
    assert_eq!(at_start(&short, Some(&other)), Err(BreakKind::Head));
    fs::remove_dir_all(folder(&short)).unwrap();
    assert_eq!(at_start(&short, Some(&known)), Err(BreakKind::Missing { newest: 0 }));
    fs::create_dir(folder(&short)).unwrap();
    assert_eq!(at_start(&short, Some(&known)), Err(BreakKind::Missing { newest: 0 }));
    match verify_with_heads(&folder(&short), &[known], |_, _| {}) {
        Err(AuditVerifyError::Broken(broken)) => assert_eq!(broken.what, BreakKind::Missing { newest: 0 }),
        other => panic!("{other:?}"),
    }
}

// what is written afterwards does not hide it.
#[tokio::test]
async fn a_log_that_was_emptied_goes_on_with_its_numbers_and_shows_the_gap_for_ever() {
    let home = written(AuditSettings::default(), 40).await;
    let known = head(&home);
    fs::remove_dir_all(folder(&home)).unwrap();
    let (audit, trouble) = AuditLog::open_after(&folder(&home), AuditSettings::default(), Some(&known)).unwrap();
    assert!(trouble.is_some());
    assert_eq!(audit.write(entry(1)).await.unwrap(), 42, "behind a line that says so");
    assert_eq!(audit.head().seq, 42);
    audit.close();
    assert_eq!(actions(&home), ["audit.broken", "git.commit"]);
    assert_eq!(broken(&home).what, BreakKind::Number { found: 41 });
    // And so is the next start's word.
    assert_eq!(at_start(&home, Some(&known)), Err(BreakKind::Number { found: 41 }));
}

#[tokio::test]
async fn a_start_that_finds_a_changed_line_says_so_in_the_log() {
    let home = written(AuditSettings::default(), 40).await;
    let known = head(&home);
    change(&home, |text| text.replacen("file.open", "file.opem", 1));
    let (audit, trouble) = AuditLog::open_after(&folder(&home), AuditSettings::default(), Some(&known)).unwrap();
    assert!(trouble.unwrap().to_string().contains("this line was changed"));
    audit.write(entry(1)).await.unwrap();
    audit.close();
    assert_eq!(actions(&home)[40..], ["audit.broken", "git.commit"]);
}
