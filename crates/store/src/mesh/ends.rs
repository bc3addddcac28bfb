//! How signals end that are not drained, by recall or by time, and how those that are over are forgotten.

use rusqlite::{Connection, Row, params};

use super::{
    id, key,
    mailbox::{MailboxChange, count},
    obligations, stage,
};
use crate::{Store, StoreWriteError};

/// What became of a recall.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecallResult {
    Done {
        seq: i64,
        recipient: String,
        rings: bool,
    },
    /// Its recipient has it, or may have it.
    AlreadyDrained,
    /// It was recalled before, or its time is over.
    AlreadyGone,
    /// Somebody else has sent it.
    NotYours,
    Unknown,
}

/// A signal whose time was over before it was drained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpiredSignal {
    pub seq: i64,
    pub id: u128,
    pub recipient: String,
    pub rings: bool,
}

/// What the history need not keep. Signals that wait, that may have to be given again (so whoever drains has to settle),
/// or for which something is owed are always kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistoryTrim {
    /// Of each recipient the oldest beyond so many.
    pub keep_per_agent: Option<u32>,
    /// Those that were sent before this.
    pub before_us: Option<i64>,
    /// Signals to forget at once, so that nobody waits long.
    pub limit: u32,
}

impl Store {
    /// Takes a signal back that was not drained, and ends its obligation.
    pub async fn recall(&self, id: u128, by: &str, at_us: i64) -> Result<RecallResult, StoreWriteError> {
        let by = by.to_owned();
        self.writer.write(move |connection| recall(connection, id, &by, at_us)).await
    }

    /// Ends signals whose time is over, and their obligations, and returns these signals: at most `limit`.
    pub async fn expire(&self, at_us: i64, limit: u32) -> Result<Vec<ExpiredSignal>, StoreWriteError> {
        // It is asked every second, and mostly there is nothing to write.
        if self.has_none_dead(at_us) {
            return Ok(Vec::new());
        }
        self.writer.write(move |connection| expire(connection, at_us, limit)).await
    }

    fn has_none_dead(&self, at_us: i64) -> bool {
        let sql = "SELECT NOT EXISTS (SELECT 1 FROM signal INDEXED BY signal_expiring
                   WHERE stage = 0 AND expires_at_us NOT NULL AND expires_at_us <= ?1)";
        let none = self.read(|connection| connection.prepare_cached(sql)?.query_row([at_us], |row| row.get(0)));
        none.unwrap_or(false)
    }

    /// Forgets signals that are over, with their obligations, and returns how many. A repeat of a forgotten one is a
    /// new one.
    pub async fn trim_history(&self, trim: HistoryTrim) -> Result<u64, StoreWriteError> {
        self.writer.write(move |connection| forget(connection, &trim)).await
    }
}

fn recall(connection: &Connection, id: u128, by: &str, at_us: i64) -> rusqlite::Result<RecallResult> {
    let sql = "SELECT seq, sender, recipient, rings, stage, redelivered, drained_at_us,
               coalesce(expires_at_us <= ?2, FALSE) AS dead FROM signal WHERE id = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params![key(id), at_us])?;
    let Some(row) = rows.next()? else { return Ok(RecallResult::Unknown) };
    if row.get_ref("sender")?.as_str()? != by {
        return Ok(RecallResult::NotYours);
    }
    let (waits, given) = (row.get::<_, u8>("stage")? == stage::WAITS, row.get("redelivered")?);
    if given || row.get::<_, Option<i64>>("drained_at_us")?.is_some() {
        return Ok(RecallResult::AlreadyDrained);
    }
    if !waits || row.get("dead")? {
        return Ok(RecallResult::AlreadyGone);
    }
    let (seq, recipient, rings): (i64, String, bool) = (row.get("seq")?, row.get("recipient")?, row.get("rings")?);
    connection
        .prepare_cached("UPDATE signal SET stage = 2, recalled_at_us = ?2 WHERE seq = ?1")?
        .execute(params![seq, at_us])?;
    end_waiting(connection, seq, &recipient, rings, "recalled", at_us)?;
    Ok(RecallResult::Done { seq, recipient, rings })
}

