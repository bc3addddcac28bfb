//! What a person is asked before it is done, and for how long and how often their Allow counts.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{id, key, optional_id};
use crate::{Store, StoreReadError, StoreWriteError};

/// A question to a person as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfirmationRow {
    pub id: u128,
    /// `action`, `tool` or `definition`.
    pub kind: String,
    pub grant_id: Option<u128>,
    pub agent: String,
    /// SHA-256 of all that the answer is about.
    pub digest: [u8; 32],
    /// JSON that only the daemon reads: what the person sees.
    pub shown: String,
    /// `waiting`, `allowed`, `denied`, `expired` or `withdrawn`.
    pub state: String,
    pub created_at_us: i64,
    pub expires_at_us: i64,
    pub decided_at_us: Option<i64>,
    pub decided_by: Option<String>,
    pub reason: Option<String>,
    /// How often an Allow still counts.
    pub uses_left: i64,
    /// Until when it counts.
    pub until_us: Option<i64>,
}

/// What a person said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfirmationAnswer {
    pub confirmation: u128,
    /// Of what they saw. Only if that is what was asked does the answer count.
    pub digest: [u8; 32],
    pub allow: bool,
    pub at_us: i64,
    pub by: String,
    pub reason: Option<String>,
    /// How often an Allow counts.
    pub uses: i64,
    pub until_us: Option<i64>,
}

/// Which confirmations; all, if nothing is said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfirmationFilter {
    pub waiting_only: bool,
    pub grant: Option<u128>,
    pub limit: u32,
}

impl Store {
    pub async fn add_confirmation(&self, new: ConfirmationRow) -> Result<(), StoreWriteError> {
        let sql = "INSERT INTO confirmation VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)";
        let add = move |connection: &Connection| {
            let row = params![
                key(new.id),
                new.kind,
                new.grant_id.map(key),
                new.agent,
                new.digest,
                new.shown,
                new.state,
                new.created_at_us,
                new.expires_at_us,
                new.decided_at_us,
                new.decided_by,
                new.reason,
                new.uses_left,
                new.until_us,
            ];
            connection.prepare_cached(sql)?.execute(row).map(drop)
        };
        self.writer.write(add).await
    }

    /// Notes what a person said. Returns whether it counts: `false` means that something else was asked, or that it was
    /// decided before or withdrawn. An Allow counts after the time as well: nobody waits any more, but whoever asks the
    /// same again need not.
    pub async fn decide_confirmation(&self, answer: ConfirmationAnswer) -> Result<bool, StoreWriteError> {
        let sql = "UPDATE confirmation SET state = iif(?3, 'allowed', 'denied'), decided_at_us = ?4, decided_by = ?5,
                   reason = ?6, uses_left = iif(?3, ?7, 0), until_us = iif(?3, ?8, NULL)
                   WHERE id = ?1 AND digest = ?2 AND (state = 'waiting' OR ?3 AND state = 'expired')";
        let decide = move |connection: &Connection| {
            let ConfirmationAnswer { confirmation, digest, allow, at_us, by, reason, uses, until_us } = &answer;
            let row = params![key(*confirmation), digest, allow, at_us, by, reason, uses, until_us];
            Ok(connection.prepare_cached(sql)?.execute(row)? == 1)
        };
        self.writer.write(decide).await
    }

