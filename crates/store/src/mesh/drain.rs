//! The drain: how signals reach their recipient, page by page, and how it is known that they have.

use rusqlite::{Connection, OptionalExtension, ToSql, params};

use super::{
    id,
    mailbox::{Mailbox, MailboxChange, count, mailbox, newest},
    obligations::{self, HeardOutcome},
    signals::{SignalRow, signal},
    stage,
};
use crate::{Store, StoreReadError, StoreWriteError};

/// What an agent asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrainRequest {
    pub agent: String,
    /// The cursor that the client holds: all up to it has arrived, and what comes after it is given, drained before or
    /// not. Without one, what was not drained yet.
    pub after: Option<i64>,
    pub limit: u32,
    /// The page ends before the bodies are more than this, but not before its first signal.
    pub max_bytes: usize,
    pub at_us: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DrainResult {
    Page(DrainPage),
    /// No signal has such a number yet.
    CursorAhead {
        newest: i64,
    },
    /// Signals after it were drained, and are in the history no more. `oldest` is the first cursor that would do.
    CursorExpired {
        oldest: i64,
    },
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DrainPage {
    /// In the order of their numbers. The last number is the cursor, or if there is none, the one that was sent.
    pub signals: Vec<SignalRow>,
    /// Another page follows at once. With a cursor it may have what was drained before, which `left` does not count.
    pub more: bool,
    /// Undrained ones that are left, and how many of these ring.
    pub left: u64,
    pub left_ringing: u64,
    /// The highest number there is, of whichever agent: what is above it was not looked at.
    pub newest: i64,
    /// The signals whose obligations ended by being heard now.
    pub closed: Vec<u128>,
    /// Those whose obligations were merely heard now.
    pub heard: Vec<u128>,
}

/// A signal on its way into a page, and its stage before.
type Found = (SignalRow, u8);

impl Store {
    /// Gives an agent its next signals, in one transaction.
    pub async fn drain(&self, drain: DrainRequest) -> Result<DrainResult, StoreWriteError> {
        self.writer.write(move |connection| give(connection, &drain)).await
    }

    /// Returns what a drain would give now, and changes nothing.
    pub fn peek(&self, drain: &DrainRequest) -> Result<DrainResult, StoreReadError> {
        self.read(|connection| {
            let mailbox = mailbox(connection, &drain.agent)?;
            let newest = newest(connection)?;
            let after = match cursor(connection, drain, mailbox, newest)? {
                Ok(after) => after,
                Err(wrong) => return Ok(wrong),
            };
            let (found, more) = find(connection, drain, after)?;
            let mut change = waiting(&found);
            if let Some(after) = after {
                let received = received(connection, drain, after)?;
                change.pending += received.pending;
                change.ringing += received.ringing;
            }
            let (left, left_ringing) = left(connection, drain, change)?;
            let signals = found.into_iter().map(|(signal, stage)| marked(signal, stage)).collect();
            Ok(DrainResult::Page(DrainPage { signals, more, left, left_ringing, newest, ..DrainPage::default() }))
        })
    }

    /// Makes what was drained, and is not known to have arrived, wait again, and returns how many these are. At the
    /// start, when whoever may have received them is gone.
    pub async fn unsettle_all(&self) -> Result<u64, StoreWriteError> {
        // A start waits for this, and mostly there is nothing to write.
        if self.has_none_given() {
            return Ok(0);
        }
        self.writer
            .write(|connection| unsettle(connection, "recipient IN (SELECT agent FROM mailbox)", params![]))
            .await
    }

    fn has_none_given(&self) -> bool {
        let sql = "SELECT NOT EXISTS (SELECT 1 FROM mailbox WHERE EXISTS (
                       SELECT 1 FROM signal INDEXED BY signal_stage WHERE recipient = agent AND stage = 1))";
        let none = self.read(|connection| connection.prepare_cached(sql)?.query_row([], |row| row.get(0)));
        none.unwrap_or(false)
    }

    /// Makes what an agent was given, from one number to another, wait again: its client has left before the answer did.
    pub async fn put_back(&self, agent: &str, from: i64, to: i64) -> Result<u64, StoreWriteError> {
        let agent = agent.to_owned();
        let given = "recipient = ?1 AND seq BETWEEN ?2 AND ?3";
        self.writer.write(move |connection| unsettle(connection, given, params![agent, from, to])).await
    }
}

