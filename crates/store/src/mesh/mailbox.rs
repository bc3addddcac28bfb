//! How many signals each agent has: counted along with every change, so that nobody has to count thousands.

use rusqlite::{Connection, OptionalExtension, params};

use super::{id, stage};
use crate::{Store, StoreReadError};

/// What waits for an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailboxCount {
    pub agent: String,
    pub pending: u64,
    /// Those of them that ring.
    pub ringing: u64,
    /// The highest number there is, of whichever agent: what is above it was not looked at.
    pub newest: i64,
    /// The oldest that waits and rings.
    pub first_ringing: Option<FirstRinging>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstRinging {
    pub id: u128,
    pub sender: String,
    pub kind: String,
    pub trace: u128,
    pub seq: i64,
}

/// The counts of one agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mailbox {
    pub(super) pending: i64,
    pub(super) ringing: i64,
    /// The highest number of a drained signal that is in the history no more.
    pub(super) forgotten: i64,
}

/// What a change does to the counts of one agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct MailboxChange {
    pub(super) pending: i64,
    pub(super) ringing: i64,
    pub(super) over: i64,
}

impl Store {
    /// Returns every agent for which signals wait. Those whose time is over count until they are expired.
    pub fn pending_counts(&self) -> Result<Vec<MailboxCount>, StoreReadError> {
        self.read(|connection| {
            let waiting = "SELECT agent FROM mailbox WHERE pending > 0 ORDER BY agent";
            let agents: Vec<String> =
                connection.prepare_cached(waiting)?.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
            agents.into_iter().map(|agent| pending(connection, agent)).collect()
        })
    }

    /// Returns what waits for one agent.
    pub fn pending_of(&self, agent: &str) -> Result<MailboxCount, StoreReadError> {
        self.read(|connection| pending(connection, agent.to_owned()))
    }
}

fn pending(connection: &Connection, agent: String) -> rusqlite::Result<MailboxCount> {
    let Mailbox { pending, ringing, .. } = mailbox(connection, &agent)?;
    let sql = "SELECT id, sender, kind, trace, seq FROM signal INDEXED BY signal_stage
               WHERE recipient = ?1 AND stage = ?2 AND rings ORDER BY seq LIMIT 1";
    let first_ringing = connection
        .prepare_cached(sql)?
        .query_row(params![agent, stage::WAITS], |row| {
            Ok(FirstRinging {
                id: id(row, "id")?,
                sender: row.get(1)?,
                kind: row.get(2)?,
                trace: id(row, "trace")?,
                seq: row.get(4)?,
            })
        })
        .optional()?;
    let (pending, ringing) = (pending.cast_unsigned(), ringing.cast_unsigned());
    Ok(MailboxCount { agent, pending, ringing, newest: newest(connection)?, first_ringing })
}

/// Returns the counts of an agent; one that never had a signal has none.
pub(super) fn mailbox(connection: &Connection, agent: &str) -> rusqlite::Result<Mailbox> {
    let found = connection
        .prepare_cached("SELECT pending, ringing, forgotten FROM mailbox WHERE agent = ?1")?
        .query_row([agent], |row| Ok(Mailbox { pending: row.get(0)?, ringing: row.get(1)?, forgotten: row.get(2)? }))
        .optional()?;
    Ok(found.unwrap_or_default())
}

/// Counts a change of an agent's signals.
pub(super) fn count(connection: &Connection, agent: &str, change: MailboxChange) -> rusqlite::Result<()> {
    if change == MailboxChange::default() {
        return Ok(());
    }
    let sql = "INSERT INTO mailbox (agent, pending, ringing, over) VALUES (?1, ?2, ?3, ?4)
               ON CONFLICT DO UPDATE SET pending = pending + ?2, ringing = ringing + ?3, over = over + ?4";
    let row = params![agent, change.pending, change.ringing, change.over];
    connection.prepare_cached(sql)?.execute(row).map(drop)
}

/// Returns the highest number that was ever given to a signal, of whichever agent.
pub(super) fn newest(connection: &Connection) -> rusqlite::Result<i64> {
    let newest = connection
        .prepare_cached("SELECT seq FROM sqlite_sequence WHERE name = 'signal'")?
        .query_row([], |row| row.get(0))
        .optional()?;
    Ok(newest.unwrap_or(0))
}
