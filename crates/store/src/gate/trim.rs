//! Forgetting what is over. The audit log remembers it.

use rusqlite::{Connection, params};

use crate::{Store, StoreWriteError};

impl Store {
    /// Forgets what has ended before a time, at most so many of each kind, and returns how many. To be called again while
    /// it returns something.
    pub async fn trim_gate(&self, before_us: i64, limit: u32) -> Result<u64, StoreWriteError> {
        self.writer.write(move |connection| trim(connection, before_us, limit)).await
    }
}

fn trim(connection: &Connection, before_us: i64, limit: u32) -> rusqlite::Result<u64> {
    // A grant whose children are remembered stays: without it their branch would be cut.
    let grants = "DELETE FROM access_grant WHERE id IN (
                      SELECT id FROM access_grant AS old INDEXED BY access_grant_ended
                      WHERE ended_at_us NOT NULL AND ended_at_us < ?1
                      AND NOT EXISTS (SELECT 1 FROM access_grant AS child WHERE child.parent = old.id) LIMIT ?2)
                  RETURNING id";
    let gone: Vec<[u8; 16]> = connection
        .prepare_cached(grants)?
        .query_map(params![before_us, limit], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    let mut tokens = connection.prepare_cached("DELETE FROM grant_token WHERE grant_id = ?1")?;
    gone.iter().try_for_each(|grant| tokens.execute([grant]).map(drop))?;

    let requests = "DELETE FROM access_request WHERE id IN (
                        SELECT id FROM access_request AS old
                        WHERE created_at_us < ?1 AND max(expires_at_us, coalesce(decided_at_us, 0)) < ?1
                        AND state NOT IN ('REQUESTED', 'PENDING')
                        AND NOT EXISTS (SELECT 1 FROM access_grant WHERE id = old.grant_id) LIMIT ?2)";
    // An Allow with a time to come stays. One without a time is forgotten like all the rest, or there would be ever more.
    let confirmations = "DELETE FROM confirmation WHERE id IN (
                             SELECT id FROM confirmation
                             WHERE created_at_us < ?1 AND max(expires_at_us, coalesce(decided_at_us, 0)) < ?1
                             AND state <> 'waiting'
                             AND NOT (state = 'allowed' AND uses_left > 0 AND coalesce(until_us, 0) >= ?1) LIMIT ?2)";
    let mut trimmed = gone.len();
    for sql in [requests, confirmations] {
        trimmed += connection.prepare_cached(sql)?.execute(params![before_us, limit])?;
    }
    Ok(trimmed as u64)
}
