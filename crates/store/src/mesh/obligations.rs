//! Who owes whom what: opened and ended along with signals, in the same transaction.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{id, key, optional_id};
use crate::{Store, StoreReadError, StoreWriteError};

/// What the recipient of a signal owes its sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObligationRow {
    pub signal: u128,
    pub trace: u128,
    pub kind: String,
    pub debtor: String,
    pub creditor: String,
    /// `open`, `heard`, `done`, `recalled`, `expired` or `waived`.
    pub state: String,
    pub action_required: bool,
    pub reply_required: bool,
    /// It ends by being heard.
    pub ends_on_drain: bool,
    pub opened_at_us: i64,
    pub due_at_us: Option<i64>,
    pub heard_at_us: Option<i64>,
    pub closed_at_us: Option<i64>,
    /// The signal that was the reply.
    pub closed_by: Option<u128>,
    /// `full` or `degraded`.
    pub bucket: String,
    pub overdue_at_us: Option<i64>,
    pub escalated_at_us: Option<i64>,
    pub wake_attempt_count: u32,
    pub wake_ring_count: u32,
    pub last_wake_at_us: Option<i64>,
    pub last_wake_path: Option<String>,
    pub last_wake_result: Option<String>,
    /// Why it was waived.
    pub closed_why: Option<String>,
}

/// What became of a waiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaiveResult {
    Done {
        debtor: String,
        creditor: String,
    },
    /// It was done, recalled or waived before, or its time is over.
    AlreadyClosed,
    /// Somebody else owes it, to somebody else.
    NotYours,
    /// Nothing is owed for such a signal.
    Unknown,
}

/// Which obligations; all, if nothing is said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObligationFilter {
    pub debtor: Option<String>,
    pub creditor: Option<String>,
    pub state: Option<String>,
    /// Only those that are not over.
    pub is_open: bool,
    pub limit: u32,
}

/// What was tried to wake a debtor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WakeNote {
    pub signal: u128,
    pub attempts_added: u32,
    pub rings_added: u32,
    pub at_us: i64,
    pub path: String,
    pub result: String,
}

/// How an obligation ended by being heard, or that it was merely heard.
pub(super) enum HeardOutcome {
    Ended,
    Merely,
}

impl Store {
    /// Returns all that is owed still, the oldest first.
    pub fn open_obligations(&self) -> Result<Vec<ObligationRow>, StoreReadError> {
        // By the index of the live ones: the closed ones may be many.
        let sql = "SELECT * FROM obligation INDEXED BY obligation_live WHERE closed_at_us IS NULL ORDER BY seq";
        self.read(|connection| connection.prepare_cached(sql)?.query_map([], obligation)?.collect())
    }

    /// Ends what is owed for a signal without a reply: for who owes it, to whom it is owed, or anybody (`None`).
    pub async fn waive(
        &self,
        signal: u128,
        by: Option<&str>,
        why: &str,
        at_us: i64,
    ) -> Result<WaiveResult, StoreWriteError> {
        let (by, why) = (by.map(str::to_owned), why.to_owned());
        self.writer.write(move |connection| waive(connection, signal, by.as_deref(), &why, at_us)).await
    }

    /// Returns obligations, the newest first.
    pub fn obligations(&self, filter: &ObligationFilter) -> Result<Vec<ObligationRow>, StoreReadError> {
        // One text each, as only then an index serves them.
        let by = match (&filter.debtor, &filter.creditor) {
            (Some(_), Some(_)) => "debtor = ?1 AND creditor = ?2",
            (Some(_), None) => "debtor = ?1 AND ?2 IS NULL",
            (None, Some(_)) => "?1 IS NULL AND creditor = ?2",
            (None, None) => "?1 IS NULL AND ?2 IS NULL",
        };
        let open = if filter.is_open { "AND closed_at_us IS NULL" } else { "" };
        let sql = format!(
            "SELECT * FROM obligation WHERE {by} {open} AND (?3 IS NULL OR state = ?3) ORDER BY seq DESC LIMIT ?4"
        );
        let row = params![filter.debtor, filter.creditor, filter.state, filter.limit];
        self.read(|connection| connection.prepare_cached(&sql)?.query_map(row, obligation)?.collect())
    }
}

