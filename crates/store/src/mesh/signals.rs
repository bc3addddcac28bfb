//! Signals: how they are accepted, and how they are looked up. How they reach their recipient is in `drain`, how else
//! they end in `ends`.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{
    ObligationRow, id, key,
    mailbox::{MailboxChange, count, mailbox},
    obligations, optional_id, stage,
};
use crate::{Store, StoreReadError, StoreWriteError};

/// A signal that is to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSignal {
    pub id: u128,
    pub trace: u128,
    pub kind: String,
    pub sender: String,
    pub recipient: String,
    pub body: String,
    pub reply_to: Option<u128>,
    pub sent_at_us: i64,
    pub expires_at_us: Option<i64>,
    /// Whether it rings. System signals do not.
    pub rings: bool,
    /// What its recipient owes from now on.
    pub obligation: Option<ObligationRow>,
    /// The signal whose obligation ends with this one, which is the reply.
    pub closes: Option<u128>,
    /// Undrained signals its recipient may have that ring, if this one does: beyond it this one is refused, as its
    /// sender can be told. If it does not, those that do not: beyond it the oldest of them gives way (and counts as
    /// expired), as of the system's news the latest matter.
    pub max_pending: u32,
}

/// What became of a signal that was to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendResult {
    Accepted {
        seq: i64,
    },
    /// It was sent before under this id, and this is what it got then. Nothing has changed.
    Again {
        seq: i64,
        trace: u128,
    },
    /// The id belongs to a signal with another content, recipient or sender.
    Conflict,
    /// Its recipient has this many that ring.
    Full {
        pending: u32,
    },
}

/// A signal as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignalRow {
    pub seq: i64,
    pub id: u128,
    pub trace: u128,
    pub kind: String,
    pub sender: String,
    pub recipient: String,
    pub body: String,
    pub reply_to: Option<u128>,
    pub sent_at_us: i64,
    pub expires_at_us: Option<i64>,
    pub drained_at_us: Option<i64>,
    pub recalled_at_us: Option<i64>,
    pub expired_at_us: Option<i64>,
    /// It was given before, and may have arrived then.
    pub redelivered: bool,
    pub rings: bool,
}

/// Which part of the history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistoryQuery {
    /// Who sent or received it; everybody, if not said.
    pub agent: Option<String>,
    /// Only those with a smaller number.
    pub before: Option<i64>,
    pub limit: u32,
}

impl Store {
    /// Accepts signals, in one transaction, and returns what became of each. One that is refused refuses no other.
    pub async fn send_signals(&self, signals: Vec<NewSignal>) -> Result<Vec<SendResult>, StoreWriteError> {
        self.writer.write(move |connection| signals.iter().map(|signal| send(connection, signal)).collect()).await
    }

    /// Returns a signal, wherever it is on its way.
    pub fn signal(&self, id: u128) -> Result<Option<SignalRow>, StoreReadError> {
        self.read(|connection| {
            connection.prepare_cached("SELECT * FROM signal WHERE id = ?1")?.query_row([key(id)], signal).optional()
        })
    }

    /// Returns signals of all stages, the newest first.
    pub fn history(&self, part: &HistoryQuery) -> Result<Vec<SignalRow>, StoreReadError> {
        let before = part.before.unwrap_or(i64::MAX);
        self.read(|connection| {
            let Some(agent) = &part.agent else {
                let sql = "SELECT * FROM signal WHERE seq < ?1 ORDER BY seq DESC LIMIT ?2";
                return connection.prepare_cached(sql)?.query_map(params![before, part.limit], signal)?.collect();
            };
            let sql = "SELECT * FROM signal WHERE seq IN (
                           SELECT seq FROM (SELECT seq FROM signal INDEXED BY signal_recipient
                                            WHERE recipient = ?1 AND seq < ?2 ORDER BY seq DESC LIMIT ?3)
                           UNION
                           SELECT seq FROM (SELECT seq FROM signal INDEXED BY signal_sender
                                            WHERE sender = ?1 AND seq < ?2 ORDER BY seq DESC LIMIT ?3)
                       ) ORDER BY seq DESC LIMIT ?3";
            connection.prepare_cached(sql)?.query_map(params![agent, before, part.limit], signal)?.collect()
        })
    }
}