fn give(connection: &Connection, drain: &DrainRequest) -> rusqlite::Result<DrainResult> {
    let newest = newest(connection)?;
    let after = match cursor(connection, drain, mailbox(connection, &drain.agent)?, newest)? {
        Ok(after) => after,
        Err(wrong) => return Ok(wrong),
    };
    let mut page = DrainPage { newest, ..DrainPage::default() };
    if let Some(after) = after {
        settle_given(connection, &drain.agent, after)?;
        settle_waiting(connection, drain, after, &mut page)?;
    }
    let (found, more) = find(connection, drain, after)?;
    page.more = more;
    let given = waiting(&found);
    let mut first_time = connection.prepare_cached("UPDATE signal SET stage = 1, drained_at_us = ?2 WHERE seq = ?1")?;
    let mut once_more = connection.prepare_cached("UPDATE signal SET redelivered = 1 WHERE seq = ?1")?;
    for (mut signal, stage) in found {
        if stage == stage::WAITS {
            first_time.execute(params![signal.seq, drain.at_us])?;
            signal.drained_at_us = Some(drain.at_us);
            hear(connection, signal.seq, signal.id, drain.at_us, &mut page)?;
        } else if !signal.redelivered {
            once_more.execute([signal.seq])?;
        }
        page.signals.push(marked(signal, stage));
    }
    let change = MailboxChange { pending: -given.pending, ringing: -given.ringing, over: 0 };
    count(connection, &drain.agent, change)?;
    (page.left, page.left_ringing) = left(connection, drain, MailboxChange::default())?;
    Ok(DrainResult::Page(page))
}

/// Returns the cursor to go by, or what is wrong with it.
///
/// A signal that was never given is not swallowed by a cursor beyond it, which is another agent's, or a peek's: it and
/// what follows are given then. A client that sends what its last page said never holds such a cursor.
fn cursor(
    connection: &Connection,
    drain: &DrainRequest,
    mailbox: Mailbox,
    newest: i64,
) -> rusqlite::Result<Result<Option<i64>, DrainResult>> {
    let Some(after) = drain.after else { return Ok(Ok(None)) };
    if after > newest {
        return Ok(Err(DrainResult::CursorAhead { newest }));
    }
    if after < mailbox.forgotten {
        return Ok(Err(DrainResult::CursorExpired { oldest: mailbox.forgotten }));
    }
    let sql = "SELECT seq FROM signal INDEXED BY signal_stage
               WHERE recipient = ?1 AND stage = 0 AND seq <= ?2 AND NOT redelivered
               AND (expires_at_us IS NULL OR expires_at_us > ?3) ORDER BY seq LIMIT 1";
    let never_given: Option<i64> = connection
        .prepare_cached(sql)?
        .query_row(params![drain.agent, after, drain.at_us], |row| row.get(0))
        .optional()?;
    Ok(Ok(Some(never_given.map_or(after, |seq| seq - 1))))
}

/// Returns the signals of the page, and whether there are more.
fn find(connection: &Connection, drain: &DrainRequest, after: Option<i64>) -> rusqlite::Result<(Vec<Found>, bool)> {
    // What was given before its time was over is given again, if the client has not received it.
    let sql = match after {
        Some(_) => {
            "SELECT * FROM signal INDEXED BY signal_recipient
             WHERE recipient = ?1 AND seq > ?2 AND recalled_at_us IS NULL AND expired_at_us IS NULL
             AND (stage > 0 OR expires_at_us IS NULL OR expires_at_us > ?3) ORDER BY seq LIMIT ?4"
        }
        None => {
            "SELECT * FROM signal INDEXED BY signal_stage
             WHERE recipient = ?1 AND stage = 0 AND seq > ?2
             AND (expires_at_us IS NULL OR expires_at_us > ?3) ORDER BY seq LIMIT ?4"
        }
    };
    let mut statement = connection.prepare_cached(sql)?;
    // One more than wanted tells whether there are more.
    let limit = i64::from(drain.limit) + 1;
    let mut rows = statement.query(params![drain.agent, after.unwrap_or(0), drain.at_us, limit])?;
    let (mut found, mut bytes) = (Vec::new(), 0_usize);
    while let Some(row) = rows.next()? {
        let signal = signal(row)?;
        bytes = bytes.saturating_add(signal.body.len());
        if found.len() >= drain.limit as usize || (bytes > drain.max_bytes && !found.is_empty()) {
            return Ok((found, true));
        }
        found.push((signal, row.get("stage")?));
    }
    Ok((found, false))
}

/// Counts those of a page that were waiting.
fn waiting(found: &[Found]) -> MailboxChange {
    let waiting = found.iter().filter(|(_, stage)| *stage == stage::WAITS);
    waiting.fold(MailboxChange::default(), |sum, (signal, _)| MailboxChange {
        pending: sum.pending + 1,
        ringing: sum.ringing + i64::from(signal.rings),
        over: 0,
    })
}