fn waive(
    connection: &Connection,
    signal: u128,
    by: Option<&str>,
    why: &str,
    at_us: i64,
) -> rusqlite::Result<WaiveResult> {
    let sql = "SELECT debtor, creditor, closed_at_us IS NOT NULL AS closed FROM obligation WHERE signal = ?1";
    let found: Option<(String, String, bool)> = connection
        .prepare_cached(sql)?
        .query_row([key(signal)], |row| Ok((row.get("debtor")?, row.get("creditor")?, row.get("closed")?)))
        .optional()?;
    let Some((debtor, creditor, closed)) = found else { return Ok(WaiveResult::Unknown) };
    if by.is_some_and(|by| by != debtor && by != creditor) {
        return Ok(WaiveResult::NotYours);
    }
    if closed {
        return Ok(WaiveResult::AlreadyClosed);
    }
    let sql = "UPDATE obligation SET state = 'waived', closed_at_us = ?2, closed_why = ?3 WHERE signal = ?1";
    connection.prepare_cached(sql)?.execute(params![key(signal), at_us, why])?;
    Ok(WaiveResult::Done { debtor, creditor })
}

// === behind the work ===

/// Notes what was tried to wake debtors. It is the last of these that counts as the last.
pub(super) fn note_wakes(connection: &Connection, notes: &[WakeNote]) -> rusqlite::Result<()> {
    let sql = "UPDATE obligation SET wake_attempt_count = wake_attempt_count + ?2,
               wake_ring_count = wake_ring_count + ?3, last_wake_at_us = ?4, last_wake_path = ?5,
               last_wake_result = ?6 WHERE signal = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    notes.iter().try_for_each(|note| {
        let (attempts, rings) = (note.attempts_added, note.rings_added);
        statement.execute(params![key(note.signal), attempts, rings, note.at_us, note.path, note.result]).map(drop)
    })
}

/// Notes that these were not fulfilled in time. The first time counts.
pub(super) fn note_overdue(connection: &Connection, signals: &[(u128, i64)]) -> rusqlite::Result<()> {
    let sql = "UPDATE obligation SET overdue_at_us = coalesce(overdue_at_us, ?2) WHERE signal = ?1";
    note_times(connection, sql, signals)
}

/// Notes that somebody else was told of these. The first time counts.
pub(super) fn note_escalated(connection: &Connection, signals: &[(u128, i64)]) -> rusqlite::Result<()> {
    let sql = "UPDATE obligation SET escalated_at_us = coalesce(escalated_at_us, ?2) WHERE signal = ?1";
    note_times(connection, sql, signals)
}

fn note_times(connection: &Connection, sql: &str, signals: &[(u128, i64)]) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached(sql)?;
    signals.iter().try_for_each(|(signal, at_us)| statement.execute(params![key(*signal), at_us]).map(drop))
}

/// Puts what agents owe still into another bucket.
pub(super) fn change_buckets(connection: &Connection, agents: &[(String, String)]) -> rusqlite::Result<()> {
    let sql = "UPDATE obligation SET bucket = ?2 WHERE debtor = ?1 AND closed_at_us IS NULL";
    let mut statement = connection.prepare_cached(sql)?;
    agents.iter().try_for_each(|row| statement.execute(params![row.0, row.1]).map(drop))
}

// === along with signals ===

pub(super) fn open(connection: &Connection, seq: i64, new: &ObligationRow) -> rusqlite::Result<()> {
    let sql = "INSERT INTO obligation VALUES
               (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22,
                ?23, ?24)";
    let row = params![
        seq,
        key(new.signal),
        key(new.trace),
        new.kind,
        new.debtor,
        new.creditor,
        new.state,
        new.action_required,
        new.reply_required,
        new.ends_on_drain,
        new.opened_at_us,
        new.due_at_us,
        new.heard_at_us,
        new.closed_at_us,
        new.closed_by.map(key),
        new.bucket,
        new.overdue_at_us,
        new.escalated_at_us,
        new.wake_attempt_count,
        new.wake_ring_count,
        new.last_wake_at_us,
        new.last_wake_path,
        new.last_wake_result,
        new.closed_why,
    ];
    connection.prepare_cached(sql)?.execute(row).map(drop)
}

