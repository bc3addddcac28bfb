//! What became of ringing: the newest outcomes, for people who ask why an agent did not wake.

use rusqlite::{Connection, Row, params};

use super::{id, key, optional_id};
use crate::{Store, StoreReadError};

/// One outcome of ringing an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BellRow {
    pub at_us: i64,
    pub agent: String,
    pub session: u128,
    pub path: String,
    pub result: String,
    pub signal: Option<u128>,
    pub kind: String,
    pub trace: Option<u128>,
    /// To the confirmation.
    pub millis: Option<i64>,
}

/// Outcomes that are kept. Beyond it the oldest are forgotten.
const MAX_BELLS: i64 = 10_000;

/// Outcomes that may be too many before those are. Looking after each write would cost as much as the write.
const SLACK: i64 = 500;

impl Store {
    /// Returns outcomes, the newest first.
    pub fn bells(&self, agent: Option<&str>, limit: u32) -> Result<Vec<BellRow>, StoreReadError> {
        let by = if agent.is_some() { "agent = ?1" } else { "?1 IS NULL" };
        let sql = format!("SELECT * FROM bell WHERE {by} ORDER BY number DESC LIMIT ?2");
        self.read(|connection| connection.prepare_cached(&sql)?.query_map(params![agent, limit], bell)?.collect())
    }
}

/// Remembers outcomes, in their order.
pub(super) fn note(connection: &Connection, bells: &[BellRow]) -> rusqlite::Result<()> {
    let sql = "INSERT INTO bell (at_us, agent, session, path, result, signal, kind, trace, millis)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    let mut insert = connection.prepare_cached(sql)?;
    for bell in bells {
        insert.execute(params![
            bell.at_us,
            bell.agent,
            key(bell.session),
            bell.path,
            bell.result,
            bell.signal.map(key),
            bell.kind,
            bell.trace.map(key),
            bell.millis,
        ])?;
        // The numbers have no gaps, as only the oldest ever go.
        let newest = connection.last_insert_rowid();
        if newest % SLACK == 0 {
            connection.prepare_cached("DELETE FROM bell WHERE number <= ?1")?.execute([newest - MAX_BELLS])?;
        }
    }
    Ok(())
}

fn bell(row: &Row<'_>) -> rusqlite::Result<BellRow> {
    Ok(BellRow {
        at_us: row.get("at_us")?,
        agent: row.get("agent")?,
        session: id(row, "session")?,
        path: row.get("path")?,
        result: row.get("result")?,
        signal: optional_id(row, "signal")?,
        kind: row.get("kind")?,
        trace: optional_id(row, "trace")?,
        millis: row.get("millis")?,
    })
}