fn marked(signal: SignalRow, stage: u8) -> SignalRow {
    SignalRow { redelivered: signal.redelivered || stage != stage::WAITS, ..signal }
}

/// Returns how many wait for the agent, and how many of these ring, without those whose time is over and those that
/// a drain would take.
fn left(connection: &Connection, drain: &DrainRequest, taken: MailboxChange) -> rusqlite::Result<(u64, u64)> {
    let mailbox = mailbox(connection, &drain.agent)?;
    let sql = "SELECT count(*), coalesce(sum(rings), 0) FROM signal INDEXED BY signal_expiring
               WHERE stage = 0 AND expires_at_us NOT NULL AND expires_at_us <= ?2 AND recipient = ?1";
    let (dead, dead_ringing): (i64, i64) = connection
        .prepare_cached(sql)?
        .query_row(params![drain.agent, drain.at_us], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let pending = mailbox.pending - dead - taken.pending;
    let ringing = mailbox.ringing - dead_ringing - taken.ringing;
    Ok((pending.max(0).cast_unsigned(), ringing.max(0).cast_unsigned()))
}

fn hear(connection: &Connection, seq: i64, signal: u128, at_us: i64, page: &mut DrainPage) -> rusqlite::Result<()> {
    match obligations::hear(connection, seq, at_us)? {
        Some(HeardOutcome::Ended) => page.closed.push(signal),
        Some(HeardOutcome::Merely) => page.heard.push(signal),
        None => {}
    }
    Ok(())
}

// === what has arrived ===

/// Notes that what an agent has drained, up to this number, has surely arrived.
pub(super) fn settle_given(connection: &Connection, agent: &str, up_to: i64) -> rusqlite::Result<()> {
    let sql = "UPDATE signal INDEXED BY signal_stage SET stage = 2 WHERE recipient = ?1 AND stage = 1 AND seq <= ?2";
    let settled = connection.prepare_cached(sql)?.execute(params![agent, up_to])? as i64;
    count(connection, agent, MailboxChange { over: settled, ..MailboxChange::default() })
}

/// Settles what waits once more since the restart: the client says now that it had arrived before.
fn settle_waiting(
    connection: &Connection,
    drain: &DrainRequest,
    up_to: i64,
    page: &mut DrainPage,
) -> rusqlite::Result<()> {
    let sql = "UPDATE signal INDEXED BY signal_stage SET stage = 2, drained_at_us = ?3
               WHERE recipient = ?1 AND stage = 0 AND seq <= ?2 AND redelivered RETURNING seq, id, rings";
    let settled: Vec<(i64, u128, bool)> = connection
        .prepare_cached(sql)?
        .query_map(params![drain.agent, up_to, drain.at_us], |row| Ok((row.get(0)?, id(row, "id")?, row.get(2)?)))?
        .collect::<Result<_, _>>()?;
    let mut change = MailboxChange::default();
    for (seq, signal, rings) in settled {
        hear(connection, seq, signal, drain.at_us, page)?;
        change.pending -= 1;
        change.ringing -= i64::from(rings);
        change.over += 1;
    }
    count(connection, &drain.agent, change)
}

/// Counts what waits, but has arrived, if a cursor is right. Not those whose time is over, which `left` leaves out.
fn received(connection: &Connection, drain: &DrainRequest, up_to: i64) -> rusqlite::Result<MailboxChange> {
    let sql = "SELECT count(*), coalesce(sum(rings), 0) FROM signal INDEXED BY signal_stage
               WHERE recipient = ?1 AND stage = 0 AND seq <= ?2 AND redelivered
               AND (expires_at_us IS NULL OR expires_at_us > ?3)";
    connection.prepare_cached(sql)?.query_row(params![drain.agent, up_to, drain.at_us], |row| {
        Ok(MailboxChange { pending: row.get(0)?, ringing: row.get(1)?, over: 0 })
    })
}

fn unsettle(connection: &Connection, which: &'static str, of: &[&dyn ToSql]) -> rusqlite::Result<u64> {
    let sql = format!(
        "UPDATE signal INDEXED BY signal_stage SET stage = 0, drained_at_us = NULL, redelivered = 1
         WHERE {which} AND stage = 1 RETURNING seq, recipient, rings"
    );
    let unsettled: Vec<(i64, String, bool)> = connection
        .prepare_cached(&sql)?
        .query_map(of, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect::<Result<_, _>>()?;
    for (seq, recipient, rings) in &unsettled {
        obligations::unhear(connection, *seq)?;
        count(connection, recipient, MailboxChange { pending: 1, ringing: (*rings).into(), over: 0 })?;
    }
    Ok(unsettled.len() as u64)
}