fn send(connection: &Connection, new: &NewSignal) -> rusqlite::Result<SendResult> {
    if let Some(sent) = sent_before(connection, new)? {
        return Ok(sent);
    }
    let mailbox = mailbox(connection, &new.recipient)?;
    if new.rings {
        if mailbox.ringing >= i64::from(new.max_pending) {
            return Ok(SendResult::Full { pending: u32::try_from(mailbox.ringing).unwrap_or(u32::MAX) });
        }
    } else {
        let silent = mailbox.pending - mailbox.ringing;
        let surplus = silent + 1 - i64::from(new.max_pending);
        drop_oldest_silent(connection, &new.recipient, surplus, new.sent_at_us)?;
    }
    let sql = "INSERT INTO signal
               (id, trace, kind, sender, recipient, body, reply_to, sent_at_us, expires_at_us, rings)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
    connection.prepare_cached(sql)?.execute(params![
        key(new.id),
        key(new.trace),
        new.kind,
        new.sender,
        new.recipient,
        new.body,
        new.reply_to.map(key),
        new.sent_at_us,
        new.expires_at_us,
        new.rings
    ])?;
    let seq = connection.last_insert_rowid();
    count(connection, &new.recipient, MailboxChange { pending: 1, ringing: new.rings.into(), over: 0 })?;
    if let Some(obligation) = &new.obligation {
        obligations::open(connection, seq, obligation)?;
    }
    if let Some(closes) = new.closes {
        obligations::close_by_reply(connection, closes, new.id, new.sent_at_us)?;
        note_arrived(connection, closes)?;
    }
    Ok(SendResult::Accepted { seq })
}

/// Returns what a signal of this id got, if there is one. The trace and the times do not count: who repeats a signal
/// because it heard no answer may have left both to the daemon.
fn sent_before(connection: &Connection, new: &NewSignal) -> rusqlite::Result<Option<SendResult>> {
    let sql = "SELECT seq, trace, kind = ?2 AND sender = ?3 AND recipient = ?4 AND body = ?5 AND reply_to IS ?6 AS same
               FROM signal WHERE id = ?1";
    let row = params![key(new.id), new.kind, new.sender, new.recipient, new.body, new.reply_to.map(key)];
    connection
        .prepare_cached(sql)?
        .query_row(row, |row| {
            let same: bool = row.get("same")?;
            Ok(if same {
                SendResult::Again { seq: row.get("seq")?, trace: id(row, "trace")? }
            } else {
                SendResult::Conflict
            })
        })
        .optional()
}

/// Makes room for a signal that does not ring. Such a signal has no obligation.
fn drop_oldest_silent(connection: &Connection, recipient: &str, surplus: i64, at_us: i64) -> rusqlite::Result<()> {
    if surplus <= 0 {
        return Ok(());
    }
    let sql = "UPDATE signal SET stage = ?3, expired_at_us = ?4 WHERE seq IN (
                   SELECT seq FROM signal INDEXED BY signal_silent
                   WHERE recipient = ?1 AND stage = 0 AND rings = 0 ORDER BY seq LIMIT ?2)";
    let dropped = connection.prepare_cached(sql)?.execute(params![recipient, surplus, stage::OVER, at_us])? as i64;
    count(connection, recipient, MailboxChange { pending: -dropped, ringing: 0, over: dropped })
}

/// Notes that a signal has arrived if it was given: somebody has replied to it.
fn note_arrived(connection: &Connection, signal: u128) -> rusqlite::Result<()> {
    let sql = "UPDATE signal SET stage = ?2 WHERE id = ?1 AND stage = ?3 RETURNING recipient";
    let recipient: Option<String> = connection
        .prepare_cached(sql)?
        .query_row(params![key(signal), stage::OVER, stage::GIVEN], |row| row.get(0))
        .optional()?;
    match recipient {
        Some(recipient) => count(connection, &recipient, MailboxChange { over: 1, ..MailboxChange::default() }),
        None => Ok(()),
    }
}

pub(super) fn signal(row: &Row<'_>) -> rusqlite::Result<SignalRow> {
    Ok(SignalRow {
        seq: row.get("seq")?,
        id: id(row, "id")?,
        trace: id(row, "trace")?,
        kind: row.get("kind")?,
        sender: row.get("sender")?,
        recipient: row.get("recipient")?,
        body: row.get("body")?,
        reply_to: optional_id(row, "reply_to")?,
        sent_at_us: row.get("sent_at_us")?,
        expires_at_us: row.get("expires_at_us")?,
        drained_at_us: row.get("drained_at_us")?,
        recalled_at_us: row.get("recalled_at_us")?,
        expired_at_us: row.get("expired_at_us")?,
        redelivered: row.get("redelivered")?,
        rings: row.get("rings")?,
    })
}
