//! What the database knows of the audit log: how far it had come. The log shows changes by itself, but not that all of it is
//! gone, head and all.

use std::path::Path;

use rusqlite::Row;

use crate::{Store, StoreReadError, StoreWriteError, audit::AuditHead, connection::rows, era::LOOK_PATIENCE};

const HEAD: &str = "SELECT seq, hash FROM audit_head";

/// Returns what the database at `path` knows, without opening it for more. Nothing, too, if it is of an older Prism.
pub fn audit_head_at(path: &Path) -> Option<AuditHead> {
    rows(path, LOOK_PATIENCE, HEAD, head).ok()?.pop()
}

impl Store {
    /// Notes the newest line, along with whatever is written next. It only ever moves on.
    pub async fn note_audit_head(&self, head: AuditHead) -> Result<(), StoreWriteError> {
        let sql = "INSERT INTO audit_head (id, seq, hash) VALUES (1, ?1, ?2)
                   ON CONFLICT DO UPDATE SET seq = excluded.seq, hash = excluded.hash WHERE excluded.seq > seq";
        let row = (i64::try_from(head.seq).unwrap_or(i64::MAX), head.hash);
        self.writer.write_behind(move |connection| connection.execute(sql, row).map(drop)).await
    }

    pub fn audit_head(&self) -> Result<Option<AuditHead>, StoreReadError> {
        Ok(self.rows(HEAD, head)?.pop())
    }
}

fn head(row: &Row<'_>) -> rusqlite::Result<AuditHead> {
    let seq: i64 = row.get(0)?;
    Ok(AuditHead { seq: u64::try_from(seq).unwrap_or_default(), hash: row.get(1)? })
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    //
    #[tokio::test]
    async fn the_database_knows_how_far_the_log_had_come_and_never_goes_back() {
        let home = TempDir::new().unwrap();
        let path = home.path().join("prism.db");
        assert_eq!(audit_head_at(&path), None);
        let store = Store::open(&path).unwrap();
        assert_eq!(store.audit_head().unwrap(), None);
        let at = |seq| AuditHead { seq, hash: format!("{seq:064}") };
        for seq in [3, 7, 5] {
            store.note_audit_head(at(seq)).await.unwrap();
        }
        assert_eq!(store.audit_head().unwrap(), Some(at(7)));
        store.close();
        assert_eq!(audit_head_at(&path), Some(at(7)));
    }
}
