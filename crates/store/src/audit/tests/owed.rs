//! Lines about what was taken away already: before all others, on a full disk too (H6).

use super::*;

fn owed(action: &str) -> AuditEntry {
    AuditEntry { action: action.to_owned(), ..entry(1) }
}

/// A log that can be made unwritable, and writable again, while it is open.
struct Blocked {
    path: PathBuf,
    away: PathBuf,
}

impl Blocked {
    fn of(home: &TempDir) -> Self {
        let blocked = Self { path: folder(home).join("audit.jsonl"), away: folder(home).join("away") };
        fs::rename(&blocked.path, &blocked.away).unwrap();
        fs::create_dir(&blocked.path).unwrap();
        blocked
    }

    fn undo(self) {
        fs::remove_dir(&self.path).unwrap();
        fs::rename(&self.away, &self.path).unwrap();
    }
}

// H6: "all is written when there is room, before anything else is"
#[tokio::test]
async fn what_is_owed_is_written_before_anything_else_is() {
    let home = TempDir::new().unwrap();
    let audit = open(&home, AuditSettings::default());
    audit.write(entry(1)).await.unwrap();
    let blocked = Blocked::of(&home);
    audit.write_behind(entry(2));
    audit.owe(owed("revoke.1")).await.unwrap_err();
    audit.owe(owed("revoke.2")).await.unwrap_err();
    assert_eq!(audit.owed(), 2);
    audit.write(entry(4)).await.unwrap_err();
    blocked.undo();
    audit.write(owed("next")).await.unwrap();
    assert_eq!(audit.owed(), 0);
    audit.close();
    assert_eq!(actions(&home), ["git.commit", "revoke.1", "revoke.2", "file.open", "next"]);
    assert_eq!(verified(&home).lines, 5);
}

// H6: nobody has to ask for it.
#[tokio::test]
async fn what_is_owed_is_written_by_itself_once_there_is_room() {
    let home = TempDir::new().unwrap();
    let audit = open(&home, AuditSettings::default());
    let blocked = Blocked::of(&home);
    audit.owe(owed("revoke")).await.unwrap_err();
    let mut lines = audit.subscribe();
    blocked.undo();
    let line = tokio::time::timeout(std::time::Duration::from_secs(20), lines.recv()).await.unwrap().unwrap();
    assert!(line.contains("\"revoke\""), "{line}");
    audit.close();
    assert_eq!(verified(&home).lines, 1);
}

#[tokio::test]
async fn what_is_owed_at_the_end_is_tried_once_more() {
    let home = TempDir::new().unwrap();
    let audit = open(&home, AuditSettings::default());
    let blocked = Blocked::of(&home);
    audit.owe(owed("revoke")).await.unwrap_err();
    blocked.undo();
    audit.close();
    assert_eq!(actions(&home), ["revoke"]);
    // And where that fails, too, the end comes all the same.
    let audit = open(&home, AuditSettings::default());
    let blocked = Blocked::of(&home);
    audit.owe(owed("revoke")).await.unwrap_err();
    audit.close();
    blocked.undo();
    assert_eq!(actions(&home), ["revoke"]);
}