fn expire(connection: &Connection, at_us: i64, limit: u32) -> rusqlite::Result<Vec<ExpiredSignal>> {
    let sql = "UPDATE signal SET stage = 2, expired_at_us = ?1 WHERE seq IN (
                   SELECT seq FROM signal INDEXED BY signal_expiring
                   WHERE stage = 0 AND expires_at_us NOT NULL AND expires_at_us <= ?1
                   ORDER BY expires_at_us LIMIT ?2)
               RETURNING seq, id, recipient, rings";
    let ended: Vec<ExpiredSignal> = connection
        .prepare_cached(sql)?
        .query_map(params![at_us, limit], |row| {
            Ok(ExpiredSignal { seq: row.get(0)?, id: id(row, "id")?, recipient: row.get(2)?, rings: row.get(3)? })
        })?
        .collect::<Result<_, _>>()?;
    for signal in &ended {
        end_waiting(connection, signal.seq, &signal.recipient, signal.rings, "expired", at_us)?;
    }
    Ok(ended)
}

fn end_waiting(
    connection: &Connection,
    seq: i64,
    recipient: &str,
    rings: bool,
    state: &str,
    at_us: i64,
) -> rusqlite::Result<()> {
    obligations::close_unheard(connection, seq, state, at_us)?;
    count(connection, recipient, MailboxChange { pending: -1, ringing: -i64::from(rings), over: 1 })
}

fn forget(connection: &Connection, trim: &HistoryTrim) -> rusqlite::Result<u64> {
    let limit = trim.limit as usize;
    let mut gone = 0;
    if let Some(before_us) = trim.before_us {
        let sql = "SELECT seq, recipient, drained_at_us NOT NULL FROM signal INDEXED BY signal_over
                   WHERE stage = 2 AND sent_at_us < ?1 AND NOT EXISTS (
                       SELECT 1 FROM obligation WHERE obligation.seq = signal.seq AND closed_at_us IS NULL)
                   ORDER BY sent_at_us, seq LIMIT ?2";
        let old: Vec<Over> = connection
            .prepare_cached(sql)?
            .query_map(params![before_us, trim.limit], over)?
            .collect::<Result<_, _>>()?;
        forget_these(connection, &old)?;
        gone = old.len();
    }
    if let Some(keep) = trim.keep_per_agent {
        // One small row for each agent there ever was.
        let surplus: Vec<(String, i64)> = connection
            .prepare_cached("SELECT agent, over - ?1 FROM mailbox WHERE over > ?1")?
            .query_map([keep], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<Result<_, _>>()?;
        let sql = "SELECT seq, recipient, drained_at_us NOT NULL FROM signal INDEXED BY signal_stage
                   WHERE recipient = ?1 AND stage = 2 AND NOT EXISTS (
                       SELECT 1 FROM obligation WHERE obligation.seq = signal.seq AND closed_at_us IS NULL)
                   ORDER BY seq LIMIT ?2";
        let mut statement = connection.prepare_cached(sql)?;
        for (agent, surplus) in surplus {
            let left = limit.saturating_sub(gone);
            if left == 0 {
                break;
            }
            let row = params![agent, surplus.min(left as i64)];
            let oldest: Vec<Over> = statement.query_map(row, over)?.collect::<Result<_, _>>()?;
            forget_these(connection, &oldest)?;
            gone += oldest.len();
        }
    }
    Ok(gone as u64)
}

/// A signal that is over.
struct Over {
    seq: i64,
    recipient: String,
    drained: bool,
}

fn over(row: &Row<'_>) -> rusqlite::Result<Over> {
    Ok(Over { seq: row.get(0)?, recipient: row.get(1)?, drained: row.get(2)? })
}

fn forget_these(connection: &Connection, gone: &[Over]) -> rusqlite::Result<()> {
    let mut signal = connection.prepare_cached("DELETE FROM signal WHERE seq = ?1")?;
    let mut obligation = connection.prepare_cached("DELETE FROM obligation WHERE seq = ?1")?;
    let sql = "UPDATE mailbox SET over = over - 1, forgotten = max(forgotten, ?2) WHERE agent = ?1";
    let mut mailbox = connection.prepare_cached(sql)?;
    for over in gone {
        signal.execute([over.seq])?;
        obligation.execute([over.seq])?;
        // Who never drained it has nothing to miss.
        mailbox.execute(params![over.recipient, if over.drained { over.seq } else { 0 }])?;
    }
    Ok(())
}