/// Ends what is owed for a signal: this was the reply. It counts as heard as well, if it did not yet.
pub(super) fn close_by_reply(connection: &Connection, signal: u128, by: u128, at_us: i64) -> rusqlite::Result<()> {
    let sql = "UPDATE obligation SET state = 'done', closed_at_us = ?3, closed_by = ?2,
               heard_at_us = coalesce(heard_at_us, ?3) WHERE signal = ?1 AND closed_at_us IS NULL";
    connection.prepare_cached(sql)?.execute(params![key(signal), key(by), at_us]).map(drop)
}

/// Ends what is owed for a signal that its recipient will not hear of.
pub(super) fn close_unheard(connection: &Connection, seq: i64, state: &str, at_us: i64) -> rusqlite::Result<()> {
    let sql = "UPDATE obligation SET state = ?2, closed_at_us = ?3 WHERE seq = ?1 AND closed_at_us IS NULL";
    connection.prepare_cached(sql)?.execute(params![seq, state, at_us]).map(drop)
}

/// Notes that a signal was heard, and returns what that did, if anything.
pub(super) fn hear(connection: &Connection, seq: i64, at_us: i64) -> rusqlite::Result<Option<HeardOutcome>> {
    let sql = "UPDATE obligation SET heard_at_us = ?2, state = iif(ends_on_drain, 'done', 'heard'),
               closed_at_us = iif(ends_on_drain, ?2, NULL) WHERE seq = ?1 AND state = 'open' RETURNING ends_on_drain";
    let ended: Option<bool> =
        connection.prepare_cached(sql)?.query_row(params![seq, at_us], |row| row.get(0)).optional()?;
    Ok(ended.map(|ended| if ended { HeardOutcome::Ended } else { HeardOutcome::Merely }))
}

/// Takes it back that signals were heard which are to be drained once more. Who has replied has heard.
pub(super) fn unhear(connection: &Connection, seq: i64) -> rusqlite::Result<()> {
    let sql = "UPDATE obligation SET heard_at_us = NULL, closed_at_us = NULL, state = 'open'
               WHERE seq = ?1 AND (state = 'heard' OR state = 'done' AND closed_by IS NULL)";
    connection.prepare_cached(sql)?.execute([seq]).map(drop)
}

fn obligation(row: &Row<'_>) -> rusqlite::Result<ObligationRow> {
    Ok(ObligationRow {
        signal: id(row, "signal")?,
        trace: id(row, "trace")?,
        kind: row.get("kind")?,
        debtor: row.get("debtor")?,
        creditor: row.get("creditor")?,
        state: row.get("state")?,
        action_required: row.get("action_required")?,
        reply_required: row.get("reply_required")?,
        ends_on_drain: row.get("ends_on_drain")?,
        opened_at_us: row.get("opened_at_us")?,
        due_at_us: row.get("due_at_us")?,
        heard_at_us: row.get("heard_at_us")?,
        closed_at_us: row.get("closed_at_us")?,
        closed_by: optional_id(row, "closed_by")?,
        bucket: row.get("bucket")?,
        overdue_at_us: row.get("overdue_at_us")?,
        escalated_at_us: row.get("escalated_at_us")?,
        wake_attempt_count: row.get("wake_attempt_count")?,
        wake_ring_count: row.get("wake_ring_count")?,
        last_wake_at_us: row.get("last_wake_at_us")?,
        last_wake_path: row.get("last_wake_path")?,
        last_wake_result: row.get("last_wake_result")?,
        closed_why: row.get("closed_why")?,
    })
}