    /// Takes one use of an Allow of exactly this, and returns the confirmation that it was. Of several, the one that ends
    /// first.
    pub async fn use_approval(&self, digest: [u8; 32], now_us: i64) -> Result<Option<u128>, StoreWriteError> {
        let sql = "UPDATE confirmation SET uses_left = uses_left - 1 WHERE id = (
                       SELECT id FROM confirmation INDEXED BY confirmation_approval
                       WHERE digest = ?1 AND state = 'allowed' AND uses_left > 0 AND (until_us IS NULL OR until_us > ?2)
                       ORDER BY until_us IS NULL, until_us, id LIMIT 1)
                   RETURNING id";
        let take = move |connection: &Connection| {
            let row = params![digest, now_us];
            connection.prepare_cached(sql)?.query_row(row, |row| id(row, "id")).optional()
        };
        self.writer.write(take).await
    }

    /// Ends questions that nobody has answered, and returns those that have ended by this.
    pub async fn end_confirmations(
        &self,
        confirmations: Vec<u128>,
        state: &'static str,
        at_us: i64,
    ) -> Result<Vec<u128>, StoreWriteError> {
        let sql = "UPDATE confirmation SET state = ?2, decided_at_us = ?3 WHERE id = ?1 AND state = 'waiting'";
        let end = move |connection: &Connection| {
            let mut statement = connection.prepare_cached(sql)?;
            let mut ended = Vec::new();
            for confirmation in confirmations {
                if statement.execute(params![key(confirmation), state, at_us])? == 1 {
                    ended.push(confirmation);
                }
            }
            Ok(ended)
        };
        self.writer.write(end).await
    }

    /// Ends the questions whose time is over, and returns them.
    pub async fn expire_confirmations(&self, now_us: i64) -> Result<Vec<u128>, StoreWriteError> {
        let sql = "UPDATE confirmation INDEXED BY confirmation_waiting SET state = 'expired'
                   WHERE state = 'waiting' AND expires_at_us <= ?1 RETURNING id";
        let expire = move |connection: &Connection| {
            connection.prepare_cached(sql)?.query_map([now_us], |row| id(row, "id"))?.collect()
        };
        self.writer.write(expire).await
    }

    pub fn confirmation(&self, confirmation: u128) -> Result<Option<ConfirmationRow>, StoreReadError> {
        let sql = "SELECT * FROM confirmation WHERE id = ?1";
        self.read(|connection| {
            connection.prepare_cached(sql)?.query_row([key(confirmation)], self::confirmation).optional()
        })
    }

    /// Returns the ids of what waits, the oldest first, and how many characters each has to show.
    pub fn waiting_confirmations(&self, most: u32) -> Result<Vec<(u128, u32)>, StoreReadError> {
        let sql = "SELECT id, length(shown) AS length FROM confirmation WHERE state = 'waiting'
                   ORDER BY created_at_us, id LIMIT ?1";
        let read = |row: &Row<'_>| Ok((id(row, "id")?, row.get("length")?));
        self.read(|connection| connection.prepare_cached(sql)?.query_map([most], read)?.collect())
    }

    /// The same as `confirmation`, with only so many characters of what is shown.
    pub fn beginning_of_confirmation(&self, of: u128, most: u32) -> Result<Option<ConfirmationRow>, StoreReadError> {
        let sql = "SELECT id, kind, grant_id, agent, digest, substr(shown, 1, ?2) AS shown, state, created_at_us,
                   expires_at_us, decided_at_us, decided_by, reason, uses_left, until_us
                   FROM confirmation WHERE id = ?1";
        self.read(|connection| {
            connection.prepare_cached(sql)?.query_row(params![key(of), most], confirmation).optional()
        })
    }

    /// Returns when the time of the first of them is over; `None` if nothing waits.
    pub fn first_end_of_confirmations(&self) -> Result<Option<i64>, StoreReadError> {
        let sql = "SELECT min(expires_at_us) FROM confirmation WHERE state = 'waiting'";
        self.read(|connection| connection.prepare_cached(sql)?.query_row([], |row| row.get(0)))
    }

    /// Returns confirmations, the newest first.
    pub fn confirmations(&self, filter: &ConfirmationFilter) -> Result<Vec<ConfirmationRow>, StoreReadError> {
        let grant = if filter.grant.is_some() { "grant_id = ?1" } else { "?1 IS NULL" };
        let waiting = if filter.waiting_only { "AND state = 'waiting'" } else { "" };
        let sql =
            format!("SELECT * FROM confirmation WHERE {grant} {waiting} ORDER BY created_at_us DESC, id DESC LIMIT ?2");
        let row = params![filter.grant.map(key), filter.limit];
        self.read(|connection| connection.prepare_cached(&sql)?.query_map(row, self::confirmation)?.collect())
    }
}

fn confirmation(row: &Row<'_>) -> rusqlite::Result<ConfirmationRow> {
    Ok(ConfirmationRow {
        id: id(row, "id")?,
        kind: row.get("kind")?,
        grant_id: optional_id(row, "grant_id")?,
        agent: row.get("agent")?,
        digest: row.get("digest")?,
        shown: row.get("shown")?,
        state: row.get("state")?,
        created_at_us: row.get("created_at_us")?,
        expires_at_us: row.get("expires_at_us")?,
        decided_at_us: row.get("decided_at_us")?,
        decided_by: row.get("decided_by")?,
        reason: row.get("reason")?,
        uses_left: row.get("uses_left")?,
        until_us: row.get("until_us")?,
    })
}
